"""ASVM on data in files: seconds of a fit beside seconds of reading, by rows.

For every size: write NDC rows (int16) to shards where they are not there, solve to a
gap of 1e-8 with the pages dropped before each sweep, so that it reads the disk, then
read them as often without doing anything, likewise from the disk; then both with the
pages left in the cache. Last: the exponent of growth over the sizes.

Reading alone is the limit: a fit cannot be faster than its sweeps take to read. (What
this system drops another one below it may still hold.)
"""

import argparse
import contextlib
import os
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

from widemargin import Problem, open_rows, solve


def shards(folder, m, n):
    """A folder of m rows x n, written if it is not there."""
    path = Path(folder, f"ndc-{m}x{n}")
    if not path.exists():
        command = [sys.executable, "-m", "widemargin", "generate", "ndc", str(path)]
        subprocess.run([*command, "--rows", str(m), "--features", str(n)], check=True)
    return path


def drop(path):
    """Let the page cache forget the files."""
    for file in path.iterdir():
        descriptor = os.open(file, os.O_RDONLY)
        os.fsync(descriptor)
        os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
        os.close(descriptor)


@contextlib.contextmanager
def every_read_from_disk(rows, path):
    """Drop the pages before each sweep."""
    sweep = rows.sweep

    def cold(*args):
        drop(path)
        return sweep(*args)

    rows.sweep = cold
    yield
    del rows.sweep


def _nothing(block, part):
    return 0


def seconds(task):
    """Seconds of a task, and its value."""
    begin = time.perf_counter()
    value = task()
    return time.perf_counter() - begin, value


def fit(rows, C):
    """Solve, with everything that a fit does; the sweeps and the solution."""
    before = rows.sweeps
    problem = Problem(rows, rows.vector("label"), C, "squared_hinge")
    solution = solve(problem, "active_set", tol=1e-8)
    return rows.sweeps - before, solution


def measure(path, C, memory_limit):
    """One line for a folder; the seconds of a fit from the cache."""
    rows = open_rows(path, memory_limit=memory_limit)
    size = rows.shape[0] * rows.shape[1] * rows.dtype.itemsize
    with every_read_from_disk(rows, path):
        cold, (sweeps, solution) = seconds(lambda: fit(rows, C))
        disk = sum(seconds(lambda: rows.sweep(_nothing))[0] for _ in range(sweeps))
    rows.sweep(_nothing)
    cache = sum(seconds(lambda: rows.sweep(_nothing))[0] for _ in range(sweeps))
    rows = open_rows(path, memory_limit=memory_limit)  # which knows no moments
    warm, (_, again) = seconds(lambda: fit(rows, C))
    assert solution.status == again.status == "solved"
    print(
        f"{rows.shape[0]:>11,} x {rows.shape[1]} {size / 1e9:5.2f} GB  {sweeps} sweeps "
        f"disk: fit {cold:7.2f} s, reading {disk:7.2f} s "
        f"({sweeps * size / disk / 1e9:4.2f} GB/s), ratio {cold / disk:4.2f}  "
        f"cache: fit {warm:6.2f} s, reading {cache:6.2f} s, ratio {warm / cache:4.2f}  "
        f"gap {solution.certificate.relative_gap:.0e}",
        flush=True,
    )
    return warm


def main():
    """A line a size, then the growth."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", help="where shards are, or are written")
    parser.add_argument("--rows", default="100000,1000000,10000000")
    parser.add_argument("--features", type=int, default=32)
    parser.add_argument("-C", type=float, default=0.005)
    parser.add_argument("--memory-limit", type=float, help="bytes a row of data")
    options = parser.parse_args()
    sizes = [int(float(m)) for m in options.rows.split(",")]
    times = []
    for m in sizes:
        path = shards(options.folder, m, options.features)
        limit = options.memory_limit and int(options.memory_limit * m)
        times.append(measure(path, options.C, limit))
    if len(sizes) > 1:
        slope = np.polyfit(np.log(sizes), np.log(times), 1)[0]
        print(f"seconds from cache grow as rows ^ {slope:.2f}")


if __name__ == "__main__":
    main()
