"""Sums over lanes: one tree, whoever holds which lanes."""

import numpy as np
import pytest

from widemargin.data.distributed.sums import Raised, merged, padding


def tree_sum(values, hosts, order):
    """The sum of lanes that are shared out to hosts and come together in an order."""
    parts = {}
    for host in order:
        own = {(0, k): values[k] for k in np.flatnonzero(hosts == host)}
        parts = merged(parts | merged(own))
    parts = merged(parts | padding(len(values)))
    assert len(parts) == 1
    return next(iter(parts.values()))


@pytest.mark.parametrize("n_lanes", [1, 2, 3, 5, 8, 13, 32])
def test_sums_have_the_same_bits_whoever_holds_the_lanes(n_lanes):
    rng = np.random.default_rng(n_lanes)
    values = list(
        rng.normal(size=(n_lanes, 4)) * 10.0 ** rng.integers(-8, 8, (n_lanes, 1))
    )
    alone = tree_sum(values, np.zeros(n_lanes, int), [0])
    np.testing.assert_allclose(alone, np.sum(values, axis=0), rtol=1e-12)
    for n_hosts in (2, 3, 4):
        hosts = rng.integers(0, n_hosts, n_lanes)
        found = tree_sum(values, hosts, rng.permutation(n_hosts))
        assert found.tobytes() == alone.tobytes()


def test_lists_are_joined_in_the_order_of_lanes():
    values = [[k] for k in range(11)]
    hosts = np.arange(11) % 3
    assert tree_sum(values, hosts, [2, 0, 1]) == list(range(11))


def test_the_first_error_is_the_sum():
    values = [1.0, Raised(ValueError("one")), 2.0, Raised(ValueError("three"))]
    found = tree_sum(values, np.arange(4) % 2, [1, 0])
    assert str(found.error) == "one"
