"""The same problems to a certified gap of 1e-3: the default and the paper's methods.

All rows are looked at. The others may take at most ten times the time of the default
(but 5 seconds at least): what they have not done by then is shown as that.
"""

import numpy as np

from papers import style
from papers.frank_wolfe import methods
from papers.frank_wolfe.datasets import BY_NAME, C_TUNED, CVM, FW, MFW, TABLE
from papers.frank_wolfe.methods import DEFAULT, PAIRWISE, percent, seconds
from papers.frank_wolfe.parts.tables_2_3 import SERIES, by_set, series
from papers.measure import growth_exponent

NAME = "certified"
OTHERS = (CVM, FW, MFW, PAIRWISE)
SHARE, LEAST = 10.0, 5.0


def run(options):
    """A record for each set and method."""
    return measured(options, [row.name for row in TABLE])


def measured(options, names):
    """The records of the sets of these names."""
    records = []
    for row, data in options.sets(names):
        about = {"set": row.name, "label": row.label, "rows": len(data.y)}
        about |= {"C": C_TUNED[row.name]}
        found = trained(data, methods.rbf(about["C"]), options, OTHERS)
        records += [{**about, "method": m, **r} for m, r in found.items()]
        line = ", ".join(f"{m} {seconds(r)}" for m, r in found.items())
        print(f"  {row.label}: {line} s", flush=True)
    return records


def trained(data, problem, options, others):
    """{method: record}: the default, and others with a limit that depends on it."""
    found = {}
    for method in (DEFAULT, *others):
        found[method] = methods.repeated(
            data,
            problem,
            lambda seed, m=method: methods.by_gap(m, seed),
            options,
            methods.GAP,
        )
        if method == DEFAULT:
            options = options.least(max(LEAST, SHARE * found[DEFAULT]["seconds"]))
    return found


def fastest(found):
    """(method, seconds, whether that is a bound) of the best of CVM, FW and MFW."""
    done = [m for m in (CVM, FW, MFW) if solved(found[m])]
    if done:
        best = min(done, key=lambda m: found[m]["seconds"])
        return best, found[best]["seconds"], False
    return "none", found[MFW]["limit"], True


def solved(r):
    """Whether every run got to the gap."""
    return not r["over"] and r["gap_most"] <= methods.GAP


def table(records):
    """Lines of text: times, accuracies and sizes, the paper's figures beside."""
    sets = by_set(records)
    yield "Seconds to a certified gap of 1e-3, all rows looked at (! less was reached)"
    head = "".join(f"{m:>20}" for m in (DEFAULT, *OTHERS))
    yield f"{'set':12}{'rows':>9}{'C':>6}{head}{'best of three / default':>28}"
    for found in sets.values():
        mine = found[DEFAULT]
        cells = "".join(f"{_cell(found[m]):>20}" for m in (DEFAULT, *OTHERS))
        best, time, bound = fastest(found)
        ratio = f"{'> ' if bound else ''}{time / mine['seconds']:.3g} ({best})"
        yield f"{mine['label']:12}{mine['rows']:9,}{mine['C']:6g}{cells}{ratio:>28}"
    yield ""
    yield from _beside(sets)
    yield ""
    yield from _growth(sets)


def _cell(r):
    short = "" if r["over"] or solved(r) else f" ! {r['gap_most']:.0e}"
    return seconds(r) + short


def _beside(sets):
    yield (
        "Default beside the paper: accuracies; printed seconds over ours (CVM, FW, "
        "MFW); gap, support vectors, kernel values in millions"
    )
    yield (
        f"{'set':12}{'accuracy':>9}{'CVM':>8}{'FW':>8}{'MFW':>8}"
        f"{'x CVM':>9}{'x FW':>9}{'x MFW':>9}{'gap':>10}{'vectors':>9}{'values':>9}"
    )
    for name, found in sets.items():
        r, row = found[DEFAULT], BY_NAME[name]
        printed = "".join(f"{percent(a):>8}" for a in row.accuracy)
        ratios = "".join(f"{t / r['seconds']:9.3g}" for t in row.seconds)
        yield (
            f"{r['label']:12}{percent(r['accuracy']):>9}{printed}{ratios}"
            f"{r['gap_most']:10.1e}{r['vectors']:9,}{r['evaluations'] / 1e6:9.1f}"
        )


def _growth(sets):
    yield "Exponents of time over rows (sets that ended)"
    for label, letter in SERIES.items():
        cells = []
        for method in (DEFAULT, *OTHERS):
            rows, times = _curve(sets, series(sets, letter), method)
            if len(set(rows)) > 1:
                slope = growth_exponent(rows, times)
                cells.append(f"{method} {slope:.2f} ({len(rows)})")
        yield f"{label:12}" + "".join(f"{cell:>22}" for cell in cells)


def _curve(sets, names, method):
    """Rows and seconds of the sets that a method solved."""
    mine = [sets[n][method] for n in names]
    done = [r for r in mine if solved(r)]
    return [r["rows"] for r in done], [r["seconds"] for r in done]


def draw(records, folder, file=NAME, unit="seconds of one core"):
    """Seconds over rows of the two series, the printed CVM beside; the single sets.

    The unit names no clock, as that of the records in results/ is an older one.
    """
    sets = by_set(records)
    figure, axes = style.panels(1, 2, width=5.0, height=4.4)
    shown = (DEFAULT, PAIRWISE, MFW, CVM, FW)
    for axis, (label, letter) in zip(axes, SERIES.items(), strict=True):
        names = series(sets, letter)
        for k, method in enumerate(shown):
            mine = [sets[n][method] for n in names]
            late = [r["rows"] for r in mine if not solved(r)]
            values = [r["seconds"] if solved(r) else np.nan for r in mine]
            style.curve(axis, [r["rows"] for r in mine], values, k, method)
            style.hollow(axis, late, 1.03 + 0.045 * k, k)
        printed = [r for r in TABLE if r.name[0] == letter and r.name[-1] == "a"]
        printed = [r for r in printed if not np.isnan(r.seconds[0])]
        rows, times = [r.sizes[0] for r in printed], [r.seconds[0] for r in printed]
        style.curve(axis, rows, times, 5, "CVM, printed (paper's stop)")
        axis.set_title(label, pad=8 + 13 * len(shown))
        axis.set(xscale="log", xlabel="rows (hollow: gap not reached in time)")
        style.logarithmic(axis, "y")
        style.plain(axis, "x", (1, 2, 5))
    axes[0].set_ylabel(f"{unit} to a certified gap of 1e-3")
    style.legend(figure, axes[0], 6)
    style.save(figure, folder, file)
