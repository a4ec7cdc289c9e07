"""Fits of 200 to 3,000 rows that take many pair steps, beside scikit-learn.

Classes that overlap, or are noise, and targets with noise: with a large C, in the nu
form, and with kernels of a low rank (linear, poly), with the defaults of both packages.
Milliseconds are medians of fits in turns; scikit-learn ends after a million steps of
each problem ("over": that is no answer). Prints a table and writes
OUTPUT/few_rows.txt.
"""

import argparse
import time
import warnings
from pathlib import Path
from statistics import geometric_mean, median

import numpy as np
import sklearn.svm
from sklearn.datasets import load_diabetes, make_friedman1, make_moons

import widemargin
from benchmarks.environment import RESULTS, machine

MOST = 1_000_000


def noise(m, n, classes=2):
    """Rows that say nothing of their classes."""
    rng = np.random.default_rng(0)
    return rng.normal(size=(m, n)), rng.integers(0, classes, m)


def moons(m):
    """Two, which overlap."""
    return make_moons(m, noise=0.25, random_state=0)


def friedman(m, n):
    """Targets of five columns, with noise."""
    return make_friedman1(m, n, noise=1.0, random_state=0)


def diabetes():
    """Standardized columns."""
    data = load_diabetes()
    return (data.data - data.data.mean(0)) / data.data.std(0), data.target


FITS = [
    ("noise 340 x 4, 3 classes", lambda: noise(340, 4, 3), "SVC", "linear", 1e4),
    ("noise 1,400 x 7, 10 classes", lambda: noise(1400, 7, 10), "SVC", "rbf", 1e4),
    ("moons 400", lambda: moons(400), "SVC", "poly", 1e4),
    ("moons 400", lambda: moons(400), "SVC", "rbf", 1e5),
    ("moons 1,000", lambda: moons(1000), "SVC", "rbf", 1e4),
    ("moons 3,000", lambda: moons(3000), "SVC", "rbf", 1e4),
    ("moons 1,000", lambda: moons(1000), "SVC", "rbf", 1.0),
    ("noise 200 x 5", lambda: noise(200, 5), "NuSVC", "rbf", 0.2),
    ("noise 500 x 5", lambda: noise(500, 5), "NuSVC", "rbf", 0.2),
    ("noise 1,000 x 5", lambda: noise(1000, 5), "NuSVC", "rbf", 0.2),
    ("noise 400 x 5, 10 classes", lambda: noise(400, 5, 10), "NuSVC", "rbf", 0.2),
    ("friedman 400 x 7", lambda: friedman(400, 7), "SVR", "rbf", 1e4),
    ("friedman 600 x 5", lambda: friedman(600, 5), "SVR", "poly", 1e2),
    ("diabetes 442 x 10", diabetes, "SVR", "poly", 1e4),
    ("diabetes 442 x 10", diabetes, "NuSVR", "linear", 1e4),
    ("friedman 1,500 x 5", lambda: friedman(1500, 5), "SVR", "rbf", 1e3),
]


def row(name, draw, kind, kernel, value, rounds):
    """A line of the table, and the ratio."""
    X, y = draw()
    options = {"kernel": kernel, "nu" if kind == "NuSVC" else "C": value}
    ours = getattr(widemargin, kind)(**options)
    theirs = getattr(sklearn.svm, kind)(max_iter=MOST, **options)
    times = []
    for _ in range(rounds + 1):
        both = []
        for one in (ours, theirs):
            begin = time.perf_counter()
            one.fit(X, y)
            both.append(1e3 * (time.perf_counter() - begin))
        times.append(both)
    mine, peer = (median(column) for column in zip(*times[1:], strict=True))
    over = "over" if np.max(theirs.n_iter_) >= MOST else ""
    return (
        f"{name:28}{kind:6}{kernel:7}{value:8g}{mine:9.1f}{peer:10.1f}{over:5}"
        f"{peer / mine:8.1f}{ours.dual_gap_:9.0e}"
    ), peer / mine


def main():
    """Measure all fits."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add = parser.add_argument
    add("--rounds", type=int, default=3)
    add("--output", type=Path, default=RESULTS / "kernel")
    options = parser.parse_args()
    warnings.simplefilter("ignore")  # a fit of scikit-learn ends early
    here, version = machine({}), sklearn.__version__
    head = (
        f"{'rows':28}{'form':6}{'kernel':7}{'C or nu':>8}{'ours':>9}{'sklearn':>10}"
        f"{'':5}{'times':>8}{'gap':>9}"
    )
    lines = [f"{here['cpu']}; {here['versions']}; scikit-learn {version}", head]
    print("\n".join(lines))
    ratios = []
    for fit in FITS:
        line, ratio = row(*fit, options.rounds)
        print(line, flush=True)
        lines.append(line), ratios.append(ratio)
    lines.append(f"{geometric_mean(ratios):.1f} times as fast, {min(ratios):.1f} least")
    print(lines[-1])
    options.output.mkdir(parents=True, exist_ok=True)
    (options.output / "few_rows.txt").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
