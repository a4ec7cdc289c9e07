"""Too little memory: one sentence, and the best model so far; never a wait for ever."""

import os
import subprocess
import sys

import numpy as np
import pytest
from pairwise import pairwise

from widemargin import LinearSVC, load_model, save_svmlight
from widemargin.cli import main
from widemargin.solvers.active_set import ActiveSet

SCRIPT = """
import resource, sys
import numpy as np
import widemargin.cli.train
from widemargin import SVC, LinearSVC

kind, fit, extra = sys.argv[1:]
m, n = (20_000, 50) if fit in ("kernel", "lowrank") else (3000, 1200)
rng = np.random.default_rng(0)
X = rng.normal(size=(m, n))
y = np.sign(X[:, 0] + rng.normal(size=m))
classifier = {
    "wide": LinearSVC(solver="interior_point", intercept="free", max_iter=3),
    "active": LinearSVC(loss="squared_hinge", solver="active_set"),
    "kernel": SVC(max_iter=3),
    "lowrank": SVC(rank=1000, max_iter=3),
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


@pytest.mark.skipif(
    not os.path.exists("/proc/self/status"), reason="caps on memory are tested on Linux"
)
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
        ]
    ],
    strength=1,
)
def test_a_fit_under_a_limit_of_the_system_ends(kind, fit, extra):
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", SCRIPT, kind, fit, str(extra)],
        capture_output=True,
        text=True,
        timeout=300,  # a wait for ever
    )
    assert (done.returncode, done.stdout) == (0, "ended\n"), done.stderr


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
