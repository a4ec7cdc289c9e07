"""Points of kernel problems: what solvers share that record one."""

import functools
from typing import Any

import numpy as np
from numpy.typing import NDArray

from widemargin.problems.kernel import KernelProblem
from widemargin.solution import Step

Vector = NDArray[np.float64]


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
