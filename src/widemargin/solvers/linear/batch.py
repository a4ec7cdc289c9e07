"""Small linear problems over the same rows, all at once, in C++.

Of dense rows with few columns by Newton's method: those of `active_set` and
`augmented_lagrangian` without their reductions, samples and single steps to look at. Of
sparse rows by coordinate descent, as in `coordinate_descent`; or with the squared loss
by Newton's method, whose steps conjugate gradients find [keerthi2005]_. Where a sweep
takes some microseconds, what Python does about it takes much longer. Threads take the
problems one after the other; what comes out does not depend on them.
`ManyLinearProblems.certificates` checks it.
"""

import functools
from collections.abc import Callable
from contextlib import nullcontext
from typing import NamedTuple

import numpy as np
from scipy import sparse

from widemargin import _core
from widemargin.arrays import Index64, Vector
from widemargin.numerics import linalg
from widemargin.problems.many import INTERCEPTS
from widemargin.problems.many_linear import ManyLinearProblems
from widemargin.solution import Certificate, Solution, Status, Trace
from widemargin.solvers.driver.advice import Ending, message
from widemargin.solvers.driver.contract import first_and_last
from widemargin.solvers.driver.limits import Limits
from widemargin.system.threads import ONE_BLAS_THREAD

NAME = "batch"
# Newton steps of a problem after which it is given up. Everyday sets take 2 to 50.
MOST_STEPS = 300
# How far a problem got, by the method that it was given to.
NEWTON_STEPS, UPDATES = "newton_steps", "updates"
# Entries of all matrices together that are worth a second thread. Fits of digits, ten
# classes, take 0.72 to 0.84 of the time with it from 64,000 on, with 38,000 0.98 to
# 1.14 times.
SHARED_ENTRIES = 40_000
# Entries up to which OpenBLAS takes one thread for a product anyway: 9,216 of a matrix
# and a vector (its interface/gemv.c), more of two matrices. To say so takes 5 % of a
# fit of 0.6 ms. Above, others would wait for a busy core longer than a product takes.
ALONE = 9_000
# Rows up to which a problem is solved to the digits of float64, as by kernel values,
# where some further Newton steps reach them.
FEW_ROWS, DIGITS = 128, 1e-12


class LinearEnds(NamedTuple):
    """Where problems ended.

    Attributes
    ----------
    alpha : ndarray (t, m) or (t, 2 m), dual variables
    W : ndarray (t, n), weights
    b : ndarray (t,), intercepts
    proofs : ndarray (t, 4), the numbers of a `Certificate` of each
    steps : int ndarray (t,)
    status : Status, of problems that have no small gap
    """

    alpha: Vector
    W: Vector
    b: Vector
    proofs: Vector
    steps: Index64
    status: Status


def solve_many_linear(  # noqa: PLR0913  (options, by keyword)
    problems: ManyLinearProblems,
    limits: Limits,
    threads: int,
    *,
    to_digits: bool = False,
    visits: float = 0.0,
    few: int = 0,
    seed: int = 0,
    starts: tuple[Vector, Vector] | None = None,
) -> list[Solution]:
    """Solve problems to a relative gap.

    Parameters
    ----------
    problems : ManyLinearProblems
    limits : Limits, of which ``tol`` and the time end it
    threads : int
    to_digits : bool
        Whether few rows are solved to the last digits of float64, if these allow it,
        by Newton's method.
    visits : float
        Of sparse rows: coordinate descent takes them, up to so many visits of each. 0:
        Newton's method, of sparse rows for the squared loss.
    few : int
        Newton steps after which a problem is given up where hardly as many rows as
        columns have a loss, if any: products of rows take less time then.
    seed : int, of the order in which rows are visited
    starts : ndarrays (t, m) or (t, 2 m), and (t,), or None
        Dual variables and free intercepts where coordinate descent begins.

    Returns
    -------
    list of Solution
        One that is stalled is for another solver.
    """
    begin, (t, m) = limits.clock.seconds(), problems.y.shape
    digits = DIGITS if to_digits and m <= FEW_ROWS else limits.tol
    ends = solve_linear_places(
        problems,
        limits,
        threads,
        digits=digits,
        visits=visits,
        few=few,
        seed=seed,
        starts=starts,
    )
    bounds = [Certificate(*one) for one in ends.proofs.tolist()]
    seconds = (limits.clock.seconds() - begin) / t
    zeros, steps = problems.zero_objectives.tolist(), ends.steps
    unit, counts = (UPDATES, steps / m) if visits > 0.0 else (NEWTON_STEPS, steps)
    of_each = (ends.alpha, problems.places_C, ends.W, ends.b.tolist(), bounds)
    found = zip(*of_each, counts.tolist(), zeros, strict=True)
    status = ends.status
    return [_solution(problems, end, status, seconds, limits, unit) for end in found]


def solve_linear_places(  # noqa: PLR0913  (options, by keyword)
    problems: ManyLinearProblems,
    limits: Limits,
    threads: int,
    *,
    digits: float = 1.0,
    visits: float = 0.0,
    few: int = 0,
    seed: int = 0,
    starts: tuple[Vector, Vector] | None = None,
) -> LinearEnds:
    """`solve_many_linear` with arrays over all places as its answer.

    Parameters
    ----------
    problems, limits, threads : as of `solve_many_linear`
    digits : float
        A gap that is worth some further steps where it is below the one asked for.
    visits, few, seed, starts : as of `solve_many_linear`
    """
    (t, m), n = problems.y.shape, problems.X.shape[1]
    core, units = problems.in_units()
    places = m if problems.q is None else 2 * m
    alpha, steps = np.zeros((t, places)), np.zeros(t, np.int64)
    v = np.zeros((t, n + (problems.intercept != "none")))
    if starts is not None:
        alpha[:] = starts[0] / units.unit
        v[:, n:] = ((starts[1] - units.shift) / units.unit)[:, np.newaxis]
    run: Callable[..., bool]
    if visits > 0.0:
        most = int(visits * m)
        run = functools.partial(_core.descent_batch, q=core.q, seed=seed)
    else:
        most = MOST_STEPS
        run = functools.partial(_core.newton_batch, q=core.q, digits=digits, few=few)
    interrupted = _in_core(run, core, limits, most, threads, (alpha, v, steps))
    alpha *= units.unit
    v *= units.unit
    W = np.ascontiguousarray(v[:, :n])
    b = np.zeros(t) if problems.intercept == "none" else v[:, n] + units.shift
    with ONE_BLAS_THREAD if t * problems.X.size > ALONE else nullcontext():
        b = problems.centered(alpha, W, b)
        proofs = problems.bounds(alpha, W, b)
    status = Status.STALLED
    if interrupted or limits.is_late:
        status = Status.INTERRUPTED if interrupted else Status.TIME_LIMIT
    return LinearEnds(alpha, W, b, proofs, steps, status)


def _in_core(
    run: Callable[..., bool],
    problems: ManyLinearProblems,
    limits: Limits,
    most: int,
    threads: int,
    arrays: tuple[Vector, Vector, Index64],
) -> bool:
    """Let a function of the core write alpha, v and steps; whether Ctrl-C ended it."""
    X, deadline = problems.X, limits.deadline
    return run(
        linalg.in_core(X) if sparse.issparse(X) else X,
        problems.y,
        problems.C,
        not problems.loss.is_bounded,
        INTERCEPTS[problems.intercept],
        limits.tol,
        most,
        threads if len(problems.y) * X.size > SHARED_ENTRIES else 1,
        lambda: deadline is not None and deadline.left <= 0.0,
        *arrays,
    )


def _solution(
    problems: ManyLinearProblems,
    end: tuple[Vector, Vector, Vector, float, Certificate, float, float],
    status: Status,
    seconds: float,
    limits: Limits,
    unit: str,
) -> Solution:
    """What a problem ended with, as other solvers say it; how many ``unit``."""
    alpha, C, w, b, bounds, count, zero = end
    m, n = problems.X.shape
    size = "has few entries" if sparse.issparse(problems.X) else "is small"
    # No press of Ctrl-C is lost.
    if status is not Status.INTERRUPTED and bounds.relative_gap <= limits.tol:
        status = Status.SOLVED
    at_bound = None
    if problems.loss.is_bounded:
        at_bound = int(np.count_nonzero(alpha >= C))
    first, last = first_and_last(zero, bounds, len(alpha), seconds)
    last.details = {
        "support_vectors": float(np.count_nonzero(alpha)),
        unit: float(count),
    }
    said = status.advice
    if status is not Status.SOLVED:
        gap = bounds.relative_gap
        said = message(Ending(None, status, last, gap, 0, limits, (), bounds))
    return Solution(
        alpha=alpha,
        w=w,
        b=b,
        status=status,
        certificate=bounds,
        trace=Trace([first, last]),
        solver=NAME,
        reason=f"because the problem {size} ({m:,} rows x {n:,} features)",
        seconds=seconds,
        tol=limits.tol,
        message=said,
        extras=dict(last.details),
        at_bound=at_bound,
    )
