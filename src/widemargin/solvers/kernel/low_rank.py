"""Where K is of low rank to rounding: an interior point in place of pair steps.

Smooth kernels in few dimensions have values that some hundred features make to many
digits, and polynomial ones of few columns are such features: K ~ Z Z', (m, r). With a
large C pair steps take millions there, and an interior point some twenty steps of
O(m r^2) multiplications (Fine, Scheinberg 2001). The factor is pivoted Cholesky's, and
grows while that takes a share of the work that pair steps have taken by then: so none
of it is much where K has no low rank. Scores, and what is proved, are those of K.
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from widemargin.features.builder import MapBuilder
from widemargin.features.partial_cholesky import PartialCholesky, largest, pivots_of
from widemargin.kernels.definite import sample
from widemargin.numerics.cholesky import cholesky, threads_for
from widemargin.problems.kernel import KernelProblem
from widemargin.solvers.kernel.inner_points import Boxed, Method, indicators
from widemargin.solvers.kernel.pairs_first import PairsFirst
from widemargin.solvers.kernel.selection import AT_ONCE
from widemargin.solvers.kernel.working_set import WorkingSet
from widemargin.system import deadline

Vector = NDArray[np.float64]

# A rank is low up to this share of the rows; of the sample that is looked at first,
# with a residual of `SAMPLED` of the diagonal.
LOW, SAMPLED = 0.5, 1e-8
# Visits of a variable by pair steps that take as long as an interior point, in units of
# m r^2: 20 steps of m r^2 multiplications at 10 to 20 e9 a second, and visits at 1e9.
VISITS = 3.0
# Of the gap that is asked for: what the interior point leaves, and what residuals may
# cost at most, which is a bound that is far above it: they have both signs.
LEFT, RESIDUAL = 0.01, 10.0
# A run that misses its gap may try so often, each time so much nearer.
TRIES, NEARER = 3, 1e-2
# What rows at their bounds may move scores, in units of slacks: the first one of these
# that keeps the gap.
SETTLED = 0.0, 0.03, 1.0
# Rows that are multiplied at a time: they stay in the second-level cache.
ROWS = 512
# The share of the memory that the factor may have.
SHARE = 0.25


def rank_of(K: Vector) -> float:
    """The rank of the kernel matrix of some rows; infinity where it is not low."""
    rank = len(pivots_of(K, SAMPLED * float(K.diagonal().max()))[0])
    return rank if rank <= LOW * len(K) else np.inf


class LowRank:
    """Looks for a low rank of K while pair steps take long, and solves with it.

    Parameters
    ----------
    run : WorkingSet
    pairs : PairsFirst, which counts its work, and stops where it is enough
    tol : float, the relative gap that is asked for

    Attributes
    ----------
    rank : int, of the last solution; 0: there is none
    """

    def __init__(self, run: WorkingSet, pairs: PairsFirst, tol: float) -> None:
        self._run, self._pairs, self._tol = run, pairs, tol
        self.rank, self._tries = 0, 0
        self._factor: PartialCholesky | None = None
        problem = run.problem
        bounded = np.isfinite(run.form.bound).all() and not run.form.ridge.any()
        columns = problem.columns
        self._m = columns.twins or columns.shape[0]
        if bounded and problem.kernel.is_psd and self._m > AT_ONCE:
            J = sample(self._m)
            pairs.most_visits = self._visits(rank_of(columns.values(J, J)))

    @property
    def is_due(self) -> bool:
        """Whether pair steps have taken as long as this will."""
        return self._pairs.visits >= self._pairs.most_visits

    def solve(self, dual: float) -> bool:
        """Move the run to a point of the factor, if that is better.

        ``dual`` is the dual objective by now. Returns whether the run has moved.
        """
        scale = max(abs(dual), self._run.problem.scale)
        nearer = NEARER**self._tries
        enough = nearer * RESIDUAL * self._tol * scale
        if not self._grown(enough / float(np.abs(self._run.c).sum()) ** 2):
            return False
        self._tries += 1
        c = self._solution(nearer * LEFT * self._tol)
        self._pairs.most_visits += self._visits(self.rank)
        if self._tries == TRIES:
            self._pairs.most_visits = np.inf
        return c is not None and self._run.move(c)

    def _visits(self, rank: float) -> float:
        """Visits of pair steps that take as long as an interior point of a rank."""
        return VISITS * self._m * max(rank, 1.0) ** 2

    def _grown(self, residual: float) -> bool:
        """Let the factor grow until it is that near to K, if it is worth it now."""
        try:
            factor = self._factor = self._factor or self._begun()
            enough = self._m * max(residual, factor.least)
            while factor.rest.sum() > enough:
                if len(factor.pivots) > LOW * self._m:
                    raise ValueError
                visits = self._visits(len(factor.pivots))
                if visits > 3.0 * self._pairs.visits:
                    self._pairs.most_visits = visits
                    return False
                if not factor.extend(enough):
                    break
        except ValueError:  # there is no room for it, or K is not what it seemed
            self._pairs.most_visits = np.inf
            return False
        self.rank = len(factor.pivots)
        return True

    def _begun(self) -> PartialCholesky:
        """A factor of rank 0."""
        columns = self._run.problem.columns
        room = int(SHARE * columns.limit)
        builder = MapBuilder(
            "IRWLS", columns.rows, columns.kernel, np.float64, 0, room
        )
        return PartialCholesky(builder, builder.m, largest)

    def _solution(self, share: float) -> Vector | None:
        """The c of an interior point, which leaves a gap of that share, or nothing."""
        run = self._run
        form, problem = run.form, run.problem
        y = problem.signs
        upper = np.where(y > 0, form.bound, 0.0)
        groups = ((), (np.full(len(y), True),), (y > 0, y < 0))[form.sums]
        E = indicators(groups, len(y))
        H = Factored(self._factor.Z, problem)
        sums = E.T @ run.c if form.sums > 1 else np.full(form.sums, problem.mass or 0.0)
        boxed = Boxed(H, -problem.margins * y, upper - form.bound, upper, E, sums)

        def end(objective: float) -> float:
            return 0.5 * share * max(abs(objective), problem.scale) / len(y)

        method = Method(boxed)
        begin = method.begin()
        if begin is None:
            return None
        last = method.run(begin, end)
        inside = method.feasible(last.c)
        enough = max(self._gap(inside, H.times(inside)), 0.5 * self._tol)
        for share in SETTLED:
            for c in method.settled(last, share):
                if self._gap(c, H.times(c)) <= enough:
                    return c
        return inside

    def _gap(self, c: Vector, f: Vector) -> float:
        """The relative gap of c by scores f."""
        problem = self._run.problem
        b = problem.intercept_for(f, c, 0.0)
        return problem.values(c, f, b).relative_gap


class Factored:
    """The matrix Z Z' + p of samples, which may occur twice.

    Parameters
    ----------
    Z : ndarray (m, r)
    problem : KernelProblem
    """

    def __init__(self, Z: Vector, problem: KernelProblem) -> None:
        if problem.intercept == "penalized":
            Z = np.column_stack([Z, np.ones(len(Z))])
        self._Z, self._copies = Z, len(problem.signs) // len(Z)
        self.size = float(np.einsum("ij,ij->", Z, Z)) / len(Z)

    def times(self, c: Vector) -> Vector:
        """The product H c."""
        return self._spread(self._Z @ self._summed(c))

    def factored(self, d: Vector) -> Callable[[Vector], Vector]:
        """What solves systems with H + diag(d): by a matrix of order r."""
        Z, inverse = self._Z, 1.0 / d
        r = Z.shape[1]
        scale = np.sqrt(inverse.reshape(self._copies, -1).sum(axis=0))
        M = np.zeros((r, r))
        with threads_for(r):
            for begin in range(0, len(Z), ROWS):
                deadline.check()
                some = Z[begin : begin + ROWS] * scale[begin : begin + ROWS, np.newaxis]
                M += some.T @ some
        M[np.diag_indices(r)] += 1.0
        solve, _ = cholesky(M)

        def solved(right: Vector) -> Vector:
            x = (inverse * right.T).T
            inner = solve(self._summed(x))
            return x - (inverse * self._spread(Z @ inner).T).T

        return solved

    def _summed(self, c: Vector) -> Vector:
        """The product of Z' and c, of both copies."""
        return self._Z.T @ c.reshape(self._copies, len(self._Z), -1).sum(axis=0).reshape(
            len(self._Z), *c.shape[1:]
        )

    def _spread(self, f: Vector) -> Vector:
        """Numbers of samples for all rows."""
        return f if self._copies == 1 else np.concatenate([f] * self._copies)
