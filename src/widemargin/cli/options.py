"""The arguments of the commands. Imports nothing slow: help comes at once."""

import argparse
import difflib
import re
import sys
from collections.abc import Sequence
from typing import Any, NoReturn

from widemargin import __version__
from widemargin.cli.output import BAD_INPUT, note, say

_EXIT_STATUS = """\
See widemargin COMMAND --help for options and examples.

exit status:
  0    solved, or done
  1    the model is usable, but not as good as asked (says how far)
  2    bad usage or input (one line says what)
  130  Ctrl-C before there was a model, or while testing or reporting on it
  141  standard output was closed before all was said
"""
_TRAIN_EXAMPLES = """\
examples:
  widemargin train adult.svm adult.wm --test adult.test.svm
  widemargin train adult.svm.xz adult.wm -C 10 --tol 1e-6 --report adult.html
  widemargin train big.svm big.wm --time-limit 600 --memory-limit 4G --json

The data are svmlight/LIBSVM text ("label index:value ..."), plain or compressed with
gzip, bzip2 or xz. Ctrl-C stops, and saves the best model so far with its gap; before
there is one, or the second time, it ends with status 130 and no model.
"""
_PREDICT_EXAMPLES = """\
examples:
  widemargin predict adult.wm new.svm > labels.txt
  widemargin predict adult.wm new.svm --scores --output scores.txt

Features that the model has never seen are ignored, and standard error says so.
"""
_INSPECT_EXAMPLES = """\
examples:
  widemargin inspect adult.wm
  widemargin inspect adult.wm --json
"""
_CONVERT_EXAMPLES = """\
examples:
  widemargin convert adult.svm adult.svm.xz        data: compress, or unpack
  widemargin convert zero_based.svm one_based.svm  data: indices from 0 to from 1
  widemargin convert adult.wm adult.model          model: LIBLINEAR's text, and back
  widemargin convert adult.wm adult.onnx           model: ONNX

Data go to .svm, .svmlight, .libsvm, .txt or a name without an ending, each plain or
followed by .gz, .bz2 or .xz; query ids (qid) are kept.
"""
_GENERATE_EXAMPLES = """\
examples:
  widemargin generate ndc big.parquet --rows 7000000 --features 32 --seed 1
  widemargin generate ndc test.parquet --rows 70000 --features 32 --seed 1 --part test
  widemargin generate ndc shards --rows 7000000 --dtype float32
  widemargin generate ndc small.svm.gz --rows 10000 --expand 1

ndc: normally distributed clusters, rows of integers around random centers, labelled 1
or -1 by the side of a plane that their center is on. A million rows take some seconds,
as compressed text a minute; memory does not grow with them. The same seed gives the
same rows, and fewer rows are the first of more.

FILE ends in .parquet (columns x0, x1, ... and label), or in .svm, .svmlight, .libsvm or
.txt, perhaps followed by .gz, .bz2 or .xz (svmlight text), or has no ending: a new
folder of shards X-00000.npy, y-00000.npy, ... of a million rows each.
"""
_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30}
_LEAST_BYTES = 1 << 14
_GUESS = "0 if an index is 0, else 1"


def parse(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """Arguments of a command; exits with a sentence where they are wrong."""
    options, unknown = _parser().parse_known_args(arguments)
    if unknown:  # argparse would point to the help that does not list the options
        options.parser.error(_unknown(unknown[0], options.parser.format_usage()))
    return options


def _unknown(word: str, usage: str) -> str:
    """What to say about an argument that a command does not know."""
    if not word.startswith("-"):
        return f"unexpected argument {word!r}"
    known = re.findall(r"--?[A-Za-z][\w-]*", usage)
    names = {option.lstrip("-"): option for option in known}  # dashes are alike in all
    given = word.split("=")[0].lstrip("-")
    near = difflib.get_close_matches(given, names, n=1, cutoff=0.7)
    meant = f" (did you mean {names[near[0]]}?)" if near else ""
    return f"unknown option {word}{meant}"


class _Parser(argparse.ArgumentParser):
    """Errors in one line, with the exit status of bad usage."""

    def error(self, message: str) -> NoReturn:
        note(f"{message} (see {self.prog} --help)", self.prog)
        sys.exit(BAD_INPUT)

    def _print_message(self, message: str, file: Any = None) -> None:
        """Print help and version; argparse would keep quiet about errors."""
        if file is sys.stdout:
            say(message)
        else:
            super()._print_message(message, file)


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="widemargin",
        description="Support vector machines with a certified duality gap.",
        epilog=_EXIT_STATUS,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=__version__)
    commands = parser.add_subparsers(metavar="COMMAND", required=True)
    _add_train(_command(commands, "train", "train a model", _TRAIN_EXAMPLES))
    _add_predict(_command(commands, "predict", "apply a model", _PREDICT_EXAMPLES))
    _add_inspect(_command(commands, "inspect", "describe a model", _INSPECT_EXAMPLES))
    what = "convert a model or data"
    _add_convert(_command(commands, "convert", what, _CONVERT_EXAMPLES))
    what = "make up data of any size"
    _add_generate(_command(commands, "generate", what, _GENERATE_EXAMPLES))
    return parser


def _command(commands: Any, name: str, what: str, examples: str) -> Any:
    command = commands.add_parser(
        name,
        help=what,
        description=f"{what[0].upper()}{what[1:]}.",
        epilog=examples,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    command.set_defaults(command=name, parser=command)
    return command


def _add_train(train: Any) -> None:
    add = train.add_argument
    add("data", metavar="DATA", help="svmlight file to train on")
    add("model", metavar="MODEL", help="file to write the model to")
    add("--test", metavar="FILE", help="svmlight file to measure accuracy on")
    add("--report", metavar="FILE.html", help="write a page with pictures")
    add(
        "--kernel", type=_kernel, default="linear", help='only "linear" in this version'
    )
    add("-C", type=_positive, default=1.0, help="weight of the losses (1)")
    # These choices are in widemargin.problem, too, which is slow to import.
    add(
        "--loss",
        choices=("hinge", "squared_hinge"),
        default="hinge",
        help="loss of a row (hinge)",
    )
    add(
        "--intercept",
        choices=("free", "penalized", "none", "auto"),
        default="auto",
        help="auto: free for hinge, penalized for squared_hinge",
    )
    add("--class-weight", choices=("balanced",), help="let all classes weigh the same")
    _add_solving(train)
    _add_json(train)
    _add_reading(train, f"auto: {_GUESS}; the test file is read alike")


def _add_solving(train: Any) -> None:
    add = train.add_argument
    add(
        "--solver",
        type=_solver,
        default="auto",
        metavar="NAME",
        help="auto (chooses and says why), augmented_lagrangian, coordinate_descent "
        "or interior_point (auto)",
    )
    add(
        "--tol",
        type=_share,
        default=1e-4,
        help="relative duality gap to reach, at most 1 (1e-4)",
    )
    add("--max-iter", type=_count, metavar="N", help="iterations at most")
    add("--time-limit", type=_positive, metavar="S", help="seconds of training at most")
    add(
        "--memory-limit",
        type=_bytes,
        metavar="SIZE",
        help="for temporary arrays: bytes, or with K, M or G, such as 500M",
    )


def _add_predict(predict: Any) -> None:
    add = predict.add_argument
    add("model", metavar="MODEL", help="file written by train")
    add("data", metavar="DATA", help="svmlight file; labels are ignored")
    add("--scores", action="store_true", help="decision values instead of labels")
    add("--output", metavar="FILE", help="write there, not to the screen")
    _add_reading(predict, f"auto: as in training if the model knows, or {_GUESS}")


def _add_inspect(inspect: Any) -> None:
    inspect.add_argument("model", metavar="MODEL", help="file written by train")
    _add_json(inspect)


def _add_convert(convert: Any) -> None:
    add = convert.add_argument
    add("input", metavar="IN", help="model (.wm, LIBLINEAR) or svmlight file")
    add("output", metavar="OUT", help="the ending says the format")
    _add_reading(convert, f"auto: {_GUESS}; of data only")


def _add_generate(generate: Any) -> None:
    add = generate.add_argument
    add("kind", choices=("ndc",), help="normally distributed clusters")
    add("output", metavar="FILE", help="the ending says the format")
    add("--rows", type=_count, required=True, metavar="M", help="number of rows")
    add("--features", type=_count, default=32, metavar="N", help="columns (32)")
    add("--seed", type=_seed, default=0, metavar="S", help="same seed, same rows (0)")
    # These choices and defaults are in widemargin.data.ndc, too, which is slow to
    # import.
    add(
        "--part",
        choices=("train", "test"),
        default="train",
        help="test: other rows of the same centers (train)",
    )
    add(
        "--expand",
        type=_positive,
        default=10.0,
        metavar="E",
        help="the larger, the more rows on the wrong side of the plane (10)",
    )
    add("--centers", type=_count, default=20, metavar="K", help="clusters (20)")
    add(
        "--dtype",
        choices=("int16", "float32", "float64"),
        help="of the numbers in Parquet and shards (int16)",
    )


def _add_json(command: Any) -> None:
    command.add_argument("--json", action="store_true", help="print one JSON object")


def _add_reading(command: Any, base: str) -> None:
    command.add_argument(
        "--index-base",
        type=_index_base,
        metavar="{auto,0,1}",
        help=f"first index of the svmlight file ({base})",
    )
    command.add_argument("--jobs", type=_count, metavar="N", help="threads (all cores)")


# -- values ----------------------------------------------------------------------------


def _positive(text: str) -> float:
    """A positive number."""
    try:
        value = float(text)
    except ValueError:
        value = float("nan")
    if not 0 < value < float("inf"):
        raise argparse.ArgumentTypeError(f"expected a positive number, found {text!r}")
    return value


def _share(text: str) -> float:
    """A positive number up to 1, as the estimators take it."""
    value = _positive(text)
    if value > 1:
        raise argparse.ArgumentTypeError(f"expected at most 1, found {text!r}")
    return value


def _bytes(text: str) -> int:
    """A size in bytes, KiB, MiB or GiB, as large as the estimators need it."""
    form = re.fullmatch(r"(\d+(?:\.\d+)?) ?(?:([KMG])(?:iB)?)?", text, re.ASCII | re.I)
    value = 0.0
    if form:
        value = float(form[1]) * _UNITS[(form[2] or "").upper()]
    if not _LEAST_BYTES <= value < float("inf"):
        raise argparse.ArgumentTypeError(
            f"expected bytes, at least 16K, such as 500M or 2G, found {text!r}"
        )
    return int(value)


def _count(text: str) -> int:
    """A positive whole number."""
    if not (text.isascii() and text.isdigit() and int(text) > 0):
        raise argparse.ArgumentTypeError(
            f"expected a positive whole number, found {text!r}"
        )
    return int(text)


def _seed(text: str) -> int:
    """A whole number from 0 on."""
    if not (text.isascii() and text.isdigit()):
        raise argparse.ArgumentTypeError(
            f"expected a whole number, 0 or larger, found {text!r}"
        )
    return int(text)


def _index_base(text: str) -> int | None:
    """0 or 1, or None for "auto"."""
    bases = {"auto": None, "0": 0, "1": 1}
    if text not in bases:
        raise argparse.ArgumentTypeError(f"expected auto, 0 or 1, found {text!r}")
    return bases[text]


def _kernel(text: str) -> str:
    if text != "linear":
        raise argparse.ArgumentTypeError(
            f"expected 'linear', the only kernel in this version, found {text!r}"
        )
    return text


def _solver(text: str) -> str:
    """Name of a solver; the solvers are imported only to check one."""
    if text != "auto":
        from widemargin.solvers.auto import SOLVERS

        if text not in SOLVERS:
            names = ", ".join(("auto", *SOLVERS))
            raise argparse.ArgumentTypeError(f"expected {names}, found {text!r}")
    return text
