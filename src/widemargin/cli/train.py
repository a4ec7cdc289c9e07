"""``widemargin train``: train, test, save, report."""

import argparse
import dataclasses
import glob
import os
import sys
import tempfile
import warnings
import zipfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import numpy as np

from widemargin.cli import cluster, machines, names, reading, weights
from widemargin.cli.datasets import Data, in_memory, read_test, read_training
from widemargin.cli.output import (
    BAD_INPUT,
    INTERRUPTED,
    NOT_TO_TOL,
    SOLVED,
    describe,
    doing,
    note,
    with_options,
)
from widemargin.cli.scaling import read_scaling, say_uneven, scaled
from widemargin.cli.solver_options import made
from widemargin.cli.summary import begin_training, report_training
from widemargin.estimators.classifier import (
    Classifier,
    keep_in_model,
    refuse_negative,
)
from widemargin.estimators.labels import distinct
from widemargin.estimators.multiclass import tasks_of
from widemargin.estimators.progress import Printer
from widemargin.estimators.selected_classifier import SelectedClassifier
from widemargin.kernels.table import PARAMETERS, having
from widemargin.models.model import Model
from widemargin.models.model_file import save_model
from widemargin.models.schemes import PAIRED
from widemargin.report import check_matplotlib
from widemargin.solution import Status
from widemargin.solutions import first_of
from widemargin.solvers.auto import SOLVERS
from widemargin.solvers.driver.checkpoint import Checkpoint
from widemargin.solvers.driver.contract import Solver
from widemargin.solvers.kernel.batch import NAME as BATCH
from widemargin.system.files import check_outputs

# Classes beyond which a note asks whether numbers are targets: most data have fewer
# classes (but letter 26), targets more values. Only the note depends on it.
MANY_CLASSES = 20


def run(options: argparse.Namespace) -> int:
    """Train a model and write it, then say how good it is."""
    _check_options(options)
    solver = made(options.solver, options.solver_option)
    checkpoint = _checkpoint(options)
    _check_files(options, checkpoint)
    if cluster.is_asked(options):
        return _train_there(options, solver)
    data = _read(options)
    try:
        return _train_here(options, data, solver, checkpoint)
    except MemoryError as error:  # a mistaken index makes billions of columns
        m, n = data.X.shape
        size = f"{data.path}, {m:,} rows x {n:,} columns"
        raise MemoryError(f"{size} ({error})" if str(error) else size) from None


def _train_here(
    options: argparse.Namespace,
    data: Data,
    solver: str | Solver,
    checkpoint: Checkpoint | None,
) -> int:
    """Train in this process, with data that were read."""
    test = read_test(options, data)
    _say_many_classes(options, data)
    _say_sorted(options, data)
    say_uneven(options, data)
    scaling = read_scaling(options, data)
    data = scaled(options, data, scaling)
    test = test and scaled(options, test, scaling)
    begin_training(options, data)
    search = _search(options, data, solver) if options.cv else None
    classifier = (
        search.best_estimator_
        if search
        else _fit(options, data, solver=solver, checkpoint=checkpoint)
    )
    _count_as_in_file(classifier, data)
    model = (search or classifier).model_
    model = model if scaling is None else model.scaled(scaling)
    asked = _kept_apart(classifier, options.model)
    options.model = _save(model, asked)
    try:
        if test is not None and _is_interrupted(classifier):  # may take as long again
            note(f"interrupted; {options.test} was not scored")
            test = None
        report_training(options, classifier, data, test, search)
    except KeyboardInterrupt:
        note(f"interrupted; the model was written to {options.model}")
        return INTERRUPTED
    if asked != options.model or classifier.status_ == Status.OUT_OF_MEMORY:
        return BAD_INPUT
    return SOLVED if classifier.status_ == "solved" else NOT_TO_TOL


def _say_many_classes(options: argparse.Namespace, data: Data) -> None:
    """Say that many different numbers are many classes: targets may be meant."""
    if options.type not in ("classify", "nu") or data.y.dtype.kind not in "iuf":
        return
    if (count := len(distinct(data.y))) > MANY_CLASSES:
        note(
            f"{data.path}: the labels are {count:,} different numbers, each of them a "
            "class; --type regress predicts numbers"
        )


def _say_sorted(options: argparse.Namespace, data: Data) -> None:
    """Say that folds of sorted targets have others than the machines are trained on."""
    if options.type != "regress" or options.cv is None or options.cv_seed is not None:
        return
    rising = np.all(data.y[1:] >= data.y[:-1])  # differences of uint8 are no signs
    falling = np.all(data.y[1:] <= data.y[:-1])
    if rising != falling:
        note(
            f"{data.path}: the targets are sorted, and --cv cuts the rows as they "
            "come, so that each fold holds out targets that its training rows do not "
            "have; --cv-seed 0 shuffles them"
        )


def _check_options(options: argparse.Namespace) -> None:
    """Refuse options that do not go together."""
    machines.check_type(options)
    _check_kernel(options)
    _check_solver(options)
    _check_budget(options)
    _check_rank(options)
    _check_classes(options)
    _check_folds(options)


def _check_files(options: argparse.Namespace, checkpoint: Checkpoint | None) -> None:
    """Refuse files that would be written in vain, or over those that are read."""
    beside = options.label, options.weight, options.test_label  # perhaps files
    inputs = [path for path in (options.data, options.test, *beside) if path]
    saved = checkpoint and checkpoint.path
    outputs = [path for path in (options.model, options.report, saved) if path]
    if options.model == os.devnull:
        raise ValueError(
            f"expected a file, found a pipe or device: {os.devnull}; every training "
            "writes its model, and says how long it took without that"
        )
    check_outputs(outputs, inputs)
    names.check_trained(options.model)
    if options.report:
        names.check_report(options.report)
        check_matplotlib()


def _read(options: argparse.Namespace) -> Data:
    """The training data, in memory where the machine needs them there."""
    data = read_training(options)
    options.class_weight = weights.of_classes(options, data.y)
    return in_memory(options, data) if _needs_memory(options) else data


def _needs_memory(options: argparse.Namespace) -> bool:
    """Whether the data are to be in memory: for a whole kernel, or a batch."""
    if options.rank is not None and options.approximation != "eigen":
        return False
    is_linear = options.type not in machines.KERNEL_ONLY and machines.is_linear(options)
    return options.solver == BATCH or not is_linear


def _train_there(options: argparse.Namespace, solver: str | Solver) -> int:
    """Train on a cluster."""
    with cluster.opened(options) as data:
        search = _search(options, data, solver) if options.cv else None
        classifier = search.best_estimator_ if search else None
        classifier = classifier or _fit(options, data, solver=solver)
    asked = _kept_apart(classifier, options.model)
    options.model = _save(classifier.model_, asked)
    report_training(options, classifier, data, None, search)
    if asked != options.model:
        return BAD_INPUT
    return SOLVED if classifier.status_ == "solved" else NOT_TO_TOL


def _check_kernel(options: argparse.Namespace) -> None:
    """Refuse numbers that the kernel does not depend on."""
    for name in ("gamma", "degree", "coef0"):
        value = getattr(options, name)
        if value is not None and name not in PARAMETERS.get(options.kernel, ()):
            raise ValueError(
                f"--{name} goes with --kernel {', '.join(having(name))}, "
                f"found --kernel {options.kernel}"
            )


def _check_solver(options: argparse.Namespace) -> None:
    """Refuse a solver that is not for the machine that is asked for."""
    if options.solver == BATCH and options.rank is not None:
        raise ValueError(f"--solver {BATCH} and --rank cannot go together")
    whole = options.kernel != "linear" and options.rank is None
    if options.type in ("nu", "one-class") or not whole:
        return
    if options.solver in SOLVERS and not SOLVERS[options.solver].for_kernels:
        there = [n for n, kind in SOLVERS.items() if kind.for_kernels and n != "budget"]
        raise ValueError(
            f"--solver {options.solver} is of linear machines; --kernel "
            f"{options.kernel} needs --solver auto, batch, {', '.join(there)}, or a "
            "--rank"
        )


def _check_budget(options: argparse.Namespace) -> None:
    """Refuse what is not there with a budget, or without."""
    if options.budget is None:
        for name in ("method", "norm"):
            if getattr(options, name) is not None:
                raise ValueError(f"--{name} needs --budget")
        return
    if options.loss is not None:
        raise ValueError(
            "--budget and --loss cannot go together: --norm l1 is of the hinge, --norm "
            "l2 of its square"
        )
    allowed = {"solver": ("auto",), "intercept": ("auto", "free")}
    if options.kernel == "linear":
        raise ValueError("--budget needs a kernel other than linear: add --kernel rbf")
    for name, values in allowed.items():
        if getattr(options, name) not in values:
            raise ValueError(
                f"--budget needs --{name} {' or '.join(values)}, "
                f"found --{name} {getattr(options, name)}"
            )


def _check_rank(options: argparse.Namespace) -> None:
    """Refuse a rank, or bounds with the whole matrix, where there are none."""
    if options.rank is None and options.approximation != "auto":
        raise ValueError(f"--approximation {options.approximation} needs --rank")
    given = {"--rank": options.rank, "--certify exact": options.certify == "exact"}
    for name in (name for name, value in given.items() if value):
        if options.kernel == "linear":
            raise ValueError(
                f"{name} needs a kernel other than linear: add --kernel rbf"
            )
        if options.budget is not None:
            raise ValueError(f"{name} and --budget cannot go together")


def _check_classes(options: argparse.Namespace) -> None:
    """Refuse values of pairs of classes where there are none, or ties among them."""
    if options.decision_shape != "ovo":
        return
    linear = options.type == "classify" and machines.is_linear(options)
    own = "ovr" if linear else "ovo"
    if (options.multi_class or own) not in PAIRED:
        raise ValueError("--decision-shape ovo needs --multi-class ovo or dag")
    if options.break_ties:
        raise ValueError("--break-ties and --decision-shape ovo cannot go together")


def _check_folds(options: argparse.Namespace) -> None:
    """Refuse several values without folds, and what is not there with folds."""
    if options.probability and options.decision_shape == "ovo":
        raise ValueError("--probability and --decision-shape ovo cannot go together")
    asked = "--cv"
    if options.probability and options.cv is None and options.type != "nu":
        asked, options.cv = "--probability", 5
        options.C = 1.0 if options.C is None else options.C
    if options.cv is None:
        for name in ("cv_seed", "scoring"):
            if getattr(options, name) is not None:
                raise ValueError(f"--{name.replace('_', '-')} needs --cv")
        for name in ("C", "gamma", "epsilon"):
            if isinstance(getattr(options, name), list):
                raise ValueError(f"several values of --{name} need --cv")
        options.C = 1.0 if options.C is None else options.C
        return
    for name in ("budget", "rank", "checkpoint", "resume"):
        if getattr(options, name):
            raise ValueError(f"{asked} and --{name} cannot go together")
    if float("inf") == options.C:
        raise ValueError(f"{asked} needs a finite -C, found inf")
    if options.certify == "exact":
        raise ValueError(f"{asked} and --certify exact cannot go together")


def _checkpoint(options: argparse.Namespace) -> Checkpoint | None:
    """Where the run is saved; a saved run is not begun anew unasked."""
    every = options.checkpoint_every
    path = options.checkpoint or (options.resume and f"{options.model}.checkpoint")
    if not path:
        if every is not None:
            raise ValueError("--checkpoint-every needs --checkpoint FILE, or --resume")
        return None
    found = [path] if os.path.exists(path) else []
    found += sorted(glob.glob(f"{glob.escape(path)}.[0-9]*"))  # one for each class
    if found and not zipfile.is_zipfile(found[0]):
        raise ValueError(
            f"{found[0]}: is no checkpoint; give --checkpoint another name"
        )
    if found and not options.resume:
        raise ValueError(
            f"{found[0]}: holds a run that was not finished; "
            "add --resume to go on with it, or remove it to begin anew"
        )
    if options.resume and not found:
        note(f"{path}: not there yet; beginning anew")
    return Checkpoint(path) if every is None else Checkpoint(path, every)


def _search(
    options: argparse.Namespace, data: Data, solver: str | Solver
) -> SelectedClassifier:
    """A fitted estimator that has chosen C, and gamma."""
    search: SelectedClassifier = machines.estimator(options, solver)
    search.scale_in_folds(options.scale)  # once more, of rows that are scaled already
    with (
        warnings.catch_warnings(record=True) as caught,
        reading.about(data.path, data.first_index),
    ):
        warnings.simplefilter("always")
        try:
            search.fit(data.X, data.y, data.weights)
        except ValueError as error:
            raise ValueError(with_options(str(error))) from error
    for said in dict.fromkeys(str(warning.message) for warning in caught):
        note(with_options(said))
    return search


def _fit(options: argparse.Namespace, data: Data, **others: Any) -> Classifier:
    """A fitted estimator; after a first Ctrl-C it has the best model so far."""
    classifier: Classifier = machines.estimator(options, **others)
    refuse_negative(classifier)
    problems = _problems(classifier, data)
    printer = Printer(options.tol, problems, delay=1.0, terminal_only=True)
    classifier.set_params(callback=printer)
    try:
        with (
            warnings.catch_warnings(record=True) as caught,
            reading.about(data.path, data.first_index),
        ):
            warnings.simplefilter("ignore")  # the status is told at the end
            for told in ("The kernel is not positive", "Rows of weight 0"):
                warnings.filterwarnings("always", message=told)
            with _making_features(options, printer):
                classifier.fit(data.X, data.y, data.weights)
    except (KeyboardInterrupt, MemoryError) as error:
        found = getattr(classifier, "solutions_", [])
        if not any(solution.w.any() for solution in found):  # zero is no model
            raise
        if isinstance(error, MemoryError):
            note(f"out of memory; the best model so far is kept ({error})")
    finally:
        printer.close()
    for warning in caught:
        note(with_options(str(warning.message)))
    return classifier


@contextmanager
def _making_features(options: argparse.Namespace, printer: Printer) -> Iterator[None]:
    """Say that features are made, until the first step of a solver."""
    if options.rank is None:
        yield
        return
    with ExitStack() as making:
        making.enter_context(doing(f"making the features of rank {options.rank}"))
        printer.before = making.close
        yield


def _problems(classifier: Classifier, data: Data) -> int:
    """How many problems are solved: of a regression one."""
    if not isinstance(classifier, Classifier) or isinstance(data.y, list):
        return 1
    return len(tasks_of(len(distinct(data.y)), classifier.multi_class))


def _is_interrupted(classifier: Classifier) -> bool:
    """Whether Ctrl-C has ended the fit."""
    found = getattr(classifier, "solutions_", [])
    return any(solution.status is Status.INTERRUPTED for solution in found)


def _kept_apart(classifier: Classifier, path: str) -> str:
    """Where a model is written: beside an older file, if Ctrl-C has ended its fit."""
    if not _is_interrupted(classifier) or not os.path.isfile(path):
        return path
    stem, kind = os.path.splitext(path)
    apart = f"{stem}.unfinished{kind}"
    note(f"interrupted; {path} stays as it was, the unfinished model is in {apart}")
    return apart


def _save(model: Model, path: str) -> str:
    """Write the model, elsewhere where the path cannot be written; where it is."""
    try:
        save_model(model, path)
        return path
    except OSError as error:
        reason = describe(error)
    while path := _other_place(reason):
        try:
            save_model(model, path)
            return path
        except (OSError, ValueError) as error:
            reason = describe(error)
    folder = tempfile.mkdtemp(prefix="widemargin-")
    path = os.path.join(folder, "model.wm")
    try:
        save_model(model, path)
    except BaseException:
        os.rmdir(folder)
        raise
    note(f"{reason}; the model was written to {path} instead")
    return path


def _other_place(reason: str) -> str:
    """Where else a person at a terminal wants the model; "" for nowhere, or nobody."""
    if not all(f is not None and f.isatty() for f in (sys.stdin, sys.stderr)):
        return ""
    note(f"{reason}; the model is still in memory")
    note("another file for it (nothing: a temporary one)?")
    return sys.stdin.readline().strip()


def _count_as_in_file(classifier: Classifier, data: Data) -> None:
    """Let the model, the messages and the report count columns as the file does."""
    keep_in_model(classifier, data.meta)
    classifier.solutions_ = [
        dataclasses.replace(s, message=reading.as_in_file(s.message, data.first_index))
        for s in classifier.solutions_
    ]
    classifier.solution_ = first_of(classifier.solutions_)
