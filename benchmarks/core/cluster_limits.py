"""What a fit on a Dask cluster may cost: seconds, memory of workers, a worker lost.

Run on one machine: `python -m benchmarks.core.cluster_limits [NAME ...]`. Two workers
of one thread each read shards of a folder, which lie in the page cache:

    seconds   `LinearSVC` against the same rows in memory, by turns, both of two threads
    memory    the most that a worker has, beside what it has after its imports, against
              its share of the rows and of what is beside them, in a fit and a search
    lost      a worker is killed in the last sweeps of a fit, and of a search
    large     one fit of many rows of int16 (`--large`), which are written first
"""

import argparse
import contextlib
import os
import re
import signal
import statistics
import tempfile
import time
from pathlib import Path

import numpy as np
from distributed import Client, LocalCluster

from widemargin import LinearSVC, LinearSVCCV, open_rows
from widemargin.data.distributed import rows as rows_module
from widemargin.data.distributed.crew import Crew

COLUMNS, SHARDS = 32, 32
LOSSES = ("squared_hinge", "hinge")


class Counting(Crew):
    """Counts requests, and kills a worker before one of them."""

    at, processes, last = None, {}, None

    def __init__(self, *given):
        super().__init__(*given)
        self.count, Counting.last = 0, self

    def add(self, data, timeout=None):
        """Add an entry to the log."""
        self.count += 1
        if self.count == Counting.at:
            Counting.at = None
            os.kill(Counting.processes[sorted(self._hosts)[0]], signal.SIGKILL)
        return super().add(data, timeout)


@contextlib.contextmanager
def workers(count):
    """A client of workers with one thread each."""
    settings = {"threads_per_worker": 1, "dashboard_address": ":0", "memory_limit": 0}
    with LocalCluster(n_workers=count, **settings) as cluster, Client(cluster) as one:
        yield one


def numbers(rng, shape):
    """Rows of float64."""
    return rng.normal(size=shape)


def integers(rng, shape):
    """Rows of int16, of a variance near 1."""
    return rng.integers(-2, 3, size=shape, dtype=np.int16)


def write(folder, m, made=numbers):
    """Shards of m rows, and their labels."""
    weights = np.random.default_rng(0).normal(size=COLUMNS)
    for k in range(SHARDS):
        rng = np.random.default_rng(k)
        X = made(rng, (m // SHARDS, COLUMNS))
        y = np.where(X @ weights + 1.5 * rng.normal(size=len(X)) > 0, 1, -1)
        np.save(folder / f"X-{k:03d}.npy", X)
        np.save(folder / f"y-{k:03d}.npy", y.astype(np.int8))


def in_memory(folder):
    """The same rows here."""
    read = [
        np.concatenate([np.load(path) for path in sorted(folder.glob(f"{name}-*.npy"))])
        for name in "Xy"
    ]
    return tuple(read)


def shards(folder, client):
    """Rows and labels of the shards, on the cluster."""
    rows = open_rows(str(folder), client=client)
    return rows, rows.vector("label")


def timed(f):
    """Seconds of a call, and its value."""
    begin = time.perf_counter()
    value = f()
    return time.perf_counter() - begin, value


def seconds(folder, options):
    """A fit on two workers against rows in memory."""
    X, y = in_memory(folder)
    with workers(2) as client:
        for loss in LOSSES:
            LinearSVC(loss=loss).fit(*shards(folder, client))
            times = [
                (
                    timed(lambda: LinearSVC(loss=loss).fit(X, y))[0],  # noqa: B023
                    timed(lambda: LinearSVC(loss=loss).fit(*shards(folder, client)))[0],  # noqa: B023
                )
                for _ in range(options.repeat)
            ]
            here, there = map(statistics.median, zip(*times, strict=True))
            print(
                f"{loss}: {here:.2f} s in memory, {there:.2f} s on two workers with "
                f"loading; 1.3 times + 1 s: {1.3 * here + 1:.2f} s"
            )


def memory(folder, options):
    """The most memory of a worker."""
    tiny = folder / "tiny"
    tiny.mkdir()
    write(tiny, 3200)
    m = options.rows
    for name, make in machines(options).items():
        with workers(2) as client:
            make().fit(*shards(tiny, client))
            before = client.run(forget_peak)
            make().fit(*shards(folder, client))
            after = client.run(peak)
        used = max(after[k] - before[k] for k in before)
        each = 0.5 * m * COLUMNS * 8 / 1e6
        beside = 0.5 * m * (40 if "squared" in name else 90) / 1e6
        print(
            f"{name}: {used:.0f} MB more at most; rows {each:.0f} MB, beside them "
            f"{beside:.0f} MB; 1.25 times both + 150 MB: "
            f"{1.25 * (each + beside) + 150:.0f} MB",
            flush=True,
        )


def machines(options):
    """What is fitted."""
    search = {"Cs": options.Cs, "refit": True}
    return {loss: lambda loss=loss: LinearSVC(loss=loss) for loss in LOSSES} | {
        f"search, {loss}": lambda loss=loss: LinearSVCCV(loss=loss, **search)
        for loss in LOSSES
    }


def forget_peak():
    """MB that a process has; its peak begins anew."""
    import gc

    gc.collect()
    with open("/proc/self/clear_refs", "w") as file:
        file.write("5")
    return peak()


def peak():
    """The most MB that a process had."""
    found = re.search(r"VmHWM:\s*(\d+) kB", Path("/proc/self/status").read_text())
    return int(found[1]) / 1e3


def lost(folder, options):
    """A worker killed in the last sweeps."""
    rows_module.Crew = Counting
    for name, make in machines(options).items():
        with workers(2) as client:
            whole, fit = timed(lambda: make().fit(*shards(folder, client)))  # noqa: B023
            crew = Counting.last
            count, log = crew.count, crew.shipped["sent"]
            Counting.processes = client.run(os.getpid)
            Counting.at = count - 2
            again, other = timed(lambda: make().fit(*shards(folder, client)))  # noqa: B023
            crew = Counting.last
        same = fit.coef_.tobytes() == other.coef_.tobytes()
        print(
            f"{name}: {whole:.1f} s; {again:.1f} s with a worker killed in request "
            f"{count - 2} of {count}, {crew.replayed} replayed; same bits: {same}; "
            f"log: {log / 1e6:.2f} MB",
            flush=True,
        )


def large(folder, options):
    """One fit of many rows."""
    big = folder / "large"
    big.mkdir()
    write(big, options.large, integers)
    with workers(2) as client:
        for loss in options.losses:
            client.run(forget_peak), forget_peak()
            whole, fit = timed(lambda: LinearSVC(loss=loss).fit(*shards(big, client)))  # noqa: B023
            before, most = whole - fit.solution_.seconds, max(client.run(peak).values())
            print(
                f"{options.large:,} x {COLUMNS} int16, {loss}: {fit.status_}, gap "
                f"{fit.dual_gap_:.1e}; {whole:.1f} s, {before:.1f} of them before the "
                f"solver; the most of a worker {most:.0f} MB, of the client "
                f"{peak():.0f} MB",
                flush=True,
            )


MEASURES = {f.__name__: f for f in (seconds, memory, lost, large)}


def main():
    """Measure and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", nargs="*", choices=list(MEASURES) + [[]])
    parser.add_argument("--rows", type=int, default=1_000_000 // SHARDS * SHARDS)
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--large", type=int, default=20_000_000 // SHARDS * SHARDS)
    parser.add_argument("--losses", nargs="*", choices=LOSSES, default=LOSSES)
    parser.add_argument("--Cs", type=float, nargs="*", default=[0.01, 0.1, 1.0, 10.0])
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        write(Path(folder), options.rows)
        for name in options.names or MEASURES:
            print(f"-- {name}, {options.rows:,} x {COLUMNS}", flush=True)
            MEASURES[name](Path(folder), options)


if __name__ == "__main__":
    main()
