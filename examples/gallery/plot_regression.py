"""
Regression with a tube
======================

``SVR`` forgives errors up to ``epsilon``. Rows inside the tube are no support vectors.
"""

import matplotlib.pyplot as plt
import numpy as np

from widemargin import SVR

rng = np.random.default_rng(0)
x = np.sort(rng.uniform(0, 10, 150))
y = np.sin(x) + 0.1 * x + rng.normal(0, 0.2, 150)
X = x[:, np.newaxis]
at = np.linspace(0, 10, 400)

# %%
# A wide tube needs fewer support vectors, and follows the data less closely.

figure, axes = plt.subplots(1, 3, figsize=(10, 3.4), sharey=True)
for axis, epsilon in zip(axes, (0.05, 0.2, 0.6), strict=True):
    reg = SVR(C=10.0, gamma=0.5, epsilon=epsilon).fit(X, y)
    line = reg.predict(at[:, np.newaxis])
    axis.fill_between(at, line - epsilon, line + epsilon, alpha=0.2)
    axis.plot(at, line)
    axis.scatter(x, y, s=8, color="0.5")
    axis.scatter(x[reg.support_], y[reg.support_], s=12, color="C3")
    axis.set_title(
        f"epsilon={epsilon}: {len(reg.support_)} support vectors", fontsize=10
    )
figure.tight_layout()
print(reg.status_, reg.dual_gap_)
