"""Regressions, and independent answers: as conic programs, solved by Clarabel."""

import clarabel
import numpy as np
from scipy import sparse


def friedman(m, n=5, noise=1.0, seed=0):
    """A target that is neither linear nor centered, with some far outliers."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((m, n))
    t = 3.0 * np.sin(2.0 * X[:, 0]) + X[:, 1] ** 2 + 2.0 * X[:, -1] + 4.0
    t += noise * rng.standard_normal(m)
    t[::20] += 10.0 * rng.standard_normal(len(t[::20]))
    return X, t


def objective(X, t, C, epsilon, form, w, b):
    """P(w, b), written from the statement of the problem; form: loss, intercept."""
    loss, intercept = form
    p = 1.0 if intercept == "penalized" else 0.0
    over = np.maximum(0.0, np.abs(t - X @ w - b) - epsilon)
    return 0.5 * (w @ w + p * b * b) + np.sum(C * over ** (1 + (loss != "hinge")))


def reference_objective(X, t, C, epsilon, form):
    """P at Clarabel's answer, or at zero: an upper bound of the optimum, mostly tight.

    Variables (w, b, xi): minimize 1/2 (w'w + p b^2) + sum C_i L(xi_i) subject to
    |t_i - x_i'w - b| <= epsilon + xi_i and xi >= 0, divided by mean(C).
    """
    (loss, intercept), (m, n) = form, X.shape
    C = np.broadcast_to(np.asarray(C, dtype=float), (m,))
    has_b = intercept != "none"
    p = {"free": [0.0], "penalized": [1.0], "none": []}[intercept]
    cost = C / C.mean()
    squares = np.zeros(m) if loss == "hinge" else 2.0 * cost
    quadratic = np.concatenate([np.ones(n), p]) / C.mean()
    P = sparse.diags(np.concatenate([quadratic, squares])).tocsc()
    q = np.concatenate([np.zeros(n + has_b), cost if loss == "hinge" else np.zeros(m)])
    A = np.c_[X, np.ones(m)] if has_b else X
    eye, zero = sparse.eye(m), sparse.csc_matrix((m, n + has_b))
    blocks = [[sparse.csc_matrix(A), eye], [sparse.csc_matrix(-A), eye], [zero, eye]]
    h = np.concatenate([t - epsilon, -t - epsilon, np.zeros(m)])
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = 1e-11
    cones = [clarabel.NonnegativeConeT(3 * m)]
    G = -sparse.block_array(blocks).tocsc()
    x = np.array(clarabel.DefaultSolver(P, q, G, -h, cones, settings).solve().x)
    points = (x[:n], x[n] if has_b else 0.0), (np.zeros(n), 0.0)
    return min(objective(X, t, C, epsilon, form, *point) for point in points)
