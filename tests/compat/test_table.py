"""The form of the table; `make compat` runs the tests that it speaks of."""

import ast

import pytest

from tests.compat import table
from tests.compat.runner import TESTS

KNOWN = {"test_a": ("passes", ""), "test_b[1]": ("fails", "no such penalty")}


def test_each_line_passes_or_says_why_not():
    version, known = table.read(table.PATH.read_text())
    assert version[0].isdigit()
    assert len(known) > 100
    for outcome, why in known.values():
        assert outcome in (table.PASSES, table.FAILS)
        assert bool(why) == (outcome == table.FAILS)
        assert why != table.UNKNOWN


def test_the_table_names_the_tests_of_scikit_learn():
    names = {test.partition("[")[0] for test in table.read(table.PATH.read_text())[1]}
    functions = {
        node.name
        for node in ast.walk(ast.parse(TESTS.read_text()))
        if isinstance(node, ast.FunctionDef)
    }
    assert len(names & functions) > 0.9 * len(names)


@pytest.mark.parametrize(
    ("found", "said"),
    [
        ({}, []),
        (
            {"test_a": ("fails", "E 1 != 2")},
            ["test_a passed before, and fails: E 1 !="],
        ),
        ({"test_b[1]": ("passes", "")}, ["says that it fails: no such penalty"]),
        ({"test_c": ("passes", "")}, ["test_c is not in the table: it passes."]),
        ({"test_b[1]": None}, ["test_b[1] is in the table only."]),
    ],
)
def test_every_difference_is_said(found, said):
    whole = {test: end for test, end in (KNOWN | found).items() if end}
    sentences = table.differences(KNOWN, whole)
    assert len(sentences) == len(said)
    assert all(part in one for part, one in zip(said, sentences, strict=True))


def test_writing_keeps_reasons_and_asks_for_new_ones():
    text = table.write("# why\nscikit-learn 1.0\n", "1.1", KNOWN)
    assert "fails | test_b[1] | ?" in text
    text = text.replace("| ?", "| no such penalty")
    text = table.write(text, "1.2", {"test_c": ("fails", "E"), **KNOWN})
    assert text.splitlines() == [
        "# why",
        "scikit-learn 1.2",
        "fails | test_c | ?",
        "passes | test_a",
        "fails | test_b[1] | no such penalty",
    ]
    assert table.read(text)[1]["test_b[1]"] == KNOWN["test_b[1]"]


def test_a_test_that_stands_twice_is_refused():
    with pytest.raises(ValueError, match="test_a twice"):
        table.read("scikit-learn 1.0\npasses | test_a\npasses | test_a\n")
