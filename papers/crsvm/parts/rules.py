"""Figure 5.1: time and iterations of the two rules beside all rows, with q_U = m."""

from papers import style
from papers.crsvm import datasets, methods

NAME = "figure_5.1"
ALL, OURS = "all rows", "all rows, repaired"
BARS = (ALL, "one-sided", "omega", "omega, damped", "omega, repaired", OURS)


def solvers():
    """The paper's six variants beside all rows, then damped and ours."""
    chosen = {ALL: methods.unreduced()}
    for rule, option in methods.RULES.items():
        chosen[rule] = methods.published(option)
        chosen[f"{rule}, non-balanced"] = methods.published(option, balanced=False)
        # Nonadaptive with q_U = m is all rows: half of them here.
        chosen[f"{rule}, nonadaptive m/2"] = methods.published(
            option, adaptive=False, share=0.5
        )
    chosen["omega, damped"] = methods.damped()
    chosen["omega, repaired"] = methods.repaired()
    chosen[OURS] = methods.repaired(None)
    chosen["default"] = methods.InteriorPoint()
    return chosen


def run(options):
    """A record for each set and variant."""
    records = []
    for data in options.sets(datasets.TABLE):
        found = methods.compare(data, solvers(), repeat=options.repeat)
        tight = methods.compare(data, solvers(), repeat=1, tol=methods.TIGHT)
        named = [
            {"set": data.name, "variant": label, **numbers, "tight": tight[label]}
            for label, numbers in found.items()
        ]
        records += methods.beside(named, found[ALL])
    return records


def table(records):
    """Lines of text: to a gap of 1e-6; iterations and last Q to 1e-8.

    Seconds are of the processor; "ratio" and "work", the patterns in normal matrices,
    are over those of all rows; a ! for each run that did not get to the gap.
    """
    yield (
        f"{'set':10}{'variant':27}{'s':>6}{'ratio':>7}{'work':>6}{'iter':>7}"
        f"{'last Q':>8}{'pcg':>5}{'to 1e-8':>9}{'last Q':>8}"
    )
    for r in records:
        tight = r["tight"]
        count = f"{tight['iterations']}{methods.marks(tight)}"
        yield (
            f"{r['set']:10}{r['variant']:27}{r['seconds']:6.2f}{r['ratio']:7.2f}"
            f"{r['work']:6.2f}{str(r['iterations']) + methods.marks(r):>7}"
            f"{r['active_last']:8}{r['pcg_steps']:5}{count:>9}"
            f"{tight['active_last']:8}"
        )
    for name in dict.fromkeys(r["set"] for r in records):
        worst = methods.disagreement([r["tight"] for r in records if r["set"] == name])
        yield f"{name}: objectives solved to 1e-8 differ by {worst:.0e} at most"


def draw(records, folder):
    """Bars of time over that of all rows, and of iterations."""
    groups = list(dict.fromkeys(r["set"] for r in records))
    found = {(r["set"], r["variant"]): r for r in records}
    figure, (times, counts) = style.panels(1, 2, width=5.0, height=3.6)
    for axis, column in ((times, "ratio"), (counts, "iterations")):
        values = {b: [_solved(found[g, b], column) for g in groups] for b in BARS}
        style.bars(axis, groups, values, BARS)
    times.set_ylabel("processor time / all rows")
    times.axhline(1.0, color="black", lw=0.6)
    counts.set_ylabel("iterations to a gap of 1e-6")
    times.set_xlabel("data set (x: not solved)")
    counts.set_xlabel("data set (x: not solved)")
    style.legend(figure, counts, 3)
    style.save(figure, folder, NAME)


def _solved(r, column):
    return r[column] if r["unsolved"] == 0 else float("nan")
