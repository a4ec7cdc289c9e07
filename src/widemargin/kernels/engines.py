"""Engines, which make kernel values: the core, a callable or a matrix of the user.

`engine` chooses an engine for a kernel. A new engine, of a GPU for instance, needs the
members of `Engine` and a line in `engine`; and a line in `cross_values`, if it is to
make the values of other rows too.
"""

import functools
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, NoReturn, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from widemargin.data.blocks import Blocks
from widemargin.data.memory import as_rows
from widemargin.data.rows import Rows
from widemargin.kernels.core_sums import ROUNDED, CoreSums, kernel_values
from widemargin.kernels.kernel import Kernel
from widemargin.kernels.layout import Layout
from widemargin.kernels.levels import (
    LevelBatches,
    LevelSamples,
    LevelSums,
    levels_of,
)
from widemargin.kernels.packed import (
    GROUP,
    Batches,
    Parts,
    Samples,
    aligned,
    entries,
    known_lengths,
    packed_bytes,
    padded,
)
from widemargin.numerics import linalg, twofold
from widemargin.numerics.rounding import SINGLE, SLACK, UNIT, ValueBounds, gamma_n
from widemargin.system import deadline

Vector = NDArray[np.float64]
Index = NDArray[np.intp]

# Rows of a callable kernel that are asked for together.
CALLED_ROWS = 192
# Bytes of the samples of a block up to which they wait for the next one, where the
# limit has room for them.
KEPT_SAMPLES = 16 << 20
# The most rows, dense or kept, whose sum is one of the dtype.
TOGETHER = 8
# Rows whose sums in twice the precision are one task of a thread.
TWOFOLD_ROWS = 256
# Share of the largest value by which k(x, z) and k(z, x) may differ: float32 rounding.
ASYMMETRY = 1e-5
# Largest gamma |x - center|^2, or gamma |x - center|_1, in float32: there rounding
# changes values of exp by 5e-4.
ROUGH = 4096.0
# Columns up to which the rounding of |x|^2 in float32 is below a tenth of it.
PACKED_COLUMNS = 1 << 20
# Numbers that float32 can hold, and the products of a few of them.
TINY, HUGE = 1e-30, 1e30


class Engine(Protocol):
    """What makes the values of a kernel for all pairs of the rows of X (m, n).

    Values are of a dtype, float32 or float64; sums over them are float64. ``I`` and
    ``J`` are numbers of rows. Rows *in focus*, all of them at first, are the rows whose
    values `compute` makes.

    Attributes
    ----------
    cost : float, multiplications of a value, about; infinite where that is not known
    n_bytes : int, that it holds beside X
    roundings : int, how often a sum in `compute` rounds in the dtype
    parts : Parts, the rows in focus, cut for threads
    reads_kept : bool
        Whether sums may take rows of K that were stored: not where those of `compute`
        have other roundings, and less of them.
    blocks_bytes : int
        Bytes of a block, the one before it, and samples that wait for the next one.
    """

    cost: float
    n_bytes: int
    reads_kept: bool
    blocks_bytes: int

    @property
    def roundings(self) -> int:
        """How often a sum in `compute` rounds, in the dtype."""

    @property
    def parts(self) -> Parts:
        """The rows in focus, cut for threads."""

    @property
    def is_rough(self) -> bool:
        """Whether float32 has too few digits, or exponents, for these rows."""

    def bytes_of(self, rows: Index) -> float:
        """Bytes that these rows take in focus, while they are made so."""

    def focus(self, rows: Index | None) -> None:
        """Let `compute` make values for these rows only; None: for all."""

    def cut(self, count: int) -> list[slice]:
        """Parts of so many rows, each worth a call of `compute`."""

    def block(self, I: Index, J: Index, out: NDArray[Any]) -> None:  # noqa: E741
        """Values of rows I with rows J into ``out`` (len(I), padded len(J))."""

    def compute(
        self, J: Index, c: Vector | None, sums: Vector | None, out: Any, place: Index
    ) -> None:
        """Add K[:, J] c to the sums, and store rows J at their places in ``out``.

        Not where the place is negative; no sums where c is None.
        """

    def values(self, I: Index, J: Index) -> Vector:  # noqa: E741
        """Values of rows I with rows J in float64: (len(I), len(J))."""

    def exact(self, rows: Index, J: Index, c: Vector) -> tuple[Vector, Vector]:
        """The sums K[rows, J] c in float64, and bounds of their errors: (rows,)."""

    def twofold(
        self, rows: Index, J: Index, c: Vector
    ) -> tuple[Vector, Vector, Vector]:
        """The sums in twice the precision: high parts, errors, low parts."""

    def twofold_diag(self) -> tuple[Vector, Vector, Vector]:
        """The diagonal of K, alike: (m,)."""

    @property
    def diag_errors(self) -> Vector:
        """Bounds of the errors of the diagonal as `Kernel.diag` has it: (m,)."""

    @property
    def bounds(self) -> ValueBounds:
        """Bounds of the values that `compute` makes, and of their errors."""

    def selected(self, rows: Rows, mask: NDArray[np.bool_]) -> Rows:
        """The rows of X in a mask, as another engine would take them."""

    def vectors(self, J: Index | slice) -> Any:
        """What `cross_values` takes as the rows J."""


def engine(X: Any, kernel: Kernel, dtype: Any, n_jobs: int | None) -> Engine:
    """The engine of a kernel, with gamma as a number, for X dense or CSR (m, n)."""
    if kernel.is_named:
        return CoreEngine(X, kernel, dtype, n_jobs)
    if kernel.is_precomputed:
        return MatrixEngine(X, kernel, dtype, n_jobs)
    return CallableEngine(X, kernel, dtype, n_jobs)


def is_rough(layout: Layout, kernel: Kernel, X: Any, diagonal: Vector) -> bool:
    """Whether float32 has too few digits, or exponents, for rows and k(x, x) of them.

    Raises
    ------
    ValueError
        A value that is not finite.
    """
    if not np.isfinite(diagonal).all():
        raise ValueError(
            "The kernel must have finite values. Got k(x, x) = infinity or NaN at "
            f"row {np.argmin(np.isfinite(diagonal))}: scale the data, or take a "
            "smaller degree."
        )
    gamma, reach, vanishes = kernel.form[1], layout.reach, False
    if layout.is_distance and isinstance(X, np.ndarray):
        largest = linalg.reach(X, np.zeros(X.shape[1]), False)
    else:
        squares = linalg.row_squares(X)
        largest = squares.max()
        if not layout.is_distance:  # products of two rows must not vanish
            vanishes = squares.min(where=squares > 0.0, initial=HUGE) <= TINY
    in_range = max(diagonal.max(), largest) < HUGE and TINY < gamma < HUGE
    in_range = in_range and not vanishes
    far = layout.is_far and not layout.expands_squares
    return far or not (in_range and gamma * reach <= ROUGH)


class CoreEngine:
    """Values of a kernel that the core knows."""

    blocks_bytes = 0

    def __init__(self, X: Any, kernel: Kernel, dtype: Any, n_jobs: int | None) -> None:
        self._X, self._kernel, self._n_jobs = X, kernel, n_jobs
        self._layout = Layout(kernel.form, X, dtype)
        self._levels = levels_of(X, self._layout, self._parts(None))
        if self._levels is not None:
            self._layout.count_levels()
        self._in_focus: Samples | None = None
        # The samples of the last block, if they are packed, and their rows.
        self._of_block: tuple[Samples, Index] | None = None
        self.reads_kept = not self._layout.by_factors
        known = None if self._levels is not None else packed_bytes(self._layout, X)
        self.n_bytes = known or self._all.n_bytes + self._batches.n_bytes
        self.cost = self._all.entries if known is None else entries(self._layout, X)

    @functools.cached_property
    def _all(self) -> Samples:
        """All rows as samples, packed when they are first needed.

        A problem whose equal rows are merged needs those of the other problem only.
        """
        return self._samples_of(None, self._parts(None))

    @property
    def _samples(self) -> Samples:
        """The samples in focus."""
        return self._all if self._in_focus is None else self._in_focus

    def _samples_of(self, rows: Index | None, parts: Parts) -> Samples:
        if self._levels is not None:
            return LevelSamples(self._layout, self._levels, rows, parts)
        return Samples(self._layout, self._X, rows, parts)

    @functools.cached_property
    def _batches(self) -> Batches:
        if self._levels is not None:
            return LevelBatches(self._layout, self._X, self._levels)
        norms = None if self._all.is_sparse else self._all.norms
        return Batches(self._layout, self._X, norms)

    def _parts(self, rows: Index | None) -> Parts:
        return Parts(self._X.shape[0] if rows is None else len(rows), self._n_jobs)

    @property
    def parts(self) -> Parts:
        """The rows in focus, cut for threads."""
        return self._samples.parts

    @property
    def roundings(self) -> int:
        """Roundings of a sum in the dtype: a weight, a product, 8 or 16 rows."""
        return (GROUP if self._all.is_sparse else TOGETHER) + 2

    def bytes_of(self, rows: Index) -> float:
        """Bytes that these rows take as samples in focus, while they are made."""
        return self._all.bytes_of(rows)

    def focus(self, rows: Index | None) -> None:
        """Let `compute` make values for these rows only."""
        self._in_focus = None
        if rows is not None:
            self._in_focus = self._samples_of(rows, self._parts(rows))

    def cut(self, count: int) -> list[slice]:
        """Parts of so many rows, each worth a batch."""
        return self._batches.cut(count)

    @property
    def is_rough(self) -> bool:
        """Whether float32 has too few digits, or exponents."""
        values = self._kernel.diag(self._X)
        return is_rough(self._layout, self._kernel, self._X, values)

    def block(self, I: Index, J: Index, out: NDArray[Any]) -> None:  # noqa: E741
        """Values of rows I with rows J into ``out`` (len(I), padded len(J))."""
        samples = self._samples_of_block(J)
        for some in self.cut(len(I)):
            batch = self._batches.take(I[some], samples)
            samples.sums(batch, len(I[some]), None, None, out[some])

    def _samples_of_block(self, J: Index) -> Samples:
        """The rows J as samples; mostly many of them are those of the last block."""
        last, self._of_block = self._of_block, None  # if this ends early
        if last is None or len(last[1]) != len(J):
            samples = self._samples_of(J, self._parts(J))
        else:
            samples, before = last
            if self._levels is None and not samples.is_sparse:
                samples.replace(self._X, J, before)
            else:  # its threads are used again
                samples = self._samples_of(J, samples.parts)
        room = self.blocks_bytes - 2 * self._layout.dtype.itemsize * len(J) ** 2
        if samples.n_bytes <= min(KEPT_SAMPLES, room):
            self._of_block = samples, J.copy()
        return samples

    def compute(
        self, J: Index, c: Vector | None, sums: Vector | None, out: Any, place: Index
    ) -> None:
        """Add K[:, J] c to the sums, and store the rows at their places, if any."""
        weights = None if c is None else np.ascontiguousarray(c)[:, np.newaxis]
        total = None if sums is None else sums[np.newaxis]
        batch = self._batches.take(J, self._samples)
        if not (place >= 0).any():
            out = place = None  # type: ignore[assignment]
        self._samples.sums(batch, len(J), weights, total, out, place)

    def values(self, I: Index, J: Index) -> Vector:  # noqa: E741
        """Values of rows I with rows J in float64: (len(I), len(J))."""
        return kernel_values(self._kernel.form, self._X[I], self._X[J])

    def exact(self, rows: Index, J: Index, c: Vector) -> tuple[Vector, Vector]:
        """The sums K[rows, J] c in float64, and bounds of their errors: (rows,)."""
        if not (len(rows) and len(J)):
            return np.zeros(len(rows)), np.zeros(len(rows))
        at_own, of_rows, errors = self._in_double(J, c)
        sums: Vector = np.zeros(len(rows))
        own = np.isin(rows, J, assume_unique=True)
        if 2 * np.count_nonzero(own) > len(J):  # half of these values are enough
            known = np.zeros(self._X.shape[0])
            known[J] = at_own()
            sums[own] = known[rows[own]]
        else:
            own[:] = False
        sums[~own] = of_rows(rows[~own])
        return sums, errors(rows)

    def _in_double(
        self, J: Index, c: Vector
    ) -> tuple[Callable[[], Vector], Callable[[Index], Vector], Callable[..., Vector]]:
        """Functions of the sums over J in float64: at J, of rows, of their errors."""
        double = self._layout.as_double()
        if self._levels is not None and not double.by_differences:
            some = LevelSums(double, self._X, self._levels, J, c, self._n_jobs)
            return some.at_own_rows, some, some.errors
        expand = CoreSums(self._kernel.form, self._X[J], c[:, np.newaxis])

        def errors(rows: Index) -> Vector:
            lengths = self._lengths[rows], self._lengths[J]
            count = np.broadcast_to(self._terms, len(self._lengths))
            terms = count[rows], count[J]
            if expand.has_layout_of(self._layout):
                return expand.errors_by(self._layout, lengths, terms)[:, 0]
            return expand.errors(self._X[rows])[:, 0]

        return (
            lambda: expand.at_own_rows(self._n_jobs),
            lambda rows: expand(self._X, rows, self._n_jobs)[:, 0],
            errors,
        )

    @functools.cached_property
    def _lengths(self) -> Vector:
        """Lengths of the rows from the center of the layout, for bounds of errors.

        Where samples are packed, |x|^2 is known, with the rounding of a sum of squares
        of the dtype: it is enlarged by that.
        """
        layout, (m, n) = self._layout, self._X.shape
        if "_all" not in vars(self) and layout.expands_squares:
            if not layout.center.any():
                return linalg.row_squares(self._X) * ROUNDED
            return layout.lengths(self._X)
        known = layout.expands_squares and not self._all.is_sparse
        if not known or n > PACKED_COLUMNS:
            return layout.lengths(self._X)
        return known_lengths(self._all.norms[:m], n)

    @functools.cached_property
    def _terms(self) -> Any:
        return self._layout.terms(self._X)

    def twofold(
        self, rows: Index, J: Index, c: Vector
    ) -> tuple[Vector, Vector, Vector]:
        """The sums in twice the precision: high parts, errors, low parts."""
        form, X, Z = self._kernel.form, self._X, self._X[J]
        out = np.empty((3, len(rows)))

        def task(some: slice) -> None:
            """Of some rows."""
            hi, lo, error, _ = twofold.kernel_sums(form, X[rows[some]], Z, c)
            out[:, some] = hi, error, lo

        cut = [slice(a, a + TWOFOLD_ROWS) for a in range(0, len(rows), TWOFOLD_ROWS)]
        if cut:
            Blocks(cut, len(cut), self._n_jobs)(task)
        return out[0], out[1], out[2]

    def twofold_diag(self) -> tuple[Vector, Vector, Vector]:
        """The diagonal of K, alike: (m,)."""
        hi, lo, error = twofold.kernel_diag(self._kernel.form, self._X)
        return hi, error, lo

    @functools.cached_property
    def diag_errors(self) -> Vector:
        """Bounds of the errors of the diagonal as `Kernel.diag` computes it: (m,)."""
        if self._layout.is_distance:  # it is 1
            return np.zeros(self._X.shape[0])
        bounds = self._layout.bounds(self._lengths, self._X.shape[1])
        return np.asarray(bounds.eps * bounds.s**2)

    @functools.cached_property
    def bounds(self) -> ValueBounds:
        """Bounds of the values that `compute` makes, and of their errors."""
        return self._layout.bounds(self._lengths, self._terms, self._unit)

    @property
    def _unit(self) -> float:
        """Unit roundoff of the values."""
        return UNIT if self._layout.dtype == np.float64 else SINGLE

    def selected(self, rows: Rows, mask: NDArray[np.bool_]) -> Rows:
        """The rows of a mask."""
        return rows.select(mask)

    def vectors(self, J: Index | slice) -> Any:
        """The rows J themselves."""
        return self._X[J]


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

    def selected(self, rows: Rows, mask: NDArray[np.bool_]) -> Rows:
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

    def selected(self, rows: Rows, mask: NDArray[np.bool_]) -> Rows:
        """The rows and columns of a mask."""
        return as_rows(self._X[np.ix_(mask, mask)])

    def vectors(self, J: Index | slice) -> Any:
        """The columns of the rows J: (l,)."""
        return np.arange(self._X.shape[0])[J]


# Values (k, l) of rows X (k, n) that come in blocks, with a few fixed rows.
CrossValues = Callable[[Any], NDArray[Any]]


def cross_values(
    kernel: Kernel, Z: Any, dtype: Any, n_jobs: int | None = None
) -> CrossValues:
    """The function of blocks of rows X that makes k(x, z_j) for a few fixed z_j.

    Parameters
    ----------
    kernel : Kernel, with gamma as a number
    Z : dense or CSR (l, n); of a precomputed kernel int (l,), columns of the blocks
    dtype : float32 or float64
    n_jobs : int or None, threads

    Returns
    -------
    callable
        Of X (k, n), dense or CSR: the values (k, l), of the dtype.
    """
    if kernel.is_named:
        return _core_values(kernel, Z, np.dtype(dtype), n_jobs)
    if kernel.is_precomputed:
        return lambda X: linalg.dense(X[:, Z]).astype(dtype, copy=False)
    return lambda X: kernel.called(X, Z).astype(dtype, copy=False)


def _core_values(kernel: Kernel, Z: Any, dtype: Any, n_jobs: int | None) -> CrossValues:
    """Values by the core."""
    layout = Layout(kernel.form, Z, dtype)
    samples = Samples(layout, Z, parts=Parts(Z.shape[0], n_jobs))

    def values(X: Any) -> NDArray[Any]:
        """Of a block."""
        kernel.refuse_outside(X)
        out = aligned((X.shape[0], padded(samples.m)), dtype)
        batches = Batches(layout, X)
        for some in batches.cut(X.shape[0]):
            batch = batches.take(some, samples)
            samples.sums(batch, len(out[some]), None, None, out[some])
        return out[:, : samples.m]

    return values
