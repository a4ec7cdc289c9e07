"""What a person sees: words that are meant, tables in text, lines that fit."""

import bz2
import contextlib
import gzip
import json
import lzma
import os
import re
import subprocess
import sys

import numpy as np
import pytest

from tests.cases.cli import refused
from widemargin import load_model, save_svmlight
from widemargin.cli import main, output
from widemargin.cli.completion import _script
from widemargin.cli.options import commands
from widemargin.parameters import meant
from widemargin.solution import NOT_CONVEX, Status
from widemargin.solvers.driver.advice import BESIDE_SCALING


@pytest.fixture
def people(tmp_path, monkeypatch):
    """A table in text: a column counts the rows, one has words, one is the label."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    lines = ["id,age,job,bought"]
    for i, age in enumerate(rng.integers(18, 80, 60)):
        job = ("clerk", "smith")[i % 2]
        lines.append(f"{i},{age},{job},{'yes' if age > 40 else 'no'}")
    (tmp_path / "people.csv").write_text("\n".join(lines) + "\n")
    return tmp_path


def test_a_table_in_text_is_read_with_its_types(people, capsys):
    asked = ["people.csv", "m.wm", "--label", "bought", "--columns", "age,job"]
    assert main(["train", *asked, "--scale", "standard"]) == 0
    said = capsys.readouterr()
    assert "id: whole numbers, age: whole numbers, job: words (2 of them)" in said.err
    assert "seems to number the rows" not in said.err
    names = load_model("m.wm").meta["feature_names"]
    assert names == ["age", "job=clerk", "job=smith"]
    assert main(["predict", "m.wm", "people.csv"]) == 0
    found = capsys.readouterr().out.split()
    truth = [
        line.split(",")[3] for line in (people / "people.csv").read_text().split()[1:]
    ]
    assert np.mean(np.array(found) == truth) > 0.9


def test_a_column_that_numbers_the_rows_is_told(people, capsys):
    assert main(["train", "people.csv", "m.wm", "--label", "bought"]) in (0, 1)
    said = capsys.readouterr().err
    assert "id seems to number the rows" in said
    assert "leave it out with --columns age,job" in said


def test_a_column_without_a_name_is_told(people, capsys):
    path = people / "people.csv"
    path.write_text(path.read_text().removeprefix("id"))
    assert main(["train", "people.csv", "m.wm", "--label", "bought"]) in (0, 1)
    said = capsys.readouterr().err
    assert "people.csv: '': whole numbers, age: whole numbers" in said
    assert "'' seems to number the rows" in said


def test_a_fit_of_some_problems_that_was_stopped_says_so(people, capsys):
    rows = "".join(f"{i % 3} 1:{i} 2:{i % 7}\n" for i in range(60))
    (people / "rows.svm").write_text(rows)
    assert main(["train", "rows.svm", "m.wm", "--time-limit", "1e-6"]) == 1
    said = capsys.readouterr().out
    assert "rest: stopped (time_limit) before anything useful was proved" in said


def test_a_table_is_no_svmlight_text(people, capsys):
    assert main(["convert", "people.csv", "people.svm"]) == 2
    assert "a model or svmlight text, found a .csv\n" in capsys.readouterr().err
    (people / "shards").mkdir()
    assert main(["convert", "shards", "people.svm"]) == 2
    assert capsys.readouterr().err.endswith("found a folder\n")


def test_columns_beyond_those_of_a_model_without_names_are_named(people, capsys):
    (people / "rows.svm").write_text("1 1:1 2:3\n-1 1:2 2:1\n")
    assert main(["train", "rows.svm", "m.wm"]) == 0
    assert main(["predict", "m.wm", "people.csv"]) == 2
    said = capsys.readouterr().err
    assert "found 6: id, age, job=clerk, job=smith, bought=" in said
    assert "; --label leaves a column out" in said


def test_words_among_numbers_are_told(people, capsys):
    lines = [f"{'5more' if i % 4 else i % 3},{i % 2}" for i in range(40)]
    (people / "cars.csv").write_text("\n".join(["doors,y", *lines]) + "\n")
    assert main(["train", "cars.csv", "m.wm", "--label", "y"]) in (0, 1)
    said = capsys.readouterr().err
    assert "widemargin: cars.csv: column 'doors' is read as categories: it has" in said
    assert "Warning" not in said
    (people / "cars.csv").write_text(
        "\n".join(["doors,y", *["1,0"] * 30, "x,1"]) + "\n"
    )
    message = refused(capsys, "train", "cars.csv", "m.wm", "--label", "y")
    assert (
        "expected numbers in column 'doors', as in 30 of 31 rows, found 'x'" in message
    )


def test_a_table_that_is_none_is_one_sentence(people, capsys):
    (people / "bad.csv").write_text("a,b\n1,2\n3\n")
    assert "bad.csv: expected a table" in refused(
        capsys, "train", "bad.csv", "m.wm", "--label", "b"
    )
    message = refused(capsys, "train", "people.csv", "m.wm")
    assert "expected --label NAME, the column of the labels: id, age" in message


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("train a m.wm --kernel rfb", "(did you mean rbf?)"),
        ("train a m.wm --loss hinges", "(did you mean hinge?)"),
        ("train a m.wm --solver irwl", "(did you mean irwls?)"),
        ("train a m.wm --gamma scael", "(did you mean scale?)"),
        ("trian a m.wm", "(did you mean train?)"),
        ("train a m.wm -s 2", "-s of LIBSVM: write `widemargin train a m.wm --type"),
        (
            "train a m.wm -t 2",
            "write `widemargin train a m.wm --kernel rbf --gamma auto",
        ),
        ("train a m.wm -v 5", "-v of LIBSVM: write --cv K"),
        ("train a m.wm -b 1", "--gamma auto --probability"),
        ("train a m.wm -w-1 5", "--class-weight=-1:5`; of LIBLINEAR: write"),
        ("train a m.wm -wi 5", "write --class-weight LABEL:FACTOR"),
        ("train a m.wm -c 2", "write -C"),
        ("train a -", "expected a file as the model, found '-'"),
    ],
)
def test_words_that_are_meant(capsys, typed, meant):
    assert meant in refused(capsys, *typed.split())


def test_a_far_word_is_not_guessed():
    assert meant("cosine", ["rbf", "linear"]) == ""


@contextlib.contextmanager
def piped(lines):
    """A pipe with these bytes in it as the standard input of this process."""
    reader, writer = os.pipe()
    os.write(writer, lines)
    os.close(writer)
    before = os.dup(0)
    os.dup2(reader, 0)
    os.close(reader)
    try:
        yield
    finally:
        os.dup2(before, 0)
        os.close(before)


@pytest.mark.skipif(sys.platform == "win32", reason="has no /dev/stdin")
def test_a_line_stands_for_standard_input(tmp_path, capsys):
    lines = b"".join(b"%d 1:%d\n" % (i % 2, 10 * (i % 2) + i) for i in range(20))
    model = str(tmp_path / "m.wm")
    with piped(lines):
        assert main(["train", "-", model]) == 0
    assert "20 rows x 1 features" in capsys.readouterr().out
    with piped(lines):
        assert main(["predict", model, "-"]) == 0
    assert len(capsys.readouterr().out.split()) == 20


@pytest.mark.skipif(sys.platform == "win32", reason="has no /dev/stdin")
@pytest.mark.parametrize("pack", [gzip.compress, bz2.compress, lzma.compress])
def test_standard_input_may_be_compressed(tmp_path, capsys, pack):
    lines = b"".join(b"%d 1:%d\n" % (i % 2, 10 * (i % 2) + i) for i in range(20))
    model = str(tmp_path / "m.wm")
    with piped(pack(lines)):
        assert main(["train", "-", model]) == 0
    with piped(pack(lines)):
        assert main(["train", "-", model, "--memory-limit", "500M"]) == 0
    assert capsys.readouterr().out.count("20 rows x 1 features, ") == 2
    with piped(pack(lines)):
        assert main(["predict", model, "-", "--output", "/dev/stdout"]) == 0
    assert len(capsys.readouterr().out.split()) == 20


class Terminal:
    """A stream that is a terminal."""

    def isatty(self):
        return True


def test_lines_are_as_wide_as_the_terminal(monkeypatch):
    monkeypatch.setenv("COLUMNS", "40")
    words = "a sentence that is far too long for a terminal of forty columns"
    lines = output.wrapped(f"{words}\nshort\n", Terminal()).split("\n")
    assert max(map(len, lines)) <= 40
    assert " ".join(" ".join(lines).split()) == f"{words} short"
    assert output.wrapped(words, None) == words
    facts = '{"name": "' + "x " * 50 + '"}'
    assert output.wrapped(facts, Terminal()) == facts


def test_a_shell_completes_commands_options_and_values(capsys):
    assert main(["completion", "bash"]) == 0
    script = capsys.readouterr().out
    assert script == _script(commands())
    for typed, place, found in [
        ("widemargin tr", 1, "train"),
        ("widemargin train --kern", 2, "--kernel"),
        ("widemargin train --kernel r", 3, "rbf"),
        ("widemargin train --solver ir", 3, "irwls"),
        ("widemargin train --gamma sc", 3, "scale"),
        ("widemargin train exam", 2, ""),
    ]:
        tail = f'COMP_WORDS=({typed}); COMP_CWORD={place}; _widemargin; echo "${{COMPREPLY[@]}}"'
        done = subprocess.run(["bash", "-c", f"{script}\n{tail}"], capture_output=True)
        assert done.stdout.decode().strip() == found
    assert main(["completion", "zsh"]) == 0
    assert (
        capsys.readouterr().out
        == f"autoload -Uz bashcompinit && bashcompinit\n{script}"
    )


def test_a_kernel_has_no_solver_of_linear_machines(capsys):
    typed = "train a m.wm --kernel rbf --solver active_set"
    message = refused(capsys, *typed.split())
    assert "--solver active_set is of linear machines" in message
    assert "solver='" not in message


def test_nothing_asked_for_lists_the_commands(capsys):
    with pytest.raises(SystemExit) as stop:
        main([])
    assert stop.value.code == 2
    out, err = capsys.readouterr()
    head, *lines = err.splitlines()
    assert (out, head) == (
        "",
        "widemargin: expected a command (see widemargin COMMAND --help):",
    )
    assert [line.split()[0] for line in lines] == list(commands())
    assert "  train       Train a model." in lines


def test_a_missing_table_is_told_with_the_name_that_is_meant(people, capsys):
    words = "no such file: poeple.csv (did you mean people.csv?)"
    assert words in refused(capsys, "train", "poeple.csv", "m.wm", "--label", "bought")
    for asked in (["people.cvs", "m.wm"], ["people.cvs", "m.wm", "--label", "bought"]):
        message = refused(capsys, "train", *asked)
        assert "no such file: people.cvs (did you mean people.csv?)" in message


def test_a_table_on_standard_input_is_told_to_be_a_file(tmp_path, capsys):
    with piped(b"a,b\n1,2\n"):
        message = refused(capsys, "train", "-", str(tmp_path / "m"), "--label", "b")
    assert "give a table as a file, not on standard input" in message


def test_a_model_of_a_table_predicts_no_standard_input(tmp_path, capsys):
    """It was read as svmlight text: "expected index:value, found ..."."""
    table, model = tmp_path / "t.csv", str(tmp_path / "m.wm")
    table.write_text("age,pay,y\n1,2,a\n3,1,b\n2,9,a\n5,1,b\n")
    assert main(["train", str(table), model, "--label", "y"]) == 0
    capsys.readouterr()
    with piped(table.read_bytes()):
        message = refused(capsys, "predict", model, "-")
    assert message == (
        "widemargin: /dev/stdin: expected a table with the columns of the model (age, "
        "pay), found what is read as svmlight text; give a table as a file, not on "
        "standard input\n"
    )


def test_a_kernel_over_memory_names_the_options(tmp_path, capsys):
    data, model = "examples/data/a9a.svm.bz2", str(tmp_path / "m.wm")
    asked = ["train", data, model, "--kernel", "rbf", "--max-iter", "1"]
    asked.append("--memory-limit")
    message = refused(capsys, *asked, "5M")
    assert f"{data}: --memory-limit must be at least " in message
    assert "A low rank (--rank 300) takes less" in message
    least = re.search(r"at least ([\d,]+) bytes", message)[1].replace(",", "")
    assert main([*asked, least]) == 1  # one iteration is too few


def test_types_are_said_of_data_that_can_be_used(people, capsys):
    words = refused(capsys, "train", "people.csv", "m.wm", "--label", "bougth")
    assert "did you mean 'bought'" in words


def test_types_of_many_columns_are_cut_with_dots(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    names = [*(f"c{j}" for j in range(14)), "y"]
    rows = np.column_stack(
        [np.random.default_rng(0).normal(size=(30, 14)), np.arange(30) % 2]
    )
    lines = [",".join(names), *(",".join(f"{v:g}" for v in row) for row in rows)]
    (tmp_path / "wide.csv").write_text("\n".join(lines) + "\n")
    assert main(["train", "wide.csv", "m.wm", "--label", "y"]) == 0
    said = capsys.readouterr().err
    assert "c8: numbers, ..., c13: numbers, y: whole numbers" in said


def test_help_names_the_tables_that_labels_are_in(capsys):
    with pytest.raises(SystemExit):
        main(["train", "--help"])
    assert "labels: a column of CSV or Parquet" in " ".join(
        capsys.readouterr().out.split()
    )


UNEVEN = {
    "train.csv": "the scales of b and a are 1,0",
    "train.svm": "the scales of column 2 and column 1 are 1,0",
}


@pytest.mark.parametrize("path", UNEVEN)
def test_columns_of_other_scales_are_told(path, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    X = np.random.default_rng(0).uniform(-1, 1, size=(40, 2)) * [1000.0, 1.0]
    X[0], X[1] = [1030.0, 1.0], 0.0  # not stored in text
    y = np.where(X[:, 0] > 0, 1, -1)
    if path == "train.csv":
        X[:, 0] *= 1.03 * X[:, 1].std() / X[:, 0].std() * 1000
        table = np.column_stack([X, y])
        np.savetxt(path, table, delimiter=",", header="a,b,y", comments="")
        asked = ["train", path, "m.wm", "--label", "y"]
    else:
        save_svmlight(X, y, path)
        asked = ["train", path, "m.wm"]
    kind = "maxabs" if path == "train.svm" else "standard"
    main(asked)
    said = capsys.readouterr().err
    assert UNEVEN[path] in said
    assert f"--scale {kind}" in said
    main([*asked, "--scale", kind])
    assert "--scale" not in capsys.readouterr().err


def test_many_numbers_as_labels_are_told_of_regression(people, capsys):
    main(["train", "people.csv", "m.wm", "--label", "age", "--columns", "job"])
    said = capsys.readouterr().err
    lines = (people / "people.csv").read_text().splitlines()
    n = len({line.split(",")[1] for line in lines}) - 1
    assert f"{n} different numbers, each of them a class; --type regress" in said
    for asked in ["--label", "bought"], ["--label", "age", "--type", "regress"]:
        main(["train", "people.csv", "m.wm", *asked, "--columns", "job"])
        assert "--type regress" not in capsys.readouterr().err


def test_advice_names_options(people, capsys):
    asked = ["people.csv", "m.wm", "--label", "bought", "--columns", "age,job"]
    assert main(["train", *asked, "--max-iter", "1", "--tol", "1e-9"]) == 1
    said = capsys.readouterr().out
    assert main(["train", *asked, "--max-iter", "1", "--tol", "1e-9", "--json"]) == 1
    assert json.loads(capsys.readouterr().out)["message"] in said
    assert "Stopped by --max-iter 1 before anything useful was proved" in said
    assert (
        "Raise --max-iter or leave it out, scale the features (--scale standard)"
        in said
    )


@pytest.mark.parametrize("status", Status)
def test_no_advice_speaks_of_parameters(status):
    said = f"{status.advice} {BESIDE_SCALING.get(status, '')} {NOT_CONVEX}"
    said = output.with_options(said)
    assert not re.search(r"[a-z]_[a-z]|=|'|Scaler|[^-]\btol\b", said)
