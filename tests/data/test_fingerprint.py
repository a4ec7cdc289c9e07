"""The number by which a checkpoint knows its rows."""

import numpy as np
import pytest

from tests.cases.rows import on_every_storage
from widemargin import as_rows, open_rows
from widemargin.data.doubled import DoubledRows
from widemargin.data.fingerprint import fingerprint

RNG = np.random.default_rng(0)
X = RNG.normal(size=(5000, 6)) * [1.0, 1.0, 1e3, 1e-9, 1.0, 0.0] + [0, 0, 0, 0, 50, 0]
X[:, 1] = 2.0 * X[:, 0]


def flipped(j):
    other = X.copy()
    other[:, j] *= -1.0
    return other


def two_rows_changed():
    other = X.copy()
    other[[1, 4000]] = X[[4000, 1]]
    return other


OTHERS = {
    "rows permuted": X[RNG.permutation(len(X))],
    "rows reversed": X[::-1],
    "rows rolled": np.roll(X, 1, axis=0),
    "two rows": two_rows_changed(),
    "columns reversed": X[:, ::-1],
    "columns that are multiples": X[:, [1, 0, 2, 3, 4, 5]],
    "sign of a column": flipped(0),
    "sign of a small column": flipped(3),
    "sign of a constant column": flipped(4),
}


@pytest.mark.parametrize("name", OTHERS)
def test_other_rows_have_another_fingerprint(name):
    ours, theirs = (fingerprint(as_rows(A)) for A in (X, OTHERS[name]))
    assert not np.isclose(ours, theirs, rtol=1e-8, atol=0.0)


@on_every_storage
def test_every_storage_and_cut_has_the_same_fingerprint(storage):
    A = np.round(RNG.normal(size=(300, 5)) * 20.0)
    expected = fingerprint(as_rows(storage.exact(A)))
    mask = RNG.random(300) < 0.7
    for memory_limit in (None, 2500):
        rows = storage.make(A, memory_limit=memory_limit)
        assert fingerprint(rows) == pytest.approx(expected, rel=1e-13)
        assert fingerprint(DoubledRows(rows)) == pytest.approx(expected, rel=1e-13)
        chosen = fingerprint(as_rows(storage.exact(A)[mask]))
        assert fingerprint(rows.select(mask)) == pytest.approx(chosen, rel=1e-13)


def test_it_does_not_depend_on_threads_and_takes_one_sweep(tmp_path):
    np.save(tmp_path / "X.npy", X)
    path, found = tmp_path / "X.npy", []
    for rows in (
        open_rows(path, n_jobs=1),
        open_rows(path, n_jobs=4),
        as_rows(X, n_jobs=2, memory_limit=20_000),
    ):
        _ = rows.moments  # as a problem has asked for
        before = rows.sweeps
        found.append(fingerprint(rows))
        assert rows.sweeps == before + 1
    np.testing.assert_allclose(found, fingerprint(as_rows(X)), rtol=1e-13)


def test_zeros_have_one_too():
    assert fingerprint(as_rows(np.zeros((3, 2)))) == 1.0
