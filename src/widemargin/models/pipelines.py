"""Pipelines of scikit-learn as models: scalers before an estimator of ours."""

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from widemargin.features.scaling import Scaling, Vector
from widemargin.models.model import Model
from widemargin.parameters import Checker


def of_pipeline(scalers: Sequence[Any], model: Model, caller: str) -> Model:
    """The model that predicts what the scalers and then the model do.

    Raises
    ------
    ValueError for a step that is no scaler of the table, is not fitted, or clips.
    """
    check, names = Checker(caller), None
    for scaler in reversed(scalers):
        if scaler is None or scaler == "passthrough":
            continue
        model = model.scaled(_scaling_of(scaler, model.n_features, check))
        names = getattr(scaler, "feature_names_in_", names)
    if names is None:
        return model
    meta = model.meta | {"feature_names": [str(name) for name in names]}
    return dataclasses.replace(model, meta=meta)


def _scaling_of(step: Any, n: int, check: Checker) -> Scaling:
    """The map of a step of a pipeline."""
    kind = type(step).__name__
    if kind not in _READERS or not type(step).__module__.startswith("sklearn."):
        expected = (
            f"have no other steps before the estimator than {', '.join(_READERS)}"
        )
        check.refuse_part("model", expected, f"a step {kind}")
    if not hasattr(step, "n_features_in_"):
        check.refuse_part("model", "have fitted steps", f"a {kind} that is not")
    if getattr(step, "clip", False):
        check.refuse_part("model", "have no step with clip=True", f"such a {kind}")
    shift, scale = _READERS[kind](step)
    zero, one = np.zeros(n), np.ones(n)
    shift = zero if shift is None else np.array(shift, np.float64)
    return Scaling(shift, one if scale is None else np.array(scale, np.float64))


def _standard(step: Any) -> tuple[Vector | None, Vector | None]:
    return step.mean_ if step.with_mean else None, step.scale_


def _minmax(step: Any) -> tuple[Vector | None, Vector | None]:
    """Its map is x scale_ + min_."""
    return -step.min_ / step.scale_, 1.0 / step.scale_


def _maxabs(step: Any) -> tuple[Vector | None, Vector | None]:
    return None, step.scale_


_READERS: dict[str, Callable[[Any], tuple[Vector | None, Vector | None]]] = {
    "StandardScaler": _standard,
    "MinMaxScaler": _minmax,
    "MaxAbsScaler": _maxabs,
}
