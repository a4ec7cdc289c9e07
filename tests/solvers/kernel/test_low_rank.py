"""Kernel matrices of low rank: an interior point on a factor, proved by the kernel."""

import warnings
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.linalg.lapack import dpstrf

from widemargin import Kernel, NuSVC, Problem, solve
from widemargin.data.memory import as_rows
from widemargin.features.builder import MapBuilder
from widemargin.features.partial_cholesky import PartialCholesky, largest
from widemargin.problems.regression import regression_problem
from widemargin.solvers import IRWLS
from widemargin.solvers.kernel import low_rank
from widemargin.solvers.kernel.hulls import lightened
from widemargin.solvers.kernel.inner_points import (
    Boxed,
    Dense,
    Factored,
    Method,
    indicators,
)
from widemargin.solvers.kernel.low_rank import UnitRows, features_of, products_of
from widemargin.solvers.kernel.vertex import ToVertex
from widemargin.system.threads import _blas_threads

RBF = Kernel("rbf", gamma=0.5)


def two_gaussians(m=600):
    rng = np.random.default_rng(0)
    y = np.repeat([-1.0, 1.0], m // 2)
    return rng.normal(size=(m, 2)) + (y > 0)[:, np.newaxis], y


@pytest.mark.parametrize("intercept", ["free", "penalized", "none"])
@pytest.mark.parametrize("C", [1e3, 1e6])
def test_a_large_C_in_the_plane_takes_few_pair_steps(C, intercept):
    X, y = two_gaussians()
    problem = Problem(X, y, C, "hinge", intercept, kernel=RBF)
    solution = solve(problem, IRWLS(), tol=1e-5)
    details = solution.trace[-1].details
    assert solution.status == "solved"
    assert details["rank"] > 0
    assert details["inner_steps"] < 100 * len(y)
    K = np.exp(-0.5 * ((X[:, np.newaxis] - X) ** 2).sum(axis=-1))
    c, b = solution.w, solution.b
    f = K @ c
    losses = np.maximum(0.0, 1.0 - y * (f + b)).sum()
    penalty = 0.5 * b * b if intercept == "penalized" else 0.0
    assert 0.5 * c @ f + penalty + C * losses == pytest.approx(
        solution.certificate.primal, rel=1e-6
    )


def test_rows_end_at_their_bounds():
    """An interior point has all rows between them."""
    X, y = two_gaussians()
    problem = Problem(X, y, 1e3, "hinge", "free", kernel=RBF)
    solution = solve(problem, IRWLS(), tol=1e-4)
    rank = solution.trace[-1].details["rank"]
    free = (solution.alpha > 0) & (solution.alpha < 1e3)
    assert rank > 0
    assert np.count_nonzero(free) <= 1.5 * rank


def test_a_low_rank_that_200_rows_do_not_show():
    """Their part of K has a rank of 144, that of 800 rows 235."""
    X, y = two_gaussians(1600)
    problem = Problem(X, y, 1e3, kernel=Kernel("rbf", gamma=1.0))
    solution = solve(problem, IRWLS(), tol=1e-4)
    assert solution.status == "solved"
    assert solution.trace[-1].details["rank"] > 0


def test_a_matrix_of_full_rank_is_left_to_pair_steps():
    X, y = two_gaussians()
    problem = Problem(X, y, 1e3, kernel=Kernel("rbf", gamma=1e4))
    assert solve(problem, IRWLS(), tol=1e-4).trace[-1].details["rank"] == 0


def test_rows_whose_lengths_differ_by_digits():
    """Beside the longest rows the others are rounding, where rows are not of length 1."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(3000, 3))
    y = np.where(X[:, 0] * X[:, 1] + 0.1 * rng.normal(size=3000) > 0, 1.0, -1.0)
    X[:5] *= 1e4
    kernel = Kernel("poly", degree=3, gamma=1.0, coef0=1.0)
    problem = Problem(X, y, 4096.0, "hinge", "free", kernel=kernel)
    solution = solve(problem, tol=1e-3, time_limit=60.0)
    assert solution.status == "solved", solution.message
    assert solution.trace[-1].details["rank"] == products_of(kernel, 3)


def test_samples_that_are_two_rows_each():
    rng = np.random.default_rng(0)
    X = np.sort(rng.uniform(-3, 3, size=(600, 1)), axis=0)
    target = np.sinc(X[:, 0]) + 0.1 * rng.normal(size=600)
    problem = regression_problem(X, target, 1e5, epsilon=0.05, kernel=RBF)
    solution = solve(problem, IRWLS(), tol=1e-5)
    assert solution.status == "solved"
    assert solution.trace[-1].details["rank"] > 0


def test_sums_of_both_classes():
    X, y = two_gaussians()
    machine = NuSVC(nu=0.65, gamma=0.5, solver="irwls", tol=1e-6).fit(X, y)
    assert machine.status_ == "solved"


def test_no_room_for_a_factor():
    X, y = two_gaussians(1000)
    problem = Problem(X, y, 1e3, kernel=RBF, memory_limit=1_200_000)
    solution = solve(problem, IRWLS(), tol=1e-3)
    assert solution.trace[-1].details["rank"] == 0
    assert solution.status == "solved"


def normal(m=3000):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(m, 3))
    y = np.where(X[:, 0] * X[:, 1] + 0.1 * rng.normal(size=m) > 0, 1.0, -1.0)
    return X, y


@pytest.mark.parametrize(("C", "tol"), [(100.0, 1e-8), (1e6, 1e-4)])
def test_no_more_rows_are_free_than_products(C, tol):
    """Rows at their bounds by rounding alone cost more than the gap."""
    kernel = Kernel("poly", degree=3, gamma=1.0, coef0=1.0)
    solution = solve(Problem(*normal(), C, "hinge", "free", kernel=kernel), tol=tol)
    free = (solution.alpha > 0) & (solution.alpha < C)
    assert solution.status == "solved"
    assert solution.trace[-1].details["rank"] > 0
    assert np.count_nonzero(free) <= products_of(kernel, 3) + 1


def test_dual_variables_whose_products_with_K_round_by_more_than_the_gap():
    """Values of exp in float64 prove no gap below 7e-8."""
    kernel = Kernel("rbf", gamma=0.01)
    problem = Problem(*normal(), 1e5, "hinge", "free", kernel=kernel)
    solution = solve(problem, tol=1e-8, time_limit=60.0)
    assert solution.status == "solved"
    assert np.count_nonzero(solution.alpha) < 600


def inner_point(r, m=80):
    """The end of an interior point of rank r, and its problem."""
    rng = np.random.default_rng(0)
    Z, y = rng.normal(size=(m, r)), np.repeat([-1.0, 1.0], m // 2)
    upper = np.where(y > 0, 10.0, 0.0)
    E = indicators((np.full(m, True),), m)
    problem = Boxed(Dense(Z @ Z.T), -y, upper - 10.0, upper, E, np.zeros(1))
    method = Method(problem)
    end = method.run(method.begin(), lambda objective: 1e-9)
    return Z, method, end


def test_settled_points_keep_the_scores():
    Z, method, end = inner_point(5)
    to = ToVertex(method.problem, lambda J: Z[J], end, method.feasible(end.c))
    to.settle(method.at_bounds(end, 0.0))
    assert np.count_nonzero((to.c > method.lower) & (to.c < method.upper)) <= 12
    assert abs(to.c.sum()) < 1e-10
    np.testing.assert_allclose(Z.T @ to.c, Z.T @ end.c, atol=1e-3)


@pytest.mark.parametrize("equal", [1, 8])
def test_a_vertex_has_the_scores_of_the_inner_point(equal):
    """From a point between all bounds, also where rows are equal."""
    Z, method, end = inner_point(5)
    Z = np.repeat(Z[::equal], equal, axis=0)
    c = 0.5 * (method.lower + method.upper)
    to = ToVertex(method.problem, lambda J: Z[J], end, c)
    to.purify()
    assert np.count_nonzero((to.c > method.lower) & (to.c < method.upper)) <= 6
    assert (to.c >= method.lower).all()
    assert (to.c <= method.upper).all()
    assert (end.low - end.high) @ (to.c - c) <= 0.0
    np.testing.assert_allclose(to.c.sum(), c.sum(), atol=1e-10)
    np.testing.assert_allclose(Z.T @ to.c, Z.T @ c, atol=1e-10)


@pytest.mark.parametrize("intercept", ["free", "penalized", "none"])
def test_a_rough_gap_that_needs_no_factor(intercept, monkeypatch):
    """Residuals as large as K cost less than the gap, where C is small."""
    monkeypatch.setattr(low_rank, "LEAST_RANK", 1.0)  # pair steps take less time
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 1))
    y = np.where(X[:, 0] + rng.normal(size=600) > 0, 1.0, -1.0)
    kernel = Kernel("rbf", gamma=1e-3)
    problem = Problem(X, y, 1e-4, "hinge", intercept, kernel=kernel)
    solution = solve(problem, IRWLS(), tol=1e-2)
    assert solution.status == "solved", solution.message
    assert solution.trace[-1].details["rank"] > 0


def test_a_rank_is_looked_for_by_one_thread_of_blas(monkeypatch):
    """Others would turn for a while beside the first sweeps."""
    threads, pivots_of = [], low_rank.pivots_of

    def recorded(S, least):
        threads.extend(_blas_threads())
        return pivots_of(S, least)

    monkeypatch.setattr(low_rank, "pivots_of", recorded)
    X = np.random.default_rng(0).normal(size=(60, 3))
    kernel = Kernel("rbf", gamma=1.0)
    low_rank.rank_of(kernel, as_rows(X), kernel(X, X))
    assert threads
    assert set(threads) == {1}


@pytest.mark.parametrize(
    ("kernel", "products"),
    [
        (Kernel("linear"), 3),
        (Kernel("poly", degree=3, gamma=1.0, coef0=1.0), 20),
        (Kernel("poly", degree=3, gamma=1.0, coef0=0.0), 10),
    ],
)
def test_products_that_a_kernel_is_linear_in(kernel, products):
    X = np.random.default_rng(0).normal(size=(60, 3))
    K = kernel(X, X)
    assert np.linalg.matrix_rank(K) == products
    assert products_of(kernel, 3) == products
    # Of few rows all are needed: they show no low rank, but there are no more products.
    few = slice(products // 2)
    assert low_rank.rank_of(kernel, as_rows(X), K[few, few]) == products


def test_a_sample_of_full_rank_says_nothing_of_all_rows():
    kernel, X = Kernel("rbf", gamma=1e4), np.random.default_rng(0).normal(size=(600, 3))
    assert low_rank.rank_of(kernel, as_rows(X), kernel(X[:50], X[:50])) == np.inf


def test_a_factor_of_a_polynomial_is_all_of_it(monkeypatch):
    """Also where a part of it would do for a rough gap."""
    monkeypatch.setattr(low_rank, "LEAST_RANK", 1.0)  # pair steps take less time
    monkeypatch.setattr(low_rank, "VISITS", 0.05)
    kernel = Kernel("poly", degree=3, gamma=1.0, coef0=1.0)
    problem = Problem(*normal(600), 1e-4, "hinge", "free", kernel=kernel)
    solution = solve(problem, IRWLS(), tol=0.2)
    assert solution.status == "solved"
    assert solution.trace[-1].details["rank"] == products_of(kernel, 3)


def test_a_factor_before_the_first_pair_step(monkeypatch):
    """Where c is zero no residual is too large."""
    monkeypatch.setattr(low_rank, "VISITS", 1e-9)
    X, y = two_gaussians()
    solution = solve(Problem(X, y, 1.0, kernel=RBF), IRWLS(), tol=1e-3)
    assert solution.status == "solved"
    assert solution.trace[-1].details["rank"] > 1


@pytest.mark.parametrize("intercept", ["penalized", "none"])
@pytest.mark.parametrize("copies", [1, 2])
def test_the_matrix_of_a_factor(intercept, copies):
    """Its systems too, where solutions are short beside what they are made of."""
    kernel, (X, _) = Kernel("poly", degree=3, gamma=1.0, coef0=1.0), normal(200)
    units = UnitRows(MapBuilder("IRWLS", as_rows(X), kernel, np.float64, 0, 10**8))
    factor = PartialCholesky(units, 200, largest)
    while len(factor.pivots) < 20:
        factor.extend(0.0)
    problem = SimpleNamespace(intercept=intercept, signs=np.ones(200 * copies))
    H = features_of(factor, problem)
    K = np.tile(kernel(X, X), (copies, copies))
    whole = K + (intercept == "penalized")
    rng = np.random.default_rng(1)
    c, d = rng.normal(size=len(K)), 10.0 ** rng.uniform(-5, -4, len(K))
    np.testing.assert_allclose(H.times(c), whole @ c, atol=1e-9)
    np.testing.assert_allclose(H.scores(c), K @ c, atol=1e-9)
    right = whole @ c
    x = H.factored(d)(right)
    off = np.linalg.norm(whole @ x + d * x - right)
    assert off <= 1e-11 * np.linalg.norm(right)


def test_a_try_that_misses_its_gap_is_followed_by_a_nearer_one(monkeypatch):
    monkeypatch.setattr(low_rank, "LEFT", 30.0)  # of what is asked for
    X, y = two_gaussians()
    solution = solve(Problem(X, y, 1e6, kernel=RBF), IRWLS(), tol=1e-5)
    assert solution.status == "solved"
    # Twice what the first try came after; without it they take twice as many alone.
    assert solution.trace[-1].details["inner_steps"] < 600 * len(y)


def mixed(m, seed=0):
    """Two Gaussians in the plane, whose labels are drawn."""
    rng = np.random.default_rng(seed)
    y = np.where(rng.random(m) < 0.5, -1.0, 1.0)
    return rng.normal(size=(m, 2)) + 0.7 * y[:, np.newaxis], y


@pytest.mark.parametrize("tol", [1e-2, 1e-4])
def test_an_inner_point_is_no_end_before_its_slopes_are_met(tol):
    """With light multipliers products are small where it begins."""
    X, y = mixed(300)
    K = Kernel("rbf", gamma=0.1)(X, X)
    E, upper = indicators((y > 0, y < 0), 300), np.where(y > 0, 1.0, 0.0)
    sums = np.array([9.0, -9.0])
    method = Method(Boxed(Dense(K), np.zeros(300), upper - 1.0, upper, E, sums))
    begin = lightened(method.begin())
    at = method.run(begin, lambda objective: tol * 1e-2 * abs(objective) / 300)
    first, last = (0.5 * c @ K @ c for c in (begin.c, at.c))
    assert last <= 1e-6 * first


def test_systems_with_free_rows_are_solved_to_the_last_digits():
    """Their solutions are small differences; improved once they leave 2e-9."""
    X, _ = mixed(300)
    L, order, rank, _ = dpstrf(Kernel("rbf", gamma=0.1)(X, X), tol=1e-13, lower=True)
    Z = np.empty((300, rank))
    Z[order - 1] = np.tril(L[:, :rank])
    d = np.where(np.arange(300) % 4, 1e-2, 1e-9)
    H = Factored(Z)
    right = H.times(np.random.default_rng(0).normal(size=300)) + d
    x = H.factored(d)(right)
    left = right - H.times(x) - d * x
    assert np.linalg.norm(left) <= 1e-11 * np.linalg.norm(right)


@pytest.mark.parametrize(("m", "nu"), [(500, 0.2), (500, 0.24), (1000, 0.33)])
def test_machines_that_hardly_have_a_margin_take_one_inner_point(m, nu):
    X, y = mixed(m)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = NuSVC(nu=nu, gamma=0.1, tol=1e-2).fit(X, y).solution_
    assert found.status in ("solved", "no_margin")
    assert found.trace[-1].iteration <= 3


@pytest.mark.parametrize("intercept", ["none", "penalized"])
@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_regressions_without_a_free_intercept_have_no_sums(loss, intercept):
    """Their inner points have no column of sums: that has ended fits with ValueError."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 2))
    target = np.sin(2 * (X[:, 0] * X[:, 1] + 0.3 * rng.normal(size=300)))
    kernel = Kernel("rbf", 0.14)
    problem = regression_problem(X, target, 1e5, 0.1, loss, intercept, kernel=kernel)
    found = solve(problem, IRWLS(), tol=1e-4)
    assert found.status == "solved"
    best = solve(problem, IRWLS(), tol=1e-6).certificate
    assert best.dual <= found.certificate.primal <= best.primal * (1 + 1e-4)
