"""The best constant: what no function proves, with the best intercept there is.

Answers that are proved to be nearer to the optimum are better models than no function.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from widemargin.arrays import Vector
from widemargin.losses.pointwise import PointwiseLoss
from widemargin.numerics.rounding import UNIT, Weights, gamma_n
from widemargin.problems.intercept import curved_intercept, scored_losses
from widemargin.solution import Certificate

# Share of weights that rounding may make of equal ones.
EQUAL = 1e-12


class ConstantRows:
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

    def proved(
        self, loss: PointwiseLoss, intercept: str, scale: float, are_rounded: bool
    ) -> tuple[Certificate, float]:
        """The bounds of the optimum that the best constant proves, and its b.

        ``are_rounded``: whether the margins q may be.
        """
        ridge, b = float(intercept == "penalized"), 0.0
        objective = self.objective(loss, ridge)
        if intercept != "none":
            b = min(self.best_intercept(loss, ridge), b, key=objective)
        primal, m = objective(b), len(self.labels)
        over = gamma_n(m + 8) * primal
        if are_rounded:  # by shares of their slacks, and of b
            weights = Weights(float(self.C.max()), float(self.C.sum()))
            over += loss.excess(weights, primal, UNIT * abs(b) * m**0.5)
        return Certificate(primal + over, 0.0, scale, over), b

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
