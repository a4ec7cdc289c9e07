"""CSV files as Parquet: converted once, with the types that pyarrow finds."""

import codecs
import csv
import functools
import io
import itertools
import lzma
import pathlib
import re
import tempfile
import warnings
import weakref
from collections import Counter
from collections.abc import Sequence
from typing import Any, NamedTuple

from widemargin.data.outofcore.source import FileStamp
from widemargin.data.svmlight.text import opener
from widemargin.system import files

try:
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.csv
    import pyarrow.parquet as pq
except ImportError:
    raise files.missing_extra("reading CSV", "parquet") from None

# Words of a column that has more of them are no categories, in CSV or as plain text.
CATEGORIES = 50
# Rows of a group of the Parquet file, which is the least that is read at a time.
_ROW_GROUP = 1 << 16
# Marks of a missing number beside those of pyarrow ("", "NA", "nan", "null", ...).
_MISSING = ("?", "None", "<NA>")
_NUMBER = r"^\s*[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?\s*$"
_GROUPED = r"^\s*[-+]?\d{1,3}(,\d{3})+(\.\d+)?\s*$"  # commas between thousands
# The share of numbers from which the words of a column are taken for mistakes.
_MOSTLY = 0.9
_SEPARATORS = {",": "commas", ";": "semicolons", "\t": "tabs"}
_HEAD_BYTES = 1 << 16  # that hold the line of names, or its beginning
# Rows from which a column that counts them is told from numbers that happen to differ.
_COUNTED = 20
# How pyarrow names a line that has too many values, or too few: rows count from 1, with
# the line of names, without blank ones.
_MISFIT = re.compile(r"Row #(\d+): Expected (\d+) columns, got (\d+): (.*)")
_ID = re.compile(r"(?i)(^|[_\W])(id|index|key|nr|no|row|unnamed.*)$")


class ColumnFacts(NamedTuple):
    """A column of a CSV file: its name, what it holds, whether it numbers the rows."""

    name: str
    holds: str
    is_id: bool


class _Words(NamedTuple):
    """A column of words.

    Attributes
    ----------
    numbers, words : int, rows with a number, and rows with a word
    row, word : the first word and its row; the first value where there is no word
    kinds : int, different words where they are too many for categories, else 0
    is_grouped : bool, whether the words are numbers with commas between thousands
    """

    numbers: int
    words: int
    row: int
    word: str
    kinds: int
    is_grouped: bool


class _Temporary:
    """A file with a ``name``, gone with this object: closed, unlike one of tempfile."""

    def __init__(self) -> None:
        with tempfile.NamedTemporaryFile(suffix=".parquet", delete=False) as made:
            self.name = made.name
        weakref.finalize(self, pathlib.Path(made.name).unlink, missing_ok=True)


class _Converted(NamedTuple):
    file: _Temporary  # gone with this object
    facts: list[ColumnFacts]
    words: dict[str, _Words]


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


def check_numbers(path: str, names: Sequence[str]) -> None:
    """Refuse feature columns of mistaken or too many words; warn of other mixtures.

    Raises
    ------
    ValueError where nine of ten rows have numbers: the words are mistakes; where the
    words are numbers with commas between thousands; and where they are too many for
    categories.

    Warns
    -----
    UserWarning where fewer rows have numbers: then all are categories; and where the
    line of names looks like one of values.
    """
    facts, columns = _converted(path, _stamp(path))[1:]
    if said := doubt([column.name for column in facts]):
        warnings.warn(f"{path}: {said}", UserWarning, stacklevel=2)
    for name in (name for name in names if name in columns):
        found = columns[name]
        if (refused := _refusal(path, name, found)) is not None:
            raise ValueError(f"{path}: expected {refused}")
        if not found.numbers or not found.words:
            continue
        said = (
            f"{path}: column '{name}' is read as categories: it has numbers in "
            f"{found.numbers:,} rows and words in {found.words:,}, the first "
            f"{found.word!r} in {place_of(path, found.row)}"
        )
        warnings.warn(said, UserWarning, stacklevel=2)


def _refusal(path: str, name: str, column: _Words) -> str | None:
    """What is expected of a column whose words are no categories; None: they are."""
    numbers, words, row, word, kinds, is_grouped = column
    where = f"found {word!r} in {place_of(path, row)}"
    if is_grouped:
        return (
            f"numbers in column '{name}', {where}; {_pandas(path, thousands=',')} "
            "reads such numbers, and to_csv writes them without commas"
        )
    if words and numbers >= _MOSTLY * (numbers + words):
        return (
            f"numbers in column '{name}', as in {numbers:,} of {numbers + words:,} "
            f"rows, {where}; mend it, or leave out the row or the column"
        )
    if kinds:
        return (
            f"numbers or at most {CATEGORIES} different words in column '{name}', "
            f"found {kinds:,} (such as {word!r}); leave it out (columns=...), or "
            "write Parquet, where a column of categories may have more"
        )
    return None


def place_of(path: str, row: int) -> str:
    """What a sentence calls a row of the data: its line, as an editor counts them."""
    try:
        with io.TextIOWrapper(
            files.open_bytes(path, opener(path)), encoding="latin-1", newline=""
        ) as text:
            return f"line {_lines(text, _separator(path), row + 1)}"
    except (OSError, EOFError, lzma.LZMAError, csv.Error, StopIteration):
        return f"row {row} of the data (counted from 0)"  # the file is another one now


def _lines(text: Any, separator: str, number: int) -> int:
    """The line in which record ``number`` begins: that of names is record 0.

    Blank lines are none, and words in quotes may go over several.
    """
    reader = csv.reader(text, delimiter=separator)
    ends = ((bool(values), reader.line_num) for values in reader)
    starts = (
        before + 1
        for (_, before), (is_record, _) in itertools.pairwise(
            itertools.chain([(False, 0)], ends)
        )
        if is_record
    )
    return next(itertools.islice(starts, number, None))


def doubt(names: Sequence[str]) -> str:
    """What to say of names most of which are numbers that do not count columns."""
    numbers = [name for name in names if re.match(_NUMBER, name)]
    counts = numbers == [str(j) for j in range(len(numbers))]  # as pandas does
    if counts or 2 * len(numbers) <= len(names):
        return ""
    return (
        "the first line is taken for names of columns, but holds numbers; a file of "
        "values alone needs a line of names above them"
    )


def _stamp(path: str) -> FileStamp:
    """The file as it is; one sentence where it is none."""
    files.open_regular(path).close()
    return FileStamp.of(path)


@functools.lru_cache(maxsize=4)
def _converted(path: str, stamp: FileStamp) -> _Converted:
    """The table, read once as long as the file is the same."""
    table = _read(path)
    with files.room_for("a temporary Parquet file"):
        made = _Temporary()
        pq.write_table(table, made.name, row_group_size=_ROW_GROUP)
    facts = [_facts(name, table[name]) for name in table.column_names]
    found = ((name, _words(table[name])) for name in table.column_names)
    words = {name: column for name, column in found if column is not None}
    return _Converted(made, facts, words)


def _words(column: Any) -> _Words | None:
    """What a column of words has, of numbers too; None where it is of another kind."""
    if not _is_words(column.type):
        return None
    text = column.cast(pa.string())
    is_number = pc.match_substring_regex(text, _NUMBER)
    is_word = pc.invert(pc.or_(is_number, pc.is_in(text, pa.array(_marks()))))
    is_grouped = pc.match_substring_regex(text, _GROUPED)
    numbers, words, grouped = (
        pc.sum(rows).as_py() or 0 for rows in (is_number, is_word, is_grouped)
    )
    row = pc.index(is_word if words else text.is_valid(), True).as_py()
    is_many = not pa.types.is_dictionary(column.type)
    kinds = pc.count_distinct(text).as_py() if is_many else 0
    word = text[row].as_py() if row >= 0 else ""
    return _Words(numbers, words, row, word, kinds, 0 < words == grouped)


def _marks() -> list[str]:
    """What stands for a missing number."""
    return [*pa.csv.ConvertOptions().null_values, *_MISSING]


def _read(path: str) -> Any:
    """The file as a table; words that repeat are categories."""
    tab = _separator(path)
    _check_head(path, tab)
    convert = pa.csv.ConvertOptions(
        auto_dict_encode=True,
        auto_dict_max_cardinality=CATEGORIES,
        null_values=_marks(),
    )
    parse = pa.csv.ParseOptions(delimiter=tab)
    options = {"parse_options": parse, "convert_options": convert}
    try:
        table = pa.csv.read_csv(_packed(path), **options)
        names = table.column_names
    except (OSError, EOFError, lzma.LZMAError) as error:
        if (
            getattr(error, "errno", None) is not None
        ):  # of the system; those of a decoder have none
            raise
        raise ValueError(
            f"{path}: expected a whole compressed file, found damage or another "
            f"format ({error})"
        ) from None
    except UnicodeDecodeError:
        raise _other_text(path, "the line of names") from None
    except (pa.ArrowException, ValueError) as error:
        reason = _reason(path, error, options)
        raise ValueError(
            f"{path}: expected a table, a line of names and lines with a value for "
            f"each of them, found{reason}"
        ) from None
    if twice := [name for name, count in Counter(names).items() if count > 1]:
        said = doubt(names) and f"; {doubt(names)}"
        raise ValueError(
            f"{path}: expected columns with different names, found '{twice[0]}' "
            f"twice{said}"
        )
    if table.num_rows == 0:
        raise ValueError(
            f"{path}: expected rows below the line of names, found the end of the file"
        )
    _refuse_other_text(path, table)
    for place, name in enumerate(names):
        if _is_words(table[place].type):
            table = table.set_column(place, name, _without_empty(table[place]))
    return table


def _refuse_other_text(path: str, table: Any) -> None:
    """Refuse words that are not UTF-8, which pyarrow reads as bytes."""
    for name, kind in zip(table.column_names, table.schema.types, strict=True):
        words = kind.value_type if pa.types.is_dictionary(kind) else kind
        if pa.types.is_binary(words):
            raise _other_text(path, f"column '{name}'")


def _other_text(path: str, where: str) -> ValueError:
    return ValueError(
        f"{path}: expected text in UTF-8, found other bytes in {where}; "
        f"{_pandas(path, encoding='latin-1')} reads most of such files, and to_csv "
        "writes UTF-8"
    )


def _pandas(path: str, **options: str) -> str:
    """How pandas reads the table with these options."""
    if _separator(path) == "\t":
        options["sep"] = "\t"
    given = [repr(path), *(f"{name}={value!r}" for name, value in options.items())]
    return f"pandas.read_csv({', '.join(given)})"


def _packed(path: str) -> Any:
    """What pyarrow reads: it unpacks by the name, but for xz."""
    return lzma.open(path) if path.lower().endswith(".xz") else path


def _is_words(kind: Any) -> bool:
    return bool(pa.types.is_dictionary(kind) or pa.types.is_string(kind))


def _without_empty(column: Any) -> Any:
    """A column whose empty words are missing, as an empty number is."""
    text = column.cast(pa.string())
    text = pc.if_else(pc.equal(pc.utf8_trim_whitespace(text), ""), None, text)
    return text.dictionary_encode() if pa.types.is_dictionary(column.type) else text


def _separator(path: str) -> str:
    """What is between the values of a line, by the name of the file."""
    return "\t" if files.ending(path) == ".tsv" else ","


def _check_head(path: str, expected: str) -> None:
    """Refuse a table in UTF-16, or whose line of names has other separators."""
    try:
        with pa.input_stream(_packed(path)) as stream:  # decompresses
            head = stream.read(_HEAD_BYTES)
    except (OSError, EOFError, lzma.LZMAError):  # reading the table says why
        return
    if head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        raise ValueError(
            f"{path}: expected text in UTF-8, found UTF-16; "
            f"{_pandas(path, encoding='utf-16')} reads it, and to_csv writes UTF-8"
        )
    line = head.decode(errors="replace").split("\n")[0]
    for found in ";\t,":
        if expected not in line and found in line:
            raise ValueError(
                f"{path}: expected {_SEPARATORS[expected]} between the names in the "
                f"first line, found {_SEPARATORS[found]}; pandas.read_csv('{path}', "
                f"sep={found!r}) reads it, and to_csv writes it with commas"
            )


def _reason(path: str, error: Exception, options: dict[str, Any]) -> str:
    """What was found in a file; one thread knows in which row, several do not."""
    try:
        one = pa.csv.ReadOptions(use_threads=False)
        pa.csv.read_csv(_packed(path), one, **options)
    except (pa.ArrowException, ValueError) as again:
        error = again
    said = str(error).splitlines()[0]
    if (misfit := _MISFIT.search(said)) is None:
        return f": {said}"
    row, expected, count = map(int, misfit.groups()[:3])
    where = place_of(path, row - 2)
    return f" {count} instead of {expected} values in {where}: {misfit[4]}"


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
