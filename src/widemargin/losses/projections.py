"""Projections on boxes, balls and caps, by Newton's method for their multipliers."""

from collections.abc import Callable

import numpy as np
from scipy import optimize

from widemargin.arrays import Vector

_EPS = float(np.finfo(float).eps)


def length(a: Vector, c: Vector) -> float:
    """sqrt(sum a^2 / c), whatever the scale of a."""
    most = float(np.max(np.abs(a), initial=0.0))
    if most == 0.0:
        return 0.0
    return most * float(np.sqrt(np.sum((a / most) ** 2 / c)))


def multiplier(
    shrunk: Callable[[float], Vector],
    v: Vector,
    c: Vector,
    d: Vector,
    ball: float,
) -> float:
    """The least sigma >= 0 for which shrunk(sigma) lies in the ball."""

    def excess(sigma: float) -> float:
        """Nearly linear in sigma."""
        return ball / length(shrunk(sigma), c) - 1.0

    if ball == np.inf or length(shrunk(0.0), c) <= ball:
        return 0.0
    # At a solution sigma sum x^2 / c <= sum x v / d, hence this bound of sigma.
    most = 2.0 * length(np.maximum(v, 0.0) / d, 1.0 / c) / ball
    step = max(1e-17 * float(np.min(c / d)), 1e-300)
    found = optimize.brentq(excess, 0.0, most, xtol=step, rtol=4 * _EPS, maxiter=500)
    return float(found)


def levelled(
    v: Vector,
    d: Vector,
    k: Vector,
    top: Vector,
    *,
    y: Vector | None,
    cap: float | None = None,
) -> Vector:
    """clip(k (v - (tau + eta y) d), 0, top), with y'x = 0 and a sum of cap at most.

    Where the cap binds, each class has half of it, and a level of its own.
    """
    z = v.copy() if y is None else _shifted(v, d, k, top, s=y, target=0.0)
    x = np.clip(k * z, 0.0, top)
    if cap is None or x.sum() <= cap:
        return x
    if y is None:
        groups, share = [np.full(len(v), True)], cap
    else:
        groups, share = [y > 0, y < 0], 0.5 * cap
    for rows in groups:
        ones = np.ones(rows.sum())
        z[rows] = _shifted(v[rows], d[rows], k[rows], top[rows], s=ones, target=share)
    return np.clip(k * z, 0.0, top)


def _shifted(
    z: Vector, d: Vector, k: Vector, top: Vector, *, s: Vector, target: float
) -> Vector:
    """Gives z - e s d, whose e makes s'clip(k (z - e s d), 0, top) the target.

    Newton's method in a bracket; the later rounds find what is left of e beside a
    large first one. The target is 0, or s = 1 and the target not above the sum of top.
    """
    rate = s * d
    for _ in range(3):
        low = float(np.min(z / rate - np.minimum(top, target) / (k * d)))
        high = float(np.max(z / rate))
        low, high = low - (high - low), high + (high - low)
        e = min(max(0.0, low), high)
        for _ in range(200):
            x = k * (z - e * rate)
            free = (x > 0) & (x < top)
            x = np.clip(x, 0.0, top)
            excess, slope = float(s @ x) - target, float((k * d)[free].sum())
            if abs(excess) <= _EPS * float(x.sum()):
                break
            low, high = (e, high) if excess > 0 else (low, e)
            step = e + excess / slope if slope > 0 else np.nan
            if not low < step < high:
                step = 0.5 * (low + high)
            if step in (low, high):
                break
            e = step
        z = z - e * rate
    return z
