"""Algorithm 1 as printed, and with damped corrections: to the paper's own end."""

from papers.crsvm import datasets, methods
from papers.measure import rounded
from widemargin import Problem, solve

NAME = "algorithm_1"
SETS = (*datasets.TABLE, "a1a", "a3a", "a9a")
SHARES = (1.0, 0.5, 0.25, 0.1)
FORMS = {"printed": methods.published, "damped": methods.damped}
# Below every gap at the paper's end, so that this end or its 200 iterations end a run.
NEVER, MOST = 1e-14, 200


def run(options):
    """A record for each set, form and q_U / m, and for all rows."""
    return [
        {"set": data.name, "form": form, "share": share}
        | measured(Problem(data.X, data.y), solver)
        for data in options.sets(SETS)
        for form, make in FORMS.items()
        for share, solver in [
            (None, make(None)),
            *((share, make(share=share)) for share in SHARES),
        ]
    ]


def measured(problem, solver):
    """Iterations to the paper's end, mu and |Q| there, and the certified gap."""
    solution = solve(problem, solver, tol=NEVER, max_iter=MOST)
    last = solution.trace[-1]
    return {
        "iterations": last.iteration,
        "mu": rounded(last.details["mu"], 3),
        "active_last": last.active,
        "primal": solution.certificate.primal,
        "gap": rounded(solution.certificate.relative_gap, 3),
    }


def table(records):
    """Lines of text: iterations (last Q), certified gap; ! where it did not end."""
    heads = ("all rows", *(f"q_U = {share:g} m" for share in SHARES))
    yield f"{'set, form':18}" + "".join(f"{head:>22}" for head in heads)
    for name, form in dict.fromkeys((r["set"], r["form"]) for r in records):
        line = [r for r in records if (r["set"], r["form"]) == (name, form)]
        yield f"{name + ', ' + form:18}" + "".join(f"{_cell(r):>22}" for r in line)


def _cell(r):
    mark = "!" if r["iterations"] == MOST else ""
    return f"{r['iterations']}{mark} ({r['active_last']}) {r['gap']:.0e}"


def draw(records, folder):
    """No picture."""
