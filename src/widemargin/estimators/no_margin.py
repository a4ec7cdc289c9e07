"""Fits whose optimum is zero: nu is too small for the data, and no margin exists."""

import dataclasses

from widemargin.estimators.plans import Fit
from widemargin.solution import Solution, Status


def without_margin(fit: Fit, nu: float, reason: str) -> Fit:
    """The fit, which says of each optimum of zero that no margin exists, and why."""
    said = [_said(solution, nu, reason) for solution in fit.solutions]
    return dataclasses.replace(fit, solutions=said)


def _said(solution: Solution, nu: float, reason: str) -> Solution:
    """The solution; with another status where zero bounds its optimum from above."""
    # The bound of a point with a margin is below 0; 0 is that of no function at all.
    if solution.status is not Status.SOLVED or solution.certificate.primal < 0.0:
        return solution
    ended = Status.NO_MARGIN
    message = f"The optimum is zero: with nu={nu:g} {reason}. {ended.advice}"
    return dataclasses.replace(solution, status=ended, message=message)
