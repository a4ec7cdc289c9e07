"""Weights of the columns that a linear kernel makes, and what rounding them costs.

A problem with this kernel has an answer c, and certificates are of w = sum_i c_i x_i;
predictions go by its numbers in float64. Where C is large w is a difference of large
terms: it is added up in twice the precision, and rounded once. By what that may move
scores the losses may be larger, as the upper bound is then.
"""

import dataclasses
import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np

from widemargin.arrays import Vector
from widemargin.data.rows import Rows
from widemargin.data.state import RowState
from widemargin.estimators.batch_problems import form
from widemargin.estimators.training import Training
from widemargin.numerics import linalg, rounding, twofold
from widemargin.numerics.rounding import SLACK, UNIT, Weights
from widemargin.numerics.twofold import Twofold
from widemargin.solution import Certificate, Solution, Status, reached
from widemargin.solutions import Solutions, columns_of, dual_variables
from widemargin.solvers.driver.advice import ROUGH, worth
from widemargin.solvers.driver.contract import Solver

# Of a `Twofold`.
PARTS = ("hi", "lo", "size")


def weighed(
    training: Training, solutions: Sequence[Solution]
) -> tuple[Sequence[Solution], Vector | None]:
    """The solutions with certificates of the weights of the columns; these, (t, n).

    None where the problems have no linear kernel.
    """
    kernel = training.recipe.kernel
    if kernel is None or kernel.name != "linear":
        return solutions, None
    W, errors = weights_of_columns(training, solutions)
    if training.is_hard or training.recipe.form is None:
        return solutions, W
    with np.errstate(all="ignore"):  # what overflows proves nothing
        over = _excess(training, solutions, W, errors)
        over[np.isnan(over)] = np.inf
        return _certified(training, solutions, over), W


def weights_of_columns(
    training: Training, solutions: Sequence[Solution]
) -> tuple[Vector, Vector]:
    """Weights by sums of rows, rounded once, and how far off they may be: (t, n)."""
    if training.tasks.are_pairs:
        g = _sums_of_pairs(training, dual_variables(solutions))
    else:
        each = [_sums(training.rows, solution.w) for solution in solutions]
        g = Twofold(*(np.stack([getattr(one, name) for one in each]) for name in PARTS))
    terms = 4 * len(training.index)  # in any order, of blocks and of both rows of one
    return g.hi, g.error(terms)


def _sums(rows: Rows, c: Vector) -> Twofold:
    """Sums of the rows by coefficients of each, perhaps twice."""
    parts = c.reshape(-1, rows.shape[0])
    found = [rows.sweep(_products, rows.state(c=part)) for part in parts]
    total: Twofold = sum(found[1:], start=found[0])
    return total


def _sums_of_pairs(training: Training, alpha: Vector) -> Twofold:
    """Sums of the rows for all pairs of classes, of perhaps thousands: (t, n) each."""
    rows, tasks, own = training.rows, training.tasks, training.chosen_of_pairs()
    positive = np.repeat(tasks.positive, training.sizes)
    c = np.where(training.index[own] == positive, alpha, -alpha)
    support = np.flatnonzero(c)
    ends = np.searchsorted(support, np.cumsum(training.sizes))
    own, c = own[support], c[support]
    g = Twofold(*np.zeros((3, len(tasks), rows.shape[1])))
    for k, (begin, end) in enumerate(itertools.pairwise([0, *ends.tolist()])):
        block = rows.take(own[begin:end])
        twofold.rmatvec(block, c[begin:end], g.hi[k], g.lo[k], g.size[k])
    return g


def _products(block: Any, part: RowState) -> Twofold:
    """Sums of the rows of a block."""
    g = Twofold(*np.zeros((3, block.shape[1])))
    twofold.rmatvec(linalg.formed(block), part.c, g.hi, g.lo, g.size)
    return g


def _excess(
    training: Training, solutions: Sequence[Solution], W: Vector, errors: Vector
) -> Vector:
    """How much larger the objective of weights may be than that of the sums: (t,).

    Errors of scores have the lengths of the columns, as in `LinearProblem`. Where rho
    divides all, weights and intercept are rounded once more.
    """
    (mean, std), loss = training.rows.moments, form(training)[0]
    found, m = columns_of(solutions), len(training.index)
    sizes = rounding.column_sizes(mean, std, m, True)
    b = found.b[:, np.newaxis]
    errors = np.concatenate([errors, np.zeros_like(b)], axis=1)
    if training.recipe.nu is not None and training.recipe.q is None:
        errors += UNIT * np.abs(np.concatenate([W, b], axis=1)) * SLACK
    ridge = (np.abs(W) * errors[:, :-1]).sum(axis=1) + 0.5 * (errors**2).sum(axis=1)
    spread, over = errors @ sizes, ridge * SLACK
    losses = np.maximum(found.proofs[:, 0], 0.0).tolist()
    each = zip(_weights(training), losses, spread.tolist(), strict=True)
    return np.asarray(over + [loss.excess(*one) for one in each])


def _weights(training: Training) -> list[Weights]:
    """The largest C and the sum of C of each problem."""
    C, sizes = training.C, training.sizes
    if np.ndim(C) == 0 and training.tasks.factors is None:
        return [Weights(float(C), float(C) * size) for size in sizes.tolist()]
    return [
        Weights(float(np.max(training.weights(k))), training.weight(k))
        for k in range(len(sizes))
    ]


def _certified(
    training: Training, solutions: Sequence[Solution], over: Vector
) -> Sequence[Solution]:
    """The solutions with upper bounds that are so much larger."""
    found = columns_of(solutions)
    proofs = found.proofs.copy()
    proofs[:, 0] += over
    proofs[:, 3] += over
    if training.recipe.nu is not None and training.recipe.q is None:
        some = found.proofs[:, 0] <= 0.0  # no function at all has the objective 0
        proofs[some, 0] = np.minimum(proofs[some, 0], 0.0)
    columns = dataclasses.replace(found, proofs=proofs)
    if isinstance(solutions, Solutions) and (columns.gaps <= training.limits.tol).all():
        return solutions.certified(columns)
    return [_retold(one, columns.certificate(k)) for k, one in enumerate(solutions)]


def _retold(solution: Solution, bounds: Certificate) -> Solution:
    """A solution with other bounds, and what is to be said of it then."""
    gap, tol, status = bounds.relative_gap, solution.tol, solution.status
    is_lost = solution.certificate.relative_gap <= tol < gap
    if status is not Status.SOLVED or not is_lost:
        return solution.changed(certificate=bounds)
    almost = gap <= min(Solver.almost * tol, ROUGH)
    status = Status.ALMOST_SOLVED if almost else Status.STALLED
    said = (
        f"Stopped by the rounding of coef_ {reached(gap, tol)}. {worth(gap, bounds)} "
        f"{Status.ALMOST_SOLVED.advice}"
    )
    return solution.changed(status=status, certificate=bounds, message=said)
