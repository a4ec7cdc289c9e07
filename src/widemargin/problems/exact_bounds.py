"""What the answer of a problem of low rank proves about the exact kernel problem.

With z(x)'z(x') near k(x, x') both have the same dual constraints, so that alpha of one
is feasible for the other. With c = Y alpha and the values of K

    D(t alpha) = t sum alpha - t^2 / 2 (c'K c [+ (sum c)^2] [+ sum alpha_i^2 / (2 C_i)])

is a lower bound of the exact optimum for each t >= 0 that keeps t alpha feasible. Any
f = sum_j beta_j k(., x_j) gives the upper bound

    P(f, b) = 1/2 (beta'K beta [+ b^2]) + sum_i C_i L(1 - y_i (f(x_i) + b)).

The terms in brackets belong to a penalized intercept and to the squared hinge. Both
bounds take scores and squared norms as rounding may have changed them at most:
coefficients of opposite signs cancel where C is large, or landmarks are nearly
dependent.
"""

from dataclasses import replace
from typing import Any

import numpy as np

from widemargin.arrays import Index, Vector
from widemargin.data.rows import Rows
from widemargin.data.state import RowState
from widemargin.features.maps import SquareFeatures, tiles
from widemargin.kernels.expansion import Expansion
from widemargin.kernels.kernel import Kernel
from widemargin.losses.pointwise import PointwiseLoss
from widemargin.numerics import linalg, rounding
from widemargin.numerics.rounding import SINGLE, SLACK, UNIT, gamma_n
from widemargin.problems.base import Problem
from widemargin.problems.intercept import best_intercept
from widemargin.problems.scores import Sums
from widemargin.solution import Certificate

# Share of the objective by which bounds may contradict each other: far more than what
# sums in float64 lose, far less than what a kernel that is not psd does.
CONTRADICTION = 1e-9


class NormedExpansion:
    """A function f = sum_j c_j k(., x_j) of some rows x_j, and its norm, in float64.

    Parameters
    ----------
    rows : Rows (m, n), all of them; of a precomputed kernel K, (m, m)
    kernel : Kernel, with gamma as a number
    J : int ndarray (l,)
    c : ndarray (l,)

    Attributes
    ----------
    square : float, the squared norm c'K_JJ c
    rounding : float, how far that may be off
    total : float, sum c
    length : float, a bound of the norm, sum |c_j| k_jj^(1/2)

    Notes
    -----
    Made with l^2 kernel values; m l for the scores of m rows.
    """

    def __init__(
        self, rows: Rows, kernel: Kernel, J: Index, c: Vector, precise: bool = False
    ) -> None:
        self._again = rows, kernel, J, c
        self._f, self.total = Expansion.of_rows(rows, kernel, J, c), float(c.sum())
        self._precise = precise and kernel.is_named and not self._f.is_empty
        self.square = self.rounding = self.length = 0.0
        if len(J):
            some = rows.take(J)
            own = some[:, J] if kernel.is_precomputed else some
            self.length = float(np.abs(c) @ np.sqrt(np.abs(kernel.diag(own))))
            self.square, error = self.of(some).squared_norm(c)
            unit = 0.0 if kernel.is_named else _unit(kernel, some)
            self.rounding = (error + unit * self.length**2) * SLACK

    def precise(self) -> "NormedExpansion":
        """The function with kernel values in twice the precision."""
        return NormedExpansion(*self._again, precise=True)

    def of(self, block: Any) -> Sums:
        """Values of f for some rows: (k,)."""
        if self._precise:
            return Sums(*self._f.twofold(block))
        values, errors = self._f.bounded(block)
        return Sums(values[:, 0], errors[:, 0])


def _unit(kernel: Kernel, some: Any) -> float:
    """Rounding of the user's own values, where they are float32; of some rows."""
    dtype = some.dtype
    if not kernel.is_precomputed:
        function: Any = kernel.name
        dtype = np.asarray(function(some[:1], some[:1])).dtype
    return SINGLE if dtype.kind == "f" and dtype.itemsize < 8 else 0.0


class Monomials:
    """A function f = z(x)'w of the monomials of a polynomial kernel, in float64.

    It lies in the space of the kernel, with the norm of w.
    """

    def __init__(self, expand: SquareFeatures, w: Vector) -> None:
        self._expand, self._w = replace(expand, dtype=np.float64), w
        self.square = float(w @ w)
        self.rounding = gamma_n(len(w) + 2) * self.square

    def precise(self) -> "Monomials":
        """Itself: nothing cancels in a squared norm of w."""
        return self

    def of(self, block: Any) -> Sums:
        """Values of f for some rows: (k,)."""
        off, size = gamma_n(len(self._w) + 8) * SLACK, np.abs(self._w)
        found = [
            (features @ self._w, off * (np.abs(features) @ size))
            for _, features in tiles(self._expand, block)
        ]
        values, errors = zip(*found, strict=True)
        return Sums(np.concatenate(values), np.concatenate(errors))


def exact_certificate(
    problem: Problem,
    alpha: Vector,
    lifted: NormedExpansion,
    model: NormedExpansion | Monomials | None,
    b: float,
) -> Certificate:
    """Bounds of the optimum of an exact kernel problem, in float64.

    Parameters
    ----------
    problem : Problem
        Rows x_i, labels, C, loss and intercept, without the kernel.
    alpha : ndarray (m,)
        Feasible dual variables.
    lifted : NormedExpansion, of c = Y alpha
    model : NormedExpansion, Monomials or None
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
    hinge. One sweep; a second one in twice the precision, where rounding is more than a
    tenth of the gap.
    """
    bounds = _certificate(problem, alpha, lifted, model, b)
    if bounds.hides(0.0):
        model = model and model.precise()
        return _certificate(problem, alpha, lifted.precise(), model, b)
    return bounds


def _certificate(
    problem: Problem,
    alpha: Vector,
    lifted: NormedExpansion,
    model: NormedExpansion | Monomials | None,
    b: float,
) -> Certificate:
    """The bounds by one sweep, in the precision of the expansions."""
    penalized = problem.intercept == "penalized"
    total = abs(lifted.total) + gamma_n(len(alpha) + 4) * float(alpha.sum())
    square = _square(lifted) + penalized * total**2
    dual, t = _dual(problem, alpha, square)
    f, scale = (lifted, t) if model is None else (model, 1.0)
    state = problem.state(score=0.0, error=0.0, low=0.0)
    problem.rows.sweep(_score, state, f, scale)
    if model is None:
        b = t * lifted.total if penalized else 0.0
        if problem.intercept == "free":
            b = best_intercept(state, b, problem.pointwise)
    losses, largest = state.sweep(_losses, b, problem.pointwise)
    off = gamma_n(problem.rows.shape[0] + 8)
    rest = 0.5 * (scale**2 * _square(f) + penalized * b * b)
    primal = (1.0 + off) * (rest + largest)
    dual -= _repair_error(problem, alpha, lifted, t) + off * t * float(alpha.sum())
    indefinite = any(g.square < -g.rounding for g in (f, lifted))
    if indefinite or dual - primal > CONTRADICTION * primal:
        dual = -np.inf
    rounding = (
        largest - losses + 0.5 * (scale**2 * f.rounding + t * t * lifted.rounding)
    )
    return Certificate(primal, min(dual, primal), rounding=rounding)


def _repair_error(
    problem: Problem, alpha: Vector, f: NormedExpansion, t: float
) -> float:
    """What it costs to make t y'alpha zero exactly."""
    if problem.intercept != "free":
        return 0.0
    linear = float(alpha.sum())
    total = abs(f.total) + gamma_n(len(alpha) + 4) * linear
    # Slopes sum alpha_i |1 - y_i f_i| of a class, by its |w_h| |w|, each below |c|'k.
    size = f.length
    slope = linear + t * size * size
    return rounding.repair_error(t * total, t * linear, t * slope, (t * size) ** 2)


def _square(f: NormedExpansion | Monomials) -> float:
    """The squared norm, as large as it may be."""
    return max(f.square, 0.0) + f.rounding


def _dual(problem: Problem, alpha: Vector, square: float) -> tuple[float, float]:
    """D(t alpha) with the best t, from the squared norm of w and b; that t."""
    some = alpha > 0.0
    alpha, C = alpha[some], problem.C[some]
    linear, most = float(alpha.sum()), np.inf
    if problem.is_bounded:
        most = float((C / alpha).min(initial=np.inf))
    square += 2.0 * problem.pointwise.dual_term(alpha, C)
    t = min(most, linear / square) if square > 0.0 else 0.0
    return t * linear - 0.5 * t * t * square, t


def _score(
    block: Any, part: RowState, f: NormedExpansion | Monomials, scale: float
) -> None:
    values, errors, low = f.of(linalg.formed(block))
    part.score = scale * values
    # Rounding of the product with t too.
    part.error = abs(scale) * errors + (scale != 1.0) * UNIT * np.abs(part.score)
    part.low = scale * low + np.zeros(len(values))


def _losses(part: RowState, b: float, loss: PointwiseLoss) -> tuple[float, float]:
    """Sum C L of rows, and what it is at most without rounding."""
    f = Sums(part.score, part.error, part.low)
    plain, largest = f.slacks(part.labels, b)
    return loss.total(part.C, plain), loss.total(part.C, largest)
