"""Linear machines on dense rows: descent, Newton's method or an interior point.

Draws problems (columns of one or of several sizes, with heavy tails, counts, of a low
rank; targets and classes that noise may blur) and fits each with the constants as they
are and with others in their place: which problems coordinate descent begins with, and
when it gives up (`descent`, of the squared loss); after how many sweeps an interior
point takes over from Newton's method (`squared`, `bounded`: problems that take 30
sweeps or more); after how many steps of the core it does (`core`: 50 steps or more);
and with which of several classes descent takes the place of products that they share
(`classes`). For each of the others: how many problems, the geometric mean of its time
over that of the constants as they are, and the least and the largest ratio. Seconds of
the second of two fits, by the clock; what is not solved in some seconds counts as
these. Prints a table and writes OUTPUT/dense_linear.txt.
"""

import argparse
import math
import time
import warnings
from pathlib import Path
from statistics import geometric_mean

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from benchmarks.core.constants import changed, described
from benchmarks.environment import RESULTS, machine
from widemargin import LinearSVC, LinearSVR
from widemargin.estimators import linear_choice
from widemargin.solvers import auto
from widemargin.solvers.linear import batch

KINDS = "even", "sizes", "tails", "counts", "rank"
MODULES = auto, batch, linear_choice
PATIENCE, MOST_ENTRIES = 6.0, 4_000_000
# What is put in the place of the constants, by family.
OTHERS = {
    "descent": (
        {"SQUARED_DENSE": 0.0},
        {"SQUARED_DENSE": 1.0},
        {"SQUARED_DENSE": 5.0},
        {"DENSE_UPDATES": 0.1},
        {"DENSE_UPDATES": 0.3},
    ),
    "squared": tuple({"LEAST_SQUARED_SWEEPS": k} for k in (math.inf, 30, 60, 90)),
    "bounded": tuple({"LEAST_SWEEPS": k} for k in (math.inf, 45, 90)),
    "core": tuple({"MOST_STEPS": k} for k in (100, 600)),
    "classes": tuple({"SHARED_VISITS": k} for k in (math.inf, 20, 100)),
}


def between(rng, low, high):
    """A number whose logarithm is drawn evenly."""
    return float(np.exp(rng.uniform(np.log(low), np.log(high))))


def rows(rng, m, n, kind):
    """Rows of one of the kinds."""
    X = rng.normal(size=(m, n))
    if kind == "sizes":
        X = np.exp(1.5 * X)
    elif kind == "tails":
        X = rng.standard_t(3, size=(m, n))
    elif kind == "counts":
        X = rng.poisson(rng.exponential(1.0, n), size=(m, n)).astype(np.float64)
    elif kind == "rank":
        few = n // 5 + 2
        X = 0.1 * X + rng.normal(size=(m, few)) @ rng.normal(size=(few, n)) / few**0.5
    if rng.random() < 0.7:
        spread = X.std(axis=0)
        X = (X - X.mean(axis=0)) / np.where(spread > 0.0, spread, 1.0)
    return X


def drawn(rng, family):
    """Rows, targets or labels, and a machine that is not fitted."""
    columns, per_column = (101, 1500), (0.5, 20.0)
    if family == "core":
        columns, per_column = (40, 256), (1.6, 100.0)
    if family == "classes":
        columns, per_column = (257, 1000), (1.0, 8.0)
    while True:
        n = int(between(rng, *columns))
        m = int(n * between(rng, *per_column))
        if m * n <= (1_000_000 if family == "core" else MOST_ENTRIES):
            break
    X = rows(rng, m, n, rng.choice(KINDS))
    z = X @ rng.normal(size=n)
    z = (z - z.mean()) / z.std() + rng.choice([0.0, 0.03, 0.1, 0.3]) * rng.normal(
        size=m
    )
    squared = family in ("descent", "squared", "classes")
    if family == "core":
        squared = rng.random() < 0.6
    is_target = family != "classes" and rng.random() < 0.5
    C = 10.0 ** rng.integers(0, 4)
    if family in ("descent", "classes"):
        kappa = between(rng, 0.1, 30.0)
        if family == "descent":
            kappa = between(rng, 0.02, 10.0) * n * n / m / (1 + is_target)
        C = kappa / np.square(X).sum(axis=1).mean()
    if is_target:
        loss = "squared_epsilon_insensitive" if squared else "epsilon_insensitive"
        epsilon = float(rng.choice([0.01, 0.1, 0.3]))
        options = {"C": C, "epsilon": epsilon, "loss": loss}
        return X, z / z.std(), LinearSVR(**options, time_limit=PATIENCE)
    k = int(rng.choice([4, 10, 25])) if family == "classes" else 2
    y = np.digitize(z, np.quantile(z, np.linspace(0.0, 1.0, k + 1)[1:-1]))
    loss = "squared_hinge" if squared else "hinge"
    return X, y, LinearSVC(C=C, loss=loss, time_limit=PATIENCE)


def seconds(X, y, estimator):
    """Seconds of a fit, the second of two if it is short."""
    for _ in range(2):
        begin = time.perf_counter()
        estimator.fit(X, y)
        spent = time.perf_counter() - begin
        if spent > 0.5:
            break
    return spent


def concerns(family, estimator):
    """Whether a machine, which has been fitted, is one of those of the family."""
    first = getattr(estimator, "solutions_", [estimator.solution_])[0]
    if family in ("squared", "bounded"):
        return first.solver != batch.NAME and first.trace[-1].sweeps >= 30
    if family == "core":
        return first.extras.get(batch.NEWTON_STEPS, math.inf) >= 50
    return first.solver != batch.NAME or family == "classes"


def ratios(rng, family, count):
    """Of each of the others, the ratios of its times; of so many problems."""
    found = [[] for _ in OTHERS[family]]
    while len(found[0]) < count:
        X, y, estimator = drawn(rng, family)
        own = seconds(X, y, estimator)
        if not concerns(family, estimator):
            continue
        for constants, each in zip(OTHERS[family], found, strict=True):
            with changed(constants, *MODULES):
                each.append(seconds(X, y, estimator) / own)
    return found


def main():
    """Measure the families."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--problems", type=int, default=30)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--families", default=",".join(OTHERS))
    parser.add_argument("--output", type=Path, default=RESULTS / "linear")
    options = parser.parse_args()
    options.output.mkdir(parents=True, exist_ok=True)
    warnings.simplefilter("ignore", ConvergenceWarning)
    here = machine({})
    lines = [f"{here['cpu']}; {here['versions']}; time over that of auto as it is"]
    lines.append(f"{'family':10}{'in place':30}{'problems':>9}{'mean':>7}{'range':>16}")
    print("\n".join(lines))
    for family in options.families.split(","):
        rng = np.random.default_rng(options.seed)
        found = ratios(rng, family, options.problems)
        for constants, each in zip(OTHERS[family], found, strict=True):
            ends = f"{min(each):.2f} to {max(each):.2f}"
            mean = geometric_mean(each)
            said = f"{family:10}{described(constants):30}{len(each):9}{mean:7.2f}"
            lines.append(f"{said}{ends:>16}")
            print(lines[-1], flush=True)
    (options.output / "dense_linear.txt").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
