"""Opening and replacing files, with the sentences for what goes wrong."""

import difflib
import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import BinaryIO

Path = str | os.PathLike[str]


def open_regular(path: Path) -> BinaryIO:
    """A regular file, open for reading; a pipe or a device would block or never end."""
    try:
        mode = os.stat(path).st_mode
    except FileNotFoundError:
        raise FileNotFoundError(f"no such file: {path}{_suggestion(path)}") from None
    _check_regular(path, mode)
    return open(path, "rb")


@contextmanager
def replacing(path: Path) -> Iterator[BinaryIO]:
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
        with open(temporary, "xb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        if mode is not None:
            os.chmod(temporary, stat.S_IMODE(mode))
        os.replace(temporary, target)
    except BaseException as error:
        with suppress(OSError):
            os.unlink(temporary)
        if isinstance(error, OSError):  # name the file that the user knows
            raise OSError(error.errno, error.strerror, os.fspath(path)) from None
        raise


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
