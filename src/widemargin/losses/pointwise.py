"""Losses of single rows: problems and solvers ask these objects, never for a name.

The primal has the sum of C L(t) over the slacks t = 1 - A v of the rows. L is convex:

    C L(t) = max over alpha of   alpha t - C L*(alpha / C),

so that the dual has sum alpha less the sum of C L*(alpha / C), over alpha >= 0:

                     L(t)          L'(t)             C L*(alpha / C)    alpha
    hinge            max(0, t)     1 where t > 0     0                  <= C
    squared hinge    max(0, t)^2   2 max(0, t)       alpha^2 / (4 C)    any

A loss sees the slack alone. That it is 1 - A v, whose dual is sum alpha, is written
where A is: with targets q in place of 1 it would be q - A v, and q'alpha.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from widemargin.arrays import Vector
from widemargin.numerics.rounding import Weights


class PointwiseLoss(ABC):
    """A convex loss L(t) of the slack t of a row, zero for t <= 0, and its dual.

    Attributes
    ----------
    name : str, as users write it
    is_bounded : bool, whether alpha <= C
    curvature : float
        The generalized second derivative of L where t > 0.
    intercept : str, what the intercept "auto" is
    dual_share : float
        What the dual has of sum alpha^2 / (4 C): 1, or 0 where it has no such term.
    """

    name: ClassVar[str]
    is_bounded: ClassVar[bool]
    curvature: ClassVar[float]
    dual_share: ClassVar[float]
    intercept: ClassVar[str]

    @abstractmethod
    def value(self, t: Vector) -> Vector:
        """L(t) of slacks t (m,)."""

    @abstractmethod
    def slope(self, t: Vector) -> Vector:
        """L'(t) of slacks t (m,); 0 at t = 0."""

    @abstractmethod
    def dual_term(self, alpha: Vector, C: Vector) -> float:
        """The sum of C L*(alpha / C), for feasible ``alpha`` (m,)."""

    @abstractmethod
    def ridge(self, C: Vector) -> Vector:
        """What the dual adds to the diagonal of A A', (m,): 1 / (2 C), or zeros."""

    @abstractmethod
    def upper(self, C: Vector) -> Vector:
        """The largest ``alpha``, (m,): C, or infinity."""

    @abstractmethod
    def clipped(self, alpha: Vector, C: Vector) -> Vector:
        """The nearest ``alpha`` within its bounds, (m,)."""

    @abstractmethod
    def share(self, alpha: Vector, C: Vector) -> Vector:
        """Dual variables as shares of their values at slack 1: alpha / (C L'(1))."""

    @abstractmethod
    def excess(self, weights: Weights, losses: float, spread: float) -> float:
        """How much errors of the slacks add to the ``losses`` sum C L(t).

        ``spread`` is the length of the vector of errors, at most.
        """

    def total(self, C: Vector, t: Vector) -> float:
        """Sum C L(t)."""
        return float(C @ self.value(t))


@dataclass(frozen=True)
class Hinge(PointwiseLoss):
    """L(t) = max(0, t): piecewise linear, with 0 <= alpha <= C."""

    name: ClassVar[str] = "hinge"
    is_bounded: ClassVar[bool] = True
    curvature: ClassVar[float] = 0.0
    dual_share: ClassVar[float] = 0.0
    intercept: ClassVar[str] = "free"

    def value(self, t: Vector) -> Vector:
        """max(0, t)."""
        return np.maximum(t, 0.0)

    def slope(self, t: Vector) -> Vector:
        """1 where t > 0, else 0."""
        return (t > 0.0).astype(np.float64)

    def dual_term(self, alpha: Vector, C: Vector) -> float:
        """0."""
        return 0.0

    def ridge(self, C: Vector) -> Vector:
        """Zeros."""
        return np.zeros(len(C))

    def upper(self, C: Vector) -> Vector:
        """C."""
        return C

    def clipped(self, alpha: Vector, C: Vector) -> Vector:
        """Between 0 and C."""
        return np.clip(alpha, 0.0, C)

    def share(self, alpha: Vector, C: Vector) -> Vector:
        """Alpha / C."""
        return alpha / C

    def excess(self, weights: Weights, losses: float, spread: float) -> float:
        """As of a sum of slacks."""
        return weights.excess(spread)


@dataclass(frozen=True)
class SquaredHinge(PointwiseLoss):
    """L(t) = max(0, t)^2, without 1/2: alpha >= 0 has no upper bound."""

    name: ClassVar[str] = "squared_hinge"
    is_bounded: ClassVar[bool] = False
    curvature: ClassVar[float] = 2.0
    dual_share: ClassVar[float] = 1.0
    intercept: ClassVar[str] = "penalized"

    def value(self, t: Vector) -> Vector:
        """max(0, t)^2."""
        positive = np.maximum(t, 0.0)
        return positive * positive

    def slope(self, t: Vector) -> Vector:
        """2 max(0, t)."""
        return 2.0 * np.maximum(t, 0.0)

    def dual_term(self, alpha: Vector, C: Vector) -> float:
        """Sum alpha^2 / (4 C), without BLAS, whose threads cost more than the sum."""
        return 0.25 * float((alpha * (alpha / C)).sum())

    def ridge(self, C: Vector) -> Vector:
        """1 / (2 C)."""
        return 0.5 / C

    def upper(self, C: Vector) -> Vector:
        """Infinity."""
        return np.full(len(C), np.inf)

    def clipped(self, alpha: Vector, C: Vector) -> Vector:
        """Above 0."""
        return np.clip(alpha, 0.0, None)

    def share(self, alpha: Vector, C: Vector) -> Vector:
        """Alpha / (2 C): the slack of which this is the slope."""
        return 0.5 * (alpha / C)

    def excess(self, weights: Weights, losses: float, spread: float) -> float:
        """As of a sum of squares."""
        return weights.excess_of_squares(losses, spread)


# What each name of a loss means.
LOSSES: dict[str, PointwiseLoss] = {
    loss.name: loss for loss in (Hinge(), SquaredHinge())
}
