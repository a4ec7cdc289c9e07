"""Weights of rows, from a file, and of classes."""

import argparse
import os
from typing import Any

import numpy as np

from widemargin.arrays import Vector
from widemargin.cli.output import SHOWN, as_text, listed
from widemargin.system.files import open_bytes

_ARRAY, _TEXTS = ".npy", (".txt", ".weights", ".wgt")


def is_text(name: str | None) -> bool:
    """Whether a value of --weight names a text file, and no array or column."""
    return name is not None and name.lower().endswith(_TEXTS)


def check_file(name: str, data: str) -> None:
    """Refuse a column as the weights of svmlight text, which has none."""
    is_file = is_text(name) or name.lower().endswith(_ARRAY)
    if not (is_file or os.path.isfile(name)):
        raise ValueError(
            f"{data}: expected --weight FILE.txt or FILE.npy for svmlight text, found "
            f"--weight {name}"
        )


def read_weights(path: str, m: int) -> Vector:
    """Weights of m rows: a .npy array, or a text with a number a line."""
    found = _array(path) if path.lower().endswith(_ARRAY) else _numbers(path)
    if found.shape != (m,):
        size = f"{len(found):,}" if found.ndim == 1 else f"an array {found.shape}"
        raise ValueError(f"{path}: expected {m:,} weights, one a row, found {size}")
    return found


def _array(path: str) -> Vector:
    """The numbers of a .npy file."""
    try:
        found = np.load(path)
    except (EOFError, ValueError) as error:
        raise ValueError(f"{path}: expected a .npy array ({error})") from None
    if found.dtype.kind not in "biuf":
        raise ValueError(f"{path}: expected numbers, found dtype {found.dtype}")
    return np.asarray(found, dtype=np.float64)


def _numbers(path: str) -> Vector:
    """The numbers of a text, one a line."""
    found = []
    with open_bytes(path) as file:
        for k, line in enumerate(file, start=1):
            try:
                found.append(float(line))
            except ValueError:
                said = line.decode(errors="replace").strip()[:40]
                raise ValueError(
                    f"{path}, line {k}: expected one number, found {said!r}"
                ) from None
    return np.array(found)


def of_classes(options: argparse.Namespace, y: Any) -> Any:
    """--class-weight as estimators take it: "balanced", None, or a factor a label."""
    given = options.class_weight
    if not isinstance(given, list):
        return given
    from widemargin.estimators.labels import distinct  # imports scikit-learn

    labels = distinct(np.asarray(y)).tolist()
    factors = {}
    for name, factor in given:
        meant = [label for label in labels if _is_label(label, name)]
        if not meant:
            raise ValueError(
                f"--class-weight: expected labels of {options.data} "
                f"({listed(labels, SHOWN)}), found {name!r}"
            )
        factors[meant[0]] = factor
    return factors


def _is_label(label: Any, name: str) -> bool:
    """Whether a word means a label: +1 and 1.0 mean 1."""
    if as_text(label) == name:
        return True
    try:
        return not isinstance(label, str) and float(label) == float(name)
    except ValueError:
        return False
