"""Engines, which make kernel values: the core, a callable or a matrix of the user.

`engine` chooses an engine for a kernel. A new engine, of a GPU for instance, needs the
members of `Engine` and a line in `engine`; and a line in `cross_values`, if it is to
make the values of other rows too.
"""

from collections.abc import Callable
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from widemargin.arrays import Index, Mask, Vector
from widemargin.data.rows import Rows
from widemargin.kernels.core_engine import CoreEngine
from widemargin.kernels.given_engines import CallableEngine, MatrixEngine
from widemargin.kernels.kernel import Kernel
from widemargin.kernels.layout import Layout
from widemargin.kernels.packed import Batches, Parts, Samples, aligned, padded
from widemargin.numerics import linalg
from widemargin.numerics.rounding import ValueBounds


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

    def selected(self, rows: Rows, mask: Mask) -> Rows:
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
