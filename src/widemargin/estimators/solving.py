"""All binary problems of a fit: solved side by side, or in turn, in one time limit."""

import dataclasses
import functools
from collections.abc import Sequence
from typing import Any

import numpy as np

from widemargin.data import shared
from widemargin.data.distributed import RowsLostError
from widemargin.data.rows import Rows
from widemargin.estimators.batch import (
    solve_batch,
    solve_linear_batch,
    solve_linear_pairs,
)
from widemargin.estimators.batch_problems import Found, numbered
from widemargin.estimators.engine_choice import refuse_batch
from widemargin.estimators.linear_choice import stored_well
from widemargin.estimators.no_worse import or_before, or_zero, proves_more
from widemargin.estimators.training import Training
from widemargin.problems.base import Problem
from widemargin.problems.kernel import KernelProblem
from widemargin.solution import Solution, Status, Trace
from widemargin.solutions import Solutions
from widemargin.solvers import auto
from widemargin.solvers.driver.checkpoint import Checkpoint
from widemargin.solvers.driver.driver import unsolved
from widemargin.solvers.kernel.batch import NAME as BATCH
from widemargin.solvers.kernel.batch import NEAR
from widemargin.system.threads import ONE_BLAS_THREAD

# The gap above which zero is the better start: float32 has led astray. Zero has a gap
# of 1; a start is worth it where it saves the first digit.
GOOD_START = 0.1
_GO_ON = Status.STALLED, Status.TIME_LIMIT


def solve_tasks(training: Training) -> Sequence[Solution]:
    """One solution a binary problem."""
    refuse_batch(training)
    if training.recipe.kernel is None:
        training = stored_well(training)
    saved = checkpoints(training)
    if training.recipe.kernel is not None:
        solutions = _solve_in_turn(training, saved, solve_batch(training))
        solutions = or_zero(training, solutions)
    elif training.tasks.are_pairs:
        solutions = _solve_in_turn(training, saved, solve_linear_pairs(training))
    elif found := solve_linear_batch(training):
        solutions = _solve_in_turn(training, saved, found)
    else:
        solutions = _solve_together(training, saved)
    remove_solved(saved, solutions)
    return solutions


def solve_task(
    training: Training, k: int, saved: Checkpoint | None, rows: Rows | None = None
) -> tuple[Problem, Solution]:
    """Binary problem k, from rows that may wait for others', and its solution.

    One that the batch solver was asked for and has not solved goes on as "auto".
    """
    asked = training.recipe.solver
    problem = training.problem(k, rows)
    at = functools.partial(training.recipe.at, training.rows)
    callback = training.callbacks.of(k, at)
    limits = dataclasses.replace(training.limits, callback=callback, checkpoint=saved)
    start = None if training.starts is None else training.starts[k]
    if isinstance(problem, KernelProblem) and _is_all_rounding(start):
        problem.columns.refine()  # float32 would lead away from the answer
    try:
        solution = auto.solve_within(
            problem,
            "auto" if asked == BATCH else asked,
            limits,
            start=start,
            names=training.names,
            random_state=training.seed,
        )
    except RowsLostError as lost:
        if training.reached is not None and lost.best is not None:
            training.reached[k] = None, *lost.best[:2]
        raise
    return problem, _after_batch(solution) if asked == BATCH else solution


def _is_all_rounding(start: Any) -> bool:
    """Whether rounding may be most of the gap that the batch solver has left."""
    if not isinstance(start, Solution) or start.solver != BATCH:
        return False
    bounds = start.certificate
    return start.status is Status.STALLED and bounds.gap <= NEAR * bounds.rounding


def _after_batch(solution: Solution) -> Solution:
    """A solution that says that the batch solver gave the problem up."""
    reason = f"after {BATCH} got no further ({solution.reason})"
    return dataclasses.replace(solution, reason=reason)


def tell(training: Training, k: int, solution: Solution) -> None:
    """Tell the callbacks how binary problem k ended."""
    gap = solution.certificate.relative_gap
    training.callbacks.finish([k], [gap], [solution.status])


def checkpoints(training: Training) -> list[Checkpoint | None]:
    """The checkpoint of each binary problem."""
    whole, n_problems = training.limits.checkpoint, len(training.tasks)
    if whole is None or n_problems == 1:
        return [whole] * n_problems
    return [whole.part(k) for k in range(n_problems)]


def remove_solved(
    saved: list[Checkpoint | None], solutions: Sequence[Solution]
) -> None:
    """Remove the checkpoints of a fit that is solved."""
    kept = list(filter(None, saved))
    if kept and all(solution.status is Status.SOLVED for solution in solutions):
        for checkpoint in kept:
            checkpoint.remove()


def _solve_together(
    training: Training, saved: list[Checkpoint | None]
) -> list[Solution]:
    """One solution a problem of all rows, each sweep of which all of them share."""
    rows, n_problems = training.rows, len(training.tasks)
    if n_problems > 1:  # dual variables of each, twice, and n x n sums
        order = min(rows.shape[1], shared.LARGEST_MATRIX)
        each = 8 * (2 * rows.shape[0] + 8 * order**2)
        rows.reserve(n_problems * each, f"{n_problems} classes", training.clock)
    solves = [
        functools.partial(_solve_or_skip, training, k, saved[k])
        for k in range(n_problems)
    ]
    few = rows.is_in_memory and rows.shape[0] * rows.shape[1] <= shared.FEW_ENTRIES
    if is_free(training) and (few or shared.is_alone(rows)):
        with ONE_BLAS_THREAD:  # not set and reset by each step
            return [solve(rows) for solve in solves]
    if is_free(training) and shared.are_apart(rows, n_problems):
        return shared.solve_apart(rows, solves, training.memory_limit)
    return shared.solve_together(rows, solves, training.memory_limit)


def is_free(training: Training) -> bool:
    """Whether no time is to be shared, and nobody follows the steps."""
    return training.limits.end is None and training.callbacks.is_silent


def _solve_in_turn(
    training: Training,
    saved: list[Checkpoint | None],
    before: Found,
) -> Sequence[Solution]:
    """One solution a problem, each with its share, by rows, of the time left.

    Problems that had too little time go on and share what the others have left. Those
    that have stalled ``before`` go on from there, if that is near enough.
    """
    if isinstance(before, Solutions):
        ended = before.columns
        if training.known is None and ended.are_solved:
            gaps = ended.gaps.tolist()
            training.callbacks.finish(range(len(gaps)), gaps, ended.statuses)
            return before
    sizes, clock = training.sizes, training.clock
    starts = list(training.known or training.starts or [None] * len(sizes))
    found = dict(enumerate(training.known or ()))
    before = numbered(before)
    for k, solution in before.items():
        if solution.status is not Status.STALLED:
            found[k] = solution
            tell(training, k, solution)
        if solution.status in _GO_ON and _is_start(training, solution):
            starts[k] = solution
    end, last = training.limits.end or np.inf, -1
    rows, is_linear = training.rows, training.recipe.kernel is None

    def waiting() -> list[int]:
        """Problems that have no answer, or one that a limit has ended."""
        late = [k for k in found if found[k].status is Status.TIME_LIMIT]
        late = [k for k in late if k != last]  # which had all that was left
        return [*late, *(k for k in range(len(sizes)) if k not in found)]

    def keep(k: int, new: Solution) -> None:
        """Keep the answer of problem k, if it is no worse than what there was."""
        if k in before:
            new = or_before(new, before[k])
        if k in before and training.recipe.solver != BATCH:  # said there already
            new = _after_batch(new)
        if k in found and _is_worse(new, found[k]):
            new = found[k]  # there was no time to take it up
        elif k in found and starts[k] is found[k]:
            new = _joined(found[k], new)
        found[k] = starts[k] = new

    while some := waiting():
        if is_linear and is_free(training) and shared.are_apart(rows, len(some)):
            whole = dataclasses.replace(training, starts=starts)
            solves = [
                functools.partial(_solve_or_skip, whole, k, saved[k]) for k in some
            ]
            apart = shared.solve_apart(rows, solves, training.memory_limit)
            for k, new in zip(some, apart, strict=True):
                keep(k, new)
            continue
        for i, k in enumerate(some):
            left = end - clock.seconds()
            if left <= 0.0 and k in found:
                if len(found) == len(sizes):
                    return [found[k] for k in range(len(sizes))]
                continue
            until = clock.seconds() + left * sizes[k] / sizes[some[i:]].sum()
            one = dataclasses.replace(training, starts=starts).limited(until=until)
            keep(k, _solve_or_skip(one, k, saved[k], rows))
            last = k
    return [found[k] for k in range(len(sizes))]


def _joined(first: Solution, then: Solution) -> Solution:
    """A solution that went on from another one, with the trace and time of both."""
    last = first.trace[-1]
    for step in then.trace:
        step.iteration += last.iteration + 1
        step.seconds += first.seconds
        step.sweeps += last.sweeps
    trace, seconds = Trace([*first.trace, *then.trace]), first.seconds + then.seconds
    return dataclasses.replace(then, trace=trace, seconds=seconds)


def _is_start(training: Training, solution: Solution) -> bool:
    """Whether to go on from an answer: in the nu form zero is none."""
    bounds = solution.certificate
    if bounds.relative_gap <= GOOD_START or auto.has_given_up(solution):
        return True
    return training.recipe.nu is not None and bool(np.isfinite(bounds.dual))


def _is_worse(one: Solution, other: Solution) -> bool:
    """Whether a solution that ran out of time proves less than another one."""
    return one.status is Status.TIME_LIMIT and proves_more(other, one)


def _solve_or_skip(
    training: Training, k: int, saved: Checkpoint | None, rows: Rows
) -> Solution:
    """The solution of binary problem k; one of several is left out if it is late."""
    begins = saved is None and (training.starts is None or training.starts[k] is None)
    if begins and len(training.tasks) > 1 and training.limits.is_late:
        solution = _unsolved(training, k)
    else:
        _, solution = solve_task(training, k, saved, rows)
    tell(training, k, solution)
    return solution


def _unsolved(training: Training, k: int) -> Solution:
    """The answer zero of binary problem k."""
    m, solver = int(training.sizes[k]), training.recipe.solver
    order = training.rows.shape[1] if training.recipe.kernel is None else m
    name = solver if isinstance(solver, str) else solver.name
    zero = unsolved(m, order, training.weight(k), training.limits, name)
    return zero.changed(w_of_rows=training.recipe.kernel is not None)
