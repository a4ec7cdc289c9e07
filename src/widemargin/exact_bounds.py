"""What the answer of a problem of low rank proves about the exact kernel problem.

With z(x)'z(x') near k(x, x') both have the same dual constraints, so that alpha of one
is feasible for the other. With c = Y alpha and the values of K

    D(t alpha) = t sum alpha - t^2 / 2 (c'K c [+ (sum c)^2] [+ sum alpha_i^2 / (2 C_i)])

is a lower bound of the exact optimum for each t >= 0 that keeps t alpha feasible. Any
f = sum_j beta_j k(., x_j) gives the upper bound

    P(f, b) = 1/2 (beta'K beta [+ b^2]) + sum_i C_i L(1 - y_i (f(x_i) + b)).

The terms in brackets belong to a penalized intercept and to the squared hinge. Both
bounds take squared norms as large as rounding may have hidden: coefficients of opposite
signs cancel where C is large, or landmarks are nearly dependent.
"""

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from widemargin import linalg
from widemargin.data.rows import Rows
from widemargin.data.state import RowState
from widemargin.feature_map import SquareFeatures, tiles
from widemargin.intercept import best_intercept
from widemargin.kernel_decisions import KernelDecisions
from widemargin.kernels import Kernel
from widemargin.problem import Problem, scored_losses
from widemargin.solution import Certificate

Vector = NDArray[np.float64]
Index = NDArray[np.intp]

# Rounding of c'Kc, as a multiple of (sum_j |c_j| k_jj^(1/2))^2, and the share of the
# objective by which bounds may contradict each other: rounding of scores. Not tuned.
ROUNDING, CONTRADICTION = 4.0 * float(np.finfo(np.float64).eps), 1e-9
SINGLE = float(np.finfo(np.float32).eps)


class Combination:
    """A function f = sum_j c_j k(., x_j) of some rows x_j, in float64.

    Parameters
    ----------
    rows : Rows (m, n), all of them; of a precomputed kernel K, (m, m)
    kernel : Kernel, with gamma as a number
    J : int ndarray (l,)
    c : ndarray (l,)

    Attributes
    ----------
    square : float, the squared norm c'K_JJ c
    rounding : float, how far that may be off where the kernel is positive semidefinite
    total : float, sum c

    Notes
    -----
    Made with l^2 kernel values; m l for the scores of m rows.
    """

    def __init__(self, rows: Rows, kernel: Kernel, J: Index, c: Vector) -> None:
        vectors, self.total = rows.take(J), float(c.sum())
        self._columns = J if kernel.name == "precomputed" else None
        counts = np.array([0, len(J)])
        self._f = KernelDecisions(kernel, vectors, c[np.newaxis], np.zeros(1), counts)
        self.square = float(c @ self.of(vectors)) if len(J) else 0.0
        self.rounding = _rounding(kernel, vectors, J, c) if len(J) else 0.0

    def of(self, block: Any) -> Vector:
        """Values of f for some rows: (k,)."""
        if self._columns is None:
            return self._f(block)[:, 0]
        values = linalg.dense(block[:, self._columns])
        return np.asarray(values @ self._f.weights[0], dtype=np.float64)


def _rounding(kernel: Kernel, vectors: Any, J: Index, c: Vector) -> float:
    """How far c'Kc may be off, float32 values of a kernel of the user included."""
    dtype, values = np.dtype(np.float64), vectors
    if kernel.name == "precomputed":
        dtype, values = vectors.dtype, vectors[:, J]
    elif not kernel.is_named:
        function: Any = kernel.name
        dtype = np.asarray(function(vectors[:1], vectors[:1])).dtype
    unit = 0.5 * SINGLE if dtype.kind == "f" and dtype.itemsize < 8 else 0.0
    size = np.sqrt(np.abs(kernel.diag(values)))
    return (ROUNDING + unit) * float(np.abs(c) @ size) ** 2


class Monomials:
    """A function f = z(x)'w of the monomials of a polynomial kernel, in float64.

    It lies in the space of the kernel, with the norm of w.
    """

    def __init__(self, expand: SquareFeatures, w: Vector) -> None:
        self._expand, self._w = replace(expand, dtype=np.float64), w
        self.square, self.rounding = float(w @ w), 0.0

    def of(self, block: Any) -> Vector:
        """Values of f for some rows: (k,)."""
        found = [features @ self._w for _, features in tiles(self._expand, block)]
        return np.concatenate(found)


def exact_certificate(
    problem: Problem,
    alpha: Vector,
    lifted: Combination,
    model: Combination | Monomials | None,
    b: float,
) -> Certificate:
    """Bounds of the optimum of an exact kernel problem, in float64.

    Parameters
    ----------
    problem : Problem
        Rows x_i, labels, C, loss and intercept, without the kernel.
    alpha : ndarray (m,)
        Feasible dual variables.
    lifted : Combination, of c = Y alpha
    model : Combination, Monomials or None
        The f of the upper bound, with the intercept b; None: t times ``lifted``, with
        the best intercept.
    b : float

    Returns
    -------
    Certificate
        Its lower bound is minus infinity where a squared norm is negative, or the upper
        bound is below it, by more than rounding: the kernel is not positive
        semidefinite, and nothing is proved.

    Notes
    -----
    Both bounds have the t of the best lower one: it keeps t alpha below C for the
    hinge. One sweep.
    """
    penalized = problem.intercept == "penalized"
    square = _square(lifted) + penalized * lifted.total**2
    dual, t = _dual(problem, alpha, square)
    f, scale = (lifted, t) if model is None else (model, 1.0)
    state = problem.state(score=0.0)
    problem.rows.sweep(_score, state, f, scale)
    if model is None:
        b = t * lifted.total if penalized else 0.0
        if problem.intercept == "free":
            b = best_intercept(state, b, problem.loss)
    losses = float(state.sweep(scored_losses, b, problem.loss))
    primal = 0.5 * (scale**2 * _square(f) + penalized * b * b) + losses
    indefinite = any(g.square < -g.rounding for g in (f, lifted))
    if indefinite or dual - primal > CONTRADICTION * primal:
        dual = -np.inf
    dual = min(dual, primal)
    floor = float(np.finfo(np.float64).eps * problem.zero_objective)
    return Certificate(primal, dual, floor)


def _square(f: Combination | Monomials) -> float:
    """The squared norm, as large as it may be."""
    return max(f.square, 0.0) + f.rounding


def _dual(problem: Problem, alpha: Vector, square: float) -> tuple[float, float]:
    """D(t alpha) with the best t, from the squared norm of w and b; that t."""
    some = alpha > 0.0
    alpha, C = alpha[some], problem.C[some]
    linear, most = float(alpha.sum()), np.inf
    if problem.is_bounded:
        most = float((C / alpha).min(initial=np.inf))
    else:
        square += float((alpha * alpha / C).sum()) / 2.0
    t = min(most, linear / square) if square > 0.0 else 0.0
    return t * linear - 0.5 * t * t * square, t


def _score(
    block: Any, part: RowState, f: Combination | Monomials, scale: float
) -> None:
    part.score = scale * f.of(linalg.formed(block))
