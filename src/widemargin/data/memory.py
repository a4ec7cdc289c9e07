"""Rows in memory, or in a memory-mapped array."""

import copy
from collections.abc import Callable, Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

from widemargin.data.blocks import Blocks
from widemargin.data.matrix import as_matrix, column_names
from widemargin.data.rows import Rows
from widemargin.data.state import RowState, row_index, row_vector
from widemargin.numerics import linalg
from widemargin.parameters import Checker, is_integer

# A block and its state should stay in cache while a sweep works on it, and hold enough
# rows to pay for the interpreter (benchmarks/core/sweeps.py).
BLOCK_BYTES = 4 << 20
BLOCK_ROWS = 2048
# Where every group has four such blocks of this size, blocks are as large: the time of
# the interpreter counts for more than the cache (3M x 32, float64 and float32: 0.93 and
# 0.91 of the processor time, 600,000 x 32 by other solvers 0.9 to 1.05).
MANY_BYTES, MANY_BLOCKS = 8 << 20, 4
# A weighted Gram matrix makes n^2 numbers a block: blocks have this many bytes for each
# of them, up to the second number (linear SVM of mnist, 784 columns: 16 a number took a
# fifth more time).
GRAM_BYTES, LARGE_BLOCK_BYTES = 64, 64 << 20
# Blocks are added up in this many groups (fewer when n^2 is large), whatever the number
# of threads: sums do not depend on it.
LANES = 8
# Bytes of these sums: with more than 2,896 columns there are fewer groups.
LANE_BYTES = 512 << 20


class MemoryRows(Rows):
    """Rows of a dense array (also memory-mapped) or CSR array, by reference."""

    is_in_memory = True
    _share: float | None = None

    def __init__(
        self,
        X: linalg.Matrix,
        n_jobs: int | None = None,
        memory_limit: int | None = None,
    ) -> None:
        self.shape = (int(X.shape[0]), int(X.shape[1]))
        self.dtype = X.dtype
        self.density = linalg.density(X)
        self.are_given_sparse = not isinstance(X, np.ndarray)
        self.options = {"n_jobs": n_jobs, "memory_limit": memory_limit}
        self._X = X
        self._blocks = _cut(X, n_jobs, memory_limit)
        self._views: dict[int, linalg.Matrix] = {}

    def sweep(
        self, f: Callable[..., Any], state: RowState | None = None, *broadcast: Any
    ) -> Any:
        """Read the data once: see `Rows.sweep`."""

        def task(rows: slice) -> Any:
            block = self._views.get(rows.start)
            if block is None:
                block = linalg.row_slice(self._X, rows.start, rows.stop)
                self._views[rows.start] = block
            return f(block, None if state is None else state.part(rows), *broadcast)

        self.sweeps += 1
        return self._blocks(task)

    @property
    def share(self) -> float:
        """Share of the entries that are not zero, of some rows, or that are stored."""
        if self._share is None:
            self._share = linalg.share_of_nonzeros(self._X)
        return self._share

    @property
    def threads(self) -> int:
        """Threads that a sweep takes."""
        return self._blocks.threads

    def in_one_thread(self) -> Self:
        """These rows, swept by the thread that asks for it: sums are the same."""
        alone = copy.copy(self)
        alone._blocks = self._blocks.in_one_thread()
        alone.options = {**self.options, "n_jobs": 1}
        return alone

    def stored(self, dense: bool) -> "MemoryRows":
        """These rows as a dense array, or as CSR rows: a copy."""
        return _Stored(self, dense)

    def take(self, index: ArrayLike) -> linalg.Matrix:
        """Rows ``index``: see `Rows.take`."""
        X, index = self._X, row_index(index, self.shape[0])
        # Of an array `take` needs half of the time.
        rows: linalg.Matrix = X.take(index, 0) if type(X) is np.ndarray else X[index]
        return rows

    def in_memory(self) -> linalg.Matrix:
        """The matrix itself: see `Rows.in_memory`."""
        return self._X

    def state(self, **vectors: Any) -> RowState:
        """Vectors beside the rows: see `Rows.state`."""
        m = self.shape[0]
        return RowState(
            {k: row_vector(k, v, m) for k, v in vectors.items()}, self._blocks
        )


class _Stored(MemoryRows):
    """Rows in another form than the user's, dense or CSR."""

    def __init__(self, rows: MemoryRows, dense: bool) -> None:
        X: Any = rows.in_memory()
        made = X.toarray() if dense else linalg.sparse_rows(X, rows.threads)
        super().__init__(made, **rows.options)
        self.names, self._share = rows.names, rows.share
        self.are_given_sparse = rows.are_given_sparse

    def whole(self, X: linalg.Matrix) -> linalg.Matrix:
        """Some of the rows in the user's form."""
        some: Any = X
        return sparse.csr_array(some) if self.are_given_sparse else some.toarray()


def _cut(X: linalg.Matrix, n_jobs: int | None, memory_limit: int | None) -> Blocks:
    """The blocks of X: a few MiB each, more when n x n sums have to pay off."""
    m, n = X.shape
    stored = max(1, linalg.n_bytes(X))
    even = min(MANY_BYTES, stored // (MANY_BLOCKS * LANES))
    size = min(max(BLOCK_BYTES, even, GRAM_BYTES * n * n), LARGE_BLOCK_BYTES)
    least = max(1, min(BLOCK_ROWS, LARGE_BLOCK_BYTES * m // stored))
    if memory_limit is not None:
        size, least = min(size, memory_limit // 8), 1
    block_rows = max(least, size * m // stored)
    n_blocks = -(-m // block_rows)
    if n_blocks > LANES:
        n_blocks = -(-n_blocks // LANES) * LANES  # equal lanes
    lanes = min(LANES, max(1, LANE_BYTES // (8 * n * n)))
    block_rows = -(-m // n_blocks)
    blocks = [slice(a, min(a + block_rows, m)) for a in range(0, m, block_rows)]
    return Blocks(blocks, lanes, n_jobs)


def as_rows(
    X: ArrayLike,
    *,
    names: Sequence[str] | None = None,
    n_jobs: int | None = None,
    memory_limit: int | None = None,
) -> Rows:
    """Rows over data in memory or in a memory-mapped file, without copying them.

    Parameters
    ----------
    X : array (m, n), dense in any order, table with named columns, or sparse matrix
        float32, float64 and integers are used as they are, read-only and memory-mapped
        arrays too; CSR with int32 or int64 indices, unsorted or duplicate entries and
        explicit zeros likewise. Other sparse formats and other dtypes are converted.
        `Rows` are returned as they are.
    names : sequence of str (n,) or None, default=None
        Names of the columns, which estimators, models and reports then use. None: those
        of a table; other data have none.
    n_jobs : int or None, default=None
        Threads of a sweep. None: as many as BLAS may use at the moment, which is all
        cores, or fewer inside joblib and threadpoolctl.
    memory_limit : int or None, default=None
        Bytes that the temporary arrays of a sweep may use; None: a few MiB a thread.

    Returns
    -------
    Rows

    Raises
    ------
    ValueError if X is not a real matrix with at least one row and one column, or a
    sparse matrix with indices outside of it, or a parameter is out of range.

    Notes
    -----
    Numbers are not read, but checked when they are first used. The indices of a sparse
    matrix are read once, here: nobody looks at them later, so leave them as they are.

    Examples
    --------
    >>> import numpy as np
    >>> from widemargin import as_rows
    >>> rows = as_rows(np.arange(6.0).reshape(3, 2))
    >>> rows.rmatvec([1.0, 1.0, 1.0])
    array([6., 9.])
    >>> rows.sweeps
    1
    """
    check = Checker("as_rows")
    check.memory_limit(memory_limit)
    if n_jobs is not None and not (is_integer(n_jobs) and n_jobs != 0):
        check.refuse("n_jobs", "a nonzero int or None", n_jobs)
    if isinstance(X, Rows):
        if names is not None:
            check.refuse_part("names", "be None for Rows, which have theirs", "names")
        return X
    rows = MemoryRows(as_matrix(X), n_jobs, memory_limit)
    rows.names = column_names(X)
    if names is not None:
        rows.names = _given_names(check, names, rows.shape[1])
    return rows


def _given_names(check: Checker, names: Any, n: int) -> list[str]:
    """The names that a user gives n columns, each of them another one."""
    found = list(names) if np.iterable(names) and not isinstance(names, str) else [0]
    if not all(isinstance(name, str) for name in found):
        check.refuse("names", "a sequence of str or None", names)
    if len(found) != n:
        expected = f"have a name for each of the {n} columns"
        check.refuse_part("names", expected, f"{len(found)} names")
    if len(set(found)) != n:
        twice = next(name for name in found if found.count(name) > 1)
        check.refuse_part("names", "hold each name once", f"{twice!r} twice")
    return [str(name) for name in found]
