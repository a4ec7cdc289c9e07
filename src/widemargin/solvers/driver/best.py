"""What the driver keeps of a run."""

import numpy as np
from numpy.typing import NDArray

from widemargin.data.state import RowState
from widemargin.problems.base import Problem
from widemargin.solution import Certificate

Vector = NDArray[np.float64]


class Best:
    """The best v and the best alpha so far, by the steps' estimates; zero at first.

    Two copies of alpha in turn, so that Ctrl-C in the middle of one leaves the other.
    Where alpha is `Problem.slopes` of some v, that v is kept in its place. Where v and
    alpha say the same, both are those of the least gap.

    Attributes
    ----------
    v : ndarray (k,)
    primal, dual : float, P(v) and D(alpha)
    source : ndarray (k,), the v that alpha belongs to, or None
    """

    def __init__(self, problem: Problem) -> None:
        self._problem = problem
        self._slots: RowState | None = None
        self._slot = 0
        self.source: Vector | None = None
        self.v: Vector = np.zeros(problem.order)
        self.primal, self.dual = problem.zero_objective, 0.0
        self._least_gap = np.inf

    @property
    def relative_gap(self) -> float:
        """Gap of the best values over the primal one."""
        return (self.primal - self.dual) / abs(self.primal)

    @property
    def merit(self) -> float:
        """What falls with every progress, of the best point or of the steps."""
        return max(0.0, self.relative_gap) * max(0.0, self._least_gap)

    def offer(
        self, v: Vector, state: RowState | None, primal: float, dual: float
    ) -> None:
        """Keep what is better in a point."""
        self._least_gap = min(self._least_gap, primal - dual)
        better = primal < self.primal, dual > self.dual
        if self._problem.couples:
            gap = primal - dual
            # Kept bounds are of float32 scores that drifted, where these say that they
            # are wrong by more than their own gap.
            drifted = 0.0 <= gap < self.dual - primal
            if drifted:
                self._least_gap = gap
            better = (drifted or gap < self.primal - self.dual,) * 2
        if better[0]:
            self.v, self.primal = v.copy(), primal
        if better[1]:
            if state is not None:
                self._copy(state)
            self.source = v.copy() if state is None else None
            self.dual = dual

    def _copy(self, state: RowState) -> None:
        """Copy the alpha of a row state."""
        if self._slots is None:
            self._slots = self._problem.state(best0=0.0, best1=0.0)
        self._slots.join(state).sweep(_copy, "alpha", f"best{1 - self._slot}")
        self._slot = 1 - self._slot

    def forget_gap(self) -> None:
        """Let the merit of the next solver be its own."""
        self._least_gap = np.inf

    def correct(self, certificate: Certificate) -> None:
        """Put recomputed values in the place of estimates."""
        self.primal, self.dual = certificate.primal, certificate.dual

    def alpha(self) -> Vector:
        """The best dual variables, over all rows of the problem."""
        if self.source is not None:
            return self._problem.gather(self._problem.slopes(self.source)[0])
        copied = self._problem.state(alpha=0.0)
        if self._slots is not None:
            self._slots.join(copied).sweep(_copy, f"best{self._slot}", "alpha")
        return self._problem.gather(copied)


def _copy(part: RowState, source: str, target: str) -> None:
    setattr(part, target, getattr(part, source))
