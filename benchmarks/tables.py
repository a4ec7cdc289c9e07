"""Runs -> summary.txt, summary.csv and pictures of the curves."""

import csv

import numpy as np

from benchmarks.pictures import draw_curves
from benchmarks.ratios import (
    OURS,
    best,
    best_dual,
    group,
    points,
    problem_of,
    ratio,
    reach,
    worst_ratio,
)

COLUMNS = (
    *("set", "loss", "C", "intercept", "peer", "gap", "seconds", "spread", "runs"),
    *("setting", "mib", "our_seconds", "our_mib", "ratio", "worst_ratio", "failed"),
)


def write_tables(folder, runs, machines):
    """Write all that the runs say into a folder, and print the summary."""
    problems = {}
    quiet = group([run for run in runs if not run["load"]], problem_of)
    for key, same in sorted(quiet.items()):
        if (dual := best_dual(same)) is not None:
            problems[key] = (same, dual, points(same, dual))
    rows = [row for key, value in problems.items() for row in peer_rows(key, *value)]
    with (folder / "summary.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS)
        writer.writeheader()
        writer.writerows(rows)
    lines = [*machine_lines(machines), *verdict(rows)]
    lines += [f"No answer of ours: {_name(*k)}" for k in quiet if k not in problems]
    for key, value in problems.items():
        lines += ["", *_table(key, *value, [row for row in rows if _is(row, key)])]
    lines += _under_load(runs, problems)
    (folder / "summary.txt").write_text("\n".join(lines) + "\n")
    draw_curves(folder, problems)
    print("\n".join(lines))


def peer_rows(key, runs, dual, curves):
    """One row a peer: its best gap, and we at that gap."""
    ours = curves.get(OURS, [])
    for peer, curve in curves.items():
        row = dict(zip(COLUMNS, (*key, peer), strict=False))
        failed = {r["failed"] for r in runs if r["peer"] == peer and "failed" in r}
        row["failed"] = "; ".join(sorted(failed))
        if curve:
            point = best(curve)
            mine = reach(ours, point.gap)
            row |= {
                **{"gap": point.gap, "seconds": point.seconds, "spread": point.spread},
                **{"runs": point.runs, "setting": point.setting, "mib": point.mib},
            }
            if mine:
                row |= {"our_seconds": mine.seconds, "our_mib": mine.mib}
            if peer != OURS:
                row["ratio"] = ratio(ours, point)
                row["worst_ratio"] = worst_ratio(ours, curve)
        yield row


def _is(row, key):
    return tuple(row[name] for name in COLUMNS[:4]) == key


def machine_lines(machines):
    """Lines of text on the machines."""
    for machine in machines:
        versions = ", ".join(f"{k} {v}" for k, v in machine["versions"].items())
        threads = machine["threads"] or "as the packages choose"
        yield f"{machine['cpu']}, {machine['cores']} cores, threads {threads}"
        yield f"{machine['system']}, Python {machine['python']}, {versions}"
    if len(machines) > 1:
        yield "Runs of several machines or versions are mixed: take ratios with care."


def verdict(rows):
    """How often we are slower than a peer at its best gap, and where."""
    compared = [row for row in rows if "ratio" in row]
    slower = [row for row in compared if row["ratio"] > 1.0]
    yield (
        f"Slower than a peer at its best gap: {len(slower)} of {len(compared)} "
        "comparisons (our seconds / its seconds)"
    )
    for row in sorted(slower, key=lambda row: -row["ratio"]):
        name = _name(*(row[column] for column in COLUMNS[:4]))
        yield f"  {name}: {row['peer']} {row['ratio']:.2f} at gap {row['gap']:.0e}"


def _name(name, loss, C, intercept):
    return f"{name}, {loss}, C = {C:g}, {intercept} intercept"


def _table(key, runs, dual, curves, rows):
    """The lines of one problem."""
    scored = [run for run in runs if "primal" in run]
    proved = min((run["primal"] - dual) / run["primal"] for run in scored)
    zero = 1.0 - dual / scored[0]["zero"]
    ours = curves.get(OURS, [])
    yield _name(*key)
    yield f"  best answer proved to {max(proved, 0):.0e}; v = 0 has gap {zero:.2f}"
    yield "  ours: " + ", ".join(_reached(ours, gap) for gap in (1e-4, 1e-6, 1e-8))
    yield (
        f"  {'peer':11}{'best gap':>9}{'seconds':>10}{'spread':>8}{'MiB':>7}"
        f"{'ours s':>10}{'MiB':>7}{'ratio':>7}{'worst':>7}  remarks"
    )
    for row in rows:
        if row["peer"] != OURS or "gap" not in row:
            yield "  " + _row(row)


def _reached(ours, gap):
    point = reach(ours, gap)
    return f"{gap:.0e} in {point.seconds:.3f} s" if point else f"{gap:.0e} not reached"


def _row(row):
    if "gap" not in row:
        return f"{row['peer']:11}{'no answer':>9}{'':56}  {row['failed']}"
    mine = "not there"
    memory = ""
    if "our_seconds" in row:
        mine, memory = f"{row['our_seconds']:.3f}", f"{row['our_mib']:.0f}"
    failed = f"; finer: {row['failed']}" if row["failed"] else ""
    return (
        f"{row['peer']:11}{max(row['gap'], 0):9.0e}{row['seconds']:10.3f}"
        f"{row['spread']:8.3f}{row['mib']:7.0f}{mine:>10}{memory:>7}"
        f"{row['ratio']:7.2f}{row['worst_ratio']:7.2f}  "
        f"{plain(row['setting'])}{failed}"
    )


def plain(setting):
    """A setting without the signs of JSON."""
    return setting.translate(str.maketrans("", "", '{}"'))


def _under_load(runs, problems):
    """Time beside busy processes over time without, ours and the fastest peer's."""
    loads = sorted({run["load"] for run in runs} - {0})
    for load in loads:
        yield f"\nBeside {load} busy processes: seconds over those of a quiet machine"
        beside = group([run for run in runs if run["load"] == load], problem_of)
        for key, same in beside.items():
            if key in problems:
                yield f"  {_name(*key)}: {_slowdowns(same, problems[key])}"


def _slowdowns(loaded, problem):
    _, dual, quiet = problem
    parts = []
    for peer, curve in points(loaded, dual).items():
        usual = {point.setting: point.seconds for point in quiet.get(peer, ())}
        for point in curve:
            factor = point.seconds / usual.get(point.setting, np.nan)
            parts.append(f"{peer} {point.seconds:.3f} s ({factor:.1f}x)")
    return ", ".join(parts)
