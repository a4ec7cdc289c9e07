"""Engines of kernel values that the user gives: by a callable, or in a matrix."""

from abc import ABC, abstractmethod
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from widemargin.arrays import Index, Mask, Vector
from widemargin.data.memory import as_rows
from widemargin.data.rows import Rows
from widemargin.kernels.core_engine import HUGE, TOGETHER
from widemargin.kernels.kernel import Kernel
from widemargin.kernels.packed import Parts
from widemargin.numerics import twofold
from widemargin.numerics.rounding import SINGLE, SLACK, ValueBounds, gamma_n
from widemargin.system import deadline

# Rows of a callable kernel that are asked for together.
CALLED_ROWS = 192
# Share of the largest value by which k(x, z) and k(z, x) may differ: float32 rounding.
ASYMMETRY = 1e-5


def refuse_pair(one: float, other: float) -> NoReturn:
    """Refuse a kernel with these values of one pair of rows."""
    raise ValueError(
        "The kernel must be symmetric, k(x, z) = k(z, x). Got "
        f"{one:.6g} and {other:.6g} for one pair of rows instead."
    )


class GivenEngine(ABC):
    """Values of the user's, taken as they are: of a callable, or of a matrix."""

    cost = np.inf
    n_bytes = blocks_bytes = 0
    reads_kept = True
    roundings = TOGETHER + 2

    def __init__(self, X: Any, kernel: Kernel, dtype: Any, n_jobs: int | None) -> None:
        self._X, self._kernel, self._dtype = X, kernel, np.dtype(dtype)
        self._n_jobs = n_jobs
        self._largest = 0.0  # of the absolute values so far
        self.focus(None)

    @abstractmethod
    def values(self, I: Index | slice, J: Index | slice) -> Vector:  # noqa: E741
        """Values of rows I with rows J in float64: (len(I), len(J))."""

    def focus(self, rows: Index | None) -> None:
        """Let `compute` make values for these rows only."""
        self._rows = slice(None) if rows is None else rows
        self.parts = Parts(
            self._X.shape[0] if rows is None else len(rows), self._n_jobs
        )

    def cut(self, count: int) -> list[slice]:
        """Parts of so many rows."""
        size = CALLED_ROWS
        return [slice(a, min(a + size, count)) for a in range(0, count, size)]

    def block(self, I: Index, J: Index, out: NDArray[Any]) -> None:  # noqa: E741
        """Values of rows I with rows J into ``out`` (len(I), padded len(J))."""
        values = self.values(I, J)
        _, i, j = np.intersect1d(I, J, return_indices=True)
        self._refuse_asymmetric(values[np.ix_(i, j)])
        out[:, : len(J)] = values
        out[:, len(J) :] = 0

    def _refuse_asymmetric(self, values: Vector) -> None:
        """Refuse values of rows with themselves that are not symmetric."""
        apart = np.abs(values - values.T)
        if apart.max(initial=0.0) > ASYMMETRY * np.abs(values).max(initial=0.0):
            i, j = np.unravel_index(apart.argmax(), apart.shape)
            refuse_pair(values[i, j], values[j, i])

    def compute(
        self, J: Index, c: Vector | None, sums: Vector | None, out: Any, place: Index
    ) -> None:
        """Add K[:, J] c to the sums, and store the rows at their places, if any."""
        values = self.values(J, self._rows)
        self._largest = max(self._largest, float(np.abs(values).max(initial=0.0)))
        m = values.shape[1]
        if c is not None and sums is not None:
            sums[:m] += c @ values
        stored = place >= 0
        out[place[stored], :m] = values[stored]
        out[place[stored], m:] = 0

    def exact(self, rows: Index, J: Index, c: Vector) -> tuple[Vector, Vector]:
        """The sums K[rows, J] c in float64, and bounds of their errors: (rows,)."""
        out, errors, seen = np.zeros(len(rows)), np.zeros(len(rows)), J[:CALLED_ROWS]
        square = np.full((len(seen), len(seen)), np.nan)
        for some in self.cut(len(rows)):
            values = self.values(rows[some], J)
            _, i, j = np.intersect1d(rows[some], seen, return_indices=True)
            square[j] = values[i, : len(seen)]
            out[some] = values @ c
            errors[some] = gamma_n(len(J) + 2) * (np.abs(values) @ np.abs(c)) * SLACK
        known = np.flatnonzero(np.isfinite(square).all(axis=1))
        self._refuse_asymmetric(square[np.ix_(known, known)])
        return out, errors

    def twofold(
        self, rows: Index, J: Index, c: Vector
    ) -> tuple[Vector, Vector, Vector]:
        """The sums in twice the precision: high parts, errors, low parts."""
        out = np.empty((3, len(rows)))
        for some in self.cut(len(rows)):
            hi, lo, size = twofold.matvec(self.values(rows[some], J), c)
            out[:, some] = hi, twofold.bound(size, len(J)), lo
        return out[0], out[1], out[2]

    def twofold_diag(self) -> tuple[Vector, Vector, Vector]:
        """The diagonal of K, alike: (m,)."""
        diagonal = self._kernel.diag(self._X)
        return diagonal, np.zeros(len(diagonal)), np.zeros(len(diagonal))

    @property
    def diag_errors(self) -> Vector:
        """Bounds of the errors of the diagonal: none, (m,)."""
        return np.zeros(self._X.shape[0])

    @property
    def bounds(self) -> ValueBounds:
        """Bounds of the values that were made so far: they are exact, but kept."""
        m = self._X.shape[0]
        eps = 0.0 if self._dtype == np.float64 else SINGLE
        return ValueBounds(eps, np.zeros(m), np.full(m, np.sqrt(self._largest)))


class CallableEngine(GivenEngine):
    """Values of a callable."""

    @property
    def is_rough(self) -> bool:
        """Whether float32 has too few exponents: that is not known."""
        return False

    def bytes_of(self, rows: Index) -> float:
        """No limit is enough: it would get a copy of the rows."""
        return np.inf

    def values(self, I: Index | slice, J: Index | slice) -> Vector:  # noqa: E741
        """What the callable returns for rows I and J: (len(I), len(J))."""
        return self._kernel.called(self._X[I], self._X[J])

    def selected(self, rows: Rows, mask: Mask) -> Rows:
        """The rows of a mask."""
        return rows.select(mask)

    def vectors(self, J: Index | slice) -> Any:
        """The rows J themselves."""
        return self._X[J]


class MatrixEngine(GivenEngine):
    """Values of a matrix that holds the values of all pairs of rows."""

    @property
    def is_rough(self) -> bool:
        """Whether float32 has too few exponents."""
        return not self._X.diagonal().max() < HUGE  # no value is above all of these

    def bytes_of(self, rows: Index) -> float:
        """Bytes beside the values: none."""
        return 0.0

    def values(self, I: Index | slice, J: Index | slice) -> Vector:  # noqa: E741
        """What the matrix holds in rows I and columns J: (len(I), len(J))."""
        deadline.check()
        rows = self._X[I]
        rows = rows.toarray() if sparse.issparse(rows) else rows
        return np.asarray(rows[:, J], dtype=np.float64)

    def selected(self, rows: Rows, mask: Mask) -> Rows:
        """The rows and columns of a mask."""
        return as_rows(self._X[np.ix_(mask, mask)])

    def vectors(self, J: Index | slice) -> Any:
        """The columns of the rows J: (l,)."""
        return np.arange(self._X.shape[0])[J]
