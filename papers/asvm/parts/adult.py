"""The Adult series: seconds to the same gap over the number of points."""

from papers import measure, style
from papers.asvm import datasets, methods, others

NAME = "adult"
NU, GOAL, LIMIT = 1.0, 1e-6, 1.0
METHODS = (methods.PUBLISHED, methods.DEFAULT)
# As many curves as can be told apart; the table has all.
CURVES = (
    *METHODS,
    "LIBLINEAR (scikit-learn), primal",
    "Snap ML, 1 threads",
    "ReHLine",
)


def run(options):
    """A record for each set and method."""
    ladders = others.ladders()
    records = []
    for data in options.sets(datasets.ADULT):
        X, y = data.X, data.y
        again = {"repeat": options.repeat, "tol": GOAL}
        found = methods.compare(X, y, NU, METHODS, **again)
        problem = methods.as_problem(X, y, NU)
        race = others.Race(problem, X, y, 0.5 * NU, goal=GOAL, limit=LIMIT)
        for label, ladder in ladders.items():
            answer = race.run(ladder)
            found[label] = {"seconds": answer.seconds, "gap": answer.gap}
        for label, numbers in found.items():
            records.append(
                {"set": data.name, "rows": len(y), "method": label, **numbers}
            )
    return records


def exponents(records):
    """{method: slope in log-log} over the sets where it got to the gap."""
    slopes = {}
    for method in dict.fromkeys(r["method"] for r in records):
        done = [r for r in records if r["method"] == method and r["gap"] <= GOAL]
        if len(done) > 1:
            slopes[method] = measure.growth_exponent(
                [r["rows"] for r in done], [r["seconds"] for r in done]
            )
    return slopes


def table(records):
    """Lines of text: milliseconds to the gap; in brackets the gap of who fell short."""
    sets = {r["set"]: r["rows"] for r in records}
    yield (
        f"{'method':34}" + "".join(f"{name:>14}" for name in sets) + f"{'exponent':>10}"
    )
    yield f"{'':34}" + "".join(f"{rows:>14,}" for rows in sets.values())
    slopes = exponents(records)
    for method in dict.fromkeys(r["method"] for r in records):
        line = {r["set"]: r for r in records if r["method"] == method}
        cells = "".join(f"{_cell(line[name]):>14}" for name in sets)
        yield f"{method:34}{cells}{slopes.get(method, float('nan')):10.2f}"


def _cell(r):
    short = "" if r["gap"] <= GOAL else f" ({r['gap']:.0e})"
    steps = f" ({r['iterations']})" if "iterations" in r else ""
    return f"{1e3 * r['seconds']:.1f}{steps}{short}"


def draw(records, folder):
    """Seconds over rows."""
    figure, (axis,) = style.panels(1, 1, width=6.5, height=4.5)
    for k, method in enumerate(CURVES):
        done = [r for r in records if r["method"] == method and r["gap"] <= GOAL]
        rows, seconds = [r["rows"] for r in done], [r["seconds"] for r in done]
        style.curve(axis, rows, seconds, k, method)
    axis.set_xscale("log")
    axis.set_yscale("log")
    style.plain(axis, "x", (1, 2, 5))
    axis.set_xlabel("points")
    axis.set_ylabel(f"seconds to a gap of {GOAL:g}")
    axis.legend(fontsize="x-small")
    style.save(figure, folder, NAME)
