"""Model selection of linear machines over Dask collections: folds stay with the rows.

A fold is a number beside each row. The rows that it trains on are copied on their
workers for that time, where a lane does not have them all; held-out rows are scored
where they are, and sums come here.
"""

import functools
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.model_selection import KFold, StratifiedKFold

from widemargin.arrays import Index, Mask
from widemargin.data.memory import as_rows
from widemargin.data.row_vector import RowVector
from widemargin.data.state import RowState
from widemargin.estimators import on_cluster
from widemargin.estimators.checks import keep_columns
from widemargin.estimators.classifier import tell_ends
from widemargin.estimators.linear_svc import LinearSVC
from widemargin.estimators.linear_svr import LinearSVR
from widemargin.estimators.points import (
    Points,
    after,
    checked_score,
    refuse_more_folds,
)
from widemargin.estimators.training import MOMENT, StartPoint, limits_of
from widemargin.models.model import Model
from widemargin.parameters import Checker
from widemargin.solution import Solution, Status
from widemargin.solvers.driver.limits import Limits
from widemargin.system.deadline import Deadline

Counts = Index

# Scores of regressions, of the sums of w, w e^2, w |e| and w (y - mean)^2, where the
# last is NaN of a single row: then that score is, too.
_SCORES: dict[str, Callable[..., float]] = {
    "r2": lambda w, e2, e1, y2: 1.0 - e2 / y2 if y2 else float(e2 == 0.0),
    "neg_mean_squared_error": lambda w, e2, e1, y2: -e2 / w,
    "neg_root_mean_squared_error": lambda w, e2, e1, y2: -np.sqrt(e2 / w),
    "neg_mean_absolute_error": lambda w, e2, e1, y2: -e1 / w,
}


# Where the binary problems of a fit were when rows were lost: see `on_cluster.fitted`.
Reached = dict[int, StartPoint]


class Ended(NamedTuple):
    """Where machines of one C ended, with the dual variables that stay there."""

    C: float
    solutions_: list[Solution]


@dataclass(frozen=True)
class There:
    """Rows of a collection, and what is beside each.

    Attributes
    ----------
    rows : Rows
    state : RowState with ``y``, the class as a number or the target; perhaps ``weight``
        and ``fold``
    classes : ndarray or None, of a regression
    data : tuple (X, y, sample_weight), as they were given
    """

    rows: Any
    state: Any
    classes: NDArray[Any] | None
    data: tuple[Any, Any, Any]

    @property
    def weight(self) -> RowVector | None:
        """Weights of the rows, if there are."""
        return self.state.weight if self.data[2] is not None else None

    @property
    def names(self) -> tuple[str, ...]:
        """The vectors that a fit needs."""
        return ("y",) if self.weight is None else ("y", "weight")

    def train(self, machine: Any, before: Ended | None, reached: Reached) -> Ended:
        """Train a machine, from where that of another C ended.

        Or from where it was when rows were lost, which is then forgotten.
        """
        found: list[Solution] = []

        def plan(training: Any, *target: Any) -> Any:
            """The fit, whose solutions are kept."""
            fit = after(machine, before)(training, *target)
            found.extend(fit.solutions)
            return fit

        there = self.rows, self.state.y, self.weight
        given = machine, limits_of(machine), self.data, there
        keep_columns(machine, self.rows)
        if self.classes is None:
            fit = on_cluster.trained_regressor(*given, plan, reached)
            machine._store(fit)
        else:
            machine.classes_ = self.classes
            fit = on_cluster.trained(*given, plan, reached)
        reached.clear()
        machine.seconds_ = fit.training.clock.seconds()
        return Ended(machine.C, found)

    def without(self, fold: int) -> "There":
        """The rows that a fold trains on, on their workers."""
        rows, state = self.rows.keep(_is_training, self.state, self.names, fold)
        return There(rows, state, self.classes, self.data)


def _is_training(part: RowState, fold: int) -> Any:
    return part.fold != fold


@contextmanager
def opened(
    machine: Any, owner: str, X: Any, y: Any, sample_weight: Any, limits: Limits
) -> Iterator[There]:
    """The rows of a collection, for machines of one kind; refused by their owner."""
    data = X, y, sample_weight
    read, _ = on_cluster.of_kind(machine)
    with read(machine, owner, limits, *data) as (rows, y, weight):
        state = rows.state(y=y, **({} if weight is None else {"weight": weight}))
        yield There(rows, state, getattr(machine, "classes_", None), data)


# -- the search ------------------------------------------------------------------------


def select(
    selected: Any,
    machine: Any,
    data: tuple[Any, Any, Any],
    params: dict[str, Any],
    share: float,
) -> None:
    """Score all points in a share of the time limit; train the best on all rows."""
    _refuse(selected, machine, params)
    limits, reached, known = limits_of(machine), Reached(), list[Points]()

    def once() -> None:
        """Score what is left, and train the best, of rows that are loaded for it."""
        with opened(machine, type(selected).__name__, *data, limits) as there:
            keep_columns(selected, there.rows)
            if there.classes is not None:
                selected.classes_ = there.classes
            # Refuses NaN and infinity: by row, not by fold.
            there.rows.check_finite()
            _search(selected, there, limits, share, known, reached)
            selected._settle(machine, known[0])
            fit = functools.partial(_trained, machine, there, reached)
            selected._refit(machine, limits.clock, fit)

    on_cluster.again(once)


def _refuse(selected: Any, machine: Any, params: dict[str, Any]) -> None:
    """Refuse what needs rows in one place."""
    owner = type(selected).__name__
    check = Checker(owner)
    if not isinstance(machine, LinearSVC | LinearSVR):
        raise TypeError(
            f"{owner} takes no Dask collection: on a cluster LinearSVCCV and "
            "LinearSVRCV select. X.compute() brings it here."
        )
    on_cluster.refuse(machine)
    if vars(selected).get("calibrate") is not None:
        expected = "None where X is on a cluster"
        check.refuse("calibrate", expected, selected.calibrate)
    if selected._scale is not None:
        raise ValueError(
            f"{owner}.scale_in_folds takes no Dask collection: scale it before."
        )
    if params:
        raise ValueError(
            f"{owner}.fit takes X, y and sample_weight where X is on a cluster. Got "
            f"{next(iter(params))!r} too."
        )


def _trained(machine: Any, there: There, reached: Reached) -> Any:
    """A machine that is trained on all rows, and tells how it ended."""
    there.train(machine, None, reached)
    tell_ends(machine.solutions_)
    return machine


def _search(
    selected: Any,
    there: There,
    limits: Limits,
    share: float,
    known: list[Points],
    reached: Reached,
) -> None:
    """Score all points with the share of the time that is not for the last fit.

    What is ``known`` before is where rows were lost; afterwards it is there.
    """
    owner, paths = type(selected).__name__, selected._paths()
    there, held = folded(there, selected.cv, owner)
    score = score_of(selected, there)
    shape = len(held), len(paths), len(paths[0])
    points: Points = known[0] if known else selected._no_points(shape)
    known[:] = [points]
    time_limit = limits.time_limit
    until = limits.clock.deadline(time_limit and share * time_limit)
    try:
        for fold, m in enumerate(held):
            left = np.isnan(points.gaps[fold])
            if points.stopped is not None or not left.any():
                continue
            part = there.without(fold)
            for place, machine in _machines(part, paths, until, left, reached):
                if Status(machine.status_).ends_fit:
                    points.stopped = Status(machine.status_)
                    return
                found = checked_score(score(fold, machine.model_), fold, m)
                points.scores[fold, *place] = found
                points.gaps[fold, *place] = machine.dual_gap_
    except KeyboardInterrupt:
        points.stopped = Status.INTERRUPTED


def _machines(
    there: There,
    paths: Sequence[Sequence[Any]],
    until: Deadline | None,
    left: Mask,
    reached: Reached,
) -> Iterator[tuple[tuple[int, int], Any]]:
    """Machines that are left of a grid, trained on some rows, with their places."""
    for g, path in enumerate(paths):
        before: Ended | None = None
        for c in np.flatnonzero(left[g]).tolist():
            machine = clone(path[c])
            if until is not None:
                machine.set_params(time_limit=max(until.left, MOMENT))
            before = there.train(machine, before, reached)
            yield (g, c), machine


def train_path(machines: Sequence[Any], X: Any, y: Any, sample_weight: Any) -> None:
    """Train machines of rising C over rows that are loaded once."""
    for machine in machines:
        machine._check()
        on_cluster.refuse(machine)
    owner, limits = type(machines[0]).__name__, limits_of(machines[0])
    left, reached = list(machines), Reached()

    def once() -> None:
        """Train what is left, on rows that are loaded for it."""
        before: Ended | None = None
        with opened(left[0], owner, X, y, sample_weight, limits) as there:
            while left:
                before = there.train(left[0], before, reached)
                tell_ends(left.pop(0).solutions_)

    on_cluster.again(once)


# -- folds -----------------------------------------------------------------------------


def folded(there: There, cv: Any, owner: str) -> tuple[There, list[int]]:
    """The rows with the number of the fold that holds each out; rows of each fold.

    The folds of `sklearn.model_selection.KFold` and `StratifiedKFold`, of the rows with
    a weight.
    """
    n_folds, stratified = _splitting(there, cv, owner)
    rows, m = there.rows, there.rows.shape[0]
    fold = np.broadcast_to(np.min_scalar_type(n_folds).type(0), m)
    own = there.state.join(rows.state(fold=fold))
    state = own.join(rows.state(place=range(m)))
    if stratified:
        assert there.classes is not None
        found = state.sweep(_class_counts, len(there.classes))
        of_classes = np.sum([own for _, own, _ in found], axis=0)
        labels = there.classes.tolist()
        known = dict(zip(labels, of_classes.tolist(), strict=True))
        refuse_more_folds(owner, n_folds, m, known)
        state.sweep(_stratify, *_in_strata(found, n_folds))
    else:
        refuse_more_folds(owner, n_folds, m)
        sizes = m // n_folds + (np.arange(n_folds) < m % n_folds)
        state.sweep(_cut, np.cumsum(sizes))
    c = 1 if there.classes is None else len(there.classes)
    counts = state.sweep(_fold_counts, n_folds, c)
    _check(there, counts, owner)
    return There(rows, own, there.classes, there.data), counts.sum(axis=1).tolist()


def _splitting(there: There, cv: Any, owner: str) -> tuple[int, bool]:
    """How many folds, and whether they are stratified."""
    stratified = there.classes is not None
    cv = 5 if cv is None else cv
    if isinstance(cv, int | np.integer) and not isinstance(cv, bool):
        cv = (StratifiedKFold if stratified else KFold)(int(cv))
    if type(cv) not in ([KFold, StratifiedKFold] if stratified else [KFold]):
        shown = "KFold or StratifiedKFold" if stratified else "KFold"
        expected = f"an int or a {shown} where X is on a cluster"
        Checker(owner).refuse("cv", expected, cv)
    if cv.shuffle:
        expected = "folds without shuffle where X is on a cluster"
        Checker(owner).refuse("cv", expected, cv)
    return cv.get_n_splits(), isinstance(cv, StratifiedKFold)


def _cut(part: RowState, ends: Counts) -> None:
    part.fold[:] = np.searchsorted(ends, part.place, side="right")


def _class_counts(part: RowState, c: int) -> list[Any]:
    """Where a block begins, its rows of each class, and the first of these."""
    start, counts = int(part.place[0]), np.bincount(part.y, minlength=c)
    there = np.flatnonzero(counts)
    first = np.full(c, np.iinfo(np.int64).max)
    first[there] = [start + int(np.argmax(part.y == k)) for k in there]
    return [(start, counts, first)]


def _in_strata(found: list[Any], n_folds: int) -> tuple[Counts, Counts, Counts]:
    """Where blocks begin, rows of each class before each, and ends of the folds.

    A class is cut into folds (folds,) of rows that follow each other. Their sizes are
    those of classes, in the order of their first rows, that are dealt out by turns.
    """
    starts = np.array([start for start, _, _ in found])
    counts = np.array([own for _, own, _ in found])
    order = np.argsort(np.min([first for _, _, first in found], axis=0))
    ends = np.cumsum(counts.sum(axis=0)[order])
    dealt = (ends[:, np.newaxis] - np.arange(n_folds) + n_folds - 1) // n_folds
    sizes = np.empty_like(dealt)
    sizes[order] = np.diff(dealt, axis=0, prepend=0)
    return starts, np.cumsum(counts, axis=0) - counts, np.cumsum(sizes, axis=1)


def _stratify(part: RowState, starts: Counts, before: Counts, ends: Counts) -> None:
    block = np.searchsorted(starts, part.place[0])
    for k, known in enumerate(before[block]):
        own = np.flatnonzero(part.y == k)
        rank = known + np.arange(len(own))
        part.fold[own] = np.searchsorted(ends[k], rank, side="right")


def _fold_counts(part: RowState, n_folds: int, c: int) -> Counts:
    """Rows by fold and class."""
    place = part.fold if c == 1 else c * part.fold.astype(np.intp) + part.y
    return np.bincount(place, minlength=n_folds * c).reshape(n_folds, c)


def _check(there: There, counts: Counts, owner: str) -> None:
    """Refuse folds that cannot be trained, or judged."""
    for fold, own in enumerate(counts):
        if not own.any():
            raise ValueError(f"Fold {fold} of {owner} holds no row out.")
        missing = np.flatnonzero(counts.sum(axis=0) == own)
        if there.classes is not None and len(missing):
            raise ValueError(
                f"The training rows of each fold of {owner} must hold all classes. "
                f"Got no row of class {there.classes[missing[0]]!s} in fold {fold}."
            )


# -- scores ----------------------------------------------------------------------------


class _Said(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Stands for a model whose labels are known."""

    def __init__(self, classes: NDArray[Any], labels: NDArray[Any]) -> None:
        self.classes_, self.labels = classes, labels

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def predict(self, X: Any) -> NDArray[Any]:
        """The labels."""
        return self.labels


def score_of(selected: Any, there: There) -> Callable[[int, Model], float]:
    """What scores the model of a fold on the rows that it holds out."""
    check, scoring = Checker(type(selected).__name__), selected.scoring
    if there.classes is None:
        if scoring not in (None, *_SCORES):
            expected = f"None or one of {', '.join(map(repr, _SCORES))} where X is on"
            check.refuse("scoring", f"{expected} a cluster", scoring)
        formula = _SCORES[scoring or "r2"]
        return lambda fold, model: formula(*_errors(there, fold, model))
    if not (scoring is None or isinstance(scoring, str)):
        check.refuse("scoring", "a name or None where X is on a cluster", scoring)
    classes, scorer = there.classes, selected._scorer()
    c = len(classes)

    def score(fold: int, model: Model | None) -> float:
        """The score of a fold; without a model of nothing."""
        mass = np.ones((c, c))
        if model is not None:
            mass = there.rows.sweep(_confusion, there.state, fold, model, there.names)
        right, said = np.nonzero(mass)
        stub, X = _Said(classes, classes[said]), np.zeros((len(right), 1))
        weights = mass[right, said]
        return float(scorer(stub, X, classes[right], sample_weight=weights))

    try:
        score(0, None)
    except (AttributeError, TypeError):
        expected = "a score of labels, as 'balanced_accuracy', where X is on a cluster"
        check.refuse("scoring", expected, scoring)
    return score


def _held_out(
    part: RowState, fold: int, names: Sequence[str]
) -> tuple[Counts, Any, Any]:
    """Which rows a fold holds out, their classes or targets, and their weights."""
    own = np.flatnonzero(part.fold == fold)
    weight = part.weight[own] if "weight" in names else np.ones(len(own))
    return own, part.y[own], weight


def _confusion(
    block: Any, part: RowState, fold: int, model: Model, names: Sequence[str]
) -> Any:
    """Weight of the rows by class and by what a model says: (c, c)."""
    own, y, weight = _held_out(part, fold, names)
    if not own.size:
        return None
    c = len(model.classes)
    said = np.searchsorted(model.classes, model.labels(as_rows(block[own], n_jobs=1)))
    return np.bincount(c * y.astype(np.intp) + said, weight, c * c).reshape(c, c)


def _errors(there: There, fold: int, model: Model) -> tuple[float, ...]:
    """Sums of w, w e^2, w |e| and w (y - mean)^2 of the rows that a fold holds out."""
    given = there.state, fold
    n_rows, w, wy, *errors = there.rows.sweep(_error_sums, *given, model, there.names)
    variance = there.state.sweep(_squares, fold, wy / w, there.names)
    return w, *errors, float(variance) if n_rows > 1 else np.nan


def _error_sums(
    block: Any, part: RowState, fold: int, model: Model, names: Sequence[str]
) -> Any:
    own, y, weight = _held_out(part, fold, names)
    if not own.size:
        return None
    e = y - model.scores(as_rows(block[own], n_jobs=1))
    return len(own), weight.sum(), weight @ y, weight @ (e * e), weight @ np.abs(e)


def _squares(part: RowState, fold: int, mean: float, names: Sequence[str]) -> Any:
    _, y, weight = _held_out(part, fold, names)
    return float(weight @ (y - mean) ** 2)
