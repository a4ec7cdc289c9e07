"""Problems with a linear term, and with a sum of alpha, in the batch engine."""

import functools

import numpy as np
import pytest
from sklearn.svm import SVR, NuSVC, NuSVR, OneClassSVM

from tests.cases.family_reference import conic_optimum
from tests.cases.kernels import plain
from tests.cases.many import (
    nu_classes,
    nu_regression,
    one_class,
    one_problem,
    regression,
)
from tests.cases.pairwise import product
from tests.conftest import SETTINGS
from widemargin import Kernel, _core
from widemargin.losses.pointwise import LOSSES
from widemargin.solvers.driver.limits import Limits
from widemargin.solvers.kernel import batch
from widemargin.solvers.kernel.batch import solve_many, solve_places

RBF = Kernel("rbf", gamma=0.4)
MEMORY = 1 << 28
# What a conic solver is asked for, and so how exact its answer is.
EXACT = 1e-8


def data(m, n=4, seed=0):
    """Rows, targets, labels that overlap, and weights."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(m, n))
    t = 2.0 * X[:, 0] + rng.normal(size=m)
    return X, t, np.where(t + rng.normal(size=m) > 0, 1.0, -1.0), rng.uniform(0.2, 3, m)


def any_q(m, C=1.0, **form):
    """Two classes with numbers q of either sign."""
    X, _, y, weights = data(m)
    q = np.random.default_rng(1).normal(size=m)
    return X, one_problem(X, y, RBF, q, C * weights, **form)


def one_sign(m, C=1.0, **form):
    """Rows of one class, each with a q of its own."""
    X, t, _, weights = data(m)
    return X, one_problem(X, np.ones(m), RBF, np.abs(t), C * weights, **form)


def doubled(m, C=1.0, epsilon=0.1, **form):
    """Regression; with epsilon < 0 every row has a loss on one side at least."""
    X, t, _, weights = data(m)
    return X, regression(X, t, RBF, epsilon, C * weights, **form)


def uneven(m, C=1.0, **form):
    """Rows twice whose two weights differ."""
    X, problems = doubled(m, C, **form)
    problems.C[:m:3] *= 0.5
    return X, problems


def answer(problems, **limits):
    (found,) = solve_many(problems, Limits(**limits), MEMORY, 1)
    return found


def check_bounds(problems, X, tol):
    """It is solved, and its bounds hold the optimum of a conic solver."""
    low, high = conic_optimum(problems, X, RBF)
    found = answer(problems, tol=tol)
    size = max(abs(low), found.certificate.scale)
    assert high - low <= EXACT * size
    assert found.status == "solved"
    assert found.certificate.relative_gap <= tol
    assert found.certificate.dual <= high + EXACT * size
    assert found.certificate.primal >= low - EXACT * size
    return found


FORMS = {
    "any": any_q,
    "doubled": doubled,
    "uneven": uneven,
    "narrow": functools.partial(doubled, epsilon=0.0),
}


@product(form=tuple(FORMS), setting=SETTINGS, m=[9, 50, 150], C=[1e-6, 1e-3, 1.0, 30.0])
def test_any_linear_term_is_solved(form, setting, m, C):
    X, problems = FORMS[form](m, C, loss=setting[0], intercept=setting[1])
    check_bounds(problems, X, 1e-5)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(("loss", "intercept"), SETTINGS)
def test_few_rows_are_solved_to_the_last_digits(form, loss, intercept):
    X, problems = FORMS[form](30, loss=loss, intercept=intercept)
    found = check_bounds(problems, X, 1e-5)
    assert found.certificate.relative_gap <= EXACT


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("intercept", ["penalized", "none"])
def test_one_class_with_a_linear_term(loss, intercept):
    X, problems = one_sign(80, loss=loss, intercept=intercept)
    check_bounds(problems, X, 1e-5)


def test_epsilon_below_zero_is_no_kink():
    X, problems = doubled(40, epsilon=-0.2)
    found = check_bounds(problems, X, 1e-5)
    places = solve_places(problems, Limits(tol=1e-5), MEMORY, 1)
    both = (places.c[:40] > 0) & (places.c[40:] < 0)
    assert both.any()
    assert found.certificate.primal > 0


NU = {"one_class": one_class, "classes": nu_classes, "regression": nu_regression}


def nu_problem(form, m, nu, loss="hinge"):
    X, t, y, weights = data(m)
    second = {"one_class": (), "classes": (y,), "regression": (t,)}[form]
    problems = NU[form](X, *second, RBF, nu, weights)
    object.__setattr__(problems, "loss", LOSSES[loss])
    return X, problems


@product(form=tuple(NU), loss=tuple(LOSSES), m=[12, 50, 150], nu=[0.2, 0.5, 0.7])
def test_sums_of_alpha_are_what_is_asked_for(form, loss, m, nu):
    X, problems = nu_problem(form, m, nu, loss)
    check_bounds(problems, X, 1e-4)
    found = solve_places(problems, Limits(tol=1e-4), MEMORY, 1)
    alpha, mass = problems.y * found.c, problems.mass[0]
    if form == "one_class":
        assert alpha.sum() == pytest.approx(mass, rel=1e-12)
        assert found.b[0] == 0.0
    else:
        for sign in (-1.0, 1.0):
            half = alpha[problems.y == sign].sum()
            assert half == pytest.approx(0.5 * mass, rel=1e-12)


def test_all_of_alpha_at_its_bound():
    X, _, _, _ = data(100)
    found = answer(one_class(X, RBF, 1.0), tol=1e-4)
    assert found.status == "solved"
    assert found.alpha.tolist() == [1.0] * 100


def test_more_than_all_of_alpha_proves_nothing():
    X, _, _, _ = data(100)
    found = answer(one_class(X, RBF, 1.1))
    assert found.status == "stalled"
    assert found.certificate.dual == -np.inf


@pytest.mark.parametrize("C", [0.5, 20.0])
@pytest.mark.parametrize("m", [60, 300])
def test_regression_is_that_of_scikit_learn(m, C):
    X, t, _, _ = data(m)
    peer = SVR(gamma=0.4, C=C, epsilon=0.1, tol=1e-10).fit(X, t)
    found = answer(regression(X, t, RBF, 0.1, C), tol=1e-4)
    c, rows = peer.dual_coef_[0], peer.support_
    square = c @ plain(RBF, X[rows], X[rows]) @ c
    losses = C * np.maximum(np.abs(t - peer.predict(X)) - 0.1, 0.0).sum()
    dual = t[rows] @ c - 0.1 * np.abs(c).sum() - 0.5 * square
    assert found.status == "solved"
    assert found.certificate.dual <= (0.5 * square + losses) * (1.0 + EXACT)
    assert found.certificate.primal >= dual * (1.0 - EXACT)
    assert found.certificate.dual == pytest.approx(dual, rel=2e-4)
    assert found.b == pytest.approx(peer.intercept_[0], abs=1e-2)


def test_working_sets_go_on_where_float32_is_too_rough():
    X, t, *_ = data(2000, 8)
    problem = regression(X, t, Kernel("rbf", gamma=1 / 8), 0.1, np.full(2000, 100.0))
    (solution,) = solve_many(problem, Limits(tol=1e-5), MEMORY, 1)
    assert solution.status.value == "solved"


@pytest.mark.parametrize("m", [60, 300])
def test_one_class_is_that_of_scikit_learn(m):
    X, _, _, weights = data(m)
    peer = OneClassSVM(gamma=0.4, nu=0.3, tol=1e-10).fit(X, sample_weight=weights)
    c = peer.dual_coef_[0]
    found = answer(one_class(X, RBF, 0.3, weights), tol=1e-5)
    K = plain(RBF, X[peer.support_], X[peer.support_])
    dual = -0.5 * c @ K @ c
    assert c.sum() == pytest.approx(found.alpha.sum())
    assert found.certificate.dual <= dual + EXACT * abs(dual)
    assert found.certificate.primal >= dual - EXACT * abs(dual)
    assert found.rho == pytest.approx(-peer.intercept_[0], rel=1e-3)


@pytest.mark.parametrize("m", [60, 300])
def test_nu_classes_are_those_of_scikit_learn(m):
    X, _, y, _ = data(m)
    peer = NuSVC(gamma=0.4, nu=0.5, tol=1e-10).fit(X, y)
    # It divides by rho in the end; its objective is that of the scaled problem.
    problems = nu_classes(X, y, RBF, 0.5)
    found = answer(problems, tol=1e-5)
    rho, order = found.rho, np.argsort(problems.rows, kind="stable")
    f = plain(RBF, X, X[problems.rows[order]]) @ found.w + found.b
    assert f / rho == pytest.approx(peer.decision_function(X), abs=0.02)
    c = np.zeros(m)
    c[peer.support_] = rho * peer.dual_coef_[0]
    dual = -0.5 * c @ plain(RBF, X, X) @ c
    assert dual == pytest.approx(found.certificate.dual, rel=0.01)


@pytest.mark.parametrize("m", [60, 300])
def test_nu_regression_is_that_of_scikit_learn(m):
    X, t, _, _ = data(m)
    peer = NuSVR(gamma=0.4, nu=0.4, C=2.0, tol=1e-10).fit(X, t)
    found = answer(nu_regression(X, t, RBF, 0.4, 2.0), tol=1e-5)
    c = peer.dual_coef_[0]
    K = plain(RBF, X[peer.support_], X[peer.support_])
    dual = t[peer.support_] @ c - 0.5 * c @ K @ c
    assert found.certificate.dual <= dual * (1.0 + EXACT)
    assert found.certificate.primal >= dual * (1.0 - EXACT)
    assert found.b == pytest.approx(peer.intercept_[0], abs=1e-2)


def test_nu_regression_of_many_columns_is_proved():
    # Any targets have a function without a loss: alpha of both signs of a row is far
    # larger than its coefficient, by which errors of scores are counted.
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 20_000))
    t = X[:, :5].sum(axis=1) + rng.normal(size=80)
    problems = nu_regression(X, t, Kernel("linear", gamma=1.0), 0.5)
    found = solve_places(problems, Limits(tol=1e-4), MEMORY, 1)
    assert found.solved(1e-4).all()
    assert found.proofs[0, 3] <= 1e-6 * found.proofs[0, 0]


@pytest.mark.parametrize("simd", _core.simd_levels())
@pytest.mark.parametrize("form", [*FORMS, *NU])
def test_threads_change_no_bit(form, simd, monkeypatch):
    monkeypatch.setattr(batch, "SHARED_WORK", 0)
    solve_batch = functools.partial(_core.solve_batch, simd=simd)
    monkeypatch.setattr(_core, "solve_batch", solve_batch)
    _, problems = FORMS[form](90) if form in FORMS else nu_problem(form, 90, 0.4)
    one, other = [solve_places(problems, Limits(), MEMORY, k) for k in (1, 2)]
    assert one.c.tolist() == other.c.tolist()
    assert (one.b, one.rho) == (other.b, other.rho)
    assert one.proofs.tolist() == other.proofs.tolist()


@pytest.mark.parametrize("scale", [1e-6, 1e6])
@pytest.mark.parametrize("offset", [0.0, 1e3])
def test_targets_of_any_size_and_level(scale, offset):
    X, t, _, _ = data(200)
    t = t + offset
    base = answer(regression(X, t, RBF, 0.1, 3.0), tol=1e-4)
    C, t, epsilon = 3.0 * scale, t * scale, 0.1 * scale
    found = answer(regression(X, t, RBF, epsilon, C), tol=1e-4)
    assert base.status == found.status == "solved"
    primal = found.certificate.primal / scale**2
    assert primal == pytest.approx(base.certificate.primal, rel=2e-4)


@pytest.mark.parametrize("epsilon", [0.0, 0.5, 1.0])
@pytest.mark.parametrize("C", [1e-3, 0.1, 1.0])
def test_intercepts_where_losses_begin_at_one_place(epsilon, C):
    X, t, _, _ = data(80)
    found = answer(regression(X, np.round(t), RBF, epsilon, C), tol=1e-8)
    assert found.status == "solved"
    f = plain(RBF, X, X) @ (found.w[:80] + found.w[80:])
    losses = [
        np.maximum(np.abs(np.round(t) - f - b) - epsilon, 0.0).sum()
        for b in found.b + np.array([0.0, -1e-3, 1e-3])
    ]
    assert losses[0] <= min(losses) * (1.0 + 1e-6)


def test_a_level_that_all_rows_have_costs_nothing():
    # The optimum is zero: the gap is relative to a floor.
    X, _, _, _ = data(80)
    found = answer(regression(X, np.full(80, 7.0), RBF, 0.1))
    assert found.status == "solved"
    assert found.certificate.primal <= 1e-12
    assert found.certificate.scale > 0.0
    assert found.b == pytest.approx(7.0, abs=0.1)


@pytest.mark.parametrize("form", NU)
def test_a_chain_along_C_keeps_its_sums(form):
    X, problems = nu_problem(form, 60, 0.3)
    twice = type(problems)(
        problems.samples,
        np.tile(problems.groups, 2),
        np.array([1, 2]) * len(problems.groups),
        np.array([1, 2]) * len(problems.y),
        np.tile(problems.y, 2),
        np.append(problems.C, 2.0 * problems.C),
        problems.loss,
        problems.intercept,
        np.array([-1, 0]),
        np.tile(problems.data[2], 2),
        problems.mass[0] * np.array([1.0, 2.0]),
    )
    found = solve_many(twice, Limits(tol=1e-4), MEMORY, 1)
    assert [one.status for one in found] == ["solved"] * 2
    assert found[1].alpha.sum() == pytest.approx(2.0 * problems.mass[0])


def test_the_core_refuses_sums_that_it_cannot_keep():
    X, t, y, _ = data(20)
    for intercept in ("none", "penalized"):  # of two classes, or with a shift
        problems = one_problem(X, y, RBF, t, intercept=intercept, mass=3.0)
        with pytest.raises(ValueError, match="do not fit"):
            answer(problems)
