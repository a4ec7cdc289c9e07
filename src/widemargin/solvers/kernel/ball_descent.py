"""Smallest balls by steps of the Frank-Wolfe family, for one sigma after the other."""

import sys
from collections.abc import Callable, Generator
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from widemargin.arrays import Vector
from widemargin.problems.ball import BallProblem, Bounds
from widemargin.solution import Certificate, Status, Step, reached
from widemargin.solvers.driver.advice import FAR, Ending, worth
from widemargin.solvers.driver.best import Answer, BestSoFar
from widemargin.solvers.driver.contract import Solver, Start
from widemargin.solvers.kernel.ball_looks import Looks, Seen
from widemargin.solvers.kernel.simplex import SLICE, SimplexDescent, SimplexProblem
from widemargin.system.deadline import passed

# Points whose mean is offered as a center where there was no time to start.
FEW_POINTS = 16
# Entries of vectors that steps read between two looks at their point: these take a
# tenth of the time then, with 20,000 to 30,000 rows.
LOOK = SLICE // 4
# Steps between two looks at least: a look, which sorts, takes as long as some 40.
LEAST_STEPS = 256


class _State(NamedTuple):
    """The steps, and what was seen of their point."""

    descent: SimplexDescent
    seen: Seen


class _BestBall(BestSoFar):
    """The best of the points that were looked at in float64.

    In an answer a is alpha, the distances are w, and |c|^2 is b. In a checkpoint the
    point of the steps is v, and the best one alpha.
    """

    relative_gap = np.inf
    # A checkpoint has these of other problems: there is nothing beside the best alpha.
    v = np.empty(0)
    source: ClassVar[None] = None

    def __init__(self, problem: BallProblem) -> None:
        self.core = problem
        self.primal, self.dual = np.inf, 0.0
        self._descent: SimplexDescent | None = None
        self._known: tuple[Vector, Vector, float] | None = None
        self._last: Certificate  # of the last step, by the g that is kept
        self._saved: Vector | None = None  # the best point of a checkpoint

    @property
    def is_model(self) -> bool:
        """Whether there are points to make a ball of."""
        return self._descent is not None

    def offer(self, v: Vector, state: _State, primal: float, dual: float) -> None:
        """Keep the point of a step if its distances are in float64 and it is better."""
        self._descent, self._last = state.descent, state.seen.bounds.certificate
        if state.descent.exact is not None:
            self._offer(*state.seen)

    def alpha(self) -> Vector:
        """The best point so far, by the g that is kept: (m,)."""
        if self._known is None or self._last.relative_gap < self.relative_gap:
            return self._descent.a if self._descent else self.core.point[0]
        return self._known[0]

    def take(self, start: Start) -> None:
        """Take the best point of a checkpoint: no answer is worse."""
        self._saved = start.alpha
        self._offer_exact(start.alpha)

    def _offer(self, a: Vector, d: Vector, square: float, bounds: Bounds) -> None:
        """Keep a point if it is the best so far."""
        found = bounds.certificate
        if self._known is None or found.relative_gap < self.relative_gap:
            self._known, self.relative_gap = (a, d, square), found.relative_gap
            self.primal, self.dual = found.primal, found.dual

    def _offer_exact(self, a: Vector) -> None:
        """Offer a point with distances computed in float64."""
        a = a / a.sum()
        d, square = self.core.distances(a, self.core.exact(a))
        self._offer(a, d, square, self.core.certify(a, d))

    def _offer_last(self) -> None:
        """Offer the point of the steps, and a quick one where there was no start."""
        if self._known is None:
            self._offer_exact(self._quick() if self._saved is None else self._saved)
        if self._descent is not None and self._descent.exact is None:
            self._offer_exact(self._descent.a)

    def _quick(self) -> Vector:
        """Weights of one point, or of a few: (m,)."""
        a = np.zeros(len(self.core.diagonal))
        a[: 1 if self.core.C is None else FEW_POINTS] = 1.0
        return a

    def point(self, v: Vector, state: _State) -> Callable[[], Any]:
        """What gives the point, and rho and |c|^2."""
        seen = state.seen
        return lambda: (seen.a, (seen.bounds.rho, seen.square))

    def answer(self, tol: float) -> Answer:
        """The best point, the steps' included, with its certificate."""
        try:
            self._offer_last()
        except MemoryError:
            if self._known is None:
                raise
        a, d, square = self._known or self.core.point
        return Answer(a, d, square, self.core.prove(a, tol).certificate)

    def zero(self) -> Answer:
        """The best point so far, or a point without a look at K."""
        a, d, square = self._known or self.core.point
        return Answer(a, d, square, self.core.certify(a, d).certificate)


@dataclass(frozen=True)
class BallDescent(Solver):  # numpydoc ignore=PR02
    """Steps over the simplex, for one sigma after the other.

    Parameters
    ----------
    step : as of `SimplexDescent`
    seed : int, of the start
    most : int or None, steps after which there is a look in any case

    Notes
    -----
    A step takes O(m), and a row of K where it is not kept; the last certificate takes m
    kernel values for each point with a_i > 0.
    """

    name: ClassVar[str] = "ball_descent"
    # A minute or two of 10,000 rows.
    default_max_iter: ClassVar[int] = 5_000_000
    patience: ClassVar[int] = sys.maxsize  # a descent ends itself
    almost: ClassVar[float] = 1.0
    for_kernels: ClassVar[bool] = True

    step: str = "away"
    seed: int = 0
    most: int | None = None

    def supports(self, problem: Any) -> str | None:
        """None, or a sentence why the problem cannot be solved by this solver."""
        is_ball = isinstance(problem, BallProblem)
        return None if is_ball else "BallDescent solves the problems of balls only."

    def best(self, problem: BallProblem) -> _BestBall:
        """What keeps the best ball."""
        return _BestBall(problem)

    def message(self, ending: Ending) -> str:
        """What happened, how good the answer is, and what helps."""
        return _message(ending)

    def iterate(
        self, problem: BallProblem, start: Start | None, tol: float
    ) -> Generator[Step, None, None]:
        """Yield a step at each look, the start included.

        Its point is a, with the descent and what was seen of it.
        """
        told = {} if start is None else start.numbers
        a = problem.start(self.seed) if start is None else start.v
        look = Looks(problem, tol, told.get("sigma", 1.0))
        before = int(told.get("steps", 0.0))  # of the runs that a checkpoint is of
        dual = _dual(problem, look.sigma)
        descent = SimplexDescent(dual, a, self.step, "second")
        most = self.most - before if self.most else self.default_max_iter
        while True:
            point, found = look.at(descent)
            enough = look.is_enough(point.bounds.certificate, descent.steps)
            step = _step(problem, descent, point, before)
            step.details["sigma"] = look.sigma
            step.waits = not (enough and descent.exact is not None)
            yield step
            if look.ends(descent, point, found, enough):
                return
            left = most - descent.steps
            if not self._walk(problem, descent, look.stop, left) and not look.moved:
                return

    def _walk(
        self, problem: BallProblem, descent: SimplexDescent, stop: float, most: int
    ) -> bool:
        """Steps until it is time to look; whether there is a way to go on."""
        some = max(LEAST_STEPS, LOOK // len(problem.diagonal))
        end = descent.steps + min(some, most)
        while descent.steps < end and not passed():
            if not descent.advance(stop, end - descent.steps):
                return False
            if descent.exact is not None:
                break
        return True


def _dual(problem: BallProblem, sigma: float) -> SimplexProblem:
    """The dual of a ball for a sigma, to be minimized over the simplex."""
    h, ones = problem.diagonal, np.ones(len(problem.diagonal))
    return SimplexProblem(problem.columns, ones, sigma * problem.ridge, linear=h)


def _step(
    problem: BallProblem, descent: SimplexDescent, point: Seen, before: int
) -> Step:
    """The step that the trace and callbacks see, made of a point."""
    columns, steps = problem.columns, descent.steps
    active = int(np.count_nonzero(point.a))
    details = {
        "steps": float(before + steps),
        "drops": float(descent.drops),
        "support_vectors": float(active),
        "evaluations": float(columns.evaluations),
        "hits": float(columns.hits),
    }
    values = point.bounds.certificate.primal, point.bounds.certificate.dual
    given: Any = point.a, _State(descent, point)
    return Step(steps, *values, 0.0, active, details, at=lambda: given)


def _message(end: Ending) -> str:
    """What happened, how good the answer is, and what helps."""
    status, gap, limits = end.status, end.gap, end.limits
    if status is Status.SOLVED:
        return status.advice
    cause, advice = {
        Status.MAX_ITER: (f"max_iter={end.max_iter:,} steps", "Raise max_iter"),
        Status.TIME_LIMIT: (
            f"time_limit={limits.time_limit} s",
            "Raise time_limit",
        ),
        Status.INTERRUPTED: ("Ctrl-C", "Fit again"),
        Status.STOPPED_BY_CALLBACK: ("the callback", "Let it go on"),
        Status.OUT_OF_MEMORY: (
            "a lack of memory",
            "The best ball so far was kept. Lower memory_limit",
        ),
    }.get(status, ("rounding", _remedy(end.problem)))
    return (
        f"Stopped by {cause} {reached(gap, limits.tol)}. "
        f"{_worth(end)} {advice}, or raise tol."
    )


def _worth(end: Ending) -> str:
    """How good a ball is, by its gap: a hard one by its radius."""
    gap = end.gap
    if end.problem.C is not None or gap >= FAR:
        return worth(gap, end.bounds)
    more = 100.0 * (1.0 / np.sqrt(1.0 - gap) - 1.0)
    return (
        "The ball encloses all points; its radius is at most "
        f"{more:.2g} % above the smallest possible."
    )


def _remedy(problem: BallProblem) -> str:
    """What helps where rounding is in the way."""
    if problem.columns.kernel.is_named:
        return "Scale the features (StandardScaler)"
    return "Check the kernel, whose values must be symmetric and well scaled"
