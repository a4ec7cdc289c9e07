"""How many rows are done, of long work that has no steps.

Who waits says in the context of its thread whom to tell, `telling`; the work says how
many rows there are, `counting`, and that some are `done`. Sweeps, whose threads run in
copies of the context, count too.
"""

import contextlib
import threading
from collections.abc import Callable, Generator
from contextvars import ContextVar

Told = Callable[[int, int], None]


class _Count:
    """Rows that are done, of how many; whoever counts, one is told at a time."""

    def __init__(self, of: int, told: Told) -> None:
        self._of, self._told = of, told
        self._done, self._lock = 0, threading.Lock()

    def add(self, rows: int) -> None:
        """Count rows and tell."""
        with self._lock:
            self._done += rows
            self._told(min(self._done, self._of), self._of)


_TOLD: ContextVar[Told | None] = ContextVar("told", default=None)
_COUNT: ContextVar[_Count | None] = ContextVar("count", default=None)


@contextlib.contextmanager
def telling(told: Told) -> Generator[None, None, None]:
    """Work that tells ``told(done, of)`` of its rows."""
    token = _TOLD.set(told)
    try:
        yield
    finally:
        _TOLD.reset(token)


@contextlib.contextmanager
def counting(of: int) -> Generator[None, None, None]:
    """Count the rows of this work, if somebody is told."""
    told = _TOLD.get()
    token = _COUNT.set(None if told is None else _Count(of, told))
    try:
        yield
    finally:
        _COUNT.reset(token)


def done(rows: int) -> None:
    """Count rows that are done, where they are counted."""
    count = _COUNT.get()
    if count is not None:
        count.add(rows)
