"""Opening and replacing files, with the sentences for what goes wrong."""

import difflib
import os
import secrets
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import IO, Any

Path = str | os.PathLike[str]
# Opens a path with a mode; compressed formats have openers of their own.
Opener = Callable[[Any, Any], Any]


def open_bytes(path: Path, opener: Opener = open) -> IO[bytes]:
    """A file, open for reading; each failure in one sentence."""
    try:
        if stat.S_ISDIR(os.stat(path).st_mode):
            raise IsADirectoryError(f"expected a file, found a directory: {path}")
        file: IO[bytes] = opener(path, "rb")
        return file
    except FileNotFoundError:
        raise FileNotFoundError(f"no such file: {path}{_suggestion(path)}") from None
    except PermissionError:
        raise PermissionError(f"no permission to read {path}") from None


def open_regular(path: Path) -> IO[bytes]:
    """A regular file, open for reading; a pipe or a device would block or never end."""
    if os.path.exists(path) and not os.path.isdir(path):
        _check_regular(path, os.stat(path).st_mode)
    return open_bytes(path)


@contextmanager
def replacing(path: Path, opener: Opener = open) -> Iterator[IO[bytes]]:
    """A new file that takes the place of ``path`` at the end, or vanishes on an error.

    At every moment ``path`` is the complete old file or the complete new one.
    """
    target = os.path.realpath(path)  # a symbolic link stays, what it names is replaced
    folder = os.path.dirname(target)
    if not os.path.isdir(folder):
        raise FileNotFoundError(f"no such folder: {folder}")
    mode = os.stat(target).st_mode if os.path.exists(target) else None
    if mode is not None:
        _check_regular(path, mode)
    temporary = os.path.join(folder, f".{secrets.token_hex(8)}.tmp")
    try:
        with opener(temporary, "xb") as file:
            yield file
        _flush(temporary)
        if mode is not None:
            os.chmod(temporary, stat.S_IMODE(mode))
        os.replace(temporary, target)
    except BaseException as error:
        with suppress(OSError):
            os.unlink(temporary)
        if isinstance(error, PermissionError):
            raise PermissionError(f"no permission to write {path}") from None
        if isinstance(error, OSError):  # name the file that the user knows
            raise OSError(error.errno, error.strerror, os.fspath(path)) from None
        raise


def _flush(path: str) -> None:
    """Wait until a file is on the disk, whatever wrote it."""
    with open(path, "rb") as file:
        os.fsync(file.fileno())


def _check_regular(path: Path, mode: int) -> None:
    """Raise for a folder, pipe or device."""
    if not stat.S_ISREG(mode):
        raise ValueError(f"{path} is not a regular file.")


def _suggestion(path: Path) -> str:
    """The name nearest to a missing file's in its folder, as a question; or nothing."""
    folder, name = os.path.split(path)
    try:
        names = os.listdir(folder or os.curdir)
    except OSError:
        return ""
    near = difflib.get_close_matches(name, names, n=1)
    return f" (did you mean {os.path.join(folder, near[0])}?)" if near else ""
