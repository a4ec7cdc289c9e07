"""Dual coordinate descent with shrinking, for linear problems (LIBLINEAR's method).

Hsieh, Chang, Lin, Keerthi, Sundararajan, "A dual coordinate descent method for
large-scale linear SVM", ICML 2008. With z_i = y_i (x_i, 1), or y_i x_i without an
intercept, the dual is

    minimize   1/2 |v|^2 + 1/2 sum D_i alpha_i^2 - sum alpha_i,   v = sum alpha_i z_i,

over 0 <= alpha_i <= U_i: U = C and D = 0 for the hinge, U infinite and D_i = 1/(2 C_i)
for the squared hinge. A visit of row i minimizes over alpha_i,

    G = z_i'v - 1 + D_i alpha_i,   alpha_i <- clip(alpha_i - G / q_i, 0, U_i),
    q_i = |z_i|^2 + D_i,

and moves v along z_i: twice the entries of one row. An epoch visits the rows A in
random order. Rows at a bound that the last epoch found far from leaving it drop out of
A. The gradients that an epoch meets add up to its gap P - D: where that has fallen to a
hundredth of what the round began with, or is as small as was asked for, all return.

A free intercept adds y'alpha = 0, which no visit of a single row can keep. So b is held
near its last value b', with a weight r (the method of multipliers on y'alpha = 0):

    minimize   1/2 |w|^2 + 1/(2 r) (b - b')^2 + sum C L,   b = b' + r y'alpha,

the same epochs with an intercept that moves by r y_i for a step of alpha_i, and with
q_i = |x_i|^2 + r + D_i. At a certificate alpha is made feasible (`Problem.repair`), and
b' = b: where many rows are on the margin a few times are enough. In between, where all
is over soon, b' = b alone.

The two rows of a sample of a regression share x_i, and one of them at most has a loss:
one variable beta_i = alpha_i - alpha_(m + i) stands for both, as in LIBLINEAR (Ho, Lin,
"Large-scale linear support vector regression", JMLR 2012), with the target t_i and half
the width e_i of the tube in the place of margins,

    minimize   1/2 |v|^2 + 1/2 sum D_i beta_i^2 - sum (t_i beta_i - e_i |beta_i|).

A gap of e allows v to be sqrt(e) of its length from the optimum, and an epoch brings
few digits near the end. So a run for a gap below 1e-8 ends otherwise, up to 1,500
columns: at a gap of 1e-3 Newton's method takes over (finish.py), and ends where v moves
by rounding alone.
"""

import itertools
from collections.abc import Generator
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from widemargin.parameters import Checker
from widemargin.problems.base import Problem
from widemargin.solution import Step
from widemargin.solvers.driver.contract import Solver, Start, at, in_one_blas_thread
from widemargin.solvers.linear.descent import (
    LARGEST_STEP,
    MARK_FACTOR,
    MARK_STEP,
    Descent,
    DescentHere,
    samples,
)
from widemargin.solvers.linear.descent_by_sweeps import DescentBySweeps
from widemargin.solvers.linear.finish import Finish, has_finish

# Where a gap below the first number is asked for, Newton's method ends the run, from a
# gap of the second one; where that is no progress, once more from this share of it, and
# so on. (a9a, ijcnn1, usps, hinge, C = 0.01 and 1, to 1e-10: .18 to .90 s; from 1e-6 on
# .15 to 1.33; without .14 to 1.66, and v is 1e-6 off. By sweeps, 1,800 rows, C = 1: 300
# to 900 sweeps up to 1e-3, 2,200 to 6,600 up to 1e-6.)
FINISH_TOL, FINISH_GAP, NEXT_FINISH = 1e-8, 1e-3, 0.1


@dataclass(frozen=True, kw_only=True)
class CoordinateDescent(Solver):  # numpydoc ignore=PR02
    """Dual coordinate descent with shrinking, for linear problems.

    Solves both losses with all three intercepts, with weights per row. Made for rows in
    memory, for small C and for many columns: the number of epochs grows with ::

        kappa = mean(C_i |z_i|^2)

    up to about 1 few epochs reach a gap of 1e-6; above 10 it may take thousands, where
    there are many more rows than columns.

    Parameters
    ----------
    shrinking : bool, default=True
        Leave out rows that stay at a bound. Without, epochs that move nothing cost as
        much as the first: 2 to 20 times slower.
    random_state : int or None, default=None
        Seed of the order of the rows; None: 0.

    Raises
    ------
    ValueError
        A parameter out of range.

    Notes
    -----
    A ``tol`` below 1e-8 has a finish, up to 1,500 columns: from a gap of 1e-3 on
    Newton's method goes on over all rows, a sweep a step (20 to 150 for the hinge, 1 to
    5 for the squared hinge; ``waits`` of a step is true meanwhile), until v has its
    last digits. It needs 40 bytes a row more. All of it is one iteration: ``max_iter``
    does not end it, ``time_limit`` does.

    An iteration, as ``max_iter`` counts them, is a certificate, which takes one sweep.
    One is made when the gradients promise that the gap is small enough; else, after the
    first 0.1 s or so, from time to time, with more and more epochs between. With the
    squared loss that promise is often sure, and the answer's certificate the only one.

    An epoch costs 4 flops for each stored entry of its rows, in one thread; 40 bytes a
    row of memory beside the data. Rows are used where they lie: CSR with float32 or
    float64 entries, and dense rows of float32, float64, int16 or uint8 in C order;
    others are copied once, as float64 where need be, and so are rows whose columns lie
    far from zero beside their spread where the intercept is free.

    Rows in files and on a cluster, and features of a map, are swept: all blocks visit
    their rows from the same v, and go a part of the way together. An epoch is a sweep
    then, in all threads or workers, and there are 3 to 20 times as many of them; 60
    bytes a row of memory. Newton's methods take far fewer sweeps.

    ``active`` of a step counts rows that are not left out; its ``details``: ``epoch``
    (passes over these so far), ``updates``, the visits so far in units of m, and
    ``left``, as many more as the last epoch promises (0 where it promises nothing).

    References
    ----------
    [hsieh2008]_, Algorithm 1 and section 3.2; the rounds, the certificates, the stop
    by the gap and the free intercept, by the method of multipliers [hestenes1969]_,
    are ours. By sweeps: [lee2015]_, with exact steps along the common way.

    Examples
    --------
    >>> from widemargin import LinearSVC
    >>> from widemargin.solvers import CoordinateDescent
    >>> LinearSVC(intercept="penalized", solver=CoordinateDescent(random_state=1))
    LinearSVC(intercept='penalized', solver=CoordinateDescent(...random_state=1))
    """

    name: ClassVar[str] = "coordinate_descent"
    default_max_iter: ClassVar[int] = 500
    patience: ClassVar[int] = 20

    shrinking: bool = True
    random_state: int | None = None

    def __post_init__(self) -> None:
        check = Checker("CoordinateDescent")
        check.choice("shrinking", self.shrinking, (True, False))
        check.count("random_state", self.random_state, least=0, optional=True)

    def supports(self, problem: Problem) -> str | None:
        """All linear problems."""
        return None

    @in_one_blas_thread
    def iterate(
        self, problem: Problem, start: Start | None, tol: float
    ) -> Generator[Step, None, None]:
        """A step for each certificate, and now and then between: `Solver.iterate`."""
        state = problem.dual_state(0.0 if start is None else start.alpha)
        problem.repair(state)
        rows = samples(problem.rows)
        here = rows.is_in_memory or rows.is_near
        kind: Any = DescentHere if here else DescentBySweeps
        descent: Descent = kind(self, problem, state)
        if start is not None:
            descent.begin_at(start.v)
        mark = descent.begin_mark
        level = FINISH_GAP if tol < FINISH_TOL and has_finish(problem) else 0.0
        zero = at(np.zeros(problem.order))
        shown: Any = problem.zero_objective, 0.0, 0.0, *descent.look(), zero
        is_trusted = True
        for iteration in itertools.count():
            aim = max(tol, level)
            v, primal, dual, residual = descent.certify(state, aim)
            if not np.isfinite(primal - dual):
                raise FloatingPointError("the objectives are not finite")
            if primal - dual <= level * primal:
                level *= NEXT_FINISH
                finish = Finish(problem, state, v)
                for _ in finish.run():
                    # The point before: this one may be good enough, but is not final.
                    step = Step(iteration, *shown)
                    step.waits = True
                    yield step
                end = finish.point
                if end.gap < primal - dual:
                    finish.put()
                    descent.take(state, end.v)
                    v, primal, dual = end.v, end.primal, end.dual
                    residual = float(np.abs(end.residual).max())
            point, due = at(v, state), False
            while not due:
                shown = primal, dual, residual, *descent.look(), point
                yield Step(iteration, *shown)
                due = descent.advance(mark) and descent.is_due(mark, aim)
                while mark <= descent.spent:
                    mark = min(MARK_FACTOR * mark + MARK_STEP, mark + LARGEST_STEP)
            descent.put(state)
            if is_trusted and (there := descent.expected(tol)) is not None:
                # The driver looks itself: one look at the rows less, if it is true.
                is_trusted, (v, *bounds) = False, there
                shown = *bounds, residual, *descent.look(), at(v, state)
                yield Step(iteration + 1, *shown)
