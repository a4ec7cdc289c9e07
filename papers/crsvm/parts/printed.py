"""Algorithm 1 as printed, with the paper's start: iterations to its own end."""

from papers.crsvm import algorithm, datasets

NAME = "algorithm_1"
SETS = (*datasets.TABLE, "a1a", "a3a", "a9a")
SHARES = (1.0, 0.5, 0.25, 0.1)
MOST = 100


def run(options):
    """A record for each set and q_U / m, and for all rows."""
    records = []
    for data in options.sets(SETS):
        whole = algorithm.run(data, reduce=False, max_iter=MOST)
        records.append({"set": data.name, "share": None, **whole})
        for share in SHARES:
            found = algorithm.run(data, share, max_iter=MOST)
            records.append({"set": data.name, "share": share, **found})
    return records


def table(records):
    """Lines of text: iterations (last Q), certified gap; ! where it did not end."""
    heads = ("all rows", *(f"q_U = {share:g} m" for share in SHARES))
    yield f"{'set':10}" + "".join(f"{head:>24}" for head in heads)
    for name in dict.fromkeys(r["set"] for r in records):
        line = [r for r in records if r["set"] == name]
        yield f"{name:10}" + "".join(f"{_cell(r):>24}" for r in line)


def _cell(r):
    mark = "!" if r["iterations"] == MOST else ""
    return f"{r['iterations']}{mark} ({r['active_last']}) {r['gap']:.0e}"


def draw(records, folder):
    """No picture."""
