"""Whole fits of few sparse rows beside scikit-learn's, of one and of several classes.

`LinearSVC` and `LinearSVR` with the penalized intercept that LIBLINEAR has, and default
tolerances: our fits have a certified relative gap of 1e-4. LIBLINEAR's gap is that of
its answer, where that is one problem: P of its weights over our best D. It runs with
the solver that scikit-learn chooses for the rows (``dual="auto"``). Seconds are medians
of fits in turns. Prints a table and writes OUTPUT/sparse_fits.txt.
"""

import argparse
import functools
import time
import warnings
from pathlib import Path
from statistics import geometric_mean, median

import numpy as np
import sklearn.svm

import widemargin
from benchmarks.environment import RESULTS, machine
from benchmarks.linear.sparse import ones
from benchmarks.linear.text import documents, scattered
from widemargin import Problem
from widemargin.problems.regression import regression_problem

HEAD = (
    f"{'rows':26}{'classes':>8}{'loss':>16}{'C':>7}{'LIBLINEAR':>11}{'ours':>9}"
    f"{'times':>7}{'its gap':>10}  by"
)
SQUARED = "squared_epsilon_insensitive"


def grouped(made, m, n, count, classes):
    """Rows that a function makes, and the classes of their targets."""
    X, t = made(m, n, count)
    cuts = np.quantile(t, np.arange(1, classes) / classes)
    return X, np.digitize(t, cuts)


SETS = {
    "documents 3,000 x 3,985": documents,
    "scattered 6,000 x 8,000": scattered,
    "scattered 400 x 20,000": functools.partial(scattered, 400, 20_000, 0.003, 8),
    "ones 500 x 2,000": functools.partial(grouped, ones, 500, 2000, 20, 2),
    "ones 2,000 x 300": functools.partial(grouped, ones, 2000, 300, 9, 2),
    "ones 3,000 x 1,000": functools.partial(grouped, ones, 3000, 1000, 10, 2),
    "ones 6,000 x 600": functools.partial(grouped, ones, 6000, 600, 12, 3),
    "targets 500 x 2,000": functools.partial(ones, 500, 2000, 20),
    "targets 3,000 x 1,000": functools.partial(ones, 3000, 1000, 10),
    "targets 6,000 x 600": functools.partial(ones, 6000, 600, 12),
}


def gap_of(peer, X, y, C, loss):
    """The relative gap of LIBLINEAR's answer to one problem; None for several."""
    if y.dtype.kind == "f":
        pointwise = "squared_hinge" if loss == SQUARED else "hinge"
        exact = regression_problem(X, y, C, 0.0, pointwise, "penalized")
    elif y.max() == 1:
        exact = Problem(X, 2 * y - 1, C, loss, "penalized")
    else:
        return None
    dual = widemargin.solve(exact, tol=1e-7, time_limit=20).certificate.dual
    primal = exact.primal(peer.coef_.ravel(), float(np.ravel(peer.intercept_)[0]))
    return max(primal - dual, 0.0) / primal


def seconds_of(model, X, y):
    """Seconds of a fit."""
    begin = time.perf_counter()
    model.fit(X, y)
    return time.perf_counter() - begin


def row(name, X, y, loss, C, rounds):
    """A line of the table, and how many times as fast we are."""
    kind = "LinearSVR" if y.dtype.kind == "f" else "LinearSVC"
    how = {"loss": loss, "C": C}
    peer = getattr(sklearn.svm, kind)(dual="auto", **how)
    own = getattr(widemargin, kind)(intercept="penalized", **how)
    own.fit(X, y)
    peer.fit(X, y)
    found = [(seconds_of(peer, X, y), seconds_of(own, X, y)) for _ in range(rounds)]
    theirs, ours = (median(column) for column in zip(*found, strict=True))
    gap = gap_of(peer, X, y, C, loss)
    classes = "" if kind == "LinearSVR" else f"{len(own.classes_)}"
    shown = "" if gap is None else f"{gap:.1e}"
    line = (
        f"{name:26}{classes:>8}{loss[:15]:>16}{C:>7g}{theirs:>11.4f}{ours:>9.4f}"
        f"{theirs / ours:>7.2f}{shown:>10}  {own.solution_.solver}"
    )
    return line, theirs / ours


def main():
    """Measure all fits."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add = parser.add_argument
    add("--rounds", type=int, default=7)
    add("--sets", nargs="*", default=list(SETS), choices=list(SETS))
    add("--C", type=float, nargs="*", default=[0.1, 1.0, 10.0])
    add("--output", type=Path, default=RESULTS / "linear")
    options = parser.parse_args()
    warnings.simplefilter("ignore")  # LIBLINEAR ends after 1,000 epochs
    here, version = machine({}), sklearn.__version__
    lines = [f"{here['cpu']}; {here['versions']}; scikit-learn {version}", HEAD]
    ratios = []
    print("\n".join(lines))
    for name in options.sets:
        X, y = SETS[name]()
        losses = ("hinge", "squared_hinge")
        if y.dtype.kind == "f":
            losses = ("epsilon_insensitive", SQUARED)
        for loss in losses:
            for C in options.C:
                line, ratio = row(name, X, y, loss, C, options.rounds)
                lines.append(line)
                ratios.append(ratio)
                print(line, flush=True)
    lines.append(
        f"times as fast: {geometric_mean(ratios):.2f}, least {min(ratios):.2f}"
    )
    print(lines[-1])
    options.output.mkdir(parents=True, exist_ok=True)
    (options.output / "sparse_fits.txt").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
