"""The lists that the tests are products of."""

import atexit
import contextlib
import gc
import itertools
import shutil
import signal
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import hypothesis
import numpy as np
import pyarrow.parquet
import pytest
from _pytest.runner import runtestprotocol
from scipy import sparse
from sklearn.datasets import load_iris

from tests.cases.pairwise import mark_the_rest
from tests.cases.problems import PROBLEMS as PROBLEMS
from tests.cases.process_rows import ProcessRows
from tests.cases.svmlight_files import SLICES
from widemargin import as_rows, open_rows
from widemargin.data.outofcore.copied import copied_rows
from widemargin.data.rows import Rows
from widemargin.solvers.auto import SOLVERS as _SOLVERS

# The same examples in every run, on any machine: a failure can be looked at again.
_SAME = {"derandomize": True, "deadline": None, "database": None, "print_blob": True}
hypothesis.settings.register_profile("few", max_examples=30, **_SAME)
hypothesis.settings.register_profile("full", max_examples=100, **_SAME)
hypothesis.settings.load_profile("few")  # `make test-full` asks for the other one


def pytest_configure():
    """Hear Ctrl-C where a script runs the tests in the background, whose shell ignores it."""
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection():
    """Look for no garbage while 25,000 cases are made: a third of the time."""
    gc.disable()


def pytest_collection_finish():
    """Never look at the cases again: they live as long as the process."""
    gc.freeze()
    gc.enable()
    # The end of Python sees all: what the core made is counted there. Before it, pytest
    # looks for garbage twice, which takes 3 seconds of each process where it sees the cases.
    atexit.register(gc.unfreeze)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item, nextitem):
    """Report a test that passes once, not six times.

    pytest-xdist tells that a test begins, is set up, called, torn down, ends, and is
    complete. 12,000 tests that do nothing take 24 s by two processes, not 38.
    """
    if not hasattr(item.config, "workerinput"):
        return None
    for report in runtestprotocol(item, log=False, nextitem=nextitem):
        if report.when == "call" or not report.passed:
            item.ihook.pytest_runtest_logreport(report=report)
    return True


@pytest.hookimpl(tryfirst=True)  # before `-m "not full"` is asked
def pytest_collection_modifyitems(items):
    mark_the_rest(items)


class Storage(NamedTuple):
    """A way to hold data.

    make(X, **options) makes rows from a float64 matrix, with the options of `as_rows`;
    exact(X) are the numbers that they hold, as float64, which may be rounded.
    """

    name: str
    make: Callable[..., Rows]
    exact: Callable[[np.ndarray], np.ndarray]


def _storage(name, convert, dtype=np.float64, rows=as_rows):
    def stored(X):
        if np.dtype(dtype).kind in "iu":
            limits = np.iinfo(dtype)
            X = np.clip(np.rint(X), limits.min, limits.max)
        return X.astype(dtype)

    def make(X, **options):
        return rows(convert(stored(X)), **options)

    return Storage(name, make, lambda X: stored(X).astype(np.float64))


def read_only(X):
    X.flags.writeable = False
    return X


_FILES = Path(tempfile.mkdtemp(prefix="widemargin-tests-"))
_NUMBERS = itertools.count()
atexit.register(shutil.rmtree, _FILES, ignore_errors=True)


def memory_mapped(X):
    path = _FILES / f"{next(_NUMBERS)}.npy"
    np.save(path, X)
    return np.load(path, mmap_mode="r")


def strided(X):
    """Every second row and every third column of a larger array."""
    larger = np.full((2 * X.shape[0], 3 * X.shape[1] + 1), 77, dtype=X.dtype)
    larger[::2, 1::3] = X
    return larger[::2, 1::3]


def reversed_rows(X):
    return np.ascontiguousarray(X[::-1])[::-1]


def csr(rows, **arrays):
    """CSR rows with these very arrays: the constructor changes the type of indices."""
    new = sparse.csr_array(rows.shape, dtype=rows.dtype)
    for name in ("data", "indices", "indptr"):
        setattr(new, name, arrays.get(name, getattr(rows, name)))
    return new


def long_indices(X):
    rows = sparse.csr_array(X)
    long = {"indices": rows.indices, "indptr": rows.indptr}
    return csr(rows, **{name: array.astype(np.int64) for name, array in long.items()})


def mixed_indices(X):
    rows = sparse.csr_array(X)
    return csr(rows, indptr=rows.indptr.astype(np.int64))


def unsorted(X):
    """The entries of each row from right to left."""
    rows = sparse.csr_array(X[:, ::-1])
    return csr(rows, indices=X.shape[1] - 1 - rows.indices)


def duplicated(X):
    """Each entry in two parts, which add up to it exactly, far from each other."""
    rows = unsorted(X)
    first = rows.data // 2 if X.dtype.kind in "iu" else rows.data / 2
    second = (
        rows.data - first if X.dtype.kind in "iu" else first
    )  # inf is not inf - inf
    row = np.tile(np.repeat(np.arange(X.shape[0]), np.diff(rows.indptr)), 2)
    order = np.argsort(row, kind="stable")
    return csr(
        rows,
        data=np.concatenate([first, second]).astype(X.dtype)[order],
        indices=np.tile(rows.indices, 2)[order],
        indptr=2 * rows.indptr,
    )


def explicit_zeros(X):
    rows = sparse.csr_array(np.ones(X.shape))
    return csr(rows, data=X.ravel())


def unused_entries(X):
    """An entry behind the last row, whose index is out of range."""
    rows = sparse.csr_array(X)
    beyond = np.array([X.shape[1] + 5], dtype=rows.indices.dtype)
    one = np.ones(1, dtype=X.dtype)
    return csr(
        rows,
        data=np.concatenate([rows.data, one]),
        indices=np.concatenate([rows.indices, beyond]),
    )


def memory_mapped_csr(X):
    rows = sparse.csr_array(X)
    arrays = {"data": rows.data, "indices": rows.indices, "indptr": rows.indptr}
    if rows.nnz == 0:
        return rows  # an empty file cannot be mapped
    return csr(rows, **{name: memory_mapped(array) for name, array in arrays.items()})


def stored(X, n_jobs=None, memory_limit=None, scratch=False):
    """Rows in two shards; blocks of a few rows where memory_limit is small."""
    folder = _FILES / str(next(_NUMBERS))
    folder.mkdir()
    half = len(X) // 2
    np.save(folder / "X-0.npy", X[:half])
    np.save(folder / "X-1.npy", X[half:])
    return _in_small_blocks(folder, n_jobs, memory_limit, scratch)


def in_scratch(X, **options):
    """The same with all row vectors in files."""
    return stored(X, scratch=True, **options)


def parquet(X, n_jobs=None, memory_limit=None):
    """Rows in a Parquet file of row groups of seven."""
    path = _FILES / f"{next(_NUMBERS)}.parquet"
    columns = {f"x{j}": X[:, j] for j in range(X.shape[1])}
    pyarrow.parquet.write_table(pyarrow.table(columns), path, row_group_size=7)
    return _in_small_blocks(path, n_jobs, memory_limit, False)


def _in_small_blocks(path, n_jobs, memory_limit, scratch):
    with small_blocks(memory_limit):
        rows = open_rows(path, n_jobs=n_jobs)
    if scratch:
        rows._room = 0
    return rows


@contextlib.contextmanager
def small_blocks(memory_limit):
    """Blocks of a few rows in files where memory_limit is small."""
    with pytest.MonkeyPatch.context() as patch:
        if memory_limit is not None:
            for name in ("BLOCK_BYTES", "LARGE_BLOCK_BYTES"):
                value = memory_limit // 4
                patch.setattr(f"widemargin.data.outofcore.stored.{name}", value)
        yield


def copied(X, n_jobs=None, memory_limit=None):
    """A copy in a file of rows in memory."""
    with small_blocks(memory_limit):
        return copied_rows(as_rows(X, memory_limit=memory_limit), n_jobs)


STORAGES = [
    _storage("float64", np.ascontiguousarray),
    _storage("float64-fortran", np.asfortranarray),
    _storage("float32", np.ascontiguousarray, np.float32),
    _storage("float32-fortran", np.asfortranarray, np.float32),
    _storage("read-only", read_only),
    _storage("memory-mapped", memory_mapped),
    _storage(
        "memory-mapped-float32-fortran",
        lambda X: memory_mapped(np.asfortranarray(X)),
        np.float32,
    ),
    _storage("strided", strided),
    _storage("strided-float32", strided, np.float32),
    _storage("reversed", reversed_rows),
    _storage("int16", np.ascontiguousarray, np.int16),
    _storage("uint8", np.ascontiguousarray, np.uint8),
    _storage("csr-matrix", sparse.csr_matrix),
    _storage("csr-array", sparse.csr_array),
    _storage("csr-int64-indices", long_indices),
    _storage("csr-mixed-indices", mixed_indices),
    _storage("csr-unsorted", unsorted),
    _storage("csr-duplicates", duplicated),
    _storage("csr-explicit-zeros", explicit_zeros),
    _storage("csr-unused-entries", unused_entries),
    _storage("csr-memory-mapped", memory_mapped_csr),
    _storage("csr-float32", sparse.csr_array, np.float32),
    _storage("csr-float32-int64-indices", long_indices, np.float32),
    _storage("csr-float32-duplicates", duplicated, np.float32),
    _storage("csr-int16", sparse.csr_array, np.int16),
    _storage("csr-uint8-duplicates", duplicated, np.uint8),
    _storage("csc", sparse.csc_array),
    _storage("coo", sparse.coo_array),
    _storage("stored", np.ascontiguousarray, rows=stored),
    _storage("stored-int16-scratch", np.ascontiguousarray, np.int16, rows=in_scratch),
    _storage("stored-parquet-float32", np.ascontiguousarray, np.float32, rows=parquet),
    _storage("stored-copied-float32", np.ascontiguousarray, np.float32, rows=copied),
    _storage("process", np.ascontiguousarray, rows=ProcessRows),
    _storage("process-csr-float32", sparse.csr_array, np.float32, rows=ProcessRows),
]

# Those of problems with a kernel, and those of linear ones.
KERNEL_SOLVERS = [name for name, kind in _SOLVERS.items() if kind.for_kernels]
SOLVERS = [name for name in _SOLVERS if name not in KERNEL_SOLVERS]

LOSSES = ["hinge", "squared_hinge"]
INTERCEPTS = ["free", "penalized", "none"]
SETTINGS = list(itertools.product(LOSSES, INTERCEPTS))


@pytest.fixture(scope="module")
def binary():
    return PROBLEMS["breast_cancer"]()


@pytest.fixture(scope="module")
def iris():
    X, y = load_iris(return_X_y=True)
    return X, np.array(["setosa", "versicolor", "virginica"])[y]


@pytest.fixture(params=[1, 2], ids=["1job", "2jobs"])
def n_jobs(request):
    """Threads."""
    return request.param


@pytest.fixture(params=SLICES)
def slice_bytes(request, monkeypatch):
    """Bytes of a slice of svmlight text."""
    monkeypatch.setattr("widemargin.data.svmlight.text.SLICE_BYTES", request.param)
    return request.param
