"""``widemargin inspect``: what a model is."""

import argparse
import dataclasses
import json
from typing import Any

import numpy as np

from widemargin.cli.output import SOLVED, as_text, escaped, listed, say
from widemargin.cli.reading import read_model
from widemargin.kernels.expansion import Expansion
from widemargin.models.decisions import Decision
from widemargin.models.model import Model
from widemargin.report.html import above
from widemargin.report.weights import SCALES, columns, largest_weights

_LARGEST = 10  # weights of a class that are shown
# Of the largest weight of a decision: what rounding leaves where a weight is zero.
_ROUNDING = float(np.finfo(np.float64).eps)
_NAMES = 50  # names of features that are shown, where there are no weights


def run(options: argparse.Namespace) -> int:
    """Describe a model."""
    model = read_model(options.model)
    facts = {
        "classes": model.classes.tolist(),
        "scheme": model.scheme,
        "features": model.n_features,
        **(_linear(model) if model.kernels is None else _kernel(model, model.kernels)),
    }
    if model.calibration is not None:
        facts["calibration"] = model.calibration.facts
    # What the file says comes second: it must not replace what was computed.
    if options.json:
        told = facts | model.meta | facts
        finite = {k: v if v != np.inf else None for k, v in told.items()}
        say(f"{json.dumps(finite)}\n")
        return SOLVED
    shown = {
        escaped(name.replace("_", " ")): [escaped(str(value))]
        for part in (facts, model.meta, facts)
        for name, value in part.items()
        if name not in ("feature_names", SCALES, "is_convex")
    }
    if model.meta.get("is_convex") is False:
        plain = "no proof, as the kernel is not positive semidefinite"
        shown.setdefault("dual gap", []).append(plain)
    shown["status"] = [_status(model)]
    shown["classes"] = [listed(facts["classes"]) or "none"]
    if model.calibration is not None:
        shown["calibration"] = [repr(model.calibration)]
    names = columns(model)
    if "largest_weights" in facts:
        shown["largest weights"] = _in_words(model, facts["largest_weights"])
    elif not isinstance(names, range):
        more = f" and {len(names) - _NAMES:,} more" * (len(names) > _NAMES)
        shown["feature names"] = [escaped(", ".join(names[:_NAMES]) + more)]
    if isinstance(increase := model.meta.get("increase"), float):
        shown["increase"] = [f"at most {above(increase)} the optimum without a budget"]
    width = max(map(len, shown))
    gap = f"\n{' ' * width}  "
    say("".join(f"{name:{width}}  {gap.join(v)}\n" for name, v in shown.items()))
    return SOLVED


def _status(model: Model) -> str:
    """How the fit ended, and what that means where it is not solved."""
    found = model.meta.get("status")
    if found is None:
        return "unknown: it comes from another program, or was changed after its fit"
    plain = "" if found == "solved" else ": not solved to the gap that was asked"
    return escaped(f"{found}{plain}")


def _linear(model: Model) -> dict[str, Any]:
    """Facts about the weights."""
    facts: dict[str, Any] = {}
    if model.expand is None:
        W = np.abs([decision.w for decision in _of_scaled(model).decisions])
        seen = _ROUNDING * W.max(axis=1, keepdims=True) < W
        facts["nonzero_weights"] = int(np.count_nonzero(seen.any(axis=0)))
    facts["intercepts"] = [decision.b for decision in model.decisions]
    if model.has_weights:
        facts["largest_weights"] = _largest_weights(model)
    return facts


def _kernel(model: Model, kernels: Expansion) -> dict[str, Any]:
    """Facts about the kernel and the vectors."""
    name = model.vectors_name.replace(" ", "_")
    facts = {**kernels.kernel.facts, name: int(kernels.counts.sum())}
    if not model.is_regression:
        facts[f"{name}_by_class"] = kernels.counts.tolist()
    return facts | {"intercepts": kernels.b.tolist()}


def _largest_weights(model: Model) -> list[dict[str, Any]]:
    """Class, feature (its name, or its number in the data) and weight."""
    names = columns(model)
    return [
        {"class": model.classes[[k]].tolist()[0], "feature": names[j], "weight": weight}
        for k, weights in largest_weights(_of_scaled(model), _LARGEST).items()
        for j, weight in weights
    ]


def _of_scaled(model: Model) -> Model:
    """The model with weights of scaled columns, where training scaled them."""
    scales = _scales(model)
    if scales is None:
        return model
    decisions = tuple(Decision(d.w * scales, d.b) for d in model.decisions)
    return dataclasses.replace(model, decisions=decisions)


def _scales(model: Model) -> Any:
    """What training divided the columns by, (n,); None where it did not."""
    scales: Any = model.meta.get(SCALES)
    known = isinstance(scales, list) and len(scales) == model.n_features
    numbers = known and all(isinstance(scale, float) for scale in scales)
    return np.array(scales) if numbers else None


def _in_words(model: Model, weights: list[dict[str, Any]]) -> list[str]:
    """A line a class: with these signs, the weights speak for the class."""
    lines: dict[Any, list[str]] = {}
    for entry in weights:
        words = f"{entry['feature']} ({entry['weight']:+.3g})"
        lines.setdefault(entry["class"], []).append(words)
    names = columns(model)
    counted = f"; columns counted from {names[0]}" if isinstance(names, range) else ""
    if _scales(model) is not None:
        counted += f"; of scaled columns ({model.meta.get('scale')}), as in a report"
    said = [f"for {as_text(k)}: {escaped(', '.join(v))}" for k, v in lines.items()]
    return [*said[:-1], said[-1] + counted] if said else ["none"]
