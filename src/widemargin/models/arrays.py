"""The parts of a model file beside a header: what they are, and checks of what is read.

A kernel has support vectors and coefficients; features have random frequencies, or
none for monomials.
"""

import math
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from widemargin.data.matrix import as_matrix
from widemargin.features.maps import FourierFeatures, SquareFeatures
from widemargin.kernels.expansion import Expansion
from widemargin.kernels.kernel import Kernel
from widemargin.kernels.table import KERNELS

Arrays = dict[str, NDArray[Any]]
Features = FourierFeatures | SquareFeatures

_FLOATS, _INTEGERS = ("<f8",), ("<i8",)
_NUMBERS = ("<f8", "<f4", "<i8", "<i4", "<i2", "|i1", "<u8", "<u4", "<u2", "|u1")
# Dimensions and dtypes of the arrays of all models, and of vectors, dense or CSR.
COMMON = {"weights": (2, _FLOATS), "b": (1, _FLOATS), "counts": (1, _INTEGERS)}
DENSE = {"vectors": (2, _NUMBERS)}
SPARSE = {"data": (1, _NUMBERS), "indices": (1, _INTEGERS), "indptr": (1, _INTEGERS)}
KERNEL_KEYS = {
    "name": str,
    "gamma": float,
    "degree": int,
    "coef0": float,
    "columns": int,
}
# Of both kinds of features: a number that a kind does not have is 0.
FEATURE_KEYS = {
    "name": str,
    "dtype": str,
    "gamma": float,
    "coef0": float,
    "columns": int,
}
_DTYPES = ("<f8", "<f4")
FREQUENCIES = {"frequencies": (2, _DTYPES)}


class UnfitError(Exception):
    """Why a model or a file is refused: the rest of a sentence."""


def kernel_header(kernels: Expansion) -> dict[str, Any]:
    """What the header of a file says about the kernel."""
    kernel = kernels.kernel
    if not isinstance(kernel.name, str):
        raise UnfitError(
            "its kernel is a callable, which no file can hold. Keep the model with "
            "joblib, or use a kernel with a name"
        )
    return {
        "name": kernel.name,
        "gamma": float(kernel.gamma),
        "degree": int(kernel.degree),
        "coef0": float(kernel.coef0),
        "columns": kernels.n_features,
    }


def kernel_arrays(kernels: Expansion) -> Arrays:
    """The arrays of a file, in the dtypes that it holds."""
    vectors: Any = kernels.vectors
    arrays: Arrays = {
        "weights": _as(kernels.weights, "<f8"),
        "b": _as(kernels.b, "<f8"),
        "counts": _as(kernels.counts, "<i8"),
    }
    if sparse.issparse(vectors):
        arrays["data"] = _little(vectors.data)
        arrays["indices"] = _as(vectors.indices, "<i8")
        arrays["indptr"] = _as(vectors.indptr, "<i8")
    else:
        arrays["vectors"] = _little(vectors)
    return arrays


def expansion_of(
    described: dict[str, Any], arrays: Arrays, least: int = 2
) -> Expansion:
    """The decisions in a file; nothing of it is believed before it is checked."""
    numbers = {k: v for k, v in described.items() if k != "columns"}
    if numbers["name"] not in KERNELS:
        _unfit(f"its kernel {numbers['name']!r} is unknown")
    try:
        kernel = Kernel(**numbers)
    except (TypeError, ValueError) as error:
        _unfit(f"its kernel is none ({error})")
    vectors: Any = arrays.get("vectors")
    if vectors is None:
        vectors = _csr(arrays, arrays["weights"].shape[1], described["columns"])
    if vectors.shape[1] != described["columns"] or vectors.shape[1] < 1:
        _unfit("its support vectors have another number of columns than it says")
    found = Expansion(kernel, vectors, arrays["weights"], arrays["b"], arrays["counts"])
    check_expansion(found, least)
    return found


def check_expansion(kernels: Expansion, least: int = 2) -> None:
    """Refuse what no training makes; ``least``: how many classes there are at least."""
    counts, weights, vectors = kernels.counts, kernels.weights, kernels.vectors
    if (counts < 0).any() or len(counts) < least:
        _unfit("its numbers of support vectors are none")
    c, k = len(counts), len(kernels.b)
    pairs = c > 2 and k == c * (c - 1) // 2  # a row less than classes, or one each
    if not (len(weights) == k in (1, c) or (pairs and len(weights) in (c - 1, k))):
        _unfit(f"its {len(weights)} row(s) of coefficients do not fit {k} decision(s)")
    if not weights.shape[1] == vectors.shape[0] == counts.sum():
        _unfit("its support vectors and coefficients differ in number")
    entries = vectors.data if sparse.issparse(vectors) else vectors
    finite = np.isfinite(entries).all() and np.isfinite(weights).all()
    if not (finite and np.isfinite(kernels.b).all()):
        _unfit("its coefficients or support vectors hold NaN or an infinity")


def feature_header(expand: Features) -> dict[str, Any]:
    """What the header of a file says about the features."""
    square = isinstance(expand, SquareFeatures)
    return {
        "name": "polynomial" if square else "fourier",
        "dtype": np.dtype(expand.dtype).newbyteorder("<").str,
        "gamma": expand.gamma if isinstance(expand, SquareFeatures) else 0.0,
        "coef0": expand.coef0 if isinstance(expand, SquareFeatures) else 0.0,
        "columns": expand.n_features,
    }


def feature_arrays(expand: Features) -> dict[str, NDArray[Any]]:
    """The arrays of a file, beside the weights."""
    if isinstance(expand, SquareFeatures):
        return {}
    return {"frequencies": np.ascontiguousarray(expand.frequencies)}


def feature_layout(described: dict[str, Any]) -> dict[str, Any]:
    """The arrays that a file has beside the weights."""
    return FREQUENCIES if described["name"] == "fourier" else {}


def features_of(described: dict[str, Any], arrays: dict[str, Any]) -> Features:
    """The features in a file; nothing of it is believed before it is checked."""
    name, dtype, gamma, coef0, columns = (described[key] for key in FEATURE_KEYS)
    if name not in ("fourier", "polynomial") or dtype not in _DTYPES or columns < 1:
        raise UnfitError(f"its features {name!r} of {columns} columns are unknown")
    expand: Features
    if name == "fourier":
        expand = FourierFeatures(arrays["frequencies"])
        known = np.isfinite(expand.frequencies).all() and not (gamma or coef0)
        known = known and arrays["frequencies"].dtype == np.dtype(dtype)
    else:
        expand = SquareFeatures(
            gamma, coef0, columns, np.dtype(dtype).newbyteorder("=")
        )
        known = 0 < gamma < math.inf and 0 <= coef0 < math.inf
    if not known or expand.n_features != columns:
        raise UnfitError("its features have other numbers than it says")
    if arrays["w"].shape[1] != expand.rank or expand.rank < 1:
        raise UnfitError("its weights are not those of its features")
    return expand


def _csr(arrays: Arrays, m: int, n: int) -> Any:
    """Sparse vectors, whose indices the core follows without looking where to."""
    data, indices, indptr = (arrays[name] for name in SPARSE)
    if n < 1 or (indices.size and not 0 <= indices.min() <= indices.max() < n):
        _unfit("its support vectors have entries outside of them")
    rows = sparse.csr_array((m, n), dtype=data.dtype)
    small = max(n, len(data)) <= np.iinfo(np.int32).max
    kind = np.int32 if small else np.int64
    rows.data, rows.indices = data, indices.astype(kind)
    rows.indptr = indptr.astype(kind)
    try:
        return rows if m == 0 else as_matrix(rows)
    except ValueError as error:
        _unfit(f"its support vectors are no matrix ({error})")


def _unfit(reason: str) -> NoReturn:
    raise UnfitError(reason)


def _as(array: Any, dtype: str) -> NDArray[Any]:
    return np.ascontiguousarray(array, dtype=dtype)


def _little(array: Any) -> NDArray[Any]:
    """Numbers as they are, little-endian and row by row."""
    array = np.ascontiguousarray(array)
    dtype = array.dtype.newbyteorder("<")
    little: NDArray[Any] = array.astype(
        dtype if dtype.str in _NUMBERS else "<f8", copy=False
    )
    return little
