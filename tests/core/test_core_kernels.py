"""Kernel rows, sums and pair steps of the core: what does not fit is refused."""

import itertools

import numpy as np
import pytest
from scipy import sparse

from tests.cases.kernels import on_every_simd
from widemargin import _core
from widemargin.kernels.core_sums import CoreSums, kernel_values
from widemargin.kernels.layout import RBF_BY_DIFFERENCES, Layout
from widemargin.kernels.packed import Batches, Samples, aligned

M, N, COUNT, WIDTH = 70, 5, 3, 128
FORM = (2, 1.0, 0.0, 3)
SQUARES = (RBF_BY_DIFFERENCES, 1.0, 0.0, 3)
NO_FIT = "do not fit each other"
# Of three sparse rows: where they begin and end, and their columns.
BEGIN, END = np.array([0, 2, 2]), np.array([2, 2, 3])
INDICES = np.array([0, 4, 1], np.int32)
ROWS = np.linspace(0, M, M + 1).astype(np.int64)  # of samples with one entry each


def strips(data=WIDTH * N, norms=WIDTH, indptr=None, indices=None, samples=M, n=N):
    arrays = (np.zeros(size, np.float32) for size in (data, norms))
    return _core.strips(*arrays, indptr, indices, samples, n)


def batch(data=COUNT * N, norms=COUNT, begin=None, end=None, indices=None, n=N):
    arrays = (np.zeros(size, np.float32) for size in (data, norms))
    return _core.batch(*arrays, begin, end, indices, n)


def sparse_batch(**changes):
    inside = {"begin": BEGIN, "end": END, "indices": INDICES}
    return batch(**({"data": 3} | inside | changes))


def sparse_strips(**changes):
    inside = {"indptr": ROWS, "indices": np.zeros(M, np.int32)}
    return strips(**({"data": M} | inside | changes))


def kernel_rows(form=FORM, X=strips, Z=batch, begin=0, end=2, **targets):
    out, place, weights, sums = (
        targets.get(name) for name in ("out", "place", "weights", "sums")
    )
    simd = targets.get("simd", -1)
    _core.kernel_rows(form, X(), Z(), begin, end, out, place, weights, sums, simd)


def room(rows=COUNT, width=WIDTH):
    out = aligned((rows, width), np.float32)
    out[:] = 0
    return out


@pytest.mark.parametrize(
    "call",
    [
        lambda: strips(data=WIDTH * N - 1),
        lambda: strips(norms=M),
        lambda: strips(samples=WIDTH + 1),
        lambda: strips(n=N + 1),
        lambda: sparse_strips(indptr=ROWS[:-1]),
        lambda: sparse_strips(indptr=ROWS + 1),
        lambda: sparse_strips(indptr=ROWS[::-1].copy()),
        lambda: sparse_strips(indptr=ROWS - 1),
        lambda: sparse_strips(indices=np.zeros(M - 1, np.int32)),
        lambda: sparse_strips(indices=np.full(M, N, np.int32)),
        lambda: sparse_strips(indices=np.full(M, -1, np.int32)),
        lambda: sparse_strips(indices=None),
        lambda: batch(data=COUNT * N - 1),
        lambda: batch(data=16 * N + 1),
        lambda: sparse_batch(data=2),
        lambda: sparse_batch(begin=BEGIN[:-1]),
        lambda: sparse_batch(end=END[:-1]),
        lambda: sparse_batch(end=None),
        lambda: sparse_batch(indices=None),
        lambda: sparse_batch(begin=BEGIN - 1),
        lambda: sparse_batch(end=END + 1),
        lambda: sparse_batch(begin=END, end=BEGIN),
    ],
)
def test_samples_and_batches_that_do_not_fit_are_refused(call):
    with pytest.raises(ValueError, match=NO_FIT):
        call()


@pytest.mark.parametrize(
    "arguments",
    [
        {"begin": 2, "end": 1},
        {"end": 3},
        {"form": (RBF_BY_DIFFERENCES + 1, 1.0, 0.0, 3)},
        {"form": (-1, 1.0, 0.0, 3)},
        {"Z": lambda: batch(COUNT * (N + 1), n=N + 1)},  # of other features
        {"X": sparse_strips},  # the batch is in rows, not in groups
        {"X": sparse_strips, "Z": sparse_batch},
        {"form": SQUARES, "X": sparse_strips},  # squares are of equal storages
        {"form": SQUARES, "X": sparse_strips, "Z": lambda: batch(16 * N)},
        {"form": SQUARES, "Z": sparse_batch},
        {"out": room(COUNT - 1)},
        {"out": room(width=64)},
        {"out": room(width=WIDTH + 8)},
        {"out": aligned((COUNT * WIDTH + 1,), np.float32)[1:].reshape(COUNT, -1)},
        {"out": room(), "place": np.array([0, 1])},
        {"out": room(), "place": np.array([0, 1, 3])},
        {"weights": np.ones((COUNT, 1))},
        {"sums": np.zeros((1, WIDTH))},
        {"weights": np.ones((COUNT + 1, 1)), "sums": np.zeros((1, WIDTH))},
        {"weights": np.ones((COUNT, 2)), "sums": np.zeros((1, WIDTH))},
        {"weights": np.ones((COUNT, 1)), "sums": np.zeros((1, WIDTH - 1))},
    ],
)
def test_kernel_rows_refuse_what_does_not_fit(arguments):
    with pytest.raises(ValueError, match=NO_FIT):
        kernel_rows(**arguments)


@pytest.mark.parametrize(
    "arguments",
    [
        {"out": room().astype(np.float64)},
        {"out": np.asfortranarray(room())},
        {"out": room(), "place": np.array([0, 1, 2], np.int32)},
        {"weights": np.ones((COUNT, 1)), "sums": np.zeros((1, WIDTH), np.float32)},
        {"begin": -1},
        {
            "Z": lambda: _core.batch(np.zeros(15), np.zeros(3), None, None, None, N)
        },  # float64
    ],
)
def test_kernel_rows_convert_nothing(arguments):
    with pytest.raises(TypeError, match="incompatible function arguments"):
        kernel_rows(**arguments)


@on_every_simd
def test_rows_go_to_their_places_and_nowhere_else(simd):
    out = room(6)
    out[:] = 77.0
    kernel_rows(out=out, place=np.array([4, -1, 1]), simd=simd)
    np.testing.assert_array_equal(out[[1, 4]], 1.0)
    np.testing.assert_array_equal(out[[0, 2, 3, 5]], 77.0)
    out[:] = 77.0
    kernel_rows(out=out, begin=1, end=2, simd=simd)
    np.testing.assert_array_equal(out[:3, :64], 77.0)
    np.testing.assert_array_equal(out[:3, 64:], 1.0)
    np.testing.assert_array_equal(out[3:], 77.0)


@on_every_simd
@pytest.mark.parametrize(("dtype", "most"), [(np.float32, 86.0), (np.float64, 700.0)])
def test_exp_is_within_two_units_in_the_last_place(simd, dtype, most):
    x = (most * np.random.default_rng(0).random(64 * 256) ** 3).astype(dtype)
    x[:2] = 0.0, 2.0 * most
    out = aligned((1, len(x)), dtype)
    samples = _core.strips(x, np.zeros(len(x), dtype), None, None, len(x), 1)
    rows = _core.batch(np.zeros(1, dtype), np.zeros(1, dtype), None, None, None, 1)
    laplacian = (4, 1.0, 0.0, 3)
    _core.kernel_rows(laplacian, samples, rows, 0, 256, out, None, None, None, simd)
    assert out[0, 0] == 1.0
    assert out[0, 1] == 0.0
    values, expected = out[0, 2:].astype(np.longdouble), np.exp(-x[2:].astype("g"))
    assert np.all(abs(values - expected) <= 2.0 * np.spacing(expected.astype(dtype)))


def kernel_sums(dtype=np.float64, samples=1, columns=70, simd=-1, **changes):
    """Sums (2, columns, samples) of two groups of random rows, in three batches."""
    rng = np.random.default_rng(0)
    X, Z = rng.normal(size=(64, N)), rng.normal(size=(31, N))
    W = rng.normal(size=(31, columns))
    W[rng.random(W.shape) < 0.5] = 0.0
    norms, packed = (np.zeros(size, dtype) for size in (64, 64 * N))
    index, center = np.arange(samples), np.zeros(N)
    _core.pack(X, index, center, packed, norms, False, simd)
    cuts = [slice(0, 9), slice(9, 20), slice(20, 31)]
    arrays = [(Z[some].astype(dtype).ravel(), Z[some].astype(dtype)) for some in cuts]
    batches = [
        _core.batch(rows, (z * z).sum(axis=1), None, None, None, N)
        for rows, z in arrays
    ]
    sums = np.zeros((2 * columns, 64))
    arguments = {
        "form": FORM,
        "X": _core.strips(packed, norms, None, None, samples, N),
        "batches": batches,
        "first_sum": np.array([0, 0, columns]),
        "weights": W,
        "sums": sums,
    }
    _core.kernel_sums(**(arguments | changes), simd=simd)
    distances = ((Z[:, np.newaxis] - X[:samples]) ** 2).sum(axis=2)
    values = np.exp(-distances)
    expected = [W[:20].T @ values[:20], W[20:].T @ values[20:]]
    return sums.reshape(2, columns, 64)[:, :, :samples], np.stack(expected)


@on_every_simd
@pytest.mark.parametrize("columns", [1, 3, 64, 70])
@pytest.mark.parametrize(("dtype", "off"), [(np.float32, 1e-4), (np.float64, 1e-12)])
def test_sums_of_groups_are_those_of_one_sample_too(simd, columns, dtype, off):
    many, expected = kernel_sums(dtype, 64, columns, simd)
    np.testing.assert_allclose(many, expected, atol=off)
    for samples in (1, 2, 9):
        few, _ = kernel_sums(dtype, samples, columns, simd)
        np.testing.assert_array_equal(few, many[:, :, :samples])


@pytest.mark.parametrize(
    "changes",
    [
        {"batches": []},
        {"first_sum": np.array([0, 0])},
        {"first_sum": np.array([0, 0, 71])},
        {"first_sum": np.array([0, -1, 0])},
        {"weights": np.ones((30, 70))},
        {"weights": np.ones((31, 71))},
        {"sums": np.zeros((140, 63))},
        {"sums": np.zeros((139, 64))},
        {"form": (RBF_BY_DIFFERENCES + 1, 1.0, 0.0, 3)},
    ],
)
def test_sums_of_groups_refuse_what_does_not_fit(changes):
    with pytest.raises(ValueError, match=NO_FIT):
        kernel_sums(**changes)


@pytest.mark.parametrize("classes", [1, 2, 3, 6])
@pytest.mark.parametrize("order", ["C", "F"])
def test_votes(classes, order):
    pairs = list(itertools.combinations(range(classes), 2))
    values = np.random.default_rng(classes).normal(size=(9, len(pairs)))
    values[0] = 0.0  # for the first of the two
    scores, sums, votes = (np.zeros((9, classes)) for _ in range(3))
    _core.votes(np.asarray(values, order=order), scores)
    for (i, j), value in zip(pairs, values.T, strict=True):
        sums[:, i] += value
        sums[:, j] -= value
        votes[:, i] += value >= 0
        votes[:, j] += value < 0
    expected = votes + sums / (3.0 * (np.abs(sums) + 1.0))
    np.testing.assert_allclose(scores, expected, rtol=1e-12)


@pytest.mark.parametrize(("values", "scores"), [((2, 3), (2, 4)), ((2, 3), (3, 3))])
def test_votes_refuse_what_does_not_fit(values, scores):
    with pytest.raises(ValueError, match=NO_FIT):
        _core.votes(np.zeros(values), np.zeros(scores))


def add_rows(
    rows=(6, WIDTH),
    place=(0, 5),
    weights=2,
    begin=0,
    end=WIDTH,
    sums=WIDTH,
    simd=-1,
):
    sums = np.zeros(sums)
    rows = np.arange(np.prod(rows), dtype=np.float32).reshape(rows)
    _core.add_rows(rows, np.array(place), np.ones(weights), begin, end, sums, simd)
    return rows, sums


@pytest.mark.parametrize(
    "arguments",
    [
        {"place": (0, 6)},
        {"place": (0, -1)},
        {"weights": 3},
        {"begin": 9, "end": 8},
        {"end": WIDTH + 1},
        {"sums": WIDTH - 1},
        {"rows": (6, WIDTH - 1)},
    ],
)
def test_sums_refuse_what_does_not_fit(arguments):
    with pytest.raises(ValueError, match=NO_FIT):
        add_rows(**arguments)


@on_every_simd
def test_sums_are_those_of_the_range(simd):
    for begin, end in ((0, WIDTH), (0, 0), (3, 4), (5, 77)):
        rows, sums = add_rows(begin=begin, end=end, simd=simd)
        expected = np.zeros(WIDTH)
        expected[begin:end] = (rows[0] + rows[5])[begin:end]
        np.testing.assert_array_equal(sums, expected)


# -- pair steps ------------------------------------------------------------------------


def small(q=5, width=16, dtype=np.float32, **changes):
    """Arguments of `pair_steps` for the identity, labels +1 and -1, and C = 1."""
    y = np.where(np.arange(q) % 2, -1.0, 1.0)
    K, F = np.zeros((q, width), dtype), np.zeros(width, dtype)
    np.fill_diagonal(K, 1.0)
    F[:q] = -y
    arguments = {
        "K": K,
        "q": q,
        "diagonal": np.ones(width, dtype),
        "ridge": np.zeros(width, dtype),
        "shift": 0.0,
        "lower": np.minimum(y, 0.0),
        "upper": np.maximum(y, 0.0),
        "x": np.zeros(q),
        "F": F,
        "room": np.zeros((2, width), dtype),
        "sums": 1,
        "stop": 1e-3,
        "most": 1000,
    }
    return arguments | changes


@pytest.mark.parametrize(
    "changes",
    [
        {"q": 0},
        {"q": 6},
        {"q": 17},
        {"K": np.zeros((5, 8), np.float32)},
        {"K": np.zeros((4, 16), np.float32)},
        {"diagonal": np.ones(5, np.float32)},
        {"ridge": np.ones(15, np.float32)},
        {"F": np.ones(5, np.float32)},
        {"room": np.zeros((1, 16), np.float32)},
        {"room": np.zeros((2, 15), np.float32)},
        {"lower": np.zeros(4)},
        {"upper": np.ones(6)},
        {"x": np.zeros(16)},
        {"shift": 1.0},  # not with equalities
        {"sums": 3},
        {"sums": -1},
        {"sums": 2},  # which need more room
    ],
)
def test_pair_steps_refuse_what_does_not_fit(changes):
    with pytest.raises(ValueError, match=NO_FIT):
        _core.pair_steps(**(small() | changes))


@on_every_simd
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("sums", [0, 1, 2])
@pytest.mark.parametrize("q", [1, 2, 5, 16, 37])
def test_pair_steps_solve_a_small_problem(simd, dtype, sums, q):
    width = -(-q // 16) * 16
    room = np.zeros((4 if sums > 1 else 2, width), dtype)
    problem = small(q, width, dtype, sums=sums, room=room)
    x, y = problem["x"], np.where(np.arange(q) % 2, -1.0, 1.0)
    if sums > 1:  # each class has something to share
        x[:] = y * np.random.default_rng(0).uniform(size=q)
        problem["F"][:q] += x
    start = x.copy()
    steps, negative, left = _core.pair_steps(**problem, simd=simd)
    assert left <= 1e-3
    assert negative == 0
    assert np.all((problem["lower"] <= x) & (x <= problem["upper"]))
    np.testing.assert_allclose(problem["F"][:q], x - y, atol=1e-6)
    if sums == 1:
        assert abs(x.sum()) <= 1e-6
    elif sums == 0:
        np.testing.assert_allclose(x, y, atol=1e-3)
    else:
        for own in (y > 0, y < 0):
            expected = np.full(own.sum(), start[own].sum() / max(1, own.sum()))
            np.testing.assert_allclose(x[own], expected, atol=1e-3)
    assert steps <= 20 * q


@on_every_simd
@pytest.mark.parametrize("sums", [0, 1, 2])
def test_pair_steps_read_rows_in_steps_of_16_bits(simd, sums):
    q, width, rng = 37, 48, np.random.default_rng(sums)
    Z = rng.normal(size=(q, 3))
    values = np.exp(-((Z[:, np.newaxis] - Z) ** 2).sum(axis=2))
    K = np.zeros((q, width), np.int16)
    K[:, :q] = np.rint(values * _core.BLOCK_STEPS)
    answers = []
    for some in (K, (K / _core.BLOCK_STEPS).astype(np.float32)):
        room = np.zeros((4 if sums > 1 else 2, width), np.float32)
        problem = small(q, width, sums=sums, room=room) | {"K": some, "stop": 1e-5}
        _core.pair_steps(**problem, simd=simd)
        answers.append((problem["x"], problem["F"][:q]))
    for ours, theirs in zip(*answers, strict=True):
        np.testing.assert_allclose(ours, theirs, atol=1e-4)


def steps_to_the_least(K, stop):
    """Steps of pairs that go no further, free of bounds, from zero."""
    y = np.where(np.arange(len(K)) % 2, -1.0, 1.0)
    F, diagonal = -y, np.diagonal(K)
    for steps in range(100_000):
        i = int(np.argmin(F))
        apart = F - F[i]
        if apart.max() <= stop:
            return steps
        curvature = diagonal + diagonal[i] - 2.0 * K[i]
        gain = np.where(curvature > 0.0, apart**2, 0.0)
        j = int(np.argmax(gain / np.where(curvature > 0.0, curvature, 1.0)))
        F += apart[j] / curvature[j] * (K[i] - K[j])
    return None


@on_every_simd
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(
    ("width", "ridge", "most"), [(1.0, 0.03, 0.75), (0.1, 0.1, 1.1)]
)
def test_steps_go_further_where_variables_go_on_the_way_they_went(
    simd, dtype, width, ridge, most
):
    q, rng = 208, np.random.default_rng(0)
    Z = rng.normal(size=(q, 3))
    K = np.exp(-((Z[:, np.newaxis] - Z) ** 2).sum(axis=2) / width)
    K[np.diag_indices(q)] += ridge
    problem = small(q, q, dtype, stop=1e-3, most=100_000) | {
        "K": K.astype(dtype),
        "diagonal": np.diagonal(K).astype(dtype),
        "lower": np.full(q, -1e3),
        "upper": np.full(q, 1e3),
    }
    steps, *_ = _core.pair_steps(**problem, simd=simd)
    assert steps <= most * steps_to_the_least(K, 1e-3)


@on_every_simd
@pytest.mark.parametrize("sums", [0, 1])
def test_steps_that_go_further_stay_within_bounds(simd, sums):
    q, rng = 208, np.random.default_rng(1)
    Z = rng.normal(size=(q, 3))
    K = np.exp(-((Z[:, np.newaxis] - Z) ** 2).sum(axis=2))
    problem = small(q, q, np.float64, sums=sums, most=1) | {"K": K}
    problem["lower"] *= 3.0
    problem["upper"] *= 3.0
    x, y, before = problem["x"], -problem["F"], 0.0
    for _ in range(2000):
        _core.pair_steps(**problem, simd=simd)
        assert np.all((problem["lower"] <= x) & (x <= problem["upper"]))
        now = 0.5 * x @ K @ x - y @ x
        assert now <= before + 1e-12
        before = now


@on_every_simd
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_of_equal_violators_the_first_ones_step(simd, dtype):
    for first in range(0, 68, 2):
        problem = small(70, 80, dtype, most=1)
        problem["lower"][:first] = problem["upper"][:first] = 0.0
        _core.pair_steps(**problem, simd=simd)
        assert np.flatnonzero(problem["x"]).tolist() == [first, first + 1]


@on_every_simd
@pytest.mark.parametrize("sums", [0, 1, 2])
def test_pair_steps_end_where_numbers_are_none(simd, sums):
    for bad in (np.nan, np.inf):
        problem = small(
            sums=sums, room=np.zeros((4 if sums > 1 else 2, 16), np.float32)
        )
        problem["K"][:] = bad
        problem["diagonal"][:] = bad
        steps, *_ = _core.pair_steps(**problem, simd=simd)
        assert steps <= 1000


@on_every_simd
@pytest.mark.parametrize("shift", [0.0, 1.0])
@pytest.mark.parametrize("sums", [0, 1])
def test_each_pair_step_descends_and_keeps_the_gradient(simd, sums, shift):
    shift = 0.0 if sums else shift
    q, rng = 12, np.random.default_rng(4)
    Z, ridge = rng.normal(size=(q, 3)), rng.uniform(0.5, 2.0, 16)
    problem = small(q, 16, np.float64, sums=sums, shift=shift, ridge=ridge)
    K, x, F = problem["K"], problem["x"], problem["F"]
    K[:q, :q] = Z @ Z.T
    problem["diagonal"][:q] = np.diagonal(K[:q, :q]) + ridge[:q] + shift
    Q, start, values = K[:q, :q] + np.diag(ridge[:q]) + shift, F[:q].copy(), [0.0]
    for _ in range(200):
        steps, *_ = _core.pair_steps(**problem | {"most": 1}, simd=simd)
        values.append(start @ x + 0.5 * x @ Q @ x)
        np.testing.assert_allclose(F[:q], start + Q @ x, atol=1e-12)
        if not steps:
            break
    assert steps == 0
    assert np.all(np.diff(values) <= 1e-12)


@on_every_simd
def test_pair_steps_count_negative_curvature(simd):
    problem = small(sums=1)
    problem["K"][:] = 0.0
    problem["diagonal"][:] = -1.0
    np.fill_diagonal(problem["K"], -1.0)
    steps, negative, _ = _core.pair_steps(**problem, simd=simd)
    assert 0 < negative <= steps <= 1000


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int16])
@pytest.mark.parametrize(
    ("begin", "end", "q", "width"),
    [
        (0, 5, 5, 16),
        (7, 7, 7, 16),
        (37, 90, 90, 128),
        (0, 37, 90, 112),
        (21, 37, 90, 90),
    ],
)
def test_other_rows_mirror_some_in_their_columns(begin, end, q, width, dtype):
    K = (1e4 * np.random.default_rng(0).normal(size=(q, width))).astype(dtype)
    before, expected = K.copy(), K.copy()
    expected[:begin, begin:end] = K[begin:end, :begin].T
    expected[end:, begin:end] = K[begin:end, end:q].T
    half = (begin + end) // 2
    _core.mirror(K, begin, end, q, half, end)
    np.testing.assert_array_equal(K[:, begin:half], before[:, begin:half])
    _core.mirror(K, begin, end, q, begin, half)
    np.testing.assert_array_equal(K, expected)
    for wrong in (
        (begin, end, q + 1, begin, end),
        (q, q + 1, q, q, q + 1),
        (end + 1, end, q, end + 1, end),
        (begin, end, q, begin, end + 1),
        (begin, end, q, end + 1, end),
    ):
        with pytest.raises(ValueError, match=NO_FIT):
            _core.mirror(K, *wrong)


@pytest.mark.parametrize("some", [False, True])
def test_rows_rise_and_fall_within_their_bounds_where_they_are_current(some):
    rng, m = np.random.default_rng(0), 333
    F, c = rng.normal(size=m), rng.integers(-1, 2, m) * 2.0
    rise, fall = np.empty((2, m))
    lower, upper = np.full(m, -2.0), np.where(rng.random(m) < 0.5, 0.0, 2.0)
    current = rng.random(m) < 0.5 if some else np.ones(m, bool)
    _core.violations(F, c, lower, upper, rise, fall, current if some else None)
    expected = np.where(current & (c < upper), -F, -np.inf)
    np.testing.assert_array_equal(rise, expected)
    np.testing.assert_array_equal(fall, np.where(current & (c > lower), -F, np.inf))
    for k in range(7):
        given = [F, c, lower, upper, rise, fall, current]
        given[k] = given[k][1:].copy()
        with pytest.raises(ValueError, match=NO_FIT):
            _core.violations(*given)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_entries_of_some_rows_are_taken(dtype):
    rng = np.random.default_rng(0)
    rows, out = rng.normal(size=(7, 40)).astype(dtype), np.zeros((5, 32), dtype)
    place, J, at = np.array([6, 0, 6]), rng.permutation(40)[:30], np.array([4, 1, 0])
    expected = out.copy()
    expected[at, :30] = rows[place][:, J]
    _core.take(rows, place, J, out, at)
    np.testing.assert_array_equal(out, expected)
    for wrong in (
        (place + 1, J, at),
        (place - 1, J, at),
        (place, J + 1, at),
        (place, -J - 1, at),
        (place, J, at + 1),
        (place[:2], J, at),
        (place, np.arange(33), at),
    ):
        with pytest.raises(ValueError, match=NO_FIT):
            _core.take(rows, wrong[0], wrong[1], out, wrong[2])


@pytest.mark.parametrize("form", [(0, 0.0, 0.0, 0), (1, 0.5, 1.0, 3), (2, 0.5, 0.0, 0)])
@pytest.mark.parametrize("m", [1, 63, 64, 700])
@pytest.mark.parametrize("packed", [1 << 25, 1])
def test_half_of_the_values_make_the_same_sums(monkeypatch, form, m, packed):
    """Samples in one piece, and in pieces of a strip; dense, sparse and wide rows."""
    monkeypatch.setattr("widemargin.kernels.packed.PACKED_BYTES", packed)
    rng = np.random.default_rng(m)
    c = rng.normal(size=m)
    for n, density in ((7, 1.0), (40, 0.1), (3000, 0.01)):
        Z = sparse.random_array((m, n), density=density, rng=rng, format="csr")
        Z = Z.toarray() if density == 1.0 else Z
        K = kernel_values(form, Z, Z)
        found = CoreSums(form, Z, c[:, np.newaxis]).at_own_rows(n_jobs=2)
        np.testing.assert_allclose(found, K @ c, atol=1e-12 * (abs(K) @ abs(c)).max())


@on_every_simd
@pytest.mark.parametrize("real", [np.float32, np.float64])
def test_values_are_kept_in_the_nearest_of_16_bits(real, simd):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(M, N)) * rng.random((M, 1)) ** 4
    layout = Layout(FORM, X, real)
    samples, batches = Samples(layout, X), Batches(layout, X)
    rows = batches.take(np.arange(M), samples)
    values, kept = aligned((M, WIDTH), real), aligned((M + 2, WIDTH), np.uint16)
    kept[:] = 7
    place = np.arange(M)[::-1] + 1
    place[3] = -1
    some = FORM, samples.core, rows, 0, 2
    _core.kernel_rows(*some, values, None, None, None, simd)
    _core.kernel_rows(*some, None, place, None, None, simd, rounded=kept)
    stays = place >= 0
    steps = _core.KERNEL_STEPS * values[stays].astype(np.float64)
    assert np.abs(kept[place[stays]] - steps).max() <= 0.51
    assert (np.diagonal(kept[place])[stays] == _core.KERNEL_STEPS).all()
    assert (kept[[0, M - 3, M + 1]] == 7).all()
    with pytest.raises(ValueError, match=NO_FIT):
        _core.kernel_rows(*some, values, None, None, None, simd, rounded=kept)
    products = (0, 1.0, 0.0, 3)
    with pytest.raises(ValueError, match=NO_FIT):  # values need not be from 0 to 1
        _core.kernel_rows(products, *some[1:], None, None, None, None, rounded=kept)


@on_every_simd
def test_rows_of_16_bits_are_added_and_taken(simd):
    rng = np.random.default_rng(0)
    rows = rng.integers(0, 1 << 16, (30, WIDTH), dtype=np.uint16)
    values = rows / float(_core.KERNEL_STEPS)
    place, c = rng.permutation(30)[:21], rng.normal(size=21)
    sums = np.ones(WIDTH)
    _core.add_rows(rows, place, c, 3, 120, sums, simd)
    expected = np.ones(WIDTH)
    expected[3:120] += (c @ values[place])[3:120]
    np.testing.assert_allclose(sums, expected, rtol=0, atol=2e-6)
    out, J = np.zeros((4, 16), np.float32), np.array([5, 0, 127])
    _core.take(rows, np.array([2, 29]), J, out, np.array([3, 1]))
    np.testing.assert_allclose(out[[3, 1], :3], values[[2, 29]][:, J], rtol=1e-6)
    assert not out[[0, 2]].any()
