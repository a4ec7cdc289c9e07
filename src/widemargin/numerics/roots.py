"""Roots of functions of one variable."""

from collections.abc import Callable

import numpy as np


def monotone_root(
    f: Callable[[float], tuple[float, float, float]], x: float, tol: float = 1e-15
) -> float:
    """Root of an increasing function by Newton's method kept in a bracket.

    f(x) returns the value, a slope >= 0 and the scale of the value: |value| <= tol
    scale ends the search, as does a bracket that rounding cannot cut. A piecewise
    linear function takes one step a piece; without a root, the point where no step
    helps.
    """
    low, high = -np.inf, np.inf
    for _ in range(200):
        value, slope, scale = f(x)
        if abs(value) <= tol * scale:
            break
        low, high = (low, x) if value > 0 else (x, high)
        step = x - value / slope if slope > 0 else np.nan
        if not low < step < high:
            far = x - np.copysign(1.0 + 2.0 * abs(x), value)
            step = 0.5 * (low + high) if np.isfinite(high - low) else far
        if step in (low, high) or not np.isfinite(step):
            break
        x = step
    return x
