"""Everyday data: some hundred to some thousand rows, mostly several classes."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy import sparse
from sklearn import datasets
from sklearn.preprocessing import MaxAbsScaler, StandardScaler

from benchmarks.datasets import find
from benchmarks.linear.text import documents
from widemargin import load_svmlight

# Classes of Statlog's satellite images, and what share of the rows is theirs.
SHARES = (0.242, 0.108, 0.217, 0.094, 0.106, 0.233)


class Small(NamedTuple):
    """A set: X and y of a folder, gamma, and what is known to take too long."""

    read: Callable
    gamma: float | str = "scale"
    slow: tuple = ()


def scaled(load):
    """A set of scikit-learn, each column with mean 0 and variance 1."""

    def read(folder):
        X, y = load(return_X_y=True)
        return StandardScaler().fit_transform(X), y

    return read


def digits(folder):
    """1,797 x 64, pixels divided by 16."""
    X, y = datasets.load_digits(return_X_y=True)
    return X / 16.0, y


def moons(m):
    """Two half circles with noise."""
    return lambda folder: datasets.make_moons(m, noise=0.3, random_state=0)


def file(name):
    """FOLDER/name/train.svm, dense, each column divided by its largest value."""

    def read(folder):
        X, y = load_svmlight(find(folder, name, "train.svm*"))
        X = MaxAbsScaler().fit_transform(X)
        return X.toarray() if sparse.issparse(X) else X, y

    return read


def satellite(folder, m=4435):
    """As Statlog's satellite images: 4 bands of 9 pixels, 6 classes that overlap."""
    rng = np.random.default_rng(0)
    y = rng.choice(len(SHARES), m, p=SHARES)
    centers = rng.normal(size=(len(SHARES), 4))
    place = centers[y] + 0.5 * rng.normal(size=(m, 4))  # of a whole neighborhood
    X = place[:, np.newaxis, :] + 0.4 * rng.normal(size=(m, 9, 4))
    return X.reshape(m, 36), y


def mnist(folder):
    """60,000 x 784, ten classes, pixels divided by 255."""
    with np.load(find(folder, "mnist", "train.npz")) as arrays:
        X, y = arrays["X"], arrays["y"]
    return X.reshape(len(X), -1) / 255.0, y


SETS = {
    "iris": Small(scaled(datasets.load_iris)),
    "wine": Small(scaled(datasets.load_wine)),
    "breast_cancer": Small(scaled(datasets.load_breast_cancer)),
    "moons-100": Small(moons(100)),
    "moons-500": Small(moons(500)),
    "moons-2000": Small(moons(2000)),
    "digits": Small(digits),
    "pendigits": Small(file("pendigits"), 0.02),
    "letter": Small(file("letter"), 0.1),
    "usps": Small(file("usps"), 0.01),
    "satellite": Small(satellite),
    "documents": Small(lambda folder: documents()),
    "mnist": Small(mnist, 0.02, slow=("sklearn",)),
}
LARGE = ("mnist",)
LINEAR = ("iris", "wine", "breast_cancer", "digits")
