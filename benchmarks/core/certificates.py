"""What a certificate that rounding cannot break costs, beside the fit that it ends.

For each problem: seconds of a fit; the share of them in bounds of errors alone; rows
whose scores were computed again in float64, beside those with alpha > 0 or a margin of
at most 1; what the bounds allow for rounding, relative to the objective; and seconds of
`Problem.certify` for the answer, in float64 and in twice the precision.
"""

import argparse
import contextlib
import time
import warnings

import numpy as np
from sklearn.datasets import load_iris

from benchmarks.datasets import a9a, file, mnist
from benchmarks.environment import list_of
from widemargin import Kernel, Problem, make_ndc, solve
from widemargin.problems.kernel import KernelProblem
from widemargin.problems.scores import Scores
from widemargin.solution import Certificate

REPEATS = 5


def iris(folder):
    """Iris, two classes of 50 rows."""
    X, y = load_iris(return_X_y=True)
    return X[y > 0], np.where(y[y > 0] == 2, 1.0, -1.0)


def ndc(folder):
    """500,000 rows of NDC."""
    X, y = make_ndc(500_000, 32, random_state=0)
    return X, np.where(y > 0, 1.0, -1.0)


def parity(folder):
    """12,000 rows of MNIST's parity problem, float32."""
    X, y = mnist(folder)
    return X[:12_000].astype(np.float32), y[:12_000]


CASES = {
    "iris": (iris, 1.0, Kernel("rbf", gamma="scale")),
    "a9a": (a9a, 1.0, Kernel("rbf", gamma=0.0326)),
    "w8a": (file("w8a"), 10.0, Kernel("rbf", gamma=0.05)),
    "ijcnn1": (file("ijcnn1"), 10.0, Kernel("rbf", gamma=1.0)),
    "mnist": (parity, 10.0, Kernel("rbf", gamma=0.02)),
    "a9a_linear": (a9a, 1.0, None),
    "ndc_linear": (ndc, 1.0, None),
}


class Watch:
    """Seconds in some methods of a class, and what they were called with."""

    def __init__(self):
        self.seconds, self.rows = 0.0, 0

    @contextlib.contextmanager
    def on(self, owner, name):
        """Watch a method; a call within another one counts once."""
        method, inside = getattr(owner, name), [False]

        def watched(this, *arguments, **options):
            if name == "refresh":
                self.rows += len(arguments[0])
            outer, inside[0] = inside[0], True
            begin = time.perf_counter()
            try:
                return method(this, *arguments, **options)
            finally:
                inside[0] = outer
                self.seconds += 0.0 if outer else time.perf_counter() - begin

        setattr(owner, name, watched)
        try:
            yield self
        finally:
            setattr(owner, name, method)


def seconds(f):
    """Least seconds of some calls, and what the last one returned."""
    best = np.inf
    for _ in range(REPEATS):
        begin = time.perf_counter()
        found = f()
        best = min(best, time.perf_counter() - begin)
    return best, found


def measure(name, folder):
    """A line of the table."""
    load, C, kernel = CASES[name]
    X, y = load(folder)
    bounds, again = Watch(), Watch()
    owner, method = (KernelProblem, "prove") if kernel else (Problem, "_bounds")
    with (
        bounds.on(owner, method),
        bounds.on(Scores, "sums"),
        again.on(Scores, "refresh"),
    ):
        fit, solution = seconds(lambda: solve(Problem(X, y, C, kernel=kernel)))
    problem = Problem(X, y, C, kernel=kernel)
    answer = solution.alpha, solution.w, solution.b
    plain, found = seconds(lambda: problem.certify(*answer, tol=1.0))
    hides = Certificate.hides
    Certificate.hides = lambda *_: True
    try:
        twofold = (
            seconds(lambda: problem.certify(*answer))[0] if len(y) < 2e4 else np.nan
        )
    finally:
        Certificate.hides = hides
    print(
        f"{name:12s} {fit:8.4f} {100 * bounds.seconds / REPEATS / fit:6.1f} % "
        f"{again.rows // REPEATS:8,d} {np.count_nonzero(solution.alpha):8,d} "
        f"{found.rounding / found.primal:9.1e} {plain:9.4f} {twofold:9.4f}"
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", help="folder of data sets that are not shipped")
    parser.add_argument("--sets", type=list_of(CASES), default=list(CASES))
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    print(
        "problem       seconds   bounds    again  alpha>0  rounding   certify   twofold"
    )
    for case in options.sets:
        try:
            measure(case, options.data)
        except FileNotFoundError as error:
            print(f"{case:12s} {error}")
