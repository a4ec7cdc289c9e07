"""IRWLS with chunking (SVCradit): kernel problems by working sets."""

import functools
import itertools
from collections.abc import Generator
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from widemargin.kernel_problem import KernelProblem
from widemargin.parameters import Checker
from widemargin.problem import Problem
from widemargin.solution import Step
from widemargin.solvers.base import Solver, Start
from widemargin.solvers.working_set import WorkingSet, pair_steps

Vector = NDArray[np.float64]

# Inner problems are solved to this share of the violation.
INNER = 0.1
LEAST_STOP = 1e-9
# Up to so many rows a problem is solved in float64, to rounding, at once: that takes
# milliseconds, and then rows of weight 2 say what repeated rows do to many digits.
SMALL, SMALL_STOP = 256, 1e-12


@dataclass(frozen=True, kw_only=True)
class IRWLS(Solver):  # numpydoc ignore=PR02
    """Working sets with chunking."""

    name: ClassVar[str] = "irwls"
    default_max_iter: ClassVar[int] = 20_000
    patience: ClassVar[int] = 500
    for_kernels: ClassVar[bool] = True

    working_set: int = 2048

    def __post_init__(self) -> None:
        check = Checker("IRWLS")
        check.count("working_set", self.working_set, least=2)

    def supports(self, problem: Problem) -> str | None:
        """All problems with a kernel."""
        return None

    def iterate(
        self, problem: Problem, start: Start | None, tol: float
    ) -> Generator[Step, None, None]:
        """A step for each working set: `Solver.iterate`."""
        if not isinstance(problem, KernelProblem):
            raise TypeError("IRWLS needs a problem with a kernel.")
        m = problem.rows.shape[0]
        c = np.zeros(m)
        if start is not None:
            c = problem.signs * problem.dual_state(start.alpha).alpha
        columns = problem.columns
        if m <= SMALL:
            columns.refine()
        run = WorkingSet(problem, c, pair_steps)
        for iteration in itertools.count():
            found = run.look()
            b = {"free": found.intercept, "penalized": float(run.c.sum()), "none": 0.0}[
                problem.intercept
            ]
            bounds = problem.values(run.c, run.scores.values, b)
            if problem.intercept == "free" and bounds.relative_gap < 3 * tol:
                b = problem.intercept_for(run.scores.values, run.c, b)
                bounds = problem.values(run.c, run.scores.values, b)
            v = run.c if problem.intercept == "none" else np.append(run.c, b)
            state = problem.dual_state(0.0)
            state.alpha = np.abs(run.c)
            details = {
                "violation": found.size,
                "support_vectors": float(np.count_nonzero(run.c)),
                "evaluations": float(columns.evaluations),
                "hits": float(columns.hits),
                "negative": float(run.negative),
                "inner_steps": float(run.steps),
            }
            yield Step(
                iteration,
                bounds.primal,
                bounds.dual,
                0.0,
                len(run.rows),
                details,
                functools.partial(_pair, v, state),
            )
            found = run.look()  # the driver may have refreshed the scores
            if not found.size > 0:
                return
            stop = SMALL_STOP if m <= SMALL else max(LEAST_STOP, INNER * found.size)
            run.advance(found, min(self.working_set, m), stop)


def _pair(v: Vector, state: Any) -> Any:
    return v, state
