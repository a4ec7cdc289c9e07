"""Problems whose sum of alpha is given, by working sets: Clarabel, and what is refused."""

import dataclasses
from fractions import Fraction

import numpy as np
import pytest

from tests.cases.family_reference import conic_optimum
from tests.cases.many import nu_classes, nu_regression, one_class
from tests.cases.pairwise import product
from widemargin import Kernel, Problem, solve
from widemargin.data.doubled import DoubledRows
from widemargin.data.memory import as_rows
from widemargin.losses.pointwise import LOSSES
from widemargin.problems import sums
from widemargin.solvers.driver.limits import Limits
from widemargin.solvers.kernel.batch import solve_many

RBF = Kernel("rbf", gamma=0.4)
EXACT = 1e-8


def data(m, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(m, 4))
    t = 2.0 * X[:, 0] + rng.normal(size=m)
    return X, t, np.where(t + rng.normal(size=m) > 0, 1.0, -1.0), rng.uniform(0.2, 3, m)


def both(form, m, nu, loss="hinge"):
    """The same problem for the batch engine and for working sets."""
    X, t, y, weights = data(m)
    if form == "one_class":
        many, given = one_class(X, RBF, nu, weights), (X, np.ones(m), weights, 0.0)
    elif form == "classes":
        many, given = nu_classes(X, y, RBF, nu, weights), (X, y, weights, 0.0)
    else:
        many = nu_regression(X, t, RBF, nu, weights)
        labels = np.repeat([1, -1], m)
        rows = DoubledRows(as_rows(X))
        given = rows, labels, np.tile(weights, 2), np.append(t, -t)
    intercept, (rows, labels, C, q) = many.intercept, given
    options = {"q": q, "kernel": RBF, "mass": many.mass[0]}
    problem = Problem(rows, labels, C, loss, intercept, **options)
    return X, dataclasses.replace(many, loss=LOSSES[loss]), problem


FORMS = ("one_class", "classes", "regression")


@product(form=FORMS, loss=tuple(LOSSES), m=[20, 90, 300], nu=[0.1, 0.4, 0.7])
def test_working_sets_find_the_optimum(form, loss, m, nu):
    X, many, problem = both(form, m, nu, loss)
    low, high = conic_optimum(many, X, RBF)
    found = solve(problem, tol=EXACT)
    assert high - low <= EXACT * abs(low)
    assert found.status == "solved"
    assert found.certificate.dual <= high + EXACT * abs(low)
    assert found.certificate.primal >= low - EXACT * abs(low)
    assert found.alpha.sum() == pytest.approx(problem.mass, rel=1e-12)


@pytest.mark.parametrize("nu", [0.3, 0.45, 1.0])
def test_both_coefficients_of_a_sample_may_stay(nu):
    # With equal C both start at their bounds: to cancel them would change their sum.
    X, t, _, _ = data(160)
    labels, rows = np.repeat([1, -1], 160), DoubledRows(as_rows(X))
    options = {"q": np.append(t, -t), "kernel": RBF, "mass": nu * 160.0}
    found = solve(Problem(rows, labels, 1.0, "hinge", "free", **options), tol=1e-8)
    assert found.status == "solved"


@pytest.mark.parametrize("tol", [1e-4, 1e-8])
@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e3])
@pytest.mark.parametrize("form", ["one_class", "classes", "one_row"])
def test_an_optimum_of_zero_is_proved_to_the_floor(form, scale, tol):
    # The origin, or the other class, is in the middle of the rows.
    X = scale * np.vstack([data(60)[0], -data(60)[0]])
    y = np.ones(120) if form == "one_class" else np.tile([1.0, -1.0], 60)
    if form == "one_row":
        X, y = np.zeros((3, 2)), np.ones(3)
    free = "free" if form == "classes" else "none"
    options = {"q": 0.0, "kernel": Kernel("linear", gamma=1.0), "mass": 0.5 * len(y)}
    problem = Problem(X, y, 1.0, "hinge", free, **options)
    squares = (X**2).sum(axis=1)
    floor = 1e-10 * (0.5 * len(y)) ** 2 * squares.max()
    assert problem.scale == pytest.approx(max(floor, 1e-200), rel=1e-12)
    found = solve(problem, tol=tol)
    assert found.status == "no_margin"
    assert found.certificate.primal == 0.0
    assert found.certificate.gap <= tol * problem.scale
    w = (found.alpha * y) @ X
    assert 0.5 * w @ w <= tol * problem.scale * (1.0 + 1e-9) + 1e-300


@pytest.mark.parametrize("form", FORMS)
def test_both_engines_agree(form):
    X, many, problem = both(form, 150, 0.4)
    (one,) = solve_many(many, Limits(tol=1e-5), 1 << 28, 1)
    other = solve(problem, tol=1e-7)
    assert one.b == pytest.approx(other.b, abs=0.02)
    assert one.rho == pytest.approx(other.rho, rel=0.02)
    assert one.certificate.dual <= other.certificate.primal
    assert one.certificate.primal >= other.certificate.dual


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("loss", LOSSES)
def test_bounds_hold_at_any_point(form, loss):
    _, _, problem = both(form, 60, 0.4, loss)
    best = solve(problem, tol=1e-9).certificate
    rng = np.random.default_rng(0)
    for size in (0.0, 1e-3, 1.0, 30.0):
        alpha = size * rng.random(problem.shape[0])
        bounds = problem.certify(alpha, problem.y * alpha, rng.normal())
        assert bounds.primal >= best.dual
        assert bounds.dual <= best.primal


@pytest.mark.parametrize("loss", LOSSES)
def test_a_level_is_where_the_sum_is_reached(loss):
    rng = np.random.default_rng(0)
    g, C = rng.normal(size=50), rng.uniform(0.1, 2.0, 50)
    own, total = LOSSES[loss], 0.3 * C.sum()

    def value(r):
        return own.total(C, g + r) - total * r

    best = sums.level(g, C, total, own)
    assert value(best) <= min(value(best - 1e-3), value(best + 1e-3)) + 1e-12


def test_sums_are_made_right_or_nothing_is():
    C, alpha, hinge = np.ones(4), np.array([1.0, 0.5, 0.0, 0.5]), LOSSES["hinge"]
    assert sums.change(alpha, C, 2.0, hinge).tolist() == [0.0] * 4
    more = sums.change(alpha, C, 2.1, hinge)
    assert more == pytest.approx([0.0, 0.05, 0.0, 0.05], rel=1e-5)
    assert sums.change(alpha, C, 1.8, hinge) == pytest.approx(0.1 * alpha, rel=1e-5)
    assert np.isinf(sums.change(alpha, C, 3.5, hinge)).all()
    at_bounds = sums.change(np.array([1.0, 0.0, 1.0, 0.0]), C, 2.0 + 4e-16, hinge)
    assert 4e-16 <= at_bounds.sum() <= 5e-16
    assert at_bounds[0] == at_bounds[2] == 0.0
    assert sums.filled(C, 2.5, hinge).sum() == pytest.approx(2.5)


def test_what_a_sum_lacks_is_exact():
    rng = np.random.default_rng(0)
    for size in (0, 1, 2, 30):
        for _ in range(50):
            alpha = rng.normal(size=size) * 10.0 ** rng.uniform(-20, 20, size)
            total = float(alpha.sum()) * (1.0 + rng.choice([0.0, 1e-15]))
            lack = Fraction(total) - sum(map(Fraction, alpha.tolist()))
            assert sums.missing(alpha, total) == float(lack)
    # Half way between two numbers.
    assert sums.missing(np.array([-(2.0**-53)]), 1.0) == 1.0
    assert sums.missing(np.array([-(2.0**-53), -1e-30]), 1.0) == 1.0 + 2.0**-52
    assert sums.missing(np.array([2.0**-54, 1e-30]), 1.0) == 1.0 - 2.0**-53


@pytest.mark.parametrize("loss", LOSSES)
def test_a_start_has_its_sum_in_few_rows(loss):
    C, own = np.random.default_rng(0).uniform(0.1, 2.0, 50), LOSSES[loss]
    alpha = sums.filled(C, 8.0, own)
    assert alpha.sum() == pytest.approx(8.0, rel=1e-14)
    assert (alpha >= 0.0).all()
    room = C if own.is_bounded else C * (16.0 / C.sum())
    between = (alpha > 0.0) & (alpha < (1.0 - 1e-12) * room)
    assert np.count_nonzero(between) <= 1
    order = np.argsort(np.arange(50) * 0.5 * (5.0**0.5 - 1.0) % 1.0)
    assert (np.diff((alpha > 0.0)[order].astype(int)) <= 0).all()  # the first of these


def test_what_cannot_be_is_refused():
    X, _, y, _ = data(20)
    ones, options = np.ones(20), {"kernel": RBF}
    with pytest.raises(ValueError, match="'mass' .* at most 20"):
        Problem(X, ones, intercept="none", mass=21.0, **options)
    rarer = 2.0 * min((y > 0).sum(), (y < 0).sum())
    with pytest.raises(ValueError, match=f"'mass' .* at most {rarer:g}"):
        Problem(X, y, intercept="free", mass=rarer + 1.0, **options)
    with pytest.raises(ValueError, match="'mass'"):
        Problem(X, ones, intercept="none", mass=-1.0, **options)
    with pytest.raises(ValueError, match="'y'"):
        Problem(X, y, intercept="none", mass=1.0, **options)
    with pytest.raises(ValueError, match="'intercept'"):
        Problem(X, y, intercept="penalized", mass=1.0, **options)
    with pytest.raises(TypeError, match="'kernel' .* where there is a mass"):
        Problem(X, ones, intercept="none", mass=1.0)


def test_an_optimum_of_zero_is_no_margin():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((40, 2))
    X = np.vstack([X, X])  # the hulls of both classes are one
    y = np.repeat([1, -1], 40)
    options = {"intercept": "free", "kernel": Kernel("linear"), "mass": 2.0}
    solution = solve(Problem(X, y, 0.1, "hinge", **options))
    assert solution.status == "no_margin"
    assert solution.certificate.primal >= 0.0
    assert solution.message.startswith("The optimum is zero. ")
    assert str(solution).startswith("Proved that no margin exists, to")
    apart = solve(Problem(X + 5.0 * y[:, None], y, 0.1, "hinge", **options))
    assert apart.status == "solved"
    assert apart.certificate.primal < 0.0


def test_the_room_of_bounds_is_rounded_down():
    rng = np.random.default_rng(0)
    for _ in range(50):
        C = rng.uniform(0.1, 3.0, 7)
        room, exact = sums.room(C), sum(map(Fraction, C))
        assert Fraction(room) <= exact < Fraction(np.nextafter(room, np.inf))
    assert sums.room(np.full(4, 1e308)) == np.inf
    assert sums.room(np.array([np.inf, 1.0])) == np.inf
