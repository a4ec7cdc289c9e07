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
from widemargin.parameters import Checker
from widemargin.problems.base import Problem
from widemargin.problems.kernel import KernelProblem
from widemargin.solution import Step
from widemargin.solvers.driver.contract import Start
from widemargin.solvers.kernel.coreset import BallSolver, Coreset, Quadratic
from widemargin.solvers.kernel.simplex import (
    SELECTIONS,
    STEPS,
    SimplexDescent,
    SimplexProblem,
)

Vector = NDArray[np.float64]

# The loop goes on below what was asked for by this factor: its g is in float32. Not
# tuned.
FURTHER = 0.1
# Entries of vectors that steps read between two looks at the gap, which read some ten
# vectors. Not tuned.
LOOK = 1 << 23
# Share of its rows that a coreset has c for at least; else those without are left out.
# Not tuned.
DENSE = 0.5


@dataclass(frozen=True, kw_only=True)
class FrankWolfe(BallSolver):  # numpydoc ignore=PR02
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
    sample : int >= 1 or None, default=None
        Steps go toward the best one of so many random rows (the paper's 59: with
        probability 0.95 it is among the best twentieth); None: of all rows. g is known
        for the coreset only then, whose part of K is kept: 4 q^2 bytes. That pays where
        a loose answer will do: a step costs ``sample`` times q kernel values.
    first_points : int >= 1, default=20
        Points of the start, of both classes, drawn at random.
    epsilon : float > 0 or None, default=None
        End also where the farthest point that was looked at is at most 1 + epsilon
        radii from the center, the paper's rule (1e-6 there). It says nothing about the
        gap of the SVM, and needs a constant diagonal k(x, x) and one C.
    random_state : int or None, default=None
        Seed; None: 0.

    Raises
    ------
    ValueError
        A parameter out of range.

    Notes
    -----
    A step costs some passes over vectors of length m, and a row of K where it is not
    kept: rows of support vectors should fit ``memory_limit``.

    ``details`` of a step, and ``extras`` of the solution: ``steps``, ``drops`` (steps
    that removed a point), ``coreset`` (its points), ``support_vectors``, ``rho``,
    ``radius``, ``epsilon`` (the ball around all rows:
    `widemargin.solvers.kernel.coreset`), ``evaluations`` and ``hits`` (kernel values
    computed, and kept ones used again).

    References
    ----------
    [frandi2013]_, Algorithms 2 and 3, with the signs and lengths of steps corrected and
    for a diagonal that varies; [nanculef2014]_ for "swap".
    """

    name: ClassVar[str] = "frank_wolfe"
    default_max_iter: ClassVar[int] = 100_000
    patience: ClassVar[int] = 2_000

    step: str = "pairwise"
    selection: str = "second"

    def __post_init__(self) -> None:
        super().__post_init__()
        check = Checker("FrankWolfe")
        check.choice("step", self.step, STEPS)
        check.choice("selection", self.selection, SELECTIONS)

    def iterate(
        self, problem: Problem, start: Start | None, tol: float
    ) -> Generator[Step, None, None]:
        """A step for each slice of steps: `Solver.iterate`."""
        if not isinstance(problem, KernelProblem):
            raise TypeError("FrankWolfe needs a problem with a kernel.")
        if self.sample is not None:
            return self.grow(problem, start, _begin, self._advance)
        return self._descend(problem, start, tol)

    def _descend(
        self, problem: KernelProblem, start: Start | None, tol: float
    ) -> Generator[Step, None, None]:
        """Steps by the g of all rows."""
        Q, linear, stop = Quadratic(problem), None, FURTHER * tol
        if self.epsilon is not None:  # the stop of smallest balls: h = diag(Q)
            Q.refuse_other_balls()
            linear, stop = Q.diagonal, self.epsilon
        simplex = SimplexProblem(problem.columns, Q.y, Q.ridge, Q.shift, linear)
        random = np.random.default_rng(self.random_state or 0)
        a = np.zeros(len(Q.y))
        if start is not None and start.alpha.any():
            a = start.alpha
        else:
            a[self.first(problem, None, random)] = 1.0
        descent = SimplexDescent(simplex, a, self.step, self.selection)
        for iteration in itertools.count():
            a, g = descent.a, descent.g
            c = Q.y * a
            f = Q.y * (g - Q.ridge * a) - Q.shift * c.sum()
            near = self.epsilon is not None and descent.exact is not None
            details = {
                "is_ball": float(near and Q.epsilon(descent.square, g.min()) <= stop),
                "coreset": float(np.count_nonzero(a)),
                "steps": float(descent.steps),
                "drops": float(descent.drops),
            }
            yield Q.record(iteration, c, f, details)
            if details["is_ball"] or not descent.advance(stop, LOOK // len(a) + 1):
                return

    def _advance(self, coreset: Coreset, i: int, least: float) -> bool:
        """A step toward row i, or another one; whether there was one."""
        if np.count_nonzero(coreset.c) < DENSE * len(coreset.rows):
            coreset.drop()
        k = coreset.place(i)
        Q, S, q = coreset.Q, coreset.rows, len(coreset.rows)
        a, g = np.abs(coreset.c), coreset.gradient
        numbers = np.array([1.0, a @ g, 0.0])
        steps, drops, _, _ = _core.simplex_steps(
            coreset.K,
            np.arange(q),
            Q.y[S],
            Q.diagonal[S],
            Q.ridge[S],
            np.zeros(q),
            Q.shift,
            a,
            g,
            numbers,
            STEPS.index(self.step),
            self.selection == "second",
            False,
            0.0,
            1,
            k,
        )
        a, g = numbers[0] * a, numbers[0] * g
        coreset.c = Q.y[S] * a
        coreset.f = Q.y[S] * (g - Q.ridge[S] * a) - Q.shift * coreset.c.sum()
        coreset.steps, coreset.drops = coreset.steps + steps, coreset.drops + drops
        return steps > 0


def _begin(coreset: Coreset) -> None:
    """Equal weights."""
    q = len(coreset.rows)
    coreset.c = coreset.Q.y[coreset.rows] / q
    coreset.f = coreset.K[:q, :q] @ coreset.c
