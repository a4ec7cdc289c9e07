"""The feature part of a model file: random frequencies, or monomials of a kernel."""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from widemargin.features.maps import FourierFeatures, SquareFeatures
from widemargin.models.arrays import UnfitError

Features = FourierFeatures | SquareFeatures

# Of both kinds: a number that a kind does not have is 0.
KEYS = {"name": str, "dtype": str, "gamma": float, "coef0": float, "columns": int}
_DTYPES = ("<f8", "<f4")
FREQUENCIES = {"frequencies": (2, _DTYPES)}


def header_of(expand: Features) -> dict[str, Any]:
    """What the header of a file says about the features."""
    square = isinstance(expand, SquareFeatures)
    return {
        "name": "polynomial" if square else "fourier",
        "dtype": np.dtype(expand.dtype).newbyteorder("<").str,
        "gamma": expand.gamma if isinstance(expand, SquareFeatures) else 0.0,
        "coef0": expand.coef0 if isinstance(expand, SquareFeatures) else 0.0,
        "columns": expand.n_features,
    }


def arrays_of(expand: Features) -> dict[str, NDArray[Any]]:
    """The arrays of a file, beside the weights."""
    if isinstance(expand, SquareFeatures):
        return {}
    return {"frequencies": np.ascontiguousarray(expand.frequencies)}


def layout_of(described: dict[str, Any]) -> dict[str, Any]:
    """The arrays that a file has beside the weights."""
    return FREQUENCIES if described["name"] == "fourier" else {}


def features_of(described: dict[str, Any], arrays: dict[str, Any]) -> Features:
    """The features in a file; nothing of it is believed before it is checked."""
    name, dtype, gamma, coef0, columns = (described[key] for key in KEYS)
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
