"""The picture of the README, from the results: ``python -m benchmarks.front``.

Three problems; of each program the fastest run whose answer is within `GAP` of the best
possible objective, by bounds that are ours. Writes benchmarks/results/seconds.svg.
"""

import csv
import json
from pathlib import Path
from typing import NamedTuple

import matplotlib as mpl
from matplotlib.figure import Figure

RESULTS = Path(__file__).parent / "results"
GAP = 1e-3
STYLE = {"svg.hashsalt": "widemargin", "svg.fonttype": "none", "font.size": 9}
NAMES = {
    "widemargin": "widemargin",
    "libsvm": "LIBSVM",
    "liblinear": "LIBLINEAR",
    "sklearn": "scikit-learn",
    "sklearnex": "oneDAL",
}


class Panel(NamedTuple):
    """A problem, and seconds by program."""

    title: str
    seconds: dict[str, float]


def main() -> None:
    """Write the picture."""
    panels = [everyday(), large(), linear()]
    with mpl.rc_context(STYLE):
        picture(panels).savefig(RESULTS / "seconds.svg", metadata={"Date": None})


def everyday() -> Panel:
    """Digits, rbf, C = 1: each program with its threads, at its default tolerance."""
    runs = json.loads((RESULTS / "kernel" / "small.json").read_text())["runs"]
    chosen = [
        (r["peer"], r["seconds"], r["gap"])
        for r in runs
        if (r["set"], r["kind"], r["C"]) == ("digits", "rbf", 1.0)
    ]
    return Panel("Everyday: digits\n1,797 rows, rbf, 10 classes", least(chosen))


def large() -> Panel:
    """Adult, rbf."""
    with (RESULTS / "kernel" / "summary.csv").open(newline="") as file:
        rows = [r for r in csv.DictReader(file) if r["set"] == "a9a"]
    chosen = [(r["peer"], float(r["seconds"]), float(r["gap"])) for r in rows]
    return Panel("Kernel: Adult (a9a)\n32,561 rows, rbf", least(chosen))


def linear() -> Panel:
    """w8a, the hinge with a penalized intercept; gaps by the best bound of all runs."""
    wanted = ("w8a", "hinge", 1.0, "penalized")
    runs = list(map(json.loads, (RESULTS / "runs.jsonl").read_text().splitlines()))
    runs = [
        r
        for r in runs
        if tuple(map(r.get, ("set", "loss", "C", "intercept"))) == wanted
        and r.get("primal") is not None
        and not r.get("load")
    ]
    best = max(r["dual"] for r in runs if r.get("dual") is not None)
    chosen = [(r["peer"], r["seconds"], 1 - best / r["primal"]) for r in runs]
    return Panel("Linear: web pages (w8a)\n49,749 rows, 300 features", least(chosen))


def least(runs: list[tuple[str, float, float]]) -> dict[str, float]:
    """Seconds of the fastest run of each program that reached the gap."""
    found: dict[str, float] = {}
    for peer, seconds, gap in runs:
        if peer in NAMES and gap <= GAP:
            found[peer] = min(seconds, found.get(peer, seconds))
    return {peer: found[peer] for peer in NAMES if peer in found}


def picture(panels: list[Panel]) -> Figure:
    """Bars from zero, so that their lengths compare."""
    figure = Figure(figsize=(8.4, 1.9), layout="constrained", facecolor="white")
    for axes, panel in zip(figure.subplots(1, len(panels)), panels, strict=True):
        longest = max(panel.seconds.values())
        for place, (peer, time) in enumerate(panel.seconds.items()):
            color = "#10345c" if peer == "widemargin" else "#b4bec9"
            axes.barh(place, time, height=0.7, color=color)
            axes.text(time + 0.02 * longest, place, told(time), va="center")
        axes.set_yticks(range(len(panel.seconds)), [NAMES[p] for p in panel.seconds])
        axes.set(xlim=(0, 1.25 * longest), ylim=(len(panel.seconds) - 0.4, -0.6))
        axes.set_xticks([])
        axes.set_title(panel.title, loc="left", fontsize=9)
        axes.spines[:].set_visible(False)
        axes.tick_params(length=0)
    return figure


def told(seconds: float) -> str:
    """A time of two digits with its unit."""
    return f"{seconds:.2g} s" if seconds >= 0.1 else f"{1000 * seconds:.2g} ms"


if __name__ == "__main__":
    main()
