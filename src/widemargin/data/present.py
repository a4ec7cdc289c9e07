"""Sparse rows without the columns that hold no entry, as hashed names leave many."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from widemargin.data.memory import MemoryRows
from widemargin.data.rows import Rows
from widemargin.numerics import linalg

# Columns up to which vectors with a number for each are small: 512 KiB.
FEW = 1 << 16


def is_scattered(X: Any, few: int = FEW) -> bool:
    """Whether rows are sparse, with more columns than entries, and than ``few``."""
    return bool(sparse.issparse(X) and X.shape[1] > max(few, X.nnz))


class PresentRows(MemoryRows):
    """The rows of a CSR array by the columns that hold entries, numbered anew.

    A kernel has the same values of them. What leaves a fit is made `whole` again.

    Attributes
    ----------
    numbers : int ndarray (k,), of the columns in the array
    n_all : int, columns of the array
    """

    def __init__(self, X: sparse.csr_array, **options: Any) -> None:
        (narrow,), self.numbers = with_present(X)
        super().__init__(narrow, **options)
        self._n_all = int(X.shape[1])

    @property
    def n_all(self) -> int:
        """How many columns there are, also those that hold no entry."""
        return self._n_all

    def whole(self, X: linalg.Matrix) -> linalg.Matrix:
        """Some of the rows with their columns as they were given."""
        rows: Any = X
        return _numbered(rows, self.numbers[rows.indices], self._n_all)

    def number_of(self, j: int) -> int:
        """Which column of the array is column j here."""
        return int(self.numbers[j])


def present(rows: Rows) -> Rows:
    """The rows by the columns that hold entries, where many do not; else as they are.

    Rows elsewhere than in memory, views and named columns stay as they are.
    """
    X: Any = None
    if type(rows) is MemoryRows and rows.names is None:
        X = rows.in_memory()
    return PresentRows(X, **rows.options) if is_scattered(X) else rows


def with_present(
    *parts: sparse.csr_array, least: int = 1
) -> tuple[list[Any], NDArray[Any]]:
    """The parts by the columns that hold an entry of any, and the numbers of these.

    They have ``least`` columns at least, the last of which may be empty.
    """
    found = [X.indices[: X.indptr[-1]] for X in parts]
    numbers = np.unique(np.concatenate(found))
    n = max(least, numbers.size)
    places = (np.searchsorted(numbers, columns) for columns in found)
    made = (_numbered(X, p, n) for X, p in zip(parts, places, strict=True))
    return list(made), numbers


def _numbered(X: Any, columns: NDArray[Any], n: int) -> Any:
    """Rows with other numbers of their n columns, in the same order."""
    data = X.data[: columns.size]
    made = sparse.csr_array((data, columns, X.indptr), shape=(X.shape[0], n))
    made.has_canonical_format = X.has_canonical_format
    return made
