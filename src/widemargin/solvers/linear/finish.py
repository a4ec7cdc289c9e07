"""Newton's method from the point of another one, to the last digits of v.

A relative gap of e allows v to be sqrt(e) of its length from the optimum, and a method
that converges slowly ends there. Newton's method on the rows that matter has all digits
after a few sweeps. For the hinge it is the method of multipliers of
`widemargin.solvers.linear.newton`, from the given dual variables: its penalty is raised
until the rows between their bounds are on the margin, by rounding.
"""

from collections.abc import Iterator

import numpy as np

from widemargin.arrays import Vector
from widemargin.data.state import RowState
from widemargin.problems.base import Problem
from widemargin.solvers.linear.newton import DENSE_ORDER, Iterate, Piece, slopes

# The penalty at first, and the largest one; it is raised after at most FEW Newton steps
# and divided by DROP after more than MANY. At the end there are some rounds with one
# that is LOWER times smaller each. (a9a, ijcnn1, usps, C = 0.01 and 1, to 1e-10: 76 to
# 154 sweeps and .18 to .90 s in all; raised after each round 150 to 550 and .57 to 5.2.
# Begun at 50 instead, .26 to .66 s.)
PENALTY, RAISE, MOST_PENALTY, DROP = 500.0, 10.0, 1e9, 2.0
FEW, MANY = 3, 6
LAST, LOWER = 2, 100.0
# Newton steps with the same multipliers, and rounds of them, at most. A point is
# minimal enough for new multipliers where its residual costs this share of the gap.
STEPS, ROUNDS, SETTLED = 12, 60, 0.05
# A v that moves by less than these shares of its length stays, in a round, in a step.
STILL, ROUNDING = 1e-12, 1e-14


def has_finish(problem: Problem) -> bool:
    """Whether the matrix of Newton's method is worth making."""
    return problem.order <= DENSE_ORDER


class Finish:
    """A run of Newton's method from a point.

    Parameters
    ----------
    problem : Problem, of few columns: see `has_finish`
    state : RowState with the ``alpha`` of the point
    v : ndarray (k,)

    Attributes
    ----------
    point : Iterate, where it is
    """

    def __init__(self, problem: Problem, state: RowState, v: Vector) -> None:
        self._bounded = problem.is_bounded
        self._s = PENALTY if self._bounded else problem.pointwise.curvature
        self._piece = Piece(
            problem.A,
            problem.state(),
            problem.R,
            bounded=self._bounded,
            single=False,
        )
        self._given = state
        if self._bounded:
            both = self._piece.state.join(state.prefixed("given_"))
            both.update(_take_multipliers)
        self.point: Iterate = self._piece.evaluate(v, self._s)
        self._piece.accept()

    def run(self) -> Iterator[None]:
        """Go on until v moves by rounding alone; yields before each sweep.

        Then with a smaller penalty, as that times a rounding of a score moves alpha.
        """
        if not self._bounded:
            yield from self._minimize(0.0)
            return
        for _ in range(ROUNDS):
            v, steps = self.point.v, 0
            for _ in self._minimize(SETTLED):
                steps += 1
                yield
            moved = float(np.linalg.norm(self.point.v - v))
            if moved <= STILL * np.linalg.norm(v) and not self._is_settled(SETTLED):
                break
            factor = RAISE if steps <= FEW else 1.0 if steps <= MANY else 1.0 / DROP
            yield from self._renew(min(factor * self._s, MOST_PENALTY))
        for _ in range(LAST):
            yield from self._renew(self._s / LOWER)
            yield from self._minimize(0.0)

    def _is_settled(self, share: float) -> bool:
        """Whether the point is minimal enough for new multipliers."""
        point = self.point
        off = max(self._piece.half_norm(point.residual), 0.5 * point.imbalance)
        return off < share * point.gap

    def _renew(self, s: float) -> Iterator[None]:
        """Take alpha as multipliers, with another penalty."""
        self._piece.renew_multipliers()
        self._s = s
        yield
        self.point = self._piece.revisit(self.point.v, s)

    def _minimize(self, share: float) -> Iterator[None]:
        """Newton steps to the minimum with these multipliers."""
        for _ in range(STEPS):
            if self._is_settled(share):
                return
            dv = self._piece.direction(self.point, self._s)
            if np.linalg.norm(dv) <= ROUNDING * np.linalg.norm(self.point.v):
                return  # a line search along rounding would lead astray
            yield
            self.point = self._piece.newton_step(self.point, self._s, dv)

    def put(self) -> None:
        """Write the dual variables into the state that was given."""
        both = self._given.join(self._piece.state.prefixed("own_"))
        both.update(_take_alpha, self._bounded)


# -- functions of one block ------------------------------------------------------------


def _take_multipliers(part: RowState) -> None:
    part.multiplier = part.given_alpha


def _take_alpha(part: RowState, bounded: bool) -> None:
    part.alpha = part.own_alpha if bounded else slopes(part.C, part.own_f)
