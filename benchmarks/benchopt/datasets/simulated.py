"""Normally distributed clusters."""

from benchopt import BaseDataset

from widemargin import make_ndc


class Dataset(BaseDataset):
    """NDC, a benchmark of the SVM literature."""

    name = "simulated"
    parameters = {"n_samples, n_features": [(2_000, 20), (50_000, 32)]}

    def get_data(self):
        """Columns of deviation 1."""
        X, y = make_ndc(self.n_samples, self.n_features, random_state=0)
        X = (X - X.mean(axis=0)) / X.std(axis=0)
        return {"X": X, "y": y}
