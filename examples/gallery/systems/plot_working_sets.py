"""
Working sets: a kernel problem in pieces
========================================

The kernel matrix of many rows has no room in memory. ``IRWLS`` (SVCradit) picks the rows
that violate the conditions of the optimum most, solves the small problem of these rows,
brings the scores of all rows up to date, and picks again.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import make_moons

from widemargin import Kernel, Problem, solve
from widemargin.solvers import IRWLS

X, y = make_moons(3000, noise=0.3, random_state=0)
problem = Problem(X, 2 * y - 1, C=10.0, kernel=Kernel("rbf", gamma=1.0))

# %%
# Small sets need many rounds, and each round is quick. The default is 2,048 rows.

figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.8))
for size in (64, 256, 1024):
    solution = solve(problem, IRWLS(working_set=size), tol=1e-6)
    trace = solution.trace
    name = f"{size} rows"
    left.plot(trace.column("iteration"), trace.column("violation"), ".-", label=name)
    right.plot(
        trace.column("iteration"), trace.column("relative_gap"), ".-", label=name
    )
    print(
        f"{size:5d} rows: {len(trace)} rounds, {trace.column('inner_steps')[-1]:,.0f} small steps"
    )
left.set(
    xscale="log", yscale="log", xlabel="working set number", ylabel="largest violation"
)
right.set(
    xscale="log", yscale="log", xlabel="working set number", ylabel="relative gap"
)
left.legend()
figure.tight_layout()
