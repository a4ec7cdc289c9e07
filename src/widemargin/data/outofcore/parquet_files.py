"""Parquet files, read batch by batch: never a whole row group to hand out a part."""

import os
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from widemargin.data.outofcore.delimited import (
    check_numbers,
    doubt,
    parquet_of,
    place_of,
)
from widemargin.data.outofcore.source import FileStamp, no_data_folder
from widemargin.system import files

# What a column may hold of its compressed pages: without a limit it is all of them.
BUFFER_BYTES = 1 << 17
# Cursors, at work or waiting for the next read, where nothing else is said. Each holds
# an open file, a batch, and a page and the dictionary of every column.
KEPT_CURSORS = 16


def list_files(path: str) -> list[str]:
    """The file, or the files of the folder by name; hidden and _metadata left out.

    Raises
    ------
    What `files.open_regular` raises; ValueError for a folder with a folder inside, or
    without files.
    """
    if not os.path.isdir(path):
        files.open_regular(path).close()
        return [path]
    try:
        found = sorted(name for name in os.listdir(path) if name[0] not in "._")
    except PermissionError:
        raise PermissionError(f"no permission to read {path}") from None
    others = [name for name in found if files.ending(name) != ".parquet"]
    paths = [os.path.join(path, name) for name in found]
    inside = [os.path.isdir(os.path.join(path, name)) for name in others]
    if any(inside) and not all(inside):  # of anything, such as a home
        raise no_data_folder(path, others)
    for inner in paths:
        if os.path.isdir(inner):
            raise ValueError(
                f"{path}: expected Parquet files only, found the folder {inner}; "
                "files of partitions must be in one folder, with all their columns"
            )
        files.open_regular(inner).close()
    if not paths:
        raise ValueError(f"{path}: expected Parquet files, found none")
    return paths


class DataFile:
    """One Parquet file, or CSV read as one, as it was when it was opened.

    Attributes
    ----------
    path : str
    metadata : pyarrow.parquet.FileMetaData
    schema : pyarrow.Schema, the types that reading returns
    start : int, the number of its first row among those of all files
    """

    def __init__(self, path: str) -> None:
        self.path, self.start = path, 0
        self._stamp = FileStamp.of(path)
        self._converted = parquet_of(path) if files.is_delimited(path) else None
        with self._stream() as stream:
            try:
                opened = pq.ParquetFile(stream, pre_buffer=False)
                self.metadata, self.schema = opened.metadata, opened.schema_arrow
            except (pa.ArrowException, OSError, ValueError) as error:
                self.check()
                raise ValueError(
                    f"{path}: expected a Parquet file, "
                    f"found damage or another format ({_reason(error)})"
                ) from None
        lengths = self.group_lengths()
        if any(length < 0 for length in lengths):
            raise ValueError(
                f"{path}: expected a Parquet file, "
                f"found damage (a row group of {min(lengths)} rows)"
            )

    def check_numbers(self, names: Sequence[str]) -> None:
        """Refuse or tell words among the numbers of a CSV column."""
        if self._converted is not None:
            check_numbers(self.path, names)

    def place_of(self, row: int) -> str:
        """What a sentence calls a row of all: of CSV its line in an editor."""
        if self._converted is not None:
            return place_of(self.path, row - self.start)
        return f"row {row} of the data (counted from 0)"

    @property
    def doubt(self) -> str:
        """What to say where a CSV file seems to have no line of names."""
        return "" if self._converted is None else doubt(self.schema.names)

    def group_lengths(self) -> list[int]:
        """Number of rows of every row group."""
        return [
            self.metadata.row_group(g).num_rows
            for g in range(self.metadata.num_row_groups)
        ]

    def group_bytes(self, number: int) -> int:
        """Bytes of a row group, decompressed."""
        return int(self.metadata.row_group(number).total_byte_size)

    def check(self) -> None:
        """Raise OSError if another file than the opened one has its name."""
        try:
            is_same = FileStamp.of(self.path) == self._stamp
        except FileNotFoundError:
            is_same = False
        if not is_same:
            raise OSError(f"{self.path} was changed while it was read")

    def damage(self, reason: str) -> OSError:
        """The error for data that cannot be read."""
        self.check()  # a file that was replaced looks damaged
        return OSError(f"{self.path}: expected Parquet data, found damage ({reason})")

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Calls of pyarrow: what they raise becomes one sentence."""
        try:
            yield
        except MemoryError:
            raise
        except (pa.ArrowException, OSError, ValueError) as error:
            raise self.damage(_reason(error)) from None

    def batches(
        self, groups: Sequence[int], columns: Sequence[str], batch_rows: int
    ) -> tuple[Any, Iterator[Any]]:
        """An open stream, and record batches of columns of row groups from it."""
        self.check()
        stream = self._stream()
        try:
            with self.reading():
                opened = pq.ParquetFile(
                    stream,
                    metadata=self.metadata,
                    buffer_size=BUFFER_BYTES,
                    pre_buffer=False,
                    page_checksum_verification=True,
                )
                return stream, opened.iter_batches(
                    batch_rows,
                    row_groups=list(groups),
                    columns=list(columns),
                    use_threads=False,
                )
        except BaseException:
            stream.close()
            raise

    def _stream(self) -> Any:
        path = self.path if self._converted is None else self._converted.name
        return files.open_bytes(path, lambda path, mode: pa.OSFile(path, mode))


class Part(NamedTuple):
    """Some rows of a file: a record batch that begins at ``row`` of all rows."""

    file: DataFile
    row: int
    batch: Any

    def column(self, name: str) -> Any:
        """A column as a pyarrow array; ValueError where it misses a value."""
        array = self.batch.column(name)
        if array.null_count:
            missing = array.is_null().to_numpy(zero_copy_only=False)
            where = self.file.place_of(self.row + int(missing.argmax()))
            raise ValueError(
                f"{self.file.path}: expected a value in column '{name}', found none in "
                f"{where}; fill it, or leave out the row or the column"
            )
        return array


class Group(NamedTuple):
    """A row group: the rows start .. stop - 1 of all."""

    file: DataFile
    number: int
    start: int
    stop: int


class Cursor:
    """Reads row groups that follow each other in a file, from their first row on.

    Attributes
    ----------
    row : int, the row that is read next
    """

    def __init__(
        self, groups: Sequence[Group], columns: Sequence[str], batch_rows: int
    ) -> None:
        self.row = groups[0].start
        self._file = groups[0].file
        self._rest: Any = None
        self._stream, self._batches = self._file.batches(
            [group.number for group in groups], columns, batch_rows
        )

    def read(self, stop: int) -> Iterator[Part]:
        """The rows up to ``stop``, part by part."""
        while self.row < stop:
            batch = self._next() if self._rest is None else self._rest
            start, length = self.row, min(batch.num_rows, stop - self.row)
            self._rest = batch.slice(length) if length < batch.num_rows else None
            self.row += length
            yield Part(self._file, start, batch.slice(0, length))

    def skip(self, row: int) -> None:
        """Go on to ``row``: what is before it must be decoded."""
        for _ in self.read(row):
            pass

    def close(self) -> None:
        """Close the file and free the batches."""
        self._rest = None
        self._batches = iter(())
        self._stream.close()

    def __enter__(self) -> "Cursor":
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def _next(self) -> Any:
        with self._file.reading():
            batch = next(self._batches, None)
        if batch is None:
            raise self._file.damage("fewer rows than it says")
        return batch


class Cursors:
    """Cursors in the middle of row groups, kept for the reads that go on from there.

    Attributes
    ----------
    most : int, how many there may be, unless more are at work at a time
    """

    def __init__(self, opener: Callable[[Group], Cursor]) -> None:
        self._opener, self.most = opener, KEPT_CURSORS
        self._kept: OrderedDict[int, Cursor] = OrderedDict()  # by the next row
        self._busy: list[int] = []  # rows at which the reads under way will end
        self._changed = threading.Condition()

    @contextmanager
    def at(self, group: Group, start: int, stop: int) -> Iterator[Cursor]:
        """A cursor at ``start``, which the caller reads to ``stop``; both in a group.

        Waits for a read under way that ends at ``start``: it ends sooner than the rows
        before ``start`` are decoded anew.
        """
        with self._changed:
            self._busy.append(stop)
        cursor = None
        try:
            cursor = self._take(group, start)
            cursor.skip(start)
            yield cursor
            if cursor.row < group.stop:
                self._keep(cursor)
                cursor = None
        finally:
            if cursor is not None:
                cursor.close()
            with self._changed:
                self._busy.remove(stop)
                self._changed.notify_all()

    def close(self) -> None:
        """Close all that are kept."""
        with self._changed:
            while self._kept:
                self._kept.popitem()[1].close()

    def _take(self, group: Group, start: int) -> Cursor:
        if start > group.start:
            with self._changed:
                while start in self._busy and start not in self._kept:
                    self._changed.wait()
                cursor = self._kept.pop(start, None)
            if cursor is not None:
                return cursor
        self._make_room()  # before there is one more
        return self._opener(group)

    def _keep(self, cursor: Cursor) -> None:
        with self._changed:
            twin = self._kept.pop(cursor.row, None)
            self._kept[cursor.row] = cursor
        if twin is not None:
            twin.close()

    def _make_room(self) -> None:
        """Close the cursors that have waited longest: others read."""
        with self._changed:
            many = len(self._kept) + len(self._busy) - self.most
            oldest = [
                self._kept.popitem(last=False)[1]
                for _ in range(min(many, len(self._kept)))
            ]
        for cursor in oldest:
            cursor.close()


def _reason(error: BaseException) -> str:
    """The first sentence of what pyarrow says."""
    line = (str(error).splitlines() or [type(error).__name__])[0]
    return line.split(". ")[0].rstrip(".")
