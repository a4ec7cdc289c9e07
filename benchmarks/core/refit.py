"""The refit of `widemargin.reduction.reduce`, with rows that it would not choose."""

from widemargin.reduction.reduce import SHARE, _begin, _model
from widemargin.reduction.restricted import Refits, SolvedProblem, refit
from widemargin.solvers.driver.limits import Limits
from widemargin.system.memory import free_bytes

TOL = 1e-3  # the gap of refits, as of `reduce`


def refitted(problem, solution, rows):
    """The model of least objective with these support vectors: a `Reduced`."""
    whole = SolvedProblem(problem, solution, Refits(Limits(TOL), SHARE, free_bytes()))
    features, start = _begin(whole, rows, len(rows), len(rows))
    point, status = refit(features, len(features.J), start)
    return _model(features, point, status)
