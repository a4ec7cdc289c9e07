"""Dual coordinate descent by sweeps, for rows that are not in the memory of a process.

Blocks know nothing of each other while they are swept: each visits its rows once, in
random order, from the same v. What they have moved, d, is a direction in which D rises,
and D is a parabola along it,

    D(alpha + t d) = D(alpha) + t s - 1/2 t^2 c,    s = q'd - d'D alpha - v'R^-1 e,
    e = sum d_i z_i,                                c = e'R^-1 e + d'D d,

so all go t = min(1, s / c) of the way (Lee, Roth, "Distributed box-constrained
quadratic optimization for dual linear SVM", ICML 2015). A round is one sweep, in which
v goes down and e comes up. The more blocks there are, the shorter are the ways: of K
blocks that move, each raises D alone, so at 1/K of all ways it is no lower, and the top
of the parabola not before 1/(2K).
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from widemargin import _core
from widemargin.arrays import Index64, Vector
from widemargin.data.blocks import Least
from widemargin.data.doubled import DoubledRows, of_single_rows, parted
from widemargin.data.state import RowState
from widemargin.losses.pointwise import PointwiseLoss
from widemargin.numerics import linalg
from widemargin.problems.base import Problem
from widemargin.solvers.linear.descent import (
    FIXED,
    Descent,
    Margins,
    Tubes,
    initial_state,
    intercept_weight,
    keep_squares,
    samples,
)

# As kOfRound, kOfGoal and kAllRows of cpp/coordinate_descent.cpp.
OF_ROUND, OF_GOAL, ALL_ROWS = 0.01, 0.3, 100.0

# What a sweep adds up: e; q'd - d'D alpha, d'D d, y'd; of alpha before, y'alpha and
# q'alpha - 1/2 alpha'D alpha; the gap by the gradients; rows that were visited, those
# that stay, and blocks that moved; the ends of the projected gradients, as they are
# least.
_Sums = tuple[Vector, Vector, Index64, Least, Least]


@dataclass(frozen=True)
class _Epoch:
    """What blocks are told of an epoch, beside v.

    Attributes
    ----------
    loss : PointwiseLoss
    is_tube : bool, whether two rows are one variable
    weight : float, of the intercept
    shrinking : bool, whether rows are left out
    seed : int, of the order of the rows in each block
    upper, lower : float, gradients beyond which rows at a bound are left out
    is_whole : bool, whether rows come back that were left out before
    t : float, the part of the way of the last epoch that is gone
    """

    loss: PointwiseLoss
    is_tube: bool
    weight: float
    shrinking: bool
    seed: int
    upper: float
    lower: float
    is_whole: bool
    t: float

    def begun(self, size: int) -> NDArray[np.void]:
        """Where the descent is before it visits ``size`` rows.

        The round is not to end with the epoch: what is left as ends of the projected
        gradients is what the rows have, then.
        """
        at = initial_state(size, self.seed)
        at["upper"], at["lower"], at["weight"] = self.upper, self.lower, self.weight
        at["first"] = at["goal"] = -np.inf
        if size == 0:
            at["gap"], at["upper"], at["lower"] = 0.0, np.inf, -np.inf
        return at


class DescentBySweeps(Descent):
    """The variables of rows that are read by sweeps, beside them."""

    _excess = _reached = 0.0

    def __init__(self, solver: Any, problem: Problem, state: RowState) -> None:
        rows = self._rows = samples(problem.rows)
        m = rows.shape[0]
        beside = rows.state(squares=0.0, way=0.0, left=np.broadcast_to(False, m))
        square = rows.sweep(keep_squares, beside) / m
        super().__init__(solver, problem, m, intercept_weight(problem, square))
        # The state keeps the alpha of the last certificate, which may be asked for.
        self._moving = problem.state(alpha=state.alpha)
        self._is_tube = isinstance(problem.rows, DoubledRows)
        inner = of_single_rows(self._moving) if self._is_tube else self._moving
        self._beside = inner.join(beside)
        self._t, self._is_whole, self._hope = 0.0, True, 1.0
        self._seeds = np.random.default_rng(solver.random_state or 0)
        self.begin(state)

    @property
    def spent(self) -> float:
        """Sweeps, which read all rows for the visits of few: see `Descent.spent`."""
        return float(self._state["epoch"][0])

    def put(self, state: RowState) -> None:
        """Write the dual variables into a row state: see `Descent.put`."""
        self._beside.update(_settle, self._t, self._problem.pointwise, self._is_tube)
        self._t = 0.0
        both = state.join(self._moving.prefixed("moving_"))
        both.update(_copy, "moving_alpha", "alpha")

    def get(self, state: RowState) -> None:
        """Take the dual variables of a row state: see `Descent.get`."""
        self._t = 0.0
        both = state.join(self._moving.prefixed("moving_"))
        both.update(_copy, "alpha", "moving_alpha")

    def advance(self, mark: float) -> bool:
        """Visit all rows that are not left out, once; whether a certificate is due."""
        sums: _Sums = self._rows.sweep(_visit, self._beside, self._v, self._epoch())
        e, (rise, bend, tilt, excess, reached, gap), counts, top, low = sums
        visited, kept, moved = counts.tolist()
        v, metric = self._v, np.ones(len(e))
        if self._problem.intercept == "free":  # b = b' + r y'alpha
            metric[-1] = 1.0 / self._weight
        slope, curve = rise - (metric * v) @ e, (metric * e) @ e + bend
        t = slope / curve if curve > 0.0 else 0.0
        if 2.0 * moved * t < 1.0 <= moved:  # by rounding
            t = 1.0 / moved
        t = self._t = min(1.0, t)
        self._v = v + t * e
        self._excess = excess + t * tilt
        self._reached = reached + t * (rise - 0.5 * t * bend)
        self._end_epoch(self._hope * gap, visited, kept, (low.key, -top.key))
        gap, goal = (float(self._state[name][0]) for name in ("gap", "goal"))
        return gap <= goal or self.spent >= mark

    def _steer(self, gap: float, goal: float) -> None:
        """Set the gap at which the next certificate is worth its cost.

        Each block meets gradients at a v of its own, which suits its rows too well: the
        gap by these is multiplied by what the last certificate has found.
        """
        promised = float(self._state["gap"][0])
        if 0.0 < promised < np.inf and gap > 0.0:
            self._hope *= gap / promised
            self._state["gap"] = gap
            self._is_whole = True
        super()._steer(gap, goal)

    def _epoch(self) -> _Epoch:
        """What blocks are told of the next epoch."""
        state = self._state
        return _Epoch(
            self._problem.pointwise,
            self._is_tube,
            self._weight,
            self._shrinking,
            int(self._seeds.integers(2**63)),
            float(state["upper"][0]),
            float(state["lower"][0]),
            self._is_whole,
            self._t,
        )

    def _end_epoch(
        self, gap: float, visited: int, kept: int, ends: tuple[float, float]
    ) -> None:
        """Choose the rows of the next epoch: see the function of that name in C++."""
        smallest, largest = ends
        state = self._state
        if self._is_whole:
            state["first"] = gap
        least, target = OF_GOAL * state["goal"][0], OF_ROUND * state["first"][0]
        self._is_whole = bool(gap <= max(target, least) or kept == 0)
        factor = ALL_ROWS if self._is_whole else 1.0
        state["upper"] = factor * largest if largest > 0.0 else np.inf
        state["lower"] = factor * smallest if smallest < 0.0 else -np.inf
        state["gap"], state["active"] = gap, kept
        state["visits"] += visited
        state["epoch"] += 1


# -- functions of one block ------------------------------------------------------------


def _visit(block: Any, part: RowState, v: Vector, epoch: _Epoch) -> _Sums:
    """One epoch over the rows of a block, from v."""
    block, loss = linalg.formed(block), epoch.loss
    _settle(part, epoch.t, loss, epoch.is_tube)
    squares = part.squares + epoch.weight
    own: Margins | Tubes
    if epoch.is_tube:
        own = Tubes(block, *parted(part), loss, squares)
    else:
        own = Margins(block, part, loss, squares)
    before, excess, reached = own.coordinates[:, 0].copy(), own.excess, own.reached
    stays = epoch.is_whole | ~part.left
    order = np.argsort(~stays, kind="stable")
    at = epoch.begun(int(np.count_nonzero(stays)))
    e = _descend(own, order, v, at, epoch.shrinking)
    size, kept = (int(at[name][0]) for name in ("visits", "active"))
    part.left = True
    part.left[order[:kept]] = False
    part.way = own.coordinates[:, 0] - before
    bend, gap = own.coordinates[:, 2] @ np.square(part.way), at["gap"][0]
    sums = own.rise(before), bend, own.excess - excess, excess, reached, gap
    top, low = (_met(end) for end in (-at["upper"][0], at["lower"][0]))
    counts = np.array([size, kept, part.way.any()])
    return e, np.array(sums), counts, top, low


def _descend(
    own: Margins | Tubes,
    order: Index64,
    v: Vector,
    at: NDArray[np.void],
    shrinking: bool,
) -> Vector:
    """Visit the first rows of an order; what v has moved by."""
    size, more = int(at["size"][0]), own.more
    if size == 0:
        return np.zeros(len(v))
    first = own.matrix.shape[1] - more
    u = np.insert(v, np.full(more, first), FIXED)
    core = linalg.in_core(own.matrix), own.coordinates, order, u, at.view(np.uint8)
    _core.descend(*core, size, 0, shrinking)
    return np.delete(u, np.s_[first : first + more]) - v


def _met(end: float) -> Least:
    """An end of the projected gradients; an infinite one was not met."""
    return Least(float(end) if end > -np.inf else np.inf)


def _settle(part: RowState, t: float, loss: PointwiseLoss, is_tube: bool) -> None:
    """Let the dual variables go t of the way of the last epoch."""
    if t == 0.0:
        return
    if not is_tube:
        part.alpha = loss.clipped(part.alpha + t * part.way, part.C)
        return
    first, second = parted(part)
    beta = first.alpha - second.alpha + t * part.way
    for half, sign in ((first, 1.0), (second, -1.0)):
        half.alpha = loss.clipped(np.maximum(sign * beta, 0.0), half.C)


def _copy(part: RowState, source: str, target: str) -> None:
    setattr(part, target, getattr(part, source))
