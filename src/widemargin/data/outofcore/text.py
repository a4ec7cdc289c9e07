"""Rows of svmlight text: converted once to binary files, which are then read."""

import tempfile
import weakref
from typing import IO, Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from widemargin.arrays import Index, Index64
from widemargin.data.outofcore.source import Source, pread
from widemargin.data.svmlight.read import ReadOptions, hinting, stream_rows
from widemargin.data.svmlight.text import opened
from widemargin.system.files import room_for


class _Column:
    """Numbers in a temporary file without a name: appended, and read anywhere."""

    def __init__(self, dtype: Any) -> None:
        self.dtype = np.dtype(dtype)
        self._file: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115  (ours)
        weakref.finalize(self, self._file.close)
        self.size = 0

    def append(self, numbers: NDArray[Any]) -> None:
        """Write numbers behind the others."""
        with room_for("the rows of a text file"):
            self._file.write(np.ascontiguousarray(numbers, self.dtype).data)
        self.size += numbers.size

    def close(self) -> None:
        """Write what is still in the buffer."""
        with room_for("the rows of a text file"):
            self._file.flush()

    def read(self, start: int, stop: int) -> NDArray[Any]:
        """Numbers start .. stop - 1."""
        out = np.empty(stop - start, self.dtype)
        offset = start * self.dtype.itemsize
        pread(self._file.fileno(), offset, out, "converted rows")
        return out


class TextSource(Source):
    """Rows of svmlight text, plain or compressed; their targets are the labels.

    Parameters
    ----------
    path : str
    zero_based : bool or "auto", default "auto"
        As in `load_svmlight`.
    n_features : int or None, default None
        Columns, at least the largest index; None: as many.

    Notes
    -----
    Opening reads the text once, in slices, and writes 12 bytes an entry and 16 a row
    (20 where an index needs 64 bits) to temporary files, which are gone with the
    source, however the process ends; TMPDIR says where.
    """

    def __init__(
        self,
        path: str,
        *,
        zero_based: bool | Literal["auto"] = "auto",
        n_features: int | None = None,
        n_jobs: int = 1,
    ) -> None:
        self.path, self.dtype = path, np.dtype(np.float64)
        options = ReadOptions(path, n_features, zero_based, self.dtype, False, n_jobs)
        self._indices = _Column(np.int32)
        with hinting(path):
            if not self._convert(options):
                self._indices = _Column(np.int64)
                self._convert(options)
        m = self._targets.size
        self.shape = (m, n_features or self._highest + self.zero_based)
        if self.shape[1] <= 0:  # -1 where no index was met
            raise ValueError(
                f'{path}: expected an "index:value" in some row, found none'
            )
        self.first_index = 0 if self.zero_based else 1
        self.density = self._data.size / (m * self.shape[1])

    def _convert(self, options: ReadOptions) -> bool:
        """Write the rows to files; False where an index does not fit."""
        self._data, self._targets = _Column(np.float64), _Column(np.float64)
        self._indptr = _Column(np.int64)
        self._indptr.append(np.zeros(1, np.int64))
        borders, lowest, self._highest = [0], 1, -1
        with opened(options.path) as file:
            for done in stream_rows(file, options):
                rows = done.rows
                if rows.indices.dtype.itemsize > self._indices.dtype.itemsize:
                    return False
                self._indptr.append(rows.indptr[1:] + np.int64(self._data.size))
                self._data.append(rows.data)
                self._indices.append(rows.indices)
                self._targets.append(rows.targets)
                borders.append(self._targets.size)
                lowest = min(lowest, done.cursor.lowest)
                self._highest = max(self._highest, done.cursor.highest)
        for column in (self._data, self._targets, self._indices, self._indptr):
            column.close()
        self.borders = np.array(borders, np.int64)
        # "auto" took the indices as 1-based until it met a 0.
        self._shift = int(options.zero_based == "auto" and lowest == 0)
        self.zero_based = options.zero_based is True or bool(self._shift)
        return True

    def read(self, start: int, stop: int) -> sparse.csr_array:
        """Rows: see `Source.read`."""
        indptr = self._indptr.read(start, stop + 1)
        first, last = int(indptr[0]), int(indptr[-1])
        data, indices = self._data.read(first, last), self._indices.read(first, last)
        return self._matrix(data, indices, indptr - first)

    def take(self, index: Index) -> sparse.csr_array:
        """Rows: see `Source.take`."""
        order = np.argsort(index, kind="stable")
        ends = [self._indptr.read(i, i + 2) for i in index[order].tolist()]
        indptr = np.zeros(index.size + 1, np.int64)
        np.cumsum([last - first for first, last in ends], out=indptr[1:])
        data = np.empty(indptr[-1], self._data.dtype)
        indices = np.empty(indptr[-1], self._indices.dtype)
        for (first, last), start in zip(ends, indptr.tolist(), strict=False):
            stop = start + int(last - first)
            data[start:stop] = self._data.read(int(first), int(last))
            indices[start:stop] = self._indices.read(int(first), int(last))
        taken = self._matrix(data, indices, indptr)
        return sparse.csr_array(taken[np.argsort(order)])

    def _matrix(
        self, data: NDArray[Any], indices: NDArray[Any], indptr: Index64
    ) -> sparse.csr_array:
        """A CSR array of these arrays, set field by field: nothing is looked at."""
        if self._shift:
            indices += 1
        rows = sparse.csr_array((indptr.size - 1, self.shape[1]), dtype=data.dtype)
        rows.data, rows.indices = data, indices
        rows.indptr = indptr.astype(indices.dtype)
        rows.has_canonical_format = True
        return rows

    def vector(self, kind: str) -> NDArray[Any] | None:
        """The targets as labels: see `Source.vector`."""
        return self._targets.read(0, self.shape[0]) if kind == "label" else None
