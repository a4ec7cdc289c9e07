"""Probabilities of classes: what a model keeps of its calibration, and their values."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from widemargin.models.model import Model

Vector = NDArray[np.float64]

# The key of what a model keeps: sigmoids 1 / (1 + exp(slope f + offset)) of its scores.
KEY = "calibration"


def check_calibrated(model: Model, path: str) -> None:
    """Refuse a model that keeps no calibration, or a damaged one."""
    if KEY not in model.meta:
        raise ValueError(
            f"{path}: expected a model that was trained with --probability, found one "
            "without"
        )
    c = len(model.classes)
    try:
        shape = _sigmoids(model).shape
    except (KeyError, TypeError, ValueError):
        shape = None
    if shape != (2, 1 if c == 2 else c) or not np.isfinite(_sigmoids(model)).all():
        raise ValueError(
            f"{path}: expected a slope and an offset for each class as its {KEY}, "
            "found something else"
        )


def probabilities(model: Model, scores: Vector) -> Vector:
    """Probabilities of the classes, (m, c), of scores (m,) or (m, c).

    As those of scikit-learn's `CalibratedClassifierCV`: sigmoids of the scores, for
    more than two classes divided by their sum.
    """
    slopes, offsets = _sigmoids(model)
    found: Vector = expit(-(slopes * scores.reshape(len(scores), -1) + offsets))
    if len(model.classes) == 2:
        return np.hstack([1.0 - found, found])
    total = found.sum(axis=1, keepdims=True)
    uniform: Vector = np.full_like(found, 1.0 / found.shape[1])
    np.divide(found, total, out=uniform, where=total > 0.0)
    return uniform


def _sigmoids(model: Model) -> Vector:
    """Slopes and offsets, (2, 1 or c)."""
    kept: Any = model.meta[KEY]
    return np.array([kept["slopes"], kept["offsets"]], dtype=np.float64)
