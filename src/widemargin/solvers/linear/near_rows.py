"""Newton's step for the squared hinge, as if the rows near the margin had been read.

Newton's method is exact but for rows that cross the margin on its way. Near the end few
do, and they are among those with f near 1: when these alone are copied, its further
steps read them instead of all rows. How far a step moves a row is asked of a sample.
"""

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from widemargin.data.rows import SignedRows
from widemargin.data.state import RowState
from widemargin.numerics import linalg
from widemargin.numerics.cholesky import cholesky
from widemargin.problems.base import margins
from widemargin.solvers.linear.newton import Iterate, Piece

Vector = NDArray[np.float64]

# The rows that are copied are as near as the step moves all but the first share of
# rows, and at most the second share of all. (1M x 32 normal rows, C = 0.01, 1, 100, to
# 1e-6: two sweeps and the certificate instead of three, three and four; 8 to 20 ms of
# the processor for the rows, 36 for a sweep. With 200,000 x 8 a share beyond of 1e-4
# or 1e-2 takes 1.01 to 1.09 of the time, at most 0.2 of all 0.85 to 0.9, and none 0.96
# to 1.15: benchmarks/core/untuned.py.)
BEYOND, MOST = 1e-3, 0.05
# Where the memory is limited they take at most this share of it, as blocks of a sweep
# do; bytes of an entry, which is there twice while they are put together.
COPY_SHARE, ENTRY = 0.125, 24
# Steps with these rows; two to four suffice.
STEPS = 10


def corrected(
    piece: Piece, sample: Piece, point: Iterate, s: float, dv: Vector
) -> Iterate | None:
    """Where Newton's step ``dv`` should end, corrected by the rows that it crosses.

    None where these are too many, or say that P does not fall. Reads the rows near the
    margin.
    """
    width, missed = _width(sample, point.v, dv, _most(piece.A))
    near = piece.A.sweep(_near, piece.state, width) if width else None
    if near is None or piece.matrix is None:
        return None
    A, C, f = linalg.stack(near[0]), *map(np.concatenate, near[1:])
    H, was = piece.system(piece.matrix, s), f < 1.0
    now, last, found, rest = H.copy(), was, None, 0.0
    for _ in range(STEPS):
        t = 1.0 - (f + A @ dv)
        is_in = t > 0.0
        crossed = np.flatnonzero(is_in != was)
        alpha = s * C[crossed] * np.abs(t[crossed])
        bent = H @ dv
        r = point.residual + bent - A[crossed].T @ alpha
        gap = piece.gap_of(r, point.v + dv)
        if found is None:
            rest = missed * missed * gap
        elif not gap < found.gap:
            break
        primal = point.primal + float(dv @ (point.residual + 0.5 * bent))
        primal += 0.5 * float(alpha @ t[crossed])
        found = replace(point, v=point.v + dv, primal=primal, dual=primal - gap)
        changed = np.flatnonzero(is_in != last)
        if not changed.size:
            break
        sign = np.where(is_in[changed], s, -s)
        now, last = now + A[changed].gram(sign * C[changed]), is_in
        dv = dv - cholesky(now)[0](r)
    if found is None or not found.primal < point.primal:
        return None
    return replace(found, dual=found.dual - rest)


def _most(A: SignedRows) -> float:
    """The share of the rows that may be copied."""
    limit: int | None = A.options.get("memory_limit")
    if limit is None:
        return MOST
    m, n = A.shape
    return min(MOST, COPY_SHARE * limit / (ENTRY * max(A.density * n, 1.0) * m))


def _width(sample: Piece, v: Vector, dv: Vector, most: float) -> tuple[float, float]:
    """How near to 1 the scores are of rows to copy; 0: none, or more than most, are.

    And the share of what crosses the margin that rows further off make: one that moves
    by t is taken t - |1 - f| beyond it, and has any such f as likely.
    """
    found = sample.A.sweep(_moves, sample.state, v, dv)
    moves, keys = map(np.concatenate, found)
    width = float(np.quantile(moves, 1.0 - BEYOND))
    if width == 0.0 or np.mean(keys <= width) > most:
        return 0.0, 1.0
    beyond = np.maximum(moves - width, 0.0)
    return width, float((beyond @ beyond) / (moves @ moves))


# -- functions of one block ------------------------------------------------------------


def _moves(
    block: Any, part: RowState, v: Vector, dv: Vector
) -> tuple[list[Vector], list[Vector]]:
    """|A dv| and |1 - f|."""
    return [np.abs(block @ dv)], [np.abs(margins(part) - block @ v)]


def _near(
    block: Any, part: RowState, width: float
) -> tuple[list[Any], list[Vector], list[Vector]] | None:
    """The rows with scores as near to 1, their weights and scores."""
    index = np.flatnonzero(np.abs(1.0 - part.f) <= width)
    if not index.size:
        return None
    return [block[index]], [part.C[index]], [part.f[index]]
