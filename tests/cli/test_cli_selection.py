"""`widemargin train --cv`: the table, the model, the report, and refusals."""

import json
import re
import warnings
from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import load_wine, make_friedman1
from sklearn.model_selection import KFold, StratifiedKFold
from sklearn.preprocessing import StandardScaler

from tests.cases.cli import refused
from widemargin import (
    SVC,
    SVCCV,
    SVRCV,
    LinearSVCCV,
    LinearSVRCV,
    load_model,
    save_svmlight,
)
from widemargin.cli import main


@pytest.fixture
def wine(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    X, y = load_wine(return_X_y=True)
    X = StandardScaler().fit_transform(X)
    save_svmlight(X, y, "wine.svm")
    return X, y


def test_the_best_point_is_kept_and_all_are_shown(wine, capsys):
    X, y = wine
    grid = ["--cv", "5", "--C", "0.1,10", "--gamma", "0.01,0.1"]
    command = ["train", "wine.svm", "w.wm", "--kernel", "rbf", *grid]
    assert main([*command, "--report", "w.html"]) == 0
    lines = capsys.readouterr().out.splitlines()
    search = SVCCV(Cs=[0.1, 10.0], gammas=[0.01, 0.1]).fit(X, y)
    head = next(
        k for k, line in enumerate(lines) if line.endswith("mean score         gap")
    )
    shown = [line.split() for line in lines[head + 1 : head + 5]]
    points = [(0.1, 0.01), (10, 0.01), (0.1, 0.1), (10, 0.1)]
    assert [(float(row[0]), float(row[1])) for row in shown] == points
    means = search.scores_.mean(axis=0).ravel()
    np.testing.assert_allclose([float(row[2]) for row in shown], means, atol=5e-5)
    assert all(float(row[3]) <= 1e-4 for row in shown)
    assert [len(row) for row in shown] == [
        4 + (p == (10, search.gamma_)) for p in points
    ]
    alone = SVC(C=search.C_, gamma=search.gamma_).fit(X, y)
    np.testing.assert_array_equal(load_model("w.wm").predict(X), alone.predict(X))
    page = re.sub("</?span>", "", Path("w.html").read_text(encoding="utf-8"))
    assert "Mean scores of 5 folds" in page
    assert f"at C = {search.C_:.3g} and gamma = {search.gamma_:.3g} (diamond)" in page


def test_a_gamma_that_is_given_twice_is_one_point(wine, capsys):
    """Two lines of the table were the best."""
    X, y = wine
    search = SVCCV(Cs=[1.0], gammas=[0.1, 0.1, "auto", 0.05, "auto"]).fit(X, y)
    np.testing.assert_allclose(search.gammas_, [0.1, 1 / 13, 0.05])
    assert search.scores_.shape == (5, 3, 1)
    grid = ["--cv", "3", "--C", "1", "--gamma", "0.1,0.1"]
    assert main(["train", "wine.svm", "w.wm", "--kernel", "rbf", *grid]) == 0
    assert capsys.readouterr().out.count("  best\n") == 1


def test_linear_models_and_json(wine, capsys):
    X, y = wine
    assert (
        main(["train", "wine.svm", "w.wm", "--cv", "3", "-C", "0.1,1", "--json"]) == 0
    )
    points = json.loads(capsys.readouterr().out)["selection"]
    search = LinearSVCCV(Cs=[0.1, 1.0], cv=3).fit(X, y)
    means = search.scores_.mean(axis=0)
    np.testing.assert_allclose([point["score"] for point in points], means)
    assert [point["C"] for point in points if point["best"]] == [search.C_]
    assert main(["train", "wine.svm", "w.wm", "--cv", "3", "-C", "1"]) == 0
    assert main(["train", "wine.svm", "w.wm", "--cv", "3", "--report", "w.html"]) == 0


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["-C", "0.1,1"], "several values of --C need --cv"),
        (
            ["--kernel", "rbf", "--gamma", "0.1,1"],
            "several values of --gamma need --cv",
        ),
        (["--cv-seed", "0"], "--cv-seed needs --cv"),
        (["--scoring", "f1"], "--scoring needs --cv"),
        (["--cv", "3", "--cv-seed", "-1"], "expected a whole number, 0 or larger"),
        (
            ["--cv", "3", "--cv-seed", str(2**32)],
            "expected a whole number below 4,294,967,296, found '4294967296'",
        ),
        (
            ["--cv", "100", "--cv-seed", "0"],
            "wine.svm: --cv 100 cannot be greater than the number of members in each",
        ),
        (["--cv", "3", "--scoring", "f1_marco"], "names, found 'f1_marco' (did you"),
        (["--cv", "3", "--scoring", "f2"], "expected accuracy, adjusted_mutual_info"),
        (
            ["--cv", "3", "--scoring", "f1"],
            "wine.svm: --scoring must suit the data.",
        ),
        (
            ["--cv", "3", "--scoring", "neg_log_loss"],
            "wine.svm: --scoring asks the model of a fold for predict_proba",
        ),
        (["--cv", "1"], "expected at least 2 folds, found '1'"),
        (["--cv", "3", "-C", "1,x"], "expected a positive number, found 'x'"),
        (
            ["--cv", "3", "--kernel", "rbf", "--rank", "9"],
            "--cv and --rank cannot go together",
        ),
        (["--cv", "3", "--checkpoint", "c"], "--cv and --checkpoint cannot go"),
        (
            ["--cv", "100"],
            "--cv must be at most 71, the rows of the largest class. Got 100",
        ),
    ],
)
def test_bad_options(wine, capsys, options, said):
    assert said in refused(capsys, "train", "wine.svm", "w.wm", *options)


def test_sorted_targets_need_a_seed(tmp_path, monkeypatch, capsys):
    """R^2 was .36 where that of shuffled rows is .99, without a word."""
    monkeypatch.chdir(tmp_path)
    y = np.linspace(-9.0, 9.0, 60)
    for name, order in (("up", 1), ("down", -1), ("mixed", 0)):
        shown = y[::order] if order else np.random.default_rng(0).permutation(y)
        save_svmlight(np.c_[shown, shown**2], shown**3, f"{name}.svm")
    words = ["--type", "regress", "--kernel", "rbf", "--cv", "3", "-C", "9", "--json"]

    def score(name, *more):
        assert main(["train", f"{name}.svm", "m.wm", *words, *more]) == 0
        out, error = capsys.readouterr()
        told = "the targets are sorted, and --cv cuts the rows as they come" in error
        assert told == ("--cv-seed 0 shuffles them" in error)
        return json.loads(out)["selection"][0]["score"], told

    X = np.c_[y, y**2]
    for name in ("up", "down"):
        assert score(name)[1]
    assert not score("mixed")[1]
    np.save("bytes.npy", np.c_[y, y**2])
    np.save("y.npy", np.arange(60, dtype=np.uint8)[::-1])
    assert main(["train", "bytes.npy", "m.wm", "--label", "y.npy", *words]) == 0
    assert "the targets are sorted" in capsys.readouterr().err
    seeded, told = score("up", "--cv-seed", "1")
    folds = KFold(3, shuffle=True, random_state=1)
    known = SVRCV(Cs=[9.0], cv=folds).fit(X, y**3)
    assert not told
    np.testing.assert_allclose(seeded, known.best_score_, rtol=1e-6)
    by = "neg_mean_absolute_error"
    known = SVRCV(Cs=[9.0], cv=folds, scoring=by).fit(X, y**3)
    found, _ = score("up", "--cv-seed", "1", "--scoring", by)
    np.testing.assert_allclose(found, known.best_score_, rtol=1e-6)


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_several_widths_of_the_tube(tmp_path, monkeypatch, capsys, kernel):
    monkeypatch.chdir(tmp_path)
    X, y = make_friedman1(90, random_state=0)
    save_svmlight(X, y, "a.svm")
    command = ["train", "a.svm", "m.wm", "--type", "regress", "--kernel", kernel]
    command += ["--epsilon", "2,0.1", "--cv", "3", "-C", "0.1,1"]
    named = ["--gamma", "0.1,0.5", "--report", "m.html"] if kernel == "rbf" else []
    kind, given = LinearSVRCV, {}
    if named:
        kind, given = SVRCV, {"gammas": [0.1, 0.5]}
    assert main([*command, *named, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)["selection"]
    known = kind(Cs=[0.1, 1.0], epsilons=[0.1, 2.0], cv=3, **given).fit(X, y)
    means = known.scores_.mean(axis=0)
    np.testing.assert_allclose([one["score"] for one in found], means.ravel())
    best = [(one["C"], one["epsilon"]) for one in found if one["best"]]
    assert best == [(known.C_, known.epsilon_)]
    assert [(one["epsilon"], one["C"]) for one in found[:4]] == [
        (0.1, 0.1), (0.1, 1.0), (2.0, 0.1), (2.0, 1.0)
    ]  # fmt: skip
    if named:
        page = re.sub("</?span>", "", Path("m.html").read_text(encoding="utf-8"))
        assert "Mean scores of 3 folds" in page
        assert f"and epsilon = {known.epsilon_:.3g} (diamond)" in page
    else:
        assert main(command) == 0
        lines = capsys.readouterr().out.splitlines()
        head = next(line.split() for line in lines if "mean score" in line)
        assert head == ["C", "epsilon", "mean", "score", "gap"]


def test_a_seed_shuffles_within_the_classes(wine, capsys):
    X, y = wine
    words = ["--cv", "3", "-C", "0.1,1", "--cv-seed", "5", "--scoring", "f1_macro"]
    assert main(["train", "wine.svm", "w.wm", *words, "--json"]) == 0
    points = json.loads(capsys.readouterr().out)["selection"]
    folds = StratifiedKFold(3, shuffle=True, random_state=5)
    known = LinearSVCCV(Cs=[0.1, 1.0], cv=folds, scoring="f1_macro").fit(X, y)
    means = known.scores_.mean(axis=0)
    np.testing.assert_allclose([point["score"] for point in points], means)
    shuffled = ["--probability", "--cv-seed", "5"]
    assert main(["train", "wine.svm", "w.wm", *shuffled]) == 0
    folds = StratifiedKFold(5, shuffle=True, random_state=5)
    known = LinearSVCCV(Cs=[1.0], cv=folds, calibrate="sigmoid").fit(X, y)
    found = load_model("w.wm").predict_proba(X)
    np.testing.assert_allclose(found, known.predict_proba(X), rtol=1e-9)


def test_a_search_needs_finite_values(wine, capsys):
    message = refused(capsys, "train", "wine.svm", "w.wm", "--cv", "3", "-C", "inf")
    assert message == "widemargin: --cv needs a finite -C, found inf\n"


def test_a_search_that_its_time_ends_speaks_of_options(wine, capsys, monkeypatch):
    command = ["train", "wine.svm", "w.wm", "--kernel", "rbf", "--cv", "3"]
    said = refused(capsys, *command, "--time-limit", "1e-6")
    assert "The --time-limit of 1e-06 s ended the search before one point" in said
    assert not Path("w.wm").exists()

    def tells(search, *data):
        warnings.warn("time_limit ended the search: see path_.", stacklevel=1)
        return fit(search, *data)

    fit = SVCCV.fit
    monkeypatch.setattr(SVCCV, "fit", tells)
    assert main([*command, "--time-limit", "60"]) == 0
    assert "--time-limit ended the search: see the table." in capsys.readouterr().err
