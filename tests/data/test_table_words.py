"""Words among the numbers of a CSV column: mistakes, categories, missing numbers."""

import gzip
import lzma
import re
import warnings

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from widemargin import open_rows
from widemargin.data.outofcore.delimited import place_of

NUMBERS = [str(i / 2) for i in range(20)]


@pytest.fixture
def table(tmp_path):
    """Writes a table with a column a; its path."""

    def write(values):
        path = tmp_path / "t.csv"
        lines = [f"{value},{i % 2},7" for i, value in enumerate(values)]
        path.write_text("\n".join(["a,y,b", *lines]) + "\n")
        return path

    return write


@pytest.mark.parametrize("count", [1, 4])  # up to 50 kinds, and more
@pytest.mark.parametrize("before", [[], ["?"]])
def test_a_word_among_numbers_is_refused(table, count, before):
    numbers = [str(i / 2) for i in range(20 * count)]
    path = table([*before, *numbers, "abc", "3"])
    said = (
        f"{path}: expected numbers in column 'a', as in {20 * count + 1} of "
        f"{20 * count + 2} rows, found 'abc' in line {20 * count + len(before) + 2}; "
        "mend it, or leave out the row or the column"
    )
    with pytest.raises(ValueError, match=f"^{re.escape(said)}$"):
        open_rows(path, label="y")
    assert open_rows(path, label="y", columns=["b"]).names == ["b"]
    assert len(open_rows(path, label="a", columns=["b"]).vector("label")) > 20


def test_words_among_numbers_are_categories_with_a_warning(table):
    path = table(["2", "3", "5more", "4"] * 3)
    said = "column 'a' is read as categories: it has numbers in 9 rows and words in 3"
    with pytest.warns(
        UserWarning, match=f"{said}, the first '5more' in line 4"
    ) as told:
        rows = open_rows(path, label="y", columns=["a"])
    assert rows.names == ["a=2", "a=3", "a=4", "a=5more"]
    assert len(told) == 1


def test_too_many_words_are_told_in_words_of_csv(table):
    """They were to be a dictionary column, which CSV has not."""
    path = table([f"n{i}" for i in range(100)])
    said = (
        f"{path}: expected numbers or at most 50 different words in column 'a', found "
        "100 (such as 'n0'); leave it out (columns=...), or write Parquet, where a "
        "column of categories may have more"
    )
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(ValueError, match=f"^{re.escape(said)}$"):
            open_rows(path, label="y")
        assert open_rows(path, label="a", columns=["b"]).shape == (100, 1)


@pytest.mark.parametrize("count", [1, 40])  # categories, and too many
@pytest.mark.parametrize("others", [[], ["999", "-12", "1.5e3", "?"]])
def test_separators_of_thousands_are_told(table, count, others):
    grouped = [f'"{i + 1},{i:03},500.5"' for i in range(2 * count)]
    path = table([*others, *grouped])
    said = (
        f"{path}: expected numbers in column 'a', found '1,000,500.5' in line "
        f"{len(others) + 2}; pandas.read_csv('{path}', thousands=',') reads such "
        "numbers, and to_csv writes them without commas"
    )
    with pytest.raises(ValueError, match=f"^{re.escape(said)}$"):
        open_rows(path, label="y")
    assert open_rows(path, label="y", columns=["b"]).names == ["b"]


def test_words_with_commas_are_words(table):
    path = table(['"1,234"', "Lima", '"12,34"', '"1,2345"'])
    rows = open_rows(path, label="y", columns=["a"])
    assert rows.names == ["a=1,234", "a=1,2345", "a=12,34", "a=Lima"]


def test_words_without_numbers_need_no_warning(table):
    rows = open_rows(table(["x", "?", "NA"] * 3), label="y")
    assert rows.names == ["a=?", "a=NA", "a=x", "b"]


@pytest.mark.parametrize("mark", ["", "?", "NA", "nan", "null", "None", "<NA>", "N/A"])
def test_marks_of_missing_numbers(table, mark):
    rows = open_rows(table([*NUMBERS, mark]), label="y")
    assert rows.names == ["a", "b"]
    with pytest.raises(
        ValueError, match="expected a value in column 'a', found none in line 22"
    ):
        rows.matvec([1.0, 1.0])


@pytest.mark.parametrize("kinds", [2, 60])  # categories, and too many
@pytest.mark.parametrize("empty", ["", " "])
def test_a_missing_word_is_refused_as_in_parquet(tmp_path, empty, kinds):
    """It was a category of its own."""
    words = [f"word{i % kinds}" for i in range(120)]
    given = pd.DataFrame({"a": words, "y": [0, 1] * 60})
    given["a"] = given["a"].where(given.index != 5, None)
    pq.write_table(
        pa.table({"a": pa.array(given["a"]).dictionary_encode(), "y": given["y"]}),
        tmp_path / "t.parquet",
    )
    given.fillna(empty).to_csv(tmp_path / "t.csv", index=False)
    places = {"t.parquet": "row 5 of the data (counted from 0)", "t.csv": "line 7"}
    for name, place in places.items():
        rows = open_rows(tmp_path / name, label="a", columns=["y"])
        said = (
            f"{tmp_path / name}: expected a value in column 'a', found none in "
            f"{place}; fill it, or leave out the row or the column"
        )
        with pytest.raises(ValueError, match=f"^{re.escape(said)}$"):
            rows.vector("label")
        if kinds == 2:
            with pytest.raises(ValueError, match=f"^{re.escape(said)}$"):
                open_rows(tmp_path / name, label="y")


# -- lines, as an editor counts them ---------------------------------------------------

BAD = {
    "word": ("abc,1,7", "expected numbers in column 'a', .* found 'abc' in line {};"),
    "few": (
        "3,1",
        "a value for each of them, found 2 instead of 3 values in line {}: 3",
    ),
    "many": ("3,1,7,9", "found 4 instead of 3 values in line {}: 3,1,7,9"),
    "none": (",1,7", "expected a value in column 'a', found none in line {};"),
}
# What is above the line of names, and above the row that is bad.
ABOVE = {
    "": ([], []),
    "blank lines": (["", ""], ["", "1,0,7", ""]),
    "words over lines": ([], ['4,"0\n",7', '4,"0",7']),
}


@pytest.mark.parametrize("bad", BAD)
@pytest.mark.parametrize("above", ABOVE)
@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("kind", ["t.csv", "t.csv.gz", "t.csv.xz", "t.tsv"])
@pytest.mark.cover(2)
def test_a_row_that_is_bad_is_told_by_its_line(tmp_path, bad, above, end, kind):
    """Words and missing values were counted by rows from 0, widths by rows from 1."""
    first, more = ABOVE[above]
    good = [f"{i / 2},{i % 2},7" for i in range(30)]
    text = "\n".join([*first, "a,y,b", *good, *more, BAD[bad][0], *good, ""])
    line = 1 + text[: text.index(f"\n{BAD[bad][0]}\n") + 1].count("\n")
    if kind == "t.tsv":
        text = text.replace(",", "\t")
    packed = {".gz": gzip.compress, ".xz": lzma.compress}.get(kind[-3:], bytes)
    (tmp_path / kind).write_bytes(packed(text.replace("\n", end).encode()))
    said = BAD[bad][1].format(line)
    said = said.replace(",", "[,\t]") if kind == "t.tsv" else said
    with pytest.raises(ValueError, match=said):
        open_rows(tmp_path / kind, label="y").matvec([1.0, 1.0])


def test_a_row_of_a_file_that_is_another_one_is_told_by_its_number(tmp_path):
    (tmp_path / "t.csv").write_text("a,y\n1,2\n")
    assert place_of(str(tmp_path / "t.csv"), 0) == "line 2"
    for name, row in (("t.csv", 7), ("none.csv", 7)):
        said = f"row {row} of the data (counted from 0)"
        assert place_of(str(tmp_path / name), row) == said


def test_a_row_of_csv_beside_parquet_is_told_by_its_own_line(tmp_path):
    rows = pd.DataFrame({"a": [1.0, 2.0, 3.0], "b": [1.0, 2.0, 3.0]})
    rows.to_parquet(tmp_path / "a.parquet", index=False)
    rows["a"] = [1.0, None, 3.0]
    rows.to_csv(tmp_path / "b.csv", index=False)
    with pytest.raises(ValueError, match="b.csv: .* found none in line 3;"):
        open_rows(tmp_path).matvec([1.0, 1.0])
