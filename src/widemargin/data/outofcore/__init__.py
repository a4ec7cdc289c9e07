"""Rows in files: arrays, Parquet and text that need not fit in memory."""

import os

from widemargin.data.outofcore.shards import ShardSource
from widemargin.data.outofcore.stored import StoredRows
from widemargin.parameters import Checker, is_integer


def open_rows(
    path: str | os.PathLike[str],
    *,
    label: str | int | None = None,
    weight: str | int | None = None,
    n_jobs: int | None = None,
    memory_limit: int | None = None,
) -> StoredRows:
    """X"""
    name = os.fsdecode(path)
    return StoredRows(
        ShardSource(name, label=None if label is None else str(label)),
        n_jobs,
        memory_limit,
    )
