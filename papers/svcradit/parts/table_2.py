"""Table 2: solvers of the small problems, on equal selection and on equal problems."""

import time

import numpy as np

from papers import measure
from papers.svcradit import curves, methods
from papers.svcradit.datasets import TABLE_2, TABLE_2_SECONDS, TABLE_2_SIZES
from papers.svcradit.engines import (
    CLARABEL,
    DENSE,
    GUARDED,
    PAIRS,
    PRINTED,
    REWEIGHTED,
    Timed,
    with_engine,
)

NAME = "table_2"
ENGINES = (PAIRS, PRINTED, GUARDED, REWEIGHTED, DENSE, CLARABEL)
SIZES = (*TABLE_2_SIZES, 150)
# Small problems that all of them solve, of one run; the largest for Clarabel, whose
# factor of a dense matrix is a sparse one.
PROBLEMS, CLARABEL_MOST = 12, 70


def run(options):
    """A record for each set, size and engine: the whole run, and equal problems."""
    records = []
    sizes = SIZES[:3] if options.quick else SIZES
    for row, X, y in options.sets(TABLE_2):
        for q in sizes:
            whole, seen = {}, []
            for name in ENGINES:
                if name == CLARABEL and q > CLARABEL_MOST:
                    continue
                whole[name], mine = _whole(row, X, y, q, name, options)
                seen = mine if name == PAIRS else seen
            equal = _equal(seen, whole)
            about = {"set": row.label, "C": row.C, "rows": len(y), "q": q}
            records += [{**about, "engine": n, **whole[n], **equal[n]} for n in whole]
            print(f"  {row.label}, {q} rows, is done", flush=True)
    return records


def _whole(row, X, y, q, name, options):
    """A run with this engine: its record, and the small problems that it met."""
    engine = Timed(name)
    record = methods.ours(row, X, y, with_engine(engine, q), options)
    runs = max(1, round(engine.calls / max(record["sets"], 1)))
    record["inner_seconds"] = measure.rounded(engine.seconds / runs)
    return record, engine.seen


def _equal(seen, names):
    """{engine: numbers} on the same small problems, at evenly spaced moments."""
    chosen = seen[:: max(1, len(seen) // PROBLEMS)][:PROBLEMS]
    kinds = ("each", "each_steps", "left", "reached")
    found = {name: {kind: [] for kind in kinds} for name in names}
    least, engines = [], {name: Timed(name) for name in names}
    for small, stop in chosen:
        ends = {}
        for name, engine in engines.items():
            begin = time.process_time()
            solved = engine(small, stop)
            found[name]["each"].append(time.process_time() - begin)
            found[name]["each_steps"].append(solved.steps)
            found[name]["reached"].append(solved.reached)
            ends[name], left = _end(small, solved.c)
            found[name]["left"].append(left / stop)
        least.append(ends)
    return {name: _summed(found[name], least, name) for name in names}


def _end(small, c):
    """Change of the dual objective, and violation that is left, in float64."""
    change = c - small.c
    moved = small.K[:, : len(c)].astype(np.float64) @ change
    left = small._replace(c=c, F=small.F + moved)
    value = float(change @ small.F) + 0.5 * float(change @ moved)
    return value, max(left.violations.size, 0.0)


def _summed(found, ends, name):
    """Medians; the largest share of the possible descent that is missing."""
    lost = [1.0 - e[name] / min(e.values()) for e in ends if min(e.values()) < 0]
    return {
        "each_ms": measure.rounded(1e3 * float(np.median(found["each"]))),
        "each_steps": float(np.median(found["each_steps"])),
        "left": measure.rounded(max(found["left"])),
        "settled": float(np.mean(found["reached"])),
        "lost": measure.rounded(max(lost, default=0.0)),
    }


def table(records):
    """Lines of text."""
    yield (
        "Whole runs to a gap of 1e-4 (largest violators, half kept), and equal small "
        "problems: milliseconds and steps of one (medians); settled: share that gets "
        "as far as asked; left: violation over what may stay, lost: share of the best "
        "descent that is missing, at most"
    )
    yield (
        f"{'set':10}{'q':>5}  {'engine':10}{'seconds':>9}{'inner s':>9}{'sets':>7}"
        f"{'steps':>10}{'gap':>9}{'ms each':>10}{'steps':>7}{'settled':>9}{'left':>9}"
        f"{'lost':>9}"
    )
    for r in records:
        mark = "" if r["status"] == "solved" else " !"
        yield (
            f"{r['set']:10}{r['q']:5}  {r['engine']:10}{r['seconds']:9.3f}"
            f"{r['inner_seconds']:9.3f}{r['sets']:7,}{r['steps']:10,}{r['gap']:9.1e}"
            f"{r['each_ms']:10.3f}{r['each_steps']:7.0f}{r['settled']:9.2f}"
            f"{r['left']:9.2g}{r['lost']:9.1e}{mark}"
        )
    yield ""
    yield "Optimizer seconds, QP over IRWLS: the paper (LOQO, Table 1), and ours"
    yield f"{'set':10}{'q':>5}{'paper':>14}{'ratio':>7}{'QP, Table 1':>16}{'ratio':>7}"
    yield from _ratios({(r["set"], r["q"], r["engine"]): r for r in records})


def _ratios(found):
    for (name, q), (_, _, loqo, irwls) in TABLE_2_SECONDS.items():
        pair = [found.get((name, q, engine)) for engine in (DENSE, PRINTED)]
        if None in pair:
            continue
        theirs, mine = (r["inner_seconds"] for r in pair)
        marks = "".join("" if r["status"] == "solved" else " !" for r in pair)
        yield (
            f"{name:10}{q:5}{loqo:8.2f}{irwls:6.2f}{loqo / irwls:7.1f}"
            f"{theirs:9.3f}{mine:7.3f}{theirs / max(mine, 1e-9):7.1f}{marks}"
        )


def draw(records, folder):
    """Milliseconds of one small problem over its rows."""
    label = "milliseconds of one small problem"
    curves.save(records, "engine", ENGINES, lambda r: r["each_ms"], label, folder, NAME)
