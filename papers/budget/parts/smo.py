"""The paper's SMO: how far from the optimum it is, by Platt's rule and other choices.

Platt's is the heuristic that the paper cites, after fixed numbers of steps; the others
run until the chosen pair has no gain.
"""

import numpy as np

from papers import measure, style
from papers.budget import methods, platt, smo

NAME = "smo"
POINTS, BUDGETS, SPLITS = 150, (10, 20, 40, 70, 100, 130, 150), 3
TOL, MOST_STEPS = 1e-8, 5000
STEPS = (100, 300, 1000, 3000, 10_000)
PLATT = "Platt's rule"


def run(options):
    """A record for each split, norm, budget and rule."""
    records = []
    for split in options.problems(POINTS):
        K = [methods.kernel(Z, split.X) for Z in (split.X, split.X_test)]
        for kind in methods.NORMS:
            for budget in BUDGETS:
                if budget <= len(split.y):
                    records += _stalls(kind, split, K, budget, options.quick)
        print(f"  split {split.seed} is done", flush=True)
        if split.seed + 1 >= SPLITS:
            break
    return records


def _stalls(kind, split, kernels, budget, quick):
    """A record for each rule, and number of steps of Platt's."""
    y, C, K = split.y, methods.heuristic(kind, budget), kernels[0]
    given = methods.problem(kind, split.X, y, budget)
    best = methods.ours(kind, split.X, y, budget, tol=TOL)
    optimum, half = smo.dual(best.alpha, y, K), 0.5 * float(best.w @ K @ best.w)
    limits = smo.Limits.of(kind, budget, C)

    def error(alpha):
        """In % at s = B, with the best b."""
        ((_, f, b),) = methods.pruned(given, kernels, y * alpha, [budget])
        return 100.0 * methods.error(f + b, split.y_test)

    for rule, asked, found in _runs(K, y, limits, 200 if quick else np.inf, split.seed):
        lost = optimum - smo.dual(found.alpha, y, K)
        yield {
            "norm": kind,
            "split": split.seed,
            "points": len(y),
            "B": budget,
            "rule": rule,
            "asked": asked,
            "steps": found.steps,
            "stalled": found.stalled,
            "gain": measure.rounded(found.gain),
            "lost": measure.rounded(lost / optimum),
            "lost_half": measure.rounded(lost / half),
            "vectors": int(np.count_nonzero(found.alpha)),
            "optimum_vectors": int(np.count_nonzero(best.alpha)),
            "error": measure.rounded(error(found.alpha)),
            "optimum_error": measure.rounded(error(best.alpha)),
            "capped": bool(best.extras["capped"]),
            "gap": best.certificate.relative_gap,
        }


def _runs(K, y, limits, most, seed):
    """(rule, steps asked for or 0, where they ended) of all runs."""
    for rule in smo.RULES:
        yield rule, 0, smo.solve(K, y, limits, rule, min(MOST_STEPS, most))
    run = platt.Run(K, y, limits, seed)
    for asked in STEPS:
        run.to(min(asked, most))
        gain = smo.largest_gain(run.alpha, y, run.f, K, limits)
        yield PLATT, asked, smo.Stalled(run.alpha.copy(), run.steps, run.ended, gain)


def table(records):
    """Lines of text: means over the splits."""
    yield (
        "From alpha = 0 (means over the splits). lost: how much of the dual optimum is "
        "missing, as a share of it and of |f|^2 / 2 there; gain: the largest of any "
        "pair where it ended; stalled: share of the runs whose last pair had no gain; "
        "error: of the test points, in %, at s = B with the best b; that of the optimum"
    )
    yield (
        f"{'norm':6}{'B':>4}  {'rule':28}{'steps':>8}{'stalled':>9}{'lost':>10}"
        f"{'/ half':>10}{'gain':>10}{'SVs':>6}{'optimum':>9}{'error':>8}{'optimum':>9}"
    )
    for (kind, budget, rule, asked), rows in _groups(records).items():
        shown = f"{rule}, {asked:,} steps" if asked else rule

        def mean(name, rows=rows):
            return float(np.mean([r[name] for r in rows]))

        yield (
            f"{kind:6}{budget:4}  {shown:28}{mean('steps'):8.0f}{mean('stalled'):9.2f}"
            f"{mean('lost'):10.1e}{mean('lost_half'):10.1e}{mean('gain'):10.1e}"
            f"{mean('vectors'):6.0f}{mean('optimum_vectors'):9.0f}"
            f"{mean('error'):8.1f}{mean('optimum_error'):9.1f}"
        )


def _groups(records):
    found = {}
    for r in records:
        key = r["norm"], r["B"], r["rule"], r["asked"]
        found.setdefault(key, []).append(r)
    return found


def draw(records, folder):
    """What is missing of the optimum, and errors at s = B, over B."""
    figure, axes = style.panels(2, 2, width=5.0, height=3.8)
    groups, points = _groups(records), records[0]["points"]
    budgets = sorted({r["B"] for r in records})
    shown = [(smo.MOST_VIOLATING, 0), (smo.LARGEST_GAIN, 0)]
    shown += [(PLATT, steps) for steps in (300, 3000)]
    for column, kind in enumerate(methods.NORMS):
        above, below = axes[column], axes[2 + column]
        for k, (rule, asked) in enumerate(shown):
            runs = [groups[kind, B, rule, asked] for B in budgets]
            label = f"{rule}, {asked:,} steps" if asked else rule
            lost = [np.mean([max(r["lost"], 1e-12) for r in g]) for g in runs]
            style.curve(above, budgets, lost, k, label)
            errors = [np.mean([r["error"] for r in g]) for g in runs]
            style.curve(below, budgets, errors, k, label)
        errors = [np.mean([r["optimum_error"] for r in g]) for g in runs]
        style.curve(below, budgets, errors, len(shown), "optimum")
        above.set(yscale="log", ylim=(3e-13, 3), xlabel="budget B")
        above.set(title=f"budget-{kind}-SVM, {points} points")
        above.set_ylabel("missing of the dual optimum, share")
        below.set(xlabel="support vectors kept, s = B", ylim=(0, 62))
        below.set_ylabel("test error, %")
        for axis in (above, below):
            axis.grid(color="0.9")
    style.legend(figure, axes[2], 2)
    style.save(figure, folder, NAME)
