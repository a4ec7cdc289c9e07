"""Data on a cluster that are refused in the words of data in memory."""

import dask.array as da
import numpy as np
import pytest

from tests.cases.clusters import cluster, mixture
from widemargin import LinearSVC, LinearSVR

pytestmark = pytest.mark.dask


@pytest.fixture(scope="module")
def client():
    with cluster(2) as client:
        yield client


@pytest.mark.parametrize("kind", [LinearSVC, LinearSVR])
def test_weights_that_leave_no_row_are_told_as_in_memory(client, kind):
    """It said that all partitions are empty."""
    X, y = mixture(60)
    weight = np.zeros(60)
    parts = (da.from_array(v, chunks=20) for v in (y, weight))
    there = (da.from_array(X, chunks=(20, -1)), *parts)
    for data in ((X, y, weight), there):
        with pytest.raises(ValueError, match="all samples have zero or negative wei"):
            kind().fit(*data)


def test_rows_that_were_never_there_are_no_matter_of_weights(client):
    X = da.from_array(np.empty((0, 3)), chunks=(1, 3))
    y = da.from_array(np.empty(0), chunks=1)
    with pytest.raises(ValueError, match="at least one row. All partitions are empty"):
        LinearSVC().fit(X, y, y)
