"""Machines with a linear kernel predict by ``coef_``: that is what they certify.

The objective of ``coef_`` and ``intercept_`` in fractions, against the bounds stated.
"""

from fractions import Fraction

import numpy as np
import pytest

from tests.certificates.models import (
    assert_bounds,
    dot,
    fractions,
    objective,
    regression_objective,
    scores_of,
)
from widemargin import SVC, SVR, BudgetSVC, NuSVC, NuSVR, OneClassSVM

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")


def grid(seed, scale=10.0, m=30):
    rng = np.random.default_rng(seed)
    X = np.round(scale * rng.normal(size=(m, 2)))
    return X, X[:, 0] + rng.normal(size=m)


@pytest.mark.parametrize("solver", ["auto", "irwls"])
@pytest.mark.parametrize("C", [1e4, 1e8, 1e12])
def test_nu_svr(C, solver):
    for seed in range(2):
        X, y = grid(seed)
        machine = NuSVR(nu=0.5, C=C, kernel="linear", tol=1e-8, solver=solver)
        machine.set_params(max_iter=300).fit(X, y)
        epsilon = Fraction(machine.epsilon_)
        tube = Fraction(C) * Fraction(0.5) * len(y) * epsilon
        assert_bounds(machine, tube + regression_objective(machine, X, y, epsilon))


def test_nu_svr_whose_dual_variables_cancel():
    rng = np.random.default_rng(239)
    m, n = int(rng.integers(10, 40)), int(rng.integers(1, 4))
    X = np.round(rng.normal(size=(m, n)) * rng.choice([1, 10]))
    C, y = float(10.0 ** rng.uniform(11, 16)), X[:, 0] + rng.normal(size=m)
    nu = float(rng.choice([0.5, 1.0]))
    y = y * float(rng.choice([1, 1e-3]))
    machine = NuSVR(nu=nu, C=C, kernel="linear").fit(X, y)
    epsilon = Fraction(machine.epsilon_)
    exact = Fraction(C) * Fraction(nu) * m * epsilon
    exact += regression_objective(machine, X, y, epsilon)
    assert machine.status_ == "solved"
    assert_bounds(machine, exact)
    gap = (exact - Fraction(machine.solution_.certificate.dual)) / exact
    assert gap <= machine.dual_gap_ * (1 + 1e-6)


@pytest.mark.parametrize(
    ("C", "solver"), [(1.0, "batch"), (1e4, "irwls"), (1e8, "irwls"), (1e12, "irwls")]
)
def test_svr(C, solver):
    for seed in range(2):
        X, y = grid(seed)
        machine = SVR(kernel="linear", C=C, epsilon=0.125, tol=1e-8, solver=solver)
        machine.fit(X, y)
        exact = regression_objective(machine, X, y, Fraction(machine.epsilon))
        assert_bounds(machine, exact)


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
@pytest.mark.parametrize("C", [1e4, 1e8, 1e12])
def test_svc(C, loss):
    for seed in range(2):
        X, y = grid(seed)
        y = np.where(y + 5 * np.random.default_rng(seed).normal(size=30) > 0, 1, -1)
        machine = SVC(kernel="linear", C=C, tol=1e-8, solver="irwls", loss=loss)
        machine.set_params(max_iter=300, intercept="free").fit(X, y)
        w, f = scores_of(machine, X)
        power = 1 if loss == "hinge" else 2
        losses = [
            max(Fraction(0), 1 - int(s) * g) ** power for s, g in zip(y, f, strict=True)
        ]
        assert_bounds(machine, objective(w, f, losses, C))


@pytest.mark.parametrize("offset", [0.0, 1e6, 1e9])
def test_nu_svc_of_pairs(offset):
    X, y = grid(5, m=45)
    classes = np.digitize(y, [-4.0, 4.0])
    machine = NuSVC(nu=0.3, kernel="linear", tol=1e-8, max_iter=300)
    machine.fit(X + offset, classes)
    for k, (one, other) in enumerate([(0, 1), (0, 2), (1, 2)]):
        own = (classes == one) | (classes == other)
        solution, signs = machine.solutions_[k], np.where(classes[own] == one, 1, -1)
        if not solution.certificate.primal < 0.0:
            continue
        rho = Fraction(float(solution.rho))
        w, f = scores_of(machine, X[own] + offset, k)
        losses = [rho * (1 - int(s) * g) for s, g in zip(signs, f, strict=True)]
        exact = objective([rho * v for v in w], f, losses, 1.0)
        assert_bounds(
            machine, exact - Fraction(0.3 * own.sum()) * rho, solution.certificate
        )


@pytest.mark.parametrize("offset", [50.0, 1e6, 1e12])
def test_one_class(offset):
    X, _ = grid(7)
    machine = OneClassSVM(nu=0.3, kernel="linear", tol=1e-8).fit(X + offset)
    assert_bounds(machine, one_class_objective(machine, X + offset))


def one_class_objective(machine, X):
    """P of what predicts, whose rho is the offset."""
    rho, w = Fraction(float(machine.offset_[0])), fractions(machine.coef_)
    losses = [rho - dot(w, fractions(x)) for x in X]
    return objective(w, None, losses, 1.0) - Fraction(machine.nu * len(X)) * rho


@pytest.mark.parametrize("tol", [1e-4, 1e-8, 1e-10, 1e-12])
@pytest.mark.parametrize("least", [2.0 + 2e-4, 2.1, 4.0])
def test_one_class_near_the_origin(least, tol):
    """P is small beside rho: to round that down by 1e-11 of it took twenty times tol."""
    X = np.array([[-1.0], [least], [5.0]])
    machine = OneClassSVM(kernel="linear", nu=0.5, tol=tol).fit(X)
    exact, bounds = one_class_objective(machine, X), machine.solution_.certificate
    assert bounds.dual <= exact <= bounds.primal
    assert machine.offset_[0] == machine.solution_.rho
    assert (machine.status_ == "solved") == (machine.dual_gap_ <= tol)
    if tol > 1e-10 or least > 2.1:  # else rounding is in the way of the fit itself
        assert machine.status_ == "solved"
        assert (machine.decision_function(X) >= 0.0).tolist() == [False, True, True]
    else:
        assert machine.dual_gap_ <= 1e-9


def test_budget_svc():
    X, y = grid(3)
    machine = BudgetSVC(budget=5, kernel="linear", C=1e4).fit(X, np.where(y > 0, 1, -1))
    w, f = scores_of(machine, X)
    losses = [1 - int(s) * g for s, g in zip(np.where(y > 0, 1, -1), f, strict=True)]
    assert objective(w, f, losses, 1e4) <= Fraction(float(machine.primal_[0]))


def test_rounding_of_weights_that_costs_tol_is_told():
    """Weights of a number that is far from zero round by more than the gap asked for."""
    X, y = grid(0, scale=1e3)
    machine = SVR(kernel="linear", C=1e15, epsilon=0.125, tol=1e-15, solver="irwls")
    machine.fit(X, y)
    assert (machine.status_ == "solved") == (machine.dual_gap_ <= 1e-15)
