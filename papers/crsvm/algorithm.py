"""Algorithm 1 as printed, in NumPy: the paper's start, steps and end; dense, tau = 1.

The library's method differs in its start and its safeguards; this one tells whether a
failure is the paper's or ours. The box of the algorithm is lost in the circulating
text: reconstructed from the equations, whose numbers are the paper's. A = Y X.
"""

import itertools
from dataclasses import dataclass

import numpy as np
import scipy.linalg

from widemargin import Problem

BETA, THETA, TOL = 4.0, 100.0, 1e-8


@dataclass
class Point:
    """The six variables, or a direction in them."""

    w: np.ndarray
    gamma: float
    xi: np.ndarray
    s: np.ndarray
    alpha: np.ndarray
    u: np.ndarray

    def toward(self, step, t):
        """The point a step of length t away."""
        values = (vars(self)[k] + t * vars(step)[k] for k in vars(self))
        return Point(*values)

    def mu(self):
        """Complementarity, (s'alpha + xi'u) / 2m."""
        return (self.s @ self.alpha + self.xi @ self.u) / (2 * len(self.s))

    def farthest(self, step):
        """The largest step that keeps the four positive."""
        ratios = [
            (-vars(step)[k] / vars(self)[k]).max() for k in ("xi", "s", "alpha", "u")
        ]
        return 1.0 / max(*ratios, 1e-300)


def run(data, share=1.0, reduce=True, max_iter=200):
    """Solve with rule omega, balanced, adaptive: a record of how it went."""
    X = data.X.toarray() if hasattr(data.X, "toarray") else data.X
    y, m = data.y, len(data.y)
    A, two = X * y[:, None], np.full(m, 2.0)
    p = Point(np.zeros(X.shape[1]), 0.0, two, two, two, two)
    goal = TOL * max(1.0, np.abs(X).max())
    for iteration in itertools.count():
        r = _residuals(A, y, p)
        mu = p.mu()
        ended = mu <= TOL and max(np.abs(part).max() for part in r) <= goal
        if ended or iteration == max_iter:
            break
        d = 1.0 / (p.s / p.alpha + p.xi / p.u)
        Q = chosen(d, y, mu, share) if reduce else np.arange(m)
        p = _iterate(A, X, y, p, r, d, Q)
    certificate = Problem(data.X, y).certify(np.clip(p.alpha, 0, 1), p.w, -p.gamma)
    return {
        "iterations": iteration,
        "mu": float(f"{mu:.3g}"),
        "active_last": len(Q),
        "primal": certificate.primal,
        "gap": float(f"{certificate.relative_gap:.3g}"),
    }


def _residuals(A, y, p):
    """(3.1) to (3.4)."""
    return (
        p.w - A.T @ p.alpha,
        y @ p.alpha,
        1.0 - p.alpha - p.u,
        A @ p.w - p.gamma * y + p.xi - 1.0 - p.s,
    )


def chosen(d, y, mu, share):
    """Rows of Q: (3.18) and (3.20) to (3.22); ties, as at the start, at random."""
    m = len(y)
    order = np.random.default_rng(0).permutation(m)
    d, y = d[order], y[order]
    must = d >= THETA * np.sqrt(mu)
    q = max(int(must.sum()), min(int(np.ceil(mu ** (1 / BETA) * m)), int(share * m)))
    classes, count = [np.flatnonzero(y == label) for label in (-1, 1)], []
    for rows in classes:
        count.append(min(max(int(must[rows].sum()), -(-q // 2)), len(rows)))
    short = max(0, q - sum(count))
    parts = [
        rows[np.argsort(-d[rows], kind="stable")[: k + short]]
        for rows, k in zip(classes, count, strict=True)
    ]
    return order[np.concatenate(parts)]


def _iterate(A, X, y, p, r, d, Q):
    """One iteration of Mehrotra's predictor-corrector with M_Q."""
    c = X[Q].T @ d[Q] / d[Q].sum()
    Z = (X[Q] - c) * np.sqrt(d[Q])[:, None]
    factor = scipy.linalg.cho_factor(np.eye(len(c)) + Z.T @ Z)
    ybar, sd = X.T @ d, d.sum()

    def direction(r_sv, r_xu):
        """(3.23) and (3.12) to (3.16)."""
        r_w, r_a, r_u, r_s = r
        r_u_bar = r_u + r_xu / p.xi
        r_omega = r_s + r_sv / p.alpha - p.xi / p.u * r_u_bar
        r_a_bar = r_a - y @ (d * r_omega)
        right = -r_w - A.T @ (d * r_omega) - r_a_bar / sd * ybar
        dw = scipy.linalg.cho_solve(factor, right)
        dgamma = (ybar @ dw - r_a_bar) / sd
        dalpha = -d * (r_omega + A @ dw - y * dgamma)
        dxi = -p.xi / p.u * (r_u_bar - dalpha)
        ds = -(r_sv + p.s * dalpha) / p.alpha
        return Point(dw, dgamma, dxi, ds, dalpha, r_u - dalpha)

    step = direction(p.s * p.alpha, p.xi * p.u)
    mu = p.mu()
    target = mu * (p.toward(step, min(1.0, p.farthest(step))).mu() / mu) ** 3
    r_sv = p.s * p.alpha - target + step.s * step.alpha
    r_xu = p.xi * p.u - target + step.xi * step.u
    step = direction(r_sv, r_xu)
    return p.toward(step, min(1.0, 0.99 * p.farthest(step)))
