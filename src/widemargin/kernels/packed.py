"""Kernel values of many pairs of rows, and sums of them, by the C++ core.

The samples X are packed in strips of 64 that stay in cache; a *batch* of rows Z meets
one strip after the other. Values are stored, or multiplied by weights and added up as
they are made: then nothing of the size of K is ever in memory. Each sample has a lane
of its own, so what comes out for it does not depend on the other samples.
"""

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from widemargin import _core
from widemargin.data.blocks import Blocks
from widemargin.kernels.table import KERNELS, NAMES
from widemargin.numerics import linalg
from widemargin.numerics.linalg import Matrix
from widemargin.numerics.rounding import (
    SINGLE,
    UNIT,
    ValueBounds,
    differences_bounds,
    gamma_n,
    value_bounds,
)
from widemargin.numerics.twofold import CoreKernel
from widemargin.system import deadline

Vector = NDArray[np.float64]

# rbf of sums of (x_j - z_j)^2, in place of |x|^2 + |z|^2 - 2x'z: behind the named
# ones.
RBF_BY_DIFFERENCES = len(NAMES)
# How often lengths count in what a distance is a difference of, by what is summed:
# |x|^2 + |z|^2 + 2 |x'z|; or |x|_1 and terms of as much, whose own errors have the
# other half. Of chi2, with u the unit: 2 (k + 2) u for the sum, 5 u of a term, 1 u for
# what it differs from |x|, and 3 u as its entries are rounded: below 4 (k + 10) u.
SPREAD = {"square": 2.0, "size": 4.0, "share": 4.0}

STRIP, GROUP = _core.KERNEL_STRIP, _core.KERNEL_GROUP
CHUNK = _core.KERNEL_CHUNK
# Entries of the rows that are computed together, dense and sparse ones: they stay in
# the second-level cache. And the limits of their number.
DENSE_ENTRIES, SPARSE_ENTRIES = 150_000, 1 << 15
LEAST_BATCH, MOST_BATCH = 192, 1024
# Share of nonzeros up to which a batch is sparse, where the samples are packed.
SPARSE_BATCH = 0.15
# The same for models, whose batches are made once: by one thread of an EPYC with AVX2
# sparse batches took 0.53 of the time at a share of 0.2 and 784 columns (0.56 at 100
# columns, 0.79 at 30), 0.69 (0.65, 0.83) at 0.3 and as long (0.73, 0.88) at 0.4.
SPARSE_MODEL = 0.3
# Columns from which strips of sparse samples leave the cache: then they stay sparse.
# A strip of 16 samples of this width takes 256 KiB in float64: the cache of a core.
WIDE = 2048
# Rows whose mean is this many times their deviation lose digits in |x|^2+|z|^2-2x'z.
CENTERED = 10.0
# Share of a kernel value that may be lost in |x|^2 + |z|^2 - 2x'z in float64. Scaled
# data lose 1e-14 to 4e-12 of it; data above have clusters far apart, for their gamma.
LOST = 1e-10
# Entries of rows that are looked at together.
LOOKED_AT = 1 << 16
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
# Values exp(-gamma |x - z|^2) of rows of ones are made of factors, of which one depends
# on the ones that both have: up to so many of a row, which a byte counts, and up to exp
# of twice so much, which float32 holds with all its digits.
FACTOR_ONES, FACTOR_RANGE = 255, 8.0
# What rounding of entries to float32 adds to a sum of squares, as a factor: more.
ROUNDED = 1.0 + 2.0**-20
# Bytes of packed samples at a time, where they are used once.
PACKED_BYTES = 32 << 20
# Bytes of the support vectors up to which a model keeps them as batches beside those
# that it has: 8,000 of 1,000 columns.
KEPT_BYTES = 64 << 20


# Values from 0 to 1 in 16 bits: whole numbers of so many steps, by dtype.
STEPS = {"u2": _core.KERNEL_STEPS, "i2": _core.BLOCK_STEPS}


def aligned(shape: tuple[int, ...], dtype: Any) -> NDArray[Any]:
    """An empty array at an address that is a multiple of 64."""
    size = math.prod(shape) * np.dtype(dtype).itemsize
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

        if work > SHARED_WORK:
            self._shared(later)
        else:
            later(self._whole)

    def number(self, strips: slice) -> int:
        """Which part the strips lie in, from 0 on."""
        return int(strips.start // self._size)


class Layout:
    """How rows Z meet samples X: decided by Z, so that it is one for all samples.

    Attributes
    ----------
    form : what the core computes
    sums : str, what that sums over the columns, as the table of kernels says
    value : str, what becomes of the sum
    center : ndarray (n,), subtracted from all rows where distances allow it
    is_sparse : bool, whether batches are sparse
    is_ones : bool, whether batches are sparse and all their entries are 1
    is_far : bool, whether the rows lie far from zero, for their spread
    total : float, the sum of all |z|^2; may be infinite
    reach : float, the largest |z - center|^2 of rbf, |z - center|_1 of other distances
    by_differences : bool, whether distances are sums of differences of the numbers as
        they are, right to the last digits wherever the rows lie
    of_levels : bool, whether distances are exact sums of products of integers
    dtype : float32 or float64
    """

    def __init__(
        self,
        form: CoreKernel,
        Z: Matrix,
        dtype: Any = np.float64,
        sparse_to: float = SPARSE_BATCH,
        wide: int = WIDE,
    ) -> None:
        self.form, self.dtype = form, np.dtype(dtype)
        kernel = KERNELS[NAMES[form[0]]]
        self.sums, self.value = kernel.sums, kernel.value
        self.center = np.zeros(Z.shape[1])
        stored = sparse.issparse(Z)
        self.is_sparse = _share_of_nonzeros(Z) <= sparse_to
        self.stays_sparse = stored and Z.shape[1] > wide
        self.is_sparse = self.is_sparse or self.stays_sparse
        sums, squares = linalg.column_sums(Z)
        mean = sums / Z.shape[0]
        self.total = float(squares.sum())
        spread = self.total / Z.shape[0] - mean @ mean
        self.is_far = bool(mean @ mean > CENTERED**2 * spread > 0)
        self.reach, self.by_differences = 0.0, False
        self.of_levels = False
        counts = self.is_sparse and not (self.stays_sparse or self.begins_at_lengths)
        self.is_ones = counts and linalg.holds_ones(Z)
        if self.is_distance:
            keeps_digits = bool(mean @ mean <= CENTERED**2 * spread)  # false for NaN
            self._choose_center(mean)
            terms = self.terms(Z)
            self._most_terms = int(
                np.max(terms, initial=0) if self.is_sparse else terms
            )
            self.reach = _reach(Z, self.center, self.sums, keeps_digits)
            if self._has_to_subtract():
                self._subtract()

    def count_levels(self) -> None:
        """Let distances be sums of integers, which have no center."""
        self.of_levels, self.center = True, np.zeros_like(self.center)

    def as_double(self) -> "Layout":
        """The layout for the same rows in float64."""
        other = object.__new__(Layout)  # `copy.copy` takes ten times as long
        vars(other).update(vars(self))
        other.dtype = np.dtype(np.float64)
        if other.is_distance and other._has_to_subtract():
            other._subtract()
        return other

    @property
    def is_distance(self) -> bool:
        """Whether values depend on a distance."""
        return self.sums != "product"

    @property
    def by_factors(self) -> bool:
        """Whether sums are made of factors, each of which depends on one number."""
        if not (self.is_ones and self.expands_squares and self.dtype == np.float32):
            return False
        gamma, most = self.form[1], self._most_terms
        return bool(most <= FACTOR_ONES and gamma * most <= FACTOR_RANGE)

    @property
    def begins_at_lengths(self) -> bool:
        """Whether distances from sparse rows begin at |x|_1: else at |x|^2, or 0."""
        return self.sums in ("size", "share")

    @property
    def expands_squares(self) -> bool:
        """Whether distances are |x|^2 + |z|^2 - 2x'z."""
        return self.sums == "square" and not self.by_differences

    def _choose_center(self, mean: Vector) -> None:
        """The mean, where distances do not change with a center, or zero."""
        if self.sums == "share":  # errors are those of |x|_1, wherever the rows lie
            self.is_far = False
        elif not self.stays_sparse and (self.is_far or not self.is_sparse):
            self.center, self.is_sparse, self.is_far = mean, False, False
            self.is_ones = False

    def _has_to_subtract(self) -> bool:
        """Whether differences are worth their time, or cost none."""
        gamma = self.form[1]
        if self.dtype != np.float64:  # where that has too few digits, it is not used
            return False
        free = self.begins_at_lengths and not self.is_sparse
        largest = (4.0 if self.sums == "square" else 2.0) * self.reach
        lost = gamma * (self._most_terms + 5) * np.finfo(np.float64).epsneg * largest
        return free or not lost <= LOST

    def _subtract(self) -> None:
        """Sum differences; a center would round them."""
        self.by_differences, self.is_far, self.is_ones = True, False, False
        self.center, self.is_sparse = np.zeros_like(self.center), self.stays_sparse
        if self.sums == "square":
            self.form = (RBF_BY_DIFFERENCES, *self.form[1:])

    def rows(self, Z: Matrix) -> Any:
        """Rows as a batch holds them: dense or CSR, of the dtype, less the center."""
        if self.is_sparse:
            rows = sparse.csr_array(Z).astype(self.dtype)
            if not rows.has_canonical_format:  # an entry is the sum of its duplicates
                rows.sum_duplicates()
            rows.prune()  # what lies behind the last row may have any index
            return rows
        return np.ascontiguousarray(linalg.dense(Z) - self.center, dtype=self.dtype)

    def lengths(self, X: Matrix) -> Vector:
        """What errors of values grow with: ``|x|^2`` or ``|x|_1``, from the center."""
        if self.by_differences:
            return np.zeros(X.shape[0])
        if self.is_distance:
            return _norms(self.rows(X).astype(np.float64), self).astype(np.float64)
        return linalg.row_squares(X)

    def moved(self, lengths: Vector, center: Vector) -> Vector:
        """At least the lengths from the center, by lengths from another center."""
        apart = self.center - center
        if self.by_differences:
            return lengths
        if self.sums == "square" and apart.any():
            return np.asarray((np.sqrt(lengths) + np.sqrt(apart @ apart)) ** 2)
        return lengths + np.abs(apart).sum() if self.begins_at_lengths else lengths

    def bounds(self, lengths: Vector, terms: Any, unit: float = UNIT) -> ValueBounds:
        """Bounds of kernel values of rows with others, and of their errors."""
        if self.by_differences or self.of_levels:
            rounded = 0 if self.of_levels else int(np.max(terms))
            return differences_bounds(len(lengths), rounded, unit)
        numbers, spread = self.form[1:], SPREAD.get(self.sums, 0.0)
        return value_bounds(self.value, numbers, terms, lengths, unit, spread)

    def terms(self, X: Matrix) -> Any:
        """The most terms of a product of one of these rows; of rbf, of each row."""
        if not self.is_sparse:
            n = int(X.shape[1])
            return min(n, CHUNK + -(-n // CHUNK))  # sums of sums
        lengths = linalg.row_lengths(X)
        return lengths if self.expands_squares else int(lengths.max(initial=0))


class Batches:
    """Rows Z that meet samples, some at a time.

    Attributes
    ----------
    size : int, rows that are worth a batch
    n_bytes : int, of the sparse rows that are held beside Z
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
                self._norms = _norms(rows, layout)
            entries = linalg.density(rows) * rows.shape[1]
            self.size = _clipped(SPARSE_ENTRIES / (entries + 1), 64)

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
        index: NDArray[np.int64] | None = None,
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
                self.norms[: self.m] = _norms(rows, layout)
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

    def _pack(self, X: Matrix, index: NDArray[np.int64], dtype: Any) -> None:
        n, X = X.shape[1], linalg.in_core(X)
        self._packed = aligned((self.norms.size * n,), dtype)
        self.parts(lambda strips: self._fill(X, n, index, strips), COPIED * self.m * n)

    def _fill(self, X: Any, n: int, index: NDArray[np.int64], strips: slice) -> None:
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

    def replace(
        self, X: Matrix, index: NDArray[np.int64], before: NDArray[np.int64]
    ) -> None:
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

    def bytes_of(self, index: NDArray[np.int64]) -> float:
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


def own_sums(
    c: Vector,
    batches: Batches,
    take: Callable[[slice, Samples], Any],
    samples_of: Callable[[NDArray[np.int64]], Samples],
) -> Vector:
    """The sums sum_j c_j k(z_i, z_j) over the rows of a set, by half of the values.

    A value counts for i and for j, but where one batch holds both.
    """
    k, n = len(c), batches.n
    sums = np.zeros((1, k))
    size, step = padded(batches.size), strips_at_a_time(n)
    for first in range(0, k, step):
        index = np.arange(first, min(first + step, k))
        samples = samples_of(index)
        for start in range(0, index[-1] + 1, size):
            some = slice(start, min(start + size, k))
            samples.sums_both_ways(take(some, samples), some, first, c, sums)
    return sums.ravel()


def kernel_values(form: CoreKernel, X: Matrix, Z: Matrix) -> Vector:
    """Kernel values of all pairs of rows: (k, l) float64."""
    _check_width(X, Z)
    if not X.shape[0] * Z.shape[0]:
        return np.zeros((X.shape[0], Z.shape[0]))
    layout = Layout(form, Z)
    samples, batches = Samples(layout, X), Batches(layout, Z)
    out = aligned((Z.shape[0], padded(X.shape[0])), np.float64)
    for some in batches.cut(Z.shape[0]):
        part = out[some]
        samples.sums(batches.take(some, samples), len(part), None, None, part)
    return np.ascontiguousarray(out[:, : X.shape[0]].T)


class CoreSums:
    """The sums sum_j W_jc k(x, z_j) by the core, for rows x that come in blocks.

    Parameters
    ----------
    form : what the core computes
    Z : dense or CSR (l, n)
    W : ndarray (l, c)
    sizes : sequence of int, rows of Z in each group, or None: all are one
    keep : bool
        Whether batches of Z wait for the next call, where they are small, and are
        sparse up to a larger share of nonzeros.
    dtype : float32 or float64, of values; sums of more than a few are float64

    Attributes
    ----------
    layout : Layout of Z
    """

    def __init__(
        self,
        form: CoreKernel,
        Z: Matrix,
        W: Vector,
        sizes: Sequence[int] | None = None,
        *,
        keep: bool = False,
        dtype: Any = np.float64,
    ) -> None:
        self.layout = Layout(form, Z, dtype, SPARSE_MODEL if keep else SPARSE_BATCH)
        self._Z = Z
        self._batches = Batches(self.layout, Z)
        self._W = np.ascontiguousarray(W, dtype=np.float64)
        sizes = sizes or [Z.shape[0]]
        self._cut, self._groups = _cut_groups(self._batches, sizes), len(sizes)
        ends = np.cumsum(sizes).tolist()
        self._parts = [slice(a, b) for a, b in zip([0, *ends], ends, strict=False)]
        keep = keep and 8 * Z.shape[0] * Z.shape[1] <= KEPT_BYTES
        self._kept: dict[bool, list[Any]] | None = {} if keep else None
        groups = np.array([group for group, _ in self._cut], np.int64)
        self._first_sum = groups * self._W.shape[1]

    def __call__(
        self,
        X: Matrix,
        index: NDArray[np.int64] | None = None,
        n_jobs: int | None = 1,
    ) -> Vector:
        """Values (k, c) for the rows ``index``, or all, of X (k, n), float64."""
        _check_width(X, self._Z)
        if index is None:
            index = np.arange(X.shape[0])
        out = np.empty((len(index), self._W.shape[1]))
        size = strips_at_a_time(X.shape[1])
        for start in range(0, len(index), size):
            sums = self.by_group(X, index[start : start + size], n_jobs)
            out[start : start + size] = sums[0].T
        return out

    def at_own_rows(self, n_jobs: int | None = 1) -> Vector:
        """Values of the first function for the rows of Z: half are enough, (l,)."""
        Z, layout = self._Z, self.layout

        def samples_of(index: NDArray[np.int64]) -> Samples:
            """Some of the rows as samples."""
            return Samples(layout, Z, index, Parts(len(index), n_jobs))

        return own_sums(self._W[:, 0], self._batches, self._batches.take, samples_of)

    def errors(self, X: Matrix) -> Vector:
        """What rounding may do to the values for these rows, at most: (k, c)."""
        layout = self.layout
        terms = layout.terms(X), layout.terms(self._Z)
        return self.errors_by(
            layout, (layout.lengths(X), layout.lengths(self._Z)), terms
        )

    def has_layout_of(self, layout: Layout) -> bool:
        """Whether its rows are laid out alike, but for the center."""
        own = self.layout
        alike = own.by_differences == layout.by_differences
        return alike and own.is_sparse == layout.is_sparse

    def errors_by(
        self, layout: Layout, lengths: tuple[Vector, Vector], terms: tuple[Any, Any]
    ) -> Vector:
        """The same by lengths and terms of rows and Z, from a layout's center."""
        own, off = self.layout, gamma_n(self._Z.shape[0] + 4)
        if not own.expands_squares:
            terms = (max(map(np.max, terms)),) * 2
        rows, others = (
            own.bounds(own.moved(size, layout.center), count)
            for size, count in zip(lengths, terms, strict=True)
        )
        return np.column_stack([rows.sums(others, w, off) for w in self._W.T])

    def errors_by_group(self, X: Matrix) -> Vector:
        """What rounding may do to the sums over each group, at most: (groups, c, k)."""
        layout, own = self.layout, self._lengths_and_terms
        counts = layout.terms(X), own[1]
        if not layout.expands_squares:
            counts = (max(map(np.max, counts)),) * 2
        unit = UNIT if layout.dtype == np.float64 else SINGLE
        rows, others = (
            layout.bounds(lengths, count, unit)
            for lengths, count in zip((self._lengths(X), own[0]), counts, strict=True)
        )
        # Up to 16 weighted values are added in the dtype, and their sums in float64.
        off = gamma_n(GROUP + 2, unit) + gamma_n(self._Z.shape[0] + 4)
        out = np.empty((self._groups, self._W.shape[1], X.shape[0]))
        for sums, part in zip(out, self._parts, strict=True):
            of_part = ValueBounds(others.eps, others.h[part], others.s[part])
            for one, w in zip(sums, self._W[part].T, strict=True):
                one[:] = rows.sums(of_part, w, off)
        return out

    @functools.cached_property
    def _lengths_and_terms(self) -> tuple[Vector, Any]:
        """What the bounds of Z depend on."""
        return self._lengths(self._Z), self.layout.terms(self._Z)

    def _lengths(self, X: Matrix) -> Vector:
        """At least the lengths of rows from the center."""
        layout = self.layout
        if layout.expands_squares and not layout.center.any():
            return linalg.row_squares(X) * ROUNDED  # no rows of the dtype are made
        return layout.lengths(X)

    def by_group(
        self, X: Matrix, index: NDArray[np.int64], n_jobs: int | None = 1
    ) -> Vector:
        """Sums over each group of Z apart: (groups, c, k), for a few strips of rows."""
        samples = Samples(self.layout, X, index, Parts(len(index), n_jobs))
        sums = np.zeros((self._groups, self._W.shape[1], samples.norms.size))
        batches = self._batches_for(samples)
        if samples.m <= STRIP and self._kept is not None:
            deadline.check()
            form, rows = self.layout.form, sums.reshape(-1, STRIP)
            first = self._first_sum
            _core.kernel_sums(form, samples.core, batches, first, self._W, rows)
            return sums[:, :, : samples.m]
        for batch, (group, some) in zip(batches, self._cut, strict=True):
            weights = self._W[some]
            samples.sums(batch, len(weights), weights, sums[group])
        return sums[:, :, : len(index)]

    def _batches_for(self, samples: Samples) -> Any:
        """The batches of Z, in order: each made in its turn, or kept."""
        made = (self._batches.take(some, samples) for _, some in self._cut)
        if self._kept is None:
            return made
        if samples.is_sparse not in self._kept:
            self._kept[samples.is_sparse] = list(made)
        return self._kept[samples.is_sparse]


def _cut_groups(batches: Batches, sizes: Sequence[int]) -> list[tuple[int, slice]]:
    """The batches of each group, in order."""
    found, start = [], 0
    for group, size in enumerate(sizes):
        parts = batches.cut(size)
        found += [(group, slice(start + s.start, start + s.stop)) for s in parts]
        start += size
    return found


def _check_width(X: Matrix, Z: Matrix) -> None:
    if X.shape[1] != Z.shape[1]:
        raise ValueError(f"X must have {Z.shape[1]} columns. Got {X.shape[1]} instead.")


def _share_of_nonzeros(Z: Matrix) -> float:
    """Share of the entries that are not zero; of some rows, where Z is dense."""
    if not isinstance(Z, np.ndarray):
        return linalg.density(Z)
    sample = Z[:: max(1, Z.shape[0] // 256)]
    return float(np.count_nonzero(sample)) / sample.size


def _clipped(size: float, least: int) -> int:
    """Rows of a batch; np.clip takes longer than to use a small one."""
    return int(min(max(size, least), MOST_BATCH))


def _reach(Z: Matrix, center: Vector, sums: str, keeps_digits: bool) -> float:
    """The largest |z - center|^2, or |z - center|_1, of the rows; may overflow.

    ``keeps_digits``: whether |z|^2 - 2 z'center + |center|^2 does.
    """
    absolute = sums != "square"
    if isinstance(Z, np.ndarray) and linalg.is_in_core(Z):
        return linalg.reach(Z, center, absolute)
    if sparse.issparse(Z) and not center.any():
        sizes = linalg.row_squares(Z) if sums == "square" else abs(Z).sum(axis=1)
        return float(sizes.max())
    stored: Any = Z if sparse.issparse(Z) and sums == "square" else None
    # With no entry in two parts:
    if stored is not None and keeps_digits and stored.has_canonical_format:
        with np.errstate(over="ignore", invalid="ignore"):
            moved = linalg.row_squares(Z) - 2.0 * linalg.matvec(Z, center)
            largest = float(moved.max() + center @ center)
        if np.isfinite(largest):
            return max(0.0, largest)
    m, size = Z.shape[0], max(1, LOOKED_AT // Z.shape[1])
    parts = (linalg.row_slice(Z, a, min(a + size, m)) for a in range(0, m, size))
    found = [
        linalg.reach(
            linalg.dense(part) if sparse.issparse(part) else part, center, absolute
        )
        for part in parts  # copies: the core cannot read Z as it lies
    ]
    return float(np.max(found, initial=0.0))  # NaN stays


def _norms(rows: Any, layout: Layout) -> NDArray[Any]:
    """|z|^2, or |z|_1, of rows: (k,)."""
    if layout.sums == "square":
        return linalg.row_squares(rows).astype(layout.dtype)
    return np.asarray(abs(rows).sum(axis=1), dtype=layout.dtype).ravel()


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
    begin: NDArray[np.int64],
    end: NDArray[np.int64],
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
