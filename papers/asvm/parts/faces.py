"""Algorithm 3.1 by nu: whether its short form is exact, how many safeguards it needs.

The short form is steps (0) to (3); (2a), (2b), (4a) and (4b) are safeguards. There may
be as many as it wants, until it ends by itself.
"""

from papers.asvm import datasets, methods
from widemargin import solve
from widemargin.solvers import ActiveSet

NAME = "faces"
NUS = (1e-4, 1e-2, 1.0, 1e2, 1e4, 1e6)
UNLIMITED = 10_000
PUBLISHED = ActiveSet(mode="asvm", max_safeguards=UNLIMITED)


def run(options):
    """A record for each set and nu."""
    records = []
    for data in datasets.small():
        data = data.thin(_step(data, options))
        for nu in NUS:
            head = {"set": data.name, "rows": len(data.y), "nu": nu}
            records.append(head | _behavior(data, nu))
    return records


def _step(data, options):
    """Every how many-th row."""
    return max(1, len(data.y) // 500) if options.quick else 1


def _behavior(data, nu):
    """Steps until a safeguard is wanted and the gap there, safeguards, and the rest."""
    problem = methods.as_problem(data.X, data.y, nu)
    solution = solve(problem, PUBLISHED, tol=methods.TOL, max_iter=UNLIMITED)
    numbers = methods.record(solution, [solution.trace[-1].seconds])
    published = [s for s in solution.trace if "safeguards" in s.details]
    short = [s for s in published if s.details["safeguards"] == 0]
    newton = solve(problem, methods.SOLVERS[methods.ZERO], tol=methods.TOL)
    return numbers | {
        "short": len(short),
        "short_gap": float(f"{short[-1].best_gap:.3g}"),
        "left": len(solution.trace) - len(published),
        "newton": len(newton.trace),
    }


def exact(record):
    """Whether the short form ends at the answer."""
    return record["short_gap"] <= methods.TOL


def table(records):
    """Lines of text: a set and what happened by nu."""
    yield "steps of the short form (its gap, if not solved) + steps with safeguards"
    yield "> steps of Newton's method after them; [Newton's method alone]"
    yield f"{'set':13}" + "".join(f"{f'nu = {nu:g}':>23}" for nu in NUS)
    for name in dict.fromkeys(r["set"] for r in records):
        mine = [r for r in records if r["set"] == name]
        yield f"{name:13}" + "".join(f"{_cell(r):>23}" for r in mine)


def _cell(r):
    mark = "" if r["status"] == "solved" else "!"
    newton = f" [{r['newton']}]{mark}"
    if exact(r):
        return f"{r['short']}{newton}"
    left = f" > {r['left']}" if r["left"] else ""
    more = r["published"] - r["short"]
    return f"{r['short']} ({r['short_gap']:.0e}) + {more}{left}{newton}"


def draw(records, folder):
    """No picture: the table says it."""
