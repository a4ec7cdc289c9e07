"""The C++ kernels against their formulas, for every instruction set.

Instruction sets differ in fused operations and in the order of sums, so that answers
differ by rounding: `Bounded` computes a formula with a bound on that.
"""

import numpy as np
import pytest

from widemargin import _core

U = 2.0**-53
LENGTHS = [*range(41), 1000]  # every remainder of the lanes, and many rounds of them
VECTORS = ("alpha", "u", "s", "xi", "d", "dalpha", "ds", "dxi")


class Bounded:
    """Numbers with bounds on the error of any way to compute their formula.

    Each operation rounds once or, fused with the next, not at all; a quotient may be a
    product with a rounded reciprocal. Bounds are of first order, and a percent more.
    """

    def __init__(self, value, error=0.0, roundings=0):
        self.value = np.asarray(value, dtype=np.float64)
        self.error = 1.01 * (error + roundings * U * np.abs(self.value))

    def __add__(self, other):
        other = bounded(other)
        return Bounded(self.value + other.value, self.error + other.error, 1)

    def __neg__(self):
        return Bounded(-self.value, self.error)

    def __sub__(self, other):
        return self + -bounded(other)

    def __rsub__(self, other):
        return bounded(other) - self

    def __mul__(self, other):
        other = bounded(other)
        error = np.abs(self.value) * other.error + self.error * np.abs(other.value)
        return Bounded(self.value * other.value, error, 1)

    __radd__, __rmul__ = __add__, __mul__

    def __truediv__(self, other):
        other = bounded(other)
        error = other.error / other.value**2
        return self * Bounded(1.0 / other.value, error, 1)

    def __rtruediv__(self, other):
        return bounded(other) / self

    def sum(self):
        """The sum in any order: gamma(k) of the absolute values more."""
        rounding = self.value.size * U * np.abs(self.value).sum()
        return Bounded(self.value.sum(), self.error.sum() + rounding)

    def clip(self, limit):
        limit = bounded(limit)
        value = np.clip(self.value, -limit.value, limit.value)
        return Bounded(value, np.maximum(self.error, limit.error))


def bounded(x):
    return x if isinstance(x, Bounded) else Bounded(x)


def largest(*arrays):
    values = np.max([a.value for a in arrays], axis=0)
    return Bounded(values, np.max([a.error for a in arrays], axis=0))


def assert_within(actual, expected):
    actual = np.asarray(actual)
    assert actual.shape == expected.value.shape
    # The kernel and the formula are both off by at most the bound.
    assert np.all(np.abs(actual - expected.value) <= 2 * expected.error)


class Block:
    """Row vectors of k rows, at odd addresses, with guards around them."""

    def __init__(self, k, seed=0):
        rng = np.random.default_rng((seed, k))
        self.buffers = {}
        for name in ("C", "z", *VECTORS):
            buffer = np.full(k + 2, 77.0)
            if name in ("z", "dalpha", "ds", "dxi"):
                buffer[1 : k + 1] = rng.normal(size=k)
            else:
                buffer[1 : k + 1] = rng.uniform(0.5, 2.0, k)
            self.buffers[name] = buffer

    def __getattr__(self, name):
        return self.buffers[name][1:-1]

    @property
    def vectors(self):
        return [getattr(self, name) for name in VECTORS]

    def bounded(self):
        """All vectors as they are now."""
        return {name: Bounded(getattr(self, name).copy()) for name in self.buffers}

    def check(self, before, **changed):
        """These vectors have changed so; no others, nor what lies around them."""
        for name, buffer in self.buffers.items():
            assert_within(getattr(self, name), changed.get(name, before[name]))
            assert buffer[0] == buffer[-1] == 77.0


def block_of(z, simd=-1):
    """Rows [z I]: A (1, 0, ..) = z, and A'u shows each u."""
    X = np.column_stack([z, np.eye(len(z))])
    return _core.block(X, np.ones(len(z)), False, simd), np.eye(len(z) + 1)[0]


def predict(C, vectors, z, clip, hinge, simd=-1):
    """Results of the sweep, and its two columns E (2, k)."""
    A, dv = block_of(z, simd)
    G = np.zeros((2, len(z) + 1))
    return _core.predict_sweep(A, dv, C, vectors, clip, G, hinge), G[:, 1:]


def correct(C, vectors, z, target, hinge, simd=-1):
    return _core.correct_sweep(*block_of(z, simd), C, vectors, target, hinge)


on_every_kernel = pytest.mark.parametrize("simd", _core.simd_levels())
on_both_losses = pytest.mark.parametrize("hinge", [True, False])


@on_every_kernel
@on_both_losses
def test_advance(simd, hinge):
    for k in LENGTHS:
        block, t = Block(k), 0.1
        before = block.bounded()
        C, alpha, u, s, xi = (before[name] for name in ("C", "alpha", "u", "s", "xi"))
        alpha = alpha + t * before["dalpha"]
        s = s + t * before["ds"]
        xi = xi + t * before["dxi"]
        violation = largest(xi - s, Bounded(np.zeros(k)))
        if hinge:
            u = u - t * before["dalpha"]
            d = 1.0 / (s / alpha + xi / u)
            products = (s * alpha).sum() + (xi * u).sum()
            losses = (C * violation).sum()
            linear = alpha.sum()
        else:
            d = 1.0 / (s / alpha + 0.5 / C)
            products = (s * alpha).sum()
            losses = (C * violation * violation).sum()
            linear = (alpha - 0.25 * alpha * alpha / C).sum()
        sums = _core.advance(block.C, block.vectors, t, hinge, simd)
        for value, expected in zip(sums, (products, losses, linear), strict=True):
            assert_within(value, expected)
        block.check(before, alpha=alpha, u=u, s=s, xi=xi, d=d)


def check_ratio(ratio, row, expected):
    """The largest ratio, 0 if none is positive, and a row that has it to rounding."""
    if expected.value.size == 0 or expected.value.max() <= 0.0:
        assert (ratio, row) == (0.0, 0)
        return
    assert np.all(ratio >= expected.value - 2 * expected.error)
    assert abs(ratio - expected.value[row]) <= 2 * expected.error[row]


@on_every_kernel
@on_both_losses
def test_predict(simd, hinge):
    for k in LENGTHS:
        block, clip = Block(k), 0.3
        before = block.bounded()
        C, z, alpha, u, s, xi, d, *_ = before.values()
        slack = s - xi if hinge else s
        da = -(d * (slack + z))
        ds = -s - s / alpha * da
        p = (ds * da).clip(clip * C)
        ratios = [-da / alpha, -ds / s]
        first, second = s * da + alpha * ds, ds * da
        column1, column2 = p / alpha, 1.0 / alpha
        q = before["dxi"]
        if hinge:
            du = -da
            dxi = -xi + xi / u * da
            q = (dxi * du).clip(clip * C)
            ratios += [-du / u, -dxi / xi]
            first, second = first + (u * dxi + xi * du), second + dxi * du
            column1, column2 = column1 - q / u, column2 - 1.0 / u
        (ratio, row, *sums), E = predict(
            block.C, block.vectors, block.z, clip, hinge, simd
        )
        if k:
            check_ratio(ratio, row, largest(*ratios))
            assert_within(E[0], d * column1)
            assert_within(E[1], d * C * column2)
        assert_within(sums[0], first.sum())
        assert_within(sums[1], second.sum())
        block.check(before, ds=p, dxi=q)


@on_every_kernel
@on_both_losses
def test_correct(simd, hinge):
    for k in LENGTHS:
        block, target = Block(k), 0.2
        before = block.bounded()
        C, z, alpha, u, s, xi, d, _, p, q = before.values()
        r_s = s * alpha - target * C + p
        r_x = xi * u - target * C + q
        right = r_s / alpha - r_x / u if hinge else r_s / alpha
        da = -(d * (right + z))
        ds = -((r_s + s * da) / alpha)
        dxi = (xi * da - r_x) / u if hinge else 0.5 * da / C
        ratios = [-da / alpha, -ds / s]
        first, second = s * da + alpha * ds, ds * da
        if hinge:
            ratios += [da / u, -dxi / xi]
            first, second = first + (u * dxi - xi * da), second - dxi * da
        ratio, row, *sums = correct(
            block.C, block.vectors, block.z, target, hinge, simd
        )
        if k:
            check_ratio(ratio, row, largest(*ratios))
        assert_within(sums[0], first.sum())
        assert_within(sums[1], second.sum())
        block.check(before, dalpha=da, ds=ds, dxi=dxi)


@on_every_kernel
@on_both_losses
def test_the_first_of_equal_rows_blocks_the_step(simd, hinge):
    for k in (1, 7, 8, 9, 17, 40):
        for first in range(min(k, 10)):
            vectors = [np.ones(k) for _ in VECTORS]
            z = np.zeros(k)
            z[first:] = 5.0
            ahead, _ = predict(np.ones(k), vectors, z, 1.0, hinge, simd)
            assert ahead[1] == first
            vectors = [np.ones(k) for _ in VECTORS]
            assert correct(np.ones(k), vectors, z, 0.1, hinge, simd)[1] == first


@on_every_kernel
@on_both_losses
def test_kernels_give_the_same_bits_again_wherever_the_rows_lie(simd, hinge):
    k = 1000
    answers = []
    for offset in (0, 1, 3):
        block = Block(k)
        move = lambda v, n=offset: np.concatenate([np.empty(n), v])[n:]  # noqa: E731
        vectors = [move(v) for v in block.vectors]
        C, z = move(block.C), move(block.z)
        ahead, E = predict(C, vectors, z, 0.3, hinge, simd)
        sums = [
            ahead,
            correct(C, vectors, z, 0.1, hinge, simd),
            _core.advance(C, vectors, 0.01, hinge, simd),
        ]
        answers.append((sums, np.stack(vectors), E))
    for sums, vectors, E in answers[1:]:
        assert sums == answers[0][0]
        np.testing.assert_array_equal(vectors, answers[0][1])
        np.testing.assert_array_equal(E, answers[0][2])


def ones(k=3, **replaced):
    """Arguments of the kernels for k rows, some of them replaced."""
    vectors = {name: np.ones(k) for name in VECTORS} | replaced
    return np.ones(k), [vectors[name] for name in VECTORS]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: _core.advance(*ones(s=np.ones(2)), 0.1, True),
            "do not fit each other",
        ),
        (
            lambda: _core.advance(np.ones(3), [np.ones(3)] * 7, 0.1, True),
            "do not fit each other",
        ),
        (
            lambda: _core.advance(np.ones(2), ones()[1], 0.1, True),
            "do not fit each other",
        ),
        (lambda: predict(*ones(), np.ones(2), 0.1, True), "do not fit each other"),
        (lambda: correct(*ones(), np.ones(4), 0.1, True), "do not fit each other"),
        (
            lambda: _core.predict_sweep(
                *block_of(np.ones(3)), *ones(), 0.1, np.ones((2, 3)), True
            ),
            "do not fit each other",
        ),
        (
            lambda: _core.predict_sweep(
                *block_of(np.ones(3)), *ones(), 0.1, np.ones((3, 4)), True
            ),
            "do not fit each other",
        ),
        (
            lambda: _core.correct_sweep(
                block_of(np.ones(3))[0], np.ones(3), *ones(), 0.1, True
            ),
            "do not fit each other",
        ),
        (
            lambda: _core.normal_sweep(
                block_of(np.ones(3))[0], *ones(), np.ones((2, 4)), None, True
            ),
            "do not fit each other",
        ),
        (
            lambda: _core.normal_sweep(
                block_of(np.ones(3))[0], *ones(), np.ones((3, 4)), np.ones((3, 3)), True
            ),
            "do not fit each other",
        ),
        (
            lambda: _core.block(np.ones((3, 2)), np.ones(2), True),
            "do not fit each other",
        ),
        (lambda: _core.advance(*ones(), 0.1, True, 3), "no such instruction set"),
    ],
)
def test_arrays_that_do_not_fit_are_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def frozen(k=3):
    array = np.ones(k)
    array.flags.writeable = False
    return array


@pytest.mark.parametrize(
    "bad",
    [np.ones(3, np.float32), np.ones(6)[::2], np.ones(3, int), frozen(), [1.0] * 3],
)
@pytest.mark.parametrize("name", VECTORS)
def test_what_cannot_be_written_in_place_is_refused(name, bad):
    # A converted copy would be written to instead, and lost.
    with pytest.raises(TypeError, match="incompatible function arguments"):
        _core.advance(*ones(**{name: bad}), 0.1, True)
    E = np.ones((2, 4), np.float32)
    with pytest.raises(TypeError, match="incompatible function arguments"):
        _core.predict_sweep(*block_of(np.ones(3)), *ones(), 0.1, E, True)
