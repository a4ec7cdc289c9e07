"""Fits from several threads at once: each has the bits that it has alone.

On a Python without the GIL they run at the same time (RELEASING.md).
"""

import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import threadpoolctl
from scipy import sparse
from sklearn.datasets import make_blobs, make_classification

from widemargin import (
    SVC,
    SVCCV,
    SVR,
    BudgetSVC,
    EnclosingBall,
    LinearSVC,
    LinearSVCCV,
    LinearSVR,
    NuSVC,
    OneClassSVM,
    Problem,
    linear_svc_path,
    load_model,
    load_svmlight,
    save_model,
    save_svmlight,
    solve,
)

N_THREADS = 4
X, Y = make_classification(900, 12, n_informative=6, n_classes=3, random_state=0)
FITS = {
    "batch": lambda: SVC().fit(X[:300], Y[:300]),
    "irwls": lambda: SVC(solver="irwls", C=10.0).fit(X, Y),
    "frank_wolfe": lambda: SVC(
        solver="frank_wolfe", loss="squared_hinge", intercept="penalized", tol=1e-2
    ).fit(X[:300], Y[:300]),
    "low_rank": lambda: SVC(rank=40, random_state=0).fit(X, Y),
    "fourier": lambda: SVC(rank=40, approximation="fourier", random_state=0).fit(X, Y),
    "linear": lambda: LinearSVC().fit(X, Y),
    "descent": lambda: LinearSVC(
        solver="coordinate_descent", C=0.01, random_state=0
    ).fit(X, Y),
    "interior": lambda: LinearSVC(loss="hinge", solver="interior_point").fit(X, Y),
    "band": lambda: LinearSVC(loss="hinge", solver="augmented_lagrangian").fit(X, Y),
    "budget": lambda: BudgetSVC(budget=20).fit(X, Y),
    "search": lambda: SVCCV(Cs=[0.1, 1.0], gammas=[0.05], cv=3).fit(X[:300], Y[:300]),
    "linear_search": lambda: LinearSVCCV(Cs=[0.01, 0.1], cv=3).fit(X, Y),
    "regression": lambda: SVR().fit(X, X[:, 0]),
    "linear_regression": lambda: LinearSVR().fit(X, X[:, 0]),
    "nu": lambda: NuSVC(nu=0.3).fit(X, Y),
    "one_class": lambda: OneClassSVM(nu=0.2).fit(X),
    "ball": lambda: EnclosingBall(C=0.1).fit(X),
}


def bits(fitted):
    """What a fit has found, in bytes."""
    found = fitted.model_.decision_function(X) if hasattr(fitted, "model_") else None
    found = fitted.decision_function(X) if found is None else found
    return np.asarray(found).tobytes()


@pytest.fixture
def quick_turns():
    """Threads take turns often, where they have to."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    yield
    sys.setswitchinterval(before)


def at_once(calls):
    """Results of calls that begin together, a thread each."""
    gate = threading.Barrier(len(calls))

    def call(one):
        gate.wait()
        return one()

    with ThreadPoolExecutor(len(calls)) as pool:
        return list(pool.map(call, calls))


@pytest.mark.parametrize("name", FITS)
def test_the_same_fit_at_once(name, quick_turns):
    alone = bits(FITS[name]())
    for found in at_once([FITS[name]] * N_THREADS):
        assert bits(found) == alone


def test_different_fits_at_once(quick_turns):
    names = list(FITS)
    alone = {name: bits(FITS[name]()) for name in names}
    for start in range(0, len(names), N_THREADS):
        some = names[start : start + N_THREADS]
        for name, found in zip(some, at_once([FITS[n] for n in some]), strict=True):
            assert bits(found) == alone[name], name


def test_predictions_of_one_model_at_once(quick_turns):
    model = SVC().fit(X, Y).model_
    alone = model.decision_function(X).tobytes()
    fresh = SVC().fit(X, Y).model_  # whose caches no one has filled
    for found in at_once([lambda: fresh.decision_function(X)] * N_THREADS):
        assert found.tobytes() == alone


def test_files_at_once(tmp_path, quick_turns):
    clf = SVC().fit(X, Y)

    def write_and_read(k):
        save_svmlight(X, Y, tmp_path / f"{k}.svm")
        save_model(clf, tmp_path / f"{k}.wm")
        rows, y = load_svmlight(tmp_path / f"{k}.svm")
        found = load_model(tmp_path / f"{k}.wm").predict(X)
        return np.array_equal(rows.toarray(), X) and np.array_equal(y, Y), found

    calls = [lambda k=k: write_and_read(k) for k in range(N_THREADS)]
    for same, found in at_once(calls):
        assert same
        np.testing.assert_array_equal(found, clf.predict(X))


@pytest.mark.parametrize(
    "call",
    ["LinearSVC", "LinearSVR", "linear_svc_path", "primal", "dual", "certify", "start"],
)
def test_vectors_of_many_columns_keep_one_core_busy(call):
    """BLAS's threads are not woken: they would wait for more work in a loop."""
    rng = np.random.default_rng(0)
    rows = sparse.random(3000, 20_000, density=0.002, format="csr", random_state=rng)
    t = np.asarray(rows.sum(axis=1)).ravel() - 20.0
    y, w = np.where(t > 0.0, 1, -1), rng.normal(size=20_000)
    alpha, problem = np.full(3000, 0.5), Problem(rows, y, C=1.0)
    start = solve(problem)
    calls = {
        "LinearSVC": lambda: LinearSVC(intercept="penalized").fit(rows, y),
        "LinearSVR": lambda: LinearSVR(intercept="penalized").fit(rows, t),
        "linear_svc_path": lambda: linear_svc_path(rows, y, Cs=[0.5, 1.0]),
        "primal": lambda: problem.primal(w),
        "dual": lambda: problem.dual(alpha),
        "certify": lambda: problem.certify(alpha, w),
        "start": lambda: solve(problem, start=start),
    }

    def others():
        """Processor seconds of other threads, in the call and shortly after it."""
        time.sleep(0.2)  # until they rest
        whole, own = time.process_time(), time.thread_time()
        calls[call]()
        time.sleep(0.05)
        return time.process_time() - whole - (time.thread_time() - own)

    with threadpoolctl.threadpool_limits(2, user_api="blas"):
        others()
        assert any(others() < 0.01 for _ in range(3))  # a loop takes all of the rest


@pytest.mark.skipif(
    getattr(sys, "_is_gil_enabled", lambda: True)(), reason="this Python has the GIL"
)
def test_nothing_switches_the_gil_on():
    assert not sys._is_gil_enabled()


def ends(call):
    """Whether a call ends soon: what waits for a lock does so for good."""
    thread = threading.Thread(target=call, daemon=True)
    thread.start()
    thread.join(60.0)
    return not thread.is_alive()


def four_classes():
    return make_blobs(300, 10, centers=4, cluster_std=6.0, random_state=0)


def test_paths_of_classes_whose_sweeps_are_shared_do_not_wait_for_each_other():
    """Dual variables of a start are made by a sweep, in a thread of each class."""
    X, y = four_classes()
    options = {"solver": "coordinate_descent", "time_limit": 50.0}
    found = []
    assert ends(lambda: found.extend(linear_svc_path(X, y, Cs=[1e-3, 2e-3], **options)))
    assert found[2].max() <= 1e-4


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_classes_of_centered_columns_do_not_wait_for_each_other(loss):
    """Lengths of these columns are made by a sweep, in a thread of each class."""
    X, y = four_classes()
    X[:, 0] = 7.0
    solver = "augmented_lagrangian" if loss == "hinge" else "active_set"
    clf = LinearSVC(loss=loss, intercept="free", C=5e-3, time_limit=50.0, solver=solver)
    assert ends(lambda: clf.fit(X, y))
    assert clf.status_ == "solved"
