"""Equivalent problems: equal rows merged, columns centered."""

import numpy as np
import pytest
from scipy import sparse

from widemargin import LinearSVC, LinearSVR, Problem, solve
from widemargin.problems.conditioning import MERGED_ROWS, conditioned
from widemargin.problems.regression import regression_problem


def duplicated(kind=np.asarray, m=MERGED_ROWS, different=400, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 2, (different, 20)).astype(float)
    y = np.where(X[:, :5].sum(axis=1) + rng.normal(size=different) > 2.5, 1.0, -1.0)
    index = rng.integers(0, different, m)
    return kind(X[index]), y[index]


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
@pytest.mark.parametrize("intercept", ["free", "penalized", "none"])
def test_merged_rows_give_the_same_answer(kind, loss, intercept):
    X, y = duplicated(kind, m=2 * MERGED_ROWS)
    C = np.random.default_rng(1).uniform(0.0, 0.02, len(y))
    C[::7] = 0.0
    problem = Problem(X, y, C, loss, intercept)
    core, lift = conditioned(problem)
    assert core.rows.shape[0] <= 800
    assert core.C.sum() == pytest.approx(C.sum())
    inner = solve(core, tol=1e-9)
    alpha, v = lift.alpha_up(inner.alpha), lift.up(core.stack(inner.w, inner.b))
    whole = problem.certify(alpha, *problem.split(v))
    # The same numbers; bounds of what rounding may do grow with the number of rows.
    off = whole.rounding + 1e-12 * whole.primal
    assert abs(whole.primal - inner.certificate.primal) <= off
    assert abs(whole.dual - inner.certificate.dual) <= off
    assert off <= 1e-11 * whole.primal
    np.testing.assert_allclose(lift.alpha_down(alpha), inner.alpha, atol=1e-14)
    assert np.all(alpha[C == 0.0] == 0.0)


def test_a_solve_merges_and_answers_for_all_rows():
    X, y = duplicated()
    problem = Problem(X, y, 0.05)
    solution = solve(problem, tol=1e-8)
    assert solution.status == "solved"
    assert solution.alpha.shape == y.shape
    assert solution.trace[0].active <= 800  # rows of the merged problem
    assert solution.certificate == problem.certify(
        solution.alpha, solution.w, solution.b, tol=solution.tol
    )
    again = solve(problem, tol=1e-8, start=solution)
    assert again.trace[-1].iteration <= 1
    assert again.certificate.primal <= solution.certificate.primal * (1 + 1e-12)


def test_support_vectors_are_all_equal_rows():
    X, y = duplicated()
    clf = LinearSVC(C=0.05, tol=1e-8).fit(X, y)
    support = np.zeros(len(y), dtype=bool)
    support[clf.support_] = True
    _, group = np.unique(np.c_[X, y], axis=0, return_inverse=True)
    shares = np.bincount(group, support) / np.bincount(group)
    assert set(shares) <= {0.0, 1.0}


def test_rows_that_differ_are_left_alone():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(MERGED_ROWS, 3)), np.sign(rng.normal(size=MERGED_ROWS))
    problem = Problem(X, y)
    core, lift = conditioned(problem)
    assert core is problem
    v = rng.normal(size=4)
    assert lift.up(v) is v
    assert lift.alpha_up(y) is y


def test_few_rows_are_left_alone():
    X, y = duplicated(m=MERGED_ROWS - 1)
    problem = Problem(X, y)
    assert conditioned(problem)[0] is problem


def test_columns_far_from_zero_are_centered_and_rows_not_merged():
    X, y = duplicated()
    problem = Problem(X + 1e6, y)
    core, lift = conditioned(problem)
    assert core.rows.shape == problem.rows.shape
    v = np.random.default_rng(0).normal(size=21)
    np.testing.assert_allclose(lift.down(lift.up(v))[:-1], v[:-1])
    w, b = problem.split(lift.up(v))
    scores = X[:5] + 1e6
    inner = scores - lift.center
    np.testing.assert_allclose(scores @ w + b, inner @ v[:-1] + v[-1], atol=1e-7)


def repeated_samples(kind=np.asarray, m=MERGED_ROWS, different=400, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 2, (different, 20)).astype(float)
    target = X[:, :5].sum(axis=1) + rng.standard_t(2, size=different) + 30.0
    index = rng.integers(0, different, m)
    return kind(X[index]), target[index]


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
@pytest.mark.parametrize("intercept", ["free", "penalized", "none"])
def test_merged_samples_of_a_regression_give_the_same_answer(kind, loss, intercept):
    X, target = repeated_samples(kind, m=2 * MERGED_ROWS)
    C = np.random.default_rng(1).uniform(0.0, 0.02, len(target))
    C[::7] = 0.0
    problem = regression_problem(X, target, C, 0.3, loss, intercept)
    core, lift = conditioned(problem)
    assert core.rows.shape[0] <= 800
    inner = solve(core, tol=1e-9)
    alpha, v = lift.alpha_up(inner.alpha), lift.up(core.stack(inner.w, inner.b))
    whole = problem.certify(alpha, *problem.split(v))
    # The shift of the targets rounds, and the dual is less by what all of them may.
    assert whole.primal == pytest.approx(
        lift.value(inner.certificate.primal), rel=1e-11
    )
    assert whole.dual == pytest.approx(lift.value(inner.certificate.dual), rel=1e-10)
    np.testing.assert_allclose(lift.alpha_down(alpha), inner.alpha, atol=1e-13)
    assert np.all(alpha[np.tile(C == 0.0, 2)] == 0.0)


def test_samples_far_from_zero_are_merged_and_centered():
    X, target = repeated_samples()
    problem = regression_problem(X + 1e6, target, 0.05)
    core, lift = conditioned(problem)
    assert core.rows.shape[0] <= 800
    assert lift.center is not None
    solution = solve(problem, tol=1e-6)
    assert solution.status == "solved"
    again = solve(problem, tol=1e-6, start=solution)
    assert again.trace[-1].iteration <= 1
    near = solve(regression_problem(X, target, 0.05), tol=1e-6)
    assert solution.certificate.primal == pytest.approx(
        near.certificate.primal, rel=2e-6
    )


def test_a_regression_weighs_equal_samples_by_their_number():
    X, target = repeated_samples()
    found, first, counts = np.unique(
        np.c_[X, target], axis=0, return_index=True, return_counts=True
    )
    settings = {"C": 0.05, "epsilon": 0.2, "tol": 1e-9}
    whole = LinearSVR(**settings).fit(X, target)
    few = LinearSVR(**settings).fit(X[first], target[first], sample_weight=counts)
    assert len(found) <= 400
    assert whole.dual_gap_ <= 1e-9
    np.testing.assert_allclose(whole.predict(X[:9]), few.predict(X[:9]), atol=1e-5)


def test_equal_rows_with_other_targets_are_left_alone():
    X, target = repeated_samples()
    target = target + np.arange(len(target)) / len(target)
    core, lift = conditioned(regression_problem(X, target))
    assert core.rows.shape[0] == 2 * len(target)
    assert lift.group is None


def test_targets_that_are_rounded_alike_in_one_row_only_are_left_alone():
    X, _ = repeated_samples()
    more = np.arange(len(X)) % 2 == 1
    target = np.where(more, -np.nextafter(0.1, 1.0), -0.1)
    problem = regression_problem(X, target, epsilon=0.3)
    below, above = np.split(problem.q, 2)
    assert len(np.unique(below)) == 1
    assert len(np.unique(above)) == 2
    assert conditioned(problem)[0].rows.shape == problem.rows.shape


def test_margins_of_rows_that_are_no_samples_are_left_alone():
    X, target = repeated_samples()
    problem = Problem(X, np.sign(target - 32.0), q=target)
    assert conditioned(problem)[0].rows.shape == problem.rows.shape
