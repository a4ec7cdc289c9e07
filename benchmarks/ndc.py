"""Normally distributed clusters (NDC): integer rows of any number, two classes."""

import numpy as np

BLOCK = 100_000  # rows drawn from one seed


def make_ndc(m, n=32, random_state=0, *, centers=20, expand=10.0):
    """Rows around random centers, labelled by the side of a plane their center is on.

    Center c_j is an integer point of the box [-50, 50]^n; its rows are
    round(c_j + R_j'g) with g standard normal and R_j = 2 expand U, U uniform on (0, 1).
    The entries of R_j are all positive: the columns are strongly correlated, with one
    dominant direction.

    Parameters
    ----------
    m, n : int >= 1
    random_state : int >= 0. Same seed, same rows; the first rows do not depend on m.
    centers : int >= 2
    expand : float > 0. The larger, the more rows on the wrong side of the plane.

    Returns
    -------
    X : ndarray (m, n), float64 holding integers of some hundreds
    y : ndarray (m,) of +1 and -1

    References
    ----------
    Generator of Thompson (2006) as used by Mangasarian and Musicant (2001), from its
    published facts.
    """
    points, roots, weights, classes = _mixture(n, random_state, centers, expand)
    X, y = np.empty((m, n)), np.empty(m)
    for start in range(0, m, BLOCK):
        rng = np.random.default_rng([random_state, 1, start])
        which = rng.choice(centers, BLOCK, p=weights)[: m - start]
        noise = rng.normal(size=(BLOCK, n))[: m - start]
        X[start : start + BLOCK] = _rows(which, noise, points, roots)
        y[start : start + BLOCK] = classes[which]
    return X, y


def _mixture(n, random_state, centers, expand, low=-50.0, high=50.0):
    """Centers, roots of their covariances, weights and classes (both occur)."""
    rng = np.random.default_rng([random_state, 0])
    while True:
        points = np.round(rng.uniform(low, high, (centers, n)))
        roots = expand * (high - low) / 50.0 * rng.uniform(size=(centers, n, n))
        weights = rng.uniform(size=centers)
        plane = rng.uniform(-2.0, 2.0, n)
        gamma = rng.uniform(low, high) / 10.0
        classes = np.where(points @ plane >= gamma, 1.0, -1.0)
        if abs(classes.sum()) < centers:
            return points, roots, weights / weights.sum(), classes


def _rows(which, noise, points, roots):
    """The rows of one block: round(c_j + R_j'g)."""
    X = points[which]
    for j, root in enumerate(roots):
        mine = which == j
        X[mine] += noise[mine] @ root
    return np.round(X)
