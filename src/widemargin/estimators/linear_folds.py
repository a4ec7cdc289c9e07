"""The machines of all folds and all C that are linear in their columns, all at once."""

import dataclasses
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from widemargin.arrays import Index, Index64, Mask, Vector
from widemargin.data import shared
from widemargin.data.rows import Rows
from widemargin.estimators.batch_problems import form, memory_for_products
from widemargin.estimators.engine_choice import is_allowed
from widemargin.estimators.folds import (
    PLACES,
    Folds,
    solve_folds,
)
from widemargin.estimators.kernel_machines import kernel_recipe
from widemargin.estimators.linear_choice import (
    FACED_COLUMNS,
    FACED_SHARE,
    FEW_PAIRED,
    LEAST_LINEAR_GAP,
    MOST_COLUMNS,
    MOST_ENTRIES,
    MOST_LINEAR,
    SHARED_SHARE,
    SQUARED_FIRST,
    SQUARED_STEPS,
    has_room,
    steps_as_newton,
    stored_well,
    suits_newton,
)
from widemargin.estimators.multiclass import BinaryTasks, rows_of
from widemargin.estimators.points import scaled
from widemargin.estimators.solving import is_free, solve_tasks
from widemargin.estimators.training import Recipe, Training
from widemargin.kernels.kernel import Kernel
from widemargin.problems.many_linear import ManyLinearProblems
from widemargin.solution import Solution, Status, relative_gaps
from widemargin.solvers.kernel.batch import MOST_EXACTLY
from widemargin.solvers.linear.batch import LinearEnds, solve_linear_places
from widemargin.system.threads import n_threads

# The recipe of problem k, over some of the rows or all.
RecipeOf = Callable[[int, Index | None], Recipe]

# Steps a row that products have at least where columns are FACED_SHARE of the rows or
# rows are few. Rows up to which products with fewer columns than FACED_COLUMNS come
# before Newton's method: of 5,000 and 60 columns that overlap both together take 4
# times as long as that alone (`benchmarks/core/linear_folds.py`).
STEPS_OF_MANY, MOST_BRIEF = 10, 2_500
# Of the squared hinge products are for small pairs, or so many columns, and so large a
# share of the rows. They have so many pair steps a row: 3,000 rows of usps end within
# these in a quarter of the time, rows of noise take a tenth longer, and 3 to 16 times
# as long without a limit. Where the share is larger they have as many as single fits,
# beyond MOST_COLUMNS as many as they take: isolet of 2,000 rows takes 0.7 of the time.
SQUARED_MANY, SQUARED_SHARE = 128, 0.08
STEPS_OF_SQUARED, SQUARED_WIDE = 4, 0.3
# Entries of a regression, which has each row twice, up to which Newton's method takes
# all folds at once: 5,000 x 60 take as long one by one, 20,000 x 60 less. (2,000 x 250:
# 0.5 to 1.0 of the time, the smaller the less.)
MOST_ENTRIES_TWICE = 550_000
# Rows, of which few entries are not zero, up to which all folds are solved at once.
# (230 searches of 320 to 5,000 rows x 40 to 5,000 columns, a share of 0.003 to 0.24, 3
# to 7 values of C up to 1 to 5,000, over the better way: 1.065 times as long, up to
# 2.5; with 1,500 rows 1.10, up to 14, with all 1.11, up to 5.4, never at once 1.8.)
MOST_THIN = 2_500
# How large |mean x|^2 may be, as a multiple of the mean |x - mean x|^2: beyond,
# products lose digits (spectra with an offset take 0.07 to 0.16 of the time up to 1e4,
# 0.1 to 0.6 with 1e5, 1.2 to 2.0 with 1e7). `benchmarks/core/wide_rows.py --searches`.
MOST_OFF = 1e4


@dataclass(frozen=True)
class LinearFolds:
    """The machines of all folds and all C, as `Folds` says it of those with a kernel.

    Attributes
    ----------
    training : Training, of all rows
    recipe_of : callable, see `RecipeOf`
    weights : ndarray (folds, m), factors of C in each fold; 0 where it holds a row out
    Cs : ndarray (C,), rising
    factors : ndarray (folds, problems), of C for the rows of label +1 of each problem
    products : Folds or None, the machines that products of rows have solved
    W : ndarray (folds, problems, C, n), weights; 0 of what products have solved
    b, gaps : ndarray (folds, problems, C), intercepts and certified relative gaps
    ended : bool ndarray (folds, problems, C), whether no limit ended a problem
    stopped : Status or None, what ended it early
    """

    training: Training
    recipe_of: RecipeOf
    weights: Vector
    Cs: Vector
    factors: Vector
    products: Folds | None
    W: Vector
    b: Vector
    gaps: Vector
    ended: Mask
    stopped: Status | None = None

    def known(self, fold: int, test: Index) -> tuple[NDArray[Any], NDArray[Any]]:
        """Which rows get their own label, and of which that is known: (rows, C)."""
        if self.products is not None:
            return self.products.known(fold, test)
        right, is_known = np.zeros((2, len(test), len(self.Cs)), np.bool_)
        return right, is_known

    def decisions(
        self, fold: int, test: Index, wanted: Index64 | None = None
    ) -> Vector:
        """Decisions of the problems for some rows: (C, rows, problems).

        Of each row for the first C, as many as are wanted; None: for all.
        """
        X, W = self.training.rows.take(test), self.W[fold].transpose(1, 2, 0)
        out = np.stack([X @ own for own in W])
        if self.products is not None:  # b of the others is zero there
            out += self.products.decisions(fold, test, wanted)
            return np.asarray(out + (self.b - self.products.b)[fold].T[:, np.newaxis])
        return np.asarray(out + self.b[fold].T[:, np.newaxis])


class _Plan(NamedTuple):
    """What solves the problems of folds, one after the other.

    Attributes
    ----------
    products : bool, whether products of rows begin
    most : int or None, their pair steps for each problem; None: as many as are worth it
    newton : bool, whether Newton's method on the columns goes on, before single solvers
    """

    products: bool
    most: int | None
    newton: bool


def solve_linear_folds(
    training: Training,
    weights: Vector,
    Cs: Vector,
    factors: Vector | None = None,
    recipe_of: RecipeOf | None = None,
) -> Folds | LinearFolds | None:
    """Solve the problems of all folds and C; None where others suit better.

    Parameters
    ----------
    training : Training, of all rows, whose C does not count
    weights : ndarray (folds, m), factors of C in each fold; 0 where it holds a row out
    Cs : ndarray, rising
    factors : ndarray (folds, problems) or None
        Of C in each fold for the rows of label +1 of each problem; None: 1.
    recipe_of : callable or None
        See `RecipeOf`: regressions differ by their tubes. None: as of the training.

    Returns
    -------
    `Folds` where products of rows have solved all, or a limit ended these; else
    `LinearFolds`.
    """
    if not is_allowed(training, LEAST_LINEAR_GAP):
        return None
    training = stored_well(training)
    shape = len(weights), len(training.tasks), len(Cs)
    factors = np.ones(shape[:2]) if factors is None else factors
    plan, products = _plan(training, shape[0] * shape[2]), None
    if plan.products:
        folds = weights, Cs, factors
        products = _by_products(training, folds, plan.most)
        if products is not None and (products.stopped or products.ended.all()):
            return products
    size = 8.0 * np.prod((*shape, training.rows.shape[1]), dtype=float)
    room = memory_for_products(training, list(range(shape[1])))
    if size > room or (products is None and not plan.newton):
        return None
    b, gaps, ended = np.zeros(shape), np.full(shape, np.inf), np.zeros(shape, np.bool_)
    if products is not None:
        b, gaps, ended = products.b.copy(), products.gaps, products.ended
    found = LinearFolds(
        training,
        recipe_of or (lambda k, some: training.recipe),
        weights,
        Cs,
        factors,
        products,
        np.zeros((*shape, training.rows.shape[1])),
        b,
        gaps,
        ended,
    )
    try:
        stopped = _solve_left(found, plan.newton)
    except KeyboardInterrupt:  # between calls of the core: what was finished stays
        stopped = Status.INTERRUPTED
    return dataclasses.replace(found, stopped=stopped)


def _solve_left(found: LinearFolds, by_newton: bool) -> Status | None:
    """Solve what products have left; what ended it early."""
    left = np.flatnonzero(~found.ended.all(axis=(0, 2))).tolist()
    for k in left if by_newton else ():
        stopped = _solve_by_newton(found, k)
        if stopped is not None:
            return stopped
    return _solve_in_turn(found)


def _plan(training: Training, t: int) -> _Plan:
    """What solves t problems of each of the training."""
    m, n = int(training.sizes.max()), training.rows.shape[1]
    newton = _suits_newton(training, m, t)
    nothing, is_regression = _Plan(False, None, newton), training.recipe.q is not None
    if is_regression or m > MOST_EXACTLY or _are_thin(training, m):
        return nothing
    if not newton and n <= min(m, MOST_COLUMNS):  # many entries, or little memory
        return nothing
    if _are_far(training):
        return nothing
    if not form(training)[0].is_bounded:
        small = training.tasks.are_pairs and m <= MOST_LINEAR
        if not small and n < max(SQUARED_MANY, SQUARED_SHARE * m):
            return nothing
        if n < SQUARED_WIDE * m:
            return _Plan(True, STEPS_OF_SQUARED * m, newton)
        return _Plan(True, SQUARED_STEPS * m if newton else None, newton)
    if n >= FACED_SHARE * m or m <= FEW_PAIRED:
        most = max(steps_as_newton(n), STEPS_OF_MANY * m)
        return _Plan(True, most if newton else None, newton)
    if n < FACED_COLUMNS and m > MOST_BRIEF:
        return nothing
    return _Plan(True, steps_as_newton(n) if newton else m, newton)


def _suits_newton(training: Training, m: int, t: int) -> bool:
    """Whether Newton's method on the columns takes t problems of m rows each.

    A part of them at once. Many problems keep all threads busy.
    """
    n = training.rows.shape[1]
    if _are_thin(training, m):
        suits = suits_newton(training, m)
    else:
        most = MOST_ENTRIES if training.recipe.q is None else MOST_ENTRIES_TWICE
        suits = n <= min(m, MOST_COLUMNS) and m * (n + 1) <= most
    return suits and has_room(training, m, min(t, 1 + PLACES // m))


def _are_thin(training: Training, m: int) -> bool:
    """Whether single fits of m rows are faster: few of their entries are not zero."""
    return m > MOST_THIN and training.rows.share <= SHARED_SHARE


def _are_far(training: Training) -> bool:
    """Whether rows are so far from zero that their products lose digits."""
    mean, std = training.rows.moments
    return float(np.square(mean).sum()) > MOST_OFF * float(np.square(std).sum())


def _by_products(
    training: Training, folds: tuple[Vector, Vector, Vector], most: int | None
) -> Folds | None:
    """The machines that products of rows solve."""
    kernel, own = Kernel("linear", 1.0), training.recipe
    solver, limit = own.solver, training.memory_limit
    recipe = kernel_recipe(kernel, own.form, solver, limit)  # type: ignore[arg-type]
    one, (weights, Cs, factors) = dataclasses.replace(training, recipe=recipe), folds
    return solve_folds(one, weights, Cs, factors=factors, most=most, is_last=False)


def _solve_by_newton(found: LinearFolds, k: int) -> Status | None:
    """Solve what is left of problem k by its columns; what ended it early."""
    training, chosen, tol = found.training, found.training.chosen(k), _tol(found)
    X: Any = training.rows.in_memory()
    weights = found.weights
    if chosen is not None:
        X, weights = X[chosen], weights.take(chosen, axis=1)
    X = np.ascontiguousarray(X.toarray() if sparse.issparse(X) else X, np.float64)
    y, left = training.signs(k).astype(np.float64), np.argwhere(~found.ended[:, k])
    for some in np.array_split(left, -(-len(left) * len(y) // PLACES)):
        folds, places = some.T
        C = weights[folds] * found.Cs[places, np.newaxis]
        C *= np.where(y > 0.0, found.factors[folds, k, np.newaxis], 1.0)
        ends, at = _by_newton(found, k, (X, y, C)), (folds, k, places)
        found.W[at], found.b[at] = ends.W, ends.b
        found.gaps[at] = relative_gaps(ends.proofs)
        found.ended[at] = found.gaps[at] <= tol
        if ends.status is Status.INTERRUPTED:  # or the press would be lost
            found.ended[folds[-1], k, places[-1]] = False
        if ends.status.ends_fit and not found.ended[at].all():
            return ends.status
    return None


def _by_newton(
    found: LinearFolds, k: int, data: tuple[Vector, Vector, Vector]
) -> LinearEnds:
    """Problem k of rows X and labels y with several C, (t, m), by Newton's method."""
    (X, y, C), q = data, found.recipe_of(k, None).q
    q = None if q is None else np.tile(q, (len(C), 1))
    training, signs = found.training, np.tile(y, (len(C), 1))
    problems = ManyLinearProblems(X, signs, C, *form(training), q)
    threads, tol = n_threads(training.rows.options.get("n_jobs")), _tol(found)
    is_squared = found.products is not None and not problems.loss.is_bounded
    few = SQUARED_FIRST if is_squared else 0
    limits = training.limits
    return solve_linear_places(problems, limits, threads, digits=tol, few=few)


def _tol(found: LinearFolds) -> float:
    """The gap that is asked for."""
    return found.training.limits.tol


def _solve_in_turn(found: LinearFolds) -> Status | None:
    """Solve what is left as single fits do, fold by fold; what ended it early."""
    training, rows = found.training, found.training.rows
    left = np.flatnonzero(~found.ended.all(axis=(1, 2))).tolist()
    solves = [partial(_solve_fold, found, fold) for fold in left]
    ends: Iterable[Status | None] = (solve(rows) for solve in solves)
    if is_free(training) and shared.are_apart(rows, len(solves)):
        ends = shared.solve_apart(rows, solves, training.memory_limit)
    return next((end for end in ends if end is not None), None)


def _solve_fold(found: LinearFolds, fold: int, rows: Rows) -> Status | None:
    """Solve what is left of a fold, by C; what ended it early.

    By its own rows: those without weight make single solvers slow.
    """
    kept = np.flatnonzero(found.weights[fold])
    own = rows_of(rows, kept, is_kernel=False)
    alone = found.training.recipe.q is not None  # tubes differ
    before: dict[int, tuple[Solution, float]] = {}
    for place in np.flatnonzero(~found.ended[fold].all(axis=0)).tolist():
        left = np.flatnonzero(~found.ended[fold, :, place])
        for some in np.split(left, len(left)) if alone else [left]:
            stopped = _solve_some(found, (fold, some, place), before, (own, kept))
            if stopped is not None:
                return stopped
    return None


def _solve_some(
    found: LinearFolds,
    at: tuple[int, Index, int],
    before: dict[int, tuple[Solution, float]],
    of_fold: tuple[Rows, Index],
) -> Status | None:
    """Solve some problems of a fold and a C; what ended them early.

    Each begins at its solution with the smaller C ``before``, if there is one.
    """
    (fold, some, place), (rows, kept), whole = at, of_fold, found.training
    C, tasks = found.Cs[place], whole.tasks
    negative, first = tasks.negative, int(some[0])
    training = dataclasses.replace(
        whole,
        rows=rows,
        index=whole.index[kept],
        C=found.weights[fold, kept] * C,
        tasks=BinaryTasks(
            tasks.positive[some],
            None if negative is None else negative[some],
            found.factors[fold, some],
        ),
        recipe=found.recipe_of(first, kept),
    )
    if any(k in before for k in some.tolist()):
        starts = [
            scaled(training, t, before[k][0], C / before[k][1]) if k in before else None
            for t, k in enumerate(some.tolist())
        ]
        training = dataclasses.replace(training, starts=starts)
    for k, solution in zip(some.tolist(), solve_tasks(training), strict=True):
        point, before[k] = (fold, k, place), (solution, C)
        found.W[point], found.b[point] = solution.w, solution.b
        found.gaps[point] = solution.certificate.relative_gap
        found.ended[point] = not solution.status.ends_fit
        if not found.ended[point]:
            return solution.status
    return None
