"""A number that tells rows from others, however they are cut and read."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from widemargin.arrays import Index64, Vector
from widemargin.data.doubled import DoubledRows
from widemargin.data.rows import Rows
from widemargin.numerics import linalg

# Row i has the phase STEP i / PRIME of a turn: whole numbers, so that a phase has no
# rounding that grows with i. Steps of a golden ratio: near rows differ.
PRIME, STEP = 2**31 - 1, 1_327_217_885
GOLDEN = 0.6180339887498949


def fingerprint(rows: Rows) -> float:
    """A number that other rows, another order of them or other columns hardly have.

    The real part of sum_i e^(i phase_i) x_i's, with a positive s of all different
    numbers, beside the size that it has for rows in no order. 1 is added, so that a
    tolerance relative to the number is one relative to the size, too: within 1e-9 it
    depends on no cut of blocks. One sweep, and one of the moments where they are not
    known; vectors with a number for each row are made of one block at a time.
    """
    if isinstance(rows, DoubledRows):  # both halves of a block come together
        rows = rows.base
    m, n = rows.shape
    sizes = np.hypot(*rows.moments)
    # Columns of small numbers weigh more, but not so much that all weigh the same:
    # two that are multiples of each other may have changed places.
    s = (1.0 + np.arange(1, n + 1) * GOLDEN % 1.0) / np.sqrt(sizes + (sizes == 0.0))
    start, wave = 0, 0j
    for length, part in rows.sweep(_wave, None, s):
        wave += np.exp(_phases(np.array(start))) * part
        start += length
    size = float(np.sqrt(m * sizes.sum()))
    return 1.0 + float(wave.real) / size if size > 0.0 else 1.0


def _phases(i: Index64) -> NDArray[np.complex128]:
    """The phases of rows i < 2^31, further ones begin anew, as imaginary numbers."""
    return np.asarray(2j * np.pi / PRIME * (i % PRIME * STEP % PRIME))


def _wave(block: Any, part: None, s: Vector) -> list[tuple[int, complex]]:
    """How many rows a block has, and the sum of its scores as if it were the first."""
    scores = linalg.matvec(block, s)
    return [(len(scores), complex(np.exp(_phases(np.arange(len(scores)))) @ scores))]
