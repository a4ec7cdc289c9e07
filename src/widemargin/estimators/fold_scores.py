"""Scores of the machines of all folds and all C, by their decisions."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from widemargin.arrays import Index, Vector
from widemargin.estimators import labels
from widemargin.estimators.folds import (
    Folds,
)
from widemargin.estimators.linear_folds import LinearFolds
from widemargin.estimators.points import Judge, Points, keep
from widemargin.estimators.selected_classifier import HeldOut
from widemargin.estimators.selected_regressor import HeldOutTargets
from widemargin.models.decisions import Decision
from widemargin.models.model import Model
from widemargin.models.votes import by_class


def judge_folds(
    points: Points,
    judge: Judge,
    found: Folds | LinearFolds,
    at: tuple[Sequence[int] | Index, int, Index],
    deciding: dict[str, Any],
) -> None:
    """Score the points of one kernel that are finished: some folds, and values of C."""
    t, (folds, g, places) = found.gaps.shape[1], at
    classes = labels.distinct(judge.y, judge.weights)
    nothing = Decision(np.zeros(judge.rows.shape[1]), 0.0)
    # It decides by given scores only.
    model = Model(classes, decisions=(nothing,) * t, **deciding)
    done = np.asarray(found.ended.all(axis=1))
    gaps = np.where(done, found.gaps.max(axis=1), np.nan)
    points.gaps[np.array(folds)[:, np.newaxis], g, places] = gaps
    for own, fold in enumerate(folds):
        if not done[own].any():
            continue
        _, test = judge.folds[fold]
        if judge.counts_labels and not points.keeps:
            shares = _shares_right(found, own, test, model, judge.y)
            points.scores[fold, g, places[done[own]]] = shares[done[own]]
            continue
        decisions, X = found.decisions(own, test), judge.test(fold)
        for k in np.flatnonzero(done[own]):
            held = HeldOut(model, _scores(model, decisions[k]))
            keep(points, judge, (fold, g, int(places[k])), held, X)
    points.stopped = found.stopped


def judge_targets(
    points: Points,
    judge: Judge,
    found: Folds | LinearFolds,
    at: tuple[Sequence[int], Index, Index],
) -> None:
    """Score the points of regressions: some folds, values of epsilon, and of C."""
    folds, own, places = at
    points.gaps[np.ix_(np.array(folds), own, places)] = np.where(
        found.ended, found.gaps, np.nan
    )
    for k, fold in enumerate(folds):
        if not found.ended[k].any():
            continue
        decisions = found.decisions(k, judge.folds[fold][1])
        X = judge.test(fold)
        for e, c in np.argwhere(found.ended[k]).tolist():
            held = HeldOutTargets(np.ascontiguousarray(decisions[c, :, e]))
            keep(points, judge, (fold, int(own[e]), int(places[c])), held, X)
    points.stopped = found.stopped


def _shares_right(
    found: Folds | LinearFolds, fold: int, test: Index, model: Model, y: NDArray[Any]
) -> Vector:
    """The share of rows held out that get their own label: (C,).

    Of most of them the scores in float32 tell the label. Those of others are made anew.
    """
    right, is_known = found.known(fold, test)
    # Most are open at the first C only.
    wanted = np.max(~is_known * np.arange(1, 1 + is_known.shape[1]), axis=1)
    others = np.argsort(-wanted, kind="stable")[: np.count_nonzero(wanted)]
    rows = test[others]
    decisions = found.decisions(fold, rows, wanted[others])
    for k in range(wanted.max()):
        some = slice(0, np.count_nonzero(wanted > k))
        labels_found = model.decide(_scores(model, decisions[k, some]))
        right[others[some], k] = labels_found == y[rows[some]]
    return np.asarray(right.mean(axis=0))


def _scores(model: Model, decisions: NDArray[Any]) -> Vector:
    """Decision values of problems (m, problems) as `Model.scores` has them."""
    decisions = np.ascontiguousarray(decisions)
    if model.scheme == "binary":
        return decisions[:, 0]
    if model.shape == "ovo":
        return decisions
    return by_class(decisions, model.scheme, len(model.classes))
