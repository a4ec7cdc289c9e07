"""Models with a kernel on disk: exact, and nothing in a file is believed."""

import copy
import hashlib
import json
import struct

import numpy as np
import pytest
from scipy import sparse

from widemargin import SVC, load_model, save_model
from widemargin.kernels.table import NAMES
from widemargin.models.liblinear import write_liblinear

KERNELS = [*NAMES, "precomputed"]


def fitted(iris, kernel="rbf", scheme="ovo", kind=np.asarray, **parameters):
    """A classifier and the data it predicts."""
    X, y = iris
    X = kind(np.abs(X - 3).astype(np.float32))
    y = y == "virginica" if scheme == "binary" else y
    if kernel == "precomputed":
        X = np.asarray(X @ X.T, dtype=np.float64)
    multi_class = "ovr" if scheme == "ovr" else "ovo"
    clf = SVC(kernel=kernel, gamma=0.05, multi_class=multi_class, **parameters)
    return clf.fit(X, y), X


@pytest.mark.filterwarnings("ignore:The kernel is not positive semidefinite")
@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("scheme", ["binary", "ovo", "ovr"])
def test_a_loaded_model_is_the_same_to_the_bit(iris, kernel, scheme, tmp_path):
    clf, X = fitted(iris, kernel, scheme)
    save_model(clf, tmp_path / "m.wm")
    model = load_model(tmp_path / "m.wm")
    assert model.scheme == scheme
    assert model.meta == clf.model_.meta
    np.testing.assert_array_equal(model.decision_function(X), clf.decision_function(X))
    np.testing.assert_array_equal(model.predict(X), clf.predict(X))
    if model.kernels is not None:
        assert model.kernels.kernel == clf.kernel_
        assert model.kernels.vectors.dtype == np.float32
    save_model(model, tmp_path / "again.wm")
    content = (tmp_path / "m.wm").read_bytes()
    assert (tmp_path / "again.wm").read_bytes() == content
    new = kernel not in ("linear", "precomputed") or scheme == "ovo"
    assert content[8] == 1 + new


def integers(X):
    return np.rint(10 * X).astype(np.int16)


def long_indices(X):
    X = sparse.csr_matrix(X)
    X.indices, X.indptr = X.indices.astype(np.int64), X.indptr.astype(np.int64)
    return X


@pytest.mark.parametrize("kind", [sparse.csr_array, long_indices, integers])
def test_vectors_are_kept_as_stored(iris, kind, tmp_path):
    clf, X = fitted(iris, kind=kind)
    save_model(clf, tmp_path / "m.wm")
    model = load_model(tmp_path / "m.wm")
    assert model.kernels.vectors.dtype == X.dtype
    assert sparse.issparse(model.kernels.vectors) == sparse.issparse(X)
    np.testing.assert_array_equal(model.decision_function(X), clf.decision_function(X))


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array])
def test_a_model_without_support_vectors(iris, kind, tmp_path):
    X, y = iris
    clf = SVC(time_limit=1e-9)
    with pytest.warns(UserWarning, match="time_limit"):
        clf.fit(kind(X), y)
    save_model(clf, tmp_path / "m.wm")
    model = load_model(tmp_path / "m.wm")
    np.testing.assert_array_equal(model.predict(X), clf.predict(X))


def test_callables_are_refused(iris, tmp_path):
    clf = SVC(kernel=lambda A, B: np.asarray(A @ B.T)).fit(*iris)
    with pytest.raises(ValueError, match="its kernel is a callable, which no file can"):
        save_model(clf, tmp_path / "m.wm")
    assert not list(tmp_path.iterdir())


def test_liblinear_refuses_kernels(iris, tmp_path):
    X, y = iris
    clf = SVC().fit(X, y == "setosa")
    words = "'model' parameter of write_liblinear must be that of a linear model. Got one with the kernel rbf"
    with pytest.raises(ValueError, match=words):
        write_liblinear(clf, tmp_path / "m.model")
    clf = SVC(kernel="linear").fit(X, np.unique(y, return_inverse=True)[1])
    with pytest.raises(ValueError, match="one against one.*multi_class='ovr'"):
        write_liblinear(clf, tmp_path / "m.model")


# -- hostile files: the checksum is right ----------------------------------------------


def parts(path):
    content = path.read_bytes()
    length = struct.unpack_from("<I", content, 12)[0]
    return json.loads(content[16 : 16 + length]), content[16 + length : -32]


def forge(path, header, body, version=2):
    text = json.dumps(header).encode()
    text += b" " * (-(16 + len(text)) % 64)
    content = struct.pack("<8sII", b"\x89widem\r\n", version, len(text)) + text + body
    path.write_bytes(content + hashlib.sha256(content).digest())
    return path


def change(header, *keys, value):
    header = copy.deepcopy(header)
    at = header
    for key in keys[:-1]:
        at = at[key]
    at[keys[-1]] = value
    return header


HOSTILE = [
    (("kernel", "name"), "evil", "its kernel 'evil' is unknown"),
    (("kernel", "name"), "precomputed", "its kernel 'precomputed' is unknown"),
    (("kernel", "gamma"), -1.0, "its kernel is none"),
    (("kernel", "gamma"), float("nan"), "its kernel is none"),
    (("kernel", "gamma"), "scale", "must be of type float"),
    (("kernel", "degree"), 0, "its kernel is none"),
    (("kernel", "columns"), 2, "another number of columns|outside|no matrix"),
    (("kernel",), 3, "'kernel' of the header must be of type dict"),
    (("kernel",), None, "unexpected array 'weights'"),
    (("kernel", "more"), 3, "the kernel must be an object with the keys"),
    (("scheme",), "binary", "cannot have 3 decision"),
    (("arrays", 0, "shape"), [3, 2], "."),
    (("arrays", 0, "dtype"), "<f4", "unexpected array 'weights'"),
    (("arrays", 2, "shape"), [2**40], "'counts' would end after the file"),
]


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize(("keys", "value", "words"), HOSTILE)
def test_hostile_headers(iris, kind, keys, value, words, tmp_path):
    clf, _ = fitted(iris, kind=kind)
    save_model(clf, tmp_path / "m.wm")
    header, body = parts(tmp_path / "m.wm")
    path = forge(tmp_path / "m.wm", change(header, *keys, value=value), body)
    with pytest.raises(ValueError, match=f"is not a usable model file: .*{words}"):
        load_model(path)


@pytest.mark.parametrize(
    "name", ["weights", "b", "counts", "indices", "indptr", "data"]
)
@pytest.mark.parametrize(
    "number", [struct.pack("<q", 2**62), struct.pack("<d", np.nan)]
)
def test_hostile_numbers(iris, name, number, tmp_path):
    """No number in a file leads outside of the arrays."""
    clf, X = fitted(iris, kind=lambda X: sparse.csr_array(X.astype(np.float64)))
    save_model(clf, tmp_path / "m.wm")
    header, body = parts(tmp_path / "m.wm")
    start = 0
    for array in header["arrays"]:
        if array["name"] == name:
            break
        start += -(-8 * int(np.prod(array["shape"])) // 64) * 64
    path = forge(tmp_path / "m.wm", header, body[:start] + number + body[start + 8 :])
    try:
        model = load_model(path)
    except ValueError as error:
        assert "is not a usable model file" in str(error)
    else:  # a large number is a coefficient like any other
        model.decision_function(X)
