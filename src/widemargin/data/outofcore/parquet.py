"""Rows of Parquet files, decoded block by block."""

from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import groupby
from os import PathLike, fspath
from typing import Any

import numpy as np
from numpy.typing import NDArray

from widemargin.arrays import Index
from widemargin.data.outofcore.source import Source
from widemargin.numerics import linalg
from widemargin.system import files

try:
    import pyarrow as pa
except ImportError:
    raise files.missing_extra("reading Parquet or CSV", "parquet") from None

from widemargin.data.outofcore.delimited import CATEGORIES
from widemargin.data.outofcore.parquet_columns import (
    Block,
    Column,
    CsrBlock,
    DenseBlock,
    codes_of,
    numbers,
)
from widemargin.data.outofcore.parquet_files import (
    BUFFER_BYTES,
    Cursor,
    Cursors,
    DataFile,
    Group,
    Part,
    list_files,
)
from widemargin.data.outofcore.parquet_schema import choose_columns, stored_columns

# Arrow decodes this many numbers at once, column by column: they should stay in cache
# until they are in the block, and be rows enough to pay for the interpreter.
BATCH_NUMBERS = 1 << 18
LEAST_BATCH_ROWS, LARGEST_BATCH_ROWS = 1024, 1 << 16
# What Arrow holds by itself, and what the system does for each byte that it counts:
# allocators round up, and keep some of what was given back. (On one machine the
# process held at most 23 MB more than Arrow counted, which was 11 to 216 MB:
# benchmarks/core/parquet_memory.py. A factor of 1 would do there; the rest is room for
# other allocators and threads.)
ARROW_BYTES, HELD_SHARE = 32 << 20, 1.4


class ParquetSource(Source):
    """Rows of a Parquet file, or of the files of a folder in the order of their names.

    Parameters
    ----------
    path : str or path-like
        A file, or a folder. Hidden files in it, and files whose name begins with an
        underscore, are left out; all others must be Parquet with the same columns.
    label, weight : str or None, default None
        The columns that `vector` returns; they are no features.
    columns : sequence of str or None, default None
        The columns of the features, in this order. None: all but label, weight and an
        index that pandas stored.

    Attributes
    ----------
    names : list of str, the n features: "age", "workclass=Private", ...

    Raises
    ------
    ValueError for what is no Parquet, for files of different columns, for columns that
    there are not, or that hold neither numbers nor categories nor words of up to 50
    kinds, or categories that are missing in a row; OSError (FileNotFoundError,
    PermissionError) for files that cannot be read. Missing numbers raise ValueError
    when they are read, with file and row.

    Notes
    -----
    A column of numbers is a feature. Blocks have the smallest dtype among uint8, int16,
    float32 and float64 that holds all columns exactly; 64-bit integers and decimals are
    rounded to float64. A dictionary column (a Categorical of pandas, also of numbers)
    is a feature for each of its categories, 1.0 where a row has it: the categories of
    all files together, sorted, also values that no row has. So is a column of plain
    words, of up to 50 kinds. Blocks are CSR where less
    than half of the entries are stored, otherwise dense. NaN is a number here.

    Opening reads what the files say about themselves, and categories and words once.
    Decoding costs one thread 3 to 4 ns a number from memory to blocks with 32 columns
    (snappy): 0.6 GB/s of int16, 1 GB/s of float32. A read that begins where another
    ended goes on from there; any other decodes its row group up to where it begins.
    Memory: the block, and what `reader_bytes` measures for each read and for each place
    to go on from: about 2 MiB of decoded rows, and of every column a page, stored and
    decompressed, and its dictionary (32 columns of pyarrow's float64: 90 MB).

    Examples
    --------
    >>> import os, tempfile
    >>> import pandas as pd
    >>> from widemargin.data.outofcore.parquet import ParquetSource
    >>> table = pd.DataFrame({"age": [39, 50], "sex": ["M", "F"], "rich": [True, True]})
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "people.parquet")
    ...     table.astype({"sex": "category"}).to_parquet(path)
    ...     source = ParquetSource(path, label="rich")
    ...     source.read(0, 2)
    array([[39., 0., 1.],
           [50., 1., 0.]])
    >>> source.names
    ['age', 'sex=F', 'sex=M']
    """

    def __init__(
        self,
        path: str | PathLike[str],
        *,
        label: str | None = None,
        weight: str | None = None,
        columns: Sequence[str] | None = None,
    ) -> None:
        self.path = fspath(path)
        self._files = [DataFile(name) for name in list_files(self.path)]
        self._chosen = choose_columns(self._files, label, weight, columns)
        self._groups = _groups(self._files)
        if not self._groups:
            raise ValueError(f"{self.path}: expected at least one row, found none")
        self._columns = self._describe_columns()
        self.names = [name for column in self._columns for name in column.names]
        self.shape = (self._groups[-1].stop, len(self.names))
        self.overhead, self.readers = ARROW_BYTES, len(self._groups)
        self.borders = np.array([0, *(g.stop for g in self._groups)], np.int64)
        share = len(self._columns) / len(self.names)
        self._block_type: type[Block] = CsrBlock if 2 * share < 1 else DenseBlock
        self.density = share if self._block_type is CsrBlock else 1.0
        self.dtype = self._block_type.dtype_of(self._columns)
        self._batch_rows = _batch_rows(len(self._columns))
        self._cursors = Cursors(self._open)

    @cached_property
    def reader_bytes(self) -> int:  # type: ignore[override]
        """Bytes of a read in the middle of the largest row group: measured."""
        group = max(
            self._groups, key=lambda group: group.file.group_bytes(group.number)
        )
        before = pa.total_allocated_bytes()
        with self._open(group) as cursor:
            parts = cursor.read(group.stop)
            part = next(parts)
            held = pa.total_allocated_bytes() - before
            del part, parts
        return int(HELD_SHARE * (held + BUFFER_BYTES * len(self._columns)))

    def keep(self, readers: int) -> None:
        """Hold at most this many places that are read, or wait for the next read."""
        self._cursors.most = readers

    def read(self, start: int, stop: int) -> linalg.Matrix:
        """Rows start .. stop - 1: see `Source.read`."""
        block = self._block(stop - start)
        first = int(np.searchsorted(self.borders, start, "right")) - 1
        last = int(np.searchsorted(self.borders, stop, "left")) if start < stop else 0
        for group in self._groups[first:last]:
            low, high = max(start, group.start), min(stop, group.stop)
            with self._cursors.at(group, low, high) as cursor:
                for part in cursor.read(high):
                    row = part.row - start
                    block.write(slice(row, row + part.batch.num_rows), part)
            group.file.check()
        return block.matrix()

    def take(self, index: Index) -> linalg.Matrix:
        """Rows ``index``: see `Source.take`. Each row group is decoded at most once."""
        self._cursors.close()  # their memory is for this read
        block = self._block(len(index))
        order = np.argsort(index, kind="stable")
        wanted = index[order]
        groups = np.unique(np.searchsorted(self.borders, wanted, "right") - 1)
        for group in (self._groups[g] for g in groups):
            end = int(wanted[np.searchsorted(wanted, group.stop) - 1]) + 1
            with self._open(group) as cursor:
                for part in cursor.read(end):
                    ends = part.row, part.row + part.batch.num_rows
                    low, high = np.searchsorted(wanted, ends)
                    if low < high:
                        picked = wanted[low:high] - part.row
                        block.write(order[low:high], part, picked)
            group.file.check()
        return block.matrix()

    def vector(self, kind: str) -> NDArray[Any] | None:
        """The "label" or "weight" of every row: see `Source.vector`.

        Weights are float64. Labels are numbers in the dtype of their column, or what
        the categories are: text as NumPy's text of fixed width.
        """
        name = {"label": self._chosen.label, "weight": self._chosen.weight}[kind]
        if name is None:
            return None
        dtype = self._chosen.types[name].dtype
        values: dict[Any, int] = {}
        out = np.empty(self.shape[0], np.int32 if dtype is None else dtype)
        for part in _scan(self._groups, [name]):
            rows = slice(part.row, part.row + part.batch.num_rows)
            out[rows] = (
                codes_of(part, name, values) if dtype is None else numbers(part, name)
            )
        self.check_unchanged()
        if dtype is None:
            return np.array(list(values))[out]
        return out.astype(np.float64, copy=False) if kind == "weight" else out

    def check_unchanged(self) -> None:
        """Raise OSError, naming the file, where one was changed since it was opened."""
        for file in self._files:
            file.check()

    def close(self) -> None:
        """Close what is kept open between reads; a later read opens it anew."""
        self._cursors.close()

    def _describe_columns(self) -> list[Column]:
        """The columns of features; categories are read once."""
        types = self._chosen.types
        most = {"text": CATEGORIES}
        columns = [
            Column(name, entry, types[name].dtype, most.get(types[name].kind, np.inf))
            for entry, name in enumerate(self._chosen.features)
        ]
        categorical = [column for column in columns if column.dtype is None]
        if categorical:
            for part in _scan(self._groups, [column.name for column in categorical]):
                for column in categorical:
                    column.add_categories(part)
        first = 0
        for column in columns:
            first = column.place(first)
        return columns

    def _open(self, group: Group) -> Cursor:
        return Cursor([group], self._chosen.features, self._batch_rows)

    def _block(self, k: int) -> Block:
        return self._block_type((k, self.shape[1]), self.dtype, self._columns)


def column_names(path: str) -> list[str]:
    """The columns of a Parquet file, or of the first of a folder: no index of pandas.

    Raises
    ------
    What `ParquetSource` raises for what is no Parquet.
    """
    return stored_columns(DataFile(list_files(path)[0]))


def _groups(files: Sequence[DataFile]) -> list[Group]:
    """The row groups of all files that have rows."""
    groups, start = [], 0
    for file in files:
        file.start = start
        for number, length in enumerate(file.group_lengths()):
            if length:
                groups.append(Group(file, number, start, start + length))
            start += length
    return groups


def _scan(groups: Sequence[Group], names: Sequence[str]) -> Iterator[Part]:
    """All rows of row groups, with few columns."""
    for _, of_file in groupby(groups, lambda group: id(group.file)):
        in_order = list(of_file)
        with Cursor(in_order, names, LARGEST_BATCH_ROWS) as cursor:
            yield from cursor.read(in_order[-1].stop)


def _batch_rows(n_columns: int) -> int:
    rows = max(BATCH_NUMBERS // n_columns, LEAST_BATCH_ROWS)
    return min(rows, LARGEST_BATCH_ROWS)
