"""Norms of the losses, for support vector machines on a budget.

    minimize 1/2 ``|f|^2`` + C N(xi)  subject to  y_i (f(x_i) + b) >= 1 - xi_i, xi >= 0

N is the support function of a set A of nonnegative vectors, N(t) = max of a't over a in
A; the dual variables lie in C A, and the norm is not squared ([dekel2006]_, (2) and
(4)). Weights c_i >= 0 of the samples count like repeated rows: a_i is the sum over the
copies of row i, and a bound of their sum of squares also bounds sum a_i^2 / c_i.
"""

from abc import ABC, abstractmethod
from bisect import bisect_left
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy import optimize

from widemargin.arrays import Vector
from widemargin.losses.projections import length, levelled, multiplier
from widemargin.parameters import Checker

_EPS = float(np.finfo(float).eps)


@dataclass(frozen=True, kw_only=True)
class LossNorm(ABC):
    """A norm N of losses, by its dual set A: a >= 0, gauge(a) <= 1.

    A norm says `maximizer`, `at_most`, `gauge` and `nearest`; the rest follows. One
    whose set A is made of bounds says these to `BoundedNorm`, and `maximizer` only.

    Notes
    -----
    ``has_box``: whether a_i <= c_i for all of A.

    Problems with a norm that is no `BoundedNorm` are solved by projected gradient
    steps on all of K, in float64: some hundreds of `nearest`, and 8 m^2 bytes.

    References
    ----------
    [dekel2006]_, section 2: norms and their duals.
    """

    has_box: ClassVar[bool] = False
    # In sizes of A: a point beyond is projected as if it were at this distance.
    _far: ClassVar[float] = 1e30

    @property
    def nonneg_slack(self) -> bool:
        """Whether slacks below zero count as zero: else N may fall as a loss falls."""
        return True

    def value(self, t: Vector, c: Vector) -> float:
        """N(max(0, t)) = max of a't over A, for slacks t (m,) and weights c (m,) >= 0.

        Notes
        -----
        Exact to rounding; O(m log m).
        """
        return float(self.slope(t, c) @ t)

    @abstractmethod
    def at_most(self, t: Vector, c: Vector) -> float:
        """N(max(0, t)) from above, where `value` may come from below."""

    def slope(self, t: Vector, c: Vector) -> Vector:
        """A maximizer (m,) of a't over a in A: a subgradient of N at max(0, t).

        Notes
        -----
        Zero where t <= 0 or c = 0. O(m log m).
        """
        rows = (t > 0) & (c > 0)
        a = np.zeros(len(t))
        if rows.any():
            a[rows] = self.maximizer(t[rows] / t[rows].max(), c[rows])
        return a

    @abstractmethod
    def maximizer(self, t: Vector, c: Vector) -> Vector:
        """The a (k,) in A with the largest a't, for t in (0, 1] and weights c > 0."""

    @abstractmethod
    def gauge(self, a: Vector, c: Vector) -> float:
        """The least s with a in s A: inf for a_i < 0, or a_i > 0 where c_i = 0."""

    def project(
        self,
        v: Vector,
        c: Vector,
        *,
        radius: float = 1.0,
        signs: Vector | None = None,
        metric: Vector | None = None,
    ) -> Vector:
        """The nearest point to v in radius A, and with signs in y'a = 0 as well.

        Parameters
        ----------
        v : ndarray (m,)
        c : ndarray (m,), nonnegative. Weights.
        radius : float >= 0. C of the dual.
        signs : ndarray (m,) of +1 and -1, or None. The labels y.
        metric : ndarray (m,), positive, or None for ones. The distance minimized is
            sum (a_i - v_i)^2 / metric_i: with ones it is Euclid's; with c it is that
            of the problem with repeated rows.

        Returns
        -------
        ndarray (m,), with gauge <= radius and y'a = 0 but for rounding.

        Notes
        -----
        O(m) a step: Newton's steps in a bracket for the multipliers of y'a = 0 and the
        cap, in which a is piecewise linear; Brent's method around it for the ball's.
        """
        out, rows, radius = np.zeros(len(v)), c > 0, float(radius)
        if radius > 0 and rows.any():
            y = None if signs is None else signs[rows]
            d = np.ones(rows.sum()) if metric is None else metric[rows]
            most = float(np.abs(v[rows]).max())
            end = self._far * self.value(np.ones(len(v)), c)  # the largest sum over A
            near = v[rows] / most * end if most / radius >= end else v[rows] / radius
            x = self.nearest(near, c[rows], d, y)
            out[rows] = radius * self._inside(x, c[rows], y)
        return out

    @abstractmethod
    def nearest(self, v: Vector, c: Vector, d: Vector, y: Vector | None) -> Vector:
        """The a (k,) in A, for c > 0, with the least sum (a_i - v_i)^2 / d_i, d > 0.

        With labels y (k,) also y'a = 0. Rounding is mended by `project`.
        """

    def _inside(self, x: Vector, c: Vector, y: Vector | None) -> Vector:
        """Rounding errors out of x: the classes have one sum, and the gauge is <= 1."""
        if y is not None:
            above, below = float(x[y > 0].sum()), float(x[y < 0].sum())
            if above != below:
                x = np.where((y > 0) == (above > below), x * _ratio(above, below), x)
        return x / max(1.0, self.gauge(x, c))


class BoundedNorm(LossNorm):
    """A norm whose set A is the intersection of its bounds: box, ball and cap.

    Notes
    -----
    ``has_box``: a_i <= c_i; ``ball``: the bound of sqrt(sum a_i^2 / c_i), or None;
    ``cap``: the bound of sum a_i, or None. One of them at least is there.
    """

    @property
    def ball(self) -> float | None:
        """Bound of sqrt(sum a_i^2 / c_i), or None."""
        return None

    @property
    def cap(self) -> float | None:
        """Bound of sum a_i, or None."""
        return None

    def at_most(self, t: Vector, c: Vector) -> float:
        """N(max(0, t)) from above, where `value` comes from below.

        N(t) <= N1(max(0, t - z)) + N2(min(t, z)) for each z >= 0, where A lies in the
        sets of N1 and of N2, which its bounds give. The least such sum is found.
        """
        x = np.maximum(t, 0.0)
        largest = float(x.max(initial=0.0))
        if self.cap is None and not (self.ball is not None and self.has_box):
            return self._single(x, c, self.ball is not None)
        in_ball = self.ball is not None and not self.has_box

        def above(z: float) -> float:
            """Both parts for one z."""
            rest, below = np.maximum(x - z, 0.0), np.minimum(x, z)
            if self.cap is None:
                second = self._single(below, c, True)
            else:
                second = self.cap * float(below.max(initial=0.0))
            return self._single(rest, c, in_ball) + second

        found = optimize.minimize_scalar(
            above, bounds=(0.0, largest), method="bounded", options={"xatol": 1e-12}
        )
        levels = np.sort(x)
        near = np.searchsorted(levels, float(found.x)) + np.arange(-2, 3)
        ends = levels[np.clip(near, 0, len(levels) - 1)]
        return min(map(above, (0.0, largest, float(found.x), *ends)))

    def nearest(self, v: Vector, c: Vector, d: Vector, y: Vector | None) -> Vector:
        """The projection on A for c > 0; O(m) a step, see `project`."""
        top = c if self.has_box else np.full(len(c), np.inf)
        ball = np.inf if self.ball is None else self.ball

        def shrunk(sigma: float) -> Vector:
            """The point for a multiplier of the ball."""
            return levelled(v, d, 1.0 / (1.0 + sigma * d / c), top, y=y, cap=self.cap)

        return shrunk(multiplier(shrunk, v, c, d, ball))

    def _single(self, x: Vector, c: Vector, in_ball: bool) -> float:
        """The norm of x >= 0 for one bound of A: its ball, or its box."""
        if in_ball:
            return float(self.ball or 0.0) * float(np.sqrt((c * x * x).sum()))
        return float((c * x).sum())

    def gauge(self, a: Vector, c: Vector) -> float:
        """The least s with a in s A: inf for a_i < 0, or a_i > 0 where c_i = 0."""
        if np.any(a < 0) or np.any(a[c == 0] > 0):
            return np.inf
        a, c = a[c > 0], c[c > 0]
        sizes = [0.0]
        with np.errstate(over="ignore"):  # c near 1e-308
            if self.has_box:
                sizes.append(float(np.max(a / c, initial=0.0)))
            if self.ball is not None:
                sizes.append(length(a, c) / self.ball)
            if self.cap is not None:
                sizes.append(float(a.sum()) / self.cap)
        return max(sizes)


@dataclass(frozen=True, kw_only=True)
class L1Norm(BoundedNorm):
    """The sum of the losses, N(t) = sum c_i t_i: the usual SVM. A: a_i <= c_i.

    References
    ----------
    [dekel2006]_, section 2.
    """

    has_box: ClassVar[bool] = True

    def __str__(self) -> str:
        return "the L1 norm"

    def maximizer(self, t: Vector, c: Vector) -> Vector:
        """Gives c: all of the box."""
        return c


@dataclass(frozen=True, kw_only=True)
class L2Norm(BoundedNorm):
    """The length of the losses, N(t) = sqrt(sum c_i t_i^2), not squared.

    A: sum a_i^2 / c_i <= 1.

    References
    ----------
    [dekel2006]_, section 2.
    """

    @property
    def ball(self) -> float:
        """1."""
        return 1.0

    def __str__(self) -> str:
        return "the L2 norm, not squared"

    def maximizer(self, t: Vector, c: Vector) -> Vector:
        """Gives c t, scaled to length 1."""
        return c * (t / length(c * t, c))


@dataclass(frozen=True, kw_only=True)
class BudgetL1(BoundedNorm):  # numpydoc ignore=PR02
    """The sum of the B largest losses, N(t) = K(1, inf, B).

    A row of weight c_i counts c_i times, a part of it for what is left of B.
    A: a_i <= c_i, sum a_i <= B.

    Parameters
    ----------
    budget : float in (0, inf). B; from the sum of c on, N is the L1 norm, and up to the
        weight of the largest loss it is B times that loss.

    Raises
    ------
    ValueError if the budget is not in (0, inf).

    References
    ----------
    [dekel2006]_, Theorem 1 for p = 1, and real t below it; (5) and (6).
    """

    budget: float
    has_box: ClassVar[bool] = True

    def __post_init__(self) -> None:
        Checker("BudgetL1").positive("budget", self.budget)

    @property
    def cap(self) -> float:
        """B."""
        return float(self.budget)

    def __str__(self) -> str:
        return f"the budget-L1 norm, B = {self.budget:g}"

    def maximizer(self, t: Vector, c: Vector) -> Vector:
        """Gives c for the largest t, until the cap is full."""
        order = np.argsort(-t, kind="stable")
        before = np.concatenate([[0.0], np.cumsum(c[order])[:-1]])
        a = np.empty(len(t))
        a[order] = np.clip(self.cap - before, 0.0, c[order])
        return a


@dataclass(frozen=True, kw_only=True)
class BudgetL2(BoundedNorm):  # numpydoc ignore=PR02
    """About the length of the B largest losses, N(t) = K(2, inf, sqrt(B)).

    N(t) = min over z >= 0 of sqrt(sum c_i max(0, t_i - z)^2) + sqrt(B) z, at most
    sqrt(B) max(t) above that length. A: sum a_i^2 / c_i <= 1, sum a_i <= sqrt(B).

    Parameters
    ----------
    budget : float in (0, inf). B; from the sum of c on, N is the L2 norm, and up to the
        weight of the largest loss it is sqrt(B) times that loss.

    Raises
    ------
    ValueError if the budget is not in (0, inf).

    References
    ----------
    [dekel2006]_, Theorem 1 for p = 2; (5) and (6).
    """

    budget: float

    def __post_init__(self) -> None:
        Checker("BudgetL2").positive("budget", self.budget)

    @property
    def ball(self) -> float:
        """1."""
        return 1.0

    @property
    def cap(self) -> float:
        """sqrt(B)."""
        return float(np.sqrt(self.budget))

    def __str__(self) -> str:
        return f"the budget-L2 norm, B = {self.budget:g}"

    def maximizer(self, t: Vector, c: Vector) -> Vector:
        """Scales c max(0, t - z) to length 1, with the least z that the cap allows."""
        levels = np.unique(t)

        def enough(z: float) -> bool:
            """Whether the point for a level z keeps the cap."""
            a = c * np.maximum(t - z, 0.0)
            return bool(a.sum() <= self.cap * length(a, c))

        if enough(0.0):
            return c * (t / length(c * t, c))
        k = bisect_left(
            range(len(levels) - 1), True, key=lambda i: enough(float(levels[i]))
        )
        # z = levels[k] - e, not below the level before: these rows count.
        weight = np.where(t >= levels[k], c, 0.0)
        above = t - levels[k]
        total = float(weight.sum())
        first = float(weight @ above) / total
        second = float(weight @ above**2) / total
        share = self.cap**2 / total
        if first == 0.0:  # the largest losses alone
            return np.asarray(weight * (min(1.0, share) / self.cap))
        # The sum is sqrt(B) times the length: e^2 + 2 first e = rest.
        rest = max(share * second - first**2, 0.0) / max(1.0 - share, _EPS)
        e = rest / (first + np.sqrt(first**2 + rest))
        most = levels[k] - (levels[k - 1] if k else 0.0)
        a = weight * (above + min(e, most))
        return np.asarray(a / max(length(a, c), float(a.sum()) / self.cap))


@dataclass(frozen=True, kw_only=True)
class Interpolation(BoundedNorm):  # numpydoc ignore=PR02
    """Between the L1 and the L2 norm, K(1, 2, t).

    The least ``|w|_1 + t |z|_2`` over w + z = xi.
    A: a_i <= c_i, sum a_i^2 / c_i <= t^2.

    Parameters
    ----------
    t : float in (0, inf). N is t times the L2 norm while t^2 is at most
        sum c_i xi_i^2 / max(xi)^2, and the L1 norm from t^2 = sum c on.

    Raises
    ------
    ValueError if t is not in (0, inf).

    References
    ----------
    [dekel2006]_, (5) and (6).
    """

    t: float
    has_box: ClassVar[bool] = True

    def __post_init__(self) -> None:
        Checker("Interpolation").positive("t", self.t)

    @property
    def ball(self) -> float:
        """The parameter t."""
        return float(self.t)

    def __str__(self) -> str:
        return f"the norm between L1 and L2, t = {self.t:g}"

    def maximizer(self, t: Vector, c: Vector) -> Vector:
        """Gives c min(1, t / z), whose z makes it as long as the ball allows."""
        square = self.ball**2
        if c.sum() <= square:
            return c
        levels = np.unique(t)

        def short(z: float) -> bool:
            """Whether the vector that is cut at z is short enough."""
            return bool(c @ np.minimum(1.0, t / z) ** 2 <= square)

        k = bisect_left(range(len(levels)), True, key=lambda i: short(float(levels[i])))
        # z is at most levels[k], and at least the level before it.
        end = levels[k] if k < len(levels) else np.inf
        full = t >= end
        room = max(square - float(c[full].sum()), 0.0)
        rest = length((c * t)[~full], c[~full])
        z = np.clip(rest / np.sqrt(room) if room else np.inf, levels[k - 1], end)
        return np.asarray(c * np.minimum(1.0, t / z))


def _ratio(one: float, other: float) -> float:
    return min(one, other) / max(one, other)
