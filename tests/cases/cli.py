"""What the tests of the command line share."""

import numpy as np

from tests.cases.problems import PROBLEMS
from widemargin import save_svmlight
from widemargin.cli import main


def folder_with_data(tmp_path, monkeypatch):
    """An empty folder, made the current one, with data in it."""
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
