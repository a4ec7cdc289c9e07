"""Probabilities from decision values on rows that were held out."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.calibration import CalibratedClassifierCV

Vector = NDArray[np.float64]

METHODS = ("sigmoid", "isotonic")


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


class Calibrator:
    """Probabilities of decision values.

    Parameters
    ----------
    fitted : CalibratedClassifierCV, over decision values
    """

    def __init__(self, fitted: CalibratedClassifierCV) -> None:
        self._fitted = fitted

    @property
    def sigmoids(self) -> tuple[list[float], list[float]]:
        """Slopes a and offsets b of 1 / (1 + exp(a f + b)), one a column of f."""
        each = self._fitted.calibrated_classifiers_[0].calibrators
        return [float(one.a_) for one in each], [float(one.b_) for one in each]

    def predict_proba(self, decisions: Vector) -> Vector:
        """Probabilities of the classes: (m, c)."""
        return np.asarray(self._fitted.predict_proba(_columns(decisions)))


def calibrated(
    classes: NDArray[Any],
    method: str,
    decisions: Vector,
    y: NDArray[Any],
    weights: Vector | None,
) -> Calibrator:
    """Fit scikit-learn's calibrators to decision values of rows that were held out."""
    rows = np.arange(len(y))
    fitted = CalibratedClassifierCV(
        Decisions(classes), method=method, cv=[(rows, rows)], ensemble=False
    )
    fitted.fit(_columns(decisions), y, sample_weight=weights)
    return Calibrator(fitted)


def _columns(decisions: Vector) -> Vector:
    return decisions.reshape(len(decisions), -1)
