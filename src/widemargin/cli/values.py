"""Values of options: numbers, sizes and names, or a sentence. Imports nothing slow."""

import argparse
import csv
import os
import re
from collections.abc import Iterable

from widemargin.kernels.table import GAMMAS
from widemargin.parameters import meant

STANDARD_INPUT = "/dev/stdin"  # what - stands for
STANDARD_OUTPUT = "/dev/stdout"
_READ = ("data", "input")
_FILES = (*_READ, "model", "output", "test", "report", "checkpoint")
_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}
# A smaller size is one without its unit.
_LEAST_BYTES = 1 << 14
_SEEDS = 1 << 32
# Words from which on a message names the nearest one only.
MANY_WORDS = 30


def refusal(word: str, known: Iterable[str], others: str = "") -> str:
    """What to say about a word that is none of those known, nor of the others."""
    words = list(known)
    near = meant(word, words)
    if near and len(words) > MANY_WORDS:
        return (
            f"expected one of {len(words)} names, found {word!r} (did you mean {near}?)"
        )
    hint = f" (did you mean {near}?)" if near else ""
    return f"expected {others}{', '.join(words)}, found {word!r}{hint}"


def take_streams(options: argparse.Namespace) -> None:
    """Read data from standard input for -, write predictions to standard output.

    Nothing else can be there, and no file is without a name.
    """
    for name in _FILES:
        found = getattr(options, name, None)
        if name == "output" and found == STANDARD_OUTPUT:
            found = "-"
        if found not in ("", "-"):
            continue
        if found and name in _READ and os.path.exists(STANDARD_INPUT):
            setattr(options, name, STANDARD_INPUT)
        elif found and name == "output" and options.command == "predict":
            options.output = None
        else:
            options.parser.error(f"expected a file as the {name}, found {found!r}")


def positive(text: str) -> float:
    """A positive number."""
    try:
        value = float(text)
    except ValueError:
        value = float("nan")
    if not 0 < value < float("inf"):
        raise argparse.ArgumentTypeError(f"expected a positive number, found {text!r}")
    return value


def nonnegative(text: str) -> float:
    """A number from 0 on."""
    try:
        value = float(text)
    except ValueError:
        value = float("nan")
    if not 0 <= value < float("inf"):
        raise argparse.ArgumentTypeError(
            f"expected a number, 0 or larger, found {text!r}"
        )
    return value


def widths(text: str) -> float | list[float]:
    """A number from 0 on, or several with commas between them."""
    found = [nonnegative(part) for part in text.split(",")]
    return found[0] if len(found) == 1 else found


def weights(text: str) -> float | list[float]:
    """A positive number or inf, or several numbers with commas between them."""
    if text.strip().lower() == "inf":
        return float("inf")
    found = [positive(part) for part in text.split(",")]
    return found[0] if len(found) == 1 else found


def gammas(text: str) -> float | str | list[float | str]:
    """A value of gamma, or several with commas between them."""
    found = [gamma(part) for part in text.split(",")]
    return found[0] if len(found) == 1 else found


def share(text: str) -> float:
    """A positive number up to 1, as the estimators take it."""
    value = positive(text)
    if value > 1:
        raise argparse.ArgumentTypeError(f"expected at most 1, found {text!r}")
    return value


def size(text: str) -> int:
    """A size in bytes, KiB, MiB, ..., as large as the estimators need it."""
    form = re.fullmatch(r"(\d+(?:\.\d+)?) ?(?:([KMGT])(?:iB)?)?", text, re.ASCII | re.I)
    value = 0.0
    if form:
        value = float(form[1]) * _UNITS[(form[2] or "").upper()]
    if not _LEAST_BYTES <= value < float("inf"):
        raise argparse.ArgumentTypeError(
            f"expected at least 16K, in bytes or with K, M, G or T behind, such as "
            f"500M, found {text!r}"
        )
    return int(value)


def count(text: str) -> int:
    """A positive whole number."""
    if not (text.isascii() and text.isdigit() and int(text) > 0):
        raise argparse.ArgumentTypeError(
            f"expected a positive whole number, found {text!r}"
        )
    return int(text)


def folds(text: str) -> int:
    """A number of folds."""
    value = count(text)
    if value < 2:
        raise argparse.ArgumentTypeError(f"expected at least 2 folds, found {text!r}")
    return value


def budget(text: str) -> float:
    """A whole number from 2 on, or a share below 1."""
    return _count_or_share(text, 2, "a whole number, 2 or larger, or a share below 1")


def rank(text: str) -> float | str:
    """A positive whole number, a share below 1, or "auto"."""
    if text == "auto":
        return text
    return _count_or_share(text, 1, "a positive whole number, a share below 1 or auto")


def _count_or_share(text: str, least: int, expected: str) -> float:
    """A whole number from ``least`` on, or a number between 0 and 1."""
    if text.isascii() and text.isdigit() and int(text) >= least:
        return int(text)
    try:
        value = positive(text)
    except argparse.ArgumentTypeError:
        value = 1.0
    if not value < 1:
        raise argparse.ArgumentTypeError(f"expected {expected}, found {text!r}")
    return value


def seed(text: str) -> int:
    """A whole number from 0 on."""
    if not (text.isascii() and text.isdigit()):
        raise argparse.ArgumentTypeError(
            f"expected a whole number, 0 or larger, found {text!r}"
        )
    return int(text)


def split_seed(text: str) -> int:
    """A whole number that 32 bits hold, as scikit-learn's splitters take it."""
    value = seed(text)
    if value >= _SEEDS:
        raise argparse.ArgumentTypeError(
            f"expected a whole number below {_SEEDS:,}, found {text!r}"
        )
    return value


def scorer(text: str) -> str:
    """Name of a scorer; scikit-learn is imported only to check one."""
    from sklearn.metrics import get_scorer_names

    if text not in (names := get_scorer_names()):
        raise argparse.ArgumentTypeError(refusal(text, names))
    return text


def index_base(text: str) -> int | None:
    """0 or 1, or None for "auto"."""
    bases = {"auto": None, "0": 0, "1": 1}
    if text not in bases:
        raise argparse.ArgumentTypeError(f"expected auto, 0 or 1, found {text!r}")
    return bases[text]


def gamma(text: str) -> float | str:
    """A positive number, or a word for one."""
    if text in GAMMAS:
        return text
    try:
        return positive(text)
    except argparse.ArgumentTypeError:
        raise argparse.ArgumentTypeError(
            refusal(text, GAMMAS, "a positive number, or ")
        ) from None


def number(text: str) -> float:
    """A finite number."""
    try:
        value = float(text)
    except ValueError:
        value = float("nan")
    if not abs(value) < float("inf"):
        raise argparse.ArgumentTypeError(f"expected a number, found {text!r}")
    return value


def solver(text: str) -> str:
    """Name of a solver; the solvers are imported only to check one."""
    if text != "auto":
        from widemargin.solvers.auto import NAMES

        if text not in NAMES:
            raise argparse.ArgumentTypeError(refusal(text, NAMES))
    return text


def assignment(text: str) -> tuple[str, str]:
    """NAME=VALUE, as these two."""
    name, equals, value = text.partition("=")
    if not (name and equals and value):
        raise argparse.ArgumentTypeError(f"expected NAME=VALUE, found {text!r}")
    return name, value


def class_weights(text: str) -> str | list[tuple[str, float]]:
    """The word "balanced", or factors by label: 1:2,-1:0.5; quotes are those of CSV."""
    if text == "balanced":
        return text
    found: dict[str, float] = {}
    try:
        parts = next(csv.reader([text])) or [""]
    except csv.Error:
        parts = [""]
    for part in parts:
        label, colon, factor = part.rpartition(":")
        if not (colon and label) or label in found:
            raise argparse.ArgumentTypeError(
                "expected balanced, or LABEL:FACTOR with commas between, such as "
                f'1:2,-1:0.5 or "a, b":2, found {text!r}'
            )
        found[label] = positive(factor)
    return list(found.items())


def names(text: str) -> list[str]:
    """Different names between commas."""
    found = text.split(",")
    if not text or len(set(found)) < len(found):
        raise argparse.ArgumentTypeError(
            f"expected different names with commas between, found {text!r}"
        )
    return found
