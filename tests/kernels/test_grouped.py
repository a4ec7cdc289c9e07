"""Samples in groups: scores of many problems, and bounds of their errors."""

import functools
import math

import numpy as np
import pytest
from scipy import sparse

from tests.cases.kernels import NAMED, SEMIDEFINITE, plain
from tests.cases.many import classes, many, never
from widemargin import Kernel, _core
from widemargin.kernels.core_engine import TOGETHER
from widemargin.kernels.given import GivenSamples
from widemargin.kernels.grouped import GroupedSamples
from widemargin.kernels.packed import packed_norms
from widemargin.numerics.rounding import FLUSHED, SINGLE, gamma_n
from widemargin.system.deadline import Deadline, OutOfTime, until

RBF = Kernel("rbf", gamma=0.4)
LINEAR = Kernel("linear", gamma=1.0)
on_semidefinite = pytest.mark.parametrize("name", SEMIDEFINITE)


def data(name, seed=0):
    """Rows that a kernel is for, and their groups, of uneven sizes."""
    rng = np.random.default_rng(seed)
    X, group = rng.normal(size=(150, 5)), rng.integers(0, 4, 150)
    group[:70] = 2
    return (np.abs(X) if name == "chi2" else X), group


def coefficients(m, seed=1):
    """Some that are zero, the others of many sizes."""
    rng = np.random.default_rng(seed)
    c = rng.normal(size=m) * 10.0 ** rng.uniform(-3, 3, m)
    c[rng.random(m) < 0.5] = 0.0
    return c


def exact(samples, rows, c, starts):
    """Scores in float64 of all places, by the support vectors of their problem."""
    ends = np.append(starts[1:], len(c))
    support = np.flatnonzero(c)
    counts = np.searchsorted(support, ends)
    return samples.exact((rows[support], c[support], counts), (rows, ends), 1, never)


def single_scores(X, gamma):
    """Values by float32 norms and products, from the mean of the rows."""
    Z = (X - X.mean(axis=0)).astype(np.float32)
    norms = (Z * Z).sum(axis=1)
    return np.exp(-gamma * ((norms[:, np.newaxis] - 2 * (Z @ Z.T)) + norms)).astype(
        float
    )


def test_rows_come_by_groups_in_the_order_of_the_data():
    samples = GroupedSamples(np.zeros((6, 1)), np.array([1, 0, 2, 1, 0, 1]), RBF)
    assert samples.rows_of(np.array([2, 1])).tolist() == [2, 0, 3, 5]
    assert samples.rows_of(np.array([0])).tolist() == [1, 4]


@pytest.mark.parametrize("stored", [np.asarray, sparse.csr_array])
def test_rows_are_packed_under_the_deadline(stored):
    X, group, _ = classes()
    samples = GroupedSamples(stored(X), group, RBF)
    with until(Deadline(lambda: 2.0, 1.0)), pytest.raises(OutOfTime):
        samples.pack()
    samples.pack()


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int16, np.uint8])
@pytest.mark.parametrize("stored", [np.asarray, sparse.csr_array])
def test_rows_of_groups_have_the_norms_of_packed_samples(stored, dtype):
    X = (20.0 * np.random.default_rng(0).random((150, 5)) + 1.0).astype(dtype)
    X = stored(X if stored is np.asarray else X.astype(np.float64))
    samples = GroupedSamples(X, np.arange(150) % 3, RBF)
    _, batch, norms = samples._exact
    double = samples._layout.as_double()
    assert double.expands_squares
    assert norms.tolist() == packed_norms(double, X).tolist()
    del samples  # a batch keeps the rows that it is of
    Z = double.rows(X).astype(np.float64)
    out = np.empty(150)
    form = double.form
    ends, own = np.array([1]), (np.array([0]), np.array([1]), np.ones(1))
    rows = np.arange(150), np.array([150])
    _core.sum_batch(form, batch, norms, *own, *rows, ends, out, 1, never)
    expected = np.exp(-0.4 * ((Z - Z[0]) ** 2).sum(axis=1))
    assert out == pytest.approx(expected, rel=1e-12, abs=1e-13)
    assert out[0] == 1.0


def test_rows_of_groups_fit_each_other():
    X, center, place = np.ones((3, 2)), np.zeros(2), np.zeros(64, np.int64)

    def made(place, center, exact=center):
        return _core.rows_of_groups(X, place, center, exact, True, True, never)

    assert made(place, center).norms.tolist() == [2.0] * 3
    wrong = place.copy()
    for wrong[-1] in (-1, 3):
        with pytest.raises(ValueError, match="fit"):
            made(wrong, center)
    for some, *centers in (
        (place[:63], center),
        (place, np.zeros(3)),
        (place, center, np.zeros(1)),
    ):
        with pytest.raises(ValueError, match="fit"):
            made(some, *centers)


@on_semidefinite
@pytest.mark.parametrize("stored", [np.asarray, sparse.csr_array])
def test_scores_are_the_sums_within_the_bounds_of_their_errors(name, stored):
    X, group = data(name)
    X *= np.random.default_rng(2).random(X.shape) < (
        1.0 if stored is np.asarray else 0.13
    )
    kernel = NAMED[name]
    samples = GroupedSamples(stored(X), group, kernel)
    groups = np.array([2, 0, 1, 2, 3])
    rows, starts = samples.rows_of(groups), np.array([0, samples.count[[2, 0]].sum()])
    c = coefficients(len(rows))
    found, errors = (
        exact(samples, rows, c, starts),
        samples.exact_errors(rows, c, starts),
    )
    for first, last in zip(starts, [*starts[1:], len(c)], strict=True):
        own = rows[first:last]
        K = plain(kernel, X[own].astype(np.longdouble), X[own].astype(np.longdouble))
        off = np.abs(found[first:last] - K @ c[first:last].astype(np.longdouble))
        assert (off <= errors[first:last]).all()
        assert errors[first:last].max() < 1e-9 * np.abs(found).max()


@pytest.mark.parametrize("given", [False, True])
def test_no_score_adds_up_all_terms_one_after_the_other(given):
    # 1 and then many numbers of 3/4 of a unit, each of which rounding makes a unit.
    m = 3000 if given else 4000
    c, group = np.full(m, 0.75 * 2.0**-52), np.zeros(m, int)
    c[0] = 1.0
    if given:
        samples = GivenSamples(np.ones((m, m)), group)
    else:
        samples = GroupedSamples(np.ones((m, 1)), group, LINEAR)
    rows, starts = np.arange(m), np.array([0])
    errors = samples.exact_errors(rows, c, starts)
    off = np.abs(exact(samples, rows, c, starts) - math.fsum(c))
    assert (off <= errors).all()
    in_turn = abs(functools.reduce(float.__add__, c.tolist()) - math.fsum(c))
    assert (errors < in_turn).all()


@pytest.mark.parametrize("name", ["rbf", "poly", "sigmoid"])
def test_scores_of_ones_have_the_bits_of_other_entries(name):
    rng = np.random.default_rng(2)
    X = sparse.csr_array((rng.random((150, 40)) < 0.2).astype(float))
    rows, starts = np.arange(150), np.array([0, 100])
    c, table = coefficients(150), rng.normal(size=(150, 2, 3))
    groups, wanted = (rng.permutation(150), np.array([70, 150])), np.full(150, 3)
    found = []
    for factor in (1.0, 2.0):  # which is exact, as is a quarter of gamma
        kernel = Kernel(name, gamma=0.5 / factor**2, coef0=0.25)
        samples = GroupedSamples(factor * X, np.arange(150) % 3, kernel)
        assert samples._layout.is_ones == (factor == 1.0)
        scores = exact(samples, rows, c, starts)
        found.append((scores, samples.by_group(table, groups, (rows, wanted), 1)))
    for one, other in zip(*found, strict=True):
        np.testing.assert_array_equal(one, other)
        assert one.any()


@pytest.mark.parametrize("stored", [np.asarray, sparse.csr_array])
def test_problems_over_the_same_samples_share_kernel_values(stored):
    X, group = data("rbf")
    samples = GroupedSamples(stored(X), group, RBF)
    runs = [samples.rows_of(np.array(pair)) for pair in ([0, 2], [1, 3])]
    rows = np.concatenate([runs[0]] * 3 + [runs[1]] * 2)
    ends = np.cumsum([len(runs[0])] * 3 + [len(runs[1])] * 2)
    starts, c = np.append(0, ends[:-1]), coefficients(len(rows))
    c[starts[1] : ends[1]] = 0.0  # no support vector
    errors = samples.exact_errors(rows, c, starts)
    support, wanted = c != 0.0, np.arange(len(rows)) % 3 > 0

    def counted(chosen):
        return np.add.reduceat(chosen, starts, dtype=np.int64).cumsum()

    given = (
        (rows[support], c[support], counted(support)),
        (
            rows[wanted],
            counted(wanted),
        ),
    )
    one, *others = (
        samples.exact(*given, threads, never, np.array([3, 5])) for threads in (1, 2, 5)
    )
    off = np.abs(one - exact(samples, rows, c, starts)[wanted])
    assert (off <= 2.0 * errors[wanted]).all()
    assert all(other.tolist() == one.tolist() for other in others)


@pytest.mark.parametrize("wanted", ["all", "some", "twice"])
@pytest.mark.parametrize("vectors", [100, 200, 450, 600])
def test_support_vectors_among_the_rows_change_no_score(vectors, wanted):
    rng = np.random.default_rng(vectors)
    X = rng.normal(size=(600, 5))
    samples = GroupedSamples(X, np.zeros(600, int), RBF)
    J, c = rng.permutation(600)[:vectors], rng.normal(size=vectors)
    rows = {"all": rng.permutation(600), "some": np.arange(0, 600, 7)}.get(
        wanted, np.append(J, np.arange(0, 600, 7))
    )
    given = (J, c, np.array([vectors])), (rows, np.array([len(rows)]))
    one, *others = (samples.exact(*given, threads, never) for threads in (1, 2, 5))
    K = RBF(X[rows], X[J])
    assert (np.abs(one - K @ c) <= 1e-13 * (K @ np.abs(c))).all()
    assert all(other.tolist() == one.tolist() for other in others)


def test_a_row_that_is_there_twice_keeps_both_weights_in_a_run():
    X, group = data("rbf")
    samples = GroupedSamples(X, group, RBF)
    rows = np.tile(samples.rows_of(np.array([0, 0])), 2)
    starts, c = np.array([0, len(rows) // 2]), coefficients(len(rows))
    counts = np.add.reduceat(c != 0.0, starts, dtype=np.int64).cumsum()
    given = (rows[c != 0.0], c[c != 0.0], counts), (rows, np.append(starts[1:], len(c)))
    found = samples.exact(*given, 1, never, np.array([2]))
    off = np.abs(found - exact(samples, rows, c, starts))
    assert (off <= 2.0 * samples.exact_errors(rows, c, starts)).all()


@on_semidefinite
@pytest.mark.parametrize("stored", [np.asarray, sparse.csr_array, "given"])
@pytest.mark.parametrize("m", [1, 150])
def test_sums_by_a_table_are_those_over_each_group(name, stored, m):
    X, group = data(name)
    kernel, rng = NAMED[name], np.random.default_rng(3)
    K = plain(kernel, X, X)
    if stored == "given":
        samples = GivenSamples(np.asarray(K, np.float64), group)
    else:
        samples = GroupedSamples(stored(X), group, kernel)
    table = coefficients(150 * 3 * 4).reshape(150, 3, 4)
    table[::3] = 0.0
    ends = samples.count.cumsum()
    rows, wanted = rng.permutation(150)[:m], np.sort(rng.integers(1, 5, m))[::-1].copy()
    given = table, (samples.order, ends), (rows, wanted)
    one, *others = (samples.by_group(*given, threads) for threads in (1, 2, 9))
    assert all(other.tolist() == one.tolist() for other in others)
    asked = np.arange(4)[:, np.newaxis] < wanted
    for found, J in zip(one, np.split(samples.order, ends[:-1]), strict=True):
        part = K[np.ix_(rows, J)]
        off = found - np.einsum("ij,jrk->rki", part, table[J])
        most = np.einsum("ij,jrk->rki", np.abs(part), np.abs(table[J]))
        assert (np.abs(off) <= 1e-11 * most)[:, asked].all()


def test_sums_by_a_table_end_with_the_time():
    X, group = data("rbf")
    samples, late = GroupedSamples(X, group, RBF), Deadline(lambda: 1.0, 0.0)
    groups, J = (samples.order, samples.count.cumsum()), np.arange(150)
    with until(late), pytest.raises(OutOfTime):
        samples.by_group(np.ones((150, 1, 1)), groups, (J, np.ones(150, int)), 2)


@on_semidefinite
def test_kept_scores_are_within_the_bounds_of_their_errors(name):
    X, _ = data(name)
    X, group = X[:140], np.arange(140) // 70  # too many for float64 at once
    problems = many(X, group, NAMED[name], C=10.0)
    c = np.zeros(140)
    rows, starts = problems.rows, problems.starts
    # Memory for rows of K in float32, not for all in float64.
    scores, _, _, _ = problems.samples.solve(
        (problems.groups, problems.group_ends, problems.ends, problems.after),
        problems.data,
        c,
        (False, 1),
        (1e-4, 10_000, 300_000, 1, False),
        never,
    )
    assert np.count_nonzero(c) > 2
    errors = problems.samples.kept_errors(rows, c, starts)
    off = np.abs(scores - plain(NAMED[name], X[rows], X[rows]) @ c)
    assert (off <= errors).all()
    assert (off > problems.samples.exact_errors(rows, c, starts)).any()


def test_errors_allow_for_sums_as_long_as_the_core_may_have_them():
    # One vector: sums of 8 rows in float32 round a weight, a product and 8 sums.
    samples = GroupedSamples(np.zeros((3, 2)), np.array([0, 0, 1]), RBF)
    rows, starts = samples.rows_of(np.array([0, 1])), np.array([0])
    errors = samples.kept_errors(rows, np.array([5.0, 0.0, 0.0]), starts)
    assert (errors >= _core.LONGEST * gamma_n(TOGETHER + 2, SINGLE) * 5.0).all()
    # Weights, values and products that float32 has no room for are lost so often.
    errors = samples.kept_errors(rows, np.array([1e-60, 0.0, 0.0]), starts)
    assert (errors >= _core.LONGEST * FLUSHED).all()


def test_bounds_hold_where_only_float64_sums_differences():
    rng = np.random.default_rng(0)
    group = np.arange(140) % 2
    X = 3.0 * (2.0 * group[:, np.newaxis] - 1.0) + 0.02 * rng.normal(size=(140, 80))
    kernel = Kernel("rbf", gamma=4.5)
    problems = many(X, group, kernel)
    assert problems.samples.is_fit
    rows, starts = problems.rows, problems.starts
    c = np.where(np.arange(140) % 3 == 0, problems.y, 0.0)
    scores = single_scores(X[rows], kernel.gamma) @ c
    off = np.abs(scores - plain(kernel, X[rows], X[rows]) @ c)
    errors = problems.samples.kept_errors(rows, c, starts)
    assert (off <= errors).all()
    assert off.max() > 1e-6 * np.abs(c).sum()


def test_what_float32_has_no_room_for_is_in_the_bounds():
    # exp(-88) is 6e-39, which the core rounds to 0: with c = 1e40 that is a score of 60.
    X, group = np.array([[0.0], [np.sqrt(88.0)], [200.0]]), np.array([0, 1, 1])
    samples = GroupedSamples(X, group, Kernel("rbf", gamma=1.0))
    rows, starts = samples.rows_of(np.array([0, 1])), np.array([0])
    errors = samples.kept_errors(rows, np.array([1e40, 0.0, 0.0]), starts)
    assert errors[1] >= 1e40 * np.exp(-88.0)
    # A weight of 1e-46 is 0 in float32.
    samples = GroupedSamples(1e7 * X, group, LINEAR)
    c = np.array([0.0, 1e-46, 0.0])
    assert samples.kept_errors(rows, c, starts)[2] >= 1e-46 * 1e14 * X[1, 0] * X[2, 0]


@pytest.mark.parametrize("scale", [1e-25, 1e17])
def test_products_that_float32_has_no_exponents_for_are_left_to_others(scale):
    X, group, _ = classes()
    assert GroupedSamples(X, group, LINEAR).is_fit
    assert not GroupedSamples(scale * X, group, LINEAR).is_fit
    X[:3] = 0.0  # their products are exact
    assert GroupedSamples(X, group, LINEAR).is_fit


def test_no_problem_without_an_answer_has_an_error():
    X, group, _ = classes()
    far = GroupedSamples(1e6 * X, group, Kernel("rbf", gamma=1.0))
    rows = far.rows_of(np.array([0, 1]))
    assert not far.is_fit
    assert (far.kept_errors(rows, np.zeros(len(rows)), np.array([0])) == 0.0).all()


def test_scores_that_are_not_made_in_time_are_no_numbers():
    X, group = np.random.default_rng(0).normal(size=(4000, 60)), np.arange(4000) % 2
    samples = GroupedSamples(X, group, RBF)
    rows, c = samples.rows_of(np.array([0, 1])), np.ones(4000)
    ends = np.array([4000])
    found = samples.exact((rows, c, ends), (rows, ends), 1, lambda: True)
    assert np.isnan(found[-1])
