"""The small problem of a working set by an interior point method.

    minimize 1/2 c'(K + p + diag(r)) c - t'c   over lower <= c <= upper, E'c = s,

Mehrotra's predictor and corrector from the middle of the bounds. With slacks
s_l = c - lower and s_u = upper - c and their multipliers z_l and z_u a step solves

    [ K + p + diag(r + z_l / s_l + z_u / s_u)   -E ] [ dc ]
    [ E'                                         0 ] [ db ]

twice with one Cholesky factor. Some twenty steps do, however singular K is, where pair
steps need millions and faces one step for each row that meets a bound.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from widemargin.numerics.cholesky import cholesky
from widemargin.solvers.kernel.reweighted import balanced
from widemargin.solvers.kernel.working_set import Small
from widemargin.system import deadline

Vector = NDArray[np.float64]

# Steps at the most, how far one goes to the nearest bound, and its least length: below,
# rounding decides.
MOST_STEPS, TO_BOUND, LEAST_STEP = 60, 0.99, 1e-6
# The mean product of slack and multiplier at the end, as a share of what the violation
# that may stay does to a mean bound: by then rows that end at a bound tell (two mixed
# classes of 600 rows: not with 1e-2, 1e-4 and 1e-6).
END = 1e-9
# Shares of the sums that leave room to both sides.
ROOM = 1e-9


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
    method = _Method(small)
    begin = method.begin()
    if begin is None:
        return []
    end = method.run(begin, stop)
    return [method.feasible(c) for c in (end.c, method.at_bounds(end))]


class _Method:
    """The steps for one small problem."""

    def __init__(self, small: Small) -> None:
        q = len(small.c)
        self.lower, self.upper = small.lower, small.upper
        self.H = small.K[:, :q].astype(np.float64) + small.shift
        self.H[np.diag_indices(q)] += small.ridge
        self.linear = small.F - self.H @ small.c
        self.E = np.zeros((q, len(small.violations.groups)))
        for column, own in enumerate(small.violations.groups):
            self.E[own, column] = 1.0
        self.sums = self.E.T @ small.c

    def begin(self) -> Point | None:
        """The same share of all bounds of a sum."""
        width = self.upper - self.lower
        if not np.isfinite(width).all():
            return None
        total = self.E.T @ width
        with np.errstate(divide="ignore", invalid="ignore"):
            share = (self.sums - self.E.T @ self.lower) / total
        inside = (share > ROOM) & (share < 1.0 - ROOM)
        if not (inside | (total == 0.0)).all() or not (width > 0).all():
            return None
        c = self.lower + width * (self.E @ share)
        F = self.H @ c + self.linear
        b = self.E.T @ F / self.E.sum(axis=0)
        size = max(float(np.abs(F - self.E @ b).max()), np.finfo(np.float64).tiny)
        return Point(c, b, np.full(len(c), size), np.full(len(c), size))

    def run(self, at: Point, stop: float) -> Point:
        """Steps until the products of slacks and multipliers are small."""
        end = END * stop * float((self.upper - self.lower).mean())
        for _ in range(MOST_STEPS):
            deadline.check()
            if self._mean_product(at) <= end:
                break
            try:
                moved, length = self._step(at)
            except np.linalg.LinAlgError:  # K is indefinite, or rounding decides
                break
            rounded = min(float(slacks.min()) for slacks in self._slacks(moved)) <= 0.0
            if length < LEAST_STEP or rounded:
                break
            at = moved
        return at

    def _slacks(self, at: Point) -> tuple[Vector, Vector]:
        return at.c - self.lower, self.upper - at.c

    def _mean_product(self, at: Point) -> float:
        below, above = self._slacks(at)
        return 0.5 * float((below * at.low + above * at.high).mean())

    def _step(self, at: Point) -> tuple[Point, float]:
        """A predictor, which says how much smaller products may become, a corrector."""
        below, above = self._slacks(at)
        M = np.array(self.H, order="F")
        M[np.diag_indices(len(at.c))] += at.low / below + at.high / above
        solve, _ = cholesky(M)
        system = System(
            solve, solve(self.E), self.H @ at.c + self.linear - self.E @ at.b
        )
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
        pairs = (below, move.c), (above, -move.c), (at.low, move.low)
        length = 1.0
        for room, change in (*pairs, (at.high, move.high)):
            falls = change < 0
            if falls.any():
                length = min(length, float((-room[falls] / change[falls]).min()))
        return length

    def _moved(self, at: Point, move: Point, length: float) -> Point:
        return Point(*(x + length * d for x, d in zip(at, move, strict=True)))

    def at_bounds(self, at: Point) -> Vector:
        """The c with rows at the nearest bound, if that moves no score much.

        By less than the multiplier, which keeps the row there, and is nearer to the
        largest one than the slack to the width of the bounds.
        """
        below, above = self._slacks(at)
        width = self.upper - self.lower
        k = float(self.H.diagonal().mean())
        steep = np.maximum(k, np.abs(at.low - at.high).max() / width)
        c = np.where((below < above) & (steep * below < at.low), self.lower, at.c)
        return np.where((above < below) & (steep * above < at.high), self.upper, c)

    def feasible(self, c: Vector) -> Vector:
        """A c within its bounds that has the sums."""
        c = np.clip(c, self.lower, self.upper)
        for own, total in zip(self.E.T > 0, self.sums, strict=True):
            c[own] = balanced(c[own], self.lower[own], self.upper[own], float(total))
        return c
