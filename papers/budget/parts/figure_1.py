"""Figure 1: test error over the budget B and the number s of kept support vectors.

At the optimum, and where SMO stalls by two rules that are not the paper's: `stopped`
has the paper's.
"""

import numpy as np
from joblib import Parallel, delayed

from papers import measure
from papers.budget import digits, methods, pictures, smo
from widemargin import Kernel, Problem, solve
from widemargin.reduction.reduce import reduce_path

NAME = "figure_1"
OPTIMUM, PLAIN, REFIT = "optimum", "usual SVM", "usual SVM, refitted"
SMO = {"SMO, " + rule: rule for rule in (smo.MOST_VIOLATING, smo.PARTNER)}
# Heat maps, of the errors with b as it was and with the best b, and curves at s = B.
MAPS = (
    (OPTIMUM, "kept", "optimum, b kept"),
    (OPTIMUM, "errors", "optimum, best b"),
    ("SMO, " + smo.MOST_VIOLATING, "errors", "most violating pair, stalled"),
    ("SMO, " + smo.PARTNER, "errors", "best partner, stalled"),
)
CURVES = (REFIT, OPTIMUM, *SMO, PLAIN)
# The usual machine: its C, the best of 0.01, 0.1, 1, 10 and 100 on one split.
USUAL_C = 10.0
LOSSES = {"L1": "hinge", "L2": "squared_hinge"}
MOST_STEPS = 5000


def run(options):
    """A record for each norm, machine and budget: means over the splits, in percent.

    ``kept``, ``errors``: for the ``sizes`` s, with b kept and with the best b;
    ``diagonal``: at s = B; ``whole``: not pruned.
    """
    found, splits = {}, list(options.problems())
    share = Parallel(options.processes, return_as="generator")
    measured = share(delayed(_machines)(split, options.budgets) for split in splits)
    for split, results in zip(splits, measured, strict=True):
        for kind, machine, budget, numbers in results:
            found.setdefault((kind, machine, budget), []).append(numbers)
        print(f"  split {split.seed} is done", flush=True)
    return [
        {"norm": kind, "machine": machine, "B": budget, **mean(runs)}
        for (kind, machine, budget), runs in found.items()
    ]


def _machines(split, budgets):
    """(norm, machine, B, numbers) of all machines on a split."""
    kernels = [methods.kernel(Z, split.X) for Z in (split.X, split.X_test)]
    return [
        (kind, *result)
        for kind in methods.NORMS
        for machines in (_budget, _usual)
        for result in machines(kind, split, kernels, budgets)
    ]


def _budget(kind, split, kernels, budgets):
    """(machine, B, numbers) of the optimum, and of where SMO by other rules stalls."""
    for budget in budgets:
        C = methods.heuristic(kind, budget)
        given = methods.problem(kind, split.X, split.y, budget)
        found = solve(given, tol=methods.TOL)
        numbers = errors(given, split, kernels, found.w, (budget, budgets), found.b)
        numbers["capped"] = float(found.extras["capped"])
        numbers["gap"] = found.certificate.relative_gap
        top = C if kind == "L1" else np.inf
        yield OPTIMUM, budget, {**numbers, **methods.counts(found.alpha, top)}
        limits = smo.Limits.of(kind, budget, C)
        best = smo.dual(found.alpha, split.y, kernels[0])
        for name, rule in SMO.items():
            ended = smo.solve(kernels[0], split.y, limits, rule, MOST_STEPS)
            c = split.y * ended.alpha
            numbers = errors(given, split, kernels, c, (budget, budgets))
            value = smo.dual(ended.alpha, split.y, kernels[0])
            numbers |= {"steps": ended.steps, "lost": 1.0 - value / best}
            yield name, budget, {**numbers, **methods.counts(ended.alpha, top)}


def errors(given, split, kernels, c, numbers, b=None):
    """Test errors of each s, at s = B, and of the whole model: the last s is m."""
    budget, sizes = numbers
    percent, kept, at = [], [], sizes.index(budget)
    for _, f, best in methods.pruned(given, kernels, c, sizes):
        percent.append(100.0 * methods.error(f + best, split.y_test))
        if b is not None:
            kept.append(100.0 * methods.error(f + b, split.y_test))
    found = {
        "sizes": sizes,
        "errors": percent,
        "diagonal": percent[at],
        "whole": percent[-1],
    }
    if b is not None:
        found |= {"kept": kept, "kept_diagonal": kept[at], "kept_whole": kept[-1]}
    return found


def _usual(kind, split, kernels, budgets):
    """(machine, B, numbers) of the usual machine: B largest alpha, or B chosen rows."""
    about, y = Kernel("rbf", gamma=digits.GAMMA), split.y
    given = Problem(split.X, y, USUAL_C, loss=LOSSES[kind], kernel=about)
    found = solve(given, tol=methods.TOL)
    counts = methods.counts(found.alpha, USUAL_C if kind == "L1" else np.inf)
    scores = list(methods.pruned(given, kernels, found.w, budgets))
    models = reduce_path(given, found, budgets)
    for budget, (_, f, b), model in zip(budgets, scores, models, strict=True):
        percent = 100.0 * methods.error(f + b, split.y_test)
        yield PLAIN, budget, {"diagonal": percent, **counts}
        again = kernels[1][:, model.rows] @ model.coefficients + model.b
        percent = 100.0 * methods.error(again, split.y_test)
        yield REFIT, budget, {"diagonal": percent, "vectors": len(model.rows)}


def mean(runs):
    """The mean of each number; of the error at s = B also the standard deviation."""
    mean = {
        name: np.round(np.mean([one[name] for one in runs], axis=0), 8).tolist()
        for name in runs[0]
    }
    spread = float(np.std([one["diagonal"] for one in runs]))
    return {**mean, "spread": measure.rounded(spread), "splits": len(runs)}


def pick(records, kind, machine):
    """Records of a norm and a machine, B rising."""
    return [r for r in records if (r["norm"], r["machine"]) == (kind, machine)]


def table(records):
    """Lines of text: errors at s = B, and what the machines are like."""
    splits = records[0]["splits"]
    yield f"Test error in % at s = B, mean of {splits} splits (standard deviation)"
    for kind in methods.NORMS:
        yield ""
        yield f"budget-{kind}" + "".join(f"{m:>34}" for m in CURVES)
        rows = zip(*(pick(records, kind, m) for m in CURVES), strict=True)
        for row in rows:
            cells = (f"{r['diagonal']:.1f} ({r['spread']:.1f})" for r in row)
            yield f"B = {row[0]['B']:<5}" + "".join(f"{cell:>34}" for cell in cells)
    yield ""
    yield "Not pruned: error (with b of the optimum), support vectors, of them at C"
    for kind in methods.NORMS:
        yield ""
        yield from _whole(records, kind)


def _whole(records, kind):
    yield (
        f"budget-{kind}{'cap':>6}{'optimum':>10}{'':8}{'SVs':>8}{'at C':>8}"
        + f"{'b kept, s = B':>16}"
        + "".join(f"{m:>34}{'SVs':>7}{'dual lost':>11}" for m in SMO)
    )
    stalled = [pick(records, kind, m) for m in SMO]
    for r, *others in zip(pick(records, kind, OPTIMUM), *stalled, strict=True):
        shown = f"({r['kept_whole']:.1f})"
        yield (
            f"B = {r['B']:<5}{r['capped']:6.1f}{r['whole']:10.1f}{shown:>8}"
            f"{r['vectors']:8.0f}{r['bounded']:8.0f}{r['kept_diagonal']:16.1f}"
            + "".join(
                f"{o['whole']:34.1f}{o['vectors']:7.0f}{o['lost']:11.1e}"
                for o in others
            )
        )


def draw(records, folder):
    """Heat maps as in the paper, and the curves at s = B."""
    pictures.heat_maps(records, MAPS, pick, folder, NAME)
    labels = {name: f"SMO stalled, {SMO.get(name)}" for name in CURVES}
    labels |= {OPTIMUM: "optimum, pruned (best b)"}
    labels |= {PLAIN: f"usual SVM (C = {USUAL_C:g}), pruned (best b)"}
    labels |= {REFIT: f"ours: usual SVM (C = {USUAL_C:g}), refitted"}
    pictures.curves(records, labels, pick, folder, "figure_1_curves")
