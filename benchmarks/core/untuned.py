"""Constants that were chosen, not tuned: what others in their place cost.

Each line: a module, a constant and its value; then other values, and CPU seconds of one
thread with these over those with the value that is kept, of each problem: the least and
the most of the ratios. Turns alternate, and each time is the least of some. "-": some
problem was not solved. Of problems for two threads it is seconds by the clock.
"""

import argparse
import functools
import importlib
import tempfile
import time
import warnings
from contextlib import nullcontext
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from sklearn.datasets import (
    load_breast_cancer,
    load_diabetes,
    load_digits,
    make_classification,
    make_friedman1,
)
from sklearn.preprocessing import StandardScaler

from benchmarks.core.constants import changed
from benchmarks.datasets import DATASETS
from widemargin import (
    SVC,
    EnclosingBall,
    Kernel,
    LinearSVC,
    NuSVC,
    Problem,
    open_rows,
    solve,
)
from widemargin.data.memory import as_rows
from widemargin.losses.mahalanobis import Mahalanobis
from widemargin.losses.norms import BudgetL2, L2Norm
from widemargin.problems.nu import nu_problem
from widemargin.problems.regression import regression_problem
from widemargin.reduction.reduce import reduce
from widemargin.solvers import IRWLS, CoreVector, FrankWolfe
from widemargin.system.threads import ONE_BLAS_THREAD


class Constant(NamedTuple):
    """A constant, other values of it, and the problems that it matters for."""

    module: str
    name: str
    others: tuple[Any, ...]
    problems: str


KERNEL, LINEAR = "solvers.kernel.", "solvers.linear."
STORED = "data.outofcore.stored"
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
    Constant(KERNEL + "small_problem", "MOST_STEPS", (25, 100), "pairs"),
    Constant(KERNEL + "selection", "REFRESH_FACTOR", (1e-5, 1e-3), "pairs"),
    Constant(KERNEL + "selection", "REFRESH_EVERY", (50, 200), "pairs"),
    Constant(KERNEL + "selection", "ROUNDING_SHARE", (0.03, 0.3), "pairs"),
    Constant(KERNEL + "selection", "UNSOLVED", (1, 4), "pairs"),
    Constant(KERNEL + "selection", "AIM", (0.05, 0.5), "outliers"),
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
    Constant(KERNEL + "ball_looks", "REFRESH", (5_000, 80_000), "ball"),
    Constant(KERNEL + "ball_looks", "PATIENCE", (2, 6), "ball"),
    Constant(KERNEL + "ball_looks", "PROGRESS", (1e-4, 1e-2), "ball"),
    Constant("problems.ball", "SAMPLE", (64, 1024), "ball"),
    Constant(LINEAR + "interior_point", "RESTORE", (0.03, 0.3), "interior_point"),
    Constant(LINEAR + "descent", "WRONG", (3.0, 30.0), "descent"),
    Constant(LINEAR + "normal_equations", "DUAL_ROWS", (600, 2400), "wide"),
    Constant(LINEAR + "normal_equations", "DUAL_STEPS", (10, 40), "wide"),
    Constant(LINEAR + "newton", "CG_MOST_TOL", (3e-2, 0.3), "newton"),
    Constant(LINEAR + "newton", "CG_STEPS", (250, 1000), "newton"),
    Constant(LINEAR + "newton", "FREE_CURVATURE", (1e-10, 1e-8), "newton"),
    Constant(LINEAR + "near_rows", "BEYOND", ((1e-3,), (0.1, 1e-4)), "many rows"),
    Constant(LINEAR + "near_rows", "FURTHER", (1.0, 10.0), "many rows"),
    Constant(LINEAR + "near_rows", "MOST", (0.0, 0.2), "many rows"),
    Constant("problems.linear", "CLEAR", (10.0, 1000.0), "descent"),
    Constant("solvers.driver.driver", "PROGRESS", (0.8, 0.95), "pairs"),
    Constant(KERNEL + "faces", "MOST_STEPS", (2, 8), "nu"),
    Constant(KERNEL + "faces", "FEW_ROWS", (64, 1024), "nu"),
    Constant(KERNEL + "faces", "FEW_STEPS", (3, 30), "nu"),
    Constant("problems.mass", "USUAL", (1e-3, 1e-1), "nu"),
    Constant(KERNEL + "frank_wolfe", "AT_ONCE", (1 << 12, 1 << 13), "many sampled"),
    Constant(KERNEL + "working_set", "SHARP", (1e-4, 1e-2), "regression"),
    Constant(KERNEL + "budget", "STRIDE", (10, 40), "gradients"),
    Constant(KERNEL + "batch", "SHARED_WORK", (15_000, 240_000), "pairs of classes"),
    Constant("kernels.given", "COST", (2.0, 32.0), "given pairs"),
    Constant(LINEAR + "batch", "SHARED_ENTRIES", (25_000, 400_000), "classes"),
    Constant(LINEAR + "rules", "MOST_UPDATES", (30.0, 300.0), "first descent"),
    Constant(LINEAR + "rules", "MOST_SWEEPS", (130, 1200), "large C"),
    Constant(LINEAR + "rules", "WIDE_UPDATES", (100.0, 300.0), "text"),
    Constant(LINEAR + "rules", "WIDE_SWEEPS", (400, 3000), "text"),
    Constant("problems.conditioning", "MERGED_ROWS", (2000, 50_000), "equal rows"),
    Constant("problems.conditioning", "MERGE_SAMPLE", (1024, 8192), "equal rows"),
    Constant("problems.conditioning", "MERGE_SHARE", (0.1, 0.6), "equal rows"),
    Constant("problems.conditioning", "KERNEL_ROWS", (300, 4000), "equal with kernel"),
    Constant("problems.conditioning", "KERNEL_SHARE", (0.03, 0.3), "equal with kernel"),
    Constant(KERNEL + "low_rank", "LEAST_RANK", (10.0, 250.0), "low rank"),
    Constant(KERNEL + "low_rank", "HOPELESS", (0.0, 1e-9, 1e-5), "no margin"),
    Constant(KERNEL + "hulls", "FEW", (100, 1000), "no margin"),
    Constant(KERNEL + "hulls", "RESIDUAL", (10.0, 1e3), "hulls"),
    Constant(KERNEL + "hulls", "LIGHT", (1e-8, 1e-4, 1.0), "hulls"),
    Constant(KERNEL + "hulls", "SLOW", (0.25, 0.9), "hulls"),
    Constant(KERNEL + "hulls", "ROOMY", (2, 6), "hulls"),
    Constant(KERNEL + "inner_points", "IMPROVED", (1, 3), "hulls"),
    Constant(KERNEL + "batch", "FAR", (0.0, 1e4), "hulls"),
    Constant(KERNEL + "small_problem", "FURTHER", (1, 16), "pairs"),
    Constant("kernels.core_engine", "KEPT_SAMPLES", (0, 1 << 30), "wide blocks"),
    Constant("kernels.core_engine", "ROUGH", (256.0, 65536.0), "outliers"),
    Constant(KERNEL + "low_rank", "WIDER", (1, 400, 1600), "plane"),
    Constant(
        "solvers.linear.rules", "SPARSE_UPDATES", (3.0, 6.0, 24.0, 48.0), "scattered"
    ),
    Constant(
        "solvers.linear.rules", "SQUARED_BORDER", (1.0, 2.0, 8.0, 16.0), "scattered"
    ),
    Constant(LINEAR + "descent", "EARLY_MARK", (2.5, 5.0, 20.0, 40.0), "scattered"),
    Constant(LINEAR + "coordinate_descent", "FINISH_GAP", (1e-4, 1e-2), "last digits"),
    Constant("reduction.restricted", "NEW_ROW", (3e-6, 3e-4), "reduced"),
    Constant(STORED, "BLOCK_SHARE", (0.1, 0.25), "stored"),
    Constant(STORED, "STATE_SHARE", (0.2, 0.6), "stored"),
    Constant(STORED, "COPY_SHARE", (0.05, 0.25), "stored"),
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


def _nu(folder):
    """Machines with a sum of alpha, also where K is nearly singular."""
    for name, nu, gamma in (
        ("breast_cancer", 0.1, 1e-4),
        ("breast_cancer", 0.3, 0.03),
        ("digits", 0.05, 0.05),
        ("digits", 0.3, 1e-4),
        ("ijcnn1", 0.1, 2.0),
    ):
        X, y = data(name, folder)
        for labels in (y, np.ones(len(y))):
            kernel = Kernel("rbf", gamma=gamma)
            problem = nu_problem(as_rows(X), labels, 1.0, nu, kernel=kernel)
            yield lambda problem=problem: solve(problem, tol=1e-8, time_limit=60)


def _regressions(folder):
    """Kernel machines whose samples are two rows."""
    sets = (
        load_diabetes(return_X_y=True, scaled=True),
        make_friedman1(2000, noise=1.0, random_state=0),
        (load_digits().data / 16.0, load_digits().target),
    )
    for X, target in sets:
        target = (target - target.mean()) / target.std()
        for C in (1.0, 100.0):
            kernel = Kernel("rbf", gamma=1.0 / X.shape[1] / X.var())
            problem = regression_problem(X, target, C, 0.1, kernel=kernel)
            yield lambda problem=problem: solve(problem, IRWLS(), tol=1e-7)


def _gradients(folder):
    """The norm with a matrix, of 40 rows."""
    X, y = data("breast_cancer", folder)
    for C, gamma in ((1.0, 0.03), (100.0, 0.03), (10.0, 0.1)):
        few = np.append(np.flatnonzero(y > 0)[:20], np.flatnonzero(y < 0)[:20])
        A = np.random.default_rng(0).normal(size=(40, 40))
        norm = Mahalanobis(M=np.eye(40) + A @ A.T / 40, nonneg_slack=False)
        kernel = Kernel("rbf", gamma=gamma)
        problem = Problem(X[few], y[few], C, norm=norm, kernel=kernel)
        yield lambda problem=problem: solve(problem, tol=1e-5, time_limit=60)


def _many_sampled(folder):
    """Some thousand rows, of which a step reads few."""
    rng = np.random.default_rng(0)
    for m in (5000, 10_000):
        X = rng.normal(size=(m, 10))
        y = np.where((X**2).sum(axis=1) + rng.normal(size=m) > 9.5, 1.0, -1.0)
        kernel = Kernel("rbf", gamma=0.1)
        problem = Problem(X, y, 10.0, "squared_hinge", "penalized", kernel=kernel)
        solver = FrankWolfe(sample=59)
        yield lambda problem=problem, solver=solver: solve(problem, solver, tol=0.3)


def _classes(fit, sizes):
    """Fits of so many rows of digits, of as many classes."""
    X, y = load_digits(return_X_y=True)
    for k, m in sizes:
        own = np.flatnonzero(y < k)[:m]

        def run(X=X[own] / 16.0, y=y[own]):
            for _ in range(20):
                fitted = fit(X, y)
            return fitted.status_

        yield run


def _given_pairs(folder):
    """The same of kernel values that are given."""
    sizes = ((3, 200), (3, 400), (10, 100), (10, 200), (10, 400))
    X, y = load_digits(return_X_y=True)
    for k, m in sizes:
        own = np.flatnonzero(y < k)[:m]
        rows = X[own] / 16.0
        norms = np.square(rows).sum(axis=1)
        K = np.exp(-0.05 * (norms[:, np.newaxis] + norms - 2.0 * rows @ rows.T))
        K = 0.5 * (K + K.T)

        def run(K=K, y=y[own]):
            for _ in range(20):
                fitted = SVC(kernel="precomputed", n_jobs=2).fit(K, y)
            return fitted.status_

        yield run


def _auto(C_of, sizes, tol=1e-4, loss="hinge"):
    """Linear problems that are drawn, by the solver that is chosen."""
    for m, n in sizes:
        X, y = make_classification(
            m, n, n_informative=n // 2, n_redundant=0, flip_y=0.1, random_state=0
        )
        X, y = StandardScaler().fit_transform(X), 2.0 * y - 1.0
        for C in C_of(n):
            problem = Problem(X, y, C, loss, "penalized")
            yield lambda problem=problem: solve(problem, tol=tol, time_limit=60)


def _text(folder):
    """Regressions with many sparse columns, by the solver that is chosen."""
    documents = importlib.import_module("benchmarks.linear.regression").documents
    X, t = documents(5000, 20_000, 60)
    for C in (10.0, 100.0, 1e3):
        problem = regression_problem(as_rows(X), t, C, 0.1, "hinge", "penalized")
        for tol in (1e-2, 1e-4):

            def run(problem=problem, tol=tol):
                return solve(problem, tol=tol, time_limit=10)

            yield run


def _scattered(folder):
    """Classes and targets with the squared loss, of entries scattered over columns."""
    rng = np.random.default_rng(0)
    for m, n in ((2000, 4000), (6000, 2000)):
        X = sparse.random_array((m, n), density=15 / n, rng=rng, format="csr")
        X.data[:] = rng.normal(size=X.nnz)
        t = X @ rng.normal(size=n) + rng.normal(size=m)
        rows, y, t = as_rows(X, n_jobs=1), np.where(t > 0.0, 1.0, -1.0), t / t.std()
        for C in (1.0, 30.0, 100.0):
            for problem in (
                Problem(rows, y, C, "squared_hinge", "penalized"),
                regression_problem(rows, t, C, 0.1, "squared_hinge", "penalized"),
            ):
                yield lambda problem=problem: solve(problem, tol=1e-4, time_limit=10)


def _equal_rows(folder):
    """Rows of which a share equals another."""
    rng = np.random.default_rng(0)
    for m in (5000, 30_000):
        for share in (0.2, 0.5, 0.8):
            base = rng.normal(size=(int((1.0 - share) * m), 20))
            t = base @ rng.normal(size=20) + 2.0 * rng.normal(size=len(base))
            which = rng.integers(len(base), size=m)
            which[: len(base)] = np.arange(len(base))
            X, y = base[which], np.where(t > 0, 1.0, -1.0)[which]
            for loss in ("hinge", "squared_hinge"):

                def run(X=X, y=y, loss=loss):
                    return solve(Problem(X, y, 1.0, loss), tol=1e-4)

                yield run


def _equal_with_kernel(folder):
    """The same with a kernel."""
    rng = np.random.default_rng(0)
    for m in (1000, 3000, 12_000):
        for share in (0.05, 0.2, 0.5):
            base = rng.normal(size=(int((1.0 - share) * m), 10))
            t = 2.0 * base[:, 0] + np.sin(2.0 * base[:, 1]) + rng.normal(size=len(base))
            which = np.append(np.arange(len(base)), rng.integers(len(base), size=m))[:m]
            X, kernel = as_rows(base[which]), Kernel("rbf", gamma=0.1)
            y = np.where(t > 0, 1.0, -1.0)[which]
            for problem in (
                Problem(X, y, kernel=kernel),
                nu_problem(X, np.ones(m), 1.0, 0.1, kernel=kernel),
            ):
                yield lambda problem=problem: solve(problem, tol=1e-4)


def _low_rank(folder):
    """Kernel matrices of low rank, with a small and a large C."""
    rng = np.random.default_rng(0)
    for m in (1500, 3000):
        y = np.where(rng.random(m) < 0.5, 1.0, -1.0)
        X = rng.normal(size=(m, 2)) + 1.2 * y[:, np.newaxis]
        for kernel in (Kernel("rbf", gamma=0.25), Kernel("poly", gamma=0.5, degree=2)):
            for C in (1.0, 100.0, 1000.0):
                problem = Problem(X, y, C, kernel=kernel)
                yield lambda problem=problem: solve(problem, IRWLS(), tol=1e-4)


def _no_margin(folder):
    """Two classes that overlap, with sums of alpha that leave no margin, or hardly."""
    rng = np.random.default_rng(0)
    for m in (500, 1000):
        y = np.where(rng.random(m) < 0.5, 1.0, -1.0)
        X = rng.normal(size=(m, 2)) + 0.7 * y[:, np.newaxis]
        for kernel in (Kernel("linear", 1.0), Kernel("rbf", gamma=0.1)):
            for nu in (0.2, 0.5):
                problem = nu_problem(as_rows(X), y, 1.0, nu, kernel=kernel)
                yield lambda problem=problem: solve(problem, tol=1e-4, time_limit=20)


def _hulls(folder):
    """Machines whose hulls meet, hardly meet, or hardly do not, by the batch engine."""
    rng = np.random.default_rng(0)
    # A distance of the classes, columns, gamma, and shares of errors.
    for m, apart, n, gamma, shares in (
        (1000, 0.0, 2, 0.5, (0.05, 0.2, 0.5)),
        (3000, 0.0, 2, 0.5, (0.05, 0.2)),
        (1000, 0.7, 2, 0.1, (0.2, 0.32)),
        (500, 0.7, 2, 0.1, (0.2, 0.24)),
        (1000, 0.0, 10, None, (0.05, 0.5)),
    ):
        y = np.where(rng.random(m) < 0.5, 1.0, -1.0)
        X = rng.normal(size=(m, n)) + apart * y[:, np.newaxis]
        kernel = {"gamma": gamma} if gamma else {"kernel": "linear"}
        for nu in shares:
            for tol in (1e-2, 1e-4):
                machine = NuSVC(nu=nu, tol=tol, time_limit=20, **kernel)

                def run(machine=machine, X=X, y=y):
                    with warnings.catch_warnings():
                        warnings.simplefilter("ignore")
                        return machine.fit(X, y).status_

                yield run


def _many_rows(folder):
    """The squared hinge of so many rows that a sample begins."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200_000, 8))
    y = np.where(X @ rng.normal(size=8) + rng.normal(size=len(X)) > 0.0, 1, -1)
    for C in (0.01, 1.0, 100.0):
        problem = Problem(X, y, C, "squared_hinge", "penalized")
        yield lambda problem=problem: solve(problem, "active_set", tol=1e-6)


def _wide_blocks(folder):
    """Working sets whose samples take more than a cache."""
    rng = np.random.default_rng(0)
    for n in (1000, 6000):
        X = rng.normal(size=(1500, n))
        y = np.sign(X[:, :20].sum(axis=1) + rng.normal(size=len(X)))
        problem = Problem(X, y, 1.0, kernel=Kernel("rbf", gamma=1.0 / n))
        yield lambda problem=problem: solve(problem, IRWLS(), tol=1e-3)


def _outliers(folder):
    """Gaussian kernels of rows of which some lie far away, for their gamma."""
    rng = np.random.default_rng(0)
    for far in (30.0, 100.0):
        X = rng.normal(size=(3000, 10))
        y = np.where((X**2).sum(axis=1) + rng.normal(size=len(X)) > 9.5, 1.0, -1.0)
        X[:10] *= far
        for C in (1.0, 100.0):
            problem = Problem(X, y, C, kernel=Kernel("rbf", gamma=0.1))
            yield lambda problem=problem: solve(problem, IRWLS(), tol=1e-4)


def _plane(folder):
    """Two Gaussians in the plane that overlap, with a large C."""
    rng = np.random.default_rng(0)
    for m in (2000, 4000):
        y = np.where(rng.random(m) < 0.5, 1.0, -1.0)
        X = rng.normal(size=(m, 2)) + 0.5 * y[:, np.newaxis]
        for gamma in (0.5, 1.0, 2.0, 10.0):
            problem = Problem(X, y, 1000.0, kernel=Kernel("rbf", gamma=gamma))
            yield lambda problem=problem: solve(problem, IRWLS(), tol=1e-4)


def _reduced(folder):
    """Cuts of kernel machines, each from one solution."""
    for name, C, gamma in KERNELS[1:]:
        X, y = data(name, folder)
        problem = Problem(X, y, C, kernel=Kernel("rbf", gamma=gamma))
        solution = solve(problem, tol=1e-3)
        for budget in (50, 200):

            def run(problem=problem, solution=solution, budget=budget):
                return reduce(problem, solution, budget).status

            yield run


def _stored(folder):
    """Rows in a file, with little memory."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(100_000, 32))
    y = np.where(X @ rng.normal(size=32) + 4.0 * rng.normal(size=len(X)) > 0, 1, -1)
    there = Path(tempfile.mkdtemp(prefix="untuned-"))
    np.save(there / "X-0.npy", X)
    np.save(there / "y-0.npy", y.astype(np.int8))
    for loss in ("squared_hinge", "hinge"):

        def run(loss=loss):
            rows = open_rows(there, memory_limit=24 << 20, n_jobs=1)
            return LinearSVC(loss=loss).fit(rows, rows.vector("label")).status_

        yield run


# Problems for two threads: by the clock.
SHARED = {
    "pairs of classes": lambda f: _classes(
        SVC(gamma=0.05, n_jobs=2).fit,
        ((3, 50), (3, 100), (3, 200), (3, 400), (10, 100), (10, 200)),
    ),
    "given pairs": _given_pairs,
    "classes": lambda f: _classes(
        LinearSVC(n_jobs=2).fit,
        ((3, 100), (3, 200), (3, 400), (10, 60), (10, 120), (10, 300)),
    ),
}
PROBLEMS = SHARED | {
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
    "nu": _nu,
    "regression": _regressions,
    "gradients": _gradients,
    "many sampled": _many_sampled,
    "tall": lambda f: _auto(
        lambda n: (0.1 / n, 1.0 / n), ((20_000, 20), (50_000, 10), (60_000, 8))
    ),
    "first descent": lambda f: _auto(
        lambda n: (1.0 / n,), ((3000, 30), (3000, 200), (10_000, 20)), 1e-6
    ),
    "large C": lambda f: _auto(
        lambda n: (1e2, 1e5), ((2000, 10), (3000, 50), (1000, 300)), 1e-8
    ),
    "text": _text,
    "scattered": _scattered,
    "equal rows": _equal_rows,
    "equal with kernel": _equal_with_kernel,
    "low rank": _low_rank,
    "plane": _plane,
    "no margin": _no_margin,
    "hulls": _hulls,
    "many rows": _many_rows,
    "wide blocks": _wide_blocks,
    "outliers": _outliers,
    "last digits": lambda f: _planes(
        "coordinate_descent",
        "hinge",
        "penalized",
        1e-10,
        f,
        [("breast_cancer", 1.0), ("a9a", 0.01), ("a9a", 1.0), ("digits", 1.0)],
    ),
    "reduced": _reduced,
    "stored": _stored,
}


def main():
    """One line for each constant."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", help="folder of further sets")
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("words", nargs="*", help="of modules and constants")
    options = parser.parse_args()
    for constant in CONSTANTS:
        name = f"{constant.module} {constant.name}"
        if not options.words or any(word in name for word in options.words):
            print(f"{name:44}", *_ratios(constant, options), sep="  ", flush=True)


def _ratios(constant, options):
    """What is told of a constant."""
    clock, threads = time.process_time, ONE_BLAS_THREAD
    if constant.problems in SHARED:
        clock, threads = time.perf_counter, nullcontext()
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
            with threads, changed({constant.name: value}, module):
                seconds = [_seconds(run, clock) for run in runs]
            least[k] = np.minimum(least[k], seconds)
    told = [f"{kept:g}"]
    for value, seconds in zip(constant.others, least[1:] / least[0], strict=True):
        solved = np.isfinite(seconds).all()
        said = f"{seconds.min():.2f}-{seconds.max():.2f}" if solved else "-"
        told.append(f"{value:g}: {said}")
    return told


def _seconds(run, clock):
    """Seconds of a run; infinity where it does not solve its problem."""
    begin = clock()
    found = run()
    taken = clock() - begin
    solved = getattr(found, "status", found) in ("solved", "no_margin")
    return taken if solved else np.inf


if __name__ == "__main__":
    main()
