"""Rows in a .npy file, or in a folder of them."""

import functools
import math
import os
import re
import tokenize
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from widemargin.arrays import Index
from widemargin.data.outofcore.source import FileStamp, Source, no_data_folder, read_at
from widemargin.system.files import ending, open_bytes

# What the core computes with, or NumPy converts block by block; of at most 8 bytes.
_KINDS = "fiu"
# Labels may also be words and booleans.
_WORDS = "Ub"
# What NumPy raises where the head of a file is none, or is damaged.
_NO_HEAD = (
    ValueError,
    KeyError,
    EOFError,
    TypeError,
    IndexError,
    SyntaxError,
    RecursionError,
    tokenize.TokenError,
)
# Rows that are looked at together where some are wanted, or one column of all; bytes
# between wanted rows that are read sooner than skipped: a call takes about 2 us.
_RUN, _NEAR = 4096, 8192


@dataclass(frozen=True)
class _Shard:
    """One .npy file: its array, and where that begins."""

    stamp: FileStamp
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    offset: int

    def read(self, start: int, out: NDArray[Any]) -> None:
        """Fill ``out``, contiguous, with the rows from ``start`` on."""
        own = out if out.dtype == self.dtype else np.empty(out.shape, self.dtype)
        with self.stamp.opened() as file:
            read_at(file, self.stamp, self.offset + start * own[:1].nbytes, own)
        if own is not out:
            out[...] = own

    def take(self, index: Index, out: NDArray[Any]) -> None:
        """Fill ``out``, contiguous, with the rows ``index``, which increase.

        Where they lie near each other all rows between are read.
        """
        runs = np.array_split(np.arange(index.size), -(-index.size // _RUN))
        with self.stamp.opened() as file:
            for run in runs:
                start, stop = int(index[run[0]]), int(index[run[-1]]) + 1
                if (stop - start) * out[:1].nbytes <= _NEAR * run.size:
                    rows = np.empty((stop - start, *out.shape[1:]), out.dtype)
                    read_at(
                        file, self.stamp, self.offset + start * out[:1].nbytes, rows
                    )
                    out[run] = rows[index[run] - start]
                    continue
                for i in run:
                    place = self.offset + int(index[i]) * out[:1].nbytes
                    read_at(file, self.stamp, place, out[i : i + 1])


def read_head(path: str, file: IO[bytes]) -> tuple[tuple[int, ...], bool, Any]:
    """The shape of an array, whether in Fortran order, and its dtype.

    Of the head of a .npy file, which then stands where the numbers begin.
    """
    try:
        version = np.lib.format.read_magic(file)
        read = {
            (1, 0): np.lib.format.read_array_header_1_0,
            (2, 0): np.lib.format.read_array_header_2_0,
        }[version]
        shape, fortran, dtype = read(file)
    except _NO_HEAD:
        shape = (-1,)
    if min(shape, default=0) < 0:
        raise ValueError(f"{path}: expected a .npy array, found something else")
    return shape, fortran, dtype


def _open(path: str) -> _Shard:
    """The shard of a file; refuses what is no array, or was cut short."""
    with open_bytes(path) as file:
        stamp = FileStamp.of(path, file)
        shape, fortran, dtype = read_head(path, file)
        offset = file.tell()
    if len(shape) == 2 and dtype.kind == "b":
        dtype = np.dtype(np.uint8)  # whose bytes are the same
    kinds = _KINDS if len(shape) == 2 else _KINDS + _WORDS
    if dtype.kind in kinds and not dtype.isnative:
        raise ValueError(
            f"{path}: expected values in the byte order of this machine, found dtype "
            f"{dtype.str}; save X.astype(X.dtype.newbyteorder('='))"
        )
    if dtype.kind not in kinds:
        raise ValueError(f"{path}: expected real numbers, found dtype {dtype}")
    if dtype.kind == "f" and dtype.itemsize > 8:
        raise ValueError(
            f"{path}: expected numbers of at most 8 bytes, found dtype {dtype}; save "
            "X.astype(float)"
        )
    if fortran and len(shape) > 1 and min(shape) > 1:
        raise ValueError(
            f"{path}: expected rows one after the other (C order), found columns "
            "(Fortran order); save numpy.ascontiguousarray(X)"
        )
    expected = offset + math.prod(shape) * dtype.itemsize
    if stamp.size != expected:
        raise ValueError(
            f"{path}: expected {expected:,} bytes for an array {shape} of {dtype}, "
            f"found {stamp.size:,}; was it written to the end?"
        )
    return _Shard(stamp, shape, dtype, offset)


class _Stack:
    """Arrays of files on top of each other."""

    def __init__(self, paths: list[str], ndim: int) -> None:
        self.shards = [_open(path) for path in paths]
        first = self.shards[0]
        for path, shard in zip(paths, self.shards, strict=True):
            if len(shard.shape) != ndim or (ndim == 2 and shard.shape[1] == 0):
                what = "a matrix (rows x columns)" if ndim == 2 else "one number a row"
                raise ValueError(f"{path}: expected {what}, found shape {shard.shape}")
            # NumPy gives words the width of the longest one in their file.
            kinds = {shard.dtype.kind, first.dtype.kind}
            alike = shard.dtype == first.dtype or (ndim == 1 and len(kinds) == 1)
            if shard.shape[1:] != first.shape[1:] or not alike:
                raise ValueError(
                    f"{path}: expected {_facts(first)} as in {paths[0]}, "
                    f"found {_facts(shard)}"
                )
        self.dtype = functools.reduce(np.promote_types, (s.dtype for s in self.shards))
        self.row = first.shape[1:]
        lengths = [shard.shape[0] for shard in self.shards]
        self.borders = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)

    @property
    def rows(self) -> int:
        """Rows of all files."""
        return int(self.borders[-1])

    def read(self, start: int, stop: int) -> NDArray[Any]:
        """Rows start .. stop - 1 in an array of their own."""
        out = np.empty((stop - start, *self.row), self.dtype)
        first = int(np.searchsorted(self.borders, start, "right")) - 1
        for shard, begin in zip(
            self.shards[first:], self.borders[first:].tolist(), strict=False
        ):
            if begin >= stop:
                break
            low, high = max(start, begin), min(stop, begin + shard.shape[0])
            if low < high:
                shard.read(low - begin, out[low - start : high - start])
        return out

    def take(self, index: Index) -> NDArray[Any]:
        """Rows ``index``, which do not decrease."""
        out = np.empty((index.size, *self.row), self.dtype)
        ends = np.searchsorted(index, self.borders)
        for shard, first, low, high in zip(
            self.shards, self.borders, ends, ends[1:], strict=False
        ):
            if low < high:
                shard.take(index[low:high] - first, out[low:high])
        return out


def _facts(shard: _Shard) -> str:
    width = f"{shard.shape[1]} columns of " if len(shard.shape) > 1 else ""
    return f"{width}{shard.dtype}"


class ShardSource(Source):
    """Rows of a .npy file, or of the files ``X-*.npy`` of a folder, by their names.

    Parameters
    ----------
    path : str
    label, weight : str or None
        The number of a column of the matrix (from 0; negative: from the end), which is
        then no feature; or a .npy file with one number a row. None: the files
        ``y-*.npy`` and ``weight-*.npy`` of the folder, if there are.
    """

    def __init__(
        self, path: str, *, label: str | None = None, weight: str | None = None
    ) -> None:
        self.path = path
        folder = os.path.isdir(path)
        self._rows = _Stack(_shards(path) if folder else [path], 2)
        width = self._rows.row[0]
        self._columns: dict[str, int] = {}
        self._vectors: dict[str, _Stack] = {}
        for kind, name, prefix in (("label", label, "y"), ("weight", weight, "weight")):
            if name is not None and _is_integer(name):
                self._columns[kind] = _column(path, kind, int(name), width)
            elif name is not None:
                if ending(name) != ".npy" and not os.path.exists(name):
                    raise ValueError(
                        f"{path}: expected the number of a column (from 0) or a .npy "
                        f"file as the {kind}, found {name!r}"
                    )
                self._vectors[kind] = self._beside(name, [name])
            elif folder and (names := _names(path, prefix)):
                self._vectors[kind] = self._beside(path, names)
        if len(set(self._columns.values())) < len(self._columns):
            raise ValueError(
                f"{path}: expected labels and weights in two columns, found {label} "
                "for both"
            )
        chosen = np.delete(np.arange(width), list(self._columns.values()))
        if not chosen.size:
            raise ValueError(f"{path}: expected a column of features, found none")
        self._features = chosen if self._columns else None
        if self._columns:  # the others keep the numbers that they have in the files
            self.names = [str(j) for j in chosen.tolist()]
        self.shape = (self._rows.rows, int(chosen.size))
        if self.shape[0] == 0:
            raise ValueError(f"{path}: expected at least one row, found none")
        self.dtype, self.borders = self._rows.dtype, self._rows.borders

    def _beside(self, path: str, names: list[str]) -> _Stack:
        """One number a row of the same rows."""
        vector = _Stack(names, 1)
        if vector.rows != self._rows.rows:
            raise ValueError(
                f"{path}: expected {self._rows.rows:,} numbers, one a row, "
                f"found {vector.rows:,}"
            )
        return vector

    def read(self, start: int, stop: int) -> NDArray[Any]:
        """Rows: see `Source.read`."""
        rows = self._rows.read(start, stop)
        if self._features is None:
            return rows
        return np.ascontiguousarray(rows[:, self._features])

    def take(self, index: Index) -> NDArray[Any]:
        """Rows: see `Source.take`."""
        order = np.argsort(index, kind="stable")
        taken = self._rows.take(index[order])
        out = np.empty((index.size, self.shape[1]), self.dtype)
        out[order] = taken if self._features is None else taken[:, self._features]
        return out

    def vector(self, kind: str) -> NDArray[Any] | None:
        """Labels or weights: see `Source.vector`."""
        if kind in self._vectors:
            stack = self._vectors[kind]
            return stack.read(0, stack.rows)
        if kind not in self._columns:
            return None
        column, m = self._columns[kind], self.shape[0]
        out = np.empty(m, self.dtype)
        for start in range(0, m, _RUN):
            stop = min(start + _RUN, m)
            out[start:stop] = self._rows.read(start, stop)[:, column]
        return out


def _shards(path: str) -> list[str]:
    """The shards of a folder."""
    names = _names(path, "X")
    if not names:
        raise no_data_folder(path, os.listdir(path))
    return names


def _names(path: str, prefix: str) -> list[str]:
    return sorted(str(file) for file in Path(path).glob(f"{prefix}-*.npy"))


def _is_integer(name: str) -> bool:
    return re.fullmatch("-?[0-9]+", name) is not None


def _column(path: str, kind: str, number: int, width: int) -> int:
    """The number of a column from 0, checked."""
    if not -width <= number < width:
        raise ValueError(
            f"{path}: expected a {kind} column from {-width} to {width - 1}, "
            f"found {number}"
        )
    return number % width
