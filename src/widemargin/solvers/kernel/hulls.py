"""Whether hulls meet: a point of both, or of one and the origin, from a few rows.

With q = 0 any alpha within its bounds that has its sums, and K c = 0, proves that the
optimum is zero. Pair steps come near one as 1 / steps, and hardly move in the end. But
of more than twice as many rows as K has rank some are around the origin (Cover 1965,
for signs at random), and then an alpha lies far from all bounds: an interior point
takes ten steps with a factor of these rows alone.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from scipy.linalg.lapack import dpstrf

from widemargin.arrays import Index, Vector
from widemargin.numerics.cholesky import threads_for
from widemargin.solvers.kernel.inner_points import Boxed, Factored, Method, Point

# The rows of each sum, and the sum of their alpha.
Sums = Sequence[tuple[Any, float]]

# Without a margin so far, and below this share of the largest objective there is, it is
# time to look: two classes of 1,000 to 3,000 rows that overlap take 1,000 pair steps to
# there, 2 ms, and ten times as many to a tenth of it.
HOPELESS = 1e-6
# Rows that are looked at first, and then; the least for each column of the factor, and
# how many mostly do; the most that are worth it. (First 100: 0.6 to 1.3 of the time,
# 1000: 0.5 to 1.3; 2 or 6 rows for each column: 0.8 to 7 and 0.8 to 4.8,
# benchmarks/core/untuned.py.)
FEW, LEAST, ROOMY, MOST = 300, 2, 3, 2000
# Bytes of a kernel value, and of copies of it.
BYTES = 32
# The share of what may stay that is aimed at: the rest is for rounding.
ENOUGH = 0.5
# Bounds have room for so many times each sum.
SPARE = 2.0
# Residuals of the factor may cost so many times what is enough, by a bound that is far
# above it; below this share of the diagonal they are rounding. (10 and 1000: 0.6 to 1.6
# of the time, benchmarks/core/untuned.py, and some hulls are not seen to meet.)
RESIDUAL, ROUNDING = 100.0, 1e-14
# Multipliers to begin with, as no row has to end at a bound, in units of usual ones (1:
# 14 steps, 1e-3: 11, 1e-6: 9, 1e-9: 10; 1: 0.9 to 1.9 of the time,
# benchmarks/core/untuned.py), and the most steps.
LIGHT, MOST_STEPS = 1e-6, 20
# A step that leaves more of the objective shows that hulls hardly meet, or do not:
# where they do it falls to less than a quarter. (0.25: 0.8 to 4.6 of the time, 0.9: 0.7
# to 1.1, benchmarks/core/untuned.py.)
SLOW = 0.5


def common_point(
    values: Callable[[Index], Vector],
    y: Vector,
    C: Vector,
    sums: Sums,
    enough: float,
    memory: int,
) -> Vector | None:
    """Some c = y alpha with the sums that are given and 1/2 c'K c <= ``enough``.

    Parameters
    ----------
    values : function of an index of k rows, which returns their K: (k, k)
    y, C : ndarray (m,), labels and bounds
    sums : the rows, all of one label, and the sum of their alpha, of each sum
    enough : float > 0
    memory : int, bytes

    Returns
    -------
    ndarray (m,) or None
        None says nothing: there may be one of more rows.

    Notes
    -----
    k^2 kernel values and some ten times k r^2 multiplications, for k rows of rank r.
    """
    c, totals = np.zeros(len(y)), np.array([total for _, total in sums])
    least, count = RESIDUAL * enough / float(totals.sum()) ** 2, FEW
    most = min(MOST, math.isqrt(max(0, memory) // BYTES))
    for _ in range(2):
        each = -(-count // len(sums))
        parts = [_some(own[C[own] > 0.0], C, total, each) for own, total in sums]
        J = np.concatenate(parts)
        if len(J) > most:
            return None
        K = values(J)
        Z = _factor(K, max(least, ROUNDING * float(K.diagonal().max())))
        if LEAST * Z.shape[1] <= len(J):
            E = np.repeat(np.eye(len(sums)), [len(part) for part in parts], axis=0)
            upper = np.where(y[J] > 0.0, C[J], 0.0)
            signed = totals * (E.T @ y[J]) / E.sum(axis=0)
            box = Boxed(Factored(Z), np.zeros(len(J)), upper - C[J], upper, E, signed)
            c[J] = _inside(Method(box), enough)
            if 0.5 * float(c[J] @ K @ c[J]) <= enough:
                return c
            c[J] = 0.0
        count = ROOMY * Z.shape[1]
        if count <= len(J):
            return None
    return None


def lightened(at: Point) -> Point:
    """Where to begin if no row has to end at a bound."""
    return at._replace(low=LIGHT * at.low, high=LIGHT * at.high)


def _some(own: Index, C: Vector, total: float, count: int) -> Index:
    """So many rows at random, or as many as have bounds with room for a sum."""
    rows = np.random.default_rng(0).permutation(own)
    roomy = int(np.searchsorted(np.cumsum(C[rows]), SPARE * total)) + 1
    return rows[: max(count, roomy)]


def _factor(K: Vector, least: float) -> Vector:
    """Some Z with K = Z Z', but for a diagonal of at most ``least``: (k, r)."""
    with threads_for(len(K)):
        L, order, rank, _ = dpstrf(K, tol=least, lower=True)
    Z = np.empty((len(K), rank))
    Z[order - 1] = np.tril(L[:, :rank])
    return Z


def _inside(method: Method, enough: float) -> Vector:
    """Where the objective is small enough, or as small as it has become."""
    at = method.begin()
    if at is None:  # there is no room
        return np.full(len(method.lower), np.nan)
    at, before = lightened(at), np.inf

    def end(now: float) -> float:
        nonlocal before
        is_over, before = now <= enough or now > SLOW * before, now
        return np.inf if is_over else 0.0

    with threads_for(len(at.c)):
        return method.feasible(method.run(at, end, MOST_STEPS).c)
