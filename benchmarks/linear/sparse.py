"""What `auto` chooses for sparse rows of many columns, beside either solver alone.

Processor seconds of one solve, medians of rounds in which all take turns: by "auto",
by coordinate descent, and by the Newton method that takes over from it (the active set
method for the squared loss, the augmented Lagrangian for the other). The last column is
auto's time over the least of both: what its rules lose. Targets and classes (a target
above its median) of scattered entries of several widths, of `documents`, and of Reuters
with the logarithm of a row's length. A solve that was not done in the limit has a
star. Writes OUTPUT/sparse.txt.
"""

import argparse
import time
from pathlib import Path
from statistics import median

import numpy as np
from scipy import sparse

from benchmarks.datasets import DATASETS
from benchmarks.environment import RESULTS, machine
from benchmarks.linear.regression import EPSILON, documents, timed
from widemargin import Problem, solve
from widemargin.problems.regression import regression_problem

NEWTON = {"squared_hinge": "active_set", "hinge": "augmented_lagrangian"}


def scattered(m, n, density):
    """Uniform numbers at random places, a linear target with noise."""
    rng = np.random.default_rng(0)
    X = sparse.random(m, n, density=density, format="csr", random_state=0)
    t = X @ rng.normal(size=n)
    return X, (t - t.mean()) / t.std() + 0.3 * rng.normal(size=m)


def ones(m, n, count):
    """So many ones a row at random places, a linear target with noise."""
    rng = np.random.default_rng(0)
    X = sparse.random(m, n, density=count / n, format="csr", random_state=0)
    X.data[:] = 1.0
    t = X @ rng.normal(size=n)
    return X, (t - t.mean()) / t.std() + 0.3 * rng.normal(size=m)


def lengths(folder):
    """Reuters, and how many words a row has."""
    X, _ = DATASETS["reuters"](folder)
    X = sparse.csr_matrix(X)
    t = np.log(1.0 + np.diff(X.indptr))
    return X, (t - t.mean()) / t.std()


SETS = {
    "ones 3,000 x 400": lambda _: ones(3000, 400, 10),
    "ones 3,000 x 1,000": lambda _: ones(3000, 1000, 10),
    "scattered 2,000 x 3,000": lambda _: scattered(2000, 3000, 0.01),
    "scattered 6,000 x 8,000": lambda _: scattered(6000, 8000, 0.004),
    "scattered 5,000 x 20,000": lambda _: scattered(5000, 20_000, 0.001),
    "scattered 5,000 x 2,000": lambda _: scattered(5000, 2000, 0.02),
    "scattered 20,000 x 2,000": lambda _: scattered(20_000, 2000, 0.005),
    "documents 5,000 x 20,000": lambda _: documents(5000, 20_000, 60),
    "reuters, lengths": lengths,
}


def made(kind, X, t, C, loss):
    """The problem of a target, or of the classes above and below its median."""
    if kind == "targets":
        return regression_problem(X, t, C, EPSILON, loss, "penalized")
    return Problem(X, np.where(t > np.median(t), 1.0, -1.0), C, loss, "penalized")


def solved(problem, solver, options):
    """The solution, as far as it came in the limit of processor seconds."""
    end = time.process_time() + options.limit

    def is_late(_):
        return time.process_time() > end

    return solve(problem, solver, tol=options.tol, callback=is_late)


def row(name, X, t, kind, loss, C, options):
    """A line of the table."""
    solvers, times, late = ("auto", "coordinate_descent", NEWTON[loss]), [], set()
    for _ in range(options.rounds):
        times.append([])
        for solver in solvers:
            problem = made(kind, X, t, C, loss)
            found, seconds = timed(solved, problem, solver, options)
            times[-1].append(seconds)
            if solver == "auto":
                by = found.solver
            if found.status != "solved":
                late.add(solver)
    each = [median(column) for column in zip(*times, strict=True)]
    shown = "".join(
        f"{seconds:>10.4f}{'*' if solver in late else ' '}"
        for solver, seconds in zip(solvers, each, strict=True)
    )
    return (
        f"{name:26}{kind:9}{loss:15}{C:>6g}{problem.kappa:>9.1f}{shown}"
        f"{each[0] / min(each[1:]):>7.2f}  {by}"
    )


def main():
    """Measure all problems."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add = parser.add_argument
    add("--data", help="folder of reuters")
    add("--sets", nargs="*", default=list(SETS), choices=list(SETS))
    add("--kinds", nargs="*", default=["targets", "classes"])
    add("--losses", nargs="*", default=list(NEWTON), choices=list(NEWTON))
    add("--C", type=float, nargs="*", default=[1.0, 10.0, 100.0])
    add("--tol", type=float, default=1e-4)
    add("--rounds", type=int, default=3)
    add("--limit", type=float, default=2.0, help="processor seconds of a solve")
    add("--output", type=Path, default=RESULTS / "linear")
    options = parser.parse_args()
    here = machine({})
    head = f"{'rows':26}{'':9}{'loss':15}{'C':>6}{'kappa':>9}"
    head += f"{'auto':>11}{'descent':>11}{'newton':>11}{'lost':>7}  auto by"
    lines = [f"{here['cpu']}; {here['versions']}; tol {options.tol:g}", head]
    print("\n".join(lines))
    for name in options.sets:
        X, t = SETS[name](options.data)
        for kind in options.kinds:
            for loss in options.losses:
                for C in options.C:
                    lines.append(row(name, X, t, kind, loss, C, options))
                    print(lines[-1], flush=True)
    (options.output / "sparse.txt").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
