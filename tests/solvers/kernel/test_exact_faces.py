"""Newton's steps over the free variables of problems of few rows, between pair steps."""

import warnings

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import make_friedman1, make_moons

from widemargin import SVC, SVR, NuSVC, OneClassSVM
from widemargin.estimators import batch as choice
from widemargin.solvers.kernel import batch


def classes(count, rows, columns, seed=0, spread=1.5):
    """Overlapping normal classes of so many rows each."""
    rng = np.random.default_rng(seed)
    y = np.repeat(np.arange(count), rows)
    return spread * rng.normal(size=(count, columns))[y] + rng.normal(
        size=(len(y), columns)
    ), y


def steps_of(clf):
    return np.array([one.extras["steps"] for one in clf.solutions_])


@pytest.mark.parametrize("C", [1.0, 100.0, 1e4])
def test_pairs_of_few_rows_take_few_steps(C):
    X, y = classes(10, 10, 20)
    clf = SVC(C=C).fit(X, y)
    steps = steps_of(clf)  # pair steps alone: 134 a pair
    assert np.all(steps > 0)
    assert steps.mean() < 2.0 * 20
    assert max(one.certificate.relative_gap for one in clf.solutions_) < 1e-11 * max(
        C, 10.0
    )


@pytest.mark.parametrize(
    "options",
    [
        {"loss": "squared_hinge"},
        {"intercept": "penalized"},
        {"intercept": "none"},
    ],
)
@pytest.mark.parametrize("C", [0.3, 3.0, 1000.0])
def test_digits_of_all_forms(C, options):
    X, y = classes(2, 30, 4, spread=0.5)
    clf = SVC(C=C, **options).fit(X, y)
    assert clf.solution_.solver == "batch"
    assert 0 < clf.solution_.extras["steps"] < 60 * 15
    assert clf.dual_gap_ < 1e-11 * max(C, 10.0)


def test_bounds_are_met_exactly():
    X, y = classes(6, 15, 3, spread=0.3)
    clf = SVC(C=2.0).fit(X, y)
    for one in clf.solutions_:
        assert np.all((one.alpha >= 0.0) & (one.alpha <= 2.0))
        assert np.count_nonzero(one.alpha == 2.0) >= 2  # no others only come near it
        assert not np.any((one.alpha > 0.0) & (one.alpha < 1e-12))
        assert not np.any((one.alpha < 2.0) & (one.alpha > 2.0 - 1e-12))


def test_classes_of_few_rows_with_two_given_sums():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(400, 5)), np.repeat(np.arange(40), 10)
    X[:, 0] += y
    clf = NuSVC(nu=0.2).fit(X, y)  # pair steps alone: 300 a pair, and 3 are not solved
    assert {one.solver for one in clf.solutions_} == {"batch"}
    assert steps_of(clf).max() <= 8 * 1.5 * 20
    assert max(one.certificate.relative_gap for one in clf.solutions_) < 1e-5


@pytest.mark.parametrize("loss", ["epsilon_insensitive", "squared_epsilon_insensitive"])
def test_targets_whose_objective_has_kinks(loss):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(60, 2))
    t = np.sin(X[:, 0]) + 0.3 * rng.normal(size=60)
    reg = SVR(C=300.0, loss=loss).fit(X, t)  # pair steps alone: ten thousands
    assert (reg.status_, reg.solution_.solver) == ("solved", "batch")
    assert 0 < reg.solution_.extras["steps"] <= 8 * 1.5 * 60
    assert reg.dual_gap_ < 1e-7


def test_one_class_of_few_rows():
    X, _ = classes(1, 50, 3)
    found = OneClassSVM(nu=0.3).fit(X).solution_
    assert found.solver == "batch"
    assert found.certificate.relative_gap < 1e-10


def test_more_free_variables_than_the_kernel_has_monomials():
    X, y = classes(2, 30, 4, spread=0.5)
    clf = SVC(C=1000.0, kernel="poly").fit(X, y)
    assert (clf.status_, clf.solution_.solver) == ("solved", "batch")


def test_more_free_variables_than_columns():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(400, 5)), np.repeat(np.arange(40), 10)
    X[:, 0] += y
    clf = SVC(kernel="linear").fit(X, y)
    assert all("steps" in one.extras for one in clf.solutions_)  # none is left over
    assert clf.status_ == "solved"


def test_equal_rows_whose_matrix_is_singular():
    X, y = classes(5, 8, 3, spread=0.5)
    X, y = np.vstack([X, X, X]), np.tile(y, 3)
    clf = SVC(C=5.0, gamma=0.5).fit(X, y)
    assert clf.status_ == "solved"
    assert max(one.certificate.relative_gap for one in clf.solutions_) < 1e-8


def test_targets_that_are_large_numbers():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(60, 2))
    t = np.sin(X[:, 0]) + 0.3 * rng.normal(size=60)
    steps = []
    for size in (1.0, 1e6):
        reg = SVR(C=10.0 * size, epsilon=0.1 * size).fit(X, size * t)
        assert reg.status_ == "solved"
        steps.append(reg.solution_.extras["steps"])
    assert steps[1] <= 2 * steps[0]


# -- more rows, which float32 does not solve soon --------------------------------------


def noise(rows, columns, classes=2, seed=0):
    """Rows that say nothing of their classes."""
    rng = np.random.default_rng(seed)
    return rng.normal(size=(rows, columns)), rng.integers(0, classes, rows)


@pytest.mark.parametrize("jobs", [1, 2])
@pytest.mark.parametrize(
    "machine",
    [
        SVC(
            kernel="linear", C=3e4
        ),  # bases of five variables: columns and an intercept
        SVC(kernel="poly", C=1e3),
        SVC(kernel="linear", C=3e4, intercept="penalized"),
        SVC(C=1e4, loss="squared_hinge"),
        SVC(gamma=0.01, C=1e4),
        NuSVC(nu=0.2),
    ],
)
def test_classes_that_overlap_are_solved_in_float64(machine, jobs, monkeypatch):
    X, y = noise(340, 4, classes=3)
    # Newton's method on the columns would take what is linear in these.
    monkeypatch.setattr(choice, "steps_of_pairs", lambda training: None)
    clf = clone(machine).set_params(n_jobs=jobs, tol=1e-6).fit(X, y)
    assert clf.status_ == "solved"
    assert {one.solver for one in clf.solutions_} == {"batch"}
    assert steps_of(clf).max() <= (10 + 100) * 240


@pytest.mark.parametrize("kernel", ["poly", "rbf"])
def test_regressions_with_a_large_C_are_solved_in_float64(kernel):
    X, t = make_friedman1(260, 5, noise=1.0, random_state=0)
    reg = SVR(kernel=kernel, gamma=0.1, C=1e4, tol=1e-6).fit(X, t)
    assert (reg.status_, reg.solution_.solver) == ("solved", "batch")
    assert 10 * 260 < reg.solution_.extras["steps"] <= 40 * 260


@pytest.mark.parametrize("nu", [0.02, 0.3])
@pytest.mark.parametrize("gamma", [1.0, 3.0, 30.0])
@pytest.mark.parametrize("rows", [40, 400])
def test_sums_that_are_given_stay(rows, gamma, nu):
    X, y = noise(rows, 3)
    found = NuSVC(nu=nu, gamma=gamma).fit(X, y).solution_
    assert found.solver == "batch"
    alpha = found.alpha
    sums = [alpha[y == k].sum() for k in (0, 1)]
    np.testing.assert_allclose(sums, 0.5 * nu * rows, rtol=1e-12)


def test_they_have_the_same_bits_for_any_number_of_threads():
    X, y = noise(500, 6, classes=5)
    one, two = (NuSVC(nu=0.1, n_jobs=jobs).fit(X, y) for jobs in (1, 2))
    assert one.dual_coef_.tobytes() == two.dual_coef_.tobytes()


def test_no_room_for_float64():
    X, y = noise(400, 4)
    clf = SVC(kernel="poly", C=100.0, memory_limit=400 * 400 * 4).fit(X, y)
    assert clf.status_ == "solved"
    assert clf.solution_.solver != "batch"


def test_one_problem_needs_no_more_room_with_two_threads(monkeypatch):
    monkeypatch.setattr(batch, "SHARED_WORK", 0)
    X, y = make_moons(1000, noise=0.25, random_state=0)
    clf = SVC(gamma=0.5, C=1e4, memory_limit=38 << 20)
    one, two = (clone(clf).set_params(n_jobs=jobs).fit(X, y) for jobs in (1, 2))
    assert one.solution_.extras["steps"] == two.solution_.extras["steps"]
    assert one.solution_.extras["steps"] < 60 * len(y)  # in float64


@pytest.mark.parametrize("seed", [0, 1])
def test_sums_without_a_margin_are_solved_in_float64(seed):
    X, y = noise(1100, 8, seed=seed)
    nu = NuSVC(nu=0.3, gamma=0.01, time_limit=10.0).fit(X, y)
    assert (nu.status_, len(nu.solution_.trace)) == ("solved", 1)


@pytest.mark.parametrize("seed", [6, 11])
def test_an_answer_that_rounding_hides_is_taken_up_in_float64(seed):
    rng = np.random.default_rng(seed)
    m, n = int(rng.integers(200, 1500)), int(rng.integers(2, 9))
    X = rng.normal(size=(m, n))
    y = X[:, 0] + rng.uniform(0.3, 2.0) * rng.normal(size=m) > 0.0
    weights = 10.0 ** rng.uniform(-4, 4, m)
    C, gamma, tol = 10.0 ** rng.uniform([3.0, -2.0, -8.0], [6.0, 0.5, -6.0])
    clf = SVC(C=C, gamma=gamma, tol=tol).fit(X, y, sample_weight=weights)
    assert clf.solution_.solver != "batch"  # whose bounds have less digits
    assert (clf.status_, len(clf.solution_.trace)) == ("solved", 1)


def test_no_time_for_all_of_it():
    X, y = noise(3000, 20, classes=2)  # which take 0.5 s
    with pytest.warns(UserWarning, match="time"):
        clf = NuSVC(nu=0.1, tol=1e-12, time_limit=0.02).fit(X, y)
    assert clf.status_ == "time_limit"
    assert clf.solution_.seconds < 1.0


@pytest.mark.parametrize("seed", [153, 156, 363])
def test_the_sum_stays_where_slopes_are_large_beside_variables(seed):
    rng = np.random.default_rng(seed)
    X, y = 0.16 * rng.normal(size=(10, 23)), rng.integers(0, 2, 10)
    clf = SVC(kernel="linear", C=1.6e-10 / 0.16**2 / 23, tol=2e-7).fit(X, y)
    assert clf.solution_.solver == "batch"
    alpha = clf.solution_.alpha
    assert abs((alpha * np.where(y == 1, 1.0, -1.0)).sum()) < 1e-14 * alpha.sum()


@pytest.mark.parametrize("seed", [10, 57])
def test_sums_stay_where_the_kernel_is_indefinite(seed):
    rng = np.random.default_rng(seed)
    m = int(rng.integers(10, 60))
    rng.normal(size=(m, m))
    X, y = rng.normal(size=(m, 3)), np.arange(m) % 2
    gamma, coef0 = 10 ** rng.uniform(-2, 1), rng.uniform(-2, 1)
    clf = NuSVC(kernel="sigmoid", gamma=gamma, coef0=coef0, nu=rng.uniform(0.05, 0.6))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the kernel is indefinite
        found = clf.fit(X, y).solution_
    assert (found.solver, found.status) == ("batch", "solved")
    sums = [found.alpha[y == k].sum() for k in (0, 1)]
    np.testing.assert_allclose(sums, 0.5 * clf.nu * m, rtol=1e-12)
