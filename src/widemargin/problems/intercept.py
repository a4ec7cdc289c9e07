"""The free intercept that minimizes the losses for given scores x'w.

For the hinge the slope in b rises by C_i at b = y_i q_i - x_i'w, from minus the C of
the positive class: an exact weighted selection. Where an interval is best, as where no
alpha lies between 0 and C, its middle is taken, as LIBSVM does. For the squared hinge
the slope is piecewise linear, and Newton's method ends after finitely many steps.
"""

import numpy as np
from numpy.typing import NDArray

from widemargin.data.state import RowState
from widemargin.losses.pointwise import PointwiseLoss
from widemargin.numerics.roots import monotone_root
from widemargin.system.threads import ONE_BLAS_THREAD

Vector = NDArray[np.float64]


def best_intercept(state: RowState, near: float, loss: PointwiseLoss) -> float:
    """Minimizer, for row vectors C, labels and ``score`` = x'w; and q, where not 1.

    Of the squared hinge that nearest to ``near``.
    """
    if not loss.curvature:
        with ONE_BLAS_THREAD:  # once for all sweeps
            return _by_breakpoints(state, near)
    return monotone_root(lambda b: state.sweep(_slope, b, loss), near)


def _by_breakpoints(state: RowState, near: float) -> float:
    """The middle of the interval of minimizers in b; its end where it has only one."""
    positive, negative = state.sweep(_class_weights)
    # The slope is zero up to rounding between these two breakpoints: mostly one.
    slack = 1e-12 * (positive + negative)
    low = state.threshold(_breakpoints, positive - slack, near=near)
    high = state.threshold(_breakpoints, positive + slack, near=low)
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
