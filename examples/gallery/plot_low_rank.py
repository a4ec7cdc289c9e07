"""
Low rank beside the exact kernel
================================

For millions of rows, ``rank=`` replaces the kernel matrix by one of low rank. With
``certify="exact"`` the fit also bounds how far its model is from the best one of the
kernel itself.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_moons

from widemargin import SVC

X, y = make_moons(2000, noise=0.2, random_state=0)
exact = SVC(gamma=2.0).fit(X, y)
grid = np.linspace([-1.8, -1.3], [2.8, 1.8], 80)
across, up = np.meshgrid(grid[:, 0], grid[:, 1])
points = np.column_stack([across.ravel(), up.ravel()])

# %%
# The boundaries of three ranks, and that of the exact machine (dashed).

figure, axes = plt.subplots(1, 3, figsize=(10, 3.4), sharey=True)
for axis, rank in zip(axes, (8, 16, 64), strict=True):
    low = SVC(gamma=2.0, rank=rank, certify="exact", random_state=0).fit(X, y)
    for clf, style in ((low, "-"), (exact, "--")):
        values = clf.decision_function(points).reshape(across.shape)
        axis.contour(across, up, values, levels=[0], colors="k", linestyles=style)
    axis.scatter(*X.T, c=y, cmap="coolwarm", s=4, alpha=0.5)
    axis.set_title(f"rank {rank}: exact gap at most {low.exact_gap_:.2g}")
figure.tight_layout()

# %%
# Both bounds close as the rank grows. The accuracy follows much earlier.

ranks = [8, 16, 32, 64, 128]
fits = [
    SVC(gamma=2.0, rank=r, certify="exact", random_state=0).fit(X, y) for r in ranks
]
optimum = exact.solution_.certificate.primal
figure, axis = plt.subplots(figsize=(6, 4))
axis.plot(
    ranks,
    [f.exact_certificates_[0].primal / optimum for f in fits],
    "o-",
    label="upper bound",
)
axis.plot(
    ranks,
    [f.exact_certificates_[0].dual / optimum for f in fits],
    "o-",
    label="lower bound",
)
axis.axhline(1, color="k", linestyle=":", label="the exact optimum")
axis.set(xscale="log", xlabel="rank", ylabel="objective over the optimum")
axis.legend()
figure.tight_layout()
for rank, fit in zip(ranks, fits, strict=True):
    print(
        f"rank {rank:3d}: {fit.score(X, y):.3f} right; exact: {exact.score(X, y):.3f}"
    )
