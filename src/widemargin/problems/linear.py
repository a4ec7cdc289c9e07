"""The linear problem: objectives and certificates by sweeps of the rows.

With the sums of one sweep, A'alpha, sum alpha, sum alpha^2 / (4 C) and the losses, both
objectives are known, and how far rounding may have moved them.
"""

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from widemargin import _core
from widemargin.arrays import Vector
from widemargin.data.blocks import Depth
from widemargin.data.memory import as_rows
from widemargin.data.rows import Rows
from widemargin.data.state import RowState, finite
from widemargin.data.storage import well_stored
from widemargin.losses.pointwise import PointwiseLoss
from widemargin.numerics import rounding, twofold
from widemargin.numerics.rounding import Heavy, gamma_n
from widemargin.numerics.twofold import Twofold
from widemargin.problems.base import KINDS, Problem, margins
from widemargin.problems.intercept import (
    best_intercept,
    better_intercept,
    curved_intercept,
    scored_losses,
)
from widemargin.solution import Certificate
from widemargin.system.threads import ONE_BLAS_THREAD

# Dual variables are cleared where the slack is this many times their share of C: less
# may cost the gap; rows that the last steps still move are within some of them.
CLEAR = 100.0


class LinearProblem(Problem):
    """A problem in the columns of the data: what `Problem` makes without a kernel.

    It has the parameters of `Problem`; v = (w, b), or w without an intercept.
    """

    def _rows_of(self, features: ArrayLike) -> Rows:
        """The rows of data in memory, dense or CSR: as they are read faster."""
        return well_stored(as_rows(features))

    @property
    def order(self) -> int:
        """Length of v."""
        return self.A.shape[1]

    def split(self, v: Vector) -> tuple[Vector, float]:
        """The pair (w, b) of v."""
        if self.intercept == "none":
            return v.copy(), 0.0
        return v[:-1].copy(), float(v[-1])

    def stack(self, w: ArrayLike, b: float = 0.0) -> Vector:
        """The vector v of (w, b)."""
        w = finite("w", np.ravel(w), self.rows.shape[1])
        if self.intercept == "none":
            return w.copy()
        return np.append(w, finite("b", np.ravel(b), 1))

    def slopes(self, v: Vector) -> tuple[RowState, Certificate]:
        """Row state with alpha_i = C_i L'(q_i - (A v)_i), and its `bounds` with v.

        One sweep. For the squared hinge: (9) in [mangasarian2001]_.
        """
        state = self.state(alpha=0.0)
        at_once = self.has_unit_margins and not self.is_bounded
        slopes = _squared_slopes if at_once else _slopes
        losses, sums = self.A.sweep(slopes, state, v, self.pointwise)
        return state, self._bounds(v, losses, sums)

    @ONE_BLAS_THREAD
    def primal(self, w: ArrayLike, b: float = 0.0) -> float:
        """Primal objective P(w, b). One sweep."""
        v = self.stack(w, b)
        losses = self.A.sweep(_losses, self._state, v, self.pointwise)
        return self._ridge(v) + float(losses)

    @ONE_BLAS_THREAD
    def dual(self, alpha: ArrayLike) -> float:
        """Dual objective D of the repaired ``alpha`` (m,): at most P. One sweep."""
        state = self.dual_state(alpha)
        self.repair(state)
        return self._dual_value(*self.A.sweep(_dual_sums, state))

    def evaluate(self, state: RowState, v: Vector) -> tuple[Certificate, Vector]:
        """Certificate of v and the feasible ``alpha``, and A'alpha. One sweep."""
        losses, sums = self.A.sweep(_both_sums, state, v, self.pointwise)
        return self._bounds(v, losses, sums), sums[0]

    def evaluate_near(
        self, state: RowState, v: Vector, enough: float
    ) -> tuple[Certificate, Vector, Vector]:
        """Certificate with a better intercept, and v with it. One sweep of the data.

        P is at most about ``enough`` above that of the best intercept.
        """
        if self.intercept == "none":
            return *self.evaluate(state, v), v
        state = state.join(self.A.state(score=0.0))
        sums = self.A.sweep(_scores_and_sums, state, self._without_intercept(v))
        b = better_intercept(state, v[-1], self.pointwise, self.R[-1], enough)
        v = np.append(v[:-1], b)
        return self._bounds(v, self._scored_losses(state, v), sums), sums[0], v

    def _bounds(self, v: Vector, losses: float, sums: "DualSums") -> Certificate:
        """Bounds from float64 sums, by what these may be off."""
        g, (_, mass, _), squares, depth = sums
        # One more where q is rounded, as y - epsilon is: by a share of the slack and of
        # the score, as q is their sum.
        terms = len(v) + 2 + (self.q_rounding > 0.0)
        spread = gamma_n(terms) * float(np.abs(v) @ self._sizes)
        over = self.pointwise.excess(self._weights, losses, spread)
        length = self._weights.length(mass, squares)
        error = gamma_n(depth.additions + 3) * length * self._sizes
        return self._certificate(v, losses, over, sums, error)

    def _certificate(
        self,
        v: Vector,
        losses: float,
        over: float,
        sums: "DualSums",
        error: Vector,
        positive: tuple[Vector, float] | None = None,
    ) -> Certificate:
        """Bounds, with errors of the losses, of g = A'alpha and of sums.

        ``positive`` are the parts of g and of q'alpha that the rows of the class +1
        make, in float64.
        """
        g, (_, _, size), squares, depth = sums
        off = gamma_n(depth.additions + 8) * rounding.SLACK
        ridge, squares = self._ridge(v), squares * self.pointwise.dual_share
        over += off * losses + gamma_n(len(v) + 2) * ridge
        under = rounding.dual_error(g, error, self.R) + off * (size + squares)
        primal, dual = ridge + losses, self._dual_value(*sums)
        if self.intercept == "free":
            cost, more = self._cost_by_sums(sums, error, positive)
            dual, under = dual - cost, under + more
        return Certificate(primal + over, dual - under, self.scale, over + under)

    def _cost_by_sums(
        self, sums: "DualSums", error: Vector, positive: tuple[Vector, float] | None
    ) -> tuple[float, float]:
        """What exact feasibility costs, and how far off that may be."""
        g, (linear, total, size), squares, depth = sums
        length = self._weights.length(total, squares)
        sizes, w = self._sizes[:-1], np.abs(g[:-1]) + error[:-1]
        slope = size + length * float(w @ sizes)
        whole = total, slope, length * length * float(sizes @ sizes)  # no OverflowError
        residual, off = abs(float(g[-1])), float(error[-1])
        if positive is None:
            return 0.0, rounding.repair_error(residual + off, *whole)
        is_positive = g[-1] > 0.0
        part = positive[0] if is_positive else g - positive[0]
        mass, share = abs(float(part[-1])), gamma_n(depth.additions + len(g) + 8)
        rounded = 2.0 * share * slope + length * float(error[:-1] @ sizes)
        reached = mass
        if not self.has_unit_margins:
            reached = positive[1] if is_positive else linear - positive[1]
        heavy = Heavy(mass, share, reached - float(g[:-1] @ part[:-1]), rounded)
        return rounding.repair_cost(residual, off, heavy, whole)

    def twofold_bounds(self, state: RowState, v: Vector) -> Certificate:
        """Bounds from sums in twice the precision. One sweep."""
        state = state.join(self.A.state())
        losses, g, positive, scalars = self.A.sweep(
            _twofold_sums, state, v, self.pointwise, self.q_rounding
        )
        sums, depth = (g.hi, *scalars), scalars[2]
        error = g.error(depth.additions + len(v))
        return self._certificate(v, losses, 0.0, sums, error, positive)

    @property
    def _sizes(self) -> Vector:
        """Lengths of the columns of A. A sweep, the first time, of centered rows."""
        # Not functools.cached_property: see `Rows.moments`.
        if self._column_sizes is None:
            has, (m, _) = self.intercept != "none", self.rows.shape
            self._column_sizes = rounding.column_sizes(*self.rows.moments, m, has)
        return self._column_sizes

    @functools.cached_property
    def _weights(self) -> rounding.Weights:
        return rounding.Weights(float(self.C.max()), self.total_weight)

    def answer(
        self, alpha: Vector, v: Vector, tol: float
    ) -> tuple[Vector, Vector, float, Certificate]:
        """The best answer (alpha, w, b) near a point, with its certificate."""
        state = self.dual_state(alpha)
        v, bounds = self.finish(state, v, tol)
        alpha = self.gather(state)
        w, b = self.split(v)
        if self.intercept == "free":  # `repair` is not idempotent, by rounding
            bounds = self.certify(alpha, w, b, tol=tol)
        elif bounds.hides(tol):
            bounds = self.twofold_bounds(state, v)
        return alpha, w, b, bounds

    def finish(
        self, state: RowState, v: Vector, tol: float
    ) -> tuple[Vector, Certificate]:
        """Best answer near (v, alpha): ``alpha`` feasible, in place; best intercept.

        With its certificate, by the sums that were made of just these v and alpha.

        Rows that do not matter are to be no support vectors. So the first choice is
        alpha rounded to the bounds that the margins suggest, the second is alpha with
        tiny entries cleared; each only if its gap is within ``tol``, or not above the
        gap of ``alpha``. Where ``tol`` is missed, w = X'Y alpha is tried too, and of
        the squared loss, before that, the best intercept where it is penalized. Two
        sweeps to five.
        """
        state = state.join(self.A.state(score=0.0, sparser=0.0))
        self.repair(state)
        self.A.sweep(_scores, state, self._without_intercept(v))
        v = self._with_best_intercept(state, v)
        losses = self._scored_losses(state, v)
        first = self._rounded(state, v, losses)
        if not first[1].relative_gap <= tol and self._has_curved_intercept:
            b = curved_intercept(state, v[-1], self.pointwise, self.R[-1])
            v = np.append(v[:-1], b)
            losses = self._scored_losses(state, v)
            first = self._rounded(state, v, losses)
        sums, bounds = self._sparsest(state, v, losses, tol, first)
        if not bounds.relative_gap <= tol:
            dual = np.where(self.R > 0, sums[0], v)
            self.A.sweep(_scores, state, self._without_intercept(dual))
            dual = self._with_best_intercept(state, dual)
            other = self._bounds(dual, self._scored_losses(state, dual), sums)
            if other.primal < bounds.primal:
                v, bounds = dual, other
        return v, bounds

    @property
    def _has_curved_intercept(self) -> bool:
        """Whether an intercept that P bends in need not be the best one by itself."""
        return self.intercept == "penalized" and bool(self.pointwise.curvature)

    def _rounded(
        self, state: RowState, v: Vector, losses: float
    ) -> tuple["DualSums", Certificate]:
        """Sums and bounds of the first choice of alpha, which is ``sparser`` now."""
        self._round(state, v, _round_to_margins)
        sums = self.A.sweep(_sums_of, state, "sparser")
        return sums, self._bounds(v, losses, sums)

    def _sparsest(
        self,
        state: RowState,
        v: Vector,
        losses: float,
        tol: float,
        first: tuple["DualSums", Certificate],
    ) -> tuple["DualSums", Certificate]:
        """The first choice of alpha that will do, in place: its sums and its bounds."""
        if first[1].relative_gap <= tol:
            state.update(_copy, "sparser", "alpha")
            return first
        self._round(state, v, _clear)
        both = self.A.sweep(_sums_of_two, state, "alpha", "sparser")
        as_is, cleared = ((sums, self._bounds(v, losses, sums)) for sums in both)
        bounds = as_is[1]
        size = max(abs(bounds.primal), self.scale)
        enough = min(bounds.dual, bounds.primal - tol * size)
        if first[1].dual >= enough:
            self._round(state, v, _round_to_margins)  # again: a vector less to keep
            found = first
        elif cleared[1].dual >= enough:
            found = cleared
        else:
            return as_is
        state.update(_copy, "sparser", "alpha")
        return found

    def _round(self, state: RowState, v: Vector, rule: Callable[..., None]) -> None:
        """Alpha by a rule, made feasible, as ``sparser``."""
        state.update(rule, self.split(v)[1], self.pointwise)
        self.repair(state, "sparser")

    def _ridge(self, v: Vector) -> float:
        """1/2 v'Rv."""
        return 0.5 * float((self.R * v) @ v)  # the square of a free b may overflow

    def _dual_value(
        self,
        g: Vector,
        linear: "Linear",
        squares: float,
        _: Depth | None = None,
    ) -> float:
        """Dual objective from g = A'alpha, q'alpha and sum alpha^2 / (4 C)."""
        quadratic = 0.5 * float(self.R @ (g * g))  # R^-1 = R: entries are 0 or 1
        return float(linear[0]) - quadratic - self.pointwise.dual_share * float(squares)

    def best_intercept(self, w: ArrayLike, b: float = 0.0) -> float:
        """The free intercept that minimizes P for w, nearest to b; b if it is not free.

        For the hinge the slope of P in b rises by C_i at b = y_i q_i - x_i'w, from
        minus the C of the positive class: an exact weighted selection. For the squared
        hinge the slope is piecewise linear, and Newton's method ends after finitely
        many steps.
        One sweep.
        """
        v, state = self.stack(w, b), self.state(score=0.0)
        self.A.sweep(_scores, state, self._without_intercept(v))
        return self.split(self._with_best_intercept(state, v))[1]

    def _without_intercept(self, v: Vector) -> Vector:
        """V with b = 0, whose product with A is ``score`` by the labels."""
        return v if self.intercept == "none" else np.append(v[:-1], 0.0)

    def _with_best_intercept(self, state: RowState, v: Vector) -> Vector:
        """V with the best intercept for the ``score`` x'w."""
        if self.intercept != "free":
            return v
        return np.append(v[:-1], best_intercept(state, float(v[-1]), self.pointwise))

    def _scored_losses(self, state: RowState, v: Vector) -> float:
        """Sum C L from the ``score`` x'w."""
        return float(state.sweep(scored_losses, self.split(v)[1], self.pointwise))


KINDS["linear"] = LinearProblem


# -- functions of one block ------------------------------------------------------------


def _losses(block: Any, part: RowState, v: Vector, loss: PointwiseLoss) -> float:
    return loss.total(part.C, margins(part) - block @ v)


# Sums q'alpha, sum alpha and |q|'alpha: three times the same where q = 1.
Linear = tuple[float, float, float]
# A'alpha, these, sum alpha^2 / (4 C), and how they were added up.
DualSums = tuple[Vector, Linear, float, Depth]


def _dual_sums(block: Any, part: RowState) -> DualSums:
    return _sums_of(block, part, "alpha")


def _sums_of(block: Any, part: RowState, name: str) -> DualSums:
    return np.asarray(block.T @ getattr(part, name)), *_scalar_sums(part, name)


def _sums_of_two(
    block: Any, part: RowState, first: str, second: str
) -> tuple[DualSums, DualSums]:
    return _sums_of(block, part, first), _sums_of(block, part, second)


def _scalar_sums(part: RowState, name: str) -> tuple[Linear, float, Depth]:
    alpha, q = getattr(part, name), margins(part)
    squares = 0.25 * float(alpha @ (alpha / part.C))
    total = reached = size = float(alpha.sum())
    if np.ndim(q):
        reached, size = float(q @ alpha), float(np.abs(q) @ alpha)
    return (reached, total, size), squares, Depth(len(alpha))


def _both_sums(
    block: Any, part: RowState, v: Vector, loss: PointwiseLoss
) -> tuple[float, DualSums]:
    return _losses(block, part, v, loss), _dual_sums(block, part)


def _twofold_sums(
    block: Any, part: RowState, v: Vector, loss: PointwiseLoss, off: float
) -> tuple[float, Twofold, tuple[Vector, float], tuple[Linear, float, Depth]]:
    """Sums in twice the precision, and losses that no error makes too small.

    And the parts of A'alpha and q'alpha that the class +1 makes, in float64.
    """
    hi, lo, size = twofold.matvec(block, v)
    q = margins(part)
    t = twofold.slacks(hi, lo, twofold.bound(size, len(v) + 1), q, off)[1]
    g = Twofold(*np.zeros((3, len(v))))
    twofold.rmatvec(block, part.alpha, g.hi, g.lo, g.size)
    own = part.alpha * (part.labels > 0)
    positive = np.asarray(block.T @ own), float((q * own).sum())
    sums = _scalar_sums(part, "alpha")
    return loss.total(part.C, t), g, positive, sums


def _slopes(
    block: Any, part: RowState, v: Vector, loss: PointwiseLoss
) -> tuple[float, DualSums]:
    t = margins(part) - block @ v
    part.alpha = part.C * loss.slope(t)
    return loss.total(part.C, t), _dual_sums(block, part)


def _squared_slopes(
    block: Any, part: RowState, v: Vector, loss: PointwiseLoss
) -> tuple[float, DualSums]:
    """Losses and slopes of the squared hinge with margins 1: each row is read once."""
    f, g = np.empty(len(part.alpha)), np.zeros(len(v))
    losses, linear, *_ = _core.penalty_sweep(
        block.in_core(), v, part.C, None, loss.curvature, f, part.alpha, g
    )
    total = linear + losses  # sum C L is sum alpha^2 / (4 C)
    return losses, (g, (total, total, total), losses, Depth(len(f)))


def _scores_and_sums(block: Any, part: RowState, w: Vector) -> DualSums:
    _scores(block, part, w)
    return _dual_sums(block, part)


def _scores(block: Any, part: RowState, w: Vector) -> None:
    part.score = part.labels * (block @ w)


def _round_to_margins(part: RowState, b: float, loss: PointwiseLoss) -> None:
    """Alpha_i = 0 where s_i > alpha_i / C_i, and C_i where xi_i > 1 - alpha_i / C_i."""
    slack, share = _slack_and_share(part, b, loss)
    rounded = np.where(slack > share, 0.0, part.alpha)
    part.sparser = (
        np.where(-slack > 1.0 - share, part.C, rounded) if loss.is_bounded else rounded
    )


def _clear(part: RowState, b: float, loss: PointwiseLoss) -> None:
    """Zero only where s_i > 100 alpha_i / C_i (hinge).

    Below that it is open at which bound the row ends, and setting many of these rows to
    zero can cost the gap.
    """
    slack, share = _slack_and_share(part, b, loss)
    part.sparser = np.where(slack > CLEAR * share, 0.0, part.alpha)


def _slack_and_share(
    part: RowState, b: float, loss: PointwiseLoss
) -> tuple[Vector, Vector]:
    """Y (x'w + b) - q, and alpha / C, or half of it for the squared hinge."""
    slack = part.labels * (part.score + b) - margins(part)
    return slack, loss.share(part.alpha, part.C)


def _copy(part: RowState, source: str, target: str) -> None:
    setattr(part, target, getattr(part, source))
