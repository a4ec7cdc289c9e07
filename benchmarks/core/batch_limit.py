"""Up to how many rows a problem is for the batch engine: `MOST_ROWS_ALONE`.

And, of dense rows, up to how many entries: `MOST_DENSE`. Nested random rows of one
binary problem each; clusters and moons have few support vectors (`FEW_VECTORS`), and
what `auto` takes is said. Median seconds, by the clock and of the processor, of
`SVC` by the batch engine, whatever the size, and by working sets
(`solver="irwls"`), in turns. Who takes longer than the limit gets no more rows. Prints
a table and writes OUTPUT/batch_limit.txt. Other work beside: trust the processor's.
"""

import argparse
import time
from pathlib import Path
from statistics import median

from sklearn.datasets import make_blobs, make_classification, make_moons

from benchmarks.core.constants import changed
from benchmarks.environment import RESULTS, list_of, machine
from benchmarks.kernel.one import thinned
from benchmarks.kernel_sets import KERNEL_SETS, TASKS, Task
from widemargin import SVC
from widemargin.estimators import engine_choice

MOST = 64_000


def clusters(spread):
    """Two of 38 columns: 0.1 % of 16,000 rows are support vectors, or 2 %."""
    return make_blobs(MOST, 38, centers=2, cluster_std=spread, random_state=5)


def wide():
    """Two classes of 200 columns, of which most rows are support vectors."""
    return make_classification(MOST // 4, 200, n_informative=20, random_state=0)


# Sets that are drawn, and their C and gamma.
DRAWN = {
    "clusters": (lambda: clusters(1.0), Task(10.0, 1.5e-4)),
    "near clusters": (lambda: clusters(10.0), Task(10.0, 1.5e-4)),
    "moons": (lambda: make_moons(MOST, noise=0.1, random_state=0), Task(1.0, 1.0)),
    "wide": (wide, Task(1.0, 2e-3)),
    "wide moons": (lambda: make_moons(MOST, noise=0.3, random_state=0), Task(1.0, 1.0)),
}
SETS = ("a9a", "ijcnn1", "mnist", *DRAWN)
SIZES = (500, 1000, 2000, 4000, 8000, 16_000)
SOLVERS = {"batch": "auto", "irwls": "irwls"}
HEAD = (
    f"{'set':14}{'rows':>7}"
    + "".join(f"{s + ' s':>10}{'cpu s':>9}{'gap':>9}" for s in SOLVERS)
    + f"{'irwls / batch':>15}{'by cpu':>8}  taken"
)


def main():
    """Measure the sets."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add = parser.add_argument
    add("--sets", type=list_of(SETS), default=list(SETS))
    add("--sizes", type=lambda s: [int(v) for v in s.split(",")], default=SIZES)
    add("--data", help="folder of sets: NAME/train.svm[.bz2|.xz], mnist/train.npz")
    add("--jobs", type=int, default=2)
    add("--rounds", type=int, default=5)
    add("--limit", type=float, default=60.0, help="seconds of a fit")
    add("--output", type=Path, default=RESULTS / "kernel")
    options = parser.parse_args()
    options.output.mkdir(parents=True, exist_ok=True)
    here = machine({})
    lines = [
        f"{here['cpu']}, {here['cores']} cores, {options.jobs} threads; "
        f"{here['versions']}",
        f"auto takes the batch engine up to {engine_choice.MOST_ROWS_ALONE:,} rows",
        HEAD,
    ]
    print("\n".join(lines))
    for line in measure(options):
        print(line, flush=True)
        lines.append(line)
    (options.output / "batch_limit.txt").write_text("\n".join(lines) + "\n")


def measure(options):
    """Lines of the table."""
    for name in options.sets:
        load, task = DRAWN.get(name, (None, TASKS.get(name)))
        X, y = load() if load else KERNEL_SETS[name](options.data)
        slow = False
        for rows in options.sizes:
            if rows <= len(y) and not slow:
                some = thinned(X, y, rows)
                found = in_turns(*some, task, options)
                slow = max(wall for wall, *_ in found.values()) > options.limit
                yield row(name, rows, found) + f"; auto: {choice(*some, task)}"


def in_turns(X, y, task, options):
    """Solver -> median seconds by the clock and the processor, gap, who solved it."""
    runs = {solver: [] for solver in SOLVERS}
    for _ in range(options.rounds):
        for solver, mine in runs.items():
            if sum(wall for wall, *_ in mine) <= options.limit:
                mine.append(timed(X, y, task, SOLVERS[solver], options.jobs))
    found = {}
    for solver, mine in runs.items():
        wall, cpu, gap, name = zip(*mine, strict=True)
        found[solver] = median(wall), median(cpu), gap[0], name[0]
    return found


def choice(X, y, task):
    """Who solves it where nobody is asked for."""
    return SVC(C=task.C, gamma=task.gamma, tol=1e-3).fit(X, y).solution_.solver


def timed(X, y, task, solver, jobs):
    """Seconds of a fit by the clock and of the processor, its gap, who solved it."""
    model = SVC(C=task.C, gamma=task.gamma, tol=1e-3, solver=solver, n_jobs=jobs)
    names = ("MOST_ROWS", "MOST_ROWS_ALONE", "MOST_DENSE", "MOST_CODED")
    with changed(dict.fromkeys(names, 10**9), engine_choice):
        begin, cpu = time.perf_counter(), time.process_time()
        model.fit(X, y)
        wall, cpu = time.perf_counter() - begin, time.process_time() - cpu
    return wall, cpu, model.dual_gap_, model.solution_.solver


def row(name, rows, found):
    """A line of text."""
    (batch_wall, batch_cpu, *_), (sets_wall, sets_cpu, *_) = found.values()
    cells = "".join(f"{w:>10.4f}{c:>9.4f}{g:>9.0e}" for w, c, g, _ in found.values())
    taken = ", ".join(solver for *_, solver in found.values())
    return (
        f"{name:14}{rows:>7}{cells}{sets_wall / batch_wall:>15.2f}"
        f"{sets_cpu / batch_cpu:>8.2f}  {taken}"
    )


if __name__ == "__main__":
    main()
