"""Many kernel problems over the same samples, and their certificates, all at once.

    minimize over (f, b, rho)   1/2 (|f|^2 + p b^2) - N rho
                                + sum C L(q + rho - y (f(x) + b)),

    maximize   q'alpha - 1/2 c'K c [- 1/2 (sum c)^2] [- sum alpha^2 / (4 C)],

c = Y alpha, alpha >= 0 [alpha <= C], where y'alpha = 0 if the intercept is free, and
sum alpha = N if there is a rho. Classification has q = 1 and no rho; regression has
each row twice, with y = +1 and -1.

The bounds are those of `KernelProblem.prove`, with every vector of all problems, one
after the other, in one array; sums over a problem are sums over a part of it. Where
rounding decides whether a gap is small enough, a problem of its own does better: it has
sums in twice the precision.
"""

import functools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from widemargin.kernels.grouped import Grouped
from widemargin.losses.pointwise import PointwiseLoss
from widemargin.numerics.rounding import SLACK, gamma_n
from widemargin.problems import sums
from widemargin.problems.base import FLOOR
from widemargin.solution import Certificate

Vector = NDArray[np.float64]
Index = NDArray[np.int64]

# All places get exact scores where that takes no more multiplications than these: 0.3
# ms.
ALL_PLACES = 1e6


class Line(NamedTuple):
    """Intercepts of problems, and their rho: (t,), or None where all are 0."""

    b: Vector
    rho: Vector | None


@dataclass(frozen=True)
class ManyProblems:
    """Binary problems, each over all rows of some groups: the rows are its *places*.

    Attributes
    ----------
    samples : Grouped
    groups, group_ends : int ndarray, the groups of the problems; where these end
        The same group twice is the same rows twice, which share their kernel values.
    ends : int ndarray (t,), where the places of each problem end
    y, C : ndarray, labels +1 and -1, and weights >= 0, of each place
        Where C is 0 a row has no loss, but it has a score.
    loss : PointwiseLoss
    intercept : {"free", "penalized", "none"}
    after : int ndarray (t,)
        The problem at whose answer another one starts, which has the same groups and
        comes earlier; -1: it starts at zero. No two start at the same one.
    q : ndarray, of each place, or a number, default=1.0
    mass : ndarray (t,) or None, default=None
        N, which the sum of alpha has to be; NaN, or None for all: there is no rho. With
        a free intercept both classes have half of it; without one all labels are +1.
    """

    samples: Grouped
    groups: Index
    group_ends: Index
    ends: Index
    y: Vector
    C: Vector
    loss: PointwiseLoss
    intercept: str
    after: Index
    q: Vector | float = 1.0
    mass: Vector | None = None

    @functools.cached_property
    def starts(self) -> Index:
        """Where the places of each problem begin."""
        return np.append(0, self.ends[:-1])

    @functools.cached_property
    def sizes(self) -> Index:
        """How many places each problem has."""
        return self.ends - self.starts

    @functools.cached_property
    def rows(self) -> Index:
        """The row at each place."""
        return self.samples.rows_of(self.groups)

    def order(self, begin: int, end: int) -> Any:
        """Places begin .. end - 1, of one problem, in the order of the data."""
        rows = self.rows[begin:end]
        if (rows[1:] > rows[:-1]).all():
            return slice(None)
        half = len(rows) // 2
        if np.array_equal(rows[:half], rows[half:]):  # twice: one after the other
            once = np.argsort(rows[:half], kind="stable")
            return np.append(once, half + once)
        return np.argsort(rows, kind="stable")  # sorted runs: they are merged

    def count(self, chosen: NDArray[np.bool_]) -> Index:
        """How many places of each problem are chosen: (t,)."""
        return np.asarray(np.add.reduceat(chosen, self.starts, dtype=np.int64))

    def sums(self, values: Vector) -> Vector:
        """Sums over the places of each problem: (t,)."""
        return np.asarray(np.add.reduceat(values, self.starts))

    def spread(self, values: Vector) -> Vector:
        """A number of each problem at each of its places."""
        return np.repeat(values, self.sizes)

    @functools.cached_property
    def is_plain(self) -> bool:
        """Whether these are classifiers: q is 1, and there is no rho."""
        return self.mass is None and np.ndim(self.q) == 0 and self.q == 1.0

    @functools.cached_property
    def zero_objectives(self) -> Vector:
        """The objectives at zero: (t,)."""
        if self.is_plain:
            return self.sums(self.C)
        return self.sums(self.C * self.loss.value(np.zeros(len(self.y)) + self.q))

    @functools.cached_property
    def data(self) -> tuple[Vector, Vector, Vector, Vector]:
        """Labels, C and q of each place, and the mass of each problem."""
        q = np.full(len(self.y), self.q) if np.ndim(self.q) == 0 else self.q
        none = np.full(len(self.ends), np.nan)
        return self.y, self.C, np.asarray(q), none if self.mass is None else self.mass

    def start(self) -> Vector:
        """Coefficients c = y alpha to start at: zero, or with the sums asked for."""
        c = np.zeros(len(self.y))
        for own, mass in self._sums_given():
            c[own] = sums.filled(self.C[own], mass, self.loss)
        c *= self.y
        return c

    def _sums_given(self) -> Iterator[tuple[Index, float]]:
        """The places whose alpha has a sum that is given, and this sum."""
        if self.mass is None:
            return
        free = self.intercept == "free"
        for k in np.flatnonzero(~np.isnan(self.mass)).tolist():
            own = np.arange(self.starts[k], self.ends[k])
            for sign in (1.0, -1.0) if free else (1.0,):
                mass = float(self.mass[k])
                yield own[self.y[own] == sign], 0.5 * mass if free else mass

    # -- bounds ------------------------------------------------------------------------

    def certificates(
        self,
        c: Vector,
        scores: Vector,
        b: Vector,
        threads: int,
        stop: Callable[[], bool],
        rho: Vector | None = None,
    ) -> list[Certificate]:
        """Bounds of the optima by coefficients c = y alpha, intercepts b, and rho.

        Parameters
        ----------
        c : ndarray, of each place; feasible but for rounding of the sums that are given
        scores : ndarray, K c by `Grouped.solve`, of each place
        b : ndarray (t,)
        threads, stop : of the sums in float64
        rho : ndarray (t,) or None
            None: 0. So it counts where there is no mass.

        Returns
        -------
        list of Certificate
            Infinite bounds where a number has left the range, a dual variable its
            bounds, or ``stop`` said yes before the scores were there. Where q is not 1,
            or there is a mass, the optimum can be zero or negative: gaps are relative
            to the largest of ``|P|``, ``|D|`` and 1e-10 of the objective at zero.
        """
        line = Line(b, self._free_rho(rho))
        with np.errstate(all="ignore"):
            return self._certificates(c, scores, line, threads, stop)

    def _free_rho(self, rho: Vector | None) -> Vector | None:
        """Rho of each problem; None where no problem has one."""
        if self.mass is None or rho is None:
            return None
        return np.where(np.isnan(self.mass), 0.0, rho)

    def _certificates(
        self,
        c: Vector,
        scores: Vector,
        line: "Line",
        threads: int,
        stop: Callable[[], bool],
    ) -> list[Certificate]:
        """The same, where numbers may leave the range without a warning."""
        values, errors, exact = self._scores(c, scores, line, threads, stop)
        primal, over, half = self._upper(c, values, errors, exact, line)
        dual, under = self._lower(c, values, errors, half)
        alpha, most = self.y * c, np.where(self.C > 0.0, self.loss.upper(self.C), 0.0)
        right = (alpha >= 0.0) & (alpha <= most)  # false for NaN
        dual[(self.count(right) < self.sizes) | ~np.isfinite(dual)] = -np.inf
        primal[np.isnan(primal)] = np.inf
        rounding = (over + under).tolist()
        found = zip(
            primal.tolist(), dual.tolist(), self._scales(dual), rounding, strict=True
        )
        return [Certificate(p, d, s, r) for p, d, s, r in found]

    def _scales(self, dual: Vector) -> list[float]:
        """What gaps are relative to at least."""
        if self.is_plain:
            return [0.0] * len(dual)
        least = FLOOR * self.zero_objectives
        scales = np.maximum(least, np.where(np.isfinite(dual), np.abs(dual), 0.0))
        return [float(scale) for scale in scales]

    def _scores(
        self,
        c: Vector,
        scores: Vector,
        line: "Line",
        threads: int,
        stop: Callable[[], bool],
    ) -> tuple[Vector, Vector, NDArray[np.bool_]]:
        """Scores, bounds of their errors, and where these count.

        They are made again in float64 where alpha > 0, or where there is a loss or
        could be one by the error that a score has at most. Other places have none.
        """
        samples, rows, starts = self.samples, self.rows, self.starts
        support, matters = c != 0.0, self.C > 0.0
        if np.count_nonzero(support) * self.sizes.max() * samples.cost > ALL_PLACES:
            b, (q, size) = self.spread(line.b), self._targets(line)
            errors = samples.kept_errors(rows, c, starts)
            errors += gamma_n(8) * (size + np.abs(scores) + np.abs(b))  # of the margins
            safe = self.y * (scores + b) >= q + errors  # false for NaN
            matters &= support | ~(safe & np.isfinite(scores))
        chosen = rows[support], c[support], np.cumsum(self.count(support))
        wanted = rows[matters], np.cumsum(self.count(matters))
        values = scores.copy()
        values[matters] = samples.exact(chosen, wanted, threads, stop)
        return values, samples.exact_errors(rows, c, starts), matters

    def _targets(self, line: "Line") -> tuple[Vector | float, Vector | float]:
        """Q + rho at each place, or one number; and what rounding is a share of."""
        if line.rho is None:
            return self.q, np.abs(self.q)
        rho = self.spread(line.rho)
        return self.q + rho, np.abs(self.q) + np.abs(rho)

    def _losses(
        self, f: Vector, errors: Vector, C: Vector, line: "Line"
    ) -> tuple[Vector, Vector]:
        """Sums of losses: upper bounds, and what these allow for rounding."""
        off, (q, size) = gamma_n(float(self.sizes.max()) + 8), self._targets(line)
        whole = f + self.spread(line.b)
        slack = q - self.y * whole
        largest = slack + (errors + gamma_n(4) * (size + np.abs(f) + np.abs(whole)))
        plain = self.sums(C * self.loss.value(slack))
        losses = self.sums(C * self.loss.value(largest)) * (1.0 + off)
        return losses, losses - plain

    def _rest(self, square: Vector, line: "Line") -> tuple[Vector, Vector]:
        """What an objective is beside the losses; and what rounding is a share of."""
        rest = 0.5 * square
        if self.intercept == "penalized":
            rest = rest + 0.5 * line.b * line.b
        if line.rho is None or self.mass is None:
            return rest, np.abs(rest)
        pull = np.where(np.isnan(self.mass), 0.0, self.mass * line.rho)
        return rest - pull, np.abs(rest) + np.abs(pull)

    def _upper(
        self,
        c: Vector,
        f: Vector,
        errors: Vector,
        exact: NDArray[np.bool_],
        line: "Line",
    ) -> tuple[Vector, Vector, tuple[Vector, Vector]]:
        """Upper bounds, what they allow for rounding, and c'f with its error."""
        off = gamma_n(float(self.sizes.max()) + 8)
        losses, more = self._losses(f, errors, np.where(exact, self.C, 0.0), line)
        product = c * f
        square = self.sums(product)
        error = self.sums(np.abs(c) * errors) + off * self.sums(np.abs(product))
        rest, size = self._rest(square, line)
        over = 0.5 * error * SLACK + gamma_n(8) * size
        return rest + over + losses, over + more, (square, error)

    def linear_upper(self, X: Any, W: Vector, b: Vector) -> tuple[Vector, Vector]:
        """Upper bounds by weights W (t, n) of the columns of X, and their rounding.

        Every problem has all rows of X, in their order. Bounds are infinite where a
        number has left the range.
        """
        line = Line(b, None)
        with np.errstate(all="ignore"):
            off = gamma_n(X.shape[1] + 8)
            f = np.ravel((X @ W.T).T)
            errors = off * np.ravel((np.abs(X) @ np.abs(W).T).T) * SLACK
            losses, more = self._losses(f, errors, self.C, line)
            rest, size = self._rest(np.einsum("ij,ij->i", W, W), line)
            over = off * size
            primal = rest + over + losses
            primal[np.isnan(primal)] = np.inf
            return primal, over + more

    def _lower(
        self, c: Vector, f: Vector, errors: Vector, square: tuple[Vector, Vector]
    ) -> tuple[Vector, Vector]:
        """Lower bounds, and how much they may lack by rounding."""
        off, alpha = gamma_n(float(self.sizes.max()) + 8), np.abs(c)
        length = self.sums(alpha)
        linear, size = length, length
        if not self.is_plain:
            product = self.q * alpha
            linear, size = self.sums(product), self.sums(np.abs(product))
        total = np.abs(self.sums(c)) + off * length
        rest = 0.5 * square[0]
        if self.intercept == "penalized":
            rest = rest + 0.5 * total * total
        if self.loss.dual_share:
            used = np.where(self.C > 0.0, self.C, 1.0)
            squares = self.sums(0.25 * alpha * (alpha / used))
            rest = rest + self.loss.dual_share * squares
        under = 0.5 * square[1] * SLACK + off * (size + np.abs(rest))
        if self.intercept == "free":
            cost = self._repair_errors(c, f, errors, total, length)
            if self.mass is not None:
                cost = np.where(np.isnan(self.mass), cost, 0.0)
            under = under + cost
        if self.mass is not None:
            under = under + self._mass_errors(alpha, f, errors)
        return linear - rest - under, under

    def _repair_errors(
        self, c: Vector, f: Vector, errors: Vector, residual: Vector, linear: Vector
    ) -> Vector:
        """How much of D it costs to make y'alpha zero: see `rounding.repair_error`."""
        alpha = np.abs(c)
        slope = self.sums(alpha * (np.abs(self.q - self.y * f) + errors)) * SLACK
        length = self.sums(alpha * self.samples.lengths[self.rows]) * SLACK
        t = 2.0 * residual / np.where(linear > 0.0, linear, 1.0) * SLACK
        cost = (t * slope + 0.5 * t * t * length * length) * SLACK
        cost[residual >= 0.25 * linear] = np.inf
        cost[linear == 0.0] = 0.0
        return cost

    def _mass_errors(self, alpha: Vector, f: Vector, errors: Vector) -> Vector:
        """How much of D it costs to make sums of alpha what is given: (t,)."""
        moved = np.zeros(len(alpha))
        for own, mass in self._sums_given():
            moved[own] = sums.change(alpha[own], self.C[own], mass, self.loss)
        slopes, lengths = np.abs(self.q - self.y * f) + errors, self.samples.lengths
        C = self.C if self.loss.dual_share else np.full(len(alpha), np.inf)
        costs = np.zeros(len(self.ends))
        for k, part in enumerate(map(slice, self.starts, self.ends)):
            if np.isinf(moved[part]).any():
                costs[k] = np.inf
            elif moved[part].any():
                given = moved[part], alpha[part], C[part], slopes[part]
                costs[k] = sums.cost(*given, lengths[self.rows[part]])
        return costs
