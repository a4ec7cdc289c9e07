"""A few sparse rows meet the support vectors in the columns that they have."""

import numpy as np
import pytest
from scipy import sparse

from widemargin import SVC
from widemargin.kernels import core_sums, packed

KERNELS = ["rbf", "poly", "sigmoid", "laplacian"]


def rows(m=150, n=9_000):
    """Sparse rows of three classes, one of them of zeros."""
    rng = np.random.default_rng(0)
    X = sparse.random_array((m, n), density=0.003, rng=rng, format="lil")
    X[4] = 0.0
    return sparse.csr_array(X), np.arange(m) % 3


@pytest.mark.parametrize("kernel", KERNELS)
def test_values_have_the_same_bits_as_those_of_many_rows(kernel, monkeypatch):
    X, y = rows()
    fitted = SVC(kernel=kernel).fit(X, y)
    whole = fitted.decision_function(X)  # of more than a strip
    monkeypatch.setattr(core_sums, "KEPT_BYTES", 0)
    fitted = SVC(kernel=kernel).fit(X, y)
    widths = []
    groups = packed._groups
    monkeypatch.setattr(
        packed, "_groups", lambda *given: widths.append(given[-1]) or groups(*given)
    )
    for some in ([0], [4], [7, 4, 7], range(60)):
        found = fitted.decision_function(X[list(some)])
        np.testing.assert_array_equal(found, whole[list(some)])
        if few := len(np.unique(X[list(some)].indices)):
            assert set(widths) == {few}
        widths.clear()
