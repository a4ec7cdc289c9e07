"""Interior points of whole problems: on the products of few rows, and on K itself."""

import dataclasses

import numpy as np
import pytest
import sklearn.svm
from sklearn.datasets import make_friedman3, make_regression

from tests.cases.many import (
    classes,
    many,
    never,
    nu_classes,
    nu_regression,
    one_class,
    regression,
)
from tests.cases.pairwise import product
from tests.conftest import SETTINGS
from widemargin import SVR, Kernel, LinearSVR
from widemargin.estimators import linear_choice
from widemargin.numerics.cholesky import cholesky
from widemargin.solvers.kernel import batch
from widemargin.solvers.kernel.inner_points import Boxed, Dense, Method, Point
from widemargin.solvers.kernel.whole_points import settled, whole_points
from widemargin.system import deadline

LINEAR = Kernel("linear", 1.0)
TOL = 1e-4


def rows(m=60, n=90, seed=0):
    """More columns than rows, targets of noise, and weights."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(m, n))
    return X, X[:, 0] + rng.normal(size=m), rng.uniform(0.2, 3.0, m)


def of_products(problems, X):
    """The problem, whose answers are weights."""
    return dataclasses.replace(problems, X=X)


def gaps(problems):
    """The relative gaps of the answers, as the certificate has them, and these."""
    answers = whole_points(problems, 0, TOL)
    found = []
    for one in answers:
        b, rho = np.array([one.b]), np.array([one.rho])
        bounds = problems.certificates(one.c, one.scores, b, 1, never, rho)
        found.append(bounds[0].relative_gap)
    return found, answers


# -- the matrix ------------------------------------------------------------------------


@pytest.mark.parametrize("copies", [1, 2])
@pytest.mark.parametrize("small", [1.0, 1e-9])
def test_systems_of_samples_that_occur_twice(copies, small):
    X, _, ridge = rows(20, 5)
    K, ridge = X @ X.T, np.resize(ridge, 20 * copies)
    d = np.resize([small, 1.0, 1e6], 20 * copies)
    H, whole = Dense(K, copies, ridge), np.tile(K, (copies, copies)) + np.diag(ridge)
    right = np.random.default_rng(1).normal(size=(20 * copies, 3))
    np.testing.assert_allclose(H.times(right[:, 0]), whole @ right[:, 0], rtol=1e-12)
    for vector in (right, right[:, 0]):
        x = H.factored(d)(vector)
        assert x.shape == vector.shape
        np.testing.assert_allclose((whole + np.diag(d)) @ x, vector, atol=1e-8)
    J = np.array([3, 19, 20 * copies - 2])
    np.testing.assert_allclose(H.among(J), whole[np.ix_(J, J)], rtol=1e-15)


def test_differences_of_copies_are_not_lost_beside_small_numbers():
    # Of 1 + 1e-12 and 1, each over 1e-10.
    H, d = Dense(np.ones((1, 1)), 2), np.full(2, 1e-10)
    x = H.factored(d)(np.array([1.0 + 1e-12, 1.0]))
    assert x[0] - x[1] == pytest.approx(1e-2, rel=1e-3)
    assert x.sum() == pytest.approx(1.0, rel=1e-9)


@pytest.mark.parametrize("order", ["C", "F"])
def test_a_factor_in_place_of_its_matrix(order):
    X = rows(30, 40)[0]
    M = X @ X.T
    solve, jitter = cholesky(np.array(M, order=order))
    assert jitter == 0.0
    np.testing.assert_allclose(M @ solve(X[:, 0]), X[:, 0], atol=1e-10)


@pytest.mark.parametrize("order", ["C", "F"])
def test_a_singular_matrix_is_factored_as_it_was_but_for_its_diagonal(order):
    X = rows(30, 4)[0]
    M = X @ X.T  # of rank 4
    solve, jitter = cholesky(np.array(M, order=order))
    assert 0.0 < jitter < 1e-8
    M[np.diag_indices(30)] *= 1.0 + jitter
    x = solve(X[:, 0])
    np.testing.assert_allclose(M @ x, X[:, 0], atol=1e-2)


# -- whole problems --------------------------------------------------------------------


@product(setting=SETTINGS, epsilon=[0.0, 0.1, 1.0], C=[1e-3, 1.0, 1e3])
def test_regressions_end_near_the_gap(setting, epsilon, C):
    X, t, weights = rows()
    form = {"loss": setting[0], "intercept": setting[1]}
    problems = regression(X, t, LINEAR, epsilon, C * weights, **form)
    found, answers = gaps(of_products(problems, X))
    assert min(found) <= TOL
    for one in answers:  # one of two places of a row is at zero
        assert not (one.c[:60] * one.c[60:]).any()


@product(setting=SETTINGS, kernel=[LINEAR, Kernel("rbf", 0.02)], C=[0.1, 1e3])
def test_classes_end_near_the_gap_whatever_weights_are_zero(setting, kernel, C):
    X, group, weights = classes(kinds=2)
    form = {"loss": setting[0], "intercept": setting[1]}
    problems = many(X, group, kernel, C * weights, **form)
    if kernel is LINEAR:
        problems = of_products(problems, X)
    found, answers = gaps(problems)
    assert min(found) <= TOL
    for one in answers:
        assert not one.c[problems.C == 0.0].any()
        scores = problems.samples.values(problems.rows) @ one.c
        np.testing.assert_allclose(one.scores, scores, atol=1e-9 * np.abs(scores).max())


def test_separated_classes_have_no_loss_that_rounding_leaves(monkeypatch):
    factors, factored = [], Dense.factored

    def counted(self, d):
        factors.append(d)
        return factored(self, d)

    monkeypatch.setattr(Dense, "factored", counted)
    X, t, _ = rows(60, 200)
    problems = many(X, (t > 0).astype(int), LINEAR, 1e8)
    found, answers = gaps(of_products(problems, X))
    assert found[0] <= 1e-7  # with losses 6e-3
    margins = problems.y * (answers[0].scores + answers[0].b)
    assert margins.min() >= 1.0
    assert len(factors) <= 15  # from the middle of the bounds 30


@pytest.mark.parametrize("nu", [0.2, 0.6])
def test_sums_that_are_given_stay(nu):
    X, t, weights = rows()
    y = np.where(t > 0.0, 1.0, -1.0)
    kernel = Kernel("rbf", 0.02)
    for problems in (
        one_class(X, kernel, nu, weights),
        nu_classes(X, y, kernel, 0.5 * nu, weights),
        nu_regression(X, t, kernel, nu, 10.0 * weights),
    ):
        found, answers = gaps(problems)
        assert min(found) <= TOL
        for one in answers:
            assert np.abs(one.c).sum() == pytest.approx(problems.mass[0], rel=1e-12)


def test_bounds_that_are_certain_leave_few_rows():
    X, t, weights = rows(60, 200)
    problems = of_products(regression(X, t, LINEAR, 1.0, 1e3 * weights), X)
    (settled, inside), answers = gaps(problems)
    assert max(settled, inside) <= TOL
    assert np.count_nonzero(answers[0].c) < np.count_nonzero(answers[1].c) == 60


def test_a_row_that_is_wrongly_at_its_bound_leaves_it():
    X, t, weights = rows(40, 60)
    n, zero = 40, np.zeros(40)
    C = 1e3 * weights
    bounds = np.append(zero, -C), np.append(C, zero)
    linear, sums = np.append(0.5 - t, -0.5 - t), np.zeros(1)
    H = Dense(X @ X.T, 2)
    method = Method(Boxed(H, linear, *bounds, np.ones((2 * n, 1)), sums))
    last = method.run(method.begin(), lambda objective: 1e-9)
    c, b = settled(method, last, True)
    free = np.flatnonzero((method.lower < c) & (c < method.upper))
    j = free[np.abs(c[free]).argmin()]
    moved, low, high = last.c.copy(), last.low.copy(), last.high.copy()
    moved[j] = 1e-9 if j < n else -1e-9
    (low if j < n else high)[j] = 1e3
    wrong = Point(moved, last.b, low, high)
    assert method.at_bounds(wrong)[j] == 0.0
    again, level = settled(method, wrong, True)
    np.testing.assert_allclose(again, c, atol=1e-9 * np.abs(c).max())
    np.testing.assert_allclose(level, b, atol=1e-9)


def test_rows_of_zeros_leave_the_inner_point():
    X, t, weights = rows()
    X[:5] = 0.0
    problems = of_products(regression(X, t, LINEAR, 0.0, 100.0 * weights), X)
    found, answers = gaps(problems)
    assert len(answers) == 1  # K of the free rows has no factor
    assert found[0] <= TOL


def test_epsilon_below_zero_lets_both_places_of_a_row_count():
    X, t, weights = rows()
    problems = of_products(regression(X, t, LINEAR, -0.5, weights), X)
    found, answers = gaps(problems)
    assert min(found) <= TOL
    assert (answers[0].c[:60] * answers[0].c[60:]).any()


def test_a_row_with_weight_on_one_side_alone_is_left_to_others():
    X, t, weights = rows()
    problems = regression(X, t, LINEAR, 0.1, weights)
    problems.C[3] = 0.0
    assert whole_points(of_products(problems, X), 0, TOL) == []


def test_no_answer_where_a_sum_leaves_no_room():
    X, t, _ = rows(12)
    y = np.where(np.arange(12) % 2, 1.0, -1.0)
    assert whole_points(nu_classes(X, y, LINEAR, 1.0), 0, TOL) == []


# -- in fits ---------------------------------------------------------------------------


def wide(m, n):
    """More columns than half of the rows, and targets of variance 1."""
    X, y = make_regression(m, n, n_informative=50, noise=10.0, random_state=0)
    return X, (y - y.mean()) / y.std()


def few_steps(monkeypatch):
    """Pair steps end before float64 begins."""
    monkeypatch.setattr(batch, "FEW_VISITS", 0)


@pytest.mark.parametrize("C", [100.0, 1e4])
def test_wide_regressions_with_a_large_C_are_solved_at_once(C):
    X, y = wide(700, 400)  # the augmented Lagrangian took 2 to 8 times as long
    model = SVR(kernel="linear", C=C, tol=1e-3).fit(X, y)
    peer = sklearn.svm.SVR(kernel="linear", C=C, tol=1e-5).fit(X, y)
    assert (model.solution_.solver, model.status_) == ("batch", "solved")
    np.testing.assert_allclose(model.coef_, peer.coef_, atol=1e-3)
    assert len(model.support_) < 500
    assert LinearSVR(C=C, tol=1e-3).fit(X, y).solution_.solver == "batch"


@pytest.mark.parametrize(
    ("m", "n", "by"), [(400, 300, "active_set"), (300, 900, "batch")]
)
def test_wide_regressions_with_the_squared_loss(m, n, by):
    X, y = wide(m, n)  # 400 x 300: the products of rows took 14 times as long
    model = LinearSVR(C=100.0, loss="squared_epsilon_insensitive", tol=1e-3).fit(X, y)
    assert (model.solution_.solver, model.status_) == (by, "solved")


def test_others_go_on_where_inner_points_find_nothing(monkeypatch):
    asked = []
    monkeypatch.setattr(batch, "whole_points", lambda *which: asked.append(which) or [])
    X, y = wide(1100, 600)
    few_steps(monkeypatch)
    model = SVR(kernel="linear", C=100.0, tol=1e-3).fit(X, y)
    assert asked  # of what pair steps do not solve
    assert model.solution_.solver != "batch"
    assert "after batch got no further" in model.solution_.reason


def test_no_time_leaves_the_inner_point_that_is_reached(monkeypatch):
    steps, step = [], Method._step

    def late(self, at, Hc):
        steps.append(at)
        if len(steps) == 9:
            raise deadline.OutOfTime
        return step(self, at, Hc)

    monkeypatch.setattr(Method, "_step", late)
    X, t, weights = rows()
    problems = of_products(regression(X, t, LINEAR, 0.1, 100.0 * weights), X)
    found, answers = gaps(problems)
    assert len(answers) == 1
    assert 1e-7 < found[0] < 0.5


def test_inner_points_need_memory(monkeypatch):
    monkeypatch.setattr(batch, "whole_points", None)
    monkeypatch.setattr(batch, "MATRICES", 1 << 40)
    monkeypatch.setattr(batch, "MOST_EXACTLY", 0)
    X, y = wide(1100, 600)
    few_steps(monkeypatch)
    model = SVR(kernel="linear", C=100.0, tol=1e-3).fit(X, y)
    assert (model.solution_.solver == "batch", model.status_) == (False, "solved")


def test_ctrl_c_at_inner_points_keeps_what_pair_steps_found(monkeypatch):
    def pressed(*which):
        raise KeyboardInterrupt

    monkeypatch.setattr(batch, "whole_points", pressed)
    X, y = wide(1100, 600)
    few_steps(monkeypatch)
    model = SVR(kernel="linear", C=100.0, tol=1e-3)
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, y)
    assert (model.solution_.solver, model.status_) == ("batch", "interrupted")
    assert model.dual_gap_ < 1.0


def test_what_products_leave_a_little_above_the_gap_is_where_others_begin(monkeypatch):
    # Bounds of rounding are in the way; in twice the precision they are not.
    X, y = wide(300, 900)
    monkeypatch.setattr(linear_choice, "MOST_LINEAR", 0)
    model = LinearSVR(C=1e6, tol=1e-3).fit(X, y)
    assert (model.solution_.solver, model.status_) == ("augmented_lagrangian", "solved")
    assert model.n_iter_ == 1  # of 43 from zero


def test_working_sets_of_all_rows_with_too_many_steps_take_k_itself():
    X, y = make_friedman3(1100, noise=0.1, random_state=0)
    X, y = (X - X.mean(axis=0)) / X.std(axis=0), (y - y.mean()) / y.std()
    model = SVR(C=1e5, tol=1e-3, time_limit=20.0, solver="irwls").fit(X, y)
    # It was not solved in 60 s.
    assert (model.solution_.solver, model.status_) == ("irwls", "solved")
