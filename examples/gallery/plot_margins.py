"""
Decision regions and margins
============================

A support vector machine draws a boundary with a margin on either side. ``C`` says how
much a row inside the margin costs; ``gamma`` says how far the influence of a row reaches.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_moons

from widemargin import SVC

X, y = make_moons(300, noise=0.2, random_state=0)

# %%
# Four machines see the same 300 points. The rows differ in ``C``, the columns in ``gamma``.

settings = [(0.1, 0.3), (0.1, 3.0), (100.0, 0.3), (100.0, 3.0)]
grid = np.linspace([-1.8, -1.3], [2.8, 1.8], 120)
across, up = np.meshgrid(grid[:, 0], grid[:, 1])
points = np.column_stack([across.ravel(), up.ravel()])

figure, axes = plt.subplots(2, 2, figsize=(8, 6), sharex=True, sharey=True)
for axis, (C, gamma) in zip(axes.flat, settings, strict=True):
    clf = SVC(C=C, gamma=gamma).fit(X, y)
    values = clf.decision_function(points).reshape(across.shape)
    axis.contourf(
        across, up, values > 0, levels=[-0.5, 0.5, 1.5], cmap="coolwarm", alpha=0.3
    )
    axis.contour(
        across, up, values, levels=[-1, 0, 1], colors="k", linestyles=["--", "-", "--"]
    )
    axis.scatter(*X.T, c=y, cmap="coolwarm", s=12)
    axis.scatter(
        *X[clf.support_].T, facecolors="none", edgecolors="k", s=40, linewidths=0.5
    )
    axis.set_title(f"C={C:g}, gamma={gamma:g}: {len(clf.support_)} support vectors")
figure.tight_layout()

# %%
# The line is the boundary, the dashed lines are the margins, and rings mark the support
# vectors. A small ``C`` gives wide margins with many rows inside. A large ``C`` follows
# single rows. A large ``gamma`` makes islands around them.
#
# Whatever the setting, the last fit says how good its answer is: its objective is above the
# best possible one by at most this share.

print(clf.status_, clf.dual_gap_)
