"""Command line: train, predict, inspect and convert.

Results go to standard output, progress and errors to standard error. Exit status: 0 for
a solved problem, 1 for an answer that is usable but not as good as asked, 2 for bad
usage or bad input, which one line explains.
"""

import argparse
import json
import os
import sys
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

import widemargin
from widemargin.data.svmlight import load_svmlight, save_svmlight
from widemargin.estimators import LinearSVC
from widemargin.io.liblinear import read_liblinear, write_liblinear
from widemargin.io.model_file import MAGIC, load_model, save_model
from widemargin.io.onnx import write_onnx
from widemargin.model import Model
from widemargin.problem import INTERCEPTS, LOSSES
from widemargin.progress import Printer
from widemargin.report import write_report
from widemargin.solvers.auto import SOLVERS

SOLVED, NOT_TO_TOL, BAD_INPUT, KILLED = 0, 1, 2, 130

_TRAIN_EXAMPLES = """\
examples:
  widemargin train adult.svm adult.wm --test adult.test.svm
  widemargin train adult.svm.xz adult.wm -C 10 --tol 1e-6 --report adult.html
  widemargin train big.svm big.wm --loss squared_hinge --time-limit 600 --json

The data are svmlight/LIBSVM text ("label index:value ..."), plain or compressed with
gzip, bzip2 or xz. Ctrl-C stops, and saves the best model so far with its gap.
"""
_PREDICT_EXAMPLES = """\
examples:
  widemargin predict adult.wm new.svm > labels.txt
  widemargin predict adult.wm new.svm --scores --output scores.txt
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
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; the exit status."""
    try:
        options = _parser().parse_args(arguments)
        status: int = options.run(options)
        return status
    except (ValueError, TypeError, ImportError) as error:
        return _fail(str(error))
    except OSError as error:
        return _fail(_describe(error))
    except KeyboardInterrupt:
        return KILLED


def _fail(sentence: str) -> int:
    print(f"widemargin: {sentence}", file=sys.stderr)
    return BAD_INPUT


def _describe(error: OSError) -> str:
    """One sentence for an operating system error."""
    if error.filename is None or error.strerror is None:
        return str(error)
    return f"{error.filename}: {error.strerror.lower()}"


# -- the commands ----------------------------------------------------------------------


def _train(options: argparse.Namespace) -> int:
    """Train, test, save, report."""
    for path in (options.model, options.report):
        _check_output(path, options.data)
    X, y = _read(options, options.data)
    test = _read(options, options.test, n_features=X.shape[1]) if options.test else None
    printer = Printer(options.tol, _n_problems(y), delay=1.0, terminal_only=True)
    classifier = LinearSVC(
        C=options.C,
        loss=options.loss,
        intercept=options.intercept,
        solver=options.solver,
        class_weight=options.class_weight,
        tol=options.tol,
        max_iter=options.max_iter,
        time_limit=options.time_limit,
        memory_limit=options.memory_limit,
        n_jobs=options.jobs,
        callback=printer,
    )
    _fit(classifier, printer, X, y)
    save_model(classifier, options.model)
    facts = _facts(classifier, X, test)
    if options.report:
        write_report(options.report, classifier, X, y, test=test)
    if options.json:
        print(json.dumps({**facts, "model": options.model, "report": options.report}))
    else:
        _print_training(options, classifier, facts)
    return SOLVED if classifier.status_ == "solved" else NOT_TO_TOL


def _fit(classifier: LinearSVC, printer: Printer, X: Any, y: Any) -> None:
    """Fit; a first Ctrl-C leaves the best model so far."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the status is told at the end
            classifier.fit(X, y)
    except KeyboardInterrupt:
        if not hasattr(classifier, "solutions_"):
            raise
    finally:
        printer.close()


def _facts(classifier: LinearSVC, X: Any, test: Any) -> dict[str, Any]:
    """What there is to say about a training."""
    solution = classifier.solution_
    facts: dict[str, Any] = {
        "rows": X.shape[0],
        "features": X.shape[1],
        "nonzero": X.nnz / (X.shape[0] * X.shape[1]),
        "classes": classifier.classes_.tolist(),
        "status": classifier.status_,
        "relative_gap": classifier.dual_gap_,
        "tol": classifier.tol,
        "primal": [s.certificate.primal for s in classifier.solutions_],
        "dual": [s.certificate.dual for s in classifier.solutions_],
        "support_vectors": int(classifier.support_.size),
        "iterations": classifier.n_iter_,
        "seconds": max(s.seconds for s in classifier.solutions_),
        "solver": solution.solver,
        "reason": solution.reason,
        "message": max(
            classifier.solutions_, key=lambda s: s.certificate.relative_gap
        ).message,
    }
    if test is not None:
        facts["test_rows"] = test[0].shape[0]
        facts["accuracy"] = float(classifier.score(*test))
    return facts


def _print_training(
    options: argparse.Namespace, classifier: LinearSVC, facts: dict[str, Any]
) -> None:
    print(
        f"{options.data}: {facts['rows']:,} rows x {facts['features']:,} features, "
        f"{100 * facts['nonzero']:.3g} % nonzero, {len(facts['classes'])} classes"
    )
    if len(classifier.solutions_) == 1:
        print(classifier.solution_)
    else:
        print(
            f"{len(classifier.solutions_)} problems, one class against the rest: "
            f"{facts['status']} to a relative gap of {facts['relative_gap']:.1e} "
            f"(asked: {facts['tol']:.0e}) in {facts['seconds']:.2g} s by "
            f"{facts['solver']}.\nsupport vectors {facts['support_vectors']:,}"
        )
    if facts["status"] != "solved":
        print(facts["message"])
    if "accuracy" in facts:
        share = f"{100 * facts['accuracy']:.2f} %"
        print(f"accuracy {share} on {options.test} ({facts['test_rows']:,} rows)")
    print(f"model: {options.model}")
    if options.report:
        print(f"report: {options.report}")


def _predict(options: argparse.Namespace) -> int:
    """Write a label, or scores, for every row."""
    _check_output(options.output, options.data)
    model = load_model(options.model)
    X, _ = _read(options, options.data, n_features=model.n_features)
    scores = model.decision_function(X)
    if options.scores:
        rows = scores.reshape(len(scores), -1)
        lines = [" ".join(map(repr, row)) for row in rows.tolist()]
    else:
        lines = [_label(label) for label in model.decide(scores).tolist()]
    text = "".join(f"{line}\n" for line in lines)
    if options.output:
        Path(options.output).write_text(text, encoding="utf-8")
    else:
        sys.stdout.write(text)
    return SOLVED


def _label(label: Any) -> str:
    """A label as text: whole numbers without a point, as svmlight files have them."""
    whole = isinstance(label, float) and label.is_integer()
    return str(int(label)) if whole else str(label)


def _inspect(options: argparse.Namespace) -> int:
    """Say what a model is."""
    model = load_model(options.model)
    W = np.stack([decision.w for decision in model.decisions])
    facts = {
        "classes": model.classes.tolist(),
        "scheme": model.scheme,
        "features": model.n_features,
        "nonzero_weights": int(np.count_nonzero(W.any(axis=0))),
        "intercepts": [decision.b for decision in model.decisions],
        **model.meta,
    }
    if options.json:
        print(json.dumps(facts))
        return SOLVED
    names = model.meta.get("feature_names") or [str(j) for j in range(W.shape[1])]
    size = np.abs(W).max(axis=0)
    largest = np.argsort(-size, kind="stable")[:10]
    kind = "" if "feature_names" in model.meta else " of columns, counted from 0"
    facts[f"largest_weights{kind}"] = ", ".join(
        f"{names[j]} ({size[j]:.3g})" for j in largest
    )
    facts.pop("feature_names", None)
    width = max(map(len, facts))
    for name, value in facts.items():
        print(f"{name.replace('_', ' '):{width}}  {value}")
    return SOLVED


def _convert(options: argparse.Namespace) -> int:
    """Convert a model to another format, or data to another text."""
    _check_output(options.output, options.input)
    model = _read_model(options.input)
    if model is None:
        X, y = _read(options, options.input)
        save_svmlight(X, y, options.output)
        return SOLVED
    writers = {".wm": save_model, ".model": write_liblinear, ".onnx": write_onnx}
    ending = Path(options.output).suffix
    if ending not in writers:
        raise ValueError(
            f"{options.output}: expected a name that ends in {', '.join(writers)} "
            f"for a model, found {ending or 'no ending'!r}"
        )
    writers[ending](model, options.output)
    return SOLVED


def _read_model(path: str) -> Model | None:
    """The model in a file, or None if the file holds none."""
    try:
        with open(path, "rb") as file:
            head = file.read(64)
    except FileNotFoundError:
        return None  # reading it as data tells what is wrong
    if head.startswith(MAGIC):
        return load_model(path)
    if head.startswith(b"solver_type"):
        return read_liblinear(path)
    return None


# -- files -----------------------------------------------------------------------------


def _read(options: argparse.Namespace, path: str, n_features: int | None = None) -> Any:
    """Data of a file: X and y."""
    base: Any = {"auto": "auto", "0": True, "1": False}[options.index_base]
    return load_svmlight(
        path, n_features=n_features, zero_based=base, n_jobs=options.jobs
    )


def _check_output(path: str | None, source: str) -> None:
    """Refuse an output that cannot be written, before any work is done."""
    if path is None:
        return
    folder = Path(path).absolute().parent
    if not folder.is_dir():
        raise ValueError(f"{path}: there is no folder {folder}")
    if not os.access(folder, os.W_OK) or Path(path).is_dir():
        raise ValueError(f"{path}: cannot be written")
    if Path(path).exists() and Path(source).exists() and Path(path).samefile(source):
        raise ValueError(f"{path}: would overwrite the input")


def _n_problems(y: Any) -> int:
    classes = len(np.unique(y))
    return 1 if classes <= 2 else classes


# -- the arguments ---------------------------------------------------------------------


class _Parser(argparse.ArgumentParser):
    """Errors in one line, with the exit status of bad usage."""

    def error(self, message: str) -> NoReturn:
        print(f"{self.prog}: {message} (see {self.prog} --help)", file=sys.stderr)
        sys.exit(BAD_INPUT)


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="widemargin",
        description="Support vector machines with a certified duality gap.",
        epilog="See widemargin COMMAND --help for options and examples.",
    )
    parser.add_argument("--version", action="version", version=widemargin.__version__)
    commands = parser.add_subparsers(metavar="COMMAND", required=True)

    train = _command(commands, "train", _train, "train a model", _TRAIN_EXAMPLES)
    train.add_argument("data", metavar="DATA", help="svmlight file to train on")
    train.add_argument("model", metavar="MODEL", help="file to write the model to")
    train.add_argument(
        "--test", metavar="FILE", help="svmlight file to measure accuracy on"
    )
    train.add_argument(
        "--kernel", type=_kernel, default="linear", help='only "linear" in this version'
    )
    train.add_argument(
        "-C", type=_positive, default=1.0, help="weight of the losses (1)"
    )
    train.add_argument(
        "--loss", choices=LOSSES, default="hinge", help="loss of a row (hinge)"
    )
    train.add_argument(
        "--intercept",
        choices=INTERCEPTS,
        default="auto",
        help="auto: free for hinge, penalized for squared_hinge",
    )
    train.add_argument(
        "--solver", choices=("auto", *SOLVERS), default="auto", help="how (auto)"
    )
    train.add_argument(
        "--class-weight", choices=("balanced",), help="let all classes weigh the same"
    )
    train.add_argument(
        "--tol",
        type=_positive,
        default=1e-4,
        help="relative duality gap to reach (1e-4)",
    )
    train.add_argument(
        "--max-iter", type=_count, metavar="N", help="iterations at most"
    )
    train.add_argument(
        "--time-limit", type=_positive, metavar="S", help="seconds of training at most"
    )
    train.add_argument(
        "--memory-limit", type=_count, metavar="BYTES", help="for temporary arrays"
    )
    train.add_argument(
        "--report", metavar="FILE.html", help="write a page with pictures"
    )
    _add_json(train)
    _add_reading(train)

    predict = _command(
        commands, "predict", _predict, "apply a model", _PREDICT_EXAMPLES
    )
    predict.add_argument("model", metavar="MODEL", help="file written by train")
    predict.add_argument(
        "data", metavar="DATA", help="svmlight file; labels are ignored"
    )
    predict.add_argument(
        "--scores", action="store_true", help="decision values instead of labels"
    )
    predict.add_argument(
        "--output", metavar="FILE", help="write there, not to the screen"
    )
    _add_reading(predict)

    inspect = _command(
        commands, "inspect", _inspect, "describe a model", _INSPECT_EXAMPLES
    )
    inspect.add_argument("model", metavar="MODEL", help="file written by train")
    _add_json(inspect)

    convert = _command(
        commands, "convert", _convert, "convert a model or data", _CONVERT_EXAMPLES
    )
    convert.add_argument(
        "input", metavar="IN", help="model (.wm, LIBLINEAR) or svmlight file"
    )
    convert.add_argument("output", metavar="OUT", help="the ending says the format")
    _add_reading(convert)
    return parser


def _command(commands: Any, name: str, run: Any, what: str, examples: str) -> Any:
    command = commands.add_parser(
        name,
        help=what,
        description=f"{what[0].upper()}{what[1:]}.",
        epilog=examples,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    command.set_defaults(run=run)
    return command


def _add_json(command: Any) -> None:
    command.add_argument("--json", action="store_true", help="print one JSON object")


def _add_reading(command: Any) -> None:
    command.add_argument(
        "--index-base",
        choices=("auto", "0", "1"),
        default="auto",
        help="first index of the svmlight file (auto: 0 if an index is 0, else 1)",
    )
    command.add_argument("--jobs", type=_count, metavar="N", help="threads (all cores)")


def _positive(text: str) -> float:
    """A positive number."""
    try:
        value = float(text)
    except ValueError:
        value = float("nan")
    if not 0 < value < float("inf"):
        raise argparse.ArgumentTypeError(f"expected a positive number, found {text!r}")
    return value


def _count(text: str) -> int:
    """A positive whole number."""
    if not (text.isascii() and text.isdigit() and int(text) > 0):
        raise argparse.ArgumentTypeError(
            f"expected a positive whole number, found {text!r}"
        )
    return int(text)


def _kernel(text: str) -> str:
    if text != "linear":
        raise argparse.ArgumentTypeError(
            f"expected 'linear', the only kernel in this version, found {text!r}"
        )
    return text
