"""Newton's step for the squared hinge, as if the rows near the margin had been read.

Newton's method is exact but for rows that cross the margin on its way. Near the end few
do, and they are among those with f near 1: when these alone are copied, its further
steps read them instead of all rows. How far a step moves a row is asked of a sample.
"""

import math
from dataclasses import replace
from typing import Any

import numpy as np

from widemargin.arrays import Vector
from widemargin.data.rows import SignedRows
from widemargin.data.state import RowState
from widemargin.numerics import linalg
from widemargin.numerics.cholesky import cholesky
from widemargin.problems.base import margins
from widemargin.solvers.linear.newton import Iterate, Piece, expected

# The rows that are looked at are as near as the step moves all but one of the first
# shares of rows: the largest share for which those further off should leave little
# enough of the gap; and they are at most the second share of all. (200,000 x 8 to
# 1M x 32 normal rows, C from 0.001 to 10, to gaps of 1e-3 to 1e-8: the first step on
# all rows needs no other sweep than the certificate in 38 of 60 cases, at most 0.1 of
# all rows in 20, 0.05 in 2; processor time 0.94, 0.98 and 1.0 of what it was with a
# share beyond of 1e-3 alone. benchmarks/core/untuned.py)
BEYOND, MOST = (0.1, 0.05, 0.02, 1e-2, 1e-3, 1e-4), 0.2
# Rows that do not cross the margin are copied where they end this many times as near as
# the correction of the step should move them.
FURTHER = 3.0
# Rows that are expected to cross from further off, below which there should be none.
NONE = 0.1
# Where the memory is limited they take at most this share of it, as blocks of a sweep
# do; bytes of an entry, which is there twice while they are put together.
COPY_SHARE, ENTRY = 0.125, 24
# Steps with these rows; two to four suffice.
STEPS = 10


def corrected(
    piece: Piece, sample: Piece, point: Iterate, s: float, dv: Vector, enough: float
) -> Iterate | None:
    """Where Newton's step ``dv`` should end, corrected by the rows that it crosses.

    None where these are too many, or say that P does not fall. Reads the rows near the
    margin: those that it leaves out should make a gap of ``enough`` at most.
    """
    width, bent, rest = _width(piece, sample, point, s, dv, enough)
    falls = -float(point.residual @ dv)
    if not width or piece.matrix is None or not falls > 0.0:
        return None
    H = piece.system(piece.matrix, s)
    # What a step moves the rows of H by is the root of r'H^-1 r.
    further = float(bent @ cholesky(H.copy())[0](bent)) / falls
    turn = min(1.0, FURTHER * math.sqrt(max(further, 0.0))) * width
    near = piece.A.sweep(_near, piece.state, dv, width, turn)
    if near is None:
        return expected(point, dv, rest)
    A, C, f = linalg.stack(near[0]), *map(np.concatenate, near[1:])
    was = f < 1.0
    now, last, found = H.copy(), was, None
    for _ in range(STEPS):
        t = 1.0 - (f + A @ dv)
        is_in = t > 0.0
        crossed = np.flatnonzero(is_in != was)
        alpha = s * C[crossed] * np.abs(t[crossed])
        along = H @ dv
        r = point.residual + along - A[crossed].T @ alpha
        gap = piece.gap_of(r, point.v + dv)
        if found is not None and not gap < found.gap:
            break
        primal = point.primal + float(dv @ (point.residual + 0.5 * along))
        primal += 0.5 * float(alpha @ t[crossed])
        found = replace(point, v=point.v + dv, primal=primal, dual=primal - gap)
        changed = np.flatnonzero(is_in != last)
        if not changed.size:
            break
        sign = np.where(is_in[changed], s, -s)
        now, last = now + A[changed].gram(sign * C[changed]), is_in
        dv = dv - cholesky(now.copy())[0](r)
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


def _width(
    piece: Piece, sample: Piece, point: Iterate, s: float, dv: Vector, enough: float
) -> tuple[float, Vector, float]:
    """How near to 1 the scores are of rows to look at; 0: none, or too many, are.

    And the residual that all rows that cross the margin make, and the gap of those that
    are further off. A row that moves by t crosses by t^2 / 2 times how many rows have
    scores there, by u^2 / 2 of that from further off, u = t - width, and by u^3 / 3 in
    the square: these are few, and more than their mean, if there are any.
    """
    squares, *found = sample.A.sweep(_moves, sample.state, point.v, dv)
    moves, keys = map(np.concatenate, found)
    widths = np.quantile(moves, 1.0 - np.asarray(BEYOND))
    if not widths[0]:
        return 0.0, squares, 0.0
    over = np.maximum(moves[moves > widths[0]] - widths[:, np.newaxis], 0.0)
    looked = np.array([np.count_nonzero(keys <= width) for width in widths])
    times = piece.A.shape[0] / sample.A.shape[0]
    density = (looked[-1] + 1) / (2.0 * widths[-1] * len(keys))
    bent = 0.5 * s * density * squares
    missed = np.square(over).sum(axis=1) / float(moves @ moves)
    rest = missed * missed * piece.gap_of(bent, point.v)
    possible = (rest <= enough) & (looked <= _most(piece.A) * len(keys))
    if possible.any():
        found = sample.A.sweep(_beyond, sample.state, dv, widths)
        noise = np.sqrt(s * s * density / 3.0 / times * found)
        some = times * density * over.sum(axis=1) >= NONE
        rest += some * np.array([piece.gap_of(own, point.v) for own in noise])
    for k in np.flatnonzero(possible & (rest <= enough))[:1]:
        return float(widths[k]), bent, float(rest[k])
    return 0.0, bent, 0.0


# -- functions of one block ------------------------------------------------------------


def _moves(
    block: Any, part: RowState, v: Vector, dv: Vector
) -> tuple[Vector, list[Vector], list[Vector]]:
    """A'(C |A dv|^2), |A dv| and |1 - f|."""
    moves = np.abs(block @ dv)
    squares = np.asarray(block.T @ (part.C * moves * moves))
    return squares, [moves], [np.abs(margins(part) - block @ v)]


def _beyond(block: Any, part: RowState, dv: Vector, widths: Vector) -> Vector:
    """Diagonals of A'D A, D = C^2 (|A dv| - width)^3, for each of the widths."""
    moves = np.abs(block @ dv)
    index = np.flatnonzero(moves > widths[0])
    over = np.maximum(moves[index] - widths[:, np.newaxis], 0.0)
    rows, d = block[index], part.C[index] ** 2 * over**3
    return np.array([linalg.gram_diagonal(rows, own) for own in d])


def _near(
    block: Any, part: RowState, dv: Vector, width: float, turn: float
) -> tuple[list[Any], list[Vector], list[Vector]] | None:
    """Rows that the step takes across the margin, their weights and scores.

    Of those with scores as near to 1, and with those that end as near as ``turn``.
    """
    index = np.flatnonzero(np.abs(1.0 - part.f) <= width)
    if not index.size:
        return None
    rows, C, f = block[index], part.C[index], part.f[index]
    there = 1.0 - (f + rows @ dv)
    own = np.flatnonzero((np.abs(there) <= turn) | ((there > 0.0) != (f < 1.0)))
    return ([rows[own]], [C[own]], [f[own]]) if own.size else None
