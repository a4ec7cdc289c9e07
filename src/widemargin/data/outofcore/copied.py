"""Rows after a feature map, computed once and written to a temporary file."""

import os
import tempfile
import weakref
from typing import Any

import numpy as np
from numpy.typing import NDArray

from widemargin.arrays import Index
from widemargin.data.outofcore.source import Source, pread
from widemargin.data.outofcore.stored import StoredRows
from widemargin.data.rows import Rows
from widemargin.data.state import RowState
from widemargin.system.files import room_for


def copied_rows(
    rows: Rows, n_jobs: int | None = None, memory_limit: int | None = None
) -> StoredRows:
    """The same rows in a temporary file, as float32.

    Parameters
    ----------
    rows : Rows (m, n)
        Whose blocks are dense arrays, of any storage with sweeps on this machine.
    n_jobs, memory_limit : int or None
        See `open_rows`.

    Returns
    -------
    StoredRows
        The file takes 4 m n bytes, in the folder that TMPDIR says. It has a name while
        it is written, and none after that: it is gone with the rows, however the
        process ends. After an error, or Ctrl-C, nothing is left.

    Raises
    ------
    OSError
        No room on the disk, which is known before the sweep; a folder that cannot be
        written.

    Notes
    -----
    One sweep.
    """
    return StoredRows(_Copied(rows), n_jobs, memory_limit)


class _Copied(Source):
    """The numbers of rows in a file without a name, row after row."""

    path = "rows in a temporary file"
    dtype = np.dtype(np.float32)

    def __init__(self, rows: Rows) -> None:
        self.shape, (m, n) = rows.shape, rows.shape
        self.borders = np.array([0, m], np.int64)
        self._row = n * self.dtype.itemsize
        with room_for(f"{m * self._row:,} bytes of rows"):
            self._file, name = tempfile.mkstemp(prefix="widemargin-")
        try:
            weakref.finalize(self, os.close, self._file)
            with room_for(f"{m * self._row:,} bytes of rows"):
                if hasattr(os, "posix_fallocate"):
                    os.posix_fallocate(self._file, 0, m * self._row)
                rows.sweep(_write, rows.state(row=np.arange(m)), name)
        finally:
            os.unlink(name)

    def read(self, start: int, stop: int) -> NDArray[Any]:
        """Rows: see `Source.read`."""
        out = np.empty((stop - start, self.shape[1]), self.dtype)
        pread(self._file, start * self._row, out, "rows")
        return out

    def take(self, index: Index) -> NDArray[Any]:
        """Rows: see `Source.take`."""
        out = np.empty((index.size, self.shape[1]), self.dtype)
        for i in np.argsort(index).tolist():
            pread(self._file, int(index[i]) * self._row, out[i], "rows")
        return out

    def vector(self, kind: str) -> None:
        """No labels, and no weights."""


def _write(block: Any, part: RowState, name: str) -> None:
    """Write a block of consecutive rows to its place in the file."""
    X = np.ascontiguousarray(block, np.float32)
    with open(name, "r+b") as file:
        file.seek(int(part.row[0]) * X[:1].nbytes)
        file.write(X.data)
