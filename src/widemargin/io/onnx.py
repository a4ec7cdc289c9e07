"""Models as ONNX graphs, for runtimes in other languages and on other machines."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from widemargin.files import Path, missing_extra, replacing
from widemargin.io.model_file import as_linear

# Operator set 13 is the oldest with these operators in their present form, and IR 7
# goes with it: ONNX Runtime reads both since 1.7. Types: 7 is int64, 11 is double.
_MODEL = """
<ir_version: 7, opset_import: ["": 13], producer_name: "widemargin">
linear (float[m, {n}] X) => ({label}[m] label, double[{scores}] scores)
{{
    X64 = Cast <to = 11> (X)
    {decide}
    label = Gather (classes, winner)
}}
"""
_DECIDE = {
    "binary": """
    columns = Gemm (X64, W, b)
    second = Constant <value = int64[1] {1}> ()
    scores = Squeeze (columns, second)
    zero = Constant <value = double {0.0}> ()
    positive = GreaterOrEqual (scores, zero)
    winner = Cast <to = 7> (positive)""",
    "ovr": """
    scores = Gemm (X64, W, b)
    winner = ArgMax <axis = 1, keepdims = 0> (scores)""",
}
_LABELS = {
    "b": (np.bool_, "bool"),
    "i": (np.int64, "int64"),
    "u": (np.uint64, "uint64"),
    "f": (np.float64, "double"),
    "U": (np.object_, "string"),
    "O": (np.object_, "string"),
}


def write_onnx(model: Any, path: Path) -> None:
    """Write a linear model as an ONNX graph of standard operators.

    The graph has the input ``X``, float32 (m, n), and the outputs ``label``, (m,), and
    ``scores``, float64, (m,) for two classes and (m, c) for more: what `Model.predict`
    and `Model.decision_function` return for the same float32 rows.

    Parameters
    ----------
    model : Model or fitted estimator
        Integer labels come out as int64 (uint64 if one needs it), floats as float64,
        bool and strings as such.
    path : str or path-like
        An existing file is replaced as a whole, or stays as it is after an error.

    Raises
    ------
    ImportError
        The package onnx is missing.
    ValueError
        Coefficients that are not finite.
    TypeError
        ``model`` is no model.
    OSError
        The file cannot be written.

    Notes
    -----
    X becomes float64 before the product, so that rounding decides no label. That is why
    the operator LinearClassifier of ai.onnx.ml is not used: its weights are float32.
    """
    try:
        from onnx import numpy_helper, parser
    except ImportError:
        raise missing_extra("an ONNX model", "onnx") from None
    model, W, b = as_linear(model, "write_onnx")
    dtype, label = _label_type(model.classes)
    text = _MODEL.format(
        n=model.n_features,
        label=label,
        scores="m" if model.scheme == "binary" else f"m, {len(b)}",
        decide=_DECIDE[model.scheme],
    )
    classes = model.classes.astype(dtype)
    constants = {"W": np.ascontiguousarray(W.T), "b": b, "classes": classes}
    graph = parser.parse_model(text)
    graph.graph.initializer.extend(
        numpy_helper.from_array(array, name) for name, array in constants.items()
    )
    with replacing(path) as file:
        file.write(graph.SerializeToString())


def _label_type(classes: NDArray[Any]) -> tuple[type[np.generic], str]:
    """The widest dtype of the labels' kind, and its name in ONNX."""
    kind = classes.dtype.kind
    if kind == "u" and classes.max() <= np.iinfo(np.int64).max:
        kind = "i"
    return _LABELS[kind]
