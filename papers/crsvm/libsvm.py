"""LIBSVM on the problem of the paper: a module of its own starts soon."""

import time

import numpy as np
from sklearn.svm import SVC


def fit_libsvm(X, y):
    """Seconds of LIBSVM with its default tolerance, 1e-3; w, b and alpha."""
    begin = time.perf_counter()
    svc = SVC(kernel="linear", C=1.0).fit(X, y)
    seconds = time.perf_counter() - begin
    alpha = np.zeros(len(y))
    dual = svc.dual_coef_
    alpha[svc.support_] = np.abs(dual.toarray() if hasattr(dual, "toarray") else dual)
    w = svc.coef_.toarray() if hasattr(svc.coef_, "toarray") else svc.coef_
    return seconds, w.ravel(), float(svc.intercept_[0]), alpha
