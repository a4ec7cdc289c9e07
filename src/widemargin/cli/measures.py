"""How good a model is on data: the share of right labels, or errors of predictions."""

import numpy as np

from widemargin.cli.datasets import Data
from widemargin.cli.output import SHOWN, listed, note
from widemargin.data.memory import as_rows
from widemargin.estimators.labels import distinct
from widemargin.models.errors import errors, guesses
from widemargin.models.model import Model
from widemargin.models.schemes import ONE_CLASS


def measured(model: Model, test: Data) -> dict[str, float]:
    """The accuracy of a classifier, or the errors of a regression, by name.

    Of one class the share of outliers, and the accuracy where labels are 1 and -1.
    """
    state = model.scored(as_rows(test.X))
    if model.is_regression:
        found = errors(model, state, test.y)
        return {
            "r2": found.r2,
            "root_mean_squared_error": found.root_mean_squared,
            "mean_absolute_error": found.mean_absolute,
        }
    right = outliers = 0
    m = len(test.y)
    for y, guess in guesses(model, state, test.y):
        right += int(np.count_nonzero(y == guess))
        outliers += int(np.count_nonzero(guess == model.classes[0]))
    is_one = model.scheme == ONE_CLASS
    facts = {"outliers": outliers / m} if is_one else {}
    if not is_one or np.isin(test.y, model.classes).all():
        facts["accuracy"] = right / m
    return facts


def say_unseen(model: Model, test: Data) -> None:
    """Say which labels the model has never seen: no accuracy has them right."""
    if model.is_regression or model.scheme == ONE_CLASS:
        return
    unseen = np.setdiff1d(distinct(test.y), model.classes).tolist()
    if unseen:
        note(
            f"{test.path}: rows with labels that the model has never seen count as "
            f"wrong ({listed(unseen, SHOWN)})"
        )


def in_words(facts: dict[str, float], path: str, m: int) -> str:
    """The measures of the m rows of a file."""
    on = f"on {path} ({m:,} rows)"
    right = f"accuracy {100 * facts['accuracy']:.2f} %" if "accuracy" in facts else ""
    if "outliers" in facts:
        share = f"outliers {100 * facts['outliers']:.2f} %"
        unknown = "an accuracy needs labels: 1, and -1 of outliers"
        return f"{share}, {right} {on}" if right else f"{share} {on}; {unknown}"
    if right:
        return f"{right} {on}"
    return (
        f"R^2 {facts['r2']:.4g}, root mean squared error "
        f"{facts['root_mean_squared_error']:.4g}, mean absolute error "
        f"{facts['mean_absolute_error']:.4g} {on}"
    )
