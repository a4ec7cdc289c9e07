"""IRWLS: the small problem of a working set by reweighted least squares, safeguarded.

Perez-Cruz et al. [perezcruz2000]_ write the losses of the rows as 1/2 sum a_i e_i^2
with weights a_i that are frozen for one pass. In the signed variables c = Y beta of
`widemargin.solvers.kernel.working_set`, with e = Y u and the fixed rows in g,

    e = -(g + b),   g = K c + G_in,   u = 1 - y f,

a pass solves their (3), with d = 1 / a in place of a,

    [ K_11 + d   1 ] [ c_1 ]   [ -G_1 - K_13 c_3 ]     S1: 0 < u < 1 / kappa
    [ 1'         0 ] [  b  ] = [ s - 1'c_3       ]     S2: c = 0,   S3: |c| = C

for the rows S1, where s is the sum of c, which stays. As printed (Table 1, which is
`published_irwls`) a free row has a = C / u: a grows without bound as u goes to 0. The
passes come near the optimum by a factor of max beta / C each, and where u is below the
rounding of e its sign throws the row out of S1 (ten problems of 120 rows: none settles
at C from 1 to 100). Here the hinge has a corner of width
1 / kappa, as in the authors' proof of convergence [perezcruz2005]_,

    h(u) = 1/2 kappa C u^2 where 0 < u < 1 / kappa,   C u - C / (2 kappa) beyond,

so that d = 1 / (kappa C) is constant, and a pass is a generalized Newton step on

    1/2 c'K c + sum h(u_i) + s b,

which is convex, continuously differentiable and piecewise quadratic: with an exact line
search it ends at the minimum. There c = z = clip(e / d), which is feasible in the dual.
kappa goes up a ladder: begun at its end the passes stall. The first pass on a rung
takes for S1 the rows that the last one left between their bounds, not those with u in
the new corner, which is narrower (200 rows, C = 30: 19 passes in all instead of 88).
The squared hinge is its own corner, d = 1 / (2 C), where S3 is empty.
"""

import math
from collections.abc import Iterator

import numpy as np
from scipy.linalg.lapack import dpotrf, dpotrs

from widemargin.arrays import Index, Mask, Vector
from widemargin.numerics.cholesky import threads_for
from widemargin.numerics.roots import monotone_root
from widemargin.solvers.kernel.small_problem import Small, Solved, solve_by_pairs
from widemargin.system import deadline

# The ladder of kappa. Its first rung is wide enough for u to move by the violation, and
# by what all of C moves it (else C = 1000 took up to 60 passes instead of 40), but only
# by some violations: where c is nearly right that is less (a4a, C = 100: 11 passes a
# set, not 23). How far a rung is from the last one. The end, times what may stay: what
# the corners leave is half of that.
FIRST, WARM, RUNG, END = 2.0, 30.0, 10.0, 4.0
# Passes on one rung; at its end K (z - c), by which z changes u, is at most this share
# of the width of the corner, or of what may stay. (Half and twice of the first, 0.1 and
# 0.5 of the second: within a tenth of the time, benchmarks/core/untuned.py.)
MOST_PASSES, SETTLED = 60, 0.25
# A corner has to be this many times as wide as the rounding of u. (3 and 30: within
# a quarter of the time, benchmarks/core/untuned.py.)
SHARPEST = 10.0
# Bounds are no farther than this many times the largest c at first; then, while some c
# is at them, farther by the square of this. (5 and 20: within
# an eighth of the time.)
ROOM = 10.0
# The longest step: the solution of (3) is at 1. And the share of a slope that is zero:
# a step that K does not see is made to the end: some thousand roundings of the sum.
LONGEST, NOTHING = 10.0, 1e-12
# Share of d that the line search has in K.
SHARE = 0.03
# Share of sum |c| that is rounding of the sum.
ROUNDING = 1e-14
# What is added to d, as a share of the mean of diag K: at first, and where the matrix
# does not factor: from rounding by hundredfolds to where any matrix of float32 does.
JITTERS = (1e-12, 1e-10, 1e-8, 1e-6, 1e-4, 1e-2, 1.0, 1e2)


def reweighted_steps(small: Small, stop: float) -> Solved:
    """Safeguarded IRWLS; pair steps end what is still above ``stop``.

    Parameters
    ----------
    small : Small
    stop : float
        Violation that may stay. The passes end near half of it; where rounding, or a
        kernel that is not positive definite, keeps them above, or keeps them from
        lowering the dual objective, pair steps in float64 go on from the better point.

    Returns
    -------
    Solved
        Its c has the sum that it had and is within its bounds; its dual objective is no
        larger. The steps are passes; the pair steps at the end are not counted.
        Negative are the pair steps along negative curvature; that a matrix did not
        factor, where a larger d is tried, may be rounding.

    Notes
    -----
    A pass costs |S1|^3 / 3 + 6 q^2 flops; 60 passes a rung at the most, 1 to 3 on most
    from the second one on. 24 q^2 bytes, 32 q^2 where K has negative values.

    References
    ----------
    [perezcruz2000]_, (2)-(8); [perezcruz2005]_ for the corner. The ladder is ours.
    """
    if not small.violations.size > stop:
        return Solved(small.c.copy(), 0, 0)
    left, count, room = small, 0, ROOM
    while True:
        capped = _capped(left, room * float(np.abs(small.c).max(initial=0.0)))
        passes = _Passes(capped)
        for rung in _ladder(capped, stop, passes):
            passes.settle(*rung)
        left, count = _lower(left, passes.z), count + passes.count
        at_cap = (left.c <= capped.lower) & (capped.lower > small.lower)
        at_cap |= (left.c >= capped.upper) & (capped.upper < small.upper)
        if not at_cap.any():
            break
        room *= ROOM**2
    if not left.violations.size > stop:
        return Solved(left.c.copy(), count, 0)
    polished = solve_by_pairs(left, stop)
    return Solved(polished.c, count, polished.negative, polished.reached)


def _lower(small: Small, c: Vector) -> Small:
    """The problem at another c, if its objective is lower there."""
    other = small.at(c)
    if 0.5 * float((c - small.c) @ (small.F + other.F)) < 0:
        return other
    return small._replace(K=other.K)


def _capped(small: Small, most: float) -> Small:
    """The same problem with bounds of ``most`` where they are larger.

    The corner is as wide as rounding of u allows, and c moves by all of C within it:
    with a C far above all of c nothing would be left of c.
    """
    if not (most > 0 and np.isfinite(small.upper - small.lower).all()):
        return small
    lower, upper = np.maximum(small.lower, -most), np.minimum(small.upper, most)
    return small._replace(lower=lower, upper=upper)


def _ladder(
    small: Small, stop: float, passes: "_Passes"
) -> Iterator[tuple[Vector, float]]:
    """Rungs while u has digits for them: d = 1 / a, (q,), and what u may be off."""
    C, last = small.upper - small.lower, END / stop
    bounded = bool(np.isfinite(C).all())
    if not bounded:  # its own corner is a = 2 C
        C, last = 0.5 / small.ridge, 2.0
    wrong = small.violations.size
    first = FIRST / max(wrong, min(passes.stiffness * C.max(), WARM * wrong))
    for rung in range(max(0, math.floor(math.log(last / first, RUNG))), -1, -1):
        sharpest = 1.0 / (SHARPEST * passes.rounding)
        kappa = min(last / RUNG**rung, sharpest)
        yield 1.0 / (kappa * C), SETTLED * (1.0 / kappa if rung or bounded else stop)
        if kappa == sharpest:
            return


class _Passes:
    """The iterates (c, b) of one small problem.

    Attributes
    ----------
    K : ndarray (q, q), with the shift
    c, g : ndarray (q,), where e = -(g + b)
    b : float
    z : ndarray (q,), the dual point of the last rung
    count : int, passes
    """

    def __init__(self, small: Small) -> None:
        q = len(small.c)
        self.K = small.K[:, :q].astype(np.float64) + small.shift
        # Of most kernels K itself. What is moved to the diagonal counts by g, too.
        self._sizes = np.abs(self.K) if (self.K < 0.0).any() else self.K
        self.lower, self.upper, self.sums = small.lower, small.upper, small.sums
        self.c, self.z = small.c.copy(), small.c
        # The ridge of the squared hinge is its d: it is no part of u.
        self.g = small.F - small.ridge * small.c
        self.total = float(small.c.sum())
        self.b = -0.5 * float(self.g.max() + self.g.min()) if small.sums else 0.0
        self.count = 0
        self._moved = np.zeros(q)

    @property
    def stiffness(self) -> float:
        """How much a change of one c changes its e, on average."""
        return float(np.abs(self.K.diagonal()).mean())

    @property
    def rounding(self) -> float:
        """Rounding of e = -(g + b), about."""
        size = (self._sizes @ np.abs(self.c) + np.abs(self.g)).max() + abs(self.b)
        return float(np.finfo(np.float64).eps * max(size, 1.0))

    def settle(self, d: Vector, off: float) -> None:
        """Passes on one rung until u is off by no more."""
        d = self._share(d)
        for count in range(MOST_PASSES):
            self.b, z = self._dual(self.g, d)
            wrong = z - self.c
            near = np.abs(wrong) <= self.rounding / d
            if near.all() or np.abs(self.K @ wrong).max() <= off:
                break
            if count == 0 and self._free(self.z).any() and self._pass(self.z, d):
                continue  # what the last rung left free stays so, though z says C
            if not self._pass(z, d):
                break
        self.b, z = self._dual(self.g, d)
        self.z = self._balanced(self._accurate(z, d, off))

    def _share(self, d: Vector) -> Vector:
        """Move a share of d to the diagonal of K; what is left.

        That changes no pass, only what the line search measures: K alone may be
        singular, and with values in float32 a little worse than that.
        """
        moved = SHARE * d
        self.K[np.diag_indices(len(d))] += moved - self._moved
        self.g += (moved - self._moved) * self.c
        self._moved = moved
        return d - moved

    def _accurate(self, z: Vector, d: Vector, off: float) -> Vector:
        """The point z, with c where that is free: e / d has lost digits there."""
        inside = np.clip(self.c, self.lower, self.upper)
        other = np.where(self._free(z), inside, z)
        close = np.abs(self.K @ (other - self.c)) + d * np.abs(other - z)
        return other if close.max() <= off else z

    def _free(self, z: Vector) -> Mask:
        """S1: the rows that are between their bounds."""
        return np.asarray((z > self.lower) & (z < self.upper))

    def _clipped(self, e: Vector, d: Vector) -> Vector:
        """The dual point of errors e."""
        return np.asarray(np.clip(e / d, self.lower, self.upper))

    def _dual(self, g: Vector, d: Vector) -> tuple[float, Vector]:
        """The b that makes sum z = s, and the dual point z."""
        if not self.sums:
            return 0.0, self._clipped(-g, d)
        inverse = 1.0 / d

        def missing(b: float) -> tuple[float, float, float]:
            z = self._clipped(-g - b, d)
            value, scale = self.total - float(z.sum()), float(np.abs(z).sum())
            return value, float(inverse[self._free(z)].sum()), scale

        b = monotone_root(missing, self.b)
        return b, self._clipped(-g - b, d)

    def _pass(self, z: Vector, d: Vector) -> bool:
        """Solve for S1 and move there by a line search; False where nothing moved.

        S1 is where z is free. Where it is empty, b follows c in the line search: with
        the b of z, the first row that leaves a bound would end it.
        """
        deadline.check()
        self.count += 1
        free = self._free(z)
        change, rise = z - self.c, 0.0  # S2 at 0 and S3 at C
        if free.any():
            change[free], rise = self._solve(free, change, d)
        Kd = self.K @ change
        curvature = float(change @ Kd)

        def derivative(t: float) -> tuple[float, float, float]:
            e, slope = -(self.g + t * Kd) - (self.b + t * rise), curvature
            if free.any():
                at = self._clipped(e, d)
                slope += float(((Kd + rise) ** 2 / d)[self._free(at)].sum())
            else:
                at = self._dual(self.g + t * Kd, d)[1]
            terms = (self.c - at) * Kd
            value = float(terms.sum()) + t * curvature
            value += (self.total - float(at.sum())) * rise
            return value, slope, float(np.abs(terms).sum()) + abs(t * curvature)

        value, _, scale = derivative(0.0)
        t = 1.0
        if abs(value) > NOTHING * scale:
            t = min(monotone_root(derivative, t, tol=NOTHING), LONGEST)
            if not value < 0 or not t > 0:
                return False
        self.c += t * change
        self.g += t * Kd
        self.b += t * rise
        return True

    def _solve(self, free: Mask, change: Vector, d: Vector) -> tuple[Vector, float]:
        """Changes of c on S1 and of b, (3), given the changes on S2 and S3.

        By the Schur complement of b: K_11 + d is factored once for two right sides.
        """
        rows, moved = np.flatnonzero(free), np.flatnonzero(~free & (change != 0))
        right = np.ones((len(rows), 2), order="F")
        right[:, 0] = -(self.g[rows] + self.b) - d[rows] * self.c[rows]
        right[:, 0] -= self.K[np.ix_(rows, moved)] @ change[moved]
        x, v = self._factored(rows, d[rows], right).T
        if not self.sums:
            return x, 0.0
        missing = self.total - self.c.sum() - change[moved].sum()
        rise = float((x.sum() - missing) / v.sum())
        changed: Vector = x - rise * v
        return changed, rise

    def _factored(self, rows: Index, d: Vector, right: Vector) -> Vector:
        """(K_11 + d)^-1 right, with a larger d where K is not positive definite.

        What is added to d slows the passes down, but they end at the same point.
        """
        M = np.asfortranarray(self.K[np.ix_(rows, rows)])
        diagonal = M.diagonal() + d
        mean = max(self.stiffness, float(d.max()))
        for jitter in JITTERS:
            deadline.check(len(rows) ** 3 / 3.0)
            M[np.diag_indices(len(rows))] = diagonal + jitter * mean
            with threads_for(len(rows)):
                L, info = dpotrf(M, lower=True, clean=False)
                if info == 0:
                    solved: Vector = dpotrs(L, right, lower=True)[0]
                    return solved
        sums: Vector = np.abs(M).sum(axis=1)
        return right / sums[:, np.newaxis]

    def _balanced(self, z: Vector) -> Vector:
        """The point z with sum z = s to the rounding."""
        if not self.sums:
            return z
        return balanced(z, self.lower, self.upper, self.total)


def balanced(z: Vector, lower: Vector, upper: Vector, total: float) -> Vector:
    """The point z with sum z = total to the rounding, restored where z is free."""
    excess = float(z.sum()) - total
    if abs(excess) <= ROUNDING * float(np.abs(z).sum()):
        return z  # what is at a bound stays there
    room = z - lower if excess > 0 else upper - z
    some = np.where((z > lower) & (z < upper), room, 0.0)
    if some.sum() < abs(excess):
        some = room
    if not np.isfinite(some).all():
        some = np.where(np.isfinite(some), 0.0, 1.0)
    z = z - excess * (some / some.sum())
    return np.asarray(np.clip(z, lower, upper))
