"""Rows that a lane keeps, and the copies from which an equal lane goes on."""

import pickle

import numpy as np
import pytest
from scipy import sparse

from widemargin.data.distributed.lane import Lane
from widemargin.data.matrix import as_matrix
from widemargin.data.memory import MemoryRows

pytestmark = pytest.mark.dask
X = np.random.default_rng(0).normal(size=(50, 3))
CLASS = np.arange(50) % 3


def lane(kind=np.asarray):
    """A lane that has numbered the vector that came with its rows: 1."""
    made = Lane(0, MemoryRows(as_matrix(kind(X)), n_jobs=1), {"y": CLASS})
    made.unpack({"y": 1})
    return made


def is_other(part, c):
    return part.y != c


def keep(lane, rows, y, c):
    """Rows of all classes but one, and their classes: numbers of both."""
    found = lane.keep(rows, is_other, {"y": y}, ["y"], (c,))
    return found.number, found.number - 1


def taken(lane, number):
    """All that a lane has of some rows."""
    lane.place(number, [0])
    index = np.arange(lane._rows[number].shape[0])
    (rows,) = lane.take(number, index)
    return rows.toarray() if sparse.issparse(rows) else rows


def copied(saved, kind=np.asarray):
    """An equal lane that was loaded again and goes on from a copy."""
    made = Lane(0, lane(kind).rows, {"y": CLASS})
    made.go_on_from(pickle.loads(pickle.dumps(saved)))
    return made


def test_all_rows_of_a_lane_are_no_copy():
    own = lane()
    whole, y = keep(own, 0, 1, 7)
    some, _ = keep(own, whole, y, 0)
    assert own._rows[whole] is own.rows
    np.testing.assert_array_equal(taken(own, some), X[CLASS != 0])
    again = copied(own.saved())
    assert again._rows[whole] is again.rows
    np.testing.assert_array_equal(taken(again, some), X[CLASS != 0])


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array])
def test_rows_chosen_among_chosen_ones_outlive_these(kind):
    """As those of a pair of classes in a fold."""
    own = lane(kind)
    fold, y = keep(own, 0, 1, 0)
    pair, z = keep(own, fold, y, 1)
    own.forget([fold, y])
    again = copied(own.saved(), kind)
    np.testing.assert_array_equal(taken(again, pair), X[CLASS == 2])
    assert again.pick(pair, z, np.arange(3))[0].tolist() == [2, 2, 2]
    assert fold not in again._rows


def test_a_lane_of_which_none_is_chosen_keeps_nothing():
    own = lane()
    some, y = keep(own, 0, 1, 0)
    pair, z = keep(own, some, y, 1)
    found = own.keep(pair, is_other, {"y": z}, ["y"], (2,))
    assert found.counts == {}
    assert found.number not in own._rows
