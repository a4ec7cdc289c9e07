"""Smallest balls by steps of the Frank-Wolfe family: a run, and what ends it.

For a soft ball it also looks for sigma, of `widemargin.problems.ball`. That of
the best a for a sigma is above it just where it is too small (the maximum over a is
concave in sigma), and grows with it: the one that is its own is looked for.
"""

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from widemargin.problems.ball import TINY, BallProblem, Bounds
from widemargin.solution import Certificate, Status, Step, Trace
from widemargin.solvers.driver.limits import Clock, Limits
from widemargin.solvers.kernel.simplex import SLICE, SimplexDescent, SimplexProblem
from widemargin.system.deadline import OutOfTime, until

Vector = NDArray[np.float64]

# Steps when there is no max_iter. Not tuned: a minute or two of 10,000 rows.
DEFAULT_MAX_ITER = 5_000_000
# Steps go on below the gap that was asked for by this factor: their g is in float32.
FURTHER = 0.5
# Points whose mean is offered as a center where there was no time to start.
FEW_POINTS = 16
# Rows up to which a fit goes on until rounding ends it, in float64: milliseconds, for
# which equal problems (rows repeated, or with weights) get equal answers. Not for more
# than so many steps.
FEW_ROWS, PRECISE, FEW_STEPS = 256, 1e-13, 500_000
# Entries of vectors that steps read between two looks at their point: these take a
# tenth of the time then, with 20,000 to 30,000 rows.
LOOK = SLICE // 4
# Steps between two looks at least: a look, which sorts, takes as long as some 40.
LEAST_STEPS = 256
# Steps after which g is computed in float64 again, whatever it says: in float32 it may
# go astray. Not tuned.
REFRESH = 20_000
# Of two such looks the second is progress where the dual value has grown by this share
# of the gap; as many without end the run. Not tuned.
PROGRESS, PATIENCE = 1e-3, 3
# Share by which sigma moves where that is progress too.
MOVED = 0.01
# Times that steps may find the gap reached where float64 does not, before the rows of K
# become float64 too.
MISSES = 2
# Share of the largest k(x, x) by which a squared distance below 0 is no rounding.
NEGATIVE = 1e-8


def _dual(problem: BallProblem) -> SimplexProblem:
    """The dual of a ball, to be minimised over the simplex."""
    ones = np.ones(len(problem.diagonal))
    return SimplexProblem(problem.columns, ones, problem.ridge, linear=problem.diagonal)


class _Sigma:
    """The search for sigma: by secants, as its own steps may be as short as it is.

    Attributes
    ----------
    value : float in (0, 1]
    """

    def __init__(self) -> None:
        self.value = 1.0
        # Logarithms of one that was too small, and of one that was too large.
        self._low, self._high = -np.inf, np.inf
        self._last: tuple[float, float] | None = None

    def move(self, ratio: float) -> float:
        """Take the next one, after V / (2 S) of the best a; by what share it moves."""
        if ratio <= 0 or (self.value == 1.0 and ratio >= 1.0):
            return 0.0
        x, excess = np.log(self.value), np.log(ratio / self.value)
        if excess > 0:
            self._low = max(self._low, x)
        else:
            self._high = min(self._high, x)
        found = x + excess  # on the same side of the one that is looked for
        if self._last is not None and excess != self._last[1]:
            x0, excess0 = self._last
            secant = x - excess * (x - x0) / (excess - excess0)
            if self._low < secant < self._high:
                found = secant
        self._last, before = (x, excess), self.value
        self.value = float(np.clip(np.exp(found), TINY, 1.0))
        return abs(self.value / before - 1.0)


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
    step, selection : as of `SimplexDescent`
    seed : int, of the start

    Returns
    -------
    Ball
        After Ctrl-C too, with the status that says so.

    Notes
    -----
    A step takes O(m), and a row of K where that is not kept; the last certificate m
    kernel values for each point with a_i > 0.
    """
    few = len(problem.diagonal) <= FEW_ROWS
    if few:
        problem.columns.refine()
    run = _Run(problem, limits, few)
    status = run.descend(step, selection, seed)
    return run.ball(status)


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


class _Run:
    """One descent, and what ends it."""

    def __init__(self, problem: BallProblem, limits: Limits, few: bool) -> None:
        self._problem, self._limits = problem, limits
        self._clock = limits.clock or Clock()
        self._deadline = self._clock.deadline(limits.end)
        self._max_iter = limits.max_iter or DEFAULT_MAX_ITER
        self._few = few
        self._aim = PRECISE if few else FURTHER * limits.tol  # gap of the steps
        # Of the last look in float64: the dual value, and the number of steps.
        self._last, self._refreshed = -np.inf, 0
        self._misses = self._failures = 0
        # The best point of those looked at in float64, its distances and |c|^2.
        self._best: tuple[Vector, Vector, float] | None = None
        self._best_gap = np.inf
        self._descent: SimplexDescent | None = None
        self._trace = Trace()
        self._ridge, self._sigma = problem.ridge, _Sigma()
        self._moved = False  # sigma, at the last look

    def descend(self, step: str, selection: str, seed: int) -> Status:
        """Make steps until something ends them; the word for what did."""
        try:
            with until(self._deadline):
                return self._descend(step, selection, seed)
        except KeyboardInterrupt:
            return Status.INTERRUPTED
        except OutOfTime:
            if self._deadline is None:  # another one's
                raise
            return Status.TIME_LIMIT
        except MemoryError:
            if self._descent is None:  # there is no point to keep
                raise
            return Status.OUT_OF_MEMORY

    def _descend(self, step: str, selection: str, seed: int) -> Status:
        """Make steps from a start; what ended them."""
        start = self._problem.start(seed)
        descent = SimplexDescent(_dual(self._problem), start, step, selection)
        self._descent = descent
        while True:
            ended = self._look(descent)
            if ended is not None:
                return ended
            if not self._walk(descent) and not self._moved:
                return Status.STALLED

    def _walk(self, descent: SimplexDescent) -> bool:
        """Steps until it is time to look; whether there is a way to go on."""
        some = max(LEAST_STEPS, LOOK // len(self._problem.diagonal))
        end = min(descent.steps + some, self._max_iter)
        while descent.steps < end and not self._late():
            if not descent.advance(self._stop, end - descent.steps):
                return False
            if descent.exact is not None:
                break
        return True

    def _late(self) -> bool:
        return self._deadline is not None and self._deadline.left <= 0.0

    def _look(self, descent: SimplexDescent) -> Status | None:
        """Record the current point, tell the user; what ends the run, if anything."""
        found = descent.exact is not None  # the steps have found an end
        self._moved = False
        a, d, square, bounds = self._state(descent)
        near = bounds.certificate.relative_gap <= self._aim
        if not found and (near or descent.steps - self._refreshed >= REFRESH):
            descent.refresh()
            found = near
            a, d, square, bounds = self._state(descent)
        if descent.exact is not None:
            self._offer(a, d, square)
        stop = self._tell(descent, a, square, bounds)
        enough = self._is_enough(bounds.certificate, descent.steps)
        if found and descent.steps > 0 and not enough:
            self._misses += 1  # the g of the steps was too good
            self._aim *= FURTHER
        if descent.exact is not None and (enough or self._ends(descent, bounds)):
            return Status.SOLVED
        self._prepare(descent, a, float((a * d).sum()), bounds.certificate)
        if stop:
            return Status.STOPPED_BY_CALLBACK
        if descent.steps >= self._max_iter:
            return Status.MAX_ITER
        return Status.TIME_LIMIT if self._late() else None

    def _state(self, descent: SimplexDescent) -> tuple[Vector, Vector, float, Bounds]:
        """The point, its distances, |c|^2 and its values, by the g that is kept."""
        a = descent.a
        f = descent.exact
        if f is None:
            f = descent.g - self._ridge * a
        d, square = self._problem.distances(a, f)
        return a, d, square, self._problem.certify(a, d)

    def _prepare(
        self, descent: SimplexDescent, a: Vector, V: float, certificate: Certificate
    ) -> None:
        """Let the descent go on, and stop at the gap aimed at.

        It maximises V - sigma S, and stops by a gap of that, relative to what it is
        lifted to: V, which is positive. P - D is at most that gap, for sigma < 1 too:
        then 2 sigma S = V, and t_i = sigma a_i / (2 C_i) costs sum C_i t_i^2 = D. But
        there D is half of sigma V only, and a quarter of the share of V will mostly do.
        """
        descent.lift(float((self._ridge * a * a).sum()))
        value = max(V, certificate.scale)
        aim = self._aim * max(certificate.primal, certificate.scale) / value
        if self._sigma.value < 1.0:
            aim = 0.25 * self._aim
        self._stop = float(np.expm1(0.5 * np.log1p(aim)))  # its square less 1 is aim

    def _is_enough(self, certificate: Certificate, steps: int) -> bool:
        few = self._few and steps < FEW_STEPS
        return certificate.relative_gap <= (PRECISE if few else self._limits.tol)

    def _ends(self, descent: SimplexDescent, bounds: Bounds) -> bool:
        """Whether a look in float64 is the last one, though its gap is not enough.

        The rows of K become float64 where they have too few digits: the gap was missed,
        or no progress is seen.
        """
        moved = self._sigma.move(bounds.ratio)
        if moved:
            self._moved = True  # no steps for one sigma may be some for the next
            self._ridge = self._sigma.value * self._problem.ridge
            descent.use_ridge(self._ridge)
        certificate = bounds.certificate
        grows = certificate.dual > self._last + PROGRESS * certificate.gap
        self._failures = 0 if grows or moved > MOVED else self._failures + 1
        if self._failures or self._misses >= MISSES:
            self._problem.columns.refine()
        self._last, self._refreshed = certificate.dual, descent.steps
        return self._failures >= PATIENCE

    def _tell(
        self, descent: SimplexDescent, a: Vector, square: float, bounds: Bounds
    ) -> bool:
        """Add to the trace and call the user, off the clock; whether to stop."""
        certificate, rho, _ = bounds
        columns, steps = self._problem.columns, descent.steps
        active = int(np.count_nonzero(a))
        details = {
            "steps": float(steps),
            "drops": float(descent.drops),
            "support_vectors": float(active),
            "evaluations": float(columns.evaluations),
            "hits": float(columns.hits),
        }
        point: Callable[[], Any] = functools.partial(_point, a, (rho, square))
        values = certificate.primal, certificate.dual
        step = Step(steps, *values, 0.0, active, details, _point=point)
        step.seconds = self._clock.seconds()
        self._trace.append(step)
        callback = self._limits.callback
        stop = callback is not None and self._clock.pause(callback, step)
        step.forget_point()
        return bool(stop)

    def ball(self, status: Status) -> Ball:
        """The best point with its certificate, which alone can call it solved."""
        problem, tol = self._problem, self._limits.tol
        try:
            with until(self._clock.deadline(self._limits.answered)):
                self._offer_last()
        except OutOfTime:
            if self._deadline is None:  # another one's
                raise
            if self._best is None:
                self._best = problem.point
        except MemoryError:
            if self._best is None:
                raise
            status = Status.OUT_OF_MEMORY
        a, d, square = self._best  # type: ignore[misc]
        certificate, rho = problem.prove(a, tol).certificate, problem.certify(a, d).rho
        largest = max(float(d.max()), 0.0)
        if rho == 0.0 and largest <= problem.resolution:  # the points are one
            rho = largest
        gap = certificate.relative_gap
        if gap <= tol and status is not Status.INTERRUPTED:
            status = Status.SOLVED
        elif status is Status.SOLVED:
            status = Status.STALLED
        return Ball(
            a=a,
            rho=rho,
            center_square=square,
            distances=np.maximum(d, 0.0),
            certificate=certificate,
            status=status,
            message=self._message(status, gap),
            trace=self._trace,
            is_empty=rho == 0.0 < largest,
            is_convex=bool(d.min() >= -NEGATIVE * float(problem.diagonal.max())),
        )

    def _offer_last(self) -> None:
        """Offer the point of the steps, and a quick one where there was no start."""
        if self._best is None:
            a = np.zeros(len(self._problem.diagonal))
            a[: 1 if self._problem.C is None else FEW_POINTS] = 1.0
            self._offer_exact(a)
        if self._descent is not None and self._descent.exact is None:
            self._offer_exact(self._descent.a)

    def _offer(self, a: Vector, d: Vector, square: float) -> None:
        """Keep a point with distances in float64 if it is the best so far."""
        gap = self._problem.certify(a, d).certificate.relative_gap
        if self._best is None or gap < self._best_gap:
            self._best, self._best_gap = (a, d, square), gap

    def _offer_exact(self, a: Vector) -> None:
        """Keep a point if it is the best so far, by distances computed in float64."""
        a = a / a.sum()
        self._offer(a, *self._problem.distances(a, self._problem.exact(a)))

    def _message(self, status: Status, gap: float) -> str:
        """What happened, how good the answer is, and what helps."""
        if status is Status.SOLVED:
            return status.advice
        limits = self._limits
        cause, advice = {
            Status.MAX_ITER: (f"max_iter={self._max_iter:,} steps", "Raise max_iter"),
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
        }.get(status, ("rounding", self._remedy()))
        usable = "The ball is far from the smallest one."
        if gap < 0.5 and self._problem.C is None:
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

    def _remedy(self) -> str:
        """What helps where rounding is in the way."""
        if self._problem.columns.kernel.is_named:
            return "Scale the features (StandardScaler)"
        return "Check the kernel, whose values must be symmetric and well scaled"


def _point(a: Vector, numbers: tuple[float, float]) -> Any:
    return a, numbers
