"""Fits of LinearSVR beside LIBLINEAR's three solvers, at equal certified gaps.

LIBLINEAR's solvers of regression, by its authors' package: Newton (-s 11) and dual
coordinate descent (-s 12) for the squared loss, and dual coordinate descent for the
loss itself (-s 13), with a penalized intercept. Each runs with the tolerance of
LIBLINEAR's own (1e-3, and 0.1 for descent). LIBLINEAR proves nothing by itself: its gap
is P of its weights over our best D, and LinearSVR is asked for that gap, which it has
to prove by its own P and D. (D by `widemargin.solve` to 1e-6 of `regression_problem`.)
Processor seconds, of all threads: medians of rounds in which both take turns. `train`
is LIBLINEAR on rows that it has read already, `fit` with what its package takes to read
the same array or CSR matrix; ours are of whole fits. LIBLINEAR ends descent after 1,000
epochs. Prints a table and writes OUTPUT/regression.txt.
"""

import argparse
import time
from pathlib import Path
from statistics import median

import numpy as np
from liblinear.liblinearutil import parameter, problem, train
from scipy import sparse

from benchmarks.environment import RESULTS, machine
from benchmarks.peers.linear import liblinear
from widemargin import LinearSVR, solve
from widemargin.problems.regression import regression_problem

EPSILON = 0.1
# Gaps that are asked for lie between these.
LEAST, MOST = 1e-7, 0.1
# LIBLINEAR's solvers: their loss here and in the problem, and tolerance.
SOLVERS = {
    11: ("squared_epsilon_insensitive", "squared_hinge", 1e-3),
    12: ("squared_epsilon_insensitive", "squared_hinge", 0.1),
    13: ("epsilon_insensitive", "hinge", 0.1),
}
HEAD = (
    f"{'rows':22}{'C':>6}{'solver':>8}{'gap':>10}{'train':>9}{'fit':>9}{'ours':>9}"
    f"{'train':>8}{'fit':>8}  by"
)


def documents(m, n, words):
    """Words by Zipf's law, rows of length 1, targets of a fifth of the words."""
    rng = np.random.default_rng(0)
    shares = 1.0 / np.arange(1, n + 1)
    columns = rng.choice(n, size=(m, words), p=shares / shares.sum()).ravel()
    rows = np.repeat(np.arange(m), words)
    X = sparse.csr_matrix((np.ones(len(rows)), (rows, columns)), shape=(m, n))
    X.data = (1.0 + np.log(X.data)) * np.log(2.0 + n / (1.0 + X.indices))
    lengths = np.sqrt(np.asarray(X.multiply(X).sum(axis=1)).ravel())
    X = sparse.csr_matrix(sparse.diags(1.0 / lengths) @ X)
    X.sort_indices()  # as vectorizers leave them
    t = X @ (rng.normal(size=n) * (rng.random(n) < 0.2))
    return X, (t - t.mean()) / t.std() + 0.3 * rng.normal(size=m)


def normal(m, n):
    """Dense normal rows, a linear target with noise."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(m, n))
    t = X @ rng.normal(size=n)
    return X, (t - t.mean()) / t.std() + 0.5 * rng.normal(size=m)


SETS = {
    "text 5,000 x 20,000": lambda: documents(5000, 20_000, 60),
    "text 20,000 x 50,000": lambda: documents(20_000, 50_000, 80),
    "dense 1,000 x 10": lambda: normal(1000, 10),
    "dense 20,000 x 100": lambda: normal(20_000, 100),
    "dense 100,000 x 20": lambda: normal(100_000, 20),
}


def ours(X, t, C, loss, tol):
    """The fitted machine."""
    options = {"loss": loss, "intercept": "penalized", "tol": tol}
    return LinearSVR(C=C, epsilon=EPSILON, **options).fit(X, t)


def timed(f, *arguments):
    """What f returns, and its seconds of the processor."""
    begin = time.process_time()
    found = f(*arguments)
    return found, time.process_time() - begin


def row(name, X, t, C, solver, rounds):
    """A line of the table."""
    loss, pointwise, eps = SOLVERS[solver]
    options = parameter(f"-s {solver} -c {C!r} -p {EPSILON} -e {eps} -B 1 -q")
    exact = regression_problem(X, t, C, EPSILON, pointwise, "penalized")
    dual, runs = solve(exact, tol=1e-6, time_limit=60).certificate.dual, []
    for _ in range(rounds):
        known, reading = timed(lambda: problem(t, sparse.csr_matrix(X), 1))
        model, training = timed(train, known, options)
        w, b = model.get_decfun()
        primal = exact.primal(np.asarray(w), b)
        gap = min(max((primal - dual) / primal, LEAST), MOST)
        fitted, mine = timed(ours, X, t, C, loss, gap)
        runs.append((training, reading + training, mine))
    training, whole, mine = (median(column) for column in zip(*runs, strict=True))
    by = fitted.solution_.solver if fitted.status_ == "solved" else fitted.status_
    return (
        f"{name:22}{C:>6g}{solver:>8}{gap:>10.1e}{training:>9.4f}{whole:>9.4f}"
        f"{mine:>9.4f}{training / mine:>8.2f}{whole / mine:>8.2f}  {by}"
    )


def main():
    """Measure all tasks."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add = parser.add_argument
    add("--rounds", type=int, default=3)
    add("--sets", nargs="*", default=list(SETS), choices=list(SETS))
    add("--C", type=float, nargs="*", default=[0.1, 1.0, 10.0])
    add("--output", type=Path, default=RESULTS / "linear")
    options = parser.parse_args()
    options.output.mkdir(parents=True, exist_ok=True)
    here = machine({"liblinear": liblinear})
    lines = [f"{here['cpu']}; {here['versions']}", HEAD]
    print("\n".join(lines))
    for name in options.sets:
        X, t = SETS[name]()
        ours(X[:100], t[:100], 1.0, "epsilon_insensitive", 1e-2)
        for C in options.C:
            for solver in SOLVERS:
                lines.append(row(name, X, t, C, solver, options.rounds))
                print(lines[-1], flush=True)
    (options.output / "regression.txt").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
