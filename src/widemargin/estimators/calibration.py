"""Calibrations by scikit-learn, from decision values on rows that were held out."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.calibration import CalibratedClassifierCV

from widemargin.arrays import Vector
from widemargin.models.calibration import Calibration


class Decisions(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Stands for a fitted classifier; takes decision values in the place of rows."""

    def __init__(self, classes: Any = ()) -> None:
        self.classes = classes

    @property
    def classes_(self) -> NDArray[Any]:
        """The labels."""
        return np.asarray(self.classes)

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> "Decisions":
        """Nothing: it knows its classes."""
        return self

    def predict(self, X: Vector) -> NDArray[Any]:
        """Nobody asks: scikit-learn wants a classifier to have it."""
        raise NotImplementedError

    def decision_function(self, X: Vector) -> Vector:
        """The decision values that it is given; a column of them for two classes."""
        X = np.asarray(X)
        return X[:, 0] if X.ndim == 2 and X.shape[1] == 1 else X


def calibrated(
    classes: NDArray[Any],
    method: str,
    decisions: Vector,
    y: NDArray[Any],
    weights: Vector | None,
) -> Calibration:
    """Fit scikit-learn's calibrators to decision values of rows that were held out."""
    rows = np.arange(len(y))
    fitted = CalibratedClassifierCV(
        Decisions(classes), method=method, cv=[(rows, rows)], ensemble=False
    )
    fitted.fit(decisions.reshape(len(y), -1), y, sample_weight=weights)
    each = fitted.calibrated_classifiers_[0].calibrators
    names = ("a_", "b_") if method == "sigmoid" else ("X_thresholds_", "y_thresholds_")
    first, second = (
        [np.atleast_1d(getattr(one, name)).astype(np.float64) for one in each]
        for name in names
    )
    counts = np.array([len(column) for column in first])
    end = np.concatenate(second)
    if method == "isotonic":  # means of weighted ones may exceed 1 by rounding
        end = np.clip(end, 0.0, 1.0)
    return Calibration(method, np.concatenate(first), end, counts)
