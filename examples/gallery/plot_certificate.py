"""
What the certificate says
=========================

A fit works with two numbers. The *primal* value is the objective of the model so far.
The *dual* value is a bound that no model can beat. The fit is over when they meet.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler

from widemargin import Problem, solve

X, y = load_breast_cancer(return_X_y=True)
X_train, X_test, y_train, y_test = train_test_split(X, y, random_state=0)
scaler = StandardScaler().fit(X_train)
X_train, X_test = scaler.transform(X_train), scaler.transform(X_test)

# %%
# A callback sees each iteration. This one notes how many test rows the model gets right.

rights = []


def note(step):
    w, b = step.point()
    rights.append(np.mean((X_test @ w + b > 0) == (y_test == 1)))


solution = solve(
    Problem(X_train, np.where(y_train == 1, 1, -1), C=1.0),
    "interior_point",
    tol=1e-8,
    callback=note,
)
trace = solution.trace
print(solution)

# %%
# The bounds close in on the optimum long after the accuracy has stopped changing. That is
# why the default ``tol=1e-4`` is enough for nearly all models.

iteration = trace.column("iteration")
figure, (above, below) = plt.subplots(2, 1, figsize=(7, 6), sharex=True)
above.plot(iteration, trace.column("primal"), label="primal: objective of the model")
above.plot(iteration, trace.column("dual"), label="dual: no model is below")
above.fill_between(iteration, trace.column("dual"), trace.column("primal"), alpha=0.2)
above.set_ylim(0, 4 * solution.certificate.primal)
above.set_ylabel("objective")
above.legend()
below.plot(iteration[: len(rights)], rights, "C2.-")
below.set_ylabel("share of test rows right")
below.set_xlabel("iteration")
figure.tight_layout()
