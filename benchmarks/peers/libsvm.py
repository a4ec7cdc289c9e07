"""LIBSVM through scikit-learn; the intercept is free."""

import numpy as np
from sklearn.svm import SVC

INTERCEPTS = ("free",)


def fit(X, y, C, intercept, tol):
    """W and b, at LIBSVM's own tolerance of 1e-3 or less."""
    model = SVC(kernel="linear", C=C, tol=min(10.0 * tol, 1e-3), cache_size=1000).fit(
        X, y
    )
    coef = model.coef_.toarray() if hasattr(model.coef_, "toarray") else model.coef_
    return np.asarray(coef)[0], model.intercept_[0]
