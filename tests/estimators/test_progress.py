"""The progress line, as a terminal sees it."""

import contextlib
import functools
import io
import os
import re
import sys
import threading

import numpy as np
import pytest
from sklearn.datasets import make_blobs
from tqdm import tqdm

from widemargin import SVC, Kernel, LinearSVC
from widemargin.estimators import progress
from widemargin.estimators.progress import Printer, _seconds
from widemargin.features.methods import feature_map
from widemargin.solution import Step
from widemargin.solvers.kernel.irwls import IRWLS
from widemargin.system.progress import telling

termios = pytest.importorskip("termios", reason="needs a pseudo terminal")


class Screen:
    """What was written to a terminal: ``lines``, each over the one before it."""

    def __init__(self):
        self.text = ""

    @property
    def lines(self):
        return [s for s in re.split(r"[\r\n]+", self.text) if s.strip()]

    @property
    def shares(self):
        """How full the bar of each line is."""
        bars = [re.search(r"\[([=-]+)\]", line)[1] for line in self.lines]
        return [bar.count("=") / len(bar) for bar in bars]


@pytest.fixture
def terminal(monkeypatch):
    """A context: standard error is a terminal with so many columns."""
    # Every step is shown, however fast they come.
    monkeypatch.setattr(
        "widemargin.estimators.progress.tqdm", functools.partial(tqdm, mininterval=0)
    )

    @contextlib.contextmanager
    def open_terminal(columns):
        screen, (ours, theirs) = Screen(), os.openpty()
        termios.tcsetwinsize(theirs, (24, columns)) if columns else None

        def read():
            with contextlib.suppress(OSError):  # the other end was closed
                while part := os.read(ours, 4096):
                    screen.text += part.decode()

        reader = threading.Thread(target=read)
        reader.start()
        try:
            with open(theirs, "w") as stderr, monkeypatch.context() as patch:
                patch.setattr(sys, "stderr", stderr)
                yield screen
        finally:
            reader.join()
            os.close(ours)

    return open_terminal


@pytest.mark.parametrize(
    ("classes", "memory_limit"), [(2, None), (4, None), (4, 1 << 14)]
)
def test_bar_fills_from_empty_to_full(terminal, classes, memory_limit):
    X, y = make_blobs(300, centers=classes, cluster_std=4.0, random_state=0)
    with terminal(80) as screen:
        LinearSVC(verbose=1, memory_limit=memory_limit).fit(X, y)
    assert len(screen.lines) > 5
    assert screen.shares[:2] == [0.0, 0.0]
    assert screen.shares == sorted(screen.shares)
    assert screen.shares[-1] == 1.0
    if memory_limit:  # one class after another: the first is a quarter of the work
        assert 0.0 < min(filter(None, screen.shares)) <= 0.25
    assert max(map(len, screen.lines)) < 80
    form = r"\d+ iterations  \[=+\]  gap \d\.\de-\d\d \(goal 1e-04\)  \d+(\.\d)? s *"
    assert re.fullmatch(form, screen.lines[-1])
    assert screen.text.endswith("\n")


@pytest.mark.parametrize("classes", [2, 4])
def test_with_a_kernel_support_vectors_are_shown(terminal, classes):
    X, y = make_blobs(900, centers=classes, cluster_std=4.0, random_state=0)
    with terminal(80) as screen:
        clf = SVC(verbose=1, solver=IRWLS(working_set=64)).fit(X, y)
    assert screen.shares[-1] == 1.0
    assert max(map(len, screen.lines)) < 80
    form = r"([\d,]+) SV  \[=+\]  gap \S+ \(goal 1e-04\)  \d+(\.\d)? s *"
    shown = re.fullmatch(form, screen.lines[-1])
    assert int(shown[1].replace(",", "")) >= len(clf.support_) - 3


def step(gap, iteration=1, problem=0):
    return Step(iteration, 1.0, 1.0 - gap, 0.0, 5, problem=problem)


def test_line_of_an_unfinished_fit_says_how_long(terminal):
    with terminal(80) as screen:
        printer = Printer(1e-4)
        printer(step(1.0, 0))
        printer(step(1e-2, 3))
        printer.close()
    form = (
        r"3 iterations  \[=+-+\]  gap 1.0e-02 \(goal 1e-04\)  "
        r"\d.\d s, about \d.\d s left *"
    )
    assert re.fullmatch(form, screen.lines[-1])
    assert screen.shares[-1] == pytest.approx(0.5, abs=0.1)


def test_a_long_line_of_a_kernel_fits_into_eighty_columns(terminal, monkeypatch):
    with terminal(80) as screen:
        printer = Printer(1e-4)
        printer(step(1.0, 0))
        monkeypatch.setattr(printer, "_begin", printer._begin - 5_900.0)
        late = step(1e-2, 3)
        late.details = {"hits": 0.0, "support_vectors": 123_456.0}
        printer(late)
        printer.close()
    form = r"123,456 SV  \[=+-+\]  gap .* \(goal 1e-04\)  98:2\d min, about .* left *"
    assert re.fullmatch(form, screen.lines[-1])


def test_the_time_left_is_guessed_from_a_tenth_of_the_way_on(terminal):
    with terminal(80) as screen:
        printer = Printer(1e-4)
        for number, gap in enumerate((1.0, 0.9, 0.5, 0.35)):
            printer(step(gap, number))
        printer.close()
    guesses = ["left" in line for line in screen.lines]
    assert not any(guesses[:-2])
    assert guesses[-1]


@pytest.mark.parametrize("columns", [0, 20, 40, 60, 200])
def test_gap_and_bar_are_seen_at_any_width(terminal, columns):
    with terminal(columns) as screen:
        printer = Printer(1e-4)
        printer(step(1.0, 100))
        printer(step(1e-2, 101))
        printer.close()
    assert max(len(line.rstrip()) for line in screen.lines) < (columns or 80)
    if columns >= 40:
        assert "gap 1.0e-02 (goal 1e-04)" in screen.lines[-1]
        assert 0.3 < screen.shares[-1] < 0.7


def test_steps_of_several_problems_in_any_order(terminal):
    with terminal(80) as screen:
        printer = Printer(1e-4, solves=4)
        for k in (2, 0):
            printer(step(1.0, 0, k))
            printer(step(np.inf, 1, k))
            printer(step(np.nan, 2, k))
            printer.finish([k], [3e-5])
        printer(step(0.5, 0, 1))
        printer.close()
    assert screen.shares[0] == 0.0
    assert screen.shares == sorted(screen.shares)
    assert screen.shares[-1] == pytest.approx(0.5, abs=0.1)
    assert "4 iterations" in screen.lines[-1]
    assert "gap 5.0e-01" in screen.lines[-1]


def test_nothing_is_shown_before_the_delay_and_left_in_a_terminal(terminal):
    with terminal(80) as screen:
        printer = Printer(1e-4, delay=1000.0, terminal_only=True)
        printer(step(0.5))
        printer.close()
    assert screen.text == ""
    with terminal(80) as screen:
        printer = Printer(1e-4, terminal_only=True)
        printer(step(0.5))
        printer.close()
    assert screen.lines
    assert screen.text.endswith("\r")


def test_nothing_for_a_terminal_goes_into_a_pipe(monkeypatch):
    pipe = io.StringIO()
    monkeypatch.setattr(sys, "stderr", pipe)
    printer = Printer(1e-4, terminal_only=True)
    printer(step(0.5))
    printer.finish([0], [1e-5])
    printer.close()
    assert pipe.getvalue() == ""


@pytest.mark.parametrize("interval", [0.0, 1000.0])
def test_a_pipe_gets_lines(monkeypatch, interval):
    """They were written over each other, and the last one twice."""
    pipe = io.StringIO()
    monkeypatch.setattr(sys, "stderr", pipe)
    monkeypatch.setattr(progress, "_SECONDS_A_LINE", interval)
    printer = Printer(1e-4)
    for gap in (0.5, 0.01, 0.01):
        printer(step(gap))
    printer.finish([0], [1e-5])
    printer.close()
    text = pipe.getvalue()
    lines = text.split("\n")
    assert lines.pop() == ""
    assert "\r" not in text
    assert [line for line in lines if not re.search(r" gap .* s\b", line)] == []
    assert "gap 1.0e-05" in lines[-1]
    assert len(lines) == len(set(lines))
    assert len(lines) == 1 if interval else len(lines) >= 3


def test_a_notebook_gets_a_line_that_changes(monkeypatch):
    notebook = type("OutStream", (io.StringIO,), {"__module__": "ipykernel.iostream"})()
    monkeypatch.setattr(sys, "stderr", notebook)
    printer = Printer(1e-4)
    printer(step(0.5))
    printer.close()
    assert notebook.getvalue().startswith("\r[---")


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.04, "0.0 s"),
        (4.25, "4.2 s"),
        (35.2, "35 s"),
        (125, "2:05 min"),
        (10000, "2:46 h"),
    ],
)
def test_times_for_people(seconds, text):
    assert _seconds(seconds) == text


@pytest.mark.parametrize("columns", [120, 24])
def test_rows_with_features_are_counted(terminal, columns, monkeypatch):
    monkeypatch.setattr("widemargin.features.maps.TILE_FLOPS", 1.0)
    monkeypatch.setattr("widemargin.features.maps.TILE_ROWS", 100)
    X, y = make_blobs(300, centers=2, random_state=0)
    with terminal(columns) as screen:
        SVC(rank=20, verbose=1).fit(X, y)
    counted = [line for line in screen.lines if line.startswith("feat")]
    whole = [f"features of {k} of 300 rows"[: columns - 6] for k in (100, 200, 300)]
    assert [line.split("  ")[0] for line in counted] == whole
    assert max(map(len, screen.lines)) < columns
    assert "gap" in screen.lines[-1]


def test_rows_of_files_are_counted_as_their_features_are_stored(monkeypatch):
    X = np.random.default_rng(0).normal(size=(300, 2))
    z = feature_map(X, Kernel("rbf", gamma=0.1), rank=9, features=False)
    told = []
    with telling(lambda done, of: told.append((done, of))):
        z.rows(X, store="always")
    assert told[-1] == (300, 300)
