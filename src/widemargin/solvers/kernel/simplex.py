"""Steps of the Frank-Wolfe family on the unit simplex, by rows of a kernel matrix.

    minimize   a'Q a - h'a   over a >= 0, sum a = 1,   Q = Y (K + p) Y + diag(ridge).

With g = Q a and G = g - h / 2, half of the gradient, every step is a row or two of K:

    toward     a += t (e_i - a),     i the least G;
    away       a += t (a - e_j),     j the largest G of those with a_j > 0;
    pairwise   a += t (e_i - e_j);
    swap       a toward or a pairwise step, whichever gains more.

[frandi2013]_, with the lengths of steps for a diagonal that varies.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from widemargin import _core
from widemargin.arrays import Vector
from widemargin.kernels.matrix import Columns
from widemargin.solvers.kernel.draws import Draws

STEPS = ("toward", "away", "pairwise", "swap")
SELECTIONS = ("first", "second")
# Entries of vectors that steps read between two looks at the clock, about 0.05 s.
SLICE = 1 << 25
# Rows of K that are computed together where one is missing: the rows with the least G.
# (4 and 16: within 2 % of the time, benchmarks/core/untuned.py.)
TOGETHER = 8
# The same where steps are by samples, as long as there is room: the best one of 59 rows
# is one of many.
SAMPLED_TOGETHER = 32


@dataclass(frozen=True)
class SimplexProblem:
    """What is minimized.

    Attributes
    ----------
    columns : Columns of K, (m, m)
    signs : ndarray (m,), the diagonal of Y
    ridge : ndarray (m,), nonnegative; it may be changed on the way
    shift : float, p
    linear : ndarray (m,) or None
        h. Given, steps end where the smallest ball is near: see `SimplexDescent`.
    """

    columns: Columns
    signs: Vector
    ridge: Vector
    shift: float = 0.0
    linear: Vector | None = None


class SimplexDescent:
    """A point a of the simplex with its g = Q a, and steps from there.

    Parameters
    ----------
    problem : SimplexProblem
    a : ndarray (m,), nonnegative, not zero: the start, up to a factor
    step : one of STEPS
    selection : one of SELECTIONS
        The other point of a pairwise step: of the largest slope, or the largest gain.

    Attributes
    ----------
    steps, drops : int, steps so far, and steps that made an entry of a zero
    exact : ndarray (m,) or None
        K Y a, where g was computed in float64 at this very point: no step came after.

    Raises
    ------
    ValueError
        There is no memory for two rows of K, which a step needs.
    """

    def __init__(
        self, problem: SimplexProblem, a: Vector, step: str, selection: str
    ) -> None:
        self._problem, self._columns = problem, problem.columns
        self._columns.focus(None)  # another run may have left rows out
        self._kind = STEPS.index(step)
        self._second = selection == "second"
        self._reads = 2 if step == "pairwise" else 1  # rows of K a step, at least
        linear = problem.linear
        self._half = np.zeros(len(a)) if linear is None else 0.5 * linear
        self._ridge = problem.ridge
        self._lengths = self._columns.diag() + problem.shift
        self.steps = self.drops = 0
        if len(self._columns.kept_rows) < min(2, len(a)):
            raise ValueError(
                "The 'memory_limit' parameter must leave room for two rows of kernel "
                f"values, {16 * len(a):,} bytes beside the packed samples."
            )
        self._alpha = a / a.sum()
        self.refresh()

    @property
    def a(self) -> Vector:
        """The point: (m,)."""
        return np.asarray(self._numbers[0] * self._alpha)

    @property
    def g(self) -> Vector:
        """Q a: (m,)."""
        return np.asarray(self._numbers[0] * self._g)

    @property
    def square(self) -> float:
        """The number a'Q a."""
        return float(self._numbers[1])

    def refresh(self) -> None:
        """Compute g in float64, and make a sum to 1."""
        self._alpha *= 1.0 / self._alpha.sum()
        c = self._problem.signs * self._alpha
        J = np.flatnonzero(c)
        self._begin(self._columns.exact(np.arange(len(c)), J, c[J]))

    def _begin(self, f: Vector) -> None:
        """Go on from here, where K Y a is f: (m,)."""
        problem, alpha = self._problem, self._alpha
        shift = problem.shift * (problem.signs * alpha).sum()
        self._diagonal = self._lengths + self._ridge
        self._g = problem.signs * (f + shift) + self._ridge * alpha
        square, linear = (alpha * self._g).sum(), 2.0 * (alpha * self._half).sum()
        self._numbers = np.array([1.0, square, linear, 0.0])
        self.exact: Vector | None = f

    def lift(self, t: float) -> None:
        """Let h be ``problem.linear`` + t: the same problem, another stop."""
        if self._problem.linear is not None:
            linear = self._problem.linear + t
            self._half = 0.5 * linear
            self._numbers[2] = float((self.a * linear).sum())

    def use_ridge(self, ridge: Vector) -> None:
        """Go on with another ridge (m,), from the same point.

        Nothing is taken from what the old ridge was added to: it may have been so large
        that no digit was left.
        """
        self._ridge = ridge
        if self.exact is None:
            self.refresh()
        else:
            self._begin(self.exact)

    def advance(self, stop: float, most: int | None = None) -> bool:
        """Some steps, ``most`` at most; whether there is a way to go on.

        With R = a'Q a they end where R^2 <= (1 + stop) m^2, m the least g. Where h is
        given, with F = h'a - R, they end where R - 2 M <= (1 + stop)^2 F, M the least
        G: the optimum F* lies between F and R - 2 M.
        """
        most = min(most or SLICE, max(1, SLICE // len(self._alpha)))
        made = 0
        while made < most:
            steps, drops, missing = self._steps(stop, most - made)
            made += steps
            self.steps, self.drops = self.steps + steps, self.drops + drops
            self._columns.count_read(self._reads * steps - (missing >= 0))
            if missing >= 0:
                self._keep(missing)
            elif made < most:
                break
        if made:
            self.exact = None
        if made < most:  # near enough by this g, or rounding is in the way
            if self.exact is not None:
                return False
            self.refresh()
        return True

    def sample(self, samples: Draws, stop: float | None, most: int) -> bool:
        """Steps toward the best of ``most`` samples; whether the ball ended them.

        That is so where h and ``stop`` are given, and `Draws.tries` samples have no
        row more than 1 + stop radii away.
        """
        looked, steps, given, inside = 0, 0, -1, False
        while looked < most and not inside:
            looks, made, drops, missing, given, inside = self._sampled_steps(
                samples, stop, most - looked, given
            )
            looked, steps = looked + looks, steps + made
            self.drops += drops
            self._columns.count_read(self._reads * made - (missing >= 0))
            if missing >= 0:
                self._keep_of_sample(missing)
            else:
                given = -1
        self.steps += steps
        if steps:
            self.exact = None
        return inside

    @property
    def _machine(self) -> dict[str, Any]:
        """What the core makes steps with: the problem, the point, and their kind."""
        problem = self._problem
        return {
            "rows": self._columns.kept_rows,
            "place": self._columns.places,
            "y": problem.signs,
            "diagonal": self._diagonal,
            "ridge": self._ridge,
            "half": self._half,
            "shift": problem.shift,
            "alpha": self._alpha,
            "g": self._g,
            "numbers": self._numbers,
            "kind": self._kind,
            "second_order": self._second,
        }

    def _sampled_steps(
        self, samples: Draws, stop: float | None, most: int, given: int
    ) -> tuple[int, int, int, int, int, bool]:
        """As `_core.sampled_steps` has it: a ``given`` row is the first best one."""
        return _core.sampled_steps(
            **self._machine,
            ball=stop is not None,
            stop=stop or 0.0,
            most=most,
            given=given,
            order=samples.order,
            split=samples.split,
            state=samples.state,
            room=samples.room,
            tries=samples.tries,
        )

    def _steps(self, stop: float, most: int) -> tuple[int, int, int]:
        """Steps, dropped points, and the row that is missing or -1."""
        steps, drops, missing, _ = _core.simplex_steps(
            **self._machine, ball=self._problem.linear is not None, stop=stop, most=most
        )
        return steps, drops, missing

    def _keep(self, missing: int) -> None:
        """Compute the row that is missing, and rows that may be next."""
        rows = np.array([missing])
        if len(self._columns.kept_rows) > 2 * TOGETHER:  # the other one of a pair stays
            G = self.g - self._half
            near = np.argpartition(G, min(TOGETHER, len(G)) - 1)[:TOGETHER]
            near = near[(self._columns.places[near] < 0) & (near != missing)]
            rows = np.append(near, rows)
        self._columns.keep(rows)

    def _keep_of_sample(self, missing: int) -> None:
        """Compute the row that is missing, and others while there is room for them."""
        columns, rows = self._columns, np.array([missing])
        new = np.flatnonzero(columns.places < 0)
        room = len(columns.kept_rows) - (len(columns.places) - len(new))
        some = min(SAMPLED_TOGETHER, room - 2, len(new))
        if some > 0:
            G = (self.g - self._half)[new]
            near = new[np.argpartition(G, some - 1)[:some]]
            rows = np.append(near[near != missing], rows)
        columns.keep(rows)
