"""From an inner point to a vertex: few free variables, and the same scores.

With H = Z Z' of rank r and k sums, some optimum has r + k variables between their
bounds at the most (Caratheodory), and an interior point ends in the middle of all
optima. First what tells its bounds goes there, and the others make up for it; then
moves in the null space of (Z, E)' along which the objective does not rise take one
variable after the other to a bound: the purification of linear programs.
"""

from collections.abc import Callable

import numpy as np
from scipy.linalg import lstsq, qr

from widemargin.arrays import Index, Vector
from widemargin.solvers.kernel.inner_points import Boxed, Point
from widemargin.system import deadline

# How often rows make up for what bounds took from others.
ROUNDS = 8
# The share of the variables that make up for others at the most.
MANY = 0.5
# Free variables that are looked at together, beside as many as stay. (16 and 64: 0.9 to
# 1.3 of the time, 256: 1.6 to 2.4, benchmarks/core/vertex.py.)
MORE = 32
# Rows that are multiplied at a time: they stay in the second-level cache.
ROWS = 512


class ToVertex:
    """Moves that keep the scores.

    Parameters
    ----------
    problem : Boxed
    rows : function of an index of k rows, which returns them of Z: (k, r)
    at : Point, the inner one
    c : ndarray (m,), where to begin: within bounds, with the sums

    Attributes
    ----------
    c : ndarray (m,), by now
    """

    def __init__(
        self, problem: Boxed, rows: Callable[[Index], Vector], at: Point, c: Vector
    ) -> None:
        self._lower, self._upper, self._E = problem.lower, problem.upper, problem.E
        self._factor, self._slope, self.c = rows, at.low - at.high, c.copy()
        d = at.low / (at.c - self._lower) + at.high / (self._upper - at.c)
        self._scale = 1.0 / np.sqrt(d)  # how far a step moves c

    def settle(self, goal: Vector) -> None:
        """Move to ``goal`` what is at a bound there; others move to make up for it.

        The ones that meet a bound stay there, and the rest goes on. Not where so many
        rows are free that a copy of their features is much beside Z.
        """
        before, is_free = self.c, (goal > self._lower) & (goal < self._upper)
        self.c = np.where(is_free, before, goal)
        for _ in range(ROUNDS):
            moved, free = np.flatnonzero(self.c != before), self._free
            if not (moved.size and 0 < free.size <= MANY * len(before)):
                self.c = before
                return
            wanted = self.c[free] + self._least(free, moved, (before - self.c)[moved])
            self.c[free] = np.clip(wanted, self._lower[free], self._upper[free])
            if (self.c[free] == wanted).all():
                return

    def purify(self) -> None:
        """Move until no more variables are free than (Z, E) has columns."""
        free = self._free
        if not free.size:
            return
        count, some = self._rows(free[:1]).shape[1] + MORE, free[:0]
        for begin in range(0, len(free), count):
            some = self._purified(np.append(some, free[begin : begin + count]))

    @property
    def _free(self) -> Index:
        """Variables between their bounds."""
        return np.flatnonzero((self.c > self._lower) & (self.c < self._upper))

    def _rows(self, J: Index) -> Vector:
        """Rows J of (Z, E)."""
        return np.column_stack([self._factor(J), self._E[J]])

    def _least(self, J: Index, moved: Index, change: Vector) -> Vector:
        """The change of rows J with the scores of others, as in a step of inner points.

        The least one: what moves c by more than d allows is left out. Sums are exact.
        """
        left = np.zeros(self._rows(J[:1]).shape[1])
        for a in range(0, len(moved), ROWS):
            left += self._rows(moved[a : a + ROWS]).T @ change[a : a + ROWS]
        r = len(left) - self._E.shape[1]
        A = self._rows(J) * self._scale[J, np.newaxis]
        A, E = A[:, :r], A[:, r:]
        F = np.linalg.pinv(E.T)
        x = F @ left[r:]
        right = left[:r] - A.T @ x
        A -= F @ (E.T @ A)
        cut = 1.0 / max(1.0, float(np.linalg.norm(A)))
        x += lstsq(A.T, right, cut, overwrite_a=True, lapack_driver="gelsy")[0]
        return np.asarray(self._scale[J] * x)

    def _purified(self, J: Index) -> Index:
        """Moves of some rows, and which of them stay free."""
        A = self._rows(J)
        lengths = np.linalg.norm(A, axis=1)[:, np.newaxis]
        lengths[lengths == 0.0] = 1.0
        N = qr(A / lengths, overwrite_a=True)[0][:, A.shape[1] :] / lengths
        is_free = np.full(len(J), True)
        while N.shape[1]:
            deadline.check()
            move = -(N @ (self._slope[J] @ N))
            c = self._moved(J, move if move.any() else N[:, 0])
            met = is_free & ((c <= self._lower[J]) | (c >= self._upper[J]))
            for i in np.flatnonzero(met):
                N = _without(N, int(i))
            self.c[J], is_free = c, is_free & ~met
        return np.asarray(J[is_free])

    def _moved(self, J: Index, change: Vector) -> Vector:
        """What c[J] is where the first row meets a bound on the way."""
        c = self.c[J]
        ends = np.where(change > 0.0, self._upper[J], self._lower[J])
        with np.errstate(divide="ignore", invalid="ignore"):
            lengths = np.where(change == 0.0, np.inf, (ends - c) / change)
        t = lengths.min()
        c = np.clip(c + t * change, self._lower[J], self._upper[J])
        return np.where(lengths <= t, ends, c)


def _without(N: Vector, i: int) -> Vector:
    """The part of the space of the columns of N where row i is zero."""
    v = N[i].copy()
    if not v.any():
        return N
    v[0] += np.copysign(np.linalg.norm(v), v[0])
    left: Vector = N[:, 1:] - np.outer(N @ v, v[1:] * (2.0 / (v @ v)))
    left[i] = 0.0
    return left
