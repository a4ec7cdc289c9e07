"""Figure 5.1: time and iterations of the two rules beside all rows, with q_U = m."""

from papers import style
from papers.crsvm import datasets, methods

NAME = "figure_5.1"
ALL = "all rows"
BARS = (ALL, "one-sided", "omega", "omega, repaired", "default")


def solvers():
    """The bars of the figure, and ours; then the paper's six variants."""
    chosen = {ALL: methods.unreduced()}
    for rule, option in methods.RULES.items():
        chosen[rule] = methods.published(option)
        chosen[f"{rule}, non-balanced"] = methods.published(option, balanced=False)
        # Nonadaptive with q_U = m is all rows: half of them here.
        chosen[f"{rule}, nonadaptive m/2"] = methods.published(
            option, adaptive=False, share=0.5
        )
    chosen["omega, repaired"] = methods.repaired()
    chosen["default"] = methods.InteriorPoint()
    return chosen


def run(options):
    """A record for each set and variant."""
    records = []
    for data in options.sets(datasets.TABLE):
        found = methods.compare(data, solvers(), repeat=options.repeat)
        tight = methods.compare(data, solvers(), repeat=1, tol=methods.TIGHT)
        for label, numbers in found.items():
            ratio = numbers["seconds"] / found[ALL]["seconds"]
            head = {"set": data.name, "variant": label, "ratio": ratio}
            records.append({**head, **numbers, "tight": tight[label]})
    return records


def table(records):
    """Lines of text: to a gap of 1e-6; iterations and last Q to 1e-8, ! not solved.

    "work" is the patterns in normal matrices over those of all rows.
    """
    yield (
        f"{'set':10}{'variant':27}{'s':>7}{'ratio':>7}{'work':>6}{'iter':>6}"
        f"{'last Q':>8}{'pcg':>5}{'to 1e-8':>9}{'last Q':>8}"
    )
    for r in records:
        whole = next(w for w in records if w["set"] == r["set"] and w["variant"] == ALL)
        work = methods.patterns(r) / methods.patterns(whole)
        mark, tight = _mark(r), r["tight"]
        count = f"{tight['iterations']}{_mark(tight)}"
        yield (
            f"{r['set']:10}{r['variant']:27}{r['seconds']:7.2f}{r['ratio']:7.2f}"
            f"{work:6.2f}{str(r['iterations']) + mark:>6}"
            f"{r['active_last']:8}{r['pcg_steps']:5}{count:>9}"
            f"{tight['active_last']:8}"
        )
    for name in dict.fromkeys(r["set"] for r in records):
        worst = methods.disagreement([r["tight"] for r in records if r["set"] == name])
        yield f"{name}: objectives solved to 1e-8 differ by {worst:.0e} at most"


def _mark(numbers):
    return "" if numbers["status"] == "solved" else "!"


def draw(records, folder):
    """Bars of time over that of all rows, and of iterations."""
    groups = list(dict.fromkeys(r["set"] for r in records))
    found = {(r["set"], r["variant"]): r for r in records}
    figure, (times, counts) = style.panels(1, 2, width=5.0)
    for axis, column in ((times, "ratio"), (counts, "iterations")):
        values = {b: [found[g, b][column] for g in groups] for b in BARS}
        style.bars(axis, groups, values, BARS)
    times.set_ylabel("time / time with all rows")
    times.axhline(1.0, color="black", lw=0.6)
    counts.set_ylabel("iterations")
    style.legend(figure, counts, len(BARS))
    style.save(figure, folder, NAME)
