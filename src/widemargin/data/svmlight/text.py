"""Files as slices of whole lines: mapped, or decompressed as a stream."""

import bz2
import gzip
import io
import lzma
import mmap
import os
import stat
import zlib
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import IO, Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from widemargin import _core
from widemargin.data.blocks import submit
from widemargin.system import files

_Item = TypeVar("_Item")
_Result = TypeVar("_Result")

# A core reads this in some milliseconds: Ctrl-C is noticed at once.
# Larger slices read hardly faster, they only stay in memory longer.
SLICE_BYTES = 1 << 20
_HEAD_BYTES = 1 << 12

_PAGES = max(2 << 20, mmap.PAGESIZE)  # what Linux may map at one touch
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_COMPRESSED: dict[str, Any] = {
    ".gz": gzip.open,
    ".bz2": bz2.open,
    ".xz": lzma.open,
}

# Pipes have no suffix: `-` is one of them, and `<(...)` of a shell another.
_NAMELESS = ("/dev/stdin", "/dev/fd/", "/proc/self/fd/")
_BEGINS = {b"\x1f\x8b": ".gz", b"BZh": ".bz2", b"\xfd7zXZ": ".xz"}


class Slice(NamedTuple):
    """Whole lines from byte `start` on; the first `skip` bytes are no text."""

    text: NDArray[np.uint8]
    start: int = 0
    skip: int = 0
    damage: str = ""  # what ended the stream here, if not its end


def opener(path: str) -> files.Opener:
    """`open` or its like, by the suffix."""
    found: files.Opener = _COMPRESSED.get(os.path.splitext(path)[1].lower(), open)
    return found


@contextmanager
def opened(path: str) -> Iterator[IO[bytes]]:
    """The text of a file, decompressed by its suffix; of a pipe by how it begins."""
    with files.open_bytes(path, opener(path)) as file:
        packed = None
        if path.startswith(_NAMELESS) and isinstance(file, io.BufferedReader):
            head = file.peek(max(map(len, _BEGINS)))
            packed = next((k for k in _BEGINS if head.startswith(k)), None)
        if packed is None:
            yield file
            return
        with _COMPRESSED[_BEGINS[packed]](file) as text:
            yield text


def can_map(path: str, file: IO[bytes]) -> bool:
    """Whether the file is text as it lies there; an empty one cannot be mapped."""
    status = os.fstat(file.fileno())
    is_packed = not isinstance(file, io.BufferedReader)
    plain = opener(path) is open and not is_packed and stat.S_ISREG(status.st_mode)
    return plain and status.st_size > 0


def cut(text: NDArray[np.uint8]) -> Iterator[Slice]:
    """The text in slices of about SLICE_BYTES."""
    start = 0
    while start < text.size:
        end = _core.svmlight_line_start(text, min(start + SLICE_BYTES, text.size))
        yield Slice(text[start:end], start, _mark(text) if start == 0 else 0)
        start = end


def drop_pages(memory: mmap.mmap, piece: Slice) -> None:
    """Let go of the pages of a slice, else they count as memory of this process."""
    if hasattr(mmap, "MADV_DONTNEED"):
        start = piece.start - piece.start % _PAGES
        end = piece.start + piece.text.size
        memory.madvise(mmap.MADV_DONTNEED, start, end - start)


def stream(file: IO[bytes]) -> Iterator[Slice]:
    """What can be read of the file once, in slices of about SLICE_BYTES."""
    start, rest, ended = 0, bytearray(), False
    while not ended:
        block = bytearray(max(SLICE_BYTES, 2 * len(rest)))
        block[: len(rest)] = rest
        filled, damage = _read_into(block, len(rest), file)
        ended = filled < len(block)
        whole = filled if ended and not damage else block.rfind(b"\n", 0, filled) + 1
        if whole or damage:
            text = np.frombuffer(block, np.uint8, whole)
            yield Slice(text, start, _mark(text) if start == 0 else 0, damage)
        rest = block[whole:filled]
        start += whole


def first_line(path: str) -> bytes:
    """The first line of a file, or the beginning of a long or damaged one."""
    block = bytearray(_HEAD_BYTES)
    with files.open_bytes(path, opener(path)) as file:
        filled, _ = _read_into(block, 0, file)
    return bytes(block[:filled]).split(b"\n")[0]


def _read_into(block: bytearray, filled: int, file: IO[bytes]) -> tuple[int, str]:
    """How far the block is filled, and the damage that ended that, if any."""
    try:
        while filled < len(block):
            data = file.read1(len(block) - filled)  # type: ignore[attr-defined]
            if not data:
                break
            block[filled : filled + len(data)] = data
            filled += len(data)
    except (OSError, EOFError, zlib.error, lzma.LZMAError) as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise  # the disk's trouble, not the data's
        ends = isinstance(error, EOFError)
        return filled, "the compressed file ends early" if ends else str(error)
    return filled, ""


def _mark(text: NDArray[np.uint8]) -> int:
    """The length of the byte-order mark."""
    return len(_BYTE_ORDER_MARK) * (text[:3].tobytes() == _BYTE_ORDER_MARK)


def in_order(
    function: Callable[[_Item], _Result], items: Iterable[_Item], n_jobs: int
) -> Iterator[tuple[_Item, _Result]]:
    """(item, function(item)) in the order of the items, n_jobs + 1 items at a time."""
    if n_jobs == 1:
        yield from ((item, function(item)) for item in items)
        return
    pending: deque[tuple[_Item, Future[_Result]]] = deque()
    with ThreadPoolExecutor(n_jobs) as pool:
        try:
            for item in items:
                pending.append((item, submit(pool, function, item)))
                if len(pending) > n_jobs:
                    yield _first(pending)
            while pending:
                yield _first(pending)
        finally:  # after an error or Ctrl-C: wait for no more than what runs now
            for _, future in pending:
                future.cancel()


def _first(
    pending: deque[tuple[_Item, Future[_Result]]],
) -> tuple[_Item, _Result]:
    item, future = pending.popleft()
    return item, future.result()
