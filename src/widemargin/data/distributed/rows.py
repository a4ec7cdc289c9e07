"""Rows on the workers of a Dask cluster: a sweep is one request, up and down a tree."""

import collections
import hashlib
import itertools
import threading
import weakref
from collections.abc import Callable, Sequence
from concurrent.futures import TimeoutError as LateError
from typing import Any, NoReturn

import numpy as np
from numpy.typing import ArrayLike, NDArray

from widemargin.arrays import Index
from widemargin.data.distributed.crew import Crew
from widemargin.data.distributed.lane import Entry, dumped
from widemargin.data.distributed.loading import Facts, Reader
from widemargin.data.distributed.sums import Raised
from widemargin.data.kept import Kept, KeptThere, exchanged
from widemargin.data.row_vector import RowVector
from widemargin.data.rows import RemoteRows, RowMap, Rows
from widemargin.data.state import RowState, row_index, row_vector
from widemargin.numerics import linalg
from widemargin.system import deadline
from widemargin.system.deadline import OutOfTime

# Bytes of rows that the client may copy at a time: a sample to start from. A bound of
# its memory, whatever the collection: half of a partition as Dask makes it.
COPY_BYTES = 64 << 20
# Share of the memory of all workers for features that are kept: half of what a worker
# of Dask may fill before it pauses (0.8). The other half is for rows and products. Both
# sides of it: tests/data/test_distributed.py.
FEATURE_SHARE = 0.4


class Link:
    """What the rows of a fit share: the way to the workers, and what waits to be sent.

    Parameters
    ----------
    crew : Crew
    """

    def __init__(self, crew: Crew) -> None:
        self.crew = crew
        # Vectors are freed whenever the collector runs: the next entry drops them.
        self.freed: collections.deque[int] = collections.deque()
        self._steps: collections.deque[Any] = collections.deque()
        self._numbers = itertools.count(1)
        self._lock = threading.RLock()
        self._pinned: dict[int, tuple[Any, str]] = {}

    def number(self) -> int:
        """A name for something in the lanes."""
        return next(self._numbers)

    def handle(self, dtype: Any) -> "Handle":
        """A handle for a vector in the lanes."""
        return Handle(self.number(), np.dtype(dtype), self.freed)

    def later(self, step: str, *arguments: Any) -> None:
        """A step that the next request takes along."""
        self._steps.append((step, arguments))

    def ask(self, step: str, *arguments: Any) -> Any:
        """The sum of what the lanes return for a step."""
        deadline.check()
        with self._lock:
            freed = [self.freed.popleft() for _ in range(len(self.freed))]
            steps = [self._steps.popleft() for _ in range(len(self._steps))]
            if freed:
                steps.append(("forget", (freed,)))
            steps.append((step, arguments))
            entry = Entry(self.crew.epoch + 1, steps, dict(np.geterr()))
            value = timed(self.crew.add, self._dumps(entry))
        if isinstance(value, Raised):
            raise value.error
        return value

    def _dumps(self, entry: Entry) -> bytes:
        """The bytes of an entry, without maps of features: these are sent once."""
        return dumped(entry, self._pin)

    def _pin(self, value: Any) -> str | None:
        """The name of a map of features, which the workers know from then on."""
        is_map = hasattr(value, "rank") and hasattr(value, "map")
        if not is_map or isinstance(value, type):
            return None
        if id(value) not in self._pinned:
            data = dumped(value, lambda _: None)
            name = hashlib.sha256(data).hexdigest()
            self.crew.pin(name, data)
            self._pinned[id(value)] = value, name  # its id lives as long as this
        return self._pinned[id(value)][1]


def timed(call: Callable[..., Any], *arguments: Any) -> Any:
    """A call that ends with the deadline."""
    limit = deadline.current()
    try:
        return call(*arguments, timeout=None if limit is None else limit.left)
    except LateError:
        raise OutOfTime from None


class DaskRows(RemoteRows):
    """Rows in lanes on the workers of a cluster.

    Parameters
    ----------
    link : Link
    sizes : sequence of int, rows of each lane
    like : tuple (columns, dtype, density)
    number : int, what the lanes call the rows; 0: those that were loaded
    names : names of the columns, or None
    """

    def __init__(
        self,
        link: Link,
        sizes: Sequence[int],
        like: tuple[int, Any, float],
        number: int = 0,
        names: Sequence[str] | None = None,
    ) -> None:
        n, self.dtype, self.density = like
        self.link, self.names, self.number = link, names, number
        self.shape = int(sum(sizes)), n
        each = self.density * n * (self.dtype.itemsize + 8 * (self.density < 1.0))
        self.copy_rows = max(1, int(COPY_BYTES / max(each, 1)))
        starts = np.cumsum([0, *sizes[:-1]]).astype(np.int64)
        link.later("place", number, starts)

    def sweep(
        self, f: Callable[..., Any], state: RowState | None = None, *broadcast: Any
    ) -> Any:
        """Read the data once: see `Rows.sweep`."""
        self.sweeps += 1
        numbers = _numbers(state)
        value = self.link.ask("sweep", self.number, f, numbers, broadcast, True)
        return exchanged(value, KeptThere, self._kept)

    def mapped_once(self, feature_map: RowMap) -> Rows:
        """Rows after a feature map: see `RemoteRows.mapped_once`.

        Kept where they take at most a share of the memory of the workers.
        """
        mapped = self.mapped(feature_map)
        size = self.shape[0] * feature_map.rank * np.dtype(mapped.dtype).itemsize
        if size > FEATURE_SHARE * self.link.crew.memory():
            return mapped
        found = mapped.sweep(_all_rows)
        rows: Rows = found[0]
        return rows

    def keep(
        self,
        choose: Callable[..., Any],
        state: RowState,
        names: Sequence[str],
        *broadcast: Any,
    ) -> tuple[Rows, RowState]:
        """Rows that are chosen: see `RemoteRows.keep`. At least one must be.

        A lane whose rows are all chosen does not copy them.
        """
        numbers = _numbers(state)
        kept = self.link.ask("keep", self.number, choose, numbers, names, broadcast)
        found = self._kept(kept)
        assert found is not None
        return found

    def _kept(self, kept: KeptThere) -> tuple[Rows, RowState] | None:
        """Rows that the lanes have kept, with their vectors; None if none."""
        numbers = dict(zip(kept.vectors, itertools.count(1), strict=False))
        freed = self.link.freed
        handles = {
            name: Handle(kept.number - number, kept.vectors[name], freed)
            for name, number in numbers.items()
        }
        sizes = [kept.counts.get(k, 0) for k in range(self.link.crew.n_lanes)]
        if not any(sizes):
            return None
        density = kept.stored / (sum(sizes) * kept.columns)
        rows = DaskRows(
            self.link, sizes, (kept.columns, kept.dtype, density), kept.number
        )
        weakref.finalize(rows, freed.append, kept.number).atexit = False
        return rows, DaskState(handles, rows)

    def take(self, index: ArrayLike) -> linalg.Matrix:
        """Rows ``index``: see `Rows.take`. They come to the client."""
        chosen = row_index(index, self.shape[0])
        order = np.argsort(chosen, kind="stable")
        found = self.link.ask("take", self.number, chosen[order])
        if found is None:
            return np.empty((0, self.shape[1]), self.dtype)
        return linalg.stack(found)[np.argsort(order, kind="stable")]

    def state(self, **vectors: Any) -> RowState:
        """Vectors beside the rows: see `Rows.state`.

        A `RowVector` is copied where it is; a range stands for the numbers of all rows.
        """
        handles, m, link = {}, self.shape[0], self.link
        for name, value in vectors.items():
            if isinstance(value, RowVector):
                source = value.state.handle(value.name)
                handle = handles[name] = link.handle(source.dtype)
                link.later("copy", handle.number, source.number)
                continue
            if isinstance(value, range):  # the numbers of the rows
                handle = handles[name] = link.handle(np.int64)
                link.later("count", self.number, handle.number)
                continue
            given = row_vector(name, value, m, copy=False)
            handle = handles[name] = link.handle(given.dtype)
            if given.strides[0] == 0:
                link.later("fill", self.number, handle.number, np.array(given[0]))
            else:
                link.later("cut", self.number, handle.number, np.array(given))
        return DaskState(handles, self)

    def __reduce__(self) -> NoReturn:
        raise TypeError("rows on a cluster cannot be pickled or copied")

    def __repr__(self) -> str:
        m, n = self.shape
        return f"<rows on a cluster: {m:,} x {n:,} of {self.dtype}>"


class LoadedRows(DaskRows):
    """The rows of a collection, loaded into lanes.

    Parameters
    ----------
    client : distributed.Client
    lanes : sequence of partitions of each lane, delayed
    weights : sequence of float, of each lane
    read : Reader
    names : names of the columns, or None

    Attributes
    ----------
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
        try:
            found = timed(self.crew.load)
            self.facts: list[Facts] = [found[k] for k in sorted(found)]
            like, sizes = _alike(self.facts)
            super().__init__(Link(self.crew), sizes, like, names=names)
        except BaseException:
            self.close()
            raise

    def unpack(self, **dtypes: Any) -> RowState:
        """The vectors that came with the rows, by name and dtype."""
        handles = {name: self.link.handle(dtype) for name, dtype in dtypes.items()}
        self.link.later("unpack", {k: h.number for k, h in handles.items()})
        return DaskState(handles, self)

    def close(self) -> None:
        """Let the workers forget the rows."""
        self.crew.close()

    def __enter__(self) -> "LoadedRows":
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

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
    _is_near = False

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
        self._rows.link.later("write", self._rows.number, number, value)

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
        rows = self._rows
        return rows.link.ask("sweep", rows.number, f, self.numbers(), broadcast, False)

    def update(self, f: Callable[..., None], *broadcast: Any) -> None:
        """Run f on every block: see `RowState.update`. The next request takes it."""
        rows = self._rows
        rows.link.later("sweep", rows.number, f, self.numbers(), broadcast, False)

    def beside(self, **vectors: Any) -> RowState:
        """New vectors beside these."""
        return self._rows.state(**vectors)

    def put(self, name: str, source: RowVector, places: RowVector) -> None:
        """Write a vector of kept rows, by the numbers that these rows have here."""
        numbers = [v.state.handle(v.name).number for v in (source, places)]
        rows = self._rows
        rows.link.ask("spread", rows.number, self.handle(name).number, *numbers)

    def gather(self, name: str) -> NDArray[Any]:
        """A whole vector, at the client."""
        only = DaskState({name: self.handle(name)}, self._rows)
        found: NDArray[Any] = np.concatenate(only.sweep(_whole, name))
        found.flags.writeable = False
        return found

    def pick(self, name: str, index: Index) -> NDArray[Any]:
        """Some entries of a vector, at the client."""
        order = np.argsort(index, kind="stable")
        handle = self.handle(name)
        rows = self._rows
        found = rows.link.ask("pick", rows.number, handle.number, index[order])
        if found is None:
            return np.empty(0, handle.dtype)
        whole: NDArray[Any] = np.concatenate(found)
        return whole[np.argsort(order, kind="stable")]


def _all_rows(block: Any, part: None) -> Kept:
    return Kept([block], {})


def _whole(part: RowState, name: str) -> list[NDArray[Any]]:
    return [np.array(getattr(part, name))]


def _numbers(state: RowState | None) -> dict[str, int] | None:
    """The numbers of the vectors of a state."""
    if state is None:
        return None
    assert isinstance(state, DaskState)
    return state.numbers()


def _alike(facts: Sequence[Facts]) -> tuple[tuple[int, Any, float], list[int]]:
    """Columns, dtype and density of all lanes, and their rows.

    Refuses different columns.
    """
    place = 0
    columns: dict[int, int] = {}  # and a partition of each
    for one in facts:
        if one.columns is not None:
            columns.setdefault(one.columns, place + int(np.argmax(one.sizes)))
        place += len(one.sizes)
    if not columns and any(one.left_out for one in facts):  # scikit-learn's words
        raise ValueError("Invalid input - all samples have zero or negative weights.")
    if not columns:
        raise ValueError("X must have at least one row. All partitions are empty.")
    if len(columns) > 1:
        (n, first), (other, second) = list(columns.items())[:2]
        raise ValueError(
            "X must have the same columns in all partitions. Got "
            f"{n} in partition {first} and {other} in partition {second} instead."
        )
    n = next(iter(columns))
    sizes = [sum(one.sizes) for one in facts]
    dtype = np.result_type(*(one.dtype for one in facts if one.columns is not None))
    density = sum(one.stored for one in facts) / (sum(sizes) * n)
    return (n, dtype, density), sizes
