"""Labels and weights of a problem, as vectors over its rows."""

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from widemargin.data.state import finite

Vector = NDArray[np.float64]


def unrepeated(C: Vector) -> Vector:
    """The numbers of a vector: one, where it is that for every row."""
    return C[:1] if C.strides == (0,) else C


def has_infinity(C: Any) -> bool:
    """Whether some weight is infinite."""
    if isinstance(C, float):
        return math.isinf(C)
    C = np.asarray(C)
    return bool(C.dtype.kind == "f" and C.size and np.max(C) == np.inf)


def as_margins(q: ArrayLike, m: int) -> Vector:
    """What the rows have to reach, (m,); a number is that of every row."""
    if np.ndim(q) == 0:
        return np.broadcast_to(finite("q", np.ravel(q), 1)[0], m)
    return finite("q", q, m).copy()


def as_targets(
    y: ArrayLike, C: ArrayLike, m: int, needed: tuple[int, ...] = (1, -1)
) -> tuple[NDArray[Any], Vector]:
    """Labels, and weights as a float64 vector, (m,); perhaps the user's own.

    Labels that are ``needed`` must occur with a positive weight.
    """
    y = np.asarray(y)
    if y.shape != (m,):
        raise ValueError(f"y must have length {m}. Got shape {y.shape} instead.")
    wrong = (y != 1) & (y != -1)
    if wrong.any():
        raise ValueError(f"y must hold +1 and -1 only. Got {y[wrong][0]} instead.")
    if np.ndim(C) == 0:  # one number, also for a billion rows
        C = np.broadcast_to(finite("C", np.ravel(C), 1)[0], m)
    C = finite("C", C, m)
    with np.errstate(over="ignore"):
        if np.any(unrepeated(C) < 0) or not np.isfinite(m * unrepeated(C).mean()):
            raise ValueError(
                "C must be nonnegative in every row, and its sum finite. "
                f"Got {np.min(C)} to {np.max(C)} instead."
            )
    for sign in needed:
        weighted = y == sign
        if len(unrepeated(C)) > 1:
            weighted &= C > 0
        if not (weighted.any() and C.any()):
            raise ValueError(
                "Both labels must occur in a row with C > 0. "
                f"Got no such row with label {sign:+d}."
            )
    return y, C
