"""Decision functions with a kernel: sums of kernel values with some vectors."""

import functools
import itertools
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from widemargin.kernel_blocks import Expansion
from widemargin.kernels import Kernel
from widemargin.linalg import Matrix, row_slice
from widemargin.parameters import in_one_line

Vector = NDArray[np.float64]

# Bytes of values of a callable that are in memory at a time.
CALLED_BYTES = 16 << 20


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
        sums = self._sums(block)
        if not self.is_paired:
            return sums[0] + self.b
        pairs = itertools.combinations(range(len(self.counts)), 2)
        return self.b + np.column_stack(
            [sums[i][:, j - 1] + sums[j][:, i] for i, j in pairs]
        )

    def _sums(self, block: Matrix) -> list[Vector]:
        """Sums over the vectors of each group: (m, r) each."""
        m, r = block.shape[0], len(self.weights)
        return [
            np.zeros((m, r)) if expand is None else expand(block)
            for expand in self._expansions
        ]

    @functools.cached_property
    def _expansions(self) -> list[Any]:
        """Sums over the vectors of each class, or of all where that is enough."""
        sizes = self.counts.tolist() if self.is_paired else [int(self.counts.sum())]
        ends = list(itertools.accumulate(sizes))
        parts = [(end - size, end) for size, end in zip(sizes, ends, strict=True)]
        return [self._expansion(*part) if part[0] < part[1] else None for part in parts]

    def _expansion(self, start: int, stop: int) -> Any:
        vectors = row_slice(self.vectors, start, stop)
        W = self.weights[:, start:stop].T
        if self.kernel.is_named:
            return Expansion(self.kernel.form, vectors, W)
        return functools.partial(_called, self.kernel, vectors, W)

    def __getstate__(self) -> dict[str, Any]:
        """What is made when it is first needed does not travel."""
        return {k: v for k, v in vars(self).items() if k != "_expansions"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)


def _called(kernel: Kernel, vectors: Matrix, W: Vector, block: Matrix) -> Vector:
    """Sums of the values of a callable, some rows at a time."""
    size = max(1, CALLED_BYTES // (8 * vectors.shape[0]))
    parts = [
        kernel.called(row_slice(block, a, min(a + size, block.shape[0])), vectors) @ W
        for a in range(0, block.shape[0], size)
    ]
    return np.concatenate(parts)


def pair_weights(weights: Vector, counts: NDArray[np.intp]) -> Vector:
    """Weights of the pairs of classes, a row each, from LIBSVM's layout: (k, l)."""
    ends = np.cumsum(counts)
    pairs = list(itertools.combinations(range(len(counts)), 2))
    out = np.zeros((len(pairs), weights.shape[1]))
    for row, (i, j) in zip(out, pairs, strict=True):
        first, second = (slice(ends[k] - counts[k], ends[k]) for k in (i, j))
        row[first], row[second] = weights[j - 1, first], weights[i, second]
    return out
