"""How rows meet samples in the core: what is summed, from where, dense or sparse.

It is decided by the rows alone, so that it is the same for all samples that they meet.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from widemargin import _core
from widemargin.arrays import Vector
from widemargin.kernels.table import KERNELS, NAMES
from widemargin.numerics import linalg
from widemargin.numerics.linalg import Matrix
from widemargin.numerics.rounding import (
    UNIT,
    ValueBounds,
    differences_bounds,
    value_bounds,
)
from widemargin.numerics.twofold import CoreKernel

# rbf of sums of (x_j - z_j)^2, in place of |x|^2 + |z|^2 - 2x'z: behind the named
# ones.
RBF_BY_DIFFERENCES = len(NAMES)
# How often lengths count in what a distance is a difference of, by what is summed:
# |x|^2 + |z|^2 + 2 |x'z|; or |x|_1 and terms of as much, whose own errors have the
# other half. Of chi2, with u the unit: 2 (k + 2) u for the sum, 5 u of a term, 1 u for
# what it differs from |x|, and 3 u as its entries are rounded: below 4 (k + 10) u.
SPREAD = {"square": 2.0, "size": 4.0, "share": 4.0}

CHUNK = _core.KERNEL_CHUNK
# Share of nonzeros up to which a batch is sparse, where the samples are packed.
SPARSE_BATCH = 0.15
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
# Values exp(-gamma |x - z|^2) of rows of ones are made of factors, of which one depends
# on the ones that both have: up to so many of a row, which a byte counts, and up to exp
# of twice so much, which float32 holds with all its digits.
FACTOR_ONES, FACTOR_RANGE = 255, 8.0


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

    @np.errstate(over="ignore", invalid="ignore")  # rows out of range do not suit
    def __init__(
        self,
        form: CoreKernel,
        Z: Matrix,
        dtype: Any = np.float64,
        sparse_to: float = SPARSE_BATCH,
        wide: int = WIDE,
        threads: int = 1,
    ) -> None:
        self.form, self.dtype = form, np.dtype(dtype)
        kernel = KERNELS[NAMES[form[0]]]
        self.sums, self.value = kernel.sums, kernel.value
        self.center = np.zeros(Z.shape[1])
        stored = sparse.issparse(Z)
        self.is_sparse = linalg.share_of_nonzeros(Z) <= sparse_to
        self.stays_sparse = stored and Z.shape[1] > wide
        self.is_sparse = self.is_sparse or self.stays_sparse
        sums, squares = linalg.column_sums(Z, threads)
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
            self.reach = _reach(Z, self.center, self.sums, keeps_digits, threads)
            if self._has_to_subtract():
                self._subtract()

    def count_levels(self, are_exact: bool) -> None:
        """Let distances be sums of integers, which have no center."""
        self.of_levels, self.center = are_exact, np.zeros_like(self.center)

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

    @np.errstate(over="ignore", invalid="ignore")
    def rows(self, Z: Matrix) -> Any:
        """Rows as a batch holds them: dense or CSR, of the dtype, less the center."""
        if self.is_sparse:
            rows = linalg.sparse_rows(Z).astype(self.dtype)
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
            return norms_of(self.rows(X).astype(np.float64), self).astype(np.float64)
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


def _reach(
    Z: Matrix, center: Vector, sums: str, keeps_digits: bool, threads: int
) -> float:
    """The largest |z - center|^2, or |z - center|_1, of the rows; may overflow.

    ``keeps_digits``: whether |z|^2 - 2 z'center + |center|^2 does.
    """
    absolute = sums != "square"
    if isinstance(Z, np.ndarray) and linalg.is_in_core(Z):
        return linalg.reach(Z, center, absolute, threads)
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


def norms_of(rows: Any, layout: Layout) -> NDArray[Any]:
    """|z|^2, or |z|_1, of rows: (k,)."""
    if layout.sums == "square":
        return linalg.row_squares(rows).astype(layout.dtype)
    return np.asarray(abs(rows).sum(axis=1), dtype=layout.dtype).ravel()
