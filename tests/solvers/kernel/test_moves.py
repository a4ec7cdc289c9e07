"""Steps in the span of what pair steps did: how many they save, and that they hold."""

import numpy as np
import pytest
from sklearn.base import is_classifier
from sklearn.datasets import make_friedman1

from widemargin import SVC, SVR, NuSVC, NuSVR


def gaussians(m=1200):
    """Two in eight columns that overlap, and their classes."""
    rng = np.random.default_rng(0)
    y = np.arange(m) % 2
    return rng.normal(size=(m, 8)) + 0.6 * y[:, np.newaxis], y


def friedman(m=800):
    return make_friedman1(m, 10, noise=1.0, random_state=0)


# Steps of builds without moves; those of the three instruction sets differ by a twentieth.
@pytest.mark.parametrize(
    ("machine", "without"),
    [
        (SVC(C=300.0), 36_000),
        (SVC(C=300.0, intercept="penalized"), 39_000),
        (SVC(C=300.0, loss="squared_hinge", intercept="free"), 19_000),
        (SVC(C=300.0, loss="squared_hinge"), 22_000),
        (NuSVC(nu=0.32), 7_500),
        (SVR(C=100.0, gamma=1.0), 20_000),
        (SVR(C=100.0, gamma=1.0, intercept="penalized"), 22_500),
        (NuSVR(C=300.0, nu=0.3), 12_500),
    ],
)
def test_a_large_C_takes_fewer_steps(machine, without):
    X, y = gaussians() if is_classifier(machine) else friedman()
    if machine.gamma == "scale":
        machine.set_params(gamma=0.1)
    machine.set_params(tol=1e-4, n_jobs=1).fit(X, y)
    assert (machine.status_, machine.solution_.solver) == ("solved", "batch")
    assert machine.solution_.extras["steps"] < 0.8 * without


# Without moves it takes 7,900 and 30,100 steps, with moves that never end 37,400 and 42,600.
@pytest.mark.parametrize(("gamma", "most"), [(1 / 3, 12_000), (0.1, 26_000)])
def test_they_end_where_float32_has_no_more_digits(gamma, most):
    X, t = make_friedman1(1400, 30, random_state=0)
    machine = SVR(C=6400.0, epsilon=0.5, gamma=gamma, n_jobs=1).fit(X, t)
    assert (machine.status_, machine.solution_.solver) == ("solved", "batch")
    assert machine.solution_.extras["steps"] < most
