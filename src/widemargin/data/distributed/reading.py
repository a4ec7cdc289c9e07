"""What a worker makes of the partitions of a lane: rows, and vectors beside them."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from widemargin.arrays import Mask
from widemargin.data.distributed.lane import Lane
from widemargin.data.distributed.loading import Facts
from widemargin.data.matrix import as_matrix
from widemargin.data.memory import MemoryRows
from widemargin.numerics import linalg

# Vectors beside the rows, which rows to keep (None: all), and what is found out.
Prepared = tuple[dict[str, NDArray[Any]], Mask | None, Any]


@dataclass(frozen=True)
class LaneReader:
    """Reads partitions: (number, matrix, vectors...) each.

    Attributes
    ----------
    prepare : callable (rows, *vectors) -> Prepared
        What a partition says beside its matrix.
    categories : dict of the categories of columns of tables, by name
    """

    prepare: Callable[..., Prepared]
    categories: Mapping[str, list[Any]]

    def __call__(self, number: int, partitions: Sequence[Any]) -> tuple[Lane, Facts]:
        """The lane of these partitions, and its facts."""
        blocks, vectors, sizes, found, left_out = [], [], [], [], False
        for place, table, *columns in partitions:
            try:
                X, made, what = self._read(table, columns)
            except ValueError as error:
                raise ValueError(f"partition {place}: {error}") from None
            sizes.append(X.shape[0])
            left_out |= X.shape[0] == 0 < X.shape[1]
            if X.shape[0]:
                blocks.append((place, X))
                vectors.append(made)
                found.append(what)
        X = _stacked(blocks)
        joined = {
            name: _joined([made[name] for made in vectors])
            for name in (vectors[0] if vectors else {})
        }
        if X is None:
            none = None, np.dtype(np.uint8), 0, found
            facts = Facts(number, sizes, *none, left_out=left_out)
            return Lane(number, None, joined), facts
        rows = MemoryRows(as_matrix(X), n_jobs=1)
        stored = round(rows.density * rows.shape[0] * rows.shape[1])
        facts = Facts(number, sizes, rows.shape[1], rows.dtype, stored, found)
        return Lane(number, rows, joined), facts

    def _read(self, table: Any, columns: Sequence[Any]) -> tuple[Any, Any, Any]:
        """Matrix and vectors of a partition, and what it says."""
        X = _computable(table, self.categories)
        if X.shape[0] == 0:
            return X, {}, None
        made, keep, found = self.prepare(X.shape[0], *columns)
        if keep is not None and not keep.all():
            X, made = X[keep], {name: vector[keep] for name, vector in made.items()}
        return X, made, found


def matrix_of(table: Any, categories: Mapping[str, list[Any]]) -> Any:
    """A dense or CSR matrix of its own memory, perhaps without rows.

    What came through the network may lie at an odd address, where BLAS rounds in other
    ways, or be a view of more than its part.
    """
    found = _computable(table, categories)
    return found.copy() if sparse.issparse(found) else np.array(found, order="C")


def _computable(table: Any, categories: Mapping[str, list[Any]]) -> Any:
    """A dense or CSR matrix, perhaps without rows, copied only where it must be."""
    if hasattr(table, "columns") and hasattr(table, "dtypes"):
        table = _of_frame(table, categories)
    if not sparse.issparse(table):
        table = np.asarray(table)
        if table.ndim == 1 and table.size == 0:
            table = table.reshape(0, 0)
    if table.ndim == 2 and table.shape[0] == 0:
        return np.empty((0, 0))
    return as_matrix(table)


def _of_frame(frame: Any, categories: Mapping[str, list[Any]]) -> Any:
    """The numbers of a table, with a column for each category."""
    if not categories:
        return frame.to_numpy()
    columns: list[Any] = []
    for name in frame.columns:
        if name not in categories:
            columns.append(frame[name].to_numpy()[:, np.newaxis])
            continue
        values = frame[name].to_numpy()[:, np.newaxis]
        known = np.array(categories[name], dtype=object)[np.newaxis]
        hot = values == known
        if not hot.any(axis=1).all():
            row = int(np.argmin(hot.any(axis=1)))
            raise ValueError(
                f"column {name!r} must hold its categories only. "
                f"Got {values[row, 0]!r} at row {row} instead."
            )
        columns.append(hot.astype(np.uint8))
    return np.concatenate(columns, axis=1)


def _stacked(blocks: Sequence[tuple[int, Any]]) -> Any:
    """The matrices of all partitions on top of each other, copied once; or None."""
    for place, X in blocks[1:]:
        if X.shape[1] != blocks[0][1].shape[1]:
            raise ValueError(
                "X must have the same columns in all partitions. Got "
                f"{blocks[0][1].shape[1]} in partition {blocks[0][0]} and "
                f"{X.shape[1]} in partition {place} instead."
            )
    if not blocks:
        return None
    matrices = [X for _, X in blocks]
    if any(map(sparse.issparse, matrices)):
        matrices = [sparse.csr_array(X) for X in matrices]
    return matrix_of(matrices[0], {}) if len(matrices) == 1 else linalg.stack(matrices)


def _joined(vectors: Sequence[NDArray[Any]]) -> NDArray[Any]:
    """One vector, in memory of its own."""
    return np.array(vectors[0]) if len(vectors) == 1 else np.concatenate(vectors)
