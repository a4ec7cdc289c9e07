"""A lane: a range of the rows of a collection with its row vectors, on a worker.

A lane does what the client's log says, entry by entry, and counts: the same entries
make the same bits on any worker, so that a lost lane is loaded again and replayed.
"""

import io
import pickle
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from widemargin.arrays import Index, Mask
from widemargin.data.distributed.sums import Raised
from widemargin.data.kept import Kept, KeptThere, exchanged
from widemargin.data.matrix import as_matrix
from widemargin.data.memory import MemoryRows
from widemargin.data.state import RowState
from widemargin.numerics import linalg

# Numbers for rows that an entry keeps and their vectors, and how often it may do so.
NAMES, MOST_KEPT = 32, 4096
# Rows that a copy cannot choose again are copied where they take at most this share of
# the bytes of the lane's own: another worker has room for them, a quarter more then.
COPIED_SHARE = 0.25


@dataclass(frozen=True)
class Entry:
    """One entry of the log.

    Attributes
    ----------
    epoch : int, its number, from 1
    steps : list of (method of `Lane`, arguments); the value of the last one counts
    errstate : how NumPy treats floating-point errors
    """

    epoch: int
    steps: list[tuple[str, tuple[Any, ...]]]
    errstate: dict[str, Any]


class Constants(dict[str, Any]):
    """What many entries refer to and is sent once, by the hash of its content."""

    def loads(self, data: bytes) -> Any:
        """An entry, or what else `dumps` wrote, from its bytes."""
        reader = pickle.Unpickler(io.BytesIO(data))
        reader.persistent_load = self.__getitem__  # type: ignore[method-assign]
        return reader.load()

    def dumps(self, value: Any) -> bytes:
        """The bytes of a value, in which constants are names."""
        names = {id(constant): name for name, constant in self.items()}
        return dumped(value, lambda x: names.get(id(x)))


def dumped(value: Any, name_of: Callable[[Any], str | None]) -> bytes:
    """The bytes of a value, with names in the place of what has one.

    Kernels may be functions without a module that workers could import.
    """
    from cloudpickle import Pickler  # comes with Dask

    buffer = io.BytesIO()
    writer = Pickler(buffer, protocol=5)
    writer.persistent_id = name_of
    writer.dump(value)
    return buffer.getvalue()


@dataclass(frozen=True)
class Origin:
    """A sweep over the loaded rows alone, and the rows that it keeps, by number."""

    kept: tuple[int, ...]
    f: Callable[..., Any]
    broadcast: tuple[Any, ...]


@dataclass(frozen=True)
class Choice:
    """Rows that were chosen among others.

    Attributes
    ----------
    rows : int, the number of the others
    flags : uint8 (rows / 8,), a bit for each of them
    """

    rows: int
    flags: NDArray[np.uint8]

    @classmethod
    def of(cls, rows: int, chosen: Mask) -> "Choice":
        """The rows where a vector says so."""
        return cls(rows, np.packbits(chosen))

    def mask(self, m: int) -> Mask:
        """Whether each row is chosen: (m,)."""
        return np.unpackbits(self.flags, count=m).view(np.bool_)

    def made(self, rows: MemoryRows) -> MemoryRows:
        """These rows: no copy where they are all."""
        mask = self.mask(rows.shape[0])
        return rows if mask.all() else MemoryRows(as_matrix(rows._X[mask]), n_jobs=1)


@dataclass(frozen=True)
class Copy:
    """What a lane holds beside the rows that are loaded: see the fields of `Lane`."""

    applied: int
    value: Any
    loaded: Mapping[str, NDArray[Any]]
    vectors: dict[int, NDArray[Any]]
    starts: dict[int, int]
    origins: list[Origin]
    choices: dict[int, Choice]
    matrices: dict[int, Any]


@dataclass
class Lane:
    """Rows in memory with vectors beside them, each known by a number.

    Attributes
    ----------
    number : int, its place among the lanes
    rows : Rows, or None where it has none
    loaded : dict of vectors that came with the rows
    applied : int, the epoch of the last entry
    """

    number: int
    rows: MemoryRows | None
    loaded: Mapping[str, NDArray[Any]]
    applied: int = 0
    _value: Any = None
    _kept: int = 0
    _vectors: dict[int, NDArray[Any]] = field(default_factory=dict)
    _rows: dict[int, MemoryRows] = field(default_factory=dict)
    _starts: dict[int, int] = field(default_factory=dict)
    _origins: list[Origin] = field(default_factory=list)
    _choices: dict[int, Choice] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def __post_init__(self) -> None:
        if self.rows is not None:
            self._rows[0] = self.rows

    def apply(self, entry: Entry) -> Any:
        """The value of an entry: kept where it was applied before."""
        with self._lock:
            if entry.epoch == self.applied:
                return self._value
            if entry.epoch != self.applied + 1:
                raise LookupError(f"lane {self.number} is at {self.applied}")
            value, self._kept = None, 0
            with np.errstate(**entry.errstate):
                try:
                    for name, arguments in entry.steps:
                        value = getattr(self, name)(*arguments)
                except Exception as error:  # noqa: BLE001  (raised by the client)
                    value = Raised(error)
            self.applied, self._value = entry.epoch, value
            return value

    # -- copies ------------------------------------------------------------------------

    def saved(self) -> Copy | None:
        """What an equal lane goes on from; None where kept rows make it too large."""
        with self._lock:
            again = {0}.union(*(one.kept for one in self._origins))
            there = again & self._rows.keys()
            choices = {k: one for k, one in self._choices.items() if one.rows in there}
            matrices = {
                number: rows.in_memory()
                for number, rows in self._rows.items()
                if number not in again and number not in choices
            }
            size = sum(map(linalg.n_bytes, matrices.values()))
            if self.rows is None or size > COPIED_SHARE * linalg.n_bytes(self.rows._X):
                return None
            return Copy(
                self.applied,
                self._value,
                self.loaded,
                self._vectors,
                self._starts,
                self._origins,
                choices,
                matrices,
            )

    def go_on_from(self, copy: Copy) -> None:
        """Hold what a copy has, in memory of its own: see `reading.matrix_of`."""
        with self._lock:
            self._vectors = {k: np.array(v) for k, v in copy.vectors.items()}
            self._starts, self.loaded = copy.starts, copy.loaded
            for number, X in copy.matrices.items():
                self._rows[number] = MemoryRows(as_matrix(X.copy()), n_jobs=1)
            for origin in copy.origins:
                self._sweep_again(origin)
            for number, choice in copy.choices.items():
                self._rows[number] = choice.made(self._rows[choice.rows])
            self._origins, self._choices = copy.origins, copy.choices
            self.applied, self._value = copy.applied, copy.value

    def _sweep_again(self, origin: Origin) -> None:
        """Make rows that a sweep has kept once more."""
        numbers = iter(origin.kept)
        value = self._rows[0].sweep(origin.f, None, *origin.broadcast)
        exchanged(value, Kept, lambda kept: self._hold(kept, next(numbers)))

    # -- steps -------------------------------------------------------------------------

    def place(self, rows: int, starts: list[int]) -> None:
        """Learn where its rows begin among all rows."""
        self._starts[rows] = int(starts[self.number])

    def unpack(self, numbers: dict[str, int]) -> None:
        """Number the vectors that came with the rows."""
        for name, number in numbers.items():
            if name in self.loaded:
                self._vectors[number] = self.loaded[name]
        self.loaded = {}

    def fill(self, rows: int, number: int, value: NDArray[Any]) -> None:
        """Make a vector of one value."""
        if (base := self._rows.get(rows)) is not None:
            shape = (base.shape[0], *value.shape)
            zero = not value.any()
            made = np.zeros(shape, value.dtype) if zero else np.full(shape, value)
            self._vectors[number] = made

    def count(self, rows: int, number: int) -> None:
        """Make a vector of the numbers of the rows."""
        if (base := self._rows.get(rows)) is not None:
            start = self._starts.get(rows, 0)
            self._vectors[number] = np.arange(start, start + base.shape[0])

    def cut(self, rows: int, number: int, whole: NDArray[Any]) -> None:
        """Take its part of a vector of all rows."""
        if (base := self._rows.get(rows)) is not None:
            start = self._starts[rows]
            self._vectors[number] = whole[start : start + base.shape[0]].copy()

    def copy(self, number: int, source: int) -> None:
        """Copy a vector."""
        if source in self._vectors:
            self._vectors[number] = self._vectors[source].copy()

    def write(self, rows: int, number: int, value: Any) -> None:
        """Write a value, or its part of the values of all rows, into a vector."""
        if number in self._vectors:
            vector = self._vectors[number]
            if np.ndim(value):
                start = self._starts[rows]
                value = value[start : start + len(vector)]
            vector[...] = value

    def forget(self, numbers: list[int]) -> None:
        """Drop vectors, or rows: no two have the same number."""
        for number in numbers:
            self._vectors.pop(number, None)
            self._rows.pop(number, None)
            self._starts.pop(number, None)
            self._choices.pop(number, None)
        there = self._rows.keys()
        self._origins = [one for one in self._origins if not there.isdisjoint(one.kept)]

    def sweep(
        self,
        rows: int,
        f: Callable[..., Any],
        numbers: dict[str, int] | None,
        broadcast: tuple[Any, ...],
        reads: bool,
    ) -> Any:
        """The value of a sweep over rows, or over row vectors alone."""
        if (base := self._rows.get(rows)) is None:
            return None
        state = None if numbers is None else self._state(base, numbers)
        if reads:
            value, first = base.sweep(f, state, *broadcast), self._kept
            value = exchanged(value, Kept, self._stay)
            made = tuple(self._number(k) for k in range(first, self._kept))
            if made and rows == 0 and state is None:
                self._origins.append(Origin(made, f, broadcast))
            return value
        assert state is not None
        return state.sweep(f, *broadcast)

    def _stay(self, kept: Kept) -> KeptThere:
        """Make rows of what a sweep has picked out.

        They and their vectors are called by the number of the entry.
        """
        return self._hold(kept, self._next())

    def keep(
        self,
        rows: int,
        choose: Callable[..., Any],
        numbers: dict[str, int],
        names: Sequence[str],
        broadcast: tuple[Any, ...],
    ) -> KeptThere | None:
        """Rows that are chosen among others, with copies of their vectors."""
        if (base := self._rows.get(rows)) is None:
            return None
        state, number = self._state(base, numbers), self._next()
        chosen = np.concatenate(state.sweep(_chosen, choose, *broadcast))
        if not chosen.any():
            return _nothing(number)
        choice = Choice.of(rows, chosen)
        made = choice.made(base)
        first = self._choices.get(rows)
        if first is not None and first.rows in self._rows:  # ``rows`` may go before
            whole = first.mask(self._rows[first.rows].shape[0])
            whole[whole] = chosen
            choice = Choice.of(first.rows, whole)
        self._choices[number] = choice
        vectors = {name: getattr(state, name)[chosen] for name in names}
        return self._numbered(number, made, vectors)

    def _next(self) -> int:
        """The number of the next rows that the current entry keeps."""
        self._kept += 1
        return self._number(self._kept - 1)

    def _number(self, k: int) -> int:
        """The number of the k-th rows that the current entry keeps."""
        return -NAMES * (MOST_KEPT * (self.applied + 1) + k)

    def _hold(self, kept: Kept, number: int) -> KeptThere:
        """Hold rows and their vectors, called by a number."""
        blocks = [block for block in kept.blocks if block.shape[0]]
        if not blocks:
            return _nothing(number)
        X = as_matrix(blocks[0] if len(blocks) == 1 else linalg.stack(blocks))
        vectors = {name: kept.vector(name) for name in kept.vectors}
        return self._numbered(number, MemoryRows(X, n_jobs=1), vectors)

    def _numbered(
        self, number: int, rows: MemoryRows, vectors: dict[str, NDArray[Any]]
    ) -> KeptThere:
        """Rows that are called by a number, and their vectors by those before it."""
        self._rows[number] = rows
        for i, vector in enumerate(vectors.values(), 1):
            self._vectors[number - i] = vector
        m, n = rows.shape
        return KeptThere(
            number,
            {self.number: m},
            round(rows.density * m * n),
            n,
            rows.dtype,
            {name: vector.dtype for name, vector in vectors.items()},
        )

    def spread(self, rows: int, target: int, source: int, places: int) -> None:
        """Write a vector of kept rows to where they come from, by their numbers."""
        if source in self._vectors:
            index = self._vectors[places].astype(np.intp) - self._starts[rows]
            self._vectors[target][index] = self._vectors[source]

    def take(self, rows: int, index: Index) -> Any:
        """The rows of a sorted index that are its own, in a list."""
        own = self._own(rows, index)
        return [self._rows[rows].take(own)] if own.size else None

    def _own(self, rows: int, index: Index) -> Index:
        """Its own rows of a sorted index, as it counts them."""
        if (base := self._rows.get(rows)) is None:
            return index[:0]
        start = self._starts[rows]
        low, high = np.searchsorted(index, [start, start + base.shape[0]])
        return index[low:high] - start

    def pick(self, rows: int, number: int, index: Index) -> Any:
        """The entries of a vector at a sorted index, in a list."""
        own = self._own(rows, index)
        return [self._vectors[number][own]] if own.size else None

    def _state(self, base: MemoryRows, numbers: dict[str, int]) -> RowState:
        vectors = {name: self._vectors[number] for name, number in numbers.items()}
        return RowState(vectors, base._blocks)


def _chosen(part: RowState, choose: Callable[..., Any], *broadcast: Any) -> list[Mask]:
    return [np.asarray(choose(part, *broadcast), bool)]


def _nothing(number: int) -> KeptThere:
    """No rows of this lane."""
    return KeptThere(number, {}, 0, 0, None, {})
