"""Rows in memory in the form, dense or CSR, that a linear solver reads fastest.

So that one copy decides how long a fit takes, not who stored the data.
"""

import mmap
from typing import Any

import numpy as np

from widemargin.data.memory import MemoryRows
from widemargin.data.rows import Rows
from widemargin.numerics import linalg
from widemargin.system.memory import free_bytes

# Share of entries that are not zero from which rows are read faster from a dense array,
# of up to MANY columns and of more; and columns up to which dense rows stay dense,
# however few these are. (370 drawn problems, over the better form: with a share of 0.2,
# 0.25 and 0.3 for all 1.065, 1.056 and 1.049 times as long, but beyond 1,000 columns
# arrays of a share of 0.3 take up to 2.6 times as long; up to 32 columns CSR rows take
# 1.2 times as long in the mean, 0.5 to 5.7. `benchmarks/core/stored_form.py` has sums.)
FULL, FULL_MANY, MANY, NARROW = 0.25, 0.4, 256, 32
# Bytes of a copy up to which nobody asks how much memory is free, and of a CSR entry.
FEW_BYTES, ENTRY = 64 << 20, 12


def is_full(rows: Rows) -> bool:
    """Whether a dense array suits rows, as few of their entries are zero."""
    return rows.share > (FULL if rows.shape[1] <= MANY else FULL_MANY)


def well_stored(rows: Rows, dense: bool | None = None) -> Rows:
    """The rows as a dense array, or as CSR rows; as they are where they are so already.

    Parameters
    ----------
    rows : Rows
        Others than arrays in memory stay as they are, memory-mapped ones too, and those
        of which there is no room for a copy.
    dense : bool or None, default=None
        What they become. None: what suits them.
    """
    if type(rows) is not MemoryRows:
        return rows
    X: Any = rows.in_memory()
    if _is_mapped(X):
        return rows
    (m, n), is_dense = rows.shape, isinstance(X, np.ndarray)
    dense = is_full(rows) if dense is None else dense
    if dense == is_dense or (is_dense and n <= NARROW):
        return rows
    needed, limit = m * n * X.dtype.itemsize, rows.options["memory_limit"]
    if not dense:
        needed = int(ENTRY * m * n * rows.share) + 8 * m
        needed += 0 if linalg.is_in_core(X) else 8 * m * n  # copied first
    if needed > (limit or (free_bytes() if needed > FEW_BYTES else FEW_BYTES)):
        return rows
    return rows.stored(dense)


def _is_mapped(X: Any) -> bool:
    """Whether the numbers of an array or CSR array lie in a file."""
    X = X if isinstance(X, np.ndarray) else X.data
    while X is not None:
        if isinstance(X, np.memmap | mmap.mmap):
            return True
        X = X.obj if isinstance(X, memoryview) else getattr(X, "base", None)
    return False
