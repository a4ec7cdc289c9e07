"""The binary problems of a fit that are small enough to be solved all at once."""

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy import sparse

from widemargin.arrays import Mask, Vector
from widemargin.estimators.batch_problems import (
    Found,
    form,
    numbered,
    solve_by_products,
    solve_chosen,
)
from widemargin.estimators.engine_choice import (
    ROUGH,
    is_allowed,
    largest_of,
    refuse_named,
    small_enough,
)
from widemargin.estimators.equal_samples import without_equals
from widemargin.estimators.linear_choice import (
    LEAST_LINEAR_GAP,
    Before,
    has_room,
    steps_before_newton,
    steps_before_others,
    steps_of_pairs,
    suits_descent,
    suits_gradients,
    suits_newton,
    suits_products,
)
from widemargin.estimators.training import Training
from widemargin.problems.many_linear import ManyLinearProblems
from widemargin.solution import Solution, Status, reached
from widemargin.solutions import Solutions
from widemargin.solvers.kernel.batch import LEAST_GAP, NAME
from widemargin.solvers.linear.batch import solve_many_linear
from widemargin.system.threads import n_threads

# Rows up to which pair steps end at the optimum itself: examples to look at.
FEW_ROWS = 16


def solve_batch(training: Training) -> Found:
    """Solutions of small problems, by their numbers; stalled ones need another solver.

    There are none where the user asked for what this solver does not do. Where a gap is
    asked for that is below its least one, it goes as far as that: another solver alone
    may never come there.
    """
    part, tol = training, training.limits.tol
    if training.recipe.kernel is None:
        return {}
    if tol < LEAST_GAP and training.recipe.solver != NAME:
        part = training.limited(tol=LEAST_GAP)
    if not is_allowed(part, may_curve=True):
        return {}
    fewer = without_equals(part, largest_of(part))
    if fewer is None:
        found = _kernel_batch(part)
    else:
        some = numbered(_kernel_batch(fewer.training))
        found = {k: fewer.for_all(k, solution) for k, solution in some.items()}
    if part is training:
        return found
    return {k: _asked_for(one, tol) for k, one in numbered(found).items()}


def _asked_for(solution: Solution, tol: float) -> Solution:
    """The solution of a fit with another tol, stalled where its gap is larger."""
    gap, status = solution.certificate.relative_gap, solution.status
    if status is Status.SOLVED and gap > tol:
        status = Status.STALLED
    said = solution.message.replace(reached(gap, solution.tol), reached(gap, tol))
    return solution.changed(status=status, tol=tol, message=said)


def _kernel_batch(training: Training) -> Found:
    """`solve_batch` with a kernel, without merging equal samples."""
    chosen = small_enough(training)
    found = solve_chosen(training, chosen) if chosen else {}
    if found is None and training.recipe.solver == NAME:
        refuse_named(ROUGH)
    return found or {}


def solve_linear_batch(training: Training) -> Found:
    """Solutions of small problems that are linear in their columns, by their numbers.

    Stalled ones need another solver; there are none where others suit better.
    """
    try:
        return _linear_batch(training)
    except KeyboardInterrupt:  # they end at their first step, with what there is
        training.callbacks.interrupt()
        return {}


def _linear_batch(training: Training) -> Found:
    """`solve_linear_batch`, which Ctrl-C ends outside of the core."""
    # Along a path, too: from zero it is faster than others are from the last answer.
    training, starts = dataclasses.replace(training, starts=None), training.starts
    if not is_allowed(training, LEAST_LINEAR_GAP):
        return {}
    m, chosen = training.rows.shape[0], list(range(len(training.tasks)))
    may_take, is_classifier = is_allowed(training), training.recipe.q is None
    if may_take and is_classifier and m <= FEW_ROWS and form(training)[0].is_bounded:
        products = solve_by_products(training, chosen)
        if isinstance(products, Solutions) and not _are_stalled(products):
            return products
    if suits_newton(training, m):
        return _by_steps_or_newton(training, chosen, may_take)
    found: dict[int, Solution] = {}
    visits = suits_descent(training)
    if visits or suits_gradients(training):
        found = dict(enumerate(_of_sparse(training, visits, starts)))
        chosen = [k for k, one in found.items() if one.status is Status.STALLED]
    if not (chosen and may_take) or _are_interrupted(found):
        return found
    if suits_products(training, m):
        found |= numbered(solve_by_products(training, chosen))
    elif (before := steps_before_others(training)).steps:
        found |= numbered(solve_by_products(training, chosen, before.brief))
    return found


def _are_interrupted(found: dict[int, Solution]) -> bool:
    """Whether Ctrl-C has ended one."""
    return any(solution.status is Status.INTERRUPTED for solution in found.values())


def _are_stalled(found: Sequence[Solution]) -> bool:
    """Whether one is."""
    return any(solution.status is Status.STALLED for solution in found)


def solve_linear_pairs(training: Training) -> Found:
    """Solutions of linear problems of pairs of classes, by number: those that suit."""
    found: dict[int, Solution] = {}
    training = dataclasses.replace(training, starts=None)  # as above
    if not is_allowed(training, LEAST_LINEAR_GAP):
        return found
    training.rows.check_finite()
    sizes = training.sizes.tolist()
    suit = {m for m in set(sizes) if suits_products(training, m)}
    few = [k for k, m in enumerate(sizes) if m in suit]
    try:
        if few and is_allowed(training):
            before = steps_of_pairs(training)
            products = solve_by_products(training, few, before and before.brief)
            if isinstance(products, Solutions) and products.columns.are_solved:
                return products
            found = numbered(products)
        if not _are_interrupted(found):
            others = [k for k, m in enumerate(sizes) if m not in suit]
            _add_pairs_by_steps(training, others, found)
        if not _are_interrupted(found):
            ended = _ended(found)
            left = [k for k in range(len(sizes)) if k not in ended]
            _add_pairs_by_newton(training, left, found)
    except KeyboardInterrupt:  # in turn the others end at their first step
        training.callbacks.interrupt()
    return found


def _add_pairs_by_steps(
    training: Training, chosen: list[int], found: dict[int, Solution]
) -> None:
    """Add the same by what comes before Newton's method on the columns."""
    sizes = training.sizes.tolist()
    plans = {k: steps_before_newton(training, sizes[k]) for k in chosen}
    plans = {
        k: before
        for k, before in plans.items()
        if before.steps and (not before.newton or suits_newton(training, sizes[k]))
    }
    if not (plans and is_allowed(training)):
        return
    chosen = list(plans)
    longest = Before(*map(max, zip(*plans.values(), strict=True)))
    if longest.newton:
        _add_pairs_by_newton(training, chosen, found, longest.newton)
        ended = _ended(found)
        chosen = [k for k in chosen if k not in ended]
    if chosen and not _are_interrupted(found):
        found |= numbered(solve_by_products(training, chosen, longest.brief))


def _add_pairs_by_newton(
    training: Training, chosen: list[int], found: dict[int, Solution], few: int = 0
) -> None:
    """Add the same by Newton's method on the columns, of those that it suits.

    One by one: what Ctrl-C ends keeps those before it.
    """
    for k in chosen:
        solution = _solve_pair(training, k, few)
        if solution is not None:
            found[k] = solution
            if solution.status is Status.INTERRUPTED:
                break


def _solve_pair(training: Training, k: int, few: int) -> Solution | None:
    """The solution of one pair; None where another solver suits better."""
    m = int(training.sizes[k])
    if not suits_newton(training, m) or training.limits.is_late:
        return None
    if not has_room(training, m, 1):
        return None
    own: Any = training.chosen(k)
    X, (y, C) = training.rows.take(own), _labels_and_weights(training, [k])
    return _newton(training, X, y, C, few)[0]


def _by_steps_or_newton(training: Training, chosen: list[int], may: bool) -> Found:
    """Solutions by Newton's method on the columns, perhaps after some pair steps.

    They solve many problems where rows are hardly more than the columns.
    """
    found: dict[int, Solution] = {}
    m = training.rows.shape[0]
    before = steps_before_newton(training, m) if may else Before(0)
    if before.newton:
        found = _by_newton(training, chosen, before.newton)
        if _are_interrupted(found):
            return found
        found = _ended(found)
    left = [k for k in chosen if k not in found]
    if left and before.steps:
        products = solve_by_products(training, left, before.brief)
        is_all = isinstance(products, Solutions) and not _are_stalled(products)
        if is_all and not found:
            return products
        found |= numbered(products)
        if _are_interrupted(found):
            return found
        found = _ended(found)
    return found | _by_newton(training, [k for k in chosen if k not in found])


def _ended(found: dict[int, Solution]) -> dict[int, Solution]:
    """Those that need no other solver."""
    return {k: one for k, one in found.items() if one.status is not Status.STALLED}


def _by_newton(
    training: Training, chosen: list[int], few: int = 0
) -> dict[int, Solution]:
    """Solutions by Newton's method on the columns; some may be stalled."""
    rows, m = training.rows, training.rows.shape[0]
    if not chosen or not has_room(training, m, len(chosen)):
        return {}
    rows.check_finite()
    y, C = _labels_and_weights(training, chosen)
    solutions = _newton(training, rows.in_memory(), y, C, few)
    return dict(zip(chosen, solutions, strict=True))


def _of_sparse(training: Training, visits: float, starts: Any) -> list[Solution]:
    """Solutions of sparse rows, by so many visits of descent or by gradients."""
    X: Any = training.rows.in_memory()
    if X.dtype not in (np.float32, np.float64):
        X = X.astype(np.float64)
    y, C = _labels_and_weights(training, range(len(training.tasks)))
    found = _solve_many(training, X, y, C, visits=visits, starts=starts)
    left = [k for k, one in enumerate(found) if one.status is Status.STALLED]
    if visits and left and suits_gradients(training):
        others = _solve_many(training, X, y[left], C[left])
        for k, one in zip(left, others, strict=True):
            if one.status is not Status.STALLED:
                found[k] = one
    return found


def _labels_and_weights(
    training: Training, chosen: Sequence[int]
) -> tuple[Vector, Vector]:
    """Labels of each chosen problem, and C, (t, m)."""
    y = np.stack([training.signs(k) for k in chosen]).astype(np.float64)
    C = np.empty(y.shape)
    for row, k in zip(C, chosen, strict=True):
        row[:] = training.weights(k)
    return y, C


def _newton(
    training: Training, X: Any, y: Vector, C: Vector, few: int = 0
) -> list[Solution]:
    """Newton's solutions for labels y (t, m) of rows X; some may be stalled."""
    X = np.ascontiguousarray(X.toarray() if sparse.issparse(X) else X, np.float64)
    return _solve_many(training, X, y, C, few=few)


def _solve_many(
    training: Training,
    X: Any,
    y: Vector,
    C: Vector,
    *,
    visits: float = 0.0,
    starts: Any = None,
    few: int = 0,
) -> list[Solution]:
    """The solutions of labels and C (t, m) of rows X, some of which weigh nothing."""
    q, kept = training.recipe.q, C[0] > 0.0  # the same in all: see training_of
    points = _points(starts, len(kept) if q is None else len(q))
    if not kept.all():
        X, y, C = X[kept], *(np.ascontiguousarray(one[:, kept]) for one in (y, C))
        both = kept if q is None else np.tile(kept, 2)
        q = q if q is None else q[both]
        points = points if points is None else (points[0][:, both], points[1])
    q = q if q is None else np.tile(q, (len(y), 1))
    problems = ManyLinearProblems(X, y, C, *form(training), q)
    threads = n_threads(training.rows.options.get("n_jobs"))
    found = solve_many_linear(
        problems,
        training.limits,
        threads,
        to_digits=training.recipe.to_digits,
        visits=visits,
        few=few,
        seed=(training.seed or 0) % 2**64,
        starts=points,
    )
    return found if kept.all() else [_with_zeros(one, kept) for one in found]


def _points(starts: Any, places: int) -> tuple[Vector, Vector] | None:
    """Dual variables (t, places) and intercepts (t,) to start from, if any."""
    if not starts or any(start is None for start in starts):
        return None
    ends = [
        (one.alpha, one.b) if isinstance(one, Solution) else (one[0], one[2])
        for one in starts
    ]
    if any(alpha is None or len(alpha) != places for alpha, _ in ends):
        return None
    return np.stack([alpha for alpha, _ in ends]), np.array([b for _, b in ends])


def _with_zeros(solution: Solution, kept: Mask) -> Solution:
    """The solution with the alpha of rows without weight, which is 0."""
    copies = len(solution.alpha) // np.count_nonzero(kept)
    alpha = np.zeros((copies, len(kept)))
    alpha[:, kept] = solution.alpha.reshape(copies, -1)
    return dataclasses.replace(solution, alpha=alpha.ravel())
