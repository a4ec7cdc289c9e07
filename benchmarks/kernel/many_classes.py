"""Fits of many classes of few rows beside scikit-learn: a hundred have 4,950 pairs.

`SVC` with two kernels and `NuSVC`, of normal rows whose first column has the number of
the class added, with the defaults of both packages. Milliseconds are medians of fits in
turns. Prints a table and writes
OUTPUT/many_classes.txt.
"""

import argparse
import time
from pathlib import Path
from statistics import median

import numpy as np
import sklearn.svm

import widemargin
from benchmarks.environment import RESULTS, machine

# Classes, rows of each, columns.
SHAPES = [
    (3, 50, 4),
    (10, 4, 5),
    (10, 10, 5),
    (10, 40, 5),
    (20, 5, 5),
    (40, 10, 5),
    (100, 2, 5),
    (100, 10, 20),
]
MACHINES = {
    "rbf": ("SVC", {}),
    "linear": ("SVC", {"kernel": "linear"}),
    "nu = 0.2": ("NuSVC", {"nu": 0.2}),
}


def rows(classes, each, n):
    """Rows and their classes."""
    X = np.random.default_rng(0).normal(size=(classes * each, n))
    y = np.repeat(np.arange(classes), each)
    X[:, 0] += y
    return X, y


def row(shape, name, rounds):
    """A line of the table."""
    kind, how = MACHINES[name]
    X, y = rows(*shape)
    machines = [getattr(package, kind)(**how) for package in (widemargin, sklearn.svm)]
    found = []
    for _ in range(rounds + 1):
        times = []
        for one in machines:
            begin = time.perf_counter()
            one.fit(X, y)
            times.append(1e3 * (time.perf_counter() - begin))
        found.append(times)
    ours, theirs = (median(column) for column in zip(*found[1:], strict=True))
    classes, each, n = shape
    gap = machines[0].dual_gap_
    return (
        f"{classes:>7}{each:>6}{n:>9}  {name:10}{ours:>9.2f}{theirs:>9.2f}"
        f"{theirs / ours:>8.2f}{gap:>9.0e}"
    )


def main():
    """Measure all shapes."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add = parser.add_argument
    add("--rounds", type=int, default=15)
    add("--output", type=Path, default=RESULTS / "kernel")
    options = parser.parse_args()
    head = (
        f"{'classes':>7}{'rows':>6}{'columns':>9}  {'machine':10}{'ours':>9}"
        f"{'sklearn':>9}{'times':>8}{'gap':>9}"
    )
    here, version = machine({}), sklearn.__version__
    lines = [f"{here['cpu']}; {here['versions']}; scikit-learn {version}", head]
    print("\n".join(lines))
    for shape in SHAPES:
        for name in MACHINES:
            lines.append(row(shape, name, options.rounds))
            print(lines[-1], flush=True)
    (options.output / "many_classes.txt").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
