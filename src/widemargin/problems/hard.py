"""Hard margins: C = inf, where every margin has to be reached and no loss is allowed.

    minimize  1/2 (w'w + p b^2)   subject to   y_i (x_i'w + b) >= q_i,
    maximize  D(alpha) = q'alpha - 1/2 g'R^-1 g   over alpha >= 0, without a bound,

and y'alpha = 0 where the intercept is free. Each alpha is feasible for the hinge with
the finite weight C = max alpha, whose optimum is no larger: its lower bounds are lower
bounds here. An upper bound needs a point that reaches all margins. Where q = 1 any w
and b that tell the classes apart become one by a factor.

Where no point reaches the margins D is not bounded: there is an alpha with g = 0 and
q'alpha > 0, which says that the convex hulls of the classes meet. Sums round: what is
proved is that 1/2 w'w had to be at least `HardProblem.most`.
"""

import dataclasses
import functools
import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from widemargin.arrays import Vector
from widemargin.data.rows import Rows
from widemargin.data.state import RowState
from widemargin.losses.pointwise import LOSSES
from widemargin.numerics import twofold
from widemargin.numerics.rounding import SLACK, UNIT, gamma_n
from widemargin.parameters import Checker
from widemargin.problems.base import FLOOR, KINDS, LEAST_FLOOR, Problem, margins
from widemargin.solution import Certificate

# A margin below this share of the length of the rows counts as none: what rounding
# leaves of a hull that meets another: a hundred roundings of sums by columns, and the
# root of as many by kernel values, which are squares.
TINY, TINY_OF_KERNEL = 1e-13, 1e-7
# Where q is not 1: what a typical objective is at least, below which gaps count as none
# and squares underflow to a proof of anything; and at most, above which sums overflow.
LEAST_TYPICAL, MOST_TYPICAL = LEAST_FLOOR, 1e300


class HardProblem(Problem):
    """A problem with C = inf: what `Problem` makes when a weight is infinite.

    Parameters
    ----------
    features, y : as of `Problem`
    C : inf, or array (m,) of inf and 0
        A row with 0 is left out.
    loss : {"hinge", "squared_hinge"}, default="hinge"
        The same problem, but for what the intercept "auto" is.
    intercept : as of `Problem`
    **options
        ``q``, ``kernel`` and ``memory_limit``, as of `Problem`.

    Attributes
    ----------
    soft : Problem, the same with the hinge and C = 1
    most : float
        An objective that counts as none: of a margin of 1e-13 of the length of the
        rows, or 1e-7 with a kernel.

    Raises
    ------
    ValueError
        As of `Problem`, finite weights beside infinite ones, or a q, other than 1, so
        small or large beside the rows that 1/2 w'w would leave the range of floats.
    """

    def __init__(
        self,
        features: Rows | ArrayLike,
        y: ArrayLike,
        C: ArrayLike = np.inf,
        loss: str = "hinge",
        intercept: str = "auto",
        **options: Any,
    ) -> None:
        Checker("Problem").choice("loss", loss, tuple(LOSSES))
        if intercept == "auto":
            intercept = LOSSES[loss].intercept
        weights = _one_for_infinity(C)
        self.soft = soft = Problem(features, y, weights, "hinge", intercept, **options)
        self.shape, self.rows, self.kept = soft.shape, soft.rows, soft.kept
        self.A, self.R, self.y, self.q = soft.A, soft.R, soft.y, soft.q
        self.C = np.where(soft.C > 0.0, np.inf, 0.0)
        self._total = np.inf
        self.couples, self.intercept = soft.couples, soft.intercept
        self.loss, self.pointwise = loss, soft.pointwise
        if not self.has_unit_margins:
            self._refuse_sizes()

    def _refuse_sizes(self) -> None:
        """Refuse margins whose objective leaves the range of floats."""
        with np.errstate(over="ignore"):
            size, half = self.reach, self.typical
        least = 0.0 if self.is_met_by_zero else LEAST_TYPICAL
        if least <= half <= MOST_TYPICAL:
            return
        low, high = (math.sqrt(2.0 * end) for end in (LEAST_TYPICAL, MOST_TYPICAL))
        raise ValueError(
            "With C=inf the size of q (in a regression: of y and epsilon) over that of "
            f"the rows must be in the range {low:.1e} to {high:.1e}: scale q. Got "
            f"{size:.3g} over {self.length:.3g} instead."
        )

    def at(self, C: float, shift: float = 0.0) -> Problem:
        """The problem of the hinge with a finite C, and margins q + ``shift``."""
        soft = self.soft
        q = soft.q if shift == 0.0 else soft.q + shift
        other = soft.with_margins(q, 1.0 / C)
        other.view(soft.rows)
        if soft.couples:
            other.scores = other._answered = None  # type: ignore[attr-defined]
        return other

    @property
    def order(self) -> int:
        """Length of v."""
        return self.soft.order

    @property
    def kernel_facts(self) -> dict[str, Any]:
        """What tells its kernel from others."""
        return self.soft.kernel_facts

    def split(self, v: Vector) -> tuple[Vector, float]:
        """The pair (w, b) of v."""
        return self.soft.split(v)

    def stack(self, w: ArrayLike, b: float = 0.0) -> Vector:
        """The vector v of (w, b)."""
        return self.soft.stack(w, b)

    # -- sizes -------------------------------------------------------------------------

    @functools.cached_property
    def length(self) -> float:
        """Root of the mean square of the lengths of the rows; 1 where all are zero."""
        soft: Any = self.soft
        if soft.couples:
            return float(np.sqrt(np.abs(soft.columns.diag()).mean())) or 1.0
        sizes = np.hypot(*soft.rows.moments)
        if self.intercept == "penalized":
            sizes = np.append(sizes, 1.0)
        largest = float(sizes.max()) or 1.0  # squares may be 0 or infinite
        return largest * (float(np.linalg.norm(sizes / largest)) or 1.0)

    @functools.cached_property
    def reach(self) -> float:
        """The size of margins: 1, or the mean ``|q|``."""
        return 1.0 if self.has_unit_margins else float(np.abs(self.q).mean()) or 1.0

    @property
    def typical(self) -> float:
        """The objective of a margin as large as the rows."""
        needed = self.reach / self.length
        return 0.5 * needed * needed  # perhaps infinite, which a power would refuse

    @functools.cached_property
    def is_met_by_zero(self) -> bool:
        """Whether w = 0 reaches all margins: it is optimal then."""
        return not bool((self.q[self.C > 0.0] > 0.0).any())

    @property
    def most(self) -> float:
        """The objective of a margin that counts as none."""
        tiny = TINY_OF_KERNEL if self.couples else TINY
        needed = self.reach / (tiny * self.length)
        return 0.5 * needed * needed  # perhaps infinite, which a power would refuse

    @property
    def scale(self) -> float:
        """Floor of ``|P|``, where q is not 1: 1e-10 of a typical objective."""
        if self.has_unit_margins:
            return 0.0
        return max(FLOOR * self.typical, LEAST_FLOOR)

    # -- bounds ------------------------------------------------------------------------

    def primal(self, w: ArrayLike, b: float = 0.0) -> float:
        """The upper bound that (w, b) proves: see `certify`; else infinity."""
        return self.upper_bound(self.stack(w, b))[0]

    def dual(self, alpha: ArrayLike) -> float:
        """Dual objective D of the repaired ``alpha`` (m,)."""
        return self.at(_largest(alpha)).dual(alpha)

    def certify(
        self, alpha: ArrayLike, w: ArrayLike, b: float = 0.0, *, tol: float = 0.0
    ) -> Certificate:
        """Certificate of an answer: bounds of the optimum that rounding cannot break.

        The upper bound is that of (w, b); where a margin is not reached, it is that of
        (w, b) divided by the smallest one, if q = 1, else infinite.

        Parameters
        ----------
        alpha : ndarray (m,), made feasible first
        w : ndarray (n,), or (m,) with a kernel
        b : float
        tol : float >= 0, default=0.0
            As of `Problem.certify`.

        Returns
        -------
        Certificate
        """
        below = self.at(_largest(alpha)).certify(alpha, w, b, tol=tol)
        primal, over = self.upper_bound(self.stack(w, b))
        return Certificate(primal, below.dual, self.scale, below.rounding + over)

    def upper_bound(self, v: Vector) -> tuple[float, float]:
        """Upper bound of the optimum by a point v, and what of it is rounding."""
        if self.is_met_by_zero and not v.any():  # bounds of sums are not zero
            return 0.0, 0.0
        slack = float(self._slacks(v)[0].max())
        half, error = self._half_norm(v)
        if self.has_unit_margins:
            least = min((1.0 - slack) * (1.0 - 4.0 * UNIT), 1.0)
            if not least > 0.0:
                return np.inf, 0.0
            factor = (1.0 + 8.0 * UNIT) / (least * least)
            return (half + error) * factor, error * factor
        return (half + error, error) if slack <= 0.0 else (np.inf, 0.0)

    def feasible(
        self, alpha: Vector, w: Vector, b: float
    ) -> tuple[Vector, Vector, float]:
        """The answer with the best free intercept, where q = 1 with margins of 1.

        It is (w, b) itself where that does not tell the classes apart. Where w and
        alpha say the same both get the factor, which allows for the rounding of its
        products: what is returned has the margins. Zero, where it reaches all margins.
        """
        if self.is_met_by_zero:
            return np.zeros_like(alpha), np.zeros_like(w), 0.0
        v = self.stack(w, self.best_intercept(w, b))
        factor = 1.0
        if self.has_unit_margins:
            slack, size = self._slacks(v)
            least = 1.0 - float((slack + UNIT * SLACK * size).max())
            factor = (1.0 + 16.0 * UNIT) / least if least > 0.0 else 1.0
        w, b = self.split(v)
        if self.couples:
            alpha = factor * alpha
        return alpha, factor * w, factor * b

    def best_intercept(self, w: ArrayLike, b: float = 0.0) -> float:
        """The free intercept with the largest smallest margin; b if it is not free."""
        if self.intercept != "free":
            return b
        slack = self._slacks(self.stack(w, 0.0))[0]
        y = self.y if self.kept is None else self.y[self.kept]
        return 0.5 * float(slack[y > 0].max() - slack[y < 0].max())

    def disproof(self, alpha: Vector) -> Certificate:
        """Lower bound of the optimum by a multiple of alpha, to be held beside `most`.

        Where it is above that, no point reaches the margins, but for those with a norm
        that counts as infinite. In twice the precision.
        """
        linear = float(self.q @ alpha)
        if not (linear > 0.0 and self.most < np.inf):
            return Certificate(np.inf, 0.0)
        alpha = (4.0 * self.most / linear) * alpha
        soft = self.at(_largest(alpha))
        state = soft.dual_state(alpha)
        soft.repair(state)
        bounds = soft.twofold_bounds(state, np.zeros(soft.order))
        return dataclasses.replace(bounds, primal=np.inf, scale=self.scale)

    def _slacks(self, v: Vector) -> tuple[Vector, Vector]:
        """What the slacks of the kept rows are at most, and the sizes of their scores.

        These are sums of absolute values, or more: (kept rows,) each.
        """
        soft: Any = self.soft
        if not soft.couples:
            state = soft.state(slack=0.0, size=0.0)
            soft.A.sweep(_slack, state, v, soft.q_rounding)
            return np.asarray(state.slack), np.asarray(state.size)
        m = soft.rows.shape[0]
        c, b = v[:m], float(v[m]) if len(v) > m else 0.0
        sums, roots = soft._twofold(c), soft._roots
        if soft.kernel.name == "linear":  # whose weights are rounded to predict
            length = math.sqrt(max(sum(sums.squared_norm(c)), 0.0))
            sums = sums._replace(errors=sums.errors + UNIT * SLACK * length * roots)
        size = float(np.abs(c) @ roots) * roots * SLACK + abs(b)
        return sums.slacks(soft.signs, b, soft.margins, soft.q_rounding)[1], size

    def _half_norm(self, v: Vector) -> tuple[float, float]:
        """The objective of v, and how far off that may be."""
        soft: Any = self.soft
        if not soft.couples:
            half = 0.5 * float(soft.R @ (v * v))
            return half, gamma_n(len(v) + 4) * half
        m = soft.rows.shape[0]
        square, error = soft._twofold(v[:m]).squared_norm(v[:m])
        b = float(v[m]) if self.intercept == "penalized" else 0.0
        half = 0.5 * (square + b * b)
        return half, 0.5 * error + gamma_n(8) * abs(half)


KINDS["hard"] = HardProblem


def _one_for_infinity(C: ArrayLike) -> Any:
    """Weights of 1 in the place of infinite ones, beside which others are 0."""
    C = np.asarray(C, dtype=np.float64)
    other = C[(np.inf != C) & (C != 0.0)]
    if other.size:
        raise ValueError(
            "Where one C is infinite all have to be, or zero. "
            f"Got {other.ravel()[0]} instead."
        )
    return np.where(np.inf == C, 1.0, 0.0) if C.ndim else 1.0


def _largest(alpha: ArrayLike) -> float:
    """A finite C that does not bound alpha."""
    largest = float(np.max(alpha, initial=0.0))
    return 2.0 * largest if 0.0 < largest < np.inf else 1.0


def _slack(block: Any, part: RowState, v: Vector, off: float) -> None:
    hi, lo, size = twofold.matvec(block, v)
    error = twofold.bound(size, len(v) + 1)
    part.slack = twofold.slacks(hi, lo, error, margins(part), off)[1]
    part.size = size
