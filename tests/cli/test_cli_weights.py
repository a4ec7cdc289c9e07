"""`--weight`, `--class-weight` and `--probability`, as LIBSVM's users know them."""

import json

import numpy as np
import pytest
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_wine
from sklearn.preprocessing import StandardScaler

from tests.cases.cli import refused
from widemargin import (
    SVC,
    SVCCV,
    LinearSVC,
    LinearSVCCV,
    as_rows,
    load_model,
    save_model,
    save_svmlight,
)
from widemargin.cli import main


@pytest.fixture
def wine(tmp_path, monkeypatch):
    """Three classes, and two of them."""
    monkeypatch.chdir(tmp_path)
    X, y = load_wine(return_X_y=True)
    X = StandardScaler().fit_transform(X)
    save_svmlight(X, y, "three.svm")
    save_svmlight(X[y < 2], y[y < 2], "two.svm")
    np.save("X.npy", X)
    np.save("y.npy", y)
    return X, y


def printed(capsys, *arguments):
    assert main(arguments) == 0
    return capsys.readouterr().out


def scores_of(path, X):
    return load_model(path).scores(as_rows(X))


def table(text):
    return np.array([line.split() for line in text.splitlines()], dtype=float)


# -- weights of rows -------------------------------------------------------------------


def _weights(m):
    return np.random.default_rng(0).integers(0, 4, m) / 2


@pytest.mark.parametrize(
    ("data", "name"),
    [
        ("three.svm", "w.txt"),
        ("three.svm", "w.npy"),
        ("three.svm", "three.svm.wgt"),
        ("three.svm", "plain"),
        ("X.npy", "w.txt"),
        ("X.npy", "w.npy"),
    ],
)
def test_weights_of_rows_are_read_from_a_file(wine, capsys, data, name):
    X, y = wine
    w = _weights(len(y))
    np.save(name, w) if name.endswith(".npy") else np.savetxt(name, w)
    beside = ["--label", "y.npy"] if data == "X.npy" else []
    option = "--weights" if name == "w.txt" else "--weight"
    printed(capsys, "train", data, "m.wm", *beside, option, name, "--tol", "1e-8")
    alone = LinearSVC(tol=1e-8).fit(X, y, sample_weight=w)
    found = scores_of("m.wm", X)
    np.testing.assert_allclose(found, alone.decision_function(X), atol=1e-4)
    assert (
        np.abs(found - LinearSVC(tol=1e-8).fit(X, y).decision_function(X)).max() > 0.01
    )


def test_weights_of_text_that_is_converted(wine, capsys):
    X, y = (np.concatenate([part] * 100) for part in wine)
    w = _weights(len(y))
    np.savetxt("w.txt", w)
    save_svmlight(X, y, "large.svm")
    given = ["--weight", "w.txt", "--tol", "1e-6", "--memory-limit", "16M"]
    assert main(["train", "large.svm", "m.wm", *given]) == 0
    assert "converting it once" in capsys.readouterr().err
    alone = LinearSVC(tol=1e-6).fit(X, y, sample_weight=w)
    found = scores_of("m.wm", X[:178])
    np.testing.assert_allclose(found, alone.decision_function(X[:178]), atol=1e-2)


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("w.txt", "1\n2\n", "w.txt: expected 178 weights, one a row, found 2"),
        ("w.txt", "1\nx 2\n", "w.txt, line 2: expected one number, found 'x 2'"),
        ("w.npy", "damaged", "w.npy: expected a .npy array"),
        ("absent.txt", None, "no such file: absent.txt"),
        ("3", None, "three.svm: expected --weight FILE.txt or FILE.npy for svmlight"),
    ],
)
def test_weights_that_are_refused(wine, capsys, name, content, words):
    if content is not None:
        with open(name, "w") as file:
            file.write(content)
    assert words in refused(capsys, "train", "three.svm", "m.wm", "--weight", name)


def test_arrays_of_weights_that_are_refused(wine, capsys):
    for found, words in [
        (np.ones((178, 2)), "expected 178 weights, one a row, found an array (178, 2)"),
        (np.array(["a"] * 178), "w.npy: expected numbers, found dtype <U1"),
    ]:
        np.save("w.npy", found)
        said = refused(capsys, "train", "three.svm", "m.wm", "--weight", "w.npy")
        assert words in said


@pytest.mark.parametrize(
    "machine",
    [
        "",
        "--kernel rbf",
        "--kernel rbf --rank 9",
        "--kernel rbf --cv 2",
        "--kernel rbf --budget 9",
        "--type nu --nu 0.1",
        "--type regress --kernel rbf",
        "--type nu-regress",
        "--type one-class",
    ],
)
@pytest.mark.parametrize(
    "given", ["three.svm --weight w.txt", "d.npy --label 0 --weight 1"]
)
def test_no_machine_leaves_rows_of_negative_weight_out(wine, capsys, machine, given):
    X, y = wine
    w = np.ones(len(y))
    w[7] = -1.0
    np.savetxt("w.txt", w)
    np.save("d.npy", np.column_stack([y, w, X]))
    data, *words = [*given.split(), *machine.split()]
    place = "line 8" if data == "three.svm" else "row 7"
    assert refused(capsys, "train", data, "m.wm", *words) == (
        f"widemargin: {data}: --weight must be finite and nonnegative. "
        f"Got -1.0 at {place} instead.\n"
    )


# -- weights of classes ----------------------------------------------------------------


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
@pytest.mark.parametrize("said", ["0:2,2:0.5", "+0:2,2.0:0.5", "2:0.5,0:2,1:1"])
def test_factors_of_classes(wine, capsys, kernel, said):
    X, y = wine
    printed(capsys, "train", "three.svm", "m.wm", "--kernel", kernel, "--tol", "1e-8",
            "--class-weight", said)  # fmt: skip
    kind = {"linear": LinearSVC(tol=1e-8), "rbf": SVC(tol=1e-8)}[kernel]
    alone = kind.set_params(class_weight={0: 2.0, 2: 0.5}).fit(X, y)
    found = scores_of("m.wm", X)
    np.testing.assert_allclose(found, alone.decision_function(X), atol=1e-4)
    plain = kind.set_params(class_weight=None).fit(X, y).decision_function(X)
    assert np.abs(found - plain).max() > 1e-3


def test_factors_of_classes_whose_labels_are_words(wine, capsys):
    X, y = wine
    np.save("y.npy", np.array(["a", "b:c", "d"])[y])
    given = ["X.npy", "m.wm", "--label", "y.npy", "--class-weight", "b:c:3"]
    printed(capsys, "train", *given, "--tol", "1e-8")
    alone = LinearSVC(class_weight={1: 3.0}, tol=1e-8).fit(X, y)
    found = scores_of("m.wm", X)
    np.testing.assert_allclose(found, alone.decision_function(X), atol=1e-4)


@pytest.mark.parametrize("machine", ["", "--kernel rbf", "--cv 2", "--type nu --nu .1"])
def test_a_class_whose_rows_have_weight_0_is_told_once(wine, capsys, machine):
    X, y = wine
    np.save("w.npy", np.float64(y != 0))
    words = ["train", "three.svm", "m.wm", "--weight", "w.npy", *machine.split()]
    assert main(words) == 0
    assert capsys.readouterr().err == (
        "widemargin: Rows of weight 0 count as removed, and there are no others of the "
        "class(es) 0.0: the model does not know them.\n"
    )


def test_factors_of_classes_without_a_weight_are_refused(wine, capsys):
    X, y = wine
    np.save("w.npy", np.float64(y != 0))
    given = ["train", "three.svm", "m.wm", "--weight", "w.npy"]
    assert refused(capsys, *given, "--class-weight", "0:2") == (
        "widemargin: three.svm: --class-weight must name classes of y that have rows "
        "of positive weight. Got 0.0 instead.\n"
    )


def test_labels_with_commas_are_in_quotes(wine, capsys):
    X, y = wine
    np.save("y.npy", np.array(["blü", "green, light", '5" red'])[y])
    given = ["train", "X.npy", "m.wm", "--label", "y.npy", "--tol", "1e-8"]
    weight = '"green, light":3,"5"" red":0.5'
    printed(capsys, *given, "--class-weight", weight)
    alone = LinearSVC(class_weight={2: 3.0, 0: 0.5}, tol=1e-8)
    alone.fit(X, (y + 1) % 3)  # the order of the labels
    found = scores_of("m.wm", X)
    np.testing.assert_allclose(found, alone.decision_function(X), atol=1e-4)
    listed = '"5"" red", blü, "green, light"'
    assert f"{listed}\n" in printed(capsys, "inspect", "m.wm")
    said = refused(capsys, *given, "--class-weight", "green:3")
    assert f"expected labels of X.npy ({listed}), found 'green'" in said
    said = refused(capsys, *given, "--class-weight", "green, light:3")
    assert 'such as 1:2,-1:0.5 or "a, b":2' in said


def test_factors_of_classes_with_folds(wine, capsys):
    X, y = wine
    said = printed(capsys, "train", "three.svm", "m.wm", "--class-weight", "1:3",
                   "--cv", "3", "--json")  # fmt: skip
    search = LinearSVCCV(class_weight={1: 3.0}, cv=3).fit(X, y)
    scores = [point["score"] for point in json.loads(said)["selection"]]
    np.testing.assert_allclose(scores, search.scores_.mean(axis=0))


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ("7:2", "--class-weight: expected labels of three.svm (0, 1, 2), found '7'"),
        ("a:2", "--class-weight: expected labels of three.svm (0, 1, 2), found 'a'"),
        ("1", "expected balanced, or LABEL:FACTOR with commas between"),
        ("1:2,1:3", "expected balanced, or LABEL:FACTOR"),
        (":2", "expected balanced, or LABEL:FACTOR"),
        ("", "expected balanced, or LABEL:FACTOR"),
        ("a\nb:2", "expected balanced, or LABEL:FACTOR"),
        ("1:0", "expected a positive number, found '0'"),
        ("balance", "expected balanced, or LABEL:FACTOR"),
    ],
)
def test_factors_that_are_refused(wine, capsys, said, words):
    arguments = ["train", "three.svm", "m.wm", "--class-weight", said]
    assert words in refused(capsys, *arguments)


# -- probabilities ---------------------------------------------------------------------


@pytest.mark.parametrize("data", ["two.svm", "three.svm"])
@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_probabilities_are_those_of_the_estimator(wine, capsys, data, kernel):
    X, y = wine
    X, y = (X[y < 2], y[y < 2]) if data == "two.svm" else (X, y)
    printed(capsys, "train", data, "m.wm", "--kernel", kernel, "-C", "0.1",
            "--probability")  # fmt: skip
    kind = SVCCV if kernel == "rbf" else LinearSVCCV
    known = kind(Cs=[0.1], cv=5, calibrate="sigmoid").fit(X, y)
    found = table(printed(capsys, "predict", "m.wm", data, "--probability"))
    np.testing.assert_allclose(found, known.predict_proba(X), atol=1e-5)
    labels = table(printed(capsys, "predict", "m.wm", data))
    assert np.array_equal(labels[:, 0], known.predict(X))


def test_probabilities_of_the_best_point(wine, capsys):
    X, y = wine
    printed(capsys, "train", "three.svm", "m.wm", "--cv", "3", "-C", "0.01,1",
            "--probability", "--multi-class", "ovo")  # fmt: skip
    known = LinearSVCCV(Cs=[0.01, 1.0], cv=3, calibrate="sigmoid", multi_class="ovo")
    found = table(printed(capsys, "predict", "m.wm", "three.svm", "--probability"))
    np.testing.assert_allclose(found, known.fit(X, y).predict_proba(X), atol=1e-5)


def test_inspect_shows_the_calibration(wine, capsys):
    printed(capsys, "train", "two.svm", "m.wm", "--probability")
    kept = json.loads(printed(capsys, "inspect", "m.wm", "--json"))["calibration"]
    assert kept["method"] == "sigmoid"
    assert kept["slopes"][0] < 0


def test_scores_that_are_far_away_have_equal_probabilities(wine, capsys):
    printed(capsys, "train", "three.svm", "m.wm", "--probability")
    found = load_model("m.wm").calibration.probabilities(np.full((2, 3), -1e6))
    np.testing.assert_array_equal(found, np.full((2, 3), 1 / 3))


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--probability", "--decision-shape", "ovo", "--multi-class", "ovo"],
         "--probability and --decision-shape ovo cannot go together"),
        (["--probability", "--kernel", "rbf", "--rank", "9"],
         "--probability and --rank cannot go together"),
        (["--probability", "--kernel", "rbf", "--budget", "9"],
         "--probability and --budget cannot go together"),
    ],
)  # fmt: skip
def test_calibrations_that_are_refused(wine, capsys, arguments, words):
    assert words in refused(capsys, "train", "three.svm", "m.wm", *arguments)


def test_predictions_that_are_refused(wine, capsys):
    X, y = wine
    printed(capsys, "train", "three.svm", "m.wm")
    said = refused(capsys, "predict", "m.wm", "three.svm", "--probability")
    assert "m.wm: expected a model that was trained with --probability" in said
    both = ["--probability", "--scores"]
    said = refused(capsys, "predict", "m.wm", "three.svm", *both)
    assert "--probability and --scores cannot go together" in said


def test_a_search_in_python_gives_the_command_line_probabilities(wine, capsys):
    X, y = wine
    clf = SVCCV(Cs=[1.0], cv=3, calibrate="isotonic").fit(X, y)
    save_model(clf, "m.wm")
    found = table(printed(capsys, "predict", "m.wm", "three.svm", "--probability"))
    np.testing.assert_allclose(found, clf.predict_proba(X), atol=1e-5)
    said = printed(capsys, "inspect", "m.wm")
    assert "calibration" in said
    assert "Calibration(method='isotonic', columns=3)" in said


def test_a_text_model_is_written_without_its_probabilities(wine, capsys):
    printed(capsys, "train", "two.svm", "m.wm", "--probability")
    assert main(["convert", "m.wm", "m.model"]) == 0
    said = capsys.readouterr().err
    assert "m.model: probabilities are left out, as the text has no place" in said


def test_probabilities_are_those_of_scikit_learn(wine, capsys):
    X, y = wine
    printed(capsys, "train", "three.svm", "m.wm", "--probability", "--tol", "1e-8")
    known = CalibratedClassifierCV(LinearSVC(tol=1e-8), ensemble=False, cv=5).fit(X, y)
    found = table(printed(capsys, "predict", "m.wm", "three.svm", "--probability"))
    np.testing.assert_allclose(found, known.predict_proba(X), atol=1e-3)
