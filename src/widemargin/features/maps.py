"""Feature maps z(x) of r dimensions with z(x)'z(x') near k(x, x').

Rows z(x_i) make every linear solver a solver of kernel problems. Maps through landmarks
z_j, ``z(x) = W' (k(x, z_1), ..., k(x, z_l))``, are made of kernel values: z(x)'w is the
score of a kernel model of the landmarks, whose coefficients are W w. The
others are random Fourier features and the monomials of a polynomial of degree 2.
`widemargin.features.methods` makes them.
"""

import shutil
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from widemargin.arrays import Index, Vector
from widemargin.data.memory import as_rows
from widemargin.data.outofcore.copied import copied_rows
from widemargin.data.rows import Rows
from widemargin.kernels.engines import cross_values
from widemargin.kernels.kernel import Kernel
from widemargin.numerics import linalg
from widemargin.parameters import Checker, in_one_line
from widemargin.system import deadline, progress
from widemargin.system.memory import free_bytes
from widemargin.system.threads import n_threads

Matrix = linalg.Matrix
Features = NDArray[Any]

# Numbers of a tile of rows that are in memory beside the features.
TILE = 1 << 22
# Operations of a tile, of 192 rows at least: between two the clock is looked at.
TILE_FLOPS, TILE_ROWS = 2e9, 192
# Flops a second of a thread that makes features of dense rows: 4e10 to 1e11 measured
# for ranks 64 to 1024. Bytes a second of features that are written once and read ten
# times, as solvers do, from the page cache and from a disk: writing 0.2e9, reading 3e9
# and 0.2e9 to 1.4e9 (benchmarks/lowrank/streaming.py).
COMPUTED, FROM_CACHE, FROM_DISK = 5e10, 1e9, 3e8
STORES = ("auto", "never", "always")


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

    def __repr__(self) -> str:
        shape = {"landmarks": len(self.whitening), "rank": self.rank}
        facts = self.kernel.facts | {"n_features": self.n_features} | shape
        return in_one_line(self, **facts)

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

    def flops(self, entries: float) -> float:
        """Operations for a row with these entries; a value of the kernel counts 20."""
        return len(self.whitening) * (2.0 * entries + 20.0 + 2.0 * self.rank)

    def prepared(self, n_jobs: int | None) -> Callable[[Matrix], Features]:
        """A function of blocks of rows (k, n): their features (k, r)."""
        values = cross_values(self.kernel, self.vectors, self.values, n_jobs)
        return lambda block: np.asarray(values(block) @ self.whitening)


@dataclass(frozen=True)
class FourierFeatures:
    """z(x) = (cos(x'o_1), sin(x'o_1), cos(x'o_2), ...) / sqrt(r / 2).

    The cosines come first. The frequencies are columns of a matrix (n, r / 2).
    """

    frequencies: Features

    def __repr__(self) -> str:
        return in_one_line(self, n_features=self.n_features, rank=self.rank)

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

    def flops(self, entries: float) -> float:
        """Operations for a row with these entries; a cosine counts 20."""
        return self.rank * (entries + 20.0)

    def prepared(self, n_jobs: int | None) -> Callable[[Matrix], Features]:
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

    def flops(self, entries: float) -> float:
        """Operations for a row, whatever its entries."""
        return 2.0 * self.rank

    def prepared(self, n_jobs: int | None) -> Callable[[Matrix], Features]:
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


def tiles(
    expand: Expand, X: Matrix, n_jobs: int | None = None
) -> Iterator[tuple[slice, Features]]:
    """The features of X (k, n), some rows at a time."""
    make, size = expand.prepared(n_jobs), max(1, TILE // max(1, expand.held))
    flops = expand.flops(linalg.density(X) * X.shape[1])
    size = min(size, max(TILE_ROWS, int(TILE_FLOPS / flops)))
    for start in range(0, X.shape[0], size):
        deadline.check()
        stop = min(start + size, X.shape[0])
        yield slice(start, stop), make(linalg.row_slice(X, start, stop))
        progress.done(stop - start)


def features_of(expand: Expand, X: Matrix, n_jobs: int | None = None) -> Features:
    """The features of X (k, n): (k, r)."""
    out = np.empty((X.shape[0], expand.rank), expand.dtype)
    for part, features in tiles(expand, X, n_jobs):
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
        Z, of the rows that it was made of; None where these are not in memory, or it
        was made with ``features=False``. ``dataclasses.replace(z, features=None)`` is a
        map without them, to be kept with a model.
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
    seconds : float, time to make the map and the features, without `error`; in
        ``SVC.feature_map_`` with it, and with that to store features in a file
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

    def __repr__(self) -> str:
        facts = {"method": self.method} | self.kernel.facts
        facts |= {"n_features": self.expand.n_features, "rank": self.rank}
        facts |= {"trace_residual": self.trace_residual, "error": self.error}
        return in_one_line(self, **facts)

    @property
    def rank(self) -> int:
        """Dimensions r."""
        return self.expand.rank

    @property
    def dtype(self) -> Any:
        """Of the features."""
        return self.expand.dtype

    @property
    def density(self) -> float:
        """Share of the features that are stored: all."""
        return 1.0

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
        check, rows = Checker("FeatureMap.transform"), as_rows(X)
        block = rows.in_memory()
        if block is None:
            check.refuse_part("X", "be in memory", "rows that are not (take `rows`)")
        self._check_width(check, rows)
        rows.refuse_nonfinite()
        self.kernel.refuse_outside(block)
        return features_of(self.expand, block)

    def map(self, block: Matrix, /) -> Features:
        """Features of a block of rows (k, n), dense or CSR: (k, r).

        As `transform` does, but nothing is checked and kernel values are made by one
        thread: it works for one of the threads of a sweep, see `Rows.mapped`.
        """
        return features_of(self.expand, block, n_jobs=1)

    def rows(
        self, X: ArrayLike, store: Literal["auto", "never", "always"] = "auto"
    ) -> Rows:
        """Rows z(x), for solvers: computed in each sweep, or stored in a file once.

        Parameters
        ----------
        X : array or sparse matrix (m, n), or Rows of any storage
            For a precomputed kernel the values (m, l) with the rows of the map.
        store : str, default="auto"
            "never": computed block by block in each sweep, which is
            ``as_rows(X).mapped(z)``. "always": computed once, by one sweep, and kept as
            float32 in a temporary file of 4 m r bytes (TMPDIR says where), which is
            gone with the rows. "auto": stored where ten sweeps are faster then, and the
            disk has room for it twice.

        Returns
        -------
        Rows (m, r)
            With the threads of X; a memory_limit of rows in files is theirs too.

        Raises
        ------
        ValueError
            Another number of columns, or an unknown word; NaN or infinity where they
            are stored.
        OSError
            "always" where the disk has no room, or cannot be written.

        Notes
        -----
        Computing takes 2 l (n + r + 10) flops a row in each sweep, reading 4 r bytes:
        with one thread, l = r and dense rows "auto" stores where n + r is above 90 and
        half of the free memory, as page cache, holds the file, or else above 323.

        Examples
        --------
        >>> import numpy as np
        >>> from widemargin import Kernel
        >>> from widemargin.features.methods import feature_map
        >>> X = np.random.default_rng(0).normal(size=(500, 2))
        >>> z = feature_map(X, Kernel("rbf", gamma=0.1), rank=40, features=False)
        >>> z.rows(X).shape, z.features
        ((500, 40), None)
        """
        check, rows = Checker("FeatureMap.rows"), as_rows(X)
        check.choice("store", store, STORES)
        self._check_width(check, rows)
        self.kernel.refuse_rows(rows)
        mapped = rows.mapped(self)
        if store == "never" or (store == "auto" and not self._is_worth_storing(rows)):
            return mapped
        rows.refuse_nonfinite()
        options = {"memory_limit": None} if rows.is_in_memory else {}
        with progress.counting(rows.shape[0]):
            return copied_rows(mapped, **{**rows.options, **options})

    def _is_worth_storing(self, rows: Rows) -> bool:
        """Whether reading z(x) is faster than computing it, and there is room."""
        m, n = rows.shape
        size = 4 * m * self.rank
        threads = n_threads(rows.options.get("n_jobs"))
        computing = m * self.expand.flops(n * rows.density) / (COMPUTED * threads)
        reading = size / (FROM_CACHE if size <= free_bytes() else FROM_DISK)
        if computing <= reading:
            return False
        try:
            free = shutil.disk_usage(tempfile.gettempdir()).free
        except OSError:  # no folder for temporary files
            return False
        return free >= 2 * size

    def _check_width(self, check: Checker, rows: Rows) -> None:
        n = self.expand.n_features
        if rows.shape[1] != n:
            check.refuse_part("X", f"have {n} columns", str(rows.shape[1]))

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
            A map without landmarks, or another shape of w.
        """
        if self.whitening is None:
            raise ValueError(
                f"A map of the method {self.method!r} has no landmarks, so its models "
                "have no coefficients."
            )
        w = np.asarray(w)
        if w.shape[:1] != (self.rank,) or w.ndim > 2:
            check, r = Checker("FeatureMap.coefficients"), self.rank
            check.refuse_part("w", f"have shape ({r},) or ({r}, c)", f"{w.shape}")
        return np.asarray(self.whitening.astype(np.float64) @ w)
