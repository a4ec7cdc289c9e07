"""How large rounding must be beside a gap before sums are made in twice the precision.

For each `widemargin.solution.SHARE`: how many of 180 small problems, far from zero or
badly scaled ones among them, are solved to 1e-6, 1e-9 and 1e-11, how often sums were
made in twice the precision, and processor seconds in all.
"""

import itertools
import sys
import time
from pathlib import Path
from unittest import mock

from constants import changed

from widemargin import Problem, solution, solve

NAMES = (
    "shifted",
    "breast_cancer_raw",
    "badly_scaled",
    "breast_cancer",
    "separable",
)
SETTINGS = (("hinge", "squared_hinge"), ("free", "penalized"))
PRICES, TOLS = (1.0, 1e3, 1e6), (1e-6, 1e-9, 1e-11)
SHARES = (0.0, 0.01, 0.1, 0.5, 0.9)


def measure(sets):
    """Solved problems, calls of sums in twice the precision, and seconds."""
    found, begin = [], time.process_time()
    precise = mock.patch.object(
        Problem, "_twofold_bounds", autospec=True, side_effect=Problem._twofold_bounds
    )
    with precise as calls:
        for X, y in sets:
            for loss, intercept, C in itertools.product(*SETTINGS, PRICES):
                problem = Problem(X, y, C, loss, intercept)
                found += [
                    solve(problem, "interior_point", tol=tol, max_iter=60).status
                    for tol in TOLS
                ]
    return found.count("solved"), calls.call_count, time.process_time() - begin


def main():
    """Print a line for each share."""
    sys.path.append(str(Path(__file__).parents[1]))
    from tests.cases.problems import PROBLEMS

    sets = [PROBLEMS[name]() for name in NAMES]
    for share in SHARES:
        with changed({"SHARE": share}, solution):
            solved, calls, seconds = measure(sets)
        print(f"{share:g}: {solved} solved, {calls} in twice the precision", end="")
        print(f", {seconds:.1f} s")


if __name__ == "__main__":
    main()
