"""Many linear problems over the same few rows, and their certificates, all at once.

The problems of `LinearProblem` with labels of their own: one class against the rest.
The bounds are made from matrices of all problems; how far rounding may have moved them
follows from the lengths of rows and columns (`widemargin.numerics.rounding`).
"""

import functools
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from widemargin.losses.pointwise import PointwiseLoss
from widemargin.numerics.rounding import SLACK, TINY, gamma_n, repair_error
from widemargin.solution import Certificate

Vector = NDArray[np.float64]


@dataclass(frozen=True)
class ManyLinearProblems:
    """Binary problems that are linear in the columns of the same rows.

    Attributes
    ----------
    X : ndarray (m, n), float64
    y : ndarray (t, m), labels +1 and -1 of each problem
    C : ndarray (m,), weights > 0
    loss : PointwiseLoss
    intercept : {"free", "penalized", "none"}
    """

    X: Vector
    y: Vector
    C: Vector
    loss: PointwiseLoss
    intercept: str

    def certificates(self, alpha: Vector, W: Vector, b: Vector) -> list[Certificate]:
        """Bounds of the optima by dual variables, weights and intercepts.

        Parameters
        ----------
        alpha : ndarray (t, m); y'alpha is zero but for rounding if b is free
        W : ndarray (t, n)
        b : ndarray (t,)

        Returns
        -------
        list of Certificate
            Infinite bounds where a number has left the range, or a dual variable its
            bounds.
        """
        with np.errstate(all="ignore"):
            primal, over = self._upper(W, b)
            dual, under = self._lower(alpha)
            right = (alpha >= 0.0) & (alpha <= self.loss.upper(self.C))
            dual[~right.all(axis=1) | ~np.isfinite(dual)] = -np.inf  # false for NaN
            primal[np.isnan(primal)] = np.inf
            found = zip(
                primal.tolist(), dual.tolist(), (over + under).tolist(), strict=True
            )
            return [Certificate(p, d, rounding=r) for p, d, r in found]

    def _upper(self, W: Vector, b: Vector) -> tuple[Vector, Vector]:
        """Upper bounds, and what they allow for rounding: (t,)."""
        m, n = self.X.shape
        off, more = gamma_n(n + 8), gamma_n(m + 8)
        squares = np.einsum("ij,ij->i", W, W)
        f = W @ self.X.T
        f += b[:, np.newaxis]
        slack = 1.0 - self.y * f
        size = np.sqrt(squares) + np.abs(b) + 1.0  # of a margin, by the length of a row
        errors = np.multiply.outer(off * SLACK * size, self._lengths[0] + 1.0)
        plain = (self.C * self.loss.value(slack)).sum(axis=1)
        slack += errors
        losses = (self.C * self.loss.value(slack)).sum(axis=1) * (1.0 + more)
        rest = 0.5 * squares
        if self.intercept == "penalized":
            rest += 0.5 * b * b
        over = off * rest
        return rest + over + losses, over + losses - plain

    def _lower(self, alpha: Vector) -> tuple[Vector, Vector]:
        """Lower bounds, and how much they may lack by rounding: (t,)."""
        m, n = self.X.shape
        off, c = gamma_n(m + n + 8), self.y * alpha
        rows, columns = self._lengths
        G, linear = c @ self.X, alpha.sum(axis=1)
        total = np.abs(c.sum(axis=1)) + off * linear
        length = np.sqrt(np.einsum("ij,ij->i", alpha, alpha)) * SLACK + TINY
        # Of each column of G by its length; together by the length of them all.
        error = off * length * float(np.sqrt(columns @ columns)) * SLACK
        squares = np.einsum("ij,ij->i", G, G)
        rest = 0.5 * squares
        under = (np.sqrt(squares) * SLACK + error) * error
        if self.intercept == "penalized":
            rest += 0.5 * total * total
        if self.loss.dual_share:
            rest += (0.25 * self.loss.dual_share) * (alpha * (alpha / self.C)).sum(1)
        under += off * (linear + rest)
        if self.intercept == "free":
            reach = (alpha @ rows) * SLACK  # at least sum alpha |x|
            slope = linear + reach * (np.sqrt(squares) * SLACK + error)
            costs = map(
                repair_error,
                total.tolist(),
                linear.tolist(),
                slope.tolist(),
                (reach * reach).tolist(),
            )
            under += np.fromiter(costs, np.float64)
        return linear - rest - under, under

    @functools.cached_property
    def _lengths(self) -> tuple[Vector, Vector]:
        """Lengths of the rows and of the columns, or a little more."""
        rows = np.sqrt(np.einsum("ij,ij->i", self.X, self.X)) * SLACK + TINY
        columns = np.sqrt(np.einsum("ij,ij->j", self.X, self.X)) * SLACK + TINY
        return rows, columns
