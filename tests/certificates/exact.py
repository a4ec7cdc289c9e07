"""P and D of an answer as they are defined, in exact arithmetic, and what is claimed.

    P = 1/2 |f|^2 [+ 1/2 b^2] + sum_i C_i L(q_i - y_i (f(x_i) + b)),  of w or c, and b;
    D = q'alpha - 1/2 c'K c [- 1/2 (sum c)^2] [- sum alpha_i^2 / (4 C_i)],  c = Y alpha,

or with q in place of 1, and q + rho and - N rho in P where sum alpha is to be N; of the
floats that the library returns. ``alpha`` is made feasible first, exactly: any feasible point
proves its D. Values of exp and tanh are known to 2^-320.
"""

import functools
import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from tests.certificates.dyadic import BITS, ONE, Dyadic, exp_minus
from tests.certificates.exact_norms import exact_norm, room

# Units in the last place by which a number that is told may be off: its own rounding.
ULPS = 2
# What that is in a relative gap, which is told as a float itself.
GAP_ULPS = Fraction(8, 2**52)


@dataclass(frozen=True)
class Exact:
    """A problem whose numbers are known exactly.

    X (m, n) are the rows, or the kernel values of "precomputed"; C (m,) the floats that
    the library uses. With a norm C are the weights of its rows, and ``factor`` its C.
    ``q`` (m,) are the margins; None: 1. ``mass`` is N.
    """

    X: np.ndarray
    y: np.ndarray
    C: np.ndarray
    loss: str = "hinge"
    intercept: str = "free"
    kernel: Any = None
    norm: Any = None
    factor: float = 1.0
    q: Any = None
    mass: float | None = None

    @functools.cached_property
    def rows(self):
        return Dyadic.of(self.X)

    @functools.cached_property
    def K(self):
        return kernel_matrix(self.kernel, self.X)

    @functools.cached_property
    def _y(self):
        return Dyadic.of(self.y.astype(np.int64))

    @functools.cached_property
    def _C(self):
        return Dyadic.of(self.C)

    # -- P -----------------------------------------------------------------------------

    @functools.cached_property
    def _q(self):
        return ONE if self.q is None else Dyadic.of(self.q)

    def primal(self, w, b, rho=0.0):
        """P of w (n,), or with a kernel of the coefficients c (m,), of b and of rho."""
        w, b = Dyadic.of(w), Dyadic.of(b)
        f = (self.rows if self.kernel is None else self.K) @ w
        square = (w @ (w if self.kernel is None else f)).fraction()
        if self.intercept == "penalized":
            square += (b * b).fraction()
        if self.mass is None:
            return square / 2 + self._losses(self._q - self._y * (f + b))
        slacks = self._q + Dyadic.of(rho) - self._y * (f + b)
        return square / 2 - Fraction(self.mass) * Fraction(rho) + self._losses(slacks)

    def _losses(self, t):
        t = t.positive()
        if self.norm is not None:
            value = exact_norm(self.norm, t.fractions(), self.C)
            return Fraction(self.factor) * value
        return (self._C @ (t if self.loss == "hinge" else t * t)).fraction()

    # -- D -----------------------------------------------------------------------------

    @property
    def _is_bounded(self):
        """Whether alpha_i <= C_i."""
        return self.loss == "hinge" and (self.norm is None or self.norm.has_box)

    def _most_of(self, i):
        """That bound."""
        return self.C[i] * self.factor if self.norm is not None else self.C[i]

    def dual(self, alpha, *, scaled=False):
        """D of the best of some feasible points near alpha (m,), at least 0.

        Any feasible point is a proof, and that of alpha = 0 is 0. Scaled: also of
        multiples of alpha, as bounds of a low rank take them.
        """
        alpha = np.asarray(alpha, np.float64)
        if self._is_bounded:
            alpha = np.clip(alpha, 0.0, [self._most_of(i) for i in range(len(alpha))])
        alpha = np.where(self.C > 0, np.maximum(alpha, 0.0), 0.0)
        if self.mass is not None:
            return self._dual_of_sums(alpha)
        best = Fraction(0)  # D of alpha = 0
        for part, r in self._repairs(alpha):
            linear, square = self._sums(alpha, part, r)
            t = Fraction(1)
            if self.norm is not None:
                t = room(self.norm, _scaled(alpha, part, r), self.C, self.factor)
            elif scaled and square > 0:
                t = min(self._most(alpha, part, r), linear / square)
            best = max(best, t * linear - t * t * square / 2)
        return best

    def _repairs(self, alpha):
        """Some rows, and the factor of theirs that makes y'alpha = 0, exactly.

        All rows of the heavier class, its free ones, and the one row of either class
        that costs least: rounding of sums is made good there at nearly no price.
        """
        nothing = np.zeros(len(alpha), bool)
        if self.intercept != "free":
            return [(nothing, Fraction(1))]
        sums = [_total(alpha[self.y == sign]) for sign in (-1, 1)]
        if sums[0] == sums[1]:
            return [(nothing, Fraction(1))]
        heavy = self.y == (1 if sums[1] > sums[0] else -1)
        excess, found = abs(sums[1] - sums[0]), [(heavy, min(sums) / max(sums))]
        free = heavy & (alpha < self.C)
        if (mass := _total(alpha[free])) > excess:
            found.append((free, 1 - excess / mass))
        return found + self._single_repairs(alpha, heavy, excess)

    def _single_repairs(self, alpha, heavy, excess):
        """The rows that lose the excess, or get it, at the least cost to D."""
        u = self._y * Dyadic.of(alpha)
        K = (self.rows @ (self.rows.T @ u)) if self.kernel is None else self.K @ u
        slopes = (self._q - self._y * K).n
        exact = [Fraction(a) for a in alpha]
        down = [i for i in np.flatnonzero(heavy) if exact[i] > excess]
        up = [
            i
            for i in np.flatnonzero(~heavy & (alpha > 0))
            if not self._is_bounded or exact[i] + excess <= Fraction(self._most_of(i))
        ]
        found = [(min(down, key=lambda i: slopes[i]), -1)] if down else []
        found += [(max(up, key=lambda i: slopes[i]), 1)] if up else []
        rows = np.arange(len(alpha))
        return [(rows == i, 1 + sign * excess / exact[i]) for i, sign in found]

    def _sums(self, alpha, part, r):
        """Sum alpha, and the quadratic form of D twice, with a part times r."""
        base = np.where(part, 0.0, alpha)
        parts = [base] if not part.any() else [base, np.where(part, alpha, 0.0)]
        factors = [Fraction(1), r][: len(parts)]
        linear = sum(f * self._linear(a) for f, a in zip(factors, parts, strict=True))
        square = Fraction(0)
        for i, one in enumerate(parts):
            for j, other in enumerate(parts[: i + 1]):
                times = (1 if i == j else 2) * factors[i] * factors[j]
                square += times * self._inner(one, other)
            if self.loss != "hinge":
                square += factors[i] ** 2 * self._squares(one) / 2
        return linear, square

    def _linear(self, alpha):
        """The sum of q alpha."""
        return (
            _total(alpha) if self.q is None else (self._q @ Dyadic.of(alpha)).fraction()
        )

    def _dual_of_sums(self, alpha):
        """D of alpha with the sums that are given, exactly; None if that cannot be.

        A sum that is too large is scaled down; to one that is too small support vectors
        add a share of what they have to their bounds, or of themselves; where they have
        too little, all rows do.
        """
        free = self.intercept == "free"
        parts = []
        for sign in (1.0, -1.0) if free else (1.0,):
            own = np.where(self.y == sign, alpha, 0.0)
            total, mass = _total(own), Fraction(self.mass) / (2 if free else 1)
            most = np.where(own > 0, self.C, 0.0)
            if _total(most) < mass:
                most = np.where(self.y == sign, self.C, 0.0)
            room = _total(most) - total
            if total >= mass or (total > 0 and not self._is_bounded):
                parts.append((mass / total, own))
            elif room > 0 and mass - total <= room:
                share = (mass - total) / room
                parts += [(1 - share, own), (share, most)]
            else:
                return None
        linear = sum(f * self._linear(a) for f, a in parts)
        square = sum(f * g * self._inner(a, b) for f, a in parts for g, b in parts)
        if self.loss != "hinge":
            square += sum(f * f * self._squares(a) for f, a in parts) / 2
        return linear - square / 2

    def _inner(self, one, other):
        """One' Y K Y other, and the products of sums where b is penalized."""
        u, v = self._y * Dyadic.of(one), self._y * Dyadic.of(other)
        if self.kernel is None:
            value = (self.rows.T @ u) @ (self.rows.T @ v)
        else:
            value = u @ (self.K @ v)
        if self.intercept == "penalized":
            value = value + u.sum() * v.sum()
        return value.fraction()

    def _squares(self, alpha):
        """Sum alpha_i^2 / C_i."""
        total, some = Fraction(0), alpha > 0
        for c in np.unique(self.C[some]):
            a = Dyadic.of(alpha[some & (c == self.C)])
            total += (a @ a).fraction() / Fraction(c)
        return total

    def _most(self, alpha, part, r):
        """The largest t that keeps t alpha feasible."""
        if self.loss != "hinge":
            return Fraction(2) ** 2000
        pairs = zip(_scaled(alpha, part, r), self.C, strict=True)
        return min((Fraction(c) / a for a, c in pairs if a > 0), default=Fraction(1))


def _total(alpha):
    return Dyadic.of(alpha).sum().fraction() if alpha.size else Fraction(0)


def _scaled(alpha, part, r):
    """Alpha with a part times r, as Fractions."""
    return [Fraction(a) * (r if p else 1) for a, p in zip(alpha, part, strict=True)]


# -- kernels ---------------------------------------------------------------------------


def kernel_matrix(kernel, X, Z=None):
    """Values k(x, z) of all pairs of rows, as Dyadic (m, l)."""
    if kernel.name == "precomputed":
        return Dyadic.of(X)
    x = Dyadic.of(X)
    z = x if Z is None else Dyadic.of(Z)
    if kernel.name == "linear":
        return x @ z.T
    gamma = Dyadic.of(float(kernel.gamma))
    if kernel.named.value == "decay":
        return _decaying(gamma * _DISTANCES[kernel.named.sums](x, z), Z is None)
    inner = gamma * (x @ z.T) + Dyadic.of(float(kernel.coef0))
    return inner**kernel.degree if kernel.name == "poly" else _tanh(inner)


def _squares(x, z):
    """|x - z|^2: exact, so that nothing cancels."""
    lengths = [(part * part).sum(axis=1) for part in (x, z)]
    return lengths[0][:, None] + lengths[1][None, :] - (x @ z.T) - (x @ z.T)


def _lengths(x, z):
    """|x - z|_1."""
    return abs(x[:, None, :] - z[None, :, :]).sum(axis=2)


def _shares(x, z):
    """Sums of (x - z)^2 / (x + z), 0 / 0 being 0; to 2^-BITS of the data's last bits."""
    apart, sizes = x[:, None, :] - z[None, :, :], x[:, None, :] + z[None, :, :]
    squares, e = apart * apart, apart.e - BITS - 32
    n = squares.at(e + sizes.e) // np.where(sizes.n == 0, 1, sizes.n)
    return Dyadic(n, e).sum(axis=2)


_DISTANCES = {"square": _squares, "size": _lengths, "share": _shares}


def _decaying(exponents, is_symmetric):
    """exp(-exponents); of the upper triangle only where the lower one is the same."""
    if not is_symmetric:
        return exp_minus(exponents)
    i, j = np.triu_indices(exponents.shape[0])
    values = exp_minus(exponents[i, j])
    out = np.empty(exponents.shape, dtype=object)
    out[i, j] = out[j, i] = values.n
    return Dyadic(out, values.e)


def _tanh(u):
    """(1 - E) / (1 + E) with E = exp(-2 |u|)."""
    e = exp_minus(abs(u + u))
    one = 1 << -e.e
    values = ((one - e.n) << BITS) // (one + e.n)
    return Dyadic(np.where(u.n < 0, -values, values), -BITS)


# -- claims ----------------------------------------------------------------------------


def false_claims(certificate, P, D, *, tol=None, status="", floor=None):
    """What a certificate says that is not so, as sentences: none where it is true.

    P is the objective of the answer, D that of a feasible point, both exact; D is None
    where there is none. P of a kernel that is not positive semidefinite may be below 0,
    where gaps mean nothing; but where P may be anything, gaps are relative to the
    largest of ``|P|``, ``|D|`` and a ``floor`` that is given.
    """
    primal, dual = float(certificate.primal), float(certificate.dual)
    if math.isnan(primal) or math.isnan(dual):
        return [f"not a number: {primal} and {dual}"]
    wrong = []
    if not at_least(primal, P):
        wrong.append(
            f"P {told(primal)} below {told(P)} by {_share(P - Fraction(primal), P)}"
        )
    if D is None:
        return wrong if dual == -math.inf else [*wrong, f"D {told(dual)} of nothing"]
    if not at_least(-dual, -D):
        wrong.append(
            f"D {told(dual)} above {told(D)} by {_share(Fraction(dual) - D, P)}"
        )
    size = (
        max(P, Fraction(certificate.scale))
        if floor is None
        else max(abs(P), abs(D), Fraction(floor))
    )
    # Bounds of both signs are no shares of anything.
    if size > 0 and (floor is None or certificate.relative_gap < 0.5):
        true = (P - D) / size
        wrong += false_gap(certificate.relative_gap, true)
        if status == "solved" and tol is not None:
            wrong += _false_solved(certificate, true, tol, floor)
    return wrong


def false_gap(gap, true):
    """Whether a relative gap is told smaller than it is."""
    gap = float(gap)
    if gap >= 0 and (math.isinf(gap) or Fraction(gap) + GAP_ULPS >= true):
        return []
    return [f"gap {gap:.3g} is {told(true)}"]


def _false_solved(certificate, true, tol, floor):
    """Whether it is solved by its own bounds, relative to their size, and in truth."""
    primal, dual = float(certificate.primal), float(certificate.dual)
    tol = Fraction(tol) + GAP_ULPS
    wrong = [] if true <= tol else [f"solved to {float(tol):.3g} at {told(true)}"]
    if not (math.isfinite(primal) and math.isfinite(dual)):
        return [*wrong, f"solved with the bounds {dual} and {primal}"]
    gap = Fraction(primal) - Fraction(dual)
    size = max(primal, certificate.scale)
    if floor is not None:
        size = max(abs(primal), abs(dual), floor)
    if gap > tol * Fraction(size):
        wrong.append(f"solved to {float(tol):.3g} with bounds {dual:.6g}, {primal:.6g}")
    return wrong


def at_least(x, exact):
    """Whether a float is at least an exact number, but for its own rounding."""
    if math.isinf(x):
        return x > 0
    return Fraction(x) + ULPS * Fraction(math.ulp(x)) >= exact


def _share(difference, P):
    return told(difference / P) if P > 0 else told(difference)


def told(x):
    """A number as text, whatever its size."""
    try:
        return f"{float(x):.9g}"
    except OverflowError:
        return f"2^{x.numerator.bit_length() - x.denominator.bit_length()}"
