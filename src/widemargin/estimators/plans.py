"""Plans: plain functions from the data of a fit to all that it finds."""

import dataclasses
import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from widemargin.estimators.column_weights import weighed
from widemargin.estimators.low_rank import (
    Approximation,
    Mapping,
    approximate,
    rank_for,
    read,
    refuse_stored,
)
from widemargin.estimators.solving import (
    checkpoints,
    remove_solved,
    solve_task,
    solve_tasks,
    tell,
)
from widemargin.estimators.training import MOMENT, StartPoint, Training
from widemargin.kernels.matrix import NoRoomError
from widemargin.problems.base import Problem
from widemargin.reduction.reduce import Reduced
from widemargin.solution import Certificate, Solution, Status
from widemargin.solutions import Columns, columns_of

# With ``polish``: the share of the time limit that the solution of low rank gets.
POLISHED = 0.5
# With rank="auto": the share of the time limit after which an exact solver gives way
# where the mean gap, by rows, is larger than `NEAR`. After two thirds of the time that
# they took, exact solvers had gaps of about 0.1 on a9a, 0.2 on ijcnn1, 0.3 and 0.5 on
# pairs of mnist, 0.3 to 0.6 and 0.1 on usps and letter against the rest; after half of
# it 0.05 to 0.99 (the trace of `SVC`, C and gamma as in benchmarks/lowrank/cost.py).
EXACT_SHARE, NEAR = 2 / 3, 0.5
# The least rank that an exact solver gives way for: below that a map has fewer
# dimensions than most data have columns.
LEAST = 10
# The share of the time of a binary problem that its machine gets where it is cut
# afterwards: cutting goes over its support vectors once more, as a fit does.
MACHINE = 0.5
# Statuses of a run that something outside ended.
_ENDS = {
    Status.TIME_LIMIT,
    Status.INTERRUPTED,
    Status.STOPPED_BY_CALLBACK,
    Status.OUT_OF_MEMORY,
}
_CAUSES = {
    Status.INTERRUPTED: "Ctrl-C",
    Status.TIME_LIMIT: "The time limit",
    Status.STALLED: "Lack of progress",
}


@dataclass(frozen=True)
class Fit:
    """What a plan finds.

    Attributes
    ----------
    training : Training, whose rows and binary problems the solutions are about
    solutions : sequence of Solution, one a binary problem
    certificates : list of Certificate, bounds of the exact problems; empty if not asked
    map : Approximation or None, whose features the solutions are over
    reduced : sequence of Solution or None, what predicts in the place of the solutions
    n_support : ndarray (c,) or None, support vectors by class, of rows on a cluster
    weights : ndarray (t, n) or None, of the columns, of solutions with a linear kernel
    """

    training: Training
    solutions: Sequence[Solution]
    certificates: list[Certificate]
    map: Approximation | None = None
    reduced: Sequence[Solution] | None = None
    n_support: Any = None
    weights: Any = None

    @property
    def decisions(self) -> Sequence[Solution]:
        """The solutions as predictions use them."""
        return self.solutions if self.reduced is None else self.reduced

    @functools.cached_property
    def columns(self) -> Columns:
        """The numbers of the solutions."""
        return columns_of(self.solutions)

    @property
    def is_late(self) -> bool:
        """Whether the time limit ended some solutions, and the user none."""
        return set(self.columns.statuses) & _ENDS == {Status.TIME_LIMIT}

    @property
    def is_near(self) -> bool:
        """Whether most of the work is done."""
        sizes = [len(s.alpha) for s in self.solutions]
        return bool(np.average(self.columns.gaps, weights=sizes) <= NEAR)

    @property
    def primal(self) -> float:
        """Sum of the objectives, each with the kernel of its model."""
        return float(self.columns.proofs[:, 0].sum())

    def because(self, why: str) -> "Fit":
        """The same answer, whose solutions say why."""
        solutions = [
            dataclasses.replace(s, reason=f"{s.reason}; {why}") for s in self.solutions
        ]
        return dataclasses.replace(self, solutions=solutions)


Plan = Callable[[Training], Fit]


def exact(training: Training, certified: bool = False) -> Fit:
    """All problems as they are."""
    solutions, W = weighed(training, solve_tasks(training))
    certificates = [proved(one) for one in (solutions if certified else ())]
    return Fit(training, solutions, certificates, weights=W)


def low_rank(training: Training, mapping: Mapping, certified: bool) -> Fit:
    """Linear problems in features, and what they say about the exact problems."""
    low = approximate(training, mapping)
    mapped = low.mapped(training, mapping)
    if low.is_empty:  # the time is over
        mapped = mapped.limited(until=MOMENT)
    found, W = weighed(mapped, solve_tasks(mapped))
    if W is not None:  # sums of features
        found = [s.changed(w=w, w_of_rows=False) for s, w in zip(found, W, strict=True)]
    solutions = [advised(solution, low.map.method) for solution in found]
    before = dataclasses.replace(mapped, rows=training.rows)
    certificates = [
        low.bounds(before, k, solution)
        for k, solution in enumerate(solutions if certified else ())
    ]
    fit = Fit(training, solutions, certificates, low)
    lowered = low.lowered_from(mapping)
    return fit.because(lowered) if lowered else fit


def polished(training: Training, mapping: Mapping, certified: bool) -> Fit:
    """The exact problems, from solutions of low rank on."""
    refuse_stored(training.rows)
    part, end = training.limited(checkpoint=None), training.limits.time_limit
    if end is not None:
        part = part.limited(until=POLISHED * end)
    starts = lifted(training, low_rank(part, mapping, False).solutions)
    return exact(dataclasses.replace(training, starts=starts), certified)


def in_time(training: Training, mapping: Mapping, certified: bool) -> Fit:
    """The exact solutions; if these take too long, the better of exact and low rank."""
    found, why, until = None, "memory_limit has no room for the rows", None
    limit, end = training.memory_limit, training.limits.time_limit
    training = dataclasses.replace(training, rows=read(training.rows, limit))
    if end and rank_for(training, limit, (1.0 - EXACT_SHARE) * end) >= LEAST:
        until = EXACT_SHARE * end
    if training.rows.is_in_memory:
        try:
            found = exact(training.limited(until=until), certified)
        except NoRoomError:
            why = "memory_limit has no room for an exact solver"
    if found is not None:
        if not found.is_late:
            return found
        if until is None:
            return found.because(f"time_limit allows no rank of {LEAST} or more")
        if found.is_near:
            return exact(
                dataclasses.replace(training, known=found.solutions), certified
            )
    rank = rank_for(training, limit, end and end - training.clock.seconds())
    mapping = dataclasses.replace(mapping, rank=rank)
    low = low_rank(training.limited(checkpoint=None), mapping, certified)
    if found is None:
        return low.because(f"rank {rank:,} because {why}")
    return better(found, low, rank)


def reduced(
    training: Training,
    cut: Callable[[Problem, Solution, float | None], list[Reduced]],
    n_models: int,
) -> list[Fit]:
    """Machines in turn, each cut to models of few support vectors at once.

    ``cut(problem, solution, seconds)`` is called with the seconds that are left. If
    Ctrl-C ends it there are fewer models, and the last one stands for the others.
    """
    saved, limits, solutions = checkpoints(training), training.limits, []
    cuts: list[list[Solution]] = []
    for k in range(len(training.tasks)):
        part, end = training, None
        if limits.time_limit is not None:
            now = training.clock.seconds()
            left = (limits.time_limit - now) / (len(training.tasks) - k)
            part = training.limited(until=max(now + MACHINE * left, MOMENT))
            end = now + left
        problem, solution = solve_task(part, k, saved[k])
        seconds = end and max(end - training.clock.seconds(), MOMENT)
        models = cut(problem, solution, seconds)
        cuts.append([_of_few(problem, solution, model) for model in models])
        solutions.append(_ended(solution, models[-1].status))
        tell(training, k, solutions[-1])
    remove_solved(saved, solutions)
    chosen = [[few[min(j, len(few) - 1)] for few in cuts] for j in range(n_models)]
    found = (weighed(training, few) for few in chosen)
    return [Fit(training, solutions, [], reduced=few, weights=W) for few, W in found]


def _of_few(problem: Problem, solution: Solution, model: Reduced) -> Solution:
    """A solution with a model of few support vectors in its place."""
    w = np.zeros(len(problem.y))
    w[model.rows] = model.coefficients
    primal = model.certificate.primal
    bounds = dataclasses.replace(solution.certificate, primal=primal)
    alpha = problem.y * w
    return dataclasses.replace(
        solution, alpha=alpha, w=w, b=model.b, certificate=bounds
    )


def _ended(solution: Solution, ended: Status) -> Solution:
    """A solution that says how its cut ended: no press of Ctrl-C is lost."""
    told = solution.status is Status.SOLVED or ended is Status.INTERRUPTED
    if ended not in _CAUSES or not told:
        return solution
    cause = _CAUSES[ended]
    message = f"{cause} ended the refit of few support vectors. {ended.advice}"
    return dataclasses.replace(solution, status=ended, message=message)


def better(exact: Fit, low: Fit, rank: int) -> Fit:
    """The plan's answer with the lower objective, and the better lower bounds."""
    best, other = (low, exact) if low.primal < exact.primal else (exact, low)
    bounds = [
        dataclasses.replace(one, dual=max(one.dual, two.dual))
        for one, two in zip(best.certificates, other.certificates, strict=False)
    ]
    why = (
        f"the exact solver had not ended after {EXACT_SHARE:.0%} of "
        f"time_limit, and of its objective, {exact.primal:.6g}, and that of rank "
        f"{rank:,}, {low.primal:.6g}, this is the lower one"
    )
    return dataclasses.replace(best, certificates=bounds).because(why)


def lifted(training: Training, solutions: Sequence[Solution]) -> list[StartPoint]:
    """Points of the exact problems to start from: alpha, Y alpha and b."""
    return [
        (s.alpha, training.signs(k) * s.alpha, s.b) for k, s in enumerate(solutions)
    ]


def proved(solution: Solution) -> Certificate:
    """Its certificate; it proves nothing where the kernel was seen to be indefinite."""
    bounds = solution.certificate
    if not solution.is_convex:
        bounds = dataclasses.replace(bounds, dual=-np.inf)
    return bounds


def advised(solution: Solution, method: str) -> Solution:
    """A solution of low rank, whose message says what else helps with a time limit."""
    if solution.status is not Status.TIME_LIMIT or method == "polynomial":
        return solution
    message = f"{solution.message} Or take a lower rank."
    return dataclasses.replace(solution, message=message)
