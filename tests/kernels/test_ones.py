"""Samples of ones, which are packed as bytes and counted: to the bits of other ones."""

import numpy as np
import pytest
from scipy import sparse

from tests.cases.kernels import on_every_simd
from widemargin import Kernel, Problem, _core, solve
from widemargin.kernels.core_sums import CoreSums, kernel_values
from widemargin.kernels.layout import Layout
from widemargin.kernels.packed import STRIP, Batches, Samples, aligned, padded
from widemargin.numerics import linalg

RBF_KERNEL = Kernel("rbf", gamma=0.05)
LINEAR, RBF = Kernel("linear", gamma=1.0).form, RBF_KERNEL.form
POLY = Kernel("poly", gamma=0.5, coef0=1.0).form


def ones(m=150, n=40, share=0.1, seed=0):
    """Sparse rows of ones, some without any."""
    X = sparse.csr_array(np.random.default_rng(seed).random((m, n)) < share)
    return X.astype(np.float64)


def test_rows_of_ones_are_known():
    X = ones()
    assert linalg.holds_ones(X)
    assert not linalg.holds_ones(X.toarray())
    assert not linalg.holds_ones(2.0 * X)
    twice = sparse.csr_array((np.ones(2), [1, 1], [0, 2]), shape=(1, 3))
    assert not linalg.holds_ones(twice)
    zero = sparse.csr_array((np.array([0.0, 1.0]), [0, 1], [0, 2]), shape=(1, 3))
    assert not linalg.holds_ones(zero)


def test_only_the_rows_that_are_meant_have_to_be_of_ones():
    X = sparse.vstack([ones(), 2.0 * ones()]).tocsr()
    assert linalg.holds_ones(X, np.arange(150))
    assert not linalg.holds_ones(X, np.arange(1, 151))
    assert not linalg.holds_ones(X, np.array([0, 1, 3]))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("form", [RBF, POLY])
def test_values_have_the_same_bits(form, dtype, monkeypatch):
    X, Z = ones(), ones(30, seed=1)

    def values():
        layout = Layout(form, Z, dtype)
        samples, batches = Samples(layout, X), Batches(layout, Z)
        out = aligned((30, padded(150)), dtype)
        samples.sums(batches.take(slice(None), samples), 30, None, None, out)
        return samples, out[:, :150].copy()

    samples, counted = values()
    monkeypatch.setattr(linalg, "holds_ones", lambda *_: False)
    others, added = values()
    assert samples.n_bytes * np.dtype(dtype).itemsize == others.n_bytes
    np.testing.assert_array_equal(samples.norms, others.norms)
    np.testing.assert_array_equal(counted, added)


def many(longest, m=600):
    """Rows that begin with up to so many ones."""
    lengths = np.random.default_rng(0).integers(0, longest, m, endpoint=True)
    return sparse.csr_array(np.arange(2000) < lengths[:, np.newaxis]).astype(np.float64)


def sums_of(form, X, weights, dtype, simd=-1):
    """Whether they are made of factors, and sums over all rows."""
    layout, strips = Layout(form, X, dtype), padded(X.shape[0]) // STRIP
    samples, batches = Samples(layout, X), Batches(layout, X)
    out = np.zeros((1, samples.norms.size))
    core = samples.core, batches.take(slice(None), samples)
    _core.kernel_rows(form, *core, 0, strips, None, None, weights, out, simd)
    return layout.by_factors, out[0, : X.shape[0]]


@on_every_simd
@pytest.mark.parametrize("longest", [16, 40, 90, 250, 300])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_sums_over_many_rows_have_the_same_bits(simd, dtype, longest, monkeypatch):
    gamma = 0.05 if dtype == np.float64 else 9.0 / longest
    form, X = Kernel("rbf", gamma=gamma).form, many(longest)
    weights = np.ones((X.shape[0], 1))
    by_factors, counted = sums_of(form, X, weights, dtype, simd)
    assert not by_factors
    monkeypatch.setattr(linalg, "holds_ones", lambda *_: False)
    np.testing.assert_array_equal(counted, sums_of(form, X, weights, dtype, simd)[1])


@on_every_simd
@pytest.mark.parametrize("longest", [1, 15, 16, 31, 32, 63, 64, 255])
def test_sums_are_made_of_factors(simd, longest):
    X, gamma = many(longest), 7.0 / max(longest, 10)
    weights = np.random.default_rng(1).normal(size=(X.shape[0], 1))
    form = Kernel("rbf", gamma=gamma).form
    by_factors, counted = sums_of(form, X, weights, np.float32, simd)
    assert by_factors
    lengths = X.sum(axis=1)
    D = np.abs(lengths[:, np.newaxis] - lengths)
    K = np.exp(-gamma * D)
    off = 16 * 2.0**-24 * (K @ np.abs(weights[:, 0]))
    assert np.all(np.abs(counted - K @ weights[:, 0]) <= off)


@pytest.mark.parametrize(("most", "gamma"), [(256, 0.001), (40, 0.21)])
def test_factors_out_of_range_are_not_used(most, gamma):
    X = many(most)
    assert X.sum(axis=1).max() == most
    assert not Layout(Kernel("rbf", gamma=gamma).form, X, np.float32).by_factors


def test_rows_that_bytes_do_not_count_have_no_factors():
    X = sparse.csr_array(np.ones((1, 256)))
    packed, zero = np.zeros(256 * STRIP, np.uint8), np.zeros(STRIP, np.float32)
    samples = _core.strips_of_ones(packed, zero, 9, 256, True)
    inside = np.array([0]), np.array([256]), np.arange(256, dtype=np.int32)
    batch = _core.batch(X.data.astype(np.float32), zero[:1], *inside, 256)
    sums = np.zeros((1, STRIP))
    with pytest.raises(ValueError, match="do not fit"):
        _core.kernel_rows(RBF, samples, batch, 0, 1, None, None, np.ones((1, 1)), sums)


def test_sums_of_factors_do_not_meet_values_of_other_roundings():
    X = ones(600)
    problem = Problem(
        X, np.where(np.arange(600) % 2, 1.0, -1.0), 1.0, kernel=RBF_KERNEL
    )
    columns, J = problem.columns, np.arange(70)
    assert not columns.keeps_rows
    once, again = np.zeros(columns.width), np.zeros(columns.width)
    columns.add(J, np.ones(70), once)
    columns.keep(J)
    for _ in range(200):
        columns.add(J[:1], np.zeros(1), np.zeros(columns.width))
    columns.add(J, np.ones(70), again)
    np.testing.assert_array_equal(again, once)
    assert columns.hits == 0


@pytest.mark.parametrize("rows", [1, 64, 150])
def test_other_rows_meet_ones(rows):
    X, Z = 0.5 * ones(rows), ones(30, seed=1)
    D = ((X.toarray()[:, np.newaxis] - Z.toarray()) ** 2).sum(axis=2)
    np.testing.assert_allclose(kernel_values(RBF, X, Z), np.exp(-0.05 * D), rtol=1e-12)
    np.testing.assert_allclose(
        kernel_values(RBF, Z, X), np.exp(-0.05 * D).T, rtol=1e-12
    )


def test_sums_of_chosen_rows_and_of_a_set_with_itself():
    X = ones(400)
    c = np.random.default_rng(2).normal(size=400)
    D = ((X.toarray()[:, np.newaxis] - X.toarray()) ** 2).sum(axis=2)
    expected = np.exp(-0.05 * D) @ c
    sums, J = CoreSums(RBF, X, c[:, np.newaxis]), np.array([7, 300, 2])
    np.testing.assert_allclose(sums(X, J)[:, 0], expected[J], atol=1e-12)
    np.testing.assert_allclose(sums.at_own_rows(), expected, atol=1e-12)


@on_every_simd
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("entries", [0, 1, 254, 255, 256, 510, 511, 600])
def test_long_rows_are_counted(simd, dtype, entries):
    n = 700
    X = sparse.csr_array(np.tri(n)[:70] + np.tri(n)[-70:] > 0).astype(np.float64)
    packed, norms = aligned((n * 2 * STRIP,), np.uint8), np.zeros(2 * STRIP, dtype)
    _core.pack_ones(linalg.in_core(X), np.arange(70), packed, norms)
    np.testing.assert_array_equal(norms[:70], X.sum(axis=1))
    np.testing.assert_array_equal(norms[70:], 0)
    zero, indices = np.zeros(1, dtype), np.arange(entries, dtype=np.int32)
    begin, end = np.array([0]), np.array([entries])
    batch = _core.batch(np.ones(entries, dtype), zero, begin, end, indices, n)
    out = aligned((1, 2 * STRIP), dtype)
    samples = _core.strips_of_ones(packed, 0 * norms, 70, n)
    _core.kernel_rows(LINEAR, samples, batch, 0, 2, out, None, None, None, simd)
    np.testing.assert_array_equal(out[0, :70], X.toarray()[:, :entries].sum(axis=1))


@pytest.mark.parametrize("kernel", ["laplacian", "chi2"])
def test_distances_that_are_no_products_refuse_samples_of_ones(kernel):
    samples = _core.strips_of_ones(np.zeros(3 * STRIP, np.uint8), np.zeros(STRIP), 9, 3)
    one, none = np.ones(1), np.zeros(1)
    inside = np.array([0]), np.array([1]), np.zeros(1, np.int32)
    batch = _core.batch(one, none, *inside, 3)
    sums = np.zeros((1, STRIP))
    form = Kernel(kernel, gamma=1.0).form
    with pytest.raises(ValueError, match="do not fit"):
        _core.kernel_rows(form, samples, batch, 0, 1, None, None, np.ones((1, 1)), sums)


def test_samples_of_ones_do_not_meet_dense_rows():
    samples = _core.strips_of_ones(np.zeros(3 * STRIP, np.uint8), np.zeros(STRIP), 9, 3)
    batch = _core.batch(np.ones(3), np.zeros(1), None, None, None, 3)
    sums = np.zeros((1, STRIP))
    with pytest.raises(ValueError, match="do not fit"):
        _core.kernel_rows(RBF, samples, batch, 0, 1, None, None, np.ones((1, 1)), sums)


@pytest.mark.parametrize(("gamma", "same"), [(0.3, False), (2.0, True)])
def test_a_fit_has_the_same_bits_where_there_are_no_factors(gamma, same, monkeypatch):
    X = ones(600)
    y = np.where(X.toarray()[:, :20].sum(axis=1) > 1.5, 1.0, -1.0)

    def fit():
        problem = Problem(X, y, 2.0, kernel=Kernel("rbf", gamma=gamma))
        return problem.columns, solve(problem, "irwls", tol=1e-6)

    columns, counted = fit()
    assert columns._source.reads_kept == same
    monkeypatch.setattr(linalg, "holds_ones", lambda *_: False)
    _, added = fit()
    assert counted.certificate.relative_gap <= 1e-6
    np.testing.assert_allclose(counted.alpha, added.alpha, atol=1e-3)
    if same:
        np.testing.assert_array_equal(counted.alpha, added.alpha)
        assert counted.certificate == added.certificate
