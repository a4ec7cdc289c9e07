"""What can solve the small problem of a working set, timed: also a QP interior point.

Each measures its time, and has the problems on record. `with_engine` is `IRWLS` with
one of them.
"""

import time
from dataclasses import dataclass

import clarabel
import numpy as np
from scipy import sparse
from scipy.linalg import cho_factor, cho_solve
from threadpoolctl import ThreadpoolController

from widemargin.solvers import IRWLS
from widemargin.solvers.kernel.small_problem import Solved

PAIRS, REWEIGHTED, DENSE, CLARABEL = "pairs", "irwls", "dense QP", "Clarabel"
PRINTED, GUARDED = "published", "guarded"
OF_THE_LIBRARY = (PAIRS, REWEIGHTED, PRINTED, GUARDED)
BLAS = ThreadpoolController()
# How much of the way to a bound a step may go; passes at most.
BOUNDARY, MOST_PASSES = 0.995, 100
# Rounding of a sum, as a share of it.
SAME_SUM = 1e-12
# Added to the diagonal of a factor, in units of the largest kernel value: with equal
# rows rounding makes eigenvalues of -4e-12 (Splice).
ROUNDED = 1e-9


class Timed:
    """A solver of small problems that counts: processor seconds, problems and steps."""

    def __init__(self, name):
        self.name, self._solve = name, _solver(name)
        self.seconds, self.calls, self.steps, self.seen = 0.0, 0, 0, []

    def __call__(self, small, stop):
        """Solve, and remember what was asked."""
        begin = time.process_time()
        solved = self._solve(small, stop)
        self.seconds += time.process_time() - begin
        self.calls += 1
        self.steps += solved.steps
        self.seen.append((small._replace(K=small.K.copy()), stop))  # its room is reused
        return solved


def _solver(name):
    """``solver(small, stop)`` of this name, of the library or of ours."""
    if name in OF_THE_LIBRARY:
        return IRWLS(inner=name).small_solver()
    return {DENSE: dense, CLARABEL: by_clarabel}[name]


@dataclass(frozen=True, kw_only=True)
class _Given(IRWLS):
    """Working sets whose small problems a given engine solves."""

    engine: Timed

    def small_solver(self):
        """The engine."""
        return self.engine


def with_engine(engine, q):
    """Largest violators, half of a set of q rows kept, solved by this engine."""
    inner = engine.name if engine.name in OF_THE_LIBRARY else PAIRS
    return _Given(engine=engine, inner=inner, working_set=q)


def dense(small, stop):
    """Mehrotra's predictor and corrector with a dense Cholesky factor, as LOQO.

    min 1/2 x'K x + g'x, sum x = s, lower <= x <= upper; K + diag is factored once a
    pass, q^3 / 3 flops. It ends when the rounded point has no violation above ``stop``.
    """
    if not small.violations.size > stop:
        return Solved(small.c.copy(), 0, 0)
    K, g = _quadratic(small)
    lower, upper, total = small.lower, small.upper, float(small.c.sum())
    # Kept apart from x: where x is at a bound to rounding, x - lower is zero.
    low, high = 0.5 * (upper - lower), 0.5 * (upper - lower)
    x, b = lower + low, 0.0
    scale = max(1.0, float(np.abs(K @ x + g).max()))
    z, w = np.full(len(x), scale), np.full(len(x), scale)
    for passes in range(1, MOST_PASSES + 1):
        rd, rp = K @ x + g - b - z + w, total - float(x.sum())
        state = _Newton(K, low, high, z, w, rd, rp)
        step = _corrected(state)
        t = _longest(state, step)
        low, high, b = low + t * step[0], high - t * step[0], b + t * step[1]
        x = np.where(low < high, lower + low, upper - high)
        z, w = z + t * step[2], w + t * step[3]
        c = _rounded(x, z, w, small)
        if _violation(small, K, c) <= stop:
            return Solved(c, passes, 0)
    return Solved(c, MOST_PASSES, 0, reached=False)


def _corrected(state):
    """The step to the center that the predictor asks for, with its correction."""
    low, high, z, w = state.low, state.high, state.z, state.w
    guess = state.step(0.0, 0.0, 0.0)
    t = _longest(state, guess)
    dx, _, dz, dw = guess
    now = float(low @ z + high @ w)
    after = float((low + t * dx) @ (z + t * dz) + (high - t * dx) @ (w + t * dw))
    target = now / (2 * len(low)) * (after / now) ** 3
    return state.step(target, dx * dz, -dx * dw)


def _violation(small, K, c):
    """The largest violation at c, in float64; infinite where the sum is another."""
    missing = abs(float(c.sum() - small.c.sum()))
    if missing > SAME_SUM * max(
        float(np.abs(c).sum()), float((small.upper - small.lower).max())
    ):
        return np.inf
    return small._replace(c=c, F=small.F + K @ (c - small.c)).violations.size


class _Newton:
    """Newton's system of one pass, factored."""

    def __init__(self, K, low, high, z, w, rd, rp):
        self.low, self.high, self.z, self.w = low, high, z, w
        self._rd, self._rp = rd, rp
        M = K.copy()
        shift = ROUNDED * float(M.diagonal().max())
        M[np.diag_indices(len(low))] += z / low + w / high + shift
        with BLAS.limit(limits=1, user_api="blas"):  # as IRWLS: factors are small
            self._factor = cho_factor(M, True, overwrite_a=True, check_finite=False)
        self._ones = cho_solve(self._factor, np.ones(len(low)), check_finite=False)

    def step(self, target, cross_low, cross_high):
        """(dx, db, dz, dw) towards z low = w high = target."""
        at_low = (target - cross_low) / self.low - self.z
        at_high = (target - cross_high) / self.high - self.w
        right = -self._rd + at_low - at_high
        x = cho_solve(self._factor, right, check_finite=False)
        db = (self._rp - float(x.sum())) / float(self._ones.sum())
        dx = x + db * self._ones
        dz = at_low - self.z / self.low * dx
        dw = at_high + self.w / self.high * dx
        return dx, db, dz, dw


def _longest(state, step):
    """How far all stay positive, at most 1."""
    dx, _, dz, dw = step
    pairs = ((state.low, dx), (state.high, -dx), (state.z, dz), (state.w, dw))
    bounds = [(v[d < 0] / -d[d < 0]).min(initial=np.inf) for v, d in pairs]
    return min(1.0, BOUNDARY * min(bounds))


def by_clarabel(small, stop):
    """Clarabel's interior point, on the upper triangle of K as a sparse matrix."""
    K, g = _quadratic(small)
    q = len(g)
    eye = sparse.identity(q, format="csc")
    A = sparse.vstack([sparse.csc_matrix(np.ones((1, q))), eye, -eye], format="csc")
    right = np.concatenate([[small.c.sum()], small.upper, -small.lower])
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.tol_feas = settings.tol_gap_abs = settings.tol_gap_rel = 1e-9
    cones = [clarabel.ZeroConeT(1), clarabel.NonnegativeConeT(2 * q)]
    P = sparse.csc_matrix(np.triu(K))
    found = clarabel.DefaultSolver(P, g, A, right, cones, settings).solve()
    x, multipliers = np.asarray(found.x), np.asarray(found.z)[1:]
    c = _rounded(x, multipliers[q:], multipliers[:q], small)
    reached = bool(_violation(small, K, c) <= stop)
    return Solved(c, found.iterations, 0, reached)


def _quadratic(small):
    """K (q, q) and g of 1/2 x'K x + g'x, float64; free intercept, hinge."""
    q = len(small.c)
    K = small.K[:, :q].astype(np.float64)
    return K, small.F - K @ small.c


def _rounded(x, z, w, small):
    """At a bound where its multiplier says so, with the sum as before."""
    lower, upper = small.lower, small.upper
    width, scale = upper - lower, max(float(z.max()), float(w.max()), 1.0)
    at_low = (x - lower) / width < z / scale
    at_high = (upper - x) / width < w / scale
    x = np.where(at_low, lower, np.where(at_high, upper, x))
    x = np.clip(x, lower, upper)
    room = np.minimum(x - lower, upper - x)
    if room.max() > 0:
        x = x + (small.c.sum() - x.sum()) * room / room.sum()
    return np.clip(x, lower, upper)
