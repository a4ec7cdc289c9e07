"""Norms of the losses: against linear and conic programs, duality, repeated rows."""

from fractions import Fraction

import clarabel
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import optimize, sparse

from tests.cases.norms import (
    MATRICES,
    NORMS,
    SIZE,
    case,
    cases,
    each_norm,
    every_norm,
    few,
    square_case,
)
from widemargin.losses import (
    BoundedNorm,
    BudgetL1,
    BudgetL2,
    Interpolation,
    L1Norm,
    L2Norm,
    LossNorm,
    Mahalanobis,
    PNorm,
)
from widemargin.problems.norm import best_norm_intercept
from widemargin.system.deadline import Deadline, OutOfTime, until


def conic(P, q, blocks):
    """The optimum and minimizer of 1/2 x'Px + q'x, b - Ax in cones: (A, b, cone)."""
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = 1e-11
    A = sparse.csc_matrix(np.vstack([block[0] for block in blocks]))
    b = np.concatenate([np.asarray(block[1], dtype=float) for block in blocks])
    cones = [block[2](len(block[1])) for block in blocks]
    P = sparse.csc_matrix(P)
    found = clarabel.DefaultSolver(P, q, A, b, cones, settings).solve()
    return found.obj_val, np.array(found.x)


def dual_set(norm, c, radius=1.0, y=None):
    """Blocks of radius A, written from its definition, for c > 0."""
    m = len(c)
    nonnegative, cone = clarabel.NonnegativeConeT, clarabel.SecondOrderConeT
    blocks = [(-np.eye(m), np.zeros(m), nonnegative)]
    if isinstance(norm, L1Norm | BudgetL1 | Interpolation):
        blocks.append((np.eye(m), radius * c, nonnegative))
    if isinstance(norm, BudgetL1 | BudgetL2):
        most = norm.budget if isinstance(norm, BudgetL1) else np.sqrt(norm.budget)
        blocks.append((np.ones((1, m)), [radius * most], nonnegative))
    if isinstance(norm, L2Norm | BudgetL2 | Interpolation):
        length = norm.t if isinstance(norm, Interpolation) else 1.0
        A = np.vstack([np.zeros(m), -np.diag(1.0 / np.sqrt(c))])
        blocks.append((A, np.append(radius * length, np.zeros(m)), cone))
    if isinstance(norm, PNorm):  # over (a, s), s_i >= a_i^q / (radius c_i)^(q - 1)
        eye, none = np.eye(2 * m), np.zeros(2 * m)
        blocks = [(-eye[:m], np.zeros(m), nonnegative)]
        blocks.append((np.append(np.zeros(m), np.ones(m))[None], [radius], nonnegative))

        def power(_):
            return clarabel.PowerConeT(1.0 - 1.0 / norm.p)  # 1 / q

        for i in range(m):
            A = -np.vstack([eye[m + i], none, eye[i]])
            blocks.append((A, [0.0, radius * c[i], 0.0], power))
    if isinstance(norm, Mahalanobis):  # over (a, mu)
        root = np.linalg.inv(np.linalg.cholesky(norm.M))
        blocks = [(-np.eye(2 * m), np.zeros(2 * m), nonnegative)]
        A = np.vstack([np.zeros(2 * m), np.hstack([-root, -root])])
        blocks.append((A, np.append(radius, np.zeros(m)), cone))
        if not norm.nonneg_slack:
            none = np.hstack([np.zeros((m, m)), np.eye(m)])
            blocks.append((none, np.zeros(m), clarabel.ZeroConeT))
    if y is not None:
        row = np.zeros((1, blocks[0][0].shape[1]))
        row[0, :m] = y
        blocks.append((row, [0.0], clarabel.ZeroConeT))
    return blocks


# -- values ----------------------------------------------------------------------------


def k_functional(v, p, q, t):
    """Least |w|_p + t |z|_q over w + z = v, over (w, heights of both norms)."""
    m = len(v)
    eye, one, zero = np.eye(m), np.ones((m, 1)), np.zeros((m, 1))
    wide = np.zeros((m, m))
    positive, cone = clarabel.NonnegativeConeT, clarabel.SecondOrderConeT
    cost = np.concatenate([np.zeros(m), np.ones(m) if p == 1 else np.r_[1.0], [t]])
    mid = wide if p == 1 else zero
    if p == 1:
        first = [
            (np.hstack([s * eye, -eye, zero]), np.zeros(m), positive) for s in (1, -1)
        ]
    else:
        A = -np.eye(m + 2)[[m, *range(m)]]
        first = [(A, np.zeros(m + 1), cone)]
    if q == np.inf:
        second = [(np.hstack([s * eye, mid, -one]), s * v, positive) for s in (1, -1)]
    else:
        A = np.vstack([np.eye(len(cost))[-1:] * -1, np.hstack([eye, mid, zero])])
        second = [(A, np.append(0.0, v), cone)]
    return conic(np.zeros((len(cost), len(cost))), cost, first + second)[0]


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("B", [1.0, 2.0, 3.7, 0.6, 9.0, 20.0])
def test_values_are_interpolation_norms(seed, B):
    v = case(np.random.default_rng(seed), 9)[0]
    t, c = np.abs(v), np.ones(9)
    expected = k_functional(v, 1, np.inf, B)
    assert BudgetL1(budget=B).value(t, c) == pytest.approx(expected, rel=1e-8)
    expected = k_functional(v, 2, np.inf, np.sqrt(B))
    assert BudgetL2(budget=B).value(t, c) == pytest.approx(expected, rel=1e-8)
    expected = k_functional(v, 1, 2, np.sqrt(B))
    assert Interpolation(t=np.sqrt(B)).value(t, c) == pytest.approx(expected, rel=1e-8)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("B", [1.0, 2.25, 4.0])
def test_budget_l1_is_a_linear_program(seed, B):
    """Theorem 1 for p = 1, weighted: least sum c w + B z over w + z >= t."""
    t, c, _ = case(np.random.default_rng(seed), 9)
    A = -np.hstack([np.eye(9), np.ones((9, 1))])
    rows = c > 0
    found = optimize.linprog(np.append(c, B), A_ub=A[rows], b_ub=-t[rows])
    assert BudgetL1(budget=B).value(t, c) == pytest.approx(found.fun, rel=1e-12)


@given(cases, st.integers(1, 12))
def test_budget_l1_is_the_sum_of_the_largest(case, B):
    t, c = np.abs(case[0]), np.ones(len(case[0]))
    largest = np.sort(t)[::-1]
    value = BudgetL1(budget=B).value(t, c)
    assert value == pytest.approx(largest[:B].sum(), rel=1e-14)
    after = largest[B] if len(t) > B else 0.0
    value = BudgetL1(budget=B + 0.25).value(t, c)
    assert value == pytest.approx(largest[:B].sum() + 0.25 * after, rel=1e-14)


@given(cases, st.integers(1, 12))
def test_budget_l2_keeps_the_bounds_of_theorem_1(case, B):
    t = np.abs(case[0])
    B = min(B, len(t))
    largest = np.sort(t)[::-1]
    value = BudgetL2(budget=B).value(t, np.ones(len(t)))
    low = np.sqrt(np.sum(largest[:B] ** 2))
    assert low * (1 - 1e-14) <= value
    assert value <= (low + np.sqrt(B) * largest[B - 1]) * (1 + 1e-14)


@given(cases, st.floats(0.05, 30.0))
def test_budget_l2_is_the_least_over_its_level(case, B):
    t, c, _ = case
    u = np.maximum(t, 0.0) * (c > 0)

    def upper(z):
        return np.sqrt(c @ np.maximum(u - z, 0.0) ** 2) + np.sqrt(B) * z

    value = BudgetL2(budget=B).value(t, c)
    grid = np.concatenate([u, np.linspace(0.0, u.max(), 50)])
    assert value <= min(map(upper, grid)) * (1 + 1e-14)
    found = optimize.minimize_scalar(
        upper, bounds=(0.0, u.max() + 1e-9), method="bounded", options={"xatol": 1e-11}
    )
    least = min(found.fun, upper(0.0), upper(u.max()))
    assert value == pytest.approx(least, rel=1e-8, abs=1e-14)


@every_norm
@pytest.mark.parametrize("seed", range(4))
def test_value_is_the_largest_product_with_the_dual_set(norm, seed):
    t, c, _ = square_case(norm, seed)
    rows = c > 0
    blocks = dual_set(norm, c[rows])
    n = blocks[0][0].shape[1]
    q = np.concatenate([-t[rows], np.zeros(n - rows.sum())])
    value = norm.value(t, c)
    assert value == pytest.approx(-conic(np.zeros((n, n)), q, blocks)[0], rel=1e-8)
    a = norm.slope(t, c)
    assert norm.gauge(a, c) <= 1 + 1e-13
    assert a @ t == pytest.approx(value, rel=1e-13)
    assert np.all(a >= 0)
    assert np.all(a[c == 0] == 0)


@every_norm
@few
@given(data=st.data())
def test_gauge_and_value_are_polar(norm, data):
    t, c, _ = square_case(norm, data.draw(st.integers(0, 10**6)))
    a = np.abs(square_case(norm, data.draw(st.integers(0, 10**6)))[0]) * (c > 0)
    assert a @ t <= norm.gauge(a, c) * norm.value(t, c) * (1 + 1e-12) + 1e-300
    size = norm.gauge(a, c)
    assert norm.gauge(2.0 * a, c) == pytest.approx(2.0 * size, rel=1e-12)
    assert norm.value(2.0 * t, c) == pytest.approx(2.0 * norm.value(t, c), rel=1e-12)


@pytest.mark.parametrize("norm", NORMS + MATRICES[::2], ids=str)
def test_a_negative_slack_is_no_loss(norm):
    t, c, _ = square_case(norm, 3)
    assert norm.value(np.maximum(t, 0.0), c) == norm.value(t, c)
    assert norm.value(-np.abs(t), c) == 0.0
    assert not norm.slope(-np.abs(t), c).any()


@every_norm
def test_gauge_of_what_is_in_no_multiple(norm):
    c = np.ones(SIZE)
    assert norm.gauge(np.zeros(SIZE), c) == 0.0
    assert norm.gauge(-c, c) == np.inf
    if not isinstance(norm, Mahalanobis):
        c[2] = 0.0
        assert norm.gauge(np.ones(SIZE), c) == np.inf
        assert norm.gauge(c, c) < np.inf


def test_the_corners_are_other_norms():
    t, c, _ = case(np.random.default_rng(5), 9)
    one, two, most = L1Norm().value(t, c), L2Norm().value(t, c), t[c > 0].max()
    assert one == pytest.approx(c @ np.maximum(t, 0.0))
    assert two == pytest.approx(np.sqrt(c @ np.maximum(t, 0.0) ** 2))
    assert BudgetL1(budget=c.sum()).value(t, c) == pytest.approx(one)
    assert BudgetL2(budget=c.sum()).value(t, c) == pytest.approx(two)
    assert BudgetL1(budget=0.05).value(t, c) == pytest.approx(0.05 * most)
    assert BudgetL2(budget=0.04).value(t, c) == pytest.approx(0.2 * most)
    assert Interpolation(t=np.sqrt(c.sum())).value(t, c) == pytest.approx(one)
    assert Interpolation(t=0.05).value(t, c) == pytest.approx(0.05 * two)


def test_p_norms_by_their_formula():
    t, c, _ = case(np.random.default_rng(5), 9)
    x = np.maximum(t, 0.0)
    assert PNorm(p=2).value(t, c) == pytest.approx(L2Norm().value(t, c))
    assert PNorm(p=5).value(t, c) == pytest.approx((c @ x**5) ** 0.2)
    v, y = np.array([1.0, 2.0, 0.5]), np.array([1.0, 1.0, -1.0])
    for p in (2.0, 1.05, 20.0):
        found = PNorm(p=p).project(v, np.ones(3), signs=y, radius=0.4)
        assert abs(residual(PNorm(p=p), v, found, np.ones(3), 0.4, y)) <= 1e-12
    same = L2Norm().project(v, np.ones(3), signs=y, radius=0.4)
    found = PNorm(p=2).project(v, np.ones(3), signs=y, radius=0.4)
    np.testing.assert_allclose(found, same, rtol=1e-12)


def test_a_projection_with_a_matrix_ends_with_the_time():
    norm = Mahalanobis(M=np.eye(3) + 0.5)
    v = np.array([3.0, 2.0, 1.0])
    norm.project(v, np.ones(3))
    with until(Deadline(lambda: 1.0, end=1.0)), pytest.raises(OutOfTime):
        norm.project(v, np.ones(3))


@pytest.mark.parametrize("p", [2, 3, 7])
def test_a_p_norm_is_bounded_from_above(p):
    """By the exact sum of powers of these floats."""
    for seed in range(20):
        t, c, _ = case(np.random.default_rng(seed), 9)
        x = [(Fraction(max(a, 0.0)), Fraction(b)) for a, b in zip(t, c, strict=True)]
        exact = sum(b * a**p for a, b in x)
        assert Fraction(PNorm(p=p).at_most(t, c)) ** p >= exact


@pytest.mark.parametrize("p", [1.0, 20.5, np.inf, np.nan, True, "2"])
def test_a_bad_power_is_refused(p):
    with pytest.raises(ValueError, match=r"'p' parameter of PNorm .* \[1.05, 20\]"):
        PNorm(p=p)


def test_a_norm_says_all_that_it_must():
    """What `LossNorm` leaves open is abstract: nothing is guessed from what is said."""

    class Said(LossNorm):
        def maximizer(self, t, c):
            return c

    missing = "at_most.*gauge.*nearest"
    with pytest.raises(TypeError, match=missing):
        Said()


def test_readings_of_the_mahalanobis_norm():
    """They are one for a diagonal matrix, and differ for losses that go together."""
    t = np.array([3.0, -1.0, 0.5, 0.0, 2.0, -2.0, 1.0])
    c, M = np.ones(SIZE), np.diag(np.arange(1.0, SIZE + 1))
    expected = np.sqrt(np.maximum(t, 0.0) @ M @ np.maximum(t, 0.0))
    for nonneg in (True, False):
        norm = Mahalanobis(M=M, nonneg_slack=nonneg)
        assert norm.value(t, c) == pytest.approx(expected, rel=1e-14)
    closed, free = (norm.value(t, c) for norm in MATRICES[:2])
    assert free < 0.95 * closed


# -- projections -----------------------------------------------------------------------


def residual(norm, v, x, c, radius=1.0, y=None, metric=1.0):
    """How much a'(v - x) / metric over radius A, in y'a = 0, is above that of x.

    Relative to the sizes of v and the set; it is 0 for the projection and no other point
    of the set. The maximum over y'a = 0 is the least radius N(g - eta y) over eta.
    """
    g = (v - x) / metric
    scale = np.abs(g).max()
    if scale == 0.0:
        return 0.0
    g = g / scale
    if y is not None:
        g = g - y * best_norm_intercept(norm, y * (1.0 - g), y, c, 0.0)
    above = radius * norm.value(g, c) - g @ x
    size = radius * norm.value(np.ones(len(v)), c)
    return above / size * (scale / np.abs(v / metric).max())


@pytest.mark.cover(2)
@every_norm
@pytest.mark.parametrize("labels", [True, False])
@pytest.mark.parametrize("seed", range(4))
def test_projection_is_that_of_a_conic_solver(norm, labels, seed):
    v, c, y = square_case(norm, seed)
    y = y if labels else None
    x = norm.project(v, c, radius=0.8, signs=y)
    rows = c > 0
    m = rows.sum()
    blocks = dual_set(norm, c[rows], 0.8, y[rows] if labels else None)
    n = blocks[0][0].shape[1]
    q = np.concatenate([-v[rows], np.zeros(n - m)])
    z = conic(np.diag(np.arange(n) < m).astype(float), q, blocks)[1][:m]
    np.testing.assert_allclose(x[rows], z, atol=1e-4)
    assert np.sum((x - v)[rows] ** 2) <= np.sum((z - v[rows]) ** 2) + 1e-8


@pytest.mark.cover(1)
@every_norm
@pytest.mark.parametrize("labels", [True, False])
@few
@given(seed=st.integers(0, 10**6), power=st.integers(-8, 8))
def test_projections_are_exact(norm, labels, seed, power):
    v, c, y = square_case(norm, seed)
    y, radius = y if labels else None, 1.7 * 10.0**power
    x = norm.project(v, c, radius=radius, signs=y)
    assert norm.gauge(x, c) <= radius * (1 + 1e-14)
    assert np.all(x[c == 0] == 0)
    assert y is None or abs(y @ x) <= 1e-14 * x.sum()
    # With a matrix the error is that of rounding v.
    tol = 1e-9 if isinstance(norm, Mahalanobis) else 1e-12
    assert abs(residual(norm, v, x, c, radius, y)) <= tol
    again = norm.project(x, c, radius=radius, signs=y)
    np.testing.assert_allclose(again, x, rtol=1e-13, atol=1e-13 * x.max())


@each_norm
@few
@given(cases, st.booleans(), st.integers(-4, 4))
def test_projections_with_a_metric_are_exact(norm, case, labels, power):
    v, c, y = case
    y, metric = y if labels else None, np.where(c > 0, c, 1.0) * 10.0**power
    x = norm.project(v, c, radius=0.3, signs=y, metric=metric)
    assert norm.gauge(x, c) <= 0.3 * (1 + 1e-14)
    assert abs(residual(norm, v, x, c, 0.3, y, metric)) <= 1e-12


@each_norm
@pytest.mark.parametrize("labels", [True, False])
@pytest.mark.parametrize("exponent", [-500, 500])
def test_projections_of_any_scale(norm, labels, exponent):
    v, c, y = case(np.random.default_rng(11), 9)
    y, scale = y if labels else None, 2.0**exponent
    x = norm.project(v, c, radius=0.5, signs=y)
    scaled = norm.project(scale * v, c, radius=scale * 0.5, signs=y)
    np.testing.assert_array_equal(scaled, scale * x)
    assert norm.value(scale * v, c) == pytest.approx(scale * norm.value(v, c))
    # A far point goes to a maximizer of its product, a near one stays.
    far = norm.project(scale * v, c, radius=1e-3, signs=y)
    assert norm.gauge(far, c) <= 1e-3 * (1 + 1e-14)
    assert abs(residual(norm, scale * v, far, c, 1e-3, y)) <= 1e-12


@pytest.mark.parametrize("norm", MATRICES, ids=str)
@pytest.mark.parametrize("exponent", [-300, 300])
def test_matrices_of_any_scale(norm, exponent):
    v, c, y = square_case(norm, 11)
    scale = 2.0**exponent
    wide = Mahalanobis(M=norm.M * 2.0**40, nonneg_slack=norm.nonneg_slack)
    assert wide.value(scale * v, c) == pytest.approx(2.0**20 * scale * norm.value(v, c))
    x = norm.project(v, c, radius=0.5, signs=y)
    scaled = wide.project(scale * v, c, radius=scale * 0.5 / 2.0**20, signs=y)
    np.testing.assert_allclose(scaled / scale, x, rtol=0, atol=1e-12)
    far = norm.project(scale * v, c, radius=1e-3, signs=y)
    assert norm.gauge(far, c) <= 1e-3 * (1 + 1e-14)
    assert abs(residual(norm, scale * v, far, c, 1e-3, y)) <= 1e-9


@pytest.mark.parametrize("kind", [BudgetL1, BudgetL2])
@pytest.mark.parametrize("labels", [True, False])
def test_weights_far_apart(kind, labels):
    """Also where the budget is the weight of one row, and both bounds bind there."""
    rng = np.random.default_rng(8)
    for _ in range(12):
        v, _, y = case(rng, 5)
        c = 10.0 ** rng.uniform(-8, 8, 5)
        norm, y = kind(budget=rng.choice(c)), y if labels else None
        for metric in (np.ones(5), c):
            x = norm.project(v, c, radius=1e-3, signs=y, metric=metric)
            assert norm.gauge(x, c) <= 1e-3 * (1 + 1e-14)
            assert abs(residual(norm, v, x, c, 1e-3, y, metric)) <= 1e-14


@every_norm
def test_projections_that_are_zero(norm):
    v, c, y = square_case(norm, 2)
    assert not norm.project(v, c, radius=0.0).any()
    assert not norm.project(-np.abs(v), c).any()
    assert not norm.project(v, c, signs=np.ones(SIZE)).any()
    if not isinstance(norm, Mahalanobis):
        assert not norm.project(v, np.zeros(SIZE)).any()


@each_norm
@pytest.mark.parametrize("labels", [True, False])
def test_many_equal_rows(norm, labels):
    m = 400
    v = np.repeat([3.0, -1.0, 3.0, 0.0], m // 4)
    y = np.tile([1.0, -1.0], m // 2)
    x = norm.project(v, np.ones(m), signs=y if labels else None)
    for value in (3.0, -1.0, 0.0):
        assert np.ptp(x[v == value]) <= 1e-15
    assert abs(residual(norm, v, x, np.ones(m), 1.0, y if labels else None)) <= 1e-12


# -- repeated rows ---------------------------------------------------------------------


@pytest.mark.cover(1)
@each_norm
@pytest.mark.parametrize("seed", range(5))
def test_weights_count_like_repeated_rows(norm, seed):
    rng = np.random.default_rng(seed)
    t, _, y = case(rng, 9)
    times = rng.integers(0, 4, 9)
    c, ones = times.astype(float), np.ones(times.sum())
    many, labels = np.repeat(t, times), np.repeat(y, times)
    assert norm.value(t, c) == pytest.approx(norm.value(many, ones), rel=1e-13)
    start = np.repeat(np.arange(9), times)

    def together(a):
        return np.bincount(start, a, minlength=9)

    a = np.abs(t) * (c > 0)
    each = np.repeat(a / np.maximum(c, 1.0), times)
    assert norm.gauge(a, c) == pytest.approx(norm.gauge(each, ones), rel=1e-13)
    for signs, copies in ((None, None), (y, labels)):
        x = norm.project(c * t, c, radius=0.7, signs=signs, metric=np.maximum(c, 1.0))
        z = norm.project(many, ones, radius=0.7, signs=copies)
        np.testing.assert_allclose(x, together(z), rtol=0, atol=1e-14)
    f = rng.normal(size=9)
    b = best_norm_intercept(norm, f, y, c, 0.3)
    other = best_norm_intercept(norm, np.repeat(f, times), labels, ones, 0.3)
    assert b == pytest.approx(other, abs=1e-6)


# -- descriptions and refusals ---------------------------------------------------------


@every_norm
def test_a_solver_reads_the_set_from_attributes(norm):
    c, a = np.ones(SIZE), np.linspace(0.0, 1.0, SIZE)
    assert "norm" in str(norm)
    if isinstance(norm, BoundedNorm):
        bounds = [
            (norm.has_box, 1.0, a.max()),
            (norm.ball, norm.ball, np.linalg.norm(a)),
        ]
        bounds.append((norm.cap, norm.cap, a.sum()))
        sizes = [size / bound for given, bound, size in bounds if given]
        assert norm.gauge(a, c) == pytest.approx(max(sizes))


@pytest.mark.parametrize(
    ("kind", "name"), [(BudgetL1, "budget"), (BudgetL2, "budget"), (Interpolation, "t")]
)
@pytest.mark.parametrize("value", [0, -1.0, np.inf, np.nan, True, "5"])
def test_a_bad_number_is_refused(kind, name, value):
    message = (
        rf"The '{name}' parameter of {kind.__name__} must be a float in the range "
        r"\(0, inf\)\. Got .* instead\."
    )
    with pytest.raises(ValueError, match=message):
        kind(**{name: value})


@pytest.mark.parametrize("value", [None, [1.0], 1j])
def test_what_is_no_number_is_refused(value):
    with pytest.raises(
        TypeError, match="'budget' parameter of BudgetL1 must be a float"
    ):
        BudgetL1(budget=value)


@pytest.mark.parametrize(
    ("M", "message"),
    [
        (
            [[1.0, 2.0], [2.0, 1.0]],
            "be positive definite. Got the least eigenvalue -1 ",
        ),
        (np.ones((2, 2)), "be positive definite. Got the least eigenvalue "),
        (
            [[1.0, 0.5], [0.2, 1.0]],
            r"be symmetric. Got M\[0, 1\] = 0.5 and M\[1, 0\] = 0.2 ",
        ),
        (np.ones((2, 3)), r"be a square matrix. Got shape \(2, 3\) "),
        (np.ones(3), r"be a square matrix. Got shape \(3,\) "),
        (np.ones((0, 0)), r"be a square matrix. Got shape \(0, 0\) "),
        ([[np.nan]], "be finite. Got NaN or an infinite number "),
        ("rows", "be a square matrix of numbers. Got str "),
    ],
)
def test_a_bad_matrix_is_refused(M, message):
    with pytest.raises(
        ValueError, match=f"The 'M' parameter of Mahalanobis must {message}"
    ):
        Mahalanobis(M=M)


def test_a_bad_reading_and_weights_are_refused():
    with pytest.raises(
        ValueError, match=r"must be one of True, False. Got 'yes' instead"
    ):
        Mahalanobis(M=np.eye(2), nonneg_slack="yes")
    norm = Mahalanobis(M=np.eye(2))
    for weights in (np.full(2, 2.0), np.ones(3), np.array([1.0, 0.0])):
        for call in (norm.value, norm.slope, norm.gauge, norm.project):
            with pytest.raises(
                ValueError, match="parameter of Mahalanobis must hold 2 ones"
            ):
                call(np.ones(len(weights)), weights)
    with pytest.raises(
        ValueError, match="'metric' parameter of Mahalanobis must hold 2"
    ):
        norm.project(np.ones(2), np.ones(2), metric=np.full(2, 2.0))


def test_norms_are_frozen():
    with pytest.raises(AttributeError):
        BudgetL1(budget=2).budget = 3
    norm, M = Mahalanobis(M=np.eye(2)), np.eye(2)
    with pytest.raises(ValueError, match="read-only"):
        norm.M[0, 0] = 2.0
    assert BudgetL1(budget=2) == BudgetL1(budget=2)
    Mahalanobis(M=M)
    M[0, 0] = 3.0  # their own matrix
