"""The paper's SMO: pairs of dual variables, with the end-points (10) to (13).

The paper chooses the pair by Platt's heuristic: `platt`. Here are other rules: the most
violating pair, as usual for an SVM today; or its first variable with the partner of the
largest gain; or the pair of the largest gain, of all pairs.
"""

from typing import NamedTuple

import numpy as np

MOST_VIOLATING, PARTNER, LARGEST_GAIN = (
    "most violating pair",
    "partner of the largest gain",
    "largest gain of all pairs",
)
RULES = (MOST_VIOLATING, PARTNER, LARGEST_GAIN)
# -2 P is the squared distance of two kernel functions, zero for equal points.
LEAST_CURVATURE = 1e-12
# An end of an interval that is nearer is zero; gains below are rounding.
NO_ROOM, NO_GAIN = 1e-14, 1e-15


class Limits(NamedTuple):
    """The dual set: 0 <= alpha <= box, |alpha| <= ball, sum alpha <= cap; inf: none."""

    box: float
    ball: float
    cap: float

    @classmethod
    def of(cls, kind, budget, C):
        """Of the budget norm "L1" or "L2"."""
        if kind == "L1":
            return cls(C, np.inf, budget * C)
        return cls(np.inf, C, np.sqrt(budget) * C)


class Stalled(NamedTuple):
    """Where the steps ended.

    Attributes
    ----------
    alpha : ndarray (m,)
    steps : int
    stalled : bool, whether the chosen pair had no room or no gain
    gain : float, the largest gain of any pair there
    """

    alpha: np.ndarray
    steps: int
    stalled: bool
    gain: float


def interval(alpha, y, k, limits):
    """The ends of lambda in alpha_k + lambda y_k, alpha_l - lambda y_l.

    For k of an index array (n,) and all l: two arrays (n, m).
    """
    mine, label = alpha[k, np.newaxis], y[k, np.newaxis]
    up = label > 0
    # (10) and (11): alpha_k and alpha_l in [0, box].
    low = np.where(up, -mine, mine - limits.box)
    high = np.where(up, limits.box - mine, mine)
    low = np.maximum(low, np.where(y > 0, alpha - limits.box, -alpha))
    high = np.minimum(high, np.where(y > 0, alpha, limits.box - alpha))
    # (12): alpha_k + alpha_l changes by 2 lambda y_k where the labels differ.
    room = 0.5 * (limits.cap - alpha.sum())
    differ = y != label
    high = np.where(differ & up, np.minimum(high, room), high)
    low = np.where(differ & ~up, np.maximum(low, -room), low)
    if np.isfinite(limits.ball):  # (13)
        beta = label * mine - y * alpha
        gamma = min(0.5 * (alpha @ alpha - limits.ball**2), 0.0)
        root = np.sqrt(beta**2 - 4.0 * gamma)
        low = np.maximum(low, 0.5 * (-beta - root))
        high = np.minimum(high, 0.5 * (-beta + root))
    return np.minimum(low, 0.0), np.maximum(high, 0.0)


def moves(alpha, y, f, K, k, limits):
    """The best lambda of the pairs (k, l), and P lambda^2 + Q lambda of it, (n, m)."""
    low, high = interval(alpha, y, k, limits)
    diagonal = np.diag(K)
    P = K[k] - 0.5 * diagonal[k, np.newaxis] - 0.5 * diagonal
    P = np.minimum(P, -0.5 * LEAST_CURVATURE)
    error = y - f
    Q = error[k, np.newaxis] - error
    step = np.clip(-Q / (2.0 * P), low, high)
    step[np.abs(step) < NO_ROOM] = 0.0
    return step, step * (P * step + Q)


def _most_violating(alpha, y, f, K, limits):
    """(k, l, lambda, gain) of the usual rule, which knows the bounds of one variable.

    k has the largest y - f of those whose y alpha may rise, l the least of those whose
    y alpha may fall.
    """
    k = _first(alpha, y, f, limits)
    falls = np.where(y > 0, alpha > 0, alpha < limits.box)
    chosen = int(np.argmin(np.where(falls, y - f, np.inf)))
    (step,), (gain,) = moves(alpha, y, f, K, np.array([k]), limits)
    return k, chosen, step[chosen], gain[chosen]


def _first(alpha, y, f, limits):
    """The largest y - f of those whose y alpha may rise."""
    rises = np.where(y > 0, alpha < limits.box, alpha > 0)
    return int(np.argmax(np.where(rises, y - f, -np.inf)))


def _partner(alpha, y, f, K, limits):
    """(k, l, lambda, gain) with k as above and the best l, within the end-points."""
    k = _first(alpha, y, f, limits)
    (step,), (gain,) = moves(alpha, y, f, K, np.array([k]), limits)
    chosen = int(np.argmax(gain))
    return k, chosen, step[chosen], gain[chosen]


def _largest_gain(alpha, y, f, K, limits):
    """(k, l, lambda, gain) of the best of all pairs."""
    step, gain = moves(alpha, y, f, K, np.arange(len(y)), limits)
    k, chosen = np.unravel_index(np.argmax(gain), gain.shape)
    return k, chosen, step[k, chosen], gain[k, chosen]


CHOICES = {
    MOST_VIOLATING: _most_violating,
    PARTNER: _partner,
    LARGEST_GAIN: _largest_gain,
}


def solve(K, y, limits, rule=MOST_VIOLATING, max_steps=20_000):
    """Steps from alpha = 0 until the chosen pair gains nothing."""
    alpha, f, choose = np.zeros(len(y)), np.zeros(len(y)), CHOICES[rule]
    for steps in range(max_steps + 1):
        k, other, step, gain = choose(alpha, y, f, K, limits)
        stalled = not gain > NO_GAIN
        if stalled or steps == max_steps:
            break
        alpha[k] += step * y[k]
        alpha[other] -= step * y[other]
        round_to_bounds(alpha, (k, other), limits)
        f += step * (K[k] - K[other])
    return Stalled(alpha, steps, stalled, largest_gain(alpha, y, f, K, limits))


def largest_gain(alpha, y, f, K, limits):
    """The largest gain of any pair."""
    return _largest_gain(alpha, y, f, K, limits)[3]


def round_to_bounds(alpha, pair, limits):
    """Moves a pair to bounds that are as near as rounding, in place."""
    for i in pair:
        if alpha[i] < NO_ROOM:
            alpha[i] = 0.0
        elif limits.box - alpha[i] < NO_ROOM:
            alpha[i] = limits.box


def dual(alpha, y, K):
    """The objective of (4)."""
    c = y * alpha
    return float(alpha.sum() - 0.5 * c @ K @ c)
