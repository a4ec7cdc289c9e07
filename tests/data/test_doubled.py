"""Rows that occur twice: the laws of rows, with the data there and read once."""

import numpy as np
import pytest

from tests.conftest import STORAGES
from widemargin import as_rows
from widemargin.data.doubled import DoubledRows
from widemargin.numerics.linalg import dense

RNG = np.random.default_rng(3)
X = np.rint(4.0 * RNG.standard_normal((37, 4)) + 8.0)
SIGNS = np.repeat(np.array([1, -1], np.int8), len(X))


def _squares(block, part, v):
    part.f = block @ v
    return block.T @ (part.f * part.weight)


def _weights(part):
    return part.weight


@pytest.fixture(params=STORAGES, ids=lambda storage: storage.name)
def doubled(request):
    storage = request.param
    whole = np.vstack([storage.exact(X)] * 2)
    return DoubledRows(storage.make(X, memory_limit=1 << 14)), whole


def test_products_of_signed_rows(doubled):
    rows, whole = doubled
    A = SIGNS[:, None] * np.c_[whole, np.ones(len(whole))]
    signed, weight = rows.signed(SIGNS), RNG.random(len(whole))
    v, before = RNG.standard_normal(5), rows.sweeps
    state = signed.state(f=0.0, weight=weight)
    found = signed.sweep(_squares, state, v)
    assert rows.sweeps == before + 1
    np.testing.assert_allclose(state.f, A @ v, rtol=1e-13)
    np.testing.assert_allclose(found, A.T @ (weight * (A @ v)), rtol=1e-12)
    product = signed.weighted_product(_weights, state, v)
    assert rows.sweeps == before + 2
    np.testing.assert_allclose(product, A.T @ (weight * (A @ v)), rtol=1e-12)
    np.testing.assert_allclose(
        signed.gram(weight), A.T @ (weight[:, None] * A), rtol=1e-12
    )
    np.testing.assert_allclose(
        dense(signed.take([0, 40, 3])), A[[0, 40, 3]], rtol=1e-14
    )


def test_moments_and_rows_are_those_of_the_data(doubled):
    rows, whole = doubled
    np.testing.assert_allclose(rows.moments.mean, whole.mean(axis=0), rtol=1e-13)
    np.testing.assert_allclose(rows.moments.std, whole.std(axis=0), rtol=1e-12)
    np.testing.assert_allclose(rows.rmatvec(SIGNS), 0.0, atol=1e-9)
    taken = dense(rows.take([36, 37, 73]))
    np.testing.assert_array_equal(taken, whole[[36, 37, 73]])


def test_vectors_keep_the_order_of_both_halves(doubled):
    rows, whole = doubled
    values = RNG.random(len(whole))
    state = rows.state(a=values, b=2.0)
    np.testing.assert_array_equal(state.a, values)
    assert set(state.b) == {2.0}
    state.a = values[::-1]
    np.testing.assert_array_equal(state.a, values[::-1])
    joined = state.join(rows.state(c=1.0)).prefixed("x.")
    np.testing.assert_array_equal(getattr(joined, "x.a"), values[::-1])
    assert state.threshold(_keys, 10.0) == pytest.approx(np.sort(values)[9])


def _keys(part):
    return part.a, np.ones(len(part.a))


def test_a_choice_of_samples_keeps_both_rows(doubled):
    rows, whole = doubled
    mask = RNG.random(len(X)) < 0.5
    some = rows.select(np.tile(mask, 2)).signed(np.repeat([1, -1], mask.sum()))
    A = (
        np.repeat([1, -1], mask.sum())[:, None]
        * np.c_[whole[np.tile(mask, 2)], np.ones(2 * mask.sum())]
    )
    d = RNG.random(len(A))
    np.testing.assert_allclose(some.gram(d), A.T @ (d[:, None] * A), rtol=1e-12)
    with pytest.raises(ValueError, match="both rows of a sample"):
        rows.select(np.arange(len(whole)) < 3)


def test_bad_entries_are_named_in_the_data():
    bad = X.copy()
    bad[5, 2] = np.nan
    with pytest.raises(ValueError, match="Got NaN at row 5, column 2"):
        _ = DoubledRows(as_rows(bad)).moments
