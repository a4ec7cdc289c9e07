"""Core vector machines: the coreset grows by its farthest point.

Tsang, Kwok, Cheung, "Core vector machines: fast SVM training on very large data sets",
JMLR 2005, after Badoiu and Clarkson. The squared hinge without a free intercept is a
smallest enclosing ball (`frank_wolfe`). One iteration

    adds the point that is farthest from the center, of all or of a sample,
    solves the problem of the coreset, which keeps all its points.

In the gradient F = Q beta - 1 of the dual the farthest point has the least F, where the
kernel has a constant diagonal; elsewhere the least F is the largest violation.
"""

from collections.abc import Generator
from dataclasses import dataclass
from typing import ClassVar

from widemargin.problems.base import Problem
from widemargin.problems.kernel import KernelProblem
from widemargin.solution import Step
from widemargin.solvers.driver.contract import Start
from widemargin.solvers.kernel.coreset import BallSolver, Coreset

# The problem of the coreset is solved to this share of the violation of the last point,
# as the problems of working sets are. (0.03 and 0.3: within a fifth of the time,
# benchmarks/core/untuned.py.)
INNER_SHARE = 0.1


@dataclass(frozen=True, kw_only=True)
class CoreVector(BallSolver):  # numpydoc ignore=PR02
    """Core vector machine (CVM), for the squared hinge with a kernel.

    Parameters
    ----------
    sample : int >= 1 or None, default=None
        The next point is the farthest of this number of random rows (the paper's 59:
        with probability 0.95 it is among the farthest twentieth); None: of all rows.
    balanced : bool, default=False
        Samples are drawn from both classes by turns, of rows with alpha = 0, as in
        LibCVM; the outermost row with alpha > 0 is looked at besides. For ``sample``
        only.
    tries : int >= 1, default=1
        Samples without a row outside after which ``epsilon`` ends the run; LibCVM: 7.
        For ``sample`` and ``epsilon`` only.
    first_points : int >= 1 or "pair", default=20
        Points of the first coreset, of both classes, drawn at random; "pair": a random
        point and the point farthest from it.
    epsilon : float > 0 or None, default=None
        End also where the farthest point that was looked at is at most 1 + epsilon
        radii from the center, the paper's rule (1e-6 there). It says nothing about the
        gap of the SVM. Where the lengths of points differ it is the rule (37) of
        [frandi2013]_: `FrankWolfe`.
    random_state : int or None, default=None
        Seed; None: 0.

    Raises
    ------
    ValueError
        A parameter out of range.

    Notes
    -----
    There are at least as many iterations as support vectors, and each brings the scores
    of all rows up to date (m kernel values for every point of the coreset unless rows
    of K are kept), or of the sample only. K of the coreset is kept: 4 q^2 bytes.

    ``details`` of a step, and ``extras`` of the solution: ``coreset`` (its points),
    ``support_vectors``, ``rho``, ``radius``, ``epsilon`` (the ball around all rows:
    `widemargin.solvers.kernel.coreset`), ``is_ball`` (1 where the paper's criterion is
    met), ``steps`` (pair steps), ``drops`` (those that removed a point), ``negative``
    (steps along negative curvature), ``evaluations`` and ``hits`` (kernel values
    computed, and kept ones used again).

    References
    ----------
    [tsang2005]_; [frandi2013]_, Algorithm 1. The samples of LibCVM: its source of 2009
    (``cvm.cpp``), by the authors of [tsang2005]_.
    """

    name: ClassVar[str] = "core_vector"
    default_max_iter: ClassVar[int] = 1_000_000
    patience: ClassVar[int] = 1_000

    def patience_for(self, problem: Problem) -> int:
        """As many points as there are: the gap may stay 1 until most of them are in."""
        return max(self.patience, problem.rows.shape[0])

    def iterate(
        self, problem: Problem, start: Start | None, tol: float
    ) -> Generator[Step, None, None]:
        """A step for each point that is added: `Solver.iterate`."""
        if not isinstance(problem, KernelProblem):
            raise TypeError("CoreVector needs a problem with a kernel.")
        yield from self.grow(problem, start, _begin, _advance)


def _begin(coreset: Coreset) -> None:
    coreset.solve(INNER_SHARE)


def _advance(coreset: Coreset, i: int, least: float) -> bool:
    """Take a point in, and solve the problem of the coreset; whether that helps."""
    size, steps = len(coreset.rows), coreset.steps
    coreset.place(i)
    violation = 1.0 - least
    if violation <= 0.0:  # no row is left out: use the coreset's own violation
        violation = float(coreset.gradient[coreset.c != 0.0].max()) - 1.0
    if violation > 0.0:
        coreset.solve(INNER_SHARE * violation)
    return len(coreset.rows) > size or coreset.steps > steps
