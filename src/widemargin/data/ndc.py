"""Normally distributed clusters (NDC): integer rows of any number, in two classes."""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import DTypeLike, NDArray

from widemargin.arrays import Vector
from widemargin.parameters import Checker, is_integer

PARTS = ("train", "test")
# The largest integer up to which a dtype holds all of them.
_LARGEST = {"int16": 2**15 - 1, "float32": 2**24, "float64": 2**53}
# Rows that are made at a time, and entries: 32 MB of float64. A block has a seed: other
# numbers make other data.
_BLOCK_ROWS, _BLOCK_ENTRIES = 100_000, 4_000_000
_LOW, _HIGH = -50.0, 50.0  # the box of the centers
# Noise and roots are multiples of 2^-20 and 2^-16: a float64 sum of up to 4096 of their
# products, each below 2^3 * 1, is exact, whatever the order in which BLAS adds them.
_NOISE_BITS, _ROOT_BITS, _MOST_FEATURES = 20, 16, 4096
# What is refused beyond: centers, entries of their roots (2 GB), and `expand`.
_MOST_CENTERS, _MOST_ROOTS, _MOST_EXPAND = 10_000, 2**30, 1e6


def make_ndc(
    m: int,
    n: int = 32,
    random_state: int = 0,
    *,
    part: str = "train",
    expand: float = 10.0,
    centers: int = 20,
    dtype: DTypeLike = np.float64,
) -> tuple[NDArray[Any], Vector]:
    r"""Rows around random centers, labeled by the side of a plane their center is on.

    A row of center c_j is round(c_j + R_j'g), g standard normal. The centers are
    integer points of the box [-50, 50]^n. R_j = 2 `expand` U_j, U_j uniform on [0, 1):
    its entries are all positive, so the columns are strongly correlated, with one
    dominant direction. Center j has a share of the rows proportional to a number
    uniform on [0, 1), and the class sign(c_j'w - b), 0 being +1, with w uniform on
    [-2, 2]^n and b on [-5, 5]. Draws in which all centers are of one class are
    rejected.

    Parameters
    ----------
    m : int in the range [1, inf)
        The number of rows. The first rows do not depend on it.
    n : int in the range [1, 4096], default 32
        The number of columns.
    random_state : int in the range [0, inf), default 0
        The seed: the same one gives the same rows.
    part : {"train", "test"}, default "train"
        "test" gives other rows of the same centers. Customary is 1 % of the number of
        training rows.
    expand : float in the range (0, 1e6], default 10.0
        The larger, the more rows lie on the wrong side of the plane: for 1 some 10 %,
        for 10 a third.
    centers : int in the range [2, 10000], default 20
        The number of centers, with centers n^2 at most 2^30.
    dtype : {numpy.int16, numpy.float32, numpy.float64}, default numpy.float64
        The dtype of X. With the defaults all values are some hundreds, and int16 holds
        them in a quarter of the memory.

    Returns
    -------
    X : ndarray (m, n) of `dtype`, C order
        Integers.
    y : ndarray (m,), float64
        +1 and -1. A few rows may all be of one class.

    Raises
    ------
    ValueError or TypeError
        If a parameter is out of its range, or `dtype` cannot hold a value: nothing is
        clipped.

    Notes
    -----
    Rows are drawn in blocks, each with a seed of its own: of 100,000 rows, or fewer
    for n > 40, so that a block has at most 4 million entries. `ndc_blocks` gives them
    one by one. Noise and roots are rounded to multiples of 2^-20 and 2^-16, so that
    their products add up exactly: the rows do not depend on the number of threads, on
    the BLAS library, or on which rows are drawn together.

    Cost: 2 m n^2 flops and m n normal numbers, which are the larger part for n = 32;
    1.7 million rows of 32 columns a second were measured on one core. Memory: X, y,
    some 30 MB for a block, and 2 centers n^2 bytes.

    References
    ----------
    The generator is NDC [musicant1998]_, which [mangasarian2001]_ used, written anew
    from its published facts.

    Examples
    --------
    >>> X, y = make_ndc(1000, 3, random_state=1)
    >>> X[:2]
    array([[ 56.,  51.,  16.],
           [-31., -71.,  20.]])
    >>> X_test, y_test = make_ndc(10, 3, random_state=1, part="test")
    """
    settings = _Settings(n, random_state, part, expand, centers, dtype, "make_ndc")
    settings = _checked(m, settings)
    mixture = _mixture(settings)
    X, y = np.empty((m, n), settings.dtype), np.empty(m)
    for block, rows in enumerate(_slices(m, settings.n)):
        _draw(settings, mixture, block, X[rows], y[rows])
    return X, y


def ndc_blocks(
    m: int,
    n: int = 32,
    random_state: int = 0,
    *,
    part: str = "train",
    expand: float = 10.0,
    centers: int = 20,
    dtype: DTypeLike = np.float64,
) -> Iterator[tuple[NDArray[Any], Vector]]:
    """The rows of `make_ndc` block after block, so that they need not fit in memory.

    Parameters
    ----------
    m, n, random_state, part, expand, centers, dtype : as of `make_ndc`
        They are checked at once, before the first block is asked for.

    Yields
    ------
    X : ndarray (rows, n) of `dtype`, C order
        The next rows: 100,000, fewer for n > 40 and at the end.
    y : ndarray (rows,), float64
        Their labels.

    Raises
    ------
    ValueError or TypeError
        As `make_ndc` does; for a value that `dtype` cannot hold when its block is
        drawn.

    Notes
    -----
    Memory: two blocks of at most 32 MB, and 2 centers n^2 bytes.

    Examples
    --------
    >>> [X.shape for X, y in ndc_blocks(250_000, 4)]
    [(100000, 4), (100000, 4), (50000, 4)]
    """
    settings = _Settings(n, random_state, part, expand, centers, dtype, "ndc_blocks")
    return _stream(m, _checked(m, settings))


class _Settings(NamedTuple):
    """What the rows depend on, and who was asked for them."""

    n: int
    random_state: int
    part: str
    expand: float
    centers: int
    dtype: Any
    owner: str


class _Mixture(NamedTuple):
    """The clusters: k centers in n columns, and the plane between their classes."""

    points: Vector  # (k, n)
    roots: NDArray[np.uint16]  # (k, n, n), in units of 2^-16
    ends: Vector  # (k,), cumulated shares of the rows
    plane: Vector  # (n,)
    offset: float
    classes: Vector  # (k,), +1 and -1; both occur


def _checked(m: int, settings: _Settings) -> _Settings:
    """The settings, with plain numbers and a NumPy dtype."""
    check = Checker(settings.owner)
    check.count("m", m)
    for name, least, most in (("n", 1, _MOST_FEATURES), ("centers", 2, _MOST_CENTERS)):
        value = getattr(settings, name)
        if not (is_integer(value) and least <= value <= most):
            check.refuse(name, f"an int in the range [{least}, {most}]", value)
    n, k = int(settings.n), int(settings.centers)
    if k * n * n > _MOST_ROOTS:
        most = _MOST_ROOTS // (n * n)
        check.refuse("centers", f"at most {most} with {n} columns", k)
    check.count("random_state", settings.random_state, least=0)
    check.choice("part", settings.part, PARTS)
    check.positive("expand", settings.expand, most=_MOST_EXPAND)
    return settings._replace(
        n=n,
        centers=k,
        expand=float(settings.expand),  # a float32 would round what follows
        dtype=_check_dtype(check, settings.dtype),
    )


def _check_dtype(check: Checker, dtype: DTypeLike) -> np.dtype[Any]:
    """The dtype, in the byte order of this machine."""
    try:
        found = np.dtype(dtype)
    except TypeError:
        found = None
    if found is None or found.name not in _LARGEST or not found.isnative:
        given = dtype if found is None else found.str if not found.isnative else found
        check.refuse_part("dtype", f"be {', '.join(_LARGEST)}", str(given))
    return found


def _generator(settings: _Settings, *key: int) -> np.random.Generator:
    """Random numbers of their own for every key."""
    seed = np.random.SeedSequence(int(settings.random_state), spawn_key=key)
    return np.random.default_rng(seed)


def _mixture(settings: _Settings) -> _Mixture:
    """The first draw in which both classes have a center."""
    rng, n, k = _generator(settings, 0), settings.n, settings.centers
    while True:
        points = np.rint(rng.uniform(_LOW, _HIGH, (k, n)))
        ends = np.cumsum(rng.uniform(size=k))
        plane = rng.uniform(-2.0, 2.0, n)
        offset = rng.uniform(_LOW, _HIGH) / 10.0
        classes = np.where(points @ plane >= offset, 1.0, -1.0)
        if abs(classes.sum()) < k:
            break
    ends /= ends[-1]
    roots = rng.integers(0, 1 << _ROOT_BITS, (k, n, n), dtype=np.uint16)
    return _Mixture(points, roots, ends, plane, offset, classes)


def _slices(m: int, n: int) -> Iterator[slice]:
    """The rows of each block. Their size must not depend on m: a block has a seed."""
    step = min(_BLOCK_ROWS, _BLOCK_ENTRIES // n)
    return (slice(start, min(start + step, m)) for start in range(0, m, step))


def _stream(m: int, settings: _Settings) -> Iterator[tuple[NDArray[Any], Vector]]:
    mixture = _mixture(settings)
    for block, rows in enumerate(_slices(m, settings.n)):
        size = rows.stop - rows.start
        X, y = np.empty((size, settings.n), settings.dtype), np.empty(size)
        _draw(settings, mixture, block, X, y)
        yield X, y


def _draw(
    settings: _Settings,
    mixture: _Mixture,
    block: int,
    X: NDArray[Any],
    y: Vector,
) -> None:
    """Fill X (rows, n) and y (rows,) with the first rows of a block."""
    part = 1 + PARTS.index(settings.part)
    # Centers and noise have generators of their own, each read in the order of the
    # rows: the first rows do not depend on how many there are.
    places = _generator(settings, part, block, 0).random(len(y))
    which = np.searchsorted(mixture.ends, places, side="right").astype(np.int16)
    rng = _generator(settings, part, block, 1)
    noise = rng.standard_normal(X.shape, dtype=np.float32)
    order = np.argsort(which, kind="stable")
    starts = np.searchsorted(which[order], np.arange(settings.centers + 1))
    for j in np.flatnonzero(np.diff(starts)).tolist():
        mine = order[starts[j] : starts[j + 1]]
        rows = _cluster(settings, mixture, j, noise[mine])
        _check_range(settings, rows)
        X[mine] = rows
    y[:] = mixture.classes[which]


def _cluster(
    settings: _Settings, mixture: _Mixture, j: int, noise: NDArray[np.float32]
) -> Vector:
    """round(c_j + R_j'g) for each row g of the noise, which is overwritten."""
    noise *= np.float32(1 << _NOISE_BITS)
    np.rint(noise, out=noise)
    root = mixture.roots[j].astype(np.float64)
    rows: Vector = noise.astype(np.float64) @ root  # exact: integers
    unit = 0.5 ** (_NOISE_BITS + _ROOT_BITS)
    rows *= settings.expand * (_HIGH - _LOW) / 50.0 * unit
    rows += mixture.points[j]
    return np.rint(rows, out=rows)


def _check_range(settings: _Settings, rows: Vector) -> None:
    """Refuse values that the dtype does not hold."""
    name = settings.dtype.name
    for value in (rows.max(), rows.min()):
        if abs(value) > _LARGEST[name]:
            Checker(settings.owner).refuse_part(
                "dtype", "hold every value", f"{name} and the value {value:.0f}"
            )
