"""Dense arrays of many zeros, and CSR rows of few: what storing them otherwise saves.

Draws linear problems of two shapes, of 20 to 4,000 columns (`wide`) and of 8 to 250 and
more entries (`tall`), with 0.5 to 100 % of the entries not zero, and fits `LinearSVC`
and `LinearSVR` to each as a dense array and as CSR rows: as they are given, and with
`stored_well`. Seconds of each over those of the better form as given. Writes
OUTPUT/stored_form.txt.
"""

import argparse
import time
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import numpy as np
from scipy import sparse

from benchmarks.environment import RESULTS, machine
from widemargin import LinearSVC, LinearSVR
from widemargin.estimators import solving

ENTRIES, STORED = 4_000_000, 1_000_000  # of a problem at most
BUDGET, ROUNDS = 0.3, 4  # seconds of repeated fits, and how many
FORMS = {"dense": np.asarray, "CSR": sparse.csr_array}


class Drawn(NamedTuple):
    """A linear problem."""

    X: np.ndarray
    target: np.ndarray
    machine: type
    options: dict


def wide(rng):
    """Rows, columns, and the share of entries that are not zero."""
    n = int(10 ** rng.uniform(1.3, 3.6))
    share = max(10 ** rng.uniform(-2.3, 0.0), 1.5 / n)
    most = min(ENTRIES / n, STORED / (n * share))
    return max(int(min(10 ** rng.uniform(2.3, 4.5), most)), 100), n, share


def tall(rng):
    """The same with more rows, and fewer columns."""
    n = int(10 ** rng.uniform(0.9, 2.4))
    share = min(0.5, max(10 ** rng.uniform(-2.0, -0.4), 1.2 / n))
    return int(10 ** rng.uniform(5.7, np.log10(ENTRIES)) / n), n, share


SHAPES = {"wide": wide, "tall": tall}


def drawn(rng, shape):
    """A problem of such a shape: ones, counts or numbers, with noise or without."""
    m, n, share = SHAPES[shape](rng)
    often = rng.pareto(1.5, n) + 0.05 if rng.random() < 0.5 else np.ones(n)
    X = (rng.random((m, n)) < np.minimum(share * often / often.mean(), 1.0)) * 1.0
    X *= [1.0, rng.normal(size=(m, n)), 1.0 + rng.poisson(1.0, (m, n))][rng.integers(3)]
    X /= np.sqrt(np.square(X).sum(axis=1).mean())
    scores = X @ rng.normal(size=(n, int(rng.choice([2, 2, 3, 6, 10]))))
    scores /= scores.std()
    scores += rng.choice([0.0, 0.1, 0.5, 1.5]) * rng.normal(size=scores.shape)
    options = {"C": float(10 ** rng.uniform(-1.0, 3.5))}
    squared = "squared_" if rng.random() < 0.5 else ""
    if rng.random() < 0.25:
        options["loss"] = squared + "epsilon_insensitive"
        return Drawn(X, scores[:, 0], LinearSVR, options)
    options["loss"] = squared + "hinge"
    return Drawn(X, scores.argmax(axis=1), LinearSVC, options)


@contextmanager
def as_given():
    """Rows stay as they are."""
    stored_well = solving.stored_well
    solving.stored_well = lambda training: training
    try:
        yield
    finally:
        solving.stored_well = stored_well


def seconds(problem, X):
    """The least seconds of a fit."""
    times = []
    while len(times) < ROUNDS and sum(times) < BUDGET:
        begin = time.perf_counter()
        problem.machine(**problem.options).fit(X, problem.target)
        times.append(time.perf_counter() - begin)
    return min(times)


def measured(problem):
    """Seconds of both forms as given, and of both stored well: (4,)."""
    forms = [form(problem.X) for form in FORMS.values()]
    with as_given():
        given = [seconds(problem, X) for X in forms]
    return np.array(given + [seconds(problem, X) for X in forms])


def row(shape, found):
    """A line: each over the better form as given, mean and 95 %; and the sums."""
    found = np.array(found)
    logs = np.log(found / found[:, :2].min(axis=1)[:, np.newaxis])
    means, high = np.exp(logs.mean(axis=0)), np.exp(np.quantile(logs, 0.95, axis=0))
    parts = [f"{a:6.2f} {b:6.2f}" for a, b in zip(means, high, strict=True)]
    sums = "  ".join(f"{one:7.2f}" for one in found.sum(axis=0))
    return f"{shape:6}{len(found):5}  {'  '.join(parts)}   {sums}"


def main():
    """Measure the problems."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add = parser.add_argument
    add("--problems", type=int, default=50, help="of each shape")
    add("--seed", type=int, default=0)
    add("--output", type=Path, default=RESULTS / "linear")
    options = parser.parse_args()
    options.output.mkdir(parents=True, exist_ok=True)
    here = machine({})
    lines = [
        f"{here['cpu']}; {here['versions']}; seed {options.seed}",
        "over the better form as given, mean and 95 %; sums of seconds",
        "shape        dense given    CSR given      dense, stored  CSR, stored    sums",
    ]
    print("\n".join(lines))
    for number, shape in enumerate(SHAPES):
        rng = np.random.default_rng([options.seed, number])
        found = [measured(drawn(rng, shape)) for _ in range(options.problems)]
        lines.append(row(shape, found))
        print(lines[-1], flush=True)
    (options.output / "stored_form.txt").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
