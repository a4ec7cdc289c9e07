"""The augmented Lagrangian of a problem, and Newton's method on it.

For multipliers lambda in [0, C] and a penalty s, with f = A v,

    L(v) = 1/2 v'Rv - c'v + sum_i max_{0 <= a <= C_i} a (1 - f_i)
                                  - (a - lambda_i)^2 / (2 s C_i)

attains its inner maxima at alpha_i = clip(lambda_i + s C_i (1 - f_i), 0, C_i). Its
gradient is r = Rv - c - A'alpha, its generalized Hessian R + s A'D A with D_i = C_i
where 0 < alpha_i < C_i, else 0. c and a constant come from rows that are fixed at a
bound (see `Piece`). The penalty s C_i of a row makes a row of weight 2 the same as a
row that occurs twice.

Where the problem has margins q other than 1, f = A v + 1 - q here and in the solvers:
the slacks q - A v are 1 - f then too.

The squared hinge is its own augmented Lagrangian, with multipliers 0, s = 2 and no
upper bound: alpha_i = 2 C_i max(0, 1 - f_i), and Newton's method alone solves it.
"""

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from widemargin import _core
from widemargin.arrays import Mask, Vector
from widemargin.data.kept import Kept, Spread
from widemargin.data.memory import as_rows
from widemargin.data.row_vector import RowVector
from widemargin.data.rows import SignedRows
from widemargin.data.state import RowState
from widemargin.numerics import linalg
from widemargin.numerics.cholesky import cholesky
from widemargin.numerics.roots import monotone_root
from widemargin.numerics.rounding import SINGLE
from widemargin.problems.base import Problem, margins

# Order up to which the Hessian is formed and factored; beyond, conjugate gradients (the
# squared hinge, C = 10: 20,000 x 2500 dense 3.3 s, with the matrix 8.2; 50,000 x 3000
# sparse 0.75 and 4.1. But 44 and 151 reads of the data, instead of 11 and 19).
DENSE_ORDER = 1500
# Up to this order the Hessian is made in the sweep that tries a point, beyond where it
# is needed: it costs more than the sweep, and rejected points need none (mnist: a
# quarter less time; w8a: a tenth more).
EAGER_ORDER = 400
# It is updated by the rows that have changed since, where they are at most this share
# of the active rows (if that is not known yet: were so the last time), and at most this
# number of times (benchmarks/core/active_set.py).
CHANGED_SHARE, MOST_UPDATES = 0.7, 20
# Relative residual of conjugate gradients: the root of the relative gap, between these
# bounds; and their most steps. (ActiveSet, C from 1 to 100, sweeps with 0.1, scaled by
# the diagonal and by its root: targets of `documents` 103, 64; Reuters 163, 106;
# classes of `documents` 63, 32; scattered entries 2538, 752.)
CG_TOL, CG_MOST_TOL = 1e-2, 0.1
CG_STEPS = 500
# Seconds of a multiply-add in a matrix of row products, and of one entry, column and
# sweep of conjugate gradients: they are tried for as long as that matrix would take.
# (benchmarks/core/newton_costs.py: the matrix 0.5 to 2.1 of this, a step 0.8 to 1.3.)
PAIR_COST, ENTRY_COST, COLUMN_COST, SWEEP_COST = 7e-11, 1.4e-9, 3.7e-9, 2e-5
# BLAS makes the Hessian in float32, in half of the time, up to this bound of what
# rounding loses, in units of R = 1. It loses a hundredth of that, and steps are as many
# (benchmarks/core/augmented_lagrangian.py: features of rank 200 to 1,000 of a9a,
# ijcnn1, covtype and a drawn set, 0.6 to 0.9 of the time; the squared hinge, a half).
ROUGH = 1.0
# Share of the curvature of all rows that a free intercept has at least: no step divides
# by rounding, which is a millionth of that.
FREE_CURVATURE = 1e-9


@dataclass(frozen=True)
class Iterate:
    """What one sweep finds at v.

    Attributes
    ----------
    v : ndarray (k,)
    residual : ndarray (k,), gradient of L: Rv - A'alpha
    hessian : the matrix A'D A, or None where it is not made
    primal, dual : float, P(v) and D(alpha), the latter less what y'alpha != 0 costs
    value : float, L(v)
    active : int, rows strictly between their bounds
    imbalance : float, what y'alpha != 0 costs; 0 where b is not free
    """

    v: Vector
    residual: Vector
    hessian: Vector | None
    primal: float
    dual: float
    value: float
    active: int
    imbalance: float

    @property
    def gap(self) -> float:
        """P - D."""
        return self.primal - self.dual


def unseen(problem: Problem, v: Vector) -> Iterate:
    """A point that no sweep has seen: zero, or one that a sample says is better.

    A better one has an objective that is just so: what a sweep finds replaces it. Its
    step is marked as ``unseen``.
    """
    primal, zero = problem.zero_objective, np.zeros_like(v)
    if v.any():
        primal = float(np.nextafter(primal, 0.0))
    return Iterate(v, zero, None, primal, 0.0, 0.0, 0, 0.0)


def expected(point: Iterate, dv: Vector, gap: float) -> Iterate:
    """The point where Newton's step should end, before a sweep has looked at it."""
    primal = point.primal + 0.5 * float(point.residual @ dv)
    return replace(point, v=point.v + dv, primal=primal, dual=primal - gap)


class Piece:
    """The rows of A that may move, beside rows fixed at a bound.

    Minimizes 1/2 v'Rv + constant - fixed'v + sum C L(1 - f): rows fixed at alpha = C
    cost C (1 - f), rows fixed at 0 nothing.

    Parameters
    ----------
    A : SignedRows, Y [X 1] or Y X
    C : RowState with the vector ``C``, and perhaps ``q``
    R : ndarray (k,), diagonal of the ridge
    fixed, constant : ndarray (k,) and float
        Sums of C_i A_i and q_i C_i over the rows that are fixed at C.
    bounded : bool
        Whether alpha <= C; else the loss is its own augmented Lagrangian, with its
        curvature as the penalty, and no rows are fixed.
    single : bool or None
        Whether Hessians are float32 at first; None: where BLAS makes them. They are not
        for answers up to rounding.

    Attributes
    ----------
    state : RowState with ``f`` of the current point and ``new_f`` of the point that is
        tried; where alpha is bounded also ``alpha``, ``new_alpha`` and ``multiplier``.
        Up to 1500 columns with ``counted``: whether the Hessian as last made counts a
        row
    """

    def __init__(
        self,
        A: SignedRows,
        C: RowState,
        R: Vector,
        fixed: Vector | None = None,
        constant: float = 0.0,
        *,
        bounded: bool = True,
        single: bool | None = None,
    ) -> None:
        self.A, self._R, self._constant = A, R, constant
        self._fixed = np.zeros(R.size) if fixed is None else fixed
        self._free = R[-1] == 0.0
        self._dense = R.size <= min(DENSE_ORDER, A.shape[0])
        self._eager = self._dense and R.size <= EAGER_ORDER
        if single is None:
            single = linalg.takes_blas(R.size, A.density)
        self._dtype: Any = np.float32 if single else np.float64  # of the matrix
        self._gram: Vector | None = None
        self._updates = 0  # of this matrix since it was made
        self._stale = True  # whether it is to be made anew
        self._is_hard = False  # whether conjugate gradients took too long
        vectors = {"f": 0.0, "alpha": 0.0} if bounded else {"f": 0.0}
        self._shared = C.join(A.state(multiplier=0.0)) if bounded else C
        if self._dense:
            none = np.broadcast_to(np.uint8(0), A.shape[0])
            self._shared = self._shared.join(A.state(counted=none))
        self._here, self._there = (A.state(**vectors) for _ in range(2))
        self._least = FREE_CURVATURE * C.sweep(_total) if self._free else 0.0
        self._join()

    def _join(self) -> None:
        self._try = self._shared.join(self._there)
        self.state = self._shared.join(self._here).join(self._there.prefixed("new_"))

    def accept(self) -> None:
        """Make the point that was tried the current one."""
        self._here, self._there = self._there, self._here
        self._join()

    def evaluate(
        self, v: Vector, s: float, *, scores: bool = True, hessian: bool = True
    ) -> Iterate:
        """Try v, with the scores of the point tried before where ``scores`` is false.

        One sweep.
        """
        make = hessian and self._eager
        fresh = make and self._stale
        g, change, losses, linear, value, active, changed = self.A.sweep(
            _evaluate, self._try, v if scores else None, s, make, fresh, self._dtype
        )
        if make:
            self._add(change, fresh)
            self._stale |= not fresh and changed > CHANGED_SHARE * active
        g += self._fixed
        ridge = 0.5 * float(self._R @ (v * v))
        rest = ridge - float(self._fixed @ v) + self._constant
        residual = self._R * v - g
        imbalance = self._imbalance(residual, v)
        dual = self._constant + linear - 0.5 * float(self._R @ (g * g)) - imbalance
        matrix = self._gram if make else None
        return Iterate(
            v, residual, matrix, rest + losses, dual, rest + value, active, imbalance
        )

    def _add(self, change: Vector | None, fresh: bool) -> None:
        """Take what A'D A has grown by into the matrix, or make it that."""
        if fresh:
            self._gram, self._updates = change, 0
        elif change is not None:
            self._gram = change if self._gram is None else self._gram + change
            self._updates += 1
        self._stale = self._updates == MOST_UPDATES

    def renew_matrix(self) -> None:
        """Let the next Hessian be made of all its rows, in float64."""
        self._stale, self._dtype = True, np.float64

    def renew_multipliers(self) -> None:
        """Alpha as multipliers."""
        self.state.update(_renew)

    def revisit(self, v: Vector, s: float) -> Iterate:
        """The current point again, with the multipliers and the penalty as they are."""
        self.state.update(_renew_scores)
        point = self.evaluate(v, s, scores=False)
        self.accept()
        return point

    def half_norm(self, residual: Vector) -> float:
        """1/2 r'R r: how far L is from its minimum, at most."""
        return 0.5 * float(self._R @ (residual * residual))

    def gap_of(self, residual: Vector, v: Vector) -> float:
        """P - D of a point with that residual, where alpha is not bounded."""
        return self.half_norm(residual) + self._imbalance(residual, v)

    def _imbalance(self, residual: Vector, v: Vector) -> float:
        """What y'alpha != 0 costs."""
        return 3.0 * max(1.0, abs(v[-1])) * abs(residual[-1]) if self._free else 0.0

    def direction(self, point: Iterate, s: float, enough: float = 0.0) -> Vector:
        """Newton's direction from the current point.

        Conjugate gradients end where `half_norm` of the residual, and what y'alpha != 0
        costs, are ``enough``; where that is zero and a matrix of the active rows may be
        made, it is.
        """
        if self._dense and point.active:
            point = replace(point, hessian=self._hessian(point, s))
        return self._direction(point, s, enough)

    def newton_step(
        self, point: Iterate, s: float, dv: Vector | None = None
    ) -> Iterate:
        """The next point: Newton's direction with an exact line search where needed."""
        dv = self.direction(point, s) if dv is None else dv
        slope = float(point.residual @ dv)
        new = self.evaluate(point.v + dv, s)
        # Near the minimum the values agree to all digits, and the slope decides.
        flat = abs(new.value - point.value) <= 1e-6 * abs(point.value)
        falls = new.value <= point.value + 1e-4 * slope
        if not (falls or (flat and new.residual @ dv <= -0.5 * slope)):
            t = self._search(point, dv, s, -slope)
            new = self.evaluate(point.v + t * dv, s)
        self.accept()
        return new

    def _hessian(self, point: Iterate, s: float) -> Vector | None:
        """A'D A of the current point. Reads the rows where D has changed."""
        if point.hessian is None:
            changed = self.state.sweep(_count_changed)
            fresh = self._stale or changed > CHANGED_SHARE * point.active
            self._make(fresh)
        if self._dtype is np.float32 and not self._lost(s) <= ROUGH:
            self.renew_matrix()
            self._make(True)
        return self._gram

    def _lost(self, s: float) -> float:
        """What rounding to float32 may take from the last matrix, in units of R = 1."""
        return 0.0 if self._gram is None else s * float(self._gram.trace()) * SINGLE

    @property
    def matrix(self) -> Vector | None:
        """A'D A as last made; None where it is not."""
        return self._gram

    def takes_single(self, s: float) -> bool | None:
        """Whether float32 will do for Hessians of the rows that these stand for.

        None where nothing is known, or float32 saves no time.
        """
        if self._gram is None or self.A.density <= linalg.DENSE_GRAM_DENSITY:
            return None
        return self._lost(s) <= 0.5 * ROUGH

    def _make(self, fresh: bool) -> None:
        """Make the matrix of the current point, of its changes or as a whole."""
        change = self.A.sweep(_gram_change, self.state, fresh, self._dtype)
        self._add(change, fresh)

    def _search(self, point: Iterate, dv: Vector, s: float, scale: float) -> float:
        """Step to the minimum of L along dv, to a tenth of the slope. No read of X."""
        first = float((self._R * point.v - self._fixed) @ dv)
        second = float(self._R @ (dv * dv))

        def slope(t: float) -> tuple[float, float, float]:
            rows, curvature = self.state.sweep(_slope, s, t)
            return rows + first + t * second, curvature + second, scale

        return monotone_root(slope, 0.5, tol=0.1)

    def system(self, matrix: Vector, s: float) -> Vector:
        """R + s A'D A of that matrix A'D A."""
        H = s * matrix
        H[np.diag_indices_from(H)] += self._diagonal(s)
        return H

    def _diagonal(self, s: float) -> Vector:
        """R, with the least curvature of a free intercept."""
        diagonal = self._R.copy()
        if self._free:
            diagonal[-1] = s * self._least
        return diagonal

    def _direction(self, point: Iterate, s: float, enough: float) -> Vector:
        """-(R + s A'D A)^-1 r."""
        diagonal = self._diagonal(s)
        if not point.active:
            return -point.residual / diagonal
        if point.hessian is None:
            may, steps = point.active <= DENSE_ORDER, CG_STEPS
            if may:
                steps = self._cheap_steps(point.active) if enough > 0.0 else 0
            if steps:
                x, found = self._conjugate_gradients(s, diagonal, point, enough, steps)
                if found or not may:
                    return x
                self._is_hard = True
            blocks, weights = self.A.sweep(_active_rows, self.state)
            d = s * np.concatenate(weights)
            return _woodbury(linalg.stack(blocks), d, diagonal, -point.residual)
        solve, _ = cholesky(self.system(point.hessian, s))
        return solve(-point.residual)

    def _cheap_steps(self, active: int) -> int:
        """Steps of conjugate gradients that cost as much as a matrix of the rows."""
        if self._is_hard or not self.A.is_near:
            return 0
        n = self._R.size
        entries = self.A.density * n
        matrix = PAIR_COST * active * active * (active / 3.0 + entries)
        step = ENTRY_COST * active * entries + COLUMN_COST * n + SWEEP_COST
        return min(int(matrix / step), CG_STEPS)

    def _conjugate_gradients(
        self, s: float, diagonal: Vector, point: Iterate, enough: float, steps: int
    ) -> tuple[Vector, bool]:
        """Solve with the Hessian, and whether that was done. One sweep a step.

        Scaled by the root of its diagonal: the rare columns of a text are many, and its
        own diagonal would make them as heavy as the others.
        """
        own = diagonal + s * self.A.sweep(_hessian_diagonal, self.state)
        inverse, r = 1.0 / np.sqrt(own), -point.residual
        x, p, last = np.zeros_like(r), np.zeros_like(r), np.inf
        near = math.sqrt(max(point.gap, 0.0) / abs(point.primal or 1.0))
        share = min(max(near, CG_TOL), CG_MOST_TOL)
        goal = share * math.sqrt(r @ (r * inverse))
        for _ in range(steps):  # in place: r has many columns
            z = r * inverse
            rho = float(r @ z)
            off = self.gap_of(r, point.v)
            if math.sqrt(rho) <= goal or off <= enough:
                return x, True
            p *= rho / last
            p += z
            q = s * self.A.weighted_product(_weights, self.state, p)
            q += np.multiply(diagonal, p, out=z)
            step = rho / float(p @ q)
            q *= step
            r -= q
            x += np.multiply(step, p, out=z)
            last = rho
        return x, False


def _woodbury(A: Any, d: Vector, diagonal: Vector, r: Vector) -> Vector:
    """Solve with L + A'DA through a matrix of the rows A.

    (L + A'DA)^-1 r = L^-1 (r - A'z), where (D^-1 + A L^-1 A') z = A L^-1 r.
    """
    S = linalg.row_products(A, 1.0 / diagonal)
    S[np.diag_indices_from(S)] += 1.0 / d
    solve, _ = cholesky(S)
    return np.asarray((r - A.T @ solve(A @ (r / diagonal))) / diagonal)


def sampled(problem: Problem, size: int) -> Piece | None:
    """Some rows that stand for all of a problem, in memory; None where all are alike.

    One random row of each of ``size`` equal slices, or as many as may be copied,
    weighted so that sum C is the same.
    """
    size = int(min(size, problem.rows.copy_rows))
    spread = Spread(problem.rows.shape[0], size)
    if isinstance(problem.y, RowVector):
        return _sampled_there(problem, spread)
    index = spread.index()
    kept = slice(None) if problem.kept is None else problem.kept
    y, C = problem.y[kept][index], problem.C[kept][index]
    vectors = {} if problem.has_unit_margins else {"q": problem.q[kept][index]}
    if not size or np.ptp(y) == 0.0:
        return None
    X = as_rows(problem.rows.take(index), **problem.rows.options)
    A = X.signed(y, problem.intercept != "none")
    C = C * (problem.total_weight / C.sum())
    return Piece(A, A.state(C=C, **vectors), problem.R, bounded=problem.is_bounded)


def _sampled_there(problem: Problem, spread: Spread) -> Piece | None:
    """`sampled` for rows on a cluster, which stay there. One sweep."""
    if not spread.size or not problem.has_unit_margins:
        return None
    state = problem.state().join(problem.A.state(row=range(spread.m)))
    found = problem.rows.sweep(_sample, state, spread)
    if found is None or found[1].labels.min() == found[1].labels.max():
        return None
    rows, own = found
    A = rows.signed(own.labels, problem.intercept != "none")
    C = own.C * (problem.total_weight / own.C.sum())
    return Piece(A, A.state(C=C), problem.R, bounded=problem.is_bounded)


# -- functions of one block ------------------------------------------------------------


def _sample(block: Any, part: RowState, spread: Spread) -> Kept:
    """The rows of a sample."""
    own = spread.among(int(part.row[0]), len(part.row))
    vectors = {"labels": [part.labels[own]], "C": [part.C[own]]}
    return Kept([block[own]], vectors)


def _evaluate(
    block: Any,
    part: RowState,
    v: Vector | None,
    s: float,
    make: bool,
    fresh: bool,
    dtype: Any,
) -> tuple[Vector, Vector | None, float, float, float, int, int]:
    """A'alpha, the sums of P, D and L, how many rows have D > 0 and how many changed.

    Second, where asked for, what A'D A has grown by since ``counted``, or all of it.
    """
    k, width = block.shape
    g, gram, counted, d = np.zeros(width), None, None, None
    if make:
        counted = part.counted
        if block.has_core_gram:
            gram = np.empty((width, width))
        else:
            d = np.empty(k)
        if fresh:
            counted[:] = 0
    multiplier, alpha = _multiplier(part), getattr(part, "alpha", None)
    q = margins(part)
    if v is not None and np.ndim(q):
        part.f, v = block @ v + (1.0 - q), None
    losses, linear, value, active, changed = _core.penalty_sweep(
        block.in_core(),
        v,
        part.C,
        multiplier,
        s,
        part.f,
        alpha,
        g,
        counted,
        d,
        gram,
        dtype is np.float32,
    )
    if np.ndim(q):
        linear += float(
            (q - 1.0) @ (slopes(part.C, part.f) if alpha is None else alpha)
        )
    if counted is None:
        active = int(np.count_nonzero(_inside(part)))
    elif d is not None and changed:
        gram = block.gram(d, dtype)
    return g, gram, losses, linear, value, active, changed


def slopes(C: Vector, f: Vector) -> Vector:
    """Alpha of the squared hinge."""
    return np.asarray(2.0 * C * np.maximum(1.0 - f, 0.0))


def _multiplier(part: RowState) -> Vector | None:
    """The multipliers; None where alpha has no upper bound."""
    return getattr(part, "multiplier", None)


def _inside(part: RowState) -> Mask:
    """Whether alpha is strictly between its bounds."""
    if _multiplier(part) is None:
        return np.asarray(part.f < 1.0)
    return np.asarray((part.alpha > 0.0) & (part.alpha < part.C))


def _weights(part: RowState) -> Vector:
    """The diagonal of D: C where alpha is strictly between its bounds."""
    return np.asarray(part.C * _inside(part))


def _count_changed(part: RowState) -> int:
    return int(np.count_nonzero(_inside(part) != part.counted))


def _gram_change(block: Any, part: RowState, fresh: bool, dtype: Any) -> Vector | None:
    """What A'D A has grown by since ``counted``, which becomes D > 0; or all of it."""
    inside = _inside(part)
    d = part.C * (
        inside.astype(np.int8) - (0 if fresh else part.counted.astype(np.int8))
    )
    part.counted = inside
    return np.asarray(block.gram(d, dtype)) if d.any() else None


def _active_rows(block: Any, part: RowState) -> tuple[list[Any], list[Vector]] | None:
    """The rows with D > 0, and their D."""
    d = _weights(part)
    index = np.flatnonzero(d)
    return ([block[index]], [d[index]]) if index.size else None


def _hessian_diagonal(block: Any, part: RowState) -> Vector:
    return linalg.gram_diagonal(block, _weights(part))


def _slope(part: RowState, s: float, t: float) -> tuple[float, float]:
    """Derivatives of L's sum at t along f + t (new_f - f)."""
    multiplier = _multiplier(part)
    return _core.penalty_slope(part.C, multiplier, s, part.f, part.new_f, t)


def _renew(part: RowState) -> None:
    part.multiplier = part.alpha


def _renew_scores(part: RowState) -> None:
    part.new_f = part.f


def _total(part: RowState) -> float:
    return float(part.C.sum())
