"""Where the data sets of the papers lie: FOLDER/NAME/SPLIT.svm, also compressed."""

from pathlib import Path

import numpy as np
from scipy import sparse

from widemargin import load_svmlight


def read(folder, name, split="train", n_features=None):
    """Features (CSR) and labels of FOLDER/NAME/SPLIT.svm[.bz2|.xz], or SPLIT.npz."""
    found = sorted(Path(folder, name).glob(f"{split}.svm*"))
    if found:
        return load_svmlight(found[0], n_features=n_features, zero_based=False)
    arrays = Path(folder, name, f"{split}.npz")
    if arrays.exists():
        with np.load(arrays) as kept:
            return sparse.csr_array(kept["X"].astype(np.float64)), kept["y"]
    raise FileNotFoundError(f"there is no {name}/{split}.svm[.bz2|.xz] in {folder}")
