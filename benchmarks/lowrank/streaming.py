"""Feature maps of rows in files: what storing the features brings, and whole fits.

    python -m benchmarks.lowrank.streaming rates FOLDER     a sweep computed, and read
    python -m benchmarks.lowrank.streaming fit FOLDER       rows -> map -> linear solver

FOLDER is where NDC rows (32 columns, int16) are, or are written; temporary files are
there too. A fit runs in a process of its own whose address space is limited: seconds
are of the wall, and of its peak memory counts what is resident.
"""

import argparse
import json
import resource
import subprocess
import sys
import tempfile
from itertools import chain

import numpy as np

from benchmarks.core.stored_pages import forget_pages
from benchmarks.data.out_of_core import seconds, shards
from benchmarks.datasets import DATASETS
from benchmarks.environment import RESULTS, machine
from widemargin import Kernel, Problem, as_rows, make_ndc, open_rows, solve
from widemargin.data.outofcore.stored import StoredRows
from widemargin.features.methods import feature_map

# What is solved: the losses have different problems, so each has its best solver.
SOLVERS = {
    "active_set": ("squared_hinge", "penalized"),
    "augmented_lagrangian": ("hinge", "free"),
    "interior_point": ("hinge", "free"),
}
# gamma, of kernels wide enough for each set (no other was tried), and C.
TASKS = {"ndc": (6e-6, 1.0), "kdd99_10pc": (0.1, 1.0)}
SWEEPS = 10


def main():
    """Measure, and append the lines to results/lowrank/streaming.txt."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add = parser.add_argument
    add("what", choices=["rates", "fit", "one"])
    add("folder")
    add("--set", choices=list(TASKS), default="ndc")
    add("--data", help="folder of kdd99_10pc")
    add("--rows", type=int, default=200_000)
    add("--ranks", type=lambda s: [int(r) for r in s.split(",")], default=[256])
    add("--solvers", type=lambda s: s.split(","), default=list(SOLVERS))
    add("--store", choices=["never", "always", "auto"], default="always")
    add("--gigabytes", type=float, default=4.0, help="limit of the address space")
    add("--time-limit", type=float, default=250.0, help="of the solver")
    options = parser.parse_args()
    tempfile.tempdir = options.folder
    if options.what == "one":
        print(json.dumps(fit(options)))
        return
    lines = rates(options) if options.what == "rates" else fits(options)
    here = machine({})
    with (RESULTS / "lowrank" / "streaming.txt").open("a") as out:
        about = f"{here['cpu']}, threads {here['threads']}; {here['versions']}"
        for line in chain([about], lines):
            print(line, flush=True)
            print(line, file=out, flush=True)


# -- rates -----------------------------------------------------------------------------


def nothing(block, part):
    """What a sweep costs without work."""
    return 0


def rates(options):
    """A line a rank: seconds of a sweep, computed and read, and of ten."""
    rows = open_rows(shards(options.folder, options.rows, 32))
    kernel = Kernel("rbf", gamma=TASKS["ndc"][0])
    for rank in options.ranks:
        z = feature_map(
            rows, kernel, "nystroem", rank, random_state=0, dtype=np.float32
        )
        computed = z.rows(rows, "never")
        once, _ = seconds(lambda Z=computed: Z.sweep(nothing))
        size = 4 * rows.shape[0] * z.rank
        store, kept = seconds(lambda z=z: z.rows(rows, "always"))
        cached = min(seconds(lambda Z=kept: Z.sweep(nothing))[0] for _ in range(3))
        forget_pages(kept)
        disk, _ = seconds(lambda Z=kept: Z.sweep(nothing))
        del kept
        chosen = isinstance(z.rows(rows, "auto"), StoredRows)
        yield (
            f"{rows.shape[0]:>9,} x 32 rank {z.rank:>4}: a sweep computed {once:7.2f} s"
            f" ({z.expand.flops(32) * rows.shape[0] / once / 1e9:5.1f} Gflop/s), from "
            f"cache {cached:5.2f} s, from disk {disk:6.2f} s ({size / disk / 1e9:4.2f} "
            f"GB/s); storing {store:6.2f} s; {SWEEPS} sweeps never {SWEEPS * once:6.1f}"
            f" s, always {store + SWEEPS * cached:6.1f} to {store + SWEEPS * disk:6.1f}"
            f" s; auto stores: {chosen}"
        )


# -- fits ------------------------------------------------------------------------------


def fits(options):
    """A line for every solver, each in a process of its own."""
    if options.set == "ndc":
        shards(options.folder, options.rows, 32)
    given = vars(options) | {"ranks": ",".join(map(str, options.ranks))}
    for solver in options.solvers:
        given["solvers"] = solver
        names = ("set", "data", "rows", "ranks", "solvers", "store", "gigabytes")
        values = [
            f"--{name}={given[name]}" for name in names if given[name] is not None
        ]
        limit = f"--time-limit={options.time_limit}"
        command = [sys.executable, "-m", __spec__.name, "one", options.folder]
        command += [*values, limit]
        done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
        yield (
            "{set} {m:,} x {n}, rank {rank}: {solver} {loss} {status}, gap {gap:.1e}, "
            "test accuracy {accuracy:.4f}; map {map:.1f} s (trace residual {trace:.3f})"
            ", {store} {stored:.1f} s, solver {solve:.1f} s in {sweeps} sweeps, all "
            "{all:.1f} s; peak {peak:.2f} GB"
        ).format(**json.loads(done.stdout))


def fit(options):
    """Rows to a certified answer and its accuracy, in this process."""
    size = int(options.gigabytes * 1e9)
    resource.setrlimit(resource.RLIMIT_AS, (size, size))
    gamma, C = TASKS[options.set]
    rows, y, test, labels = data(options)
    solver = options.solvers[-1]
    loss, intercept = SOLVERS[solver]
    seconds_map, z = seconds(
        lambda: feature_map(
            rows,
            Kernel("rbf", gamma=gamma),
            "nystroem",
            options.ranks[0],
            random_state=0,
            dtype=np.float32,
            features=False,
        )
    )
    seconds_store, Z = seconds(lambda: z.rows(rows, options.store))
    before = Z.sweeps
    seconds_solve, solution = seconds(
        lambda: solve(
            Problem(Z, y, C, loss, intercept),
            solver,
            tol=1e-3,
            time_limit=options.time_limit,
        )
    )
    scores = z.transform(test) @ solution.w + solution.b
    return {
        "set": options.set,
        "m": rows.shape[0],
        "n": rows.shape[1],
        "rank": z.rank,
        "solver": solver,
        "loss": loss,
        "status": solution.status,
        "gap": solution.certificate.relative_gap,
        "accuracy": float(np.mean(np.where(scores >= 0, 1, -1) == labels)),
        "trace": z.trace_residual,
        "map": seconds_map,
        "store": {"never": "computed in each sweep"}.get(options.store, "storing"),
        "stored": seconds_store,
        "solve": seconds_solve,
        "sweeps": Z.sweeps - before,
        "all": seconds_map + seconds_store + seconds_solve,
        "peak": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e9,
    }


def data(options):
    """Rows, labels, and test rows with theirs."""
    if options.set == "ndc":
        rows = open_rows(shards(options.folder, options.rows, 32))
        X_test, y_test = make_ndc(50_000, 32, part="test", dtype=np.int16)
        return rows, rows.vector("label"), X_test, y_test
    X, y = DATASETS[options.set](options.data)
    test = np.arange(X.shape[0]) % 5 == 4
    return as_rows(X[~test]), y[~test], X[test], y[test]


if __name__ == "__main__":
    main()
