"""Smallest balls by steps of the Frank-Wolfe family, and what ends them.

For a soft ball it also looks for sigma, of `widemargin.problems.ball`. For each sigma
the best a has a best sigma of its own. That is larger just where sigma is too small
(the maximum over a is concave in sigma), and grows with it. Where both agree, sigma is
the solution.
"""

import sys
from collections.abc import Callable, Generator
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from widemargin.problems.ball import TINY, BallProblem, Bounds
from widemargin.solution import Certificate, Solution, Status, Step, Trace
from widemargin.solvers.driver.advice import Ending
from widemargin.solvers.driver.best import Answer, BestSoFar
from widemargin.solvers.driver.contract import ChosenSolver, Solver, Start
from widemargin.solvers.driver.driver import run
from widemargin.solvers.driver.limits import Limits
from widemargin.solvers.kernel.simplex import SLICE, SimplexDescent, SimplexProblem
from widemargin.system.deadline import passed

Vector = NDArray[np.float64]

# Steps go on below the gap that was asked for by this factor: their g is in float32.
FURTHER = 0.5
# Points whose mean is offered as a center where there was no time to start.
FEW_POINTS = 16
# Rows up to which a fit goes on until rounding ends it, in float64: milliseconds, for
# which equal problems (rows repeated, or with weights) get equal answers. Not for more
# than this number of steps.
FEW_ROWS, PRECISE, FEW_STEPS = 256, 1e-13, 500_000
# Entries of vectors that steps read between two looks at their point: these take a
# tenth of the time then, with 20,000 to 30,000 rows.
LOOK = SLICE // 4
# Steps between two looks at least: a look, which sorts, takes as long as some 40.
LEAST_STEPS = 256
# Steps after which g is computed in float64 again, whatever it says: in float32 it may
# go astray. So many roundings of 6e-8 add up to some 1e-5, a tenth of the usual tol.
REFRESH = 20_000
# A look is progress where the dual value has grown by this share of the gap since the
# look before; so many looks without progress end the run. (2 and 6: within a tenth of
# the time, benchmarks/core/untuned.py.)
PROGRESS, PATIENCE = 1e-3, 3
# A move of sigma by this share is progress, too.
MOVED = 0.01
# Times that steps may find the gap reached where float64 does not, before the rows of K
# become float64 too.
MISSES = 2
# Share of the largest k(x, x) by which a squared distance below 0 is no rounding.
NEGATIVE = 1e-8


def _dual(problem: BallProblem, sigma: float) -> SimplexProblem:
    """The dual of a ball for a sigma, to be minimized over the simplex."""
    h, ones = problem.diagonal, np.ones(len(problem.diagonal))
    return SimplexProblem(problem.columns, ones, sigma * problem.ridge, linear=h)


class _Sigma:
    """The search for sigma: by secants, as plain steps may be as short as sigma is.

    Attributes
    ----------
    value : float in (0, 1]
    """

    def __init__(self, value: float) -> None:
        self.value = value
        # Logarithms of a sigma that was too small, and of a sigma that was too large.
        self._low, self._high = -np.inf, np.inf
        self._last: tuple[float, float] | None = None

    def move(self, ratio: float) -> float:
        """Take the next sigma, after V / (2 S) of the best a; the share it moves by."""
        if ratio <= 0 or (self.value == 1.0 and ratio >= 1.0):
            return 0.0
        x, excess = np.log(self.value), np.log(ratio / self.value)
        if excess > 0:
            self._low = max(self._low, x)
        else:
            self._high = min(self._high, x)
        found = x + excess  # on the same side of the solution
        if self._last is not None and excess != self._last[1]:
            x0, excess0 = self._last
            secant = x - excess * (x - x0) / (excess - excess0)
            if self._low < secant < self._high:
                found = secant
        self._last, before = (x, excess), self.value
        self.value = float(np.clip(np.exp(found), TINY, 1.0))
        return abs(self.value / before - 1.0)


class _Seen(NamedTuple):
    """A point of the steps: its distances by the g that is kept, |c|^2 and values."""

    a: Vector
    d: Vector
    square: float
    bounds: Bounds


class _State(NamedTuple):
    """The steps, and what was seen of their point."""

    descent: SimplexDescent
    seen: _Seen


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
    step, selection : as of `SimplexDescent`
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
    selection: str = "second"
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
        look = _Looks(problem, self, tol, told.get("sigma", 1.0))
        before = int(told.get("steps", 0.0))  # of the runs that a checkpoint is of
        descent = SimplexDescent(
            _dual(problem, look.sigma), a, self.step, self.selection
        )
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


class _Looks:
    """What looks at a descent find, and do for it to go on.

    Attributes
    ----------
    stop : float, of the next steps
    moved : bool, whether sigma moved at the last look
    """

    def __init__(
        self, problem: BallProblem, solver: BallDescent, tol: float, sigma: float
    ) -> None:
        few = len(problem.diagonal) <= FEW_ROWS
        if few:
            problem.columns.refine()
        self._problem, self._few, self._tol = problem, few, tol
        self._aim = PRECISE if few else FURTHER * tol  # gap of the steps
        # Of the last look in float64: the dual value, and the number of steps.
        self._last, self._refreshed = -np.inf, 0
        self._misses = self._failures = 0
        self._ridge, self._sigma = sigma * problem.ridge, _Sigma(sigma)
        self.stop, self.moved = 0.0, False

    @property
    def sigma(self) -> float:
        """Sigma of the next steps."""
        return self._sigma.value

    def at(self, descent: SimplexDescent) -> tuple[_Seen, bool]:
        """The current point, in float64 where that is due; whether the steps ended."""
        found = descent.exact is not None  # the steps have found an end
        self.moved = False
        point = self._seen(descent)
        near = point.bounds.certificate.relative_gap <= self._aim
        if not found and (near or descent.steps - self._refreshed >= REFRESH):
            descent.refresh()
            return self._seen(descent), near
        return point, found

    def _seen(self, descent: SimplexDescent) -> _Seen:
        """The point and its values, by the g that is kept."""
        a = descent.a
        f = descent.exact
        if f is None:
            f = descent.g - self._ridge * a
        d, square = self._problem.distances(a, f)
        return _Seen(a, d, square, self._problem.certify(a, d))

    def is_enough(self, certificate: Certificate, steps: int) -> bool:
        """Whether the gap is small enough for the run to end."""
        few = self._few and steps < FEW_STEPS
        return certificate.relative_gap <= (PRECISE if few else self._tol)

    def ends(
        self, descent: SimplexDescent, point: _Seen, found: bool, enough: bool
    ) -> bool:
        """Whether a look is the last; else the descent is prepared to go on."""
        if found and descent.steps > 0 and not enough:
            self._misses += 1  # the g of the steps was too good
            self._aim *= FURTHER
        exact = descent.exact is not None
        if exact and (enough or self._is_stuck(descent, point.bounds)):
            return True
        V = float((point.a * point.d).sum())
        self._prepare(descent, point.a, V, point.bounds.certificate)
        return False

    def _prepare(
        self, descent: SimplexDescent, a: Vector, V: float, certificate: Certificate
    ) -> None:
        """Let the descent go on, and stop at the gap aimed at.

        The descent maximizes V - sigma S, and stops by the gap of this objective,
        relative to V, which is positive. P - D is at most this gap, for sigma < 1 too:
        then 2 sigma S = V, and t_i = sigma a_i / (2 C_i) costs sum C_i t_i^2 = D. But
        there D is half of sigma V only, and a quarter of the share of V will mostly do.
        """
        descent.lift(float((self._ridge * a * a).sum()))
        value = max(V, certificate.scale)
        aim = self._aim * max(certificate.primal, certificate.scale) / value
        if self._sigma.value < 1.0:
            aim = 0.25 * self._aim
        self.stop = float(np.expm1(0.5 * np.log1p(aim)))  # its square less 1 is aim

    def _is_stuck(self, descent: SimplexDescent, bounds: Bounds) -> bool:
        """Whether a look in float64 is the last one, though its gap is not enough.

        The rows of K become float64 where they have too few digits: the gap was missed,
        or no progress is seen.
        """
        moved = self._sigma.move(bounds.ratio)
        if moved:
            self.moved = True  # the next sigma may allow steps where this one did not
            self._ridge = self._sigma.value * self._problem.ridge
            descent.use_ridge(self._ridge)
        certificate = bounds.certificate
        grows = certificate.dual > self._last + PROGRESS * certificate.gap
        self._failures = 0 if grows or moved > MOVED else self._failures + 1
        if self._failures or self._misses >= MISSES:
            self._problem.columns.refine()
        self._last, self._refreshed = certificate.dual, descent.steps
        return self._failures >= PATIENCE


def _step(
    problem: BallProblem, descent: SimplexDescent, point: _Seen, before: int
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


@dataclass(frozen=True)
class Ball:
    """The answer of `enclose`, with its proof.

    Attributes
    ----------
    a : ndarray (m,), nonnegative, of sum 1: the center is sum a_i phi(x_i)
    rho : float, the squared radius
    center_square : float, |c|^2
    distances : ndarray (m,), squared distances of the points from the center
    certificate : Certificate, recomputed in float64 from a
    status : Status
    message : str, how the run ended and what to do about it
    trace : Trace, one step for each look at the clock
    is_empty : bool, whether no point lies inside
    is_convex : bool, whether all squared distances are at least 0
    """

    a: Vector
    rho: float
    center_square: float
    distances: Vector
    certificate: Certificate
    status: Status
    message: str
    trace: Trace
    is_empty: bool
    is_convex: bool


def enclose(
    problem: BallProblem,
    limits: Limits,
    *,
    step: str = "away",
    selection: str = "second",
    seed: int = 0,
) -> Ball:
    """The smallest ball, to a gap of ``limits.tol``.

    Parameters
    ----------
    problem : BallProblem
    limits : Limits
        ``max_iter`` counts steps.
    step, selection, seed : as of `BallDescent`

    Returns
    -------
    Ball
        After Ctrl-C too, with the status that says so.
    """
    solver = BallDescent(step, selection, seed, limits.max_iter)
    return _ball(problem, run(problem, ChosenSolver(solver, "as asked"), limits))


def _ball(problem: BallProblem, solution: Solution) -> Ball:
    """The ball of a solution."""
    a, d = solution.alpha, solution.w
    rho, largest = problem.certify(a, d).rho, max(float(d.max()), 0.0)
    if largest <= problem.resolution:  # the points are one
        rho = largest
    return Ball(
        a=a,
        rho=rho,
        center_square=solution.b,
        distances=np.maximum(d, 0.0),
        certificate=solution.certificate,
        status=solution.status,
        message=solution.message,
        trace=solution.trace,
        is_empty=rho == 0.0 < largest,
        is_convex=bool(d.min() >= -NEGATIVE * float(problem.diagonal.max())),
    )


def unbounded(m: int, square: float, limits: Limits) -> Ball:
    """The ball of infinite radius around the first of m points, of that square.

    For a time limit in which not even the k(x, x) of all points are known.
    """
    a = np.zeros(m)
    a[0] = 1.0
    return Ball(
        a=a,
        rho=np.inf,
        center_square=square,
        distances=np.zeros(m),
        certificate=Certificate(np.inf, 0.0),
        status=Status.TIME_LIMIT,
        message=(
            f"Stopped by time_limit={limits.time_limit} s before anything was known of "
            "the points: the radius is infinite. Raise time_limit."
        ),
        trace=Trace(),
        is_empty=False,
        is_convex=True,
    )


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
    usable = "The ball is far from the smallest one."
    if gap < 0.5 and end.problem.C is None:
        more = 100.0 * (1.0 / np.sqrt(1.0 - gap) - 1.0)
        usable = (
            "The ball encloses all points; its radius is at most "
            f"{more:.2g} % above the smallest possible."
        )
    elif gap < 0.5:
        usable = "The model is usable."
    return (
        f"Stopped by {cause} at a relative gap of {gap:.1e} (asked: "
        f"{limits.tol:.0e}). {usable} {advice}, or raise tol."
    )


def _remedy(problem: BallProblem) -> str:
    """What helps where rounding is in the way."""
    if problem.columns.kernel.is_named:
        return "Scale the features (StandardScaler)"
    return "Check the kernel, whose values must be symmetric and well scaled"
