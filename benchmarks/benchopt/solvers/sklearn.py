"""scikit-learn's LinearSVC, which is LIBLINEAR."""

import warnings

from benchopt import BaseSolver
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import LinearSVC


class Solver(BaseSolver):
    """Dual coordinate descent."""

    name = "scikit-learn"
    sampling_strategy = "iteration"

    def set_objective(self, X, y, C):
        """An intercept_scaling of 1 is the penalized intercept of the objective."""
        self.X, self.y = X, y
        self.clf = LinearSVC(C=C, loss="hinge", tol=1e-12, random_state=0)

    def run(self, n_iter):
        """Stop after so many passes."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            self.clf.set_params(max_iter=n_iter + 1).fit(self.X, self.y)

    def get_result(self):
        """The weights and the intercept."""
        return {"w": self.clf.coef_[0], "b": float(self.clf.intercept_[0])}
