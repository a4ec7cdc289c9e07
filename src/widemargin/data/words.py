"""Tables with words, as a model has them: the feature `job=clerk` is 1 or 0."""

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from widemargin.data.matrix import column_names
from widemargin.data.memory import as_rows


def encoded(X: Any, features: Sequence[str] | None) -> Any:
    """A table as the named features; what is no table, or has them all, as it is.

    A feature that is no column is a column and one of its words, `column=word`. Words
    that no feature has are told, and count as none.
    """
    known = column_names(X)
    if known is None or features is None or set(features) <= set(known):
        return X
    pairs = {name: of_word(name, known) for name in features if name not in known}
    if not any(pairs.values()):
        return X  # whose refusal names the column
    if missing := [name for name, pair in pairs.items() if pair is None]:
        column, _, word = missing[0].partition("=")
        nor = f" and no column {column!r}" if word else ""
        raise ValueError(
            f"X must have the columns of the model. Got no {missing[0]!r}{nor}."
        )
    found = np.empty((len(X), len(features)))
    plain = [j for j, name in enumerate(features) if name not in pairs]
    if plain:
        numbers = as_rows(X[[features[j] for j in plain]])
        found[:, plain] = numbers.in_memory()
    words = {pair[0]: _words(X[pair[0]]) for pair in pairs.values() if pair}
    for j, name in enumerate(features):
        if pair := pairs.get(name):
            found[:, j] = words[pair[0]] == pair[1]
    _say_unknown(words, {pair for pair in pairs.values() if pair})
    return as_rows(found, names=[str(name) for name in features])


def of_word(feature: str, columns: Sequence[str]) -> tuple[str, str] | None:
    """The column and the word of a feature; None where no such column is there."""
    parts = feature.split("=")
    for k in range(len(parts) - 1, 0, -1):
        if (column := "=".join(parts[:k])) in columns:
            return column, "=".join(parts[k:])
    return None


def _words(column: Any) -> Any:
    """The values of a column as text, (m,)."""
    return np.array([str(value) for value in np.asarray(column).tolist()], dtype=object)


def _say_unknown(words: dict[str, Any], pairs: set[tuple[str, str]]) -> None:
    """Warn of words that a model has never seen."""
    for column, found in words.items():
        known = {word for name, word in pairs if name == column}
        if new := sorted(set(found) - known):
            warnings.warn(
                f"Column {column!r} has words that the model has not seen, which count "
                f"as none: {', '.join(map(repr, new[:3]))}{', ...' * (len(new) > 3)}.",
                UserWarning,
                stacklevel=3,
            )
