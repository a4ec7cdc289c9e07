"""A kernel problem restricted to the span of a few kernel functions.

    minimize over beta, b   1/2 beta'K_JJ beta [+ 1/2 b^2]
                            + sum_i C_i L(1 - y_i (K_iJ beta + b))

With K_JJ = L L' and w = L' beta it is a linear problem in the rows K_iJ L^-T. Only the
rows near the margin are given to a solver; the others are checked afterwards.
"""

import functools
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve_triangular

from widemargin.arrays import Index, Mask, Vector
from widemargin.kernels.matrix import Columns
from widemargin.numerics.rounding import SLACK, gamma_n, repair_error
from widemargin.problems.base import Problem
from widemargin.problems.kernel import KernelProblem
from widemargin.problems.scores import Scores
from widemargin.solution import Certificate, Solution, Status, Step
from widemargin.solvers.auto import solve
from widemargin.solvers.driver.contract import Solver
from widemargin.solvers.driver.limits import Limits
from widemargin.solvers.linear.active_set import ActiveSet
from widemargin.solvers.linear.augmented_lagrangian import AugmentedLagrangian
from widemargin.system.deadline import Deadline

# Rows whose margin is below 1 + BESIDE are given to the solver, of k kernel functions
# at least rows below 1 + FIRST / k: few are cheap, and more of them change more (0.75
# and 200: 500 of ijcnn1 took 1.4 times as long, of a9a 1.25). All, if they are more
# than this share.
BESIDE, FIRST, MOST_ROWS = 0.3, 100.0, 0.8
# Share of k(x, x) that must be new in a row, in float64. (A tenth and ten times of it:
# 0.85 to 1.05 of the time, benchmarks/core/untuned.py.)
NEW_ROW = 3e-5
# Share of the gap that the solver may leave, and the gap from which its rows are in
# float64.
SOLVED, PRECISE = 0.6, 1e-4
# Margins between which the solver's alpha falls from C to 0 at the start (alpha of the
# whole solution took up to a half more steps).
RAMP = 0.1
# Kernel values that are in memory at a time, beside the values of the features.
VALUES = 1 << 20


@dataclass(frozen=True)
class Refits:
    """What ends refits.

    Attributes
    ----------
    limits : Limits, of all of them; after their end a refit ends at its next step
    share : float, gap as a share of what the cut costs
    memory : int, bytes that features may take
    """

    limits: Limits
    share: float
    memory: int

    @property
    def tol(self) -> float:
        """The relative gap of each."""
        return self.limits.tol

    @functools.cached_property
    def deadline(self) -> Deadline | None:
        """The end, which all look at: a share of the time is one since the first."""
        return self.limits.deadline


class SolvedProblem:
    """A problem and its solution, over the rows with C > 0.

    Attributes
    ----------
    problem : KernelProblem
    columns : Columns, its kernel matrix
    y, C : ndarray (m,), labels and weights
    c, alpha : ndarray (m,), and b : float, of the solution
    support : int ndarray, the rows with c != 0
    before : Certificate, of the solution
    numbers : int ndarray (m,), which of all rows these are
    refits : Refits
    """

    def __init__(
        self, problem: KernelProblem, solution: Solution, refits: Refits
    ) -> None:
        kept = slice(None) if problem.kept is None else problem.kept
        self.problem, self.columns = problem, problem.columns
        self.refits = refits
        self.y, self.C = problem.signs, np.asarray(problem.weights)
        self.c, self.alpha, self.b = solution.w[kept], solution.alpha[kept], solution.b
        self.support = np.flatnonzero(self.c)
        self.before = solution.certificate
        self.numbers = np.arange(problem.shape[0])[kept]  # of the rows, among all

    def enough(self, primal: float) -> float:
        """The gap at which a refit with this objective may end."""
        cost = primal - self.before.dual
        return max(self.refits.tol * primal, self.refits.share * cost)

    def f(self, rows: Index) -> Vector:
        """Scores of the solution without b, in float64."""
        return self.columns.exact(rows, self.support, self.c[self.support])

    def losses(self, f: Vector, b: float) -> Vector:
        """What each row with the score f + b costs, (m,)."""
        t = 1.0 - self.y * (f + b)
        return self.C * self.problem.pointwise.value(t)

    def scores(self, J: Index, beta: Vector) -> Scores:
        """Scores of a model, in float32."""
        c = np.zeros(self.c.size)
        c[J] = beta
        return Scores(self.columns, c)

    def best_intercept(self, scores: Scores, b: float) -> float:
        """The best b; b itself where it is not free."""
        if self.problem.intercept != "free":
            return b
        return self.problem.intercept_for(scores.values, scores.c, b)

    def primal(self, scores: Scores, b: float) -> tuple[float, float]:
        """The objective, no smaller than without rounding, and the best b."""
        self.problem.refresh(scores, self.best_intercept(scores, b))
        b = self.best_intercept(scores, b)
        return self.problem.upper_bound(scores.c, scores.sums(), b)[0], b


class ScoredPoint(NamedTuple):
    """A point (w, b), the dual one beside it, and the scores of all rows."""

    alpha: Vector
    w: Vector
    b: float
    scores: Scores


class Features:
    """The rows K_iJ L^-T for chosen rows J, made when they are needed.

    For the first k of J alone they are the first k entries.

    Attributes
    ----------
    whole : SolvedProblem
    J : int ndarray (k,)
    L : ndarray (k, k), the Cholesky factor of K_JJ
    """

    def __init__(self, whole: SolvedProblem, J: Index) -> None:
        self.whole, self.J = whole, J
        self.L = np.asarray(np.linalg.cholesky(whole.columns.values(J, J)))
        self._use(np.float64 if whole.refits.tol < PRECISE else np.float32)

    def _use(self, dtype: Any) -> None:
        """Make features in a dtype from now on."""
        self._dtype = np.dtype(dtype)
        self._buffer = np.empty(0, dtype)

    def refine(self) -> bool:
        """Go on in float64; whether that is new."""
        if self._dtype == np.float64:
            return False
        self._use(np.float64)
        return True

    def take(self, rows: Index, k: int) -> NDArray[Any]:
        """Features of some rows, for the first k of J: (len(rows), k).

        They are lost at the next call: memory that was used before is faster.
        """
        size = len(rows) * k
        self._reserve(len(rows), k)
        if size > len(self._buffer):
            self._buffer = np.empty(size, self._dtype)
        out = self._buffer[:size].reshape(len(rows), k)
        J, L = self.J[:k], self.L[:k, :k].astype(self._dtype)
        for part in _cut(len(rows), k):
            values = self._values(rows[part], J)
            options: Any = {"overwrite_b": True, "check_finite": False}
            out[part] = solve_triangular(L, values.T, lower=True, **options).T
        return out

    def _values(self, rows: Index, J: Index) -> NDArray[Any]:
        columns = self.whole.columns
        make = columns.values if self._dtype == np.float64 else columns.block
        return make(rows, J)

    def _reserve(self, count: int, width: int) -> None:
        """Refuse what does not fit."""
        needed = count * width * self._dtype.itemsize
        if needed > self.whole.refits.memory:
            raise ValueError(
                f"The 'memory_limit' parameter of reduce must be at least {needed:,} "
                f"bytes for {count:,} rows near the margin and {width:,} support "
                f"vectors. Got {self.whole.refits.memory:,} instead."
            )

    def beta(self, w: Vector) -> Vector:
        """Coefficients of w (k,) in the first k kernel functions."""
        k = len(w)
        return np.asarray(solve_triangular(self.L[:k, :k].T, w, lower=False))

    def scores(self, w: Vector) -> Scores:
        """Scores of all rows for w (k,)."""
        scores = self.whole.scores(self.J[: len(w)], self.beta(w))
        if self._dtype == np.float64:
            scores.refresh(np.arange(len(scores.c)))
        return scores

    def certify(self, point: ScoredPoint) -> tuple[Vector, float, Certificate]:
        """The coefficients of a point, its best b, and its certificate.

        The lower bound is for the restricted problem, at the point's alpha.
        """
        primal, b = self.whole.primal(point.scores, point.b)
        dual = self.lower_bound(point.alpha, len(point.w))
        return self.beta(point.w), b, Certificate(primal, dual, self.whole.before.scale)

    def lower_bound(self, alpha: Vector, k: int) -> float:
        """Lower bound D at a feasible alpha (m,), for the first k of J.

        No rounding makes it too large.
        """
        problem, I = self.whole.problem, np.flatnonzero(alpha)  # noqa: E741
        c, linear = (self.whole.y * alpha)[I], float(alpha.sum())
        square, off = self._square(I, c, k), gamma_n(len(c) + 8)
        total = abs(float(c.sum())) + off * linear
        rest = problem.squares(alpha)
        if problem.intercept == "penalized":
            rest += 0.5 * total * total
        elif problem.intercept == "free":  # both slopes and lengths from c
            size = float(alpha @ self._lengths)
            slope = linear + size * np.sqrt(square) * SLACK
            rest += repair_error(total, linear, slope, size * size)
        return linear - 0.5 * square - rest - off * (linear + square + rest)

    def _square(self, I: Index, c: Vector, k: int) -> float:  # noqa: E741
        """The most that g'K_JJ^-1 g is without rounding, g = K_JI c.

        It is b'(2 g - K_JJ b) + r'K_JJ^-1 r, r = g - K_JJ b, for any b: with the best b
        in float64 r is small.
        """
        if k == 0:
            return 0.0
        bounded, J = self.whole.columns.bounded, self.J[:k]
        g, errors = bounded(J, I, c)
        b = self.beta(solve_triangular(self.L[:k, :k], g, lower=True))
        f, more = bounded(J, J, b)
        r = (
            np.abs(g - f) + gamma_n(2) * (np.abs(g) + np.abs(f)) + errors + more
        ) * SLACK
        size = 2.0 * np.abs(g) + np.abs(f)
        off = float(np.abs(b) @ (2.0 * errors + more + gamma_n(k + 8) * size)) * SLACK
        left = float(r @ r) * self._longest[k - 1]
        return max(0.0, float(b @ (2.0 * g - f))) + off + float(left) * SLACK

    @functools.cached_property
    def _lengths(self) -> Vector:
        """Lengths sqrt k(x, x) of all rows, or a little more: (m,)."""
        columns = self.whole.columns
        errors = columns.diag_errors
        return np.asarray(np.sqrt(np.abs(columns.diag()) + errors) * SLACK)

    @functools.cached_property
    def _longest(self) -> Vector:
        """Bounds of the norms of K_JJ^-1, for each number of rows: (k,).

        By the factor, K = L L' - E, with rows of errors E that are at most gamma_(k+1)
        |L| |L'|; infinite where these are no longer small beside K. Where they are, the
        computed inverse is off by far less than the factor 2 that it gets.
        """
        k = len(self.J)
        inverse = solve_triangular(self.L, np.eye(k), lower=True)
        found = 2.0 * np.cumsum(np.square(inverse).sum(axis=1))
        errors = self.whole.columns.bounded(self.J, self.J, np.ones(k))[1]
        lost = gamma_n(k + 2) * float(np.square(self.L).sum()) + float(errors.max())
        return np.where(lost * found < 0.5, 2.0 * found, np.inf)


def independent(columns: Columns, J: Index) -> Mask:
    """Which of J, in their order, have something new beside rows before them: (k,).

    In float64: what float32 took for new may be rounding.
    """
    K = columns.values(J, J)
    least = NEW_ROW * K.diagonal()
    try:
        if np.all(np.linalg.cholesky(K).diagonal() ** 2 > least):
            return np.ones(len(J), bool)
    except np.linalg.LinAlgError:
        pass
    L, kept = np.zeros_like(K), list[int]()
    for j in range(len(J)):
        k = len(kept)
        row = solve_triangular(L[:k, :k], K[kept, j], lower=True) if k else K[:0, j]
        if (rest := float(K[j, j] - row @ row)) > least[j]:
            L[k, :k], L[k, k] = row, np.sqrt(rest)
            kept.append(j)
    return np.isin(np.arange(len(J)), kept)


def _cut(count: int, width: int) -> list[slice]:
    """Parts of a number of rows, each of few values."""
    size = max(1, VALUES // max(1, width))
    return [slice(a, min(a + size, count)) for a in range(0, count, size)]


def refit(features: Features, k: int, start: ScoredPoint) -> tuple[ScoredPoint, Status]:
    """The best point for the first k rows of J.

    A solver has the rows near the margin. Other rows that the answer causes a loss for
    join them, until their cost is less than the gap that is asked for.
    """
    whole, (_, w, b, scores) = features.whole, start
    if k == 0:
        return start, Status.SOLVED
    w = np.append(w, np.zeros(k - len(w)))
    near, alpha = np.zeros(len(whole.c), bool), None
    while True:
        near = _near(whole, scores.values, b, near, max(BESIDE, FIRST / k))
        rows = np.flatnonzero(near)
        begin = _multipliers(whole, scores.values, b, alpha)[rows]
        solution = _solved(whole, features.take(rows, k), rows, (begin, w, b))
        w, b, scores = solution.w, solution.b, features.scores(solution.w)
        alpha = np.zeros(len(near))
        alpha[rows] = solution.alpha
        losses = whole.losses(scores.values, b)
        enough = 0.5 * whole.enough(0.5 * float(w @ w) + float(losses.sum()))
        stopped = solution.status.ends_fit
        if stopped or float(losses[~near].sum()) <= enough:
            return ScoredPoint(alpha, w, b, scores), solution.status


def _near(whole: SolvedProblem, f: Vector, b: float, near: Mask, beside: float) -> Mask:
    """The given rows and rows near the margin of f + b; all if few are left."""
    near = near | (whole.y * (f + b) < 1.0 + beside)
    if np.mean(near) > MOST_ROWS or abs(whole.y[near].sum()) == np.count_nonzero(near):
        near[:] = True  # one class only, or nothing, is no problem
    return near


def _multipliers(
    whole: SolvedProblem, f: Vector, b: float, known: Vector | None
) -> Vector:
    """Dual variables to begin at: known ones, others by how far rows are from 1."""
    t = 1.0 - whole.y * (f + b)
    if not whole.problem.is_bounded:
        return whole.C * whole.problem.pointwise.slope(t)
    ramp = whole.C * np.clip(t / RAMP + 0.5, 0.0, 1.0)
    return ramp if known is None else np.where((known > 0) | (t <= 0), known, ramp)


def _solved(
    whole: SolvedProblem,
    Z: NDArray[Any],
    rows: Index,
    start: tuple[Vector, Vector, float],
) -> Solution:
    """The answer for some rows; solved where its gap is small beside the cut's cost."""
    problem, y, C = whole.problem, whole.y[rows], whole.C[rows]
    linear = Problem(Z, y, C, problem.loss, problem.intercept)
    solver: Solver = AugmentedLagrangian() if problem.is_bounded else ActiveSet()
    tol = SOLVED * whole.refits.tol

    def is_enough(gap: float, primal: float) -> bool:
        return gap <= SOLVED * whole.enough(primal)

    late = False

    def ends(step: Step) -> bool:
        nonlocal late
        late = whole.refits.limits.is_late
        return late or is_enough(step.primal - step.dual, step.primal)

    solution = solve(linear, solver, tol=tol, start=start, callback=ends)
    if solution.status is not Status.STOPPED_BY_CALLBACK:
        return solution
    found = solution.certificate
    if is_enough(found.gap, found.primal):
        return replace(solution, status=Status.SOLVED)
    # Not late: the estimates of a step were better than the bounds of its point are.
    return replace(solution, status=Status.TIME_LIMIT if late else Status.STALLED)
