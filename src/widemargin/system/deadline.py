"""When the work of a fit has to end, and where that is noticed.

A driver sets a deadline for what it calls, in the context of its thread: sweeps, whose
threads run in copies of it, see it too. Long loops call `check` between two parts of
their work: blocks of rows, batches of kernel values, calls of a user's function. It
raises `OutOfTime`, which goes the way of Ctrl-C through all that tidies up after it.
"""

import contextlib
from collections.abc import Callable, Generator
from contextvars import ContextVar
from dataclasses import dataclass

# Seconds beyond a limit in which an answer may get its certificate.
GRACE = 0.5
# Flops a second of LAPACK with one thread, at least, for what cannot be interrupted;
# and the seconds that it may end too late, which with that speed are a factorization
# of order 2,400.
SPEED, LATE = 1.5e10, 0.3


class OutOfTime(BaseException):
    """The deadline is over. No `Exception`: code that catches these lets it pass."""


@dataclass
class Deadline:
    """A time by some clock.

    Attributes
    ----------
    seconds : callable, the time now
    end : float
    begin : float, when it was set
    """

    seconds: Callable[[], float]
    end: float
    begin: float = 0.0

    def __post_init__(self) -> None:
        self.begin = self.seconds()

    @property
    def left(self) -> float:
        """Seconds until then; negative afterwards."""
        return self.end - self.seconds()

    def passed(self, share: float) -> bool:
        """Whether so much of the time is over."""
        return self.left <= (1.0 - share) * (self.end - self.begin)


_DEADLINE: ContextVar[Deadline | None] = ContextVar("deadline", default=None)


def current() -> Deadline | None:
    """The deadline of this context."""
    return _DEADLINE.get()


@contextlib.contextmanager
def until(deadline: Deadline | None) -> Generator[None, None, None]:
    """Work under a deadline, or as before where it is None."""
    if deadline is None:
        yield
        return
    token = _DEADLINE.set(deadline)
    try:
        yield
    finally:
        _DEADLINE.reset(token)


@contextlib.contextmanager
def without() -> Generator[None, None, None]:
    """Work without a deadline: what is the user's."""
    token = _DEADLINE.set(None)
    try:
        yield
    finally:
        _DEADLINE.reset(token)


def check(flops: float = 0.0) -> None:
    """Raise `OutOfTime` where the deadline is over.

    Also where a call of this many flops, which cannot be interrupted, would end late.
    """
    if not allows(flops):
        raise OutOfTime


def allows(flops: float = 0.0) -> bool:
    """Whether a call of this many flops would not end late."""
    deadline = _DEADLINE.get()
    if deadline is None:
        return True
    left = deadline.left
    return not (left <= 0.0 or (flops and flops / SPEED > left + LATE))


def passed(share: float = 1.0) -> bool:
    """Whether so much of the time until the deadline is over; False without one."""
    deadline = _DEADLINE.get()
    return deadline is not None and deadline.passed(share)
