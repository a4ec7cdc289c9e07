"""The smallest ball around points, with its proof."""

from dataclasses import dataclass

import numpy as np

from widemargin.arrays import Vector
from widemargin.problems.ball import BallProblem
from widemargin.solution import Certificate, Solution, Status, Trace
from widemargin.solvers.driver.contract import ChosenSolver
from widemargin.solvers.driver.driver import run
from widemargin.solvers.driver.limits import Limits
from widemargin.solvers.kernel.ball_descent import BallDescent

# Share of the largest k(x, x) by which a squared distance below 0 is no rounding.
NEGATIVE = 1e-8


@dataclass(frozen=True)
class Ball:
    """The answer of `enclose`, with its proof.

    Attributes
    ----------
    a : ndarray (m,), nonnegative, of sum 1: the center is sum a_i phi(x_i)
    rho : float, the squared radius
    center_square : float, |c|^2
    distances : ndarray (m,), squared distances of the points from the center
    certificate : Certificate, recomputed in float64 from a
    status : Status
    message : str, how the run ended and what to do about it
    trace : Trace, one step for each look at the clock
    is_empty : bool, whether no point lies inside
    is_convex : bool, whether all squared distances are at least 0
    """

    a: Vector
    rho: float
    center_square: float
    distances: Vector
    certificate: Certificate
    status: Status
    message: str
    trace: Trace
    is_empty: bool
    is_convex: bool


def enclose(
    problem: BallProblem,
    limits: Limits,
    *,
    step: str = "away",
    seed: int = 0,
) -> Ball:
    """The smallest ball, to a gap of ``limits.tol``.

    Parameters
    ----------
    problem : BallProblem
    limits : Limits
        ``max_iter`` counts steps.
    step, seed : as of `BallDescent`

    Returns
    -------
    Ball
        After Ctrl-C too, with the status that says so.
    """
    solver = BallDescent(step, seed, limits.max_iter)
    return _ball(problem, run(problem, ChosenSolver(solver, "as asked"), limits))


def _ball(problem: BallProblem, solution: Solution) -> Ball:
    """The ball of a solution."""
    a, d = solution.alpha, solution.w
    rho, largest = problem.certify(a, d).rho, max(float(d.max()), 0.0)
    if largest <= problem.resolution:  # the points are one
        rho = largest
    return Ball(
        a=a,
        rho=rho,
        center_square=solution.b,
        distances=np.maximum(d, 0.0),
        certificate=solution.certificate,
        status=solution.status,
        message=solution.message,
        trace=solution.trace,
        is_empty=rho == 0.0 < largest,
        is_convex=bool(d.min() >= -NEGATIVE * float(problem.diagonal.max())),
    )


def unbounded(m: int, square: float, limits: Limits) -> Ball:
    """The ball of infinite radius around the first of m points, of that square.

    For a time limit in which not even the k(x, x) of all points are known.
    """
    a = np.zeros(m)
    a[0] = 1.0
    return Ball(
        a=a,
        rho=np.inf,
        center_square=square,
        distances=np.zeros(m),
        certificate=Certificate(np.inf, 0.0),
        status=Status.TIME_LIMIT,
        message=(
            f"Stopped by time_limit={limits.time_limit} s before anything was known of "
            "the points: the radius is infinite. Raise time_limit."
        ),
        trace=Trace(),
        is_empty=False,
        is_convex=True,
    )
