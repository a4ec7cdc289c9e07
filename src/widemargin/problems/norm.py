"""The problem with a norm of the losses in place of their sum.

    minimize   1/2 |f|^2 + C N(xi)   s.t.  y_i (f(x_i) + b) >= 1 - xi_i,  xi >= 0,

    maximize   D = sum alpha - 1/2 c'K c   over alpha in C A, sum y alpha = 0,

c = Y alpha, where N is the support function of the set A [dekel2006]_: a norm of
`widemargin.losses.norms`, which is not squared.
"""

import functools
from itertools import cycle
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from widemargin.arrays import Vector
from widemargin.data.rows import Rows
from widemargin.data.state import RowState, finite
from widemargin.kernels.kernel import Kernel
from widemargin.losses.norms import LossNorm
from widemargin.numerics.rounding import SLACK, gamma_n
from widemargin.parameters import Checker
from widemargin.problems.base import KINDS
from widemargin.problems.kernel import BALANCED, KernelProblem
from widemargin.problems.scores import Sums

_EPS = float(np.finfo(np.float64).eps)


class NormProblem(KernelProblem):
    """A problem whose losses have a norm: what `Problem` makes when it is given one.

    Parameters
    ----------
    features, y : as of `KernelProblem`
    C : float > 0
        The factor of the norm.
    loss, intercept : "hinge", and "free" or "auto"
    norm : LossNorm
    sample_weight : ndarray (m,), nonnegative, or None
        Rows of weight 2 count as two rows; None: 1.
    kernel, memory_limit : as of `KernelProblem`

    Attributes
    ----------
    norm : LossNorm
    factor : float, C of the norm
    shares : ndarray, sample weights of the rows that have one above 0
    """

    def __init__(  # noqa: PLR0913  (options, by keyword)
        self,
        features: Rows | ArrayLike,
        y: ArrayLike,
        C: ArrayLike = 1.0,
        loss: str = "hinge",
        intercept: str = "auto",
        *,
        norm: Any,
        sample_weight: ArrayLike | None = None,
        kernel: Any = None,
        memory_limit: int | None = None,
    ) -> None:
        check = Checker("Problem")
        if not isinstance(norm, LossNorm):
            check.refuse("norm", "a LossNorm or None", norm)
        if not isinstance(kernel, Kernel):
            check.refuse("kernel", "a Kernel where there is a norm", kernel)
        factor: Any = C
        if np.ndim(C) != 0:
            check.refuse("C", "a number where there is a norm", type(C).__name__)
        check.positive("C", C)
        if loss != "hinge":
            check.refuse("loss", "'hinge' where there is a norm", loss)
        if intercept not in ("auto", "free"):
            check.refuse("intercept", "'free' where there is a norm", intercept)
        weights: Any = C
        if sample_weight is not None:
            shares = finite("sample_weight", sample_weight, np.shape(y)[0])
            weights = shares * float(factor)
        super().__init__(features, y, weights, kernel=kernel, memory_limit=memory_limit)
        self.norm: LossNorm = norm
        self.factor = float(factor)
        self.shares: Vector = self.weights / self.factor

    @property
    def kernel_facts(self) -> dict[str, Any]:
        """What tells its kernel and its norm from others."""
        return super().kernel_facts | {"norm": str(self.norm), "factor": self.factor}

    @property
    def is_bounded(self) -> bool:
        """Whether alpha_i <= C_i."""
        return bool(self.norm.has_box)

    @property
    def zero_objective(self) -> float:
        """Objective of v = 0: C N(1)."""
        return self._losses(np.ones(len(self.shares)))

    def _losses(self, t: Vector) -> float:
        return float(self.factor * self.norm.value(t, self.shares))

    def _sum_losses(self, t: Vector) -> float:
        """What slacks t of the kept rows cost: C N(t)."""
        return self._losses(t)

    def _losses_of(self, t: Vector, most: Vector) -> tuple[float, float]:
        """What slacks t cost, and the most that slacks between 2 t - most and most do.

        A norm of losses grows with each loss. A norm of slacks of either sign grows by
        no more than the norms of the single differences, as it is subadditive.
        """
        plain = self._losses(t)
        if self.norm.nonneg_slack:
            return plain, self.factor * self.norm.at_most(most, self.shares)
        return plain, plain + float((most - t) @ self._single_losses) * SLACK

    @functools.cached_property
    def _single_losses(self) -> Vector:
        """What a slack of 1 or -1 of one row costs: (m,)."""
        rows = np.eye(len(self.shares))
        return np.array([max(self._losses(e), self._losses(-e)) for e in rows])

    def lower_bound(self, c: Vector, f: Sums) -> tuple[float, float]:
        """Lower bound D, and how much it may lack by rounding.

        Rounding of the gauge: a little less of alpha lies in C A for certain, and D is
        concave along it.
        """
        dual, under = super().lower_bound(c, f)
        linear = float(np.abs(c).sum())
        more = gamma_n(4 * len(c) + 64) * (linear + abs(f.squared_norm(c)[0]))
        return dual - more, under + more

    def room(self, alpha: Vector) -> float:
        """The largest t <= 1 with t alpha in C A, for alpha >= 0 of the kept rows."""
        gauge = self.norm.gauge(alpha, self.shares)
        return min(1.0, self.factor / gauge) if gauge > 0 else 1.0

    def repair(self, state: RowState, name: str = "alpha") -> None:
        """Make dual variables feasible, in place.

        Clips to the bounds, if there are any, scales the heavier class down to
        y'alpha = 0, and all of them into C A.
        """
        alpha, y = getattr(state, name), self.signs
        fixed = np.clip(alpha, 0.0, self.weights if self.is_bounded else None)
        sums = float(fixed[y > 0].sum()), float(fixed[y < 0].sum())
        if abs(sums[0] - sums[1]) > BALANCED * sum(sums):
            heavy = y > 0 if sums[0] > sums[1] else y < 0
            fixed[heavy] *= min(sums) / max(sums)
        fixed *= self.room(fixed)
        if not np.array_equal(fixed, alpha):
            setattr(state, name, fixed)

    def intercept_for(self, f: Vector, c: Vector, near: float) -> float:
        """The best b for scores f, nearest to ``near``."""
        return best_norm_intercept(self.norm, f, self.signs, self.shares, near)


KINDS["norm"] = NormProblem


def best_norm_intercept(
    norm: LossNorm, f: Vector, y: Vector, c: Vector, near: float
) -> float:
    """The b nearest to ``near`` that minimizes N(max(0, 1 - y (f + b))).

    Parameters
    ----------
    norm : LossNorm
    f, y, c : ndarray (m,). Decision values without intercept, labels, weights.
    near : float

    Returns
    -------
    float, exact to rounding. With rows of one label only, every b with no loss is a
    minimizer.

    Notes
    -----
    Secants of the slope -y'a and bisection in turn, until convexity bounds what is left
    by rounding: mostly 10 to 50 times the cost of ``slope``.

    References
    ----------
    [dekel2006]_, (2): N is convex, and so is this function of b.
    """

    def at(b: float) -> tuple[float, float, float]:
        """That b, the slope there (0 where it is rounding), and the value."""
        t = 1.0 - y * (f + b)
        a = norm.slope(t, c)
        slope = -float(y @ a)
        return b, slope * (abs(slope) > 64 * _EPS * float(a.sum())), float(a @ t)

    inner = at(float(near))
    if inner[1] == 0 or not np.isfinite(f).all():
        return inner[0]
    way = -np.sign(inner[1])
    ends = way * (y - f)  # no loss of one class beyond the last of them
    outer = at(way * max(float(ends.max()), way * inner[0]))
    step = _EPS * max(1.0, abs(outer[0]))
    while way * outer[1] < 0:
        inner, outer, step = outer, at(outer[0] + way * step), 4.0 * step
    for halve in cycle((False, True)):
        width = abs(outer[0] - inner[0])
        if width <= 0.25 * _EPS * max(1.0, abs(inner[0])) or any(
            0 < abs(e[1]) * width <= 0.25 * _EPS * e[2] for e in (inner, outer)
        ):
            break
        share = 0.5 if halve else inner[1] / (inner[1] - outer[1])
        b = inner[0] + share * (outer[0] - inner[0])
        if b not in (inner[0], outer[0]):
            middle = at(b)
            inner, outer = (middle, outer) if way * middle[1] < 0 else (inner, middle)
        elif halve:
            break
    return float(min(inner, outer, key=lambda e: e[2])[0])
