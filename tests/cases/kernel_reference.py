"""Kernel problems solved by a conic solver, and their objectives as defined."""

import functools

import clarabel
import numpy as np
import pytest
from scipy import sparse
from sklearn.metrics.pairwise import rbf_kernel

from tests.conftest import PROBLEMS


def objectives(K, y, C, loss, intercept, alpha, b):
    """P of w = sum alpha_i y_i phi(x_i) and b, and D of alpha: as they are defined."""
    c = y * alpha
    f = K @ c
    p = 1.0 if intercept == "penalized" else 0.0
    t = np.maximum(0.0, 1.0 - y * (f + b))
    primal = 0.5 * (c @ f + p * b * b)
    dual = alpha.sum() - 0.5 * (c @ f + p * c.sum() ** 2)
    if loss == "hinge":
        return primal + np.sum(C * t), dual
    return primal + np.sum(C * t * t), dual - np.sum(alpha**2 / (4.0 * C))


def check_certificate(K, y, C, loss, intercept, solution, tol):
    """The answer is feasible, and its certificate is what float64 says."""
    alpha, b, certificate = solution.alpha, solution.b, solution.certificate
    assert alpha.min() >= 0
    assert loss != "hinge" or np.all(alpha <= C)
    if intercept == "free":
        assert abs(y @ alpha) <= 1e-11 * alpha.sum()
    else:
        assert b == pytest.approx((y @ alpha) * (intercept == "penalized"))
    primal, dual = objectives(K, y, C, loss, intercept, alpha, b)
    assert certificate.primal == pytest.approx(primal, rel=1e-8)
    assert certificate.dual == pytest.approx(dual, rel=1e-8)
    assert primal - dual <= 1.01 * tol * primal


def part(name):
    """Up to so many rows of a problem, of both classes, standardized."""
    X, y = PROBLEMS[name]()
    order = np.random.default_rng(0).permutation(len(y))
    X, y = X[order], y[order]
    some = np.sort(np.r_[np.flatnonzero(y > 0)[:100], np.flatnonzero(y < 0)[:150]])
    X, y = X[some], y[some]
    scale = X.std(axis=0)
    return (X - X.mean(axis=0)) / np.where(scale > 0, scale, 1.0), y


@functools.cache
def conic_optimum(name, gamma, loss, intercept, C):
    """The dual optimum by Clarabel: of x = alpha / C for small C."""
    X, y = part(name)
    m, s = len(y), min(C, 1.0)
    K = y[:, None] * rbf_kernel(X, gamma=gamma) * y
    if intercept == "penalized":
        K += np.outer(y, y)
    if loss != "hinge":
        K += np.eye(m) / (2.0 * C)
    rows, right = [-sparse.eye(m)], [np.zeros(m)]
    if loss == "hinge":
        rows.append(sparse.eye(m))
        right.append(np.full(m, C / s))
    cones = [clarabel.NonnegativeConeT(m * len(rows))]
    if intercept == "free":
        rows.append(sparse.csc_matrix(y[None, :]))
        right.append([0.0])
        cones.append(clarabel.ZeroConeT(1))
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = 1e-10
    P, A = sparse.csc_matrix(np.triu(K) * s), sparse.vstack(rows).tocsc()
    right = np.concatenate(right)
    found = clarabel.DefaultSolver(P, -np.ones(m), A, right, cones, settings).solve()
    return -s * found.obj_val
