"""One sweep of every kind, dense and sparse, beside the limit of the machine.

Justifies the constants of `widemargin.data.memory` (block sizes), the threshold of
`widemargin.numerics.linalg` (from which density a Gram matrix of dense blocks wins),
the sparse products in C++ and the fused row steps. With WIDEMARGIN_SIMD=baseline and
OPENBLAS_CORETYPE=Nehalem it is that of a processor without AVX.
"""

import functools
import statistics
import time

import numpy as np
from scipy import sparse

from benchmarks.datasets import DATASETS
from widemargin import Problem, _core, as_rows, solve
from widemargin.data import memory
from widemargin.numerics import linalg
from widemargin.solvers import InteriorPoint
from widemargin.system.threads import ONE_BLAS_THREAD


def seconds(f, *arguments, repeat=7):
    """Median time of f(*arguments)."""
    f(*arguments)
    times = []
    for _ in range(repeat):
        begin = time.perf_counter()
        f(*arguments)
        times.append(time.perf_counter() - begin)
    return statistics.median(times)


def limits():
    """Bytes a second of a large sum; flops a second of a matrix product."""
    large = np.ones(1 << 26)
    square = np.ones((2000, 2000))
    return large.nbytes / seconds(large.sum), 2 * 2000**3 / seconds(
        lambda: square @ square
    )


def products(bandwidth, rate):
    """Milliseconds of the products, and the share of the limit."""
    rng = np.random.default_rng(0)
    print(f"\n{'':28}{'matvec':>16}{'rmatvec':>16}{'gram':>16}   (ms, share of limit)")
    kinds = [(32, 1, "f8"), (32, 1, "f4"), (300, 1, "f8"), (300, 1, "f4")]
    for n, density, dtype in [*kinds, (123, 0.11, "f8"), (300, 0.04, "f8")]:
        m = 200_000 if n < 200 else 50_000
        X = rng.normal(size=(m, n)).astype(dtype)
        nbytes, flops = X.nbytes, m * n * n
        if density < 1:
            X = sparse.random_array((m, n), density=density, format="csr", rng=rng)
            nbytes = X.data.nbytes + X.indices.nbytes
            flops = m * (density * n) ** 2
        rows, w, v = as_rows(X), rng.normal(size=n), rng.random(m)
        line = f"{m:7} x {n:3} {density:5} {dtype}".ljust(28)
        read = nbytes / bandwidth
        for limit, f, argument in [
            (read, rows.matvec, w),
            (read, rows.rmatvec, v),
            (flops / rate, rows.gram, v),
        ]:
            t = seconds(f, argument)
            line += f"{1e3 * t:9.2f} {limit / t:5.0%} "
        print(line)


def block_sizes():
    """Milliseconds of an interior point iteration by the bytes of a block."""
    rng = np.random.default_rng(0)
    print("\nblock MiB   " + "".join(f"{b:>9}" for b in (0.5, 1, 2, 4, 8, 16, 64)))
    for m, n in [(200_000, 32), (50_000, 123), (20_000, 300)]:
        X, y = rng.normal(size=(m, n)), np.sign(rng.normal(size=m))
        line = f"{m:7} x {n:3}"
        for mib in (0.5, 1, 2, 4, 8, 16, 64):
            memory.BLOCK_BYTES = int(mib * 2**20)
            problem = Problem(as_rows(X), y)
            solver = InteriorPoint(reduction=None)
            run = functools.partial(solve, problem, solver, max_iter=5, tol=1e-12)
            line += f"{1e3 * seconds(run, repeat=5) / 5:9.2f}"
        print(line)
    memory.BLOCK_BYTES = 4 << 20


def densities():
    """Weighted Gram matrix of a CSR block: sparse rows against a dense block."""
    rng = np.random.default_rng(0)
    print("\ndensity at which a dense block is as fast as sparse rows")
    for n in (30, 123, 300, 1000):
        d = rng.random(4000)
        for density in np.arange(0.02, 1.0, 0.02):
            X = sparse.random_array((4000, n), density=density, format="csr", rng=rng)
            linalg.DENSE_GRAM_DENSITY = 2.0
            scattered = seconds(linalg.gram, X, d, repeat=5)
            linalg.DENSE_GRAM_DENSITY = 0.0
            if seconds(linalg.gram, X, d, repeat=5) <= scattered:
                break
        print(f"  n = {n:5}: {density:.2f}")


def against_scipy():
    """Sparse products in C++ against scipy's, float32 and float64."""
    rng = np.random.default_rng(0)
    print("\nCSR products of Adult a9a: seconds of scipy over ours")
    data, _ = DATASETS["a9a"](None)
    for dtype in ("f8", "f4"):
        X = data.astype(dtype)
        w, U = rng.normal(size=X.shape[1]), rng.normal(size=(X.shape[0], 2))
        products = [("X w", X, w, linalg.matvec), ("X'u", X.T, U[:, 0], linalg.rmatvec)]
        line = f"  {dtype}:"
        for name, matrix, vector, ours in [*products, ("X'U", X.T, U, linalg.rmatvec)]:
            ratio = seconds(matrix.__matmul__, vector) / seconds(ours, X, vector)
            line += f"   {name} {ratio:.1f}"
        print(line)


def row_steps(k=8192):
    """The corrector of interior point on one block: NumPy's seconds over ours."""
    rng = np.random.default_rng(0)
    C, z = np.ones(k), rng.normal(size=k)
    vectors = list(rng.uniform(0.2, 0.8, (8, k)))
    alpha, u, s, xi, d, dalpha, ds, dxi = vectors

    def numpy_correct(t):
        rs, rx = s * alpha - t * C + ds, xi * u - t * C + dxi
        dalpha[:] = -d * (rs / alpha - rx / u + z)
        ds[:] = -(rs + s * dalpha) / alpha
        dxi[:] = (xi * dalpha - rx) / u
        ratios = (-dalpha / alpha, -ds / s, dalpha / u, -dxi / xi)
        worst = np.maximum.reduce(ratios).argmax()
        first = s @ dalpha + alpha @ ds + u @ dxi - xi @ dalpha
        return worst, first, dalpha @ ds - dxi @ dalpha

    slow = seconds(numpy_correct, 0.1, repeat=50)
    print(f"\nrow steps of {k} rows: seconds of NumPy over ours, which reads z as X")
    X, ones, dv = z[:, np.newaxis], np.ones(k), np.ones(1)
    for simd in _core.simd_levels():
        A = _core.block(X, ones, False, simd)
        ours = functools.partial(_core.correct_sweep, A, dv, C, vectors, 0.1, True)
        ratio = slow / seconds(ours, repeat=50)
        print(f"  {('baseline', 'AVX2', 'AVX-512')[simd]:9} {ratio:.1f}")


def dense_products():
    """Products of dense blocks in C++ against NumPy, by type of the entries."""
    rng = np.random.default_rng(0)
    print("\ndense products of a block of 4 MiB: seconds of NumPy over ours")
    for n in (32, 123, 784):
        for dtype in ("f8", "f4", "i2", "u1"):
            k = (4 << 20) // (n * np.dtype(dtype).itemsize)
            X = rng.integers(0, 100, (k, n)).astype(dtype)
            w, u = rng.normal(size=n), rng.normal(size=k)
            z, g = np.empty(k), np.zeros(n)
            forward = seconds(X.__matmul__, w) / seconds(_core.dense_matvec, X, w, z)
            back = seconds(X.T.__matmul__, u) / seconds(_core.dense_rmatvec, X, u, g)
            print(f"  n = {n:4} {dtype}:   X w {forward:5.1f}   X'u {back:5.1f}")


def dense_gram():
    """Weighted Gram matrix of a dense block in C++ against BLAS."""
    rng = np.random.default_rng(0)
    print("\nGram matrix of a block of 4 MiB: seconds of BLAS over ours")
    for n in (8, 32, 54, 128, 200, 300):
        for dtype in ("f8", "f4"):
            k = (4 << 20) // (n * np.dtype(dtype).itemsize)
            X, G = rng.normal(size=(k, n)).astype(dtype), np.empty((n, n))
            for share in (1.0, 0.1):
                d = rng.random(k) * (rng.random(k) < share)
                with ONE_BLAS_THREAD:  # as in a sweep
                    slow = seconds(linalg._blas_gram, X, d, np.float64)
                fast = seconds(_core.dense_gram, X, d, G)
                rate = np.count_nonzero(d) * n * (n + 1) / fast / 1e9
                rough = seconds(_core.dense_gram, X, d, G, -1, True)
                print(
                    f"  n = {n:4} {dtype}, {share:4.0%} of the rows:   "
                    f"{slow / fast:4.1f}   {rate:4.0f} GF/s, "
                    f"{fast / rough:4.2f} times as fast in float32"
                )


def fused():
    """A Newton sweep of the augmented Lagrangian in one pass, NumPy's seconds over it.

    Blocks of 4 MiB: scores, alpha, sums, and A'alpha; the matrix is not in it.
    """
    rng = np.random.default_rng(0)
    print("\nfused sweep: seconds of NumPy over ours, and rows a second")
    for n in (32, 123, 784):
        for dtype in ("f8", "f4"):
            k = (4 << 20) // (n * np.dtype(dtype).itemsize)
            X = rng.normal(size=(k, n)).astype(dtype)
            y, v = np.sign(rng.normal(size=k)), rng.normal(size=n + 1)
            C, multiplier = np.ones(k), rng.uniform(0.0, 1.0, k)
            f, alpha = np.empty(k), np.empty(k)

            def numpy_sweep(s, X=X, y=y, v=v, C=C, multiplier=multiplier):
                t = 1.0 - y * (X @ v[:-1] + v[-1])
                a = np.clip(multiplier + s * C * t, 0.0, C)
                value = a @ t - (a - multiplier) @ ((a - multiplier) / (2.0 * s * C))
                signed = y * a
                return C @ np.maximum(t, 0.0), a.sum(), value, X.T @ signed

            def ours(s, X=X, y=y, args=(v, C, multiplier), f=f, alpha=alpha):
                g, A = np.zeros(args[0].size), _core.block(X, y, True)
                return _core.penalty_sweep(A, *args, s, f, alpha, g), g

            slow, fast = seconds(numpy_sweep, 0.5), seconds(ours, 0.5)
            print(
                f"  n = {n:4} {dtype}:   {slow / fast:4.1f}   {k / fast / 1e6:6.0f} M/s"
            )


if __name__ == "__main__":
    bandwidth, rate = limits()
    print(f"bandwidth {bandwidth / 1e9:.1f} GB/s, matrix product {rate / 1e9:.0f} GF/s")
    products(bandwidth, rate)
    block_sizes()
    densities()
    against_scipy()
    row_steps()
    dense_products()
    dense_gram()
    fused()
