"""LIBSVM on the problems of the paper: in a process of its own, which starts soon."""

import multiprocessing
import statistics
import time

import numpy as np
from sklearn.svm import SVC


def fit_libsvm(X, y, clock=time.perf_counter, **kernel):
    """Seconds of LIBSVM with its default tolerance, 1e-3; c = y alpha (m,) and b."""
    begin = clock()
    svc = SVC(C=1.0, **kernel).fit(X, y)
    seconds = clock() - begin
    dual, c = svc.dual_coef_, np.zeros(len(y))
    c[svc.support_] = dual.toarray() if hasattr(dual, "toarray") else dual
    return seconds, c, float(svc.intercept_[0])


def timed(data, options, **settings):
    """The median of the seconds, c and b; None where a run is given up."""
    answers = []
    for _ in range(options.runs(data)):
        with multiprocessing.get_context("spawn").Pool(1) as pool:
            waiting = pool.apply_async(fit_libsvm, (data.X, data.y), settings)
            try:
                answers.append(waiting.get(options.timeout))
            except multiprocessing.TimeoutError:
                return None
    return statistics.median(a[0] for a in answers), *answers[-1][1:]
