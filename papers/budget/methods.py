"""The machines of the paper, by our solver, and what pruning leaves of them."""

import numpy as np
from scipy.spatial.distance import cdist

from papers.budget import digits
from widemargin import Kernel, Problem, solve
from widemargin.losses import BudgetL1, BudgetL2

NORMS = {"L1": BudgetL1, "L2": BudgetL2}
TOL = 1e-4  # the relative gap of all our runs, unless another is given


def kernel(X, Z):
    """Gaussian with sigma = 1, (len(X), len(Z))."""
    return np.exp(-digits.GAMMA * cdist(X, Z, "sqeuclidean"))


def heuristic(kind, budget):
    """C of Section 5: 10 / B, or 10 / sqrt(B)."""
    return 10.0 / (budget if kind == "L1" else np.sqrt(budget))


def problem(kind, X, y, budget, C=None):
    """Problem (2) with the norm K(1, inf, B) or K(2, inf, sqrt(B))."""
    C = heuristic(kind, budget) if C is None else C
    about = Kernel("rbf", gamma=digits.GAMMA)
    return Problem(X, y, C, kernel=about, norm=NORMS[kind](budget=float(budget)))


def ours(kind, X, y, budget, C=None, tol=TOL):
    """The Solution of it."""
    return solve(problem(kind, X, y, budget, C), tol=tol)


def largest(alpha):
    """Rows of nonzero alpha, the largest first."""
    order = np.argsort(-alpha, kind="stable")
    return order[: np.count_nonzero(alpha)]


def pruned(given, kernels, c, sizes):
    """Yields f of the training and of the test points, and the best b, for each s.

    ``c``, coefficients (m,), of which all but the s largest are zeroed; ``kernels``,
    (m, m) and (tests, m); the best b is that of the training points, by the objective.
    """
    order = largest(np.abs(c))
    parts, b, before = [np.zeros(len(K)) for K in kernels], 0.0, 0
    kept = np.zeros(len(c))
    for size in sizes:
        rows = order[before:size]
        if rows.size or not before:
            kept[rows] = c[rows]
            parts = [
                f + K[:, rows] @ c[rows] for f, K in zip(parts, kernels, strict=True)
            ]
            b = given.intercept_for(parts[0], kept, b)
        before = size
        yield *parts, b


def error(scores, y):
    """Share of points on the wrong side; a score of zero is positive."""
    return float(np.mean((scores >= 0) != (y > 0)))


def counts(alpha, top, tol=1e-6):
    """Support vectors, those at the bound ``top`` and those that are free."""
    vectors = int(np.count_nonzero(alpha))
    bounded = int(np.count_nonzero(alpha >= top * (1.0 - tol)))
    return {"vectors": vectors, "bounded": bounded, "free": vectors - bounded}
