"""Decision functions with a kernel: sums of kernel values with some vectors."""

import functools
import itertools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from widemargin.kernels.kernel import Kernel
from widemargin.kernels.packed import STRIP, Expansion, strips_at_a_time
from widemargin.numerics.linalg import Matrix, row_slice
from widemargin.parameters import in_one_line

Vector = NDArray[np.float64]

# Bytes of sums, or of values of a callable, that are in memory at a time. Not tuned.
SUMS_BYTES = 16 << 20


@dataclass(frozen=True)
class KernelDecisions:
    """Decision functions sum_j w_j k(x, z_j) + b of several problems, with shared z_j.

    Attributes
    ----------
    kernel : Kernel, with gamma as a number
    vectors : dense or CSR array (l, n), support vectors or landmarks, sorted by class
    weights : ndarray (r, l)
        A row for each decision; or for the pairs of c > 2 classes, one against one, as
        LIBSVM keeps them: c - 1 rows, in which a vector of class i has its coefficients
        against the other classes, in their order.
    b : ndarray (k,)
    counts : ndarray (c,), vectors of each class

    Notes
    -----
    The result for a row does not depend on the other rows, bit for bit, but for
    callables, whose values it is up to.
    """

    kernel: Kernel
    vectors: Matrix
    weights: Vector
    b: Vector
    counts: NDArray[np.intp]

    def __repr__(self) -> str:
        vectors, n = self.vectors.shape
        facts = self.kernel.facts | {"n_features": n, "vectors": vectors}
        return in_one_line(self, **facts)

    @property
    def is_paired(self) -> bool:
        """Whether the weights are those of pairs of classes, in LIBSVM's layout."""
        return len(self.b) != len(self.weights)

    @property
    def n_features(self) -> int:
        """Columns of the rows to score."""
        return int(self.vectors.shape[1])

    def __call__(self, block: Matrix) -> Vector:
        """Decision values of some rows: (m, k)."""
        m, k = block.shape[0], len(self.b)
        out = np.zeros((k, m))
        size = max(1, SUMS_BYTES // (8 * self._n_sums) // STRIP) * STRIP
        size = min(size, strips_at_a_time(self.n_features))
        for start in range(0, m if self.vectors.shape[0] else 0, size):
            index = np.arange(start, min(start + size, m))
            out[:, start : start + size] = self._joined(self._expand(block, index))
        out += self.b[:, np.newaxis]
        return out.T

    def _joined(self, sums: Vector) -> Vector:
        """Sums (groups, r, m) of the vectors of each class, as decisions need them."""
        if not self.is_paired:
            joined: Vector = sums[0]
            return joined
        i, j = self._pairs
        return np.asarray(sums[i, j - 1] + sums[j, i])

    @functools.cached_property
    def _pairs(self) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
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
    def _expand(self) -> Callable[[Matrix, NDArray[np.intp]], Vector]:
        """Sums over the vectors of each group, for the rows ``index`` of a block."""
        if self.kernel.is_named:
            vectors, W = self.vectors, self.weights.T
            form = self.kernel.form
            return Expansion(form, vectors, W, self._sizes, keep=True).by_group
        ends = np.cumsum(self._sizes)[:-1]
        parts = np.split(self.weights, ends, axis=1)
        return functools.partial(_called, self.kernel, self.vectors, parts)

    def __getstate__(self) -> dict[str, Any]:
        """What is made when it is first needed does not travel."""
        return {k: v for k, v in vars(self).items() if not k.startswith("_")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)


def _called(
    kernel: Kernel,
    vectors: Matrix,
    parts: list[Vector],
    block: Matrix,
    index: NDArray[np.intp],
) -> Vector:
    """Sums of the values of a callable with the vectors of each group."""
    values = kernel.called(row_slice(block, index[0], index[-1] + 1), vectors)
    ends = np.cumsum([part.shape[1] for part in parts])[:-1]
    groups = zip(parts, np.split(values, ends, axis=1), strict=True)
    return np.stack([(some @ part.T).T for part, some in groups])


def pair_weights(weights: Vector, counts: NDArray[np.intp]) -> Vector:
    """Weights of the pairs of classes, a row each, from LIBSVM's layout: (k, l)."""
    ends = np.cumsum(counts)
    pairs = list(itertools.combinations(range(len(counts)), 2))
    out = np.zeros((len(pairs), weights.shape[1]))
    for row, (i, j) in zip(out, pairs, strict=True):
        first, second = (slice(ends[k] - counts[k], ends[k]) for k in (i, j))
        row[first], row[second] = weights[j - 1, first], weights[i, second]
    return out
