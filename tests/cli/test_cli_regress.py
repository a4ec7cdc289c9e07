"""``train --type regress``: numbers as labels, from all kinds of files."""

import json
import os
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from sklearn.datasets import make_friedman1
from sklearn.metrics import mean_absolute_error, r2_score, root_mean_squared_error
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVR as LibSVR
from sklearn.svm import LinearSVR as LibLinear

from tests.cases.cli import refused
from tests.cases.report_pages import Page, words_only
from widemargin import (
    SVR,
    LinearSVR,
    NuSVC,
    NuSVR,
    OneClassSVM,
    load_model,
    load_svmlight,
    save_svmlight,
)
from widemargin.cli import main, stored


@pytest.fixture
def here(tmp_path, monkeypatch):
    """A current folder with the same data in files of all kinds."""
    monkeypatch.chdir(tmp_path)
    X, y = make_friedman1(600, n_features=8, noise=1.0, random_state=0)
    for name, rows in (("train", slice(0, 400)), ("test", slice(400, None))):
        save_svmlight(X[rows], y[rows], f"{name}.svm")
        np.save(f"{name}.npy", X[rows])
        np.save(f"{name}-y.npy", y[rows])
        table = pd.DataFrame(X[rows], columns=[*"abcdefgh"])
        table.assign(cost=y[rows]).to_parquet(f"{name}.parquet")
        os.mkdir(name)
        for k, part in enumerate(np.array_split(np.arange(len(y[rows])), 3)):
            np.save(f"{name}/X-{k}.npy", X[rows][part])
            np.save(f"{name}/y-{k}.npy", y[rows][part])
    return tmp_path


def run(capsys, *command, status=0):
    """Standard output of a command."""
    assert main(list(command)) == status
    return capsys.readouterr().out


def trained(capsys, *more, status=0):
    """The facts of a training on the text."""
    command = ("train", "train.svm", "m.wm", "--type", "regress", "--json", *more)
    return json.loads(run(capsys, *command, status=status))


def predicted(capsys, path):
    return np.array(run(capsys, "predict", "m.wm", path).split(), float)


def test_what_is_said(here, capsys):
    command = ["train", "train.svm", "m.wm", "--type", "regress", "--test", "test.svm"]
    out = run(capsys, *command)
    first = (
        r"train.svm: 400 rows x 8 features, 100 % nonzero, targets from 0.7051 to 26.3"
    )
    assert out.startswith(f"{first}\nepsilon insensitive loss, epsilon = 0\n")
    assert "Solved to a relative gap of" in out
    assert "classes" not in out
    assert "accuracy" not in out
    assert "\nR^2 0.71" in out
    assert ", root mean squared error 2.56" in out
    assert ", mean absolute error 1.99" in out
    out = run(capsys, "inspect", "m.wm")
    assert "scheme           regression\n" in out
    assert "loss             epsilon_insensitive\n" in out


FILES = {
    "svm": ["train.svm"],
    "npy": ["train.npy", "--label", "train-y.npy"],
    "parquet": ["train.parquet", "--label", "cost"],
    "": ["train"],
}


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
@pytest.mark.parametrize("kind", FILES)
def test_data_of_all_kinds_give_the_same_predictions(here, capsys, kind, kernel):
    data, *more = FILES[kind]
    asked = ["--type", "regress", "--kernel", kernel, "--tol", "1e-8", *more]
    run(capsys, "train", data, "m.wm", *asked)
    known = LinearSVR(tol=1e-8) if kernel == "linear" else SVR(tol=1e-8)
    known.fit(np.load("train.npy"), np.load("train-y.npy"))
    found = predicted(capsys, f"test.{kind}" if kind else "test")
    np.testing.assert_allclose(found, known.predict(np.load("test.npy")), atol=2e-3)


def test_text_that_is_too_large_stays_in_files(here, capsys, monkeypatch):
    monkeypatch.setattr(stored, "is_stored", lambda path, memory_limit: True)
    trained(capsys, "--tol", "1e-8")
    known = LinearSVR(tol=1e-8).fit(np.load("train.npy"), np.load("train-y.npy"))
    found = predicted(capsys, "test.svm")
    np.testing.assert_allclose(found, known.predict(np.load("test.npy")), atol=2e-3)


@pytest.mark.parametrize("loss", ["epsilon_insensitive", "squared_epsilon_insensitive"])
@pytest.mark.parametrize("intercept", ["free", "penalized", "none"])
def test_options_reach_the_estimator(here, capsys, loss, intercept):
    asked = ["--loss", loss, "--intercept", intercept, "--epsilon", "0.7", "-C", "3"]
    facts = trained(capsys, *asked, "--tol", "1e-9")
    known = LinearSVR(epsilon=0.7, C=3.0, loss=loss, intercept=intercept, tol=1e-9)
    known.fit(np.load("train.npy"), np.load("train-y.npy"))
    assert (facts["loss"], facts["epsilon"]) == (loss, 0.7)
    np.testing.assert_allclose(
        facts["primal"][0], known.solution_.certificate.primal, rtol=1e-8
    )


THEIRS = {
    "svm-train -s 3 -p 0.2": (
        LibSVR(epsilon=0.2),
        ["--kernel", "rbf", "--epsilon", "0.2"],
    ),
    "svm-train -s 3 -t 0": (
        LibSVR(kernel="linear", epsilon=0.1),
        ["--epsilon", "0.1"],
    ),
    "train -s 13 -B 1": (
        LibLinear(epsilon=0.1, max_iter=10**6),
        ["--epsilon", "0.1", "--intercept", "penalized"],
    ),
    "train -s 12": (
        LibLinear(
            epsilon=0.1,
            loss="squared_epsilon_insensitive",
            fit_intercept=False,
            max_iter=10**6,
        ),
        ["--epsilon", "0.1", "--loss", "squared_epsilon_insensitive"]
        + ["--intercept", "none"],
    ),
}


@pytest.mark.parametrize("theirs", THEIRS)
def test_predictions_are_those_of_libsvm_and_liblinear(here, capsys, theirs):
    machine, asked = THEIRS[theirs]
    machine.set_params(tol=1e-8).fit(np.load("train.npy"), np.load("train-y.npy"))
    trained(capsys, *asked, "--tol", "1e-9")
    found = predicted(capsys, "test.svm")
    np.testing.assert_allclose(found, machine.predict(np.load("test.npy")), atol=2e-3)


def test_measures_are_scikit_learns(here, capsys):
    facts = trained(capsys, "--test", "test.svm", "--kernel", "rbf")
    truth, found = np.load("test-y.npy"), predicted(capsys, "test.svm")
    for name, measure in {
        "r2": r2_score,
        "root_mean_squared_error": root_mean_squared_error,
        "mean_absolute_error": mean_absolute_error,
    }.items():
        assert facts[name] == pytest.approx(measure(truth, found), rel=1e-10)
    assert facts["test_rows"] == 200
    assert facts["relative_gap"] <= 1e-4
    assert "accuracy" not in facts
    assert "classes" not in facts


def test_targets_that_do_not_vary_have_a_measure(here, capsys):
    save_svmlight(np.load("test.npy"), np.full(200, 7.5), "flat.svm")
    facts = trained(capsys, "--test", "flat.svm")
    assert facts["r2"] == 0.0
    run(capsys, "train", "flat.svm", "flat.wm", "--type", "regress")
    assert load_model("flat.wm").predict(np.load("test.npy")) == pytest.approx(7.5)


def test_columns_are_scaled(here, capsys):
    asked = ["--scale", "standard", "--kernel", "rbf", "--tol", "1e-8"]
    trained(capsys, *asked, "--rank", "300")
    trained(capsys, *asked)
    scaler = StandardScaler().fit(np.load("train.npy"))
    X, T = (scaler.transform(np.load(f"{name}.npy")) for name in ("train", "test"))
    known = SVR(tol=1e-8).fit(X, np.load("train-y.npy"))
    found = predicted(capsys, "test.svm")
    np.testing.assert_allclose(found, known.predict(T), atol=1e-3)


def test_a_gap_that_is_not_reached_is_status_one(here, capsys):
    facts = trained(capsys, "--max-iter", "1", "--tol", "1e-9", status=1)
    assert facts["status"] == "max_iter"
    assert facts["relative_gap"] > 1e-9


CLASSIFIERS_ONLY = {
    "--class-weight": ["balanced"],
    "--multi-class": ["ovo"],
    "--decision-shape": ["ovo"],
    "--break-ties": [],
    "--probability": [],
    "--budget": ["9"],
    "--method": ["prune"],
    "--norm": ["l2"],
    "--certify": ["exact"],
}


@pytest.mark.parametrize("option", CLASSIFIERS_ONLY)
def test_what_classifiers_have_is_refused(here, capsys, option):
    asked = ["train", "train.svm", "m.wm", "--type", "regress", "--kernel", "rbf"]
    message = refused(capsys, *asked, option, *CLASSIFIERS_ONLY[option])
    of_nu = "--class-weight", "--decision-shape", "--break-ties", "--probability"
    kinds = "classify" + " or nu" * (option in of_nu)
    words = f"{option} is of --type {kinds}, found --type regress\n"
    assert message == f"widemargin: {words}"
    assert not (here / "m.wm").exists()


REFUSED = {
    "--loss hinge --type regress": "--type regress needs --loss epsilon_insensitive or "
    "squared_epsilon_insensitive, found --loss hinge",
    "--loss epsilon_insensitive": "--type classify needs --loss hinge or squared_hinge, "
    "found --loss epsilon_insensitive",
    "--nu 0.2": "--nu is of --type one-class or nu or nu-regress, found --type "
    "classify",
    "--epsilon 0": "--epsilon is of --type regress, found --type classify",
    "--type regress --epsilon 1,2": "several values of --epsilon need --cv",
    "--type regress -C 1,2": "several values of --C need --cv",
    "--type regress --solver frank_wolfe": "train.svm: --solver frank_wolfe solves "
    "classification problems only: use --solver irwls.",
}


@pytest.mark.parametrize("asked", REFUSED)
def test_what_does_not_go_together(here, capsys, asked):
    message = refused(capsys, "train", "train.svm", "m.wm", *asked.split())
    assert message == f"widemargin: {REFUSED[asked]}\n"


def test_a_tube_has_no_negative_width(here, capsys):
    asked = ["--type", "regress", "--epsilon", "-1"]
    message = refused(capsys, "train", "train.svm", "m.wm", *asked)
    assert "--epsilon: expected a number, 0 or larger, found '-1'" in message


@pytest.mark.parametrize("option", ["--scores", "--probability"])
def test_a_regression_has_no_scores(here, capsys, option):
    trained(capsys)
    message = refused(capsys, "predict", "m.wm", "test.svm", option)
    words = "for a regression, whose predictions are numbers"
    assert message == f"widemargin: m.wm: expected no {option} {words}\n"


def test_targets_are_finite_numbers(here, capsys):
    y = np.load("train-y.npy")
    y[6] = np.nan
    np.save("bad.npy", y)
    asked = ["--type", "regress", "--label"]
    message = refused(capsys, "train", "train.npy", "m.wm", *asked, "bad.npy")
    words = "row 6 of the data (counted from 0): expected a finite number as the target, found nan"
    assert message == f"widemargin: train.npy, {words}\n"
    table = pd.read_parquet("train.parquet")
    table.assign(cost="much").to_parquet("words.parquet")
    message = refused(capsys, "train", "words.parquet", "m.wm", *asked, "cost")
    words = "expected numbers as the targets of --type regress, found 'much'"
    assert message == f"widemargin: words.parquet: {words}\n"


@pytest.mark.full
def test_the_process(here):
    """The command as it is typed, and predictions as they are written."""
    command = [sys.executable, "-m", "widemargin"]
    asked = ["train", "train.svm", "m.wm", "--type", "regress", "--kernel", "rbf"]
    asked += ["--epsilon", "0.5", "-C", "10", "--test", "test.svm"]
    done = subprocess.run([*command, *asked], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    assert "R^2 0." in done.stdout
    asked = ["predict", "m.wm", "test.svm", "--output", "out.txt"]
    done = subprocess.run([*command, *asked], capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    X, _ = load_svmlight("test.svm", n_features=8)
    np.testing.assert_array_equal(np.loadtxt("out.txt"), load_model("m.wm").predict(X))


# -- machines with nu ------------------------------------------------------------------


@pytest.mark.parametrize("name", ["train.npy", "train.svm", "train.parquet"])
def test_one_class_needs_no_labels(here, capsys, name):
    asked = ["--type", "one-class", "--nu", "0.2", "--kernel", "rbf", "--gamma", "0.1"]
    columns = []
    if name.endswith("parquet"):
        kept = [c for c in pd.read_parquet(name).columns if c != "cost"]
        columns = ["--columns", ",".join(kept)]
    assert main(["train", name, "m.wm", *asked, *columns]) == 0
    assert "one class, nu = 0.2" in capsys.readouterr().out
    X = np.load("train.npy")
    alone = OneClassSVM(nu=0.2, gamma=0.1).fit(X)
    found = load_model("m.wm").predict(X)
    sure = abs(alone.decision_function(X)) > 1e-2
    np.testing.assert_array_equal(found[sure], alone.predict(X)[sure])
    assert 0.1 < np.mean(found < 0) < 0.3


def test_nu_of_classes(here, capsys):
    X = np.load("train.npy")
    y = np.digitize(np.load("train-y.npy"), np.quantile(np.load("train-y.npy"), [0.7]))
    np.save("kind.npy", y)
    asked = ["--type", "nu", "--nu", "0.4", "--kernel", "rbf", "--gamma", "0.1"]
    assert main(["train", "train.npy", "m.wm", "--label", "kind.npy", *asked]) == 0
    alone = NuSVC(nu=0.4, gamma=0.1).fit(X, y)
    assert np.mean(load_model("m.wm").predict(X) == alone.predict(X)) > 0.98
    capsys.readouterr()
    asked = ["--type", "nu", "--nu", "0.9", "--label", "kind.npy"]
    message = refused(capsys, "train", "train.npy", "m.wm", *asked)
    assert message.startswith("widemargin: train.npy: --nu must be at most 0.6")


def test_nu_of_classes_with_factors(here, capsys):
    X, y = np.load("train.npy"), (np.load("train-y.npy") > 14.0).astype(int)
    np.save("kind.npy", y)
    asked = ["--type", "nu", "--nu", "0.4", "--kernel", "rbf", "--gamma", "0.1"]
    asked += ["--label", "kind.npy", "--class-weight", "1:2", "--tol", "1e-8"]
    run(capsys, "train", "train.npy", "m.wm", *asked)
    alone = NuSVC(nu=0.4, gamma=0.1, tol=1e-8, class_weight={1: 2.0}).fit(X, y)
    found = load_model("m.wm").decision_function(X)
    np.testing.assert_allclose(found, alone.decision_function(X), atol=1e-4)
    asked[asked.index("1:2")] = "1:200"
    message = refused(capsys, "train", "train.npy", "m.wm", *asked)
    assert "twice the share, by weight, of the smaller one" in message


def test_nu_with_probabilities(here, capsys):
    X, y = np.load("train.npy"), (np.load("train-y.npy") > 14.0).astype(int)
    np.save("kind.npy", y)
    asked = ["--type", "nu", "--nu", "0.4", "--kernel", "rbf", "--gamma", "0.1"]
    asked += ["--label", "kind.npy", "--probability"]
    assert main(["train", "train.npy", "m.wm", *asked]) == 0
    capsys.readouterr()
    assert main(["predict", "m.wm", "train.npy", "--probability"]) == 0
    found = np.loadtxt(capsys.readouterr().out.splitlines())
    with pytest.warns(FutureWarning):
        alone = NuSVC(nu=0.4, gamma=0.1, probability=True).fit(X, y)
    np.testing.assert_allclose(found, alone.predict_proba(X), atol=1e-6)


@words_only
@pytest.mark.parametrize("more", [(), ("--rank", "20"), ("--solver", "irwls")])
def test_nu_of_targets(here, capsys, more):
    asked = ["--nu", "0.3", "-C", "5", "--kernel", "rbf", "--gamma", "0.1", *more]
    asked = ["train", "train.svm", "m.wm", "--type", "nu-regress", *asked]
    assert main([*asked, "--test", "test.svm", "--report", "page.html"]) == 0
    out = capsys.readouterr().out
    assert "targets from 0.7051 to 26.3" in out
    assert "R^2 0." in out
    page = Page((here / "page.html").read_text(encoding="utf-8"))
    assert "nu = 0.3" in page.text
    options = {"rank": 20} if "--rank" in more else {}
    alone = NuSVR(nu=0.3, C=5.0, gamma=0.1, **options).fit(*load_svmlight("train.svm"))
    found = load_model("m.wm")
    assert found.meta["epsilon"] == pytest.approx(alone.epsilon_, rel=0.02)
    scale = np.load("test-y.npy").std()
    X = np.load("test.npy")
    np.testing.assert_allclose(found.predict(X), alone.predict(X), atol=0.02 * scale)


@words_only
@pytest.mark.parametrize("kind", ["one-class", "nu"])
def test_machines_with_nu_take_a_rank_and_write_a_page(here, capsys, kind):
    y = (np.load("train-y.npy") > 14.0).astype(int)
    np.save("kind.npy", y)
    asked = ["--nu", "0.6", "--kernel", "rbf", "--rank", "20", "--report", "page.html"]
    asked = [
        "train",
        "train.npy",
        "m.wm",
        "--type",
        kind,
        "--label",
        "kind.npy",
        *asked,
    ]
    assert main(asked) == 0
    assert "rank 20" in capsys.readouterr().out
    assert load_model("m.wm").meta["rank"] == 20
    page = Page((here / "page.html").read_text(encoding="utf-8"))
    assert "nu = 0.6" in page.text
    message = refused(capsys, *asked, "--solver", "frank_wolfe")
    assert (
        "'auto', 'batch', 'irwls'" in message or "solver of kernel problems" in message
    )
    said = refused(capsys, *asked[:-4], "--cv", "3")
    assert f"--type {kind} has nu, which GridSearchCV" in said
