"""Scalings of columns: as scikit-learn's scalers, whatever holds the rows."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, StandardScaler

from tests.cases.rows import on_every_storage
from widemargin import as_rows
from widemargin.features.scaling import SCALES, Scaling, learned

SCALERS = {"standard": StandardScaler, "minmax": MinMaxScaler, "maxabs": MaxAbsScaler}


def columns(dtype=np.float64, m=500):
    """Columns of many sizes, one of them constant."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((m, 5)) * [1.0, 10.0, 1e3, 0.0, 50.0] + [0, 3, -40, 7, 90]
    return X.astype(dtype)


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int16])
@pytest.mark.parametrize("kind", SCALES)
def test_dense_columns_are_those_of_scikit_learn(kind, dtype):
    X = columns(dtype)
    scaled = learned(as_rows(X), kind).map(X)
    theirs = SCALERS[kind]().fit_transform(X)
    assert scaled.dtype == theirs.dtype
    np.testing.assert_allclose(
        scaled, theirs, rtol=0, atol=8 * np.finfo(scaled.dtype).eps
    )


@pytest.mark.parametrize("kind", ["standard", "maxabs"])
def test_sparse_columns_are_those_of_scikit_learn(kind):
    X = sparse.csr_array(
        np.where(np.random.default_rng(1).random((500, 5)) < 0.3, columns(), 0)
    )
    scaled = learned(as_rows(X), kind).map(X)
    options = {"with_mean": False} if kind == "standard" else {}
    theirs = SCALERS[kind](**options).fit_transform(X)
    assert scaled.nnz == X.nnz
    np.testing.assert_allclose(scaled.toarray(), theirs.toarray(), rtol=1e-13)


def test_sparse_columns_from_a_to_b_have_the_length_one():
    X = np.where(np.random.default_rng(1).random((500, 5)) < 0.3, columns(), 0)
    X[:, 4] = 60.0  # no zero in it
    scaling = learned(as_rows(sparse.csr_array(X)), "minmax")
    assert not scaling.is_shifted
    scaled = scaling.map(sparse.csr_array(X)).toarray()
    np.testing.assert_allclose(np.ptp(scaled[:, :4], axis=0), 1.0, rtol=1e-12)
    assert np.all(scaled[:, 4] == 1.0)


@on_every_storage
@pytest.mark.parametrize("kind", SCALES)
def test_every_storage_has_the_same_scaling(kind, storage):
    X = np.abs(columns(m=97))
    X[:, 0] *= np.arange(97) % 3 == 0
    rows, X = storage.make(X), storage.exact(X)
    wanted = learned(as_rows(X if rows.density == 1.0 else sparse.csr_array(X)), kind)
    found = learned(rows, kind)
    np.testing.assert_allclose(found.shift, wanted.shift, rtol=1e-12)
    np.testing.assert_allclose(found.scale, wanted.scale, rtol=1e-12)
    view = found.view(rows)
    off = 1e-12 if view.dtype == np.float64 else 1e-5
    np.testing.assert_allclose(
        view.matvec(np.eye(5)), wanted.map(X), rtol=off, atol=off
    )


def test_a_large_mean_does_not_hide_the_spread():
    X = 1e9 + columns()[:, :1]
    scaling = learned(as_rows(X), "standard")
    assert scaling.scale[0] == pytest.approx(np.std(columns()[:, 0]), rel=1e-6)


def test_two_maps_are_one():
    rng = np.random.default_rng(0)
    one, two = (Scaling(rng.standard_normal(3), rng.random(3) + 0.5) for _ in range(2))
    X = rng.standard_normal((9, 3))
    np.testing.assert_allclose(one.then(two).map(X), two.map(one.map(X)), rtol=1e-12)


@pytest.mark.parametrize("kind", SCALES)
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_numbers_that_are_not_finite_are_refused(kind, value):
    X = columns()
    X[7, 2] = value
    with pytest.raises(
        ValueError, match="must hold finite numbers only .*row 7, column 2"
    ):
        learned(as_rows(X), kind)


def test_a_spread_out_of_range_is_refused():
    X = np.array([[0.0, -1e308], [1.0, 1e308]])
    for kind in ("standard", "minmax"):
        with pytest.raises(ValueError, match="spread is finite. Column 1 is too large"):
            learned(as_rows(X), kind)
    assert learned(as_rows(X), "maxabs").scale.tolist() == [1.0, 1e308]
