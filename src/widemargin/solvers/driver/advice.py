"""The sentence that tells how a run ended, and what helps."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from widemargin.arrays import Mask
from widemargin.problems.base import Problem
from widemargin.solution import (
    NOT_CONVEX,
    UNPROVED,
    Certificate,
    Solution,
    Status,
    Step,
    reached,
)
from widemargin.solvers.driver.limits import Limits

# Sizes of columns beside the typical one, and means beside deviations, that are worth a
# sentence: their squares, which Gram matrices have, take six of 16 digits.
LARGE = 1000.0
# Products of the features that a polynomial kernel is a sum of, up to which they are
# worth a sentence as columns, and rows for each of them (two classes of shuttle,
# 40,856 x 9, degree 3, C = 4096: 165 columns take 3 to 5 s, the kernel 40 s or more).
MOST_PRODUCTS, ROWS_A_PRODUCT = 1500, 10
# Relative gaps from which a model is called rough, and far from optimal.
ROUGH, FAR = 0.1, 0.5
# What an optimum of zero is told from by fits with the tol that is the default.
CLEAR = 1e-4

# Said of a constant in the place of a model with a kernel.
CONSTANT = (
    "The model is a constant: what the solver had when it ended was worse than no "
    "function at all."
)
# What else helps where features are named that want scaling: `Status.advice` advises
# that, too.
BESIDE_SCALING = {
    Status.ALMOST_SOLVED: (
        "The gap is within 100 times tol, and at most 0.1; the solver got no further. "
        "A smaller C may help, too."
    ),
    Status.MAX_ITER: "Or raise max_iter, leave it out, or lower C.",
    Status.STALLED: (
        "The last iterations did not improve the answer. A smaller C or another solver "
        "may help, too."
    ),
    Status.NUMERICAL_ERROR: (
        "The arithmetic broke down; the best answer before that was kept. A smaller C "
        "may help, too."
    ),
}


@dataclass(frozen=True)
class Ending:
    """What a run ended with.

    Attributes
    ----------
    problem : Problem, or another kind that a solver has
    status : Status
    last : Step, the last one
    gap : float, relative
    max_iter : int
    limits : Limits
    names : sequence of str or None, of the features
    bounds : Certificate or None, of the answer
    is_constant : bool, whether a constant has taken the place of the answer
    """

    problem: Any
    status: Status
    last: Step
    gap: float
    max_iter: int
    limits: Limits
    names: Sequence[str] | None
    bounds: Certificate | None = None
    is_constant: bool = False


def message(end: Ending) -> str:
    """What happened, how good the answer is, and what helps."""
    status, gap, limits = end.status, end.gap, end.limits
    if end.last.details.get("negative"):
        return NOT_CONVEX
    if status is Status.SOLVED:
        return status.advice
    cause = {
        Status.MAX_ITER: f"max_iter={end.max_iter}",
        Status.TIME_LIMIT: f"time_limit={limits.time_limit} s",
        Status.INTERRUPTED: "Ctrl-C",
        Status.STOPPED_BY_CALLBACK: "the callback",
        Status.OUT_OF_MEMORY: "a lack of memory",
        Status.NUMERICAL_ERROR: "a numerical breakdown",
    }.get(status, f"lack of progress ({status.value})")
    scaling = _scaling_advice(end.problem, end.names)
    advice = BESIDE_SCALING.get(status, status.advice) if scaling else status.advice
    if end.last.details.get("is_ball"):
        cause, advice = "epsilon, the rule of the ball,", "A smaller epsilon goes on."
    good = CONSTANT if end.is_constant else worth(gap, end.bounds)
    return (
        f"Stopped by {cause} {reached(gap, limits.tol)}. {good} {scaling}"
        f"{_columns_advice(end.problem)}{advice}"
    )


def with_status(said: str, before: Status, status: Status) -> str:
    """A message of a run that got no further, of another status."""
    said = said.replace(f"({before.value})", f"({status.value})")
    said = said.replace(BESIDE_SCALING[before], BESIDE_SCALING[status])
    return said.replace(before.advice, status.advice)


def worth(gap: float, bounds: Certificate | None = None) -> str:
    """How good a model is, by its relative gap, and by its bounds if known.

    A gap that is relative to the floor is no share of the objective.
    """
    if gap >= UNPROVED:
        return "The model may be far from optimal."
    if gap >= FAR:
        return "The model is far from optimal."
    above = f"{100 * gap / (1.0 - gap):.2g} %"
    if bounds is not None and bounds.told_scale:
        above = f"{bounds.gap:.2g}"
    above += " above the best possible."
    if gap >= ROUGH:
        return f"The model is rough: its objective may be {above}"
    return f"The model is usable: its objective is at most {above}"


def shows_zero(solution: Solution) -> bool:
    """Whether an answer whose bound is that of no function shows that none is better.

    One that got no further does, too, where less than `CLEAR` of the floor is left.
    """
    status, bounds = solution.status, solution.certificate
    if status is Status.STALLED:
        return solution.is_convex and bounds.relative_gap <= CLEAR
    return status in (Status.SOLVED, Status.ALMOST_SOLVED)


def _scaling_advice(problem: Problem, names: Sequence[str] | None) -> str:
    """Name the features that are too large, or too far from zero, if there are any."""
    if names is not None and len(names) == 0:
        return ""
    mean, std = problem.rows.moments
    size = np.hypot(mean, std)
    typical = np.median(size[size > 0]) if np.any(size > 0) else 1.0
    if np.any(size > LARGE * typical):
        return (
            f"Feature(s) {_named(size > LARGE * typical, names)} are up to "
            f"{size.max() / typical:,.0f} times larger than the typical one: scaling "
            "them (StandardScaler) usually helps most. "
        )
    far = (np.abs(mean) > LARGE * std) & (std > 0)
    if np.any(far) and problem.intercept != "free":
        return (
            f"Feature(s) {_named(far, names)} lie far from zero beside their spread: "
            "centering them (StandardScaler) or intercept='free' usually helps most. "
        )
    return ""


def _columns_advice(problem: Problem) -> str:
    """What is linear in few products of the features, where there are many rows."""
    kernel = getattr(problem, "kernel", None)
    if kernel is None or kernel.name != "poly" or not kernel.is_psd:
        return ""
    m, n = problem.rows.shape
    products = math.comb(n + kernel.degree - (kernel.coef0 == 0.0), kernel.degree)
    if products > MOST_PRODUCTS or m < ROWS_A_PRODUCT * products:
        return ""
    return (
        f"This kernel is linear in {products:,} products of the features: LinearSVC or "
        "LinearSVR on those columns (PolynomialFeatures) takes few steps. "
    )


def _named(chosen: Mask, names: Sequence[str] | None) -> str:
    """The first three of the chosen features."""
    found = np.flatnonzero(chosen)
    called = [str(j) if names is None else names[j] for j in found[:3]]
    return ", ".join(called) + (", ..." if found.size > 3 else "")
