"""The command line as a process: closed pipes, full disks, Ctrl-C, time to start."""

import io
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import widemargin
from tests.cases.waits import HANGS
from widemargin import load_model, save_model, save_svmlight
from widemargin.cli.output import doing
from widemargin.models.model import Decision, Model

COMMAND = [sys.executable, "-m", "widemargin"]
LINES = 200_000  # of predictions: far more than a pipe holds


@pytest.fixture
def here(tmp_path, monkeypatch):
    """An empty current folder with data and a model in it."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "big.svm").write_text("1 1:1\n" * LINES)
    save_svmlight([[1, 2], [3, 5], [0, 1]], [1, -1, 1], "small.svm")
    decision = Decision(np.ones(1), 0.0)
    save_model(Model(np.array([-1, 1]), "binary", (decision,)), "m.wm")
    return tmp_path


def start(*arguments, code=None, **options):
    """A process in which Ctrl-C works, also where the tests run in the background."""
    return subprocess.Popen(
        [*(COMMAND if code is None else [sys.executable, "-c", code]), *arguments],
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        **options,
    )


def end(process):
    """Exit status and what was said on standard error."""
    _, err = process.communicate(timeout=HANGS)
    return process.returncode, err


@pytest.mark.parametrize(
    "arguments",
    [
        ["predict", "m.wm", "big.svm"],
        pytest.param(["inspect", "m.wm"], marks=pytest.mark.full),
        ["--help"],
    ],
)
def test_a_closed_pipe_ends_a_command_without_a_word(here, arguments):
    reader, writer = os.pipe()
    os.close(reader)
    try:
        assert end(start(*arguments, stdout=writer)) == (141, "")
    finally:
        os.close(writer)


@pytest.mark.full  # one that is closed from the start ends the same way
def test_a_pipe_that_closes_in_the_middle(here):
    process = start("predict", "m.wm", "big.svm", stdout=subprocess.PIPE)
    assert process.stdout.readline() == "1\n"
    process.stdout.close()
    status = process.wait(timeout=HANGS)
    assert (status, process.stderr.read()) == (141, "")
    process.stderr.close()


@pytest.mark.parametrize(
    "arguments",
    [
        ["train", "small.svm", "new.wm", "--json"],
        pytest.param(["inspect", "m.wm"], marks=pytest.mark.full),
        ["--version"],
    ],
)
def test_a_full_standard_output_is_named(here, arguments):
    if not os.path.exists("/dev/full"):
        pytest.skip("needs /dev/full")
    with open("/dev/full", "w") as full:
        message = "widemargin: standard output: no space left on device\n"
        assert end(start(*arguments, stdout=full)) == (2, message)


def test_closed_standard_streams(here):
    code = "import sys; {}; from widemargin.__main__ import run; sys.exit(run())"
    process = start("inspect", "m.wm", code=code.format("sys.stdout = None"))
    assert end(process) == (2, "widemargin: standard output: bad file descriptor\n")
    process = start("inspect", "none.wm", code=code.format("sys.stderr = None"))
    assert end(process) == (2, "")


def test_help_and_version_import_nothing_slow(here):
    code = (
        "import sys; from widemargin.cli import main\n"
        "try: main(sys.argv[1:])\n"
        "except SystemExit: pass\n"
        "sys.exit('numpy' in sys.modules or 'sklearn' in sys.modules)"
    )
    for arguments in (["--version"], ["--help"], ["train", "--help"]):
        with start(*arguments, code=code, stdout=subprocess.DEVNULL) as process:
            assert end(process) == (0, "")


def test_names_and_packages_are_imported_when_asked_for(here):
    code = (
        "import sys, widemargin\n"
        "assert 'numpy' not in sys.modules\n"
        "assert set(widemargin.__all__) <= set(dir(widemargin))\n"
        "assert widemargin.solvers.InteriorPoint and not hasattr(widemargin, 'no')\n"
        "from widemargin import *\n"
        "assert LinearSVC is widemargin.LinearSVC and solve and load_model\n"
        "LinearSVC().fit([[0.0], [1.0]], [0, 1])\n"
        "assert not {'dask', 'distributed', 'matplotlib'} & set(sys.modules)"
    )
    with start(code=code) as process:
        assert end(process) == (0, "")


def test_ctrl_c_while_importing(here):
    (here / "fake").mkdir()
    (here / "fake" / "numpy.py").write_text(
        "import os, signal, time\nos.kill(os.getpid(), signal.SIGINT)\ntime.sleep(60)\n"
    )
    environment = {**os.environ, "PYTHONPATH": str(here / "fake")}
    process = start("train", "small.svm", "new.wm", env=environment)
    assert end(process) == (130, "widemargin: interrupted; no model was written\n")
    process = start("inspect", "m.wm", env=environment)
    assert end(process) == (130, "widemargin: interrupted\n")


def test_little_is_imported_before_ctrl_c_is_a_sentence():
    """What comes before `run` is to take some milliseconds: Ctrl-C shows a traceback."""
    code = (
        "import sys, widemargin.__main__\n"
        "print([m for m in ('typing', 're', 'signal', 'enum') if m in sys.modules])"
    )
    command = [sys.executable, "-S", "-c", code]
    source = str(Path(widemargin.__file__).parents[1])
    environment = {**os.environ, "PYTHONPATH": source}
    assert subprocess.check_output(command, text=True, env=environment) == "[]\n"


def test_ctrl_c_while_reading(here):
    os.mkfifo("pipe.svm")
    process = start("train", "pipe.svm", "new.wm")
    with open("pipe.svm", "w") as pipe:  # waits until the command has opened it
        pipe.write("1 1:1\n")
        pipe.flush()
        process.send_signal(signal.SIGINT)
    # The end of the pipe wakes a read that began just after the signal.
    assert end(process) == (130, "widemargin: interrupted; no model was written\n")
    assert not os.path.exists("new.wm")


# -- Ctrl-C in a training --------------------------------------------------------------


def train_and_press(patch, first=1):
    """Status and words of a training in which ``patch`` has Ctrl-C pressed.

    Not before the step ``first``.
    """
    code = (
        "import os, signal, sys\n"
        "from widemargin.__main__ import run\n"
        "from widemargin.cli import summary\n"
        "from widemargin.estimators.progress import Printer\n"
        "from widemargin.solvers.driver import contract\n"
        "def press(*arguments):\n"
        f"    if getattr(arguments[-1], 'iteration', 9) >= {first}:\n"
        "        os.kill(os.getpid(), signal.SIGINT)\n"
        f"{patch}\n"
        "sys.exit(run())"
    )
    arguments = ["train", "small.svm", "new.wm", "--tol", "1e-12"]
    return end(start(*arguments, code=code, stdout=subprocess.DEVNULL))


def test_a_first_ctrl_c_in_the_fit_leaves_a_model(here):
    assert train_and_press("Printer.__call__ = press") == (1, "")
    assert load_model("new.wm").meta["status"] == "interrupted"


def test_a_first_ctrl_c_in_the_fit_leaves_an_older_model_as_it_is(here):
    """It was lost: the unfinished one was written over it."""
    with open("new.wm", "w") as file:
        file.write("older")
    apart = "new.unfinished.wm"
    said = f"interrupted; new.wm stays as it was, the unfinished model is in {apart}\n"
    assert train_and_press("Printer.__call__ = press") == (1, f"widemargin: {said}")
    assert load_model(apart).meta["status"] == "interrupted"
    with open("new.wm") as file:
        assert file.read() == "older"


@pytest.mark.full
def test_a_first_ctrl_c_before_there_is_more_than_zero_leaves_none(here):
    status = train_and_press("Printer.__call__ = press", first=0)
    assert status == (130, "widemargin: interrupted; no model was written\n")
    assert not os.path.exists("new.wm")


def test_a_second_ctrl_c_in_the_fit_leaves_none(here):
    status = train_and_press("Printer.__call__ = contract.message = press")
    assert status == (130, "widemargin: interrupted; no model was written\n")
    assert not os.path.exists("new.wm")


@pytest.mark.full
def test_ctrl_c_after_the_fit_says_that_there_is_a_model(here):
    status = train_and_press("summary._facts = press")
    assert status == (130, "widemargin: interrupted; the model was written to new.wm\n")
    assert load_model("new.wm").meta["status"] == "solved"


def test_ctrl_c_after_all_is_done_changes_nothing(here):
    code = (
        "import os, signal, sys, time, widemargin.cli\n"
        "widemargin.cli.main = lambda: 1\n"
        "from widemargin.__main__ import run\n"
        "status = run()\n"
        "os.kill(os.getpid(), signal.SIGINT)\n"
        "time.sleep(0.1)\n"
        "sys.exit(status)\n"
    )
    assert end(start("train", code=code)) == (1, "")


# -- a terminal ------------------------------------------------------------------------


def test_a_terminal_says_what_takes_long(monkeypatch):
    class Terminal(io.StringIO):
        def isatty(self):
            return True

    monkeypatch.setattr("widemargin.cli.output._DELAY", 0.0)
    monkeypatch.setattr(sys, "stderr", terminal := Terminal())
    with doing("reading a\nb"):
        while not terminal.getvalue():
            time.sleep(0.001)
    assert terminal.getvalue() == f"reading a\\nb ...\r{' ' * 16}\r"
    monkeypatch.setattr(sys, "stderr", pipe := io.StringIO())
    with doing("reading"):
        pass
    assert pipe.getvalue() == ""
