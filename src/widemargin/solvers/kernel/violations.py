"""How far the conditions of a kernel problem are from holding, and where most."""

import functools
from dataclasses import dataclass
from typing import Any

import numpy as np

from widemargin import _core
from widemargin.arrays import Index, Mask, Vector


@dataclass(frozen=True)
class Violations:
    """The gradient F; -F where c can rise, else -inf; -F where it can fall, else inf.

    ``groups``: for each equality the rows whose sum stays, as masks.
    """

    F: Vector
    rise: Vector
    fall: Vector
    groups: tuple[Any, ...]

    @functools.cached_property
    def ranges(self) -> list[tuple[float, float]]:
        """For each equality the most of ``rise`` and the least of ``fall``."""
        return [
            (
                float(self.rise[own].max(initial=-np.inf)),
                float(self.fall[own].min(initial=np.inf)),
            )
            for own in self.groups or (slice(None),)
        ]

    @property
    def size(self) -> float:
        """How far the conditions are from holding: m - M, or the largest |F|."""
        if self.groups:
            return max(rise - fall for rise, fall in self.ranges)
        return float(max(self.rise.max(), -self.fall.min(), 0.0))

    @property
    def scale(self) -> float:
        """The largest |F|."""
        return float(np.abs(self.F).max())

    @property
    def intercept(self) -> float:
        """The b in the middle of what the conditions allow: (m + M) / 2."""
        return float(np.mean(self._middles))

    @property
    def _middles(self) -> list[float]:
        """The middle of each range; of one whose rows are all at a bound, its end."""
        ends = (np.array(ends)[np.isfinite(ends)] for ends in self.ranges)
        return [float(some.mean()) if some.size else 0.0 for some in ends]

    @property
    def levels(self) -> Any:
        """What -F of rows that can move ends at: 0, b, or an array of one for each."""
        if not self.groups:
            return 0.0
        if len(self.groups) == 1:
            return self._middles[0]
        return np.where(self.groups[0], *self._middles)

    @property
    def thresholds(self) -> tuple[float, float]:
        """What -F of a row that can rise is above, and of one that can fall below."""
        if not self.groups:
            return 0.0, 0.0
        ((rise, fall),) = self.ranges
        return fall, rise

    def largest(self, count: int, without: Index) -> Index:
        """Up to ``count`` of the largest violators, half from each side.

        Of two groups both give half of them, or a pair.
        """
        if len(self.groups) < 2:
            return self._largest(count, without)
        some = []
        for own in self.groups:
            rise = np.where(own, self.rise, -np.inf)
            fall = np.where(own, self.fall, np.inf)
            group = Violations(self.F, rise, fall, (slice(None),))
            some.append(group._largest(max(2, count // 2), without))
        return np.concatenate(some)

    def _largest(self, count: int, without: Index) -> Index:
        low, high = self.thresholds
        rise, fall = self.rise > low, self.fall < high
        rise[without] = fall[without] = False
        up = _first(self.rise, -1.0, rise, -(-count // 2))
        fall[up] = False
        down = _first(self.fall, 1.0, fall, count - len(up))
        if len(down) < count // 2:  # what one side lacks, the other one gives
            rise[up] = rise[down] = False
            more = _first(self.rise, -1.0, rise, count - len(up) - len(down))
            up = np.concatenate([up, more])
        return np.concatenate([up, down])


def violations(
    F: Vector,
    c: Vector,
    lower: Vector,
    upper: Vector,
    sums: int,
    current: Mask | None = None,
) -> Violations:
    """Violations of rows with a gradient F at c; none of rows that are not current."""
    rise, fall = np.empty_like(F), np.empty_like(F)
    _core.violations(F, c, lower, upper, rise, fall, current)
    plus = upper > 0
    groups = ((), (slice(None),), (plus, ~plus))[sums]
    return Violations(F, rise, fall, groups)


def _first(values: Vector, sign: float, chosen: Mask, count: int) -> Index:
    """Places of the ``count`` chosen values that are least times ``sign``."""
    found = np.flatnonzero(chosen)
    if len(found) > count:
        found = found[np.argpartition(sign * values[found], count - 1)[:count]]
    return found
