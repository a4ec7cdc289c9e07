"""The constants of ALM-Newton: CPU seconds and sweeps with others in their place.

Each line: CPU seconds of one thread to a gap of 1e-4 and 1e-6 (least of three), and the
steps and sweeps of all rows in brackets. Penalized intercept.
"""

import argparse

from benchmarks.core.constants import changed, described, measure
from benchmarks.datasets import DATASETS
from widemargin import Problem, as_rows
from widemargin.solvers import AugmentedLagrangian
from widemargin.solvers.linear import augmented_lagrangian
from widemargin.solvers.linear import newton as penalty

CHANGES = (
    {},
    {"START_PENALTY": 1.5},
    {"START_PENALTY": 4.0},
    {"BAND_GAP": 0.1},
    {"BAND_GAP": 0.5},
    {"BAND_SHARE": 0.2},
    {"BAND_SHARE": 0.3},
    {"BAND_PROGRESS": 0.03},
    {"BAND_PROGRESS": 1e-3},
    {"SAMPLE_PER_COLUMN": 20},
    {"SAMPLE_PER_COLUMN": 800},
    {"SAMPLE_GAP": 1e-2},
    {"SAMPLE_GAP": 1e-3},
    {"MANY_COLUMNS": 10**9},
    {"MANY_PENALTY": 10.0},
    {"MANY_PENALTY": 160.0},
    {"WARM_PENALTY": 1e9},
    {"ROUGH": 0.0},
    {"ROUGH": 0.1},
    {"ROUGH": 10.0},
    {"EAGER_ORDER": 0},
    {"EAGER_ORDER": 10**9},
    {"CHANGED_SHARE": 0.0},
    {"CHANGED_SHARE": 1.5},
    {"MOST_UPDATES": 5},
    {"MOST_UPDATES": 80},
)


def main():
    """One line a problem and change."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", help="folder of further sets")
    parser.add_argument("--sets", default="a9a,w8a,ijcnn1,covtype_20k,ndc-500k-scaled")
    options = parser.parse_args()
    for name in options.sets.split(","):
        X, y = DATASETS[name](options.data)
        for C in (0.01, 1.0, 100.0):
            problem = Problem(as_rows(X, n_jobs=1), y, C, intercept="penalized")
            for constants in CHANGES:
                solver = AugmentedLagrangian()
                with changed(constants, augmented_lagrangian, penalty):
                    found = [measure(problem, solver, tol) for tol in (1e-4, 1e-6)]
                line = " ".join(f"{text:>18}" for text in found)
                what = f"{described(constants):24}"
                print(f"{name:16} C {C:5g}  {what} {line}", flush=True)


if __name__ == "__main__":
    main()
