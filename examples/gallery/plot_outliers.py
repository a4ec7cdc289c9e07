"""
Outliers
========

Two machines describe data without labels. ``EnclosingBall`` is the smallest ball around
them in the space of a kernel; ``OneClassSVM`` is a half-space with a given share outside.
"""

import matplotlib.pyplot as plt
import numpy as np

from widemargin import EnclosingBall, OneClassSVM

rng = np.random.default_rng(0)
inside = np.vstack(
    [rng.normal([-2, 0], 0.5, (150, 2)), rng.normal([2, 0], 0.7, (150, 2))]
)
X = np.vstack([inside, rng.uniform(-5, 5, (15, 2))])

# %%
# All of them have the kernel ``"rbf"`` with the same width.

machines = {
    "a ball around all rows": EnclosingBall(C=None, gamma=0.3),
    "a ball, 5 % outside": EnclosingBall(C=0.1, gamma=0.3, contamination=0.05),
    "a half-space, nu=0.05": OneClassSVM(nu=0.05, gamma=0.3),
}
grid = np.linspace(-6, 6, 120)
across, up = np.meshgrid(grid, grid)
points = np.column_stack([across.ravel(), up.ravel()])
figure, axes = plt.subplots(1, 3, figsize=(10, 3.6), sharey=True)
for axis, (name, machine) in zip(axes, machines.items(), strict=True):
    out = machine.fit(X).predict(X) < 0
    values = machine.decision_function(points).reshape(across.shape)
    axis.contourf(across, up, values > 0, levels=[0.5, 1.5], colors=["C0"], alpha=0.2)
    axis.scatter(*X[~out].T, s=8)
    axis.scatter(*X[out].T, s=30, marker="x", color="C3")
    axis.set_title(f"{name}: {out.sum()} rows outside", fontsize=9)
figure.tight_layout()

# %%
# Crosses are rows that ``predict`` calls outliers. Each machine has its certificate:

print([f"{machine.dual_gap_:.1e}" for machine in machines.values()])
