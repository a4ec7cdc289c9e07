"""Constraint-reduced primal-dual interior point (CRSVM).

Jung, O'Leary, Tits, "Adaptive constraint reduction for training support vector machines",
ETNA 31 (2008) 156-177; equation numbers are theirs. An iteration costs one weighted Gram
matrix, over the active set Q only when constraints are reduced, and three sweeps: the
Gram matrix with the right side of the predictor; the predictor with both parts of the
right side of the corrector; the corrector with its step.

Notation: A = Y [X 1], v = (w, b) with b = -gamma, R = diag(1, .., 1, p), tau = C;
s = A v + xi - 1 and u = C - alpha hold throughout. mu = (s'alpha + xi'u) / (2 sum C) has
no unit, so that one rule fits every scale of C and X, and the products of row i tend to
mu C_i: a row of weight 2 and a row that occurs twice give the same iterates.
"""

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np
import scipy.linalg
from numpy.typing import NDArray

from widemargin import linalg
from widemargin.data.rows import Least, RowState
from widemargin.linalg import monotone_root
from widemargin.problem import Problem
from widemargin.solution import Step
from widemargin.solvers.base import Solver, Start

Vector = NDArray[np.float64]

# Second-order products are clipped to this many mu C: fewer iterations exactly where
# there are many (crsvm.md section 16).
CLIP = 10.0
# Complementarity below this share of the gap, with a residual that grows, is rounding:
# the next step only restores feasibility.
RESTORE = 0.1
# Dense data with fewer columns than this gain nothing from reduction (section 16).
REDUCED_COLUMNS = 500
# Columns up to which M_Q is a dense matrix; beyond, conjugate gradient steps per solve.
DENSE_COLUMNS = 2000
ITERATIVE_STEPS = 200
# mu of the central start, cold and warm (section 13).
COLD_MU, WARM_MU = 0.75, 0.1


@dataclass(frozen=True, kw_only=True)
class InteriorPoint(Solver):
    """Mehrotra's predictor-corrector with adaptive constraint reduction.

    Solves both losses and all three intercepts. Each iteration factors
    M_Q = R + sum_{i in Q} d_i (x_i - c)(x_i - c)', d_i = 1 / (s_i/alpha_i + xi_i/u_i), over
    the q rows that matter most; a preconditioned conjugate gradient iteration with the
    matrix of all rows repairs the direction where Q was too small.

    Parameters
    ----------
    reduction : {"auto", "omega", "one_sided"} or None, default="auto"
        Rule of the active set: rows with the smallest omega_i (Rule 2), the smallest s_i
        (Rule 1), or all rows (None). "auto" is "omega" where the Gram matrix dominates
        (dense data with at least 500 columns), None elsewhere.
    balanced : bool, default=True
        Choose as many rows of both classes, (3.21)-(3.22).
    adaptive : bool, default=True
        q = mu^(1/beta) m, (3.18). Otherwise q = ``max_active`` m throughout.
    max_active : float in (0, 1], default=1.0
        Largest share of the rows in Q, q_U / m.
    beta, theta : float > 0, defaults 4 and 100
        Exponent of (3.18), and factor of the thresholds (3.20).
    pcg_tol : float in (0, 1), default=1e-2
    pcg_steps : int >= 0, default=10
        Relative residual and largest number of conjugate gradient steps for a reduced
        matrix. 0 gives the published method, which may fail when Q is too small.
    corrector : bool or "auto", default="auto"
        One extra centrality corrector (Gondzio); "auto" uses it where the Gram matrix
        costs more than its two sweeps, |Q| n > 8 m.
    normal_matrix : {"auto", "dense", "sparse", "diagonal"}, default="auto"
        How the normal equations are solved: dense Cholesky; sparse factorisation with
        Sherman-Morrison for the intercept; conjugate gradients with the diagonal only.
    random_state : int or None, default=None
        Seed of the first active set when ``max_active`` < 1, which is random.

    Raises
    ------
    ValueError if a parameter is out of range.

    Notes
    -----
    |Q| n^2 + n^3 / 3 flops and three sweeps an iteration; ten vectors of length m and one
    n x n matrix of memory. 10 to 40 iterations, slowly more for smaller ``tol``.

    References
    ----------
    [jung2008]_, Algorithm 1; [gertz2006]_ for the predictor-corrector; [gondzio1996]_.

    Examples
    --------
    >>> from widemargin import LinearSVC
    >>> from widemargin.solvers import InteriorPoint
    >>> LinearSVC(solver=InteriorPoint(reduction="omega"))
    LinearSVC(solver=InteriorPoint(reduction='omega', ...))
    """

    name: ClassVar[str] = "interior_point"
    default_max_iter: ClassVar[int] = 200
    patience: ClassVar[int] = 30

    reduction: Literal["auto", "omega", "one_sided"] | None = "auto"
    balanced: bool = True
    adaptive: bool = True
    max_active: float = 1.0
    beta: float = 4.0
    theta: float = 100.0
    pcg_tol: float = 1e-2
    pcg_steps: int = 10
    corrector: bool | Literal["auto"] = "auto"
    normal_matrix: Literal["auto", "dense", "sparse", "diagonal"] = "auto"
    random_state: int | None = None

    def supports(self, problem: Problem) -> str | None:
        return None

    def iterate(self, problem: Problem, start: Start | None) -> Iterator[Step]:
        A, R, loss = problem.A, problem.penalty, problem.loss
        state = problem.state(**dict.fromkeys(_VECTORS, 0.0))
        v = _central_start(problem, state, start)
        pairs = (2.0 if loss == "hinge" else 1.0) * problem.zero_objective
        active = _ActiveSet(self, problem, state)
        normal = _Normal(self, problem, state)
        t, last_residual = 0.0, np.inf
        for iteration in itertools.count():
            products, losses, linear = state.sweep(_advance, t, loss)
            mu = products / pairs
            active.choose(mu)
            g, h = normal.assemble(active.key, active.levels, loss)
            residual = float(np.abs(R * v - g).max())
            primal = 0.5 * float(R @ (v * v)) + losses
            dual = linear - 0.5 * float(R @ (g * g))  # R^-1 = R: entries are 0 or 1
            if not np.isfinite(primal - dual + mu):
                raise FloatingPointError("the iterate is not finite")
            yield Step(
                iteration,
                primal,
                dual,
                residual,
                normal.n_active,
                details={"mu": mu, "step": t, "pcg": normal.steps},
                _point=lambda: (v, state),
            )
            normal.factor()
            rhs = g - h - R * v
            dv = normal.solve(rhs)  # predictor (3.7)-(3.8)
            least, first, second, E = A.sweep(_predict, state, dv, CLIP * mu, loss)
            t = min(1.0, least.key)
            sigma = ((products + t * first + t * t * second) / products) ** 3
            if products < RESTORE * (primal - dual) and residual > last_residual:
                sigma = 1.0
            last_residual = residual
            target = sigma * mu
            dv = normal.solve(rhs - E[:, 0] + target * E[:, 1])  # corrector (3.9)-(3.10)
            step = A.sweep(_correct, state, dv, target, loss)
            t = _step_length(*step, products, pairs)
            v = v + t * dv
            active.grow(normal.n_active, normal.steps)

    def _worth_another(self, normal: "_Normal") -> bool:
        """Whether the extra corrector is asked for, or pays: |Q| n > 8 m."""
        if self.corrector == "auto":
            return normal.has_matrix and normal.n_active * normal.n > 8 * normal.m
        return self.corrector


_VECTORS = ("alpha", "u", "s", "xi", "d", "dalpha", "ds", "dxi")


# -- the active set --------------------------------------------------------------------


class _ActiveSet:
    """The rows Q of the reduced matrix: those whose key is at most their class's level.

    Attributes
    ----------
    key : str, what orders the rows: "omega", "one_sided" or "random"
    levels : ndarray (2,) for the classes -1 and +1, or None for all rows
    """

    def __init__(self, options: InteriorPoint, problem: Problem, state: RowState) -> None:
        self._options = options
        self._m, n = problem.rows.shape
        self._least = self._floor = min(self._m, 2 * n) if options.pcg_steps else 1
        self._most = max(1, round(options.max_active * self._m))
        self._rule = _choose_rule(options, problem)
        self._scale = float(np.mean(problem.C[problem.C > 0]))
        self._state = state
        self.levels: Vector | None = None
        self.key = self._rule or ""
        if self._rule and self._most < self._m:
            self.key = "random"
            keys = np.random.default_rng(options.random_state).random(self._m)
            self._state = state.join(problem.A.state(random=keys))

    def choose(self, mu: float) -> None:
        """Q for this mu, (3.18)-(3.22); the first Q is random when q_U < m."""
        if self._rule is None:
            return
        options, q, needed = self._options, self._most, np.zeros(2)
        sizes, bounds = self._state.sweep(_class_counts, self._rule, mu, options.theta, self._scale)
        if options.adaptive and self.key != "random":
            q, needed = min(q, int(np.ceil(mu ** (1 / options.beta) * self._m))), bounds
        q = max(q, self._floor, int(needed.sum()))
        if q > 0.8 * self._m:
            self.levels = None  # a gather would cost more than it saves
        elif options.balanced:
            wanted = np.minimum(np.maximum(needed, np.ceil(q / 2)), sizes)
            wanted = np.minimum(wanted + max(0.0, q - wanted.sum()), sizes)
            self.levels = np.array([self._level(wanted[k], k) for k in (0, 1)])
        else:
            self.levels = np.full(2, self._level(q, None))

    def _level(self, count: float, label: int | None) -> float:
        return self._state.threshold(_class_keys, count, self.key, label)

    def grow(self, n_active: int, pcg_steps: int) -> None:
        """Raise the floor of |Q| where conjugate gradients had to work, else lower it."""
        self.key = self._rule or ""
        if pcg_steps > 5:
            self._floor = min(self._m, int(1.5 * n_active))
        else:
            self._floor = max(self._least, int(0.9 * self._floor))


def _choose_rule(options: InteriorPoint, problem: Problem) -> str | None:
    """The rule of the active set, or None where reduction does not pay."""
    if options.reduction != "auto":
        return options.reduction
    return "omega" if problem.rows.shape[1] >= REDUCED_COLUMNS else None


def _key(part: RowState, key: str) -> Vector:
    """What orders the rows, smallest first; logarithms keep the histogram even."""
    if key == "random":
        return part.random
    return -np.log(part.d) if key == "omega" else np.log(part.s)


def _class_keys(part: RowState, key: str, label: int | None) -> tuple[Vector, Vector]:
    """Keys, and weight 1 for the rows of one class (0: -1, 1: +1) or of both."""
    weights = np.ones(part.s.shape) if label is None else (part.labels > 0) == bool(label)
    return _key(part, key), weights.astype(np.float64)


def _class_counts(
    part: RowState, rule: str, mu: float, theta: float, scale: float
) -> tuple[Vector, Vector]:
    """Rows, and rows that must be in Q (3.20), of the classes -1 and +1; scale: mean C."""
    level = scale * theta * np.sqrt(mu)
    if rule == "omega":
        must = part.d >= level
    else:
        must = (part.alpha / part.s >= level) | (part.s <= np.sqrt(mu))
    positive = part.labels > 0
    count = lambda rows: np.bincount(rows.astype(np.intp), minlength=2).astype(float)  # noqa: E731
    return count(positive), count(positive[must])


def _in_active_set(part: RowState, key: str, levels: Vector | None) -> NDArray[np.intp] | None:
    """Indices of the rows in Q; None for all."""
    if levels is None:
        return None
    return np.flatnonzero(_key(part, key) <= levels[(part.labels > 0).astype(np.intp)])


# -- the normal equations --------------------------------------------------------------


class _Normal:
    """K dv = r with K = R + A'DA, by a matrix of the rows in Q and conjugate gradients.

    Eliminating b leaves (3.11): M = R_w + X'DX - c c'/s, c = X'd, s = sum d + p. Only M is
    reduced to M_Q; c and s keep all rows (3.12), so that one equation alone is inexact.
    """

    def __init__(self, options: InteriorPoint, problem: Problem, state: RowState) -> None:
        self.m, self.n = problem.rows.shape
        self.n_active = self.m
        self.steps = 0  # conjugate gradient steps of this iteration
        self._options, self._A, self._state, self._R = options, problem.A, state, problem.penalty
        self._intercept = problem.intercept != "none"
        self.form = _choose_form(options, problem)

    def assemble(self, key: str, levels: Vector | None, loss: str) -> tuple[Vector, Vector]:
        """First sweep: the matrix of Q, and (A'alpha, A'(d r_Omega)) of all rows."""
        n_active, self._sums, G = self._A.sweep(
            _assemble, self._state, key, levels, loss, self.form
        )
        self.n_active, self._matrix, self.steps = int(n_active), G, 0
        return self._sums[:, 0], self._sums[:, 1]

    def factor(self) -> None:
        """Factor M_Q; what solves with it exactly needs no conjugate gradients."""
        self._border, self._pivot = None, 1.0
        n, R = self.n, self._R
        if self._intercept:
            self._border, self._pivot = self._sums[:n, 2], self._sums[n, 2] + R[n]
        if self.form == "dense":
            self._solve_w, jitter = _dense_factor(self._matrix, R, n)
            self._exact = jitter == 0.0 and self.n_active == self.m
        elif self.form == "sparse":
            self._solve_w = _sparse_factor(self._matrix, R, n)
            self._exact = False
        else:
            diagonal = R[:n] + self._matrix[:n]
            if self._border is not None:
                diagonal = diagonal - self._border**2 / self._pivot
            floor = np.maximum(diagonal, np.finfo(float).eps * self._matrix[:n] + R[:n])
            self._solve_w = lambda r: r / floor
            self._exact = False

    def _precondition(self, r: Vector) -> Vector:
        """Solve with M_Q and the exact border: K itself where Q is all rows."""
        if self._border is None:
            return self._solve_w(r)
        dw = self._solve_w(r[:-1] - r[-1] / self._pivot * self._border)
        return np.append(dw, (r[-1] - self._border @ dw) / self._pivot)

    def solve(self, r: Vector) -> Vector:
        """Dv for the right side r, refined by conjugate gradients where M_Q is inexact."""
        dv = self._precondition(r)
        limit = self._options.pcg_steps if self.form == "dense" else ITERATIVE_STEPS
        if self._exact or limit == 0:
            return dv
        residual = r - self._product(dv)
        goal, p, last = self._options.pcg_tol * np.linalg.norm(r), np.zeros_like(r), np.inf
        for _ in range(limit):
            if np.linalg.norm(residual) <= goal:
                break
            z = self._precondition(residual)
            rho = float(residual @ z)
            p = z + rho / last * p
            q = self._product(p)
            step = rho / float(p @ q)
            dv, residual, last = dv + step * p, residual - step * q, rho
            self.steps += 1
        return dv

    def _product(self, x: Vector) -> Vector:
        """K x. One sweep."""
        return self._R * x + np.asarray(self._A.sweep(_weighted_product, self._state, x))


def _choose_form(options: InteriorPoint, problem: Problem) -> str:
    """How M_Q is solved with: dense up to a few thousand columns, then sparse or not at all."""
    if options.normal_matrix != "auto":
        return options.normal_matrix
    return "dense" if problem.rows.shape[1] <= DENSE_COLUMNS else "diagonal"


def _assemble(
    block: Any, part: RowState, key: str, levels: Vector | None, loss: str, form: str
) -> tuple[int, Vector, Any]:
    """|Q|, A'[alpha, d r_Omega, d y] over all rows, and the Gram matrix of Q."""
    slack = part.s - part.xi if loss == "hinge" else part.s  # r_Omega of the predictor
    columns = np.column_stack([part.alpha, part.d * slack, part.d * part.labels])
    index = _in_active_set(part, key, levels)
    rows, d = (block, part.d) if index is None else (block[index], part.d[index])
    return rows.shape[0], block.T @ columns, _MATRICES[form](rows, d)


_MATRICES: dict[str, Callable[[Any, Vector], Any]] = {
    "dense": linalg.gram,
    "sparse": linalg.sparse_gram,
    "diagonal": linalg.gram_diagonal,
}


def _weighted_product(block: Any, part: RowState, x: Vector) -> Vector:
    return np.asarray(block.T @ (part.d * (block @ x)))


def _dense_factor(G: Vector, R: Vector, n: int) -> tuple[Callable[[Vector], Vector], float]:
    """Solver with M_Q from the Gram matrix of A_Q, and the jitter that Cholesky needed."""
    M = G[:n, :n] + np.diag(R[:n])
    if G.shape[0] > n:
        M -= np.outer(G[:n, n], G[:n, n] / (G[n, n] + R[n]))
    diagonal, jitter = M.diagonal().copy(), 0.0
    while True:
        try:
            factor = scipy.linalg.cho_factor(M, lower=True, check_finite=False)
            return lambda r: scipy.linalg.cho_solve(factor, r, check_finite=False), jitter
        except np.linalg.LinAlgError:
            jitter = max(1e-14, 100.0 * jitter)
            if jitter > 1e-6 or not np.all(np.isfinite(diagonal)):
                raise
            M[np.diag_indices(n)] = diagonal * (1.0 + jitter)


def _sparse_factor(G: Any, R: Vector, n: int) -> Callable[[Vector], Vector]:
    """Solver with M_Q from the sparse X_Q'DX_Q: (3.11) by Sherman-Morrison, section 10."""
    raise NotImplementedError


# -- functions of one block ------------------------------------------------------------


def _advance(part: RowState, t: float, loss: str) -> tuple[float, float, float]:
    """Apply the last step and weigh the rows anew.

    Returns the sum of complementary products, the losses, and the linear part of D.
    """
    part.alpha += t * part.dalpha
    part.s += t * part.ds
    part.xi += t * part.dxi
    violation = np.maximum(part.xi - part.s, 0.0)
    products, linear = float(part.s @ part.alpha), float(part.alpha.sum())
    if loss == "hinge":
        part.u -= t * part.dalpha
        part.d = 1.0 / (part.s / part.alpha + part.xi / part.u)
        return products + float(part.xi @ part.u), float(part.C @ violation), linear
    part.d = 1.0 / (part.s / part.alpha + 0.5 / part.C)
    losses = float(part.C @ (violation * violation))
    return products, losses, linear - float(part.alpha @ (part.alpha / (4.0 * part.C)))


def _predict(
    block: Any, part: RowState, dv: Vector, clip: float, loss: str
) -> tuple[Least, float, float, Vector]:
    """Predictor along dv: its step, the sums for mu, and the corrector's right sides.

    Leaves the clipped second-order products in ``ds`` and ``dxi``. The right side of the
    corrector changes by A'[d r] - sigma mu A'[d r'], the two columns returned last.
    """
    s, alpha, C, d = part.s, part.alpha, part.C, part.d
    limit = clip * C
    z = block @ dv
    if loss == "hinge":
        xi, u = part.xi, part.u
        dalpha = -d * (s - xi + z)
        ds = -s - s / alpha * dalpha
        dxi = -xi + xi / u * dalpha
        least = _largest_step(part, dalpha, ds, dxi)
        first = s @ dalpha + alpha @ ds - xi @ dalpha + u @ dxi
        part.ds = np.clip(ds * dalpha, -limit, limit)
        part.dxi = np.clip(-dxi * dalpha, -limit, limit)
        second = ds @ dalpha - dxi @ dalpha
        columns = (part.ds / alpha - part.dxi / u, C / alpha - C / u)
    else:
        dalpha = -d * (s + z)
        ds = -s - s / alpha * dalpha
        least = _largest_step(part, dalpha, ds, None)
        first, second = s @ dalpha + alpha @ ds, ds @ dalpha
        part.ds = np.clip(ds * dalpha, -limit, limit)
        columns = (part.ds / alpha, C / alpha)
    E = block.T @ (d[:, np.newaxis] * np.column_stack(columns))
    return least, float(first), float(second), np.asarray(E)


def _correct(
    block: Any, part: RowState, dv: Vector, target: float, loss: str
) -> tuple[Least, float, float]:
    """Corrector along dv, left in the state: (3.13)-(3.16); its step and sums for mu."""
    s, alpha, C = part.s, part.alpha, part.C
    r_s = s * alpha - target * C + part.ds
    z = block @ dv
    if loss == "hinge":
        xi, u = part.xi, part.u
        r_x = xi * u - target * C + part.dxi
        dalpha = -part.d * (r_s / alpha - r_x / u + z)
        dxi = (xi * dalpha - r_x) / u
    else:
        dalpha = -part.d * (r_s / alpha + z)
        dxi = 0.5 * dalpha / C
    ds = -(r_s + s * dalpha) / alpha
    part.dalpha, part.ds, part.dxi = dalpha, ds, dxi
    first, second = s @ dalpha + alpha @ ds, ds @ dalpha
    if loss == "hinge":
        first, second = first - xi @ dalpha + u @ dxi, second - dxi @ dalpha
    return _largest_step(part, dalpha, ds, dxi if loss == "hinge" else None), first, second


def _largest_step(part: RowState, dalpha: Vector, ds: Vector, dxi: Vector | None) -> Least:
    """Largest feasible step, with what blocks it: (x, dx, partner, its step, C)."""
    pairs = [(part.s, ds, part.alpha, dalpha), (part.alpha, dalpha, part.s, ds)]
    if dxi is not None:
        pairs += [(part.xi, dxi, part.u, -dalpha), (part.u, -dalpha, part.xi, dxi)]
    best = Least(np.inf)
    for x, dx, partner, dpartner in pairs:
        ratio = np.where(dx < 0.0, -x / dx, np.inf)
        i = int(np.argmin(ratio))
        best += Least(float(ratio[i]), (x[i], dx[i], partner[i], dpartner[i], part.C[i]))
    return best


def _step_length(least: Least, first: float, second: float, products: float, pairs: float) -> float:
    """Mehrotra's rule: let the blocking product end at a hundredth of mu, at 0.99 least."""
    if not least.key <= 1.0:
        return 1.0
    t, (x, dx, partner, dpartner, C) = least.key, least.value
    mu = (products + t * first + t * t * second) / pairs
    aimed = (0.01 * mu * C / (partner + t * dpartner) - x) / dx
    return (1.0 - 1e-8) * min(t, max(aimed, 0.99 * t))


# -- the start -------------------------------------------------------------------------


def _central_start(problem: Problem, state: RowState, start: Start | None) -> Vector:
    """A point on the central path for v = (w, b): zero, or a given one (section 13).

    All products equal mu C and r_s = r_u = 0; b is moved until y'alpha = 0.
    """
    v = np.zeros(problem.A.shape[1]) if start is None else start.v.copy()
    mu = COLD_MU if start is None else WARM_MU
    problem.A.sweep(_violations, state, v)
    if problem.intercept == "free":
        shift = monotone_root(lambda b: state.sweep(_central_balance, b, mu, problem.loss), 0.0)
        v[-1] += shift
    else:
        shift = 0.0
    state.sweep(_central_point, shift, mu, problem.loss)
    return v


def _violations(block: Any, part: RowState, v: Vector) -> None:
    part.xi = 1.0 - block @ v


def _central_alpha(z: Vector, mu: float, loss: str) -> Vector:
    """Alpha / C of the central point with violation z = 1 - A v."""
    root = np.sqrt(z * z + (4.0 * mu * mu if loss == "hinge" else 2.0 * mu))
    if loss == "hinge":
        return np.where(z <= 2 * mu, 2 * mu / (root - z + 2 * mu), (z - 2 * mu + root) / (2 * z))
    return np.where(z >= 0.0, z + root, 2.0 * mu / (root - z))


def _central_balance(part: RowState, b: float, mu: float, loss: str) -> tuple[float, float, float]:
    """Minus y'alpha at intercept b, its slope and scale."""
    z = part.xi - b * part.labels
    a = _central_alpha(z, mu, loss)
    if loss == "hinge":
        slope = a * a * (1 - a) ** 2 / (mu * (a * a + (1 - a) ** 2))
    else:
        slope = a / np.sqrt(z * z + 2 * mu)
    weighted = part.C * a
    return -float(part.labels @ weighted), float(part.C @ slope), float(weighted.sum())


def _central_point(part: RowState, shift: float, mu: float, loss: str) -> None:
    z = part.xi - shift * part.labels
    a = _central_alpha(z, mu, loss)
    part.alpha, part.s = part.C * a, mu / a
    if loss == "hinge":
        other = _central_alpha(-z, mu, loss)  # 1 - a, without cancellation
        part.u, part.xi = part.C * other, mu / other
    else:
        part.xi = part.alpha / (2.0 * part.C)
