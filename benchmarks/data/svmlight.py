"""Reading and writing svmlight text: our speed and memory beside scikit-learn's.

    python -m benchmarks.data.svmlight [--megabytes 200] [--rounds 5]

Every format is read from the same file in the cache of the system, turn by turn in one
process, and the medians are compared. Peak memory is that of a process of its own, less
what it was before the read.
"""

import argparse
import gzip
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
from sklearn.datasets import dump_svmlight_file, load_svmlight_file

from widemargin import load_svmlight, save_svmlight

UNIQUE_BYTES = 10_000_000  # of each file; the rest repeats them


def one_hot(rng: np.random.Generator) -> Iterator[str]:
    """Like a9a: about 14 of 123 columns, all 1."""
    for j in np.unique(rng.integers(1, 124, 14)).tolist():
        yield f"{j}:1"


def six_decimals(rng: np.random.Generator) -> Iterator[str]:
    """Like scaled measurements: 30 of 300 columns in [-1, 1]."""
    columns = np.sort(rng.choice(300, 30, replace=False)) + 1
    for j, x in zip(columns.tolist(), rng.uniform(-1, 1, 30).tolist(), strict=True):
        yield f"{j}:{x:.6f}"


def mixed(rng: np.random.Generator) -> Iterator[str]:
    """Like connection records: decimals, counts and indicator columns."""
    for j in range(1, 9):
        yield f"{j}:{rng.uniform(-1, 1):.6f}"
    for j in range(9, 17):
        yield f"{j}:{int(10 ** rng.uniform(0, 5))}"
    for j in np.unique(rng.integers(17, 120, 8)).tolist():
        yield f"{j}:1"


def full_precision(rng: np.random.Generator) -> Iterator[str]:
    """Doubles with all their digits, 17 as a rule."""
    columns = np.sort(rng.choice(300, 30, replace=False)) + 1
    for j, x in zip(columns.tolist(), rng.normal(size=30).tolist(), strict=True):
        yield f"{j}:{x!r}"


FORMATS: dict[str, Callable[[np.random.Generator], Iterator[str]]] = {
    "one-hot": one_hot,
    "6 decimals": six_decimals,
    "mixed": mixed,
    "17 digits": full_precision,
}

READERS = {
    "1 core": lambda path: load_svmlight(path, n_jobs=1),
    "all cores": load_svmlight,
    "scikit-learn": load_svmlight_file,
}


def make_file(path: Path, name: str, n_bytes: int) -> None:
    """Rows of a format until the file has n_bytes."""
    rng = np.random.default_rng(0)
    rows: list[str] = []
    size = 0
    while size < min(n_bytes, UNIQUE_BYTES):
        rows.append(f"{rng.choice([-1, 1]):+d} {' '.join(FORMATS[name](rng))}\n")
        size += len(rows[-1])
    text = "".join(rows)
    with path.open("w") as file:
        for _ in range(max(1, n_bytes // size)):
            file.write(text)
    os.sync()  # or the system writes it back while it is read


def measure_seconds(path: Path, rounds: int) -> dict[str, float]:
    """The median time of each reader; every round has a turn of each."""
    seconds: dict[str, list[float]] = {reader: [] for reader in READERS}
    load_svmlight(path)  # warms the cache of the system
    for _ in range(rounds):
        for reader, read in READERS.items():
            np.ones(
                path.stat().st_size // 2
            )  # has a virtual machine's host give memory
            start = time.perf_counter()
            read(path)
            seconds[reader].append(time.perf_counter() - start)
    return {reader: statistics.median(times) for reader, times in seconds.items()}


def measure_excess(path: Path, reader: str) -> float:
    """Peak memory of a read over the size of its result, in percent of the result."""
    command = [sys.executable, "-m", __spec__.name, "--child", reader, str(path)]
    result, peak = json.loads(subprocess.check_output(command))
    return 100 * (peak / result - 1)


def run_child(reader: str, path: Path) -> None:
    """Print the size of the result and how far the peak of this process rose."""
    before = peak_memory()
    X, y = READERS[reader](str(path))
    result = X.data.nbytes + X.indices.nbytes + X.indptr.nbytes + y.nbytes
    print(json.dumps([result, peak_memory() - before]))


def peak_memory() -> int:
    """Bytes; ru_maxrss would not do, as it starts from the peak of the parent."""
    status = Path("/proc/self/status").read_text()
    return 1024 * int(re.search(r"VmHWM:\s*(\d+) kB", status)[1])


def measure_writing(path: Path) -> dict[str, float]:
    """MB/s of both writers; scikit-learn's is timed on a part, it is slow."""
    X, y = load_svmlight(path)
    speeds = {}
    for writer, n_rows, write in (
        ("widemargin", X.shape[0], lambda X, y, to: save_svmlight(X, y, to)),
        ("scikit-learn", X.shape[0] // 40, dump_svmlight_file),
    ):
        to = path.with_suffix(".written")
        part = X[:n_rows]
        start = time.perf_counter()
        write(part, y[:n_rows], str(to))
        speeds[writer] = to.stat().st_size / (time.perf_counter() - start) / 1e6
        to.unlink()
    return speeds


def compress(path: Path) -> Path:
    """The same text as .gz."""
    packed = path.with_suffix(".svm.gz")
    packed.write_bytes(gzip.compress(path.read_bytes(), compresslevel=1))
    return packed


def main() -> None:
    """Print one line for each format."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--megabytes", type=float, default=200)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--child", nargs=2, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.child:
        run_child(arguments.child[0], Path(arguments.child[1]))
        return
    print(f"{os.cpu_count()} cores, files of {arguments.megabytes:g} MB; MB/s, then")
    print("times as fast as scikit-learn, then peak memory over the result in percent")
    print(
        "| format | 1 core | all cores | scikit-learn | 1 core | all cores "
        "| 1 core | all cores | all cores, .gz | scikit-learn | write | sklearn write |"
    )
    print("|---|" + "--:|" * 11)
    for name in FORMATS:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "file.svm")
            make_file(path, name, int(arguments.megabytes * 1e6))
            seconds = measure_seconds(path, arguments.rounds)
            speeds = {
                reader: path.stat().st_size / s / 1e6 for reader, s in seconds.items()
            }
            slow = speeds["scikit-learn"]
            cells = [f"{speed:.0f}" for speed in speeds.values()]
            cells += [f"{speeds[r] / slow:.1f}x" for r in ("1 core", "all cores")]
            cells += [
                f"{measure_excess(path, r):+.1f}" for r in ("1 core", "all cores")
            ]
            cells += [f"{measure_excess(compress(path), 'all cores'):+.1f}"]
            cells += [f"{measure_excess(path, 'scikit-learn'):+.0f}"]
            cells += [f"{speed:.0f}" for speed in measure_writing(path).values()]
            print(f"| {name} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
