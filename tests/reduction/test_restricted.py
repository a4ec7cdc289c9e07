"""Bounds of problems that are restricted to a few kernel functions."""

from fractions import Fraction

import numpy as np
import pytest

from tests.certificates.exact import kernel_matrix
from tests.conftest import SETTINGS
from widemargin import Kernel, Problem, solve
from widemargin.reduction.restricted import Features, Refits, SolvedProblem
from widemargin.solvers.driver.limits import Limits

M = 16


def solved_exactly(K, g):
    """K^-1 g of Fractions, by elimination."""
    rows = [[*row, right] for row, right in zip(K, g, strict=True)]
    for j, pivot in enumerate(rows):
        for i, row in enumerate(rows):
            if i != j:
                factor = row[j] / pivot[j]
                rows[i] = [a - factor * p for a, p in zip(row, pivot, strict=True)]
    return [row[-1] / row[j] for j, row in enumerate(rows)]


def exact_bound(problem, K, J, alpha):
    """D at alpha, which is feasible exactly, of the problem restricted to J."""
    c = [Fraction(a) * int(y) for a, y in zip(alpha, problem.y, strict=True)]
    assert problem.intercept != "free" or sum(c) == 0
    KJ = np.array(K.fractions(), object).reshape(M, M)[J]
    g = [sum(k * a for k, a in zip(row, c, strict=True)) for row in KJ]
    b = solved_exactly(KJ[:, J].tolist(), g)
    square = sum(x * z for x, z in zip(g, b, strict=True))
    square += sum(c) ** 2 if problem.intercept == "penalized" else 0
    D = sum(map(Fraction, alpha)) - square / 2
    if problem.loss == "squared_hinge":
        pairs = zip(alpha, problem.C, strict=True)
        D -= sum(Fraction(a) ** 2 / (4 * Fraction(C)) for a, C in pairs)
    return D


@pytest.mark.parametrize(("loss", "intercept"), SETTINGS)
@pytest.mark.parametrize("scale", [1.0, 1e-3])
def test_the_lower_bound_is_one_in_exact_arithmetic(loss, intercept, scale):
    """Float64 without bounds was too large in about half of the cases."""
    rng = np.random.default_rng(0)
    X, y = scale * rng.normal(size=(M, 2)), np.tile([1.0, -1.0], M // 2)
    problem = Problem(X, y, 1.0, loss, intercept, kernel=Kernel("rbf", gamma=0.4))
    K = kernel_matrix(problem.kernel, X)
    refits = Refits(Limits(1e-6), 1e-6, 1 << 30)
    whole = SolvedProblem(problem, solve(problem, tol=1e-3), refits)
    for k in (1, 2, 3):
        features = Features(whole, np.arange(3))
        for _ in range(5):  # pairs of one alpha: y'alpha is zero
            alpha = np.repeat(rng.uniform(0.0, 1.0, M // 2), 2)
            D = exact_bound(problem, K, np.arange(k), alpha)
            found = features.lower_bound(alpha, k)
            assert Fraction(found) <= D
            assert float(D) - found <= 1e-9 * alpha.sum()
