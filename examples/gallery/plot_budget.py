"""
Budget against accuracy
=======================

A prediction takes a kernel value for each support vector. ``BudgetSVC`` keeps at most as
many as you allow, and says how much of the objective that costs.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from widemargin import SVC, BudgetSVC

X, y = load_digits(return_X_y=True)
parity = y % 2  # is the digit odd?
X_train, X_test, y_train, y_test = train_test_split(X, parity, random_state=0)
options = {"C": 1.0, "gamma": 0.001}
full = SVC(**options).fit(X_train, y_train)
right = full.score(X_test, y_test)

# %%
# One fit and one order of rows serve all budgets of a path.

budgets = [3, 5, 10, 20, 40, 80, 160]
models = BudgetSVC(**options).path(X_train, y_train, budgets)
scores = [model.score(X_test, y_test) for model in models]
costs = [100 * model.increase_[0] for model in models]

figure, (left, other) = plt.subplots(1, 2, figsize=(9, 3.8))
left.plot(budgets, scores, "o-", label="BudgetSVC")
left.axhline(
    right, color="k", linestyle=":", label=f"SVC, {len(full.support_)} support vectors"
)
left.set(xscale="log", xlabel="support vectors", ylabel="share of test rows right")
left.legend()
other.plot(budgets, costs, "o-")
other.set(xscale="log", yscale="log", xlabel="support vectors")
other.set_ylabel("objective above the optimum, at most (%)")
figure.tight_layout()

# %%
# The right picture needs no test data: ``increase_`` bounds what any larger model could gain.

for budget, score, cost in zip(budgets, scores, costs, strict=True):
    print(f"{budget:4d} support vectors: {score:.3f} right, at most {cost:.2g} % above")
