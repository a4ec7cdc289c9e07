"""Rows: one way to read data, whatever holds it.

An algorithm over rows is a function of one block, run on every block by `Rows.sweep`;
one sweep is one read of the data. Vectors of length m stay beside their rows in a
`RowState`, so a sweep ships only what is small: n-vectors, n x n matrices, numbers.
A storage writes `sweep` and `take` (and `state`, where its vectors live elsewhere); all
products and views are derived here, once.
"""

import contextvars
import functools
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np
import threadpoolctl
from numpy.typing import ArrayLike, NDArray

from widemargin import linalg

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
# Keys that `RowState.threshold` sorts instead of counting once more.
SORTED_KEYS = 4096


class FeatureMap(Protocol):
    """A map of rows to new features, applied block by block."""

    @property
    def rank(self) -> int: ...
    def map(self, block: Any, /) -> Any: ...


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

    ``state.alpha`` reads a vector; assigning to it writes into the vector in place.
    Made by `Rows.state`; a sweep hands each block its own slices.
    """

    __slots__ = ("_run", "_vectors")
    _vectors: dict[str, NDArray[Any]]
    _run: "_Run"

    def __init__(self, vectors: dict[str, NDArray[Any]], run: "_Run") -> None:
        object.__setattr__(self, "_vectors", vectors)
        object.__setattr__(self, "_run", run)

    def __getattr__(self, name: str) -> NDArray[Any]:
        try:
            return self._vectors[name]
        except KeyError:
            raise AttributeError(f"no row vector named {name!r}") from None

    def __setattr__(self, name: str, value: Any) -> None:
        vector = getattr(self, name)
        if value is not vector:  # state.alpha += step has written already
            vector[...] = value

    def join(self, other: "RowState") -> "RowState":
        """The vectors of both states, by reference."""
        return RowState({**self._vectors, **other._vectors}, self._run)

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

        f(slices, *broadcast) returns the keys and the weights of its rows. Exact: the
        bracket of t is cut into 256 bins a pass until few keys are left in it, and these
        are sorted. The largest key if all rows together weigh less.
        """
        low, high = self.sweep(_key_range, f, *broadcast)
        low, high = np.nextafter(low.key, -np.inf), -high.key
        while np.nextafter(low, np.inf) < high:
            edges = np.unique(np.linspace(low, high, 257))
            counts, weights = self.sweep(_histogram, edges, f, *broadcast)
            bin = min(
                int(np.searchsorted(np.cumsum(weights), target)), len(weights) - 1
            )
            target -= float(weights[:bin].sum())
            low, high = edges[bin], edges[bin + 1]
            if counts[bin] <= SORTED_KEYS:
                found = self.sweep(_keys_between, low, high, f, *broadcast)
                return _sorted_threshold(found, target)
        return float(high)


def _key_range(part: RowState, f: Callable[..., Any], *broadcast: Any) -> Any:
    keys, _ = f(part, *broadcast)
    return Least(keys.min()), Least(-keys.max())


def _histogram(
    part: RowState, edges: Vector, f: Callable[..., Any], *broadcast: Any
) -> Any:
    """Count and weight of the keys in each (edges[j], edges[j + 1]]."""
    keys, weights = f(part, *broadcast)
    bins = np.searchsorted(edges, keys, side="left") - 1
    inside = (bins >= 0) & (bins < len(edges) - 1)
    sums = functools.partial(np.bincount, bins[inside], minlength=len(edges) - 1)
    return sums(), sums(weights=np.broadcast_to(weights, keys.shape)[inside])


def _keys_between(
    part: RowState, low: float, high: float, f: Callable[..., Any], *broadcast: Any
) -> list[Any]:
    keys, weights = f(part, *broadcast)
    inside = (keys > low) & (keys <= high)
    return [(keys[inside], np.broadcast_to(weights, keys.shape)[inside])]


def _sorted_threshold(found: list[tuple[Vector, Vector]], target: float) -> float:
    keys, weights = (np.concatenate(parts) for parts in zip(*found, strict=True))
    order = np.argsort(keys, kind="stable")
    first = int(np.searchsorted(np.cumsum(weights[order]), target))
    return float(keys[order][min(first, len(keys) - 1)])


class _Run:
    """Runs a task on every block: a fixed cut, a fixed order of sums, any threads."""

    def __init__(self, m: int, block_rows: int, lanes: int, n_jobs: int | None) -> None:
        blocks = [slice(a, min(a + block_rows, m)) for a in range(0, m, block_rows)]
        size = -(-len(blocks) // lanes)
        self._lanes = [blocks[i : i + size] for i in range(0, len(blocks), size)]
        self._threads = min(n_threads(n_jobs), len(self._lanes))

    @functools.cached_property
    def _pool(self) -> ThreadPoolExecutor:
        return ThreadPoolExecutor(self._threads, thread_name_prefix="widemargin")

    def __call__(self, task: Callable[[slice], Any]) -> Any:
        cancelled = threading.Event()

        def lane(blocks: list[slice]) -> Any:
            return total(task(rows) for rows in blocks if not cancelled.is_set())

        with _ONE_BLAS_THREAD:
            if self._threads == 1:
                return total(map(lane, self._lanes))
            # Each lane in a copy of this context: numpy.errstate holds in the threads too.
            work = [
                self._pool.submit(contextvars.copy_context().run, lane, blocks)
                for blocks in self._lanes
            ]
            try:
                return total(future.result() for future in work)
            except BaseException:
                cancelled.set()  # Ctrl-C or an error: the others stop after a block
                for future in work:
                    future.exception()
                raise


def total(values: Iterable[Any]) -> Any:
    """Sum of arrays, numbers, `Least`, or tuples of them, in the order given."""
    result, owned = None, False
    for value in values:
        if value is None:
            continue
        result, owned = (
            (value, False) if result is None else (_add(result, value, owned), True)
        )
    return result


def _add(a: Any, b: Any, owned: bool) -> Any:
    """A + b, into a where it is an array that is ours; None counts as nothing."""
    if a is None or b is None:
        return b if a is None else a
    if isinstance(a, tuple):
        return tuple(_add(x, y, owned) for x, y in zip(a, b, strict=True))
    if owned and isinstance(a, np.ndarray) and a.ndim:
        a += b
        return a
    return a + b


@functools.cache
def _blas() -> threadpoolctl.ThreadpoolController:
    """The BLAS libraries of NumPy and SciPy, found once: the search takes milliseconds."""
    return threadpoolctl.ThreadpoolController().select(user_api="blas")


class _OneBlasThread:
    """Keeps BLAS to one thread while any sweep runs: the threads are ours.

    The number is global to the process: the first sweep in sets it, the last one out
    restores it.
    """

    def __init__(self) -> None:
        self._lock, self._inside, self._limit = threading.Lock(), 0, None

    def __enter__(self) -> None:
        with self._lock:
            if self._inside == 0:
                self._limit = _blas().limit(limits=1)
            self._inside += 1

    def __exit__(self, *error: object) -> None:
        with self._lock:
            self._inside -= 1
            if self._inside == 0:
                self._limit.restore_original_limits()


_ONE_BLAS_THREAD = _OneBlasThread()


def n_threads(n_jobs: int | None) -> int:
    """Threads a sweep may use: ``n_jobs``, or what BLAS may use now (joblib limits it)."""
    if n_jobs is None or n_jobs < 0:
        pools = [library["num_threads"] for library in _blas().info()]
        return max([1, *pools])
    return max(1, n_jobs)


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
            matrix), the block's slices of ``state`` (None without one) and ``broadcast``.
            It may update its slices in place. Blocks run in any order and in several
            threads. A module-level function can also travel to another process.
        state : RowState or None
            Vectors beside the rows, made by `state`.
        *broadcast
            What every block needs: small arrays and numbers.

        Returns
        -------
        The values of f added up in a fixed order: numbers, arrays, `Least`, lists
        (joined), or tuples of these. None where f returns nothing.
        """

    @abstractmethod
    def take(self, index: ArrayLike) -> linalg.Matrix:
        """Rows ``index`` (k integers) in memory: (k, n), dense or CSR."""

    @abstractmethod
    def state(self, **vectors: Any) -> RowState:
        """Vectors beside the rows: copies of arrays (m, ...); a number fills (m,)."""

    def matvec(self, W: ArrayLike) -> Vector:
        """Product X W for W (n,) or (n, k): (m,) or (m, k) in memory. One sweep."""
        W = np.asarray(W)
        _check_length("W", W, self.shape[1])
        state = self.state(product=np.zeros((self.shape[0], *W.shape[1:])))
        self.sweep(_matvec, state, W)
        return state.product

    def rmatvec(self, V: ArrayLike) -> Vector:
        """Product X' V for V (m,) or (m, k): (n,) or (n, k). One sweep."""
        V = np.asarray(V)
        _check_length("V", V, self.shape[0])
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
        ValueError if d or active has not length m, or d is negative somewhere.

        Notes
        -----
        One sweep; m_active n^2 flops; 8 n^2 bytes for each of at most 8 partial sums.
        """
        m, n = self.shape
        d = np.asarray(d, dtype=np.float64)
        active = (
            np.ones(m, dtype=bool) if active is None else np.asarray(active, dtype=bool)
        )
        for name, vector in (("d", d), ("active", active)):
            _check_length(name, vector, m)
        if np.any(d < 0):
            raise ValueError(f"d must be nonnegative. Got {d.min()} instead.")
        result = self.sweep(_active_gram, self.state(d=d, active=active))
        return np.zeros((n, n)) if result is None else np.asarray(result)

    def signed(self, y: ArrayLike, intercept: bool = True) -> "SignedRows":
        """View Y [X 1] (m, n + 1), or Y X without intercept, for labels y of +1 and -1."""
        y = np.asarray(y, dtype=np.float64)
        _check_length("y", y, self.shape[0])
        return SignedRows(self, self.state(labels=y), intercept)

    def mapped(self, feature_map: FeatureMap) -> "Rows":
        """View of the rows after a feature map: (m, rank), one block at a time."""
        return _Mapped(self, feature_map)

    def select(self, mask: ArrayLike) -> "Rows":
        """View of the rows where the bool array mask (m,) holds."""
        mask = np.asarray(mask, dtype=bool)
        _check_length("mask", mask, self.shape[0])
        if not mask.any():
            raise ValueError("mask must select at least one row. Got none instead.")
        return _Selected(self, mask)

    @property
    def moments(self) -> Moments:
        """Mean and standard deviation of every column. One sweep, the first time.

        Raises
        ------
        ValueError naming the first row and column that hold NaN or an infinity.
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
                f"X must hold numbers whose squares are finite. Column {column} is too large."
            )
        mean = sums / self.shape[0]
        variance = squares / self.shape[0] - mean * mean
        return Moments(mean, np.sqrt(np.maximum(variance, 0.0)))

    def refuse_nonfinite(self) -> None:
        """Raise ValueError naming the first NaN or infinity, if there is one."""
        state = self.state(row=np.arange(self.shape[0]))
        found = self.sweep(_first_nonfinite, state)
        if found is not None:
            row, (column, value) = int(found.key), found.value
            name = (
                "NaN" if np.isnan(value) else "infinity" if value > 0 else "-infinity"
            )
            raise ValueError(
                f"X must hold finite numbers only (no NaN, no inf). "
                f"Got {name} at row {row}, column {column} instead."
            )


def _check_length(name: str, array: NDArray[Any], length: int) -> None:
    if array.ndim == 0 or array.shape[0] != length:
        raise ValueError(
            f"{name} must have length {length}. Got shape {array.shape} instead."
        )


def _matvec(block: Any, part: RowState, W: Vector) -> None:
    part.product = block @ W


def _rmatvec(block: Any, part: RowState) -> Vector:
    return np.asarray(block.T @ part.V, dtype=np.float64)


def _active_gram(block: Any, part: RowState) -> Vector | None:
    index = np.flatnonzero(part.active)
    if index.size == 0:
        return None
    return linalg.gram(block[index], part.d[index])


def _column_sums(block: Any, part: None) -> tuple[Vector, Vector]:
    return linalg.column_sums(block)


def _first_nonfinite(block: Any, part: RowState) -> Least | None:
    rows, columns, values = linalg.nonfinite(block)
    if rows.size == 0:
        return None
    first = int(np.argmin(rows))
    return Least(
        float(part.row[rows[first]]), (int(columns[first]), float(values[first]))
    )


class MemoryRows(Rows):
    """Rows of a dense array (any order, also memory-mapped) or CSR array, by reference."""

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
        def task(rows: slice) -> Any:
            block = linalg.row_slice(self._X, rows.start, rows.stop)
            return f(block, None if state is None else state.part(rows), *broadcast)

        self.sweeps += 1
        return self._run(task)

    def take(self, index: ArrayLike) -> linalg.Matrix:
        rows: linalg.Matrix = self._X[np.asarray(index)]
        return rows

    def state(self, **vectors: Any) -> RowState:
        m = self.shape[0]
        made = {}
        for name, vector in vectors.items():
            made[name] = (
                np.full(m, float(vector)) if np.ndim(vector) == 0 else np.array(vector)
            )
            _check_length(name, made[name], m)
        return RowState(made, self._run)


def _cut(X: linalg.Matrix, n_jobs: int | None, memory_limit: int | None) -> _Run:
    """The blocks of X: a few MiB each, more when n x n sums have to pay off."""
    m, n = X.shape
    size = min(max(BLOCK_BYTES, 16 * n * n), LARGE_BLOCK_BYTES)
    least = BLOCK_ROWS
    if memory_limit is not None:
        size, least = min(size, memory_limit // 8), 1
    block_rows = max(least, size * m // max(1, linalg.n_bytes(X)))
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
    ValueError if X is not a real matrix with at least one row and one column.

    Notes
    -----
    Nothing is read: numbers are checked when they are first used.

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

    @property
    def sweeps(self) -> int:  # type: ignore[override]
        return self._base.sweeps

    def state(self, **vectors: Any) -> RowState:
        return self._base.state(**vectors)


class _Mapped(_View):
    """Rows after a feature map."""

    def __init__(self, base: Rows, feature_map: FeatureMap) -> None:
        super().__init__(base)
        self.shape = (base.shape[0], feature_map.rank)
        self._map = feature_map

    def sweep(
        self, f: Callable[..., Any], state: RowState | None = None, *broadcast: Any
    ) -> Any:
        return self._base.sweep(_mapped_block, state, self._map, f, *broadcast)

    def take(self, index: ArrayLike) -> linalg.Matrix:
        rows: linalg.Matrix = self._map.map(self._base.take(index))
        return rows


def _mapped_block(
    block: Any,
    part: RowState | None,
    feature_map: FeatureMap,
    f: Callable[..., Any],
    *broadcast: Any,
) -> Any:
    return f(feature_map.map(block), part, *broadcast)


class SignedRows(_View):
    """Y [X 1], or Y X: labels and intercept folded in, never formed.

    Attributes
    ----------
    labels : RowState with the vector ``labels``
    """

    def __init__(self, base: Rows, labels: RowState, intercept: bool) -> None:
        super().__init__(base)
        self.shape = (base.shape[0], base.shape[1] + intercept)
        self.labels = labels
        self._intercept = intercept

    def sweep(
        self, f: Callable[..., Any], state: RowState | None = None, *broadcast: Any
    ) -> Any:
        joined = self.labels if state is None else self.labels.join(state)
        return self._base.sweep(
            _signed_block, joined, self._intercept, state is not None, f, *broadcast
        )

    def take(self, index: ArrayLike) -> linalg.Matrix:
        index = np.asarray(index)
        signs = self.labels.labels[index]
        return linalg.SignedBlock(
            self._base.take(index), signs, self._intercept
        ).matrix()


def _signed_block(
    block: Any,
    part: RowState,
    intercept: bool,
    has_state: bool,
    f: Callable[..., Any],
    *broadcast: Any,
) -> Any:
    signed = linalg.SignedBlock(block, part.labels, intercept)
    return f(signed, part if has_state else None, *broadcast)


class _Selected(_View):
    """The rows where a mask holds."""

    def __init__(self, base: Rows, mask: NDArray[np.bool_]) -> None:
        super().__init__(base)
        self.shape = (int(np.count_nonzero(mask)), base.shape[1])
        self._mask = mask

    def sweep(
        self, f: Callable[..., Any], state: RowState | None = None, *broadcast: Any
    ) -> Any:
        inner = self.state() if state is None else state
        assert isinstance(inner, _SelectedState)
        return self._base.sweep(
            _selected_block, inner._inner, state is not None, f, *broadcast
        )

    def take(self, index: ArrayLike) -> linalg.Matrix:
        return self._base.take(np.flatnonzero(self._mask)[np.asarray(index)])

    def state(self, **vectors: Any) -> RowState:
        whole: dict[str, Any] = {"_mask": self._mask}
        for name, vector in vectors.items():
            whole[name] = vector
            if np.ndim(vector):
                given = np.asarray(vector)
                _check_length(name, given, self.shape[0])
                whole[name] = np.zeros((self._mask.size, *given.shape[1:]), given.dtype)
                whole[name][self._mask] = given
        return _SelectedState(self._base.state(**whole))


class _SelectedState(RowState):
    """Vectors of the selected rows, kept in vectors of the length of all rows."""

    __slots__ = ("_inner",)
    _inner: RowState

    def __init__(self, inner: RowState) -> None:
        object.__setattr__(self, "_inner", inner)

    def __getattr__(self, name: str) -> NDArray[Any]:
        vector: NDArray[Any] = getattr(self._inner, name)[self._inner._mask]
        return vector

    def __setattr__(self, name: str, value: Any) -> None:
        getattr(self._inner, name)[self._inner._mask] = value

    def join(self, other: RowState) -> RowState:
        assert isinstance(other, _SelectedState)
        return _SelectedState(self._inner.join(other._inner))

    def sweep(self, f: Callable[..., Any], *broadcast: Any) -> Any:
        return self._inner.sweep(_selected_part, f, *broadcast)


def _selected_block(
    block: Any, part: RowState, has_state: bool, f: Callable[..., Any], *broadcast: Any
) -> Any:
    index = np.flatnonzero(part._mask)
    if index.size == 0:
        return None
    chosen = part.part(index)
    value = f(block[index], chosen if has_state else None, *broadcast)
    part.store(index, chosen)
    return value


def _selected_part(part: RowState, f: Callable[..., Any], *broadcast: Any) -> Any:
    index = np.flatnonzero(part._mask)
    if index.size == 0:
        return None
    chosen = part.part(index)
    value = f(chosen, *broadcast)
    part.store(index, chosen)
    return value
