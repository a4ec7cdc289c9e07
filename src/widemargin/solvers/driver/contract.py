"""What a solver is: options with a generator of steps; and what the driver is given."""

import functools
from abc import ABC, abstractmethod
from collections.abc import Callable, Generator
from typing import Any, ClassVar, NamedTuple, Self

from widemargin.arrays import Vector
from widemargin.data.state import RowState
from widemargin.solution import Certificate, Step
from widemargin.solvers.driver.advice import Ending, message
from widemargin.solvers.driver.best import (
    Best,
    BestSoFar,
)
from widemargin.solvers.driver.start import Start
from widemargin.system.threads import ONE_BLAS_THREAD

__all__ = [
    "ChosenSolver",
    "Reserve",
    "Solver",
    "Start",
    "at",
    "first_and_last",
    "in_one_blas_thread",
]


class Solver(ABC):
    """Options of one algorithm, and the algorithm as a generator.

    Attributes
    ----------
    name : str, as users and reports write it
    default_max_iter : int, iterations when ``max_iter`` is None
    patience : int, iterations without progress after which the driver stops
    almost : float, times tol up to which a gap counts as almost solved, 0.1 at most
    for_kernels : bool, whether it solves problems with a kernel, and no others
    for_norms : bool, whether it solves problems with a norm of the losses only
    shows_start : bool
        Whether the first step of a run with a start is its v, with `Problem.slopes`.
    """

    name: ClassVar[str]
    default_max_iter: ClassVar[int]
    patience: ClassVar[int]
    almost: ClassVar[float] = 100.0
    for_kernels: ClassVar[bool] = False
    for_norms: ClassVar[bool] = False
    shows_start: ClassVar[bool] = False

    def patience_for(self, problem: Any) -> int:
        """The patience with this problem."""
        return self.patience

    def best(self, problem: Any) -> BestSoFar:
        """What keeps the best point of a run on a problem, and makes answers of it."""
        return Best(problem)

    def message(self, ending: Ending) -> str:
        """What happened, how good the answer is, and what helps."""
        return message(ending)

    @abstractmethod
    def supports(self, problem: Any) -> str | None:
        """None, or a sentence why the problem cannot be solved by this solver."""

    @abstractmethod
    def iterate(
        self, problem: Any, start: Start | None, tol: float
    ) -> Generator[Step, None, None]:
        """Yield the current step at the head of each iteration, the start included.

        ``step.point()`` gives v and a row state with the vector ``alpha``, both valid
        until the next step; or v and None where alpha is `Problem.slopes` of v.
        Numerical breakdown raises ArithmeticError or LinAlgError.
        """


def at(v: Vector, state: RowState | None = None) -> Callable[[], Any]:
    """What `Step.point` of a step is to give: v and a row state with ``alpha``."""
    return lambda: (v, state)


def first_and_last(
    zero: float, bounds: Certificate, rows: int, seconds: float
) -> tuple[Step, Step]:
    """The trace of a problem that has no steps: zero, and what was proved at the end.

    ``zero`` is the objective of w = 0.
    """
    first = Step(0, zero, 0.0, 0.0, rows)
    last = Step(1, bounds.primal, bounds.dual, 0.0, rows, seconds=seconds)
    for step in (first, last):
        step.best_primal, step.best_dual = step.primal, step.dual
    return first, last


def in_one_blas_thread(
    iterate: Callable[..., Generator[Step, None, None]],
) -> Callable[..., Generator[Step, None, None]]:
    """A method whose steps keep BLAS to one thread: once, not in many short sweeps."""

    @functools.wraps(iterate)
    def limited(*args: Any, **others: Any) -> Generator[Step, None, None]:
        """Its steps."""
        steps = iterate(*args, **others)
        while True:
            with ONE_BLAS_THREAD:
                step = next(steps, None)
            if step is None:
                return
            yield step

    return limited


class Reserve(NamedTuple):
    """A solver that goes on from the best point where another does not reach the gap.

    ``enough(step)`` says that the other solver's time is over. It is also over if that
    solver stalls or breaks down.
    """

    solver: Solver
    enough: Callable[[Step], bool]


class ChosenSolver(NamedTuple):
    """A solver, why it was chosen ("because ..." or "as asked"), and its reserves."""

    solver: Solver
    reason: str
    reserves: tuple[Reserve, ...] = ()

    @property
    def next(self) -> Self:
        """The first reserve in its place, if there is one."""
        if not self.reserves:
            return self
        first, *others = self.reserves
        reason = f"because {self.solver.name} got no further"
        return type(self)(first.solver, reason, tuple(others))
