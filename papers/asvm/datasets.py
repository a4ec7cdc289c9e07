"""The data of Section 4, but for the clusters, which `make_ndc` makes; and small sets.

A set is of `papers.crsvm.datasets.Dataset`: name, X, y, inputs.
"""

import numpy as np

from papers.crsvm import datasets
from papers.crsvm.datasets import ADULT, Dataset, ellipse
from papers.files import read as read_file
from widemargin import make_ndc

# Name -> label of the positive class; the others are the negative one. In cleveland
# class 0 is a healthy heart. That Table 1 has these six is recalled: the circulating
# text names none.
UCI = {
    "liver-disorders": 1,
    "cleveland": 0,
    "pima": 1,
    "ionosphere": 1,
    "tic-tac-toe": 1,
    "votes": 1,
}


def read(folder, name):
    """One of the six sets of UCI, raw, or one of the Adult series."""
    if name in ADULT:
        return datasets.adult(folder, name)
    X, y = read_file(folder, name)
    X = X.toarray()
    if name == "tic-tac-toe":
        X = crosses(X)
    return Dataset(name, X, np.where(y == UCI[name], 1.0, -1.0), X.shape[1])


def crosses(X):
    """A cell with b, o or x (0, 1, 2) as 0, -1 or 1."""
    return np.where(X == 1.0, -1.0, np.where(X == 2.0, 1.0, 0.0))


def small():
    """Sets on which the behavior of Algorithm 3.1 is shown: overlapping and not."""
    from sklearn.datasets import load_breast_cancer, load_digits

    X, y = load_breast_cancer(return_X_y=True)
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    yield Dataset("breast cancer", X, np.where(y == 1, 1.0, -1.0), X.shape[1])
    X, y = load_digits(return_X_y=True)
    yield Dataset("digits, 3", X / 16.0, np.where(y == 3, 1.0, -1.0), X.shape[1])
    yield ellipse()[1]
    for m in (5_000, 100_000):
        yield Dataset(f"NDC {m:,}", *make_ndc(m), 32)
