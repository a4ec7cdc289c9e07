"""Clarabel, an interior point method for quadratic programs, on (2) and (7)."""

import clarabel
import numpy as np
from scipy import sparse

LADDER = [{"tol": 10.0**-k} for k in (4, 6, 8, 10)]


def fit(X, y, C, loss, intercept, tol):
    """W and b of the primal program over (w, b, slacks).

    The squared hinge with a penalized intercept is (7), the hinge with a free one (2).
    """
    m, n = X.shape
    squared = loss == "squared_hinge"
    bent, slope = (2.0 * C, 0.0) if squared else (0.0, C)  # of the loss of a slack
    penalties = [np.ones(n), [float(intercept == "penalized")], np.full(m, bent)]
    P = sparse.diags_array(np.concatenate(penalties), format="csc")
    q = np.append(np.zeros(n + 1), np.full(m, slope))
    signed = sparse.csc_array(y[:, None] * np.column_stack([X, np.ones(m)]))
    rows = sparse.hstack([signed, sparse.eye_array(m)])
    bounds = np.ones(m)
    if not squared:  # slacks of at least zero, which (7) need not ask for
        slacks = sparse.hstack([sparse.csc_array((m, n + 1)), sparse.eye_array(m)])
        rows, bounds = sparse.vstack([rows, slacks]), np.append(bounds, np.zeros(m))
    cones = [clarabel.NonnegativeConeT(len(bounds))]
    program = P, q, sparse.csc_matrix(-rows), -bounds, cones
    x = clarabel.DefaultSolver(*program, _settings(tol)).solve().x
    return np.array(x[:n]), float(x[n])


def _settings(tol):
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.max_threads = 1
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = tol
    return settings
