"""The promise of --memory-limit for Parquet: any writer's layout, any number of jobs."""

import functools
import os
import subprocess
import sys
from types import SimpleNamespace

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from widemargin.data.outofcore.parquet import ParquetSource
from widemargin.data.outofcore.stored import _spare

ROWS, COLUMNS = 500_000, 16
LIMIT = 150 << 20
# What the allocators of Python, NumPy and Arrow keep, and the stacks of threads.
EXTRA = 60 << 20

# Peaks of resident memory: with all that is imported, and after a training.
SCRIPT = """
import sys
import widemargin.cli.train, widemargin.data.outofcore.parquet
from widemargin.cli import main

def peak():
    lines = open("/proc/self/status").read().splitlines()
    return 1024 * next(int(l.split()[1]) for l in lines if l.startswith("VmHWM"))

imports = peak()
status = main(sys.argv[1:])
print("\\n", imports, peak(), status)
"""


@functools.cache
def numbers(m=ROWS):
    """Columns that do not compress, and labels that depend on them."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(m, COLUMNS))
    y = X[:, 0] + rng.normal(size=m) > 0
    return {f"x{j}": X[:, j] for j in range(COLUMNS)} | {"y": y.astype(np.int8)}


def by_pyarrow(path):  # one row group, dictionaries that overflow
    pq.write_table(pa.table(numbers()), path)


def by_pyarrow_in_small_groups(path):
    by = {"row_group_size": 5000, "compression": "gzip", "compression_level": 1}
    pq.write_table(pa.table(numbers()), path, **by)


def in_one_page(path):  # as fastparquet and DuckDB write a column of a row group
    options = {"data_page_size": 1 << 30, "use_dictionary": False}
    table = pa.table(numbers(ROWS // 4))
    with pq.ParquetWriter(path, table.schema, **options) as writer:
        for _ in range(4):
            writer.write_table(table)


def by_polars(path):
    pl.DataFrame(numbers()).write_parquet(path)


def by_pandas_with_words(path):
    frame = pd.DataFrame(numbers())
    for j in range(0, COLUMNS, 4):
        codes = (np.abs(frame[f"x{j}"]) * 1000).astype(int)
        frame[f"x{j}"] = codes.astype("Int32")  # may miss values, and does not
        frame[f"x{j + 1}"] = pd.Categorical(codes % 5)
    frame["y"] = np.where(frame["y"] > 0, "yes", "no")
    frame.to_parquet(path)


LAYOUTS = [
    by_pyarrow,
    by_pyarrow_in_small_groups,
    in_one_page,
    by_polars,
    by_pandas_with_words,
]


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """The path of a file of a layout, written once."""
    folder, paths = tmp_path_factory.mktemp("layouts"), {}

    def path_of(layout):
        if layout not in paths:
            paths[layout] = folder / f"{layout.__name__}.parquet"
            layout(paths[layout])
        return paths[layout]

    return path_of


def cases():
    """One large page; the rest is `full`."""
    cover = {(in_one_page, 2)}
    for layout in LAYOUTS:
        for jobs in (1, 2, 4):
            few = (layout, jobs) in cover
            yield pytest.param(layout, jobs, marks=() if few else pytest.mark.full)


@pytest.mark.skipif(
    not os.path.exists("/proc/self/status"), reason="reads the peak that Linux keeps"
)
@pytest.mark.slow
@pytest.mark.parametrize(("layout", "jobs"), list(cases()))
def test_a_training_keeps_to_its_limit(layout, jobs, written, tmp_path):
    arguments = ["train", str(written(layout)), str(tmp_path / "m.wm"), "--label", "y"]
    arguments += ["--memory-limit", str(LIMIT), "--jobs", str(jobs)]
    arguments += ["--loss", "squared_hinge", "--max-iter", "1"]
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, *arguments], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    imports, peak, status = map(int, done.stdout.split("\n")[-2].split())
    assert status in (0, 1), done.stderr
    assert peak - imports <= LIMIT + EXTRA


def test_no_more_places_are_read_than_the_limit_has_room_for(tmp_path):
    by = {"row_group_size": 1000, "use_dictionary": False}
    pq.write_table(pa.table(numbers(8000)), tmp_path / "a.parquet", **by)
    source = ParquetSource(tmp_path / "a.parquet", label="y")
    assert source.readers == 8
    source.keep(2)
    for start in (10, 2010, 4010):
        source.read(start, start + 100)
        assert len(source._cursors._kept) <= 2
    assert source.reader_bytes > 0


def test_what_readers_take_is_not_spare(tmp_path):
    by = {"row_group_size": 1000, "use_dictionary": False}
    pq.write_table(pa.table(numbers(8000)), tmp_path / "a.parquet", **by)
    source = ParquetSource(tmp_path / "a.parquet", label="y")
    names = ("shape", "path", "overhead", "reader_bytes")
    alone = SimpleNamespace(readers=None, **{n: getattr(source, n) for n in names})
    spare, readers = _spare(source, 128, LIMIT)
    whole, none = _spare(alone, 128, LIMIT)
    assert none is None
    assert whole - spare == readers * source.reader_bytes > 0
