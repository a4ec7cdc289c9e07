"""An independent answer: the problem as a conic program, solved by Clarabel."""

import clarabel
import numpy as np
from scipy import sparse


def objective(X, y, C, loss, intercept, w, b):
    """P(w, b), written from the statement of the problem."""
    p = 1.0 if intercept == "penalized" else 0.0
    t = np.maximum(0.0, 1.0 - y * (X @ w + b))
    return 0.5 * (w @ w + p * b * b) + np.sum(C * (t if loss == "hinge" else t * t))


def reference_objective(X, y, C, loss="hinge", intercept="free"):
    """P at Clarabel's answer: an upper bound of the optimum, nearly always a tight one.

    Variables (w, b, xi): minimize 1/2 (w'w + p b^2) + sum C_i L(xi_i) subject to
    y_i (x_i'w + b) + xi_i >= 1 and xi >= 0, divided by mean(C) for Clarabel's scaling.
    """
    X = np.asarray(X, dtype=float)
    m, n = X.shape
    C = np.broadcast_to(np.asarray(C, dtype=float), (m,))
    has_b = intercept != "none"
    p = {"free": [0.0], "penalized": [1.0], "none": []}[intercept]
    cost = C / C.mean()
    quadratic = np.concatenate([np.ones(n), p]) / C.mean()
    squares = np.zeros(m) if loss == "hinge" else 2.0 * cost
    P = sparse.diags(np.concatenate([quadratic, squares])).tocsc()
    q = np.concatenate([np.zeros(n + has_b), cost if loss == "hinge" else np.zeros(m)])
    A = y[:, None] * (np.c_[X, np.ones(m)] if has_b else X)
    zero = sparse.csc_matrix((m, n + has_b))
    eye = sparse.eye(m)
    G = sparse.vstack([sparse.hstack([A, eye]), sparse.hstack([zero, eye])]).tocsc()
    h = np.concatenate([np.ones(m), np.zeros(m)])
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = 1e-11
    cones = [clarabel.NonnegativeConeT(2 * m)]
    x = np.array(clarabel.DefaultSolver(P, q, -G, -h, cones, settings).solve().x)
    return objective(X, y, C, loss, intercept, x[:n], x[n] if has_b else 0.0)
