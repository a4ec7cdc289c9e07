"""How far rounding may have moved the numbers that a certificate is made of.

A sum of k products of float64 numbers, in any order, with or without fused operations,
is off by at most gamma_k times the sum of the absolute products, gamma_k = k u / (1 -
k u), u = 2^-53: (3.5) in [higham2002]_. All bounds here follow from that; the page
"The problem and its certificate" of the documentation derives them.

With errors e_i of the margins' slacks t_i = 1 - y_i f_i the losses are at most

    sum C_i e_i                      larger for the hinge,
    (2 (sum C_i t_i^2)^(1/2) + r) r  for its square, r = (sum C_i e_i^2)^(1/2).

With an error d of g = A'alpha the dual value is at most sum |g_j| d_j + d_j^2 / 2
smaller. And where y'alpha should be zero and is r, a class scaled down by 2 r / sum
alpha, at most, makes it so. Where r is known in twice the precision, so is nearly all
of what that costs.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from widemargin import _core
from widemargin.arrays import Index64, Vector

# Half the distance from 1 to the next number, in float64 and in float32.
UNIT, SINGLE = 2.0**-53, 2.0**-24
# Numbers that float32 has no room for.
FLUSHED = 2e-38
# Absolute values that are lost to underflow lie far below this, squared or not.
TINY = 1e-150
# What the bounds themselves lose to rounding: they are sums of positive numbers.
SLACK = 1.0 + 1e-6


def gamma_n(terms: float, unit: float = UNIT) -> float:
    """The constant gamma_k = k u / (1 - k u) of sums of k products."""
    lost = terms * unit
    return lost / (1.0 - lost) if lost < 1.0 else np.inf


def at_zero(total: float, m: int) -> float:
    """Objective of v = 0, a sum of m losses of rounded margins, or a little more."""
    return total * (1.0 + gamma_n(m + 6))


def column_sizes(mean: Vector, std: Vector, m: int, intercept: bool) -> Vector:
    """Lengths of the columns of A, or a little more, by the moments of X's: (k,)."""
    sizes = np.sqrt(mean * mean + std * std + TINY**2) * np.sqrt(m) * SLACK
    return np.append(sizes, np.sqrt(m)) if intercept else sizes


@dataclass(frozen=True)
class Weights:
    """The largest of the weights C_i, and their sum."""

    largest: float
    total: float

    def excess(self, spread: float) -> float:
        """How much errors of the slacks add to their sum.

        ``spread`` is the length of the vector of errors, at most.
        """
        root = np.sqrt(self.largest) * np.sqrt(self.total)
        return float(root * spread) * SLACK

    def excess_of_squares(self, losses: float, spread: float) -> float:
        """How much errors of the slacks add to ``losses``, the sum of their squares."""
        root = np.sqrt(self.largest) * spread * SLACK
        return float((2.0 * np.sqrt(losses) * SLACK + root) * root)

    def length(self, linear: float, squares: float) -> float:
        """Length of alpha, or more, from sum alpha and sum alpha^2 / (4 C)."""
        root = np.sqrt(4.0 * self.largest) * np.sqrt(squares + TINY**2)
        return float(min(root, linear)) * SLACK


def dual_error(g: Vector, error: Vector, R: Vector) -> float:
    """How much 1/2 g'Rg may be larger with an error of g; R by its diagonal."""
    error = R * error
    off = float(np.abs(g) @ error) + 0.5 * float(error @ error)
    square = 0.5 * gamma_n(len(g) + 2) * float(R @ (g * g))
    return (off + square) * SLACK


def repair_error(residual: float, linear: float, slope: float, square: float) -> float:
    """How much of D it costs to make ``residual`` = |y'alpha| zero exactly.

    The heavier class, which has half of ``linear`` = sum alpha at least, is scaled by 1
    - t. With w_h its share of w, D falls by t |sum_h alpha_i (1 - y_i x_i'w)| + t^2 / 2
    |w_h|^2 at most; ``slope`` and ``square`` bound that sum and |w_h|^2.
    """
    if residual == 0.0 or linear == 0.0:  # alpha = 0 is feasible
        return 0.0
    if not residual < 0.25 * linear:
        return np.inf
    t = 2.0 * residual / linear * SLACK
    return (t * slope + 0.5 * t * t * square) * SLACK


class Heavy(NamedTuple):
    """The heavier class h.

    Attributes
    ----------
    mass, share : float, sum_h alpha_i, and how far off it may be, as a share of it
    slope, error : float, sum_h alpha_i (1 - y_i x_i'w), and how far off it may be
    """

    mass: float
    share: float
    slope: float
    error: float


def repair_cost(
    residual: float, error: float, heavy: Heavy, whole: tuple[float, float, float]
) -> tuple[float, float]:
    """What of D it costs to make y'alpha zero exactly, and how far off that may be.

    ``|y'alpha|`` is ``residual``, off by at most ``error``; ``whole`` are the others of
    `repair_error`. That part of the residual which is certain costs t slope + t^2 / 2
    ``|w_h|^2``, which may be less than zero; the rest has its bound.
    """
    linear, slope, square = whole
    known = max(residual - error, 0.0)
    if known == 0.0:
        return 0.0, repair_error(residual + error, linear, slope, square)
    if not known < 0.25 * linear:
        return 0.0, np.inf
    t = known / heavy.mass
    rest = (2.0 * error + (heavy.share + gamma_n(4)) * known) * SLACK
    off = t * heavy.error + 0.5 * t * t * square + gamma_n(4) * abs(t * heavy.slope)
    off += repair_error(rest, linear - known, slope + t * square, square)
    return t * heavy.slope, off * SLACK


# Bounds may overflow, and are infinite then: nothing is proved.
_silent = np.errstate(over="ignore", invalid="ignore")


@dataclass(frozen=True)
class ValueBounds:
    """What is known of kernel values k_ij of some rows with others.

    They are at most s_i s_j, and off by at most eps (1 + h_i + h_j) s_i s_j, where both
    sets of rows have bounds of the same eps.

    Attributes
    ----------
    eps : float
    h, s : ndarray (m,)
    """

    eps: float
    h: Vector
    s: Vector

    @_silent
    def sums(self, others: "ValueBounds", c: Vector, terms: float) -> Vector:
        """Errors of sum_j c_j k_ij over the other rows j: (m,).

        ``terms`` is the error of the summation, as a multiple of sum |c_j| s_i s_j.
        """
        eps = self._enlarged(float(max(self.h.max(initial=0), others.h.max(initial=0))))
        # In place, and without BLAS: its threads and new pages took ten times as long.
        size = np.abs(c)
        size *= others.s
        total = float(size.sum())
        if total == 0.0:
            return np.zeros(len(self.s))
        size *= others.h
        known = (terms + eps) * total + eps * float(size.sum())
        errors = self.h * (eps * total * SLACK)
        errors += known * SLACK
        errors *= self.s
        return errors

    @_silent
    def sums_of_groups(
        self, others: "ValueBounds", W: Vector, sizes: Index64, terms: float
    ) -> Vector:
        """Errors of sums over groups of the others, by columns of W: (groups, c, m)."""
        eps = self._enlarged(float(max(self.h.max(initial=0), others.h.max(initial=0))))
        some = sizes > 0
        begins = (np.cumsum(sizes) - sizes)[some]
        size = np.abs(W) * others.s[:, np.newaxis]
        total, high = np.zeros((2, len(sizes), W.shape[1]))
        if some.any():
            total[some] = np.add.reduceat(size, begins)
            size *= others.h[:, np.newaxis]
            high[some] = np.add.reduceat(size, begins)
        known, slope = (terms + eps) * total + eps * high, eps * total * SLACK
        known[total == 0.0] = slope[total == 0.0] = 0.0
        errors = slope[..., np.newaxis] * self.h
        errors += (known * SLACK)[..., np.newaxis]
        errors *= self.s
        return errors

    @property
    def core(self) -> tuple[float, Vector, Vector]:
        """These bounds as the core takes them: eps, h and s."""
        return self._enlarged(float(self.h.max())), self.h, self.s

    def _enlarged(self, h: float) -> float:
        """What becomes of eps where errors of an exponent are errors of exp.

        These are at most 1 + eps (1 + h_i + h_j), with no h above this one.
        """
        most = self.eps * (1.0 + 2.0 * h)
        if not most < 1.0:
            return np.inf
        return float(self.eps * np.expm1(most) / most) if most > 0.0 else self.eps


# Bounds of kernel values as the core takes them; base, each and more of their sums: of
# k entries that are not zero base + gamma_n, n = each k + more; and what each weight,
# value and product may be off by beside, as a share of the length of its row.
SumBounds = tuple[float, Vector, Vector, float, float, float, float]


def errors_by_part(
    bounds: SumBounds, rows: NDArray[Any], c: Vector, starts: NDArray[Any]
) -> Vector:
    """Errors of sums within parts of the vector c, each over rows of its own.

    Entry i belongs to the row ``rows[i]``; parts begin at ``starts``.
    """
    out = np.empty(len(c))
    ends = np.empty(len(starts), np.int64)
    ends[:-1], ends[-1] = starts[1:], len(c)
    _core.errors_by_part(*bounds, ends, rows, c, out)
    return out


@_silent
def value_bounds(
    value: str,
    numbers: tuple[float, float, int],
    terms: Any,
    lengths: Vector,
    unit: float = UNIT,
    spread: float = 2.0,
) -> ValueBounds:
    """Bounds of kernel values that the core computes.

    Parameters
    ----------
    value : {"itself", "power", "tangent", "decay"}
        What becomes of a sum over the columns, as the table of kernels says.
    numbers : gamma, coef0, degree
    terms : int or int ndarray (m,)
        Columns, or the most entries of a row; for rbf perhaps the entries of each row:
        a product has no more terms than either row.
    lengths : ndarray (m,)
        ``|x|^2`` of the rows, less what the core subtracts from them; ``|x|_1`` where
        that is what distances begin at.
    unit : float, of the arithmetic
    spread : float, how often a length counts in what a distance is a difference of
    """
    gamma, coef0, degree = numbers
    none = np.zeros(len(lengths))
    lengths = lengths * SLACK + TINY**2
    if value == "itself":
        return ValueBounds(gamma_n(terms + 4, unit), none, np.sqrt(lengths))
    if value == "power":
        size = (abs(gamma) * lengths + abs(coef0)) ** (0.5 * degree)
        return ValueBounds(gamma_n(degree * (terms + 8), unit), none, size * SLACK)
    if value == "tangent":
        size = np.sqrt(1.0 + abs(gamma) * lengths + abs(coef0))
        return ValueBounds(gamma_n(terms + 20, unit), none, size)
    # A distance is a difference of sums of squares, or of absolute values.
    is_each = isinstance(terms, np.ndarray)
    eps, most = gamma_n(4, unit), terms.max() if is_each else terms
    h = spread * abs(gamma) * (gamma_n(most + 10, unit) / eps) * lengths
    if is_each:
        h *= (terms + 10) / (most + 10)
    return ValueBounds(eps, h, none + 1.0)


def differences_bounds(m: int, terms: int, unit: float = UNIT) -> ValueBounds:
    """Bounds where distances are sums of differences of coordinates: m rows.

    These have all their digits, to 6 units each (those of chi2, the others to 3), and
    of the argument t of exp, |t| exp(t) <= 1 / e.
    """
    return ValueBounds(gamma_n(terms + 16, unit), np.zeros(m), np.ones(m))
