"""The p norm of the losses."""

from collections.abc import Callable
from dataclasses import dataclass
from numbers import Real

import numpy as np
from scipy import optimize

from widemargin.arrays import Vector
from widemargin.losses.norms import LossNorm
from widemargin.parameters import Checker

_EPS = float(np.finfo(float).eps)


@dataclass(frozen=True, kw_only=True)
class PNorm(LossNorm):  # numpydoc ignore=PR02
    """The p norm of the losses, N(t) = (sum c_i t_i^p)^(1/p).

    A: sum c_i (a_i / c_i)^q <= 1, 1 / p + 1 / q = 1.

    Parameters
    ----------
    p : float in [1.05, 20]. Below and above there are `L1Norm`, and the largest loss:
        `BudgetL1` with a budget of 1. The norm of p = 2 is `L2Norm`, which is solved
        faster.

    Raises
    ------
    ValueError if p is not in [1.05, 20].

    Notes
    -----
    Solved by projected gradient steps, for some hundreds of rows. A projection is a
    root search for each of two multipliers around Newton's method for each row:
    O(m) a step, some hundreds of them.

    References
    ----------
    [dekel2006]_, section 2.
    """

    p: float

    def __post_init__(self) -> None:
        number = isinstance(self.p, Real) and not isinstance(self.p, bool)
        if not (number and 1.05 <= self.p <= 20.0):
            Checker("PNorm").refuse("p", "a float in the range [1.05, 20]", self.p)

    def __str__(self) -> str:
        return f"the p norm, p = {self.p:g}"

    @property
    def _q(self) -> float:
        return float(self.p / (self.p - 1.0))

    def at_most(self, t: Vector, c: Vector) -> float:
        """N(max(0, t)) by its formula, rounded up."""
        x = np.maximum(t, 0.0)
        return _power_length(x, c, self.p) * (1.0 + 8.0 * (1.0 + self.p) * _EPS)

    def maximizer(self, t: Vector, c: Vector) -> Vector:
        """Gives c (t / N(t))^(p - 1)."""
        return np.asarray(c * (t / _power_length(t, c, self.p)) ** (self.p - 1.0))

    def gauge(self, a: Vector, c: Vector) -> float:
        """The least s with a in s A: inf for a_i < 0, or a_i > 0 where c_i = 0."""
        if np.any(a < 0) or np.any(a[c == 0] > 0):
            return np.inf
        return _power_length(a[c > 0] / c[c > 0], c[c > 0], self._q)

    def nearest(self, v: Vector, c: Vector, d: Vector, y: Vector | None) -> Vector:
        """Gives a with a / d + sigma (a / c)^(q - 1) = max(0, v / d - eta y)."""

        def shrunk(sigma: float) -> Vector:
            """The point for a multiplier of the norm."""
            if y is None:
                return self._shares(np.maximum(v / d, 0.0), c / d, sigma)
            low, high = (s * _largest((v / d)[y == s]) for s in (-1.0, 1.0))
            if not low < high:  # one class is zero, and so is the other
                return np.zeros(len(v))

            def at(eta: float) -> Vector:
                """The point for a multiplier of the equality."""
                return self._shares(np.maximum(v / d - eta * y, 0.0), c / d, sigma)

            def excess(eta: float) -> float:
                """By how much it misses the equality."""
                return float((y * c) @ at(eta))

            return at(_root(excess, low, high))

        def beyond(sigma: float) -> float:
            """How far the point lies inside of the ball."""
            return 1.0 / _power_length(shrunk(sigma), c, self._q) - 1.0

        if _power_length(x := shrunk(0.0), c, self._q) > 1.0:
            # At a solution sigma <= sum a v / d <= N(v / d).
            most = 2.0 * self.at_most(v / d, c)
            x = shrunk(_root(beyond, 0.0, most))
        return c * x

    def _shares(self, z: Vector, rate: Vector, sigma: float) -> Vector:
        """The x (k,) with rate x + sigma x^(q - 1) = z >= 0, by Newton's method.

        Of x or x^(q - 1) this is convex, and steps from above stay above.
        """
        if sigma == 0.0:
            return np.asarray(z / rate)
        straight, bent, k = rate, np.full(len(z), sigma), self._q - 1.0
        if inverse := k < 1.0:
            straight, bent, k = bent, straight, 1.0 / k
        u = np.minimum(z / straight, (z / bent) ** (1.0 / k))
        for _ in range(100):
            power = u ** (k - 1.0)
            lower = (z + (k - 1.0) * bent * power * u) / (straight + k * bent * power)
            if not np.any(lower < u * (1.0 - 4 * _EPS)):
                break
            u = np.minimum(u, lower)
        return np.asarray(u**k if inverse else u)


def _root(f: Callable[[float], float], low: float, high: float) -> float:
    """A root in a bracket to all digits, also one near zero."""
    return float(
        optimize.brentq(f, low, high, xtol=1e-300, rtol=4 * _EPS, maxiter=2000)
    )


def _largest(values: Vector) -> float:
    """The largest of some values; minus infinity for none."""
    return float(np.max(values, initial=-np.inf))


def _power_length(x: Vector, c: Vector, p: float) -> float:
    """(sum c x^p)^(1/p) for x >= 0, whatever the scale of x."""
    most = float(np.max(x, initial=0.0))
    if most == 0.0:
        return 0.0
    return most * float((c @ (x / most) ** p) ** (1.0 / p))
