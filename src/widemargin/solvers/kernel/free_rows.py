"""Where more rows are free than a working set holds: all of them at once, in the end.

Near the optimum few rows come or leave, and what is left is one linear system, of the
rows J that are free: with F the gradient, and E the sums that stay,

    [ K_JJ + p + diag(r)   E ] [ d ]   [ -F_J ]
    [ E'                   0 ] [ b ] = [   0  ].

Working sets that hold a part of J come near its solution by a factor each: 5,800 free
rows of a regression with C = 100 take 40 sets from a gap of 1e-3 to 1e-6, and a factor
is 1.5 s. Rows that would pass a bound are held there, and rows that violate their
conditions join: columns that border the matrix, whose factor stays what it is.
"""

import math
from typing import NamedTuple

import numpy as np

from widemargin import _core
from widemargin.arrays import Index, Mask, Vector
from widemargin.numerics.cholesky import cholesky
from widemargin.solution import Step
from widemargin.solvers.kernel.inner_points import indicators
from widemargin.solvers.kernel.pairs_first import PairsFirst
from widemargin.solvers.kernel.reweighted import balanced
from widemargin.solvers.kernel.selection import MOST_SIZE
from widemargin.solvers.kernel.working_set import WorkingSet
from widemargin.system import deadline

# The gap from which on it is tried; and how many times the one that is asked for that
# has to be: what is nearer takes working sets as long.
NEAR, FAR = 0.1, _core.FAR_OFF
# Multiplications of a factor that take as long as a visit of a variable by a pair step:
# it pays where as much work of these is to come.
OF_VISIT = _core.OF_VISIT
# Free rows at most: a factor of 8,192 takes 0.5 GB, and 4 s on one core.
MOST_FREE = _core.MANY_FREE
# Flops that take as long as an entry of the matrix: 17 ns, a value in float64 of 300
# columns (one of 30 takes 6, of 800 40).
OF_ENTRY = 250.0
# Columns that border the matrix at most: these take a quarter of the time of a factor.
MOST_BORDERING = 200
# Steps with one factor. A run may try so often, each time with a so much smaller gap.
STEPS, TRIES, NEARER = 10, 3, 0.1


class FreeRows:
    """Solves for all free rows of a run, where they are many and the end is near.

    Parameters
    ----------
    run : WorkingSet
    pairs : PairsFirst, which counts its work
    tol : float, the relative gap that is asked for
    is_begun : bool, whether it goes on from a start, which was work before
    """

    def __init__(
        self, run: WorkingSet, pairs: PairsFirst, tol: float, is_begun: bool
    ) -> None:
        self._run, self._pairs, self._tol = run, pairs, tol
        self._is_begun = is_begun
        self._tries, self._near = 0, NEAR

    def moves(self, now: Step) -> bool:
        """Move the run to the solution, where it is time to and it is better.

        ``now`` has the objectives by now. Returns whether the run has moved.
        """
        if not self._is_time(now.relative_gap):
            return False
        self._tries, self._near = self._tries + 1, NEARER * now.relative_gap
        run, steps = self._run, 0
        try:
            run.refine()
            run.scores.settle()
            system = System(run)
            while steps < STEPS and not run.gap <= self._tol:
                c = system.solution()
                if c is None or not run.move(c):
                    break
                steps += 1
        except (ValueError, np.linalg.LinAlgError):  # no room, or K is singular
            pass
        return steps > 0

    def _is_time(self, gap: float) -> bool:
        """Whether the end is near, but far for working sets."""
        if self._tries == TRIES or not FAR * self._tol < gap <= self._near:
            return False
        columns, free = self._run.problem.columns, np.count_nonzero(self._run.free)
        most = min(MOST_FREE, columns.block_rows * np.sqrt(columns.dtype.itemsize / 8))
        if not (columns.kernel.is_psd and MOST_SIZE < free <= most):
            return False
        if not deadline.allows(free**3 / 3.0 + OF_ENTRY * free**2):
            return False  # working sets have something to show by then
        # Gaps fall by a factor each.
        to_come = self._pairs.visits * math.log(gap / self._tol) / -math.log(gap)
        return self._is_begun or bool(free**3 / 3.0 <= OF_VISIT * to_come)


class Bordering(NamedTuple):
    """Columns W beside the matrix, what solves with it make of them, and the corner."""

    W: Vector
    Z: Vector
    corner: Vector

    def solution(self, d: Vector, right: Vector) -> tuple[Vector, Vector]:
        """The bordered system's, d being that of the matrix: d, and the other part."""
        schur = self.corner - self.W.T @ self.Z
        u = np.asarray(np.linalg.solve(schur, right - self.W.T @ d), np.float64)
        return d - self.Z @ u, u


class System:
    """The system of the rows that are free now, and of what these become.

    Parameters
    ----------
    run : WorkingSet, in float64

    Raises
    ------
    numpy.linalg.LinAlgError
        The matrix is singular.
    """

    def __init__(self, run: WorkingSet) -> None:
        self._run = run
        self._rows = J = np.flatnonzero(run.free)
        self._E = indicators(run.look().groups, len(run.c))
        self._solve, _ = cholesky(self._square(J))

    def _columns(self, J: Index, new: Index) -> Vector:
        """Columns ``new`` of the matrix, of other rows J."""
        return np.asarray(self._run.problem.columns.block(J, new) + self._run.shift)

    def _square(self, J: Index) -> Vector:
        """The matrix for some rows."""
        H = self._run.problem.columns.block(J, J)
        H += self._run.shift
        H[np.diag_indices(len(J))] += self._run.form.ridge[J]
        return H

    def solution(self) -> Vector | None:
        """The c where all that are free, or violate their conditions, have the same F.

        None where too many rows would be held at bounds, or join.
        """
        run, J = self._run, self._rows
        F, c = run.look().F, run.c.copy()
        free, d = self._free(F), self._solve(-F[J])
        lower, upper = run.bounds
        while True:
            joined, held = free.copy(), np.flatnonzero(~free[J])
            joined[J] = False
            new = np.flatnonzero(joined)
            if len(new) + len(held) > MOST_BORDERING:
                return None
            right = np.concatenate(
                [-F[new], np.zeros(self._E.shape[1]), (c - run.c)[J[held]]]
            )
            change, others = self._bordering(new, held).solution(d, right)
            to = c.copy()
            to[J] = run.c[J] + change
            to[new] += others[: len(new)]
            passed = free & ((to < lower) | (to > upper))
            if not passed.any():
                break
            c[passed] = np.where(to < lower, lower, upper)[passed]
            free &= ~passed
        c[free] = to[free]
        for own in run.look().groups:
            c[own] = balanced(c[own], lower[own], upper[own], float(run.c[own].sum()))
        return c

    def _free(self, F: Vector) -> Mask:
        """Rows that are free, or would be if they followed F."""
        run, groups = self._run, self._run.look().groups
        free, (lower, upper) = run.free, run.bounds
        slope = F.copy()
        for own in groups:
            slope[own] -= np.median(F[own][free[own]])
        joins = np.where(slope < 0.0, run.c < upper, run.c > lower)
        if (m := run.problem.columns.twins) is not None:  # of a sample one row
            joins &= ~np.roll(free, m)
        return np.asarray(free | joins)

    def _bordering(self, new: Index, held: Index) -> Bordering:
        """Columns of rows that join, of the sums, and of rows that are held."""
        J, E = self._rows, self._E
        k, sums = len(new), E.shape[1]
        columns = [self._columns(J, new), E[J], indicators(tuple(held), len(J))]
        W = np.hstack(columns)
        corner = np.zeros((W.shape[1], W.shape[1]))
        corner[:k, :k] = self._square(new)
        corner[:k, k : k + sums] = E[new]
        corner[k : k + sums, :k] = E[new].T
        return Bordering(W, self._solve(W), corner)
