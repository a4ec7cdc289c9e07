"""The paper's SMO with the choice of pairs that it cites: Platt's.

J. C. Platt, "Fast training of support vector machines using sequential minimal
optimization", 1998, sections 12.2.1 to 12.2.3: passes over all rows, and over those
between the bounds, by turns; for each row that breaks its condition by more than `TOL`
a partner with the largest |E1 - E2|, or else the first that makes progress, from a
random place on. The end-points are (10) to (13) of the budget paper.
"""

import numpy as np

from papers.budget import smo

# Of Platt's pseudo-code: how far a condition may be broken, and how small a step is
# none, as a share of alpha.
TOL, EPS = 1e-3, 1e-3


class Run:
    """Steps from alpha = 0, as they are asked for.

    Attributes
    ----------
    alpha, f : ndarray (m,), dual variables and scores without b
    b : float, Platt's threshold, as an intercept: f + b is the score
    steps : int
    ended : bool, whether a pass over all rows changed nothing
    """

    def __init__(self, K, y, limits, seed=0):
        self._K, self._y, self._limits = K, y, limits
        self._rng = np.random.default_rng(seed)
        self._diagonal = np.diag(K)
        self._top = min(limits.box, limits.ball)  # what bounds a single alpha
        self.alpha, self.f, self.b = np.zeros(len(y)), np.zeros(len(y)), 0.0
        self.steps, self.ended = 0, False
        self._rows = self._examined()

    def to(self, steps):
        """Goes on until so many steps are done, or there are none."""
        while not self.ended and self.steps < steps:
            self.ended = not next(self._rows)
        return self

    def _between(self):
        """Rows whose alpha is neither 0 nor C, as booleans."""
        return (self.alpha > 0) & (self.alpha < self._top)

    def _examined(self):
        """Platt's outer loop: True after each step, False at the end."""
        whole = True
        while True:
            changed = False
            for row in range(len(self._y)):
                looked_at = whole or self._is_free(row)
                if looked_at and self._breaks(row) and self._step_of(row):
                    changed = True
                    yield True
            if whole and not changed:
                yield False
            whole = not (whole or changed)

    def _breaks(self, row):
        """Whether a row breaks its condition: y E < 0 where alpha may rise, ..."""
        lacks = self._y[row] * (self.f[row] + self.b) - 1.0
        alpha = self.alpha[row]
        return (lacks < -TOL and alpha < self._top) or (lacks > TOL and alpha > 0)

    def _step_of(self, row):
        """A step with the best partner by Platt's hierarchy; whether there is one."""
        (step,), (gain,) = smo.moves(
            self.alpha, self._y, self.f, self._K, np.array([row]), self._limits
        )
        sizes = np.maximum(np.abs(step), 0.0)
        least = EPS * (2.0 * self.alpha + sizes + EPS)
        good = (gain > smo.NO_GAIN) & (sizes >= least)
        if not good.any():
            return False
        other = self._partner(row, good)
        self._take(row, other, step[other])
        return True

    def _partner(self, row, good):
        """Of the good rows: the largest |E1 - E2|, or the first from a random one."""
        error, between = self.f - self._y, self._between()
        if np.count_nonzero(between) > 1:
            far = np.where(between, np.abs(error - error[row]), -1.0)
            if good[largest := int(np.argmax(far))]:
                return largest
        order = np.roll(np.arange(len(good)), -int(self._rng.integers(len(good))))
        for those in (good & between, good):
            if those.any():
                return int(order[np.argmax(those[order])])
        raise AssertionError("one row is good")

    def _take(self, k, other, step):
        """The step, and the threshold after it."""
        y, K, alpha = self._y, self._K, self.alpha
        alpha[k] += step * y[k]
        alpha[other] -= step * y[other]
        smo.round_to_bounds(alpha, (k, other), self._limits)
        self.f += step * (K[k] - K[other])
        ends = [y[i] - self.f[i] for i in (k, other)]
        free = [b for b, i in zip(ends, (k, other), strict=True) if self._is_free(i)]
        self.b = free[0] if free else 0.5 * sum(ends)
        self.steps += 1

    def _is_free(self, i):
        return 0 < self.alpha[i] < self._top
