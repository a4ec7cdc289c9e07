"""From which order dense factors want all BLAS threads: `cholesky.SERIAL_ORDER`.

Seconds (iterations) of the interior point method to a gap of 1e-6, its factors with one
BLAS thread, and with all.
"""

import numpy as np

from benchmarks.core.constants import changed
from benchmarks.linear.interior_point import timed
from widemargin import Problem
from widemargin.numerics import cholesky
from widemargin.solvers import InteriorPoint

SIZES = ((40_000, 100), (20_000, 300), (5000, 1000))


def main(sizes=SIZES):
    """A line for each number of columns."""
    print("rows            one thread        all threads")
    rng = np.random.default_rng(0)
    for m, n in sizes:
        X = rng.normal(size=(m, n))
        problem = Problem(X, np.where(X[:, 0] + rng.normal(size=m) > 0, 1.0, -1.0))
        line = f"{m:6} x {n:<5}"
        for order in (10**9, 0):
            with changed({"SERIAL_ORDER": order}, cholesky):
                line += timed(problem, InteriorPoint(reduction=None))
        print(line, flush=True)


if __name__ == "__main__":
    main()
