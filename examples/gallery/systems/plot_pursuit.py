"""
Budgets: the rows that speak for all
====================================

``BudgetSVC`` solves the usual machine first. Then it picks rows one by one, each of which
brings its model nearest to that machine, and fits their weights anew on all data.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_moons

from widemargin import SVC, BudgetSVC

X, y = make_moons(1000, noise=0.2, random_state=0)
full = SVC(gamma=1.0).fit(X, y)
models = BudgetSVC(gamma=1.0).path(X, y, [3, 6, 12])

# %%
# Rings are the rows that were chosen; they need not lie near the boundary. The dashed line is
# the boundary of the machine with all of its support vectors.

grid = np.linspace([-1.8, -1.3], [2.8, 1.8], 80)
across, up = np.meshgrid(grid[:, 0], grid[:, 1])
points = np.column_stack([across.ravel(), up.ravel()])
figure, axes = plt.subplots(1, 3, figsize=(10, 3.4), sharey=True)
for axis, clf in zip(axes, models, strict=True):
    axis.scatter(*X.T, c=y, cmap="coolwarm", s=4, alpha=0.5)
    for model, style in ((clf, "-"), (full, "--")):
        values = model.decision_function(points).reshape(across.shape)
        axis.contour(across, up, values, levels=[0], colors="k", linestyles=style)
    axis.scatter(*X[clf.support_].T, s=60, facecolors="none", edgecolors="k")
    axis.set_title(f"{len(clf.support_)} of {len(full.support_)} support vectors")
figure.tight_layout()
for clf in models:
    print(
        f"{len(clf.support_):3d} rows: at most {100 * clf.increase_[0]:.2g} % above the optimum"
    )
