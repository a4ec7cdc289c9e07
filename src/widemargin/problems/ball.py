"""Smallest balls around points phi(x_i), with K = (phi(x_i)'phi(x_j)): hard and soft.

Hard, with the center c and the squared radius rho:

    minimize   rho   subject to   d_i = |phi(x_i) - c|^2 <= rho;

soft, with weights C_i > 0:

    minimize   rho + sum_i C_i max(0, d_i - rho)^2   over c and rho >= 0.

The Lagrangian with multipliers b_i >= 0 of t_i >= d_i - rho is stationary in c, rho
and the slacks t where c = sum b_i phi(x_i) / sum b, sum b <= 1 (= 1 if rho > 0) and
t_i = b_i / (2 C_i). With b = sigma a, sum a = 1, the dual is, for both,

    maximize   sigma V(a) - sigma^2 S(a)   over a >= 0, sum a = 1, 0 <= sigma <= 1,

    V(a) = sum_i a_i k(x_i, x_i) - a'K a = sum_i a_i d_i,
    S(a) = sum_i a_i^2 / (4 C_i),

S = 0 for the hard one, and d from the center sum a_i phi(x_i). Mostly sigma = 1, and
this is the problem of `widemargin.solvers.kernel.simplex` with h = diag(K) and the
ridge 1 / (4 C_i). With sigma < 1, where C is too small for a positive rho [chang2013]_,
the ridge is sigma / (4 C_i), and for a given a the best sigma is V / (2 S).

With uniform weights h = diag(Q) has the same solutions: V - S is, up to a constant,
the squared radius of a hard ball around (phi(x_i), e_i / sqrt(4 C)) [tsang2005]_.
"""

import functools
import zlib
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from widemargin.arrays import Vector
from widemargin.data.rows import Rows
from widemargin.kernels.matrix import Columns
from widemargin.numerics import twofold
from widemargin.numerics.rounding import SLACK, UNIT, gamma_n
from widemargin.problems.scores import Sums
from widemargin.solution import Certificate

# Rows whose mean is the first guess at the center of a soft ball: it is off by 1/16 of
# the deviation of the rows.
SAMPLE = 256
# Share of the largest k(x, x) that distances are compared with, where all are below: so
# rounding of 1e-16 is a gap of 1e-4 only.
RESOLVED = 1e-12
# The largest price that tells points apart, in units of 1 / k(x, x).
HARD = 1e60
# The least number with all its digits: quotients by less may overflow.
TINY = float(np.finfo(np.float64).tiny)


class Bounds(NamedTuple):
    """Values of a center: its certificate, the best rho, and V / (2 S)."""

    certificate: Certificate
    rho: float
    ratio: float


@dataclass(frozen=True)
class BallProblem:
    """The points, and what balls around them cost.

    Attributes
    ----------
    columns : Columns of K, (m, m)
    C : ndarray (m,), positive, infinity allowed; or None for the hard ball

    Raises
    ------
    ValueError
        A point has k(x, x) < 0.
    """

    columns: Columns
    C: Vector | None = None
    couples: ClassVar[bool] = True
    norm: ClassVar[None] = None

    def __post_init__(self) -> None:
        least = int(np.argmin(self.diagonal))
        if not self.diagonal[least] >= 0:
            raise ValueError(
                "The kernel must have k(x, x) >= 0, the squared length of a point. Got "
                f"{self.diagonal[least]:.6g} at row {least} instead."
            )

    @property
    def rows(self) -> Rows:
        """The points in the space of the data."""
        return self.columns.rows

    @property
    def facts(self) -> dict[str, Any]:
        """What tells it from other problems, of which a checkpoint may be."""
        mean, std = self.rows.moments
        m, n = self.rows.shape
        return {
            "rows": m,
            "columns": n,
            "loss": "hard ball" if self.C is None else "soft ball",
            "total C": 0.0 if self.C is None else float(self.C.sum()),
            "checksum of C": 0 if self.C is None else zlib.crc32(self.C.data),
            "size of the columns": float(np.sqrt(np.sum(mean * mean + std * std))),
        } | self.columns.kernel.facts

    @functools.cached_property
    def diagonal(self) -> Vector:
        """k(x_i, x_i): (m,)."""
        return self.columns.diag()

    @functools.cached_property
    def prices(self) -> Vector | None:
        """C (m,), or less where the ball is a hard one to all digits; or None."""
        if self.C is None:
            return None
        most = min(HARD / max(float(self.diagonal.max()), TINY), 1e300)
        return np.clip(self.C, TINY, most)

    @functools.cached_property
    def ridge(self) -> Vector:
        """1 / (4 C_i), or zeros: (m,)."""
        if self.prices is None:
            return np.zeros(len(self.diagonal))
        return 0.25 / self.prices

    @property
    def resolution(self) -> float:
        """The squared distance below which all is rounding."""
        return RESOLVED * float(self.diagonal.max())

    def distances(self, a: Vector, f: Vector) -> tuple[Vector, float]:
        """Squared distances d (m,) from c = sum a_i phi(x_i), and |c|^2; f = K a."""
        square = float((a * f).sum())
        distances: Vector = self.diagonal + square - 2.0 * f
        return distances, square

    def exact(self, a: Vector) -> Vector:
        """K a in float64: (m,)."""
        J = np.flatnonzero(a)
        return self.columns.exact(np.arange(len(a)), J, a[J])

    def certify(self, a: Vector, d: Vector) -> "Bounds":
        """Primal and dual value of a point of the simplex with these distances."""
        d = np.maximum(d, 0.0)
        return self._bounds(a, d, d, d)

    def prove(self, a: Vector, tol: float) -> "Bounds":
        """As `certify`, with distances in float64 that rounding makes no better.

        Where it decides whether the relative gap is ``tol``: in twice the precision.
        """
        bounds = self._proved(a, self.columns.bounded, self._plain_diagonal)
        if bounds.certificate.hides(tol):
            return self._proved(a, self.columns.twofold, self.columns.twofold_diag)
        return bounds

    def _proved(self, a: Vector, products: Any, diagonal: Any) -> "Bounds":
        """Bounds by sums K a and k(x, x), each with errors and low parts."""
        J = np.flatnonzero(a)
        f = Sums(*products(np.arange(len(a)), J, a[J]))
        d, errors = _distances(a, f, Sums(*diagonal()))
        if not np.isfinite(errors).all():
            return self._bounds(a, d, d + np.inf, np.zeros_like(d))
        return self._bounds(
            a,
            np.maximum(d, 0.0),
            np.maximum(d + errors, 0.0),
            np.maximum(d - errors, 0.0),
        )

    def _plain_diagonal(self) -> tuple[Vector, Vector]:
        return self.diagonal, self.columns.diag_errors

    def _bounds(self, a: Vector, d: Vector, most: Vector, least: Vector) -> "Bounds":
        """Bounds where the distances, about d, lie between two vectors.

        The weights a have the sum 1 but for rounding. Divided by their sum, where that
        is above 1, they are dual variables: sum a_i d_i from the center sum a_j
        phi(x_j) is more than that from the center of their own by rounding squared.
        """
        V, S = float((a * d).sum()), float((self.ridge * a * a).sum())
        off = gamma_n(len(a) + 8)
        lost = 4.0 * off * off * float(self.diagonal.max())
        # A model may have the center of the weights divided by their sum, or a rounded
        # center: this is its largest distance from the center here.
        most = (np.sqrt(most) + np.sqrt(lost)) ** 2
        surely = max((1.0 - 2.0 * off) * float((a * least).sum()) - lost, 0.0)
        floor = max(self.resolution, TINY)
        C = self.prices
        if C is None:
            rho, primal = float(d.max()), float(most.max())
            rounding = primal - rho + V - surely
            return Bounds(Certificate(primal, surely, floor, rounding), rho, np.inf)
        rho, ratio = max(best_square(d, C), 0.0), 0.5 * V / max(S, TINY)
        sigma, largest = min(1.0, ratio), float(d.max())
        plain, more = rho + _price(C, d - rho), float((most - d).max())
        # Where C is so large that rounding costs much, a larger rho is the better one.
        primal = min(r + (1.0 + off) * _price(C, most - r) for r in (rho, rho + more))
        if min(plain, primal) > largest:  # or the hard ball
            plain, primal, rho = largest, float(most.max()), largest
        spread = sigma * sigma * S
        dual = sigma * surely - (1.0 + off) * spread
        if self.resolution < V:  # or sigma is a quotient of rounding
            floor = max(sigma * floor, TINY)
        rounding = primal - plain + sigma * V - spread - dual
        return Bounds(Certificate(primal, dual, floor, rounding), rho, ratio)

    @property
    def point(self) -> tuple[Vector, Vector, float]:
        """A point as center, distances at most from it, and its square.

        No look at K: sides of a triangle with the origin.
        """
        a, lengths = np.zeros(len(self.diagonal)), np.sqrt(self.diagonal)
        a[0], d = 1.0, (lengths + lengths[0]) ** 2
        d[0] = 0.0
        return a, d, float(self.diagonal[0])

    def start(self, seed: int) -> Vector:
        """A first point: (m,), of sum 1.

        Hard: half on the farthest point from a random one, half opposite. Soft: what
        would be optimal if the center were the mean of a sample.
        """
        m, random = len(self.diagonal), np.random.default_rng(seed)
        a, C = np.zeros(m), self.prices
        if C is None:
            far = self._farthest(int(random.integers(m)))
            a[[far, self._farthest(far)]] = 1.0
        else:
            a[random.choice(m, min(m, SAMPLE), replace=False)] = 1.0 / min(m, SAMPLE)
            d = np.maximum(self.distances(a, self.exact(a))[0], 0.0)
            excess = C * np.maximum(d - max(best_square(d, C), 0.0), 0.0)
            a = excess if excess.any() else a
        start: Vector = a / a.sum()
        return start

    def _farthest(self, i: int) -> int:
        """The point that is farthest from point i."""
        a = np.zeros(len(self.diagonal))
        a[i] = 1.0
        return int(np.argmax(self.distances(a, self.exact(a))[0]))


def _distances(a: Vector, f: Sums, diagonal: Sums) -> tuple[Vector, Vector]:
    """Squared distances k_ii + a'f - 2 f_i, and bounds of their errors: (m,)."""
    square, low, error = twofold.dot(a, f.values, f.low + np.zeros_like(f.values))
    error += float((a * f.errors).sum())
    d, rest = twofold.add(square, low, -2.0 * f.values, -2.0 * f.low)
    d, rest = twofold.add(diagonal.values, diagonal.low, d, rest)
    errors = diagonal.errors + 2.0 * f.errors + error + 4.0 * UNIT * np.abs(d)
    sizes = np.abs(diagonal.values) + abs(square) + 2.0 * np.abs(f.values)
    return d + rest, (errors + 16.0 * UNIT * UNIT * sizes) * SLACK


def _price(C: Vector, excess: Vector) -> float:
    """Sum C_i max(0, excess_i)^2."""
    excess = np.maximum(excess, 0.0)
    with np.errstate(over="ignore"):
        return float((C * excess * excess).sum())


def best_square(d: Vector, C: Vector) -> float:
    """The rho that minimizes rho + sum C_i max(0, d_i - rho)^2; d and C (m,).

    There 2 sum C_i max(0, d_i - rho) = 1: with the k largest d above rho it is
    (2 sum C_i d_i - 1) / (2 sum C_i), and rho is the largest of these. O(m log m).
    """
    order = np.argsort(-d)
    d, c = d[order], 2.0 * C[order]
    # From the largest d, whose digits are lost otherwise.
    below = np.cumsum(c * (d[0] - d))
    return float(d[0] - ((below + 1.0) / np.cumsum(c)).min())
