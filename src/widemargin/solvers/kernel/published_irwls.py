"""Table 1 of "Fast Training of Support Vector Classifiers", as published.

The losses of the working set S_W are written as 1/2 sum a_i e_i^2, where e = y - f.
With the weights a frozen the dual variables beta and b solve the linear system (3), and

    a_i = 0 where e_i y_i < 0,   a_i = C_i / (e_i y_i) elsewhere                   (8)

are the next weights. Rows are in S1, whose beta are solved for, in S2 (beta = 0) or in
S3 (beta = C). What beta outside of S_W adds to the system are G_in and G_bin. Numbers
in brackets are the steps of Table 1.

(4b) moves rows to S3 where beta = C. In floating-point numbers that hardly occurs:
these rows stay in S1, where their beta comes nearer to C pass by pass.

Do the passes settle? Of ten problems of 120 rows, to a violation of 1e-3: with exact
errors all ten, whatever C, by a factor of max beta / C a pass and so in up to 836 of
them. With the recursion of (2) rounding changes the sign of errors near 0, which throws
what is near the optimum back: all ten at C = 0.1, none from 1 to 100, four at 1000.
None cycles. With the guards all ten at C = 0.1, 100 and 1000; at 1 and 10 eight and
seven, where most of the others end with rows at C whose beta is near it
(`papers/svcradit/claim.md`).
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from widemargin.arrays import Vector
from widemargin.numerics.cholesky import threads_for
from widemargin.solvers.kernel.reweighted import _lower, balanced
from widemargin.solvers.kernel.small_problem import Small, Solved
from widemargin.system import deadline

# Where no beta moves by more than this share of the largest beta, none ever will.
STILL = 1e-15


class Pass(NamedTuple):
    """What a pass of Table 1 ends with.

    Attributes
    ----------
    beta : ndarray (q,), the dual variables; also below 0 and above C
    b : float
    u : ndarray (q,), the errors e_i y_i
    group : int ndarray (q,), 1, 2, 3 for S1, S2, S3, after (4)
    """

    beta: Vector
    b: float
    u: Vector
    group: NDArray[np.int8]


@dataclass(frozen=True, kw_only=True)
class Table1:  # numpydoc ignore=PR02
    """Solves the small problem of a working set by the passes of Table 1.

    For the hinge with a free intercept. Begins anew in each working set, as printed.

    Parameters
    ----------
    sharpest : float > 0, default=inf
        The largest weight a, in units of C. inf: as printed.
    band : float in [0, 1), default=0.0
        (4b) moves rows to S3 whose beta is C within this share of it. 0: as printed.
    max_passes : int > 0, default=300
        Passes after which Table 1 is left. With the guards none of our problems settled
        in 300 to 1000 of them; with exact errors some do.
    products : bool, default=False
        Take the errors of rows in S1 from (3), where e_i y_i = beta_i / a_i, and not
        from the recursion of (2), which gives the same but for rounding.
    """

    sharpest: float = math.inf
    band: float = 0.0
    max_passes: int = 300
    products: bool = False

    def __call__(self, small: Small, stop: float) -> Solved:
        """Make passes until their point violates nothing by more than ``stop``.

        Where they do not settle, the point that violated least is the answer, or the
        start if its dual objective is lower; then ``reached`` is False.
        """
        small = small._replace(K=_square(small))
        best, least, count = small, small.violations.size, 0
        if not least > stop:
            return Solved(small.c.copy(), 0, 0)
        before = np.zeros(len(small.c))
        for count, found in enumerate(self.passes(small), start=1):
            deadline.check()
            here = small.at(_feasible(found, small, stop))
            violation = here.violations.size
            if violation <= stop:
                return Solved(here.c, count, 0)
            if violation < least:
                best, least = here, violation
            still = STILL * np.abs(found.beta).max()
            if count == self.max_passes or np.abs(found.beta - before).max() <= still:
                break
            before = found.beta
        return Solved(_lower(small, best.c).c.copy(), count, 0, reached=False)

    def passes(self, small: Small) -> Iterator[Pass]:
        """Yield passes without end, or until the system of (1) is singular.

        A pass costs ``2/3 (|S1| + 1)^3 + 2 q^2`` flops.
        """
        K, y, C = _square(small), np.sign(small.lower + small.upper), _bounds(small)
        H = y[:, np.newaxis] * K * y
        # Step 2 of the chunking scheme: what the rows outside of S_W add.
        G_in = 1.0 + y * (small.F - K @ small.c)
        G_bin = float(small.c.sum())
        # (0)
        group = np.ones(len(y), np.int8)
        e_a, beta_a, b_a, d = y * (1.0 - G_in), np.zeros(len(y)), 0.0, np.ones(len(y))
        while True:
            S1, S3 = group == 1, group == 3
            G_13 = H[np.ix_(S1, S3)] @ C[S3] + G_in[S1]
            G_b3 = -float(y[S3] @ C[S3]) + G_bin
            try:  # (1)
                some, b = _solve(H[np.ix_(S1, S1)], d[S1], y[S1], 1.0 - G_13, G_b3)
            except np.linalg.LinAlgError:
                return
            beta = np.where(S3, C, 0.0)
            beta[S1] = some
            e = e_a - y * (H @ (beta - beta_a)) - (b - b_a)  # (2)
            u = y * e
            if self.products:
                u[S1] = d[S1] * beta[S1]
            d = np.maximum(u, 1.0 / self.sharpest) / C  # (3), as 1 / a
            group = self._reordered(group, beta, u, C)  # (4)
            yield Pass(beta, b, u, group)
            e_a, beta_a, b_a = e, beta, b  # (5)

    def _reordered(
        self, group: NDArray[np.int8], beta: Vector, u: Vector, C: Vector
    ) -> NDArray[np.int8]:
        """The sets after step (4); a = 0 where u < 0."""
        group = group.copy()
        group[(group == 3) & (u < 0)] = 2  # (4a)
        group[(group == 1) & (np.abs(beta - C) <= self.band * C)] = 3  # (4b)
        group[(group == 1) & (u < 0)] = 2  # (4c)
        group[(group == 2) & ~(u < 0)] = 1  # (4d)
        return group


# What the authors' later code does: LIBIRWLS of Diaz-Morales and Navia-Vazquez, 2016.
GUARDED = Table1(sharpest=1e4, band=0.01)


def _square(small: Small) -> NDArray[Any]:
    """K in float64, (q, q)."""
    return small.K[:, : len(small.c)].astype(np.float64, copy=False)


def _bounds(small: Small) -> Vector:
    """C of each row."""
    return small.upper - small.lower


def _solve(
    H: Vector, d: Vector, y: Vector, right: Vector, last: float
) -> tuple[Vector, float]:
    """Beta of S1 and b by (3): LU factors of (|S1| + 1, |S1| + 1)."""
    n = len(y)
    M = np.zeros((n + 1, n + 1))
    M[:n, :n] = H
    M[np.arange(n), np.arange(n)] += d
    M[n, :n] = M[:n, n] = y
    with threads_for(n):
        solved = np.linalg.solve(M, np.append(right, last))
    if not np.isfinite(solved).all():
        raise np.linalg.LinAlgError("the system is singular to rounding")
    return solved[:n], float(solved[n])


def _feasible(found: Pass, small: Small, stop: float) -> Vector:
    """The signed dual point of a pass, within its bounds and with the sum as before.

    Conditions (9) to (11) say of rows with |u| > stop at which bound they must be.
    """
    C = _bounds(small)
    beta = np.where(found.u > stop, C, np.where(found.u < -stop, 0.0, found.beta))
    c = np.sign(small.lower + small.upper) * np.clip(beta, 0.0, C)
    return balanced(c, small.lower, small.upper, float(small.c.sum()))
