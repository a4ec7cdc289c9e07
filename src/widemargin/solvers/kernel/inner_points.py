"""An interior point method for problems with a box and a few sums.

    minimize 1/2 c'H c + t'c   over lower <= c <= upper, E'c = s,

Mehrotra's predictor and corrector from the middle of the bounds. With slacks
s_l = c - lower and s_u = upper - c and their multipliers z_l and z_u a step solves

    [ H + diag(z_l / s_l + z_u / s_u)   -E ] [ dc ]
    [ E'                                 0 ] [ db ]

twice with one Cholesky factor. Some twenty steps do, however singular H is, where pair
steps need millions and faces one step for each row that meets a bound. H is the matrix
K + p + diag(r) of a small problem, or of low rank: that is `low_rank`.
"""

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

import numpy as np

from widemargin.arrays import Index, Vector
from widemargin.numerics.cholesky import cholesky
from widemargin.solvers.kernel.reweighted import balanced
from widemargin.solvers.kernel.small_problem import Small
from widemargin.system import deadline
from widemargin.system.threads import ONE_BLAS_THREAD

# Steps at the most, how far one goes to the nearest bound, and its least length: below,
# rounding decides.
MOST_STEPS, TO_BOUND, LEAST_STEP = 60, 0.99, 1e-6
# The mean product of slack and multiplier at the end, as a share of what the violation
# that may stay does to a mean bound: by then rows that end at a bound tell (two mixed
# classes of 600 rows: not with 1e-2, 1e-4 and 1e-6).
END = 1e-9
# Shares of the sums that leave room to both sides.
ROOM = 1e-9
# Solutions that are differences of vectors so many times as long are improved so often.
# (Once: 0.7 to 1.5 of the time, three times: 0.6 to 1.3, benchmarks/core/untuned.py;
# once leaves slopes of 1e-9, with which machines near their least nu take up to 40
# working sets in place of 2.)
CANCELS, IMPROVED = 1e3, 2
# Rows that are multiplied at a time: they stay in the second-level cache.
ROWS = 512


class Quadratic(Protocol):
    """The matrix H, positive semidefinite; ``size`` is the mean of its diagonal."""

    size: float

    def times(self, c: Vector) -> Vector:
        """The product H c."""

    def factored(self, d: Vector) -> Callable[[Vector], Vector]:
        """What solves systems with H + diag(d), of a vector or of columns."""


class Dense:
    """The matrix K + diag(ridge) of samples that may occur twice.

    Parameters
    ----------
    K : ndarray (k, k), symmetric
    copies : 1 or 2, how often all samples occur
    ridge : ndarray (copies k,) or float
    """

    def __init__(self, K: Vector, copies: int = 1, ridge: Any = 0.0) -> None:
        self._K, self._copies = K, copies
        self._ridge = np.broadcast_to(np.asarray(ridge, np.float64), copies * len(K))
        self._room = np.empty_like(K)
        self.size = float(K.diagonal().mean() + self._ridge.mean())

    def times(self, c: Vector) -> Vector:
        """The product H c."""
        return self.scores(c) + self._ridge * c

    def scores(self, c: Vector) -> Vector:
        """The product K c."""
        # On one thread: others of NumPy would turn while SciPy's factor, 2,000 rows in
        # 70 to 120 ms, not 40.
        with ONE_BLAS_THREAD:
            f = self._K @ _summed(c, self._copies)
        return _spread(f, self._copies)

    def factored(self, d: Vector) -> Callable[[Vector], Vector]:
        """What solves systems with H + diag(d): by a matrix of order k.

        With D the diagonal in all, the sum s of the copies of x solves (K + E) s = r,
        r the mean of theirs that D^-1 weighs, E^-1 the sum of those of D^-1. Each has a
        share of s, and what r differ by over the sum of those of D.
        """
        inverse = (1.0 / (d + self._ridge)).reshape(self._copies, -1)
        scale = 1.0 / inverse.sum(axis=0)
        share = (inverse * scale)[..., np.newaxis]
        np.copyto(self._room, self._K)
        self._room[np.diag_indices(len(scale))] += scale
        solve, _ = cholesky(self._room)

        def solved(right: Vector) -> Vector:
            """The solution for a vector, or for columns."""
            r = right.reshape(*inverse.shape, -1)
            x = share * solve((share * r).sum(axis=0))
            if self._copies == 2:
                apart = (r[0] - r[1]) * (inverse[0, :, np.newaxis] * share[1])
                x += np.stack([apart, -apart])
            return np.asarray(x.reshape(right.shape))

        return solved

    def among(self, J: Index) -> Vector:
        """H of some variables."""
        rows = J % len(self._K)
        H = self._K[np.ix_(rows, rows)]
        H[np.diag_indices(len(J))] += self._ridge[J]
        return H


class Factored:
    """The matrix Z Z' of samples that may occur twice: a row of Z each.

    Parameters
    ----------
    Z : ndarray (k, r)
    copies : int, how often all of them occur
    shift : float, which Z has as the square of a column, and scores are without
    """

    def __init__(self, Z: Vector, copies: int = 1, shift: float = 0.0) -> None:
        self._Z, self._copies, self._shift = Z, copies, shift
        self.size = float(np.einsum("ij,ij->", Z, Z)) / len(Z)

    def rows(self, J: Index) -> Vector:
        """Rows J of Z."""
        return np.asarray(self._Z[J % len(self._Z)])

    def times(self, c: Vector) -> Vector:
        """The product H c."""
        return _spread(self._Z @ (self._Z.T @ _summed(c, self._copies)), self._copies)

    def scores(self, c: Vector) -> Vector:
        """The product Z Z' c."""
        return self.times(c) - self._shift * float(c.sum())

    def factored(self, d: Vector) -> Callable[[Vector], Vector]:
        """What solves systems with H + diag(d): by a matrix of order r."""
        Z, inverse = self._Z, 1.0 / d
        scale = np.sqrt(_summed(inverse, self._copies))
        M = np.eye(Z.shape[1])
        for begin in range(0, len(Z), ROWS):
            deadline.check()
            some = Z[begin : begin + ROWS] * scale[begin : begin + ROWS, np.newaxis]
            M += some.T @ some
        solve, _ = cholesky(M)

        def once(right: Vector) -> tuple[Vector, bool]:
            """A solution, and whether it is a difference of much longer vectors."""
            first = (inverse * right.T).T
            moved = Z @ solve(Z.T @ _summed(first, self._copies))
            x = first - (inverse * _spread(moved, self._copies).T).T
            return x, bool(np.linalg.norm(first) > CANCELS * np.linalg.norm(x))

        def solved(right: Vector) -> Vector:
            """The solution for a vector, or for columns."""
            x, is_rough = once(right)
            for _ in range(IMPROVED if is_rough else 0):
                x += once(right - self.times(x) - (d * x.T).T)[0]
            return x

        return solved


def _summed(c: Vector, copies: int) -> Vector:
    """Numbers of all variables, added up over the copies of each sample."""
    if copies == 1:
        return c
    each = len(c) // copies  # not -1, as there may be no columns
    return np.asarray(c.reshape(copies, each, *c.shape[1:]).sum(axis=0))


def _spread(f: Vector, copies: int) -> Vector:
    """Numbers of samples for all variables."""
    return f if copies == 1 else np.concatenate([f] * copies)


class Boxed(NamedTuple):
    """A problem; E has the sums as columns of zeros and ones."""

    H: Quadratic
    linear: Vector
    lower: Vector
    upper: Vector
    E: Vector
    sums: Vector

    def objective(self, c: Vector, Hc: Vector) -> float:
        """The objective at c."""
        return float((c * (0.5 * Hc + self.linear)).sum())


class Point(NamedTuple):
    """Where the method is: c, the levels b of the sums, and multipliers of bounds."""

    c: Vector
    b: Vector
    low: Vector
    high: Vector


class System(NamedTuple):
    """What both systems of a step have: a factor, what it makes of E, the gradient."""

    solve: Callable[[Vector], Vector]
    Z: Vector
    slope: Vector


def inner_points(small: Small, stop: float) -> list[Vector]:
    """Some c near the optimum, within their bounds and with the sums of ``small``.

    The interior point, and the same with rows at their bounds; nothing where bounds are
    infinite, or leave the sums no room.
    """
    q, own = len(small.c), small.violations.groups
    H = small.K[:, :q].astype(np.float64) + small.shift
    H[np.diag_indices(q)] += small.ridge
    end = END * stop * float((small.upper - small.lower).mean())
    linear, E = small.F - H @ small.c, indicators(own, q)
    problem = Boxed(Dense(H), linear, small.lower, small.upper, E, E.T @ small.c)
    method = Method(problem)
    begin = method.begin()
    if begin is None:
        return []
    last = method.run(begin, lambda objective: end)
    return [method.feasible(c) for c in (last.c, method.at_bounds(last))]


def indicators(groups: tuple[Any, ...], m: int) -> Vector:
    """Columns of ones for the rows of each group, (m, groups)."""
    E = np.zeros((m, len(groups)))
    for column, own in enumerate(groups):
        E[own, column] = 1.0
    return E


class Method:
    """The steps for one problem.

    Attributes
    ----------
    at : Point or None, where `run` is by now, also where a limit has ended it
    """

    at: Point | None = None

    def __init__(self, problem: Boxed) -> None:
        self.problem = problem
        self.H, self.linear, self.lower, self.upper, self.E, self.sums = problem

    def begin(self) -> Point | None:
        """A start: an equal share of all bounds that have a sum, half of the others."""
        width = self.upper - self.lower
        if not np.isfinite(width).all():
            return None
        total = self.E.T @ width
        with np.errstate(divide="ignore", invalid="ignore"):
            share = (self.sums - self.E.T @ self.lower) / total
        inside = (share > ROOM) & (share < 1.0 - ROOM)
        if not (inside | (total == 0.0)).all() or not (width > 0).all():
            return None
        c = self.lower + width * np.where(self.E.any(axis=1), self.E @ share, 0.5)
        F = self.H.times(c) + self.linear
        b = self.E.T @ F / self.E.sum(axis=0)
        size = max(float(np.abs(F - self.E @ b).max()), np.finfo(np.float64).tiny)
        return Point(c, b, np.full(len(c), size), np.full(len(c), size))

    def run(
        self, at: Point, end: Callable[[float], float], most: int = MOST_STEPS
    ) -> Point:
        """Steps until the products of slacks and multipliers are small.

        These bound the gap once slopes are met, of which a step leaves a share.
        """
        slope = np.inf
        for _ in range(most):
            self.at = at
            deadline.check()
            Hc = self.H.times(at.c)
            slope = min(slope, self._mean_slope(at, Hc))
            if self._mean_product(at) + slope <= end(self.problem.objective(at.c, Hc)):
                break
            try:
                moved, length = self._step(at, Hc)
            except np.linalg.LinAlgError:  # K is indefinite, or rounding decides
                break
            rounded = min(float(slacks.min()) for slacks in self._slacks(moved)) <= 0.0
            if length < LEAST_STEP or rounded:
                break
            at, slope = moved, slope * (1.0 - length)
        return at

    def _slacks(self, at: Point) -> tuple[Vector, Vector]:
        return at.c - self.lower, self.upper - at.c

    def _mean_product(self, at: Point) -> float:
        below, above = self._slacks(at)
        return 0.5 * float((below * at.low + above * at.high).mean())

    def _mean_slope(self, at: Point, Hc: Vector) -> float:
        """What slopes that multipliers do not make up for may be worth, a row."""
        slope = Hc + self.linear - self.E @ at.b - at.low + at.high
        return float((np.abs(slope) * (self.upper - self.lower)).mean())

    def _step(self, at: Point, Hc: Vector) -> tuple[Point, float]:
        """A predictor, which says how much smaller products may become, a corrector."""
        below, above = self._slacks(at)
        solve = self.H.factored(at.low / below + at.high / above)
        system = System(solve, solve(self.E), Hc + self.linear - self.E @ at.b)
        none = np.zeros(len(at.c))
        move = self._move(at, system, none, none)
        mean = self._mean_product(at)
        reached = self._mean_product(self._moved(at, move, self._length(at, move)))
        target = mean * (reached / mean) ** 3
        move = self._move(
            at, system, target - move.c * move.low, target + move.c * move.high
        )
        length = TO_BOUND * self._length(at, move)
        return self._moved(at, move, length), length

    def _move(self, at: Point, system: "System", low: Vector, high: Vector) -> Point:
        """The change to where slacks times multipliers are ``low`` and ``high``."""
        below, above = self._slacks(at)
        x = system.solve(low / below - high / above - system.slope)
        missing = self.sums - self.E.T @ (at.c + x)
        b = np.asarray(np.linalg.solve(self.E.T @ system.Z, missing), np.float64)
        c = x + system.Z @ b
        return Point(
            c,
            b,
            (low - at.low * c) / below - at.low,
            (high + at.high * c) / above - at.high,
        )

    def _length(self, at: Point, move: Point) -> float:
        """How far it is to the nearest bound, 1 at the most."""
        below, above = self._slacks(at)
        up, low, high = move.c / above, move.low / at.low, move.high / at.high
        falls = -(move.c / below).min(), up.max(), -low.min(), -high.min()
        return 1.0 / max(1.0, *map(float, falls))

    def _moved(self, at: Point, move: Point, length: float) -> Point:
        return Point(*(x + length * d for x, d in zip(at, move, strict=True)))

    def at_bounds(self, at: Point, least: float | None = None) -> Vector:
        """The c with rows at the nearest bound, if that moves no score much.

        By less than the multiplier, which keeps the row there, and is nearer to the
        largest one than the slack to the width of the bounds. How much a slack moves a
        score, ``least``, is the mean diagonal of H, or less where others make up for
        it.
        """
        below, above = self._slacks(at)
        width = self.upper - self.lower
        least = self.H.size if least is None else least
        steep = np.maximum(least, np.abs(at.low - at.high).max() / width)
        c = np.where((below < above) & (steep * below < at.low), self.lower, at.c)
        return np.where((above < below) & (steep * above < at.high), self.upper, c)

    def feasible(self, c: Vector) -> Vector:
        """A c within its bounds that has the sums."""
        c = np.clip(c, self.lower, self.upper)
        for own, total in zip(self.E.T > 0, self.sums, strict=True):
            c[own] = balanced(c[own], self.lower[own], self.upper[own], float(total))
        return c
