"""Coordinate descent or the interior point method: sparse rows of some hundred columns.

Draws problems with the hinge of 257 to 1,500 columns, at most 20 rows and for classes
at least two rows a column, with a random kappa (mean C |z|^2) from 1 to 300, and solves
each with both methods to gaps of .1, .01, 1e-3 and 1e-4. What the rules of "auto" would
take is compared with the better one of the two: geometric means of the ratios, the
95th percentile, and the largest. Processor seconds; what is not solved in some seconds
counts as these. Prints a table and writes OUTPUT/descent_or_inside.txt.
"""

import argparse
import time
from pathlib import Path

import numpy as np
from scipy import sparse

from benchmarks.environment import RESULTS, machine
from benchmarks.linear.regression import EPSILON, documents
from widemargin import Problem, solve
from widemargin.problems.regression import regression_problem
from widemargin.solvers import auto

TOLS = 0.1, 0.01, 1e-3, 1e-4
METHODS = "coordinate_descent", "interior_point"
COLUMNS, ENTRIES, KAPPAS = (257, 1500), (5, 60), (1.0, 300.0)
MOST_STORED, PATIENCE = 600_000, 1.5
HEAD = f"{'':10}{'':22}" + "".join(f"{f'gap {tol:g}':>18}" for tol in TOLS)


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


def drawn(rng, is_class):
    """A problem."""
    least = auto.INSIDE_CLASS if is_class else 0.6
    while True:
        n, count = int(between(rng, COLUMNS)), int(between(rng, ENTRIES))
        m = int(n * between(rng, (least, auto.INSIDE_ROWS)))
        if m * count <= MOST_STORED:
            break
    X, t = scattered(rng, m, n, count) if rng.random() < 0.5 else documents(m, n, count)

    def made(C):
        if is_class:
            signs = np.where(t > np.median(t), 1.0, -1.0)
            return Problem(X, signs, C, "hinge", "penalized")
        return regression_problem(X, t, C, EPSILON, "hinge", "penalized")

    return made(between(rng, KAPPAS) / made(1.0).kappa)


def seconds(problem, method, tol):
    """Processor seconds of a solve."""
    begin = time.process_time()
    found = solve(problem, method, tol=tol, time_limit=PATIENCE)
    spent = time.process_time() - begin
    return spent if found.status == "solved" else max(spent, PATIENCE)


def measured(rng, is_class, problems):
    """Seconds of both methods (problems, gaps, 2), and which one auto takes first."""
    taken, times = [], []
    while len(times) < problems:
        problem = drawn(rng, is_class)
        if not auto.Facts.of(problem, TOLS[0]).suits_inside:
            continue
        each = [auto.choose(problem, tol=tol).solver.name for tol in TOLS]
        taken.append([METHODS.index(name) for name in each])
        times.append([[seconds(problem, s, tol) for s in METHODS] for tol in TOLS])
    return np.array(times), np.array(taken)


def lines_of(kind, times, taken):
    """Lines of the table: what auto takes, and each method alone."""
    picks = {"as auto": taken, **{s: 0 * taken + k for k, s in enumerate(METHODS)}}
    for key, pick in picks.items():
        own = np.take_along_axis(times, pick[:, :, np.newaxis], 2)[:, :, 0]
        over = own / times.min(axis=2)
        mean = np.exp(np.log(over).mean(axis=0))
        said = zip(mean, np.quantile(over, 0.95, axis=0), over.max(axis=0), strict=True)
        cells = (f"{a:.2f}, {b:.2f}, {c:.3g}" for a, b, c in said)
        yield f"{kind:10}{key:22}" + "".join(f"{cell:>18}" for cell in cells)


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
    for kind in ("targets", "classes"):
        rng = np.random.default_rng(options.seed)
        lines += lines_of(kind, *measured(rng, kind == "classes", options.problems))
    print("\n".join(lines))
    (options.output / "descent_or_inside.txt").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
