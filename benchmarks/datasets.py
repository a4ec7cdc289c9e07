"""Data sets of the benchmarks: name -> function of the folder: X and y (+1, -1)."""

from pathlib import Path

import numpy as np
from scipy import sparse

from widemargin import load_svmlight, make_ndc

SHIPPED = Path(__file__).parents[1] / "examples" / "data"


def a9a(folder):
    """Adult, 32,561 x 123, 11 % nonzero; shipped."""
    return load_svmlight(SHIPPED / "a9a.svm.bz2")


def file(name, positive=1, scaled=False):
    """A svmlight file FOLDER/name/train.svm[.bz2|.xz]; one label against the rest.

    Scaled: each column is divided by its largest absolute value. Raw columns of
    thousands would compare how packages fail, not how they solve.
    """

    def read(folder):
        X, y = load_svmlight(find(folder, name, "train.svm*"))
        X = sparse.csr_matrix(X)
        if scaled:
            largest = abs(X).max(axis=0).toarray()[0]
            X.data /= largest[X.indices]
        return X, np.where(y == positive, 1.0, -1.0)

    return read


def mnist(folder):
    """Even digits against odd, 60,000 x 784, dense, pixels divided by 255."""
    with np.load(find(folder, "mnist", "train.npz")) as arrays:
        X, y = arrays["X"], arrays["y"]
    return X.reshape(len(X), -1) / 255.0, np.where(y % 2 == 0, 1.0, -1.0)


def find(folder, name, pattern):
    """The file FOLDER/name/pattern."""
    if folder is None:
        raise FileNotFoundError(f"{name} needs --data FOLDER")
    found = sorted(Path(folder, name).glob(pattern))
    if not found:
        raise FileNotFoundError(f"no {name}/{pattern} in {folder}")
    return found[0]


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


def ndc(m, scaled=False):
    """Normally distributed clusters, m x 32: integers of some hundreds, or scaled."""

    def make(folder):
        X, y = make_ndc(m)
        if scaled:
            X /= abs(X).max(axis=0)
        return X, y

    return make


DATASETS = {
    "a9a": a9a,
    "a8a": file("a8a"),
    "w7a": file("w7a"),
    "w8a": file("w8a"),
    "ijcnn1": file("ijcnn1"),
    "reuters": file("reuters"),
    "kdd99_10pc": file("kdd99_10pc", positive=0, scaled=True),  # normal, or an attack
    "covtype_20k": file("covtype_20k", positive=2, scaled=True),
    "mnist": mnist,
    "covtype-like-500k": covtype_like(500_000),
    "ndc-100k": ndc(100_000),
    "ndc-500k": ndc(500_000),
    "ndc-4m": ndc(4_000_000),
    "ndc-5m": ndc(5_000_000),
    "ndc-100k-scaled": ndc(100_000, scaled=True),
    "ndc-500k-scaled": ndc(500_000, scaled=True),
}
