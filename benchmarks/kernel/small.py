"""Everyday fits: 100 to 20,000 rows, mostly of several classes, beside scikit-learn.

Fits of both take turns in one process; each has the median of its seconds, validation
and ours with its certificate. Ours ends at a certified relative gap of 1e-3 (the
largest of its binary problems is in the table), scikit-learn at its own default.

    python -m benchmarks.kernel.small --data FOLDER
"""

import argparse
import json
import statistics
import time
import warnings
from pathlib import Path

import numpy as np
import sklearn.svm
from sklearn.datasets import (
    load_breast_cancer,
    load_digits,
    load_iris,
    load_wine,
    make_moons,
)
from sklearn.preprocessing import StandardScaler

import widemargin
from benchmarks.datasets import find
from benchmarks.environment import RESULTS, list_of, numbers
from widemargin import load_svmlight

TOL = 1e-3


def scaled(load):
    """A set of scikit-learn's, standardized."""

    def read(_):
        X, y = load(return_X_y=True)
        return StandardScaler().fit_transform(X), y

    return read


def moons(rows):
    """Two moons of that many rows."""
    return lambda _: make_moons(rows, noise=0.2, random_state=0)


def file(name, scale=1.0):
    """A svmlight file of several classes, made dense, divided by a number."""

    def read(folder):
        X, y = load_svmlight(find(folder, name, "train.svm*"))[:2]
        return np.ascontiguousarray(X.toarray()) / scale, y

    return read


# Data, and the gamma of the literature or that of scikit-learn.
SETS = {
    "iris": (scaled(load_iris), "scale"),
    "wine": (scaled(load_wine), "scale"),
    "cancer": (scaled(load_breast_cancer), "scale"),
    "moons-100": (moons(100), "scale"),
    "moons-500": (moons(500), "scale"),
    "moons-2000": (moons(2000), "scale"),
    "digits": (lambda _: load_digits(return_X_y=True), "scale"),
    "pendigits": (file("pendigits", 50.0), 0.5),
    "letter": (file("letter"), 0.1),
    "usps": (file("usps"), 0.01),
}
LINEAR = ("iris", "wine", "cancer", "digits")


def seconds_of(ours, theirs, X, y, rounds):
    """Median seconds of a fit of both, by turns, and our largest gap."""
    taken, fitted = ([], []), ours
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # LIBLINEAR stops before it is done
        for _ in range(rounds):
            for machine, times in zip((ours, theirs), taken, strict=True):
                begin = time.perf_counter()
                machine.fit(X, y)
                times.append(time.perf_counter() - begin)
    return *map(statistics.median, taken), fitted.dual_gap_


def measured(name, folder, costs, rounds):
    """A record for each C, and for each loss of a linear machine."""
    read, gamma = SETS[name]
    X, y = read(folder)
    few = rounds if len(y) > 3000 else 3 * rounds
    machines = [
        (
            f"rbf, C={C:g}",
            widemargin.SVC(C=C, gamma=gamma, tol=TOL),
            sklearn.svm.SVC(C=C, gamma=gamma),
        )
        for C in costs
    ]
    for loss in ("hinge", "squared_hinge") if name in LINEAR else ():
        ours = widemargin.LinearSVC(loss=loss, tol=TOL)
        theirs = sklearn.svm.LinearSVC(loss=loss)
        machines.append((f"linear, {loss}", ours, theirs))
    for kind, ours, theirs in machines:
        own, other, gap = seconds_of(ours, theirs, X, y, few)
        yield {
            "set": name,
            "rows": len(y),
            "machine": kind,
            "ours": own,
            "scikit-learn": other,
            "gap": gap,
            "solver": ours.solution_.solver,
        }


def table(records):
    """The lines of small.txt."""
    head = f"{'set':11}{'rows':>7} {'machine':23}{'ours, ms':>10}{'theirs':>10}"
    lines = [head + f"{'faster':>8}{'gap':>9}  solver"]
    for one in records:
        ratio = one["scikit-learn"] / one["ours"]
        lines.append(
            f"{one['set']:11}{one['rows']:>7,} {one['machine']:23}"
            f"{1e3 * one['ours']:10.2f}{1e3 * one['scikit-learn']:10.2f}"
            f"{ratio:8.2f}{one['gap']:9.0e}  {one['solver']}"
        )
    for kind in ("rbf", "linear"):
        ratios = [
            one["scikit-learn"] / one["ours"]
            for one in records
            if one["machine"].startswith(kind)
        ]
        if ratios:
            mean = statistics.geometric_mean(ratios)
            lines.append(f"{kind}: {mean:.2f} times as fast, geometric mean")
    return "\n".join(lines) + "\n"


def main(argv=None):
    """Measure, and write small.json and small.txt."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, help="folder of the sets that are files")
    parser.add_argument("--sets", type=list_of(SETS), default=list(SETS))
    parser.add_argument("--C", type=numbers, default=[1.0, 10.0, 100.0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--output", type=Path, default=RESULTS / "kernel")
    options = parser.parse_args(argv)
    records = []
    for name in options.sets:
        try:
            records += measured(name, options.data, options.C, options.rounds)
        except (OSError, TypeError) as error:
            print(f"{name}: left out, as its file is not in --data ({error})")
    options.output.mkdir(parents=True, exist_ok=True)
    (options.output / "small.json").write_text(json.dumps(records, indent=1) + "\n")
    (options.output / "small.txt").write_text(table(records))
    print(table(records), end="")


if __name__ == "__main__":
    main()
