"""``widemargin convert``: a model to another format, or data to another text."""

import argparse
import os
import warnings
from collections.abc import Callable
from typing import Any

from widemargin.cli import names
from widemargin.cli.output import SOLVED, note, with_options
from widemargin.cli.reading import OURS, about, kind_of_model, read, read_model
from widemargin.data.outofcore import is_binary
from widemargin.data.svmlight import save_svmlight
from widemargin.models.liblinear import read_liblinear, write_liblinear
from widemargin.models.libsvm import read_libsvm, write_libsvm
from widemargin.models.model import Model
from widemargin.models.model_file import load_model, save_model
from widemargin.models.onnx import write_onnx
from widemargin.models.text import LIBLINEAR, LIBSVM
from widemargin.system.files import check_outputs, ending

_READERS = {OURS: load_model, LIBLINEAR: read_liblinear, LIBSVM: read_libsvm}
_TEXTS = {"liblinear": write_liblinear, "libsvm": write_libsvm}


def run(options: argparse.Namespace) -> int:
    """Convert a file."""
    check_outputs([options.output], [options.input])
    kind = kind_of_model(options.input)
    if kind is None and names.is_model(options.input):
        read_model(options.input)  # says that it is none
    if kind is None:
        _convert_data(options)
    else:
        _convert_model(_READERS[kind], options)
    return SOLVED


def _convert_data(options: argparse.Namespace) -> None:
    """Write data as svmlight text with indices from 1."""
    _refuse_useless(options, {"--format": options.format}, "a model", "data")
    names.check_data(options.output)
    if is_binary(options.input):
        found = "folder" if os.path.isdir(options.input) else ending(options.input)
        raise ValueError(
            f"{options.input}: expected a model or svmlight text, found a {found}"
        )
    data = read(options.input, options.index_base, options.jobs, keep_qid=True)
    save_svmlight(data.X, data.y, options.output, qid=data.qid)


def _convert_model(reader: Callable[[str], Model], options: argparse.Namespace) -> None:
    """Write a model in the format that the ending names."""
    values = {"--index-base": options.index_base, "--jobs": options.jobs}
    _refuse_useless(options, values, "data", "a model")
    names.check_model(options.output)
    kind = ending(options.output)
    if kind != names.TEXT_MODEL:
        _refuse_useless(options, {"--format": options.format}, "a .model", f"a {kind}")
    model = reader(options.input)
    if kind == names.TEXT_MODEL:
        _check_linear(options, model)
        write: Callable[[Model, str], None] = _TEXTS[options.format or _text_of(model)]
    else:
        write = write_onnx if kind == ".onnx" else save_model
    with about(options.input), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        write(model, options.output)
    for warning in caught:
        note(with_options(str(warning.message)))


def _check_linear(options: argparse.Namespace, model: Model) -> None:
    """Refuse to write a kernel in the words of a program that has none."""
    if options.format == "liblinear" and not (model.is_linear and _has_columns(model)):
        raise ValueError(
            f"{options.input}: LIBLINEAR has linear models only, found one with the "
            f"kernel {model.meta.get('kernel', 'rbf')}; --format libsvm writes it"
        )


def _text_of(model: Model) -> str:
    """The program in whose words a model is written, unless another is asked for."""
    linear = model.is_linear and not model.is_paired
    return "liblinear" if linear and _has_columns(model) else "libsvm"


def _has_columns(model: Model) -> bool:
    """Whether the weights are of columns, not of kernel values."""
    return model.meta.get("kernel") != "precomputed"


def _refuse_useless(
    options: argparse.Namespace, values: dict[str, Any], of: str, found: str
) -> None:
    """Refuse options that are of other files."""
    useless = [name for name, value in values.items() if value is not None]
    if useless:
        raise ValueError(
            f"{options.input}: expected {of} with {' and '.join(useless)}, "
            f"found {found}"
        )
