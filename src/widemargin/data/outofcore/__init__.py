"""Rows in files: arrays, Parquet and text that need not fit in memory."""

import os
from collections.abc import Sequence
from typing import Any, Literal

from widemargin.data.outofcore.shards import ShardSource
from widemargin.data.outofcore.source import Source
from widemargin.data.outofcore.stored import StoredRows
from widemargin.data.outofcore.text import TextSource
from widemargin.data.svmlight.read import other_kind
from widemargin.parameters import Checker, is_integer
from widemargin.system.files import ending, is_delimited, open_bytes
from widemargin.system.threads import n_threads


def open_rows(  # noqa: PLR0913  (by keyword, and most of one format only)
    path: str | os.PathLike[str],
    *,
    label: str | int | None = None,
    weight: str | int | None = None,
    columns: Sequence[str] | None = None,
    zero_based: bool | Literal["auto"] = "auto",
    n_features: int | None = None,
    n_jobs: int | None = None,
    memory_limit: int | None = None,
    client: Any = None,
) -> StoredRows:
    """Rows of files, which are read block by block in each sweep.

    Parameters
    ----------
    path : str or path-like
        ``*.npy``: a matrix. A folder: files ``X-*.npy`` in the order of their names
        (shards), or files ``*.parquet``. ``*.parquet``: that file. Other names:
        svmlight text, plain or compressed, which is converted here, once, to temporary
        files. ``*.csv`` and ``*.tsv``: a table with a line of names, plain or
        compressed (``.gz``, ``.bz2``, ``.xz``), read into memory and converted once to
        a temporary Parquet file; words of up to 50 kinds are categories.
    label, weight : str, int or None, default=None
        What `StoredRows.vector` returns, and is no feature: of Parquet the name of a
        column; of arrays the number of a column (negative: from the end), or a .npy
        file of numbers. None: of shards the files ``y-*.npy`` and ``weight-*.npy``, if
        there are; of text the targets, and there is no other label.
    columns : sequence of str or None, default=None
        Of Parquet only: the columns of the features, in this order. None: all but label
        and weight.
    zero_based : bool or "auto", default="auto"
        Of text only: see `load_svmlight`.
    n_features : int or None, default=None
        Of text only: see `load_svmlight`.
    n_jobs : int or None, default=None
        Threads of a sweep, each with another one that reads ahead. None: as many as
        BLAS may use at the moment.
    memory_limit : int or None, default=None
        Bytes that a fit may take, all in all: row vectors that do not fit are kept in
        temporary files (TMPDIR says where). None: row vectors are in memory.

    client : distributed.Client or None, default=None
        For rows on a Dask cluster: the workers read the files, a .npy matrix, Parquet
        with columns of numbers, svmlight text (``zero_based`` a bool, ``n_features`` an
        int; a file is a partition), a folder
        of shards, or those that a pattern names, here or where fsspec gets them from
        ("s3://..."). Labels and weights are .npy files, or a pattern of them.

    Returns
    -------
    StoredRows
        With a client a list of partitions, delayed, with their ``shape`` and
        ``vector``.

    Raises
    ------
    ValueError
        A file that is not what its name says, or was not written to the end; shards of
        different width or dtype (of labels: other than words of different length, or
        numbers of different precision); columns that are neither numbers nor
        categories nor words of up to 50 kinds; a column that is not there; a
        memory_limit that is too small for these rows. The sentence names the file.
    OSError
        Missing or unreadable files; no room for temporary files. Later, in a sweep: a
        file that was changed since it was opened.
    ImportError
        Parquet without pyarrow.

    Notes
    -----
    Files are read, not mapped: a map would count as memory, and end the process where
    the file is cut short. A block takes about 8 MiB, up to 64 MiB where there are many
    columns, and there are two for each thread.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import numpy as np
    >>> from widemargin import LinearSVC, open_rows
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     np.save(Path(folder, "X-0.npy"), np.array([[0.0], [1.0], [2.0]]))
    ...     np.save(Path(folder, "y-0.npy"), np.array([-1, -1, 1]))
    ...     rows = open_rows(folder)
    ...     model = LinearSVC().fit(rows, rows.vector("label"))
    >>> model.status_
    'solved'
    """
    check = Checker("open_rows")
    check.memory_limit(memory_limit)
    if n_jobs is not None and not (is_integer(n_jobs) and n_jobs != 0):
        check.refuse("n_jobs", "a nonzero int or None", n_jobs)
    name = os.fsdecode(path)
    beside: dict[str, Any] = {"label": label, "weight": weight, "columns": columns}
    of_text: dict[str, Any] = {"zero_based": zero_based, "n_features": n_features}
    if client is not None:
        from widemargin.data.distributed.files import open_partitions

        partitions: Any = open_partitions(name, client, **beside, **of_text)
        return partitions  # type: ignore[no-any-return]
    given = {kind: value for kind, value in beside.items() if value is not None}
    for kind in ("label", "weight"):
        if kind in given:
            given[kind] = str(given[kind])
    source = _source(check, name, given, of_text, n_jobs)
    return StoredRows(source, n_jobs, memory_limit)


def _source(
    check: Checker,
    path: str,
    given: dict[str, Any],
    of_text: dict[str, Any],
    n_jobs: int | None,
) -> Source:
    """The reader of a path, which refuses what files of its kind have no use for."""
    if is_binary(path):
        for kind, unset in (("zero_based", "auto"), ("n_features", None)):
            if of_text[kind] != unset:
                expected = f"{unset!r} for what is no svmlight text"
                check.refuse(kind, expected, of_text[kind])
    if is_parquet(path):
        from widemargin.data.outofcore.parquet import ParquetSource

        return ParquetSource(path, **given)
    is_text = not is_binary(path)
    for kind, value in given.items():
        if kind == "columns" or is_text:
            _refuse_of_table(check, kind, value, path if is_text else None)
    if not is_text:
        return ShardSource(path, **given)
    return TextSource(path, n_jobs=n_threads(n_jobs), **of_text)


def _refuse_of_table(check: Checker, kind: str, value: Any, text: str | None) -> None:
    """Refuse what tables alone have; of a text, say why it is taken for one."""
    expected = "None for svmlight text, which has targets"
    if kind == "columns":
        expected = "None for what is no Parquet"
    if text is None:
        check.refuse(kind, expected, value)
    if not os.path.exists(text):
        open_bytes(text)  # which says so, with the name that may be meant
    end = os.path.splitext(text)[1]
    named = f"whose name ends in {end!r}" if end else "whose name has no ending"
    why = (
        f" A file {named} is read as svmlight text; tables end in .csv or .tsv (plain, "
        "or with .gz, .bz2 or .xz), .npy or .parquet."
    )
    if said := other_kind(text):
        why += f" Of {text}: {said}."
    check.refuse_part(kind, f"be {expected}", repr(value), why)


def is_binary(path: str) -> bool:
    """Whether a name stands for arrays or tables: a folder, or by its ending."""
    kinds = (".npy", ".parquet")
    return os.path.isdir(path) or ending(path) in kinds or is_delimited(path)


def is_parquet(path: str) -> bool:
    """Whether a name stands for Parquet or CSV: a file, or a folder of Parquet."""
    if os.path.isdir(path):
        try:
            return any(ending(name) == ".parquet" for name in os.listdir(path))
        except PermissionError:
            raise PermissionError(f"no permission to read {path}") from None
    return ending(path) == ".parquet" or is_delimited(path)


def csv_columns(path: str) -> list[Any]:
    """What the columns of a CSV file hold: see `delimited.ColumnFacts`."""
    from widemargin.data.outofcore.delimited import column_facts

    return column_facts(path)


def csv_place(path: str, row: int) -> str:
    """The line of a row of a CSV file: see `delimited.place_of`."""
    from widemargin.data.outofcore.delimited import place_of

    return place_of(path, row)


def column_names(path: str) -> list[str]:
    """Names of the columns of Parquet: see `parquet.column_names`."""
    from widemargin.data.outofcore import parquet

    return parquet.column_names(path)
