"""Rows on a cluster where a problem has as many dual variables as weights."""

import dask.array as da
import numpy as np
import pytest
from sklearn.base import clone

from tests.cases.clusters import cluster, relative
from widemargin import SVC, LinearSVC, LinearSVCCV, LinearSVR, linear_svc_path

pytestmark = pytest.mark.dask
N = 60


@pytest.fixture(scope="module")
def client():
    with cluster(2) as client:
        yield client


@pytest.fixture(scope="module")
def square():
    X = np.random.default_rng(0).normal(size=(N, N))
    return X, np.where(X[:, 0] > 0, 1, -1)


def there(X, y):
    return da.from_array(X, chunks=(20, N)), da.from_array(y, chunks=20)


@pytest.mark.parametrize(
    "estimator",
    [LinearSVC(tol=1e-10), LinearSVC(loss="hinge", tol=1e-10)],
)
def test_weights_of_square_rows_are_those_of_memory(client, square, estimator):
    far = clone(estimator).fit(*there(*square))
    near = clone(estimator).fit(*square)
    assert relative(far, near) < 1e-4
    np.testing.assert_array_equal(far.solution_.w, far.coef_[0])
    assert not hasattr(far.solution_, "alpha")


def test_so_are_those_of_three_classes(client, square):
    X, _ = square
    y = np.digitize(X[:, 0], [-0.5, 0.5])
    far = LinearSVC(tol=1e-10).fit(*there(X, y))
    assert relative(far, LinearSVC(tol=1e-10).fit(X, y)) < 1e-4


def test_so_are_those_of_a_regression_with_half_as_many_rows(client, square):
    X, y = square[0][: N // 2], square[0][: N // 2, 1]
    far = LinearSVR(tol=1e-10).fit(*there(X, y))
    assert relative(far, LinearSVR(tol=1e-10).fit(X, y)) < 1e-4


def test_searches_and_paths_of_square_rows_end(client, square):
    found = LinearSVCCV(Cs=[0.1, 1.0], cv=2).fit(*there(*square))
    assert found.coef_.shape == (1, N)
    _, path, _ = linear_svc_path(*there(*square), Cs=[0.1, 1.0])
    assert len(path) == 2


@pytest.mark.parametrize("rank", [N, 10_000])
def test_a_rank_may_be_the_number_of_rows_or_more(client, square, rank):
    X, y = square
    far = SVC(rank=rank).fit(*there(X, y))
    assert far.score(X, y) == 1.0
