"""
Frank-Wolfe steps: the smallest ball, point by point
====================================================

The core vector machine and its relatives look for the center of the smallest ball. A step
goes *toward* the point that is farthest away, or *away* from the point of the current set
that is nearest. Only points that were ever farthest get a weight.
"""

import warnings

import matplotlib.pyplot as plt
import numpy as np
from sklearn.exceptions import ConvergenceWarning

from widemargin import EnclosingBall

X = np.random.default_rng(4).normal(size=(60, 2)) * [2.0, 1.0]


def centers(step, most=25):
    """The centers after 1, 2, ... iterations."""
    for iterations in range(1, most):
        ball = EnclosingBall(
            C=None, kernel="linear", step=step, tol=1e-6, max_iter=iterations
        )
        with warnings.catch_warnings():
            warnings.simplefilter(
                "ignore", ConvergenceWarning
            )  # it was stopped on purpose
            yield ball.fit(X).center_


# %%
# The exact ball, the few points that hold it, and the way of the centers for three kinds of
# steps.

best = EnclosingBall(C=None, kernel="linear", tol=1e-9).fit(X)
figure, (left, middle, right) = plt.subplots(1, 3, figsize=(11, 3.8))
left.add_patch(plt.Circle(best.center_, best.radius_, fill=False))
left.scatter(*X.T, s=8, color="0.5")
left.scatter(*X[best.coreset_].T, s=50, facecolors="none", edgecolors="C3")
left.plot(*best.center_, "k+")
left.set(aspect="equal", title="the ball and its core set")
for step in ("toward", "away", "pairwise"):
    path = np.array(list(centers(step)))
    middle.plot(*path.T, ".-", markersize=4, linewidth=0.8)
    ways = np.linalg.norm(path - best.center_, axis=1) / best.radius_
    right.plot(range(1, len(ways) + 1), ways, ".-", label=step)
middle.plot(*best.center_, "k+", markersize=12)
middle.set_title("the way of the centers, enlarged")
right.set(yscale="log", xlabel="steps", title="way left over the radius")
right.legend()
figure.tight_layout()
print(f"radius {best.radius_:.6f}, certified to {best.dual_gap_:.0e}")
