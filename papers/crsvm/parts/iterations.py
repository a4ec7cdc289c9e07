"""Figure 5.5: patterns used and complementarity mu at every iteration."""

import numpy as np

from papers import style
from papers.crsvm import methods
from widemargin import Problem, solve

NAME = "figure_5.5"
SET = "letter"
SHARES = (1.0, 0.5, 0.25, 0.1)
ALL = "all rows"
FORMS = {"published": methods.published, "repaired": methods.repaired}


def run(options):
    """A record for each form and q_U / m: |Q| and mu by iteration."""
    records = []
    for data in options.sets([SET]):
        records.append(_history(data, "", 0.0, methods.unreduced()))
        for form, make in FORMS.items():
            for share in SHARES:
                records.append(_history(data, form, share, make(share=share)))
    return records


def _history(data, form, share, solver):
    solution = solve(
        Problem(data.X, data.y), solver, tol=methods.TIGHT, time_limit=30.0
    )
    trace = solution.trace
    return {
        "set": data.name,
        "form": form,
        "share": share,
        "status": str(solution.status),
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
        levels = [reached(r, level) for level in (1e-2, 1e-4, 1e-6)]
        share = f"{r['share']:g}" if r["form"] else ALL
        yield (
            f"{r['form']:11}{share:>8}{levels[0]!s:>9}{levels[1]!s:>7}{levels[2]!s:>7}"
            f"{len(r['mu']) - 1:6}  {r['status']}"
        )


def draw(records, folder):
    """|Q| and mu, as published and repaired."""
    figure, axes = style.panels(2, 2)
    for k, form in enumerate(FORMS):
        chosen = [r for r in records if r["form"] == form]
        whole = next(r for r in records if not r["form"])
        for axis, column in ((axes[2 * k], "active"), (axes[2 * k + 1], "mu")):
            axis.plot(whole[column], color="black", lw=2.2, label=ALL)
            for j, r in enumerate(chosen):
                style.curve(
                    axis,
                    range(len(r[column])),
                    r[column],
                    j,
                    f"$q_U$ = {r['share']:g} m",
                    markevery=4,
                )
            axis.set_yscale("log")
            axis.set_xlabel("iteration")
        axes[2 * k].set_title(f"{form}: patterns used")
        axes[2 * k + 1].set_title(rf"{form}: $\mu$")
    style.legend(figure, axes[0], 5)
    style.save(figure, folder, NAME)
