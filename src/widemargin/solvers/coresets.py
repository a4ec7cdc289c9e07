"""What the solvers with a coreset share: starts, refusals, records of a point."""

import functools
from typing import Any

import numpy as np
from numpy.typing import NDArray

from widemargin.kernel_problem import KernelProblem
from widemargin.problem import Problem
from widemargin.solution import Step

Vector = NDArray[np.float64]
Index = NDArray[np.intp]


def needs_ball(name: str, problem: Problem) -> str | None:
    """Why a problem is no smallest enclosing ball, if it is none."""
    if problem.loss != "squared_hinge":
        return f"{name} needs loss='squared_hinge'; for the hinge use irwls."
    if problem.intercept == "free":
        return (
            f"{name} needs intercept='penalized' or 'none'; with a free one use irwls."
        )
    return None


def drawn(y: Vector, count: int, random: np.random.Generator) -> Index:
    """Random rows: half of them of each class, or all that it has."""
    some = []
    for side in (y > 0, y < 0):
        rows = np.flatnonzero(side)
        some.append(random.permutation(rows)[: -(-count // 2)])
    return np.concatenate(some)


def record(
    problem: KernelProblem, iteration: int, c: Vector, f: Vector, details: Any
) -> Step:
    """The step at c = Y alpha with the scores f = K c."""
    b = problem.intercept_near(c, 0.0)
    bounds = problem.values(c, f, b)
    columns, vectors = problem.columns, int(np.count_nonzero(c))
    details = {
        "support_vectors": float(vectors),
        "evaluations": float(columns.evaluations),
        "hits": float(columns.hits),
        **details,
    }
    v = c.copy() if problem.intercept == "none" else np.append(c, b)
    point = functools.partial(_pair, v, problem.state(alpha=np.abs(c)))
    return Step(iteration, bounds.primal, bounds.dual, 0.0, vectors, details, point)


def _pair(v: Vector, state: Any) -> Any:
    return v, state
