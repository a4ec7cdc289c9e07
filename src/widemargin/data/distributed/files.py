"""Files as partitions that workers read for themselves: arrays, Parquet, text."""

import os
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from widemargin.data.distributed.formats import (
    parquet_parts,
    read_parquet,
    read_parquet_column,
    read_text,
)
from widemargin.data.outofcore.shards import read_head
from widemargin.parameters import Checker, is_integer

# Bytes of a partition: larger files are read in parts, of the size that Dask cuts
# arrays into ("array.chunk-size").
PART_BYTES = 128 << 20

# A file that the workers read: its name, rows and what a row takes.
_Part = tuple[str, int, int]


class Partitions(list[Any]):
    """Delayed partitions of a matrix in files, and of the vectors beside it.

    Attributes
    ----------
    shape, dtype : of the whole matrix; NaN rows where they are not known
    sizes : list of the rows of each partition, or NaN
    client : distributed.Client or None, that a fit is to use
    names : list of str, of the columns, or None
    """

    def __init__(
        self, parts: list[Any], sizes: Sequence[float], n: int, dtype: Any, client: Any
    ) -> None:
        super().__init__(parts)
        self.sizes = list(sizes)
        self.shape, self.dtype, self.client = (sum(sizes), n), dtype, client
        self.names: list[str] | None = None
        self.vectors: dict[str, list[Any]] = {}

    def vector(self, kind: str) -> list[Any] | None:
        """The "label" or "weight" of every row, delayed, or None."""
        return self.vectors.get(kind)


def open_partitions(
    path: str | os.PathLike[str],
    client: Any,
    *,
    label: Any = None,
    weight: Any = None,
    columns: Sequence[str] | None = None,
    zero_based: Any = "auto",
    n_features: int | None = None,
) -> Partitions:
    """The partitions of a file, of a folder, or of a pattern: see `open_rows`.

    Paths may begin with a protocol of fsspec, as ``s3://``. Only the heads of arrays
    and the ends of Parquet are read here.
    """
    path, check = os.fspath(path), Checker("open_rows")
    files = _files(path)
    kind = _kind(files)
    beside = {"label": label, "weight": weight}
    if kind != ".parquet" and columns is not None:
        check.refuse("columns", "None for what is no Parquet", columns)
    for name, given in beside.items():
        if not (given is None or isinstance(given, str)):
            check.refuse(name, "a str or None with a client", given)
    if kind == "":
        for name, given in beside.items():
            if given is not None:
                check.refuse(name, "None for svmlight text, which has targets", given)
        return _open_text(check, files, client, n_features, zero_based)
    for name, given, unset in (
        ("zero_based", zero_based, "auto"),
        ("n_features", n_features, None),
    ):
        if given != unset:
            check.refuse(name, f"{unset!r} for what is no svmlight text", given)
    if kind == ".parquet":
        return _open_parquet(files, client, beside, columns)
    return _open_arrays(path, files, client, beside)


def _open_arrays(
    path: str, files: list[str], client: Any, beside: dict[str, Any]
) -> Partitions:
    """Partitions of .npy files."""
    heads = [_head(file) for file in files]
    for file, (shape, _) in zip(files, heads, strict=True):
        if len(shape) != 2 or shape[1:] != heads[0][0][1:]:
            raise ValueError(f"{file}: expected a matrix, as wide as {files[0]}")
    n, dtype = heads[0][0][1], heads[0][1]
    parts = _cut(files, [shape[0] for shape, _ in heads], n * dtype.itemsize)
    sizes = [stop - start for _, start, stop in parts]
    found = Partitions(_delayed(parts), sizes, n, dtype, client)
    for kind, name in (("label", "y-"), ("weight", "weight-")):
        given = _beside(path, files, beside[kind], name)
        if given is not None:
            found.vectors[kind] = _vector(given, files, heads, parts)
    return found


def _open_parquet(
    files: list[str],
    client: Any,
    beside: dict[str, Any],
    columns: Sequence[str] | None,
) -> Partitions:
    """Partitions of Parquet."""
    from dask.delayed import delayed

    given = {kind: name for kind, name in beside.items() if name is not None}
    parts, sizes, names, dtype = parquet_parts(files, columns, list(given.values()))
    read = delayed(read_parquet, pure=False)
    matrices = [read(*part, names) for part in parts]
    found = Partitions(matrices, sizes, len(names), dtype, client)
    found.names = names
    read = delayed(read_parquet_column, pure=False)
    for kind, name in given.items():
        found.vectors[kind] = [read(*part, name) for part in parts]
    return found


def _open_text(
    check: Checker, files: list[str], client: Any, n_features: Any, zero_based: Any
) -> Partitions:
    """Partitions of svmlight text, whose rows are not counted here."""
    from dask.delayed import delayed

    if not (is_integer(n_features) and n_features > 0):
        check.refuse("n_features", "a positive int for text with a client", n_features)
    if not isinstance(zero_based, bool):
        check.refuse("zero_based", "True or False for text with a client", zero_based)
    read = delayed(read_text, pure=False, nout=2)
    pairs = [read(file, n_features, zero_based) for file in files]
    sizes = [np.nan] * len(files)
    matrices = [pair[0] for pair in pairs]
    found = Partitions(matrices, sizes, n_features, np.dtype(np.float64), client)
    found.vectors["label"] = [pair[1] for pair in pairs]
    return found


def _kind(files: list[str]) -> str:
    """The ending that files have in common: .npy, .parquet, or none: text."""
    kinds = {file: os.path.splitext(file)[1].lower() for file in files}
    known = {k if k in (".npy", ".parquet") else "" for k in kinds.values()}
    for file, kind in kinds.items():
        if kind in (".csv", ".tsv"):
            raise ValueError(
                f"{file}: on a cluster expected .npy, Parquet or svmlight text; for "
                "CSV use dask.dataframe.read_csv"
            )
    if len(known) > 1:
        raise ValueError(f"{files[0]}: expected files of one kind, found several")
    return known.pop()


def _files(path: str) -> list[str]:
    """The files of a path: one, those of a folder, or those of a pattern."""
    from fsspec.core import url_to_fs

    system, place = url_to_fs(path)
    found = sorted(system.glob(place)) if "*" in place else [place]
    if system.isdir(place):
        inside = [f"{place.rstrip('/')}/{name}" for name in ("X-*.npy", "*.parquet")]
        found = next(filter(None, (sorted(system.glob(name)) for name in inside)), [])
        if not found:
            raise ValueError(f"{path}: expected X-*.npy or *.parquet, found neither")
    if not found:
        raise ValueError(f"{path}: expected files of this pattern, found none")
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
        shape, _, dtype = read_head(file, stream)
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
