"""``widemargin convert``: models of LIBSVM and LIBLINEAR, to ours and back."""

import numpy as np
import pytest
from sklearn import svm

from tests.cases.cli import folder_with_data, refused
from tests.models.test_libsvm import CASES, fitted, text_of
from widemargin import load_model, load_svmlight
from widemargin.cli import main


@pytest.fixture
def here(tmp_path, monkeypatch):
    """The current folder, with data."""
    return folder_with_data(tmp_path, monkeypatch)


@pytest.mark.parametrize(("kind", "labels"), CASES)
def test_models_of_libsvm_go_around(kind, labels, here, capsys):
    peer, X = fitted("rbf", kind, labels)
    (here / "svm.model").write_text(text_of(peer, kind))
    assert main(["convert", "svm.model", "m.wm"]) == 0
    model = load_model("m.wm")
    off = 1e-12 * max(1.0, np.abs(peer.dual_coef_).max())
    np.testing.assert_allclose(model.predict(X), peer.predict(X), atol=off)
    assert main(["convert", "m.wm", "again.model"]) == 0
    assert (here / "again.model").read_text().startswith(f"svm_type {kind}\n")
    assert main(["convert", "again.model", "again.wm"]) == 0
    np.testing.assert_array_equal(
        load_model("again.wm").decision_function(X), model.decision_function(X)
    )
    assert main(["convert", "m.wm", "m.onnx"]) == 0
    assert main(["inspect", "m.wm"]) == 0
    assert kind in capsys.readouterr().out


def test_what_a_text_has_no_words_for_names_the_model(here, capsys):
    assert main(["train", "three.svm", "m.wm"]) == 0
    capsys.readouterr()
    message = refused(capsys, "convert", "m.wm", "m.model", "--format", "libsvm")
    assert message == (
        "widemargin: m.wm: A LIBSVM model has no scheme 'ovr': "
        "train with --multi-class 'ovo'.\n"
    )


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_our_models_become_text_and_predict_the_same(kernel, here, capsys):
    for data, classes in (("train.svm", 2), ("three.svm", 3)):
        words = ["--multi-class", "ovo", "--kernel", kernel]
        assert main(["train", data, "m.wm", *words]) == 0
        paired = classes == 3
        text = "svm_type" if kernel == "rbf" or paired else "solver_type"
        assert main(["convert", "m.wm", "m.model"]) == 0
        assert (here / "m.model").read_text().startswith(text)
        assert main(["convert", "m.wm", "m.model", "--format", "libsvm"]) == 0
        assert (here / "m.model").read_text().startswith("svm_type")
        assert main(["convert", "m.model", "back.wm"]) == 0
        capsys.readouterr()
        told = []
        for model in ("m.wm", "back.wm"):
            assert main(["predict", model, data]) == 0
            told.append(capsys.readouterr().out)
        assert told[0] == told[1]
        assert len(set(told[0].split())) == classes


def test_scores_of_pairs_are_left_out_with_a_note(here, capsys):
    words = ["train", "three.svm", "m.wm", "--kernel", "rbf", "--decision-shape", "ovo"]
    assert main(words) == 0
    capsys.readouterr()
    for output, told in (("m.model", 1), ("again.wm", 0), ("m.onnx", 0)):
        assert main(["convert", "m.wm", output]) == 0
        said = capsys.readouterr().err
        assert said.count("scores of pairs (--decision-shape ovo) are left out") == told


def test_a_regression_is_predicted(here, capsys):
    X, _ = load_svmlight("test.svm")
    peer = svm.SVR(gamma=1e-4).fit(X.toarray(), X.toarray()[:, 0])
    (here / "r.model").write_text(text_of(peer, "epsilon_svr"))
    assert main(["convert", "r.model", "r.wm"]) == 0
    assert main(["predict", "r.wm", "test.svm"]) == 0
    found = [float(line) for line in capsys.readouterr().out.split()]
    np.testing.assert_allclose(found, peer.predict(X.toarray()), rtol=1e-10)


def test_formats_that_do_not_fit_are_refused(here, capsys):
    main(["train", "train.svm", "m.wm", "--kernel", "rbf"])
    capsys.readouterr()
    for words, message in (
        (
            "m.wm m.model --format liblinear",
            "LIBLINEAR has linear models only, found one",
        ),
        (
            "m.wm m.onnx --format libsvm",
            "expected a .model with --format, found a .onnx",
        ),
        (
            "train.svm a.svm --format libsvm",
            "expected a model with --format, found data",
        ),
        ("m.wm m.model --format svmlight", "found 'svmlight'"),
    ):
        assert message in refused(capsys, "convert", *words.split())
    assert main(["convert", "m.wm", "m.model"]) == 0
    assert refused(capsys, "predict", "m.model", "test.svm") == (
        "widemargin: m.model: expected a model of widemargin, found one of LIBSVM; "
        "convert it first: widemargin convert m.model m.wm\n"
    )


def test_what_is_no_model_is_blamed_itself(here, capsys):
    (here / "fake.wm").write_text("hello")
    for output in ("m.onnx", "m.wm", "m.model", "m.svm"):
        said = refused(capsys, "convert", "fake.wm", output)
        assert said.startswith("widemargin: fake.wm: expected a model, found another")
        assert said == refused(capsys, "inspect", "fake.wm")


def test_a_damaged_model_of_libsvm_is_one_sentence(here, capsys):
    peer, _ = fitted("rbf", "c_svc", "three")
    text = text_of(peer, "c_svc")
    for damaged in (text[: len(text) // 2], text.replace("gamma", "gama")):
        (here / "d.model").write_text(damaged)
        message = refused(capsys, "convert", "d.model", "d.wm")
        assert message.startswith("widemargin: d.model, line ")
    assert not (here / "d.wm").exists()
