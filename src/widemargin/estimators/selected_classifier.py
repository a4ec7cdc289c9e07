"""A classifier of the C, and the gamma, that do best on held-out rows."""

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin

from widemargin.arrays import Vector
from widemargin.estimators import labels
from widemargin.estimators.calibration import calibrated
from widemargin.estimators.multiclass import check_ties
from widemargin.estimators.points import Judge, Points
from widemargin.estimators.scoring import ScoringMixin
from widemargin.estimators.selection import Selected
from widemargin.estimators.training import (
    Training,
)
from widemargin.models.calibration import METHODS
from widemargin.models.model import Model
from widemargin.parameters import Checker, Conditional


class HeldOut(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Stands for the model of a fold: knows its decisions on held-out rows only."""

    def __init__(self, model: Model, decisions: Vector) -> None:
        self.model, self.decisions = model, decisions
        self.classes_ = model.classes

    def decision_function(self, X: Any) -> Vector:
        """Decision values of the rows that the fold holds out."""
        return self.decisions

    def predict(self, X: Any) -> NDArray[Any]:
        """Labels of these."""
        return self.model.decide(self.decisions)


def _calibrated(method: Callable[..., Any]) -> Any:
    """A method of searches that are asked for probabilities."""

    def allow(search: Any) -> None:
        if search.calibrate is None:
            raise AttributeError(
                f"{type(search).__name__!r} object has no attribute "
                f"{method.__name__!r}: probabilities come with calibrate='sigmoid' or "
                "'isotonic'."
            )

    return Conditional(method, allow)


class SelectedClassifier(
    ScoringMixin,
    Selected,
    ClassifierMixin,  # type: ignore[misc]
    BaseEstimator,  # type: ignore[misc]
):
    """Base of `SVCCV` and `LinearSVCCV`: classes, and their probabilities."""

    _score_name = "accuracy"
    _kinds = ("SVC", "LinearSVC")

    def decision_function(self, X: Any) -> Vector:
        """Decision values: (m,) for two classes, (m, c) for more."""
        found: Vector = self._of_fitted("decision_function", X)
        return found

    @_calibrated
    def predict_proba(self, X: Any) -> Vector:
        """Probabilities of the classes, by the decisions on held-out rows: (m, c)."""
        decisions = self.decision_function(X)
        found: Vector = self.calibrator_.probabilities(decisions)
        return found

    @_calibrated
    def predict_log_proba(self, X: Any) -> Vector:
        """Logarithms of what `predict_proba` returns; -inf of a zero: (m, c)."""
        with np.errstate(divide="ignore"):
            found: Vector = np.log(self.predict_proba(X))
        return found

    @property
    def model_(self) -> Model:
        """What `widemargin.save_model` writes; has probabilities with ``calibrate``."""
        return dataclasses.replace(
            super().model_, calibration=vars(self).get("calibrator_")
        )

    # -- parts of fit ------------------------------------------------------------------

    def _check_parameters(self, check: Checker) -> None:
        check.choice("calibrate", self.calibrate, (None, *METHODS))
        if self.calibrate is not None and self.decision_function_shape == "ovo":
            expected = "'ovr' where calibrate is set"
            check.refuse("decision_function_shape", expected, "ovo")
        check_ties(self)

    def _targets(
        self, check: Checker, y: Any, weights: Vector | None, m: int
    ) -> NDArray[Any]:
        found: NDArray[Any] = labels.as_labels(check, y, m)
        self.classes_, _ = labels.find_classes(
            check, found, np.broadcast_to(1.0, m) if weights is None else weights
        )
        return found

    def _check_folds(self, judge: Judge) -> None:
        for fold, (train, _) in enumerate(judge.folds):
            weights = judge.weights
            known = train if weights is None else train[weights[train] > 0]
            missing = self.classes_[~np.isin(self.classes_, judge.y[known])]
            if len(missing):
                is_alone = np.count_nonzero(judge.y == missing[0]) == 1
                other = ", or a splitter that is stratified (cv=5 is)"
                raise ValueError(
                    f"The training rows of each fold of {type(self).__name__} must "
                    f"hold all classes. Got no row of class {missing[0]!s} in fold "
                    f"{fold}: give more rows of it"
                    f"{', as it has one' if is_alone else other}."
                )
        if self.calibrate is not None:
            self._check_held_out(judge)

    def _check_held_out(self, judge: Judge) -> None:
        """Refuse held-out rows that cannot tell what the probability of a class is."""
        known = np.concatenate([test for _, test in judge.folds])
        if judge.weights is not None:
            known = known[judge.weights[known] > 0.0]
        missing = self.classes_[~np.isin(self.classes_, judge.y[known])]
        if len(missing):
            raise ValueError(
                f"The rows that the folds of {type(self).__name__} hold out must be of "
                f"all classes where calibrate is set. Got none of class {missing[0]!s}."
            )

    def _fold_weights(self, training: Training, judge: Judge) -> tuple[Vector, Vector]:
        """Factors of C of all rows in each fold, zero where it holds them out.

        And those of the class of label +1 of each problem in each fold.
        """
        of_rows, tasks = judge.factors, training.tasks
        of_tasks = np.ones((len(of_rows), len(tasks)))
        if self.class_weight is None:
            return of_rows, of_tasks
        check = Checker(type(self).__name__)
        for weights, factors in zip(of_rows, of_tasks, strict=True):
            found = labels.class_factors(
                check, self.class_weight, self.classes_, training.index, weights
            )
            own, of_class = tasks.with_factors(found)
            if of_class is None:
                factors[:] = own.factors
            else:
                weights *= of_class[training.index]
        return of_rows, of_tasks

    @property
    def _keeps_decisions(self) -> bool:
        return self.calibrate is not None

    def _finish(self, judge: Judge, points: Points) -> None:
        """Set what makes probabilities, by decisions on held-out rows."""
        if self.calibrate is None:
            return
        gamma, C = points.best()
        held = [test for _, test in judge.folds]
        rows = np.concatenate(held)
        parts = [points.decisions[f, gamma, C] for f in range(len(held))]
        weights = None if judge.weights is None else judge.weights[rows]
        self.calibrator_ = calibrated(
            self.classes_, self.calibrate, np.concatenate(parts), judge.y[rows], weights
        )
