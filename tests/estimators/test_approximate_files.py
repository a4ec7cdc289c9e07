"""SVC with a rank: model files, ONNX, predictions and reports."""

import pickle
import re

import numpy as np
import pytest
from scipy import sparse

from tests.cases.approximate import (  # noqa: F401
    METHODS,
    POLYNOMIAL,
    digits_data,
    moons_data,
    several,
)
from tests.cases.report_pages import words_only
from widemargin import SVC, load_model, open_rows, save_model
from widemargin.models.liblinear import write_liblinear
from widemargin.models.onnx import write_onnx
from widemargin.report import write_report
from widemargin.report.html import seconds


def fitted(digits, scheme, approximation):
    X, y = digits[0].astype(np.float32), several(digits[1])[scheme]
    options = {"rank": 40, "approximation": approximation}
    if approximation == "polynomial":
        X, options = X[:, 20:30], POLYNOMIAL
    multi_class = "ovr" if scheme == "ovr" else "ovo"
    return SVC(multi_class=multi_class, **options).fit(X, y), X


@pytest.mark.parametrize("scheme", ["binary", "ovo", "ovr"])
@pytest.mark.parametrize("approximation", ["nystroem", "fourier", "polynomial"])
def test_models_survive_a_file(digits, scheme, approximation, tmp_path):
    clf, X = fitted(digits, scheme, approximation)
    save_model(clf, tmp_path / "m.wm")
    model = load_model(tmp_path / "m.wm")
    assert model.n_features == X.shape[1]
    assert not model.has_weights
    assert model.meta == clf.model_.meta
    assert "exact_gap" not in model.meta
    assert model.meta["rank"] == clf.feature_map_.rank
    np.testing.assert_array_equal(model.decision_function(X), clf.decision_function(X))
    save_model(model, tmp_path / "again.wm")
    content = (tmp_path / "m.wm").read_bytes()
    assert (tmp_path / "again.wm").read_bytes() == content
    assert content[8] == (2 if approximation == "nystroem" else 3)
    copy = pickle.loads(pickle.dumps(clf))
    np.testing.assert_array_equal(copy.decision_function(X), clf.decision_function(X))


@pytest.mark.parametrize("scheme", ["binary", "ovo", "ovr"])
@pytest.mark.parametrize("approximation", ["nystroem", "fourier", "polynomial"])
def test_onnx(digits, scheme, approximation, tmp_path):
    pytest.importorskip("onnx", reason="the extra 'onnx' is not installed")
    runtime = pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")
    clf, X = fitted(digits, scheme, approximation)
    write_onnx(clf, tmp_path / "m.onnx")
    session = runtime.InferenceSession(
        tmp_path / "m.onnx", providers=["CPUExecutionProvider"]
    )
    labels, scores = session.run(["label", "scores"], {"X": X})
    np.testing.assert_allclose(scores, clf.decision_function(X), rtol=1e-7, atol=1e-7)
    np.testing.assert_array_equal(labels, clf.predict(X))


@pytest.mark.parametrize("approximation", [*METHODS, "polynomial"])
def test_maps_and_models_are_one_line(digits, approximation, tmp_path):
    clf, X = fitted(digits, "ovo", approximation)
    save_model(clf, tmp_path / "m.wm")
    model, z = load_model(tmp_path / "m.wm"), clf.feature_map_
    for one in (z, z.expand, model, *(model.decisions or [model.kernels])):
        assert len(repr(one)) < 200
        assert "\n" not in repr(one)
        assert "array" not in repr(one)
    assert repr(z).startswith(f"FeatureMap(method='{approximation}', kernel=")
    assert f"n_features={X.shape[1]}, rank={z.rank}, " in repr(z)
    assert f"n_features={X.shape[1]}, " in repr(model)
    if z.landmarks is not None:
        assert repr(model).endswith(f"landmarks={len(z.landmarks)})")


def test_liblinear_refuses_features(digits, tmp_path):
    clf, _ = fitted(digits, "ovr", "fourier")
    words = "must be linear in the columns of its data. Got one of features of a kernel"
    with pytest.raises(ValueError, match=words):
        write_liblinear(clf, tmp_path / "m.model")


def test_predictions_refuse_other_data(digits):
    clf, X = fitted(digits, "ovo", "fourier")
    with pytest.raises(ValueError, match="X has 3 features, but .* 64 features"):
        clf.predict(X[:, :3])
    bad = X.copy()
    for value in (np.nan, np.inf):
        bad[3, 5] = value
        for data in (bad, sparse.csr_array(bad)):
            with pytest.raises(ValueError, match="NaN|infinity"):
                clf.model_.predict(data)


def test_predictions_out_of_core(digits, tmp_path):
    clf, X = fitted(digits, "ovo", "fourier")
    np.save(tmp_path / "X.npy", X)
    found = clf.predict(open_rows(tmp_path / "X.npy"))
    np.testing.assert_array_equal(found, clf.predict(X))


@words_only
def test_the_report_names_the_map(moons, tmp_path):
    pytest.importorskip("matplotlib", reason="the extra 'plot' is not installed")
    for approximation in ("nystroem", "fourier"):
        clf = SVC(rank=20, approximation=approximation, certify="exact").fit(*moons)
        write_report(tmp_path / "r.html", clf, *moons)
        page = re.sub("</?span>", "", (tmp_path / "r.html").read_text())
        assert f"rank 20 by {approximation}, error " in page
        assert ("of the trace left" in page) == (approximation == "nystroem")
        took = f" in {seconds(clf.seconds_)}, {seconds(clf.feature_map_.seconds)} of it"
        assert took in page
        assert "With the whole matrix the relative gap is at most" in page
