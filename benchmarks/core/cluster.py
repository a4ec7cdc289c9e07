"""What a sweep and a fit cost on a Dask cluster, and a model that foretells both.

    seconds of a request = a + b levels + c (rows of a worker)

with the levels of the tree of hosts, floor(log2(workers)) + 1: each has at most two
below it. A fit is R requests, of which the compute grows with the rows of a worker:

    seconds of a fit = R (a + b levels) + s (rows of a worker).

Run on one machine: `python -m benchmarks.core.cluster`. Workers have one thread each;
more of them than there are cores say what latency is, not what compute is.
"""

import argparse
import math
import statistics
import time

import dask
import numpy as np
from distributed import Client, LocalCluster
from scipy.optimize import nnls

from widemargin import LinearSVC
from widemargin.data.distributed.opened import open_collection
from widemargin.numerics import linalg

COLUMNS = 32
WEIGHTS = np.random.default_rng(0).normal(size=COLUMNS)


def made(k, rows):
    """Rows of a partition."""
    return np.random.default_rng(k).normal(size=(rows, COLUMNS))


def labels(k, rows):
    """Their labels, with noise."""
    noise = np.random.default_rng(k + 10**6).normal(size=rows)
    return np.where(made(k, rows) @ WEIGHTS + 1.5 * noise > 0, 1, -1)


def partitions(m, what):
    """Sixteen delayed partitions of m rows in all."""
    return [dask.delayed(what)(k, m // 16) for k in range(16)]


def empty(block, part, v):
    """Nothing but the way there and back."""
    return float(v[0])


def product(block, part, v):
    """X'(X v)."""
    return block.T @ (block @ v)


def gram(block, part, v):
    """X'X, as Newton's method needs it at most."""
    return linalg.gram(block, np.ones(block.shape[0]))


def nothing(m, *columns):
    """No vectors beside the rows."""
    return {}, None, None


def median(rows, f, repeat):
    """Milliseconds of a sweep."""
    times = []
    for _ in range(repeat):
        begin = time.perf_counter()
        rows.sweep(f, None, np.zeros(COLUMNS))
        times.append(time.perf_counter() - begin)
    return 1e3 * statistics.median(times)


def levels(workers):
    """Of the tree of hosts."""
    return math.floor(math.log2(workers)) + 1


def requests_and_seconds(m, loss):
    """Of a fit, after its rows are loaded."""
    counts = []

    def count(self, *given, add=None, **options):
        counts.append(1)
        return add(self, *given, **options)

    from widemargin.data.distributed.crew import Crew

    add = Crew.add
    Crew.add = lambda self, *given, **options: count(self, *given, add=add, **options)
    try:
        fit = LinearSVC(loss=loss).fit(partitions(m, made), partitions(m, labels))
    finally:
        Crew.add = add
    return len(counts), fit.solution_.seconds


def main():
    """Measure, fit the model and print what it foretells."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, nargs="*", default=[400_000, 1_600_000])
    parser.add_argument("--workers", type=int, nargs="*", default=[1, 2, 3, 4])
    parser.add_argument("--cores", type=int, default=2)
    options = parser.parse_args()
    latency, fits = [], []
    print("workers  rows  sweep  milliseconds")
    for workers in options.workers:
        settings = {"threads_per_worker": 1, "dashboard_address": ":0"}
        with LocalCluster(n_workers=workers, **settings) as cluster, Client(cluster):
            with open_collection(partitions(256, made), (), nothing) as rows:
                found = median(rows, empty, 60)
                latency.append((levels(workers), found))
                print(f"{workers:7} {256:9,} empty   {found:8.2f}", flush=True)
            if workers > options.cores:
                continue
            for m in options.rows:
                with open_collection(partitions(m, made), (), nothing) as rows:
                    for f in (product, gram):
                        found = median(rows, f, 8)
                        print(
                            f"{workers:7} {m:9,} {f.__name__:7} {found:8.2f}",
                            flush=True,
                        )
                for loss in ("squared_hinge", "hinge"):
                    counted, seconds = requests_and_seconds(m, loss)
                    fits.append((loss, workers, m, counted, seconds))
                    print(
                        f"{workers:7} {m:9,} {loss}: {counted} requests, "
                        f"{seconds:.2f} s",
                        flush=True,
                    )
    depth, times = np.array(latency).T
    a, b = nnls(np.column_stack([np.ones(len(depth)), depth]), times)[0]
    print(f"\nrequest: {a:.2f} + {b:.2f} levels milliseconds")
    for loss in ("squared_hinge", "hinge"):
        own = [one[1:] for one in fits if one[0] == loss]
        slopes = [
            (seconds - 1e-3 * counted * (a + b * levels(workers))) * workers / m
            for workers, m, counted, seconds in own
            if m == max(options.rows)
        ]
        s, counted = statistics.median(slopes), max(one[2] for one in own)
        print(f"{loss}: {1e9 * s:.0f} ns a row of a worker, {counted} requests")
        for workers in (8, 64):
            compute = s * 1e9 / workers
            waits = 1e-3 * counted * (a + b * levels(workers))
            share = compute / (compute + waits)
            print(
                f"  1e9 x {COLUMNS} on {workers:2} workers: {compute:.0f} s + "
                f"{waits:.1f} s of latency, efficiency {share:.0%}"
            )


if __name__ == "__main__":
    main()
