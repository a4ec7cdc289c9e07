"""Fits of several threads at once do not disturb each other: nothing in the core is shared."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from sklearn.datasets import load_digits

from widemargin import SVC, SVR, BudgetSVC, LinearSVC, OneClassSVM

X, Y = load_digits(n_class=5, return_X_y=True)
X = X[:200] / 16.0
Y = Y[:200]
MACHINES = [
    LinearSVC(n_jobs=1),
    LinearSVC(loss="hinge", solver="coordinate_descent", random_state=0, n_jobs=1),
    SVC(n_jobs=1),
    SVC(solver="irwls", n_jobs=1),
    SVR(n_jobs=1),
    BudgetSVC(budget=5, n_jobs=1),
    OneClassSVM(n_jobs=1),
]


def scores(machine):
    """What a fresh fit says of the rows."""
    fitted = type(machine)(**machine.get_params()).fit(X, Y)
    values = getattr(fitted, "decision_function", fitted.predict)
    return values(X)


@pytest.fixture(scope="module")
def alone():
    return [scores(machine) for machine in MACHINES]


@pytest.mark.one_of(3)
@pytest.mark.parametrize("turn", range(3))
def test_fits_at_once_are_those_of_one_thread(alone, turn):
    """The machines meet others in each turn."""
    order = np.random.default_rng(turn).permutation(
        np.tile(np.arange(len(MACHINES)), 2)
    )
    with ThreadPoolExecutor(4) as pool:
        found = pool.map(lambda k: scores(MACHINES[k]), order)
        for k, values in zip(order, found, strict=True):
            assert np.array_equal(values, alone[k]), MACHINES[k]
