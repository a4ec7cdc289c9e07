"""Expansions f = sum_j w_j k(., z_j) + b: what kernel machines predict with.

One class does all such sums over fixed vectors: the decisions of a model, distances
from a center, both sides of a certificate. `widemargin.kernels.matrix.Columns` makes
the sums over rows of a fit, whose coefficients change.
"""

import dataclasses
import functools
import itertools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from widemargin.arrays import Index, Vector
from widemargin.data.present import is_scattered, with_present
from widemargin.data.rows import Rows
from widemargin.kernels.core_engine import is_rough
from widemargin.kernels.core_sums import CoreSums
from widemargin.kernels.engines import CrossValues, cross_values
from widemargin.kernels.kernel import Kernel
from widemargin.kernels.layout import WIDE
from widemargin.kernels.packed import STRIP, strips_at_a_time
from widemargin.numerics import twofold
from widemargin.numerics.linalg import row_slice
from widemargin.numerics.rounding import SLACK, gamma_n
from widemargin.parameters import in_one_line

# Bytes of sums, or of values of a callable, that are in memory at a time: small beside
# the caches of kernel values, and 2,000 values for each of 1,000 rows.
SUMS_BYTES = 16 << 20
# Multiplications of float64 values, for each decision of a row, from which values in
# float32 and what is known of their errors take less time; and what a value costs
# beside its columns. (`SVC.predict` of blobs, 5 to 100 classes of 20 and 100 rows with
# 10 to 400 columns: 1.2 to 3.5 times as long below 1,200, 0.65 to 0.9 times above.)
GAIN, BESIDE = 1_500, 20
# Columns of vectors with fewer entries from which these and rows are numbered anew, by
# the columns that hold entries: arrays with a number for each column would take 100
# MiB. As all have more than WIDE columns then they are laid out alike, and values of a
# row do not depend on the others.
SCATTERED = 1 << 20
# Errors of float32 and of float64 together, as a share of those of float32: more than
# 1 + 2^-29.
WITH_FLOAT64 = 1.0 + 2.0**-20


@dataclass(frozen=True)
class Expansion:
    """Functions f = sum_j w_j k(., z_j) + b, several of them with shared z_j.

    Attributes
    ----------
    kernel : Kernel, with gamma as a number
    vectors : dense or CSR array (l, n)
        Support vectors or landmarks, of a model sorted by class; of a precomputed
        kernel int (l,), their columns in the blocks.
    weights : ndarray (r, l)
        A row for each function; or for the pairs of c > 2 classes, one against one, as
        LIBSVM keeps them: c - 1 rows, in which a vector of class i has its coefficients
        against the other classes, in their order.
    b : ndarray (k,)
    counts : ndarray (c,), vectors of each class

    Notes
    -----
    The result for a row does not depend on the other rows, bit for bit, except for
    callables, whose values may.
    """

    kernel: Kernel
    vectors: Any
    weights: Vector
    b: Vector
    counts: Index

    @classmethod
    def of_rows(cls, rows: Rows, kernel: Kernel, J: Index, c: Vector) -> "Expansion":
        """The function sum_j c_j k(., x_j) of the rows J; of K where it is given."""
        vectors = J if kernel.is_precomputed else rows.take(J)
        return cls(kernel, vectors, c[np.newaxis], np.zeros(1), np.array([len(J)]))

    def __repr__(self) -> str:
        facts = self.kernel.facts | {"n_features": self.n_features}
        return in_one_line(self, **facts, vectors=self.vectors.shape[0])

    @property
    def is_paired(self) -> bool:
        """Whether the weights belong to pairs of classes, in LIBSVM's layout."""
        return len(self.b) != len(self.weights)

    @property
    def is_empty(self) -> bool:
        """Whether there are no vectors."""
        return bool(self.weights.shape[1] == 0)

    @property
    def n_features(self) -> int:
        """Columns of the rows to score; of a precomputed kernel, what they hold."""
        return int(self.vectors.shape[-1])

    def __call__(self, block: Any) -> Vector:
        """Values of the functions for some rows, dense or CSR (m, n): (m, k)."""
        if self._is_scattered and sparse.issparse(block):
            parts = block, self.vectors
            (block, vectors), _ = with_present(*parts, least=WIDE + 1)
            return dataclasses.replace(self, vectors=vectors)(block)
        return self._summed(block, None if self.is_empty else self._expand)

    def _summed(
        self, block: Any, expand: Callable[[Any, Index], Vector] | None
    ) -> Vector:
        """Values by sums over the vectors of each group, if there are any."""
        self.kernel.refuse_outside(block)
        m, k = block.shape[0], len(self.b)
        out = np.zeros((k, m))
        size = max(1, SUMS_BYTES // (8 * self._n_sums) // STRIP) * STRIP
        size = min(size, strips_at_a_time(block.shape[1]))
        for start in range(0, m, size) if expand is not None else ():
            index = np.arange(start, min(start + size, m))
            sums = expand(block, index)  # type: ignore[misc]
            out[:, start : start + size] = self._joined(sums)
        out += self.b[:, np.newaxis]
        return out.T

    @property
    def _is_scattered(self) -> bool:
        """Whether columns without entries would take more time than the sums."""
        return self.kernel.is_named and is_scattered(self.vectors, SCATTERED)

    @functools.cached_property
    def suits_float32(self) -> bool:
        """Whether float32 has the digits, and exponents, for values of the vectors."""
        if self.is_empty or not self.kernel.is_named:
            return False
        diagonal = self.kernel.diag(self.vectors)
        layout, finite = self._single.layout, bool(np.isfinite(diagonal).all())
        return finite and not is_rough(layout, self.kernel, self.vectors, diagonal)

    @property
    def gains_by_float32(self) -> bool:
        """Whether `rough` takes less time than values in float64, and suits it."""
        if self.is_empty or not self.kernel.is_named or self._is_scattered:
            return False
        vectors, n = self.vectors.shape
        return vectors * (n + BESIDE) >= GAIN * len(self.b) and self.suits_float32

    def rough(self, block: Any) -> tuple[Vector, Vector]:
        """Values by float32, and how far they may be from a call's: (m, k) each.

        Of a kernel that it suits.
        """
        with np.errstate(all="ignore"):  # rows out of range have no bounds
            values = self._summed(block, self._single.by_group)
            errors = self._summed(block, self._single_errors) - self.b
            errors *= WITH_FLOAT64
            errors += gamma_n(8) * (np.abs(values) + 2.0 * np.abs(self.b))
        return values, errors

    def _single_errors(self, block: Any, index: Index) -> Vector:
        """Bounds of the sums over each group by float32, for the rows ``index``."""
        return self._single.errors_by_group(row_slice(block, index[0], index[-1] + 1))

    def bounded(self, block: Any) -> tuple[Vector, Vector]:
        """Values for some rows, and bounds of their errors: (m, k) each.

        Not of pairs of classes; the values of a callable are taken as they are.
        """
        if self.is_empty or not self.kernel.is_named:
            return self._bounded_given(block)
        return self(block), self._core.errors(block)

    def _bounded_given(self, block: Any) -> tuple[Vector, Vector]:
        """Values and bounds by kernel values of the user's, or of no vectors."""
        if self.is_empty:
            return self(block), np.zeros((block.shape[0], len(self.b)))
        values, W = self._values(block), self.weights.T
        off = gamma_n(self.vectors.shape[0] + 2) * SLACK
        return values @ W + self.b, off * (np.abs(values) @ np.abs(W))

    def twofold(self, block: Any) -> tuple[Vector, Vector, Vector]:
        """The first function in twice the precision: high, errors, low, (m,) each.

        Without b; of a kernel with a name.
        """
        form, c = self.kernel.form, self.weights[0]
        hi, lo, error, _ = twofold.kernel_sums(form, block, self.vectors, c)
        return hi, error, lo

    def _joined(self, sums: Vector) -> Vector:
        """Sums (groups, r, m) of the vectors of each class, as decisions need them."""
        if not self.is_paired:
            joined: Vector = sums[0]
            return joined
        i, j = self._pairs
        return np.asarray(sums[i, j - 1] + sums[j, i])

    @functools.cached_property
    def _pairs(self) -> tuple[Index, Index]:
        """The two classes of each decision."""
        i, j = np.triu_indices(len(self.counts), 1)
        return i, j

    @property
    def _sizes(self) -> list[int]:
        """Vectors whose sums are kept apart: of each class, or all of them."""
        return self.counts.tolist() if self.is_paired else [self.vectors.shape[0]]

    @functools.cached_property
    def _n_sums(self) -> int:
        """Sums for each row: in memory, or its values of a callable kernel."""
        sums = len(self._sizes) * len(self.weights)
        return sums if self.kernel.is_named else max(sums, self.vectors.shape[0])

    @functools.cached_property
    def _expand(self) -> Callable[[Any, Index], Vector]:
        """Sums over the vectors of each group, for the rows ``index`` of a block."""
        if self.kernel.is_named:
            return self._core.by_group
        ends = np.cumsum(self._sizes)[:-1]
        parts = np.split(self.weights, ends, axis=1)
        return functools.partial(_sums_given, self._values, parts)

    @functools.cached_property
    def _core(self) -> CoreSums:
        """The sums of a kernel with a name."""
        vectors, W = self.vectors, self.weights.T
        return CoreSums(self.kernel.form, vectors, W, self._sizes, keep=True)

    @functools.cached_property
    def _single(self) -> CoreSums:
        """The sums of a kernel with a name, of values in float32."""
        W, single = self.weights.T, np.float32
        args = self.kernel.form, self.vectors, W, self._sizes
        return CoreSums(*args, keep=True, dtype=single)

    @functools.cached_property
    def _values(self) -> CrossValues:
        """Values of the user's with the vectors."""
        return cross_values(self.kernel, self.vectors, np.float64)

    def __getstate__(self) -> dict[str, Any]:
        """Attributes that are made when first needed are not pickled."""
        made = ("suits_float32",)
        return {
            k: v
            for k, v in vars(self).items()
            if not k.startswith("_") and k not in made
        }

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)


def _sums_given(
    values_of: CrossValues,
    parts: list[Vector],
    block: Any,
    index: Index,
) -> Vector:
    """Sums of the user's values with the vectors of each group."""
    values = values_of(row_slice(block, index[0], index[-1] + 1))
    ends = np.cumsum([part.shape[1] for part in parts])[:-1]
    groups = zip(parts, np.split(values, ends, axis=1), strict=True)
    return np.stack([(some @ part.T).T for part, some in groups])


def pair_weights(weights: Vector, counts: Index) -> Vector:
    """Weights of the pairs of classes, a row each, from LIBSVM's layout: (k, l)."""
    ends = np.cumsum(counts)
    pairs = list(itertools.combinations(range(len(counts)), 2))
    out = np.zeros((len(pairs), weights.shape[1]))
    for row, (i, j) in zip(out, pairs, strict=True):
        first, second = (slice(ends[k] - counts[k], ends[k]) for k in (i, j))
        row[first], row[second] = weights[j - 1, first], weights[i, second]
    return out
