"""Rows of K that are kept: what makes room for what, under a tight limit."""

import numpy as np

from widemargin import Kernel
from widemargin.data.memory import as_rows
from widemargin.kernels.matrix import Columns


def test_sums_are_right_when_new_rows_take_the_last_free_places_and_used_ones():
    rng = np.random.default_rng(0)
    X = 0.1 * rng.normal(size=(1200, 200))  # dear enough to be kept
    kernel = Kernel("rbf", gamma=0.3)
    packed = Columns(as_rows(X), kernel)
    columns = Columns(as_rows(X), kernel, packed._source.n_bytes + (3 << 20))
    assert 0 < len(columns._kept.rows) < 600
    K = kernel(X, X)
    sums, expected = np.zeros(columns.width), np.zeros(1200)
    for _ in range(30):
        J = rng.choice(1200, rng.integers(5, 600), replace=False)
        c = rng.normal(size=len(J))
        columns.add(J, c, sums)
        expected += K[:, J] @ c
        np.testing.assert_allclose(sums[:1200], expected, atol=1e-3)
    assert columns.hits
