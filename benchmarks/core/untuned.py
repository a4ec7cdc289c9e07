"""Constants of solvers that were chosen, not tuned: what others in their place cost.

Each line: a module, a constant and its value; then other values, and CPU seconds of one
thread with these over those with the value that is kept, of each problem: the least and
the most of the ratios. Turns alternate, and each time is the least of some. "-": some
problem was not solved.
"""

import argparse
import functools
import importlib
import time
from typing import Any, NamedTuple

import numpy as np
from sklearn.datasets import load_breast_cancer, load_digits
from sklearn.preprocessing import StandardScaler

from benchmarks.core.constants import changed
from benchmarks.datasets import DATASETS
from widemargin import EnclosingBall, Kernel, Problem, solve
from widemargin.losses.norms import BudgetL2, L2Norm
from widemargin.solvers import IRWLS, CoreVector, FrankWolfe
from widemargin.system.threads import ONE_BLAS_THREAD


class Constant(NamedTuple):
    """A constant, other values of it, and the problems that it matters for."""

    module: str
    name: str
    others: tuple[Any, ...]
    problems: str


KERNEL, LINEAR = "solvers.kernel.", "solvers.linear."
CONSTANTS = (
    Constant(KERNEL + "core_vector", "INNER_SHARE", (0.03, 0.3), "core_vector"),
    Constant(KERNEL + "reweighted", "MOST_PASSES", (30, 120), "irwls"),
    Constant(KERNEL + "reweighted", "SETTLED", (0.1, 0.5), "irwls"),
    Constant(KERNEL + "reweighted", "SHARPEST", (3.0, 30.0), "irwls"),
    Constant(KERNEL + "reweighted", "ROOM", (5.0, 20.0), "irwls"),
    Constant(KERNEL + "reweighted", "LONGEST", (2.0, 50.0), "irwls"),
    Constant(KERNEL + "reweighted", "NOTHING", (1e-13, 1e-11), "irwls"),
    Constant(KERNEL + "reweighted", "SHARE", (0.01, 0.1), "irwls"),
    Constant(KERNEL + "pairs_first", "FAILURES", (1, 10), "pairs"),
    Constant(KERNEL + "working_set", "MOST_STEPS", (25, 100), "pairs"),
    Constant(KERNEL + "selection", "REFRESH_FACTOR", (1e-5, 1e-3), "pairs"),
    Constant(KERNEL + "selection", "REFRESH_EVERY", (50, 200), "pairs"),
    Constant(KERNEL + "selection", "ROUNDING_SHARE", (0.03, 0.3), "pairs"),
    Constant(KERNEL + "selection", "UNSOLVED", (1, 4), "pairs"),
    Constant("problems.kernel", "NEAR", (1e-4, 1e-2), "pairs"),
    Constant("problems.kernel", "COARSE", (1e-3, 1e-1), "pairs"),
    Constant(KERNEL + "frank_wolfe", "FURTHER", (0.03, 0.3), "frank_wolfe"),
    Constant(KERNEL + "frank_wolfe", "LOOK", (1 << 21, 1 << 25), "frank_wolfe"),
    Constant(KERNEL + "frank_wolfe", "DENSE", (0.25, 0.75), "sampled"),
    Constant(KERNEL + "simplex", "TOGETHER", (4, 16), "frank_wolfe"),
    Constant(KERNEL + "coreset", "LOOKS", (2, 8), "sampled"),
    Constant(KERNEL + "budget", "FIRST", (0.03, 0.3), "norm"),
    Constant(KERNEL + "budget", "SHARE", (0.1, 0.5), "norm"),
    Constant(KERNEL + "budget", "LEAST", (1e-15, 1e-13), "norm"),
    Constant(KERNEL + "budget", "LEAST_CHANGE", (2.0, 8.0), "norm"),
    Constant(KERNEL + "budget", "MOST_CHANGE", (8.0, 32.0), "norm"),
    Constant(KERNEL + "budget", "INSIDE", (0.02, 0.1), "norm"),
    Constant(KERNEL + "budget", "MOST_WAIT", (10, 50), "norm"),
    Constant(KERNEL + "budget", "OBJECTIVE", (1e-15, 1e-13), "norm"),
    Constant(KERNEL + "budget", "SURE", (2.0, 10.0), "cap"),
    Constant(KERNEL + "enclosing_ball", "REFRESH", (5_000, 80_000), "ball"),
    Constant(KERNEL + "enclosing_ball", "PATIENCE", (2, 6), "ball"),
    Constant(KERNEL + "enclosing_ball", "PROGRESS", (1e-4, 1e-2), "ball"),
    Constant("problems.ball", "SAMPLE", (64, 1024), "ball"),
    Constant(LINEAR + "interior_point", "RESTORE", (0.03, 0.3), "interior_point"),
    Constant(LINEAR + "coordinate_descent", "WRONG", (3.0, 30.0), "descent"),
    Constant(LINEAR + "normal_equations", "DUAL_ROWS", (600, 2400), "wide"),
    Constant(LINEAR + "normal_equations", "DUAL_STEPS", (10, 40), "wide"),
    Constant(LINEAR + "newton", "CG_TOL", (3e-3, 3e-2), "newton"),
    Constant(LINEAR + "newton", "CG_STEPS", (250, 1000), "newton"),
    Constant(LINEAR + "newton", "FREE_CURVATURE", (1e-10, 1e-8), "newton"),
    Constant("problems.linear", "CLEAR", (10.0, 1000.0), "descent"),
    Constant("solvers.driver.driver", "PROGRESS", (0.8, 0.95), "pairs"),
)


@functools.cache
def data(name, folder):
    """Rows and labels, at most 3,000 rows of a set in a folder."""
    if name == "breast_cancer":
        X, y = load_breast_cancer(return_X_y=True)
        return StandardScaler().fit_transform(X), 2.0 * y - 1.0
    if name == "digits":
        X, y = load_digits(return_X_y=True)
        return X / 16.0, np.where(y % 2, 1.0, -1.0)
    if name == "wide":
        rng = np.random.default_rng(0)
        X = rng.standard_normal((1500, 5000))
        return X, np.sign(X[:, :20].sum(axis=1) + rng.standard_normal(1500))
    X, y = DATASETS[name](folder)
    some = np.sort(np.random.default_rng(0).permutation(len(y))[:3000])
    return X[some], y[some]


# Set, C and gamma.
KERNELS = (
    ("breast_cancer", 100.0, 0.03),
    ("digits", 10.0, 0.05),
    ("a9a", 10.0, 0.05),
    ("ijcnn1", 8.0, 2.0),
)
LINEARS = (("breast_cancer", 1.0), ("digits", 10.0), ("a9a", 1.0), ("a9a", 0.01))


def _machines(solver, loss, tol, folder, sets=KERNELS):
    intercept = "free" if isinstance(solver, IRWLS) else "penalized"
    for name, C, gamma in sets:
        X, y = data(name, folder)
        kernel = Kernel("rbf", gamma=gamma)
        problem = Problem(X, y, C, loss, intercept, kernel=kernel)
        yield lambda problem=problem: solve(problem, solver, tol=tol, time_limit=60)


def _planes(solver, loss, intercept, tol, folder, sets=LINEARS):
    for name, C in sets:
        problem = Problem(*data(name, folder), C, loss, intercept)
        yield lambda problem=problem: solve(problem, solver, tol=tol, time_limit=60)


def _norms(folder, norm_of=lambda m: L2Norm()):
    for name, C, gamma in KERNELS:
        X, y = data(name, folder)
        kernel = Kernel("rbf", gamma=gamma)
        problem = Problem(X, y, C, norm=norm_of(len(y)), kernel=kernel)
        yield lambda problem=problem: solve(problem, tol=1e-5, time_limit=60)


def _balls(folder):
    for name, _, gamma in KERNELS:
        X, _ = data(name, folder)
        for C in (None, 10.0):
            ball = EnclosingBall(gamma=gamma, C=C, tol=1e-6)
            yield lambda ball=ball, X=X: ball.fit(X).status_


PROBLEMS = {
    "core_vector": lambda f: _machines(
        CoreVector(), "squared_hinge", 1e-4, f, KERNELS[:2]
    ),
    "frank_wolfe": lambda f: _machines(FrankWolfe(), "squared_hinge", 1e-4, f),
    "sampled": lambda f: _machines(FrankWolfe(sample=59), "squared_hinge", 1e-2, f),
    "irwls": lambda f: _machines(IRWLS(inner="irwls"), "hinge", 1e-6, f),
    "pairs": lambda f: _machines(IRWLS(), "hinge", 1e-8, f),
    "norm": _norms,
    "cap": lambda f: _norms(f, lambda m: BudgetL2(budget=m / 10)),
    "ball": _balls,
    "interior_point": lambda f: _planes("interior_point", "hinge", "free", 1e-8, f),
    "wide": lambda f: _planes(
        "interior_point", "hinge", "free", 1e-6, f, [("wide", 1.0), ("wide", 1e-3)]
    ),
    "descent": lambda f: _planes("coordinate_descent", "hinge", "penalized", 1e-4, f),
    "newton": lambda f: _planes("active_set", "squared_hinge", "free", 1e-6, f),
}


def main():
    """One line for each constant."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", help="folder of further sets")
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("words", nargs="*", help="of modules and constants")
    options = parser.parse_args()
    with ONE_BLAS_THREAD:
        for constant in CONSTANTS:
            name = f"{constant.module} {constant.name}"
            if not options.words or any(word in name for word in options.words):
                print(f"{name:44}", *_ratios(constant, options), sep="  ", flush=True)


def _ratios(constant, options):
    """What is told of a constant."""
    module = importlib.import_module(f"widemargin.{constant.module}")
    home = vars(module)
    kept = home[constant.name]
    runs = list(PROBLEMS[constant.problems](options.data))
    values = (kept, *constant.others)
    least = np.full((len(values), len(runs)), np.inf)
    for run in runs:  # the first run of all reads and imports more
        run()
    for _ in range(options.turns):
        for k, value in enumerate(values):
            with changed({constant.name: value}, module):
                least[k] = np.minimum(least[k], [_seconds(run) for run in runs])
    told = [f"{kept:g}"]
    for value, seconds in zip(constant.others, least[1:] / least[0], strict=True):
        solved = np.isfinite(seconds).all()
        said = f"{seconds.min():.2f}-{seconds.max():.2f}" if solved else "-"
        told.append(f"{value:g}: {said}")
    return told


def _seconds(run):
    """CPU seconds of a run; infinity where it does not solve its problem."""
    begin = time.process_time()
    found = run()
    taken = time.process_time() - begin
    return taken if getattr(found, "status", found) == "solved" else np.inf


if __name__ == "__main__":
    main()
