"""How large rounding must be beside a gap before sums are made in twice the precision.

For each `widemargin.solution.SHARE`: how many of 180 small problems, far from zero or
badly scaled ones among them, are solved to 1e-6, 1e-9 and 1e-11, how often sums were
made in twice the precision, and processor seconds in all.
"""

import itertools
import time
from unittest import mock

import numpy as np
from sklearn.datasets import load_breast_cancer

from benchmarks.core.constants import changed
from widemargin import Problem, solution, solve

SETTINGS = (("hinge", "squared_hinge"), ("free", "penalized"))
PRICES, TOLS = (1.0, 1e3, 1e6), (1e-6, 1e-9, 1e-11)
SHARES = (0.0, 0.01, 0.1, 0.5, 0.9)


def sets():
    """Far from zero, as measured, badly scaled, standardized, and separable."""
    X, y = _noisy(800, 6, seed=5)
    yield X + 1e6, y
    raw, target = load_breast_cancer(return_X_y=True)
    labels = np.where(target, 1.0, -1.0)
    yield raw, labels
    X, y = _noisy(800, 7, seed=6)
    yield X * 10.0 ** np.arange(-6, 8, 2), y
    yield (raw - raw.mean(axis=0)) / raw.std(axis=0), labels
    yield _noisy(2000, 10, seed=3, noise=0.0)


def _noisy(m, n, seed, noise=0.5):
    """Normal rows, and labels by a plane."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(m, n))
    return X, np.sign(X @ rng.normal(size=n) + noise * rng.normal(size=m))


def measure(problems):
    """Solved problems, calls of sums in twice the precision, and seconds."""
    found, begin = [], time.process_time()
    precise = mock.patch.object(
        Problem, "_twofold_bounds", autospec=True, side_effect=Problem._twofold_bounds
    )
    with precise as calls:
        for X, y in problems:
            for loss, intercept, C in itertools.product(*SETTINGS, PRICES):
                problem = Problem(X, y, C, loss, intercept)
                found += [
                    solve(problem, "interior_point", tol=tol, max_iter=60).status
                    for tol in TOLS
                ]
    return found.count("solved"), calls.call_count, time.process_time() - begin


def main():
    """Print a line for each share."""
    problems = list(sets())
    for share in SHARES:
        with changed({"SHARE": share}, solution):
            solved, calls, seconds = measure(problems)
        print(f"{share:g}: {solved} solved, {calls} in twice the precision", end="")
        print(f", {seconds:.1f} s")


if __name__ == "__main__":
    main()
