"""Feature maps of low rank: what they leave of the trace of K, their error and time.

For each data set and rank every method of `widemargin.features.methods`, and
scikit-learn's Nystroem. Trace residual and error (largest row sum of |K - Z Z'| over
that of |K|, of 256 rows) are measured by the same code for all. Seconds are from the
data to Z, the least of some runs.
"""

import argparse
import csv
import time
from pathlib import Path

import numpy as np

from benchmarks.core.features import Measured
from benchmarks.environment import RESULTS, list_of, machine
from benchmarks.kernel_sets import KERNEL_SETS, TASKS
from widemargin import Kernel
from widemargin.features.methods import feature_map

SETS = ("a9a", "ijcnn1", "mnist")
LANDMARKS = ("uniform", "kmeans++", "leverage", "residual")
METHODS = {
    "cholesky": {"method": "cholesky"},
    **{f"nystroem {n}": {"method": "nystroem", "landmarks": n} for n in LANDMARKS},
    "fourier": {"method": "fourier"},
    "eigen": {"method": "eigen"},
    "sklearn": None,
}
DTYPES = {"float32": np.float32, "float64": np.float64}
COLUMNS = ("set", "asked", "method", "dtype", "rank", "trace", "error", "seconds")


def main():
    """Measure the sets, print a table, write OUTPUT/lowrank.csv and .txt."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add = parser.add_argument
    add("--sets", type=list_of(SETS), default=list(SETS))
    add("--methods", type=list_of(METHODS), default=list(METHODS))
    add("--dtypes", type=list_of(DTYPES), default=list(DTYPES))
    add("--ranks", type=lambda s: [int(v) for v in s.split(",")], default=[64, 300])
    add("--data", help="folder of further sets: NAME/train.svm[.bz2|.xz]")
    add("--rows", type=int, help="the first so many rows only")
    add("--repeat", type=int, default=3, help="runs, but of those above ten seconds")
    add("--output", type=Path, default=RESULTS / "lowrank")
    options = parser.parse_args()
    options.output.mkdir(parents=True, exist_ok=True)
    file = options.output / "lowrank.csv"
    with file.open("a", newline="") as out:
        writer = csv.writer(out, lineterminator="\n")
        if file.stat().st_size == 0:
            writer.writerow(COLUMNS)
        for result in measure(options):
            print(*result, flush=True)
            writer.writerow(result)
            out.flush()
    here = machine({})
    lines = [f"{here['cpu']}, {here['cores']} cores; {here['versions']}", ""]
    lines += table(file)
    (options.output / "lowrank.txt").write_text("\n".join(lines) + "\n")
    print("\n".join(lines))


def measure(options):
    """Results of the sets, ranks, methods and dtypes."""
    for name in options.sets:
        X, kernel = data(name, options)
        for rank in options.ranks:
            for method in options.methods:
                for dtype in options.dtypes:
                    call = peer if METHODS[method] is None else own
                    if call is peer and dtype != "float64":
                        continue  # follows the data
                    found = least(call, options.repeat, X, kernel, rank, method, dtype)
                    yield name, rank, method, dtype, *found


def data(name, options):
    """The rows of a set and its kernel."""
    X, _ = KERNEL_SETS[name](options.data)
    return X[: options.rows], Kernel("rbf", gamma=TASKS[name].gamma)


def least(call, repeat, *arguments):
    """Rank, trace residual and error of the first run, and the least time of some."""
    first = z = call(*arguments)
    times = [z.seconds]
    while len(times) < repeat and sum(times) < 10.0:
        times.append(call(*arguments).seconds)
    error = f"{first.error:.5f}"
    trace = f"{round(first.trace_residual, 5) + 0.0:.5f}"  # not -0
    return first.rank, trace, error, f"{min(times):.3f}"


def own(X, kernel, rank, method, dtype):
    """A map of ours."""
    kind = METHODS[method]
    return feature_map(
        X, kernel, rank=rank, random_state=0, dtype=DTYPES[dtype], **kind
    )


def peer(X, kernel, rank, method, dtype):
    """Features of scikit-learn's Nystroem, measured as ours."""
    from sklearn.kernel_approximation import Nystroem

    begin = time.perf_counter()
    nystroem = Nystroem(gamma=kernel.gamma, n_components=rank, random_state=0)
    Z = nystroem.fit_transform(X)
    return Measured(X, kernel, Z, time.perf_counter() - begin)


def table(file):
    """Lines of text; the last result of a kind counts."""
    with file.open() as lines:
        rows = {tuple(r[c] for c in COLUMNS[:4]): r for r in csv.DictReader(lines)}
    yield (
        f"{'set':8}{'method':19}{'dtype':9}{'rank':>6}{'trace residual':>16}"
        f"{'error':>10}{'seconds':>10}"
    )
    for r in rows.values():
        yield (
            f"{r['set']:8}{r['method']:19}{r['dtype']:9}{r['rank']:>6}"
            f"{r['trace']:>16}{r['error']:>10}{r['seconds']:>10}"
        )


if __name__ == "__main__":
    main()
