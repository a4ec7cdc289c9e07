"""Rows of Dask collections on the workers of a cluster: the same answers."""

import itertools
import threading
import time

import dask
import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from distributed import Client
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from tests.cases.clusters import cluster, mixture, relative
from tests.cases.pairwise import product
from tests.cases.waits import HANGS
from widemargin import (
    SVC,
    SVR,
    LinearSVC,
    LinearSVR,
    OneClassSVM,
    open_rows,
)
from widemargin.data.distributed import rows as rows_module
from widemargin.data.distributed.crew import Crew
from widemargin.data.distributed.opened import open_collection
from widemargin.data.doubled import DoubledRows
from widemargin.solvers.driver.checkpoint import Checkpoint
from widemargin.solvers.driver.limits import Limits

pytestmark = pytest.mark.dask
TIGHT = 1e-10


@pytest.fixture(scope="module")
def client():
    with cluster(3) as client:
        yield client


@pytest.fixture(scope="module")
def data():
    return mixture(1800)


@pytest.fixture(scope="module")
def here(data):
    """The answer in memory."""
    return LinearSVC(tol=TIGHT).fit(*data)


def arrays(X, y, rows=300):
    return da.from_array(X, chunks=(rows, -1)), da.from_array(y, chunks=rows)


@pytest.fixture
def crews(monkeypatch):
    """The crews of the fits of a test, with the bytes of each request."""
    made = []

    class Counting(Crew):
        def __init__(self, *given):
            super().__init__(*given)
            self.bytes = []
            made.append(self)

        def add(self, data, timeout=None):
            before = self.shipped["got"]
            value = super().add(data, timeout)
            self.bytes.append((len(data), self.shipped["got"] - before))
            return value

    monkeypatch.setattr(rows_module, "Crew", Counting)
    return made


def nothing(m, *columns):
    """No vectors beside the rows."""
    return {}, None, None


def full(cases):
    """Cases of full runs."""
    return [pytest.param(*case, marks=pytest.mark.full) for case in cases]


OWN = {"squared_hinge": "active_set", "hinge": "augmented_lagrangian"}
INTERCEPTS = ["free", "penalized", "none"]
EPSILON_LOSSES = ["epsilon_insensitive", "squared_epsilon_insensitive"]


@pytest.mark.parametrize(
    ("loss", "intercept", "solver", "C"),
    [
        *full(
            (loss, intercept, solver, 1.0)
            for loss, intercept in itertools.product(OWN, INTERCEPTS)
            for solver in (OWN[loss], "interior_point", "coordinate_descent")
        ),
        ("squared_hinge", "auto", "auto", 1.0),
        ("squared_hinge", "free", "interior_point", 1.0),
        ("squared_hinge", "none", "active_set", 1.0),
        ("hinge", "auto", "auto", 1.0),
        ("hinge", "penalized", "augmented_lagrangian", 1.0),
        ("hinge", "none", "interior_point", 1.0),
        *(
            (loss, intercept, "coordinate_descent", 0.01)
            for loss, intercept in itertools.product(OWN, INTERCEPTS)
        ),
    ],
)
def test_coefficients_are_those_of_rows_in_memory(
    client, data, loss, intercept, solver, C
):
    options = {"C": C, "loss": loss, "intercept": intercept, "solver": solver}
    options["tol"] = TIGHT
    here = LinearSVC(**options).fit(*data)
    there = LinearSVC(**options).fit(*arrays(*data))
    assert relative(there, here) <= 1e-9
    np.testing.assert_allclose(there.intercept_, here.intercept_, atol=1e-9)
    assert there.status_ == "solved"
    assert there.dual_gap_ <= TIGHT
    assert there.n_support_.tolist() == here.n_support_.tolist()
    assert there.solution_.at_bound == here.solution_.at_bound


def test_coordinate_descent_of_a_regression(client):
    X, _ = mixture(1500)
    target = X @ np.arange(5) + np.random.default_rng(0).normal(size=1500)
    svr = LinearSVR(C=0.01, epsilon=0.3, solver="coordinate_descent", tol=1e-8)
    here, there = clone(svr).fit(X, target), svr.fit(*arrays(X, target))
    objectives = [one.solution_.certificate.primal for one in (there, here)]
    assert there.solution_.solver == "coordinate_descent"
    np.testing.assert_allclose(*objectives, rtol=2e-8)


def test_columns_far_from_zero_are_centered_there_too(client, data):
    X = data[0] + 1e4
    here = LinearSVC(loss="hinge", tol=1e-8).fit(X, data[1])
    there = LinearSVC(loss="hinge", tol=1e-10).fit(*arrays(X, data[1]))
    assert relative(there, here) <= 1e-6


def test_predictions_are_lazy_and_those_of_the_model(client, data, here):
    X, y = arrays(*data)
    there = LinearSVC(tol=TIGHT).fit(X, y)
    labels, scores = there.predict(X), there.decision_function(X)
    assert isinstance(labels, da.Array)
    assert labels.dtype == there.classes_.dtype
    np.testing.assert_array_equal(labels.compute(), here.predict(data[0]))
    np.testing.assert_allclose(scores.compute(), here.decision_function(data[0]))


def test_several_classes_with_words_as_labels(client, data):
    X, y = data
    words = np.array(["a", "b", "c"])[(y > 0).astype(int) + (X[:, 0] > 1)]
    here = LinearSVC(tol=TIGHT).fit(X, words)
    dX, dy = arrays(X, words)
    there = LinearSVC(tol=TIGHT).fit(dX, dy)
    assert there.classes_.tolist() == ["a", "b", "c"]
    assert relative(there, here) <= 1e-9
    assert there.decision_function(dX).shape == (1800, 3)
    np.testing.assert_array_equal(there.predict(dX).compute(), here.predict(X))


def three_classes():
    X, y = mixture(900)
    w = np.random.default_rng(0).integers(0, 3, len(y)).astype(float)
    return X, (y > 0).astype(int) + (X[:, 0] > 1), w


def test_pairs_of_classes(client):
    X, y, w = three_classes()
    dw = da.from_array(w, chunks=300)
    svc = LinearSVC(loss="hinge", multi_class="ovo", class_weight="balanced", tol=TIGHT)
    here = clone(svc).fit(X, y, w)
    there = svc.fit(*arrays(X, y), dw)
    assert relative(there, here) <= 1e-9
    assert there.n_support_.tolist() == here.n_support_.tolist()
    np.testing.assert_array_equal(there.predict(X), here.predict(X))


@pytest.mark.full
@pytest.mark.parametrize("share", [0.4, 0.0])
def test_pairs_of_classes_with_a_kernel(client, tmp_path, monkeypatch, share):
    """With the features kept, and without room for them."""
    monkeypatch.setattr(rows_module, "FEATURE_SHARE", share)
    X, y, _ = three_classes()
    np.save(tmp_path / "X.npy", X)
    svc = SVC(rank=20, tol=1e-8, random_state=0)
    here = clone(svc).fit(open_rows(tmp_path / "X.npy"), y)
    there = svc.fit(*arrays(X, y))
    primal = [[s.certificate.primal for s in one.solutions_] for one in (there, here)]
    assert len(primal[0]) == 3
    np.testing.assert_allclose(*primal, rtol=1e-7)


@pytest.mark.parametrize(
    "solver",
    ["augmented_lagrangian", pytest.param("interior_point", marks=pytest.mark.full)],
)
def test_a_fit_goes_on_from_a_checkpoint(client, tmp_path, solver):
    given, path = arrays(*mixture(600)), tmp_path / "run.ckpt"
    w = da.from_array(np.linspace(1.0, 2.0, 600), chunks=300)

    def svc(C=1.0, callback=None):
        saved = Checkpoint(path, every=1e-9 if callback else 60.0)
        options = {"checkpoint": saved, "callback": callback, "solver": solver}
        return LinearSVC(C=C, loss="hinge", tol=1e-8, **options)

    def press(step):
        if step.iteration == 5:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        svc(callback=press).fit(*given, w)
    with pytest.raises(ValueError, match="expected a checkpoint of this problem"):
        svc(C=2.0).fit(*given, w)
    with pytest.raises(ValueError, match=r"this problem \(checksum of the labels"):
        svc().fit(given[0], given[1][::-1], w)
    found = svc().fit(*given, w)
    assert "resumed at iteration 4" in found.solution_.reason
    assert found.dual_gap_ <= 1e-8
    assert not path.exists()


@product(
    factor=[None, "balanced", 3.0],
    multi_class=["ovr", "ovo"],
    weighs=[True, False],
    n_classes=[2, 3],
)
def test_weights_of_rows_and_classes(client, factor, multi_class, weighs, n_classes):
    X, y, w = three_classes()
    y = np.minimum(y, n_classes - 1)
    given = {"multi_class": multi_class, "tol": TIGHT, "class_weight": factor}
    if isinstance(factor, float):
        given["class_weight"] = {1: factor}
    here = LinearSVC(**given).fit(X, y, w if weighs else None)
    there = LinearSVC(**given)
    there.fit(*arrays(X, y), da.from_array(w, chunks=700) if weighs else None)
    assert relative(there, here) <= 1e-9
    assert there.n_support_.tolist() == here.n_support_.tolist()


@pytest.mark.parametrize(
    ("multi_class", "ended"),
    [("ovr", "max_iter"), ("ovr", "time_limit"), ("ovo", "max_iter")],
)
def test_problems_of_several_classes_that_are_not_solved(
    client, ended, multi_class, monkeypatch
):
    X, y, _ = three_classes()
    if ended == "time_limit":  # when the rows are there
        monkeypatch.setattr(Limits, "is_late", True)
    svc = LinearSVC(loss="hinge", tol=1e-10, max_iter=1, multi_class=multi_class)
    with pytest.warns(ConvergenceWarning, match="3 of 3 binary problems are not"):
        svc.fit(*arrays(X, y))
    assert svc.status_ == ended
    assert svc.coef_.shape == (3, 5)


def test_frames_are_known_by_columns_and_categories(client, data):
    X, y = data
    frame = pd.DataFrame(X, columns=list("abcde"), index=np.arange(7, 1807))
    frame["k"] = pd.Categorical(np.where(X[:, 0] > 0, "u", "v"))
    hot = np.column_stack([X, X[:, 0] > 0, X[:, 0] <= 0]).astype(float)
    here = LinearSVC(tol=TIGHT).fit(hot, y)
    dX = dd.from_pandas(frame, npartitions=4)
    dy = dd.from_pandas(pd.Series(y, index=frame.index), npartitions=4)
    there = LinearSVC(tol=TIGHT).fit(dX, dy)
    assert there.feature_names_in_.tolist() == [*"abcde", "k=u", "k=v"]
    assert relative(there, here) <= 1e-9
    found = there.predict(dX).compute()
    assert found.index.tolist() == frame.index.tolist()
    np.testing.assert_array_equal(found, here.predict(hot))
    np.testing.assert_array_equal(there.predict(frame), found)  # in memory


@pytest.mark.parametrize(
    ("loss", "intercept"),
    [
        ("epsilon_insensitive", "free"),
        ("squared_epsilon_insensitive", "penalized"),
        *full(itertools.product(EPSILON_LOSSES, INTERCEPTS)),
    ],
)
def test_regressions(client, loss, intercept):
    X, _ = mixture(1500)
    rng = np.random.default_rng(0)
    target = 5.0 + 10.0 * X @ rng.normal(size=5) + rng.normal(size=1500)
    w = rng.integers(0, 3, 1500).astype(float)
    svr = LinearSVR(epsilon=0.3, loss=loss, intercept=intercept, tol=TIGHT)
    here = clone(svr).fit(X, target, w)
    dX, dy = arrays(X, target)
    there = svr.fit(dX, dy, da.from_array(w, chunks=500))
    assert there.status_ == "solved"
    np.testing.assert_allclose(there.coef_, here.coef_, rtol=1e-6)
    objectives = [one.solution_.certificate.primal for one in (there, here)]
    np.testing.assert_allclose(*objectives, rtol=2e-10)
    np.testing.assert_array_equal(there.n_support_, here.n_support_)
    np.testing.assert_allclose(there.predict(dX).compute(), here.predict(X), rtol=1e-4)


@pytest.mark.parametrize(
    ("rank", "approximation", "stored"),
    [
        (20, "auto", True),
        (20, "fourier", False),
        (0.05, "auto", True),
        *full([(20, "auto", False), (20, "fourier", True)]),
    ],
)
def test_kernels_of_low_rank(
    client, tmp_path, monkeypatch, rank, approximation, stored
):
    X, _ = mixture(1500, 3)
    y = np.where((X**2).sum(axis=1) > 2, 1, -1)
    w = np.random.default_rng(0).integers(0, 3, len(y)).astype(float)
    if not stored:
        monkeypatch.setattr(rows_module, "FEATURE_SHARE", 0.0)
    np.save(tmp_path / "X.npy", X[w > 0])
    svc = SVC(rank=rank, approximation=approximation, tol=1e-8, random_state=0)
    here = clone(svc).fit(open_rows(tmp_path / "X.npy"), y[w > 0], w[w > 0])
    there = svc.fit(*arrays(X, y), da.from_array(w, chunks=300))
    assert there.status_ == "solved"
    np.testing.assert_allclose(there.gamma_, here.gamma_, rtol=1e-12)
    objectives = [one.solution_.certificate.primal for one in (there, here)]
    np.testing.assert_allclose(*objectives, rtol=1e-7)
    dX = arrays(X, y)[0]
    scores = there.decision_function(dX).compute()
    np.testing.assert_allclose(scores, here.decision_function(X), atol=1e-4)


def product_into(block, part, v):
    part.score = block @ v
    return 0.0


def halve(part):
    part.score = 0.5 * part.score


def test_what_is_only_written_needs_no_request(client, data, crews):
    """It goes with the next one, in order, also where rows are there twice."""
    X = arrays(*data)[0]
    with open_collection(X, (), nothing) as rows:
        state, v = rows.state(score=0.0), np.ones(5)
        rows.sweep(product_into, state, v)
        requests = crews[-1].epoch
        state.update(halve)
        state.update(halve)
        assert crews[-1].epoch == requests
        np.testing.assert_allclose(np.asarray(state.score), 0.25 * (data[0] @ v))
        assert crews[-1].epoch == requests + 1
        twice = DoubledRows(rows).state(score=1.0)
        twice.update(halve)
        assert np.asarray(twice.score).tolist() == [0.5] * 3600


# -- odd partitions --------------------------------------------------------------------


def unknown(X, y, keep):
    """Arrays that do not know how many rows their partitions have."""
    mask = da.from_array(keep, chunks=300)
    dX, dy = arrays(X, y)
    return dX[mask], dy[mask]


def odd_partitions(X, y):
    """Partitions of all rows of X and y, of every kind."""
    odd = ((1, 1, 0, 1798),)
    order = np.argsort(y, kind="stable")
    yield "columns are cut", da.from_array(X, chunks=(300, 2)), arrays(X, y, 500)[1]
    yield "labels here", arrays(X, y)[0], y
    yield "fewer than workers", *arrays(X, y, 1800)
    yield "one row, no row", da.from_array(X, chunks=(*odd, 5)), da.from_array(y, odd)
    yield "one class each", *arrays(X[order], y[order], 200)
    yield "sizes unknown", *unknown(X, y, np.ones(len(y), bool))
    yield "sparse", arrays(X, y)[0].map_blocks(sparse.csr_matrix), arrays(X, y)[1]
    starts = range(0, 1800, 300)
    types = [np.float64, np.float32]
    exact = np.float32(X).astype(float)
    yield (
        "delayed, of two dtypes",
        [dask.delayed(exact[i : i + 300].astype(types[i % 2])) for i in starts],
        [dask.delayed(y[i : i + 300]) for i in starts],
    )


def test_odd_partitions_are_the_same_rows(client, data):
    X, y = data
    exact = np.float32(X).astype(float)
    here = LinearSVC(tol=TIGHT).fit(X, y)
    rounded = LinearSVC(tol=TIGHT).fit(exact, y)
    for name, dX, dy in odd_partitions(X, y):
        there = LinearSVC(tol=TIGHT).fit(dX, dy)
        expected = rounded if "dtypes" in name else here
        assert relative(there, expected) <= 1e-9, name


def test_partitions_of_one_lane_have_dtypes_of_their_own(client, data):
    """Bytes come first in some of the lanes: they have no room for the others."""
    X, y = data[0].copy(), data[1]
    parts, labels = [], []
    for k, start in enumerate(range(0, 1800, 20)):  # more than lanes
        rows = slice(start, start + 20)
        dtype = np.uint8 if k % 3 == 0 else np.float64
        if dtype == np.uint8:
            X[rows] = np.round(np.abs(X[rows]))
        parts.append(dask.delayed(X[rows].astype(dtype)))
        labels.append(dask.delayed(y[rows]))
    there = LinearSVC(tol=TIGHT).fit(parts, labels)
    assert relative(there, LinearSVC(tol=TIGHT).fit(X, y)) <= 1e-9


@pytest.mark.full
def test_a_thousand_tiny_partitions(client, data, here):
    X, y = data
    there = LinearSVC(tol=TIGHT).fit(*arrays(X[:1000], y[:1000], 1))
    assert relative(there, LinearSVC(tol=TIGHT).fit(X[:1000], y[:1000])) <= 1e-9


def test_empty_partitions_of_unknown_sizes(client, data):
    X, y = data
    keep = np.arange(len(y)) >= 700
    here = LinearSVC(tol=TIGHT).fit(X[keep], y[keep])
    assert relative(LinearSVC(tol=TIGHT).fit(*unknown(X, y, keep)), here) <= 1e-9


def test_what_is_wrong_is_said_with_its_partition(client, data):
    X, y = data
    dX, dy = arrays(X, y)
    bad = X.copy()
    bad[712, 3] = np.nan
    parts = [dask.delayed(X[:100]), dask.delayed(X[100:200, :4])]
    labels = [dask.delayed(y[:100]), dask.delayed(y[100:200])]
    for given, message in [
        ((arrays(bad, y)[0], dy), "NaN in partition 2, at its row 112, column 3"),
        ((parts, labels), "Got 5 in partition 0 and 4 in partition 1 instead"),
        ((dX, labels), "y must have 6 partitions, as X has. Got 2 instead"),
        ((dX, y[1:]), "y must have length 1800"),
        ((dX, da.ones(1800, chunks=300)), "at least two classes"),
        ((dX, da.from_array(X[:, 0], chunks=300)), "partition 0: Unknown label"),
    ]:
        with pytest.raises(ValueError, match=message):
            LinearSVC().fit(*given)


def test_what_a_cluster_does_not_do_is_refused(client, data):
    given = arrays(*data)
    for options, message in [
        ({"C": np.inf}, "must be finite where X is on a cluster"),
    ]:
        with pytest.raises(ValueError, match=message):
            LinearSVC(**options).fit(*given)
    for estimator in (SVC(), SVC(rank="auto"), SVR(), OneClassSVM()):
        with pytest.raises(
            TypeError, match="on a cluster LinearSVC, LinearSVR and SVC with"
        ):
            estimator.fit(*given)
    for option, value in (("certify", "exact"), ("polish", True)):
        with pytest.raises(ValueError, match=f"'{option}' parameter of SVC must be"):
            SVC(rank=5, **{option: value}).fit(*given)
    clf = LinearSVC().fit(*given)
    with pytest.raises(AttributeError, match="fits on a cluster leave training rows"):
        clf.support_vectors_


# -- traffic, threads, what stays behind -----------------------------------------------


@pytest.mark.parametrize(
    ("loss", "solver"),
    [
        ("squared_hinge", "active_set"),
        ("hinge", "augmented_lagrangian"),
        ("hinge", "coordinate_descent"),
        pytest.param("hinge", "interior_point", marks=pytest.mark.full),
    ],
)
def test_nothing_of_length_m_comes_to_the_client(client, crews, loss, solver):
    n, most = 16, []
    C = 1e-4 if solver == "coordinate_descent" else 1.0
    for m in (12_000, 48_000):
        X, y = mixture(m, n, noise=1.5)
        LinearSVC(C=C, loss=loss, solver=solver).fit(*arrays(X, y, m // 8))
        most.append(max(sum(both) for both in crews[-1].bytes))
    assert max(most) <= 8 * ((n + 1) ** 2 + 8 * (n + 1)) + 4096
    # One number a row more would be 288,000 bytes.
    assert abs(most[1] - most[0]) <= 2000


def test_fits_at_once_end(client, data):
    """From threads, and from two clients."""
    given, found = arrays(*data), []

    def fit(client):
        with client.as_current():
            found.append(LinearSVC(tol=TIGHT).fit(*given).coef_)

    with Client(client.scheduler.address, set_as_default=False) as other:
        who = [client, client, other, other]
        threads = [threading.Thread(target=fit, args=(one,)) for one in who]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(HANGS)
    assert len(found) == 4
    assert all(np.array_equal(coef, found[0]) for coef in found)


def test_no_actor_stays_behind(client, data):
    LinearSVC().fit(*arrays(*data))
    with pytest.raises(ValueError, match="two classes"):
        LinearSVC().fit(arrays(*data)[0], da.ones(1800, chunks=300))

    def stop(step):
        raise RuntimeError("enough")

    with pytest.raises(RuntimeError, match="enough"):
        LinearSVC(callback=stop).fit(*arrays(*data))
    end = time.monotonic() + HANGS
    while any(client.run(lambda dask_worker: len(dask_worker.state.actors)).values()):
        assert time.monotonic() < end
        time.sleep(0.05)
