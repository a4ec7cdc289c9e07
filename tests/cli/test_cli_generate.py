"""``widemargin generate``: the rows of the library, in files; what it refuses."""

import io
import os
import signal
import subprocess
import sys

import numpy as np
import pytest
from pyarrow import parquet

from tests.cases.waits import HANGS
from widemargin import load_model, load_svmlight, make_ndc
from widemargin.cli import generate, main
from widemargin.cli.options import parse
from widemargin.data.ndc import ndc_blocks

NDC = ["generate", "ndc"]


@pytest.fixture
def here(tmp_path, monkeypatch):
    """An empty current folder."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def refused(capsys, *arguments):
    """The one line of a command that must fail and write nothing."""
    before = sorted(os.listdir())
    try:
        status = main(arguments)
    except SystemExit as stop:
        status = stop.code
    out, err = capsys.readouterr()
    assert (status, out, err.count("\n")) == (2, "", 1)
    assert sorted(os.listdir()) == before
    return err


def test_all_formats_hold_the_rows_of_the_library(here, capsys):
    X, y = make_ndc(500, 6, 3, expand=2.0, centers=5)
    options = [
        "--rows",
        "500",
        "--features",
        "6",
        "--seed",
        "3",
        "--expand",
        "2",
        "--centers",
        "5",
    ]
    for name in ("a.svm", "a.svm.xz", "a.parquet", "shards"):
        assert main([*NDC, name, *options]) == 0
    assert capsys.readouterr() == ("", "")
    for name in ("a.svm", "a.svm.xz"):
        rows, labels = load_svmlight(name)
        np.testing.assert_array_equal(rows.toarray(), X)
        np.testing.assert_array_equal(labels, y)
    table = parquet.read_table("a.parquet").to_pandas()
    np.testing.assert_array_equal(table.iloc[:, :-1], X)
    np.testing.assert_array_equal(table["label"], y)
    np.testing.assert_array_equal(np.load("shards/X-00000.npy"), X)
    np.testing.assert_array_equal(np.load("shards/y-00000.npy"), y)
    assert np.load("shards/X-00000.npy").dtype == np.int16


def test_data_to_train_and_test_on(here, capsys):
    for name, more in (("a.svm", []), ("t.svm", ["--part", "test"])):
        assert main([*NDC, name, "--rows", "2000", "--features", "8", *more]) == 0
    assert main(["train", "a.svm", "m.wm", "--test", "t.svm"]) in (0, 1)
    X, y = make_ndc(2000, 8, part="test")
    assert np.mean(load_model("m.wm").predict(X) == y) > 0.7


def test_dtypes(here):
    for dtype in ("int16", "float32", "float64"):
        assert main([*NDC, dtype, "--rows", "10", "--dtype", dtype]) == 0
        assert np.load(f"{dtype}/X-00000.npy").dtype == dtype


def test_defaults_are_those_of_the_library():
    options = parse([*NDC, "a", "--rows", "5"])
    given = {
        "n": options.features,
        "random_state": options.seed,
        "part": options.part,
        "expand": options.expand,
        "centers": options.centers,
    }
    assert {**make_ndc.__kwdefaults__, **given, "dtype": np.float64} == {
        **dict(zip(("n", "random_state"), make_ndc.__defaults__, strict=True)),
        **make_ndc.__kwdefaults__,
    }


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ("a.svm --rows 0", "generate: argument --rows: expected a positive whole number"),
        ("a.svm --rows 1e6", "whole number, found '1e6'"),
        ("a.svm", "generate: the following arguments are required: --rows"),
        ("a.svm --rows 9 --seed -1", "argument --seed: expected"),
        ("a.svm --rows 9 --seed x", "expected a whole number, 0 or larger, found 'x'"),
        ("a.svm --rows 9 --row 7 --sed 3", "unknown option --sed (did you mean --seed?)"),
        ("a.svm --rows 9 --expand 0", "--expand: expected a positive number, found '0'"),
        ("a.svm --rows 9 --expand 1e7",
         "widemargin: --expand must be a float in the range (0, 1e+06]. Got 1"),
        ("a.svm --rows 9 --features 5000",
         "widemargin: --features must be an int in the range [1, 4096]. Got 5000 instead.\n"),
        ("a.svm --rows 9 --centers 1", "widemargin: --centers must be an int in the range [2, "),
        ("a.svm --rows 9 --dtype int16",
         "widemargin: a.svm: expected no --dtype for svmlight text, found int16\n"),
        ("a.parquet --rows 9000 --expand 20000",
         "widemargin: --dtype must hold every value. Got int16 and the value "),
        ("a.csv --rows 9", "widemargin: a.csv: expected a name for data, which ends in .parquet"),
        ("none/a.svm --rows 9", "widemargin: no such folder: "),
        ("old --rows 9",
         "widemargin: expected a new name for a folder, found one of a folder: old\n"),
        ("old/ --rows 9", "found one of a folder: old/\n"),
    ],
)  # fmt: skip
def test_refusals(here, capsys, arguments, said):
    (here / "old").mkdir()
    assert said in refused(capsys, *NDC, *arguments.split())


def test_only_what_there_is_can_be_generated(here, capsys):
    assert "'nd'" in refused(capsys, "generate", "nd", "a.svm", "--rows", "9")


def test_parquet_without_its_extra(here, capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    assert refused(capsys, *NDC, "a.parquet", "--rows", "9") == (
        "widemargin: a Parquet file needs the extra 'parquet': "
        'pip install "widemargin[parquet]"\n'
    )


@pytest.mark.one_of(3)
@pytest.mark.parametrize("name", ["a.svm.gz", "a.parquet", "shards"])
def test_ctrl_c_leaves_nothing(here, name):
    code = (
        "import os, signal, sys\n"
        "from widemargin.__main__ import run\n"
        "from widemargin.cli import generate\n"
        "make = generate.ndc_blocks\n"
        "def press(*arguments, **options):\n"
        "    for number, block in enumerate(make(*arguments, **options)):\n"
        "        if number == 2: os.kill(os.getpid(), signal.SIGINT)\n"
        "        yield block\n"
        "generate.ndc_blocks = press\n"
        "sys.exit(run())"
    )
    process = subprocess.run(
        [sys.executable, "-c", code, *NDC, name, "--rows", "500000", "--features", "2"],
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        timeout=HANGS,
        check=False,
    )
    said = "widemargin: interrupted; nothing was written\n"
    assert (process.returncode, process.stderr) == (130, said)
    assert os.listdir() == []


def test_a_full_disk_is_one_sentence(here):
    code = (
        "import resource, signal, sys\n"
        "from widemargin.cli import main\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (20000, 20000))\n"
        "for name in sys.argv[1:]:\n"
        f"    assert main([*{NDC}, name, '--rows', '20000']) == 2"
    )
    pytest.importorskip("resource", reason="limits need POSIX")
    names = "a.svm", "a.parquet", "shards"
    process = subprocess.run(
        [sys.executable, "-c", code, *names],
        stderr=subprocess.PIPE,
        text=True,
        timeout=HANGS,
        check=False,
    )
    said = "".join(f"widemargin: {name}: file too large\n" for name in names)
    assert (process.returncode, process.stderr) == (0, said)
    assert os.listdir() == []


def test_progress_is_for_terminals(monkeypatch):
    class Terminal(io.StringIO):
        def isatty(self):
            return True

    monkeypatch.setattr(generate, "_DELAY", 0.0)
    shown = {}
    for stream in (Terminal(), io.StringIO(), None):
        monkeypatch.setattr(sys, "stderr", stream)
        assert sum(len(y) for _, y in generate._shown(ndc_blocks(10, 2), 10)) == 10
        shown[type(stream)] = stream.getvalue() if stream else ""
    assert "/10.0 [" in shown[Terminal]
    assert shown[io.StringIO] == shown[type(None)] == ""
