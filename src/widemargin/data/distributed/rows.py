"""Rows on the workers of a Dask cluster: a sweep is one request, up and down a tree."""

import collections
import hashlib
import io
import pickle
import threading
import weakref
from collections.abc import Callable, Sequence
from concurrent.futures import TimeoutError as LateError
from typing import Any, NoReturn

import numpy as np
from numpy.typing import ArrayLike, NDArray

from widemargin.data.distributed.crew import Crew, Facts, Reader
from widemargin.data.distributed.lane import Entry
from widemargin.data.distributed.sums import Raised
from widemargin.data.row_vector import RowVector
from widemargin.data.rows import Rows
from widemargin.data.state import RowState, row_index, row_vector
from widemargin.numerics import linalg
from widemargin.system import deadline
from widemargin.system.deadline import OutOfTime

# Bytes of rows that the client may copy at a time: a sample to start from. Not tuned.
COPY_BYTES = 64 << 20


class DaskRows(Rows):
    """Rows in lanes on the workers of a cluster.

    Parameters
    ----------
    client : distributed.Client
    lanes : sequence of partitions of each lane, delayed
    weights : sequence of float, of each lane
    read : Reader
    names : names of the columns, or None

    Attributes
    ----------
    loaded : RowState of the vectors that came with the rows
    facts : list of Facts, of each lane
    """

    def __init__(
        self,
        client: Any,
        lanes: Sequence[Any],
        weights: Sequence[float],
        read: Reader,
        names: Sequence[str] | None = None,
    ) -> None:
        self.crew = Crew(client, lanes, weights, read)
        self.names = names
        # Vectors are freed whenever the collector runs: the next entry drops them.
        self._freed: collections.deque[int] = collections.deque()
        self._numbers = 0
        self._steps: collections.deque[Any] = collections.deque()
        self._lock = threading.RLock()
        self._pinned: dict[int, tuple[Any, str]] = {}
        try:
            self._open()
        except BaseException:
            self.close()
            raise

    def _open(self) -> None:
        """Load the lanes and learn what they hold."""
        found = self._timed(self.crew.load)
        self.facts: list[Facts] = [found[k] for k in sorted(found)]
        filled = [facts for facts in self.facts if facts.columns is not None]
        if not filled:
            raise ValueError("X must have at least one row. All partitions are empty.")
        n = _same_columns(filled)
        sizes = [sum(facts.sizes) for facts in self.facts]
        self.shape = sum(sizes), n
        self.dtype = np.result_type(*(facts.dtype for facts in filled))
        stored = sum(facts.stored for facts in filled)
        self.density = stored / (self.shape[0] * n)
        each = stored * (self.dtype.itemsize + 8 * (self.density < 1.0))
        self.copy_rows = COPY_BYTES * self.shape[0] // max(each, 1)
        starts = np.cumsum([0, *sizes[:-1]]).tolist()
        self._steps.append(("place", (0, starts)))

    def unpack(self, **dtypes: Any) -> RowState:
        """The vectors that came with the rows, by name and dtype."""
        handles = {name: self._handle(dtype) for name, dtype in dtypes.items()}
        self._steps.append(("unpack", ({k: h.number for k, h in handles.items()},)))
        return DaskState(handles, self)

    def close(self) -> None:
        """Let the workers forget the rows."""
        self.crew.close()

    def __enter__(self) -> "DaskRows":
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def __reduce__(self) -> NoReturn:
        raise TypeError("rows on a cluster cannot be pickled or copied")

    def __repr__(self) -> str:
        m, n = self.shape
        return f"<rows in {len(self.facts)} lanes: {m:,} x {n:,} of {self.dtype}>"

    def sweep(
        self, f: Callable[..., Any], state: RowState | None = None, *broadcast: Any
    ) -> Any:
        """Read the data once: see `Rows.sweep`."""
        self.sweeps += 1
        return self._ask("sweep", 0, f, _numbers(state), broadcast, True)

    def take(self, index: ArrayLike) -> linalg.Matrix:
        """Rows ``index``: see `Rows.take`. They come to the client."""
        chosen = row_index(index, self.shape[0])
        order = np.argsort(chosen, kind="stable")
        found = self._ask("take", 0, chosen[order])
        if found is None:
            return np.empty((0, self.shape[1]), self.dtype)
        return linalg.stack(found)[np.argsort(order, kind="stable")]

    def state(self, **vectors: Any) -> RowState:
        """Vectors beside the rows: see `Rows.state`.

        A `RowVector` is copied where it is.
        """
        handles, m = {}, self.shape[0]
        for name, value in vectors.items():
            if isinstance(value, RowVector):
                handles[name] = self._copy(value)
                continue
            given = row_vector(name, value, m, copy=False)
            handle = handles[name] = self._handle(given.dtype)
            if given.strides[0] == 0:
                step = "fill", (0, handle.number, np.array(given[0]))
            else:
                step = "cut", (0, handle.number, np.array(given))
            self._steps.append(step)
        return DaskState(handles, self)

    def _copy(self, value: RowVector) -> "Handle":
        source = value.state.handle(value.name)
        handle = self._handle(source.dtype)
        self._steps.append(("copy", (handle.number, source.number)))
        return handle

    def _handle(self, dtype: Any) -> "Handle":
        with self._lock:
            self._numbers += 1
            return Handle(self._numbers, np.dtype(dtype), self._freed)

    def _ask(self, step: str, *arguments: Any) -> Any:
        """The sum of what the lanes return for a step."""
        deadline.check()
        with self._lock:
            freed = [self._freed.popleft() for _ in range(len(self._freed))]
            steps = [self._steps.popleft() for _ in range(len(self._steps))]
            if freed:
                steps.append(("forget", (freed,)))
            steps.append((step, arguments))
            entry = Entry(self.crew.epoch + 1, steps, np.geterr())
            value = self._timed(self.crew.add, self._dumps(entry))
        if isinstance(value, Raised):
            raise value.error
        return value

    def _timed(self, call: Callable[..., Any], *arguments: Any) -> Any:
        """A call that ends with the deadline."""
        limit = deadline.current()
        try:
            return call(*arguments, timeout=None if limit is None else limit.left)
        except LateError:
            raise OutOfTime from None

    def _dumps(self, entry: Entry) -> bytes:
        """The bytes of an entry, without maps of features: these are sent once."""
        buffer = io.BytesIO()
        writer = pickle.Pickler(buffer, protocol=5)
        writer.persistent_id = self._pin  # type: ignore[method-assign]
        writer.dump(entry)
        return buffer.getvalue()

    def _pin(self, value: Any) -> str | None:
        """The name of a map of features, which the workers know from then on."""
        if not (hasattr(value, "rank") and hasattr(value, "map")):
            return None
        if isinstance(value, type):
            return None
        if id(value) not in self._pinned:
            data = pickle.dumps(value, protocol=5)
            name = hashlib.sha256(data).hexdigest()
            self.crew.pin(name, data)
            self._pinned[id(value)] = value, name  # its id lives as long as this
        return self._pinned[id(value)][1]

    def _origin(self, row: int) -> int:
        return row

    def refuse_nonfinite(self) -> None:
        """Raise ValueError naming the first NaN or infinity by partition and row."""
        try:
            super().refuse_nonfinite()
        except ValueError as error:
            found = str(error).split(" at row ")
            if len(found) != 2:
                raise
            row, _, rest = found[1].partition(",")
            partition, own = self._partition(int(row))
            raise ValueError(
                f"{found[0]} in partition {partition}, at its row {own},{rest}"
            ) from None

    def _partition(self, row: int) -> tuple[int, int]:
        """The partition that holds a row, and which row that is there."""
        sizes = [size for facts in self.facts for size in facts.sizes]
        ends = np.cumsum(sizes)
        place = int(np.searchsorted(ends, row, side="right"))
        return place, row - int(ends[place] - sizes[place])


class Handle:
    """What the client knows of a vector in the lanes, which is dropped with it."""

    def __init__(
        self, number: int, dtype: np.dtype[Any], freed: collections.deque[int]
    ) -> None:
        self.number, self.dtype = number, dtype
        weakref.finalize(self, freed.append, number).atexit = False


class DaskState(RowState):
    """Handles of vectors in the lanes."""

    __slots__ = ("_handles", "_rows")
    _handles: dict[str, Handle]
    _rows: DaskRows

    def __init__(self, handles: dict[str, Handle], rows: DaskRows) -> None:
        object.__setattr__(self, "_handles", handles)
        object.__setattr__(self, "_rows", rows)

    def handle(self, name: str) -> Handle:
        """The handle of a vector."""
        if name not in self._handles:
            raise AttributeError(f"no row vector named {name!r}")
        return self._handles[name]

    def numbers(self) -> dict[str, int]:
        """The numbers of all vectors."""
        return {name: handle.number for name, handle in self._handles.items()}

    def __getattr__(self, name: str) -> Any:
        if name in self.__slots__:
            raise AttributeError(name)
        dtype = self.handle(name).dtype
        return RowVector(self, name, self._rows.shape[0], dtype)

    def __setattr__(self, name: str, value: Any) -> None:
        number = self.handle(name).number
        if isinstance(value, RowVector):
            value = np.asarray(value)
        self._rows._steps.append(("write", (0, number, value)))

    def join(self, other: RowState) -> RowState:
        """The vectors of both: see `RowState.join`."""
        assert isinstance(other, DaskState)
        return DaskState({**self._handles, **other._handles}, self._rows)

    def prefixed(self, prefix: str) -> RowState:
        """The same vectors under other names: see `RowState.prefixed`."""
        handles = {prefix + name: handle for name, handle in self._handles.items()}
        return DaskState(handles, self._rows)

    def sweep(self, f: Callable[..., Any], *broadcast: Any) -> Any:
        """Run f on every block: see `RowState.sweep`."""
        return self._rows._ask("sweep", 0, f, self.numbers(), broadcast, False)

    def beside(self, **vectors: Any) -> RowState:
        """New vectors beside these."""
        return self._rows.state(**vectors)

    def gather(self, name: str) -> NDArray[Any]:
        """A whole vector, at the client."""
        only = DaskState({name: self.handle(name)}, self._rows)
        found: NDArray[Any] = np.concatenate(only.sweep(_whole, name))
        found.flags.writeable = False
        return found

    def pick(self, name: str, index: NDArray[np.intp]) -> NDArray[Any]:
        """Some entries of a vector, at the client."""
        order = np.argsort(index, kind="stable")
        handle = self.handle(name)
        found = self._rows._ask("pick", 0, handle.number, index[order])
        if found is None:
            return np.empty(0, handle.dtype)
        whole: NDArray[Any] = np.concatenate(found)
        return whole[np.argsort(order, kind="stable")]


def _whole(part: RowState, name: str) -> list[NDArray[Any]]:
    return [np.array(getattr(part, name))]


def _numbers(state: RowState | None) -> dict[str, int] | None:
    """The numbers of the vectors of a state."""
    if state is None:
        return None
    assert isinstance(state, DaskState)
    return state.numbers()


def _same_columns(filled: Sequence[Facts]) -> int:
    """The number of columns, which must be the same in all lanes."""
    n = filled[0].columns
    for facts in filled:
        if facts.columns != n:
            raise ValueError(
                "X must have the same columns in all partitions. Got "
                f"{n} and {facts.columns} instead."
            )
    assert n is not None
    return n
