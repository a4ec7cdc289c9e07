"""Newton's steps over the free variables of problems of few rows, between pair steps."""

import numpy as np
import pytest

from widemargin import SVC, SVR, NuSVC, OneClassSVM


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
