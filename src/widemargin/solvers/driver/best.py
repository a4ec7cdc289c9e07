"""The best point of a run, and the answers that are made of it."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from widemargin.arrays import Vector
from widemargin.data.row_vector import RowVector
from widemargin.data.state import RowState
from widemargin.parameters import Checker
from widemargin.problems.base import Problem
from widemargin.problems.conditioning import KernelLift, conditioned
from widemargin.problems.kernel import KernelProblem
from widemargin.solution import Certificate, Solution, relative_gap
from widemargin.solvers.driver.start import Start
from widemargin.system.threads import ONE_BLAS_THREAD


@dataclass(frozen=True)
class Answer:
    """A feasible point of a problem with its certificate."""

    alpha: Vector
    w: Vector
    b: float
    certificate: Certificate
    rho: float = 0.0


class BestSoFar(ABC):
    """What the driver keeps of a run on one kind of problem, and answers with.

    Attributes
    ----------
    core : the problem that a solver is given
    primal, dual : float
        The best values, which may be the solver's estimates until they are corrected.
    """

    core: Any
    primal: float
    dual: float

    @property
    @abstractmethod
    def relative_gap(self) -> float:
        """Gap of the best values."""

    @property
    def merit(self) -> float:
        """What falls with every progress, of the best point or of the steps."""
        return self.relative_gap

    @property
    @abstractmethod
    def is_model(self) -> bool:
        """Whether there is something to keep where memory runs out."""

    def model(self) -> tuple[Vector, float]:
        """The best (w, b) of the problem."""
        raise NotImplementedError

    @abstractmethod
    def offer(self, v: Any, state: Any, primal: float, dual: float) -> None:
        """Keep what is better in the point of a step."""

    def value(self, objective: float) -> float:
        """An objective of the problem, from that of the core."""
        return objective

    def correct(self, certificate: Certificate) -> None:
        """Put recomputed values in the place of estimates."""
        self.primal, self.dual = certificate.primal, certificate.dual

    @abstractmethod
    def point(self, v: Any, state: Any) -> Callable[[], Any]:
        """What `Step.point` gives a callback, of the point of a step."""

    @abstractmethod
    def answer(self, tol: float) -> Answer:
        """The best point, feasible, on the original problem, with its certificate."""

    def rehearsed(self, tol: float) -> tuple[Answer | None, float]:
        """An answer to keep, or what takes a share of its time; and this share."""
        return self.answer(tol), 1.0

    def untried(self, tol: float) -> Answer:
        """The answer of a run that there was no time to begin."""
        return self.answer(tol)

    def pressed(self, tol: float) -> Answer:
        """The answer after Ctrl-C."""
        return self.answer(tol)

    @property
    def is_by_sweeps(self) -> bool:
        """Whether sweeps of the rows are all that an answer takes."""
        return False

    def simple(self) -> Answer:
        """The best point as it is, feasible, with its certificate: a sweep or two."""
        raise NotImplementedError

    @abstractmethod
    def zero(self) -> Answer:
        """An answer that takes no time."""

    def unproved(self) -> Answer:
        """The best point, which there is no time to prove anything of."""
        return self.zero()

    def at_hand(self) -> Answer | None:
        """The current point, with bounds that take next to no time, if there are any.

        Where there was no time to make better ones.
        """
        return None

    def row_vectors(self, v: Any) -> dict[str, Vector]:
        """What a run goes on from beside a point v, for checkpoints."""
        return {}

    @property
    def way_back(self) -> int:
        """What tells the way from the core to the problem from others; 0: no way."""
        return 0

    def no_worse(self, answer: Answer, tol: float) -> Answer:
        """An answer that proves no less than zero does, if that is known of it."""
        return answer

    def at_bound(self, alpha: Vector) -> int | None:
        """How many dual variables are at their bound; None where there is none."""
        return None


class Best(BestSoFar):
    """The best v and the best alpha so far, by the steps' estimates; zero at first.

    Two copies of alpha in turn, so that Ctrl-C in the middle of one leaves the other.
    Where alpha is `Problem.slopes` of some v, that v is kept in its place. Where v and
    alpha say the same, both belong to the point with the least gap.

    Attributes
    ----------
    v : ndarray (k,), in the coordinates of the core
    primal, dual : float, P(v) and D(alpha)
    source : ndarray (k,), the v that alpha belongs to, or None
    """

    core: Problem

    def __init__(self, problem: Problem) -> None:
        self._problem = problem
        self.core, self._lift = conditioned(problem)
        self._slots: tuple[RowState, RowState] | None = None
        self._slot = 0
        self.source: Vector | None = None
        self.v: Vector = np.zeros(self.core.order)
        self.primal = self.value(self.core.zero_objective)
        self.dual = self.core.zero_dual
        self._least_gap = np.inf

    @property
    def relative_gap(self) -> float:
        """Gap of the best values over the primal one; infinite where that is 0."""
        return relative_gap(self.primal, self.dual, self._problem.scale)

    @property
    def merit(self) -> float:
        """What falls with every progress, of the best point or of the steps."""
        with np.errstate(over="ignore"):  # a relative gap of 1e200 is possible
            return max(0.0, self.relative_gap) * max(0.0, self._least_gap)

    @property
    def is_model(self) -> bool:
        """Whether it is worth keeping: zero is not."""
        return bool(self.v.any())

    def value(self, objective: float) -> float:
        """An objective of the problem, from that of the core."""
        return self._lift.value(objective)

    def offer(
        self, v: Vector, state: RowState | None, primal: float, dual: float
    ) -> None:
        """Keep what is better in a point."""
        primal, dual = self.value(primal), self.value(dual)
        self._least_gap = min(self._least_gap, primal - dual)
        better = primal < self.primal, dual > self.dual
        if self.core.couples:
            gap = primal - dual
            # The kept bounds come from float32 scores that drifted, if the new bounds
            # contradict them by more than their own gap.
            drifted = 0.0 <= gap < self.dual - primal
            if drifted:
                self._least_gap = gap
            better = (drifted or gap < self.primal - self.dual,) * 2
        if better[0]:
            self.v, self.primal = v.copy(), primal
        if better[1]:
            if state is not None:
                self._copy(state)
            self.source = v.copy() if state is None else None
            self.dual = dual

    def _copy(self, state: RowState) -> None:
        """Copy the alpha of a row state."""
        if self._slots is None:
            self._slots = self.core.state(alpha=0.0), self.core.state(alpha=0.0)
        _copied(state, self._slots[1 - self._slot])
        self._slot = 1 - self._slot

    def alpha(self) -> Vector:
        """The best dual variables, over all rows of the problem, until the next offer.

        By reference where they are in memory.
        """
        if self.source is not None:
            return self._gathered(self.core.slopes(self.source)[0])
        if self._slots is None:
            return self._gathered(self.core.state(alpha=0.0))
        kept = self._slots[self._slot]
        if isinstance(kept.alpha, RowVector):  # which its reader may change
            kept = _copied(kept, self.core.state(alpha=0.0))
        return self._gathered(kept)

    def _gathered(self, state: RowState) -> Vector:
        """The alpha of a row state."""
        alpha: Vector = self.core.gather(state)
        return alpha

    def start(self, given: Any) -> Start:
        """A Solution, or (alpha, w, b), in the coordinates of the core.

        Where alpha is None it is that of (w, b).
        """
        if isinstance(given, Solution):
            given = given.alpha, given.w, given.b
        if not (isinstance(given, tuple) and len(given) == 3):
            expected = "a Solution or a tuple (alpha, w, b)"
            Checker("solve").refuse("start", expected, given)
        alpha, w, b = given
        v = self._lift.down(self._problem.stack(w, b))
        if alpha is None:
            return Start(v, lambda: self._gathered(self.core.slopes(v)[0]))
        state = self._problem.dual_state(alpha)
        return Start(v, self._lift.alpha_down(self._problem.gather(state)))

    @ONE_BLAS_THREAD
    def take(self, start: Start) -> None:
        """Take the start as the best point: no answer is worse."""
        with np.errstate(all="ignore"):
            if start.is_of_v and self.core.intercept != "free":
                bounds = self.core.slopes(start.v)[1]
                self.offer(start.v, None, bounds.primal, bounds.dual)
                return
            state = self.core.dual_state(start.alpha)
            self.core.repair(state)
            bounds = self.core.bounds(state, start.v)
            self.offer(start.v, state, bounds.primal, bounds.dual)

    def restore(self, saved: Any) -> None:
        """Be what another run has saved: `Saved`; vectors only, no read of the data.

        The bounds are estimates of that run, as those of steps are.
        """
        self.v, self.source = saved.best_v, saved.source
        self.primal, self.dual = saved.bounds
        self._least_gap = self.primal - self.dual
        if saved.best_alpha is not None:
            self._copy(self.core.dual_state(saved.best_alpha))

    def row_vectors(self, v: Vector) -> dict[str, Vector]:
        """What is known at a point beside it, and takes long to make again."""
        core = self.core
        if not isinstance(core, KernelProblem):
            return {}
        scores = core.known_scores(v[: core.rows.shape[0]])
        return {} if scores is None else {"scores": scores}

    @property
    def way_back(self) -> int:
        """What tells the way from the core to the problem from others."""
        return self._lift.checksum

    def relieved(self) -> Start | None:
        """The best point for another solver, whose merit shall be its own.

        None where it is zero: solvers have better ways to begin.
        """
        gap, self._least_gap = self.relative_gap, np.inf
        if not self.is_model:
            return None
        alpha: Any = self.alpha()
        own: Any = alpha if isinstance(alpha, RowVector) else alpha.copy()
        return Start(self.v, own, gap=gap)

    def point(self, v: Vector, state: Any) -> Callable[[], tuple[Vector, float]]:
        """What gives (w, b) of the problem."""
        return lambda: self._problem.split(self._lift.up(v))

    def model(self) -> tuple[Vector, float]:
        """The best (w, b) of the problem."""
        return self._problem.split(self._lift.up(self.v))

    def answer(self, tol: float) -> Answer:
        """The best point, feasible, on the original problem, with its certificate."""
        problem, v = self._problem, self._lift.up(self.v)
        if self._feasible_source is not None:
            simple = self.simple()  # it is zero where it can be: finished, if it does
            if simple.certificate.relative_gap <= tol:
                return simple
        core, alpha = self.core, self.alpha()
        if isinstance(core, KernelProblem) and isinstance(self._lift, KernelLift):
            c = core.signs * (alpha if core.kept is None else alpha[core.kept])
            self._lift.lend_scores(core.scores_for(c, float(self.v[-1]), tol)[0])
        found = problem.answer(self._lift.alpha_up(alpha), v, tol)
        return Answer(*found, rho=problem.proved_rho)

    def rehearsed(self, tol: float) -> tuple[Answer | None, float]:
        """Of a kernel problem a share: the point will be another one in the end."""
        if not isinstance(self.core, KernelProblem):
            return super().rehearsed(tol)
        return None, self.core.rehearse(self.alpha())

    def untried(self, tol: float) -> Answer:
        """The answer zero: anything else would need the data."""
        return self.zero()

    def pressed(self, tol: float) -> Answer:
        """The answer after Ctrl-C: as it is where each look at the rows is a request.

        `answer` makes some thirty of them for a better intercept and fewer support
        vectors: seconds, where the workers are busy.
        """
        there = isinstance(self._problem.y, RowVector)
        return self.simple() if there else self.answer(tol)

    @property
    def _feasible_source(self) -> Vector | None:
        """The v that alpha is made of, if any, where such an alpha is feasible."""
        return None if self._problem.intercept == "free" else self.source

    def no_worse(self, answer: Answer, tol: float) -> Answer:
        """An answer with zero in the place of what proves less: of columns near 1e16.

        Of a kernel problem, whose w and alpha say the same, the best constant.
        """
        problem, bounds = self._problem, answer.certificate
        if isinstance(problem, KernelProblem):
            constant = self._constant()
            return constant if bounds.is_beaten_by(constant.certificate) else answer
        nothing = problem.zero_certificate
        is_model, is_dual = bounds.primal <= nothing.primal, bounds.dual >= nothing.dual
        if np.isinf(bounds.primal) or (is_model and is_dual):  # see `unproved`
            return answer
        zero = self.zero()
        model, dual = answer if is_model else zero, answer if is_dual else zero
        proved = problem.certify(dual.alpha, model.w, model.b, tol=tol)
        return Answer(dual.alpha, model.w, model.b, proved)

    @property
    def is_by_sweeps(self) -> bool:
        """Whether it is a linear problem."""
        return not self.core.couples

    def simple(self) -> Answer:
        """The best point as it is, feasible, with its certificate."""
        problem, source = self._problem, self._feasible_source
        v = self._lift.up(self.v)
        if source is not None and np.array_equal(source, self.v):
            alpha, bounds = self._lift.slopes(self.core, self.v)
            return Answer(alpha, *problem.split(v), bounds)
        if source is not None:
            state = problem.slopes(self._lift.up(source))[0]
        else:
            state = problem.dual_state(self._lift.alpha_up(self.alpha()))
            problem.repair(state)
        bounds = problem.bounds(state, v)
        return Answer(problem.gather(state), *problem.split(v), bounds)

    def zero(self) -> Answer:
        """The best constant of a kernel problem; else zero.

        Their bounds, of zero sum C and 0, need no look at the rows.
        """
        problem = self._problem
        if isinstance(problem, KernelProblem):
            return self._constant()
        alpha, v = problem.zeros(), np.zeros(problem.order)
        return Answer(alpha, *problem.split(v), problem.zero_certificate)

    def unproved(self) -> Answer:
        """The best model, which the steps found better than zero, with no bounds.

        Of a kernel problem with its dual variables, which say the same, if the steps
        have found its objective below that of the best constant; else that.
        """
        problem, (w, b) = self._problem, self.model()
        bounds = Certificate(np.inf, problem.zero_dual, problem.scale)
        if not isinstance(problem, KernelProblem):
            return Answer(problem.zeros(), w, b, bounds)
        constant = self._constant()
        if self.primal > constant.certificate.primal:
            return constant
        state = problem.dual_state(self._lift.alpha_up(self.alpha()))
        problem.repair(state)
        w = problem.spread(problem.signs * state.alpha)
        return Answer(problem.gather(state), w, b, bounds)

    def _constant(self) -> Answer:
        """The best constant of a kernel problem, whose bounds need no kernel value."""
        problem: Any = self._problem
        bounds, b = problem.constant
        return Answer(
            problem.zeros(), problem.spread(np.zeros(problem.rows.shape[0])), b, bounds
        )

    def at_hand(self) -> Answer | None:
        """What the scores of a kernel problem say of their point."""
        problem, core = self._problem, self.core
        if not (isinstance(problem, KernelProblem) and isinstance(core, KernelProblem)):
            return None
        scores = core.scores_at_hand
        if scores is None:
            return None
        if isinstance(self._lift, KernelLift):
            scores = self._lift.lend_scores(scores)
        found = problem.answer_at_hand(scores)
        return Answer(*found, rho=problem.proved_rho)

    def at_bound(self, alpha: Vector) -> int | None:
        """How many dual variables are at C; the squared hinge has no such bound."""
        if not self._problem.is_bounded:
            return None
        return self._problem.count_at_bound(alpha)


def _copied(source: RowState, target: RowState) -> RowState:
    """The target, with the alpha of the source."""
    if type(source) is RowState:  # in memory: threads would take longer than the copy
        target.alpha = source.alpha
        return target
    target.join(source.prefixed("source.")).update(_copy)
    return target


def _copy(part: RowState) -> None:
    part.alpha = getattr(part, "source.alpha")
