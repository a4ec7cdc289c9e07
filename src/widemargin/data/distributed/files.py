"""Arrays in files as partitions that workers read for themselves."""

import os
from typing import Any

import numpy as np
from numpy.typing import NDArray

# Bytes of a partition: larger files are read in parts. Not tuned.
PART_BYTES = 128 << 20

# A file that the workers read: its name, rows and what a row takes.
_Part = tuple[str, int, int]


class Partitions(list[Any]):
    """Delayed partitions of a matrix in files, and of the vectors beside it.

    Attributes
    ----------
    shape, dtype : of the whole matrix
    sizes : list of int, the rows of each partition
    client : distributed.Client or None, that a fit is to use
    """

    def __init__(
        self, parts: list[_Part], shape: tuple[int, int], dtype: Any, client: Any
    ) -> None:
        super().__init__(_delayed(parts))
        self.sizes = [stop - start for _, start, stop in parts]
        self.shape, self.dtype, self.client = shape, dtype, client
        self.vectors: dict[str, list[Any]] = {}

    def vector(self, kind: str) -> list[Any] | None:
        """The "label" or "weight" of every row, delayed, or None."""
        return self.vectors.get(kind)


def open_partitions(
    path: str | os.PathLike[str],
    label: str | None,
    weight: str | None,
    client: Any,
) -> Partitions:
    """The partitions of a .npy file, of a folder of X-*.npy, or of a pattern.

    Paths may begin with a protocol of fsspec, as ``s3://``. Only the heads of the files
    are read here.
    """
    path = os.fspath(path)
    files = _files(path)
    heads = [_head(file) for file in files]
    (_, n), dtype = heads[0][0], heads[0][1]
    for file, (shape, _) in zip(files, heads, strict=True):
        if len(shape) != 2 or shape[1] != n:
            raise ValueError(f"{file}: expected {n} columns as in {files[0]}")
    m = sum(shape[0] for shape, _ in heads)
    parts = _cut(files, [shape[0] for shape, _ in heads], n * dtype.itemsize)
    found = Partitions(parts, (m, n), dtype, client)
    for kind, given, name in (("label", label, "y-"), ("weight", weight, "weight-")):
        beside = _beside(path, files, given, name)
        if beside is not None:
            found.vectors[kind] = _vector(beside, files, heads, parts)
    return found


def _files(path: str) -> list[str]:
    """The files of a path: one, those of a folder, or those of a pattern."""
    from fsspec.core import url_to_fs

    system, place = url_to_fs(path)
    if system.isdir(place):
        place = f"{place.rstrip('/')}/X-*.npy"
    found = sorted(system.glob(place)) if "*" in place else [place]
    if not found:
        raise ValueError(f"{path}: expected files X-*.npy, found none")
    for file in found:
        if not file.endswith(".npy"):
            raise ValueError(
                f"{file}: on a cluster expected .npy files; for Parquet use "
                "dask.dataframe.read_parquet"
            )
    return [system.unstrip_protocol(file) for file in found]


def _beside(
    path: str, files: list[str], given: str | None, name: str
) -> list[str] | None:
    """The files of a vector: as given, or those of the shards."""
    from fsspec.core import url_to_fs

    if given is not None:
        return _files(given)
    own = [_renamed(file, name) for file in files]
    system, _ = url_to_fs(path)
    return own if all(file and system.exists(file) for file in own) else None


def _renamed(file: str, name: str) -> str:
    """The file of a vector beside X-*.npy."""
    head, _, last = file.rpartition("/")
    return f"{head}/{name}{last.removeprefix('X-')}" if last.startswith("X-") else ""


def _vector(
    beside: list[str], files: list[str], heads: Any, parts: list[_Part]
) -> list[Any]:
    """The partitions of a vector, cut as those of the matrix."""
    if len(beside) != len(files):
        raise ValueError(
            f"{beside[0]}: expected {len(files)} file(s) as there are of the matrix, "
            f"found {len(beside)}"
        )
    for file, (shape, _) in zip(beside, heads, strict=True):
        found = _head(file)[0]
        if found != shape[:1]:
            raise ValueError(f"{file}: expected {shape[0]} entries, found {found}")
    own = dict(zip(files, beside, strict=True))
    return _delayed([(own[file], start, stop) for file, start, stop in parts])


def _cut(files: list[str], rows: list[int], row_bytes: int) -> list[_Part]:
    """Parts of a file each, or several where it is large and lies here."""
    parts = []
    for file, m in zip(files, rows, strict=True):
        is_local = file.startswith("file://")
        k = max(1, -(-m * row_bytes // PART_BYTES)) if is_local else 1
        ends = [m * i // k for i in range(k + 1)]
        parts += [(file, a, b) for a, b in zip(ends, ends[1:], strict=False)]
    return parts


def _head(file: str) -> tuple[tuple[int, ...], np.dtype[Any]]:
    """Shape and dtype of an array, from the head of its file."""
    import fsspec

    with fsspec.open(file, "rb") as stream:
        try:
            version = np.lib.format.read_magic(stream)
            read = (
                np.lib.format.read_array_header_1_0
                if version == (1, 0)
                else np.lib.format.read_array_header_2_0
            )
            shape, _, dtype = read(stream)
        except ValueError as error:
            raise ValueError(f"{file}: expected a .npy file ({error})") from None
    return shape, dtype


def _delayed(parts: list[_Part]) -> list[Any]:
    from dask.delayed import delayed

    read = delayed(_read, pure=False)
    return [read(*part) for part in parts]


def _read(file: str, start: int, stop: int) -> NDArray[Any]:
    """Rows of an array in a file; a task."""
    import fsspec

    if file.startswith("file://"):
        whole = np.load(file.removeprefix("file://"), mmap_mode="r")
        return np.array(whole[start:stop])
    with fsspec.open(file, "rb") as stream:
        found: NDArray[Any] = np.load(stream)
    return found[start:stop]
