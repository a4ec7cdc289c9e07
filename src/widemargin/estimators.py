"""scikit-learn estimators: validate, build the problems, solve, keep the model."""

import threading
import time
import warnings
from collections.abc import Callable, Mapping
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state, compute_class_weight
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, column_or_1d, validate_data

from widemargin import multiclass
from widemargin.data.memory import as_rows
from widemargin.data.rows import Rows
from widemargin.model import Decision, Model
from widemargin.parameters import Checker, is_integer
from widemargin.problem import INTERCEPTS, LOSSES, Problem
from widemargin.progress import Printer
from widemargin.solution import Solution, Status, Step
from widemargin.solvers import auto
from widemargin.solvers.base import Limits, Solver, run

try:  # scikit-learn 1.9
    from sklearn.callback import CallbackSupportMixin, with_callbacks
except ImportError:

    class CallbackSupportMixin:  # type: ignore[no-redef]
        """Stands in for the mixin of scikit-learn 1.9."""

    def with_callbacks(method: Any) -> Any:
        """Leave a fit method as it is."""
        return method


Vector = NDArray[np.float64]


class LinearSVC(CallbackSupportMixin, ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Linear support vector classifier with a certified duality gap.

    Minimises, for labels y_i of +1 and -1,

        1/2 (w'w + p b^2) + C sum_i s_i L(1 - y_i (x_i'w + b)),

    with L(t) = max(0, t) or max(0, t)^2, sample weights s_i, and p = 0 (free
    intercept), p = 1 (penalized) or b = 0 (none). More than two classes are trained one
    against the rest, all with the same reads of the data.

    Parameters
    ----------
    C : float > 0, default=1.0
        Weight of the losses against the norm of w.
    loss : {"hinge", "squared_hinge"}, default="hinge"
        The squared hinge has no factor 1/2, as in LIBLINEAR.
    intercept : {"auto", "free", "penalized", "none"}, default="auto"
        "auto" is free for the hinge (the problem of LIBSVM and `sklearn.svm.SVC`) and
        penalized for the squared hinge (that of LIBLINEAR and `sklearn.svm.LinearSVC`).
    solver : str or Solver, default="auto"
        "auto", "interior_point", or an object that carries its own options, such as
        ``InteriorPoint(reduction="omega")``.
    class_weight : dict, "balanced" or None, default=None
        Factors of C by class; "balanced" makes all classes weigh the same.
    multi_class : {"ovr"}, default="ovr"
        How more than two classes are told apart: one against the rest.
    tol : float > 0, default=1e-4
        Relative duality gap (P - D) / P: how far above its minimum P may be.
    max_iter : int >= 1 or None, default=None
        Iterations of each binary problem; None: the solver's default.
    time_limit : float > 0 in seconds, or None, default=None
        Of the whole fit, checked after each iteration.
    memory_limit : int > 0 in bytes, or None, default=None
        For temporary arrays of a sweep and for classes trained at the same time. The
        data and about 100 bytes a row come on top.
    n_jobs : int or None, default=None
        Threads. None: as many as BLAS may use at the moment (all cores, or fewer inside
        joblib). The answer does not depend on it.
    random_state : int, RandomState or None, default=None
        Seed of solvers that sample; the default solver does not.
    verbose : int, default=0
        1 shows the progress on standard error.
    callback : callable or None, default=None
        Called with each `widemargin.solution.Step`; returning True stops the fit.

    Attributes
    ----------
    classes_ : ndarray (c,), the labels
    coef_ : ndarray (1, n) for two classes, else (c, n)
    intercept_ : ndarray (1,) or (c,)
    support_ : ndarray of the rows with a positive dual variable in any problem
    n_support_ : ndarray (c,), support vectors by class
    dual_coef_ : ndarray (1 or c, len(support_)), y_i alpha_i
    n_iter_ : int, iterations of the longest binary problem
    dual_gap_ : float, the largest certified relative gap of the binary problems
    status_ : str, the worst status of the binary problems
    solution_, solutions_ : Solution of the (first) binary problem; list of all
    n_features_in_ : int
    feature_names_in_ : ndarray (n,), where X had column names

    See Also
    --------
    widemargin.solve : the layer below, with one problem and its certificate.

    Notes
    -----
    A row with sample weight 0 counts as removed, one of weight 2 as two rows, exactly.
    The fit that Ctrl-C ends keeps its best model and then raises KeyboardInterrupt.
    Probabilities: ``CalibratedClassifierCV(LinearSVC())`` of scikit-learn.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from widemargin import LinearSVC
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> clf = make_pipeline(StandardScaler(), LinearSVC()).fit(X, y)
    >>> clf[-1].status_, clf[-1].dual_gap_ <= 1e-4
    ('solved', True)
    """

    def __init__(
        self,
        *,
        C: float = 1.0,
        loss: str = "hinge",
        intercept: str = "auto",
        solver: str | Solver = "auto",
        class_weight: Any = None,
        multi_class: str = "ovr",
        tol: float = 1e-4,
        max_iter: int | None = None,
        time_limit: float | None = None,
        memory_limit: int | None = None,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
        callback: Callable[[Step], Any] | None = None,
    ) -> None:
        self.C = C
        self.loss = loss
        self.intercept = intercept
        self.solver = solver
        self.class_weight = class_weight
        self.multi_class = multi_class
        self.tol = tol
        self.max_iter = max_iter
        self.time_limit = time_limit
        self.memory_limit = memory_limit
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose
        self.callback = callback

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    @with_callbacks  # type: ignore[untyped-decorator]
    def fit(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Train on the rows of X.

        Parameters
        ----------
        X : array, sparse matrix or Rows (m, n)
            float32, float64 and integers are used as they are, without a copy.
        y : array (m,) of labels, numbers or strings
        sample_weight : array (m,) of numbers >= 0, or None

        Returns
        -------
        self

        Raises
        ------
        ValueError
            A parameter out of range, NaN or infinity, fewer than two classes.
        KeyboardInterrupt
            After Ctrl-C, with the best model kept.

        Warns
        -----
        ConvergenceWarning
            The gap asked for was not reached; says how far it is and what helps.
        """
        self._check_parameters()
        rows, y = self._validate(X, y)
        weights = _check_weights(sample_weight, rows.shape[0])
        self.classes_, labels = _classes(y, weights)
        C = (
            self.C
            * weights
            * _class_factors(self.class_weight, self.classes_, labels, weights)
        )
        signs = multiclass.signs(labels, len(self.classes_))
        solutions = self._solve(rows, signs, C, (X, y, sample_weight))
        self._store(solutions, signs, labels)
        if any(s.status is Status.INTERRUPTED for s in solutions):
            raise KeyboardInterrupt
        worst = max(solutions, key=lambda s: s.certificate.relative_gap)
        if worst.status is not Status.SOLVED:
            warnings.warn(worst.message, ConvergenceWarning, stacklevel=2)
        return self

    def decision_function(self, X: Any) -> Vector:
        """Decision values x'w + b: (m,) for two classes, (m, c) for more.

        Parameters
        ----------
        X : array, sparse matrix or Rows (m, n)

        Returns
        -------
        ndarray (m,) or (m, c)
        """
        check_is_fitted(self)
        return self.model_.scores(self._rows(X))

    def predict(self, X: Any) -> NDArray[Any]:
        """Labels of the rows of X.

        Parameters
        ----------
        X : array, sparse matrix or Rows (m, n)

        Returns
        -------
        ndarray (m,)
        """
        return self.model_.decide(self.decision_function(X))

    @property
    def model_(self) -> Model:
        """What `widemargin.save_model` writes: classes and decision functions."""
        check_is_fitted(self)
        decisions = tuple(
            Decision(w, float(b))
            for w, b in zip(self.coef_, self.intercept_, strict=True)
        )
        facts = {
            "loss": self.loss,
            "C": self.C,
            "dual_gap": self.dual_gap_,
            "status": self.status_,
        }
        names = getattr(self, "feature_names_in_", None)
        if names is not None:
            facts["feature_names"] = [str(name) for name in names]
        scheme = "binary" if len(decisions) == 1 else "ovr"
        return Model(self.classes_, scheme, decisions, facts)

    # -- parts of fit ------------------------------------------------------------------

    def _check_parameters(self) -> None:
        """Raise for a parameter out of range, in the words of scikit-learn."""
        check = Checker(type(self).__name__)
        check.positive("C", self.C)
        check.positive("tol", self.tol)
        check.positive("time_limit", self.time_limit, optional=True)
        check.count("max_iter", self.max_iter, optional=True)
        check.count("memory_limit", self.memory_limit, optional=True)
        check.count("verbose", int(self.verbose), least=0)
        check.choice("loss", self.loss, LOSSES)
        check.choice("intercept", self.intercept, INTERCEPTS)
        check.choice("multi_class", self.multi_class, ("ovr",))
        if not isinstance(self.solver, Solver):
            check.choice("solver", self.solver, ("auto", *auto.SOLVERS))
        if self.n_jobs is not None and not (is_integer(self.n_jobs) and self.n_jobs):
            check.refuse("n_jobs", "a nonzero int or None", self.n_jobs)
        if not (self.callback is None or callable(self.callback)):
            check.refuse("callback", "callable or None", self.callback)

    def _validate(self, X: Any, y: Any) -> tuple[Rows, NDArray[Any]]:
        """Rows and labels of training data; the numbers are checked by Problem."""
        if isinstance(X, Rows):
            self.n_features_in_ = X.shape[1]
            y = column_or_1d(y, warn=True)
            if len(y) != X.shape[0]:
                raise ValueError(
                    f"y must have length {X.shape[0]}. Got length {len(y)} instead."
                )
        else:
            X, y = validate_data(
                self, X, y, dtype=_NUMERIC, ensure_all_finite=False, **_ANY_STORAGE
            )
        check_classification_targets(y)
        return as_rows(X, n_jobs=self.n_jobs, memory_limit=self.memory_limit), y

    def _rows(self, X: Any) -> Rows:
        """Rows of data to predict; numbers are checked by their scores."""
        if isinstance(X, Rows):
            return X
        X = validate_data(
            self,
            X,
            reset=False,
            dtype=_NUMERIC,
            ensure_all_finite=False,
            **_ANY_STORAGE,
        )
        return as_rows(X, n_jobs=self.n_jobs, memory_limit=self.memory_limit)

    def _solve(
        self, rows: Rows, signs: list[Vector], C: Vector, data: tuple[Any, Any, Any]
    ) -> list[Solution]:
        """One solution a binary problem."""
        seed = self.random_state
        if seed is not None and not is_integer(seed):
            seed = int(check_random_state(seed).randint(2**31))
        callbacks = _Callbacks(self, len(signs), data)

        begin = time.perf_counter()

        def time_left() -> float | None:
            if self.time_limit is None:
                return None
            return max(1e-9, begin + self.time_limit - time.perf_counter())

        def solve_one(labels: Vector) -> Callable[[Rows], Solution]:
            def solve(rows: Rows) -> Solution:
                problem = Problem(rows, labels, C, self.loss, self.intercept)
                solver, reason = auto.choose(problem, self.solver, seed)
                limits = Limits(self.tol, self.max_iter, time_left(), callbacks)
                return run(problem, solver, limits, reason=reason)

            return solve

        try:
            return multiclass.solve_together(
                rows, [solve_one(y) for y in signs], self.memory_limit
            )
        finally:
            callbacks.close()

    def _store(
        self, solutions: list[Solution], signs: list[Vector], labels: Any
    ) -> None:
        """Set the fitted attributes."""
        self.solutions_, self.solution_ = solutions, solutions[0]
        self.coef_ = np.stack([s.w for s in solutions])
        self.intercept_ = np.array([s.b for s in solutions])
        dual_coef = np.stack(
            [y * s.alpha for y, s in zip(signs, solutions, strict=True)]
        )
        self.support_ = np.flatnonzero(dual_coef.any(axis=0))
        self.dual_coef_ = dual_coef[:, self.support_]
        self.n_support_ = np.bincount(
            labels[self.support_], minlength=len(self.classes_)
        )
        self.n_iter_ = max(1, *(len(s.trace) - 1 for s in solutions))
        worst = max(solutions, key=lambda s: s.certificate.relative_gap)
        self.dual_gap_ = float(worst.certificate.relative_gap)
        self.status_ = worst.status.value


_NUMERIC: Any = "numeric"
_ANY_STORAGE: Any = {"accept_sparse": "csr", "accept_large_sparse": True}


class _Callbacks:
    """The callbacks of the user, the printer and scikit-learn, one call at a time."""

    def __init__(
        self, estimator: LinearSVC, n_solves: int, data: tuple[Any, Any, Any]
    ) -> None:
        self._estimator, self._data = estimator, data
        self._lock = threading.Lock()
        self._printer = Printer(estimator.tol, n_solves) if estimator.verbose else None
        self._binary = n_solves == 1
        self._context = None
        if getattr(estimator, "_skl_callbacks", None) or hasattr(
            estimator, "_parent_callback_ctx"
        ):
            self._context = estimator._init_callback_context(max_subtasks=None)
            self._context.call_on_fit_task_begin(estimator=estimator, **self._facts())

    def __call__(self, step: Step) -> bool:
        with self._lock:
            if self._printer is not None:
                self._printer(step)
            stop = bool(self._estimator.callback and self._estimator.callback(step))
            return self._tell_scikit_learn(step) or stop

    def close(self) -> None:
        """End the line of the printer and the task of scikit-learn."""
        if self._printer is not None:
            self._printer.close()
        if self._context is not None:
            self._context.call_on_fit_task_end(
                estimator=self._estimator, **self._facts()
            )

    def _tell_scikit_learn(self, step: Step) -> bool:
        """One iteration as a subtask of the fit; True if a callback asks to stop."""
        if self._context is None:
            return False
        task = self._context.subcontext(task_name="iteration")
        facts = self._facts()
        task.call_on_fit_task_begin(estimator=self._estimator, **facts)
        if self._binary:
            facts["reconstruction_attributes"] = lambda: self._fitted(step)
        return bool(task.call_on_fit_task_end(estimator=self._estimator, **facts))

    def _facts(self) -> dict[str, Any]:
        X, y, weights = self._data
        return {
            "X": X,
            "y": y,
            "metadata": None if weights is None else {"sample_weight": weights},
        }

    def _fitted(self, step: Step) -> dict[str, Any]:
        """What an estimator needs to predict with the model of a step."""
        w, b = step.point()
        gap = {"dual_gap_": step.relative_gap, "status_": "running"}
        return {"coef_": w[np.newaxis], "intercept_": np.array([b]), **gap}


# -- checks ----------------------------------------------------------------------------


def _check_weights(sample_weight: Any, m: int) -> Vector:
    """Weights of the rows: float64 (m,), nonnegative and finite, not all zero."""
    if sample_weight is None:
        return np.ones(m)
    weights = np.asarray(sample_weight, dtype=np.float64)
    if weights.ndim == 0:
        weights = np.full(m, float(weights))
    if weights.shape != (m,):
        raise ValueError(
            f"sample_weight must have length {m}. Got shape {weights.shape} instead."
        )
    bad = ~(np.isfinite(weights) & (weights >= 0))
    if bad.any():
        raise ValueError(
            "sample_weight must be finite and nonnegative. "
            f"Got {weights[bad][0]} at row {int(np.argmax(bad))} instead."
        )
    if not weights.any():
        raise ValueError(
            "sample_weight must be positive somewhere. Got zeros only instead."
        )
    return weights


def _classes(y: NDArray[Any], weights: Vector) -> tuple[NDArray[Any], NDArray[np.intp]]:
    """Classes with a positive weight, and the index of each row's class (else 0)."""
    classes = np.unique(y[weights > 0])
    if len(classes) < 2:
        raise ValueError(
            f"y must hold at least two classes. Got one class ({classes[0]}) instead."
        )
    labels = np.minimum(np.searchsorted(classes, y), len(classes) - 1)
    return classes, labels


def _class_factors(
    class_weight: Any, classes: NDArray[Any], labels: NDArray[np.intp], weights: Vector
) -> Vector:
    """Factor of C for each row: (m,)."""
    if class_weight is None:
        return np.ones(labels.shape)
    if isinstance(class_weight, str) and class_weight == "balanced":
        mass = np.bincount(labels, weights=weights, minlength=len(classes))
        factors = mass.sum() / (len(classes) * mass)
        return np.asarray(factors[labels])
    if not isinstance(class_weight, Mapping):
        Checker("LinearSVC").refuse(
            "class_weight", "a dict, 'balanced' or None", class_weight
        )
    factors = compute_class_weight(class_weight, classes=classes, y=classes[labels])
    if not np.all((factors > 0) & np.isfinite(factors)):
        raise ValueError(
            "The 'class_weight' parameter of LinearSVC must hold positive numbers."
        )
    return np.asarray(factors[labels])
