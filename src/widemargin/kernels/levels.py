"""Samples of levels, as images have them: entries that are a unit times few integers.

Where all entries of dense rows are a unit times 0 to 255, distances are sums of
products of bytes. These are exact, and some processors add up 64 of them at once:
values of 784 pixels take a quarter of the time of float32, and samples of the memory.
By tiles of 16 rows and 16 samples they take an eighth of it. Others add up 16, of the
groups of features that a row has: there it is a fifth where two thirds of them are
zero.

Entries that float32 has rounded, pixels divided by 255, are such up to that rounding:
distances of their levels are then off by less than float32 would make them, and values
in float64 are of the entries themselves.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from widemargin import _core
from widemargin.arrays import Index, Vector
from widemargin.kernels.core_sums import own_sums
from widemargin.kernels.layout import Layout
from widemargin.kernels.packed import (
    COPIED,
    GROUP,
    STRIP,
    Batches,
    Parts,
    Samples,
    aligned,
    padded,
)
from widemargin.numerics import linalg
from widemargin.numerics.rounding import gamma_n, value_bounds

# Features that the core multiplies together, and up to how many of them squared
# distances, of at most 255^2 each, are numbers of 32 bits; from how many on products
# take most of the time.
TOGETHER, LEAST_COLUMNS, MOST_COLUMNS = 4, 32, (2**31 - 1) // 255**2
# Levels that are multiplied at once where it takes them all: else groups are listed.
BYTES = 64
# Terms of a sum of products that rounds as much as entries and their unit, and more.
ROUNDED_TERMS = 32
# Entries that are copied while one becomes a level (1.5 ns): two threads take 0.8 of
# the time of one for 800,000 entries, 0.65 for ten times as many.
DEAR = 8
# Levels above zero of the unit, and rows that are looked at first.
MOST_LEVEL, SOME_ROWS = 255, 64
# Up to which share of it an entry is a unit times its level: 9 roundings of float64; or
# its own rounding in float32, and that of the unit. Squared distances are off by 4 such
# shares of |x|^2 + |z|^2 at most, which are 8.4 units: bounds allow for LEAST_COLUMNS.
EXACT, SINGLE = 1e-15, 2.1 * 2.0**-24


class Levels:
    """All rows X (m, n) as levels of a unit.

    Attributes
    ----------
    unit : float
    are_exact : bool, whether entries differ from theirs by roundings of float64 alone
    width : int, features with those that pad
    by_groups : bool, whether rows list the groups of features that are not all zero
    rows : uint8 ndarray (m * width,), one row after the other: some are taken again
        and again, and lie far apart in strips
    packed : uint8 ndarray, (strips, width / 4, 64, 4) one after the other
    squares, sums : int32 ndarray (m,), of the levels of each row
    """

    def __init__(self, X: Any, unit: float, parts: Parts, off: float = EXACT) -> None:
        m, n = X.shape
        self.are_exact = off == EXACT
        self.by_groups = _core.levels_at_once() < BYTES
        self.unit, self.width = unit, padded(n, TOGETHER)
        self.rows = np.zeros(m * self.width, np.uint8)
        packed = aligned((padded(m) * self.width,), np.uint8)
        packed[m // STRIP * STRIP * self.width :] = 0
        self.squares, self.sums = np.zeros(m, np.int32), np.zeros(m, np.int32)
        self.are_all = True
        Z = linalg.in_core(X)

        def task(strips: slice) -> None:
            begin, end = strips.start * STRIP, min(strips.stop * STRIP, m)
            room = self.rows, packed, self.squares, self.sums
            if not _core.pack_levels(Z, begin, end, unit, off, self.width, *room):
                self.are_all = False

        parts(task, DEAR * m * n)
        self.packed = packed

    def of(self, rows: Index) -> NDArray[np.uint8]:
        """The levels of some rows: (k, width)."""
        found = np.empty((len(rows), self.width), np.uint8)
        _core.take_levels(self.rows, self.width, rows, False, found.ravel())
        return found


@np.errstate(over="ignore", invalid="ignore")  # of levels out of range
def levels_of(X: Any, layout: Layout, parts: Parts) -> Levels | None:
    """The levels of rows, where they are, and where this processor is fast at them."""
    suits = layout.expands_squares and not layout.is_sparse
    suits = suits and layout.dtype == np.float32
    if not (suits and LEAST_COLUMNS <= X.shape[1] <= MOST_COLUMNS):
        return None
    if _core.levels_at_once() == 1:
        return None
    some = X[:SOME_ROWS]
    some = some.data if sparse.issparse(some) else some[some != 0]
    some = some.astype(np.float64)
    if not (some.size and np.isfinite(some).all() and some.min() > 0):
        return None
    # The least level is one unit, or the largest one is 255 of them.
    for unit in {some.min(), some.max() / MOST_LEVEL}:
        off = (np.abs(np.rint(some / unit) * unit - some) / some).max()
        if off <= EXACT or (off <= SINGLE and _is_near_zero(layout)):
            found = Levels(X, float(unit), parts, EXACT if off <= EXACT else SINGLE)
            if found.are_all:
                return found
    return None


def _is_near_zero(layout: Layout) -> bool:
    """Whether |x|^2, which errors grow with, is of the size of |x - center|^2."""
    return float(layout.center @ layout.center) <= layout.reach


class LevelSamples(Samples):
    """Some of the samples, or all, as levels."""

    def __init__(
        self,
        layout: Layout,
        levels: Levels,
        index: Index | None,
        parts: Parts,
    ) -> None:
        self.layout, self.parts, self.is_sparse = layout, parts, False
        m = self.m = len(levels.sums) if index is None else len(index)
        self.entries, self._inside = levels.width / TOGETHER, ()
        self._packed = levels.packed
        squares, sums = levels.squares, levels.sums
        if index is not None:
            self._packed = self._chosen(levels, index)
            squares, sums = squares[index], sums[index]
        size = padded(m)
        self.norms, norms = np.zeros(size, layout.dtype), np.zeros(size, np.int32)
        self.norms[:m] = squares * levels.unit**2
        norms[:m] = squares
        if not levels.by_groups:
            norms[:m] = squares.astype(np.int64) - 256 * sums.astype(np.int64)
        none, numbers = np.zeros(size, layout.dtype), (levels.unit, m, levels.width)
        self.core = _core.strips_of_levels(
            self._packed, norms, none, *numbers, levels.by_groups
        )

    def _chosen(self, levels: Levels, index: Index) -> NDArray[np.uint8]:
        width = levels.width
        packed = aligned((padded(self.m) * width,), np.uint8)
        packed[self.m // STRIP * STRIP * width :] = 0

        def task(some: slice) -> None:
            rows = index[some.start * STRIP : some.stop * STRIP]
            out = packed[some.start * STRIP * width : some.stop * STRIP * width]
            _core.take_levels(levels.rows, width, rows, True, out)

        self.parts(task, COPIED * packed.size)
        return packed


class LevelBatches(Batches):
    """Rows as levels that meet samples."""

    def __init__(self, layout: Layout, X: Any, levels: Levels) -> None:
        super().__init__(layout, X, np.zeros(X.shape[0], layout.dtype))
        self.size = max(GROUP, self.size // GROUP * GROUP)  # as many are made at once
        self._levels, self.n_bytes = levels, levels.rows.nbytes

    def take(self, J: Index, X: Samples) -> Any:
        """The batch of rows J."""
        levels, none = self._levels, self._norms[: len(J)]
        found, width = levels.of(J), levels.width
        bytes_of = found.ravel()
        if not levels.by_groups:  # less 128
            rows: NDArray[np.int8] = (bytes_of ^ np.uint8(128)).view(np.int8)
            return _core.batch_of_levels(rows, levels.squares[J], none, width)
        which, listed = np.nonzero(found.view(np.uint32))
        ends = np.searchsorted(which, np.arange(len(J) + 1))
        lists = ends[:-1], ends[1:], listed.astype(np.int32)
        rows = bytes_of.view(np.int8)
        return _core.batch_of_levels(rows, levels.squares[J], none, width, *lists)


class LevelSums:
    """Sums sum_j c_j k(x_i, x_j) in float64 over rows J of levels.

    Parameters
    ----------
    layout : Layout of float64 for rows of levels
    X : the rows (m, n), and ``levels`` of them
    J, c : int and float64 ndarray (k,)
    n_jobs : int or None, threads
    """

    def __init__(
        self,
        layout: Layout,
        X: Any,
        levels: Levels,
        J: Index,
        c: Vector,
        n_jobs: int | None,
    ) -> None:
        self._layout, self._levels, self._n_jobs = layout, levels, n_jobs
        self._J, self._c = J, c
        self._batches = LevelBatches(layout, X, levels)

    def _samples(self, rows: Index) -> LevelSamples:
        parts = Parts(len(rows), self._n_jobs)
        return LevelSamples(self._layout, self._levels, rows, parts)

    def at_own_rows(self) -> Vector:
        """Those of the rows J, by half of the values: (k,)."""
        J = self._J

        def take(some: slice, samples: Samples) -> Any:
            """Some of the rows J as a batch."""
            return self._batches.take(J[some], samples)

        return own_sums(
            self._c, self._batches, take, lambda index: self._samples(J[index])
        )

    def __call__(self, rows: Index) -> Vector:
        """Those of other rows: (len(rows),)."""
        samples = self._samples(rows)
        sums = np.zeros((1, padded(len(rows))))
        for some in self._batches.cut(len(self._J)):
            batch = self._batches.take(self._J[some], samples)
            weights = self._c[some, np.newaxis].copy()
            samples.sums(batch, len(weights), weights, sums)
        return sums[0, : len(rows)]

    def errors(self, rows: Index) -> Vector:
        """What rounding may do to them, at most: (len(rows),).

        An entry is a unit times its level up to 9 units of rounding. So a squared
        distance is off by 36 units of |x|^2 + |z|^2 at most, which are not more than 18
        terms of a sum of products would be.
        """
        form, unit = self._layout.form, self._levels.unit
        lengths = self._levels.squares * unit**2
        of = [
            value_bounds("decay", form[1:], ROUNDED_TERMS, lengths[some])
            for some in (rows, self._J)
        ]
        return of[0].sums(of[1], self._c, gamma_n(len(self._J) + 4))
