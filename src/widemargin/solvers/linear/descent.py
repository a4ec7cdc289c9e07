"""The variables of dual coordinate descent, and when a certificate is due.

What a run over rows in memory and one over rows in pieces elsewhere have in common is
`Descent`; the formulas are in coordinate_descent.py.
"""

import math
from abc import ABC, abstractmethod
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from widemargin import _core
from widemargin.arrays import Vector
from widemargin.data.doubled import DoubledRows, halves_of
from widemargin.data.rows import Rows
from widemargin.data.state import RowState
from widemargin.losses.pointwise import PointwiseLoss
from widemargin.numerics import linalg
from widemargin.problems.base import Problem, margins
from widemargin.solution import Certificate

# A certificate is made where the gap by the gradients of an epoch is small enough, and
# where the visits pass a mark, in units of m: 1, 2, 3.5, 5.75, .., at most the last
# number apart. It costs about as much as one unit.
FIRST_MARK, MARK_FACTOR, MARK_STEP, LARGEST_STEP = 1.0, 1.5, 0.5, 50.0
# Marks up to this one do not count where all visits up to it take at most this number
# of looks at the clock: the gap by the gradients says when. (TF-IDF, scattered
# entries, Reuters, C from 0.01 to 10: a tenth to a fifth less time.)
QUICK_MARK, QUICK_LOOKS = 40.0, 20
# The same where a free intercept is a variable beside rows with one variable each: no
# gradient tells how far it is off. (a9a, ijcnn1, w8a, hinge, C from 0.001 to 0.1: with
# 20 from 0.7 to 1.3 of the time; penalized, 0.8 to 1.0 of that with 2.)
FREE_LOOKS = 2
# Where the first of them is without a free intercept: another solver may be faster.
# (2.5, 5, 20, 40: 0.4 to 1.1, 20 1.3 of the time, benchmarks/core/untuned.py.)
EARLY_MARK = 10.0
# What gradients promise is the gap of an epoch times its fall from the one before: the
# gap that the next one will find. Before a certificate has said how much that is of the
# truth it may be this many times the gap asked for. (`documents` of regression.py, the
# loss and its square, C from 0.1 to 10: the gap is 0.4 to 0.7 and 0.7 to 1 of it.)
SHARE, CURVED_SHARE = 1.4, 1.1
# Up to this share of the gap asked for the promise is believed, once, where the loss is
# squared: the driver looks itself. (Text, Reuters, a9a, w8a, ijcnn1, C from 0.01 to 1,
# gaps from 1e-2 to 1e-6: kept in 16 of 17 runs; for the hinge in 3 of 7.)
SURE = 0.7
# The bounds of that number after a certificate, and what has to be left of a promise
# that was not kept before the next one.
LEAST_SHARE, MOST_SHARE, LEFT = 0.3, 3.0, 0.8
# The gap may be this many times what the gradients promised. (3 and 30: within a
# tenth of the time, benchmarks/core/untuned.py.)
WRONG = 10.0
# P may be above that of the best intercept by this share of the gap asked for.
SLACK = 0.05
# A free intercept has this share of mean |x|^2 as its weight r. (Visits in units of m,
# to 1e-6, with 0.01, 0.1, 0.3, 1: TF-IDF, C = 1 118, 17, 18, 29; scattered entries,
# C = 1 47, 50, 67, 121; a9a, C = 0.01 171, 19, 9, 9; ijcnn1, C = 0.1 67, 9, 9, 9.
# Smaller shares need many certificates, larger ones many epochs. `documents` of
# benchmarks/linear/text.py, C = 1, both losses: 0.06 and 0.04, 0.01, 0.01, 0.01
# to 0.02 s.)
WEIGHT = 0.3
# r is at least this over sum C, which bounds y'alpha: b has to go as far as 1.
REACH = 4.0
# Entries that are visited between two looks at the clock, about 0.05 s, and the cost of
# a visit in entries besides its own.
SLICE, VISIT = 1 << 25, 64

# What columns of margins are multiplied by: so large that no visit moves it.
FIXED = 2.0**60

# The struct DescentState of cpp/coordinate_descent.hpp.
_STATE = np.dtype(
    [
        *((name, np.int64) for name in ("position", "kept", "size", "shuffled")),
        *((name, np.int64) for name in ("active", "visits", "epoch", "measured")),
        ("random", np.uint64),
        *((name, np.float64) for name in ("upper", "lower", "largest", "smallest")),
        *((name, np.float64) for name in ("gap", "sum", "fall", "first", "goal")),
        ("weight", np.float64),
    ]
)


class Descent(ABC):
    """The variables of one run.

    Parameters
    ----------
    solver : CoordinateDescent
    problem : Problem
    m : int, how many variables
    weight : float, of the intercept: see `intercept_weight`
    more : int, columns before the intercept that are fixed

    Attributes
    ----------
    begin_mark : float, where the first certificate is due, in units of m
    """

    def __init__(
        self, solver: Any, problem: Problem, m: int, weight: float, more: int = 0
    ) -> None:
        self._problem, self._m, self._shrinking = problem, m, solver.shrinking
        self._share = CURVED_SHARE if problem.pointwise.curvature else SHARE
        self._first_mark = self.begin_mark = FIRST_MARK
        self._state = initial_state(m, solver.random_state or 0)
        self._state["weight"] = self._weight = weight
        columns, order = problem.rows.shape[1], problem.A.shape[1]
        self._v = np.zeros(order + more)
        self._v[columns : columns + more] = FIXED
        self._own = np.delete(np.arange(order + more), np.s_[columns : columns + more])

    @abstractmethod
    def advance(self, mark: float) -> bool:
        """Visit rows for a while; whether an epoch ended at the goal or a mark."""

    @abstractmethod
    def put(self, state: RowState) -> None:
        """Write the dual variables into the ``alpha`` of a row state."""

    @abstractmethod
    def get(self, state: RowState) -> None:
        """Take the ``alpha`` of a row state."""

    @property
    @abstractmethod
    def _excess(self) -> float:
        """The sum y'alpha."""

    @property
    @abstractmethod
    def _reached(self) -> float:
        """What D is without 1/2 |v|^2."""

    def begin(self, state: RowState) -> None:
        """Begin at the ``alpha`` of a row state."""
        if has_alpha(state):
            self._v[self._own] = self._problem.A.sweep(_weigh, state)

    def take(self, state: RowState, v: Vector) -> None:
        """Go on from a point that another method has found."""
        self.get(state)
        self.begin(state)
        self.begin_at(v)

    @property
    def updates(self) -> float:
        """Rows visited, in units of m."""
        return float(self._state["visits"][0]) / self._m

    @property
    def spent(self) -> float:
        """What marks are compared with: the cost so far, in units of a sweep."""
        return self.updates

    def look(self) -> tuple[int, dict[str, float]]:
        """Rows that are not left out, and the details of a step."""
        epoch = float(self._state["epoch"][0])
        details = {"epoch": epoch, "updates": self.updates, "left": self._left}
        return int(self._state["active"][0]), details

    @property
    def _left(self) -> float:
        """Visits to the goal, in units of m, by the last epoch; 0 if it says nothing.

        Few at first, where the gap falls fast, and at the start of a round.
        """
        state = self._state
        gap, fall, goal = (float(state[name][0]) for name in ("gap", "fall", "goal"))
        if not 0.0 < goal < gap < np.inf or not 0.0 < fall < 1.0:
            return 0.0
        epochs = math.log(goal / gap) / math.log(fall)
        return epochs * float(state["active"][0]) / self._m

    def certify(
        self, state: RowState, tol: float
    ) -> tuple[Vector, float, float, float]:
        """V and its P, D of alpha in ``state``, and the drift of v, which is undone."""
        v = self._v[self._own]  # a copy
        if not v.any() and not has_alpha(state):  # at the start: nothing to read
            primal, dual, g = self._problem.zero_objective, 0.0, v
        else:
            self._make_feasible(state)
            bounds, g, v = self._evaluate(state, v, tol)
            primal, dual, self._v[self._own] = bounds.primal, bounds.dual, g
            self.begin_at(v)
        self._steer(primal - dual, tol * primal)
        return v, primal, dual, float(np.abs(v - self._v[self._own]).max())

    def _evaluate(
        self, state: RowState, v: Vector, tol: float
    ) -> tuple[Certificate, Vector, Vector]:
        """Bounds of v and of alpha, A'alpha, and the v of these bounds."""
        return *self._problem.evaluate(state, v), v

    def begin_at(self, v: Vector) -> None:
        """Hold a free intercept near the b of v: y'alpha is zero."""
        if self._problem.intercept == "free":
            self._v[-1] = v[-1]

    def _make_feasible(self, state: RowState) -> None:
        """Let y'alpha be zero where the intercept is free, in both places of alpha."""
        if self._problem.intercept == "free":
            self._problem.repair(state)
            self.get(state)

    def _steer(self, gap: float, goal: float) -> None:
        """Set the gap at which the next certificate is worth its cost.

        It is the goal, by how much the gradients promised of this gap, and a part of
        what they promised last. Where they were far from the truth, rows were left out
        wrongly, and the round ends.
        """
        state, promised = self._state, self._promised
        if gap > max(goal, WRONG * promised):
            state["goal"], state["first"] = self._share * goal, np.inf
        else:
            if 0.0 < gap < np.inf and promised < np.inf:
                self._share = min(max(promised / gap, LEAST_SHARE), MOST_SHARE)
            state["goal"] = min(self._share * goal, LEFT * promised)

    def expected(self, tol: float) -> tuple[Vector, float, float] | None:
        """V as it is with its P and D, where gradients surely prove ``tol``.

        They say too little of a loss without curvature, and nothing of a free
        intercept, whose y'alpha is not zero yet.
        """
        problem, gap, dual = self._problem, self._promised, self._dual
        if problem.is_bounded or problem.intercept == "free":
            return None
        if not gap <= SURE * tol * (dual + gap):
            return None
        return self._v[self._own], dual + gap, dual

    def is_due(self, mark: float, tol: float) -> bool:
        """Whether a certificate is worth its cost; if not, a mark moves a free b'.

        To b, and b by as much more: b = b' + r y'alpha, where alpha is not feasible.
        """
        if self._is_promising(tol):
            return True
        if self.spent < mark:
            return False
        if mark >= self._first_mark:
            return True
        if self._problem.intercept == "free":
            self._v[-1] += self._weight * self._excess
        return False

    @property
    def _promised(self) -> float:
        """The gap that the next epoch will find, by the fall of the last one's."""
        state = self._state
        return float(state["gap"][0] * state["fall"][0])

    @property
    def _dual(self) -> float:
        """D of the variables as they are."""
        ridge = float(self._problem.R @ np.square(self._v[self._own]))
        return self._reached - 0.5 * ridge

    def _is_promising(self, tol: float) -> bool:
        """Whether the gap by the gradients is at its goal, by what P is now.

        The goal of the last certificate is too large where P has fallen since.
        """
        state, gap = self._state, self._promised
        dual = self._dual
        state["goal"] = min(state["goal"][0], self._share * tol * (dual + gap))
        return bool(gap <= state["goal"][0])


class DescentHere(Descent):
    """The variables of rows in memory, as the C++ core keeps them."""

    def __init__(self, solver: Any, problem: Problem, state: RowState) -> None:
        loss, rows = problem.pointwise, problem.rows
        weight = intercept_weight(problem, problem.mean_square)
        is_tube = isinstance(rows, DoubledRows) and _are_tubes(state)
        self._variables: Margins | Tubes
        if is_tube:
            self._variables = Tubes(_matrix(samples(rows)), *halves_of(state), loss)
        else:
            self._variables = Margins(_matrix(rows), state, loss)
        matrix = self._variables.matrix
        m = matrix.shape[0]
        super().__init__(solver, problem, m, weight, self._variables.more)
        self._state["measured"] = m  # by the first epoch
        self._rows = linalg.in_core(matrix)
        self._coordinates = self._variables.coordinates
        self._order = np.arange(m)
        entries = rows.density * rows.shape[1]
        self._slice = max(1, int(SLICE / (entries + VISIT)))
        is_free = problem.intercept == "free"
        looks = FREE_LOOKS if is_free and not is_tube else QUICK_LOOKS
        if QUICK_MARK * m <= looks * self._slice:
            self._first_mark = QUICK_MARK
            # Before, marks serve a free intercept, and say how many visits are left.
            if not is_free:
                self.begin_mark = EARLY_MARK
        self.begin(state)
        if not is_free and not has_alpha(state):
            # What the first epoch leaves of P(0). (ijcnn1, a9a, w8a, hinge, Reuters:
            # kappa 0.0015 to 2, 0.3 to 5 times as much.)
            self._state["fall"] = min(1.0, problem.kappa)

    @property
    def alpha(self) -> Vector:
        """The dual variables of all rows, (m,) or (2 m,)."""
        return self._variables.alpha

    def put(self, state: RowState) -> None:
        """Write the dual variables into a row state: see `Descent.put`."""
        state.alpha = self.alpha

    def get(self, state: RowState) -> None:
        """Take the dual variables of a row state: see `Descent.get`."""
        self._variables.alpha = state.alpha

    def _evaluate(
        self, state: RowState, v: Vector, tol: float
    ) -> tuple[Certificate, Vector, Vector]:
        if not isinstance(self._variables, Tubes):
            return super()._evaluate(state, v, tol)
        problem: Any = self._problem
        enough = SLACK * tol * max(self._dual, 0.0)
        found: tuple[Certificate, Vector, Vector]
        found = problem.evaluate_near(state, v, enough)
        return found

    @property
    def _excess(self) -> float:
        return self._variables.excess

    @property
    def _reached(self) -> float:
        return self._variables.reached

    def advance(self, mark: float) -> bool:
        """Visit rows for about 0.05 s; whether an epoch ended at the goal or a mark."""
        return _core.descend(
            self._rows,
            self._coordinates,
            self._order,
            self._v,
            self._state.view(np.uint8),
            self._slice,
            int(mark * self._m),
            self._shrinking,
        )


class Margins:
    """A variable for each row, of a problem with margins to reach.

    Parameters
    ----------
    matrix : the rows
    part : RowState with their ``alpha``, ``C``, ``labels``, and ``q`` where it is not 1
    loss : PointwiseLoss
    squares : ndarray (m,) or None
        Of the rows, with the weight of the intercept. None: the core finds them.

    Attributes
    ----------
    matrix : the rows, with one or two columns ``more`` where the margins are not 1
    coordinates : ndarray (m, 4), as the core has them
    """

    def __init__(
        self,
        matrix: Any,
        part: RowState,
        loss: PointwiseLoss,
        squares: Vector | None = None,
    ) -> None:
        q = margins(part)
        self._margins = np.asarray(q) if np.ndim(q) else None
        columns = matrix.shape[1]
        if self._margins is not None:
            matrix = _with_margins(matrix, part.labels * (1.0 - self._margins))
        self.matrix: Any = matrix
        self.more = matrix.shape[1] - columns
        self.coordinates = _coordinates(part, loss, squares)

    @property
    def alpha(self) -> Vector:
        """The dual variables, (m,): a view."""
        return self.coordinates[:, 0]

    @alpha.setter
    def alpha(self, alpha: Vector) -> None:
        """Set the dual variables."""
        self.coordinates[:, 0] = alpha

    @property
    def excess(self) -> float:
        """The sum y'alpha."""
        return float(np.sign(self.coordinates[:, 3]) @ self.alpha)

    @property
    def reached(self) -> float:
        """What D is without 1/2 |v|^2."""
        alpha, _, diagonal, _ = self.coordinates.T
        linear = alpha.sum() if self._margins is None else self._margins @ alpha
        return float(linear - 0.5 * (diagonal @ (alpha * alpha)))

    def rise(self, before: Vector) -> float:
        """Slope of that, on the way from other variables to these."""
        alpha, _, diagonal, _ = self.coordinates.T
        way = alpha - before
        linear = way.sum() if self._margins is None else self._margins @ way
        return float(linear - (diagonal * before) @ way)


class Tubes:
    """A variable for the two rows of each sample of a regression.

    Parameters
    ----------
    matrix : the samples
    first, second : RowState of the rows of either half: see `Margins`
    loss : PointwiseLoss
    squares : ndarray (m,) or None, of the samples: see `Margins`

    Attributes
    ----------
    coordinates : ndarray (m, 6), as the core has them
    """

    more = 0

    def __init__(
        self,
        matrix: Any,
        first: RowState,
        second: RowState,
        loss: PointwiseLoss,
        squares: Vector | None = None,
    ) -> None:
        self.matrix = matrix
        tubes = 0.5 * (first.q - second.q), -0.5 * (first.q + second.q)
        whole = _coordinates(first, loss, squares)
        self.coordinates = np.column_stack([whole, *tubes])
        self.coordinates[:, 0] -= second.alpha

    @property
    def alpha(self) -> Vector:
        """The dual variables of both rows of all samples, (2 m,): a copy."""
        beta = self.coordinates[:, 0]
        return np.concatenate([np.maximum(beta, 0.0), np.maximum(-beta, 0.0)])

    @alpha.setter
    def alpha(self, alpha: Vector) -> None:
        """Set the dual variables."""
        self.coordinates[:, 0] = np.subtract(*np.split(alpha, 2))

    @property
    def excess(self) -> float:
        """The sum of beta."""
        return float(self.coordinates[:, 0].sum())

    @property
    def reached(self) -> float:
        """What D is without 1/2 |v|^2."""
        beta, _, diagonal, _, target, kink = self.coordinates.T
        linear = target @ beta - kink @ np.abs(beta)
        return float(linear - 0.5 * (diagonal @ (beta * beta)))

    def rise(self, before: Vector) -> float:
        """Slope of that, on the way from other variables to these: at least so much."""
        beta, _, diagonal, _, target, kink = self.coordinates.T
        way = beta - before
        linear = target @ way - kink @ (np.abs(beta) - np.abs(before))
        return float(linear - (diagonal * before) @ way)


def _are_tubes(state: RowState) -> bool:
    """Whether two rows are one sample each, of which one at most has a loss."""
    first, second = halves_of(state)
    signs = (first.labels > 0).all() and (second.labels < 0).all()
    widths = (first.q + second.q <= 0.0).all()
    return bool(signs and widths and np.array_equal(first.C, second.C))


def samples(rows: Rows) -> Rows:
    """The rows, once each: those of a regression are there twice."""
    return rows.base if isinstance(rows, DoubledRows) else rows


def has_alpha(state: RowState) -> bool:
    """Whether a dual variable is not zero, wherever they are."""
    return bool(state.alpha.max() > 0.0)


def _matrix(rows: Rows) -> Any:
    """All rows, where they lie; a copy where their columns are centered."""
    matrix = rows.in_memory()
    return rows.take(np.arange(rows.shape[0])) if matrix is None else matrix


def intercept_weight(problem: Problem, square: float) -> float:
    """What the intercept moves by for a step of y_i alpha_i, and adds to q_i.

    ``square`` is the mean |x_i|^2.
    """
    if problem.intercept == "none":
        return 0.0
    if problem.intercept == "penalized":
        return 1.0
    return max(WEIGHT * square, REACH / problem.total_weight)


def _with_margins(matrix: Any, shifts: Vector) -> Any:
    """The rows with columns whose product with `FIXED` is y (1 - q), (m,) ``shifts``.

    The core asks for y x'v >= 1. Entries of float32 take two columns for all digits.
    """
    if matrix.dtype.kind != "f":
        matrix = matrix.astype(np.float64)
    parts, left = [], shifts / FIXED
    for _ in range(1 if matrix.dtype == np.float64 else 2):
        parts.append(left.astype(matrix.dtype))
        left = left - parts[-1]
    columns = np.stack(parts, axis=1)
    if sparse.issparse(matrix):
        return sparse.csr_array(sparse.hstack([matrix, sparse.csr_array(columns)]))
    return np.hstack([matrix, columns])


def _coordinates(part: RowState, loss: PointwiseLoss, squares: Vector | None) -> Vector:
    """Columns alpha, U, D and y / q, (m, 4), with the squares |z_i|^2; else y."""
    coordinates = np.empty((len(part.alpha), 4))
    coordinates[:, 0] = part.alpha
    coordinates[:, 1] = loss.upper(part.C)
    coordinates[:, 2] = loss.ridge(part.C)
    coordinates[:, 3] = part.labels
    if squares is not None:
        with np.errstate(divide="ignore"):  # a row of zeros: alpha goes to its bound
            coordinates[:, 3] /= squares + coordinates[:, 2]
    return coordinates


def initial_state(m: int, seed: int) -> NDArray[np.void]:
    """The start of the first epoch, over all rows."""
    state = np.zeros(1, dtype=_STATE)
    state["size"] = state["active"] = m
    state["random"] = seed % 2**64
    state["upper"] = state["smallest"] = state["gap"] = np.inf
    state["lower"] = state["largest"] = -np.inf
    state["fall"] = 1.0
    return state


# -- functions of one block ------------------------------------------------------------


def keep_squares(block: Any, part: RowState) -> float:
    """Write the squares |x_i|^2 of some rows; their sum."""
    part.squares = linalg.row_squares(block)
    return float(part.squares.sum())


def _weigh(block: Any, part: RowState) -> Vector:
    return np.asarray(block.T @ part.alpha)
