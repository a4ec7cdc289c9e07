"""Labels and weights of a problem, as vectors over its rows."""

import math
from typing import Any

import numpy as np

from widemargin.arrays import Vector
from widemargin.data.row_vector import RowVector
from widemargin.data.state import RowState, finite
from widemargin.losses.pointwise import PointwiseLoss


def unrepeated(C: Vector) -> Vector:
    """The numbers of a vector: one, where it is that for every row."""
    return C[:1] if C.strides == (0,) else C


def has_infinity(C: Any) -> bool:
    """Whether some weight is infinite; not where they lie beside their rows."""
    if isinstance(C, RowVector):
        return False
    if isinstance(C, float):
        return math.isinf(C)
    C = np.asarray(C)
    return bool(C.dtype.kind == "f" and C.size and np.max(C) == np.inf)


def as_margins(q: Any, C: Any, loss: PointwiseLoss) -> Any:
    """What the rows have to reach, (m,); a number is that of every row.

    C are the weights of the rows, (m,), times which losses have to be finite.
    """
    if isinstance(q, RowVector):
        return q
    m, is_one = len(C), np.ndim(q) == 0
    found = finite("q", np.ravel(q), 1 if is_one else m)
    with np.errstate(over="ignore"):
        losses = loss.value(found)
        total = losses[0] * C.sum() if is_one else (C * losses).sum()
    if not np.isfinite(total):
        raise ValueError(
            "q must be so small that C times the losses at w = 0 has a finite sum. Got "
            f"up to {found.max():g} instead."
        )
    return np.broadcast_to(found[0], m) if is_one else found.copy()


def as_targets(
    y: Any, C: Any, m: int, needed: tuple[int, ...] = (1, -1)
) -> tuple[Any, Any]:
    """Labels, and weights as a float64 vector, (m,); perhaps the user's own.

    Labels that are ``needed`` must occur with a positive weight. Vectors that lie
    beside their rows stay there: their weights are positive.
    """
    if isinstance(y, RowVector):
        if not isinstance(C, RowVector):
            C = as_targets(np.array([1, -1]), C, 2)[1]
            C = np.broadcast_to(C[0], m)
        _refuse_missing(needed, y.state.sweep(_signs_found, y.name))
        return y, C
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
    if not np.any(unrepeated(C)):
        raise ValueError("C must be positive in some row. Got 0 in all instead.")
    found = {}
    for sign in needed:
        weighted = y == sign
        if len(unrepeated(C)) > 1:
            weighted &= C > 0
        found[sign] = bool(weighted.any())
    _refuse_missing(needed, (found.get(-1, True), found.get(1, True)))
    return y, C


def _refuse_missing(needed: tuple[int, ...], found: tuple[Any, Any]) -> None:
    """Refuse labels -1 or +1 that were not found in a row with a weight."""
    for sign in needed:
        if not found[sign > 0]:
            raise ValueError(
                "Both labels must occur in a row with C > 0. "
                f"Got no such row with label {sign:+d}."
            )


def _signs_found(part: RowState, name: str) -> tuple[int, int]:
    """How many labels are -1, and +1."""
    y = getattr(part, name)
    return int(np.count_nonzero(y < 0)), int(np.count_nonzero(y > 0))
