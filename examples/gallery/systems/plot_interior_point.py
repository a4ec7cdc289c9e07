"""
The interior point method: few rows decide
==========================================

``InteriorPoint`` (CRSVM) walks through the inside of the feasible region and stays away
from its walls until the end. An iteration solves one linear system, whose matrix is a sum
over rows. Near the end only the rows near the margin matter, and the method leaves the
others out of that sum.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import make_classification

from widemargin import Problem, solve
from widemargin.solvers import InteriorPoint

X, y = make_classification(5000, 30, n_informative=15, class_sep=1.5, random_state=0)
problem = Problem(X, 2 * y - 1, C=1.0)

# %%
# ``reduction=None`` uses all rows. ``reduction="omega"`` is the rule of the paper; the number
# of rows follows the gap.

figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.8))
for reduction in (None, "omega"):
    solver = InteriorPoint(reduction=reduction, adaptive=reduction is not None)
    trace = solve(problem, solver, tol=1e-8).trace
    name = "all rows" if reduction is None else "reduced"
    left.plot(trace.column("iteration"), trace.column("relative_gap"), ".-", label=name)
    print(
        f"{name}: {len(trace)} iterations, {trace.column('active').sum():,} rows in all"
    )
    right.plot(trace.column("iteration"), trace.column("active"), ".-", label=name)
left.set(yscale="log", xlabel="iteration", ylabel="relative gap")
right.set(xlabel="iteration", ylabel="rows in the matrix", ylim=(0, None))
left.legend()
figure.tight_layout()
