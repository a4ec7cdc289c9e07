"""IRWLS with chunking (SVCradit): kernel problems by working sets.

Pérez-Cruz, Alarcón-Diana, Navia-Vázquez, Artés-Rodríguez, "Fast training of support
vector classifiers", NIPS 2000. Rows that violate their conditions come into a working
set, whose small dense problem is solved while the others stay as they are: the loop of
`working_set`. What the paper does within it, iterative re-weighted least squares, is
`published_irwls` (Table 1) and `reweighted` (safeguarded); its random choice of the
rows is `published_selection`.
"""

import itertools
from collections.abc import Callable, Generator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from widemargin.parameters import Checker
from widemargin.problems.base import Problem
from widemargin.problems.kernel import KernelProblem
from widemargin.problems.scores import Scores
from widemargin.solution import Step
from widemargin.solvers.driver.contract import Solver, Start
from widemargin.solvers.kernel.free_rows import FreeRows
from widemargin.solvers.kernel.low_rank import LowRank
from widemargin.solvers.kernel.pairs_first import PairsFirst
from widemargin.solvers.kernel.published_irwls import GUARDED, Table1
from widemargin.solvers.kernel.reweighted import reweighted_steps
from widemargin.solvers.kernel.selection import (
    AT_ONCE,
    FIRST_SIZE,
    INNER_SHARE,
    NOTHING,
    Choice,
    Precision,
)
from widemargin.solvers.kernel.small_problem import Inner
from widemargin.solvers.kernel.working_set import WorkingSet

# The violation of problems that are solved `AT_ONCE`: some thousand roundings.
ROUNDING_STOP = 1e-12


# The least gap for which rows of K are kept in 16 bits: what rounding does to scores is
# 1e-4 of C or so, and the last working sets have to go without it.
ROUNDED_TOL = 1e-5


# Makes the solver of the small problems of one run.
INNER: dict[str, Callable[[], Inner]] = {
    "pairs": PairsFirst,
    "irwls": lambda: reweighted_steps,
    "published": Table1,
    "guarded": lambda: GUARDED,
}
# The solvers of Table 1, which is for the hinge with a free intercept; and after how
# many working sets in a row whose passes did not settle a run with them is given up.
PUBLISHED, GIVEN_UP = ("published", "guarded"), 10


@dataclass(frozen=True, kw_only=True)
class IRWLS(Solver):  # numpydoc ignore=PR02
    """Working sets with second-order pair steps or IRWLS, for problems with a kernel.

    Solves both losses, with any intercept and weights per row.

    Parameters
    ----------
    inner : {"pairs", "irwls", "published", "guarded"}, default="pairs"
        What solves the small problem of a working set. "irwls": the method of the
        paper, safeguarded, in NumPy and LAPACK: few steps of O(q^3), which pay where
        most rows are free and C is large. "pairs": second-order pair steps in C++, up
        to 100 q of them; then "irwls" goes on. "published": Table 1 of the paper
        as printed, for the hinge with a free intercept: its passes need not settle, and
        the run may end as stalled. "guarded": the same with the guards of the authors'
        later code, a at most 1e4 C and beta = C within 1 %: they settle, but rows whose
        beta is near C may end at C.
    selection : {"violation", "random"}, default="violation"
        New rows of a working set: the largest violators, or the rows of section 3 of
        the paper: of each class one row that violates each condition, then rows at
        random, of all that violate or are free.
    working_set : int >= 4 or None, default=None
        Rows of a working set, q. None: 2048, which doubles up to 4096 while more rows
        are free than it holds.
    carry : float in [0, 1), default=0.5
        Share of a working set that stays in the next one: the rows that were added
        last. 0 with "random" is the paper's; 0 with "violation" oscillates. With
        "violation" the whole set stays where it has room for all rows that violate.
    random_state : int or None, default=None
        Seed of the random selection; None: 0.

    Raises
    ------
    ValueError
        A parameter out of range.

    Notes
    -----
    An iteration is a working set: q^2 / 2 to q^2 kernel values, and m for each row
    whose dual variable changed. Values are float32, added up in float64; the answer is
    certified in float64, and where float32 does not do the values become float64.
    Where K is of low rank to rounding, and pair steps take long, an interior point on a
    pivoted Cholesky factor finds the next c: O(m r^2) for each of some twenty steps.
    Where it is not, and a working set of all rows has too many pair steps, an interior
    point with K itself does: O(m^3). Where up to 8192 rows are free, more than a
    working set holds, and the gap is small, one Cholesky factor of them ends it, if
    memory has 64 bytes an entry for that.

    ``details`` of a step: ``violation`` (of the optimality conditions: what LIBSVM's
    ``tol`` bounds), ``support_vectors``, ``evaluations`` and ``hits`` (kernel values
    computed, and kept ones used again), ``inner_steps``, ``unsolved`` (working sets
    that were not solved as well as asked), ``rank`` (of a factor of K that an interior
    point was taken with, or 0), ``negative`` (steps along negative curvature: the
    kernel is not positive semidefinite), ``float64`` (1 if the values are), ``current``
    (rows whose scores follow; while other rows are left out, P uses their old scores,
    and ``violation`` is of the rows that follow).

    References
    ----------
    [perezcruz2000]_, sections 2 and 3; [diazmorales2016]_ for the guards; [fan2005]_
    for pair steps, which go further than that as in [mangasarian1999]_. The carry-over,
    the lazy rows and the stop by the gap are ours.

    Examples
    --------
    >>> from widemargin import Kernel, Problem, solve
    >>> from widemargin.solvers import IRWLS
    >>> X, y = [[0.0], [1.0], [2.0], [3.0]], [-1, 1, 1, -1]
    >>> problem = Problem(X, y, C=10.0, kernel=Kernel("rbf", gamma=1.0))
    >>> solution = solve(problem, IRWLS(), tol=1e-6)
    >>> print(solution.status, solution.alpha.round(2))
    solved [1.25 1.25 1.25 1.25]
    """

    name: ClassVar[str] = "irwls"
    default_max_iter: ClassVar[int] = 20_000
    patience: ClassVar[int] = 100
    for_kernels: ClassVar[bool] = True

    inner: str = "pairs"
    selection: str = "violation"
    working_set: int | None = None
    carry: float = 0.5
    random_state: int | None = None

    def __post_init__(self) -> None:
        check = Checker("IRWLS")
        check.choice("inner", self.inner, tuple(INNER))
        check.choice("selection", self.selection, ("violation", "random"))
        check.count("working_set", self.working_set, least=4, optional=True)
        check.count("random_state", self.random_state, least=0, optional=True)
        if not (isinstance(self.carry, int | float) and 0 <= self.carry < 1):
            check.refuse("carry", "a float in the range [0, 1)", self.carry)

    def supports(self, problem: Problem) -> str | None:
        """All problems with a kernel; Table 1 the hinge with a free intercept."""
        if self.inner in PUBLISHED and not problem.has_unit_margins:
            return (
                f"IRWLS(inner={self.inner!r}) solves classification problems only: use "
                "inner='irwls' or 'pairs'."
            )
        if self.inner in PUBLISHED and (problem.loss, problem.intercept) != (
            "hinge",
            "free",
        ):
            return (
                f"IRWLS(inner={self.inner!r}) solves the hinge with a free intercept "
                "only: use inner='irwls' or 'pairs'."
            )
        return None

    def patience_for(self, problem: Problem) -> int:
        """Iterations in which as many rows come in as with the default size."""
        size = self.working_set or FIRST_SIZE
        return self.patience * max(1, FIRST_SIZE // size)

    def small_solver(self) -> Inner:
        """What solves the small problems of a run: ``solver(small, stop)``.

        Returns
        -------
        function
            Of a `Small` and of the violation that may stay; it returns a `Solved`. A
            subclass that has another one is a way to try it.
        """
        return INNER[self.inner]()

    def iterate(
        self, problem: Problem, start: Start | None, tol: float
    ) -> Generator[Step, None, None]:
        """A step for each working set: `Solver.iterate`."""
        if not isinstance(problem, KernelProblem):
            raise TypeError("IRWLS needs a problem with a kernel.")
        at_once = problem.rows.shape[0] <= AT_ONCE
        if at_once:
            problem.columns.refine()
        inner = self.small_solver()
        kinked = self.selection == "violation" and isinstance(inner, PairsFirst)
        if tol >= ROUNDED_TOL:
            problem.columns.keep_rounded()
        else:
            problem.columns.keep_exact()
        scores = _first_scores(problem, start)
        rounds = isinstance(inner, PairsFirst)
        run = WorkingSet(problem, scores, inner, kinked=kinked, rounds=rounds)
        choose = Choice(
            run, self.working_set, self.carry, self.selection, self.random_state or 0
        )
        precision, failures = Precision(run, _last_violation(problem, start)), 0
        low_rank = free_rows = None
        if isinstance(inner, PairsFirst):
            low_rank = LowRank(run, inner, tol)
            free_rows = FreeRows(run, inner, tol, start is not None)
        rank, moved = 0, False
        for iteration in itertools.count():
            step = _step(iteration, run, tol, rank, moved)
            if step.relative_gap <= tol and run.scores.current is not None:
                run.scores.settle()
                step = _step(iteration, run, tol, rank)
            if step.relative_gap > tol >= step.details["violation"] and run.grow(tol):
                step = _step(iteration, run, tol, rank)
            yield step
            moved, gap = False, step.relative_gap
            if low_rank is not None and low_rank.moves(step):
                rank, moved = low_rank.rank, True
                continue
            if free_rows is not None and free_rows.moves(step):
                moved = True
                continue
            found = precision.look()  # the driver may have refreshed the scores
            if not found.size > NOTHING * found.scale:
                return
            if self.selection == "violation" and run.focus(found):
                found = run.look()
            kept, new = choose(iteration, found)
            aim = choose.aim(found, gap, tol)
            found = precision.sharpen(aim, found)
            to_rounding = at_once and self.inner not in PUBLISHED
            least = ROUNDING_STOP * problem.unit
            stop = least if to_rounding else INNER_SHARE * found.size
            before = run.unsolved
            run.advance(found, kept, new, stop, aim)
            failures = failures + 1 if run.unsolved > before else 0
            if self.inner in PUBLISHED and failures >= GIVEN_UP:
                return


def _last_violation(problem: KernelProblem, start: Start | None) -> float:
    """Where a run ended whose scores are known; infinity where they are new."""
    if start is None or "scores" not in start.vectors:
        return np.inf
    if not _are_at_alpha(problem, start):
        return np.inf
    return start.numbers.get("violation", np.inf)


def _are_at_alpha(problem: KernelProblem, start: Start) -> bool:
    """Whether the vectors of a start, which are of its v, are of its alpha, too."""
    alpha = problem.dual_state(start.alpha).alpha
    return np.array_equal(np.abs(start.v[: len(alpha)]), alpha)


def _first_scores(problem: KernelProblem, start: Start | None) -> Scores:
    """Where to start: zero, or a start along its best multiple.

    D(t alpha) is largest at t = q'alpha / (alpha'Q alpha); bounds cap t.
    """
    state = problem.dual_state(0.0 if start is None else start.alpha)
    problem.repair(state)
    c, known = problem.signs * state.alpha, None
    if start is not None and _are_at_alpha(problem, start):
        known = start.vectors.get("scores")
    scores = problem.expand(c, known)
    if not c.any() or problem.mass is not None:
        return scores
    curved = float((c * scores.values).sum()) + 2.0 * problem.squares(np.abs(c))
    if problem.intercept == "penalized":
        curved += float(c.sum()) ** 2
    t = max(0.0, problem.reach(np.abs(c))) / curved if curved > 0 else 1.0
    most = problem.pointwise.upper(problem.weights)
    t = min(t, float((most[c != 0] / np.abs(c[c != 0])).min()))
    scores.scale(t)
    return scores


def _step(
    iteration: int, run: WorkingSet, tol: float, rank: int, moved: bool = False
) -> Step:
    """The current point, with the objectives by the scores that are kept.

    With the best b where a gap is near, or c has ``moved`` as a whole.
    """
    problem, found = run.problem, run.look()
    c, f = run.c, run.scores.values
    b = problem.intercept_near(c, found.intercept)
    bounds = problem.values(c, f, b)
    small = moved or found.size <= tol * problem.unit
    if problem.intercept == "free" and (small or bounds.relative_gap < 3.0 * tol):
        b = problem.intercept_for(f, c, b)
        bounds = problem.values(c, f, b)
    details = {
        "violation": found.size,
        "inner_steps": float(run.steps),
        "unsolved": float(run.unsolved),
        "rank": float(rank),
        "negative": 0.0 if problem.kernel.is_psd else float(run.negative),
        "float64": float(problem.columns.dtype == np.float64),
        "current": float(run.current),
    }
    return problem.step(iteration, (c, f, b), len(run.rows), details, bounds)
