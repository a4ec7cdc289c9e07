"""Data that stay in their files: opened with the options of a command."""

import argparse
import os
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy import sparse

from widemargin.cli.output import SHOWN, doing, note
from widemargin.cli.reading import as_of_options
from widemargin.data.outofcore import (
    column_names,
    csv_columns,
    is_binary,
    is_parquet,
    open_rows,
)
from widemargin.data.outofcore.stored import StoredRows
from widemargin.data.rows import Rows
from widemargin.system.files import COMPRESSED

# Text in memory takes up to four times its bytes ("1:1 " becomes 12 of them, with a
# copy); compressed text is taken to be _PACKED times as large as its file.
_SHARE, _PACKED = 4, 8
_UNNAMED = "''"  # a column whose name is empty


def is_stored(path: str, memory_limit: int | None) -> bool:
    """Whether data are read from their files in every sweep: text where it is large."""
    if is_binary(path):
        return True
    if memory_limit is None or not os.path.isfile(path):
        return False
    packed = path.lower().endswith(COMPRESSED)
    size = os.path.getsize(path) * (_PACKED if packed else 1)
    return _SHARE * size > memory_limit


def open_data(options: argparse.Namespace, path: str, **chosen: Any) -> StoredRows:
    """Rows of files, with a sentence in the words of the command line."""
    if not is_binary(path):
        note(
            f"{path}: too large for a quarter of --memory-limit; "
            "converting it once, to temporary files"
        )
    given = {"n_jobs": options.jobs, "memory_limit": options.memory_limit}
    try:
        with doing(f"reading {path}"), warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", UserWarning)
            rows = open_rows(path, **given, **chosen)
    except ValueError as error:
        raise ValueError(as_of_options(str(error))) from None
    for warning in caught:
        note(str(warning.message))
    return rows


def zero_based(index_base: int | None) -> Any:
    """What `open_rows` is told about the first index of text."""
    return "auto" if index_base is None else index_base == 0


# -- labels ----------------------------------------------------------------------------


def stored_labels(rows: StoredRows, path: str, option: str) -> Any:
    """The labels; where there are none, what to type."""
    with doing(f"reading the labels of {path}"):
        y = rows.vector("label")
    if y is None:
        beside = ", or files y-*.npy in the folder" * os.path.isdir(path)
        raise ValueError(
            f"{path}: expected labels: {option} NUMBER (a column, from 0) or "
            f"{option} FILE.npy{beside}"
        )
    return y


def say_types(options: argparse.Namespace, path: str) -> None:
    """Say what the columns of a CSV file hold, and which of them number the rows."""
    facts = csv_columns(path)
    found = [f"{f.name or _UNNAMED}: {f.holds}" for f in facts]
    note(f"{path}: {listed(found)}")
    used = options.columns or [f.name for f in facts]
    others = {options.label, options.weight}
    ids = [f.name for f in facts if f.is_id and f.name in used and f.name not in others]
    if ids:
        left = [name for name in used if name not in ids and name not in others]
        shown = listed([name or _UNNAMED for name in ids])
        note(
            f"{path}: {shown} seems to number the rows, which a model cannot "
            f"use for others; leave it out with --columns {','.join(left)}"
        )


def check_named(path: str, label: str | None, option: str) -> None:
    """Refuse Parquet without the name of the labels; says which columns there are."""
    if label is None and is_parquet(path):
        found = listed(column_names(path))
        raise ValueError(
            f"{path}: expected {option} NAME, the column of the labels: {found}"
        )


def check_left_out(path: str, label: str, columns: Sequence[str]) -> None:
    """Refuse to leave out a column that the model needs, or that there is not."""
    there = column_names(path)
    if label in columns or label not in there:
        which = "the model needs it" if label in columns else listed(there)
        raise ValueError(
            f"{path}: expected a column to leave out as --label, found {label!r} "
            f"({which})"
        )


def listed(names: Sequence[str]) -> str:
    """Names for a sentence: all, or the first and the last ones."""
    if len(names) > SHOWN:
        names = [*names[: SHOWN - 3], "...", *names[-2:]]
    return ", ".join(names)


# -- columns ---------------------------------------------------------------------------


def parquet_features(path: str, names: Sequence[str]) -> list[str]:
    """The columns that the named features are made of, in the order of the names."""
    stored = column_names(path)
    return list(dict.fromkeys(_column(name, stored) for name in names))


def say_ignored(path: str, columns: Sequence[str], others: Sequence[Any]) -> None:
    """Say which columns Parquet has but for these."""
    known = {*columns, *others}
    unknown = [name for name in column_names(path) if name not in known]
    if unknown:
        _ignored(path, f"{len(unknown):,} column(s)", unknown)


def _column(name: str, stored: Sequence[str]) -> str:
    """The column of a feature: "sex" of "sex=F", unless that is a column itself."""
    if name in stored:
        return name
    parts = name.split("=")
    starts = ["=".join(parts[:k]) for k in range(len(parts) - 1, 0, -1)]
    return next((start for start in starts if start in stored), parts[0])


def matched_columns(rows: Rows, path: str, names: Sequence[str] | None, n: int) -> Rows:
    """The rows with the n columns of a model, by their names if both have some.

    Raises
    ------
    ValueError for a column that is missing, or of another kind; without names, for
    another number of columns.
    """
    if names is None or rows.names is None or not is_parquet(path):
        if rows.shape[1] != n:
            more = "; --label leaves one out" * (rows.shape[1] == n + 1)
            if rows.names is not None and rows.shape[1] > n + 1:  # a label of words
                more = f": {listed(rows.names)}; --label leaves a column out"
            raise ValueError(
                f"{path}: expected {n:,} columns as in the training data, "
                f"found {rows.shape[1]:,}{more}"
            )
        if names is not None and rows.names is not None and not is_parquet(path):
            rows.names = None  # numbers of columns, which follow where the labels are
        return rows
    if list(rows.names) == list(names):
        return rows
    place = {name: j for j, name in enumerate(names)}
    _check_kinds(path, rows.names, place)
    unknown = [name for name in rows.names if name not in place]
    if unknown:
        _ignored(
            path,
            f"{len(unknown):,} categor{'y' if len(unknown) == 1 else 'ies'}",
            unknown,
        )
    return rows.mapped(ChosenColumns([place.get(name, -1) for name in rows.names], n))


def check_width(path: str, found: int, names: Sequence[str] | None) -> None:
    """Refuse text, which has no names, with more columns than a model has names.

    Else say what its columns are taken for.
    """
    if names is None:
        return
    if found > len(names):
        raise ValueError(
            f"{path}: expected at most {len(names):,} features, those of the model "
            f"({listed(names)}), found {found:,}"
        )
    rest = "" if found == len(names) else f", and all but the first {found:,} as 0"
    note(
        f"{path}: svmlight text has no names; its columns are taken as those of the "
        f"model in their order ({listed(names)}){rest}"
    )


def _check_kinds(path: str, found: Sequence[str], place: dict[str, int]) -> None:
    """Refuse numbers where the training data had categories, and the reverse."""
    new = {name for name in found if name not in place}
    missing = set(place).difference(found)
    for name in sorted(new):
        if any(other.startswith(f"{name}=") for other in missing):
            raise ValueError(
                f"{path}: expected categories in column '{name}' as in the training "
                "data, found numbers"
            )
    for name in sorted(missing):
        if any(other.startswith(f"{name}=") for other in new):
            raise ValueError(
                f"{path}: expected numbers in column '{name}' as in the training "
                "data, found categories"
            )


def _ignored(path: str, what: str, names: Sequence[str]) -> None:
    note(f"{path}: ignored {what} that the model has never seen ({listed(names)})")


class ChosenColumns:
    """Feature map that puts each column where a model has it, or nowhere (-1)."""

    def __init__(self, places: Sequence[int], n: int) -> None:
        self.rank = n
        to = np.array(places)
        known = np.flatnonzero(to >= 0)
        entries = np.ones(known.size), (known, to[known])
        self._matrix = sparse.csr_array(entries, shape=(to.size, n))

    def map(self, block: Any) -> Any:
        """The block with the columns of the model."""
        return block @ self._matrix


def resized(rows: StoredRows, path: str, n: int) -> Rows:
    """Rows of text with the first n columns; says which others there were."""
    k, first = rows.shape[1], rows.first_index
    if k == n:
        return rows
    if k > n:
        note(
            f"{path}: ignored the columns that the model has never seen "
            f"(indices {n + first} to {k - 1 + first})"
        )
    return rows.mapped(ChosenColumns([j if j < n else -1 for j in range(k)], n))
