"""Doubled precision against exact rational numbers, and decimals of high precision."""

import decimal
import itertools
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from scipy import sparse

from tests.cases.kernels import on_every_simd
from widemargin import Kernel, _core
from widemargin.kernels.table import KERNELS
from widemargin.numerics import linalg, twofold

NO_FIT = "do not fit each other"
KINDS = list(KERNELS.values())
LINEAR, POLY = KERNELS["linear"].code, KERNELS["poly"].code
SIGMOID = KERNELS["sigmoid"].code
TYPES = (np.float64, np.float32, np.int16, np.uint8)
CONTEXT = decimal.Context(prec=80)


def exact(values):
    return [Fraction(float(x)) for x in values]


def product(x, z):
    return sum((a * b for a, b in zip(x, z, strict=True)), Fraction(0))


def rows(k, n, scale=1.0, seed=0):
    """Entries of very different sizes, some of them zero."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(k, n)) * 10.0 ** rng.uniform(-6, 6, size=(k, n)) * scale
    X[rng.uniform(size=X.shape) < 0.3] = 0.0
    return X


def storages(X):
    """The same rows: dense, CSR, and with every type that holds them."""
    yield X
    yield np.asfortranarray(X)
    for dtype, index in itertools.product((float, np.float32), (np.int32, np.int64)):
        with np.errstate(over="ignore"):
            converted = X.astype(dtype)
        if np.array_equal(X, converted):
            S = sparse.csr_array(converted)
            S.indices, S.indptr = S.indices.astype(index), S.indptr.astype(index)
            yield S


def cancelling(k, n, seed=0):
    """Rows and w whose products are far below their terms."""
    X, w = rows(k, n, seed=seed), rows(1, n, seed=seed + 1)[0]
    w[w == 0.0] = 1.0
    for i in range(k):
        X[i, -1] = float(-product(exact(X[i, :-1]), exact(w[:-1])) / Fraction(w[-1]))
    return X, w


def assert_within(hi, lo, error, expected):
    """All errors are finite and hold."""
    assert np.isfinite(error).all()
    for high, low, most, true in zip(hi, lo, error, expected, strict=True):
        assert abs(Fraction(high) + Fraction(low) - true) <= Fraction(most)
        assert high == high + low  # normalized


# -- products --------------------------------------------------------------------------


def core_matvec(X, w, simd):
    hi, lo, size = np.zeros((3, X.shape[0]))
    _core.twofold_matvec(linalg.in_core(X), w, hi, lo, size, simd)
    return hi, lo, size


@on_every_simd
@pytest.mark.parametrize("n", [1, 2, 5, 15, 16, 17, 40, 300])
def test_products_are_within_their_bounds(simd, n):
    for X, w in (cancelling(5, n), (rows(5, n, 1e-150), rows(1, n, 1e-150)[0])):
        expected = [product(exact(x), exact(w)) for x in X]
        sizes = [product(exact(abs(x)), exact(abs(w))) for x in X]
        for storage in storages(X):
            hi, lo, size = core_matvec(storage, w, simd)
            assert_within(hi, lo, twofold.bound(size, n), expected)
            for s, true in zip(size, sizes, strict=True):
                assert true <= s <= true * (1 + Fraction(1, 10**11)) + Fraction(1e-300)


@on_every_simd
def test_products_of_all_types_of_entries(simd):
    rng = np.random.default_rng(0)
    X, w = rng.integers(0, 200, size=(3, 21)), rng.normal(size=21)
    expected = [product(exact(x), exact(w)) for x in X]
    for dtype in TYPES:
        hi, lo, size = core_matvec(X.astype(dtype), w, simd)
        assert_within(hi, lo, twofold.bound(size, 21), expected)
        assert np.all(twofold.bound(size, 21) <= 1e-28 * size)


@on_every_simd
@pytest.mark.parametrize("m", [1, 7, 60])
def test_blocks_are_added_to_products_of_the_transpose(simd, m):
    X, a = cancelling(19, m)
    X = np.ascontiguousarray(X.T)
    expected = [product(exact(x), exact(a)) for x in X.T]
    sizes = [product(exact(abs(x)), exact(abs(a))) for x in X.T]
    for storage in storages(X):
        hi, lo, size = np.zeros((3, 19))
        for part in np.array_split(np.arange(m), 3):
            block = linalg.in_core(storage[part])
            _core.twofold_rmatvec(block, a[part], hi, lo, size, simd)
        assert_within(hi, lo, twofold.bound(size, m), expected)
        for s, true in zip(size, sizes, strict=True):
            assert true <= s <= true * (1 + Fraction(1, 10**11)) + Fraction(1e-300)


@on_every_simd
def test_dots_are_within_their_bounds(simd):
    for m in (0, 1, 3, 16, 50):
        (a,), (hi,), (lo,) = rows(1, m), rows(1, m, seed=1), rows(1, m, seed=2)
        pairs = [Fraction(p) + Fraction(q) for p, q in zip(hi, lo, strict=True)]
        *found, error = _core.twofold_dot(a, hi, lo, simd)
        assert_within(*([x] for x in (*found, error)), [product(exact(a), pairs)])
        assert error <= 1e-28 * (1.0 + np.abs(a) @ (np.abs(hi) + np.abs(lo)))


def test_sums_of_vectors():
    values = [rows(1, 500, seed=seed)[0] for seed in range(2)]
    rests = [
        v * np.random.default_rng(3).uniform(-1, 1, 500) * 2.0**-54 for v in values
    ]
    values[1][::2] = -values[0][::2]
    hi, lo = twofold.add(values[0], rests[0], values[1], rests[1])
    for i in range(500):
        true = sum((Fraction(v[i]) for v in (*values, *rests)), Fraction(0))
        error = abs(Fraction(hi[i]) + Fraction(lo[i]) - true)
        assert error <= 3 * abs(true) / 2**106


@pytest.mark.parametrize("intercept", [False, True])
def test_signed_blocks_multiply(intercept):
    X, w = rows(9, 6), rows(1, 6 + intercept, seed=1)[0]
    y = np.where(np.arange(9) % 3, 1.0, -1.0)
    a = rows(1, 9, seed=2)[0]
    A = y[:, None] * np.hstack([X, np.ones((9, 1))])[:, : 6 + intercept]
    for storage in storages(X):
        block = linalg.SignedBlock(storage, y, intercept)
        hi, lo, size = twofold.matvec(block, w)
        expected = [product(exact(x), exact(w)) for x in A]
        assert_within(hi, lo, twofold.bound(size, 8), expected)
        hi, lo, size = np.zeros((3, A.shape[1]))
        twofold.rmatvec(block, a, hi, lo, size)
        expected = [product(exact(x), exact(a)) for x in A.T]
        assert_within(hi, lo, twofold.bound(size, 9), expected)


def test_an_entry_is_the_rounded_sum_of_its_duplicates():
    X = sparse.csr_array(
        (np.array([0.1, 0.2, 1.0], np.float32), np.array([1, 1, 0]), [0, 3])
    )
    entry = float(np.float32(0.1)) + float(np.float32(0.2))
    w = np.array([0.0, 3.0])
    hi, lo, _ = twofold.matvec(X, w)
    assert_within(hi, lo, [0.0], [3 * Fraction(entry)])
    hi, lo, error, _ = twofold.kernel_sums((0, 1.0, 0.0, 1), X, w[None], np.ones(1))
    assert_within(hi, lo, error, [3 * Fraction(entry)])
    assert X.nnz == 3


def test_overflow_is_infinite():
    big = np.full((1, 3), 1e200)
    with np.errstate(invalid="ignore"):
        assert twofold.matvec(big, big[0])[2] == [np.inf]
        assert twofold.dot(big[0], -big[0], big[0])[2] == np.inf
    hi, lo, size = np.zeros((3, 3))
    twofold.rmatvec(big, big[0, :1], hi, lo, size)
    assert np.all(size == np.inf)
    assert np.all(twofold.bound(size, 1) == np.inf)


# -- kernels ---------------------------------------------------------------------------


def decimals(x):
    return CONTEXT.divide(Decimal(x.numerator), Decimal(x.denominator))


def exp(t):
    """The number e^t, as a fraction: with 80 digits; 0 far below the least float."""
    if t < -2000:
        return Fraction(0)
    return Fraction(CONTEXT.exp(decimals(t)))


def tanh(t):
    if abs(t) > 1000:
        return Fraction(1 if t > 0 else -1)
    if abs(t) < Fraction(1, 10**20):
        return t - t**3 / 3
    e = exp(2 * t)
    return (e - 1) / (e + 1)


def kernel_value(form, x, z):
    """The value k(x, z) of fractions: exact, or with 80 digits."""
    kind, gamma, coef0, degree = form
    gamma, coef0 = Fraction(gamma), Fraction(coef0)
    s = sum((TERMS[KINDS[kind].sums](a, b) for a, b in zip(x, z, strict=True)))
    return {
        "itself": lambda: s,
        "power": lambda: (gamma * s + coef0) ** degree,
        "tangent": lambda: tanh(gamma * s + coef0),
        "decay": lambda: exp(-gamma * s),
    }[KINDS[kind].value]()


TERMS = {
    "product": lambda a, b: a * b,
    "square": lambda a, b: (a - b) ** 2,
    "size": lambda a, b: abs(a - b),
    "share": lambda a, b: (a - b) ** 2 / (a + b) if a + b else Fraction(0),
}


def rows_of(form, *parts):
    """Rows that a kernel is for."""
    return [np.abs(X) if KINDS[form[0]].is_nonnegative else X for X in parts]


def check_sums(form, X, Z, c, simd, relative=None):
    """Errors hold, sizes are above; errors are below a share of sizes if one is given."""
    K = [[kernel_value(form, exact(x), exact(z)) for z in Z] for x in X]
    weights = exact(c)
    expected = [product(k, weights) for k in K]
    sizes = [sum(abs(a * b) for a, b in zip(k, weights, strict=True)) for k in K]
    for both in storages(np.vstack([X, Z])):
        x, z = (linalg.in_core(part) for part in (both[: len(X)], both[len(X) :]))
        hi, lo, error, size = np.empty((4, len(X)))
        _core.twofold_kernel_sums(form, x, z, c, hi, lo, error, size, simd)
        assert_within(hi, lo, error, expected)
        assert all(Fraction(s) >= true for s, true in zip(size, sizes, strict=True))
        if relative is not None:
            assert np.all(error <= relative * size + 1e-300)
    return hi


FORMS = [
    (0, 1.0, 0.0, 1),
    (1, 0.7, 0.5, 1),
    (1, 0.3, -0.2, 2),
    (1, 0.01, 1.0, 7),
    (2, 0.4, 0.0, 3),
    (3, 0.3, -0.3, 3),
    (4, 0.3, 0.0, 3),
    (5, 0.3, 0.0, 3),
]
assert {KINDS[form[0]] for form in FORMS} == set(KINDS)


@on_every_simd
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(("k", "n"), [(1, 1), (3, 4), (17, 9), (2, 33)])
def test_kernel_sums_are_within_their_errors(form, k, n, simd):
    rng = np.random.default_rng(n)
    X, Z = rng.normal(size=(k, n)), rng.normal(size=(4, n))
    for A in (X, Z):
        A[rng.uniform(size=A.shape) < 0.5] = 0.0
    Z[0] = X[0]
    X, Z = rows_of(form, X, Z)
    c = rng.normal(size=4) * 10.0 ** rng.uniform(-3, 3, size=4)
    # Of a polynomial |k| may be far below the sizes of what is added up in it.
    known = {LINEAR: None, POLY: None, SIGMOID: 1e-14}
    check_sums(form, X, Z, c, simd, known.get(form[0], 1e-25))
    if form[0] in (LINEAR, POLY):
        check_sums(form, abs(X), abs(Z), c, simd, 1e-28 if form[2] >= 0 else None)


@on_every_simd
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("scale", [1e-170, 1e-150, 1e-30, 1e-5, 10.0, 1e5, 1e20, 1e150])
def test_errors_hold_at_every_scale(form, scale, simd):
    X, Z = rows(3, 5, scale / 1e6, seed=0), rows(3, 5, scale / 1e6, seed=1)
    X, Z = rows_of(form, X, Z)
    form = (form[0], form[1], form[2], 1 if form[0] == POLY else form[3])
    c = np.array([1.0, -1.0, 1e-10])
    check_sums(form, X, Z, c, simd)


@pytest.mark.parametrize("scale", [1e-160, 1e-150, 1.0, 1e100, 1e148])
@pytest.mark.parametrize("cancels", [False, True])
def test_linear_sums_by_weights_are_within_their_errors(scale, cancels):
    X, Z = rows(6, 5, scale / 1e6, seed=0), rows(40, 5, 1e-6 * scale, seed=1)
    c = np.random.default_rng(2).normal(size=40)
    if cancels:  # weights are rounding
        Z, c = np.vstack([Z, Z]), np.append(c, -c)
        Z[-1, 0] += scale * 1e-3
    for A, B in zip(storages(X), storages(Z), strict=False):
        hi, lo, error = twofold.linear_sums(A, twofold.linear_weights(B, c))
        terms = np.abs(X) @ (np.abs(Z).T @ np.abs(c))
        weights = [product(exact(column), exact(c)) for column in Z.T]
        assert_within(hi, lo, error, [product(exact(x), weights) for x in X])
        assert (error <= 1e-28 * terms + 1e-320).all()


def test_linear_sums_that_overflow_have_no_finite_error():
    X, Z = np.array([[1e200, 0.0], [0.0, 1.0]]), np.full((3, 2), 1e200)
    _, _, error = twofold.linear_sums(X, twofold.linear_weights(Z, np.ones(3)))
    assert np.isinf(error[0])
    assert np.isfinite(error[1])
    weights = twofold.linear_weights(1e108 * Z, np.ones(3))
    assert np.isinf(twofold.linear_sums(X, weights)[2]).all()


@pytest.mark.parametrize("shape", [(0, 3), (2, 0)])
def test_linear_sums_of_nothing_are_zero(shape):
    k, count = shape
    weights = twofold.linear_weights(np.ones((count, 4)), np.ones(count))
    hi, lo, error = twofold.linear_sums(np.ones((k, 4)), weights)
    assert hi.shape == lo.shape == error.shape == (k,)
    if count == 0:
        assert not hi.any()
        assert not lo.any()
        assert (error < 1e-300).all()


DISTANCES = [form for form in FORMS if KINDS[form[0]].sums != "product"]


@on_every_simd
@pytest.mark.parametrize("form", DISTANCES)
def test_distances_of_far_clusters_are_exact(form, simd):
    rng = np.random.default_rng(0)
    X, Z = (1e10 + rng.normal(size=(k, 6)) for k in (3, 4))
    found = check_sums(form, X, Z, np.ones(4), simd, 1e-25)
    assert found.min() > 1e-4


@on_every_simd
def test_the_smallest_values_of_exp(simd):
    """Powers of two below 2^-1022 are no numbers with all digits; far below is zero."""
    X = np.sqrt(np.linspace(690.0, 760.0, 71))[:, np.newaxis]
    found = check_sums((2, 1.0, 0.0, 3), X, np.zeros((1, 1)), np.ones(1), simd)
    assert (found > 0.0).sum() > 50
    assert found[-1] == 0.0


@on_every_simd
def test_sums_that_cancel(simd):
    """A difference of equal rows of an rbf kernel is 0, and its error of their size."""
    X = rows(2, 5, 1e-3)
    Z, c = np.repeat(rows(3, 5, 1e-3, seed=1), 2, axis=0), np.tile([1e8, -1e8], 3)
    found = check_sums((2, 0.4, 0.0, 3), X, Z, c, simd, 1e-14)
    np.testing.assert_array_equal(found, 0.0)


@on_every_simd
@pytest.mark.parametrize("form", FORMS)
def test_diagonals_are_within_their_errors(form, simd):
    X = np.random.default_rng(0).normal(size=(21, 7))
    X[X < -1.0] = 0.0
    (X,) = rows_of(form, X)
    expected = [kernel_value(form, exact(x), exact(x)) for x in X]
    for storage in storages(X):
        hi, lo, error = np.empty((3, 21))
        x = linalg.in_core(storage)
        _core.twofold_kernel_diag(form, x, hi, lo, error, simd)
        assert_within(hi, lo, error, expected)
        assert np.all(error <= 1e-14 * np.maximum(1.0, np.abs(hi)))


@pytest.mark.parametrize("kind", range(len(KINDS)))
@on_every_simd
def test_what_overflows_has_no_finite_error(kind, simd):
    huge, most = 1e200, np.finfo(np.float64).max
    cases = [
        ([[huge]], [[huge]], 1.0, 1.0),
        ([[most]], [[-most]], 1.0, 1.0),
        ([[np.nan]], [[1.0]], 1.0, 1.0),
        ([[np.inf]], [[1.0]], 1.0, 1.0),
        ([[1e-3]], [[1e-3]], 1.0, np.nan),
        ([[1e-3]], [[1e-3]], 1.0, np.inf),
    ]
    for x, z, gamma, c in cases:
        if KINDS[kind].sums in ("size", "share") and x == [[huge]]:
            continue  # the distance is 0
        if KINDS[kind].sums == "square" and x == [[huge]]:
            z = [[-huge]]
        hi, lo, error, size = np.zeros((4, 1))
        form = (kind, gamma, 0.0, 2)
        x, z = np.array(x), np.array(z)
        _core.twofold_kernel_sums(form, x, z, np.array([c]), hi, lo, error, size, simd)
        assert error == [np.inf]
        assert size == [np.inf]


def test_kernel_objects_say_their_form():
    X, Z = np.random.default_rng(0).normal(size=(2, 9, 4))
    c = np.arange(9.0)
    for row in KINDS:
        kernel = Kernel(row.name, gamma=0.3, degree=2, coef0=0.1)
        X, Z = rows_of(kernel.form, X, Z)
        hi, *_ = twofold.kernel_sums(kernel.form, X, Z, c)
        np.testing.assert_allclose(hi, kernel(X, Z) @ c, rtol=1e-12, atol=1e-12)
        hi, lo, _ = twofold.kernel_diag(kernel.form, X.astype(np.float32))
        expected = kernel.diag(X.astype(np.float32).astype(float))
        np.testing.assert_allclose(hi + lo, expected, rtol=1e-12)


@pytest.mark.parametrize("row", KINDS, ids=lambda row: row.name)
@pytest.mark.parametrize("empty", [[0], [0, 1, 2], [4, 8], list(range(9))])
def test_empty_sparse_rows_are_rows_of_zeros(row, empty):
    kernel = Kernel(row.name, gamma=0.3, degree=2, coef0=0.1)
    X, Z = np.random.default_rng(0).normal(size=(2, 9, 4))
    X, Z = rows_of(kernel.form, X, Z)
    X[[1, 5]], Z[empty] = 0.0, 0.0
    expected = kernel(X, Z)
    for j in range(9):  # the first rows that are read, too
        sums = twofold.kernel_sums(
            kernel.form, sparse.csr_array(X), sparse.csr_array(Z[j:]), np.ones(9 - j)
        )
        np.testing.assert_allclose(sums[0], expected[:, j:].sum(axis=1), rtol=1e-12)
    products = twofold.matvec(sparse.csr_array(Z), np.arange(4.0))
    np.testing.assert_allclose(products[0], Z @ np.arange(4.0), rtol=1e-12)


def test_rows_of_different_types_meet():
    X, Z = np.random.default_rng(0).integers(0, 9, size=(2, 5, 4))
    expected, *_ = twofold.kernel_sums((0, 1.0, 0.0, 1), X, Z, np.ones(5))
    for x, z in itertools.product(
        (X.astype(np.uint8), X.astype(np.float32), sparse.csr_array(X)),
        (Z.astype(np.int16), sparse.csr_array(Z.astype(np.float32))),
    ):
        found, *_ = twofold.kernel_sums((0, 1.0, 0.0, 1), x, z, np.ones(5))
        np.testing.assert_array_equal(found, expected)


# -- what does not fit -----------------------------------------------------------------


def zeros(*shapes):
    return [np.zeros(shape) for shape in shapes]


@pytest.mark.parametrize(
    "lengths", [(4, 3, 3, 3), (5, 2, 3, 3), (5, 3, 4, 3), (5, 3, 3, 4)]
)
def test_products_refuse_other_lengths(lengths):
    X = np.zeros((3, 5))
    for rows in (X, linalg.in_core(sparse.csr_array(X))):
        with pytest.raises(ValueError, match=NO_FIT):
            _core.twofold_matvec(rows, *zeros(*lengths))
    for rows in (X.T.copy(), linalg.in_core(sparse.csr_array(X.T))):
        with pytest.raises(ValueError, match=NO_FIT):
            _core.twofold_rmatvec(rows, *zeros(*lengths))


@pytest.mark.parametrize(
    "changes",
    [
        {"form": (len(KINDS), 1.0, 0.0, 1)},
        {"form": (-1, 1.0, 0.0, 1)},
        {"form": (1, 1.0, 0.0, 0)},
        {"Z": np.zeros((2, 4))},
        {"c": np.zeros(3)},
        {"hi": np.zeros(2)},
        {"lo": np.zeros(4)},
        {"error": np.zeros(4)},
        {"size": np.zeros(4)},
    ],
)
def test_kernel_sums_refuse_what_does_not_fit(changes):
    hi, lo, error, size = np.zeros((4, 3))
    arguments = {
        "form": (0, 1.0, 0.0, 1),
        "X": np.zeros((3, 5)),
        "Z": np.zeros((2, 5)),
        "c": np.zeros(2),
        "hi": hi,
        "lo": lo,
        "error": error,
        "size": size,
    } | changes
    with pytest.raises(ValueError, match=NO_FIT):
        _core.twofold_kernel_sums(**arguments)
    if not {"Z", "c", "size"} & set(changes):
        kept = {key: arguments[key] for key in ("form", "X", "hi", "lo", "error")}
        with pytest.raises(ValueError, match=NO_FIT):
            _core.twofold_kernel_diag(**kept)


@pytest.mark.parametrize("columns", [[1, 1], [2, 0]])
def test_kernels_refuse_columns_that_do_not_rise(columns):
    indices, ends = np.array(columns, np.int32), np.array([0, 2], np.int32)
    X = _core.csr(ends, indices, np.ones(2), 3)
    hi, lo, error, size = np.zeros((4, 1))
    with pytest.raises(ValueError, match=NO_FIT):
        _core.twofold_kernel_sums(
            (0, 1.0, 0.0, 1), X, X, np.ones(1), hi, lo, error, size
        )
    with pytest.raises(ValueError, match=NO_FIT):
        _core.twofold_kernel_diag((0, 1.0, 0.0, 1), X, hi, lo, error)


def test_dots_refuse_other_lengths():
    for lengths in ((2, 3, 3), (3, 2, 3), (3, 3, 2)):
        with pytest.raises(ValueError, match=NO_FIT):
            _core.twofold_dot(*zeros(*lengths))
