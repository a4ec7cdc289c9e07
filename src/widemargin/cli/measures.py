"""How good a model is on data: the share of right labels, or errors of predictions."""

import numpy as np

from widemargin.cli.datasets import Data
from widemargin.data.memory import as_rows
from widemargin.models.errors import errors, guesses
from widemargin.models.model import Model


def measured(model: Model, test: Data) -> dict[str, float]:
    """The accuracy of a classifier, or the errors of a regression, by name."""
    state = model.scored(as_rows(test.X))
    if model.is_regression:
        found = errors(model, state, test.y)
        return {
            "r2": found.r2,
            "root_mean_squared_error": found.root_mean_squared,
            "mean_absolute_error": found.mean_absolute,
        }
    parts = guesses(model, state, test.y)
    right = sum(int(np.count_nonzero(y == guess)) for y, guess in parts)
    return {"accuracy": right / len(test.y)}


def in_words(facts: dict[str, float], path: str, m: int) -> str:
    """The measures of the m rows of a file."""
    on = f"on {path} ({m:,} rows)"
    if "accuracy" in facts:
        return f"accuracy {100 * facts['accuracy']:.2f} % {on}"
    return (
        f"R^2 {facts['r2']:.4g}, root mean squared error "
        f"{facts['root_mean_squared_error']:.4g}, mean absolute error "
        f"{facts['mean_absolute_error']:.4g} {on}"
    )
