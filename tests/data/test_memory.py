"""Rows in memory: how often and from where data is read, and data of unusual types."""

import tracemalloc
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse

from tests.cases.process_rows import ProcessRows
from tests.cases.rows import (
    Case,
    assert_within,
    build,
    diagonal,
    keys_and_weights,
    on_every_view,
    on_some_storages,
)
from tests.conftest import csr, memory_mapped
from widemargin import as_rows
from widemargin.data.memory import LARGE_BLOCK_BYTES
from widemargin.numerics import linalg

# -- reading: how often, from where, how much memory -----------------------------------


@on_some_storages
@on_every_view
def test_reads_are_counted(storage, view):
    rows, X, _ = build(storage, view, Case(np.arange(24.0).reshape(8, 3), 3, None))
    m, n = X.shape
    assert rows.sweeps == 0
    rows.matvec(np.ones(n))
    assert rows.sweeps == 1
    rows.rmatvec(np.ones(m))
    rows.gram(np.ones(m))
    rows.gram(np.ones(m), np.zeros(m, dtype=bool))
    assert rows.sweeps == 4
    rows.moments
    rows.moments
    assert rows.sweeps == 5
    state = rows.state(key=0.0, weight=1.0)
    state.threshold(keys_and_weights, 2.0)
    state.sweep(_keys_max)
    assert rows.sweeps == 5


def _keys_max(part):
    return float(part.key.max())


def _memory(block, part):
    arrays = [block] if isinstance(block, np.ndarray) else [block.data, block.indices]
    return [arrays]


def as_np_matrix(X):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PendingDeprecationWarning)
        return np.asmatrix(X)


@pytest.mark.parametrize("memory_limit", [None, 1])
def test_blocks_are_views_of_dense_data(memory_limit):
    X = np.random.default_rng(0).normal(size=(20, 3))
    frozen = X.copy()
    frozen.flags.writeable = False
    for data in (
        X,
        np.asfortranarray(X),
        X.astype(np.float32),
        (10 * X).astype(np.int8),
        X[::2, ::2],
        X[::-1],
        frozen,
        memory_mapped(X),
        np.broadcast_to(X[0], X.shape),
        as_np_matrix(X),
        pd.DataFrame(X),
    ):
        rows = as_rows(data, memory_limit=memory_limit)
        memory = rows.sweep(_memory)
        assert all(np.shares_memory(block, data) for (block,) in memory)
        assert sum(len(block) for (block,) in memory) == len(data)


@pytest.mark.parametrize("memory_limit", [None, 1])
@pytest.mark.parametrize("index", [np.int32, np.int64])
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int16])
def test_blocks_are_views_of_sparse_data(memory_limit, index, dtype):
    X = sparse.random_array((20, 5), density=0.5, rng=0, format="csr").astype(dtype)
    X.data[:] = 1
    X = csr(X, indices=X.indices.astype(index), indptr=X.indptr.astype(index))
    before = X.data.copy(), X.indices.copy(), X.indptr.copy()
    rows = as_rows(X, memory_limit=memory_limit)
    for data, indices in rows.sweep(_memory):
        assert data.size == 0 or np.shares_memory(data, X.data)
        assert indices.size == 0 or np.shares_memory(indices, X.indices)
    rows.gram(np.ones(20))
    rows.moments
    for array, kept in zip((X.data, X.indices, X.indptr), before, strict=True):
        np.testing.assert_array_equal(array, kept)


def peak_memory(f):
    """Value of f, and bytes that it had allocated at once."""
    f()  # what is kept for the next call: thread pools, scipy's own
    tracemalloc.start()
    try:
        value = f()
        return value, tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_a_sweep_over_a_large_file_needs_little_memory():
    m, n, dtype = 400_000, 40, np.float32
    name = memory_mapped(np.ones((1, 1))).filename  # in the folder of the tests
    X = np.lib.format.open_memmap(name, mode="w+", dtype=dtype, shape=(m, n))  # 61 MiB
    X[::1000] = 1.0
    X.flush()
    rows = as_rows(np.load(name, mmap_mode="r"), n_jobs=1)
    # A block of 4 MiB of float32 is turned into float64 and scaled: 16 MiB, and the
    # vectors that go in and out.
    for read, vectors in [
        (lambda: rows.rmatvec(np.ones(m)), 2),
        (lambda: rows.matvec(np.ones(n)), 2),
        (lambda: rows.gram(np.ones(m)), 2),
    ]:
        value, peak = peak_memory(read)
        assert value.sum() > 0
        assert peak <= 20 * 2**20 + vectors * 8 * m


def test_wide_rows_are_cut_into_blocks_that_fit():
    # Not the 2048 rows of narrow data: 2 GiB a block in float64.
    X = np.broadcast_to(np.float32(1.0), (3000, 130_000))
    sizes = as_rows(X).sweep(lambda block, part: [block.nbytes])
    assert max(sizes) <= LARGE_BLOCK_BYTES


def test_a_million_columns_need_no_square_of_them():
    n = 10**6
    X = sparse.random_array((200, n), density=1e-5, rng=0, format="csr")
    rows = as_rows(X, n_jobs=1)
    w, v = np.random.default_rng(0).normal(size=n), np.ones(200)

    def read():
        A = rows.signed(np.ones(200))
        return rows.matvec(w), rows.rmatvec(v), rows.moments, A.rmatvec(v)

    (Xw, Xv, moments, _), peak = peak_memory(read)
    assert_within(Xw, X @ w, abs(X) @ np.abs(w), n)
    assert_within(Xv, X.T @ v, abs(X).T @ v, 200)
    assert_within(moments.mean, X.mean(axis=0), abs(X).mean(axis=0), 201)
    assert peak <= 20 * 8 * n


# -- data of unusual types -------------------------------------------------------------


@pytest.mark.parametrize(
    "convert",
    [
        lambda X: X.tolist(),
        lambda X: X.astype(bool),
        lambda X: X.astype(np.float16),
        lambda X: X.astype(">f8"),
        lambda X: X.astype(">i4"),
        lambda X: X.astype(np.longdouble),
        lambda X: X.astype(object),
        lambda X: X.astype(np.uint64),
        as_np_matrix,
        np.ma.masked_array,
        pd.DataFrame,
        lambda X: pd.DataFrame(X).astype({0: "Int64", 1: "float32"}),
        lambda X: pl.DataFrame(X),
        lambda X: sparse.csr_array(X.astype(bool)),
        lambda X: sparse.csr_array(X.astype(np.longdouble)),
        lambda X: csr(sparse.csr_array(X), data=np.repeat(X[X > 0], 2)[::2]),
        lambda X: csr(
            sparse.csr_array(X), indices=sparse.csr_array(X).indices.astype(">i8")
        ),
        lambda X: csr(
            sparse.csr_array(X), indices=sparse.csr_array(X).indices.astype("u2")
        ),
        sparse.bsr_array,
        sparse.lil_array,
        sparse.dok_array,
        sparse.dia_array,
    ],
)
def test_other_types_are_converted(convert):
    X = np.array([[1.0, 0.0, 1.0], [0.0, 1.0, 1.0]])
    rows = as_rows(convert(X))
    d = np.array([1.0, 4.0])
    np.testing.assert_array_equal(rows.gram(d), X.T @ (d[:, np.newaxis] * X))
    np.testing.assert_array_equal(rows.matvec([1.0, 2.0, 4.0]), X @ [1.0, 2.0, 4.0])
    np.testing.assert_array_equal(linalg.dense(rows.take([1])), X[[1]])


def test_arguments_of_small_types_are_summed_in_float64():
    X = np.full((300, 2), 200, dtype=np.uint8)
    for data in (X, sparse.csr_array(X)):
        rows = as_rows(data)
        np.testing.assert_array_equal(
            rows.rmatvec(np.full(300, 2, np.uint8)), [120000.0] * 2
        )
        np.testing.assert_array_equal(
            rows.matvec(np.array([2, 2], np.uint8)), [800.0] * 300
        )
    X = np.full((2, 1), 2.0**24 + 2, dtype=np.float32)
    answer = as_rows(X).rmatvec(np.array([1.0, 2.0**-24], dtype=np.float32))
    assert answer[0] == 2.0**24 + 3.0 + 2.0**-23


@pytest.mark.parametrize("index", [np.int32, np.int64])
def test_entries_that_repeat_add_up(index):
    # 100 + 100 is none of int8: a stored 200 would be.
    for dtype in (np.int8, np.float32, np.float64):
        X = csr(
            sparse.csr_array((2, 2)),
            data=np.array([100, 3, 100, 1], dtype=dtype),
            indices=np.array([1, 0, 1, 1], dtype=index),
            indptr=np.array([0, 3, 4], dtype=index),
        )
        D = np.array([[3.0, 200.0], [0.0, 1.0]])
        for dense_from in (0.0, 2.0):  # always, never through a dense block
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(linalg, "DENSE_GRAM_DENSITY", dense_from)
                np.testing.assert_array_equal(as_rows(X).gram(np.ones(2)), D.T @ D)
        rows = as_rows(X)
        np.testing.assert_array_equal(rows.moments.mean, D.mean(axis=0))
        np.testing.assert_array_equal(rows.moments.std, D.std(axis=0))
        state = rows.state(d=1.0)
        np.testing.assert_array_equal(rows.sweep(diagonal, state), (D * D).sum(axis=0))


@pytest.mark.parametrize("shape", [(1, 1), (1, 5), (5, 1)])
@pytest.mark.parametrize("convert", [np.array, sparse.csr_array, ProcessRows])
def test_the_smallest_shapes(shape, convert):
    X = np.arange(1.0, 1.0 + np.prod(shape)).reshape(shape)
    rows = as_rows(convert(X))
    m, n = shape
    np.testing.assert_array_equal(rows.matvec(np.ones(n)), X.sum(axis=1))
    np.testing.assert_array_equal(rows.rmatvec(np.ones(m)), X.sum(axis=0))
    assert rows.matvec(np.ones((n, 0))).shape == (m, 0)
    assert rows.rmatvec(np.ones((m, 0))).shape == (n, 0)
    np.testing.assert_array_equal(
        rows.signed(-np.ones(m)).matvec(np.ones(n + 1)), -1 - X.sum(axis=1)
    )
    np.testing.assert_array_equal(rows.gram(np.zeros(m)), np.zeros((n, n)))


@pytest.mark.parametrize("convert", [np.array, sparse.csr_array])
def test_products_of_no_rows(convert):
    none = convert(np.ones((4, 3)))[np.array([], dtype=int)]
    for block in (none, linalg.SignedBlock(none, np.ones(0), True)):
        n = block.shape[1]
        np.testing.assert_array_equal(linalg.gram(block, np.ones(0)), np.zeros((n, n)))
        np.testing.assert_array_equal(
            linalg.gram_diagonal(block, np.ones(0)), np.zeros(n)
        )
        np.testing.assert_array_equal(
            linalg.rmatvec(block, np.ones((0, 2))), np.zeros((n, 2))
        )
        assert linalg.matvec(block, np.ones(n)).shape == (0,)
        assert linalg.column_sums(block)[0].shape == (n,)
