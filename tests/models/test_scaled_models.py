"""Models that scale their rows: they predict what the pipeline does, in every format."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import load_iris
from sklearn.decomposition import PCA
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    MaxAbsScaler,
    MinMaxScaler,
    RobustScaler,
    StandardScaler,
)

from tests.models.test_model_file_damaged import forge, refusal
from widemargin import (
    SVC,
    SVR,
    BudgetSVC,
    EnclosingBall,
    LinearSVC,
    LinearSVR,
    OneClassSVM,
    load_model,
    save_model,
)
from widemargin.features.scaling import Scaling
from widemargin.models.liblinear import read_liblinear, write_liblinear
from widemargin.models.model import Decision, Model
from widemargin.models.onnx import write_onnx

SCALERS = {
    "standard": lambda: [StandardScaler()],
    "minmax": lambda: [MinMaxScaler((-1, 2))],
    "maxabs": lambda: [MaxAbsScaler()],
    "robust": lambda: [RobustScaler()],
    "robust parts": lambda: [
        RobustScaler(with_centering=False),
        RobustScaler(with_scaling=False),
    ],
    "several": lambda: [StandardScaler(with_std=False), "passthrough", MinMaxScaler()],
    "half": lambda: [StandardScaler(with_mean=False), MaxAbsScaler()],
}
ESTIMATORS = {
    "linear": lambda: LinearSVC(),
    "rbf": lambda: SVC(),
    "poly": lambda: SVC(kernel="poly", coef0=1.0),
    "landmarks": lambda: SVC(rank=20, random_state=0),
    "fourier": lambda: SVC(rank=20, approximation="fourier", random_state=0),
    "budget": lambda: BudgetSVC(budget=10),
}


@pytest.fixture
def rows():
    """Columns of different sizes, and labels."""
    X, y = load_iris(return_X_y=True)
    return X * [1.0, 10.0, 0.01, 300.0] + [0.0, 5.0, -1.0, 40.0], y


@pytest.mark.cover(2)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("estimator", ESTIMATORS)
@pytest.mark.parametrize("scalers", SCALERS)
def test_a_loaded_pipeline_predicts_as_the_pipeline(
    scalers, estimator, dtype, rows, tmp_path
):
    X, y = rows[0].astype(dtype), rows[1]
    pipeline = make_pipeline(*SCALERS[scalers](), ESTIMATORS[estimator]()).fit(X, y)
    save_model(pipeline, tmp_path / "m.wm")
    model = load_model(tmp_path / "m.wm")
    folded = estimator == "linear"
    assert (tmp_path / "m.wm").read_bytes()[8] == (1 if folded else 6)
    assert (model.scaling is None) is folded
    np.testing.assert_array_equal(model.predict(X), pipeline.predict(X))
    off = 1e-12 if dtype == np.float64 else 1e-4  # float32 rows are scaled as float32
    expected = pipeline.decision_function(X)
    for part in (slice(None), slice(0, 5)):  # by a sweep, and few rows without one
        found = model.decision_function(X[part])
        np.testing.assert_allclose(found, expected[part], rtol=off, atol=off)
    save_model(model, tmp_path / "again.wm")
    content = (tmp_path / "m.wm").read_bytes()
    assert (tmp_path / "again.wm").read_bytes() == content


@pytest.mark.parametrize("estimator", ["linear", "rbf"])
def test_sparse_rows_are_scaled(estimator, rows, tmp_path):
    X, y = rows
    pipeline = make_pipeline(StandardScaler(), ESTIMATORS[estimator]()).fit(X, y)
    save_model(pipeline, tmp_path / "m.wm")
    model, expected = load_model(tmp_path / "m.wm"), pipeline.decision_function(X)
    found = model.decision_function(sparse.csr_array(X))
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12)


def test_names_of_columns_are_kept(rows, tmp_path):
    pandas = pytest.importorskip("pandas")
    X = pandas.DataFrame(rows[0], columns=list("abcd"))
    for estimator in (LinearSVC(), SVC()):
        pipeline = make_pipeline(StandardScaler(), estimator).fit(X, rows[1])
        save_model(pipeline, tmp_path / "m.wm")
        model = load_model(tmp_path / "m.wm")
        assert model.feature_names_in_.tolist() == list("abcd")
        found = model.decision_function(X[list("dbca")])
        expected = pipeline.decision_function(X)
        np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12)
        assert "feature_names" not in estimator.model_.meta


def test_other_steps_are_refused(rows, tmp_path):
    X, y = rows
    for step, words in (
        (
            PCA(2),
            "have no other steps before the estimator than StandardScaler, Min.* PCA "
            r"instead. Save pipeline\[-1\] alone, for rows of pipeline\[:-1\].transform",
        ),
        (
            MinMaxScaler(clip=True),
            "have no step with clip=True. Got a MinMaxScaler with clip=True",
        ),
    ):
        pipeline = make_pipeline(step, LinearSVC()).fit(X, y)
        with pytest.raises(ValueError, match=f"of save_model must {words}"):
            save_model(pipeline, tmp_path / "m.wm")
    unfitted = make_pipeline(StandardScaler(), LinearSVC().fit(X, y))
    with pytest.raises(
        ValueError, match="must have fitted steps. Got a StandardScaler"
    ):
        save_model(unfitted, tmp_path / "m.wm")
    with pytest.raises(NotFittedError):
        save_model(make_pipeline(StandardScaler(), SVC()), tmp_path / "m.wm")
    assert list(tmp_path.iterdir()) == []


def test_a_pipeline_as_liblinear_and_onnx(rows, tmp_path):
    runtime = pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")
    pytest.importorskip("onnx", reason="the extra 'onnx' is not installed")
    X, y = rows[0].astype(np.float32), rows[1]
    linear = make_pipeline(StandardScaler(), LinearSVC()).fit(X, y)
    write_liblinear(linear, tmp_path / "m.model")
    back = read_liblinear(tmp_path / "m.model")
    np.testing.assert_array_equal(back.predict(X), linear.predict(X))
    for name in ("rbf", "fourier"):
        pipeline = make_pipeline(MinMaxScaler(), ESTIMATORS[name]()).fit(X, y)
        save_model(pipeline, tmp_path / "m.wm")
        model = load_model(tmp_path / "m.wm")
        write_onnx(pipeline, tmp_path / "m.onnx")
        session = runtime.InferenceSession(tmp_path / "m.onnx")
        labels, scores = session.run(["label", "scores"], {"X": X})
        np.testing.assert_array_equal(labels, model.predict(X))
        np.testing.assert_allclose(scores, model.decision_function(X), atol=1e-12)


def test_scores_out_of_range_are_refused(rows):
    X, y = rows
    scaling = Scaling(np.zeros(4), np.full(4, 1e-300))
    model = SVC().fit(X, y).model_.scaled(scaling)
    with pytest.raises(
        ValueError, match="after its feature map must hold finite numbers"
    ):
        model.predict(X * 1e20)
    X[3, 1] = np.nan
    with pytest.raises(ValueError, match="X must hold finite .*NaN at row 3, column 1"):
        model.predict(X)


# -- the file --------------------------------------------------------------------------


def header(**changes):
    """A header of version 6."""
    arrays = [("w", [1, 2]), ("b", [1])]
    fields = {
        "scheme": "regression",
        "classes": {"dtype": "float64", "values": []},
        "arrays": [{"name": n, "dtype": "<f8", "shape": s} for n, s in arrays],
        "meta": {},
        "kernel": None,
        "features": None,
        "shape": "ovr",
        "break_ties": False,
        "scaling": False,
    }
    return fields | changes


BODY = np.array([2.0, 3.0, *[0.0] * 6, 0.5, *[0.0] * 7]).tobytes()


def test_models_without_labels_come_back(tmp_path):
    decisions = (Decision(np.array([2.0, 3.0]), 0.5),)
    X = np.array([[1.0, 1.0], [-4.0, 0.0]])
    for classes, scheme, answers in (
        (np.empty(0), "regression", [5.5, -7.5]),
        (np.array([-1, 1]), "one_class", [1, -1]),
    ):
        save_model(Model(classes, scheme, decisions, {"a": 1}), tmp_path / "m.wm")
        model = load_model(tmp_path / "m.wm")
        assert (model.scheme, model.meta) == (scheme, {"a": 1})
        assert model.classes.tolist() == classes.tolist()
        assert model.predict(X).tolist() == answers
        assert model.decision_function(X).tolist() == [5.5, -7.5]


def test_a_regression_is_scored_by_its_squared_errors():
    model = Model(np.empty(0), "regression", (Decision(np.array([1.0]), 0.0),))
    X, y = np.array([[1.0], [2.0], [4.0]]), [1.0, 2.0, 3.0]
    assert model.score(X, y) == 0.5
    assert model.score(X, y, [1.0, 1.0, 0.0]) == 1.0
    assert model.score(X, [1.0, 1.0, 1.0]) == 0.0


def test_forged_files_are_refused(tmp_path):
    path = forge(tmp_path / "m.wm", header(), BODY, version=6)
    assert load_model(path).predict([[1.0, 1.0]]).tolist() == [5.5]
    labels = {"dtype": "int64", "values": [0, 1]}
    moves = [{"name": n, "dtype": "<f8", "shape": [2]} for n in ("shift", "scale")]
    for changes, words in (
        ({"classes": labels}, "cannot have 2 classes"),
        ({"scheme": "one_class"}, "its class labels are not values"),
        ({"scheme": "one_class", "classes": labels}, "its classes are not -1 and 1"),
        ({"scaling": 1}, "'scaling' of the header must be of type bool"),
        ({"scaling": True}, "its arrays are not those of a model"),
        ({"shape": "ovo"}, "cannot have the shape 'ovo'"),
    ):
        assert words in refusal(forge(path, header(**changes), BODY, version=6))
    both = header(scaling=True, arrays=[*header()["arrays"], *moves])
    body = BODY + np.array([1.0, 0.0, *[0.0] * 6, 1.0, 1.0, *[0.0] * 6]).tobytes()
    said = refusal(forge(path, both, body, version=6))
    assert "cannot have a scaling beside weights that have it folded in" in said
    old = {k: v for k, v in header(scheme="one_class").items() if k != "scaling"}
    assert "no scheme 'one_class'" in refusal(forge(path, old, BODY, version=4))


@pytest.mark.parametrize("numbers", [(0.0, 0.0), (0.0, np.nan), (np.inf, 1.0)])
def test_forged_scalings_are_refused(numbers, rows, tmp_path, monkeypatch):
    model = SVC().fit(*rows).model_.scaled(Scaling(np.zeros(4), np.ones(4)))
    model.scaling.shift[2], model.scaling.scale[2] = numbers
    save_model(model, tmp_path / "m.wm")
    assert "A scaling must have" in refusal(tmp_path / "m.wm")


def test_every_changed_byte_of_a_scaling_is_noticed(rows, tmp_path):
    save_model(make_pipeline(StandardScaler(), SVC()).fit(*rows), tmp_path / "m.wm")
    content = (tmp_path / "m.wm").read_bytes()
    rng = np.random.default_rng(0)
    for place in rng.integers(0, len(content), 40).tolist():
        damaged = bytearray(content)
        damaged[place] ^= 0x10
        (tmp_path / "d.wm").write_bytes(damaged)
        refusal(tmp_path / "d.wm")


@pytest.mark.parametrize(
    "estimator", [LinearSVR(), SVR(), SVR(rank=20, random_state=0)]
)
def test_a_pipeline_of_a_regression(estimator, rows, tmp_path):
    X, y = rows[0], rows[0][:, 0] * 3.0 + rows[0][:, 3]
    pipeline = make_pipeline(MinMaxScaler(), estimator).fit(X, y)
    save_model(pipeline, tmp_path / "m.wm")
    model = load_model(tmp_path / "m.wm")
    found, expected = model.predict(X), pipeline.predict(X)
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12)
    assert model.score(X, y) == pytest.approx(pipeline.score(X, y), rel=1e-10)
    version = 5 if model.scaling is None else 6
    assert (tmp_path / "m.wm").read_bytes()[8] == version


@pytest.mark.parametrize(
    "machine",
    [
        OneClassSVM(nu=0.2, gamma=0.1),
        OneClassSVM(nu=0.2, kernel="linear"),
        OneClassSVM(nu=0.2, gamma=0.1, rank=20, approximation="fourier"),
        EnclosingBall(C=1.0, gamma=0.1),
    ],
    ids=repr,
)
def test_models_of_outliers_score_samples(machine, tmp_path):
    """They had decision values alone."""
    X = np.random.default_rng(0).normal(3.0, 2.0, size=(80, 3))
    pipeline = make_pipeline(MinMaxScaler(), machine).fit(X)
    save_model(pipeline, tmp_path / "m.wm")
    scores = load_model(tmp_path / "m.wm").score_samples(X)
    np.testing.assert_allclose(scores, pipeline.score_samples(X), rtol=1e-9, atol=1e-9)


def test_models_of_classes_have_no_score_samples():
    X, y = np.array([[0.0], [1.0]]), [-1, 1]
    with pytest.raises(ValueError, match="no score_samples: .* scheme 'binary'"):
        LinearSVC().fit(X, y).model_.score_samples(X)
