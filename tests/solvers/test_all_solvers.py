"""Every solver on every problem: the same answer as an independent conic solver."""

import functools
import itertools
import re

import numpy as np
import pytest

from tests.cases.pairwise import pairwise
from tests.cases.reference import objective, reference_objective
from tests.conftest import PROBLEMS, SETTINGS, SOLVERS
from widemargin import Problem, solve
from widemargin.solvers import auto

TOL = 1e-8

# A mean of 1e6 beside a deviation of 1 cannot be centered away where b is not free: 12 of
# 16 digits are lost. The answer must be usable and say what helps (test_shift below).
ILL_POSED = {
    ("shifted", "hinge", intercept, C)
    for intercept in ("penalized", "none")
    for C in (1.0, 1e3, 1e6)
}
# The dual point of ActiveSet is made of the same products, times 2 C: digits are lost
# for its loss too. InteriorPoint has alpha of its own, and reaches the gap.
LOSES_DIGITS = {
    ("active_set", "shifted", "squared_hinge", intercept, C)
    for intercept in ("penalized", "none")
    for C in (1.0, 1e3, 1e6)
}
# All rows are on the margin, where rounding of a few eps in y f costs that times C each:
# the objective itself has no more than seven digits. Interior point gets there with b.
ROUNDING = {("wide", "hinge", 1e6)}

# What a solver is made for, by mean(C_i |z_i|^2) over rows z_i with their intercept:
# beyond that it may stop at a larger gap, which it must report (`honest`).
REACH = {"coordinate_descent": 100.0}


@functools.cache
def reference_of(name, loss, intercept, C):
    return reference_objective(*PROBLEMS[name](), C, loss, intercept)


def within_reach(solver, X, intercept, C):
    square = np.mean(np.sum(X * X, axis=1)) + (intercept != "none")
    return C * square <= REACH.get(solver, np.inf)


CASES = [
    (name, *setting, C)
    for name, setting, C in itertools.product(
        PROBLEMS, SETTINGS, [1e-6, 1e-3, 1.0, 1e3, 1e6]
    )
]


SHIFTED = [(s, *case) for s in SOLVERS for case in sorted(ILL_POSED)]
SHIFTED = [case for case in SHIFTED if case[0] != "active_set"] + sorted(LOSES_DIGITS)
WELL_POSED = [(s, *case) for s in SOLVERS for case in CASES if case not in ILL_POSED]
WELL_POSED = [case for case in WELL_POSED if case not in LOSES_DIGITS]


def complaint_of(solver, loss, intercept):
    """What a solver says of problems that it does not solve; None of others."""
    problem = Problem(np.eye(2), [-1, 1], 1.0, loss, intercept)
    return auto.SOLVERS[solver]().supports(problem)


REFUSED = [
    (solver, *setting)
    for solver, setting in itertools.product(SOLVERS, SETTINGS)
    if complaint_of(solver, *setting)
]
SOLVED = [case for case in WELL_POSED if (case[0], *case[2:4]) not in REFUSED]


@pytest.mark.parametrize(("solver", "loss", "intercept"), REFUSED)
def test_what_is_not_solved_is_refused(solver, loss, intercept):
    complaint = complaint_of(solver, loss, intercept)
    for name in PROBLEMS:
        problem = Problem(*PROBLEMS[name](), 1.0, loss, intercept)
        with pytest.raises(ValueError, match=re.escape(complaint)):
            solve(problem, solver)


@pairwise(("solver", "name", "loss", "intercept", "C"), SOLVED)
def test_agrees_with_the_conic_solver(solver, name, loss, intercept, C):
    X, y = PROBLEMS[name]()
    problem = Problem(X, y, C, loss, intercept)
    if not within_reach(solver, X, intercept, C):
        honest(problem, solver, reference_of(name, loss, intercept, C))
        return
    solution = solve(problem, solver, tol=TOL)
    certificate = solution.certificate
    rounds = intercept == "none" or solver == "augmented_lagrangian"
    if (name, loss, C) in ROUNDING and rounds:
        rounding = 8 * np.finfo(float).eps * C * len(y)
        assert certificate.gap <= rounding
    else:
        assert solution.status == "solved", solution
    ours = objective(X, y, C, loss, intercept, solution.w, solution.b)
    float64 = 8 * np.finfo(float).eps * C * len(y) + 1e-9 * ours
    assert abs(certificate.primal - ours) <= certificate.rounding + float64
    reference = reference_of(name, loss, intercept, C)
    # The reference is an upper bound of the optimum: P at a feasible point.
    rounding = 1e-9 if name == "shifted" else 1e-11
    assert certificate.dual <= reference * (1.0 + rounding)
    assert certificate.primal <= reference * (1.0 + 1e-7)
    assert certificate.gap >= -rounding * certificate.primal


@pairwise(("solver", "name", "loss", "intercept", "C"), SHIFTED)
def test_a_shift_that_cannot_be_removed_is_answered_with_advice(
    solver, name, loss, intercept, C
):
    X, y = PROBLEMS[name]()
    problem = Problem(X, y, C, loss, intercept)
    reference = reference_of(name, loss, intercept, C)
    if not within_reach(solver, X, intercept, C):
        honest(problem, solver, reference)
        return
    solution = solve(problem, solver, tol=TOL)
    if solution.status != "solved":
        assert "centering" in solution.message
    # Newton's method on sums that lose 12 of 16 digits ends further from the optimum.
    reached = 1e-4 if (solver, C) == ("augmented_lagrangian", 1e6) else 1e-5
    assert solution.certificate.primal <= reference * (1.0 + reached)
    assert np.all(np.isfinite(solution.w))


def honest(problem, solver, reference):
    """A short run ends with a status and a gap that are true, and a usable answer."""
    solution = solve(problem, solver, tol=TOL, max_iter=25)
    certificate = solution.certificate
    assert certificate == problem.certify(
        solution.alpha, solution.w, solution.b, tol=TOL
    )
    assert (solution.status == "solved") == (certificate.relative_gap <= TOL)
    assert solution.status == "solved" or "relative gap of" in solution.message
    assert certificate.dual <= reference * (1.0 + 1e-9)
    assert certificate.primal >= certificate.dual - 1e-9 * abs(certificate.primal)
    assert certificate.primal <= problem.zero_objective * (1.0 + 1e-9)
