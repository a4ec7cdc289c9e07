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

# Share of C by which a dual variable lies away from its bounds: rounding.
INSIDE = 1e-12


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

    def centered(self, alpha: Vector, W: Vector, b: Vector) -> Vector:
        """Intercepts in the middle of the best ones, where an interval is best.

        That is so for the hinge where no alpha (t, m) or (t, 2 m) lies between 0 and C.
        """
        if self.intercept != "free" or not self.loss.is_bounded:
            return b
        alpha, b = alpha.reshape(len(alpha), -1, len(self.C)), b.copy()
        above, below = alpha > INSIDE * self.C, alpha < (1.0 - INSIDE) * self.C
        margins = np.broadcast_to(self._margins, alpha.shape)
        for k in np.flatnonzero(~(above & below).any(axis=(1, 2))).tolist():
            y = np.stack([self.y[k], -self.y[k]])[: alpha.shape[1]]
            levels = y * margins[k] - self.X @ W[k]
            rises = np.where(y > 0.0, below[k], above[k])
            low = levels[rises].max(initial=-np.inf)
            high = levels[~rises].min(initial=np.inf)
            if -np.inf < low <= high < np.inf:
                b[k] = 0.5 * (low + high)
        return b

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
            alpha = alpha.reshape(len(alpha), -1, len(self.C))
            primal, over = self._upper(W, b)
            dual, under = self._lower(alpha)
            right = (alpha >= 0.0) & (alpha <= self.loss.upper(self.C))
            dual[~right.all(axis=(1, 2)) | ~np.isfinite(dual)] = -np.inf  # so is NaN
            primal[np.isnan(primal)] = np.inf
            bounds = primal.tolist(), dual.tolist(), self._scales
            found = zip(*bounds, (over + under).tolist(), strict=True)
            return [Certificate(*numbers) for numbers in found]

    @functools.cached_property
    def zero_objectives(self) -> Vector:
        """The objectives at zero: (t,)."""
        losses = self.loss.value(self._margins) * self.C
        return np.asarray(np.broadcast_to(losses.sum(axis=(1, 2)), len(self.y)))

    @functools.cached_property
    def _margins(self) -> Vector:
        """What margins have to reach: (t, 2, m), or 1."""
        if self.q is None:
            return np.ones((1, 1, 1))
        return self.q.reshape(len(self.q), 2, -1)

    @property
    def _scales(self) -> list[float]:
        """What gaps are relative to at least, as of `Problem.scale`."""
        if self.q is None:
            return [0.0] * len(self.y)
        scales = np.maximum(FLOOR * self.zero_objectives, LEAST_FLOOR)
        return [float(scale) for scale in scales]

    def _upper(self, W: Vector, b: Vector) -> tuple[Vector, Vector]:
        """Upper bounds, and what they allow for rounding: (t,)."""
        (m, n), q = self.X.shape, self._margins
        off, more = gamma_n(n + 8), gamma_n(q.shape[1] * m + 8)
        squares = np.einsum("ij,ij->i", W, W)
        f = W @ self.X.T
        f += b[:, np.newaxis]
        f *= self.y
        slack = q - (f[:, np.newaxis] if self.q is None else np.stack([f, -f], axis=1))
        size = np.sqrt(squares) + np.abs(b)  # of a score, by the length of a row
        errors = np.multiply.outer(off * SLACK * size, self._lengths + 1.0)
        errors = errors[:, np.newaxis] + (off * SLACK) * np.abs(q)
        plain = (self.C * self.loss.value(slack)).sum(axis=(1, 2))
        slack += errors
        losses = (self.C * self.loss.value(slack)).sum(axis=(1, 2)) * (1.0 + more)
        rest = 0.5 * squares
        if self.intercept == "penalized":
            rest += 0.5 * b * b
        over = off * rest
        return rest + over + losses, over + losses - plain

    def _lower(self, alpha: Vector) -> tuple[Vector, Vector]:
        """Lower bounds, and how much they may lack by rounding: (t,).

        By alpha (t, 1 or 2, m).
        """
        off = gamma_n(alpha[0].size + self.X.shape[1] + 8)
        (linear, mass, reach), rows = self._linear(alpha), self._lengths
        c = self._signed(alpha)
        G = c @ self.X
        total = np.abs(c.sum(axis=1)) + off * mass
        length = np.sqrt(np.einsum("ijk,ijk->i", alpha, alpha)) * SLACK + TINY
        # Of each column of G by its length; together by the length of them all, which
        # is that of all rows.
        error = off * length * float(np.sqrt(rows @ rows)) * SLACK
        squares = np.einsum("ij,ij->i", G, G)
        rest = 0.5 * squares
        under = (np.sqrt(squares) * SLACK + error) * error
        if self.intercept == "penalized":
            rest += 0.5 * total * total
        if self.loss.dual_share:
            shares = (alpha * (alpha / self.C)).sum(axis=(1, 2))
            rest += (0.25 * self.loss.dual_share) * shares
        under += off * (reach + rest)
        if self.intercept == "free":
            far = (alpha.sum(axis=1) @ rows) * SLACK  # at least sum alpha |x|
            slope = reach + far * (np.sqrt(squares) * SLACK + error)
            costs = map(
                repair_error,
                total.tolist(),
                mass.tolist(),
                slope.tolist(),
                (far * far).tolist(),
            )
            under += np.fromiter(costs, np.float64)
        return linear - rest - under, under

    def _signed(self, alpha: Vector) -> Vector:
        """Coefficients of the rows: (t, m)."""
        if self.q is None:
            return np.asarray(self.y * alpha[:, 0])
        return np.asarray(self.y * (alpha[:, 0] - alpha[:, 1]))

    def _linear(self, alpha: Vector) -> tuple[Vector, Vector, Vector]:
        """Sums q'alpha, sum alpha and |q|'alpha: (t,)."""
        mass = alpha.sum(axis=(1, 2))
        if self.q is None:
            return mass, mass, mass
        product = self._margins * alpha
        return product.sum(axis=(1, 2)), mass, np.abs(product).sum(axis=(1, 2))

    @functools.cached_property
    def _lengths(self) -> Vector:
        """Lengths of the rows, or a little more."""
        squares = np.einsum("ij,ij->i", self.X, self.X)
        return np.asarray(np.sqrt(squares) * SLACK + TINY)
