"""Many linear problems over the same few rows, and their certificates, all at once.

The problems of `LinearProblem` with labels of their own: one class against the rest.
Or regressions, which have two rows for each sample: products are made once for both.
The bounds are made from matrices of all problems; how far rounding may have moved them
follows from the lengths of rows and columns (`widemargin.numerics.rounding`).
"""

import dataclasses
import functools
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from widemargin.losses.pointwise import PointwiseLoss
from widemargin.numerics.rounding import SLACK, TINY, gamma_n, repair_error
from widemargin.problems.base import FLOOR, LEAST_FLOOR
from widemargin.solution import Certificate

Vector = NDArray[np.float64]


@dataclass(frozen=True)
class Units:
    """What margins are measured in, and the shifts of intercepts: (t,), or 0."""

    unit: float = 1.0
    shift: Vector | float = 0.0


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
    q : ndarray (t, 2 m) or None, default=None
        What the margins of regressions have to reach: of m rows with the labels y, and
        of the same rows with -y. None: 1, of each row once.
    """

    X: Vector
    y: Vector
    C: Vector
    loss: PointwiseLoss
    intercept: str
    q: Vector | None = None

    def in_units(self) -> tuple["ManyLinearProblems", "Units"]:
        """The problems with margins of about 1, as Newton's method likes, and the unit.

        It is a power of 2, so that only the shift of a free intercept rounds.
        """
        if self.q is None:
            return self, Units()
        q, m, shift = self.q, len(self.C), np.zeros(len(self.q))
        if self.intercept == "free":
            middle = 0.5 * self.y * (q[:, :m] - q[:, m:])
            shift = (self.C * middle).sum(axis=1) / self.C.sum()
            moved = self.y * shift[:, np.newaxis]
            q = np.concatenate([q[:, :m] - moved, q[:, m:] + moved], axis=1)
        size = float(np.abs(q).mean())
        if not 0.0 < size < np.inf:
            return self, Units()
        unit = float(2.0 ** np.round(np.log2(size)))
        C = self.C / unit if self.loss.is_bounded else self.C
        return dataclasses.replace(self, C=C, q=q / unit), Units(unit, shift)

    def certificates(self, alpha: Vector, W: Vector, b: Vector) -> list[Certificate]:
        """Bounds of the optima by dual variables, weights and intercepts.

        Parameters
        ----------
        alpha : ndarray (t, m) or (t, 2 m), as q
            Its sum with the labels is zero but for rounding if b is free.
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
            right = (alpha >= 0.0) & (alpha <= self.loss.upper(self._weights))
            dual[~right.all(axis=1) | ~np.isfinite(dual)] = -np.inf  # false for NaN
            primal[np.isnan(primal)] = np.inf
            found = zip(
                primal.tolist(),
                dual.tolist(),
                self._scales,
                (over + under).tolist(),
                strict=True,
            )
            return [Certificate(*numbers) for numbers in found]

    @functools.cached_property
    def zero_objectives(self) -> Vector:
        """The objectives at zero: (t,)."""
        if self.q is None:
            return np.full(len(self.y), self.C.sum())
        return np.asarray((self._weights * self.loss.value(self.q)).sum(axis=1))

    @property
    def _scales(self) -> list[float]:
        """What gaps are relative to at least, as of `Problem.scale`."""
        if self.q is None:
            return [0.0] * len(self.y)
        scales = np.maximum(FLOOR * self.zero_objectives, LEAST_FLOOR)
        return [float(scale) for scale in scales]

    @functools.cached_property
    def _weights(self) -> Vector:
        """C of each dual variable."""
        return self.C if self.q is None else np.tile(self.C, 2)

    def _upper(self, W: Vector, b: Vector) -> tuple[Vector, Vector]:
        """Upper bounds, and what they allow for rounding: (t,)."""
        m, n = self.X.shape
        off, more = gamma_n(n + 8), gamma_n(m + 8)
        squares = np.einsum("ij,ij->i", W, W)
        f = W @ self.X.T
        f += b[:, np.newaxis]
        size = np.sqrt(squares) + np.abs(b)  # of a score, by the length of a row
        f *= self.y
        if self.q is None:
            slack = 1.0 - f
            errors = np.multiply.outer(off * SLACK * (size + 1.0), self._lengths[0] + 1.0)
        else:
            slack, more = self.q.copy(), gamma_n(2 * m + 8)
            slack[:, :m] -= f
            slack[:, m:] += f
            errors = np.multiply.outer(size, self._lengths[0] + 1.0)
            errors = (off * SLACK) * (np.tile(errors, 2) + np.abs(self.q))
        plain = (self._weights * self.loss.value(slack)).sum(axis=1)
        slack += errors
        losses = (self._weights * self.loss.value(slack)).sum(axis=1) * (1.0 + more)
        rest = 0.5 * squares
        if self.intercept == "penalized":
            rest += 0.5 * b * b
        over = off * rest
        return rest + over + losses, over + losses - plain

    def _lower(self, alpha: Vector) -> tuple[Vector, Vector]:
        """Lower bounds, and how much they may lack by rounding: (t,)."""
        m, n = self.X.shape
        off, c, mass = gamma_n(m + n + 8), alpha, alpha.sum(axis=1)
        linear, reached = mass, mass
        if self.q is not None:
            off, c = gamma_n(2 * m + n + 8), alpha[:, :m] - alpha[:, m:]
            product = self.q * alpha
            linear, reached = product.sum(axis=1), np.abs(product).sum(axis=1)
        c = self.y * c
        rows, columns = self._lengths
        G = c @ self.X
        total = np.abs(c.sum(axis=1)) + off * mass
        length = np.sqrt(np.einsum("ij,ij->i", alpha, alpha)) * SLACK + TINY
        # Of each column of G by its length; together by the length of them all.
        error = off * length * float(np.sqrt(columns @ columns)) * SLACK
        squares = np.einsum("ij,ij->i", G, G)
        rest = 0.5 * squares
        under = (np.sqrt(squares) * SLACK + error) * error
        if self.intercept == "penalized":
            rest += 0.5 * total * total
        if self.loss.dual_share:
            rest += (0.25 * self.loss.dual_share) * (alpha * (alpha / self._weights)).sum(1)
        under += off * (reached + rest)
        if self.intercept == "free":
            both = alpha if self.q is None else alpha[:, :m] + alpha[:, m:]
            reach = (both @ rows) * SLACK  # at least sum alpha |x|
            slope = reached + reach * (np.sqrt(squares) * SLACK + error)
            costs = map(
                repair_error,
                total.tolist(),
                mass.tolist(),
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
