"""The arguments of the commands. Imports nothing slow: help comes at once."""

import argparse
import re
import sys
import textwrap
from collections.abc import Sequence
from typing import Any, NoReturn

from widemargin import __version__
from widemargin.cli import examples, values
from widemargin.cli.foreign import explained
from widemargin.cli.output import BAD_INPUT, note, say
from widemargin.cli.translated import looks_foreign, translated
from widemargin.kernels.table import GAMMAS, NAMES, having
from widemargin.models.schemes import SCHEMES, SHAPES
from widemargin.parameters import meant

_FORMATS = (
    "svmlight text (- for standard input), .csv, .npy, .parquet, or a folder of the "
    "last two"
)
_GUESS = "0 if an index is 0, else 1"


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
    if not word.startswith("-"):
        return f"unexpected argument {word!r}"
    if said := explained(word):
        return said
    known = re.findall(r"--?[A-Za-z][\w-]*", usage)
    names = {option.lstrip("-"): option for option in known}  # dashes are alike in all
    given = word.split("=")[0].lstrip("-")
    if near := meant(given, names):
        return f"unknown option {word} (did you mean {names[near]}?)"
    others = (n for n, c in commands().items() if f"--{given}" in c.format_usage())
    other = next(others, "")
    return f"unknown option {word}{other and f' ({other} has it)'}"


class _Parser(argparse.ArgumentParser):
    """Errors in one line, with the exit status of bad usage."""

    def error(self, message: str) -> NoReturn:
        note(f"{message} (see {self.prog} --help)", self.prog)
        sys.exit(BAD_INPUT)

    def refuse_nothing(self, known: dict[str, Any]) -> NoReturn:
        """Say which commands there are, a line each."""
        note(f"expected a command (see {self.prog} COMMAND --help):", self.prog)
        for name, command in known.items():
            self._print_message(f"  {name:12}{command.description}\n", sys.stderr)
        sys.exit(BAD_INPUT)

    def listed(self) -> list[Any]:
        """The arguments, for those who write about them."""
        return list(self._actions)

    def _check_value(self, action: Any, value: Any) -> None:
        """Refuse what is no choice; says which one may be meant."""
        if action.choices is not None and value not in action.choices:
            words = [str(choice) for choice in action.choices]
            raise argparse.ArgumentError(action, values.refusal(str(value), words))

    def _print_message(self, message: str, file: Any = None) -> None:
        """Print help and version; argparse would keep quiet about errors."""
        if file is sys.stdout:
            say(message)
        else:
            super()._print_message(message, file)


class _Help(argparse.RawDescriptionHelpFormatter):
    """Help in the width of the terminal, but for lists and commands."""

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        """Paragraphs wrapped; those with indented lines are kept."""
        parts = text.strip("\n").split("\n\n")
        wrapped = (p if "\n  " in p else textwrap.fill(p, width) for p in parts)
        return "\n\n".join(wrapped) + "\n"

    def _metavar_formatter(self, action: argparse.Action, default_metavar: str) -> Any:
        """Many choices are in the help text: they would be one word, in two places."""
        if action.metavar is None and _has_many(action):
            return lambda size: ("NAME",) * size
        return super()._metavar_formatter(action, default_metavar)

    def _get_help_string(self, action: argparse.Action) -> str | None:
        """The help text, with many choices."""
        said = super()._get_help_string(action)
        return f"%(choices)s; {said}" if said and _has_many(action) else said


# Letters of all choices of an option that are shown in its usage.
_SHOWN = 40


def _has_many(action: argparse.Action) -> bool:
    """Whether an option has more choices than fit in its usage."""
    named = action.option_strings and action.choices is not None
    return bool(named) and len("".join(map(str, action.choices or ()))) > _SHOWN


def _parser() -> _Parser:
    parser = _Parser(
        prog="widemargin",
        description="Support vector machines with a certified duality gap.",
        epilog=examples.EXIT_STATUS,
        formatter_class=_Help,
    )
    parser.add_argument("--version", action="version", version=__version__)
    commands = parser.add_subparsers(
        metavar="COMMAND", required=True, dest="command_name"
    )
    _add_train(_command(commands, "train", "train a model", examples.TRAIN_EXAMPLES))
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
        formatter_class=_Help,
    )
    command.set_defaults(command=name, parser=command)
    return command


def _add_train(train: Any) -> None:
    _add_machine(train)
    _add_where(train)
    _add_scale(train)
    _add_kernel(train)
    _add_smaller(train)
    _add_approximation(train)
    _add_strength(train)
    _add_loss(train)
    _add_classes(train)
    _add_weights(train)
    _add_columns(train)
    _add_solving(train)
    _add_json(train)
    _add_reading(train, f"auto: {_GUESS}; the test file is read alike")


def _add_machine(train: Any) -> None:
    """The files, and what the labels are to the machine."""
    add = train.add_argument
    add("data", metavar="DATA", help=f"to train on: {_FORMATS}")
    add("model", metavar="MODEL", help="file to write the model to")
    # These choices, and the losses below, are in widemargin.cli.machines, which is slow
    # to import.
    add(
        "--type",
        choices=("classify", "regress", "one-class", "nu", "nu-regress"),
        default="classify",
        help="classify: labels are classes; regress: labels are numbers to predict; "
        "one-class: labels are not looked at, predictions are -1 for outliers; nu: "
        "classes, with --nu in the place of C; nu-regress: numbers, with --nu in the "
        "place of --epsilon (classify)",
    )
    add("--test", metavar="DATA", help="of the same kind, to measure the errors on")
    add("--report", metavar="FILE.html", help="write a page with pictures")


def _add_where(train: Any) -> None:
    """Which workers train, where it is not this process."""
    add = train.add_argument
    add(
        "--cluster",
        metavar="URL",
        help="train on a Dask cluster (tcp://...), whose workers read DATA: .npy, or a "
        "folder of shards",
    )
    add(
        "--workers",
        type=values.count,
        metavar="N",
        help="the same with N workers of this machine",
    )


def _add_scale(train: Any) -> None:
    # These choices are in widemargin.features.scaling, too, which is slow to import.
    train.add_argument(
        "--scale",
        choices=("standard", "minmax", "maxabs"),
        help="scale the columns: to mean 0 and deviation 1, from 0 to 1, or by their "
        "largest size; learned on DATA and kept in the model, with --cv also on the "
        "training rows of each fold; data with zeros that are not stored are scaled "
        "without a shift (none)",
    )


def _add_strength(train: Any) -> None:
    """The weight of all losses, and how it is chosen."""
    add = train.add_argument
    add(
        "-C",
        "--C",
        type=values.weights,
        metavar="C",
        help="weight of the losses (1); inf allows none: a hard margin; with --cv "
        "several, such as 0.1,1,10 (ten from 0.01 to 1000)",
    )
    add(
        "--cv",
        type=values.folds,
        metavar="K",
        help="choose C by the accuracy on K folds of the rows, and gamma where --gamma "
        "has several values: prints a table and keeps the best model",
    )


def _add_weights(train: Any) -> None:
    """What classes weigh, and whether scores become probabilities."""
    add = train.add_argument
    add(
        "--class-weight",
        type=values.class_weights,
        metavar="LABEL:FACTOR,...",
        help="factors of C by class, such as 1:2,-1:0.5 (others: 1); balanced: all "
        "classes weigh the same (none)",
    )
    add(
        "--probability",
        action="store_true",
        help="keep in the model what makes probabilities of scores: sigmoids, fitted "
        "to the scores of rows that a fold held out (--cv 5, if not said; of --type nu "
        "always five folds); predict --probability prints them",
    )


def _add_loss(train: Any) -> None:
    """What a row costs, and the intercept."""
    add = train.add_argument
    # The choices are in `LOSSES` and `INTERCEPTS` too, which are slow to import.
    add(
        "--loss",
        choices=(
            "hinge",
            "squared_hinge",
            "epsilon_insensitive",
            "squared_epsilon_insensitive",
        ),
        help="loss of a row (squared_hinge, as LinearSVC; with a kernel hinge, as SVC; "
        "not with --budget, which has --norm; of --type regress epsilon_insensitive)",
    )
    add(
        "--epsilon",
        type=values.nonnegative,
        metavar="E",
        help="of --type regress: errors up to this cost nothing, in the units of the "
        "targets (0, as LinearSVR; with a kernel 0.1, as SVR)",
    )
    add(
        "--nu",
        type=values.share,
        metavar="NU",
        help="of --type nu, nu-regress and one-class: the share of errors at most, and "
        "of support vectors at least (0.5)",
    )
    add(
        "--intercept",
        choices=("free", "penalized", "none", "auto"),
        default="auto",
        help="auto: free for hinge and epsilon_insensitive, penalized for squares",
    )


def _add_classes(train: Any) -> None:
    """How more than two classes are told apart."""
    add = train.add_argument
    add(
        "--multi-class",
        choices=SCHEMES,
        help="more than two classes: one against the rest, one against one, or a "
        "directed acyclic graph of pairs (ovr; with a kernel or a budget ovo)",
    )
    add(
        "--decision-shape",
        choices=SHAPES,
        help="scores of classes, or of pairs of classes (ovr)",
    )
    add(
        "--break-ties",
        action="store_true",
        help="of ovo: scores choose among classes with as many votes",
    )


def _add_kernel(train: Any) -> None:
    add = train.add_argument
    add(
        "--kernel",
        choices=NAMES,
        default="linear",
        help="others than linear, without --rank, hold the data in memory (linear)",
    )
    add(
        "--gamma",
        type=values.gammas,
        help=f"{_of_kernels('gamma')}: a number, {', '.join(GAMMAS[:-1])} or "
        f"{GAMMAS[-1]} (scale); with --cv several, such as 0.01,0.1",
    )
    add("--degree", type=values.count, metavar="D", help=f"{_of_kernels('degree')} (3)")
    add(
        "--coef0",
        type=values.number,
        metavar="R",
        help=f"{_of_kernels('coef0')} (0)",
    )


def _of_kernels(parameter: str) -> str:
    """Which kernels have a parameter, for a help text."""
    names = having(parameter)
    if len(names) > len(NAMES) / 2:
        return f"of kernels but {' and '.join(k for k in NAMES if k not in names)}"
    return f"of the kernel{'s' * (len(names) > 1)} {' and '.join(names)}"


def _add_smaller(train: Any) -> None:
    """What makes a kernel model smaller."""
    add = train.add_argument
    add(
        "--budget",
        type=values.budget,
        metavar="B",
        help="support vectors of a kernel model at most, of each pair of classes: a "
        "number or a share of the rows (all)",
    )
    add(
        "--method",
        choices=("pursuit", "prune", "norm"),
        help="of --budget: chosen rows and a refit; the largest coefficients of the "
        "machine of Dekel and Singer; or that machine, whose support vectors are not "
        "bounded (pursuit)",
    )
    add(
        "--norm",
        choices=("l1", "l2"),
        help="of --budget: the losses, or their squares (l1)",
    )


def _add_approximation(train: Any) -> None:
    """What makes the work for a kernel model smaller."""
    add = train.add_argument
    add(
        "--rank",
        type=values.rank,
        metavar="R",
        help="rank of a kernel matrix that takes the place of the whole one, or the "
        "share of its trace that may be left; auto: where the exact one takes too long "
        "for --time-limit, or has no room in memory (none)",
    )
    # These choices are in widemargin.features.methods, too, which is slow to import.
    add(
        "--approximation",
        choices=("auto", "cholesky", "nystroem", "eigen", "fourier", "polynomial"),
        default="auto",
        help="how that is made (auto: nystroem, or cholesky for a share)",
    )
    add(
        "--certify",
        choices=("approximate", "exact"),
        default="approximate",
        help="exact: bound the optimum with the whole kernel matrix, whatever the rank",
    )


def _add_solving(train: Any) -> None:
    add = train.add_argument
    add(
        "--solver",
        type=values.solver,
        default="auto",
        metavar="NAME",
        help="auto (chooses and says why), active_set, augmented_lagrangian, "
        "coordinate_descent or interior_point; with a kernel irwls, frank_wolfe or "
        "core_vector; batch (small problems at once)",
    )
    add(
        "--solver-option",
        type=values.assignment,
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="option of that solver, such as mode=asvm; may be given several times",
    )
    add(
        "--tol",
        type=values.share,
        default=1e-4,
        help="relative duality gap to reach, at most 1 (1e-4)",
    )
    add("--max-iter", type=values.count, metavar="N", help="iterations at most")
    add(
        "--time-limit",
        type=values.positive,
        metavar="S",
        help="seconds of training at most",
    )
    _add_checkpoint(train)
    _add_memory_limit(
        train,
        "that training may take, such as 500M (K, M, G, T): of arrays and Parquet only "
        "blocks are in memory, and row vectors that do not fit are in temporary files "
        "(TMPDIR); text larger than a quarter of it is first converted to such files; "
        "of text in memory, it limits what comes on top of the data",
    )


def _add_checkpoint(train: Any) -> None:
    add = train.add_argument
    add(
        "--checkpoint",
        metavar="FILE",
        help="save the run there, so that --resume can go on with it",
    )
    add(
        "--checkpoint-every",
        type=values.positive,
        metavar="S",
        help="seconds between two saves (60)",
    )
    add(
        "--resume",
        action="store_true",
        help="go on from the checkpoint, if there is one (MODEL.checkpoint, which is "
        "also written then, unless --checkpoint says another)",
    )


def _add_columns(train: Any) -> None:
    add = train.add_argument
    which = "NAME|NUMBER|FILE.npy"
    add(
        "--label",
        metavar=which,
        help="labels: a column of CSV or Parquet by name, or of a .npy matrix by "
        "number (from 0), or a .npy file; the files y-*.npy of a folder are found "
        "without",
    )
    add("--test-label", metavar=which, help="labels of the test data, if not the same")
    add(
        "--weight",
        "--weights",
        metavar=f"{which}|FILE.txt",
        help="weights of the rows, likewise; or a text with a number a line, which "
        "svmlight text may have, too (none)",
    )
    add(
        "--columns",
        type=values.names,
        metavar="NAME,...",
        help="the features of CSV or Parquet (all columns but label and weight)",
    )


def _add_memory_limit(command: Any, words: str) -> None:
    command.add_argument(
        "--memory-limit", type=values.size, metavar="SIZE", help=f"bytes {words}"
    )


def _add_predict(predict: Any) -> None:
    add = predict.add_argument
    add("model", metavar="MODEL", help="file written by train")
    add("data", metavar="DATA", help=f"{_FORMATS}; labels are ignored")
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
    _add_memory_limit(predict, "to keep to, such as 500M: as in training")
    _add_reading(predict, f"auto: as in training if the model knows, or {_GUESS}")


def _add_inspect(inspect: Any) -> None:
    inspect.add_argument("model", metavar="MODEL", help="file written by train")
    _add_json(inspect)


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
    _add_reading(convert, f"auto: {_GUESS}; of data only")


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


def _add_json(command: Any) -> None:
    command.add_argument("--json", action="store_true", help="print one JSON object")


def _add_reading(command: Any, base: str) -> None:
    command.add_argument(
        "--index-base",
        type=values.index_base,
        metavar="{auto,0,1}",
        help=f"first index of the svmlight file ({base})",
    )
    command.add_argument(
        "--jobs", type=values.count, metavar="N", help="threads (all cores)"
    )
