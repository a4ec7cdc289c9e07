"""A model of a kernel that ended early proves no less than other answers at hand.

These are no function at all, and the answer that the solver went on from. Working sets
begin at zero and keep the best point; pair steps on all rows keep the last one, whose
objective may be hundreds of times that of zero where they are at their beginning, or
where rounding leads them astray.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from widemargin.estimators.batch_problems import form
from widemargin.estimators.training import Training
from widemargin.losses.pointwise import PointwiseLoss
from widemargin.numerics.rounding import gamma_n
from widemargin.problems.intercept import curved_intercept, scored_losses
from widemargin.solution import Certificate, Solution, Status, reached
from widemargin.solutions import Solutions
from widemargin.solvers.driver.advice import ROUGH, worth
from widemargin.solvers.driver.contract import Solver

Vector = NDArray[np.float64]

# Share of weights that rounding may make of equal ones.
EQUAL = 1e-12
TOLD = (
    "The model is a constant: what the solver had when it ended was worse than no "
    "function at all."
)


def proves_more(one: Solution, other: Solution) -> bool:
    """Whether a model is proved to be nearer to the best objective than another one.

    By P - D, which is relative to nothing: of two poor models that with the larger
    objective may have the smaller relative gap.
    """
    return bool(one.certificate.gap < other.certificate.gap)


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
    if found.gap <= bounds.gap:
        return solution
    return solution.changed(
        alpha=np.zeros_like(solution.alpha),
        w=np.zeros_like(solution.w),
        b=b,
        certificate=bounds,
        message=_retold(solution, bounds, TOLD),
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
    if status is Status.STALLED and gap <= almost:
        status = Status.ALMOST_SOLVED
    return solution.changed(
        **answer,
        status=status,
        certificate=bounds,
        message=_retold(solution, bounds, worth(gap, bounds)),
    )


def _retold(solution: Solution, bounds: Certificate, told: str) -> str:
    """The message of a solution with other bounds, and what is told of its worth."""
    gap, tol = solution.certificate.relative_gap, solution.tol
    said = solution.message.replace(
        reached(gap, tol), reached(bounds.relative_gap, tol)
    )
    return said.replace(worth(gap, solution.certificate), told)


def _zero(training: Training, k: int, scale: float) -> tuple[Certificate, float]:
    """The bounds that zero proves of problem k, with its best intercept."""
    y, C, q = training.signs(k), training.weights(k), training.recipe.q
    if q is not None:
        m = len(q) // 2
        y, C = np.repeat([1, -1], m), np.tile(np.broadcast_to(C, m), 2)
    rows = _ZeroRows(y.astype(np.float64), np.broadcast_to(C, len(y)), q)
    loss, intercept = form(training)
    ridge, b = float(intercept == "penalized"), 0.0
    if intercept != "none":
        b = min(rows.best_intercept(loss, ridge), b, key=rows.objective(loss, ridge))
    primal = rows.objective(loss, ridge)(b)
    over = gamma_n(len(y) + 8) * primal
    return Certificate(primal + over, 0.0, scale, over), b


class _ZeroRows:
    """The row vectors of a problem at w = 0: what intercepts are found by.

    Attributes
    ----------
    labels, C, q : ndarray (m,), as of `Problem`
    score : 0
    """

    score = 0.0

    def __init__(self, labels: Vector, C: Vector, q: Vector | None) -> None:
        self.labels, self.C = labels, C
        self.q = np.ones(len(labels)) if q is None else q

    def sweep(self, task: Any, *args: Any) -> Any:
        """What a task finds in all rows: these are vectors only."""
        return task(self, *args)

    def objective(self, loss: PointwiseLoss, ridge: float) -> Callable[[float], float]:
        """The objective of an intercept."""
        return lambda b: 0.5 * ridge * b * b + scored_losses(self, b, loss)  # type: ignore[arg-type]

    def best_intercept(self, loss: PointwiseLoss, ridge: float) -> float:
        """The intercept with the least objective, or nearly."""
        state: Any = self
        if loss.curvature:
            return curved_intercept(state, 0.0, loss, ridge)
        # The slope rises by C at each y q, from minus the C of all positive rows, and
        # evenly by the ridge.
        ends = self.labels * self.q
        order = np.argsort(ends)
        ends, risen = ends[order], self.C[order].cumsum()
        level = float(self.C[self.labels > 0.0].sum())
        if not ridge:  # the middle of where it is zero
            few = level * np.array([1.0 - EQUAL, 1.0 + EQUAL])
            between = np.searchsorted(risen, few)
            return float(ends[np.minimum(between, len(ends) - 1)].mean())
        k = int(np.searchsorted(ridge * ends + risen, level))
        below, before = (-np.inf, 0.0) if k == 0 else (ends[k - 1], risen[k - 1])
        above = ends[k] if k < len(ends) else np.inf
        return float(np.clip((level - before) / ridge, below, above))
