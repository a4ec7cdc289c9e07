"""What the classifiers share: labels in, a plan carried out, predictions out."""

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin

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
    facts_of_end,
    fitted_anew,
    intercept_of,
    read_rows,
    tell_end,
    weighted,
)
from widemargin.estimators.foreign import PROBABILITIES, Absent
from widemargin.estimators.machine import Machine
from widemargin.estimators.multiclass import (
    BinaryTasks,
    check_scheme,
    check_ties,
    scheme_of,
    tasks_of,
)
from widemargin.estimators.plans import Fit, Plan
from widemargin.estimators.scoring import ScoringMixin
from widemargin.estimators.training import (
    Recipe,
    Training,
    limits_of,
    training_of,
)
from widemargin.losses.pointwise import LOSSES
from widemargin.models.model import Model
from widemargin.parameters import Checker
from widemargin.problems.base import INTERCEPTS, Problem
from widemargin.solution import NOT_CONVEX, Solution, Status
from widemargin.solutions import Columns, columns_of, first_of
from widemargin.solvers.driver.checkpoint import Checkpoint


class Classifier(
    Machine,
    ScoringMixin,
    ClassifierMixin,  # type: ignore[misc]
    BaseEstimator,  # type: ignore[misc]
):
    """Base of the classifiers, which choose a plan and keep what it finds."""

    predict_proba = Absent(PROBABILITIES)

    n_iter_: Any
    _takes_infinity = False  # as C: hard margins
    _takes_collections = False  # of Dask
    _leaves_out_negative = False  # rows of negative weight, which are refused else
    _said_of_one_class = ""  # where weights leave no other

    def fit(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Train on the rows of X.

        Parameters
        ----------
        X : array, sparse matrix or Rows (m, n)
            float32, float64 and integers are used as they are, without a copy; rows of
            `open_rows` stay in their files, but a kernel needs rows in memory, unless
            it has a rank. For kernel="precomputed" the kernel values of all pairs of
            rows, (m, m).
            LinearSVC and SVC with a rank take Dask collections too, whose labels and
            weights are Dask collections as well.
        y : array (m,) of labels: numbers, booleans, dates or strings
        sample_weight : array (m,) of numbers >= 0, or None
            Factors of C, or shares of nu. `SVC` and `NuSVC` leave rows of negative
            weight out, and warn; the others refuse them.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            A parameter out of range, NaN or infinity, fewer than two classes. The
            estimator keeps the model of an earlier fit.
        KeyboardInterrupt
            After Ctrl-C, with the best model kept.
        MemoryError
            There was too little memory. With the best model kept, if there is one.

        Warns
        -----
        ConvergenceWarning
            The gap asked for was not reached; says how far it is and what helps.
        UserWarning
            All rows of a class have weight 0: the model does not know the class. Or
            rows of negative weight were left out.
        RuntimeWarning
            The kernel was seen not to be positive semidefinite: the answer is a
            stationary point, and its gap proves nothing.
        """
        self._fit(X, y, sample_weight, self._plan)
        return self

    def decision_function(self, X: Any) -> Vector:
        """Decision values: (m,) for two classes, (m, c) or (m, pairs) for more.

        For two classes the score x'w + b, positive for ``classes_[1]``; for one against
        the rest the scores of all classes; for one against one the votes for each
        class, and for a graph the classes that were dropped before it, with a part of
        less than 1/3 that says how clear they are: see
        `widemargin.models.model.Model.scores`. With ``decision_function_shape="ovo"``
        those of all pairs of classes, in the order (0, 1), (0, 2), ..., positive for
        the first of the two.

        Parameters
        ----------
        X : array, sparse matrix or Rows (m, n)

        Returns
        -------
        ndarray (m,), (m, c) or (m, c (c - 1) / 2)
        """
        model = self._predictor  # refuses an estimator that is not fitted
        if is_collection(X):
            from widemargin.estimators import on_cluster

            found: Vector = on_cluster.lazy_scores(model, X)
            return found
        return model.scores(read_rows(self, X))

    def predict(self, X: Any) -> NDArray[Any]:
        """Labels of the rows of X.

        Parameters
        ----------
        X : array, sparse matrix or Rows (m, n)

        Returns
        -------
        ndarray (m,)

        Raises
        ------
        ValueError
            ``break_ties`` with ``decision_function_shape="ovo"``.
        """
        model = self._predictor
        check_ties(self)
        if is_collection(X):
            from widemargin.estimators import on_cluster

            found: NDArray[Any] = on_cluster.lazy_labels(model, X)
            return found
        return model.labels(read_rows(self, X))

    @property
    @abstractmethod
    def model_(self) -> Model:
        """What `widemargin.save_model` writes: classes and decision functions."""

    @property
    def _predictor(self) -> Model:
        """The model that predicts, whose facts need not be right."""
        return self.model_

    # -- what an estimator says --------------------------------------------------------

    @abstractmethod
    def _check_parameters(self, check: Checker) -> None:
        """Refuse a parameter out of range, in the words of scikit-learn."""

    @abstractmethod
    def _recipe(self, rows: Rows, weights: Vector | None) -> Recipe:
        """How binary problems of these rows are made; sets what is known of them."""

    @abstractmethod
    def _plan(self, training: Training) -> Fit:
        """Carry out the plan that the parameters choose."""

    @abstractmethod
    def _keep(self, fit: Fit) -> None:
        """Set the attributes that `model_` is made of, and the plan's own."""

    # -- parts of fit ------------------------------------------------------------------

    @with_callbacks  # type: ignore[untyped-decorator]
    def _fit(self, X: Any, y: Any, sample_weight: Any, plan: Plan) -> None:
        """Carry out a plan, keep what it finds, and tell how it ended."""
        self._check()
        with fitted_anew(self):
            if is_collection(X):
                from widemargin.estimators import on_cluster

                fit = on_cluster.fitted(self, X, y, sample_weight, plan)
            else:
                fit = self._found(X, y, sample_weight, plan)
                self._store(fit)
            self.seconds_ = fit.training.clock.seconds()
        tell_ends(fit.solutions, fit.columns)

    def _check(self) -> None:
        """Refuse parameters out of range."""
        check = Checker(type(self).__name__)
        check_weight(check, self)
        check_limits(check, self)
        check_scheme(check, self)
        Checkpoint.of(self.checkpoint, type(self).__name__)
        self._check_parameters(check)

    def _found(self, X: Any, y: Any, sample_weight: Any, plan: Plan) -> Fit:
        """What a plan finds for these data."""
        limits, data = limits_of(self), (X, y, sample_weight)
        with training_of(self, limits, data, *self._read(*data)) as training:
            return plan(training)

    def _read(
        self, X: Any, y: Any, sample_weight: Any
    ) -> tuple[Rows, NDArray[Any], Any, BinaryTasks, Recipe]:
        """The rows, the class and the C of each, and their problems and recipe."""
        owner = type(self).__name__
        check = Checker(f"{owner}.fit")
        if y is None:  # in scikit-learn's words
            raise ValueError(
                f"{owner} requires y to be passed, but the target y is None."
            )
        rows = read_rows(self, X, reset=True)
        y = labels.as_labels(check, y, rows.shape[0])
        given = sample_weight, rows.shape[0], self._leaves_out_negative
        own = None if sample_weight is None else labels.as_weights(check, *given)
        known = labels.find_classes(check, y, own, self._said_of_one_class)
        self.classes_, index = known
        recipe = self._recipe(rows, own)
        tasks = tasks_of(len(self.classes_), self.multi_class)
        C = self.C if own is None else weighted(self.C, own)
        if self.class_weight is None:
            return rows, index, C, tasks, recipe
        weights = labels.as_weights(check, *given) if own is None else own
        factors = labels.class_factors(
            Checker(owner), self.class_weight, self.classes_, index, weights
        )
        tasks, of_rows = tasks.with_factors(factors)
        if of_rows is not None:
            C = weighted(self.C, weights, of_rows[index])
        return rows, index, C, tasks, recipe

    def _store(self, fit: Fit) -> None:
        """Keep the answers, and facts about the training as it was."""
        found = fit.columns
        self.solutions_ = fit.solutions
        self.solution_ = first_of(fit.solutions, found)
        decided = found if fit.reduced is None else columns_of(fit.reduced)
        self.intercept_ = decided.b.copy()  # solutions stay as they are
        self.n_iter_ = max(1, int(found.iterations.max()))
        self.dual_gap_ = float(found.gaps.max())
        ended = found.statuses[found.worst]
        if Status.INTERRUPTED in found.statuses:
            ended = Status.INTERRUPTED
        self.status_ = ended.value
        self._scheme = scheme_of(len(self.classes_), self.multi_class)
        self._meta = {
            "loss": self.loss,
            "C": self.C,
            **facts_of_end(self, found.are_convex),
        }
        if hasattr(self, "feature_names_in_"):
            self._meta["feature_names"] = [str(f) for f in self.feature_names_in_]
        self._keep(fit)
        self._certified = checksum_of(self)


def iterations(fit: Fit) -> NDArray[np.int32]:
    """Iterations of the binary problems: at least 1, as scikit-learn has it."""
    return np.maximum(fit.columns.iterations, 1).astype(np.int32)


def check_form(check: Checker, estimator: Any) -> None:
    """Refuse a loss, an intercept or a solver that is out of range."""
    check.choice("loss", estimator.loss, tuple(LOSSES))
    check.choice("intercept", estimator.intercept, INTERCEPTS)

    def make(**given: Any) -> Problem:
        """A small problem of its form."""
        form = {"loss": estimator.loss, "intercept": intercept_of(estimator)}
        return Problem(np.eye(2), [1, -1], **form, **given)

    check_solver(check, estimator, make)


def keep_in_model(classifier: Classifier, facts: Mapping[str, Any]) -> None:
    """Add facts that only the caller knows to the facts that the model file keeps."""
    classifier._meta |= facts


def refuse_negative(estimator: Any) -> None:
    """Let its fits refuse rows of negative weight, whatever its class does."""
    estimator._leaves_out_negative = False


def tell_ends(solutions: Sequence[Solution], columns: Columns | None = None) -> None:
    """Raise or warn where the solves did not end well; their columns may be known."""
    found = columns or columns_of(solutions)
    if found.are_solved and found.are_convex:
        return
    told, gaps = solutions[found.worst], found.gaps
    for status in (Status.OUT_OF_MEMORY, Status.INTERRUPTED):  # the last one is raised
        some = [k for k, one in enumerate(found.statuses) if one is status]
        told = solutions[some[int(gaps[some].argmax())]] if some else told
    unsolved = sum(one is not Status.SOLVED for one in found.statuses)
    if unsolved and len(solutions) > 1 and told.message != NOT_CONVEX:
        count = f"{unsolved} of {len(solutions)} binary problems are not solved."
        told = told.changed(message=f"{count} The worst: {told.message}")
    tell_end(told, found.are_convex)
