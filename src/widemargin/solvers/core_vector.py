"""Core vector machines: the coreset grows by its farthest point.

Tsang, Kwok, Cheung, "Core vector machines: fast SVM training on very large data sets",
JMLR 2005, after Badoiu and Clarkson. The squared hinge without a free intercept is a
smallest enclosing ball (`frank_wolfe`). One iteration

    adds the point that is farthest from the centre, of all or of a sample,
    solves the problem of the coreset, which keeps all its points.

In the gradient F = Q beta - 1 of the dual the farthest point has the least F, where the
kernel has a constant diagonal; elsewhere that is the point that violates most.
"""

import itertools
from collections.abc import Generator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from widemargin.kernel_blocks import aligned, padded
from widemargin.kernel_problem import KernelProblem
from widemargin.parameters import Checker
from widemargin.problem import Problem
from widemargin.solution import Step
from widemargin.solvers.base import Solver, Start
from widemargin.solvers.kernel_points import drawn, needs_ball, record
from widemargin.solvers.working_set import Small, pair_steps

Vector = NDArray[np.float64]
Index = NDArray[np.intp]

# The problem of the coreset is solved to this share of the violation of what came last,
# as those of a working set are. Not tuned.
INNER_SHARE = 0.1
# Share by which diagonal entries may differ that are called one.
SAME = 1e-6
# Points that are added between two looks at all rows, where only samples are looked at,
# times the size of the sample: about the work of the look.
LOOKS = 10


@dataclass(frozen=True, kw_only=True)
class CoreVector(Solver):  # numpydoc ignore=PR02
    """Core vector machine (CVM), for the squared hinge with a kernel.

    Parameters
    ----------
    sample : int >= 1 or None, default=None
        The next point is the farthest one of so many random rows (the paper's 59: with
        probability 0.95 it is among the farthest twentieth); None: of all rows.
    start : int >= 1, default=20
        Points of the first coreset, of both classes, drawn at random.
    epsilon : float > 0 or None, default=None
        End also where the farthest point that was looked at is at most 1 + epsilon
        radii from the centre, the paper's rule (1e-6 there). It says nothing about the
        gap of the SVM, and needs a constant diagonal k(x, x) and one C.
    random_state : int or None, default=None
        Seed; None: 0.

    Raises
    ------
    ValueError
        A parameter out of range.

    Notes
    -----
    There are as many iterations as support vectors, at least, and each brings the
    scores of all rows up to date (m kernel values for every point of the coreset
    unless rows of K are kept), or those of the sample. K of the coreset is kept: 4 q^2
    bytes.

    ``details`` of a step: ``coreset``, ``support_vectors``, ``evaluations`` and
    ``hits`` (kernel values computed, and kept ones used again), ``inner_steps``.

    References
    ----------
    [tsang2005]_; [frandi2013]_, Algorithm 1.
    """

    name: ClassVar[str] = "core_vector"
    default_max_iter: ClassVar[int] = 1_000_000
    patience: ClassVar[int] = 1_000
    for_kernels: ClassVar[bool] = True

    sample: int | None = None
    start: int = 20
    epsilon: float | None = None
    random_state: int | None = None

    def __post_init__(self) -> None:
        check = Checker("CoreVector")
        check.count("sample", self.sample, least=1, optional=True)
        check.count("start", self.start, least=1)
        check.count("random_state", self.random_state, least=0, optional=True)
        if self.epsilon is not None:
            check.positive("epsilon", self.epsilon)

    def supports(self, problem: Problem) -> str | None:
        """Problems with the squared hinge and without a free intercept."""
        return needs_ball("CoreVector", problem)

    def iterate(
        self, problem: Problem, start: Start | None, tol: float
    ) -> Generator[Step, None, None]:
        """A step for each point that is added: `Solver.iterate`."""
        if not isinstance(problem, KernelProblem):
            raise TypeError("CoreVector needs a problem with a kernel.")
        random = np.random.default_rng(self.random_state or 0)
        given = np.zeros(0) if start is None else start.alpha
        rows = np.flatnonzero(given)
        if not rows.size:
            rows = drawn(problem.signs, self.start, random)
        coreset = _Coreset(problem, rows)
        if self.epsilon is not None:
            coreset.refuse_diagonal()
        adds = 1
        if self.sample is not None:
            adds = max(1, LOOKS * len(problem.signs) // self.sample)
        for iteration in itertools.count():
            yield coreset.record(iteration)
            for _ in range(adds):
                some = None
                if self.sample is not None:
                    some = random.integers(0, len(problem.signs), self.sample)
                i, F = coreset.farthest(some)
                if self.epsilon is not None and coreset.is_ball(F, self.epsilon):
                    return
                if not coreset.add(i, -F) and some is None:
                    return
                problem.rows.check_interrupted()


class _Coreset:
    """The points of the coreset, K of them, and their part of c and f = K c."""

    def __init__(self, problem: KernelProblem, rows: Index) -> None:
        self._problem, self._columns = problem, problem.columns
        self._y, self._ridge = problem.signs, 0.5 / problem.weights
        self._shift = float(problem.intercept == "penalized")
        self._scores = problem.expand(np.zeros(len(self._y)))
        self._diagonal = self._columns.diag() + self._shift + self._ridge
        self.rows = np.empty(0, np.intp)
        self._place = np.full(len(self._y), -1)  # among these
        self._c, self._f = np.empty(0), np.empty(0)
        self._K = aligned((0, 0), self._columns.dtype)
        self.steps = 0
        self._grow(rows)
        self._solve(INNER_SHARE)

    def add(self, i: int, violation: float) -> bool:
        """Take a point in, and solve the problem of the coreset; whether that helps."""
        is_new, steps = bool(self._place[i] < 0), self.steps
        if is_new:
            self._grow(np.array([i]))
        if violation > 0:
            self._solve(INNER_SHARE * violation)
        return is_new or self.steps > steps

    def _grow(self, new: Index) -> None:
        """Append points, with K of them and the others."""
        old = len(self.rows)
        self.rows = np.concatenate([self.rows, new])
        q = len(self.rows)
        self._place[new] = np.arange(old, q)
        if q > self._K.shape[0]:  # by half, so that it is copied rarely
            size = padded(q + q // 2)
            K = aligned((size, size), self._columns.dtype)
            K[:] = 0
            K[:old, :old] = self._K[:old, :old]
            self._K = K
        block = self._columns.block(new, self.rows)
        self._K[old:q, :q] = block
        self._K[:q, old:q] = block.T
        self._f = np.append(self._f, block[:, :old] @ self._c)
        self._c = np.append(self._c, np.zeros(len(new)))

    def _gradient(self) -> Vector:
        """Y F of the coreset: (Q beta)_i - 1."""
        S, c = self.rows, self._c
        F = self._f + self._shift * c.sum() + self._ridge[S] * c
        return np.asarray(self._y[S] * F - 1.0)

    def _solve(self, stop: float) -> None:
        """Pair steps until no point of the coreset violates more."""
        S, q, y = self.rows, len(self.rows), self._y[self.rows]
        small = Small(
            self._K[:q],
            self._c,
            np.where(y > 0, 0.0, -np.inf),
            np.where(y > 0, np.inf, 0.0),
            y * self._gradient(),
            self._ridge[S],
            self._shift,
            False,
        )
        solved = pair_steps(small, stop)
        self.steps += solved.steps
        moved = np.flatnonzero(solved.c != self._c)
        change = solved.c[moved] - self._c[moved]
        self._f += self._K[moved, :q].T @ change
        self._c = solved.c

    def farthest(self, some: Index | None) -> tuple[int, float]:
        """Of some rows, or all, the one that violates most, and its (Q beta)_i - 1."""
        c = self._c
        if some is None:
            f, some = self._current(), np.arange(len(self._y))
        else:
            f = self._columns.block(some, self.rows) @ c
        place = self._place[some]
        mine = np.where(place >= 0, c[place], 0.0)
        F = self._y[some] * (f + self._shift * c.sum() + self._ridge[some] * mine) - 1.0
        k = int(F.argmin())
        return int(some[k]), float(F[k])

    def refuse_diagonal(self) -> None:
        """Refuse a ball of points that differ in length."""
        kappa = self._diagonal
        if kappa.max() - kappa.min() > SAME * kappa.max():
            raise ValueError(
                "epsilon needs a constant diagonal of K (rbf, laplacian) and one C for "
                f"all rows. Got k(x, x) + 1 / (2 C) from {kappa.min():.6g} to "
                f"{kappa.max():.6g}."
            )

    def is_ball(self, least: float, epsilon: float) -> bool:
        """Whether the farthest point is at most 1 + epsilon radii away."""
        beta = float(np.abs(self._c).sum())
        R = float((self._gradient() + 1.0) @ np.abs(self._c)) / beta**2
        kappa = float(self._diagonal[0])
        far = kappa + R - 2.0 * (least + 1.0) / beta
        return bool(far <= (1.0 + epsilon) ** 2 * (kappa - R))

    def _current(self) -> Vector:
        """Scores of all rows, brought up to date."""
        change = self._c - self._scores.c[self.rows]
        moved = np.flatnonzero(change)
        if moved.size:
            self._scores.add(self.rows[moved], change[moved])
            self._scores.c[self.rows] = self._c
        return self._scores.values

    def record(self, iteration: int) -> Step:
        """The current point."""
        f, c = self._current(), self._scores.c
        b = self._problem.intercept_near(c, 0.0)
        details = {"coreset": float(len(self.rows)), "inner_steps": float(self.steps)}
        active = len(self.rows)
        return record(self._problem, iteration, (c, f, b), active, details)
