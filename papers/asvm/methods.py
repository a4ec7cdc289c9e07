"""The methods of the comparison, and the numbers of a run.

The paper's nu weighs half of the squared slacks, nu/2 |y|^2: its problem is the squared
hinge with C = nu / 2 and a penalized intercept, b = -gamma.
"""

import numpy as np

from papers.measure import in_turn, outcome, spread
from widemargin import Problem
from widemargin.solvers import ActiveSet

PUBLISHED, DEFAULT, ZERO = "Algorithm 3.1", "default", "default from zero"
SOLVERS = {
    PUBLISHED: ActiveSet(mode="asvm"),
    DEFAULT: ActiveSet(),
    ZERO: ActiveSet(begin_with=None),
}
TOL = 1e-8
NU = 0.01  # of the runs on millions of points; recalled


def as_problem(X, y, nu=NU):
    """Problem (7) of the paper."""
    return Problem(X, y, 0.5 * nu, "squared_hinge", "penalized")


def ordinary(X, y, nu=NU):
    """Problem (2), the ordinary support vector machine."""
    return Problem(X, y, nu, "hinge", "free")


def record(solution, seconds):
    """The numbers of one solver on one problem."""
    trace = solution.trace
    published = [s for s in trace if "safeguards" in s.details]
    rows = trace.column("rows")
    return {
        **spread(seconds),
        "iterations": int(np.count_nonzero(rows == rows.max())),
        "published": len(published),
        "safeguards": max((s.details["safeguards"] for s in published), default=0),
        "sweeps": trace[-1].sweeps,
        **outcome(solution),
        "active": trace[-1].active,
    }


def compare(X, y, nu, solvers, *, repeat=3, tol=TOL, time_limit=60.0):
    """Run each solver several times, in turn: {label: record}."""
    chosen = {label: SOLVERS[label] for label in solvers}
    limits = {"repeat": repeat, "tol": tol, "time_limit": time_limit}
    found = in_turn(lambda: as_problem(X, y, nu), chosen, **limits)
    return {label: record(*answer) for label, answer in found.items()}


def correctness(w, b, X, y):
    """Share of rows on the right side, in percent."""
    return 100.0 * float(np.mean(np.where(X @ w + b >= 0.0, 1.0, -1.0) == y))
