"""Products and kernel sums in doubled precision, where rounding decides a certificate.

A twofold number is an unevaluated sum hi + lo of two float64 numbers. A sum of n terms
is off by at most ``bound(size, n)``, with size at least the sum of their absolute
values: about 4 n 2^-106 of that. See cpp/twofold.hpp.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from widemargin import _core
from widemargin.arrays import Vector
from widemargin.numerics import linalg
from widemargin.numerics.rounding import SLACK, UNIT

# A kernel as the core knows it: its code, gamma, coef0 and degree.
CoreKernel = tuple[int, float, float, int]

# 2^-106, and the least number: 2^-1074.
_UNIT_SQUARE, _LEAST = 2.0**-106, float(np.finfo(np.float64).smallest_subnormal)


def bound(size: Any, terms: int) -> Any:
    """Bounds of the errors of twofold sums of a number of terms, from sums of sizes.

    Vectors that are added to count as one term each; infinite where a sum overflowed.
    """
    return 4.0 * (terms + 4) * _UNIT_SQUARE * size + 2.0 * (terms + 4) * _LEAST


@dataclass(frozen=True)
class Twofold:
    """A vector of twofold numbers with their sizes, which adds up over blocks of rows.

    Attributes
    ----------
    hi, lo, size : ndarray (k,)
    """

    hi: Vector
    lo: Vector
    size: Vector

    def __add__(self, other: "Twofold") -> "Twofold":
        return Twofold(
            *add(self.hi, self.lo, other.hi, other.lo), self.size + other.size
        )

    def error(self, terms: int) -> Vector:
        """Bounds of the errors of ``hi`` as a sum of this many terms: (k,)."""
        return np.asarray(np.abs(self.lo) + bound(self.size * (1.0 + 1e-6), terms))


def matvec(block: Any, w: Vector) -> tuple[Vector, Vector, Vector]:
    """Product block w as hi + lo, and sizes, (k,) each.

    Parameters
    ----------
    block : dense or CSR array (k, n), or `linalg.SignedBlock`
    w : ndarray (n,)

    Returns
    -------
    tuple of hi, lo, size, each ndarray (k,)
        Off by at most ``bound(size, n + 1)``, with size_i >= |a_i|'|w|.
    """
    if not isinstance(block, linalg.SignedBlock):
        return _plus_matvec(block, w, np.zeros(block.shape[0]))
    X, y, intercept = block.parts
    start = w[X.shape[1]] if intercept else 0.0
    hi, lo, size = _plus_matvec(X, w[: X.shape[1]], np.full(X.shape[0], start))
    return y * hi, y * lo, size


def _plus_matvec(X: Any, w: Vector, start: Vector) -> tuple[Vector, Vector, Vector]:
    """Numbers (k,) plus X w."""
    lo, size = np.zeros(start.size), np.abs(start)
    _core.twofold_matvec(_in_core(X), _float64(w), start, lo, size)
    return start, lo, size


def rmatvec(block: Any, a: Vector, hi: Vector, lo: Vector, size: Vector) -> None:
    """Add block' a to hi + lo, and its sizes to ``size``, (n,) each, in place.

    Parameters
    ----------
    block : dense or CSR array (k, n), or `linalg.SignedBlock`
    a : ndarray (k,). Rows where it is 0 are not read.
    hi, lo, size : ndarray (n,), of zeros or what was added before.

    Notes
    -----
    After blocks of m rows in all hi + lo is off by at most ``bound(size, m)``.
    """
    if isinstance(block, linalg.SignedBlock):
        block, y, intercept = block.parts
        a = y * a
        if intercept:
            ones = np.ones((a.size, 1))
            _core.twofold_rmatvec(ones, _float64(a), hi[-1:], lo[-1:], size[-1:])
            hi, lo, size = hi[:-1], lo[:-1], size[:-1]
    _core.twofold_rmatvec(_in_core(block), _float64(a), hi, lo, size)


def kernel_sums(
    form: CoreKernel, X: Any, Z: Any, c: Vector
) -> tuple[Vector, Vector, Vector, Vector]:
    """Sums f_i = sum_j c_j k(x_i, z_j) as hi + lo, with errors and sizes, (k,) each.

    Parameters
    ----------
    form : tuple, as `Kernel.form`
    X, Z : dense or CSR arrays (k, n) and (l, n)
    c : ndarray (l,)

    Returns
    -------
    tuple of hi, lo, error, size, each ndarray (k,)
        ``|hi + lo - f| <= error`` and size_i >= sum_j |c_j k(x_i, z_j)|; infinite where
        something overflows. Values of exp are off by at most 2^-88 of themselves; tanh
        is the C library's, taken to be off by at most 4 units in the last place.

    Notes
    -----
    One thread, one to two ns for each of k l n terms with AVX2, and 20 to 40 ns for
    each exp.
    """
    x, z = map(_in_core, _of_one_type(X, Z))
    hi, lo, error, size = np.empty((4, X.shape[0]))
    _core.twofold_kernel_sums(form, x, z, _float64(c), hi, lo, error, size)
    return hi, lo, error, size


def linear_weights(Z: Any, c: Vector) -> tuple[Vector, Vector, Vector]:
    """Weights w = Z'c as hi + lo, with errors, (n,) each.

    Parameters
    ----------
    Z : dense or CSR array (l, n)
    c : ndarray (l,)
    """
    hi, lo, size = np.zeros((3, Z.shape[1]))
    rmatvec(Z, c, hi, lo, size)
    return hi, lo, bound(size, len(c))


def linear_sums(
    X: Any, weights: tuple[Vector, Vector, Vector]
) -> tuple[Vector, Vector, Vector]:
    """The sums of `kernel_sums` for k(x, z) = x'z, by weights: X w.

    Parameters
    ----------
    X : dense or CSR array (k, n)
    weights : see `linear_weights`

    Returns
    -------
    tuple of hi, lo, error, each ndarray (k,)
        The error is infinite where something overflows.

    Notes
    -----
    3 k n terms, and l n for the weights, in place of k l n. Beside what the products
    with both parts of w and their sum are off by, there is ``|X| e`` where w is off by
    e.
    """
    terms, (w_hi, w_lo, w_error) = X.shape[1] + 1, weights
    high, rest, large = matvec(X, w_hi)
    more, last, small = matvec(X, w_lo)
    _, _, off = matvec(X, w_error)
    hi, lo = add(high, rest, more, last)
    error = bound(large, terms) + bound(small, terms) + off + bound(off, terms)
    return hi, lo, (error + 4.0 * _UNIT_SQUARE * (large + small)) * SLACK


def kernel_diag(form: CoreKernel, X: Any) -> tuple[Vector, Vector, Vector]:
    """Values k(x_i, x_i) as hi + lo, with errors as of `kernel_sums`, (k,) each."""
    hi, lo, error = np.empty((3, X.shape[0]))
    _core.twofold_kernel_diag(form, _in_core(X), hi, lo, error)
    return hi, lo, error


def dot(a: Vector, hi: Vector, lo: Vector) -> tuple[float, float, float]:
    """The sum of a_i (hi_i + lo_i) as hi + lo, and a bound of its error."""
    return _core.twofold_dot(_float64(a), _float64(hi), _float64(lo))


def add(hi: Any, lo: Any, more_hi: Any, more_lo: Any) -> tuple[Any, Any]:
    """Sums of twofold numbers, off by at most 3 2^-106 of themselves.

    For numbers with |lo| <= 2^-53 |hi|, as all functions here return them.
    """
    # AccurateDWPlusDW of Joldes, Muller, Popescu 2017, theorem 3.1.
    high, rest = _two_sum(hi, more_hi)
    low, last = _two_sum(lo, more_lo)
    high, rest = _two_sum(high, rest + low)
    return _two_sum(high, rest + last)


def slacks(
    hi: Vector, lo: Any, error: Vector, q: Any = 1.0, off: float = 0.0
) -> tuple[Vector, Vector]:
    """The slacks q - hi - lo, and the most they are where hi + lo are off: (m,).

    And q by a share ``off`` of itself.
    """
    t, rest = add(q, 0.0, -hi, -lo)
    most = (error + np.abs(rest)) * SLACK + UNIT * np.abs(t)
    return t, t + (most + off * np.abs(q))


def _two_sum(a: Any, b: Any) -> tuple[Any, Any]:
    """The sum of a and b, and its rounding error."""
    total = a + b
    rest = total - a
    return total, (a - (total - rest)) + (b - rest)


def _float64(a: Any) -> Vector:
    return np.ascontiguousarray(a, dtype=np.float64)


def _of_one_type(X: Any, Z: Any) -> tuple[Any, Any]:
    """Both dense, with entries of one type, or both CSR."""
    if sparse.issparse(X) or sparse.issparse(Z):
        return sparse.csr_array(X), sparse.csr_array(Z)
    return (X, Z) if X.dtype == Z.dtype else (_float64(X), _float64(Z))


def _in_core(X: Any) -> Any:
    """Rows as the core reads them; an entry is the float64 sum of its duplicates."""
    if sparse.issparse(X) and not X.has_canonical_format:
        X = X.astype(np.float64)  # a copy
        X.sum_duplicates()
    return linalg.in_core(X)
