"""Opening, checking and replacing files, with the sentences for what goes wrong."""

import difflib
import errno
import os
import secrets
import shutil
import stat
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import IO, Any

Path = str | os.PathLike[str]
# Opens a path with a mode; compressed formats have openers of their own.
Opener = Callable[[Any, Any], Any]

TEXT = (".svm", ".svmlight", ".libsvm", ".txt")  # endings of svmlight text
DELIMITED = (".csv", ".tsv")  # endings of tables in text
DATA = (*TEXT, *DELIMITED, ".npy", ".parquet")  # endings of all data
COMPRESSED = (".gz", ".bz2", ".xz")
# Names of open files: replacing one would take it away from who has it open.
_STREAMS = ("/dev/stdout", "/dev/stderr", "/dev/fd/", "/proc/self/fd/")


def ending(path: str) -> str:
    """The ending in lower case, without .gz and the like; "" for none."""
    name, last = os.path.splitext(path.lower())
    return os.path.splitext(name)[1] if last in COMPRESSED else last


def is_delimited(path: str) -> bool:
    """Whether a name stands for CSV, plain or compressed."""
    return ending(path) in DELIMITED


def open_bytes(path: Path, opener: Opener = open) -> IO[bytes]:
    """A file, open for reading; each failure in one sentence."""
    try:
        _refuse_directory(path, os.stat(path).st_mode)
        file: IO[bytes] = opener(path, "rb")
        return file
    except FileNotFoundError:
        if os.path.islink(path):
            named = os.fsdecode(os.readlink(path))
            raise FileNotFoundError(
                f"no such file: {named}, which the link {path} names"
            ) from None
        raise FileNotFoundError(f"no such file: {path}{_suggestion(path)}") from None
    except PermissionError:
        raise PermissionError(f"no permission to read {path}") from None


def open_regular(path: Path) -> IO[bytes]:
    """A regular file, open for reading; a pipe or a device would block or never end."""
    if not isinstance(path, str | bytes | os.PathLike):
        raise TypeError(f"expected the name of a file, found {type(path).__name__}")
    if os.path.exists(path):
        _check_regular(path, os.stat(path).st_mode)
    return open_bytes(path)


@contextmanager
def replacing(path: Path, opener: Opener = open) -> Iterator[IO[bytes]]:
    """A new file that takes the place of ``path`` at the end, or vanishes on an error.

    At every moment ``path`` is the complete old file or the complete new one.
    """
    target, mode = _target(path)
    with _beside(path, target) as temporary:
        with opener(temporary, "xb") as file:
            yield file
        _flush(temporary)
        if mode is not None:
            os.chmod(temporary, stat.S_IMODE(mode))
        os.replace(temporary, target)


@contextmanager
def creating(path: Path) -> Iterator[str]:
    """A new folder that gets the name ``path`` at the end, or vanishes on an error."""
    target = os.path.realpath(path)
    _check_new(path, target)
    with _beside(path, target) as temporary:
        os.mkdir(temporary)
        yield temporary
        for name in os.listdir(temporary):
            _flush(os.path.join(temporary, name))
        _check_new(path, target)  # a rename would take the place of an empty folder
        os.rename(temporary, target)


def check_outputs(outputs: Sequence[Path], inputs: Sequence[Path]) -> None:
    """Raise now what `replacing` the outputs would raise when the work is done.

    Also raises where an output is an input, or the same file as another output.
    """
    for number, path in enumerate(outputs):
        for kind, others in (("input", inputs), ("output", outputs[:number])):
            for other in others:
                if _is_same(path, other) or _is_part(path, other):
                    raise ValueError(f"{path}: would overwrite the {kind} {other}")
    for path in outputs:
        target, _ = _target(path)
        with _beside(path, target) as temporary:
            with open(temporary, "xb"):
                pass
            os.unlink(temporary)


@contextmanager
def room_for(what: str) -> Iterator[None]:
    """Where a temporary file cannot be written, say so in one sentence."""
    try:
        yield
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
            problem, remedy = "no room", "a folder with more room"
        elif error.errno in (errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOENT):
            problem, remedy = "no way to write", "another folder"
        else:
            raise
        raise OSError(
            f"{problem} for {what} in {tempfile.gettempdir()}; set TMPDIR to {remedy}"
        ) from None


def missing_extra(what: str, extra: str) -> ImportError:
    """The error where an optional package is not installed.

    The command works for what is installed from source, too: pip takes the installed
    package, and adds what the extra needs.
    """
    return ImportError(
        f"{what} needs the extra '{extra}': pip install \"widemargin[{extra}]\""
    )


def _target(path: Path) -> tuple[str, int | None]:
    """The file that ``path`` stands for, and its mode if it exists."""
    if not os.fspath(path):  # else it would stand for the current folder
        raise ValueError("expected the name of a file, found an empty one")
    if os.path.abspath(path).startswith(_STREAMS):
        raise ValueError(f"expected a file, found a pipe or device: {path}")
    target = os.path.realpath(path)  # a symbolic link stays, what it names is replaced
    _check_folder_of(target)
    mode = os.stat(target).st_mode if os.path.exists(target) else None
    if mode is not None:
        _check_regular(path, mode)
    return target, mode


def _check_new(path: Path, target: str) -> None:
    """Raise where no new folder can get this name."""
    _check_folder_of(target)
    if os.path.lexists(target):
        kind = "folder" if os.path.isdir(target) else "file"
        raise FileExistsError(
            f"expected a new name for a folder, found one of a {kind}: {path}"
        )


def _check_folder_of(target: str) -> None:
    """Raise where the folder of a file to be is missing."""
    folder = os.path.dirname(target)
    if not os.path.isdir(folder):
        raise FileNotFoundError(f"no such folder: {folder}")


@contextmanager
def _beside(path: Path, target: str) -> Iterator[str]:
    """A new name beside ``target``; an error removes what has it and names ``path``."""
    name = f".{secrets.token_hex(8)}.tmp"
    temporary = os.path.join(os.path.dirname(target), name)
    try:
        yield temporary
    except BaseException as error:
        with suppress(OSError):
            (shutil.rmtree if os.path.isdir(temporary) else os.unlink)(temporary)
        if isinstance(error, PermissionError):
            raise PermissionError(f"no permission to write {path}") from None
        if isinstance(error, OSError) and error.errno is not None:  # a name users know
            raise OSError(error.errno, error.strerror, os.fspath(path)) from None
        raise


def _is_same(path: Path, other: Path) -> bool:
    """Whether two names stand for one file, which need not exist yet."""
    if os.path.exists(path) and os.path.exists(other):
        return os.path.samefile(path, other)
    return os.path.realpath(path) == os.path.realpath(other)


def _is_part(path: Path, folder: Path) -> bool:
    """Whether a name is one of data in a folder: a shard or a Parquet file."""
    inside = os.path.dirname(os.path.realpath(path)) == os.path.realpath(folder)
    return inside and ending(os.fsdecode(path)) in (".npy", ".parquet")


def _flush(path: str) -> None:
    """Wait until a file is on the disk, whatever wrote it."""
    with open(path, "rb") as file:
        os.fsync(file.fileno())


def _check_regular(path: Path, mode: int) -> None:
    """Raise for a folder, pipe or device."""
    _refuse_directory(path, mode)
    if not stat.S_ISREG(mode):
        raise ValueError(f"expected a file, found a pipe or device: {path}")


def _refuse_directory(path: Path, mode: int) -> None:
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(f"expected a file, found a directory: {path}")


def _suggestion(path: Path) -> str:
    """The name nearest to a missing file's in its folder, as a question; or nothing."""
    folder, name = os.path.split(path)
    try:
        names = os.listdir(folder or os.curdir)
    except OSError:
        return ""
    near = difflib.get_close_matches(name, names, n=1)
    return f" (did you mean {os.path.join(folder, near[0])}?)" if near else ""
