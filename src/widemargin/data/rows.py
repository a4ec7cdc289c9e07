"""Rows: one way to read data, whatever holds it.

An algorithm over rows is a function of one block, run on every block by `Rows.sweep`;
one sweep is one read of the data. Vectors of length m stay beside their rows in a
`RowState`, so a sweep ships only what is small: n-vectors, n x n matrices, numbers.
A storage (memory.py) writes `sweep`, `take` and `state`; all products and views are
derived here, once.
"""

import uuid
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import ArrayLike

from widemargin.arrays import Mask, Vector
from widemargin.data.blocks import total
from widemargin.data.row_vector import RowVector
from widemargin.data.selected import SelectedState, of_all_rows
from widemargin.data.state import RowState, bools, check_length, reals, row_index
from widemargin.numerics import linalg
from widemargin.parameters import in_one_line

# What a feature map makes at a time: as many rows as a block in memory has at least, or
# more where they are short, as many numbers at most: 8 MiB, and 64 MiB, as blocks are.
MAPPED_ROWS, MAPPED_NUMBERS, MOST_NUMBERS = 2048, 1 << 20, 1 << 23


class RowMap(Protocol):
    """What makes new features of rows, applied block by block.

    It may have a ``dtype`` and a ``density``, where the features differ from the rows.
    """

    @property
    def rank(self) -> int:
        """Number of new features."""

    def map(self, block: Any, /) -> Any:
        """New features (k, rank) of a dense or CSR block (k, n)."""


class Moments(NamedTuple):
    """Mean and standard deviation of every column, (n,) each."""

    mean: Vector
    std: Vector


class Rows(ABC):
    """The rows of a data matrix X (m, n), read by sweeps.

    Attributes
    ----------
    shape : tuple (m, n)
    dtype : numpy dtype of the stored numbers
    density : float, share of the entries that are stored
    share : float, share of the entries that are not zero, or are stored
    are_given_sparse : bool, whether the user gave a sparse matrix in memory
    sweeps : int, how many times the data was read
    options : dict, what `as_rows` is to be given for rows made from these
    copy_rows : float, how many rows may be copied into memory at a time
    is_in_memory : bool, whether `in_memory` has an answer (which may be a copy)
    is_near : bool, whether `take` makes a copy of all from rows in memory, no larger
    names : sequence of str, names of the columns, or None
    """

    is_in_memory: bool = False
    is_near: bool = False

    options: Mapping[str, Any] = MappingProxyType({})
    shape: tuple[int, int]
    dtype: np.dtype[Any]
    density: float = 1.0
    are_given_sparse: bool = False
    copy_rows: float = np.inf
    sweeps: int = 0
    names: Sequence[str] | None = None
    _moments: Moments | None = None

    def __repr__(self) -> str:
        return in_one_line(self, shape=self.shape, dtype=str(self.dtype))

    @abstractmethod
    def sweep(
        self, f: Callable[..., Any], state: RowState | None = None, *broadcast: Any
    ) -> Any:
        """Read the data once: run f(block, slices, ...) on every block.

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

    @property
    def share(self) -> float:
        """Share of the entries that are not zero, as far as it is known."""
        return self.density

    @property
    def n_all(self) -> int:
        """How many columns the data have: more than these, where some are left out."""
        return self.shape[1]

    def number_of(self, j: int) -> int:
        """Which column of the data is column j here."""
        return j

    def whole(self, X: linalg.Matrix) -> linalg.Matrix:
        """Some of the rows with all columns of the data."""
        return X

    def check_interrupted(self) -> None:  # noqa: B027  (most rows need none)
        """Raise KeyboardInterrupt where a Ctrl-C has come that no sweep has told of.

        For work between sweeps, in threads that Ctrl-C does not reach by itself.
        """

    def in_memory(self) -> "linalg.Matrix | None":
        """All rows as one dense or CSR matrix of this process, or None.

        For algorithms that visit rows one by one in any order. By reference where it
        can be; rows chosen from a matrix in memory are copied, the first time. None for
        rows elsewhere, and for views that change the numbers: not worth a copy that
        nobody asked for.
        """
        return None

    def reserve(self, size: int, what: str, owner: Any) -> None:  # noqa: B027
        """Leave this many bytes of the memory for others, while ``owner`` lives.

        Raises
        ------
        ValueError where the limit of the rows has not so much room, for ``what``.
        """

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
        W = reals("W", W, self.shape[1], 2)
        return np.concatenate(self.sweep(_matvec, None, W))

    def rmatvec(self, V: ArrayLike) -> Vector:
        """Product X' V for V (m,) or (m, k): (n,) or (n, k). One sweep."""
        V = reals("V", V, self.shape[0], 2)
        return np.asarray(self.sweep(_rmatvec, self.state(V=V)))

    def gram(self, d: ArrayLike, active: ArrayLike | None = None) -> Vector:
        """Weighted Gram matrix X' diag(d) X over the active rows.

        Parameters
        ----------
        d : array (m,), nonnegative
        active : bool array (m,) or None. Blocks with no active row are not read.

        Returns
        -------
        ndarray (n, n), float64 whatever the dtype of X: it is factorized next.

        Raises
        ------
        ValueError if d or active has not length m, or d is negative or NaN somewhere.

        Notes
        -----
        One sweep; m_active n^2 flops; 8 n^2 bytes for each of at most 8 partial sums.
        """
        m, n = self.shape
        d = reals("d", d, m)
        if not np.all(d >= 0):
            raise ValueError(f"d must be nonnegative. Got {d[~(d >= 0)][0]} instead.")
        if active is None:
            return np.asarray(self.sweep(_gram, self.state(d=d)))
        state = self.state(d=d, active=bools("active", active, m))
        result = self.sweep(_active_gram, state)
        return np.zeros((n, n)) if result is None else np.asarray(result)

    def signed(self, y: ArrayLike, intercept: bool = True) -> "SignedRows":
        """View Y [X 1] (m, n + 1), or Y X without intercept; y holds +1 and -1.

        Kept as bytes where y is int8, else as float64.
        """
        if isinstance(y, RowVector):  # of a problem, which has looked at them
            return SignedRows(self, y, intercept)
        if np.asarray(y).dtype != np.int8:
            y = reals("y", y, self.shape[0])
        y = np.asarray(y)
        if not np.all(np.abs(y) == 1.0):
            raise ValueError(
                f"y must hold +1 and -1 only. Got {y[np.abs(y) != 1.0][0]} instead."
            )
        return SignedRows(self, y, intercept)

    def mapped(self, feature_map: RowMap) -> "Rows":
        """View of the rows after a feature map: (m, rank), one block at a time."""
        return _Mapped(self, feature_map)

    def select(self, mask: ArrayLike) -> "Rows":
        """View of the rows where the bool array mask (m,) holds."""
        mask = bools("mask", mask, self.shape[0])
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

    def check_finite(self) -> None:
        """Raise ValueError as `moments` does. One sweep, the first time."""
        _ = self.moments

    def _read_moments(self) -> Moments:
        sums, squares = self.sweep(_column_sums)
        if not np.isfinite(sums).all():
            self.refuse_nonfinite()
        if not np.isfinite(squares).all():
            column = int(np.argmin(np.isfinite(squares)))
            raise ValueError(
                "X must hold numbers whose squares are finite. "
                f"{self._column(column).capitalize()} is too large."
            )
        mean = sums / self.shape[0]
        with np.errstate(under="ignore"):
            variance = squares / self.shape[0] - mean * mean
        return Moments(mean, np.sqrt(np.maximum(variance, 0.0)))

    def refuse_nonfinite(self) -> None:
        """Raise ValueError naming the first NaN or infinity, if there is one.

        The row is that of the data below all views: there the user will look for it.
        """
        start = 0
        for length, found in self.sweep(_first_nonfinite):
            if found is not None:
                row, column, value = found
                sign = "-" if value < 0 else ""
                raise ValueError(
                    f"{self._name} must hold finite numbers only (no NaN, no inf). "
                    f"Got {'NaN' if np.isnan(value) else sign + 'infinity'} at "
                    f"{self._origin(start + row)}, {self._column(column)} instead."
                )
            start += length

    def _column(self, j: int) -> str:
        """What a sentence calls a column."""
        name = f"'{self.names[j]}'" if self.names is not None else self.number_of(j)
        return f"column {name}"

    _name: str = "X"

    def _origin(self, row: int) -> str:
        """What a sentence calls the row of the data below all views."""
        return f"row {row}"


class RemoteRows(Rows):
    """Rows on other machines, which can keep there what is made of them."""

    @abstractmethod
    def mapped_once(self, feature_map: RowMap) -> Rows:
        """Rows after a feature map: made once, where there is room for them."""

    @abstractmethod
    def keep(
        self,
        choose: Callable[..., Any],
        state: RowState,
        names: Sequence[str],
        *broadcast: Any,
    ) -> tuple[Rows, RowState]:
        """The rows that are chosen, and their part of the named vectors, copied.

        ``choose(slices of state, *broadcast)`` says which rows of a block (bool). They
        stay where they are.
        """


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


class _View(Rows):
    """Rows that change the blocks of other rows."""

    def __init__(self, base: Rows) -> None:
        self._base = base
        self.shape = base.shape
        self.dtype = base.dtype
        self.density = base.density
        self.options, self.copy_rows = base.options, base.copy_rows
        self.are_given_sparse = base.are_given_sparse
        self._name = base._name

    @property
    def sweeps(self) -> int:  # type: ignore[override]
        return self._base.sweeps

    def state(self, **vectors: Any) -> RowState:
        """Vectors beside the rows: see `Rows.state`."""
        return self._base.state(**vectors)

    def check_interrupted(self) -> None:
        """Raise KeyboardInterrupt: see `Rows.check_interrupted`."""
        self._base.check_interrupted()

    def _origin(self, row: int) -> str:
        return self._base._origin(row)


def _own_name(kind: str) -> str:
    """A name for a vector of one view, which no other view's may meet in a sweep."""
    return f"{kind}.{uuid.uuid4().hex}"


class _Mapped(_View):
    """Rows after a feature map."""

    def __init__(self, base: Rows, feature_map: RowMap) -> None:
        super().__init__(base)
        self.shape = (base.shape[0], feature_map.rank)
        self.dtype = getattr(feature_map, "dtype", base.dtype)
        self.density = getattr(feature_map, "density", base.density)
        stored, mapped = (s.density * s.shape[1] + 8 for s in (base, self))
        self.copy_rows *= min(1.0, stored / mapped)  # 8 numbers beside each
        self.is_near = base.is_in_memory and feature_map.rank <= base.shape[1]
        self._map = feature_map
        self._name = f"{base._name} after its feature map"

    def sweep(
        self, f: Callable[..., Any], state: RowState | None = None, *broadcast: Any
    ) -> Any:
        return self._base.sweep(_mapped_block, state, self._map, f, *broadcast)

    def take(self, index: ArrayLike) -> linalg.Matrix:
        rows: linalg.Matrix = self._map.map(self._base.take(index))
        return rows

    def keep(self, *given: Any) -> tuple[Rows, RowState]:
        """Rows without their features, which take more room: see `RemoteRows.keep`."""
        base: Any = self._base
        rows, own = base.keep(*given)
        return rows.mapped(self._map), own

    def refuse_nonfinite(self) -> None:
        """Raise ValueError naming the first NaN or infinity, of the data or the map."""
        self._base.refuse_nonfinite()
        super().refuse_nonfinite()


def _mapped_block(
    block: Any,
    part: RowState | None,
    feature_map: RowMap,
    f: Callable[..., Any],
    *broadcast: Any,
) -> Any:
    X, rank = linalg.formed(block), feature_map.rank
    least = min(MAPPED_ROWS, MOST_NUMBERS // rank)
    size = max(least, MAPPED_NUMBERS // rank, 1)

    def value(start: int) -> Any:
        stop = min(start + size, X.shape[0])
        mapped = feature_map.map(linalg.row_slice(X, start, stop))
        piece = None if part is None else part.part(slice(start, stop))
        return f(mapped, piece, *broadcast)

    return total(map(value, range(0, X.shape[0], size)))


class SignedRows(_View):
    """Y [X 1], or Y X: labels and intercept folded in, never formed.

    Attributes
    ----------
    labels : RowState with the vector ``labels``
    """

    def __init__(self, base: Rows, y: Any, intercept: bool) -> None:
        super().__init__(base)
        self.shape = (base.shape[0], base.shape[1] + intercept)
        self.is_near = base.is_in_memory
        self.labels = base.state(labels=y)
        # Labels are kept once where rows are in memory, and here where they are not.
        self._y = y
        if not isinstance(y, RowVector):
            own = y if not y.flags.writeable else y.copy()
            self._y = self.labels.labels if base.is_in_memory else own
        self._intercept = intercept
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

    def weighted_product(
        self, weights: Callable[[RowState], Vector], state: RowState, w: Vector
    ) -> Vector:
        """Product A' diag(d) A w, d what ``weights`` makes of a block's rows: (k,).

        One sweep, whose signs do not matter.
        """
        product: Vector = self.sweep(_weighted_product, state, weights, w)
        return product

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


def _weighted_product(
    block: Any, part: RowState, weights: Callable[[RowState], Vector], w: Vector
) -> Vector:
    return linalg.weighted_product(block, weights(part), w)


class _Selected(_View):
    """The rows where a mask holds."""

    def __init__(self, base: Rows, mask: Mask) -> None:
        super().__init__(base)
        self.shape = (int(np.count_nonzero(mask)), base.shape[1])
        self.is_in_memory, self.names = base.is_in_memory, base.names
        self.mask, self.mask_name = mask, _own_name("mask")
        self.mask_state = base.state(**{self.mask_name: mask})
        self._copy: linalg.Matrix | None = None

    def sweep(
        self, f: Callable[..., Any], state: RowState | None = None, *broadcast: Any
    ) -> Any:
        inner = self.mask_state
        if state is not None:
            inner = of_all_rows(state).join(inner)
        return self._base.sweep(
            _selected_block, inner, self.mask_name, state is not None, f, *broadcast
        )

    def take(self, index: ArrayLike) -> linalg.Matrix:
        chosen = row_index(index, self.shape[0])
        return self._base.take(np.flatnonzero(self.mask)[chosen])

    def in_memory(self) -> "linalg.Matrix | None":
        base = self._base.in_memory()
        if self._copy is None and base is not None:
            self._copy = base[self.mask]
        return self._copy

    def _origin(self, row: int) -> str:
        return self._base._origin(int(np.flatnonzero(self.mask)[row]))

    def state(self, **vectors: Any) -> RowState:
        whole = {}
        for name, vector in vectors.items():
            whole[name] = vector
            if np.ndim(vector):
                given = np.asarray(vector)
                check_length(name, given, self.shape[0])
                whole[name] = np.zeros((self.mask.size, *given.shape[1:]), given.dtype)
                whole[name][self.mask] = given
        return SelectedState(self._base.state(**whole), self)


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
