"""The engine whose kernel values the core makes, and where float32 is too rough."""

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from widemargin.arrays import Index, Mask, Vector
from widemargin.data.blocks import Blocks
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
    entries,
    known_lengths,
    packed_bytes,
)
from widemargin.numerics import linalg, twofold
from widemargin.numerics.rounding import SINGLE, UNIT, ValueBounds
from widemargin.system.threads import n_threads

# Bytes of the samples of a block up to which they wait for the next one, where the
# limit has room for them.
KEPT_SAMPLES = 16 << 20
# The most rows, dense or kept, whose sum is one of the dtype.
TOGETHER = 8
# Rows whose sums in twice the precision are one task of a thread.
TWOFOLD_ROWS = 256
# The same of linear kernels, whose rows are read a few times.
WEIGHED_ROWS = 4096
# Largest gamma |x - center|^2, or gamma |x - center|_1, in float32: there rounding
# changes values of exp by 5e-4.
ROUGH = 4096.0
# Columns up to which the rounding of |x|^2 in float32 is below a tenth of it.
PACKED_COLUMNS = 1 << 20
# Numbers that float32 can hold, and the products of a few of them.
TINY, HUGE = 1e-30, 1e30


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
    largest = layout.total
    if not layout.is_distance:  # products of two rows must not vanish
        squares = linalg.row_squares(X)
        largest = squares.max()
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
        self._layout = Layout(kernel.form, X, dtype, threads=n_threads(n_jobs))
        self._levels = levels_of(X, self._layout, self._parts(None))
        if self._levels is not None:
            self._layout.count_levels(self._levels.are_exact)
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
        is_grouped = self._all.is_sparse or self._levels is not None
        return (GROUP if is_grouped else TOGETHER) + 2

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
        levels = self._levels
        if levels is not None and levels.are_exact and not double.by_differences:
            some = LevelSums(double, self._X, levels, J, c, self._n_jobs)
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
        out, size = np.empty((3, len(rows))), TWOFOLD_ROWS
        sums: Callable[..., tuple[Vector, ...]]
        sums = functools.partial(twofold.kernel_sums, form, Z=Z, c=c)
        if self._kernel.name == "linear":
            weights, size = twofold.linear_weights(Z, c), WEIGHED_ROWS
            sums = functools.partial(twofold.linear_sums, weights=weights)

        def task(some: slice) -> None:
            """Of some rows."""
            hi, lo, error, *_ = sums(X[rows[some]])
            out[:, some] = hi, error, lo

        cut = [slice(a, a + size) for a in range(0, len(rows), size)]
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

    def selected(self, rows: Rows, mask: Mask) -> Rows:
        """The rows of a mask."""
        return rows.select(mask)

    def vectors(self, J: Index | slice) -> Any:
        """The rows J themselves."""
        return self._X[J]
