"""Which columns Parquet files have, and which of them are read as what."""

import base64
import difflib
import json
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from widemargin.data.outofcore.parquet_files import DataFile

_SHOWN = 12  # columns that a sentence names


class ColumnType(NamedTuple):
    """What a column holds: equal where columns of two files may be read as one.

    Attributes
    ----------
    kind : "number", "category", "text" or "other"
    dtype : numpy dtype of numbers, None for others
    shown : str, what a sentence calls it
    """

    kind: str
    dtype: np.dtype[Any] | None
    shown: str


class ReadColumns(NamedTuple):
    """The columns that are read: features in their order, label and weight."""

    features: list[str]
    label: str | None
    weight: str | None
    types: dict[str, ColumnType]  # of all of them


def choose_columns(
    files: Sequence[DataFile],
    label: str | None,
    weight: str | None,
    columns: Sequence[str] | None,
) -> ReadColumns:
    """The columns to read; ``columns`` None: all but label, weight and pandas' index.

    Raises
    ------
    ValueError for names that the files have not or that contradict each other, and
    for columns of the wrong type, or not of the same in all files.
    """
    _check_names(label, weight, columns)
    schema = _Schema(files[0])
    for name in (label, weight, *(columns or ())):
        if name is not None:
            schema.check_known(name)
    for file in files[1:]:
        used = None if columns is None else {*columns, label, weight}
        schema.check_same(_Schema(file), used)
    if columns is None:
        others = {label, weight} | schema.index
        columns = [name for name in schema.types if name not in others]
    if not columns:
        raise ValueError(f"{files[0].path}: expected a column of features, found none")
    files[0].check_numbers(columns)
    schema.check_types(columns, label, weight)
    names = [*columns, *(x for x in (label, weight) if x is not None)]
    types = {name: schema.types[name] for name in names}
    return ReadColumns(list(columns), label, weight, types)


def stored_columns(file: DataFile) -> list[str]:
    """The columns of a file but for an index that pandas stored."""
    schema = _Schema(file)
    return [name for name in schema.types if name not in schema.index]


def is_text(kind: Any) -> bool:
    """Whether an Arrow type is one of those for text."""
    return str(kind) in ("string", "large_string", "string_view")


class _Schema:
    """The columns of a file: `types` by name, and the index columns of pandas."""

    def __init__(self, file: DataFile) -> None:
        self.path, doubt = file.path, file.doubt
        self._doubt = doubt and f"; {doubt}"
        metadata = file.metadata.metadata or {}
        with file.reading():
            pandas = json.loads(metadata.get(b"pandas", b"{}"))
            categories = _dictionaries(metadata.get(b"ARROW:schema"))
            fields = [(field.name, field.type) for field in file.schema]
        # pyarrow reads categories that are no text as what the categories are.
        categories |= {
            column.get("field_name")
            for column in pandas.get("columns", ())
            if column.get("pandas_type") == "categorical"
        }
        index = pandas.get("index_columns", ())
        self.index = {name for name in index if isinstance(name, str)}
        self.types: dict[str, ColumnType] = {}
        for name, kind in fields:
            if name in self.types:
                raise ValueError(
                    f"{file.path}: expected columns with different names, "
                    f"found '{name}' twice"
                )
            self.types[name] = _type(kind, name in categories)

    def check_known(self, name: str) -> None:
        """Raise ValueError for a column that there is not."""
        if name not in self.types:
            near = difflib.get_close_matches(name, self.types, n=1)
            shown = [*self.types][:_SHOWN] + ["..."] * (len(self.types) > _SHOWN)
            hint = f" (did you mean '{near[0]}'?)" if near else ""
            if not (near or self._doubt):
                hint = f" ({', '.join(shown)})"
            raise ValueError(
                f"{self.path}: expected a column '{name}', found none of that name"
                f"{hint}{self._doubt}"
            )

    def check_same(self, other: "_Schema", used: set[str | None] | None) -> None:
        """Raise ValueError where another file has other columns; None: of all."""
        for name, kind in self.types.items():
            if used is not None and name not in used:
                continue
            found = other.types.get(name)
            if found != kind:
                raise ValueError(
                    f"{other.path}: expected {kind.shown} in column '{name}' as in "
                    f"{self.path}, found {found.shown if found else 'no such column'}"
                )
        for name in other.types:
            if used is None and name not in self.types:
                raise ValueError(
                    f"{other.path}: expected the columns of {self.path}, "
                    f"found column '{name}' too"
                )

    def check_types(
        self, features: Sequence[str], label: str | None, weight: str | None
    ) -> None:
        """Raise ValueError for the first column that cannot be what it is to be."""
        for name in features:
            kinds = ("number", "category", "text")
            advice = "leave it out (columns=...)"
            self._check_type(name, kinds, "numbers, text or categories", advice)
        if label is not None:
            kinds = ("number", "category", "text")
            self._check_type(label, kinds, "numbers, text or categories", "convert it")
        if weight is not None:
            self._check_type(weight, ("number",), "numbers", "convert it")

    def _check_type(
        self, name: str, kinds: tuple[str, ...], expected: str, advice: str
    ) -> None:
        if self.types[name].kind not in kinds:
            raise ValueError(
                f"{self.path}: expected {expected} in column '{name}', "
                f"found {self.types[name].shown}; {advice}"
            )


def _check_names(
    label: str | None, weight: str | None, columns: Sequence[str] | None
) -> None:
    if label is not None and label == weight:
        raise ValueError(
            f"label and weight must be different columns. Got '{label}' for both."
        )
    if columns is None:
        return
    if isinstance(columns, str) or not columns:
        raise ValueError(
            f"columns must be a list of at least one name. Got {columns!r} instead."
        )
    for number, name in enumerate(columns):
        if name in (label, weight):
            other = "label" if name == label else "weight"
            raise ValueError(f"columns must not hold '{name}', which is the {other}.")
        if name in columns[:number]:
            raise ValueError(f"columns must be different. Got '{name}' twice.")


def _dictionaries(encoded: bytes | None) -> set[str]:
    """Names of the dictionary columns in a schema as Arrow writes it to a file."""
    if encoded is None:
        return set()
    schema = pa.ipc.read_schema(pa.py_buffer(base64.b64decode(encoded)))
    return {field.name for field in schema if pa.types.is_dictionary(field.type)}


def _type(kind: Any, is_category: bool) -> ColumnType:
    if pa.types.is_dictionary(kind):
        kind, is_category = kind.value_type, True
    shown = "string" if is_text(kind) else str(kind)
    if pa.types.is_nested(kind) or pa.types.is_null(kind):
        return ColumnType("other", None, shown)
    if is_category:
        return ColumnType("category", None, f"categories ({shown})")
    if pa.types.is_decimal(kind):
        return ColumnType("number", np.dtype(np.float64), shown)
    tests = (pa.types.is_integer, pa.types.is_floating, pa.types.is_boolean)
    if any(test(kind) for test in tests):
        return ColumnType("number", np.dtype(kind.to_pandas_dtype()), shown)
    return ColumnType("text" if is_text(kind) else "other", None, shown)
