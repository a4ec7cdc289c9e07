"""``widemargin train``: train, test, save, report."""

import argparse
import dataclasses
import json
import warnings
from typing import Any

import numpy as np

from widemargin.cli import names, reading
from widemargin.cli.output import INTERRUPTED, NOT_TO_TOL, SOLVED, doing, note, say
from widemargin.data.svmlight.read import Contents
from widemargin.estimators import LinearSVC
from widemargin.files import check_outputs
from widemargin.io.model_file import save_model
from widemargin.progress import Printer
from widemargin.report import check_matplotlib, write_report
from widemargin.report.html import seconds

Test = tuple[Any, Any] | None


def run(options: argparse.Namespace) -> int:
    """Train a model and write it, then say how good it is."""
    inputs = [path for path in (options.data, options.test) if path]
    outputs = [path for path in (options.model, options.report) if path]
    check_outputs(outputs, inputs)
    names.check_trained(options.model)
    if options.report:
        names.check_report(options.report)
        check_matplotlib()
    data = reading.read(options.data, options.index_base, options.jobs)
    reading.check_training(options.data, data)
    test = _read_test(options, data)
    classifier = _fit(options, data)
    _count_as_in_file(classifier, data)
    save_model(classifier, options.model)
    try:
        _tell(options, classifier, data, test)
    except KeyboardInterrupt:
        note(f"interrupted; the model was written to {options.model}")
        return INTERRUPTED
    return SOLVED if classifier.status_ == "solved" else NOT_TO_TOL


def _read_test(options: argparse.Namespace, data: Contents) -> Test:
    """Test data with the columns of the training data, counted from the same index."""
    if not options.test:
        return None
    test = reading.read(options.test, 0 if data.zero_based else 1, options.jobs)
    reading.check_labels(options.test, test)
    return reading.fit_columns(options.test, test, data.X.shape[1]), test.y


def _fit(options: argparse.Namespace, data: Contents) -> LinearSVC:
    """A fitted estimator; after a first Ctrl-C that with the best model so far."""
    classes = len(np.unique(data.y))
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
    )
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the status is told at the end
            classifier.fit(data.X, data.y)
    except KeyboardInterrupt:
        if not hasattr(classifier, "solutions_"):
            raise
    except ValueError as error:
        sentence = reading.as_in_file(str(error), data)
        raise ValueError(f"{options.data}: {sentence}") from None
    finally:
        printer.close()
    return classifier


def _count_as_in_file(classifier: LinearSVC, data: Contents) -> None:
    """Let the model, the messages and the report count columns as the file does."""
    classifier._meta["index_base"] = 0 if data.zero_based else 1
    classifier.solutions_ = [
        dataclasses.replace(s, message=reading.as_in_file(s.message, data))
        for s in classifier.solutions_
    ]
    classifier.solution_ = classifier.solutions_[0]


# -- what there is to say --------------------------------------------------------------


def _tell(
    options: argparse.Namespace, classifier: LinearSVC, data: Contents, test: Test
) -> None:
    """Test, and write the report and the facts."""
    facts = _facts(classifier, data)
    if test is not None:
        X, y = test
        with doing(f"predicting {X.shape[0]:,} rows"):
            facts["test_rows"] = X.shape[0]
            facts["accuracy"] = float(np.mean(classifier.predict(X) == y))
    if options.report:
        with doing(f"drawing {options.report}"):
            write_report(options.report, classifier, data.X, data.y, test=test)
    if options.json:
        files = {"model": options.model, "report": options.report}
        say(f"{json.dumps(facts | files)}\n")
    else:
        say("".join(f"{line}\n" for line in _lines(options, classifier, facts)))


def _facts(classifier: LinearSVC, data: Contents) -> dict[str, Any]:
    """Facts about a training, by name."""
    solution, solutions = classifier.solution_, classifier.solutions_
    worst = max(solutions, key=lambda s: s.certificate.relative_gap)
    m, n = data.X.shape
    return {
        "rows": m,
        "features": n,
        "nonzero": data.X.nnz / (m * n),
        "classes": classifier.classes_.tolist(),
        "status": classifier.status_,
        "relative_gap": classifier.dual_gap_,
        "tol": classifier.tol,
        "primal": [s.certificate.primal for s in solutions],
        "dual": [s.certificate.dual for s in solutions],
        "support_vectors": int(classifier.support_.size),
        "iterations": classifier.n_iter_,
        "seconds": max(s.seconds for s in solutions),
        "solver": solution.solver,
        "reason": solution.reason,
        "message": worst.message,
    }


def _lines(
    options: argparse.Namespace, classifier: LinearSVC, facts: dict[str, Any]
) -> list[str]:
    """The facts in words."""
    lines = [
        f"{options.data}: {facts['rows']:,} rows x {facts['features']:,} features, "
        f"{100 * facts['nonzero']:.3g} % nonzero, {len(facts['classes'])} classes"
    ]
    if len(classifier.solutions_) == 1:
        lines.append(str(classifier.solution_))
    else:
        lines += [
            f"{len(classifier.solutions_)} problems, one class against the rest: "
            f"{facts['status']} to a relative gap of {facts['relative_gap']:.1e} "
            f"(asked: {facts['tol']:.0e}) in {seconds(facts['seconds'])} by "
            f"{facts['solver']}.",
            f"support vectors {facts['support_vectors']:,}",
        ]
    if facts["status"] != "solved":
        lines.append(facts["message"])
    if "accuracy" in facts:
        share = f"{100 * facts['accuracy']:.2f} %"
        lines.append(
            f"accuracy {share} on {options.test} ({facts['test_rows']:,} rows)"
        )
    lines.append(f"model: {options.model}")
    if options.report:
        lines.append(f"report: {options.report}")
    return lines
