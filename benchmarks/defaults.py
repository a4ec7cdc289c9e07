"""Programs at their default settings: ``python -m benchmarks.defaults``.

Seconds and certified gaps from the results: of linear machines (hinge, penalized
intercept), to benchmarks/results/defaults.txt and defaults.svg, and of kernel machines,
to kernel/defaults.txt.
"""

import json
import statistics
from collections import defaultdict
from typing import Any, NamedTuple

import matplotlib as mpl
from matplotlib.figure import Figure

from benchmarks.front import RESULTS, STYLE

# scikit-learn stops at 1,000 iterations by default; the harness let it go on.
DEFAULTS: dict[str, tuple[str, dict[str, Any]]] = {
    "widemargin": ("widemargin", {"tol": 1e-4}),
    "liblinear": ("LIBLINEAR", {"solver": 3, "eps": 0.1}),
    "sklearn": ("scikit-learn", {"tol": 1e-4, "dual": True, "max_iter": 1000000}),
}
# Of kernel machines. sklearnex is given float64 arrays, as most people have them.
KERNEL_DEFAULTS: dict[str, tuple[str, dict[str, Any]]] = {
    "widemargin": ("widemargin", {"tol": 1e-4}),
    "libsvm": ("LIBSVM", {"tol": 1e-3}),
    "sklearnex": ("sklearnex", {"tol": 1e-3, "input": "dense64"}),
}
KERNEL = RESULTS / "kernel"
# Not ended in time, or not run: the results do not tell which.
NONE = "none on record"
COLORS = {"widemargin": "#10345c", "liblinear": "#c05020", "sklearn": "#8a9aa8"}
MARKS = {"widemargin": "o", "liblinear": "^", "sklearn": "s"}


class Answer(NamedTuple):
    """What a program took for a problem, and how far it was from the optimum."""

    seconds: float
    gap: float


Problem = tuple[str, float]


def main() -> None:
    """Write the table and the picture."""
    found = answers()
    (RESULTS / "defaults.txt").write_text(table(found))
    (KERNEL / "defaults.txt").write_text(table(kernel_answers(), KERNEL_DEFAULTS))
    with mpl.rc_context(STYLE):
        picture(found).savefig(RESULTS / "defaults.svg", metadata={"Date": None})


def answers() -> dict[Problem, dict[str, Answer]]:
    """The median of the runs of each program at its defaults, by set and C."""
    lines = (RESULTS / "runs.jsonl").read_text().splitlines()
    runs: dict[Problem, list[dict[str, Any]]] = defaultdict(list)
    for run in map(json.loads, lines):
        kind = (run.get("loss"), run.get("intercept"), run.get("load"))
        if kind == ("hinge", "penalized", 0) and run.get("primal") is not None:
            runs[run["set"], run["C"]].append(run)
    return {problem: _of_one(runs[problem]) for problem in sorted(runs)}


def kernel_answers() -> dict[Problem, dict[str, Answer]]:
    """The same of kernel machines, whole sets; their names say gamma."""
    lines = (KERNEL / "runs.jsonl").read_text().splitlines()
    runs: dict[Problem, list[dict[str, Any]]] = defaultdict(list)
    for run in map(json.loads, lines):
        whole = run.get("part") == "fit" and run.get("rows") is None
        if whole and run.get("primal") is not None:
            runs[f"{run['set']}, {run['gamma']:g}", run["C"]].append(run)
    return {one: _of_one(runs[one], KERNEL_DEFAULTS) for one in sorted(runs)}


def _of_one(
    runs: list[dict[str, Any]],
    defaults: dict[str, tuple[str, dict[str, Any]]] = DEFAULTS,
) -> dict[str, Answer]:
    """Gaps are those to the best bound that any run proved."""
    best = max(r["dual"] for r in runs if r.get("dual") is not None)
    found = {}
    for peer, (_, setting) in defaults.items():
        own = [r for r in runs if (r["peer"], r["setting"]) == (peer, setting)]
        if own:
            seconds = statistics.median(r["seconds"] for r in own)
            worst = max(1 - best / r["primal"] for r in own)
            found[peer] = Answer(seconds, max(worst, 1e-10))
    return found


def table(
    found: dict[Problem, dict[str, Answer]],
    defaults: dict[str, tuple[str, dict[str, Any]]] = DEFAULTS,
) -> str:
    """Lines of a text file: seconds, and the gap in parentheses."""
    names = [name for name, _ in defaults.values()]
    lines = [f"{'set':20}{'C':>6}" + "".join(f"{name:>22}" for name in names)]
    for (name, C), of in found.items():
        cells = [_cell(of.get(peer)) for peer in defaults]
        lines.append(f"{name:20}{C:6g}" + "".join(f"{cell:>22}" for cell in cells))
    return "\n".join([*lines, ""])


def _cell(answer: Answer | None) -> str:
    return f"{answer.seconds:.3g} s ({answer.gap:.0e})" if answer else NONE


def picture(found: dict[Problem, dict[str, Answer]]) -> Figure:
    """A point for each problem and program."""
    figure = Figure(figsize=(7, 4), layout="constrained", facecolor="white")
    axes = figure.subplots()
    for peer, (name, _) in DEFAULTS.items():
        points = [of[peer] for of in found.values() if peer in of]
        axes.scatter(
            *zip(*points, strict=True),
            s=24,
            color=COLORS[peer],
            marker=MARKS[peer],
            label=name,
        )
    axes.axhline(1e-4, color="k", linewidth=0.8, linestyle=":")
    axes.set(xscale="log", yscale="log", xlabel="seconds of the fit")
    axes.set_ylabel("relative gap of the answer")
    axes.legend()
    return figure


if __name__ == "__main__":
    main()
