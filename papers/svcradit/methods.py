"""The problem, our solvers and LIBSVM on it, and the numbers of a run.

Seconds are of the processor, all threads together.
"""

import statistics
import warnings
from dataclasses import replace
from time import process_time

import numpy as np
from sklearn.svm import SVC

from papers.measure import coefficients, outcome, repeated, rounded
from widemargin import Kernel, Problem, solve
from widemargin.solvers import IRWLS

TOL = 1e-4  # the relative gap of all our runs


def as_problem(row, X, y):
    """Problem (1) of the paper, with a Gaussian kernel."""
    return Problem(X, y, row.C, kernel=Kernel("rbf", gamma=row.gamma))


def ours(row, X, y, solver, options, tol=TOL):
    """A record of the median run of a solver; `Problem` is part of the time."""

    def run():
        end = process_time() + options.limit
        problem = as_problem(row, X, y)
        return solve(
            problem, solver, tol=tol, callback=lambda step: process_time() > end
        )

    found, seconds = repeated(run, options.repeat, options.limit, process_time)
    last = found.trace[-1].details
    return {
        "seconds": rounded(statistics.median(seconds)),
        **outcome(found),
        "vectors": int(np.count_nonzero(found.alpha)),
        "free": int(np.count_nonzero((found.alpha > 0) & (found.alpha < row.C))),
        "sets": len(found.trace) - 1,
        "entries": int(last["evaluations"]),
        "steps": int(last["inner_steps"]),
        "unsettled": int(last["unsolved"]),
    }


def of_seeds(row, X, y, solver, options):
    """The record of the middle one of the seeds, as many as the limit has time for.

    ``seeds`` has working sets, seconds and the gap of each.
    """
    found, end = [], process_time() + options.limit
    for seed in range(options.seeds):
        found.append(ours(row, X, y, replace(solver, random_state=seed), options))
        if process_time() > end:
            break
    found.sort(key=lambda r: r["sets"])
    seeds = [[r[k] for k in ("sets", "seconds", "gap")] for r in found]
    return {**found[(len(found) - 1) // 2], "seeds": seeds}


def libsvm(row, X, y, options, tol=1e-3):
    """The same record of LIBSVM, scored by `Problem.certify`."""
    model = SVC(kernel="rbf", C=row.C, gamma=row.gamma, tol=tol, cache_size=1000)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        _, seconds = repeated(
            lambda: model.fit(X, y), options.repeat, options.limit, process_time
        )
    c = coefficients(model, len(y))
    certificate = as_problem(row, X, y).certify(y * c, c, float(model.intercept_[0]))
    return {
        "seconds": rounded(statistics.median(seconds)),
        "status": "solved",
        "primal": certificate.primal,
        "gap": rounded(certificate.relative_gap, 3),
        "vectors": len(model.support_),
    }


def policy(selection, carry, q=None, inner="pairs"):
    """The solver with a way to choose its working sets of q rows."""
    return IRWLS(selection=selection, carry=carry, working_set=q, inner=inner)
