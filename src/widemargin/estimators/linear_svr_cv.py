"""LinearSVRCV: a LinearSVR whose C and epsilon are chosen by cross-validation."""

import dataclasses
from typing import Any

import numpy as np
from sklearn.base import clone

from widemargin.arrays import Index, Vector
from widemargin.estimators.fold_scores import judge_targets
from widemargin.estimators.folds import (
    Folds,
)
from widemargin.estimators.linear_folds import LinearFolds, solve_linear_folds
from widemargin.estimators.linear_svr import LinearSVR, linear_recipe
from widemargin.estimators.multiclass import one_task
from widemargin.estimators.points import Judge, Machine, Points
from widemargin.estimators.selected_regressor import SelectedRegressor
from widemargin.estimators.selection import grid
from widemargin.estimators.training import (
    Recipe,
    Training,
)
from widemargin.parameters import Checker
from widemargin.solvers.driver.contract import Solver


class LinearSVRCV(SelectedRegressor):
    """Linear regression whose C and epsilon are chosen by cross-validation.

    Each point (fold, epsilon, C) is a machine as of `LinearSVR`, with a certified
    duality gap. The machines of all folds, epsilon and C are solved at once where their
    rows are in memory and have few columns, and ``scoring`` is no callable. Else C
    rises, and a machine begins where that of the next smaller C ended.

    Parameters
    ----------
    Cs : int or list of floats > 0, default=10
        Values of C. An int: so many, equally spaced in log C from 0.01 to 1,000.
    epsilons : list of floats >= 0, one of these or None, default=None
        Values of epsilon, in the units of y. None: ``epsilon``.
    cv : int, splitter or iterable of (train, test), default=5
        An int: so many folds, of rows that follow each other, as of
        `sklearn.model_selection.KFold`, of the rows that have a weight. A splitter or
        iterable of your own numbers all rows, also those of weight 0.
    scoring : str, callable (estimator, X, y) or None, default=None
        A scorer of scikit-learn; None: R^2.
    refit : bool, default=True
        Whether the best point is trained on all rows; else there is no model.
    epsilon : float >= 0, default=0.0
        Where ``epsilons`` is None.
    loss, intercept, solver, tol, max_iter : as of `LinearSVR`
    time_limit : float > 0 in seconds, or None, default=None
        Of the whole fit. The folds end after four fifths of it: points that are not
        finished then are NaN, and the best of the others is trained. That may take a
        fifth in any case: what the folds take longer comes on top.
    memory_limit, n_jobs, random_state : as of `LinearSVR`

    Attributes
    ----------
    C_, epsilon_ : float, the best point: of equal scores the smallest C, then epsilon
    Cs_, epsilons_ : ndarray, rising, each value once
    scores_ : ndarray (folds, epsilons, C)
    path_ : ndarray (folds, epsilons, C), the certified relative gap of each point
    best_score_ : float, mean score of the best point
    best_estimator_ : LinearSVR, the best point trained on all rows. Its attributes are
        those of this estimator too: ``coef_``, ``dual_gap_``, ``solution_``, ...
    n_features_in_ : int
    feature_names_in_ : ndarray (n,), where X had column names
    seconds_ : float, time of the whole fit

    See Also
    --------
    SVRCV : with a kernel.

    Notes
    -----
    After Ctrl-C the scores of what was finished are kept, and KeyboardInterrupt is
    raised. Dask collections are taken, too, with the folds of an int ``cv`` and scores
    of squared or absolute errors.

    Examples
    --------
    >>> from sklearn.datasets import make_regression
    >>> from widemargin import LinearSVRCV
    >>> X, y = make_regression(200, 5, noise=1.0, random_state=0)
    >>> reg = LinearSVRCV(Cs=[0.01, 1.0], epsilons=[0.5, 50.0]).fit(X, y)
    >>> reg.scores_.shape, bool(reg.path_.max() <= 1e-4), reg.C_, reg.epsilon_
    ((5, 2, 2), True, 1.0, 0.5)
    """

    def __init__(
        self,
        *,
        Cs: Any = 10,
        epsilons: Any = None,
        cv: Any = 5,
        scoring: Any = None,
        refit: bool = True,
        epsilon: float = 0.0,
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
        self.epsilons = epsilons
        self.cv = cv
        self.scoring = scoring
        self.refit = refit
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

    def _machine(self) -> LinearSVR:
        return LinearSVR(**self._shared(LinearSVR))

    def _paths(self) -> list[list[Machine]]:
        check, shared = Checker(type(self).__name__), self._shared(LinearSVR)
        self.Cs_ = grid(check, "Cs", self.Cs)
        self.epsilons_ = self._widths(check)
        return [
            [LinearSVR(**(shared | {"C": C, "epsilon": e})) for C in self.Cs_.tolist()]
            for e in self.epsilons_.tolist()
        ]

    def _search(self, training: Training, judge: Judge, machine: Any) -> Points:
        self.Cs_ = grid(Checker(type(self).__name__), "Cs", self.Cs)
        self.epsilons_ = self._widths(Checker(type(self).__name__))
        shape = len(judge.folds), len(self.epsilons_), len(self.Cs_)
        found = None
        # A callable may look at attributes of the machines that it scores.
        if judge.scale is None and not callable(self.scoring):
            widths, some = self.epsilons_.tolist(), (judge.factors, self.Cs_)
            found = solve_widths(training, machine, judge.y, widths, some)
        if found is None:
            return super()._search(training, judge, machine)
        points = self._no_points(shape)
        own, places = np.arange(shape[1]), np.arange(shape[2])
        judge_targets(points, judge, found, (range(shape[0]), own, places))
        return points

    def _choose(self, machine: Any, points: Points) -> None:
        e, c = points.best()
        self.C_, self.epsilon_ = float(self.Cs_[c]), float(self.epsilons_[e])
        self.best_score_ = float(points.means[e, c])
        machine.set_params(C=self.C_, epsilon=self.epsilon_)


def solve_widths(
    training: Training,
    machine: Any,
    target: Vector,
    widths: list[float],
    folds: tuple[Vector, Vector],
) -> Folds | LinearFolds | None:
    """Solve the problems of all folds, widths and C; None where others suit better.

    Parameters
    ----------
    training : Training, of all rows
    machine : LinearSVR or SVR, whose width does not count
    target : ndarray (m,)
    widths : list of float, of the tubes
    folds : factors of C in each fold, (folds, m); values of C
    """
    machines = [clone(machine).set_params(epsilon=width) for width in widths]

    def recipe_of(k: int, some: Index | None) -> Recipe:
        """The recipe of a width, over some of the rows or all."""
        return linear_recipe(machines[k], target if some is None else target[some])

    tasks, first = one_task(len(widths)), recipe_of(0, None)
    one = dataclasses.replace(training, recipe=first, tasks=tasks)
    return solve_linear_folds(one, *folds, recipe_of=recipe_of)
