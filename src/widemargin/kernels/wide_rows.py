"""Few dense rows of many columns: the kernel values of all pairs, of products by BLAS.

Microarrays and spectra have some hundred rows of some thousand columns. To pack such
rows for the core, in strips and in both precisions, takes longer than all products of
two of them.
"""

import functools
from typing import Any

import numpy as np
from numpy.typing import NDArray

from widemargin.arrays import Vector
from widemargin.data.blocks import Blocks
from widemargin.kernels.core_engine import is_rough
from widemargin.kernels.given import AllPairs
from widemargin.kernels.kernel import Kernel
from widemargin.kernels.layout import Layout
from widemargin.numerics import linalg
from widemargin.numerics.rounding import SINGLE, ValueBounds
from widemargin.system import deadline
from widemargin.system.threads import ONE_BLAS_THREAD

# The most rows; and rows for each column, with the least columns: of the products of a
# fit; of functions of these, which take longer to make one by one; and where many
# problems share all values. (`benchmarks/core/wide_rows.py`: 0.15 to 0.5 of the time of
# packed rows from 2,000 columns on. Images and letters of 250 to 800 columns: Gaussian
# fits 0.4 to 1.2, searches 0.3 to 1.1, searches by products 0.1 to 1.1.)
MOST_ROWS = 4096
PRODUCTS, FUNCTIONS, SHARED = (1, 600), (3, 200), (8, 128)
# Rows whose values with those before them are one task of a thread, at most: 64 take
# 1.1 to 1.3 times as long, 128 and 512 0.9 to 1.2 times (300 x 10,000 to 1,500 x
# 30,000). And its multiplications, some 70 ms, as the time is looked at before each
# task: that costs 1.2 and 1.3 times the time of 4,000 x 4,000 and 1,500 x 30,000.
PART, WORK = 256, 2e9


class WideRows(AllPairs):
    """Few dense rows of many columns, with the values of all pairs of them.

    Parameters
    ----------
    X : ndarray (m, n), finite
    group : int ndarray (m,), the group of each row: 0, 1, ...
    kernel : Kernel, one of those that `layout_of` takes, with gamma as a number
    layout : Layout, of X with float32
    n_jobs : int or None, threads

    Attributes
    ----------
    is_fit : bool, whether float32 has digits enough for the values
    packed_bytes : int, of the values, and of the rows in float64

    Raises
    ------
    OutOfTime
    """

    is_fit_exactly = True
    is_wide = False  # as sparse rows are that packing would enlarge

    def __init__(
        self,
        X: NDArray[Any],
        group: NDArray[Any],
        kernel: Kernel,
        layout: Layout,
        n_jobs: int | None = None,
    ) -> None:
        deadline.check()
        diagonal, center = kernel.diag(X), layout.center
        self.is_fit = not is_rough(layout, kernel, X, diagonal)
        self._layout, (m, self._n) = layout.as_double(), X.shape
        self.packed_bytes = n_bytes(X)
        step = max(1, min(PART, int(WORK / (m * self._n))))
        parts = [slice(k, min(k + step, m)) for k in range(0, m, step)]
        rows, values = np.empty(X.shape), np.empty((m, m))
        for part in parts:
            deadline.check()
            np.subtract(X[part], center if layout.is_distance else 0.0, out=rows[part])
        self._squares = linalg.row_squares(rows)

        def make(part: slice) -> None:
            """Values of some rows with those before them, and with each other."""
            own, before = rows[part], slice(part.start)
            for others in (before, part):
                block = values[part, others]
                np.matmul(own, rows[others].T, out=block)
                _apply(kernel, block, self._squares[part], self._squares[others])
            values[before, part] = values[part, before].T

        # The last parts are the longest. BLAS has one thread for each: else bits would
        # depend on threads.
        with ONE_BLAS_THREAD:
            Blocks(parts[::-1], len(parts), n_jobs, calls_blas=False)(make)
        if layout.is_distance:
            np.fill_diagonal(values, 1.0)
        super().__init__(values, diagonal, group)

    @functools.cached_property
    def _double(self) -> ValueBounds:
        # BLAS adds up in an order of its own: as many terms as there are columns.
        return self._layout.bounds(self._squares, self._n)

    @functools.cached_property
    def _single(self) -> ValueBounds:
        """Of the same values, rounded to float32."""
        double = self._double
        eps = SINGLE + double.eps
        return ValueBounds(eps, double.h * (double.eps / eps), double.s)


def may_suit(X: Any, kernel: Kernel, few: tuple[int, int] | None = None) -> bool:
    """Whether rows are few, and the kernel a semidefinite function of products.

    ``few`` are rows for each column, and the least columns; None: those of one fit.
    """
    if kernel.named is None or not (kernel.is_psd and isinstance(X, np.ndarray)):
        return False
    of_fit = PRODUCTS if kernel.name == "linear" else FUNCTIONS
    (m, n), (share, least) = X.shape, few or of_fit
    suits = m <= min(share * n, MOST_ROWS) and n >= least
    return suits and kernel.named.sums in ("product", "square")


def layout_of(
    X: Any, kernel: Kernel, few: tuple[int, int] | None = None
) -> Layout | None:
    """The layout of rows that suit; of others None.

    They are not mostly zeros; and where the kernel is one of distances, |x|^2 + |z|^2 -
    2x'z has to keep their digits.
    """
    if not may_suit(X, kernel, few):
        return None
    layout = Layout(kernel.form, X, np.float32)
    keeps_digits = not layout.as_double().by_differences
    return layout if keeps_digits and not layout.is_sparse else None


def n_bytes(X: NDArray[Any]) -> int:
    """Bytes of the values, and of the rows in float64."""
    m, n = X.shape
    return int(8 * m * (m + n))


def _apply(kernel: Kernel, values: Vector, squares: Vector, others: Vector) -> None:
    """Kernel values in the place of products of rows with others, of these |x|^2."""
    _, gamma, coef0, degree = kernel.form
    with np.errstate(all="ignore"):  # small values vanish
        if kernel.name == "poly":
            values *= gamma
            values += coef0
            np.power(values, degree, out=values)
        elif kernel.name == "rbf":
            values *= -2.0
            values += np.add.outer(squares, others)
            np.maximum(values, 0.0, out=values)
            values *= -gamma
            np.exp(values, out=values)
