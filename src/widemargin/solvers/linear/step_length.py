"""Step lengths and centrality correctors of an interior point method."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from widemargin.data.blocks import Least
from widemargin.data.state import RowState
from widemargin.solvers.linear.normal_equations import NormalEquations

Vector = NDArray[np.float64]


@dataclass(frozen=True)
class Ahead:
    """What a direction meets: the largest feasible step, and the products along it.

    The sum of complementary products at step t is c + t first + t^2 second. ``least``
    holds what blocks: a variable, its change, its partner, the change of that, and C.
    """

    least: Least
    first: float
    second: float

    def __add__(self, other: "Ahead") -> "Ahead":
        least = self.least + other.least
        return Ahead(least, self.first + other.first, self.second + other.second)

    @property
    def step(self) -> float:
        """Largest feasible step; more than 1 where nothing blocks."""
        return self.least.key

    def products(self, t: float, products: float) -> float:
        """Sum of complementary products at step t, from their sum at 0."""
        return products + t * self.first + t * t * self.second

    def length(self, products: float, pairs: float) -> float:
        """Mehrotra's rule: the blocking product ends at mu / 100; at least 0.99."""
        t = self.step
        if t > 1.0:
            return 1.0
        x, dx, partner, dpartner, C = self.least.value
        goal = 0.01 * self.products(t, products) / pairs * C
        aimed = (goal / (partner + t * dpartner) - x) / dx
        return float((1.0 - 1e-8) * min(t, max(aimed, 0.99 * t)))


def step_to_zero(ratio: float) -> float:
    """Largest feasible step from the largest -dx / x; inf where nothing falls."""
    return 1.0 / ratio if ratio > 0.0 else np.inf


def blocking(part: RowState, row: int, bounded: bool) -> tuple[float, ...]:
    """What blocks the step in a row: see `Ahead`."""
    pairs = [(part.s[row], part.ds[row], part.alpha[row], part.dalpha[row])]
    if bounded:
        pairs.append((part.u[row], -part.dalpha[row], part.xi[row], part.dxi[row]))
    pairs += [(partner, change, x, dx) for x, dx, partner, change in pairs]
    return (*max(pairs, key=lambda pair: -pair[1] / pair[0]), part.C[row])


# -- Gondzio's corrector ---------------------------------------------------------------


@dataclass(frozen=True)
class _Trial:
    """A trial step and the products it should have: within [0.1, 10] goal C."""

    t: float
    goal: float
    bounded: bool


def recenter(
    state: RowState,
    normal: NormalEquations,
    t: float,
    target: float,
    products: float,
    pairs: float,
    bounded: bool,
) -> tuple[Vector, float]:
    """One centrality corrector: what it adds to dv, and the new step length.

    Aims the products at the trial step min(1, 1.5 t + 0.3) back into [0.1, 10] sigma
    mu; kept if the step grows by 1 %. Two sweeps more. [gondzio1996]_
    """
    trial, A = _Trial(min(1.0, 1.5 * t + 0.3), target, bounded), normal.A
    extra = normal.solve(A.sweep(_correction_sums, state, trial))
    moved = state.join(A.state(shift=0.0))
    longer = A.sweep(_try_correction, moved, extra, trial).length(products, pairs)
    if longer < 1.01 * t:
        return np.zeros_like(extra), t
    moved.sweep(_accept_correction, trial)
    return extra, longer


def _corrections(part: RowState, trial: _Trial) -> tuple[Vector, Vector]:
    """What to add to the products s alpha and xi u."""
    goal = trial.goal * part.C

    def aim(x: Vector, dx: Vector, partner: Vector, change: Vector) -> Vector:
        product = (x + trial.t * dx) * (partner + trial.t * change)
        inside = np.clip(product, 0.1 * goal, 10.0 * goal)
        return np.maximum(inside - product, -10.0 * goal)

    e_s = aim(part.s, part.ds, part.alpha, part.dalpha)
    if not trial.bounded:
        return e_s, np.zeros_like(e_s)
    return e_s, aim(part.xi, part.dxi, part.u, -part.dalpha)


def _pull(part: RowState, trial: _Trial, e_s: Vector, e_x: Vector) -> Vector:
    """Minus the change of r_Omega: e_s / alpha - e_x / u."""
    return np.asarray(e_s / part.alpha - (e_x / part.u if trial.bounded else 0.0))


def _correction_sums(block: Any, part: RowState, trial: _Trial) -> Vector:
    return np.asarray(
        block.T @ (part.d * _pull(part, trial, *_corrections(part, trial)))
    )


def _corrected(part: RowState, trial: _Trial) -> tuple[Vector, Vector, Vector]:
    """Dalpha, ds and dxi with the corrections; ``shift`` holds A times the extra dv."""
    e_s, e_x = _corrections(part, trial)
    more = part.d * (_pull(part, trial, e_s, e_x) - part.shift)
    ds = part.ds + (e_s - part.s * more) / part.alpha
    if not trial.bounded:
        return part.dalpha + more, ds, part.dxi + 0.5 * more / part.C
    return part.dalpha + more, ds, part.dxi + (e_x + part.xi * more) / part.u


def _try_correction(block: Any, part: RowState, extra: Vector, trial: _Trial) -> Ahead:
    """What the corrected direction meets."""
    part.shift = block @ extra
    dalpha, ds, dxi = _corrected(part, trial)
    quads = [(part.s, ds, part.alpha, dalpha)]
    if trial.bounded:
        quads.append((part.xi, dxi, part.u, -dalpha))
    first = sum(float(x @ change + partner @ dx) for x, dx, partner, change in quads)
    second = sum(float(dx @ change) for _, dx, _, change in quads)
    least = Least(np.inf)
    for x, dx, partner, change in (
        *quads,
        *((partner, change, x, dx) for x, dx, partner, change in quads),
    ):
        i = int(np.argmax(-dx / x))
        blocks = (x[i], dx[i], partner[i], change[i], part.C[i])
        least += Least(step_to_zero(float(-dx[i] / x[i])), blocks)
    return Ahead(least, first, second)


def _accept_correction(part: RowState, trial: _Trial) -> None:
    part.dalpha, part.ds, part.dxi = _corrected(part, trial)
