"""Table 1: six sets of UCI, ten-fold cross-validation, beside the ordinary machine."""

import statistics
import time

import numpy as np

from papers.asvm import datasets, methods, others
from widemargin import solve

NAME = "uci"
FOLDS, INNER = 10, 5
# nu is chosen by cross-validation within the training rows of each fold.
NUS = 2.0 ** np.arange(-13, 8, 2)
GOAL = 1e-6  # the gap that all packages are asked for
LIMIT = 0.3  # seconds of a fit after which a package is given up
ORDINARY = "ordinary SVM (2)"
METHODS = (methods.PUBLISHED, methods.DEFAULT)


def run(options):
    """A record for each set and method: means over folds, medians of seconds."""
    ladders = {k: v for k, v in others.ladders().items() if "2 threads" not in k}
    records = []
    for data in options.sets(datasets.UCI):
        records += _cross_validated(data, ladders, options)
    return records


def folds(m, count, seed=0):
    """Pairs of training and test rows."""
    order = np.random.default_rng(seed).permutation(m)
    for part in np.array_split(order, count):
        yield np.setdiff1d(order, part), part


def _cross_validated(data, ladders, options):
    found, guards = {}, []
    for train, test in folds(len(data.y), FOLDS):
        X, y = data.X[train], data.y[train]
        nu = chosen(X, y, methods.as_problem)
        problem = methods.as_problem(X, y, nu)
        for label, answer in _answers(problem, X, y, nu, ladders, options).items():
            found.setdefault(label, []).append((*answer, nu, train, test))
        guards.append(_safeguards(problem))
        soft = chosen(X, y, methods.ordinary)
        solution = solve(methods.ordinary(X, y, soft), tol=GOAL)
        gap = solution.certificate.relative_gap
        answer = (solution.trace[-1].seconds, gap, solution.w, solution.b)
        found.setdefault(ORDINARY, []).append((*answer, soft, train, test))
    shape = {"set": data.name, "rows": len(data.y), "columns": data.X.shape[1]}
    records = [shape | {"method": m} | mean(data, runs) for m, runs in found.items()]
    needed = sum(count > 0 for count in guards)
    records[0] |= {"folds_guarded": needed, "safeguards": max(guards)}
    return records


def _safeguards(problem):
    """How many safeguards Algorithm 3.1 needs."""
    solution = solve(problem, methods.SOLVERS[methods.PUBLISHED], tol=GOAL)
    return methods.record(solution, [0.0])["safeguards"]


def _answers(problem, X, y, nu, ladders, options):
    """{label: (seconds, gap, w, b)} of all who solve the paper's problem."""
    found = {}
    for label in METHODS:
        seconds, solution = [], None
        for _ in range(options.repeat):
            solution, spent = _timed(X, y, nu, methods.SOLVERS[label])
            seconds.append(spent)
        gap = solution.certificate.relative_gap
        found[label] = statistics.median(seconds), gap, solution.w, solution.b
    race = others.Race(problem, X, y, 0.5 * nu, goal=GOAL, limit=LIMIT)
    return found | {label: race.run(ladder) for label, ladder in ladders.items()}


def _timed(X, y, nu, solver):
    begin = time.perf_counter()
    solution = solve(methods.as_problem(X, y, nu), solver, tol=GOAL)
    return solution, time.perf_counter() - begin


def chosen(X, y, problem):
    """The nu with most correct rows in cross-validation; the smallest of equals."""
    right = np.zeros(len(NUS))
    for train, test in folds(len(y), INNER, seed=1):
        for k, nu in enumerate(NUS):
            solution = solve(problem(X[train], y[train], nu), tol=1e-3)
            side = X[test] @ solution.w + solution.b
            right[k] += np.count_nonzero((side >= 0.0) == (y[test] > 0.0))
    return float(NUS[np.argmax(right)])


def mean(data, runs):
    """The record of a method's runs on all folds."""
    seconds, gaps, w, b, nu, train, test = zip(*runs, strict=True)
    correct = [
        [
            methods.correctness(wi, bi, data.X[rows], data.y[rows])
            for wi, bi, rows in zip(w, b, part, strict=True)
        ]
        for part in (train, test)
    ]
    return {
        "train": round(statistics.mean(correct[0]), 2),
        "test": round(statistics.mean(correct[1]), 2),
        "milliseconds": round(1e3 * statistics.median(seconds), 3),
        "gap": float(f"{max(gaps):.1e}"),
        "nu": statistics.median(nu),
    }


def table(records):
    """Lines of text."""
    yield (
        f"{'set':17}{'m x n':>10}  {'method':34}{'nu':>9}{'train %':>9}{'test %':>8}"
        f"{'ms':>10}{'largest gap':>13}"
    )
    for r in records:
        size = f"{r['rows']} x {r['columns']}"
        yield (
            f"{r['set']:17}{size:>10}  {r['method']:34}{r['nu']:9.2g}{r['train']:9.2f}"
            f"{r['test']:8.2f}{r['milliseconds']:10.3f}{r['gap']:13.0e}{_guards(r)}"
        )


def _guards(r):
    """What Algorithm 3.1 needed beside its short form."""
    if not r.get("folds_guarded"):
        return ""
    return f"  (safeguards: {r['folds_guarded']} folds, at most {r['safeguards']})"


def draw(records, folder):
    """No picture: the table says it."""
