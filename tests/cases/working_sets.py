"""What an answer to the small problem of a working set is worth."""

import numpy as np


def change_of_objective(small, c):
    q, change = len(c), c - small.c
    K = small.K[:, :q].astype(float)
    moved = K @ change + small.shift * change.sum() + small.ridge * change
    return float(small.F @ change + 0.5 * change @ moved)


def violation(small, c):
    q, change = len(c), c - small.c
    F = small.F + small.K[:, :q].astype(float) @ change
    F += small.shift * change.sum() + small.ridge * change
    rise = np.max(-F[c < small.upper], initial=-np.inf)
    fall = np.min(-F[c > small.lower], initial=np.inf)
    return rise - fall if small.sums else max(rise, -fall)


def check_feasible(small, c):
    assert np.all((c >= small.lower) & (c <= small.upper))
    if small.sums:
        scale = max(np.abs(c).sum(), np.abs(small.c).sum())
        assert abs(c.sum() - small.c.sum()) <= 1e-12 * scale
