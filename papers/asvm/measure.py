"""The methods of the comparison, and how their runs are measured and summed up.

The paper's nu weighs half of the squared slacks, nu/2 |y|^2: its problem is the squared
hinge with C = nu / 2 and a penalized intercept, b = -gamma.
"""

import statistics
import time

import numpy as np

from papers.crsvm.measure import growth_exponent  # noqa: F401  (parts take it from here)
from widemargin import Problem, solve
from widemargin.solvers import ActiveSet

PUBLISHED, DEFAULT, ZERO = "Algorithm 3.1", "default", "default from zero"
SOLVERS = {
    PUBLISHED: ActiveSet(mode="asvm"),
    DEFAULT: ActiveSet(),
    ZERO: ActiveSet(begin_with=None),
}
TOL = 1e-8
NU = 0.01  # of the runs on millions of points


def as_problem(X, y, nu=NU):
    """Problem (7) of the paper."""
    return Problem(X, y, 0.5 * nu, "squared_hinge", "penalized")


def ordinary(X, y, nu=NU):
    """Problem (2), the ordinary support vector machine."""
    return Problem(X, y, nu, "hinge", "free")


def record(solution, seconds):
    """The numbers of one solver on one problem."""
    trace, certificate = solution.trace, solution.certificate
    published = [s for s in trace if "safeguards" in s.details]
    rows = trace.column("rows")
    return {
        "seconds": float(f"{statistics.median(seconds):.4g}"),
        "fastest": float(f"{min(seconds):.4g}"),
        "slowest": float(f"{max(seconds):.4g}"),
        "iterations": int(np.count_nonzero(rows == rows.max())),
        "published": len(published),
        "safeguards": max((s.details["safeguards"] for s in published), default=0),
        "sweeps": trace[-1].sweeps,
        "status": str(solution.status),
        "primal": certificate.primal,
        "gap": float(f"{certificate.relative_gap:.3g}"),
        "active": trace[-1].active,
    }


def compare(X, y, nu, solvers, *, repeat=3, tol=TOL, time_limit=60.0):
    """Run each solver several times, in turn: {label: record}."""
    seconds, last = {label: [] for label in solvers}, {}
    for _ in range(repeat):
        for label in solvers:
            begin = time.perf_counter()
            problem = as_problem(X, y, nu)
            last[label] = solve(problem, SOLVERS[label], tol=tol, time_limit=time_limit)
            seconds[label].append(time.perf_counter() - begin)
    return {label: record(last[label], seconds[label]) for label in solvers}


def correctness(w, b, X, y):
    """Share of rows on the right side, in percent."""
    return 100.0 * float(np.mean(np.where(X @ w + b >= 0.0, 1.0, -1.0) == y))
