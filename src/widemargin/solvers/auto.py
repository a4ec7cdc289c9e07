"""Choosing a solver, and the one function that solves any problem."""

import dataclasses
import functools
import os
from collections.abc import Sequence
from typing import Any

from widemargin.data.doubled import sizes_of
from widemargin.parameters import Checker
from widemargin.problems.base import Problem
from widemargin.problems.hard import HardProblem
from widemargin.solution import Solution, Status
from widemargin.solvers.driver.advice import shows_zero
from widemargin.solvers.driver.checkpoint import Checkpoint
from widemargin.solvers.driver.contract import ChosenSolver, Solver
from widemargin.solvers.driver.driver import refusal, run
from widemargin.solvers.driver.hard import solve_hard
from widemargin.solvers.driver.limits import Callback, Limits
from widemargin.solvers.kernel import batch
from widemargin.solvers.kernel.budget import Budget
from widemargin.solvers.kernel.core_vector import CoreVector
from widemargin.solvers.kernel.frank_wolfe import FrankWolfe
from widemargin.solvers.kernel.irwls import IRWLS
from widemargin.solvers.linear import batch as linear_batch
from widemargin.solvers.linear import rules
from widemargin.solvers.linear.active_set import ActiveSet
from widemargin.solvers.linear.augmented_lagrangian import AugmentedLagrangian
from widemargin.solvers.linear.coordinate_descent import CoordinateDescent
from widemargin.solvers.linear.interior_point import InteriorPoint

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


def _for_kernel(problem: Problem) -> ChosenSolver:
    if problem.norm is not None:
        return ChosenSolver(Budget(), f"because it solves problems with {problem.norm}")
    reason = f"because it solves kernel problems ({sizes_of(problem.rows)[0]:,} rows)"
    return ChosenSolver(IRWLS(), reason)


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
    return rules.solver_for(rules.Facts.of(problem, tol))


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
