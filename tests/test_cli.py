"""The command line: what it prints, writes and returns."""

import _thread
import json
import os
import subprocess
import sys

import numpy as np
import pytest
from problems import PROBLEMS

from widemargin import LinearSVC, load_model, load_svmlight, save_svmlight
from widemargin.cli import main
from widemargin.progress import Printer


@pytest.fixture
def here(tmp_path, monkeypatch):
    """An empty current folder with data in it."""
    X, y = PROBLEMS["breast_cancer"]()
    monkeypatch.chdir(tmp_path)
    save_svmlight(X[:400], y[:400], "train.svm")
    save_svmlight(X[400:], y[400:], "test.svm")
    labels = np.arange(400) % 3
    save_svmlight(X[:400] + 3 * np.eye(3)[labels] @ np.eye(3, 30), labels, "three.svm")
    return tmp_path


def refused(capsys, *arguments):
    """The one line of a command that must fail as bad usage or input."""
    try:
        status = main(arguments)
    except SystemExit as stop:
        status = stop.code
    out, err = capsys.readouterr()
    assert status == 2
    assert out == ""
    assert err.count("\n") == 1
    assert "Traceback" not in err
    return err


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
    assert "largest weights of columns, counted from 0" in out

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
        main(["train", "train.svm", "m.wm", "--max-iter", "4", "--test", "test.svm"])
        == 1
    )
    out = capsys.readouterr().out
    assert "Stopped (max_iter) at a relative gap of" in out
    assert "Stopped by max_iter=4" in out
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
    assert "at least two classes" in refused(capsys, "train", "one.svm", "m.wm")
    assert not (here / "m.wm").exists()
    for arguments, words in [
        (["train", "train.svm", "none/m.wm"], "there is no folder"),
        (["train", "train.svm", "train.svm"], "would overwrite the input"),
        (["train", "train.svm", str(here)], "cannot be written"),
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
            ["train", "train.svm", "m.wm", "--kernel", "rbf"],
            "the only kernel in this version",
        ),
        (["train", "train.svm", "m.wm", "--loss", "huber"], "invalid choice: 'huber'"),
        (["train", "train.svm"], "required: MODEL"),
        (["trane", "train.svm"], "invalid choice: 'trane'"),
        ([], "required: COMMAND"),
        (["predict", "junk.wm", "test.svm"], "junk.wm"),
        (["inspect", "missing.wm"], "no such file: missing.wm"),
        (
            ["convert", "junk.wm", "out.svm"],
            "junk.wm, line 1, column 1: expected a number",
        ),
    ]:
        assert words in refused(capsys, *arguments)


def test_a_model_and_data_that_do_not_fit(here, capsys):
    main(["train", "train.svm", "m.wm"])
    capsys.readouterr()
    (here / "wide.svm").write_text("1 31:1\n")
    message = refused(capsys, "predict", "m.wm", "wide.svm")
    assert "wide.svm, line 1, column 3: expected an index of at most 30" in message


def test_help_has_examples(capsys):
    for command in ("train", "predict", "inspect", "convert"):
        with pytest.raises(SystemExit) as stop:
            main([command, "--help"])
        assert stop.value.code == 0
        assert "examples:" in capsys.readouterr().out


def test_as_a_module():
    command = [sys.executable, "-m", "widemargin", "--version"]
    assert subprocess.run(command, capture_output=True, text=True).stdout == "0.1.0\n"
