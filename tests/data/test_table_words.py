"""Words among the numbers of a CSV column: mistakes, categories, missing numbers."""

import re

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from widemargin import open_rows

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
        f"{20 * count + 2} rows, found 'abc' in row {20 * count + len(before)} of the "
        "data (counted from 0); mend it, or leave out the row or the column"
    )
    with pytest.raises(ValueError, match=f"^{re.escape(said)}$"):
        open_rows(path, label="y")
    assert open_rows(path, label="y", columns=["b"]).names == ["b"]
    assert len(open_rows(path, label="a", columns=["b"]).vector("label")) > 20


def test_words_among_numbers_are_categories_with_a_warning(table):
    path = table(["2", "3", "5more", "4"] * 3)
    said = "column 'a' is read as categories: it has numbers in 9 rows and words in 3"
    with pytest.warns(UserWarning, match=f"{said}, the first '5more' in row 2") as told:
        rows = open_rows(path, label="y", columns=["a"])
    assert rows.names == ["a=2", "a=3", "a=4", "a=5more"]
    assert len(told) == 1


def test_words_without_numbers_need_no_warning(table):
    rows = open_rows(table(["x", "?", "NA"] * 3), label="y")
    assert rows.names == ["a=?", "a=NA", "a=x", "b"]


@pytest.mark.parametrize("mark", ["", "?", "NA", "nan", "null", "None", "<NA>", "N/A"])
def test_marks_of_missing_numbers(table, mark):
    rows = open_rows(table([*NUMBERS, mark]), label="y")
    assert rows.names == ["a", "b"]
    with pytest.raises(
        ValueError, match="expected a value in column 'a', found none in row 20"
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
    for name in ("t.parquet", "t.csv"):
        rows = open_rows(tmp_path / name, label="a", columns=["y"])
        said = (
            f"{tmp_path / name}: expected a value in column 'a', found none in row 5 of "
            "the data (counted from 0); fill it, or leave out the row or the column"
        )
        with pytest.raises(ValueError, match=f"^{re.escape(said)}$"):
            rows.vector("label")
        if kinds == 2:
            with pytest.raises(ValueError, match=f"^{re.escape(said)}$"):
                open_rows(tmp_path / name, label="y")
