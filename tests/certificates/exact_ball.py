"""P and D of a ball as they are defined, in exact arithmetic.

The center is c = sum a_i phi(x_i) / sum a, and d_i = |phi(x_i) - c|^2. Hard: P = max d
and D = sum a_i d_i; soft: P = rho + sum C_i max(0, d_i - rho)^2 with the best rho, and
D = sigma V - sigma^2 S with the best sigma in [0, 1]: `widemargin.problems.ball`.
"""

from fractions import Fraction

import numpy as np

from tests.certificates.dyadic import Dyadic


def ball_bounds(K, a, C=None):
    """P and D of weights a (m,), for a Dyadic K (m, m); C (m,) or None: hard."""
    a = Dyadic.of(a)
    total, f = a.sum().fraction(), K @ a
    square = (a @ f).fraction() / total**2
    diagonal = Dyadic(np.diagonal(K.n), K.e).fractions()
    d = [
        k - 2 * x / total + square for k, x in zip(diagonal, f.fractions(), strict=True)
    ]
    a = [x / total for x in a.fractions()]
    return primal(d, C), dual(a, d, C)


def primal(d, C=None):
    """The least P of a center with these squared distances, Fractions."""
    if C is None:
        return max(d)
    C = [Fraction(float(c)) for c in C]
    rho = _best_square(d, C)
    return rho + sum(c * (x - rho) ** 2 for x, c in zip(d, C, strict=True) if x > rho)


def _best_square(d, C):
    """The rho >= 0 where 2 sum C_i max(0, d_i - rho) = 1, or 0 if that is less."""
    weight = moment = Fraction(0)
    best = Fraction(0)
    for x, c in sorted(zip(d, C, strict=True), reverse=True):
        weight, moment = weight + 2 * c, moment + 2 * c * x
        best = max(best, (moment - 1) / weight)
    return best


def dual(a, d, C=None):
    """D of weights of sum 1, whose center has these squared distances; at least 0."""
    V = sum((x * y for x, y in zip(a, d, strict=True)), Fraction(0))
    if C is None or V <= 0:
        return max(V, Fraction(0))
    S = sum(x * x / (4 * Fraction(float(c))) for x, c in zip(a, C, strict=True) if x)
    sigma = min(Fraction(1), V / (2 * S))
    return sigma * V - sigma * sigma * S


def distances(X, center):
    """Squared distances of rows from a point, of floats, as Fractions."""
    apart = Dyadic.of(X) - Dyadic.of(np.asarray(center)[np.newaxis])
    return (apart * apart).sum(axis=1).fractions()
