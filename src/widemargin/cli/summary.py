"""What a training was: its facts in words or as JSON, its accuracy and its report."""

import argparse
import itertools
import json
import sys
from typing import Any

import numpy as np

from widemargin.cli.datasets import Data
from widemargin.cli.measures import in_words, measured, say_unseen
from widemargin.cli.output import doing, note, say, with_options
from widemargin.cli.reading import about
from widemargin.estimators import BudgetSVC
from widemargin.estimators.classifier import Classifier
from widemargin.estimators.labels import distinct
from widemargin.estimators.low_rank import facts_of
from widemargin.estimators.selected_classifier import SelectedClassifier
from widemargin.models.schemes import PAIRED
from widemargin.report import write_report
from widemargin.report.html import above, is_too_small
from widemargin.report.run import time_of
from widemargin.solution import ended
from widemargin.solutions import columns_of

# What a search chooses, as its scores are laid out: C changes first.
_SEARCHED = ("gamma", "epsilon", "C")


def report_training(
    options: argparse.Namespace,
    classifier: Classifier,
    data: Data,
    test: Data | None,
    search: SelectedClassifier | None = None,
) -> None:
    """Test, and write the report and the facts; also of the ``search`` for C."""
    facts = _facts(classifier, data)
    if options.scale is not None:
        facts["scale"] = options.scale
    if search is not None:
        facts["selection"] = _points(search)
    if test is not None:
        m = facts["test_rows"] = test.X.shape[0]
        with doing(f"predicting {m:,} rows"), about(test.path):
            facts |= measured(classifier.model_, test)
        say_unseen(classifier.model_, test)
    if options.report:
        with doing(f"drawing {options.report}"):
            given = None if test is None else (test.X, test.y)
            write_report(
                options.report, search or classifier, data.X, data.y, test=given
            )
    if options.json:
        files = {"model": options.model, "report": options.report}
        finite = {k: v if v != np.inf else None for k, v in facts.items()}
        say(f"{json.dumps(finite | files)}\n")
    else:
        say("".join(f"{line}\n" for line in _lines(options, classifier, data, facts)))
    if "increase" in facts and is_too_small(classifier):
        note(
            f"--budget {options.budget} is small for these data: the model may be far "
            "from the best one; give a larger budget"
        )


def begin_training(options: argparse.Namespace, data: Data) -> None:
    """Say to a person at once what was read, and what is done with it."""
    if _is_watched(options):
        say(f"{_read(options, data)}\n")
    if sys.stderr is not None and sys.stderr.isatty():
        kernel = "a linear machine"
        if options.kernel != "linear":
            kernel = f"a machine with the kernel {options.kernel}"
        chosen = " and choosing C" if options.cv else ""
        note(f"training {kernel}{chosen}; Ctrl-C stops, and keeps the best model")


def _is_watched(options: argparse.Namespace) -> bool:
    """Whether results go to a person; a file or a pipe gets them all at the end."""
    return not options.json and sys.stdout is not None and sys.stdout.isatty()


def _read(options: argparse.Namespace, data: Data, classes: Any = None) -> str:
    """What was read, in words; the classes, where a fit has found them already."""
    m, n = data.X.shape
    share = "" if data.nonzero is None else f"{100 * data.nonzero:.3g} % nonzero, "
    if options.type == "one-class":
        labels = f"one class, nu = {0.5 if options.nu is None else options.nu:.4g}"
    elif options.type in ("regress", "nu-regress"):
        least, most = float(np.min(data.y)), float(np.max(data.y))
        labels = f"targets from {least:.4g} to {most:.4g}"
    else:
        found = distinct(data.y) if classes is None else classes
        labels = f"{len(found)} classes"
    return f"{options.data}: {m:,} rows x {n:,} features, {share}{labels}"


def _points(search: SelectedClassifier) -> list[dict[str, Any]]:
    """The points of a search: mean score, and largest gap."""
    known = [name for name in _SEARCHED if hasattr(search, f"{name}s_")]
    grid = itertools.product(*(getattr(search, f"{x}s_").tolist() for x in known))
    scores = search.scores_.mean(axis=0).ravel()
    gaps = search.path_.max(axis=0).ravel()
    points = []
    for values, score, gap in zip(grid, scores, gaps, strict=True):
        point = dict(zip(known, values, strict=True))
        best = all(point[name] == getattr(search, f"{name}_") for name in known)
        measured = {"score": _finite(score), "relative_gap": _finite(gap)}
        points.append(point | measured | {"best": best})
    return points


def _finite(number: float) -> float | None:
    return float(number) if np.isfinite(number) else None


def _table(points: list[dict[str, Any]]) -> list[str]:
    """The points as lines of a table."""
    names = [name for name in ("C", "gamma", "epsilon") if name in points[0]]
    lines = ["".join(f"{name:>12}" for name in (*names, "mean score", "gap"))]
    for point in points:
        cells = "".join(f"{point[name]:12.4g}" for name in names)
        if point["score"] is None:
            lines.append(f"{cells}  not finished")
            continue
        mark = "  best" if point["best"] else ""
        lines.append(
            f"{cells}{point['score']:12.4f}{point['relative_gap']:12.1e}{mark}"
        )
    return lines


def _facts(classifier: Classifier, data: Data) -> dict[str, Any]:
    """Facts about a training, by name."""
    solution, solutions = classifier.solution_, classifier.solutions_
    worst = max(solutions, key=lambda s: s.certificate.relative_gap)
    m, n = data.X.shape
    return {
        "rows": m,
        "features": n,
        "nonzero": data.nonzero,
        **_labels(classifier, data),
        "status": classifier.status_,
        "relative_gap": classifier.dual_gap_,
        **({} if columns_of(solutions).are_convex else {"is_convex": False}),
        "tol": classifier.tol,
        "primal": [s.certificate.primal for s in solutions],
        "dual": [s.certificate.dual for s in solutions],
        classifier.model_.vectors_name.replace(" ", "_"): _n_vectors(classifier),
        "iterations": int(np.max(classifier.n_iter_)),
        "seconds": classifier.seconds_,
        "solver": solution.solver,
        "reason": solution.reason,
        "message": with_options(worst.message),
    } | _of_kind(classifier)


def _n_vectors(classifier: Classifier) -> int:
    """How many support vectors, which fits on a cluster leave there."""
    if hasattr(classifier, "support_"):
        return int(classifier.support_.size)
    return int(np.sum(classifier.n_support_))


def _labels(classifier: Classifier, data: Data) -> dict[str, Any]:
    """What the labels are: classes, or targets and their tube."""
    if isinstance(classifier, Classifier):
        return {"classes": classifier.classes_.tolist()}
    if not classifier.model_.is_regression:
        return {"type": "one-class", "nu": classifier.nu}
    has_nu = hasattr(classifier, "nu")
    return {
        "type": "nu-regress" if has_nu else "regress",
        **({"nu": classifier.nu} if has_nu else {}),
        "loss": classifier.loss,
        "epsilon": classifier.epsilon_ if has_nu else classifier.epsilon,
        "targets": [float(np.min(data.y)), float(np.max(data.y))],
    }


def _of_kind(classifier: Classifier) -> dict[str, Any]:
    """Facts that not all classifiers have."""
    kernel = getattr(classifier, "kernel_", None)
    facts = {} if kernel is None else dict(kernel.facts)
    if isinstance(classifier, BudgetSVC):
        facts["budget"] = classifier.budget
        facts["method"], facts["norm"] = classifier.method, classifier.norm
        facts["pruned"] = classifier.pruned_.tolist()
        facts["increase"] = float(classifier.increase_.max())
    if hasattr(classifier, "feature_map_"):
        facts |= facts_of(classifier.feature_map_)
        facts["feature_map_seconds"] = classifier.feature_map_.seconds
    if hasattr(classifier, "exact_gap_"):
        facts["exact_relative_gap"] = classifier.exact_gap_
    return facts


def _against(classifier: Classifier) -> str:
    one = classifier.multi_class in PAIRED
    return f"one class against {'one' if one else 'the rest'}"


def _model_lines(facts: dict[str, Any]) -> list[str]:
    """What took the place of the whole machine, in words."""
    lines = []
    if facts.get("method") == "norm":
        lines.append(
            f"{facts['support_vectors']:,} support vectors: --method norm bounds a "
            "norm of the losses, not their number"
        )
    elif "budget" in facts:
        cost = "nothing is proved about what that costs"
        if np.isfinite(facts["increase"]):
            cost = f"the objective is at most {above(facts['increase'])} the optimum"
            cost += " without a budget"
        lines.append(f"kept {facts['support_vectors']:,} support vectors: {cost}")
    if "approximation" in facts:
        left = f"{100 * facts['trace_residual']:.2g} % of the trace left, "
        if "landmarks" in facts:
            left = f"{facts['landmarks']:,} landmarks, {left}"
        if facts["approximation"] == "fourier":  # has no trace
            left = ""
        lines.append(
            f"kernel matrix of rank {facts['rank']:,} by {facts['approximation']}: "
            f"{left}error {100 * facts['kernel_error']:.2g} %"
        )
    if "exact_relative_gap" in facts:
        gap = facts["exact_relative_gap"]
        lines.append(f"with the whole matrix the relative gap is at most {gap:.1e}")
    return lines


# What a scaling does to columns all of whose zeros are stored, and to others.
_SCALED = {
    "standard": (
        "mean 0, standard deviation 1",
        "standard deviation 1, not shifted, as zeros are not stored",
    ),
    "minmax": ("from 0 to 1", "not shifted, as zeros are not stored"),
    "maxabs": ("largest size 1",) * 2,
}


def _lines(
    options: argparse.Namespace,
    classifier: Classifier,
    data: Data,
    facts: dict[str, Any],
) -> list[str]:
    """The facts in words."""
    lines = []
    # What is on a cluster was not told before, as its labels could not be counted.
    if not _is_watched(options) or isinstance(data.y, list):
        lines.append(_read(options, data, facts.get("classes")))
    if "scale" in facts:
        stays = (facts["nonzero"] or 1.0) < 1.0
        done = _SCALED[facts["scale"]][stays]
        lines.append(f"columns scaled: {facts['scale']} ({done})")
    if "epsilon" in facts:
        loss = facts["loss"].replace("_", " ")
        lines.append(f"{loss} loss, epsilon = {facts['epsilon']:.4g}")
    if "kernel" in facts:
        names = ("gamma", "degree", "coef0")
        numbers = [f"{name} = {facts[name]:.4g}" for name in names if name in facts]
        lines.append(", ".join([f"kernel {facts['kernel']}", *numbers]))
    if "selection" in facts:
        lines += _table(facts["selection"])
    if len(classifier.solutions_) == 1:
        lines.append(str(classifier.solution_))
    else:
        is_convex = facts.get("is_convex", True)
        end = ended(facts["status"], facts["relative_gap"], facts["tol"], is_convex)
        lines += [
            f"{len(classifier.solutions_)} problems, {_against(classifier)}: "
            f"{end[0].lower()}{end[1:]} by {facts['solver']}.",
        ]
        if "support_vectors" in facts:
            lines.append(f"support vectors {facts['support_vectors']:,}")
    what = "the fit of the best values" if "selection" in facts else "training"
    lines.append(f"{what} took {time_of(classifier)}")
    if facts["status"] != "solved":
        lines.append(facts["message"])
    lines += _model_lines(facts)
    if "test_rows" in facts:
        lines.append(in_words(facts, options.test, facts["test_rows"]))
    lines.append(f"model: {options.model}")
    if options.report:
        lines.append(f"report: {options.report}")
    return lines
