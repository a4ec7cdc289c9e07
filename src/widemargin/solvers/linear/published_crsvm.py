"""Algorithm 1 of "Adaptive constraint reduction for training support vector machines".

Its box is lost in the circulating text: this is a reconstruction from the equations,
whose numbers are the paper's. Start and step rule come from [gertz2006]_, which the
paper follows. With A = Y [X 1], v = (w, b), b = -gamma, R = diag(1, .., 1, 0) and
tau = C the residuals are

    R v - A'alpha (r_w and r_alpha),   r_u = C - alpha - u,   r_s = A v + xi - 1 - s.

Only the matrix M is reduced to M_Q. So a step t leaves 1 - t of r_alpha, r_u and r_s,
and (1 - t) r_w + t (M - M_Q) dw of r_w.
"""

import itertools
from collections.abc import Callable, Generator
from typing import Any, NamedTuple

import numpy as np

from widemargin.arrays import Vector
from widemargin.data.blocks import Least
from widemargin.data.state import RowState
from widemargin.problems.base import Problem
from widemargin.solution import Step
from widemargin.solvers.driver.contract import Start, at
from widemargin.solvers.linear.normal_equations import ConstraintSet, NormalEquations
from widemargin.solvers.linear.step_length import Ahead, step_to_zero

# Section 5: the start of all row vectors, and the end of mu and of the residuals.
START, END = 2.0, 1e-8
# What a run goes on from, and what each iteration makes of it.
OWN = ("alpha", "u", "s", "xi")
MADE = ("d", "r_u", "r_omega", "first", "second", "chosen", "dalpha", "du", "ds", "dxi")


class _Sums(NamedTuple):
    """Sums over the rows at an iterate: the first four are (n + 1,)."""

    g: Vector  # A'alpha
    h: Vector  # A'(d r_Omega)
    border: Vector  # A'(d y)
    feasible: Vector  # A' min(alpha, C)
    linear: float  # sum of min(alpha, C)
    losses: float
    products: float  # s'alpha + xi'u
    residual: Least  # minus the largest of |r_u| and |r_s|


def published_steps(
    problem: Problem,
    normal: NormalEquations,
    active: ConstraintSet,
    start: Start | None,
    damping: int,
) -> Generator[Step, None, None]:
    """Steps of Algorithm 1, until mu and the residuals are at most 1e-8.

    Second-order terms of the corrector count by the predictor's step to this power: 0
    is the algorithm as printed.
    """
    A, R, state = problem.A, problem.R, active.state
    v, pairs = np.zeros(A.shape[1]), 2.0 * A.shape[0]
    if start is not None:
        v = start.v.copy()
        for name in OWN:
            setattr(state, name, start.vectors[name])
    t = 0.0
    for iteration in itertools.count():
        sums = _Sums(*A.sweep(_residuals, state, v))
        mu = sums.products / pairs
        r = R * v - sums.g
        residual = max(float(np.abs(r).max()), -sums.residual.key)
        if not np.isfinite(mu + residual):
            raise FloatingPointError("the iterate is not finite")
        active.choose(mu, knows=iteration > 0 or start is not None)
        normal.assemble_active(active, sums.border)  # leaves Q in `chosen`
        details = {"mu": mu, "step": t}
        bounds = _bounds(sums, v, R)
        yield own_step(iteration, bounds, residual, normal, details, at(v, state))
        if max(mu, residual) <= END:
            return
        normal.factor()
        rhs = -r - sums.h
        dv = normal.solve(rhs)  # predictor (3.7)-(3.8)
        ahead, E = A.sweep(_predict, state, dv)
        affine = min(1.0, ahead.step)
        target = mu * (ahead.products(affine, sums.products) / sums.products) ** 3
        share = affine**damping
        dv = normal.solve(rhs - share * E[0] + target * E[1])  # corrector (3.9)-(3.10)
        t = A.sweep(_correct, state, dv, share, target).length(sums.products, pairs)
        state.sweep(_advance, t)
        v = v + t * dv


def own_step(
    iteration: int,
    bounds: tuple[float, float],
    residual: float,
    normal: NormalEquations,
    details: dict[str, float],
    point: Callable[[], Any],
) -> Step:
    """A step with P, D and what a run goes on from."""
    step = Step(iteration, *bounds, residual, normal.n_active, details, point)
    step.vectors = OWN
    return step


def _bounds(sums: _Sums, v: Vector, R: Vector) -> tuple[float, float]:
    """P(v), and D of min(alpha, C) less what y'alpha = 0 may cost."""
    g = sums.feasible
    primal = 0.5 * float(R @ (v * v)) + sums.losses
    dual = sums.linear - 0.5 * float(R @ (g * g))
    return primal, dual - float((1.0 - R) @ (np.abs(g) * (1.0 + np.abs(v))))


# -- functions of one block ------------------------------------------------------------


def _residuals(block: Any, part: RowState, v: Vector) -> tuple[Any, ...]:
    """`_Sums` of a block; leaves d = 1 / omega, r_u and r_Omega of the predictor."""
    margin = block @ v
    part.d = d = 1.0 / (part.s / part.alpha + part.xi / part.u)
    part.r_u = part.C - part.alpha - part.u
    r_s = margin + part.xi - 1.0 - part.s
    part.r_omega = r_s + part.s - part.xi - part.xi / part.u * part.r_u
    feasible = np.minimum(part.alpha, part.C)
    sums = block.T @ np.stack(
        [part.alpha, d * part.r_omega, d * part.labels, feasible], axis=1
    )
    losses = float(part.C @ np.maximum(0.0, 1.0 - margin))
    products = float(part.s @ part.alpha + part.xi @ part.u)
    worst = max(np.abs(part.r_u).max(), np.abs(r_s).max())
    return *sums.T, float(feasible.sum()), losses, products, Least(-float(worst))


def _predict(block: Any, part: RowState, dv: Vector) -> tuple[Ahead, Vector]:
    """Predictor along dv: what lies ahead, and the right sides of the corrector.

    r_Omega of the corrector is more by first - target * second, with first = ds dalpha
    / alpha - dxi du / u and second = 1 / alpha - 1 / u.
    """
    r_sv, r_xu = part.s * part.alpha, part.xi * part.u
    dalpha, du, ds, dxi = _direction(part, block @ dv, part.r_omega, r_sv, r_xu)
    part.first, part.second = ds * dalpha, dxi * du  # (3.9)-(3.10)
    E = np.stack(
        [
            part.d * (part.first / part.alpha - part.second / part.u),
            part.d * (1.0 / part.alpha - 1.0 / part.u),
        ],
        axis=1,
    )
    return _ahead(part, dalpha, du, ds, dxi), (block.T @ E).T


def _correct(
    block: Any, part: RowState, dv: Vector, share: float, target: float
) -> Ahead:
    """Corrector along dv, left in the state, (3.13)-(3.16), and what lies ahead."""
    first, second = share * part.first - target, share * part.second - target
    r_omega = part.r_omega + first / part.alpha - second / part.u
    changes = _direction(
        part,
        block @ dv,
        r_omega,
        part.s * part.alpha + first,
        part.xi * part.u + second,
    )
    part.dalpha, part.du, part.ds, part.dxi = changes
    return _ahead(part, *changes)


def _direction(
    part: RowState, Adv: Vector, r_omega: Vector, r_sv: Vector, r_xu: Vector
) -> tuple[Vector, Vector, Vector, Vector]:
    """Changes of alpha, u, s and xi, (3.13)-(3.16)."""
    dalpha = -part.d * (r_omega + Adv)
    du = part.r_u - dalpha
    ds = -(r_sv + part.s * dalpha) / part.alpha
    dxi = -(r_xu + part.xi * du) / part.u
    return dalpha, du, ds, dxi


def _ahead(
    part: RowState, dalpha: Vector, du: Vector, ds: Vector, dxi: Vector
) -> Ahead:
    """Products along a direction, and the variable that blocks it first."""
    pairs = [
        (part.s, ds, part.alpha, dalpha),
        (part.alpha, dalpha, part.s, ds),
        (part.xi, dxi, part.u, du),
        (part.u, du, part.xi, dxi),
    ]
    blocks = []
    for x, dx, partner, dpartner in pairs:
        ratio = -dx / x
        i = int(ratio.argmax())
        blocks.append((ratio[i], x[i], dx[i], partner[i], dpartner[i], 1.0))
    ratio, *blocking = max(blocks, key=lambda block: block[0])
    first = sum(float(x @ dpartner) for x, _, _, dpartner in pairs)
    second = float(ds @ dalpha + dxi @ du)
    return Ahead(Least(step_to_zero(ratio), tuple(blocking)), first, second)


def _advance(part: RowState, t: float) -> None:
    for name in OWN:
        setattr(part, name, getattr(part, name) + t * getattr(part, f"d{name}"))
