"""Samples of levels: distances by products of bytes, exact wherever the rows lie."""

import numpy as np
import pytest
from scipy import sparse

from tests.cases.kernels import on_every_simd
from widemargin import Kernel, Problem, _core, solve
from widemargin.data.memory import as_rows
from widemargin.kernels.layout import Layout
from widemargin.kernels.levels import (
    MOST_COLUMNS,
    LevelBatches,
    Levels,
    LevelSamples,
    LevelSums,
    levels_of,
)
from widemargin.kernels.matrix import Columns
from widemargin.kernels.packed import STRIP, Parts, Samples, aligned, padded

RBF = Kernel("rbf", gamma=0.02)
UNITS = [1.0, 1.0 / 255, 1.0 / 16, 0.1]


@pytest.fixture(autouse=True, params=[64, 16], ids=["bytes", "groups"])
def fast(monkeypatch, request):
    """The code that this processor has, whatever its speed."""
    monkeypatch.setattr(_core, "levels_at_once", lambda: request.param)


def images(m=150, n=50, most=255, seed=0):
    """Rows of whole numbers, half of them zero."""
    rng = np.random.default_rng(seed)
    X = rng.integers(0, most, (m, n), endpoint=True) * (rng.random((m, n)) < 0.5)
    X[0, :2] = 1, most
    return X.astype(np.float64)


def found(X):
    return levels_of(X, Layout(RBF.form, X, np.float32), Parts(X.shape[0]))


def exact(X, gamma):
    """Values by whole numbers."""
    X = X.astype(np.int64)
    D = (X**2).sum(axis=1)[:, np.newaxis] + (X**2).sum(axis=1) - 2 * X @ X.T
    return np.exp(-gamma * D)


@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize("storage", [np.asarray, sparse.csr_matrix])
def test_rows_of_levels_are_known(unit, storage):
    X = images()
    levels = found(storage(unit * X))
    assert levels.unit == pytest.approx(unit, rel=1e-12)
    rows = np.array([0, 149, 77])
    bytes_of = levels.of(rows)
    np.testing.assert_array_equal(bytes_of[:, :50], X[rows])
    np.testing.assert_array_equal(bytes_of[:, 50:], 0)
    np.testing.assert_array_equal(levels.sums, X.sum(axis=1))
    np.testing.assert_array_equal(levels.squares, (X**2).sum(axis=1))


def test_rows_in_strips_again_are_those_rows():
    levels = found(images())
    rows = np.array([3, 149, 77, *range(70)])
    chosen = LevelSamples(
        Layout(RBF.form, images(), np.float32), levels, rows, Parts(73)
    )
    own = chosen._packed.reshape(2, -1, STRIP, 4).transpose(0, 2, 1, 3)
    np.testing.assert_array_equal(own.reshape(128, -1)[:73], levels.of(rows))
    np.testing.assert_array_equal(own.reshape(128, -1)[73:], 0)


@pytest.mark.parametrize("row", [-1, 192])
@pytest.mark.parametrize("in_strips", [False, True])
def test_rows_that_are_not_there_are_not_taken(row, in_strips):
    rows, out = np.zeros(192 * 32, np.uint8), np.zeros(STRIP * 32, np.uint8)
    index = np.array([row])
    room = out if in_strips else out[:32]
    with pytest.raises(ValueError, match="do not fit"):
        _core.take_levels(rows, 32, index, in_strips, room)
    with pytest.raises(ValueError, match="do not fit"):
        _core.take_levels(rows, 32, index * 0, in_strips, out[:16])


@pytest.mark.parametrize("place", [0, 149])
@pytest.mark.parametrize("entry", [-1.0, 0.5, 256.0, 1.0 + 1e-9, np.nan, np.inf])
def test_other_rows_are_not_of_levels(entry, place):
    X = images()
    assert Levels(X, 1.0, Parts(150)).are_all
    X[place, 7] = entry
    assert not Levels(X, 1.0, Parts(150)).are_all
    twice = sparse.csr_matrix((np.ones(2), [1, 1], [0, 2]), shape=(1, 40))
    assert not Levels(twice, 1.0, Parts(1)).are_all


def test_levels_are_not_looked_for_where_they_do_not_serve(monkeypatch):
    X = images()
    assert found(X) is not None
    assert found(X[:, :31]) is None
    assert found(np.where(np.arange(50) % 9, 0.0, X)) is None  # sparse
    assert found(np.ones((3, MOST_COLUMNS + 1))) is None
    assert found(0.0 * X) is None
    assert found(-X) is None
    assert found(np.where(X > 250, 1e300, 1e-310 * X)) is None
    double = Layout(RBF.form, X, np.float64)
    linear = Layout(Kernel("linear", gamma=1.0).form, X, np.float32)
    for layout in (double, linear):
        assert levels_of(X, layout, Parts(150)) is None
    monkeypatch.setattr(_core, "levels_at_once", lambda: 1)
    assert found(X) is None


@on_every_simd
@pytest.mark.parametrize("rows", [1, 5, 6, 16, 150])
@pytest.mark.parametrize("n", [35, 50, 64, 200])
def test_values_are_exact(simd, rows, n):
    X, gamma = images(n=n), 1e-6
    form = Kernel("rbf", gamma=gamma).form
    layout = Layout(form, X, np.float32)
    levels = levels_of(X, layout, Parts(150))
    samples = LevelSamples(layout, levels, None, Parts(150))
    J = np.arange(150)[-rows:]
    batch = LevelBatches(layout, X, levels).take(J, samples)
    out = aligned((rows, padded(150)), np.float32)
    _core.kernel_rows(form, samples.core, batch, 0, 3, out, None, None, None, simd)
    K = exact(X, gamma)[J]
    np.testing.assert_allclose(out[:, :150], K, rtol=4e-7)
    np.testing.assert_array_equal(out[np.arange(rows), J], 1.0)


@on_every_simd
def test_the_largest_distances_fit_in_their_numbers(simd):
    n = padded(MOST_COLUMNS, 4) - 4
    X = np.zeros((2, n))
    X[1] = 255.0
    X = np.tile(X, (9, 1))  # tiles have 16 rows
    levels = Levels(X, 1.0, Parts(18))
    layout = Layout(Kernel("rbf", gamma=1e-9).form, X, np.float32)
    samples = LevelSamples(layout, levels, None, Parts(18))
    batch = LevelBatches(layout, X, levels).take(np.arange(18), samples)
    out = aligned((18, STRIP), np.float32)
    core = layout.form, samples.core, batch, 0, 1
    _core.kernel_rows(*core, out, None, None, None, simd)
    far = np.exp(-1e-9 * n * 255**2)
    K = np.tile([[1.0, far], [far, 1.0]], (9, 9))
    np.testing.assert_allclose(out[:, :18], K, rtol=1e-6)


@on_every_simd
@pytest.mark.parametrize("n", [33, 100, 784])
def test_a_row_has_the_same_values_in_any_batch(simd, n):
    X, rows = images(n=n), np.arange(150)
    layout = Layout(Kernel("rbf", gamma=1e-6).form, X, np.float32)
    levels = Levels(X, 1.0, Parts(150))
    samples, makes = LevelSamples(layout, levels, None, Parts(150)), LevelBatches

    def made(J):
        out = aligned((len(J), padded(150)), np.float32)
        batch = makes(layout, X, levels).take(J, samples)
        core = layout.form, samples.core, batch, 0, 3
        _core.kernel_rows(*core, out, None, None, None, simd)
        return out

    alone = np.concatenate([made(rows[k : k + 1]) for k in rows])
    for size in (4, 6, 15, 16, 17, 22, 150):
        together = [made(rows[k : k + size]) for k in range(0, 150, size)]
        np.testing.assert_array_equal(np.concatenate(together), alone)


def test_sums_in_float32_round_as_often_as_is_said():
    X = np.tile(images(1, 64), (64, 1))
    X[:, :2] = 1, 255
    columns, unit = Columns(as_rows(X), Kernel("rbf", gamma=1e-6)), 2.0**-24
    assert isinstance(columns._source._samples, LevelSamples)
    c = np.full(16, 0.9999 * unit)
    c[0] = 1.0  # all others are lost, one after the other
    sums = np.zeros(columns.width)
    columns.add(np.arange(16), c, sums)
    assert 14.0 * unit < abs(sums[0] - c.sum()) <= columns.roundings * unit


def test_columns_are_of_levels_and_their_errors_within_bounds():
    X = images(700, 90) / 255.0
    columns, rng = Columns(as_rows(X), RBF), np.random.default_rng(1)
    assert isinstance(columns._source._samples, LevelSamples)
    K, J, c = (
        exact(255.0 * X, RBF.gamma / 255.0**2),
        rng.permutation(700),
        rng.normal(size=700),
    )
    bounds = columns.value_bounds
    off = bounds.eps * (bounds.s[:, np.newaxis] * bounds.s)
    assert not bounds.h.any()
    assert np.all(np.abs(columns.block(J, J) - K[np.ix_(J, J)]) <= off)
    sums = np.zeros(columns.width)
    columns.add(J, c[J], sums)
    np.testing.assert_allclose(sums[:700], K @ c, atol=1e-4)
    some = np.arange(3, 200)
    columns.focus(some)
    sums = np.zeros(columns.width)
    columns.add(J, c[J], sums)
    np.testing.assert_allclose(sums[: len(some)], (K @ c)[some], atol=1e-4)
    values, errors = columns.bounded(J[:99], J, c[J])
    assert np.all(np.abs(values - (K @ c)[J[:99]]) <= errors)


@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize("known", [250, 40])  # most of the rows are among them, or few
def test_float64_sums_of_levels_are_right_up_to_their_errors(unit, known):
    X, rng = unit * images(300, 60), np.random.default_rng(2)
    gamma = 1e-5 / unit**2
    columns = Columns(as_rows(X), Kernel("rbf", gamma=gamma))
    J, rows = rng.permutation(300)[:known], np.arange(5, 300)
    c = rng.normal(size=known)
    values, errors = columns.bounded(rows, J, c)
    high, off, low = columns.twofold(rows, J, c)
    assert np.all(np.abs(values - high - low) <= errors + off)
    assert np.all(errors <= 1e-11 * np.abs(c).sum())
    assert type(columns._source._in_double(J, c)[1]) is LevelSums


def test_where_sums_of_levels_have_too_few_digits_differences_are_summed():
    X = images(300, 60)
    columns = Columns(as_rows(X), Kernel("rbf", gamma=0.02))
    J, c = np.arange(300), np.ones(300)
    assert type(columns._source._in_double(J, c)[1]) is not LevelSums
    values, errors = columns.bounded(J, J, c)
    high, off, low = columns.twofold(J, J, c)
    assert np.all(np.abs(values - high - low) <= errors + off)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("unit", [1.0 / 255, 0.1])
def test_entries_that_float32_has_rounded_are_levels_up_to_that(dtype, unit):
    levels = images(300, 60)
    X, rng = (unit * levels).astype(np.float32).astype(dtype), np.random.default_rng(4)
    kernel = Kernel("rbf", gamma=1e-5 / unit**2)
    columns = Columns(as_rows(X), kernel)
    source = columns._source
    assert isinstance(source._samples, LevelSamples)
    assert not source._levels.are_exact
    np.testing.assert_array_equal(source._levels.sums, levels.sum(axis=1))
    J, rows, c = rng.permutation(300), np.arange(5, 300), rng.normal(size=300)
    K, bounds = kernel(X.astype(np.float64), X.astype(np.float64)), columns.value_bounds
    assert bounds.h.all()  # what rounding did to the entries grows with their size
    off = (1.0 + bounds.h[:, np.newaxis] + bounds.h) * bounds.eps
    apart = np.abs(columns.block(np.arange(300), np.arange(300)) - K)
    assert apart.max() > 1e-8
    assert np.all(apart <= off)
    values, errors = columns.bounded(rows, J, c)
    high, off, low = columns.twofold(rows, J, c)
    assert np.all(np.abs(values - high - low) <= errors + off)
    assert np.all(errors <= 1e-11 * np.abs(c).sum())
    assert type(source._in_double(J, c)[1]) is not LevelSums


def test_rounded_levels_are_not_taken_where_more_than_float32_would_be_lost():
    X = (images(most=255) / 255.0).astype(np.float32)
    assert not found(X).are_exact
    X[7, 3] = np.float32(0.4) * np.float32(1.0 + 2.0**-21)
    assert found(X) is None
    bright = 250.0 + images(most=5)  # far from zero, for what they differ by
    assert found(bright).are_exact
    assert found((bright / 255.0).astype(np.float32)) is None


@pytest.mark.parametrize(("most", "dtype"), [(16, np.float64), (255, np.float32)])
def test_a_fit_of_levels_is_that_of_other_numbers(monkeypatch, most, dtype):
    X = (images(900, 60, most) / most).astype(dtype)
    y = np.where(X[:, :9].sum(axis=1) > 2.2, 1.0, -1.0)

    def fit():
        problem = Problem(X, y, 5.0, kernel=RBF)
        return problem.columns._source._samples, solve(problem, "irwls", tol=1e-6)

    levels, one = fit()
    monkeypatch.setattr(_core, "levels_at_once", lambda: 1)
    others, other = fit()
    assert isinstance(levels, LevelSamples)
    assert type(others) is Samples
    for solution in (one, other):
        assert solution.status == "solved"
        assert solution.certificate.relative_gap <= 1e-6
    assert one.certificate.dual == pytest.approx(other.certificate.dual, rel=1e-5)


def test_levels_and_other_numbers_do_not_meet():
    X = images()
    layout = Layout(RBF.form, X, np.float32)
    levels = levels_of(X, layout, Parts(150))
    samples = LevelSamples(layout, levels, None, Parts(150))
    numbers = _core.batch(
        np.zeros(levels.width, np.float32),
        np.zeros(1, np.float32),
        None,
        None,
        None,
        levels.width,
    )
    bytes_of = (
        np.zeros(levels.width, np.int8),
        np.zeros(1, np.int32),
        np.zeros(1, np.float32),
    )
    lists = np.zeros(1, np.int64), np.ones(1, np.int64), np.zeros(1, np.int32)
    lists = lists if levels.by_groups else ()
    batch = _core.batch_of_levels(*bytes_of, levels.width, *lists)
    sums, linear = np.zeros((1, padded(150))), Kernel("linear", gamma=1.0).form
    for form, rows in ((RBF.form, numbers), (linear, batch)):
        with pytest.raises(ValueError, match="do not fit"):
            _core.kernel_rows(
                form, samples.core, rows, 0, 3, None, None, np.ones((1, 1)), sums
            )
    with pytest.raises(ValueError, match="do not fit"):
        _core.batch_of_levels(*bytes_of, levels.width + 4)
    with pytest.raises(ValueError, match="do not fit"):
        _core.pack_levels(
            X,
            0,
            151,
            1.0,
            1e-15,
            levels.width,
            levels.rows,
            np.zeros(1, np.uint8),
            levels.squares,
            levels.sums,
        )


def test_rows_that_list_their_groups_meet_samples_that_expect_them(fast):
    X = images()
    layout = Layout(RBF.form, X, np.float32)
    levels = levels_of(X, layout, Parts(150))
    samples = LevelSamples(layout, levels, None, Parts(150))
    one = np.zeros(1, np.int64), np.ones(1, np.int64)
    bytes_of = (
        np.zeros(levels.width, np.int8),
        np.zeros(1, np.int32),
        np.zeros(1, np.float32),
        levels.width,
    )
    listed = _core.batch_of_levels(*bytes_of, *one, np.zeros(1, np.int32))
    other = _core.batch_of_levels(*bytes_of) if levels.by_groups else listed
    with pytest.raises(ValueError, match="do not fit"):
        _core.kernel_rows(
            RBF.form,
            samples.core,
            other,
            0,
            3,
            None,
            None,
            np.ones((1, 1)),
            np.zeros((1, padded(150))),
        )
    last = levels.width // 4
    for begin, end, group in ((0, 2, 0), (-1, 1, 0), (1, 0, 0), (0, 1, last)):
        lists = np.array([begin]), np.array([end]), np.array([group], np.int32)
        with pytest.raises(ValueError, match="do not fit"):
            _core.batch_of_levels(*bytes_of, *lists)
