"""The paper's SMO: how far from the optimum it ends, for three choices of the pair."""

import numpy as np

from papers import measure, style
from papers.budget import methods, smo

NAME = "smo"
POINTS, BUDGETS, SPLITS = 150, (10, 20, 40, 70, 100, 130, 150), 3
TOL, MOST_STEPS = 1e-8, 5000


def run(options):
    """A record for each split, norm, budget and rule."""
    records = []
    for split in options.problems(POINTS):
        K = methods.kernel(split.X, split.X)
        for kind in methods.NORMS:
            for budget in BUDGETS:
                if budget <= len(split.y):
                    records += _stalls(kind, split, K, budget, options.quick)
        print(f"  split {split.seed} is done", flush=True)
        if split.seed + 1 >= SPLITS:
            break
    return records


def _stalls(kind, split, K, budget, quick):
    """A record for each rule."""
    y, C = split.y, methods.heuristic(kind, budget)
    best = methods.ours(kind, split.X, y, budget, tol=TOL)
    optimum, half = smo.dual(best.alpha, y, K), 0.5 * float(best.w @ K @ best.w)
    limits = smo.Limits.of(kind, budget, C)
    for rule in smo.RULES:
        most = 200 if quick else MOST_STEPS
        found = smo.solve(K, y, limits, rule, most)
        lost = optimum - smo.dual(found.alpha, y, K)
        yield {
            "norm": kind,
            "split": split.seed,
            "points": len(y),
            "B": budget,
            "rule": rule,
            "steps": found.steps,
            "stalled": found.stalled,
            "gain": measure.rounded(found.gain),
            "lost": measure.rounded(lost / optimum),
            "lost_half": measure.rounded(lost / half),
            "vectors": int(np.count_nonzero(found.alpha)),
            "optimum_vectors": int(np.count_nonzero(best.alpha)),
            "capped": bool(best.extras["capped"]),
            "gap": best.certificate.relative_gap,
        }


def table(records):
    """Lines of text: means over the splits."""
    yield (
        "From alpha = 0 (means over the splits). lost: how much of the dual optimum is "
        "missing, as a share of it and of |f|^2 / 2 there; gain: the largest of any "
        "pair where it ended; stalled: share of the runs whose last pair had no gain"
    )
    yield (
        f"{'norm':6}{'B':>4}  {'rule':28}{'steps':>8}{'stalled':>9}{'lost':>10}"
        f"{'/ half':>10}{'gain':>10}{'SVs':>6}{'optimum':>9}"
    )
    for (kind, budget, rule), rows in _groups(records).items():

        def mean(name, rows=rows):
            return float(np.mean([r[name] for r in rows]))

        yield (
            f"{kind:6}{budget:4}  {rule:28}{mean('steps'):8.0f}{mean('stalled'):9.2f}"
            f"{mean('lost'):10.1e}{mean('lost_half'):10.1e}{mean('gain'):10.1e}"
            f"{mean('vectors'):6.0f}{mean('optimum_vectors'):9.0f}"
        )


def _groups(records):
    found = {}
    for r in records:
        found.setdefault((r["norm"], r["B"], r["rule"]), []).append(r)
    return found


def draw(records, folder):
    """What is missing of the optimum, over B."""
    figure, axes = style.panels(1, 2, width=4.8, height=4.0)
    groups = _groups(records)
    for axis, kind in zip(axes, methods.NORMS, strict=True):
        for k, rule in enumerate(smo.RULES):
            mine = {B: g for (n, B, r), g in groups.items() if (n, r) == (kind, rule)}
            lost = [np.mean([max(r["lost"], 1e-12) for r in g]) for g in mine.values()]
            style.curve(axis, list(mine), lost, k, rule)
        gaps = {}
        for r in records:
            if r["norm"] == kind:
                gaps.setdefault(r["B"], []).append(max(r["gap"], 1e-12))
        means = [np.mean(gap) for gap in gaps.values()]
        style.curve(axis, list(gaps), means, 3, "ours (certified gap)")
        axis.set(yscale="log", ylim=(3e-13, 3), xlabel="budget B")
        points = records[0]["points"]
        axis.set(title=f"budget-{kind}-SVM, {points} points")
        axis.set_ylabel("missing of the dual optimum (1e-12 or more)")
        axis.grid(color="0.9")
    style.legend(figure, axes[0], 2)
    style.save(figure, folder, NAME)
