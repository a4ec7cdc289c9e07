"""The laws of Rows, on every storage and view, and what happens when they are misused.

Bounds on errors: u is the unit roundoff of float64. A sum of k products, in any order,
with or without fused operations, is off by at most gamma(k) times the sum of the
absolute products, gamma(k) = k u / (1 - k u) [Higham 2002, section 3.1], if every sum
is kept in float64; float32 sums would be off by 5e8 times as much. The references are
float64 products of the numbers that are stored, with an error of the same size.
"""

import concurrent.futures
import copy
import functools
import math
import multiprocessing
import pickle
import signal
import sys
import threading
import time
import tracemalloc
import warnings
from typing import NamedTuple

import numpy as np
import pandas as pd
import polars as pl
import pytest
import threadpoolctl
from conftest import STORAGES, csr, memory_mapped
from hypothesis import given, settings
from hypothesis import strategies as st
from process_rows import ProcessRows
from scipy import sparse

from widemargin import Problem, as_rows, linalg, solve
from widemargin.data.blocks import Least, n_threads, total
from widemargin.data.memory import LARGE_BLOCK_BYTES
from widemargin.solvers import InteriorPoint

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


on_every_storage = pytest.mark.parametrize("storage", STORAGES, ids=lambda s: s.name)
on_every_view = pytest.mark.parametrize("view", VIEWS)
in_memory = [s for s in STORAGES if not s.name.startswith("process")]
SOME = [s for s in STORAGES if s.name in ("float64", "csr-float32", "int16", "process")]
on_some_storages = pytest.mark.parametrize("storage", SOME, ids=lambda s: s.name)


# -- products --------------------------------------------------------------------------


@on_every_storage
@on_every_view
@settings(max_examples=3)
@given(case=cases())
def test_products_are_exact_to_rounding_and_adjoint(storage, view, case):
    rows, X, rng = build(storage, view, case)
    m, n = X.shape
    for shape in [(), (2,), (5,)]:  # vectors, thin matrices and others take other paths
        W, V = rng.normal(size=(n, *shape)), rng.normal(size=(m, *shape))
        XW, XV = rows.matvec(W), rows.rmatvec(V)
        assert_within(XW, X @ W, np.abs(X) @ np.abs(W), n)
        assert_within(XV, X.T @ V, np.abs(X).T @ np.abs(V), m)
    w, v = rng.normal(size=n), rng.normal(size=m)
    scale = np.abs(v) @ np.abs(X) @ np.abs(w)
    assert_within(rows.matvec(w) @ v, w @ rows.rmatvec(v), scale, m + n)


def _diagonal(block, part):
    return linalg.gram_diagonal(block, part.d)


def _sparse_gram(block, part):
    if not sparse.issparse(linalg.formed(block)):
        return None
    return linalg.sparse_gram(block, part.d)


@on_every_storage
@on_every_view
@settings(max_examples=3)
@given(case=cases())
def test_gram_is_the_weighted_product(storage, view, case):
    rows, X, rng = build(storage, view, case)
    m, n = X.shape
    d = rng.exponential(size=m) * (rng.random(m) < 0.8)
    active = rng.random(m) < rng.choice([0.0, 0.3, 1.0])
    for given_active, weights in [(None, d), (active, d * active)]:
        expected = X.T @ (weights[:, np.newaxis] * X)
        scale = np.abs(X).T @ (weights[:, np.newaxis] * np.abs(X))
        G = rows.gram(d, given_active)
        # Of root, two scalings and the product an entry gets four more roundings.
        assert_within(G, expected, scale, m + 4)
        np.testing.assert_array_equal(G, G.T)
    state = rows.state(d=weights)
    assert_within(
        rows.sweep(_diagonal, state), expected.diagonal(), scale.diagonal(), m + 4
    )
    G = rows.sweep(_sparse_gram, state)
    if G is not None:
        assert_within(G.toarray(), expected, scale, m + 4)


@on_every_storage
@on_every_view
@settings(max_examples=3)
@given(case=cases())
def test_rows_taken_moments_and_repeated_reads(storage, view, case):
    rows, X, rng = build(storage, view, case)
    m, n = X.shape
    index = rng.integers(0, m, 2 * m)
    taken = rows.take(index)
    np.testing.assert_array_equal(linalg.dense(taken), X[index])
    assert rows.take([]).shape == (0, n)

    mean, std = rows.moments
    assert_within(mean, X.mean(axis=0), np.abs(X).mean(axis=0), m + 1)
    # The difference of two sums of squares, each off by gamma(m + 2) of the first.
    squares = (X * X).mean(axis=0)
    variance = ((X - X.mean(axis=0)) ** 2).mean(axis=0)
    assert_within(std**2, variance, squares, 2 * m + 9)

    w, d = rng.normal(size=n), rng.exponential(size=m)
    for read in (
        lambda: rows.matvec(w),
        lambda: rows.rmatvec(d),
        lambda: rows.gram(d, d > 0.5),
    ):
        np.testing.assert_array_equal(read(), read())


def _n_blocks(block, part):
    return 1


@pytest.mark.parametrize("storage", in_memory, ids=lambda s: s.name)
@pytest.mark.parametrize("view", ["plain", "selected-signed"])
@settings(max_examples=5)
@given(case=cases())
def test_results_do_not_depend_on_the_cut_of_blocks(storage, view, case):
    answers = []
    # Rows a block: all, one, and about three of the wider storages.
    for block_rows, block_bytes in [(2048, 4 << 20), (1, 1), (1, 200)]:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("widemargin.data.memory.BLOCK_ROWS", block_rows)
            patch.setattr(
                "widemargin.data.memory.LARGE_BLOCK_BYTES", max(block_bytes, 1)
            )
            rows, X, rng = build(storage, view, case._replace(memory_limit=None))
        w, d = rng.normal(size=X.shape[1]), rng.exponential(size=X.shape[0])
        blocks = rows.sweep(_n_blocks)
        answers.append((blocks, rows.matvec(w), rows.rmatvec(d), rows.gram(d)))
    m, n = X.shape
    (one, *whole), (each, *cut), (few, *others) = answers
    assert one == 1
    assert each == m  # also of selected rows: blocks without one count for nothing
    assert few <= each
    scales = (
        np.abs(X) @ np.abs(w),
        np.abs(X).T @ d,
        np.abs(X).T @ (d[:, np.newaxis] * np.abs(X)),
    )
    for other in (cut, others):
        for a, b, scale, terms in zip(other, whole, scales, (n, m, m + 4), strict=True):
            assert_within(a, b, scale, terms)


@on_every_storage
@pytest.mark.parametrize("view", ["plain", "selected-shifted-selected-signed"])
def test_results_do_not_depend_on_the_number_of_threads(storage, view):
    rng = np.random.default_rng(5)
    case = Case(20 * rng.normal(size=(60, 7)), 5, 300)
    answers = []
    for n_jobs in (1, 2, 4):
        make = functools.partial(storage.make, n_jobs=n_jobs)
        rows, X, rng = build(storage._replace(make=make), view, case)
        blocks = make(case.X, memory_limit=case.memory_limit).sweep(_n_blocks)
        assert blocks > 8  # more than there are lanes
        w, d = rng.normal(size=X.shape[1]), rng.exponential(size=X.shape[0])
        answers.append((rows.matvec(w), rows.rmatvec(d), rows.gram(d), *rows.moments))
    for answer in answers[1:]:
        for a, b in zip(answers[0], answer, strict=True):
            np.testing.assert_array_equal(a, b)


def test_several_threads_do_run_the_blocks():
    meeting = threading.Barrier(3, timeout=20)  # a single thread would wait in vain
    rows = as_rows(np.ones((3, 1)), n_jobs=3, memory_limit=1)
    assert rows.sweep(lambda block, part: meeting.wait() * 0 + 1) == 3


def test_sums_are_kept_in_the_order_of_rows():
    rows = as_rows(np.arange(100.0)[:, np.newaxis], n_jobs=4, memory_limit=1)
    assert rows.sweep(lambda block, part: [float(block[0, 0])]) == list(range(100))


# -- row vectors -----------------------------------------------------------------------


def _step(block, part, w, factor):
    part.alpha += block @ w
    part.beta[...] = factor * part.alpha[:, np.newaxis]
    part.flag = part.alpha > 0
    return float(part.alpha.sum())


def _scale(part, factor):
    part.alpha *= factor
    return len(part.alpha), part.alpha.max()


@on_some_storages
@on_every_view
def test_row_vectors_are_updated_where_they_are(storage, view):
    rng = np.random.default_rng(1)
    rows, X, rng = build(storage, view, Case(rng.normal(size=(30, 4)), 1, 1000))
    m, n = X.shape
    start, w = rng.normal(size=m), rng.normal(size=n)
    given = start.copy()
    state = rows.state(alpha=given, beta=np.zeros((m, 2)), flag=np.zeros(m, dtype=bool))
    given[:] = np.nan  # a copy was made
    alpha = rows.sweep(_step, state, w, 2.0)
    expected = start + X @ w
    scale = np.abs(start) + np.abs(X) @ np.abs(w)
    assert_within(state.alpha, expected, scale, n + 1)
    assert_within(alpha, expected.sum(), scale.sum(), m + n + 1)
    np.testing.assert_array_equal(state.beta, 2.0 * np.stack([state.alpha] * 2, axis=1))
    np.testing.assert_array_equal(state.flag, state.alpha > 0)
    assert state.flag.dtype == np.bool_

    before, sweeps = np.array(state.alpha), rows.sweeps
    assert state.sweep(_scale, -2.0)[0] == m
    np.testing.assert_array_equal(state.alpha, -2.0 * before)
    assert rows.sweeps == sweeps  # the data was not read


def _move(part):
    part.b = part.a
    part.a = 0.0


@on_some_storages
@pytest.mark.parametrize("view", ["plain", "signed-selected", "selected-twice"])
def test_joined_row_vectors_are_the_same_vectors(storage, view):
    rng = np.random.default_rng(2)
    rows, X, rng = build(storage, view, Case(rng.normal(size=(30, 4)), 2, 1000))
    m = X.shape[0]
    a = rows.state(a=np.arange(m), c=1.0)
    b = rows.state(b=np.zeros(m), c=2.0)
    both = a.join(b)
    np.testing.assert_array_equal(both.c, np.full(m, 2.0))  # the second one's
    both.sweep(_move)
    np.testing.assert_array_equal(b.b, np.arange(m))
    np.testing.assert_array_equal(a.a, np.zeros(m))
    assert a.a.dtype.kind == "i"
    b.b = np.arange(m) + 1.0
    np.testing.assert_array_equal(both.b, np.arange(m) + 1.0)
    both.c = 5
    np.testing.assert_array_equal(b.c, np.full(m, 5.0))
    renamed = b.prefixed("x.")
    np.testing.assert_array_equal(getattr(renamed, "x.b"), b.b)
    for state in (both, renamed):
        with pytest.raises(AttributeError, match="no row vector named 'd'"):
            state.d
    with pytest.raises(AttributeError):
        b.d = 1.0


@on_some_storages
@pytest.mark.parametrize("view", ["plain", "selected"])
def test_a_vector_that_is_a_copy_cannot_be_written_to(storage, view):
    rows, X, _ = build(storage, view, Case(np.eye(6, 3), 7, None))
    state = rows.state(alpha=0.0)
    if view == "plain" and storage.name != "process":
        state.alpha[0] = 1.0
        assert state.alpha[0] == 1.0
    else:
        with pytest.raises(ValueError, match="read-only"):
            state.alpha[0] = 1.0
    state.alpha = np.arange(X.shape[0])
    np.testing.assert_array_equal(state.alpha, np.arange(X.shape[0]))


def ones(storage, view, m):
    """Rows of two ones, as they are or selected from more."""
    if view == "plain":
        return storage.make(np.ones((m, 2)))
    return storage.make(np.ones((m + 2, 2))).select(np.arange(m + 2) > 1)


@on_some_storages
@pytest.mark.parametrize("view", ["plain", "selected"])
@pytest.mark.parametrize(
    ("vectors", "message"),
    [
        ({"a": np.zeros(3)}, "a must have length 6. Got shape \\(3,\\) instead."),
        (
            {"a": np.zeros((7, 6))},
            "a must have length 6. Got shape \\(7, 6\\) instead.",
        ),
        ({"a": ["x"] * 6}, "a must hold real numbers. Got dtype <U1 instead."),
        ({"a": 1j}, "a must hold real numbers. Got dtype complex128 instead."),
        ({"join": 0.0}, "must have another name than 'join'"),
        ({"_a": 0.0}, "must have another name than '_a'"),
    ],
)
def test_bad_row_vectors_are_refused(storage, view, vectors, message):
    rows = ones(storage, view, 6)
    with pytest.raises(ValueError, match=message):
        rows.state(**vectors)


def test_the_state_of_other_rows_is_refused_by_selected_rows():
    rows = as_rows(np.ones((7, 2)))
    half = rows.select(np.arange(7) > 3)
    with pytest.raises(TypeError, match="must be made by their `state`"):
        half.sweep(_step, rows.state(alpha=0.0), np.ones(2), 1.0)
    with pytest.raises(TypeError, match="must be made by their `state`"):
        half.state(alpha=0.0).join(rows.state(beta=0.0))


# -- the weighted threshold ------------------------------------------------------------


def _keys(part):
    return part.key, part.weight


def reference_threshold(keys, weights, target):
    order = np.argsort(keys, kind="stable")
    reached = np.flatnonzero(np.cumsum(weights[order]) >= target)
    return keys[order][reached[0] if reached.size else -1]


def thresholds(rows, keys, weights, targets, sorted_keys, bins):
    state = rows.state(key=keys, weight=weights)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("widemargin.data.state.SORTED_KEYS", sorted_keys)
        patch.setattr("widemargin.data.state.THRESHOLD_BINS", bins)
        return [state.threshold(_keys, target) for target in targets]


floats = st.floats(allow_nan=False) | st.sampled_from(
    [0.0, -0.0, 1.0, -1.0, math.inf, -math.inf, 5e-324, -5e-324, 1.8e308, -1.8e308]
)


@settings(max_examples=200)
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
    for target, t in zip(targets, found, strict=True):
        assert t == reference_threshold(keys, weights, target)
        assert t in keys


@settings(max_examples=50)
@given(seed=st.integers(0, 2**32 - 1), sorted_keys=st.sampled_from([0, 5, 4096]))
def test_threshold_of_rounded_weights(seed, sorted_keys):
    rng = np.random.default_rng(seed)
    m = 60
    keys, weights = rng.integers(0, 20, m) / 7.0, rng.exponential(size=m)
    rows = as_rows(np.ones((m, 1)), memory_limit=1)
    targets = [*np.cumsum(weights)[[0, 30, 59]], weights.sum() * 0.3]
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
        rows.state(**vectors).threshold(_keys, 3.0)


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


# -- reading: how often, from where, how much memory -----------------------------------


@on_some_storages
@on_every_view
def test_reads_are_counted(storage, view):
    rows, X, _ = build(storage, view, Case(np.arange(24.0).reshape(8, 3), 3, None))
    m, n = X.shape
    assert rows.sweeps == 0
    rows.matvec(np.ones(n))
    assert rows.sweeps == 1
    rows.rmatvec(np.ones(m))
    rows.gram(np.ones(m))
    rows.gram(np.ones(m), np.zeros(m, dtype=bool))
    assert rows.sweeps == 4
    rows.moments
    rows.moments
    assert rows.sweeps == 5
    state = rows.state(key=0.0, weight=1.0)
    state.threshold(_keys, 2.0)
    state.sweep(_keys_max)
    assert rows.sweeps == 5


def _keys_max(part):
    return float(part.key.max())


def _memory(block, part):
    arrays = [block] if isinstance(block, np.ndarray) else [block.data, block.indices]
    return [arrays]


def as_np_matrix(X):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PendingDeprecationWarning)
        return np.asmatrix(X)


@pytest.mark.parametrize("memory_limit", [None, 1])
def test_blocks_are_views_of_dense_data(memory_limit):
    X = np.random.default_rng(0).normal(size=(20, 3))
    frozen = X.copy()
    frozen.flags.writeable = False
    for data in (
        X,
        np.asfortranarray(X),
        X.astype(np.float32),
        (10 * X).astype(np.int8),
        X[::2, ::2],
        X[::-1],
        frozen,
        memory_mapped(X),
        np.broadcast_to(X[0], X.shape),
        as_np_matrix(X),
        pd.DataFrame(X),
    ):
        rows = as_rows(data, memory_limit=memory_limit)
        memory = rows.sweep(_memory)
        assert all(np.shares_memory(block, data) for (block,) in memory)
        assert sum(len(block) for (block,) in memory) == len(data)


@pytest.mark.parametrize("memory_limit", [None, 1])
@pytest.mark.parametrize("index", [np.int32, np.int64])
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int16])
def test_blocks_are_views_of_sparse_data(memory_limit, index, dtype):
    X = sparse.random_array((20, 5), density=0.5, rng=0, format="csr").astype(dtype)
    X.data[:] = 1
    X = csr(X, indices=X.indices.astype(index), indptr=X.indptr.astype(index))
    before = X.data.copy(), X.indices.copy(), X.indptr.copy()
    rows = as_rows(X, memory_limit=memory_limit)
    for data, indices in rows.sweep(_memory):
        assert data.size == 0 or np.shares_memory(data, X.data)
        assert indices.size == 0 or np.shares_memory(indices, X.indices)
    rows.gram(np.ones(20))
    rows.moments
    for array, kept in zip((X.data, X.indices, X.indptr), before, strict=True):
        np.testing.assert_array_equal(array, kept)


def peak_memory(f):
    """Value of f, and bytes that it had allocated at once."""
    f()  # what is kept for the next call: thread pools, scipy's own
    tracemalloc.start()
    try:
        value = f()
        return value, tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_a_sweep_over_a_large_file_needs_little_memory():
    m, n, dtype = 400_000, 40, np.float32
    name = memory_mapped(np.ones((1, 1))).filename  # in the folder of the tests
    X = np.lib.format.open_memmap(name, mode="w+", dtype=dtype, shape=(m, n))  # 61 MiB
    X[::1000] = 1.0
    X.flush()
    rows = as_rows(np.load(name, mmap_mode="r"), n_jobs=1)
    # A block of 4 MiB of float32 is turned into float64 and scaled: 16 MiB, and the
    # vectors that go in and out.
    for read, vectors in [
        (lambda: rows.rmatvec(np.ones(m)), 2),
        (lambda: rows.matvec(np.ones(n)), 2),
        (lambda: rows.gram(np.ones(m)), 2),
    ]:
        value, peak = peak_memory(read)
        assert value.sum() > 0
        assert peak <= 20 * 2**20 + vectors * 8 * m


def test_wide_rows_are_cut_into_blocks_that_fit():
    # Not the 2048 rows of narrow data: 2 GiB a block in float64.
    X = np.broadcast_to(np.float32(1.0), (3000, 130_000))
    sizes = as_rows(X).sweep(lambda block, part: [block.nbytes])
    assert max(sizes) <= LARGE_BLOCK_BYTES


def test_a_million_columns_need_no_square_of_them():
    n = 10**6
    X = sparse.random_array((200, n), density=1e-5, rng=0, format="csr")
    rows = as_rows(X, n_jobs=1)
    w, v = np.random.default_rng(0).normal(size=n), np.ones(200)

    def read():
        A = rows.signed(np.ones(200))
        return rows.matvec(w), rows.rmatvec(v), rows.moments, A.rmatvec(v)

    (Xw, Xv, moments, _), peak = peak_memory(read)
    assert_within(Xw, X @ w, abs(X) @ np.abs(w), n)
    assert_within(Xv, X.T @ v, abs(X).T @ v, 200)
    assert_within(moments.mean, X.mean(axis=0), abs(X).mean(axis=0), 201)
    assert peak <= 20 * 8 * n


# -- data of unusual types -------------------------------------------------------------


@pytest.mark.parametrize(
    "convert",
    [
        lambda X: X.tolist(),
        lambda X: X.astype(bool),
        lambda X: X.astype(np.float16),
        lambda X: X.astype(">f8"),
        lambda X: X.astype(">i4"),
        lambda X: X.astype(np.longdouble),
        lambda X: X.astype(object),
        lambda X: X.astype(np.uint64),
        as_np_matrix,
        np.ma.masked_array,
        pd.DataFrame,
        lambda X: pd.DataFrame(X).astype({0: "Int64", 1: "float32"}),
        lambda X: pl.DataFrame(X),
        lambda X: sparse.csr_array(X.astype(bool)),
        lambda X: sparse.csr_array(X.astype(np.longdouble)),
        lambda X: csr(sparse.csr_array(X), data=np.repeat(X[X > 0], 2)[::2]),
        lambda X: csr(
            sparse.csr_array(X), indices=sparse.csr_array(X).indices.astype(">i8")
        ),
        lambda X: csr(
            sparse.csr_array(X), indices=sparse.csr_array(X).indices.astype("u2")
        ),
        sparse.bsr_array,
        sparse.lil_array,
        sparse.dok_array,
        sparse.dia_array,
    ],
)
def test_other_types_are_converted(convert):
    X = np.array([[1.0, 0.0, 1.0], [0.0, 1.0, 1.0]])
    rows = as_rows(convert(X))
    d = np.array([1.0, 4.0])
    np.testing.assert_array_equal(rows.gram(d), X.T @ (d[:, np.newaxis] * X))
    np.testing.assert_array_equal(rows.matvec([1.0, 2.0, 4.0]), X @ [1.0, 2.0, 4.0])
    np.testing.assert_array_equal(linalg.dense(rows.take([1])), X[[1]])


def test_arguments_of_small_types_are_summed_in_float64():
    X = np.full((300, 2), 200, dtype=np.uint8)
    for data in (X, sparse.csr_array(X)):
        rows = as_rows(data)
        np.testing.assert_array_equal(
            rows.rmatvec(np.full(300, 2, np.uint8)), [120000.0] * 2
        )
        np.testing.assert_array_equal(
            rows.matvec(np.array([2, 2], np.uint8)), [800.0] * 300
        )
    X = np.full((2, 1), 2.0**24 + 2, dtype=np.float32)
    answer = as_rows(X).rmatvec(np.array([1.0, 2.0**-24], dtype=np.float32))
    assert answer[0] == 2.0**24 + 3.0 + 2.0**-23


@pytest.mark.parametrize("index", [np.int32, np.int64])
def test_entries_that_repeat_add_up(index):
    # 100 + 100 is none of int8: a stored 200 would be.
    for dtype in (np.int8, np.float32, np.float64):
        X = csr(
            sparse.csr_array((2, 2)),
            data=np.array([100, 3, 100, 1], dtype=dtype),
            indices=np.array([1, 0, 1, 1], dtype=index),
            indptr=np.array([0, 3, 4], dtype=index),
        )
        D = np.array([[3.0, 200.0], [0.0, 1.0]])
        for dense_from in (0.0, 2.0):  # always, never through a dense block
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(linalg, "DENSE_GRAM_DENSITY", dense_from)
                np.testing.assert_array_equal(as_rows(X).gram(np.ones(2)), D.T @ D)
        rows = as_rows(X)
        np.testing.assert_array_equal(rows.moments.mean, D.mean(axis=0))
        np.testing.assert_array_equal(rows.moments.std, D.std(axis=0))
        state = rows.state(d=1.0)
        np.testing.assert_array_equal(rows.sweep(_diagonal, state), (D * D).sum(axis=0))


@pytest.mark.parametrize("shape", [(1, 1), (1, 5), (5, 1)])
@pytest.mark.parametrize("convert", [np.array, sparse.csr_array, ProcessRows])
def test_the_smallest_shapes(shape, convert):
    X = np.arange(1.0, 1.0 + np.prod(shape)).reshape(shape)
    rows = as_rows(convert(X))
    m, n = shape
    np.testing.assert_array_equal(rows.matvec(np.ones(n)), X.sum(axis=1))
    np.testing.assert_array_equal(rows.rmatvec(np.ones(m)), X.sum(axis=0))
    assert rows.matvec(np.ones((n, 0))).shape == (m, 0)
    assert rows.rmatvec(np.ones((m, 0))).shape == (n, 0)
    np.testing.assert_array_equal(
        rows.signed(-np.ones(m)).matvec(np.ones(n + 1)), -1 - X.sum(axis=1)
    )
    np.testing.assert_array_equal(rows.gram(np.zeros(m)), np.zeros((n, n)))


@pytest.mark.parametrize("convert", [np.array, sparse.csr_array])
def test_products_of_no_rows(convert):
    none = convert(np.ones((4, 3)))[np.array([], dtype=int)]
    for block in (none, linalg.SignedBlock(none, np.ones(0), True)):
        n = block.shape[1]
        np.testing.assert_array_equal(linalg.gram(block, np.ones(0)), np.zeros((n, n)))
        np.testing.assert_array_equal(
            linalg.gram_diagonal(block, np.ones(0)), np.zeros(n)
        )
        np.testing.assert_array_equal(
            linalg.rmatvec(block, np.ones((0, 2))), np.zeros((n, 2))
        )
        assert linalg.matvec(block, np.ones(n)).shape == (0,)
        assert linalg.column_sums(block)[0].shape == (n,)


# -- bad arguments ---------------------------------------------------------------------

NO_MATRIX = r"X must be a matrix of real numbers \(m rows, n columns\). Got "


@pytest.mark.parametrize(
    ("X", "message"),
    [
        (np.ones(3), NO_MATRIX + r"dtype float64 in 1 dimension\(s\) instead."),
        (np.ones((1, 2, 3)), NO_MATRIX + r"dtype float64 in 3 dimension\(s\) instead."),
        (3.0, NO_MATRIX + r"dtype float64 in 0 dimension\(s\) instead."),
        (None, NO_MATRIX + r"dtype object in 0 dimension\(s\) instead."),
        (np.ones((2, 2), complex), NO_MATRIX + "dtype complex128 in 2"),
        (np.array([["a", "b"]]), NO_MATRIX + "dtype <U1 in 2"),
        (np.zeros((1, 1), "M8[s]"), NO_MATRIX + r"dtype datetime64\[s\] in 2"),
        (sparse.coo_array(np.ones(3)), NO_MATRIX + "dtype float64 in 1"),
        (sparse.csr_array([[1j]]), NO_MATRIX + "dtype complex128 in 2"),
        ([[1.0, 2.0], [3.0]], NO_MATRIX + "rows of different lengths instead."),
        (
            pd.DataFrame({"a": ["x"]}).astype(object),
            NO_MATRIX + "an entry that is no number",
        ),
        (pd.DataFrame({"a": [pd.NA]}), NO_MATRIX + "an entry that is no number"),
        (np.array([[1j]], dtype=object), NO_MATRIX + "an entry that is no number"),
        (np.ones((0, 3)), r"at least one row and one column. Got shape \(0, 3\)"),
        (
            sparse.csr_array((3, 0)),
            r"at least one row and one column. Got shape \(3, 0\)",
        ),
        (
            np.ma.masked_array([[1.0, 2.0]], [[True, False]]),
            "X must have no masked entries",
        ),
    ],
)
def test_what_is_no_matrix_is_refused(X, message):
    with pytest.raises(ValueError, match=message):
        as_rows(X)


def broken(format="csr", **arrays):
    """The 3 x 2 matrix [[1, 0], [0, 2], [3, 4]], with some of its arrays replaced."""
    X = sparse.csr_array([[1.0, 0.0], [0.0, 2.0], [3.0, 4.0]]).asformat(format)
    for name, array in arrays.items():
        setattr(X, name, np.array(array))
    return X


@pytest.mark.parametrize(
    ("X", "got"),
    [
        (broken(indices=[0, 2, 0, 1]), "index 2 at entry 1"),
        (broken(indices=[0, 1, -1, 1]), "index -1 at entry 2"),
        (broken(indices=np.int32([0, 1, 0, -(2**31)])), "index -2147483648 at entry 3"),
        (
            broken(indices=np.uint64([0, 1, 0, 2**63])),
            "index 9223372036854775808 at entry",
        ),
        (broken(indices=np.int16([0, 1, 0, -3])), "index -3 at entry 3"),
        (broken(indices=np.array([0, 1, 0, 2], dtype=">i4")), "index 2 at entry 3"),
        (broken(indices=[0, 1, 0]), "3 indices for 4 entries"),
        (broken(data=[1.0, 2.0]), "4 indices for 2 entries"),
        (broken(indices=[0.0, 1.0, 0.0, 1.0]), "indices of dtype int32 and float64"),
        (broken(indices=[[0, 1], [0, 1]]), "4 indices for 4 entries"),
        (
            broken(indptr=[0, 3, 2, 4]),
            "an indptr that does not rise from 0 to at most 4",
        ),
        (
            broken(indptr=[0, 1, 2, 5]),
            "an indptr that does not rise from 0 to at most 4",
        ),
        (
            broken(indptr=[1, 1, 2, 4]),
            "an indptr that does not rise from 0 to at most 4",
        ),
        (
            broken(indptr=[-5, 1, 2, 4]),
            "an indptr that does not rise from 0 to at most 4",
        ),
        (
            broken(indptr=[0, -9, 2, 4]),
            "an indptr that does not rise from 0 to at most 4",
        ),
        (broken(indptr=np.uint32([0, 3, 2, 4])), "an indptr that does not rise"),
        (broken(indptr=[0, 1, 4]), r"an indptr of shape \(3,\)"),
        (broken(indptr=[0, 1, 2, 3, 4]), r"an indptr of shape \(5,\)"),
        (broken("csc", indices=[0, 2, 1, 3]), "index 3 at entry 3"),
        (broken("csc", indptr=[0, 9, 4]), "an indptr that does not rise"),
        (broken("bsr", indices=[0, 2, 0, 7]), "index 2 at entry 1"),
    ],
)
def test_broken_sparse_matrices_are_refused(X, got):
    message = f"X must be a valid {X.format.upper()} matrix of shape .3, 2.. Got {got}"
    with pytest.raises(ValueError, match=message):
        as_rows(X)


def test_broken_coordinates_are_refused():
    X = sparse.coo_array(np.eye(2))
    X.coords = (np.array([0, 7]), np.array([0, 1]))
    with pytest.raises(ValueError, match="index 7 exceeds matrix dimension 2"):
        as_rows(X)


@on_some_storages
@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda r: r.matvec(np.ones(3)),
            r"W must have length 2. Got shape \(3,\) instead.",
        ),
        (lambda r: r.matvec(1.0), r"W must have length 2. Got shape \(\) instead."),
        (
            lambda r: r.matvec(np.ones((2, 1, 1))),
            r"W must have length 2. Got shape \(2, 1, 1\)",
        ),
        (lambda r: r.matvec([1j, 0]), "W must hold real numbers. Got dtype complex128"),
        (lambda r: r.matvec(["a", "b"]), "W must hold real numbers. Got dtype <U1"),
        (
            lambda r: r.rmatvec(np.ones(2)),
            r"V must have length 5. Got shape \(2,\) instead.",
        ),
        (
            lambda r: r.gram(np.ones(2)),
            r"d must have length 5. Got shape \(2,\) instead.",
        ),
        (
            lambda r: r.gram(np.ones((5, 1))),
            r"d must have length 5. Got shape \(5, 1\)",
        ),
        (
            lambda r: r.gram([1, 2, -3, 4, 5]),
            "d must be nonnegative. Got -3.0 instead.",
        ),
        (
            lambda r: r.gram([1, 2, np.nan, 4, 5]),
            "d must be nonnegative. Got nan instead.",
        ),
        (
            lambda r: r.gram(np.ones(5), np.ones(5)),
            "active must hold bools. Got dtype float64",
        ),
        (
            lambda r: r.gram(np.ones(5), [True]),
            r"active must have length 5. Got shape \(1,\)",
        ),
        (
            lambda r: r.signed([1, -1, 1]),
            r"y must have length 5. Got shape \(3,\) instead.",
        ),
        (
            lambda r: r.signed(np.ones((5, 1))),
            r"y must have length 5. Got shape \(5, 1\)",
        ),
        (
            lambda r: r.signed([1, -1, 0, 1, 1]),
            r"y must hold \+1 and -1 only. Got 0.0 instead.",
        ),
        (lambda r: r.signed([1, -1, np.nan, 1, 1]), "y must hold .* Got nan instead."),
        (lambda r: r.select([1, 0, 1, 1, 0]), "mask must hold bools. Got dtype int64"),
        (
            lambda r: r.select([True, False]),
            r"mask must have length 5. Got shape \(2,\)",
        ),
        (
            lambda r: r.select(np.ones((5, 1), bool)),
            r"mask must have length 5. Got shape",
        ),
        (lambda r: r.select(np.zeros(5, bool)), "mask must select at least one row."),
        (
            lambda r: r.take([0, 5]),
            r"index must be in the range \[0, 5\). Got 5 instead.",
        ),
        (
            lambda r: r.take([-1]),
            r"index must be in the range \[0, 5\). Got -1 instead.",
        ),
        (
            lambda r: r.take(3),
            r"index must be a vector of integers. Got .* in 0 dimension",
        ),
        (
            lambda r: r.take([0.0]),
            "index must be a vector of integers. Got dtype float64",
        ),
        (
            lambda r: r.take([True, False]),
            "index must be a vector of integers. Got dtype bool",
        ),
    ],
)
@pytest.mark.parametrize("view", ["plain", "selected"])
def test_bad_arguments_are_refused(storage, view, call, message):
    with pytest.raises(ValueError, match=message):
        call(ones(storage, view, 5))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_jobs": 0}, "'n_jobs' parameter of as_rows must be a nonzero int or None"),
        (
            {"n_jobs": 1.5},
            "'n_jobs' parameter of as_rows must be a nonzero int or None",
        ),
        (
            {"memory_limit": 0},
            "'memory_limit' parameter of as_rows must be an int in the",
        ),
        (
            {"memory_limit": -5},
            "'memory_limit' parameter of as_rows must be an int in the",
        ),
    ],
)
def test_bad_options_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        as_rows(np.ones((2, 2)), **options)


def test_the_mask_and_the_signs_of_a_view_are_its_own():
    X = np.arange(8.0).reshape(4, 2)
    mask, y = np.array([True, False, True, True]), np.array([1.0, -1.0, 1.0, 1.0])
    half, A = as_rows(X).select(mask), as_rows(X).signed(y, intercept=False)
    mask[:], y[:] = False, 0.0
    np.testing.assert_array_equal(half.matvec([1.0, 1.0]), [1.0, 9.0, 13.0])
    np.testing.assert_array_equal(half.take([1, 2]), X[[2, 3]])
    np.testing.assert_array_equal(A.matvec([1.0, 1.0]), [1.0, -5.0, 9.0, 13.0])
    np.testing.assert_array_equal(A.take([1]), -X[[1]])


@pytest.mark.parametrize("convert", [np.array, sparse.csr_array])
def test_a_block_refuses_a_vector_of_another_length(convert):
    # The C++ core takes the length for granted.
    rows = as_rows(convert(np.ones((4, 3))))
    for view in (
        rows,
        rows.signed(np.ones(4)),
        rows.signed(np.ones(4), intercept=False),
    ):
        with pytest.raises((ValueError, IndexError)):
            view.sweep(lambda block, part: block @ np.ones(1))
        with pytest.raises(ValueError, match=r"."):
            view.sweep(lambda block, part: block.T @ np.ones(2))


# -- NaN and infinity ------------------------------------------------------------------

FLOATS = [s for s in STORAGES if s.exact(np.full((1, 1), 0.5)) == 0.5]


@pytest.mark.parametrize("storage", FLOATS, ids=lambda s: s.name)
@pytest.mark.parametrize("memory_limit", [None, 1])
@pytest.mark.parametrize(
    ("value", "name"), [(np.nan, "NaN"), (np.inf, "infinity"), (-np.inf, "-infinity")]
)
def test_nan_and_infinity_are_found(storage, memory_limit, value, name):
    X = np.ones((9, 4))
    X[6, 2] = X[6, 3] = X[8, 0] = value
    found = f"X must hold finite numbers .* Got {name} at row 6, column 2 instead."
    rows = storage.make(X.copy(), memory_limit=memory_limit)
    y = np.array([1.0] * 6 + [-1.0] * 3)
    even = np.arange(9) % 2 == 0
    for view in (
        rows,
        rows.signed(y),
        rows.mapped(Shifted(np.ones(4))),
        rows.select(even),  # row 3 of the selection is row 6 of the data
        rows.signed(y).select(even),
        rows.select(even).signed(y[even]),
        rows.select(even).select(np.arange(5) > 1),
        rows.select(even).mapped(Shifted(np.ones(4))),
    ):
        for refuse in (view.refuse_nonfinite, lambda view=view: view.moments):
            with pytest.raises(ValueError, match=found):
                refuse()
    finite = rows.select(np.arange(9) % 4 == 1)
    finite.refuse_nonfinite()
    np.testing.assert_array_equal(finite.moments.mean, np.ones(4))


@on_some_storages
def test_what_a_feature_map_breaks_is_its_own(storage):
    rows = storage.make(np.ones((9, 4))).select(np.arange(9) > 3)
    broken = rows.mapped(Shifted(np.array([0.0, np.inf, 0.0, 0.0])))
    found = "X after its feature map must hold finite .* -infinity at row 4, column 1"
    for view in (broken, broken.signed(np.ones(5))):
        with pytest.raises(ValueError, match=found):
            view.refuse_nonfinite()


@pytest.mark.parametrize("convert", [np.array, sparse.csr_array])
def test_numbers_with_infinite_squares_are_refused(convert):
    X = convert([[1.0, 1e200], [1.0, 1.0]])
    with pytest.raises(ValueError, match="squares are finite. Column 1 is too large."):
        as_rows(X).moments
    X = convert([[1e308, 1.0], [1e308, 1.0]])
    with pytest.raises(ValueError, match="squares are finite. Column 0 is too large."):
        as_rows(X).moments


# -- interruptions, errors, threads ----------------------------------------------------


def usable(rows):
    np.testing.assert_array_equal(rows.rmatvec(np.ones(rows.shape[0])), [rows.shape[0]])


def interrupt_main():
    if sys.platform == "win32":
        signal.raise_signal(signal.SIGINT)
    else:  # where Ctrl-C arrives
        signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)


@pytest.mark.parametrize("how", ["raised", "signal"])
@pytest.mark.parametrize("n_jobs", [1, 4])
def test_ctrl_c_stops_all_threads_and_leaves_the_rows_usable(how, n_jobs):
    m = 400
    rows = as_rows(np.ones((m, 1)), n_jobs=n_jobs, memory_limit=1)
    begun = []

    def slow(block, part):
        begun.append(threading.get_ident())
        if len(begun) == 4:
            if how == "raised":
                raise KeyboardInterrupt
            interrupt_main()
        time.sleep(0.02)  # all blocks would take 2 s on four threads

    limits = [library["num_threads"] for library in threadpoolctl.threadpool_info()]
    with pytest.raises(KeyboardInterrupt):
        rows.sweep(slow)
    count = len(begun)
    assert count < m
    time.sleep(0.1)
    assert len(begun) == count  # no thread goes on behind our back
    assert limits == [
        library["num_threads"] for library in threadpoolctl.threadpool_info()
    ]
    usable(rows)


@pytest.mark.parametrize("n_jobs", [1, 4])
def test_an_error_stops_the_sweep_and_comes_out_as_it_is(n_jobs):
    rows = as_rows(np.ones((400, 1)), n_jobs=n_jobs, memory_limit=1)
    # Where the fourth of eight lanes begins: no lane before must run to its end.
    state, begun = rows.state(row=np.arange(400), bad=np.arange(400) == 150), []

    def failing(block, part):
        begun.append(part.row[0])
        if part.bad[0]:
            raise ZeroDivisionError("row 150")
        if n_jobs > 1:
            time.sleep(0.02)  # a lane takes a second

    with pytest.raises(ZeroDivisionError, match="row 150"):
        rows.sweep(failing, state)
    assert len(begun) <= (151 if n_jobs == 1 else 150)
    usable(rows)


def _fail(block, part):
    raise ZeroDivisionError("not here")


def _interrupt(part):
    raise KeyboardInterrupt


def test_errors_come_back_from_another_process():
    rows = ProcessRows(np.ones((5, 1)))
    with pytest.raises(ZeroDivisionError, match="not here"):
        rows.sweep(_fail)
    with pytest.raises(KeyboardInterrupt):
        rows.state(a=0.0).sweep(_interrupt)
    usable(rows)


def blas_threads():
    found = threadpoolctl.threadpool_info()
    return [
        library["num_threads"] for library in found if library["user_api"] == "blas"
    ]


def test_blas_runs_on_one_thread_within_sweeps_only():
    before = blas_threads()
    rows = as_rows(np.ones((40, 1)), n_jobs=2, memory_limit=1)
    within = rows.sweep(lambda block, part: blas_threads())
    assert set(within) <= {1}
    assert blas_threads() == before
    with pytest.raises(ZeroDivisionError):
        rows.sweep(_fail)
    assert blas_threads() == before


def test_blas_gets_its_threads_back_when_the_last_sweep_ends():
    if max(blas_threads(), default=1) == 1:
        pytest.skip("BLAS has one thread anyway")
    before = blas_threads()
    as_rows(np.ones((1, 1))).matvec([1.0])  # the first thread to limit BLAS is this one
    rows = as_rows(np.ones((1, 1)), n_jobs=1)

    def sweep(begun, end):
        return rows.sweep(lambda block, part: begun.set() or end.wait(20))

    (began, end), (began_later, end_later) = [
        (threading.Event(), threading.Event()) for _ in range(2)
    ]
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        first = pool.submit(sweep, began, end)
        assert began.wait(20)
        assert set(blas_threads()) == {1}
        # Rows that are made now may use all threads nevertheless.
        assert n_threads(None) == max(before)
        later = pool.submit(sweep, began_later, end_later)
        assert began_later.wait(20)
        end.set()
        assert first.result(20)
        assert set(blas_threads()) == {1}
        end_later.set()
        assert later.result(20)
    assert blas_threads() == before


def test_as_many_threads_as_blas_may_use():
    with threadpoolctl.threadpool_limits(1, user_api="blas"):
        assert n_threads(None) == 1
        assert n_threads(-1) == 1
        assert n_threads(3) == 3


def test_numpy_errors_are_handled_as_where_the_sweep_began():
    for make in (as_rows, ProcessRows):
        rows = make(np.zeros((40, 1)), n_jobs=2, memory_limit=1)
        with np.errstate(divide="raise"), pytest.raises(FloatingPointError):
            rows.sweep(_divide)
        with np.errstate(divide="ignore"):
            assert rows.sweep(_divide) == math.inf


def _divide(block, part):
    return float((1.0 / block).sum())


def _forked(rows, queue):
    queue.put(rows.rmatvec(np.ones(rows.shape[0])))


@pytest.mark.skipif(sys.platform != "linux", reason="forks")
def test_rows_can_be_used_after_a_fork():
    rows = as_rows(np.ones((40, 1)), n_jobs=2, memory_limit=1)
    usable(rows)  # now there are threads, which the fork has not
    context = multiprocessing.get_context("fork")
    queue = context.Queue()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of forks with threads
        child = context.Process(target=_forked, args=(rows, queue), daemon=True)
        child.start()
    np.testing.assert_array_equal(queue.get(timeout=20), [40.0])
    child.join(20)


def test_rows_and_states_can_be_copied_and_pickled():
    rows = as_rows(np.ones((40, 1)), n_jobs=2, memory_limit=1)
    half = rows.select(np.arange(40) < 20)
    usable(half)
    for copied in (copy.copy, copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))):
        for view in (rows, half):
            usable(copied(view))
            state = copied(view.state(alpha=2.0))
            assert state.sweep(_sum_alpha) == 2.0 * view.shape[0]


def _sum_alpha(part):
    return float(part.alpha.sum())


# -- the process storage: nothing of length m travels ----------------------------------


def clusters(m):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(m, 5))
    y = np.where(X @ rng.normal(size=5) + 0.5 * rng.normal(size=m) > 0, 1.0, -1.0)
    return X, y


SOLVERS = {
    "all rows": (InteriorPoint(), 100),
    # Correctors are kept or not as the data will have it: one more sweep, 1 kB.
    "corrector": (InteriorPoint(corrector=True), 2_000),
    # Two thresholds of at most twelve sweeps, 2 kB each, and twenty steps of conjugate
    # gradients, 1 kB each, as the data will have it.
    "some rows": (
        InteriorPoint(reduction="omega", max_active=0.6, random_state=0),
        70_000,
    ),
}


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
@pytest.mark.parametrize("holes", [False, True])
@pytest.mark.parametrize("solver", SOLVERS)
def test_an_iteration_ships_nothing_of_length_m(monkeypatch, loss, holes, solver):
    monkeypatch.setattr("widemargin.data.state.SORTED_KEYS", 16)
    monkeypatch.setattr("widemargin.data.state.THRESHOLD_BINS", 64)
    solver, slack = SOLVERS[solver]
    shipped = []
    for m in (2000, 16000):
        X, y = clusters(m)
        C = np.where(np.arange(m) % 10 == 0, 0.0, 1.0) if holes else 1.0
        there, iterations = shipped_by_iterations(ProcessRows(X), y, C, loss, solver)
        assert len(iterations) >= 4
        assert {name for counts in iterations for name in counts} <= {"sweep", "store"}
        shipped.append(max(counts.total() for counts in iterations))

        here = solve(Problem(X, y, C, loss), solver, tol=1e-6)
        assert there.status == here.status == "solved"
        assert len(there.trace) == len(here.trace)
        for a, b in [
            (there.certificate.primal, here.certificate.primal),
            (there.certificate.dual, here.certificate.dual),
            (there.w, here.w),
            (there.b, here.b),
            (there.alpha, here.alpha),
        ]:
            np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-9)
    # One vector of length m more, once in an iteration, would be 112000 bytes.
    assert abs(shipped[1] - shipped[0]) <= slack


def shipped_by_iterations(rows, y, C, loss, solver):
    """Solution on the process storage, and bytes shipped by purpose and iteration."""
    counter, totals = rows.worker.shipped, []

    def callback(step):
        # From the iteration on that reaches tol, answers are gathered and tried.
        if step.relative_gap > 1e-6:
            totals.append(counter.copy())

    solution = solve(Problem(rows, y, C, loss), solver, tol=1e-6, callback=callback)
    pairs = zip(totals, totals[1:], strict=False)
    return solution, [after - before for before, after in pairs]
