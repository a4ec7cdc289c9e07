r"""The model file: one model, exact to the bit, safe to open whoever wrote it.

Version 1, all numbers little-endian (offset, bytes, content):

    0     8    magic: the byte 0x89, then "widem\r\n"
    8     4    version, unsigned
    12    4    h, unsigned: bytes of the header; 16 + h is a multiple of 64
    16    h    header: JSON in UTF-8, padded with spaces
    16+h       the arrays, row by row, each padded with zeros to a multiple of 64 bytes
    end   32   SHA-256 of all bytes before it

    {"scheme": "binary" or "ovr", "classes": {"dtype": ..., "values": [...]},
     "arrays": [{"name": "w", "dtype": "<f8", "shape": [k, n]},
                {"name": "b", "dtype": "<f8", "shape": [k]}], "meta": {...}}

These keys and no others. Version 2 is written for one against one ("ovo") and for
kernels, and has a key more: "kernel", which is null for a linear model, or

    {"name": "rbf", "gamma": 0.1, "degree": 3, "coef0": 0.0, "columns": n}

with the arrays "weights" (r, l), "b" (k,) and "counts" (c,) of `Expansion` and
the support vectors: "vectors" (l, n), or "data", "indices" and "indptr" of CSR rows,
integers in "<i8", the numbers of the vectors in the dtype that they had.

Version 3 is for models of random features or monomials, and has "features" instead:

    {"name": "fourier" or "polynomial", "dtype": "<f8" or "<f4", "gamma": 0.1,
     "coef0": 1.0, "columns": n}

with the array "frequencies" (n, r / 2) behind "w" (k, r) and "b" for "fourier", whose
gamma and coef0 are 0.

Version 4 is for directed acyclic graphs ("dag"), and for models one against one whose
scores are those of pairs or that break ties. It has the keys "kernel" and "features",
of which one or both are null, and besides

    "shape": "ovr" or "ovo", "break_ties": true or false

Version 5 is for regressions: the scheme is "regression", there are no classes ("values"
is empty), and it has the keys "kernel" and "features", of which one or both are null.

Version 6 is for models that scale their rows, a regression too, and for "one_class",
whose classes are -1 and 1. It has the keys of version 4 and besides

    "scaling": true or false

If true, the arrays "shift" (n,) and "scale" (n,) follow the others, and the kernel or
the features are about (x - shift) / scale.

Version 7 is for models with probabilities. It has the keys of version 6 and besides

    "calibration": "sigmoid" or "isotonic"

with the arrays "calibration_first" (t,), "calibration_second" (t,) and
"calibration_counts" (c,) behind all others: those of `Calibration`.

The dtype of the classes is a NumPy name (int64, float32),
"str" for strings as wide as the longest, or "object" for an object array of strings.
Numbers that JSON lacks are written NaN, Infinity and -Infinity. Another layout gets
another version, and a reader refuses a version that it does not know.
"""

import hashlib
import json
import math
import os
import struct
import textwrap
from typing import Any

import numpy as np
from numpy.typing import NDArray

from widemargin.features.scaling import Scaling
from widemargin.models import arrays as parts
from widemargin.models.arrays import UnfitError
from widemargin.models.calibration import Calibration
from widemargin.models.decisions import Decision
from widemargin.models.model import Model
from widemargin.models.schemes import ONE_CLASS, REGRESSION
from widemargin.models.text import HEADS
from widemargin.models.writable import (
    LABELS,
    as_model,
    check_classes,
    check_label_bytes,
    check_linear,
    label_dtype,
    least_counts,
    weights_of,
)
from widemargin.parameters import Checker
from widemargin.system.files import DATA, Path, ending, open_regular, replacing

_PREFIX = struct.Struct("<8sII")
MAGIC = b"\x89widem\r\n"
# Versions.
_LINEAR, _KERNEL, _FEATURES, _DECIDING, _REGRESSION, _SCALING, _CALIBRATED = range(1, 8)
_DECIDES: dict[str, Any] = {"shape": str, "break_ties": bool}
_OR_NULL = (dict, type(None))
# The keys that a header has besides those of version 1, and their types.
_OF_VERSION: dict[int, dict[str, Any]] = {
    _LINEAR: {},
    _KERNEL: {"kernel": _OR_NULL},
    _FEATURES: {"features": dict},
    _DECIDING: {"kernel": _OR_NULL, "features": _OR_NULL} | _DECIDES,
    _REGRESSION: {"kernel": _OR_NULL, "features": _OR_NULL},
    _SCALING: {"kernel": _OR_NULL, "features": _OR_NULL} | _DECIDES | {"scaling": bool},
}
_OF_VERSION[_CALIBRATED] = _OF_VERSION[_SCALING] | {"calibration": str}
# Versions with these schemes.
_FIRST = {"ovo": _KERNEL, "dag": _DECIDING, REGRESSION: _REGRESSION}
_FIRST[ONE_CLASS] = _SCALING
_ALIGN, _DIGEST = 64, 32
# Endings of models in other formats, and what writes these.
_OTHERS = {
    ".onnx": ("onnx.write_onnx",),
    ".model": ("libsvm.write_libsvm", "liblinear.write_liblinear"),
}
_MOVES = {"shift": (1, ("<f8",)), "scale": (1, ("<f8",))}
_CALIBRATION = {
    "calibration_first": (1, ("<f8",)),
    "calibration_second": (1, ("<f8",)),
    "calibration_counts": (1, ("<i8",)),
}
_WEIGHTS = {"w": (2, ("<f8",)), "b": (1, ("<f8",))}
# Far from where Python ends a recursion (1,000 calls).
_META_DEPTH = 64


def save_model(model: Any, path: Path) -> None:
    """Write a model to a file.

    The file is written beside ``path``, flushed to the disk and then put in its place:
    after an error or a crash the old file is as it was.

    Parameters
    ----------
    model : Model, fitted estimator or Pipeline
        An estimator is anything with a property ``model_``. A pipeline of scikit-learn
        has StandardScaler, MinMaxScaler, MaxAbsScaler and RobustScaler before an
        estimator: linear weights have them folded in, other models keep them as one
        map. Its first step may be a ColumnTransformer of these and of OneHotEncoder:
        the model has a feature ``column=word`` for each word, and predicts of tables as
        they come.
    path : str or path-like
        An existing file is replaced and keeps its permissions.

    Raises
    ------
    ValueError
        A label, coefficient or value of ``model.meta`` that the file cannot hold,
        another step of a pipeline, ``path`` is a pipe or device, or ends as the name of
        a model in another format (.onnx, .model).
    TypeError
        ``model`` is no model.
    OSError
        The file cannot be written.

    See Also
    --------
    load_model : read it back.

    Notes
    -----
    ``meta`` may hold what JSON can say, NaN and infinities. Tuples come back as lists,
    NumPy numbers as Python's; everything else comes back equal, arrays to the bit.
    The layout is described in `widemargin.models.model_file`.

    Examples
    --------
    >>> import os, tempfile
    >>> from widemargin import LinearSVC, load_model, save_model
    >>> clf = LinearSVC().fit([[0.0], [1.0], [3.0], [4.0]], ["no", "no", "yes", "yes"])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "small.wm")
    ...     save_model(clf, path)
    ...     load_model(path).predict([[0.5], [3.5]]).tolist()
    ['no', 'yes']
    """
    _check_name(path)
    model = as_model(model, "save_model")
    try:
        if model.kernels is None:
            W, b = weights_of(model)
            arrays = {"w": W, "b": b}
            if model.expand is not None:
                arrays |= parts.feature_arrays(model.expand)
        else:
            check_classes(model)
            parts.check_expansion(model.kernels, least_counts(model.scheme))
            arrays = parts.kernel_arrays(model.kernels)
        if (scaling := model.scaling) is not None:
            arrays |= {"shift": scaling.shift, "scale": scaling.scale}
        if (found := model.calibration) is not None:
            parts_of = (found.first, found.second, found.counts.astype("<i8"))
            arrays |= dict(zip(_CALIBRATION, parts_of, strict=True))
        content = _encode(model, arrays)
    except UnfitError as error:
        raise ValueError(f"The model cannot be written: {error}.") from None
    digest = hashlib.sha256()
    with replacing(path) as file:
        for piece in content:
            digest.update(piece)
            file.write(piece)
        file.write(digest.digest())


def _check_name(path: Path) -> None:
    """Refuse a name that promises another format."""
    found = os.path.splitext(os.fsdecode(path).lower())[1]
    if found in _OTHERS:
        writers = " or ".join(f"widemargin.models.{name}" for name in _OTHERS[found])
        expected = f"not end in {found}, which is for what {writers} writes"
        Checker("save_model").refuse_part("path", expected, repr(os.fsdecode(path)))


def load_model(path: Path) -> Model:
    """Read a model that `save_model` wrote.

    Parameters
    ----------
    path : str or path-like
        What `save_model` was given.

    Returns
    -------
    Model
        Its arrays are equal to the saved ones to the bit.

    Raises
    ------
    ValueError
        The file is damaged, of another format or of a newer version. Nothing in a file
        is executed, and no size that it claims is believed before it is checked.
    FileNotFoundError
        No such file; names the file that may have been meant.

    See Also
    --------
    save_model : write it.
    """
    with open_regular(path) as file:
        content = np.fromfile(file, np.uint8)
    try:
        return _decode(content)
    except UnfitError as error:
        reason = textwrap.shorten(str(error), 200)  # it may quote the file
        data = "; load_svmlight reads text, open_rows tables and arrays"
        reason += data * (ending(os.fsdecode(path)) in DATA)
        onnx = "; ONNX models can be written, but not read"
        reason += onnx * (ending(os.fsdecode(path)) == ".onnx")
        raise ValueError(f"{path} is not a usable model file: {reason}.") from None


# -- writing ---------------------------------------------------------------------------


def _encode(model: Model, arrays: dict[str, Any]) -> list[bytes | memoryview]:
    """The file without its checksum, in pieces."""
    version = _version(model)
    text = _header(model, arrays, version)
    text += b" " * (-(_PREFIX.size + len(text)) % _ALIGN)
    pieces: list[bytes | memoryview] = [_PREFIX.pack(MAGIC, version, len(text)), text]
    for array in arrays.values():
        stored = array.astype(array.dtype.newbyteorder("<"), copy=False)
        pieces += [stored.data if array.size else b"", bytes(-array.nbytes % _ALIGN)]
    return pieces


def _version(model: Model) -> int:
    """The oldest version that can hold a model."""
    if model.calibration is not None:
        return _CALIBRATED
    if model.scaling is not None or model.scheme == ONE_CLASS:
        return _SCALING
    if model.is_regression:
        return _REGRESSION
    if model.scheme == "dag" or model.shape == "ovo" or model.break_ties:
        return _DECIDING
    if model.expand is not None:
        return _FEATURES
    return _LINEAR if model.kernels is None and model.scheme != "ovo" else _KERNEL


def _header(model: Model, arrays: dict[str, Any], version: int) -> bytes:
    """All but the arrays, as JSON. Floats have the digits to come back to the bit."""
    dtype, labels = label_dtype(model.classes), model.classes.tolist()
    check_label_bytes(dtype, labels)
    header: dict[str, Any] = {
        "scheme": model.scheme,
        "classes": {"dtype": dtype, "values": labels},
        "arrays": [
            {
                "name": name,
                "dtype": array.dtype.newbyteorder("<").str,
                "shape": array.shape,
            }
            for name, array in arrays.items()
        ],
        "meta": _plain(model.meta),
    }
    if "kernel" in _OF_VERSION[version]:
        kernels = model.kernels
        header["kernel"] = kernels and parts.kernel_header(kernels)
    if "features" in _OF_VERSION[version]:
        expand = model.expand
        header["features"] = expand and parts.feature_header(expand)
    if model.calibration is not None:
        header["calibration"] = model.calibration.method
    if "scaling" in _OF_VERSION[version]:
        header["scaling"] = model.scaling is not None
    if "shape" in _OF_VERSION[version]:
        header |= {"shape": model.shape, "break_ties": model.break_ties}
    try:
        text = json.dumps(header, ensure_ascii=False)
    except ValueError as error:  # an integer of thousands of digits
        raise UnfitError(f"its meta is not valid JSON ({error})") from None
    return text.encode("utf-8", "surrogatepass")


def _plain(value: Any, name: str = "meta", depth: int = 0) -> Any:
    """A value of meta in the types of JSON."""
    if depth > _META_DEPTH:
        raise UnfitError(f"its meta is nested more than {_META_DEPTH} deep")
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, list | tuple):
        return [_plain(v, f"{name}[{i}]", depth + 1) for i, v in enumerate(value)]
    if isinstance(value, dict) and all(isinstance(key, str) for key in value):
        return {k: _plain(v, f"{name}[{k!r}]", depth + 1) for k, v in value.items()}
    if value is None or isinstance(value, str | bool | int | float):
        return value
    raise UnfitError(f"{name} must be a JSON value. Got {type(value).__name__} instead")


# -- reading: nothing is believed before it is checked ---------------------------------


def _decode(content: NDArray[np.uint8]) -> Model:
    """The model in the bytes of a file."""
    version, header, body = _split(content)
    fields = _fields_of(version, header)
    scheme = fields["scheme"]
    kernel, features = fields.get("kernel"), fields.get("features")
    classes = _classes(fields["classes"], scheme)
    beside: dict[str, Any] = _MOVES if fields.get("scaling") else {}
    beside = beside | _CALIBRATION if "calibration" in fields else beside
    of_model: dict[str, Any] = {"classes": classes, "scheme": scheme}
    of_model |= {name: fields[name] for name in _DECIDES if name in fields}
    if kernel is not None and features is None:
        _fields(kernel, "the kernel", **parts.KERNEL_KEYS)
        layout = _kernel_layouts(fields["arrays"]) | beside
        arrays = _arrays(fields["arrays"], body, layout)
        of_model["kernels"] = parts.expansion_of(kernel, arrays, least_counts(scheme))
    elif kernel is not None:
        raise UnfitError("it has both a kernel and features")
    else:
        layout = _WEIGHTS
        if features is not None:
            _fields(features, "the features", **parts.FEATURE_KEYS)
            layout = _WEIGHTS | parts.feature_layout(features)
        arrays = _arrays(fields["arrays"], body, layout | beside)
        W, b = arrays["w"], arrays["b"]
        if features is not None:
            of_model["expand"] = parts.features_of(features, arrays)
        if len(W) != len(b):
            raise UnfitError("its arrays differ in length")
        of_model["decisions"] = tuple(map(Decision, W, b.tolist()))
    try:
        if fields.get("scaling"):
            of_model["scaling"] = Scaling(arrays["shift"], arrays["scale"])
        if "calibration" in fields:
            found = (arrays[name] for name in _CALIBRATION)
            of_model["calibration"] = Calibration(fields["calibration"], *found)
        model = Model(**of_model, meta=fields["meta"])
    except ValueError as error:
        raise UnfitError(f"{error}".rstrip(".")) from None
    if kernel is None:
        check_linear(model, W, b)
    check_classes(model)
    return model


def _fields_of(version: int, header: Any) -> dict[str, Any]:
    """The fields of a header, which its version has."""
    kinds: dict[str, Any] = {"scheme": str, "classes": dict, "arrays": list}
    kinds["meta"] = dict
    kinds |= _OF_VERSION[version]
    fields = dict(zip(kinds, _fields(header, "the header", **kinds), strict=True))
    scheme = fields["scheme"]
    if version == _REGRESSION and scheme != REGRESSION:
        raise UnfitError(f"its version has no scheme {scheme!r}")
    if scheme in _FIRST and version < _FIRST[scheme]:
        raise UnfitError(f"its version has no scheme {scheme!r}")
    return fields


def _kernel_layouts(described: list[Any]) -> dict[str, Any]:
    """The arrays that a model with a kernel has: dense or sparse vectors."""
    names = [entry.get("name") for entry in described if isinstance(entry, dict)]
    dense = "vectors" in names
    return parts.COMMON | (parts.DENSE if dense else parts.SPARSE)


def _alike(content: NDArray[np.uint8]) -> str:
    """What a file is, where it begins like one of another program."""
    head = content[:16].tobytes()
    for program, start in HEADS.items():
        if head.startswith(start):
            name = program.lower()
            reader = f"widemargin.models.{name}.read_{name}"
            return f", but like a model of {program}, which {reader} reads"
    return ""


def _split(content: NDArray[np.uint8]) -> tuple[int, Any, NDArray[np.uint8]]:
    """Version, header and bytes of the arrays of a file that has all of them."""
    if content[: len(MAGIC)].tobytes() != MAGIC:
        raise UnfitError(f"it does not start like one{_alike(content)}")
    if len(content) < _PREFIX.size + _DIGEST:
        raise UnfitError("it ends too early")
    _, version, length = _PREFIX.unpack_from(content.data)
    if version not in _OF_VERSION:
        raise UnfitError(
            f"its version is {version}, but this widemargin reads only {_LINEAR} "
            f"to {_CALIBRATED}"
        )
    content, digest = content[:-_DIGEST], content[-_DIGEST:]
    if hashlib.sha256(content.data).digest() != digest.tobytes():
        raise UnfitError(
            "its checksum is wrong: it was cut off or changed after it was written"
        )
    start = _PREFIX.size + length
    if start > len(content) or start % _ALIGN:
        raise UnfitError(f"its header cannot have {length} bytes")
    header = _parse(content[_PREFIX.size : start].tobytes())
    return version, header, content[start:]


def _parse(text: bytes) -> Any:
    """The JSON of a header."""
    try:
        return json.loads(text.decode("utf-8", "surrogatepass"))
    except RecursionError:
        raise UnfitError("its header is nested too deep") from None
    except ValueError as error:
        raise UnfitError(f"its header is not valid JSON ({error})") from None


def _fields(value: Any, what: str, /, **kinds: Any) -> list[Any]:
    """The values of an object with exactly these keys, each of exactly its type."""
    if not isinstance(value, dict) or value.keys() != kinds.keys():
        raise UnfitError(f"{what} must be an object with the keys {', '.join(kinds)}")
    for key, kind in kinds.items():
        allowed = kind if isinstance(kind, tuple) else (kind,)
        if type(value[key]) not in allowed:
            raise UnfitError(f"{key!r} of {what} must be of type {allowed[0].__name__}")
    return [value[key] for key in kinds]


def _arrays(
    described: list[Any], body: NDArray[np.uint8], layout: dict[str, Any]
) -> dict[str, NDArray[Any]]:
    """The arrays by name. They follow one another, so that none can overlap."""
    arrays: dict[str, NDArray[Any]] = {}
    least, start = int("w" in layout), 0  # a kernel may have no vectors
    for entry in described:
        name, dtype, shape = _fields(entry, "an array", name=str, dtype=str, shape=list)
        dimensions, dtypes = layout.get(name, (0, ()))
        if name in arrays or dtype not in dtypes:
            raise UnfitError(f"it has an unexpected array {name!r} of dtype {dtype!r}")
        counts = [s for s in shape if type(s) is int and s >= least]
        if counts != shape or len(shape) != dimensions:
            raise UnfitError(f"its array {name!r} cannot have the shape {shape}")
        stop = start + np.dtype(dtype).itemsize * math.prod(shape)
        if stop > len(body):
            raise UnfitError(f"its array {name!r} would end after the file")
        array = body[start:stop].view(dtype).reshape(shape)
        arrays[name] = array.astype(array.dtype.newbyteorder("="), copy=False)
        start = stop + -stop % _ALIGN
    if start != len(body) or arrays.keys() != layout.keys():
        raise UnfitError("its arrays are not those of a model, or do not fill the file")
    return arrays


def _classes(described: dict[str, Any], scheme: str) -> NDArray[Any]:
    """The labels from their JSON; a regression has none."""
    dtype, values = _fields(described, "classes", dtype=str, values=list)
    if scheme == REGRESSION and (dtype, values) == ("float64", []):
        return np.empty(0)
    if any(type(value) is not LABELS.get(dtype) for value in values) or not values:
        raise UnfitError(f"its class labels are not values of dtype {dtype!r}")
    check_label_bytes(dtype, values)
    try:
        with np.errstate(over="ignore"):  # an infinity is a label like any other
            return np.array(values, dtype=dtype)
    except OverflowError:
        raise UnfitError(f"a class label is out of the range of {dtype}") from None
