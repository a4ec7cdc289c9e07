"""The arguments of the commands. Imports nothing slow: help comes at once."""

import argparse
import re
import sys
from collections.abc import Sequence
from typing import Any

from widemargin import __version__
from widemargin.cli import examples, values
from widemargin.cli.foreign import explained
from widemargin.cli.parser import Help, Parser
from widemargin.cli.shared_options import (
    FORMATS,
    GUESS,
    add_json,
    add_memory_limit,
    add_reading,
)
from widemargin.cli.train_options import add_train
from widemargin.cli.translated import looks_foreign, translated
from widemargin.parameters import meant


def parse(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """Arguments of a command; exits with a sentence where they are wrong."""
    parser = _parser()
    if not (sys.argv[1:] if arguments is None else arguments):
        parser.refuse_nothing(commands())
    _refuse_foreign(sys.argv[1:] if arguments is None else arguments)
    options, unknown = parser.parse_known_args(arguments)
    if unknown:  # argparse would point to the help that does not list the options
        options.parser.error(_unknown(unknown[0], options.parser.format_usage()))
    values.take_streams(options)
    return options


def _refuse_foreign(words: Sequence[str]) -> None:
    """Answer all options of LIBSVM and LIBLINEAR at once: the same command here."""
    command = commands().get(words[0]) if looks_foreign(words) else None
    if command is not None:
        actions = [a for a in command.listed() if a.nargs == 0]
        flags = [name for action in actions for name in action.option_strings]
        if said := translated(words, flags):
            command.error(said)


def commands() -> dict[str, Any]:
    """The parsers of the commands, by name."""
    found = next(a for a in _parser().listed() if a.dest == "command_name")
    return dict(found.choices)


def _unknown(word: str, usage: str) -> str:
    """What to say about an argument that a command does not know."""
    if re.fullmatch(r"[\d.]+(e-?\d+)?", word):
        return f"unexpected argument {word!r} (several values have commas: 0.1,1,10)"
    if not word.startswith("-"):
        return f"unexpected argument {word!r}"
    if said := explained(word):
        return said
    known = re.findall(r"(?<!\w)--?[A-Za-z][\w-]*", usage)
    names = {option.lstrip("-"): option for option in known}  # dashes are alike in all
    given = word.split("=")[0].lstrip("-")
    if near := meant(given, names):
        return f"unknown option {word} (did you mean {names[near]}?)"
    others = (n for n, c in commands().items() if f"--{given}" in c.format_usage())
    other = next(others, "")
    return f"unknown option {word}{other and f' ({other} has it)'}"


def _parser() -> Parser:
    parser = Parser(
        prog="widemargin",
        description="Support vector machines with a certified duality gap.",
        epilog=examples.EXIT_STATUS,
        formatter_class=Help,
    )
    parser.add_argument("--version", action="version", version=__version__)
    commands = parser.add_subparsers(
        metavar="COMMAND", required=True, dest="command_name"
    )
    add_train(_command(commands, "train", "train a model", examples.TRAIN_EXAMPLES))
    _add_predict(
        _command(commands, "predict", "apply a model", examples.PREDICT_EXAMPLES)
    )
    _add_inspect(
        _command(commands, "inspect", "describe a model", examples.INSPECT_EXAMPLES)
    )
    what = "convert a model or data"
    _add_convert(_command(commands, "convert", what, examples.CONVERT_EXAMPLES))
    what = "make up data of any size"
    _add_generate(_command(commands, "generate", what, examples.GENERATE_EXAMPLES))
    what = "print what lets a shell complete the commands"
    completion = _command(commands, "completion", what, examples.COMPLETION_EXAMPLES)
    completion.add_argument("shell", choices=("bash", "zsh"))
    return parser


def _command(commands: Any, name: str, what: str, epilog: str) -> Any:
    command = commands.add_parser(
        name,
        help=what,
        description=f"{what[0].upper()}{what[1:]}.",
        epilog=epilog,
        formatter_class=Help,
    )
    command.set_defaults(command=name, parser=command)
    return command


def _add_predict(predict: Any) -> None:
    add = predict.add_argument
    add("model", metavar="MODEL", help="file written by train")
    add("data", metavar="DATA", help=f"{FORMATS}; labels are ignored")
    add(
        "--label",
        metavar="NAME|NUMBER",
        help="column to leave out, where the model does not know the columns",
    )
    add("--scores", action="store_true", help="decision values instead of labels")
    add(
        "--probability",
        action="store_true",
        help="probabilities of the classes, in the order that inspect shows, instead "
        "of labels; of models that were trained with --probability",
    )
    add("--output", metavar="FILE", help="write there, not to the screen (-)")
    add_memory_limit(predict, "to keep to, such as 500M: as in training")
    add_reading(predict, f"auto: as in training if the model knows, or {GUESS}")


def _add_inspect(inspect: Any) -> None:
    inspect.add_argument("model", metavar="MODEL", help="file written by train")
    add_json(inspect)


def _add_convert(convert: Any) -> None:
    add = convert.add_argument
    add("input", metavar="IN", help="model (.wm, LIBSVM, LIBLINEAR) or svmlight file")
    add("output", metavar="OUT", help="the ending says the format")
    add(
        "--format",
        choices=("liblinear", "libsvm"),
        help="of a .model (liblinear where it has weights of the columns, and not of "
        "pairs of classes; else libsvm)",
    )
    add_reading(convert, f"auto: {GUESS}; of data only")


def _add_generate(generate: Any) -> None:
    add = generate.add_argument
    add("kind", choices=("ndc",), help="normally distributed clusters")
    add("output", metavar="FILE", help="the ending says the format")
    add("--rows", type=values.count, required=True, metavar="M", help="number of rows")
    add("--features", type=values.count, default=32, metavar="N", help="columns (32)")
    add(
        "--seed",
        type=values.seed,
        default=0,
        metavar="S",
        help="same seed, same rows (0)",
    )
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
        type=values.positive,
        default=10.0,
        metavar="E",
        help="the larger, the more rows on the wrong side of the plane (10)",
    )
    add("--centers", type=values.count, default=20, metavar="K", help="clusters (20)")
    add(
        "--dtype",
        choices=("int16", "float32", "float64"),
        help="of the numbers in Parquet and shards (int16)",
    )
