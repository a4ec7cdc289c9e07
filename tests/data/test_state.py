"""The weighted threshold of row vectors, and sums of values."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from tests.cases.rows import (
    Case,
    build,
    gamma,
    keys_and_weights,
    on_some_storages,
    ones,
)
from widemargin import as_rows
from widemargin.data.blocks import Least, total

# -- the weighted threshold ------------------------------------------------------------


def reference_threshold(keys, weights, target):
    order = np.argsort(keys, kind="stable")
    reached = np.flatnonzero(np.cumsum(weights[order]) >= target)
    return keys[order][reached[0] if reached.size else -1]


def thresholds(rows, keys, weights, targets, sorted_keys, bins):
    state = rows.state(key=keys, weight=weights)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("widemargin.data.state.SORTED_KEYS", sorted_keys)
        patch.setattr("widemargin.data.state.THRESHOLD_BINS", bins)
        return [state.threshold(keys_and_weights, target) for target in targets]


floats = st.floats(allow_nan=False) | st.sampled_from(
    [0.0, -0.0, 1.0, -1.0, math.inf, -math.inf, 5e-324, -5e-324, 1.8e308, -1.8e308]
)


@given(
    pairs=st.lists(st.tuples(floats, st.integers(0, 3)), min_size=1, max_size=40),
    sorted_keys=st.sampled_from([0, 3, 4096]),
    bins=st.sampled_from([2, 256, 4096]),
    memory_limit=st.sampled_from([None, 1]),
)
def test_threshold_is_that_of_a_sort(pairs, sorted_keys, bins, memory_limit):
    # Weights are integers: their sums are exact, so that the threshold must be too.
    keys, weights = (
        np.array(column, dtype=float) for column in zip(*pairs, strict=True)
    )
    rows = as_rows(np.ones((len(keys), 1)), memory_limit=memory_limit)
    sum_ = weights.sum()
    targets = [-1.0, 0.0, 0.5, 1.0, sum_ / 2, sum_ - 0.5, sum_, sum_ + 1.0, math.inf]
    found = thresholds(rows, keys, weights, targets, sorted_keys, bins)
    state = rows.state(key=keys, weight=weights)
    for target, t in zip(targets, found, strict=True):
        assert t == reference_threshold(keys, weights, target)
        assert t in keys
        for near in {0.0, *found}:
            assert state.threshold(keys_and_weights, target, near=near) == t
    for near in {0.0, *found}:
        assert state.thresholds(keys_and_weights, targets, near=near) == found


@given(seed=st.integers(0, 2**32 - 1), sorted_keys=st.sampled_from([0, 5, 4096]))
def test_threshold_of_rounded_weights(seed, sorted_keys):
    rng = np.random.default_rng(seed)
    m = 30
    keys, weights = rng.integers(0, 20, m) / 7.0, rng.exponential(size=m)
    rows = as_rows(np.ones((m, 1)), memory_limit=1)
    targets = [*np.cumsum(weights)[[0, m // 2, m - 1]], weights.sum() * 0.3]
    found = thresholds(rows, keys, weights, targets, sorted_keys, 16)
    for target, t in zip(targets, found, strict=True):
        # Two or three sums of m weights are rounded on the way, and these here.
        slack = 4 * gamma(m) * weights.sum()
        assert t in keys
        assert weights[keys <= t].sum() >= target - slack
        assert weights[keys < t].sum() < target + slack


def test_threshold_of_keys_over_300_orders_of_magnitude_takes_few_sweeps():
    rng = np.random.default_rng(0)
    keys = np.concatenate(
        [10.0 ** rng.uniform(-300, 300, 20000), [-1e300, 1e308, -1e308]]
    )
    rows = as_rows(np.ones((len(keys), 1)))
    state, calls = rows.state(key=keys), []

    def counted(part):
        calls.append(len(part.key))
        return part.key, 1.0

    for count in (1, 3, 10000, len(keys)):
        calls.clear()
        assert state.threshold(counted, count) == np.sort(keys)[count - 1]
        assert sum(calls) <= 8 * len(keys)
    assert rows.sweeps == 0


@pytest.mark.parametrize("sorted_keys", [0, 4096])
def test_threshold_of_one_row_and_of_equal_keys(sorted_keys):
    for keys in ([3.5], [3.5] * 50, [-math.inf] * 5, [math.inf] * 5, [-0.0, 0.0]):
        rows = as_rows(np.ones((len(keys), 1)))
        weights = np.ones(len(keys))
        found = thresholds(
            rows, np.array(keys), weights, [-1, 0, 1, 2, 99], sorted_keys, 8
        )
        assert found == [keys[0]] * 5


@pytest.mark.parametrize("bad", ["key", "weight"])
@pytest.mark.parametrize("nan", [np.nan, -np.nan])
def test_threshold_refuses_nan(bad, nan):
    rows = as_rows(np.ones((5, 1)))
    vectors = {"key": np.arange(5.0), "weight": np.ones(5)}
    vectors[bad][2] = nan
    with pytest.raises(FloatingPointError, match="a key or a weight is NaN"):
        rows.state(**vectors).threshold(keys_and_weights, 3.0)
    with pytest.raises(FloatingPointError, match="a key or a weight is NaN"):
        rows.state(**vectors).threshold(keys_and_weights, 1.0, near=0.0)


@on_some_storages
@pytest.mark.parametrize("view", ["plain", "selected-shifted-selected-signed"])
@pytest.mark.parametrize("sorted_keys", [0, 4096])
def test_threshold_on_storages_and_views(storage, view, sorted_keys):
    rng = np.random.default_rng(4)
    rows, X, rng = build(storage, view, Case(rng.normal(size=(90, 3)), 4, 1000))
    m = X.shape[0]
    keys, weights = rng.standard_cauchy(m), rng.integers(0, 3, m).astype(float)
    targets = [0.0, 1.0, 7.0, weights.sum(), weights.sum() + 1.0]
    found = thresholds(rows, keys, weights, targets, sorted_keys, 64)
    assert found == [reference_threshold(keys, weights, target) for target in targets]


def looked_at():
    """20,000 keys, their state, what gives keys and weights, and the rows it saw."""
    keys, calls = np.arange(20000) / 1e4, []

    def counted(part):
        calls.append(len(part.key))
        return part.key, 1.0

    return keys, as_rows(np.ones((20000, 1))).state(key=keys), counted, calls


def test_threshold_near_a_guess_takes_one_sweep():
    keys, state, counted, calls = looked_at()
    assert state.threshold(counted, 7001, near=0.705) == keys[7000]
    assert sum(calls) == 20000
    assert state.threshold(counted, 7001, near=0.8) == keys[7000]
    assert sum(calls) > 60000


def test_thresholds_near_a_guess_take_one_sweep_together():
    keys, state, counted, calls = looked_at()
    both = [keys[7000], keys[7020]]
    assert state.thresholds(counted, (7001, 7021), near=0.705) == both
    assert sum(calls) == 20000
    # One that is not near is near the one before.
    assert state.thresholds(counted, (6901, 6801), near=0.7) == [keys[6900], keys[6800]]
    assert sum(calls) == 60000


# -- sums of values --------------------------------------------------------------------


def test_least_keeps_the_smallest_key_and_the_first_of_equals():
    values = [Least(3.0, "a"), Least(1.0, "b"), Least(2.0, "c"), Least(1.0, "d")]
    assert total(values) == Least(1.0, "b")
    assert total([Least(math.inf), Least(-math.inf, 1)]) == Least(-math.inf, 1)


def test_sums_of_values_of_every_kind():
    assert total([]) is None
    assert total([None, None]) is None
    assert total([None, 2, None, 3.5]) == 5.5
    assert total([[1], [], None, [2, 3]]) == [1, 2, 3]
    first = (1, np.array([1.0, 2.0]), None, [1], Least(2.0), (np.array([1]), None))
    second = (2, np.array([0.5, 0.5]), None, [2], Least(1.0), (None, 3))
    third = (3, None, np.array([7.0]), [], Least(5.0), (np.array([4]), 5))
    number, array, late, joined, least, (a, b) = total([first, second, third])
    assert (number, joined, least, b) == (6, [1, 2], Least(1.0), 8)
    np.testing.assert_array_equal(array, [1.5, 2.5])
    np.testing.assert_array_equal(late, [7.0])
    np.testing.assert_array_equal(a, [5])
    assert np.array_equal(total([np.array([1]), np.array([2]), np.array([0.5])]), [3.5])
    G = total([sparse.eye_array(2, format="csr")] * 3)
    np.testing.assert_array_equal(G.toarray(), 3 * np.eye(2))
    with pytest.raises(ValueError, match="shorter"):
        total([(1, 2), (1,)])


def test_sums_do_not_write_into_the_values():
    parts = [np.ones(2), np.ones(2), np.ones(2), np.ones(2)]
    total(parts)
    total([None, *parts])
    total([(part, None) for part in parts])
    total([(None, None), *((part, (part, None)) for part in parts)])
    total([((None, part),) for part in parts])
    assert all(np.array_equal(part, np.ones(2)) for part in parts)


def test_a_function_may_return_slices_of_its_state():
    rows = as_rows(np.ones((3, 1)), memory_limit=1)
    state = rows.state(a=np.array([1.0, 2.0, 4.0]))
    value = state.sweep(lambda part: (part.a, None) if part.a[0] > 1 else (None, None))
    np.testing.assert_array_equal(value[0], [6.0])
    np.testing.assert_array_equal(state.a, [1.0, 2.0, 4.0])


def add_by_prefix(block, part):
    parts = part.by_prefix()
    parts["0"].a += 2.0 * getattr(parts["11"], "x.b")


@on_some_storages
@pytest.mark.parametrize("view", ["plain", "selected"])
def test_vectors_by_what_their_names_begin_with(storage, view):
    rows = ones(storage, view, 7)
    one, two = rows.state(a=np.zeros(7)), rows.state(a=np.ones(7), b=np.ones(7))
    rows.sweep(add_by_prefix, one.prefixed("0.").join(two.prefixed("11.x.")))
    np.testing.assert_array_equal(one.a, np.full(7, 2.0))
    np.testing.assert_array_equal(two.a, np.ones(7))
