"""Data of the test problems: small, of every kind that has broken a trainer."""

from functools import cache

import numpy as np
from sklearn.datasets import load_breast_cancer, load_digits
from sklearn.preprocessing import StandardScaler


def ellipse():
    """The toy of the CRSVM paper: inside or outside of an ellipse, mapped by (2.5)."""
    rng = np.random.default_rng(0)
    x = rng.uniform(-1.5, 1.5, (1726, 2))
    value = x[:, 0] ** 2 / 1.0 + x[:, 1] ** 2 / 0.49
    y = np.where(value + 0.15 * rng.normal(size=len(x)) < 1.0, 1.0, -1.0)
    X = np.c_[x[:, 0] ** 2, x[:, 1] ** 2, np.sqrt(2.0) * x[:, 0] * x[:, 1]]
    return X, y


def breast_cancer():
    """Real, 569 x 30, standardized; separable but for a few rows."""
    X, y = breast_cancer_raw()
    return StandardScaler().fit_transform(X), y


def breast_cancer_raw():
    """The same as measured: scales from 1e-3 to 1e3, means far from zero."""
    data = load_breast_cancer()
    return data.data, np.where(data.target, 1.0, -1.0)


def digits():
    """Real, 1797 x 64: the digit 3 against the rest."""
    data = load_digits()
    return data.data / 16.0, np.where(data.target == 3, 1.0, -1.0)


def ndc(m=3000, n=16):
    """Normally distributed clusters, labeled by a plane through their centers."""
    rng = np.random.default_rng(1)
    centers = rng.uniform(-1.0, 1.0, (30, n))
    label = np.sign(centers @ rng.normal(size=n))
    cluster = rng.integers(0, 30, m)
    return centers[cluster] + 0.4 * rng.normal(size=(m, n)), label[cluster]


def imbalanced():
    """10 rows of 5000 positive, no structure."""
    rng = np.random.default_rng(2)
    y = -np.ones(5000)
    y[:10] = 1.0
    return rng.normal(size=(5000, 8)), y


def separable():
    """A plane separates the classes."""
    rng = np.random.default_rng(3)
    X = rng.normal(size=(2000, 10))
    return X, np.sign(X @ rng.normal(size=10))


def noise():
    """Labels by coin toss."""
    rng = np.random.default_rng(4)
    return rng.normal(size=(1000, 12)), np.sign(rng.normal(size=1000))


def shifted():
    """Unit variance around a mean of 1e6."""
    rng = np.random.default_rng(5)
    X = rng.normal(size=(800, 6))
    y = np.sign(X @ rng.normal(size=6) + 0.5 * rng.normal(size=800))
    return X + 1e6, y


def badly_scaled():
    """Features from 1e-6 to 1e6."""
    rng = np.random.default_rng(6)
    X = rng.normal(size=(800, 7))
    y = np.sign(X @ rng.normal(size=7) + 0.5 * rng.normal(size=800))
    return X * 10.0 ** np.arange(-6, 8, 2)[:7], y


def degenerate():
    """Duplicate rows, a constant, a zero and a repeated column."""
    rng = np.random.default_rng(7)
    X = np.repeat(rng.normal(size=(60, 4)), 5, axis=0)
    y = np.sign(X[:, 0] + np.repeat(0.5 * rng.normal(size=60), 5))
    return np.c_[X, np.ones(300), np.zeros(300), X[:, 0]], y


def wide():
    """More columns than rows."""
    rng = np.random.default_rng(8)
    X = rng.normal(size=(60, 200))
    return X, np.sign(X[:, 0] + rng.normal(size=60))


PROBLEMS = {
    f.__name__: cache(f)
    for f in (
        ellipse,
        breast_cancer,
        breast_cancer_raw,
        digits,
        ndc,
        imbalanced,
        separable,
        noise,
        shifted,
        badly_scaled,
        degenerate,
        wide,
    )
}
