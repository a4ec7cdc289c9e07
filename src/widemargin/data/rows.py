"""Rows: one way to read data, whatever holds it.

An algorithm over rows is a function of one block, run on every block by `Rows.sweep`;
one sweep is one read of the data. Vectors of length m stay beside their rows in a
`RowState`, so a sweep ships only what is small: n-vectors, n x n matrices, numbers.
A storage writes `sweep` and `take` (and `state`, where its vectors live elsewhere); all
products and views are derived here, once.
"""

import contextvars
import functools
import os
import threading
import uuid
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np
import threadpoolctl
from numpy.typing import ArrayLike, NDArray

from widemargin import linalg
from widemargin.parameters import Checker, is_integer

Vector = NDArray[np.float64]

# A block and its state should stay in cache while a sweep works on it, and hold enough
# rows to pay for the interpreter (benchmarks/sweeps.py).
BLOCK_BYTES = 4 << 20
BLOCK_ROWS = 2048
# A weighted Gram matrix adds n^2 numbers a block: blocks grow with n^2 up to this.
LARGE_BLOCK_BYTES = 64 << 20
# Blocks are added up in this many groups (fewer when n^2 is large), whatever the number
# of threads: sums do not depend on it.
LANES = 8
LANE_BYTES = 512 << 20
# `RowState.threshold` counts keys in so many bins a sweep (a power of two), and sorts
# them where no more than so many are left.
THRESHOLD_BINS = 4096
SORTED_KEYS = 4096


class FeatureMap(Protocol):
    """A map of rows to new features, applied block by block."""

    @property
    def rank(self) -> int:
        """Number of new features."""

    def map(self, block: Any, /) -> Any:
        """New features (k, rank) of a dense or CSR block (k, n)."""


class Moments(NamedTuple):
    """Mean and standard deviation of every column, (n,) each."""

    mean: Vector
    std: Vector


@dataclass(frozen=True)
class Least:
    """A key with what belongs to it; adding two keeps the one with the smaller key."""

    key: float
    value: Any = None

    def __add__(self, other: "Least") -> "Least":
        return other if other.key < self.key else self


class RowState:
    """Named vectors of length m that live beside the rows.

    Made by `Rows.state`; a sweep hands each block its own slices, which it may update
    in place. ``state.alpha`` reads a whole vector: the vector itself where it lies in
    memory as it is, else a copy, which cannot be written to. Assigning to
    ``state.alpha`` writes into the vector. A storage with vectors elsewhere overrides
    reading, assigning, `join`, `prefixed` and `sweep`.
    """

    __slots__ = ("_vectors", "_run")  # in the order of __init__
    _vectors: dict[str, NDArray[Any]]
    _run: "_Run"

    def __init__(self, vectors: dict[str, NDArray[Any]], run: "_Run") -> None:
        object.__setattr__(self, "_vectors", vectors)
        object.__setattr__(self, "_run", run)

    def __getattr__(self, name: str) -> NDArray[Any]:
        vectors = self._vectors if name not in self.__slots__ else {}
        try:
            return vectors[name]
        except KeyError:
            raise AttributeError(f"no row vector named {name!r}") from None

    def __setattr__(self, name: str, value: Any) -> None:
        vector = getattr(self, name)
        if value is not vector:  # state.alpha += step has written already
            vector[...] = value

    def __reduce__(self) -> Any:  # copy and pickle would assign to the slots
        return type(self), tuple(getattr(self, name) for name in self.__slots__)

    def join(self, other: "RowState") -> "RowState":
        """The vectors of both, by reference; those of ``other`` where names meet."""
        return RowState({**self._vectors, **other._vectors}, self._run)

    def prefixed(self, prefix: str) -> "RowState":
        """The same vectors, by reference, with ``prefix`` before their names."""
        vectors = {prefix + name: vector for name, vector in self._vectors.items()}
        return RowState(vectors, self._run)

    def part(self, index: slice | NDArray[np.intp]) -> "RowState":
        """The rows ``index`` of every vector: views for a slice, else copies."""
        parts = {name: vector[index] for name, vector in self._vectors.items()}
        return RowState(parts, self._run)

    def store(self, index: NDArray[np.intp], part: "RowState") -> None:
        """Write the vectors of ``part`` back to the rows ``index``."""
        for name, vector in part._vectors.items():
            self._vectors[name][index] = vector

    def sweep(self, f: Callable[..., Any], *broadcast: Any) -> Any:
        """Run f(slices, *broadcast) on every block and add the values up.

        Like `Rows.sweep` without the data: nothing of X is read.
        """
        return self._run(lambda rows: f(self.part(rows), *broadcast))

    def threshold(self, f: Callable[..., Any], target: float, *broadcast: Any) -> float:
        """Smallest key t such that the rows with key <= t weigh at least ``target``.

        Parameters
        ----------
        f : callable
            f(slices, *broadcast) returns the keys (k,) of its rows, floats in any order
            of magnitude and infinities too, and their weights >= 0, (k,) or a number.
        target : float
        *broadcast
            What f needs.

        Returns
        -------
        float, one of the keys: the smallest where ``target`` <= 0, the largest where
        all rows together weigh less.

        Raises
        ------
        FloatingPointError if a key or a weight is NaN.

        Notes
        -----
        Exact, but for the rounding of sums of weights. Keys are cut by their bits, in
        which all floats are as dense: at most six sweeps of the state narrow any keys
        down to few, which are sorted.
        """
        low, high, count, weight = self.sweep(_key_range, f, *broadcast)
        low, high = low.key, -high.key
        if high > _order(np.inf) or low < _order(-np.inf) or np.isnan(weight):
            raise FloatingPointError("a key or a weight is NaN")
        if weight < target:
            return _key_at(high)
        while low < high and count > SORTED_KEYS:
            bins = THRESHOLD_BINS
            shift = max(0, (high - low).bit_length() - bins.bit_length() + 1)
            counts, weights = self.sweep(_histogram, low, shift, bins, f, *broadcast)
            bin, target = _reach(weights, target)
            low, count = low + (bin << shift), counts[bin]
            high = min(high, low + (1 << shift) - 1)
        if low < high:
            found = self.sweep(_keys_between, low, high, f, *broadcast)
            orders, weights = (
                np.concatenate(parts) for parts in zip(*found, strict=True)
            )
            sort = np.argsort(orders, kind="stable")
            low = orders[sort][_reach(weights[sort], target)[0]]
        return _key_at(low)


def _order(keys: Any) -> Any:
    """Integers in the order of float64 keys, and as dense; NaN is at the ends."""
    bits = (np.asarray(keys, dtype=np.float64) + 0.0).view(np.int64)  # -0.0 + 0.0 = 0.0
    return bits ^ ((bits >> 63) & np.int64(np.iinfo(np.int64).max))


def _key_at(order: int) -> float:
    """The key with this order."""
    bits = np.int64(order)
    return float(
        (bits ^ ((bits >> 63) & np.int64(np.iinfo(np.int64).max))).view(np.float64)
    )


def _orders(f: Callable[..., Any], part: RowState, *broadcast: Any) -> tuple[Any, Any]:
    """Orders of the keys, and weights, (k,) each."""
    keys, weights = f(part, *broadcast)
    orders = _order(keys)
    return orders, np.broadcast_to(np.asarray(weights, dtype=np.float64), orders.shape)


def _key_range(part: RowState, f: Callable[..., Any], *broadcast: Any) -> Any:
    orders, weights = _orders(f, part, *broadcast)
    ends = Least(int(orders.min())), Least(-int(orders.max()))
    return *ends, len(orders), float(weights.sum())


def _histogram(
    part: RowState,
    low: int,
    shift: int,
    n_bins: int,
    f: Callable[..., Any],
    *broadcast: Any,
) -> Any:
    """Count and weight of the orders in each low + [j, j + 1) 2^shift."""
    orders, weights = _orders(f, part, *broadcast)
    # Modulo 2^64: orders below ``low`` become large.
    bins = (orders - np.int64(low)).view(np.uint64) >> np.uint64(shift)
    inside = bins < n_bins
    bins = bins[inside].astype(np.intp)
    counts = np.bincount(bins, minlength=n_bins)
    return counts, np.bincount(bins, weights[inside], n_bins)


def _keys_between(
    part: RowState, low: int, high: int, f: Callable[..., Any], *broadcast: Any
) -> list[Any]:
    orders, weights = _orders(f, part, *broadcast)
    inside = (orders >= low) & (orders <= high)
    return [(orders[inside], weights[inside])]


def _reach(weights: Vector, target: float) -> tuple[int, float]:
    """Where the sum of weights reaches the target, and what is missing before there."""
    sums = np.cumsum(weights)
    # What was enough when all weights were summed up may miss by rounding.
    first = int(np.argmax(sums >= min(target, sums[-1])))
    return first, target - (sums[first - 1] if first else 0.0)


class _Run:
    """Runs a task on every block: a fixed cut, a fixed order of sums, any threads."""

    def __init__(self, m: int, block_rows: int, lanes: int, n_jobs: int | None) -> None:
        blocks = [slice(a, min(a + block_rows, m)) for a in range(0, m, block_rows)]
        size = -(-len(blocks) // lanes)
        self._lanes = [blocks[i : i + size] for i in range(0, len(blocks), size)]
        self._threads = min(n_threads(n_jobs), len(self._lanes))
        self._pools: dict[int, ThreadPoolExecutor] = {}

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_pools": {}}

    @property
    def _pool(self) -> ThreadPoolExecutor:
        """The threads of this process: a forked one has none of its parent's."""
        if os.getpid() not in self._pools:
            pool = ThreadPoolExecutor(self._threads, thread_name_prefix="widemargin")
            self._pools.setdefault(os.getpid(), pool)
        return self._pools[os.getpid()]

    def __call__(self, task: Callable[[slice], Any]) -> Any:
        cancelled = threading.Event()

        def lane(blocks: list[slice]) -> Any:
            try:
                return total(task(rows) for rows in blocks if not cancelled.is_set())
            except BaseException:
                cancelled.set()
                raise

        with _ONE_BLAS_THREAD:
            if self._threads == 1:
                return total(map(lane, self._lanes))
            work: list[Future[Any]] = []
            try:
                # Each lane in a copy of this context: numpy.errstate holds there too.
                for blocks in self._lanes:
                    run = contextvars.copy_context().run
                    work.append(self._pool.submit(run, lane, blocks))
                return total(future.result() for future in work)
            except BaseException:
                cancelled.set()  # Ctrl-C or an error: the others stop after a block
                wait(work)
                raise


def total(values: Iterable[Any]) -> Any:
    """Sum of arrays, numbers, `Least`, or tuples of them, in the order given."""
    result, owned = None, False
    for value in values:
        if result is None:
            result = value
        elif value is not None:
            result, owned = _add(result, value, owned), True
    return result


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


@functools.cache
def _blas() -> threadpoolctl.ThreadpoolController:
    """The BLAS libraries of NumPy and SciPy, found once: it takes milliseconds."""
    return threadpoolctl.ThreadpoolController().select(user_api="blas")


class _OneBlasThread:
    """Keeps BLAS to one thread while any sweep runs: the threads are ours.

    The number is global to the process: the first sweep in sets it, the last one out
    restores it.
    """

    def __init__(self) -> None:
        self._lock, self._inside = threading.Lock(), 0
        self._limit: Any = None
        self._threads = 1

    def __enter__(self) -> None:
        with self._lock:
            if self._inside == 0:
                self._threads = _blas_threads()
                _release_blas()
                self._limit = _blas().limit(limits=1)
            self._inside += 1

    def __exit__(self, *error: object) -> None:
        with self._lock:
            self._inside -= 1
            if self._inside == 0:
                _release_blas()
                self._limit.restore_original_limits()
                _release_blas()

    def threads(self) -> int:
        """Threads that BLAS may use outside of sweeps."""
        with self._lock:
            return self._threads if self._inside else _blas_threads()


_ONE_BLAS_THREAD = _OneBlasThread()


def _release_blas() -> None:
    """Let this thread set the number of BLAS threads.

    Since threadpoolctl 3.8 only the first thread that has ever set it may do so again,
    and is ignored silently elsewhere: the last sweep out may run in another thread.
    """
    for library in _blas().lib_controllers:
        if hasattr(library, "clear_controlling_thread"):
            library.clear_controlling_thread(force=True)


def _blas_threads() -> int:
    return max([1, *(int(library.num_threads) for library in _blas().lib_controllers)])


def n_threads(n_jobs: int | None) -> int:
    """Threads a sweep may use: ``n_jobs``, or what BLAS may use (joblib limits it)."""
    return _ONE_BLAS_THREAD.threads() if n_jobs is None or n_jobs < 0 else n_jobs


class Rows(ABC):
    """The rows of a data matrix X (m, n), read by sweeps.

    Attributes
    ----------
    shape : tuple (m, n)
    dtype : numpy dtype of the stored numbers
    density : float, share of the entries that are stored
    sweeps : int, how many times the data was read
    """

    shape: tuple[int, int]
    dtype: np.dtype[Any]
    density: float = 1.0
    sweeps: int = 0
    _moments: Moments | None = None

    @abstractmethod
    def sweep(
        self, f: Callable[..., Any], state: RowState | None = None, *broadcast: Any
    ) -> Any:
        """Read the data once: run f(block, slices, *broadcast) on every block.

        Parameters
        ----------
        f : callable
            Gets a block (dense array, CSR array or a view of one; k rows that act as a
            matrix), the block's slices of ``state`` (None without one) and
            ``broadcast``. It may update its slices in place. Blocks run in any order
            and in several threads. A module-level function can also travel to another
            process. What it raises ends the sweep after the blocks that other threads
            are at; updates of ``state`` so far stay.
        state : RowState or None
            Vectors beside the rows, made by `state`.
        *broadcast
            What every block needs: small arrays and numbers.

        Returns
        -------
        The values of f added up in a fixed order: numbers, arrays, `Least`, lists
        (joined, in the order of the rows), or tuples of these. None, which f may return
        for some blocks, counts as nothing.
        """

    @abstractmethod
    def take(self, index: ArrayLike) -> linalg.Matrix:
        """Rows ``index`` (k integers in [0, m)) in memory: (k, n), dense or CSR."""

    @abstractmethod
    def state(self, **vectors: Any) -> RowState:
        """Vectors beside the rows: copies of arrays (m, ...); a number fills (m,).

        Raises
        ------
        ValueError if one has not length m or holds no real numbers, or a name is no
        identifier without a leading underscore, or one of `RowState`'s own.
        """

    def matvec(self, W: ArrayLike) -> Vector:
        """Product X W for W (n,) or (n, k): (m,) or (m, k) in memory. One sweep."""
        W = _real("W", W, self.shape[1], 2)
        return np.concatenate(self.sweep(_matvec, None, W))

    def rmatvec(self, V: ArrayLike) -> Vector:
        """Product X' V for V (m,) or (m, k): (n,) or (n, k). One sweep."""
        V = _real("V", V, self.shape[0], 2)
        return np.asarray(self.sweep(_rmatvec, self.state(V=V)))

    def gram(self, d: ArrayLike, active: ArrayLike | None = None) -> Vector:
        """Weighted Gram matrix X' diag(d) X over the active rows.

        Parameters
        ----------
        d : array (m,), nonnegative
        active : bool array (m,) or None. Blocks with no active row are not read.

        Returns
        -------
        ndarray (n, n), float64 whatever the dtype of X: it is factorised next.

        Raises
        ------
        ValueError if d or active has not length m, or d is negative or NaN somewhere.

        Notes
        -----
        One sweep; m_active n^2 flops; 8 n^2 bytes for each of at most 8 partial sums.
        """
        m, n = self.shape
        d = _real("d", d, m)
        if not np.all(d >= 0):
            raise ValueError(f"d must be nonnegative. Got {d[~(d >= 0)][0]} instead.")
        if active is None:
            return np.asarray(self.sweep(_gram, self.state(d=d)))
        state = self.state(d=d, active=_mask("active", active, m))
        result = self.sweep(_active_gram, state)
        return np.zeros((n, n)) if result is None else np.asarray(result)

    def signed(self, y: ArrayLike, intercept: bool = True) -> "SignedRows":
        """View Y [X 1] (m, n + 1), or Y X without intercept; y holds +1 and -1."""
        y = _real("y", y, self.shape[0])
        if not np.all(np.abs(y) == 1.0):
            raise ValueError(
                f"y must hold +1 and -1 only. Got {y[np.abs(y) != 1.0][0]} instead."
            )
        return SignedRows(self, y.copy(), intercept)

    def mapped(self, feature_map: FeatureMap) -> "Rows":
        """View of the rows after a feature map: (m, rank), one block at a time."""
        return _Mapped(self, feature_map)

    def select(self, mask: ArrayLike) -> "Rows":
        """View of the rows where the bool array mask (m,) holds."""
        mask = _mask("mask", mask, self.shape[0])
        if not mask.any():
            raise ValueError("mask must select at least one row. Got none instead.")
        return _Selected(self, mask.copy())

    @property
    def moments(self) -> Moments:
        """Mean and standard deviation of every column. One sweep, the first time.

        Raises
        ------
        ValueError naming the first row and column that hold NaN or an infinity, as
        `refuse_nonfinite` does; or a column whose squares overflow.
        """
        # Not functools.cached_property: until Python 3.12 all instances share one lock,
        # and sweeps of several threads may wait for each other (multiclass.py).
        if self._moments is None:
            self._moments = self._read_moments()
        return self._moments

    def _read_moments(self) -> Moments:
        sums, squares = self.sweep(_column_sums)
        if not np.all(np.isfinite(sums)):
            self.refuse_nonfinite()
        if not np.all(np.isfinite(squares)):
            column = int(np.argmin(np.isfinite(squares)))
            raise ValueError(
                "X must hold numbers whose squares are finite. "
                f"Column {column} is too large."
            )
        mean = sums / self.shape[0]
        variance = squares / self.shape[0] - mean * mean
        return Moments(mean, np.sqrt(np.maximum(variance, 0.0)))

    def refuse_nonfinite(self) -> None:
        """Raise ValueError naming the first NaN or infinity, if there is one.

        The row is counted in the data below all views: there the user will look for it.
        """
        start = 0
        for length, found in self.sweep(_first_nonfinite):
            if found is not None:
                row, column, value = found
                sign = "-" if value < 0 else ""
                raise ValueError(
                    f"{self._name} must hold finite numbers only (no NaN, no inf). "
                    f"Got {'NaN' if np.isnan(value) else sign + 'infinity'} at "
                    f"row {self._origin(start + row)}, column {column} instead."
                )
            start += length

    _name: str = "X"

    def _origin(self, row: int) -> int:
        """The row of the data below all views that is ``row`` here."""
        return row


def _real(name: str, value: ArrayLike, length: int, most_ndim: int = 1) -> Vector:
    """An argument as float64 vectors of this length, copied only when it must be."""
    array = np.asarray(value)
    if array.dtype.kind not in "fiub":
        raise ValueError(
            f"{name} must hold real numbers. Got dtype {array.dtype} instead."
        )
    _check_shape(name, array, length, most_ndim)
    return array.astype(np.float64, copy=False)


def _mask(name: str, value: ArrayLike, length: int) -> NDArray[np.bool_]:
    """An argument as bool vector of this length."""
    array = np.asarray(value)
    if array.dtype != np.bool_:
        raise ValueError(f"{name} must hold bools. Got dtype {array.dtype} instead.")
    _check_shape(name, array, length, 1)
    return array


def _check_shape(
    name: str, array: NDArray[Any], length: int, most_ndim: int | None = None
) -> None:
    if array.ndim == 0 or array.shape[0] != length or array.ndim > (most_ndim or 32):
        raise ValueError(
            f"{name} must have length {length}. Got shape {array.shape} instead."
        )


def row_index(index: ArrayLike, m: int) -> NDArray[np.intp]:
    """The argument of `Rows.take`: integers in [0, m), (k,)."""
    array = np.asarray(index)
    array = array.astype(np.intp) if array.size == 0 else array
    if array.ndim != 1 or array.dtype.kind not in "iu":
        raise ValueError(
            "index must be a vector of integers. "
            f"Got dtype {array.dtype} in {array.ndim} dimension(s) instead."
        )
    outside = array[(array < 0) | (array >= m)]
    if outside.size:
        raise ValueError(
            f"index must be in the range [0, {m}). Got {outside[0]} instead."
        )
    return array.astype(np.intp, copy=False)


def _matvec(block: Any, part: None, W: Vector) -> list[Vector]:
    return [linalg.matvec(block, W)]


def _rmatvec(block: Any, part: RowState) -> Vector:
    return linalg.rmatvec(block, part.V)


def _gram(block: Any, part: RowState) -> Vector:
    return linalg.gram(block, part.d)


def _active_gram(block: Any, part: RowState) -> Vector | None:
    index = np.flatnonzero(part.active)
    if index.size == 0:
        return None
    if index.size == block.shape[0]:
        return linalg.gram(block, part.d)
    return linalg.gram(block[index], part.d[index])


def _column_sums(block: Any, part: None) -> tuple[Vector, Vector]:
    return linalg.column_sums(block)


def _first_nonfinite(block: Any, part: None) -> list[Any]:
    """Rows of the block, and row, column and value of its first NaN or infinity."""
    rows, columns, values = linalg.nonfinite(block)
    if rows.size == 0:
        return [(block.shape[0], None)]
    i = np.lexsort((columns, rows))[0]
    return [(block.shape[0], (int(rows[i]), int(columns[i]), float(values[i])))]


class MemoryRows(Rows):
    """Rows of a dense array (also memory-mapped) or CSR array, by reference."""

    def __init__(
        self,
        X: linalg.Matrix,
        n_jobs: int | None = None,
        memory_limit: int | None = None,
    ) -> None:
        self.shape = (int(X.shape[0]), int(X.shape[1]))
        self.dtype = X.dtype
        self.density = linalg.density(X)
        self._X = X
        self._run = _cut(X, n_jobs, memory_limit)

    def sweep(
        self, f: Callable[..., Any], state: RowState | None = None, *broadcast: Any
    ) -> Any:
        """Read the data once: see `Rows.sweep`."""

        def task(rows: slice) -> Any:
            block = linalg.row_slice(self._X, rows.start, rows.stop)
            return f(block, None if state is None else state.part(rows), *broadcast)

        self.sweeps += 1
        return self._run(task)

    def take(self, index: ArrayLike) -> linalg.Matrix:
        """Rows ``index``: see `Rows.take`."""
        rows: linalg.Matrix = self._X[row_index(index, self.shape[0])]
        return rows

    def state(self, **vectors: Any) -> RowState:
        """Vectors beside the rows: see `Rows.state`."""
        m = self.shape[0]
        return RowState(
            {k: _row_vector(k, v, m) for k, v in vectors.items()}, self._run
        )


def _row_vector(name: str, value: Any, m: int) -> NDArray[Any]:
    """A copy of an array, or a vector of a number."""
    if name.startswith("_") or hasattr(RowState, name):
        raise ValueError(f"A row vector must have another name than {name!r}.")
    array = np.asarray(value)
    if array.dtype.kind not in "fiub":
        raise ValueError(
            f"{name} must hold real numbers. Got dtype {array.dtype} instead."
        )
    if array.ndim == 0:
        return np.full(m, float(array))
    _check_shape(name, array, m)
    return array.copy()


def _cut(X: linalg.Matrix, n_jobs: int | None, memory_limit: int | None) -> _Run:
    """The blocks of X: a few MiB each, more when n x n sums have to pay off."""
    m, n = X.shape
    size = min(max(BLOCK_BYTES, 16 * n * n), LARGE_BLOCK_BYTES)
    stored = max(1, linalg.n_bytes(X))
    least = max(1, min(BLOCK_ROWS, LARGE_BLOCK_BYTES * m // stored))
    if memory_limit is not None:
        size, least = min(size, memory_limit // 8), 1
    block_rows = max(least, size * m // stored)
    n_blocks = -(-m // block_rows)
    if n_blocks > LANES:
        n_blocks = -(-n_blocks // LANES) * LANES  # equal lanes
    lanes = min(LANES, max(1, LANE_BYTES // (8 * n * n)))
    return _Run(m, -(-m // n_blocks), lanes, n_jobs)


def as_rows(
    X: ArrayLike, *, n_jobs: int | None = None, memory_limit: int | None = None
) -> Rows:
    """Rows over data in memory or in a memory-mapped file, without copying them.

    Parameters
    ----------
    X : array (m, n), dense in any order, or sparse matrix or array
        float32, float64 and integers are used as they are, read-only and memory-mapped
        arrays too; CSR with int32 or int64 indices, unsorted or duplicate entries and
        explicit zeros likewise. Other sparse formats and other dtypes are converted.
        `Rows` are returned as they are.
    n_jobs : int or None, default=None
        Threads of a sweep. None: as many as BLAS may use at the moment, which is all
        cores, or fewer inside joblib and threadpoolctl.
    memory_limit : int or None, default=None
        Bytes that the temporary arrays of a sweep may use; None: a few MiB a thread.

    Returns
    -------
    Rows

    Raises
    ------
    ValueError if X is not a real matrix with at least one row and one column, or a
    sparse matrix with indices outside of it, or a parameter is out of range.

    Notes
    -----
    Numbers are not read, but checked when they are first used. The indices of a sparse
    matrix are read once, here: nobody looks at them later, so leave them as they are.

    Examples
    --------
    >>> import numpy as np
    >>> from widemargin import as_rows
    >>> rows = as_rows(np.arange(6.0).reshape(3, 2))
    >>> rows.rmatvec([1.0, 1.0, 1.0])
    array([6., 9.])
    >>> rows.sweeps
    1
    """
    check = Checker("as_rows")
    check.count("memory_limit", memory_limit, optional=True)
    if n_jobs is not None and not (is_integer(n_jobs) and n_jobs != 0):
        check.refuse("n_jobs", "a nonzero int or None", n_jobs)
    if isinstance(X, Rows):
        return X
    return MemoryRows(linalg.as_matrix(X), n_jobs, memory_limit)


class _View(Rows):
    """Rows that change the blocks of other rows."""

    def __init__(self, base: Rows) -> None:
        self._base = base
        self.shape = base.shape
        self.dtype = base.dtype
        self.density = base.density
        self._name = base._name

    @property
    def sweeps(self) -> int:  # type: ignore[override]
        return self._base.sweeps

    def state(self, **vectors: Any) -> RowState:
        """Vectors beside the rows: see `Rows.state`."""
        return self._base.state(**vectors)

    def _origin(self, row: int) -> int:
        return self._base._origin(row)


def _own_name(kind: str) -> str:
    """A name for a vector of one view, which no other view's may meet in a sweep."""
    return f"{kind}.{uuid.uuid4().hex}"


class _Mapped(_View):
    """Rows after a feature map."""

    def __init__(self, base: Rows, feature_map: FeatureMap) -> None:
        super().__init__(base)
        self.shape = (base.shape[0], feature_map.rank)
        self._map = feature_map
        self._name = f"{base._name} after its feature map"

    def sweep(
        self, f: Callable[..., Any], state: RowState | None = None, *broadcast: Any
    ) -> Any:
        return self._base.sweep(_mapped_block, state, self._map, f, *broadcast)

    def take(self, index: ArrayLike) -> linalg.Matrix:
        rows: linalg.Matrix = self._map.map(self._base.take(index))
        return rows

    def refuse_nonfinite(self) -> None:
        """Raise ValueError naming the first NaN or infinity, of the data or the map."""
        self._base.refuse_nonfinite()
        super().refuse_nonfinite()


def _mapped_block(
    block: Any,
    part: RowState | None,
    feature_map: FeatureMap,
    f: Callable[..., Any],
    *broadcast: Any,
) -> Any:
    return f(feature_map.map(linalg.formed(block)), part, *broadcast)


class SignedRows(_View):
    """Y [X 1], or Y X: labels and intercept folded in, never formed.

    Attributes
    ----------
    labels : RowState with the vector ``labels``
    """

    def __init__(self, base: Rows, y: Vector, intercept: bool) -> None:
        super().__init__(base)
        self.shape = (base.shape[0], base.shape[1] + intercept)
        self.labels = base.state(labels=y)
        self._y, self._intercept = y, intercept
        self._prefix = _own_name("signs")
        self._signs = self.labels.prefixed(self._prefix)

    def sweep(
        self, f: Callable[..., Any], state: RowState | None = None, *broadcast: Any
    ) -> Any:
        """Read the data once: see `Rows.sweep`."""
        joined = self._signs if state is None else state.join(self._signs)
        return self._base.sweep(
            _signed_block,
            joined,
            self._prefix + "labels",
            self._intercept,
            state is not None,
            f,
            *broadcast,
        )

    def take(self, index: ArrayLike) -> linalg.Matrix:
        """Rows ``index``: see `Rows.take`."""
        index = row_index(index, self.shape[0])
        X = self._base.take(index)
        return linalg.SignedBlock(X, self._y[index], self._intercept).matrix()


def _signed_block(
    block: Any,
    part: RowState,
    signs: str,
    intercept: bool,
    has_state: bool,
    f: Callable[..., Any],
    *broadcast: Any,
) -> Any:
    signed = linalg.SignedBlock(block, getattr(part, signs), intercept)
    return f(signed, part if has_state else None, *broadcast)


class _Selected(_View):
    """The rows where a mask holds."""

    def __init__(self, base: Rows, mask: NDArray[np.bool_]) -> None:
        super().__init__(base)
        self.shape = (int(np.count_nonzero(mask)), base.shape[1])
        self.mask, self.mask_name = mask, _own_name("mask")
        self.mask_state = base.state(**{self.mask_name: mask})

    def sweep(
        self, f: Callable[..., Any], state: RowState | None = None, *broadcast: Any
    ) -> Any:
        inner = self.mask_state
        if state is not None:
            inner = _inner(state).join(inner)
        return self._base.sweep(
            _selected_block, inner, self.mask_name, state is not None, f, *broadcast
        )

    def take(self, index: ArrayLike) -> linalg.Matrix:
        chosen = row_index(index, self.shape[0])
        return self._base.take(np.flatnonzero(self.mask)[chosen])

    def _origin(self, row: int) -> int:
        return self._base._origin(int(np.flatnonzero(self.mask)[row]))

    def state(self, **vectors: Any) -> RowState:
        whole = {}
        for name, vector in vectors.items():
            whole[name] = vector
            if np.ndim(vector):
                given = np.asarray(vector)
                _check_shape(name, given, self.shape[0])
                whole[name] = np.zeros((self.mask.size, *given.shape[1:]), given.dtype)
                whole[name][self.mask] = given
        return _SelectedState(self._base.state(**whole), self)


class _SelectedState(RowState):
    """Vectors of the selected rows, kept in vectors of the length of all rows."""

    __slots__ = ("_inner", "_rows")
    _inner: RowState
    _rows: _Selected

    def __init__(self, inner: RowState, rows: _Selected) -> None:
        object.__setattr__(self, "_inner", inner)
        object.__setattr__(self, "_rows", rows)

    def __getattr__(self, name: str) -> NDArray[Any]:
        if name in self.__slots__:
            raise AttributeError(name)
        vector: NDArray[Any] = getattr(self._inner, name)[self._rows.mask]
        vector.flags.writeable = False
        return vector

    def __setattr__(self, name: str, value: Any) -> None:
        whole = np.array(getattr(self._inner, name))
        whole[self._rows.mask] = value
        setattr(self._inner, name, whole)

    def join(self, other: RowState) -> RowState:
        return _SelectedState(self._inner.join(_inner(other)), self._rows)

    def prefixed(self, prefix: str) -> RowState:
        return _SelectedState(self._inner.prefixed(prefix), self._rows)

    def sweep(self, f: Callable[..., Any], *broadcast: Any) -> Any:
        inner = self._inner.join(self._rows.mask_state)
        return inner.sweep(_selected_part, self._rows.mask_name, f, *broadcast)


def _inner(state: RowState) -> RowState:
    if not isinstance(state, _SelectedState):
        raise TypeError("The state of selected rows must be made by their `state`.")
    return state._inner


def _selected_block(
    block: Any,
    part: RowState,
    mask: str,
    has_state: bool,
    f: Callable[..., Any],
    *broadcast: Any,
) -> Any:
    index = np.flatnonzero(getattr(part, mask))
    if index.size == 0:
        return None
    if index.size == block.shape[0]:
        return f(block, part if has_state else None, *broadcast)
    chosen = part.part(index)
    value = f(block[index], chosen if has_state else None, *broadcast)
    part.store(index, chosen)
    return value


def _selected_part(
    part: RowState, mask: str, f: Callable[..., Any], *broadcast: Any
) -> Any:
    index = np.flatnonzero(getattr(part, mask))
    if index.size == 0:
        return None
    chosen = part.part(index)
    value = f(chosen, *broadcast)
    part.store(index, chosen)
    return value
