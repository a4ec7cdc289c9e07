"""Section 3 of "Fast Training of Support Vector Classifiers", as published.

With u = y e of a row and a tolerance eps, the stopping conditions are

    u < eps where beta = 0,   u > -eps where beta = C,   |u| < eps between    (9)-(11)

and numbers in brackets below are the steps of the sample selection strategy.
"""

import numpy as np

from widemargin.arrays import Index, Mask, Vector
from widemargin.solvers.kernel.violations import Violations

# The paper's eps. We stop by the gap, which may need a smaller eps: then it is the
# violation divided by this number.
EPSILON, APART = 1e-3, 4.0


class RandomSelection:
    """Chooses rows of a working set at random, of rows that violate or are free.

    Parameters
    ----------
    signs : ndarray (m,), labels -1 and 1
    seed : int
    """

    def __init__(self, signs: Vector, seed: int) -> None:
        self._signs, self._random = signs, np.random.default_rng(seed)

    def __call__(
        self, found: Violations, free: Mask, count: int, without: Index
    ) -> Index:
        """Choose ``count`` rows, none of them in ``without``."""
        u, broken = self._conditions(found, free)
        there = np.ones(len(u), bool)
        there[without] = False
        candidates = there & (free | np.logical_or.reduce(broken))  # (1): S_c
        if np.count_nonzero(candidates) < count:  # (2)
            return self._filled(candidates, there, u, count)
        chosen = self._seeds(broken, candidates)[:count]  # (3)
        candidates[chosen] = False
        some = np.flatnonzero(candidates)
        rest = self._random.choice(some, count - len(chosen), replace=False)  # (4)
        return np.concatenate([chosen, rest])

    def _conditions(self, found: Violations, free: Mask) -> tuple[Vector, list[Mask]]:
        """Errors u, and which rows violate (9), (10) and (11).

        The paper's b comes from the last small problem; ours lies in the middle of what
        the rows ask for, so that rows of both sides violate where any do.
        """
        b = found.intercept if found.groups else 0.0
        u = -self._signs * (found.F + b)
        eps = min(EPSILON, found.size / APART)
        below = np.isfinite(np.where(self._signs > 0, found.rise, found.fall))
        zero, full = below & ~free, ~below  # beta = 0, beta = C
        return u, [
            zero & (u >= eps),
            full & (u <= -eps),
            free & (np.abs(u) >= eps),
        ]

    def _seeds(self, broken: list[Mask], candidates: Mask) -> Index:
        """For each condition and class a row that violates it."""
        seeds = []
        for rows in broken:
            for own in (self._signs > 0, self._signs < 0):
                some = np.flatnonzero(rows & own & candidates)
                if len(some):
                    seeds.append(self._random.choice(some))
        return np.array(self._random.permutation(seeds), np.intp)

    def _filled(self, candidates: Mask, there: Mask, u: Vector, count: int) -> Index:
        """(5): all candidates, and the rows of least |e| that satisfy all."""
        some = np.flatnonzero(candidates)
        others = np.flatnonzero(there & ~candidates)
        order = np.argsort(np.abs(u[others]), kind="stable")
        return np.concatenate([some, others[order[: count - len(some)]]])
