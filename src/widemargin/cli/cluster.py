"""Training on a Dask cluster: ``widemargin train --cluster URL`` or ``--workers N``."""

import argparse
import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

from widemargin.cli.datasets import Data
from widemargin.cli.machines import is_linear
from widemargin.data.outofcore import open_rows
from widemargin.system.files import missing_extra, open_bytes

# Options that need the rows here, and what they are when they are not given.
_HERE = {
    "probability": False,
    "scale": None,
    "test": None,
    "report": None,
    "budget": None,
    "checkpoint": None,
    "resume": False,
    "columns": None,
    "cv_seed": None,
}


def is_asked(options: argparse.Namespace) -> bool:
    """Whether the training is to run on a cluster."""
    return options.cluster is not None or options.workers is not None


@contextmanager
def opened(options: argparse.Namespace) -> Iterator[Data]:
    """The data of a training, for the workers of a cluster that is there meanwhile."""
    _check(options)
    with ExitStack() as stack:
        client = stack.enter_context(_client(options, stack))
        asked = {"label": options.label, "weight": options.weight}
        given = {k: v for k, v in asked.items() if v is not None}
        rows: Any = open_rows(options.data, client=client, **given)
        y = rows.vector("label")
        if y is None:
            raise ValueError(
                f"{options.data}: expected labels in files y-*.npy, or --label"
            )
        yield Data(options.data, rows, y, rows.vector("weight"))


def _check(options: argparse.Namespace) -> None:
    """Refuse what a cluster does not do."""
    if options.cluster is not None and options.workers is not None:
        raise ValueError("--cluster and --workers cannot go together")
    option = "--cluster" if options.workers is None else "--workers"
    if options.workers is not None and not os.path.isdir(options.data):
        open_bytes(options.data).close()  # says now what is missing, if it is
    kind = os.path.splitext(options.data)[1]
    if kind not in (".npy", ".parquet", ""):
        raise ValueError(f"{options.data}: {option} expects .npy files or Parquet")
    for name, unset in _HERE.items():
        if getattr(options, name, unset) != unset:
            asked = name.replace("_", "-")
            raise ValueError(f"{option} and --{asked} cannot go together")
    if isinstance(options.class_weight, list):
        raise ValueError(f"{option} needs --class-weight balanced, or none")
    if options.type != "classify":
        raise ValueError(f"{option} needs --type classify, found {options.type}")
    if options.kernel == "linear" and not is_linear(options):
        raise ValueError(
            f"{option} needs a solver of linear machines, found --solver "
            f"{options.solver}"
        )
    if options.kernel != "linear" and options.rank is None:
        raise ValueError(f"{option} and a kernel need --rank")


def _client(options: argparse.Namespace, stack: ExitStack) -> Any:
    """A client of the cluster that is asked for."""
    try:
        from distributed import Client, LocalCluster
    except ImportError:
        raise missing_extra("a cluster", "dask") from None
    if options.cluster is not None:
        try:
            return Client(options.cluster)
        except (OSError, ValueError) as error:
            raise ValueError(f"--cluster {options.cluster}: {error}") from None
    workers = LocalCluster(
        n_workers=options.workers, threads_per_worker=1, dashboard_address=":0"
    )
    return Client(stack.enter_context(workers))
