"""LIBSVM on the problems of the paper: in a process of its own, which starts soon."""

import multiprocessing
import statistics
import time

from sklearn.svm import SVC

from papers.measure import coefficients


def fit_libsvm(X, y, clock=time.perf_counter, **kernel):
    """Seconds of LIBSVM with its default tolerance, 1e-3; c = y alpha (m,) and b."""
    begin = clock()
    svc = SVC(C=1.0, **kernel).fit(X, y)
    seconds = clock() - begin
    return seconds, coefficients(svc, len(y)), float(svc.intercept_[0])


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
