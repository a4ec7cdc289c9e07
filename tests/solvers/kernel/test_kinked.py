"""One variable for both rows of a sample: the same optimum as two."""

import numpy as np
import pytest

from tests.cases.pairwise import product
from widemargin import Kernel, solve
from widemargin.problems import kernel
from widemargin.problems.regression import coefficients, regression_problem
from widemargin.solvers import IRWLS
from widemargin.solvers.kernel.small_problem import Small, solve_by_pairs

RBF = Kernel("rbf", gamma=0.5)


def small(seed, sums, ridge, dtype=np.float64):
    """A small problem with kinks."""
    rng = np.random.default_rng(seed)
    q, width = 30, 32
    X, kink = rng.normal(size=(q, 3)), rng.uniform(0.0, 1.0, q)
    K = np.zeros((q, width), dtype)
    K[:, :q] = np.exp(-0.2 * ((X[:, None] - X) ** 2).sum(axis=2))
    C, F, shift = rng.uniform(0.5, 2.0, q), 2.0 * rng.normal(size=q), 1.0 - sums
    c = np.zeros(q)
    return Small(K, c, -C, C, F, np.full(q, ridge), shift, sums, kink)


def as_two(one):
    """The same problem with two variables for each, of which none has a kink."""
    q, width = one.K.shape[0], 64
    K = np.zeros((2 * q, width), one.K.dtype)
    K[:, : 2 * q] = np.tile(one.K[:, :q], (2, 2))
    zero, ridge = np.zeros(q), np.tile(one.ridge, 2)
    lower, upper = np.append(zero, one.lower), np.append(one.upper, zero)
    F = np.append(one.F + one.kink, one.F - one.kink)
    return Small(K, np.tile(zero, 2), lower, upper, F, ridge, one.shift, one.sums)


@product(sums=[0, 1], ridge=[0.0, 0.3], seed=[0, 1, 2])
def test_it_has_the_optimum_of_two_variables(sums, ridge, seed):
    one = small(seed, sums, ridge)
    found = solve_by_pairs(one, 1e-11)
    both = solve_by_pairs(as_two(one), 1e-11).c.reshape(2, -1).sum(axis=0)
    assert found.reached
    assert one.at(found.c).violations.size <= 1e-10
    assert np.any(found.c > 0)
    assert np.any(found.c < 0)
    assert np.any(found.c == 0)
    np.testing.assert_allclose(found.c, both, atol=1e-8)
    assert not sums or abs(found.c.sum()) < 1e-12


@product(sums=[0, 1], seed=[0, 1])
def test_on_its_side_of_zero_the_optimum_is_the_same(sums, seed):
    one = small(seed, sums, 0.0)
    c = solve_by_pairs(one, 1e-3).c
    near = one.at(c).on_a_side
    assert near.kink is None
    assert np.all(near.lower <= c)
    assert np.all(c <= near.upper)
    assert np.all((near.lower == 0.0) ^ (near.upper == 0.0))
    # No sign changes any more: what violates is what did.
    assert near.violations.size == pytest.approx(one.at(c).violations.size)
    found, best = solve_by_pairs(near, 1e-11), solve_by_pairs(one, 1e-11)
    np.testing.assert_allclose(found.c, best.c, atol=1e-8)


def samples(m=150):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(m, 3))
    return X, np.sin(X[:, 0]) + 0.3 * rng.normal(size=m)


@product(
    loss=["hinge", "squared_hinge"],
    intercept=["free", "penalized", "none"],
    weighted=[False, True],
)
def test_working_sets_find_the_optimum_of_the_rows(loss, intercept, weighted):
    X, t = samples()
    C = np.random.default_rng(1).integers(0, 3, len(t)) * 1.0 if weighted else 2.0
    problem = [
        regression_problem(X, t, C, 0.1, loss, intercept, kernel=RBF) for _ in range(2)
    ]
    # IRWLS takes both rows of a sample.
    one = solve(problem[0], IRWLS(working_set=40), tol=1e-9)
    two = solve(problem[1], IRWLS(working_set=40, inner="irwls"), tol=1e-9)
    assert one.status == two.status == "solved"
    assert not np.any(np.multiply(*np.split(one.alpha, 2)))
    atol = 1e-4 * np.abs(two.alpha).max()
    both = coefficients(one.alpha), coefficients(two.alpha)
    np.testing.assert_allclose(*both, atol=atol)


def test_a_start_with_both_rows_of_a_sample_is_taken():
    X, t = samples()
    problem = regression_problem(X, t, 2.0, 0.1, kernel=RBF)
    start = np.full(300, 1.5), np.zeros(300), 0.0
    found = solve(problem, IRWLS(), tol=1e-8, start=start)
    assert found.status == "solved"
    assert not np.any(np.multiply(*np.split(found.alpha, 2)))


def test_first_samples_that_violate_nothing_do_not_end_a_run():
    X, t = np.arange(400.0)[:, None], np.zeros(400)
    t[[17, 311]] = 5.0, -5.0
    problem = regression_problem(X, t, 1.0, 0.5, kernel=RBF)
    found = solve(problem, IRWLS(working_set=4), tol=1e-8)
    assert found.status == "solved", found
    assert set(np.flatnonzero(coefficients(found.alpha))) >= {17, 311}


def test_both_rows_of_a_sample_have_the_same_exact_score(monkeypatch):
    monkeypatch.setattr(kernel, "ALL_ROWS", 0.0)  # only those of rows with a loss
    X, t = samples(200)
    problem = regression_problem(X, t, 2.0, 0.1, kernel=RBF)
    scores = problem.expand(np.concatenate([np.zeros(200), np.full(200, -0.1)]))
    problem.refresh_near(scores, 0.3)
    first, second = np.split(scores.values, 2)
    np.testing.assert_array_equal(first, second)
