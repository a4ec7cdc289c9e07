"""What a file format writes to be read as rows: ranges of rows, in any order."""

import os
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from widemargin.arrays import Index, Index64
from widemargin.numerics import linalg


def no_data_folder(path: str, names: Iterable[str]) -> ValueError:
    """What to say of a folder that has these names in it, but no rows."""
    shown = sorted(names, key=lambda name: (name.startswith("."), name))[:3]
    found = ", ".join(shown) or "nothing"
    return ValueError(
        f"{path}: expected a folder of data, which has files X-*.npy (and y-*.npy) or "
        f"files *.parquet alone, found {found}"
    )


class Source(ABC):
    """Rows in files. Every method may run in several threads at once.

    Attributes
    ----------
    path : str, as the user gave it
    shape : tuple (m, n)
    dtype : numpy dtype of the numbers that `read` returns
    density : float, share of the entries that `read` stores
    overhead : int, bytes that reading takes beside the blocks
    reader_bytes : int, and that each place takes that is read at a time
    readers : int, places that are worth reading at a time; None: any number
    borders : int64 ndarray, rows at which reading begins best: 0, ..., m, increasing
    names : list of str, names of the n features, or None
    first_index : int, what the files call the first column without a name
    """

    path: str
    shape: tuple[int, int]
    dtype: np.dtype[Any]
    density: float = 1.0
    overhead: int = 0
    reader_bytes: int = 0
    readers: int | None = None
    borders: Index64
    names: list[str] | None = None
    first_index: int = 0

    @abstractmethod
    def read(self, start: int, stop: int) -> linalg.Matrix:
        """Rows start .. stop - 1, in memory of their own: (stop - start, n).

        Dense (in C order) or CSR, whatever part is read. Raises OSError where a file is
        damaged or not what it was when it was opened.
        """

    @abstractmethod
    def take(self, index: Index) -> linalg.Matrix:
        """Rows ``index``, in any order, also repeated: (k, n)."""

    def keep(self, readers: int) -> None:  # noqa: B027  (most keep nothing)
        """Hold what this many places of reading need, and no more."""

    @abstractmethod
    def vector(self, kind: str) -> NDArray[Any] | None:
        """The "label" or "weight" of every row, (m,); None where there is none."""


@dataclass(frozen=True)
class FileStamp:
    """A file as it was when it was opened: another one in its place is noticed."""

    path: str
    size: int
    modified: int
    number: int

    @classmethod
    def of(cls, path: str, file: IO[bytes] | None = None) -> "FileStamp":
        """The stamp of an open file, or of what has the name now."""
        found = os.stat(path if file is None else file.fileno())
        return cls(path, found.st_size, found.st_mtime_ns, found.st_ino)

    @contextmanager
    def opened(self) -> Iterator[IO[bytes]]:
        """The file, open for reading; raises OSError where it is not the same."""
        try:
            file = open(self.path, "rb", buffering=0)  # noqa: SIM115  (closed below)
        except OSError as error:
            raise type(error)(
                f"{self.path} was there, but cannot be read any more"
            ) from None
        with file:
            self.check(file)
            yield file
            self.check(file)

    def check(self, file: IO[bytes]) -> None:
        """Raise OSError where the open file is not the same."""
        if FileStamp.of(self.path, file) != self:
            raise OSError(f"{self.path} was changed while it was read")


def read_at(file: IO[bytes], stamp: FileStamp, offset: int, out: NDArray[Any]) -> None:
    """Fill a contiguous array with the bytes of an open file from ``offset`` on.

    Not by a memory map: a file that is cut short meanwhile would end the process, and
    the limit of the address space would count it.
    """
    view = out.reshape(-1).view(np.uint8).data
    file.seek(offset)
    done = 0
    while done < len(view):
        got = file.readinto(view[done:])  # type: ignore[attr-defined]
        if not got:
            raise OSError(f"{stamp.path} was changed while it was read")
        done += got


def pread(descriptor: int, offset: int, out: NDArray[Any], what: str) -> None:
    """Fill a contiguous array with the bytes of a file of ours from ``offset`` on."""
    view = out.reshape(-1).view(np.uint8).data
    while len(view):
        got = os.preadv(descriptor, [view], offset)
        if not got:
            raise OSError(f"a temporary file of {what} has been cut short")
        view, offset = view[got:], offset + got
