"""Products of CSR rows in C++."""

import numpy as np
import pytest
from scipy import sparse

from widemargin import _core

U = 2.0**-53  # unit roundoff


def frozen(k=3):
    array = np.ones(k)
    array.flags.writeable = False
    return array


def csr_arrays(k, n, real, index, rng):
    """Rows with unsorted and repeated columns, and empty ones.

    With them the dense matrix, that of absolute entries, and how often each is stored.
    """
    counts = rng.integers(0, 2 * n, k) * (rng.random(k) < 0.8)
    indptr = np.concatenate([[0], np.cumsum(counts)]).astype(index)
    indices = rng.integers(0, n, indptr[-1]).astype(index)
    data = rng.normal(size=indptr[-1]).astype(real)
    dense, scale, stored = np.zeros((3, k, n))
    at = np.repeat(np.arange(k), counts), indices
    np.add.at(dense, at, data.astype(np.float64))
    np.add.at(scale, at, np.abs(data.astype(np.float64)))
    np.add.at(stored, at, 1)
    return (indptr, indices, data), dense, scale, stored


def assert_summed(actual, expected, scale, stored, terms):
    """The kernel adds up as many products as are stored, the reference many fewer.

    Each has at most three roundings more: of the product, of the start.
    """
    stored = stored.max(initial=0)
    bound = 1.01 * U * ((stored + 3) + (stored + terms + 3)) * scale
    assert np.all(np.abs(actual - expected) <= bound)


@pytest.mark.parametrize("real", [np.float32, np.float64])
@pytest.mark.parametrize("index", [np.int32, np.int64])
@pytest.mark.parametrize("k", [0, 1, 2, 7, 100])
def test_csr_products(real, index, k):
    rng = np.random.default_rng(k)
    for n in (1, 5, 30):
        arrays, X, scale, stored = csr_arrays(k, n, real, index, rng)
        w, d = rng.normal(size=n), rng.exponential(size=k) * (rng.random(k) < 0.7)
        out = np.full(k, np.nan)
        _core.csr_matvec(_core.csr(*arrays, n), w, out)
        assert_summed(out, X @ w, scale @ np.abs(w), stored.sum(axis=1), n)

        u, start = rng.normal(size=k), rng.normal(size=n)
        out = start.copy()
        _core.csr_rmatvec(_core.csr(*arrays, n), u, out)
        bound = scale.T @ np.abs(u) + np.abs(start)
        assert_summed(out, start + X.T @ u, bound, stored.sum(axis=0), k)

        out, squares = rng.normal(size=(2, n))
        expected = out + X.T @ d, squares + (X * X).T @ d
        bounds = scale.T @ d + np.abs(out), (scale**2).T @ d + np.abs(squares)
        _core.csr_column_sums(_core.csr(*arrays, n), d, out, squares)
        assert_summed(out, expected[0], bounds[0], stored.sum(axis=0), k)
        terms = 2 * stored.sum(axis=0) + 3  # of squares of sums
        assert_summed(squares, expected[1], bounds[1], terms, k)

        check_gram(arrays, X, scale, stored, d)
        check_weighted_product(arrays, X, scale, stored, d)
        ones = np.ones((k, 1))
        wide = [np.hstack([part, ones]) for part in (X, scale, stored)]
        check_gram(arrays, *wide, d, n)
        check_weighted_product(arrays, *wide, d, n)
        X = X.astype(real).astype(float)
        S = sparse.csr_array(X.astype(real))
        rising = S.indptr.astype(index), S.indices.astype(index), S.data
        check_gram(rising, X, np.abs(X), (X != 0.0) * 1.0, d)


def check_gram(arrays, X, scale, stored, d, n=None):
    """X'DX, also where X has a column of ones beside the n columns of the arrays."""
    order = X.shape[1]
    start = np.random.default_rng(order).normal(size=(order, order))
    start += start.T
    out = start.copy()
    _core.csr_gram(_core.csr(*arrays, n or order), d, out)
    G = start + X.T @ (d[:, np.newaxis] * X)
    bound = scale.T @ (d[:, np.newaxis] * scale) + np.abs(start)
    assert_summed(out, G, bound, stored.T @ stored, len(d))
    np.testing.assert_array_equal(out, out.T)


def check_weighted_product(arrays, X, scale, stored, d, n=None):
    """X'DXw, also where X has a column of ones beside the n columns of the arrays."""
    w, out = np.random.default_rng(X.shape[1]).normal(size=(2, X.shape[1]))
    expected = out + X.T @ (d * (X @ w))
    bound = scale.T @ (d * (scale @ np.abs(w))) + np.abs(out)
    _core.csr_weighted_product(_core.csr(*arrays, n or len(w)), d, w, out)
    terms = stored.sum(axis=0) + stored.sum(axis=1).max(initial=0) + 3
    assert_summed(out, expected, bound, terms, sum(X.shape))


def csr(indptr=(0, 1, 3), indices=(1, 0, 1), data=(1.0, 2.0, 3.0), index=np.int32):
    """Arrays of the matrix [[0, 1], [2, 3]], some of them replaced."""
    return np.array(indptr, index), np.array(indices, index), np.array(data, float)


@pytest.mark.parametrize("index", [np.int32, np.int64])
@pytest.mark.parametrize(
    "arrays",
    [
        {"indptr": ()},
        {"indptr": (0, 1, 4)},
        {"indptr": (0, 2, 1)},
        {"indptr": (0, 9, 3)},
        {"indptr": (0, 1, -1)},
        {"indptr": (-1, 1, 3)},
        {"indptr": (0, -3, 3)},
        {"indices": (1, 0)},
        {"data": (1.0, 2.0)},
    ],
)
def test_rows_outside_of_csr_arrays_are_refused(arrays, index):
    given = csr(**arrays, index=index)
    with pytest.raises(ValueError, match="do not fit each other"):
        _core.csr(*given, 2)


def small():
    """The matrix [[0, 1], [2, 3]]."""
    return _core.csr(*csr(), 2)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: _core.csr_matvec(small(), np.ones(2), np.ones(3)),
            "do not fit each other",
        ),
        (
            lambda: _core.csr_rmatvec(small(), np.ones(3), np.ones(2)),
            "do not fit each other",
        ),
        (
            lambda: _core.csr_rmatvec(small(), np.ones(2), np.ones(3)),
            "do not fit each other",
        ),
        (
            lambda: _core.csr_gram(small(), np.ones(3), np.ones((2, 2))),
            "do not fit each other",
        ),
        (
            lambda: _core.csr_weighted_product(small(), *np.ones((2, 2)), np.ones(3)),
            "do not fit each other",
        ),
        (
            lambda: _core.csr_column_sums(small(), *np.ones((2, 2)), np.ones(3)),
            "do not fit each other",
        ),
        (
            lambda: _core.csr_gram(small(), np.ones(2), np.ones((2, 1))),
            "do not fit each other",
        ),
    ],
)
def test_vectors_that_do_not_fit_csr_arrays_are_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()


@pytest.mark.parametrize(
    "call",
    [
        lambda: _core.csr_gram(small(), np.ones(2), np.ones((2, 2), np.float32)),
        lambda: _core.csr_gram(small(), np.ones(2), np.ones((2, 4))[:, ::2]),
        lambda: _core.csr_matvec(small(), np.ones(2), np.ones(2, np.float32)),
        lambda: _core.csr_matvec(small(), np.ones(2), frozen(2)),
        lambda: _core.csr_matvec(small(), np.ones(2, int), np.ones(2)),
        # As float32 entries with int32 indices these would lose digits.
        lambda: _core.csr(csr(index=np.int64)[0], *csr()[1:], 2),
        lambda: _core.csr(*csr()[:2], np.ones(3, np.int64), 2),
        lambda: _core.csr_rmatvec(small(), np.ones((2, 1)), np.ones(2)),
    ],
)
def test_csr_products_convert_nothing(call):
    with pytest.raises(TypeError, match="incompatible function arguments"):
        call()


def test_read_only_entries_are_read():
    arrays = csr()
    for array in arrays:
        array.flags.writeable = False
    out = np.zeros(2)
    _core.csr_matvec(_core.csr(*arrays, 2), np.array([1.0, 10.0]), out)
    np.testing.assert_array_equal(out, [10.0, 32.0])


@pytest.mark.parametrize("index", [np.int32, np.int64])
def test_canonical_rows_have_rising_columns_in_range(index):
    """A column may be less than the last one of the row before."""
    indptr = np.array([0, 2, 2, 40, 41], index)
    indices = np.r_[[3, 5], np.arange(38), [0]].astype(index)

    def is_canonical(indices, n=38):
        return _core.csr_is_canonical(_core.csr(indptr, indices, np.ones(41), n))

    assert is_canonical(indices)
    assert not is_canonical(indices, 37)
    for place, column in [(0, -1), (0, 5), (1, 3), (20, 19), (20, 17), (39, -2)]:
        wrong = indices.copy()
        wrong[place] = column
        assert not is_canonical(wrong)
    assert not is_canonical(np.r_[indices[:40], [-1]].astype(index))
