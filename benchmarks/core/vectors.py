"""Vectors of a number a row that a linear fit holds at most, beside the rows.

Run: `python -m benchmarks.core.vectors`. A process each draws rows of float64, forgets
its peak, fits, and divides what came on top by 8 bytes a row. Temporary arrays of
blocks (a few MiB a thread) and imports are in it.
"""

import argparse
import multiprocessing
import time

import numpy as np

from benchmarks.core.cluster_limits import COLUMNS, forget_peak, peak
from widemargin import LinearSVC

FITS = {
    "squared_hinge": ("active_set", "interior_point"),
    "hinge": ("augmented_lagrangian", "interior_point"),
}


def drawn(m):
    """Rows and noisy labels, without a temporary array as large."""
    rng = np.random.default_rng(0)
    X, y = np.empty((m, COLUMNS)), np.empty(m, np.int8)
    weights = rng.normal(size=COLUMNS)
    for start in range(0, m, 100_000):
        block = X[start : start + 100_000]
        rng.standard_normal(out=block)
        noise = 1.5 * rng.normal(size=len(block))
        y[start : start + 100_000] = np.where(block @ weights + noise > 0, 1, -1)
    return X, y


def measure(m, loss, solver):
    """Fit once and print."""
    LinearSVC(loss=loss, solver=solver).fit(*drawn(2000))
    X, y = drawn(m)
    before, begin = forget_peak(), time.process_time()
    fit = LinearSVC(loss=loss, solver=solver).fit(X, y)
    vectors = 1e6 * (peak() - before) / (8 * m)
    print(
        f"{m:,} x {COLUMNS} {loss} {solver}: {vectors:.1f} vectors, {fit.status_}, gap "
        f"{fit.dual_gap_:.1e}, {time.process_time() - begin:.1f} s of the processor",
        flush=True,
    )


def main():
    """Measure each loss with its solvers."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=int, default=5_000_000)
    options = parser.parse_args()
    context = multiprocessing.get_context("spawn")
    for loss, solvers in FITS.items():
        for solver in solvers:
            process = context.Process(target=measure, args=(options.rows, loss, solver))
            process.start()
            process.join()


if __name__ == "__main__":
    main()
