"""Parquet and svmlight text as partitions that workers read for themselves."""

import os
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

# -- Parquet: a partition is a row group -----------------------------------------------


def parquet_parts(
    files: Sequence[str], columns: Sequence[str] | None, beside: Sequence[str]
) -> tuple[list[tuple[str, int]], list[int], list[str], np.dtype[Any]]:
    """Row groups, their rows, and the names and dtype of the features.

    ``beside`` are columns that are no features. Only the ends of the files are read.
    """
    parts: list[tuple[str, int]] = []
    sizes: list[int] = []
    schema: Any = None
    for file in files:
        with _parquet(file) as opened:
            known, own = opened.metadata, opened.schema_arrow
        if schema is not None and own.names != schema.names:
            raise ValueError(f"{file}: expected the columns of {files[0]}")
        schema = own
        parts += [(file, k) for k in range(known.num_row_groups)]
        sizes += [known.row_group(k).num_rows for k in range(known.num_row_groups)]
    asked = list(columns or [name for name in schema.names if name not in beside])
    for name in [*asked, *beside]:
        if name not in schema.names:
            raise ValueError(f"{files[0]}: expected a column {name!r}, found none")
    return parts, sizes, asked, _dtype(files[0], schema, asked)


def _dtype(file: str, schema: Any, names: Sequence[str]) -> np.dtype[Any]:
    """The dtype of the matrix of columns, which hold numbers."""
    dtypes = []
    for name in names:
        kind = schema.field(name).type
        try:
            dtype = np.dtype(kind.to_pandas_dtype())
        except (NotImplementedError, TypeError):
            dtype = np.dtype(object)
        if dtype.kind not in "biuf":
            raise ValueError(
                f"{file}: column {name!r} must hold numbers on a cluster. Got {kind} "
                "instead; for categories use dask.dataframe.read_parquet."
            )
        dtypes.append(dtype)
    return np.result_type(*dtypes)


def read_parquet(file: str, group: int, names: list[str]) -> NDArray[Any]:
    """The matrix of some columns of a row group; a task."""
    with _parquet(file) as opened:
        table = opened.read_row_group(group, columns=names)
    return np.column_stack([table.column(name).to_numpy() for name in names])


def read_parquet_column(file: str, group: int, name: str) -> NDArray[Any]:
    """One column of a row group; a task."""
    with _parquet(file) as opened:
        found: NDArray[Any] = opened.read_row_group(group, [name]).column(0).to_numpy()
    return found


@contextmanager
def _parquet(file: str) -> Iterator[Any]:
    """An open file."""
    import fsspec
    from pyarrow import lib, parquet

    with fsspec.open(file, "rb") as stream:
        try:
            yield parquet.ParquetFile(stream)
        except lib.ArrowInvalid as error:
            raise ValueError(f"{file}: expected Parquet ({error})") from None


# -- svmlight text: a partition is a file ----------------------------------------------


def read_text(file: str, n_features: int, zero_based: bool) -> tuple[Any, Any]:
    """Matrix and targets of a file; a task."""
    from widemargin.data.svmlight import load_svmlight

    options: Any = {"n_features": n_features, "zero_based": zero_based, "n_jobs": 1}
    if file.startswith("file://"):
        return load_svmlight(file.removeprefix("file://"), **options)
    import fsspec

    with tempfile.TemporaryDirectory() as folder:
        here = os.path.join(folder, file.rpartition("/")[2])
        with fsspec.open(file, "rb") as stream, open(here, "wb") as copy:
            shutil.copyfileobj(stream, copy)
        return load_svmlight(here, **options)
