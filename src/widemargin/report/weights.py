"""The largest weights of a model: by class and column, with their signs."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from widemargin.arrays import Vector
from widemargin.models.model import (
    Model,
)
from widemargin.report import html

# Lines and columns of the table of a report.
_FEATURES, _CLASSES = 20, 30
# Name in a model of what its columns were divided by in training: its weights are per
# unit of the file, and only with it say which columns matter.
SCALES = "column_scales"
# The share of the largest weight of a class up to which others are rounding.
ROUNDING = 1e-15


class Weight(NamedTuple):
    """A weight and its column, from 0."""

    column: int
    value: float


def largest_weights(model: Model, most: int) -> dict[int, list[Weight]]:
    """The weights of largest size, none of them zero, by index of their class.

    A positive weight speaks for the class. Of two classes only the second has weights.
    """
    first = 1 if model.scheme == "binary" else 0
    return {
        k: [Weight(j, float(decision.w[j])) for j in _largest(decision.w, most)]
        for k, decision in enumerate(model.decisions, start=first)
    }


def columns(model: Model) -> list[str] | range:
    """Names of the columns, or their numbers as the training data counted them."""
    names: Any = model.meta.get("feature_names")
    if isinstance(names, list) and len(names) == model.n_features:
        return [str(name) for name in names]
    base = known_base(model.meta) or 0
    return range(base, base + model.n_features)


def counting(model: Model) -> str:
    """Where the numbers of columns begin, where they have no names."""
    names = columns(model)
    if not isinstance(names, range):
        return ""
    why = "as in the file" if known_base(model.meta) else "as in an array"
    return f", counted from {names[0]} {why}"


def known_base(meta: Mapping[str, Any]) -> int | None:
    """Index of the first column in the data that a model was trained on, if known."""
    base = meta.get("index_base")
    return base if type(base) is int and base in (0, 1) else None


def table(model: Model, names: list[str], labels: list[str]) -> str:
    """Table of the largest weights: a line a feature, a column a class."""
    W = np.stack([decision.w for decision in model.decisions])
    classes = sorted(_largest(np.abs(W).max(axis=1), _CLASSES))
    features = _largest(np.abs(W).max(axis=0), _FEATURES)
    if not features:
        return "<p>All weights are zero.</p>"
    if model.scheme == "binary":
        header = [f"weight for class {html.short(names[1])}"]
        words = "A positive weight speaks for this class, a negative one for the other."
    else:
        header = [html.short(names[k]) for k in classes]
        words = "A positive weight speaks for the class of its column."
    if "scale" in model.meta:
        words += (
            f" Weights are of the scaled columns ({html.plain(model.meta['scale'])}), "
            "so that they can be compared."
        )
    if len(features) < model.n_features:
        words += f" The largest of {model.n_features:,} features."
    if len(classes) < len(W):
        words += f" Shown are {len(classes)} of {len(W)} classes."
    rows = [[labels[j], *(f"{W[k, j]:+.3g}" for k in classes)] for j in features]
    lines = html.table("Largest weights", ["feature", *header], rows)
    return f"<p>{html.prose(words)}</p>{lines}"


def _largest(w: Vector, most: int) -> list[int]:
    """Columns of the largest weights, the largest first; what is rounding is none."""
    sizes = np.abs(w)
    order = np.argsort(-sizes, kind="stable")[:most]
    return [int(j) for j in order if sizes[j] > ROUNDING * sizes[order[0]]]
