"""Reading data files for a command, and sentences that name their lines."""

import itertools
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from widemargin.cli.output import as_text, doing, note
from widemargin.data.outofcore import csv_place, is_binary
from widemargin.data.svmlight import read_svmlight
from widemargin.data.svmlight.read import Contents
from widemargin.data.svmlight.text import opener
from widemargin.models.model import Model
from widemargin.models.model_file import MAGIC, load_model
from widemargin.models.text import HEADS, LIBLINEAR, LIBSVM
from widemargin.system.files import is_delimited, open_bytes

# Parameters of the reader in the words of the command line.
_WORDS = {
    " because zero_based is False": " because indices start at 1 (see --index-base)",
    " because return_qid is True": " because other rows have one",
    "The 'memory_limit' parameter": "--memory-limit",
    "A low rank (rank=300) takes less": "A low rank (--rank 300) takes less",
    "expected a memory_limit of": "expected a --memory-limit of",
    "a table is read by open_rows, under": "a table has",
    "leave it out (columns=...)": "leave it out (--columns)",
    "multi_class='": "--multi-class '",
    "The 'scoring' parameter": "--scoring",
    "n_splits=": "--cv ",
    "columns must not hold": "--columns must not hold",
    "label and weight must be": "--label and --weight must be",
    "Invalid input - all samples have zero or negative weights.": "expected a positive "
    "--weight in some row, found none",
}
# The same of what solvers say.
_OF_SOLVERS = {
    r"'(\w+)' or '(\w+)'": r"'\1' or \2",
    r"\b(loss|intercept|solver)='(\w+)'": r"--\1 \2",
    r"\b(\w+)='(\w+)'": r"--solver-option \1=\2",
    r"\buse irwls\b": "use --solver irwls",
}
_PARAMETERS = {
    "class_weight": "--class-weight",
    "cv": "--cv",
    "kernel": "--kernel",
    "nu": "--nu",
    "rank": "--rank",
    "sample_weight": "--weight",
}
_BLANK = b" \t\r\n\xef\xbb\xbf"  # with the byte-order mark
_ROUNDED = 2.0**53  # the first number of which a neighbour is no float64
OURS = "widemargin"
_HEADS = {OURS: MAGIC} | HEADS
_ONNX = b"\x08"  # the version of its format follows


def kind_of_model(path: str) -> str | None:
    """The format of the model in a file, or None if the file holds none."""
    if os.path.exists(path) and not os.path.isfile(path):
        return None  # a pipe is data; reading a folder says why not
    with open_bytes(path) as file:
        head = file.read(64)
    if head.startswith(_ONNX):
        raise ValueError(
            f"{path}: ONNX models can be written, but not read; "
            "give the .wm model that it was made from"
        )
    kinds = (kind for kind, start in _HEADS.items() if head.startswith(start))
    return next(kinds, None)


def read_model(path: str) -> Model:
    """A model of ours; of another kind, how to get one from it."""
    kind = kind_of_model(path)
    if kind in (LIBLINEAR, LIBSVM):
        new = f"{os.path.splitext(path)[0]}.wm"
        raise ValueError(
            f"{path}: expected a model of widemargin, found one of {kind}; "
            f"convert it first: widemargin convert {path} {new}"
        )
    if kind is None and os.path.isfile(path):
        raise ValueError(
            f"{path}: expected a model, found another kind of file. Where a command "
            "takes a model and data, the model comes first."
        )
    return load_model(path)


def read(
    path: str, index_base: int | None, jobs: int | None, *, keep_qid: bool = False
) -> Contents:
    """What is in a data file; index_base None: 0 if the file has an index 0, else 1."""
    zero_based: Any = "auto" if index_base is None else index_base == 0
    qid: Any = "auto" if keep_qid else False
    try:
        with doing(f"reading {path}"):
            return read_svmlight(
                path, zero_based=zero_based, return_qid=qid, n_jobs=jobs
            )
    except ValueError as error:
        if os.path.isfile(path) and (kind := kind_of_model(path)):
            raise ValueError(
                f"{path}: expected data, found a model of {kind}"
            ) from None
        raise ValueError(as_of_options(str(error))) from None


def as_of_options(sentence: str) -> str:
    """A sentence about parameters as one about options."""
    for words, plain in _WORDS.items():
        sentence = sentence.replace(words, plain)
    return sentence


def fit_columns(path: str, X: Any, first_index: int, n_features: int) -> csr_array:
    """The rows with the columns of a model; says which others there were."""
    unknown = np.unique(X.indices[X.indices >= n_features])
    if unknown.size:
        first, last = (int(j) + first_index for j in unknown[[0, -1]])
        which = f"index {first}" if first == last else f"indices {first} to {last}"
        note(
            f"{path}: ignored {unknown.size:,} column(s) that the model has never "
            f"seen ({which})"
        )
        return X[:, :n_features]
    wider = csr_array((X.data, X.indices, X.indptr), shape=(X.shape[0], n_features))
    wider.has_canonical_format = True  # as the reader leaves it
    return wider


def check_columns(path: str, X: Any) -> None:
    """Refuse data that nothing can be learned from."""
    if X.shape[1] == 0:
        raise ValueError(f'{path}: expected an "index:value" in some row, found none')


def check_classes(path: str, y: Any) -> None:
    """Refuse labels of a single class."""
    if np.all(y == y[0]):
        is_rounded = y.dtype.kind == "f" and abs(y[0]) >= _ROUNDED
        why = "; from 2^53 on neighbouring numbers are one in float64" * bool(
            is_rounded
        )
        raise ValueError(
            f"{path}: expected at least two classes, "
            f"found one ({as_text(y[:1].tolist()[0])}){why}"
        )


def check_labels(path: str, y: Any) -> None:
    """Refuse labels that name no class."""
    if y.dtype.kind != "f":
        return
    fractional = y != np.floor(y)
    if fractional.any():
        row = int(np.argmax(fractional))
        raise ValueError(
            f"{path}, {_place(path, row)}: expected a whole number as the label, "
            f"found {y[row]}; --type regress predicts such numbers"
        )


def check_targets(path: str, y: Any) -> None:
    """Refuse targets of a regression that are no finite numbers."""
    if y.dtype.kind not in "biuf":
        raise ValueError(
            f"{path}: expected numbers as the targets of --type regress, "
            f"found {as_text(y[:1].tolist()[0])!r}"
        )
    finite = np.isfinite(y)
    if not finite.all():
        row = int(np.argmin(finite))
        raise ValueError(
            f"{path}, {_place(path, row)}: expected a finite number as the target, "
            f"found {y[row]}"
        )


@contextmanager
def about(path: str, first_index: int = 0) -> Iterator[None]:
    """Let what the library refuses name the file, and count as that does."""
    try:
        yield
    except ValueError as error:
        sentence = as_of_options(as_in_file(str(error), first_index))
        sentence = _of_solvers(sentence)
        sentence = _in_lines(path, sentence)
        if not sentence.startswith(path):  # rows in files name them
            sentence = f"{path}: {sentence}"
        raise ValueError(sentence) from None


def _of_solvers(sentence: str) -> str:
    """What a solver says of a problem that it does not take, with options."""
    from widemargin.solvers.auto import SOLVERS  # slow, and only for a mistake

    head = re.match(r"(\w+)(?:\((\w+)='(\w+)'\))?(?= )", sentence)
    names = {kind.__name__: name for name, kind in SOLVERS.items()}
    if head is None or head[1] not in names:
        return sentence
    chosen = f" --solver-option {head[2]}={head[3]}" if head[2] else ""
    rest = sentence[head.end() :]
    for words, option in _OF_SOLVERS.items():
        rest = re.sub(words, option, rest)
    return f"--solver {names[head[1]]}{chosen}{rest}"


def as_in_file(sentence: str, first_index: int) -> str:
    """A sentence of the library with columns counted as the file counts them."""
    for name, option in _PARAMETERS.items():
        sentence = re.sub(rf"^The '{name}' parameter of [\w.]+", option, sentence)

    def shift(match: re.Match[str]) -> str:
        """The match with all its numbers counted from the file's first one."""
        return re.sub(r"\d+", lambda j: str(int(j[0]) + first_index), match[0])

    return re.sub(r"(?i)\b(columns?|feature\(s\)) \d+(, \d+)*", shift, sentence)


def _in_lines(path: str, sentence: str) -> str:
    """A sentence of the library about a row of a text with the line that it has."""
    if is_binary(path) and not is_delimited(path):
        return sentence
    return re.sub(
        r"\bat row (\d+)", lambda row: f"at {_place(path, int(row[1]))}", sentence
    )


def _place(path: str, row: int) -> str:
    """The line of a row: blank lines and comments are lines, but no rows."""
    if is_delimited(path):
        return csv_place(path, row)
    if is_binary(path) or not os.path.isfile(path):
        return f"row {row} of the data (counted from 0)"  # a pipe cannot be read again
    with open_bytes(path, opener(path)) as file:
        numbers = (
            number
            for number, line in enumerate(file, start=1)
            if line.split(b"#")[0].strip(_BLANK)
        )
        return f"line {next(itertools.islice(numbers, row, None), row + 1)}"
