"""Products of dense rows, which all classes share, before other solvers, or not.

Whole fits of `LinearSVC` on dense rows of 300 to 1,500 columns, two to ten classes
against the rest, both losses, C = 0.01, 1 and 100: columns of one size with 5 and with
40 % of the labels drawn anew, of low rank, and with ``--data`` images and sounds.
Seconds are the least of fits in turns. Prints a table and writes
OUTPUT/shared_products.txt.
"""

import argparse
import warnings
from pathlib import Path
from statistics import geometric_mean

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from benchmarks.core.steps_or_newton import classes, times
from benchmarks.datasets import find
from benchmarks.environment import RESULTS, machine
from widemargin import LinearSVC, load_svmlight

CS = 0.01, 1.0, 100.0
SHAPES = [(2000, 300, 10), (2000, 800, 3), (2500, 600, 10)]
HEAD = f"{'rows x columns, classes':34}" + "".join(
    f"{f'{loss}, C = {C:g}':>27}" for loss in ("squared", "hinge") for C in CS
)


def noisy(m, n, count):
    """Classes of which two labels in five are others."""
    X, y = classes(m, n, count)
    rng = np.random.default_rng(1)
    return X, np.where(rng.random(m) < 0.4, rng.integers(0, count, m), y)


def images(folder, m):
    """Ten digits of 28 x 28 pixels, drawn from all."""
    with np.load(find(folder, "mnist", "train.npz")) as arrays:
        X, y = arrays["X"], arrays["y"]
    some = np.random.default_rng(0).permutation(len(X))[:m]
    return X[some].reshape(m, -1) / 255.0, y[some]


def sounds(folder, m):
    """Spoken letters, 617 columns, drawn from all."""
    X, y = load_svmlight(find(folder, "isolet", "train.svm*"))
    some = np.random.default_rng(0).permutation(X.shape[0])[:m]
    return X[some].toarray(), y[some]


def tasks(folder):
    """Names and data."""
    for m, n, count in SHAPES:
        shape = f"{m:,} x {n}, {count}"
        yield shape, classes(m, n, count)
        yield f"{shape}, noisy", noisy(m, n, count)
        yield f"{shape}, rank 30", classes(m, n, count, rank=30)
    if folder is not None:
        for m in (2000, 6000):
            yield f"images {m:,} x 784, 10", images(folder, m)
        for m in (1500, 6000):
            yield f"sounds {m:,} x 617, 26", sounds(folder, m)


def main():
    """Measure the tasks."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--data", help="folder of further sets: NAME/train.*")
    parser.add_argument("--output", type=Path, default=RESULTS / "linear")
    options = parser.parse_args()
    options.output.mkdir(parents=True, exist_ok=True)
    warnings.simplefilter("ignore", ConvergenceWarning)
    here = machine({})
    lines = [f"{here['cpu']}; {here['versions']}; s: others, products first, ratio"]
    lines.append(HEAD)
    print("\n".join(lines))
    ratios = []
    for name, data in tasks(options.data):
        cells = []
        for loss in ("squared_hinge", "hinge"):
            for C in CS:
                fitted = LinearSVC(loss=loss, C=C, time_limit=10)
                found = times(fitted, data, ["steps_before_others"], options.rounds)
                alone, both = map(min, found)
                ratios.append(both / alone)
                cells.append(f"{alone:13.3f}{both:8.3f}{ratios[-1]:6.2f}")
        lines.append(f"{name:34}" + "".join(cells))
        print(lines[-1], flush=True)
    lines.append(f"geometric mean of the ratios {geometric_mean(ratios):.2f}")
    print(lines[-1])
    (options.output / "shared_products.txt").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
