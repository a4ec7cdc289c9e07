"""Constraint-reduced primal-dual interior point (CRSVM).

Jung, O'Leary, Tits, "Adaptive constraint reduction for training support vector
machines", ETNA 31 (2008) 156-177; equation numbers are theirs. An iteration costs one
weighted Gram matrix, over the active set Q only when constraints are reduced, and three
sweeps: the Gram matrix with the right side of the predictor; the predictor with both
parts of the right side of the corrector; the corrector with its step.

Notation: A = Y [X 1], v = (w, b) with b = -gamma, R = diag(1, .., 1, p), C for the
paper's tau; s = A v + xi - q and u = C - alpha hold throughout (q = 1 there). The
paper's mu is here (s'alpha + xi'u) / (2 sum C): without unit, so that one rule fits
every scale of C and X. The products of row i tend to mu C_i: a row of weight 2 and a
row that occurs twice give the same iterates.
"""

import itertools
from collections.abc import Generator
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from widemargin import _core
from widemargin.arrays import Vector
from widemargin.data.blocks import Least
from widemargin.data.state import RowState
from widemargin.numerics.roots import monotone_root
from widemargin.parameters import Checker
from widemargin.problems.base import Problem, margins
from widemargin.solution import Step
from widemargin.solvers.driver.contract import Solver, Start, at
from widemargin.solvers.linear.normal_equations import (
    DENSE_ORDER,
    DUAL_COLUMNS,
    FORMS,
    REPAIR_TOL,
    VECTORS,
    ConstraintSet,
    MatrixOptions,
    NormalEquations,
    row_vectors,
)
from widemargin.solvers.linear.published_crsvm import (
    MADE,
    OWN,
    START,
    own_step,
    published_steps,
)
from widemargin.solvers.linear.step_length import (
    Ahead,
    blocking,
    step_to_zero,
)

# Second-order products are clipped to this many mu C: fewer iterations exactly where
# there are many (w8a: 64 instead of 78, a9a: 23 either way; 1 and 100 are worse).
CLIP = 10.0
# Where complementarity is below this share of the gap and the residual w - X'Y alpha
# did not shrink as Newton's method promises, rounding rules: the next step keeps mu.
# (0.03 and 0.3: within a tenth of the time, benchmarks/core/untuned.py.)
RESTORE = 0.1
# Relative gap from which steps are refined: raw columns (breast_cancer, C = 1000, rows
# in 25 orders) then reach 4e-9 instead of 1e-8 at worst, in as many iterations.
REFINED = 1e-4
# mu of the central start, cold and warm (section 13).
COLD_MU, WARM_MU = 0.75, 0.1
# Power of the predictor's step by which mode "damped" weighs second-order terms (part
# `algorithm_1` of papers/crsvm; other powers were not tried).
DAMPING = 2


@dataclass(frozen=True, kw_only=True)
class InteriorPoint(MatrixOptions, Solver):  # numpydoc ignore=PR02
    """Mehrotra's predictor-corrector with adaptive constraint reduction.

    Solves both losses with all three intercepts. Each iteration factors

        M_Q = I + sum_{i in Q} d_i (x_i - c)(x_i - c)',
        d_i = 1 / (s_i / alpha_i + xi_i / u_i),

    over the q rows that matter most; conjugate gradients with the matrix of all rows
    repair the direction where Q was too small.

    Parameters
    ----------
    mode : {"repaired", "published", "damped"}, default="repaired"
        "published" is Algorithm 1 as its equations stand: the start w = 0, b = 0 and
        xi = s = alpha = u = 2, a first Q by chance, then Q of exactly the size
        (3.18)-(3.22), no repair, and the end where mu and all residuals are at most
        1e-8. It solves the hinge with a free intercept, and mostly fails for
        ``max_active`` of a quarter and less. "damped" multiplies the second-order
        terms of (3.9)-(3.10) by the square of the predictor's step, and mostly
        converges there (six of seven sets of the paper, at a tenth).
        "repaired" starts on the central path, clips these terms, lets Q grow, and
        corrects directions by conjugate gradients.
    reduction : {"auto", "omega", "one_sided"}, callable or None, default="auto"
        Rule of the active set: rows with the smallest 1 / d_i (Rule 2), the smallest
        s_i (Rule 1), or all rows (None; with the dual matrix as many as it may have).
        A function takes slacks s, multipliers alpha and classes +1 or -1 of some rows,
        (k,) each, and returns their scores (k,); the smallest are in Q, with the least
        sizes q_L of Rule 2. "auto" is "omega" where the Gram matrix dominates (dense
        data with many columns, the dual matrix), for ``max_active`` < 1 and for the
        published modes, None elsewhere.
    balanced : bool, default=True
        Choose as many rows of both classes where both have them, (3.21)-(3.22).
    adaptive : bool, default=True
        q = mu^(1/beta) m, (3.18). Otherwise q = ``max_active`` m throughout.
    max_active : float in (0, 1], default=1.0
        Largest share of the rows in Q, q_U / m.
    beta, theta : float > 0, defaults 4 and 100
        Exponent of (3.18), and factor of the thresholds (3.20).
    pcg_tol : float in (0, 1], default=1e-2
        Relative residual at which conjugate gradients stop.
    pcg_steps : int >= 0 or None, default=None
        Their largest number for a reduced matrix; None: 10, and 0 in the published
        modes, which take no other.
    normal_matrix : {"auto", "dense", "sparse", "dual"}, default="auto"
        How M_Q is solved with: dense Cholesky; sparse LU factors with
        Sherman-Morrison for the intercept; or through the q x q matrix of Q (Woodbury)
        with the diagonal of the other rows, as preconditioner of conjugate gradients,
        for 500 columns or more columns than rows. "auto" is "sparse" for 1000 columns
        or more where X'X has at most 4 entries a column, "dense" for up to 4000
        columns and as many rows, else "dual", with all rows up to 4000, else 1200: then
        gaps far below 1e-4 take many conjugate gradient steps.
    random_state : int or None, default=None
        Seed of the order of rows that matter equally, as all do at the start; None: 0.

    Raises
    ------
    ValueError
        A parameter out of range.

    Notes
    -----
    q n^2 + n^3 / 3 flops, q rows in Q, and three sweeps an iteration (five below a gap
    of 1e-4, where both steps are refined); ten vectors of length m and a few n x n
    matrices of memory. 10 to 40 iterations, few more for a smaller ``tol``.

    ``active`` of a step is q; its ``details``: ``mu``, which falls to 0, ``step`` (the
    length of the last one, at most 1), and but for the published modes ``pcg_steps``
    (of conjugate gradients, in the last iteration).

    References
    ----------
    [jung2008]_, Algorithm 1; [gertz2006]_ for the predictor-corrector.

    Examples
    --------
    >>> from widemargin import LinearSVC
    >>> from widemargin.solvers import InteriorPoint
    >>> LinearSVC(solver=InteriorPoint(reduction="omega"))
    LinearSVC(solver=InteriorPoint(mode='repaired', reduction='omega', ...))
    """

    name: ClassVar[str] = "interior_point"
    default_max_iter: ClassVar[int] = 200
    patience: ClassVar[int] = 30

    def __post_init__(self) -> None:
        check = Checker("InteriorPoint")
        check.choice("mode", self.mode, ("repaired", "published", "damped"))
        if not callable(self.reduction):
            rules = ("auto", "omega", "one_sided", None)
            check.choice("reduction", self.reduction, rules)
        check.choice("normal_matrix", self.normal_matrix, ("auto", *FORMS))
        for name in ("balanced", "adaptive"):
            check.choice(name, getattr(self, name), (True, False))
        check.positive("max_active", self.max_active, most=1.0)
        if self.reduction is None and self.max_active < 1.0:
            check.refuse("max_active", "1.0 where reduction is None", self.max_active)
        check.positive("beta", self.beta)
        check.positive("theta", self.theta)
        check.positive("pcg_tol", self.pcg_tol, most=1.0)
        check.count("pcg_steps", self.pcg_steps, least=0, optional=True)
        check.count("random_state", self.random_state, least=0, optional=True)
        if self.mode != "repaired":
            self._check_published(check)

    def _check_published(self, check: Checker) -> None:
        """Refuse what the paper has not."""
        allowed = {
            "pcg_steps": (None, 0),
            "pcg_tol": (REPAIR_TOL,),
            "normal_matrix": ("auto", "dense", "sparse"),
        }
        for name, values in allowed.items():
            if getattr(self, name) not in values:
                expected = " or ".join(repr(value) for value in values)
                check.refuse(
                    name, f"{expected} with mode={self.mode!r}", getattr(self, name)
                )

    def patience_for(self, problem: Problem) -> int:
        """The patience; the published modes have all of the paper's iterations."""
        return self.patience if self.mode == "repaired" else self.default_max_iter

    def supports(self, problem: Problem) -> str | None:
        """All problems; published modes the hinge with a free intercept only.

        A dual normal matrix needs many columns.
        """
        m, n = problem.rows.shape
        if self.mode != "repaired" and not problem.has_unit_margins:
            return (
                f"InteriorPoint(mode={self.mode!r}) solves classification problems "
                "only. Use mode='repaired'."
            )
        if self.mode != "repaired" and (problem.loss, problem.intercept) != (
            "hinge",
            "free",
        ):
            return (
                f"InteriorPoint(mode={self.mode!r}) solves the hinge with a free "
                "intercept only. Use mode='repaired'."
            )
        if self.mode != "repaired" and n > DENSE_ORDER:
            return (
                f"InteriorPoint(mode={self.mode!r}) takes at most {DENSE_ORDER:,} "
                f"columns. Got {n:,} instead."
            )
        if self.normal_matrix == "dual" and n < min(m, DUAL_COLUMNS):
            return (
                f"InteriorPoint(normal_matrix='dual') needs at least {DUAL_COLUMNS} "
                f"columns, or as many as rows. Got {n} instead."
            )
        return None

    def iterate(
        self, problem: Problem, start: Start | None, tol: float
    ) -> Generator[Step, None, None]:
        """Steps of Algorithm 1: see `Solver.iterate`."""
        if self.mode != "repaired":
            yield from self._published(problem, start)
            return
        A, R, bounded = problem.A, problem.R, problem.is_bounded
        pairs = (2.0 if bounded else 1.0) * problem.total_weight
        state, v = self._start(problem, start)
        normal = NormalEquations(self, problem, state)
        active = ConstraintSet(self, problem, state, normal.form)
        t, expected = 0.0, np.inf
        for iteration in itertools.count():
            products, losses, linear = state.sweep(_advance, t, bounded)
            mu, pcg_steps = products / pairs, normal.steps
            if not np.isfinite(mu):
                raise FloatingPointError("the iterate is not finite")
            active.choose(mu, knows=iteration > 0 or start is not None)
            g, h = normal.assemble(active, bounded)  # A'alpha, A'(d r_Omega)
            residual = float(np.abs(R * v - g).max())
            primal, dual = bounds = _bounds(v, g, R, losses, linear)
            details = {"mu": mu, "step": t, "pcg_steps": pcg_steps}
            yield own_step(iteration, bounds, residual, normal, details, at(v, state))
            normal.factor()
            normal.refines = primal - dual <= REFINED * abs(primal)
            rhs = g - h - R * v
            dv = normal.solve(rhs)  # predictor (3.7)-(3.8)
            ahead, E = A.sweep(_predict, state, dv, CLIP * mu, bounded)
            sigma = (ahead.products(min(1.0, ahead.step), products) / products) ** 3
            behind = residual > expected and products < RESTORE * (primal - dual)
            if behind:
                sigma = 1.0
            target = sigma * mu
            dv = normal.solve(rhs - E[0] + target * E[1])  # corrector (3.9)-(3.10)
            t = A.sweep(_correct, state, dv, target, bounded).length(products, pairs)
            v, expected = v + t * dv, (1.0 - 0.5 * t) * residual
            active.grow(normal, behind)

    def _published(
        self, problem: Problem, start: Start | None
    ) -> Generator[Step, None, None]:
        """Steps of the algorithm as published, or damped."""
        state = problem.state(**dict.fromkeys(OWN, START), **dict.fromkeys(MADE, 0.0))
        normal = NormalEquations(self, problem, state)
        active = ConstraintSet(self, problem, state, normal.form)
        if start is not None and not start.vectors:
            start = None  # only its own row vectors are an iterate
        damping = DAMPING if self.mode == "damped" else 0
        yield from published_steps(problem, normal, active, start, damping)

    def _start(self, problem: Problem, start: Start | None) -> tuple[RowState, Vector]:
        """Row vectors on the central path, for v = 0 or a given v (section 13).

        All products equal mu C and r_s = r_u = 0; a free b is moved until y'alpha = 0.
        """
        state = problem.state(**dict.fromkeys(VECTORS, 0.0))
        if start is not None and start.vectors:
            for name in OWN:
                setattr(state, name, start.vectors[name])
            return state, start.v.copy()
        v = np.zeros(problem.A.shape[1]) if start is None else start.v.copy()
        mu = COLD_MU if start is None else min(max(start.gap, WARM_MU), COLD_MU)
        problem.A.sweep(_violations, state, v)
        bounded, shift = problem.is_bounded, 0.0
        if problem.intercept == "free":
            shift = monotone_root(
                lambda b: state.sweep(_central_balance, b, mu, bounded), 0.0
            )
            v[-1] += shift
        state.sweep(_central_point, shift, mu, bounded)
        return state, v


def _bounds(
    v: Vector, g: Vector, R: Vector, losses: float, linear: float
) -> tuple[float, float]:
    """P(v), and D of alpha less what y'alpha = 0 may cost."""
    primal = 0.5 * float(R @ (v * v)) + losses
    dual = linear - 0.5 * float(R @ (g * g))  # R^-1 = R: entries are 0 or 1
    # y'alpha = 0 from the start, up to rounding that a repair has to pay for.
    dual -= float((1.0 - R) @ (np.abs(g) * (1.0 + np.abs(v))))
    if not np.isfinite(primal - dual):
        raise FloatingPointError("the iterate is not finite")
    return primal, dual


# -- functions of one block ------------------------------------------------------------


def _advance(part: RowState, t: float, bounded: bool) -> tuple[float, float, float]:
    """Apply the last step and weigh the rows anew: d = 1 / omega.

    Returns the sum of complementary products, the losses, and the linear part of D.
    """
    products, losses, linear = _core.advance(part.C, row_vectors(part), t, bounded)
    q = margins(part)
    if np.ndim(q):
        linear += float((q - 1.0) @ part.alpha)
    return products, losses, linear


def _predict(
    block: Any, part: RowState, dv: Vector, clip: float, bounded: bool
) -> tuple[Ahead, Vector]:
    """Predictor along dv: what lies ahead, and the right sides of the corrector.

    With p = ds dalpha and q = dxi du clipped, and left in ``ds`` and ``dxi``, r_Omega
    of the corrector grows by p/alpha - q/u - sigma mu (C/alpha - C/u): two lines.
    """
    E = np.zeros((2, block.shape[1]))
    ratio, _, first, second = _core.predict_sweep(
        block.in_core(), dv, part.C, row_vectors(part), clip, E, bounded
    )
    return Ahead(Least(step_to_zero(ratio)), first, second), E


def _correct(
    block: Any, part: RowState, dv: Vector, target: float, bounded: bool
) -> Ahead:
    """Corrector along dv, left in the state, (3.13)-(3.16), and what lies ahead."""
    ratio, row, first, second = _core.correct_sweep(
        block.in_core(), dv, part.C, row_vectors(part), target, bounded
    )
    return Ahead(
        Least(step_to_zero(ratio), blocking(part, row, bounded)), first, second
    )


# -- the start -------------------------------------------------------------------------


def _violations(block: Any, part: RowState, v: Vector) -> None:
    part.xi = margins(part) - block @ v


def _central_share(z: Vector, mu: float, bounded: bool) -> Vector:
    """Alpha / C of the central point where 1 - A v = z."""
    root = np.sqrt(z * z + (4.0 * mu * mu if bounded else 2.0 * mu))
    if not bounded:
        return np.where(z >= 0.0, z + root, 2.0 * mu / (root - z))
    small = z <= 2.0 * mu
    # Two forms of one root; each is free of cancellation on its side.
    other = (z - 2.0 * mu + root) / np.where(small, 1.0, 2.0 * z)
    return np.where(small, 2.0 * mu / (root - z + 2.0 * mu), other)


def _central_balance(
    part: RowState, b: float, mu: float, bounded: bool
) -> tuple[float, float, float]:
    """Minus y'alpha at intercept b, its slope and its scale."""
    z = part.xi - b * part.labels
    a = _central_share(z, mu, bounded)
    if bounded:
        slope = a * a * (1 - a) ** 2 / (mu * (a * a + (1 - a) ** 2))
    else:
        slope = a / np.sqrt(z * z + 2.0 * mu)
    alpha = part.C * a
    return -float(part.labels @ alpha), float(part.C @ slope), float(alpha.sum())


def _central_point(part: RowState, shift: float, mu: float, bounded: bool) -> None:
    z = part.xi - shift * part.labels
    a = _central_share(z, mu, bounded)
    part.alpha, part.s = part.C * a, mu / a
    if bounded:
        rest = _central_share(-z, mu, bounded)  # 1 - a, without cancellation
        part.u, part.xi = part.C * rest, mu / rest
    else:
        part.xi = part.alpha / (2.0 * part.C)
