"""The Frank-Wolfe family for the squared hinge, on the unit simplex.

Frandi, Ñanculef, Gasparo, Lodi, Sartori, "Training support vector machines using
Frank-Wolfe optimization methods", 2012. With Q = Y (K + p) Y + diag(1 / (2 C_i)) (p = 1
for a penalized intercept, else 0) the dual is max sum beta - 1/2 beta'Q beta over
beta >= 0. Its best multiple of a point a of the simplex is beta = a / R(a), which gives
1 / (2 R(a)): so

    minimise   R(a) = a'Q a   over a >= 0, sum a = 1,

the dual of a smallest ball that encloses points z_i with z_i'z_j = Q_ij, where all of
these have one length. With g = Q a every step is a row of K:

    toward     a += t (e_i - a),     i the least g;
    away       a += t (a - e_j),     j the largest g of those with a_j > 0;
    pairwise   a += t (e_i - e_j).

m = min g bounds the optimum: R* >= m^2 / R.
"""

import itertools
from collections.abc import Generator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from widemargin.kernel_problem import KernelProblem
from widemargin.parameters import Checker
from widemargin.problem import Problem
from widemargin.solution import Step
from widemargin.solvers.base import Solver, Start
from widemargin.solvers.kernel_points import drawn, needs_ball, record
from widemargin.solvers.simplex import (
    SELECTIONS,
    STEPS,
    SimplexDescent,
    SimplexProblem,
)

Vector = NDArray[np.float64]

# The loop goes on below what was asked for by this factor: its g is in float32. Not
# tuned.
FURTHER = 0.1


@dataclass(frozen=True, kw_only=True)
class FrankWolfe(Solver):  # numpydoc ignore=PR02
    """Frank-Wolfe, away and pairwise steps, for the squared hinge with a kernel.

    Parameters
    ----------
    step : {"toward", "away", "pairwise", "swap"}, default="pairwise"
        "toward": the method of Frank and Wolfe, sublinear. "away": the modified one,
        which also moves away from a bad point (MFW). "pairwise": mass goes from a bad
        point to a good one. "swap": of a toward and a pairwise step the one that gains
        more; that took up to 1.8 times as long (Adult, Web, ijcnn1).
    selection : {"first", "second"}, default="second"
        The other point of a pairwise step: the one of the largest slope, or the one of
        the largest gain.
    start : int >= 1, default=20
        Points of the start, of both classes, drawn at random.
    random_state : int or None, default=None
        Seed of the start; None: 0.

    Raises
    ------
    ValueError
        A parameter out of range.

    Notes
    -----
    A step costs some passes over vectors of length m, and a row of K where it is not
    kept: rows of support vectors should fit ``memory_limit``.

    ``details`` of a step: ``steps``, ``drops`` (steps that removed a point),
    ``support_vectors`` (points of the coreset), ``evaluations`` and ``hits`` (kernel
    values computed, and kept ones used again), ``epsilon`` (R^2 / m^2 - 1).

    References
    ----------
    [frandi2013]_, Algorithms 2 and 3, with the signs and lengths of steps corrected and
    for a diagonal that varies; [nanculef2014]_ for "swap".
    """

    name: ClassVar[str] = "frank_wolfe"
    default_max_iter: ClassVar[int] = 100_000
    patience: ClassVar[int] = 200
    for_kernels: ClassVar[bool] = True

    step: str = "pairwise"
    selection: str = "second"
    start: int = 20
    random_state: int | None = None

    def __post_init__(self) -> None:
        check = Checker("FrankWolfe")
        check.choice("step", self.step, STEPS)
        check.choice("selection", self.selection, SELECTIONS)
        check.count("start", self.start, least=1)
        check.count("random_state", self.random_state, least=0, optional=True)

    def supports(self, problem: Problem) -> str | None:
        """Problems with the squared hinge and without a free intercept."""
        return needs_ball("FrankWolfe", problem)

    def iterate(
        self, problem: Problem, start: Start | None, tol: float
    ) -> Generator[Step, None, None]:
        """A step for each slice of steps: `Solver.iterate`."""
        if not isinstance(problem, KernelProblem):
            raise TypeError("FrankWolfe needs a problem with a kernel.")
        run = _Run(problem, self, None if start is None else start.alpha)
        for iteration in itertools.count():
            yield run.record(iteration)
            if not run.advance(FURTHER * tol):
                return


class _Run:
    """Descent on the simplex, seen as a problem of support vectors."""

    def __init__(
        self, problem: KernelProblem, solver: FrankWolfe, alpha: Vector | None
    ) -> None:
        self._problem = problem
        self._ridge = 0.5 / problem.weights
        shift = float(problem.intercept == "penalized")
        simplex = SimplexProblem(problem.columns, problem.signs, self._ridge, shift)
        if alpha is None or not alpha.any():
            random = np.random.default_rng(solver.random_state or 0)
            alpha = np.zeros(len(problem.signs))
            alpha[drawn(problem.signs, solver.start, random)] = 1.0
        self._descent = SimplexDescent(simplex, alpha, solver.step, solver.selection)
        self._shift = shift
        self.advance = self._descent.advance

    def record(self, iteration: int) -> Step:
        """The current point, with the objectives by the g that is kept."""
        problem, descent, y = self._problem, self._descent, self._problem.signs
        R, a, g = descent.square, descent.a, descent.g
        c = y * a / R
        b = self._shift * float(c.sum())
        f = y * (g - self._ridge * a) / R - b
        least = float(g.min())
        details = {
            "steps": float(descent.steps),
            "drops": float(descent.drops),
            "epsilon": (R / least) ** 2 - 1.0 if least > 0 else np.inf,
        }
        active = int(np.count_nonzero(c))
        return record(problem, iteration, (c, f, b), active, details)
