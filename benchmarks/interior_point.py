"""Variants of the interior point method: what pays, and where.

Justifies `REDUCED_COLUMNS` of `widemargin.solvers.normal_equations` and the default of
the extra corrector.
"""

import time

import numpy as np

from widemargin import Problem, solve
from widemargin.solvers import InteriorPoint

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


if __name__ == "__main__":
    main()
