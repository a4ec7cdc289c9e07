"""Rows on a Dask cluster; dask is imported when there is something to do with it."""

from widemargin.data.distributed.collection import ClusterLostError, is_collection

__all__ = ["ClusterLostError", "is_collection"]
