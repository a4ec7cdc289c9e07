"""The problem whose dual variables have a sum that is given: one class, or nu.

    minimize   1/2 |f|^2 - N rho + sum_i C_i L(q_i + rho - y_i (f(x_i) + b)),

    maximize   D = q'alpha - 1/2 c'K c [- sum alpha_i^2 / (4 C_i)],

over 0 <= alpha [<= C] with sum alpha = N, c = Y alpha. Without an intercept all labels
are +1: a one-class machine has q = 0. With a free one y'alpha = 0 too, so that each
class has half of N, and an intercept of its own: rho - b and rho + b are the levels of
`sums.level`. Where the scores are known, so are the best b and rho.

Where q = 0 the optimum is at most 0, the objective of w = 0, and that bounds it where
the point that is proved is worse. It is 0 where the hulls of both classes, or that of
one class and the origin, have a common point. Relative to it no gap would be small:
|P| counts as at least 1e-10 of the largest N^2 k(x, x), which |w|^2 cannot exceed.
"""

import functools
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from widemargin.arrays import Mask, Vector
from widemargin.data.rows import Rows
from widemargin.data.state import RowState
from widemargin.kernels.kernel import Kernel
from widemargin.numerics.rounding import UNIT, gamma_n
from widemargin.parameters import Checker
from widemargin.problems import sums
from widemargin.problems.base import FLOOR, KINDS, LEAST_FLOOR
from widemargin.problems.kernel import BALANCED, NEAR, KernelProblem
from widemargin.problems.scores import Scores, Sums
from widemargin.solution import Certificate

# The size of scores, as a share of what they are at most. (1e-3: 0.6 to 1.1 of the
# time, 0.1: 1 to 1.2, benchmarks/core/untuned.py.)
USUAL = 1e-2


class MassProblem(KernelProblem):
    """A problem with a sum of alpha: what `Problem` makes when it is given ``mass``.

    Parameters
    ----------
    features : as of `KernelProblem`
    y : array (m,)
        +1 and -1; +1 alone without an intercept.
    C, loss : as of `KernelProblem`
    intercept : {"none", "free"}
    mass : float > 0
        N: at most the sum of C, and with a free intercept at most twice the sum of C of
        each class, where alpha is bounded.
    q : float or array (m,), default=0.0
    kernel, memory_limit : as of `KernelProblem`

    Attributes
    ----------
    mass : float

    Raises
    ------
    ValueError
        A sum that alpha cannot have; what `Problem` raises.
    """

    def __init__(  # noqa: PLR0913  (options, by keyword)
        self,
        features: Rows | ArrayLike,
        y: ArrayLike,
        C: ArrayLike = 1.0,
        loss: str = "hinge",
        intercept: str = "auto",
        *,
        mass: Any,
        q: ArrayLike = 0.0,
        kernel: Any = None,
        memory_limit: int | None = None,
    ) -> None:
        check = Checker("Problem")
        check.positive("mass", mass)
        if not isinstance(kernel, Kernel):
            check.refuse("kernel", "a Kernel where there is a mass", kernel)
        if intercept not in ("none", "free"):
            check.refuse("intercept", "'none' or 'free' with a mass", intercept)
        if intercept == "none":
            self.needed_labels = (1,)
            if np.any(np.asarray(y) < 0):
                check.refuse("y", "+1 in all rows without an intercept", -1)
        super().__init__(
            features,
            y,
            C,
            loss,
            intercept,
            q=q,
            kernel=kernel,
            memory_limit=memory_limit,
        )
        self.mass = float(mass)
        most = min(sums.room(self.weights[own]) / share for own, share in self._parts)
        if self.is_bounded and self.mass > most:
            check.refuse("mass", f"at most {most:g}, for these C and labels", mass)

    @property
    def _parts(self) -> list[tuple[Mask, float]]:
        """The rows whose sum is given, as masks, and which share of N it is."""
        y = self.signs
        if self.intercept == "none":
            return [(y > 0, 1.0)]
        return [(y > 0, 0.5), (y < 0, 0.5)]

    def sums_given(self) -> Iterator[tuple[Mask, float]]:
        """The rows whose alpha has a sum that is given, as masks, and this sum."""
        for own, share in self._parts:
            yield own, share * self.mass

    @property
    def has_unit_margins(self) -> bool:
        """No: nothing that holds for classifiers does here."""
        return False

    @property
    def zero_dual(self) -> float:
        """Zero is not feasible: nothing is known."""
        return -np.inf

    @property
    def facts(self) -> dict[str, Any]:
        """What tells it from other problems: the sum of alpha, too."""
        return super().facts | {"sum of alpha": self.mass}

    @functools.cached_property
    def has_margins(self) -> bool:
        """Whether some q is not 0: else w = 0 has the objective 0."""
        return bool(np.any(self.q))

    def ends_at_zero(self, certificate: Certificate) -> bool:
        """Where q = 0 the bound of a point with a margin is below 0."""
        return not self.has_margins and certificate.primal >= 0.0

    @property
    def scale(self) -> float:
        """Floor of ``|P|``: where q = 0, 1e-10 of the largest N^2 k(x, x)."""
        if self.has_margins:
            return super().scale
        length = float(self.mass * self._roots.max())
        return max(FLOOR * length * length, LEAST_FLOOR)

    @property
    def unit(self) -> float:
        """The size of margins and scores."""
        most: float = self.mass * float(self._roots.max() ** 2)
        return max(float(np.abs(self.q).mean()), USUAL * most)

    # -- b and rho ---------------------------------------------------------------------

    def intercept_for(self, f: Vector, c: Vector, near: float) -> float:
        """The best b for scores f: half the difference of the levels of the classes."""
        if self.intercept != "free":
            return 0.0
        g = self.margins - self.signs * f
        plus, minus = (
            sums.level(g[own], self.weights[own], total, self.pointwise)
            for own, total in self.sums_given()
        )
        return 0.5 * (minus - plus)

    def rho_for(self, f: Vector, b: float) -> float:
        """The best rho for scores f and an intercept b."""
        g = self.margins - self.signs * (f + b)
        return sums.level(g, self.weights, self.mass, self.pointwise)

    # -- objectives --------------------------------------------------------------------

    def values(self, c: Vector, f: Vector, b: float) -> Certificate:
        """P and D of (c, b), the best rho and alpha = Y c by the scores f: no proof."""
        y, rho, square = self.signs, self.rho_for(f, b), float((c * f).sum())
        losses = self._sum_losses(self.margins + rho - y * (f + b))
        primal = self._or_zero(0.5 * square - self.mass * rho + losses)
        dual = self.reach(y * c) - 0.5 * square - self.squares(y * c)
        return Certificate(primal, dual, self.scale)

    def upper_bound(self, c: Vector, f: Sums, b: float) -> tuple[float, float]:
        """Upper bound P, and how much of it may be rounding."""
        self.proved_rho = rho = self.rho_for(f.values, b)
        t, most = f.slacks(self.signs, b, self.margins + rho, UNIT)
        plain, largest = self._losses_of(t, most)
        losses = (1.0 + gamma_n(len(c) + 8)) * largest
        (square, error), pull = f.squared_norm(c), self.mass * rho
        over = 0.5 * error + gamma_n(8) * (0.5 * abs(square) + abs(pull))
        primal = 0.5 * square - pull + over + losses
        if self._or_zero(primal) < primal:
            return 0.0, 0.0
        return primal, over + losses - plain

    def _or_zero(self, primal: float) -> float:
        """An upper bound of the optimum; where q = 0 that is 0, of w = 0, at most."""
        return primal if self.has_margins else min(primal, 0.0)

    def _cost_of_sums(self, c: Vector, f: Sums) -> tuple[float, float]:
        """What exact sums of alpha cost at most, all of it as rounding."""
        y = self.signs
        alpha, moved = y * c, np.zeros(len(c))
        for own, total in self.sums_given():
            C, loss = self.weights[own], self.pointwise
            moved[own] = sums.change(alpha[own], C, total, loss)
        if not np.isfinite(moved).all():
            return 0.0, np.inf
        slopes = np.abs(self.margins - y * f.values) + f.errors + np.abs(f.low)
        weights = self.weights if self.pointwise.dual_share else None
        return 0.0, sums.cost(moved, alpha, weights, slopes, self._roots)

    # -- feasible points, and rows that matter -----------------------------------------

    def repair(self, state: RowState, name: str = "alpha") -> None:
        """Give alpha its sums, and keep it in its bounds. Rounding may stay."""
        alpha = self.pointwise.clipped(getattr(state, name), self.weights)
        for own, total in self.sums_given():
            C, some = self.weights[own], alpha[own]
            there = float(some.sum())
            if abs(there - total) <= BALANCED * total:
                continue
            if there == 0.0:
                alpha[own] = sums.filled(C, total, self.pointwise)
            elif there > total or not self.is_bounded:
                alpha[own] = some * (total / there)
            else:
                room = C - some
                alpha[own] = some + room * min(1.0, (total - there) / room.sum())
        setattr(state, name, alpha)

    def _matters(self, c: Vector, f: Sums, b: float) -> Mask:
        """Rows with alpha > 0, or with a loss that is more than 0 perhaps.

        Losses do not matter where the upper bound is that of no function.
        """
        if self.ends_at_zero(self.values(c, f.values, b)):
            return np.asarray(c != 0)
        rho = self.rho_for(f.values, b)
        reach = self.signs * (f.values + b) - rho
        rounded = gamma_n(4) * (np.abs(self.margins) + abs(rho) + abs(b))
        safe = reach >= self.margins + f.errors + rounded  # false for NaN
        # The best rho of exact scores is that of rows near it: they are made again too.
        near = np.abs(reach - self.margins) <= NEAR * self.unit
        return np.asarray((c != 0) | ~safe | near)

    def refresh_near(self, scores: Scores, b: float) -> None:
        """Exact scores for rows that have a loss, or nearly one: no proof yet."""
        scores.settle()
        rho = self.rho_for(scores.values, b)
        reach = self.margins + rho + NEAR * self.unit
        near = self.signs * (scores.values + b) < reach
        self._refresh(scores, near | (scores.c != 0))


KINDS["mass"] = MassProblem
