"""Models as ONNX graphs, for runtimes in other languages and on other machines."""

import itertools
from typing import Any

import numpy as np
from numpy.typing import NDArray

from widemargin.features.maps import FourierFeatures, SquareFeatures
from widemargin.kernels.expansion import Expansion, pair_weights
from widemargin.kernels.table import KERNELS
from widemargin.models.calibration import Calibration
from widemargin.models.model import Model
from widemargin.models.schemes import ONE_CLASS, REGRESSION, n_decisions
from widemargin.models.writable import as_linear, as_model
from widemargin.numerics import linalg
from widemargin.system.files import Path, missing_extra, replacing

# Operator set 13 is the oldest with these operators in their present form, and IR 7
# goes with it: ONNX Runtime reads both since 1.7. Types: 7 is int64, 11 is double.
_MODEL = """
<ir_version: 7, opset_import: ["": 13], producer_name: "widemargin">
decide (float[m, {n}] X) => ({label}[m] label, double[{scores}] scores{more})
{{
    {columns}
    {features}
    {decide}
    {named}
    {probable}
}}
"""
_COLUMNS = "X64 = Cast <to = 11> (X)"
# With the rounding of `Scaling.map` for float32 rows.
_SCALED = """raw = Cast <to = 11> (X)
    less = Sub (raw, column_shift)
    less32 = Cast <to = 1> (less)
    moved = Cast <to = 11> (less32)
    ratio = Div (moved, column_scale)
    ratio32 = Cast <to = 1> (ratio)
    X64 = Cast <to = 11> (ratio32)"""
_NAMED = "label = Gather (classes, winner)"
_ONE = """
    columns = Gemm (features, W, b)
    second = Constant <value = int64[1] {1}> ()
    scores = Squeeze (columns, second)"""
_SIDE = """
    zero = Constant <value = double {0.0}> ()
    positive = GreaterOrEqual (scores, zero)
    winner = Cast <to = 7> (positive)"""
_DECIDE = {
    "binary": _ONE + _SIDE,
    ONE_CLASS: _ONE + _SIDE,
    REGRESSION: _ONE,
    "ovr": """
    scores = Gemm (features, W, b)
    winner = ArgMax <axis = 1, keepdims = 0> (scores)""",
}
# A number p for each column of scores, as `Calibration`. "isotonic": a sum of rises,
# each times the share of its interval that a value has passed.
_CURVES = {
    "sigmoid": """
    sloping = Mul ({scores}, slopes)
    exponent = Sub (offsets, sloping)
    p = Sigmoid (exponent)""",
    "isotonic": """
    spread = Gather <axis = 1> ({scores}, column_of)
    beyond = Sub (spread, starts)
    passed = Div (beyond, lengths)
    none = Constant <value = double {{0.0}}> ()
    all = Constant <value = double {{1.0}}> ()
    share = Clip (passed, none, all)
    p = Gemm (share, rises, least)""",
}
_OF_TWO = """
    certain = Constant <value = double {1.0}> ()
    other = Sub (certain, p)
    probabilities = Concat <axis = 1> (other, p)"""
_OF_MANY = """
    across = Constant <value = int64[1] {1}> ()
    impossible = Constant <value = double {0.0}> ()
    total = ReduceSum <keepdims = 1> (p, across)
    divides = Greater (total, impossible)
    undivided = Not (divides)
    added = Cast <to = 11> (undivided)
    weights = Add (p, added)
    sum = ReduceSum <keepdims = 1> (weights, across)
    probabilities = Div (weights, sum)"""
# As `votes`: votes, and a part that says how clear they are.
_VOTES = """
    pairs = Gemm (features, W, b)
    zero = Constant <value = double {0.0}> ()
    one = Constant <value = double {1.0}> ()
    three = Constant <value = double {3.0}> ()
    positive = GreaterOrEqual (pairs, zero)
    first = Cast <to = 11> (positive)
    votes = Gemm (first, sides, seconds)
    sums = MatMul (pairs, sides)
    sizes = Abs (sums)
    larger = Add (sizes, one)
    thirds = Mul (larger, three)
    part = Div (sums, thirds)"""
# As `drops`: how many steps of a walk each class outlives. `{k}` counts the steps.
_WALK = """
    any = ArgMax <axis = 1, keepdims = 1> (pairs)
    first0 = Mul (any, no_class)
    last0 = Add (first0, last_class)
    lived0 = Mul (votes, zero)"""
_STEP = """
    line{k} = Mul (first{k}, n_classes)
    place{k} = Add (line{k}, last{k})
    pair{k} = Gather (pair_of, place{k})
    value{k} = GatherElements <axis = 1> (pairs, pair{k})
    speaks{k} = GreaterOrEqual (value{k}, zero)
    earlier{k} = Sub (last{k}, one_class)
    later{k} = Add (first{k}, one_class)
    last{next} = Where (speaks{k}, earlier{k}, last{k})
    first{next} = Where (speaks{k}, first{k}, later{k})
    behind{k} = GreaterOrEqual (all_classes, first{next})
    before{k} = LessOrEqual (all_classes, last{next})
    lives{k} = And (behind{k}, before{k})
    step{k} = Cast <to = 11> (lives{k})
    lived{next} = Add (lived{k}, step{k})"""
# What a kernel sums over the columns, and what becomes of the sums, in the words of the
# table of kernels. Other kernels have no form in ONNX.
_SUMS = {
    "product": """
    found = MatMul (X64, Z)""",
    "square": """
    products = MatMul (X64, Z)
    minus = Constant <value = double {-2.0}> ()
    nothing = Constant <value = double {0.0}> ()
    twice = Mul (products, minus)
    squares = ReduceSumSquare <axes = [1], keepdims = 1> (X64)
    both = Add (squares, norms)
    difference = Add (both, twice)
    found = Max (difference, nothing)""",
}
_VALUES = {
    "itself": """
    features = Identity (found)""",
    "power": """
    shifted = Add (found, coef0)
    features = Pow (shifted, degree)""",
    "tangent": """
    shifted = Add (found, coef0)
    features = Tanh (shifted)""",
    "decay": """
    scaled = Mul (found, gamma)
    exponents = Neg (scaled)
    features = Exp (exponents)""",
}
_KERNELS = {row.name: row for row in KERNELS.values() if row.sums in _SUMS}
_FEATURES = {
    "": "features = Identity (X64)",
    # ONNX Runtime has no cosine of doubles.
    "fourier": """
    products = MatMul (X64, Z)
    angles = Add (products, shift)
    features = Sin (angles)""",
    "polynomial": """
    left = Gather <axis = 1> (X64, I)
    right = Gather <axis = 1> (X64, J)
    products = Mul (left, right)
    features = Concat <axis = 1> (products, X64)""",
} | {name: _SUMS[row.sums] + _VALUES[row.value] for name, row in _KERNELS.items()}
# No file of ONNX can be larger.
_MOST_BYTES = 2**31 - 2**16
_LABELS = {
    "b": (np.bool_, "bool"),
    "i": (np.int64, "int64"),
    "u": (np.uint64, "uint64"),
    "f": (np.float64, "double"),
    "U": (np.object_, "string"),
    "O": (np.object_, "string"),
}


def write_onnx(model: Any, path: Path) -> None:
    """Write a model as an ONNX graph of standard operators.

    The graph has the input ``X``, float32 (m, n), and the outputs ``label``, (m,), and
    ``scores``, float64, (m,) for one decision, (m, c) or (m, pairs) for more: what
    `Model.predict` and `Model.decision_function` return for the same float32 rows.
    Models that have probabilities have a third output ``probabilities``, float64,
    (m, c), as `Model.predict_proba`.

    Parameters
    ----------
    model : Model, fitted estimator or Pipeline, as of `save_model`
        Integer labels come out as int64 (uint64 if one needs it), floats as float64,
        bool and strings as they are.
    path : str or path-like
        An existing file is replaced as a whole, or stays as it is after an error.

    Raises
    ------
    ImportError
        The package onnx is missing.
    ValueError
        Coefficients that are not finite; a kernel without a form in ONNX ("laplacian",
        "chi2", a callable), or support vectors of more than 2 GiB as float64.
    TypeError
        ``model`` is no model.
    OSError
        The file cannot be written.

    Notes
    -----
    X becomes float64 before the product, so that rounding decides no label. That is why
    the operators LinearClassifier and SVMClassifier of ai.onnx.ml are not used: their
    numbers are float32. With a kernel the runtime holds its values for all rows of X
    and all support vectors, 8 bytes each.
    """
    try:
        from onnx import numpy_helper, parser
    except ImportError:
        raise missing_extra("an ONNX model", "onnx") from None
    model = as_model(model, "write_onnx")
    constants = _constants(model)
    if sum(array.nbytes for array in constants.values()) > _MOST_BYTES:
        raise ValueError("An ONNX model can have at most 2 GiB. Got more as float64.")
    dtype, label = _label_type(model.classes)
    scheme, c = model.scheme, len(model.classes)
    width = n_decisions(scheme, c) if model.shape == "ovo" else c
    text = _MODEL.format(
        n=model.n_features,
        label=label,
        scores="m" if model.is_single else f"m, {width}",
        features=_FEATURES[_kind(model)],
        decide=_decide(model),
        columns=_COLUMNS if model.scaling is None else _SCALED,
        named="label = Identity (scores)" if model.is_regression else _NAMED,
        more=f", double[m, {c}] probabilities" if model.calibration else "",
        probable=_probable(model),
    )
    if not model.is_regression:
        constants["classes"] = model.classes.astype(dtype)
    if (scaling := model.scaling) is not None:
        constants |= {
            "column_shift": scaling.shift,
            "column_scale": scaling.scale,
        }
    if model.calibration is not None:
        constants |= _calibration_constants(model.calibration)
    if model.is_paired:
        constants |= _sides(c)
    if scheme == "dag":
        constants |= _steps(c)
    graph = parser.parse_model(text)
    graph.graph.initializer.extend(
        numpy_helper.from_array(array, name) for name, array in constants.items()
    )
    with replacing(path) as file:
        file.write(graph.SerializeToString())


def _decide(model: Model) -> str:
    """The part of the graph that makes scores and the winner's number of decisions."""
    if not model.is_paired:
        return _DECIDE[model.scheme]
    text, counted = _VOTES, "votes"
    if model.scheme == "dag":
        steps = len(model.classes) - 1
        text += _WALK + "".join(_STEP.format(k=k, next=k + 1) for k in range(steps))
        counted = f"lived{steps}"
    shown = f"Add ({counted}, part)" if model.shape == "ovr" else "Identity (pairs)"
    winner = "scores" if model.break_ties else counted
    text += f"""
    scores = {shown}
    winner = ArgMax <axis = 1, keepdims = 0> ({winner})"""
    return text


def _probable(model: Model) -> str:
    """The part of the graph that makes probabilities of scores, if there is one."""
    if model.calibration is None:
        return ""
    scores = "columns" if model.is_single else "scores"
    curves = _CURVES[model.calibration.method].format(scores=scores)
    return curves + (_OF_TWO if model.is_single else _OF_MANY)


def _kind(model: Model) -> str:
    """What the features of a model are made by."""
    if model.kernels is not None:
        return str(model.kernels.kernel.name)
    if model.expand is None:
        return ""
    return "fourier" if isinstance(model.expand, FourierFeatures) else "polynomial"


def _constants(model: Model) -> dict[str, NDArray[Any]]:
    """The numbers of the decisions, W (l, k) and b (k,), and of the kernel."""
    if model.kernels is not None:
        return _kernel_constants(model.kernels)
    if model.expand is not None:
        W = np.column_stack([decision.w for decision in model.decisions])
        b = np.array([decision.b for decision in model.decisions])
        if isinstance(model.expand, FourierFeatures):
            return _fourier_constants(model.expand, W, b)
        return _polynomial_constants(model.expand, W, b)
    _, W, b = as_linear(model, "write_onnx")
    return {"W": np.ascontiguousarray(W.T), "b": b}


def _fourier_constants(
    expand: FourierFeatures, W: NDArray[Any], b: NDArray[Any]
) -> dict[str, NDArray[Any]]:
    """A cosine is the sine of pi / 2 more."""
    half = expand.rank // 2
    frequencies = expand.frequencies.astype(np.float64)
    return {
        "Z": np.hstack([frequencies, frequencies]),
        "shift": np.repeat([np.pi / 2.0, 0.0], half),
        "W": W / np.sqrt(half),
        "b": b,
    }


def _polynomial_constants(
    expand: SquareFeatures, W: NDArray[Any], b: NDArray[Any]
) -> dict[str, NDArray[Any]]:
    """Weights of the products x_i x_j and of the x_i; the constant is added to b."""
    n, gamma, c = expand.n_features, expand.gamma, expand.coef0
    first, second = np.triu_indices(n)
    scale = gamma * np.where(first == second, 1.0, np.sqrt(2.0))
    squares, linear = W[: len(scale)], np.zeros((n, W.shape[1]))
    if c > 0:
        linear = np.sqrt(2.0 * c * gamma) * W[len(scale) : -1]
        b = b + c * W[-1]
    weights = np.vstack([scale[:, np.newaxis] * squares, linear])
    return {"I": first, "J": second, "W": weights, "b": b}


def _calibration_constants(calibration: Calibration) -> dict[str, NDArray[Any]]:
    """The numbers of the curves, each as long as its intervals are many."""
    columns = calibration.columns
    if calibration.method == "sigmoid":
        return {"slopes": calibration.first, "offsets": -calibration.second}
    # A curve of one point gets an interval without rise.
    columns = [
        (np.append(f, np.nextafter(f[-1], np.inf)), np.append(p, p[-1]))
        for f, p in columns
    ]
    counts = [len(f) - 1 for f, _ in columns]
    column_of = np.repeat(np.arange(len(columns)), counts)
    rises = np.zeros((sum(counts), len(columns)))
    rises[np.arange(len(rises)), column_of] = np.hstack(
        [np.diff(p) for _, p in columns]
    )
    return {
        "column_of": column_of,
        "starts": np.hstack([f[:-1] for f, _ in columns]),
        "lengths": np.hstack([np.diff(f) for f, _ in columns]),
        "rises": rises,
        "least": np.array([p[0] for _, p in columns]),
    }


def _kernel_constants(kernels: Expansion) -> dict[str, NDArray[Any]]:
    kernel, l = kernels.kernel, kernels.vectors.shape[0]  # noqa: E741
    row = kernel.named
    if row is None or row.name not in _KERNELS:
        name = kernel.name if isinstance(kernel.name, str) else "a callable"
        raise ValueError(
            f"The kernel of an ONNX model must be one of {', '.join(_KERNELS)}. "
            f"Got {name} instead."
        )
    if 8 * l * (kernels.n_features + len(kernels.b)) > _MOST_BYTES:
        raise ValueError(
            "An ONNX model can have at most 2 GiB. Got more as float64: "
            f"{l:,} support vectors of {kernels.n_features:,} columns."
        )
    weights = kernels.weights
    if kernels.is_paired:
        weights = pair_weights(weights, kernels.counts)
    Z = linalg.dense(kernels.vectors)
    constants = {"W": np.ascontiguousarray(weights.T), "b": kernels.b}
    if row.sums == "square":
        constants["norms"] = np.sum(Z * Z, axis=1)[np.newaxis]
    if row.value == "decay":
        constants["gamma"] = np.array(float(kernel.gamma))
    if row.value in ("power", "tangent"):
        # Not after the product: ONNX Runtime would make it a float32 of that.
        Z = Z * float(kernel.gamma)
        constants["coef0"] = np.array(float(kernel.coef0))
    if row.value == "power":
        constants["degree"] = np.array(float(kernel.degree))
    constants["Z"] = np.ascontiguousarray(Z.T)
    return constants


def _sides(c: int) -> dict[str, NDArray[Any]]:
    """For pairs i < j of c classes: +1 at i and -1 at j; how often j is each class."""
    pairs = np.array(list(itertools.combinations(range(c), 2)))
    sides = np.zeros((len(pairs), c))
    sides[np.arange(len(pairs)), pairs[:, 0]] = 1.0
    sides[np.arange(len(pairs)), pairs[:, 1]] = -1.0
    seconds = np.bincount(pairs[:, 1], minlength=c).astype(np.float64)
    return {"sides": sides, "seconds": seconds}


def _steps(c: int) -> dict[str, NDArray[Any]]:
    """Numbers of classes, and of the pairs of them."""
    pair_of = np.zeros((c, c), np.int64)
    pair_of[np.triu_indices(c, 1)] = np.arange(c * (c - 1) // 2)
    numbers = {"no_class": 0, "one_class": 1, "last_class": c - 1, "n_classes": c}
    return {name: np.array(number) for name, number in numbers.items()} | {
        "all_classes": np.arange(c),
        "pair_of": pair_of.ravel(),
    }


def _label_type(classes: NDArray[Any]) -> tuple[type[np.generic], str]:
    """The widest dtype of the labels' kind, and its name in ONNX."""
    kind = classes.dtype.kind
    if kind == "u" and classes.max() <= np.iinfo(np.int64).max:
        kind = "i"
    return _LABELS[kind]
