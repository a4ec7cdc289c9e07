"""Bounds of the optimum of each binary problem: a table, or a map of all pairs."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from widemargin.report import html
from widemargin.solution import Solution

# Lines of a table, one a binary problem; more problems are summed up.
_LINES = 10
# Classes of a map of pairs.
_CLASSES = 30


def section(run: Any) -> str:
    """The bounds in words, and for each binary problem."""
    words = _words(run)
    solutions = run.solutions
    bounds = [(s.certificate.primal, s.certificate.dual) for s in solutions]
    digits = html.decimals(np.abs(bounds).max())
    if len(solutions) == 1:
        facts = html.facts("Certificate", _proof(solutions[0], digits).items())
        return f"<p>{words}</p>{facts}"
    if len(solutions) <= _LINES:
        return f"<p>{words}</p>{_lines(run, digits)}"
    unsolved = sum(s.status != "solved" for s in solutions)
    words += f" {len(solutions) - unsolved} of {len(solutions)} problems are solved."
    return f"<p>{words}</p>{_summary(run)}{_map(run)}"


def _words(run: Any) -> str:
    """What the bounds are of."""
    words = (
        "The dual value is a lower bound of the smallest possible objective, so that "
        "the objective (primal) is at most the gap above it. Both are recomputed from "
        "the answer."
    )
    if hasattr(run.estimator, "feature_map_"):
        words += " They belong to the approximate kernel matrix."
    if hasattr(run.estimator, "exact_gap_"):
        gap = run.estimator.exact_gap_
        words += f" With the whole matrix the relative gap is at most {gap:.1e}."
    return words


def _proof(solution: Solution, digits: int) -> dict[str, str]:
    """The figures of one solution, by name."""
    certificate, last = solution.certificate, solution.trace[-1]
    return {
        "status": solution.status.value,
        "primal": f"{certificate.primal:,.{digits}f}",
        "dual": f"{certificate.dual:,.{digits}f}",
        "gap": f"{certificate.gap:.1e}",
        "relative gap": f"{certificate.relative_gap:.1e}",
        "tol": f"{solution.tol:.0e}",
        "iterations": f"{last.iteration:,}",
        "sweeps": f"{last.sweeps:,}",
        "time of the solver": html.seconds(solution.seconds),
        "support vectors": f"{solution.n_support:,}",
    }


def _lines(run: Any, digits: int) -> str:
    """A line for each binary problem."""
    proofs = [_proof(solution, digits) for solution in run.solutions]
    header = [_kind(run), *proofs[0]]
    rows = [
        [name, *proof.values()]
        for name, proof in zip(run.problems, proofs, strict=True)
    ]
    return html.table("Certificates", header, rows, words=["status"])


def _kind(run: Any) -> str:
    return "pair of classes" if run.model.is_paired else "class against the rest"


def _summary(run: Any) -> str:
    """The least, the median and the largest figure of many problems."""
    figures = {
        "relative gap": ([s.certificate.relative_gap for s in run.solutions], ".1e"),
        "iterations": ([s.trace[-1].iteration for s in run.solutions], ",.0f"),
        "support vectors": ([s.n_support for s in run.solutions], ",.0f"),
    }
    rows = [
        [name, *_spread(numbers, form), run.problems[int(np.argmax(numbers))]]
        for name, (numbers, form) in figures.items()
    ]
    header = ["of a problem", "least", "median", "largest", f"{_kind(run)} of it"]
    return html.table("Certificates", header, rows, words=[header[-1]])


def _spread(numbers: Sequence[float], form: str) -> list[str]:
    """The least, the median and the largest number."""
    ordered = np.sort(np.array(numbers, dtype=float))
    return [format(n, form) for n in (ordered[0], np.median(ordered), ordered[-1])]


def _map(run: Any) -> str:
    """Support vectors of each pair of classes, by the names of the two."""
    c = len(run.names)
    if not run.model.is_paired or c > _CLASSES:
        return ""
    counts = np.zeros((c, c), dtype=np.intp)
    counts[np.triu_indices(c, 1)] = [s.n_support for s in run.solutions]
    counts += counts.T
    caption = (
        "Support vectors of each pair of classes: the darker a cell, the harder the "
        "two are to tell apart."
    )
    table = html.heat("Support vectors by pair", counts, run.names)
    return html.figure("Pairs of classes", table, caption, wide=c > _LINES)
