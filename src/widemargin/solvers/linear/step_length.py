"""Step lengths of an interior point method."""

from dataclasses import dataclass

import numpy as np

from widemargin.data.blocks import Least
from widemargin.data.state import RowState


@dataclass(frozen=True)
class Ahead:
    """What a direction meets: the largest feasible step, and the products along it.

    The sum of complementary products at step t is c + t first + t^2 second. ``least``
    holds what blocks: a variable, its change, its partner, the change of that, and C.
    """

    least: Least
    first: float
    second: float

    def __add__(self, other: "Ahead") -> "Ahead":
        least = self.least + other.least
        return Ahead(least, self.first + other.first, self.second + other.second)

    @property
    def step(self) -> float:
        """Largest feasible step; more than 1 where nothing blocks."""
        return self.least.key

    def products(self, t: float, products: float) -> float:
        """Sum of complementary products at step t, from their sum at 0."""
        return products + t * self.first + t * t * self.second

    def length(self, products: float, pairs: float) -> float:
        """Mehrotra's rule: the blocking product ends at mu / 100; at least 0.99."""
        t = self.step
        if t > 1.0:
            return 1.0
        x, dx, partner, dpartner, C = self.least.value
        goal = 0.01 * self.products(t, products) / pairs * C
        aimed = (goal / (partner + t * dpartner) - x) / dx
        return float((1.0 - 1e-8) * min(t, max(aimed, 0.99 * t)))


def step_to_zero(ratio: float) -> float:
    """Largest feasible step from the largest -dx / x; inf where nothing falls."""
    return 1.0 / ratio if ratio > 0.0 else np.inf


def blocking(part: RowState, row: int, bounded: bool) -> tuple[float, ...]:
    """What blocks the step in a row: see `Ahead`."""
    pairs = [(part.s[row], part.ds[row], part.alpha[row], part.dalpha[row])]
    if bounded:
        pairs.append((part.u[row], -part.dalpha[row], part.xi[row], part.dxi[row]))
    pairs += [(partner, change, x, dx) for x, dx, partner, change in pairs]
    return (*max(pairs, key=lambda pair: -pair[1] / pair[0]), part.C[row])
