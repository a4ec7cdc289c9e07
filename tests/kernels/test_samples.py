"""Packed samples and dense rows: the same bits however they come to be there."""

import numpy as np
import pytest
from scipy import sparse

from widemargin import Kernel, Problem, _core, solve
from widemargin.data.memory import as_rows
from widemargin.kernels import packed
from widemargin.kernels.core_engine import CoreEngine
from widemargin.kernels.layout import Layout
from widemargin.kernels.matrix import Columns
from widemargin.kernels.packed import Batches, Parts, Samples
from widemargin.numerics import linalg
from widemargin.solvers import IRWLS

FORM = Kernel("rbf", gamma=0.1).form
LAPLACIAN = Kernel("laplacian", gamma=0.1).form


def stored(kind, m=300, n=20):
    """Rows of one kind."""
    rng = np.random.default_rng(0)
    share = 0.1 if kind in ("few", "ones") else 0.6
    X = sparse.random_array((m, n), density=share, rng=rng, format="csr")
    if kind == "ones":
        X.data[:] = 1.0
    return X.toarray() + 3.0 if kind == "dense" else X


@pytest.mark.parametrize("places", [3, packed.LARGE_BYTES // 8, packed.LARGE_BYTES])
def test_rooms_of_any_size_are_aligned_and_their_own(places):
    rooms = [packed.aligned((2, places // 2), np.float64) for _ in range(2)]
    for k, room in enumerate(rooms):
        assert room.__array_interface__["data"][0] % 64 == 0
        assert room.shape == (2, places // 2)
        room[:] = k
    part = rooms[0][1, 1:]
    del room, rooms[:]
    other = packed.aligned((2, places // 2), np.float64)
    other[:] = 7.0
    np.testing.assert_array_equal(part, 0.0)  # a view keeps its room


@pytest.mark.parametrize("kind", ["few", "many", "dense"])
@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int16])
@pytest.mark.parametrize("order", ["C", "F", "parts"])
def test_dense_rows_become_the_csr_array_that_scipy_makes(order, dtype, kind):
    X = np.asarray(linalg.dense(10.0 * stored(kind))).astype(dtype)
    X[17] = 0
    X[3, 4] = -0.0
    if dtype != np.int16:
        X[5, :2] = np.nan, np.inf
    Z = X[::2, ::-1] if order == "parts" else np.asarray(X, order=order)
    found, expected = linalg.sparse_rows(Z), sparse.csr_array(Z)
    assert found.shape == expected.shape
    for name in ("data", "indices", "indptr"):
        mine, theirs = getattr(found, name), getattr(expected, name)
        assert mine.dtype == theirs.dtype
        np.testing.assert_array_equal(mine, theirs)


@pytest.mark.parametrize("form", [FORM, LAPLACIAN], ids=["rbf", "laplacian"])
@pytest.mark.parametrize("kind", ["dense", "many", "few", "ones"])
@pytest.mark.parametrize("m", [128, 200])
def test_replaced_samples_have_the_bits_of_new_ones(m, kind, form):
    X, rng = stored(kind), np.random.default_rng(1)
    layout = Layout(form, X, np.float32)
    assert layout.is_ones == (kind == "ones" and form == FORM)
    before = rng.permutation(300)[:m]
    samples = Samples(layout, X, before, Parts(m))
    for changed in (
        slice(0, 0),
        slice(0, 1),
        slice(64, 128),
        slice(60, m),
        slice(0, m),
    ):
        index = before.copy()
        index[changed] = rng.integers(0, 300, len(index[changed]))
        samples.replace(X, index, before)
        new = Samples(layout, X, index, Parts(m))
        np.testing.assert_array_equal(samples.norms, new.norms)
        np.testing.assert_array_equal(samples._packed, new._packed)
        before = index


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("kind", ["dense", "many", "few", "ones"])
def test_bytes_are_known_before_samples_are_packed(kind, dtype):
    engine = CoreEngine(stored(kind), Kernel("rbf", gamma=0.1), dtype, 1)
    n_bytes, cost, early = engine.n_bytes, engine.cost, engine._lengths
    assert "_all" not in vars(engine)
    assert n_bytes == engine._all.n_bytes + engine._batches.n_bytes
    assert cost == engine._all.entries
    del vars(engine)["_lengths"]
    np.testing.assert_allclose(early, engine._lengths, rtol=1e-5, atol=1e-30)


def test_samples_of_rows_that_are_merged_are_never_packed():
    X = sparse.vstack([stored("ones", 1000)] * 2).tocsr()
    y = np.where(np.arange(2000) % 1000 < 500, 1.0, -1.0)
    problem = Problem(X, y, 1.0, kernel=Kernel("rbf", gamma=0.1))
    solution = solve(problem, IRWLS(), tol=1e-4)
    assert solution.status == "solved"
    assert "_all" not in vars(problem.columns._source)


@pytest.mark.parametrize("real", [np.float32, np.float64])
@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int16, np.uint8, int])
@pytest.mark.parametrize("is_sparse", [False, True])
def test_dense_rows_of_a_batch_are_rounded_once(is_sparse, dtype, real):
    X = (100.0 * stored("dense")).astype(dtype)
    if is_sparse:
        X = sparse.csr_array(X.astype(dtype if dtype == np.float32 else np.float64))
    batches = Batches(layout := Layout(FORM, X, real), X)
    assert not layout.is_sparse
    assert layout.center.all()
    for J in (np.array([7, 0, 299, 7]), slice(5, 9), np.arange(0)):
        expected = layout.rows(X[J]).ravel()
        found = batches._dense(J)
        assert found.dtype == real
        np.testing.assert_array_equal(found, expected)


def test_dense_rows_add_entries_that_occur_twice_and_lie_in_the_matrix():
    X = sparse.csr_array((np.array([0.1, 0.2]), [1, 1], [0, 2]), shape=(1, 3))
    out, center = np.empty(3), np.ones(3)
    _core.dense_rows(linalg.in_core(X), np.zeros(1, np.int64), center, out)
    np.testing.assert_array_equal(out, [-1.0, (0.1 + 0.2) - 1.0, -1.0])
    for index, short in (([1], out), ([-1], out), ([0], out[:2])):
        with pytest.raises(ValueError, match="fit"):
            _core.dense_rows(linalg.in_core(X), np.array(index), center, short)


@pytest.mark.parametrize("work", [0, 1 << 40])
@pytest.mark.parametrize("begin", [0, 70, 300])
def test_a_block_is_mirrored_by_any_threads(begin, work, monkeypatch):
    monkeypatch.setattr(packed, "SHARED_WORK", work)
    columns = Columns(as_rows(np.eye(4)), Kernel("rbf", gamma=1.0), n_jobs=2)
    K = np.random.default_rng(0).normal(size=(500, 512)).astype(np.float32)
    expected, end = K.copy(), begin + 200
    expected[:begin, begin:end] = K[begin:end, :begin].T
    expected[end:, begin:end] = K[begin:end, end:500].T
    columns.mirror(K, begin, end, 500)
    np.testing.assert_array_equal(K, expected)
