"""Coordinate descent, Newton's method, and what "auto" makes of both.

Draws linear problems: sparse rows of 257 to 1,500 columns, of more, of more columns
than rows, and dense ones; the hinge and its square; classes and targets with four
amounts of noise; both intercepts that bound a path; kappa (mean C |z|^2) from 0.1 to
10,000; gaps of 1e-2, 1e-3 and 1e-4. Each is solved by coordinate descent, by the Newton
method that "auto" has for it, and by "auto". Processor seconds; what is not solved in
some seconds counts as these. Says how many times as long as the better method each
takes: the geometric mean, the 95th percentile, the largest, and the sums. Prints a
table and writes OUTPUT/descent_or_newton.txt.
"""

import argparse
import functools
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
from widemargin.solvers.linear import rules

TOLS, NOISES, INTERCEPTS = (
    (1e-2, 1e-3, 1e-4),
    (0.0, 0.1, 0.3, 1.0),
    ("free", "penalized"),
)
KAPPAS, ENTRIES, PATIENCE = (0.1, 10_000.0), (5, 80), 5.0
METHODS = "auto", "coordinate_descent", "Newton's method"
HEAD = f"{'':52}" + "".join(f"{name:>28}" for name in METHODS)


class Shape(NamedTuple):
    """Which rows are drawn: their columns, and the rows of a column."""

    name: str
    columns: tuple[float, float]
    rows: tuple[float, float]
    most_stored: int
    is_sparse: bool = True


SHAPES = (
    Shape("sparse, up to 1,500 columns", (257, 1500), (0.5, 60), 1_500_000),
    Shape("sparse, more columns", (1501, 12_000), (0.7, 30), 1_500_000),
    Shape("sparse, more columns than rows", (1501, 40_000), (0.03, 0.7), 1_500_000),
    Shape("dense", (10, 1500), (2, 200), 4_000_000, is_sparse=False),
)


def between(rng, ends):
    """A number whose logarithm is drawn evenly."""
    return float(np.exp(rng.uniform(*np.log(ends))))


def scattered(rng, m, n, count):
    """About so many ones a row, anywhere."""
    columns = rng.integers(0, n, size=(m, count)).ravel()
    rows = np.repeat(np.arange(m), count)
    X = sparse.csr_matrix((np.ones(m * count), (rows, columns)), shape=(m, n))
    X.sum_duplicates()
    X.data[:] = 1.0
    return X


def dense(rng, m, n):
    """Normal entries, with a spectrum that falls in half of the draws."""
    X = rng.normal(size=(m, n))
    if rng.random() < 0.5:
        return X
    basis = np.linalg.qr(rng.normal(size=(n, n)))[0]
    return X @ (basis * np.arange(1.0, n + 1.0) ** -rng.random()) * np.sqrt(n)


def drawn_rows(rng, shape):
    """Rows of a shape."""
    while True:
        n, count = int(between(rng, shape.columns)), int(between(rng, ENTRIES))
        m = int(n * between(rng, shape.rows))
        if m >= 300 and m * (count if shape.is_sparse else n) <= shape.most_stored:
            break
    if not shape.is_sparse:
        return dense(rng, m, n)
    return (
        scattered(rng, m, n, count) if rng.random() < 0.5 else documents(m, n, count)[0]
    )


def drawn(rng, shape, loss, is_class):
    """What makes a problem, always the same, and the gap to solve it to."""
    X = drawn_rows(rng, shape)
    s = X @ rng.normal(size=X.shape[1])
    s /= s.std()
    t = s + rng.choice(NOISES) * rng.normal(size=len(s))
    level, intercept = np.quantile(t, rng.uniform(0.5, 0.97)), rng.choice(INTERCEPTS)

    def made(C):
        if is_class:
            return Problem(X, np.where(t > level, 1.0, -1.0), C, loss, str(intercept))
        return regression_problem(X, t, C, EPSILON, loss, str(intercept))

    C = between(rng, KAPPAS) / made(1.0).kappa
    return functools.partial(made, C), float(rng.choice(TOLS))


def seconds(make, method, tol):
    """Processor seconds of a solve, of a problem of which nothing is known yet."""
    problem = make()
    begin = time.process_time()
    found = solve(problem, method, tol=tol, time_limit=PATIENCE)
    spent = time.process_time() - begin
    return spent if found.status == "solved" else max(spent, PATIENCE)


def newton(problem, tol):
    """The Newton method that "auto" has for a problem."""
    facts = rules.Facts.of(problem, tol)
    return rules.newton_for(facts).solver.name


def measured(rng, shape, loss, is_class, problems):
    """Seconds of the three (problems, 3)."""
    times = []
    for _ in range(problems):
        make, tol = drawn(rng, shape, loss, is_class)
        methods = "auto", "coordinate_descent", newton(make(), tol)
        times.append([seconds(make, method, tol) for method in methods])
    return np.array(times)


def line_of(name, times):
    """A line of the table."""
    best = times[:, 1:].min(axis=1)
    over = times / best[:, np.newaxis]
    mean, sums = np.exp(np.log(over).mean(axis=0)), times.sum(axis=0) / best.sum()
    tail = np.quantile(over, 0.95, axis=0)
    said = zip(mean, tail, over.max(axis=0), sums, strict=True)
    cells = (f"{a:.2f}, {b:.2f}, {c:.3g}, {d:.2f}" for a, b, c, d in said)
    return f"{name:52}" + "".join(f"{cell:>28}" for cell in cells)


def main():
    """Measure all kinds of problems."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--problems", type=int, default=60)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--output", type=Path, default=RESULTS / "linear")
    options = parser.parse_args()
    options.output.mkdir(parents=True, exist_ok=True)
    here = machine({})
    lines = [f"{here['cpu']}; {here['versions']}; {options.problems} each", HEAD]
    kinds = itertools.product(SHAPES, ("hinge", "squared_hinge"), (True, False))
    for shape, loss, is_class in kinds:
        rng = np.random.default_rng(options.seed)
        times = measured(rng, shape, loss, is_class, options.problems)
        kind = f"{loss.replace('_hinge', '')}, {'classes' if is_class else 'targets'}"
        lines.append(line_of(f"{shape.name}, {kind}", times))
        print(lines[-1], flush=True)
    lines.append("times the better of descent and Newton: mean, 95 %, largest, sums")
    (options.output / "descent_or_newton.txt").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
