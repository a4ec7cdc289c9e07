"""Numbers n 2^e: all floats are, and so are their sums and products, exactly.

Nothing here rounds but `exp_minus`, whose error is below 2^-BITS. Arithmetic is that of
Python's integers, in arrays of objects, and shares no line with the library.
"""

import functools
import math
from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np

# Absolute error of exp is 2^-BITS. Coefficients up to 1e15 leave c'Kc to 1e-60.
BITS = 320
# More that products are computed with, and what remains after the tables of exp.
_GUARD, _CHUNKS, _WIDTH = 32, 4, 8


class Dyadic:
    """An array of numbers n 2^e, with Python integers n and one exponent e for all."""

    __array_priority__ = 100

    def __init__(self, n, e):
        self.n, self.e = np.asarray(n, dtype=object), int(e)

    @classmethod
    def of(cls, x):
        """The numbers of an array of floats or integers, exactly."""
        x = np.asarray(x)
        if x.dtype.kind in "iub":
            return cls(_objects(x), 0)
        mantissa, e = np.frexp(x.astype(np.float64))
        n, e = np.asarray(np.ldexp(mantissa, 53), np.int64), np.asarray(e - 53)
        low = int(e[n != 0].min()) if np.any(n != 0) else 0
        shift = np.where(n != 0, e - low, 0)
        return cls(_objects(n) << _objects(shift), low)

    @property
    def shape(self):
        return self.n.shape

    @property
    def T(self):
        return Dyadic(self.n.T, self.e)

    def __getitem__(self, index):
        return Dyadic(self.n[index], self.e)

    def at(self, e):
        """The integers for a lower exponent."""
        return self.n if e == self.e else self.n << (self.e - e)

    def __add__(self, other):
        e = min(self.e, other.e)
        return Dyadic(self.at(e) + other.at(e), e)

    def __sub__(self, other):
        e = min(self.e, other.e)
        return Dyadic(self.at(e) - other.at(e), e)

    def __neg__(self):
        return Dyadic(-self.n, self.e)

    def __mul__(self, other):
        return Dyadic(self.n * other.n, self.e + other.e)

    def __matmul__(self, other):
        return Dyadic(np.dot(self.n, other.n), self.e + other.e)

    def __pow__(self, k):
        return Dyadic(self.n**k, self.e * k)

    def __abs__(self):
        return Dyadic(abs(self.n), self.e)

    def positive(self):
        """max(0, x)."""
        return Dyadic(np.where(self.n > 0, self.n, 0), self.e)

    def sum(self, axis=None):
        return Dyadic(self.n.sum(axis=axis), self.e)

    def fraction(self):
        """The one number there is."""
        return fraction(self.n.item(), self.e)

    def fractions(self):
        """All numbers, as a list."""
        return [fraction(n, self.e) for n in self.n.ravel()]


ONE = Dyadic(1, 0)


def fraction(n, e):
    """N 2^e as a Fraction."""
    return Fraction(n << e) if e >= 0 else Fraction(n, 1 << -e)


def _objects(x):
    """The same integers as Python's."""
    out = np.empty(x.shape, dtype=object)
    out[...] = x.tolist() if x.ndim else int(x)
    return out


def exp_minus(x):
    """exp(-x) for x >= 0, to an absolute error of 2^-BITS."""
    bits = BITS + _GUARD
    shift = x.e + bits
    v = x.n << shift if shift >= 0 else x.n >> -shift
    far = v >= 1 << (bits + _WIDTH)  # exp(-256) is below 2^-BITS
    v = np.where(far, 0, v)
    out, mask = 1 << bits, (1 << _WIDTH) - 1
    for j, table in enumerate(_tables()):
        part = (v >> (bits - _WIDTH * j)) & mask
        out = (out * table[part.astype(np.intp)]) >> bits
    rest = v & ((1 << (bits - _WIDTH * _CHUNKS)) - 1)
    out = (out * _series(rest, bits)) >> bits
    return Dyadic(np.where(far, 0, out), -bits)


def _series(r, bits):
    """exp(-r 2^-bits) for r 2^-bits < 2^-32, by its series."""
    total = term = np.full(np.shape(r), 1 << bits, dtype=object)
    for k in range(1, 12):
        term = -((term * r >> bits) // k)
        total = total + term
    return total


@functools.cache
def _tables():
    """exp(-k 2^(-8 j)) of k = 0, .., 255, for each of the digits j."""
    scale = 1 << (BITS + _GUARD)
    with localcontext(prec=140):
        return [
            np.array(
                [
                    int(scale * (-Decimal(k) / 2 ** (_WIDTH * j)).exp())
                    for k in range(256)
                ],
                dtype=object,
            )
            for j in range(_CHUNKS + 1)
        ]


def root_below(x):
    """The square root of a Fraction >= 0, rounded down: to 2^-300 of it."""
    if x <= 0:
        return Fraction(0)
    bits = 300 + max(0, x.denominator.bit_length() - x.numerator.bit_length())
    bits += bits % 2
    return Fraction(math.isqrt((x.numerator << 2 * bits) // x.denominator), 1 << bits)
