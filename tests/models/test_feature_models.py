"""Models of features in a file of version 3: nothing in it is believed."""

import copy
import hashlib
import json
import struct

import numpy as np
import pytest

from widemargin import load_model, save_model
from widemargin.features.maps import FourierFeatures, SquareFeatures
from widemargin.models.model import Decision, Model

FEATURES = {
    "fourier": FourierFeatures(np.arange(6.0).reshape(3, 2) / 7.0),
    "single": FourierFeatures(np.arange(6, dtype=np.float32).reshape(3, 2) / 7),
    "polynomial": SquareFeatures(0.5, 1.5, 3, np.dtype(np.float64)),
    "no constant": SquareFeatures(0.5, 0.0, 3, np.dtype(np.float32)),
}


def model_of(name):
    expand = FEATURES[name]
    decision = Decision(np.linspace(-1.0, 1.0, expand.rank), 0.25)
    return Model(np.array([0, 1]), "binary", (decision,), {}, expand=expand)


@pytest.mark.parametrize("name", FEATURES)
def test_a_model_comes_back(name, tmp_path):
    model, X = model_of(name), np.random.default_rng(0).normal(size=(20, 3))
    save_model(model, tmp_path / "m.wm")
    again = load_model(tmp_path / "m.wm")
    assert again.expand.dtype == model.expand.dtype
    np.testing.assert_array_equal(
        again.decision_function(X), model.decision_function(X)
    )
    features = model.expand.prepared(1)(X)
    np.testing.assert_allclose(
        model.decision_function(X), features @ model.decisions[0].w + 0.25, rtol=1e-6
    )


def test_weights_of_another_length_are_not_written(tmp_path):
    decision = Decision(np.ones(3), 0.0)
    model = Model(np.array([0, 1]), "binary", (decision,), expand=FEATURES["fourier"])
    with pytest.raises(ValueError, match="not vectors of one length"):
        save_model(model, tmp_path / "m.wm")
    assert not list(tmp_path.iterdir())


def changed(path, keys, value):
    """The file with something else in its header, and a right checksum."""
    content = path.read_bytes()
    length = struct.unpack_from("<I", content, 12)[0]
    header = copy.deepcopy(json.loads(content[16 : 16 + length]))
    at = header
    for key in keys[:-1]:
        at = at[key]
    at[keys[-1]] = value
    text = json.dumps(header).encode()
    text += b" " * (-(16 + len(text)) % 64)
    start = struct.pack("<8sII", b"\x89widem\r\n", 3, len(text))
    content = start + text + content[16 + length : -32]
    path.write_bytes(content + hashlib.sha256(content).digest())


HOSTILE = [
    ("polynomial", ("name",), "evil", "its features 'evil' of 3 columns are unknown"),
    ("fourier", ("name",), "polynomial", "unexpected array 'frequencies'"),
    ("polynomial", ("name",), "fourier", "its arrays are not those of a model"),
    ("fourier", ("columns",), 0, "of 0 columns are unknown"),
    ("fourier", ("columns",), 4, "other numbers than it says"),
    ("polynomial", ("columns",), 2**40, "its weights are not those"),
    ("fourier", ("gamma",), 0.5, "other numbers than it says"),
    ("polynomial", ("gamma",), float("nan"), "other numbers than it says"),
    ("polynomial", ("gamma",), -1.0, "other numbers than it says"),
    ("polynomial", ("coef0",), float("inf"), "other numbers than it says"),
    ("polynomial", ("coef0",), 0.0, "its weights are not those"),
    ("polynomial", ("gamma",), "x", "must be of type float"),
    ("single", ("dtype",), "<f8", "other numbers than it says"),
    ("polynomial", ("dtype",), "|O", "are unknown"),
    ("polynomial", ("more",), 1, "the features must be an object with the keys"),
]


@pytest.mark.parametrize(("name", "keys", "value", "words"), HOSTILE)
def test_hostile_headers(name, keys, value, words, tmp_path):
    path = tmp_path / "m.wm"
    save_model(model_of(name), path)
    changed(path, ("features", *keys), value)
    with pytest.raises(ValueError, match=f"is not a usable model file: .*{words}"):
        load_model(path)


def test_hostile_shapes(tmp_path):
    path = tmp_path / "m.wm"
    save_model(model_of("fourier"), path)
    changed(path, ("arrays", 2, "shape"), [6, 1])
    with pytest.raises(ValueError, match="other numbers than it says"):
        load_model(path)
    changed(path, ("features",), None)
    with pytest.raises(ValueError, match="'features' of the header must be of type"):
        load_model(path)
