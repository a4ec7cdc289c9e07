"""What reading Parquet takes beside what Arrow counts: the evidence for HELD_SHARE.

For files of several kinds: bytes that Arrow counts in the middle of a read, and how far
the resident memory rises while three row groups are read, one at a time (Linux).
"""

import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from widemargin.data.outofcore import parquet

# Values, compression, columns, rows of a group.
KINDS = [
    ("normal", "snappy", 20, 100_000),
    ("normal", "zstd", 20, 500_000),
    ("counts", "snappy", 50, 200_000),
    ("normal", "zstd", 200, 20_000),
    ("normal", "zstd", 500, 20_000),
    ("counts", "zstd", 1000, 10_000),
]


def write(path, values, compression, n, group):
    """Three row groups."""
    rng = np.random.default_rng(0)
    schema = pa.schema([(f"c{i}", pa.float64()) for i in range(n)])
    counts = values == "counts"
    options = {"compression": compression, "use_dictionary": counts}
    with pq.ParquetWriter(path, schema, **options) as writer:
        for _ in range(3):
            X = (
                rng.integers(0, 50, (n, group))
                if counts
                else rng.normal(size=(n, group))
            )
            columns = list(X.astype(np.float64))
            writer.write_table(pa.table(columns, schema=schema), row_group_size=group)


def resident():
    """Bytes in memory."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


def measure(path):
    """Print bytes counted and bytes resident."""
    source = parquet.ParquetSource(path)
    counted = source.reader_bytes / parquet.HELD_SHARE
    pa.default_memory_pool().release_unused()  # what that read has kept
    before, seen, done = resident(), [0], threading.Event()

    def watch():
        while not done.is_set():
            seen.append(resident())
            time.sleep(5e-4)

    thread = threading.Thread(target=watch)
    thread.start()
    for group in source._groups:
        with source._open(group) as cursor:
            for _ in cursor.read(group.stop):
                pass
    done.set()
    thread.join()
    print(f"counted {counted / 1e6:.1f} MB, resident {(max(seen) - before) / 1e6:.1f}")


def main():
    """A process for each file."""
    if len(sys.argv) > 1:
        measure(sys.argv[1])
        return
    for kind in KINDS:
        with tempfile.TemporaryDirectory() as folder:
            write(f"{folder}/rows.parquet", *kind)
            print(*kind, end=": ", flush=True)
            command = [sys.executable, "-m", __spec__.name, f"{folder}/rows.parquet"]
            subprocess.run(command, check=True)


if __name__ == "__main__":
    main()
