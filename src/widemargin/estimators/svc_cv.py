"""SVCCV: an SVC whose C and gamma are chosen by cross-validation."""

import dataclasses
from collections.abc import Callable
from typing import Any

from widemargin.estimators.fold_scores import judge_folds
from widemargin.estimators.folds import Folds, solve_folds
from widemargin.estimators.gammas import check_gammas, has_gamma, with_gammas
from widemargin.estimators.linear_folds import LinearFolds, solve_linear_folds
from widemargin.estimators.multiclass import decided_by, scheme_of
from widemargin.estimators.points import Judge, Points, fit_points
from widemargin.estimators.selected_classifier import SelectedClassifier
from widemargin.estimators.selection import grid
from widemargin.estimators.svc import SVC
from widemargin.estimators.training import Training
from widemargin.parameters import Checker
from widemargin.solvers.driver.contract import Solver


class SVCCV(SelectedClassifier):
    """Classifier with a kernel whose C and gamma are chosen by cross-validation.

    Each point (fold, gamma, C) is a machine as of `SVC`, with a certified duality gap.
    The machines of all folds and all C share their kernel values. C rises, and
    each machine begins where that of the next smaller C ended, or, while most of alpha
    is at C, near that of the first fold with its C.

    Parameters
    ----------
    Cs : int or list of floats > 0, default=10
        Values of C. An int: so many, equally spaced in log C from 0.01 to 1,000.
    gammas : int, list or None, default=None
        Values of gamma: positive numbers, or "scale", "auto" and "mean_distance" as in
        `SVC`. An int: so many, from a tenth to ten times "scale". None: ``gamma``.
    cv : int, splitter or iterable of (train, test), default=5
        An int: so many stratified folds, of the rows that have a weight. A splitter
        or iterable of your own numbers all rows, also those of weight 0.
    scoring : str, callable (estimator, X, y) or None, default=None
        A scorer of scikit-learn that needs predictions or decision values; None: the
        share of right labels. It sees a stand-in that has the decision values of the
        held-out rows and no other attribute of a fitted `SVC`.
    refit : bool, default=True
        Whether the best point is trained on all rows; else there is no model.
    skip_losers : bool, default=False
        Whether points are left out as soon as they cannot win: with the largest score
        there is in the folds that are left, their mean would be below that of a point
        that is finished. Their scores and gaps are NaN in these folds. The gamma in the
        middle of the grid is finished first. Not with a callable as ``scoring``, whose
        largest score is unknown.
    calibrate : {"sigmoid", "isotonic"} or None, default=None
        Makes `predict_proba` from the decision values of the held-out rows, by the
        methods of `sklearn.calibration.CalibratedClassifierCV`. `predict` goes by the
        decision values all the same. `save_model` and `write_onnx` keep them.
    kernel, gamma, degree, coef0, loss, intercept, solver, class_weight, multi_class, \
decision_function_shape, break_ties, tol, max_iter : as of `SVC`
        "scale" and the like are numbers of all rows, not of each fold's;
        "balanced" is of the training rows of each fold.
    time_limit : float > 0 in seconds, or None, default=None
        Of the whole fit. The folds end after four fifths of it: points that are not
        finished then are NaN, and the best of the others is trained. That may take a
        fifth in any case: what the folds take longer comes on top.
    memory_limit, n_jobs, random_state : as of `SVC`

    Attributes
    ----------
    C_, gamma_ : float, the best point: of equal scores that of the smallest C
    Cs_ : ndarray (C,), rising, each value once
    gammas_ : ndarray (gammas,), each value once
    scores_ : ndarray (folds, gammas, C)
    path_ : ndarray (folds, gammas, C), the certified relative gap of each point: the
        largest of its binary problems. An upper bound: where kernel values in float32
        and the bounds of their errors prove it to be below ``tol``, none are made in
        float64. That of the last fit, ``dual_gap_``, is by float64.
    best_score_ : float, mean score of the best point
    best_estimator_ : SVC, the best point trained on all rows. Its attributes are those
        of this estimator too: ``dual_gap_``, ``support_vectors_``, ``solutions_``, ...
    classes_ : ndarray (c,)
    n_features_in_ : int
    feature_names_in_ : ndarray (n,), where X had column names
    seconds_ : float, time of the whole fit

    See Also
    --------
    LinearSVCCV : for kernel="linear" and any number of rows.
    svc_path : the machines of rising C.

    Notes
    -----
    Problems of more rows than the batch solver takes are fitted one after the other.
    Others keep the kernel values that they share: at most 4 bytes times the square of
    the number of rows, and half as much beside. 16,000 rows of two classes may take 1.5
    GB, or what ``memory_limit`` leaves. After Ctrl-C the scores of what was finished
    are kept, and KeyboardInterrupt is raised.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from widemargin import SVCCV
    >>> X, y = load_iris(return_X_y=True)
    >>> clf = SVCCV(Cs=[0.1, 1.0, 10.0], gammas=[0.1, 1.0], tol=1e-3).fit(X, y)
    >>> clf.scores_.shape, bool(clf.path_.max() <= 1e-3), clf.C_, clf.gamma_
    ((5, 2, 3), True, 1.0, 0.1)
    """

    _takes_present = True

    def __init__(
        self,
        *,
        Cs: Any = 10,
        gammas: Any = None,
        cv: Any = 5,
        scoring: Any = None,
        refit: bool = True,
        skip_losers: bool = False,
        calibrate: str | None = None,
        kernel: str | Callable[[Any, Any], Any] = "rbf",
        gamma: float | str = "scale",
        degree: int = 3,
        coef0: float = 0.0,
        loss: str = "hinge",
        intercept: str = "auto",
        solver: str | Solver = "auto",
        class_weight: Any = None,
        multi_class: str = "ovo",
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
        self.gammas = gammas
        self.cv = cv
        self.scoring = scoring
        self.refit = refit
        self.skip_losers = skip_losers
        self.calibrate = calibrate
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
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

    def _machine(self) -> SVC:
        return SVC(**self._shared(SVC))

    def _check_parameters(self, check: Checker) -> None:
        super()._check_parameters(check)
        check.choice("skip_losers", self.skip_losers, (True, False))
        check_gammas(check, self)

    def _search(self, training: Training, judge: Judge, machine: Any) -> Points:
        self.Cs_ = grid(Checker(type(self).__name__), "Cs", self.Cs)
        self.gammas_, kernels = with_gammas(self, machine.kernel_, judge)
        points = self._no_points((len(judge.folds), len(kernels), len(self.Cs_)))
        weights, factors = self._fold_weights(training, judge)
        scheme = scheme_of(len(self.classes_), self.multi_class)
        deciding = decided_by(machine, scheme)
        is_free = judge.scale is None  # else each fold has columns of its own
        for folds, g, _, places in points.by_gamma():
            found: Folds | LinearFolds | None = None
            some, own = (weights[folds], self.Cs_[places]), factors[folds]
            if is_free and training.recipe.kernel is None:
                found = solve_linear_folds(training, *some, own)
            elif is_free:
                recipe = machine._recipe_with(kernels[g])
                one = dataclasses.replace(training, recipe=recipe)
                found = solve_folds(one, *some, copies=len(weights), factors=own)
            if found is None:
                self._fit_all(points, judge, training, machine)
                break
            judge_folds(points, judge, found, (folds, g, places), deciding)
            if points.stopped:
                break
        return points

    def _fit_all(
        self, points: Points, judge: Judge, training: Training, machine: Any
    ) -> None:
        """Fit each point by itself."""
        gammas = self.gammas_.tolist() if has_gamma(self) else [self.gamma]
        shared = self._shared(SVC)
        paths = [
            [SVC(**(shared | {"C": C, "gamma": gamma})) for C in self.Cs_.tolist()]
            for gamma in gammas
        ]
        fit_points(points, judge, training, paths)

    def _choose(self, machine: Any, points: Points) -> None:
        g, c = points.best()
        self.C_, self.gamma_ = float(self.Cs_[c]), float(self.gammas_[g])
        self.best_score_ = float(points.means[g, c])
        gamma = {"gamma": self.gamma_} if has_gamma(self) else {}
        machine.set_params(C=self.C_, **gamma)
