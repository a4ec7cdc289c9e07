"""Groups of equal rows."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from widemargin import _core
from widemargin.arrays import Index64
from widemargin.numerics import linalg

# Rows that are grouped between two looks at Ctrl-C.
GROUPED_ROWS = 1 << 20
# Of dense rows of more columns so many in the middle are looked at first: all of usps
# take 8 ms, a twentieth of a fit, and these 0.5.
MIDDLE = 32


def equal_rows(
    X: linalg.Matrix, labels: NDArray[Any], most: float = np.inf
) -> tuple[Index64, Index64]:
    """First rows of the groups of rows equal in X and label, and each row's group.

    Equal means the same entries; in CSR stored in the same order. It ends early where
    there are more than ``most`` groups: then the groups of later rows are not known.
    """
    m = X.shape[0]
    rows: Any
    if sparse.issparse(X):
        rows = linalg.in_core(X)
    else:
        rows = np.ascontiguousarray(X).view(np.uint8).reshape(m, -1)
    group, first = np.empty(m, np.int64), np.empty(m, np.int64)
    table = np.full(1 << (2 * m).bit_length(), -1, np.int64)
    begin = found = 0
    while begin < m and found <= most:
        end = int(min(begin + min(GROUPED_ROWS, most + 1 - found), m))
        found = _core.group_rows(rows, labels, begin, end, found, group, first, table)
        begin = end
    return first[:found], group


def may_be_equal(X: linalg.Matrix, labels: NDArray[Any], most: float) -> bool:
    """Whether there may be only so many different rows, by some of the columns."""
    n = X.shape[1]
    if sparse.issparse(X) or n <= MIDDLE:
        return True
    begin = (n - MIDDLE) // 2
    first, _ = equal_rows(X[:, begin : begin + MIDDLE], labels, most)
    return bool(len(first) <= most)


def places(group: Index64) -> Index64:
    """How many rows before each one are of its group."""
    order = np.argsort(group, kind="stable")
    found = group[order]
    begins = np.flatnonzero(np.append(True, found[1:] != found[:-1]))
    counts = np.diff(begins, append=len(group))
    place = np.empty(len(group), np.int64)
    place[order] = np.arange(len(group)) - np.repeat(begins, counts)
    return place
