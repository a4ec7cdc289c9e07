"""What the tests of SVC with a rank share: data, and names."""

import pytest
from sklearn.datasets import load_digits, make_moons

LANDMARKS = ["cholesky", "nystroem", "eigen"]
METHODS = [*LANDMARKS, "fourier"]
INTERCEPTS = ["free", "penalized", "none"]
LOSSES = ["hinge", "squared_hinge"]
POLYNOMIAL = {
    "kernel": "poly",
    "degree": 2,
    "coef0": 1.0,
    "rank": 1000,
    "approximation": "polynomial",
}


@pytest.fixture(name="moons", scope="module")
def moons_data():
    return make_moons(400, noise=0.25, random_state=0)


@pytest.fixture(name="digits", scope="module")
def digits_data():
    X, y = load_digits(return_X_y=True)
    return X[:400] / 16.0, y[:400]


def several(y):
    """Three classes of digits, or two."""
    return {"binary": y > 4, "ovo": y % 4, "ovr": y % 4}
