"""Adult (a9a), which the repository holds."""

from pathlib import Path

from benchopt import BaseDataset

from widemargin import load_svmlight

FILE = Path(__file__).parents[3] / "examples" / "data" / "a9a.svm.bz2"


class Dataset(BaseDataset):
    """32,561 rows, 123 columns, sparse."""

    name = "adult"

    def get_data(self):
        """As they are in the file."""
        X, y = load_svmlight(FILE)
        return {"X": X, "y": y}
