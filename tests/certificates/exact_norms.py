"""Values and dual sets of the norms of `widemargin.losses.norms`, in exact arithmetic.

By their definitions as the least or the largest of something, not by the library's
formulas: sums of the largest losses, and square roots rounded down to 2^-300.
"""

from fractions import Fraction

from tests.certificates.dyadic import root_below
from widemargin.losses.norms import BudgetL1, BudgetL2, Interpolation, L1Norm, L2Norm


def exact_norm(norm, t, c):
    """N(t) of Fractions t >= 0 and weights c, rounded down if it is irrational."""
    pairs = [
        (x, Fraction(float(w))) for x, w in zip(t, c, strict=True) if w > 0 and x > 0
    ]
    pairs.sort(reverse=True)
    return _VALUES[type(norm)](norm, pairs) if pairs else Fraction(0)


def _sum(_, pairs):
    return sum(x * w for x, w in pairs)


def _length(_, pairs):
    return root_below(sum(x * x * w for x, w in pairs))


def _sum_of_largest(norm, pairs):
    """The largest first, until the budget is used up."""
    left, total = Fraction(norm.budget), Fraction(0)
    for x, w in pairs:
        part = min(w, left)
        total, left = total + part * x, left - part
    return total


def _length_above(norm, pairs):
    """min over z >= 0 of |max(0, t - z)| + sqrt(B) z, whose slope in z rises.

    Where k losses are above z it is least at sqrt(B) mean + sqrt(var (W - B) / W) of
    their mean and sum of squared deviations from it, weights of sum W > B.
    """
    B = Fraction(norm.budget)
    if _slope_sign(pairs, Fraction(0), B) >= 0:
        return _length(norm, pairs)
    for k in range(1, len(pairs) + 1):
        low = pairs[k][0] if k < len(pairs) else Fraction(0)
        # Equal losses are above z together: at the largest one there is no slope yet.
        if low < pairs[k - 1][0] and _slope_sign(pairs, low, B) <= 0:
            some = pairs[:k]
            W = sum(w for _, w in some)
            mean = sum(x * w for x, w in some) / W
            spread = sum((x - mean) ** 2 * w for x, w in some)
            rest = max(spread * (W - B) / W, Fraction(0))
            return root_below(B) * mean + root_below(rest)
    raise AssertionError("the slope is at least 0 at the largest loss")


def _slope_sign(pairs, z, B):
    """Sign of sqrt(B) |max(0, t - z)| - sum c max(0, t - z)."""
    above = [(x - z, w) for x, w in pairs if x > z]
    square = B * sum(x * x * w for x, w in above)
    linear = sum(x * w for x, w in above)
    return (square > linear**2) - (square < linear**2)


def _between(norm, pairs):
    """Weights c in full for the largest, the rest as long as the ball allows."""
    square = Fraction(norm.t) ** 2
    best = Fraction(0)
    for k in range(len(pairs) + 1):
        room_left = square - sum((w for _, w in pairs[:k]), Fraction(0))
        if room_left < 0:
            break
        rest = sum((x * x * w for x, w in pairs[k:]), Fraction(0))
        # a_i = c_i t_i / z for the rest, where that is at most c_i.
        if k == len(pairs) or pairs[k][0] ** 2 * room_left <= rest:
            value = sum((x * w for x, w in pairs[:k]), Fraction(0))
            best = max(best, value + root_below(room_left * rest))
    return best


_VALUES = {
    L1Norm: _sum,
    L2Norm: _length,
    BudgetL1: _sum_of_largest,
    BudgetL2: _length_above,
    Interpolation: _between,
}


def room(norm, alpha, c, factor):
    """The largest t <= 1 with t alpha in factor A, rounded down; Fractions alpha."""
    pairs = [(a, Fraction(float(w))) for a, w in zip(alpha, c, strict=True) if a > 0]
    if not pairs:
        return Fraction(1)
    f, t = Fraction(factor), Fraction(1)
    if isinstance(norm, L1Norm | BudgetL1 | Interpolation):
        t = min(t, f / max(a / w for a, w in pairs))
    total = sum(a for a, _ in pairs)
    if isinstance(norm, BudgetL1):
        t = min(t, f * Fraction(norm.budget) / total)
    if isinstance(norm, BudgetL2):
        t = min(t, root_below(Fraction(norm.budget) * f * f / total**2))
    if isinstance(norm, L2Norm | BudgetL2 | Interpolation):
        ball = Fraction(norm.t) if isinstance(norm, Interpolation) else Fraction(1)
        length = sum(a * a / w for a, w in pairs)
        t = min(t, root_below(f * f * ball * ball / length))
    return t
