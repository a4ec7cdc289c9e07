"""``widemargin train --scale``: learned on the training data, kept in the model."""

import argparse
from typing import Any

from widemargin.cli.datasets import Data
from widemargin.cli.output import doing
from widemargin.cli.reading import about
from widemargin.data.memory import as_rows
from widemargin.data.rows import Rows
from widemargin.features.scaling import Scaling, learned


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
    return data._replace(X=X, meta={**data.meta, "scale": options.scale})
