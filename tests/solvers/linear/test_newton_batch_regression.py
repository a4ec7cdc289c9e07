"""Small linear regressions in one call: the answers, their bounds, and who takes it."""

import numpy as np
import pytest
from scipy import sparse

from tests.cases.pairwise import product
from tests.cases.regression import friedman
from tests.certificates.exact import Exact, false_claims
from tests.conftest import INTERCEPTS, LOSSES
from widemargin import SVR, LinearSVR, _core, solve
from widemargin.losses.pointwise import LOSSES as POINTWISE
from widemargin.problems.many_linear import ManyLinearProblems
from widemargin.problems.regression import (
    coefficients,
    margins,
    regression_problem,
)
from widemargin.solvers.driver.limits import Limits
from widemargin.solvers.linear.batch import INTERCEPTS as CODES
from widemargin.solvers.linear.batch import solve_many_linear

X, TARGET = friedman(120)
NAMES = {"epsilon_insensitive": "hinge", "squared_epsilon_insensitive": "squared_hinge"}


def many(X, target, C, epsilon, loss, intercept, labels=1.0):
    """One regression, as a problem of several."""
    C, y = (np.array(np.broadcast_to(v, len(X))) for v in (C, labels))
    q = np.concatenate([y * target - epsilon, -y * target - epsilon])[np.newaxis]
    y, C = y[np.newaxis], C[np.newaxis]
    return ManyLinearProblems(X, y, C, POINTWISE[loss], intercept, q)


@product(
    loss=LOSSES,
    intercept=INTERCEPTS,
    C=[1e-6, 1e-2, 1.0, 1e2],
    epsilon=[0.0, 0.3, 4.0],
    scale=[1e-3, 1.0, 1e4],
    offset=[0.0, 50.0],
)
def test_answers_are_the_optima(loss, intercept, C, epsilon, scale, offset):
    weights = C * np.random.default_rng(0).uniform(0.5, 2.0, len(X))
    target = scale * (TARGET + offset)
    given = X, target, weights, scale * epsilon, loss, intercept
    problem = regression_problem(*given)
    (found,) = solve_many_linear(many(*given), Limits(tol=1e-6), 1)
    best = solve(problem, "interior_point", tol=1e-9).certificate
    assert found.status == "solved"
    assert best.dual <= found.certificate.primal <= best.primal * (1 + 1e-6)
    assert np.all(np.minimum(*np.split(found.alpha, 2)) == 0.0)
    same = problem.certify(found.alpha, found.w, found.b)
    off = 2 * (found.certificate.rounding + same.rounding)  # it may go up, too
    assert off <= 1e-6 * best.primal
    close = {"rel": 1e-12, "abs": off}
    assert found.certificate.primal == pytest.approx(same.primal, **close)
    assert found.certificate.dual == pytest.approx(same.dual, **close)
    assert found.certificate.scale == same.scale


@product(loss=LOSSES, intercept=INTERCEPTS)
def test_signs_of_the_first_rows_change_nothing(loss, intercept):
    given, tol = (X, TARGET, 1.0, 0.3, loss, intercept), 1e-8
    signs = np.random.default_rng(0).choice([-1.0, 1.0], len(X))
    (plain,) = solve_many_linear(many(*given), Limits(tol=tol), 1)
    (other,) = solve_many_linear(many(*given, signs), Limits(tol=tol), 1)
    np.testing.assert_allclose(other.w, plain.w, rtol=1e-4)
    c = signs * coefficients(other.alpha)
    np.testing.assert_allclose(c, coefficients(plain.alpha), atol=1e-3)


@product(loss=LOSSES, intercept=INTERCEPTS)
def test_bounds_are_those_of_the_problem_far_from_the_answer(loss, intercept):
    given, rng = (X, TARGET, 1.0, 0.3, loss, intercept), np.random.default_rng(1)
    alpha = rng.uniform(0.1, 0.9, 2 * len(X))
    if intercept == "free":
        alpha[len(X) :] = rng.permutation(alpha[: len(X)])
    w, b = rng.normal(size=X.shape[1]), float(rng.normal()) * (intercept != "none")
    problem = regression_problem(*given)
    same = problem.certify(alpha, w, b)
    (bound,) = many(*given).certificates(
        alpha[np.newaxis], w[np.newaxis], np.array([b])
    )
    assert bound.primal == pytest.approx(same.primal, rel=1e-12)
    assert bound.dual == pytest.approx(same.dual, rel=1e-11)
    wrong = alpha.copy()
    wrong[-1] = -1e-300
    (bound,) = many(*given).certificates(
        wrong[np.newaxis], w[np.newaxis], np.array([b])
    )
    assert bound.dual == -np.inf


@pytest.mark.parametrize("seed", range(60))
def test_no_certificate_is_false(seed):
    rng = np.random.default_rng(seed)
    m, n = rng.integers(2, 20), rng.integers(1, 4)
    X = rng.standard_normal((m, n)) * 10.0 ** rng.uniform(-3, 3)
    X = X + rng.choice([0.0, 1.0, 1e4])
    t = rng.standard_normal(m) * 10.0 ** rng.uniform(-4, 4)
    t = rng.choice([t, np.full(m, t[0]), np.zeros(m), t + 1e6, X[:, 0]])
    epsilon = float(rng.choice([0.0, 1e-3, 0.1, 10.0]) * max(np.abs(t).max(), 1e-3))
    C = 10.0 ** rng.uniform(-6, 6) * (1.0 + rng.integers(0, 3, m))
    form = str(rng.choice(LOSSES)), str(rng.choice(INTERCEPTS))
    tol = float(10.0 ** rng.uniform(-9, -2))
    one = many(X, t, C, epsilon, *form)
    (found,) = solve_many_linear(one, Limits(tol=tol, time_limit=5.0), 1)
    y, q = np.repeat(np.array([1, -1]), m), margins(t, epsilon)
    exact = Exact(np.concatenate([X, X]), y, np.tile(C, 2), *form, q=q)
    near = found.alpha * (1.0 - 10.0 ** rng.uniform(-16, -1) * rng.random(2 * m))
    far, off = (10.0 ** rng.uniform(-16, 0) * v + v for v in (found.w, found.b))
    (moved,) = one.certificates(near[np.newaxis], far[np.newaxis], np.array([off]))
    points = [(found.alpha, found.w, found.b, found.certificate, found.status.value)]
    for alpha, w, b, bounds, status in [*points, (near, far, off, moved, "point")]:
        P, D = exact.primal(w, b), exact.dual(alpha)
        assert not false_claims(bounds, P, D, tol=tol, status=status)


@product(loss=LOSSES, intercept=INTERCEPTS, simd=_core.simd_levels())
def test_every_instruction_set_finds_the_answers(loss, intercept, simd):
    one, tol = many(X, TARGET - TARGET.mean(), 7.0, 0.3, loss, intercept), 1e-7
    alpha, steps = np.zeros((1, 2 * len(X))), np.zeros(1, np.int64)
    n = X.shape[1]
    v = np.zeros((1, n + (intercept != "none")))
    form = loss == "squared_hinge", CODES[intercept]
    given = one.X, one.y, one.C, *form, tol, 300, 1, lambda: False
    assert not _core.newton_batch(*given, alpha, v, steps, simd, one.q)
    b = v[:, n] if intercept != "none" else np.zeros(1)
    (bounds,) = one.certificates(alpha, v[:, :n].copy(), b)
    assert bounds.relative_gap <= tol


def test_margins_that_do_not_fit_are_refused():
    one = many(X, TARGET, 1.0, 0.3, "hinge", "none")
    v, steps = np.zeros((1, X.shape[1])), np.zeros(1, np.int64)
    given = one.X, one.y, one.C, False, 0, 1e-3, 9, 1, lambda: False
    for alpha, q in (
        (np.zeros((1, len(X))), one.q),
        (np.zeros((1, 2 * len(X))), None),
        (np.zeros((1, 2 * len(X))), one.q[:, 1:].copy()),
        (np.zeros((1, 2 * len(X))), np.tile(one.q, (2, 1))),
    ):
        with pytest.raises(ValueError, match="do not fit"):
            _core.newton_batch(*given, alpha, v, steps, -1, q)


@product(
    stored=[np.asarray, np.asfortranarray, sparse.csr_array],
    dtype=[float, np.float32, int],
    loss=list(NAMES),
    intercept=INTERCEPTS,
)
def test_linear_svr_takes_it(stored, dtype, loss, intercept):
    rows = stored(np.rint(4 * X).astype(dtype))
    weights = np.random.default_rng(7).integers(0, 3, len(X)).astype(float)
    form = {"loss": loss, "intercept": intercept, "epsilon": 0.3, "tol": 1e-6}
    reg = LinearSVR(**form).fit(rows, TARGET, weights)
    other = LinearSVR(**form, solver="interior_point").fit(rows, TARGET, weights)
    assert reg.solution_.solver == "batch"
    assert reg.status_ == "solved"
    np.testing.assert_allclose(reg.coef_, other.coef_, rtol=0.05, atol=0.01)
    np.testing.assert_allclose(reg.predict(rows), other.predict(rows), atol=0.05)
    alpha = reg.solution_.alpha
    assert alpha.shape == (2 * len(X),)
    assert not alpha[np.tile(weights == 0, 2)].any()
    problem = regression_problem(rows, TARGET, weights, 0.3, NAMES[loss], intercept)
    bounds = problem.certify(alpha, reg.coef_, float(reg.intercept_[0]))
    assert bounds.relative_gap <= 2e-6


def test_others_go_to_other_solvers(monkeypatch):
    assert SVR(kernel="linear").fit(X, TARGET).solution_.solver == "batch"
    for options in ({"max_iter": 50}, {"memory_limit": 16_384}, {"tol": 1e-9}):
        reg = LinearSVR(C=100.0, **options).fit(X, TARGET)
        assert reg.solution_.solver == "augmented_lagrangian"
        assert reg.status_ == "solved"
    monkeypatch.setattr("widemargin.solvers.linear.batch.MOST_STEPS", 1)
    form = {"loss": "squared_epsilon_insensitive", "epsilon": 0.3, "tol": 1e-6}
    reg = LinearSVR(**form).fit(X, TARGET)
    assert (reg.status_, reg.solution_.solver) == ("solved", "interior_point")


@pytest.mark.parametrize("C", [0.1, 100.0])
@pytest.mark.parametrize("loss", ["epsilon_insensitive", "squared_epsilon_insensitive"])
def test_more_columns_than_rows_are_solved_by_products(C, loss):
    rng = np.random.default_rng(0)
    few, target = rng.normal(size=(40, 60)), rng.normal(size=40)
    reg = LinearSVR(C=C, loss=loss, tol=1e-5).fit(few, target)
    other = LinearSVR(C=C, loss=loss, tol=1e-9).fit(few, target)
    assert (reg.solution_.solver, reg.status_) == ("batch", "solved")
    assert other.solution_.solver != "batch"
    primal = other.solution_.certificate.primal
    assert reg.solution_.certificate.dual <= primal
    assert reg.solution_.certificate.primal == pytest.approx(primal, rel=1e-5)


def test_not_a_number_is_refused():
    wrong = X.copy()
    wrong[7, 2] = np.nan
    with pytest.raises(ValueError, match="NaN"):
        LinearSVR().fit(wrong, TARGET)
