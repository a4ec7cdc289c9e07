"""The problem, our solvers and LIBSVM on it, and the numbers of a run."""

import statistics
import warnings

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
        return solve(as_problem(row, X, y), solver, tol=tol, time_limit=options.limit)

    found, seconds = repeated(run, options.repeat, options.limit)
    last = found.trace[-1].details
    return {
        "seconds": rounded(statistics.median(seconds)),
        **outcome(found),
        "vectors": int(np.count_nonzero(found.alpha)),
        "free": int(np.count_nonzero((found.alpha > 0) & (found.alpha < row.C))),
        "sets": len(found.trace) - 1,
        "entries": int(last["evaluations"]),
        "steps": int(last["inner_steps"]),
    }


def libsvm(row, X, y, options, tol=1e-3):
    """The same record of LIBSVM, scored by `Problem.certify`."""
    model = SVC(kernel="rbf", C=row.C, gamma=row.gamma, tol=tol, cache_size=1000)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        _, seconds = repeated(lambda: model.fit(X, y), options.repeat, options.limit)
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
