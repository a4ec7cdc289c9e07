"""The data of Tables 2 and 3, with the C, sigma and working sets of the paper."""

from typing import NamedTuple

import numpy as np

from papers.files import read as read_file

ADULT_COLUMNS, WEB_COLUMNS = 123, 300
GAUSS_ROWS, BANANA_ROWS = 4000, 400


class Row(NamedTuple):
    """A row of Table 3.

    Attributes
    ----------
    label, name : as in the paper; key of `read`
    C, sigma : floats; gamma = 1 / (2 sigma^2)
    vectors : int, support vectors in the paper
    q, q_light : int, working sets of SVCradit and of SVM-light
    seconds, seconds_light : floats, in the paper: Pentium III, 450 MHz
    """

    label: str
    name: str
    C: float
    sigma: float
    vectors: int
    q: int
    q_light: int
    seconds: float
    seconds_light: float

    @property
    def gamma(self):
        """Of exp(-gamma |x - z|^2)."""
        return 0.5 / self.sigma**2


TABLE_3 = (
    Row("Adult-6", "a6a", 1, 10, 4477, 150, 40, 118.2, 124.46),
    Row("Adult-9", "a9a", 1, 10, 12181, 130, 70, 1093.29, 1097.09),
    Row("Adult-1", "a1a", 1000, 10, 630, 100, 10, 25.98, 113.54),
    Row("Web-1", "w1a", 5, 10, 224, 100, 10, 2.42, 2.36),
    Row("Web-7", "w7a", 5, 10, 1444, 150, 10, 158.13, 124.57),
    Row("Gauss-M, C 1", "gauss", 1, 1, 1736, 70, 10, 12.69, 48.28),
    Row("Gauss-M, C 100", "gauss", 100, 1, 1516, 100, 10, 61.68, 3053.2),
    Row("Banana, 400", "banana-400", 316.2, 1, 80, 40, 70, 0.33, 0.77),
    Row("Banana, 4900", "banana-4900", 316.2, 1, 1084, 70, 40, 22.46, 1786.56),
    Row("Diabetes", "pima", 10, 2, 409, 40, 10, 2.41, 6.04),
    Row("Splice", "splice", 1000, 70, 525, 150, 20, 14.06, 49.19),
)
TABLE_2 = (
    Row("Adult-4", "a4a", 1, 10, 0, 0, 0, 0.0, 0.0),
    Row("Splice", "splice", 1000, 70, 0, 0, 0, 0.0, 0.0),
)
TABLE_2_SIZES = (20, 40, 70)
# Seconds of Table 2: whole with LOQO and with IRWLS, optimizer LOQO and IRWLS. In the
# copies that circulate the columns of Splice run into each other: this is the reading
# where what is left for kernel values is alike for all q.
TABLE_2_SECONDS = {
    ("Adult-4", 20): (21.25, 20.70, 0.61, 0.39),
    ("Adult-4", 40): (20.60, 19.22, 1.01, 0.17),
    ("Adult-4", 70): (21.15, 18.72, 2.30, 0.46),
    ("Splice", 20): (46.19, 30.76, 21.94, 4.77),
    ("Splice", 40): (71.34, 24.93, 46.26, 8.07),
    ("Splice", 70): (53.77, 20.32, 34.24, 7.72),
}


def read(folder, name):
    """X (dense or CSR) and y of -1 and +1."""
    if name == "gauss":
        return gauss()
    if name.startswith("banana"):
        return _banana(folder, first=name == "banana-400")
    if name == "splice":  # the rows that Raetsch's collection tests on
        X, y = read_file(folder, "splice", "test", 60)
        return X.toarray(), y
    if name == "pima":
        X, y = read_file(folder, "pima", n_features=8)
        return _standardized(X.toarray()), np.where(y == 1, 1.0, -1.0)
    columns = WEB_COLUMNS if name.startswith("w") else ADULT_COLUMNS
    return read_file(folder, name, n_features=columns)


def gauss(rows=GAUSS_ROWS, seed=0):
    """Haykin's two Gaussians in the plane: N(0, I) and N((2, 0), 4 I), half each.

    The paper names the book, and two Gaussians that highly overlap, but no figures.
    """
    rng = np.random.default_rng(seed)
    y = np.where(np.arange(rows) % 2 == 0, 1.0, -1.0)
    X = rng.normal(size=(rows, 2))
    X[y < 0] = 2.0 * X[y < 0] + np.array([2.0, 0.0])
    return X, y


def _banana(folder, first):
    """400 of the 5300 points, or the other 4900; Raetsch's splits are not at hand."""
    X, y = read_file(folder, "banana", n_features=2)
    order = np.random.default_rng(0).permutation(len(y))
    some = order[:BANANA_ROWS] if first else order[BANANA_ROWS:]
    return X.toarray()[some], y[some]


def _standardized(X):
    """Columns of mean 0 and variance 1, as those of Raetsch's collection."""
    return (X - X.mean(axis=0)) / X.std(axis=0)
