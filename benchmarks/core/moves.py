"""How many pair steps it saves to go in the span of what the last ones did.

Second-order pair steps in float64 with NumPy, as in benchmarks/core/relaxation.py,
which go as far as `Relaxation` learns. Then also, at the end of each move of so many,
to the least of the objective in the span of the latest moves, as `InSpan` of
cpp/span_steps.cpp: with its numbers (4 moves of 250 steps, 16 variables that stay at
their bounds), and with others.
"""

import argparse
from pathlib import Path

import numpy as np
from sklearn.metrics.pairwise import rbf_kernel

from benchmarks.core.relaxation import CS, Learned, sets, steps_of

LEAST_SHARE, RIDGE = 0.02, 1e-8
BEGIN = 500  # steps before the first move


class Moves:
    """Moves of one problem; ``kept`` of them, each of ``steps``, and ``cut`` rows."""

    def __init__(self, kept=4, steps=250, cut=16):
        self.kept, self.steps, self.cut = kept, steps, cut

    def begin(self, K, y, C):
        """A problem, at zero."""
        self.K, self.done = K, []
        self.lower, self.upper = np.where(y > 0, 0.0, -C), np.where(y > 0, C, 0.0)
        return self

    def follow(self, step, x, F):
        """Step number ``step`` was made; x and F may change."""
        if step + 1 < BEGIN or (step + 1 - BEGIN) % self.steps:
            return
        if step + 1 > BEGIN:
            self.done = [*self.done, (x - self.x, F - self.F)][-self.kept :]
            self.go(x, F)
        self.x, self.F = x.copy(), F.copy()

    def go(self, x, F):
        """To the least of the objective in their span, or a part of the way."""
        D, G = (np.array(part) for part in zip(*self.done, strict=True))
        products = D @ G.T
        size = np.sqrt(np.diagonal(products))
        scaled = products / np.outer(size, size) + RIDGE * np.eye(len(size))
        by = -np.linalg.solve(scaled, D @ F / size) / size
        share = 1.0
        while share > LEAST_SHARE:
            found = self.within(x, share * (by @ D), share * (by @ G))
            if found is not None and found[0] @ (F + 0.5 * found[1]) < 0.0:
                x += found[0]
                F += found[1]
                return
            share /= 2.0

    def within(self, x, change, more):
        """The change of x within bounds, and that of F; None: too many are cut."""
        to = np.clip(x + change, self.lower, self.upper)
        cut = np.flatnonzero(to != x + change)
        if len(cut) > self.cut:
            return None
        more = more.copy()
        for i in cut:
            off = x[i] + change[i] - to[i]
            free = (self.lower < to) & (to < self.upper)
            free &= (self.lower <= to + off) & (to + off <= self.upper)
            if not free.any():
                return None
            j = int(np.where(free, self.K[i], -np.inf).argmax())
            to[j] += off
            more += off * (self.K[j] - self.K[i])
        return to - x, more


SETTINGS = {
    "4 x 250": Moves(),
    "4 x 125": Moves(steps=125),
    "4 x 500": Moves(steps=500),
    "1 x 250": Moves(kept=1),
    "8 x 250": Moves(kept=8),
    "cut 0": Moves(cut=0),
    "cut 48": Moves(cut=48),
}


def gaussians():
    """Two in eight columns that overlap: X, y and gamma."""
    rng = np.random.default_rng(0)
    y = np.arange(1500) % 2
    return rng.normal(size=(1500, 8)) + 0.6 * y[:, np.newaxis], y, 0.1


def main():
    """A line for each set and C: steps without, then shares of them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, help="folder with a9a/train.svm.bz2")
    options = parser.parse_args()
    found = sets(options.data) | {"gaussians, 1,500 x 8": gaussians()}
    shares = {name: [] for name in SETTINGS}
    print(f"{'set':34}      C   steps ", *(f"{name:>7}" for name in SETTINGS))
    for name, (X, y, gamma) in found.items():
        K, labels = rbf_kernel(X, gamma=gamma), np.where(y, 1.0, -1.0)
        for C in CS[1:]:
            base = steps_of(K, labels, C, Learned())
            if base is None or base <= BEGIN:
                continue
            for other, moves in SETTINGS.items():
                steps = steps_of(K, labels, C, Learned(), moves.begin(K, labels, C))
                shares[other].append((steps or np.nan) / base)
            last = (f"{own[-1]:7.2f}" for own in shares.values())
            print(f"{name:34} {C:6g} {base:7} ", *last, flush=True)
    means = (f"{np.exp(np.nanmean(np.log(own))):7.2f}" for own in shares.values())
    print(f"{'geometric mean':49} ", *means)


if __name__ == "__main__":
    main()
