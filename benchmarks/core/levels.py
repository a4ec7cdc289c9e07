"""Values of samples of levels beside those of float32: billions a second, one thread.

Rows of an image have whole numbers from 0 to 255 (kernels/levels.py). 16 rows at a time
are products of tiles where the processor has these (cpp/level_tiles.hpp), 6 at a time
products of vectors: a batch of 12 rows is made by vectors alone, one of 256 by tiles.
"""

import argparse
import statistics
import time

import numpy as np

from widemargin import _core
from widemargin.kernels.kernel import Kernel
from widemargin.kernels.layout import Layout
from widemargin.kernels.levels import LevelBatches, Levels, LevelSamples
from widemargin.kernels.packed import Batches, Parts, Samples, aligned

ROWS, COLUMNS = 4096, (32, 64, 100, 256, 784, 3072)
BATCHES = (6, 12, 16, 32, 256)


def main():
    """Print a table: a line for each number of columns."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--budget", type=float, default=0.2, help="seconds a rate")
    budget = parser.parse_args().budget
    print("Billions of values a second, summed as they are made: rows of a batch")
    heads = [f"{size} rows" for size in BATCHES] + ["float32", "stored", "float32"]
    print("columns " + "".join(f"{head:>10}" for head in heads))
    for n in COLUMNS:
        rates = "".join(f"{rate:10.2f}" for rate in measure(n, budget))
        print(f"{n:7} {rates}")


def measure(n, budget):
    """Rates of batches of levels, of float32, and of both with stored values."""
    X = np.random.default_rng(0).integers(0, 256, (ROWS, n)).astype(np.float64)
    form = Kernel("rbf", gamma=1e-5 / n).form
    layout, parts = Layout(form, X, np.float32), Parts(ROWS)
    levels = Levels(X, 1.0, parts)
    samples, rows = LevelSamples(layout, levels, None, parts), np.arange(max(BATCHES))
    makes = LevelBatches(layout, X, levels)
    for size in BATCHES:
        batch = makes.take(rows[:size], samples)
        yield rate(form, samples, batch, size, budget)
    floats = Samples(layout, X)
    both = [makes.take(rows, samples), Batches(layout, X).take(rows, floats)]
    yield rate(form, floats, both[1], len(rows), budget)
    for of, batch in zip((samples, floats), both, strict=True):
        out = aligned((len(rows), ROWS), np.float32)
        yield rate(form, of, batch, len(rows), budget, out)


def rate(form, samples, batch, size, budget, out=None):
    """Billions of values a second: the median of calls of ``budget`` seconds."""
    weights, sums = np.ones((size, 1)), np.zeros((1, ROWS))
    how = (out, None, None, None) if out is not None else (None, None, weights, sums)
    times = []
    while sum(times) < budget or len(times) < 4:
        begin = time.perf_counter()
        _core.kernel_rows(form, samples.core, batch, 0, ROWS // 64, *how)
        times.append(time.perf_counter() - begin)
    return 1e-9 * size * ROWS / statistics.median(times[1:])


if __name__ == "__main__":
    main()
