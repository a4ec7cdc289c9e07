"""``widemargin inspect``: what a model is."""

import argparse
import json
from typing import Any

import numpy as np

from widemargin.cli.output import SOLVED, escaped, say
from widemargin.cli.reading import known_base, read_model
from widemargin.model import Model

_LARGEST = 10  # weights that are shown


def run(options: argparse.Namespace) -> int:
    """Describe a model."""
    model = read_model(options.model)
    W = np.stack([decision.w for decision in model.decisions])
    facts = {
        "classes": model.classes.tolist(),
        "scheme": model.scheme,
        "features": model.n_features,
        "nonzero_weights": int(np.count_nonzero(W.any(axis=0))),
        "intercepts": [decision.b for decision in model.decisions],
    }
    if options.json:
        # What the file says comes second: it must not replace what was computed.
        say(f"{json.dumps(facts | model.meta | facts)}\n")
        return SOLVED
    facts["largest_weights"] = _largest_weights(model, W)
    shown = {
        escaped(name.replace("_", " ")): escaped(str(value))
        for part in (facts, model.meta, facts)
        for name, value in part.items()
        if name != "feature_names"
    }
    width = max(map(len, shown))
    say("".join(f"{name:{width}}  {value}\n" for name, value in shown.items()))
    return SOLVED


def _largest_weights(model: Model, W: Any) -> str:
    """Columns with the largest weight for any class, and these weights."""
    names, counted = _names(model)
    size = np.abs(W).max(axis=0)
    largest = np.argsort(-size, kind="stable")[:_LARGEST]
    return ", ".join(f"{names[j]} ({size[j]:.3g})" for j in largest) + counted


def _names(model: Model) -> tuple[list[str], str]:
    """Names of the columns, and how they are counted if they have none."""
    names: Any = model.meta.get("feature_names")
    if isinstance(names, list) and len(names) == model.n_features:
        return [str(name) for name in names], ""
    base = known_base(model.meta) or 0
    numbers = range(base, base + model.n_features)
    return [str(j) for j in numbers], f"; columns counted from {base}"
