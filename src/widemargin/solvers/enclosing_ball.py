"""Smallest balls around points phi(x_i), with K = (phi(x_i)'phi(x_j)): hard and soft.

Hard, with the center c and the squared radius rho:

    minimise   rho   subject to   d_i = |phi(x_i) - c|^2 <= rho;

soft, with weights C_i > 0:

    minimise   rho + sum_i C_i max(0, d_i - rho)^2   over c and rho >= 0.

The Lagrangian with multipliers b_i >= 0 of t_i >= d_i - rho is stationary in c, rho
and the slacks t where c = sum b_i phi(x_i) / sum b, sum b <= 1 (= 1 if rho > 0) and
t_i = b_i / (2 C_i). With b = sigma a, sum a = 1, the dual is, for both,

    maximise   sigma V(a) - sigma^2 S(a)   over a >= 0, sum a = 1, 0 <= sigma <= 1,

    V(a) = sum_i a_i k(x_i, x_i) - a'K a = sum_i a_i d_i,
    S(a) = sum_i a_i^2 / (4 C_i),

S = 0 for the hard one, and d from the center sum a_i phi(x_i). Mostly sigma = 1, and
this is the problem of `widemargin.solvers.simplex` with h = diag(K) and the ridge
1 / (4 C_i). With sigma < 1, where C is too small for a positive rho [chang2013]_, it is
that with the ridge sigma / (4 C_i), and for a given a the best sigma is V / (2 S).

With uniform weights h = diag(Q) has the same solutions: V - S is, up to a constant,
the squared radius of a hard ball around (phi(x_i), e_i / sqrt(4 C)) [tsang2005]_.
"""

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from widemargin.columns import Columns
from widemargin.solution import Certificate, Status, Step, Trace
from widemargin.solvers.limits import Clock, Limits
from widemargin.solvers.simplex import SLICE, SimplexDescent, SimplexProblem

Vector = NDArray[np.float64]

# Steps when there is no max_iter. Not tuned: a minute or two of 10,000 rows.
DEFAULT_MAX_ITER = 5_000_000
# Steps go on below the gap that was asked for by this factor: their g is in float32.
FURTHER = 0.5
# Rows up to which a fit goes on until rounding ends it, in float64: milliseconds, for
# which equal problems (rows repeated, or with weights) get equal answers.
FEW_ROWS, PRECISE = 256, 1e-13
# Entries of vectors that steps read between two looks at their point: these take a
# tenth of the time then, with 20,000 to 30,000 rows.
LOOK = SLICE // 4
# Steps between two looks at least: a look, which sorts, takes as long as some 40.
LEAST_STEPS = 256
# Rows whose mean is the first guess at the center of a soft ball. Not tuned.
SAMPLE = 256
# Steps after which g is computed in float64 again, whatever it says: in float32 it may
# go astray. Not tuned.
REFRESH = 20_000
# Of two such looks the second is progress where the dual value has grown by this share
# of the gap; as many without end the run. Not tuned.
PROGRESS, PATIENCE = 1e-3, 3
# Times that steps may find the gap reached where float64 does not, before the rows of K
# become float64 too.
MISSES = 2
# Share of the largest k(x, x) that distances are compared with, where all are below: so
# rounding of 1e-16 is a gap of 1e-4 only.
RESOLVED = 1e-12
# Share of the largest k(x, x) by which a squared distance below 0 is no rounding.
NEGATIVE = 1e-8


class Bounds(NamedTuple):
    """Values of a center: its certificate, the best rho, and sigma of the dual."""

    certificate: Certificate
    rho: float
    sigma: float


@dataclass(frozen=True)
class BallProblem:
    """The points, and what balls around them cost.

    Attributes
    ----------
    columns : Columns of K, (m, m)
    C : ndarray (m,), positive, or None for the hard ball

    Raises
    ------
    ValueError
        A point has k(x, x) < 0.
    """

    columns: Columns
    C: Vector | None = None

    def __post_init__(self) -> None:
        least = int(np.argmin(self.diagonal))
        if not self.diagonal[least] >= 0:
            raise ValueError(
                "The kernel must have k(x, x) >= 0, the squared length of a point. Got "
                f"{self.diagonal[least]:.6g} at row {least} instead."
            )

    @functools.cached_property
    def diagonal(self) -> Vector:
        """k(x_i, x_i): (m,)."""
        return self.columns.diag()

    @functools.cached_property
    def ridge(self) -> Vector:
        """1 / (4 C_i), or zeros: (m,)."""
        if self.C is None:
            return np.zeros(len(self.diagonal))
        return 0.25 / np.maximum(self.C, np.finfo(np.float64).tiny)

    @property
    def resolution(self) -> float:
        """The squared distance below which all is rounding."""
        return RESOLVED * float(self.diagonal.max())

    @functools.cached_property
    def simplex(self) -> SimplexProblem:
        """The dual, to be minimised."""
        ones = np.ones(len(self.diagonal))
        return SimplexProblem(self.columns, ones, self.ridge, linear=self.diagonal)

    def distances(self, a: Vector, f: Vector) -> tuple[Vector, float]:
        """Squared distances d (m,) from c = sum a_i phi(x_i), and |c|^2; f = K a."""
        square = float((a * f).sum())
        distances: Vector = self.diagonal + square - 2.0 * f
        return distances, square

    def exact(self, a: Vector) -> Vector:
        """K a in float64: (m,)."""
        J = np.flatnonzero(a)
        return self.columns.exact(np.arange(len(a)), J, a[J])

    def certify(self, a: Vector, d: Vector) -> "Bounds":
        """Primal and dual value of a point of the simplex with these distances."""
        d = np.maximum(d, 0.0)
        V, S = float((a * d).sum()), float((self.ridge * a * a).sum())
        floor = max(self.resolution, float(np.finfo(np.float64).tiny))
        if self.C is None:
            rho = float(d.max())
            return Bounds(Certificate(rho, V, floor), rho, 1.0)
        rho, sigma = max(best_square(d, self.C), 0.0), min(1.0, 0.5 * V / S)
        excess = np.maximum(d - rho, 0.0)
        primal, largest = rho + float((self.C * excess * excess).sum()), float(d.max())
        if primal > largest:  # C is so large that rounding of the excess costs more
            primal = rho = largest
        dual = sigma * V - sigma * sigma * S
        return Bounds(Certificate(primal, dual, (sigma or 1.0) * floor), rho, sigma)

    def start(self, seed: int) -> Vector:
        """A first point: (m,), of sum 1.

        Hard: half on the farthest point from a random one, half opposite. Soft: what
        would be optimal if the center were the mean of a sample.
        """
        m, random = len(self.diagonal), np.random.default_rng(seed)
        a = np.zeros(m)
        if self.C is None:
            far = self._farthest(int(random.integers(m)))
            a[[far, self._farthest(far)]] = 1.0
        else:
            a[random.choice(m, min(m, SAMPLE), replace=False)] = 1.0 / min(m, SAMPLE)
            d = np.maximum(self.distances(a, self.exact(a))[0], 0.0)
            excess = self.C * np.maximum(d - max(best_square(d, self.C), 0.0), 0.0)
            a = excess if excess.any() else a
        start: Vector = a / a.sum()
        return start

    def _farthest(self, i: int) -> int:
        """The point that is farthest from point i."""
        a = np.zeros(len(self.diagonal))
        a[i] = 1.0
        return int(np.argmax(self.distances(a, self.exact(a))[0]))


def best_square(d: Vector, C: Vector) -> float:
    """The rho that minimises rho + sum C_i max(0, d_i - rho)^2; d and C (m,).

    There 2 sum C_i max(0, d_i - rho) = 1: with the k largest d above rho it is
    (2 sum C_i d_i - 1) / (2 sum C_i), of which the largest is the one. O(m log m).
    """
    order = np.argsort(-d)
    d, c = d[order], 2.0 * C[order]
    # From the largest d, whose digits are lost otherwise.
    below = np.cumsum(c * (d[0] - d))
    return float(d[0] - ((below + 1.0) / np.cumsum(c)).min())


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


class _Run:
    """One descent, and what ends it."""

    def __init__(self, problem: BallProblem, limits: Limits, few: bool) -> None:
        self._problem, self._limits = problem, limits
        self._clock = limits.clock or Clock()
        self._max_iter = limits.max_iter or DEFAULT_MAX_ITER
        # The gap that steps aim at, and that at which they may end.
        self._aim = PRECISE if few else FURTHER * limits.tol
        self._enough = PRECISE if few else limits.tol
        # Of the last look in float64: the dual value, and the number of steps.
        self._last, self._refreshed = -np.inf, 0
        self._misses = self._failures = 0
        # The best point of those looked at in float64, its distances and |c|^2.
        self._best: tuple[Vector, Vector, float] | None = None
        self._best_gap = np.inf
        self._descent: SimplexDescent | None = None
        self._trace = Trace()
        self._ridge, self._sigma = problem.ridge, 1.0

    def descend(self, step: str, selection: str, seed: int) -> Status:
        """Make steps until something ends them; the word for what did."""
        try:
            start = self._problem.start(seed)
            descent = SimplexDescent(self._problem.simplex, start, step, selection)
            self._descent = descent
            while True:
                ended = self._look(descent)
                if ended is not None:
                    return ended
                if not self._walk(descent):
                    return Status.STALLED
        except KeyboardInterrupt:
            return Status.INTERRUPTED

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
        limit = self._limits.time_limit
        return limit is not None and self._clock.seconds() >= limit

    def _look(self, descent: SimplexDescent) -> Status | None:
        """Record the current point, tell the user; what ends the run, if anything."""
        found = descent.exact is not None  # the steps have found an end
        a, d, square, bounds = self._state(descent)
        near = bounds.certificate.relative_gap <= self._aim
        if not found and (near or descent.steps - self._refreshed >= REFRESH):
            descent.refresh()
            found = near
            a, d, square, bounds = self._state(descent)
        if descent.exact is not None:
            self._offer(a, d, square)
        stop = self._tell(descent, a, square, bounds)
        self._prepare(descent, a, float((a * d).sum()), bounds)
        if found and descent.steps > 0 and not self._is_enough(bounds.certificate):
            self._misses += 1  # the g of the steps was too good
            self._aim *= FURTHER
        if descent.exact is not None and self._settled(
            descent.steps, bounds.certificate
        ):
            return Status.SOLVED
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
        self, descent: SimplexDescent, a: Vector, V: float, bounds: Bounds
    ) -> None:
        """Let the descent go on with the best sigma, and stop at the gap aimed at.

        It maximises V - sigma S, and stops by a gap of that, relative to what it is
        lifted to: V, which is positive. P - D is at most that gap, for sigma < 1 too:
        then 2 sigma S = V, and t_i = sigma a_i / (2 C_i) costs sum C_i t_i^2 = D.
        """
        sigma, certificate = bounds.sigma, bounds.certificate
        if sigma < 1.0 or self._sigma < 1.0:
            self._ridge, self._sigma = sigma * self._problem.ridge, sigma
            descent.use_ridge(self._ridge)
        descent.lift(float((self._ridge * a * a).sum()))
        value = max(V, certificate.scale)
        aim = self._aim * max(certificate.primal, certificate.scale) / value
        self._stop = float(np.expm1(0.5 * np.log1p(aim)))  # its square less 1 is aim

    def _is_enough(self, certificate: Certificate) -> bool:
        return certificate.relative_gap <= self._enough

    def _settled(self, steps: int, certificate: Certificate) -> bool:
        """Whether a look in float64 is the last one; else the rows of K may become so.

        They have too few digits where the gap was missed, or no progress is seen.
        """
        if self._is_enough(certificate):
            return True
        is_progress = certificate.dual > self._last + PROGRESS * certificate.gap
        self._failures = 0 if is_progress else self._failures + 1
        if self._failures or self._misses >= MISSES:
            self._problem.columns.refine()
        self._last, self._refreshed = certificate.dual, steps
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
        if self._descent is None:  # Ctrl-C came before there was a start
            a = np.zeros(len(problem.diagonal))
            a[0] = 1.0
            self._offer_exact(a)
        elif self._descent.exact is None:
            self._offer_exact(self._descent.a)
        a, d, square = self._best  # type: ignore[misc]
        certificate, rho, _ = problem.certify(a, d)
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
        }.get(status, ("rounding", "Scale the features (StandardScaler)"))
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


def _point(a: Vector, numbers: tuple[float, float]) -> Any:
    return a, numbers
