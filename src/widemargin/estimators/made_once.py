"""What predicts, made once of the attributes of a fit."""

import operator
from collections.abc import Callable
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

import numpy as np
from scipy import sparse

T = TypeVar("T")

# Beside the estimators: a prediction changes nothing in them, nor in their pickles.
_MADE: "WeakKeyDictionary[Any, tuple[list[Any], Any]]" = WeakKeyDictionary()


def made_once(estimator: Any, names: tuple[str, ...], make: Callable[[], T]) -> T:
    """What ``make`` makes of attributes, until one of them is another object.

    Arrays become read-only: a change in place, that nobody would notice, is refused.
    """
    attributes = vars(estimator)
    parts = [attributes.get(name) for name in names]
    found = _MADE.get(estimator)
    if found is not None and all(map(operator.is_, parts, found[0])):
        value: T = found[1]
        return value
    value = make()
    parts = [attributes.get(name) for name in names]  # some were made now
    for part in parts:
        array = part.data if sparse.issparse(part) else part
        if isinstance(array, np.ndarray):
            array.flags.writeable = False
    _MADE[estimator] = parts, value
    return value
