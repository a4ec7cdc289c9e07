"""Dask collections as partitions of lanes; nothing here imports dask by itself."""

import sys
from collections.abc import Sequence
from typing import Any

import numpy as np

# Lanes are as many whatever the number of workers: bits depend on them. At least so
# many where there are as many partitions, more for more bytes, and at most so many. Not
# tuned.
LEAST_LANES, LANE_BYTES, MOST_LANES = 16, 32 << 20, 512


class ClusterLostError(RuntimeError):
    """A fit on a cluster cannot go on: no worker is left, no scheduler, or no time.

    Attributes
    ----------
    best : tuple (w, b, relative gap) of the best step before, or None
    """

    best: Any = None


class RowsLostError(ClusterLostError):
    """Row vectors of a fit are lost: on a worker, in its copy, and in the log.

    The rows can be loaded again, and a fit go on from the best step.
    """


def is_collection(X: Any) -> bool:
    """Whether X is a Dask collection, or a list of delayed partitions."""
    dask = sys.modules.get("dask")
    if dask is None:
        return False
    if isinstance(X, list | tuple) and X:
        return all(dask.is_dask_collection(x) for x in X)
    return bool(dask.is_dask_collection(X))


def client_of(X: Any) -> Any:
    """The client to fit with: that of the collection, or the current one."""
    from distributed import get_client

    client = getattr(X, "client", None)
    if client is None:
        try:
            client = get_client()
        except ValueError:
            raise ValueError(
                "A Dask collection is fitted on a cluster: make a client first "
                "(from dask.distributed import Client; client = Client(...))."
            ) from None
    if client.asynchronous:
        raise ValueError("The client of a fit must not be asynchronous.")
    return client


def partitions(X: Any, others: Sequence[Any]) -> tuple[list[Any], list[float]]:
    """Partitions (number, matrix, vectors ...), delayed, and the rows of each.

    NaN rows where the collection does not know.
    """
    X, sizes = _rows_of(X)
    columns = [X]
    names = ("y", "sample_weight")
    for name, other in zip(names, others, strict=False):
        columns.append(_aligned(name, other, sizes, len(X)))
    parts = list(zip(range(len(X)), *columns, strict=True))
    return parts, sizes


def lanes_of(parts: list[Any], sizes: list[float], row_bytes: float) -> list[Any]:
    """Contiguous partitions of each lane, balanced by rows where these are known."""
    weights = np.array(sizes, float)
    if np.isnan(weights).any():
        weights = np.ones(len(parts))
        n_lanes = LEAST_LANES * 4
    else:
        n_lanes = int(weights.sum() * row_bytes) // LANE_BYTES
    n_lanes = min(max(n_lanes, LEAST_LANES), MOST_LANES, len(parts))
    done = np.cumsum(weights) - 0.5 * weights
    total = max(float(weights.sum()), 1e-300)
    place = np.minimum((done / total * n_lanes).astype(int), n_lanes - 1)
    lanes = [[parts[i] for i in np.flatnonzero(place == k)] for k in range(n_lanes)]
    return [lane for lane in lanes if lane]


def column_names(X: Any) -> tuple[list[str] | None, dict[str, list[Any]]]:
    """Names of the features of a collection, and the categories among its columns."""
    if not hasattr(X, "columns") or not hasattr(X, "_meta"):
        return (X.names if isinstance(X, list) and hasattr(X, "names") else None), {}
    names: list[str] = []
    categories: dict[str, list[Any]] = {}
    for name, dtype in X.dtypes.items():
        if getattr(dtype, "categories", None) is None:
            names.append(str(name))
            continue
        if not getattr(X[name].cat, "known", True):
            raise ValueError(
                f"column {name!r} must have known categories: X.categorize() finds "
                "them."
            )
        categories[name] = sorted(dtype.categories)
        names += [f"{name}={value}" for value in categories[name]]
    return names, categories


def _rows_of(X: Any) -> tuple[list[Any], list[float]]:
    """The delayed partitions of the matrix, and how many rows each has."""
    if isinstance(X, list | tuple):
        return list(X), list(getattr(X, "sizes", [np.nan] * len(X)))
    if hasattr(X, "chunks"):
        if X.ndim != 2:
            raise ValueError(f"X must be a matrix. Got {X.ndim} dimension(s) instead.")
        if X.numblocks[1] > 1:
            X = X.rechunk({1: -1})
        return list(X.to_delayed().ravel()), list(X.chunks[0])
    if hasattr(X, "to_delayed"):
        found = list(X.to_delayed())
        return found, [np.nan] * len(found)
    return [X], [np.nan]  # one delayed matrix


def _aligned(name: str, other: Any, sizes: list[float], n_parts: int) -> list[Any]:
    """The partitions of a vector that belong to those of the matrix."""
    if other is None:
        return [None] * n_parts
    known = not np.isnan(sizes).any()
    if not is_collection(other):
        return _slices(name, other, sizes)
    if hasattr(other, "chunks"):
        if other.ndim == 2 and other.shape[1] == 1:
            other = other[:, 0]
        rows = other.chunks[0]
        if known and not np.isnan(rows).any() and list(rows) != list(sizes):
            if sum(rows) != sum(sizes):
                _refuse(name, f"length {int(sum(sizes))}", f"length {int(sum(rows))}")
            other = other.rechunk((tuple(int(s) for s in sizes),))
    found = _vector_parts(other)
    if len(found) != n_parts:
        _refuse(name, f"{n_parts} partitions, as X has", f"{len(found)}")
    return found


def _vector_parts(other: Any) -> list[Any]:
    """The delayed partitions of a vector."""
    if isinstance(other, list | tuple):
        return list(other)
    if hasattr(other, "to_delayed"):
        return list(np.ravel(other.to_delayed()))
    return [other]  # one delayed vector


def _slices(name: str, other: Any, sizes: list[float]) -> list[Any]:
    """Parts of a vector that is in memory here."""
    if np.isnan(sizes).any():
        _refuse(
            name, "partitions, as X has, whose sizes are not known", "one in memory"
        )
    whole = np.asarray(other)
    ends = np.cumsum([0, *sizes]).astype(int)
    if whole.ndim == 0 or len(whole) != ends[-1]:
        _refuse(name, f"length {ends[-1]}", f"shape {whole.shape}")
    return [whole[a:b] for a, b in zip(ends, ends[1:], strict=False)]


def _refuse(name: str, expected: str, got: str) -> None:
    raise ValueError(f"{name} must have {expected}. Got {got} instead.")
