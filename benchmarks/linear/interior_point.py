"""Variants of the interior point method: what pays, and where.

    python -m benchmarks.linear.interior_point [variants] [forms] [bound]

Justifies `REDUCED_COLUMNS`, `DENSE_ORDER` and `SPARSE_ENTRIES` of
`widemargin.solvers.linear.normal_equations`; shows how far an iteration is from the
least that the machine allows.
"""

import os
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
from scipy import sparse

from benchmarks.datasets import DATASETS
from widemargin import Problem, solve
from widemargin.solvers import InteriorPoint

VARIANTS = {
    "all rows": InteriorPoint(reduction=None),
    "rule 2": InteriorPoint(reduction="omega"),
    "rule 2, no pcg": InteriorPoint(reduction="omega", pcg_steps=0),
    "rule 1": InteriorPoint(reduction="one_sided"),
}


def variants():
    """Seconds (iterations) to a certified gap of 1e-6, best of three."""
    rng = np.random.default_rng(0)
    print(f"{'':16}" + "".join(f"{name:>18}" for name in VARIANTS))
    sizes = [(100_000, 32), (60_000, 100), (40_000, 200), (30_000, 300)]
    for m, n in [*sizes, (20_000, 500), (15_000, 784), (10_000, 1500)]:
        X = rng.normal(size=(m, n))
        y = np.sign(X @ rng.normal(size=n) / np.sqrt(n) + rng.normal(size=m))
        line = f"{m:7} x {n:<6}"
        for solver in VARIANTS.values():
            times = []
            for _ in range(3):
                begin = time.perf_counter()
                solution = solve(Problem(X, y), solver, tol=1e-6)
                times.append(time.perf_counter() - begin)
            mark = "" if solution.status == "solved" else "!"
            line += f"{min(times):11.2f} ({len(solution.trace):3}){mark:1}"
        print(line, flush=True)


def timed(problem, solver):
    """Seconds to a gap of 1e-6, iterations, and how it ended."""
    begin = time.perf_counter()
    solution = solve(problem, solver, tol=1e-6, time_limit=10.0)
    seconds = time.perf_counter() - begin
    mark = "" if solution.status == "solved" else "!"
    return f"{seconds:11.2f} ({len(solution.trace):3}){mark:1}"


def forms():
    """Normal matrices for wide sparse rows: seconds (iterations), ten at most."""
    names = ("dense", "dual", "sparse")
    print(f"\n{'sparse rows':28}" + "".join(f"{name:>18}" for name in names))
    for m, n, each in [
        (6000, 2500, 10),
        (6000, 4000, 10),
        (3000, 20_000, 10),
        (6000, 2500, 2),
        (20_000, 20_000, 1.4),
        (20_000, 20_000, 2),
    ]:
        rng = np.random.default_rng(0)
        X = sparse.random_array((m, n), density=each / n, format="csr", rng=rng)
        y = np.where(X @ rng.normal(size=n) + 0.1 * rng.normal(size=m) > 0, 1.0, -1.0)
        line = f"{m:7} x {n:<7} {each:4} a row"
        for name in names:
            if name == "dense" and n > 4000:
                line += f"{'-':>18}"
                continue
            line += timed(Problem(X, y), InteriorPoint(normal_matrix=name))
        print(line, flush=True)


def rates(clock):
    """Bytes a second read by all cores, and flops a second of a matrix product."""
    cores = os.cpu_count()
    parts = np.array_split(np.ones(1 << 26), cores)
    square = np.ones((2000, 2000))
    with ThreadPoolExecutor(cores) as pool:
        read = _fastest(clock, lambda: sum(pool.map(np.sum, parts)))
    product = _fastest(clock, lambda: square @ square)
    return sum(part.nbytes for part in parts) / read, 2 * 2000**3 / product


def _fastest(clock, f):
    times = []
    for _ in range(5):
        begin = clock()
        f()
        times.append(clock() - begin)
    return min(times)


def least_seconds(X, active, bandwidth, rate):
    """Least time of iterations that use so many rows: (k,) of the longer of two.

    The Gram matrix of the active rows, n^2 flops a row (squared entries of a sparse
    one), at the rate of a matrix product; three reads of X and 15 of vectors of length
    m at the bandwidth. Neither can be hidden behind itself, one behind the other can.
    """
    m, n = X.shape
    if sparse.issparse(X):
        entries = np.diff(X.indptr).astype(float)
        flops, size = np.mean(entries**2), X.nnz * (8 + X.indices.itemsize)
    else:
        flops, size = n**2, X.nbytes
    reading = (3 * size + 15 * 8 * m) / bandwidth
    return np.maximum(np.asarray(active) * flops / rate, reading)


# Processor time is what a shared machine can be asked for: all threads of the process.
CLOCKS = {"wall": time.perf_counter, "processor": time.process_time}


def bound(repeat=3):
    """Time of an iteration over its lower bound: medians of three.

    A whole solve counts, start and certificate included.
    """
    solvers = {"all rows": VARIANTS["all rows"], "rule 2": VARIANTS["rule 2"]}
    for name in ("ndc-500k", "covtype-like-500k", "covtype-like-500k, sparse", "a9a"):
        X, y = DATASETS[name.split(",")[0]](None)
        X = sparse.csr_array(X) if "sparse" in name else X
        problem, found = Problem(X, y), {}
        for _ in range(repeat):
            machine = {kind: rates(clock) for kind, clock in CLOCKS.items()}
            for label, solver in solvers.items():
                begin = [clock() for clock in CLOCKS.values()]
                trace = solve(problem, solver, tol=1e-6).trace
                took = [c() - t for c, t in zip(CLOCKS.values(), begin, strict=True)]
                for kind, seconds in zip(CLOCKS, took, strict=True):
                    active = trace.column("active")[:-1]
                    least = least_seconds(X, active, *machine[kind]).sum()
                    pair = (seconds / len(active), least / len(active))
                    found.setdefault((label, kind), []).append(pair)
        _show_bounds(name, found)


def _show_bounds(name, found):
    for (label, kind), pairs in found.items():
        took, least = sorted(pairs, key=lambda p: p[0] / p[1])[len(pairs) // 2]
        print(
            f"{name + ', ' + label:32} {kind:10} {1e3 * took:8.2f} ms an iteration, "
            f"at least {1e3 * least:7.2f}: ratio {took / least:5.2f}",
            flush=True,
        )


PARTS = {f.__name__: f for f in (variants, forms, bound)}

if __name__ == "__main__":
    for part in sys.argv[1:] or PARTS:
        PARTS[part]()
