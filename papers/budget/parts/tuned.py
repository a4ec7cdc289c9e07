"""Errors at s = B with C by cross-validation, for each B, as the authors wish.

For SMO the number of steps too. The usual SVM, pruned or refitted, has its C by the
same folds.
"""

import numpy as np
from joblib import Parallel, delayed

from papers import measure, style
from papers.budget import digits, methods, platt, smo
from papers.budget.parts.stopped import STEPS
from widemargin import Kernel, Problem, solve
from widemargin.reduction.reduce import reduce_path

NAME = "tuned"
BUDGETS, SPLITS, FOLDS = (20, 80, 200), 2, 2
FACTORS = (0.1, 1.0, 10.0)
OPTIMUM, SMO = "optimum, pruned", "SMO by Platt's rule, pruned"
PLAIN, REFIT = "usual SVM, pruned", "usual SVM, refitted"
MACHINES = (SMO, OPTIMUM, PLAIN, REFIT)
LOSSES = {"L1": "hinge", "L2": "squared_hinge"}


def run(options):
    """A record for each split, norm, machine and budget, in percent."""
    splits = [split for split in options.problems() if split.seed < SPLITS]
    budgets = [B for B in BUDGETS if options.points * (1 - 1 / FOLDS) > B]
    share = Parallel(options.processes, return_as="generator")
    records = []
    for found in share(delayed(_chosen)(split, budgets) for split in splits):
        records += found
        print(f"  split {found[0]['split']} is done", flush=True)
    return records


def _chosen(split, budgets):
    """The test errors of what the folds choose; ``best``: the least of all."""
    folds = [_errors(fold, budgets) for fold in _folds(split)]
    tests = _errors(split, budgets)
    records = []
    for (kind, machine, budget), by_setting in tests.items():
        key = kind, machine, budget
        settings = list(by_setting)
        means = [np.mean([fold[key][one] for fold in folds]) for one in settings]
        C, steps = chosen = settings[int(np.argmin(means))]
        records.append(
            {
                "norm": kind,
                "machine": machine,
                "B": budget,
                "split": split.seed,
                "C": C,
                "steps": steps,
                "folds": measure.rounded(float(min(means))),
                "error": measure.rounded(by_setting[chosen]),
                "best": measure.rounded(min(by_setting.values())),
            }
        )
    return records


def _folds(split):
    """Splits whose test points are a part of the training points."""
    order = np.random.default_rng(split.seed).permutation(len(split.y))
    for k in range(FOLDS):
        out = np.isin(np.arange(len(order)), order[k::FOLDS])
        X, y = split.X, split.y
        yield digits.Split(X[~out], y[~out], X[out], y[out], split.seed)


def _errors(split, budgets):
    """{(norm, machine, B): {(C, steps): test error at s = B}}; no steps: 0."""
    kernels = [methods.kernel(Z, split.X) for Z in (split.X, split.X_test)]
    found = {}
    for kind in methods.NORMS:
        for C in FACTORS:
            for machines in (_optima, _stopped, _usual):
                for machine, budget, steps, f in machines(
                    kind, split, kernels, budgets, C
                ):
                    percent = 100.0 * methods.error(f, split.y_test)
                    of = found.setdefault((kind, machine, budget), {})
                    of[C, steps] = percent
    return found


def _pruned(given, kernels, c, budget):
    """Scores of the test points by the B largest, with the best b."""
    ((_, f, b),) = methods.pruned(given, kernels, c, [budget])
    return f + b


def _optima(kind, split, kernels, budgets, C):
    for budget in budgets:
        given = methods.problem(kind, split.X, split.y, budget, C)
        found = solve(given, tol=methods.TOL)
        yield OPTIMUM, budget, 0, _pruned(given, kernels, found.w, budget)


def _stopped(kind, split, kernels, budgets, C):
    for budget in budgets:
        given = methods.problem(kind, split.X, split.y, budget, C)
        limits = smo.Limits.of(kind, budget, C)
        steps = platt.Run(kernels[0], split.y, limits, split.seed)
        for asked in STEPS:
            c = split.y * steps.to(asked).alpha
            yield SMO, budget, asked, _pruned(given, kernels, c, budget)


def _usual(kind, split, kernels, budgets, C):
    about = Kernel("rbf", gamma=digits.GAMMA)
    given = Problem(split.X, split.y, C, loss=LOSSES[kind], kernel=about)
    found = solve(given, tol=methods.TOL)
    models = reduce_path(given, found, list(budgets))
    for budget, model in zip(budgets, models, strict=True):
        yield PLAIN, budget, 0, _pruned(given, kernels, found.w, budget)
        again = kernels[1][:, model.rows] @ model.coefficients + model.b
        yield REFIT, budget, 0, again


def _of(records, kind, machine, budget):
    key = kind, machine, budget
    return [r for r in records if (r["norm"], r["machine"], r["B"]) == key]


def _budgets(records):
    return sorted({r["B"] for r in records})


def table(records):
    """Lines of text: means over the splits."""
    splits = len({r["split"] for r in records})
    yield f"Test error in % at s = B, C by {FOLDS} folds (SMO: steps too), mean of"
    yield f"{splits} splits (least of all C and steps); and what was chosen"
    for kind in methods.NORMS:
        yield ""
        yield f"{kind:8}" + "".join(f"{m:>30}" for m in MACHINES)
        for budget in _budgets(records):
            cells = (_cell(_of(records, kind, m, budget)) for m in MACHINES)
            yield f"B = {budget:<4}" + "".join(f"{cell:>30}" for cell in cells)
    yield ""
    yield "C (and steps) that were chosen"
    for kind in methods.NORMS:
        for machine in MACHINES:
            for budget in _budgets(records):
                mine = _of(records, kind, machine, budget)
                shown = ", ".join(
                    f"{r['C']:g}" + (f" ({r['steps']})" if r["steps"] else "")
                    for r in mine
                )
                yield f"{kind:3}{machine:29}B = {budget:<5}{shown}"


def _cell(mine):
    error, best = (np.mean([r[name] for r in mine]) for name in ("error", "best"))
    return f"{error:.1f} ({best:.1f})"


def draw(records, folder):
    """Errors at s = B."""
    figure, axes = style.panels(1, 2, width=4.8, height=4.0)
    budgets = _budgets(records)
    for axis, kind in zip(axes, methods.NORMS, strict=True):
        for k, machine in enumerate(MACHINES):
            means = [
                np.mean([r["error"] for r in _of(records, kind, machine, B)])
                for B in budgets
            ]
            style.curve(axis, budgets, means, k, machine)
        axis.set(title=f"{kind}, C by cross-validation", ylim=(0, None))
        axis.set(xlabel="support vectors kept, s = B", ylabel="test error, %")
        axis.grid(color="0.9")
    style.legend(figure, axes[0], 2)
    style.save(figure, folder, NAME)
