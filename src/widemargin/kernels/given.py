"""Kernel values of all pairs of rows, as they are given: the core solves with them.

A matrix of the user's, or what a callable returned for all rows, once. Rows of a
problem are gathered from it as float32 when a variable first moves; certificates take
its numbers themselves.
"""

import functools
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from widemargin import _core
from widemargin.arrays import Index64, Vector
from widemargin.kernels.core_engine import HUGE
from widemargin.kernels.definite import is_indefinite, sample
from widemargin.kernels.given_engines import ASYMMETRY, refuse_pair
from widemargin.kernels.grouped import (
    IN_PARTS,
    Grouped,
)
from widemargin.kernels.kernel import Kernel
from widemargin.numerics.rounding import SINGLE, ValueBounds

# How far a value may lie above the root of k(x, x) k(z, z): rounding. Others show that
# the matrix is not positive semidefinite.
EXCESS = 1e-5
# Rows that a callable gets at a time, with all others: between two of its calls a time
# limit is noticed.
CALLED_ROWS = 512
# Multiplications that a value stands for: it is gathered, and steps read it. It says
# when a second thread is worth it. (2 and 32: 0.9 to 1.2 of the time by the clock,
# benchmarks/core/untuned.py.)
COST = 8.0


class AllPairs(Grouped):
    """Rows by groups, with the values of all pairs of them.

    Parameters
    ----------
    values : ndarray (m, m), float64
    diagonal : ndarray (m,), k(x, x)
    group : int ndarray (m,), the group of each row: 0, 1, ...
    """

    cost, in_a_row = COST, IN_PARTS

    def __init__(self, values: Vector, diagonal: Vector, group: NDArray[Any]) -> None:
        super().__init__(group)
        self._values, self.diagonal = values, diagonal

    def values(self, rows: Index64) -> Vector:
        """The values of all pairs of some rows: (k, k)."""
        return np.asarray(self._values[np.ix_(rows, rows)])

    @property
    def _groups(self) -> tuple[Any, ...]:
        """What the core takes: the values, where groups begin, and the diagonal."""
        return self._values, self._strips, self.count, self.order, self.diagonal

    def _ask(self, problems: tuple[Any, ...]) -> tuple[int, bool]:
        """Let the core solve problems; evaluations, and whether Ctrl-C ended it."""
        return _core.solve_given(*self._groups, *problems)

    def _add_up(
        self, sums: tuple[Any, ...], runs: Index64, out: tuple[Any, ...]
    ) -> None:
        """Let the core add up scores; runs share the values anyway."""
        asked: tuple[Any, ...] = (self._values, self.diagonal, *sums, *out)
        _core.sum_given(*asked)

    def _add_table(self, asked: tuple[Any, ...]) -> None:
        """Let the core make sums by a table."""
        given: tuple[Any, ...] = (self._values, self.diagonal, *asked)
        _core.sum_table_given(*given)


class GivenSamples(AllPairs):
    """Rows whose kernel values are what the user says.

    Parameters
    ----------
    values : ndarray (m, m), float64, finite
    group : int ndarray (m,), the group of each row: 0, 1, ...

    Attributes
    ----------
    is_fit, is_fit_exactly : bool
        Not where the values are too large for float32, or are seen not to be those of a
        positive semidefinite kernel.

    Raises
    ------
    ValueError
        Values that are not symmetric.
    """

    def __init__(self, values: Vector, group: NDArray[Any]) -> None:
        super().__init__(values, values.diagonal().copy(), group)
        lengths = np.sqrt(np.maximum(self.diagonal, 0.0))
        largest, share, apart, i, j = _core.given_facts(values, lengths)
        if apart > ASYMMETRY * largest:
            refuse_pair(values[i, j], values[j, i])
        some = sample(len(values))
        self.is_fit_exactly = share <= 1.0 + EXCESS
        self.is_fit_exactly &= not is_indefinite(values[np.ix_(some, some)])
        self.is_fit = self.is_fit_exactly and largest < HUGE
        # Beyond, where the share may be infinite, no lengths are asked for.
        self._lengths = lengths * np.sqrt(min(max(1.0, share), 1.0 + EXCESS))

    @functools.cached_property
    def _single(self) -> ValueBounds:
        return ValueBounds(SINGLE, np.zeros(len(self._lengths)), self._lengths)

    @functools.cached_property
    def _double(self) -> ValueBounds:
        return ValueBounds(0.0, np.zeros(len(self._lengths)), self._lengths)


def given_bytes(X: Any, kernel: Kernel) -> int:
    """Bytes that `given_values` takes beside X."""
    has_own = kernel.is_precomputed and _is_plain(X)
    return 0 if has_own else 8 * X.shape[0] ** 2


def given_values(X: Any, kernel: Kernel) -> Vector:
    """The values of all pairs of the rows of X: (m, m) float64.

    A callable makes them in blocks of rows, with a look at the deadline before each.
    """
    if kernel.is_precomputed:
        X = X.toarray() if sparse.issparse(X) else X
        return np.ascontiguousarray(X, dtype=np.float64)
    m = X.shape[0]
    out = np.empty((m, m))
    for start in range(0, m, CALLED_ROWS):
        some = slice(start, min(start + CALLED_ROWS, m))
        out[some] = kernel.called(X[some], X)
    return out


def _is_plain(X: Any) -> bool:
    """Whether X is what the core takes, as it is."""
    dense = not sparse.issparse(X)
    return dense and X.dtype == np.float64 and X.flags.c_contiguous
