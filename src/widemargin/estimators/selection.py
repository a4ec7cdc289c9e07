"""Model selection: one value of C and of gamma for all, by scores on held-out rows."""

import re
import warnings
from abc import abstractmethod
from collections.abc import Callable, Sequence
from numbers import Real
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.metrics import check_scoring, get_scorer, get_scorer_names
from sklearn.utils.metadata_routing import (
    MetadataRouter,
    MethodMapping,
    _routing_enabled,
    process_routing,
)
from sklearn.utils.validation import check_is_fitted

from widemargin.arrays import Index, Vector
from widemargin.data.distributed import is_collection
from widemargin.data.rows import Rows
from widemargin.estimators import labels
from widemargin.estimators.checks import is_pairwise, read_rows, users_level
from widemargin.estimators.foreign import OF_SEARCHES, AdvisingMixin
from widemargin.estimators.plans import Fit
from widemargin.estimators.points import (
    Judge,
    Machine,
    Points,
    check_folds,
    check_held_out,
    cut,
    fit_points,
    indices_of,
    share_right,
    splitter_of,
)
from widemargin.estimators.training import (
    Training,
)
from widemargin.features.scaling import SCALES
from widemargin.models.model import Model
from widemargin.parameters import Checker, is_integer, meant, refused_by
from widemargin.solution import Status
from widemargin.solvers.driver.limits import Clock, Limits

# The ends of the grid that a number of values of C stands for.
LEAST_C, MOST_C = 1e-2, 1e3
# The share of a time limit that belongs to the folds; the rest is for the last fit. Of
# one point in five folds, four fifths of the rows each, the last fit is a fifth of all.
SEARCH = 0.8

# Scorers of scikit-learn whose scores have no bound: those of others are at most 1, and
# at most 0 where their names begin with "neg_".
_UNBOUNDED = ("mutual_info_score", "positive_likelihood_ratio")

# What may stand in the place of a number of values.
_LIST = "a list of floats in the range (0, inf)"

# Attributes of scikit-learn's searches, and what has the same here.
_INSTEAD = {
    "best_index_": "scores_.mean(axis=0).argmax() gives it",
    "best_params_": "get_params() of best_estimator_ gives them",
    "cv_results_": "scores_ has the score of each fold and point, path_ its gap",
}


class Selected(AdvisingMixin, BaseEstimator):  # type: ignore[misc]
    """Base: a machine with the C, and the gamma, that does best on held-out rows."""

    # The score where ``scoring`` is None.
    _score_name: ClassVar[str]
    _advice_too: ClassVar[dict[str, str]] = OF_SEARCHES
    # Names of machines whose errors are said in the name of this estimator.
    _kinds: ClassVar[tuple[str, ...]]
    _scale: str | None = None

    # -- what an estimator says --------------------------------------------------------

    @abstractmethod
    def _machine(self) -> Machine:
        """The estimator that is selected, with the parameters of this one."""

    @abstractmethod
    def _targets(self, check: Checker, y: Any, weights: Vector | None, m: int) -> Any:
        """What rows are trained on, (m,), of what the user gave."""

    def _paths(self) -> Sequence[Sequence[Machine]]:
        """Machines of rising C for each other parameter; sets what the grid is."""
        raise NotImplementedError

    def _search(self, training: Training, judge: Judge, machine: Any) -> Points:
        """Score all points of the grid: machine by machine, if there is no more."""
        paths = self._paths()
        points = self._no_points((len(judge.folds), len(paths), len(paths[0])))
        fit_points(points, judge, training, paths)
        return points

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
        if hasattr(type(self), name):
            return object.__getattribute__(self, name)  # says why it is not there
        fitted = vars(self).get("best_estimator_")
        owner = type(self).__name__
        said = f"{owner!r} object has no attribute {name!r}"
        if name in _INSTEAD:
            said += f": {_INSTEAD[name]}."
        elif fitted is not None and name.endswith("_") and not name.startswith("_"):
            try:
                return getattr(fitted, name)
            except AttributeError as error:  # says why it is not there
                said = re.sub(rf"\b{type(fitted).__name__}\b", owner, str(error))
        raise AttributeError(said)

    def __dir__(self) -> list[str]:
        """Its own attributes, and those of the machine that was fitted on all rows."""
        fitted = dir(vars(self).get("best_estimator_"))
        public = [x for x in fitted if x.endswith("_") and not x.startswith("_")]
        return [*{*super().__dir__(), *public}]

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
            NaN, and there is no model. It says how much there is.

        Warns
        -----
        ConvergenceWarning
            Some point does not have the gap asked for, or the time limit ended the
            search.
        """
        try:
            self._fit(X, y, sample_weight, params)
        except KeyboardInterrupt:  # also that of the last fit, which speaks of a model
            raise KeyboardInterrupt(self._left()) from None
        return self

    def _fit(self, X: Any, y: Any, sample_weight: Any, params: Any) -> None:
        """Search, and train the best."""
        owner = type(self).__name__
        machine = self._machine()
        self._check(Checker(owner))
        for name in [name for name in vars(self) if name.endswith("_")]:
            delattr(self, name)
        data = X, y, sample_weight
        if is_collection(X):
            from widemargin.estimators import selection_on_cluster

            with refused_by(owner, *self._kinds):
                machine._check()
                selection_on_cluster.select(self, machine, data, params, SEARCH)
            return
        with refused_by(owner, *self._kinds):
            machine._check()
            judge = self._judge(*data, params)
            limits: list[Limits] = []
            with labels.named():
                points = self._points(machine, judge, limits)
        self._settle(machine, points)
        self._finish(judge, points)
        given = X, judge.y, sample_weight
        with labels.named():
            self._refit(machine, limits[0].clock, lambda: machine.fit(*given))

    def _left(self) -> str:
        """What there is after Ctrl-C."""
        ended, known = f"Ctrl-C ended the fit of {type(self).__name__}", vars(self)
        if "scores_" not in known:
            return f"{ended} before it had a score: there is no model."
        done = int(np.isfinite(self.scores_).sum())
        best = ", C_ is the best that all folds have," if "C_" in known else ""
        return (
            f"{ended}: scores_ and path_ have {done} of {self.scores_.size} fits{best} "
            "and there is no model. Call fit again, which starts afresh."
        )

    def _settle(self, machine: Machine, points: Points) -> None:
        """Set what is known of all points, and the best one, in the machine too."""
        owner = type(self).__name__
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

    def _refit(self, machine: Any, clock: Clock, fit: Callable[[], Machine]) -> None:
        """Train the best machine on all rows, with the time that is left.

        A fifth of all at least: certificates and scores may have taken longer than the
        folds were to take, and a machine that is not trained is of no use.
        """
        if self.refit:
            if self.time_limit is not None:
                left = self.time_limit - clock.seconds()
                least = (1.0 - SEARCH) * self.time_limit
                machine.set_params(time_limit=max(left, least))
            self.best_estimator_ = fit()
        self.seconds_ = clock.seconds()

    def predict(self, X: Any) -> NDArray[Any]:
        """Labels, or predictions, of the rows of X: (m,)."""
        found: NDArray[Any] = self._of_fitted("predict", X)
        return found

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

    def scale_in_folds(self, scale: str | None = "standard") -> Self:
        """Say whether folds scale the columns anew, by their own training rows.

        Parameters
        ----------
        scale : {"standard", "minmax", "maxabs"} or None, default="standard"
            As of ``widemargin train --scale``. The machine that is fitted on all rows
            takes them as they come: scale them before. Folds are then trained one after
            the other. A clone of the estimator does the same.

        Returns
        -------
        self
        """
        Checker(type(self).__name__).choice("scale", scale, (None, *SCALES))
        self._scale = scale
        return self

    def __sklearn_clone__(self) -> Self:
        """An unfitted copy, of the same parameters and with the same scaling."""
        other: Self = super().__sklearn_clone__()
        other._scale = self._scale
        return other

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
        return Points(scores, gaps, self._keeps_decisions, self._most())

    def _most(self) -> float | None:
        """The largest score there is, where points that cannot win are left out."""
        if not getattr(self, "skip_losers", False):
            return None
        name = self._score_name if self.scoring is None else self.scoring
        if not isinstance(name, str) or name in _UNBOUNDED:
            owner = type(self).__name__
            raise ValueError(
                f"The 'skip_losers' parameter of {owner} must be False where no "
                "largest score is known: with scores of a callable, and with "
                f"{' and '.join(map(repr, _UNBOUNDED))}. Got scoring={self.scoring!r}."
            )
        return 0.0 if name.startswith("neg_") else 1.0

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

    def _of_fitted(self, method: str, X: Any) -> Any:
        """What the machine says of rows; its errors are in this estimator's name."""
        fitted = self._fitted()
        if "feature_names_in_" in vars(self) and not is_collection(X):
            X = read_rows(self, X)  # which warns in the name of this estimator
        try:
            return getattr(fitted, method)(X)
        except (TypeError, ValueError) as error:
            inner, owner = type(fitted).__name__, type(self).__name__
            said = re.sub(rf"\b{inner}\b", owner, str(error))
            if said == str(error):
                raise
            raise type(error)(said) from None

    def _check(self, check: Checker) -> None:
        """Refuse parameters out of range."""
        self._check_parameters(check)
        check.choice("refit", self.refit, (True, False))
        grid(check, "Cs", self.Cs)
        if isinstance(self.scoring, list | tuple | set | dict):
            check.refuse("scoring", "a name, a callable or None", self.scoring)
        names = get_scorer_names()
        if isinstance(self.scoring, str) and self.scoring not in names:
            near = meant(self.scoring, names)
            hint = f" (did you mean {near!r}?)" if near else ""
            known = "be a name of sklearn.metrics.get_scorer_names()"
            check.refuse_part("scoring", known, f"{self.scoring!r}{hint}")
        self._most()

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
        if rows.is_in_memory:
            rows.check_finite()  # names the row of the data, not of a fold
        m, weights = rows.shape[0], None
        if sample_weight is not None:
            weights = labels.as_weights(check, sample_weight, m)
        y = self._targets(check, y, weights, m)
        split, score = self._routed(weights, params)
        folds = self._folds(X, y, weights, split)
        check_folds(owner, folds)
        check_held_out(owner, folds, score.get("sample_weight"))
        pairwise = is_pairwise(self)
        if pairwise and self._scale is not None:
            raise ValueError(
                f"{owner}.scale_in_folds scales columns of X. Got kernel='precomputed',"
                " which has kernel values in their place."
            )
        scorer, scale = self._scorer(), self._scale
        if self._score_name == "accuracy" and self.scoring in (None, "accuracy"):
            scorer = share_right
        judge = Judge(rows, y, weights, folds, scorer, score, pairwise, scale)
        self._check_folds(judge)
        return judge

    def _folds(
        self, X: Any, y: Any, weights: Vector | None, split: Any
    ) -> list[tuple[Index, Index]]:
        """Rows that each fold trains on and holds out; our own of those with a weight.

        A splitter of the user's knows all rows.
        """
        m, is_own = len(y), self.cv is None or is_integer(self.cv)
        known = np.arange(m)
        if is_own and weights is not None:
            known = known[weights > 0.0]
            y, split = y[known], cut(split, known, m)
        data = np.zeros((len(y), 1)) if is_own or isinstance(X, Rows) else X
        pairs = splitter_of(self, y).split(data, y, **split)
        found = [indices_of(pair, len(y), type(self).__name__) for pair in pairs]
        return [(known[train], known[test]) for train, test in found]

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


# -- the grid and the folds ------------------------------------------------------------


def grid(check: Checker, name: str, given: Any) -> Vector:
    """Values of C, rising: as many as a number says, or those of a list."""
    if is_integer(given):
        check.count(name, given, f", or {_LIST}")
        if given == 1:
            return np.ones(1)
        return np.logspace(np.log10(LEAST_C), np.log10(MOST_C), int(given))
    return np.unique(values(check, name, given))


def values(check: Checker, name: str, given: Any) -> Vector:
    """Positive numbers of a list."""
    if isinstance(given, str | Real) or given is None or np.ndim(given) != 1:
        check.refuse(name, "an int >= 1 or a list of positive numbers", given)
    for value in (found := list(given)):
        check.positive(name, value, _LIST)
    if not found:
        check.refuse_part(name, "hold a number", "an empty list")
    return np.array(found, float)


def _tell(points: Points, tol: float) -> None:
    """Warn where points are missing or not good enough."""
    m, missing, said = points.gaps.size, points.missing, []
    rough = int((points.gaps > tol).sum())
    if missing:
        said.append(f"time_limit ended the search before {missing} of {m} fits")
    if rough:
        said.append(f"{rough} of {m} fits did not reach the relative gap {tol:g}")
    if said:
        text = f"{' and '.join(said)}: see path_."
        warnings.warn(text, ConvergenceWarning, stacklevel=users_level())
