"""Normal equations of an interior point method, reduced to an active set of rows.

K dv = r with K = R + A'DA over all rows is solved through a matrix of the rows in the
active set Q and, where that is inexact, conjugate gradients with K itself. Equation
numbers are those of [jung2008]_.
"""

from collections.abc import Callable
from typing import Any, Protocol

import numpy as np
import scipy.sparse.linalg
from numpy.typing import NDArray
from scipy import sparse

from widemargin import _core
from widemargin.data.state import RowState
from widemargin.numerics import linalg
from widemargin.numerics.cholesky import cholesky, threads_for, with_jitter
from widemargin.problems.linear import Problem

Vector = NDArray[np.float64]
# The row vectors, in the order of RowVectors in cpp/row_steps.hpp.
VECTORS = ("alpha", "u", "s", "xi", "d", "dalpha", "ds", "dxi")
# Solves M_Q x = r, and whether M_Q is then exactly the matrix of its rows.
Factor = tuple[Callable[[Vector], Vector], bool]

# Dense data with fewer columns than this gain nothing from reduction
# (benchmarks/linear/interior_point.py).
REDUCED_COLUMNS = 200
# Order up to which a dense matrix is factored: M_Q, or the q x q matrix of all rows.
DENSE_ORDER = 4000
# Entries of X'X a column up to which M_Q is factored as a sparse matrix: with more, the
# factors of rows without structure fill up (benchmarks/linear/interior_point.py).
SPARSE_ENTRIES = 4.0
SPARSE_COLUMNS = 1000
# Rows of the q x q matrix as preconditioner, and how many times more steps it may take.
DUAL_ROWS = 1200
DUAL_STEPS = 20
# Columns from which the dual form is offered: with q > n it cancels.
DUAL_COLUMNS = 500


def row_vectors(part: RowState) -> list[Vector]:
    """The vectors of some rows, as the C++ core takes them."""
    return [getattr(part, name) for name in VECTORS]


class _Options(Protocol):
    """What `InteriorPoint` chooses here; its docstring says what each is."""

    @property
    def reduction(self) -> str | None: ...
    @property
    def balanced(self) -> bool: ...
    @property
    def adaptive(self) -> bool: ...
    @property
    def max_active(self) -> float: ...
    @property
    def beta(self) -> float: ...
    @property
    def theta(self) -> float: ...
    @property
    def pcg_tol(self) -> float: ...
    @property
    def pcg_steps(self) -> int: ...
    @property
    def normal_matrix(self) -> str: ...
    @property
    def random_state(self) -> int | None: ...


# -- the active set --------------------------------------------------------------------


class ConstraintSet:
    """The rows Q of the reduced matrix: those whose key is at most their class's level.

    Attributes
    ----------
    levels : ndarray (2,) for the classes -1 and +1, or None for all rows
    state : RowState, with what breaks ties of the rule
    """

    def __init__(
        self, options: _Options, problem: Problem, state: RowState, form: str
    ) -> None:
        self._options, self.state = options, state
        self._m, n = problem.rows.shape
        self.rule = _choose_rule(options, problem, form)
        if self.rule is not None:
            rng = np.random.default_rng(options.random_state or 0)
            tie = 1.0 + 1e-6 * rng.random(self._m)
            self.state = state.join(problem.A.state(tie=tie))
        self._scale = problem.zero_objective / self._m  # mean C
        self._most = max(1, round(options.max_active * self._m))
        self._least = min(self._m, 2 * n) if options.pcg_steps else 1
        self._cap = self._m
        if form == "dual" and self._m > min(n, DENSE_ORDER):
            self._cap = self._most = self._least = min(self._most, n, DUAL_ROWS)
        self._floor = self._least
        self.levels: Vector | None = None

    def choose(self, mu: float) -> None:
        """Q for this mu, (3.18)-(3.22)."""
        if self.rule is None:
            return
        options, q, needed = self._options, self._most, np.zeros(2)
        threshold = options.theta * np.sqrt(mu)
        sizes, must = self.state.sweep(
            _class_counts, self.rule, self._scale * threshold, np.sqrt(mu)
        )
        if options.adaptive:
            q, needed = min(q, int(np.ceil(mu ** (1 / options.beta) * self._m))), must
        q = min(max(q, self._floor, int(needed.sum())), self._cap)
        if q > 0.8 * self._m:
            self.levels = None  # a gather would cost more than it saves
        elif options.balanced:
            wanted = np.minimum(np.maximum(needed, np.ceil(q / 2)), sizes)
            wanted *= min(1.0, self._cap / wanted.sum())
            wanted = np.minimum(wanted + max(0.0, q - wanted.sum()), sizes)
            self.levels = np.array([self._level(wanted[k], k) for k in (0, 1)])
        else:
            self.levels = np.full(2, self._level(q, None))

    def _level(self, count: float, label: int | None) -> float:
        return self.state.threshold(_class_keys, count, self.rule, label)

    def grow(self, normal: "NormalEquations", behind: bool) -> None:
        """Raise the floor of |Q| where Q was too small, else lower it.

        That is where conjugate gradients had to work, or the last direction did not
        bring R v - A'alpha down as a step of its length should.
        """
        if normal.steps > 5 or behind:
            self._floor = min(self._m, int(1.5 * normal.n_active))
        else:
            self._floor = max(self._least, int(0.9 * self._floor))
        if behind:
            self._least = self._floor


def _choose_rule(options: _Options, problem: Problem, form: str) -> str | None:
    """The rule of the active set, or None where reduction does not pay."""
    if options.reduction == "auto":
        dense = problem.rows.density > linalg.DENSE_GRAM_DENSITY
        wide = form == "dense" and problem.rows.shape[1] >= REDUCED_COLUMNS
        pays = form == "dual" or (dense and wide) or options.max_active < 1.0
        return "omega" if pays else None
    return options.reduction or ("omega" if form == "dual" else None)


def _key(part: RowState, rule: str | None) -> Vector:
    """What orders the rows, smallest first; ``tie`` is random, 1 to 1 + 1e-6."""
    return np.asarray((-part.d if rule == "omega" else part.s) * part.tie)


def _class_keys(part: RowState, rule: str, label: int | None) -> tuple[Vector, Vector]:
    """Keys, and weight 1 for the rows of one class (0: -1, 1: +1) or of both."""
    if label is None:
        return _key(part, rule), np.ones(part.s.shape)
    return _key(part, rule), ((part.labels > 0) == bool(label)).astype(np.float64)


def _class_counts(
    part: RowState, rule: str, level: float, root: float
) -> tuple[Vector, Vector]:
    """Rows, and rows that must be in Q (3.20), of the classes -1 and +1."""
    if rule == "omega":
        must = part.d >= level
    else:
        must = (part.alpha / part.s >= level) | (part.s <= root)
    label = (part.labels > 0).astype(np.intp)
    return _count(label), _count(label[must])


def _count(label: NDArray[np.intp]) -> Vector:
    return np.bincount(label, minlength=2).astype(np.float64)


def _in_active_set(
    part: RowState, rule: str | None, levels: Vector | None
) -> NDArray[np.intp] | None:
    """Indices of the rows in Q; None for all."""
    if levels is None:
        return None
    return np.flatnonzero(_key(part, rule) <= levels[(part.labels > 0).astype(np.intp)])


# -- the normal equations --------------------------------------------------------------


class NormalEquations:
    """K dv = r, by a matrix of the rows in Q and conjugate gradients.

    Eliminating b leaves (3.11): M = R_w + X'DX - c c'/s, c = X'd, s = sum d + p. Only M
    is reduced to M_Q; c and s keep all rows (3.12): one equation alone is inexact.

    Attributes
    ----------
    n_active : int, |Q|
    steps : int, conjugate gradient steps since the last `assemble`
    refines : bool
        Whether an exact factor is followed by a step of refinement, which takes a
        sweep.
    """

    refines: bool = False

    def __init__(self, options: _Options, problem: Problem, state: RowState) -> None:
        self.A, self._state, self._R = problem.A, state, problem.penalty
        self._m, self._n = problem.rows.shape
        self.form = _choose_form(options, problem)
        self._tol = options.pcg_tol
        self._most = options.pcg_steps * (DUAL_STEPS if self.form == "dual" else 1)
        self.n_active, self.steps = self._m, 0
        self._whole: tuple[Any, Vector] | None = None
        self._blas = threads_for(min(self._m, self._n))

    def assemble(self, active: ConstraintSet, hinge: bool) -> tuple[Vector, Vector]:
        """First sweep: the matrix of Q, and (A'alpha, A'(d r_Omega)) of all rows."""
        self._sums, self.n_active, self._matrix = self.A.sweep(
            _assemble, active.state, active.rule, active.levels, hinge, self.form
        )
        self.steps = 0
        return self._sums[0], self._sums[1]

    def factor(self) -> None:
        """Factor M_Q; with all rows in Q it needs no conjugate gradients."""
        n, border = self._n, self._sums[2]
        self._border = border[:n] if border.size > n else None
        self._pivot = float(border[-1] + self._R[-1])
        with self._blas:
            matrix = self._products() if self.form == "dual" else self._matrix
            self._solve_w, exact = _FACTORS[self.form](matrix, n, self._R[-1])
        self._exact = exact and self.n_active == self._m

    def _products(self) -> tuple[Any, Vector, Vector, Vector]:
        """A_Q, d_Q, L and X_Q L^-1 X_Q', with L from the diagonal of the other rows.

        With all rows in Q only d changes from one iteration to the next.
        """
        blocks, others = self._matrix
        L = 1.0 + others[: self._n]
        whole = self.n_active == self._m
        if not whole or self._whole is None:
            A = linalg.stack([rows for rows, _ in blocks])
            X = A[:, : self._n]
            S = linalg.row_products(X, 1.0 / L)
            self._whole = (A, S) if whole else None
        else:
            A, S = self._whole
        return A, np.concatenate([d for _, d in blocks]), L, S

    def _precondition(self, r: Vector) -> Vector:
        """Solve with M_Q and the border of all rows: with K where Q is all rows."""
        if self._border is None:
            return self._solve_w(r)
        dw = self._solve_w(r[:-1] - r[-1] / self._pivot * self._border)
        return np.append(dw, (r[-1] - self._border @ dw) / self._pivot)

    def solve(self, r: Vector) -> Vector:
        """Dv for the right side r, by conjugate gradients where M_Q is inexact."""
        with self._blas:
            return self._solve(r)

    def _solve(self, r: Vector) -> Vector:
        dv = self._precondition(r)
        if self._exact and self.refines:
            return dv + self._precondition(r - self._product(dv))
        if self._exact or not self._most:
            return dv
        residual, p, last = r - self._product(dv), np.zeros_like(r), np.inf
        goal = self._tol * np.linalg.norm(r)
        for _ in range(self._most):
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
        product: Vector = self.A.sweep(_weighted_product, self._state, x)
        return self._R * x + product


def _choose_form(options: _Options, problem: Problem) -> str:
    """How to solve with M_Q: see ``normal_matrix`` of `InteriorPoint`."""
    if options.normal_matrix != "auto":
        return options.normal_matrix
    m, n = problem.rows.shape
    if n >= SPARSE_COLUMNS and _gram_is_sparse(problem):
        return "sparse"
    if n <= DENSE_ORDER and n <= m:
        return "dense"
    return "dual"


def _gram_is_sparse(problem: Problem) -> bool:
    m, n = problem.rows.shape
    # Rows of equal length have nnz^2 / m entries of X'X, others more: count only then.
    if m * (problem.rows.density * n) ** 2 > SPARSE_ENTRIES * n:
        return False
    return bool(problem.rows.sweep(_gram_entries) <= SPARSE_ENTRIES * n)


def _gram_entries(block: Any, part: None) -> float:
    """Bound of the entries of X'X: the sum of the squared row lengths."""
    return float(np.square(linalg.row_lengths(block), dtype=np.float64).sum())


def _assemble(
    block: Any,
    part: RowState,
    rule: str | None,
    levels: Vector | None,
    hinge: bool,
    form: str,
) -> tuple[Vector, int, Any]:
    """A'[alpha, d r_Omega, d y] over all rows, |Q|, and what the matrix of Q needs."""
    index = _in_active_set(part, rule, levels)
    sums, whole = np.zeros((3, block.shape[1])), None
    if index is None and form == "dense" and block.has_core_gram:
        whole = np.empty((block.shape[1],) * 2)
    _core.normal_sweep(block.in_core(), part.C, row_vectors(part), sums, whole, hinge)
    if whole is not None:
        return sums, block.shape[0], whole
    rows, d = (block, part.d) if index is None else (block[index], part.d[index])
    if form == "dense":
        return sums, rows.shape[0], linalg.gram(rows, d)
    if form == "sparse":
        return sums, rows.shape[0], linalg.sparse_gram(rows, d)
    others = part.d.copy()
    others[slice(None) if index is None else index] = 0.0
    diagonal = linalg.gram_diagonal(block, others)
    return sums, rows.shape[0], ([(rows.matrix(), d)], diagonal)


def _weighted_product(block: Any, part: RowState, x: Vector) -> Vector:
    return np.asarray(block.T @ (part.d * (block @ x)))


# -- factors of M_Q --------------------------------------------------------------------


def _dense_factor(G: Vector, n: int, p: float) -> Factor:
    """Cholesky of M_Q from the Gram matrix of A_Q; inexact where it needed jitter."""
    M = G[:n, :n] + np.eye(n)
    if G.shape[0] > n:
        M -= np.outer(G[:n, n], G[:n, n] / (G[n, n] + p))
    solve, jitter = cholesky(M)
    return solve, jitter == 0.0


def _sparse_factor(G: Any, n: int, p: float) -> Factor:
    """Sparse factors of M_S = I + X_Q'DX_Q, and Sherman-Morrison for - c c'/s.

    dw = a + b (c'a) / (s - c'b), a = M_S^-1 r, b = M_S^-1 c. The denominator cancels
    where columns add up to a constant (one-hot groups): never exact (section 10).
    """
    M = sparse.csc_array(G[:n, :n] + sparse.eye_array(n))
    diagonal = M.diagonal()
    factor, _ = with_jitter(
        lambda jitter: _sparse_lu(M + sparse.diags_array(jitter * diagonal))
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


def _sparse_lu(M: Any) -> Any:
    """Sparse factors of a symmetric positive definite matrix (SuperLU, no pivots)."""
    try:
        return scipy.sparse.linalg.splu(
            sparse.csc_array(M),
            permc_spec="MMD_AT_PLUS_A",
            diag_pivot_thresh=0.0,
            options={"SymmetricMode": True},
        )
    except RuntimeError as error:  # a pivot is zero
        raise np.linalg.LinAlgError(str(error)) from error


def _dual_factor(parts: tuple[Any, Vector, Vector, Vector], n: int, p: float) -> Factor:
    """M_Q = L + X_Q'(D - d d'/(s + p))X_Q by a q x q matrix; L: the others' diagonal.

    M_Q^-1 r = L^-1 (r - X'z), where S z + a t = X L^-1 r and a'z = p t, with
    S = D^-1 + X L^-1 X' and a the column of the intercept: Woodbury's formula, without
    a small denominator.
    """
    A, d, L, products = parts
    X, S = A[:, :n], products.copy()
    S[np.diag_indices_from(S)] += 1.0 / d
    solve_S, _ = cholesky(S)
    if A.shape[1] == n:
        return lambda r: np.asarray((r - X.T @ solve_S(X @ (r / L))) / L), False
    a = linalg.dense(A[:, [n]])[:, 0]
    b = solve_S(a)

    def solve(r: Vector) -> Vector:
        z = solve_S(X @ (r / L))
        z -= b * ((a @ z) / (p + a @ b))
        return np.asarray((r - X.T @ z) / L)

    return solve, False


_FACTORS: dict[str, Callable[[Any, int, float], Factor]] = {
    "dense": _dense_factor,
    "sparse": _sparse_factor,
    "dual": _dual_factor,
}
FORMS = tuple(_FACTORS)
