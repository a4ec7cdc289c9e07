"""The largest weights of a model: by class, with their signs."""

from typing import NamedTuple

import numpy as np

from widemargin.model import Model, Vector


class Weight(NamedTuple):
    """A weight and its column, from 0."""

    column: int
    value: float


def largest_weights(model: Model, most: int) -> dict[int, list[Weight]]:
    """The weights of largest size, none of them zero, by index of their class.

    A positive weight speaks for the class, and of two classes for the second, the only
    one that has weights.
    """
    first = 1 if model.scheme == "binary" else 0
    return {
        k: [Weight(j, float(decision.w[j])) for j in _largest(decision.w, most)]
        for k, decision in enumerate(model.decisions, start=first)
    }


def _largest(w: Vector, most: int) -> list[int]:
    """Columns of the largest weights, the largest first."""
    order = np.argsort(-np.abs(w), kind="stable")[:most]
    return [int(j) for j in order if w[j] != 0]
