"""With C=inf the numbers that are returned reach all margins, to the last digit.

In fractions: scaled to margins of 1 they are rounded, which may not cost a margin.
"""

from fractions import Fraction

import numpy as np
import pytest

from tests.certificates.models import assert_bounds, dot, fractions, scores_of
from widemargin import SVC, SVR, LinearSVC, LinearSVR

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")
# Of offsets of the data, which the intercept has to cancel.
OFFSETS = [0.0, 1e4, 1e8]


def separable(offset, m=20):
    rng = np.random.default_rng(int(np.log10(offset + 1.0)))
    X = np.round(8.0 * rng.normal(size=(m, 3)))
    X[:, 0] += np.where(X[:, 0] > 0.0, 1.0, -1.0)
    return X + offset, np.where(X[:, 0] > 0.0, 1, -1)


def penalty(machine):
    b = Fraction(float(machine.intercept_[0]))
    return b * b if machine.intercept == "penalized" else Fraction(0)


def assert_reaches(machine, y, scores, square):
    """All margins are reached, by a model whose objective is stated."""
    if np.isfinite(machine.solution_.certificate.primal):
        assert min(int(s) * f for s, f in zip(y, scores, strict=True)) >= 1
        assert_bounds(machine, (square + penalty(machine)) / 2)


@pytest.mark.parametrize("intercept", ["free", "penalized"])
@pytest.mark.parametrize("offset", OFFSETS)
def test_linear_svc(offset, intercept):
    X, y = separable(offset)
    for tol in (1e-3, 1e-4, 1e-6, 1e-9):
        machine = LinearSVC(C=np.inf, intercept=intercept, loss="hinge", tol=tol)
        w, f = scores_of(machine.fit(X, y), X)
        assert_reaches(machine, y, f, dot(w, w))


@pytest.mark.parametrize("offset", OFFSETS)
def test_linear_kernel(offset):
    X, y = separable(offset)
    for tol in (1e-3, 1e-4, 1e-6, 1e-9):
        machine = SVC(kernel="linear", solver="irwls", C=np.inf, tol=tol)
        w, f = scores_of(machine.fit(X, y), X)
        assert_reaches(machine, y, f, dot(w, w))


@pytest.mark.parametrize("offset", OFFSETS)
def test_kernel(offset):
    X, y = separable(offset)
    rows = [fractions(x) for x in X]
    for tol in (1e-3, 1e-4, 1e-6, 1e-9):
        machine = SVC(kernel="poly", degree=1, gamma=1.0, coef0=1.0, C=np.inf, tol=tol)
        machine.fit(X, y)
        c, J = fractions(machine.dual_coef_), machine.support_
        g = [
            sum(a * (dot(rows[j], x) + 1) for a, j in zip(c, J, strict=True))
            for x in rows
        ]
        b = Fraction(float(machine.intercept_[0]))
        square = sum(a * g[j] for a, j in zip(c, J, strict=True))
        assert_reaches(machine, y, [f + b for f in g], square)


@pytest.mark.parametrize("offset", OFFSETS)
def test_regressions(offset):
    X, _ = separable(offset)
    y = 0.3 * (X[:, 0] - offset) + np.random.default_rng(0).uniform(-0.1, 0.1, len(X))
    for machine in (LinearSVR(), SVR(kernel="linear", solver="irwls")):
        machine.set_params(C=np.inf, epsilon=0.15).fit(X, y)
        w, f = scores_of(machine, X) if np.ndim(machine.coef_) > 1 else flat(machine, X)
        if np.isfinite(machine.solution_.certificate.primal):
            misses = [abs(t - g) for t, g in zip(fractions(y), f, strict=True)]
            assert max(misses) <= Fraction(0.15)
            assert_bounds(machine, dot(w, w) / 2)


def flat(machine, X):
    w, b = fractions(machine.coef_), Fraction(float(machine.intercept_[0]))
    return w, [dot(w, fractions(x)) + b for x in X]


@pytest.mark.parametrize("machine", [LinearSVC(), SVC(kernel="linear"), SVC()])
def test_plain_ones_are_solved(machine):
    X, y = separable(0.0)
    machine.set_params(C=np.inf, tol=1e-6)
    assert machine.fit(X, y).status_ == "solved"
