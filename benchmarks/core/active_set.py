"""The constants of the active set method, each with others in its place.

Each line: CPU seconds of one thread to a gap of 1e-4 and 1e-8 (least of three), and the
steps and sweeps of all rows in brackets. Squared hinge, penalized intercept. After each
set, the least that its sweeps could take: bytes read over the bandwidth of one thread.
"""

import argparse

import numpy as np
from scipy import sparse

from benchmarks.core.constants import changed, described, measure
from benchmarks.core.sweeps import seconds
from benchmarks.datasets import DATASETS
from widemargin import Problem, as_rows, solve
from widemargin.solvers import ActiveSet
from widemargin.solvers.linear import active_set
from widemargin.solvers.linear import newton as penalty
from widemargin.system.threads import ONE_BLAS_THREAD

# Of the start, which matters where rows are many, and of the matrix.
SAMPLE = (
    {"SAMPLE_TIMES": 10**9},  # no sample
    {"SAMPLE_TIMES": 2},
    {"SAMPLE_TIMES": 20},
    {"SAMPLE_ROWS": 2_500},
    {"SAMPLE_ROWS": 40_000},
    {"SAMPLE_PER_COLUMN": 25},
    {"SAMPLE_PER_COLUMN": 400},
    {"SAMPLE_SHARE": 0.0},
    {"SAMPLE_SHARE": 0.02},
    {"SAMPLE_SHARE": 0.06},
    {"SAMPLE_GAP": 1e-1},
    {"SAMPLE_GAP": 1e-2},
    {"SAMPLE_GAP": 1e-4},
    {"SAMPLE_GAP": 1e-6},
)
MATRIX = (
    {"EAGER_ORDER": 0},
    {"EAGER_ORDER": 10**9},
    {"CHANGED_SHARE": 0.0},
    {"CHANGED_SHARE": 0.4},
    {"CHANGED_SHARE": 1.5},
    {"MOST_UPDATES": 5},
    {"MOST_UPDATES": 80},
)
SETS = "a9a,w8a,ijcnn1,covtype_20k,kdd99_10pc,mnist,covtype-like-500k,ndc-500k,ndc-5m"


def bound(problem, X, bandwidth):
    """Seconds of the sweeps of one solve, were they bound by memory alone.

    A sweep reads X and the scores and writes scores; beside them one byte a row.
    """
    trace = solve(problem, ActiveSet(), tol=1e-8).trace
    if sparse.issparse(X):
        nbytes = X.data.nbytes + X.indices.nbytes + X.indptr.nbytes
    else:
        nbytes = X.nbytes
    sweeps = trace[-1].sweeps
    return sweeps, sweeps * (nbytes + 17 * X.shape[0]) / bandwidth


def _bandwidth():
    """Bytes a second of a product with a vector on one thread: nothing reads faster."""
    X, w = np.ones((1 << 20, 32)), np.ones(32)
    with ONE_BLAS_THREAD:
        return X.nbytes / seconds(X.dot, w)


def main():
    """One line a problem and change."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", help="folder of further sets")
    parser.add_argument("--sets", default=SETS)
    parser.add_argument("--C", default="0.01,1,100", help="numbers, with commas")
    options = parser.parse_args()
    bandwidth = _bandwidth()
    print(f"Bandwidth: {bandwidth / 1e9:.1f} GB/s")
    for name in options.sets.split(","):
        X, y = DATASETS[name](options.data)
        tall = X.shape[0] >= 100 * X.shape[1]
        changes = ({}, *MATRIX, *(SAMPLE if tall else ()))
        for C in map(float, options.C.split(",")):
            rows = as_rows(X, n_jobs=1)
            problem = Problem(rows, y, C, "squared_hinge", "penalized")
            for constants in changes:
                with changed(constants, active_set, penalty):
                    found = [measure(problem, ActiveSet(), t, 10) for t in (1e-4, 1e-8)]
                line = " ".join(f"{text:>18}" for text in found)
                what = f"{described(constants):24}"
                print(f"{name:18} C {C:5g}  {what} {line}", flush=True)
            sweeps, least = bound(problem, X, bandwidth)
            print(f"{name:18} C {C:5g}  bound of {sweeps} sweeps: {least:.3f}")


if __name__ == "__main__":
    main()
