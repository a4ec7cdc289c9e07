"""Normal equations of an interior point method, reduced to an active set of rows.

K dv = r with K = R + A'DA over all rows is solved through a matrix of the rows in the
active set Q and, where that is inexact, conjugate gradients with K itself. Equation
numbers are from [jung2008]_.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import scipy.sparse.linalg
from scipy import sparse

from widemargin import _core
from widemargin.arrays import Index, Vector
from widemargin.data.state import RowState
from widemargin.numerics import linalg
from widemargin.numerics.cholesky import cholesky, threads_for, with_jitter
from widemargin.problems.base import Problem

# The row vectors, in the order of RowVectors in cpp/row_steps.hpp.
VECTORS = ("alpha", "u", "s", "xi", "d", "dalpha", "ds", "dxi")
# What orders the rows, smallest first, by slacks, multipliers and classes (k,) of some.
Score = Callable[[Vector, Vector, Vector], Vector]
# Solves M_Q x = r, and whether M_Q is then exactly the matrix of its rows.
Factor = tuple[Callable[[Vector], Vector], bool]

# Dense data with fewer columns than this gain nothing from reduction
# (benchmarks/linear/interior_point.py).
REDUCED_COLUMNS = 200
# Order up to which a dense matrix is factored: M_Q, or the q x q matrix of all rows. It
# takes 128 MB.
DENSE_ORDER = 4000
# Entries of X'X a column up to which M_Q is factored as a sparse matrix: with more, the
# factors of rows without structure fill up (benchmarks/linear/interior_point.py).
SPARSE_ENTRIES = 4.0
SPARSE_COLUMNS = 1000
# Rows of the q x q matrix as preconditioner, and how many times more steps it may take.
# (1500 x 5000: half and twice of the first took up to 1.3 times as long, of the second
# within a seventh of the time, benchmarks/core/untuned.py.)
DUAL_ROWS = 1200
DUAL_STEPS = 20
# Conjugate gradients for a reduced matrix: the most steps, and the relative residual at
# their end (of 105 problems 104 were solved; with 0.1 some took 41 iterations more).
REPAIR_STEPS, REPAIR_TOL = 10, 1e-2
# Columns from which the dual form is offered: with q > n it cancels.
DUAL_COLUMNS = 500


def row_vectors(part: RowState) -> list[Vector]:
    """The vectors of some rows, as the C++ core takes them."""
    return [getattr(part, name) for name in VECTORS]


@dataclass(frozen=True, kw_only=True)
class MatrixOptions:
    """Which rows are in the matrix, and how it is solved with.

    The docstring of `InteriorPoint`, which has these options, says what each is.
    """

    mode: Literal["repaired", "published", "damped"] = "repaired"
    reduction: Literal["auto", "omega", "one_sided"] | Score | None = "auto"
    balanced: bool = True
    adaptive: bool = True
    max_active: float = 1.0
    beta: float = 4.0
    theta: float = 100.0
    pcg_tol: float = REPAIR_TOL
    pcg_steps: int | None = None
    normal_matrix: Literal["auto", "dense", "sparse", "dual"] = "auto"
    random_state: int | None = None

    @property
    def repair_steps(self) -> int:
        """The most conjugate gradient steps for a reduced matrix."""
        default = REPAIR_STEPS if self.mode == "repaired" else 0
        return default if self.pcg_steps is None else self.pcg_steps


# -- the active set --------------------------------------------------------------------


class ConstraintSet:
    """The rows Q of the reduced matrix: those whose key is at most their class's level.

    Attributes
    ----------
    rule : what orders the rows: "omega", "one_sided", a function, or "random"
    levels : ndarray (2,) for the classes -1 and +1, or None for all rows
    state : RowState, with what breaks ties of the rule

    Notes
    -----
    The set as published holds the q rows of (3.18)-(3.22), no more and no fewer. Other
    modes let it grow where directions are bad, keep 2 n rows, and take all of them
    where that hardly costs more.
    """

    def __init__(
        self, options: MatrixOptions, problem: Problem, state: RowState, form: str
    ) -> None:
        self._options, self.state = options, state
        self._published = options.mode != "repaired"
        self._m, n = problem.rows.shape
        self._rule = _choose_rule(options, problem, form)
        self.rule = self._rule
        if self.rule is not None:
            rng = np.random.default_rng(options.random_state or 0)
            tie = 1.0 + 1e-6 * rng.random(self._m)
            self.state = state.join(problem.A.state(tie=tie))
        self._scale = 1.0 if self._published else problem.total_weight / self._m
        self._most = max(1, round(options.max_active * self._m))
        self._least = min(self._m, 2 * n) if options.repair_steps else 1
        self._cap = self._m
        if form == "dual" and self._m > min(n, DENSE_ORDER):
            self._cap = self._most = self._least = min(self._most, n, DUAL_ROWS)
        self._floor = self._least
        self.levels: Vector | None = None

    def choose(self, mu: float, knows: bool = True) -> None:
        """Q for this mu, (3.18)-(3.22): q_U random rows where nothing is known yet."""
        if self._rule is None:
            return
        self.rule = self._rule if knows else "random"
        threshold = self._options.theta * np.sqrt(mu)
        sizes, must = self.state.sweep(
            _class_counts, self.rule, self._scale * threshold, np.sqrt(mu)
        )
        q, needed = self._most, np.zeros(2)
        if knows and self._options.adaptive:
            q = min(q, int(np.ceil(mu ** (1 / self._options.beta) * self._m)))
            needed = must
        q = min(max(q, self._floor), self._cap)
        total = min(max(q, int(needed.sum())), self._cap)
        if not self._published and total > 0.8 * self._m:
            self.levels = None  # a gather would cost more than it saves
        elif self._options.balanced:
            wanted = class_sizes(q, needed, sizes)
            wanted = np.floor(wanted * min(1.0, self._cap / wanted.sum()))
            self.levels = np.array([self._level(wanted[k], k) for k in (0, 1)])
        else:
            self.levels = np.full(2, self._level(total, None))

    def _level(self, count: float, label: int | None) -> float:
        """The key up to which a class, or both, has the wanted number of rows."""
        if count == 0:
            return -np.inf
        return self.state.threshold(_class_keys, count, self.rule, label)

    def grow(self, normal: "NormalEquations", behind: bool) -> None:
        """Raise the floor of |Q| where Q was too small, else lower it.

        Q was too small if conjugate gradients had to work, or the last direction did
        not bring R v - A'alpha down as a step of its length should.
        """
        if normal.steps > 5 or behind:
            self._floor = min(self._m, int(1.5 * normal.n_active))
        else:
            self._floor = max(self._least, int(0.9 * self._floor))
        if behind:
            self._least = self._floor


def class_sizes(q: float, needed: Vector, sizes: Vector) -> Vector:
    """Rows of the classes -1 and +1 in a balanced Q, (3.21)-(3.22): (2,).

    A class has max(q_L, min(ceil(q / 2), m)) rows, with its ``needed`` q_L and its size
    m; ``q`` is min(ceil(rho m), q_U), without q_L. Then one of the classes is adjusted
    until both have max(q_L, q) together, with q_L now of both, as in (3.18).
    """
    wanted = np.maximum(needed, np.minimum(np.ceil(q / 2), sizes))
    total = max(q, needed.sum())
    for k in np.argsort(needed - wanted):  # from the class with the most to spare
        wanted[k] = np.clip(total - wanted[1 - k], needed[k], sizes[k])
    return wanted


def _choose_rule(
    options: MatrixOptions, problem: Problem, form: str
) -> "str | Score | None":
    """The rule of the active set, or None where reduction does not pay."""
    if options.reduction == "auto":
        dense = problem.rows.density > linalg.DENSE_GRAM_DENSITY
        wide = form == "dense" and problem.rows.shape[1] >= REDUCED_COLUMNS
        asked = options.max_active < 1.0 or options.mode != "repaired"
        pays = form == "dual" or (dense and wide) or asked
        return "omega" if pays else None
    return options.reduction or ("omega" if form == "dual" else None)


def _key(part: RowState, rule: "str | Score | None") -> Vector:
    """What orders the rows, smallest first; ``tie`` is random, 1 to 1 + 1e-6."""
    if rule == "random":
        return np.asarray(part.tie)
    if callable(rule):
        return np.asarray(_score(part, rule) * part.tie)
    return np.asarray((-part.d if rule == "omega" else part.s) * part.tie)


def _score(part: RowState, rule: Score) -> Vector:
    """What the user's function says of some rows, checked."""
    score = np.asarray(rule(part.s, part.alpha, part.labels))
    fits = score.shape == part.s.shape and score.dtype.kind in "fiub"
    if not (fits and np.isfinite(score).all()):
        got = f"shape {score.shape} and dtype {score.dtype}"
        raise ValueError(
            "The 'reduction' function of InteriorPoint must return finite numbers of "
            f"shape {part.s.shape}. Got {'NaN or infinity' if fits else got} instead."
        )
    return score.astype(np.float64, copy=False)


def _class_keys(
    part: RowState, rule: "str | Score", label: int | None
) -> tuple[Vector, Vector]:
    """Keys, and weight 1 for the rows of one class (0: -1, 1: +1) or of both."""
    if label is None:
        return _key(part, rule), np.ones(part.s.shape)
    return _key(part, rule), ((part.labels > 0) == bool(label)).astype(np.float64)


def _class_counts(
    part: RowState, rule: "str | Score", level: float, root: float
) -> tuple[Vector, Vector]:
    """Rows, and rows that must be in Q (3.20), of the classes -1 and +1."""
    if rule == "one_sided":
        must = (part.alpha / part.s >= level) | (part.s <= root)
    else:
        must = part.d >= level
    label = (part.labels > 0).astype(np.intp)
    return _count(label), _count(label[must])


def _count(label: Index) -> Vector:
    return np.bincount(label, minlength=2).astype(np.float64)


def _in_active_set(
    part: RowState, rule: "str | Score | None", levels: Vector | None
) -> Index | None:
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

    def __init__(
        self, options: MatrixOptions, problem: Problem, state: RowState
    ) -> None:
        self.A, self._state, self._R = problem.A, state, problem.R
        self._m, self._n = problem.rows.shape
        self.form = _choose_form(options, problem)
        self._tol = options.pcg_tol
        self._most = options.repair_steps * (DUAL_STEPS if self.form == "dual" else 1)
        self.n_active, self.steps = self._m, 0
        self._whole: tuple[Any, Vector] | None = None
        self._blas = threads_for(min(self._m, self._n))

    def assemble(self, active: ConstraintSet, bounded: bool) -> tuple[Vector, Vector]:
        """First sweep: the matrix of Q, and (A'alpha, A'(d r_Omega)) of all rows."""
        sums, self.n_active, self._matrix = self.A.sweep(
            _assemble, active.state, active.rule, active.levels, bounded, self.form
        )
        self.steps, self._border_sums = 0, sums[2]
        return sums[0], sums[1]

    def assemble_active(self, active: ConstraintSet, border: Vector) -> None:
        """A sweep for the matrix of Q alone, where A'(d y) of all rows is known."""
        self.n_active, self._matrix = self.A.sweep(
            _active_matrix, active.state, active.rule, active.levels, self.form
        )
        self.steps, self._border_sums = 0, border

    def factor(self) -> None:
        """Factor M_Q; with all rows in Q it needs no conjugate gradients."""
        n, border = self._n, self._border_sums
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
        return self._R * x + self.A.weighted_product(_weights, self._state, x)


def _choose_form(options: MatrixOptions, problem: Problem) -> str:
    """How to solve with M_Q: see ``normal_matrix`` of `InteriorPoint`."""
    if options.normal_matrix != "auto":
        return options.normal_matrix
    m, n = problem.rows.shape
    if options.mode != "repaired":
        return "sparse" if _gram_is_sparse(problem) else "dense"
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
    rule: "str | Score | None",
    levels: Vector | None,
    bounded: bool,
    form: str,
) -> tuple[Vector, int, Any]:
    """A'[alpha, d r_Omega, d y] over all rows, |Q|, and what the matrix of Q needs."""
    index = _in_active_set(part, rule, levels)
    sums, whole = np.zeros((3, block.shape[1])), None
    if index is None and form == "dense" and block.has_core_gram:
        whole = np.empty((block.shape[1],) * 2)
    _core.normal_sweep(block.in_core(), part.C, row_vectors(part), sums, whole, bounded)
    if whole is not None:
        return sums, block.shape[0], whole
    return sums, *_matrix_of(block, part, index, form)


def _active_matrix(
    block: Any,
    part: RowState,
    rule: "str | Score | None",
    levels: Vector | None,
    form: str,
) -> tuple[int, Any]:
    """|Q|, and what the matrix of Q needs; leaves Q in the state, 1 and 0."""
    index = _in_active_set(part, rule, levels)
    part.chosen = np.zeros(block.shape[0])
    part.chosen[slice(None) if index is None else index] = 1.0
    return _matrix_of(block, part, index, form)


def _matrix_of(
    block: Any, part: RowState, index: Index | None, form: str
) -> tuple[int, Any]:
    """How many rows are in Q, and what their matrix needs."""
    rows, d = (block, part.d) if index is None else (block[index], part.d[index])
    if form == "dense":
        return rows.shape[0], linalg.gram(rows, d)
    if form == "sparse":
        return rows.shape[0], linalg.sparse_gram(rows, d)
    others = part.d.copy()
    others[slice(None) if index is None else index] = 0.0
    diagonal = linalg.gram_diagonal(block, others)
    return rows.shape[0], ([(rows.matrix(), d)], diagonal)


def _weights(part: RowState) -> Vector:
    return part.d


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
