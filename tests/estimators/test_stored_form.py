"""Whether data come dense or sparse does not matter to a fit."""

import tracemalloc

import numpy as np
import pytest
from scipy import sparse

from widemargin import (
    SVC,
    SVR,
    LinearSVC,
    LinearSVCCV,
    LinearSVR,
    NuSVC,
    NuSVR,
    OneClassSVM,
    Problem,
    as_rows,
    solve,
)
from widemargin.data.storage import FULL, FULL_MANY, MANY, NARROW, well_stored

BOTH = np.asarray, sparse.csr_array
SHAPES = [
    (1500, 300, 0.05),
    (1500, 300, 0.8),
    (400, 120, 0.1),  # of Newton's method on the columns
    (6000, 60, 0.1),
    (500, 900, 0.02),
    (7000, 200, 0.2),
]


def data(m, n, share, dtype=np.float64):
    rng = np.random.default_rng(0)
    X = np.where(rng.random((m, n)) < share, 1.0 + rng.random((m, n)), 0.0)
    X = (8.0 * X).astype(dtype)
    return X, X @ rng.normal(size=n) + 0.1 * rng.normal(size=m)


def stored(rows):
    return "dense" if isinstance(rows.in_memory(), np.ndarray) else "CSR"


@pytest.mark.parametrize(
    ("n", "share", "form"),
    [
        (MANY, FULL + 0.05, "dense"),
        (MANY, FULL - 0.05, "CSR"),
        (MANY + 1, FULL_MANY + 0.05, "dense"),
        (MANY + 1, FULL_MANY - 0.05, "CSR"),
    ],
)
def test_rows_are_stored_by_their_zeros(n, share, form):
    X, _ = data(900, n, share)
    for make in BOTH:
        rows = well_stored(as_rows(make(X), n_jobs=1, memory_limit=1 << 30))
        assert stored(rows) == form
        assert rows.options == {"n_jobs": 1, "memory_limit": 1 << 30}
        np.testing.assert_array_equal(sparse.csr_array(rows.in_memory()).toarray(), X)
        assert well_stored(rows) is rows


def test_what_stays_as_it_is(tmp_path):
    X, _ = data(900, NARROW, 0.1)
    for rows in (as_rows(X), as_rows(sparse.csr_array(X))):
        assert well_stored(rows) is rows
    X, _ = data(900, 300, 0.1)
    small = as_rows(X, memory_limit=100_000)  # no room for a copy
    assert well_stored(small) is small
    np.save(tmp_path / "X.npy", X)
    file = as_rows(np.load(tmp_path / "X.npy", mmap_mode="r"))
    assert well_stored(file) is file
    S = sparse.csr_array(data(900, 300, 0.8)[0])
    np.save(tmp_path / "data.npy", S.data)
    S.data = np.load(tmp_path / "data.npy", mmap_mode="r")
    file = as_rows(S)
    assert well_stored(file) is file
    some = as_rows(X).select(np.arange(900) > 3)
    assert well_stored(some) is some


@pytest.mark.parametrize("dtype", [np.float64, np.int64])
def test_a_copy_has_room(dtype):
    X, _ = data(2000, 1000, 0.02, dtype)
    for rows in (X, np.asfortranarray(X)):
        tracemalloc.start()
        stored_rows = well_stored(as_rows(rows, memory_limit=2_000_000))
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak <= 2_000_000
        is_copied = dtype is np.float64 and rows.flags.c_contiguous
        assert stored(stored_rows) == ("CSR" if is_copied else "dense")


@pytest.mark.parametrize("period", [2, 78, 256])
def test_rows_that_repeat_do_not_deceive(period):
    X = np.zeros((20_000, 40))
    X[::period] = 1.0
    assert abs(as_rows(X).share - 1.0 / period) < 0.05


def test_sparse_rows_of_a_view_have_sparse_coefficients():
    X, t = data(300, 80, 0.05)
    rows = as_rows(sparse.csr_array(X)).select(np.arange(300) > 3)
    assert sparse.issparse(SVC().fit(rows, t[4:] > 0.0).dual_coef_)


@pytest.mark.parametrize("dtype", [np.float32, np.int16, np.uint8, np.int64, bool])
def test_entries_of_all_types(dtype):
    X, _ = data(900, 300, 0.1, dtype)
    rows = well_stored(as_rows(X))
    assert stored(rows) == "CSR"
    np.testing.assert_array_equal(rows.in_memory().toarray(), X.astype(np.float64))


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
@pytest.mark.parametrize("shape", SHAPES)
def test_classifiers_of_dense_and_sparse_data_are_the_same(shape, loss):
    X, t = data(*shape)
    y = np.digitize(t, np.quantile(t, [0.3, 0.7]))
    for labels in (y, y > 0):
        one, other = (LinearSVC(loss=loss).fit(make(X), labels) for make in BOTH)
        assert one.solutions_[0].solver == other.solutions_[0].solver
        np.testing.assert_array_equal(one.coef_, other.coef_)
        assert max(one.dual_gap_, other.dual_gap_) <= 1e-4


@pytest.mark.parametrize("loss", ["epsilon_insensitive", "squared_epsilon_insensitive"])
@pytest.mark.parametrize("shape", SHAPES)
def test_regressions_of_dense_and_sparse_data_are_the_same(shape, loss):
    X, t = data(*shape)
    t = t / t.std()
    one, other = (LinearSVR(loss=loss, epsilon=0.1).fit(make(X), t) for make in BOTH)
    assert one.solution_.solver == other.solution_.solver
    np.testing.assert_array_equal(one.coef_, other.coef_)


def test_problems_are_stored_well_but_rows_as_they_are():
    X, t = data(900, 300, 0.1)
    y = np.where(t > 0.0, 1, -1)
    assert stored(Problem(X, y).rows) == "CSR"
    assert stored(Problem(as_rows(X), y).rows) == "dense"
    found = [solve(Problem(given, y), tol=1e-6) for given in (X, as_rows(X))]
    assert found[0].certificate.relative_gap <= 1e-6
    np.testing.assert_allclose(found[0].w, found[1].w, atol=1e-3)


def test_what_is_told_of_a_column_names_it():
    pd = pytest.importorskip("pandas")
    X, t = data(900, 300, 0.1)
    X[7, 3] = np.nan
    frame = pd.DataFrame(X, columns=[f"word {j}" for j in range(300)])
    with pytest.raises(ValueError, match="word 3"):
        LinearSVC().fit(frame, t > 0.0)


@pytest.mark.parametrize("share", [0.05, 0.8])
@pytest.mark.parametrize("kind", [SVC, NuSVC, SVR, NuSVR, OneClassSVM])
def test_machines_with_a_kernel_return_vectors_as_they_were_given(kind, share):
    X, t = data(300, 80, share)
    target = t > np.median(t) if kind in (SVC, NuSVC) else t / t.std()
    found = []
    for make in BOTH:
        machine = kind(gamma=0.01, tol=1e-3).fit(make(X), target)
        vectors = machine.support_vectors_
        assert sparse.issparse(vectors) == (make is sparse.csr_array)
        kept = vectors.toarray() if sparse.issparse(vectors) else vectors
        np.testing.assert_array_equal(kept, X[machine.support_])
        found.append(machine.predict(X))
        np.testing.assert_array_equal(machine.predict(make(X)), found[-1])
    np.testing.assert_array_equal(*found)


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
@pytest.mark.parametrize("shape", [(700, 300, 0.05), (300, 400, 0.02), (300, 60, 0.1)])
def test_searches_of_dense_and_sparse_data_are_the_same(shape, loss):
    X, t = data(*shape)
    options = {"Cs": 3, "cv": 3, "loss": loss}
    one, other = (LinearSVCCV(**options).fit(make(X), t > 0.0) for make in BOTH)
    assert one.C_ == other.C_
    np.testing.assert_array_equal(one.scores_, other.scores_)
    np.testing.assert_allclose(one.path_, other.path_, atol=1e-4)
    assert max(one.path_.max(), other.path_.max()) <= 1e-4
