"""Squared distances of rows from a center c = sum_j a_j phi(z_j), block by block.

|phi(x) - c|^2 = k(x, x) + |c|^2 - 2 sum_j a_j k(x, z_j).
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from widemargin.arrays import Vector
from widemargin.data.state import RowState
from widemargin.kernels.expansion import Expansion
from widemargin.kernels.kernel import Kernel
from widemargin.numerics import linalg

Distances = Callable[[Any], Vector]


def from_center(
    kernel: Kernel, vectors: linalg.Matrix, a: Vector, square: float
) -> Distances:
    """Distances from the center of vectors (l, n) with weights a (l,); |c|^2 is known.

    A row's distance does not depend on the other rows, bit for bit, but for callables.
    """
    weights, b = -2.0 * a[np.newaxis], np.array([square])
    sums = Expansion(kernel, vectors, weights, b, np.array([len(a)]))

    def distances(block: Any) -> Vector:
        """By kernel values."""
        inner: Vector = sums(block)[:, 0]
        lengths = kernel.diag(block)
        # Where a length is beyond all numbers it is also beyond the inner products.
        return lengths + np.where(np.isinf(lengths), 0.0, inner)

    return distances


def from_point(center: Vector) -> Distances:
    """Distances from a point (n,) itself: by differences where the rows are dense."""

    def distances(block: Any) -> Vector:
        """By coordinates."""
        if isinstance(block, np.ndarray):
            return linalg.row_squares(block - center)
        inner = 2.0 * linalg.matvec(block, center)
        return linalg.row_squares(block) - inner + float(center @ center)

    return distances


def from_products(w: Vector, constant: float) -> Distances:
    """Distances where the rows hold values: ``constant`` plus their product with w."""

    def distances(block: Any) -> Vector:
        """By the values in the rows."""
        return linalg.matvec(block, w) + constant

    return distances


def score_distances(block: Any, part: RowState, distances: Distances) -> int:
    """Set ``scores`` to minus the distances; 1 where NaN or infinity is in the way."""
    block = linalg.formed(block)
    scores = part.scores = -np.maximum(distances(block), 0.0)
    return int(not (np.isfinite(scores).all() and linalg.all_finite(block)))
