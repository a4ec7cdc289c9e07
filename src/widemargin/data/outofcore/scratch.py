"""Row vectors in files without a name, of which only slices are mapped into memory."""

import math
import mmap
import os
import tempfile
import threading
import weakref
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from widemargin.arrays import Index
from widemargin.data.state import RowState
from widemargin.system.files import room_for

# Bytes that a thread has mapped of a vector: mapping costs as much as reading 100 KB.
WINDOW_BYTES = 1 << 19


class FileVector:
    """An array (m, ...) in a temporary file: slices of it are views of the file.

    The file has no name: it is gone with the last view, however the process ends.

    Parameters
    ----------
    shape : tuple (m, ...)
    dtype : numpy dtype

    Raises
    ------
    OSError where the disk has no room for it: now, and not at some later write.
    """

    def __init__(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> None:
        self.shape, self.dtype = shape, dtype
        self._row = int(math.prod(shape[1:])) * dtype.itemsize
        self._windows: dict[int, tuple[int, mmap.mmap]] = {}
        size = shape[0] * self._row
        with room_for(f"{size:,} bytes of row vectors"):
            self._file = tempfile.TemporaryFile()  # noqa: SIM115  (open while it is used)
            weakref.finalize(self, self._file.close)
            if size and hasattr(os, "posix_fallocate"):
                os.posix_fallocate(self._file.fileno(), 0, size)
            elif size:
                self._file.truncate(size)

    @property
    def nbytes(self) -> int:
        """Bytes of the file."""
        return self.shape[0] * self._row

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, index: slice | Index) -> NDArray[Any]:
        """A view for a slice of step 1, else a copy."""
        if not isinstance(index, slice):
            return self.whole()[index]
        start, stop, _ = index.indices(self.shape[0])
        shape = (max(0, stop - start), *self.shape[1:])
        if not (shape[0] and self._row):
            return np.empty(shape, self.dtype)
        begin, end = start * self._row, stop * self._row
        offset, window = self._windows.get(threading.get_ident(), (0, b""))
        if not (offset <= begin and end <= offset + len(window)):
            offset, window = self._map(begin, end)
        view = np.frombuffer(window, np.uint8, end - begin, begin - offset)
        return view.view(self.dtype).reshape(shape)

    def _map(self, begin: int, end: int) -> tuple[int, mmap.mmap]:
        """The window of this thread: these bytes and some that follow."""
        offset = begin // mmap.ALLOCATIONGRANULARITY * mmap.ALLOCATIONGRANULARITY
        end = min(max(end, offset + WINDOW_BYTES), self.nbytes)
        window = mmap.mmap(self._file.fileno(), end - offset, offset=offset)
        self._windows[threading.get_ident()] = offset, window
        return offset, window

    def __setitem__(self, index: Any, value: Any) -> None:
        if index is Ellipsis:
            value = np.broadcast_to(value, self.shape)
            for part in self._parts():
                self[part][...] = value[part]
        elif isinstance(index, slice):
            self[index][...] = value
        else:
            self[: self.shape[0]][index] = value

    def whole(self) -> NDArray[Any]:
        """A copy in memory."""
        out = np.empty(self.shape, self.dtype)
        for part in self._parts():
            out[part] = self[part]
        return out

    def _parts(self) -> Iterator[slice]:
        """Slices of one window each."""
        rows = max(1, WINDOW_BYTES // max(1, self._row))
        for start in range(0, self.shape[0], rows):
            yield slice(start, start + rows)


class ScratchState(RowState):
    """Row vectors of which some are in files."""

    __slots__ = ()

    def __getattr__(self, name: str) -> NDArray[Any]:
        vector: Any = super().__getattr__(name)
        if isinstance(vector, FileVector):
            vector = vector.whole()
            vector.flags.writeable = False
        return vector  # type: ignore[no-any-return]

    def __setattr__(self, name: str, value: Any) -> None:
        vector: Any = super().__getattr__(name)
        vector[...] = value

    def join(self, other: RowState) -> "ScratchState":
        """The vectors of both: see `RowState.join`."""
        return ScratchState({**self._vectors, **other._vectors}, self._blocks)

    def prefixed(self, prefix: str) -> "ScratchState":
        """The same vectors under other names: see `RowState.prefixed`."""
        vectors = {prefix + name: vector for name, vector in self._vectors.items()}
        return ScratchState(vectors, self._blocks)
