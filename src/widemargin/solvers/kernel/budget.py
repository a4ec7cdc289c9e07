"""Budget machines: problems with a norm of the losses.

Dekel and Singer, "Support vector machines on a budget", NIPS 2006. In the dual

    maximize   sum alpha - 1/2 c'K c   over alpha in C A, sum c = 0,   c = Y alpha,

the set A is an intersection of a box, a ball and a cap on sum alpha. What is solved is

- the box alone: the hinge, by the working sets of IRWLS;
- the ball, by its multiplier mu: a ridge mu / s_i on the diagonal of K (s_i: the sample
  weights), and a search for the mu with |alpha| = C. sqrt(sum alpha_i^2 / s_i) falls
  with mu, as alpha_i = s_i u_i / mu where u_i = 1 - y_i (f_i + b) > 0;
- the cap, where the solution without it is beyond: the nu form. The sum of each class
  is half of the cap, and its levels b + theta, b - theta say whether the cap binds:
  then theta, its multiplier, is not negative. Pairs of one class move. The usual choice
  of pairs ends beside the optimum where the cap leaves no room (3 % to 8 % above it in
  six of six small problems).
- anything else, by accelerated projected gradient steps.
"""

import itertools
import math
from collections.abc import Generator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy.sparse.linalg import eigsh

from widemargin.arrays import Vector
from widemargin.losses.norms import BoundedNorm
from widemargin.problems.base import Problem
from widemargin.problems.norm import NormProblem
from widemargin.solution import Step
from widemargin.solvers.driver.contract import Solver, Start
from widemargin.solvers.kernel.pairs_first import PairsFirst
from widemargin.solvers.kernel.selection import (
    AT_ONCE,
    INNER_SHARE,
    NOTHING,
    Choice,
    Precision,
)
from widemargin.solvers.kernel.violations import Violations
from widemargin.solvers.kernel.working_set import Form, WorkingSet

# The violation at which the multipliers are looked at first, and the share of the error
# of mu that it is later. (0.03 and 0.3: 0.9 to 1.4 of the time; 0.1 and 0.5: 0.9 to
# 1.5, benchmarks/core/untuned.py.)
FIRST, SHARE = 0.1, 0.3
# The smallest ridge, as a share of the mean diagonal of K; and by which factors a step
# changes it at least and at most while no bracket is known. (A tenth and ten times of
# the first: within 6 % of the time; half and twice of the others: 0.7 to 1.2 of it,
# benchmarks/core/untuned.py.)
LEAST, LEAST_CHANGE, MOST_CHANGE = 1e-14, 4.0, 16.0
# The share of a bracket that a secant is kept away from its ends by. (0.02 and 0.1: 0.7
# to 1.2 of the time, benchmarks/core/untuned.py.)
INSIDE = 0.05
# The error of the multipliers of problems that are solved `AT_ONCE`, before they are
# looked at; violations are a hundredth of that.
ROUNDING = 1e-10
# Working sets between two answers at least, where they wait for something, which is no
# gap below what rounding does to the objective. (10 and 50, 1e-15 and 1e-13: within a
# tenth of the time, benchmarks/core/untuned.py.)
MOST_WAIT, OBJECTIVE = 25, 1e-14
# The best intercept is looked for where the gap is this many times the gap asked for:
# the search sorts the losses some 60 times.
NEAR = 10.0
# The cap is looked at only where alpha is about as long as it should be: where sum
# alpha is above the cap by this many times the error of the length. If a solution
# without the cap is above it, the cap binds. (2 and 10: 0.8 to 1.6 of the time,
# benchmarks/core/untuned.py.)
SURE = 5.0
# Projected gradient steps between two certificates. (10: 1 to 1.7 times as long, 40:
# 0.7 to 2.2 times, benchmarks/core/untuned.py.)
STRIDE = 20


@dataclass(frozen=True, kw_only=True)
class Budget(Solver):
    """Working sets for problems with a norm of the losses.

    Notes
    -----
    Where the cap binds, ``|f|^2`` may be a small part of the objective, which is about
    C times the cap then; the run goes on until the gap is small beside half of it.

    ``details`` of a step: ``half_square`` (this half), ``violation``, ``theta`` (the
    multiplier of the cap), ``capped`` (1 where the cap binds), ``ridge`` (mu),
    ``support_vectors``, ``evaluations`` and ``hits`` (kernel values computed, and kept
    ones used again), ``inner_steps``, ``negative`` (steps along negative curvature: the
    kernel is not positive semidefinite).

    References
    ----------
    [dekel2006]_; [chang2001nu]_ for the nu form; [odonoghue2015]_ for the projected
    gradient steps of norms with a matrix.
    """

    name: ClassVar[str] = "budget"
    default_max_iter: ClassVar[int] = 20_000
    patience: ClassVar[int] = 200
    for_kernels: ClassVar[bool] = True
    for_norms: ClassVar[bool] = True

    def supports(self, problem: Problem) -> str | None:
        """Problems with a norm of the losses."""
        return None

    def iterate(
        self, problem: Problem, start: Start | None, tol: float
    ) -> Generator[Step, None, None]:
        """A step for each working set: `Solver.iterate`."""
        if not isinstance(problem, NormProblem):
            raise TypeError("Budget needs a problem with a norm of the losses.")
        norm, state = problem.norm, problem.dual_state(start.alpha if start else 0.0)
        problem.repair(state)
        if isinstance(norm, BoundedNorm):
            return _working_sets(problem, norm, state.alpha, tol)
        return _projected_gradients(problem, state.alpha)


def _working_sets(
    problem: NormProblem, norm: BoundedNorm, alpha: Vector, tol: float
) -> Generator[Step, None, None]:
    """Working sets, and multipliers that follow them."""
    at_once = problem.rows.shape[0] <= AT_ONCE
    if at_once:
        problem.columns.refine()
        tol = ROUNDING
    run = WorkingSet(problem, problem.expand(problem.signs * alpha), PairsFirst())
    multipliers = _Multipliers(problem, norm, run)
    choose, precision = Choice(run), Precision(run)
    for iteration in itertools.count():
        found = multipliers.follow(precision.look(), tol)
        least = 0.1 * ROUNDING if at_once else NOTHING * found.scale
        ended = not (found.size > least or multipliers.moved)
        step = _record(iteration, problem, run, found, multipliers, tol)
        if ended or iteration % MOST_WAIT == 0:
            yield step
        elif not at_once:
            enough = max(tol * step.details["half_square"], OBJECTIVE * step.primal)
            step.waits = multipliers.capped and step.gap > enough
            yield step
        if ended:
            return
        kept, new = choose(iteration, found)
        stop = 0.01 * ROUNDING if at_once else INNER_SHARE * found.size
        run.advance(found, kept, new, stop)


def _projected_gradients(
    problem: NormProblem, a: Vector
) -> Generator[Step, None, None]:
    """Accelerated projected gradient steps on all of K, in float64.

    Begun anew where the objective rises [odonoghue2015]_; a step of the length 1 / L,
    L the largest eigenvalue of K.
    """
    columns, y, m = problem.columns, problem.signs, len(problem.shares)
    columns.refine()
    K = np.asarray(columns.block(np.arange(m), np.arange(m)))
    rate = 1.0 / float(eigsh(K, 1, return_eigenvectors=False)[0])
    ahead, momentum, last = a, 1.0, np.inf
    for iteration in itertools.count():
        c = y * a
        f = K @ c
        value = 0.5 * float(c @ f) - float(a.sum())
        if iteration % STRIDE == 0:
            b = problem.intercept_for(f, c, 0.0)
            details = {"steps": float(iteration)}
            yield problem.step(iteration // STRIDE, (c, f, b), m, details)
        if value > last:  # from here without momentum
            ahead, momentum = a, 1.0
        last = value
        gradient = y * (K @ (y * ahead)) - 1.0
        new = problem.norm.project(
            ahead - rate * gradient,
            problem.shares,
            radius=problem.factor,
            signs=y,
        )
        following = 0.5 * (1.0 + math.sqrt(1.0 + 4.0 * momentum**2))
        ahead = new + (momentum - 1.0) / following * (new - a)
        a, momentum = new, following


class _Multipliers:
    """The multipliers of the cap and of the ball, which the form of a run follows.

    Attributes
    ----------
    theta, mu : float
    capped : bool, whether the sum of each class is half of the cap
    moved : bool, whether the last look changed the form
    """

    def __init__(
        self, problem: NormProblem, norm: BoundedNorm, run: WorkingSet
    ) -> None:
        C = problem.factor
        self._problem, self._run = problem, run
        self._cap = np.inf if norm.cap is None else C * norm.cap
        self._ball = np.inf if norm.ball is None else C * norm.ball
        self._bound = (
            problem.weights if norm.has_box else np.full(len(problem.shares), np.inf)
        )
        self.theta, self.mu = 0.0, 0.0
        if norm.ball is not None:  # for alpha = 0
            self.mu = float(np.sqrt(problem.shares.sum())) / self._ball
        self._least = LEAST * float(np.abs(problem.columns.diag()).mean())
        self._ends: list[tuple[float, float]] = []  # of a bracket: mu, error
        self._accuracy = FIRST
        self.capped = self.moved = False
        self._use()

    def _use(self) -> None:
        ridge = self.mu / self._problem.shares
        self._run.form = Form(self._bound, ridge, 2 if self.capped else 1)

    def follow(self, found: Violations, tol: float) -> Violations:
        """The violations of the form that suits c, which may be a new one."""
        self.moved = False
        if self.capped:
            (rise, fall), (rise_, fall_) = found.ranges
            self.theta = 0.25 * float((rise + fall) - (rise_ + fall_))
        if not found.size <= self._accuracy:
            return found
        error = self._error()
        beyond = float(np.abs(self._run.c).sum()) / self._cap - 1.0
        if not self.capped and beyond > tol + SURE * abs(error):
            self._run.scores.scale(1.0 / (1.0 + beyond))
            self.capped = self.moved = True
            self._ends = []
        elif self.capped and self.theta < -found.size and abs(error) < 1.0 / SURE:
            self.capped, self.theta, self.moved = False, 0.0, True
            self._ends = []
        elif self._will_do(error, 0.1 * tol):
            self._accuracy *= SHARE
        elif found.size > (enough := SHARE * abs(error) * self._excess()):
            self._accuracy = enough
        else:
            new = self.mu, error
            self._ends = [*[end for end in self._ends if _bracket(end, new)][-1:], new]
            self.mu, self.moved = max(self._least, self._next(error)), True
        if not self.moved:
            return found
        self._use()
        return self._run.look()

    def _error(self) -> float:
        """How much longer alpha should be, as a share; zero without a ball."""
        alpha = self._run.c
        length = math.sqrt(float((alpha * alpha / self._problem.shares).sum()))
        return self._ball / length - 1.0 if self.mu > 0 and length > 0 else 0.0

    def _will_do(self, error: float, tol: float) -> bool:
        """Whether the error costs no more than this share of the objective.

        The gap that it leaves is mu alpha_i^2 / s_i, summed, times the error.
        """
        if abs(error) <= tol or (error > 0 and self.mu <= self._least):
            return True
        c = self._run.c
        half = 0.5 * float((c * self._run.scores.values).sum())
        return self._excess() * float(np.abs(c).sum()) * abs(error) <= tol * half

    def _excess(self) -> float:
        """The mean of u_i - theta = mu alpha_i / s_i, weighted by alpha.

        A violation changes this mean by as much, and alpha with it. A violation has to
        be small beside the mean, or it would be taken for an error of mu.
        """
        alpha = np.abs(self._run.c)
        square = float((alpha * alpha / self._problem.shares).sum())
        return self.mu * square / float(alpha.sum())

    def _next(self, error: float) -> float:
        """Where the error, nearly linear in mu, is zero; within the bracket if any."""
        if len(self._ends) == 2:
            (a, at_a), (b, at_b) = self._ends
            share = np.clip(at_a / (at_a - at_b), INSIDE, 1.0 - INSIDE)
            return float(a + share * (b - a))
        factor = 1.0 / (1.0 + error) ** 2
        if error > 0:
            return self.mu * max(1.0 / MOST_CHANGE, min(1.0 / LEAST_CHANGE, factor))
        return self.mu * min(MOST_CHANGE, max(LEAST_CHANGE, factor))


def _bracket(one: tuple[float, float], other: tuple[float, float]) -> bool:
    """Whether the error is zero for a mu between those of two (mu, error).

    The length of alpha falls no faster than 1 / mu. If it seems to fall twice as fast,
    a problem was not solved well enough.
    """
    (low, below), (high, above) = sorted((one, other))
    if not below <= 0.0 < above:
        return False
    return math.log((1.0 + above) / (1.0 + below)) <= 2.0 * math.log(high / low)


def _record(
    iteration: int,
    problem: NormProblem,
    run: WorkingSet,
    found: Violations,
    multipliers: _Multipliers,
    tol: float,
) -> Step:
    """The current point, or the multiple of it that is feasible."""
    c, f, b = run.c, run.scores.values, found.intercept
    t = problem.room(np.abs(c))
    c, f = t * c, t * f
    if problem.values(c, f, b).relative_gap < NEAR * tol:
        b = problem.intercept_for(f, c, b)
    details = {
        "half_square": 0.5 * float((c * f).sum()),
        "violation": found.size,
        "theta": multipliers.theta,
        "capped": float(multipliers.capped),
        "ridge": multipliers.mu,
        "inner_steps": float(run.steps),
        "negative": 0.0 if problem.kernel.is_psd else float(run.negative),
    }
    return problem.step(iteration, (c, f, b), len(run.rows), details)
