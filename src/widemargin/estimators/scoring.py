"""What classifiers have of scikit-learn, with the labels of their fits."""

from typing import Any

from numpy.typing import ArrayLike

from widemargin.estimators.labels import of_objects


class ScoringMixin:
    """Before a `score`: takes all labels that a classifier can be fitted to."""

    def score(
        self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None
    ) -> float:
        """Share of the rows whose label is predicted; of a search what it scores by.

        Parameters
        ----------
        X : array, sparse matrix or Rows (m, n)
            As of `predict`.
        y : array (m,) of labels
            As of `fit`: also of objects that are numbers or booleans, which
            scikit-learn's own metrics refuse.
        sample_weight : array (m,) of numbers >= 0, or None
            Of the rows in the share; None: all count the same.

        Returns
        -------
        float
        """
        scores: Any = super()
        return float(scores.score(X, of_objects(y), sample_weight))
