"""Feature maps z(x) of r dimensions with z(x)'z(x') near k(x, x').

Rows z(x_i) make every linear solver a solver of kernel problems. Maps through landmarks
z_j, ``z(x) = W' (k(x, z_1), ..., k(x, z_l))``, are made of kernel values: z(x)'w is the
score of a model with the landmarks as support vectors, whose coefficients are W w. The
others are random Fourier features and the monomials of a polynomial of degree 2.
`widemargin.lowrank` makes them.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from widemargin import linalg
from widemargin.data.memory import as_rows
from widemargin.kernel_sources import Against
from widemargin.kernels import Kernel
from widemargin.parameters import Checker

Matrix = linalg.Matrix
Features = NDArray[Any]
Vector = NDArray[np.float64]
Index = NDArray[np.intp]

# Numbers of a tile of rows that are in memory beside the features.
TILE = 1 << 22


@dataclass(frozen=True)
class LandmarkFeatures:
    """z(x) = W'k, with the values k_j = k(x, z_j) of landmarks z_j.

    Attributes
    ----------
    kernel : Kernel, with gamma as a number
    n_features : int, columns of the rows
    vectors : dense or CSR (l, n), the landmarks; (l,) columns of a precomputed kernel
    whitening : ndarray (l, r): W; of the dtype of z(x)
    values : dtype of the kernel values
    """

    kernel: Kernel
    n_features: int
    vectors: Any
    whitening: Features
    values: Any

    @property
    def rank(self) -> int:
        """Dimensions r."""
        return int(self.whitening.shape[1])

    @property
    def dtype(self) -> Any:
        """Of the features."""
        return self.whitening.dtype

    @property
    def held(self) -> int:
        """Numbers of a row that are in memory at a time."""
        return len(self.whitening) + self.rank

    def prepared(self) -> Callable[[Matrix], Features]:
        """A function of blocks of rows (k, n): their features (k, r)."""
        values = Against(self.kernel, self.vectors, self.values)
        return lambda block: np.asarray(values(block) @ self.whitening)


@dataclass(frozen=True)
class FourierFeatures:
    """z(x) = (cos(x'o_1), sin(x'o_1), cos(x'o_2), ...) / sqrt(r / 2).

    The cosines come first. The frequencies are columns of a matrix (n, r / 2).
    """

    frequencies: Features

    @property
    def n_features(self) -> int:
        """Columns of the rows."""
        return len(self.frequencies)

    @property
    def rank(self) -> int:
        """Dimensions r."""
        return 2 * int(self.frequencies.shape[1])

    @property
    def dtype(self) -> Any:
        """Of the features."""
        return self.frequencies.dtype

    @property
    def held(self) -> int:
        """Numbers of a row that are in memory at a time."""
        return 2 * self.rank

    def prepared(self) -> Callable[[Matrix], Features]:
        """A function of blocks of rows (k, n): their features (k, r)."""
        return self._make

    def _make(self, block: Matrix) -> Features:
        half = self.rank // 2
        angles = np.asarray(block @ self.frequencies, dtype=self.dtype)
        out = np.empty((len(angles), self.rank), self.dtype)
        np.cos(angles, out=out[:, :half])
        np.sin(angles, out=out[:, half:])
        out /= np.sqrt(half).astype(self.dtype)
        return out


@dataclass(frozen=True)
class SquareFeatures:
    """The monomials of (gamma x'z + c)^2, scaled so that products are exact.

    gamma x_i^2 and sqrt(2) gamma x_i x_j, i < j; with c > 0 also sqrt(2 c gamma) x_i
    and c: n (n + 1) / 2 of them, and n + 1 more.
    """

    gamma: float
    coef0: float
    n_features: int
    dtype: Any

    @property
    def rank(self) -> int:
        """Dimensions r."""
        n = self.n_features
        return n * (n + 1) // 2 + (n + 1 if self.coef0 > 0 else 0)

    @property
    def held(self) -> int:
        """Numbers of a row that are in memory at a time."""
        return 2 * self.rank

    def prepared(self) -> Callable[[Matrix], Features]:
        """A function of blocks of rows (k, n): their features (k, r)."""
        return self._make

    def _make(self, block: Matrix) -> Features:
        n, c = self.n_features, self.coef0
        X = linalg.dense(block) * np.sqrt(self.gamma)
        out, end = np.empty((len(X), self.rank), self.dtype), 0
        for i in range(n):
            begin, end = end, end + n - i
            out[:, begin] = X[:, i] ** 2
            out[:, begin + 1 : end] = np.sqrt(2.0) * X[:, i, None] * X[:, i + 1 :]
        if c > 0:
            out[:, end:-1] = np.sqrt(2.0 * c) * X
            out[:, -1] = c
        return out


Expand = LandmarkFeatures | FourierFeatures | SquareFeatures


def tiles(expand: Expand, X: Matrix) -> Iterator[tuple[slice, Features]]:
    """The features of X (k, n), some rows at a time."""
    make, size = expand.prepared(), max(1, TILE // max(1, expand.held))
    for start in range(0, X.shape[0], size):
        stop = min(start + size, X.shape[0])
        yield slice(start, stop), make(linalg.row_slice(X, start, stop))


def features_of(expand: Expand, X: Matrix) -> Features:
    """The features of X (k, n): (k, r)."""
    out = np.empty((X.shape[0], expand.rank), expand.dtype)
    for part, features in tiles(expand, X):
        out[part] = features
    return out


@dataclass(frozen=True)
class FeatureMap:
    """A map z(x) of r dimensions, and how near z(x)'z(x') is to k(x, x').

    Attributes
    ----------
    method : str, that made it
    kernel : Kernel, with gamma as a number
    features : ndarray (m, r) or None
        Z, of the rows that it was made of. ``dataclasses.replace(z, features=None)``
        is a map without them, to be kept with a model.
    landmarks : int ndarray (l,) or None
        Which of the rows the landmarks are; None where there are none (Fourier features
        and polynomials).
    trace_residual : float, trace(K - Z Z') / trace(K)
        At least 0 but for rounding where K is positive semidefinite and there are
        landmarks; then it is the relative error in the trace norm. Of Fourier features
        it is 0 and says nothing: ``|z(x)|`` = 1.
    error : float, ``|K - Z Z'|_inf / |K|_inf``, the norms being largest absolute row
        sums, of `error_rows` rows [jung2008]_
    error_rows : int, all rows up to 2048, else 256 that are drawn
    seconds : float, time to make the map and the features, without `error`
    expand : what computes z(x)

    Notes
    -----
    `transform` takes l kernel values and 2 l r flops a row.
    """

    method: str
    kernel: Kernel
    features: Features | None
    landmarks: Index | None
    trace_residual: float
    error: float
    error_rows: int
    seconds: float
    expand: Expand

    @property
    def rank(self) -> int:
        """Dimensions r."""
        return self.expand.rank

    @property
    def vectors(self) -> Any:
        """The landmarks themselves, dense or CSR (l, n), or None.

        For a precomputed kernel the numbers of their columns, (l,).
        """
        return getattr(self.expand, "vectors", None)

    @property
    def whitening(self) -> Features | None:
        """W (l, r) with z(x) = W'k(x), of landmarks; else None.

        For "cholesky" and "nystroem" it is the upper triangle L^-T of the Cholesky
        factor L of the kernel matrix of the landmarks, in their order.
        """
        return getattr(self.expand, "whitening", None)

    def transform(self, X: ArrayLike) -> Features:
        """Features z(x) of rows: (k, r), of the dtype of the map.

        Parameters
        ----------
        X : array or sparse matrix (k, n), or Rows in memory
            For a precomputed kernel the values (k, m) with the rows of the map.

        Returns
        -------
        ndarray (k, r)

        Raises
        ------
        ValueError
            Another number of columns, NaN or infinity, rows that are not in memory.
        """
        check, rows = Checker("transform"), as_rows(X)
        block = rows.in_memory()
        if block is None:
            check.refuse_part("X", "be in memory", "rows that are not")
        if rows.shape[1] != self.expand.n_features:
            expected = f"have {self.expand.n_features} columns"
            check.refuse_part("X", expected, str(rows.shape[1]))
        rows.refuse_nonfinite()
        return features_of(self.expand, block)

    def coefficients(self, w: ArrayLike) -> Vector:
        """Coefficients W w of the landmarks: sum_j (W w)_j k(x, z_j) = z(x)'w.

        Parameters
        ----------
        w : array (r,) or (r, c)

        Returns
        -------
        ndarray (l,) or (l, c), float64

        Raises
        ------
        ValueError
            A map without landmarks.
        """
        if self.whitening is None:
            raise ValueError(
                f"A map of the method {self.method!r} has no landmarks, so its models "
                "have no coefficients."
            )
        return np.asarray(self.whitening.astype(np.float64) @ np.asarray(w))
