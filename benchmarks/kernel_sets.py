"""The problems with a kernel: data sets, C and gamma of the literature."""

from typing import NamedTuple

import numpy as np
from scipy import sparse

from benchmarks.datasets import DATASETS, find
from widemargin import load_svmlight


class Task(NamedTuple):
    """A problem on a set, and where its predictions are timed."""

    C: float
    gamma: float
    test: str | None = None
    test_rows: int | None = None


# Adult and Web as in the experiments of Platt (1998) with sigma^2 = 10.
TASKS = {
    "a8a": Task(1.0, 0.05),
    "a9a": Task(1.0, 0.05, "a9a-test"),
    "w7a": Task(5.0, 0.05),
    "w8a": Task(5.0, 0.05, "w8a", 20_000),  # has no test rows
    "ijcnn1": Task(8.0, 2.0),
    "covtype_20k": Task(10.0, 1.0),
    "mnist": Task(10.0, 0.02),
}


def a9a_test(folder):
    """The 16,281 test rows of Adult, 123 columns."""
    return load_svmlight(find(folder, "a9a", "test.svm*"), n_features=123)


def ijcnn1_test(folder):
    """The 91,701 test rows of IJCNN 2001, 22 columns."""
    X, y = load_svmlight(find(folder, "ijcnn1", "test.svm*"), n_features=22)
    return sparse.csr_matrix(X), np.where(y == 1, 1.0, -1.0)


def mnist_test(folder):
    """10,000 digits, even against odd, pixels divided by 255."""
    with np.load(find(folder, "mnist", "test.npz")) as arrays:
        X, y = arrays["X"], arrays["y"]
    return X.reshape(len(X), -1) / 255.0, np.where(y % 2 == 0, 1.0, -1.0)


KERNEL_SETS = {**DATASETS, "a9a-test": a9a_test}
TESTS = {"a9a": a9a_test, "ijcnn1": ijcnn1_test, "mnist": mnist_test}


def divided(name, folder, rows=None):
    """Rows to train with, at most so many, and rows to test, each with their labels.

    A set that has no test rows keeps a fifth of its rows for them.
    """
    X, y = KERNEL_SETS[name](folder)
    order = np.random.default_rng(0).permutation(len(y))
    if name in TESTS:
        test = TESTS[name](folder)
    else:
        kept, order = np.sort(order[: len(y) // 5]), order[len(y) // 5 :]
        test = X[kept], y[kept]
    chosen = np.sort(order[:rows])
    return (X[chosen], y[chosen]), test
