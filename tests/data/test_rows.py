"""The laws of Rows: products and row vectors, on every storage and view."""

import functools
import threading

import numpy as np
import pytest
from hypothesis import given, settings
from scipy import sparse

from tests.cases.pairwise import product
from tests.cases.rows import (
    VIEWS,
    Case,
    assert_within,
    build,
    cases,
    diagonal,
    in_memory,
    name_of,
    on_every_storage,
    on_every_view,
    on_some_storages,
    ones,
)
from tests.cases.waits import HANGS
from tests.conftest import STORAGES
from widemargin import as_rows
from widemargin.numerics import linalg

# -- products --------------------------------------------------------------------------


def products_are_exact_to_rounding_and_adjoint(rows, X, rng):
    m, n = X.shape
    for shape in [(), (2,), (5,)]:  # vectors, thin matrices and others take other paths
        W, V = rng.normal(size=(n, *shape)), rng.normal(size=(m, *shape))
        XW, XV = rows.matvec(W), rows.rmatvec(V)
        assert_within(XW, X @ W, np.abs(X) @ np.abs(W), n)
        assert_within(XV, X.T @ V, np.abs(X).T @ np.abs(V), m)
    w, v = rng.normal(size=n), rng.normal(size=m)
    scale = np.abs(v) @ np.abs(X) @ np.abs(w)
    assert_within(rows.matvec(w) @ v, w @ rows.rmatvec(v), scale, m + n)


def _sparse_gram(block, part):
    if not sparse.issparse(linalg.formed(block)):
        return None
    return linalg.sparse_gram(block, part.d)


def _weights(part):
    return part.d


def products_with_weights(rows, X, rng):
    m, n = X.shape
    y, w = np.where(rng.random(m) < 0.5, -1.0, 1.0), rng.normal(size=n + 1)
    A, state = rows.signed(y), rows.state(d=rng.normal(size=m) * (rng.random(m) < 0.8))
    whole = np.c_[X, np.ones(m)]
    expected = whole.T @ (state.d * (whole @ w))
    scale = np.abs(whole).T @ (np.abs(state.d) * (np.abs(whole) @ np.abs(w)))
    assert_within(A.weighted_product(_weights, state, w), expected, scale, m + n + 4)


def gram_is_the_weighted_product(rows, X, rng):
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
        rows.sweep(diagonal, state), expected.diagonal(), scale.diagonal(), m + 4
    )
    G = rows.sweep(_sparse_gram, state)
    if G is not None:
        assert_within(G.toarray(), expected, scale, m + 4)


def rows_taken_moments_and_repeated_reads(rows, X, rng):
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


LAWS = {
    law.__name__: law
    for law in (
        products_are_exact_to_rounding_and_adjoint,
        products_with_weights,
        gram_is_the_weighted_product,
        rows_taken_moments_and_repeated_reads,
    )
}


@product(ids=name_of, law=LAWS, storage=STORAGES, view=VIEWS)
@settings(max_examples=2)
@given(case=cases())
def test_every_law(law, storage, view, case):
    LAWS[law](*build(storage, view, case))


def _n_blocks(block, part):
    return 1


@pytest.mark.cover(1)
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


@pytest.mark.cover(1)
@on_every_storage
@pytest.mark.parametrize("view", ["plain", "selected-shifted-selected-signed"])
def test_results_do_not_depend_on_the_number_of_threads(storage, view):
    rng = np.random.default_rng(5)
    case = Case(20 * rng.normal(size=(60, 7)), 5, 300)
    answers = []
    for n_jobs in (1, 4):
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
    meeting = threading.Barrier(3, timeout=HANGS)  # a single thread would wait in vain
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
    if view == "plain" and storage.name not in ("process", "stored-int16-scratch"):
        state.alpha[0] = 1.0
        assert state.alpha[0] == 1.0
    else:
        with pytest.raises(ValueError, match="read-only"):
            state.alpha[0] = 1.0
    state.alpha = np.arange(X.shape[0])
    np.testing.assert_array_equal(state.alpha, np.arange(X.shape[0]))


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
