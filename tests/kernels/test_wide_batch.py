"""Sparse rows of many columns in the batch engine."""

import numpy as np
import pytest
from scipy import sparse

from widemargin import SVC, Kernel, Problem
from widemargin.kernels import grouped


def documents(m=150, n=2500):
    """Sparse counts of three classes, of more columns than are made dense elsewhere."""
    rng = np.random.default_rng(0)
    y = np.arange(m) % 3
    X = np.zeros((m, n))
    for i in range(m):
        own = rng.integers(0, 40, 15) + 60 * y[i]
        np.add.at(X[i], np.append(own, rng.integers(0, n, 25)), 1.0)
    return sparse.csr_array(X), y


@pytest.mark.parametrize("kernel", ["rbf", "poly", "laplacian", "chi2"])
def test_wide_sparse_rows_are_solved_at_once(kernel):
    X, y = documents()
    form = {"kernel": kernel, "coef0": 1.0, "C": 5.0, "tol": 1e-4}
    clf = SVC(**form).fit(X, y)
    assert {one.solver for one in clf.solutions_} == {"batch"}
    assert clf.status_ == "solved"
    own = np.flatnonzero(y != 2)
    signs = np.where(y[own] == 0, 1.0, -1.0)
    problem = Problem(X[own], signs, 5.0, kernel=clf.kernel_)
    one = clf.solution_
    assert problem.certify(one.alpha, one.w, one.b).relative_gap <= 1.1e-4
    dense = SVC(**form).fit(X.toarray(), y)
    assert one.certificate.primal == pytest.approx(
        dense.solution_.certificate.primal, rel=2e-4
    )


@pytest.mark.parametrize("limit", ["memory", "bytes"])
def test_where_there_is_no_room_they_stay_sparse(limit, monkeypatch):
    X, y = documents()
    options = {}
    if limit == "memory":
        options = {"memory_limit": 12 * X.shape[0] * X.shape[1]}
    else:
        monkeypatch.setattr(grouped, "MOST_BYTES", 4 * X.shape[0] * 2499)
    clf = SVC(C=5.0, **options).fit(X, y)
    assert {one.solver for one in clf.solutions_} == {"irwls"}
    assert clf.status_ == "solved"


@pytest.mark.parametrize("stored", [sparse.csr_array, sparse.csr_array.toarray])
def test_sums_in_float64_are_made_of_parts_of_the_support_vectors(stored):
    X, y = documents(700)  # a part has some 200
    samples = grouped.GroupedSamples(stored(X), y, Kernel("rbf", gamma=0.01))
    c = np.random.default_rng(1).normal(size=700)
    support = np.arange(700), c, np.array([450, 700])
    rows = np.arange(700), np.array([300, 700])
    found = samples.exact(support, rows, 2, lambda: False)
    K = Kernel("rbf", gamma=0.01)(X, X)
    expected = np.append(K[:300, :450] @ c[:450], K[300:, 450:] @ c[450:])
    np.testing.assert_allclose(found, expected, atol=1e-12)
    stopped = samples.exact(support, rows, 2, lambda: True)
    assert np.isnan(stopped).all()
