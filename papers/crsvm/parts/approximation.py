"""Figure 5.7: error and time of approximations over rank and over patterns."""

import itertools

from papers import measure, style
from papers.crsvm import datasets, lowrank

NAME = "figure_5.7"
RANKS = (16, 32, 64, 128, 300, 600)
# The patterns of a5a, on which the paper varied the rank: drawn from a9a.
PATTERNS = 6414
LABELS = {"rows": "training patterns", "seconds": "processor seconds"}


def run(options):
    """A record for each set, method and rank."""
    records = []
    for data in options.sets(["a9a"]):
        cases = [(method, rank) for method in lowrank.RANKS for rank in RANKS]
        records += _measured("rank", data.drawn(PATTERNS), cases, options)
    for data in options.sets(datasets.ADULT):
        records += _measured("rows", data, lowrank.RANKS.items(), options)
    return records


def _measured(over, data, cases, options):
    maps, head = [], {"over": over, "set": data.name, "rows": len(data.y)}
    for method, rank in cases:
        z, seconds = lowrank.approximation(data, method, rank, options.runs(data))
        maps.append((method, z, seconds))
    found = lowrank.errors(data, [z for _, z, _ in maps])
    return [
        {
            **head,
            "method": method,
            "rank": z.rank,
            "seconds": seconds,
            "error": error,
            "estimate": z.error,
            "trace": z.trace_residual,
        }
        for (method, z, seconds), error in zip(maps, found, strict=True)
    ]


def table(records):
    """Lines of text: processor seconds, the error, the library's estimate of it."""
    yield (
        f"{'over':6}{'set':5}{'rows':>7}  {'method':6}{'rank':>5}{'s':>9}"
        f"{'error':>10}{'estimate':>10}{'trace':>10}"
    )
    for r in records:
        yield (
            f"{r['over']:6}{r['set']:5}{r['rows']:7}  {r['method']:6}{r['rank']:5}"
            f"{r['seconds']:9.3f}{r['error']:10.2e}{r['estimate']:10.2e}"
            f"{r['trace']:10.2e}"
        )
    for method in lowrank.RANKS:
        line = _line(records, "rows", method)
        if len(line) > 1:
            error, seconds = (_exponent(line, name) for name in ("error", "seconds"))
            yield f"{method}: error as rows^{error:.2f}, seconds as rows^{seconds:.2f}"


def _exponent(line, column):
    rows = [r["rows"] for r in line]
    return measure.growth_exponent(rows, [r[column] for r in line])


def _line(records, over, method):
    return [r for r in records if r["over"] == over and r["method"] == method]


def draw(records, folder):
    """Four panels, in the paper's order."""
    figure, axes = style.panels(2, 2)
    shown = itertools.product(("error", "seconds"), ("rank", "rows"))
    for axis, (column, over) in zip(axes, shown, strict=True):
        for k, method in enumerate(lowrank.RANKS):
            line = _line(records, over, method)
            label = method if over == "rank" else f"{method}, rank {line[0]['rank']}"
            places = [r[over] for r in line], [r[column] for r in line]
            style.curve(axis, *places, k, label)
        axis.set_xlabel(LABELS.get(over, over))
        axis.set_ylabel(LABELS.get(column, column))
        axis.set_xscale("log")
        axis.set_yscale("log")
        style.plain(axis, "x", (1, 2, 5))
        axis.legend()
    style.save(figure, folder, NAME)
