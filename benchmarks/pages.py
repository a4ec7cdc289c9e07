"""Tables of the documentation, from what was measured: ``python -m benchmarks.pages``.

Markdown in benchmarks/results/pages, which the pages in docs/measurements include:
linear machines by loss (``linear-LOSS.md``), kernel machines (``kernel.md``), low rank
(``lowrank-streaming.md``, ``gauss-transform.md``) and iterations of the interior point
(``interior-point.md``).
"""

import csv
import json
import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from benchmarks.defaults import NONE
from benchmarks.front import RESULTS
from benchmarks.ratios import (
    OURS,
    best,
    best_dual,
    group,
    points,
    problem_of,
    ratio,
    reach,
)

PAGES = RESULTS / "pages"
GAPS = (1e-4, 1e-6, 1e-8)
NAMES = {
    "liblinear": "LIBLINEAR",
    "sklearn": "scikit-learn",
    "snapml": "Snap ML",
    "rehline": "ReHLine",
}
# Peers of kernel machines at the tolerance that they have by default.
DEFAULT = 1e-3
KERNEL_PEERS = {"libsvm": "LIBSVM", "sklearnex": "scikit-learn-intelex"}

Row = list[str]


def main() -> None:
    """Write all tables."""
    PAGES.mkdir(exist_ok=True)
    for name, make in TABLES.items():
        (PAGES / name).write_text(make(), "utf-8")


def linear(loss: str) -> str:
    """Our seconds to some gaps, and the other that comes nearest, by set and C."""
    runs = map(json.loads, (RESULTS / "runs.jsonl").read_text().splitlines())
    fits = [run for run in runs if _is_quiet(run, loss)]
    rows = []
    for (name, _, C, _), same in sorted(group(fits, problem_of).items()):
        if (dual := best_dual(same)) is None:
            continue
        curves = points(same, dual)
        ours = curves.pop(OURS, [])
        times = [_seconds(reach(ours, gap)) for gap in GAPS]
        rows.append([name, f"{C:g}", *times, *_nearest(ours, curves)])
    head = ["data", "C", *(f"ours to {gap:.0e}" for gap in GAPS)]
    return table([*head, "nearest other, at its best gap", "ours over it"], rows)


def _is_quiet(run: dict[str, Any], loss: str) -> bool:
    """Whether a run is of this loss, on a machine that did nothing else for us."""
    kind = run.get("loss"), run.get("intercept"), run.get("load")
    return kind == (loss, "penalized", 0)


def _nearest(ours: list[Any], curves: dict[str, list[Any]]) -> Row:
    """The other whose best answer we need the most of its time for, and this ratio."""
    found = [
        (ratio(ours, point), NAMES[peer], point)
        for peer, curve in curves.items()
        if peer in NAMES and curve
        for point in [best(curve)]
    ]
    if not found:
        return [NONE, ""]
    share, peer, point = max(found)
    told = "never there" if share == float("inf") else f"{share:.2f}"
    return [f"{peer} {point.seconds:.3g} s ({point.gap:.0e})", told]


def kernel() -> str:
    """Our seconds to 1e-4, and others at their default, by set."""
    rows = []
    fits = _read("kernel/summary.csv")
    for (name, m, C, gamma), same in sorted(group(fits, _machine).items()):
        ours = next(r for r in same if r["peer"] == OURS and _tol(r) == 1e-4)
        row = [name, f"{int(m):,}", f"{float(C):g}", f"{float(gamma):g}"]
        row.append(f"{float(ours['seconds']):.3g}")
        for peer in KERNEL_PEERS:
            row += _quickest(
                r for r in same if r["peer"] == peer and _tol(r) == DEFAULT
            )
        rows.append(row)
    head = ["data", "rows", "C", "gamma", "ours to 1e-4, s"]
    for peer in KERNEL_PEERS.values():
        head += [f"{peer}, s (its gap)", "ours over it"]
    return table(head, rows)


def _machine(row: dict[str, str]) -> tuple[str, ...]:
    return row["set"], row["rows"], row["C"], row["gamma"]


def _tol(row: dict[str, str]) -> float:
    return float(json.loads(row["setting"])["tol"])


def _quickest(rows: Iterable[dict[str, str]]) -> Row:
    """The fastest of some fits, and our time to its gap over its time.

    They differ in their input: float32 or float64, sparse or not. Those whose gap is
    more than ten times that of the best of them do not count.
    """
    fits = list(rows)
    if not fits:
        return [NONE, ""]
    most = 10.0 * min(float(row["gap"]) for row in fits)
    near = [row for row in fits if float(row["gap"]) <= most]
    one = min(near, key=lambda row: float(row["seconds"]))
    seconds, gap = float(one["seconds"]), float(one["gap"])
    return [f"{seconds:.3g} ({gap:.0e})", f"{float(one['ratio']):.2f}"]


def table(head: Row, rows: list[Row]) -> str:
    """A table of Markdown; 1e-4 stays in one line."""
    lines = [head, ["---"] * len(head), *rows]
    made = "".join(f"| {' | '.join(line)} |\n" for line in lines)
    return re.sub(r"(?<=\d)e-0?(\d)", "e\N{NON-BREAKING HYPHEN}\\1", made)


def _seconds(point: Any) -> str:
    return "not there" if point is None else f"{point.seconds:.3g}"


def _read(name: str) -> Iterator[dict[str, str]]:
    """The rows of a table of the results."""
    with (RESULTS / name).open(newline="") as file:
        yield from csv.DictReader(file)


def streaming() -> str:
    """Fits of low rank of 5 million rows in files, by solver."""
    rows = []
    for line in _lines("lowrank/streaming.txt"):
        if found := _STREAMED.match(line):
            solver, loss, gap, right, fit, stored, seconds, sweeps, peak = (
                found.groups()
            )
            times = [f"{float(time):.0f} s" for time in (fit, stored, seconds)]
            good = [f"{float(gap):.0e}", f"{100 * float(right):.2f} %"]
            name = f"{loss.replace('_', ' ')}, `{solver}`"
            rows.append([name, *times, sweeps, *good, f"{float(peak):.1f} GB"])
    head = ["", "map", "storing", "solver", "sweeps", "certified gap", "test accuracy"]
    return table([*head, "peak memory"], rows)


_STREAMED = re.compile(
    r"ndc 5,000,000 x 32, rank 256: (\w+) (\w+) solved, gap (\S+), "
    r"test accuracy (\S+); map (\S+) s .*storing (\S+) s, solver (\S+) s in "
    r"(\d+) sweeps.*peak (\S+) GB"
)


def gauss_transform() -> str:
    """Seconds of products with a kernel matrix, by dimensions and method."""
    found: dict[str, dict[str, str]] = {}
    for line in _lines("lowrank/gauss_transform.txt"):
        if match := re.match(r"20,000 x (\d+), (.*): (\S+) s,", line):
            found.setdefault(match[1], {})[match[2]] = f"{float(match[3]):.2g} s"
    methods = list(dict.fromkeys(name for each in found.values() for name in each))
    rows = [[n, *(each.get(m, "") for m in methods)] for n, each in found.items()]
    return table(["dimensions", *methods], rows)


def over_bound() -> str:
    """Processor time of an iteration of the interior point over its lower bound."""
    found: dict[str, dict[str, list[str]]] = {}
    for line in _lines("linear/interior_point_bound.txt"):
        if match := re.match(
            r"(.*), (all rows|rule 2) +processor .*ratio +(\S+)", line
        ):
            kinds = found.setdefault(match[1], {})
            kinds.setdefault(match[2], []).append(f"{float(match[3]):.1f}")
    rows = [
        [name, *(", ".join(kinds[kind]) for kind in ("all rows", "rule 2"))]
        for name, kinds in found.items()
    ]
    return table(["data", "all rows", "rule omega, repaired"], rows)


def _lines(name: str) -> list[str]:
    """The lines of a text of the results."""
    return (RESULTS / name).read_text("utf-8").splitlines()


TABLES: dict[str, Callable[[], str]] = {
    "linear-hinge.md": lambda: linear("hinge"),
    "linear-squared_hinge.md": lambda: linear("squared_hinge"),
    "kernel.md": kernel,
    "lowrank-streaming.md": streaming,
    "gauss-transform.md": gauss_transform,
    "interior-point.md": over_bound,
}

if __name__ == "__main__":
    main()
