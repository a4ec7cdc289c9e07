"""Writing svmlight text: checked rows, printed by C++ into a bounded buffer."""

from collections.abc import Iterator
from typing import IO, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_array

from widemargin import _core
from widemargin.arrays import Index64, Vector

# At 50 MB/s, the slowest of what was measured, a buffer takes 0.02 s.
WRITE_BYTES = 1 << 20
# Entries of a dense or integer matrix that are copied at a time: 8 MB of float64.
_PART_ENTRIES = 1 << 20
_EXACT_INTEGERS = 2**53


def misfit(parameter: str, must: str, got: object) -> ValueError:
    """The error for a parameter that must be something else."""
    return ValueError(
        f"The '{parameter}' parameter of save_svmlight must {must}. Got {got} instead."
    )


class CsrParts(NamedTuple):
    """Rows as the arrays of CSR, fit for C++; `first` is the number of the first."""

    first: int
    data: NDArray[Any]
    indices: NDArray[Any]
    indptr: NDArray[Any]  # may start above 0
    targets: Vector
    qid: Index64 | None


def check_matrix(X: Any) -> Any:
    """X as canonical CSR or as an array of two dimensions; X itself is not changed."""
    matrix: Any = csr_array(X) if hasattr(X, "tocsr") else np.asarray(X)
    if matrix.ndim != 2 or matrix.shape[0] == 0:
        raise misfit("X", "have two dimensions and a row", f"shape {matrix.shape}")
    _check_dtype(matrix.dtype, "X")
    if isinstance(matrix, csr_array) and not matrix.has_canonical_format:
        matrix = matrix.copy()
        matrix.sum_duplicates()
    return matrix


def _check_dtype(dtype: np.dtype[Any], parameter: str) -> None:
    if dtype.kind not in "biuf" or dtype.itemsize > 8:
        raise misfit(parameter, "hold real numbers of at most 64 bits", dtype)


def finite_targets(y: ArrayLike, n_rows: int) -> Vector:
    """Targets as finite float64 numbers: (n_rows,)."""
    targets = np.asarray(y)
    if targets.shape != (n_rows,):
        raise misfit("y", f"have shape ({n_rows},)", f"shape {targets.shape}")
    _check_dtype(targets.dtype, "y")
    real = _as_real(targets, "y").astype(np.float64)
    if bad := np.flatnonzero(~np.isfinite(real)).tolist():
        raise misfit("y", "hold finite numbers", f"{real[bad[0]]} in row {bad[0]}")
    return real


def check_qid(qid: ArrayLike, n_rows: int) -> Index64:
    """Query ids as int64 numbers: (n_rows,)."""
    queries = np.asarray(qid)
    if queries.shape != (n_rows,) or not np.can_cast(queries.dtype, np.int64):
        got = f"{queries.dtype} of shape {queries.shape}"
        raise misfit("qid", f"hold int64 numbers in shape ({n_rows},)", got)
    return np.ascontiguousarray(queries, np.int64)


def _as_real(values: NDArray[Any], parameter: str) -> NDArray[Any]:
    """The same numbers as contiguous float32 or float64."""
    if values.dtype.kind == "f":
        narrow = values.dtype.itemsize <= 4
        return np.ascontiguousarray(values, np.float32 if narrow else np.float64)
    real = np.ascontiguousarray(values, np.float64)
    large = np.abs(real) >= _EXACT_INTEGERS  # beyond it integers share a float64
    if large.any():
        got = values[large].flat[0]
        raise misfit(parameter, "hold integers below 2^53 in size", got)
    return real


def parts(matrix: Any, targets: Vector, qid: Index64 | None) -> Iterator[CsrParts]:
    """The rows in parts of about _PART_ENTRIES entries."""
    n_rows, dense = targets.size, isinstance(matrix, np.ndarray)
    size = matrix.size if dense else matrix.nnz
    step = max(1, _PART_ENTRIES * n_rows // max(1, size))
    for begin in range(0, n_rows, step):
        end = min(begin + step, n_rows)
        data, indices, indptr = (_dense_part if dense else _sparse_part)(
            matrix, begin, end
        )
        queries = None if qid is None else qid[begin:end]
        yield CsrParts(begin, data, indices, indptr, targets[begin:end], queries)


_Csr = tuple[NDArray[Any], NDArray[Any], NDArray[Any]]


def _dense_part(matrix: Any, begin: int, end: int) -> _Csr:
    block = csr_array(_as_real(matrix[begin:end], "X"))
    return block.data, block.indices, block.indptr


def _sparse_part(matrix: Any, begin: int, end: int) -> _Csr:
    entries = slice(matrix.indptr[begin], matrix.indptr[end])
    data = _as_real(matrix.data[entries], "X")
    return data, matrix.indices[entries], matrix.indptr[begin : end + 1]


def write_rows(file: IO[bytes], rows: CsrParts, base: int) -> None:
    """Write rows; `base` is the index of column 0."""
    buffer = np.empty(WRITE_BYTES, np.uint8)
    cursor = np.zeros(4, np.int64)  # row, entry, in_row, bytes: WriteCursor in C++
    while cursor[0] < rows.targets.size:
        if _core.write_svmlight(*rows[1:], base, buffer, cursor):
            row, entry = rows.first + int(cursor[0]), int(cursor[1])
            got = f"{rows.data[entry]} in row {row}, column {rows.indices[entry]}"
            raise misfit("X", "hold finite numbers", got)
        file.write(buffer[: cursor[3]].data)
