"""Random problems of five digits against five, as in Section 5."""

from pathlib import Path
from typing import NamedTuple

import numpy as np

TRAINING, TEST, STEP = 1000, 4000, 20
GAMMA = 0.5  # of exp(-gamma |x - z|^2): sigma = 1


class Split(NamedTuple):
    """A problem.

    Attributes
    ----------
    X, y : training points, of mean length 1, and labels of -1 and +1
    X_test, y_test : test points, scaled by the same factor
    seed : int
    """

    X: np.ndarray
    y: np.ndarray
    X_test: np.ndarray
    y_test: np.ndarray
    seed: int


def read(folder):
    """The training images of MNIST, (60000, 784) of 0 to 255, and their digits."""
    file = Path(folder, "mnist", "train.npz")
    if not file.exists():
        raise FileNotFoundError(f"there is no mnist/train.npz in {folder}")
    with np.load(file) as held:
        return held["X"].reshape(len(held["X"]), -1), held["y"]


def split(pixels, labels, seed, training=TRAINING, testing=TEST):
    """Five digits at random against the others; random points, none of them twice."""
    rng = np.random.default_rng(seed)
    positive = rng.permutation(10)[:5]
    rows = rng.permutation(len(labels))[: training + testing]
    X = pixels[rows].astype(np.float64)
    y = np.where(np.isin(labels[rows], positive), 1.0, -1.0)
    X /= np.linalg.norm(X[:training], axis=1).mean()
    return Split(X[:training], y[:training], X[training:], y[training:], seed)
