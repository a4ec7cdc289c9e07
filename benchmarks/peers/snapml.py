"""Snap ML: dual coordinate descent on one or more threads; data in float32.

Its regularizer is 1/C. Its intercept is a column of ones, hence penalized. float32 data
limit the gap on the given data to about 1e-9 at best, to less where C is large.
"""

import os

import numpy as np
from snapml import SupportVectorMachine

DISTRIBUTION = "snapml"
INTERCEPTS = {
    "hinge": ("penalized", "none"),
    "squared_hinge": ("penalized", "none"),
}


def ladders(loss, intercept):
    """Largest change of a coefficient, on one thread and on all."""
    threads = sorted({1, os.cpu_count()})
    return [[{"tol": 10.0**-k, "n_jobs": n} for k in (2, 3, 5, 7, 9)] for n in threads]


def fit(X, y, C, loss, intercept, tol, n_jobs):
    """W and b; the limit of iterations is out of the way."""
    model = SupportVectorMachine(
        loss=loss,
        regularizer=1.0 / C,
        fit_intercept=intercept == "penalized",
        tol=tol,
        max_iter=1_000_000,
        n_jobs=n_jobs,
        random_state=0,
    ).fit(X, y)
    b = np.ravel(model.intercept_)[0] if intercept == "penalized" else 0.0
    return np.ravel(model.coef_), float(b)
