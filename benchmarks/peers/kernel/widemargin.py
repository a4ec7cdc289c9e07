"""The library itself, with the solver that it chooses; tol is the certified gap."""

import numpy as np

from benchmarks.core.kept_rows import kept_rows
from benchmarks.peers.kernel import Answer
from widemargin import SVC, Kernel, Problem, solve

DISTRIBUTION = "widemargin"


def ladders(is_sparse):
    """Gaps; the last one is there for the best dual bound."""
    return [[{"tol": 10.0**-k} for k in range(1, 8)]]


def prepared(X, **setting):
    """As it is."""
    return X


def trained(X, y, C, gamma, tol):
    """The estimator."""
    return SVC(kernel="rbf", C=C, gamma=gamma, tol=tol).fit(X, y)


def fit(X, y, C, gamma, tol, memory=None):
    """Alpha, b and what the trace says; ``memory``: None, "free" or bytes for rows."""
    if memory is None:
        solution, kept = trained(X, y, C, gamma, tol).solution_, {}
    else:
        limit = None if memory == "free" else memory
        kernel = Kernel("rbf", gamma=gamma)
        problem = Problem(X, y, C, kernel=kernel, memory_limit=limit)
        solution = solve(problem, tol=tol)
        kept = kept_rows(problem)
    last = solution.trace[-1].details
    more = {
        "rows_of_k": last.get("evaluations", np.nan) / X.shape[0],
        "hits": last.get("hits", np.nan) / X.shape[0],
        "working_sets": len(solution.trace) - 1,
        "inner_steps": last.get("inner_steps", last.get("steps")),
        "claimed": solution.certificate.relative_gap,
        "status": str(solution.status),
    }
    return Answer(solution.alpha, solution.b, more | kept)
