"""Model selection: one value of C and of gamma for all, by scores on held-out rows."""

import dataclasses
import warnings
from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from numbers import Real
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, clone, is_classifier
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.metrics import check_scoring, get_scorer
from sklearn.model_selection import check_cv
from sklearn.utils.metadata_routing import (
    MetadataRouter,
    MethodMapping,
    _routing_enabled,
    process_routing,
)
from sklearn.utils.validation import check_is_fitted

from widemargin.data.rows import Rows
from widemargin.estimators import labels
from widemargin.estimators.batch import batched
from widemargin.estimators.checks import is_pairwise, read_rows, users_level
from widemargin.estimators.classifier import Classifier
from widemargin.estimators.foreign import AdvisingMixin
from widemargin.estimators.multiclass import rows_of
from widemargin.estimators.plans import Fit, exact
from widemargin.estimators.regressor import Regressor
from widemargin.estimators.training import MOMENT, StartPoint, Training, Vector
from widemargin.models.model import Model
from widemargin.parameters import Checker, is_integer, refused_by
from widemargin.problems.conditioning import sharing_groups
from widemargin.solution import Solution, Status
from widemargin.solvers.driver.limits import Limits

Index = NDArray[np.intp]
Machine = Classifier | Regressor

# The ends of the grid that a number of values of C stands for.
LEAST_C, MOST_C = 1e-2, 1e3
# The share of a time limit that belongs to the folds; the rest is for the last fit. Of
# one point in five folds, four fifths of the rows each, the last fit is a fifth of all.
SEARCH = 0.8
# Scores so near are equal: sums in another order differ by rounding.
TIE = 1e-12


@dataclass
class Points:
    """What is known of the points of a grid; what was not finished is NaN.

    Attributes
    ----------
    scores, gaps : ndarray (folds, gammas, C)
    decisions : dict of ndarray, decision values of held-out rows by point; kept on
        request
    stopped : Status or None, what ended the search early
    """

    scores: Vector
    gaps: Vector
    keeps: bool
    decisions: dict[tuple[int, int, int], Vector] = field(default_factory=dict)
    stopped: Status | None = None

    @property
    def means(self) -> Vector:
        """Mean scores of the points that are finished in all folds, else NaN."""
        return np.asarray(self.scores.mean(axis=0))

    def best(self) -> tuple[int, int]:
        """The best point: of equal ones that of the smallest C, then the first."""
        means = self.means.T
        top = np.nanmax(means)
        near = means >= top - TIE * max(1.0, abs(top))
        C, gamma = np.unravel_index(np.argmax(near), means.shape)
        return int(gamma), int(C)


@dataclass(frozen=True)
class Judge:
    """The folds, and what scores held-out rows.

    Attributes
    ----------
    rows : Rows, all
    y : ndarray (m,), labels
    weights : ndarray (m,) or None
    folds : list of (training rows, held-out rows)
    scorer : callable (estimator, X, y, **params)
    params : dict of what the scorer gets beside; arrays of length m are cut
    is_pairwise : bool, whether the columns are kernel values with the rows
    """

    rows: Rows
    y: NDArray[Any]
    weights: Vector | None
    folds: list[tuple[Index, Index]]
    scorer: Callable[..., float]
    params: dict[str, Any]
    is_pairwise: bool

    @property
    def factors(self) -> Vector:
        """Factors of C of all rows in each fold, zero where it holds them out."""
        out = np.zeros((len(self.folds), len(self.y)))
        for weights, (train, _) in zip(out, self.folds, strict=True):
            np.add.at(weights, train, 1.0)
            if self.weights is not None:
                weights *= self.weights
        return out

    def train(self, fold: int) -> tuple[Rows, NDArray[Any], Vector | None]:
        """X, y and weights that a fold is trained on."""
        some = self.folds[fold][0]
        weights = None if self.weights is None else self.weights[some]
        return rows_of(self.rows, some, self.is_pairwise), self.y[some], weights

    def test(self, fold: int) -> Any:
        """The rows that it holds out, as a matrix where they are in memory."""
        train, test = self.folds[fold]
        if not self.rows.is_in_memory:
            return rows_of(self.rows, test, False)
        X = self.rows.take(test)
        return X[:, train] if self.is_pairwise else X

    def score(self, fold: int, model: Any, X: Any) -> float:
        """The score of a model of this fold on the rows X that it holds out."""
        test, m = self.folds[fold][1], len(self.y)
        params = {
            name: np.asarray(value)[test] if _n_rows(value) == m else value
            for name, value in self.params.items()
        }
        found = self.scorer(model, X, self.y[test], **params)
        if not isinstance(found, Real):
            raise ValueError(
                f"The 'scoring' parameter must give one number. Got {found!r} instead."
            )
        if np.isnan(found):
            raise ValueError(
                f"The score of fold {fold} is NaN. It holds {len(test):,} rows out: "
                "give fewer folds, or another scoring."
            )
        return float(found)


def _n_rows(value: Any) -> int | None:
    """The length of what has one."""
    return len(value) if hasattr(value, "__len__") else None


class Selected(AdvisingMixin, BaseEstimator):  # type: ignore[misc]
    """Base: a machine with the C, and the gamma, that does best on held-out rows."""

    # The score where ``scoring`` is None.
    _score_name: ClassVar[str]
    # Names of machines whose errors are said in the name of this estimator.
    _kinds: ClassVar[tuple[str, ...]]

    # -- what an estimator says --------------------------------------------------------

    @abstractmethod
    def _machine(self) -> Machine:
        """The estimator that is selected, with the parameters of this one."""

    @abstractmethod
    def _targets(self, check: Checker, y: Any, weights: Vector | None, m: int) -> Any:
        """What rows are trained on, (m,), of what the user gave."""

    @abstractmethod
    def _search(self, training: Training, judge: Judge, machine: Any) -> Points:
        """Score all points of the grid."""

    @abstractmethod
    def _choose(self, machine: Any, points: Points) -> None:
        """Set the attributes of the best point, in the machine too."""

    def _check_parameters(self, check: Checker) -> None:
        """Refuse parameters out of range that others do not have."""

    def _check_folds(self, judge: Judge) -> None:
        """Refuse folds that cannot be trained."""

    def _finish(self, judge: Judge, points: Points) -> None:
        """Make what the best point's decisions on held-out rows are for."""

    @property
    def _keeps_decisions(self) -> bool:
        """Whether decisions on held-out rows are wanted."""
        return False

    # -- the face ----------------------------------------------------------------------

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.pairwise = is_pairwise(self)
        return tags

    def __getattr__(self, name: str) -> Any:
        """An attribute of the machine that was fitted on all rows."""
        fitted = vars(self).get("best_estimator_")
        if fitted is None or not name.endswith("_") or name.startswith("_"):
            owner = type(self).__name__
            raise AttributeError(f"{owner!r} object has no attribute {name!r}")
        return getattr(fitted, name)

    def fit(
        self,
        X: Any,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        **params: Any,
    ) -> Self:
        """Score all points of the grid on held-out rows; train the best on all rows.

        Parameters
        ----------
        X : array, sparse matrix or Rows (m, n)
        y : array (m,) of labels or targets, as of the machine that is selected
        sample_weight : array (m,) of numbers >= 0, or None
            Counts in the training and in the scores.
        **params : ``groups`` for the splitter; with metadata routing what the splitter
            and the scorer request.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            A parameter out of range, NaN or infinity, a class that has no row in the
            training rows of a fold, a score that is NaN.
        KeyboardInterrupt
            After Ctrl-C: ``scores_`` and ``path_`` have what was finished, the rest is
            NaN, and there is no model.

        Warns
        -----
        ConvergenceWarning
            Some point does not have the gap asked for, or the time limit ended the
            search.
        """
        owner = type(self).__name__
        machine = self._machine()
        self._check(Checker(owner))
        for name in [name for name in vars(self) if name.endswith("_")]:
            delattr(self, name)
        with refused_by(owner, *self._kinds):
            machine._check()
            judge = self._judge(X, y, sample_weight, params)
            limits: list[Limits] = []
            points = self._points(machine, judge, limits)
        clock = limits[0].clock
        self._keep_points(points)
        if np.isfinite(points.means).any():
            self._choose(machine, points)
        if points.stopped is Status.INTERRUPTED:
            raise KeyboardInterrupt
        if not np.isfinite(points.means).any():
            raise ValueError(
                f"The time_limit of {self.time_limit:g} s ended the search of {owner} "
                "before one point was finished in all folds: raise it."
            )
        _tell(points, self.tol)
        self._finish(judge, points)
        if self.refit:
            if self.time_limit is not None:
                left = self.time_limit - clock.seconds()
                machine.set_params(time_limit=max(left, MOMENT))
            self.best_estimator_ = machine.fit(X, judge.y, sample_weight)
        self.seconds_ = clock.seconds()
        return self

    def predict(self, X: Any) -> NDArray[Any]:
        """Labels, or predictions, of the rows of X: (m,)."""
        return np.asarray(self._fitted().predict(X))

    def score(
        self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None
    ) -> float:
        """The score by ``scoring``."""
        params = {} if sample_weight is None else {"sample_weight": sample_weight}
        check_is_fitted(self)
        return float(self._scorer()(self, X, y, **params))

    @property
    def model_(self) -> Model:
        """What `widemargin.save_model` writes."""
        return self._fitted().model_

    def keep_training_data(self, keep: bool = True) -> Self:
        """Say whether pickles hold training rows and dual variables: see `SVC`."""
        self._fitted().keep_training_data(keep)
        return self

    def get_metadata_routing(self) -> MetadataRouter:
        """Who gets what `fit` and `score` are given: the splitter, and the scorer."""
        split = MethodMapping().add(caller="fit", callee="split")
        score = MethodMapping().add(caller="fit", callee="score")
        score.add(caller="score", callee="score")
        router = MetadataRouter(owner=self).add_self_request(self)
        return router.add(splitter=self.cv, method_mapping=split).add(
            scorer=self._scorer(), method_mapping=score
        )

    # -- parts of fit ------------------------------------------------------------------

    def _shared(self, kind: type[Machine]) -> dict[str, Any]:
        """The parameters that a machine has too."""
        names, own = kind().get_params(deep=False), self.get_params(deep=False)
        return {name: own[name] for name in names if name in own}

    def _no_points(self, shape: tuple[int, int, int]) -> Points:
        """Points of which nothing is known."""
        scores, gaps = np.full(shape, np.nan), np.full(shape, np.nan)
        return Points(scores, gaps, self._keeps_decisions)

    def _keep_points(self, points: Points) -> None:
        """Set the attributes of all points."""
        self.scores_, self.path_ = points.scores, points.gaps

    def _fitted(self) -> Machine:
        check_is_fitted(self)
        if "best_estimator_" not in vars(self):
            raise NotFittedError(
                f"This {type(self).__name__} has no model: it was fitted with "
                "refit=False, or was interrupted."
            )
        fitted: Machine = self.best_estimator_
        return fitted

    def _check(self, check: Checker) -> None:
        """Refuse parameters out of range."""
        self._check_parameters(check)
        check.choice("refit", self.refit, (True, False))
        grid(check, "Cs", self.Cs)
        if isinstance(self.scoring, list | tuple | set | dict):
            check.refuse("scoring", "a name, a callable or None", self.scoring)

    def _scorer(self) -> Any:
        if self.scoring is None:
            return get_scorer(self._score_name)
        return check_scoring(self, scoring=self.scoring)

    def _judge(self, X: Any, y: Any, sample_weight: Any, params: Any) -> Judge:
        """The folds, of rows that are read, and the scorer."""
        owner = type(self).__name__
        check = Checker(f"{owner}.fit")
        if y is None:  # in scikit-learn's words
            raise ValueError(
                f"{owner} requires y to be passed, but the target y is None."
            )
        rows = read_rows(self, X, reset=True)
        m, weights = rows.shape[0], None
        if sample_weight is not None:
            weights = labels.as_weights(check, sample_weight, m)
        y = self._targets(check, y, weights, m)
        split, score = self._routed(weights, params)
        splitter = check_cv(self.cv, y, classifier=is_classifier(self))
        data = np.zeros((len(y), 1)) if isinstance(X, Rows) else X
        folds = [_indices(pair, len(y)) for pair in splitter.split(data, y, **split)]
        _check_folds(owner, folds)
        pairwise = is_pairwise(self)
        judge = Judge(rows, y, weights, folds, self._scorer(), score, pairwise)
        self._check_folds(judge)
        return judge

    def _routed(self, sample_weight: Vector | None, params: Any) -> tuple[Any, Any]:
        """What the splitter and the scorer get."""
        weights = {} if sample_weight is None else {"sample_weight": sample_weight}
        if _routing_enabled():
            routed = process_routing(self, "fit", **weights, **params)
            return routed.splitter.split, routed.scorer.score
        if unknown := [name for name in params if name != "groups"]:
            raise ValueError(
                f"{type(self).__name__}.fit takes groups beside X, y and "
                f"sample_weight; {unknown[0]!r} needs metadata routing: "
                "sklearn.set_config(enable_metadata_routing=True)."
            )
        return params, weights

    def _points(self, machine: Any, judge: Judge, limits: list[Limits]) -> Points:
        """Search with the time that is not for the last fit."""
        found: list[Points] = []

        def plan(training: Training, *_: Vector) -> Fit:
            limits.append(training.limits)
            if self.time_limit is not None:
                training = training.limited(until=SEARCH * self.time_limit)
            found.append(self._search(training, judge, machine))
            return Fit(training, [], [])

        machine._found(judge.rows, judge.y, judge.weights, plan)
        return found[0]


# -- points that are fitted one after the other ----------------------------------------


def fit_points(
    points: Points,
    judge: Judge,
    training: Training,
    machines: Sequence[Sequence[Machine]],
) -> None:
    """Fit a machine for each point: along C each begins where the one before ended.

    ``machines`` are by gamma and rising C.
    """
    for fold in range(len(judge.folds)):
        with sharing_groups():
            _fit_fold(points, judge, training, machines, fold)
        if points.stopped:
            return


def _fit_fold(
    points: Points,
    judge: Judge,
    training: Training,
    machines: Sequence[Sequence[Machine]],
    fold: int,
) -> None:
    """Fit the machines of one fold."""
    data, test = judge.train(fold), judge.test(fold)
    for g, path in enumerate(machines):
        before: Machine | None = None
        for c, template in enumerate(path):
            machine = clone(template)
            status = _fit_after(machine, before, data, training)
            if status in (Status.INTERRUPTED, Status.TIME_LIMIT):
                points.stopped = status
                return
            keep(points, judge, (fold, g, c), machine, test)
            points.gaps[fold, g, c] = machine.dual_gap_
            before = machine


def _fit_after(
    machine: Machine, before: Machine | None, data: Any, training: Training
) -> Status:
    """Fit a machine from where another one of a smaller C ended; its status."""
    end = training.limits.end
    if end is not None:
        left = end - training.clock.seconds()
        if left <= 0.0:
            return Status.TIME_LIMIT
        machine.set_params(time_limit=left)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # told at the end
            machine._fit(*data, after(machine, before))
    except KeyboardInterrupt:
        return Status.INTERRUPTED
    return Status(machine.status_)


def after(machine: Any, before: Any) -> Callable[..., Fit]:
    """The plan that begins where a machine of another C ended, if there is one."""
    if before is None:
        first: Callable[..., Fit] = machine._plan
        return first
    factor, solutions = machine.C / before.C, before.solutions_

    def _plan(training: Training, *target: Vector) -> Fit:
        if batched(training):  # small problems are faster from zero
            fit: Fit = machine._plan(training, *target)
            return fit
        starts = [_scaled(training, k, s, factor) for k, s in enumerate(solutions)]
        return exact(dataclasses.replace(training, starts=starts))

    return _plan


def _scaled(
    training: Training, k: int, solution: Solution, factor: float
) -> StartPoint:
    """A solution with the dual variables of a larger C."""
    alpha = factor * solution.alpha
    if training.recipe.kernel is None:
        return alpha, solution.w, solution.b
    signs = training.signs(k)
    if training.recipe.q is not None:  # two rows for each sample
        signs = np.append(signs, -signs)
    return alpha, signs * alpha, solution.b


def keep(
    points: Points,
    judge: Judge,
    place: tuple[int, int, int],
    model: Any,
    test: Any,
) -> None:
    """Score a model of a point, and keep its decisions if asked."""
    points.scores[place] = judge.score(place[0], model, test)
    if points.keeps:
        points.decisions[place] = model.decision_function(test)


# -- the grid and the folds ------------------------------------------------------------


def grid(check: Checker, name: str, given: Any) -> Vector:
    """Values of C, rising: as many as a number says, or those of a list."""
    if is_integer(given):
        check.count(name, given)
        if given == 1:
            return np.ones(1)
        return np.logspace(np.log10(LEAST_C), np.log10(MOST_C), int(given))
    return np.unique(values(check, name, given))


def values(check: Checker, name: str, given: Any) -> Vector:
    """Positive numbers of a list."""
    if isinstance(given, str | Real) or given is None or np.ndim(given) != 1:
        check.refuse(name, "an int >= 1 or a list of positive numbers", given)
    for value in (found := list(given)):
        check.positive(name, value)
    if not found:
        check.refuse_part(name, "hold a number", "an empty list")
    return np.array(found, float)


def _indices(pair: Any, m: int) -> tuple[Index, Index]:
    """A split as two arrays of row numbers."""
    rows = np.arange(m)
    train, test = (rows[np.asarray(part)] if len(part) else rows[:0] for part in pair)
    return train, test


def _check_folds(owner: str, folds: list[tuple[Index, Index]]) -> None:
    """Refuse folds that cannot be judged."""
    if not folds:
        raise ValueError(f"The 'cv' parameter of {owner} must give at least one fold.")
    for fold, (_, test) in enumerate(folds):
        if len(test) == 0:
            raise ValueError(f"Fold {fold} of {owner} holds no row out.")


def _tell(points: Points, tol: float) -> None:
    """Warn where points are missing or not good enough."""
    m, said = points.gaps.size, []
    missing = int(np.isnan(points.scores).sum())
    rough = int((points.gaps > tol).sum())
    if missing:
        said.append(f"time_limit ended the search before {missing} of {m} fits")
    if rough:
        said.append(f"{rough} of {m} fits did not reach the relative gap {tol:g}")
    if said:
        text = f"{' and '.join(said)}: see path_."
        warnings.warn(text, ConvergenceWarning, stacklevel=users_level())
