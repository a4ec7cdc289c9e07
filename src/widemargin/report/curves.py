"""What a classifier of two classes would do at other thresholds of its score."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from widemargin.arrays import Vector
from widemargin.data.state import RowState

_CHUNK = 1 << 20  # rows that are worked on together: 8 MB of float64


class Curves(NamedTuple):
    """Shares at every threshold, from the highest one down.

    Attributes
    ----------
    found : ndarray (k,), share of the second class above the threshold (recall)
    false : ndarray (k,), share of the first class above it
    precision : ndarray (k,), share of the rows above it that are of the second class
    place : int, where the threshold is 0, at which the model decides
    area : float, below the curve of found against false
    average : float, mean precision over what is found
    share : float, of the second class among the rows
    """

    found: Vector
    false: Vector
    precision: Vector
    place: int
    area: float
    average: float
    share: float


def curves_of(state: RowState, labels: NDArray[np.integer[Any]]) -> Curves | None:
    """The curves of rows with scores; None where a class has no rows."""
    m = len(labels)
    parts = [slice(a, min(a + _CHUNK, m)) for a in range(0, m, _CHUNK)]
    scores = np.concatenate([np.asarray(state.part(p).scores) for p in parts])
    known = labels >= 0
    scores, positive = scores[known], labels[known] == 1
    if not positive.any() or positive.all():
        return None
    order = np.argsort(-scores, kind="stable")
    scores, positive = scores[order], positive[order]
    ends = np.append(np.flatnonzero(np.diff(scores)), len(scores) - 1)  # of equal ones
    hits, said = np.cumsum(positive)[ends], ends + 1.0
    found, false = hits / hits[-1], (said - hits) / (said[-1] - hits[-1])
    precision = hits / said
    place = int(np.searchsorted(-scores[ends], 0.0, "left")) - 1  # scores above 0
    area = float(np.trapezoid(np.append(0.0, found), np.append(0.0, false)))
    average = float(np.sum(np.diff(found, prepend=0.0) * precision))
    share = float(positive.mean())
    return Curves(found, false, precision, place, area, average, share)
