"""What a prediction of a linear classifier takes, beside scikit-learn's.

Text has many columns and often many classes: the weights are then more numbers than the
rows. Both machines have the same weights. Milliseconds by the clock on one thread, the
least of medians of calls in turns, and their ratio. Prints a table.
"""

import argparse
import time
import warnings

import numpy as np
from scipy import sparse
from sklearn import svm
from threadpoolctl import threadpool_limits

import widemargin

# Columns, classes and the share of the entries of sparse rows that are stored.
SHAPES = (
    (100, 2, 0.1),
    (100, 3, 0.1),
    (1000, 5, 0.01),
    (10_000, 10, 0.001),
    (20_000, 20, 0.001),
    (50_000, 2, 0.001),
    (50_000, 20, 0.001),
    (100_000, 5, 0.001),
    (100_000, 20, 0.001),
)
ROWS = (1, 50, 500, 2000)
MOST_DENSE = 50_000_000  # numbers: larger rows take what memory takes
METHODS = ("decision_function", "predict")
ROUNDS, SECONDS, LEAST_CALLS = 3, 0.1, 5


def median_ms(call, X):
    """The median time of some calls."""
    times, start = [], time.perf_counter()
    while len(times) < LEAST_CALLS or time.perf_counter() - start < SECONDS:
        before = time.perf_counter()
        call(X)
        times.append(time.perf_counter() - before)
    return 1e3 * float(np.median(times))


def machines(X, y):
    """Ours and theirs with the same weights, as the own fit of each lays them out."""
    ours = widemargin.LinearSVC(tol=0.9).fit(X, y)
    theirs = svm.LinearSVC(max_iter=1).fit(X, y)
    theirs.coef_[:], theirs.intercept_[:] = ours.coef_, ours.intercept_
    return ours, theirs


def blocks(X):
    """Rows as they are and dense, where there is room, with what they are."""
    for m in ROWS:
        yield m, "sparse", X[:m]
        if m * X.shape[1] <= MOST_DENSE:
            yield m, "dense", X[:m].toarray()


def compare(n, k, density):
    """Print the lines of one shape."""
    X = sparse.random(ROWS[-1], n, density, format="csr", random_state=0)
    ours, theirs = machines(X[:200], np.arange(200) % k)
    for m, storage, rows in blocks(X):
        for method in METHODS:
            calls = [getattr(one, method) for one in (theirs, ours)]
            rounds = [[median_ms(f, rows) for f in calls] for _ in range(ROUNDS)]
            peer, own = np.min(rounds, axis=0)
            print(f"{n:8}{k:8}{m:6}  {storage:8}{method:18}", end="")
            print(f"{peer:12.3f}{own:9.3f}{own / peer:7.2f}", flush=True)


def main():
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--columns", type=int, nargs="*", help="these only")
    chosen = parser.parse_args().columns
    warnings.simplefilter("ignore")  # of fits that are not finished
    print(f"{'columns':>8}{'classes':>8}{'rows':>6}  {'':8}{'':18}", end="")
    print(f"{'scikit-learn':>12}{'ours':>9}{'ratio':>7}")
    for shape in SHAPES:
        if not chosen or shape[0] in chosen:
            compare(*shape)


if __name__ == "__main__":
    with threadpool_limits(1):
        main()
