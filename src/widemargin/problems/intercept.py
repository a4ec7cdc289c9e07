"""The free intercept that minimizes the losses for given scores x'w.

For the hinge the slope in b rises by C_i at b = y_i q_i - x_i'w, from minus the C of
the positive class: an exact weighted selection. Where an interval is best, as where no
alpha lies between 0 and C, its middle is taken, as LIBSVM does. For the squared hinge
the slope is piecewise linear, and Newton's method ends after finitely many steps.
"""

from collections.abc import Callable

import numpy as np

from widemargin.arrays import Vector
from widemargin.data.state import RowState
from widemargin.losses.pointwise import PointwiseLoss
from widemargin.numerics.roots import monotone_root
from widemargin.system.threads import ONE_BLAS_THREAD

# Slopes that are looked at, at most, and how much wider each step of a search is.
STEPS, WIDER = 12, 3.0


def best_intercept(state: RowState, near: float, loss: PointwiseLoss) -> float:
    """Minimizer, for row vectors C, labels and ``score`` = x'w; and q, where not 1.

    Of the squared hinge that nearest to ``near``.
    """
    if not loss.curvature:
        with ONE_BLAS_THREAD:  # once for all sweeps
            return _by_breakpoints(state, near)
    return curved_intercept(state, near, loss, 0.0)


def curved_intercept(
    state: RowState, near: float, loss: PointwiseLoss, ridge: float
) -> float:
    """The best intercept for the squared hinge, with ``ridge`` b^2 / 2 besides."""

    def slope(b: float) -> tuple[float, float, float]:
        """First and second derivative in b, and the scale of the first."""
        value, bend, scale = state.sweep(_slope, b, loss)
        return value + ridge * b, bend + ridge, scale + abs(ridge * b)

    return monotone_root(slope, near)


def better_intercept(
    state: RowState, b: float, loss: PointwiseLoss, ridge: float, enough: float
) -> float:
    """An intercept whose P is at most ``enough`` above the least, or after 12 steps.

    P has ``ridge`` b^2 / 2 beside the losses, of row vectors in memory as those of
    `best_intercept`. It is convex: the slope at an end of a bracket times its width
    bounds what there is to gain. Some 5 to 10 looks at the vectors, from b on.
    """
    y, C = state.labels, state.C
    q = state.q if hasattr(state, "q") else 1.0
    apart, pull = q - y * state.score, y * C

    def slope(x: float) -> float:
        """Slope of P at the intercept x."""
        weights = loss.slope(apart - y * x)
        return ridge * x - float((pull * weights).sum())

    here, weight = slope(b), float(C.sum())
    losses = loss.total(C, apart - y * b)
    # The step by which the slope would end, if slacks lay evenly, or without losses.
    step = abs(here) / weight * (losses / weight)
    if losses == 0.0 and ridge > 0.0:
        step = abs(here) / ridge
    found = b, here
    for _ in range(STEPS if step > 0.0 else 0):
        other = found[0] - np.copysign(step, here)
        there = slope(other)
        if there * here <= 0.0:
            return _between(slope, found, (other, there), enough)
        found, step = (other, there), WIDER * step
    return found[0]


def _between(
    slope: Callable[[float], float],
    first: tuple[float, float],
    second: tuple[float, float],
    enough: float,
) -> float:
    """Where the slope is small, between points (b, slope) of other signs.

    By regula falsi, which halves the weight of an end that stays (Illinois).
    """
    ends, weights = [first, second], [1.0, 1.0]
    for _ in range(STEPS):
        width = abs(ends[0][0] - ends[1][0])
        near = min(ends, key=lambda end: abs(end[1]))
        if abs(near[1]) * width <= enough:
            break
        pulls = [w * abs(end[1]) for w, end in zip(weights, ends, strict=True)]
        share = pulls[0] / (pulls[0] + pulls[1])
        x = ends[0][0] + share * (ends[1][0] - ends[0][0])
        there = x, slope(x)
        moved = int(there[1] * ends[0][1] <= 0.0)
        ends[moved] = there
        weights[moved], weights[1 - moved] = 1.0, 0.5 * weights[1 - moved]
    return near[0]


def _by_breakpoints(state: RowState, near: float) -> float:
    """The middle of the interval of minimizers in b; its end where it has only one."""
    positive, negative = state.sweep(_class_weights)
    # The slope is zero up to rounding between these two breakpoints: mostly one.
    slack = 1e-12 * (positive + negative)
    ends = positive - slack, positive + slack
    low, high = state.thresholds(_breakpoints, ends, near=near)
    if not (np.isfinite(low) and np.isfinite(high)):
        return high if np.isfinite(high) else low
    return low if low == high else 0.5 * low + 0.5 * high


def _class_weights(part: RowState) -> tuple[float, float]:
    positive = part.labels > 0
    return float(part.C[positive].sum()), float(part.C[~positive].sum())


def _breakpoints(part: RowState) -> tuple[Vector, Vector]:
    return part.labels * getattr(part, "q", 1.0) - part.score, part.C


def _slope(part: RowState, b: float, loss: PointwiseLoss) -> tuple[float, float, float]:
    """First and second derivative of sum C L in b, and the scale of the first."""
    t = getattr(part, "q", 1.0) - part.labels * (part.score + b)
    weighted = part.C * loss.slope(t)
    return (
        -float(part.labels @ weighted),
        loss.curvature * float(part.C @ (t > 0)),
        float(weighted.sum()),
    )


def scored_losses(part: RowState, b: float, loss: PointwiseLoss) -> float:
    """Sum C L of rows, from their ``score`` without the intercept b."""
    return loss.total(part.C, getattr(part, "q", 1.0) - part.labels * (part.score + b))
