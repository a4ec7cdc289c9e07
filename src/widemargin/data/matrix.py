"""What a user calls a matrix, as a dense or CSR array that can be computed with."""

import os
from typing import Any, NoReturn

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from widemargin.numerics import linalg
from widemargin.numerics.linalg import Matrix

_INDEX_TYPES = {np.dtype(np.int32), np.dtype(np.int64)}


def as_matrix(X: Any) -> Matrix:
    """X as a dense or CSR array of real numbers, copied only when it must be.

    Raises
    ------
    ValueError if X is no matrix of real numbers with a row and a column, has masked
    entries, or is a sparse matrix whose index arrays point outside of it.
    """
    refuse_unreadable(X)
    if not sparse.issparse(X):
        X = _as_array(X)
    if X.ndim != 2 or X.dtype.kind not in "fiubO":
        _refuse(f"dtype {X.dtype} in {X.ndim} dimension(s)")
    if X.shape[0] == 0 or X.shape[1] == 0:
        raise ValueError(
            f"X must have at least one row and one column. Got shape {X.shape} instead."
        )
    return _as_csr(X) if sparse.issparse(X) else _as_computable(X)


def refuse_unreadable(X: Any) -> None:
    """Refuse what holds no rows to read: a file's name, a query, a mask over them."""
    if isinstance(X, str | os.PathLike):
        name = os.fspath(X)
        raise TypeError(
            f"X must be a matrix or Rows. Got the name {name!r} instead: "
            f"open_rows({name!r}) opens a file."
        )
    if hasattr(X, "collect_schema") and not hasattr(X, "shape"):  # of polars
        raise TypeError(
            "X must be a matrix or a table in memory. Got a "
            f"{type(X).__name__} instead: X.collect() reads it."
        )
    # Asarray would read what is under the mask. (A table may have a column "_mask".)
    if isinstance(X, np.ma.MaskedArray) and np.ma.is_masked(X):
        raise ValueError("X must have no masked entries. Fill or drop them first.")


def column_names(X: Any) -> list[str] | None:
    """Names of the columns of a table (pandas, polars, Arrow); None where it has none.

    Columns that are only numbered, as in a frame made of an array, have no names.
    """
    if isinstance(X, np.ndarray) or sparse.issparse(X):
        return None
    names = getattr(X, "column_names", None)  # Arrow, whose columns are the data
    if names is None or callable(names):
        names = getattr(X, "columns", None)
    if (names is None or callable(names)) and hasattr(X, "__dataframe__"):
        names = list(X.__dataframe__().column_names())
    if names is None or callable(names) or not any(isinstance(x, str) for x in names):
        return None
    return [str(name) for name in names]


def _as_csr(X: Any) -> sparse.csr_array:
    """X as a CSR array that the C++ core can follow without looking where to."""
    is_canonical = X.format == "csr" and linalg.is_canonical(X)
    if X.format in ("csr", "csc", "bsr") and not is_canonical:
        _check_indices(X)
    elif X.format == "coo":
        X = sparse.coo_array((X.data, X.coords), shape=X.shape)  # checks them
    if X.format != "csr":
        X = sparse.csr_array(X)
    data = _as_computable(np.asarray(X.data))
    types = {X.indptr.dtype, X.indices.dtype}
    index = types.pop() if len(types) == 1 and types < _INDEX_TYPES else np.int64
    # Set field by field: see row_slice.
    rows = sparse.csr_array(X.shape, dtype=data.dtype)
    rows.data = np.require(data, requirements=["C", "A"])
    rows.indptr = np.require(np.asarray(X.indptr), index, ["C", "A"])
    rows.indices = np.require(np.asarray(X.indices), index, ["C", "A"])
    if is_canonical:
        rows.has_canonical_format = True
    return rows if rows.has_canonical_format else _without_duplicates(rows)


def _without_duplicates(rows: sparse.csr_array) -> sparse.csr_array:
    """A copy without repeated entries: they are added in float64.

    A bound of rounding knows the entries only, not what they were summed from.
    """
    ordered = rows.copy()
    ordered.sort_indices()
    if ordered.has_canonical_format:
        return ordered
    summed = ordered.astype(np.float64)
    summed.sum_duplicates()
    return summed


def _refuse(got: str, cause: Exception | None = None) -> NoReturn:
    raise ValueError(
        f"X must be a matrix of real numbers (m rows, n columns). Got {got} instead."
    ) from cause


def _as_array(X: ArrayLike) -> NDArray[Any]:
    try:
        return np.asarray(X)
    except ValueError as error:
        _refuse("rows of different lengths", error)


def _as_computable(X: NDArray[Any]) -> NDArray[Any]:
    """X in a dtype that products promote to float64 block by block."""
    if _computable(X.dtype):
        return X
    try:
        return X.astype(np.float64)
    except (TypeError, ValueError) as error:
        _refuse(f"an entry that is no number ({error})", error)


def _check_indices(X: Any) -> None:
    """Raise ValueError where the index arrays of a CSR, CSC or BSR array are broken.

    One pass over them, once for all products.
    """
    rows, columns = X.shape if X.format != "csc" else X.shape[::-1]
    if X.format == "bsr":
        rows, columns = rows // X.blocksize[0], columns // X.blocksize[1]
    indptr, indices = np.asarray(X.indptr), np.asarray(X.indices)
    got = None
    if indptr.dtype.kind not in "iu" or indices.dtype.kind not in "iu":
        got = f"indices of dtype {indptr.dtype} and {indices.dtype}"
    elif indptr.shape != (rows + 1,):
        got = f"an indptr of shape {indptr.shape}"
    elif indices.ndim != 1 or len(indices) != len(X.data):
        got = f"{indices.size} indices for {len(X.data)} entries"
    elif (
        indptr[0] != 0 or indptr[-1] > len(indices) or np.any(indptr[1:] < indptr[:-1])
    ):
        got = f"an indptr that does not rise from 0 to at most {len(indices)}"
    elif not _all_below(indices := indices[: indptr[-1]], columns):
        wrong = int(np.argmax((indices < 0) | (indices >= columns)))
        got = f"index {indices[wrong]} at entry {wrong}"
    if got is not None:
        raise ValueError(
            f"X must be a valid {X.format.upper()} matrix of shape {X.shape}. "
            f"Got {got} instead."
        )


def _all_below(indices: NDArray[Any], end: int) -> bool:
    """Whether all indices are in 0 .. end - 1: one pass, without temporary arrays."""
    if indices.size == 0:
        return True
    if indices.dtype in _INDEX_TYPES:  # a negative index is a large unsigned one
        indices = indices.view(f"u{indices.itemsize}")
    return bool(indices.max() < end) and bool(indices.min() >= 0)


def _computable(dtype: np.dtype[Any]) -> bool:
    """Whether products promote the dtype to float64 by themselves, block by block."""
    return dtype.isnative and (dtype.kind in "iu" or dtype in (np.float32, np.float64))
