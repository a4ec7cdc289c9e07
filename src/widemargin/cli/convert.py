"""``widemargin convert``: a model to another format, or data to another text."""

import argparse
from collections.abc import Callable

from widemargin.cli import names
from widemargin.cli.output import SOLVED
from widemargin.cli.reading import LIBLINEAR, OURS, kind_of_model, read
from widemargin.data.outofcore import is_binary
from widemargin.data.svmlight import save_svmlight
from widemargin.models.liblinear import read_liblinear, write_liblinear
from widemargin.models.model import Model
from widemargin.models.model_file import load_model, save_model
from widemargin.models.onnx import write_onnx
from widemargin.system.files import check_outputs, ending

_READERS = {OURS: load_model, LIBLINEAR: read_liblinear}
_WRITERS = dict(
    zip(names.MODELS, (save_model, write_liblinear, write_onnx), strict=True)
)


def run(options: argparse.Namespace) -> int:
    """Convert a file."""
    check_outputs([options.output], [options.input])
    kind = kind_of_model(options.input)
    if kind is None:
        _convert_data(options)
    else:
        _convert_model(_READERS[kind], options)
    return SOLVED


def _convert_data(options: argparse.Namespace) -> None:
    """Write data as svmlight text with indices from 1."""
    names.check_data(options.output)
    if is_binary(options.input):
        raise ValueError(
            f"{options.input}: expected a model or svmlight text, "
            "found a folder, a .npy or a .parquet file"
        )
    data = read(options.input, options.index_base, options.jobs, keep_qid=True)
    save_svmlight(data.X, data.y, options.output, qid=data.qid)


def _convert_model(reader: Callable[[str], Model], options: argparse.Namespace) -> None:
    """Write a model in the format that the ending names."""
    values = {"--index-base": options.index_base, "--jobs": options.jobs}
    useless = [name for name, value in values.items() if value is not None]
    if useless:
        raise ValueError(
            f"{options.input}: expected data with {' and '.join(useless)}, "
            "found a model"
        )
    names.check_model(options.output)
    _WRITERS[ending(options.output)](reader(options.input), options.output)
