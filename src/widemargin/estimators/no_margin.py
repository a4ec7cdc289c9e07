"""What nu machines say of their end: no margin where the optimum is zero, and no C."""

import dataclasses
from collections.abc import Callable, Sequence

from widemargin.estimators.plans import Fit
from widemargin.solution import Solution, Status
from widemargin.solvers.driver.advice import FAR, shows_zero, worth

# What a machine without C has in the place of a smaller one, which has a wider margin.
_WORDS = {"a smaller C": "a larger nu", "lower C": "raise nu"}
# What is said of a bound that is no better than that of no function.
NONE_YET = "No margin is proved: decision values may be rounding."


def without_margin(
    fit: Fit, nu: float, reason: str, pairs: Callable[[], Sequence[str]] = lambda: ("",)
) -> Fit:
    """The fit, which says of each optimum of zero that no margin exists, and why.

    ``pairs`` tells the names of the classes of each binary problem, where there are
    several.
    """
    if fit.columns.are_solved and (fit.columns.proofs[:, 0] < 0.0).all():
        return fit  # there is nothing to say
    solutions = [_in_nu(solution) for solution in fit.solutions]
    zero = [k for k, solution in enumerate(solutions) if _is_zero(solution)]
    if zero:
        names = pairs()
        told = _told([names[k] for k in zero], len(solutions), nu, reason)
        for k in zero:
            ended = Status.NO_MARGIN
            solutions[k] = solutions[k].changed(status=ended, message=told)
    is_same = all(a is b for a, b in zip(solutions, fit.solutions, strict=True))
    return fit if is_same else dataclasses.replace(fit, solutions=solutions)


def _in_nu(solution: Solution) -> Solution:
    """The solution, whose advice speaks of nu, and of no model where none is better."""
    said, bounds = solution.message, solution.certificate
    if bounds.primal >= 0.0 and bounds.relative_gap < FAR:
        said = said.replace(worth(bounds.relative_gap, bounds), NONE_YET)
    for words, of_nu in _WORDS.items():
        said = said.replace(words, of_nu)
    return solution if said == solution.message else solution.changed(message=said)


def _is_zero(solution: Solution) -> bool:
    """Whether zero bounds the optimum from above: that of no function at all.

    The bound of a point with a margin is below 0.
    """
    return solution.certificate.primal >= 0.0 and shows_zero(solution)


def _told(pairs: Sequence[str], n_problems: int, nu: float, reason: str) -> str:
    """The sentences about the binary problems without a margin."""
    advice = Status.NO_MARGIN.advice
    if len(pairs) == n_problems:
        return f"The optimum is zero: with nu={nu:g} {reason}. {advice}"
    several = f" (and {len(pairs) - 1} more)" if len(pairs) > 1 else ""
    return (
        f"For {len(pairs)} of {n_problems} pairs of classes the optimum is zero: with "
        f"nu={nu:g} {reason}, as {pairs[0]}{several}. Between the two of such a "
        "pair predictions mean nothing; other pairs have margins. "
        + advice[advice.index("Take") :]
    )
