"""Kernels of lists of any objects (strings, graphs): their values take X's place."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from widemargin.arrays import Index
from widemargin.data.rows import Rows
from widemargin.kernels.kernel import Kernel

# The kernel and the list of a fit: what it is called with to predict.
OBJECTS = "_objects"


def are_given(estimator: Any, X: Any) -> bool:
    """Whether a callable kernel gets a list of objects here, and no matrix."""
    return callable(estimator.kernel) and _is_list_of_objects(X)


def were_fitted(estimator: Any) -> bool:
    """Whether the last fit was of a list of objects."""
    return OBJECTS in vars(estimator)


def fit_values(estimator: Any, X: Sequence[Any]) -> Any:
    """Kernel values of all pairs of objects, (m, m); the estimator keeps the list."""
    kernel, found = Kernel(estimator.kernel), list(X)
    vars(estimator)[OBJECTS] = kernel, found
    return kernel.called(found, found)


def values(estimator: Any, X: Sequence[Any]) -> Any:
    """Kernel values of objects with those of the fit, (k, m)."""
    kernel, fitted = vars(estimator)[OBJECTS]
    return kernel.called(list(X), fitted)


def chosen(estimator: Any, index: Index) -> list[Any]:
    """Objects of the fit, by their numbers."""
    fitted = vars(estimator)[OBJECTS][1]
    return [fitted[i] for i in index]


def _is_list_of_objects(X: Any) -> bool:
    """Whether X is a list, or a column, of what is no row of numbers."""
    if isinstance(X, Rows | str):
        return False
    if hasattr(X, "dtype") and hasattr(X, "ndim"):
        return bool(X.ndim == 1 and getattr(X.dtype, "kind", "O") not in "biufc")
    if not isinstance(X, Sequence) or not len(X):
        return False
    if any(isinstance(one, str | bytes) for one in X):
        return True
    try:
        np.asarray(X, dtype=np.float64)
    except (TypeError, ValueError):
        return True
    return False
