"""LinearSVCCV: a LinearSVC whose C is chosen by cross-validation."""

from typing import Any

import numpy as np

from widemargin.estimators.fold_scores import judge_folds
from widemargin.estimators.linear_folds import solve_linear_folds
from widemargin.estimators.linear_svc import LinearSVC
from widemargin.estimators.multiclass import decided_by, scheme_of
from widemargin.estimators.points import Judge, Machine, Points
from widemargin.estimators.selected_classifier import SelectedClassifier
from widemargin.estimators.selection import grid
from widemargin.estimators.training import Training
from widemargin.parameters import Checker
from widemargin.solution import Status
from widemargin.solvers.driver.contract import Solver

# The least points that pay for the products of all rows (2,000 x 2,000: two take 1.2
# times as long as one by one, ten 0.26; `benchmarks/core/wide_rows.py --searches`).
LEAST_POINTS = 10


class LinearSVCCV(SelectedClassifier):
    """Linear classifier whose C is chosen by cross-validation.

    Each point (fold, C) is a machine as of `LinearSVC`, with a certified duality gap.
    The machines of all folds and all C are solved at once where their rows are in
    memory and have few columns, or many of few dense rows; if there are ten points or
    more, and ``scoring`` is no callable. Else C rises, and a machine begins where that
    of the next smaller C ended.

    Parameters
    ----------
    Cs : int or list of floats > 0, default=10
        Values of C. An int: so many, equally spaced in log C from 0.01 to 1,000.
    cv : int, splitter or iterable of (train, test), default=5
        An int: so many stratified folds, of the rows that have a weight. A splitter
        or iterable of your own numbers all rows, also those of weight 0.
    scoring : str, callable (estimator, X, y) or None, default=None
        A scorer of scikit-learn; None: the share of right labels.
    refit : bool, default=True
        Whether the best point is trained on all rows; else there is no model.
    calibrate : {"sigmoid", "isotonic"} or None, default=None
        Makes `predict_proba` from the decision values of the held-out rows, by the
        methods of `sklearn.calibration.CalibratedClassifierCV`. `predict` goes by the
        decision values all the same. `save_model` and `write_onnx` keep them.
    loss, intercept, solver, class_weight, multi_class, decision_function_shape, \
break_ties, tol, max_iter : as of `LinearSVC`
    time_limit : float > 0 in seconds, or None, default=None
        Of the whole fit. The folds end after four fifths of it: points that are not
        finished then are NaN, and the best of the others is trained. That may take a
        fifth in any case: what the folds take longer comes on top.
    memory_limit, n_jobs, random_state : as of `LinearSVC`

    Attributes
    ----------
    C_ : float, the best point: of equal scores the smallest C
    Cs_ : ndarray (C,), rising, each value once
    scores_ : ndarray (folds, C)
    path_ : ndarray (folds, C), the certified relative gap of each point: the largest of
        its binary problems. An upper bound, as of `SVCCV`
    best_score_ : float, mean score of the best point
    best_estimator_ : LinearSVC, the best point trained on all rows. Its attributes are
        those of this estimator too: ``coef_``, ``dual_gap_``, ``solutions_``, ...
    classes_ : ndarray (c,)
    n_features_in_ : int
    feature_names_in_ : ndarray (n,), where X had column names
    seconds_ : float, time of the whole fit

    See Also
    --------
    SVCCV : with a kernel.
    linear_svc_path : the machines of rising C.

    Notes
    -----
    After Ctrl-C the scores of what was finished are kept, and KeyboardInterrupt is
    raised. Dask collections are taken, too, with the folds of an int ``cv`` and scores
    of labels.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from widemargin import LinearSVCCV
    >>> X, y = load_iris(return_X_y=True)
    >>> clf = LinearSVCCV(Cs=[0.01, 0.1, 1.0]).fit(X, y)
    >>> clf.scores_.shape, bool(clf.path_.max() <= 1e-4), clf.C_
    ((5, 3), True, 1.0)
    """

    def __init__(
        self,
        *,
        Cs: Any = 10,
        cv: Any = 5,
        scoring: Any = None,
        refit: bool = True,
        calibrate: str | None = None,
        loss: str = "squared_hinge",
        intercept: str = "auto",
        solver: str | Solver = "auto",
        class_weight: Any = None,
        multi_class: str = "ovr",
        decision_function_shape: str = "ovr",
        break_ties: bool = False,
        tol: float = 1e-4,
        max_iter: int | None = None,
        time_limit: float | None = None,
        memory_limit: int | None = None,
        n_jobs: int | None = None,
        random_state: Any = None,
    ) -> None:
        self.Cs = Cs
        self.cv = cv
        self.scoring = scoring
        self.refit = refit
        self.calibrate = calibrate
        self.loss = loss
        self.intercept = intercept
        self.solver = solver
        self.class_weight = class_weight
        self.multi_class = multi_class
        self.decision_function_shape = decision_function_shape
        self.break_ties = break_ties
        self.tol = tol
        self.max_iter = max_iter
        self.time_limit = time_limit
        self.memory_limit = memory_limit
        self.n_jobs = n_jobs
        self.random_state = random_state

    # -- parts of fit ------------------------------------------------------------------

    def _machine(self) -> LinearSVC:
        return LinearSVC(**self._shared(LinearSVC))

    def _paths(self) -> list[list[Machine]]:
        self.Cs_ = grid(Checker(type(self).__name__), "Cs", self.Cs)
        return [[LinearSVC(**self._shared(LinearSVC), C=float(C)) for C in self.Cs_]]

    def _search(self, training: Training, judge: Judge, machine: Any) -> Points:
        self.Cs_ = grid(Checker(type(self).__name__), "Cs", self.Cs)
        points = self._no_points((len(judge.folds), 1, len(self.Cs_)))
        # A callable may look at attributes of the machines that it scores.
        found, is_free = None, judge.scale is None and not callable(self.scoring)
        if is_free and points.scores.size >= LEAST_POINTS:
            weights, factors = self._fold_weights(training, judge)
            try:
                found = solve_linear_folds(training, weights, self.Cs_, factors)
            except KeyboardInterrupt:  # before one point is finished
                points.stopped = Status.INTERRUPTED
                return points
        if found is None:
            return super()._search(training, judge, machine)
        scheme = scheme_of(len(self.classes_), self.multi_class)
        at = range(len(judge.folds)), 0, np.arange(len(self.Cs_))
        judge_folds(points, judge, found, at, decided_by(machine, scheme))
        return points

    def _keep_points(self, points: Points) -> None:
        self.scores_, self.path_ = points.scores[:, 0], points.gaps[:, 0]

    def _choose(self, machine: Any, points: Points) -> None:
        _, c = points.best()
        self.C_, self.best_score_ = float(self.Cs_[c]), float(points.means[0, c])
        machine.set_params(C=self.C_)
