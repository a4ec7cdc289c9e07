"""How far the predictions of a regression are from the targets."""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from widemargin.arrays import Vector
from widemargin.data.state import RowState
from widemargin.models.model import Model

_ROWS = 1 << 20  # rows that are compared at a time


class Errors(NamedTuple):
    """Errors of predictions on some rows.

    Attributes
    ----------
    r2 : float
        Share of the variance of the targets that the predictions explain. As in
        scikit-learn, targets that do not vary make it 1 or 0.
    root_mean_squared, mean_absolute : float
        In the units of the targets.
    deviation : float
        Standard deviation of the targets: the first of these two, of predicting their
        mean.
    """

    r2: float
    root_mean_squared: float
    mean_absolute: float
    deviation: float


def guesses(
    model: Model, state: RowState, y: NDArray[Any]
) -> Iterator[tuple[NDArray[Any], NDArray[Any]]]:
    """Labels or targets of scored rows, and what the model says, some at a time."""
    for start in range(0, len(y), _ROWS):
        rows = slice(start, min(start + _ROWS, len(y)))
        yield y[rows], model.decide(state.part(rows).scores)


def errors(model: Model, state: RowState, target: NDArray[Any]) -> Errors:
    """Errors of a regression on rows that it has scored.

    Parameters
    ----------
    model : Model
    state : RowState, what ``model.scored`` returned
    target : array (m,) of finite numbers

    Returns
    -------
    Errors
    """
    m = len(target)
    center = float(np.mean(target, dtype=np.float64))
    squares = sizes = whole = 0.0
    for y, found in guesses(model, state, target):
        error: Vector = np.subtract(y, found, dtype=np.float64)
        away: Vector = np.subtract(y, center, dtype=np.float64)
        squares += float(error @ error)
        sizes += float(np.abs(error).sum())
        whole += float(away @ away)
    r2 = 1.0 - squares / whole if whole > 0.0 else float(squares == 0.0)
    return Errors(r2, float(np.sqrt(squares / m)), sizes / m, float(np.sqrt(whole / m)))
