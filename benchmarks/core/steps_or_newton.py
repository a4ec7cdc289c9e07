"""Steps on products of rows before other solvers, or these at once.

Whole fits of `LinearSVC(loss="hinge")` on dense rows with 100 to 800 columns, a fifth
of the rows and more, and of `LinearSVR` on fewer: columns of one size, of sizes that
differ up to eight times, of low rank, labels that are noise, and real images, C from
0.01 to 1e4. With --squared of `LinearSVC` with its own loss on up to 256 columns, of
which many matter and a margin may be between the classes. With --pairs of
`SVC(kernel="linear")`, whose problems are pairs of classes, on rows with a tenth to a
half as many columns. Milliseconds are medians of fits in turns. Prints a table and
writes OUTPUT/steps_or_newton.txt, OUTPUT/steps_or_newton_squared.txt, or
OUTPUT/steps_or_newton_pairs.txt.
"""

import argparse
import time
import warnings
from pathlib import Path
from statistics import geometric_mean, median

import numpy as np
from sklearn.datasets import load_digits, make_classification, make_regression
from sklearn.exceptions import ConvergenceWarning

from benchmarks.environment import RESULTS, machine
from widemargin import SVC, LinearSVC, LinearSVR
from widemargin.estimators import batch
from widemargin.estimators.linear_choice import Before

SECONDS = 3.0  # of the turns of one cell, after which no more begin
CS = 0.01, 0.1, 1.0, 100.0, 1e4
SHAPES = [(120, 110), (200, 110), (200, 150), (300, 150), (300, 250)]
SHAPES += [(450, 200), (600, 250)]
LARGE = [(600, 130), (1_200, 300), (1_200, 500), (3_000, 800)]
RULES = "steps_before_newton", "steps_before_others"
HEAD = f"{'rows':28}" + "".join(f"{f'C = {C:g}':>22}" for C in CS)


def classes(m, n, count=2, sizes=0.0, rank=None):
    """Some informative columns among noise; columns of several sizes, or of a rank."""
    X, y = make_classification(
        m,
        n,
        n_informative=8,
        n_redundant=0,
        n_classes=count,
        n_clusters_per_class=1,
        flip_y=0.05,
        random_state=3,
    )
    rng = np.random.default_rng(0)
    if rank is not None:
        X = X[:, :rank] @ rng.normal(size=(rank, n)) / np.sqrt(rank)
        X += 0.1 * rng.normal(size=X.shape)
    return X * np.exp(rng.uniform(0.0, sizes, n)), y


def apart(m, n, count, flip):
    """Classes of which half of the columns tell; with a margin if no label is off."""
    return make_classification(
        m,
        n,
        n_informative=n // 2,
        n_redundant=0,
        n_classes=count,
        n_clusters_per_class=1,
        flip_y=flip,
        class_sep=1.5 - 10.0 * flip,
        random_state=1,
    )


def noise(m, n):
    """Two classes of which the rows say nothing."""
    rng = np.random.default_rng(0)
    return rng.normal(size=(m, n)), rng.integers(0, 2, m)


def targets(m, n, sizes=0.0):
    """A linear target of twenty columns with noise, and of deviation 1."""
    X, t = make_regression(m, n, n_informative=20, noise=5.0, random_state=1)
    X *= np.exp(np.random.default_rng(0).uniform(0.0, sizes, n))
    return X, t / t.std()


def images(m):
    """Digits, 8 x 8, and products of their pixels: 256 columns."""
    X, y = load_digits(return_X_y=True)
    X = np.hstack([X, X[:, 1:] * X[:, :-1] / 8.0, X[:, 8:] * X[:, :-8] / 8.0])[:m]
    X = np.hstack([X, X[:, : 256 - X.shape[1]] ** 2 / 8.0]) if X.shape[1] < 256 else X
    X = X[:, :256]
    return (X - X.mean(axis=0)) / np.maximum(X.std(axis=0), 1e-3 * X.std()), y[:m]


def tasks():
    """Names, data and machines."""

    def classifier(C):
        return LinearSVC(loss="hinge", C=C)

    def regressor(C):
        return LinearSVR(epsilon=0.1, C=C)

    for m, n in SHAPES:
        shape = f"{m} x {n}"
        yield f"2 classes {shape}", classes(m, n), classifier
        yield f"5 classes {shape}", classes(m, n, 5), classifier
        yield f"2 classes {shape}, sizes", classes(m, n, sizes=2.0), classifier
        yield f"2 classes {shape}, rank 30", classes(m, n, rank=30), classifier
        if n >= 200:
            yield f"targets {shape}", targets(m, n), regressor
            yield f"targets {shape}, sizes", targets(m, n, 2.0), regressor
    for m, n in LARGE:
        shape = f"{m} x {n}"
        yield f"2 classes {shape}", classes(m, n), classifier
        yield f"2 classes {shape}, sizes", classes(m, n, sizes=2.0), classifier
        yield f"2 classes {shape}, rank 30", classes(m, n, rank=30), classifier
        yield f"noise {shape}", noise(m, n), classifier
    yield "5 classes 1200 x 500", classes(1_200, 500, 5), classifier
    for m in (300, 600):
        yield f"images {m} x 256", images(m), classifier


def squared_tasks():
    """The same of the squared hinge."""

    def squared(C):
        return LinearSVC(C=C)

    for m, n in [*SHAPES[2:], (600, 120), (900, 180), (1_280, 250)]:
        for count in (2, 5):
            for flip in (0.0, 0.02, 0.05, 0.1):
                name = f"{count} classes {m} x {n}, {100 * flip:g} % off"
                yield name, apart(m, n, count, flip), squared
        yield f"2 classes {m} x {n}, rank 30", classes(m, n, rank=30), squared
        yield f"noise {m} x {n}", noise(m, n), squared
    for m in (300, 600):
        yield f"images {m} x 256", images(m), squared


def pair_tasks():
    """Names, data and machines of one pair of classes, and of all pairs of five."""

    def machine_of(C):
        return SVC(kernel="linear", C=C)

    for m, n in [(1_000, 110), (1_400, 150), (1_500, 250), (2_400, 250)]:
        for flip in (0.0, 0.02, 0.1):
            name = f"{m} x {n}, {100 * flip:g} % off"
            yield f"2 classes {name}", apart(m, n, 2, flip), machine_of
            yield f"5 classes {name}", apart(2 * m, n, 5, flip), machine_of
        yield f"noise {m} x {n}", noise(m, n), machine_of


def main():
    """Measure the tasks."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    kinds = parser.add_mutually_exclusive_group()
    kinds.add_argument("--squared", action="store_true")
    kinds.add_argument("--pairs", action="store_true")
    parser.add_argument("--output", type=Path, default=RESULTS / "linear")
    options = parser.parse_args()
    options.output.mkdir(parents=True, exist_ok=True)
    warnings.simplefilter("ignore", ConvergenceWarning)
    here = machine({})
    lines = [f"{here['cpu']}; {here['versions']}; ms: others, steps first, ratio"]
    lines.append(HEAD)
    print("\n".join(lines))
    ratios = []
    kind = "_squared" if options.squared else "_pairs" if options.pairs else ""
    makers = {"_squared": squared_tasks, "_pairs": pair_tasks, "": tasks}
    for name, data, make in makers[kind]():
        cells = []
        for C in CS:
            found = times(make(C), data, RULES, options.rounds + 1)
            others, both = (1e3 * median(seconds[1:] or seconds) for seconds in found)
            ratios.append(both / others)
            cells.append(f"{others:9.2f}{both:7.2f}{ratios[-1]:6.2f}")
        lines.append(f"{name:28}" + "".join(cells))
        print(lines[-1], flush=True)
    lines.append(f"geometric mean of the ratios {geometric_mean(ratios):.2f}")
    print(lines[-1])
    name = f"steps_or_newton{kind}.txt"
    (options.output / name).write_text("\n".join(lines) + "\n")


def times(machine, data, names, rounds):
    """Seconds of fits in turns: without rules of `estimators.batch`, and with them."""
    rules, found = {name: getattr(batch, name) for name in names}, ([], [])
    try:
        for turn in range(2 * rounds):
            for name, rule in rules.items():
                setattr(batch, name, rule if turn % 2 else lambda *_: Before(0))
            begin = time.perf_counter()
            machine.fit(*data)
            found[turn % 2].append(time.perf_counter() - begin)
            if sum(map(sum, found)) > SECONDS and turn % 2:
                break
    finally:
        for name, rule in rules.items():
            setattr(batch, name, rule)
    return found


if __name__ == "__main__":
    main()
