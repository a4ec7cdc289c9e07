"""Many kernel problems over the same samples, and their certificates, all at once.

The bounds are those of `KernelProblem.prove`, with every vector of all problems, one
after the other, in one array; sums over a problem are sums over a part of it. Where
rounding decides whether a gap is small enough, a problem of its own does better: it has
sums in twice the precision.
"""

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from widemargin.kernels.grouped import GroupedSamples
from widemargin.losses.pointwise import PointwiseLoss
from widemargin.numerics.rounding import SLACK, gamma_n
from widemargin.solution import Certificate

Vector = NDArray[np.float64]
Index = NDArray[np.int64]

# All places get exact scores where that takes no more multiplications than these: 0.3
# ms.
ALL_PLACES = 1e6


@dataclass(frozen=True)
class ManyProblems:
    """Binary problems, each over all rows of some groups: the rows are its *places*.

    Attributes
    ----------
    samples : GroupedSamples
    groups, group_ends : int ndarray, the groups of the problems; where these end
    ends : int ndarray (t,), where the places of each problem end
    y, C : ndarray, labels +1 and -1, and weights >= 0, of each place
        Where C is 0 a row has no loss, but it has a score.
    loss : PointwiseLoss
    intercept : {"free", "penalized", "none"}
    after : int ndarray (t,)
        The problem at whose answer another one starts, which has the same groups and
        comes earlier; -1: it starts at zero. No two start at the same one.
    """

    samples: GroupedSamples
    groups: Index
    group_ends: Index
    ends: Index
    y: Vector
    C: Vector
    loss: PointwiseLoss
    intercept: str
    after: Index

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

    # -- bounds ------------------------------------------------------------------------

    def certificates(
        self,
        c: Vector,
        scores: Vector,
        b: Vector,
        threads: int,
        stop: Callable[[], bool],
    ) -> list[Certificate]:
        """Bounds of the optima by coefficients c = y alpha and intercepts b.

        Parameters
        ----------
        c : ndarray, of each place; feasible but for rounding of sum c
        scores : ndarray, K c by `GroupedSamples.solve`, of each place
        b : ndarray (t,)
        threads, stop : of the sums in float64

        Returns
        -------
        list of Certificate
            Infinite bounds where a number has left the range, a dual variable its
            bounds, or ``stop`` said yes before the scores were there.
        """
        with np.errstate(all="ignore"):
            return self._certificates(c, scores, b, threads, stop)

    def _certificates(
        self,
        c: Vector,
        scores: Vector,
        b: Vector,
        threads: int,
        stop: Callable[[], bool],
    ) -> list[Certificate]:
        """The same, where numbers may leave the range without a warning."""
        values, errors, exact = self._scores(c, scores, b, threads, stop)
        primal, over, half = self._upper(c, values, errors, exact, b)
        dual, under = self._lower(c, values, errors, half)
        alpha, most = self.y * c, np.where(self.C > 0.0, self.loss.upper(self.C), 0.0)
        right = (alpha >= 0.0) & (alpha <= most)  # false for NaN
        dual[(self.count(right) < self.sizes) | ~np.isfinite(dual)] = -np.inf
        primal[np.isnan(primal)] = np.inf
        return [
            Certificate(p, d, rounding=r)
            for p, d, r in zip(
                primal.tolist(), dual.tolist(), (over + under).tolist(), strict=True
            )
        ]

    def _scores(
        self,
        c: Vector,
        scores: Vector,
        b: Vector,
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
            b = self.spread(b)
            errors = samples.kept_errors(rows, c, starts)
            errors += gamma_n(8) * (1.0 + np.abs(scores) + np.abs(b))  # of the margins
            safe = self.y * (scores + b) >= 1.0 + errors  # false for NaN
            matters &= support | ~(safe & np.isfinite(scores))
        chosen = rows[support], c[support], np.cumsum(self.count(support))
        wanted = rows[matters], np.cumsum(self.count(matters))
        values = scores.copy()
        values[matters] = samples.exact(chosen, wanted, threads, stop)
        return values, samples.exact_errors(rows, c, starts), matters

    def _upper(
        self, c: Vector, f: Vector, errors: Vector, exact: NDArray[np.bool_], b: Vector
    ) -> tuple[Vector, Vector, tuple[Vector, Vector]]:
        """Upper bounds, what they allow for rounding, and c'f with its error."""
        off = gamma_n(float(self.sizes.max()) + 8)
        whole = f + self.spread(b)
        slack = 1.0 - self.y * whole
        largest = slack + (errors + gamma_n(4) * (1.0 + np.abs(f) + np.abs(whole)))
        C = np.where(exact, self.C, 0.0)
        plain = self.sums(C * self.loss.value(slack))
        losses = self.sums(C * self.loss.value(largest)) * (1.0 + off)
        product = c * f
        square = self.sums(product)
        error = self.sums(np.abs(c) * errors) + off * self.sums(np.abs(product))
        rest = 0.5 * square
        if self.intercept == "penalized":
            rest = rest + 0.5 * b * b
        over = 0.5 * error * SLACK + gamma_n(8) * np.abs(rest)
        return rest + over + losses, over + losses - plain, (square, error)

    def linear_upper(self, X: Any, W: Vector, b: Vector) -> tuple[Vector, Vector]:
        """Upper bounds by weights W (t, n) of the columns of X, and their rounding.

        Every problem has all rows of X, in their order.
        """
        off = gamma_n(X.shape[1] + 8)
        f = np.ravel((X @ W.T).T)
        errors = off * np.ravel((np.abs(X) @ np.abs(W).T).T) * SLACK
        whole = f + self.spread(b)
        slack = 1.0 - self.y * whole
        largest = slack + errors + gamma_n(4) * (1.0 + np.abs(f) + np.abs(whole))
        plain = self.sums(self.C * self.loss.value(slack))
        losses = self.sums(self.C * self.loss.value(largest))
        losses *= 1.0 + gamma_n(X.shape[0] + 8)
        rest = 0.5 * np.einsum("ij,ij->i", W, W)
        if self.intercept == "penalized":
            rest = rest + 0.5 * b * b
        over = off * rest
        return rest + over + losses, over + losses - plain

    def _lower(
        self, c: Vector, f: Vector, errors: Vector, square: tuple[Vector, Vector]
    ) -> tuple[Vector, Vector]:
        """Lower bounds, and how much they may lack by rounding."""
        off, alpha = gamma_n(float(self.sizes.max()) + 8), np.abs(c)
        linear = self.sums(alpha)
        total = np.abs(self.sums(c)) + off * linear
        rest = 0.5 * square[0]
        if self.intercept == "penalized":
            rest = rest + 0.5 * total * total
        if self.loss.dual_share:
            used = np.where(self.C > 0.0, self.C, 1.0)
            squares = self.sums(0.25 * alpha * (alpha / used))
            rest = rest + self.loss.dual_share * squares
        under = 0.5 * square[1] * SLACK + off * (linear + np.abs(rest))
        if self.intercept == "free":
            under = under + self._repair_errors(c, f, errors, total, linear)
        return linear - rest - under, under

    def _repair_errors(
        self, c: Vector, f: Vector, errors: Vector, residual: Vector, linear: Vector
    ) -> Vector:
        """How much of D it costs to make y'alpha zero: see `rounding.repair_error`."""
        alpha = np.abs(c)
        slope = self.sums(alpha * (np.abs(1.0 - self.y * f) + errors)) * SLACK
        length = self.sums(alpha * self.samples.lengths[self.rows]) * SLACK
        t = 2.0 * residual / np.where(linear > 0.0, linear, 1.0) * SLACK
        cost = (t * slope + 0.5 * t * t * length * length) * SLACK
        cost[residual >= 0.25 * linear] = np.inf
        cost[linear == 0.0] = 0.0
        return cost
