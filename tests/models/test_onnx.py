"""ONNX graphs, judged by running them in ONNX Runtime."""

import dataclasses
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from widemargin import SVC, LinearSVC
from widemargin.models.model import Decision, Model
from widemargin.models.onnx import write_onnx

LABELS = {
    "int64": [-5, 0, 7],
    "uint8": np.array([0, 1, 255], np.uint8),
    "uint64": np.array([0, 1, 2**64 - 1], np.uint64),
    "float": [-1.5, 0.0, 0.1],
    "str": ["", "naïve", "日本"],
    "object": np.array(["a", "b", "c" * 100], dtype=object),
}


@pytest.fixture(scope="module")
def runtime() -> Any:
    """ONNX Runtime, where onnx is there too."""
    pytest.importorskip("onnx", reason="the extra 'onnx' is not installed")
    return pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")


def make(classes: Any, n: int = 20) -> Model:
    """A model of some classes with coefficients of many sizes."""
    classes = np.asarray(classes)
    rng = np.random.default_rng(0)
    W = rng.standard_normal((len(classes), n)) * 10.0 ** rng.integers(-6, 6, n)
    decisions = tuple(Decision(w, float(w.sum())) for w in W)
    if len(classes) == 2:
        return Model(classes, "binary", decisions[:1])
    return Model(classes, "ovr", decisions)


def run(runtime: Any, path: Path, X: NDArray[np.float32]) -> tuple[Any, Any]:
    """Labels and scores of the graph in a file."""
    session = runtime.InferenceSession(path, providers=["CPUExecutionProvider"])
    labels, scores = session.run(["label", "scores"], {"X": X})
    return labels, scores


def assert_agree(
    model: Model, X: NDArray[np.float32], labels: Any, scores: Any
) -> None:
    """Scores within rounding, labels equal where no other is within rounding."""
    W = np.array([decision.w for decision in model.decisions])
    b = np.array([decision.b for decision in model.decisions])
    ours = model.decision_function(X)
    # X is exact in float64. Each side's sum of n + 1 terms is off by at most
    # (n + 1) u sum |x_j w_j|, u = 2^-53, whatever the order of its additions.
    bound = 2 * (W.shape[1] + 1) * 2.0**-53 * (np.abs(X) @ np.abs(W.T) + np.abs(b))
    assert scores.dtype == np.float64
    assert scores.shape == ours.shape
    assert np.all(
        np.abs(scores.reshape(bound.shape) - ours.reshape(bound.shape)) <= bound
    )
    if ours.ndim == 1:
        clear = np.abs(ours) > bound[:, 0]
    else:
        best = np.sort(ours, axis=1)
        clear = best[:, -1] - best[:, -2] > 2 * bound.max(axis=1)
    assert clear.mean() > 0.99
    assert labels[clear].tolist() == model.predict(X)[clear].tolist()


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("classes", LABELS.values(), ids=LABELS)
def test_runtime_agrees(
    classes: Any, n_classes: int, runtime: Any, tmp_path: Path
) -> None:
    model = make(classes[:n_classes])
    write_onnx(model, tmp_path / "m.onnx")
    X = np.random.default_rng(1).standard_normal((500, 20)).astype(np.float32)
    labels, scores = run(runtime, tmp_path / "m.onnx", X)
    assert_agree(model, X, labels, scores)
    assert len(set(labels.tolist())) == n_classes


def test_bool_labels(runtime: Any, tmp_path: Path) -> None:
    model = make([False, True])
    write_onnx(model, tmp_path / "m.onnx")
    X = np.random.default_rng(1).standard_normal((100, 20)).astype(np.float32)
    labels, scores = run(runtime, tmp_path / "m.onnx", X)
    assert_agree(model, X, labels, scores)


@pytest.mark.parametrize(
    ("classes", "dtype"),
    [
        ([0, 1], np.int64),
        (np.array([0, 2**63 - 1], np.uint64), np.int64),
        (["a", "b"], np.object_),
    ],
)
def test_label_types(classes: Any, dtype: Any, runtime: Any, tmp_path: Path) -> None:
    write_onnx(make(classes), tmp_path / "m.onnx")
    labels, _ = run(runtime, tmp_path / "m.onnx", np.ones((1, 20), np.float32))
    assert labels.dtype == dtype


@pytest.mark.parametrize("y", [["a", "b"], [1, 2, 3]])
def test_an_estimator(y: Any, runtime: Any, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((90, 6)).astype(np.float32)
    clf = LinearSVC(tol=1e-2).fit(X, np.resize(y, 90))
    write_onnx(clf, tmp_path / "m.onnx")
    assert_agree(clf.model_, X, *run(runtime, tmp_path / "m.onnx", X))


def test_float32_arithmetic_would_not_do(runtime: Any, tmp_path: Path) -> None:
    # 2^24 + 1 - 2^24: in float32 the middle term is lost, and the label with it.
    decision = Decision(np.array([2.0**24, 1.0, -(2.0**24)]), -0.5)
    model = Model(np.array([0, 1]), "binary", (decision,))
    write_onnx(model, tmp_path / "m.onnx")
    labels, scores = run(runtime, tmp_path / "m.onnx", np.ones((1, 3), np.float32))
    assert (labels[0], scores[0]) == (1, 0.5)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_ties_go_to_the_same_class(
    n_classes: int, runtime: Any, tmp_path: Path
) -> None:
    decisions = tuple(Decision(np.array([k + 1.0]), 0.0) for k in range(n_classes))
    scheme = "binary" if n_classes == 2 else "ovr"
    model = Model(
        np.arange(n_classes), scheme, decisions[: 1 if n_classes == 2 else None]
    )
    write_onnx(model, tmp_path / "m.onnx")
    X = np.array([[0], [1], [-1]], np.float32)
    labels, _ = run(runtime, tmp_path / "m.onnx", X)
    assert labels.tolist() == model.predict(X).tolist()


def test_no_rows(runtime: Any, tmp_path: Path) -> None:
    for classes in ([0, 1], [0, 1, 2]):
        write_onnx(make(classes), tmp_path / "m.onnx")
        labels, _ = run(runtime, tmp_path / "m.onnx", np.ones((0, 20), np.float32))
        assert labels.shape == (0,)


@pytest.mark.parametrize("classes", [[0, 1], ["a", "b", "c"]])
def test_the_graph_is_valid_and_old(classes: Any, runtime: Any, tmp_path: Path) -> None:
    import onnx

    write_onnx(make(classes), tmp_path / "m.onnx")
    onnx.checker.check_model(str(tmp_path / "m.onnx"), full_check=True)
    model = onnx.load(str(tmp_path / "m.onnx"))
    assert [(o.domain, o.version) for o in model.opset_import] == [("", 13)]
    assert model.ir_version == 7
    shapes = [
        [d.dim_param or d.dim_value for d in value.type.tensor_type.shape.dim]
        for value in (*model.graph.input, *model.graph.output)
    ]
    assert shapes == [["m", 20], ["m"], ["m"] if len(classes) == 2 else ["m", 3]]


def test_onnx_is_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(ImportError) as caught:
        write_onnx(make([0, 1]), tmp_path / "m.onnx")
    assert str(caught.value) == (
        "an ONNX model needs the extra 'onnx': pip install \"widemargin[onnx]\""
    )
    assert list(tmp_path.iterdir()) == []


def test_what_is_no_model_is_refused(runtime: Any, tmp_path: Path) -> None:
    with pytest.raises(
        TypeError,
        match="of write_onnx must be a fitted estimator of widemargin, or a Model. Got int ",
    ):
        write_onnx(1, tmp_path / "m.onnx")
    bad = Model(np.arange(2), "binary", (Decision(np.array([np.nan]), 0.0),))
    with pytest.raises(ValueError, match="coefficients hold NaN"):
        write_onnx(bad, tmp_path / "m.onnx")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.filterwarnings("ignore:The kernel is not positive semidefinite")
@pytest.mark.parametrize("kernel", ["linear", "poly", "rbf", "sigmoid", "precomputed"])
@pytest.mark.parametrize("scheme", ["binary", "ovo", "ovr"])
def test_kernels(
    runtime: Any, iris: Any, kernel: str, scheme: str, tmp_path: Path
) -> None:
    X, y = iris[0].astype(np.float32), iris[1]
    y = y == "virginica" if scheme == "binary" else y
    if kernel == "precomputed":
        X = X @ X.T
    multi_class = "ovr" if scheme == "ovr" else "ovo"
    clf = SVC(kernel=kernel, gamma=0.1, coef0=0.5, multi_class=multi_class).fit(X, y)
    write_onnx(clf, tmp_path / "m.onnx")
    labels, scores = run(runtime, tmp_path / "m.onnx", X)
    np.testing.assert_allclose(scores, clf.decision_function(X), rtol=1e-9, atol=1e-9)
    np.testing.assert_array_equal(labels, clf.predict(X))


@pytest.mark.parametrize(
    "options",
    [
        {"multi_class": "dag"},
        {"multi_class": "dag", "decision_function_shape": "ovo"},
        {"decision_function_shape": "ovo"},
        {"break_ties": True},
    ],
)
@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_pairs_of_classes(
    options: Any, kernel: str, runtime: Any, tmp_path: Path
) -> None:
    random = np.random.default_rng(0)
    X = random.standard_normal((200, 3)).astype(np.float32)
    y = np.resize(np.arange(5), 200)  # at random: many ties of votes
    clf = SVC(kernel=kernel, gamma=0.1, tol=0.05, **options).fit(X, y)
    write_onnx(clf, tmp_path / "m.onnx")
    labels, scores = run(runtime, tmp_path / "m.onnx", X)
    np.testing.assert_allclose(scores, clf.decision_function(X), rtol=1e-9, atol=1e-9)
    np.testing.assert_array_equal(labels, clf.predict(X))
    others = [
        SVC(**{"kernel": kernel, "gamma": 0.1, "tol": 0.05, "break_ties": b})
        for b in (False, True)
    ]
    assert any((one.fit(X, y).predict(X) != labels).any() for one in others)


def test_kernels_that_onnx_has_not(runtime: Any, iris: Any, tmp_path: Path) -> None:
    for kernel, name in (("laplacian", "laplacian"), (lambda A, B: A @ B.T, "a call")):
        clf = SVC(kernel=kernel).fit(*iris)
        with pytest.raises(ValueError, match=f"must be one of linear, .* Got {name}"):
            write_onnx(clf, tmp_path / "m.onnx")


@pytest.mark.parametrize("scheme", ["regression", "one_class"])
@pytest.mark.parametrize("kernel", ["rbf", "linear"])
def test_models_without_classes(
    kernel: str, scheme: str, runtime: Any, tmp_path: Path
) -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((200, 4)).astype(np.float32)
    labels = np.empty(0) if scheme == "regression" else np.array([-1, 1])
    fitted = SVC(kernel=kernel, gamma=0.2).fit(X, X[:, 0] + X[:, 1] ** 2 > 1).model_
    model = dataclasses.replace(fitted, classes=labels, scheme=scheme)
    write_onnx(model, tmp_path / "m.onnx")
    found, scores = run(runtime, tmp_path / "m.onnx", X)
    np.testing.assert_allclose(scores, model.decision_function(X), atol=1e-12)
    assert found.dtype == (np.float64 if scheme == "regression" else np.int64)
    np.testing.assert_allclose(found, model.predict(X), atol=1e-12)
    assert len(set(found.tolist())) > 1
