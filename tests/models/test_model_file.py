"""The model file: exact round trips, the format, and models that it cannot hold."""

import hashlib
import json
import os
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from sklearn.calibration import CalibratedClassifierCV
from sklearn.exceptions import NotFittedError
from sklearn.manifold import Isomap
from sklearn.pipeline import make_pipeline

from widemargin import LinearSVC, load_model, save_model
from widemargin.models.model import Decision, Model

BINARY = Model(
    np.array([-1, 1]),
    "binary",
    (Decision(np.array([0.1, -0.0, 5e-324]), 0.3),),
    {"C": 1.0, "feature_names": ["a", "b", "ü"]},
)

INTEGERS = [f"{u}int{bits}" for u in ("", "u") for bits in (8, 16, 32, 64)]
LABELS = {
    **{name: np.array([0, 1, np.iinfo(name).max], name) for name in INTEGERS},
    "int64 minimum": np.array([np.iinfo(np.int64).min, 0, 1]),
    **{
        f"float{bits}": np.array([-1.5, -0.0, 0.1], f"f{bits // 8}")
        for bits in (16, 32, 64)
    },
    "infinite": np.array([-np.inf, 0.0, np.inf]),
    "big-endian": np.array([1, 2, 3], ">i4"),
    "str": np.array(["", "naïve", "日本"]),
    "surrogates": np.array(["\ud83d", "\ud83d\ude00", "\udcff"]),
    "object": np.array(["a", "a\0", "b" * 1000], dtype=object),
    "bool": np.array([False, True]),
}


def make(classes: Any, n: int = 2, meta: dict[str, Any] | None = None) -> Model:
    """A model of some classes with n weights a class."""
    classes = np.asarray(classes)
    W = np.random.default_rng(0).standard_normal((len(classes), n))
    decisions = tuple(Decision(w, float(w.sum())) for w in W)
    if len(classes) == 2:
        return Model(classes, "binary", decisions[:1], meta or {})
    return Model(classes, "ovr", decisions, meta or {})


def assert_same(model: Model, other: Model) -> None:
    """Equality to the bit."""
    if model.classes.dtype.kind == "U":  # as wide as the longest label
        assert other.classes.dtype.kind == "U"
    else:
        assert other.classes.dtype == model.classes.dtype.newbyteorder("=")
    assert other.classes.tolist() == model.classes.tolist()
    assert other.scheme == model.scheme
    assert repr(other.meta) == repr(model.meta)  # NaN equals NaN, 1 is not 1.0
    for ours, theirs in zip(model.decisions, other.decisions, strict=True):
        assert theirs.w.dtype == np.float64
        assert theirs.w.tobytes() == ours.w.tobytes()
        assert type(theirs.b) is float
        assert struct.pack("d", theirs.b) == struct.pack("d", ours.b)


def header_of(model: Model) -> dict[str, Any]:
    """The header as the format's description says, independent of the writer."""
    kind = {"U": "str", "O": "object"}.get(model.classes.dtype.kind)
    k = len(model.decisions)
    return {
        "scheme": model.scheme,
        "classes": {
            "dtype": kind or model.classes.dtype.name,
            "values": model.classes.tolist(),
        },
        "arrays": [
            {"name": "w", "dtype": "<f8", "shape": [k, model.n_features]},
            {"name": "b", "dtype": "<f8", "shape": [k]},
        ],
        "meta": model.meta,
    }


def body_of(model: Model) -> bytes:
    """The arrays as the format's description says."""
    w = b"".join(decision.w.astype("<f8").tobytes() for decision in model.decisions)
    b = struct.pack(f"<{len(model.decisions)}d", *(d.b for d in model.decisions))
    return w + bytes(-len(w) % 64) + b + bytes(-len(b) % 64)


def write_as_described(path: Path, model: Model) -> None:
    """A file as the format's description says."""
    header = json.dumps(header_of(model)).encode()
    header += b" " * (-(16 + len(header)) % 64)
    prefix = struct.pack("<8sII", b"\x89widem\r\n", 1, len(header))
    content = prefix + header + body_of(model)
    path.write_bytes(content + hashlib.sha256(content).digest())


@pytest.fixture(scope="module")
def scratch(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A path for the many files of a property, without waiting for the disk."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda _: None)
        yield tmp_path_factory.mktemp("models") / "model.wm"


# -- round trips -----------------------------------------------------------------------


@pytest.mark.parametrize("classes", LABELS.values(), ids=LABELS)
def test_labels_come_back_with_their_dtype(classes: Any, tmp_path: Path) -> None:
    model = make(classes)
    save_model(model, tmp_path / "m.wm")
    assert_same(model, load_model(tmp_path / "m.wm"))


JSON_VALUES: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=8,
)


@given(data=st.data())
@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_any_model_comes_back_to_the_bit(data: st.DataObject, scratch: Path) -> None:
    labels = st.one_of(
        *(
            st.lists(hnp.from_dtype(np.dtype(name)), min_size=2, max_size=9)
            for name in INTEGERS
        ),
        st.lists(st.floats(allow_nan=False), min_size=2, max_size=9),
        st.lists(st.text(st.characters(codec=None)), min_size=2, max_size=9),
    )
    classes = data.draw(labels.map(np.unique).filter(lambda c: len(c) > 1))
    k, n = 1 if len(classes) == 2 else len(classes), data.draw(st.integers(1, 20))
    finite = st.floats(allow_nan=False, allow_infinity=False)
    W = data.draw(hnp.arrays(np.float64, (k, n), elements=finite))
    decisions = tuple(Decision(w, data.draw(finite)) for w in W)
    meta = data.draw(st.dictionaries(st.text(max_size=5), JSON_VALUES, max_size=3))
    model = Model(classes, "binary" if k == 1 else "ovr", decisions, meta)
    save_model(model, scratch)
    assert_same(model, load_model(scratch))


def test_an_estimator_is_saved_as_its_model(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((60, 4)), rng.choice(["a", "b", "c"], 60)
    clf = LinearSVC(C=np.float64(0.5), tol=1e-2).fit(X, y)
    save_model(clf, str(tmp_path / "m.wm"))
    model = load_model(str(tmp_path / "m.wm"))
    assert np.array_equal(model.decision_function(X), clf.decision_function(X))
    assert np.array_equal(model.predict(X), clf.predict(X))
    assert model.meta == {**clf.model_.meta, "C": 0.5}


def test_meta_is_made_json(tmp_path: Path) -> None:
    deep: list[Any] = []
    for _ in range(63):
        deep = [deep]
    meta = {
        "deep": deep,
        "tuple": (1, (2,)),
        "i": np.int8(3),
        "f": np.float32(0.5),
        "b": np.True_,
    }
    save_model(make([0, 1], meta=meta), tmp_path / "m.wm")
    back = load_model(tmp_path / "m.wm").meta
    assert repr(back) == repr(
        {"deep": deep, "tuple": [1, [2]], "i": 3, "f": 0.5, "b": True}
    )


def test_two_columns_for_two_classes(tmp_path: Path) -> None:
    three = make([0, 1, 2])
    model = Model(np.array([0, 1]), "ovr", three.decisions[:2])
    save_model(model, tmp_path / "m.wm")
    assert_same(model, load_model(tmp_path / "m.wm"))


def test_weights_of_a_loaded_model_may_be_changed(tmp_path: Path) -> None:
    save_model(BINARY, tmp_path / "m.wm")
    w = load_model(tmp_path / "m.wm").decisions[0].w
    w[0] = 7.0
    assert w.flags.aligned
    assert w[0] == 7.0


# -- the format ------------------------------------------------------------------------


def test_the_description_is_enough_to_write_a_file(tmp_path: Path) -> None:
    for model in (BINARY, make(["a", "b", "c"], n=9)):
        write_as_described(tmp_path / "m.wm", model)
        assert_same(model, load_model(tmp_path / "m.wm"))


def test_the_description_is_enough_to_map_a_file(tmp_path: Path) -> None:
    model = make([1, 2, 3], n=9, meta={"long": "x" * 100})
    save_model(model, tmp_path / "m.wm")
    content = (tmp_path / "m.wm").read_bytes()
    magic, version, length = struct.unpack("<8sII", content[:16])
    assert (magic, version) == (b"\x89widem\r\n", 1)
    assert json.loads(content[16 : 16 + length]) == header_of(model)
    start = 16 + length
    assert start % 64 == 0
    w = np.memmap(tmp_path / "m.wm", "<f8", "r", offset=start, shape=(3, 9))
    assert np.array_equal(w, [decision.w for decision in model.decisions])
    start += -(-w.nbytes // 64) * 64
    b = np.memmap(tmp_path / "m.wm", "<f8", "r", offset=start, shape=(3,))
    assert np.array_equal(b, [decision.b for decision in model.decisions])
    assert content[start + 64 :] == hashlib.sha256(content[: start + 64]).digest()


# -- models that cannot be written -----------------------------------------------------

CYCLE: dict[str, Any] = {}
CYCLE["again"] = CYCLE
DEEP: Any = 0
for _ in range(65):
    DEEP = [DEEP]


@pytest.mark.parametrize(
    ("meta", "words"),
    [
        ({"a": {1: 2}}, r"meta\['a'\] must be a JSON value. Got dict instead"),
        ({"a": [0, {1}]}, r"meta\['a'\]\[1\] must be a JSON value. Got set instead"),
        ({"a": b"bytes"}, "Got bytes instead"),
        ({"a": np.zeros(2)}, "Got ndarray instead"),
        ({"a": np.datetime64("2020-01-01")}, "Got date instead"),
        ({"a": 1j}, "Got complex instead"),
        ({"a": 10**5000}, "not valid JSON"),
        ({"a": DEEP}, "nested more than 64 deep"),
        (CYCLE, "nested more than 64 deep"),
    ],
)
def test_meta_must_be_json(meta: Any, words: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=f"The model cannot be written: .*{words}"):
        save_model(make([0, 1], meta=meta), tmp_path / "m.wm")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("model", "words"),
    [
        (make([1, 0]), "not sorted and distinct"),
        (make([0, 0]), "not sorted and distinct"),
        (make([0.0, np.nan, np.nan]), "not sorted and distinct"),
        (make([0]), "it has 1 class"),
        (Model(np.arange(3), "binary", BINARY.decisions), "but is binary"),
        (make(np.array([0, 1], "M8[D]")), "labels are of dtype datetime64"),
        (make(np.array([0, 1], complex)), "labels are of dtype complex128"),
        (make(np.array(["a", 1], object)), "objects other than strings"),
        (make([0, 1, 2], n=0), "not vectors of one length"),
        (
            Model(
                np.arange(3), "ovr", tuple(Decision(np.ones(n), 0.0) for n in (1, 2, 3))
            ),
            "not vectors of one length",
        ),
        (
            Model(np.arange(2), "binary", (Decision(np.array([np.nan]), 0.0),)),
            "NaN or an infinity",
        ),
        (
            Model(np.arange(2), "binary", (Decision(np.ones(1), np.inf),)),
            "NaN or an infinity",
        ),
    ],
)
def test_models_that_no_training_makes(
    model: Model, words: str, tmp_path: Path
) -> None:
    with pytest.raises(ValueError, match=f"The model cannot be written: .*{words}"):
        save_model(model, tmp_path / "m.wm")
    assert list(tmp_path.iterdir()) == []


def test_labels_too_long_to_load_are_not_saved(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("widemargin.models.writable._LABEL_BYTES", 4 * 2 * 9)
    save_model(make(["a", "b" * 9]), tmp_path / "m.wm")
    with pytest.raises(
        ValueError, match="cannot be written: its class labels are too long"
    ):
        save_model(make(["a", "b" * 10]), tmp_path / "m.wm")


def test_what_is_no_model(tmp_path: Path) -> None:
    with pytest.raises(NotFittedError):
        save_model(LinearSVC(), tmp_path / "m.wm")
    with pytest.raises(NotFittedError):
        save_model(make_pipeline(LinearSVC()), tmp_path / "m.wm")
    for thing, name in ((make_pipeline(Isomap()), "Isomap"), (None, "NoneType")):
        with pytest.raises(
            TypeError,
            match=f"of save_model must be a fitted estimator of widemargin, or a Model. Got {name} ",
        ):
            save_model(thing, tmp_path / "m.wm")
    X = np.random.default_rng(0).normal(size=(60, 3))
    y = X[:, 0] > 0.0
    calibrated = CalibratedClassifierCV(LinearSVC(), ensemble=False).fit(X, y)
    with pytest.raises(TypeError, match=r"Got CalibratedClassifierCV .* SVCCV\("):
        save_model(calibrated, tmp_path / "m.wm")


@pytest.mark.parametrize(
    ("name", "writer"),
    [("m.onnx", "onnx.write_onnx"), ("m.Model", "libsvm.write_libsvm or .*write_libl")],
)
def test_a_name_of_another_format_is_refused(tmp_path, name, writer):
    model = LinearSVC().fit([[0.0], [1.0]], [0, 1])
    with pytest.raises(ValueError, match=f"must not end in .*{writer}.* Got .*{name}"):
        save_model(model, tmp_path / name)
    assert list(tmp_path.iterdir()) == []


def test_onnx_is_not_read(tmp_path):
    (tmp_path / "m.onnx").write_bytes(b"\x08\x08\x12")
    with pytest.raises(ValueError, match="ONNX models can be written, but not read"):
        load_model(tmp_path / "m.onnx")
