"""``train --scale``: learned where the data are, kept in the model, applied by predict."""

import json
import os
import re

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, StandardScaler

from tests.cases.cli import refused
from tests.cases.problems import PROBLEMS
from widemargin import SVC, SVR, LinearSVC, LinearSVR, load_model, save_svmlight
from widemargin.cli import main, stored

SCALERS = {"standard": StandardScaler, "minmax": MinMaxScaler, "maxabs": MaxAbsScaler}


@pytest.fixture
def here(tmp_path, monkeypatch):
    """A current folder with the same data in files of all kinds: columns of many sizes."""
    monkeypatch.chdir(tmp_path)
    X, y = PROBLEMS["breast_cancer"]()
    X = X * np.logspace(-3, 3, X.shape[1]) + np.arange(X.shape[1])
    y = y.astype(int)
    for name, rows in (("train", slice(0, 400)), ("test", slice(400, None))):
        save_svmlight(X[rows], y[rows], f"{name}.svm")
        save_svmlight(X[rows] * (X[rows] > 1), y[rows], f"{name}-sparse.svm")
        np.save(f"{name}.npy", X[rows])
        np.save(f"{name}-y.npy", y[rows])
        table = pd.DataFrame(X[rows], columns=[f"c{j}" for j in range(X.shape[1])])
        table.assign(label=y[rows]).to_parquet(f"{name}.parquet")
        os.mkdir(name)
        for k, part in enumerate(np.array_split(np.arange(len(y[rows])), 3)):
            np.save(f"{name}/X-{k}.npy", X[rows][part])
            np.save(f"{name}/y-{k}.npy", y[rows][part])
    return tmp_path


def ran(capsys, command, status=0):
    """Standard output of a command."""
    assert main(command.split()) == status
    return capsys.readouterr().out


def expected(scale, kernel):
    """The labels of test rows that scikit-learn's pipeline has."""
    kind = LinearSVC() if kernel == "linear" else SVC(kernel=kernel)
    pipeline = make_pipeline(SCALERS[scale](), kind)
    pipeline.fit(np.load("train.npy"), np.load("train-y.npy"))
    return pipeline.predict(np.load("test.npy"))


DATA = {
    "npy": "train.npy --label train-y.npy --test test.npy --test-label test-y.npy",
    "shards": "train --test test --memory-limit 64M",
    "parquet": "train.parquet --label label --test test.parquet",
}


@pytest.mark.cover(1)
@pytest.mark.parametrize("data", DATA)
@pytest.mark.parametrize("kernel", ["linear", "rbf"])
@pytest.mark.parametrize("scale", SCALERS)
def test_the_model_is_that_of_a_pipeline(scale, kernel, data, here, capsys):
    words = f"{DATA[data]} --scale {scale} --kernel {kernel} --json"
    told = json.loads(train(capsys, words))
    model, labels = load_model("m.wm"), expected(scale, kernel)
    assert model.meta["scale"] == told["scale"] == scale
    assert (model.scaling is None) == (kernel == "linear")
    np.testing.assert_array_equal(model.predict(np.load("test.npy")), labels)
    assert told["accuracy"] == np.mean(labels == np.load("test-y.npy"))
    lines = ran(capsys, f"predict m.wm {DATA[data].split('--test ')[1].split()[0]}")
    assert [int(line) for line in lines.split()] == labels.tolist()


def train(capsys, words):
    """What ``train`` tells of a model ``m.wm``."""
    data, _, options = words.partition(" ")
    return ran(capsys, f"train {data} m.wm {options}")


@pytest.mark.cover(1)
@pytest.mark.parametrize("limit", ["", "--memory-limit 64M"])
@pytest.mark.parametrize("kernel", ["linear", "rbf --rank 20 --approximation nystroem"])
@pytest.mark.parametrize("scale", SCALERS)
def test_sparse_text_is_scaled_without_a_shift(
    scale, kernel, limit, here, capsys, monkeypatch
):
    monkeypatch.setattr(stored, "_SHARE", 1000)  # text of 64 KiB is large
    words = f"train-sparse.svm --scale {scale} --kernel {kernel} {limit}"
    told = train(capsys, f"{words} --test test-sparse.svm --tol 1e-6")
    assert ("not shifted" in told) == (scale != "maxabs")
    model = load_model("m.wm")
    assert model.scaling is None or not model.scaling.is_shifted
    labels = ran(capsys, f"predict m.wm test-sparse.svm {limit}").split()
    right = np.mean(np.array(labels, int) == np.load("test-y.npy"))
    assert f"accuracy {100 * right:.2f} %" in told
    assert right > 0.7


def test_text_in_which_all_numbers_are_stored_is_shifted(here, capsys):
    X = np.load("train.npy")
    assert X.all()
    told = train(capsys, "train.svm --scale standard --kernel rbf")
    assert "columns scaled: standard (mean 0, standard deviation 1)" in told
    model = load_model("m.wm")
    np.testing.assert_allclose(model.scaling.shift, X.mean(axis=0), rtol=1e-12)
    labels = expected("standard", "rbf")
    np.testing.assert_array_equal(model.predict(np.load("test.npy")), labels)


def test_a_search_and_a_report(here, capsys):
    words = "train.svm --scale minmax --kernel rbf --cv 3 --C 0.1,10 --gamma 0.1,1"
    told = train(capsys, f"{words} --test test.svm --report r.html")
    labels = np.array(ran(capsys, "predict m.wm test.svm").split(), int)
    right = np.mean(labels == np.load("test-y.npy"))
    assert f"accuracy {100 * right:.2f} %" in told
    assert os.path.getsize("r.html") > 10_000


MACHINES = {
    ("classify", "linear"): LinearSVC(tol=1e-8),
    ("classify", "rbf"): SVC(gamma=0.5, tol=1e-8),
    ("regress", "linear"): LinearSVR(tol=1e-8),
    ("regress", "rbf"): SVR(gamma=0.5, tol=1e-8),
}


@pytest.mark.cover(2)
@pytest.mark.parametrize("scale", SCALERS)
@pytest.mark.parametrize("kernel", ["linear", "rbf"])
@pytest.mark.parametrize("kind", ["classify", "regress"])
def test_folds_learn_the_scaling_of_their_own_rows(
    scale, kernel, kind, tmp_path, capsys, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    X = np.abs(rng.normal(size=(60, 3))) + 0.1
    X[::20] *= 20.0  # it matters which rows it is learned on
    t = np.log(X[:, 0]) + X[:, 1] / X[:, 2] + 0.1 * rng.normal(size=60)
    y = t if kind == "regress" else (t > 1.0).astype(int)
    save_svmlight(X, y, "few.svm")
    gamma = "--gamma 0.5" if kernel == "rbf" else ""
    words = f"few.svm --type {kind} --scale {scale} --kernel {kernel} {gamma}"
    told = json.loads(train(capsys, f"{words} --cv 4 --C 1,10 --tol 1e-8 --json"))
    pipeline = make_pipeline(SCALERS[scale](), clone(MACHINES[kind, kernel]))
    for point in told["selection"]:
        pipeline[-1].set_params(C=point["C"])
        known = cross_val_score(pipeline, X, y, cv=4).mean()
        assert point["score"] == pytest.approx(known, rel=1e-4)


def test_inspect_and_other_formats_of_a_scaled_model(here, capsys):
    train(capsys, "train.svm --scale standard --kernel linear")
    assert json.loads(ran(capsys, "inspect m.wm --json"))["scale"] == "standard"
    assert main(["convert", "m.wm", "m.model"]) == 0
    assert main(["convert", "m.model", "back.wm"]) == 0
    test = np.load("test.npy")
    found = load_model("back.wm").predict(test)
    np.testing.assert_array_equal(found, load_model("m.wm").predict(test))


def test_a_scaled_kernel_model_has_no_text(here, capsys):
    train(capsys, "train.svm --scale standard --kernel rbf")
    assert refused(capsys, "convert", "m.wm", "m.model") == (
        "widemargin: m.wm: A LIBSVM model has no scaling of the columns: train on data "
        "that svm-scale has scaled.\n"
    )
    assert main(["convert", "m.wm", "m.onnx"]) == 0


def test_bad_scales_and_data_are_refused(here, capsys):
    assert "found 'log'" in refused(
        capsys, "train", "train.svm", "m.wm", "--scale", "log"
    )
    X = np.load("train.npy")
    X[5, 3] = np.nan
    np.save("train.npy", X)
    words = ["train.npy", "m.wm", "--label", "train-y.npy", "--scale", "minmax"]
    message = refused(capsys, "train", *words)
    assert message.startswith("widemargin: train.npy")
    assert "finite" in message
    assert not os.path.exists("m.wm")


def test_inspect_ranks_the_columns_as_the_report_does(here, capsys):
    train(capsys, "train.parquet --label label --scale standard --report r.html")
    said = ran(capsys, "inspect m.wm")
    assert "; of scaled columns (standard), as in a report" in said
    assert "column scales" not in said
    weights = json.loads(ran(capsys, "inspect m.wm --json"))["largest_weights"]
    page = (here / "r.html").read_text()
    assert "Weights are of the scaled columns (standard)" in page
    assert "standard: this page has the scaled columns" in page
    table = page.split("<h2>Largest weights</h2>")[1].split("</section>")[0]
    rows = re.findall(r'<th scope="row">(c\d+)</th><td class="n">(\S+)</td>', table)
    found = [(entry["feature"], f"{entry['weight']:+.3g}") for entry in weights]
    assert found == rows[: len(found)]
