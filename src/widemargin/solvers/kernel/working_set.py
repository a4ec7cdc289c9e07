"""The block engine: a working set of rows, solved as a small dense problem.

In the signed variables c = Y alpha, with lower <= c <= upper, the dual is

    minimize   1/2 c'(K + p + diag(r)) c - (Y q)'c   [sum c = 0, free intercept]

(p = 1 for a penalized intercept, r_i = 1 / (2 C_i) for the squared hinge, else 0), and
its gradient F = f - Y q + p sum c + r c, f = K c. A row violates its conditions where c
can rise and -F is above b, or c can fall and -F is below b. Where the sum of each class
is given (the nu form), classes have levels b of their own. The rows of regressions have
one variable for both rows of a sample: see `kinked`. One iteration

    keeps the half of the working set that was added last (first in, first out),
    adds the largest violators, from both sides,
    computes the kernel values of the new rows with the set,
    solves the small problem, and brings f up to date by the rows that changed.
"""

import dataclasses
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from widemargin import _core
from widemargin.arrays import Index, Mask, Vector
from widemargin.kernels.definite import shows_indefinite
from widemargin.kernels.packed import aligned, padded
from widemargin.numerics.rounding import UNIT
from widemargin.problems.kernel import KernelProblem
from widemargin.problems.scores import Scores
from widemargin.solvers.kernel.kinked import Kinks
from widemargin.solvers.kernel.small_problem import Inner, Small
from widemargin.solvers.kernel.violations import Violations, violations

# Numbers between the lines of a block, whose lengths would be powers of two: the first
# entries of 16 such lines do not fit in the first-level cache together.
GAP = 32
# Rows without a dual variable are left out where their margin is above 1 by this many
# times the violation. None of them moved later on a9a, w8a and ijcnn1. With 0.25 up to
# 20 of an iteration did: ijcnn1 took 24 working sets in place of 19, w8a 16 to 19 in
# place of 14; with 1 a tenth more kernel values were made.
REACH = 0.5
# A violation that has fallen by more than this factor at once may rise again: w7a took
# 13 working sets in place of 9 as it was trusted. (0.4 and 0.6: as many, and within 2 %
# of the kernel values of six sets.) Of one that has risen it says nothing yet how far
# scores will move: w7a without its equal rows took 14 working sets in place of 8.
FALLS = 0.5
# Share of the rows that are not left out, up to which more of them are. None is left
# out of fewer rows than a working set may have: their values take little time, and
# where rounding ends a run early its objectives are those of all rows.
STAYS, FEW_ROWS = 0.6, 4096
# Below this share of the kinks a violation is lost beside them in float32. Then each c
# stays on its side of zero, where its gradient ends near zero. (1e-4: 0.7 to 1 of the
# time, 1e-2: 0.95 to 1.1, benchmarks/core/untuned.py.)
SHARP = 1e-3
# What rounding of blocks to 16 bits makes of a gradient, for each unit of the length of
# a move, by chance; and the share of what a set is solved to that it may be. (A pair
# step of 2,048 rows takes 0.7 to 0.8 of the time that float32 takes, of 4,096 0.55 to
# 0.65; without AVX2 1.1 and 1.)
BLOCK_ERROR, HIDES = 0.29 / _core.BLOCK_STEPS, 0.25
# Where c grows, scores are taken to be off by this many times what rounding of c does:
# once for the rounding of c, once for that of the sums.
ROUNDED = 2.0


class Form(NamedTuple):
    """Which dual is solved.

    Attributes
    ----------
    bound : ndarray (m,), the largest ``|c_i|``
    ridge : ndarray (m,), r
    sums : int, as of `Small`
    """

    bound: Vector
    ridge: Vector
    sums: int

    @classmethod
    def of(cls, problem: KernelProblem) -> "Form":
        """The form of a problem's loss and intercept."""
        C, loss = problem.weights, problem.pointwise
        sums = (problem.intercept == "free") + (problem.mass is not None)
        return cls(loss.upper(C), loss.ridge(C), sums)


class WorkingSet:
    """The variables of one run.

    Attributes
    ----------
    form : Form; another one may be set where c fits it
    kinks : Kinks or None, where a sample is one variable and not two
    rows : int ndarray, the working set: rows, or samples; in the order of the block
    scores : Scores of c
    steps, negative : int, inner steps so far, and steps along negative curvature; one
        more where a sample of rows shows it
    unsolved : int, small problems that were not solved as well as asked
    """

    def __init__(
        self,
        problem: KernelProblem,
        scores: Scores,
        inner: Inner,
        kinked: bool = False,
        rounds: bool = False,
    ) -> None:
        self.problem, self.scores, self._inner = problem, scores, inner
        self._y = problem.signs
        self._margins = problem.margins
        self._target = self._margins * self._y  # what -F is of c = 0
        self.form = Form.of(problem)
        self._shift = float(problem.intercept == "penalized")
        self.rows, self._oldest = np.empty(0, np.intp), 0
        self._rounds = rounds and len(self._y) > FEW_ROWS
        self._K: NDArray[Any] = np.empty((0, 0), problem.columns.dtype)
        self._rooms = [self._K.ravel(), self._K.ravel()]
        self.steps = self.unsolved = 0
        self._violation = 0.0  # when rows could be left out last
        self.negative = int(shows_indefinite(problem.columns))
        self.kinks: Kinks | None = None
        if kinked and Kinks.are_in(problem, self.form.ridge):
            self.kinks = Kinks(problem)
            self._cancel()

    @property
    def form(self) -> Form:
        """The dual that is solved."""
        return self._form

    @form.setter
    def form(self, form: Form) -> None:
        """Set the dual that is solved."""
        self._form = form
        # The last look, and the scores that it was at.
        self._looked: tuple[tuple[Scores, int], Violations] | None = None
        self._lower = np.where(self._y > 0, 0.0, -form.bound)
        self._upper = np.where(self._y > 0, form.bound, 0.0)
        self._has_ridge = bool(form.ridge.any())

    @property
    def c(self) -> Vector:
        """The signed dual variables, (m,)."""
        return self.scores.c

    @property
    def bounds(self) -> tuple[Vector, Vector]:
        """The least and the largest c of all rows."""
        return self._lower, self._upper

    @property
    def shift(self) -> float:
        """What a penalized intercept adds to all of K."""
        return self._shift

    def look(self) -> Violations:
        """The gradient, and how far the conditions are from holding."""
        at, looked = (self.scores, self.scores.version), self._looked
        if looked is not None and looked[0] == at:
            return looked[1]
        F = self.scores.values - self._target
        if self._shift:
            F += self.c.sum()
        if self._has_ridge:
            F += self.form.ridge * self.c
        bounds, sums = (self._lower, self._upper), self.form.sums
        found = violations(F, self.c, *bounds, sums, self.scores.current)
        self._looked = at, found
        return found

    def focus(self, found: Violations) -> bool:
        """Leave out rows with c = 0 far above the margin (shrinking), if few are left.

        Their scores are brought up to date before an answer is given, before scores are
        refreshed, or when the other rows violate nothing. Returns whether rows were
        left out now: more of them than before, where they are many more. None are while
        the violation rises.
        """
        current = self.scores.current
        before, self._violation = self._violation, found.size
        if len(self.c) <= FEW_ROWS or found.size > before > 0.0:
            return False
        size = max(found.size, FALLS * before)
        b: Any = self.problem.intercept_near(self.c, found.intercept)
        if self.problem.mass is not None:  # classes have levels of their own
            b = found.levels
        margins = self.scores.values + b
        margins *= self._y
        near = margins <= self._margins + REACH * size
        near |= self.c != 0
        if self.kinks is not None:
            near = np.tile(np.logical_or(*np.split(near, 2)), 2)
        near[self._rows_of(self.rows)] = True
        if current is not None:
            near &= current
            if near.sum() > STAYS * current.sum():
                return False
        if not self.problem.columns.can_focus(np.flatnonzero(near)):
            return False
        self.scores.focus(near)
        return True

    @property
    def current(self) -> int:
        """How many rows have scores that follow c."""
        current = self.scores.current
        return len(self.c) if current is None else int(np.count_nonzero(current))

    @property
    def free(self) -> Mask:
        """Rows strictly between their bounds: (m,)."""
        return (self.c > self._lower) & (self.c < self._upper)

    @property
    def count(self) -> int:
        """How many variables there are."""
        return len(self.c) if self.kinks is None else self.kinks.count

    def largest(self, found: Violations, count: int, without: Index) -> Index:
        """Up to ``count`` of the variables that violate most."""
        if self.kinks is not None:
            rise = np.maximum(*np.split(found.rise, 2))
            fall = np.minimum(*np.split(found.fall, 2))
            found = dataclasses.replace(found, rise=rise, fall=fall)
        return found.largest(count, without)

    def _rows_of(self, variables: Index) -> Index:
        return variables if self.kinks is None else self.kinks.rows(variables)

    def latest(self, count: int) -> Index:
        """The last rows that were added to the working set, up to a number."""
        rows = np.roll(self.rows, -self._oldest)
        return rows[max(0, len(rows) - count) :]

    def grow(self, tol: float) -> bool:
        """Multiply c so that no row has a loss, where that makes an answer.

        With a large C the losses of separable rows are what rounding leaves of their
        slacks, times C: rounding of c itself, whatever the scores. With c times 1 + d,
        d above the largest slack, no row has a loss, and the objective grows by the
        share 2 d.
        """
        c, f = self.c, self.scores.values
        problem = self.problem
        margins = problem.is_bounded and problem.has_unit_margins
        if not margins or self.scores.current is not None:
            return False
        b = self.problem.intercept_near(c, self.look().intercept)
        s = self.problem.columns.value_bounds.s
        rounding = UNIT * float(s.max() * (np.abs(c) * s).sum())
        slack = float((1.0 - self._y * (f + b)).max()) + ROUNDED * rounding
        t = 1.0 / (1.0 - slack)
        fits = bool((t * np.abs(c) <= self.form.bound).all())
        if not (fits and 0.0 < slack <= 0.25 * tol):
            return False
        enough = self.problem.values(t * c, t * f, t * b).relative_gap <= tol
        if enough:
            self.scores.scale(t)
        return enough

    def advance(
        self,
        found: Violations,
        kept: Index,
        new: Index,
        stop: float,
        aim: float = np.inf,
    ) -> None:
        """One iteration: ``kept`` rows, the `latest` ones, and ``new`` ones."""
        small = self._small(self._block(kept, new), found)._replace(aim=aim)
        exact = not small.is_rounded
        if small.kink is not None and found.size < SHARP * small.kink.max(initial=0.0):
            small = small.on_a_side
        solved = self._inner(small, stop)
        self.steps += solved.steps
        self.negative += solved.negative
        failed = not (solved.reached or solved.waits)
        self._rounds &= exact or not failed
        self.unsolved += exact and failed
        c = self._balanced(solved.c, small)
        if self.kinks is not None:
            c = self.kinks.split(c)
        J = self._rows_of(self.rows)
        some = np.flatnonzero(c != self.c[J])
        self._rounds &= exact or some.size > 0
        if some.size:
            J, c = J[some], c[some]
            free = (c > self._lower[J]) & (c < self._upper[J])  # others move less
            change, before = c - self.c[J], self.scores.values[J]
            self.scores.add(J, change, free)
            self.c[J] = c  # to the bit: bounds are met exactly
            if not exact:
                moved = self.scores.values[J] - before + self._shift * change.sum()
                moved += self.form.ridge[J] * change
                self._judge(change, moved, found.F[J], stop)
            self._cancel()

    def _judge(self, change: Vector, moved: Vector, F: Vector, stop: float) -> None:
        """Round no more where that hid what was to do, or the objective rose."""
        rise = float(change @ (F + 0.5 * moved))
        noise = BLOCK_ERROR * float(np.linalg.norm(change))
        self._rounds = rise < 0.0 and noise < HIDES * stop

    def _small(self, K: NDArray[Any], found: Violations) -> Small:
        """The small problem of the working set, with its kernel values."""
        W, kinks, c, lower = self.rows, self.kinks, self.c, self._lower
        ridge, F, kink = self.form.ridge[W], found.F[W], None
        if kinks is not None:
            other, kink = W + kinks.count, kinks.sizes[W]
            c, lower = c[W] + c[other], lower[other]
            F = F - kink + ridge * self.c[other]
        else:
            c, lower = c[W], lower[W]
        upper = self._upper[W]
        return Small(K, c, lower, upper, F, ridge, self._shift, self.form.sums, kink)

    def _cancel(self) -> None:
        """Let one of the two coefficients of a sample be zero, where there are two.

        They have opposite signs, and only their sum counts in the scores. Where the sum
        of alpha is given it would not stay what it is.
        """
        m = self.problem.columns.twins
        if m is None or self.problem.mass is not None:
            return
        both = np.minimum(self.c[:m], -self.c[m:])
        J = np.flatnonzero(both > 0.0)
        if J.size:
            change = both[J]
            self.scores.add(
                np.concatenate([J, J + m]), np.concatenate([-change, change])
            )

    def _balanced(self, c: Vector, small: Small) -> Vector:
        """C with the sums that are given, where rounding has moved them."""
        room = np.minimum(c - small.lower, small.upper - c)
        if small.kink is not None:  # zero stays zero, and no sign changes
            room = np.minimum(room, np.abs(c))
        if small.sums == 1:  # the sum of all rows is 0, or that of one class
            given = self.problem.mass or 0.0
            excess = float(self.c.sum() - small.c.sum() + c.sum()) - given
            if abs(excess) < room.max(initial=0.0):
                c[room.argmax()] -= excess
        for own in small.violations.groups if small.sums > 1 else ():
            excess, free = float((c - small.c)[own].sum()), np.where(own, room, 0.0)
            if abs(excess) < free.max():
                c[free.argmax()] -= excess
        return c

    def _block(self, kept: Index, new: Index) -> NDArray[Any]:
        """Kernel values of the working set: only those with new rows are computed.

        Mostly as many come as leave: they take their places, and nothing else moves.
        """
        columns = self.problem.columns
        dtype = columns.block_dtype if self._rounds else columns.dtype
        if dtype != self._K.dtype:  # nothing of the last set is used again
            kept, new = kept[:0], np.concatenate([kept, new])
            self.rows, self._oldest, self._K = kept, 0, np.empty((0, 0), dtype)
        begin, q = self._oldest, len(kept) + len(new)
        end = begin + len(new)
        if q != len(self.rows) or end > q:
            self._arrange(len(kept), q)
            begin, end = len(kept), q
        K = self._K
        self.rows[begin:end] = new
        if len(new):
            columns.block(new, self.rows, K[begin:end])
            columns.mirror(K, begin, end, q)
        K[:, q:] = 0
        self._oldest = end % max(1, q)
        return K

    def _arrange(self, kept: int, q: int) -> None:
        """Let the set have q places, the first of them for its latest rows."""
        old, oldest, before = self._K, self._oldest, len(self.rows)
        rows, K = np.empty(q, np.intp), self._room(q)
        # Where these rows are: behind the oldest one, and from the begin on.
        skipped = before - kept
        begin = oldest + skipped
        parts = [(slice(begin, before), 0)] if begin < before else []
        parts.append((slice(max(0, begin - before), oldest), max(0, before - begin)))
        for some, at in parts:
            rows[at:][: some.stop - some.start] = self.rows[some]
            for others, to in parts:
                block = old[some, others]
                K[at:][: len(block), to : to + block.shape[1]] = block
        self.rows, self._K, self._oldest = rows, K, 0

    def _room(self, q: int) -> NDArray[Any]:
        """Room for a block, (q, width), beside the last block: two take turns.

        Memory that is touched for the first time takes longer than the values.
        """
        dtype, width = self._K.dtype, padded(q) + GAP
        self._rooms.reverse()
        if self._rooms[0].size < q * width or self._rooms[0].dtype != dtype:
            self._rooms[0] = aligned((q * width,), dtype)
        return self._rooms[0][: q * width].reshape(q, width)

    def refine(self) -> None:
        """Go on with kernel values in float64."""
        if self.problem.columns.dtype == np.float64:
            return
        self.problem.columns.refine()
        self.scores = self.problem.expand(self.c)
        self.rows, self._oldest = np.empty(0, np.intp), 0

    def move(self, c: Vector) -> bool:
        """Go on from a c with the same sums, in float64, if it has a smaller gap."""
        self.refine()
        self.scores.settle()
        before, gap = self.scores, self.gap
        self.scores = self.problem.expand(c)
        if self.gap < gap:
            return True
        self.scores = self.problem.scores = before
        return False

    @property
    def gap(self) -> float:
        """The relative gap by the scores at hand."""
        c, f = self.c, self.scores.values
        b = self.problem.intercept_for(f, c, self.look().intercept)
        return self.problem.values(c, f, b).relative_gap
