"""Figure 1 by the paper's own means: SMO by Platt's rule, after fixed numbers of steps.

C = 10 / B and 10 / sqrt(B) as printed; `tuned` has C by cross-validation.
"""

import json

import numpy as np
from joblib import Parallel, delayed

from papers.budget import methods, pictures, platt, smo
from papers.budget.parts import figure_1

NAME = "stopped"
STEPS = (100, 300, 1000, 3000)
MAPS = tuple((steps, "errors", f"{steps} steps") for steps in STEPS)


def run(options):
    """A record for each norm, number of steps and budget: means over the splits.

    The fields are those of `figure_1`; ``ended``: the share of runs without a next
    step, ``steps``: how many there were.
    """
    found, splits = {}, list(options.problems())
    share = Parallel(options.processes, return_as="generator")
    measured = share(delayed(_machines)(split, options.budgets) for split in splits)
    for split, results in zip(splits, measured, strict=True):
        for *key, numbers in results:
            found.setdefault(tuple(key), []).append(numbers)
        print(f"  split {split.seed} is done", flush=True)
    return [
        {"norm": kind, "machine": asked, "B": budget, **figure_1.mean(runs)}
        for (kind, asked, budget), runs in found.items()
    ]


def _machines(split, budgets):
    """(norm, steps asked for, B, numbers) of all machines on a split."""
    kernels = [methods.kernel(Z, split.X) for Z in (split.X, split.X_test)]
    return [
        (kind, *result)
        for kind in methods.NORMS
        for budget in budgets
        for result in _stopped(kind, split, kernels, (budget, budgets))
    ]


def _stopped(kind, split, kernels, numbers):
    """(steps asked for, B, numbers) of one run of SMO."""
    budget, C = numbers[0], methods.heuristic(kind, numbers[0])
    given = methods.problem(kind, split.X, split.y, budget)
    limits = smo.Limits.of(kind, budget, C)
    steps = platt.Run(kernels[0], split.y, limits, split.seed)
    for asked in STEPS:
        steps.to(asked)
        c = split.y * steps.alpha
        found = figure_1.errors(given, split, kernels, c, numbers, steps.b)
        found |= {"steps": steps.steps, "ended": float(steps.ended)}
        top = C if kind == "L1" else np.inf
        yield asked, budget, {**found, **methods.counts(steps.alpha, top)}


def table(records):
    """Lines of text: errors at s = B, whole machines, and their sizes."""
    splits = records[0]["splits"]
    yield f"SMO by Platt's rule, C of the paper; test error in %, mean of {splits}"
    yield "splits: pruned to s = B (with Platt's b in brackets), not pruned; SVs"
    for kind in methods.NORMS:
        yield ""
        yield f"budget-{kind}" + "".join(f"{n:>21} steps     " for n in STEPS)
        rows = zip(*(figure_1.pick(records, kind, n) for n in STEPS), strict=True)
        for row in rows:
            cells = (
                f"{r['diagonal']:8.1f} ({r['kept_diagonal']:.1f})".rjust(17)
                + f"{r['whole']:7.1f}{r['vectors']:7.0f}"
                for r in row
            )
            yield f"B = {row[0]['B']:<5}" + "".join(cells)


def draw(records, folder):
    """Heat maps as in the paper, and errors at s = B beside those of `figure_1`."""
    pictures.heat_maps(records, MAPS, figure_1.pick, folder, NAME)
    labels = {n: f"SMO by Platt's rule, {n} steps" for n in STEPS[1:]}
    beside = folder / f"{figure_1.NAME}.json"
    if beside.exists():
        others = json.loads(beside.read_text())["records"]
        labels |= {figure_1.OPTIMUM: "optimum, pruned"}
        label = f"ours: usual SVM (C = {figure_1.USUAL_C:g}), refitted"
        labels |= {figure_1.REFIT: label}
        records = records + [r for r in others if r["machine"] in labels]
    pictures.curves(records, labels, figure_1.pick, folder, f"{NAME}_curves")
