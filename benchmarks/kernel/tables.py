"""Runs with a kernel -> summary.txt, .csv, curves.png, memory and predictions."""

import csv
import json
from statistics import median

from benchmarks.pictures import draw_panels
from benchmarks.ratios import OURS, best_dual, group, points, ratio, reach
from benchmarks.tables import machine_lines, plain

GAPS = (1e-2, 1e-3, 1e-4, 1e-5, 1e-6)
MORE = ("own_gap", "support_vectors", "rows_of_k", "working_sets", "inner_steps")
COLUMNS = (
    *("set", "rows", "C", "gamma", "peer", "setting", "seconds", "spread", "runs"),
    *("gap", *MORE, "mib", "our_seconds", "ratio", "bound"),
)
# Settings that a user would have: what packages do when they are not told.
DEFAULT_TOL = 1e-3


def write_summary(folder, runs, machines, rates):
    """Write what the fits say; the lines of text."""
    rows, panels, lines = [], {}, []
    for (name, _), same in group(runs, lambda run: (run["set"], run["rows"])).items():
        scored = [run for run in same if "primal" in run]
        if not scored:
            continue
        curves = points(same, best_dual(scored))
        bound = lower_bound(scored, rates.get(name))
        found = list(_rows(scored, curves, bound))
        title = f"{name}, {scored[0]['m']:,} rows"
        panels[title] = curves
        rows += found
        lines += ["", *_table(title, scored, curves, found, rates.get(name))]
        lines += _failures(same)
    with (folder / "summary.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS)
        writer.writeheader()
        writer.writerows(rows)
    lines = [*machine_lines(machines), *_verdict(rows), *lines]
    (folder / "summary.txt").write_text("\n".join(lines) + "\n")
    if panels:
        _draw(folder, panels)
    return lines


def lower_bound(scored, rates):
    """Seconds for the columns of the support vectors, at the best rate; or None.

    The support vectors are those of the answer with the smallest gap.
    """
    if rates is None:
        return None
    finest = min(scored, key=lambda run: run["own_gap"])
    rate = max(rates["fused32"], rates["stored32"])
    return finest["support_vectors"] * finest["m"] / rate


def _rows(scored, curves, bound):
    """One row for each setting of each peer."""
    ours = curves.get(OURS, [])
    by_setting = group(scored, lambda run: (run["peer"], json.dumps(run["setting"])))
    for peer, curve in curves.items():
        for point in curve:
            runs = by_setting[peer, point.setting]
            row = {name: runs[0][name] for name in ("set", "C", "gamma")}
            row |= {"rows": runs[0]["m"], "peer": peer, "bound": bound}
            row |= {k: v for k, v in point._asdict().items() if k in COLUMNS}
            row |= {k: median(r[k] for r in runs) for k in MORE if k in runs[0]}
            if peer != OURS:
                mine = reach(ours, point.gap)
                row["our_seconds"] = mine.seconds if mine else None
                row["ratio"] = ratio(ours, point)
            yield row


def _verdict(rows):
    """Where we are slower: at the default tolerance, and at the best gap."""
    others = [row for row in rows if "ratio" in row]
    usual = [r for r in others if json.loads(r["setting"])["tol"] == DEFAULT_TOL]
    finest = [
        min(same, key=lambda row: (row["gap"], row["seconds"]))
        for same in group(others, lambda r: (r["set"], r["rows"], r["peer"])).values()
    ]
    for kind, chosen in ((f"at tol {DEFAULT_TOL:g}", usual), ("at its best", finest)):
        if not chosen:
            continue
        slower = [row for row in chosen if row["ratio"] > 1.0]
        worst = max(chosen, key=lambda row: row["ratio"])
        yield (
            f"Our seconds to the gap of a peer {kind} over its seconds: more than 1 in "
            f"{len(slower)} of {len(chosen)}, median "
            f"{median(row['ratio'] for row in chosen):.2f}, at most "
            f"{worst['ratio']:.2f} ({worst['set']}, {worst['peer']})"
        )


def _table(title, scored, curves, rows, rates):
    """The lines of one problem."""
    first, ours = scored[0], curves.get(OURS, [])
    yield f"{title}, C = {first['C']:g}, gamma = {first['gamma']:g}"
    if ours:
        yield "  ours: " + ", ".join(_reached(ours, gap) for gap in GAPS)
    bound = rows[0]["bound"]
    if bound:
        rate = max(rates["fused32"], rates["stored32"])
        mine = reach(ours, 1e-4)
        times = f"; ours to 1e-4 {mine.seconds / bound:.1f} times" if mine else ""
        yield (
            f"  lower bound {bound:.3f} s: the columns of the support vectors once, at "
            f"{rate / 1e9:.2f}e9 values a second{times}"
        )
    yield (
        f"  {'peer':11}{'setting':32}{'seconds':>9}{'spread':>8}{'gap':>9}"
        f"{'own gap':>9}{'MiB':>7}{'SVs':>8}{'K rows':>8}{'ours s':>8}{'ratio':>7}"
    )
    for row in rows:
        yield "  " + _line(row)


def _reached(ours, gap):
    point = reach(ours, gap)
    return f"{gap:.0e} in {point.seconds:.3f} s" if point else f"{gap:.0e} not reached"


def _line(row):
    computed = f"{row['rows_of_k']:8,.0f}" if "rows_of_k" in row else f"{'':8}"
    beside = ""
    if "ratio" in row:
        mine = row["our_seconds"]
        beside = f"{mine:8.3f}" if mine is not None else f"{'-':>8}"
        beside += f"{row['ratio']:7.2f}"
    return (
        f"{row['peer']:11}{plain(row['setting']):32}{row['seconds']:9.3f}"
        f"{row['spread']:8.3f}{row['gap']:9.1e}{row['own_gap']:9.1e}{row['mib']:7.0f}"
        f"{row['support_vectors']:8,.0f}{computed}{beside}"
    ).rstrip()


def _failures(runs):
    """Who gave no answer."""
    for run in runs:
        if "failed" in run:
            setting = plain(json.dumps(run["setting"]))
            yield f"  {run['peer']:11}{setting:32} no answer: {run['failed']}"


def _draw(folder, panels):
    """Gap against seconds, the best settings of each peer."""
    figure = draw_panels(panels)
    figure.suptitle("Relative gap against seconds of a fit", fontsize=11)
    figure.savefig(folder / "curves.png", dpi=120)


def write_memory(folder, runs):
    """Write memory.txt: our time with a quarter of the kept rows."""
    lines = []
    for name, same in group(runs, lambda run: (run["set"], run["rows"])).items():
        settings = group(same, lambda run: run["setting"]["memory"] != "free")
        if any("failed" in run for run in same) or len(settings) < 2:
            continue
        free, tight = (settings[key] for key in (False, True))
        one, two = (median(r["seconds"] for r in runs) for runs in (free, tight))
        lines.append(
            f"{name[0]:12}{free[0]['m']:8,}{free[0]['kept_mib']:10.0f}"
            f"{tight[0]['kept_mib']:9.0f}{free[0]['rows_of_k']:10,.0f}"
            f"{tight[0]['rows_of_k']:9,.0f}{one:9.3f}{two:9.3f}{two / one:7.2f}"
        )
    return _written(
        folder / "memory.txt",
        "Kept kernel rows: as many as there is room for, or a quarter of their memory",
        f"{'set':12}{'rows':>8}{'kept MiB':>10}{'quarter':>9}{'K rows':>10}"
        f"{'quarter':>9}{'seconds':>9}{'quarter':>9}{'ratio':>7}",
        lines,
    )


def write_predictions(folder, runs):
    """Write predict.txt: seconds of a prediction, ours over the others'."""
    lines = []
    for (name, _), same in group(runs, lambda run: (run["set"], run["rows"])).items():
        seconds = {}
        for peer, mine in group(same, lambda run: run["peer"]).items():
            if "failed" in mine[0]:
                lines.append(f"{name:12}{peer:12} no answer: {mine[0]['failed']}")
                continue
            seconds[peer] = median(run["predict_seconds"] for run in mine)
            ours = seconds.get(OURS)
            share = f"{ours / seconds[peer]:8.2f}" if ours else ""
            lines.append(
                f"{name:12}{peer:12}{mine[0]['test_m']:8,}{seconds[peer]:10.4f}"
                f"{100 * mine[0]['correct']:9.2f}{share}"
            )
    return _written(
        folder / "predict.txt",
        "Predictions: our seconds over those of the other",
        f"{'set':12}{'peer':12}{'rows':>8}{'seconds':>10}{'correct':>9}{'ratio':>8}",
        lines,
    )


def _written(path, title, head, lines):
    """Write a table that is not empty; its lines, after an empty one."""
    if not lines:
        return []
    text = [title, head, *lines]
    path.write_text("\n".join(text) + "\n")
    return ["", *text]
