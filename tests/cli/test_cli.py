"""The command line: what it prints, writes and returns."""

import _thread
import errno
import json
import os
import re
import sys
from dataclasses import replace

import numpy as np
import pytest

from tests.cases.cli import folder_with_data, refused
from widemargin import LinearSVC, load_model, load_svmlight, save_model, save_svmlight
from widemargin.cli import main
from widemargin.cli.machines import MACHINES
from widemargin.cli.options import _parser
from widemargin.cli.reading import as_in_file
from widemargin.estimators.progress import Printer
from widemargin.estimators.regressor import LOSSES as REGRESSION_LOSSES
from widemargin.kernels.table import GAMMAS, NAMES
from widemargin.losses.pointwise import LOSSES
from widemargin.models.model import Decision, Model
from widemargin.problems.base import INTERCEPTS
from widemargin.solvers.auto import SOLVERS


@pytest.fixture
def here(tmp_path, monkeypatch):
    return folder_with_data(tmp_path, monkeypatch)


def test_train_test_inspect_predict(here, capsys):
    command = ["train", "train.svm", "m.wm", "--test", "test.svm", "--report", "r.html"]
    assert main(command) == 0
    out, err = capsys.readouterr()
    assert out.startswith(
        "train.svm: 400 rows x 30 features, 100 % nonzero, 2 classes\n"
    )
    assert "Solved to a relative gap of" in out
    assert "on test.svm (169 rows)" in out
    assert "model: m.wm\nreport: r.html\n" in out
    assert err == ""
    assert "<svg" in (here / "r.html").read_text()

    assert main(["inspect", "m.wm"]) == 0
    out = capsys.readouterr().out
    assert "status" in out
    assert "index base       1\n" in out
    assert "; columns counted from 1\n" in out

    assert main(["predict", "m.wm", "test.svm"]) == 0
    labels = capsys.readouterr().out.split()
    X, y = load_svmlight("test.svm", n_features=30)
    np.testing.assert_array_equal(
        np.array(labels, float), load_model("m.wm").predict(X)
    )
    assert set(labels) == {"1", "-1"}
    assert np.mean(np.array(labels, float) == y) > 0.95


def test_json(here, capsys):
    assert main(["train", "train.svm", "m.wm", "--test", "test.svm", "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["status"] == "solved"
    assert facts["relative_gap"] <= facts["tol"] == 1e-4
    assert facts["primal"][0] >= facts["dual"][0]
    assert 0.95 < facts["accuracy"] <= 1
    assert main(["inspect", "m.wm", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["features"] == 30


def test_more_than_two_classes(here, capsys):
    assert main(["train", "three.svm", "m.wm", "--test", "three.svm"]) == 0
    out = capsys.readouterr().out
    assert "3 problems, one class against the rest: solved" in out
    assert main(["predict", "m.wm", "three.svm", "--scores", "--output", "s.txt"]) == 0
    assert capsys.readouterr().out == ""
    scores = np.loadtxt("s.txt")
    X, _ = load_svmlight("three.svm")
    np.testing.assert_array_equal(scores, load_model("m.wm").decision_function(X))


def test_options_reach_the_estimator(here, capsys):
    options = ["-C", "0.3", "--loss", "squared_hinge", "--intercept", "none",
               "--class-weight", "balanced", "--tol", "1e-8"]  # fmt: skip
    assert main(["train", "train.svm", "m.wm", *options]) == 0
    clf = LinearSVC(C=0.3, loss="squared_hinge", intercept="none",
                    class_weight="balanced", tol=1e-8).fit(*load_svmlight("train.svm"))  # fmt: skip
    np.testing.assert_allclose(load_model("m.wm").decisions[0].w, clf.coef_[0])


def test_not_solved_is_exit_status_1_with_a_usable_model(here, capsys):
    assert (
        main(["train", "train.svm", "m.wm", "--max-iter", "6", "--test", "test.svm"])
        == 1
    )
    out = capsys.readouterr().out
    assert "Stopped (max_iter) at a relative gap of" in out
    assert "Stopped by --max-iter 6" in out
    assert load_model("m.wm").meta["status"] == "max_iter"


def test_ctrl_c_saves_the_best_model_and_says_the_gap(here, capsys, monkeypatch):
    def press(printer, step):
        if step.iteration == 6:
            _thread.interrupt_main()

    monkeypatch.setattr(Printer, "__call__", press)
    assert main(["train", "train.svm", "m.wm", "--tol", "1e-10"]) == 1
    out = capsys.readouterr().out
    assert "Stopped by Ctrl-C at a relative gap of" in out
    model = load_model("m.wm")
    assert model.meta["status"] == "interrupted"
    X, y = load_svmlight("train.svm")
    assert np.mean(model.predict(X) == y) > 0.9


def test_ctrl_c_in_the_fit_leaves_the_test_file_unscored(here, capsys, monkeypatch):
    """It was scored all the same, which can take as long as the fit."""

    def press(printer, step):
        if step.iteration == 6:
            _thread.interrupt_main()

    monkeypatch.setattr(Printer, "__call__", press)
    arguments = ["train", "train.svm", "m.wm", "--tol", "1e-10", "--test", "test.svm"]
    assert main(arguments) == 1
    said = capsys.readouterr()
    assert "accuracy" not in said.out
    assert "Stopped by Ctrl-C at a relative gap of" in said.out
    assert said.err == "widemargin: interrupted; test.svm was not scored\n"
    assert load_model("m.wm").meta["status"] == "interrupted"
    assert main([*arguments[:2], "j.wm", *arguments[3:], "--json"]) == 1
    facts = json.loads(capsys.readouterr().out)
    assert facts["status"] == "interrupted"
    assert not [name for name in facts if "test" in name or "accuracy" in name]


def test_convert_models_and_data(here, capsys):
    main(["train", "train.svm", "m.wm"])
    X, y = load_svmlight("test.svm", n_features=30)
    labels = load_model("m.wm").predict(X)
    assert main(["convert", "m.wm", "m.model"]) == 0
    assert main(["convert", "m.model", "again.wm"]) == 0
    np.testing.assert_array_equal(load_model("again.wm").predict(X), labels)
    assert main(["convert", "m.wm", "m.onnx"]) == 0
    assert os.path.getsize("m.onnx") > 500
    assert main(["convert", "test.svm", "test.svm.xz"]) == 0
    packed = load_svmlight("test.svm.xz", n_features=30)
    np.testing.assert_array_equal(packed[0].toarray(), X.toarray())
    np.testing.assert_array_equal(packed[1], y)


def test_bad_input_is_one_line(here, capsys):
    (here / "broken.svm").write_text("1 1:1\n-1 2:1,5\n")
    (here / "one.svm").write_text("1 1:1\n1 2:1\n")
    (here / "junk.wm").write_bytes(b"not a model")
    message = refused(capsys, "train", "trai.svm", "m.wm")
    assert message == "widemargin: no such file: trai.svm (did you mean train.svm?)\n"
    message = refused(capsys, "train", "broken.svm", "m.wm")
    assert message == (
        'widemargin: broken.svm, line 2, column 6: expected a number after "2:", '
        'found "1,5"\n'
    )
    assert refused(capsys, "train", "one.svm", "m.wm") == (
        "widemargin: one.svm: expected at least two classes, found one (1)\n"
    )
    assert not (here / "m.wm").exists()
    for arguments, words in [
        (["train", "train.svm", "none/m.wm"], f"no such folder: {here}/none"),
        (
            ["train", "train.svm", "m.wm", "-C", "big"],
            "expected a positive number, found 'big'",
        ),
        (["train", "train.svm", "m.wm", "-C", "-1"], "expected a positive number"),
        (
            ["train", "train.svm", "m.wm", "--max-iter", "2.5"],
            "whole number, found '2.5'",
        ),
        (
            ["train", "train.svm", "m.wm", "--kernel", "cosine"],
            "found 'cosine'",
        ),
        (["train", "train.svm", "m.wm", "--loss", "huber"], "found 'huber'"),
        (["train", "train.svm"], "required: MODEL"),
        (["trane", "train.svm"], "found 'trane'"),
        (
            ["predict", "train.svm", "junk.wm"],
            "train.svm: expected a model, found another kind of file. Where a comman",
        ),
        (["inspect", "junk.wm"], "junk.wm: expected a model, found another kind"),
        (["inspect", "missing.wm"], "no such file: missing.wm"),
        (["convert", "junk.wm", "out.svm"], "junk.wm: expected a model, found"),
    ]:
        assert words in refused(capsys, *arguments)


def test_help_has_examples(capsys):
    for command in ("train", "predict", "inspect", "convert"):
        with pytest.raises(SystemExit) as stop:
            main([command, "--help"])
        assert stop.value.code == 0
        assert "examples, with files of yours:\n" in capsys.readouterr().out


# -- columns ---------------------------------------------------------------------------


@pytest.fixture
def shifted(here):
    """Data whose only useful column is 1, with indices from 0; test data lack column 0."""
    y = np.tile([1, -1], 50)
    X = np.column_stack([np.random.default_rng(0).normal(size=100), y, -0.01 * y])
    save_svmlight(X, y, "zero.svm", zero_based=True)
    X[:, 0] = 0
    save_svmlight(X, y, "zero.test.svm", zero_based=True)
    return here


def accuracy(capsys, *options):
    """What a training says of itself."""
    assert main(["train", *options, "--json"]) == 0
    return json.loads(capsys.readouterr().out)["accuracy"]


def predicted(capsys, *arguments):
    assert main(["predict", *arguments]) == 0
    return [int(label) for label in capsys.readouterr().out.split()]


def test_the_test_file_is_read_with_the_index_base_of_the_training(shifted, capsys):
    assert accuracy(capsys, "zero.svm", "m.wm", "--test", "zero.test.svm") == 1


def test_a_model_keeps_the_index_base(shifted, capsys):
    assert main(["train", "zero.svm", "m.wm"]) == 0
    assert load_model("m.wm").meta["index_base"] == 0
    capsys.readouterr()
    right = np.tile([1, -1], 50).tolist()
    assert predicted(capsys, "m.wm", "zero.test.svm") == right
    asked = predicted(capsys, "m.wm", "zero.test.svm", "--index-base", "1")
    assert asked != right
    assert main(["train", "train.svm", "one.wm"]) == 0
    assert load_model("one.wm").meta["index_base"] == 1
    capsys.readouterr()
    assert refused(capsys, "predict", "one.wm", "zero.svm") == (
        "widemargin: zero.svm, line 1, column 3: expected an index of at least 1 "
        'because indices start at 1 (see --index-base), found "0"\n'
    )


def test_an_index_base_that_a_file_forged_is_not_believed(shifted, capsys):
    model = Model(np.array([-1, 1]), "binary", (Decision(np.array([0.0, 1, 0]), 0.0),))
    for base in (2, True, "0", None):
        save_model(replace(model, meta={"index_base": base}), "m.wm")
        assert predicted(capsys, "m.wm", "zero.svm") == np.tile([1, -1], 50).tolist()


def test_columns_that_the_model_has_never_seen_are_ignored_and_said(here, capsys):
    (here / "small.svm").write_text("1 1:1 2:1\n-1 1:-1 2:1\n")
    (here / "wide.svm").write_text("1 1:2 3:5\n-1 1:-2 5:9 9999999999:1\n")
    (here / "narrow.svm").write_text("1 1:2\n-1\n")
    assert accuracy(capsys, "small.svm", "m.wm", "--test", "narrow.svm") == 0.5
    assert main(["train", "small.svm", "m.wm", "--test", "wide.svm"]) == 0
    out, err = capsys.readouterr()
    assert "accuracy 100.00 % on wide.svm" in out
    message = (
        "widemargin: wide.svm: ignored 3 column(s) that the model has never seen "
        "(indices 3 to 9999999999)\n"
    )
    assert err == message
    assert main(["predict", "m.wm", "wide.svm"]) == 0
    assert capsys.readouterr() == ("1\n-1\n", message)


def test_labels_that_the_model_has_never_seen_are_said(here, capsys):
    (here / "small.svm").write_text("1 1:1\n-1 1:-1\n")
    (here / "new.svm").write_text("1 1:2\n7 1:2\n9 1:-2\n-1 1:-3\n")
    assert main(["train", "small.svm", "m.wm", "--test", "new.svm"]) == 0
    out, err = capsys.readouterr()
    assert "accuracy 50.00 % on new.svm" in out
    assert err == (
        "widemargin: new.svm: rows with labels that the model has never seen count as "
        "wrong (7, 9)\n"
    )
    assert main(["train", "small.svm", "m.wm", "--test", "small.svm"]) == 0
    assert capsys.readouterr().err == ""


# -- files -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("command", "kind", "other"),
    [
        ("predict m.wm test.svm --output m.wm", "input", "m.wm"),
        ("predict m.wm test.svm --output ./link.svm", "input", "test.svm"),
        ("train train.svm m.wm --report m.wm", "output", "m.wm"),
        ("train train.svm new.wm --report ./new.wm", "output", "new.wm"),
        ("train train.svm test.svm --test test.svm", "input", "test.svm"),
        ("train train.svm m.wm --test test.svm --report test.svm", "input", "test.svm"),
        ("train train.svm train.svm", "input", "train.svm"),
        ("convert m.wm m.wm", "input", "m.wm"),
        ("convert test.svm link.svm", "input", "test.svm"),
    ],
)
def test_no_output_replaces_an_input_or_output(here, capsys, command, kind, other):
    main(["train", "train.svm", "m.wm"])
    (here / "link.svm").symlink_to("test.svm")
    capsys.readouterr()
    before = {path.name: path.read_bytes() for path in here.iterdir()}
    message = refused(capsys, *command.split())
    assert f": would overwrite the {kind} {other}\n" in message
    assert {path.name: path.read_bytes() for path in here.iterdir()} == before


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (
            ["/dev/null"],
            "expected a file, found a pipe or device: /dev/null; every training writes "
            "its model, and says how long it took without that",
        ),
        (["pipe"], "expected a file, found a pipe or device: pipe"),
        (["."], "expected a file, found a directory: ."),
        (["none/m.wm"], "no such folder: {here}/none"),
        (["/proc/x.wm"], "/proc/x.wm: no such file or directory"),
        (["m.wm", "--report", "none/r.html"], "no such folder: {here}/none"),
        (["m.wm", "--report", "."], "expected a file, found a directory: ."),
    ],
)
def test_outputs_are_checked_before_the_work(
    here, capsys, monkeypatch, arguments, words
):
    os.mkfifo("pipe")
    monkeypatch.setattr("widemargin.cli.reading.read", None)
    message = refused(capsys, "train", "train.svm", *arguments)
    assert message == f"widemargin: {words.format(here=here)}\n"


def test_a_report_without_matplotlib_is_refused_before_the_work(
    here, capsys, monkeypatch
):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    message = refused(capsys, "train", "train.svm", "m.wm", "--report", "r.html")
    assert message == (
        "widemargin: a report needs the extra 'plot': "
        'pip install "widemargin[plot]"\n'
    )
    assert not (here / "m.wm").exists()


def test_a_directory_is_refused_in_the_same_words_everywhere(here, capsys):
    main(["train", "train.svm", "m.wm"])
    capsys.readouterr()
    for command in (
        "train train.svm .",
        "predict . test.svm",
        "predict m.wm test.svm --output .",
        "inspect .",
        "convert test.svm .",
    ):
        message = refused(capsys, *command.split())
        assert message == "widemargin: expected a file, found a directory: .\n"


def test_a_directory_of_other_files_is_refused(here, capsys):
    main(["train", "train.svm", "m.wm"])
    capsys.readouterr()
    for command in (
        "train . n.wm",
        "train train.svm n.wm --test .",
        "predict m.wm .",
        "convert . out.svm",
    ):
        message = refused(capsys, *command.split())
        assert message.startswith("widemargin: .: expected ")


def test_predictions_appear_as_a_whole_or_not_at_all(here, capsys, monkeypatch):
    main(["train", "train.svm", "m.wm"])
    capsys.readouterr()
    (here / "labels.txt").write_text("old")

    def full(file):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    message = refused(capsys, "predict", "m.wm", "test.svm", "--output", "labels.txt")
    assert message == "widemargin: labels.txt: no space left on device\n"
    assert (here / "labels.txt").read_text() == "old"
    assert not list(here.glob(".*"))


@pytest.mark.parametrize("name", ["s.wm", "s.onnx", "s.model", "s.parquet", "s.wm.xz"])
def test_data_are_not_written_under_the_name_of_something_else(here, capsys, name):
    message = refused(capsys, "convert", "test.svm", name)
    ending = name.removeprefix("s")
    assert "expected a name for data, which ends in .svm, .svmlight" in message
    assert message.endswith(f"found {ending!r}\n")
    assert not (here / name).exists()


@pytest.mark.parametrize("name", ["s", "s.SVM", "s.svmlight.gz", "s.txt.bz2", "s.xz"])
def test_data_are_written_under_the_names_of_data(here, name):
    assert main(["convert", "test.svm", name]) == 0
    assert load_svmlight(name)[0].shape == (169, 30)


def test_converted_data_keep_their_query_ids(here, capsys):
    (here / "ranked.svm").write_text("1 qid:7 0:1\n2 qid:8 1:1\n")
    (here / "mixed.svm").write_text("1 1:1\n# comment\n2 qid:8 1:1\n")
    assert main(["convert", "ranked.svm", "out.svm.gz"]) == 0
    assert main(["convert", "out.svm.gz", "out.svm"]) == 0
    assert (here / "out.svm").read_text() == "1 qid:7 1:1\n2 qid:8 2:1\n"
    assert refused(capsys, "convert", "mixed.svm", "out.svm") == (
        'widemargin: mixed.svm, line 1, column 3: expected "qid:" after the target '
        'because other rows have one, found "1:1"\n'
    )


def test_options_of_data_are_refused_for_a_model(here, capsys):
    main(["train", "train.svm", "m.wm"])
    capsys.readouterr()
    options = ["--index-base", "0", "--jobs", "3"]
    message = refused(capsys, "convert", "m.wm", "m.model", *options)
    assert message == (
        "widemargin: m.wm: expected data with --index-base and --jobs, found a model\n"
    )


# -- words -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("1 2:1\n1 2:2\n", "expected at least two classes, found one (1)"),
        (
            "9007199254740993 2:1\n9007199254740992 2:2\n",
            "expected at least two classes, found one .9007199254740992.; from 2\\^53 on "
            "neighbouring numbers are one in float64",
        ),
        ("1\n-1\n", 'expected an "index:value" in some row, found none'),
        ("1 1:1 3:1e200\n-1 1:2\n", "X must hold .* squares .* Column 3 is too large."),
        ("1 0:1 3:1e200\n-1 1:2\n", "X must hold .* squares .* Column 3 is too large."),
    ],
)
def test_what_the_fit_refuses_names_the_file(here, capsys, text, words):
    (here / "bad.svm").write_text(text)
    message = refused(capsys, "train", "bad.svm", "m.wm")
    assert re.fullmatch(
        f"widemargin: bad.svm: {words.replace('(1)', '.1.')}\n", message
    )


def test_fractional_labels_are_refused_with_their_line(here, capsys):
    (here / "bad.svm").write_text("# comment\n1 1:1\n\n0.5 1:2 # half\n")
    words = (
        "widemargin: bad.svm, line 4: expected a whole number as the label, found 0.5; "
        "--type regress predicts such numbers\n"
    )
    assert refused(capsys, "train", "bad.svm", "m.wm") == words
    assert refused(capsys, "train", "train.svm", "m.wm", "--test", "bad.svm") == words


def test_advice_counts_columns_as_the_file_does():
    said = as_in_file("Feature(s) 7, 12, ... are up to 10 times column 3.", 1)
    assert said == "Feature(s) 8, 13, ... are up to 10 times column 4."


def test_unknown_options_point_to_the_help_of_the_command(capsys):
    for arguments, message in {
        "train a.svm m.wm --lose hinge": "unknown option --lose (did you mean --loss?)",
        "train a.svm m.wm --quux": "unknown option --quux",
        "train a.svm m.wm -regress": "unknown option -regress",
        "train a.svm m.wm more": "unexpected argument 'more'",
        "train a.svm m.wm --C 1 1e-3": (
            "unexpected argument '1e-3' (several values have commas: 0.1,1,10)"
        ),
        "predict m.wm a.svm --score=1": "ignored explicit argument '1'",
        "inspect m.wm --jsn": "unknown option --jsn (did you mean --json?)",
    }.items():
        command = f"widemargin {arguments.split()[0]}"
        said = refused(capsys, *arguments.split())
        assert said.startswith(f"{command}: ")
        assert said.endswith(f"{message} (see {command} --help)\n")


@pytest.mark.parametrize("name", ["train", "predict", "convert", "inspect", "generate"])
def test_help_fits_the_terminal(monkeypatch, capsys, name):
    monkeypatch.setenv("COLUMNS", "80")
    with pytest.raises(SystemExit):
        _parser().parse_args([name, "--help"])
    lines = capsys.readouterr().out.splitlines()
    # Commands to type, and an option of one word, are not cut.
    plain = [x for x in lines if not x.startswith(("  widemargin", "  --weight"))]
    assert max(map(len, plain)) <= 80


def test_choices_are_those_of_the_library(here, capsys):
    arguments = _parser().parse_args(["train", "a", "b"]).parser.format_help()
    losses = [loss for machine in MACHINES.values() for loss in machine.losses]
    assert losses == [*LOSSES, *REGRESSION_LOSSES]
    for choices in (INTERCEPTS, MACHINES):
        assert f"{{{','.join(choices)}}}" in arguments
    assert f"--loss NAME {', '.join(losses)}; loss of" in " ".join(arguments.split())
    assert f"{{{','.join(NAMES)}}}" in arguments
    message = refused(capsys, "train", "train.svm", "m.wm", "--gamma", "wide")
    assert f"expected a positive number, or {', '.join(GAMMAS)}, found" in message
    message = refused(capsys, "train", "train.svm", "m.wm", "--solver", "magic")
    assert f"expected auto, batch, {', '.join(SOLVERS)}, found 'magic'" in message
