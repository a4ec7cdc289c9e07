"""Kernels: the functions k(x, z) that stand for products of features."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from widemargin.arrays import Vector
from widemargin.data.memory import as_rows
from widemargin.data.rows import Rows
from widemargin.data.state import RowState
from widemargin.kernels.core_sums import kernel_values
from widemargin.kernels.table import GAMMAS, KERNELS, NAMES, PARAMETERS, NamedKernel
from widemargin.numerics import linalg
from widemargin.numerics.twofold import CoreKernel
from widemargin.parameters import Checker
from widemargin.system import deadline

Matrix = NDArray[Any]

# Of a polynomial: the core counts in 32 bits.
MOST_DEGREE = 2**31 - 1
# A callable is slow to call; the values beside the diagonal, 15 of 16, are thrown away.
DIAGONAL_ROWS = 16
# What a gamma has to be, as sentences say it.
_A_GAMMA = f"a float in the range (0, inf), or {' or '.join(map(repr, GAMMAS))}"


@dataclass(frozen=True)
class Kernel:  # numpydoc ignore=PR02
    """A kernel function, by its name or as a callable.

    ======================  =====================================================
    ``"linear"``            ``x'z``
    ``"poly"``              ``(gamma x'z + coef0)^degree``
    ``"rbf"``               ``exp(-gamma |x - z|^2)``
    ``"sigmoid"``           ``tanh(gamma x'z + coef0)``, not positive definite
    ``"laplacian"``         ``exp(-gamma |x - z|_1)``
    ``"chi2"``              ``exp(-gamma sum_j (x_j - z_j)^2 / (x_j + z_j))``, of
                            data >= 0; 0 / 0 counts as 0
    ``"precomputed"``       the data are the kernel values themselves
    ======================  =====================================================

    Parameters
    ----------
    name : str or callable, default="rbf"
        One of these, or a function of two matrices, dense or CSR, (k, n) and (l, n),
        that returns their kernel values (k, l).
    gamma : float > 0 or str, default="scale"
        "scale": 1 / (n Var(X)), with the variance of all entries. "auto": 1 / n.
        "mean_distance": 1 / (2 d), with d the mean of ``|x - z|^2`` over all pairs of
        rows, found in O(m n).
    degree : int >= 1, default=3
        Of "poly".
    coef0 : float, default=0.0
        Of "poly" and "sigmoid".

    Raises
    ------
    ValueError or TypeError
        A parameter out of range or of a wrong type.

    Examples
    --------
    >>> from widemargin import Kernel
    >>> Kernel("rbf", gamma=0.5)([[0.0], [1.0]], [[0.0], [2.0]]).round(4)
    array([[1.    , 0.1353],
           [0.6065, 0.6065]])
    """

    name: str | Callable[[Any, Any], Any] = "rbf"
    gamma: float | str = "scale"
    degree: int = 3
    coef0: float = 0.0

    def __post_init__(self) -> None:
        check_kernel(Checker("Kernel"), "name", self)

    @property
    def named(self) -> NamedKernel | None:
        """Its row of the table, if the core computes it."""
        return KERNELS.get(self.name) if isinstance(self.name, str) else None

    @property
    def is_named(self) -> bool:
        """Whether the core computes it."""
        return self.named is not None

    @property
    def is_precomputed(self) -> bool:
        """Whether the data are the kernel values."""
        return bool(self.name == "precomputed")

    @property
    def facts(self) -> dict[str, Any]:
        """Its name, and the numbers that it depends on, by name."""
        name = self.name if isinstance(self.name, str) else "callable"
        used = PARAMETERS.get(name, ())
        return {"kernel": name} | {key: getattr(self, key) for key in used}

    @property
    def is_psd(self) -> bool:
        """Whether it is positive semidefinite by its definition, whatever the data."""
        return self.named is not None and self.coef0 >= self.named.psd_from

    @property
    def form(self) -> CoreKernel:
        """What the core computes; of a named kernel whose gamma is a number."""
        code = KERNELS[str(self.name)].code
        return code, float(self.gamma), self.coef0, self.degree

    @np.errstate(over="ignore")  # a variance that is infinite is refused
    def resolved(self, rows: Rows, weights: Vector | None = None) -> "Kernel":
        """The kernel with gamma as a number, from the moments of the rows.

        With weights (m,) a row of weight 2 counts as two rows. Refuses rows that the
        kernel is not for.
        """
        self.refuse_rows(rows)
        if not isinstance(self.gamma, str):
            return self
        if self.name not in PARAMETERS:
            return self._with_gamma(1.0)  # has none
        n = rows.n_all
        mean, std = rows.moments  # refuses NaN
        if weights is not None:
            if isinstance(weights, np.ndarray):  # others are beside their rows
                # A power of 2 changes no digit; sums of large weights may overflow.
                weights = np.ldexp(weights, -int(np.frexp(weights.max())[1]))
            state = rows.state(weights=weights)
            sums, squares = rows.sweep(_weighted_sums, state)
            mean = sums / weights.sum()
            std = np.sqrt(np.maximum(squares / weights.sum() - mean**2, 0.0))
        spread = {"auto": 1.0}
        if self.gamma == "scale":
            center = mean.sum() / n
            around = float((std**2 + (mean - center) ** 2).sum())
            if left_out := n - rows.shape[1]:  # columns of zeros
                around += float(left_out * center**2)
            spread["scale"] = around / n
        if self.gamma == "mean_distance":
            # The mean over all pairs of |x - z|^2 is twice the sum of the variances.
            spread["mean_distance"] = 4.0 * float((std**2).sum()) / n
        width = n * spread[self.gamma]
        gamma = 1.0 / width if width > 0 else 1.0
        if not 0.0 < gamma < np.inf:
            size = "small" if gamma else "large"
            raise ValueError(
                f"X is too {size} for gamma={self.gamma!r}, which is one over a "
                "variance: scale the data (StandardScaler). Got columns of deviations "
                f"up to {std.max():.3g}."
            )
        return self._with_gamma(gamma)

    def _with_gamma(self, gamma: float) -> "Kernel":
        """The kernel with another gamma."""
        other = object.__new__(Kernel)  # the others are checked
        vars(other).update(vars(self), gamma=gamma)
        if not 0.0 < gamma < np.inf:
            other.__post_init__()  # refuses it
        return other

    def __call__(self, A: ArrayLike, B: ArrayLike) -> Vector:
        """Kernel values of all pairs of rows: (k, l) float64.

        Parameters
        ----------
        A : array or sparse matrix (k, n)
        B : array or sparse matrix (l, n)

        Returns
        -------
        ndarray (k, l), float64. For "precomputed" A itself.

        Raises
        ------
        ValueError
            Other numbers of columns; NaN or infinity, or another shape than (k, l),
            from a callable; numbers below 0 where the kernel is not for them.

        Notes
        -----
        Where gamma is a word it is found from the rows of A.
        """
        if self.is_precomputed:
            return np.asarray(A, dtype=np.float64)
        rows, others = as_rows(A), as_rows(B)
        X, Z = rows.in_memory(), others.in_memory()
        if not self.is_named:
            return self.called(X, Z)
        if isinstance(self.gamma, str):
            return self.resolved(rows)(A, B)
        self.refuse_outside(X)
        self.refuse_outside(Z)
        return kernel_values(self.form, X, Z)

    @property
    def _has_range(self) -> bool:
        return self.named is not None and self.named.is_nonnegative

    def refuse_rows(self, rows: Rows) -> None:
        """Refuse rows with numbers that the kernel is not for; a sweep, if need be."""
        if self._has_range:
            rows.sweep(_refuse_outside, None, self)

    def refuse_outside(self, X: Any) -> None:
        """Refuse rows, dense or CSR (k, n), with numbers that the kernel is not for."""
        found = linalg.first_below(X, 0.0) if self._has_range else None
        if found is not None:
            raise ValueError(
                f"X must hold numbers >= 0 only for the kernel {self.name!r}. Got "
                f"{found[1]:g} in column {found[0]} instead."
            )

    def diag(self, X: Any) -> Vector:
        """Values k(x, x) of the rows of X, dense or CSR (k, n): (k,) float64.

        Gamma has to be a number. For "precomputed" X is the kernel matrix, (k, k). A
        callable is called with ``DIAGONAL_ROWS`` rows at a time.
        """
        if self.is_precomputed:
            return np.asarray(X.diagonal(), dtype=np.float64)
        if self.named is None:
            ends = range(0, X.shape[0], DIAGONAL_ROWS)
            parts = (X[a : a + DIAGONAL_ROWS] for a in ends)
            return np.concatenate([self.called(A, A).diagonal() for A in parts])
        if self.named.value == "decay":
            return np.ones(X.shape[0])
        squares = linalg.row_squares(X)
        if self.named.value == "itself":
            return squares
        inner = float(self.gamma) * squares + self.coef0
        if self.named.value == "tangent":
            return np.asarray(np.tanh(inner))
        with np.errstate(over="ignore"):
            return np.asarray(inner**self.degree)

    def called(self, X: Any, Z: Any) -> Vector:
        """Values of a callable, of matrices or of lists of objects, checked."""
        deadline.check()
        try:
            values = self.name(X, Z)  # type: ignore[operator]
        except (ArithmeticError, np.linalg.LinAlgError) as error:
            # Of the user's, not of the solver's numbers: the driver tells them apart.
            raise RuntimeError(f"The kernel function failed: {error!r}") from error
        if sparse.issparse(values):
            values = values.toarray()
        values = np.asarray(values)
        expected = _n_rows(X), _n_rows(Z)
        if values.shape != expected or values.dtype.kind not in "fiub":
            raise ValueError(
                f"The kernel must return real numbers of shape {expected}. Got shape "
                f"{values.shape} and dtype {values.dtype} instead."
            )
        values = values.astype(np.float64, copy=False)
        if not np.isfinite(values).all():
            raise ValueError(
                "The kernel must return finite numbers. Got NaN or infinity instead."
            )
        return values


def _n_rows(X: Any) -> int:
    """How many rows a matrix, or objects a list has."""
    return int(X.shape[0]) if hasattr(X, "shape") else len(X)


def _weighted_sums(block: Any, part: RowState) -> tuple[Vector, Vector]:
    """X'd and the diagonal of X' diag(d) X, for weights d."""
    d = part.weights
    return linalg.rmatvec(block, d), linalg.gram_diagonal(block, d)


def _refuse_outside(block: Any, part: RowState | None, kernel: Kernel) -> None:
    """Refuse a block of rows that a kernel is not for."""
    kernel.refuse_outside(linalg.formed(block))


def check_kernel(check: Checker, name: str, kernel: Kernel) -> None:
    """Refuse parameters out of range; the kernel itself is called ``name``."""
    if not callable(kernel.name):
        check.choice(name, kernel.name, (*NAMES, "precomputed"), " or a function")
    if isinstance(kernel.gamma, str):
        check.choice("gamma", kernel.gamma, GAMMAS, " or a number above 0")
    else:
        check.positive("gamma", kernel.gamma, _A_GAMMA)
    check.count("degree", kernel.degree)
    if kernel.degree > MOST_DEGREE:
        check.refuse("degree", f"at most {MOST_DEGREE}", kernel.degree)
    number = isinstance(kernel.coef0, Real) and not isinstance(kernel.coef0, bool)
    if not (number and math.isfinite(kernel.coef0)):
        check.refuse("coef0", "a finite float", kernel.coef0)
