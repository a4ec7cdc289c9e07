"""ReHLine: 1/2 |v|^2 + a sum of piecewise linear-quadratic losses, by their dual.

It knows no intercept: a column of ones is appended for a penalized one. The hinge is
C max(0, 1 - y f); C max(0, 1 - y f)^2 is 1/2 max(0, s - s y f)^2 with s^2 = 2 C.
"""

import numpy as np
from rehline import ReHLine
from scipy import sparse

DISTRIBUTION = "rehline"
INTERCEPTS = {
    "hinge": ("penalized", "none"),
    "squared_hinge": ("penalized", "none"),
}


def ladders(loss, intercept):
    """Relative gap of its own primal and dual.

    First with the usual limit of epochs, which always gives an answer.
    """
    epochs = {2: 1000, 3: 1000, 4: 1_000_000, 6: 1_000_000, 8: 1_000_000}
    return [[{"tol": 10.0**-k, "max_iter": n} for k, n in epochs.items()]]


def fit(X, y, C, loss, intercept, **setting):
    """W and b."""
    if intercept == "penalized":
        ones = np.ones((X.shape[0], 1))
        wide = sparse.issparse(X)
        X = sparse.hstack([X, ones], format="csr") if wide else np.hstack([X, ones])
    v = ReHLine(**_loss(loss, y, C), **setting).fit(X).coef_
    return (v[:-1], float(v[-1])) if intercept == "penalized" else (v, 0.0)


def _loss(loss, y, C):
    if loss == "hinge":
        return {"U": -C * y[None], "V": np.full((1, len(y)), C)}
    s = np.sqrt(2.0 * C)
    slopes, shifts = -s * y[None], np.full((1, len(y)), s)
    return {"S": slopes, "T": shifts, "Tau": np.full((1, len(y)), np.inf)}
