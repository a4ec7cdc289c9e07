"""Products K v with a Gaussian kernel: tiles of K, fast Gauss transforms, Fourier sums.

Rows are uniform in the unit cube of n dimensions, K = exp(-|x - z|^2 / h^2) with
h = sqrt(n) / 4. Tiles are ours, exact to rounding, and share their kernel values among
vectors. `pyfigtree` is the improved fast Gauss transform, which the CRSVM
paper uses for its eigenvectors; `finufft` sums the Fourier series of the kernel. Both
are asked for an error of 1e-6, take one vector at a time, and are left out where they
are not installed (pip install pyfigtree finufft).
"""

import argparse
import importlib
from functools import partial

import numpy as np

from benchmarks.data.out_of_core import seconds
from widemargin import Kernel
from widemargin.features.builder import MapBuilder

VECTORS = 64


def main():
    """A line for every dimension and method."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=20_000)
    parser.add_argument("--dimensions", default="2,3,4,6,8")
    options = parser.parse_args()
    for n in map(int, options.dimensions.split(",")):
        rng, h = np.random.default_rng(0), 0.25 * np.sqrt(n)
        X, V = rng.random((options.rows, n)), rng.random((options.rows, VECTORS))
        given = MapBuilder(
            "gauss", X, Kernel("rbf", gamma=1 / h**2), np.float64, 0, None
        )
        some = np.arange(100)
        exact = given.source.values(some, np.arange(len(X))) @ V[:, 0]
        for name, method in METHODS.items():
            try:
                time, found = seconds(partial(method, given, X, V, h))
            except (ImportError, NotImplementedError) as reason:
                print(f"{n} dimensions, {name}: left out, {reason}")
                continue
            error = abs(found[some] - exact).max() / exact.max()
            print(
                f"{len(X):,} x {n}, {name}: {time:.3f} s, relative error {error:.0e}",
                flush=True,
            )


def tiles(vectors):
    """Our product, with the first vectors."""
    return lambda given, X, V, h: given.times(V[:, :vectors])[:, 0]


def figtree(given, X, V, h):
    """The improved fast Gauss transform, which chooses among its methods."""
    library = importlib.import_module("pyfigtree")
    return np.asarray(library.figtree(X, X, V[:, 0], h, epsilon=1e-6)).ravel()


def fourier_sums(given, X, V, h):
    """Two transforms at the rows, with the Fourier series of the kernel between."""
    n = X.shape[1]
    if n not in (2, 3):
        raise NotImplementedError("finufft has up to three dimensions")
    library = importlib.import_module("finufft")
    period = 1 + 3.8 * h
    most = int(np.ceil(3.8 * period / (np.pi * h)))
    series = np.exp(-((np.pi * np.arange(-most, most) * h / period) ** 2))
    series *= np.sqrt(np.pi) * h / period
    kernel = series
    for _ in range(n - 1):
        kernel = np.multiply.outer(kernel, series)
    angles = [np.ascontiguousarray(2 * np.pi * (x - 0.5) / period) for x in X.T]
    there, back = (getattr(library, f"nufft{n}d{kind}") for kind in (1, 2))
    c = there(*angles, V[:, 0] + 0j, (2 * most,) * n, eps=1e-6, isign=-1)
    return back(*angles, c * kernel, eps=1e-6, isign=1).real


METHODS = {
    "tiles, 1 vector": tiles(1),
    f"tiles, {VECTORS} vectors": tiles(VECTORS),
    "improved fast Gauss transform, 1 vector": figtree,
    "Fourier sums, 1 vector": fourier_sums,
}

if __name__ == "__main__":
    main()
