"""Kernel values against their definitions, and the words for gamma."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from sklearn.metrics.pairwise import pairwise_kernels
from sklearn.svm import SVC

from tests.cases.kernels import (
    KINDS,
    NAMED,
    instruction_set,
    matrix,
    matrix_of,
    on_every_kernel,
    on_every_kind,
    on_every_simd,
    on_storages_in_memory,
    plain,
)
from tests.cases.pairwise import product
from tests.cases.rows import in_memory, name_of
from tests.conftest import csr, long_indices
from widemargin import Kernel, _core, as_rows
from widemargin.kernels.core_sums import CoreSums, kernel_values
from widemargin.kernels.matrix import Columns
from widemargin.kernels.packed import aligned, padded
from widemargin.kernels.table import PARAMETERS

# Rows, other rows, columns: no multiples of 64, 192 or 16, and multiples; one row; more
# columns than sparse samples are packed with.
SHAPES = [
    (1, 1, 1),
    (1, 7, 3),
    (70, 5, 4),
    (65, 193, 17),
    (64, 192, 16),
    (23, 1, 2060),
    (67, 40, 2060),
]


def assert_close(actual, expected, tolerance):
    """Equal, to a share of the largest number, or of 1."""
    assert actual.shape == expected.shape
    scale = max(1.0, float(np.abs(expected).max()))
    np.testing.assert_allclose(actual, expected, rtol=0, atol=tolerance * scale)


# -- values ----------------------------------------------------------------------------


@pytest.mark.cover(2)
@on_every_kernel
@pytest.mark.parametrize("convert", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("density", [1.0, 0.3, 0.02])
def test_values_are_those_of_the_formula(kernel, convert, density):
    for m, k, n in SHAPES:
        X, Z = (
            matrix_of(kernel, m, n, density),
            matrix_of(kernel, k, n, density, seed=1),
        )
        expected = plain(kernel, X, Z)
        assert_close(kernel(convert(X), convert(Z)), expected, 1e-12)
        assert_close(kernel(convert(X), Z), expected, 1e-12)
        assert_close(kernel(X, convert(Z)), expected, 1e-12)


@pytest.mark.cover(2)
@product(
    name=KINDS,
    storage=in_memory,
    shape=[(67, 5, 0.8), (67, 40, 0.1), (19, 2060, 0.02)],
    ids=name_of,
)
def test_values_are_the_same_of_every_storage(name, storage, shape):
    kernel = NAMED[name]
    X = matrix_of(kernel, *shape)
    A = storage.make(X.copy()).in_memory()
    exact = storage.exact(X)
    expected = plain(kernel, exact, exact)
    for Z in (A, exact):
        assert_close(kernel(A, Z), expected, 1e-12)
        assert_close(kernel(Z, A), expected, 1e-12)


@pytest.mark.cover(2)
@on_every_kind
@on_every_simd
@pytest.mark.parametrize("density", [1.0, 0.1])
def test_values_are_the_same_of_every_instruction_set(kernel, simd, density):
    for m, _, n in SHAPES:
        X = matrix_of(kernel, m, n, density)
        for convert in (np.asarray, sparse.csr_array):
            rows = as_rows(convert(X))
            W = np.linspace(-1.0, 1.0, 2 * m).reshape(m, 2)
            expected = kernel(X, X), CoreSums(kernel.form, X, W)(X)
            single = Columns(rows, kernel).block(np.arange(m), np.arange(m))
            with instruction_set(simd):
                values = kernel_values(kernel.form, rows.in_memory(), rows.in_memory())
                sums = CoreSums(kernel.form, rows.in_memory(), W)(X)
                block = Columns(rows, kernel).block(np.arange(m), np.arange(m))
            assert_close(values, expected[0], 1e-13)
            assert_close(sums, expected[1], 1e-13)
            assert block.dtype == np.float32
            rounding = 2e-5 if n > 1000 else 1e-6  # float32 sums of so many products
            assert_close(block, single, rounding)
            assert_close(block, plain(kernel, X, X), rounding)


@pytest.mark.parametrize("name", KINDS)
@pytest.mark.parametrize("density", [1.0, 0.05])
def test_values_are_those_of_scikit_learn(name, density):
    kernel = NAMED[name]
    X, Z = (
        matrix_of(kernel, 60, 30, density),
        matrix_of(kernel, 41, 30, density, seed=1),
    )
    options = {name: getattr(kernel, name) for name in PARAMETERS.get(name, ())}
    expected = pairwise_kernels(X, Z, metric=name, **options)
    assert_close(kernel(X, Z), expected, 1e-12)


@on_every_kind
@on_every_simd
def test_each_sample_has_a_lane_of_its_own(kernel, simd):
    X, Z = matrix_of(kernel, 130, 9), matrix_of(kernel, 20, 9, seed=1)
    with instruction_set(simd):
        whole = kernel(X, Z)
        for rows in ([0], [5, 77, 129], range(63, 66)):
            np.testing.assert_array_equal(kernel(X[rows], Z), whole[rows])


@on_every_kind
@on_every_simd
def test_rows_are_summed_up_as_a_product_with_their_weights(kernel, simd):
    X, Z = matrix_of(kernel, 70, 6), matrix_of(kernel, 200, 6, seed=1)
    for columns in (1, 2, 64, 65, 130):
        W = np.random.default_rng(columns).normal(size=(200, columns))
        expected = plain(kernel, X, Z) @ W
        with instruction_set(simd):
            sums = CoreSums(kernel.form, Z, W)(X)
        np.testing.assert_allclose(sums, expected, atol=1e-10)


def test_a_product_is_as_wide_as_both_matrices():
    with pytest.raises(ValueError, match="X must have 3 columns. Got 2 instead."):
        Kernel("rbf", gamma=1.0)(np.ones((4, 2)), np.ones((4, 3)))


@given(
    seed=st.integers(0, 2**32 - 1),
    m=st.integers(1, 90),
    n=st.integers(1, 30),
    scale=st.integers(-3, 3),
    gamma=st.sampled_from([1e-6, 0.1, 1.0, 1e3, 1e10]),
    sparsity=st.booleans(),
)
def test_rbf_is_symmetric_and_between_zero_and_one(seed, m, n, scale, gamma, sparsity):
    X = matrix(m, n, 0.1 if sparsity else 1.0, seed) * 10.0**scale
    kernel = Kernel("rbf", gamma=gamma)
    columns = Columns(as_rows(sparse.csr_array(X) if sparsity else X), kernel)
    block = columns.block(np.arange(m), np.arange(m))
    for K, tolerance in ((kernel(X, X), 1e-13), (block, 1e-5)):
        assert np.all((K >= 0.0) & (K <= 1.0))
        rounding = tolerance * max(1.0, gamma * np.square(X).sum(axis=1).max())
        np.testing.assert_allclose(K, K.T, rtol=0, atol=rounding)
        np.testing.assert_allclose(np.diag(K), 1.0, rtol=0, atol=rounding)


# -- exp -------------------------------------------------------------------------------


@on_every_simd
def test_exp_is_exact_to_a_few_units(simd):
    x = np.sqrt(np.linspace(0.0, 80.0, 20_001))
    for dtype, tolerance in ((np.float32, 4e-7), (np.float64, 2e-15)):
        points = x.astype(dtype).astype(np.float64)
        with instruction_set(simd):
            values = from_zero(points, dtype)
        expected = np.exp(-squares(points, dtype))
        np.testing.assert_allclose(values, expected, rtol=tolerance)


def squares(x, dtype):
    """Squares in a dtype, as float64."""
    return np.square(x).astype(dtype).astype(np.float64)


def from_zero(x, dtype):
    """Values k(x, 0) with the distances |x|^2, rounded to the dtype."""
    m = len(x)
    norms = aligned((padded(m),), dtype)
    norms[:] = 0
    norms[:m] = squares(x, dtype)
    X = _core.strips(np.zeros(padded(m), dtype), norms, None, None, m, 1)
    batch = _core.batch(np.zeros(1, dtype), np.zeros(1, dtype), None, None, None, 1)
    out = aligned((1, padded(m)), dtype)
    form = Kernel("rbf", gamma=1.0).form
    _core.kernel_rows(form, X, batch, 0, padded(m) // 64, out, None, None, None)
    return out[0, :m]


@on_every_simd
def test_exp_of_what_is_far_below_zero_is_zero(simd):
    for dtype in (np.float32, np.float64):
        with instruction_set(simd):
            values = from_zero(np.array([0.0, 1e3, 1e8, 1e15]), dtype)
        np.testing.assert_array_equal(values, [1.0, 0.0, 0.0, 0.0])


# -- data far from zero ----------------------------------------------------------------


@pytest.mark.parametrize("convert", [np.asarray, np.asfortranarray, sparse.csr_array])
@pytest.mark.parametrize("name", ["rbf", "laplacian"])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_data_far_from_zero_are_centered(name, convert, dtype):
    rng = np.random.default_rng(0)
    X = (rng.normal(size=(150, 20)) + 1e4).astype(dtype)
    kernel = Kernel(name, gamma=1.0 / 40.0)
    expected = plain(kernel, X.astype(np.float64), X.astype(np.float64))
    rows, every = as_rows(convert(X)), np.arange(150)
    np.testing.assert_allclose(kernel(convert(X), X), expected, atol=1e-11)
    columns = Columns(rows, kernel)
    np.testing.assert_allclose(columns.block(every, every), expected, atol=1e-4)
    np.testing.assert_allclose(columns.columns(every), expected, atol=1e-4)
    diagonal = np.diag(columns.block(every, every))
    np.testing.assert_allclose(diagonal, 1.0, atol=1e-6)


# -- the words for gamma ---------------------------------------------------------------


@pytest.mark.parametrize("convert", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("word", ["scale", "auto"])
def test_gamma_is_that_of_scikit_learn(word, convert):
    for X in (matrix(50, 7, 0.4), 3.0 + 5.0 * matrix(41, 3), np.ones((5, 2))):
        y = np.arange(len(X)) % 2
        expected = SVC(gamma=word).fit(convert(X), y)._gamma
        resolved = Kernel("rbf", gamma=word).resolved(as_rows(convert(X)))
        assert resolved.gamma == pytest.approx(expected, rel=1e-12)


@on_storages_in_memory
def test_the_mean_distance_is_over_all_pairs(storage):
    X = storage.exact(matrix(40, 6, 0.7) * 3.0)
    distances = np.square(X[:, None] - X[None]).sum(axis=2)
    gamma = Kernel("rbf", gamma="mean_distance").resolved(storage.make(X.copy())).gamma
    assert gamma == pytest.approx(1.0 / (2.0 * distances.mean()), rel=1e-12)


def test_equal_rows_have_a_gamma_of_one():
    rows = as_rows(np.full((4, 3), 2.5))
    for word in ("scale", "mean_distance"):
        assert Kernel("rbf", gamma=word).resolved(rows).gamma == 1.0


@pytest.mark.parametrize("word", ["scale", "auto", "mean_distance"])
def test_kernels_without_gamma_read_no_data(word):
    rows = as_rows(matrix(9, 3))
    for name in ("linear", "precomputed", lambda X, Z: X @ Z.T):
        assert Kernel(name, gamma=word).resolved(rows).gamma == 1.0
    assert rows.sweeps == 0


def test_a_number_for_gamma_may_be_of_any_kind():
    for gamma in (1e10, 1, np.float32(0.5), np.int64(3), 1e-300):
        kernel = Kernel("rbf", gamma=gamma, degree=np.int64(2), coef0=np.float32(0.5))
        np.testing.assert_array_equal(kernel([[1.0]], [[1.0]]), [[1.0]])
        np.testing.assert_allclose(
            kernel([[1.0]], [[2.0]]), [[np.exp(-float(gamma))]], rtol=1e-13
        )


# -- callables -------------------------------------------------------------------------


def test_a_callable_gets_the_rows_and_returns_their_values():
    X = matrix(30, 4, 0.5)
    for convert in (np.asarray, sparse.csr_array):
        kernel = Kernel(lambda A, B: A @ B.T)  # sparse, if they are
        assert_close(kernel(convert(X), convert(X)), X @ X.T, 1e-12)
    integers = Kernel(lambda A, B: np.ones((A.shape[0], B.shape[0]), np.int8))
    np.testing.assert_array_equal(integers(X, X), np.ones((30, 30)))
    assert integers(X, X).dtype == np.float64


@on_every_kind
def test_the_diagonal_is_that_of_the_values(kernel):
    X = matrix_of(kernel, 37, 6, 0.6)
    expected = kernel(X, X).diagonal()
    for A in (X, sparse.csr_array(X), X.astype(np.float32).astype(np.float64)):
        np.testing.assert_allclose(kernel.diag(A), expected, rtol=1e-6)
    called = Kernel(lambda A, B: kernel(A, B))
    np.testing.assert_allclose(called.diag(X), expected, rtol=1e-12)
    given = Kernel("precomputed").diag(kernel(X, X))
    np.testing.assert_array_equal(given, expected)


def test_a_precomputed_kernel_is_returned():
    K = np.arange(6.0).reshape(2, 3)
    np.testing.assert_array_equal(Kernel("precomputed")(K, np.ones((3, 1))), K)


def test_sparse_rows_that_are_not_canonical_give_the_same_values():
    X = np.abs(matrix(20, 30, 0.1))
    rows = long_indices(X)
    doubled = csr(
        rows,
        data=np.repeat(rows.data / 2, 2),
        indices=np.repeat(rows.indices, 2),
        indptr=2 * rows.indptr,
    )
    for name in KINDS:
        assert_close(NAMED[name](doubled, doubled), plain(NAMED[name], X, X), 1e-12)
