"""Kernel values of many pairs of rows, and sums of them, by the C++ core.

The samples X are packed in strips of 64 that stay in cache; a *batch* of rows Z meets
one strip after the other. Values are stored, or multiplied by weights and added up as
they are made: then nothing of the size of K is ever in memory. Each sample has a lane
of its own, so what comes out for it does not depend on the other samples.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from widemargin import _core, linalg
from widemargin.data.blocks import Blocks
from widemargin.linalg import Matrix

Vector = NDArray[np.float64]
Form = tuple[int, float, float, int]

# Kernels of the core, in its order.
NAMES = ("linear", "poly", "rbf", "sigmoid", "laplacian")
RBF, LAPLACIAN = NAMES.index("rbf"), NAMES.index("laplacian")

STRIP, GROUP = _core.KERNEL_STRIP, _core.KERNEL_GROUP
# Rows that are computed together.
BATCH = 192
# Share of nonzeros up to which a batch is sparse, where the samples are packed.
SPARSE_BATCH = 0.15
# Columns from which strips of sparse samples leave the cache: then they stay sparse.
WIDE = 2048
# Rows whose mean is so many times their deviation lose digits in |x|^2 + |z|^2 - 2x'z.
CENTERED = 10.0
# Multiplications that are worth a second thread.
SHARED_WORK = 1 << 21
# Parts of the samples that threads take one after the other.
PARTS = 16
# Bytes of packed samples at a time, where they are used once.
PACKED_BYTES = 32 << 20


def aligned(shape: tuple[int, ...], dtype: Any) -> NDArray[Any]:
    """An empty array at an address that is a multiple of 64."""
    size = int(np.prod(shape)) * np.dtype(dtype).itemsize
    raw = np.empty(size + 64, np.uint8)
    start = -raw.ctypes.data % 64
    out: NDArray[Any] = raw[start : start + size].view(dtype).reshape(shape)
    return out


def padded(m: int, to: int = STRIP) -> int:
    """M rounded up to whole strips."""
    return -(-m // to) * to


def parts_of(m: int) -> list[slice]:
    """The strips of m samples, cut into parts."""
    strips = padded(m) // STRIP
    size = max(1, -(-strips // PARTS))
    return [slice(a, min(a + size, strips)) for a in range(0, strips, size)]


class Layout:
    """How rows Z meet samples X: decided by Z, so that it is one for all samples.

    Attributes
    ----------
    form : what the core computes
    center : ndarray (n,), subtracted from all rows where distances allow it
    is_sparse : bool, whether batches are sparse
    dtype : float32 or float64
    """

    def __init__(self, form: Form, Z: Matrix, dtype: Any = np.float64) -> None:
        self.form, self.dtype = form, np.dtype(dtype)
        self.center = np.zeros(Z.shape[1])
        stored = sparse.issparse(Z)
        self.is_sparse = _share_of_nonzeros(Z) <= SPARSE_BATCH
        self.stays_sparse = stored and Z.shape[1] > WIDE
        self.is_sparse = self.is_sparse or self.stays_sparse
        if form[0] in (RBF, LAPLACIAN) and not self.stays_sparse:
            sums, squares = linalg.column_sums(Z)
            mean = sums / Z.shape[0]
            spread = squares.sum() / Z.shape[0] - mean @ mean
            if not self.is_sparse or mean @ mean > CENTERED**2 * spread:
                self.center, self.is_sparse = mean, False

    def with_dtype(self, dtype: Any) -> "Layout":
        """The same layout of other numbers."""
        other = object.__new__(Layout)
        other.__dict__.update(self.__dict__, dtype=np.dtype(dtype))
        return other

    def rows(self, Z: Matrix) -> Any:
        """Rows as a batch holds them: dense or CSR, of the dtype, less the center."""
        if self.is_sparse:
            rows = sparse.csr_array(Z).astype(self.dtype)
            if not rows.has_canonical_format:  # an entry is the sum of its duplicates
                rows.sum_duplicates()
            return rows
        return np.ascontiguousarray(linalg.dense(Z) - self.center, dtype=self.dtype)

    def batch(self, Z: Matrix, X: "Samples", norms: NDArray[Any] | None = None) -> Any:
        """A batch of rows, for samples; ``norms`` where they are known."""
        rows = self.rows(Z)
        n = rows.shape[1]
        if self.form[0] == LAPLACIAN:
            norms = _norms(rows, absolute=True) if X.is_sparse else None
        elif norms is None and self.form[0] == RBF:
            norms = _norms(rows)
        if norms is None:
            norms = np.zeros(rows.shape[0])
        norms = norms.astype(self.dtype)
        make = _core.batch
        if X.is_sparse:
            return make(_groups(rows), norms, None, None, n)
        if self.is_sparse:
            return make(rows.data, norms, *_indices(rows), n)
        return make(rows.ravel(), norms, None, None, n)


class Samples:
    """Samples as the core reads them: packed, or sparse where they are wide.

    Attributes
    ----------
    m : int
    norms : ndarray (padded m,): |x|^2, or |x|_1
    is_sparse : bool
    """

    def __init__(self, layout: Layout, X: Matrix, n_jobs: int | None = None) -> None:
        self.layout, self.m, n = layout, X.shape[0], X.shape[1]
        self.is_sparse = layout.stays_sparse and sparse.issparse(X)
        self.entries = linalg.density(X) * n if layout.is_sparse else float(n)
        strips, cut = padded(self.m) // STRIP, parts_of(self.m)
        self._shared = Blocks(cut, len(cut), n_jobs)
        self._alone = Blocks(cut, len(cut), 1)
        self.norms = np.zeros(strips * STRIP, layout.dtype)
        inside: tuple[Any, Any] = None, None
        if self.is_sparse:
            rows = layout.rows(X)
            if layout.form[0] == RBF:
                self.norms[: self.m] = _norms(rows)
            self._packed = rows.data
            inside = _indices(rows)
        else:
            self._pack(X)
        self.core = _core.strips(self._packed, self.norms, *inside, self.m, n)

    def _pack(self, X: Matrix) -> None:
        n = X.shape[1]
        self._packed = aligned((self.norms.size * n,), self.layout.dtype)
        kind = self.layout.form[0]
        absolute = kind == LAPLACIAN

        def task(strips: slice) -> None:
            rows = linalg.row_slice(
                X, strips.start * STRIP, min(strips.stop * STRIP, self.m)
            )
            part = slice(strips.start * STRIP, strips.stop * STRIP)
            _core.pack(
                linalg.in_core(rows),
                self.layout.center,
                self._packed[part.start * n : part.stop * n],
                self.norms[part],
                absolute,
            )

        self.run(task, self.m * n)
        if kind not in (RBF, LAPLACIAN) or (absolute and not self.layout.is_sparse):
            self.norms[:] = 0

    @property
    def n_bytes(self) -> int:
        """Bytes of the packed numbers."""
        return int(self._packed.nbytes)

    def run(self, task: Any, work: float) -> None:
        """Run a task on parts of the strips, in threads where that is worth it."""
        (self._shared if work > SHARED_WORK else self._alone)(task)

    def sums(
        self,
        batch: Any,
        count: int,
        weights: Vector | None,
        sums: Vector | None,
        out: Any = None,
        place: Any = None,
    ) -> None:
        """Add sums over a batch of weights (count, c) times values to ``sums`` (c, m).

        The values are stored in the rows ``place`` of ``out`` too, where not negative.
        """

        def task(strips: slice) -> None:
            _core.kernel_rows(
                self.layout.form,
                self.core,
                batch,
                strips.start,
                strips.stop,
                out,
                place,
                weights,
                sums,
            )

        self.run(task, count * self.m * (self.entries + 8.0))


def kernel_values(form: Form, X: Matrix, Z: Matrix) -> Vector:
    """Kernel values of all pairs of rows: (k, l) float64."""
    _check_width(X, Z)
    layout = Layout(form, Z)
    samples = Samples(layout, X)
    out = aligned((Z.shape[0], padded(X.shape[0])), np.float64)
    for start in range(0, Z.shape[0], BATCH):
        rows = Z[start : start + BATCH]
        batch = layout.batch(rows, samples)
        samples.sums(batch, rows.shape[0], None, None, out[start : start + BATCH])
    return np.ascontiguousarray(out[:, : X.shape[0]].T)


class Expansion:
    """The functions sum_j W_jc k(x, z_j), for rows x that come in blocks.

    Parameters
    ----------
    form : what the core computes
    Z : dense or CSR (l, n)
    W : ndarray (l, c)
    """

    def __init__(self, form: Form, Z: Matrix, W: Vector) -> None:
        self._layout, self._Z = Layout(form, Z), Z
        self._W = np.ascontiguousarray(W, dtype=np.float64)

    def __call__(self, X: Matrix, n_jobs: int | None = 1) -> Vector:
        """Values (k, c) for the rows of X (k, n), float64."""
        _check_width(X, self._Z)
        out = np.empty((X.shape[0], self._W.shape[1]))
        size = PACKED_BYTES // (8 * X.shape[1] * STRIP) * STRIP
        size = max(STRIP, size)
        for start in range(0, X.shape[0], size):
            rows = linalg.row_slice(X, start, min(start + size, X.shape[0]))
            samples = Samples(self._layout, rows, n_jobs)
            sums = np.zeros((self._W.shape[1], samples.norms.size))
            for first in range(0, self._Z.shape[0], BATCH):
                some = self._Z[first : first + BATCH]
                batch = self._layout.batch(some, samples)
                weights = self._W[first : first + BATCH]
                samples.sums(batch, some.shape[0], weights, sums)
            out[start : start + size] = sums[:, : rows.shape[0]].T
        return out


def _check_width(X: Matrix, Z: Matrix) -> None:
    if X.shape[1] != Z.shape[1]:
        raise ValueError(f"X must have {Z.shape[1]} columns. Got {X.shape[1]} instead.")


def _share_of_nonzeros(Z: Matrix) -> float:
    """Share of the entries that are not zero; of some rows, where Z is dense."""
    if sparse.issparse(Z):
        return linalg.density(Z)
    sample = Z[:: max(1, Z.shape[0] // 256)]
    return float(np.count_nonzero(sample)) / sample.size


def _norms(rows: Any, absolute: bool = False) -> Vector:
    """|z|^2, or |z|_1, of rows: (k,)."""
    if not absolute:
        return linalg.row_squares(rows)
    return np.asarray(abs(rows).sum(axis=1), dtype=np.float64).ravel()


def _indices(rows: Any) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """Indptr and indices of CSR rows, in the types that the core takes."""
    return (
        rows.indptr.astype(np.int64, copy=False),
        rows.indices.astype(np.int32, copy=False),
    )


def _groups(rows: Any) -> NDArray[Any]:
    """CSR rows in groups of 16, dense: entry j of row r of a group at j * 16 + r."""
    count, n = rows.shape
    groups = np.zeros((-(-count // GROUP), n, GROUP), rows.dtype)
    row = np.repeat(np.arange(count), np.diff(rows.indptr))
    groups[row // GROUP, rows.indices, row % GROUP] = rows.data
    return groups.ravel()
