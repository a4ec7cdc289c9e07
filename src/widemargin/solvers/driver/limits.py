"""What ends a run, and the clock that it is measured by."""

import math
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from widemargin.parameters import Checker
from widemargin.solution import Step
from widemargin.solvers.driver.checkpoint import Checkpoint
from widemargin.system.deadline import GRACE, Deadline, without

Callback = Callable[[Step], Any]


class Clock:
    """Seconds since it was made, without the pauses.

    Several solves may share one, each in a thread of its own: time in which any of them
    pauses counts for none, once.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._begin = time.perf_counter()
        self._pausing, self._stopped = 0, 0.0

    def seconds(self) -> float:
        """Time that counts, so far."""
        with self._lock:
            end = self._stopped if self._pausing else time.perf_counter()
            return end - self._begin

    def pause(self, f: Callable[..., Any], *args: Any) -> Any:
        """Call f(*args) off the clock."""
        with self._lock:
            if not self._pausing:
                self._stopped = time.perf_counter()
            self._pausing += 1
        try:
            with without():
                return f(*args)
        finally:
            with self._lock:
                self._pausing -= 1
                if not self._pausing:
                    self._begin += time.perf_counter() - self._stopped

    def deadline(self, end: float | None) -> Deadline | None:
        """The deadline at these seconds of the clock; None for None and infinity."""
        if end is None or end == math.inf:
            return None
        return Deadline(self.seconds, float(end))  # NumPy's are not for the core


@dataclass(frozen=True)
class Limits:
    """What ends a run: see `widemargin.solve`. Checks its values when made.

    ``clock`` is what ``time_limit`` is measured by: one that begins now.
    ``until`` is when the run ends, where that is before the ``time_limit`` of all runs.
    """

    tol: float = 1e-4
    max_iter: int | None = None
    time_limit: float | None = None
    callback: Callback | None = None
    clock: Clock = field(default_factory=Clock)
    checkpoint: Checkpoint | None = None
    until: float | None = None

    def __post_init__(self) -> None:
        check = Checker("solve")
        check.positive("tol", self.tol, most=1.0)
        check.count("max_iter", self.max_iter, optional=True)
        check.positive("time_limit", self.time_limit, optional=True)
        if self.callback is not None and not callable(self.callback):
            check.refuse("callback", "callable or None", self.callback)

    @property
    def end(self) -> float | None:
        """When the run ends, in seconds of the clock."""
        return self.time_limit if self.until is None else self.until

    @property
    def answered(self) -> float | None:
        """When its answer must be there: a grace later."""
        given = [end for end in (self.until, self.time_limit) if end is not None]
        return min(given) + GRACE if given else None

    @property
    def deadline(self) -> Deadline | None:
        """The end, as what sweeps and other long work see."""
        return self.clock.deadline(self.end)

    @property
    def grace(self) -> Deadline | None:
        """The end with some time more, in which the answer gets its certificate."""
        return self.clock.deadline(self.answered)

    @property
    def is_late(self) -> bool:
        """Whether the time is over."""
        deadline = self.deadline
        return deadline is not None and deadline.left <= 0.0
