"""Pipelines of scikit-learn as models: scalers before an estimator of ours."""

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

import numpy as np

from widemargin.arrays import Vector
from widemargin.data.words import of_word
from widemargin.features.scaling import (
    Scaling,
)
from widemargin.models.model import Model
from widemargin.parameters import Checker


def of_pipeline(scalers: Sequence[Any], model: Model, caller: str) -> Model:
    """The model that predicts what the scalers and then the model do.

    The first step may be a ColumnTransformer of scalers and encoders of words: the
    model then has a feature for each word, `column=word`.

    Raises
    ------
    ValueError for a step that is no scaler of the table, is not fitted, or clips.
    """
    check, names = Checker(caller), None
    for place, scaler in reversed(list(enumerate(scalers))):
        if scaler is None or scaler == "passthrough":
            continue
        if place == 0 and type(scaler).__name__ == "ColumnTransformer":
            names, scaling = of_columns(scaler, model.n_features, check)
            model = model.scaled(scaling)
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
        _refuse_step(step, check)
    if not hasattr(step, "n_features_in_"):
        check.refuse_part("model", "have fitted steps", f"a {kind} that is not")
    if getattr(step, "clip", False):
        check.refuse_part(
            "model", "have no step with clip=True", f"a {kind} with clip=True"
        )
    shift, scale = _READERS[kind](step)
    zero, one = np.zeros(n), np.ones(n)
    shift = zero if shift is None else np.array(shift, np.float64)
    return Scaling(shift, one if scale is None else np.array(scale, np.float64))


def _refuse_step(step: Any, check: Checker) -> NoReturn:
    """Refuse a step that no model holds; says what to do instead."""
    parts = [type(part).__name__ for _, part in getattr(step, "steps", ())]
    kind, inside = type(step).__name__, f" ({', '.join(parts)})" if parts else ""
    hint = " Save pipeline[-1] alone, for rows of pipeline[:-1].transform(X)"
    if any("Imputer" in name for name in (kind, *parts)):
        hint += ", or fill what is missing in the table, before the pipeline"
    expected = f"have no other steps before the estimator than {', '.join(_READERS)}"
    check.refuse_part("model", expected, f"a step {kind}{inside}", f"{hint}.")


def of_columns(step: Any, n: int, check: Checker) -> tuple[list[str], Scaling]:
    """Names of the n features that a ColumnTransformer makes, and their scaling."""
    if not hasattr(step, "transformers_"):
        check.refuse_part(
            "model", "have fitted steps", "a ColumnTransformer that is not"
        )
    if not hasattr(step, "feature_names_in_"):
        expected = "be fitted on a table with names, where it has a ColumnTransformer"
        check.refuse_part("model", expected, "one without names")
    if step.transformer_weights:
        expected = "have no ColumnTransformer with transformer_weights"
        check.refuse_part("model", expected, "such a one")
    known = [str(name) for name in step.feature_names_in_]
    names: list[str] = []
    scaling: list[Scaling] = []
    for _, part, chosen in step.transformers_:
        columns = _names(known, chosen)
        if part == "drop" or not columns:  # what has no columns is not fitted
            continue
        plain = part == "passthrough" or getattr(part, "func", part) is None
        if type(part).__name__ == "OneHotEncoder":
            columns, plain = _words(part, columns, known, check), True
        names += columns
        unscaled = Scaling(np.zeros(len(columns)), np.ones(len(columns)))
        scaling.append(unscaled if plain else _scaling_of(part, len(columns), check))
    assert len(names) == n
    return names, Scaling(
        np.concatenate([x.shift for x in scaling]),
        np.concatenate([x.scale for x in scaling]),
    )


def _names(names: Sequence[str], chosen: Any) -> list[str]:
    """The columns that a part of a ColumnTransformer takes."""
    if isinstance(chosen, str):
        return [chosen]
    if isinstance(chosen, slice):
        return list(names[_by_place(names, chosen)])
    if all(isinstance(x, str) for x in chosen):
        return [str(x) for x in chosen]
    return [str(x) for x in np.asarray(names)[chosen]]


def _by_place(names: Sequence[str], chosen: slice) -> slice:
    """A slice by places; one by names takes its last name, too."""
    first, last = chosen.start, chosen.stop
    if isinstance(first, str):
        first = names.index(first)
    if isinstance(last, str):
        last = names.index(last) + 1
    return slice(first, last, chosen.step)


def _words(
    encoder: Any, columns: Sequence[str], known: Sequence[str], check: Checker
) -> list[str]:
    """The features of a OneHotEncoder, a column and a word of it each.

    Refused where a table of the ``known`` columns would read one as another.
    """
    for option in ("drop", "min_frequency", "max_categories"):
        if getattr(encoder, option) is not None:
            expected = f"have no OneHotEncoder with {option}"
            check.refuse_part("model", expected, f"one with {option}")
    names: list[str] = []
    for column, words in zip(columns, encoder.categories_, strict=True):
        for word in words.tolist():
            names.append(f"{column}={word}")
            if names[-1] in known or of_word(names[-1], known) != (column, str(word)):
                expected = "have one reading of each feature 'column=word'"
                check.refuse_part("model", expected, repr(names[-1]))
    return names


def _standard(step: Any) -> tuple[Vector | None, Vector | None]:
    return step.mean_ if step.with_mean else None, step.scale_


def _minmax(step: Any) -> tuple[Vector | None, Vector | None]:
    """Its map is x scale_ + min_."""
    return -step.min_ / step.scale_, 1.0 / step.scale_


def _maxabs(step: Any) -> tuple[Vector | None, Vector | None]:
    return None, step.scale_


def _robust(step: Any) -> tuple[Vector | None, Vector | None]:
    return step.center_, step.scale_


_READERS: dict[str, Callable[[Any], tuple[Vector | None, Vector | None]]] = {
    "StandardScaler": _standard,
    "MinMaxScaler": _minmax,
    "MaxAbsScaler": _maxabs,
    "RobustScaler": _robust,
}
