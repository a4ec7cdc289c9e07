"""Rows whose data and row vectors live in another process.

It stands for a cluster: a sweep sends the function, which is module-level, and its
broadcast arguments, and gets the sum of the values back. What travels is counted in
bytes, by what it is for, so that a test can say that nothing of length m does.
"""

import atexit
import collections
import functools
import itertools
import multiprocessing
import pickle
import threading
import weakref

import numpy as np

from widemargin.data.matrix import as_matrix
from widemargin.data.memory import as_rows
from widemargin.data.rows import Rows
from widemargin.data.state import RowState, row_index
from widemargin.numerics import linalg


class Worker:
    """A process with a shelf of rows and row vectors, each known by a number.

    Attributes
    ----------
    shipped : Counter of bytes sent and received, by purpose: "load" (data), "store"
        (row vectors made or written), "gather" (row vectors read), "take", "sweep"
    """

    def __init__(self):
        # Not forked: a copy of this process has its locks, but not its threads.
        context = multiprocessing.get_context("spawn")
        self._pipe, theirs = context.Pipe()
        self._process = context.Process(target=_serve, args=(theirs,), daemon=True)
        self._process.start()
        theirs.close()
        self._lock = threading.Lock()
        self._calls = itertools.count()
        self._numbers = itertools.count()
        self._forgotten = collections.deque()
        self.shipped = collections.Counter()
        atexit.register(self._close)

    def call(self, purpose, task, *arguments):
        """The value of task(shelf, *arguments) there; or its error is raised."""
        call = next(self._calls)
        forget = [self._forgotten.popleft() for _ in range(len(self._forgotten))]
        request = pickle.dumps((call, task, arguments, forget, np.geterr()))
        answered = None
        with self._lock:
            self._pipe.send_bytes(request)
            while answered != call:  # an interrupted call leaves its reply behind
                reply = self._pipe.recv_bytes()
                answered, value, error = pickle.loads(reply)
        self.shipped[purpose] += len(request) + len(reply)
        if error is not None:
            raise error
        return value

    def handle(self):
        """A number for something on the shelf, which is dropped with the handle."""
        return _Handle(next(self._numbers), self._forgotten)

    def _close(self):
        self._pipe.close()  # ends the loop of _serve
        self._process.join(10)


class _Handle:
    """What this process knows of something on the shelf."""

    def __init__(self, number, forgotten):
        self.number = number
        weakref.finalize(self, forgotten.append, number).atexit = False


def _serve(pipe):
    """Run what is asked for until the other end closes."""
    shelf = {}
    while True:
        try:
            call, task, arguments, forget, errstate = pickle.loads(pipe.recv_bytes())
        except EOFError:
            return
        for number in forget:
            shelf.pop(number, None)
        value = error = None
        try:
            with np.errstate(**errstate):
                value = task(shelf, *arguments)
        except BaseException as raised:  # noqa: BLE001  (raised at the other end)
            error = raised
        pipe.send_bytes(pickle.dumps((call, value, error)))


@functools.cache
def shared_worker():
    """The one process of this test run: starting one takes a second."""
    return Worker()


class ProcessRows(Rows):
    """Rows in the shared worker."""

    def __init__(self, X, **options):
        X = as_matrix(X)
        self.shape, self.dtype, self.density = X.shape, X.dtype, linalg.density(X)
        self.worker = shared_worker()
        self.handle = self.worker.handle()
        self.worker.call("load", _load, self.handle.number, X, options)

    def sweep(self, f, state=None, *broadcast):
        self.sweeps += 1
        numbers = None if state is None else state.numbers()
        return self.worker.call(
            "sweep", _sweep, self.handle.number, f, numbers, broadcast
        )

    def take(self, index):
        index = row_index(index, self.shape[0])
        return self.worker.call("take", _take, self.handle.number, index)

    def state(self, **vectors):
        handles = {name: self.worker.handle() for name in vectors}
        state = ProcessState(handles, self)
        self.worker.call("store", _make, self.handle.number, state.numbers(), vectors)
        return state


class ProcessState(RowState):
    """Handles of row vectors in the worker."""

    __slots__ = ("_handles", "_rows")

    def __init__(self, handles, rows):
        object.__setattr__(self, "_handles", handles)
        object.__setattr__(self, "_rows", rows)

    def numbers(self):
        return {name: handle.number for name, handle in self._handles.items()}

    def _number(self, name):
        if name not in self._handles:
            raise AttributeError(f"no row vector named {name!r}")
        return self._handles[name].number

    def __getattr__(self, name):
        vector = self._rows.worker.call("gather", _read, self._number(name))
        vector.flags.writeable = False
        return vector

    def __setattr__(self, name, value):
        self._rows.worker.call("store", _write, self._number(name), value)

    def join(self, other):
        return ProcessState({**self._handles, **other._handles}, self._rows)

    def prefixed(self, prefix):
        handles = {prefix + name: handle for name, handle in self._handles.items()}
        return ProcessState(handles, self._rows)

    def sweep(self, f, *broadcast):
        number = self._rows.handle.number
        return self._rows.worker.call(
            "sweep", _sweep_state, number, f, self.numbers(), broadcast
        )


# -- what runs in the worker -----------------------------------------------------------


def _load(shelf, rows, X, options):
    shelf[rows] = as_rows(X, **options)


def _take(shelf, rows, index):
    return shelf[rows].take(index)


def _make(shelf, rows, numbers, vectors):
    state = shelf[rows].state(**vectors)
    for name, number in numbers.items():
        shelf[number] = getattr(state, name)


def _read(shelf, vector):
    return shelf[vector]


def _write(shelf, vector, value):
    shelf[vector][...] = value


def _state(shelf, rows, numbers):
    vectors = {name: shelf[number] for name, number in numbers.items()}
    return RowState(vectors, shelf[rows]._blocks)


def _sweep(shelf, rows, f, numbers, broadcast):
    state = None if numbers is None else _state(shelf, rows, numbers)
    return shelf[rows].sweep(f, state, *broadcast)


def _sweep_state(shelf, rows, f, numbers, broadcast):
    return _state(shelf, rows, numbers).sweep(f, *broadcast)
