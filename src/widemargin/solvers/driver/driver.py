"""The contract of a solver, and the driver that runs one.

A solver is a frozen set of options with a generator: `Solver.iterate` yields a `Step`
an iteration and keeps its state in local variables. The driver measures time, enforces
limits, keeps the best point, records the trace, calls the user back, reacts to Ctrl-C
and decides the status. No solver prints, times itself or certifies itself.
"""

import dataclasses
import math
import warnings
from collections.abc import Generator, Sequence
from typing import Any

import numpy as np

from widemargin.arrays import Vector
from widemargin.data.distributed import ClusterLostError
from widemargin.numerics.rounding import at_zero
from widemargin.solution import (
    UNPROVED,
    Certificate,
    Solution,
    Status,
    Step,
    Trace,
)
from widemargin.solvers.driver.advice import FAR, ROUGH, Ending
from widemargin.solvers.driver.best import Answer, Best
from widemargin.solvers.driver.checkpoint import Saved, Saver
from widemargin.solvers.driver.contract import (
    ChosenSolver,
    Solver,
    Start,
)
from widemargin.solvers.driver.limits import Limits
from widemargin.system.deadline import GRACE, OutOfTime, until, without
from widemargin.system.threads import ONE_BLAS_THREAD

# The share of the time limit after which an answer with its certificate is rehearsed,
# or made, to be kept if there is no time for a later answer; and how many times as long
# the later one may take. The other share of the time is the most that is kept for it.
SHARE, LONGER = 0.5, 1.5
# What estimates of an objective by float32 values are off, as a share, or more.
ESTIMATED = 1e-3
# Sweeps that a simple answer takes, one or two, with time to spare. Where they take
# longer than the grace, so much of the time is kept for it. And those of the best one.
SIMPLE, BEST = 2.5, 10.0
# Progress is a cut of the best gap, or of the least gap of one step, by this factor:
# far from the end zero may be the best point while the steps come nearer. Slower than
# that a digit takes 22 times the patience: ln 0.1 / ln 0.9.
PROGRESS = 0.9
# Certificates in a row, each of a gap that a solver believes to be half of the last,
# that are no such cut of the least before: rounding is in the way. (Of 3,000 rows, C =
# 1e5, tol=1e-12, they went on for 480 steps of IRWLS after the fifth, at 9e-12.)
FAILURES = 3


_END: Any = object()  # in the place of a step


class _Driver:
    """One run of a solver, and of its reserves, on a problem."""

    def __init__(
        self,
        problem: Any,
        chosen: ChosenSolver,
        limits: Limits,
        names: Sequence[str] | None,
    ) -> None:
        self.names = names
        self.clock = limits.clock
        self.begin = self.clock.seconds()
        self.problem, self.limits = problem, limits
        self.solver, self.reason, reserves = chosen
        self._reserves = list(reserves)
        self.best: Any = self.solver.best(problem)
        self.core = self.best.core
        self._first_sweep = self.core.rows.sweeps
        self.trace = Trace()
        self._trusted = limits.tol  # estimated gap at which a certificate is tried
        self._proved = (np.inf, 0)  # least gap of certificates; how many since
        self._accepted: Answer | None = None
        self._kept: Answer | None = None  # one that was made before the end
        # Of a checkpoint: what it proves is taken from a file, where the run ends with
        # less.
        self._saved: Answer | None = None
        self._rehearsed = False
        self._written = -math.inf  # the iteration that was saved last
        self._deadline = limits.deadline
        self._sweep = 0.0  # seconds of a sweep, by the last step that made any
        self._answered = 0.0  # seconds that an answer may take
        self._started = False
        self._broken = False
        saved = limits.checkpoint
        self._saver = None
        if saved is not None:
            self._saver = Saver(saved, self.core, problem, self.best.way_back)
        self._turn = 0  # which reserve is at work; 0: the solver that was chosen
        self._before = 0  # iterations of the solvers before this one
        # Merit and iteration of the last clear improvement.
        self._progress = (np.inf, 0)

    @property
    def max_iter(self) -> int:
        """Iterations, of all solvers, after which the run ends."""
        return self.limits.max_iter or self._before + self.solver.default_max_iter

    def run(self, start: Start | None) -> Status:
        """Iterate until something ends the run; the word for what did."""
        try:
            with until(self._deadline):
                return self._run(start)
        except KeyboardInterrupt:
            self._save_best()
            return Status.INTERRUPTED
        except OutOfTime:
            if self._deadline is None:  # another one's
                raise
            self._save_best()
            return Status.TIME_LIMIT
        except MemoryError:
            if not self.best.is_model:
                raise
            return Status.OUT_OF_MEMORY
        except ClusterLostError as lost:
            lost.best = (*self.best.model(), self.best.relative_gap)
            raise

    def _run(self, start: Start | None) -> Status:
        """Run the solvers that have a turn."""
        saved = self._saver.load() if self._saver else None
        if start is None and saved is None and self._late():
            return Status.TIME_LIMIT
        self._started = True
        if saved is not None:
            start = self._resume(saved)
        elif start is not None and not (start.is_of_v and self.solver.shows_start):
            self.best.take(start)
        status = self._iterate(start)
        while status in _RELIEVED and self._reserves:
            self._relieve()
            status = self._iterate(self.best.relieved())
        return status

    def _iterate(self, start: Start | None) -> Status:
        """Run the solver whose turn it is."""
        steps = self.solver.iterate(self.core, start, self.limits.tol)
        if not isinstance(steps, Generator):
            raise TypeError(
                f"{type(self.solver).__name__}.iterate must be a generator: it yields "
                f"a Step an iteration. Got one that returns {type(steps).__name__} "
                "instead."
            )
        try:
            while step := self._next(steps):
                self.problem.rows.check_interrupted()
                stop = self._call_back(step)
                ended = None if step.waits or not self._certified() else Status.SOLVED
                if stop and ended is None:
                    ended = Status.STOPPED_BY_CALLBACK
                ended = ended or self._limit_reached(step)
                if self._saver is not None:
                    self._save(self._saver, step, ended)
                if ended is not None:
                    return ended
                self._keep_halfway()
            return Status.NUMERICAL_ERROR if self._broken else Status.STALLED
        finally:
            steps.close()

    def _keep_halfway(self) -> None:
        """Keep an answer halfway through the time: the last one may take too long.

        Where an answer takes longer than the grace, the run ends earlier by the rest.
        """
        deadline, done = self._deadline, self._rehearsed or self._kept is not None
        if deadline is None or done or not self.best.is_model:
            return
        if self._is_slow or not deadline.passed(SHARE):  # slow: there is a reserve
            return
        self._rehearsed, before = True, deadline.left
        if self.best.is_by_sweeps:
            self._kept = self._simple()
            self._sweep = max(self._sweep, 0.5 * (before - deadline.left))
        else:
            with np.errstate(all="ignore"), ONE_BLAS_THREAD:
                self._kept, share = self.best.rehearsed(self.limits.tol)
            seconds, most = (before - deadline.left) / share, GRACE + deadline.left
            if seconds <= LONGER * most:  # else hardly anything can be proved in time
                self._answered = min(LONGER * seconds, most)
        self._reserve()

    def _reserve(self) -> None:
        """End so much earlier than the limit that there is time for the answer."""
        deadline, end = self._deadline, self.limits.end
        if deadline is not None and end is not None:
            seconds = max(self._answered, SIMPLE * self._sweep)
            deadline.end = end - max(0.0, seconds - GRACE)

    @property
    def _is_slow(self) -> bool:
        """Whether a simple answer takes longer than the grace."""
        return SIMPLE * self._sweep > GRACE

    def _keep_simple(self) -> None:
        """Keep the best point as it is, where a better answer may take too long."""
        deadline = self.limits.deadline
        if deadline and self._is_slow and deadline.left < BEST * self._sweep:
            self._kept = self._simple()

    def _simple(self) -> Answer:
        """The best point as it is."""
        with np.errstate(all="ignore"), ONE_BLAS_THREAD:
            answer: Answer = self.best.simple()
            return answer

    def _save(self, saver: Saver, step: Step, ended: Status | None) -> None:
        """Save the run where it is time to, or where it ends without its answer."""
        if ended is Status.SOLVED and not saver.checkpoint.keep:
            saver.checkpoint.remove()
        elif saver.due or ended is not None:
            self._write(saver, self.solver.name, step, *self._point)

    def _save_best(self) -> None:
        """Save the best point of a run that ended within a step, for any solver.

        Unless the step before it was saved, with what its solver goes on from.
        """
        best, saver = self.best, self._saver
        if saver is None or not self.trace:  # without a step there is nothing new
            return
        if not isinstance(best, Best) or not best.is_model:
            return
        step = dataclasses.replace(self.trace[-1], vectors=())
        if step.iteration > self._written + 1:
            self._write(saver, "", step, best.v, None)

    def _write(self, saver: Saver, by: str, step: Step, v: Vector, state: Any) -> None:
        """Write the file, of vectors that the solver of a name goes on from."""
        self._written = step.iteration
        try:
            known = self.best, self._accepted or self._saved
            saver.save((self._turn, by), step, v, state, known)
        except OSError as error:  # a long run shall not end for that
            self._warn(error)

    @staticmethod
    def _warn(error: OSError) -> None:
        warnings.warn(f"no checkpoint: {error}", RuntimeWarning, stacklevel=3)

    def _save_answer(self, answer: Answer) -> None:
        """Keep an answer in the file, for a run that has no time for a better one."""
        saver, gap = self._saver, answer.certificate.relative_gap
        if saver is None or not (isinstance(self.best, Best) and gap < UNPROVED):
            return
        try:
            saver.keep(answer)
        except OSError as error:
            self._warn(error)

    def _resume(self, saved: Saved) -> Start:
        """Take up what another run has saved: where to go on."""
        for _ in range(min(saved.turn, len(self._reserves))):
            self._take_turn()
        self._before = saved.iteration
        self._progress = (np.inf, self._before)
        self.reason += f" (resumed at iteration {saved.iteration:,})"
        alpha: Any = saved.best_alpha
        if saved.bounds is not None and isinstance(self.best, Best):
            with without():  # vectors only: the point is kept whatever the time
                self.best.restore(saved)
            self._saved = saved.answer
            alpha = alpha if alpha is not None else self.best.alpha
        else:
            if alpha is None:
                source = np.zeros_like(saved.v)
                source = source if saved.source is None else saved.source
                alpha = self.core.gather(self.core.slopes(source)[0])
            self.best.take(Start(saved.best_v, alpha))
        if saved.solver != self.solver.name:  # another one's vectors are not its own
            # But scores are, of the very same point.
            is_same = self.core.couples and np.array_equal(saved.v, saved.best_v)
            vectors = saved.vectors if is_same else {}
            numbers, gap = saved.numbers if vectors else {}, self.best.relative_gap
            return Start(saved.best_v, alpha, vectors, numbers, gap)
        return Start(saved.v, alpha, saved.vectors, saved.numbers)

    def _take_turn(self) -> None:
        """Let the next reserve work, and say so."""
        self.reason = f"after {self.solver.name} got no further ({self.reason})"
        self.solver, self._turn = self._reserves.pop(0).solver, self._turn + 1

    def _relieve(self) -> None:
        """Give up the solver whose turn it is."""
        self._take_turn()
        self._before = self.trace[-1].iteration + 1 if self.trace else 0
        self._progress, self._broken = (np.inf, self._before), False
        self._proved = (np.inf, 0)

    def _next(self, steps: Generator[Step, None, None]) -> Step | None:
        """The next step, observed; None where the solver has ended or broken down.

        Warnings of NumPy are silent here only: those of a callback reach its user.
        """
        try:
            with np.errstate(all="ignore"):
                step = next(steps, _END)
                if step is _END:
                    return None
                if not isinstance(step, Step):
                    raise TypeError(
                        f"{type(self.solver).__name__}.iterate must yield Step "
                        f"objects. Got {type(step).__name__} instead."
                    )
                self._observe(step)
                return step
        except (ArithmeticError, np.linalg.LinAlgError):
            self._broken = True
            return None

    def _call_back(self, step: Step) -> bool:
        """Whether the user's callback asks to stop; off the clock."""
        callback = self.limits.callback
        stop = callback is not None and self.clock.pause(callback, step)
        step.forget_point()
        return bool(stop)

    def _certified(self) -> bool:
        """Whether the best point is good enough, by its certificate."""
        gap = self.best.relative_gap
        if not gap <= self._trusted:
            return False
        # A gap below zero is of scores that drifted: the next one may be of better.
        self._trusted = 0.5 * (gap if gap > 0.0 else self._trusted)
        self._keep_simple()
        with until(self.limits.deadline):  # there is no more to reserve time for
            answer = self._answer()
        self._accepted = _better(answer, self._accepted)
        self.best.correct(answer.certificate)
        proved, (least, since) = answer.certificate.relative_gap, self._proved
        self._proved = (proved, 0) if proved < PROGRESS * least else (least, since + 1)
        return proved <= self.limits.tol

    def _limit_reached(self, step: Step) -> Status | None:
        """What ends the run after this step, if anything."""
        if step.iteration >= self.max_iter:
            own = self.limits.max_iter is None and self._reserves
            return Status.STALLED if own else Status.MAX_ITER
        if self._late():
            return Status.TIME_LIMIT
        merit, before = self.best.merit, self._progress[0]
        if merit < PROGRESS * before or merit > before:  # it rises where it was wrong
            self._progress = (merit, step.iteration)
        if step.iteration - self._progress[1] >= self.solver.patience_for(self.core):
            return Status.STALLED
        if self._proved[1] >= FAILURES:
            return Status.STALLED
        if self._reserves and self._reserves[0].enough(step):
            return Status.STALLED
        return None

    def _late(self) -> bool:
        """Whether the time is over; at the start too, if other solves used it up."""
        return self._deadline is not None and self._deadline.left <= 0.0

    def _record_zero(self) -> None:
        """A trace for the answer zero, which needs no iteration."""
        m = self.core.rows.shape[0]
        zero = Step(self._before, self.best.primal, self.best.dual, 0.0, active=m)
        zero.best_primal, zero.best_dual = zero.primal, zero.dual
        zero.seconds = self.seconds()
        self.trace.append(zero)

    def seconds(self) -> float:
        """Time of this run, without pauses."""
        return self.clock.seconds() - self.begin

    def _observe(self, step: Step) -> None:
        """Stamp and record a step, and keep what is best in its point."""
        step.iteration += self._before
        step.seconds, step.scale = self.seconds(), getattr(self.problem, "scale", 0.0)
        step.sweeps = self.core.rows.sweeps - self._first_sweep
        if self.trace and self.best.is_by_sweeps:
            last = self.trace[-1]
            if step.sweeps > last.sweeps:
                seconds = step.seconds - last.seconds
                self._sweep = seconds / (step.sweeps - last.sweeps)
                self._reserve()
        v, state = self._point = step.point()
        self.best.offer(v, state, step.primal, step.dual)
        step.primal, step.dual = map(self.best.value, (step.primal, step.dual))
        step.best_primal, step.best_dual = self.best.primal, self.best.dual
        step.at = self.best.point(v, state)
        self.trace.append(step)  # not before: the time may end while its point is kept
        if math.isnan(step.primal) or math.isnan(step.dual):
            raise FloatingPointError("the bounds of a step are not numbers")

    def _answer(self, status: Status | None = None) -> Answer:
        """The best point with its certificate; at the end with this status."""
        pressed, tol = status is Status.INTERRUPTED, self.limits.tol
        make = self.best.pressed if pressed else self.best.answer
        with np.errstate(all="ignore"), ONE_BLAS_THREAD:
            answer: Answer = make(tol)
            # Where the kernel has negative curvature no gap is a proof.
            if status is not None and not self.trace[-1].details.get("negative"):
                answer = self.best.no_worse(answer, tol)
            return answer

    def _last_answer(self, status: Status) -> Answer:
        """The answer, or what there is if that has no time."""
        try:
            with until(self.limits.grace):
                if not self._started:
                    answer: Answer = self.best.untried(self.limits.tol)
                    return answer
                self._keep_simple()
                return self._answer(status)
        except OutOfTime:
            if self._deadline is None:  # another one's
                raise
            return self._best_known()

    def _best_known(self) -> Answer:
        """The answer that proves most, or the best point where none proves enough."""
        found = self._kept, self._accepted, self._saved, self._at_hand()
        known = [one for one in found if one is not None]
        if self.best.is_model:
            unproved: Answer = self.best.unproved()
            # A constant, where the steps have found nothing better, sets no standard;
            # the alpha of a linear problem is zero, also where workers hold it.
            has_alpha = isinstance(unproved.alpha, np.ndarray) and unproved.alpha.any()
            if has_alpha and unproved.certificate.dual > -np.inf:
                known = [one for one in known if self._is_worth(one)]
                return self._most_proved(known or [unproved])
            known.insert(0, unproved)  # the first one where no other proves more
        if known[1:] or not known:
            known.append(self.best.zero())
        return self._most_proved(known)

    @staticmethod
    def _most_proved(known: list[Answer]) -> Answer:
        """The answer with the least relative gap, the first one of equal ones."""
        gaps = [one.certificate.relative_gap for one in known]
        return known[int(np.argmin(gaps))]

    def _is_constant(self, answer: Answer) -> bool:
        """Whether it is a constant though there was time for steps with a kernel."""
        moved = self.problem.couples and len(self.trace) > 1
        return bool(moved and not answer.alpha.any())

    def _is_worth(self, answer: Answer) -> bool:
        """Whether an answer is proved to be good, or no worse than the best point."""
        bounds = answer.certificate
        best = self.best.primal + ESTIMATED * abs(self.best.primal)
        return bounds.relative_gap < FAR or bool(bounds.primal <= best)

    def _at_hand(self) -> Answer | None:
        """The current point, if no work that has to end now is needed for it."""
        try:
            with until(self.limits.grace), np.errstate(all="ignore"), ONE_BLAS_THREAD:
                found: Answer | None = self.best.at_hand()
                return found
        except OutOfTime:
            return None

    def solution(self, status: Status) -> Solution:
        """The answer with its status, which only the certificate can call solved.

        Ctrl-C stays Ctrl-C, also where the answer is good enough: no press is lost.
        """
        if not self.trace:
            self._record_zero()
        tol = self.limits.tol
        answer = self._accepted
        if answer is None or not answer.certificate.relative_gap <= tol:
            answer = _better(self._last_answer(status), answer)
            saved = self._saved
            if saved is not None and saved.certificate.relative_gap < FAR:
                answer = _better(answer, saved)
        gap, ended = answer.certificate.relative_gap, status
        if status is not Status.SOLVED:
            self._save_answer(answer)
        if gap <= tol and status is not Status.INTERRUPTED:
            status = Status.SOLVED
        elif gap <= min(self.solver.almost * tol, ROUGH) and status in _OWN_ENDS:
            status = Status.ALMOST_SOLVED
        # Other ends say what ended it, whatever is proved.
        names_itself = status is Status.SOLVED or ended is Status.STALLED
        return Solution(
            alpha=answer.alpha,
            w=answer.w,
            b=answer.b,
            status=status,
            certificate=answer.certificate,
            trace=self.trace,
            solver=self.solver.name,
            reason=self.reason,
            seconds=self.seconds(),
            tol=tol,
            message=self.solver.message(
                Ending(
                    problem=self.problem,
                    status=status if names_itself else ended,
                    last=self.trace[-1],
                    gap=gap,
                    max_iter=self.max_iter,
                    limits=self.limits,
                    names=self.names,
                    bounds=answer.certificate,
                    is_constant=self._is_constant(answer),
                )
            ),
            extras=dict(self.trace[-1].details),
            at_bound=self.best.at_bound(answer.alpha),
            rho=answer.rho,
            w_of_rows=self.problem.couples,
        )


def _better(one: Answer, other: Answer | None) -> Answer:
    """The answer that proves more; the first one where both prove the same."""
    if other is None:
        return one
    return min(one, other, key=lambda answer: answer.certificate.relative_gap)


# How a solver ends without an answer while a reserve may find one.
_RELIEVED = (Status.STALLED, Status.NUMERICAL_ERROR)
_OWN_ENDS = (Status.SOLVED, Status.MAX_ITER, Status.STALLED, Status.NUMERICAL_ERROR)


def run(
    problem: Any,
    chosen: ChosenSolver,
    limits: Limits,
    *,
    start: "Solution | tuple[Any, Any, float] | None" = None,
    names: Sequence[str] | None = None,
) -> Solution:
    """Run a solver: see `widemargin.solve`, which chooses it first.

    The message of the solution calls the columns by ``names``, else by their numbers;
    nothing is said about them where ``names`` is empty.
    """
    complaint = refusal(chosen.solver, problem)
    if complaint:
        raise ValueError(complaint)
    driver = _Driver(problem, chosen, limits, names)
    status = driver.run(None if start is None else driver.best.start(start))
    return driver.solution(status)


def unsolved(
    m: int, order: int, weight: float, limits: Limits, solver: str
) -> Solution:
    """The answer zero of a problem that there is no time to make.

    It has m rows and w of that order; bounds are ``weight``, its sum of C, and 0.
    """
    step = Step(0, weight, 0.0, 0.0, m, best_primal=weight, best_dual=0.0)
    return Solution(
        alpha=np.zeros(m),
        w=np.zeros(order),
        b=0.0,
        status=Status.TIME_LIMIT,
        certificate=Certificate(at_zero(weight, m), 0.0),
        trace=Trace([step]),
        solver=solver,
        reason="because the time was over before it began",
        seconds=0.0,
        tol=limits.tol,
        message=(
            f"Stopped by time_limit={limits.time_limit} s before the first iteration. "
            f"The model is far from optimal. {Status.TIME_LIMIT.advice}"
        ),
    )


def refusal(solver: Solver, problem: Any) -> str | None:
    """Why a solver does not take a problem; None where it does."""
    return _mismatch(solver, problem) or solver.supports(problem)


def _mismatch(solver: Solver, problem: Any) -> str | None:
    """Why a solver of linear problems has none with a kernel, or the reverse."""
    name = type(solver).__name__
    if problem.couples and not solver.for_kernels:
        return (
            f"{name} solves linear problems only: use solver='auto' or 'irwls' here, "
            "or LinearSVC, LinearSVR or Problem without a kernel."
        )
    if solver.for_norms != (problem.norm is not None):
        return (
            f"{name} solves problems with "
            + ("a norm of the losses" if solver.for_norms else "a sum of losses")
            + " only: use solver='auto'."
        )
    if solver.for_kernels and not problem.couples:
        return (
            f"{name} solves problems with a kernel: use SVC(kernel='linear'), or "
            "Problem(..., kernel=Kernel('linear'))."
        )
    return None
