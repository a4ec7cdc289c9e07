"""What a feature map is made of, rows and a kernel, and how it is measured."""

import time
from typing import Any

import numpy as np
from numpy.typing import NDArray

from widemargin.columns import free_bytes
from widemargin.data.memory import as_rows
from widemargin.feature_map import (
    Expand,
    FeatureMap,
    Features,
    LandmarkFeatures,
    features_of,
)
from widemargin.kernel_blocks import aligned, padded
from widemargin.kernel_sources import Called, Named
from widemargin.kernels import Kernel
from widemargin.parameters import Checker

Vector = NDArray[np.float64]
Index = NDArray[np.intp]

# Share of the largest k(x, x), or eigenvalue, below which a residual is rounding.
CUT = {np.dtype(np.float64): 1e-12, np.dtype(np.float32): 1e-5}
# Rows of the error estimate, and the number of rows up to which all are taken.
ERROR_ROWS, ALL_ROWS = 256, 2048
# Numbers of kernel rows that are in memory at a time.
TILE = 1 << 23
_PRECISIONS = (np.float32, np.float64)


class Given:
    """The rows and the kernel that a map is made of, after checks.

    Attributes
    ----------
    check : Checker
    X : dense or CSR (m, n)
    kernel : Kernel, with gamma as a number
    m : int
    dtype : of the features; `values`, of kernel values: float64 where that is needed
    source : Named or Called, kernel values
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
    ) -> None:
        self.begin, self.check = time.perf_counter(), Checker(owner)
        self.check.count("memory_limit", limit, optional=True)
        self.check.choice("dtype", dtype, _PRECISIONS)
        if not isinstance(kernel, Kernel):
            self.check.refuse_part("kernel", "be a Kernel", repr(kernel))
        rows = as_rows(rows)
        rows.refuse_nonfinite()
        self.X, self.kernel = rows.in_memory(), kernel.resolved(rows)
        if self.X is None:
            self.check.refuse_part("rows", "be in memory", "rows that are not")
        self.m, self.n = self.X.shape
        if kernel.name == "precomputed" and self.m != self.n:
            expected = "be a square matrix, of a precomputed kernel,"
            self.check.refuse_part("rows", expected, f"shape {self.X.shape}")
        self.dtype = self.values = np.dtype(dtype)
        self._limit = free_bytes() if limit is None else limit
        self.rng = np.random.default_rng(random_state)
        self.source = self._source(self.dtype)
        if self.source.is_rough and self.dtype != np.float64:
            self.values = np.dtype(np.float64)
            self.source = self._source(self.values)
        self._check_values()

    def _source(self, dtype: Any) -> Named | Called:
        made = Named if self.kernel.is_named else Called
        return made(self.X, self.kernel, dtype, None)

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
        """Refuse what does not fit in memory: so many numbers of the dtype."""
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
        precomputed = self.kernel.name == "precomputed"
        vectors = np.arange(self.m)[J] if precomputed else self.X[J]
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
        if features is None:
            self.reserve(self.m * expand.rank)
            features = features_of(expand, self.X)
        seconds = time.perf_counter() - self.begin
        trace, error, count = self.residuals(features)
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

    def residuals(self, Z: Features) -> tuple[float, float, int]:
        """Trace residual and error of features (m, r), and the rows of the latter.

        All rows up to 2048, else 256: m kernel values and m r multiplications for each.
        """
        kept = float(np.einsum("ij,ij->", Z, Z, dtype=np.float64))
        count = self.m if self.m <= ALL_ROWS else ERROR_ROWS
        some = np.sort(self.rng.permutation(self.m)[:count])
        return 1.0 - kept / self.trace, self._error(Z, some), count

    def _error(self, Z: Features, I: Index) -> float:  # noqa: E741
        """Largest row sum of |K - Z Z'| over that of |K|, of rows I."""
        apart, whole = [], []
        size = max(1, TILE // self.m)
        for start in range(0, len(I), size):
            some = I[start : start + size]
            K = self.columns(some)
            whole.append(np.abs(K).sum(axis=1, dtype=np.float64).max())
            K = np.abs(K - Z[some] @ Z.T)
            apart.append(K.sum(axis=1, dtype=np.float64).max())
        return float(max(apart) / max(whole))
