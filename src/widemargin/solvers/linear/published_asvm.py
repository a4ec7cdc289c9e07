"""Algorithm 3.1 of "Active Support Vector Machine Classification", as published.

In the dual, with nu_i = 2 C_i and Q = N^-1 + A A',

    minimize f(u) = 1/2 u'Q u - e'u   over u >= 0,

a set B of basic rows gives z = (I + A_B' N A_B)^-1 A_B' nu_B and the minimum of its
face u_B = nu_B (1 - A_B z), with A'u = z (by (1), Sherman-Morrison-Woodbury). Numbers
in brackets are the paper's steps; (4b), where the text breaks off, is reconstructed.
"""

from collections.abc import Generator, Iterator
from typing import Any

import numpy as np

from widemargin.arrays import Vector
from widemargin.data.blocks import Least
from widemargin.data.rows import Rows
from widemargin.data.state import RowState
from widemargin.numerics.cholesky import cholesky
from widemargin.problems.base import Problem
from widemargin.solution import Step
from widemargin.solvers.driver.contract import at

# The following are ours: the paper does not say.
# Lengths that (4b) tries along a projected gradient, in units of the best one without
# bounds. That is the argmin from the minimum of a face, where no row meets its bound.
LENGTHS = 2.0 ** np.arange(-6, 5)
# From there one gradient lowers f; more of them leave behind what rounding hides.
MOST_PROJECTIONS = 10
# A row outside of B is violated beyond this share of its 1: below is rounding.
VIOLATED = 1e-9


class PublishedASVM:
    """The iterates z of Algorithm 3.1.

    Row vectors: u; the clipped u+ as ``alpha``; ``free``, the minimum of the face of u
    before it is clipped; ``gradient``. Beside them g = A'u and f(u).

    Parameters
    ----------
    problem : Problem with the squared hinge, its intercept not free
    max_safeguards : int, steps (4a) and (4b) after which the algorithm is left
    """

    def __init__(self, problem: Problem, max_safeguards: int) -> None:
        self._A: Rows = problem.A
        # (0): all rows are basic.
        self._state = problem.state(u=1.0, alpha=0.0, free=0.0, gradient=0.0)
        self._g, self._value = np.zeros(problem.A.shape[1]), np.inf
        self._safeguards, self._most = 0, max_safeguards
        self.z: Vector = self._g

    def steps(self, numbers: Iterator[int]) -> Generator[Step, None, None]:
        """Steps, until u is optimal or its face minimum, or safeguards are too many.

        One sweep a step finds u+, P and D and the matrix of the next face; (4a) needs
        another sweep, (4b) three or more.
        """
        face = self._face()
        while True:
            self.z = _face_minimum(*face)
            losses, dropped, violated, basic, sums, face = self._A.sweep(
                _clipped_face, self._state, self.z
            )
            value = _objective(*sums)
            primal = 0.5 * float(self.z @ self.z) + losses
            residual = float(np.abs(self.z - sums[0]).max())
            details: dict[str, float] = {
                "rows": self._A.shape[0],
                "safeguards": self._safeguards,
            }
            here = at(self.z, self._state)
            yield Step(next(numbers), primal, -value, residual, basic, details, here)
            if dropped and value < self._value:  # (3)
                self._take(sums[0], value)
                continue
            if self._safeguards == self._most:
                return
            if not self._guard(dropped, violated, sums[0], value):
                return
            self._safeguards += 1
            face = self._face()

    def _guard(self, dropped: int, violated: int, g: Vector, value: float) -> bool:
        """(4a) or (4b); false where u is optimal, or none of them lowers f."""
        if dropped:  # (2a)
            return self._line_step()
        self._take(g, value)  # (2b): u+ is the minimum of its face
        return bool(violated) and self._project()

    def _face(self) -> tuple[Vector, Vector]:
        """A_B' N A_B and A_B' nu_B of B = {u > 0}."""
        G, h = self._A.sweep(_face, self._state)
        return G, h

    def _take(self, g: Vector, value: float) -> None:
        """U+ as u."""
        self._state.sweep(_copy)
        self._g, self._value = g, value

    def _line_step(self) -> bool:
        """(4a): toward the minimum of the face, as far as u stays feasible.

        f falls all the way. A row that reaches zero leaves B; without one u is the
        minimum of its face, and (4b) follows.
        """
        t = min(1.0, self._state.sweep(_longest).key)
        linear, squares = self._state.sweep(_move, t)
        self._g = self._g + t * (self.z - self._g)
        self._value = _objective(self._g, linear, squares)
        return t < 1.0 or self._project()

    def _project(self) -> bool:
        """(4b): u^k+1 from u^k until f(u^k) < f(u^i); whether it gets there."""
        goal = self._value
        for _ in range(MOST_PROJECTIONS):
            Ap, inner, square = self._A.sweep(_gradient, self._state, self._g)
            curvature = inner + float(Ap @ Ap)
            if not curvature > 0.0:  # u^k is optimal
                return False
            length, self._g, self._value = self._least(square / curvature)
            self._state.sweep(_descend, length)
            if self._value < goal:
                return True
        return False

    def _least(self, unbounded: float) -> tuple[float, Vector, float]:
        """The length in (0, 1] with the least f of those tried; A'u and f there."""
        lengths = np.minimum(unbounded * LENGTHS, 1.0)
        g, linear, squares = self._A.sweep(_tried, self._state, lengths)
        values = 0.5 * np.sum(g * g, axis=0) + squares - linear
        best = int(np.argmin(values))
        return float(lengths[best]), g[:, best], float(values[best])


def _face_minimum(G: Vector, h: Vector) -> Vector:
    """(I + G)^-1 h."""
    M = G.copy()
    M[np.diag_indices_from(M)] += 1.0
    solve, _ = cholesky(M)
    return np.asarray(solve(h))


def _objective(g: Vector, linear: float, squares: float) -> float:
    """F(u) by A'u, sum u and sum u^2 / (2 nu)."""
    return 0.5 * float(g @ g) + squares - linear


# -- functions of one block ------------------------------------------------------------


def _face(block: Any, part: RowState) -> tuple[Vector, Vector]:
    nu = 2.0 * part.C * (part.u > 0.0)
    return block.gram(nu), block.T @ nu


def _clipped_face(block: Any, part: RowState, z: Vector) -> Any:
    """U+ and what is known of it, and the face of its basic rows."""
    left = 1.0 - block @ z
    basic = part.u > 0.0
    part.free = np.where(basic, 2.0 * part.C * left, 0.0)
    part.alpha = alpha = np.maximum(part.free, 0.0)
    losses = float(part.C @ np.square(np.maximum(left, 0.0)))
    dropped = int(np.count_nonzero(basic & (part.free <= 0.0)))
    violated = int(np.count_nonzero(~basic & (left > VIOLATED)))
    sums = block.T @ alpha, *_sums(alpha, part.C)
    nu = 2.0 * part.C * (alpha > 0.0)
    face = block.gram(nu), block.T @ nu
    return losses, dropped, violated, int(np.count_nonzero(basic)), sums, face


def _sums(u: Vector, C: Vector) -> tuple[float, float]:
    """Sum u and sum u^2 / (2 nu)."""
    return float(u.sum()), float(u @ (u / (4.0 * C)))


def _copy(part: RowState) -> None:
    part.u = part.alpha


def _longest(part: RowState) -> Least:
    """Longest step from u toward ``free`` with u >= 0."""
    falls = (part.u > 0.0) & (part.free < part.u)
    u = part.u[falls]
    return Least(float((u / (u - part.free[falls])).min(initial=np.inf)))


def _move(part: RowState, t: float) -> tuple[float, float]:
    """U moved by t toward ``free``; rows that would end within rounding are at 0."""
    moved = part.u + t * (part.free - part.u)
    part.u = np.where(moved > 1e-15 * part.u, moved, 0.0)
    return _sums(part.u, part.C)


def _gradient(block: Any, part: RowState, g: Vector) -> tuple[Vector, float, float]:
    """The projected gradient p = Q u - e: A'p, sum p^2 / nu and sum p^2."""
    p = part.u / (2.0 * part.C) + block @ g - 1.0
    p[(part.u <= 0.0) & (p > 0.0)] = 0.0
    part.gradient = p
    return block.T @ p, float(p @ (p / (2.0 * part.C))), float(p @ p)


def _tried(block: Any, part: RowState, lengths: Vector) -> Any:
    """A'u, sum u and sum u^2 / (2 nu) after steps of all these lengths."""
    steps = part.gradient[:, np.newaxis] * lengths
    u = np.maximum(part.u[:, np.newaxis] - steps, 0.0)
    return block.T @ u, u.sum(axis=0), (1.0 / (4.0 * part.C)) @ (u * u)


def _descend(part: RowState, length: float) -> None:
    part.u = np.maximum(part.u - length * part.gradient, 0.0)
