"""One task on every block of rows: a fixed cut, a fixed order of sums, any threads."""

import contextlib
import contextvars
import copy
import itertools
import os
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from widemargin.system import deadline
from widemargin.system.threads import ONE_BLAS_THREAD, n_threads

# Rows of a single block up to which BLAS is let be: to set its threads takes 20 us.
SMALL = 1000


@dataclass(frozen=True)
class Least:
    """A key and a value; of two that are added the smaller key stays."""

    key: float
    value: Any = None

    def __add__(self, other: "Least") -> "Least":
        return other if other.key < self.key else self


@dataclass(frozen=True)
class Depth:
    """How many additions a sum over rows has in a row: what rounding grows with.

    Attributes
    ----------
    rows : int, of the largest block
    blocks : int
    """

    rows: int
    blocks: int = 1

    def __add__(self, other: "Depth") -> "Depth":
        return Depth(max(self.rows, other.rows), self.blocks + other.blocks)

    @property
    def additions(self) -> int:
        """Within a block in any order, then over the blocks."""
        return self.rows + self.blocks


def even_blocks(borders: Iterable[int], block_rows: int) -> list[slice]:
    """Blocks of at most ``block_rows`` that begin at borders where that is possible.

    Spans between borders that are too long are cut into equal parts, short ones joined.
    """
    blocks: list[slice] = []
    for start, stop in itertools.pairwise(sorted(set(borders))):
        parts = -(-(stop - start) // block_rows)
        if blocks and stop - blocks[-1].start <= block_rows:
            blocks[-1] = slice(blocks[-1].start, stop)
            continue
        ends = [start + (stop - start) * i // parts for i in range(parts + 1)]
        blocks += [slice(a, b) for a, b in itertools.pairwise(ends)]
    return blocks


def submit(pool: ThreadPoolExecutor, *task: Any) -> "Future[Any]":
    """Hand a task to a pool; MemoryError where there is no room for its thread."""
    try:
        return pool.submit(*task)
    except RuntimeError as error:
        if str(error) != "can't start new thread":
            raise
        raise MemoryError("no room for another thread") from error


class Blocks:
    """The cut of rows into blocks, and the threads that run a task on each.

    Parameters
    ----------
    blocks : list of slices, which follow each other
    lanes : int, how many groups of blocks are added up, at most
    n_jobs : int or None, threads; None: as many as BLAS may use
    readers : int or None
        Places of the data that may be read at a time; None: any number.
    calls_blas : bool
        Whether tasks may call BLAS, which is kept to one thread then: 0.2 ms a sweep.
    """

    def __init__(
        self,
        blocks: list[slice],
        lanes: int,
        n_jobs: int | None,
        readers: int | None = None,
        *,
        calls_blas: bool = True,
    ) -> None:
        self._calls_blas = calls_blas
        size = -(-len(blocks) // lanes)
        self._lanes = [blocks[i : i + size] for i in range(0, len(blocks), size)]
        lanes = len(self._lanes)
        self.threads = min(n_threads(n_jobs), lanes) if lanes > 1 else 1
        self._readers = readers and min(readers, self.threads)
        self._is_small = len(blocks) == 1 and blocks[0].stop <= SMALL
        self._pools: dict[tuple[int, str], ThreadPoolExecutor] = {}

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_pools": {}}

    def in_one_thread(self) -> Self:
        """The same lanes, which are added up in one thread."""
        alone = copy.copy(self)
        alone.threads, alone._pools = 1, {}
        return alone

    def _one_blas_thread(self) -> contextlib.AbstractContextManager[Any]:
        """What tasks run in: BLAS has one thread where they may call it."""
        return ONE_BLAS_THREAD if self._calls_blas else contextlib.nullcontext()

    def _pool(self, what: str, threads: int) -> ThreadPoolExecutor:
        """Threads of this process: a forked one has none of its parent's."""
        key = os.getpid(), what
        if key not in self._pools:
            pool = ThreadPoolExecutor(threads, thread_name_prefix=f"widemargin-{what}")
            self._pools.setdefault(key, pool)
        return self._pools[key]

    def __call__(
        self, task: Callable[..., Any], load: Callable[[slice], Any] | None = None
    ) -> Any:
        """Values of the task on the rows of each block, added up in order.

        With ``load`` it also gets load(rows), which other threads make while the block
        before is at work: in each thread there are two at a time. Where there are
        readers, the threads load in turn, each what follows what was loaded before.
        """
        if self.threads == 1:  # nothing to share, nobody to call off: 15 us less
            if self._is_small and load is None:
                deadline.check()
                return task(self._lanes[0][0])
            with self._one_blas_thread():
                return total(
                    total(self._values(lane, task, load)) for lane in self._lanes
                )
        if load is not None and self._readers is not None:
            return self._streamed(task, load, self._readers)
        return self._shared(task, load)

    def _values(
        self,
        lane: list[slice],
        task: Callable[..., Any],
        load: Callable[[slice], Any] | None,
    ) -> Iterator[Any]:
        """Values of the task on the blocks of a lane, one after the other."""
        if load is None:
            for block_rows in lane:
                deadline.check()
                yield task(block_rows)
            return
        pool = self._pool("reader", self.threads)
        ahead = submit(pool, load, lane[0])
        try:
            for rows, following in itertools.pairwise([*lane, None]):
                block = ahead.result()
                deadline.check()
                if following is not None:
                    ahead = submit(pool, load, following)
                yield task(rows, block)
                del block  # or it would wait here for the next one
        finally:
            if not ahead.cancel():
                wait([ahead])  # what it reads is not to outlive the sweep

    def _shared(
        self, task: Callable[..., Any], load: Callable[[slice], Any] | None
    ) -> Any:
        """The total of all lanes, which several threads share."""
        lanes = self._lanes
        left, sums = itertools.count(), [None] * len(lanes)

        def work(cancelled: threading.Event) -> None:
            while not cancelled.is_set() and (i := next(left)) < len(lanes):
                values = self._values(lanes[i], task, load)
                sums[i] = total(
                    itertools.takewhile(lambda _: not cancelled.is_set(), values)
                )

        self._in_threads(work)
        return total(sums)

    def _streamed(
        self, task: Callable[..., Any], load: Callable[[slice], Any], readers: int
    ) -> Any:
        """The total of lanes of which few can be read at once, by a stream of each."""
        sums = [Sum() for _ in self._lanes]
        steps = [
            [(total, i, rows) for i, rows in enumerate(lane)]
            for total, lane in zip(sums, self._lanes, strict=True)
        ]
        ends = [len(steps) * r // readers for r in range(readers + 1)]
        streams = [
            _Stream(itertools.chain(*steps[a:b])) for a, b in itertools.pairwise(ends)
        ]
        started = itertools.count()

        def work(cancelled: threading.Event) -> None:
            first = next(started) % readers
            for stream in streams[first:] + streams[:first]:
                while (loaded := stream.next(load, cancelled)) is not None:
                    (lane, i, rows), block = loaded
                    lane.put(i, task(rows, block))
                    del loaded, block  # or they would wait here for the next ones

        self._in_threads(work)
        return total(lane.value for lane in sums)

    def _in_threads(self, work: Callable[[threading.Event], None]) -> None:
        """Do work in all threads; what it gets is set where it is to end."""
        cancelled = threading.Event()

        def run() -> None:
            _GIVEN_UP.set(cancelled)
            work(cancelled)

        with self._one_blas_thread():
            helpers: list[Future[Any]] = []
            try:
                helper_pool = self._pool("sweep", self.threads - 1)
                # In copies of this context: numpy.errstate holds there too.
                for _ in range(self.threads - 1):
                    context = contextvars.copy_context()
                    helpers.append(submit(helper_pool, context.run, run))
                contextvars.copy_context().run(run)  # this thread is one of them
                for helper in helpers:
                    helper.result()
            except BaseException:
                cancelled.set()  # Ctrl-C or an error: the others stop after a block
                wait(helpers)
                raise


class _Stream:
    """Blocks that follow each other, loaded by one thread at a time."""

    def __init__(self, steps: Iterator[tuple["Sum", int, slice]]) -> None:
        self._steps, self._lock = steps, threading.Lock()

    def next(
        self, load: Callable[[slice], Any], cancelled: threading.Event
    ) -> tuple[tuple["Sum", int, slice], Any] | None:
        """The next step and its block; None where there is none, or none is wanted."""
        with self._lock:
            step = None if cancelled.is_set() else next(self._steps, None)
            return None if step is None else (step, load(step[2]))


_GIVEN_UP: contextvars.ContextVar[threading.Event] = contextvars.ContextVar("given_up")


def given_up() -> bool:
    """Whether Ctrl-C or an error has ended the sweep that this thread works for.

    For tasks that take long on one block; what they return then does not matter.
    """
    event = _GIVEN_UP.get(None)
    return event is not None and event.is_set()


class Sum:
    """A sum of arrays, numbers, `Least`, or tuples of them, in the order of numbers.

    The values may come in any order, and from any thread: early values wait.
    """

    def __init__(self) -> None:
        self.value: Any = None
        self._owned, self._next = False, 0
        self._early: dict[int, Any] = {}
        self._lock = threading.Lock()

    def put(self, i: int, value: Any) -> None:
        """Value number i."""
        with self._lock:
            self._early[i] = value
            while self._next in self._early:
                self.add(self._early.pop(self._next))
                self._next += 1

    def add(self, value: Any) -> None:
        """The next value."""
        if self.value is None:
            self.value = value
        elif value is not None:
            self.value, self._owned = _add(self.value, value, self._owned), True


def total(values: Iterable[Any]) -> Any:
    """Sum of arrays, numbers, `Least`, or tuples of them, in the order given."""
    result = Sum()
    for value in values:
        result.add(value)
    return result.value


def _add(a: Any, b: Any, owned: bool) -> Any:
    """A + b, into a where its arrays are ours; None counts as nothing."""
    if b is None:
        return a
    if isinstance(b, tuple):
        a = (None,) * len(b) if a is None else a
        return tuple(_add(x, y, owned) for x, y in zip(a, b, strict=True))
    if a is None:
        return b.copy() if isinstance(b, np.ndarray) else b
    alike = isinstance(a, np.ndarray) and isinstance(b, np.ndarray) and a.ndim > 0
    if owned and alike and a.shape == b.shape and a.dtype == b.dtype:
        a += b
        return a
    return a + b
