"""A regressor of the C, the epsilon and the gamma that do best on held-out rows."""

from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin

from widemargin.arrays import Vector
from widemargin.estimators.regressor import check_epsilon
from widemargin.estimators.selection import Selected
from widemargin.estimators.targets import as_target
from widemargin.parameters import Checker


class HeldOutTargets(RegressorMixin, BaseEstimator):  # type: ignore[misc]
    """Stands for the model of a fold: knows its predictions of held-out rows only."""

    def __init__(self, predictions: Vector) -> None:
        self.predictions = predictions

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def predict(self, X: Any) -> Vector:
        """Predictions of the rows that the fold holds out."""
        return self.predictions


class SelectedRegressor(Selected, RegressorMixin, BaseEstimator):  # type: ignore[misc]
    """Base of `SVRCV` and `LinearSVRCV`: targets, and widths of the tube."""

    _score_name = "r2"
    _kinds = ("SVR", "LinearSVR")

    def _check_parameters(self, check: Checker) -> None:
        self._widths(check)

    def _targets(self, check: Checker, y: Any, weights: Vector | None, m: int) -> Any:
        return as_target(check, y, m)

    def _widths(self, check: Checker) -> Vector:
        """The values of epsilon, rising."""
        given = self.epsilons
        if given is None:
            return np.array([self.epsilon], float)
        if np.ndim(given) == 0 and not isinstance(given, str):
            check_epsilon(check, given, "epsilons")
            return np.array([given], float)
        if isinstance(given, str) or np.ndim(given) != 1:
            expected = "a list of numbers >= 0, one of these or None"
            check.refuse("epsilons", expected, given)
        for one in (widths := list(given)):
            check_epsilon(check, one, "epsilons")
        if not widths:
            check.refuse_part("epsilons", "hold a number", "an empty list")
        return np.unique(np.array(widths, float))
