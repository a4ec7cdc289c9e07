"""
Convergence of all solvers
==========================

Every solver ends at the same optimum, and the same code certifies each of them. So one
picture can compare them: the certified gap against the seconds it took.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_classification

from widemargin import Kernel, Problem, solve

X, y = make_classification(
    3000, 20, n_informative=10, class_sep=0.7, random_state=0, shift=0.0
)
y = np.where(y == 1, 1, -1)

# %%
# Three problems: the hinge, its square, and the square with a Gaussian kernel, on fewer
# rows. A penalized intercept is what all of these solvers can do.

rbf = Kernel("rbf", gamma=0.02)
problems = {
    "hinge": Problem(X, y, loss="hinge", intercept="penalized"),
    "squared hinge": Problem(X, y, loss="squared_hinge", intercept="penalized"),
    "squared hinge, kernel rbf": Problem(
        X[:800], y[:800], loss="squared_hinge", intercept="penalized", kernel=rbf
    ),
}
linear = ["coordinate_descent", "interior_point"]
solvers = {
    "hinge": ["augmented_lagrangian", *linear],
    "squared hinge": ["active_set", *linear],
    "squared hinge, kernel rbf": ["irwls", "frank_wolfe", "core_vector"],
}
figure, axes = plt.subplots(1, 3, figsize=(10, 3.6), sharey=True)
for axis, (name, problem) in zip(axes, problems.items(), strict=True):
    for solver in solvers[name]:
        solution = solve(problem, solver, tol=1e-6, time_limit=2)
        trace = solution.trace
        best = trace.column("best_primal") - trace.column("best_dual")
        axis.plot(
            trace.column("seconds"),
            best / trace.column("best_primal"),
            ".-",
            label=solver,
        )
        print(f"{name}: {solver} ended as {solution.status.value}")
    axis.set(title=name, xlabel="seconds", xscale="log", yscale="log", ylim=(1e-7, 2))
    axis.legend(fontsize=8)
axes[0].set_ylabel("relative duality gap")
figure.tight_layout()

# %%
# ``solver="auto"`` chooses among them, by the loss, the columns and ``C``, and says why:

print(solve(problems["hinge"]).reason)
