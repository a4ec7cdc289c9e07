"""Feature maps against the whole of K, eigenvalues and plain formulas."""

import dataclasses
import pickle

import numpy as np
import pytest
from scipy import sparse

from tests.cases.kernels import NAMED, SEMIDEFINITE, matrix, matrix_of, plain
from tests.cases.pairwise import product
from widemargin import Kernel, LinearSVC, as_rows
from widemargin.features.methods import (
    LANDMARKS,
    METHODS,
    eigen,
    feature_map,
    fourier,
    nystroem,
    pivoted_cholesky,
    polynomial,
)
from widemargin.features.partial_cholesky import pivots_of
from widemargin.kernels.expansion import Expansion

RBF, SQUARE = NAMED["rbf"], Kernel("poly", gamma=0.7, degree=2, coef0=0.5)
# Each method that has landmarks, with its options.
BY_LANDMARKS = {
    "cholesky": {"method": "cholesky"},
    **{name: {"method": "nystroem", "landmarks": name} for name in LANDMARKS},
    "eigen": {"method": "eigen"},
}
on_every_method = pytest.mark.parametrize(
    "options", BY_LANDMARKS.values(), ids=BY_LANDMARKS
)
on_dense_and_sparse = pytest.mark.parametrize("convert", [np.asarray, sparse.csr_array])
on_both_precisions = pytest.mark.parametrize("dtype", [np.float32, np.float64])


def made(X, kernel, rank, **options):
    return feature_map(X, kernel, rank=rank, **{"random_state": 0, **options})


def all_maps(X, rank, **options):
    """One map of each kind."""
    for kind in BY_LANDMARKS.values():
        yield made(X, RBF, rank, **kind, **options), plain(RBF, X, X)
    for name in ("rbf", "laplacian"):
        found = made(X, NAMED[name], rank, method="fourier", **options)
        yield found, plain(NAMED[name], X, X)
    yield polynomial(X, SQUARE, **options), plain(SQUARE, X, X)


# -- against K -------------------------------------------------------------------------


@product(
    name=list(SEMIDEFINITE),
    method=BY_LANDMARKS,
    convert=[np.asarray, sparse.csr_array],
)
def test_of_full_rank_it_is_the_kernel(name, method, convert):
    X, kernel = matrix_of(name, 60, 7, 0.7), NAMED[name]
    K = plain(kernel, X, X)
    for rank in (60, 1000):
        z = made(convert(X), kernel, rank, **BY_LANDMARKS[method])
        assert z.rank <= 60
        Z = z.features
        np.testing.assert_allclose(Z @ Z.T, K, rtol=0, atol=1e-8 * np.abs(K).max())
        assert abs(z.trace_residual) < 1e-8
        assert z.error < 1e-8
        assert z.seconds > 0


@pytest.mark.parametrize("m", [150, 900])
def test_residuals_are_what_they_say(m, monkeypatch):
    monkeypatch.setattr("widemargin.features.builder.ALL_ROWS", 800)
    X = matrix(m, 4)
    for z, K in all_maps(X, 20):
        R = K - z.features @ z.features.T
        residual = np.trace(R) / np.trace(K)
        assert z.trace_residual == pytest.approx(residual, rel=1e-9, abs=1e-13)
        sums, whole = (np.abs(A).sum(axis=1) for A in (R, K))
        if m == 150:
            assert z.error_rows == m
            error = sums.max() / whole.max()
            assert z.error == pytest.approx(error, rel=1e-9, abs=1e-13)
        else:
            assert z.error_rows == 256
            assert z.error <= sums.max() / whole.min()


@pytest.mark.parametrize("kept", [True, False])
def test_the_error_is_of_columns_from_everywhere(kept, monkeypatch):
    # Near rows come first, which the landmarks cover: their columns have no error.
    X = matrix(3000, 4)
    X = X[np.argsort((X**2).sum(axis=1))]
    builder = "widemargin.features.builder"
    options = {"random_state": 0, "features": kept}
    whole = nystroem(X, RBF, 20, **options).error
    monkeypatch.setattr(f"{builder}.ERROR_COLUMNS", 600)
    some = nystroem(X, RBF, 20, **options).error
    assert some != whole
    assert some == pytest.approx(whole, rel=0.1)


@on_every_method
@on_both_precisions
def test_more_dimensions_leave_less(options, dtype):
    X = matrix(300, 5)
    maps = [made(X, RBF, rank, dtype=dtype, **options) for rank in (3, 10, 25, 50)]
    left = [z.trace_residual for z in maps]
    assert left == sorted(left, reverse=True)
    assert [z.rank for z in maps] == [3, 10, 25, 50]
    assert left[-1] < 0.04
    assert maps[-1].error < maps[0].error


@on_dense_and_sparse
@on_both_precisions
def test_elsewhere_it_is_the_same_map(convert, dtype):
    X = matrix(200, 6, 0.5)
    new = np.vstack([X[:50], matrix(30, 6, 0.5, seed=1)])
    tolerance = 1e-11 if dtype == np.float64 else 1e-4
    for z, _ in all_maps(convert(X) if convert is np.asarray else X, 25, dtype=dtype):
        Z = z.transform(convert(new))
        assert Z.dtype == z.features.dtype == dtype
        assert Z.shape == (80, z.rank)
        np.testing.assert_allclose(Z[:50], z.features[:50], rtol=0, atol=tolerance)
        lean = pickle.loads(pickle.dumps(dataclasses.replace(z, features=None)))
        assert lean.features is None
        np.testing.assert_array_equal(lean.transform(as_rows(convert(new))), Z)


def test_sparse_rows_are_dense_rows():
    X = matrix(150, 8, 0.3)
    kinds = [
        *((RBF, kind) for kind in BY_LANDMARKS.values()),
        (RBF, {"method": "fourier"}),
        (SQUARE, {"method": "polynomial"}),
    ]
    for kernel, kind in kinds:
        rank = None if kind["method"] == "polynomial" else 20
        z, other = (made(A, kernel, rank, **kind) for A in (X, sparse.csr_array(X)))
        if kind["method"] == "eigen":  # up to signs
            products = [a.features @ a.features.T for a in (z, other)]
            np.testing.assert_allclose(*products, atol=1e-9)
        else:
            np.testing.assert_allclose(z.features, other.features, atol=1e-9)


@on_every_method
@on_both_precisions
def test_a_model_is_one_of_its_landmarks(options, dtype):
    X, new = matrix(120, 5), matrix(40, 5, seed=1)
    z = made(X, RBF, 15, dtype=dtype, **options)
    np.testing.assert_array_equal(z.vectors, X[z.landmarks])
    assert z.whitening.shape == (len(z.landmarks), 15)
    W = np.random.default_rng(0).normal(size=(15, 2))
    c = z.coefficients(W)
    counts = np.array([len(c)])
    decide = Expansion(z.kernel, z.vectors, c.T, np.zeros(2), counts)
    atol = 1e-10 if dtype == np.float64 else 2e-3
    np.testing.assert_allclose(decide(new), z.transform(new) @ W, atol=atol)
    np.testing.assert_allclose(z.coefficients(W[:, 0]), c[:, 0])


@pytest.mark.parametrize("kind", ["callable", "precomputed", "sparse precomputed"])
@on_every_method
def test_values_of_the_user_are_as_good(kind, options):
    if kind != "callable" and options.get("landmarks") == "kmeans++":
        return
    X, new = matrix(90, 4), matrix(20, 4, seed=1)
    K, other = plain(RBF, X, X), plain(RBF, new, X)
    z = made(X, RBF, 12, **options)
    if kind == "callable":
        found = made(X, Kernel(lambda A, B: plain(RBF, A, B)), 12, **options)
        Z = found.transform(new)
    else:
        given = K if kind == "precomputed" else sparse.csr_array(K)
        found = made(given, Kernel("precomputed"), 12, **options)
        Z = found.transform(other)
        np.testing.assert_array_equal(found.vectors, found.landmarks)
    expected, given = z.transform(new), z.features
    np.testing.assert_array_equal(found.landmarks, z.landmarks)
    np.testing.assert_allclose(Z @ Z.T, expected @ expected.T, atol=1e-9)
    np.testing.assert_allclose(Z @ found.features.T, expected @ given.T, atol=1e-9)


@pytest.mark.cover(2)
@product(
    method=BY_LANDMARKS,
    dtype=[np.float64, np.float32],
    name=["rbf", "laplacian", "chi2", "linear"],
)
def test_wide_rows_may_be_dense_here_and_sparse_there(method, dtype, name):
    X, kernel = matrix_of(name, 70, 2060, 0.02), NAMED[name]
    new, atol = (
        matrix_of(name, 20, 2060, 0.02, seed=1),
        1e-9 if dtype == np.float64 else 2e-3,
    )
    for convert, other in (
        (sparse.csr_array, np.asarray),
        (np.asarray, sparse.csr_array),
    ):
        z = made(convert(X), kernel, 20, dtype=dtype, **BY_LANDMARKS[method])
        np.testing.assert_allclose(z.transform(other(X)), z.features, atol=atol)
        Z = z.transform(convert(new))
        np.testing.assert_allclose(z.transform(other(new)), Z, atol=atol)
        J = z.landmarks
        np.testing.assert_allclose(plain(kernel, new, X[J]) @ z.whitening, Z, atol=atol)


def test_a_word_for_gamma_is_that_of_the_rows():
    X = matrix(50, 4)
    z = pivoted_cholesky(X, Kernel("rbf"), 50, random_state=0)
    assert z.kernel == Kernel("rbf").resolved(as_rows(X))
    K = z.kernel(X, X)
    np.testing.assert_allclose(z.transform(X[:3]) @ z.features.T, K[:3], atol=1e-8)


# -- each method -----------------------------------------------------------------------


def greedy(K, rank):
    """Trace that is left when the largest residual is always the next pivot."""
    R = K.copy()
    for _ in range(rank):
        p = np.argmax(R.diagonal())
        if R[p, p] < 1e-12:
            break
        R = R - np.outer(R[p], R[p]) / R[p, p]
    return np.trace(R) / np.trace(K)


@pytest.mark.parametrize("name", ["rbf", "linear", "poly-5", "laplacian"])
def test_pivots_are_as_good_as_one_by_one(name):
    X = matrix(400, 30)
    K = plain(NAMED[name], X, X)
    for rank in (5, 25, 60):
        z = pivoted_cholesky(X, NAMED[name], rank, random_state=0)
        assert z.trace_residual <= 1.1 * greedy(K, rank) + 1e-12
        L = np.linalg.cholesky(K[np.ix_(z.landmarks, z.landmarks)])
        np.testing.assert_allclose(z.whitening.T @ L, np.eye(z.rank), atol=1e-6)


@pytest.mark.parametrize("tol", [0.5, 0.1, 0.01])
@pytest.mark.parametrize("rank", [None, 300])
def test_pivots_end_when_enough_is_there(tol, rank):
    X = matrix(300, 3)
    z = pivoted_cholesky(X, RBF, rank, tol=tol, random_state=0)
    assert z.trace_residual <= tol
    fewer = pivoted_cholesky(X, RBF, z.rank - 1, tol=tol, random_state=0)
    assert fewer.rank == z.rank - 1
    assert fewer.trace_residual > tol


def test_random_pivots_follow_the_residuals():
    # Two orthogonal directions with 9 and 1 as k(x, x); each is a pivot once.
    X = np.diag([3.0, 1.0])
    first = [
        nystroem(X, Kernel("linear"), 1, "residual", random_state=seed).landmarks[0]
        for seed in range(200)
    ]
    assert 5 <= sum(first) <= 40
    both = nystroem(X, Kernel("linear"), 2, "residual", random_state=0)
    assert sorted(both.landmarks) == [0, 1]


def test_landmarks_by_leverage_find_small_groups():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 2)) * 0.01
    X[:12] += 10.0 * rng.normal(size=(12, 2))
    found = {
        name: np.mean(
            [
                nystroem(X, RBF, 16, name, random_state=seed).trace_residual
                for seed in range(8)
            ]
        )
        for name in LANDMARKS
    }
    for name in LANDMARKS[1:]:
        assert found[name] < 0.8 * found["uniform"]


@pytest.mark.parametrize("name", ["rbf", "linear", "poly", "laplacian"])
@pytest.mark.parametrize("m", [100, 500])
def test_eigenvectors_are_the_best(name, m):
    X = matrix(m, 6)
    K = plain(NAMED[name], X, X)
    values = np.linalg.eigvalsh(K)[::-1]
    for rank in (4, 12, 30):
        z = eigen(X, NAMED[name], rank, random_state=0)
        best = np.maximum(values[rank:], 0.0).sum() / values.sum()
        assert z.trace_residual >= best - 1e-9
        assert z.trace_residual <= 1.01 * best + 1e-9
        squares = (z.features**2).sum(axis=0)
        np.testing.assert_allclose(squares, values[: z.rank], rtol=0.05)
        products = z.features.T @ z.features
        np.testing.assert_allclose(products, np.diag(squares), atol=1e-9 * values[0])


@pytest.mark.parametrize("name", ["rbf", "laplacian"])
def test_fourier_features_converge_as_the_root(name):
    X = matrix(80, 3)
    K = plain(NAMED[name], X, X)

    def error(rank):
        maps = (fourier(X, NAMED[name], rank, random_state=s) for s in range(10))
        return np.sqrt(np.mean([(z.features @ z.features.T - K) ** 2 for z in maps]))

    errors = np.array([error(rank) for rank in (50, 200, 800)])
    np.testing.assert_allclose(errors[:-1] / errors[1:], 2.0, rtol=0.25)


@pytest.mark.parametrize("coef0", [0.0, 0.5])
def test_a_polynomial_is_exact(coef0):
    X = matrix(50, 6)
    kernel = Kernel("poly", gamma=0.3, degree=2, coef0=coef0)
    z = polynomial(X, kernel)
    assert z.rank == (28 if coef0 else 21)
    np.testing.assert_allclose(
        z.features @ z.features.T, plain(kernel, X, X), rtol=1e-12, atol=1e-13
    )


def test_a_linear_solver_becomes_a_kernel_solver():
    X = matrix(500, 2) * 3.0
    y = np.where((X**2).sum(axis=1) < np.median((X**2).sum(axis=1)), 1, -1)
    z = feature_map(X, RBF, rank=60, random_state=0)
    assert LinearSVC().fit(z.features, y).score(z.transform(X), y) > 0.95


# -- what reduces the rank, and what is refused ----------------------------------------


@on_every_method
@on_both_precisions
def test_duplicates_reduce_the_rank(options, dtype):
    X = np.repeat(matrix(9, 4), 10, axis=0)
    z = made(X, RBF, 40, dtype=dtype, **options)
    assert z.rank <= 9
    if options.get("landmarks") != "uniform":
        assert z.rank >= 8
        assert z.trace_residual < 0.05
    assert np.isfinite(z.features).all()


@on_every_method
def test_a_kernel_of_low_rank_reduces_the_rank(options):
    z = made(matrix(200, 5), NAMED["linear"], 40, **options)
    assert z.rank == 5
    assert abs(z.trace_residual) < 1e-12


@on_every_method
def test_an_indefinite_kernel_has_features_that_are_finite(options):
    X = matrix(150, 4) * 2.0
    z = made(X, Kernel("sigmoid", gamma=0.6, coef0=0.1), 80, **options)
    assert 0 < z.rank <= 80
    assert np.isfinite(z.transform(X)).all()


@on_both_precisions
def test_values_that_float32_cannot_hold(dtype):
    X = matrix(80, 3) * 1e9
    z = pivoted_cholesky(X, Kernel("linear"), 3, dtype=dtype, random_state=0)
    assert z.trace_residual == pytest.approx(0.0, abs=1e-6)
    far = matrix(80, 3) + 1e6
    z = pivoted_cholesky(far, RBF, 80, dtype=dtype, random_state=0)
    np.testing.assert_allclose(
        z.features @ z.features.T, plain(RBF, far, far), atol=1e-4
    )


def test_the_seed_decides():
    X = matrix(200, 4)
    for z, again in zip(
        all_maps(X, 10, random_state=3), all_maps(X, 10, random_state=3), strict=True
    ):
        np.testing.assert_array_equal(z[0].features, again[0].features)
    chosen = [nystroem(X, RBF, 10, random_state=seed).landmarks for seed in (0, 1)]
    assert set(chosen[0]) != set(chosen[1])


def test_pivots_of_a_matrix_without_any():
    chosen, L = pivots_of(-np.eye(3), 0.0)
    assert chosen.shape == (0,)
    assert L.shape == (0, 0)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"method": "lanczos"}, ValueError, "'method' parameter of feature_map must"),
        (
            {"rank": 0},
            ValueError,
            "'rank' parameter of feature_map must be an int",
        ),
        ({"rank": 2.5}, ValueError, "'rank' parameter of feature_map must be an"),
        ({"rank": None}, ValueError, "'rank' .* must be given where 'tol' is not"),
        ({"tol": 2.0}, ValueError, "'tol' .* a float in the range"),
        ({"dtype": np.int32}, TypeError, "'dtype' parameter of feature_map must"),
        ({"memory_limit": 100}, ValueError, "'memory_limit' .* at least 960 bytes"),
        ({"kernel": "rbf"}, ValueError, "'kernel' .* must be a Kernel. Got 'rbf'"),
        ({"kernel": Kernel("precomputed")}, ValueError, r"square .* Got shape \(40, 3"),
        ({"method": "eigen", "rank": None}, TypeError, "'rank' parameter of feat"),
        (
            {"method": "eigen", "features": False},
            ValueError,
            "'features' parameter of feature_map must be left out for 'eigen'. Got F",
        ),
        ({"method": "nystroem", "ranks": 2}, ValueError, "'ranks' .* left out for 'ny"),
        ({"method": "nystroem", "landmarks": "x"}, ValueError, "'landmarks' .* 'unif"),
        ({"method": "fourier", "rank": 1}, ValueError, r"'rank' .* \[2, inf\)"),
        ({"method": "fourier", "kernel": SQUARE}, ValueError, "be 'rbf' or 'laplacian"),
        ({"method": "polynomial"}, ValueError, "'rank' .* be None for 'polynomial'"),
        ({"method": "polynomial", "rank": None}, ValueError, "be 'poly' with degree=2"),
    ],
)
def test_what_cannot_be_is_refused(options, error, message):
    given = {"kernel": RBF, "rank": 3, **options}
    with pytest.raises(error, match=message):
        feature_map(matrix(40, 3), **given)


@pytest.mark.parametrize("method", METHODS)
def test_bad_rows_are_refused(method):
    kernel, rank = (SQUARE, None) if method == "polynomial" else (RBF, 4)
    X = matrix(40, 3)
    bad = X.copy()
    bad[7, 1] = np.nan
    with pytest.raises(ValueError, match="Got NaN at row 7, column 1"):
        feature_map(bad, kernel, method, rank)
    z = feature_map(X, kernel, method, rank, random_state=0)  # of rank 2 or more
    with pytest.raises(ValueError, match="Got NaN at row 7, column 1"):
        z.transform(bad)
    words = "'X' parameter of FeatureMap.transform must have 3 columns. Got 2"
    with pytest.raises(ValueError, match=words):
        z.transform(X[:, :2])
    if method in ("fourier", "polynomial"):
        assert z.landmarks is z.vectors is z.whitening is None
        with pytest.raises(ValueError, match="has no landmarks"):
            z.coefficients(np.ones(z.rank))
    else:
        words = "'w' parameter of FeatureMap.coefficients must have shape .* Got "
        for shape in ((), z.rank + 1, (1, z.rank)):
            with pytest.raises(ValueError, match=words):
                z.coefficients(np.ones(shape))


def test_a_maker_that_is_called_directly_is_named():
    with pytest.raises(ValueError, match="'rank' parameter of eigen must be an int"):
        eigen(matrix(40, 3), RBF, 0)
    with pytest.raises(ValueError, match="'kernel' parameter of pivoted_cholesky must"):
        pivoted_cholesky(np.zeros((9, 2)), Kernel("linear"), 2)


def test_a_kernel_without_a_trace_is_refused():
    for method in ("cholesky", "nystroem", "eigen"):
        with pytest.raises(ValueError, match="must have a positive trace .* Got 0 ins"):
            feature_map(np.zeros((9, 2)), Kernel("linear"), method, 2)
    K = np.diag([1.0] + [0.0] * 999)
    with pytest.raises(ValueError, match=r"have k\(x, x\) > 0 at a landmark"):
        nystroem(K, Kernel("precomputed"), 1, random_state=0)
    with pytest.raises(ValueError, match="'uniform', 'leverage'"):
        nystroem(K, Kernel("precomputed"), 1, "kmeans++")
    with pytest.raises(ValueError, match="symmetric"):
        pivoted_cholesky(np.triu(np.ones((9, 9))), Kernel("precomputed"), 2)


def test_the_empirical_kernel_map_is_the_same_problem():
    """[jung2008]_, (4.2): rows V = K_:J with the penalty of G^-2 = K_JJ."""
    rng = np.random.default_rng(0)
    X, kernel = rng.normal(size=(200, 3)), Kernel("rbf", gamma=0.3)
    z = feature_map(X, kernel, "nystroem", 20, random_state=0)
    V, G = kernel(X, z.vectors), kernel(z.vectors, z.vectors)
    w = rng.normal(size=z.rank)
    beta = z.coefficients(w)
    np.testing.assert_allclose(beta @ G @ beta, w @ w, rtol=1e-9)
    np.testing.assert_allclose(V @ beta, z.features @ w, rtol=1e-9, atol=1e-12)
