"""Figure 4 and Web again: what the stop of the paper means by what a step looks at.

Of 59 rows, once; of 59 rows of both classes by turns, seven times, as LibCVM draws
them, on which the code of the paper is built; of all rows.
"""

from papers import style
from papers.frank_wolfe import methods
from papers.frank_wolfe.datasets import C_TUNED, CVM, FW, METHODS, MFW
from papers.frank_wolfe.methods import WAYS, percent, seconds
from papers.frank_wolfe.parts.tables_2_3 import printed_speedups, series

NAME = "samples"
SETS = ("a1a", "a2a", "a3a", "a4a", "w1a", "w3a", "w7a")
MOST_SECONDS = 5.0
LABELS = {"a": "Adult", "w": "Web"}


def run(options):
    """A record for each set, way and method, of one run each."""
    options = options.least(MOST_SECONDS)
    records = []
    for row, data in options.sets(SETS):
        for way in WAYS:
            about = {"set": row.name, "rows": len(data.y), "C": C_TUNED[row.name]}
            found = _compared(data, methods.rbf(about["C"]), way, options.limit)
            records += [{**about, "way": way, **found[m]} for m in METHODS]
            line = ", ".join(f"{m} {seconds(found[m])}" for m in METHODS)
            print(f"  {row.name}, {way}: {line} s", flush=True)
    return records


def _compared(data, problem, way, limit):
    """{method: record}, with how many times CVM took as long."""
    found = {}
    for method in METHODS:
        solver = methods.by_paper(method, way=way)
        one = methods.train(data, problem, solver, limit, methods.NO_GAP)
        found[method] = {"method": method, **methods.summed([one], limit)}
        ratio = found[CVM]["seconds"] / found[method]["seconds"]
        known = not (found[CVM]["over"] or found[method]["over"])
        found[method]["speedup"] = methods.rounded(ratio) if known else None
    return found


def table(records):
    """Lines of text: processor seconds, times as fast as CVM, accuracy, gap, values."""
    yield (
        "Stop of the paper: seconds of the processor, times as fast as CVM (in the "
        "paper), accuracy, certified gap, kernel values in millions"
    )
    yield f"{'set':6}{'way':18}" + "".join(f"{m:>46}" for m in METHODS)
    for name in dict.fromkeys(r["set"] for r in records):
        printed = (1.0, *printed_speedups(name))
        for way in WAYS:
            mine = [r for r in records if (r["set"], r["way"]) == (name, way)]
            cells = (_cell(r, p) for r, p in zip(mine, printed, strict=True))
            yield f"{name:6}{way:18}" + "".join(f"{cell:>46}" for cell in cells)


def _cell(r, printed):
    speed = "-" if r["speedup"] is None else f"{r['speedup']:.3g}"
    return (
        f"{seconds(r)}, {speed} ({printed:.3g}), {percent(r['accuracy'])}, "
        f"{r['gap']:.0e}, {r['evaluations'] / 1e6:.3g}"
    )


def draw(records, folder):
    """Speed-ups over CVM above, gaps below, a column for each way."""
    sets = {r["set"] for r in records}
    letter = "a" if any(n[0] == "a" for n in sets) else "w"
    names = series(sets, letter)
    figure, axes = style.panels(2, len(WAYS), width=4.2, height=3.0)
    for column, way in enumerate(WAYS):
        speed, gap = axes[column], axes[column + len(WAYS)]
        for k, method in enumerate(METHODS):
            mine = [_of(records, name, way, method) for name in names]
            _draw(speed, [r for r in mine if method != CVM], k, method, "speedup")
            _draw(gap, mine, k, method, "gap")
        for k, method in ((1, FW), (2, MFW)):
            printed = [printed_speedups(n)[k - 1] for n in names]
            rows = [_of(records, n, way, CVM)["rows"] for n in names]
            style.curve(speed, rows, printed, k + 2, f"{method} in the paper")
        speed.axhline(1.0, color="0.8", lw=1)
        speed.set_title(f"{LABELS[letter]}, {way}")
        gap.set_xlabel("rows (x: the limit came first)")
        for axis in (speed, gap):
            axis.set(xscale="log", yscale="log")
            style.plain(axis, "x", (1, 2, 5))
    axes[0].set_ylabel("times as fast as CVM")
    axes[len(WAYS)].set_ylabel("certified gap")
    style.curve(axes[0], [], [], METHODS.index(CVM), CVM)  # for the legend
    style.legend(figure, axes[0], 5)
    style.save(figure, folder, NAME)


def _of(records, name, way, method):
    """The record of a set, a way and a method."""
    wanted = (name, way, method)
    return next(r for r in records if (r["set"], r["way"], r["method"]) == wanted)


def _draw(axis, mine, k, method, key):
    """One curve, with crosses where the limit came first."""
    done = [r for r in mine if r[key] is not None and not r["over"]]
    late = [r["rows"] for r in mine if r not in done]
    if mine:
        style.curve(axis, [r["rows"] for r in done], [r[key] for r in done], k, method)
        style.crosses(axis, late, 0.03 + 0.05 * k, style.LINES[k][0])
