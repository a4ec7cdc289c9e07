"""Which rows a working set gets, and in which precision: what its solvers share."""

import numpy as np

from widemargin.arrays import Index
from widemargin.solvers.kernel.published_selection import RandomSelection
from widemargin.solvers.kernel.violations import Violations
from widemargin.solvers.kernel.working_set import WorkingSet

# Up to this number of rows a problem is solved in float64, to rounding: that takes
# milliseconds, and then rows of weight 2 say what repeated rows do to many digits.
AT_ONCE = 256
# Small problems are solved to this share of the violation. With 0.03 and 0.01 a9a, w8a,
# ijcnn1 and mnist took up to a fifth fewer working sets, and up to twice the steps.
INNER_SHARE = 0.1
# Share of what a violation has to fall by for the gap, which falls less at first; and
# the least share of it that float32 is trusted with. (A fall of 0.05: 0.9 to 1 of the
# time, 0.5: 0.8 to 1, benchmarks/core/untuned.py.)
AIM, LEAST_SHARE = 0.15, 1e-3
# Rows of a working set at first; and at most, where it grows: it doubles while there
# are more free rows than it holds. Where rows of K are kept, and cost little to use
# again, only after some iterations (w8a: a fifth fewer rows; 20,000 rows of mnist: 10
# instead of 20 of them 0.95 of the time, 5 as long). Sets of 8192 rows take 0.5 GB,
# whose first touch made a8a with the squared hinge (14,000 free rows) twice as long.
FIRST_SIZE, MOST_SIZE, GROWTH = 2048, 4096, 10
# Scores are computed anew in float64 when the violation has fallen by this factor, or
# after this number of iterations. (1e-5, 1e-3 and 200: 1 to 1.2 of the time; 50: 0.9 to
# 2.3, benchmarks/core/untuned.py.)
REFRESH_FACTOR, REFRESH_EVERY = 1e-4, 100
# Kernel values in float32 will not do where a refresh moved a score by more than this
# share of the violation that it showed, which had not halved since the last refresh.
# (0.03: 0.8 to 2.7 of the time, 0.3: 0.8 to 1.1, benchmarks/core/untuned.py.)
ROUNDING_SHARE = 0.1
# This number of small problems that rounding kept from their end ask for float64 too.
# (1: 1 to 2.6 of the time, 4: 0.9 to 1, benchmarks/core/untuned.py.)
UNSOLVED = 2
NOBODY: Index = np.empty(0, np.intp)
# Violation, in units of the largest |F|, that float64 cannot tell from none.
NOTHING = 1e-14


class Choice:
    """Chooses the working sets: which rows stay, and which ones come.

    Parameters
    ----------
    run : WorkingSet
    working_set, carry, selection : as of `IRWLS`
    seed : int

    Attributes
    ----------
    holds_all : bool, whether the last set has all rows that violate their conditions
    """

    def __init__(
        self,
        run: WorkingSet,
        working_set: int | None = None,
        carry: float = 0.5,
        selection: str = "violation",
        seed: int = 0,
    ) -> None:
        self._run, self._carry, self._selection = run, carry, selection
        self._at_random = RandomSelection(run.problem.signs, seed)
        self._grows, self._size = working_set is None, working_set or FIRST_SIZE
        self._any_samples, self.holds_all = NOBODY, False
        if run.kinks is not None:
            # At c = 0 the largest violators of a regression are its extreme targets,
            # of which few are enough. From any samples on, seven problems of 4,000 to
            # 20,000 rows took up to 11 % fewer kernel values, and one 1 % more.
            order = np.random.default_rng(seed).permutation(run.count)
            self._any_samples = order.astype(np.intp)

    def __call__(self, iteration: int, found: Violations) -> tuple[Index, Index]:
        """The rows that stay, and the new ones."""
        run, size = self._run, self._size
        self.holds_all = False
        due = not run.problem.columns.keeps_rows or iteration % GROWTH == GROWTH - 1
        if (
            self._grows
            and due
            and size < min(MOST_SIZE, int(np.count_nonzero(run.free)))
        ):
            self._size = size = 2 * size
        size = min(size, run.count, run.problem.columns.block_rows)
        kept = run.latest(min(int(self._carry * size), size - 2))
        if run.form.sums > 1 and size == run.count:
            # There is room for all: none has to come back. (Two mixed classes of 600
            # rows: 13 working sets, not 18.)
            kept = run.rows
        if run.kinks is not None and run.scores.current is None and not run.c.any():
            some = self._any_samples[: size - 2]
            return kept[:0], np.concatenate([some, run.largest(found, 2, some)])
        if self._selection == "random":
            free = run.free
            return kept, self._at_random(found, free, size - len(kept), kept)
        new = run.largest(found, size - len(kept), kept)
        if self._are_all(new, size - len(kept)):
            # All that violate have room: what would leave need not come back.
            outside = new[~np.isin(new, run.rows)]
            if len(run.rows) + len(outside) <= size:
                self.holds_all = True
                return run.rows, outside
        return kept, new

    def _are_all(self, new: Index, count: int) -> bool:
        """Whether no others violate: with two sums each class has half of a set."""
        if self._run.form.sums < 2:
            return len(new) < count
        plus = int(np.count_nonzero(self._run.problem.signs[new] > 0))
        return max(plus, len(new) - plus) < count // 2

    def aim(self, found: Violations, gap: float, tol: float) -> float:
        """A violation that is worth some steps more than a usual set: inf for none.

        Where the set has all rows that violate, it is what is left in the end, and gaps
        fall with it: that of a gap of ``tol``, or nearly.
        """
        if not (self.holds_all and gap > tol):
            return np.inf
        return max(AIM * tol / gap, LEAST_SHARE) * found.size


class Precision:
    """Computes scores anew when it is time to, and goes over to float64.

    Parameters
    ----------
    run : WorkingSet
    violation : float
        That the last refresh showed, or where a run with these scores ended: one that
        goes on has little time, perhaps, and has some for steps.
    """

    def __init__(self, run: WorkingSet, violation: float = np.inf) -> None:
        self._run = run
        self._seen = self._age = 0
        self._violation = violation

    def look(self) -> Violations:
        """The violations, by scores that are exact enough."""
        run = self._run
        found = run.look()
        self._age += 1
        if run.scores.current is not None and not found.size > NOTHING * found.scale:
            run.scores.settle()
            found = run.look()
        most = min(self._violation, run.problem.unit)
        fallen = found.size <= REFRESH_FACTOR * most
        if run.scores.refreshes == self._seen and (
            fallen or self._age >= REFRESH_EVERY
        ):
            b = run.problem.intercept_near(run.c, found.intercept)
            run.problem.refresh_near(run.scores, b)
            found = run.look()
        if run.unsolved >= UNSOLVED:
            found = self._refined() or found
        if run.scores.refreshes == self._seen:
            return found
        slow = found.size > 0.5 * self._violation
        if slow and run.scores.error > ROUNDING_SHARE * found.size:
            found = self._refined() or found
        self._seen, self._age = run.scores.refreshes, 0
        self._violation = found.size
        return found

    def sharpen(self, aim: float, found: Violations) -> Violations:
        """The violations without what rounding of kept rows did, where it hides an aim.

        The set that follows adds little of it again. (mnist, C = 10, 16,000 rows, would
        end above the gap of 1e-4 that is asked for, and take a set more.)
        """
        run = self._run
        if not run.scores.noise > aim:
            return found
        b = run.problem.intercept_near(run.c, found.intercept)
        run.problem.refresh_near(run.scores, b)
        found = run.look()
        self._seen, self._age = run.scores.refreshes, 0
        self._violation = found.size
        return found

    def _refined(self) -> Violations | None:
        """The violations with kept rows that are not rounded, or in float64, if new."""
        columns = self._run.problem.columns
        if columns.is_rounded:
            columns.keep_exact()
            return self._run.look()
        if columns.dtype == np.float64:
            return None
        try:
            self._run.refine()
        except ValueError:  # memory_limit has no room for it
            return None
        return self._run.look()
