"""Sparse linear problems in one call: the answers, and which of them take which way."""

import numpy as np
import pytest
from scipy import sparse

from tests.cases.pairwise import product
from tests.conftest import SETTINGS
from widemargin import (
    LinearSVC,
    LinearSVR,
    Problem,
    _core,
    linear_svc_path,
    solve,
)
from widemargin.estimators import linear_choice
from widemargin.losses.pointwise import LOSSES
from widemargin.numerics import linalg
from widemargin.problems.many import INTERCEPTS
from widemargin.problems.many_linear import ManyLinearProblems
from widemargin.problems.regression import regression_problem
from widemargin.solution import Status
from widemargin.solvers import auto
from widemargin.solvers.driver.limits import Limits
from widemargin.solvers.linear import rules
from widemargin.solvers.linear.batch import solve_many_linear as solve_many
from widemargin.system.deadline import Deadline

on_every_setting = pytest.mark.parametrize(("loss", "intercept"), SETTINGS)
M, N = 300, 700
SQUARED = "squared_epsilon_insensitive"


# Losses, intercepts, and visits of coordinate descent, or none.
WAYS = [(*one, 200.0) for one in SETTINGS]
WAYS += [(*one, 0.0) for one in SETTINGS if one[0] == "squared_hinge"]


def solve_many_linear(problems, limits, threads, visits=200.0, **how):
    """Solutions by at most 200 visits of each row."""
    return solve_many(problems, limits, threads, visits=visits, **how)


on_every_way = pytest.mark.parametrize(("loss", "intercept", "visits"), WAYS)


def rows(dtype=np.float64, index=np.int32, m=M, n=N, seed=0):
    """Sparse rows, one of them of zeros, and numbers that depend on them."""
    rng = np.random.default_rng(seed)
    X = sparse.random_array((m, n), density=0.02, rng=rng, format="lil", dtype=dtype)
    X[3] = 0.0
    X = sparse.csr_array(X)
    X.indices, X.indptr = X.indices.astype(index), X.indptr.astype(index)
    return X, np.asarray(X @ rng.normal(size=n)) + 0.1 * rng.normal(size=m)


def classes(X, target, C, loss, intercept):
    """Two problems over the rows; the second has few of one class, which weigh more."""
    y = np.stack([np.where(target > cut, 1.0, -1.0) for cut in (0.0, 0.5)])
    C = C * np.where(y > 0.0, [[1.0], [1.5]], 1.0)
    return ManyLinearProblems(X, y, C, LOSSES[loss], intercept)


def regression(X, target, C, loss, intercept, labels=1.0, scale=1.0):
    """A regression with tubes of half width 0.1, of which some have none."""
    y, C = (np.array(np.broadcast_to(given, len(target))) for given in (labels, C))
    kink = np.where(np.arange(len(y)) % 5, 0.1 * scale, 0.0)
    q = np.concatenate([y * target - kink, -y * target - kink])[np.newaxis]
    y, C = y[np.newaxis], C[np.newaxis]
    return ManyLinearProblems(X, y, C, LOSSES[loss], intercept, q), kink


@pytest.mark.parametrize(
    ("dtype", "index"), [(np.float64, np.int32), (np.float32, np.int64)]
)
@product(way=WAYS, C=[1e-3, 0.1, 2.0], tol=[1e-3, 1e-6])
def test_answers_of_classes_are_the_optima(dtype, index, way, C, tol):
    (X, target), (*setting, visits) = rows(dtype, index), way
    how = {"seed": 5, "visits": visits}
    weights = C * np.random.default_rng(1).uniform(0.5, 2.0, M)
    many = classes(X, target, weights, *setting)
    for k, found in enumerate(solve_many_linear(many, Limits(tol=tol), 1, **how)):
        assert found.status == "solved"
        assert found.certificate.relative_gap <= tol
        one = Problem(X, many.y[k], many.C[k], *setting)
        best = solve(one, "interior_point", tol=1e-9).certificate
        assert best.dual <= found.certificate.primal <= best.primal * (1 + tol)
        same = one.certify(found.alpha, found.w, found.b)
        off = 2 * (found.certificate.rounding + same.rounding)
        close = {"rel": 1e-12, "abs": off}
        assert off <= 1e-7 * best.primal
        assert found.certificate.primal == pytest.approx(same.primal, **close)
        assert found.certificate.dual == pytest.approx(same.dual, **close)


@product(way=WAYS, C=[1e-3, 0.3], scale=[1e-3, 1.0, 1e4], offset=[0.0, 50.0])
def test_answers_of_regressions_are_the_optima(way, C, scale, offset):
    (X, target), (*setting, visits), tol = rows(), way, 1e-5
    C = C * scale if setting[0] == "hinge" else C  # alpha is as large as the targets
    target = scale * (target + offset)
    weights = C * np.random.default_rng(1).uniform(0.5, 2.0, M)
    many, kink = regression(X, target, weights, *setting, scale=scale)
    (found,) = solve_many_linear(many, Limits(tol=tol), 1, visits)
    problem = regression_problem(X, target, weights, kink, *setting)
    best = solve(problem, "interior_point", tol=1e-8).certificate
    assert found.status == "solved"
    assert best.dual <= found.certificate.primal
    assert found.certificate.primal <= best.primal + tol * found.certificate.primal
    assert np.all(np.minimum(*np.split(found.alpha, 2)) == 0.0)
    same = problem.certify(found.alpha, found.w, found.b)
    off = 2 * (found.certificate.rounding + same.rounding)
    assert found.certificate.primal == pytest.approx(same.primal, rel=1e-12, abs=off)
    assert found.certificate.dual == pytest.approx(same.dual, rel=1e-12, abs=off)


@on_every_way
def test_signs_of_the_first_rows_of_a_regression_change_nothing(
    loss, intercept, visits
):
    given = *rows(), np.ones(M), loss, intercept
    signs = np.random.default_rng(0).choice([-1.0, 1.0], M)
    plain, other = (
        solve_many_linear(regression(*given, own)[0], Limits(tol=1e-6), 1, visits)[0]
        for own in (1.0, signs)
    )
    close = {"rtol": 1e-6, "atol": 1e-9}
    np.testing.assert_allclose(other.w, plain.w, **close)
    first, second = np.split(other.alpha, 2)
    own = np.split(plain.alpha, 2)
    np.testing.assert_allclose(np.where(signs > 0, first, second), own[0], **close)


@on_every_way
def test_threads_change_nothing(monkeypatch, loss, intercept, visits):
    monkeypatch.setattr("widemargin.solvers.linear.batch.SHARED_ENTRIES", 0)
    many = classes(*rows(), 1.0, loss, intercept)
    limits = Limits(tol=1e-5)
    found = [solve_many_linear(many, limits, jobs, visits) for jobs in (1, 2, 5)]
    for one, *others in zip(*found, strict=True):
        for other in others:
            np.testing.assert_array_equal(other.alpha, one.alpha)
            np.testing.assert_array_equal(other.w, one.w)
            assert other.b == one.b


def test_the_seed_is_the_order_of_the_rows():
    many = classes(*rows(), 1.0, "hinge", "penalized")
    found = [solve_many_linear(many, Limits(tol=1e-2), 1, seed=k) for k in (0, 0, 1)]
    first, same, other = (one[0].alpha for one in found)
    np.testing.assert_array_equal(same, first)
    assert not np.array_equal(other, first)


@on_every_way
def test_rows_of_zeros_are_solved(loss, intercept, visits):
    X, target = rows()
    many = classes(X * 0.0, target, 1.0, loss, intercept)
    for one in solve_many_linear(many, Limits(tol=1e-6), 1, visits):
        assert one.certificate.relative_gap <= 1e-6


@on_every_setting
def test_an_answer_is_a_start(loss, intercept):
    X, target = rows()
    for many in (
        classes(X, target, 1.0, loss, intercept),
        regression(X, 10.0 * target + 50.0, 0.1, loss, intercept)[0],
    ):
        found = solve_many_linear(many, Limits(tol=1e-5), 1)
        ends = np.stack([s.alpha for s in found]), np.array([s.b for s in found])
        again = solve_many_linear(many, Limits(tol=1.01e-5), 1, starts=ends)
        for one, same in zip(found, again, strict=True):
            assert same.status == "solved"
            assert same.extras["updates"] <= max(0.3 * one.extras["updates"], 2.0)


def test_too_many_visits_leave_what_there_is():
    many = classes(*rows(), 1e4, "hinge", "free")
    (first, _) = solve_many_linear(many, Limits(tol=1e-9), 1)
    assert first.status is Status.STALLED
    assert 40.0 <= first.extras["updates"] <= 250.0
    assert first.certificate.primal < many.zero_objectives[0]


def test_no_time_leaves_zero_with_bounds():
    many = classes(*rows(m=20_000), 1e6, "hinge", "free")
    for one in solve_many_linear(many, Limits(tol=1e-9, time_limit=1e-9), 1):
        assert one.status is Status.TIME_LIMIT
        assert np.isfinite(one.certificate.gap)


def test_ctrl_c_keeps_what_is_there(monkeypatch):
    def pressed(deadline):
        raise KeyboardInterrupt

    many = classes(*rows(m=20_000), 1e6, "hinge", "free")
    monkeypatch.setattr(Deadline, "left", property(pressed))
    monkeypatch.setattr(Limits, "is_late", False)
    found = solve_many_linear(many, Limits(tol=1e-9, time_limit=100.0), 1)
    assert {one.status for one in found} == {Status.INTERRUPTED}
    assert all(np.isfinite(one.certificate.gap) for one in found)


@on_every_way
@pytest.mark.parametrize("simd", _core.simd_levels())
def test_every_instruction_set_finds_the_answers(loss, intercept, visits, simd):
    many, tol = classes(*rows(), 1.0, loss, intercept), 1e-6
    given = _given(many, tol)
    solver = _core.descent_batch if visits else _core.newton_batch
    assert not solver(*given, simd)
    alpha, v, counts = given[-3:]
    b = v[:, N] if intercept != "none" else np.zeros(2)
    bounds = many.certificates(alpha, v[:, :N].copy(), b)
    assert max(bound.relative_gap for bound in bounds) <= tol
    assert counts.min() >= (M if visits else 2)


def test_arrays_that_do_not_fit_are_refused():
    fits = _given(classes(*rows(), 1.0, "hinge", "free"), 1e-3)
    for place in (2, 9, 10, 11):
        given = list(fits)
        given[place] = np.ascontiguousarray(given[place][..., 1:])
        with pytest.raises(ValueError, match="do not fit"):
            _core.descent_batch(*given)
    with pytest.raises(ValueError, match="do not fit"):
        _core.newton_batch(*fits)  # the hinge has no Newton's method of sparse rows


def _given(many, tol):
    """What the core is given, with arrays that it writes at the end."""
    order = N + (many.intercept != "none")
    form = not many.loss.is_bounded, INTERCEPTS[many.intercept]
    arrays = np.zeros((2, M)), np.zeros((2, order)), np.zeros(2, np.int64)
    core = linalg.in_core(many.X), many.y, many.C, *form
    return *core, tol, 100 * M, 1, lambda: False, *arrays


class TestEstimators:
    """Which fits take it, and what goes on where it gives up."""

    def test_sparse_rows_with_a_small_c_take_it(self):
        X, target = rows()
        group = np.digitize(target, [-0.3, 0.3])
        for model in (LinearSVC(), LinearSVC(loss="hinge"), LinearSVR(C=0.1)):
            y = target if isinstance(model, LinearSVR) else group
            found = model.fit(X, y)
            assert {one.solver for one in found.solutions_} == {"batch"}
            assert found.dual_gap_ <= model.tol
            assert found.solution_.extras["updates"] > 0.0
            assert "few entries" in found.solution_.reason
            slow = model.set_params(solver="coordinate_descent").fit(X, y)
            close = {"rel": 2e-4}
            assert found.solution_.certificate.primal == pytest.approx(
                slow.solution_.certificate.primal, **close
            )

    def test_many_rows_of_the_squared_loss_take_conjugate_gradients(self):
        X, target = rows(m=1_500, n=300)
        for model in (LinearSVC(C=30.0), LinearSVR(C=3.0, loss=SQUARED)):
            y = target if isinstance(model, LinearSVR) else target > 0
            found = model.fit(X, y)
            assert found.solution_.solver == "batch"
            assert found.dual_gap_ <= model.tol
            assert 2 <= found.solution_.extras["newton_steps"] <= 30

    def test_descent_that_gives_up_leaves_the_squared_loss_to_them(self, monkeypatch):
        X, target = rows(m=900, n=600)
        monkeypatch.setattr(rules, "SQUARED_UPDATES", 1.0)
        monkeypatch.setattr(rules, "SPARSE_UPDATES", 0.0)
        found = LinearSVC(C=10.0).fit(X, np.digitize(target, [-0.3, 0.3]))
        assert {one.solver for one in found.solutions_} == {"batch"}
        assert all("newton_steps" in one.extras for one in found.solutions_)
        assert found.dual_gap_ <= found.tol

    def test_weights_of_zero_are_left_out(self):
        X, target = rows()
        y, weights = target > 0, (np.arange(M) % 3 > 0).astype(float)
        found = LinearSVC(loss="hinge").fit(X, y, sample_weight=weights)
        kept = LinearSVC(loss="hinge").fit(X[weights > 0], y[weights > 0])
        assert found.solution_.solver == "batch"
        assert not found.solution_.alpha[weights == 0].any()
        np.testing.assert_array_equal(found.coef_, kept.coef_)

    def test_what_is_given_up_goes_on_by_another_method(self, monkeypatch):
        X, target = rows(m=700, n=600)
        monkeypatch.setattr(rules, "MOST_UPDATES", 2.0)
        monkeypatch.setattr(rules, "FACTOR_UPDATES", 0.0)
        names = []
        run = auto.run
        monkeypatch.setattr(
            auto, "run", lambda *a, **k: names.append(a[1].solver.name) or run(*a, **k)
        )
        found = LinearSVR(C=0.3).fit(X, target)
        assert found.dual_gap_ <= found.tol
        assert found.solution_.reason.startswith("after batch got no further")
        assert names == ["interior_point"]

    def test_a_path_goes_on_from_the_last_answer(self):
        X, target = rows(m=700, n=900)
        given = {"Cs": [0.1, 0.11], "loss": "hinge"}
        _, models, gaps = linear_svc_path(X, target > 0, **given)
        alone = LinearSVC(C=0.11, loss="hinge").fit(X, target > 0)
        visits = [m.solution_.extras["updates"] for m in (models[1], alone)]
        assert gaps.max() <= 1e-4
        assert visits[0] < visits[1]

    def test_limits_on_iterations_go_elsewhere(self):
        X, target = rows()
        found = LinearSVC(max_iter=100).fit(X, target > 0)
        assert found.solution_.solver == "coordinate_descent"

    def test_a_solved_answer_is_a_start_of_descent(self):
        X, target = rows()
        y = np.where(target > 0, 1, -1)
        found = LinearSVC(loss="hinge", intercept="penalized").fit(X, y).solution_
        problem = Problem(X, y, 1.1, "hinge", "penalized")
        assert solve(problem, start=found).solver == "coordinate_descent"
        stalled = found.changed(status=Status.STALLED)
        other = solve(problem, start=stalled)
        assert other.solver == "augmented_lagrangian"
        assert other.reason == "because coordinate_descent got no further"

    def test_the_facts_are_those_of_the_problem(self, monkeypatch):
        X, target = rows()
        weights = np.random.default_rng(0).uniform(0.0, 2.0, M)
        known = []
        monkeypatch.setattr(rules.Facts, "descends", property(known.append))
        for model, y in ((LinearSVC(C=3.0), target > 0), (LinearSVR(C=3.0), target)):
            known.clear()
            model.fit(X, y, sample_weight=weights)
            if isinstance(model, LinearSVR):
                problem = regression_problem(X, y, 3.0 * weights, 0.0, "hinge", "free")
            else:
                problem = Problem(X, 2 * y - 1, 3.0 * weights, "squared_hinge")
            for own, other in zip(known[0], rules.Facts.of(problem, 1e-4), strict=True):
                assert own == pytest.approx(other, rel=1e-12)

    @pytest.mark.parametrize(
        ("constant", "value"), [("MOST_STORED_ALONE", 4_000), ("MOST_STORED", 5_000)]
    )
    def test_many_entries_go_elsewhere(self, monkeypatch, constant, value):
        X, target = rows(m=700)
        assert LinearSVC().fit(X, target > 0).solution_.solver == "batch"
        monkeypatch.setattr(linear_choice, constant, value)
        found = LinearSVC().fit(X, target > 0)
        assert found.solution_.solver == "coordinate_descent"

    @pytest.mark.parametrize("seed", [1, 2**70])
    def test_the_seed_of_the_estimator_is_that_of_the_core(self, seed):
        X, target = rows()
        own = LinearSVC(tol=1e-2, random_state=seed).fit(X, target > 0)
        other = LinearSVC(tol=1e-2, random_state=3).fit(X, target > 0)
        assert own.solution_.solver == "batch"
        assert not np.array_equal(own.coef_, other.coef_)

    def test_whole_numbers_are_taken(self):
        X, target = rows()
        X = sparse.csr_array(np.rint(9.0 * X.toarray()).astype(np.int64))
        found = LinearSVC(C=0.01).fit(X, target > 0)
        same = LinearSVC(C=0.01).fit(X.astype(float), target > 0)
        assert found.solution_.solver == "batch"
        np.testing.assert_array_equal(found.coef_, same.coef_)

    def test_memory_limit_counts_vectors_and_no_zeros(self, monkeypatch):
        X, target = rows(m=700)
        needed = 8 * (700 * linear_choice.LINEAR_PLACES + 4 * N)
        enough = LinearSVC(memory_limit=needed).fit(X, target > 0)
        assert enough.solution_.solver == "batch"
        fewer = LinearSVC(memory_limit=needed - 1).fit(X, target > 0)
        assert fewer.solution_.solver == "coordinate_descent"
        with pytest.raises(ValueError, match="memory_limit has no room"):
            LinearSVC(memory_limit=needed - 1, solver="batch").fit(X, target > 0)
