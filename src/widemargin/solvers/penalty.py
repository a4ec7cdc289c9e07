"""The augmented Lagrangian of a hinge problem, and Newton's method on it.

For multipliers lambda in [0, C] and a penalty s, with f = A v,

    L(v) = 1/2 v'Rv - c'v + sum_i max_{0 <= a <= C_i} a (1 - f_i)
                                  - (a - lambda_i)^2 / (2 s C_i)

attains its inner maxima at alpha_i = clip(lambda_i + s C_i (1 - f_i), 0, C_i). Its
gradient is r = Rv - c - A'alpha, its generalised Hessian R + s A'D A with D_i = C_i
where 0 < alpha_i < C_i, else 0. c and a constant come from rows that are fixed at a
bound (see `Piece`). The penalty s C_i of a row makes a row of weight 2 the same as a
row that occurs twice.
"""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from widemargin import _core, linalg
from widemargin.data.rows import Rows
from widemargin.data.state import RowState
from widemargin.roots import monotone_root
from widemargin.solvers.cholesky import cholesky

Vector = NDArray[np.float64]

# Order up to which the Hessian is formed and factored; beyond, conjugate gradients.
DENSE_ORDER = 1500
# Up to this order the Hessian is made in the sweep that tries a point, beyond where it
# is needed: it costs more than the sweep, and rejected points need none (mnist: a
# quarter less time; w8a: a tenth more).
EAGER_ORDER = 400
# Beyond, it is updated by the rows that have changed since the last one, where they are
# at most this share of the active ones, and so many times.
CHANGED_SHARE, MOST_UPDATES = 0.7, 20
# Relative residual of conjugate gradients, and their most steps.
CG_TOL = 1e-2
CG_STEPS = 500
# Share of the curvature of all rows that a free intercept has at least.
FREE_CURVATURE = 1e-9


@dataclass(frozen=True)
class Point:
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


class Piece:
    """The rows of A that may move, beside rows fixed at a bound.

    Minimises 1/2 v'Rv + constant - fixed'v + sum C h(1 - A v): rows fixed at alpha = C
    cost C (1 - f), rows fixed at 0 nothing.

    Parameters
    ----------
    A : Rows, Y [X 1] or Y X
    C : RowState with the vector ``C``
    R : ndarray (k,), diagonal of the ridge
    fixed, constant : ndarray (k,) and float
        Sums of C_i A_i and C_i over the rows that are fixed at C.

    Attributes
    ----------
    state : RowState with ``f`` and ``alpha`` of the current point, ``multiplier``, and
        ``new_f`` and ``new_alpha`` of the point that is tried; with many columns also
        ``counted``, the D of the Hessian as it was last made
    """

    def __init__(
        self, A: Rows, C: RowState, R: Vector, fixed: Vector, constant: float
    ) -> None:
        self.A, self._R, self._fixed, self._constant = A, R, fixed, constant
        self._free = R[-1] == 0.0
        self._dense = R.size <= min(DENSE_ORDER, A.shape[0])
        self._eager = self._dense and R.size <= EAGER_ORDER
        self._gram: Vector | None = None
        self._updates = 0  # of this matrix since it was made
        self._shared = C.join(A.state(multiplier=0.0))
        if self._dense and not self._eager:  # what `_gram` is made of
            self._shared = self._shared.join(A.state(counted=0.0))
        self._here, self._there = (A.state(f=0.0, alpha=0.0) for _ in range(2))
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
    ) -> Point:
        """Try v, with the scores of the point tried before where ``scores`` is false.

        One sweep.
        """
        g, matrix, active, losses, linear, value = self.A.sweep(
            _evaluate, self._try, v if scores else None, s, hessian and self._eager
        )
        g += self._fixed
        ridge = 0.5 * float(self._R @ (v * v))
        rest = ridge - float(self._fixed @ v) + self._constant
        residual = self._R * v - g
        imbalance = 0.0
        if self._free:
            imbalance = 3.0 * max(1.0, abs(v[-1])) * abs(residual[-1])
        dual = self._constant + linear - 0.5 * float(self._R @ (g * g)) - imbalance
        return Point(
            v, residual, matrix, rest + losses, dual, rest + value, active, imbalance
        )

    def renew_multipliers(self) -> None:
        """Alpha as multipliers."""
        self.state.sweep(_renew)

    def revisit(self, v: Vector, s: float) -> Point:
        """The current point again, with the multipliers and the penalty as they are."""
        self.state.sweep(_renew_scores)
        point = self.evaluate(v, s, scores=False)
        self.accept()
        return point

    def half_norm(self, residual: Vector) -> float:
        """1/2 r'R r: how far L is from its minimum, at most."""
        return 0.5 * float(self._R @ (residual * residual))

    def newton_step(self, point: Point, s: float) -> Point:
        """The next point: Newton's direction with an exact line search where needed."""
        if self._dense and point.active and point.hessian is None:
            point = replace(point, hessian=self._hessian(point.active))
        dv = self._direction(point, s)
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

    def _hessian(self, active: int) -> Vector:
        """A'D A of the current point. Reads the rows where D is, or has changed."""
        if self._eager:
            return np.asarray(self.A.sweep(_active_gram, self.state))
        changed = self.state.sweep(_count_changed)
        if self._updates == MOST_UPDATES or changed > CHANGED_SHARE * active:
            self._gram, self._updates = None, 0
            self.state.counted = 0.0
        change = self.A.sweep(_gram_change, self.state)
        if self._gram is None or change is None:
            self._gram = change if self._gram is None else self._gram
        else:
            self._gram, self._updates = self._gram + change, self._updates + 1
        return self._gram

    def _search(self, point: Point, dv: Vector, s: float, scale: float) -> float:
        """Step to the minimum of L along dv, to a tenth of the slope. No read of X."""
        first = float((self._R * point.v - self._fixed) @ dv)
        second = float(self._R @ (dv * dv))

        def slope(t: float) -> tuple[float, float, float]:
            rows, curvature = self.state.sweep(_slope, s, t)
            return rows + first + t * second, curvature + second, scale

        return monotone_root(slope, 0.5, tol=0.1)

    def _direction(self, point: Point, s: float) -> Vector:
        """-(R + s A'D A)^-1 r."""
        diagonal = self._R.copy()
        if self._free:
            diagonal[-1] = s * self._least
        if not point.active:
            return -point.residual / diagonal
        if point.hessian is None:
            if point.active > DENSE_ORDER:
                return self._conjugate_gradients(s, diagonal, -point.residual)
            blocks, weights = self.A.sweep(_active_rows, self.state)
            d = s * np.concatenate(weights)
            return _woodbury(linalg.stack(blocks), d, diagonal, -point.residual)
        H = s * point.hessian
        H[np.diag_indices_from(H)] += diagonal
        solve, _ = cholesky(H)
        return solve(-point.residual)

    def _conjugate_gradients(self, s: float, diagonal: Vector, r: Vector) -> Vector:
        """Solve with the Hessian, scaled by its diagonal. One sweep a step."""
        scale = diagonal + s * self.A.sweep(_hessian_diagonal, self.state)
        x, p, last = np.zeros_like(r), np.zeros_like(r), np.inf
        goal = CG_TOL * float(np.sqrt(r @ (r / scale)))
        for _ in range(CG_STEPS):
            z = r / scale
            rho = float(r @ z)
            if np.sqrt(rho) <= goal:
                break
            p = z + rho / last * p
            q = diagonal * p + s * self.A.sweep(_hessian_product, self.state, p)
            step = rho / float(p @ q)
            x, r, last = x + step * p, r - step * q, rho
        return x


def _woodbury(A: Any, d: Vector, diagonal: Vector, r: Vector) -> Vector:
    """Solve with L + A'DA through a matrix of the rows A.

    (L + A'DA)^-1 r = L^-1 (r - A'z), where (D^-1 + A L^-1 A') z = A L^-1 r.
    """
    S = linalg.row_products(A, 1.0 / diagonal)
    S[np.diag_indices_from(S)] += 1.0 / d
    solve, _ = cholesky(S)
    return np.asarray((r - A.T @ solve(A @ (r / diagonal))) / diagonal)


# -- functions of one block ------------------------------------------------------------


def _evaluate(
    block: Any, part: RowState, v: Vector | None, s: float, hessian: bool
) -> tuple[Vector, Vector | None, int, float, float, float]:
    """A'alpha, A'D A where asked for, rows with D > 0, and the sums of P, D and L."""
    g = np.zeros(block.shape[1])
    sums = _core.penalty_sweep(
        block.in_core(), v, part.C, part.multiplier, s, part.f, part.alpha, g
    )
    d = _weights(part)
    active = int(np.count_nonzero(d))
    return g, block.gram(d) if hessian and active else None, active, *sums


def _weights(part: RowState) -> Vector:
    """The diagonal of D: C where alpha is strictly between its bounds."""
    inside = (part.alpha > 0.0) & (part.alpha < part.C)
    return np.asarray(part.C * inside)


def _active_gram(block: Any, part: RowState) -> Vector:
    return np.asarray(block.gram(_weights(part)))


def _count_changed(part: RowState) -> int:
    return int(np.count_nonzero(_weights(part) != part.counted))


def _gram_change(block: Any, part: RowState) -> Vector | None:
    """What A'D A has grown by since ``counted``, which becomes D."""
    d = _weights(part)
    change = d - part.counted
    part.counted = d
    total = None
    for sign in (1.0, -1.0):
        grown = np.maximum(sign * change, 0.0)
        if grown.any():
            term = sign * block.gram(grown)
            total = term if total is None else total + term
    return total


def _active_rows(block: Any, part: RowState) -> tuple[list[Any], list[Vector]] | None:
    """The rows with D > 0, and their D."""
    d = _weights(part)
    index = np.flatnonzero(d)
    return ([block[index]], [d[index]]) if index.size else None


def _hessian_diagonal(block: Any, part: RowState) -> Vector:
    return linalg.gram_diagonal(block, _weights(part))


def _hessian_product(block: Any, part: RowState, p: Vector) -> Vector:
    return np.asarray(block.T @ (_weights(part) * (block @ p)))


def _slope(part: RowState, s: float, t: float) -> tuple[float, float]:
    """Derivatives of L's sum at t along f + t (new_f - f)."""
    return _core.penalty_slope(part.C, part.multiplier, s, part.f, part.new_f, t)


def _renew(part: RowState) -> None:
    part.multiplier = part.alpha


def _renew_scores(part: RowState) -> None:
    part.new_f = part.f


def _total(part: RowState) -> float:
    return float(part.C.sum())
