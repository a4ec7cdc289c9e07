"""Makers of feature maps: kernel matrices of low rank, K ~ Z Z'.

======================  ==============================================================
`pivoted_cholesky`      landmarks with the largest residual ``k(x, x) - |z(x)|^2``:
                        CHOL of [jung2008]_ and [fine2001]_
`nystroem`              landmarks by chance: uniform, k-means++, leverage, residuals
`eigen`                 the leading eigenvectors of K: EIGS of [jung2008]_
`fourier`               random Fourier features of "rbf" and "laplacian"
`polynomial`            the monomials of "poly" with degree 2: exact
======================  ==============================================================

Where the features of all rows are not to be held, because the rows are not in memory or
by ``features=False``, landmarks are chosen from ``builder.SAMPLE`` uniform rows,
or fewer where a memory_limit of the rows wants that; these take the place of m below.
One sweep then measures what the map leaves of all rows, beside one that looks for NaN.
Only `eigen` needs all rows in memory: all are landmarks.
"""

import inspect
from collections.abc import Callable
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from widemargin.arrays import Index
from widemargin.features.builder import CUT, MapBuilder
from widemargin.features.maps import (
    FeatureMap,
    Features,
    FourierFeatures,
    SquareFeatures,
    tiles,
)
from widemargin.features.partial_cholesky import (
    PartialCholesky,
    by_chance,
    inverse,
    largest,
    pivots_of,
)
from widemargin.kernels.kernel import Kernel
from widemargin.kernels.table import with_spectrum
from widemargin.numerics import linalg
from widemargin.parameters import Checker, refused_by
from widemargin.system import deadline

# In `eigen`: vectors for each of the rank, and pivots for each vector. 1.0010 of the
# least trace was left at most, of 4,000 and 6,000 rows of covtype and a9a, ranks 20 to
# 300; with three pivots 1.003, with two 1.010. Block Lanczos from two pivots, with two
# products of rank + 8 vectors, left 1.0024; on a9a it took 1.4 to 1.7 times as long.
VECTORS, BEYOND, PIVOTS = 1.25, 8, 4
# Rows of the first sample of leverage scores, for each landmark.
SAMPLED = 2
# The least ridge, as a share of the largest eigenvalue. Where the sample has hardly
# more dimensions than there are landmarks, scores are distances from its span.
LEAST_RIDGE = 1e-6
# Flops of eigenvectors, as a multiple of n^3, in units of flops of products.
EIGEN = 25.0
LANDMARKS = ("uniform", "kmeans++", "leverage", "residual")
_WITHOUT_ROWS = "'uniform', 'leverage', 'residual'"


def pivoted_cholesky(  # noqa: PLR0913  (by keyword)
    rows: ArrayLike,
    kernel: Kernel,
    rank: int | None = None,
    *,
    tol: float | None = None,
    random_state: Any = None,
    dtype: Any = np.float64,
    memory_limit: int | None = None,
    features: bool | None = None,
) -> FeatureMap:
    """Partial Cholesky factor K ~ Z Z' with the largest residuals as pivots: CHOL.

    A pivot p appends the column ``(K_p - Z z_p) / sqrt(d_p)`` to Z, with the residuals
    ``d_i = k(x_i, x_i) - |z_i|^2``, and becomes a landmark [fine2001]_, [jung2008]_.

    Parameters
    ----------
    rows : array, sparse matrix or Rows, (m, n)
        For a precomputed kernel K, (m, m).
    kernel : Kernel
    rank : int >= 1 or None
        The largest rank, lowered to m. None: m, if ``tol`` is given.
    tol : float in (0, 1] or None
        The least rank is taken with trace(K - Z Z') <= tol trace(K).
    random_state : int, Generator or None
        Seed of the order of equal residuals, and of the rows of the error estimate.
    dtype : float64 or float32
    memory_limit : int or None, bytes of the features; None: half of the free memory
    features : bool or None, whether Z is held; None: where the rows are in memory

    Returns
    -------
    FeatureMap
        The rank is smaller where all residuals are below 1e-12 (float32: 1e-5) of the
        largest k(x, x): duplicates, kernels of low rank. An indefinite kernel ends
        where no residual is positive.

    Raises
    ------
    ValueError or TypeError
        A parameter out of range, neither rank nor tol, a kernel with a trace <= 0.

    Notes
    -----
    r m kernel values and m r^2 multiplications; m r numbers. Up to 32 pivots are chosen
    together: in the order of the largest residual among 96 rows, as long as it is at
    least half of the largest one outside of these. The largest residuals often belong
    to outliers. Drawing by chance in proportion to residuals (`nystroem` with
    "residual") leaves less of the trace, at the same cost.
    """
    owner = "pivoted_cholesky"
    builder = MapBuilder(
        owner, rows, kernel, dtype, random_state, memory_limit, features
    )
    builder.check.positive("tol", tol, most=1.0, optional=True)
    if rank is None and tol is None:
        builder.check.refuse_part("rank", "be given where 'tol' is not", "None")
    most = builder.m if rank is None else builder.rank(rank)
    factor = PartialCholesky(builder, most, largest)
    return factor.feature_map("cholesky", 0.0 if tol is None else tol * builder.trace)


def nystroem(  # noqa: PLR0913  (by keyword)
    rows: ArrayLike,
    kernel: Kernel,
    rank: int,
    landmarks: Literal["uniform", "kmeans++", "leverage", "residual"] = "uniform",
    *,
    random_state: Any = None,
    dtype: Any = np.float64,
    memory_limit: int | None = None,
    features: bool | None = None,
) -> FeatureMap:
    """Nystroem features ``z(x) = L^-1 k(x)`` of landmarks, with K_JJ = L L'.

    Parameters
    ----------
    rows : array, sparse matrix or Rows, (m, n)
        For a precomputed kernel K, (m, m).
    kernel : Kernel
    rank : int >= 1, the number of landmarks; lowered to m
    landmarks : str, how they are chosen
        "uniform": by chance. "kmeans++": by chance, in proportion to the squared
        distance in the input space from earlier choices [arthur2007]_. "leverage":
        in proportion to ridge leverage scores ``(K (K + c I)^-1)_ii``, estimated from
        twice as many uniform rows; c is the mean eigenvalue beyond the rank
        [musco2017]_. "residual": in proportion to ``k(x, x) - |z(x)|^2``, each after
        the choices before it (randomly pivoted Cholesky [chen2025]_).
    random_state : int, Generator or None
    dtype : float64 or float32
    memory_limit : int or None, bytes of the features; None: half of the free memory
    features : bool or None, whether Z is held; None: where the rows are in memory

    Returns
    -------
    FeatureMap
        Fewer landmarks stay where some lie in the span of others, to 1e-12 (float32:
        1e-5) of the largest k(x, x): duplicates, kernels of low rank.

    Raises
    ------
    ValueError or TypeError
        A parameter out of range; "kmeans++" with a precomputed kernel; a kernel with a
        trace <= 0.

    Notes
    -----
    r m kernel values, three times as many for "leverage", and 2 m r^2 flops; m r
    numbers. "kmeans++" takes O(m n r log r).

    "leverage" finds small groups apart from the others, but where there are none it
    left more of the trace than "uniform": 0.26 and 0.25 of a9a, 0.47 and 0.41 of 5,000
    rows of ijcnn1, rank 64. "kmeans++" left least on a9a, ijcnn1 and mnist.
    """
    builder = MapBuilder(
        "nystroem", rows, kernel, dtype, random_state, memory_limit, features
    )
    builder.check.choice("landmarks", landmarks, LANDMARKS)
    if landmarks == "kmeans++" and kernel.is_precomputed:
        expected = f"be one of {_WITHOUT_ROWS} for a precomputed kernel"
        builder.check.refuse_part("landmarks", expected, repr(landmarks))
    rank = builder.rank(rank)
    if landmarks == "residual":
        return PartialCholesky(builder, rank, by_chance).feature_map("nystroem", 0.0)
    choose: dict[str, Callable[[MapBuilder, int], Index]] = {
        "uniform": _uniform,
        "kmeans++": _apart,
        "leverage": _by_leverage,
    }
    J = np.unique(choose[landmarks](builder, rank))
    K = builder.source.values(J, J)
    deadline.check(2.0 * len(J) ** 3)
    chosen, L = pivots_of(K, CUT[builder.dtype] * float(K.diagonal().max()))
    if len(chosen) == 0:
        builder.check.refuse_part("kernel", "have k(x, x) > 0 at a landmark", "none")
    J = J[chosen]
    return builder.made("nystroem", builder.landmark_features(J, inverse(L)), J)


def _uniform(builder: MapBuilder, count: int) -> Index:
    """Rows by chance."""
    return builder.rng.permutation(builder.m)[:count]


def _apart(builder: MapBuilder, count: int) -> Index:
    """Rows by k-means++."""
    from sklearn.cluster import kmeans_plusplus

    X = builder.X.astype(np.float64, copy=False)
    seed = int(builder.rng.integers(2**31))
    return np.asarray(kmeans_plusplus(X, count, random_state=seed)[1], np.intp)


def _by_leverage(builder: MapBuilder, count: int) -> Index:
    """Rows in proportion to estimates of their ridge leverage scores.

    With s uniform rows S, ``(k_ii - k_iS (K_SS + c s / m I)^-1 k_Si) / c``.
    """
    S = _uniform(builder, min(builder.m, SAMPLED * count))
    if len(S) <= count:
        return S[:count]
    deadline.check(EIGEN * len(S) ** 3)
    values, V = np.linalg.eigh(builder.source.values(S, S))
    values = np.maximum(values, 0.0)
    # The eigenvalues of K are about m / s times as large.
    ridge = float(values[: len(S) - count].sum()) / count
    ridge = max(ridge, LEAST_RIDGE * float(values[-1]))
    expand = builder.landmark_features(S, V / np.sqrt(values + ridge))
    scores = builder.diagonal.copy()
    for part, features in tiles(expand, builder.X):
        scores[part] -= linalg.row_squares(features)
    scores = np.maximum(scores, CUT[builder.dtype] * builder.diagonal.max())
    return builder.rng.choice(builder.m, count, replace=False, p=scores / scores.sum())


def eigen(
    rows: ArrayLike,
    kernel: Kernel,
    rank: int,
    *,
    random_state: Any = None,
    dtype: Any = np.float64,
    memory_limit: int | None = None,
) -> FeatureMap:
    """Leading eigenvectors of K: ``Z = U diag(lambda)^(1/2)``, nearest to K: EIGS.

    With Q the leading left singular vectors of a partial Cholesky factor with random
    pivots, the Nystroem form ``K Q (Q'K Q)^-1 Q'K`` is cut to the rank [tropp2017]_, so
    that Z is K W, and z(x) the same on the rows and elsewhere.

    Parameters
    ----------
    rows : array, sparse matrix or Rows in memory, (m, n)
        For a precomputed kernel K, (m, m).
    kernel : Kernel
    rank : int >= 1; lowered to m
    random_state : int, Generator or None
    dtype : float64 or float32
    memory_limit : int or None, bytes of the features; None: half of the free memory

    Returns
    -------
    FeatureMap
        All rows are landmarks. About 1.001 of the least possible trace residual is
        left. The rank is smaller where the other eigenvalues are below 1e-12 (float32:
        1e-5) of the largest one, or negative.

    Raises
    ------
    ValueError or TypeError
        A parameter out of range, a kernel with a trace <= 0.

    Notes
    -----
    m^2 kernel values, once, and with b = 1.25 rank + 8 vectors 2 m^2 b flops; the
    factor has 4 b columns, and takes 16 m b^2. 4 m b numbers. Where b >= m: an eigen
    decomposition of K, m^3.
    """
    builder = MapBuilder("eigen", rows, kernel, dtype, random_state, memory_limit, True)
    rank = builder.rank(rank)
    block = min(builder.m, int(VECTORS * rank) + BEYOND)
    builder.reserve(2 * block * builder.m)
    if block == builder.m:
        Q = np.eye(builder.m, dtype=builder.dtype)
    else:
        first = _first(builder, block)
        deadline.check(4.0 * builder.m * block**2)
        Q = np.linalg.qr(first)[0]
    deadline.check(EIGEN * block**3)
    P = builder.times(Q)
    T = (Q.T @ P).astype(np.float64)
    values, S = np.linalg.eigh(0.5 * (T + T.T))
    kept = values > CUT[builder.dtype] * values[-1]
    if not (values[-1] > 0):
        builder.check.refuse_part("kernel", "have a positive eigenvalue", "none")
    C = (S[:, kept] / np.sqrt(values[kept])).astype(builder.dtype)
    R = np.linalg.qr(P @ C, mode="r")
    C = C @ np.linalg.svd(R)[2][:rank].T
    expand = builder.landmark_features(slice(None), Q @ C)
    return builder.made("eigen", expand, np.arange(builder.m), P @ C)


def _first(builder: MapBuilder, block: int) -> Features:
    """Vectors near the leading eigenvectors, random ones where there are fewer: (m, b).

    Left singular vectors of a partial Cholesky factor.
    """
    factor = PartialCholesky(builder, min(builder.m, PIVOTS * block), by_chance)
    while factor.extend(0.0):
        pass
    Z = factor.Z
    deadline.check(EIGEN * Z.shape[1] ** 3 + 2.0 * Z.size * Z.shape[1])
    S = np.linalg.eigh((Z.T @ Z).astype(np.float64))[1][:, ::-1]
    V = Z @ S[:, :block].astype(builder.dtype)
    more = builder.rng.standard_normal((builder.m, block - V.shape[1]))
    return np.hstack([V, more.astype(builder.dtype)])


def fourier(
    rows: ArrayLike,
    kernel: Kernel,
    rank: int,
    *,
    random_state: Any = None,
    dtype: Any = np.float64,
    memory_limit: int | None = None,
    features: bool | None = None,
) -> FeatureMap:
    """Random Fourier features: cosines and sines of random frequencies [rahimi2007]_.

    ``z(x)'z(x') = 2 / r sum_j cos((x - x')'o_j)``, whose mean is k(x, x'): entries of
    o_j are normal with variance 2 gamma ("rbf") or Cauchy with scale gamma
    ("laplacian").

    Parameters
    ----------
    rows : array, sparse matrix or Rows, (m, n)
    kernel : Kernel, "rbf" or "laplacian"
    rank : int >= 2; an odd one is lowered by 1, while more than m is taken as it is
    random_state : int, Generator or None
    dtype : float64 or float32
    memory_limit : int or None, bytes of the features; None: half of the free memory
    features : bool or None, whether Z is held; None: where the rows are in memory

    Returns
    -------
    FeatureMap
        Without landmarks. Its trace residual is 0, see `error`, which falls as
        1 / sqrt(r).

    Raises
    ------
    ValueError or TypeError
        A parameter out of range, another kernel.

    Notes
    -----
    m n r flops and m r sines; no kernel values but for the error.
    """
    builder = MapBuilder(
        "fourier", rows, kernel, dtype, random_state, memory_limit, features
    )
    builder.check.count("rank", rank, least=2)
    spectrum = kernel.named and kernel.named.spectrum
    if spectrum is None:
        expected = f"be {' or '.join(map(repr, with_spectrum()))}"
        builder.check.refuse_part("kernel", expected, repr(kernel.name))
    shape, gamma = (builder.n, rank // 2), float(builder.kernel.gamma)
    if spectrum == "normal":
        frequencies = np.sqrt(2.0 * gamma) * builder.rng.standard_normal(shape)
    else:
        frequencies = gamma * builder.rng.standard_cauchy(shape)
    return builder.made("fourier", FourierFeatures(frequencies.astype(builder.dtype)))


def polynomial(
    rows: ArrayLike,
    kernel: Kernel,
    *,
    random_state: Any = None,
    dtype: Any = np.float64,
    memory_limit: int | None = None,
    features: bool | None = None,
) -> FeatureMap:
    """The monomials of a polynomial kernel of degree 2: exact ([jung2008]_, (5.1)).

    Parameters
    ----------
    rows : array, sparse matrix or Rows, (m, n)
    kernel : Kernel, "poly" with degree 2 and coef0 >= 0
    random_state : int, Generator or None
        Seed of the rows of the error, which is rounding.
    dtype : float64 or float32
    memory_limit : int or None, bytes of the features; None: half of the free memory
    features : bool or None, whether Z is held; None: where the rows are in memory

    Returns
    -------
    FeatureMap
        Of rank n (n + 3) / 2 + 1, or n (n + 1) / 2 with coef0 = 0; no landmarks.

    Raises
    ------
    ValueError or TypeError
        A parameter out of range, another kernel.
    """
    builder = MapBuilder(
        "polynomial", rows, kernel, dtype, random_state, memory_limit, features
    )
    if kernel.name != "poly" or kernel.degree != 2 or kernel.coef0 < 0:
        expected = "be 'poly' with degree=2 and coef0 >= 0"
        builder.check.refuse_part("kernel", expected, repr(kernel))
    gamma = float(builder.kernel.gamma)
    expand = SquareFeatures(gamma, float(kernel.coef0), builder.n, builder.dtype)
    return builder.made("polynomial", expand)


METHODS: dict[str, Callable[..., FeatureMap]] = {
    "cholesky": pivoted_cholesky,
    "nystroem": nystroem,
    "eigen": eigen,
    "fourier": fourier,
    "polynomial": polynomial,
}


def feature_map(
    rows: ArrayLike,
    kernel: Kernel,
    method: str = "cholesky",
    rank: int | None = None,
    **options: Any,
) -> FeatureMap:
    """A map z(x) of r dimensions with z(x)'z(x') near k(x, x'), by any method.

    Parameters
    ----------
    rows : array, sparse matrix or Rows, (m, n)
        For a precomputed kernel K, (m, m).
    kernel : Kernel
    method : str, default="cholesky"
        "cholesky" (`pivoted_cholesky`), "nystroem", "eigen", "fourier" or "polynomial".
    rank : int or None
        None: for "polynomial", and for "cholesky" with ``tol``.
    **options
        Of the method: tol, landmarks, random_state, dtype, memory_limit, features.

    Returns
    -------
    FeatureMap

    Raises
    ------
    ValueError or TypeError
        A parameter out of range, or a parameter that the method does not have.

    Examples
    --------
    >>> import numpy as np
    >>> from widemargin import Kernel
    >>> from widemargin.features.methods import feature_map
    >>> X = np.random.default_rng(0).normal(size=(500, 2))
    >>> z = feature_map(X, Kernel("rbf", gamma=0.1), rank=40, random_state=0)
    >>> z.features.shape, z.trace_residual < 1e-4, z.transform(X[:3]).shape
    ((500, 40), True, (3, 40))
    """
    check = Checker("feature_map")
    check.choice("method", method, tuple(METHODS))
    if method == "polynomial" and rank is not None:
        check.refuse_part("rank", "be None for 'polynomial'", repr(rank))
    make = METHODS[method]
    for name in sorted(options.keys() - inspect.signature(make).parameters.keys()):
        expected = f"be left out for {method!r}"
        check.refuse_part(name, expected, repr(options[name]))
    given = (rows, kernel) if method == "polynomial" else (rows, kernel, rank)
    with refused_by("feature_map", make.__name__):
        return make(*given, **options)
