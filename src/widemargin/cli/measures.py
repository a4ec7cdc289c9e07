"""How good a model is on data: the share of right labels, or errors of predictions."""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from widemargin.cli.datasets import Data
from widemargin.data.memory import as_rows
from widemargin.models.model import Model

Vector = NDArray[np.float64]
_ROWS = 1 << 20  # labels that are compared at a time

# The measures of a regression in words, by the names of their facts.
ERRORS = {
    "r2": "R^2",
    "root_mean_squared_error": "root mean squared error",
    "mean_absolute_error": "mean absolute error",
}


def measured(model: Model, test: Data) -> dict[str, float]:
    """The accuracy of a classifier, or the measures of a regression, by name."""
    m, parts = len(test.y), _guessed(model, test)
    if not model.is_regression:
        right = sum(int(np.count_nonzero(y == guess)) for y, guess in parts)
        return {"accuracy": right / m}
    center = float(np.mean(test.y, dtype=np.float64))
    squares = sizes = whole = 0.0
    for y, guess in parts:
        error = np.subtract(y, guess, dtype=np.float64)
        squares += float(error @ error)
        sizes += float(np.abs(error).sum())
        whole += float(np.square(np.subtract(y, center, dtype=np.float64)).sum())
    # As scikit-learn's: targets that do not vary are predicted, or they are not.
    r2 = 1.0 - squares / whole if whole > 0.0 else float(squares == 0.0)
    return dict(zip(ERRORS, (r2, float(np.sqrt(squares / m)), sizes / m), strict=True))


def in_words(facts: dict[str, float], path: str, m: int) -> str:
    """The measures of the m rows of a file."""
    on = f"on {path} ({m:,} rows)"
    if "accuracy" in facts:
        return f"accuracy {100 * facts['accuracy']:.2f} % {on}"
    said = [f"{words} {facts[name]:.4g}" for name, words in ERRORS.items()]
    return f"{', '.join(said)} {on}"


def _guessed(model: Model, test: Data) -> Iterator[tuple[Vector, Vector]]:
    """Labels or targets, and what the model predicts, some rows at a time."""
    state = model.scored(as_rows(test.X))
    for start in range(0, len(test.y), _ROWS):
        rows = slice(start, min(start + _ROWS, len(test.y)))
        yield test.y[rows], model.decide(state.part(rows).scores)
