"""A norm of the losses with a matrix, for support vector machines on a budget."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike
from scipy import linalg, optimize

from widemargin.arrays import Vector
from widemargin.losses.norms import LossNorm
from widemargin.losses.projections import levelled
from widemargin.parameters import Checker
from widemargin.system import deadline

Matrix = Vector
_EPS = float(np.finfo(float).eps)


@dataclass(frozen=True, kw_only=True, eq=False)
class Mahalanobis(LossNorm):  # numpydoc ignore=PR02
    """The norm (xi' M xi)^(1/2) of the least slacks; weights must be 1.

    N(t) = min over xi >= max(0, t), or, for slacks of either sign, over xi >= t.
    A: a >= 0 with (a + mu)' M^-1 (a + mu) <= 1 for some mu >= 0, or for mu = 0.

    Parameters
    ----------
    M : array-like (m, m), symmetric positive definite.
    nonneg_slack : bool. Whether slacks are nonnegative, as in (2). Without that, A is
        the set of (4): the dual of (2) for a diagonal M only.

    Raises
    ------
    ValueError if M is not symmetric positive definite, or a weight is not 1.

    Notes
    -----
    **For some tens of rows**, in their order; M is dense. O(m^3) by nonnegative least
    squares, some hundred times that in ``project``, of which a solve takes some tens:
    4 s of processor time for 30 rows, more than a minute for 60, but 1 s for slacks of
    either sign.

    The error of ``project`` is the rounding of v; a point beyond a million sizes of the
    set is taken to be at that distance, and its projection may be 1e-6 of the set off.

    References
    ----------
    [dekel2006]_, section 2, (2) and (4).
    """

    _far: ClassVar[float] = 1e6

    M: ArrayLike
    nonneg_slack: bool = True
    _root: Matrix = field(init=False, repr=False)
    _inverse_root: Matrix = field(init=False, repr=False)

    def __post_init__(self) -> None:
        Checker("Mahalanobis").choice("nonneg_slack", self.nonneg_slack, (True, False))
        M = _positive_definite(self.M)
        root = linalg.cholesky(M, lower=True)
        inverse = linalg.solve_triangular(root, np.eye(len(M)), lower=True)
        for name, matrix in (("M", M), ("_root", root), ("_inverse_root", inverse)):
            matrix.flags.writeable = False
            object.__setattr__(self, name, matrix)

    def __str__(self) -> str:
        kind = "nonnegative slacks" if self.nonneg_slack else "slacks of either sign"
        return f"the Mahalanobis norm of order {len(self._root)}, {kind}"

    def value(self, t: Vector, c: Vector) -> float:
        """N(t): the maximum of a't over A, for slacks t (m,) and weights c of 1."""
        return float(linalg.norm(self._least(t, c)))

    def at_most(self, t: Vector, c: Vector) -> float:
        """N(t) from above: `value` is the length of slacks that are large enough."""
        return self.value(t, c)

    def slope(self, t: Vector, c: Vector) -> Vector:
        """A maximizer (m,) of a't over A, or zeros where N is zero."""
        z = self._least(t, c)
        if not z.any():
            return np.zeros(len(t))
        a = self._root @ (z / linalg.norm(z))  # M xi / N
        if self.nonneg_slack:
            a[t <= 0] = 0.0
        return np.asarray(np.maximum(a, 0.0))

    def maximizer(self, t: Vector, c: Vector) -> Vector:
        """The a (m,) in A with the largest a't."""
        return self.slope(t, c)

    def _least(self, t: Vector, c: Vector) -> Vector:
        """L' xi for the least slacks xi, where M = L L'."""
        self._unit("c", c)
        xi = np.maximum(t, 0.0) if self.nonneg_slack or np.all(t <= 0) else t
        return _least_residual(self._root.T, self._root.T @ xi)

    def gauge(self, a: Vector, c: Vector) -> float:
        """The least s with a in s A, (m,): inf if a has a negative element."""
        self._unit("c", c)
        if np.any(a < 0):
            return np.inf
        z = self._inverse_root @ a
        if self.nonneg_slack:
            z = _least_residual(self._inverse_root, z)
        return float(linalg.norm(z))

    def nearest(self, v: Vector, c: Vector, d: Vector, y: Vector | None) -> Vector:
        """The projection on A, for weights and a metric of 1."""
        self._unit("c", c)
        self._unit("metric", d)
        x = levelled(v, d, d, np.full(len(v), np.inf), y=y)  # A without its ellipsoid
        if self.gauge(x, c) <= 1.0:
            return x

        def excess(sigma: float) -> float:
            """How far the point lies inside of the ball."""
            near = self._shrunk(v, y, sigma) if sigma else x
            return 1.0 / self.gauge(near, c) - 1.0

        # At a solution sigma gauge^2 = x'(v - x) <= gauge |L' max(0, v)|.
        most = 2.0 * float(linalg.norm(self._root.T @ np.maximum(v, 0.0)))
        step = 1e-17 / float(linalg.norm(self._inverse_root)) ** 2
        found = optimize.brentq(excess, 0.0, most, xtol=step, rtol=4 * _EPS)
        return self._shrunk(v, y, found)

    def _shrunk(self, v: Vector, y: Vector | None, sigma: float) -> Vector:
        """The least |x - v|^2 + sigma gauge(x)^2 over x >= 0, with y'x = 0."""
        m = len(v)
        low = np.sqrt(sigma) * self._inverse_root
        A, right = np.vstack([np.eye(m), low]), np.zeros(2 * m)
        if self.nonneg_slack:  # the variables are (x, mu)
            A = np.hstack([A, np.vstack([np.zeros((m, m)), low])])

        def at(eta: float) -> Vector:
            deadline.check()  # some hundred of these take a minute for 60 rows
            right[:m] = v if y is None else v - eta * y
            return _least_squares(A, right)[:m]

        if y is None:
            return at(0.0)
        return at(_falling_root(lambda eta: float(y @ at(eta))))

    def _unit(self, name: str, c: Vector) -> None:
        if np.shape(c) != (len(self._root),) or np.any(c != 1.0):
            Checker("Mahalanobis").refuse_part(
                name, f"hold {len(self._root)} ones", f"{np.asarray(c)}"
            )


def _falling_root(f: Callable[[float], float]) -> float:
    """A root of a nonincreasing function, by a bracket that grows from zero."""
    value, near, far = f(0.0), 0.0, 1.0
    if value == 0.0:
        return 0.0
    way = np.sign(value)
    while way * f(way * far) > 0 and far < 1e300:
        near, far = far, 4.0 * far
    return float(
        optimize.brentq(
            f, way * near, way * far, xtol=1e-300, rtol=4 * _EPS, maxiter=500
        )
    )


def _least_squares(A: Matrix, right: Vector) -> Vector:
    """The nonnegative x for which |A x - right| is least, (n,)."""
    scale = float(np.abs(right).max())
    if scale == 0.0:
        return np.zeros(A.shape[1])
    right = right / scale  # nnls may have an absolute tolerance
    x: Vector = optimize.nnls(A, right, maxiter=30 * A.shape[1] + 100)[0]
    rows = x > 0
    if rows.any():  # again on its support: nnls may have used normal equations
        exact = linalg.lstsq(A[:, rows], right)[0]
        x[rows] = np.maximum(exact, 0.0)
    return np.asarray(scale * x)


def _least_residual(A: Matrix, right: Vector) -> Vector:
    """The least A x + right over x >= 0."""
    return np.asarray(right + A @ _least_squares(A, -right))


def _positive_definite(given: ArrayLike) -> Matrix:
    """A float64 copy, or a ValueError where it is not symmetric positive definite."""
    check = Checker("Mahalanobis")
    try:
        M = np.array(given, dtype=np.float64)
    except (TypeError, ValueError):
        check.refuse_part("M", "be a square matrix of numbers", type(given).__name__)
    if M.ndim != 2 or M.shape[0] != M.shape[1] or M.size == 0:
        check.refuse_part("M", "be a square matrix", f"shape {M.shape}")
    if not np.isfinite(M).all():
        check.refuse_part("M", "be finite", "NaN or an infinite number")
    i, j = np.unravel_index(np.argmax(np.abs(M - M.T)), M.shape)
    if abs(M[i, j] - M[j, i]) > 1e-12 * np.abs(M).max():
        found = f"M[{i}, {j}] = {M[i, j]:g} and M[{j}, {i}] = {M[j, i]:g}"
        check.refuse_part("M", "be symmetric", found)
    M = 0.5 * (M + M.T)
    values = linalg.eigvalsh(M)
    if values[0] <= len(M) * _EPS * values[-1]:
        found = f"the least eigenvalue {values[0]:g}"
        check.refuse_part("M", "be positive definite", found)
    return M
