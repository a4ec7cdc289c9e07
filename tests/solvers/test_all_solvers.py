"""Every solver on every problem: the same answer as an independent conic solver."""

import itertools
import re

import numpy as np
import pytest
from conftest import PROBLEMS, SETTINGS, SOLVERS
from reference import objective, reference_objective

from widemargin import Problem, solve
from widemargin.solvers import auto

TOL = 1e-8

# A mean of 1e6 beside a deviation of 1 cannot be centred away where b is not free: 12 of
# 16 digits are lost. The answer must be usable and say what helps (test_shift below).
ILL_POSED = {
    ("shifted", "hinge", intercept, C)
    for intercept in ("penalized", "none")
    for C in (1.0, 1e3, 1e6)
}
# All rows are on the margin, where rounding of a few eps in y f costs that times C each:
# the objective itself has no more than seven digits.
ROUNDING = {("wide", "hinge", intercept, 1e6) for _, intercept in SETTINGS}

CASES = [
    (name, *setting, C)
    for name, setting, C in itertools.product(
        PROBLEMS, SETTINGS, [1e-6, 1e-3, 1.0, 1e3, 1e6]
    )
]


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize(
    ("name", "loss", "intercept", "C"), [c for c in CASES if c not in ILL_POSED]
)
def test_agrees_with_the_conic_solver(solver, name, loss, intercept, C):
    X, y = PROBLEMS[name]()
    problem = Problem(X, y, C, loss, intercept)
    if complaint := auto.SOLVERS[solver]().supports(problem):
        with pytest.raises(ValueError, match=re.escape(complaint)):
            solve(problem, solver)
        return
    solution = solve(problem, solver, tol=TOL)
    certificate = solution.certificate
    if (name, loss, intercept, C) in ROUNDING:
        rounding = 8 * np.finfo(float).eps * C * len(y)
        assert certificate.gap <= rounding
    else:
        assert solution.status == "solved", solution
    ours = objective(X, y, C, loss, intercept, solution.w, solution.b)
    assert certificate.primal == pytest.approx(ours, rel=1e-9)
    reference = reference_objective(X, y, C, loss, intercept)
    # The reference is an upper bound of the optimum: P at a feasible point.
    rounding = 1e-9 if name == "shifted" else 1e-11
    assert certificate.dual <= reference * (1.0 + rounding)
    assert certificate.primal <= reference * (1.0 + 1e-7)
    assert certificate.gap >= -rounding * certificate.primal


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize(("name", "loss", "intercept", "C"), sorted(ILL_POSED))
def test_a_shift_that_cannot_be_removed_is_answered_with_advice(
    solver, name, loss, intercept, C
):
    X, y = PROBLEMS[name]()
    solution = solve(Problem(X, y, C, loss, intercept), solver, tol=TOL)
    if solution.status != "solved":
        assert "centring" in solution.message
    reference = reference_objective(X, y, C, loss, intercept)
    # Newton's method on sums that lose 12 of 16 digits ends further from the optimum.
    reached = 1e-4 if (solver, C) == ("augmented_lagrangian", 1e6) else 1e-5
    assert solution.certificate.primal <= reference * (1.0 + reached)
    assert np.all(np.isfinite(solution.w))
