"""Matrices, kernels and plain formulas for the tests of kernels."""

import contextlib
import functools

import numpy as np
import pytest
from scipy.spatial.distance import cdist

from tests.cases.rows import in_memory
from widemargin import Kernel, _core, as_rows
from widemargin.kernels.matrix import LEAST_BLOCK, Columns
from widemargin.kernels.packed import padded
from widemargin.kernels.table import KERNELS, NAMES

# By name, with parameters that are none of the defaults.
NAMED = {
    "linear": Kernel("linear", gamma=1.0),
    "poly": Kernel("poly", gamma=0.7, degree=3, coef0=0.5),
    "poly-2": Kernel("poly", gamma=1.3, degree=2, coef0=-0.2),
    "poly-5": Kernel("poly", gamma=0.5, degree=5, coef0=1.0),
    "rbf": Kernel("rbf", gamma=0.4),
    "sigmoid": Kernel("sigmoid", gamma=0.6, coef0=-0.3),
    "laplacian": Kernel("laplacian", gamma=0.3),
    "chi2": Kernel("chi2", gamma=0.3),
}
# One of each name: those of the table, which all have a kernel above.
KINDS = list(NAMES)
# Those that are positive semidefinite.
SEMIDEFINITE = [name for name in KINDS if NAMED[name].is_psd]
assert {NAMED[name].name for name in KINDS} == {
    kernel.name for kernel in NAMED.values()
}

on_every_kernel = pytest.mark.parametrize("kernel", NAMED.values(), ids=NAMED)
on_every_kind = pytest.mark.parametrize(
    "kernel", [NAMED[name] for name in KINDS], ids=KINDS
)
on_storages_in_memory = pytest.mark.parametrize(
    "storage", in_memory, ids=lambda s: s.name
)
on_every_simd = pytest.mark.parametrize("simd", _core.simd_levels())


def plain(kernel, X, Z):
    """Kernel values from their definitions: (k, l)."""
    row, gamma, coef0 = KERNELS[kernel.name], kernel.gamma, kernel.coef0
    sums = _SUMS[row.sums](X, Z)
    return {
        "itself": lambda s: s,
        "power": lambda s: (gamma * s + coef0) ** kernel.degree,
        "tangent": lambda s: np.tanh(gamma * s + coef0),
        "decay": lambda s: np.exp(-gamma * s),
    }[row.value](sums)


def shares(X, Z):
    """Sums of (x - z)^2 / (x + z), 0 / 0 being 0: (k, l)."""
    return np.stack([_share(x, Z) for x in X]) if len(X) else np.zeros((0, len(Z)))


def _share(x, Z):
    """The same for one row x: (l,)."""
    apart, sizes = x - Z, x + Z
    return (apart**2 / np.where(sizes == 0.0, 1.0, sizes)).sum(axis=1)


_SUMS = {
    "product": lambda X, Z: X @ Z.T,
    "square": lambda X, Z: cdist(X, Z, "sqeuclidean"),
    "size": lambda X, Z: cdist(X, Z, "cityblock"),
    "share": shares,
}


def matrix_of(kernel, *shape, **options):
    """A `matrix` that a kernel, or one of such a name, is for."""
    X, row = matrix(*shape, **options), KERNELS.get(getattr(kernel, "name", kernel))
    return np.abs(X) if row is not None and row.is_nonnegative else X


def matrix(m, n, density=1.0, seed=0):
    """Normal numbers, zeros, and an empty row; |x|^2 is about 1.

    The first eight columns hold multiples of 1 and the first rows do: then integer
    storages hold something.
    """
    rng = np.random.default_rng((seed, m, n))
    X = rng.normal(size=(m, n)) / np.sqrt(max(1.0, n * density))
    X[:, : min(n, 3)] = rng.integers(0, 2, (m, min(n, 3)))
    X[rng.random((m, n)) >= density] = 0.0
    if m > 2:
        X[m // 2] = 0.0
    return X


@contextlib.contextmanager
def instruction_set(simd):
    """The kernel functions of the core of one instruction set."""
    with pytest.MonkeyPatch.context() as patch:
        for name in ("pack", "kernel_rows", "add_rows", "pair_steps"):
            function = getattr(_core, name)
            patch.setattr(_core, name, functools.partial(function, simd=simd))
        yield


def memory_limit_of(data, kernel, places, size=4):
    """The limit, in bytes, for so many kept rows beside samples and blocks."""
    columns = Columns(as_rows(data), kernel)
    if size == 8:
        columns.refine()
    some = padded(int(columns._focus_share * columns.shape[0]))
    focus = columns._source.n_bytes * some // columns.width
    needed = -(-4 * (places * size * columns.width + focus) // 3)
    return columns._source.n_bytes + max(needed, block_bytes(columns.width, size))


def block_bytes(width, size=4):
    """Four times two of the least blocks."""
    return 8 * size * min(LEAST_BLOCK, width) ** 2
