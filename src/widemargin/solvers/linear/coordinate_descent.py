"""Dual coordinate descent with shrinking, for linear problems (LIBLINEAR's method).

Hsieh, Chang, Lin, Keerthi, Sundararajan, "A dual coordinate descent method for
large-scale linear SVM", ICML 2008. With z_i = y_i (x_i, 1), or y_i x_i without an
intercept, the dual is

    minimize   1/2 |v|^2 + 1/2 sum D_i alpha_i^2 - sum alpha_i,   v = sum alpha_i z_i,

over 0 <= alpha_i <= U_i: U = C and D = 0 for the hinge, U infinite and D_i = 1/(2 C_i)
for the squared hinge. A visit of row i minimizes over alpha_i,

    G = z_i'v - 1 + D_i alpha_i,   alpha_i <- clip(alpha_i - G / q_i, 0, U_i),
    q_i = |z_i|^2 + D_i,

and moves v along z_i: twice the entries of one row. An epoch visits the rows A in
random order. Rows at a bound that the last epoch found far from leaving it drop out of
A. The gradients that an epoch meets add up to its gap P - D: where that has fallen to a
hundredth of what the round began with, or is as small as was asked for, all return.

A free intercept adds y'alpha = 0, which no visit of a single row can keep. So b is held
near its last value b', with a weight r (the method of multipliers on y'alpha = 0):

    minimize   1/2 |w|^2 + 1/(2 r) (b - b')^2 + sum C L,   b = b' + r y'alpha,

the same epochs with an intercept that moves by r y_i for a step of alpha_i, and with
q_i = |x_i|^2 + r + D_i. At a certificate alpha is made feasible (`Problem.repair`), and
b' = b: where many rows are on the margin a few times are enough. In between, where all
is over soon, b' = b alone.

The two rows of a sample of a regression share x_i, and one of them at most has a loss:
one variable beta_i = alpha_i - alpha_(m + i) stands for both, as in LIBLINEAR (Ho, Lin,
"Large-scale linear support vector regression", JMLR 2012), with the target t_i and half
the width e_i of the tube in the place of margins,

    minimize   1/2 |v|^2 + 1/2 sum D_i beta_i^2 - sum (t_i beta_i - e_i |beta_i|).
"""

import itertools
from collections.abc import Generator
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from widemargin import _core
from widemargin.data.doubled import DoubledRows
from widemargin.data.rows import Rows
from widemargin.data.state import RowState
from widemargin.numerics import linalg
from widemargin.parameters import Checker
from widemargin.problems.base import Problem
from widemargin.solution import Step
from widemargin.solvers.driver.contract import Solver, Start, at, in_one_blas_thread

Vector = NDArray[np.float64]

# A certificate is made where the gap by the gradients of an epoch is small enough, and
# where the visits pass a mark, in units of m: 1, 2, 3.5, 5.75, .., at most the last
# number apart. It costs about as much as one unit.
FIRST_MARK, MARK_FACTOR, MARK_STEP, LARGEST_STEP = 1.0, 1.5, 0.5, 50.0
# Marks up to this one do not count where all visits up to it take at most this number
# of looks at the clock: the gap by the gradients says when. (TF-IDF, scattered
# entries, Reuters, C from 0.01 to 10: a tenth to a fifth less time.)
QUICK_MARK, QUICK_LOOKS = 40.0, 2
# The same looks where two rows are one variable. (`documents` of 20,000 rows, both
# losses, C from 0.1 to 10: 4 to 23 % less time than with 2.)
TWIN_LOOKS = 20
# The gap by the gradients of an epoch may be this many times the gap asked for: they
# are from before its visits, and the gap after them is less. (By TF-IDF, scattered
# entries, Reuters, C = 1: 0.31 to 0.62 of it, and 0.5 to 0.97 for the hinge.)
SHARE, CURVED_SHARE = 1.0, 1.5
# The gap may be this many times what the gradients promised. (3 and 30: within a
# tenth of the time, benchmarks/core/untuned.py.)
WRONG = 10.0
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
        *((name, np.int64) for name in ("active", "visits", "epoch")),
        ("random", np.uint64),
        *((name, np.float64) for name in ("upper", "lower", "largest", "smallest")),
        *((name, np.float64) for name in ("gap", "sum", "first", "goal", "weight")),
    ]
)


@dataclass(frozen=True, kw_only=True)
class CoordinateDescent(Solver):  # numpydoc ignore=PR02
    """Dual coordinate descent with shrinking, for linear problems.

    Solves both losses with all three intercepts, with weights per row, on rows in
    memory. Made for small C and
    for many columns: the number of epochs grows with ::

        kappa = mean(C_i |z_i|^2)

    up to about 1 few epochs reach a gap of 1e-6; above 10 it may take thousands, where
    there are many more rows than columns.

    Parameters
    ----------
    shrinking : bool, default=True
        Leave out rows that stay at a bound. Without, epochs that move nothing cost as
        much as the first: 2 to 20 times slower.
    random_state : int or None, default=None
        Seed of the order of the rows; None: 0.

    Raises
    ------
    ValueError
        A parameter out of range.

    Notes
    -----
    An iteration is a certificate, made in one sweep where the gradients promise one,
    and after more and more epochs, but for the first 0.1 s or so. An
    epoch costs 4 flops for each stored entry of its rows, in one thread; 40 bytes a row
    of memory beside the data. Rows are used where they lie: CSR with float32 or float64
    entries, and dense rows of float32, float64, int16 or uint8 in C order; others are
    copied once, as float64 where need be, and so are rows whose columns lie far from
    zero beside their spread where the intercept is free.

    ``details`` of a step: ``epoch``, and ``updates``, the visits so far in units of m.

    References
    ----------
    [hsieh2008]_, Algorithm 1 and section 3.2; the rounds, the certificates, the stop
    by the gap and the free intercept, by the method of multipliers [hestenes1969]_,
    are ours.

    Examples
    --------
    >>> from widemargin import LinearSVC
    >>> from widemargin.solvers import CoordinateDescent
    >>> LinearSVC(intercept="penalized", solver=CoordinateDescent(random_state=1))
    LinearSVC(intercept='penalized', solver=CoordinateDescent(...random_state=1))
    """

    name: ClassVar[str] = "coordinate_descent"
    default_max_iter: ClassVar[int] = 500
    patience: ClassVar[int] = 20

    shrinking: bool = True
    random_state: int | None = None

    def __post_init__(self) -> None:
        check = Checker("CoordinateDescent")
        check.choice("shrinking", self.shrinking, (True, False))
        check.count("random_state", self.random_state, least=0, optional=True)

    def supports(self, problem: Problem) -> str | None:
        """Problems whose rows are in memory."""
        if not problem.rows.is_in_memory:
            return (
                "CoordinateDescent visits rows in random order and needs them in the "
                "memory of this process, as a dense or CSR matrix without a feature "
                "map; use InteriorPoint."
            )
        return None

    def iterate(
        self, problem: Problem, start: Start | None, tol: float
    ) -> Generator[Step, None, None]:
        """A step for each certificate, and now and then between: `Solver.iterate`."""
        return in_one_blas_thread(self._iterate(problem, start, tol))

    def _iterate(
        self, problem: Problem, start: Start | None, tol: float
    ) -> Generator[Step, None, None]:
        """The steps."""
        state = problem.dual_state(0.0 if start is None else start.alpha)
        problem.repair(state)
        descent = _Descent(self, problem, state)
        if start is not None:
            descent.begin_at(start.v)
        mark = descent.begin_mark
        for iteration in itertools.count():
            v, primal, dual, residual = descent.certify(state, tol)
            if not np.isfinite(primal - dual):
                raise FloatingPointError("the objectives are not finite")
            point, due = at(v, state), False
            while not due:
                active, details = descent.look()
                yield Step(iteration, primal, dual, residual, active, details, point)
                due = descent.advance(mark) and descent.is_due(mark, tol)
                while mark <= descent.updates:
                    mark = min(MARK_FACTOR * mark + MARK_STEP, mark + LARGEST_STEP)
            state.alpha = descent.alpha


class _Descent:
    """The variables of one run, as the C++ core keeps them."""

    def __init__(
        self, solver: CoordinateDescent, problem: Problem, state: RowState
    ) -> None:
        self._problem, self._shrinking = problem, solver.shrinking
        self._share = CURVED_SHARE if problem.pointwise.curvature else SHARE
        squares = _row_squares(problem)
        weight = _intercept_weight(problem, squares)
        kind = _Tubes if _Tubes.suits(problem, state) else _Margins
        self._variables = kind(problem, state, squares + weight)
        matrix = self._variables.matrix
        m = matrix.shape[0]
        columns, order = problem.rows.shape[1], problem.A.shape[1]
        more = matrix.shape[1] - columns  # they come before the intercept
        self._rows = linalg.in_core(matrix)
        self._coordinates = self._variables.coordinates
        self._order = np.arange(m)
        self._state = _initial_state(m, solver.random_state or 0)
        self._state["weight"] = weight
        entries = problem.rows.density * problem.rows.shape[1]
        self._slice = max(1, int(SLICE / (entries + VISIT)))
        looks = TWIN_LOOKS if kind is _Tubes else QUICK_LOOKS
        is_quick = QUICK_MARK * m <= looks * self._slice
        self._first_mark = QUICK_MARK if is_quick else FIRST_MARK
        # Before, marks serve a free intercept only.
        is_free = problem.intercept == "free"
        self.begin_mark = FIRST_MARK if is_free else self._first_mark
        self._v = np.zeros(order + more)
        self._v[columns : columns + more] = FIXED
        self._own = np.delete(np.arange(order + more), np.s_[columns : columns + more])
        if state.alpha.any():
            self._v[self._own] = problem.A.sweep(_weigh, state)

    @property
    def alpha(self) -> Vector:
        """The dual variables of all rows, (m,) or (2 m,)."""
        return self._variables.alpha

    @property
    def updates(self) -> float:
        """Rows visited, in units of m."""
        return float(self._state["visits"][0]) / self._order.size

    def look(self) -> tuple[int, dict[str, float]]:
        """Rows that are not left out, and the details of a step."""
        epoch = float(self._state["epoch"][0])
        return int(self._state["active"][0]), {"epoch": epoch, "updates": self.updates}

    def certify(
        self, state: RowState, tol: float
    ) -> tuple[Vector, float, float, float]:
        """V and its P, D of alpha in ``state``, and the drift of v, which is undone."""
        v = self._v[self._own]  # a copy
        if not v.any() and not state.alpha.any():  # at the start: nothing to read
            primal, dual, g = self._problem.zero_objective, 0.0, v
        else:
            self._make_feasible(state)
            bounds, g = self._problem.evaluate(state, v)
            primal, dual, self._v[self._own] = bounds.primal, bounds.dual, g
            self.begin_at(v)
        self._steer(primal - dual, tol * primal)
        return v, primal, dual, float(np.abs(v - self._v[self._own]).max())

    def begin_at(self, v: Vector) -> None:
        """Hold a free intercept near the b of v: y'alpha is zero."""
        if self._problem.intercept == "free":
            self._v[-1] = v[-1]

    def _make_feasible(self, state: RowState) -> None:
        """Let y'alpha be zero where the intercept is free, in both places of alpha."""
        if self._problem.intercept == "free":
            self._problem.repair(state)
            self._variables.alpha = state.alpha

    def _steer(self, gap: float, goal: float) -> None:
        """Set the gap at which the next certificate is worth its cost.

        It is the goal, and half of what the gradients promised last. Where they were
        far from the truth, rows were left out wrongly, and the round ends.
        """
        state, promised = self._state, self._state["gap"][0]
        wanted = self._share * goal
        if gap > max(goal, WRONG * promised):
            state["goal"], state["first"] = wanted, np.inf
        else:
            state["goal"] = min(wanted, 0.5 * promised)

    def advance(self, mark: float) -> bool:
        """Visit rows for about 0.05 s; whether an epoch ended at the goal or a mark."""
        return _core.descend(
            self._rows,
            self._coordinates,
            self._order,
            self._v,
            self._state.view(np.uint8),
            self._slice,
            int(mark * self._order.size),
            self._shrinking,
        )

    def is_due(self, mark: float, tol: float) -> bool:
        """Whether a certificate is worth its cost; if not, a mark moves a free b'.

        To b, and b by as much more: b = b' + r y'alpha, where alpha is not feasible.
        """
        if self._is_promising(tol):
            return True
        if self.updates < mark:
            return False
        if mark >= self._first_mark:
            return True
        if self._problem.intercept == "free":
            self._v[-1] += float(self._state["weight"][0]) * self._variables.excess
        return False

    def _is_promising(self, tol: float) -> bool:
        """Whether the gap by the gradients is at its goal, by what P is now.

        The goal of the last certificate is too large where P has fallen since.
        """
        state, gap = self._state, float(self._state["gap"][0])
        ridge = float(self._problem.R @ np.square(self._v[self._own]))
        dual = self._variables.reached - 0.5 * ridge
        state["goal"] = min(state["goal"][0], self._share * tol * (dual + gap))
        return bool(gap <= state["goal"][0])


class _Margins:
    """A variable for each row, of a problem with margins to reach.

    Attributes
    ----------
    matrix : the rows, with one or two columns more where the margins are not 1
    coordinates : ndarray (m, 4), as the core has them
    """

    def __init__(self, problem: Problem, state: RowState, squares: Vector) -> None:
        self.matrix: Any = _matrix(problem.rows)
        self._margins = None if problem.has_unit_margins else np.asarray(state.q)
        if self._margins is not None:
            shifts = state.labels * (1.0 - self._margins)
            self.matrix = _with_margins(self.matrix, shifts)
        self.coordinates = _coordinates(problem, state, squares)

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


class _Tubes:
    """A variable for the two rows of each sample of a regression.

    Attributes
    ----------
    matrix : the samples
    coordinates : ndarray (m, 6), as the core has them
    """

    def __init__(self, problem: Problem, state: RowState, squares: Vector) -> None:
        self.matrix: Any = _matrix(_samples(problem.rows))
        first, second = np.split(np.asarray(state.q), 2)
        whole = _coordinates(problem, state, squares)[: len(first)]
        tubes = 0.5 * (first - second), -0.5 * (first + second)
        self.coordinates = np.column_stack([whole, *tubes])
        self.alpha = state.alpha

    @staticmethod
    def suits(problem: Problem, state: RowState) -> bool:
        """Whether rows are samples twice, of which one at most has a loss."""
        if not isinstance(problem.rows, DoubledRows):
            return False
        up, down = np.split(state.labels, 2)
        first, second = np.split(np.asarray(state.C), 2)
        q = np.add(*np.split(np.asarray(state.q), 2))
        signs = (up > 0).all() and (down < 0).all()
        return bool(signs and (q <= 0.0).all() and np.array_equal(first, second))

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


def _samples(rows: Rows) -> Rows:
    """The rows that are there twice."""
    if not isinstance(rows, DoubledRows):
        raise TypeError("Rows of tubes are there twice.")
    return rows.base


def _matrix(rows: Rows) -> Any:
    """All rows, where they lie; a copy where their columns are centered."""
    matrix = rows.in_memory()
    return rows.take(np.arange(rows.shape[0])) if matrix is None else matrix


def _row_squares(problem: Problem) -> Vector:
    """The |x_i|^2, (m,). One sweep; of rows that are there twice once."""
    rows = problem.rows
    twice = isinstance(rows, DoubledRows)
    rows = _samples(rows) if twice else rows
    state = rows.state(squares=0.0)
    rows.sweep(_squares, state)
    return np.tile(state.squares, 2) if twice else state.squares


def _intercept_weight(problem: Problem, squares: Vector) -> float:
    """What the intercept moves by for a step of y_i alpha_i, and adds to q_i."""
    if problem.intercept == "none":
        return 0.0
    if problem.intercept == "penalized":
        return 1.0
    return max(WEIGHT * float(squares.mean()), REACH / problem.total_weight)


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


def _coordinates(problem: Problem, state: RowState, squares: Vector) -> Vector:
    """Columns alpha, U, D and y / q, (m, 4), with the squares |z_i|^2."""
    coordinates = np.zeros((problem.rows.shape[0], 4))
    coordinates[:, 0] = state.alpha
    coordinates[:, 1] = problem.pointwise.upper(state.C)
    coordinates[:, 2] = problem.pointwise.ridge(state.C)
    with np.errstate(divide="ignore"):  # a row of zeros: alpha goes to its bound
        coordinates[:, 3] = state.labels / (squares + coordinates[:, 2])
    return coordinates


def _initial_state(m: int, seed: int) -> NDArray[np.void]:
    """The start of the first epoch, over all rows."""
    state = np.zeros(1, dtype=_STATE)
    state["size"] = state["active"] = m
    state["random"] = seed % 2**64
    state["upper"] = state["smallest"] = state["gap"] = np.inf
    state["lower"] = state["largest"] = -np.inf
    return state


# -- functions of one block ------------------------------------------------------------


def _squares(block: Any, part: RowState) -> None:
    part.squares = linalg.row_squares(block)


def _weigh(block: Any, part: RowState) -> Vector:
    return np.asarray(block.T @ part.alpha)
