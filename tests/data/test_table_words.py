"""Words among the numbers of a CSV column: mistakes, categories, missing numbers."""

import re

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
