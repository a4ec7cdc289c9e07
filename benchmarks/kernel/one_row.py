"""How long `predict` takes for one row, and for many, beside scikit-learn.

Both have the same data and parameters; the times of one process take turns. For each
case: median microseconds of `predict` of one row, of a fitted estimator and of a model
that was saved and loaded, over that of scikit-learn; and the same for many rows.
"""

import argparse
import os
import statistics
import tempfile
import time

import numpy as np
import sklearn.svm
from scipy import sparse
from sklearn.datasets import load_breast_cancer, load_digits, load_iris
from sklearn.preprocessing import StandardScaler

import widemargin
from benchmarks.datasets import a9a, find
from benchmarks.environment import list_of

# Of each kind of call, at least so many and so many seconds.
CALLS, SECONDS = 15, 2.0
MANY = 5000  # rows at most, of a batch


def scaled(load):
    """A set of scikit-learn's, standardized."""

    def read(folder):
        X, y = load(return_X_y=True)
        return StandardScaler().fit_transform(X), y

    return read


def letter(folder):
    """Letters: 26 classes, 16 columns; the training rows there are."""
    from_file = find(folder, "letter", "train.*")
    if from_file.suffix == ".npz":
        with np.load(from_file) as arrays:
            return arrays["X"].astype(np.float64), arrays["y"]
    X, y = widemargin.load_svmlight(from_file)
    return X.toarray(), y


def part_of_a9a(folder):
    """The first 10,000 rows of Adult, CSR."""
    X, y = a9a(folder)
    return sparse.csr_matrix(X)[:10_000], y[:10_000]


def kernel(C, gamma="scale"):
    """Our machine with a Gaussian kernel and scikit-learn's."""
    options = {"C": C, "gamma": gamma}
    return widemargin.SVC(**options), sklearn.svm.SVC(**options)


def linear(C):
    """Our linear machine and scikit-learn's, on the problem of LIBLINEAR."""
    ours = widemargin.LinearSVC(C=C, loss="squared_hinge")
    return ours, sklearn.svm.LinearSVC(C=C)


CASES = {
    "iris": (scaled(load_iris), kernel(1.0)),
    "breast_cancer": (scaled(load_breast_cancer), kernel(1.0)),
    "digits": (lambda folder: load_digits(return_X_y=True), kernel(1.0)),
    "letter": (letter, kernel(10.0, 0.1)),
    "a9a": (part_of_a9a, kernel(1.0, 0.05)),
    "digits linear": (scaled(load_digits), linear(0.01)),
    "a9a linear": (part_of_a9a, linear(0.1)),
}


def main():
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cases", type=list_of(CASES), default=list(CASES))
    parser.add_argument("--data", help="folder of further sets: NAME/train.*")
    options = parser.parse_args()
    heads = "vectors sklearn/us ours/us ratio loaded many:sk/ms ours/ms ratio"
    print(f"{'case':15}" + "".join(f"{head:>11}" for head in heads.split()))
    for name in options.cases:
        load, peers = CASES[name]
        try:
            X, y = load(options.data)
        except FileNotFoundError as reason:
            print(f"{name}: skipped, {reason}")
            continue
        measure(name, X, y, *peers)


def measure(name, X, y, ours, theirs):
    """Fit, time and print one case."""
    ours.fit(X, y)
    theirs.fit(X, y)
    loaded = reloaded(ours)
    rows = [X[i : i + 1] for i in range(min(50, X.shape[0]))]
    predict = [model.predict for model in (theirs, ours, loaded)]
    one = medians(predict, rows)
    many = medians(predict, [X[:MANY]])
    vectors = len(getattr(theirs, "support_", ()))
    cells = [one[0] * 1e6, one[1] * 1e6, one[1] / one[0], one[2] / one[0]]
    cells += [many[0] * 1e3, many[1] * 1e3, many[1] / many[0]]
    print(f"{name:15}{vectors:11,}" + "".join(f"{cell:11.2f}" for cell in cells))


def reloaded(estimator):
    """The model in a file, and back."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "model.wm")
        widemargin.save_model(estimator, path)
        return widemargin.load_model(path)


def medians(calls, arguments):
    """Median seconds of each call, which take turns over the arguments."""
    for call in calls:
        call(arguments[0])
    times = [[] for _ in calls]
    end = time.perf_counter() + SECONDS
    while time.perf_counter() < end or len(times[0]) < CALLS:
        argument = arguments[len(times[0]) % len(arguments)]
        for call, of_call in zip(calls, times, strict=True):
            begin = time.perf_counter()
            call(argument)
            of_call.append(time.perf_counter() - begin)
    return [statistics.median(of_call) for of_call in times]


if __name__ == "__main__":
    main()
