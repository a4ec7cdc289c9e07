"""svmlight/LIBSVM text files: read and write."""

import os
from typing import Any, Literal, overload

import numpy as np
from numpy.typing import ArrayLike, DTypeLike
from scipy.sparse import csr_array

from widemargin.arrays import Index64, Vector
from widemargin.data.svmlight.read import INT64_MAX, Contents, ReadOptions, load
from widemargin.data.svmlight.text import opener
from widemargin.data.svmlight.write import (
    check_matrix,
    check_qid,
    finite_targets,
    parts,
    write_rows,
)
from widemargin.system.files import replacing


@overload
def load_svmlight(  # numpydoc ignore=GL08
    path: str | os.PathLike[str],
    *,
    n_features: int | None = ...,
    zero_based: bool | Literal["auto"] = ...,
    dtype: DTypeLike = ...,
    return_qid: Literal[False] = ...,
    n_jobs: int | None = ...,
) -> tuple[csr_array, Vector]: ...


@overload
def load_svmlight(  # numpydoc ignore=GL08
    path: str | os.PathLike[str],
    *,
    n_features: int | None = ...,
    zero_based: bool | Literal["auto"] = ...,
    dtype: DTypeLike = ...,
    return_qid: Literal[True],
    n_jobs: int | None = ...,
) -> tuple[csr_array, Vector, Index64]: ...


def load_svmlight(
    path: str | os.PathLike[str],
    *,
    n_features: int | None = None,
    zero_based: bool | Literal["auto"] = "auto",
    dtype: DTypeLike = np.float64,
    return_qid: bool = False,
    n_jobs: int | None = None,
) -> tuple[Any, ...]:
    r"""Read a file of svmlight/LIBSVM text.

    A row is ``target [qid:N] index:value index:value ... [# comment]``. Spaces and
    tabs separate, indices increase, blank lines and lines with a comment only are
    skipped, and lines end with ``\n`` or ``\r\n`` (a carriage return elsewhere is
    refused, comments aside). A UTF-8 byte-order mark may open the file.

    Parameters
    ----------
    path : str or path-like
        The file. A name that ends in ``.gz``, ``.bz2`` or ``.xz`` is decompressed.
    n_features : int or None, default None
        The number of columns, at least 1. None: the largest index decides, so that
        columns that are empty at the end are lost. Give it for a test file.
    zero_based : bool or "auto", default "auto"
        Whether column 0 has index 0. "auto": it has if any index of the file is 0.
        A 0-based file whose column 0 is empty is then taken as 1-based, with every
        column one too far left: give True or False where you know.
    dtype : {numpy.float64, numpy.float32}, default numpy.float64
        The dtype of the values. A value is the float64 nearest to its text, the same
        as Python's ``float``; float32 rounds that once more.
    return_qid : bool, default False
        Return the query ids too; then every row must have one.
    n_jobs : int or None, default None
        Threads, at least 1. None or -1: one for each core this process may use. The
        result does not depend on it.

    Returns
    -------
    X : scipy.sparse.csr_array (n_samples, n_features) of `dtype`
        Entries as in the file, explicit zeros included. The indices are int32 unless
        a column or the number of entries needs int64.
    y : ndarray (n_samples,), float64
        The targets.
    qid : ndarray (n_samples,), int64
        The query ids, if `return_qid`.

    Raises
    ------
    ValueError
        If the text is malformed, with line and column (in bytes, from 1) of the first
        fault: a target or value that is no number, not finite or beyond `dtype`;
        several targets in a row; an index that is negative, does not increase, or is
        beyond `n_features` or 2^63; a misplaced ``qid``; no row at all; damaged
        compressed data. If a parameter is out of its range.
    FileNotFoundError
        If there is no such file.

    Notes
    -----
    A plain file is mapped and read twice (count, then fill), so that peak memory is
    the result and some 4 MiB a thread. A compressed file is decompressed once, into
    chunks that are freed as they are joined: the result and some 15 MiB. Longer lines
    than 1 MiB add their length. A file must not be cut short by someone else while it
    is mapped.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder, "two.svm")
    ...     _ = path.write_text("+1 1:0.5 3:2\n-1 2:1 # a comment\n")
    ...     X, y = load_svmlight(path)
    >>> X.toarray()
    array([[0.5, 0. , 2. ],
           [0. , 1. , 0. ]])
    >>> y
    array([ 1., -1.])
    """
    options = ReadOptions(
        os.fsdecode(path),
        _check_n_features(n_features),
        _check_zero_based(zero_based, "load_svmlight", (True, False, "auto")),
        _check_dtype(dtype),
        bool(return_qid),
        _check_n_jobs(n_jobs),
    )
    X, y, qid, _ = load(options)
    return (X, y) if qid is None else (X, y, qid)


def read_svmlight(
    path: str | os.PathLike[str],
    *,
    zero_based: bool | Literal["auto"] = "auto",
    return_qid: bool | Literal["auto"] = False,
    n_jobs: int | None = None,
) -> Contents:
    """Read a file as `load_svmlight` does, and say how its columns are counted.

    With ``return_qid="auto"`` there are query ids where all rows have one; some rows
    with and some without are refused.
    """
    float64, jobs = np.dtype(np.float64), _check_n_jobs(n_jobs)
    return load(
        ReadOptions(os.fsdecode(path), None, zero_based, float64, return_qid, jobs)
    )


def save_svmlight(
    X: Any,
    y: ArrayLike,
    path: str | os.PathLike[str],
    *,
    zero_based: bool = False,
    qid: ArrayLike | None = None,
    comment: str | None = None,
) -> None:
    """Write a file of svmlight/LIBSVM text.

    Parameters
    ----------
    X : array-like or sparse (n_samples, n_features)
        Float32, float64, integer or boolean; finite; at least one row.
    y : array-like (n_samples,)
        The targets: finite numbers.
    path : str or path-like
        The file. A name that ends in ``.gz``, ``.bz2`` or ``.xz`` is compressed. What
        had this name before is replaced at once, when everything is written.
    zero_based : bool, default False
        Whether column 0 gets index 0; LIBSVM and LIBLINEAR want 1.
    qid : array-like (n_samples,) or None, default None
        Query ids, integers.
    comment : str or None, default None
        Lines for the top of the file, each put after a # and a space.

    Raises
    ------
    ValueError
        If a value is not finite (the first is named by row and column), an integer is
        beyond 2^53 in size, or shapes or parameters do not fit.
    FileNotFoundError
        If the folder does not exist.

    Notes
    -----
    Numbers are the shortest text that reads back as the same bits: of a float32 or
    float64 value in the same dtype, of integers in float64. Of a sparse X every stored
    entry is written, explicit zeros too; of a dense X every entry that is not zero, so
    that -0.0 comes back as 0.0. The text does not hold the number of columns: give
    `n_features` to `load_svmlight` if columns at the end may be empty, and
    `zero_based` if no row uses index 0. Sparse rows that are unsorted or have
    duplicates are sorted and summed in a copy.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder, "two.svm")
    ...     save_svmlight([[0.5, 0, 2], [0, 0.1, 0]], [1, -1], path)
    ...     print(path.read_text(), end="")
    1 1:0.5 3:2
    -1 2:0.1
    """
    base = 0 if _check_zero_based(zero_based, "save_svmlight", (True, False)) else 1
    matrix = check_matrix(X)
    targets = finite_targets(y, matrix.shape[0])
    queries = None if qid is None else check_qid(qid, matrix.shape[0])
    if not (comment is None or isinstance(comment, str)):
        raise _misfit("comment", "save_svmlight", "a str or None", comment)
    with replacing(path, opener(os.fsdecode(path))) as file:
        for line in (comment or "").splitlines():
            file.write(f"# {line}\n".encode())
        for rows in parts(matrix, targets, queries):
            write_rows(file, rows, base)


def _misfit(parameter: str, function: str, must: str, got: object) -> ValueError:
    return ValueError(
        f"The '{parameter}' parameter of {function} must be {must}. "
        f"Got {got!r} instead."
    )


def _check_n_features(n_features: int | None) -> int | None:
    if n_features is None:
        return None
    if isinstance(n_features, int | np.integer) and 1 <= n_features <= INT64_MAX:
        return int(n_features)
    must = "None or an int in the range [1, 2^63)"
    raise _misfit("n_features", "load_svmlight", must, n_features)


def _check_zero_based(zero_based: Any, function: str, allowed: tuple[Any, ...]) -> Any:
    if isinstance(zero_based, bool | str) and zero_based in allowed:
        return zero_based
    must = f"one of {', '.join(map(repr, allowed))}"
    raise _misfit("zero_based", function, must, zero_based)


def _check_dtype(dtype: DTypeLike) -> np.dtype[Any]:
    if (found := np.dtype(dtype)) in (np.float32, np.float64):
        return found
    raise _misfit("dtype", "load_svmlight", "float32 or float64", found.name)


def _check_n_jobs(n_jobs: int | None) -> int:
    if n_jobs is None or n_jobs == -1:
        if hasattr(os, "sched_getaffinity"):
            return len(os.sched_getaffinity(0))
        return os.cpu_count() or 1
    if isinstance(n_jobs, int | np.integer) and n_jobs >= 1:
        return int(n_jobs)
    must = "None, -1 or an int in the range [1, inf)"
    raise _misfit("n_jobs", "load_svmlight", must, n_jobs)
