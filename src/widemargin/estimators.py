"""scikit-learn estimators: validate, build the problems, solve, keep the model."""

import functools
import inspect
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import (
    check_is_fitted,
    validate_data,
)

from widemargin import labels, multiclass
from widemargin.callbacks import Callbacks, CallbackSupportMixin, with_callbacks
from widemargin.data.memory import as_rows
from widemargin.data.rows import Rows
from widemargin.model import Decision, Model
from widemargin.parameters import Checker, is_integer
from widemargin.problem import INTERCEPTS, LOSSES, Problem
from widemargin.solution import Solution, Status, Step
from widemargin.solvers import auto
from widemargin.solvers.base import Solver, run
from widemargin.solvers.checkpoint import Checkpoint
from widemargin.solvers.limits import Clock, Limits
from widemargin.support_vectors import SupportVectors, keep_support_vectors

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
        "auto", "active_set", "augmented_lagrangian", "coordinate_descent",
        "interior_point", or an object that carries its own options, such as
        ``InteriorPoint(reduction="omega")``.
    class_weight : dict, "balanced" or None, default=None
        Factors of C by class; "balanced" makes all classes weigh the same.
    multi_class : {"ovr"}, default="ovr"
        How more than two classes are told apart: one against the rest.
    tol : float in (0, 1], default=1e-4
        Relative duality gap (P - D) / P: the minimum is at most this share below P.
    max_iter : int >= 1 or None, default=None
        Iterations of each binary problem; None: the solver's own (200 of interior
        point, 500 certificates of coordinate descent, 2,000 steps of ALM-Newton).
    time_limit : float > 0 in seconds, or None, default=None
        Of the whole fit, without the time of callbacks. Checked after each iteration
        and before each class, which is left at zero when there is no time for it.
    memory_limit : int >= 16384 in bytes, or None, default=None
        For temporary arrays of a sweep and for classes trained at the same time. The
        data and about 200 bytes a row come on top. Rows of `open_rows` have a limit of
        their own, which is all in all.
    n_jobs : int or None, default=None
        Threads. None: as many as BLAS may use at the moment (all cores, or fewer inside
        joblib). The answer does not depend on it.
    random_state : int >= 0, RandomState or None, default=None
        Seed of solvers that visit rows in random order (coordinate descent).
    verbose : int, default=0
        1 shows the progress on standard error.
    callback : callable or None, default=None
        Called with each `widemargin.solution.Step`, whose ``problem`` says which class
        it is about; returning True stops the fit, and an error ends it.
    checkpoint : str, path-like, `widemargin.Checkpoint` or None, default=None
        A file that the fit is saved in every 60 s, and when a limit ends it (for more
        than two classes a file for each, with a number behind its name). Where it is
        there, the fit goes on from it, also after its process was killed; it is removed
        once the fit is solved.

    Attributes
    ----------
    classes_ : ndarray (c,), the labels
    coef_ : ndarray (1, n) for two classes, else (c, n)
    intercept_ : ndarray (1,) or (c,)
    support_ : ndarray of the rows with a positive dual variable in any problem
    support_vectors_ : ndarray or CSR array (n_sv, n), these rows as stored. More than
        64 MiB are copied when they are first asked for, or pickled: until then the
        training data are kept, and must stay as they are. Not there where the rows are
        not in memory: ``rows.take(clf.support_)`` reads them, or some of them.
    n_support_ : ndarray (c,), support vectors by class
    dual_coef_ : ndarray (1 or c, n_sv), y_i alpha_i
    n_iter_ : int, iterations of the longest binary problem
    dual_gap_ : float, the largest certified relative gap of the binary problems
    status_ : str, "interrupted" after Ctrl-C, else the status of the problem with the
        largest gap
    solution_, solutions_ : Solution of the (first) binary problem; list of all
    n_features_in_ : int
    feature_names_in_ : ndarray (n,), where X had column names, as Parquet has

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

    support_vectors_ = SupportVectors()

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
        checkpoint: Any = None,
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
        self.checkpoint = checkpoint

    def __getstate__(self) -> Any:
        if "_rows_of_fit" in vars(self):
            _ = self.support_vectors_
        return super().__getstate__()

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
            float32, float64 and integers are used as they are, without a copy; rows of
            `open_rows` stay in their files.
        y : array (m,) of labels: numbers, booleans, dates or strings
        sample_weight : array (m,) of numbers >= 0, or None

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

        Warns
        -----
        ConvergenceWarning
            The gap asked for was not reached; says how far it is and what helps.
        """
        self._check_parameters()
        with _unchanged_by_failure(self):
            self._fit(X, y, sample_weight)
        if any(s.status is Status.INTERRUPTED for s in self.solutions_):
            raise KeyboardInterrupt
        worst = max(self.solutions_, key=lambda s: s.certificate.relative_gap)
        if worst.status is not Status.SOLVED:
            warnings.warn(worst.message, ConvergenceWarning, stacklevel=_users_level())
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
        scheme = "binary" if len(decisions) == 1 else "ovr"
        return Model(self.classes_, scheme, decisions, dict(self._meta))

    # -- parts of fit ------------------------------------------------------------------

    def _check_parameters(self) -> None:
        """Raise for a parameter out of range, in the words of scikit-learn."""
        check = Checker(type(self).__name__)
        check.positive("C", self.C)
        check.positive("tol", self.tol, most=1.0)
        check.positive("time_limit", self.time_limit, optional=True)
        check.count("max_iter", self.max_iter, optional=True)
        check.count("memory_limit", self.memory_limit, least=1 << 14, optional=True)
        if not isinstance(self.verbose, bool):
            check.count("verbose", self.verbose, least=0)
        check.choice("loss", self.loss, LOSSES)
        check.choice("intercept", self.intercept, INTERCEPTS)
        check.choice("multi_class", self.multi_class, ("ovr",))
        Checkpoint.of(self.checkpoint, type(self).__name__)
        if not isinstance(self.solver, Solver):
            check.choice("solver", self.solver, ("auto", *auto.SOLVERS))
        if self.n_jobs is not None and not (is_integer(self.n_jobs) and self.n_jobs):
            check.refuse("n_jobs", "a nonzero int or None", self.n_jobs)
        if not (self.callback is None or callable(self.callback)):
            check.refuse("callback", "callable or None", self.callback)
        seed = self.random_state
        drawn = seed is None or isinstance(seed, np.random.RandomState)
        if not (drawn or (is_integer(seed) and seed >= 0)):
            expected = "an int in the range [0, inf), a RandomState or None"
            check.refuse("random_state", expected, seed)

    def _fit(self, X: Any, y: Any, sample_weight: Any) -> None:
        """Set the fitted attributes."""
        clock, data = Clock(), (X, y, sample_weight)
        owner = type(self).__name__
        check = Checker(f"{owner}.fit")
        if y is None:  # in scikit-learn's words
            raise ValueError(
                f"{owner} requires y to be passed, but the target y is None."
            )
        rows = self._rows(X, reset=True)
        m = rows.shape[0]
        y = labels.read_labels(check, y, m)
        weights = labels.read_weights(check, sample_weight, m)
        self.classes_, index = labels.find_classes(check, y, weights)
        factors = labels.class_factors(
            Checker(owner), self.class_weight, self.classes_, index, weights
        )
        C: Any = self.C
        if not (sample_weight is None and self.class_weight is None):
            C = self.C * weights
            C *= factors
        del y, weights, factors, sample_weight  # a few copies of a row vector
        positive = multiclass.positive_classes(len(self.classes_))
        if len(positive) > 1:  # dual variables of each, twice, and n x n sums
            each = 8 * (2 * m + 8 * min(rows.shape[1], multiclass.LARGEST_MATRIX) ** 2)
            rows.reserve(len(positive) * each, f"{len(positive)} classes", clock)
        callbacks = Callbacks(self, len(positive), data)
        try:
            solutions = self._solve(rows, index, positive, C, clock, callbacks)
        finally:
            callbacks.close()
        self._store(solutions, rows, index, positive)

    def _rows(self, X: Any, reset: bool = False) -> Rows:
        """Rows of data to train (reset) or to predict; numbers are checked later."""
        if isinstance(X, Rows):
            self._keep_columns(X) if reset else self._check_columns(X)
            return X
        X = validate_data(
            self,
            X,
            reset=reset,
            dtype=_NUMERIC,
            ensure_all_finite=False,
            accept_sparse="csr",
            accept_large_sparse=True,
        )
        return as_rows(X, n_jobs=self.n_jobs, memory_limit=self.memory_limit)

    def _keep_columns(self, rows: Rows) -> None:
        """Number and names of the columns, as scikit-learn keeps those of tables."""
        self.n_features_in_ = rows.shape[1]
        self.__dict__.pop("feature_names_in_", None)  # of an earlier fit
        if rows.names is not None:
            self.feature_names_in_ = np.array(rows.names, dtype=object)

    def _check_columns(self, rows: Rows) -> None:
        """Refuse rows with other names; of another number the model says so."""
        known = getattr(self, "feature_names_in_", None)
        if known is None or rows.names is None or len(known) != rows.shape[1]:
            return
        for j, (name, found) in enumerate(zip(known, rows.names, strict=True)):
            if name != found:
                raise ValueError(
                    "X must have the columns of the training data, in their order. "
                    f"Got {found!r} as column {j} instead of {name!r}."
                )

    def _solve(
        self,
        rows: Rows,
        index: NDArray[Any],
        positive: Sequence[int],
        C: ArrayLike,
        clock: Clock,
        callbacks: Callbacks,
    ) -> list[Solution]:
        """One solution a binary problem."""
        seed = self.random_state
        if isinstance(seed, np.random.RandomState):
            seed = int(seed.randint(2**31))
        names = getattr(self, "feature_names_in_", None)
        saved = self._checkpoints(len(positive))

        def solve_one(k: int) -> Callable[[Rows], Solution]:
            def solve(rows: Rows) -> Solution:
                y = multiclass.signs(index, positive[k])
                problem = Problem(rows, y, C, self.loss, self.intercept)
                del y  # the problem has its own
                choice = auto.choose(problem, self.solver, seed)
                limits = Limits(
                    self.tol,
                    self.max_iter,
                    self.time_limit,
                    callbacks.of(k),
                    clock,
                    saved[k],
                )
                solution = run(problem, choice, limits, names=names)
                callbacks.finish(k, solution)
                return solution

            return solve

        solves = [solve_one(k) for k in range(len(positive))]
        solutions = multiclass.solve_together(rows, solves, self.memory_limit)
        if all(solution.status is Status.SOLVED for solution in solutions):
            for checkpoint in filter(None, saved):
                checkpoint.remove()
        return solutions

    def _checkpoints(self, n_problems: int) -> list[Checkpoint | None]:
        """That of each binary problem."""
        whole = Checkpoint.of(self.checkpoint, type(self).__name__)
        if whole is None or n_problems == 1:
            return [whole] * n_problems
        return [whole.part(k) for k in range(n_problems)]

    def _store(
        self,
        solutions: list[Solution],
        rows: Rows,
        index: NDArray[Any],
        positive: Sequence[int],
    ) -> None:
        """Keep the answers, and facts about the training as it was."""
        self.solutions_, self.solution_ = solutions, solutions[0]
        self.coef_ = np.stack([s.w for s in solutions])
        self.intercept_ = np.array([s.b for s in solutions])
        support = functools.reduce(np.logical_or, (s.alpha != 0.0 for s in solutions))
        self.support_ = np.flatnonzero(support)
        keep_support_vectors(self, rows)
        index = index[self.support_]
        self.dual_coef_ = np.stack(
            [
                multiclass.signs(index, k) * s.alpha[self.support_]
                for k, s in zip(positive, solutions, strict=True)
            ]
        )
        self.n_support_ = np.bincount(index, minlength=len(self.classes_))
        self.n_iter_ = max(1, *(len(s.trace) - 1 for s in solutions))
        worst = max(solutions, key=lambda s: s.certificate.relative_gap)
        self.dual_gap_ = float(worst.certificate.relative_gap)
        interrupted = any(s.status is Status.INTERRUPTED for s in solutions)
        self.status_ = (Status.INTERRUPTED if interrupted else worst.status).value
        self._meta = {
            "loss": self.loss,
            "C": self.C,
            "dual_gap": self.dual_gap_,
            "status": self.status_,
        }
        if hasattr(self, "feature_names_in_"):
            self._meta["feature_names"] = [str(f) for f in self.feature_names_in_]


_NUMERIC: Any = "numeric"


@contextmanager
def _unchanged_by_failure(estimator: Any) -> Iterator[None]:
    """Give an estimator its fitted attributes back where a fit raises."""

    def fitted() -> dict[str, Any]:
        # Not what scikit-learn's callbacks set for the time of a fit.
        return {
            name: value
            for name, value in vars(estimator).items()
            if name == "_meta" or (name.endswith("_") and not name.startswith("_"))
        }

    before = fitted()
    try:
        yield
    except BaseException:
        for name in fitted():
            delattr(estimator, name)
        vars(estimator).update(before)
        raise


def _users_level() -> int:
    """The ``stacklevel`` of a warning of the caller that names the user's line.

    Frames of this package, of scikit-learn (a decorator, a pipeline) and of joblib
    between them are passed over.
    """
    level, frame = 0, inspect.currentframe()
    while frame is not None:
        package = str(frame.f_globals.get("__name__")).partition(".")[0]
        if package not in ("widemargin", "sklearn", "joblib"):
            break
        level, frame = level + 1, frame.f_back
    return level
