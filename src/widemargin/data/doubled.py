"""Rows that occur twice: all of them, and all of them again.

A regression has two rows of opposite signs for each sample. They are a view: the data
are there once and read once, a product with a vector is made once for both, and vectors
beside the rows, (2 m,), are kept as two vectors (m,) beside the rows of the data.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from widemargin.arrays import Vector
from widemargin.data.blocks import total
from widemargin.data.row_vector import RowVector
from widemargin.data.rows import (
    Moments,
    RowMap,
    Rows,
    SignedRows,
    _View,
)
from widemargin.data.state import RowState, bools, check_length, row_index
from widemargin.numerics import linalg

# Before the names of the vectors of the first and the second half.
_FIRST, _SECOND = "first.", "second."


def sizes_of(rows: Rows) -> tuple[int, int]:
    """How many samples and columns there are: doubled rows are two of each sample."""
    return (rows.base if isinstance(rows, DoubledRows) else rows).shape


class DoubledRows(_View):
    """The rows of a matrix X (m, n) on top of the same rows: (2 m, n), never formed.

    Attributes
    ----------
    base : Rows, X
    """

    def __init__(self, base: Rows) -> None:
        super().__init__(base)
        self.base = base
        self.shape = 2 * base.shape[0], base.shape[1]
        self.is_in_memory, self.names = base.is_in_memory, base.names
        self._copy: linalg.Matrix | None = None

    def sweep(
        self, f: Callable[..., Any], state: RowState | None = None, *broadcast: Any
    ) -> Any:
        """Read the data once: see `Rows.sweep`. Each block comes twice."""
        inner = None if state is None else of_single_rows(state)
        return self.base.sweep(_both_blocks, inner, f, *broadcast)

    def take(self, index: ArrayLike) -> linalg.Matrix:
        """Rows ``index``: see `Rows.take`."""
        return self.base.take(row_index(index, self.shape[0]) % self.base.shape[0])

    def in_memory(self) -> "linalg.Matrix | None":
        """All rows, twice: a copy, made when it is first asked for."""
        X = self.base.in_memory()
        if self._copy is None and X is not None:
            self._copy = linalg.stack([X, X])
        return self._copy

    def state(self, **vectors: Any) -> RowState:
        """Vectors beside the rows: see `Rows.state`."""
        m = self.base.shape[0]
        first, second = dict(vectors), dict(vectors)
        for name, vector in vectors.items():
            if isinstance(vector, RowVector):
                first[name], second[name] = vector.state.halves(vector.name)
            elif np.ndim(vector):
                whole = np.asarray(vector)
                check_length(name, whole, 2 * m)
                first[name], second[name] = whole[:m], whole[m:]
        return DoubledState(self.base.state(**first), self.base.state(**second))

    def both(self, **pairs: Sequence[Any]) -> RowState:
        """Vectors beside the rows, of the first and of the second half."""
        first, second = ({k: v[i] for k, v in pairs.items()} for i in (0, 1))
        return DoubledState(self.base.state(**first), self.base.state(**second))

    def reserve(self, size: int, what: str, owner: Any) -> None:
        """Leave bytes of the memory for others: see `Rows.reserve`."""
        self.base.reserve(size, what, owner)

    def check_interrupted(self) -> None:
        """Raise KeyboardInterrupt: see `Rows.check_interrupted`."""
        self.base.check_interrupted()

    def signed(self, y: ArrayLike, intercept: bool = True) -> SignedRows:
        """View Y [X 1]: see `Rows.signed`."""
        return _SignedTwice(self, super().signed(y, intercept))

    def mapped(self, feature_map: RowMap) -> Rows:
        """View of the rows after a feature map: see `Rows.mapped`."""
        return DoubledRows(self.base.mapped(feature_map))

    def select(self, mask: ArrayLike) -> Rows:
        """View of the rows where a mask holds, which is the same for both halves."""
        first, second = np.split(bools("mask", mask, self.shape[0]), 2)
        if not np.array_equal(first, second):
            raise ValueError("mask must select both rows of a sample, or none.")
        return DoubledRows(self.base.select(first))

    @property
    def moments(self) -> Moments:
        """Mean and standard deviation of every column: those of the rows once."""
        return self.base.moments

    def refuse_nonfinite(self) -> None:
        """Raise ValueError naming the first NaN or infinity, if there is one."""
        self.base.refuse_nonfinite()

    def _origin(self, row: int) -> str:
        return self.base._origin(row % self.base.shape[0])


class _SignedTwice(SignedRows):
    """Y [X 1] of doubled rows: products of both halves are made once."""

    def __init__(self, rows: DoubledRows, signed: SignedRows) -> None:
        vars(self).update(vars(signed))
        self._single = rows.base

    def sweep(
        self, f: Callable[..., Any], state: RowState | None = None, *broadcast: Any
    ) -> Any:
        """Read the data once: see `Rows.sweep`."""
        joined = self._signs if state is None else state.join(self._signs)
        signs = self._prefix + "labels", self._intercept, state is not None
        inner = of_single_rows(joined)
        return self._single.sweep(_twin_blocks, inner, *signs, f, *broadcast)

    def weighted_product(
        self, weights: Callable[[RowState], Vector], state: RowState, w: Vector
    ) -> Vector:
        """Product A' diag(d) A w of both halves at once: see `SignedRows`."""
        product: Vector = self._single.sweep(
            _twin_product, of_single_rows(state), self._intercept, weights, w
        )
        return product


class DoubledState(RowState):
    """Vectors of doubled rows, kept as those of the first and of the second rows."""

    __slots__ = ("_first", "_second")
    _first: RowState
    _second: RowState

    def __init__(self, first: RowState, second: RowState) -> None:
        object.__setattr__(self, "_first", first)
        object.__setattr__(self, "_second", second)

    def __getattr__(self, name: str) -> Any:
        if name in self.__slots__:
            raise AttributeError(name)
        halves = getattr(self._first, name), getattr(self._second, name)
        if isinstance(halves[0], RowVector):
            m, dtype = halves[0].shape[0], halves[0].dtype
            return RowVector(self, name, 2 * m, dtype)
        vector: NDArray[Any] = np.concatenate(halves)
        vector.flags.writeable = False
        return vector

    def __setattr__(self, name: str, value: Any) -> None:
        halves = (value, value) if np.ndim(value) == 0 else np.split(value, 2)
        setattr(self._first, name, halves[0])
        setattr(self._second, name, halves[1])

    def halves(self, name: str) -> tuple[Any, Any]:
        """A vector of the first rows, and of the second ones."""
        return getattr(self._first, name), getattr(self._second, name)

    def beside(self, **vectors: Any) -> RowState:
        """New vectors beside these, where they are elsewhere: see `RowVector`."""
        first, second = dict[str, Any](), dict[str, Any]()
        for name, vector in vectors.items():
            first[name], second[name] = np.split(vector, 2)
        states: Any = self._first, self._second
        return DoubledState(states[0].beside(**first), states[1].beside(**second))

    def gather(self, name: str) -> NDArray[Any]:
        """A whole vector that is elsewhere: see `RowVector`."""
        return np.concatenate([np.asarray(half) for half in self.halves(name)])

    def join(self, other: RowState) -> RowState:
        """The vectors of both: see `RowState.join`."""
        first, second = halves_of(other)
        return DoubledState(self._first.join(first), self._second.join(second))

    def prefixed(self, prefix: str) -> RowState:
        """The same vectors under other names: see `RowState.prefixed`."""
        halves = (half.prefixed(prefix) for half in (self._first, self._second))
        return DoubledState(*halves)

    def part(self, index: Any) -> RowState:
        """The rows ``index`` of every vector are not kept together."""
        raise TypeError("Doubled rows have parts in sweeps only.")

    def sweep(self, f: Callable[..., Any], *broadcast: Any) -> Any:
        """Run f on every block, twice: see `RowState.sweep`."""
        return of_single_rows(self).sweep(_both_parts, f, *broadcast)

    def update(self, f: Callable[..., None], *broadcast: Any) -> None:
        """Run f on every block, twice: see `RowState.update`."""
        of_single_rows(self).update(_both_parts, f, *broadcast)


def of_single_rows(state: RowState) -> RowState:
    """The vectors of both halves, beside the rows that are there once."""
    first, second = halves_of(state)
    return first.prefixed(_FIRST).join(second.prefixed(_SECOND))


def halves_of(state: RowState) -> tuple[RowState, RowState]:
    """The vectors of the first rows, and of the second ones."""
    if not isinstance(state, DoubledState):
        raise TypeError("The state of doubled rows must be made by their `state`.")
    return state._first, state._second


def parted(part: RowState) -> tuple[RowState, RowState]:
    """The vectors of both halves of a block."""
    return part.unprefixed(_FIRST), part.unprefixed(_SECOND)


# -- functions of one block ------------------------------------------------------------


def _both_blocks(
    block: Any, part: RowState | None, f: Callable[..., Any], *broadcast: Any
) -> Any:
    halves = (None, None) if part is None else parted(part)
    return total(f(block, half, *broadcast) for half in halves)


def _twin_blocks(
    block: Any,
    part: RowState,
    signs: str,
    intercept: bool,
    has_state: bool,
    f: Callable[..., Any],
    *broadcast: Any,
) -> Any:
    halves = parted(part)
    y = [getattr(half, signs) for half in halves]
    twins = linalg.twins(block, y, intercept)
    return total(
        f(twin, half if has_state else None, *broadcast)
        for twin, half in zip(twins, halves, strict=True)
    )


def _twin_product(
    block: Any,
    part: RowState,
    intercept: bool,
    weights: Callable[[RowState], Vector],
    w: Vector,
) -> Vector:
    first, second = (weights(half) for half in parted(part))
    signed = linalg.SignedBlock(block, np.ones(block.shape[0]), intercept)
    return linalg.weighted_product(signed, first + second, w)


def _both_parts(part: RowState, f: Callable[..., Any], *broadcast: Any) -> Any:
    return total(f(half, *broadcast) for half in parted(part))
