"""Rows as the C++ core reads them: packed samples, and batches of rows that meet them.

The samples X are packed in strips of 64 that stay in cache; a *batch* of rows Z meets
one strip after the other. Values are stored, or multiplied by weights and added up as
they are made. Each sample has a lane of its own, so what comes out for it does not
depend on the other samples.
"""

import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from widemargin import _core
from widemargin.arrays import Index, Index64, Vector
from widemargin.data.blocks import Blocks
from widemargin.kernels.layout import Layout, norms_of
from widemargin.numerics import linalg
from widemargin.numerics.linalg import Matrix
from widemargin.numerics.rounding import gamma_n
from widemargin.system import deadline

STRIP, GROUP = _core.KERNEL_STRIP, _core.KERNEL_GROUP
# Entries of the rows that are computed together, dense and sparse ones: they stay in
# the second-level cache. And the limits of their number.
DENSE_ENTRIES, SPARSE_ENTRIES = 150_000, 1 << 15
LEAST_BATCH, MOST_BATCH = 192, 1024
# Multiplications that are worth a second thread: 1 ms at 8 a nanosecond, beside a start
# of 0.1 ms.
SHARED_WORK = 1 << 23
# Multiplications that take as long as to copy an entry: 1 ns. (To pack one takes 0.3
# to 1.8 ns, to copy it across the diagonal 0.7 to 1.2: benchmarks/core/copies.py.)
COPIED = 8.0
# Parts of the samples that threads take one after the other.
PARTS = 16
# Copies of sparse rows that there are while some of them are chosen and converted.
SPARSE_COPIES = 3.0
# Bytes of packed samples at a time, where they are used once.
PACKED_BYTES = 32 << 20
# Bytes from which the core keeps memory: the system has to clear new pages.
LARGE_BYTES = 2 << 20
# Values from 0 to 1 in 16 bits: whole numbers of so many steps, by dtype.
STEPS = {"u2": _core.KERNEL_STEPS, "i2": _core.BLOCK_STEPS}


def aligned(shape: tuple[int, ...], dtype: Any) -> NDArray[Any]:
    """An empty array at an address that is a multiple of 64.

    Large ones are the core's, which keeps their memory for the next ones.
    """
    size = math.prod(shape) * np.dtype(dtype).itemsize
    if size >= LARGE_BYTES:
        large: NDArray[Any] = _core.large_room(size).view(dtype).reshape(shape)
        return large
    raw = np.empty(size + 64, np.uint8)
    address = raw.__array_interface__["data"][0]  # `raw.ctypes` takes 3 us
    start = -address % 64
    out: NDArray[Any] = raw[start : start + size].view(dtype).reshape(shape)
    return out


def padded(m: int, to: int = STRIP) -> int:
    """M rounded up to whole strips."""
    return -(-m // to) * to


class Parts:
    """The strips of m samples, cut into parts that threads take one after the other."""

    def __init__(self, m: int, n_jobs: int | None = None) -> None:
        self.samples, strips = m, padded(m) // STRIP
        self._size = max(1, -(-strips // PARTS))
        self._whole, self._n_jobs = slice(0, strips), n_jobs
        self._made: Blocks | None = None

    def _shared(self, task: Callable[[slice], Any]) -> Any:
        """Run a task in threads, which are made when they are first needed."""
        if self._made is None:
            size, strips = self._size, self._whole.stop
            cut = [slice(a, min(a + size, strips)) for a in range(0, strips, size)]
            self._made = Blocks(cut, len(cut), self._n_jobs, calls_blas=False)
        return self._made(task)

    def __call__(
        self, task: Callable[[slice], Any], work: float, begin: int = 0
    ) -> None:
        """Run a task on all parts from a strip on, in threads if work is worth them."""

        def later(strips: slice) -> None:
            """The task on what is left of the strips."""
            if begin < strips.stop:
                task(slice(max(begin, strips.start), strips.stop))

        if work >= SHARED_WORK:  # as of 1,024 rows that come and stay in a block
            self._shared(later)
        else:
            later(self._whole)

    def number(self, strips: slice) -> int:
        """Which part the strips lie in, from 0 on."""
        return int(strips.start // self._size)


class Batches:
    """Rows Z that meet samples, some at a time.

    Attributes
    ----------
    size : int, rows that are worth a batch
    n_bytes : int, of the sparse rows, or levels, that are held beside Z
    """

    n_bytes = 0

    @property
    def n(self) -> int:
        """Columns of the rows."""
        return int(self._Z.shape[1])

    def __init__(
        self, layout: Layout, Z: Matrix, norms: NDArray[Any] | None = None
    ) -> None:
        self._layout, self._Z = layout, Z
        self.size = _clipped(DENSE_ENTRIES / Z.shape[1], LEAST_BATCH)
        self._norms = np.zeros(Z.shape[0], layout.dtype) if norms is None else norms
        if norms is None and layout.expands_squares and not layout.stays_sparse:
            counts = layout.is_ones and linalg.holds_ones(Z)
            self._norms = linalg.row_lengths(Z) if counts else packed_norms(layout, Z)
            self._norms = self._norms.astype(layout.dtype, copy=False)
        if layout.is_sparse:
            rows = layout.rows(Z)
            indptr = rows.indptr.astype(np.int64, copy=False)
            indices = rows.indices.astype(np.int32, copy=False)
            self._begin, self._end = indptr[:-1], indptr[1:]
            self._data, self._indices = rows.data, indices
            self.n_bytes = rows.data.nbytes + indices.nbytes + indptr.nbytes
            with_norms = layout.is_distance and not layout.by_differences
            if layout.stays_sparse and with_norms:
                self._norms = norms_of(rows, layout)
            entries = linalg.density(rows) * rows.shape[1]
            self.size = _clipped(SPARSE_ENTRIES / (entries + 1), 64)

    def of_columns(self, columns: Index) -> "Batches":
        """Sparse rows with some of the columns, and the lengths of the whole rows."""
        found = Batches(self._layout, sparse.csr_array(self._by_columns[:, columns]))
        found._norms = self._norms
        return found

    @functools.cached_property
    def _by_columns(self) -> sparse.csc_array:
        return sparse.csc_array(self._layout.rows(self._Z))

    def cut(self, count: int) -> list[slice]:
        """Parts of a number of rows, each worth a batch."""
        starts = range(0, count, self.size)
        return [slice(start, min(start + self.size, count)) for start in starts]

    def take(self, J: Any, X: "Samples") -> Any:
        """The batch of rows J (indices or a slice), for samples."""
        n = self._Z.shape[1]
        if not self._layout.is_sparse:
            rows = self._dense(J)
            return _core.batch(rows, self._norms[J], None, None, None, n)
        norms, begin, end = self._norms[J], self._begin[J], self._end[J]
        if X.is_sparse and not self._layout.by_differences:
            data = _groups(begin, end, self._indices, self._data, n)
            return _core.batch(data, norms, None, None, None, n)
        if self._layout.begins_at_lengths:  # the samples hold the lengths
            norms = np.zeros_like(norms)
        return _core.batch(self._data, norms, begin, end, self._indices, n)

    def _dense(self, J: Any) -> NDArray[Any]:
        """The rows J less the center, one after the other."""
        layout, Z = self._layout, self._Z
        if not linalg.is_in_core(Z):
            return np.asarray(layout.rows(Z[J]).ravel())
        if isinstance(J, slice):
            J = np.arange(*J.indices(Z.shape[0]))
        n, Z = Z.shape[1], linalg.in_core(Z)
        out = np.empty((len(J), n), layout.dtype)
        for some in range(0, len(J), size := max(1, PACKED_BYTES // (8 * n))):
            deadline.check()
            part = slice(some, some + size)
            _core.dense_rows(Z, J[part], layout.center, out[part].reshape(-1))
        return out.reshape(-1)


class Samples:
    """Samples as the core reads them: packed, or sparse where they are wide.

    Where they and the rows that meet them are of ones, each entry is a byte: a quarter
    of float32, and products that are counts take less time and have the same bits.

    Attributes
    ----------
    m : int
    norms : ndarray (padded m,): |x|^2, or |x|_1
    is_sparse : bool
    """

    def __init__(
        self,
        layout: Layout,
        X: Matrix,
        index: Index64 | None = None,
        parts: "Parts | None" = None,
    ) -> None:
        self.layout = layout
        self.m, n = X.shape[0] if index is None else len(index), X.shape[1]
        # Sums of differences are of two sparse rows, or of two dense ones.
        stored = sparse.issparse(X) or layout.by_differences
        self.is_sparse = layout.stays_sparse and stored
        self.entries = entries(layout, X)
        self.parts = parts or Parts(self.m)
        self.norms = np.zeros(padded(self.m), layout.dtype)
        inside: tuple[Any, Any] = None, None
        self._inside: tuple[Any, ...] = ()
        if self.is_sparse:
            rows = layout.rows(X if index is None else X[index])
            if layout.expands_squares:
                self.norms[: self.m] = norms_of(rows, layout)
            self._packed = rows.data
            inside = rows.indptr.astype(np.int64), rows.indices.astype(np.int32)
            self._inside = inside
        elif layout.is_ones and linalg.holds_ones(X, index):
            self._pack(X, np.arange(self.m) if index is None else index, np.uint8)
            self.core = _core.strips_of_ones(
                self._packed, self.norms, self.m, n, layout.by_factors
            )
            return
        else:
            index = np.arange(self.m) if index is None else index
            self._pack(X, index, layout.dtype)
        self.core = _core.strips(self._packed, self.norms, *inside, self.m, n)

    def _pack(self, X: Matrix, index: Index64, dtype: Any) -> None:
        n, X = X.shape[1], linalg.in_core(X)
        self._packed = aligned((self.norms.size * n,), dtype)
        self.parts(lambda strips: self._fill(X, n, index, strips), COPIED * self.m * n)

    def _fill(self, X: Any, n: int, index: Index64, strips: slice) -> None:
        """Pack some strips, for X as the core reads it."""
        layout, part = self.layout, slice(strips.start * STRIP, strips.stop * STRIP)
        packed = self._packed[part.start * n : part.stop * n]
        norms, absolute = self.norms[part], layout.begins_at_lengths
        if packed.dtype == np.uint8:
            _core.pack_ones(X, index[part], packed, norms)
        else:
            _core.pack(X, index[part], layout.center, packed, norms, absolute)
        needed = absolute and layout.is_sparse
        if not (needed or layout.expands_squares):
            norms[:] = 0

    def replace(self, X: Matrix, index: Index64, before: Index64) -> None:
        """Become the samples of another index, which has the length of the one before.

        Strips that stay are not packed again. Not where samples are sparse.
        """
        strips = np.unique(np.flatnonzero(index != before) // STRIP)
        n, X = X.shape[1], linalg.in_core(X)
        for some in np.split(strips, np.flatnonzero(np.diff(strips) > 1) + 1):
            if len(some):
                self._fill(X, n, index, slice(some[0], some[-1] + 1))

    @property
    def n_bytes(self) -> int:
        """Bytes of the packed numbers, or of the sparse rows."""
        return int(self._packed.nbytes + sum(part.nbytes for part in self._inside))

    def bytes_of(self, index: Index64) -> float:
        """Bytes that some of the samples take as samples of their own."""
        if not self.is_sparse:
            return self.n_bytes * padded(len(index)) / max(1, self.norms.size)
        lengths = np.diff(self._inside[0])[index]
        return SPARSE_COPIES * self.n_bytes * float(lengths.sum()) / len(self._packed)

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

        The values are stored in the rows ``place`` of ``out`` too, where not negative:
        of the dtype, or rounded to uint16 or int16.
        """
        rounded, steps = None, _core.KERNEL_STEPS
        if out is not None and out.dtype.itemsize == 2:
            steps = STEPS[out.dtype.str[1:]]
            out, rounded = None, out.view(np.uint16)

        def task(strips: slice) -> None:
            some = self.layout.form, self.core, batch, strips.start, strips.stop
            _core.kernel_rows(
                *some, out, place, weights, sums, rounded=rounded, steps=steps
            )

        deadline.check()
        self.parts(task, count * self.m * (self.entries + 8.0))

    def sums_both_ways(
        self, batch: Any, some: slice, first: int, c: Vector, sums: Vector
    ) -> None:
        """Add what rows of a set and some of its samples have of each other.

        Parameters
        ----------
        batch : the rows ``some`` of the set. The first begins a strip.
        first : int, the number in the set of the first sample. It begins a strip.
        c : ndarray (k,). Weights of the set.
        sums : ndarray (1, k), to which sum_j c_j k(z_i, z_j) is added.
            For rows i and the samples j that do not lie before them, and the other way
            round; pairs within the batch count once.
        """
        weights, count = c[some, np.newaxis].copy(), some.stop - some.start
        own = padded(max(0, some.stop - first)) // STRIP
        later = np.zeros(self.norms.size)
        later[: self.m] = c[first : first + self.m]
        later[: own * STRIP] = 0.0
        back, total = np.zeros((PARTS, count)), np.zeros((1, self.norms.size))

        def task(strips: slice) -> None:
            _core.kernel_rows(
                self.layout.form,
                self.core,
                batch,
                strips.start,
                strips.stop,
                None,
                None,
                weights,
                total,
                back_weights=later,
                back=back[self.parts.number(strips)],
            )

        deadline.check()
        work = count * self.m * (self.entries + 8.0)
        self.parts(task, work, max(0, some.start - first) // STRIP)
        sums[0, first : first + self.m] += total[0, : self.m]
        sums[0, some] += back.sum(axis=0)


def entries(layout: Layout, X: Matrix) -> float:
    """Entries of a row that are multiplied, on average."""
    n = int(X.shape[1])
    return linalg.density(X) * n if layout.is_sparse else float(n)


def packed_bytes(layout: Layout, X: Matrix) -> int | None:
    """Bytes of the samples and batches of the rows X that a layout was made for.

    None where only making them tells.
    """
    m, n = X.shape
    rows: Any = X
    if layout.stays_sparse or (layout.is_sparse and not sparse.issparse(X)):
        return None
    size = layout.dtype.itemsize
    packed = padded(m) * n * (1 if layout.is_ones else size)
    stored = rows.nnz * (size + 4) + 8 * (m + 1) if layout.is_sparse else 0
    return int(packed + stored)


def _clipped(size: float, least: int) -> int:
    """Rows of a batch; np.clip takes longer than to use a small one."""
    return int(min(max(size, least), MOST_BATCH))


def known_lengths(norms: NDArray[Any], n: int) -> Vector:
    """At least |x|^2 of rows of n columns, by norms that rounding has changed."""
    unit = np.finfo(norms.dtype).epsneg / 2.0
    largest, lost = 1.0 + 2.0 * gamma_n(n + 2, unit), n * np.finfo(norms.dtype).tiny
    return np.asarray(norms * largest + lost, dtype=np.float64)


def packed_norms(layout: Layout, Z: Matrix) -> NDArray[Any]:
    """Norms of rows as samples would have them: to the bit, for distances of 0."""
    out = np.empty(Z.shape[0], layout.dtype)
    n, X = Z.shape[1], linalg.in_core(Z)
    size = strips_at_a_time(n)
    absolute = layout.begins_at_lengths
    for start in range(0, len(out), size):
        deadline.check()
        index = np.arange(start, min(start + size, len(out)))
        norms = np.zeros(padded(len(index)), layout.dtype)
        room = aligned((norms.size * n,), layout.dtype)
        _core.pack(X, index, layout.center, room, norms, absolute)
        out[index] = norms[: len(index)]
    return out


def strips_at_a_time(n: int) -> int:
    """Samples that are packed together where they are used once."""
    return max(STRIP, PACKED_BYTES // (8 * n * STRIP) * STRIP)


def _groups(
    begin: Index64,
    end: Index64,
    indices: NDArray[np.int32],
    data: NDArray[Any],
    n: int,
) -> NDArray[Any]:
    """Sparse rows in groups of 16, dense: entry j of row r of a group at j * 16 + r."""
    count, lengths = len(begin), end - begin
    groups = np.zeros((-(-count // GROUP), n, GROUP), data.dtype)
    row = np.repeat(np.arange(count), lengths)
    # Positions of the entries: from where a row begins, one after the other.
    entry = np.arange(len(row)) + np.repeat(
        begin - (np.cumsum(lengths) - lengths), lengths
    )
    groups[row // GROUP, indices[entry], row % GROUP] = data[entry]
    return groups.ravel()
