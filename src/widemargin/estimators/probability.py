"""``probability=True`` of scikit-learn: sigmoids of decisions on held-out rows."""

import dataclasses
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.model_selection import StratifiedKFold

from widemargin.arrays import Index, Vector
from widemargin.estimators import objects
from widemargin.estimators.calibration import calibrated
from widemargin.estimators.checks import read_rows, users_level
from widemargin.estimators.classifier import Classifier
from widemargin.estimators.foreign import PROBABILITIES, Absent
from widemargin.estimators.plans import Fit, Plan
from widemargin.estimators.points import Judge, share_right
from widemargin.estimators.training import (
    Training,
)
from widemargin.parameters import Checker, Conditional
from widemargin.solution import Status

N_FOLDS = 5
# What scikit-learn's signature has where nobody asks.
NOT_GIVEN = "deprecated"


def check_probability(check: Checker, machine: Any) -> None:
    """Refuse what is no answer; warn of one, as scikit-learn does."""
    given = machine.probability
    if isinstance(given, str) and given == NOT_GIVEN:
        return
    check.choice("probability", given, (True, False))
    warnings.warn(
        "The `probability` parameter is deprecated, as in scikit-learn 1.9: it is "
        f"taken from code that has it. Leave it out; {PROBABILITIES}.",
        FutureWarning,
        stacklevel=users_level(),
    )


def asks_for_probabilities(machine: Any) -> bool:
    """Whether a fit is to make probabilities."""
    given = machine.probability
    return not isinstance(given, str) and bool(given)


def _allowed(method: Callable[..., Any]) -> Any:
    """A method of machines that are asked for probabilities."""

    def allow(machine: Any) -> None:
        if not asks_for_probabilities(machine):
            absent.__get__(machine, type(machine))

    absent = Absent(PROBABILITIES)
    absent.__set_name__(object, method.__name__)
    return Conditional(method, allow)


class ProbabilityMixin(Classifier):
    """Base of the classifiers that scikit-learn gives ``probability``."""

    @_allowed
    def predict_proba(self, X: Any) -> Vector:
        """Probabilities of the classes, of a fit with ``probability=True``.

        Parameters
        ----------
        X : array, sparse matrix or Rows (m, n)

        Returns
        -------
        ndarray (m, c)
            In [0, 1], with sum 1 in each row; in the order of ``classes_``.

        Raises
        ------
        NotFittedError
            The fit was without ``probability``, or was ended before them.
        """
        model = self.model_
        if "calibrator_" not in vars(self):
            raise NotFittedError(
                "predict_proba is not available when fitted with probability=False, "
                "or where a limit ended the fit before its folds"
            )
        if model.shape != "ovr":  # sigmoids are of the classes' decision values
            model = dataclasses.replace(model, shape="ovr")
        found: Vector = self.calibrator_.probabilities(model.scores(read_rows(self, X)))
        return found

    @_allowed
    def predict_log_proba(self, X: Any) -> Vector:
        """Natural logarithms of what `predict_proba` returns; -inf of a zero.

        Parameters
        ----------
        X : array, sparse matrix or Rows (m, n)

        Returns
        -------
        ndarray (m, c)
        """
        with np.errstate(divide="ignore"):
            found: Vector = np.log(self.predict_proba(X))
        return found

    def _found(self, X: Any, y: Any, sample_weight: Any, plan: Plan) -> Fit:
        if not asks_for_probabilities(self):
            return super()._found(X, y, sample_weight, plan)

        def both(training: Training) -> Fit:
            folds = _judge(self, training, sample_weight)
            fit = plan(_limited(training))
            if all(s.status is not Status.INTERRUPTED for s in fit.solutions):
                self._calibrate(folds, training)
            return fit

        return super()._found(X, y, sample_weight, both)

    def _calibrate(self, judge: Judge, training: Training) -> None:
        """Set the sigmoids, by decisions on rows that folds hold out."""
        held = []
        for fold in range(len(judge.folds)):
            left = _left(training, len(judge.folds) - fold)
            if left is not None and left <= 0.0:
                said = "time_limit ended the fit before its folds: no probabilities."
                warnings.warn(said, ConvergenceWarning, stacklevel=users_level())
                return
            one = _plain(self, left)
            one.fit(*judge.train(fold))
            held.append(one.decision_function(judge.test(fold)))
        tests = np.concatenate([test for _, test in judge.folds])
        weights = None if judge.weights is None else judge.weights[tests]
        found = np.concatenate(held)
        y = judge.y[tests]
        self.calibrator_ = calibrated(self.classes_, "sigmoid", found, y, weights)


def _judge(machine: Any, training: Training, sample_weight: Any) -> Judge:
    """The folds, of the rows that count."""
    index, weights = training.index, None
    known = np.arange(len(index))
    if sample_weight is not None:
        weights = np.broadcast_to(np.asarray(sample_weight, float), len(index))
        known = known[weights > 0.0]
    y = _labels(machine, index, known)
    split = StratifiedKFold(N_FOLDS).split(np.zeros((len(known), 1)), index[known])
    folds = [(known[train], known[test]) for train, test in split]
    pairwise = training.recipe.is_pairwise
    return Judge(training.rows, y, weights, folds, share_right, {}, pairwise)


def _labels(machine: Any, index: NDArray[Any], known: Index) -> NDArray[Any]:
    """The labels of the rows that count; refuses too few of a class."""
    counts = np.bincount(index[known], minlength=len(machine.classes_))
    if counts.min() < N_FOLDS:
        least = machine.classes_[counts.argmin()]
        Checker(type(machine).__name__).refuse_part(
            "probability",
            f"be False where a class has less than {N_FOLDS} rows, for {N_FOLDS} folds",
            f"{counts.min()} of class {least!s}",
        )
    return np.asarray(machine.classes_[index])


def _limited(training: Training) -> Training:
    """The fit on all rows has a share of the time; the folds have what is left."""
    limit = training.limits.time_limit
    return training if limit is None else training.limited(until=limit / N_FOLDS)


def _left(training: Training, folds: int) -> float | None:
    """Seconds for each of so many folds; None: without a limit."""
    limit = training.limits.time_limit
    return None if limit is None else (limit - training.clock.seconds()) / folds


def _plain(machine: Any, time_limit: float | None) -> Any:
    """A machine of the same kind that a fold trains."""
    params = machine.get_params(deep=False)
    params |= {
        "probability": NOT_GIVEN,
        "decision_function_shape": "ovr",
        "callback": None,
        "checkpoint": None,
        "time_limit": time_limit,
    }
    if objects.were_fitted(machine):
        params["kernel"] = "precomputed"
    return type(machine)(**params)
