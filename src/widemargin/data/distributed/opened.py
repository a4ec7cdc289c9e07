"""Collections as rows on their cluster."""

from collections.abc import Callable, Sequence
from typing import Any

from widemargin.data.distributed.collection import (
    client_of,
    column_names,
    lanes_of,
    partitions,
)
from widemargin.data.distributed.reading import LaneReader, Prepared
from widemargin.data.distributed.rows import LoadedRows


def open_collection(
    X: Any,
    others: Sequence[Any],
    prepare: Callable[..., Prepared],
) -> LoadedRows:
    """Rows of a Dask collection, in lanes on the workers of a client.

    Parameters
    ----------
    X : Dask array, dataframe, or list of delayed partitions
    others : sequence of collections or None
        Vectors beside the rows: labels, weights.
    prepare : callable (rows, *others) -> Prepared
        Called on the workers, with each partition.
    """
    client = client_of(X)
    names, categories = column_names(X)
    parts, sizes = partitions(X, others)
    lanes = lanes_of(parts, sizes, _row_bytes(X))
    weights = [_weight(lane, sizes) for lane in lanes]
    return LoadedRows(client, lanes, weights, LaneReader(prepare, categories), names)


def _weight(lane: Sequence[Any], sizes: Sequence[float]) -> float:
    """Rows of a lane, or its partitions where rows are not known."""
    rows = [sizes[part[0]] for part in lane]
    return float(sum(1.0 if row != row else row for row in rows))


def _row_bytes(X: Any) -> float:
    """Bytes of a row of an array."""
    if not hasattr(X, "dtype") or not hasattr(X, "shape"):
        return 0.0
    return float(X.shape[1] * X.dtype.itemsize)
