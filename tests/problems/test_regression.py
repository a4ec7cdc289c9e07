"""Regression as two rows for each sample: optima, certificates, and margins at large."""

import numpy as np
import pytest

from tests.cases.pairwise import product
from tests.cases.regression import friedman, objective, reference_objective
from tests.certificates.exact import Exact, false_claims
from tests.conftest import INTERCEPTS, LOSSES
from widemargin import Kernel, Problem, as_rows, solve
from widemargin.problems.regression import coefficients, regression_problem
from widemargin.solvers import IRWLS, ActiveSet, FrankWolfe, InteriorPoint

LINEAR = {
    "auto": LOSSES,
    "active_set": ["squared_hinge"],
    "augmented_lagrangian": ["hinge"],
    "interior_point": LOSSES,
    "coordinate_descent": LOSSES,
}
X, TARGET = friedman(120)
# Clarabel's answers are upper bounds, tight to about this.
TIGHT = 2e-7
# What it calls zero, and what bounds of zero allow for underflow.
NOUGHT, UNDERFLOW = 1e-12, 1e-300


@product(
    solver=list(LINEAR),
    loss=LOSSES,
    intercept=INTERCEPTS,
    C=[1e-6, 1e-3, 1.0, 1e3, 1e6],
    epsilon=[0.0, 0.3, 4.0, 100.0],
)
def test_linear_optima_are_those_of_clarabel(solver, loss, intercept, C, epsilon):
    if loss not in LINEAR[solver] or (solver == "coordinate_descent" and C > 1.0):
        solver = "auto"  # slow: see `CoordinateDescent`
    form = loss, intercept
    solution = solve(regression_problem(X, TARGET, C, epsilon, *form), solver, tol=1e-8)
    best = reference_objective(X, TARGET, C, epsilon, form)
    bounds = solution.certificate
    assert solution.status == "solved"
    assert bounds.dual <= best * (1.0 + 1e-12)
    assert bounds.primal <= best * (1.0 + 1e-8) + NOUGHT
    found = objective(X, TARGET, C, epsilon, form, solution.w, solution.b)
    assert bounds.primal == pytest.approx(found, rel=1e-9)
    assert bounds.primal == pytest.approx(best, rel=TIGHT, abs=NOUGHT)


@product(
    loss=LOSSES,
    intercept=INTERCEPTS,
    C=[1e-6, 1e-2, 1.0, 1e2, 1e4],
    epsilon=[0.0, 0.3, 4.0, 100.0],
)
def test_kernel_optima_are_those_of_clarabel(loss, intercept, C, epsilon):
    kernel, form = Kernel("rbf", gamma=0.2), (loss, intercept)
    problem = regression_problem(X, TARGET, C, epsilon, *form, kernel=kernel)
    solution = solve(problem, tol=1e-8)
    assert solution.status == "solved"
    L = np.linalg.cholesky(kernel(X, X) + 1e-13 * np.eye(len(X)))
    best = reference_objective(L, TARGET, C, epsilon, form)
    assert solution.certificate.dual <= best * (1.0 + 1e-10)
    assert solution.certificate.primal == pytest.approx(best, rel=TIGHT, abs=NOUGHT)
    c = coefficients(solution.alpha)
    np.testing.assert_allclose(c, np.add(*np.split(solution.w, 2)), atol=0.0)
    assert np.all(np.minimum(*np.split(solution.alpha, 2)) == 0.0)


@product(loss=LOSSES, intercept=INTERCEPTS, solver=["irwls", "linear"])
def test_weights_are_repetitions(loss, intercept, solver):
    times = np.random.default_rng(1).integers(0, 4, len(X))
    kernel = Kernel("linear") if solver == "irwls" else None
    kernel = {"kernel": kernel} if kernel else {}
    form = 0.3, loss, intercept
    weighted = regression_problem(X, TARGET, 0.5 * times, *form, **kernel)
    repeated = np.repeat(np.arange(len(X)), times)
    plain = regression_problem(X[repeated], TARGET[repeated], 0.5, *form, **kernel)
    one, other = solve(weighted, tol=1e-9), solve(plain, tol=1e-9)
    assert one.certificate.primal == pytest.approx(other.certificate.primal, rel=1e-8)
    assert not one.alpha[np.tile(times, 2) == 0].any()


# -- certificates ----------------------------------------------------------------------


def draw(seed):
    """A small problem out of the ordinary: scales, offsets, constants, weights."""
    rng = np.random.default_rng(seed)
    m, n = rng.integers(2, 20), rng.integers(1, 4)
    X = rng.standard_normal((m, n)) * 10.0 ** rng.uniform(-3, 3)
    X = X + rng.choice([0.0, 1.0, 1e4])
    t = rng.standard_normal(m) * 10.0 ** rng.uniform(-4, 4)
    t = rng.choice([t, np.full(m, t[0]), np.zeros(m), t + 1e6, X[:, 0]])
    epsilon = float(rng.choice([0.0, 1e-3, 0.1, 10.0]) * max(np.abs(t).max(), 1e-3))
    C = 10.0 ** rng.uniform(-6, 6) * (1.0 + rng.integers(0, 3, m))
    form = str(rng.choice(LOSSES)), str(rng.choice(INTERCEPTS))
    name = rng.choice(["", "", "rbf", "linear", "poly"])
    kernel = Kernel(str(name), gamma=0.5, degree=2, coef0=1.0) if name else None
    tol, steps = float(10.0 ** rng.uniform(-11, -2)), [None, 1, 4][rng.integers(3)]
    return (X, t, C, epsilon, *form), kernel, {"tol": tol, "max_iter": steps}


def exactly(problem, kernel):
    rows = problem.rows.take(np.arange(problem.shape[0]))
    y, form = problem.y.astype(np.int64), (problem.loss, problem.intercept)
    return Exact(rows, y, np.array(problem.C), *form, kernel, q=np.array(problem.q))


@pytest.mark.parametrize("seed", range(60))
def test_no_certificate_is_false(seed):
    data, kernel, limits = draw(seed)
    problem = regression_problem(*data, kernel=kernel)
    solution = solve(problem, time_limit=5.0, **limits)
    exact = exactly(problem, kernel and problem.kernel)
    P, D = exact.primal(solution.w, solution.b), exact.dual(solution.alpha)
    status, tol = solution.status.value, limits["tol"]
    assert not false_claims(solution.certificate, P, D, tol=tol, status=status)


@pytest.mark.parametrize("intercept", INTERCEPTS)
@pytest.mark.parametrize("kernel", [None, Kernel("rbf", gamma=0.3)])
def test_any_point_is_certified(intercept, kernel):
    rng = np.random.default_rng(2)
    data = X[:15], TARGET[:15], 2.0, 0.4, "hinge", intercept
    problem = regression_problem(*data, kernel=kernel)
    exact = exactly(problem, kernel and problem.kernel)
    for share in (0.0, 1.0, 1e-3):
        alpha = 2.0 * rng.random(30) * (rng.random(30) < 0.6)
        w = rng.standard_normal(30 if kernel else 5) * share
        bounds = problem.certify(alpha, w, 0.7)
        b = 0.7 if intercept != "none" else 0.0
        P, D = exact.primal(w, b), exact.dual(alpha)
        assert not false_claims(bounds, P, D)
        assert bounds.primal == pytest.approx(float(P), rel=1e-12)


@pytest.mark.parametrize("intercept", INTERCEPTS)
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("kernel", [None, Kernel("rbf", gamma=0.3)])
def test_an_optimum_of_zero_is_found(kernel, loss, intercept):
    wide = regression_problem(
        X, TARGET, 1.0, 2.0 * np.abs(TARGET).max(), loss, intercept, kernel=kernel
    )
    solution = solve(wide, tol=1e-10)
    assert solution.status == "solved"
    assert 0.0 <= solution.certificate.primal <= UNDERFLOW
    assert -UNDERFLOW <= solution.certificate.dual <= 0.0
    assert solution.certificate.relative_gap <= 1e-10
    assert not solution.alpha.any()
    if intercept == "free":
        flat = regression_problem(
            X, np.full(len(X), 3.7), 1e3, 0.0, loss, intercept, kernel=kernel
        )
        solution = solve(flat, tol=1e-8)
        assert solution.status == "solved"
        assert solution.b == pytest.approx(3.7, rel=1e-7)


# -- margins at large ------------------------------------------------------------------


@product(
    loss=LOSSES, intercept=INTERCEPTS, margins=["scale", "any"], kernel=[False, True]
)
def test_margins_of_a_classification(loss, intercept, margins, kernel):
    """With q = s everywhere (w, b) is s times that of q = 1 and another C."""
    y = np.where(np.median(TARGET) < TARGET, 1, -1)
    options = {"kernel": Kernel("linear")} if kernel else {}
    if margins == "scale":
        plain = Problem(X, y, 0.25, loss, intercept, **options)
        C = 0.25 * 8.0 if loss == "hinge" else 0.25
        scaled = Problem(X, y, C, loss, intercept, q=8.0, **options)
        one, other = solve(plain, tol=1e-10), solve(scaled, tol=1e-10)
        primal = 64.0 * one.certificate.primal
        assert other.certificate.primal == pytest.approx(primal, rel=1e-9)
        return
    q = np.random.default_rng(5).uniform(-1.0, 2.0, len(y))
    solution = solve(Problem(X, y, 3.0, loss, intercept, q=q, **options), tol=1e-9)
    exact = Exact(X, y, np.full(len(y), 3.0), loss, intercept, options.get("kernel"))
    exact = Exact(**(vars(exact) | {"q": q}))
    P, D = exact.primal(solution.w, solution.b), exact.dual(solution.alpha)
    assert solution.status == "solved"
    assert not false_claims(solution.certificate, P, D, tol=1e-9, status="solved")


def test_margins_that_are_none_are_refused():
    y = np.where(TARGET > 0, 1, -1)
    with pytest.raises(ValueError, match="q must have length 120"):
        Problem(X, y, q=np.ones(3))
    with pytest.raises(ValueError, match="q must hold finite numbers"):
        Problem(X, y, q=np.nan)


@pytest.mark.parametrize(
    ("solver", "loss", "intercept", "kernel"),
    [
        (ActiveSet(mode="asvm"), "squared_hinge", "penalized", None),
        (InteriorPoint(mode="published"), "hinge", "free", None),
        (InteriorPoint(mode="damped"), "hinge", "free", None),
        (IRWLS(inner="published"), "hinge", "free", Kernel("rbf", gamma=1.0)),
        (FrankWolfe(), "squared_hinge", "none", Kernel("rbf", gamma=1.0)),
    ],
)
def test_published_modes_are_for_classification(solver, loss, intercept, kernel):
    problem = regression_problem(X, TARGET, 1.0, 0.1, loss, intercept, kernel=kernel)
    with pytest.raises(ValueError, match="classification problems only"):
        solve(problem, solver)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("intercept", INTERCEPTS)
def test_a_band_and_a_sample_of_tall_data(loss, intercept):
    X, t = friedman(30_000, 3, seed=4)
    problem = regression_problem(as_rows(X), t, 1.0, 0.3, loss, intercept)
    solution = solve(problem, tol=1e-8)
    best = solve(problem, "interior_point", tol=1e-8)
    assert solution.status == best.status == "solved"
    primal = best.certificate.primal
    assert solution.certificate.primal == pytest.approx(primal, rel=2e-8)
    assert solution.trace[-1].sweeps < 60
