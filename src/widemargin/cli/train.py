"""``widemargin train``: train, test, save, report."""

import argparse
import dataclasses
import glob
import os
import warnings
import zipfile

from widemargin.cli import names, reading
from widemargin.cli.datasets import Data, read_test, read_training
from widemargin.cli.output import INTERRUPTED, NOT_TO_TOL, SOLVED, note
from widemargin.cli.told import tell
from widemargin.estimators import LinearSVC
from widemargin.files import check_outputs
from widemargin.io.model_file import save_model
from widemargin.labels import distinct
from widemargin.progress import Printer
from widemargin.report import check_matplotlib
from widemargin.solvers.checkpoint import Checkpoint


def run(options: argparse.Namespace) -> int:
    """Train a model and write it, then say how good it is."""
    beside = options.label, options.weight, options.test_label  # perhaps files
    inputs = [path for path in (options.data, options.test, *beside) if path]
    checkpoint = _checkpoint(options)
    saved = checkpoint and checkpoint.path
    outputs = [path for path in (options.model, options.report, saved) if path]
    check_outputs(outputs, inputs)
    names.check_trained(options.model)
    if options.report:
        names.check_report(options.report)
        check_matplotlib()
    data = read_training(options)
    test = read_test(options, data)
    classifier = _fit(options, data, checkpoint)
    _count_as_in_file(classifier, data)
    save_model(classifier, options.model)
    try:
        tell(options, classifier, data, test)
    except KeyboardInterrupt:
        note(f"interrupted; the model was written to {options.model}")
        return INTERRUPTED
    return SOLVED if classifier.status_ == "solved" else NOT_TO_TOL


def _checkpoint(options: argparse.Namespace) -> Checkpoint | None:
    """Where the run is saved; one that is there is not begun anew unasked."""
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


def _fit(
    options: argparse.Namespace, data: Data, checkpoint: Checkpoint | None
) -> LinearSVC:
    """A fitted estimator; after a first Ctrl-C that with the best model so far."""
    classes = len(distinct(data.y))
    problems = 1 if classes == 2 else classes
    printer = Printer(options.tol, problems, delay=1.0, terminal_only=True)
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
        checkpoint=checkpoint,
    )
    try:
        with warnings.catch_warnings(), reading.about(data.path, data.first_index):
            warnings.simplefilter("ignore")  # the status is told at the end
            classifier.fit(data.X, data.y, data.weights)
    except KeyboardInterrupt:
        found = getattr(classifier, "solutions_", [])
        if not any(solution.w.any() for solution in found):  # zero is no model
            raise
    finally:
        printer.close()
    return classifier


def _count_as_in_file(classifier: LinearSVC, data: Data) -> None:
    """Let the model, the messages and the report count columns as the file does."""
    classifier._meta |= data.meta
    classifier.solutions_ = [
        dataclasses.replace(s, message=reading.as_in_file(s.message, data.first_index))
        for s in classifier.solutions_
    ]
    classifier.solution_ = classifier.solutions_[0]
