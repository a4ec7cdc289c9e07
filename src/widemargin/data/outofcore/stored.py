"""Rows in files: read block by block, in every sweep anew."""

import threading
import weakref
from collections import deque
from collections.abc import Callable
from typing import Any, NoReturn

import numpy as np
from numpy.typing import ArrayLike, NDArray

from widemargin.data.blocks import Blocks, even_blocks
from widemargin.data.outofcore.scratch import FileVector, ScratchState
from widemargin.data.outofcore.source import Source
from widemargin.data.rows import Rows
from widemargin.data.state import RowState, copied, row_index, row_vector
from widemargin.numerics import linalg
from widemargin.system.files import is_delimited

# Bytes of a block. It is read while another one is worked on. Twice as many as in
# memory.py, for a block costs calls of the system and the interpreter; more with many
# columns, as a weighted Gram matrix adds n^2 numbers for a block: 16 n^2 bytes are 2 n
# rows of float64, whose products take 2 n^3 multiplications for the n^2 that are added.
BLOCK_BYTES, LARGE_BLOCK_BYTES = 8 << 20, 64 << 20
LANES = 8
# Blocks that a thread may hold: one in work, one that is read, and what products make
# of them. There are at most as many threads as lanes; the cut
# must not depend on how many there are.
COPIES = 4
# Shares of the memory beside the fixed parts for blocks, for row vectors and for copies
# of rows: together less than all of it. A fit keeps to the limit with them
# (tests/data/test_memory_limit.py), and blocks to theirs (test_outofcore.py). (0.25 and
# 0.1 for blocks: 1.3 and 3 times as long with 24 MiB; 0.2 and 0.6 for row vectors: 1.1
# and 0.93 to 1.01; 0.05 and 0.25 for copies: 1.03 to 1.4, benchmarks/core/untuned.py.)
BLOCK_SHARE, STATE_SHARE, COPY_SHARE = 0.35, 0.5, 0.125
# Share of the memory beside the fixed parts that readers may take, if one fits in it:
# the other half is shared out as above (tests/data/test_parquet_memory.py).
READER_SHARE = 0.5
# Bytes a row, and bytes, that are in memory whatever the limit: labels, the answer and
# its support; threads.
ROW_BYTES, BASE_BYTES = 40, 8 << 20
# Bytes a row of the vectors that a task works with.
TASK_BYTES = 64
# n x n matrices that a solver holds beside the sums of the lanes.
MATRICES = 8


class StoredRows(Rows):
    """Rows of a `Source`.

    Parameters
    ----------
    source : Source
    n_jobs : int or None, threads of a sweep; None: as many as BLAS may use
    memory_limit : int or None
        Bytes that a fit may take, all in all. None: blocks of about 8 MiB, row vectors
        in memory.

    Attributes
    ----------
    copy_rows : float, how many rows may be copied into memory at a time
    names, first_index : see `Source`

    Raises
    ------
    ValueError if the limit is too small for rows of this number and width.
    """

    def __init__(
        self, source: Source, n_jobs: int | None, memory_limit: int | None
    ) -> None:
        self.shape, self.dtype, self.density = (
            source.shape,
            source.dtype,
            source.density,
        )
        self.options = {"n_jobs": n_jobs, "memory_limit": memory_limit}
        self._source = source
        self.names, self.first_index = source.names, source.first_index
        m, n = source.shape
        stored = max(1, int(n * source.density * _entry_bytes(source)))
        size = min(max(BLOCK_BYTES, 16 * n * n), LARGE_BLOCK_BYTES)
        self._room, readers = np.inf, source.readers  # room for row vectors
        if memory_limit is not None:
            spare, readers = _spare(source, stored, memory_limit)
            size = min(size, int(BLOCK_SHARE * spare) // (COPIES * LANES))
            # In float64, and with what a task holds for each of its rows.
            stored = int(n * source.density * max(8, _entry_bytes(source))) + TASK_BYTES
            self._room = STATE_SHARE * spare
            self.copy_rows = COPY_SHARE * spare / stored
        blocks = even_blocks(source.borders.tolist(), max(1, size // stored))
        self._blocks = Blocks(blocks, LANES, n_jobs, readers)
        if readers is not None:
            source.keep(readers)
        # A vector is freed whenever the collector runs, also while the lock is held:
        # what it gives back waits until the next one is made.
        self._lock, self._freed = threading.Lock(), deque[int]()

    def __reduce__(self) -> NoReturn:
        raise TypeError(
            "rows in files cannot be pickled or copied: open them again with open_rows"
        )

    def __repr__(self) -> str:
        m, n = self.shape
        return f"<rows of {self._source.path}: {m:,} x {n:,} of {self.dtype}>"

    def sweep(
        self, f: Callable[..., Any], state: RowState | None = None, *broadcast: Any
    ) -> Any:
        """Read the data once: see `Rows.sweep`."""

        def load(rows: slice) -> Any:
            """Read a block."""
            return self._source.read(rows.start, rows.stop)

        def task(rows: slice, block: Any) -> Any:
            """Work on a block."""
            return f(block, None if state is None else state.part(rows), *broadcast)

        self.sweeps += 1
        return self._blocks(task, load)

    def take(self, index: ArrayLike) -> linalg.Matrix:
        """Rows ``index``: see `Rows.take`. Counts as a sweep: it may read all pages."""
        self.sweeps += 1
        return self._source.take(row_index(index, self.shape[0]))

    def state(self, **vectors: Any) -> RowState:
        """Vectors beside the rows: see `Rows.state`."""
        m, made = self.shape[0], {}
        for name, value in vectors.items():
            given = row_vector(name, value, m, copy=False)
            made[name] = self._vector(given)
        return ScratchState(made, self._blocks)

    def _vector(self, given: NDArray[Any]) -> Any:
        """A copy: in memory where there is room for it, else in a file."""
        with self._lock:
            self._take_back()
            fits = given.nbytes <= self._room
            self._room -= given.nbytes if fits else 0
        if not fits:
            file = FileVector(given.shape, given.dtype)
            file[...] = given
            return file
        vector = copied(given)
        if np.isfinite(self._room):
            weakref.finalize(vector, self._freed.append, given.nbytes).atexit = False
        return vector

    def _take_back(self) -> None:
        """Room that has been given back."""
        while self._freed:
            self._room += self._freed.popleft()

    def reserve(self, size: int, what: str, owner: Any) -> None:
        """Leave memory for something else: see `Rows.reserve`."""
        limit = self.options["memory_limit"]
        if limit is None:
            return
        with self._lock:
            self._take_back()
            if size > self._room:
                least = limit + int((size - self._room) / STATE_SHARE) + 1
                raise ValueError(
                    f"{self._source.path}: expected a memory_limit of at least "
                    f"{least:,} bytes, for {what}. Got {limit:,} instead."
                )
            self._room -= size
        weakref.finalize(owner, self._freed.append, size).atexit = False

    def _origin(self, row: int) -> str:
        """What a sentence calls a row: of CSV by its line."""
        path = self._source.path
        if not is_delimited(path):
            return super()._origin(row)
        from widemargin.data.outofcore.delimited import place_of

        return place_of(path, row)

    def vector(self, kind: str) -> NDArray[Any] | None:
        """The "label" or "weight" of every row (m,), or None: see `Source.vector`."""
        if kind not in ("label", "weight"):
            raise ValueError(
                f"{self._source.path}: expected 'label' or 'weight' as the vector of "
                f"rows, found {kind!r}; open_rows(path, label={kind!r}) makes a column "
                "the labels"
            )
        return self._source.vector(kind)


def _entry_bytes(source: Source) -> int:
    """Bytes of a stored entry: with its index, where not all are stored."""
    return source.dtype.itemsize + (0 if source.density == 1.0 else 8)


def _spare(source: Source, stored: int, memory_limit: int) -> tuple[float, int | None]:
    """Bytes left for blocks, row vectors and copied rows, and how many may read.

    Refuses too few. As many read as the limit has room for, however many threads there
    are: the cut must not depend on that.
    """
    (m, n), path = source.shape, source.path
    order = n + 1
    fixed = (
        source.overhead
        + BASE_BYTES
        + ROW_BYTES * m
        + 8 * (LANES + MATRICES) * min(order, 4000) ** 2
    )
    least = fixed + source.reader_bytes + 64 * max(stored, 1 << 16)
    if memory_limit < least:
        raise ValueError(
            f"{path}: expected a memory_limit of at least {least:,} bytes for "
            f"{m:,} rows x {n:,} columns. Got {memory_limit:,} instead."
        )
    spare, readers = float(memory_limit - fixed), source.readers
    if readers is not None:
        room = READER_SHARE * spare / max(source.reader_bytes, 1)
        readers = max(1, min(readers, LANES, int(room)))
        spare -= readers * source.reader_bytes
    return spare, readers
