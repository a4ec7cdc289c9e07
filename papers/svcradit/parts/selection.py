"""Section 3: which rows come into the working set, and which ones stay."""

from papers.svcradit import curves, methods
from papers.svcradit.datasets import Row

NAME = "selection"
# Name -> selection, share that stays.
POLICIES = {
    "largest, half kept": ("violation", 0.5),
    "largest, none kept": ("violation", 0.0),
    "random, half kept": ("random", 0.5),
    "random (paper)": ("random", 0.0),
}
CASES = (
    (Row("Adult-1", "a1a", 1000, 10, 0, 0, 0, 0, 0), (20, 40, 100, 256)),
    (Row("Adult-6", "a6a", 1, 10, 0, 0, 0, 0, 0), (20, 100, 256, 512)),
    (Row("Gauss-M", "gauss", 100, 1, 0, 0, 0, 0, 0), (20, 100, 256)),
    (Row("Splice", "splice", 1000, 70, 0, 0, 0, 0, 0), (20, 100, 256)),
)


def run(options):
    """A record for each problem, size and policy."""
    cases = dict(CASES)
    records = []
    for row, X, y in options.sets(cases):
        for q in cases[row]:
            for name, (selection, carry) in POLICIES.items():
                solver = methods.policy(selection, carry, q)
                found = methods.ours(row, X, y, solver, options)
                about = {"set": row.label, "C": row.C, "rows": len(y), "q": q}
                records.append({**about, "policy": name, **found})
            print(f"  {row.label}, {q} rows, is done", flush=True)
    return records


def _cases(records):
    found = {}
    for r in records:
        found.setdefault((r["set"], r["C"], r["q"]), {})[r["policy"]] = r
    return found


def table(records):
    """Lines of text: working sets / rows of K, seconds."""
    yield "Working sets / rows of K, seconds, to a gap of 1e-4 (! gap not reached)"
    head = "".join(f"{name:>34}" for name in POLICIES)
    yield f"{'problem':24}{'q':>5}{head}"
    for (name, C, q), found in _cases(records).items():
        cells = "".join(f"{_cell(found.get(p)):>34}" for p in POLICIES)
        yield f"{f'{name}, C {C:g}':24}{q:5}{cells}"


def _cell(r):
    if r is None:
        return "-"
    mark = "" if r["status"] == "solved" else f" ! {r['gap']:.0e}"
    rows = r["entries"] / r["rows"]
    return f"{r['sets']:,} / {rows:,.0f}, {r['seconds']:.2f}{mark}"


def draw(records, folder):
    """Working sets over their size."""
    label = "working sets to a gap of 1e-4"
    curves.save(records, "policy", POLICIES, lambda r: r["sets"], label, folder, NAME)
