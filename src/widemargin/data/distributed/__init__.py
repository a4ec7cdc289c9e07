"""Rows on a Dask cluster; dask is imported when there is something to do with it."""

from widemargin.data.distributed.collection import (
    ClusterLostError,
    RowsLostError,
    is_collection,
)

__all__ = ["ClusterLostError", "RowsLostError", "is_collection"]
