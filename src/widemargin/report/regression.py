"""What the page says of a regression: its errors, in words, tables and pictures."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from widemargin.arrays import Vector
from widemargin.data.memory import as_rows
from widemargin.data.rows import Rows
from widemargin.data.state import finite
from widemargin.models.errors import Errors, errors
from widemargin.models.model import Model
from widemargin.report import html
from widemargin.report.run import column_names, sample
from widemargin.solution import Solution


@dataclass(frozen=True)
class Predictions:
    """Targets and predictions of some rows, and the errors on all of them.

    Attributes
    ----------
    truth, found : ndarray (k,), of the rows that are drawn
    rows : int, of how many rows
    errors : Errors, of these
    """

    truth: Vector
    found: Vector
    rows: int
    errors: Errors


@dataclass(frozen=True)
class RegressionRun:
    """The training of a regression, and what it predicts."""

    estimator: Any
    model: Model
    solutions: list[Solution]
    rows: Rows
    training: Predictions
    test: Predictions | None
    names: tuple[str, ...] = ()  # of classes: there are none

    @property
    def judged(self) -> Predictions:
        """The predictions that matter: of the test data, if there are any."""
        return self.training if self.test is None else self.test

    @property
    def data(self) -> str:
        """Where these are from."""
        return "training" if self.test is None else "test"

    @property
    def columns(self) -> list[str]:
        """Names of the columns, or their numbers where the data had no names."""
        return column_names(self.model)


def run_of(
    estimator: Any, X: Any, y: ArrayLike, test: tuple[Any, ArrayLike] | None
) -> RegressionRun:
    """Predict the data; ValueError where it does not fit together."""
    model, rows = estimator.model_, as_rows(X)
    training = _predicted(model, rows, y, "y")
    tested = None
    if test is not None:
        tested = _predicted(model, as_rows(test[0]), test[1], "y of test")
    return RegressionRun(
        estimator, model, list(estimator.solutions_), rows, training, tested
    )


def _predicted(model: Model, rows: Rows, y: ArrayLike, name: str) -> Predictions:
    """Predictions of rows whose targets are known."""
    m = rows.shape[0]
    truth, state = finite(name, np.ravel(np.asarray(y)), m), model.scored(rows)
    drawn = sample(rows)
    found = state.scores if drawn is None else state.part(drawn).scores
    shown = truth if drawn is None else truth[drawn]
    return Predictions(shown, found, m, errors(model, state, truth))


# -- words and tables ------------------------------------------------------------------


def judgment(run: RegressionRun) -> str:
    """How good the predictions are, as the end of a sentence."""
    found = run.judged.errors
    return (
        f"on the {run.data} data R² is {found.r2:.4f}, with a root mean squared error "
        f"of {found.root_mean_squared:.4g}"
    )


def comparison(run: RegressionRun) -> str:
    """The error of a constant prediction, and those on the training data."""
    words = (
        "For comparison: always predicting the mean would have a root mean squared "
        f"error of {run.judged.errors.deviation:.4g}"
    )
    if run.test is None:
        return f"{words}. No test data were given: this is about the training data."
    found = run.training.errors
    return (
        f"{words}; on the training data R² is {found.r2:.4f}, and the error "
        f"{found.root_mean_squared:.4g}."
    )


def targets(run: RegressionRun) -> str:
    """Errors on the data, and what the targets are: a table."""
    header = ["data", "rows", "R²", "root mean squared error", "mean absolute error"]
    header += ["deviation of the targets"]
    found = {"training": run.training, "test": run.test}
    rows = [
        [name, f"{some.rows:,}", f"{some.errors.r2:.4f}"]
        + [f"{number:.4g}" for number in some.errors[1:]]
        for name, some in found.items()
        if some is not None
    ]
    return html.table("Errors", header, rows)


def _explained(picture: Any) -> Any:
    """The picture of the work, whose rows are more than the data have."""
    words = " A row of the data is two here: bounds of its error from both sides."
    return picture._replace(caption=picture.caption + words)


def figures(run: RegressionRun) -> str:
    """Pictures of the solve, of the predictions and of their errors."""
    from widemargin.report import course, drawing, pictures, predictions

    epsilon, (solution,) = run.model.meta["epsilon"], run.solutions
    judged = run.judged
    with drawing.style():
        drawn = [
            course.convergence(solution),
            predictions.against_truth(judged.truth, judged.found, epsilon, run.data),
            predictions.residuals(judged.truth - judged.found, epsilon, run.data),
            *map(_explained, course.activity(run.solutions, [""])),
        ]
        if hasattr(run.estimator, "Cs_"):
            drawn.append(pictures.selection(run.estimator))
    shown = "".join(html.figure(*picture) for picture in drawn)
    return f'<div class="grid">{shown}</div>'
