"""Linear machines on dense rows of many columns, beside LIBSVM and LIBLINEAR.

What `suits_products` in estimators/linear_choice.py was chosen by: `ours` is the fit as
it is, `others` the same where products of rows serve 600 rows at most, as they did.
The peers are scikit-learn's classes with their own tolerances: SVC and SVR with the
linear kernel, LinearSVC and LinearSVR. Seconds by the clock, the least of some runs;
ours to a certified gap of 1e-3, ended after 30 s. Prints a table and writes
OUTPUT/wide.txt.
"""

import argparse
import time
import warnings
from pathlib import Path

import sklearn.svm
from sklearn.datasets import make_classification, make_regression

from benchmarks.environment import RESULTS, machine
from widemargin import SVC, SVR, LinearSVC, LinearSVR
from widemargin.estimators import linear_choice

SIZES = [(700, 700), (1000, 3000), (1500, 1000), (2000, 5000), (3000, 1500)]
CS = [0.01, 1.0, 100.0, 10_000.0]
HEAD = (
    f"{'machine':12}{'rows':>6}{'columns':>9}{'C':>7}{'ours':>8}{'others':>8}"
    f"{'peer':>8}  by"
)


def data(m, n, is_regression):
    """Rows, and labels or targets of variance 1, by 50 of the columns."""
    if not is_regression:
        return make_classification(m, n, n_informative=50, flip_y=0.05, random_state=0)
    X, y = make_regression(m, n, n_informative=50, noise=10.0, random_state=0)
    return X, (y - y.mean()) / y.std()


def seconds(rounds, fit):
    """The least time of some fits."""
    found = []
    for _ in range(rounds):
        begin = time.perf_counter()
        fit()
        found.append(time.perf_counter() - begin)
    return min(found)


def row(kind, X, y, C, rounds):
    """A line of the table."""
    options = {"kernel": "linear"} if kind in (SVC, SVR) else {}
    mine = kind(C=C, tol=1e-3, time_limit=30, **options)
    peer = getattr(sklearn.svm, kind.__name__)(C=C, **options)
    ours = seconds(rounds, lambda: mine.fit(X, y))
    by, most = mine.solution_.solver, linear_choice.MOST_WIDE
    linear_choice.MOST_WIDE = 0
    others = seconds(rounds, lambda: mine.fit(X, y))
    linear_choice.MOST_WIDE = most
    theirs = seconds(rounds, lambda: peer.fit(X, y))
    return (
        f"{kind.__name__:12}{X.shape[0]:>6}{X.shape[1]:>9}{C:>7g}{ours:>8.3f}"
        f"{others:>8.3f}{theirs:>8.3f}  {by}"
    )


def main():
    """Measure all tasks."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add = parser.add_argument
    add("--rounds", type=int, default=1)
    add("--output", type=Path, default=RESULTS / "linear")
    options = parser.parse_args()
    options.output.mkdir(parents=True, exist_ok=True)
    warnings.simplefilter("ignore")
    here = machine({})
    lines = [f"{here['cpu']}; {here['versions']}", HEAD]
    print("\n".join(lines))
    for m, n in SIZES:
        for kind in (SVC, LinearSVC, SVR, LinearSVR):
            X, y = data(m, n, kind in (SVR, LinearSVR))
            for C in CS:
                lines.append(row(kind, X, y, C, options.rounds))
                print(lines[-1], flush=True)
    (options.output / "wide.txt").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
