"""Choosing a solver, and the one function that solves any problem."""
from typing import Any

from widemargin.problem import Problem
from widemargin.solution import Solution
from widemargin.solvers.base import Callback, Solver, run
from widemargin.solvers.interior_point import InteriorPoint


def solve(problem: Problem, solver: Any = "auto", *, tol: float = 1e-4, max_iter=None, time_limit=None, start=None, callback=None) -> Solution:
    if isinstance(solver, str): solver = InteriorPoint()
    return run(problem, solver, reason="", tol=tol, max_iter=max_iter, time_limit=time_limit, start=start, callback=callback)
