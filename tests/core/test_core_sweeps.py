"""Dense products, fused sweeps, products of rows and groups of rows in C++."""

import numpy as np
import pytest
from scipy import sparse

from widemargin import _core
from widemargin.data.equal_rows import equal_rows
from widemargin.numerics import linalg

TYPES = [np.float64, np.float32, np.int16, np.uint8]
SHAPES = [(0, 3), (1, 1), (3, 8), (4, 7), (7, 33), (130, 16), (259, 200)]
SIMD = _core.simd_levels()


def dense(k, n, dtype, seed=0):
    rng = np.random.default_rng(seed)
    X = (
        rng.normal(size=(k, n))
        if np.dtype(dtype).kind == "f"
        else 99 * rng.random((k, n))
    )
    return X.astype(dtype)


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("simd", SIMD)
def test_dense_products_are_summed_in_float64(dtype, shape, simd):
    X, (k, n) = dense(*shape, dtype), shape
    rng = np.random.default_rng(1)
    w, u, start = rng.normal(size=n), rng.normal(size=k), rng.normal(size=n)
    u[::3] = 0.0
    out, g = np.full(k, np.nan), start.copy()
    _core.dense_matvec(X, w, out, simd)
    _core.dense_rmatvec(X, u, g, simd)
    exact = X.astype(np.longdouble)
    np.testing.assert_allclose(out, exact @ w, rtol=1e-13, atol=1e-13 * n * 99)
    np.testing.assert_allclose(g, start + exact.T @ u, rtol=1e-13, atol=1e-13 * k * 99)
    sums, squares = np.zeros((2, n))
    _core.dense_column_sums(X, sums, squares, simd=simd)
    absolute = np.abs(exact).sum(axis=0)
    assert np.all(np.abs(sums - exact.sum(axis=0)) <= k * 2.0**-53 * absolute)
    np.testing.assert_allclose(squares, (exact**2).sum(axis=0), rtol=k * 2.0**-52)
    for absolute, sizes in ((True, np.abs), (False, np.square)):
        farthest = sizes(exact - start).sum(axis=1).max(initial=0.0)
        found = _core.dense_reach(X, start, absolute, simd=simd)
        np.testing.assert_allclose(found, float(farthest), rtol=n * 2.0**-50)


@pytest.mark.parametrize("m", [1023, 1024, 3000])
def test_threads_change_no_bit_of_what_columns_and_rows_add_up_to(m):
    X, found = dense(m, 7, np.float64), []
    X[m // 2] *= 9.0
    for threads in (1, 2, 5):
        sums, squares = np.zeros((2, 7))
        _core.dense_column_sums(X, sums, squares, threads)
        far = _core.dense_reach(X, sums / m, False, threads)
        found.append([*sums, *squares, far])
    np.testing.assert_array_equal(found[1:], [found[0]] * 2)
    np.testing.assert_allclose(found[0][:7], X.sum(axis=0), atol=1e-11)
    X[-1, -1] = np.nan
    assert np.isnan(_core.dense_reach(X, np.zeros(7), True, 2))


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("n", [3, 8, 9, 33])
@pytest.mark.parametrize("simd", SIMD)
def test_the_score_of_a_row_has_the_same_bits_among_any_rows(dtype, n, simd):
    X, w = dense(7, n, dtype), np.random.default_rng(1).normal(size=n)
    whole = np.empty(7)
    _core.dense_matvec(X, w, whole, simd)
    for first in range(7):
        some = np.empty(7 - first)
        _core.dense_matvec(X[first:], w, some, simd)
        np.testing.assert_array_equal(some, whole[first:])


@pytest.mark.parametrize("simd", SIMD)
def test_the_farthest_row_may_be_at_infinity_or_nowhere(simd):
    X, zero = np.ones((3, 9)), np.zeros(9)
    X[1, 4] = 1e200
    assert _core.dense_reach(X, zero, False, simd=simd) == np.inf
    X[1, 4] = -np.inf
    assert _core.dense_reach(X, zero, True, simd=simd) == np.inf
    X[1, 4] = np.nan
    assert np.isnan(_core.dense_reach(X, zero, False, simd=simd))


@pytest.mark.parametrize("dtype", TYPES)
def test_products_of_blocks_do_not_depend_on_their_order_in_memory(dtype):
    X, rng = dense(50, 12, dtype), np.random.default_rng(2)
    w, U = rng.normal(size=12), rng.normal(size=(50, 2))
    for block in (X, np.asfortranarray(X), np.repeat(X, 2, axis=1)[:, ::2]):
        np.testing.assert_allclose(linalg.matvec(block, w), X @ w, rtol=1e-12)
        np.testing.assert_allclose(linalg.rmatvec(block, U), X.T @ U, rtol=1e-10)
        assert linalg.matvec(block, w).dtype == np.float64
    with pytest.raises(ValueError, match="must have length|mismatch"):
        linalg.matvec(X, np.ones(5))


def block_of(X, kind, y, intercept, simd=-1):
    """Rows Y [X 1] or Y X for the sweeps of the core."""
    if kind == "dense":
        return _core.block(X, y, intercept, simd)
    return _core.block(linalg.in_core(sparse.csr_array(X)), y, intercept, simd)


def test_a_block_keeps_its_arrays():
    rng = np.random.default_rng(5)
    X, ones = rng.normal(size=(1000, 50)), np.ones(1000)
    for kind in ("dense", "csr"):
        A = block_of(X.copy(), kind, ones.copy(), True)
        other = [np.full((1000, 50), np.nan) for _ in range(20)]  # where they lay
        g, f = np.zeros(51), np.empty(1000)
        v = rng.normal(size=51)
        _core.penalty_sweep(A, v, ones, 0.5 * ones, 1.0, f, np.empty(1000), g)
        np.testing.assert_allclose(f, X @ v[:50] + v[50], atol=1e-11)
        del other


@pytest.mark.cover(2)
@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("shape", [*SHAPES, (65, 8), (500, 129)])
@pytest.mark.parametrize("simd", SIMD)
def test_dense_gram(dtype, shape, simd):
    X, (k, n) = dense(*shape, dtype), shape
    rng = np.random.default_rng(6)
    d = rng.random(k) * (rng.random(k) < 0.7)
    for extra in (0, 1):
        G = np.full((n + extra, n + extra), np.nan)
        _core.dense_gram(X, d, G, simd)
        A = np.c_[X, np.ones(k)][:, : n + extra].astype(np.longdouble)
        expected = (A.T @ (d[:, None] * A)).astype(float)
        scale = np.abs(expected).max(initial=1.0)
        np.testing.assert_allclose(G, expected, rtol=0.0, atol=1e-14 * (k + 1) * scale)
        np.testing.assert_array_equal(G, G.T)


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("shape", [(1, 1), (70, 9), (301, 33), (500, 129)])
@pytest.mark.parametrize("simd", SIMD)
def test_a_rough_dense_gram_adds_short_blocks_up_in_float64(dtype, shape, simd):
    """So that it loses a digit of float32, however many rows there are."""
    X, (k, n) = dense(*shape, dtype), shape
    d = np.random.default_rng(6).normal(size=k)
    A = np.c_[np.tile(X, (20, 1)), np.ones(20 * k)].astype(float)
    G = np.full((n + 1, n + 1), np.nan)
    _core.dense_gram(np.tile(X, (20, 1)), np.tile(d, 20), G, simd, True)
    d = np.tile(d, 20)
    root = np.sqrt(A.T**2 @ np.abs(d))
    expected = A.T @ (d[:, None] * A)
    np.testing.assert_array_less(np.abs(G - expected), 4e-7 * np.outer(root, root))
    np.testing.assert_array_equal(G, G.T)
    assert k < 70 or (expected != G).any()


@pytest.mark.parametrize("weight", [1e-60, -1e-60, 1e60])
def test_weights_that_float32_cannot_hold_make_no_rough_gram(weight):
    G = np.empty((2, 2))
    _core.dense_gram(np.full((3, 2), 1.0), np.full(3, weight), G, rough=True)
    assert not np.isfinite(G.trace())


@pytest.mark.parametrize("n", [5, 150])
@pytest.mark.parametrize("convert", [np.array, np.asfortranarray, sparse.csr_array])
def test_weights_of_a_gram_matrix_may_have_either_sign(convert, n):
    """What has changed since the last one is added, and taken away."""
    rng = np.random.default_rng(3)
    X, d = rng.normal(size=(40, n)), rng.normal(size=40)
    expected = X.T @ (d[:, None] * X)
    found = linalg.gram(convert(X), d)
    np.testing.assert_allclose(found, expected, rtol=0.0, atol=1e-12)


@pytest.mark.parametrize("dtype", [np.uint8, np.float32, np.float64])
@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("n", [40, 150])
def test_a_gram_matrix_in_float32_loses_its_digits_of_the_trace(dtype, intercept, n):
    rng = np.random.default_rng(4)
    X, d = (9.0 * rng.random((600, n))).astype(dtype), rng.normal(size=600)
    A = np.c_[X, np.ones(600)][:, : n + intercept].astype(float)
    expected = A.T @ (d[:, None] * A)
    found = linalg.gram(X, d, intercept, np.float32)
    assert found.dtype == np.float64
    lost = np.abs(found - expected).max() / (A.T @ (np.abs(d)[:, None] * A)).trace()
    assert 1e-12 < lost < 2.0**-24


def test_a_gram_matrix_that_float32_cannot_hold_is_not_finite():
    """Without a warning: its trace tells."""
    X = np.full((3, 150), 1e30)
    assert np.isfinite(linalg.gram(X, np.full(3, 1e-60), dtype=np.float32)).all()
    assert not np.isfinite(linalg.gram(X, np.ones(3), dtype=np.float32).trace())


@pytest.mark.parametrize("simd", SIMD)
@pytest.mark.parametrize("kind", ["dense", "csr"])
@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("hinge", [True, False])
def test_normal_sweep_is_its_formula(simd, kind, intercept, hinge):
    rng = np.random.default_rng(7)
    k, n = 301, 30
    X = rng.normal(size=(k, n)) * (rng.random((k, n)) < 0.6)
    y, C = np.sign(rng.normal(size=k)), rng.uniform(0.1, 2.0, k)
    vectors = list(rng.uniform(0.1, 1.0, (8, k)))
    alpha, _, s, xi, d, *_ = vectors
    A = y[:, None] * (np.c_[X, np.ones(k)] if intercept else X)
    block, width = block_of(X, kind, y, intercept, simd), n + intercept
    U = np.stack([alpha, d * (s - xi if hinge else s), d * y])
    sums = np.zeros((3, width))
    _core.normal_sweep(block, C, vectors, sums, None, hinge)
    np.testing.assert_allclose(sums, U @ A, atol=1e-11)
    gram, again = np.full((width, width), np.nan), np.zeros((3, width))
    if kind == "csr":
        with pytest.raises(ValueError, match="only dense rows"):
            _core.normal_sweep(block, C, vectors, again, gram, hinge)
        return
    _core.normal_sweep(block, C, vectors, again, gram, hinge)
    np.testing.assert_array_equal(again, sums)
    np.testing.assert_allclose(gram, A.T @ (d[:, None] * A), atol=1e-11)


@pytest.mark.parametrize("simd", SIMD)
@pytest.mark.parametrize("kind", ["dense", "csr"])
@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize(("k", "n"), [(1, 1), (9, 5), (300, 31)])
def test_penalty_sweep_is_its_formula(simd, kind, intercept, k, n):
    rng = np.random.default_rng(k)
    X = rng.normal(size=(k, n)) * (rng.random((k, n)) < 0.6)
    y, C = np.sign(rng.normal(size=k)), rng.uniform(0.1, 2.0, k)
    v, multiplier, s = rng.normal(size=n + intercept), C * rng.random(k), 0.7
    f, alpha, g = np.empty(k), np.empty(k), np.zeros(v.size)
    block = block_of(X, kind, y, intercept, simd)
    *sums, _, _ = _core.penalty_sweep(block, v, C, multiplier, s, f, alpha, g)

    A = y[:, None] * (np.c_[X, np.ones(k)] if intercept else X)
    t = 1.0 - A @ v
    a = np.clip(multiplier + s * C * t, 0.0, C)
    value = a @ t - np.sum((a - multiplier) ** 2 / (2 * s * C))
    np.testing.assert_allclose(f, A @ v, atol=1e-12)
    np.testing.assert_allclose(alpha, a, atol=1e-12)
    np.testing.assert_allclose(g, A.T @ a, atol=1e-11)
    expected = (C @ np.maximum(t, 0.0), a.sum(), value)
    np.testing.assert_allclose(sums, expected, atol=1e-11)

    again, known = np.zeros(v.size), f.copy()  # without v: with the scores as they are
    *sums2, _, _ = _core.penalty_sweep(
        block, None, C, multiplier, s, known, alpha, again
    )
    np.testing.assert_array_equal(known, f)
    np.testing.assert_array_equal(again, g)
    assert sums2 == sums


@pytest.mark.parametrize("simd", SIMD)
@pytest.mark.parametrize("kind", ["dense", "csr"])
@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("hinge", [True, False])
@pytest.mark.parametrize(("k", "n"), [(1, 1), (9, 5), (300, 31)])
def test_penalty_sweep_counts_its_rows(simd, kind, intercept, hinge, k, n):
    """The change of A'D A since rows were counted, and that of the squared hinge."""
    rng = np.random.default_rng(k)
    X = rng.normal(size=(k, n)) * (rng.random((k, n)) < 0.6)
    y, C = np.sign(rng.normal(size=k)), rng.uniform(0.1, 2.0, k)
    v, s = rng.normal(size=n + intercept), 0.7 if hinge else 2.0
    multiplier = C * rng.random(k) if hinge else None
    before = rng.random(k) < 0.5
    f, g, counted, d = (
        np.empty(k),
        np.zeros(v.size),
        before.astype(np.uint8),
        np.empty(k),
    )
    gram = np.empty((v.size, v.size)) if kind == "dense" else None
    block = block_of(X, kind, y, intercept, simd)
    *sums, active, changed = _core.penalty_sweep(
        block, v, C, multiplier, s, f, None, g, counted, d, gram
    )
    A = y[:, None] * (np.c_[X, np.ones(k)] if intercept else X)
    t = 1.0 - A @ v
    if hinge:
        a = np.clip(multiplier + s * C * t, 0.0, C)
        inside = (a > 0.0) & (a < C)
    else:
        a = 2.0 * C * np.maximum(t, 0.0)
        inside = a > 0.0
        loss = C @ np.maximum(t, 0.0) ** 2
        expected = loss, a.sum() - np.sum(a * a / (4.0 * C)), loss
        np.testing.assert_allclose(sums, expected, atol=1e-10)
    np.testing.assert_allclose(g, A.T @ a, atol=1e-10)
    np.testing.assert_array_equal(counted, inside)
    assert (active, changed) == (inside.sum(), np.sum(inside != before))
    np.testing.assert_array_equal(d, C * (inside.astype(float) - before))
    if gram is not None:
        np.testing.assert_allclose(gram, A.T @ (d[:, None] * A), atol=1e-10)
        counted, rough = before.astype(np.uint8), np.empty_like(gram)
        _core.penalty_sweep(
            block, v, C, multiplier, s, f, None, g, counted, None, rough, True
        )
        np.testing.assert_allclose(rough, gram, atol=3e-7 * (A.T**2 @ C).sum())


@pytest.mark.parametrize("kind", ["dense", "csr"])
def test_signs_may_be_bytes_and_d_need_not_be_written(kind):
    """The same bits, over several chunks of rows."""
    rng = np.random.default_rng(7)
    X, y = rng.normal(size=(301, 30)), np.sign(rng.normal(size=301))
    C, v = rng.uniform(0.1, 2.0, 301), rng.normal(size=31)
    found = []
    for signs, d in ((y, np.empty(301)), (y.astype(np.int8), None)):
        f, g, counted = np.empty(301), np.zeros(31), np.zeros(301, np.uint8)
        gram = np.empty((31, 31)) if kind == "dense" else None
        A = block_of(X, kind, signs, True)
        out = f, None, g, counted, d, gram
        sums = _core.penalty_sweep(A, v, C, None, 2.0, *out)
        found.append([sums, f, g, counted, *([] if gram is None else [gram])])
    for one, other in zip(*found, strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("simd", SIMD)
@pytest.mark.parametrize("hinge", [True, False])
def test_penalty_slope_is_the_derivative_of_the_value(simd, hinge):
    rng = np.random.default_rng(3)
    k, s = 101, 1.3 if hinge else 2.0
    C, f, new = rng.uniform(0.1, 2.0, k), rng.normal(size=k), rng.normal(size=k)
    multiplier = C * rng.random(k) if hinge else np.zeros(k)
    bound = C if hinge else np.inf

    def value(t):
        v = 1.0 - f - t * (new - f)
        a = np.clip(multiplier + s * C * v, 0.0, bound)
        return a @ v - np.sum((a - multiplier) ** 2 / (2 * s * C))

    for t in (0.0, 0.3, 0.9):
        given = multiplier if hinge else None
        slope, curvature = _core.penalty_slope(C, given, s, f, new, t, simd)
        assert slope == pytest.approx(
            (value(t + 1e-6) - value(t - 1e-6)) / 2e-6, rel=1e-6
        )
        inside = np.clip(multiplier + s * C * (1 - f - t * (new - f)), 0, bound)
        inside = (inside > 0) & (inside < bound)
        expected = np.sum((s * C * (new - f) ** 2)[inside])
        assert curvature == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("n", [2, 4])
def test_sweeps_that_do_not_fit_are_refused(n):
    k, X = 3, np.ones((3, 3))
    one = np.ones(k)
    A = _core.block(X, one, False)
    with pytest.raises(ValueError, match="do not fit each other"):
        _core.penalty_sweep(
            A, np.ones(n), one, one, 1.0, one.copy(), one.copy(), np.ones(3)
        )
    with pytest.raises(ValueError, match="do not fit each other"):
        _core.dense_matvec(X, np.ones(n), np.ones(k))
    with pytest.raises(ValueError, match="do not fit each other"):
        _core.dense_rmatvec(X, np.ones(n), np.ones(k))
    with pytest.raises(ValueError, match="do not fit each other"):
        _core.penalty_slope(one, one, 1.0, one, np.ones(n), 0.0)


# -- products of rows ------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["dense", "csr", "csr, twice"])
@pytest.mark.parametrize("intercept", [True, False])
def test_row_products(kind, intercept):
    rng = np.random.default_rng(4)
    X = rng.normal(size=(40, 25)) * (rng.random((40, 25)) < 0.4)
    block = X
    if kind != "dense":
        block = sparse.csr_array(X)
    if kind == "csr, twice":  # every entry in two halves
        half = sparse.csr_array(X.shape)
        half.data, half.indices = (
            np.repeat(block.data / 2, 2),
            np.repeat(block.indices, 2),
        )
        half.indptr = 2 * block.indptr
        block = half
    scale, y = rng.random(25 + intercept), np.sign(rng.normal(size=40))
    A = y[:, None] * (np.c_[X, np.ones(40)] if intercept else X)
    found = linalg.row_products(linalg.SignedBlock(block, y, intercept), scale)
    np.testing.assert_allclose(found, (A * scale) @ A.T, atol=1e-12)


def test_row_products_that_do_not_fit_are_refused():
    S = sparse.csr_array(np.eye(3))
    with pytest.raises(ValueError, match="do not fit each other"):
        _core.csr_row_products(linalg.in_core(S), np.ones(3), np.ones((2, 2)))


# -- groups of equal rows --------------------------------------------------------------


@pytest.mark.parametrize("kind", ["dense", "csr"])
@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.uint8])
@pytest.mark.parametrize("m", [1, 10, 3000])
def test_equal_rows(kind, dtype, m, monkeypatch):
    monkeypatch.setattr("widemargin.data.equal_rows.GROUPED_ROWS", 700)  # several calls
    rng = np.random.default_rng(m)
    X = rng.integers(0, 3, (m, 5)).astype(dtype)
    y = np.where(rng.random(m) < 0.5, 1.0, -1.0)
    rows = sparse.csr_array(X) if kind == "csr" else X
    first, group = equal_rows(rows, y)
    together = np.c_[X.astype(float), y]
    np.testing.assert_array_equal(together[first][group], together)
    assert len(first) == len(np.unique(together, axis=0))
    np.testing.assert_array_equal(group[first], np.arange(len(first)))


@pytest.mark.parametrize("most", [0, 1, 500, 2500, 3000])
def test_more_groups_than_asked_for_are_not_all_found(most):
    X = np.arange(3000.0)[:, np.newaxis] // 2
    first, group = equal_rows(X, np.ones(3000), most)
    assert min(most + 1, 1500) <= len(first) <= min(2 * most + 1, 1500)
    np.testing.assert_array_equal(first, 2 * np.arange(len(first)))
    np.testing.assert_array_equal(group[first], np.arange(len(first)))


def test_rows_that_differ_in_their_last_bytes_are_different():
    X = np.zeros((4, 3), np.float32)
    X[1, 2], X[2, 2] = 1.0, np.nextafter(np.float32(1), np.float32(2))
    first, _ = equal_rows(X, np.ones(4))
    np.testing.assert_array_equal(first, [0, 1, 2])


def test_groups_that_do_not_fit_are_refused():
    rows, one = np.zeros((4, 8), np.uint8), np.ones(4)
    group, first = np.empty(4, np.int64), np.empty(4, np.int64)
    for begin, end, found, slots in (
        (0, 5, 0, 16),
        (2, 1, 0, 16),
        (0, 4, 1, 16),
        (0, 4, 0, 8),
        (0, 4, 0, 15),
        (0, 4, -1, 16),
    ):
        table = np.full(slots, -1, np.int64)
        with pytest.raises(ValueError, match="do not fit each other"):
            _core.group_rows(rows, one, begin, end, found, group, first, table)
