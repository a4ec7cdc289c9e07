"""A model that cannot be written where it was asked for is not lost."""

import io
import os
import sys

import numpy as np
import pytest

from widemargin import LinearSVC, load_model, save_model, save_svmlight
from widemargin.cli import main, summary
from widemargin.cli import train as command
from widemargin.models import model_file


@pytest.fixture
def here(tmp_path, monkeypatch):
    """An empty current folder with data, and one for what is temporary."""
    (tmp_path / "other").mkdir()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(command.tempfile, "tempdir", str(tmp_path / "other"))
    rng = np.random.default_rng(0)
    X = rng.normal(size=(50, 2))
    save_svmlight(X, np.where(X[:, 0] > 0, 1, -1), "a.svm")
    return tmp_path


@pytest.fixture
def full(monkeypatch):
    """A disk that is full in the middle of the file, for the names given."""

    def disk(*names):
        replacing = model_file.replacing

        def failing(path):
            opener = (lambda *_: open("/dev/full", "wb")) if path in names else open  # noqa: SIM115
            return replacing(path, opener)

        monkeypatch.setattr(model_file, "replacing", failing)

    if not os.path.exists("/dev/full"):
        pytest.skip("needs /dev/full")
    return disk


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_elsewhere_without_a_terminal(here, full, capsys):
    full("m.wm")
    (here / "m.wm").write_bytes(b"old")
    assert main(["train", "a.svm", "m.wm"]) == 2
    said = capsys.readouterr()
    (path,) = (here / "other").glob("widemargin-*/model.wm")
    assert said.err == (
        "widemargin: m.wm: no space left on device; "
        f"the model was written to {path} instead\n"
    )
    assert f"model: {path}" in said.out
    assert load_model(path).meta["status"] == "solved"
    assert (here / "m.wm").read_bytes() == b"old"
    assert sorted(os.listdir(here)) == ["a.svm", "m.wm", "other"]


def test_a_terminal_is_asked_until_it_works(here, full, monkeypatch, capsys):
    full("m.wm", "also-full.wm")
    monkeypatch.setattr(sys, "stdin", Terminal("also-full.wm\nno/folder.wm\nok.wm\n"))
    monkeypatch.setattr(sys, "stderr", said := Terminal())
    assert main(["train", "a.svm", "m.wm"]) == 2
    words = " ".join(said.getvalue().split())  # lines are cut at the terminal's width
    assert words.count("the model is still in memory") == 3
    assert load_model("ok.wm").meta["status"] == "solved"
    assert sorted(os.listdir(here)) == ["a.svm", "ok.wm", "other"]
    assert not os.listdir(here / "other")


def test_no_answer_writes_it_elsewhere(here, full, monkeypatch, capsys):
    full("m.wm")
    monkeypatch.setattr(sys, "stdin", Terminal("\n"))
    monkeypatch.setattr(sys, "stderr", Terminal())
    assert main(["train", "a.svm", "m.wm"]) == 2
    assert list((here / "other").glob("widemargin-*/model.wm"))


def test_a_report_that_fails_leaves_the_model(here, monkeypatch, capsys):
    pytest.importorskip("matplotlib")

    def no_room(*_, **__):
        raise OSError(28, "No space left on device", "r.html")

    monkeypatch.setattr(summary, "write_report", no_room)
    assert main(["train", "a.svm", "m.wm", "--report", "r.html"]) == 2
    assert capsys.readouterr().err == "widemargin: r.html: no space left on device\n"
    assert load_model("m.wm").meta["status"] == "solved"


def test_an_estimator_stays_as_it_is(here, full):
    full("m.wm")
    classifier = LinearSVC().fit([[0.0], [1.0]], [0, 1])
    before = classifier.coef_.copy()
    with pytest.raises(OSError, match="No space left"):
        save_model(classifier, "m.wm")
    np.testing.assert_array_equal(classifier.coef_, before)
    save_model(classifier, "other.wm")
    assert not os.path.exists("m.wm")
