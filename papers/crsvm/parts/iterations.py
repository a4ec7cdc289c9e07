"""Figure 5.5: patterns used and complementarity mu at every iteration."""

import numpy as np

from papers import style
from papers.crsvm import methods
from widemargin import Problem, solve

NAME = "figure_5.5"
SET = "letter"
SHARES = (1.0, 0.5, 0.25, 0.1)
ALL = "all rows"
SHOWN = 100  # iterations in the picture


def run(options):
    """A record for each form and q_U / m: |Q| and mu by iteration."""
    records = []
    for data in options.sets([SET]):
        for form, make in methods.FORMS.items():
            records.append(_history(data, form, None, make(None)))
            for share in SHARES:
                records.append(_history(data, form, share, make(share=share)))
    return records


def _history(data, form, share, solver):
    trace = (
        solution := solve(Problem(data.X, data.y), solver, tol=methods.TIGHT)
    ).trace
    return {
        "set": data.name,
        "form": form,
        "share": share,
        "status": str(solution.status),
        "iterations": trace[-1].iteration,
        "active": trace.column("active").tolist(),
        "mu": [float(f"{mu:.4g}") for mu in trace.column("mu")],
    }


def reached(record, level):
    """Iterations until mu is at most a level (None: never)."""
    below = np.flatnonzero(np.array(record["mu"]) <= level)
    return int(below[0]) if below.size else None


def table(records):
    """Lines of text: when mu passes three levels."""
    yield f"{'form':11}{'q_U / m':>8}{'mu<1e-2':>9}{'<1e-4':>7}{'<1e-6':>7}{'end':>6}"
    for r in records:
        levels = [str(reached(r, level) or "-") for level in (1e-2, 1e-4, 1e-6)]
        share = f"{r['share']:g}" if r["share"] else ALL
        yield (
            f"{r['form']:11}{share:>8}{levels[0]:>9}{levels[1]:>7}{levels[2]:>7}"
            f"{r['iterations']:6}  {r['status']}"
        )


def draw(records, folder):
    """|Q| and mu: as printed, damped and repaired."""
    figure, axes = style.panels(len(methods.FORMS), 2)
    for k, form in enumerate(methods.FORMS):
        whole, *chosen = (r for r in records if r["form"] == form)
        for axis, column in ((axes[2 * k], "active"), (axes[2 * k + 1], "mu")):
            axis.plot(whole[column], color="black", lw=2.2, label=ALL)
            for j, r in enumerate(chosen):
                label = f"$q_U$ = {r['share']:g} m"
                places = range(len(r[column])), r[column]
                style.curve(axis, *places, j, label, markevery=4)
                if r["status"] != "solved":
                    last = min(len(r[column]) - 1, SHOWN)
                    axis.plot(last, r[column][last], "kx", ms=11)
            axis.set_yscale("log")
            axis.set_xlim(-2, SHOWN + 2)
            axis.set_xlabel(f"iteration (to {SHOWN} of at most 200; x: not solved)")
        axes[2 * k].set_ylabel(f"{form}: patterns used")
        axes[2 * k + 1].set_ylabel(rf"{form}: $\mu$")
    style.legend(figure, axes[0], 5)
    style.save(figure, folder, NAME)
