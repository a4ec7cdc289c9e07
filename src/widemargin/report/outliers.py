"""What the page says of a machine of one class: how many rows are outliers."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from widemargin.arrays import Vector
from widemargin.data.memory import as_rows
from widemargin.data.rows import Rows
from widemargin.models.model import Model
from widemargin.report import html
from widemargin.report.run import column_names, sample
from widemargin.solution import Solution


@dataclass(frozen=True)
class Sides:
    """On which side of the boundary some rows are: how many outside, and of how many.

    ``scores`` are those of the rows that are drawn.
    """

    outside: int
    rows: int
    scores: Vector

    @property
    def share(self) -> str:
        """The share of outliers, in words."""
        return html.percent(self.outside / self.rows)


@dataclass(frozen=True)
class OutlierRun:
    """The training of a machine of one class, and the sides of its rows."""

    estimator: Any
    model: Model
    solutions: list[Solution]
    rows: Rows
    training: Sides
    test: Sides | None
    names: tuple[str, ...] = ()  # of classes: there are none

    @property
    def columns(self) -> list[str]:
        """Names of the columns, or their numbers where the data had no names."""
        return column_names(self.model)


def run_of(estimator: Any, X: Any, y: Any, test: tuple[Any, Any] | None) -> OutlierRun:
    """Score the data; ValueError where its columns are others. y says nothing."""
    model, rows = estimator.model_, as_rows(X)
    training = _sides(model, rows)
    tested = None if test is None else _sides(model, as_rows(test[0]))
    solutions = list(estimator.solutions_)
    return OutlierRun(estimator, model, solutions, rows, training, tested)


def _sides(model: Model, rows: Rows) -> Sides:
    """The sides of some rows."""
    state, drawn = model.scored(rows), sample(rows)
    outside = int(np.count_nonzero(state.scores < 0.0))
    scores = state.scores if drawn is None else state.part(drawn).scores
    return Sides(outside, rows.shape[0], scores)


# -- words and tables ------------------------------------------------------------------


def judgment(run: OutlierRun) -> str:
    """How many rows are outliers, as the end of a sentence."""
    some, of = (run.training, "training") if run.test is None else (run.test, "test")
    return f"{some.share} of the {of} rows are outliers"


def comparison(run: OutlierRun) -> str:
    """What nu says of it, and the share of the training data."""
    nu = run.estimator.nu
    words = (
        f"At the optimum at most {html.percent(nu)} (nu) of the training rows, by "
        "weight, are outside"
    )
    if run.test is None:
        return f"{words}. No test data were given: this is about the training data."
    return f"{words}; {run.training.share} are."


def table(run: OutlierRun) -> str:
    """Outliers of the data: a table."""
    found = {"training": run.training, "test": run.test}
    rows = [
        [name, f"{some.rows:,}", f"{some.outside:,}", some.share]
        for name, some in found.items()
        if some is not None
    ]
    return html.table("Outliers", ["data", "rows", "outliers", "share"], rows)


def figures(run: OutlierRun) -> str:
    """Pictures of the solve and of the scores."""
    from widemargin.report import course, drawing, pictures

    (solution,) = run.solutions
    with drawing.style():
        drawn = [
            course.convergence(solution),
            pictures.sides(run.training.scores, run.training.share),
            *course.activity(run.solutions, [""]),
        ]
    shown = "".join(html.figure(*picture) for picture in drawn)
    return f'<div class="grid">{shown}</div>'
