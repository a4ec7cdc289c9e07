"""Many binary problems with a kernel over the same samples, each in one loop.

Pair steps on the whole problem [fan2005]_ in C++, in float32: the first variable
violates most, the second one lowers the objective most together with it. A row of K is
made when its variable first moves, with a few others that will move soon, and kept for
all problems that share its samples. Threads take the problems one after the other, the
largest first. What comes out is checked by `ManyProblems.certificates`, in float64.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from widemargin.problems.many import ManyProblems
from widemargin.solution import Certificate

Vector = NDArray[np.float64]

NAME = "batch"
# Rows of a problem up to which it is faster than working sets: benchmarks/kernel/small.py.
MOST_ROWS = 8_000
# Steps of a problem, in units of its rows, after which it is given up. Not tuned.
MOST_STEPS = 1_000
# The least gap that kernel values in float32 are worth trying for. Not tuned.
LEAST_GAP = 1e-6
# Rows, times the multiplications of a value, that are worth a second thread.
SHARED_WORK = 60_000

INTERCEPTS = {"none": 0, "free": 1, "penalized": 2}


@dataclass(frozen=True)
class Batch:
    """What came out for many problems.

    Attributes
    ----------
    c : ndarray, y alpha of each place
    b : ndarray (t,)
    steps : int ndarray (t,)
    certificates : list of Certificate
    is_convex : bool ndarray (t,), whether no step went along a negative curvature
    interrupted : bool, by Ctrl-C
    """

    c: Vector
    scores: Vector
    b: Vector
    steps: NDArray[np.int64]
    certificates: list[Certificate]
    is_convex: NDArray[np.bool_]
    interrupted: bool


def solve_many(
    problems: ManyProblems,
    tol: float,
    *,
    memory: int,
    threads: int,
    stops: tuple[Callable[[], bool], Callable[[], bool]],
) -> Batch:
    """Solve problems to a relative gap, as far as float32 kernel values allow it.

    Parameters
    ----------
    problems : ManyProblems
    tol : float
    memory : int, bytes of kernel values
    threads : int
    stops : what is asked whether to stop, of the steps and of the certificates
    """
    c = np.zeros(len(problems.y))
    work = len(c) * problems.samples.cost
    threads = threads if work > SHARED_WORK else 1
    most = MOST_STEPS * int(problems.sizes.max())
    form = not problems.loss.is_bounded, INTERCEPTS[problems.intercept]
    scores, numbers, counts, _, interrupted = problems.samples.solve(
        (problems.groups, problems.group_ends, problems.ends),
        (problems.y, problems.C),
        c,
        form,
        (tol, most, memory, threads),
        stops[0],
    )
    b = np.ascontiguousarray(numbers[:, 0])
    bounds = problems.certificates(c, scores, b, threads, stops[1])
    steps, convex = counts[:, 0], counts[:, 1] == 0
    return Batch(c, scores, b, steps, bounds, convex, interrupted)
