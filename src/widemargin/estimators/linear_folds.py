"""The machines of all folds and all C that are linear in their columns, all at once."""

import dataclasses
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from widemargin.estimators.batch_problems import form, memory_for_products
from widemargin.estimators.engine_choice import (
    is_allowed,
)
from widemargin.estimators.folds import PLACES, Folds, Index, Vector, solve_folds
from widemargin.estimators.kernel_machines import kernel_recipe
from widemargin.estimators.linear_choice import (
    FACED_COLUMNS,
    FACED_SHARE,
    FEW_PAIRED,
    LEAST_LINEAR_GAP,
    MOST_COLUMNS,
    MOST_ENTRIES,
    has_room,
    steps_as_newton,
    suits_newton,
)
from widemargin.estimators.points import scaled
from widemargin.estimators.solving import solve_task
from widemargin.estimators.training import Recipe, Training
from widemargin.kernels.kernel import Kernel
from widemargin.problems.many_linear import ManyLinearProblems
from widemargin.solution import Status, relative_gaps
from widemargin.solvers.kernel.batch import MOST_EXACTLY
from widemargin.solvers.linear.batch import LinearEnds, solve_linear_places
from widemargin.system.threads import n_threads

# Rows up to which products of rows with fewer than FACED_COLUMNS come before Newton's
# method on the columns: of 5,000 and 60 columns that overlap both together take 4 times
# as long as that alone (`benchmarks/core/linear_folds.py`).
MOST_BRIEF = 2_500
# Entries of a regression, which has each row twice, up to which Newton's method takes
# all folds at once: 5,000 x 60 take as long one by one, 20,000 x 60 less. (2,000 x 250:
# 0.5 to 1.0 of the time, the smaller the less.)
MOST_ENTRIES_TWICE = 550_000
# Of the squared hinge products are for so many columns, and so large a share of the
# rows. With less than three for ten rows, problems have so many pair steps a row: 3,000
# rows of usps end within these in a quarter of the time, rows of noise take a tenth
# longer, and 3 to 16 times as long without a limit.
SQUARED_COLUMNS, SQUARED_SHARE, SQUARED_WIDE, SQUARED_STEPS = 128, 0.08, 0.3, 4
# How large |mean x|^2 may be, as a multiple of the mean |x - mean x|^2: beyond,
# products lose digits (spectra with an offset take 0.07 to 0.16 of the time up to 1e4,
# 0.1 to 0.6 with 1e5, 1.2 to 2.0 with 1e7). `benchmarks/core/wide_rows.py --searches`.
MOST_OFF = 1e4
_ENDED = (Status.TIME_LIMIT, Status.INTERRUPTED)


@dataclass(frozen=True)
class LinearFolds:
    """The machines of all folds and all C, as `Folds` says it of those with a kernel.

    Attributes
    ----------
    training : Training, of all rows
    recipes : list of Recipe, of the problems
    W : ndarray (folds, problems, C, n), weights
    b, gaps : ndarray (folds, problems, C), intercepts and certified relative gaps
    ended : bool ndarray (folds, problems, C), whether no limit ended a problem
    stopped : Status or None, what ended it early
    """

    training: Training
    recipes: list[Recipe]
    W: Vector
    b: Vector
    gaps: Vector
    ended: NDArray[np.bool_]
    stopped: Status | None = None

    def known(self, fold: int, test: Index) -> tuple[NDArray[Any], NDArray[Any]]:
        """Which rows get their own label, and of which that is known: (rows, C) each.

        Of none: decisions of few columns take little time.
        """
        right, is_known = np.zeros((2, len(test), self.b.shape[2]), np.bool_)
        return right, is_known

    def decisions(
        self, fold: int, test: Index, wanted: NDArray[np.int64] | None = None
    ) -> Vector:
        """Decisions of the problems for some rows: (C, rows, problems)."""
        X, W = self.training.rows.take(test), self.W[fold].transpose(1, 2, 0)
        sums = np.stack([X @ own for own in W])
        return np.asarray(sums + self.b[fold].T[:, np.newaxis])


def solve_linear_folds(
    training: Training,
    weights: Vector,
    Cs: Vector,
    factors: Vector | None = None,
    recipes: list[Recipe] | None = None,
) -> Folds | LinearFolds | None:
    """Solve the problems of all folds and C; None where others suit better.

    Parameters
    ----------
    training : Training, of all rows, whose C does not count
    weights : ndarray (folds, m), factors of C in each fold; 0 where it holds a row out
    Cs : ndarray, rising
    factors : ndarray (folds, problems) or None
        Of C in each fold for the rows of label +1 of each problem; None: 1.
    recipes : list of Recipe or None, of the problems; None: as of the training
        Those of regressions with several widths of the tube differ.
    """
    if not is_allowed(training, LEAST_LINEAR_GAP):
        return None
    shape = len(weights), len(training.tasks), len(Cs)
    factors = np.ones(shape[:2]) if factors is None else factors
    folds, recipes = (weights, Cs, factors), recipes or shape[1] * [training.recipe]
    m, n = int(training.sizes.max()), training.rows.shape[1]
    by_newton = _suits_newton(training, m, shape[0] * shape[2])
    before = _before(training, m, by_newton)
    products = None if before is None else _by_products(training, folds, before)
    if products is not None and (products.stopped or products.ended.all()):
        return products
    size, every = 8.0 * np.prod((*shape, n), dtype=float), list(range(shape[1]))
    if not (by_newton or products) or size > memory_for_products(training, every):
        return None
    found = LinearFolds(
        training,
        recipes,
        np.zeros((*shape, n)),
        np.zeros(shape),
        np.full(shape, np.inf),
        np.zeros(shape, np.bool_),
    )
    if products is not None:
        known = products.b, products.gaps, products.ended
        found = LinearFolds(training, recipes, _weights(products), *known)
    for k in np.flatnonzero(~found.ended.all(axis=(0, 2))).tolist():
        stopped = _solve(found, k, folds, by_newton)
        if stopped is not None:
            return dataclasses.replace(found, stopped=stopped)
    return found


def _weights(products: Folds) -> Vector:
    """The weights of what products of rows have solved: (folds, problems, C, n)."""
    training = products.training
    index, i, j = training.index, training.tasks.positive, training.tasks.negative
    X: Any = training.rows.in_memory()
    if j is None:
        return np.stack([_of_columns(X, own) for own in products.coefficients])
    groups = [index == g for g in range(1 + int(index.max()))]
    sums = [
        np.stack([_of_columns(X[rows], own[rows]) for rows in groups])
        for own in products.coefficients
    ]
    return np.stack([own[i, j - 1] + own[j, i] for own in sums])


def _of_columns(X: Any, table: Vector) -> Vector:
    """The weights that coefficients (rows, r, C) make of these rows: (r, C, n)."""
    _, r, n_C = table.shape
    W = X.T @ table.reshape(len(table), -1)
    return np.asarray(W.reshape(-1, r, n_C).transpose(1, 2, 0))


def _suits_newton(training: Training, m: int, t: int) -> bool:
    """Whether Newton's method on the columns takes t problems of m rows each.

    A part of them at once. Many problems keep all threads busy.
    """
    n = training.rows.shape[1]
    if isinstance(training.rows.in_memory(), np.ndarray):
        most = MOST_ENTRIES if training.recipe.q is None else MOST_ENTRIES_TWICE
        suits = n <= min(m, MOST_COLUMNS) and m * (n + 1) <= most
    else:
        suits = suits_newton(training, m)
    return suits and has_room(training, m, min(t, 1 + PLACES // m))


def _before(training: Training, m: int, by_newton: bool) -> dict[str, Any] | None:
    """How products of rows solve problems of m rows before others; None: they do not.

    ``most`` are the pair steps of each that they have: as many as they take where it is
    not given.
    """
    X, is_regression = training.rows.in_memory(), training.recipe.q is not None
    if not isinstance(X, np.ndarray) or m > MOST_EXACTLY or is_regression:
        return None
    if _are_far(training):
        return None
    n = X.shape[1]
    if not form(training)[0].is_bounded:
        if n < max(SQUARED_COLUMNS, SQUARED_SHARE * m):
            return None
        return {} if n >= SQUARED_WIDE * m else {"most": SQUARED_STEPS * m}
    if n >= FACED_SHARE * m or m <= FEW_PAIRED:
        return {}
    if n < FACED_COLUMNS and m > MOST_BRIEF:
        return None
    return {"most": steps_as_newton(n) if by_newton else m}


def _are_far(training: Training) -> bool:
    """Whether rows are so far from zero that their products lose digits."""
    mean, std = training.rows.moments
    return float(np.square(mean).sum()) > MOST_OFF * float(np.square(std).sum())


def _by_products(
    training: Training, folds: tuple[Vector, Vector, Vector], before: dict[str, Any]
) -> Folds | None:
    """The same by products of rows, all or as far as their steps go."""
    kernel, own = Kernel("linear", 1.0), training.recipe
    solver, limit = own.solver, training.memory_limit
    recipe = kernel_recipe(kernel, own.form, solver, limit)  # type: ignore[arg-type]
    one = dataclasses.replace(training, recipe=recipe)
    weights, Cs, factors = folds
    return solve_folds(one, weights, Cs, factors=factors, **before)


def _solve(
    found: LinearFolds, k: int, folds: tuple[Vector, Vector, Vector], by_newton: bool
) -> Status | None:
    """Solve what is left of problem k; what ended it early."""
    (weights, Cs, factors), training = folds, found.training
    limits, left = training.limits, np.argwhere(~found.ended[:, k])
    parts = max(1, len(left) * int(training.sizes[k]) // PLACES)
    for some in np.array_split(left, parts) if by_newton else ():
        own, places = some.T
        at = own, k, places
        C = weights[own] * Cs[places, np.newaxis]
        ends = _by_newton(found, k, C, factors[own, k])
        found.W[at], found.b[at] = ends.W, ends.b
        found.gaps[at] = relative_gaps(ends.proofs)
        found.ended[at] = found.gaps[at] <= limits.tol
        if ends.status is Status.INTERRUPTED:  # or the press would be lost
            found.ended[own[-1], k, places[-1]] = False
        if ends.status in _ENDED and not found.ended[at].all():
            return ends.status
    before: list[Any] = [None] * len(weights)
    for fold, place in np.argwhere(~found.ended[:, k]).tolist():
        one = dataclasses.replace(
            training,
            C=weights[fold] * Cs[place],
            tasks=training.tasks.weighed(factors[fold]),
            starts=_start(training, k, before[fold], Cs[place]),
            recipe=found.recipes[k],
        )
        _, solution = solve_task(one, k, None)
        at, before[fold] = (fold, k, place), (solution, Cs[place])
        found.W[at], found.b[at] = solution.w, solution.b
        found.gaps[at] = solution.certificate.relative_gap
        found.ended[at] = solution.status not in _ENDED
        if not found.ended[at]:
            return solution.status
    return None


def _start(training: Training, k: int, before: Any, C: float) -> Any:
    """Where problem k starts: at the solution of a smaller C, if there is one."""
    if before is None:
        return None
    starts: list[Any] = [None] * len(training.tasks)
    starts[k] = scaled(training, k, before[0], C / before[1])
    return starts


def _by_newton(found: LinearFolds, k: int, C: Vector, factors: Vector) -> LinearEnds:
    """Problem k with several C of all rows (t, m), by Newton's method on the columns.

    ``factors`` (t,) are those of the rows of label +1.
    """
    training, q = found.training, found.recipes[k].q
    X: Any = training.rows.in_memory()
    chosen = training.chosen(k)
    if chosen is not None:
        X, C = X[chosen], C.take(chosen, axis=1)
    X = np.ascontiguousarray(X.toarray() if sparse.issparse(X) else X, np.float64)
    y = training.signs(k).astype(np.float64)
    C = np.where(y > 0.0, C * factors[:, np.newaxis], C)
    q = None if q is None else np.tile(q, (len(C), 1))
    problems = ManyLinearProblems(X, np.tile(y, (len(C), 1)), C, *form(training), q)
    threads, limits = n_threads(training.rows.options.get("n_jobs")), training.limits
    return solve_linear_places(problems, limits, threads, digits=limits.tol)
