"""``widemargin convert``: a model to another format, or data to another text."""

import argparse
import os

from widemargin.cli.output import SOLVED
from widemargin.cli.reading import read
from widemargin.data.svmlight import save_svmlight
from widemargin.files import check_outputs, open_bytes
from widemargin.io.liblinear import read_liblinear, write_liblinear
from widemargin.io.model_file import MAGIC, load_model, save_model
from widemargin.io.onnx import write_onnx
from widemargin.model import Model

_WRITERS = {".wm": save_model, ".model": write_liblinear, ".onnx": write_onnx}
_TEXTS = (".svm", ".svmlight", ".libsvm", ".txt")
_COMPRESSED = (".gz", ".bz2", ".xz")


def run(options: argparse.Namespace) -> int:
    """Convert a file."""
    check_outputs([options.output], [options.input])
    model = _read_model(options.input)
    if model is None:
        _convert_data(options)
    else:
        _convert_model(model, options)
    return SOLVED


def _convert_data(options: argparse.Namespace) -> None:
    """Write data as svmlight text with indices from 1."""
    name, ending = os.path.splitext(options.output)
    if ending.lower() in _COMPRESSED:
        ending = os.path.splitext(name)[1]
    if ending and ending.lower() not in _TEXTS:
        raise ValueError(
            f"{options.output}: expected a name for data, which ends in "
            f"{', '.join(_TEXTS)} or has no ending (then perhaps "
            f"{', '.join(_COMPRESSED)}), found {ending!r}"
        )
    data = read(options.input, options.index_base, options.jobs, keep_qid=True)
    save_svmlight(data.X, data.y, options.output, qid=data.qid)


def _convert_model(model: Model, options: argparse.Namespace) -> None:
    """Write a model in the format that the ending names."""
    values = {"--index-base": options.index_base, "--jobs": options.jobs}
    useless = [name for name, value in values.items() if value is not None]
    if useless:
        raise ValueError(
            f"{options.input}: expected data with {' and '.join(useless)}, "
            "found a model"
        )
    ending = os.path.splitext(options.output)[1]
    if ending not in _WRITERS:
        raise ValueError(
            f"{options.output}: expected a name for a model, which ends in "
            f"{', '.join(_WRITERS)}, found {ending or 'no ending'!r}"
        )
    _WRITERS[ending](model, options.output)


def _read_model(path: str) -> Model | None:
    """The model in a file, or None if the file holds none."""
    if not os.path.isfile(path):
        return None  # a pipe is data; reading what is no file says why not
    with open_bytes(path) as file:
        head = file.read(64)
    if head.startswith(MAGIC):
        return load_model(path)
    if head.startswith(b"solver_type"):
        return read_liblinear(path)
    return None
