"""Columns of a kernel matrix whose rows occur twice: values are made once."""

from typing import Any, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from widemargin.arrays import Index, Mask, Vector
from widemargin.data.doubled import DoubledRows
from widemargin.data.rows import Rows
from widemargin.kernels.kernel import Kernel
from widemargin.kernels.matrix import Columns
from widemargin.kernels.packed import aligned, padded
from widemargin.numerics.rounding import ValueBounds


def columns_of(
    rows: Rows,
    kernel: Kernel,
    memory_limit: int | None = None,
    n_jobs: int | None = None,
) -> Columns:
    """The columns of some rows, which may occur twice."""
    if isinstance(rows, DoubledRows):
        single = Columns(rows.base, kernel, memory_limit, n_jobs)
        # It has what problems ask of columns.
        return cast(Columns, DoubledColumns(single))
    return Columns(rows, kernel, memory_limit, n_jobs)


class DoubledColumns:
    """The kernel matrix [[K, K], [K, K]], as `Columns` has it, by that of K (m, m).

    Rows i and m + i are the same sample: a value of K is made once for all four places.

    Parameters
    ----------
    single : Columns, of the samples

    Attributes
    ----------
    twins : int, m
    """

    def __init__(self, single: Columns) -> None:
        self.single, self._m = single, single.shape[0]
        self.twins = self._m
        self.shape = 2 * self._m, 2 * self._m
        self.focus(None)

    def __getattr__(self, name: str) -> Any:
        if name in _OF_ONE:
            return getattr(self.single, name)
        raise AttributeError(name)

    def select(self, mask: Mask) -> "DoubledColumns":
        """The columns where a mask, the same for both halves, is true."""
        return DoubledColumns(self.single.select(mask[: self._m]))

    # -- where values are made ---------------------------------------------------------

    def can_focus(self, rows: Index) -> bool:
        """Whether `focus` on these rows is worth it, and has room."""
        return self.single.can_focus(np.flatnonzero(self._samples_of(rows)))

    def _samples_of(self, rows: Index) -> Mask:
        """The samples of some rows, as a mask: (m,)."""
        some = np.zeros(self._m, bool)
        some[rows % self._m] = True
        return some

    def focus(self, rows: Index | None) -> None:
        """Let `add` make sums for these rows only; None: for all."""
        if rows is not None and rows is getattr(self, "_focused", None):
            return
        self._focused, self._place = rows, None
        some = None
        if rows is not None:
            some, self._place = self._at_once(rows)
        self.single.focus(some)
        self.width = padded(2 * self._m if rows is None else len(rows))

    # -- values ------------------------------------------------------------------------

    def block(
        self,
        I: ArrayLike,  # noqa: E741
        J: ArrayLike,
        out: NDArray[Any] | None = None,
    ) -> NDArray[Any]:
        """Kernel values of rows I with rows J: see `Columns.block`."""
        return self.single.block(np.asarray(I) % self._m, np.asarray(J) % self._m, out)

    def values(self, I: ArrayLike, J: ArrayLike) -> Vector:  # noqa: E741
        """Kernel values in float64: see `Columns.values`."""
        return self.single.values(np.asarray(I) % self._m, np.asarray(J) % self._m)

    def diag(self) -> Vector:
        """The diagonal: (2 m,)."""
        return np.tile(self.single.diag(), 2)

    @property
    def diag_errors(self) -> Vector:
        """Bounds of the errors of `diag`: (2 m,)."""
        return np.tile(self.single.diag_errors, 2)

    @property
    def value_bounds(self) -> ValueBounds:
        """Bounds of the values that `add` uses: see `Columns.value_bounds`."""
        one = self.single.value_bounds
        return ValueBounds(one.eps, np.tile(one.h, 2), np.tile(one.s, 2))

    # -- expansions --------------------------------------------------------------------

    def add(
        self,
        J: ArrayLike,
        c: Vector,
        sums: Vector,
        again: Mask | None = None,
    ) -> Vector:
        """Add the columns J times c to ``sums``, (width,): see `Columns.add`."""
        some = aligned((self.single.width,), np.float64)
        some[:] = 0.0
        once, changes = self._once(J, c)
        if again is not None:  # a sample is, where one of its rows is
            again = self._samples_of(np.asarray(J)[again])[once]
        read = self.single.add(once, changes, some, again)
        if self._place is not None:
            sums[: len(self._place)] += some[self._place]
            return read
        sums[: self._m] += some[: self._m]
        sums[self._m : 2 * self._m] += some[: self._m]
        return read

    def exact(self, rows: Index, J: Index, c: Vector) -> Vector:
        """Sums in float64: see `Columns.exact`."""
        return self.bounded(rows, J, c)[0]

    def bounded(self, rows: Index, J: Index, c: Vector) -> tuple[Vector, Vector]:
        """Sums in float64 and bounds of their errors: see `Columns.bounded`."""
        some, place = self._at_once(rows)
        values, errors = self.single.bounded(some, *self._left(J, c))
        return values[place], errors[place]

    def twofold(
        self, rows: Index, J: Index, c: Vector
    ) -> tuple[Vector, Vector, Vector]:
        """Sums in twice the precision: see `Columns.twofold`."""
        some, place = self._at_once(rows)
        hi, errors, lo = self.single.twofold(some, *self._left(J, c))
        return hi[place], errors[place], lo[place]

    def _once(self, J: ArrayLike, c: Vector) -> tuple[Index, Vector]:
        """Samples, each once, and the sums of their coefficients where not zero."""
        some, place = self._at_once(np.asarray(J))
        sums = np.bincount(place, c, len(some))
        return some[sums != 0.0], sums[sums != 0.0]

    def _left(self, J: Index, c: Vector) -> tuple[Index, Vector]:
        """Samples and coefficients, without two of one sample that cancel each other.

        Nothing rounds then.
        """
        some, place = self._at_once(J)
        stays = np.bincount(place, c, len(some))[place] != 0.0
        return J[stays] % self._m, c[stays]

    def _at_once(self, rows: Index) -> tuple[Index, Index]:
        """The samples of some rows, each once and in order, and where each row has its.

        Without a sort: there are at most as many as samples.
        """
        mask = self._samples_of(rows)
        return np.flatnonzero(mask), (np.cumsum(mask) - 1)[rows % self._m]

    @property
    def roundings(self) -> int:
        """How often `add` rounds: as `Columns` do, and for both coefficients."""
        return self.single.roundings + 1


# What is asked of the samples' columns as it is.
_OF_ONE = (
    "rows",
    "kernel",
    "evaluations",
    "hits",
    "dtype",
    "block_dtype",
    "block_rows",
    "limit",
    "n_bytes",
    "cost",
    "keeps_rows",
    "keep_rounded",
    "keep_exact",
    "is_rounded",
    "kept_error",
    "mirror",
    "refine",
)
