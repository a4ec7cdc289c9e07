"""The data of a command, in memory or in their files: to train, to test, to predict."""

import argparse
import os
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from widemargin.cli import reading, stored, values, weights
from widemargin.cli.output import doing
from widemargin.data.memory import as_rows
from widemargin.data.outofcore import column_names, is_binary, is_parquet
from widemargin.data.outofcore.stored import StoredRows
from widemargin.data.rows import Rows
from widemargin.models.model import Model
from widemargin.report.weights import known_base
from widemargin.system.files import TEXT, ending, is_delimited, open_bytes

_TABLE_ELSEWHERE = "; give a table as a file, not on standard input"


class Data(NamedTuple):
    """Data as an estimator takes them.

    Attributes
    ----------
    path : str
    X : CSR array or Rows
    y : labels (m,)
    weights : array (m,) or None
    first_index : int, what the file calls the first column
    names : names of the columns, or None
    nonzero : float, share of the entries that are stored; None where all are
    meta : dict of what a model keeps to read such data again
    """

    path: str
    X: Any
    y: Any
    weights: Any = None
    first_index: int = 0
    names: Sequence[str] | None = None
    nonzero: float | None = None
    meta: Mapping[str, Any] = {}


# -- to train --------------------------------------------------------------------------


def read_training(options: argparse.Namespace) -> Data:
    """Data with labels of at least two classes, with targets, or for one class."""
    path = options.data
    if not is_binary(path):
        _check_text(options, path)
        data = _read_text(options, path, options.index_base)
        if options.weight is not None:
            data = _weighted(data, options.weight)
    else:
        data = _open_training(options, path)
    _check_labels(options, path, data.y)
    reading.check_columns(path, data.X)
    if options.type in ("classify", "nu"):
        reading.check_classes(path, data.y)
    if is_delimited(path):
        stored.say_types(options, path)
    return data


def _check_labels(options: argparse.Namespace, path: str, y: Any) -> None:
    """Refuse labels that name no class, or that are no targets; one class has none."""
    if options.type == "one-class":
        return
    check = reading.check_labels
    if options.type in ("regress", "nu-regress"):
        check = reading.check_targets
    check(path, y)


def _open_training(options: argparse.Namespace, path: str) -> Data:
    if options.columns and not is_parquet(path):
        found = ",".join(options.columns)
        raise ValueError(
            f"{path}: expected no --columns for what is no table, found {found}"
        )
    has_labels = options.label is not None or options.type != "one-class"
    if has_labels:
        stored.check_named(path, options.label, "--label")
    beside = weights.is_text(options.weight)
    chosen = {
        "label": options.label,
        "weight": None if beside else options.weight,
        "columns": options.columns,
    }
    rows = stored.open_data(options, path, **chosen)
    y = np.zeros(rows.shape[0])
    if has_labels:
        y = stored.stored_labels(rows, path, "--label")
    meta = {k: v for k, v in chosen.items() if v is not None and k != "columns"}
    share = rows.density if rows.density < 1 else None
    data = Data(path, rows, y, rows.vector("weight"), 0, rows.names, share, meta)
    return _weighted(data, options.weight) if beside else data


def _weighted(data: Data, path: str) -> Data:
    """Data with the weights of a file."""
    return data._replace(weights=weights.read_weights(path, len(data.y)))


def _read_text(options: argparse.Namespace, path: str, index_base: int | None) -> Data:
    """Data of svmlight text: in memory, or converted where they are too large."""
    if stored.is_stored(path, options.memory_limit):
        base = stored.zero_based(index_base)
        rows = stored.open_data(options, path, zero_based=base)
        first, X, y, share = rows.first_index, rows, rows.vector("label"), rows.density
    else:
        found = reading.read(path, index_base, options.jobs)
        first, X, y = int(not found.zero_based), found.X, found.y
        share = X.nnz / max(1, X.shape[0] * X.shape[1])
    meta = {"index_base": first}
    return Data(path, X, y, None, first, None, share, meta)


def _check_text(options: argparse.Namespace, path: str) -> None:
    """Refuse options that svmlight text has no use for."""
    for option in ("label", "weight", "columns", "test_label"):
        value = getattr(options, option, None)
        if option == "weight" and value is not None:
            weights.check_file(value, path)
        elif value is not None:
            if not os.path.exists(path):
                open_bytes(path)  # which says so, with the name that may be meant
            other = "; a table has a name that ends in .csv, .tsv, .npy or .parquet"
            other *= ending(path) == ".txt" or ending(path) not in TEXT
            if path == values.STANDARD_INPUT:
                other = _TABLE_ELSEWHERE
            raise ValueError(
                f"{path}: expected no --{option.replace('_', '-')} for svmlight text, "
                f"which has its labels, found {value}{other}"
            )


def in_memory(options: argparse.Namespace, data: Data) -> Data:
    """The data in memory, as a kernel needs them, and what solves many at once."""
    if not isinstance(data.X, Rows):
        return data
    rows, limit = data.X, options.memory_limit
    m, n = rows.shape
    size = int(m * n * rows.density * rows.dtype.itemsize)
    if limit is not None and size > limit // 2:
        raise ValueError(
            f"{data.path}: expected data that take at most half of --memory-limit in "
            f"memory, as kernels and --solver batch need them there, found {size:,} "
            "bytes"
        )
    with doing(f"reading {data.path}"):
        X = as_rows(rows.take(np.arange(m)), n_jobs=options.jobs, memory_limit=limit)
    X.names = rows.names
    return data._replace(X=X)


# -- to test ---------------------------------------------------------------------------


def read_test(options: argparse.Namespace, data: Data) -> Data | None:
    """Data with labels, and the columns of the training data."""
    path = options.test
    if not path:
        return None
    if is_binary(path) != is_binary(data.path):
        kinds = ("svmlight text", "CSV, arrays or Parquet")
        raise ValueError(
            f"{path}: expected {kinds[is_binary(data.path)]} as {data.path}, "
            f"found {kinds[is_binary(path)]}"
        )
    n = data.X.shape[1]
    if is_binary(path):
        test = _open_test(options, data, n)
    else:
        test = _read_text(options, path, data.first_index)
        test = test._replace(X=_with_columns(test, n))
    _check_labels(options, path, test.y)
    return test


def _open_test(options: argparse.Namespace, data: Data, n: int) -> Data:
    path, label, option = options.test, options.test_label, "--test-label"
    if label is None and not _is_file(options.label):
        label, option = options.label, "--label"
    is_beside = _is_file(options.weight) or weights.is_text(options.weight)
    weight = None if is_beside else options.weight
    stored.check_named(path, label, option)
    chosen: dict[str, Any] = {"label": label, "weight": weight}
    by_name = is_parquet(path) and data.names is not None
    if by_name:  # a weight is then no feature, and accuracy needs none
        columns = stored.parquet_features(path, data.names or ())
        chosen = {"label": label, "columns": columns}
    rows = stored.open_data(options, path, **chosen)
    y = stored.stored_labels(rows, path, option)
    X = stored.matched_columns(rows, path, data.names, n)
    if by_name:
        stored.say_ignored(path, columns, [label, weight, *_left_out(options)])
    return Data(path, X, y)


def _left_out(options: argparse.Namespace) -> list[str]:
    """Columns of the training data that --columns leaves out, which need no note."""
    left_out = options.columns and is_parquet(options.data)
    return column_names(options.data) if left_out else []


def _is_file(name: str | None) -> bool:
    """Whether --label or --weight names a file, which has the rows of one data set."""
    return name is not None and name.lower().endswith(".npy")


def _with_columns(data: Data, n: int) -> Any:
    """The rows of text with the n columns of a model."""
    if isinstance(data.X, StoredRows):
        return stored.resized(data.X, data.path, n)
    return reading.fit_columns(data.path, data.X, data.first_index, n)


# -- to predict ------------------------------------------------------------------------


def open_unlabeled(options: argparse.Namespace, model: Model) -> Any:
    """Rows to predict, with the columns of the model: a CSR array, or Rows."""
    path, n = options.data, model.n_features
    if not is_binary(path):
        _check_text(options, path)
        if path == values.STANDARD_INPUT and (names := _names(model)) is not None:
            raise ValueError(
                f"{path}: expected a table with the columns of the model "
                f"({stored.listed(names)}), found what is read as svmlight text"
                f"{_TABLE_ELSEWHERE}"
            )
        base = options.index_base
        base = known_base(model.meta) if base is None else base
        data = _read_text(options, path, base)
        stored.check_width(path, data.X.shape[1], _names(model))
        return _with_columns(data, n)
    names, label = _names(model), options.label
    trained = [model.meta.get(kind) for kind in ("label", "weight")]
    others = [str(name) for name in (label, *trained) if name is not None]
    if is_parquet(path) and names is not None:
        columns = stored.parquet_features(path, names)
        if label is not None:
            stored.check_left_out(path, label, columns)
        rows = stored.open_data(options, path, columns=columns)
        found = stored.matched_columns(rows, path, names, n)
        stored.say_ignored(path, columns, others)
        return found
    if is_parquet(path) and label is None and trained[0] in column_names(path):
        label = trained[0]
    rows = stored.open_data(options, path, label=label)
    return stored.matched_columns(rows, path, names, n)


def _names(model: Model) -> list[str] | None:
    """Names of the columns that a model keeps; they were in a file."""
    names = model.meta.get("feature_names")
    if isinstance(names, list) and len(names) == model.n_features:
        return [str(name) for name in names]
    return None
