"""The norms of Section 3 by programs of their own, and the Mahalanobis problems."""

import clarabel
import numpy as np
from scipy import optimize, sparse


def by_linear_program(v, t):
    """K(1, inf, t) of v (m,): min of sum |w| + t max |z| over w + z = v.

    Of w the sizes p + q, and z = v - p + q between -u and u.
    """
    m = len(v)
    ones, eye = np.ones((m, 1)), np.eye(m)
    cost = np.concatenate([np.ones(2 * m), [t]])  # of p, q, u
    above = np.hstack([-eye, eye, -ones])  # v - p + q <= u
    below = np.hstack([eye, -eye, -ones])
    found = optimize.linprog(
        cost, np.vstack([above, below]), np.concatenate([-v, v]), method="highs"
    )
    return float(found.fun)


def by_search(v, p, t):
    """K(p, inf, t): z is v clipped to [-u, u], and the best u is searched for."""
    size = np.abs(v)

    def value(u):
        rest = np.maximum(size - u, 0.0)
        return float((rest**p).sum() ** (1.0 / p) + t * u)

    ends = 0.0, float(size.max())
    found = optimize.minimize_scalar(
        value, bounds=ends, method="bounded", options={"xatol": 1e-13 * ends[1]}
    )
    return min(value(ends[0]), value(ends[1]), float(found.fun))


def bounds(v, p, budget):
    """The bounds of Theorem 1: of the B largest, and that plus B^(1/p) |v|_(B)."""
    top = np.sort(np.abs(v))[::-1][:budget]
    low = float((top**p).sum() ** (1.0 / p))
    return low, low + budget ** (1.0 / p) * float(top[-1])


def mahalanobis_primal(K, y, M, C, nonnegative):
    """(2) with (xi'M xi)^(1/2): optimum and the least slack, by a conic solver.

    Variables c, b, xi, r with 1/2 c'K c + C r, |R xi| <= r, M = R'R.
    """
    m = len(y)
    P = np.zeros((2 * m + 2, 2 * m + 2))
    P[:m, :m] = K + 1e-13 * np.eye(m)
    cost = np.zeros(2 * m + 2)
    cost[-1] = C
    slack, last = slice(m + 1, 2 * m + 1), 2 * m + 1
    margins = np.zeros((m, 2 * m + 2))  # y (K c + b) + xi >= 1
    margins[:, :m], margins[:, m] = -y[:, np.newaxis] * K, -y
    margins[:, slack] = -np.eye(m)
    signs = np.zeros((m if nonnegative else 0, 2 * m + 2))
    signs[:, slack] = -np.eye(m)[: len(signs)]
    cone = np.zeros((m + 1, 2 * m + 2))
    cone[0, last] = -1.0
    cone[1:, slack] = -np.linalg.cholesky(M).T
    right = np.concatenate([-np.ones(m), np.zeros(len(signs) + m + 1)])
    kinds = [
        clarabel.NonnegativeConeT(m + len(signs)),
        clarabel.SecondOrderConeT(m + 1),
    ]
    x, value = _conic(P, cost, np.vstack([margins, signs, cone]), right, kinds)
    return value, float(x[slack].min())


def mahalanobis_dual(K, y, M, C):
    """The optimum of (4) as printed: alpha'M^-1 alpha <= C^2."""
    m = len(y)
    H = y[:, np.newaxis] * K * y
    cone = np.zeros((m + 1, m))
    cone[1:] = -np.linalg.inv(np.linalg.cholesky(M))
    A = np.vstack([y, -np.eye(m), cone])
    right = np.concatenate([np.zeros(m + 1), [C], np.zeros(m)])
    kinds = [
        clarabel.ZeroConeT(1),
        clarabel.NonnegativeConeT(m),
        clarabel.SecondOrderConeT(m + 1),
    ]
    return -_conic(H + 1e-13 * np.eye(m), -np.ones(m), A, right, kinds)[1]


def _conic(P, cost, A, right, kinds):
    """The minimizer of 1/2 x'P x + cost'x with right - A x in the cones, and value."""
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = 1e-11
    P = sparse.csc_matrix(np.triu(P))
    solver = clarabel.DefaultSolver(
        P, cost, sparse.csc_matrix(A), right, kinds, settings
    )
    found = solver.solve()
    return np.array(found.x), float(found.obj_val)
