"""Data sets of the benchmarks: name -> function that returns X and y (+1, -1)."""

from pathlib import Path

import numpy as np

from widemargin import load_svmlight

SHIPPED = Path(__file__).parents[1] / "examples" / "data"


def a9a(folder):
    """Adult, 32,561 x 123, 11 % nonzero; shipped."""
    return load_svmlight(SHIPPED / "a9a.svm.bz2")


def ndc(m, n=32):
    """Normally distributed clusters, labelled by a plane through their centers."""

    def make(folder):
        rng = np.random.default_rng(0)
        centers = rng.uniform(-1.0, 1.0, (50, n))
        label = np.sign(centers @ rng.normal(size=n))
        cluster = rng.integers(0, 50, m)
        return centers[cluster] + 0.3 * rng.normal(size=(m, n)), label[cluster]

    return make


def covtype_like(m):
    """As Covertype: 10 measured columns, one of 4 and one of 40 kinds; 12 entries."""

    def make(folder):
        rng = np.random.default_rng(0)
        X = np.zeros((m, 54))
        X[:, :10] = rng.normal(size=(m, 10))
        for first, kinds in ((10, 4), (14, 40)):
            X[np.arange(m), first + rng.integers(0, kinds, m)] = 1.0
        score = X @ rng.normal(size=54) + 0.5 * X[:, 0] * X[:, 1]
        return X, np.where(score + rng.normal(size=m) > np.median(score), 1.0, -1.0)

    return make


def file(name, positive=None):
    """A svmlight file FOLDER/name/train.svm[.bz2|.xz]; one label against the rest."""

    def read(folder):
        if folder is None:
            raise FileNotFoundError(f"{name} needs --data FOLDER")
        found = sorted(Path(folder, name).glob("train.svm*"))
        if not found:
            raise FileNotFoundError(f"no {name}/train.svm[.bz2|.xz] in {folder}")
        X, y = load_svmlight(found[0])
        return X, np.where(y == (y.max() if positive is None else positive), 1.0, -1.0)

    return read


DATASETS = {
    "a9a": a9a,
    "ndc-100k": ndc(100_000),
    "ndc-500k": ndc(500_000),
    "covtype-like": covtype_like(500_000),
    "w8a": file("w8a"),
    "ijcnn1": file("ijcnn1"),
    "covtype_20k": file("covtype_20k", 2),
    "kdd99_10pc": file("kdd99_10pc", 0),
    "reuters": file("reuters"),
}
