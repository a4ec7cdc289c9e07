"""Rows that a sweep picks out, and where they go: into memory, or stay on a cluster."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from widemargin.arrays import Index
from widemargin.data.memory import as_rows
from widemargin.data.state import RowState
from widemargin.numerics import linalg


@dataclass(frozen=True)
class Kept:
    """Some rows of a block, and their vectors, as a sweep returns them.

    Added up they are those of all blocks, in order. Rows on a cluster keep them there:
    their sweeps return rows and their row state in its place.

    Attributes
    ----------
    blocks : list of matrices
    vectors : dict of lists of vectors, by name
    """

    blocks: list[Any]
    vectors: dict[str, list[NDArray[Any]]]

    def __add__(self, other: "Kept") -> "Kept":
        both = {
            name: found + other.vectors[name] for name, found in self.vectors.items()
        }
        return Kept(self.blocks + other.blocks, both)

    def rows(self, options: Mapping[str, Any]) -> tuple[Any, RowState] | None:
        """Rows in memory with their vectors; None where there are none."""
        blocks = [block for block in self.blocks if block.shape[0]]
        if not blocks:
            return None
        rows = as_rows(linalg.stack(blocks), **options)
        return rows, rows.state(**{name: self.vector(name) for name in self.vectors})

    def vector(self, name: str) -> NDArray[Any]:
        """One vector of all rows."""
        return np.concatenate(self.vectors[name])


@dataclass(frozen=True)
class KeptThere:
    """Rows that were kept where they are: how many in each lane.

    Attributes
    ----------
    number : int, the name of the rows there
    counts : dict of rows by lane
    stored : int, entries that are stored
    columns, dtype : of the rows
    vectors : dict of the dtypes of their vectors
    """

    number: int
    counts: dict[int, int]
    stored: int
    columns: int
    dtype: Any
    vectors: dict[str, Any]

    def __add__(self, other: "KeptThere") -> "KeptThere":
        counts, stored = {**self.counts, **other.counts}, self.stored + other.stored
        one = self if self.columns else other
        return replace(one, counts=counts, stored=stored)


def exchanged(value: Any, kind: type, f: Callable[[Any], Any]) -> Any:
    """A value of a sweep with f(x) in the place of each x of a kind, in tuples too."""
    if isinstance(value, kind):
        return f(value)
    if type(value) is tuple:
        return tuple(exchanged(x, kind, f) for x in value)
    return value


@dataclass(frozen=True)
class Spread:
    """A sample of m rows: one random row of each of ``size`` equal slices.

    Anywhere in its slice, or periodic data would show one face only.
    """

    m: int
    size: int
    seed: int = 0

    def index(self) -> Index:
        """The rows, in order."""
        offset = np.random.default_rng(self.seed).integers(0, self.m, self.size)
        found: Index = (np.arange(self.size) * self.m + offset) // self.size
        return found

    def among(self, first: int, count: int) -> Index:
        """Its rows among some that follow each other, counted from there."""
        a = max(0, first * self.size // self.m - 1)
        b = min(self.size, (first + count) * self.size // self.m + 2)
        index = self.index()[a:b]
        low, high = np.searchsorted(index, [first, first + count])
        return index[low:high] - first
