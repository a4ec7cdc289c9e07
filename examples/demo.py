"""A first look: SVMs on Adult, their certificates, the same problems elsewhere.

Run by ``make demo``. Writes demo-report.html and demo.wm into the current folder.
"""

import argparse
import time
import warnings
from pathlib import Path

import numpy as np
import sklearn.svm

import widemargin
from widemargin import SVC, LinearSVC, Problem, as_rows, load_svmlight, save_model
from widemargin.report import Timing, write_report

DATA = Path(__file__).parent / "data"
GAMMA = 0.05
# LIBSVM takes a minute for all rows.
PART = 6_000


def main() -> None:
    """Train, compare, report."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument(
        "--no-peers", action="store_true", help="skip LIBSVM and LIBLINEAR"
    )
    peers = not options.parse_args().no_peers
    names = (DATA / "a9a.names").read_text().splitlines()
    X, y = load_svmlight(DATA / "a9a.svm.bz2")
    X_test, y_test = load_svmlight(DATA / "a9a.test.svm.bz2", n_features=X.shape[1])
    rows, test = as_rows(X, names=names), (as_rows(X_test, names=names), y_test)
    print(
        f"widemargin {widemargin.__version__} · Adult: {X.shape[0]:,} people, "
        f"{X.shape[1]} features of each; who earns more than 50,000 dollars a year?"
    )
    linear = LinearSVC(loss="hinge")
    _train("linear", linear, rows, y, test)
    _train(f"rbf kernel, gamma {GAMMA}", SVC(gamma=GAMMA), rows, y, test)
    timings = _compared(X, y) if peers else []
    save_model(linear, "demo.wm")
    write_report(
        "demo-report.html",
        linear,
        rows,
        y,
        test=test,
        title="Who earns more than 50,000 dollars a year?",
        notes=timings,
    )
    print(
        "\nOpen next:\n"
        "  demo-report.html               this training, with pictures (in a browser)\n"
        "  docs/tutorial/from_csv.md      how to train on a table of your own\n"
        "  docs/tutorial/first_model.md   a first model step by step\n"
        "  .venv/bin/widemargin inspect demo.wm    the linear model, which was saved"
    )


def _train(name: str, classifier: LinearSVC | SVC, X, y, test) -> None:
    """Train, and say how good the answer is."""
    begin = time.perf_counter()
    classifier.fit(X, y)
    seconds = time.perf_counter() - begin
    print(
        f"  {name:.<24} {seconds:6.2f} s   certified gap {classifier.dual_gap_:.0e}   "
        f"{100 * classifier.score(*test):.1f} % of {len(test[1]):,} others are right",
        flush=True,
    )


# -- the same problems elsewhere -------------------------------------------------------


def _compared(X, y) -> list[Timing]:
    """The times of this library, and of those behind scikit-learn's SVMs."""
    print(
        "\nSolved again beside scikit-learn's SVMs, each problem as they state it and "
        "to a smaller\ngap than above, so that our times differ from those above:",
        flush=True,
    )
    narrow = X.copy()  # its wrappers take 32-bit indices only
    narrow.indices, narrow.indptr = X.indices.astype("i4"), X.indptr.astype("i4")
    timings = []
    for compare in (_linear, _rbf):
        found = compare(X, y, narrow)
        print(f"  {found[0].problem}")
        for _, name, seconds, gap, _ in found:
            print(f"    {name:.<22} {seconds:6.2f} s   gap {gap:.0e}", flush=True)
        timings += found
    return timings


def _linear(X, y, narrow) -> list[Timing]:
    """The hinge with a penalized intercept, which LIBLINEAR has."""
    ours = LinearSVC(loss="hinge", intercept="penalized", tol=1e-8)
    theirs = sklearn.svm.LinearSVC(loss="hinge", max_iter=10_000)
    times = _timed(ours, X, y), _timed(theirs, narrow, y)
    problem = Problem(X, y, intercept="penalized")
    primal = problem.primal(theirs.coef_.ravel(), float(theirs.intercept_[0]))
    words = f"linear, all {X.shape[0]:,} rows, intercept in the penalty"
    return _pair(words, "LIBLINEAR", times, ours, primal)


def _rbf(X, y, narrow) -> list[Timing]:
    """A part of the rows, with the rbf kernel."""
    X, y, narrow = X[:PART], y[:PART], narrow[:PART]
    ours = SVC(gamma=GAMMA, tol=1e-6)
    theirs = sklearn.svm.SVC(gamma=GAMMA, cache_size=1000)
    times = _timed(ours, X, y), _timed(theirs, narrow, y)
    scores = theirs.decision_function(narrow)
    alpha = np.zeros(len(y))
    alpha[theirs.support_] = np.asarray(theirs.dual_coef_.todense()).ravel()
    losses = np.maximum(0.0, 1.0 - y * scores).sum()
    primal = 0.5 * alpha @ (scores - theirs.intercept_[0]) + losses
    words = f"rbf kernel, {PART:,} of the rows"
    return _pair(words, "LIBSVM", times, ours, primal)


def _timed(estimator, X, y) -> float:
    """Seconds of a fit."""
    begin = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the gap says how good the answer is
        estimator.fit(X, y)
    return time.perf_counter() - begin


def _pair(problem: str, peer: str, times, ours, primal: float) -> list[Timing]:
    """Both gaps, the peer's by our lower bound: we solve to more digits than it."""
    gap = (primal - ours.solution_.certificate.dual) / primal
    mine = Timing(problem, "widemargin", times[0], ours.dual_gap_, ours=True)
    return [mine, Timing(problem, peer, times[1], gap)]


if __name__ == "__main__":
    main()
