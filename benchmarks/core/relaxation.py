"""How many pair steps it takes to go further than to the least of the objective.

Second-order pair steps in float64 with NumPy, to a relative gap, each times a factor:
one for all, or as `Relaxation` of cpp/pair_steps.hpp learns it. The last sets have a
narrow kernel: their variables hardly depend on each other. Then other numbers for it:
rates of 0.3 and 3 times, a longest factor of 1.9, and 1.7 for few free variables, too.
"""

import argparse
from pathlib import Path

import numpy as np
from sklearn.datasets import load_breast_cancer, load_digits, make_moons
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.preprocessing import StandardScaler

from benchmarks.datasets import a9a

FACTORS = (1.0, 1.1, 1.3, 1.5, 1.7, 1.9)
CS = (1.0, 10.0, 100.0, 1000.0)
TOL, MOST = 1e-4, 100_000
LOOK, SLICE = 100, 250  # steps between two looks at the gap, and at free variables


class Learned:
    """`Relaxation` of the core, or with other numbers."""

    def __init__(self, rate=1.0, longest=1.7, longest_of_few=1.3):
        self.longer, self.shorter = 0.005 * rate, 0.01 * rate
        self.longest, self.longest_of_few = longest, longest_of_few

    def begin(self, m):
        """A problem of m rows."""
        self.factor, self.ways = 1.0, np.zeros(m)

    def go(self, i, way, free):
        """What a step of a variable shows."""
        turn = way * self.ways[i]
        self.factor += self.longer * (turn > 0) - self.shorter * (turn < 0)
        most = self.longest_of_few if free < 100 else self.longest
        self.factor = min(max(self.factor, 1.0), most)
        self.ways[i] = way


LEARNED = {
    "learned": Learned(),
    "x 0.3": Learned(rate=0.3),
    "x 3": Learned(rate=3.0),
    "to 1.9": Learned(longest=1.9),
    "few": Learned(longest_of_few=1.7),
}


def sets(folder):
    """Name: (X, y, gamma), of at most 1,500 rows."""
    scaled = StandardScaler().fit_transform
    moons, which = make_moons(1000, noise=0.2, random_state=0)
    X, y = load_breast_cancer(return_X_y=True)
    found = {
        "moons, 1,000 x 2": (moons, which, 0.5),
        "breast cancer, 569 x 30": (scaled(X), y, 1 / 30),
    }
    X, y = load_digits(return_X_y=True)
    found["digits below 5, 1,500 x 64"] = (X[:1500] / 16.0, y[:1500] < 5, 0.05)
    if folder is not None:
        X, y = a9a(folder)
        found["a9a, 1,500 x 123"] = (X[:1500].toarray(), y[:1500] > 0, 0.05)
    for name in list(found)[1:]:
        X, y, _ = found[name]
        found[f"{name}, narrow"] = (X, y, 2.0)
    return found


def steps_of(K, y, C, factor, moves=None):
    """Pair steps on the hinge with a free intercept to the gap; None: too many.

    ``moves`` changes x and F after each step, if it is given.
    """
    m, learned = len(y), isinstance(factor, Learned)
    if learned:
        factor.begin(m)
    lower, upper = np.where(y > 0, 0.0, -C), np.where(y > 0, C, 0.0)
    x, F = np.zeros(m), -y.copy()
    free = 0
    for steps in range(MOST):
        if steps % SLICE == 0:
            free = np.count_nonzero((lower < x) & (x < upper))
        rise = np.where(x < upper, -F, -np.inf)
        i = int(rise.argmax())
        slope = np.where(x > lower, F + rise[i], 0.0)
        curvature = np.maximum(2.0 - 2.0 * K[i], 1e-12)
        j = int(np.where(slope > 0, slope**2 / curvature, 0.0).argmax())
        if steps % LOOK == 0 and gap(x, F, y, C, rise[i], x > lower) <= TOL:
            return steps
        if learned:
            factor.go(i, 1.0, free)
            factor.go(j, -1.0, free)
        best = (factor.factor if learned else factor) * slope[j] / curvature[j]
        t = min(best, upper[i] - x[i], x[j] - lower[j])
        x[i] = upper[i] if t == upper[i] - x[i] else x[i] + t
        x[j] = lower[j] if t == x[j] - lower[j] else x[j] - t
        F += t * (K[i] - K[j])
        if moves is not None:
            moves.follow(steps, x, F)
    return None


def gap(x, F, y, C, rise, can_fall):
    """Relative gap, with the intercept in the middle of the violations."""
    b = 0.5 * (rise - F[can_fall].max())
    f = F + y
    losses = C * np.maximum(0.0, 1.0 - y * (f + b)).sum()
    primal, dual = 0.5 * x @ f + losses, y @ x - 0.5 * x @ f
    return (primal - dual) / max(abs(primal), abs(dual))


def main():
    """A line for each set and C: steps without, then shares of them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, help="folder with a9a/train.svm.bz2")
    options = parser.parse_args()
    settings = {f"{w:.1f}": w for w in FACTORS[1:]} | LEARNED
    heads = " ".join(f"{name:>7}" for name in settings)
    print(f"{'set':34}      C   steps {heads}")
    for name, (X, y, gamma) in sets(options.data).items():
        K, labels = rbf_kernel(X, gamma=gamma), np.where(y, 1.0, -1.0)
        for C in CS:
            base = steps_of(K, labels, C, 1.0)
            others = [steps_of(K, labels, C, w) for w in settings.values()]
            shares = [
                f"{o / base:7.2f}" if o and base else f"{o or 0:7}" for o in others
            ]
            print(f"{name:34} {C:6g} {base or 0:7}", *shares, flush=True)


if __name__ == "__main__":
    main()
