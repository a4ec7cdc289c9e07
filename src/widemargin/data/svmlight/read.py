"""Reading svmlight text: slices of lines, counted and parsed by C++, become arrays."""

import codecs
import errno
import mmap
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import IO, Any, Literal, NamedTuple

import numpy as np
from numpy.typing import DTypeLike, NDArray
from scipy.sparse import csr_array

from widemargin import _core
from widemargin.arrays import Index64, Vector
from widemargin.data.svmlight import text as svmlight_text
from widemargin.data.svmlight.text import Slice, in_order

INT64_MAX = 2**63 - 1
_INT32_MAX = 2**31 - 1
_FOUND_BYTES = 24  # of what was found instead, in a sentence
_NO_QID = -(2**63)
# How files of other kinds begin.
UTF16 = "it is in UTF-16: save it as UTF-8, or iconv -f UTF-16 -t UTF-8 does it"
_OTHERS = {
    codecs.BOM_UTF16_LE: UTF16,
    codecs.BOM_UTF16_BE: UTF16,
    b"\x1f\x8b": "gzip has compressed it: let its name end in .gz",
    b"BZh": "bzip2 has compressed it: let its name end in .bz2",
    b"\xfd7zXZ": "xz has compressed it: let its name end in .xz",
    b"\x28\xb5\x2f\xfd": "zstd has compressed it: unpack it first",
    b"PK\x03\x04": "it is an archive (zip, npz, xlsx): unpack it, and save the "
    "arrays of an npz as .npy",
    b"\x93NUMPY": "it is an array: let its name end in .npy",
    b"PAR1": "it is Parquet: let its name end in .parquet",
    b"ARROW1": "it is Arrow (Feather): save it as Parquet",
    b"\x89HDF": "HDF5 is not read: save the array as .npy",
}


class _Cursor(NamedTuple):
    """Where a reader stopped: `ReadCursor` in cpp/svmlight.hpp."""

    position: int = 0
    token: int = 0
    previous: int = -2
    row: int = 0
    entry: int = 0
    lowest: int = INT64_MAX
    highest: int = -1


class _Counts(NamedTuple):
    """What is in a slice: `Counts` in cpp/svmlight.hpp."""

    rows: int
    entries: int
    lines: int


@dataclass(frozen=True)
class ReadOptions:
    """Options of one call of load_svmlight, checked."""

    path: str
    n_features: int | None
    zero_based: bool | Literal["auto"]
    dtype: np.dtype[Any]
    return_qid: bool | Literal["auto"]  # "auto": where all rows have one
    n_jobs: int

    @property
    def rules(self) -> tuple[int, int, int, bool]:
        """base, first, last and need_qid of `Rules` in cpp/svmlight.hpp."""
        base = 0 if self.zero_based is True else 1  # "auto": 1-based until a 0 is met
        first = 1 if self.zero_based is False else 0
        return base, first, self.limit - 1 + base, self.return_qid is True

    @property
    def limit(self) -> int:
        """How many columns there may be."""
        return INT64_MAX if self.n_features is None else self.n_features


@dataclass(frozen=True)
class _Rows:
    """The arrays of some rows, as C++ fills them."""

    data: NDArray[Any]
    indices: NDArray[Any]
    indptr: NDArray[Any]
    targets: Vector
    qid: Index64 | None

    def part(self, row: int, entry: int, counts: _Counts) -> "_Rows":
        """Views of counts.rows rows from `row` and `entry` on."""
        rows = slice(row, row + counts.rows)
        entries = slice(entry, entry + counts.entries)
        return _Rows(
            self.data[entries],
            self.indices[entries],
            self.indptr[row : rows.stop + 1],
            self.targets[rows],
            None if self.qid is None else self.qid[rows],
        )


class _Read(NamedTuple):
    """The rows of a slice, and where and why reading stopped."""

    rows: _Rows
    counts: _Counts
    fault: str
    cursor: _Cursor


class Contents(NamedTuple):
    """What is in a file; `zero_based` says how its columns are counted."""

    X: csr_array
    y: Vector
    qid: Index64 | None
    zero_based: bool


def load(options: ReadOptions) -> Contents:
    """The contents of the file; qid is None unless asked for."""
    with hinting(options.path):
        return _load(options)


@contextmanager
def hinting(path: str) -> Iterator[None]:
    """Add to what is wrong with a text what the file seems to be in its place."""
    try:
        yield
    except ValueError as error:
        if not (said := _hint(path)):
            raise
        raise ValueError(f"{error}; {said}") from None


def other_kind(path: str) -> str:
    """What a file seems to be by how it begins, and what to do; "" for unknown ones."""
    line = _first_line(path)
    return next((said for start, said in _OTHERS.items() if line.startswith(start)), "")


def _hint(path: str) -> str:
    """What a file seems to be that is no svmlight text."""
    said, line = other_kind(path), _first_line(path)
    if not said and b":" not in line and (b"," in line or b";" in line):
        said = "a table is read by open_rows, under a name that ends in .csv or .tsv"
    return said


def _first_line(path: str) -> bytes:
    """The first line; none of a pipe, which cannot be read again."""
    return svmlight_text.first_line(path) if os.path.isfile(path) else b""


def _load(options: ReadOptions) -> Contents:
    """Rows of a file, or one plain sentence that says what is wrong with it."""
    with svmlight_text.opened(options.path) as file:
        mapped = svmlight_text.can_map(options.path, file)
        rows, lowest, highest = (_load_mapped if mapped else _load_stream)(
            file, options
        )
    zero_based = options.zero_based is True or (
        options.zero_based == "auto" and lowest == 0
    )
    n_columns = max(0, highest + zero_based)
    if n_columns > options.limit:  # only a read that knows the base can name the entry
        return _load(replace(options, zero_based=True))
    if zero_based and options.zero_based == "auto":
        np.add(rows.indices, 1, out=rows.indices)  # they were taken as 1-based
    X = csr_array(
        (rows.data, rows.indices, rows.indptr),
        shape=(rows.targets.size, options.n_features or n_columns),
    )
    X.has_canonical_format = True
    qid = rows.qid
    if qid is not None and options.return_qid == "auto" and np.any(qid == _NO_QID):
        if np.any(qid != _NO_QID):  # only a read that needs all can name the line
            return _load(replace(options, return_qid=True))
        qid = None
    return Contents(X, rows.targets, qid, bool(zero_based))


def _load_mapped(file: IO[bytes], options: ReadOptions) -> tuple[_Rows, int, int]:
    """The rows of a plain file, and its lowest and highest index."""
    memory = _mapped(file.fileno(), 0, access=mmap.ACCESS_READ)
    slices: list[Slice] = []
    counts: list[_Counts] = []
    cuts = svmlight_text.cut(np.frombuffer(memory, np.uint8))
    for piece, found in in_order(_count, cuts, options.n_jobs):
        svmlight_text.drop_pages(memory, piece)
        slices.append(piece)
        counts.append(found)
    if max(options.n_features or 0, *np.sum(counts, axis=0)[:2]) <= _INT32_MAX:
        try:
            return _fill(memory, slices, counts, np.int32, options)
        except _Int64NeededError:
            pass
    return _fill(memory, slices, counts, np.int64, options)


def _mapped(*arguments: Any, **options: Any) -> mmap.mmap:
    """A map; MemoryError where there is no room for it."""
    try:
        return mmap.mmap(*arguments, **options)
    except OSError as error:
        if error.errno != errno.ENOMEM:
            raise
        raise MemoryError("no room to map the file") from error


class _Int64NeededError(Exception):
    """An index is beyond int32."""


def _count(piece: Slice) -> _Counts:
    return _Counts(*_core.count_svmlight(piece.text[piece.skip :]))


def _fill(
    memory: mmap.mmap,
    slices: list[Slice],
    counts: list[_Counts],
    index_dtype: type,
    options: ReadOptions,
) -> tuple[_Rows, int, int]:
    """Every slice read into its place of the final arrays."""
    starts = [_Counts(0, 0, 0), *map(_Counts._make, np.cumsum(counts, axis=0).tolist())]
    rows = _allocate(starts[-1], index_dtype, options, np.empty)

    def read(k: int) -> _Read:
        place = rows.part(starts[k].rows, starts[k].entries, counts[k])
        return _read(slices[k], counts[k], place, starts[k].entries, options)

    lowest, highest = INT64_MAX, -1
    for k, done in in_order(read, range(len(slices)), options.n_jobs):
        _check_read(done, slices[k], starts[k].lines, options)
        svmlight_text.drop_pages(memory, slices[k])
        lowest = min(lowest, done.cursor.lowest)
        highest = max(highest, done.cursor.highest)
    if rows.targets.size == 0:
        raise _no_row(slices[-1].text, starts[-2].lines, options)
    return rows, lowest, highest


def _allocate(
    counts: _Counts,
    index_dtype: type,
    options: ReadOptions,
    empty: Callable[[int, Any], NDArray[Any]],
) -> _Rows:
    rows = _Rows(
        empty(counts.entries, options.dtype),
        empty(counts.entries, index_dtype),
        empty(counts.rows + 1, index_dtype),
        empty(counts.rows, np.float64),
        empty(counts.rows, np.int64) if options.return_qid else None,
    )
    rows.indptr[0] = 0
    if rows.qid is not None and options.return_qid == "auto":
        rows.qid[:] = _NO_QID  # what rows without one keep
    return rows


def _read(
    piece: Slice, counts: _Counts, rows: _Rows, first_entry: int, options: ReadOptions
) -> _Read:
    """Read one slice into `rows`; first_entry entries come before it in `indptr`."""
    state = np.array(_Cursor(position=piece.skip), np.int64)
    fault = ""
    while not fault and state[0] < piece.text.size:
        fault = _core.read_svmlight(
            piece.text,
            svmlight_text.SLICE_BYTES,
            *options.rules,
            rows.data,
            rows.indices,
            rows.indptr,
            rows.targets,
            rows.qid,
            first_entry,
            state,
        )
    cursor = _Cursor(*state.tolist())
    if not fault and (cursor.row, cursor.entry) != (counts.rows, counts.entries):
        fault = "changed"
    return _Read(rows, counts, fault, cursor)


def _load_stream(file: IO[bytes], options: ReadOptions) -> tuple[_Rows, int, int]:
    """The rows of a stream that is read once, and its lowest and highest index."""
    reads = list(stream_rows(file, options))
    lowest = min(done.cursor.lowest for done in reads)
    highest = max(done.cursor.highest for done in reads)
    return _join(reads, options), lowest, highest


def stream_rows(file: IO[bytes], options: ReadOptions) -> Iterator[_Read]:
    """The rows of a stream, slice by slice, with int32 indices while these suffice."""

    def read(piece: Slice) -> _Read:
        """Read a slice."""
        counts = _count(piece)
        for index_dtype in (np.int32, np.int64):
            rows = _allocate(counts, index_dtype, options, _paged(counts))
            done = _read(piece, counts, rows, 0, options)
            if done.fault != "wide index":
                break
        return done

    piece, lines, last, n_rows = Slice(np.empty(0, np.uint8)), 0, 0, 0
    # Decompressing takes longer than reading: more threads would only hold memory.
    for piece, done in in_order(
        read, svmlight_text.stream(file), min(options.n_jobs, 2)
    ):
        _check_read(done, piece, lines, options)
        last, n_rows = lines, n_rows + done.counts.rows
        lines += done.counts.lines
        yield done
    if not n_rows:
        raise _no_row(piece.text, last, options)


def _paged(counts: _Counts) -> Callable[[int, Any], NDArray[Any]]:
    """`empty` in memory that the system has back as soon as the arrays are freed."""
    memory = _mapped(-1, 16 * counts.entries + 24 * counts.rows + 64)  # at most
    offset = 0

    def empty(size: int, dtype: DTypeLike) -> NDArray[Any]:
        nonlocal offset
        array = np.frombuffer(memory, dtype, size, offset)
        offset += -(-array.nbytes // 8) * 8
        return array

    return empty


def _join(reads: list[_Read], options: ReadOptions) -> _Rows:
    """All rows in one; empties `reads`, so that they are never in memory twice."""
    total = _Counts._make(np.sum([done.counts for done in reads], axis=0).tolist())
    wide = max(options.n_features or 0, *total[:2]) > _INT32_MAX
    wide |= any(done.rows.indices.dtype == np.int64 for done in reads)
    rows = _allocate(total, np.int64 if wide else np.int32, options, np.empty)
    row = entry = 0
    for _ in range(len(reads)):
        done = reads.pop(0)
        place = rows.part(row, entry, done.counts)
        place.data[:] = done.rows.data
        place.indices[:] = done.rows.indices
        place.indptr[1:] = done.rows.indptr[1:]
        place.indptr[1:] += entry
        place.targets[:] = done.rows.targets
        if place.qid is not None and done.rows.qid is not None:
            place.qid[:] = done.rows.qid
        row += done.counts.rows
        entry += done.counts.entries
    return rows


# ---------------------------------------------------------------------------- faults

# What was expected, by the fault that C++ names. `before` is the token up to the fault.
_EXPECTED = {
    "target": "a number as the target",
    "target range": "a target that fits a float64",
    "labels": "one target (multi-label files are not supported)",
    "no target": 'a target before the first "index:value"',
    "index": '"index:value"',
    "index negative": "an index that is not negative",
    "index zero": "an index of at least 1 because zero_based is False",
    "index limit": "an index of at most {last}{why}",
    "index order": "an index greater than {previous}",
    "colon": '":" after {before}',
    "value": "a number after {before}",
    "value range": "a number that fits a {dtype} after {before}",
    "qid": 'an integer after "qid:"',
    "qid place": '"qid:" only after the target',
    "no qid": '"qid:" after the target because return_qid is True',
    "return": "a line feed after the carriage return",
}


def _check_read(done: _Read, piece: Slice, lines: int, options: ReadOptions) -> None:
    """Raise what stopped the reading of a slice that has `lines` lines before it."""
    cursor, text = done.cursor, piece.text
    if done.fault == "wide index":
        raise _Int64NeededError
    if done.fault == "changed":
        raise OSError(f"{options.path} was changed while it was read")
    if done.fault:
        expected = _EXPECTED[done.fault].format(
            before=_quote(text[cursor.token : cursor.position].tobytes()),
            previous=cursor.previous,
            last=options.rules[2],
            why=f" because n_features is {options.n_features}"
            if options.n_features
            else "",
            dtype=options.dtype,
        )
        found = _found(
            text[cursor.position :][: 2 * _FOUND_BYTES].tobytes(), done.fault
        )
        where = _where(options.path, text, cursor.position, lines)
        raise ValueError(f"{where}: expected {expected}, found {found}")
    if piece.damage:
        where = _where(options.path, text, text.size, lines)
        raise ValueError(
            f"{where}: expected more {options.path.rsplit('.')[-1]} data, "
            f"found damage ({piece.damage})"
        )


def _no_row(text: NDArray[np.uint8], lines: int, options: ReadOptions) -> ValueError:
    where = _where(options.path, text, text.size, lines)
    return ValueError(f"{where}: expected at least one row, found the end of the file")


def _where(path: str, text: NDArray[np.uint8], position: int, lines: int) -> str:
    before = text[:position].tobytes()
    line = lines + before.count(b"\n") + 1
    column = position - before.rfind(b"\n")
    return f"{path}, line {line}, column {column}"


def _found(text: bytes, fault: str) -> str:
    """What the text starts with, in words: a token, or what stands in its place."""
    if not text or text[0] in b"\n#" or text.startswith(b"\r\n") or text == b"\r":
        return "the end of the line"
    if text[0] in b" \t":
        return "a blank"
    separators = b" \t\n#:" if fault.startswith("index ") else b" \t\n#"
    length = next((i for i, byte in enumerate(text) if byte in separators), len(text))
    return _quote(text[:length].removesuffix(b"\r"))


def _quote(token: bytes) -> str:
    r"""The token in double quotes, cut to _FOUND_BYTES, odd bytes as \xNN."""
    shown = "".join(
        f"\\x{byte:02x}"
        if not 32 <= byte < 127
        else "\\" * (byte in b'"\\') + chr(byte)
        for byte in token[:_FOUND_BYTES]
    )
    return f'"{shown}{"..." if len(token) > _FOUND_BYTES else ""}"'
