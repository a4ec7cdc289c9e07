"""LIBSVM with a linear kernel, through scikit-learn: the intercept is free.

scikit-learn's copy of LIBSVM also takes dense rows, which the authors' package turns
into sparse ones; both take the same time on sparse rows.
"""

import numpy as np
from scipy import sparse
from sklearn.svm import SVC

DISTRIBUTION = "scikit-learn"
INTERCEPTS = {"hinge": ("free",)}


def ladders(loss, intercept):
    """Largest violation of the optimality conditions."""
    return [[{"tol": 10.0**-k} for k in (1, 2, 3, 4, 6)]]


def fit(X, y, C, loss, intercept, tol):
    """W and b, with a cache of 1000 MB."""
    model = SVC(kernel="linear", C=C, tol=tol, cache_size=1000).fit(X, y)
    coef = model.coef_.toarray() if sparse.issparse(model.coef_) else model.coef_
    return np.asarray(coef)[0], float(model.intercept_[0])
