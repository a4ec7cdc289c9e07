"""Columns brought to one scale: what training learns, and a model keeps.

A `Scaling` is one map x -> (x - shift) / scale of the columns. The scalers of
scikit-learn, one after another, are one of them.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from widemargin.arrays import Vector
from widemargin.data.memory import as_rows
from widemargin.data.rows import Rows
from widemargin.numerics import linalg

# Numbers of a dense block that are copied at a time: half a MiB, which a cache holds.
_NUMBERS = 1 << 16

SCALES = ("standard", "minmax", "maxabs")
# Scales of columns that are so many times apart call for scaling.
UNEVEN = 1000.0
# Standard deviations below this share of the mean are rounding.
ROUNDING = 1e-7


@dataclass(frozen=True)
class Scaling:
    """The map x -> (x - shift) / scale of the columns of rows.

    Attributes
    ----------
    shift : ndarray (n,), finite
    scale : ndarray (n,), finite and not zero

    Notes
    -----
    float32 rows stay float32, as with the scalers of scikit-learn; integers become
    float64. Sparse rows stay sparse where all of ``shift`` is zero.
    """

    shift: Vector
    scale: Vector

    def __post_init__(self) -> None:
        ends = np.concatenate([self.shift, self.scale])
        if self.shift.shape != self.scale.shape or not np.isfinite(ends).all():
            raise ValueError("A scaling must have finite shifts, and as many scales.")
        if not self.scale.all():
            raise ValueError("A scaling must have scales that are not 0.")

    @property
    def rank(self) -> int:
        """Number of columns."""
        return len(self.shift)

    @property
    def is_shifted(self) -> bool:
        """Whether some column moves, so that its zeros do not stay zeros."""
        return bool(self.shift.any())

    def then(self, after: "Scaling") -> "Scaling":
        """The map that is this one and then another."""
        with np.errstate(over="ignore", invalid="ignore"):
            shift = self.shift + self.scale * after.shift
            return Scaling(shift, self.scale * after.scale)

    def map(self, block: Any) -> Any:
        """The scaled rows of a dense or CSR block (k, n); a new array.

        Numbers out of range become infinities, which who uses the rows refuses.
        """
        dtype = _float_of(block.dtype)
        with np.errstate(over="ignore", invalid="ignore"):
            if sparse.issparse(block):
                if not self.is_shifted:
                    return _divided(block, self.scale, dtype)
                block = block.toarray()
            rows = np.array(block, dtype=dtype)
            rows -= self.shift
            rows /= self.scale
        return rows

    def view(self, rows: Rows) -> Rows:
        """The scaled rows, made block by block in every sweep."""
        density = 1.0 if self.is_shifted else rows.density
        view = rows.mapped(_OfRows(self, _float_of(rows.dtype), density))
        view.names = rows.names
        return view

    def applied(self, rows: Rows) -> Rows:
        """The scaled rows: a copy of what is in memory, a view of what is not."""
        X = rows.in_memory()
        if X is None:
            return self.view(rows)
        scaled = as_rows(self.map(X), **rows.options)
        scaled.names = rows.names
        return scaled

    def folded(self, w: Vector, b: float) -> tuple[Vector, float]:
        """Weights and intercept of the same function of the rows before the map."""
        with np.errstate(over="ignore", invalid="ignore"):
            inner = w / self.scale
            return inner, float(b - inner @ self.shift)


def learned(rows: Rows, kind: str) -> Scaling:
    """The scaling of the columns of rows, by two sweeps at most.

    Parameters
    ----------
    rows : Rows (m, n)
    kind : {"standard", "minmax", "maxabs"}
        "standard": mean 0 and standard deviation 1. "minmax": from 0 to 1. "maxabs":
        the largest size is 1. A column of one number becomes 0, by "maxabs" 1 or -1.

    Returns
    -------
    Scaling
        Rows with zeros that are not stored are not shifted, as no zero would stay one.
        "standard" divides then by the standard deviation, and "minmax" by the length of
        the smallest interval that holds 0 and the column.

    Raises
    ------
    ValueError
        NaN or an infinity in the rows, or a column whose spread is not finite.

    Notes
    -----
    A shift changes nothing for a kernel of differences ("rbf", "laplacian") with a
    number as gamma, and nothing for a linear machine with a free intercept.
    """
    low, high, mean = _read_extremes(rows)
    zero = np.zeros(rows.shape[1])
    is_sparse = rows.density < 1.0
    if kind == "maxabs":
        return Scaling(zero, _positive(np.maximum(np.abs(low), np.abs(high))))
    if kind == "minmax":
        if is_sparse:
            low, high = np.minimum(low, 0.0), np.maximum(high, 0.0)
        with np.errstate(over="ignore"):
            shift, scale = low, _spread(rows, high - low)
    else:
        found = rows.sweep(_squares_around, None, mean) / rows.shape[0]
        shift, scale = mean, _spread(rows, np.where(low < high, np.sqrt(found), 0.0))
        shift = np.where(low < high, shift, low)  # a mean of equal numbers is rounded
    return Scaling(zero if is_sparse else shift, scale)


def uneven(rows: Rows) -> tuple[int, int, float] | None:
    """Which columns have the least and the largest scale, and how many times apart.

    Parameters
    ----------
    rows : Rows (m, n)

    Returns
    -------
    (int, int, float) or None
        None where they are less than 1,000 times apart: scaling may still help. Columns
        of one number do not count.

    Notes
    -----
    Two sweeps at most. The scale is the standard deviation; of rows with zeros that are
    not stored it is the largest size, as there rare words deviate little.
    """
    mean, scale = rows.moments
    varying = np.flatnonzero(scale > ROUNDING * np.abs(mean))
    if rows.density < 1.0:
        low, high, _ = _read_extremes(rows)
        scale = np.maximum(np.abs(low), np.abs(high))
    if not varying.size:
        return None
    least = int(varying[np.argmin(scale[varying])])
    most = int(varying[np.argmax(scale[varying])])
    factor = float(scale[most] / scale[least])
    return (least, most, factor) if factor >= UNEVEN else None


@dataclass(frozen=True)
class _OfRows:
    """A scaling with what the scaled rows are stored in."""

    scaling: Scaling
    dtype: np.dtype[Any]
    density: float

    @property
    def rank(self) -> int:
        return self.scaling.rank

    def map(self, block: Any) -> Any:
        return self.scaling.map(block)


@dataclass(frozen=True)
class _Extremes:
    """The least and the largest number of each column; a sum is those of both."""

    low: Vector
    high: Vector

    def __add__(self, other: "_Extremes") -> "_Extremes":
        low = np.minimum(self.low, other.low)
        return _Extremes(low, np.maximum(self.high, other.high))


def _read_extremes(rows: Rows) -> tuple[Vector, Vector, Vector]:
    """Least and largest numbers, and means, of the columns: (n,) each."""
    found, sums = rows.sweep(_extremes)
    ends = np.concatenate([found.low, found.high])
    if not np.isfinite(ends).all():
        rows.refuse_nonfinite()
    with np.errstate(invalid="ignore"):
        mean = np.clip(sums / rows.shape[0], found.low, found.high)
    return found.low, found.high, mean


def _extremes(block: Any, part: None) -> tuple[_Extremes, Vector]:
    block = linalg.formed(block)
    sums, _ = linalg.column_sums(block)
    if not sparse.issparse(block):
        low, high = block.min(axis=0), block.max(axis=0)
    else:
        low, high = (
            e.toarray().ravel() for e in (block.min(axis=0), block.max(axis=0))
        )
    return _Extremes(low.astype(np.float64), high.astype(np.float64)), sums


def _squares_around(block: Any, part: None, mean: Vector) -> Vector:
    """Sums of (x - mean)^2 of the columns; squares of sums would lose large means."""
    block = linalg.formed(block)
    with np.errstate(over="ignore", invalid="ignore"):
        if not sparse.issparse(block):
            return _dense_squares(block, mean)
        used = slice(block.nnz)
        columns, away = (
            block.indices[used],
            block.data[used] - mean[block.indices[used]],
        )
        stored = np.bincount(columns, minlength=len(mean))
        squares = np.bincount(columns, away * away, len(mean))
        return np.asarray(squares + (block.shape[0] - stored) * mean * mean)


def _dense_squares(block: Any, mean: Vector) -> Vector:
    """Sums of (x - mean)^2 of a dense block, some rows at a time, copied as float64."""
    squares, size = np.zeros(len(mean)), max(1, _NUMBERS // len(mean))
    for start in range(0, block.shape[0], size):
        away = block[start : start + size] - mean
        squares += np.einsum("ij,ij->j", away, away)
    return squares


def _spread(rows: Rows, spread: Vector) -> Vector:
    """A spread as a scale."""
    if not np.isfinite(spread).all():
        j = int(np.argmin(np.isfinite(spread)))
        name = j if rows.names is None else f"'{rows.names[j]}'"
        raise ValueError(
            f"X must hold numbers whose spread is finite. Column {name} is too large."
        )
    return _positive(spread)


def _positive(scale: Vector) -> Vector:
    """A scale, where it is 0 replaced by 1: nothing is to be scaled there."""
    return np.where(scale > 0.0, scale, 1.0)


def _float_of(dtype: Any) -> np.dtype[Any]:
    """What scaled numbers are stored in."""
    return np.dtype(np.float32 if dtype == np.float32 else np.float64)


def _divided(block: Any, scale: Vector, dtype: Any) -> Any:
    """A CSR block whose columns are divided by their scales; it shares the indices."""
    rows = sparse.csr_array(block.shape, dtype=dtype)
    data = block.data.astype(dtype)
    data /= scale[block.indices]
    rows.data, rows.indices, rows.indptr = data, block.indices, block.indptr
    return rows
