"""Rows near the end of the range of floats: no warning of NumPy's reaches the user."""

import warnings

import numpy as np
import pytest
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning

from widemargin import SVC, SVR, LinearSVC, OneClassSVM

STORED = {"dense": np.asarray, "sparse": sparse.csr_matrix}


def three_classes(m, n):
    X = np.random.default_rng(0).normal(size=(m, n))
    total = X[:, :3].sum(axis=1)
    return X, (total > 0).astype(int) + (total > 1)


@pytest.mark.parametrize(
    ("machine", "m", "n", "scale", "stored"),
    [
        (SVC(kernel="linear"), 60, 5, 1e153, "dense"),
        (SVC(kernel="linear"), 60, 5, 1e75, "sparse"),
        (LinearSVC(solver="interior_point"), 300, 900, 1e140, "dense"),
        (LinearSVC(intercept="free"), 300, 900, 1e152, "dense"),
        (OneClassSVM(kernel="linear"), 300, 900, 1e152, "sparse"),
    ],
    ids=str,
)
def test_fits_end_without_a_warning_of_floats(machine, m, n, scale, stored):
    """They were heard of samples that do not suit, and of shared reads."""
    X, y = three_classes(m, n)
    if stored == "sparse":
        X *= np.random.default_rng(1).random((m, n)) < 0.1
    X = STORED[stored](scale * X)
    machine.set_params(time_limit=0.3)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # these may well come
        machine.fit(X, y)
    assert np.isfinite(machine.predict(X)).all()


@pytest.mark.parametrize(
    "machine", [LinearSVC(), SVC(kernel="linear"), SVR(kernel="linear")], ids=str
)
@pytest.mark.parametrize("m", [1, 5000])
def test_rows_with_both_infinities_are_refused_without_a_warning(machine, m):
    X, y = three_classes(60, 3)
    rows = np.ones((m, 3))
    rows[0, :2] = np.inf, -np.inf
    machine.fit(X, y)
    with pytest.raises(ValueError, match="must hold finite numbers"):
        machine.predict(rows)
