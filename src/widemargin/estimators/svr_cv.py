"""SVRCV: an SVR whose C, epsilon and gamma are chosen by cross-validation."""

import dataclasses
from collections.abc import Callable
from typing import Any

from widemargin.estimators.fold_scores import judge_targets
from widemargin.estimators.folds import Folds, solve_folds
from widemargin.estimators.gammas import check_gammas, has_gamma, with_gammas
from widemargin.estimators.linear_folds import LinearFolds
from widemargin.estimators.linear_svr_cv import solve_widths
from widemargin.estimators.multiclass import one_task
from widemargin.estimators.points import Judge, Points, fit_points
from widemargin.estimators.selected_regressor import SelectedRegressor
from widemargin.estimators.selection import grid
from widemargin.estimators.svr import SVR
from widemargin.estimators.training import Training
from widemargin.parameters import Checker
from widemargin.solvers.driver.contract import Solver


class SVRCV(SelectedRegressor):
    """Regression with a kernel whose C, epsilon and gamma are chosen by folds.

    Each point (fold, gamma, epsilon, C) is a machine as of `SVR`, with a certified
    duality gap. The machines of all folds, all epsilon and all C share their kernel
    values. C rises, and each machine begins where that of the next smaller C ended.

    Parameters
    ----------
    Cs : int or list of floats > 0, default=10
        Values of C. An int: so many, equally spaced in log C from 0.01 to 1,000.
    gammas : int, list or None, default=None
        Values of gamma: positive numbers, or "scale", "auto" and "mean_distance" as in
        `SVR`. An int: so many, from a tenth to ten times "scale". None: ``gamma``.
    epsilons : list of floats >= 0, one of these or None, default=None
        Values of epsilon, in the units of y. None: ``epsilon``.
    cv : int, splitter or iterable of (train, test), default=5
        An int: so many folds, of rows that follow each other, as of
        `sklearn.model_selection.KFold`, of the rows that have a weight. A splitter or
        iterable of your own numbers all rows, also those of weight 0.
    scoring : str, callable (estimator, X, y) or None, default=None
        A scorer of scikit-learn that needs predictions; None: R^2. It sees a
        stand-in that has the predictions of the held-out rows and no other attribute of
        a fitted `SVR`.
    refit : bool, default=True
        Whether the best point is trained on all rows; else there is no model.
    skip_losers : bool, default=False
        Whether points are left out as soon as they cannot win: with the largest score
        there is in the folds that are left, their mean would be below that of a point
        that is finished. Their scores and gaps are NaN in these folds. The gamma in the
        middle of the grid is finished first. Not with a callable as ``scoring``, whose
        largest score is unknown.
    kernel, degree, gamma, coef0 : as of `SVR`
    epsilon : float >= 0, default=0.1
        Where ``epsilons`` is None.
    loss, intercept, solver, tol, max_iter : as of `SVR`
    time_limit : float > 0 in seconds, or None, default=None
        Of the whole fit. The folds end after four fifths of it: points that are not
        finished then are NaN, and the best of the others is trained. That may take a
        fifth in any case: what the folds take longer comes on top.
    memory_limit, n_jobs, random_state : as of `SVR`

    Attributes
    ----------
    C_, epsilon_, gamma_ : float, the best point: of equal scores the smallest C, then
        the first gamma, then the smallest epsilon
    Cs_, epsilons_ : ndarray, rising, each value once
    gammas_ : ndarray, as numbers, each value once
    scores_ : ndarray (folds, gammas, epsilons, C)
    path_ : ndarray (folds, gammas, epsilons, C), the certified relative gap of each
        point: an upper bound, as of `SVCCV`
    best_score_ : float, mean score of the best point
    best_estimator_ : SVR, the best point trained on all rows. Its attributes are those
        of this estimator too: ``dual_coef_``, ``dual_gap_``, ``solution_``, ...
    n_features_in_ : int
    feature_names_in_ : ndarray (n,), where X had column names
    seconds_ : float, time of the whole fit

    See Also
    --------
    LinearSVRCV : linear in the columns, also for rows in files.

    Notes
    -----
    After Ctrl-C the scores of what was finished are kept, and KeyboardInterrupt is
    raised. Where the kernel is a callable, precomputed or linear, or there are many
    rows, the points are fitted one after the other.

    Examples
    --------
    >>> from sklearn.datasets import make_friedman1
    >>> from widemargin import SVRCV
    >>> X, y = make_friedman1(200, noise=1.0, random_state=0)
    >>> reg = SVRCV(Cs=[1.0, 10.0], epsilons=[0.1, 0.5]).fit(X, y)
    >>> reg.scores_.shape, bool(reg.path_.max() <= 1e-4), reg.C_, reg.epsilon_
    ((5, 1, 2, 2), True, 10.0, 0.5)
    """

    _takes_present = True

    def __init__(
        self,
        *,
        Cs: Any = 10,
        gammas: Any = None,
        epsilons: Any = None,
        cv: Any = 5,
        scoring: Any = None,
        refit: bool = True,
        skip_losers: bool = False,
        kernel: str | Callable[[Any, Any], Any] = "rbf",
        degree: int = 3,
        gamma: float | str = "scale",
        coef0: float = 0.0,
        epsilon: float = 0.1,
        loss: str = "epsilon_insensitive",
        intercept: str = "auto",
        solver: str | Solver = "auto",
        tol: float = 1e-4,
        max_iter: int | None = None,
        time_limit: float | None = None,
        memory_limit: int | None = None,
        n_jobs: int | None = None,
        random_state: Any = None,
    ) -> None:
        self.Cs = Cs
        self.gammas = gammas
        self.epsilons = epsilons
        self.cv = cv
        self.scoring = scoring
        self.refit = refit
        self.skip_losers = skip_losers
        self.kernel = kernel
        self.degree = degree
        self.gamma = gamma
        self.coef0 = coef0
        self.epsilon = epsilon
        self.loss = loss
        self.intercept = intercept
        self.solver = solver
        self.tol = tol
        self.max_iter = max_iter
        self.time_limit = time_limit
        self.memory_limit = memory_limit
        self.n_jobs = n_jobs
        self.random_state = random_state

    # -- parts of fit ------------------------------------------------------------------

    def _machine(self) -> SVR:
        return SVR(**self._shared(SVR))

    def _check_parameters(self, check: Checker) -> None:
        super()._check_parameters(check)
        check.choice("skip_losers", self.skip_losers, (True, False))
        check_gammas(check, self)

    def _search(self, training: Training, judge: Judge, machine: Any) -> Points:
        check = Checker(type(self).__name__)
        self.Cs_ = grid(check, "Cs", self.Cs)
        self.epsilons_ = self._widths(check)
        self.gammas_, kernels = with_gammas(self, machine.kernel_, judge)
        n_widths = len(self.epsilons_)
        shape = len(judge.folds), len(kernels) * n_widths, len(self.Cs_)
        points = self._no_points(shape)
        is_free = judge.scale is None  # else each fold has columns of its own
        for folds, g, own, places in points.by_gamma(n_widths):
            widths = self.epsilons_[own % n_widths].tolist()
            some = judge.factors[folds], self.Cs_[places]
            found: Folds | LinearFolds | None = None
            if is_free and training.recipe.kernel is None:
                found = solve_widths(training, machine, judge.y, widths, some)
            elif is_free:
                recipes = [machine._recipe_with(kernels[g], w, judge.y) for w in widths]
                tasks = one_task(len(recipes))
                one = dataclasses.replace(training, recipe=recipes[0], tasks=tasks)
                found = solve_folds(one, *some, recipes, len(judge.folds))
            if found is None:
                self._fit_all(points, judge, training)
                break
            judge_targets(points, judge, found, (folds, own, places))
            if points.stopped:
                break
        return points

    def _fit_all(self, points: Points, judge: Judge, training: Training) -> None:
        """Fit each point by itself."""
        gammas = self.gammas_.tolist() if has_gamma(self) else [self.gamma]
        shared = self._shared(SVR)
        paths = [
            [
                SVR(**(shared | {"C": C, "epsilon": width, "gamma": gamma}))
                for C in self.Cs_.tolist()
            ]
            for gamma in gammas
            for width in self.epsilons_.tolist()
        ]
        fit_points(points, judge, training, paths)

    def _keep_points(self, points: Points) -> None:
        widths = len(self.gammas_), len(self.epsilons_)
        shape = len(points.scores), *widths, len(self.Cs_)
        self.scores_ = points.scores.reshape(shape)
        self.path_ = points.gaps.reshape(shape)

    def _choose(self, machine: Any, points: Points) -> None:
        place, c = points.best()
        g, e = divmod(place, len(self.epsilons_))
        self.C_, self.gamma_ = float(self.Cs_[c]), float(self.gammas_[g])
        self.epsilon_ = float(self.epsilons_[e])
        self.best_score_ = float(points.means[place, c])
        machine.set_params(C=self.C_, epsilon=self.epsilon_)
        if has_gamma(self):
            machine.set_params(gamma=self.gamma_)
