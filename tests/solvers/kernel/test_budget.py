"""Budget machines: optima by plain formulas, equivalences, caps and balls."""

import functools
import itertools

import numpy as np
import pytest
from scipy.optimize import minimize
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.svm import NuSVC

from tests.cases.kernel_reference import part
from tests.conftest import PROBLEMS
from widemargin import Kernel, Problem, solve
from widemargin.losses import (
    BoundedNorm,
    BudgetL1,
    BudgetL2,
    Interpolation,
    L1Norm,
    L2Norm,
    Mahalanobis,
    PNorm,
)
from widemargin.solvers import IRWLS, Budget
from widemargin.solvers.kernel.budget import _bracket

GAMMA = 0.1
NORMS = [
    L1Norm(),
    L2Norm(),
    *(BudgetL1(budget=b) for b in (5, 20.5, 60)),
    *(BudgetL2(budget=b) for b in (5, 50)),
    *(Interpolation(t=t) for t in (1.0, 4.0)),
    PNorm(p=3),
]


def problem_of(X, y, C, norm, **options):
    return Problem(X, y, C, kernel=Kernel("rbf", gamma=GAMMA), norm=norm, **options)


def smallest(function, low, high):
    """The minimum of a convex function of one number, by trisection."""
    for _ in range(200):
        one, two = low + (high - low) / 3, high - (high - low) / 3
        low, high = (low, two) if function(one) < function(two) else (one, high)
    return function(0.5 * (low + high))


def losses(norm, t):
    """N(t), by what the norm means and not by its dual."""
    t = np.maximum(t, 0.0)
    if isinstance(norm, L1Norm):
        return t.sum()
    if isinstance(norm, L2Norm):
        return np.linalg.norm(t)
    if isinstance(norm, PNorm):
        return (t**norm.p).sum() ** (1.0 / norm.p)
    if isinstance(norm, BudgetL1):
        top = np.sort(t)[::-1]
        whole = int(norm.budget)
        return top[:whole].sum() + (norm.budget - whole) * top[whole : whole + 1].sum()
    if isinstance(norm, BudgetL2):
        root = np.sqrt(norm.budget)
        return smallest(
            lambda z: np.linalg.norm(np.maximum(t - z, 0.0)) + root * z, 0.0, t.max()
        )
    # The part that the L1 norm counts is what is above some level.
    return smallest(
        lambda z: (
            np.maximum(t - z, 0).sum() + norm.t * np.linalg.norm(np.minimum(t, z))
        ),
        0.0,
        t.max(),
    )


def is_feasible(norm, alpha, y, C):
    length, share = np.linalg.norm(alpha) / C, 1.0 + 1e-9
    if not isinstance(norm, BoundedNorm):
        inside = norm.gauge(alpha, np.ones(len(y))) <= C * share
        return inside and alpha.min() >= 0.0 and abs(y @ alpha) <= 1e-9 * alpha.sum()
    return (
        alpha.min() >= 0.0
        and abs(y @ alpha) <= 1e-9 * alpha.sum()
        and (not norm.has_box or alpha.max() <= C * share)
        and (norm.ball is None or length <= norm.ball * share)
        and (norm.cap is None or alpha.sum() <= C * norm.cap * share)
    )


@pytest.mark.cover(2)
@pytest.mark.parametrize("C", [0.1, 1.0, 30.0])
@pytest.mark.parametrize("norm", NORMS, ids=str)
@pytest.mark.parametrize("name", ["breast_cancer", "noise"])
def test_the_gap_is_that_of_plain_formulas(name, norm, C):
    X, y = part(name)
    solution = solve(problem_of(X, y, C, norm), tol=1e-5)
    assert solution.status == "solved", solution.message
    assert solution.solver == "budget"
    K = rbf_kernel(X, gamma=GAMMA)
    c, b = solution.w, solution.b
    assert is_feasible(norm, solution.alpha, y, C)
    np.testing.assert_allclose(c, y * solution.alpha, rtol=1e-12)
    f = K @ c
    primal = 0.5 * c @ f + C * losses(norm, 1.0 - y * (f + b))
    dual = solution.alpha.sum() - 0.5 * c @ f
    assert primal - dual <= 1.01e-5 * primal
    assert solution.certificate.primal == pytest.approx(primal, rel=1e-7)
    assert solution.certificate.dual == pytest.approx(dual, rel=1e-7)


@pytest.mark.parametrize("budget", [10, 40.0])
def test_a_cap_that_binds_gives_the_nu_machine(budget):
    X, y = part("noise")
    C = 3.0
    solution = solve(problem_of(X, y, C, BudgetL1(budget=budget)), tol=1e-7)
    assert solution.extras["capped"] == 1.0
    K = rbf_kernel(X, gamma=GAMMA)
    nu = NuSVC(nu=budget / len(y), kernel="precomputed", tol=1e-8).fit(K, y)
    alpha = np.zeros(len(y))
    alpha[nu.support_] = np.abs(nu.dual_coef_[0])
    alpha *= C * budget / alpha.sum()
    c = y * alpha
    dual = alpha.sum() - 0.5 * c @ K @ c
    assert solution.certificate.dual == pytest.approx(dual, rel=1e-6)
    # B bounds how many are at C, and no fewer are support vectors: section 3.
    assert np.count_nonzero(solution.alpha >= C) <= budget
    assert np.count_nonzero(solution.alpha) >= budget


def test_a_cap_that_does_not_bind_gives_the_usual_machine():
    X, y = part("noise")
    kernel = Kernel("rbf", gamma=GAMMA)
    usual = solve(Problem(X, y, 1.0, kernel=kernel), tol=1e-7)
    budget = float(usual.alpha.sum()) + 1e-3
    solution = solve(problem_of(X, y, 1.0, BudgetL1(budget=budget)), tol=1e-7)
    assert solution.extras["capped"] == 0.0
    assert solution.certificate.dual == pytest.approx(usual.certificate.dual, rel=1e-6)
    tight = solve(problem_of(X, y, 1.0, BudgetL1(budget=0.9 * budget)), tol=1e-7)
    assert tight.extras["capped"] == 1.0
    assert tight.extras["theta"] > 0.0


def test_the_ball_is_a_ridge():
    """Section 2: the unsquared norm solves a squared hinge with some C."""
    X, y = part("noise")
    solution = solve(problem_of(X, y, 2.0, L2Norm()), tol=1e-8)
    mu = solution.extras["ridge"]
    squared = Problem(
        X,
        y,
        0.5 / mu,
        "squared_hinge",
        "free",
        kernel=Kernel("rbf", gamma=GAMMA),
    )
    other = solve(squared, IRWLS(), tol=1e-8)
    np.testing.assert_allclose(other.alpha, solution.alpha, atol=1e-3)


@pytest.mark.one_of(3)
@pytest.mark.parametrize("norm", NORMS, ids=str)
def test_a_row_of_weight_two_is_two_rows(norm):
    X, y = part("noise")
    X, y = X[:120], y[:120]
    weights = np.where(np.arange(120) % 3 == 0, 2.0, 1.0)
    weights[::7] = 0.0
    weighted = solve(problem_of(X, y, 1.0, norm, sample_weight=weights), tol=1e-7)
    rows = np.repeat(np.arange(120), weights.astype(int))
    repeated = solve(problem_of(X[rows], y[rows], 1.0, norm), tol=1e-7)
    assert weighted.certificate.primal == pytest.approx(
        repeated.certificate.primal, rel=3e-7
    )
    assert not weighted.alpha[::7].any()


def test_a_start_is_taken_up():
    X, y = part("noise")
    first = solve(problem_of(X, y, 1.0, BudgetL1(budget=40)), tol=1e-6)
    problem = problem_of(X, y, 1.0, BudgetL1(budget=38))
    cold, warm = solve(problem, tol=1e-4), solve(problem, tol=1e-4, start=first)
    assert warm.status == "solved"
    assert warm.trace[0].gap < cold.trace[0].gap


# A projection on the set of a matrix takes longer than all else.
@pytest.mark.parametrize(
    ("norm", "m"),
    [*((norm, 100) for norm in NORMS), (Mahalanobis(M=np.eye(40)), 40)],
    ids=str,
)
def test_a_start_need_not_be_feasible(norm, m):
    X, y = (data[:m] for data in part("noise"))
    start = np.linspace(0.0, 1e9, m), np.zeros(m), 0.0
    solution = solve(problem_of(X, y, 1.0, norm), start=start)
    assert solution.status == "solved", solution.message
    first = solution.trace[0]
    assert first.primal >= solution.certificate.dual
    assert first.dual <= solution.certificate.primal


@pytest.mark.parametrize("norm", [BudgetL1(budget=50), L2Norm()], ids=str)
def test_many_rows_and_other_kernels(norm):
    X, y = PROBLEMS["noise"]()
    kernels = [
        Kernel("linear"),
        Kernel("poly", gamma=0.1, degree=2, coef0=1.0),
        Kernel(lambda A, B: rbf_kernel(A, B, gamma=GAMMA)),
    ]
    for kernel in kernels:
        problem = Problem(X, y, 0.1, kernel=kernel, norm=norm)
        solution = solve(problem, tol=1e-3)
        assert solution.status == "solved", solution.message
        bounds = problem.certify(solution.alpha, solution.w, solution.b)
        assert bounds.relative_gap <= 1.01e-3


@functools.cache
def joined(nonneg_slack):
    """Rows, labels, a matrix that joins their losses, and the solution."""
    X, y = part("noise")
    X, y = X[:15], y[:15]
    M = 0.9 * np.ones((15, 15)) + 0.1 * np.eye(15)
    norm = Mahalanobis(M=M, nonneg_slack=nonneg_slack)
    return X, y, M, solve(problem_of(X, y, 1.0, norm), tol=1e-4)


@pytest.mark.one_of(2)
@pytest.mark.parametrize("nonneg_slack", [True, False])
def test_a_matrix_joins_the_losses(nonneg_slack):
    """Section 4: with slacks of either sign (4) is the dual; else it lies below."""
    X, y, M, solution = joined(nonneg_slack)
    assert solution.status == "solved", solution.message
    c = solution.w
    f = rbf_kernel(X, gamma=GAMMA) @ c
    best = minimize(
        lambda xi: xi @ M @ xi,
        np.ones(15),
        jac=lambda xi: 2.0 * M @ xi,
        bounds=[
            (max(t, 0.0) if nonneg_slack else t, None)
            for t in 1.0 - y * (f + solution.b)
        ],
    )
    primal = 0.5 * c @ f + np.sqrt(best.fun)
    dual = solution.alpha.sum() - 0.5 * c @ f
    assert solution.certificate.primal == pytest.approx(primal, rel=1e-4)
    assert primal - dual <= 3e-4 * primal


def test_the_two_readings_of_a_matrix_differ():
    one, other = (joined(nonneg_slack)[-1] for nonneg_slack in (True, False))
    assert other.certificate.primal < one.certificate.dual


# -- hard ones -------------------------------------------------------------------------


@pytest.mark.parametrize("norm", [BudgetL2(budget=5), L2Norm(), Interpolation(t=2.0)])
def test_a_ball_that_hardly_binds_has_a_ridge_that_is_small_enough(norm):
    X, y = part("noise")
    solution = solve(problem_of(X[:20], y[:20], 1e6, norm), tol=1e-6)
    assert solution.status == "solved", solution.message


@pytest.mark.one_of(3)
@pytest.mark.parametrize("norm", NORMS, ids=str)
def test_many_more_rows_than_features_with_a_large_factor(norm):
    """Pair steps alone stall at gaps of 0.05 to 1."""
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((60, 3)), np.where(rng.random(60) < 0.5, 1.0, -1.0)
    solution = solve(Problem(X, y, 1e5, kernel=Kernel("linear"), norm=norm))
    assert solution.status == "solved", solution.message


def test_a_bracket_with_a_wrong_end_is_none():
    """The length of alpha cannot fall by half where mu grows by a tenth of a percent."""
    assert _bracket((1.0, -0.5), (4.0, 1.0))
    assert _bracket((4.0, 1.0), (1.0, -0.5))
    assert not _bracket((1.0, -0.5), (1.001, 0.5))
    assert not _bracket((1.0, 0.5), (4.0, -0.5))
    assert not _bracket((1.0, 0.5), (4.0, 1.0))


def test_two_rows_with_nothing_to_move():
    problem = problem_of([[0.0], [1.0]], [1, -1], 1e-4, Interpolation(t=1.5))
    assert solve(problem).status == "solved"


def test_limits_are_looked_at_while_a_small_gap_waits_for_the_scores():
    """At C = 1e-4 the gap is small long before f is right."""
    X, y = PROBLEMS["noise"]()
    problem = problem_of(X, y, 1e-4, BudgetL1(budget=20))
    solution = solve(problem, tol=1e-2)
    half = solution.extras["half_square"]
    assert solution.certificate.gap <= 1.1e-2 * half
    steps = solution.trace
    assert [step.iteration for step in steps] == list(range(len(steps)))
    small = [step for step in steps[:-1] if step.relative_gap <= 1e-2]
    assert small
    assert all(step.waits for step in small)
    stopped = solve(problem, tol=1e-2, max_iter=small[0].iteration)
    assert stopped.status == "solved"
    assert len(stopped.trace) == small[0].iteration + 1


def test_a_kernel_that_is_not_positive_semidefinite_is_told():
    X, y = part("noise")
    kernel = Kernel("sigmoid", gamma=0.5)
    solution = solve(Problem(X, y, 1.0, kernel=kernel, norm=BudgetL1(budget=50)))
    assert "not positive semidefinite" in solution.message


# -- refused ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"norm": "l1"}, "'norm' parameter of Problem must be a LossNorm or None"),
        ({"C": [1.0, 2.0]}, "'C' parameter of Problem must be a number where"),
        ({"C": 0.0}, "'C' parameter of Problem must be a float in the range"),
        ({"loss": "squared_hinge"}, "'loss' parameter of Problem must be 'hinge'"),
        ({"intercept": "none"}, "'intercept' parameter of Problem must be 'free'"),
        ({"kernel": None}, "'kernel' parameter of Problem must be a Kernel where"),
        ({"sample_weight": [1.0, 2.0]}, "sample_weight"),
    ],
)
def test_other_problems_are_refused(options, message):
    X, y = part("noise")
    given = {"norm": L1Norm(), "kernel": Kernel("rbf", gamma=GAMMA)} | options
    with pytest.raises((TypeError, ValueError), match=message):
        Problem(X, y, **given)


def test_solvers_of_other_problems_are_refused():
    X, y = part("noise")
    with pytest.raises(ValueError, match="IRWLS solves problems with a sum of losses"):
        solve(problem_of(X, y, 1.0, L2Norm()), IRWLS())
    usual = Problem(X, y, 1.0, kernel=Kernel("rbf", gamma=GAMMA))
    with pytest.raises(ValueError, match="Budget solves problems with a norm"):
        solve(usual, Budget())


def test_norms_of_all_pairs_agree_at_their_limits():
    """A budget of all rows is no budget; sqrt(m) makes the interpolation L1."""
    X, y = part("noise")
    m = len(y)
    pairs = [
        (BudgetL1(budget=m), L1Norm()),
        (BudgetL2(budget=m), L2Norm()),
        (Interpolation(t=np.sqrt(m)), L1Norm()),
    ]
    for (one, other), C in itertools.product(pairs, (0.1, 10.0)):
        a, b = (solve(problem_of(X, y, C, norm), tol=1e-7) for norm in (one, other))
        assert a.certificate.primal == pytest.approx(b.certificate.primal, rel=2e-7)
