"""Certificates of many problems at once: those of each alone, and never too good."""

import dataclasses
import itertools
from fractions import Fraction
from unittest.mock import patch

import numpy as np
import pytest
from scipy import sparse

from tests.cases.kernels import NAMED, SEMIDEFINITE, plain
from tests.cases.many import (
    alone,
    classes,
    many,
    never,
    nu_classes,
    nu_regression,
    one_class,
)
from tests.cases.pairwise import product
from tests.conftest import SETTINGS
from widemargin import Kernel, solve
from widemargin.numerics.rounding import gamma_n
from widemargin.problems import many as many_problems
from widemargin.solution import Certificate, relative_gaps
from widemargin.solvers.driver.limits import Limits
from widemargin.solvers.kernel.batch import INTERCEPTS

RBF = Kernel("rbf", gamma=0.4)
ONE_AGAINST_ALL = [(0, 1, 2), (2, 0, 1), (1, 2)]
on_every_setting = pytest.mark.parametrize(("loss", "intercept"), SETTINGS)


def solved(problems, tol=1e-3, start=None):
    """Coefficients, kept scores and intercepts by the core."""
    c = np.zeros(len(problems.y)) if start is None else start.copy()
    scores, numbers, _, _ = problems.samples.solve(
        (problems.groups, problems.group_ends, problems.ends, problems.after),
        problems.data,
        c,
        (not problems.loss.is_bounded, INTERCEPTS[problems.intercept]),
        (tol, 100_000, 1 << 26, 1, False),
        never,
    )
    return c, scores, numbers[:, 0].copy()


def certified(problems, c, scores, b):
    return problems.certificates(c, scores, b, 1, never)


def asked_for(problems, c, scores, b):
    """Support vectors and rows that bounds ask scores in float64 of."""
    asked, exact = [], problems.samples.exact

    def noted(*given):
        asked.append(given[:2])
        return exact(*given)

    with patch.object(problems.samples, "exact", noted):
        problems.bounds(c, scores, b, 1, never)
    return asked[0]


@product(
    name=SEMIDEFINITE,
    setting=SETTINGS,
    stored=[np.asarray, sparse.csr_array],
    places=[0.0, 1e6],
)
def test_bounds_are_those_of_each_problem_alone(
    name, setting, stored, places, monkeypatch
):
    monkeypatch.setattr(many_problems, "ALL_PLACES", places)
    X, group, C = classes()
    X = np.abs(X) if name == "chi2" else X
    problems = many(stored(X), group, NAMED[name], C, *setting, ONE_AGAINST_ALL)
    c, scores, b = solved(problems)
    found = certified(problems, c, scores, b)
    for k, (one, own) in enumerate(alone(problems, stored(X), NAMED[name])):
        same = one.certify(problems.y[own] * c[own], c[own], b[k])
        assert found[k].primal == pytest.approx(same.primal, rel=1e-9)
        assert found[k].dual == pytest.approx(same.dual, rel=1e-9)
        assert found[k].relative_gap < 0.01
        best = solve(one, "irwls", tol=1e-10).certificate
        assert best.relative_gap < 1e-6
        assert found[k].dual <= best.primal
        assert found[k].primal >= best.dual


@on_every_setting
def test_bounds_hold_at_any_point(loss, intercept):
    X, group, C = classes(seed=3)
    problems = many(X, group, RBF, C, loss, intercept)
    optimum = [
        solve(one, "irwls", tol=1e-9).certificate for one, _ in alone(problems, X, RBF)
    ]
    rng = np.random.default_rng(0)
    for size in (0.0, 1e-3, 1.0, 30.0):
        alpha = np.minimum(size * rng.random(len(problems.y)), problems.C)
        b = rng.normal(size=len(optimum))
        c = problems.y * alpha
        found = certified(problems, c, np.zeros(len(c)), b)
        for bounds, best in zip(found, optimum, strict=True):
            assert bounds.primal >= best.dual
            assert bounds.dual <= best.primal


def test_a_sum_that_misses_zero_is_repaired_or_nothing_is_proved():
    X, group, _ = classes()
    problems = many(X, group, RBF)
    c, scores, b = solved(problems, tol=1e-6)
    before = certified(problems, c, scores, b)
    first = np.flatnonzero((problems.y > 0) & (c > 0.1) & (c < 0.9))[0]
    k = int(np.searchsorted(problems.ends, first, side="right"))
    c[first] += 1e-3
    after = certified(problems, c, scores, b)
    assert before[k].dual - 0.05 < after[k].dual < before[k].dual
    own = slice(problems.starts[k], problems.ends[k])
    c[own] = np.where(problems.y[own] > 0, 1.0, 0.0)
    assert certified(problems, c, scores, b)[k].dual == -np.inf


@on_every_setting
@pytest.mark.parametrize("wrong", ["sign", "bound", "weight", "nan", "inf"])
def test_no_lower_bound_of_what_is_not_feasible(loss, intercept, wrong):
    X, group, C = classes()
    problems = many(X, group, RBF, C, loss, intercept)
    c, scores, b = solved(problems)
    place = int(np.flatnonzero(problems.C > 0)[0])
    if wrong == "weight":  # a row that has none
        place = int(np.flatnonzero(problems.C == 0)[0])
    value = {"sign": -0.1, "weight": 0.1, "nan": np.nan, "inf": np.inf}
    c[place] = problems.y[place] * value.get(wrong, 1.001 * problems.C[place])
    k = int(np.searchsorted(problems.ends, place, side="right"))
    bounds = certified(problems, c, scores, b)[k]
    if wrong == "bound" and loss == "squared_hinge":  # it has none
        assert np.isfinite(bounds.dual)
    else:
        assert bounds.dual == -np.inf
    assert not np.isnan(bounds.primal)


def test_rows_whose_margin_may_be_too_small_count(monkeypatch):
    # By the kept scores no row has a loss; those in float64 tell how many have.
    monkeypatch.setattr(many_problems, "ALL_PLACES", 0.0)
    X, group, _ = classes()
    problems = many(X, group, RBF)
    c, scores, b = solved(problems)
    true = certified(problems, c, scores, b)
    errors = problems.samples.kept_errors(problems.rows, c, problems.starts)
    kept = scores + problems.y * 0.99 * errors  # as wrong as they may be
    for one, other in zip(certified(problems, c, kept, b), true, strict=True):
        assert one.primal == pytest.approx(other.primal, rel=1e-12)


def paths(seed=5, loss="hinge", intercept="free"):
    """Paths of rising C, as of a search: in each some rows have no weight."""
    X, group, _ = classes(m=420, n=3, seed=seed)
    form = loss, intercept, [(0, 1, 2), ((0, 1, 2), 0, 3.0)]
    one = many(X, group, RBF, 0.05, *form)
    rows, signs = one.rows[: one.ends[0]], one.y[: one.ends[0]]
    folds, Cs = 4, 0.02 * 4.0 ** np.arange(7)
    weights = (np.arange(len(rows)) % folds != np.arange(folds)[:, np.newaxis]) * 1.0
    count, m = folds * len(Cs), len(rows)
    after = np.arange(count) - 1
    after[:: len(Cs)] = -1
    return dataclasses.replace(
        one,
        groups=np.tile([0, 1, 2], count),
        group_ends=3 * np.arange(1, count + 1),
        ends=m * np.arange(1, count + 1),
        y=np.tile(signs, count),
        C=np.multiply.outer(weights[:, rows], Cs).transpose(0, 2, 1).ravel(),
        after=after,
        known_rows=np.tile(rows, count),
    )


def test_scores_along_paths_are_those_of_the_answers(monkeypatch):
    # Where few coefficients move, only their rows are added.
    monkeypatch.setattr(many_problems, "ALL_PLACES", 0.0)
    problems = paths()
    c, scores, _ = solved(problems)
    errors = problems.samples.kept_errors(problems.rows, c, problems.starts)
    every = (problems.rows, problems.ends)
    support = problems.rows, c, problems.ends
    true = problems.samples.exact(support, every, 1, never)
    assert (np.abs(scores - true) <= errors).all()
    assert np.abs(scores - true).max() < 1e-3 * np.abs(true).max()


def test_scores_after_far_larger_coefficients_are_made_anew():
    # What rounding has left of these is larger than bounds of the small ones allow for.
    X, group, _ = classes(m=140)
    groups = [(0, 1, 2), ((0, 1, 2), 0, 0.5)]
    problems = many(X, group, RBF, 1.0, "squared_hinge", "none", groups)
    q = np.random.default_rng(0).uniform(0.5, 1.0, problems.ends[0])
    problems = dataclasses.replace(problems, q=np.append(1e6 * q, q[::-1]))
    c, scores, _ = solved(problems)
    own = slice(problems.ends[0], None)
    assert 0.0 < np.abs(c[own]).sum() < 1e-3 * np.abs(c).sum()
    errors = problems.samples.kept_errors(problems.rows, c, problems.starts)
    every = (problems.rows, problems.ends)
    true = problems.samples.exact((problems.rows, c, problems.ends), every, 1, never)
    assert (np.abs(scores - true) <= errors).all()


def test_scores_of_values_that_problems_share_may_be_longer_sums(monkeypatch):
    monkeypatch.setattr(many_problems, "ALL_PLACES", 0.0)
    problems = paths()
    alone = dataclasses.replace(problems, after=np.full(len(problems.ends), -1))
    given = *solved(problems), 1, never
    assert (problems.bounds(*given)[:, 3] > alone.bounds(*given)[:, 3]).all()


@on_every_setting
def test_float32_proves_what_its_errors_allow(loss, intercept, monkeypatch):
    monkeypatch.setattr(many_problems, "ALL_PLACES", 0.0)
    problems = paths(5, loss, intercept)
    c, scores, b = solved(problems)
    true = problems.bounds(c, scores, b, 1, never)
    made = []
    exact = problems.samples.exact

    def counted(support, rows, *more):
        made.append(np.diff(rows[1], prepend=0))
        return exact(support, rows, *more)

    monkeypatch.setattr(problems.samples, "exact", counted)
    rough = dataclasses.replace(problems, enough=1e-3)
    found = rough.bounds(c, scores, b, 1, never)
    known = made[-1] == 0
    assert 0.2 < known.mean() < 1.0
    assert (relative_gaps(found)[known] <= 1e-3).all()
    # By the scores in float64 less is allowed for rounding: no bound is better.
    assert (found[known, 0] >= true[known, 0]).all()
    assert (found[known, 1] <= true[known, 1]).all()
    np.testing.assert_allclose(found[~known, :2], true[~known, :2], rtol=1e-12)
    # What may be wrong by more than the gap proves nothing.
    strict = dataclasses.replace(problems, enough=1e-9)
    again = strict.bounds(c, scores, b, 1, never)
    np.testing.assert_allclose(again[:, :2], true[:, :2], rtol=1e-12)
    assert (made[-1] > 0).all()


@pytest.mark.parametrize("wrong", ["scores", "weights"])
def test_float32_proves_nothing_where_it_has_no_bound(wrong, monkeypatch):
    monkeypatch.setattr(many_problems, "ALL_PLACES", 0.0)
    problems = paths()
    c, scores, b = solved(problems)
    if wrong == "scores":
        scores[:] = np.inf
    else:
        problems = dataclasses.replace(problems, C=1e308 * (problems.C > 0))
    true = problems.bounds(c, scores, b, 1, never)
    rough = dataclasses.replace(problems, enough=1e-3)
    np.testing.assert_array_equal(rough.bounds(c, scores, b, 1, never), true)


def test_places_that_count_have_alpha_or_perhaps_a_loss(monkeypatch):
    # As many problems as two threads share, whatever is asked of each row.
    monkeypatch.setattr(many_problems, "ALL_PLACES", 0.0)
    X, group, C = classes(m=400)
    path = [(0, 1, 2), *[((0, 1, 2), k, 0.5) for k in range(39)]]
    problems = many(X, group, RBF, C, groups=path)
    c, scores, b = solved(problems, tol=1e-6)
    (support, weights, support_ends), (rows, ends) = asked_for(problems, c, scores, b)
    kept = problems.samples.kept_errors(problems.rows, c, problems.starts)
    margins = problems.y * (scores + np.repeat(b, problems.sizes))
    size = 1.0 + np.abs(scores) + np.repeat(np.abs(b), problems.sizes)
    may_lose = margins < 1.0 + (kept + gamma_n(8) * size)
    counts = np.flatnonzero((c != 0.0) | (problems.C > 0.0) & may_lose)
    assert 0 < len(counts) < 0.9 * len(c)
    np.testing.assert_array_equal(rows, problems.rows[counts])
    np.testing.assert_array_equal(ends, counts.searchsorted(problems.ends))
    used = np.flatnonzero(c)
    np.testing.assert_array_equal(support, problems.rows[used])
    np.testing.assert_array_equal(weights, c[used])
    np.testing.assert_array_equal(support_ends, used.searchsorted(problems.ends))
    bounds = [problems.bounds(c, scores, b, k, never).tolist() for k in (1, 3)]
    assert bounds[0] == bounds[1]


def test_alpha_without_a_weight_counts_in_the_upper_bound(monkeypatch):
    # Its score is made in float64, too: by the kept one, P could be too low.
    monkeypatch.setattr(many_problems, "ALL_PLACES", 0.0)
    X, group, C = classes()
    problems = many(X, group, RBF, C)
    c, scores, b = solved(problems)
    place = int(np.flatnonzero(problems.C == 0)[0])
    c[place] = 0.5 * problems.y[place]
    k = int(np.searchsorted(problems.ends, place, side="right"))
    true = problems.bounds(c, scores, b, 1, never)
    scores[place] = -1e3 * problems.y[place]
    assert (problems.bounds(c, scores, b, 1, never)[k] == true[k]).all()


def test_places_of_no_row_are_refused():
    X, group, _ = classes()
    problems = many(X, group, RBF)
    rows, c = problems.rows.copy(), np.ones(len(problems.y))
    for wrong in (-1, len(X)):
        rows[-1] = wrong
        with pytest.raises(ValueError, match="no row"):
            problems.samples.exact_errors(rows, c, problems.starts)
        other = many(X, group, RBF)
        vars(other)["rows"] = rows
        with pytest.raises(ValueError, match="no row"):
            certified(other, c, c, np.zeros(len(problems.ends)))


@pytest.mark.parametrize("form", ["classes", "one_class", "regression"])
def test_a_sum_that_is_not_met_costs_what_it_takes_to_meet_it(form):
    X, group, C = classes()
    C = C + 0.1
    if form == "classes":
        problems = nu_classes(X, np.where(group > 0, 1.0, -1.0), RBF, 0.3, C)
    elif form == "one_class":
        problems = one_class(X, RBF, 0.3, C)
    else:
        problems = nu_regression(X, X[:, 0], RBF, 0.3, C)
    c = problems.start()
    for own, mass in problems.sums_given:
        assert np.abs(c[own]).sum() == pytest.approx(mass, rel=1e-14)
    best, scores, b = solved(problems, 1e-6, c)
    true = certified(problems, best, scores, b)[0].dual
    assert true > -np.inf
    for factor in (0.98, 1.02):
        c = np.clip(factor * best, -problems.C, problems.C)
        # What it says of the answer with the right sums is no more than that has.
        assert -np.inf < certified(problems, c, scores, b)[0].dual <= true
    if form != "regression":  # whose rows are there twice: they have room for all
        assert certified(problems, 0.01 * best, scores, b)[0].dual == -np.inf


def test_sums_are_met_at_places_whose_scores_are_rough(monkeypatch):
    # What it costs there is no less where their scores are as wrong as they may be.
    X, group, _ = classes()
    problems = nu_classes(X, np.where(group > 0, 1.0, -1.0), RBF, 0.25, np.ones(len(X)))
    best, _, b = solved(problems, 1e-6, problems.start())
    c = np.where(np.abs(best) > 0.5, problems.y, 0.0)  # others alone have room
    lack = [mass - np.abs(c[own]).sum() for own, mass in problems.sums_given]
    assert min(lack) > 0.0
    every = problems.rows, problems.ends
    f = problems.samples.exact((problems.rows, c, problems.ends), every, 1, never)
    true = certified(problems, c, f, b)[0].dual
    monkeypatch.setattr(many_problems, "ALL_PLACES", 0.0)
    assert len(asked_for(problems, c, f, b)[1][0]) < len(c)
    errors = problems.samples.kept_errors(problems.rows, c, problems.starts)
    wrong = np.sign(f) * np.maximum(np.abs(f) - 0.99 * errors, 0.0)
    assert -np.inf < certified(problems, c, wrong, b)[0].dual <= true


def test_two_weights_of_one_row_count_as_their_sum():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(50, 3))
    problems = nu_regression(X, X[:, 0], Kernel("linear", gamma=1.0))
    m = len(X)
    small = rng.normal(size=m) * 10.0 ** rng.uniform(-18, 0, m)
    c = np.abs(np.concatenate([small, 0.5 + rng.uniform(size=m)]))
    c[m : m + 5], c[:m:7] = 0.0, c[m::7]
    c *= problems.y
    before = c.copy()
    as_they_are = problems.counted(c)
    assert as_they_are[m:].any()  # these have no sum in float64
    problems.round_pairs(c)
    first, second = np.split(c, 2)
    sums, others = np.split(problems.counted(c), 2)
    both = (first != 0.0) & (second != 0.0)
    assert 0 < both.sum() < m - 5
    assert sums[~both].tolist() == first[~both].tolist()
    assert others.tolist() == np.where(both, 0.0, second).tolist()
    for whole, one, other in zip(sums[both], first[both], second[both], strict=True):
        assert Fraction(whole) == Fraction(one) + Fraction(other)
    larger = np.tile(np.abs(before.reshape(2, m)).max(axis=0), 2)
    assert (np.abs(c - before) <= 2.0**-52 * larger).all()
    assert (c * problems.y >= 0.0).all()
    assert (np.abs(c) <= larger).all()


@pytest.mark.parametrize("sides", [(1.0, 1.0), (1.0, 0.0), (0.0, 1.0)])
def test_weights_of_either_copy_of_a_row_are_in_the_bounds(sides, monkeypatch):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 3))
    problems = nu_regression(X, X[:, 0], RBF)
    c = problems.y * np.outer(sides, rng.uniform(0.1, 0.9, len(X))).ravel()
    f = plain(RBF, X, X)[problems.rows][:, problems.rows] @ c
    rho = -50.0  # an epsilon that leaves no loss
    answer = c, f, np.zeros(1), 1, never, np.array([rho])
    all_places = problems.bounds(*answer)
    monkeypatch.setattr(many_problems, "ALL_PLACES", 0.0)
    rest = 0.5 * c @ f
    assert (problems.q + rho < problems.y * f).all()
    primal = rest - rho * problems.mass[0]
    for found in (problems.bounds(*answer), all_places):
        assert found[0, 0] == pytest.approx(primal, rel=1e-9)
        assert found[0, 1] <= problems.q @ np.abs(c) - rest


def test_gaps_of_many_are_those_of_each():
    numbers = [0.0, -2.0, 1.0, 1.0 + 1e-17, 1e308, -1e308, np.inf, -np.inf, np.nan]
    some = [*itertools.product(numbers, numbers, [0.0, 0.5, np.inf], [0.0])]
    gaps = [Certificate(*one).relative_gap for one in some]
    assert relative_gaps(np.array(some)).tolist() == gaps


def test_a_gap_that_is_relative_to_no_number_proves_nothing():
    """It was 0: a regression with C near the end of the range was solved."""
    bounds = Certificate(primal=3e305, dual=120.0, scale=np.inf)
    assert bounds.relative_gap == np.inf
    assert not bounds.is_within(0.1)
    assert relative_gaps(np.array([[3e305, 120.0, np.inf, 0.0]])) == [np.inf]


def test_scores_out_of_range_prove_nothing_safe(monkeypatch):
    monkeypatch.setattr(many_problems, "ALL_PLACES", 0.0)
    X, group, _ = classes()
    problems = many(X, group, RBF)
    c, scores, b = solved(problems)
    true = certified(problems, c, scores, b)
    found = certified(problems, c, np.inf * problems.y, b)
    for one, other in zip(found, true, strict=True):  # more terms: more rounding
        assert one.primal == pytest.approx(other.primal, rel=1e-12)
        assert one.primal >= other.primal


def test_rounding_of_a_margin_is_no_safety(monkeypatch):
    # Each margin of the larger class is 1 - 1e-20: its losses are 1e-20 of C.
    monkeypatch.setattr(many_problems, "ALL_PLACES", 0.0)
    X, group = np.zeros((5, 1)), np.array([0, 0, 0, 0, 1])
    C = np.array([1.0, 1.0, 1.0, 1.0, 1e-30])
    problems = many(X, group, RBF, C, groups=[(0, 1)])
    c = np.array([1e-30, 0.0, 0.0, 0.0, -1e-30])
    scores, b = np.full(5, -1e-20), np.ones(1)
    _, (rows, _) = asked_for(problems, c, scores, b)
    assert len(rows) == len(c)


def test_bounds_are_infinite_where_numbers_leave_the_range():
    X, group, _ = classes()
    problems = many(X, group, Kernel("linear", gamma=1.0), C=1e300)
    c = problems.y * 1e300
    for bounds in certified(problems, c, np.zeros(len(c)), np.zeros(3)):
        assert (bounds.primal, bounds.dual) == (np.inf, -np.inf)


def test_nothing_is_proved_by_scores_that_were_not_made_in_time():
    X, group = np.random.default_rng(0).normal(size=(4000, 60)), np.arange(4000) % 2
    problems = many(X, group, RBF)
    c = 1e-6 * problems.y
    (bounds,) = problems.certificates(c, np.zeros(4000), np.zeros(1), 1, lambda: True)
    assert (bounds.primal, bounds.dual) == (np.inf, -np.inf)


def test_an_intercept_that_is_no_number_proves_nothing():
    # Scores and their squares are numbers: only the slacks are none.
    X, group, _ = classes()
    problems = many(X, group, RBF)
    c, scores, b = solved(problems)
    for bounds in certified(problems, c, scores, np.full_like(b, np.nan)):
        assert bounds.primal == np.inf


def test_the_gap_of_the_core_is_that_of_the_bounds():
    X, group, C = classes(m=200)
    for loss, intercept in SETTINGS:
        problems = many(X, group, RBF, C, loss, intercept)
        c = np.zeros(len(problems.y))
        scores, numbers, _, _ = problems.samples.solve(
            (problems.groups, problems.group_ends, problems.ends, problems.after),
            problems.data,
            c,
            (loss == "squared_hinge", INTERCEPTS[intercept]),
            (Limits().tol, 100_000, 1 << 26, 1, False),
            never,
        )
        found = certified(problems, c, scores, numbers[:, 0].copy())
        assert numbers[:, 1] == pytest.approx([one.primal for one in found], rel=1e-5)
        assert numbers[:, 2] == pytest.approx([one.dual for one in found], rel=1e-5)


def test_places_are_put_into_the_order_of_the_data():
    X, group, _ = classes()
    problems = many(X, group, RBF, groups=[(2, 0), (1, 2)])
    assert (np.diff(problems.rows) < 0).any()
    for start, end in zip(problems.starts, problems.ends, strict=True):
        own = problems.order[start:end]
        assert sorted(own) == list(range(start, end))
        assert (np.diff(problems.rows[own]) > 0).all()


def test_rows_that_are_there_twice_come_one_copy_after_the_other():
    X, group, _ = classes()
    problems = many(X, group, RBF, groups=[(2, 0, 2, 0)])
    first, second = np.split(problems.rows[problems.order], 2)
    assert first.tolist() == second.tolist() == sorted(set(problems.rows))
    assert problems.order[: len(first)].max() < len(first)


def test_both_weights_of_a_row_that_is_there_twice_count():
    X, _, _ = classes(m=30)
    one = nu_regression(X, X[:, 0], Kernel("rbf", gamma=0.4))
    m, twice = len(one.y), dict.fromkeys(("y", "C", "q", "mass", "groups"), 2)
    several = {name: np.tile(getattr(one, name), k) for name, k in twice.items()}
    ends = {"group_ends": np.array([2, 4]), "ends": np.array([m, 2 * m])}
    path = dataclasses.replace(one, **several, **ends, after=np.array([-1, 0]))
    apart = dataclasses.replace(path, after=np.array([-1, -1]))
    c = np.tile(np.random.default_rng(0).uniform(size=m) * one.y, 2)
    none = c, np.zeros(2 * m), np.zeros(2), 1, never
    found = [[one.primal for one in some.certificates(*none)] for some in (path, apart)]
    # The order of sums differs, and what bounds allow for it.
    assert found[0] == pytest.approx(found[1], rel=1e-12)


def of_folds():
    """Answers of 3 pairs of classes, 2 folds and 3 values of C; weights of the folds.

    Of each problem one margin is half of what its score may be off, and one is NaN.
    """
    X, group, weights = classes(m=90)
    weights = np.array([weights, weights[::-1]])
    pairs = [(0, 1), (0, 2), (1, 2)]
    problems = many(X, group, RBF, groups=[pair for pair in pairs for _ in range(6)])
    fold, C = np.tile(np.indices((2, 3)).reshape(2, -1), 3).repeat(problems.sizes, 1)
    C = weights[fold, problems.rows] * 10.0**C
    problems = dataclasses.replace(problems, C=C)
    c, scores, b = solved(problems)
    held = np.flatnonzero(C == 0.0)
    first = held[np.searchsorted(held, problems.starts)]
    errors = problems.samples.kept_errors(problems.rows, c, problems.starts)
    scores[first] = 0.5 * (problems.y * errors)[first] - b
    scores[held[np.searchsorted(held, first) + 1]] = np.nan
    return problems, (c, scores, b), weights


def test_answers_of_folds_are_added_up_where_they_belong():
    problems, (c, scores, b), weights = of_folds()
    sums = np.array([[0, 1], [1, 0], [2, 2]])
    expected = np.zeros((2, 90, 3, 3)), *np.zeros((2, 2, 90, 3), np.int16)
    errors = problems.samples.kept_errors(problems.rows, c, problems.starts)
    for t, own in enumerate(map(slice, problems.starts, problems.ends)):
        k, fold, C = np.unravel_index(t, (3, 2, 3))
        rows = problems.rows[own]
        expected[0][fold, rows, sums[k][(c[own] < 0).astype(int)], C] += c[own]
        margins = problems.y[own] * (scores[own] + b[t])
        held = weights[fold, rows] == 0.0
        for counts, sign in zip(expected[1:], (1, -1), strict=True):
            counts[fold, rows, C] += held & (sign * margins > errors[own] + 1e-12)
    assert (expected[0] != 0).any(axis=(0, 1, 3)).all()
    assert expected[1].max() == 2
    assert expected[2].max() > 0
    for threads in (1, 3):
        found = tuple(map(np.zeros_like, expected))
        given = (c, scores, b), threads, weights, sums
        problems.keep_answers(*given, found[0], found[1:])
        for one, same in zip(found, expected, strict=True):
            np.testing.assert_array_equal(one, same)
        problems.keep_answers(*given, found[0])  # without counts
        np.testing.assert_array_equal(found[0], 2.0 * expected[0])
    with pytest.raises(ValueError, match="do not fit"):
        problems.keep_answers(*given[:3], sums + 1, found[0])
