"""Variants of the interior point method: what pays, and where.

Justifies `REDUCED_COLUMNS`, `DENSE_ORDER`, `SPARSE_ENTRIES` and `SERIAL_ORDER` of
`widemargin.solvers.normal_equations`, and the default of the extra corrector.
"""

import time

import numpy as np
from scipy import sparse

from widemargin import Problem, solve
from widemargin.solvers import InteriorPoint, normal_equations

VARIANTS = {
    "all rows": InteriorPoint(reduction=None),
    "rule 2": InteriorPoint(reduction="omega"),
    "rule 2, no pcg": InteriorPoint(reduction="omega", pcg_steps=0),
    "rule 1": InteriorPoint(reduction="one_sided"),
    "corrector": InteriorPoint(reduction=None, corrector=True),
}


def main():
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


def threads():
    """Dense factors of small order with one BLAS thread, and with all."""
    print("\nrows            one thread        all threads")
    rng = np.random.default_rng(0)
    for m, n in [(40_000, 100), (20_000, 300), (5000, 1000)]:
        X = rng.normal(size=(m, n))
        problem = Problem(X, np.where(X[:, 0] + rng.normal(size=m) > 0, 1.0, -1.0))
        line = f"{m:6} x {n:<5}"
        for order in (10**9, 0):
            normal_equations.SERIAL_ORDER = order
            line += timed(problem, InteriorPoint(reduction=None))
        print(line, flush=True)


if __name__ == "__main__":
    main()
    forms()
    threads()
