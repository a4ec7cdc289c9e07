"""Several classes, linear: one solve in each thread, or all together in each sweep.

Fits `LinearSVC` on several classes with `widemargin.data.shared.APART_BYTES` of 0 (the
solves meet, and each sweep serves all of them) and without a limit (each solve sweeps
by itself, in a thread of its own), in turn. Prints seconds, medians of rounds, and the
ratio. Writes OUTPUT/apart.txt.
"""

import argparse
import time
from pathlib import Path
from statistics import median

import numpy as np
from sklearn.datasets import make_classification

from benchmarks.environment import RESULTS, machine
from benchmarks.linear.regression import documents
from widemargin import LinearSVC
from widemargin.data import shared

TOGETHER, APART = 0, 1 << 62


def dense(m, n, c):
    """Rows without zeros of c classes."""
    options = {"n_informative": min(n, 20), "n_clusters_per_class": 1, "flip_y": 0.05}
    return make_classification(m, n, n_classes=c, random_state=0, **options)


def words(m, n, count, c):
    """Rows of words, in c classes of equal size by a linear target."""
    X, t = documents(m, n, count)
    return X, np.searchsorted(np.quantile(t, np.arange(1, c) / c), t)


SETS = {
    "dense 8,000 x 300": lambda: dense(8000, 300, 6),
    "dense 6,000 x 700": lambda: dense(6000, 700, 5),
    "dense 60,000 x 100": lambda: dense(60_000, 100, 6),
    "dense 200,000 x 40": lambda: dense(200_000, 40, 8),
    "dense 1,000,000 x 32": lambda: dense(1_000_000, 32, 5),
    "words 40,000 x 800": lambda: words(40_000, 800, 30, 8),
    "words 100,000 x 2,000": lambda: words(100_000, 2000, 40, 6),
}


def seconds(clf, X, y, limit):
    """Seconds of a fit with rows apart up to so many bytes."""
    shared.APART_BYTES = limit
    begin = time.perf_counter()
    clf.fit(X, y)
    return time.perf_counter() - begin


def main():
    """Measure all sets."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--output", type=Path, default=RESULTS / "linear")
    options = parser.parse_args()
    options.output.mkdir(parents=True, exist_ok=True)
    here = machine({})
    lines = [f"{here['cpu']}; {here['versions']}; {options.rounds} rounds"]
    lines.append(f"{'':24}{'':24}{'together':>10}{'apart':>10}{'ratio':>8}")
    for name, make in SETS.items():
        X, y = make()
        for loss in ("hinge", "squared_hinge"):
            clf = LinearSVC(loss=loss, C=10.0, intercept="penalized")
            times = [
                [seconds(clf, X, y, limit) for limit in (TOGETHER, APART)]
                for _ in range(options.rounds)
            ]
            together, apart = map(median, zip(*times, strict=True))
            cells = f"{together:10.3f}{apart:10.3f}{apart / together:8.2f}"
            lines.append(f"{name:24}{loss:24}{cells}")
            print(lines[-1], flush=True)
    (options.output / "apart.txt").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
