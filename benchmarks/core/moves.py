"""How many pair steps it saves to go in the span of what the last ones did.

Second-order pair steps in float64 with NumPy, as in benchmarks/core/relaxation.py,
which go as far as `Relaxation` learns. Then also, at the end of each move of so many,
to the least of the objective in the span of the latest moves, as `InSpan` of
cpp/span_steps.cpp: with its numbers (4 moves of 250 steps, 16 variables that stay at
their bounds, down to a fiftieth of the way), and with others.

With --fits: milliseconds (the least of five) and steps of 36 fits by the core, to
compare builds by.
"""

import argparse
import time
from itertools import product
from pathlib import Path

import numpy as np
from sklearn.datasets import make_classification, make_friedman1, make_moons
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.preprocessing import StandardScaler

from benchmarks.core.relaxation import CS, Learned, sets, steps_of
from widemargin import SVC, SVR

BEGIN = 500  # steps before the first move


class Moves:
    """Moves of one problem: how many are kept, of how many steps, and the rest."""

    def __init__(self, kept=4, steps=250, cut=16, least=0.02, ridge=1e-8):
        self.kept, self.steps, self.cut = kept, steps, cut
        self.least, self.ridge = least, ridge

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
        scaled = products / np.outer(size, size) + self.ridge * np.eye(len(size))
        by = -np.linalg.solve(scaled, D @ F / size) / size
        share = 1.0
        while share > self.least:
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
    "whole": Moves(least=0.9),
    "r 1e-6": Moves(ridge=1e-6),
    "r 1e-10": Moves(ridge=1e-10),
}


def gaussians(m=1500):
    """Two in eight columns that overlap: X, y and gamma."""
    rng = np.random.default_rng(0)
    y = np.arange(m) % 2
    return rng.normal(size=(m, 8)) + 0.6 * y[:, np.newaxis], y, 0.1


def fits():
    """Name: (machine, X, y, gamma)."""
    scaled, form = StandardScaler().fit_transform, {"flip_y": 0.1, "n_informative": 10}
    moons, which = make_moons(2000, noise=0.25, random_state=0)
    t = make_friedman1(1500, 10, noise=1.0, random_state=0)
    X, y, _ = gaussians(3000)
    return {
        "clusters, 3,000 x 20": (SVC, *clusters(3000, 20, 0, flip_y=0.05), 1 / 20),
        "clusters, 400 x 10": (SVC, *clusters(400, 10, 1, flip_y=0.1), 1 / 10),
        "clusters, 800 x 30": (SVC, *clusters(800, 30, 2, **form), 1 / 30),
        "moons, 2,000 x 2": (SVC, scaled(moons), which, 1.0),
        "gaussians, 3,000 x 8": (SVC, X, y, 1 / 8),
        "friedman, 1,500 x 10": (SVR, scaled(t[0]), t[1], 1 / 10),
    }


def clusters(m, n, seed, **form):
    """Some of each class, scaled."""
    X, y = make_classification(m, n, random_state=seed, **form)
    return StandardScaler().fit_transform(X), y


def time_fits():
    """A line for each fit."""
    for name, (kind, X, y, gamma) in fits().items():
        for C, tol in product((10.0, 100.0, 1000.0), (1e-3, 1e-4)):
            machine, seconds = kind(C=C, gamma=gamma, tol=tol), []
            for _ in range(5):
                begin = time.perf_counter()
                machine.fit(X, y)
                seconds.append(time.perf_counter() - begin)
            steps = machine.solution_.extras["steps"]
            print(f"{name:24} {C:6g} {tol:g} {1e3 * min(seconds):8.1f} {steps:8.0f}")


def main():
    """A line for each set and C: steps without, then shares of them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, help="folder with a9a/train.svm.bz2")
    parser.add_argument("--fits", action="store_true", help="fits by the core")
    options = parser.parse_args()
    if options.fits:
        time_fits()
        return
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
