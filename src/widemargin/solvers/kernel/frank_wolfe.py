"""The Frank-Wolfe family for the squared hinge, on the unit simplex.

Frandi, Ñanculef, Gasparo, Lodi, Sartori, "Training support vector machines using
Frank-Wolfe optimization methods", 2012. With Q = Y (K + p) Y + diag(1 / (2 C_i)) (p = 1
for a penalized intercept, else 0) the dual is max sum beta - 1/2 beta'Q beta over
beta >= 0. Its best multiple of a point a of the simplex is beta = a / R(a), which gives
1 / (2 R(a)): so

    minimize   R(a) = a'Q a   over a >= 0, sum a = 1,

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

from widemargin import _core
from widemargin.arrays import Vector
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

# The loop goes on below the gap asked for by this factor: its g is in float32. (0.03
# and 0.3: within a sixth of the time, benchmarks/core/untuned.py.)
FURTHER = 0.1
# Entries of vectors that steps read between two looks at the gap, which read some ten
# vectors. (A quarter of them: 0.7 to 1.05 of the time, four times as many: 1 to 1.8,
# benchmarks/core/untuned.py.)
LOOK = 1 << 23
# Rows up to which steps of samples keep g of all rows from the start: bringing it up to
# date takes less time than a sample of which K is computed. With more rows they do so
# once as many were drawn as there are. (With 4096, 5,000 and 10,000 rows took 1.3 to
# 1.4 times as long, benchmarks/core/untuned.py; no larger one was tried.)
AT_ONCE = 1 << 16
# The points of a start are solved to this violation of their conditions.
SOLVED = 1e-4
FIRST_WEIGHTS = ("equal", "solved")
# Share of its rows that a coreset has c for at least; else rows without c are left out.
# (0.25 and 0.75: within 5 % of the time, benchmarks/core/untuned.py.)
DENSE = 0.5


@dataclass(frozen=True, kw_only=True)
class FrankWolfe(BallSolver):  # numpydoc ignore=PR02
    """Frank-Wolfe, away and pairwise steps, for the squared hinge with a kernel.

    Parameters
    ----------
    step : {"toward", "away", "pairwise", "swap"}, default="pairwise"
        "toward": the method of Frank and Wolfe, sublinear. "away": the modified method,
        which also moves away from a bad point (MFW). "pairwise": mass goes from a bad
        point to a good one. "swap": a toward or a pairwise step, whichever gains more;
        "swap" took up to 1.8 times as long as "pairwise" (Adult, Web, ijcnn1).
    selection : {"first", "second"}, default="second"
        The other point of a pairwise step: by the largest slope, or by the largest
        gain.
    sample : int >= 1 or None, default=None
        Steps go toward the best of this number of random rows (the paper's 59: with
        probability 0.95 it is among the best twentieth); None: of all rows. Rows of K
        are kept under ``memory_limit``. Where it has no room for the coreset's rows, or
        there are many rows, g is at first known for the coreset only. Its part of K is
        kept: 4 q^2 bytes, and a step computes ``sample`` times q kernel values.
    balanced : bool, default=False
        Samples are drawn from both classes by turns, of rows with alpha = 0, as in
        LibCVM; rows with alpha > 0 are looked at besides. Each sample takes a pass over
        all alpha. For ``sample`` only.
    tries : int >= 1, default=1
        Samples without a row outside after which ``epsilon`` ends the run; LibCVM: 7.
        For ``sample`` and ``epsilon`` only.
    first_points : int >= 1 or "pair", default=20
        Points of the start, of both classes, drawn at random; "pair": a random point
        and the point farthest from it.
    first_weights : {"equal", "solved"}, default="equal"
        The weights of the start: equal, or the weights of its own smallest ball, which
        leave out some of the points.
    epsilon : float > 0 or None, default=None
        End also where the farthest point that was looked at is at most 1 + epsilon
        radii from the center, the paper's rule (1e-6 there):
        kappa + R - 2 min g <= (1 + epsilon)^2 (kappa - R) with kappa = max Q_ii. For a
        diagonal of Q that varies that is (37), with kappa for the constant Delta^2:
        where all rows are looked at, kappa - R is above 1 - 2 epsilon - epsilon^2
        times its largest value (41). It says nothing about the gap of the SVM.
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
    `widemargin.solvers.kernel.coreset`), ``is_ball`` (1 where the paper's criterion is
    met), ``negative`` (steps along negative curvature), ``evaluations`` and ``hits``
    (kernel values computed, and kept ones used again).

    References
    ----------
    [frandi2013]_, Algorithms 2 and 3, with the signs and lengths of steps corrected and
    for a diagonal that varies; (34) to (41) for the stop. Page 9 for the starts.
    [nanculef2014]_ for "swap". The samples of LibCVM: its source of 2009 (``cvm.cpp``),
    by the authors of [tsang2005]_.
    """

    name: ClassVar[str] = "frank_wolfe"
    default_max_iter: ClassVar[int] = 100_000
    patience: ClassVar[int] = 2_000

    step: str = "pairwise"
    selection: str = "second"
    first_weights: str = "equal"

    def __post_init__(self) -> None:
        super().__post_init__()
        check = Checker("FrankWolfe")
        check.choice("step", self.step, STEPS)
        check.choice("selection", self.selection, SELECTIONS)
        check.choice("first_weights", self.first_weights, FIRST_WEIGHTS)
        if self.step in ("toward", "away") and self.selection != "second":
            expected = f"'second' with step={self.step!r}, which has no other point"
            check.refuse("selection", expected, self.selection)

    def iterate(
        self, problem: Problem, start: Start | None, tol: float
    ) -> Generator[Step, None, None]:
        """A step for each slice of steps: `Solver.iterate`."""
        if not isinstance(problem, KernelProblem):
            raise TypeError("FrankWolfe needs a problem with a kernel.")
        if self.sample is not None and self.sample < len(problem.signs):
            return self._sampled(problem, start)
        return self._descend(problem, start, tol)

    def _descend(
        self, problem: KernelProblem, start: Start | None, tol: float
    ) -> Generator[Step, None, None]:
        """Steps by the g of all rows."""
        Q = Quadratic(problem)
        stop = FURTHER * tol if self.epsilon is None else self.epsilon
        descent = self._descent(problem, Q, self._first(problem, start))
        for iteration in itertools.count():
            near = self.epsilon is not None and descent.exact is not None
            inside = near and Q.epsilon(descent.square, descent.g.min()) <= stop
            yield self._record(Q, descent, iteration, inside)
            if inside or not descent.advance(stop, LOOK // len(Q.y) + 1):
                return

    def _sampled(
        self, problem: KernelProblem, start: Start | None
    ) -> Generator[Step, None, None]:
        """Steps by samples: of which K is computed, then by the g of all rows."""
        found = yield from self.grow(
            problem, start, self._begin, self._advance, self._keeps_all
        )
        if found is None:
            return
        coreset, samples = found
        descent = self._descent(problem, coreset.Q, coreset.weight)
        descent.steps, descent.drops = coreset.steps, coreset.drops
        for iteration in itertools.count():
            steps = descent.steps
            inside = descent.sample(samples, self.epsilon, LOOK // len(coreset.Q.y) + 1)
            yield self._record(coreset.Q, descent, iteration, inside)
            if inside or (descent.steps == steps and descent.exact is not None):
                return
            if descent.steps == steps:  # rounding may be in the way
                descent.refresh()

    def _keeps_all(self, coreset: Coreset, looks: int) -> bool:
        """Whether it is time to keep g of all rows, and there is room for it."""
        sample, m, q = int(self.sample or 0), len(coreset.Q.y), len(coreset.rows)
        if m > AT_ONCE and looks * sample < m:
            return False
        fits = coreset.room >= min(m, 2 * q)
        return fits or (coreset.room >= min(m, 2) and sample * q >= m)

    def _descent(
        self, problem: KernelProblem, Q: Quadratic, a: Vector
    ) -> SimplexDescent:
        """Steps from there by the g of all rows, which stop by ``epsilon`` if given."""
        linear = None if self.epsilon is None else np.full(len(a), Q.kappa)
        simplex = SimplexProblem(problem.columns, Q.y, Q.ridge, Q.shift, linear)
        return SimplexDescent(simplex, a, self.step, self.selection)

    def _first(self, problem: KernelProblem, start: Start | None) -> Vector:
        """The weights to begin with: (m,)."""
        given = self.weights_of(problem, start)
        if given.any():
            return given
        random = np.random.default_rng(self.random_state or 0)
        rows = self.first(problem, None, random)
        if self.first_weights == "solved":
            coreset = Coreset(problem, rows)
            self._begin(coreset)
            return coreset.weight
        a = np.zeros(len(problem.signs))
        a[rows] = 1.0
        return a

    def _begin(self, coreset: Coreset) -> None:
        """Give the points of the start their weights."""
        if self.first_weights == "solved":
            coreset.solve(SOLVED)
            coreset.drop()
            return
        q = len(coreset.rows)
        coreset.c = coreset.Q.y[coreset.rows] / q
        coreset.f = coreset.K[:q, :q] @ coreset.c

    def _record(
        self, Q: Quadratic, descent: SimplexDescent, iteration: int, inside: bool
    ) -> Step:
        """The current point of the steps by all rows."""
        a, g = descent.a, descent.g
        c = Q.y * a
        f = Q.y * (g - Q.ridge * a) - Q.shift * c.sum()
        details = {
            "is_ball": float(inside),
            "coreset": float(np.count_nonzero(a)),
            "steps": float(descent.steps),
            "drops": float(descent.drops),
        }
        return Q.record(iteration, c, f, details)

    def _advance(self, coreset: Coreset, i: int, least: float) -> bool:
        """A step toward row i, or another one; whether there was one."""
        if np.count_nonzero(coreset.c) < DENSE * len(coreset.rows):
            coreset.drop()
        k = coreset.place(i)
        Q, S, q = coreset.Q, coreset.rows, len(coreset.rows)
        a, g = np.abs(coreset.c), coreset.gradient
        numbers = np.array([1.0, a @ g, 0.0, 0.0])
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
