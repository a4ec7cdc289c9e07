"""How the runs are made, and what is kept of each. Seconds are of the processor."""

import statistics
import time
import warnings
from dataclasses import replace

import numpy as np
from sklearn.svm import SVC

from papers.crsvm.figures import style  # noqa: F401  (parts take it from here)
from widemargin import Kernel, Problem, solve
from widemargin.solvers import IRWLS

TOL = 1e-4  # the relative gap of all our runs


def as_problem(row, X, y):
    """Problem (1) of the paper, with a Gaussian kernel."""
    return Problem(X, y, row.C, kernel=Kernel("rbf", gamma=row.gamma))


def ours(row, X, y, solver, options, tol=TOL):
    """A record of the median run of a solver; `Problem` is part of the time."""
    seconds = []
    for _ in range(options.repeat):
        begin = time.process_time()

        def late(step, end=begin + options.limit):
            return time.process_time() > end

        found = solve(as_problem(row, X, y), solver, tol=tol, callback=late)
        seconds.append(time.process_time() - begin)
        if seconds[-1] > options.limit / 3:
            break
    last = found.trace[-1].details
    return {
        "seconds": rounded(statistics.median(seconds)),
        "status": str(found.status),
        "gap": float(f"{found.certificate.relative_gap:.3g}"),
        "primal": found.certificate.primal,
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
    found, patience = [], time.process_time() + options.limit
    for seed in range(options.seeds):
        found.append(ours(row, X, y, replace(solver, random_state=seed), options))
        if time.process_time() > patience:
            break
    found.sort(key=lambda r: r["sets"])
    seeds = [[r[k] for k in ("sets", "seconds", "gap")] for r in found]
    return {**found[(len(found) - 1) // 2], "seeds": seeds}


def libsvm(row, X, y, options, tol=1e-3):
    """The same record of LIBSVM, scored by `Problem.certify`."""
    model = SVC(kernel="rbf", C=row.C, gamma=row.gamma, tol=tol, cache_size=1000)
    seconds = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for _ in range(options.repeat):
            begin = time.process_time()
            model.fit(X, y)
            seconds.append(time.process_time() - begin)
            if seconds[-1] > options.limit / 3:
                break
    coef = model.dual_coef_
    c = np.zeros(len(y))
    c[model.support_] = np.ravel(coef if isinstance(coef, np.ndarray) else coef.data)
    certificate = as_problem(row, X, y).certify(y * c, c, float(model.intercept_[0]))
    return {
        "seconds": rounded(statistics.median(seconds)),
        "status": "solved",
        "gap": float(f"{certificate.relative_gap:.3g}"),
        "primal": certificate.primal,
        "vectors": len(model.support_),
    }


def rounded(number):
    """To four digits."""
    return float(f"{number:.4g}")


def policy(selection, carry, q=None, inner="pairs"):
    """The solver with a way to choose its working sets of q rows."""
    return IRWLS(selection=selection, carry=carry, working_set=q, inner=inner)
