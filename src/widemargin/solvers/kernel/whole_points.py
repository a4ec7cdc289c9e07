"""Interior points of whole problems of few rows, where pair steps are too many.

The method of `inner_points` over all places of a problem: its matrix is K of the rows,
each of which a regression has twice. A step factors one matrix of order m, and ten to
twenty steps do, however large C is.
"""

import contextlib
from collections.abc import Callable
from typing import NamedTuple, cast

import numpy as np

from widemargin.arrays import Index, Vector
from widemargin.numerics.cholesky import cholesky
from widemargin.problems.base import FLOOR
from widemargin.problems.many import ManyProblems
from widemargin.solvers.kernel.inner_points import (
    Boxed,
    Dense,
    Method,
    Point,
    indicators,
)
from widemargin.system import deadline

# Rows up to which it pays (`benchmarks/core/wide.py`), and bytes for a pair of them: K,
# what is factored in its place, and K of the rows that are free.
MOST_FACTORED, MATRICES = 3_000, 24
# The sum of products of slacks and multipliers at the end, which the gap is near, as a
# share of the gap that is asked for. (Regressions of 700 x 400 to 2,000 x 1,000: with
# 0.2 bounds of the largest are not certain after all turns, 1e-4 takes 1 to 4 factors
# more.)
END = 0.05
# Turns in which rows go to bounds and leave them afterwards, and the share of those
# between their bounds that stay there, or bounds are not certain.
TURNS, CERTAIN = 5, 0.9
# The share by which the margins of separated rows are above 1, and what an answer may
# grow by for that, which costs twice as much.
SPARE, GROWTH = 1e-8, 1e-6


class Answer(NamedTuple):
    """Coefficients of the places of a problem, their scores, b and rho."""

    c: Vector
    scores: Vector
    b: float
    rho: float


def whole_points(problems: ManyProblems, k: int, tol: float) -> list[Answer]:
    """Answers of problem k near a relative gap; none where it is not seen to suit.

    One with rows at their bounds, if these are certain, and the inner point.
    """
    kept = problems.C[problems.starts[k] : problems.ends[k]] > 0.0
    samples = kept.reshape(-1, int(problems.n_samples[k]))
    if not kept.any() or (samples != samples[0]).any():
        return []  # none, or a sample has weight in one of its places alone
    whole = _Whole(problems, k, np.flatnonzero(kept))
    least = FLOOR * float(problems.zero_objectives[k])
    end = END * tol / (2.0 * len(whole.kept))
    found = inner_answers(
        whole.method, lambda P: end * max(abs(P), least), whole.may_cancel
    )
    return [whole.answer(*one) for one in found]


def inner_answers(
    method: Method, end: Callable[[float], float], may_cancel: bool
) -> list[tuple[Vector, Vector]]:
    """The c, within bounds and with the sums, and levels that a method ends with.

    One with rows at their bounds, if these are certain and there is time, and the inner
    point. None where bounds leave no room.
    """
    begin, certain = method.begin(), None
    if begin is None:
        return []
    begin = lowered(method, begin)
    with contextlib.suppress(deadline.OutOfTime):
        certain = settled(method, method.run(begin, end), may_cancel)
    last = method.at or begin
    inside = cancelled(method, last.c) if may_cancel else last.c
    found = [certain, (inside, last.b)]
    return [(method.feasible(one[0]), one[1]) for one in found if one is not None]


def lowered(method: Method, begin: Point) -> Point:
    """A start with scores no larger than the linear term, where no sum is given.

    From the middle of wide bounds a classifier takes twice as many steps.
    """
    Hc, least = method.H.times(begin.c), float(np.abs(method.linear).max())
    t = least / max(float(np.abs(Hc).max()), least)
    if method.sums.any() or not 0.0 < t < 1.0:
        return begin
    c, F = t * begin.c, t * Hc + method.linear
    b = method.E.T @ F / method.E.sum(axis=0)
    below, above = c - method.lower, method.upper - c
    size = float(np.abs(F - method.E @ b).max())
    product = size * min(float(below.min()), float(above.min()))
    return Point(c, b, product / below, product / above)


class _Whole:
    """Problem k as the method of inner points takes it: over places that have a weight.

    Attributes
    ----------
    kept : int ndarray, these places
    method : Method
    may_cancel : bool, whether one of two places of a row can be at zero
    """

    def __init__(self, problems: ManyProblems, k: int, kept: Index) -> None:
        own = slice(problems.starts[k], problems.ends[k])
        y, C, q = (values[own] for values in problems.data[:3])
        m, self.kept = int(problems.n_samples[k]), kept
        self._problems, self._size, self._y, self._C = problems, len(y), y, C
        y, C, q = y[kept], C[kept], q[kept]
        self._K = _values(problems, problems.rows[own][:m])
        rows = kept[kept < m]
        K = self._K if len(rows) == m else self._K[np.ix_(rows, rows)]
        copies, ridge = len(C) // len(rows), np.zeros(1)
        if not problems.loss.is_bounded:
            # C xi^2 of a row is the objective at zero at the most, and alpha 2 C xi.
            C, ridge = 2.0 * np.sqrt(float(problems.zero_objectives[k]) * C), 0.5 / C
        H = Dense(K, copies, ridge)
        self.may_cancel = copies == 2 and problems.mass is None
        if self.may_cancel:  # both may count where each sample has a loss on one side
            self.may_cancel = bool((q.reshape(2, -1).sum(axis=0) <= 0.0).all())
        bounds = np.where(y > 0.0, 0.0, -C), np.where(y > 0.0, C, 0.0)
        boxed = Boxed(H, -q * y, *bounds, *self._sums(k))
        self.method = Method(boxed)

    def _sums(self, k: int) -> tuple[Vector, Vector]:
        """Columns of ones for places whose c has a given sum, and these sums."""
        part = self._problems.part([k], np.zeros(int(self._problems.ends[-1])))
        groups = [(places, part.y[places[0]] * N) for places, N in part.sums_given]
        if not groups and part.intercept == "free":
            groups = [(np.arange(self._size), 0.0)]
        E = indicators(tuple(places for places, _ in groups), self._size)
        return E[self.kept], np.array([total for _, total in groups])

    def answer(self, inner: Vector, levels: Vector) -> Answer:
        """All places of the problem, by coefficients of those that have a weight."""
        c, m = np.zeros(self._size), len(self._K)
        c[self.kept] = inner
        scores, copies = self._K @ c.reshape(-1, m).sum(axis=0), self._size // m
        b, rho, total = 0.0, 0.0, float(c.sum())
        if self._problems.intercept == "penalized":
            b, scores = total, scores - total
        elif self._problems.mass is None:
            b = -float(levels.sum())  # one level, or none
        elif len(levels) == 1:
            rho = float(levels[0])
        else:  # y (f + b) = q + rho of both classes
            b, rho = -0.5 * float(levels.sum()), 0.5 * float(levels[0] - levels[1])
        t = self._growth(c, scores + b)
        return Answer(t * c, np.tile(t * scores, copies), t * b, rho)

    def _growth(self, c: Vector, decisions: Vector) -> float:
        """What an answer is multiplied by, so that no row has a loss, nor may have one.

        With a large C losses are what rounding leaves of slacks, times C, or what the
        certificate has to allow for it.
        """
        if not (self._problems.is_plain and self._problems.loss.is_bounded):
            return 1.0
        least = float((self._y * decisions)[self.kept].min())
        t = (1.0 + SPARE) / max(least, 0.5)
        fits = bool((t * np.abs(c) <= self._C).all())
        return t if fits and 1.0 < t < 1.0 + GROWTH else 1.0


def settled(
    method: Method, last: Point, may_cancel: bool
) -> tuple[Vector, Vector] | None:
    """The c with rows at their bounds, where others make up for that; and levels.

    Rows between their bounds have the scores of an optimum without bounds. Those that
    leave their bounds go there, those whose scores say so leave them, until none does:
    a primal-dual active set method from a point next to the optimum. Of the two
    variables of a sample that ``may_cancel`` one is at zero. None where bounds are not
    certain, or rows between them have no factor, as rows of zeros have none.
    """
    lower, upper, E, H = method.lower, method.upper, method.E, cast(Dense, method.H)
    c, b = method.at_bounds(last), last.b
    if may_cancel:
        c = cancelled(method, c)
    is_free = (lower < c) & (c < upper)
    for _ in range(TURNS):
        free = np.flatnonzero(is_free)
        if len(free):
            try:
                solve, _ = cholesky(H.among(free))
            except np.linalg.LinAlgError:
                return None
            apart, Z = solve((H.times(c) + method.linear)[free]), solve(E[free])
            missing = method.sums - E.T @ c + E[free].T @ apart
            b = np.asarray(np.linalg.lstsq(E[free].T @ Z, missing)[0], np.float64)
            c[free] += Z @ b - apart
            c = np.clip(c, lower, upper)
        stays = (lower < c) & (c < upper)
        if stays.sum() < CERTAIN * len(free):
            return None
        slope = H.times(c) + method.linear - E @ b
        leaves = ~is_free & np.where(c == lower, slope < 0.0, slope > 0.0)
        if may_cancel:
            leaves &= ~np.roll(stays, len(c) // 2)
        if (stays == is_free).all() and not leaves.any():
            break
        is_free = stays | leaves
    return c, b


def cancelled(method: Method, c: Vector) -> Vector:
    """The c of each sample as one of its two variables: their sum, within bounds."""
    both = np.tile(c.reshape(2, -1).sum(axis=0), 2)
    return np.asarray(np.clip(both, method.lower, method.upper))


def _values(problems: ManyProblems, rows: Index) -> Vector:
    """Kernel values of some rows, and 1 more where b is penalized."""
    if isinstance(problems.X, np.ndarray):
        X = np.asarray(problems.X[rows], np.float64)
        deadline.check(float(len(X)) * X.size)
        K = np.asarray(X @ X.T)
    else:
        K = problems.samples.values(rows)
    K += float(problems.intercept == "penalized")
    return K
