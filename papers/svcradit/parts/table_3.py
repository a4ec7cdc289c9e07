"""Table 3: support vectors and times, random working sets beside others."""

from statistics import median

from papers import style
from papers.svcradit import methods
from papers.svcradit.datasets import TABLE_3
from papers.svcradit.svm_light import svm_light

NAME = "table_3"
PAPER, GUARDED, RANDOM, CARRIED, OLD, DEFAULT, LIBSVM, LIGHT = (
    "SVCradit: Table 1",
    "SVCradit: guarded",
    "random, pairs",
    "largest, half kept",
    "largest, none kept",
    "default",
    "LIBSVM",
    "SVM-light",
)
OURS = (PAPER, GUARDED, RANDOM, OLD, CARRIED, DEFAULT)
METHODS = (*OURS, LIBSVM, LIGHT)


def run(options):
    """A record for each row and method, to a gap of 1e-4."""
    records = []
    for row, X, y in options.sets(TABLE_3):
        found = _random(row, X, y, options) | _others(row, X, y, options)
        about = {"set": row.label, "rows": len(y), "C": row.C, "q": row.q}
        about |= {"paper": row.vectors, "paper_seconds": row.seconds}
        about |= {"light_seconds": row.seconds_light}
        records += [{**about, "method": m, **numbers} for m, numbers in found.items()]
        print(f"  {row.label} is done", flush=True)
    return records


def _random(row, X, y, options):
    """{method: record} of the random selection, over its seeds."""
    inner = {PAPER: "published", GUARDED: "guarded", RANDOM: "pairs"}
    return {
        m: methods.of_seeds(
            row, X, y, methods.policy("random", 0.0, row.q, name), options
        )
        for m, name in inner.items()
    }


def _others(row, X, y, options):
    """{method: record} of all that take the largest violators."""
    solvers = {
        OLD: methods.policy("violation", 0.0, row.q),
        CARRIED: methods.policy("violation", 0.5, row.q),
        DEFAULT: methods.policy("violation", 0.5),
    }
    found = {m: methods.ours(row, X, y, s, options) for m, s in solvers.items()}
    found[LIBSVM] = methods.libsvm(row, X, y, options)
    if options.light is not None:
        program, limit = options.light, 4 * options.limit
        found[LIGHT] = svm_light(program, row, X, y, limit)
    return found


def by_set(records):
    """{set: {method: record}}, in order."""
    found = {}
    for record in records:
        found.setdefault(record["set"], {})[record["method"]] = record
    return found


def table(records):
    """Lines of text: support vectors; seconds; working sets and kernel values."""
    yield "Support vectors: the paper, LIBSVM (tol 1e-3) and ours (gap 1e-4), free ones"
    yield f"{'set':16}{'rows':>8}{'paper':>8}{'LIBSVM':>8}{'ours':>8}{'free':>8}"
    for name, found in by_set(records).items():
        mine, theirs = found[DEFAULT], found[LIBSVM]
        yield (
            f"{name:16}{mine['rows']:8,}{mine['paper']:8,}{theirs['vectors']:8,}"
            f"{mine['vectors']:8,}{mine['free']:8,}"
        )
    yield ""
    yield (
        "Processor seconds to a gap of 1e-4 (! not reached; LIBSVM and SVM-light: to "
        "their tol 1e-3)"
    )
    yield from _lines(records, METHODS, _seconds)
    yield ""
    yield "Working sets / rows of K computed (random: the middle one of the seeds)"
    yield from _lines(records, OURS, _sets)
    yield ""
    yield "Random: working sets of the seeds, least to most"
    yield from _lines(records, (PAPER, GUARDED, RANDOM), _seeds)
    yield ""
    yield "SVCradit as printed over others, in seconds: the paper, and ours"
    yield f"{'set':16}{'SVM-light, paper':>20}{'SVM-light':>12}{'LIBSVM':>12}"
    for name, found in by_set(records).items():
        yield f"{name:16}{_verdict(found)}"
    yield ""
    yield "The paper's seconds, Pentium III, 450 MHz: SVCradit, SVM-light, and ratio"
    for name, found in by_set(records).items():
        r = found[DEFAULT]
        share = r["light_seconds"] / r["paper_seconds"]
        line = f"{r['paper_seconds']:10.2f}{r['light_seconds']:10.2f}{share:8.2f}"
        yield f"{name:16}{line}"


def _lines(records, labels, cell):
    yield f"{'set':16}{'q':>5}" + "".join(f"{m:>25}" for m in labels)
    for name, found in by_set(records).items():
        cells = "".join(f"{cell(found[m]) if m in found else '-':>25}" for m in labels)
        yield f"{name:16}{found[DEFAULT]['q']:5}{cells}"


def _seconds(r):
    mark = "" if r["status"] == "solved" else f" ! {r['gap']:.0e}"
    clock = f" {r['clock']}" if "clock" in r else ""
    return f"{r['seconds']:.3f}{clock}{mark}"


def _sets(r):
    mark = "" if r["status"] == "solved" else " !"
    return f"{r['sets']:,} / {r['entries'] / r['rows']:,.0f}{mark}"


def _seeds(r):
    solved = [sets for sets, _, gap in r["seeds"] if gap <= methods.TOL]
    there = f"{min(solved):,} to {max(solved):,}" if solved else "-"
    return f"{there} ({len(solved)} of {len(r['seeds'])})"


def _verdict(found):
    """Ratios of seconds, those of ours with the median of the seeds."""
    ratios, mark = [float("nan"), float("nan")], ""
    if PAPER in found:
        mine = median(seconds for _, seconds, _ in found[PAPER]["seeds"])
        ratios = [mine / _processor(found.get(m)) for m in (LIGHT, LIBSVM)]
        mark = "" if found[PAPER]["status"] == "solved" else " !"
    r = found[DEFAULT]
    paper = r["paper_seconds"] / r["light_seconds"]
    return f"{paper:20.2f}{ratios[0]:12.2f}{ratios[1]:12.2f}{mark}"


def _processor(r):
    """Seconds of the processor, if those are on record."""
    return float("nan") if r is None or "clock" in r else r["seconds"]


def draw(records, folder):
    """Working sets of each policy, as bars."""
    found = by_set(records)
    figure, (axis,) = style.panels(1, 1, width=9.5, height=4.2)
    shown = (OLD, RANDOM, CARRIED)
    values = {m: [r[m]["sets"] for r in found.values()] for m in shown}
    style.bars(axis, list(found), values, shown)
    for k, m in enumerate(shown):
        for g, r in enumerate(found.values()):
            if r[m]["status"] != "solved":
                above = 1.15 * r[m]["sets"]
                axis.plot(g + (k - 1) * 0.27, above, "kx", ms=7, mew=2)
    axis.set_yscale("log")
    axis.tick_params(axis="x", labelrotation=30)
    axis.set_ylabel("working sets to a gap of 1e-4 (x: not reached)")
    axis.legend()
    style.save(figure, folder, NAME)
