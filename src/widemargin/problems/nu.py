"""What nu means: the sum of alpha is a share of what its bounds allow.

    one class      sum alpha = nu sum C
    two classes    the same, and each class has half of it
    regression     the same, with the C of the samples; each sample is two rows

So at most a share nu of the rows, by their weights, has a loss, and at least as large a
share is a support vector. A class of few rows may have no room for its half.
"""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from widemargin.arrays import Index64, Vector
from widemargin.data.doubled import DoubledRows
from widemargin.data.rows import Rows
from widemargin.problems import sums
from widemargin.problems.base import Problem

# What is below this share of the room there is, as it is added up, has room without
# doubt: exact sums take 0.05 ms of a fit of 500 rows.
SURELY = 1.0 - 1e-6
# Objectives of one class and of two are squares of weights; so are their floors.
LEAST_WEIGHT = 1e-100


def with_squares(weights: Vector) -> Vector:
    """Weights times a power of two where the squares of the largest are no numbers.

    Machines of nu are the same for all multiples of the weights: what they decide, and
    with one class up to the unit of the scores.
    """
    largest = weights.max()
    if LEAST_WEIGHT <= largest <= 1.0 / LEAST_WEIGHT:
        return weights
    return np.ldexp(weights, -int(np.frexp(largest)[1]))


def nu_mass(nu: float, y: ArrayLike, C: ArrayLike, copies: int = 1) -> float:
    """The sum of alpha, for all rows of a problem; as much as there is room for.

    ``copies`` says how many rows each sample is.
    """
    labels, weights = _labels_and_weights(y, C)
    own, total = labels > 0, float(weights.sum())
    mass, first = nu * total / copies, float(weights[own].sum())
    room = total if own.all() else 2.0 * min(first, total - first)
    if mass <= SURELY * room:
        return mass
    return min(mass, _most(_by_class(labels, weights)))


def nu_masses(nu: float, y: Vector, C: Vector, ends: Index64, copies: int) -> Vector:
    """The sum of alpha of each of several problems, which end there: (t,)."""
    if len(ends) == 1:
        return np.array([nu_mass(nu, y, C, copies)])
    starts = np.append(0, ends[:-1])
    total, first = (np.add.reduceat(w, starts) for w in (C, np.where(y > 0.0, C, 0.0)))
    one_class = np.logical_and.reduceat(y > 0.0, starts)
    room = np.where(one_class, total, 2.0 * np.minimum(first, total - first))
    masses = nu * total / copies
    for k in np.flatnonzero(masses > SURELY * room).tolist():
        own = slice(starts[k], ends[k])
        masses[k] = nu_mass(nu, y[own], C[own], copies)
    return np.asarray(masses)


def largest_nu(least: float, most: float) -> float:
    """The largest nu that two classes allow whose weights have these sums."""
    return 2.0 * least / (least + most)


def nu_problem(
    features: Rows, y: ArrayLike, C: ArrayLike, nu: float, **options: Any
) -> Problem:
    """The problem of one class (all labels +1), or of two.

    Parameters
    ----------
    features : Rows (m, n)
    y : array (m,) of +1 and -1
    C : float or array (m,)
    nu : float in (0, 1], at most `largest_nu`
    **options : ``kernel`` and ``memory_limit``, as of `Problem`

    Returns
    -------
    Problem
    """
    intercept = "none" if (np.asarray(y) > 0).all() else "free"
    mass = nu_mass(nu, y, C)
    return Problem(features, y, C, "hinge", intercept, q=0.0, mass=mass, **options)


def nu_regression_problem(
    features: Rows, target: Vector, C: ArrayLike, nu: float, **options: Any
) -> Problem:
    """The problem of a regression whose epsilon is a variable, -rho.

    Parameters
    ----------
    features : Rows (m, n)
    target : array (m,)
    C : float or array (m,)
    nu : float in (0, 1]
    **options : ``kernel`` and ``memory_limit``, as of `Problem`

    Returns
    -------
    Problem
        Of 2 m rows, as of `widemargin.problems.regression.regression_problem`.
    """
    m = features.shape[0]
    y = np.repeat(np.array([1, -1], np.int8), m)
    weights = np.tile(np.broadcast_to(np.asarray(C, np.float64), m), 2)
    form: dict[str, Any] = {"q": np.append(target, -target)}
    form["mass"] = nu_mass(nu, y, weights, copies=2)
    return Problem(
        DoubledRows(features), y, weights, "hinge", "free", **form, **options
    )


def _labels_and_weights(y: ArrayLike, C: ArrayLike) -> tuple[NDArray[Any], Vector]:
    """Labels and C of each row, as arrays."""
    labels, weights = np.asarray(y), np.asarray(C, np.float64)
    if weights.shape != labels.shape:
        weights = np.broadcast_to(weights, labels.shape)
    return labels, weights


def most_mass(y: ArrayLike, C: ArrayLike) -> float:
    """The largest sum of alpha: twice that of the class with less.

    Rounded down: a sum that no alpha has would leave no proof.
    """
    return _most(_by_class(*_labels_and_weights(y, C)))


def _by_class(labels: NDArray[Any], weights: Vector) -> list[Vector]:
    """The weights of each class; of one class, if there is no other."""
    own = labels > 0
    return [weights] if own.all() else [weights[own], weights[~own]]


def _most(parts: list[Vector]) -> float:
    """The largest sum of alpha, by the weights of each class."""
    return len(parts) * min(map(sums.room, parts))
