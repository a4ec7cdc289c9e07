"""A few rows of a kernel problem, K among them, and the ball around their center.

The dual of the squared hinge without a free intercept, max sum beta - 1/2 beta'Q beta
over beta >= 0, is also the smallest ball's around points z_i with z_i'z_j = Q_ij,

    Q = Y (K + p) Y + diag(1 / (2 C_i)),   p = 1 for a penalized intercept, else 0,

where all of these have one length: with a = beta / sum beta and R = a'Q a the center is
sum a_i z_i, and the squares of the radius and of the distances are

    r^2 = kappa - R <= r*^2 <= max d_i^2,   d_i^2 = kappa + R - 2 (Q a)_i

[frandi2013]_. R tends to rho, the margin of the paper, and beta = a / R. Where lengths
differ, the same numbers with kappa = max Q_ii are in (34) to (41) there, for the
concave function kappa - a'Q a: with d^2 <= (1 + epsilon)^2 r^2 for all i it is within
the share 2 epsilon + epsilon^2 of its largest value.
"""

import itertools
from collections.abc import Callable, Generator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from widemargin.arrays import Index, Vector
from widemargin.kernels.definite import shows_indefinite
from widemargin.kernels.packed import aligned, padded
from widemargin.parameters import Checker
from widemargin.problems.base import Problem
from widemargin.problems.kernel import KernelProblem
from widemargin.solution import Step
from widemargin.solvers.driver.contract import Solver, Start
from widemargin.solvers.kernel.draws import Draws
from widemargin.solvers.kernel.small_problem import Small, solve_by_pairs
from widemargin.system import deadline

# Points that are added between two looks at all rows (and at the clock), where only
# samples are looked at, times the size of the sample: some times the work of the look.
# (2 and 8: within 6 % of the time, benchmarks/core/untuned.py.)
LOOKS = 4
# Share by which diagonal entries may differ and count as equal: ten roundings of
# float32.
SAME = 1e-6
# The start with a random row and the row farthest from it.
PAIR = "pair"


class Quadratic:
    """The matrix Q of a problem: what is known of it for all rows.

    Attributes
    ----------
    y, ridge, diagonal : ndarray (m,): signs, 1 / (2 C_i), and Q_ii
    shift : float, p
    kappa : float, the largest entry of the diagonal
    is_ball : bool, whether the diagonal is constant
    """

    def __init__(self, problem: KernelProblem) -> None:
        self._problem = problem
        self.y, self.ridge = problem.signs, 0.5 / problem.weights
        self.shift = float(problem.intercept == "penalized")
        self.diagonal: Vector = problem.columns.diag() + self.shift + self.ridge
        most = float(self.diagonal.max())
        self.kappa = most
        self.is_ball = bool(np.ptp(self.diagonal) <= SAME * most)

    def epsilon(self, R: float, least: float) -> float:
        """Farthest distance over the radius, less 1, by R and the least (Q a)_i."""
        if not self.kappa > R:
            return float("inf")
        far = max(0.0, self.kappa + R - 2.0 * least)
        return float(np.sqrt(far / (self.kappa - R))) - 1.0

    def record(
        self, iteration: int, c: Vector, f: Vector, details: dict[str, float]
    ) -> Step:
        """The step at the best multiple of c = Y beta, with f = K c, and its ball."""
        beta, b = np.abs(c), self.shift * float(c.sum())
        Qbeta = self.y * (f + b) + self.ridge * beta
        total, curved = float(beta.sum()), float(beta @ Qbeta)
        R = curved / total**2
        details = {**details, "rho": R}
        details["epsilon"] = self.epsilon(R, float(Qbeta.min()) / total)
        if self.is_ball:
            details["radius"] = float(np.sqrt(max(0.0, self.kappa - R)))
        t = total / curved if curved > 0 else 1.0 / total
        if not (curved > 0 or self._problem.kernel.is_psd):
            details["negative"] = 1.0
        point = (t * c, t * f, t * b)
        active = int(np.count_nonzero(c))
        return self._problem.step(iteration, point, active, details)


class Coreset:
    """Rows of a problem, with all of K among them.

    Attributes
    ----------
    Q : Quadratic
    rows : intp ndarray (q,)
    c, f : ndarray (q,): Y beta of these rows (zero elsewhere), and K c of these rows
    weight : ndarray (m,), beta of all rows
    K : ndarray (s, s), s >= q, with the values of these rows in front
    steps, drops, negative : int, that solvers made, and of these along negative
        curvature; one more where a sample of rows shows it
    """

    def __init__(self, problem: KernelProblem, rows: Index) -> None:
        self._columns, self._problem = problem.columns, problem
        self._columns.keep_exact()  # points come one by one: nothing mends what rounds
        self.Q = Quadratic(problem)
        self._scores = problem.expand(np.zeros(len(self.Q.y)))
        self.rows = np.empty(0, np.intp)
        self._place = np.full(len(self.Q.y), -1)  # among these
        self.c, self.f = np.empty(0), np.empty(0)
        self._weight = np.zeros(len(self.Q.y))
        self.K = aligned((0, 0), self._columns.dtype)
        self.steps = self.drops = 0
        self.negative = int(shows_indefinite(problem.columns))
        self._append(rows)

    def place(self, i: int) -> int:
        """The place of row i among these, added if it is new."""
        if self._place[i] < 0:
            self._append(np.array([i]))
        return int(self._place[i])

    def _append(self, new: Index) -> None:
        """Add rows, with K of them and the others."""
        old = len(self.rows)
        self.rows = np.concatenate([self.rows, new])
        q = len(self.rows)
        self._place[new] = np.arange(old, q)
        if q > self.K.shape[0]:  # by half, so that it is copied rarely
            size = padded(q + q // 2)
            K = aligned((size, size), self._columns.dtype)
            K[:] = 0
            K[:old, :old] = self.K[:old, :old]
            self.K = K
        block = self._columns.block(new, self.rows)
        self.K[old:q, :q] = block
        self.K[:q, old:q] = block.T
        self.f = np.append(self.f, block[:, :old] @ self.c)
        self.c = np.append(self.c, np.zeros(len(new)))

    def drop(self) -> None:
        """Leave out rows with c = 0."""
        kept = np.flatnonzero(self.c)
        q = len(kept)
        self._weight[self.rows] = 0.0
        self._place[self.rows] = -1
        self.rows, self.c, self.f = self.rows[kept], self.c[kept], self.f[kept]
        self._place[self.rows] = np.arange(q)
        K = self.K[np.ix_(kept, kept)]
        self.K[:] = 0
        self.K[:q, :q] = K

    @property
    def weight(self) -> Vector:
        """The beta of all rows: (m,), to be read until the next step only."""
        self._weight[self.rows] = np.abs(self.c)
        return self._weight

    @property
    def room(self) -> int:
        """Rows of K that may be kept whole."""
        return len(self._columns.kept_rows)

    def solve(self, stop: float) -> None:
        """Pair steps until no point of these violates its conditions by more."""
        Q, S, q = self.Q, self.rows, len(self.rows)
        y = Q.y[S]
        small = Small(
            self.K[:q],
            self.c,
            np.where(y > 0, 0.0, -np.inf),
            np.where(y > 0, np.inf, 0.0),
            y * (self.gradient - 1.0),
            Q.ridge[S],
            Q.shift,
            0,
        )
        solved = solve_by_pairs(small, stop)
        self.steps += solved.steps
        self.negative += solved.negative
        moved = np.flatnonzero(solved.c != self.c)
        change = solved.c[moved] - self.c[moved]
        self.f += self.K[moved, :q].T @ change
        self.c = solved.c

    @property
    def gradient(self) -> Vector:
        """(Q beta)_i of these rows: (q,)."""
        Q, S = self.Q, self.rows
        f = Q.y[S] * (self.f + Q.shift * self.c.sum())
        return np.asarray(f + Q.ridge[S] * np.abs(self.c))

    def farthest(self, some: Index | None) -> tuple[int, float]:
        """The row of the least (Q beta)_i, of some or all rows, and this value."""
        if some is None:
            f, some = self.scores(), np.arange(len(self.Q.y))
        else:
            f = self._columns.block(some, self.rows) @ self.c
        Q, place = self.Q, self._place[some]
        mine = np.where(place >= 0, np.abs(self.c[place]), 0.0)
        Qbeta = Q.y[some] * (f + Q.shift * self.c.sum()) + Q.ridge[some] * mine
        k = int(Qbeta.argmin())
        return int(some[k]), float(Qbeta[k])

    @property
    def outermost(self) -> int:
        """The row of least (Q beta)_i, of the rows with weight."""
        return int(self.rows[np.where(self.c != 0.0, self.gradient, np.inf).argmin()])

    def epsilon(self, least: float) -> float:
        """Epsilon of the ball around the center, by the least (Q beta)_i seen."""
        beta = np.abs(self.c)
        total = float(beta.sum())
        return self.Q.epsilon(float(beta @ self.gradient) / total**2, least / total)

    def scores(self) -> Vector:
        """Scores K c of all rows, brought up to date: (m,)."""
        scores, c = self._scores, np.zeros(len(self.Q.y))
        c[self.rows] = self.c
        moved = np.flatnonzero(c != scores.c)
        if moved.size:
            scores.add(moved, c[moved] - scores.c[moved])
            scores.c[:] = c
        return scores.values

    def record(self, iteration: int, is_ball: bool = False) -> Step:
        """The current point, and whether its ball ends the run."""
        f, c = self.scores(), self._scores.c
        details = {
            "is_ball": float(is_ball),
            "negative": 0.0 if self._problem.kernel.is_psd else float(self.negative),
            "coreset": float(len(self.rows)),
            "steps": float(self.steps),
            "drops": float(self.drops),
        }
        return self.Q.record(iteration, c, f, details)


@dataclass(frozen=True, kw_only=True)
class BallSolver(Solver):
    """A solver of problems that are smallest balls, with its options."""

    for_kernels: ClassVar[bool] = True

    sample: int | None = None
    balanced: bool = False
    tries: int = 1
    first_points: int | str = 20
    epsilon: float | None = None
    random_state: int | None = None

    def __post_init__(self) -> None:
        check = Checker(type(self).__name__)
        check.count("sample", self.sample, least=1, optional=True)
        check.choice("balanced", self.balanced, (False, True))
        check.count("tries", self.tries, least=1)
        if isinstance(self.first_points, str):
            if self.first_points != PAIR:
                expected = f"an int in the range [1, inf) or {PAIR!r}"
                check.refuse("first_points", expected, self.first_points)
        else:
            check.count("first_points", self.first_points, least=1)
        check.positive("epsilon", self.epsilon, optional=True)
        check.count("random_state", self.random_state, least=0, optional=True)
        self._refuse_unused(check)

    def _refuse_unused(self, check: Checker) -> None:
        """Refuse what says how samples are drawn where there are none, or no stop."""
        if self.balanced and self.sample is None:
            check.refuse("balanced", "False where sample is None", self.balanced)
        if self.tries > 1 and (self.sample is None or self.epsilon is None):
            expected = "1 where sample or epsilon is None"
            check.refuse("tries", expected, self.tries)

    def supports(self, problem: Problem) -> str | None:
        """Problems with the squared hinge and without a free intercept."""
        name = type(self).__name__
        if not problem.has_unit_margins:
            return f"{name} solves classification problems only: use irwls."
        if problem.loss != "squared_hinge":
            return f"{name} needs loss='squared_hinge'; for the hinge use irwls."
        if problem.intercept == "free":
            return (
                f"{name} needs intercept='penalized' or 'none'; with a free one use "
                "irwls."
            )
        return None

    @staticmethod
    def weights_of(problem: KernelProblem, start: Start | None) -> Vector:
        """Alpha of the start, of the rows with C > 0: zero where there is none."""
        alpha = problem.dual_state(0.0 if start is None else start.alpha).alpha
        return np.asarray(alpha)

    def first(
        self, problem: KernelProblem, start: Start | None, random: np.random.Generator
    ) -> Index:
        """Points to begin with: the start's, or as ``first_points`` asks."""
        rows = np.flatnonzero(self.weights_of(problem, start))
        if rows.size:
            return rows
        if self.first_points == PAIR:
            return _far_pair(problem, random)
        some = []
        for side in (problem.signs > 0, problem.signs < 0):
            drawn = random.permutation(np.flatnonzero(side))
            some.append(drawn[: -(-int(self.first_points) // 2)])
        return np.concatenate(some)

    def grow(
        self,
        problem: KernelProblem,
        start: Start | None,
        begin: Callable[[Coreset], None],
        advance: Callable[[Coreset, int, float], bool],
        leave: Callable[[Coreset, int], bool] = lambda coreset, looks: False,
    ) -> Generator[Step, None, tuple[Coreset, Draws] | None]:
        """Steps by the farthest point, of all or of samples.

        ``begin`` gives the first points their c. ``advance`` gets the farthest point i
        and (Q beta)_i, and says whether it got anywhere. After some samples ``leave``
        may end this: then the coreset and where samples came from are returned.
        """
        random = np.random.default_rng(self.random_state or 0)
        coreset = Coreset(problem, self.first(problem, start, random))
        begin(coreset)
        m, samples, looks, looked = len(problem.signs), None, 1, 0
        if self.sample is not None and self.sample < m:
            samples = self._samples(problem.signs, random)
            looks = max(1, LOOKS * m // self.sample)
        for iteration in itertools.count():
            yield coreset.record(iteration)
            for _ in range(looks):
                if samples is not None and leave(coreset, looked):
                    return coreset, samples
                i, least, inside = self._look(coreset, samples)
                if inside:
                    yield coreset.record(iteration + 1, is_ball=True)
                    return None
                if not advance(coreset, i, least) and samples is None:
                    return None
                looked += 1
                problem.rows.check_interrupted()
                deadline.check()
        return None

    def _samples(self, signs: Vector, random: np.random.Generator) -> Draws:
        """Where samples come from."""
        seed = int(random.integers(1 << 63))
        return Draws(signs, int(self.sample or 0), self.balanced, self.tries, seed)

    def _look(self, coreset: Coreset, samples: Draws | None) -> tuple[int, float, bool]:
        """The farthest point, its (Q beta)_i, and whether its ball ends the run."""
        i, least = -1, np.inf
        for _ in range(1 if samples is None else samples.tries):
            some = None
            if samples is not None:
                some = samples.draw(coreset.weight)
                if samples.balanced:  # rows with weight are looked at too
                    some = np.append(some, coreset.outermost)
            i, least = coreset.farthest(some)
            if self.epsilon is None or coreset.epsilon(least) > self.epsilon:
                return i, least, False
        return i, least, True


def _far_pair(problem: KernelProblem, random: np.random.Generator) -> Index:
    """A random row, and the row farthest from it."""
    Q = Quadratic(problem)
    i = int(random.integers(len(Q.y)))
    k = problem.columns.block([i], np.arange(len(Q.y)))[0].astype(np.float64)
    square = Q.diagonal - 2.0 * Q.y[i] * Q.y * (k + Q.shift)
    square[i] = -np.inf
    return np.array([i, int(square.argmax())])
