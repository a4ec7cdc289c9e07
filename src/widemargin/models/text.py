"""The lines of a foreign model file, and the sentence for what is wrong in them."""

import math
import re
from collections.abc import Callable
from typing import Any, NamedTuple, NoReturn, TextIO

from widemargin.system.files import Path

INT_MIN, INT_MAX = -(2**31), 2**31 - 1
# How the models of other programs begin.
LIBLINEAR, LIBSVM = "LIBLINEAR", "LIBSVM"
HEADS = {LIBLINEAR: b"solver_type", LIBSVM: b"svm_type"}


class Kind(NamedTuple):
    """A kind of value: its parser (raises ValueError or KeyError) and its name."""

    parse: Callable[[str], Any]
    expected: str


def integer(low: int, high: int = INT_MAX) -> Kind:
    """Integers of C from ``low`` to ``high``."""

    def parse(word: str) -> int:
        """Value of a word."""
        value = int(word)
        if not low <= value <= high or "_" in word:
            raise ValueError
        return value

    return Kind(parse, f"an integer from {low} to {high}")


def choice(names: Any, expected: str) -> Kind:
    """One of some names."""
    return Kind({name: name for name in names}.__getitem__, expected)


def _parse_finite(word: str) -> float:
    """Value of a decimal number; Python alone allows underscores in it."""
    value = float(word)
    if not math.isfinite(value) or "_" in word:
        raise ValueError
    return value


FINITE = Kind(_parse_finite, "a finite number")


class Lines:
    """The lines of a file, one after another."""

    def __init__(self, path: Path, file: TextIO) -> None:
        self._path, self._file, self._number = path, file, 0
        self._words: list[re.Match[str]] = []
        self._text = ""

    @property
    def words(self) -> list[str]:
        """The words of the line."""
        return [word.group() for word in self._words]

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

    def values(
        self, kind: Kind, count: int, start: int = 0, *, more: bool = False
    ) -> list[Any]:
        """The words of the line from ``start``: the wanted number, or also ``more``."""
        values = []
        for index in range(start, start + count):
            try:
                values.append(kind.parse(self._words[index].group()))
            except (IndexError, KeyError, ValueError):
                self.refuse(kind.expected, index)
        if not more and len(self._words) > start + count:
            self.refuse("the end of the line", start + count)
        return values

    def field(self, name: str, kind: Kind, count: int = 1) -> list[Any]:
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
            numbers += self.values(FINITE, width)
        return numbers


def whole_labels(labels: list[Any], program: str) -> list[int]:
    """Labels as integers of C, which a program has no others than."""
    for label in labels:
        number = isinstance(label, int | float) and not isinstance(label, bool)
        if not (number and INT_MIN <= label <= INT_MAX and label == int(label)):
            raise ValueError(
                f"The labels of a {program} model must be whole numbers from "
                f"{INT_MIN} to {INT_MAX}. Got {label!r} instead."
            )
    return [int(label) for label in labels]


def distinct_labels(lines: Lines, labels: list[int]) -> None:
    """Refuse the line of the labels where one is there twice."""
    seen = set()
    for index, label in enumerate(labels, start=1):
        if label in seen:
            lines.refuse("a label that was not there before", index)
        seen.add(label)
