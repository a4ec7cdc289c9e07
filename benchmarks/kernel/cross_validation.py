"""How long it takes to choose C and gamma, beside searches that fit point by point.

`SVCCV` against scikit-learn's `GridSearchCV` over our `SVC` and over its own, with the
same folds: 10 values of C and 5 folds, with one gamma and with five, all points or
without those that cannot win; `SVRCV` likewise;
and `linear_svc_path` of 20 values of C against one fit. Times are by the clock and, in
brackets, of the processor, of all threads (a busy machine stretches the former), each
the least of some runs that take turns. Ratios are by the clock.
"""

import argparse
import time
import warnings

import numpy as np
import sklearn.svm
from scipy import sparse
from sklearn.datasets import make_friedman1
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV

from benchmarks.datasets import a9a, find
from benchmarks.environment import list_of
from widemargin import (
    SVC,
    SVCCV,
    SVR,
    SVRCV,
    LinearSVC,
    linear_svc_path,
    load_svmlight,
)

CS = np.logspace(-2, 3, 10)
FACTORS = np.logspace(-1, 1, 5)  # of gamma, around "scale"
ROWS = 5_000
TOL = 1e-3


def pendigits(folder):
    """10 classes, 16 columns."""
    X, y = load_svmlight(find(folder, "pendigits", "train.svm*"))
    return sparse.csr_matrix(X).toarray()[:ROWS] / 100.0, y[:ROWS]


def adult(folder):
    """2 classes, 123 columns of which 14 are not zero."""
    X, y = a9a(folder)
    return X[:ROWS], y[:ROWS]


def kdd99(folder):
    """The most frequent class against the rest, 494,021 rows; columns of one size."""
    X, y = load_svmlight(find(folder, "kdd99_10pc", "train.svm*"))
    X = sparse.csr_matrix(X, dtype=np.float64)
    largest = abs(X).max(axis=0).toarray()[0]
    X.data /= largest[X.indices]
    classes, counts = np.unique(y, return_counts=True)
    return X, np.where(y == classes[counts.argmax()], 1.0, -1.0)


def friedman(folder):
    """A regression of 10 columns, of which 5 matter, with noise."""
    return make_friedman1(2_000, noise=1.0, random_state=0)


CLASSIFY = SVCCV, SVC, sklearn.svm.SVC
REGRESS = SVRCV, SVR, sklearn.svm.SVR
KERNEL = {
    "pendigits": (pendigits, CLASSIFY),
    "a9a": (adult, CLASSIFY),
    "friedman": (friedman, REGRESS),
}


def main():
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    cases = [*KERNEL, "kdd99_10pc"]
    parser.add_argument("--cases", type=list_of(cases), default=cases)
    parser.add_argument("--data", help="folder of further sets: NAME/train.*")
    parser.add_argument("--repeat", type=int, default=3)
    options = parser.parse_args()
    warnings.simplefilter("ignore", ConvergenceWarning)
    for name in options.cases:
        if name in KERNEL:
            load, kinds = KERNEL[name]
            X, y = load(options.data)
            for factors in ([1.0], FACTORS):
                grids(name, X, y, factors, options.repeat, kinds)
        else:
            path(name, *kdd99(options.data), options.repeat)


def grids(name, X, y, factors, repeat, kinds):
    """Times of searches over one grid."""
    mean = X.mean()
    square = X.multiply(X).mean() if sparse.issparse(X) else (X * X).mean()
    gammas = np.asarray(factors) / (X.shape[1] * (square - mean**2))
    grid = {"C": CS, "gamma": gammas}
    chosen, machine, theirs = kinds
    searches = {
        "at once": chosen(Cs=CS, gammas=gammas, tol=TOL),
        "without losers": chosen(Cs=CS, gammas=gammas, tol=TOL, skip_losers=True),
        "GridSearchCV(ours)": GridSearchCV(machine(tol=TOL), grid, cv=5),
        "GridSearchCV(sklearn)": GridSearchCV(theirs(), grid, cv=5),
    }
    del searches["without losers" if len(gammas) == 1 else "GridSearchCV(sklearn)"]
    times = least({k: lambda s=s: s.fit(X, y) for k, s in searches.items()}, repeat)
    found = searches["at once"]
    print(f"{name}: {X.shape[0]:,} rows, 5 folds x {len(gammas)} gammas x 10 C")
    print(f"  largest relative gap {found.path_.max():.1e}, C {found.C_:.3g}")
    for key, (clock, cpu) in times.items():
        ratio, score = clock / times["at once"][0], searches[key].best_score_
        said = f"{clock:9.2f} s ({cpu:.2f}){ratio:8.1f} x   best score {score:.4f}"
        print(f"  {key:24}{said}")


def path(name, X, y, repeat):
    """Times of a linear path and of single fits."""
    Cs = np.logspace(-2, 2, 20)
    calls = {
        "linear_svc_path, 20 C": lambda: linear_svc_path(X, y, Cs=Cs),
        "LinearSVC(C=1)": lambda: LinearSVC().fit(X, y),
        "LinearSVC, mean of 20 C": lambda: [LinearSVC(C=C).fit(X, y) for C in Cs],
    }
    times = least(calls, repeat)
    times["LinearSVC, mean of 20 C"] /= len(Cs)
    print(f"{name}: {X.shape[0]:,} rows, squared hinge, {len(Cs)} C")
    whole = times["linear_svc_path, 20 C"][0]
    for key, (clock, cpu) in times.items():
        part = f"the path is {whole / clock:6.1f} of it"
        print(f"  {key:24}{clock:9.2f} s ({cpu:.2f})   {part}")


def least(calls, repeat):
    """The least seconds of each call, by the clock and of the processor."""
    times = {key: np.full(2, np.inf) for key in calls}
    for _ in range(repeat):
        for key, call in calls.items():
            begin = np.array([time.perf_counter(), time.process_time()])
            call()
            spent = np.array([time.perf_counter(), time.process_time()]) - begin
            times[key] = np.minimum(times[key], spent)
    return times


if __name__ == "__main__":
    main()
