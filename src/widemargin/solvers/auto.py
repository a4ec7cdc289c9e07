"""Choosing a solver, and the one function that solves any problem."""

import dataclasses
import functools
import math
import os
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Self

from widemargin.data.doubled import sizes_of
from widemargin.parameters import Checker
from widemargin.problems.base import Problem
from widemargin.problems.hard import HardProblem
from widemargin.solution import Solution, Status, Step
from widemargin.solvers.driver.advice import shows_zero
from widemargin.solvers.driver.checkpoint import Checkpoint
from widemargin.solvers.driver.contract import ChosenSolver, Reserve, Solver
from widemargin.solvers.driver.driver import refusal, run
from widemargin.solvers.driver.hard import solve_hard
from widemargin.solvers.driver.limits import Callback, Limits
from widemargin.solvers.kernel import batch
from widemargin.solvers.kernel.budget import Budget
from widemargin.solvers.kernel.core_vector import CoreVector
from widemargin.solvers.kernel.frank_wolfe import FrankWolfe
from widemargin.solvers.kernel.irwls import IRWLS
from widemargin.solvers.linear import batch as linear_batch
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
# hinge (wide data, many columns, other) and the squared hinge (wide, many columns; with
# fewer Newton's method is, whatever C is): from benchmarks/linear/rules.py.
DESCENT_WIDE, DESCENT_MANY, DESCENT_TALL = 1000.0, 10.0, 1.0
SQUARED_WIDE, SQUARED_MANY = 1000.0, 1.0
# The same for the squared loss and dense rows of more columns than the first number, in
# n^2 / m, which is what a step of Newton's method costs beside a visit of all rows; and
# after how many visits, in n, descent gives up. (benchmarks/core/dense_linear.py. Of 10
# to 100 columns, with a border of 0.5, up to 6 times as long. kappa counts the mean of
# columns far from zero: there small fits may take 3 times as long.)
DENSE_COLUMNS, SQUARED_DENSE, DENSE_UPDATES = 100, 2.0, 0.2
# The same for wide sparse rows with no more rows than columns, and for the hinge with
# more, up to so many rows a column with margins of 1 and with others; beyond Newton's
# method is faster. (linear/sparse.py, gap 1e-4, Newton's time over descent's, scattered
# entries, 10 and 20 rows a column: kappa 4 classes 2.5 and 1.6, targets 1.0 and 0.4;
# kappa 43 0.7 and 0.3, at most 0.3 and 0.2.)
DESCENT_SPARSE, HINGE_ROWS, TARGET_ROWS = 20_000.0, 15, 8
# The same for wide sparse rows and the squared loss: of targets with more rows than
# columns, and of all with at least so many rows a column. (linear/sparse.py, gap 1e-4,
# Newton's time over descent's, scattered entries, 4 to 20 rows a column: kappa 0.4 0.6
# to 1.0, 4 0.2 to 0.8; Zipf's words, 7 rows: kappa 0.2 1.3, 2 0.8.)
SQUARED_FEW, SQUARED_ROWS, SQUARED_TALL = 4.0, 4, 0.3
# Of at most WIDE columns so many times the root of n^3 over the stored entries, which
# is what a factor costs beside a visit of all rows, over the rows a column: targets,
# and classes with at least so many rows. (benchmarks/core/descent_or_newton.py.)
SQUARED_TARGETS, SQUARED_CLASSES = 1.8, 5.0
# Columns from which sparse rows count as wide, too, and what C |z|^2 is at most where
# these are few and the rows more, or fewer, than suit an interior point: Newton's
# matrices cost less there. (linear/sparse.py, 3,000 rows of ten ones, 1,000 columns,
# C = 1, 10 and 100: hinge 0.04 to 0.2 of the time, squared hinge 0.03 to 0.07; 140 fits
# of 300 to 1,400 columns: 0.7 of the time, 0.01 to 1.2.)
SPARSE_COLUMNS, SPARSE_FEW = 256, 200.0
# Such rows with no more columns than WIDE, up to so many rows a column: an interior
# point needs 6 to 18 factors where the augmented Lagrangian needs 40 to 200. (Hinge,
# 1,000 to 20,000 rows of 10 to 100 entries, 300 to 1,400 columns, kappa from 1 to
# 1,000: targets 0.12 to 1.0 of its time, classes 0.3 to 1.0; classes with less than
# INSIDE_CLASS rows a column 1.5 to 6 times; 25 and 50 rows a column 1.2 to 2.2.)
INSIDE_ROWS, INSIDE_CLASS = 20, 2
# What C |z|^2 is at most for descent there, of targets and classes: so many times the
# root of n^3 over the stored entries, which is what a factor costs beside a visit of
# all rows, times the fourth root of the gap asked for; and the visits after which it
# gives up, in the same roots. (benchmarks/core/descent_or_newton.py, 200 other fits
# than those the border is from, gaps of .1 to 1e-4, over the better of both: targets
# 1.05 to 1.08 times as long, with a border of 10 1.15 to 1.5, and up to 6.9 times with
# fewer rows than columns; classes 1.0 to 1.02, by descent alone 1.01 to 1.3.)
INSIDE_TARGETS, INSIDE_CLASSES, INSIDE_VISITS = 1.3, 9.5, 6.0
# Rows a column from which Newton's method on a sample is a better start. (600 and
# 10,000: 0.95 to 1.1 of the time, benchmarks/core/untuned.py.)
DESCENT_ROWS = 2500
# Visits in units of m after which coordinate descent gives up, and sweeps after which
# the augmented Lagrangian does. (30 and 300: 0.96 to 1.02 of the time; 130: 0.94 to
# 1.3, 1200: 0.95 to 1.04, benchmarks/core/untuned.py.)
MOST_UPDATES, MOST_SWEEPS = 100.0, 400
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
# numbers. (100, 200, 1000, targets of `documents` and Reuters, C from 10 to 1e4: 1.4,
# 1.0 to 1.5, 1.1 to 3.1 of the best time; sweeps: 400 not solved in 10 s, 3000 0.98 to
# 1.0 of the time, benchmarks/core/untuned.py.)
WIDE_UPDATES, WIDE_SWEEPS = 200.0, 1500

# A new solver is one file and one line here.
SOLVERS: dict[str, type[Solver]] = {
    cls.name: cls
    for cls in (
        InteriorPoint,
        ActiveSet,
        AugmentedLagrangian,
        CoordinateDescent,
        IRWLS,
        Budget,
        FrankWolfe,
        CoreVector,
    )
}

# What estimators take: the batch solver is for the problems of a fit, not for one.
NAMES = ("auto", batch.NAME, *SOLVERS)


def is_of_kernels(solver: str | Solver) -> bool:
    """Whether it is a solver of kernel problems alone, by its name or as it is."""
    if isinstance(solver, str):
        return solver in SOLVERS and SOLVERS[solver].for_kernels
    return solver.for_kernels


def able(problem: Problem) -> set[str]:
    """Names of the solvers that take a problem."""
    takes = (n for n, kind in SOLVERS.items() if refusal(kind(), problem) is None)
    return {"auto", *takes}


def choose(
    problem: Problem,
    solver: str | Solver = "auto",
    random_state: Any = None,
    *,
    tol: float = 1e-4,
) -> ChosenSolver:
    """The solver for a problem: as asked, or for "auto" the solver that suits it.

    Parameters
    ----------
    problem : Problem
    solver : str or Solver
        "auto", a name, or an object that carries its own options.
    random_state : int or None
        Seed for a solver that takes one and has none.
    tol : float
        The relative gap that is asked for.

    Returns
    -------
    ChosenSolver

    Raises
    ------
    ValueError for an unknown name; TypeError for something else.
    """
    if solver == "auto":
        solver, reason, reserves = _chosen(problem, tol)
        return ChosenSolver(_seeded(solver, random_state), reason, reserves)
    if isinstance(solver, Solver):
        return ChosenSolver(_seeded(solver, random_state), "as asked")
    check = Checker("solve")
    refuse_class(check, solver)
    check.choice("solver", solver, ("auto", *SOLVERS))
    return ChosenSolver(_seeded(SOLVERS[solver](), random_state), "as asked")


def refuse_class(check: Checker, solver: Any) -> None:
    """Refuse the class of a solver, without its parentheses."""
    if isinstance(solver, type) and issubclass(solver, Solver):
        check.refuse_class("solver", "a solver object", solver)


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
        return self.is_sparse and self.n <= WIDE and few and self.is_in_memory

    @property
    def factor_cost(self) -> float:
        """The root of what a factor costs beside a visit of all rows: n^3 / stored."""
        return self.n / math.sqrt(max(self.density * self.samples, 1.0))

    @property
    def visits(self) -> float:
        """Visits, in units of m, after which coordinate descent gives up."""
        if self.is_bounded and self.suits_inside:
            return max(WIDE_UPDATES, INSIDE_VISITS * self.factor_cost)
        if self.is_bounded:
            return WIDE_UPDATES if self.n > WIDE or self.is_sparse else MOST_UPDATES
        if not self.is_sparse:
            return DENSE_UPDATES * min(self.n, WIDE)
        return max(SQUARED_UPDATES, SPARSE_UPDATES * math.sqrt(self.kappa))

    @property
    def size(self) -> str:
        """The size in words."""
        return f"{self.samples:,} rows x {self.n:,} features"

    @property
    def descends(self) -> bool:
        """Whether coordinate descent is chosen."""
        return isinstance(_for_linear(self).solver, CoordinateDescent)


def _for_linear(facts: Facts) -> ChosenSolver:
    return _for_bounded(facts) if facts.is_bounded else _for_unbounded(facts)


def _for_bounded(facts: Facts) -> ChosenSolver:
    m, n, kappa = facts.m, facts.n, facts.kappa
    last = InteriorPoint()
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
    most = DESCENT_TALL if n <= MANY else DESCENT_MANY
    if facts.is_sparse:
        most = _for_sparse(facts, most)
    elif n > WIDE:
        most = DESCENT_WIDE
    few_rows = n > WIDE or m < DESCENT_ROWS * n
    # By sweeps of files descent takes many times as many.
    if kappa <= most and few_rows and facts.is_in_memory:
        reserves = (Reserve(newton, _after_updates(facts.visits)), *reserves)
        return ChosenSolver(CoordinateDescent(), _small(facts, most), reserves)
    return ChosenSolver(newton, f"because {reason} ({facts.size})", reserves)


def _for_sparse(facts: Facts, tall: float) -> float:
    """Mean C |z|^2 up to which coordinate descent is fastest: sparse, hinge.

    ``tall`` is that of classes with many rows a column.
    """
    m, n, is_class = facts.samples, facts.n, facts.is_class
    if facts.suits_inside:
        times = INSIDE_CLASSES if is_class else INSIDE_TARGETS
        return times * facts.factor_cost * math.sqrt(math.sqrt(facts.tol))
    if m < (HINGE_ROWS if is_class else TARGET_ROWS) * n:
        return DESCENT_SPARSE if n > MANY else SPARSE_FEW
    return tall if is_class or n <= WIDE else DESCENT_TALL


def _for_sparse_squared(facts: Facts) -> float:
    """Mean C |z|^2 up to which coordinate descent is fastest: sparse, squared loss."""
    n, each, is_class = facts.n, facts.samples / facts.n, facts.is_class
    if each < SQUARED_ROWS if is_class else each <= 1.0:
        return DESCENT_SPARSE
    if n <= WIDE:
        times = SQUARED_CLASSES if is_class else SQUARED_TARGETS
        return times * facts.factor_cost / each
    return SQUARED_TALL if each >= SQUARED_ROWS else SQUARED_FEW


def _for_unbounded(facts: Facts) -> ChosenSolver:
    n, kappa, newton = facts.n, facts.kappa, ActiveSet()
    last = Reserve(InteriorPoint(), _after_sweeps(facts))
    most = SQUARED_WIDE if n > WIDE else SQUARED_MANY if n > MANY else 0.0
    if DENSE_COLUMNS < n <= WIDE and facts.density > DENSE:
        most = max(most, SQUARED_DENSE * n * n / facts.m)
    if facts.is_sparse:
        most = _for_sparse_squared(facts)
    if kappa <= most and facts.is_in_memory:
        reserves = (Reserve(newton, _before_updates(facts.visits)), last)
        return ChosenSolver(CoordinateDescent(), _small(facts, most), reserves)
    reason = "because Newton's method on the active rows takes few sweeps"
    return ChosenSolver(newton, f"{reason} ({facts.size})", (last,))


def _for_kernel(problem: Problem) -> ChosenSolver:
    if problem.norm is not None:
        return ChosenSolver(Budget(), f"because it solves problems with {problem.norm}")
    reason = f"because it solves kernel problems ({sizes_of(problem.rows)[0]:,} rows)"
    return ChosenSolver(IRWLS(), reason)


def _small(facts: Facts, most: float) -> str:
    """Why coordinate descent."""
    border = float(f"{most:.2g}")
    return (
        "because C is small for these features (mean C times mean |x|^2 = "
        f"{facts.kappa:.2g}, at most {border:g}) and few visits of a row suffice "
        f"({facts.size})"
    )


def has_given_up(start: Any) -> bool:
    """Whether a start is where the batch solver's methods for a problem gave up."""
    return _given_up_by(start) is not None


def _given_up_by(start: Any) -> str | None:
    """What counts how far the batch solver got until it gave up, if it has."""
    if not isinstance(start, Solution) or start.status is not Status.STALLED:
        return None
    if start.solver != batch.NAME:
        return None
    if start.extras.get(linear_batch.NEWTON_STEPS, 0.0) >= linear_batch.MOST_STEPS:
        return linear_batch.NEWTON_STEPS
    return linear_batch.UPDATES if linear_batch.UPDATES in start.extras else None


def _without_given_up(problem: Problem, plan: ChosenSolver, start: Any) -> ChosenSolver:
    """A plan less what the batch solver has tried already."""
    by = _given_up_by(start)
    if by == linear_batch.UPDATES and isinstance(plan.solver, CoordinateDescent):
        return plan.next
    if (
        by == linear_batch.NEWTON_STEPS and plan.reserves
    ):  # "auto", not one that was asked for
        reason = "because Newton's method got no further"
        back = plan.reserves[-1:] if problem.is_bounded else ()
        return ChosenSolver(InteriorPoint(), reason, back)
    return plan


def _chosen(problem: Problem, tol: float) -> ChosenSolver:
    """The solver that suits a problem, to a relative gap."""
    if problem.couples:
        return _for_kernel(problem)
    return _for_linear(Facts.of(problem, tol))


def _never(step: Step) -> bool:
    return False


def _after_updates(most: float) -> Callable[[Step], bool]:
    return lambda step: step.details["updates"] >= most


def _before_updates(most: float) -> Callable[[Step], bool]:
    """Whether so many visits have been made, or will surely be needed."""
    return lambda step: step.details["updates"] + step.details["left"] >= most


def _after_sweeps(facts: Facts) -> Callable[[Step], bool]:
    """When an interior point goes on from Newton's method.

    With a bounded loss after the most sweeps, and of dense rows, with either, after the
    least ones if D is below that of zero. Beyond WIDE columns its factors cost more.
    """
    most, least = math.inf, LEAST_SQUARED_SWEEPS
    if facts.is_bounded:
        most = WIDE_SWEEPS if facts.n > WIDE else MOST_SWEEPS
        least = LEAST_SWEEPS
    if facts.is_sparse or min(facts.samples, facts.n) > WIDE:
        return lambda step: step.sweeps >= most
    return lambda step: (
        step.sweeps >= most or (step.sweeps >= least and step.dual < 0.0)
    )


def _seeded(solver: Solver, random_state: Any) -> Solver:
    """The solver with a seed, where it takes one and has none."""
    if (
        random_state is not None
        and getattr(solver, "random_state", random_state) is None
    ):
        return dataclasses.replace(solver, random_state=random_state)  # type: ignore[type-var]
    return solver


def solve(  # noqa: PLR0913  (options, by keyword)
    problem: Problem,
    solver: str | Solver = "auto",
    *,
    tol: float = 1e-4,
    max_iter: int | None = None,
    time_limit: float | None = None,
    start: Solution | tuple[Any, Any, float] | None = None,
    callback: Callback | None = None,
    checkpoint: str | os.PathLike[str] | Checkpoint | None = None,
) -> Solution:
    """Solve a problem to a certified relative duality gap.

    Stops when (P - D) / abs(P) <= ``tol``, with P and D recomputed from the answer.

    Parameters
    ----------
    problem : Problem
    solver : str or Solver, default="auto"
        "auto", a name ("active_set", "augmented_lagrangian", "coordinate_descent",
        "interior_point"; with a kernel "irwls", "frank_wolfe", "core_vector"; with a
        `LossNorm` "budget"), or an object with options, such as
        ``InteriorPoint(reduction="omega")``.
    tol : float in (0, 1], default=1e-4
        Relative duality gap: the optimum is at most this share of P below P, the
        objective of the answer.
    max_iter : int >= 1 or None, default=None
        Iterations; None: what the solver finds reasonable (interior point: 200).
    time_limit : float > 0 in seconds, or None, default=None
        Half a second more is allowed for the certificate. With a kernel it takes up to
        half of the limit itself, where it needs that. Without time for it the answer
        is the best point, of which nothing is proved, or an earlier one. Time in the
        callback does not count.
    start : Solution, (alpha, w, b) or None, default=None
        Where to start: the answer for another C, for instance. The answer is never
        worse. The interior point method starts at the central path beside (w, b), the
        active set at (w, b), coordinate descent at alpha, the augmented Lagrangian at
        both. With a kernel the gap is never larger: IRWLS starts at alpha.
    callback : callable or None, default=None
        Called with each `Step`; returning True stops the solve.
    checkpoint : str, path-like, Checkpoint or None, default=None
        A file that the run is saved in every 60 s (`Checkpoint` says how often), and
        when a limit ends it. If the file exists, for the same problem, the run goes on
        from it instead of ``start``, also after its process was killed; it is removed
        once the problem is solved.

    Returns
    -------
    Solution
        Also when it is not solved: ``status`` says how it ended and ``message`` what
        helps. Ctrl-C returns the best answer so far; a second Ctrl-C raises. Of nu
        machines "no_margin" says that the optimum is zero, as that of w = 0 is.

    Raises
    ------
    ValueError
        A parameter out of range, or a problem that the solver cannot solve.
    TypeError
        ``problem`` is no `Problem`, or a parameter of a wrong type.

    Examples
    --------
    >>> import numpy as np
    >>> from widemargin import Problem, solve
    >>> X = np.array([[0.0, 1.0], [1.0, 0.0], [2.0, 2.0], [3.0, 1.0]])
    >>> solution = solve(Problem(X, [-1, -1, 1, 1]), tol=1e-6)
    >>> solution.status, solution.certificate.relative_gap < 1e-6
    (<Status.SOLVED: 'solved'>, True)
    """
    if not isinstance(problem, Problem):
        Checker("solve").refuse("problem", "a Problem", problem)
    if isinstance(start, tuple) and len(start) == 3 and start[0] is None:
        Checker("solve").refuse("start", "a Solution or a tuple (alpha, w, b)", start)
    saved = Checkpoint.of(checkpoint, "solve")
    limits = Limits(tol, max_iter, time_limit, callback, checkpoint=saved)
    found = solve_within(problem, solver, limits, start=start)
    if not (shows_zero(found) and problem.ends_at_zero(found.certificate)):
        return found
    told = f"The optimum is zero. {Status.NO_MARGIN.advice}"
    return dataclasses.replace(found, status=Status.NO_MARGIN, message=told)


def solve_within(
    problem: Problem,
    solver: str | Solver,
    limits: Limits,
    *,
    start: Any = None,
    names: Sequence[str] | None = None,
    random_state: Any = None,
) -> Solution:
    """Choose a solver and run it, or several times where C is infinite."""
    if isinstance(problem, HardProblem):
        options = {"solver": solver, "random_state": random_state, "tol": limits.tol}
        pick = functools.partial(choose, **options)
        return solve_hard(problem, pick, limits, start=start, names=names)
    plan = choose(problem, solver, random_state, tol=limits.tol)
    plan = _without_given_up(problem, plan, start)
    return run(problem, plan, limits, start=start, names=names)
