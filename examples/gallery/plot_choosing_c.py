"""
The path of C, with cross-validation
====================================

``SVCCV`` trains a machine for each fold and each ``C``. Each machine begins where that of
the next smaller ``C`` ended, so that the whole path costs little more than a few fits.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.preprocessing import StandardScaler

from widemargin import SVCCV

X, y = load_breast_cancer(return_X_y=True)
X = StandardScaler().fit_transform(X)
Cs = np.logspace(-2, 3, 11)
clf = SVCCV(Cs=Cs, gammas=[0.003, 0.01, 0.03, 0.1], cv=5, tol=1e-3).fit(X, y)
print(f"best: C={clf.C_:.3g}, gamma={clf.gamma_:.3g}, accuracy {clf.best_score_:.3f}")

# %%
# ``scores_`` has a score for each fold, gamma and ``C``. The band is one standard error of
# the mean for the chosen gamma.

means, errors = clf.scores_.mean(axis=0), clf.scores_.std(axis=0) / np.sqrt(5)
figure, axis = plt.subplots(figsize=(7, 4.5))
for gamma, mean, error in zip(clf.gammas_, means, errors, strict=True):
    chosen = gamma == clf.gamma_
    (line,) = axis.plot(Cs, mean, ".-", label=f"gamma={gamma:g}", linewidth=1 + chosen)
    if chosen:
        axis.fill_between(
            Cs, mean - error, mean + error, color=line.get_color(), alpha=0.2
        )
axis.axvline(clf.C_, color="k", linestyle=":", label="chosen")
axis.set(xscale="log", xlabel="C", ylabel="accuracy on rows held out")
axis.legend()
figure.tight_layout()

# %%
# Each of the 220 fits has its certificate. This is the largest of their relative gaps:

print(clf.path_.max())
