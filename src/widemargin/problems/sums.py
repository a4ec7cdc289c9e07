"""Dual variables whose sum is given, and the level that belongs to it.

    minimize over r   -N r + sum_i C_i L(g_i + r)

has, as its dual, variables alpha with sum N: those of a one-class machine, or of each
class of a nu machine.
"""

import math

import numpy as np

from widemargin import _core
from widemargin.arrays import Vector
from widemargin.losses.pointwise import PointwiseLoss
from widemargin.numerics.roots import monotone_root
from widemargin.numerics.rounding import SLACK


def filled(C: Vector, total: float, loss: PointwiseLoss) -> Vector:
    """Some alpha with a sum that is given: few rows, most at their bound."""
    alpha = np.empty(len(C))
    _core.fill_sum(C, total, loss.is_bounded, alpha)
    return alpha


def room(C: Vector) -> float:
    """The sum of C, rounded down: what alpha may have as its sum, to the last digit."""
    try:
        total = math.fsum(C.tolist())
    except OverflowError:
        return math.inf
    is_above = math.isfinite(total) and missing(C, total) > 0.0
    return math.nextafter(total, 0.0) if is_above else total


def missing(alpha: Vector, total: float) -> float:
    """What a sum lacks, to its last digit."""
    return _core.missing(alpha, total)


def change(alpha: Vector, C: Vector, total: float, loss: PointwiseLoss) -> Vector:
    """How much of alpha has to change to have a sum; infinite where that is much.

    A sum that is too large is scaled down. One that is too small gets shares of what
    its support vectors have to their bounds, or of themselves without bounds; where all
    of these are at their bounds, of what all rows have; all of it, if it is rounding.
    """
    moved = np.empty(len(alpha))
    _core.change_sum(alpha, C, total, loss.is_bounded, moved)
    return moved


def cost(
    moved: Vector, alpha: Vector, C: Vector | None, slopes: Vector, lengths: Vector
) -> float:
    """How much of the dual objective a change of alpha costs at most.

    Parameters
    ----------
    moved, alpha : ndarray (m,), by how much each variable changes; what it is
    C : ndarray (m,), of the ridge 1 / (2 C); None where there is none
    slopes, lengths : ndarray (m,)
        At least ``|q - y f|`` and sqrt k(x, x) of the rows.
    """
    length = float((moved * lengths).sum())
    lost = float((moved * slopes).sum()) + 0.5 * length * length
    if C is not None:
        lost += float((moved * ((2.0 * alpha + moved) / (4.0 * C))).sum())
    return lost * SLACK


def level(g: Vector, C: Vector, total: float, loss: PointwiseLoss) -> float:
    """The best r: for the hinge a weighted quantile of -g."""
    if loss.curvature:
        return monotone_root(lambda r: _slope(r, g, C, total, loss), float(-g.mean()))
    order = np.argsort(-g, kind="stable")
    reached = np.cumsum(C[order]) >= total * (1.0 - 1e-12)
    place = int(reached.argmax()) if reached.any() else len(g) - 1
    return float(-g[order[place]])


def _slope(
    r: float, g: Vector, C: Vector, total: float, loss: PointwiseLoss
) -> tuple[float, float, float]:
    t = g + r
    rise = float((C * loss.slope(t)).sum())
    return rise - total, loss.curvature * float((C * (t > 0)).sum()), rise + total
