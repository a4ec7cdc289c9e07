"""Kernels of distances where clusters lie far apart, for their gamma.

There |x|^2 + |z|^2 - 2x'z has no digits left, and the core sums (x_j - z_j)^2.
"""

import functools
import tracemalloc
from fractions import Fraction

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine
from sklearn.preprocessing import StandardScaler

from tests.cases.kernels import instruction_set, on_every_simd
from widemargin import SVC, Kernel, as_rows
from widemargin.kernels.core_sums import CoreSums
from widemargin.kernels.layout import Layout
from widemargin.kernels.matrix import Columns

UNIT = 2.0**-53
GAMMA = 0.5
STORAGES = [np.asarray, sparse.csr_array]
# Columns: some; more, and zeros; as many as keep sparse rows sparse.
WIDTHS = [5, 40, 2100]

on_both_kernels = pytest.mark.parametrize("name", ["rbf", "laplacian"])
on_every_width = pytest.mark.parametrize("n", WIDTHS)
on_both_storages = pytest.mark.parametrize("convert", STORAGES)


def clusters(n, m=37, dtype=np.float64, seed=0):
    """Rows around zero and around a point far away, at most 12 nonzeros in each."""
    rng = np.random.default_rng((seed, n))
    X = np.zeros((m, n))
    for row in X:
        at = rng.choice(n, min(n, 12), replace=False)
        row[at] = rng.normal(size=at.size)
    X[::2, :4] += 1e5
    X[m // 2] = X[1]
    return X.astype(dtype)


def exact(name, X, Z):
    """Values, and gamma times the distances: (k, l) each."""
    power = 2 if name == "rbf" else 1
    t = np.zeros((len(X), len(Z)))
    for i, x in enumerate(X):
        for j, z in enumerate(Z):
            used = np.flatnonzero((x != 0) | (z != 0))
            terms = (Fraction(float(x[k])) - Fraction(float(z[k])) for k in used)
            total = sum((abs(term) ** power for term in terms), Fraction(0))
            t[i, j] = float(total * Fraction(GAMMA))
    return np.exp(-t), t


@functools.cache
def case(name, n, dtype=np.float64):
    """Rows X and Z, their values, and gamma times their distances."""
    X, Z = clusters(n, dtype=dtype), clusters(n, 23, dtype, seed=1)
    Z[3] = X[5]
    return X, Z, *exact(name, X, Z)


@functools.cache
def square(name, n):
    """Rows X, and the same of all of their pairs."""
    X = clusters(n)
    return X, *exact(name, X, X)


@pytest.mark.cover(2)
@on_every_simd
@on_both_kernels
@on_every_width
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_values_are_right_to_the_last_digits(name, n, dtype, simd):
    X, Z, expected, t = case(name, n, dtype)
    kernel = Kernel(name, gamma=GAMMA)
    assert np.any(expected == 0)
    assert np.any((expected > 1e-9) & (expected < 1e-1))
    # Of the sum and gamma, and of exp here and there.
    bound = ((n + 5) * UNIT * t + 8 * UNIT) * expected
    W = np.random.default_rng(0).normal(size=(23, 2))
    for convert in STORAGES:
        for other in STORAGES:
            A, B = convert(X), other(Z)
            with instruction_set(simd):
                values = kernel(A, B)
                sums = CoreSums(kernel.form, B, W)(A)
            assert np.all(np.abs(values - expected) <= bound)
            assert values[5, 3] == 1.0
            rounding = (23 + 3) * UNIT * (expected @ np.abs(W))
            off = np.abs(sums - expected @ W)
            assert np.all(off <= bound @ np.abs(W) + rounding)


@pytest.mark.cover(2)
@on_every_simd
@on_both_kernels
@on_every_width
@on_both_storages
def test_columns_are_as_right(name, n, convert, simd):
    X, expected, t = square(name, n)
    every = np.arange(len(X))
    bound = ((n + 5) * UNIT * t + 8 * UNIT) * expected
    with instruction_set(simd):
        columns = Columns(as_rows(convert(X)), Kernel(name, gamma=GAMMA))
        kept, block = columns.columns(every), columns.block(every, every)
    assert columns.dtype == np.float64
    for values in (kept[:, : len(X)], block[:, : len(X)]):
        assert np.all(np.abs(values - expected) <= bound)
        np.testing.assert_array_equal(values, values.T)
        np.testing.assert_array_equal(np.diag(values), 1.0)


@on_both_kernels
@on_every_width
@on_both_storages
def test_values_do_not_depend_on_other_rows(name, n, convert):
    X, Z = clusters(n, 130), clusters(n, 23, seed=1)
    kernel, W = Kernel(name, gamma=GAMMA), np.linspace(-1.0, 1.0, 23)[:, np.newaxis]
    expand = CoreSums(kernel.form, convert(Z), W)
    whole, sums = kernel(convert(X), convert(Z)), expand(convert(X))
    for rows in ([0], [5, 77, 129], range(63, 66)):
        some = convert(X[rows])
        np.testing.assert_array_equal(kernel(some, convert(Z)), whole[rows])
        np.testing.assert_array_equal(expand(some), sums[rows])


@pytest.mark.one_of(2)
@on_both_storages
def test_a_machine_of_far_clusters_is_what_it_says(convert):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(150, 5))
    y = np.where(X[:, 0] + 0.5 * rng.normal(size=150) > 0, 1.0, -1.0)
    X[::2] += 1e5
    clf = SVC(C=1e3, gamma=GAMMA).fit(convert(X), y)
    alpha = np.zeros(150)
    alpha[clf.support_] = np.abs(clf.dual_coef_[0])
    c = y * alpha
    K = exact("rbf", X, X)[0]
    f = K @ c + clf.intercept_
    assert np.all(
        np.abs(clf.decision_function(convert(X)) - f) <= 1e-12 * (K @ np.abs(c))
    )
    norm, loss = c @ K @ c, 1e3 * np.maximum(0.0, 1.0 - y * f).sum()
    primal, dual = 0.5 * norm + loss, alpha.sum() - 0.5 * norm
    claimed = clf.dual_gap_ * primal
    assert primal - dual - 1e-9 * primal <= claimed <= primal - dual + 1e-5 * primal
    assert clf.dual_gap_ <= 1e-4


def test_scaled_data_are_multiplied():
    for load in (load_iris, load_wine, load_digits, load_breast_cancer):
        X = load().data
        for data in (X, StandardScaler().fit_transform(X)):
            kernel = Kernel("rbf").resolved(as_rows(data))
            for convert in STORAGES:
                assert not Layout(kernel.form, convert(data)).by_differences
    assert Layout(Kernel("rbf", gamma=GAMMA).form, clusters(5)).by_differences


def test_digits_that_are_lost_depend_on_nonzeros_not_on_columns():
    """Sums of differences of long sparse rows took fifty times as long as products."""
    rng = np.random.default_rng(0)
    form = Kernel("rbf", gamma=1.0).form
    for nonzeros, loses in ((60, False), (6_000, True)):
        columns = np.tile(np.arange(nonzeros), 8)
        entries = columns, np.arange(9) * nonzeros
        X = sparse.csr_array((rng.random(len(columns)), *entries), (8, 20_000))
        assert Layout(form, X).by_differences == loses


@pytest.mark.parametrize("shift", [0.0, 3.0, 1e9])
def test_sparse_rows_reach_as_far_as_dense_ones(shift):
    form = Kernel("rbf", gamma=1e-3).form
    Z = np.random.default_rng(0).normal(size=(300, 7)) + shift
    stored = sparse.csr_array(Z)
    halves = sparse.csr_array(
        (np.repeat(stored.data / 2, 2), np.repeat(stored.indices, 2), 2 * stored.indptr)
    )
    expected = Layout(form, Z).reach
    for rows in (stored, halves):
        assert Layout(form, rows).reach == pytest.approx(expected, rel=1e-6)


def test_rows_in_fortran_order_are_looked_at_without_a_copy():
    form = Kernel("rbf", gamma=GAMMA).form
    Z = np.asfortranarray(np.random.default_rng(0).normal(size=(20_000, 20)))
    same = Layout(form, np.ascontiguousarray(Z), np.float32)
    tracemalloc.start()
    try:
        layout = Layout(form, Z, np.float32)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert layout.reach == same.reach > 0.0
    assert peak < Z.nbytes / 2
