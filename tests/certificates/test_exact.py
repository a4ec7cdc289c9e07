"""The judge of certificates, judged: by closed forms, and by claims made false."""

import math
from dataclasses import replace
from decimal import Decimal, localcontext
from fractions import Fraction
from typing import NamedTuple

import numpy as np
import pytest

from tests.cases.kernel_reference import objectives
from tests.cases.norms import NORMS, case
from tests.certificates.draws import draw
from tests.certificates.dyadic import BITS, Dyadic, exp_minus, root_below
from tests.certificates.exact import Exact, false_claims, false_gap, kernel_matrix
from tests.certificates.exact_ball import ball_bounds
from tests.certificates.exact_norms import exact_norm, room
from widemargin import Kernel, Problem, solve
from widemargin.kernels.table import NAMES
from widemargin.losses import BoundedNorm

# Of sums and square roots.
BOUNDED = [norm for norm in NORMS if isinstance(norm, BoundedNorm)]
NUMBERS = np.array([0.0, 1.0, -3.5, 1e-320, -(2.0**1000), 0.1, 1e-150])


def test_floats_are_held_exactly():
    x, y = Dyadic.of(NUMBERS), Dyadic.of(NUMBERS[::-1])
    exact = [Fraction(v) for v in NUMBERS]
    assert x.fractions() == exact
    assert (x @ y).fraction() == sum(
        a * b for a, b in zip(exact, exact[::-1], strict=True)
    )
    assert (x - y * y).fractions() == [
        a - b * b for a, b in zip(exact, exact[::-1], strict=True)
    ]
    assert x.positive().fractions() == [max(v, 0) for v in exact]
    assert Dyadic.of(np.array([3, -4], np.int32)).fractions() == [3, -4]


def test_exp_is_known_to_far_more_digits_than_float64():
    x = np.r_[
        np.random.default_rng(0).exponential(5.0, 60), 0.0, 1e-300, 255.9, 256.1, 1e300
    ]
    with localcontext(prec=150):
        for v, found in zip(x, exp_minus(Dyadic.of(x)).fractions(), strict=True):
            exact = Fraction((-Decimal(float(v))).exp()) if v < 1e4 else Fraction(0)
            assert abs(found - exact) <= Fraction(1, 2**BITS)


@pytest.mark.parametrize("name", NAMES)
def test_kernel_values_are_those_of_the_formulas(name):
    kernel = Kernel(name, gamma=0.7, degree=3, coef0=0.5)
    X = np.random.default_rng(1).normal(size=(6, 3))
    X = np.abs(X) if kernel.named.is_nonnegative else X
    for Z in (X, X[:4] + 0.1):
        K = kernel_matrix(kernel, X, None if Z is X else Z)
        values = np.array([float(v) for v in K.fractions()]).reshape(K.shape)
        np.testing.assert_allclose(values, kernel(X, Z), rtol=1e-13)


def test_roots_are_rounded_down():
    for x in (Fraction(2), Fraction(1, 10**400), Fraction(10**400), Fraction(9, 4)):
        root = root_below(x)
        assert root**2 <= x
        assert x - root**2 <= x / 2**290
    assert root_below(Fraction(9, 4)) == Fraction(3, 2)


@pytest.mark.parametrize("norm", BOUNDED, ids=str)
def test_norms_are_largest_over_the_dual_set(norm):
    """The library's slope, made feasible exactly, gives nearly as much, and no more."""
    for seed in range(40):
        t, c, _ = case(np.random.default_rng(seed))
        if seed % 2:  # two largest losses
            t = np.minimum(t, np.sort(t)[-2:][0])
        losses = [Fraction(x) for x in np.maximum(t, 0.0)]
        value = exact_norm(norm, losses, c)
        a = [Fraction(x) for x in norm.slope(t, c)]
        inside = room(norm, a, c, 1.0)
        reached = inside * sum(
            (x * y for x, y in zip(a, losses, strict=True)), Fraction(0)
        )
        assert reached <= value * (1 + Fraction(1, 2**280))
        assert float(reached) == pytest.approx(float(value), rel=1e-12)


@pytest.mark.parametrize("intercept", ["free", "penalized", "none"])
@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_one_row_of_each_class_has_a_closed_form(loss, intercept):
    """Rows 1 and -1: w = 1, b = 0 and P = 1/2, as alpha = 1/2 each gives D = 1/2."""
    X, y = np.array([[1.0], [-1.0]]), np.array([1.0, -1.0])
    exact = Exact(X, y, np.full(2, 0.5), loss, intercept)
    assert exact.primal([1.0], 0.0) == Fraction(1, 2)
    assert exact.primal([0.5], 0.25) == {
        ("hinge", "penalized"): Fraction(1, 8) + Fraction(1, 32) + Fraction(1, 2),
        ("squared_hinge", "penalized"): Fraction(1, 8)
        + Fraction(1, 32)
        + Fraction(5, 16),
    }.get(
        (loss, intercept),
        Fraction(1, 8) + (Fraction(1, 2) if loss == "hinge" else Fraction(5, 16)),
    )
    squares = 0 if loss == "hinge" else Fraction(1, 4)
    assert exact.dual([0.5, 0.5]) == Fraction(1, 2) - squares


@pytest.mark.parametrize("intercept", ["free", "penalized", "none"])
@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_objectives_are_those_of_float64_but_for_its_rounding(loss, intercept):
    r = np.random.default_rng(3)
    X, y, C = r.normal(size=(12, 3)), np.repeat([1.0, -1.0], 6), r.uniform(0.5, 2.0, 12)
    alpha, b = np.tile(r.uniform(0.0, 0.5, 6), 2), 0.3  # y'alpha = 0
    for kernel in (None, Kernel("rbf", gamma=0.7), Kernel("laplacian", gamma=0.2)):
        exact = Exact(X, y, C, loss, intercept, kernel)
        K = X @ X.T if kernel is None else kernel(X, X)
        expected = objectives(K, y, C, loss, intercept, alpha, b)
        c = y * alpha
        primal = exact.primal(X.T @ c if kernel is None else c, b)
        assert float(primal) == pytest.approx(expected[0], rel=1e-13)
        assert float(exact.dual(alpha)) == pytest.approx(expected[1], rel=1e-13)


def test_infeasible_points_prove_nothing_more():
    """Clipped, and balanced exactly: 0.75 and 0.5 become 0.5 each."""
    X, y = np.array([[1.0], [-1.0]]), np.array([1.0, -1.0])
    exact = Exact(X, y, np.full(2, 2.0))
    assert exact.dual([0.75, 0.5]) == exact.dual([0.5, 0.5]) == Fraction(1, 2)
    assert exact.dual([-1.0, 0.5]) == 0
    assert exact.dual([0.25, 0.25]) == Fraction(3, 8)
    assert exact.dual([0.25, 0.25], scaled=True) == Fraction(1, 2)
    bounded = replace(exact, C=np.full(2, 0.125))
    assert bounded.dual([7.0, 9.0]) == Fraction(1, 4) - Fraction(1, 32)


def test_ball_of_two_points():
    """Hard: rho = 1 around the middle. Soft, C = 1: rho = 3/4 and P = 7/8."""
    K = Dyadic.of(np.array([[1.0, -1.0], [-1.0, 1.0]]))
    assert ball_bounds(K, [0.5, 0.5]) == (1, 1)
    assert ball_bounds(K, [0.75, 0.75]) == (1, 1)
    assert ball_bounds(K, [0.5, 0.5], np.ones(2)) == (Fraction(7, 8), Fraction(7, 8))
    assert ball_bounds(K, [1.0, 0.0]) == (4, 0)


# -- claims made false -----------------------------------------------------------------


class Told(NamedTuple):
    """What a certificate tells."""

    primal: float
    dual: float
    relative_gap: float
    scale: float = 0.0


def told(primal, dual):
    return Told(primal, dual, (primal - dual) / primal)


@pytest.fixture(scope="module")
def answer():
    """A point whose bounds are apart by 1e-4: P, D, and what is true of them."""
    X = np.random.default_rng(0).normal(size=(20, 2))
    y = np.where(X[:, 0] + 0.5 * X[:, 1] ** 2 > 0.3, 1.0, -1.0)
    kernel = Kernel("rbf", gamma=0.5)
    solution = solve(Problem(X, y, kernel=kernel), tol=1e-3)
    exact = Exact(X, y, np.ones(20), kernel=kernel)
    P = exact.primal(0.999 * solution.w, solution.b)
    D = exact.dual(0.999 * solution.alpha)
    assert 1e-5 < (P - D) / P < 1e-2
    return P, D, told(math.nextafter(float(P), np.inf), math.nextafter(float(D), 0.0))


def test_a_true_certificate_passes(answer):
    P, D, true = answer
    assert false_claims(true, P, D, tol=1e-2, status="solved") == []
    assert false_claims(Told(np.inf, -np.inf, np.inf), P, D) == []


@pytest.mark.parametrize("share", [1e-3, 1e-9, 1e-14])
def test_a_bound_that_is_off_is_found(answer, share):
    P, D, true = answer
    lower = told(true.primal * (1.0 - share), true.dual)
    higher = told(true.primal, true.dual * (1.0 + share))
    for false, name in ((lower, "P "), (higher, "D ")):
        claims = false_claims(false, P, D)
        assert claims[0].startswith(name)
        assert claims[1].startswith("gap ")
        assert len(claims) == 2


def test_solved_is_a_claim_too(answer):
    P, D, true = answer
    gap = float((P - D) / P)
    assert "solved to" in false_claims(true, P, D, tol=0.9 * gap, status="solved")[0]
    assert not false_claims(true, P, D, tol=0.9 * gap, status="almost_solved")
    wide = told(true.primal, 0.0)  # the answer is good enough, but that is not proved
    assert "with bounds 0" in false_claims(wide, P, D, tol=0.5, status="solved")[0]
    floored = wide._replace(relative_gap=1e-9)  # relative to more than P
    assert false_claims(floored, P, D)[0].startswith("gap ")
    assert false_claims(told(np.nan, true.dual), P, D)[0].startswith("not a number")
    assert false_gap(np.nan, Fraction(1, 2))


def test_a_case_depends_on_its_number_only():
    one, again, other = draw(7, 3), draw(7, 3), draw(7, 4)
    assert repr(one) == repr(again) != repr(other)
    np.testing.assert_array_equal(one.X, again.X)
