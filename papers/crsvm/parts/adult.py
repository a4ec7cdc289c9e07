"""Figure 5.6: time over the number of patterns on the Adult series, and LIBSVM's."""

import numpy as np

from papers import measure, style
from papers.crsvm import datasets, methods
from papers.crsvm.libsvm import timed
from widemargin import Problem

NAME = "figure_5.6"
LIBSVM = "LIBSVM"


def solvers():
    """Ours: the setting of the figure, all rows, and what the library chooses."""
    return {
        "CRSVM": methods.published(),
        "all rows": methods.unreduced(),
        "CRSVM, repaired": methods.repaired(),
    }


def libsvm(data, options):
    """A record of LIBSVM."""
    found = timed(data, options, kernel="linear")
    if found is None:
        return {"seconds": None, "status": f"over {options.timeout:g} s"}
    seconds, c, b = found
    certificate = Problem(data.X, data.y).certify(abs(c), data.X.T @ c, b)
    return {
        "seconds": seconds,
        "status": "solved",
        "primal": certificate.primal,
        "gap": certificate.relative_gap,
    }


def run(options):
    """A record for each set and method."""
    records = []
    for data in options.sets(datasets.ADULT):
        found = methods.compare(data, solvers(), repeat=options.repeat)
        found["default, tol 1e-3"] = methods.compare(
            data, {"": methods.InteriorPoint()}, repeat=options.repeat, tol=1e-3
        )[""]
        found[LIBSVM] = libsvm(data, options)
        best = found["all rows"]["primal"]
        for label, numbers in found.items():
            head = {"set": data.name, "rows": len(data.y), "method": label}
            over = (numbers.get("primal", np.nan) - best) / best
            records.append({**head, **numbers, "above": over})
    return records


def exponents(records):
    """Growth exponent of each method over the sets it solved: {method: slope}."""
    slopes = {}
    for method in dict.fromkeys(r["method"] for r in records):
        done = [r for r in records if r["method"] == method and r["status"] == "solved"]
        if len(done) > 1:
            slopes[method] = measure.growth_exponent(
                [r["rows"] for r in done], [r["seconds"] for r in done]
            )
    return slopes


def table(records):
    """Lines of text: seconds (iterations), ! not solved; then growth exponents."""
    labels = list(dict.fromkeys(r["method"] for r in records))
    yield f"{'set':5}{'rows':>7}" + "".join(f"{m:>20}" for m in labels)
    for name in dict.fromkeys(r["set"] for r in records):
        line = {r["method"]: r for r in records if r["set"] == name}
        cells = "".join(f"{_cell(line[m]):>20}" for m in labels)
        yield f"{name:5}{line[labels[0]]['rows']:7}{cells}"
    slopes = exponents(records)
    cells = "".join(f"{slopes.get(m, np.nan):20.2f}" for m in labels)
    yield f"{'exponent':12}{cells}"
    for m in labels:
        above = max(r["above"] for r in records if r["method"] == m)
        yield f"{m}: objective at most {above:.1e} (relative) above the optimum"


def _cell(r):
    if r["seconds"] is None:
        return r["status"]
    count = f" ({r['iterations']})" if "iterations" in r else ""
    mark = "" if r["status"] == "solved" else "!"
    return f"{r['seconds']:.3f}{count}{mark}"


def draw(records, folder):
    """Seconds over rows, in log-log and in linear axes."""
    figure, (log, linear) = style.panels(1, 2, width=5.0, height=3.8)
    slopes = exponents(records)
    for axis in (log, linear):
        for k, method in enumerate(dict.fromkeys(r["method"] for r in records)):
            done = [r for r in records if r["method"] == method and r["seconds"]]
            rows, seconds = [r["rows"] for r in done], [r["seconds"] for r in done]
            if axis is linear and method != LIBSVM and method != "CRSVM":
                continue
            label = f"{method}: exponent {slopes.get(method, np.nan):.2f}"
            style.curve(axis, rows, seconds, k, label)
            bad = [r for r in done if r["status"] != "solved"]
            places = [r["rows"] for r in bad], [r["seconds"] for r in bad]
            axis.plot(*places, "kx", ms=11)
        axis.set_xlabel("training patterns (x: not solved)")
        axis.set_ylabel("seconds")
    log.set_xscale("log")
    log.set_yscale("log")
    style.plain(log, "x", (1, 2, 5))
    style.plain(log, "y", (1,))
    log.legend(fontsize="small")
    linear.set_title("the same, linear axes")
    style.save(figure, folder, NAME)
