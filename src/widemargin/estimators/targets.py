"""What a user's targets of a regression mean: finite real numbers, one for each row."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import column_or_1d

from widemargin.arrays import Vector
from widemargin.losses.pointwise import PointwiseLoss
from widemargin.parameters import Checker, spelled


def as_target(check: Checker, y: Any, m: int) -> Vector:
    """Targets (m,) as float64.

    Raises
    ------
    ValueError for NaN and infinity, named by row; strings and other objects that
    are no numbers; several columns; another length.
    """
    try:
        y = np.asarray(y)
    except ValueError:  # lists of several lengths
        check.refuse_part("y", "be one-dimensional", "lists of several lengths")
    if y.ndim != 1 and not (y.ndim == 2 and y.shape[1] == 1):
        expected = "be one-dimensional: one target for each row"
        check.refuse_part("y", expected, f"shape {y.shape}")
    target = _numbers(check, y.ravel())
    if y.ndim == 2:
        column_or_1d(target.reshape(y.shape), warn=True)  # says so
    if len(target) != m:
        check.refuse_part("y", f"have length {m}", f"length {len(target)}")
    if not np.isfinite(target).all():
        row = int(np.argmin(np.isfinite(target)))
        expected = "hold finite numbers only (no NaN, no infinity)"
        check.refuse_part("y", expected, f"{spelled(target[row])} at row {row}")
    return target


def refuse_overflow(
    check: Checker, target: Vector, C: Any, loss: PointwiseLoss
) -> None:
    """Refuse targets whose losses are beyond all floats where the function is zero."""
    with np.errstate(over="ignore"):
        losses = np.where(np.isposinf(C), 1.0, C) * loss.value(np.abs(target))
        total = 2.0 * losses.sum()
    if not np.isfinite(total):
        expected = "be so small that C times its losses at f = 0 has a finite sum"
        check.refuse_part("y", expected, f"up to {np.abs(target).max():g}")


def _numbers(check: Checker, y: NDArray[Any]) -> Vector:
    """Real numbers as float64; what only looks like numbers is refused."""
    if y.dtype.kind not in "biufO":
        check.refuse_part("y", "hold real numbers", f"an array of dtype {y.dtype}")
    if y.dtype.kind == "O":
        for row, value in enumerate(y):
            if not _is_number(value):
                found = f"{value!r} at row {row}"
                check.refuse_part("y", "hold real numbers", found)
    return y.astype(np.float64)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float | np.integer | np.floating | np.bool_)
