"""Kernels that are functions, where workers are processes that cannot import them."""

import dask.array as da
import numpy as np
import pytest

from tests.cases.clusters import cluster, mixture
from widemargin import SVC
from widemargin.data.distributed.lane import Constants

pytestmark = pytest.mark.dask


@pytest.fixture(scope="module")
def client():
    with cluster(2, processes=True) as client:
        yield client


@pytest.fixture(scope="module")
def data():
    return mixture(300)


def local():
    """A function within another one, with a value of that."""
    scale = 0.5

    def kernel(a, b):
        return scale * (a @ b.T)

    return kernel


@pytest.mark.parametrize(
    "kernel", [lambda a, b: a @ b.T, local()], ids=["lambda", "local"]
)
def test_functions_without_a_module_are_kernels_on_a_cluster(client, data, kernel):
    X, y = data
    far = SVC(rank=5, kernel=kernel, tol=1e-8)
    far.fit(da.from_array(X, chunks=(100, -1)), da.from_array(y, chunks=100))
    near = SVC(rank=5, kernel=kernel, tol=1e-8).fit(X, y)
    assert far.status_ == "solved"
    scale = np.abs(near.decision_function(X)).max()
    np.testing.assert_allclose(
        far.decision_function(X), near.decision_function(X), atol=1e-3 * scale
    )


def test_copies_of_lanes_hold_them_too():
    """With names in the place of what is sent once."""
    constants = Constants(map=object())
    data = constants.dumps((local(), constants["map"]))
    kernel, found = constants.loads(data)
    assert found is constants["map"]
    assert kernel(np.eye(2), np.eye(2))[0, 0] == 0.5
