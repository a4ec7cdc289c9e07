"""Problems with a linear term, and with a sum of alpha, by a conic solver."""

import clarabel
import numpy as np
from scipy import sparse

from tests.cases.kernels import plain

# A relative gap with which no other variables are tried.
PRECISE = 1e-9


def conic_optimum(problems, X, kernel):
    """Where Clarabel says that the optimum of the only problem lies: two numbers.

    The variables are x = alpha / s, s near a small C; others where that is not precise.
    What it calls less than solved counts only where it calls nothing solved: it may be
    off by 1 % with a gap of 1e-10.
    """
    typical = float(np.median(problems.C))
    found = []
    for s in (min(typical, 1.0), typical, min(0.01 * typical, 1e-3), 100.0 * typical):
        solved, low, high = _optimum(problems, X, kernel, s)
        found.append((not solved, np.nan_to_num(high - low, nan=np.inf), low, high))
        if solved and high - low <= PRECISE * abs(low):
            break
    return min(found)[2:]


def _optimum(problems, X, kernel, s):
    """Whether it is solved with variables alpha / s, and the same."""
    y, C, q = problems.y, problems.C, problems.data[2]
    K = plain(kernel, X[problems.rows], X[problems.rows])
    m = len(y)
    Q = y[:, np.newaxis] * K * y
    if problems.intercept == "penalized":
        Q += np.outer(y, y)
    if not problems.loss.is_bounded:
        Q += np.diag(0.5 / C)
    rows, right = [-sparse.eye(m)], [np.zeros(m)]
    if problems.loss.is_bounded:
        rows, right = [*rows, sparse.eye(m)], [*right, C / s]
    cones = [clarabel.NonnegativeConeT(m * len(rows))]
    equal, sums = _equalities(problems, s)
    if len(sums):
        rows, right = [*rows, sparse.csc_matrix(equal)], [*right, sums]
        cones.append(clarabel.ZeroConeT(len(sums)))
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = 1e-11
    # The objective is of the size of 1 by a factor of its own.
    unit = s * max(np.abs(q).max(), s * np.abs(Q).max())
    P, A = sparse.csc_matrix(np.triu(Q) * (s * s / unit)), sparse.vstack(rows).tocsc()
    found = clarabel.DefaultSolver(
        P, -q * s / unit, A, np.concatenate(right), cones, settings
    ).solve()
    low, high = sorted([-unit * found.obj_val, -unit * found.obj_val_dual])
    return found.status == clarabel.SolverStatus.Solved, low, high


def _equalities(problems, s):
    """Rows of sums of x that are given, and what they are."""
    y, mass = problems.y, np.nan if problems.mass is None else problems.mass[0]
    equal, sums = [], []
    if problems.intercept == "free":
        equal, sums = [y], [0.0]
    if not np.isnan(mass):
        equal, sums = [*equal, np.ones(len(y))], [*sums, mass / s]
    return np.array(equal), np.array(sums)
