"""Where K is of low rank to rounding: an interior point in place of pair steps.

Smooth kernels in few dimensions have values that some hundred features make to many
digits, and polynomial ones of few columns are such features: K ~ Z Z', (m, r). With a
large C pair steps take millions there, and an interior point some twenty steps of
O(m r^2) multiplications (Fine, Scheinberg 2001). The factor is pivoted Cholesky's, and
grows while that takes a share of the work that pair steps have taken by then: so none
of it is much where K has no low rank. Scores, and what is proved, are those of K. Where
the rank is not low, and a working set of all rows has too many pair steps, the matrix
of the interior point is K.
"""

import contextlib
import functools
import math
from typing import cast

import numpy as np

from widemargin.arrays import Index, Vector
from widemargin.data.rows import Rows
from widemargin.features.builder import MapBuilder
from widemargin.features.partial_cholesky import PartialCholesky, largest, pivots_of
from widemargin.kernels.definite import SAMPLE, sample
from widemargin.kernels.kernel import Kernel
from widemargin.kernels.matrix import Columns
from widemargin.numerics.cholesky import threads_for
from widemargin.problems.base import FLOOR
from widemargin.problems.kernel import KernelProblem
from widemargin.problems.mass import MassProblem
from widemargin.solution import Certificate, Step
from widemargin.solvers.kernel.hulls import (
    ENOUGH,
    HOPELESS,
    MOST,
    common_point,
    lightened,
)
from widemargin.solvers.kernel.inner_points import (
    Boxed,
    Dense,
    Factored,
    Method,
    Point,
    Quadratic,
    indicators,
)
from widemargin.solvers.kernel.pairs_first import PairsFirst
from widemargin.solvers.kernel.selection import AT_ONCE
from widemargin.solvers.kernel.vertex import ToVertex
from widemargin.solvers.kernel.whole_points import MATRICES, inner_answers
from widemargin.solvers.kernel.working_set import WorkingSet
from widemargin.system.threads import ONE_BLAS_THREAD

# A rank is low up to this share of the rows; of the sample that is looked at first,
# with a residual of `SAMPLED` of the diagonal.
LOW, SAMPLED = 0.5, 1e-8
# Rows that show a low rank which the first sample is too small for, looked at where
# pair steps are too many: 10 ms. Two Gaussians in the plane, 2,000 rows, have a rank of
# 104 to 176 in the first, 152 to 346 here and 179 to 455 as a whole, and take 0.3 to
# 0.7 s, by IRWLS 0.65 to 1.4, on one thread (`benchmarks/core/untuned.py`).
WIDER = 800
# Visits of a variable by pair steps that take as long as an interior point, in units of
# m r^2: 20 steps of m r^2 multiplications at 10 to 20 e9 a second, and visits at 1e9.
# A lower rank counts as LEAST_RANK: with 3,000 rows what is around the steps takes 15
# to 25 ms, where easy problems of rank 2 to 15 take 25 to 50 by pair steps alone.
VISITS, LEAST_RANK = 3.0, 50.0
# Of the gap that is asked for: what the interior point leaves, and what residuals may
# cost at most, which is a bound that is far above it: they have both signs.
LEFT, RESIDUAL = 0.01, 10.0
# A run that misses its gap may try so often, each time so much nearer.
TRIES, NEARER = 3, 1e-2
# Steps of an interior point. Two classes of shuttle, whose rows differ in length by
# some digits, take 100 with a polynomial kernel, and two Gaussians 20.
MOST_STEPS = 150
# What rows at their bounds may move scores, in units of slacks: the first one of these
# that keeps the gap; with infinity none is moved at once.
SETTLED = 0.0, 1.0, np.inf
# The share of the memory that the factor may have.
SHARE = 0.125


def rank_of(kernel: Kernel, rows: Rows, K: Vector) -> float:
    """A rank that a kernel matrix may have; infinity where it is not seen to be low.

    Parameters
    ----------
    kernel : Kernel
    rows : Rows, of all of the matrix
    K : ndarray (k, k), of a sample of rows
    """
    if not kernel.is_psd:
        return np.inf
    K = K / (lengths := _lengths(K.diagonal())) / lengths[:, np.newaxis]
    with ONE_BLAS_THREAD:  # which would turn for 20 ms beside the first sweeps
        rank: float = len(pivots_of(K, SAMPLED)[0])
    if rank > LOW * len(K):
        rank = products_of(kernel, rows.shape[1])
    return rank if rank <= LOW * rows.shape[0] else np.inf


def products_of(kernel: Kernel, n: int) -> float:
    """How many products of n columns a kernel is linear in; infinity if in no few."""
    if kernel.name == "linear":
        return n
    if kernel.name == "poly" and kernel.is_psd:
        return math.comb(n + kernel.degree - (kernel.coef0 == 0.0), kernel.degree)
    return np.inf


def _lengths(diagonal: Vector) -> Vector:
    """Lengths of rows, by their products with themselves."""
    return np.sqrt(np.maximum(diagonal, np.finfo(np.float64).tiny))


class LowRank:
    """Looks for a low rank of K while pair steps take long, and solves with it.

    Parameters
    ----------
    run : WorkingSet
    pairs : PairsFirst, which counts its work, and stops where it is enough
    tol : float, the relative gap that is asked for

    Attributes
    ----------
    rank : int, of the factor that was solved with last; 0: there is none
    """

    def __init__(self, run: WorkingSet, pairs: PairsFirst, tol: float) -> None:
        self._run, self._pairs, self._tol = run, pairs, tol
        self.rank, self._tries = 0, 0
        self._is_low = self._no_margin = False
        self._factor: PartialCholesky | None = None
        problem = run.problem
        bounded = np.isfinite(run.form.bound).all() and not run.form.ridge.any()
        columns = problem.columns
        self._m = columns.twins or columns.shape[0]
        if bounded and self._m > AT_ONCE:
            self._look(SAMPLE)
            pairs.asks = not self._is_low

    def moves(self, now: Step) -> bool:
        """Move the run to a point of the factor, where it is time to and it is better.

        ``now`` has the objectives by now. Returns whether the run has moved.
        """
        problem, scale = self._run.problem, abs(now.dual)
        if self._is_low and not self._tries and self._is_hopeless(now):
            if not self._no_margin:
                self._no_margin = True
                with contextlib.suppress(ValueError):  # there is no room for it
                    if not self._meets():
                        self._run.refine()  # which may show that it is solved
                    return True
            self._pairs.visits = self._pairs.most_visits = self._visits(LOW * self._m)
            scale = 0.0  # the optimum may be
        if self._pairs.asks and self._pairs.most_visits < np.inf:
            self._pairs.asks = False
            self._look(WIDER)
            if not self._is_low and self._m == self._pairs.size:
                return self._moves_inside()
        if self._pairs.visits < self._pairs.most_visits:
            return False
        scale = max(scale, problem.scale)
        nearer = NEARER**self._tries
        enough = nearer * RESIDUAL * self._tol * scale
        columns = problem.columns
        if products_of(columns.kernel, columns.rows.shape[1]) <= LOW * self._m:
            enough = 0.0  # few steps more, and lengths may differ by many digits
        size = float((np.abs(self._run.c) * _lengths(columns.diag())).sum())
        factor = self._grown(enough / max(size * size, np.finfo(np.float64).tiny))
        if factor is None:
            return False
        self._tries += 1
        with threads_for(self.rank):
            c = self._solution(factor, nearer * LEFT * self._tol)
        self._pairs.most_visits += self._visits(self.rank)
        if self._tries == TRIES:
            self._pairs.most_visits = np.inf
        return c is not None and self._run.move(c)

    def _look(self, most: int) -> None:
        """Whether so many rows show a low rank, and after which visits it counts."""
        columns = self._run.problem.columns
        J = sample(self._m, most)
        rank = rank_of(columns.kernel, columns.rows, columns.values(J, J))
        self._pairs.most_visits = self._visits(rank)
        self._is_low = rank < np.inf

    def _moves_inside(self) -> bool:
        """Interior points with K itself, where all rows have too many pair steps.

        IRWLS goes on from there. With C = 1e5 2,000 rows of `make_friedman2` take 2.3 s
        and 1,500 of `make_friedman3` 0.6, and were not solved in 60 s without it.
        """
        problem, columns = self._run.problem, self._run.problem.columns
        if not columns.kernel.is_psd or MATRICES * self._m**2 > columns.limit:
            return False
        J, m = np.arange(self._m), len(problem.signs)
        K = columns.values(J, J) + float(problem.intercept == "penalized")
        H = Dense(K, m // self._m)
        method = self._method(H)
        share, scale = LEFT * self._tol / m, problem.scale
        found = inner_answers(
            method, lambda P: share * max(abs(P), scale), self._run.kinks is not None
        )
        return any(self._run.move(c) for c, _ in found)

    def _is_hopeless(self, now: Step) -> bool:
        """Whether there is no margin yet, and hardly any is possible."""
        problem = self._run.problem
        bounds = Certificate(now.primal, now.dual, problem.scale)
        small = -now.dual <= HOPELESS / FLOOR * problem.scale
        return small and problem.ends_at_zero(bounds)

    def _meets(self) -> bool:
        """Whether hulls are seen to meet, and the run has moved to what proves it."""
        problem = self._run.problem
        if not isinstance(problem, MassProblem):
            return False
        if self._m <= MOST and not self._run.steps:
            return False  # the batch engine, which it goes on from, has looked
        enough = ENOUGH * self._tol * problem.scale
        columns, given = problem.columns, (problem.signs, problem.weights)
        sums = [(np.flatnonzero(own), total) for own, total in problem.sums_given()]
        values = functools.partial(_all_pairs, columns)
        c = common_point(values, *given, sums, enough, int(SHARE * columns.limit))
        return c is not None and self._run.move(c)

    def _visits(self, rank: float) -> float:
        """Visits of pair steps that take as long as an interior point of a rank."""
        return VISITS * self._m * max(rank, LEAST_RANK) ** 2

    def _grown(self, residual: float) -> PartialCholesky | None:
        """The factor, grown to be as near to K, or None where that does not pay.

        It has one column at least: with a small C none may be near enough.
        """
        try:
            factor = self._factor = self._factor or self._begun()
            enough = self._m * max(residual, factor.least)
            while not len(factor.pivots) or factor.rest.sum() > enough:
                if len(factor.pivots) > LOW * self._m:
                    raise ValueError
                visits = self._visits(len(factor.pivots))
                if visits > 3.0 * self._pairs.visits:
                    self._pairs.most_visits = visits
                    return None
                with threads_for(len(factor.pivots)):
                    if not factor.extend(enough):
                        break
        except ValueError:  # there is no room for it, or K is not what it seemed
            self._pairs.most_visits = np.inf
            return None
        self.rank = len(factor.pivots)
        return factor

    def _begun(self) -> PartialCholesky:
        """A factor of rank 0."""
        columns = self._run.problem.columns
        room = int(SHARE * columns.limit)
        rows = MapBuilder("IRWLS", columns.rows, columns.kernel, np.float64, 0, room)
        # It has what a factor asks of rows.
        return PartialCholesky(cast(MapBuilder, UnitRows(rows)), rows.m, largest)

    def _solution(self, factor: PartialCholesky, share: float) -> Vector | None:
        """The c of an interior point, which leaves a gap of that share, or nothing."""
        problem = self._run.problem
        m = len(problem.signs)
        zero = share * (ENOUGH / LEFT if self._no_margin else 1.0)

        def is_zero(objective: float) -> bool:
            bounds = Certificate(0.0, -objective, problem.scale)
            return bounds.relative_gap <= zero and problem.ends_at_zero(bounds)

        def end(objective: float) -> float:
            if is_zero(objective):
                return np.inf
            return 0.5 * share * max(abs(objective), problem.scale) / m

        H = features_of(factor, problem)
        method = self._method(H)
        begin = method.begin()
        if begin is None:
            return None
        if self._no_margin:
            begin = lightened(begin)
        last = method.run(begin, end, MOST_STEPS)
        inside = method.feasible(last.c)
        if is_zero(method.problem.objective(inside, H.times(inside))):
            return inside  # which predicts nothing: there need not be few rows
        return self._at_vertex(method, H, last, inside)

    def _at_vertex(
        self, method: Method, H: Factored, last: Point, inside: Vector
    ) -> Vector:
        """A vertex whose gap is about that of the inner point, or this if none is."""
        enough = max(2.0 * self._gap(inside, H.scores(inside)), 0.5 * self._tol)
        with contextlib.suppress(np.linalg.LinAlgError):  # rounding is in the way
            for share in SETTLED:
                to = ToVertex(method.problem, H.rows, last, inside)
                if share < np.inf:
                    to.settle(method.at_bounds(last, share * H.size))
                to.purify()
                c = method.feasible(to.c)
                if self._gap(c, H.scores(c)) <= enough:
                    return c
        return inside

    def _method(self, H: Quadratic) -> Method:
        """An interior point, whose c has the sums that are given."""
        problem, form, c = self._run.problem, self._run.form, self._run.c
        y, bound = problem.signs, form.bound
        groups = ((), (np.full(len(y), True),), (y > 0, y < 0))[form.sums]
        E = indicators(groups, len(y))
        sums = E.T @ c if form.sums > 1 else np.full(form.sums, problem.mass or 0.0)
        upper = np.where(y > 0, bound, 0.0)
        return Method(Boxed(H, -problem.margins * y, upper - bound, upper, E, sums))

    def _gap(self, c: Vector, f: Vector) -> float:
        """The relative gap of c by scores f."""
        problem = self._run.problem
        b = problem.intercept_for(f, c, 0.0)
        return problem.values(c, f, b).relative_gap


class UnitRows:
    """Rows as a factor asks for them, each divided by its length.

    Lengths of polynomial kernels may differ by many digits: rounding of the longest
    ones would hide what the others have.

    Parameters
    ----------
    rows : MapBuilder
    """

    def __init__(self, rows: MapBuilder) -> None:
        self._rows, self.m, self.dtype, self.rng = rows, rows.m, rows.dtype, rows.rng
        self.lengths = _lengths(rows.diagonal)
        self.diagonal = rows.diagonal / self.lengths**2
        self.source, self.reserve = self, rows.reserve

    def values(self, I: Index, J: Index) -> Vector:  # noqa: E741
        """Kernel values of rows I with rows J: (len(I), len(J))."""
        lengths = self.lengths[I][:, np.newaxis] * self.lengths[J]
        return np.asarray(self._rows.source.values(I, J) / lengths)

    def columns(self, J: Index) -> Vector:
        """Rows J of K: (len(J), m)."""
        lengths = self.lengths[J][:, np.newaxis] * self.lengths
        return np.asarray(self._rows.columns(J) / lengths)


def _all_pairs(columns: Columns, J: Index) -> Vector:
    """Kernel values of all pairs of some rows: (k, k)."""
    return columns.values(J, J)


def features_of(factor: PartialCholesky, problem: KernelProblem) -> Factored:
    """The factor of a problem, whose samples may occur twice."""
    made, shift = factor.Z, float(problem.intercept == "penalized")
    lengths = cast(UnitRows, factor.builder).lengths[:, np.newaxis]
    Z = np.ones((len(made), made.shape[1] + int(shift)))
    np.multiply(made, lengths, out=Z[:, : made.shape[1]])
    return Factored(Z, len(problem.signs) // len(made), shift)
