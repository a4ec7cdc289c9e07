"""Matching pursuit with kernel functions: rows whose span is near to a function.

For f in the space of a kernel and chosen rows J let f_J be the projection of f on the
span of their kernel functions, and d_i the squared distance of phi(x_i) from it. The
row of the largest (f(x_i) - f_J(x_i))^2 / d_i brings f_J nearest to f: orthogonal
matching pursuit [pati1993]_. Distances and residuals follow from a partial Cholesky
factor of the kernel matrix of the candidates.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve_triangular

from widemargin.arrays import Index, Vector
from widemargin.kernels.matrix import Columns
from widemargin.system import deadline
from widemargin.system.threads import ONE_BLAS_THREAD

# Rows that are chosen together, and the best rows that they are chosen from. At 500
# rows of a9a, ijcnn1 and mnist 64 of 256 at a time left up to a fifth more of
# |f - f_J|^2, one by one at most 6 % less in 7 to 10 times the time.
BLOCK, POOL = 16, 128
# The share of the time limit after which no more are chosen: a refit, which solves a
# problem of as many rows again, needs the rest.
ENDED = 0.5
# Share of k(x, x) that must be new in a row: the factor is in float32.
NEW = 1e-4


def pursue(columns: Columns, candidates: Index, f: Vector, most: int) -> Index:
    """Candidates in the order of matching pursuit.

    Parameters
    ----------
    columns : Columns
    candidates : int ndarray (n,), rows of the kernel matrix
    f : ndarray (n,), the values of f there
    most : int, how many are chosen at most

    Returns
    -------
    int ndarray (k,), places in ``candidates``
        Fewer than ``most`` where no other row has more than 1e-4 of its k(x, x) outside
        the span of these (duplicates, kernels of low rank), where f lies in the span,
        or when half of the time until a deadline is over.
        The first k for any ``most`` are the same.

    Notes
    -----
    k n kernel values, k^2 n multiplications in float32, 4 k n bytes.
    """
    pursuit = _Pursuit(columns, candidates, f, min(most, len(candidates)))
    with ONE_BLAS_THREAD:  # products of 16 columns: two threads took twice as long
        while pursuit.extend() and not deadline.passed(ENDED):
            pass
    return np.array(pursuit.chosen, dtype=np.intp)


class _Pursuit:
    """What is left of f and of the candidates outside the span of the chosen rows."""

    def __init__(
        self, columns: Columns, candidates: Index, f: Vector, most: int
    ) -> None:
        self._columns, self._candidates = columns, candidates
        self._factor = np.empty((most, len(candidates)), np.float32)
        diagonal = columns.diag()[candidates]
        self._rest, self._least = diagonal.copy(), NEW * diagonal
        self._residual = f.copy()
        self.chosen: list[int] = []

    def extend(self) -> bool:
        """Choose some more; whether there were any."""
        k = len(self.chosen)
        pool = self._pool()
        S = self._products(pool, pool)
        count = min(BLOCK, len(self._factor) - k)
        order, L = _one_by_one(S, self._residual[pool], self._least[pool], count)
        if not order:
            return False
        new = pool[order]
        A = self._products(new, np.arange(len(self._candidates)))
        rows = solve_triangular(L.astype(A.dtype), A, lower=True, check_finite=False)
        t = solve_triangular(L, self._residual[new], lower=True)
        self._factor[k : k + len(new)] = rows
        self._residual -= t @ rows
        self._rest -= np.einsum("ij,ij->j", rows, rows)
        self._rest[new] = 0.0
        self.chosen += new.tolist()
        return True

    def _pool(self) -> Index:
        """The candidates that would each bring the projection nearest to f."""
        good = self._rest > self._least
        score = np.zeros(len(good))
        score[good] = self._residual[good] ** 2 / self._rest[good]
        count = min(POOL, int(np.count_nonzero(score)))
        if count == 0:
            return np.empty(0, np.intp)
        return np.sort(np.argpartition(-score, count - 1)[:count])

    def _products(self, some: Index, others: Index) -> NDArray[Any]:
        """Inner products of what rows have outside of the span, float32."""
        A = self._columns.block(self._candidates[some], self._candidates[others])
        factor = self._factor[: len(self.chosen)]
        right = factor if len(others) == factor.shape[1] else factor[:, others]
        return np.asarray(A - factor[:, some].T @ right, dtype=np.float32)


def _one_by_one(
    S: NDArray[Any], r: Vector, least: Vector, most: int
) -> tuple[list[int], Vector]:
    """Matching pursuit with products S of few rows: their order, and its factor L."""
    d, r = S.diagonal().astype(np.float64), r.copy()
    factor = np.zeros((most, len(r)))
    order: list[int] = []
    for k in range(most):
        good = d > least
        if not good.any():
            break
        j = int(np.argmax(np.where(good, r * r / np.where(good, d, 1.0), -1.0)))
        g = (S[j] - factor[:k, j] @ factor[:k]) / np.sqrt(d[j])
        r -= g * (r[j] / np.sqrt(d[j]))
        d -= g * g
        d[j] = -np.inf
        factor[k] = g
        order.append(j)
    return order, np.tril(factor[: len(order), order].T)
