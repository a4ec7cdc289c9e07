"""How many kernel values a second: the lower bound of every fit with a kernel.

A fit that ends with s support vectors has computed s x m values at least once, unless
it was given them. For each data set: the core's values in float32 and float64, summed
as they are made (fused) or stored, and what NumPy makes of a matrix product and `exp`.
"""

import argparse
import json
import statistics
import time
from pathlib import Path

import numpy as np
from scipy import sparse

from benchmarks.environment import RESULTS, list_of
from benchmarks.kernel_sets import KERNEL_SETS, TASKS
from widemargin.data.memory import as_rows
from widemargin.kernels.kernel import Kernel
from widemargin.kernels.layout import Layout
from widemargin.kernels.packed import Batches, Samples, aligned

KINDS = ("fused32", "stored32", "fused64", "stored64", "gemm32", "gemm64", "product")


def main():
    """Measure the sets, print a table, write OUTPUT/rates.json and .txt."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add = parser.add_argument
    add("--sets", type=list_of(TASKS), default=list(TASKS))
    add("--data", help="folder of further sets: NAME/train.svm[.bz2|.xz]")
    add("--budget", type=float, default=0.5, help="seconds for each rate")
    add("--output", type=Path, default=RESULTS / "kernel")
    options = parser.parse_args()
    options.output.mkdir(parents=True, exist_ok=True)
    rates = update(options.output, options.sets, options.data, options.budget)
    lines = list(table(rates))
    (options.output / "rates.txt").write_text("\n".join(lines) + "\n")
    print("\n".join(lines))


def update(folder, sets, data, budget=0.5, new=False):
    """Measure the sets that are here into FOLDER/rates.json; all rates there.

    ``new``: only those that are not there yet.
    """
    file = folder / "rates.json"
    rates = json.loads(file.read_text()) if file.exists() else {}
    for name in sets:
        if new and name in rates:
            continue
        try:
            X, _ = KERNEL_SETS[name](data)
        except FileNotFoundError as reason:
            print(f"{name}: skipped, {reason}")
            continue
        rates[name] = measure(X, TASKS[name].gamma, budget)
        file.write_text(json.dumps(rates, indent=1) + "\n")
    return rates


def measure(X, gamma, budget):
    """Values a second, by kind, of a batch of rows with all rows."""
    X = as_rows(X).in_memory()
    found = {"m": X.shape[0], "n": X.shape[1]}
    form = Kernel("rbf", gamma=gamma).form
    order = np.random.default_rng(0).permutation(X.shape[0])
    order = order[: Batches(Layout(form, X), X).size]
    for dtype, bits in ((np.float32, 32), (np.float64, 64)):
        layout = Layout(form, X, dtype)
        samples = Samples(layout, X)
        rows = Batches(layout, X).take(order, samples)
        fused, stored = _calls(samples, rows, len(order), dtype)
        found[f"fused{bits}"] = _rate(fused, len(order) * X.shape[0], budget)
        found[f"stored{bits}"] = _rate(stored, len(order) * X.shape[0], budget)
        product = _product(X, order, gamma, dtype)
        found[f"gemm{bits}"] = _rate(product, len(order) * X.shape[0], budget)
    if sparse.issparse(X):
        by_rows = _sparse_product(X, order, gamma)
        found["product"] = _rate(by_rows, len(order) * X.shape[0], budget)
    return found


def _calls(samples, rows, count, dtype):
    """The two uses of the core: values summed as they are made, and stored."""
    weights, sums = np.ones((count, 1)), np.zeros((1, samples.norms.size))
    out = aligned((count, samples.norms.size), dtype)
    return (
        lambda: samples.sums(rows, count, weights, sums),
        lambda: samples.sums(rows, count, None, None, out, np.arange(count)),
    )


def _product(X, order, gamma, dtype):
    """A dense matrix product, and NumPy's exp in place."""
    dense = np.asarray(X.toarray() if sparse.issparse(X) else X, dtype=dtype)
    some, scale = dense[order], dtype(gamma)
    norms = np.einsum("ij,ij->i", dense, dense)
    out = np.empty((len(order), len(dense)), dtype)

    def call():
        np.matmul(some, dense.T, out=out)
        _finish(out, norms[order], norms, scale)

    return call


def _sparse_product(X, order, gamma):
    """SciPy's product of sparse rows with the dense transpose, float32, and exp."""
    rows = sparse.csr_matrix(X, dtype=np.float32)
    norms = np.asarray(rows.multiply(rows).sum(axis=1)).ravel()
    columns, some = np.ascontiguousarray(rows.toarray().T), rows[order]
    return lambda: _finish(some @ columns, norms[order], norms, np.float32(gamma))


def _finish(out, left, right, gamma):
    """From products to exp(-gamma |x - z|^2), in place."""
    out *= 2.0
    out -= left[:, np.newaxis]
    out -= right
    np.minimum(out, 0.0, out=out)
    out *= gamma
    np.exp(out, out=out)


def _rate(call, values, budget):
    """Values a second: the median of calls that take ``budget`` seconds together."""
    call()
    times = []
    while sum(times) < budget or len(times) < 3:
        begin = time.perf_counter()
        call()
        times.append(time.perf_counter() - begin)
    return float(f"{values / statistics.median(times):.4g}")


def table(rates):
    """Lines of text: billions of values a second."""
    yield "Billions of kernel values a second"
    yield f"{'set':14}{'rows':>8}{'columns':>9}" + "".join(f"{k:>10}" for k in KINDS)
    for name, found in rates.items():
        known = (f"{found[k] / 1e9:.3f}" if k in found else "-" for k in KINDS)
        cells = "".join(f"{cell:>10}" for cell in known)
        yield f"{name:14}{found['m']:8,}{found['n']:9,}{cells}"


if __name__ == "__main__":
    main()
