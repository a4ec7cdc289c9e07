"""The certified gap against reads of the data, on clusters and on Adult."""

import numpy as np

from papers import style
from papers.asvm import methods
from papers.crsvm.datasets import Dataset
from widemargin import make_ndc, solve

NAME = "sweeps"
METHODS = (methods.PUBLISHED, methods.DEFAULT, methods.ZERO)
ROWS = 1_000_000
# Set -> nu: that of the paper, and one at which the two algorithms differ.
NUS = {"NDC": methods.NU, "a9a": 1.0}
LEAST = 1e-14  # where pictures end


def run(options):
    """A record for each set and method: sweeps and gap at every step on all rows."""
    X, y = make_ndc(ROWS // 100 if options.quick else ROWS)
    sets = [Dataset("NDC", X, y, 32), *options.sets(["a9a"])]
    return [
        {"set": data.name, "method": label, "nu": NUS[data.name], **_history(data, s)}
        for data in sets
        for label, s in methods.SOLVERS.items()
        if label in METHODS
    ]


def _history(data, solver):
    problem = methods.as_problem(data.X, data.y, NUS[data.name])
    solution = solve(problem, solver, tol=1e-12)
    rows = solution.trace.column("rows")
    steps = [s for s, r in zip(solution.trace, rows, strict=True) if r == rows.max()]
    best = np.minimum.accumulate([s.relative_gap for s in steps])
    return {
        "sweeps": [s.sweeps for s in steps],
        "gap": [float(f"{gap:.3g}") for gap in best],
    }


def table(records):
    """Lines of text: sweeps until the gap is below 1e-2, 1e-4, ... 1e-12."""
    goals = [10.0**-k for k in (2, 4, 6, 8, 10, 12)]
    yield f"{'set':5}{'nu':>6}  {'method':20}" + "".join(f"{g:>8.0e}" for g in goals)
    for r in records:
        cells = "".join(f"{_reached(r, goal):>8}" for goal in goals)
        yield f"{r['set']:5}{r['nu']:6g}  {r['method']:20}{cells}"


def _reached(r, goal):
    pairs = zip(r["sweeps"], r["gap"], strict=True)
    return next((sweeps for sweeps, gap in pairs if gap <= goal), "-")


def draw(records, folder):
    """The smallest gap so far over sweeps, a panel for each set."""
    sets = list(dict.fromkeys(r["set"] for r in records))
    figure, axes = style.panels(1, len(sets), width=5.0, height=3.6)
    for axis, name in zip(axes, sets, strict=True):
        for k, r in enumerate(r for r in records if r["set"] == name):
            gaps = np.maximum(r["gap"], LEAST)
            style.curve(axis, r["sweeps"], gaps, k, r["method"])
        axis.set_yscale("log")
        axis.set_title(f"{name}, nu = {NUS[name]:g}")
        axis.set_xlabel("reads of the data")
        axis.set_ylabel("relative gap")
        axis.legend(fontsize="small")
    style.save(figure, folder, NAME)
