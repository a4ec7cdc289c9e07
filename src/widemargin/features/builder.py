"""What a feature map is made of, rows and a kernel, and how it is measured."""

import time
from typing import Any

import numpy as np

from widemargin.arrays import Index, Vector
from widemargin.data.blocks import total
from widemargin.data.kept import Spread
from widemargin.data.memory import as_rows
from widemargin.data.rows import RemoteRows
from widemargin.features.maps import (
    Expand,
    FeatureMap,
    Features,
    LandmarkFeatures,
    features_of,
)
from widemargin.kernels.engines import Engine, cross_values, engine
from widemargin.kernels.kernel import Kernel
from widemargin.kernels.packed import aligned, padded
from widemargin.kernels.table import PARAMETERS
from widemargin.numerics import linalg
from widemargin.parameters import Checker
from widemargin.system import deadline, progress
from widemargin.system.memory import free_bytes

Sums = tuple[float, float, Vector, Vector]

# Share of the largest k(x, x), or eigenvalue, below which a residual is rounding.
CUT = {np.dtype(np.float64): 1e-12, np.dtype(np.float32): 1e-5}
# Rows that landmarks are chosen from, where features are not held. They left as much
# of the trace as all 32,561 rows of a9a, ranks 64 and 256, to 3 % with every method; of
# 2,048 rows "cholesky" left 18 % less: there are fewer outliers among them.
SAMPLE = 16384
# Rows of the error estimate, and the number of rows up to which all are taken.
ERROR_ROWS, ALL_ROWS = 256, 2048
# Columns that their absolute row sums are made of, each drawn from its share of all.
ERROR_COLUMNS = 8192
# Numbers of kernel rows that are in memory at a time.
TILE = 1 << 23
_PRECISIONS = (np.float32, np.float64)


class MapBuilder:
    """The rows and the kernel that a map is made of, after checks; it measures maps.

    Attributes
    ----------
    check : Checker
    rows : Rows, all of them
    sample : int ndarray or None, which of the rows landmarks are chosen from, and no
        features are held; None: all, and features are
    X : dense or CSR (m, n), these
    kernel : Kernel, with gamma as a number
    m : int, their number
    dtype : of the features; `values`, of kernel values: float64 where that is needed
    source : Engine, of kernel values
    diagonal : ndarray (m,)
    trace : float
    rng : numpy Generator
    """

    def __init__(
        self,
        owner: str,
        rows: Any,
        kernel: Kernel,
        dtype: Any,
        random_state: Any,
        limit: int | None,
        features: bool | None = None,
    ) -> None:
        self.begin, self.check = time.perf_counter(), Checker(owner)
        self.check.memory_limit(limit)
        self.check.choice("dtype", dtype, _PRECISIONS)
        if not isinstance(kernel, Kernel):
            self.check.refuse_part("kernel", "be a Kernel", repr(kernel))
        self.rng = np.random.default_rng(random_state)
        self.rows = rows = as_rows(rows)
        self.kernel = kernel.resolved(rows)
        if kernel.name not in PARAMETERS or not isinstance(kernel.gamma, str):
            rows.refuse_nonfinite()  # which the moments have done for gamma
        self._choose_rows(features)
        self.m, self.n = self.X.shape
        if kernel.is_precomputed and self.m != self.n:
            expected = "be a square matrix, of a precomputed kernel,"
            self.check.refuse_part("rows", expected, f"shape {self.X.shape}")
        self.dtype = self.values = np.dtype(dtype)
        self._limit = free_bytes() if limit is None else limit
        self.source = self._source(self.dtype)
        if self.source.is_rough and self.dtype != np.float64:
            self.values = np.dtype(np.float64)
            self.source = self._source(self.values)
        self._check_values()

    def _choose_rows(self, features: bool | None) -> None:
        """All rows, or a uniform sample of them where no features are to be held."""
        self.check.choice("features", features, (None, True, False))
        if features is None:
            features = self.rows.is_in_memory
        if features and not self.rows.is_in_memory:
            self.check.refuse_part("rows", "be in memory", "rows that are not")
        self.sample: Index | None = None
        if features:
            self.X: Any = self.rows.in_memory()
            return
        if self.kernel.is_precomputed:
            expected = "be in memory, and features held, for a precomputed kernel"
            self.check.refuse_part("rows", expected, "a sample of them")
        m = self.rows.shape[0]
        count = int(min(m, SAMPLE, max(1.0, self.rows.copy_rows)))
        self.sample = np.arange(m)
        if count < m:  # else nothing is drawn: choices are those of rows in memory
            self.sample = np.sort(self.rng.choice(m, count, replace=False))
        self.X = self.rows.take(self.sample)

    def _source(self, dtype: Any) -> Engine:
        return engine(self.X, self.kernel, dtype, None)

    def _check_values(self) -> None:
        """Refuse what is seen to be no kernel: no symmetry, or no positive trace."""
        some = np.arange(min(self.m, 64))
        out = aligned((len(some), padded(len(some))), self.values)
        self.source.block(some, some, out)
        self.diagonal = self.kernel.diag(self.X)
        self.trace = float(self.diagonal.sum())
        if not self.trace > 0:
            expected = "have a positive trace on the rows"
            self.check.refuse_part("kernel", expected, f"{self.trace:g}")

    def reserve(self, numbers: int) -> None:
        """Refuse a number of entries of the dtype that does not fit in memory."""
        needed = numbers * self.dtype.itemsize
        if needed > self._limit:
            expected = f"be at least {needed:,} bytes for the features"
            self.check.refuse_part("memory_limit", expected, f"{self._limit:,}")

    def rank(self, rank: Any) -> int:
        """The rank, at most m."""
        self.check.count("rank", rank)
        return int(min(rank, self.m))

    def columns(self, J: Index) -> Features:
        """Rows J of K: (len(J), m)."""
        out = aligned((len(J), padded(self.m)), self.values)
        for part in self.source.cut(len(J)):
            some, place = J[part], np.arange(part.stop - part.start)
            self.source.compute(some, None, None, out[part], place)
        return out[:, : self.m]

    def times(self, V: Features) -> Features:
        """The product K V, (m, b), with tiles of K."""
        out = np.empty(V.shape, self.dtype)
        size = max(1, TILE // self.m)
        for start in range(0, self.m, size):
            some = np.arange(start, min(start + size, self.m))
            out[some[0] : some[-1] + 1] = self.columns(some) @ V
        return out

    def landmark_features(
        self, J: Index | slice, W: Vector | Features
    ) -> LandmarkFeatures:
        """The map of landmarks J with whitening W (l, r)."""
        vectors = self.source.vectors(J)
        W = np.ascontiguousarray(W, dtype=self.dtype)
        return LandmarkFeatures(self.kernel, self.n, vectors, W, self.values)

    def made(
        self,
        method: str,
        expand: Expand,
        landmarks: Index | None = None,
        features: Features | None = None,
    ) -> FeatureMap:
        """The map, measured."""
        if self.sample is not None:
            features = None
            landmarks = None if landmarks is None else self.sample[landmarks]
        elif features is None:
            self.reserve(self.m * expand.rank)
            with progress.counting(self.m):
                features = features_of(expand, self.X)
        seconds = time.perf_counter() - self.begin
        known = expand if features is None else features
        trace, error, count = self.residuals(known)
        return FeatureMap(
            method=method,
            kernel=self.kernel,
            features=features,
            landmarks=landmarks,
            trace_residual=trace,
            error=error,
            error_rows=count,
            seconds=seconds,
            expand=expand,
        )

    def residuals(self, known: Features | Expand) -> tuple[float, float, int]:
        """Trace residual and error, and the rows of the latter: all up to 2048, or 256.

        Of features (m, r), or of what makes them. One sweep; up to 8192 kernel values,
        and r multiplications for each, for each of these rows.
        """
        m = self.rows.shape[0]
        count = m if m <= ALL_ROWS else ERROR_ROWS
        some = np.sort(self.rng.permutation(m)[:count])
        X = self.rows.take(some)
        Z = known[some] if isinstance(known, np.ndarray) else features_of(known, X)
        remote = isinstance(self.rows, RemoteRows)
        row = range(m) if remote else np.arange(m, dtype=np.min_scalar_type(m))
        vectors = some if self.kernel.is_precomputed else X
        fixed = self.kernel, vectors, self.values
        others = Spread(m, min(m, ERROR_COLUMNS))
        kept, trace, apart, whole = self.rows.sweep(
            _sums, self.rows.state(row=row), known, fixed, Z, others
        )
        error = float(apart.max() / whole.max())
        return 1.0 - kept / (trace or self.trace), error, count


def _sums(
    block: Any,
    part: Any,
    known: Features | Expand,
    fixed: tuple[Kernel, Any, Any],
    Z: Features,
    others: Spread,
) -> Sums:
    """Of a block: the traces of ZZ' and K, row sums of |K - ZZ'| and |K| of some rows.

    The trace of K is 0 where features are known. Row sums have some of the columns.
    """
    X, values, kernel = linalg.formed(block), cross_values(*fixed, 1), fixed[0]
    size = max(1, TILE // (3 * len(Z) + Z.shape[1]))

    def sums(start: int) -> Sums:
        deadline.check()
        stop, trace = min(start + size, X.shape[0]), 0.0
        rows = linalg.row_slice(X, start, stop)
        first = int(part.row[start])
        if isinstance(known, np.ndarray):
            features = known[first : first + stop - start]
        else:
            features = features_of(known, rows, n_jobs=1)
            trace = float(kernel.diag(rows).sum())
        own = others.among(first, stop - start)
        K = values(rows[own])
        whole = np.abs(K).sum(axis=0, dtype=np.float64)
        apart = np.abs(K - features[own] @ Z.T).sum(axis=0, dtype=np.float64)
        kept = float(np.einsum("ij,ij->", features, features, dtype=np.float64))
        return kept, trace, apart, whole

    found: Sums = total(map(sums, range(0, X.shape[0], size)))
    return found
