"""Many binary problems with a kernel over the same samples, each in one loop.

Pair steps on the whole problem [fan2005]_ in C++, in float32: the first variable
violates most, the second one lowers the objective most together with it, and both go
further than that [mangasarian1999]_. After many of them one goes in the span of what
the last ones did [narkiss2005]_. Where float32 is too rough for the gap, the scores
that count are made in float64 between them. A row of K is made when its variable first
moves, with a few others that will move soon, and kept for all problems that share its
samples. Of long problems the core leaves variables out that are settled at their
bounds, until the others are near the end. Problems of up to 4,096 rows that float32
does not solve go on in float64, those of a few rows to its last digits. Threads take
the problems one after the other, the largest first; of one large problem with few
columns, solved by working sets that keep no rows, they make the values. What comes out
does not depend on them, unless memory is short. It is checked by `ManyProblems.bounds`.
"""

import dataclasses
import math
from typing import Any, NamedTuple

import numpy as np

from widemargin import _core
from widemargin.arrays import Index, Index64, Mask, Vector
from widemargin.problems.base import FLOOR
from widemargin.problems.many import INTERCEPTS, ManyProblems
from widemargin.solution import (
    Certificate,
    Solution,
    Status,
    Step,
    Trace,
    relative_gaps,
)
from widemargin.solutions import Columns, Solutions
from widemargin.solvers.driver.advice import Ending, message
from widemargin.solvers.driver.contract import first_and_last
from widemargin.solvers.driver.limits import Limits
from widemargin.solvers.kernel.hulls import ENOUGH, HOPELESS, common_point
from widemargin.solvers.kernel.whole_points import (
    MATRICES,
    MOST_FACTORED,
    Answer,
    whole_points,
)
from widemargin.system import deadline
from widemargin.system.deadline import Deadline

NAME = "batch"
# Rows up to which a problem is faster here than by working sets: of problems that keep
# all threads busy (45 pairs of mnist, of 12,000 rows: 8 s, not 23), and of fewer, which
# one thread each solves here (`benchmarks/core/batch_limit.py`). Of a named kernel and
# so few columns that values take no longer than to read them, fewer may be as large,
# too: classifiers of 5,000 to 8,000 rows take 0.3 to 0.7 of the processor time of
# working sets here, regressions of 4,000 to 8,000 rows 0.6 to 0.9. Such regressions may
# be larger: 20,000 and 30,000 rows of 8 columns take 1.0 to 1.1 times as long with C =
# 1, and 0.08 to 0.25 times with C = 10; 50,000 of 10 columns 1.5 and 1.0 times.
MOST_ROWS, MOST_ROWS_ALONE, NARROW = 16_000, 4_000, 32
MOST_ROWS_TWICE = 32_000
# The share of all rows that few support vectors are, at most.
FEW_VECTORS = 0.3
# Steps of a problem after which it is given up, in units of its places (a step over a
# part of its variables counts as that part), and places that its steps may visit in
# any case: a regression has two a row, so that it has twice the steps, and half the
# visits of rows. As many of these (`benchmarks.kernel.cross_validation`, 2,000 rows of
# friedman) take 0.98 times as long with one gamma, 1.24 times with five. Problems of
# pendigits take up to 1.4 steps a row, 1,000 rows of `make_friedman1` with C = 10 take
# 23; 2,000 rows of two moons with C = 1,000 take 14 and 30 ms, where a
# fifth of the visits ends them too early for working sets to go on: 0.7 s. On 4,000
# rows of a9a with C = 10,000 they take 0.28 s, not 0.38; with C = 1,000 and a gap of
# 1e-4, which float32 does not reach, 0.42, not 0.34. Six times as many, on 42 fits with
# C of 100 to 10,000 in 2 to 8 columns (benchmarks/kernel/large_c.py), take 0.67 of the
# time with what `has_fallen` and working sets wait now: 0.07 to 1.9 times; ten times as
# many solve 3,500 rows with C = 10,000 in 0.3 s, where working sets took 2 to 4. Of
# more than MANY_ROWS four times as many: 0.8 of the time of SVCCV on 15,000 rows of
# `make_classification`, 0.9 on 11,000 rows of it and of a9a. A step costs as much as
# one over LEAST_VISITS places.
MOST_STEPS, FEW_VISITS, LEAST_VISITS = 5, 1_000_000_000, 300
MANY_ROWS, MANY_VISITS = 8_000, 4_000_000_000
# In float64 a tenth of the visits: with as many, 69 fits of 100 to 1,000 rows with C of
# 100 and more end as they do, after 27 s, not 25, some after 8 times as long.
FEWER_EXACTLY = 10
# The least gap that it is worth trying for: digits, pendigits and letter with C = 1 and
# 100 take 0.07 to 0.2 times the processor time of working sets to a gap of 1e-8, and
# with C = 100 float64 scores in float32 steps do not reach 1e-10.
LEAST_GAP = 1e-8
# Rows up to which a problem that the core has given up goes on in float64, with all
# its kernel values (15 linear pairs of 200 rows with C = 100 take 42 ms, not 450); and
# where an interior point of products of rows takes as long (1,000 x 600, C = 1: 90 ms,
# not 250).
MOST_EXACTLY, MOST_BEFORE_INSIDE = _core.MOST_FACED, 600
# Answers with less than so many times the gap that is asked for are near: rounding is
# in the way, which ends elsewhere. (0: 0.6 to 3.9 of the time, 1e4: 0.7 to 1.6,
# benchmarks/core/untuned.py.)
FAR = 100.0
# Problems whose gap is at most this many times what is asked for go on in this engine,
# to this share of it: there rounding of float32, or of the losses that an answer keeps
# for the next C, hid the rest. (SVCCV on 3,000 rows of three classes to 1e-4: 0 takes
# 1.27 of the time, 1.5 1.14, 10 1.03; shares of 0.3 and 0.8 as long.)
NEAR, CLOSER = 3.0, 0.5
# Rows, times the multiplications of a value, that are worth a second thread. Fits of
# digits took 1.15 to 2.1 times as long with one from 2,400 to 58,000, 1.07 to 1.5 times
# to 460,000 and 0.65 times at 980,000, on two cores that had other work too.
SHARED_WORK = 60_000

STOPPED = 2  # how the core says that its time ended a problem

_ARRAYS = ("c", "scores", "b", "rho", "steps", "is_convex", "proofs")  # of Ends


class Ends(NamedTuple):
    """Where problems ended.

    Attributes
    ----------
    c : ndarray, y alpha of each place
    scores : ndarray, K c of each place, by kernel values in float32
    b : ndarray (t,), intercepts
    rho : ndarray (t,), 0 where there is none
    steps : int ndarray (t,)
    is_convex : bool ndarray (t,), whether no step, and no sample of rows, met a
        negative curvature
    may_curve : bool, whether the kernel need not be positive semidefinite: then gaps
        are no proof where there is any
    status : Status, of problems that have no small gap
    proofs : ndarray (t, 4), the numbers of a `Certificate` of each
    seconds : float, the share of one problem
    """

    c: Vector
    scores: Vector
    b: Vector
    rho: Vector
    steps: Index64
    is_convex: Mask
    may_curve: bool
    status: Status
    proofs: Vector
    seconds: float

    def with_some(self, chosen: Index, sizes: Index, some: "Ends") -> "Ends":
        """Ends with those of some problems that went on; t ``sizes`` are places."""
        found = self._replace(
            **{name: getattr(self, name).copy() for name in _ARRAYS},
            status=some.status,
            seconds=self.seconds + len(chosen) / len(sizes) * some.seconds,
        )
        found.steps[chosen] += some.steps
        found.is_convex[chosen] &= some.is_convex
        better = some.gaps <= self.gaps[chosen]
        kept = chosen[better]
        for name in ("b", "rho", "proofs"):
            getattr(found, name)[kept] = getattr(some, name)[better]
        to = np.repeat(np.isin(np.arange(len(sizes)), kept), sizes)
        own = np.repeat(better, sizes[chosen])
        found.c[to], found.scores[to] = some.c[own], some.scores[own]
        return found

    @property
    def gaps(self) -> Vector:
        """The relative gaps of the certificates: (t,)."""
        return relative_gaps(self.proofs)

    def solved(self, tol: float) -> Mask:
        """Which problems have a gap that is small enough: (t,)."""
        # No press of Ctrl-C is lost.
        kept = (self.may_curve | self.is_convex) & (
            self.status is not Status.INTERRUPTED
        )
        return np.asarray(kept & (self.gaps <= tol))


class Brief(NamedTuple):
    """How long problems are solved before another solver takes those that are left.

    Attributes
    ----------
    most : int, steps of each problem
    work : float
        What Newton's steps have then: multiplications for each row and pair of
        variables of a basis.
    moved : float
        The share of the rows that may have a coefficient when it is first looked.
    """

    most: int
    work: float = np.inf
    moved: float = 1.0


def solve_many(
    problems: ManyProblems,
    limits: Limits,
    memory: int,
    threads: int,
    brief: Brief | None = None,
) -> "BatchSolutions":
    """Solve problems to a relative gap, as far as float32 kernel values allow it.

    Parameters
    ----------
    problems : ManyProblems
    limits : Limits, of which ``tol`` and the time end it
    memory : int, bytes of kernel values
    threads : int
    brief : Brief or None, where another solver takes the problems soon

    Returns
    -------
    BatchSolutions
        Each over its rows in the order of the data; ``w`` is y alpha, or the weights
        of columns that are known. A problem that float32 does not solve is stalled:
        another solver goes on from there.
    """
    ends = solve_all(problems, limits, memory, threads, is_shared=True, brief=brief)
    return BatchSolutions(problems, ends, limits)


def solve_all(
    problems: ManyProblems,
    limits: Limits,
    memory: int,
    threads: int,
    *,
    is_shared: bool = False,
    brief: Brief | None = None,
) -> Ends:
    """`solve_many` with arrays of all problems, one after the other, as its answer.

    Where the time ``is_shared`` the last problem has as much of it as the first one.

    Problems that stall go on here where that is faster: near the gap that is asked for,
    to half of it; those of not too many rows in float64; or where hulls are seen to
    meet. By products of rows an interior point ends those that are left. In brief only
    those go on that rounding may have kept from their end.
    """
    given = limits, memory, threads
    ends = solve_places(problems, *given, is_shared=is_shared, brief=brief)

    def left(chosen: Mask) -> Index:
        """Which of some are stalled."""
        if ends.status is not Status.STALLED:
            return np.zeros(0, np.int64)
        return np.flatnonzero(chosen & ~ends.solved(limits.tol))

    def again(which: Index, tol: float, c: Vector | None = None, **how: Any) -> None:
        """Solve some from where they are, or from c."""
        nonlocal ends
        if len(which):
            part = problems.part(which.tolist(), ends.c if c is None else c)
            closer = dataclasses.replace(limits, tol=tol)
            some = solve_places(part, closer, memory, threads, brief=brief, **how)
            ends = ends.with_some(which, problems.sizes, some)

    if ends.status is not Status.STALLED or ends.solved(limits.tol).all():
        return ends
    is_twofold = np.ndim(problems.q) > 0 and problems.mass is None  # each row is twice
    rows, tol = problems.sizes // (2 if is_twofold else 1), limits.tol
    may_be_exact = ends.is_convex & problems.samples.is_fit & ~_is_rounding(ends)
    if brief:
        few = (rows <= MOST_EXACTLY) & (ends.gaps <= FAR * tol)
        again(left(few & may_be_exact), tol, exactly=True)
        return ends
    hopeless = _are_hopeless(problems, ends, tol)
    met, c = np.zeros(len(hopeless), np.bool_), ends.c.copy()
    for k in left(hopeless):
        met[k] = _meets(problems, int(k), c, limits, memory)
    which = left(met)
    # By scores of 0 no row is beyond the margin: bounds make all of them again.
    nothing = np.zeros(int(problems.sizes[which].sum())), np.zeros((2, len(which)))
    again(which, tol, c, known=nothing)
    inside = _suit_inside(problems, ends, memory) & ~hopeless
    few = rows <= np.where(inside, MOST_BEFORE_INSIDE, MOST_EXACTLY)
    again(left(few & may_be_exact), tol, exactly=True)
    near = (ends.gaps <= NEAR * tol) & ends.is_convex
    again(left(near & ~(few & may_be_exact)), CLOSER * tol)
    for k in left(_suit_inside(problems, ends, memory) & ~hopeless).tolist():
        try:
            answers = _from_inside(problems, k, limits)
        except KeyboardInterrupt:  # what there is stays
            return ends._replace(status=Status.INTERRUPTED)
        for answer in answers:
            c[problems.starts[k] : problems.ends[k]] = answer.c
            line = np.array([[answer.b], [answer.rho]])
            own = np.arange(len(rows)) == k
            again(left(own), tol, c, known=(answer.scores, line))
    return ends


def _suit_inside(problems: ManyProblems, ends: Ends, memory: int) -> Mask:
    """For which problems the matrix of all rows may be factored: (t,).

    Of a kernel for none: working sets find out whether K has a low rank.
    """
    if problems.X is None:
        return np.zeros(len(problems.ends), np.bool_)
    few = problems.n_samples <= min(MOST_FACTORED, math.isqrt(memory // MATRICES))
    return np.asarray(few & ends.is_convex & ~_is_rounding(ends))


def _is_rounding(ends: Ends) -> Mask:
    """Of which problems rounding may be most of the gap: (t,)."""
    primal, dual, _, rounding = ends.proofs.T
    return np.asarray(primal - dual <= NEAR * rounding)


def _from_inside(problems: ManyProblems, k: int, limits: Limits) -> list[Answer]:
    """What interior points find for problem k, in time."""
    try:
        with deadline.until(limits.deadline), np.errstate(all="ignore"):
            return whole_points(problems, k, limits.tol)
    except deadline.OutOfTime:
        return []


@np.errstate(divide="ignore", invalid="ignore")  # squares of 0, infinite bounds
def _are_hopeless(problems: ManyProblems, ends: Ends, tol: float) -> Mask:
    """Which problems have no margin yet, and hardly any is possible: (t,)."""
    if not (problems.may_be_zero and problems.loss.is_bounded) or ends.may_curve:
        return np.zeros(len(problems.ends), np.bool_)
    left = -ends.proofs[:, 1] / problems.squares
    far = (FAR * tol * FLOOR < left) & (left <= HOPELESS)
    return np.asarray(far & (ends.proofs[:, 0] == 0.0))


def _meets(
    problems: ManyProblems, k: int, c: Vector, limits: Limits, memory: int
) -> bool:
    """Whether hulls are seen to meet, in time; then problem k has a c to prove it."""
    own = slice(problems.starts[k], problems.ends[k])
    part, rows = problems.part([k], c), problems.rows[own]
    enough = ENOUGH * limits.tol * FLOOR * float(part.squares[0])
    given = part.y, part.C, part.sums_given, enough, memory
    try:
        with deadline.until(limits.deadline):
            found = common_point(lambda J: problems.samples.values(rows[J]), *given)
    except deadline.OutOfTime:
        return False
    if found is not None:
        c[own] = found
    return found is not None


def solve_places(  # noqa: PLR0913  (options, by keyword)
    problems: ManyProblems,
    limits: Limits,
    memory: int,
    threads: int,
    *,
    exactly: bool = False,
    known: tuple[Vector, Vector] | None = None,
    is_shared: bool = False,
    brief: Brief | None = None,
) -> Ends:
    """`solve_all` once: problems that stall do not go on.

    In float64 where ``exactly``, or needed. Without a step where scores of the start
    are ``known``, and (b, rho), (2, t).
    """
    c, begin = problems.start(), limits.clock.seconds()
    threads = threads if are_shared(problems) else 1
    rows, t = int(problems.sizes.max()), len(problems.ends)
    exactly = exactly or not problems.samples.is_fit
    visits = MANY_VISITS if rows > MANY_ROWS else FEW_VISITS
    visits = FEW_VISITS // FEWER_EXACTLY if exactly else visits
    usual = Brief(max(MOST_STEPS * rows, visits // max(rows, LEAST_VISITS)))
    most, work, moved = brief or usual
    if known is None and problems.may_be_zero and not problems.counted(c).any():
        # No function is better than none: equal targets. Steps would follow rounding.
        known = np.zeros(len(c)), np.zeros((2, t))
    shared, deadline = np.inf, limits.deadline
    if is_shared and deadline is not None and t > 1:
        shared = deadline.left
    if known is not None:
        (scores, (b, rho)), interrupted = known, False
        counts = np.zeros((t, 3), np.int64)
    else:
        scores, numbers, counts, interrupted = problems.samples.solve(
            (problems.groups, problems.group_ends, problems.ends, problems.after),
            problems.data,
            c,
            (not problems.loss.is_bounded, INTERCEPTS[problems.intercept]),
            (limits.tol, most, memory, threads, exactly),
            _Over(deadline),
            (HOPELESS, shared, work, moved),
        )
        b, rho = numbers[:, 0].copy(), numbers[:, 3].copy()
        problems.round_pairs(c)
    grace = _Over(limits.grace)
    try:
        proofs = problems.bounds(c, scores, b, threads, grace, rho)
    except KeyboardInterrupt:
        if interrupted:  # the second one
            raise
        interrupted = True
        proofs = problems.bounds(c, scores, b, threads, grace, rho)
    status = Status.STALLED
    if interrupted or limits.is_late or (counts[:, 2] == STOPPED).any():
        status = Status.INTERRUPTED if interrupted else Status.TIME_LIMIT
    seconds = (limits.clock.seconds() - begin) / len(proofs)
    runs = problems.rows, problems.starts, problems.n_samples
    curved = (counts[:, 1] > 0) | problems.samples.show_indefinite(*runs)
    steps, convex = counts[:, 0], ~curved
    curves = problems.samples.may_curve
    found = c, scores, b, rho, steps, convex, curves, status, proofs
    return Ends(*found, seconds)


def are_shared(problems: ManyProblems) -> bool:
    """Whether they are worth a second thread."""
    return len(problems.y) * problems.samples.cost > SHARED_WORK


class _Over:
    """Whether a deadline is over."""

    def __init__(self, deadline: Deadline | None) -> None:
        self._deadline = deadline

    def __call__(self) -> bool:
        return self._deadline is not None and self._deadline.left <= 0.0


class BatchSolutions(Solutions):
    """The solutions of problems, each of which has its share of the time.

    Parameters
    ----------
    problems : ManyProblems
    ends : Ends
    limits : Limits
    """

    def __init__(self, problems: ManyProblems, ends: Ends, limits: Limits) -> None:
        solved, t = ends.solved(limits.tol), len(ends.b)
        statuses = [Status.SOLVED] * t
        for k in np.flatnonzero(~solved).tolist():
            statuses[k] = ends.status
        alpha = np.abs(ends.c)
        self._vectors = problems.count(alpha > 0.0)
        self._at_bound = None
        if problems.loss.is_bounded:
            self._at_bound = problems.count((alpha > 0.0) & (alpha >= problems.C))
        columns = Columns(
            ends.b,
            ends.rho,
            ends.proofs,
            np.ones(t, np.int64),
            statuses,
            ends.is_convex if ends.may_curve else np.ones(t, np.bool_),
            t * ends.seconds,
            [(NAME, _reason(problems, self._vectors))],
        )
        W = None if problems.X is None else problems.weights(ends.c)
        super().__init__(columns, alpha[problems.order], W)
        self._c = ends.c[problems.order]
        self._parts = problems.starts, problems.ends
        self._zero, self._steps = problems.zero_objectives, ends.steps
        self._may_curve = ends.may_curve
        self._tol, self._said = limits.tol, dict[int, str]()
        if ends.may_curve or not solved.all():
            for k in np.flatnonzero(~(columns.is_convex & solved)).tolist():
                self._said[k] = self._message(k, limits)

    def _make(self, k: int) -> Solution:
        """The solution of problem k."""
        own, found = slice(*(part[k] for part in self._parts)), self.columns
        status, bounds = found.statuses[k], found.certificate(k)
        trace = Trace(self._first_and_last(k, bounds))
        (solver, reason), at_bound = found.solvers[0], self._at_bound
        return Solution(
            alpha=self.alpha[own],
            w=self._c[own] if self.W is None else self.W[k],
            b=float(found.b[k]),
            status=status,
            certificate=bounds,
            trace=trace,
            solver=solver,
            reason=reason,
            seconds=found.seconds / len(self),
            tol=self._tol,
            message=self._said.get(k, status.advice),
            extras=dict(trace[-1].details),
            at_bound=None if at_bound is None else int(at_bound[k]),
            rho=float(found.rho[k]),
            w_of_rows=self.W is None,
        )

    def _first_and_last(self, k: int, bounds: Certificate) -> tuple[Step, Step]:
        """The trace of problem k."""
        begin, end = (int(part[k]) for part in self._parts)
        found, zero = self.columns, float(self._zero[k])
        seconds = found.seconds / len(self)
        steps = first_and_last(zero, bounds, end - begin, seconds)
        steps[-1].details = {
            "support_vectors": float(self._vectors[k]),
            "steps": float(self._steps[k]),
        }
        if self._may_curve:
            steps[-1].details["negative"] = float(not found.is_convex[k])
        return steps

    def _message(self, k: int, limits: Limits) -> str:
        """What happened, how good the answer is, and what helps."""
        status, found = self.columns.statuses[k], self.columns.certificate(k)
        last, gap = self._first_and_last(k, found)[1], found.relative_gap
        return message(Ending(None, status, last, gap, 0, limits, (), found))


def _reason(problems: ManyProblems, vectors: Index) -> str:
    """Why this solver, of problems with so many support vectors."""
    t, most = len(problems.ends), int(problems.n_samples.max())
    if t > 1:
        return f"because the {t:,} problems are small (at most {most:,} rows each)"
    size = "is not large"  # asked for by its name, or smaller than others
    if most <= MOST_ROWS_ALONE:
        size = "is small"
    elif problems.samples.cost <= NARROW:
        size = "has few columns"
    elif vectors[0] <= FEW_VECTORS * most:
        size = "has few support vectors"
    return f"because the problem {size} ({most:,} rows)"
