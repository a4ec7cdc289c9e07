"""Kernel values that are given: the same engine, from a matrix or a callable."""

import dataclasses
import time

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import load_iris
from sklearn.svm import SVC as Peer

from tests.cases.kernels import NAMED
from tests.cases.many import (
    classes,
    many,
    nu_classes,
    nu_regression,
    one_class,
    regression,
)
from tests.conftest import SETTINGS
from widemargin import (
    SVC,
    SVCCV,
    SVR,
    SVRCV,
    Kernel,
    NuSVC,
    NuSVR,
    OneClassSVM,
    _core,
)
from widemargin.kernels.given import GivenSamples, given_values
from widemargin.solvers.driver.limits import Limits
from widemargin.solvers.kernel import batch
from widemargin.solvers.kernel.batch import solve_many

RBF = Kernel("rbf", gamma=0.4)
MEMORY = 1 << 26
X, GROUP, C = classes(m=210)
TARGET = np.sin(X[:, 0]) + 0.1 * X[:, 1]
GIVEN = "precomputed"


def gaussian(A, B):
    return RBF(A, B)


def given(problems, kernel, data=X):
    """The same problems by the values of all pairs of rows."""
    own = np.empty(data.shape[0], np.int64)
    samples = problems.samples
    own[samples.order] = np.repeat(np.arange(len(samples.count)), samples.count)
    return dataclasses.replace(problems, samples=GivenSamples(kernel(data, data), own))


def solved(problems, *, threads=1, **limits):
    return solve_many(problems, Limits(**limits), MEMORY, threads)


def agree(problems, kernel, tol, data=X):
    """Whether both ways end, each with bounds that hold for the other."""
    pairs = zip(
        solved(problems, tol=tol),
        solved(given(problems, kernel, data), tol=tol),
        strict=True,
    )
    for one, other in pairs:
        assert one.status == other.status == "solved"
        size = 2.0 * tol * max(abs(one.certificate.primal), 1.0)
        assert other.certificate.primal <= one.certificate.dual + size
        assert one.certificate.primal <= other.certificate.dual + size


@pytest.mark.parametrize("setting", SETTINGS)
@pytest.mark.parametrize("name", ["rbf", "poly"])
def test_answers_are_those_of_the_named_kernel(name, setting):
    kernel = dataclasses.replace(NAMED[name], gamma=0.3)
    one_against_all = [(0, 1, 2), (2, 1), (1, 0, 2)]
    agree(many(X, GROUP, kernel, C, *setting, one_against_all), kernel, 1e-4)


# Made where they are needed: pytest keeps its cases to the end of the process, where
# what the core has made of problems would count as leaked.
@pytest.mark.parametrize(
    "make",
    [
        lambda: regression(X, TARGET, RBF, C=5.0),
        lambda: one_class(X, RBF),
        lambda: nu_classes(X, np.where(GROUP > 0, 1.0, -1.0), RBF),
        lambda: nu_regression(X, TARGET, RBF),
    ],
    ids=["regression", "one class", "nu", "nu regression"],
)
def test_other_machines_too(make):
    agree(make(), RBF, 1e-4)


def test_few_rows_are_solved_to_the_last_digits():
    few = slice(0, 60)
    problems = many(X[few], GROUP[few], RBF, groups=[(0, 1, 2)])
    (one,), (other,) = solved(problems), solved(given(problems, RBF, X[few]))
    np.testing.assert_allclose(other.alpha, one.alpha, atol=1e-9)
    assert other.b == pytest.approx(one.b, abs=1e-9)


def test_threads_change_no_bit(monkeypatch):
    monkeypatch.setattr(batch, "SHARED_WORK", 0)
    problems = given(many(X, GROUP, RBF, C), RBF)
    first, *others = [solved(problems, threads=t, tol=1e-5) for t in (1, 2, 5)]
    for found in others:
        for one, other in zip(first, found, strict=True):
            assert one.w.tolist() == other.w.tolist()
            assert (one.b, one.certificate) == (other.b, other.certificate)


@pytest.mark.parametrize("m", [1, 63, 64, 65, 130])
def test_what_is_known_of_the_values(m):
    rng = np.random.default_rng(m)
    K = rng.normal(size=(m, m))
    K = K @ K.T + 1e-9 * np.eye(m)
    K = 0.5 * (K + K.T)
    K[-1, 0] *= 1.0 + 1e-7  # below the lowest tile of a row
    s = np.sqrt(K.diagonal())
    largest, share, apart, i, j = _core.given_facts(K, s)
    assert largest == np.abs(K).max()
    assert share == pytest.approx((np.abs(K) / np.outer(s, s)).max(), rel=1e-15)
    assert apart == np.abs(K - K.T).max()
    assert {i, j} == ({m - 1, 0} if m > 1 else {0})


def test_rows_of_zeros_have_no_length():
    K = np.zeros((3, 3))
    assert _core.given_facts(K, np.zeros(3))[:3] == (0.0, 0.0, 0.0)
    K[0, 2] = K[2, 0] = 1e-300
    assert _core.given_facts(K, np.zeros(3))[1] == np.inf


def test_values_that_are_not_symmetric_are_refused():
    K = RBF(X, X)
    K[200, 3] += 1e-3
    with pytest.raises(ValueError, match="symmetric"):
        SVC(kernel=GIVEN).fit(K, GROUP)


def test_values_that_no_kernel_has_go_elsewhere():
    K = RBF(X, X)
    K[5, 7] = K[7, 5] = 1.5  # more than the root of k(x, x) k(z, z)
    with pytest.warns(RuntimeWarning, match="positive semidefinite"):
        clf = SVC(kernel=GIVEN).fit(K, GROUP)
    assert {one.solver for one in clf.solutions_} == {"irwls"}


def test_values_with_a_negative_diagonal_fit_nothing():
    samples = GivenSamples(-RBF(X, X), np.zeros(len(X), np.int64))  # no warning
    assert not samples.is_fit


@pytest.mark.parametrize("kind", [np.float32, np.asfortranarray, sparse.csr_array])
def test_storage_does_not_matter(kind):
    K = np.float64(np.float32(RBF(X, X)))
    plain, other = (SVC(kernel=GIVEN).fit(one, GROUP) for one in (K, kind(K)))
    assert {one.solver for one in other.solutions_} == {"batch"}
    np.testing.assert_array_equal(
        plain.decision_function(K), other.decision_function(K)
    )


MACHINES = [
    (SVC(), GROUP),
    (SVC(multi_class="ovr", loss="squared_hinge"), GROUP),
    (NuSVC(nu=0.2), GROUP),
    (SVR(), TARGET),
    (NuSVR(), TARGET),
    (OneClassSVM(nu=0.2), None),
    (SVCCV(Cs=[0.1, 1.0]), GROUP),
    (SVRCV(Cs=[0.1, 1.0], epsilons=[0.1]), TARGET),
]


@pytest.mark.parametrize(
    ("machine", "target"), MACHINES, ids=[type(one).__name__ for one, _ in MACHINES]
)
def test_machines_take_matrices_and_callables(machine, target):
    few = slice(0, 100)
    target = target if target is None else target[few]
    machine.set_params(tol=1e-5)
    data = {"rbf": X[few], gaussian: X[few], GIVEN: RBF(X[few], X[few])}
    found = []
    for kernel, rows in data.items():
        machine.set_params(kernel=kernel, gamma=0.4).fit(rows, target)
        assert machine.solution_.solver == "batch"
        assert machine.dual_gap_ <= 1e-5
        is_one = isinstance(machine, OneClassSVM)  # half of its rows are at zero
        found.append((machine.decision_function if is_one else machine.predict)(rows))
        if hasattr(machine, "scores_"):
            assert machine.path_.max() <= 1e-5
    np.testing.assert_allclose(found[1], found[0], atol=1e-3)
    np.testing.assert_allclose(found[2], found[0], atol=1e-3)


def test_a_callable_makes_each_value_once():
    made = []

    def kernel(A, B):
        made.append(A.shape[0] * B.shape[0])
        return RBF(A, B)

    SVC(kernel=kernel).fit(X, GROUP)
    assert sum(made) == X.shape[0] ** 2
    made.clear()
    SVCCV(kernel=kernel, Cs=[0.1, 1.0, 10.0], refit=False).fit(X, GROUP)
    assert sum(made) == X.shape[0] ** 2


def test_values_without_room_are_made_when_they_are_needed():
    n_bytes = 8 * X.shape[0] ** 2
    clf = SVC(kernel=gaussian, memory_limit=n_bytes, tol=1e-3).fit(X, GROUP)
    assert {one.solver for one in clf.solutions_} == {"irwls"}
    clf = SVC(kernel=gaussian, memory_limit=4 * n_bytes, tol=1e-3).fit(X, GROUP)
    assert {one.solver for one in clf.solutions_} == {"batch"}


def test_a_slow_callable_ends_in_time(monkeypatch):
    monkeypatch.setattr("widemargin.kernels.given.CALLED_ROWS", 16)
    calls = []

    def slow(A, B):
        calls.append(len(A))
        time.sleep(0.02)
        return RBF(A, B)

    with pytest.warns(UserWarning, match=r"time_limit=0\.05"):
        SVC(kernel=slow, time_limit=0.05).fit(X, GROUP)
    assert len(calls) < 14  # which all values take


def test_ctrl_c_in_a_callable_keeps_a_model(monkeypatch):
    monkeypatch.setattr("widemargin.kernels.given.CALLED_ROWS", 50)
    calls = []

    def pressed(A, B):
        calls.append(A.shape)
        if len(calls) == 2:
            raise KeyboardInterrupt
        return RBF(A, B)

    clf = SVC(kernel=pressed)
    with pytest.raises(KeyboardInterrupt):
        clf.fit(X, GROUP)
    assert clf.status_ == "interrupted"
    assert clf.predict(X[:3]).shape == (3,)


def test_a_kernel_of_another_shape_is_refused():
    with pytest.raises(ValueError, match=r"must return real numbers of shape"):
        SVC(kernel=lambda A, B: np.ones((1, 1))).fit(X, GROUP)


def test_blocks_are_those_of_the_callable(monkeypatch):
    monkeypatch.setattr("widemargin.kernels.given.CALLED_ROWS", 50)
    K = given_values(X, Kernel(gaussian))
    np.testing.assert_array_equal(K, RBF(X, X))


def test_predictions_are_those_of_scikit_learn():
    rows, y = load_iris(return_X_y=True)
    K = rows @ rows.T
    clf, peer = SVC(kernel=GIVEN).fit(K, y), Peer(kernel=GIVEN, tol=1e-8).fit(K, y)
    assert clf.support_.tolist() == peer.support_.tolist()
    np.testing.assert_allclose(clf.dual_coef_, peer.dual_coef_, atol=1e-3)
    np.testing.assert_allclose(clf.intercept_, peer.intercept_, atol=1e-4)
    same = SVC(kernel="linear").fit(rows, y)
    np.testing.assert_allclose(clf.dual_coef_, same.dual_coef_, atol=1e-6)
