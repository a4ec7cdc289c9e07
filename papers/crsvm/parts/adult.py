"""Figure 5.6: time over the number of patterns on the Adult series, and LIBSVM's."""

import time

import numpy as np

from papers import measure, style
from papers.crsvm import datasets, methods
from papers.crsvm.libsvm import timed
from widemargin import Problem

NAME = "figure_5.6"
LIBSVM = "LIBSVM"


def solvers():
    """The setting of the figure, all rows, our repair, and what the library chooses."""
    return {
        "CRSVM": methods.published(),
        "all rows": methods.unreduced(),
        "CRSVM, repaired": methods.repaired(),
        "default": methods.InteriorPoint(),
    }


def libsvm(data, options):
    """A record of LIBSVM."""
    found = timed(data, options, clock=time.process_time, kernel="linear")
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
        found[LIBSVM] = libsvm(data, options)
        best = min(r["primal"] for r in found.values() if "primal" in r)
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
    return f"{r['seconds']:.3f}{count}{methods.marks(r) if count else ''}"


def draw(records, folder):
    """Seconds over rows, in log-log and in linear axes."""
    figure, (log, linear) = style.panels(1, 2, width=5.0, height=4.2)
    slopes = exponents(records)
    for axis in (log, linear):
        for k, method in enumerate(dict.fromkeys(r["method"] for r in records)):
            if axis is log or method in ("CRSVM", LIBSVM):
                done = [r for r in records if r["method"] == method and r["seconds"]]
                label = f"{method}: exponent {slopes.get(method, np.nan):.2f}"
                _curve(axis, done, k, label)
        axis.set_xlabel("training patterns (x: not solved)")
        axis.set_ylabel("processor seconds")
    log.set_xscale("log")
    log.set_yscale("log")
    style.plain(log, "x", (1, 2, 5))
    style.plain(log, "y", (1,))
    log.set_title("to a gap of 1e-6; LIBSVM to its tolerance 1e-3")
    linear.set_title("CRSVM and LIBSVM, linear axes")
    style.legend(figure, log, 3)
    style.save(figure, folder, NAME)


def _curve(axis, line, k, label):
    style.curve(axis, *_places(line), k, label)
    bad = [r for r in line if r["status"] != "solved"]
    axis.plot(*_places(bad), "kx", ms=11)


def _places(line):
    return [r["rows"] for r in line], [r["seconds"] for r in line]
