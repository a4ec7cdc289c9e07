"""Section 4: R - R* over the steps, sublinear without away steps and linear with them.

All rows are looked at. R* is that of the default at a gap of 1e-9.
"""

import numpy as np
from scipy import sparse

from papers import style
from papers.frank_wolfe import methods
from papers.frank_wolfe.datasets import C_TUNED, FW, MFW
from papers.frank_wolfe.methods import PAIRWISE
from widemargin import Kernel, Problem, solve

NAME = "rates"
SETS = ("a4a", "w3a")
SHOWN = (FW, MFW, PAIRWISE)
MOST_STEPS = 100_000
PRECISE, NEAR = 1e-9, 1e-7  # gaps of R*, and of the methods


def run(options):
    """A record for each set and method, with R / R* - 1 after some steps."""
    records = []
    for row, data in options.sets(SETS):
        y = np.where(data.y == data.y.max(), 1.0, -1.0)
        kernel = Kernel("rbf", gamma="mean_distance")
        C = C_TUNED[row.name]
        X = data.X.toarray() if sparse.issparse(data.X) else data.X
        problem = Problem(X, y, 0.5 * C, "squared_hinge", kernel=kernel)
        best = 0.5 / solve(problem, tol=PRECISE).certificate.dual
        for method in SHOWN:
            steps, rho = walked(problem, methods.by_gap(method), options.limit)
            excess = [methods.rounded(r / best - 1.0) for r in rho]
            about = {"set": row.name, "rows": len(y), "C": C, "method": method}
            found = {"steps": steps, "excess": excess, **fits(steps, excess)}
            records.append({**about, **found})
        print(f"  {row.name} is done", flush=True)
    return records


def walked(problem, solver, limit):
    """The numbers of steps, and R after them."""
    steps, rho = [], []

    def keep(step):
        steps.append(int(step.details["steps"]))
        rho.append(step.details["rho"])
        return steps[-1] >= MOST_STEPS

    solve(problem, solver, tol=NEAR, time_limit=limit, callback=keep)
    return steps, rho


def fits(steps, excess):
    """Slopes of log (R - R*): over the log of steps, and over 1,000 steps (base 10).

    Of the second half of what is known above 1e-7.
    """
    some = [(k, e) for k, e in zip(steps, excess, strict=True) if k and e > NEAR]
    some = some[len(some) // 2 :]
    if len(some) < 2:
        return {"power": None, "digits": None}
    k, e = np.array(some).T
    power = float(np.polyfit(np.log(k), np.log(e), 1)[0])
    digits = float(np.polyfit(k / 1000.0, np.log10(e), 1)[0])
    return {"power": methods.rounded(power), "digits": methods.rounded(digits)}


def table(records):
    """Lines of text: the last point, and the slopes."""
    yield (
        "R / R* - 1 over steps: the last one, the exponent of the steps, and decimal "
        "digits won by 1,000 steps (second half of the run)"
    )
    head = f"{'steps':>9}{'R / R* - 1':>12}{'exponent':>10}{'digits':>9}"
    yield f"{'set':6}{'rows':>7}{'C':>6}{'method':>10}{head}"
    for r in records:
        power, digits = (
            "-" if v is None else f"{v:.3g}" for v in (r["power"], r["digits"])
        )
        last = (
            f"{r['steps'][-1]:9,}{r['excess'][-1]:12.1e}"
            if r["steps"]
            else f"{0:9}{'-':>12}"
        )
        about = f"{r['set']:6}{r['rows']:7,}{r['C']:6g}{r['method']:>10}"
        yield f"{about}{last}{power:>10}{digits:>9}"


def draw(records, folder):
    """R / R* - 1 over steps: a power of them is a line on the left, linear right."""
    names = list(dict.fromkeys(r["set"] for r in records))
    figure, axes = style.panels(len(names), 2, width=5.0, height=3.2)
    for line, name in enumerate(names):
        for axis in axes[2 * line : 2 * line + 2]:
            drawn = [_draw(axis, records, name, k, m) for k, m in enumerate(SHOWN)]
            axis.set(title=f"{name}, all rows looked at")
            if any(drawn):  # a log scale has no place for nothing
                axis.set_yscale("log")
            axis.set_xlabel("steps (x: R is R* to the digits of float32)")
            axis.set_ylabel("(R - R*) / R*")
        if any(drawn):
            axes[2 * line].set_xscale("log")
    style.legend(figure, axes[0], 3)
    style.save(figure, folder, NAME)


def _draw(axis, records, name, k, method):
    """One curve, without the start, which is no step; a cross where digits end.

    Returns the number of its points: none where the time was over before a step.
    """
    (r,) = (x for x in records if (x["set"], x["method"]) == (name, method))
    pairs = list(zip(r["steps"], r["excess"], strict=True))
    known = np.array([(s, e) for s, e in pairs if s and e > 0]).reshape(-1, 2)
    style.curve(axis, *known.T, k, method, markevery=0.1)
    there = [s for s, e in pairs if e <= 0][:1]
    style.crosses(axis, there, 0.03, style.LINES[k][0])
    return len(known)
