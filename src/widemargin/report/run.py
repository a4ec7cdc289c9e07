"""What the page is about: a training, and how it did on its data."""

import dataclasses
import itertools
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from widemargin.arrays import Index, Vector
from widemargin.data.memory import as_rows
from widemargin.data.rows import Rows
from widemargin.data.state import RowState
from widemargin.models.model import Model
from widemargin.parameters import Checker
from widemargin.report import html, weights
from widemargin.report.curves import Curves, curves_of
from widemargin.solution import Solution

Labels = NDArray[np.integer[Any]]
Counts = Index

# Rows that are worked on together; rows of which the margins are drawn, where the data
# are not in memory.
_CHUNK = 1 << 20
SAMPLE = 1 << 18


@dataclass(frozen=True)
class Run:
    """A training and its scores, computed once.

    Attributes
    ----------
    labels : ndarray (m,), indices of classes, -1 for a label that is none of them
    drawn : ndarray (k,) of the rows whose margins are drawn, or None for all
    scores : ndarray (k,) or (k, c), scores of the drawn rows
    training, test : ndarray (c + 1, c), rows by class and by guess; the last row counts
        labels of no class
    curves : Curves or None, of two classes: what other thresholds would do
    """

    estimator: Any
    model: Model
    solutions: list[Solution]
    names: list[str]
    rows: Rows
    labels: Labels
    drawn: Index | None
    scores: Vector
    training: Counts
    test: Counts | None
    curves: Curves | None = None

    @property
    def judged(self) -> Counts:
        """The counts that matter: of the test data, if there are any."""
        return self.training if self.test is None else self.test

    @property
    def problems(self) -> list[str]:
        """Names of the binary problems: of a class, or of two."""
        if not self.model.is_paired:
            return self.names
        return [f"{i}, {j}" for i, j in itertools.combinations(self.names, 2)]

    @property
    def data(self) -> str:
        """Where these are from."""
        return "training" if self.test is None else "test"

    @property
    def columns(self) -> list[str]:
        """Names of the columns, or their numbers where the data had no names."""
        return column_names(self.model)


def column_names(model: Model) -> list[str]:
    """Names of the columns of a model for the page, or their numbers."""
    names = weights.columns(model)
    if isinstance(names, range):
        return [f"column {j}" for j in names]
    return [html.plain(name) for name in names]


def check_estimator(estimator: Any) -> None:
    """Refuse what has no model to report on."""
    is_ball = hasattr(type(estimator), "coreset_")  # which keeps no solution to draw
    if is_ball or not hasattr(type(estimator), "model_"):
        check = Checker("write_report")
        expected = (
            "a fitted LinearSVC, SVC, NuSVC, BudgetSVC, LinearSVR, SVR, NuSVR, "
            "OneClassSVM, LinearSVCCV, SVCCV, LinearSVRCV or SVRCV"
        )
        check.refuse_model("estimator", expected, estimator)


def run_of(
    estimator: Any, X: Any, y: ArrayLike, test: tuple[Any, ArrayLike] | None
) -> Run:
    """Score the data; ValueError where it does not fit together."""
    model, rows = _of_classes(estimator.model_), as_rows(X)
    labels = _indices("y", model.classes, y, rows)
    if not np.any(labels >= 0):
        raise ValueError(
            "y must hold the classes that the estimator was fitted on. "
            f"Got {html.plain(np.ravel(y)[0])} instead."
        )
    training, state = _counts(model, rows, labels)
    tested, truth, judged = None, labels, state
    if test is not None:
        others = as_rows(test[0])
        truth = _indices("y of test", model.classes, test[1], others)
        tested, judged = _counts(model, others, truth)
    curves = curves_of(judged, truth) if len(model.classes) == 2 else None
    names = [html.plain(c) for c in model.classes]
    solutions = list(estimator.solutions_)
    drawn = sample(rows)
    scores = state.scores if drawn is None else state.part(drawn).scores
    return Run(
        estimator,
        model,
        solutions,
        names,
        rows,
        labels,
        drawn,
        scores,
        training,
        tested,
        curves,
    )


def _of_classes(model: Model) -> Model:
    """The model with scores of classes, not of pairs: the page is about classes."""
    return dataclasses.replace(model, shape="ovr") if model.shape == "ovo" else model


def time_of(estimator: Any) -> str:
    """Time of the whole fit, and what it has beside: a search, or features."""
    time = html.seconds(estimator.seconds_)
    if hasattr(estimator, "best_estimator_"):
        return f"{time}, with the search"
    if not hasattr(estimator, "feature_map_"):
        return time
    return (
        f"{time}, {html.seconds(estimator.feature_map_.seconds)} of it for the features"
    )


def sample(rows: Rows) -> Index | None:
    """The rows whose margins are drawn, in order: all rows that are in memory."""
    m = rows.shape[0]
    if rows.is_in_memory or m <= SAMPLE:
        return None
    return np.sort(np.random.default_rng(0).choice(m, SAMPLE, replace=False))


def _counts(model: Model, rows: Rows, labels: Labels) -> tuple[Counts, RowState]:
    """How many rows of each class were taken for each, and the scores."""
    c, state = len(model.classes), model.scored(rows)
    counts = np.zeros((c + 1, c), dtype=np.intp)
    for start in range(0, len(labels), _CHUNK):
        part = slice(start, min(start + _CHUNK, len(labels)))
        guesses = model.winners(state.part(part).scores)
        np.add.at(counts, (labels[part], guesses), 1)  # the last row for the label -1
    return counts, state


def _indices(name: str, classes: NDArray[Any], y: ArrayLike, rows: Rows) -> Labels:
    """Index of each label among the sorted classes: (m,), -1 where it is none."""
    y, m = np.ravel(np.asarray(y)), rows.shape[0]
    if len(y) != m:
        raise ValueError(f"{name} must have length {m}. Got length {len(y)} instead.")
    index = np.empty(m, np.min_scalar_type(-len(classes)))
    for start in range(0, m, _CHUNK):
        part = y[start : start + _CHUNK]
        place = np.minimum(np.searchsorted(classes, part), len(classes) - 1)
        index[start : start + _CHUNK] = np.where(classes[place] == part, place, -1)
    return index
