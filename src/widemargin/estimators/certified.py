"""What a certificate is of: weights that were set by hand have none."""

import zlib
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.utils.validation import check_is_fitted

from widemargin.models.model import Model

# Facts of a model that are proved for the answer of its fit.
_PROVED = ("dual_gap", "status", "exact_gap", "increase")


def facts_of_model(estimator: Any) -> dict[str, Any]:
    """The facts that a model of an estimator as it is keeps.

    Without gap and status where weights or intercepts are not those of the fit. The
    support vectors are not looked at: that would take a part of the fit.
    """
    certified = vars(estimator).get("_certified")
    if certified in (None, checksum_of(estimator)):  # None: of a step, or an old pickle
        return dict(estimator._meta)
    return {k: v for k, v in estimator._meta.items() if k not in _PROVED}


def checksum_of(estimator: Any) -> int:
    """What tells weights and intercepts from others."""
    found, known = 0, vars(estimator)
    weights = "coef_" if "coef_" in known else "dual_coef_"
    for value in (known.get(name) for name in (weights, "intercept_", "offset_")):
        if value is not None:
            numbers = value.data if sparse.issparse(value) else np.ravel(value)
            found = zlib.crc32(np.ascontiguousarray(numbers, np.float64).data, found)
    return found


class OfWeights:
    """Base: a machine whose model has its weights of columns, which may be changed."""

    _meta: dict[str, Any]

    def _model(self, meta: dict[str, Any]) -> Model:
        """The model of the weights as they are, which it shares; nothing is copied."""
        raise NotImplementedError

    @property
    def model_(self) -> Model:
        """What `widemargin.save_model` writes: what decides, or predicts."""
        check_is_fitted(self)
        return self._model(facts_of_model(self))

    @property
    def _predictor(self) -> Model:
        """What predicts, whether or not the certificate is of these weights."""
        check_is_fitted(self)
        return self._model(self._meta)
