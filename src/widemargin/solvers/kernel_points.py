"""Points of kernel problems: what solvers share that record or begin with one."""

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
    problem: KernelProblem,
    iteration: int,
    point: tuple[Vector, Vector, float],
    active: int,
    details: dict[str, float],
) -> Step:
    """The step at c = Y alpha, with the scores f = K c that are known, and b."""
    c, f, b = point
    bounds = problem.values(c, f, b)
    details = {
        "support_vectors": float(np.count_nonzero(c)),
        "evaluations": float(problem.columns.evaluations),
        "hits": float(problem.columns.hits),
        **details,
    }
    v = c.copy() if problem.intercept == "none" else np.append(c, b)
    pair = functools.partial(_pair, v, problem.state(alpha=np.abs(c)))
    return Step(iteration, bounds.primal, bounds.dual, 0.0, active, details, pair)


def _pair(v: Vector, state: Any) -> Any:
    return v, state
