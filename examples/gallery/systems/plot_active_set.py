"""
The active set method: planes that settle
=========================================

``ActiveSet`` (ASVM and finite Newton) solves the squared hinge. A row counts only while it
is on the wrong side of its margin: it is *active*. For a fixed set of active rows the best
plane is the solution of a small linear system. A step solves it and looks which rows are
active now. When the set stays the same, the plane is exact.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_blobs

from widemargin import Problem, solve

X, kind = make_blobs(
    300, centers=[[-1, -1], [1.2, 0.8]], cluster_std=0.9, random_state=0
)
y = np.where(kind == 1, 1, -1)

planes = []
solution = solve(
    Problem(X, y, C=1.0, loss="squared_hinge", intercept="penalized"),
    "active_set",
    tol=1e-10,
    callback=lambda step: planes.append(step.point()),
)

# %%
# Each panel is a step. Filled points are active at its plane; the solid line is the plane,
# the dashed lines are its margins.

shown = [(*w, b) for w, b in planes if np.any(w)][:4]
figure, axes = plt.subplots(1, len(shown), figsize=(11, 3.2), sharey=True)
across = np.array([-4.0, 4.0])
for number, (axis, (w1, w2, b)) in enumerate(zip(axes, shown, strict=True), 1):
    active = y * (X @ (w1, w2) + b) < 1
    for sign, color in ((1, "C0"), (-1, "C3")):
        side = y == sign
        axis.scatter(
            *X[side].T, s=8, facecolors="none", edgecolors=color, linewidths=0.5
        )
        axis.scatter(*X[side & active].T, s=12, color=color)
    for level, style in ((-1, "--"), (0, "-"), (1, "--")):
        axis.plot(
            across, (level - b - w1 * across) / w2, "k", linestyle=style, linewidth=1
        )
    axis.set(title=f"step {number}: {active.sum()} active", xlim=(-4, 4), ylim=(-4, 4))
figure.tight_layout()
print(solution)
