"""Sums of weighted kernel values, and the values themselves, of rows and samples.

The values are multiplied by weights and added up as they are made: nothing of the size
of the kernel matrix is ever in memory.
"""

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from scipy import sparse

from widemargin import _core
from widemargin.arrays import Index64, Vector
from widemargin.kernels.layout import SPARSE_BATCH, Layout
from widemargin.kernels.packed import (
    GROUP,
    STRIP,
    Batches,
    Parts,
    Samples,
    aligned,
    padded,
    strips_at_a_time,
)
from widemargin.numerics import linalg
from widemargin.numerics.linalg import Matrix
from widemargin.numerics.rounding import SINGLE, UNIT, gamma_n
from widemargin.numerics.twofold import CoreKernel
from widemargin.system import deadline

# Share of nonzeros up to which a batch of a model is sparse. They are made once: by one
# thread of an EPYC with AVX2 sparse batches took 0.53 of the time at a share of 0.2 and
# 784 columns (0.56 at 100 columns, 0.79 at 30), 0.69 (0.65, 0.83) at 0.3 and as long
# (0.73, 0.88) at 0.4.
SPARSE_MODEL = 0.3
# What rounding of entries to float32 adds to a sum of squares, as a factor: more.
ROUNDED = 1.0 + 2.0**-20
# Bytes of the support vectors up to which a model keeps them as batches beside those
# that it has: 8,000 of 1,000 columns.
KEPT_BYTES = 64 << 20
# Rows of a set that meet the later ones of it at a time, at most: pairs among them are
# made both ways. (1,024: 1.07 to 1.15 times as long for 3,000 to 6,000 rows of 12 to 68
# entries, 1.02 for 9,600; 192 and 256 take as long as 384.)
OWN_ROWS = 384


def own_sums(
    c: Vector,
    batches: Batches,
    take: Callable[[slice, Samples], Any],
    samples_of: Callable[[Index64], Samples],
) -> Vector:
    """The sums sum_j c_j k(z_i, z_j) over the rows of a set, by half of the values.

    A value counts for i and for j, but where one batch holds both.
    """
    k, n = len(c), batches.n
    sums = np.zeros((1, k))
    size, step = padded(min(batches.size, OWN_ROWS)), strips_at_a_time(n)
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
        self._sizes = np.asarray(sizes)
        keep = keep and 8 * Z.shape[0] * Z.shape[1] <= KEPT_BYTES
        self._kept: dict[bool, list[Any]] | None = {} if keep else None
        groups = np.array([group for group, _ in self._cut], np.int64)
        self._first_sum = groups * self._W.shape[1]

    def __call__(
        self,
        X: Matrix,
        index: Index64 | None = None,
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

        def samples_of(index: Index64) -> Samples:
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
        """Bounds of errors, by lengths and terms of rows and Z from a center."""
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
        return rows.sums_of_groups(others, self._W, self._sizes, off)

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

    def by_group(self, X: Any, index: Index64, n_jobs: int | None = 1) -> Vector:
        """Sums over each group of Z apart: (groups, c, k), for a few strips of rows."""
        made = self._batches
        if self._may_narrow(X, len(index)):
            X, index = X[index], np.arange(len(index))
            X, made = self._narrowed(X) if X.nnz else (X, made)
        samples = Samples(self.layout, X, index, Parts(len(index), n_jobs))
        sums = np.zeros((self._groups, self._W.shape[1], samples.norms.size))
        batches = self._batches_for(samples, made)
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

    def _may_narrow(self, X: Any, count: int) -> bool:
        """Whether rows of batches are made dense anew for each call, for few rows X."""
        alike = self.layout.stays_sparse and not self.layout.by_differences
        return alike and count <= STRIP and self._kept is None and sparse.issparse(X)

    def _narrowed(self, X: Any) -> tuple[Any, Batches]:
        """Rows and batches with the columns that these rows have: the same products."""
        rows = self.layout.rows(X)
        columns, place = np.unique(rows.indices, return_inverse=True)
        shape = rows.shape[0], len(columns)
        few = sparse.csr_array((rows.data, place, rows.indptr), shape=shape)
        return few, self._batches.of_columns(columns)

    def _batches_for(self, samples: Samples, own: Batches) -> Any:
        """The batches of Z, in order: each made in its turn, or kept."""
        made = (own.take(some, samples) for _, some in self._cut)
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
