"""``widemargin train --scale``: learned on the training data, kept in the model."""

import argparse
from typing import Any

from widemargin.cli.datasets import Data
from widemargin.cli.machines import is_linear
from widemargin.cli.output import doing, escaped, note
from widemargin.cli.reading import about
from widemargin.data.memory import as_rows
from widemargin.data.present import present
from widemargin.data.rows import Rows
from widemargin.features.scaling import Scaling, learned, uneven
from widemargin.report.weights import SCALES

_KEPT = 1 << 16  # columns at most whose scales a model keeps
_FEW = 1 << 18  # rows of files that are read once more for a hint


def read_scaling(options: argparse.Namespace, data: Data) -> Scaling | None:
    """The scaling that was asked for, of the training data where they are."""
    if options.scale is None:
        return None
    limits = {"n_jobs": options.jobs, "memory_limit": options.memory_limit}
    with doing(f"scaling {data.path}"), about(data.path, data.first_index):
        return learned(as_rows(data.X, **limits), options.scale)


def scaled(options: argparse.Namespace, data: Data, scaling: Scaling | None) -> Data:
    """The data with their columns scaled; files stay as they are, and are read so."""
    if scaling is None:
        return data
    X: Any = data.X
    X = scaling.applied(X) if isinstance(X, Rows) else scaling.map(X)
    meta = {**data.meta, "scale": options.scale}
    if is_linear(options) and scaling.rank <= _KEPT:
        meta[SCALES] = scaling.scale.tolist()
    return data._replace(X=X, meta=meta)


def say_uneven(options: argparse.Namespace, data: Data) -> None:
    """Say where columns need --scale; large files are not read for it."""
    rows = present(as_rows(data.X))
    if options.scale is not None or not (rows.is_in_memory or len(data.y) <= _FEW):
        return
    with about(data.path, data.first_index):
        found = uneven(rows)
    if found is None:
        return
    least, most, factor = found
    j, k = (_name(data, rows.number_of(column)) for column in (least, most))
    kind = "maxabs" if rows.density < 1.0 else "standard"
    note(
        f"{data.path}: the scales of {j} and {k} are {factor:,.0f} times apart; "
        f"--scale {kind} usually makes models better, and training faster"
    )


def _name(data: Data, column: int) -> str:
    """What the file calls a column."""
    if data.names is not None:
        return escaped(str(data.names[column]))
    return f"column {column + data.first_index}"
