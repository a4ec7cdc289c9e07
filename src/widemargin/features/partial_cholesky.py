"""Partial Cholesky factors K ~ Z Z' of kernel matrices, a block of pivots at a time."""

from collections.abc import Callable

import numpy as np
from scipy.linalg import solve_triangular
from scipy.linalg.lapack import dpstrf

from widemargin.arrays import Index, Vector
from widemargin.features.builder import CUT, MapBuilder
from widemargin.features.maps import FeatureMap, Features
from widemargin.system import deadline

# Pivots that are chosen together, rows that they are chosen from, and the share of the
# largest residual outside of these that each pivot has at least. One by one, rank
# 300 of a9a took 9 times the time and left 0.204 of the trace instead of 0.195; a share
# of 0.8 left 0.202.
BLOCK, POOL, SHARE = 32, 96, 0.5
# The share of the time limit after which a factor grows no more: solvers, whose sweeps
# take as many multiplications as the factor, need the rest: time for two of them.
ENDED = 1 / 3


class PartialCholesky:
    """A partial Cholesky factor that grows by blocks of pivots.

    Attributes
    ----------
    builder : MapBuilder
    pivots : list of int, the rows chosen so far
    rest : ndarray (m,), residuals k(x, x) - |z(x)|^2
    least : float, the residual up to which a row is no pivot
    order : int ndarray (m,), of equal residuals
    """

    def __init__(self, builder: MapBuilder, most: int, choose: "Choose") -> None:
        self.builder, self._most, self._choose = builder, most, choose
        self.pivots: list[int] = []
        self.rest = builder.diagonal.copy()
        self.least = CUT[builder.dtype] * float(self.rest.max())
        self.order = builder.rng.permutation(builder.m)
        self._made = np.empty((builder.m, 0), builder.dtype)

    @property
    def Z(self) -> Features:
        """The factor so far: (m, k)."""
        k = len(self.pivots)
        return self._made if self._made.shape[1] == k else self._made[:, :k].copy()

    def feature_map(self, method: str, enough: float) -> FeatureMap:
        """The map of the factor whose residuals sum up to at most a given number.

        Or of the factor as it is after a share of the time limit.
        """
        while self.extend(enough) and not deadline.passed(ENDED):
            pass
        Z, J = self.Z, np.array(self.pivots, np.intp)
        expand = self.builder.landmark_features(J, inverse(Z[J].astype(np.float64)))
        return self.builder.made(method, expand, J, Z)

    def extend(self, enough: float) -> bool:
        """Choose pivots until residuals sum up to a given number; whether to go on."""
        k = len(self.pivots)
        J, L = self._choose(self, min(BLOCK, self._most - k))
        if len(J) == 0:
            return False
        self._grow(k + len(J))
        known = self._made[:, :k]
        A = self.builder.columns(J) - known[J] @ known.T
        new = solve_triangular(L.astype(A.dtype), A, lower=True, check_finite=False)
        squares = new.astype(np.float64) ** 2
        left = float(self.rest.sum()) - np.cumsum(squares.sum(axis=1))
        count = min(len(J), int(np.count_nonzero(left > enough)) + 1)
        self._made[:, k : k + count] = new[:count].T
        self._made[J[:count], k : k + count] = L[:count, :count]  # zeros are zeros
        self.rest -= squares[:count].sum(axis=0)
        self.pivots += J[:count].tolist()
        self.rest[self.pivots] = 0.0
        return count == len(J) and left[-1] > enough and len(self.pivots) < self._most

    def residual(self, J: Index) -> Vector:
        """The products of rows J that are not in the factor: (len(J), len(J))."""
        known = self._made[J, : len(self.pivots)].astype(np.float64)
        return self.builder.source.values(J, J) - known @ known.T

    def _grow(self, k: int) -> None:
        """Room for k columns: all that were asked for, or twice as many as before."""
        if k <= self._made.shape[1]:
            return
        whole = self._made.shape[1] == 0 and self._most < self.builder.m
        width = self._most if whole else min(self._most, max(2 * k, 4 * BLOCK))
        self.builder.reserve(self.builder.m * width)
        made = np.empty((self.builder.m, width), self.builder.dtype)
        made[:, : len(self.pivots)] = self._made[:, : len(self.pivots)]
        self._made = made


# Chooses pivots up to a number: their rows, and the factor of their residual matrix.
Choose = Callable[[PartialCholesky, int], tuple[Index, Vector]]


def largest(factor: PartialCholesky, most: int) -> tuple[Index, Vector]:
    """The rows of the largest residuals, each given the choices before it."""
    order, rest = factor.order, factor.rest
    order = order[np.argsort(-rest[order], kind="stable")]
    pool, beyond = order[:POOL], order[POOL : POOL + 1]
    least = max(factor.least, SHARE * float(rest[beyond].max(initial=0.0)))
    chosen, L = pivots_of(factor.residual(pool), least)
    return pool[chosen[:most]], L[:most, :most]


def by_chance(factor: PartialCholesky, most: int) -> tuple[Index, Vector]:
    """Rows in proportion to residuals, each given the choices before it [chen2025]_.

    Rows drawn by the residuals before the block are taken with the share that is left.
    """
    rng = factor.builder.rng
    weights = np.where(factor.rest > factor.least, factor.rest, 0.0)
    if not weights.any():
        return np.empty(0, np.intp), np.empty((0, 0))
    pool = rng.choice(len(weights), POOL, p=weights / weights.sum())
    S = factor.residual(pool)
    d, drawn = S.diagonal().copy(), S.diagonal() * rng.random(POOL)
    rows, chosen = np.zeros((most, POOL)), list[int]()
    for j in range(POOL):
        k = len(chosen)
        if k < most and d[j] > max(drawn[j], factor.least):
            rows[k] = (S[j] - rows[:k, j] @ rows[:k]) / np.sqrt(d[j])
            d -= rows[k] ** 2
            chosen.append(j)
    return pool[chosen], np.tril(rows[: len(chosen), chosen].T)


def pivots_of(S: Vector, least: float) -> tuple[Index, Vector]:
    """Pivots of a symmetric matrix with residuals above ``least``, and their factor."""
    if not S.diagonal().max() > max(least, 0.0):  # dpstrf takes the first one anyway
        return np.empty(0, np.intp), np.empty((0, 0))
    factor, order, rank, _ = dpstrf(S, tol=max(least, 0.0), lower=True)
    return order[:rank] - 1, np.tril(factor[:rank, :rank])


def inverse(L: Vector) -> Vector:
    """L^-T of a lower triangle."""
    return np.asarray(solve_triangular(L, np.eye(len(L)), lower=True).T)
