"""A vector of length m that stays where its rows are: a name of it, to ask by."""

import zlib
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from widemargin.data.blocks import Least
from widemargin.data.state import RowState


class RowVector:
    """A vector of a row state, (m,), that is read only where it must be.

    Its sums and what is made of it stay with the rows; `numpy.asarray` gathers it.

    Parameters
    ----------
    state : RowState with the vector
    name : str
    m : int, its length
    dtype : numpy dtype
    """

    ndim = 1
    __array_ufunc__ = None  # NumPy is not to gather it unasked

    def __init__(self, state: Any, name: str, m: int, dtype: DTypeLike) -> None:
        self.state, self.name = state, name
        self.shape, self.dtype = (m,), np.dtype(dtype)
        self.strides = (self.dtype.itemsize,)

    def __len__(self) -> int:
        return self.shape[0]

    def __repr__(self) -> str:
        return f"<{self.name}: {self.shape[0]:,} numbers beside their rows>"

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        found = self.state.gather(self.name)
        return np.asarray(found, dtype=dtype)

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice) and index == slice(None):
            return self
        index = np.asarray(index)
        if index.dtype.kind not in "iu" or index.ndim != 1:
            return np.asarray(self)[index]
        return self.state.pick(self.name, index)

    def __mul__(self, factor: "float | RowVector") -> "RowVector":
        """Products with a number, or with another vector beside the same rows."""
        if not isinstance(factor, RowVector):
            return self.map(_times, np.float64, float(factor))
        made = self * 1.0
        both = made.state.join(factor.state.prefixed("by."))
        both.sweep(_multiply, made.name, f"by.{factor.name}")
        return made

    __rmul__ = __mul__

    def __truediv__(self, divisor: float) -> "RowVector":
        return self.map(_over, np.float64, float(divisor))

    def copy(self) -> "RowVector":
        """The vector itself: nobody writes through it."""
        return self

    def sum(self, dtype: DTypeLike | None = None) -> float:
        """Its sum, exact where its entries are integers, whatever ``dtype``."""
        return float(self.state.sweep(_sum, self.name) or 0.0)

    def min(self) -> float:
        """Its smallest entry."""
        return float(self.state.sweep(_least, self.name, 1.0).key)

    def max(self) -> float:
        """Its largest entry."""
        return -float(self.state.sweep(_least, self.name, -1.0).key)

    def checksum(self) -> int:
        """A number that changes with the values, and with the lanes they lie in."""
        return int(self.state.sweep(_checksum, self.name) or 0)

    def put(self, source: "RowVector", places: "RowVector") -> None:
        """Write a vector of kept rows, by the numbers that these rows have here."""
        self.state.put(self.name, source, places)

    def map(
        self, f: Callable[..., Any], dtype: DTypeLike, *broadcast: Any
    ) -> "RowVector":
        """The vector f(part, ...), made where the rows are."""
        zero = np.broadcast_to(np.zeros((), dtype), self.shape)
        name = f"{self.name}_"  # another one: both are in one sweep
        made = self.state.beside(**{name: zero})
        self.state.join(made).sweep(_assign, self.name, name, f, *broadcast)
        return RowVector(made, name, self.shape[0], dtype)


def _times(part: NDArray[Any], factor: float) -> NDArray[Any]:
    return part * factor


def _over(part: NDArray[Any], divisor: float) -> NDArray[Any]:
    return part / divisor


def _multiply(part: RowState, name: str, other: str) -> None:
    setattr(part, name, getattr(part, name) * getattr(part, other))


def _sum(part: RowState, name: str) -> float:
    return float(getattr(part, name).sum())


def _checksum(part: RowState, name: str) -> int:
    return zlib.crc32(np.ascontiguousarray(getattr(part, name)).data)


def _least(part: RowState, name: str, sign: float) -> Least:
    return Least(float((sign * getattr(part, name)).min()))


def _assign(
    part: RowState, source: str, name: str, f: Callable[..., Any], *broadcast: Any
) -> None:
    setattr(part, name, f(getattr(part, source), *broadcast))
