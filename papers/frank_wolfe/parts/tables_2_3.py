"""Tables 2 and 3, 5 to 7, Figures 3 to 6: the three methods with the paper's stop.

59 random points at each step, and an end where none of them is farther than 1 + 1e-6
radii: whatever the gap is then, which is certified afterwards.
"""

import numpy as np

from papers.frank_wolfe import methods, pictures, ranks
from papers.frank_wolfe.datasets import BY_NAME, C_TUNED, CVM, FW, METHODS, MFW, TABLE
from papers.frank_wolfe.methods import percent, seconds
from papers.measure import growth_exponent

NAME = "tables_2_3"
SERIES = {"Web": "w", "Adult": "a"}


def run(options):
    """A record for each set and method."""
    records = []
    for row, data in options.sets([row.name for row in TABLE]):
        problem = methods.rbf(C_TUNED[row.name])
        for method in METHODS:
            found = methods.repeated(
                data,
                problem,
                lambda seed, m=method: methods.by_paper(m, seed),
                options,
                methods.NO_GAP,
            )
            about = {"set": row.name, "label": row.label, "rows": len(data.y)}
            about |= {"C": C_TUNED[row.name], "method": method}
            records.append({**about, **found})
            print(f"  {row.label}, {method}: {seconds(found)} s", flush=True)
    return records


def by_set(records):
    """{set: {method: record}}, in order."""
    found = {}
    for r in records:
        found.setdefault(r["set"], {})[r["method"]] = r
    return found


def table(records):
    """Lines of text: accuracies, times, what the stop costs, growth, tests."""
    sets = by_set(records)
    yield from _accuracies(sets)
    yield ""
    yield from _times(sets)
    yield ""
    yield from _costs(sets)
    yield ""
    yield from _growth(sets)
    yield ""
    yield from _tests(sets)


def _accuracies(sets):
    yield "Table 2: test accuracy, % (deviation), and the paper's"
    head = "".join(f"{m:>16}" for m in METHODS)
    yield f"{'set':12}{'C':>6}{head}" + "".join(f"{m:>8}" for m in METHODS)
    for name, found in sets.items():
        cells = "".join(f"{_accuracy(found[m]):>16}" for m in METHODS)
        printed = "".join(f"{percent(a):>8}" for a in BY_NAME[name].accuracy)
        yield f"{found[CVM]['label']:12}{found[CVM]['C']:6g}{cells}{printed}"


def _accuracy(r):
    if r["accuracy"] is None:
        return "-"
    mark = " !" if r["over"] else ""
    return f"{r['accuracy']:.2f} ({r['accuracy_std']:.2f}){mark}"


def _times(sets):
    yield (
        "Table 3: seconds (runs; > the limit), and the paper's; how many times faster "
        "than CVM, and in the paper"
    )
    head = "".join(f"{m:>22}" for m in METHODS) + "".join(f"{m:>9}" for m in METHODS)
    speed = "".join(f"{m:>9}" for m in (FW, MFW)) * 2
    yield f"{'set':12}{head}{speed}"
    for name, found in sets.items():
        cells = [f"{seconds(found[m])} ({found[m]['runs']})" for m in METHODS]
        line = "".join(f"{cell:>22}" for cell in cells)
        printed = "".join(f"{t:9.3g}" for t in BY_NAME[name].seconds)
        ours = "".join(f"{_times_faster(found, m):>9}" for m in (FW, MFW))
        theirs = "".join(f"{s:9.3g}" for s in printed_speedups(name))
        yield f"{found[CVM]['label']:12}{line}{printed}{ours}{theirs}"


def speedup(found, method):
    """CVM's time over that of a method; nan where the method came to no end."""
    if found[method]["over"]:
        return np.nan
    return found[CVM]["seconds"] / found[method]["seconds"]


def _times_faster(found, method):
    value = speedup(found, method)
    mark = "> " if found[CVM]["over"] else ""
    return "-" if np.isnan(value) else f"{mark}{value:.3g}"


def printed_speedups(name):
    """Of FW and MFW over CVM, in the paper."""
    cvm, fw, mfw = BY_NAME[name].seconds
    return cvm / fw, cvm / mfw


def _costs(sets):
    yield (
        "What the stop leaves: certified relative gap (median; ours 1e-3), points of "
        "the coresets, kernel values in millions"
    )
    head = "".join(f"{m:>12}" for m in METHODS)
    yield f"{'set':12}{head}{head}{head}"
    for found in sets.values():
        gaps = "".join(f"{found[m]['gap']:12.1e}" for m in METHODS)
        cores = "".join(f"{found[m]['coreset']:12,}" for m in METHODS)
        values = "".join(f"{found[m]['evaluations'] / 1e6:12,.1f}" for m in METHODS)
        yield f"{found[CVM]['label']:12}{gaps}{cores}{values}"


def series(sets, letter):
    """Sets of a series, in order of their rows."""
    names = [n for n in sets if n[0] == letter and n[-1] == "a" and n[1].isdigit()]
    return sorted(names, key=lambda n: BY_NAME[n].sizes[0])


def slopes(sets, letter):
    """{method: (exponent of time, that of the paper)} over the runs that ended."""
    found = {}
    for k, method in enumerate(METHODS):
        done = [n for n in series(sets, letter) if not sets[n][method]["over"]]
        ours = [sets[n][method]["seconds"] for n in done]
        rows = [sets[n][method]["rows"] for n in done]
        printed = [r for r in TABLE if r.name[0] == letter and r.name[-1] == "a"]
        printed = [r for r in printed if not np.isnan(r.seconds[k])]
        theirs = growth_exponent(
            [r.sizes[0] for r in printed], [r.seconds[k] for r in printed]
        )
        slope = growth_exponent(rows, ours) if len(set(rows)) > 1 else np.nan
        found[method] = slope, theirs, len(done)
    return found


def _growth(sets):
    yield "Exponents of time over rows: ours (sets that ended), the paper's"
    for label, letter in SERIES.items():
        if not series(sets, letter):
            continue
        cells = [
            f"{method} {ours:.2f} ({count}), {theirs:.2f}"
            for method, (ours, theirs, count) in slopes(sets, letter).items()
        ]
        yield f"{label:12}" + "".join(f"{cell:>24}" for cell in cells)


def compared(sets):
    """{kind: {method: values}}, a value for each set, nan where it is not known.

    Of two methods over the limit it is not known which is faster; one is at the limit.
    """
    times, accuracy = {m: [] for m in METHODS}, {m: [] for m in METHODS}
    for found in sets.values():
        unknown = sum(found[m]["over"] for m in METHODS) > 1
        for m in METHODS:
            over, value = found[m]["over"], found[m]["accuracy"]
            times[m].append(np.nan if unknown and over else found[m]["seconds"])
            accuracy[m].append(np.nan if over or value is None else value)
    return {"time": times, "accuracy": accuracy}


def _tests(sets):
    yield (
        "Tables 5 and 6: W of Wilcoxon, F of Friedman and p, of how many sets; again "
        "from the tables that are printed; as printed"
    )
    columns = {
        "time": {m: [r.seconds[k] for r in TABLE] for k, m in enumerate(METHODS)},
        "accuracy": {m: [r.accuracy[k] for r in TABLE] for k, m in enumerate(METHODS)},
    }
    for kind, values in compared(sets).items():
        if len(sets) < 2:
            continue
        ours, again = ranks.tests(values, kind), ranks.tests(columns[kind], kind)
        lines = zip(ours, again, *ranks.PRINTED[kind], strict=True)
        for (name, statistic, p, n), (_, other, q, _), shown, p_shown in lines:
            yield (
                f"{kind:10}{name:10}{statistic:9.4g}{p:11.2e}{n:5}"
                f"{other:12.4g}{q:11.2e}{shown:12.4g}{p_shown:11.2e}"
            )


def draw(records, folder):
    """Figures 3 and 4, the series, and 5 and 6, the single sets."""
    sets = by_set(records)
    for label, letter in SERIES.items():
        names = series(sets, letter)
        if names:
            pictures.series(sets, names, folder, f"{NAME}_{label.lower()}", label)
    single = [n for n in sets if not any(n in series(sets, s) for s in "wa")]
    pictures.single(sets, single or list(sets), folder, NAME)
