"""What solves the small problem of a working set: pair steps, and what helps them."""

import numpy as np

from widemargin.solvers.kernel.faces import solve_on_faces
from widemargin.solvers.kernel.inner_points import inner_points
from widemargin.solvers.kernel.reweighted import reweighted_steps
from widemargin.solvers.kernel.small_problem import Small, Solved, solve_by_pairs

# So often another method may fail where pair steps have. (1 and 10 took no longer,
# benchmarks/core/untuned.py.)
FAILURES = 3


class PairsFirst:
    """Pair steps; where they are too many for these rows, another method goes on.

    IRWLS, or in the nu form, which it does not know, an interior point and faces from
    there. Until that has failed too, a few times: then rounding is in the way of all.
    Where there are kinks at zero it stays on the side of zero where pair steps ended.

    Attributes
    ----------
    visits : float, of a variable by a pair step, so far
    most_visits : float, at which it ends, as another method goes on with all rows
    asks : bool, whether it ends where pair steps are too many, as one may
    size : int, variables of the last small problem that had too many
    """

    def __init__(self) -> None:
        self._failures, self.asks, self.size = 0, False, 0
        self.visits, self.most_visits = 0.0, np.inf

    def __call__(self, small: Small, stop: float) -> Solved:
        """The new c of a small problem."""
        q = len(small.c)
        solved = solve_by_pairs(small, stop, self.most_visits - self.visits)
        self.visits += float(q * solved.steps)
        if self.visits + q > self.most_visits:
            self.visits = self.most_visits
        if self.most_visits < np.inf:
            return solved._replace(waits=True)
        if solved.reached or solved.negative or self._failures >= FAILURES:
            return solved
        if self.asks:
            self.most_visits, self.size = self.visits, q
            return solved._replace(waits=True)
        if small.is_rounded:
            return solved  # the next set is not
        left = small.at(solved.c).on_a_side
        if small.sums < 2:
            again = reweighted_steps(_without_ridge(left), stop)
        elif small.K.dtype == np.float32:
            return solved  # whose rounding would decide: this asks for float64
        else:
            again = _from_inside(left, stop)
        self._failures += not again.reached
        return again._replace(steps=solved.steps + again.steps)


def _from_inside(small: Small, stop: float) -> Solved:
    """Faces from an inner point that violates less, if its objective is lower."""
    begin = small
    for c in inner_points(small, stop):
        other = small.at(c)
        falls = float((c - small.c) @ (small.F + other.F)) < 0.0
        if falls and other.violations.size < begin.violations.size:
            begin = other
    return solve_on_faces(begin, stop)


def _without_ridge(small: Small) -> Small:
    """The problem without a ridge; where there are bounds, K has it on its diagonal."""
    if not (small.ridge.any() and np.isfinite(small.upper - small.lower).all()):
        return small
    K = small.K.copy()
    np.fill_diagonal(K, K.diagonal() + small.ridge)
    return small._replace(K=K, ridge=np.zeros(len(small.c)))
