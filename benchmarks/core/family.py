"""Regression and one class by the engines, beside scikit-learn at an equal gap.

scikit-learn's SVR and OneClassSVM are fitted with their own tol of 1e-3; our bounds at
their answers say how good these are, and that gap is asked of the batch engine and of
working sets. Median seconds of fits in turns, one thread each. Rows are of
`make_friedman1` with noise, standardized, or normal ones of which a tenth lies far out.
Prints a table and writes OUTPUT/family.txt.
"""

import argparse
import time
from pathlib import Path
from statistics import median

import numpy as np
from sklearn.datasets import make_friedman1
from sklearn.svm import SVR, OneClassSVM

from benchmarks.environment import RESULTS, machine
from widemargin import Kernel, Problem, solve
from widemargin.kernels.grouped import GroupedSamples
from widemargin.losses.pointwise import LOSSES
from widemargin.problems.many import ManyProblems
from widemargin.problems.regression import regression_problem
from widemargin.solvers import IRWLS
from widemargin.solvers.driver.limits import Limits
from widemargin.solvers.kernel.batch import solve_many

SIZES = ((500, 8), (1000, 8), (2000, 8), (4000, 8), (8000, 12), (20_000, 8))
EPSILON, CACHE, MEMORY = 0.1, 1000, 4 << 30
# The least gap that float32 values of the batch engine are asked for here.
LEAST = 1e-5
HEAD = (
    f"{'task':16}{'rows':>7}{'cols':>6}{'gap':>10}{'sklearn s':>11}{'batch s':>10}"
    f"{'working sets s':>16}{'sklearn / best':>16}"
)


class Regression:
    """Epsilon-insensitive regression with an RBF kernel."""

    def __init__(self, m, n, C):
        X, t = make_friedman1(m, n, noise=1.0, random_state=0)
        self.X, self.t = standardized(X), (t - t.mean()) / t.std()
        self.C, self.kernel = C, Kernel("rbf", gamma=1.0 / n)
        self.name = f"SVR C={C:g}"

    def peer(self):
        """scikit-learn's model."""
        options = {"gamma": self.kernel.gamma, "cache_size": CACHE}
        return SVR(C=self.C, epsilon=EPSILON, **options).fit(self.X, self.t)

    def many(self):
        """The problem of the batch engine."""
        m = len(self.t)
        q = np.append(self.t - EPSILON, -self.t - EPSILON)
        y, C = np.repeat([1.0, -1.0], m), np.full(2 * m, float(self.C))
        return problem_of(
            self.X, self.kernel, np.array([0, 0]), (y, C, "free", q, None)
        )

    def single(self):
        """The problem of working sets."""
        form = {"loss": "hinge", "intercept": "free", "kernel": self.kernel}
        return regression_problem(self.X, self.t, self.C, EPSILON, **form)

    def gap_of(self, peer):
        """The certified gap of scikit-learn's answer."""
        m, c = len(self.t), np.zeros(2 * len(self.t))
        found = np.zeros(m)
        found[peer.support_] = peer.dual_coef_[0]
        c[:m], c[m:] = np.maximum(found, 0.0), np.minimum(found, 0.0)
        return gap_of(self.many(), c, peer.intercept_, 0.0)


class OneClass:
    """A one-class machine with an RBF kernel."""

    def __init__(self, m, n, nu):
        rng = np.random.default_rng(0)
        self.X, self.nu = rng.normal(size=(m, n)), nu
        self.X[::10] *= 3.0
        self.kernel, self.name = Kernel("rbf", gamma=1.0 / n), f"one class {nu:g}"

    def peer(self):
        """scikit-learn's model."""
        options = {"gamma": self.kernel.gamma, "cache_size": CACHE}
        return OneClassSVM(nu=self.nu, **options).fit(self.X)

    def many(self):
        """The problem of the batch engine."""
        m = len(self.X)
        form = np.ones(m), np.ones(m), "none", np.zeros(m), np.array([self.nu * m])
        return problem_of(self.X, self.kernel, np.array([0]), form)

    def single(self):
        """The problem of working sets."""
        m, form = len(self.X), {"intercept": "none", "kernel": self.kernel}
        return Problem(
            self.X, np.ones(m), 1.0, "hinge", mass=self.nu * m, q=0.0, **form
        )

    def gap_of(self, peer):
        """The certified gap of scikit-learn's answer."""
        c = np.zeros(len(self.X))
        c[peer.support_] = peer.dual_coef_[0]
        return gap_of(self.many(), c, np.zeros(1), -peer.intercept_)


def standardized(X):
    """Columns of mean 0 and deviation 1."""
    return (X - X.mean(axis=0)) / X.std(axis=0)


def problem_of(X, kernel, groups, form):
    """The only problem over all rows, or over all rows twice."""
    y, C, intercept, q, mass = form
    samples = GroupedSamples(X, np.zeros(len(X), np.int64), kernel)
    ends, places = np.array([len(groups)]), np.array([len(y)])
    given = samples, groups, ends, places, y, C, LOSSES["hinge"], intercept
    return ManyProblems(*given, np.array([-1]), q, mass)


def gap_of(many, c, b, rho):
    """The relative gap of coefficients, by our bounds."""
    point = c, np.zeros(len(c)), np.asarray(b, float)
    (bounds,) = many.certificates(*point, 1, lambda: False, np.zeros(1) + rho)
    return bounds.relative_gap


def main():
    """Measure all tasks."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add = parser.add_argument
    add("--rounds", type=int, default=3)
    add("--rows", type=int, default=8000, help="the largest tables have so many")
    add("--output", type=Path, default=RESULTS / "kernel")
    options = parser.parse_args()
    options.output.mkdir(parents=True, exist_ok=True)
    here = machine({})
    lines = [f"{here['cpu']}, one thread; {here['versions']}", HEAD]
    print("\n".join(lines))
    for m, n in SIZES:
        if m > options.rows:
            continue
        tasks = [Regression(m, n, C) for C in (1.0, 10.0)]
        tasks += [OneClass(m, n, nu) for nu in (0.05, 0.3)]
        for task in tasks:
            lines.append(row(task, options.rounds))
            print(lines[-1], flush=True)
    (options.output / "family.txt").write_text("\n".join(lines) + "\n")


def row(task, rounds):
    """A line of the table."""
    gap, runs = None, {"peer": [], "batch": [], "sets": []}
    for _ in range(rounds):
        peer, seconds = timed(task.peer)
        runs["peer"].append(seconds)
        gap = gap or min(max(task.gap_of(peer), LEAST), 1e-2)
        found, seconds = timed(by_batch, task, gap)
        runs["batch"].append(seconds if found.status == "solved" else np.inf)
        found, seconds = timed(by_sets, task, gap)
        runs["sets"].append(seconds if found.status == "solved" else np.inf)
    peer, batch, sets = (median(mine) for mine in runs.values())
    m, n = task.X.shape
    return (
        f"{task.name:16}{m:>7,}{n:>6}{gap:>10.1e}{peer:>11.3f}{batch:>10.3f}"
        f"{sets:>16.3f}{peer / min(batch, sets):>16.1f}"
    )


def by_batch(task, gap):
    """The answer of the batch engine."""
    (found,) = solve_many(task.many(), Limits(tol=gap), MEMORY, 1)
    return found


def by_sets(task, gap):
    """The answer of working sets."""
    return solve(task.single(), IRWLS(), tol=gap)


def timed(fit, *args):
    """What a function returns, and its seconds."""
    begin = time.perf_counter()
    found = fit(*args)
    return found, time.perf_counter() - begin


if __name__ == "__main__":
    main()
