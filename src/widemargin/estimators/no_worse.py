"""A model of a kernel that ended early proves no less than other answers at hand.

These are no function at all, and the answer that the solver went on from. Working sets
begin at zero and keep the best point; pair steps on all rows keep the last one, whose
objective may be hundreds of times that of zero where they are at their beginning, or
where rounding leads them astray.
"""

from collections.abc import Sequence

import numpy as np

from widemargin.estimators.batch_problems import form
from widemargin.estimators.training import Training
from widemargin.problems.constant import ConstantRows
from widemargin.problems.regression import are_rounded
from widemargin.solution import UNPROVED, Certificate, Solution, Status, reached
from widemargin.solutions import Solutions
from widemargin.solvers.driver.advice import CONSTANT, ROUGH, with_status, worth
from widemargin.solvers.driver.contract import Solver


def proves_more(one: Solution, other: Solution) -> bool:
    """Whether a model is proved to be nearer to the best objective than another one.

    By P - D, which is relative to nothing: of two poor models that with the larger
    objective may have the smaller relative gap. Of a model that there was no time to
    certify the steps say that it is better than a constant: to prove no more than one
    does is not enough.
    """
    known = np.isfinite(other.certificate.primal)
    is_useful = known or one.certificate.relative_gap < UNPROVED
    return bool(is_useful and one.certificate.gap < other.certificate.gap)


def or_zero(training: Training, solutions: Sequence[Solution]) -> Sequence[Solution]:
    """The solutions, each of them or zero, where that proves more."""
    recipe = training.recipe
    has_zero = recipe.form is not None and recipe.nu is None and not training.is_hard
    if not has_zero or isinstance(solutions, Solutions):  # these are all solved
        return solutions
    return [_or_zero(training, k, one) for k, one in enumerate(solutions)]


def _or_zero(training: Training, k: int, solution: Solution) -> Solution:
    """Solution k, or zero: with its status, as that is how it ended."""
    found = solution.certificate
    if solution.status is Status.SOLVED or not solution.alpha.any():
        return solution
    if not (solution.is_convex and np.isfinite(found.primal)):
        return solution  # of which no objective is known
    bounds, b = _zero(training, k, found.scale)
    if not found.is_beaten_by(bounds):
        return solution
    return solution.changed(
        alpha=np.zeros_like(solution.alpha),
        w=np.zeros_like(solution.w),
        b=b,
        certificate=bounds,
        message=_retold(solution, bounds, CONSTANT),
        at_bound=None if solution.at_bound is None else 0,
    )


def or_before(solution: Solution, before: Solution) -> Solution:
    """A solution after another one; with the answer of that where it proves more."""
    are_proofs = solution.is_convex and before.is_convex
    if solution.status is Status.SOLVED or not are_proofs:
        return solution
    if not proves_more(before, solution):
        return solution
    names = ("alpha", "w", "w_of_rows", "b", "rho", "at_bound")
    bounds, gap = before.certificate, before.certificate.relative_gap
    answer = {name: getattr(before, name) for name in names}
    status, almost = solution.status, min(Solver.almost * solution.tol, ROUGH)
    said = _retold(solution, bounds, worth(gap, bounds))
    if status is Status.STALLED and gap <= almost:
        status = Status.ALMOST_SOLVED
        said = with_status(said, solution.status, status)
    return solution.changed(**answer, status=status, certificate=bounds, message=said)


def _retold(solution: Solution, bounds: Certificate, told: str) -> str:
    """The message of a solution with other bounds, and what is told of its worth."""
    gap, tol = solution.certificate.relative_gap, solution.tol
    said = solution.message.replace(
        reached(gap, tol), reached(bounds.relative_gap, tol)
    )
    for good in (CONSTANT, worth(gap, solution.certificate)):
        said = said.replace(good, told)
    return said


def _zero(training: Training, k: int, scale: float) -> tuple[Certificate, float]:
    """The bounds that zero proves of problem k, with its best intercept."""
    y, C, q = training.signs(k), training.weights(k), training.recipe.q
    if q is not None:
        m = len(q) // 2
        y, C = np.repeat([1, -1], m), np.tile(np.broadcast_to(C, m), 2)
    rows = ConstantRows(y.astype(np.float64), np.broadcast_to(C, len(y)), q)
    rounded = q is not None and are_rounded(q)
    return rows.proved(*form(training), scale, rounded)
