"""Certificates of sets as they were measured, not scaled, with C to 1e6."""

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine

from tests.certificates.draws import Case
from tests.certificates.judged import judge
from widemargin import Kernel

# A loader, and the pair of classes that are told apart.
SETS = {
    "iris": (load_iris, 1, 2),
    "wine": (load_wine, 0, 2),
    "cancer": (load_breast_cancer, 0, 1),
    "digits": (load_digits, 3, 8),
}
# The level, the kernel, the loss and the intercept.
MODELS = {
    "linear": ("LinearSVC", None, "hinge", "penalized"),
    "linear-free": ("LinearSVC", None, "hinge", "free"),
    "linear-squared": ("LinearSVC", None, "squared_hinge", "penalized"),
    "poly-2": ("SVC", Kernel("poly", gamma=1.0, degree=2, coef0=1.0), "hinge", "free"),
    "poly-3": ("SVC", Kernel("poly", gamma=1e-3, degree=3), "hinge", "free"),
    "rbf": ("SVC", Kernel("rbf", gamma=0.1), "hinge", "free"),
    "rbf-wide": ("SVC", Kernel("rbf", gamma=1e-6), "squared_hinge", "penalized"),
}
# Rows of a set, as exact kernel values of all pairs are needed.
MOST = 120


def natural(name, rows):
    """Some rows of two classes of a set, and their labels."""
    load, first, second = SETS[name]
    X, y = load(return_X_y=True)
    some = np.flatnonzero((y == first) | (y == second))
    some = np.random.default_rng(0).permutation(some)[:rows]
    return X[some], np.where(y[some] == second, 1.0, -1.0)


def check(name, model, C):
    level, kernel, loss, intercept = MODELS[model]
    X, y = natural(name, MOST)
    setting = {"loss": loss, "intercept": intercept, "kernel": kernel, "C": C}
    setting["max_iter"] = None
    verdict = judge(Case(0, 0, level, name, 1.0, "float64", X, y, None, **setting))
    assert verdict.status not in ("refused", "error"), verdict
    assert verdict.false == []


@pytest.mark.cover(1)
@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("name", SETS)
def test_the_largest_price(name, model):
    check(name, model, 1e6)


@pytest.mark.full
@pytest.mark.parametrize("C", [1e-3, 1.0, 1e2, 1e4])
@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("name", SETS)
def test_smaller_prices(name, model, C):
    check(name, model, C)
