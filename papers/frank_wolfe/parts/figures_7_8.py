"""Figures 7 and 8: the influence of C on times and accuracies."""

import numpy as np

from papers import style
from papers.frank_wolfe import methods
from papers.frank_wolfe.datasets import CVM, FW, MFW
from papers.frank_wolfe.methods import DEFAULT, percent, seconds

NAME = "figures_7_8"
SETS = ("shuttle", "kdd99_10pc", "pendigits", "reuters")
GRID = tuple(4.0**k for k in range(7))
MOST_SECONDS = 10.0
SHOWN = (CVM, FW, MFW, DEFAULT)


def run(options):
    """A record for each set, C and method, of one run each."""
    options = options.least(MOST_SECONDS)
    records = []
    for row, data in options.sets(SETS):
        for C in GRID[::3] if options.quick else GRID:
            about = {"set": row.name, "label": row.label, "C": C, "rows": len(data.y)}
            for method in SHOWN:
                solver, tol = _stop(method)
                one = methods.train(data, methods.rbf(C), solver, options.limit, tol)
                found = methods.summed([one], options.limit)
                records.append({**about, "method": method, **found})
        print(f"  {row.label} is done", flush=True)
    return records


def _stop(method):
    """The solver and its gap: the paper's stop, but for the default."""
    if method == DEFAULT:
        return methods.by_gap(DEFAULT), methods.GAP
    return methods.by_paper(method), methods.NO_GAP


def table(records):
    """Lines of text: seconds, accuracy and gap for each C."""
    yield "Seconds, accuracy, certified gap; the paper's stop, default: a gap of 1e-3"
    yield f"{'set':12}{'C':>6}" + "".join(f"{m:>34}" for m in SHOWN)
    for name in dict.fromkeys(r["set"] for r in records):
        for C in dict.fromkeys(r["C"] for r in records):
            line = {r["method"]: r for r in records if (r["set"], r["C"]) == (name, C)}
            cells = "".join(f"{_cell(line[m]):>34}" for m in SHOWN)
            yield f"{line[CVM]['label']:12}{C:6g}{cells}"


def _cell(r):
    return f"{seconds(r)}, {percent(r['accuracy'])}, {r['gap']:.0e}"


def draw(records, folder):
    """Accuracies above, times below, a column for each set."""
    names = list(dict.fromkeys(r["set"] for r in records))
    figure, axes = style.panels(2, len(names), width=3.6, height=3.0)
    for column, name in enumerate(names):
        above, below = axes[column], axes[column + len(names)]
        for k, method in enumerate(SHOWN):
            mine = [r for r in records if (r["set"], r["method"]) == (name, method)]
            _draw(above, below, mine, k, method)
        above.set_title(mine[0]["label"])
        below.set_title(" ", pad=8 + 12 * len(SHOWN))
        style.logarithmic(below, "y", (1, 2, 5))
        for axis in (above, below):
            axis.set_xscale("log", base=2)
        below.set_xlabel("C of the paper")
    axes[0].set_ylabel("test accuracy, % (x: late)")
    most = records[0]["limit"]
    axes[len(names)].set_ylabel(f"processor seconds (hollow: > {most:g})")
    style.legend(figure, axes[0], 4)
    style.save(figure, folder, NAME)


def _draw(above, below, mine, k, method):
    """The curves of a method, with breaks where the limit came first."""
    C, late = [r["C"] for r in mine], [r["C"] for r in mine if r["over"]]
    for axis, key in ((above, "accuracy"), (below, "seconds")):
        values = [np.nan if r["over"] else r[key] for r in mine]
        style.curve(axis, C, values, k, method)
    style.crosses(above, late, 0.03 + 0.05 * k, style.LINES[k][0])
    style.hollow(below, late, 1.05 + 0.07 * k, k)
