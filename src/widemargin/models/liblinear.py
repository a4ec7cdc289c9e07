"""LIBLINEAR's model files: text that its programs and bindings read and write.

LIBLINEAR keeps one weight column for two classes, positive for the *first* label, and
one a class for more, the largest wins. With ``bias >= 0`` the last row of ``w`` belongs
to a feature that always has the value ``bias``.
"""

import io
import math
import re
from collections.abc import Callable
from typing import Any, NamedTuple, NoReturn, TextIO

import numpy as np

from widemargin.models.model import Decision, Model
from widemargin.models.model_file import as_linear
from widemargin.system.files import Path, open_regular, replacing

# The solvers that make linear classifiers; a loss is written as its first one.
_LOSS_OF_SOLVER = {
    "L2R_L1LOSS_SVC_DUAL": "hinge",
    "L2R_L2LOSS_SVC_DUAL": "squared_hinge",
    "L2R_LR": "logistic",
    "L2R_L2LOSS_SVC": "squared_hinge",
    "L1R_L2LOSS_SVC": "squared_hinge",
    "MCSVM_CS": "hinge",
    "L2R_LR_DUAL": "logistic",
    "L1R_LR": "logistic",
}
_INT_MIN, _INT_MAX = -(2**31), 2**31 - 1


def write_liblinear(model: Any, path: Path) -> None:
    """Write a linear model as LIBLINEAR does.

    Parameters
    ----------
    model : Model or fitted estimator
        Its labels are whole numbers from -2^31 to 2^31 - 1, as LIBLINEAR has no others.
    path : str or path-like
        An existing file is replaced as a whole, or stays as it is after an error.

    Raises
    ------
    ValueError
        Other labels, coefficients that are not finite, a kernel, or a model of one
        against one.
    TypeError
        ``model`` is no model.
    OSError
        The file cannot be written.

    See Also
    --------
    read_liblinear : read it back.

    Notes
    -----
    The intercept is written as the weight of a feature of value 1 (``bias 1``). All
    numbers have as many digits as they need to come back to the bit. Of ``meta`` only
    the loss is kept.

    Examples
    --------
    >>> import os, tempfile
    >>> from widemargin import LinearSVC
    >>> from widemargin.models.liblinear import read_liblinear, write_liblinear
    >>> clf = LinearSVC().fit([[0.0], [1.0], [3.0], [4.0]], [0, 0, 1, 1])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "small.model")
    ...     write_liblinear(clf, path)
    ...     read_liblinear(path).predict([[0.5], [3.5]]).tolist()
    [0, 1]
    """
    model, W, b = as_linear(model, "write_liblinear")
    if model.is_paired:
        raise ValueError(
            "A LIBLINEAR model has no decisions one against one. Train with "
            "multi_class='ovr'."
        )
    labels = _whole(model)
    rows = np.vstack([W.T, b])
    if model.scheme == "binary":
        # The first label is our negative one, so that a score of 0 goes to the same
        # class here (>= 0) and there (> 0).
        rows = -rows
    head = (
        f"solver_type {_solver(model)}\n"
        f"nr_class {len(labels)}\n"
        f"label {' '.join(map(str, labels))}\n"
        f"nr_feature {W.shape[1]}\n"
        "bias 1\n"
        "w\n"
    )
    with replacing(path) as file:
        file.write(head.encode())
        file.writelines(
            f"{' '.join(map(repr, row.tolist()))}\n".encode() for row in rows
        )


def read_liblinear(path: Path) -> Model:
    """Read a classifier that LIBLINEAR or `write_liblinear` wrote.

    Parameters
    ----------
    path : str or path-like
        The result of LIBLINEAR's ``train``, ``save_model`` or of `write_liblinear`.

    Returns
    -------
    Model
        ``meta["loss"]`` is "hinge", "squared_hinge" or "logistic";
        ``meta["index_base"]`` is 1.

    Raises
    ------
    ValueError
        The file is malformed (names line and column), or holds a regression or a
        one-class model.
    FileNotFoundError
        No such file; names the file that may have been meant.

    See Also
    --------
    write_liblinear : write it.

    Notes
    -----
    `Model.predict` and LIBLINEAR decide alike but for exact ties, which LIBLINEAR
    settles by the order of the labels in its file and `Model` by their size.
    """
    with open_regular(path) as file:
        lines = _Lines(path, io.TextIOWrapper(file, "ascii", errors="replace"))
        return _read_model(lines)


# -- writing ---------------------------------------------------------------------------


def _whole(model: Model) -> list[int]:
    """Labels as integers of C."""
    labels = model.classes.tolist()
    for label in labels:
        number = isinstance(label, int | float) and not isinstance(label, bool)
        if not (number and _INT_MIN <= label <= _INT_MAX and label == int(label)):
            raise ValueError(
                "The labels of a LIBLINEAR model must be whole numbers from "
                f"{_INT_MIN} to {_INT_MAX}. Got {label!r} instead."
            )
    return [int(label) for label in labels]


def _solver(model: Model) -> str:
    """Name of the solver of LIBLINEAR for the loss and the number of columns."""
    if model.scheme == "ovr" and len(model.classes) == 2:
        return "MCSVM_CS"  # the only one with two columns for two classes
    loss = model.meta.get("loss")
    names = [name for name, known in _LOSS_OF_SOLVER.items() if known == loss]
    return names[0] if names else "L2R_L1LOSS_SVC_DUAL"


# -- reading ---------------------------------------------------------------------------


class _Kind(NamedTuple):
    """A kind of value: its parser (raises ValueError or KeyError) and its name."""

    parse: Callable[[str], Any]
    expected: str


def _integer(low: int) -> _Kind:
    """Integers of C from ``low``."""

    def parse(word: str) -> int:
        value = int(word)
        if not low <= value <= _INT_MAX or "_" in word:
            raise ValueError
        return value

    return _Kind(parse, f"an integer from {low} to {_INT_MAX}")


def _parse_finite(word: str) -> float:
    """Value of a decimal number; Python alone allows underscores in it."""
    value = float(word)
    if not math.isfinite(value) or "_" in word:
        raise ValueError
    return value


_FINITE = _Kind(_parse_finite, "a finite number")
_SOLVER = _Kind(
    {name: name for name in _LOSS_OF_SOLVER}.__getitem__,
    f"a solver of classifiers ({', '.join(_LOSS_OF_SOLVER)})",
)


class _Lines:
    """The lines of a file, one after another, and the sentence for what is wrong."""

    def __init__(self, path: Path, file: TextIO) -> None:
        self._path, self._file, self._number = path, file, 0
        self._words: list[re.Match[str]] = []
        self._text = ""

    def advance(self) -> bool:
        """Go to the next line; False at the end of the file."""
        self._text = self._file.readline()
        self._number += 1
        self._words = list(re.finditer(r"\S+", self._text))
        return bool(self._text)

    def refuse(self, expected: str, index: int = 0) -> NoReturn:
        """Raise, at a word of the line or behind its last one."""
        column, found = len(self._text.rstrip()) + 1, "the end of the line"
        if index < len(self._words):
            word = self._words[index]
            column, found = word.start() + 1, f'"{word.group()[:40]}"'
        elif not self._text:
            found = "the end of the file"
        raise ValueError(
            f"{self._path}, line {self._number}, column {column}: "
            f"expected {expected}, found {found}"
        )

    def values(self, kind: _Kind, count: int, start: int = 0) -> list[Any]:
        """The words of the line from ``start``: exactly the wanted number."""
        values = []
        for index in range(start, start + count):
            try:
                values.append(kind.parse(self._words[index].group()))
            except (IndexError, KeyError, ValueError):
                self.refuse(kind.expected, index)
        if len(self._words) > start + count:
            self.refuse("the end of the line", start + count)
        return values

    def field(self, name: str, kind: _Kind, count: int = 1) -> list[Any]:
        """The values of the next line, which starts with a name."""
        self.advance()
        if not self._words or self._words[0].group() != name:
            self.refuse(f'"{name}"')
        return self.values(kind, count, start=1)

    def rows(self, count: int, width: int) -> list[float]:
        """The numbers of the next lines, one after another."""
        numbers: list[float] = []
        for _ in range(count):
            self.advance()
            numbers += self.values(_FINITE, width)
        return numbers


def _read_model(lines: _Lines) -> Model:
    """Read a whole file."""
    solver, labels, n_features, bias = _read_head(lines)
    width = 1 if len(labels) == 2 and solver != "MCSVM_CS" else len(labels)
    W = np.array(lines.rows(n_features, width)).reshape(n_features, width).T
    b = np.array(_read_intercepts(lines, bias, width))
    while lines.advance():
        lines.values(_FINITE, 0)
    order = np.argsort(labels)
    if width > 1:
        W, b = W[order], b[order]
    elif labels[0] < labels[1]:
        W, b = -W, -b  # the first label is positive there, the larger one here
    decisions = (
        Decision(np.ascontiguousarray(w), float(c)) for w, c in zip(W, b, strict=True)
    )
    scheme = "ovr" if width > 1 else "binary"
    meta = {"loss": _LOSS_OF_SOLVER[solver], "index_base": 1}  # it has no other
    return Model(np.array(labels)[order], scheme, tuple(decisions), meta)


def _read_head(lines: _Lines) -> tuple[str, list[int], int, float]:
    """Solver, labels, number of features and bias."""
    (solver,) = lines.field("solver_type", _SOLVER)
    (n_classes,) = lines.field("nr_class", _integer(2))
    labels = lines.field("label", _integer(_INT_MIN), n_classes)
    seen = set()
    for index, label in enumerate(labels, start=1):
        if label in seen:
            lines.refuse("a label that was not there before", index)
        seen.add(label)
    (n_features,) = lines.field("nr_feature", _integer(1))
    (bias,) = lines.field("bias", _FINITE)
    lines.field("w", _FINITE, 0)
    return solver, labels, n_features, bias


def _read_intercepts(lines: _Lines, bias: float, width: int) -> list[float]:
    """Intercepts, which LIBLINEAR keeps as weights of a feature with the value bias."""
    if bias < 0:
        return [0.0] * width
    b = [bias * weight for weight in lines.rows(1, width)]
    if not all(map(math.isfinite, b)):
        lines.refuse(f"weights whose product with the bias {bias} is finite")
    return b
