"""Solves that read the data together: their sweeps meet, and one pass serves all."""

import functools
import itertools
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Self, TypeGuard

import numpy as np
from numpy.typing import ArrayLike

from widemargin.data.blocks import given_up
from widemargin.data.memory import MemoryRows
from widemargin.data.rows import Moments, Rows
from widemargin.data.state import RowState
from widemargin.numerics import linalg
from widemargin.system import deadline
from widemargin.system.deadline import Deadline, OutOfTime
from widemargin.system.threads import ONE_BLAS_THREAD, n_threads

# Row vectors and n x n sums of the classes that are trained together, in bytes.
TOGETHER_BYTES = 1 << 30


# Entries of data in memory up to which to read them once for each solve takes less than
# threads that meet: a meeting takes 0.1 ms, reading a MiB from a cache as long.
FEW_ENTRIES = 1 << 17

# Bytes of rows in memory up to which each of several solves sweeps them by itself: 0.5
# to 1.1 of the time, of 256 MiB 1.0 to 1.2 (benchmarks/core/apart.py).
APART_BYTES = 64 << 20

# Seconds after which to look whether there was a Ctrl-C: one that comes as a thread
# begins to wait does not wake it.
POLL = 0.1
# Seconds that threads have to end in after a second Ctrl-C.
PATIENCE = 5.0

# No solver factors larger dense matrices (solvers/linear/normal_equations.py).
LARGEST_MATRIX = 4000


def solve_together(
    rows: Rows, solves: Sequence[Callable[[Rows], Any]], memory_limit: int | None = None
) -> list[Any]:
    """Run several solves over the same rows, so that each sweep serves all of them.

    Every solve runs in a thread of its own with its own view of ``rows``; its sweeps
    wait until each of the others asks for one or has ended, and are run as one. k
    classes read the data as often as the slowest of them.

    Parameters
    ----------
    rows : Rows
    solves : sequence of callables
        Each gets rows and returns its result.
    memory_limit : int or None
        Bytes that the solves of one group may use; None: 1 GiB.

    Returns
    -------
    list of the results, in order

    Raises
    ------
    What a solve raises. Ctrl-C reaches every solve, which ends with its best answer; a
    second one raises KeyboardInterrupt.
    """
    size = _at_a_time(rows, memory_limit)
    results: list[Any] = []
    for first in range(0, len(solves), size):
        group = solves[first : first + size]
        results += (
            [group[0](rows)]
            if len(group) == 1
            else _Meeting(rows, len(group)).run(group)
        )
    return results


def are_apart(rows: Rows, count: int) -> TypeGuard[MemoryRows]:
    """Whether so many solves take less time one in each thread than together."""
    if not isinstance(rows, MemoryRows) or count < max(2, rows.threads):
        return False
    return linalg.n_bytes(rows.in_memory()) <= APART_BYTES


def solve_apart(
    rows: MemoryRows,
    solves: Sequence[Callable[[Rows], Any]],
    memory_limit: int | None = None,
) -> list[Any]:
    """Run several solves over the same rows, one in each thread.

    As `solve_together`, but that each sweeps by itself, in its thread, and that one
    begins when another one has ended.
    """
    copies = linalg.n_bytes(rows.in_memory())  # of pairs of classes, or folds
    threads = min(
        n_threads(rows.options.get("n_jobs")), _at_a_time(rows, memory_limit, copies)
    )
    rows.check_finite()  # and keep what it takes: the solves have a copy of the rows
    meeting = _Apart(rows.in_one_thread(), len(solves), threads)
    with ONE_BLAS_THREAD:
        found = meeting.run(solves)
    rows.sweeps += sum(port.sweeps for port in meeting.ports)
    return found


def _at_a_time(rows: Rows, memory_limit: int | None, copies: int = 0) -> int:
    """How many solves memory has room for, of which each copies so many bytes."""
    m, n = rows.shape
    # Sixteen row vectors, and ten matrices of the order of the normal equations.
    each = copies + 8 * (16 * m + 10 * min(m, n, LARGEST_MATRIX) ** 2)
    given = (memory_limit, rows.options.get("memory_limit"))
    limit = min(filter(None, given), default=TOGETHER_BYTES)
    return max(1, limit // each)


@dataclass
class _Request:
    """A sweep that a solve waits for."""

    f: Callable[..., Any]
    state: RowState | None
    broadcast: tuple[Any, ...]
    deadline: Deadline | None
    value: Any = None
    error: BaseException | None = None
    done: threading.Event = field(default_factory=threading.Event)


class _Meeting:
    """Where the threads of a group bring their sweeps; the calling thread runs them."""

    def __init__(self, rows: Rows, size: int, threads: int | None = None) -> None:
        self._rows, self._threads = rows, min(threads or size, size)
        self._changed = threading.Condition()
        self._waiting: dict[int, _Request] = {}
        self._size, self._running = size, self._threads
        self._untold: set[int] = set()  # solves that Ctrl-C has not reached yet
        self._interrupted = self._closed = False

    def run(self, solves: Sequence[Callable[[Rows], Any]]) -> list[Any]:
        """Results of the solves; raises the first error of one."""
        outcomes: list[Any] = [None] * len(solves)
        errors: list[BaseException] = []
        left = itertools.count()

        def work() -> None:
            while not (self._closed or errors) and (k := next(left)) < len(solves):
                try:
                    outcomes[k] = solves[k](self._port(k))
                except BaseException as error:  # noqa: BLE001  (raised again below)
                    errors.append(error)
            with self._changed:
                self._running -= 1
                self._changed.notify()

        self._rows.check_finite()  # once, before there are threads
        threads = [
            threading.Thread(target=work, daemon=True) for _ in range(self._threads)
        ]
        try:
            for thread in threads:
                thread.start()
            while self._serve():
                pass
        except BaseException:
            self._close()
            # A thread that is in the core when Python ends takes the process with it.
            end = time.monotonic() + PATIENCE
            for thread in filter(threading.Thread.is_alive, threads):
                thread.join(max(0.0, end - time.monotonic()))
            raise
        if errors:
            raise errors[0]
        return outcomes

    def _port(self, k: int) -> "_Port":
        """The rows for solve k."""
        return _Port(self._rows, self, k)

    def _close(self) -> None:
        """End every solve that waits for a sweep, or asks for one later."""
        with self._changed:
            self._closed = True
            self._finish(self._waiting, error=KeyboardInterrupt())

    def ask(self, k: int, request: _Request) -> Any:
        """Wait until the sweep of solve k has been run, and return its value."""
        with self._changed:
            if self._closed:
                raise KeyboardInterrupt
            self._waiting[k] = request
            self._changed.notify()
        request.done.wait()
        if request.error is not None:
            raise request.error
        return request.value

    def tell(self, k: int) -> None:
        """Raise KeyboardInterrupt in solve k if Ctrl-C has not reached it yet."""
        with self._changed:
            if self._closed or k in self._untold:
                self._untold.discard(k)
                raise KeyboardInterrupt

    def _serve(self) -> bool:
        """Run one round of sweeps; False when all solves have ended."""
        requests: dict[int, _Request] = {}
        try:
            with self._changed:
                while len(self._waiting) < self._running:
                    self._changed.wait(POLL)
                if not self._running:
                    return False
                requests, self._waiting = self._waiting, {}
            told = {k: r for k, r in requests.items() if k in self._untold}
            if told:
                self._finish(told, error=KeyboardInterrupt())
                requests = {k: r for k, r in requests.items() if k not in told}
            if requests:
                self._finish(requests, values=self._sweep(list(requests.values())))
        except KeyboardInterrupt as error:
            again, self._interrupted = self._interrupted, True
            self._untold |= set(range(self._size)) - set(requests)
            self._finish(requests, error=error)
            if again:
                raise
        except (Exception, OutOfTime) as error:  # noqa: BLE001  (raised where it was asked for)
            self._finish(requests, error=error)
        return True

    def _sweep(self, requests: list[_Request]) -> tuple[Any, ...]:
        """One read of the data for all requests, silent as solves are."""
        states = [request.state for request in requests]
        calls = [(request.f, request.broadcast) for request in requests]
        with deadline.until(_latest(requests)), np.errstate(all="ignore"):
            value: tuple[Any, ...] = self._rows.sweep(_together, _bundle(states), calls)
        return value

    def _finish(
        self,
        requests: dict[int, _Request],
        values: Sequence[Any] = (),
        error: BaseException | None = None,
    ) -> None:
        """Hand out values or an error, and let the solves go on."""
        for request, value in zip(requests.values(), values, strict=False):
            request.value = value
        if isinstance(error, KeyboardInterrupt):
            self._untold -= set(requests)
        for request in requests.values():
            request.error = error
            request.done.set()


class _Apart(_Meeting):
    """Solves that sweep by themselves, a few at a time: only Ctrl-C is brought here."""

    def __init__(self, rows: Rows, size: int, threads: int) -> None:
        super().__init__(rows, size, threads)
        self.ports: list[_OwnPort] = []

    def _port(self, k: int) -> "_Port":
        self.ports.append(_OwnPort(self._rows, self, k))
        return self.ports[-1]

    def check_open(self) -> None:
        """Raise KeyboardInterrupt once no solve is to go on."""
        if self._closed:
            raise KeyboardInterrupt


def _latest(requests: list[_Request]) -> Deadline | None:
    """The deadline of a sweep for all; None where one of them has none."""
    found = [one.deadline for one in requests if one.deadline is not None]
    if len(found) < len(requests):
        return None
    return max(found, key=lambda one: one.left)


class _Port(Rows):
    """The rows as one solve of a group sees them."""

    def __init__(self, rows: Rows, meeting: _Meeting, k: int) -> None:
        self.shape, self.dtype, self.density = rows.shape, rows.dtype, rows.density
        self.options, self.is_in_memory = rows.options, rows.is_in_memory
        self.names, self.copy_rows = rows.names, rows.copy_rows
        self._rows, self._meeting, self._k = rows, meeting, k

    @property
    def moments(self) -> Moments:
        return self._rows.moments

    def sweep(
        self, f: Callable[..., Any], state: RowState | None = None, *broadcast: Any
    ) -> Any:
        self.sweeps += 1
        deadline.check()
        request = _Request(f, state, broadcast, deadline.current())
        return self._meeting.ask(self._k, request)

    def take(self, index: ArrayLike) -> linalg.Matrix:
        return self._rows.take(index)

    def in_memory(self) -> "linalg.Matrix | None":
        return self._rows.in_memory()

    def reserve(self, size: int, what: str, owner: Any) -> None:
        self._rows.reserve(size, what, owner)

    def check_interrupted(self) -> None:
        self._meeting.tell(self._k)

    def state(self, **vectors: Any) -> RowState:
        return self._rows.state(**vectors)


class _OwnPort(_Port):
    """The rows as a solve sees them that sweeps by itself.

    Ctrl-C reaches it between its sweeps, where `check_interrupted` is called: before
    its first step, too, so that all have an answer.
    """

    _meeting: _Apart

    def sweep(
        self, f: Callable[..., Any], state: RowState | None = None, *broadcast: Any
    ) -> Any:
        self.sweeps += 1
        self._meeting.check_open()
        return self._rows.sweep(f, state, *broadcast)

    def of(self, rows: Rows) -> Self:
        """Other rows, for the same solve."""
        return type(self)(rows, self._meeting, self._k)


def for_solve_of(rows: Rows, others: Rows) -> Rows:
    """Other rows, for the solve that rows are of, if it has a thread of its own.

    Ctrl-C reaches it there too.
    """
    return rows.of(others) if isinstance(rows, _OwnPort) else others


def is_alone(rows: Rows) -> bool:
    """Whether rows are those of a solve that has a thread of its own."""
    return isinstance(rows, _OwnPort)


def _bundle(states: list[RowState | None]) -> RowState | None:
    """The vectors of several states as those of one, by reference, with own names."""
    found = [s.prefixed(f"{k}.") for k, s in enumerate(states) if s is not None]
    return (
        functools.reduce(lambda one, other: one.join(other), found) if found else None
    )


def _together(block: Any, bundle: RowState | None, calls: list[Any]) -> tuple[Any, ...]:
    """All functions on one block, while it is in cache."""
    parts = {} if bundle is None else bundle.by_prefix()
    return tuple(
        None if given_up() else f(block, parts.get(str(k)), *broadcast)
        for k, (f, broadcast) in enumerate(calls)
    )
