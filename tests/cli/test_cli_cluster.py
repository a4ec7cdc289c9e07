"""The command line on a Dask cluster."""

import json
import sys

import numpy as np
import pandas as pd
import pytest

from tests.cases.cli import refused
from tests.cases.clusters import cluster, mixture
from widemargin import LinearSVC, LinearSVCCV, load_model
from widemargin.cli import main

pytestmark = pytest.mark.dask


@pytest.fixture
def here(tmp_path, monkeypatch):
    """A current folder with shards, and the rows in them."""
    monkeypatch.chdir(tmp_path)
    X, y = mixture(900)
    (tmp_path / "shards").mkdir()
    for k, part in enumerate(np.array_split(np.arange(900), 5)):
        np.save(f"shards/X-{k}.npy", X[part])
        np.save(f"shards/y-{k}.npy", y[part])
    np.save("X.npy", X)
    np.save("y.npy", y)
    return X, y


def test_what_is_missing_is_said_before_workers_start(here, capsys, monkeypatch):
    monkeypatch.setattr("distributed.LocalCluster", None)
    message = refused(capsys, "train", "shrds", "model.wm", "--workers", "2")
    assert message == "widemargin: no such file: shrds (did you mean shards?)\n"


@pytest.mark.parametrize("data", [["shards"], ["X.npy", "--label", "y.npy"]])
def test_a_model_is_that_of_rows_here(here, capsys, data):
    with cluster(2) as client:
        where = ["--cluster", client.scheduler.address]
        command = ["train", data[0], "model.wm", *data[1:], *where, "--tol", "1e-9"]
        assert main([*command, "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert (facts["rows"], facts["features"]) == (900, 5)
    assert facts["status"] == "solved"
    whole = LinearSVC(tol=1e-9).fit(*here)
    found = load_model("model.wm").decisions[0]
    np.testing.assert_allclose(found.w, whole.coef_[0], rtol=1e-9)
    assert facts["support_vectors"] == whole.support_.size


def test_folds_choose_the_C_of_rows_here(here, capsys):
    with cluster(2) as client:
        where = ["--cluster", client.scheduler.address]
        command = ["train", "shards", "model.wm", *where, "--tol", "1e-9"]
        assert main([*command, "--cv", "3", "-C", "0.001,1", "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    whole = LinearSVCCV(Cs=[0.001, 1.0], cv=3, tol=1e-9).fit(*here)
    scores = [point["score"] for point in facts["selection"]]
    np.testing.assert_allclose(scores, whole.scores_.mean(axis=0), rtol=1e-12)
    found = load_model("model.wm").decisions[0]
    np.testing.assert_allclose(found.w, whole.coef_[0], rtol=1e-9)


def test_a_terminal_is_told_what_was_read(here, capsys, monkeypatch):
    """Only what is read here is told before the training."""
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    with cluster(1) as client:
        where = ["--cluster", client.scheduler.address]
        assert main(["train", "shards", "model.wm", *where]) == 0
    out = capsys.readouterr().out
    assert out.count("shards: 900 rows x 5 features, 2 classes\n") == 1


@pytest.mark.parametrize("data", ["shards", "t.parquet"])
@pytest.mark.parametrize("folds", [[], ["--cv", "2", "-C", "0.1,1"]])
def test_the_facts_are_told_in_words(here, capsys, data, folds):
    """Standard output that is no terminal ended in a traceback."""
    table = pd.DataFrame(here[0], columns=list("abcde")).assign(y=here[1])
    table.to_parquet("t.parquet", index=False)
    label = ["--label", "y"] * (data == "t.parquet")
    with cluster(1) as client:
        where = ["--cluster", client.scheduler.address]
        assert main(["train", data, "model.wm", *label, *folds, *where]) == 0
    out = capsys.readouterr().out
    assert out.startswith(f"{data}: 900 rows x 5 features, 2 classes\n")
    assert ("mean score" in out) == bool(folds)
    assert out.endswith("\nmodel: model.wm\n")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--probability"], "--workers and --probability cannot go together"),
        (
            ["--cv", "3", "--cv-seed", "0"],
            "--workers and --cv-seed cannot go together",
        ),
        (["--kernel", "rbf"], "--workers and a kernel need --rank"),
        (["--solver", "irwls"], "--workers needs a solver of linear machines, found"),
        (["--cluster", "tcp://x:1"], "--cluster and --workers cannot go together"),
        (["--class-weight", "1:2"], "--workers needs --class-weight balanced"),
    ],
)
def test_what_a_cluster_does_not_do_is_refused(here, capsys, options, message):
    command = ["train", "shards", "model.wm", "--workers", "1", *options]
    assert message in refused(capsys, *command)


def test_files_that_are_no_arrays_are_refused(here, capsys, tmp_path):
    (tmp_path / "data.svm").write_text("1 1:1\n")
    command = ["train", "data.svm", "m.wm", "--workers", "1"]
    assert "--workers expects .npy files or Parquet" in refused(capsys, *command)


def test_a_cluster_without_dask_is_refused(here, capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    message = refused(
        capsys, "train", "X.npy", "m.wm", "--label", "y.npy", "--workers", "1"
    )
    assert message == (
        "widemargin: a cluster needs the extra 'dask': "
        'pip install "widemargin[dask]"\n'
    )
