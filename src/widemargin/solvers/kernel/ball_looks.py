"""The search for sigma of a soft ball, and what looks at its steps find.

For each sigma of `widemargin.problems.ball` the best a has a best sigma of its own.
That is larger just where sigma is too small (the maximum over a is concave in sigma),
and grows with it. Where both agree, sigma is the solution.
"""

from typing import NamedTuple

import numpy as np

from widemargin.arrays import Vector
from widemargin.problems.ball import TINY, BallProblem, Bounds
from widemargin.solution import Certificate
from widemargin.solvers.kernel.simplex import SimplexDescent

# Steps go on below the gap that was asked for by this factor: their g is in float32.
FURTHER = 0.5
# Rows up to which a fit goes on until rounding ends it, in float64: milliseconds, for
# which equal problems (rows repeated, or with weights) get equal answers. Not for more
# than this number of steps.
FEW_ROWS, PRECISE, FEW_STEPS = 256, 1e-13, 500_000
# Steps after which g is computed in float64 again, whatever it says: in float32 it may
# go astray. So many roundings of 6e-8 add up to some 1e-5, a tenth of the usual tol.
REFRESH = 20_000
# A look is progress where the dual value has grown by this share of the gap since the
# look before; so many looks without progress end the run. (2 and 6: within a tenth of
# the time, benchmarks/core/untuned.py.)
PROGRESS, PATIENCE = 1e-3, 3
# A move of sigma by this share is progress, too.
MOVED = 0.01
# Times that steps may find the gap reached where float64 does not, before the rows of K
# become float64 too.
MISSES = 2


class Sigma:
    """The search for sigma: by secants, as plain steps may be as short as sigma is.

    Attributes
    ----------
    value : float in (0, 1]
    """

    def __init__(self, value: float) -> None:
        self.value = value
        # Logarithms of a sigma that was too small, and of a sigma that was too large.
        self._low, self._high = -np.inf, np.inf
        self._last: tuple[float, float] | None = None

    def move(self, ratio: float) -> float:
        """Take the next sigma, after V / (2 S) of the best a; the share it moves by."""
        if ratio <= 0 or (self.value == 1.0 and ratio >= 1.0):
            return 0.0
        x, excess = np.log(self.value), np.log(ratio / self.value)
        if excess > 0:
            self._low = max(self._low, x)
        else:
            self._high = min(self._high, x)
        found = x + excess  # on the same side of the solution
        if self._last is not None and excess != self._last[1]:
            x0, excess0 = self._last
            secant = x - excess * (x - x0) / (excess - excess0)
            if self._low < secant < self._high:
                found = secant
        self._last, before = (x, excess), self.value
        self.value = float(np.clip(np.exp(found), TINY, 1.0))
        return abs(self.value / before - 1.0)


class Seen(NamedTuple):
    """A point of the steps: its distances by the g that is kept, |c|^2 and values."""

    a: Vector
    d: Vector
    square: float
    bounds: Bounds


class Looks:
    """What looks at a descent find, and do for it to go on.

    Attributes
    ----------
    stop : float, of the next steps
    moved : bool, whether sigma moved at the last look
    """

    def __init__(self, problem: BallProblem, tol: float, sigma: float) -> None:
        few = len(problem.diagonal) <= FEW_ROWS
        if few:
            problem.columns.refine()
        self._problem, self._few, self._tol = problem, few, tol
        self._aim = PRECISE if few else FURTHER * tol  # gap of the steps
        # Of the last look in float64: the dual value, and the number of steps.
        self._last, self._refreshed = -np.inf, 0
        self._misses = self._failures = 0
        self._ridge, self._sigma = sigma * problem.ridge, Sigma(sigma)
        self.stop, self.moved = 0.0, False

    @property
    def sigma(self) -> float:
        """Sigma of the next steps."""
        return self._sigma.value

    def at(self, descent: SimplexDescent) -> tuple[Seen, bool]:
        """The current point, in float64 where that is due; whether the steps ended."""
        found = descent.exact is not None  # the steps have found an end
        self.moved = False
        point = self._seen(descent)
        near = point.bounds.certificate.relative_gap <= self._aim
        if not found and (near or descent.steps - self._refreshed >= REFRESH):
            descent.refresh()
            return self._seen(descent), near
        return point, found

    def _seen(self, descent: SimplexDescent) -> Seen:
        """The point and its values, by the g that is kept."""
        a = descent.a
        f = descent.exact
        if f is None:
            f = descent.g - self._ridge * a
        d, square = self._problem.distances(a, f)
        return Seen(a, d, square, self._problem.certify(a, d))

    def is_enough(self, certificate: Certificate, steps: int) -> bool:
        """Whether the gap is small enough for the run to end."""
        few = self._few and steps < FEW_STEPS
        return certificate.relative_gap <= (PRECISE if few else self._tol)

    def ends(
        self, descent: SimplexDescent, point: Seen, found: bool, enough: bool
    ) -> bool:
        """Whether a look is the last; else the descent is prepared to go on."""
        if found and descent.steps > 0 and not enough:
            self._misses += 1  # the g of the steps was too good
            self._aim *= FURTHER
        exact = descent.exact is not None
        if exact and (enough or self._is_stuck(descent, point.bounds)):
            return True
        V = float((point.a * point.d).sum())
        self._prepare(descent, point.a, V, point.bounds.certificate)
        return False

    def _prepare(
        self, descent: SimplexDescent, a: Vector, V: float, certificate: Certificate
    ) -> None:
        """Let the descent go on, and stop at the gap aimed at.

        The descent maximizes V - sigma S, and stops by the gap of this objective,
        relative to V, which is positive. P - D is at most this gap, for sigma < 1 too:
        then 2 sigma S = V, and t_i = sigma a_i / (2 C_i) costs sum C_i t_i^2 = D. But
        there D is half of sigma V only, and a quarter of the share of V will mostly do.
        """
        descent.lift(float((self._ridge * a * a).sum()))
        value = max(V, certificate.scale)
        aim = self._aim * max(certificate.primal, certificate.scale) / value
        if self._sigma.value < 1.0:
            aim = 0.25 * self._aim
        self.stop = float(np.expm1(0.5 * np.log1p(aim)))  # its square less 1 is aim

    def _is_stuck(self, descent: SimplexDescent, bounds: Bounds) -> bool:
        """Whether a look in float64 is the last one, though its gap is not enough.

        The rows of K become float64 where they have too few digits: the gap was missed,
        or no progress is seen.
        """
        moved = self._sigma.move(bounds.ratio)
        if moved:
            self.moved = True  # the next sigma may allow steps where this one did not
            self._ridge = self._sigma.value * self._problem.ridge
            descent.use_ridge(self._ridge)
        certificate = bounds.certificate
        grows = certificate.dual > self._last + PROGRESS * certificate.gap
        self._failures = 0 if grows or moved > MOVED else self._failures + 1
        if self._failures or self._misses >= MISSES:
            self._problem.columns.refine()
        self._last, self._refreshed = certificate.dual, descent.steps
        return self._failures >= PATIENCE
