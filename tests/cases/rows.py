"""Matrices, storages and views for the tests of rows, and bounds on rounding.

Bounds on errors: u is the unit roundoff of float64. A sum of k products, in any order,
with or without fused operations, is off by at most gamma(k) times the sum of the
absolute products, gamma(k) = k u / (1 - k u) [Higham 2002, section 3.1], if every sum
is kept in float64; float32 sums would be off by 5e8 times as much. The references are
float64 products of the numbers that are stored, with an error of the same size.
"""

from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import strategies as st

from tests.conftest import STORAGES
from widemargin.numerics import linalg

U = 2.0**-53


def gamma(k):
    return k * U / (1 - k * U)


def assert_within(actual, expected, scale, terms):
    """Both are sums of so many products, whose absolute values add up to scale."""
    actual = np.asarray(actual)
    assert actual.dtype == np.float64
    assert actual.shape == np.shape(expected)
    assert np.all(np.abs(actual - expected) <= 2 * gamma(terms) * scale)


# -- the data, and the views -----------------------------------------------------------


class Case(NamedTuple):
    X: np.ndarray
    seed: int
    memory_limit: int | None


@st.composite
def cases(draw):
    """A matrix, some of it zeros, and how finely it is cut: one row, a few, or not."""
    m, n = draw(st.integers(1, 24)), draw(st.integers(1, 6))
    seed = draw(st.integers(0, 2**32 - 1))
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(m, n)) * 10.0 ** draw(st.integers(-1, 3))
    X[rng.random((m, n)) > draw(st.sampled_from([0.1, 0.5, 1.0]))] = 0.0
    return Case(X, seed, draw(st.sampled_from([None, 1, 2500])))


def signed(rows, X, rng):
    y = rng.choice([-1.0, 1.0], X.shape[0])
    return rows.signed(y), y[:, np.newaxis] * np.c_[X, np.ones(X.shape[0])]


def signed_alone(rows, X, rng):
    y = rng.choice([-1.0, 1.0], X.shape[0])
    return rows.signed(y, intercept=False), y[:, np.newaxis] * X


class Doubled:
    """Some columns in some order, doubled."""

    def __init__(self, columns):
        self.columns, self.rank = columns, len(columns)

    def map(self, block):
        return block[:, self.columns] * 2.0


class Shifted:
    """X - 1 center'."""

    def __init__(self, center):
        self.center, self.rank = center, len(center)

    def map(self, block):
        return linalg.shifted(block, self.center)


def doubled(rows, X, rng):
    columns = rng.integers(0, X.shape[1], 1 + X.shape[1] // 2)
    return rows.mapped(Doubled(columns)), X[:, columns] * 2.0


def shifted(rows, X, rng):
    center = rng.choice([0.0, 0.3, -7.0], X.shape[1])
    return rows.mapped(Shifted(center)), X - center


def selected(rows, X, rng):
    mask = rng.random(X.shape[0]) < rng.choice([0.1, 0.9])
    mask[rng.integers(X.shape[0])] = True
    return rows.select(mask), X[mask]


VIEWS = {
    "plain": [],
    "signed": [signed],
    "shifted": [shifted],
    "selected": [selected],
    "selected-signed": [selected, signed],
    "signed-selected": [signed_alone, selected],
    "doubled-signed": [doubled, signed],
    "signed-doubled": [signed, doubled],
    "signed-twice": [signed, signed],
    "selected-twice": [selected, selected],
    "selected-shifted-selected-signed": [selected, shifted, selected, signed],
}


def build(storage, view, case):
    """Rows, the matrix that they stand for, and a generator for what else is needed."""
    rows = storage.make(case.X.copy(), memory_limit=case.memory_limit)
    X = storage.exact(case.X)
    rng = np.random.default_rng(case.seed)
    for step in VIEWS[view]:
        rows, X = step(rows, X, rng)
    assert rows.shape == X.shape
    return rows, X, rng


def name_of(level):
    """What an id calls a storage; None of what has no name."""
    return getattr(level, "name", None)


on_every_storage = pytest.mark.parametrize("storage", STORAGES, ids=name_of)
on_every_view = pytest.mark.parametrize("view", VIEWS)
in_memory = [s for s in STORAGES if not s.name.startswith(("process", "stored"))]
_SOME = ("float64", "csr-float32", "int16", "process", "stored-int16-scratch")
SOME = [s for s in STORAGES if s.name in _SOME]
on_some_storages = pytest.mark.parametrize("storage", SOME, ids=lambda s: s.name)


def diagonal(block, part):
    return linalg.gram_diagonal(block, part.d)


def ones(storage, view, m):
    """Rows of two ones, as they are or selected from more."""
    if view == "plain":
        return storage.make(np.ones((m, 2)))
    return storage.make(np.ones((m + 2, 2))).select(np.arange(m + 2) > 1)


def keys_and_weights(part):
    return part.key, part.weight
