"""scikit-learn-intelex: SVC with a linear kernel on oneDAL, the intercept is free.

Its LinearSVC is scikit-learn's own. From sparse data it returns as many coefficients as
its support vectors have columns; the others are zero.
"""

import numpy as np
from scipy import sparse
from sklearnex.svm import SVC

DISTRIBUTION = "scikit-learn-intelex"
INTERCEPTS = {"hinge": ("free",)}


def ladders(loss, intercept):
    """Largest violation of the optimality conditions."""
    return [[{"tol": 10.0**-k} for k in (1, 2, 3, 4, 6)]]


def fit(X, y, C, loss, intercept, tol):
    """W and b, with a cache of 1000 MB."""
    model = SVC(kernel="linear", C=C, tol=tol, cache_size=1000).fit(X, y)
    if not hasattr(model, "_onedal_estimator"):
        raise NotImplementedError("oneDAL did not take this; scikit-learn solved it")
    coef = model.coef_.toarray() if sparse.issparse(model.coef_) else model.coef_
    w = np.zeros(X.shape[1])
    w[: coef.shape[1]] = coef[0]
    return w, float(np.ravel(model.intercept_)[0])
