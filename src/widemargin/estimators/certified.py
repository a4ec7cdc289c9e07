"""What a certificate is of: weights that were set by hand have none."""

import zlib
from typing import Any

import numpy as np

# Facts of a model that are proved for the answer of its fit.
_PROVED = ("dual_gap", "status", "exact_gap", "increase")


def facts_of_model(estimator: Any) -> dict[str, Any]:
    """The facts that a model of an estimator as it is keeps.

    Without gap and status where ``coef_`` or ``intercept_`` are not those of the fit.
    """
    certified = vars(estimator).get("_certified")
    if certified in (None, checksum_of(estimator)):  # None: of a step, or an old pickle
        return dict(estimator._meta)
    return {k: v for k, v in estimator._meta.items() if k not in _PROVED}


def checksum_of(estimator: Any) -> int:
    """What tells weights of columns and intercepts from others."""
    found = 0
    for name in ("coef_", "intercept_"):
        value = vars(estimator).get(name)
        if value is not None:
            array = np.ascontiguousarray(np.ravel(value), np.float64)
            found = zlib.crc32(array.data, found)
    return found
