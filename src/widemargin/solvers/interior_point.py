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
import scipy.sparse.linalg
from numpy.typing import NDArray
from scipy import sparse

from widemargin import _core, linalg
from widemargin.data.rows import Least, Rows, RowState
from widemargin.linalg import monotone_root
from widemargin.problem import Problem
from widemargin.solution import Step
from widemargin.solvers.base import Solver, Start

Vector = NDArray[np.float64]

# Second-order products are clipped to this many mu C: fewer iterations exactly where
# there are many (crsvm.md section 16).
CLIP = 10.0
# Where complementarity is below this share of the gap and the residual w - X'Y alpha did not
# shrink as Newton's method promises, rounding rules: the next step keeps mu.
RESTORE = 0.1
# Dense data with fewer columns than this gain nothing from reduction (section 16).
REDUCED_COLUMNS = 500
# Columns up to which M_Q is a dense matrix; beyond, conjugate gradient steps per solve.
DENSE_COLUMNS = 2000
DUAL_ROWS = 1200
DUAL_STEPS = 20
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
    corrector : bool, default=False
        One extra centrality corrector (Gondzio): up to a quarter fewer iterations for two
        sweeps each; it never saved time (n = 22 to 300).
    normal_matrix : {"auto", "dense", "sparse", "dual"}, default="auto"
        How M_Q is solved with: dense Cholesky; sparse factorisation with Sherman-Morrison
        for the intercept; or through the q x q matrix of a small Q (Woodbury) with the
        diagonal of the other rows, as preconditioner of conjugate gradients. "auto" is
        "dense" up to 2000 columns, then "sparse" where X'X is very sparse, else "dual".
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
    corrector: bool = False
    normal_matrix: Literal["auto", "dense", "sparse", "dual"] = "auto"
    random_state: int | None = None

    def supports(self, problem: Problem) -> str | None:
        return None

    def iterate(self, problem: Problem, start: Start | None) -> Iterator[Step]:
        A, R, hinge = problem.A, problem.penalty, problem.loss == "hinge"
        state = problem.state(**dict.fromkeys(_VECTORS, 0.0))
        if self.max_active < 1.0:
            keys = np.random.default_rng(self.random_state).random(problem.rows.shape[0])
            state = state.join(A.state(random=keys))
        v = _central_start(problem, state, start)
        pairs = (2.0 if hinge else 1.0) * problem.zero_objective
        normal = _Normal(self, problem, state)
        active = _ActiveSet(self, problem, state, normal.form)
        t, expected = 0.0, np.inf
        for iteration in itertools.count():
            products, losses, linear = state.sweep(_advance, t, hinge)
            mu = products / pairs
            active.choose(mu)
            g, h = normal.assemble(active.key, active.levels, hinge)
            residual = float(np.abs(R * v - g).max())
            primal = 0.5 * float(R @ (v * v)) + losses
            dual = linear - 0.5 * float(R @ (g * g))  # R^-1 = R: entries are 0 or 1
            # y'alpha = 0 from the start, up to rounding that a repair has to pay for.
            dual -= float((1.0 - R) @ (np.abs(g) * (1.0 + np.abs(v))))
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
            least, first, second, E = A.sweep(_predict, state, dv, CLIP * mu, hinge)
            t = min(1.0, least.key)
            sigma = ((products + t * first + t * t * second) / products) ** 3
            if products < RESTORE * (primal - dual) and residual > expected:
                sigma = 1.0
            target = sigma * mu
            dv = normal.solve(rhs - E[:, 0] + target * E[:, 1])  # corrector (3.9)-(3.10)
            step = A.sweep(_correct, state, dv, target, hinge)
            t = _step_length(*step, products, pairs)
            if self.corrector:
                extra, t = _recentre(A, state, normal, t, target, products, pairs, hinge)
                dv = dv + extra
            v, expected = v + t * dv, (1.0 - 0.5 * t) * residual
            active.grow(normal.n_active, normal.steps)


_VECTORS = ("alpha", "u", "s", "xi", "d", "dalpha", "ds", "dxi")


# -- the active set --------------------------------------------------------------------


class _ActiveSet:
    """The rows Q of the reduced matrix: those whose key is at most their class's level.

    Attributes
    ----------
    key : str, what orders the rows: "omega", "one_sided" or "random"
    levels : ndarray (2,) for the classes -1 and +1, or None for all rows
    """

    def __init__(
        self, options: InteriorPoint, problem: Problem, state: RowState, form: str
    ) -> None:
        self._options = options
        self._m, n = problem.rows.shape
        self._least = self._floor = min(self._m, 2 * n) if options.pcg_steps else 1
        self._most = max(1, round(options.max_active * self._m))
        self._rule = _choose_rule(options, problem)
        self._cap = self._m
        if form == "dual":  # as many rows as its q x q matrix may have, all the time
            self._rule = self._rule or "omega"
            self._cap = self._most = self._least = self._floor = min(self._m, DUAL_ROWS)
        self._scale = float(np.mean(problem.C[problem.C > 0]))
        self._state = state
        self.levels: Vector | None = None
        self.key = self._rule or ""
        if self._rule and options.max_active < 1.0:
            self.key = "random"

    def choose(self, mu: float) -> None:
        """Q for this mu, (3.18)-(3.22); the first Q is random when q_U < m."""
        if self._rule is None:
            return
        options, q, needed = self._options, self._most, np.zeros(2)
        sizes, bounds = self._state.sweep(_class_counts, self._rule, mu, options.theta, self._scale)
        if options.adaptive and self.key != "random":
            q, needed = min(q, int(np.ceil(mu ** (1 / options.beta) * self._m))), bounds
        q = min(max(q, self._floor, int(needed.sum())), self._cap)
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
    dense = problem.rows.density > linalg.DENSE_GRAM_DENSITY
    return "omega" if dense and problem.rows.shape[1] >= REDUCED_COLUMNS else None


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
        self.form = _choose_form(options, problem)
        self.n_active = problem.rows.shape[0]
        self.steps = 0  # conjugate gradient steps of this iteration
        self._options, self._A, self._state = options, problem.A, state
        self._m, self._n = problem.rows.shape
        self._R = problem.penalty

    def assemble(self, key: str, levels: Vector | None, hinge: bool) -> tuple[Vector, Vector]:
        """First sweep: the matrix of Q, and (A'alpha, A'(d r_Omega)) of all rows."""
        sums, n_active, self._matrix = self._A.sweep(
            _assemble, self._state, key, levels, hinge, self.form
        )
        self.n_active, self.steps, self._sums = n_active, 0, sums
        return sums[:, 0], sums[:, 1]

    def factor(self) -> None:
        """Factor M_Q; with all rows in Q it is exact and needs no conjugate gradients."""
        n, border = self._n, self._sums[:, 2]
        self._border = border[:n] if border.size > n else None
        self._pivot = border[n] + self._R[n] if border.size > n else 1.0
        factor = {"dense": _dense_factor, "sparse": _sparse_factor, "dual": _dual_factor}
        self._solve_w, exact = factor[self.form](self._matrix, n, self._R[-1])
        self._exact = exact and self.n_active == self._m

    def _precondition(self, r: Vector) -> Vector:
        """Solve with M_Q and the border of all rows: with K itself where Q is all rows."""
        if self._border is None:
            return self._solve_w(r)
        dw = self._solve_w(r[:-1] - r[-1] / self._pivot * self._border)
        return np.append(dw, (r[-1] - self._border @ dw) / self._pivot)

    def solve(self, r: Vector) -> Vector:
        """Dv for the right side r, by conjugate gradients where M_Q is inexact."""
        dv = self._precondition(r)
        limit = self._options.pcg_steps
        if self._exact or limit == 0:
            return dv
        if self.form == "dual":
            limit *= DUAL_STEPS
        residual, p, last = r - self._product(dv), np.zeros_like(r), np.inf
        goal = self._options.pcg_tol * np.linalg.norm(r)
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
    """How to solve with M_Q: see ``normal_matrix``."""
    if options.normal_matrix != "auto":
        return options.normal_matrix
    m, n = problem.rows.shape
    if n <= DENSE_COLUMNS:
        return "dense"
    return "dual"


def _assemble(
    block: Any, part: RowState, key: str, levels: Vector | None, hinge: bool, form: str
) -> tuple[Vector, int, Any]:
    """A'[alpha, d r_Omega, d y] over all rows, |Q|, and what the matrix of Q needs."""
    slack = part.s - part.xi if hinge else part.s  # r_Omega of the predictor
    sums = block.T @ np.column_stack([part.alpha, part.d * slack, part.d * part.labels])
    index = _in_active_set(part, key, levels)
    rows, d = (block, part.d) if index is None else (block[index], part.d[index])
    if form == "dense":
        matrix = linalg.gram(rows, d)
    elif form == "sparse":
        matrix = linalg.sparse_gram(rows, d)
    else:
        others = part.d.copy()
        others[slice(None) if index is None else index] = 0.0
        matrix = [(rows.matrix(), d)], linalg.gram_diagonal(block, others)
    return sums, rows.shape[0], matrix


def _weighted_product(block: Any, part: RowState, x: Vector) -> Vector:
    return np.asarray(block.T @ (part.d * (block @ x)))


Factor = tuple[Callable[[Vector], Vector], bool]  # solves with M_Q; whether exactly


def _dense_factor(G: Vector, n: int, p: float) -> Factor:
    """Cholesky of M_Q from the Gram matrix of A_Q; inexact where it needed jitter."""
    M = G[:n, :n] + np.eye(n)
    if G.shape[0] > n:
        M -= np.outer(G[:n, n], G[:n, n] / (G[n, n] + p))
    diagonal, jitter = M.diagonal().copy(), 0.0
    while True:
        try:
            factor = scipy.linalg.cho_factor(M, lower=True, check_finite=False)
            return lambda r: scipy.linalg.cho_solve(factor, r, check_finite=False), jitter == 0
        except np.linalg.LinAlgError:
            jitter = max(1e-14, 100.0 * jitter)
            if jitter > 1e-6 or not np.all(np.isfinite(diagonal)):
                raise
            M[np.diag_indices(n)] = diagonal * (1.0 + jitter)


def _sparse_factor(G: Any, n: int, p: float) -> Factor:
    """Sparse factors of M_S = I + X_Q'DX_Q, and Sherman-Morrison for -c c'/s (section 10).

    dw = a + b (c'a) / (s - c'b), a = M_S^-1 r, b = M_S^-1 c. The denominator cancels where
    columns add up to a constant (one-hot groups): never exact.
    """
    S = sparse.csc_array(G[:n, :n] + sparse.eye_array(n))
    factor = scipy.sparse.linalg.splu(
        S, permc_spec="MMD_AT_PLUS_A", diag_pivot_thresh=0.0, options={"SymmetricMode": True}
    )
    if G.shape[0] == n:
        return factor.solve, False
    c = G[:n, [n]].toarray()[:, 0]
    s = float(G[n, n]) + p
    b = factor.solve(c)
    pivot = max(s - float(c @ b), 1e-10 * s)

    def solve(r: Vector) -> Vector:
        a = factor.solve(r)
        return np.asarray(a + b * (c @ a) / pivot)

    return solve, False


def _dual_factor(parts: tuple[list[Any], Vector], n: int, p: float) -> Factor:
    """M_Q = L + X_Q'(D - d d'/(s + p))X_Q through a q x q matrix; L: the other rows' diagonal.

    M_Q^-1 r = L^-1 (r - X'z), where S z + a t = X L^-1 r and a'z = p t, S = D^-1 + X L^-1 X'
    and a the column of the intercept: Woodbury, without a small denominator.
    """
    blocks, diagonal = parts
    rows = [rows for rows, _ in blocks]
    A = sparse.csr_array(sparse.vstack(rows)) if sparse.issparse(rows[0]) else np.vstack(rows)
    d = np.concatenate([d for _, d in blocks])
    L = 1.0 + diagonal[:n]
    X = A[:, :n]
    scaled = X.multiply(1.0 / L).tocsr() if sparse.issparse(X) else X / L
    S = scaled @ X.T
    S = np.asarray(S.toarray() if sparse.issparse(S) else S) + np.diag(1.0 / d)
    factor = scipy.linalg.cho_factor(S, lower=True, check_finite=False)
    back = lambda r: scipy.linalg.cho_solve(factor, r, check_finite=False)  # noqa: E731
    if A.shape[1] == n:
        return lambda r: (r - X.T @ back(scaled @ r)) / L, True
    a = A[:, [n]].toarray()[:, 0] if sparse.issparse(A) else A[:, n]
    border = back(a)

    def solve(r: Vector) -> Vector:
        z = back(scaled @ r)
        z = z - border * ((a @ z) / (p + a @ border))
        return np.asarray((r - X.T @ z) / L)

    return solve, True


# -- functions of one block ------------------------------------------------------------


def _vectors(part: RowState) -> list[Vector]:
    """The row vectors in the order of RowVectors in cpp/row_steps.hpp."""
    return [getattr(part, name) for name in _VECTORS]


def _advance(part: RowState, t: float, hinge: bool) -> tuple[float, float, float]:
    """Apply the last step and weigh the rows anew: d = 1 / omega.

    Returns the sum of complementary products, the losses, and the linear part of D.
    """
    return _core.advance(part.C, _vectors(part), t, hinge)


def _predict(
    block: Any, part: RowState, dv: Vector, clip: float, hinge: bool
) -> tuple[Least, float, float, Vector]:
    """Predictor along dv: its step, the sums for mu, and the corrector's right sides.

    With p = ds dalpha and q = dxi du clipped, and left in ``ds`` and ``dxi``, r_Omega of
    the corrector grows by p/alpha - q/u - sigma mu (C/alpha - C/u): the two columns.
    """
    E = np.empty((block.shape[0], 2))
    ratio, _, first, second = _core.predict(
        part.C, _vectors(part), block @ dv, clip, E, hinge
    )
    return Least(1.0 / max(ratio, 1e-300)), first, second, np.asarray(block.T @ E)


def _correct(
    block: Any, part: RowState, dv: Vector, target: float, hinge: bool
) -> tuple[Least, float, float]:
    """Corrector along dv, left in the state, (3.13)-(3.16); its step and sums for mu.

    The step comes with what blocks it: (x, dx, partner, its step, C).
    """
    ratio, i, first, second = _core.correct(
        part.C, _vectors(part), block @ dv, target, hinge
    )
    pairs = [(part.s[i], part.ds[i], part.alpha[i], part.dalpha[i])]
    if hinge:
        pairs += [(part.u[i], -part.dalpha[i], part.xi[i], part.dxi[i])]
    pairs += [(partner, dpartner, x, dx) for x, dx, partner, dpartner in pairs]
    blocking = max(pairs, key=lambda pair: -pair[1] / pair[0])
    return Least(1.0 / max(ratio, 1e-300), (*blocking, part.C[i])), first, second


def _step_length(least: Least, first: float, second: float, products: float, pairs: float) -> float:
    """Mehrotra's rule: let the blocking product end at a hundredth of mu, at 0.99 least."""
    if not least.key <= 1.0:
        return 1.0
    t, (x, dx, partner, dpartner, C) = least.key, least.value
    mu = (products + t * first + t * t * second) / pairs
    aimed = (0.01 * mu * C / (partner + t * dpartner) - x) / dx
    return (1.0 - 1e-8) * min(t, max(aimed, 0.99 * t))


# -- Gondzio's corrector ---------------------------------------------------------------


def _recentre(
    A: Rows, state: RowState, normal: _Normal, t: float, target: float, products: float,
    pairs: float, hinge: bool,
) -> tuple[Vector, float]:
    """One centrality corrector: what it adds to dv, and the new step length.

    The trial step is min(1, 1.5 t + 0.3); products outside [0.1, 10] sigma mu are aimed
    back. The direction is kept if the step grows by 1 %. Two sweeps more.
    """
    trial = min(1.0, 1.5 * t + 0.3)
    shift = normal.solve(A.sweep(_corrections_sum, state, trial, target, hinge))
    moved = state.join(A.state(shift=0.0))
    step = A.sweep(_try_corrections, moved, shift, trial, target, hinge)
    longer = _step_length(*step, products, pairs)
    if longer < 1.01 * t:
        return np.zeros_like(shift), t
    moved.sweep(_accept_corrections, trial, target, hinge)
    return shift, longer


def _corrections(part: RowState, trial: float, target: float, hinge: bool) -> tuple[Vector, Any]:
    """What to add to the products s alpha and xi u (0 for the squared hinge)."""
    goal = target * part.C

    def aim(x: Vector, dx: Vector, partner: Vector, dpartner: Vector) -> Vector:
        product = (x + trial * dx) * (partner + trial * dpartner)
        return np.maximum(np.clip(product, 0.1 * goal, 10.0 * goal) - product, -10.0 * goal)

    other = aim(part.xi, part.dxi, part.u, -part.dalpha) if hinge else 0.0
    return aim(part.s, part.ds, part.alpha, part.dalpha), other


def _corrections_sum(
    block: Any, part: RowState, trial: float, target: float, hinge: bool
) -> Vector:
    e_s, e_x = _corrections(part, trial, target, hinge)
    change = e_s / part.alpha - (e_x / part.u if hinge else 0.0)
    return np.asarray(block.T @ (part.d * change))


def _corrected(
    part: RowState, trial: float, target: float, hinge: bool
) -> tuple[Vector, Vector, Vector]:
    """Dalpha, ds, dxi with the corrections, for A d(dv) in ``shift``."""
    e_s, e_x = _corrections(part, trial, target, hinge)
    more = part.d * (e_s / part.alpha - (e_x / part.u if hinge else 0.0) - part.shift)
    ds = part.ds + (e_s - part.s * more) / part.alpha
    dxi = part.dxi + ((e_x + part.xi * more) / part.u if hinge else 0.5 * more / part.C)
    return part.dalpha + more, ds, dxi


def _try_corrections(
    block: Any, part: RowState, shift: Vector, trial: float, target: float, hinge: bool
) -> tuple[Least, float, float]:
    """The step, and the sums for mu, of the corrected direction."""
    part.shift = block @ shift
    dalpha, ds, dxi = _corrected(part, trial, target, hinge)
    quads = [(part.s, ds, part.alpha, dalpha)]
    if hinge:
        quads.append((part.xi, dxi, part.u, -dalpha))
    best, first, second = Least(np.inf), 0.0, 0.0
    for x, dx, partner, dpartner in quads:
        first += float(x @ dpartner + partner @ dx)
        second += float(dx @ dpartner)
        for a, da, b, db in ((x, dx, partner, dpartner), (partner, dpartner, x, dx)):
            i = int(np.argmax(-da / a))
            room = float(-da[i] / a[i])
            best += Least(1.0 / max(room, 1e-300), (a[i], da[i], b[i], db[i], part.C[i]))
    return best, first, second


def _accept_corrections(part: RowState, trial: float, target: float, hinge: bool) -> None:
    part.dalpha, part.ds, part.dxi = _corrected(part, trial, target, hinge)


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
