"""The objective: 1/2 (w'w + b^2) + C sum max(0, 1 - y (x'w + b))."""

import numpy as np
from benchopt import BaseObjective


class Objective(BaseObjective):
    """A linear SVM with the hinge and a penalized intercept."""

    name = "Linear SVM (hinge, penalized intercept)"
    min_benchopt_version = "1.6"
    parameters = {"C": [0.01, 1.0, 100.0]}

    def set_data(self, X, y):
        """Take the rows, and labels of +1 and -1."""
        self.X, self.y = X, y

    def evaluate_result(self, w, b):
        """The value, and the share of rows on the wrong side."""
        margins = self.y * (self.X @ w + b)
        losses = self.C * np.maximum(0.0, 1.0 - margins).sum()
        return {
            "value": 0.5 * (w @ w + b * b) + losses,
            "error": float(np.mean(margins <= 0)),
        }

    def get_one_result(self):
        """The model of zeros."""
        return {"w": np.zeros(self.X.shape[1]), "b": 0.0}

    def get_objective(self):
        """What a solver is told."""
        return {"X": self.X, "y": self.y, "C": self.C}
