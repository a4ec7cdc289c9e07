"""The command line: which names and values it takes, and what it says of others."""

import re

import pytest

from widemargin import load_model, save_svmlight
from widemargin.cli import main
from widemargin.cli.options import parse

TRAIN = ["train", "train.svm", "m.wm"]


@pytest.fixture
def here(tmp_path, monkeypatch):
    """A current folder with data and a model of each kind in it."""
    monkeypatch.chdir(tmp_path)
    save_svmlight([[1, 2], [3, 5], [0, 1]], [1, -1, 1], "train.svm")
    assert main(TRAIN) == 0
    for name in ("m.model", "m.onnx"):
        assert main(["convert", "m.wm", name]) == 0
    return tmp_path


def refused(capsys, *arguments):
    """The one line of a command that must fail as bad usage or input."""
    capsys.readouterr()
    try:
        status = main(arguments)
    except SystemExit as stop:
        status = stop.code
    out, err = capsys.readouterr()
    assert (status, out, err.count("\n")) == (2, "", 1)
    return err


# -- names -----------------------------------------------------------------------------


@pytest.mark.parametrize("output", ["a.onnx", "a.wm", "a.svm"])
def test_a_missing_file_to_convert_is_named(here, capsys, output):
    message = refused(capsys, "convert", "mm.wm", output)
    assert message == "widemargin: no such file: mm.wm (did you mean m.wm?)\n"


def test_onnx_models_cannot_be_read(here, capsys):
    for command in (
        "convert m.onnx new.wm",
        "convert m.onnx new.svm",
        "predict m.onnx train.svm",
        "inspect m.onnx",
    ):
        assert refused(capsys, *command.split()) == (
            "widemargin: m.onnx: ONNX models can be written, but not read; "
            "give the .wm model that it was made from\n"
        )


def test_models_of_liblinear_are_to_be_converted_first(here, capsys):
    for command in ("predict m.model train.svm", "inspect m.model"):
        assert refused(capsys, *command.split()) == (
            "widemargin: m.model: expected a model of widemargin, found one of "
            "LIBLINEAR; convert it first: widemargin convert m.model m.wm\n"
        )


@pytest.mark.parametrize(
    "ending",
    [".svm", ".SVM", ".svm.xz", ".wm.gz", ".txt", ".csv", ".html", ".onnx", ".model"],
)
def test_no_model_is_trained_under_the_name_of_something_else(here, capsys, ending):
    message = refused(capsys, "train", "train.svm", f"new{ending}")
    found = ending.lower()
    also = " (widemargin convert makes the others)"
    also = also if ending in (".onnx", ".model") else ""
    assert message == (
        f"widemargin: new{ending}: expected a name for a model to train, which ends "
        f"in .wm{also}, found {found!r}\n"
    )
    assert not (here / f"new{ending}").exists()


@pytest.mark.parametrize("name", ["new", "new.bin", "new.wm", "new.WM", "v1.2"])
def test_other_names_of_models_are_taken(here, name):
    assert main(["train", "train.svm", name]) == 0
    assert load_model(name).n_features == 2


@pytest.mark.parametrize("command", ["train train.svm", "convert train.svm"])
@pytest.mark.parametrize("name", ["", "-"])
def test_a_file_has_a_name(here, capsys, monkeypatch, command, name):
    message = refused(capsys, *command.split(), name)
    assert f"as the {'model' if command[0] == 't' else 'output'}, found {name!r}" in (
        message
    )
    assert f"the report, found {name!r}" in refused(capsys, *TRAIN, "--report", name)
    assert f"the test, found {name!r}" in refused(capsys, *TRAIN, "--test", name)
    assert "the model, found ''" in refused(capsys, "predict", "", "train.svm")
    assert not (here / "-").exists()


def test_predictions_go_to_the_screen_under_the_name_of_it(here, capsys):
    assert main(["predict", "m.wm", "train.svm"]) == 0
    shown = capsys.readouterr().out
    assert main(["predict", "m.wm", "train.svm", "--output", "-"]) == 0
    assert capsys.readouterr().out == shown
    assert not (here / "-").exists()


@pytest.mark.parametrize("name", ["m2.onnx.gz", "m2.wm.xz", "m2.model.bz2"])
def test_models_are_not_compressed(here, capsys, name):
    message = refused(capsys, "convert", "m.wm", name)
    assert message.endswith(f".wm, .model, .onnx, found {name[2:]!r}\n")
    assert not (here / name).exists()


@pytest.mark.parametrize("name", ["r.txt", "r.pdf", "r.wm", "r", "r.html.gz"])
def test_a_report_is_a_page(here, capsys, name):
    message = refused(capsys, "train", "train.svm", "new.wm", "--report", name)
    assert f"{name}: expected a name for a report, which ends in .html or " in message
    assert not (here / "new.wm").exists()


def test_a_page_may_have_any_ending_of_pages(here):
    assert main([*TRAIN, "--report", "r.HTM"]) == 0
    assert (here / "r.HTM").exists()


# -- values ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("option", "value", "words"),
    [
        ("--tol", "5", "expected at most 1, found '5'"),
        ("--tol", "0", "expected a positive number, found '0'"),
        ("--memory-limit", "1X", "expected at least 16K, in bytes or with K, M, G"),
        ("--memory-limit", "1GB", "or T behind, such as 500M, found '1GB'"),
        ("--memory-limit", "100", "such as 500M, found '100'"),
        ("--memory-limit", "9" * 400, "expected at least 16K"),
        ("--columns", "a,b,a", "expected different names with commas between"),
        ("--columns", "", "expected different names with commas between, found ''"),
        ("--memory-limit", "-1G", "expected"),
    ],
)
def test_the_parser_refuses_values_in_its_own_style(here, capsys, option, value, words):
    message = refused(capsys, *TRAIN, option, value)
    assert message.startswith(f"widemargin train: argument {option}: ")
    assert words in message


@pytest.mark.parametrize(
    ("size", "value"),
    [
        ("16384", 1 << 14),
        ("16K", 1 << 14),
        ("1.5M", 3 << 19),
        ("2g", 2 << 30),
        ("20KiB", 20 << 10),
        ("20 MiB", 20 << 20),
        ("4GiB", 4 << 30),
        ("1T", 1 << 40),
    ],
)
def test_sizes_of_memory_have_suffixes(size, value):
    assert parse([*TRAIN, "--memory-limit", size]).memory_limit == value


def test_an_option_of_another_command_is_named_with_it(here, capsys):
    assert "unknown option --scores (predict has it)" in refused(
        capsys, *TRAIN, "--scores"
    )
    message = refused(capsys, "predict", "m.wm", "train.svm", "--kernel", "rbf")
    assert "unknown option --kernel (train has it)" in message


def test_a_mistaken_index_is_seen_where_memory_ends(here, capsys):
    (here / "big.svm").write_text("1 999999999999999:1\n-1 1:2\n")
    message = refused(capsys, "train", "big.svm", "new.wm")
    said = "widemargin: out of memory: big.svm, 2 rows x 999,999,999,999,999 columns ("
    assert message.startswith(said)


@pytest.mark.parametrize(
    ("option", "meant"),
    [
        ("--cost", None),
        ("--cache", None),
        ("--quux", None),
        ("--tset", "--test"),
        ("--max-iters", "--max-iter"),
        ("--intercpt", "--intercept"),
        ("--memorylimit=1G", "--memory-limit"),
    ],
)
def test_only_near_misses_are_suggested(here, capsys, option, meant):
    message = refused(capsys, *TRAIN, option)
    assert (f"(did you mean {meant}?)" in message) == (meant is not None)
    assert ("did you mean" in message) == (meant is not None)


# -- columns ---------------------------------------------------------------------------


def test_the_report_counts_columns_as_the_file_does(here):
    save_svmlight([[0, 2], [3, 5], [0, 1]], [1, -1, 1], "zero.svm", zero_based=True)
    for data, numbers in (("train.svm", "12"), ("zero.svm", "01")):
        assert main(["train", data, "new.wm", "--report", "r.html"]) == 0
        page = (here / "r.html").read_text()
        assert set(re.findall(r">column (\d)<", page)) == set(numbers)
