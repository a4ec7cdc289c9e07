"""The small problem of a working set on one face after the other, to rounding.

A face is which rows are free to move between their bounds. Its minimum, where the sums
that are given stay, is a linear system: one free row of each sum, its pivot, loses what
the others gain. A step ends there, or where the first row meets a bound, which then
leaves the face. At a minimum the pair of rows that violates most joins it, of each sum.
That is a primal active set method. A step costs a Cholesky factor: it is for few rows,
and there for K that is nearly singular, where pair steps need millions.
"""

import numpy as np
from scipy.linalg.lapack import dpotrf, dpotrs

from widemargin.arrays import Index, Mask, Vector
from widemargin.solvers.kernel.small_problem import Small, Solved
from widemargin.solvers.kernel.violations import Violations
from widemargin.system import deadline

# Steps for each row, of few rows, and of more. (2 and 8, 64 and 1024 rows, 3 and 30
# steps: 0.7 to 1.3 of the time of nu problems, benchmarks/core/untuned.py.)
MOST_STEPS, FEW_ROWS, FEW_STEPS = 4, 256, 10
# What is added to the diagonal, as a share of its mean: of a K that is singular in
# float64, up to one that was in float32.
JITTERS = (1e-14, 1e-12, 1e-10, 1e-8, 1e-6, 1e-4)


def solve_on_faces(small: Small, stop: float) -> Solved:
    """Steps on faces until no violation is above ``stop``, where a sum is given.

    The answer is the point with the least violation: where rounding, or a kernel that
    is not positive semidefinite, is in the way, that one may be above.
    """
    now = best = small.at(small.c)
    found = now.violations
    free, least, steps, at_minimum = _free(now), found.size, 0, False
    m = len(small.c)
    while least > stop and steps < (MOST_STEPS * m if m <= FEW_ROWS else FEW_STEPS):
        deadline.check()
        if at_minimum:
            free = free | _joining(found, stop)
        c, blocked = _step(now, free)
        free, at_minimum = free & ~blocked, not blocked.any()
        now, steps = now.at(c), steps + 1
        found = now.violations
        if found.size < least:
            best, least = now, found.size
    return Solved(best.c, steps, 0, not least > stop)


def _free(small: Small) -> Mask:
    """Rows between their bounds."""
    return np.asarray((small.c > small.lower) & (small.c < small.upper))


def _joining(found: Violations, stop: float) -> Mask:
    """Of each sum the two rows that violate most, if they do."""
    rows = np.zeros(len(found.F), np.bool_)
    for own, (rise, fall) in zip(found.groups, found.ranges, strict=True):
        if rise - fall > stop:
            members = np.arange(len(rows))[own]
            rows[members[found.rise[members].argmax()]] = True
            rows[members[found.fall[members].argmin()]] = True
    return rows


def _step(small: Small, free: Mask) -> tuple[Vector, Mask]:
    """The next c, and the rows that meet a bound there: none at the minimum."""
    change = _to_minimum(small, free)
    with np.errstate(divide="ignore", invalid="ignore"):
        ends = np.where(change > 0, small.upper, small.lower)
        shares = np.where(change == 0, np.inf, (ends - small.c) / change)
    t = min(1.0, float(shares.min()))
    blocked = (shares <= t) & (shares < 1.0)
    c = np.where(blocked, ends, small.c + t * change)
    return np.clip(c, small.lower, small.upper), blocked


def _to_minimum(small: Small, free: Mask) -> Vector:
    """The change to the minimum of the face: what others gain, pivots lose."""
    change = np.zeros(len(free))
    others, pivots = _against_pivots(small, free)
    if len(others):
        F = small.F[others] - small.F[pivots]
        change[others] = _solved(_curvature(small, others, pivots), -F)
        np.subtract.at(change, pivots, change[others])
    return change


def _against_pivots(small: Small, free: Mask) -> tuple[Index, Index]:
    """Free rows but for one of each sum, and which one that is: as long."""
    room = np.minimum(small.c - small.lower, small.upper - small.c)
    others, pivots = [], []
    for own in small.violations.groups:
        rows = np.arange(len(free))[own]
        rows = rows[free[rows]]
        if len(rows) > 1:
            pivot = rows[room[rows].argmax()]
            others.append(rows[rows != pivot])
            pivots.append(np.full(len(rows) - 1, pivot))
    empty = np.empty(0, np.intp)
    return np.concatenate([empty, *others]), np.concatenate([empty, *pivots])


def _curvature(small: Small, others: Index, pivots: Index) -> Vector:
    """Of the objective, where others rise and their pivots fall."""
    K, ridge = small.K, small.ridge
    H = K[np.ix_(others, others)] - K[np.ix_(others, pivots)]
    H += K[np.ix_(pivots, pivots)] - K[np.ix_(pivots, others)]
    H += np.where(pivots[:, np.newaxis] == pivots, ridge[pivots], 0.0)
    H[np.diag_indices(len(others))] += ridge[others]
    return np.asarray(H)


def _solved(H: Vector, right: Vector) -> Vector:
    """H^-1 right, with a larger diagonal where H is not positive definite."""
    diagonal = H.diagonal().copy()
    mean = float(np.abs(diagonal).mean()) or 1.0
    for jitter in JITTERS:
        H[np.diag_indices(len(H))] = diagonal + jitter * mean
        L, info = dpotrf(H, lower=True)
        if info == 0:
            solved: Vector = dpotrs(L, right, lower=True)[0]
            return solved
    return right / mean
