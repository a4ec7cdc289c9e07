"""Row vectors in files without a name, of which only slices are mapped into memory."""

import math
import mmap
import os
import tempfile
import weakref
from typing import Any

import numpy as np
from numpy.typing import NDArray

from widemargin.data.state import RowState
from widemargin.files import room_for

# Rows of a vector that are written or read at a time.
_ROWS = 1 << 20


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
        size = shape[0] * self._row
        with room_for(f"{size:,} bytes of row vectors"):
            self._file = tempfile.TemporaryFile()  # noqa: SIM115  (open while it is used)
            if size and hasattr(os, "posix_fallocate"):
                os.posix_fallocate(self._file.fileno(), 0, size)
            elif size:
                self._file.truncate(size)
        weakref.finalize(self, self._file.close)

    @property
    def nbytes(self) -> int:
        """Bytes of the file."""
        return self.shape[0] * self._row

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, index: slice | NDArray[np.intp]) -> NDArray[Any]:
        """A view for a slice of step 1, else a copy."""
        if not isinstance(index, slice):
            return self._whole()[index]
        start, stop, _ = index.indices(self.shape[0])
        shape = (max(0, stop - start), *self.shape[1:])
        if not (shape[0] and self._row):
            return np.empty(shape, self.dtype)
        first = start * self._row
        offset = first // mmap.ALLOCATIONGRANULARITY * mmap.ALLOCATIONGRANULARITY
        window = mmap.mmap(
            self._file.fileno(), stop * self._row - offset, offset=offset
        )
        view = np.frombuffer(window, np.uint8)[first - offset :]
        return view.view(self.dtype).reshape(shape)

    def __setitem__(self, index: Any, value: Any) -> None:
        if index is Ellipsis:
            value = np.broadcast_to(value, self.shape)
            for start in range(0, self.shape[0], _ROWS):
                part = slice(start, start + _ROWS)
                self[part][...] = value[part]
        elif isinstance(index, slice):
            self[index][...] = value
        else:
            self._whole()[index] = value

    def _whole(self) -> NDArray[Any]:
        return self[: self.shape[0]]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        return np.array(self._whole(), dtype)


class ScratchState(RowState):
    """Row vectors of which some are in files."""

    __slots__ = ()

    def __getattr__(self, name: str) -> NDArray[Any]:
        vector: Any = super().__getattr__(name)
        if isinstance(vector, FileVector):
            vector = np.asarray(vector)
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
