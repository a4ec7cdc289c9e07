"""Too little memory: one sentence, and the best model so far; never a wait for ever."""

import itertools
import os
import subprocess
import sys

import numpy as np
import pytest

from tests.cases.pairwise import pairwise
from tests.cases.waits import HANGS
from widemargin import EnclosingBall, LinearSVC, load_model, save_svmlight
from widemargin.cli import main
from widemargin.solvers.kernel import ball_descent
from widemargin.solvers.kernel.simplex import SimplexDescent
from widemargin.solvers.linear.active_set import ActiveSet

SCRIPT = """
import resource, sys
import numpy as np
import widemargin.cli.train
from widemargin import SVC, EnclosingBall, LinearSVC

kind, fit, extra = sys.argv[1:]
m, n = (20_000, 50) if fit in ("kernel", "lowrank", "ball") else (3000, 1200)
rng = np.random.default_rng(0)
X = rng.normal(size=(m, n))
y = np.sign(X[:, 0] + rng.normal(size=m))
classifier = {
    "wide": LinearSVC(solver="interior_point", intercept="free", max_iter=3),
    "active": LinearSVC(loss="squared_hinge", solver="active_set"),
    "kernel": SVC(max_iter=3),
    "lowrank": SVC(rank=1000, max_iter=3),
    "ball": EnclosingBall(C=1.0, max_iter=1000),
}[fit]
lines = open("/proc/self/status").read().splitlines()
used = 1024 * next(int(l.split()[1]) for l in lines if l.startswith(f"Vm{kind}"))
limit = resource.RLIMIT_AS if kind == "Size" else resource.RLIMIT_DATA
cap = used + (int(extra) << 20)
resource.setrlimit(limit, (cap, cap))
try:
    classifier.fit(X, y)
except MemoryError as error:
    assert str(error)
print("ended")
"""


on_linux = pytest.mark.skipif(
    not os.path.exists("/proc/self/status"), reason="caps on memory are tested on Linux"
)


@on_linux
@pytest.mark.one_of(5)
@pairwise(
    ("kind", "fit", "extra"),
    [
        (*fit, extra)
        for extra in (50, 150, 400)
        for fit in [
            ("Size", "wide"),
            ("Size", "lowrank"),
            ("Data", "active"),
            ("Data", "kernel"),
            ("Data", "ball"),
        ]
    ],
    strength=1,
)
def test_a_fit_under_a_limit_of_the_system_ends(kind, fit, extra):
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", SCRIPT, kind, fit, str(extra)],
        capture_output=True,
        text=True,
        timeout=HANGS,
    )
    assert (done.returncode, done.stdout) == (0, "ended\n"), done.stderr


READING = """
import resource, sys
import widemargin.cli.train
from widemargin import load_svmlight
from widemargin.cli import main

path, model = sys.argv[1:]
lines = open("/proc/self/status").read().splitlines()
used = 1024 * next(int(l.split()[1]) for l in lines if l.startswith("VmData"))
cap = used + (1 << 20)
resource.setrlimit(resource.RLIMIT_DATA, (cap, cap))
if model:
    sys.exit(main(["train", path, model]))
try:
    load_svmlight(path)
except MemoryError as error:
    print(error)
"""


@pytest.fixture
def large(tmp_path):
    """A file whose numbers take more than there is."""
    X = np.random.default_rng(0).normal(size=(8000, 20)).round(2)
    path = str(tmp_path / "a.svm")
    save_svmlight(X, np.where(X[:, 0] > 0, 1, -1), path)
    return path


def reading(path, model=""):
    """Status, output and errors of a process that has 1 MiB left to read a file."""
    done = subprocess.run(
        [sys.executable, "-c", READING, path, model],
        capture_output=True,
        text=True,
        timeout=HANGS,
    )
    return done.returncode, done.stdout, done.stderr


@pytest.mark.full
@on_linux
def test_a_file_that_does_not_fit_is_a_memory_error(large):
    status, said, errors = reading(large)
    assert (status, errors) == (0, "")
    assert said.strip()
    assert said.count("\n") == 1


@on_linux
def test_training_on_a_file_that_does_not_fit_ends_with_a_sentence(large, tmp_path):
    model = str(tmp_path / "m.wm")
    status, said, errors = reading(large, model)
    assert (status, said) == (2, "")
    assert errors.startswith("widemargin: out of memory")
    assert errors.count("\n") == 1
    assert not os.path.exists(model)


@pytest.fixture
def breaks(monkeypatch):
    """A solver that has no memory for its step ``at``."""

    def let(at):
        iterate = ActiveSet.iterate

        def failing(*arguments):
            for step in iterate(*arguments):
                if step.iteration == at:
                    raise MemoryError("no room for 8 bytes")
                yield step

        monkeypatch.setattr(ActiveSet, "iterate", failing)

    return let


def data():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 5))
    return X, np.where(X[:, 0] + rng.normal(size=200) > 0, 1, -1)


def test_an_estimator_keeps_the_best_model(breaks):
    breaks(2)
    classifier = LinearSVC(loss="squared_hinge", solver="active_set", tol=1e-12)
    with pytest.raises(MemoryError, match="Stopped by a lack of memory .* was kept"):
        classifier.fit(*data())
    assert classifier.status_ == "out_of_memory"
    assert classifier.coef_.any()


def test_without_a_model_the_error_comes_as_it_is(breaks):
    breaks(0)
    classifier = LinearSVC(loss="squared_hinge", solver="active_set")
    with pytest.raises(MemoryError, match="no room for 8 bytes"):
        classifier.fit(*data())
    assert not hasattr(classifier, "coef_")


@pytest.mark.parametrize("at", [1, 3])
def test_a_ball_keeps_the_best_one(monkeypatch, at):
    advance, calls = SimplexDescent.advance, itertools.count(1)

    def failing(*arguments):
        if next(calls) >= at:
            raise MemoryError("no room for 8 bytes")
        return advance(*arguments)

    monkeypatch.setattr(SimplexDescent, "advance", failing)
    monkeypatch.setattr(ball_descent, "LEAST_STEPS", 1)
    monkeypatch.setattr(ball_descent, "LOOK", 1)
    ball, (X, _) = EnclosingBall(C=None, tol=1e-10), data()
    with pytest.raises(MemoryError, match="Stopped by a lack of memory .* was kept"):
        ball.fit(X)
    assert ball.status_ == "out_of_memory"
    assert np.all(ball.predict(X) == 1)


def test_without_a_ball_the_error_comes_as_it_is(monkeypatch):
    def failing(*arguments):
        raise MemoryError("no room for 8 bytes")

    monkeypatch.setattr(ball_descent, "SimplexDescent", failing)
    ball = EnclosingBall()
    with pytest.raises(MemoryError, match="no room for 8 bytes"):
        ball.fit(data()[0])
    assert not hasattr(ball, "radius_")


@pytest.mark.parametrize("at", [0, 2])
def test_the_command_line_ends_with_a_sentence(breaks, at, tmp_path, capsys):
    breaks(at)
    path, model = str(tmp_path / "a.svm"), str(tmp_path / "m.wm")
    save_svmlight(*data(), path)
    options = ["--loss", "squared_hinge", "--solver", "active_set", "--tol", "1e-12"]
    assert main(["train", path, model, *options]) == 2
    said = capsys.readouterr().err
    assert said.startswith("widemargin: out of memory")
    assert said.count("\n") == 1
    assert os.path.exists(model) == (at > 0)
    if at:
        assert load_model(model).meta["status"] == "out_of_memory"
