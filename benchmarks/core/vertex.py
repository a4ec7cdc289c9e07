"""How many free variables are looked at together: `vertex.MORE`.

Microseconds of the processor for each variable that moves take to a bound.
"""

import time

import numpy as np

from benchmarks.core.constants import changed
from widemargin.solvers.kernel import vertex
from widemargin.solvers.kernel.inner_points import Boxed, Dense, Point

SIZES = ((3000, 20), (3000, 123), (10_000, 165), (4000, 500))
MORE = (16, 32, 64, 256)


def main(sizes=SIZES):
    """A line for each number of rows and columns."""
    print("rows   columns " + "".join(f"{more:7}" for more in MORE))
    rng = np.random.default_rng(0)
    for m, n in sizes:
        Z, c, ones = rng.normal(size=(m, n)), rng.uniform(size=m), np.ones(m)
        problem = Boxed(Dense(np.eye(1)), c, 0 * ones, ones, ones[:, np.newaxis], c[:1])
        at = Point(c, c[:1], rng.uniform(size=m), rng.uniform(size=m))
        line = f"{m:6} {n:8} "
        for more in MORE:
            with changed({"MORE": more}, vertex):
                to = vertex.ToVertex(problem, Z.__getitem__, at, c)
                begin = time.process_time()
                to.purify()
                line += f"{(time.process_time() - begin) / m * 1e6:7.0f}"
        print(line, flush=True)


if __name__ == "__main__":
    main()
