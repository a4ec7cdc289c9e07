"""Which solver is fastest for a linear problem, and when it is given up.

Coordinate descent where few visits of a row suffice, else Newton's methods: the border
is in kappa, the mean of C |z|^2. Each number says what it was measured with.
"""

import math
from collections.abc import Callable
from typing import NamedTuple, Self

from widemargin.data.doubled import sizes_of
from widemargin.problems.base import Problem
from widemargin.solution import Step
from widemargin.solvers.driver.contract import ChosenSolver, Reserve, Solver
from widemargin.solvers.linear.active_set import ActiveSet
from widemargin.solvers.linear.augmented_lagrangian import AugmentedLagrangian
from widemargin.solvers.linear.coordinate_descent import CoordinateDescent
from widemargin.solvers.linear.interior_point import InteriorPoint

# Columns from which Newton's matrices cost much, and from which they no longer fit a
# dense Cholesky.
MANY, WIDE = 500, 1500
# Density from which wide rows are better solved through one dense matrix of this order
# at most (1500 x 5000, C = 1, free intercept: 2 s instead of 18 s).
DENSE, DENSE_ORDER = 0.25, 4000
# Mean C |z|^2 up to which coordinate descent is fastest, at least as a start, for the
# hinge: with more columns than WIDE, and with others, this over the rows a column. (For
# WIDE benchmarks/linear/rules.py. 560 problems of 10 to 1,500 dense columns, kappa from
# 0.3 to 3,000, over the better of both: with borders of 1 and 10 classes 1.29 times as
# long, targets 1.13; with 100, 200 and 400 1.17, 1.12 and 1.09; 1.09, 1.07 and 1.09.)
DESCENT_WIDE, DESCENT_DENSE = 1000.0, 300.0
# The same for the squared hinge: with more columns than WIDE, than MANY; with fewer
# Newton's method is fastest, whatever C is.
SQUARED_WIDE, SQUARED_MANY = 1000.0, 1.0
# The same for the squared loss and dense rows of more columns than the first number, in
# n^2 / m, which is what a step of Newton's method costs beside a visit of all rows; and
# after how many visits, in n, descent gives up. (benchmarks/core/dense_linear.py. Of 10
# to 100 columns, with a border of 0.5, up to 6 times as long. kappa counts the mean of
# columns far from zero: there small fits may take 3 times as long.)
DENSE_COLUMNS, SQUARED_DENSE, DENSE_UPDATES = 100, 2.0, 0.2
# The same for sparse rows of more than WIDE columns, in the cube of the columns a row,
# for the hinge and for classes with the squared loss. (Over the better of both, 1,300
# problems with the hinge of 1,501 to 40,000 columns: classes 1.12 times as long, with
# the trial below, targets 1.16. 500 and 4,000: 1.12 to 1.14, 1.16 to 1.19; squares in
# place of the cube 1.16, 1.24.)
WIDE_BORDER = 1500.0
# The same for their targets with the squared loss, in the columns a row. Where rows are
# few, the third number: for classes with fewer than the second number a column, for
# targets with no more than columns. (Few rows: Newton's method 2 to 20 times as long as
# descent, up to 120. A border of 30 a row for all: 1.1 to 1.2 times as long.)
SQUARED_BORDER, SQUARED_ROWS, DESCENT_SPARSE = 4.0, 4, 20_000.0
# Of at most WIDE columns so many times the root of n^3 over the stored entries, which
# is what a factor costs beside a visit of all rows, over the rows a column: targets,
# and classes with at least so many rows. (benchmarks/core/descent_or_newton.py.)
SQUARED_TARGETS, SQUARED_CLASSES = 1.8, 5.0
# Columns from which sparse rows count as wide, too. (linear/sparse.py, 3,000 rows of
# ten ones, 1,000 columns, C = 1, 10 and 100: hinge 0.04 to 0.2 of the time, squared
# hinge 0.03 to 0.07.)
SPARSE_COLUMNS = 256
# Such rows with no more columns than WIDE, up to so many rows a column: an interior
# point needs 6 to 18 factors where the augmented Lagrangian needs 40 to 200. (Hinge,
# 1,000 to 20,000 rows of 10 to 100 entries, 300 to 1,400 columns, kappa from 1 to
# 1,000: targets 0.12 to 1.0 of its time, classes 0.3 to 1.0; classes with less than
# INSIDE_CLASS rows a column 1.5 to 6 times; 25 and 50 rows a column 1.2 to 2.2.)
INSIDE_ROWS, INSIDE_CLASS = 20, 2
# What C |z|^2 is at most for descent there, of targets and classes: so many times the
# root of n^3 over the stored entries, which is what a factor costs beside a visit of
# all rows, times the fourth root of the gap asked for. (200 other fits than those the
# border is from, gaps of .1 to 1e-4, over the better of both: targets 1.05 to 1.08
# times as long, with a border of 10 1.15 to 1.5, and up to 6.9 times with fewer rows
# than columns; classes 1.0 to 1.02, by descent alone 1.01 to 1.3.)
INSIDE_TARGETS, INSIDE_CLASSES = 1.3, 9.5
# Classes of sparse rows are tried beyond these borders, with the hinge up to so many
# times the border: after the second number of visits, in units of m, descent goes on if
# kappa times a power of the share of rows that it has not left out is at most the
# border. Few rows near the margin are few visits, and kappa says nothing of them. It
# also goes on if its last epoch promises an end before so many visits as a factor costs
# over the root of the rows a column (a largest ratio of 3.1 in place of 50 below).
# (1,900 problems of 257 to 1,500 columns with kappa from 0.3 to 3,000, gaps from 1e-2
# to 1e-4, over the better of both: hinge 1.12 times as long without a trial, 1.06 with
# it, squared hinge 1.18 and 1.07; 95th percentiles 2.3 and 1.5, 3.0 and 1.5. Powers of
# 3 to 6: 1.06 to 1.09. No upper end with the hinge: 1.07, and on rows of more columns
# up to 5 times as long. A look after 5, 8, 12 and 20 visits costs 7, 9, 13 and 27 % of
# Newton's time for the squared hinge, and leaves 0.98, 0.95, 0.92 and 0.81 of the log
# of the ratio unknown; without a look 1.45. More columns with the hinge: 1.16 and 1.12.
# Dense rows and targets are no better for it.)
TRIED, TRIAL, TRIAL_POWER = 30.0, 8.0, 5
# Up to WIDE columns where a factor costs so much beside a visit of all rows, in roots
# of the rows a column: such a trial is short beside Newton's method, a 15th of its time
# in the mean with the squared hinge. (w8a, hinge, C = 1, where it does not: 1.8 times
# as long if tried.)
TRIED_FACTORS = 8.0
# Visits in units of m after which coordinate descent gives up, and sweeps after which
# the augmented Lagrangian does. (100, 200 and 400: 1.11, 1.09 and 1.09 times as long as
# the better method, the 560 dense problems above; sweeps of 130: 0.94 to 1.3, 1200:
# 0.95 to 1.04, benchmarks/core/untuned.py.)
MOST_UPDATES, MOST_SWEEPS = 200.0, 400
# Sweeps after which an interior point goes on from Newton's methods of the bounded and
# the squared loss if their dual objective is below that of zero: so many rows pass to
# and fro then that most others need 100 to 500 steps, an interior point 10 to 40.
# (benchmarks/core/dense_linear.py; the squared loss with 30 0.92 of the time, up to
# 1.7.)
LEAST_SWEEPS, LEAST_SQUARED_SWEEPS = 60, 45
# The same visits for the squared hinge. (15, 25, 40, 100: 1.29, 1.20, 0.99, 1.09 of the
# time; `documents`, Reuters and scattered entries, targets and classes, C from 3 to
# 1000, gaps of 1e-2 and 1e-4; with 40 rough answers take up to 1.5 times as long.)
SQUARED_UPDATES = 60.0
# The same for wide sparse rows, times the root of kappa: conjugate gradients take more
# sweeps too where it is large. (benchmarks/linear/sparse.py, a fixed 60: scattered
# entries with kappa above 1000 up to 40 times as long; 3, 6, 24 and 48: 0.7 to 3.9,
# 0.8 to 1.1, 0.7 to 1.2 and 0.7 to 3.2 of the time, benchmarks/core/untuned.py.)
SPARSE_UPDATES = 12.0
# The same for wide rows and the hinge, where an interior point solves for min(m, n)
# numbers. (1,100 problems of 1,501 to 40,000 columns, over the better method, where
# visits count that the last epoch promises. Classes: 1.15 with 200, 1.07 with 400, 1.05
# with 800; targets: 1.20, 1.12, 1.12. Sweeps: 400 not solved in 10 s, 3000 0.98 to 1.0
# of the time, benchmarks/core/untuned.py. If all sweeps count as one, however few rows
# they read: 1.4 to 3 times as long.)
WIDE_UPDATES, WIDE_SWEEPS = 500.0, 1500
# The same for sparse rows of at most WIDE columns, for the hinge in roots of what a
# factor costs beside a visit of all rows, for the squared loss in such roots over the
# root of the rows a column. (3,300 problems, over the better method. Hinge: 1.07 with
# 6, 1.05 with 10, 1.04 with 20. Squared loss, classes: 1.21 with 0, 1.09 with 3, 1.07
# with 6 to 20; targets: 1.21 with 0, 1.06 with 3, 1.03 with 6 and 10, 1.02 with 20.
# Where visits count that are promised: up to 1.13.)
FACTOR_UPDATES, SQUARED_FACTOR_UPDATES = 15.0, 10.0


class Facts(NamedTuple):
    """What the choice for a linear problem depends on.

    Attributes
    ----------
    m, samples, n : int, rows of the problem, and of the data, and their columns
    density : float, share of the entries that are stored
    kappa : float, mean C times mean ``|z|^2``
    is_bounded : bool, whether the loss bounds alpha
    is_class : bool, whether there are margins of 1 to reach, once for each sample
    is_in_memory : bool
    tol : float, the relative gap that is asked for
    """

    m: int
    samples: int
    n: int
    density: float
    kappa: float
    is_bounded: bool
    is_class: bool
    is_in_memory: bool
    tol: float

    @classmethod
    def of(cls, problem: Problem, tol: float) -> Self:
        """Those of a problem that is solved to a relative gap."""
        rows = problem.rows
        forms = problem.is_bounded, problem.has_unit_margins, rows.is_in_memory
        m = rows.shape[0]
        return cls(m, *sizes_of(rows), rows.density, problem.kappa, *forms, tol)

    @property
    def is_sparse(self) -> bool:
        """Whether rows are sparse, and so wide that Newton's matrices cost much."""
        return self.n > SPARSE_COLUMNS and self.density <= DENSE

    @property
    def suits_inside(self) -> bool:
        """Whether they are sparse rows for the interior point method."""
        least = INSIDE_CLASS if self.is_class else 0
        few = least * self.n <= self.samples <= INSIDE_ROWS * self.n
        return self.has_factors and few and self.is_in_memory

    @property
    def factor_cost(self) -> float:
        """The root of what a factor costs beside a visit of all rows: n^3 / stored."""
        return self.n / math.sqrt(max(self.density * self.samples, 1.0))

    @property
    def has_factors(self) -> bool:
        """Whether they are sparse rows, but Newton's method factors matrices."""
        return self.is_sparse and self.n <= WIDE

    @property
    def each(self) -> float:
        """Rows a column."""
        return self.samples / self.n

    @property
    def least_visits(self) -> float:
        """Visits, in units of m, after which it gives up where nothing else is said."""
        if self.is_bounded:
            return WIDE_UPDATES if self.n > WIDE else MOST_UPDATES
        if self.is_sparse:
            return max(SQUARED_UPDATES, SPARSE_UPDATES * math.sqrt(self.kappa))
        return DENSE_UPDATES * min(self.n, WIDE)

    @property
    def visits(self) -> float:
        """Visits, in units of m, after which coordinate descent gives up.

        More of them where Newton's method factors matrices for sparse rows.
        """
        if not self.has_factors:
            return self.least_visits
        if self.is_bounded:
            times = FACTOR_UPDATES
        else:
            times = SQUARED_FACTOR_UPDATES / math.sqrt(self.each)
        return max(self.least_visits, times * self.factor_cost)

    @property
    def size(self) -> str:
        """The size in words."""
        return f"{self.samples:,} rows x {self.n:,} features"

    @property
    def border(self) -> float:
        """Kappa up to which coordinate descent is fastest on rows in memory."""
        return _border_of_bounded(self) if self.is_bounded else _border_of_squared(self)

    @property
    def descends(self) -> bool:
        """Whether coordinate descent is chosen, other than for a trial."""
        return self.is_in_memory and self.kappa <= self.border

    @property
    def is_tried(self) -> bool:
        """Whether coordinate descent is tried, if it is not chosen."""
        if not (self.is_class and self.is_in_memory and self.is_sparse):
            return False
        if self.is_bounded and self.kappa > TRIED * self.border:
            return False
        if not self.has_factors:
            return self.is_bounded
        return self.factor_cost >= TRIED_FACTORS * math.sqrt(self.each)


def newton_for(facts: Facts) -> ChosenSolver:
    """What solves a linear problem where coordinate descent does not."""
    suits = _newton_for_bounded if facts.is_bounded else _newton_for_squared
    return suits(facts)


def solver_for(facts: Facts) -> ChosenSolver:
    """What solves a linear problem, and what goes on where it is given up."""
    newton = newton_for(facts)
    if facts.descends:
        reason, enough = _small(facts), _until_over(facts)
    elif facts.is_tried:
        reason, enough = _tried(facts), _after_trial(facts, _until_over(facts))
    else:
        return newton
    reserves = (Reserve(newton.solver, enough), *newton.reserves)
    return ChosenSolver(CoordinateDescent(), reason, reserves)


def _newton_for_bounded(facts: Facts) -> ChosenSolver:
    m, n, last = facts.m, facts.n, InteriorPoint()
    newton: Solver = AugmentedLagrangian()
    reason = (
        "Newton's method on the rows near the margin needs few sweeps, whatever C is"
    )
    back = Reserve(newton, _never)  # the last digits may be its own
    reserves: tuple[Reserve, ...] = (Reserve(last, _after_sweeps(facts)), back)
    if n > WIDE and facts.density > DENSE and min(m, n) <= DENSE_ORDER:
        newton, reserves = last, ()
        reason = "it needs few iterations on dense rows with many columns"
    elif facts.suits_inside:
        newton, reserves = last, (back,)
        reason = "it needs few iterations on sparse rows with so many columns"
    return ChosenSolver(newton, f"because {reason} ({facts.size})", reserves)


def _newton_for_squared(facts: Facts) -> ChosenSolver:
    last = Reserve(InteriorPoint(), _after_sweeps(facts))
    reason = "because Newton's method on the active rows takes few sweeps"
    return ChosenSolver(ActiveSet(), f"{reason} ({facts.size})", (last,))


def _border_of_bounded(facts: Facts) -> float:
    n, is_class = facts.n, facts.is_class
    if n > WIDE:
        return WIDE_BORDER / facts.each**3 if facts.is_sparse else DESCENT_WIDE
    if facts.suits_inside:
        times = INSIDE_CLASSES if is_class else INSIDE_TARGETS
        return times * facts.factor_cost * math.sqrt(math.sqrt(facts.tol))
    if facts.is_sparse and is_class and facts.each < INSIDE_CLASS:
        return DESCENT_SPARSE
    return DESCENT_DENSE / facts.each


def _border_of_squared(facts: Facts) -> float:
    n, each, is_class = facts.n, facts.each, facts.is_class
    if facts.is_sparse:
        if each < SQUARED_ROWS if is_class else each <= 1.0:
            return DESCENT_SPARSE
        if n > WIDE:
            return WIDE_BORDER / each**3 if is_class else SQUARED_BORDER / each
        times = SQUARED_CLASSES if is_class else SQUARED_TARGETS
        return times * facts.factor_cost / each
    if n > WIDE:
        return SQUARED_WIDE
    most = SQUARED_MANY if n > MANY else 0.0
    dense = n > DENSE_COLUMNS and facts.density > DENSE
    return max(most, SQUARED_DENSE * n * n / facts.m) if dense else most


def _small(facts: Facts) -> str:
    """Why coordinate descent."""
    border = float(f"{facts.border:.2g}")
    return (
        "because C is small for these features (mean C times mean |x|^2 = "
        f"{facts.kappa:.2g}, at most {border:g}) and few visits of a row suffice "
        f"({facts.size})"
    )


def _tried(facts: Facts) -> str:
    """Why coordinate descent on trial."""
    return (
        "because coordinate descent is tried, which is fast where few rows are near "
        f"the margin ({facts.size})"
    )


def _never(step: Step) -> bool:
    return False


def _until_over(facts: Facts) -> Callable[[Step], bool]:
    """When descent has had its visits, or promises to need more.

    Where a factor says how many visits are worth it, such promises only mislead.
    """
    most, ahead = facts.visits, 0.0 if facts.has_factors else 1.0
    return lambda step: step.details["updates"] + ahead * step.details["left"] >= most


def _after_trial(
    facts: Facts, enough: Callable[[Step], bool]
) -> Callable[[Step], bool]:
    """When descent has not stood its trial; later as without one."""
    kept = facts.m * (facts.border / facts.kappa) ** (1.0 / TRIAL_POWER)
    soon = facts.factor_cost / math.sqrt(facts.each)
    is_judged = False

    def is_over(step: Step) -> bool:
        """Whether too many rows are left to go on, and many visits, or else enough."""
        nonlocal is_judged
        visits, left = step.details["updates"], step.details["left"]
        if not is_judged and visits >= TRIAL:
            is_judged = True  # later all rows may be back for a while
            if step.active > kept and not 0.0 < left <= soon - visits:
                return True
        return enough(step)

    return is_over


def _after_sweeps(facts: Facts) -> Callable[[Step], bool]:
    """When an interior point goes on from Newton's method.

    With a bounded loss after the most sweeps, and of dense rows, with either, after the
    least ones if D is below that of zero. Beyond WIDE columns its factors cost more,
    and most sweeps are of few rows near the margin: they count by the share of rows
    that the last step reads.
    """
    most, least = math.inf, LEAST_SQUARED_SWEEPS
    if facts.is_bounded:
        most = WIDE_SWEEPS if facts.n > WIDE else MOST_SWEEPS
        least = LEAST_SWEEPS
    if facts.is_sparse or min(facts.samples, facts.n) > WIDE:
        m = facts.m
        return lambda step: step.sweeps * min(1.0, step.active / m) >= most
    return lambda step: (
        step.sweeps >= most or (step.sweeps >= least and step.dual < 0.0)
    )
