"""Points of a grid: what is known of them, what scores them, and their fits."""

import dataclasses
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone, is_classifier
from sklearn.model_selection import StratifiedKFold, check_cv

from widemargin.arrays import Index, Mask, Vector
from widemargin.data.rows import Rows
from widemargin.estimators.batch_problems import form
from widemargin.estimators.classifier import Classifier
from widemargin.estimators.engine_choice import batched
from widemargin.estimators.multiclass import rows_of
from widemargin.estimators.plans import Fit, exact
from widemargin.estimators.regressor import Regressor
from widemargin.estimators.training import (
    StartPoint,
    Training,
)
from widemargin.features.scaling import Scaling, learned
from widemargin.parameters import Checker, is_integer
from widemargin.problems.conditioning import sharing_groups
from widemargin.solution import Solution, Status

Machine = Classifier | Regressor

# The share of the folds of a gamma that are fitted first, where points that cannot win
# are left out: two of five, which keep two threads busy. No other was tried; with it
# pendigits takes 0.7 of the time (benchmarks.kernel.cross_validation).
SOME_FOLDS = 0.4
# Scores so near are equal: sums in another order differ by rounding.
TIE = 1e-12
# How points are compared by probabilities, which the models of folds do not have.
_BY_PROBABILITIES = (
    "give GridSearchCV of scikit-learn the scoring, a search with calibrate='sigmoid' "
    "and no scoring, and {'Cs': [[0.1], [1.0]]}"
)


@dataclass
class Points:
    """What is known of the points of a grid; what was not finished is NaN.

    Attributes
    ----------
    scores, gaps : ndarray (folds, gammas, C)
    keeps : bool, whether decision values are wanted
    most : float or None
        The largest score there is, where points that cannot win are left out.
    decisions : dict of ndarray, decision values of held-out rows by point; kept on
        request
    stopped : Status or None, what ended the search early
    """

    scores: Vector
    gaps: Vector
    keeps: bool
    most: float | None = None
    decisions: dict[tuple[int, int, int], Vector] = field(default_factory=dict)
    stopped: Status | None = None

    @property
    def means(self) -> Vector:
        """Mean scores of the points that are finished in all folds, else NaN."""
        return np.asarray(self.scores.mean(axis=0))

    @property
    def may_win(self) -> Mask:
        """Which points may be the best: all that no other one is sure to beat.

        Those that are left out have a mean score below that of a finished point even if
        they have the largest score there is in the folds that are left: (gammas, C).
        """
        means = self.means
        if self.most is None or not np.isfinite(means).any():
            return np.ones(means.shape, np.bool_)
        top = np.nanmax(means)
        highest = np.where(np.isnan(self.scores), self.most, self.scores).mean(axis=0)
        return np.asarray(highest >= top - TIE * max(1.0, abs(top)))

    @property
    def missing(self) -> int:
        """How many fits are missing of the points that may win."""
        return int((np.isnan(self.scores) & self.may_win).sum())

    def schedule(self, widths: int = 1) -> Iterator[tuple[list[int], list[int]]]:
        """Folds and gammas that are fitted one after the other.

        All at once, unless points that cannot win are left out: then the gamma in the
        middle first, as those at the ends of a grid win least, and of each other one
        some folds, if these would have shown of points before that they do not win.

        Parameters
        ----------
        widths : int, places of each gamma: those of a regression, by its tube

        Yields
        ------
        folds, gammas : lists of int
        """
        n_folds, n_gammas = len(self.scores), self.scores.shape[1] // widths
        folds, gammas = list(range(n_folds)), list(range(n_gammas))
        if self.most is None:
            yield folds, gammas
            return
        first, *others = sorted(gammas, key=lambda g: abs(g - n_gammas // 2))
        yield folds, [first]
        some = max(1, int(SOME_FOLDS * n_folds))
        for g in others:
            if self._tells(some):
                yield folds[:some], [g]
                yield folds[some:], [g]
            else:
                yield folds, [g]

    def _tells(self, some: int) -> bool:
        """Whether the first folds would have shown of a point that it cannot win."""
        early = Points(self.scores.copy(), self.gaps, False, self.most)
        done = np.isfinite(self.means)
        best = np.unravel_index(np.nanargmax(self.means), done.shape)
        done[best] = False
        early.scores[some:, done] = np.nan
        return not bool(early.may_win.all())

    def by_gamma(
        self, widths: int = 1
    ) -> Iterator[tuple[list[int], int, Index, Index]]:
        """The points of one gamma after the other, while it has one that may win.

        Yields
        ------
        folds : list of int
        gamma : int
        own, places : int ndarray
            Of its places, and of those of C, the ones with a point that may win.
        """
        for folds, gammas in self.schedule(widths):
            for g in gammas:
                own = np.arange(g * widths, (g + 1) * widths)
                chosen = self.may_win[own]
                if folds and chosen.any():
                    own = own[chosen.any(axis=1)]
                    yield folds, g, own, np.flatnonzero(chosen.any(axis=0))

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
    scale : str or None, how columns are scaled within each fold (`learned`)
    """

    rows: Rows
    y: NDArray[Any]
    weights: Vector | None
    folds: list[tuple[Index, Index]]
    scorer: Callable[..., float]
    params: dict[str, Any]
    is_pairwise: bool
    scale: str | None = None

    @property
    def counts_labels(self) -> bool:
        """Whether the score is the share of right labels, of rows of equal weight."""
        return self.scorer is share_right and not self.params

    @property
    def factors(self) -> Vector:
        """Factors of C of all rows in each fold, zero where it holds them out."""
        out = np.zeros((len(self.folds), len(self.y)))
        for weights, (train, _) in zip(out, self.folds, strict=True):
            np.add.at(weights, train, 1.0)
            if self.weights is not None:
                weights *= self.weights
        return out

    def scaling(self, fold: int) -> Scaling | None:
        """How a fold scales the columns, by its own rows; None: not at all."""
        if self.scale is None:
            return None
        return learned(rows_of(self.rows, self.folds[fold][0], False), self.scale)

    def train(
        self, fold: int, scaling: Scaling | None = None
    ) -> tuple[Rows, NDArray[Any], Vector | None]:
        """X, y and weights that a fold is trained on."""
        some = self.folds[fold][0]
        weights = None if self.weights is None else self.weights[some]
        rows = rows_of(self.rows, some, self.is_pairwise)
        if scaling is not None:
            rows = scaling.applied(rows)
        return rows, self.y[some], weights

    def test(self, fold: int, scaling: Scaling | None = None) -> Any:
        """The rows that it holds out, as a matrix where they are in memory."""
        train, test = self.folds[fold]
        if not self.rows.is_in_memory:
            rows = rows_of(self.rows, test, False)
            return rows if scaling is None else scaling.applied(rows)
        X = self.rows.take(test)
        if scaling is not None:
            return scaling.map(X)
        return X[:, train] if self.is_pairwise else X

    def score(self, fold: int, model: Any, X: Any) -> float:
        """The score of a model of this fold on the rows X that it holds out."""
        test = self.folds[fold][1]
        params = cut(self.params, test, len(self.y))
        try:
            found = self.scorer(model, X, self.y[test], **params)
        except AttributeError as error:
            if (said := _asked_too_much(error, model)) is None:
                raise
            raise ValueError(said) from None
        except ValueError as error:  # scikit-learn's speaks of the scorer's parameters
            raise ValueError(self._unsuited(error, model, fold)) from error
        if not isinstance(found, Real):
            raise ValueError(
                f"The 'scoring' parameter must give one number. Got {found!r} instead."
            )
        return checked_score(found, fold, len(test))

    def _unsuited(self, error: ValueError, model: Any, fold: int) -> str:
        """What to say of a scorer that does not take the rows that a fold holds out."""
        test, of, hint = self.folds[fold][1], "", ""
        if hasattr(model, "decision_function"):
            c = len(np.unique(self.y))
            of = f" of {c} classes"
            if c > 2:
                hint = " 'balanced_accuracy' and 'f1_macro' take any number of classes."
                if "multi_class" in str(error):  # what 'roc_auc' says
                    hint += f" 'roc_auc_ovr' is of probabilities: {_BY_PROBABILITIES}."
        return (
            "The 'scoring' parameter must suit the data. Its scorer says of fold "
            f"{fold} ({len(test):,} rows{of}): {str(error).rstrip('.')}.{hint}"
        )


def _asked_too_much(error: AttributeError, model: Any) -> str | None:
    """What to say to a scorer that looked for what models of folds have not."""
    if error.obj is model and error.name:
        name = error.name
    elif " has none of the following attributes: " in str(error):  # scikit-learn's
        name = str(error).rpartition(": ")[2].rstrip(".")
    else:
        return None
    methods = [x for x in ("predict", "decision_function") if hasattr(model, x)]
    hint = ""
    if name.endswith("_proba") and is_classifier(model):
        hint = f" For scores of probabilities {_BY_PROBABILITIES}."
    return (
        f"The 'scoring' parameter asks the model of a fold for {name}, which it does "
        f"not have: it may ask for {' and '.join(methods)}.{hint}"
    )


def checked_score(score: Any, fold: int, held_out: int) -> float:
    """The score of a fold that holds so many rows out."""
    if np.isnan(score):
        raise ValueError(
            f"The score of fold {fold} is NaN. It holds {held_out:,} "
            f"row{'s' * (held_out != 1)} out: "
            "give fewer folds, or another scoring."
        )
    return float(score)


def share_right(
    model: Any, X: Any, y: NDArray[Any], sample_weight: Vector | None = None
) -> float:
    """`accuracy_score` of scikit-learn, whose checks take 2 ms for 1,000 rows."""
    return float(np.average(model.predict(X) == y, weights=sample_weight))


def cut(params: Mapping[str, Any], some: Index, m: int) -> dict[str, Any]:
    """Parameters, of which arrays of a number for each of m rows are cut to some."""
    return {
        name: np.asarray(value)[some] if _n_rows(value) == m else value
        for name, value in params.items()
    }


def _n_rows(value: Any) -> int | None:
    """The length of what has one."""
    return len(value) if hasattr(value, "__len__") else None


def fit_points(
    points: Points,
    judge: Judge,
    training: Training,
    machines: Sequence[Sequence[Machine]],
) -> None:
    """Fit a machine for each point: along C each begins where the one before ended.

    ``machines`` are by gamma and rising C.
    """
    for folds, gammas in points.schedule():
        for fold in folds:
            with sharing_groups():
                paths = {g: machines[g] for g in gammas if points.may_win[g].any()}
                _fit_fold(points, judge, training, paths, fold)
            if points.stopped:
                return


def _fit_fold(
    points: Points,
    judge: Judge,
    training: Training,
    machines: Mapping[int, Sequence[Machine]],
    fold: int,
) -> None:
    """Fit the machines of one fold, by gamma."""
    if not machines:
        return
    scaling = judge.scaling(fold)
    data, test = judge.train(fold, scaling), judge.test(fold, scaling)
    for g, path in machines.items():
        before: Machine | None = None
        for c in np.flatnonzero(points.may_win[g]).tolist():
            machine = clone(path[c])
            status = _fit_after(machine, before, data, training)
            if status.ends_fit:
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
            warnings.simplefilter("ignore", UserWarning)  # told by the search
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
        starts = [scaled(training, k, s, factor) for k, s in enumerate(solutions)]
        return exact(dataclasses.replace(training, starts=starts))

    return _plan


def scaled(training: Training, k: int, solution: Solution, factor: float) -> StartPoint:
    """A solution with the dual variables of a larger C.

    Of the squared loss w says them.
    """
    if training.recipe.kernel is None:
        loss, intercept = form(training)
        says = not (loss.is_bounded or intercept == "free")
        alpha = None if says else factor * solution.alpha
        return alpha, solution.w, solution.b
    alpha = factor * solution.alpha
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


def refuse_more_folds(
    owner: str,
    n_folds: int,
    n_samples: int,
    class_counts: Mapping[Any, int] | None = None,
) -> None:
    """Refuse more folds than rows, or than rows of a class that goes to all folds."""
    most, what = n_samples, f"the number of rows (n_samples={n_samples})"
    hint = " A search needs two rows or more." * (most < 2)
    if class_counts is not None:
        most, what = max(class_counts.values()), "the rows of the largest class"
        hint = ""
    if n_folds <= most:
        return
    for label, count in (class_counts or {}).items():
        if count < 2:
            raise ValueError(
                "A search for C needs two rows or more of each class. Got one of class "
                f"{label!s}."
            )
    Checker(owner).refuse_part("cv", f"be at most {most}, {what}", f"{n_folds}", hint)


def splitter_of(search: Any, y: NDArray[Any]) -> Any:
    """What makes the folds; refuses a number of them that the rows do not allow."""
    splitter = check_cv(search.cv, y, classifier=is_classifier(search))
    if is_integer(search.cv):
        counts = None
        if isinstance(splitter, StratifiedKFold):
            found = np.unique(y, return_counts=True)
            counts = dict(zip(*(part.tolist() for part in found), strict=True))
        refuse_more_folds(type(search).__name__, search.cv, len(y), counts)
    return splitter


def indices_of(pair: Any, m: int, owner: str) -> tuple[Index, Index]:
    """A split as two arrays of row numbers."""
    train, test = (_rows_of_part(part, m, owner) for part in pair)
    return train, test


def _rows_of_part(part: Any, m: int, owner: str) -> Index:
    """Row numbers of one part of a split, which may be a mask."""
    rows, part = np.arange(m), np.asarray(part)
    if not len(part):
        return rows[:0]
    got = f"numbers of dtype {part.dtype}"
    if part.dtype.kind == "b":
        got = f"a mask of {len(part):,}"
    elif part.dtype.kind in "iu":
        got = f"{part[np.argmax((part < -m) | (part >= m))]}"
    try:
        return np.asarray(rows[part])
    except IndexError:
        expected = f"give row numbers below {m}, or masks of {m:,} rows"
        Checker(owner).refuse_part("cv", expected, got)


def check_held_out(
    owner: str, folds: list[tuple[Index, Index]], weights: Vector | None
) -> None:
    """Refuse a fold that no score can be computed of, as its rows weigh nothing."""
    for fold, (_, test) in enumerate(folds):
        if weights is not None and not np.any(weights[test]):
            raise ValueError(
                f"The rows that each fold of {owner} holds out must have a positive "
                f"weight in one of them. Got none in fold {fold}: leave out rows of "
                "weight 0, or shuffle the rows (cv=KFold(5, shuffle=True))."
            )


def check_folds(owner: str, folds: list[tuple[Index, Index]]) -> None:
    """Refuse folds that cannot be judged."""
    if not folds:
        raise ValueError(f"The 'cv' parameter of {owner} must give at least one fold.")
    for fold, (_, test) in enumerate(folds):
        if len(test) == 0:
            raise ValueError(f"Fold {fold} of {owner} holds no row out.")
