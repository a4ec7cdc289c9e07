"""Support vector regression as a problem of two rows for each sample.

A sample x with the target t and a prediction f costs C L(|t - f| - epsilon), with L the
hinge or its square: what is beyond a tube of the width epsilon. It is two rows,

    (x, label +1, q = t - epsilon)   and   (x, label -1, q = -t - epsilon),

of which at most one has a loss. With the dual variables of both, c = alpha+ - alpha-,
f is sum_i c_i x_i, so that c are what LIBSVM and scikit-learn call ``dual_coef_``.
"""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from widemargin.arrays import Vector
from widemargin.data.doubled import DoubledRows
from widemargin.data.memory import as_rows
from widemargin.data.row_vector import RowVector
from widemargin.data.rows import Rows
from widemargin.data.state import finite
from widemargin.numerics.rounding import UNIT
from widemargin.problems.base import Problem


def regression_problem(
    features: Rows | ArrayLike,
    target: Any,
    C: Any = 1.0,
    epsilon: float = 0.1,
    loss: str = "hinge",
    intercept: str = "auto",
    **options: Any,
) -> Problem:
    """The problem of a regression: two rows for each sample, the data there once.

    Parameters
    ----------
    features : Rows, or array or sparse matrix (m, n)
    target : array (m,), finite
    C : float or array (m,), default=1.0
        Weight of the loss, for all samples or for each.
    epsilon : float >= 0, default=0.1
        Half the width of the tube in which a prediction costs nothing.
    loss : {"hinge", "squared_hinge"}, default="hinge"
        Of what is beyond the tube: epsilon-insensitive, or its square.
    intercept : as of `Problem`
    **options
        ``kernel`` and ``memory_limit``, as of `Problem`.

    Returns
    -------
    Problem
        Of 2 m rows, with dual variables (2 m,): first those of predictions below the
        tube, then those of predictions above it.

    Examples
    --------
    >>> from widemargin import solve
    >>> from widemargin.problems.regression import regression_problem
    >>> problem = regression_problem([[0.0], [1.0], [2.0]], [1.0, 3.0, 5.0], C=10.0)
    >>> solution = solve(problem, tol=1e-8)
    >>> print(solution.w.round(3), round(solution.b, 3))
    [1.9] 1.1
    """
    rows = features if isinstance(features, Rows) else as_rows(features)
    m = rows.shape[0]
    if isinstance(target, RowVector):
        return _there(rows, target, C, epsilon, loss, intercept)
    target = finite("target", target, m)
    labels = np.repeat(np.array([1, -1], np.int8), m)
    q = margins(target, epsilon)
    weights = np.tile(C, 2) if np.ndim(C) else C
    rows = DoubledRows(rows)
    problem = Problem(rows, labels, weights, loss, intercept, q=q, **options)
    return _rounded(problem, epsilon)


def _there(
    rows: Rows, target: RowVector, C: Any, epsilon: float, loss: str, intercept: str
) -> Problem:
    """The problem of a regression whose targets are beside the rows."""
    doubled = DoubledRows(rows)
    q = (target.map(_margin, np.float64, sign, epsilon) for sign in (1.0, -1.0))
    signs = (np.broadcast_to(np.int8(sign), rows.shape[0]) for sign in (1, -1))
    state: Any = doubled.both(labels=tuple(signs), q=tuple(q))
    if isinstance(C, RowVector):
        C = doubled.both(C=(C, C)).C
    problem = Problem(doubled, state.labels, C, loss, intercept, q=state.q)
    return _rounded(problem, epsilon)


def _rounded(problem: Problem, epsilon: float) -> Problem:
    """The problem, whose margins are rounded unless epsilon is 0."""
    its: Any = getattr(problem, "soft", problem)  # of a hard margin
    its.q_rounding = UNIT if np.any(epsilon) else 0.0
    return problem


def _margin(target: Vector, sign: float, epsilon: float) -> Vector:
    return sign * target - epsilon


def margins(target: Vector, epsilon: float) -> Vector:
    """What the margins of the two rows of each sample have to reach: (2 m,).

    They are rounded, which certificates count: see ``q_rounding`` of `Problem`.
    """
    return np.concatenate([target - epsilon, -target - epsilon])


def are_rounded(q: Vector) -> bool:
    """Whether margins of samples, (2 m,), may be rounded: where epsilon is not 0."""
    return bool(np.add(*np.split(q, 2)).any())


def coefficients(alpha: Vector) -> Vector:
    """The signed dual variables of the samples, (m,), from those of both rows."""
    first, second = np.split(alpha, 2)
    return np.asarray(first - second)


def of_samples(c: Vector, m: int) -> Vector:
    """Coefficients of the rows of a problem, added up for each of m samples: (m,)."""
    return np.asarray(c.reshape(-1, m).sum(axis=0))
