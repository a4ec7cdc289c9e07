"""Coordinate descent or Newton's method: sparse rows of some hundred columns.

Draws problems with more than 256 columns and a random kappa (mean C |z|^2). With the
hinge Newton's is the interior point method: up to 1,500 columns, at most 20 rows and
for classes at least two rows a column, kappa from 1 to 300. With the squared hinge it
is the active set method: up to 6,000 columns, 1 to 60 rows a column, kappa from 0.1 to
300. Each is solved with both to gaps of .1, .01, 1e-3 and 1e-4. What the rules of
"auto" would take is compared with the better one of the two: geometric means of the
ratios, the 95th percentile, and the largest. Processor seconds; what is not solved in
some seconds counts as these. Prints a table and writes OUTPUT/descent_or_newton.txt.
"""

import argparse
import itertools
import time
from pathlib import Path
from typing import NamedTuple

import numpy as np
from scipy import sparse

from benchmarks.environment import RESULTS, machine
from benchmarks.linear.regression import EPSILON, documents
from widemargin import Problem, solve
from widemargin.problems.regression import regression_problem
from widemargin.solvers import auto

TOLS = 0.1, 0.01, 1e-3, 1e-4
ENTRIES, PATIENCE = (5, 60), 1.5


class Loss(NamedTuple):
    """A loss, Newton's method for it, and which problems are drawn."""

    name: str
    newton: str
    columns: tuple[float, float]
    rows: tuple[float, float]  # of a column
    kappas: tuple[float, float]
    most_stored: int

    @property
    def methods(self):
        """What is compared."""
        return "coordinate_descent", self.newton


INSIDE = 0.6, auto.INSIDE_ROWS
LOSSES = (
    Loss("hinge", "interior_point", (257, 1500), INSIDE, (1.0, 300.0), 600_000),
    Loss("squared_hinge", "active_set", (257, 6000), (1, 60), (0.1, 300.0), 1_500_000),
)


HEAD = f"{'':24}{'':22}" + "".join(f"{f'gap {tol:g}':>18}" for tol in TOLS)


def scattered(rng, m, n, count):
    """About so many ones a row, anywhere, and a linear target with noise."""
    columns = rng.integers(0, n, size=(m, count)).ravel()
    rows = np.repeat(np.arange(m), count)
    X = sparse.csr_matrix((np.ones(m * count), (rows, columns)), shape=(m, n))
    X.sum_duplicates()
    X.data[:] = 1.0
    t = X @ rng.normal(size=n)
    return X, (t - t.mean()) / t.std() + 0.3 * rng.normal(size=m)


def between(rng, ends):
    """A number whose logarithm is drawn evenly."""
    return float(np.exp(rng.uniform(*np.log(ends))))


def drawn(rng, loss, is_class):
    """A problem."""
    while True:
        n, count = int(between(rng, loss.columns)), int(between(rng, ENTRIES))
        m = int(n * between(rng, loss.rows))
        if m * count <= loss.most_stored:
            break
    X, t = scattered(rng, m, n, count) if rng.random() < 0.5 else documents(m, n, count)

    def made(C):
        if is_class:
            signs = np.where(t > np.median(t), 1.0, -1.0)
            return Problem(X, signs, C, loss.name, "penalized")
        return regression_problem(X, t, C, EPSILON, loss.name, "penalized")

    return made(between(rng, loss.kappas) / made(1.0).kappa)


def seconds(problem, method, tol):
    """Processor seconds of a solve."""
    begin = time.process_time()
    found = solve(problem, method, tol=tol, time_limit=PATIENCE)
    spent = time.process_time() - begin
    return spent if found.status == "solved" else max(spent, PATIENCE)


def is_near_the_border(problem, loss):
    """Whether it is one of those that the rule is for."""
    facts = auto.Facts.of(problem, TOLS[0])
    return facts.suits_inside if loss.name == "hinge" else facts.is_sparse


def measured(rng, loss, is_class, problems):
    """Seconds of both methods (problems, gaps, 2), and which one auto takes first."""
    taken, times = [], []
    while len(times) < problems:
        problem = drawn(rng, loss, is_class)
        if not is_near_the_border(problem, loss):
            continue
        each = [auto.choose(problem, tol=tol).solver.name for tol in TOLS]
        taken.append([loss.methods.index(name) for name in each])
        times.append([[seconds(problem, s, tol) for s in loss.methods] for tol in TOLS])
    return np.array(times), np.array(taken)


def lines_of(kind, methods, times, taken):
    """Lines of the table: what auto takes, and each method alone."""
    picks = {"as auto": taken, **{s: 0 * taken + k for k, s in enumerate(methods)}}
    for key, pick in picks.items():
        own = np.take_along_axis(times, pick[:, :, np.newaxis], 2)[:, :, 0]
        over = own / times.min(axis=2)
        mean = np.exp(np.log(over).mean(axis=0))
        said = zip(mean, np.quantile(over, 0.95, axis=0), over.max(axis=0), strict=True)
        cells = (f"{a:.2f}, {b:.2f}, {c:.3g}" for a, b, c in said)
        yield f"{kind:24}{key:22}" + "".join(f"{cell:>18}" for cell in cells)


def main():
    """Measure both kinds of problems."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--problems", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--output", type=Path, default=RESULTS / "linear")
    options = parser.parse_args()
    options.output.mkdir(parents=True, exist_ok=True)
    here = machine({})
    lines = [f"{here['cpu']}; {here['versions']}; {options.problems} each", HEAD]
    for loss, kind in itertools.product(LOSSES, ("targets", "classes")):
        rng = np.random.default_rng(options.seed)
        found = measured(rng, loss, kind == "classes", options.problems)
        lines += lines_of(f"{loss.name}, {kind}", loss.methods, *found)
    print("\n".join(lines))
    (options.output / "descent_or_newton.txt").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
