"""Many linear problems over the same few rows, and their certificates, all at once.

The problems of `LinearProblem` with labels of their own: one class against the rest.
Or regressions, which have two rows for each sample: products are made once for both.
The core makes the bounds from products of all problems, as those of problems with a
kernel; how far rounding may have moved them follows from the lengths of rows and
columns (`widemargin.numerics.rounding`).
"""

import dataclasses
import functools
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from widemargin import _core
from widemargin.arrays import Index64, Vector
from widemargin.losses.pointwise import PointwiseLoss
from widemargin.numerics import linalg
from widemargin.numerics.rounding import SLACK, TINY, gamma_n
from widemargin.problems.base import FLOOR, LEAST_FLOOR
from widemargin.problems.many import INTERCEPTS
from widemargin.solution import Certificate


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
    X : ndarray (m, n), float64, or csr_array of float32 or float64
    y : ndarray (t, m), labels +1 and -1 of each problem
    C : ndarray (t, m), weights >= 0
    loss : PointwiseLoss
    intercept : {"free", "penalized", "none"}
    q : ndarray (t, 2 m) or None, default=None
        What the margins of regressions have to reach: of m rows with the labels y, and
        of the same rows with -y. None: 1, of each row once.
    """

    X: Any
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
        q, m, shift = self.q, self.C.shape[1], np.zeros(len(self.q))
        if self.intercept == "free":
            middle = 0.5 * self.y * (q[:, :m] - q[:, m:])
            shift = (self.C * middle).sum(axis=1) / self.C.sum(axis=1)
            moved = self.y * shift[:, np.newaxis]
            q = np.concatenate([q[:, :m] - moved, q[:, m:] + moved], axis=1)
        size = float(np.abs(q).mean())
        if not 0.0 < size < np.inf:
            return self, Units()
        unit = float(2.0 ** np.round(np.log2(size)))
        with np.errstate(over="ignore"):
            C = self.C / unit if self.loss.is_bounded else self.C
        if not np.isfinite(C.sum()):
            return self, Units()
        return dataclasses.replace(self, C=C, q=q / unit), Units(unit, shift)

    def centered(self, alpha: Vector, W: Vector, b: Vector) -> Vector:
        """Intercepts in the middle of the best ones, where an interval is best.

        That is so for the hinge where no alpha (t, m) or (t, 2 m) lies between 0 and C.
        Rows with C = 0, which a fold holds out, have no say.
        """
        if self.intercept != "free" or not self.loss.is_bounded:
            return b
        (t, m), b = self.C.shape, b.copy()
        alpha, C = alpha.reshape(t, -1, m), self.C[:, np.newaxis]
        above, below = alpha > _core.INSIDE * C, alpha < (1.0 - _core.INSIDE) * C
        margins = np.broadcast_to(self._margins, alpha.shape)
        for k in np.flatnonzero(~(above & below).any(axis=(1, 2))).tolist():
            y = np.stack([self.y[k], -self.y[k]])[: alpha.shape[1]]
            levels = y * margins[k] - self.X @ W[k]
            rises = np.where(y > 0.0, below[k], above[k])
            falls = np.where(y > 0.0, above[k], below[k])
            low = levels[rises].max(initial=-np.inf)
            high = levels[falls].min(initial=np.inf)
            if -np.inf < low <= high < np.inf:
                b[k] = 0.5 * (low + high)
        return b

    def certificates(self, *answers: Any) -> list[Certificate]:
        """What `bounds` finds, as a list of `Certificate`."""
        return [Certificate(*one) for one in self.bounds(*answers).tolist()]

    def bounds(self, alpha: Vector, W: Vector, b: Vector) -> Vector:
        """Bounds of the optima by dual variables, weights and intercepts.

        Parameters
        ----------
        alpha : ndarray (t, m) or (t, 2 m), as q
            Its sum with the labels is zero but for rounding if b is free.
        W : ndarray (t, n)
        b : ndarray (t,)

        Returns
        -------
        ndarray (t, 4), the numbers of a `Certificate` of each
            Infinite bounds where a number has left the range, or a dual variable its
            bounds.
        """
        out = np.empty((len(alpha), 4))
        with np.errstate(all="ignore"):
            c = self._places_y * alpha
            _core.certify_many(
                alpha.shape[1] * np.arange(1, len(alpha) + 1),
                self._data,
                not self.loss.is_bounded,
                INTERCEPTS[self.intercept],
                (c.ravel(), *self._scores(W, b)),
                np.ones(c.size, bool),
                self._rows,
                self._lengths,
                (b, np.zeros(len(b))),
                self._squares(W, c, alpha),
                out,
            )
            out[:, 3] += out[:, 2]
            out[:, 2] = self._scales
        return out

    @functools.cached_property
    def zero_objectives(self) -> Vector:
        """The objectives at zero: (t,)."""
        losses = self.loss.value(self._margins) * self.C[:, np.newaxis]
        return np.asarray(losses.sum(axis=(1, 2)))

    @functools.cached_property
    def _margins(self) -> Vector:
        """What margins have to reach: (t, 2, m), or 1."""
        if self.q is None:
            return np.ones((1, 1, 1))
        return self.q.reshape(len(self.q), 2, -1)

    @property
    def _scales(self) -> Vector | float:
        """What gaps are relative to at least, as of `Problem.scale`: (t,), or 0."""
        if self.q is None:
            return 0.0
        return np.maximum(FLOOR * self.zero_objectives, LEAST_FLOOR)

    @functools.cached_property
    def _places_y(self) -> Vector:
        """Labels of all rows of each problem, twice for regressions: (t, m or 2 m)."""
        return self.y if self.q is None else np.concatenate([self.y, -self.y], axis=1)

    @functools.cached_property
    def _data(self) -> tuple[Vector, Vector, Vector, Vector]:
        """Labels, C and q one problem after the other; no problem has a mass."""
        y, q = self._places_y.ravel(), self.q
        q = np.ones(len(y)) if q is None else q.ravel()
        return y, self.places_C.ravel(), q, np.full(len(self.y), np.nan)

    @functools.cached_property
    def places_C(self) -> Vector:
        """C of all rows of each problem, twice for regressions: (t, m or 2 m)."""
        return self.C if self.q is None else np.concatenate([self.C, self.C], axis=1)

    @functools.cached_property
    def _rows(self) -> Index64:
        """The row of each label."""
        m = self.C.shape[1]
        return np.tile(np.arange(m), self._places_y.size // m)

    def _scores(self, W: Vector, b: Vector) -> tuple[Vector, Vector]:
        """Scores of all labels by the weights, and how far off they may be."""
        off, t = gamma_n(self.X.shape[1] + 8) * SLACK, len(W)
        size = np.sqrt(np.einsum("ij,ij->i", W, W)) + np.abs(b)  # by a row's length
        errors = np.multiply.outer(off * SLACK * size, self._lengths + 1.0)
        f = self._of_rows(W)
        if self.q is None:
            return f.ravel(), errors.ravel()
        errors = np.concatenate([errors, errors], axis=1)
        errors += off * np.abs(self.q).reshape(t, -1)
        return np.concatenate([f, f], axis=1).ravel(), errors.ravel()

    def _squares(self, W: Vector, c: Vector, alpha: Vector) -> Vector:
        """Squares of W and of the weights that c makes, and their errors: (t, 4)."""
        (m, n), rows, out = self.X.shape, self._lengths, np.empty((len(W), 4))
        off = gamma_n(alpha.shape[1] + n + 8)
        G = self._of_columns(c if self.q is None else c[:, :m] + c[:, m:])
        length = np.sqrt(np.einsum("ij,ij->i", alpha, alpha)) * SLACK + TINY
        # Of each column of G by its length; together by the length of them all, which
        # is that of all rows.
        error = off * length * float(np.sqrt(rows @ rows)) * SLACK
        np.einsum("ij,ij->i", W, W, out=out[:, 0])
        np.einsum("ij,ij->i", G, G, out=out[:, 2])
        out[:, 1::2] = 2.0 * off * out[:, ::2]
        out[:, 3] += 2.0 * (np.sqrt(out[:, 2]) * SLACK + error) * error * SLACK
        return out

    @functools.cached_property
    def _lengths(self) -> Vector:
        """Lengths of the rows, or a little more."""
        squares = linalg.row_squares(self.X)
        return np.asarray(np.sqrt(squares) * SLACK + TINY)

    def _of_rows(self, W: Vector) -> Vector:
        """W X', (t, m)."""
        if not sparse.issparse(self.X):
            return np.asarray(W @ self.X.T)
        return np.stack([linalg.matvec(self.X, w) for w in W])

    def _of_columns(self, c: Vector) -> Vector:
        """C X, (t, n), of numbers of the rows (t, m)."""
        if not sparse.issparse(self.X):
            return np.asarray(c @ self.X)
        return np.stack([linalg.rmatvec(self.X, one) for one in c])
