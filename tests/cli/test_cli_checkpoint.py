"""``widemargin train --resume``: a killed training goes on."""

import signal
import subprocess
import sys
import time

import numpy as np
import pytest

from tests.cases.problems import PROBLEMS
from tests.cases.waits import HANGS
from widemargin import LinearSVC, load_model
from widemargin.cli import main


@pytest.fixture
def data(tmp_path):
    X, y = PROBLEMS["ndc"]()
    folder = tmp_path / "data"
    folder.mkdir()
    np.save(folder / "X-0.npy", X)
    np.save(folder / "y-0.npy", y.astype(np.int8))
    return folder


def train(data, model, *options):
    return main(["train", str(data), str(model), *options])


def test_a_stopped_training_goes_on(data, tmp_path, capsys):
    model, saved = tmp_path / "a.wm", tmp_path / "a.wm.checkpoint"
    options = "--solver", "interior_point", "--tol", "1e-8"
    assert train(data, model, *options, "--resume", "--max-iter", "4") == 1
    assert "not there yet; beginning anew" in capsys.readouterr().err
    assert saved.exists()
    assert train(data, model, *options, "--resume") == 0
    captured = capsys.readouterr()
    assert captured.err == ""
    assert "(resumed at iteration 4)" in captured.out
    assert not saved.exists()
    X, y = PROBLEMS["ndc"]()
    whole = LinearSVC(tol=1e-8).fit(X, y)
    w = load_model(model).decisions[0].w
    np.testing.assert_allclose(w, whole.coef_[0], atol=1e-4)


def test_a_run_that_was_not_finished_is_not_lost(data, tmp_path, capsys):
    model, saved = tmp_path / "a.wm", tmp_path / "my.checkpoint"
    options = "--checkpoint", str(saved), "--solver", "interior_point"
    assert train(data, model, *options, "--max-iter", "2") == 1
    before = saved.read_bytes()
    capsys.readouterr()
    assert train(data, model, *options) == 2
    said = capsys.readouterr().err
    assert "my.checkpoint: holds a run that was not finished; add --resume" in said
    assert saved.read_bytes() == before
    assert train(data, model, *options, "--resume", "-C", "3") == 2
    assert "expected a checkpoint of this problem (total C" in capsys.readouterr().err
    assert train(data, model, *options, "--resume") == 0
    assert not saved.exists()


def test_options_that_do_not_fit(data, tmp_path, capsys):
    assert train(data, tmp_path / "a.wm", "--checkpoint-every", "3") == 2
    assert "--checkpoint-every needs --checkpoint FILE" in capsys.readouterr().err
    missing = str(tmp_path / "no" / "a")
    assert train(data, tmp_path / "a.wm", "--checkpoint", missing) == 2
    assert "no such folder" in capsys.readouterr().err


def test_classes_that_are_solved_stay_so(tmp_path, iris):
    X, y = iris
    path = tmp_path / "a"
    stopped = []

    def stop(step):
        stopped.append(step.problem)
        return step.iteration == 4

    options = {"solver": "interior_point", "checkpoint": path, "tol": 1e-7}
    with pytest.warns(UserWarning, match="Stopped by the callback"):
        LinearSVC(callback=stop, **options).fit(X, y)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a.0", "a.1", "a.2"]
    model = LinearSVC(**options).fit(X, y)
    assert all("resumed at iteration" in s.reason for s in model.solutions_)
    assert model.status_ == "solved"
    assert list(tmp_path.iterdir()) == []
    plain = LinearSVC(solver="interior_point", tol=1e-7).fit(X, y)
    np.testing.assert_allclose(model.coef_, plain.coef_, atol=1e-4)


@pytest.mark.full
@pytest.mark.skipif(sys.platform == "win32", reason="kills a process as Unix does")
def test_kill_9(tmp_path):
    """Rows enough for a second of training."""
    X = np.random.default_rng(0).normal(size=(30_000, 60)).astype(np.float32)
    y = np.sign(X @ np.ones(60) + 5.0 * np.random.default_rng(1).normal(size=30_000))
    np.save(tmp_path / "X-0.npy", X)
    np.save(tmp_path / "y-0.npy", y.astype(np.int8))
    model, saved = tmp_path / "a.wm", tmp_path / "a.wm.checkpoint"
    command = [sys.executable, "-m", "widemargin", "train", str(tmp_path), str(model)]
    command += ["--solver", "interior_point", "--tol", "1e-10", "-C", "100"]
    command += ["--resume", "--checkpoint-every", "0.01"]
    for _ in range(2):
        process = subprocess.Popen(command, stderr=subprocess.PIPE)
        before = saved.stat().st_mtime_ns if saved.exists() else 0
        while process.poll() is None:
            if saved.exists() and saved.stat().st_mtime_ns > before:
                break
            time.sleep(0.001)
        process.send_signal(signal.SIGKILL)
        process.communicate()
        assert process.returncode == -signal.SIGKILL
        assert not model.exists()
    done = subprocess.run(command, capture_output=True, text=True, timeout=HANGS)
    assert done.returncode == 0, done.stderr
    assert "resumed at iteration" in done.stdout
    assert model.exists()
    assert not saved.exists()


def test_only_checkpoints_are_taken_for_runs(data, tmp_path, capsys):
    (tmp_path / "run.py").write_text("print()")
    run = str(tmp_path / "run")
    assert train(data, tmp_path / "a.wm", "--checkpoint", run, "--tol", "0.1") == 0
    assert train(data, tmp_path / "a.wm", "--checkpoint", str(tmp_path / "a.wm")) == 2
    assert "a.wm" in capsys.readouterr().err
    report = str(tmp_path / "r.html")
    options = "--report", report, "--checkpoint", report, "--resume"
    assert train(data, tmp_path / "b.wm", *options) == 2
    assert "would overwrite the output" in capsys.readouterr().err
