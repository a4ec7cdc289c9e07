"""What it takes to copy entries: CPU nanoseconds of an entry, with one thread.

To pack samples for the kernel engine, dense and sparse (a tenth of the entries), to
make dense rows of many zeros sparse, beside SciPy, and to copy the entries of a square
block across its diagonal. The least of some runs.
"""

import time

import numpy as np
from scipy import sparse

from widemargin import Kernel, _core
from widemargin.kernels.layout import Layout
from widemargin.kernels.packed import Parts, Samples
from widemargin.numerics.linalg import sparse_rows

ROWS = 4096


def main():
    """A line for each number of columns, and for each block."""
    rng = np.random.default_rng(0)
    kernel = Kernel("rbf", gamma=0.1).form
    for n in (20, 100, 600):
        X = rng.normal(size=(ROWS, n))
        few = sparse.csr_array(X * (rng.random(X.shape) < 0.1))
        for name, rows in (("dense", X), ("sparse", few)):
            layout = Layout(kernel, rows, np.float32)
            index = np.arange(ROWS)

            def pack(layout=layout, rows=rows, index=index):
                Samples(layout, rows, index, Parts(ROWS, 1))

            print(f"pack {n:4} columns, {name:6} {each(pack, ROWS * n):6.2f} ns")
        zeros = few.toarray()
        for name, made in (("ours", sparse_rows), ("SciPy", sparse.csr_array)):
            seconds = each(lambda made=made, rows=zeros: made(rows), zeros.size)
            print(f"CSR  {n:4} columns, {name:6} {seconds:6.2f} ns")
    for q in (1024, 4096):
        K, half = rng.random((q, q)).astype(np.float32), q // 2

        def mirror(K=K, half=half, q=q):
            _core.mirror(K, 0, half, q, 0, half)

        print(f"mirror {q:4} rows {each(mirror, half * half):6.2f} ns")


def each(f, entries):
    """CPU nanoseconds of an entry."""
    times = []
    for _ in range(9):
        begin = time.thread_time_ns()
        f()
        times.append(time.thread_time_ns() - begin)
    return min(times) / entries


if __name__ == "__main__":
    main()
