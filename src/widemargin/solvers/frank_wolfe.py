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

from widemargin import _core
from widemargin.kernel_problem import KernelProblem
from widemargin.parameters import Checker
from widemargin.problem import Problem
from widemargin.solution import Step
from widemargin.solvers.base import Solver, Start
from widemargin.solvers.coresets import drawn, needs_ball, record

Vector = NDArray[np.float64]
Index = NDArray[np.intp]

STEPS = ("toward", "away", "pairwise", "swap")
# Entries of vectors that steps read between two looks at the clock, about 0.05 s.
SLICE = 1 << 25
# Rows of K that are computed together where one is missing: those with the least g.
TOGETHER = 8
# The loop goes on below what was asked for by this factor: its g is in float32.
FURTHER = 0.1


@dataclass(frozen=True, kw_only=True)
class FrankWolfe(Solver):  # numpydoc ignore=PR02
    """Frank-Wolfe, away and pairwise steps, for the squared hinge with a kernel.

    Parameters
    ----------
    step : {"toward", "away", "pairwise", "swap"}, default="swap"
        "toward": the method of Frank and Wolfe, sublinear. "away": the modified one,
        which also moves away from a bad point (MFW). "pairwise": mass goes from a bad
        point to a good one. "swap": of a toward and a pairwise step the one that gains
        more.
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

    step: str = "swap"
    selection: str = "second"
    start: int = 20
    random_state: int | None = None

    def __post_init__(self) -> None:
        check = Checker("FrankWolfe")
        check.choice("step", self.step, STEPS)
        check.choice("selection", self.selection, ("first", "second"))
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
    """The point a = scale * alpha, and g = Q a / scale."""

    def __init__(
        self, problem: KernelProblem, solver: FrankWolfe, alpha: Vector | None
    ) -> None:
        self._problem, self._columns = problem, problem.columns
        self._kind = STEPS.index(solver.step)
        self._second = solver.selection == "second"
        self._columns.focus(None)  # another run may have left rows out
        self._y = problem.signs
        m = len(self._y)
        self._shift = float(problem.intercept == "penalized")
        self._ridge = 0.5 / problem.weights
        self._diagonal = self._columns.diag() + self._shift + self._ridge
        self._half = np.zeros(m)
        self.steps = self.drops = 0
        if alpha is None or not alpha.any():
            random = np.random.default_rng(solver.random_state or 0)
            alpha = np.zeros(m)
            alpha[drawn(self._y, solver.start, random)] = 1.0
        self._alpha = alpha / alpha.sum()
        self._refresh()

    def _refresh(self) -> None:
        """Compute g in float64."""
        self._alpha *= 1.0 / self._alpha.sum()
        c = self._y * self._alpha
        J = np.flatnonzero(c)
        f = self._columns.exact(np.arange(len(c)), J, c[J])
        self._g = self._y * (f + self._shift * c.sum()) + self._ridge * self._alpha
        self._numbers = np.array([1.0, float(self._alpha @ self._g), 0.0])
        self._fresh = True

    @property
    def square(self) -> float:
        """R = a'Q a."""
        return float(self._numbers[1])

    def advance(self, stop: float) -> bool:
        """Some steps; whether there is a way to go on."""
        most = max(1, SLICE // len(self._y))
        made = 0
        while made < most:
            steps, drops, missing, _ = _core.simplex_steps(
                self._columns.kept_rows,
                self._columns.places,
                self._y,
                self._diagonal,
                self._ridge,
                self._half,
                self._shift,
                self._alpha,
                self._g,
                self._numbers,
                self._kind,
                self._second,
                False,
                stop,
                most - made,
            )
            made += steps
            self.steps, self.drops = self.steps + steps, self.drops + drops
            if missing >= 0:
                self._keep(missing)
            elif made < most:
                break
        self._fresh = self._fresh and made == 0
        if made < most:  # near enough by this g, or rounding is in the way
            if self._fresh:
                return False
            self._refresh()
        return True

    def _keep(self, missing: int) -> None:
        """Compute the row that is missing, and those that may be next."""
        places, m = self._columns.places, len(self._g)
        room = len(self._columns.kept_rows)
        if room < 2:
            raise ValueError(
                "The 'memory_limit' parameter must leave room for two rows of kernel "
                f"values, {8 * m:,} bytes."
            )
        count = min(TOGETHER, m - 1, room // 2 - 1)
        near = np.argpartition(self._g, count)[:count]
        near = near[(places[near] < 0) & (near != missing)]
        self._columns.keep(np.append(near, missing))

    def record(self, iteration: int) -> Step:
        """The current point, with the objectives by the g that is kept."""
        problem, scale, R = self._problem, self._numbers[0], self.square
        a = scale * self._alpha
        c = self._y * a / R
        b = self._shift * float(c.sum())
        f = self._y * (scale * self._g - self._ridge * a) / R - b
        least = scale * float(self._g.min())
        details = {
            "steps": float(self.steps),
            "drops": float(self.drops),
            "epsilon": (R / least) ** 2 - 1.0 if least > 0 else np.inf,
        }
        return record(problem, iteration, c, f, details)
