"""What the regressors share: targets in, a plan carried out, predictions out."""

import dataclasses
import functools
from abc import abstractmethod
from collections.abc import Callable
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, RegressorMixin

from widemargin.arrays import Vector
from widemargin.data.distributed import is_collection
from widemargin.data.rows import Rows
from widemargin.estimators import labels
from widemargin.estimators.callbacks import with_callbacks
from widemargin.estimators.certified import checksum_of
from widemargin.estimators.checks import (
    check_limits,
    check_solver,
    check_weight,
    intercept_of,
    read_rows,
    weighted,
)
from widemargin.estimators.functions import fit_function, store_function
from widemargin.estimators.machine import Machine
from widemargin.estimators.multiclass import one_task
from widemargin.estimators.plans import Fit
from widemargin.estimators.targets import as_target, refuse_overflow
from widemargin.estimators.training import (
    Recipe,
    Training,
    limits_of,
    training_of,
)
from widemargin.losses.pointwise import LOSSES as POINTWISE
from widemargin.models.model import Model
from widemargin.parameters import Checker
from widemargin.problems.base import INTERCEPTS, Problem
from widemargin.problems.regression import regression_problem
from widemargin.solvers import auto
from widemargin.solvers.driver.checkpoint import Checkpoint
from widemargin.solvers.driver.driver import refusal

# From the training and the targets to all that is found.
Plan = Callable[[Training, Vector], Fit]

# What the names of the losses are of what is beyond the tube.
LOSSES = {
    "epsilon_insensitive": "hinge",
    "squared_epsilon_insensitive": "squared_hinge",
}


class Regressor(
    Machine,
    RegressorMixin,  # type: ignore[misc]
    BaseEstimator,  # type: ignore[misc]
):
    """Base of the regressors, which choose a plan and keep what it finds."""

    _takes_collections = False  # of Dask
    _takes_infinity = True  # as C: hard margins
    _leaves_out_negative = False  # rows of negative weight, which are refused else

    def fit(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Train on the rows of X.

        Parameters
        ----------
        X : array, sparse matrix or Rows (m, n)
            float32, float64 and integers are used as they are, without a copy; rows of
            `open_rows` stay in their files, but a kernel needs rows in memory, unless
            it has a rank. For kernel="precomputed" the kernel values of all pairs of
            rows, (m, m).
            LinearSVR takes Dask collections too, whose targets and weights are Dask
            collections as well.
        y : array (m,) of finite numbers
            The targets.
        sample_weight : array (m,) of numbers >= 0, or None
            Factors of C. `SVR` and `NuSVR` leave rows of negative weight out, and
            warn; `LinearSVR` refuses them.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            A parameter out of range, NaN or infinity, targets that are no numbers or
            have several columns. The estimator keeps the model of an earlier fit.
        KeyboardInterrupt
            After Ctrl-C, with the best model kept.
        MemoryError
            There was too little memory. With the best model kept, if there is one.

        Warns
        -----
        ConvergenceWarning
            The gap asked for was not reached; says how far it is and what helps.
        UserWarning
            Rows of negative weight were left out.
        RuntimeWarning
            The kernel was seen not to be positive semidefinite: the answer is a
            stationary point, and its gap proves nothing.
        """
        self._fit(X, y, sample_weight, self._plan)
        return self

    def predict(self, X: Any) -> Vector:
        """Predictions for the rows of X.

        Parameters
        ----------
        X : array, sparse matrix or Rows (m, n)

        Returns
        -------
        ndarray (m,)
        """
        model = self._predictor  # refuses an estimator that is not fitted
        if is_collection(X):
            from widemargin.estimators import on_cluster

            found: Vector = on_cluster.lazy_scores(model, X)
            return found
        return model.scores(read_rows(self, X))

    @property
    @abstractmethod
    def model_(self) -> Model:
        """What `widemargin.save_model` writes: the function that predicts."""

    @property
    def _predictor(self) -> Model:
        """The model that predicts, whose facts need not be right."""
        return self.model_

    # -- what an estimator says --------------------------------------------------------

    @abstractmethod
    def _check_parameters(self, check: Checker) -> None:
        """Refuse a parameter out of range, in the words of scikit-learn."""

    @abstractmethod
    def _recipe(self, rows: Rows, weights: Vector | None, target: Vector) -> Recipe:
        """How the problem of these rows is made; sets what is known of them."""

    @abstractmethod
    def _plan(self, training: Training, target: Vector) -> Fit:
        """Carry out the plan that the parameters choose."""

    @abstractmethod
    def _keep(self, fit: Fit) -> None:
        """Set the attributes that `model_` is made of, and the plan's own."""

    # -- parts of fit ------------------------------------------------------------------

    @with_callbacks  # type: ignore[untyped-decorator]
    def _fit(self, X: Any, y: Any, sample_weight: Any, plan: Plan) -> None:
        """Carry out a plan, keep what it finds, and tell how it ended."""
        find = self._found
        if is_collection(X):
            from widemargin.estimators import on_cluster

            find = functools.partial(on_cluster.fitted, self)
        fit_function(self, lambda: find(X, y, sample_weight, plan))

    def _check(self) -> None:
        """Refuse parameters out of range."""
        check = Checker(type(self).__name__)
        check_epsilon(check, self.epsilon)
        check_weight(check, self)
        check.choice("loss", self.loss, tuple(LOSSES))
        check.choice("intercept", self.intercept, INTERCEPTS)
        form = {"loss": loss_name(self), "intercept": intercept_of(self)}
        small = functools.partial(regression_problem, np.eye(2), [0.0, 1.0], **form)
        check_solver(check, self, small)
        check_limits(check, self)
        Checkpoint.of(self.checkpoint, type(self).__name__)
        self._check_parameters(check)
        _refuse_loss(self, small)

    def _found(self, X: Any, y: Any, sample_weight: Any, plan: Plan) -> Fit:
        """What a plan finds for these data."""
        owner, limits = type(self).__name__, limits_of(self)
        check = Checker(f"{owner}.fit")
        if y is None:  # in scikit-learn's words
            raise ValueError(
                f"{owner} requires y to be passed, but the target y is None."
            )
        rows = read_rows(self, X, reset=True)
        m = rows.shape[0]
        target = as_target(check, y, m)
        given = sample_weight, m, self._leaves_out_negative
        weights = labels.as_weights(check, *given)
        given_weights = None if sample_weight is None else weights
        C = self.C if given_weights is None else weighted(self.C, weights)
        refuse_overflow(check, target, C, POINTWISE[loss_name(self)])
        recipe = self._recipe(rows, given_weights, target)
        one = np.zeros(m, np.int8), C, one_task(), recipe
        with training_of(self, limits, (X, y, sample_weight), rows, *one) as training:
            return plan(training, target)

    def _store(self, fit: Fit) -> None:
        """Keep the answer, and facts about the training as it was."""
        solutions = [solution.changed(copies=2) for solution in fit.solutions]
        fit = dataclasses.replace(fit, solutions=solutions)
        facts = {"loss": self.loss, "C": self.C, "epsilon": float(self.epsilon)}
        store_function(self, fit.solutions, facts)
        self.intercept_ = np.array([self.solution_.b])
        self._keep(fit)
        self._certified = checksum_of(self)


def loss_name(regressor: Any) -> str:
    """What problems call its loss."""
    return LOSSES[regressor.loss]


def _refuse_loss(regressor: Any, small: Callable[..., Problem]) -> None:
    """Refuse a linear solver of the other loss, whose own words are a classifier's.

    ``small`` makes a small problem, of the loss of the regressor or of another one.
    """
    kind = auto.SOLVERS.get(getattr(regressor.solver, "name", regressor.solver))
    kernel = getattr(regressor, "kernel", "linear")
    if getattr(regressor, "rank", None) is not None:  # a linear problem of features
        kernel = "linear"
    if kind is None or kind.for_kernels or kernel != "linear":
        return
    if refusal(kind(), small()) is None:
        return
    takes = [o for o, word in LOSSES.items() if not refusal(kind(), small(loss=word))]
    if takes:
        raise ValueError(
            f"{kind.__name__} solves the loss {takes[0]!r} only: use solver='auto' or "
            f"loss={takes[0]!r}. Got {regressor.loss!r} instead."
        )


def check_epsilon(check: Checker, epsilon: Any, name: str = "epsilon") -> None:
    """Refuse what is no width of a tube."""
    number = isinstance(epsilon, int | float | np.integer | np.floating)
    if not (number and not isinstance(epsilon, bool) and 0 <= epsilon < np.inf):
        check.refuse(name, "a float in the range [0, inf)", epsilon)


def regression_model(decides: dict[str, Any], meta: dict[str, Any]) -> Model:
    """The model of one function of the columns."""
    classes: NDArray[Any] = np.empty(0)
    return Model(classes, "regression", meta=dict(meta), **decides)
