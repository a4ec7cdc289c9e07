"""The small dense problem of a working set, and pair steps that solve it."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from widemargin import _core
from widemargin.arrays import Vector
from widemargin.solvers.kernel.violations import Violations, violations
from widemargin.system import deadline

# Pair steps between two looks at Ctrl-C: 2 us each for 4,096 rows.
SLICE = 20_000
# Pair steps of one small problem, for each of its rows. The set a4a takes 14 at
# C = 1e6; low-rank kernels with a large C would take more than 100. 3,500 rows in 6
# columns with C = 10,000 take 0.6 s, not 3.2 with 50; two moons 0.65, not 0.70, but 1.0
# with 200 (benchmarks/kernel/large_c.py).
MOST_STEPS = 100
# The same of steps on to what it aims at. (mnist takes 3.3 in its last set.)
FURTHER = 4


class Small(NamedTuple):
    """A small problem: the rows of the working set, near their current c.

    Attributes
    ----------
    K : ndarray (q, width), kernel values; columns from q on are zero
        Of int16: rounded, in steps of 1 / `_core.BLOCK_STEPS`.
    c, lower, upper : ndarray (q,)
    F : ndarray (q,), the gradient
    ridge : ndarray (q,)
    shift : float, added to all of K
    sums : int, equalities: 0; 1: sum c stays; 2: so do the sums of both classes
    kink : ndarray (q,) or None
        Numbers of 0 or more: the objective has the sum of ``kink |c|`` too, which F is
        without. ``lower <= 0 <= upper`` then, and ``sums`` is at most 1.
    aim : float, a violation that is worth `FURTHER` steps a row more; inf: none is
    """

    K: NDArray[Any]
    c: Vector
    lower: Vector
    upper: Vector
    F: Vector
    ridge: Vector
    shift: float
    sums: int
    kink: Vector | None = None
    aim: float = np.inf

    @property
    def is_rounded(self) -> bool:
        """Whether kernel values are rounded to 16 bits."""
        return bool(self.K.dtype == np.int16)

    @property
    def violations(self) -> Violations:
        """How far the conditions are from holding."""
        found = violations(self.F, self.c, self.lower, self.upper, self.sums)
        if self.kink is not None:
            found.rise[:] -= np.where(self.c < 0.0, -self.kink, self.kink)
            found.fall[:] += np.where(self.c > 0.0, -self.kink, self.kink)
        return found

    @property
    def on_a_side(self) -> "Small":
        """The same problem on the side of zero where each c is, or tends to."""
        if self.kink is None:
            return self
        found = self.violations
        b = found.levels if np.isfinite(found.size) else 0.0
        above = np.where(self.c == 0.0, self.F + b < 0.0, self.c > 0.0)
        return self._replace(
            lower=np.where(above, 0.0, self.lower),
            upper=np.where(above, self.upper, 0.0),
            F=self.F + np.where(above, self.kink, -self.kink),
            kink=None,
        )

    def at(self, c: Vector) -> "Small":
        """The same problem at another c, with kernel values in float64."""
        K, change = self.K.astype(np.float64, copy=False), c - self.c
        moved = K[:, : len(c)] @ change + self.shift * change.sum()
        return self._replace(K=K, c=c, F=self.F + moved + self.ridge * change)


class Solved(NamedTuple):
    """New c of a small problem, steps that it took, and how many curved down.

    ``reached`` says whether no violation is above what was asked for; ``waits``,
    whether that is left to what comes next.
    """

    c: Vector
    steps: int
    negative: int
    reached: bool = True
    waits: bool = False


Inner = Callable[[Small, float], Solved]


def solve_by_pairs(small: Small, stop: float, visits: float = np.inf) -> Solved:
    """Second-order pair steps ([fan2005]_) until no violation is above ``stop``.

    Or until variables were visited so often: a step visits all of them. What the
    problem aims at is tried after ``stop``, with few steps. They go further than to
    the least of the objective ([mangasarian1999]_).
    """
    q, width = small.K.shape
    dtype, step = small.K.dtype, 1.0
    if small.is_rounded:
        dtype, step = np.dtype(np.float32), 1.0 / _core.BLOCK_STEPS

    def wide(vector: Any) -> NDArray[Any]:
        out = np.zeros(width, dtype)
        out[:q] = vector
        return out

    c, F, ridge = small.c.copy(), wide(_near_zero(small)), wide(small.ridge)
    kink = None if small.kink is None else wide(small.kink)
    diagonal = wide(step * np.diagonal(small.K) + small.ridge + small.shift)
    room = np.empty((4 if small.sums > 1 else 2, width), dtype)
    steps, negative, left = 0, 0, np.inf
    most = MOST_STEPS * q * (1 if kink is None else 2)  # it stands for two rows
    most = int(min(most, visits // max(q, 1)))
    goal, reached = stop, False
    while steps < most:
        deadline.check()
        made, curved, left = _core.pair_steps(
            small.K,
            q,
            diagonal,
            ridge,
            small.shift,
            small.lower,
            small.upper,
            c,
            F,
            room,
            small.sums,
            goal,
            min(SLICE, most - steps),
            kink,
        )
        steps, negative = steps + made, negative + curved
        if left > goal:
            continue
        if goal <= small.aim:
            reached = True
            break
        # What is reached may be lost again on the way, as steps lower the objective.
        goal, most, reached = small.aim, min(most, steps + FURTHER * q), True
    return Solved(c, steps, negative, reached)


def _near_zero(small: Small) -> Vector:
    """The gradient, moved by a constant to where float32 has its digits.

    For pairs only differences matter. Rows that can move end near -b: left there, C =
    1000 stays at a violation of 1e-5.
    """
    found = small.violations
    b = found.levels if np.isfinite(found.size) else 0.0
    return np.asarray(small.F + b)
