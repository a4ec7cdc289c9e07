"""Active-set support vector machine (ASVM) for the squared hinge.

With weights nu_i = 2 C_i and B the rows that are active, f_i = (A v)_i < 1, the primal
objective is a quadratic whose minimum solves one system of the order of v,

    (R + G_B) v_B = h_B,   G_B = A_B' N A_B,   h_B = A_B' nu_B,   N = diag(nu),

and the multipliers of that face are alpha_B = nu_B (1 - A_B v_B). The method steps to
v_B and takes the rows that are active there as the next B: Newton's method on a
piecewise quadratic, which ends after finitely many steps at the exact answer. One sweep
a step finds P, D, B and the change of G_B.
"""

import itertools
from collections.abc import Generator
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from widemargin.parameters import Checker
from widemargin.problems.base import Problem
from widemargin.solution import Step
from widemargin.solvers.driver.contract import Solver, Start, at, in_one_blas_thread
from widemargin.solvers.linear.near_rows import corrected
from widemargin.solvers.linear.newton import (
    DENSE_ORDER,
    Iterate,
    Piece,
    expected,
    sampled,
    unseen,
)
from widemargin.solvers.linear.published_asvm import PublishedASVM

# A sample has at least this number of rows, this number a column, and this share of
# all; it is taken where there are this many times more rows, and solved to this gap
# (benchmarks/core/active_set.py).
SAMPLE_ROWS, SAMPLE_PER_COLUMN, SAMPLE_SHARE = 10_000, 100, 0.006
SAMPLE_TIMES, SAMPLE_GAP = 5, 1e-3
# A sample this many times larger takes one step more, where there are this many times
# more rows than in the first: the next step leaves fewer rows near the margin to read.
LARGER, LARGER_TIMES = 3, 50
# It needs 6 to 13 steps; where these do not suffice, its point is still a start.
SAMPLE_STEPS = 30
# Steps that neither lower P by more than this share nor halve the residual, after which
# rounding is all that is left.
ROUNDING_STEPS, ROUNDING = 3, 1e-13
# The gap falls by more from step to step. Where falling by as much as last time would
# end at this share of what is asked for, the certificate is the first look at a step,
# which saves a sweep.
SURE = 0.3


@dataclass(frozen=True, kw_only=True)
class ActiveSet(Solver):  # numpydoc ignore=PR02
    """Active-set method for the squared hinge: finite Newton, or ASVM as published.

    Minimizes over v = (w, b)

        1/2 v'Rv + sum_i C_i max(0, 1 - (A v)_i)^2

    by steps to v_B = (R + A_B' N A_B)^-1 A_B' nu_B for the active rows B of the current
    v, N = diag(nu), nu = 2 C, with an exact line search where the step is too long. The
    dual point of v is alpha = nu max(0, 1 - A v), so that every step is certified.

    Parameters
    ----------
    mode : {"newton", "asvm"}, default="newton"
        "newton": B is taken anew from all rows after each step. "asvm": Algorithm 3.1
        of the paper, where B only shrinks between gradient projections; after too many
        projections it goes on as "newton". Not for a free intercept.
    max_safeguards : int, default=50
        Of mode "asvm": steps (4a) and (4b) after which it goes on as "newton"; 0 is the
        short form (0) to (3) alone. A step (4a) drops one row, and with large C or
        nearly separable classes the end is hundreds of them away.
    begin_with : {"sample"} or None, default="sample"
        Where there are at least 5 times max(10,000, 100 n) rows, begin at the answer
        for max(10,000, 100 n) rows (0.6 % of all, if that is more), spread evenly.
        None: begin at zero. A start that the solve is given comes first.

    Raises
    ------
    ValueError
        A parameter out of range, or a problem with the hinge loss; "asvm" with a free
        intercept.

    Notes
    -----
    A step takes one sweep; two if it turns out too long, mostly the first one from
    zero; and none if it is the last one and was certified in the sweep before. After a
    sample, of rows in memory, steps are corrected by the rows that they take across the
    margin, for which up to 20 % of all are looked at: counted as a sweep, though few
    are read. 2 to 12 steps, more where C is large and the classes nearly separable.
    m_B n^2 flops for the m_B rows that enter or leave B, and n^3 / 3, up to 1500
    columns; up to 400 columns in the same sweep. Beyond 1500 columns, conjugate
    gradients with a sweep a step, or a matrix of the rows of B where they are few or
    conjugate gradients slow. Three vectors of length m and one byte a row.

    ``active`` of a step counts B; its ``details``: ``rows``, those at work (a sample,
    or all), ``unseen`` where a sample's weights have met no other rows, and of "asvm"
    ``safeguards``, steps (4a) and (4b) so far.

    The method is ASVM [mangasarian2001]_ with the exchange of rows of the finite Newton
    method [mangasarian2002]_ [keerthi2005]_.

    Examples
    --------
    >>> import numpy as np
    >>> from widemargin import Problem, solve
    >>> X = np.array([[0.0], [1.0], [2.0], [3.0]])
    >>> problem = Problem(X, [-1, -1, 1, 1], loss="squared_hinge")
    >>> solution = solve(problem, "active_set", tol=1e-8)
    >>> print(solution.status, solution.solver)
    solved active_set
    """

    name: ClassVar[str] = "active_set"
    default_max_iter: ClassVar[int] = 500
    patience: ClassVar[int] = 200
    shows_start: ClassVar[bool] = True

    mode: Literal["newton", "asvm"] = "newton"
    max_safeguards: int = 50
    begin_with: Literal["sample"] | None = "sample"

    def __post_init__(self) -> None:
        check = Checker("ActiveSet")
        check.choice("mode", self.mode, ("newton", "asvm"))
        check.count("max_safeguards", self.max_safeguards, least=0)
        if self.mode == "newton" and self.max_safeguards != type(self).max_safeguards:
            expected = f"{type(self).max_safeguards} with mode='newton', which has none"
            check.refuse("max_safeguards", expected, self.max_safeguards)
        check.choice("begin_with", self.begin_with, ("sample", None))

    def patience_for(self, problem: Problem) -> int:
        """A safeguard may lower f alone, which is no progress of P - D."""
        return self.patience + (self.max_safeguards if self.mode == "asvm" else 0)

    def supports(self, problem: Problem) -> str | None:
        """The squared hinge; with a free intercept only in mode "newton"."""
        if problem.loss != "squared_hinge":
            return (
                "ActiveSet solves the squared hinge loss only: use solver='auto' or "
                f"loss='squared_hinge'. Got {problem.loss!r} instead."
            )
        if self.mode == "asvm" and not problem.has_unit_margins:
            return (
                "ActiveSet(mode='asvm') solves classification problems only. "
                "Use mode='newton'."
            )
        if self.mode == "asvm" and problem.intercept == "free":
            return (
                "ActiveSet(mode='asvm') has no free intercept (its dual has no "
                "equality). Use mode='newton', or intercept='penalized'."
            )
        if self.mode == "asvm" and problem.A.shape[1] > DENSE_ORDER:
            return (
                f"ActiveSet(mode='asvm') takes at most {DENSE_ORDER:,} columns, with "
                f"the intercept. Got {problem.A.shape[1]:,} instead."
            )
        return None

    @in_one_blas_thread
    def iterate(
        self, problem: Problem, start: Start | None, tol: float
    ) -> Generator[Step, None, None]:
        """A sample's steps or the published algorithm, then Newton's steps on all rows.

        See `Solver.iterate`.
        """
        numbers, s = itertools.count(), problem.pointwise.curvature
        v, single = np.zeros(problem.A.shape[1]), None
        sample: Piece | None = None
        if start is not None:
            v = start.v.copy()
        elif self.mode == "asvm":
            published = PublishedASVM(problem, self.max_safeguards)
            yield from published.steps(numbers)
            v = published.z
            del published  # its row vectors
        elif self.begin_with == "sample":
            zero = v
            for sample, point in _sampled(problem):
                yield _step(next(numbers), unseen(problem, zero), sample)
                v, single = point.v, sample.takes_single(s)
            if sample is not None:  # in case there is no time for a sweep of all rows
                step = _step(next(numbers), unseen(problem, v), sample)
                step.details["unseen"] = 1.0
                yield step
            if not problem.rows.is_in_memory:
                sample = None  # to look for few rows is to read all of them
        piece = Piece(
            problem.A, problem.state(), problem.R, bounded=False, single=single
        )
        point = piece.evaluate(v, s)
        piece.accept()
        idle, before, is_exact = 0, 0.0, problem.A.shape[1] <= DENSE_ORDER
        while idle < ROUNDING_STEPS:
            yield _step(next(numbers), point, piece)
            goal = tol * point.primal
            dv = piece.direction(point, s, SURE * goal)
            gap = point.gap * point.gap / before if before else np.inf
            there = expected(point, dv, gap)
            if sample is not None:
                enough = SURE * goal
                there = corrected(piece, sample, point, s, dv, enough) or there
            sure = is_exact and point.gap > goal and there.gap <= SURE * goal
            if sure and 0.0 < there.primal >= point.dual:  # else rounding decides
                yield _step(next(numbers), there, piece)
            before = point.gap
            last, point = point, piece.newton_step(point, s, there.v - point.v)
            falls = point.primal < (1.0 - ROUNDING) * last.primal
            nearer = piece.half_norm(point.residual) < 0.5 * piece.half_norm(
                last.residual
            )
            idle = 0 if falls or nearer else idle + 1
            if idle:  # rounding of the updates may be in the way
                piece.renew_matrix()


def _sampled(problem: Problem) -> Generator[tuple[Piece, Iterate], None, None]:
    """Newton's method on a sample, from zero, where there are many rows."""
    m, n = problem.rows.shape
    size = max(SAMPLE_ROWS, SAMPLE_PER_COLUMN * n, int(SAMPLE_SHARE * m))
    piece = sampled(problem, size) if m >= SAMPLE_TIMES * size else None
    if piece is None:
        return
    s = problem.pointwise.curvature
    point = piece.evaluate(np.zeros(problem.A.shape[1]), s)
    piece.accept()
    for _ in range(SAMPLE_STEPS):
        if point.gap <= SAMPLE_GAP * point.primal:
            break
        yield piece, point
        point = piece.newton_step(point, s)
    yield piece, point
    larger = sampled(problem, LARGER * size) if m >= LARGER_TIMES * size else None
    if larger is not None:
        start = larger.evaluate(point.v, s)
        larger.accept()
        yield larger, larger.newton_step(start, s)


def _step(number: int, point: Iterate, piece: Piece) -> Step:
    """The point of all rows, and the rows that the method is at work on."""
    residual = float(np.abs(point.residual).max())
    if not np.isfinite(residual + point.gap):
        raise FloatingPointError("the iterate is not finite")
    details: dict[str, float] = {"rows": piece.A.shape[0]}
    here = at(point.v)
    return Step(number, point.primal, point.dual, residual, point.active, details, here)
