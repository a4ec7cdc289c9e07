"""``widemargin predict``: a label, number, scores or probabilities for every row."""

import argparse
from collections.abc import Iterator

from widemargin.cli.datasets import open_unlabeled
from widemargin.cli.output import SOLVED, as_text, doing, say
from widemargin.cli.reading import about, read_model
from widemargin.data.memory import as_rows
from widemargin.data.state import RowState
from widemargin.models.model import Model
from widemargin.system.files import check_outputs, replacing

_ROWS = 1 << 16  # lines that are made at a time


def run(options: argparse.Namespace) -> int:
    """Apply a model."""
    outputs = [options.output] if options.output else []
    check_outputs(outputs, [options.model, options.data])
    model = read_model(options.model)
    _check_numbers(options, model)
    if options.probability:
        if options.scores:
            raise ValueError("--probability and --scores cannot go together")
        _check_calibrated(model, options.model)
    rows = as_rows(open_unlabeled(options, model))
    with doing(f"predicting {rows.shape[0]:,} rows"), about(options.data):
        state = model.scored(rows)  # all of them, before the first line
    text = _text(model, state, rows.shape[0], options)
    if options.output:
        with replacing(options.output) as file:
            for lines in text:
                file.write(lines.encode())
    else:
        for lines in text:
            say(lines)
    return SOLVED


def _check_calibrated(model: Model, path: str) -> None:
    """Refuse a model that keeps no calibration."""
    if model.calibration is None:
        raise ValueError(
            f"{path}: expected a model that was trained with --probability or "
            "calibrate=, found one without"
        )


def _check_numbers(options: argparse.Namespace, model: Model) -> None:
    """Refuse scores and probabilities of a regression: it predicts numbers."""
    for name in ("scores", "probability"):
        if model.is_regression and getattr(options, name):
            raise ValueError(
                f"{options.model}: expected no --{name} for a regression, whose "
                "predictions are numbers"
            )


def _text(
    model: Model, state: RowState, m: int, options: argparse.Namespace
) -> Iterator[str]:
    """One line a row, of some of the m rows at a time."""
    for start in range(0, m, _ROWS):
        scores = state.part(slice(start, min(start + _ROWS, m))).scores
        if options.probability and model.calibration is not None:
            scores = model.calibration.probabilities(scores)
        if options.scores or options.probability:
            lines = [
                " ".join(map(repr, s)) for s in scores.reshape(len(scores), -1).tolist()
            ]
        else:
            lines = [as_text(label) for label in model.decide(scores).tolist()]
        yield "".join(f"{line}\n" for line in lines)
