"""``widemargin predict``: a label, or scores, for every row."""

import argparse
from typing import Any

from widemargin.cli.output import SOLVED, as_text, doing, say
from widemargin.cli.reading import fit_columns, read, read_model
from widemargin.files import check_outputs, replacing
from widemargin.model import Model
from widemargin.report.weights import known_base


def run(options: argparse.Namespace) -> int:
    """Apply a model."""
    outputs = [options.output] if options.output else []
    check_outputs(outputs, [options.model, options.data])
    model = read_model(options.model)
    base = known_base(model.meta) if options.index_base is None else options.index_base
    data = read(options.data, base, options.jobs)
    X = fit_columns(options.data, data, model.n_features)
    with doing(f"predicting {X.shape[0]:,} rows"):
        text = _text(model, X, options.scores)
    if options.output:
        with replacing(options.output) as file:
            file.write(text.encode())
    else:
        say(text)
    return SOLVED


def _text(model: Model, X: Any, with_scores: bool) -> str:
    """One line a row."""
    scores = model.decision_function(X)
    if with_scores:
        rows = scores.reshape(len(scores), -1)
        lines = [" ".join(map(repr, row)) for row in rows.tolist()]
    else:
        lines = [as_text(label) for label in model.decide(scores).tolist()]
    return "".join(f"{line}\n" for line in lines)
