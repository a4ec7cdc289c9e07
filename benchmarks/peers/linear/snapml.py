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
    """Largest change of a coefficient, on one thread and on all.

    First with the usual limit of epochs, which always gives an answer.
    """
    epochs = {2: 1000, 3: 1000, 5: 1_000_000, 7: 1_000_000, 9: 1_000_000}
    threads = sorted({1, os.cpu_count()})
    return [
        [{"tol": 10.0**-k, "max_iter": n, "n_jobs": t} for k, n in epochs.items()]
        for t in threads
    ]


def fit(X, y, C, loss, intercept, **setting):
    """W and b."""
    model = SupportVectorMachine(
        loss=loss,
        regularizer=1.0 / C,
        fit_intercept=intercept == "penalized",
        random_state=0,
        **setting,
    ).fit(X, y)
    b = np.ravel(model.intercept_)[0] if intercept == "penalized" else 0.0
    return np.ravel(model.coef_), float(b)
