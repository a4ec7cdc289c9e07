"""Probabilities that travel with a model: in Python, in its file, in ONNX Runtime."""

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_wine
from sklearn.isotonic import IsotonicRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from tests.models.test_model_file_damaged import forge, refusal
from widemargin import SVC, SVCCV, LinearSVCCV, load_model, save_model
from widemargin.models.calibration import Calibration
from widemargin.models.liblinear import write_liblinear
from widemargin.models.libsvm import write_libsvm
from widemargin.models.model import Decision, Model
from widemargin.models.onnx import write_onnx


@pytest.fixture(scope="module")
def runtime():
    """ONNX Runtime, where onnx is there too."""
    pytest.importorskip("onnx", reason="the extra 'onnx' is not installed")
    return pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")


def search(method, load, linear):
    """A fitted pipeline of a search with probabilities, and its rows as float32."""
    X, y = load(return_X_y=True)
    kind = LinearSVCCV(Cs=[0.1], cv=3, calibrate=method)
    if not linear:
        kind = SVCCV(Cs=[1.0], gammas=[0.02], cv=3, calibrate=method)
    X = X.astype(np.float32)
    return make_pipeline(StandardScaler(), kind).fit(X, y), X


def probabilities_there(runtime, path, X):
    session = runtime.InferenceSession(path, providers=["CPUExecutionProvider"])
    return session.run(["probabilities"], {"X": X})[0]


@pytest.mark.parametrize("linear", [False, True])
@pytest.mark.parametrize("load", [load_breast_cancer, load_wine])
@pytest.mark.parametrize("method", ["sigmoid", "isotonic"])
def test_probabilities_go_to_files(method, load, linear, runtime, tmp_path):
    pipeline, X = search(method, load, linear)
    save_model(pipeline, tmp_path / "m.wm")
    write_onnx(pipeline, tmp_path / "m.onnx")
    model = load_model(tmp_path / "m.wm")
    found = model.predict_proba(X)
    np.testing.assert_allclose(found, pipeline.predict_proba(X), atol=1e-4)
    again = model.calibration.probabilities(model.decision_function(X))
    np.testing.assert_array_equal(found, again)
    there = probabilities_there(runtime, tmp_path / "m.onnx", X)
    assert there.dtype == np.float64
    np.testing.assert_allclose(there, found, atol=1e-10)
    assert probabilities_there(runtime, tmp_path / "m.onnx", X[:0]).shape[0] == 0


def test_the_file_keeps_them_to_the_bit(tmp_path):
    X, y = load_wine(return_X_y=True)
    clf = SVCCV(Cs=[1.0], cv=3, calibrate="isotonic").fit(X, y)
    save_model(clf, tmp_path / "m.wm")
    found = load_model(tmp_path / "m.wm").predict_proba(X)
    np.testing.assert_array_equal(found, clf.predict_proba(X))


def test_isotonic_is_that_of_scikit_learn():
    rng = np.random.default_rng(0)
    f = rng.standard_normal(200)
    fitted = IsotonicRegression(out_of_bounds="clip").fit(
        f, f > rng.standard_normal(200)
    )
    knots = fitted.X_thresholds_, fitted.y_thresholds_
    ours = Calibration("isotonic", *knots, np.array([len(knots[0])]))
    new = 3.0 * rng.standard_normal(1000)
    found = ours.probabilities(new)[:, 1]
    np.testing.assert_allclose(found, fitted.predict(new), rtol=1e-12, atol=1e-15)


def made(c, method="sigmoid", first=None, second=None, counts=None):
    """A model of c classes, the k-th of which has the score x + k, with a calibration."""
    k = 1 if c == 2 else c
    decisions = tuple(Decision(np.array([1.0]), float(j)) for j in range(k))
    first = -np.ones(k) if first is None else np.array(first, float)
    second = np.zeros(k) if second is None else np.array(second, float)
    counts = np.ones(k, np.int64) if counts is None else np.array(counts)
    calibration = Calibration(method, first, second, counts)
    scheme = "binary" if c == 2 else "ovr"
    return Model(np.arange(c), scheme, decisions, calibration=calibration)


def test_closed_forms(runtime, tmp_path):
    sigmoids = made(2, "sigmoid", [-2.0], [0.5])
    steps = made(2, "isotonic", [-1.0, 1.0, 2.0], [0.0, 0.5, 1.0], [3])
    constant = made(2, "isotonic", [5.0], [0.25], [1])
    three = made(3, "isotonic", [0.0, 0.0, 1.0, 5.0], [0.0, 0.0, 1.0, 0.0], [1, 2, 1])
    p = 1.0 / (1.0 + np.exp(-2.0 * 3.0 + 0.5))
    for model, x, known in (
        (sigmoids, 3.0, [1.0 - p, p]),
        (steps, -9.0, [1.0, 0.0]),
        (steps, 0.0, [0.75, 0.25]),
        (steps, 1.5, [0.25, 0.75]),
        (steps, 9.0, [0.0, 1.0]),
        (constant, 9.0, [0.75, 0.25]),
        (three, -0.5, [0.0, 1.0, 0.0]),
        (three, -2.0, [1 / 3, 1 / 3, 1 / 3]),  # no class has a probability
    ):
        X = np.array([[x]], np.float32)
        np.testing.assert_allclose(model.predict_proba(X), [known], rtol=1e-15)
        write_onnx(model, tmp_path / "m.onnx")
        there = probabilities_there(runtime, tmp_path / "m.onnx", X)
        np.testing.assert_allclose(there, [known], rtol=1e-15)


@pytest.mark.parametrize("write", [write_libsvm, write_liblinear])
def test_a_text_that_has_no_place_for_them_says_so(write, tmp_path):
    X, y = load_breast_cancer(return_X_y=True)
    search = LinearSVCCV(Cs=[1e-3], cv=2, calibrate="sigmoid").fit(X / X.max(axis=0), y)
    said = "m.model: probabilities are left out, as the text has no place for them; .wm"
    with pytest.warns(UserWarning, match=said) as caught:
        write(search, tmp_path / "m.model")
    assert [one.filename for one in caught] == [__file__]


def test_a_model_without_them_says_where_they_come_from():
    X, y = load_wine(return_X_y=True)
    model = SVC().fit(X, y).model_
    with pytest.raises(AttributeError, match="with calibrate='sigmoid', or SVC"):
        model.predict_proba(X)
    assert not hasattr(model, "predict_proba")
    search = SVCCV(Cs=[1.0], cv=2, calibrate="sigmoid").fit(X, y)
    assert hasattr(search.model_, "predict_proba")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("platt",), "the method sigmoid or isotonic, not 'platt'"),
        (("sigmoid", [1.0], [np.nan]), "finite numbers"),
        (("sigmoid", [1.0, 2.0], [0.0, 0.0], [2]), "one slope for each column"),
        (("sigmoid", [1.0], [0.0], [2]), "numbers for each column"),
        (("sigmoid", [1.0], [0.0], [1, 0]), "numbers for each column"),
        (("isotonic", [0.0, 0.0], [0.0, 1.0], [2]), "values that rise"),
        (("isotonic", [0.0, 1.0], [1.0, 0.0], [2]), "values that rise"),
        (("isotonic", [0.0, 1.0], [0.0, 1.5], [2]), r"probabilities in \[0, 1\]"),
    ],
)
def test_calibrations_that_are_none(arguments, words):
    with pytest.raises(ValueError, match=f"A calibration must have {words}"):
        made(2, *arguments)


def test_models_that_have_none():
    calibration = made(2).calibration
    decisions = (Decision(np.array([1.0]), 0.0),)
    for classes, scheme in (([], "regression"), ([-1, 1], "one_class")):
        with pytest.raises(ValueError, match="cannot have a calibration"):
            Model(np.array(classes), scheme, decisions, calibration=calibration)
    with pytest.raises(ValueError, match=r"a calibration of 1 column\(s\)"):
        Model(np.arange(3), "ovr", 3 * decisions, calibration=calibration)


def test_forged_files_are_refused(tmp_path):
    path = tmp_path / "m.wm"
    shapes = {"w": [1, 1], "b": [1]}
    shapes |= {f"calibration_{name}": [1] for name in ("first", "second", "counts")}
    arrays = [{"name": n, "dtype": "<f8", "shape": s} for n, s in shapes.items()]
    arrays[-1]["dtype"] = "<i8"
    header = {
        "scheme": "binary",
        "classes": {"dtype": "int64", "values": [0, 1]},
        "arrays": arrays,
        "meta": {},
        "kernel": None,
        "features": None,
        "shape": "ovr",
        "break_ties": False,
        "scaling": False,
        "calibration": "sigmoid",
    }

    def body(slope, offset, count):
        values = [1.0, 0.0, slope, offset]
        pieces = [np.array([v, *[0.0] * 7]).tobytes() for v in values]
        return b"".join(pieces) + np.array([count, *[0] * 7]).tobytes()

    good = body(-1.0, 0.0, 1)
    forge(path, header, good, version=7)
    assert load_model(path).predict_proba([[0.0]]).tolist() == [[0.5, 0.5]]
    for changes, content, words in (
        ({"calibration": "platt"}, good, "the method sigmoid or isotonic"),
        (
            {"calibration": None},
            good,
            "'calibration' of the header must be of type str",
        ),
        ({}, body(np.inf, 0.0, 1), "must have finite numbers"),
        ({}, body(1.0, 0.0, -1), "must have numbers for each column"),
        ({}, body(1.0, 0.0, 2**62), "must have numbers for each column"),
        ({"arrays": arrays[:-1]}, good[:-64], "its arrays are not those of a model"),
    ):
        said = refusal(forge(path, header | changes, content, version=7))
        assert words in said
    old = {k: v for k, v in header.items() if k != "calibration"}
    assert "unexpected array 'calibration_" in refusal(
        forge(path, old, good, version=6)
    )
