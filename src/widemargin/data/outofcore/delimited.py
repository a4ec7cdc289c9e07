"""CSV files as Parquet: converted once, with the types that pyarrow finds."""

import functools
import re
import tempfile
from typing import Any, NamedTuple

from widemargin.data.outofcore.source import FileStamp
from widemargin.system import files

try:
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.csv
    import pyarrow.parquet as pq
except ImportError:
    raise files.missing_extra("reading CSV", "parquet") from None

# Words of a column that has more of them are no categories.
_CATEGORIES = 50
# Rows of a group of the Parquet file, which is the least that is read at a time.
_ROW_GROUP = 1 << 16
# Rows from which a column that counts them is told from numbers that happen to differ.
_COUNTED = 20
_ID = re.compile(r"(?i)(^|[_\W])(id|index|key|nr|no|row|unnamed.*)$")


class ColumnFacts(NamedTuple):
    """A column of a CSV file: its name, what it holds, whether it numbers the rows."""

    name: str
    holds: str
    is_id: bool


class _Converted(NamedTuple):
    file: Any  # gone with this object
    facts: list[ColumnFacts]


def parquet_of(path: str) -> Any:
    """A temporary file with the same columns; its ``name`` is a path.

    Raises
    ------
    ValueError for what is no table, OSError where it cannot be read or stored.
    """
    return _converted(path, _stamp(path)).file


def column_facts(path: str) -> list[ColumnFacts]:
    """What the columns hold."""
    return _converted(path, _stamp(path)).facts


def _stamp(path: str) -> FileStamp:
    """The file as it is; one sentence where it is none."""
    files.open_regular(path).close()
    return FileStamp.of(path)


@functools.lru_cache(maxsize=4)
def _converted(path: str, stamp: FileStamp) -> _Converted:
    """The table, read once as long as the file is the same."""
    table = _read(path)
    with files.room_for("a temporary Parquet file"):
        made = tempfile.NamedTemporaryFile(suffix=".parquet")  # noqa: SIM115
        pq.write_table(table, made.name, row_group_size=_ROW_GROUP)
    facts = [_facts(name, table[name]) for name in table.column_names]
    return _Converted(made, facts)


def _read(path: str) -> Any:
    """The file as a table; words that repeat are categories."""
    tab = "\t" if files.ending(path) == ".tsv" else ","
    convert = pa.csv.ConvertOptions(
        auto_dict_encode=True, auto_dict_max_cardinality=_CATEGORIES
    )
    parse = pa.csv.ParseOptions(delimiter=tab)
    options = {"parse_options": parse, "convert_options": convert}
    try:
        table = pa.csv.read_csv(path, **options)
    except (pa.ArrowException, ValueError) as error:
        reason = _reason(path, error, options)
        raise ValueError(
            f"{path}: expected a table, a line of names and lines with a value for "
            f"each of them, found: {reason}"
        ) from None
    if table.num_rows == 0:
        raise ValueError(
            f"{path}: expected rows below the line of names, found the end of the file"
        )
    return table


def _reason(path: str, error: Exception, options: dict[str, Any]) -> str:
    """What is wrong with a file; one thread knows in which row, several do not."""
    try:
        pa.csv.read_csv(path, pa.csv.ReadOptions(use_threads=False), **options)
    except (pa.ArrowException, ValueError) as again:
        error = again
    return str(error).splitlines()[0]


def _facts(name: str, column: Any) -> ColumnFacts:
    kind = column.type
    if pa.types.is_dictionary(kind):
        found = len(pc.unique(column))
        return ColumnFacts(name, f"words ({found} of them)", False)
    called = _CALLED.get(str(kind), str(kind))
    return ColumnFacts(name, called, _is_id(name, column))


_CALLED = {
    "int64": "whole numbers",
    "double": "numbers",
    "string": "words",
    "bool": "true or false",
    "null": "nothing",
}


def _is_id(name: str, column: Any) -> bool:
    """Whether a column only numbers the rows: no two are alike, and they count."""
    if not pa.types.is_integer(column.type) or len(column) < _COUNTED:
        return False
    if column.null_count or len(pc.unique(column)) < len(column):
        return False
    ends = pc.min_max(column)
    span = ends["max"].as_py() - ends["min"].as_py()
    return span == len(column) - 1 or bool(_ID.search(name))
