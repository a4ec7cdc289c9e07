"""Rows on a Dask cluster; dask is imported when there is something to do with it."""

from widemargin.data.distributed.collection import is_collection
from widemargin.data.distributed.crew import ClusterLostError
from widemargin.data.distributed.opened import open_collection
from widemargin.data.distributed.rows import DaskRows, LoadedRows

__all__ = [
    "ClusterLostError",
    "DaskRows",
    "LoadedRows",
    "is_collection",
    "open_collection",
]
