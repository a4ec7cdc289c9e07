"""Small linear problems in one call: the answers, and what may end it before."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import make_blobs

from tests.cases.many import classes
from tests.conftest import SETTINGS
from widemargin import LinearSVC, Problem, _core, solve
from widemargin.data.storage import FULL
from widemargin.estimators import linear_choice
from widemargin.losses.pointwise import LOSSES
from widemargin.problems.many_linear import ManyLinearProblems
from widemargin.solution import Status
from widemargin.solvers.driver.limits import Limits
from widemargin.solvers.linear.batch import INTERCEPTS, solve_many_linear
from widemargin.system.deadline import Deadline

on_every_setting = pytest.mark.parametrize(("loss", "intercept"), SETTINGS)


def problems(m=90, n=4, C=1.0, loss="hinge", intercept="free"):
    """Each of three classes against the rest, which weigh more in one than another."""
    X, group, _ = classes(m, n)
    y = np.where(group == np.arange(3)[:, np.newaxis], 1.0, -1.0)
    C = C * np.where(y > 0.0, [[1.0], [3.0], [0.2]], 1.0)
    return ManyLinearProblems(X, y, C, LOSSES[loss], intercept)


@pytest.mark.cover(2)
@on_every_setting
@pytest.mark.parametrize("C", [1e-3, 1.0, 1e4])
@pytest.mark.parametrize("shape", [(90, 4), (30, 29), (40, 1)])
def test_answers_are_the_optima(loss, intercept, C, shape):
    C = C * np.random.default_rng(0).uniform(0.5, 2, shape[0])
    many = problems(*shape, C, loss, intercept)
    for k, found in enumerate(solve_many_linear(many, Limits(tol=1e-6), 1)):
        assert found.status == "solved"
        assert found.certificate.relative_gap <= 1e-6
        one = Problem(many.X, many.y[k], many.C[k], loss, intercept)
        best = solve(one, "interior_point", tol=1e-9).certificate
        assert best.dual <= found.certificate.primal <= best.primal * (1 + 1e-6)
        same = one.certify(found.alpha, found.w, found.b)
        off = 2 * (found.certificate.rounding + same.rounding)  # it may go up, too
        assert found.certificate.primal == pytest.approx(
            same.primal, rel=1e-12, abs=off
        )
        assert found.certificate.dual == pytest.approx(same.dual, rel=1e-12, abs=off)
        assert off <= 1e-6 * best.primal


@on_every_setting
def test_bounds_are_those_of_each_problem_alone_far_from_the_answer(loss, intercept):
    many = problems(loss=loss, intercept=intercept)
    rng = np.random.default_rng(1)
    alpha = many.C.min() * rng.uniform(0.1, 0.9, many.y.shape)
    if intercept == "free":
        for own, y in zip(alpha, many.y, strict=True):
            own[y > 0] *= own[y < 0].sum() / own[y > 0].sum() * (1 - 1e-15)
        alpha *= 0.9 * many.C.min() / alpha.max()
    W = rng.normal(size=(3, many.X.shape[1]))
    b = rng.normal(size=3) * (intercept != "none")
    for k, bound in enumerate(many.certificates(alpha, W, b)):
        one = Problem(many.X, many.y[k], many.C[k], loss, intercept)
        same = one.certify(alpha[k], W[k], float(b[k]))
        off = bound.rounding + same.rounding
        assert bound.primal == pytest.approx(same.primal, rel=1e-12)
        assert bound.dual == pytest.approx(same.dual, rel=1e-12, abs=off)
        assert off <= 1e-11 * bound.primal


def test_dual_variables_outside_their_bounds_prove_nothing():
    many = problems()
    for wrong in (-1e-300, many.C[1, 3] * (1.0 + 1e-15), np.nan):
        alpha = 0.5 * many.C
        alpha[1, 3] = wrong
        with_sum = problems(intercept="none")
        bounds = with_sum.certificates(alpha, np.zeros((3, 4)), np.zeros(3))
        assert bounds[1].dual == -np.inf
        assert np.isfinite(bounds[0].dual)


def test_a_residual_that_is_no_rounding_proves_nothing():
    alpha = np.full((3, 90), 0.5)  # one class has half of the rows of the other
    bounds = problems().certificates(alpha, np.zeros((3, 4)), np.zeros(3))
    assert all(bound.dual == -np.inf for bound in bounds)


@on_every_setting
def test_threads_change_nothing(loss, intercept):
    many = problems(700, 60, 10.0, loss, intercept)
    found = [solve_many_linear(many, Limits(tol=1e-5), jobs) for jobs in (1, 2, 5)]
    for other in found[1:]:
        for one, same in zip(found[0], other, strict=True):
            assert np.array_equal(one.alpha, same.alpha)
            assert np.array_equal(one.w, same.w)


@on_every_setting
@pytest.mark.parametrize("simd", _core.simd_levels())
def test_every_instruction_set_finds_the_answers(loss, intercept, simd):
    many, tol = problems(C=7.0, loss=loss, intercept=intercept), 1e-7
    alpha, steps = np.zeros(many.y.shape), np.zeros(3, np.int64)
    v = np.zeros((3, 4 + (intercept != "none")))
    form = loss == "squared_hinge", INTERCEPTS[intercept]
    given = many.X, many.y, many.C, *form, tol, 300, 1, lambda: False
    assert not _core.newton_batch(*given, alpha, v, steps, simd)
    b = v[:, 4] if intercept != "none" else np.zeros(3)
    bounds = many.certificates(alpha, v[:, :4].copy(), b)
    assert max(bound.relative_gap for bound in bounds) <= tol


def test_digits_that_rounding_does_not_allow_end_soon():
    """Far from the origin: P is 1e-4 and scores are made of terms of 100."""
    X, y = make_blobs(103, 48, centers=2, cluster_std=4.0, random_state=5)
    signs, C = np.where(y == 0, 1.0, -1.0)[np.newaxis], np.full(103, 4.9)
    many = ManyLinearProblems(X, signs, C[np.newaxis], LOSSES["hinge"], "free")
    [one] = solve_many_linear(many, Limits(tol=1e-3), 1, to_digits=True)
    assert one.status is Status.SOLVED
    assert (
        one.extras["newton_steps"] < 100
    )  # it was 300, and then 19 from the beginning


def test_arrays_that_do_not_fit_are_refused():
    many = problems()
    alpha, v, steps = np.zeros((3, 90)), np.zeros((3, 5)), np.zeros(3, np.int64)
    fits = [many.X, many.y, many.C, False, 1, 1e-3, 9, 1, lambda: False]
    fits += [alpha, v, steps]
    for place, wrong in ((2, many.C[1:]), (9, alpha[1:]), (10, v[:, 1:].copy())):
        given = list(fits)
        given[place] = np.ascontiguousarray(wrong)
        with pytest.raises(ValueError, match="do not fit"):
            _core.newton_batch(*given)


def test_no_time_leaves_zero_with_bounds():
    many, limits = problems(2000, 200, 1e4), Limits(tol=1e-6, time_limit=1e-9)
    found = solve_many_linear(many, limits, 1)
    assert {one.status for one in found} == {Status.TIME_LIMIT}
    for one in found:
        assert np.isfinite(one.certificate.gap)
        assert "time_limit" in one.message


def test_ctrl_c_keeps_what_is_there(monkeypatch):
    def pressed(deadline):
        raise KeyboardInterrupt

    many, limits = problems(4000, 200, 1e4), Limits(tol=1e-6, time_limit=100.0)
    monkeypatch.setattr(Deadline, "left", property(pressed))
    monkeypatch.setattr(Limits, "is_late", False)
    found = solve_many_linear(many, limits, 1)
    assert {one.status for one in found} == {Status.INTERRUPTED}


@pytest.mark.cover(2)
@pytest.mark.parametrize("stored", [np.asarray, np.asfortranarray, sparse.csr_array])
@pytest.mark.parametrize("dtype", [float, np.float32, int])
@on_every_setting
def test_linear_svc_takes_it(stored, dtype, loss, intercept):
    X, y, weights = classes(120)
    X = stored(np.rint(4 * X).astype(dtype))
    form = {"loss": loss, "intercept": intercept, "tol": 1e-6}
    clf = LinearSVC(**form).fit(X, y, weights)  # some weights are zero
    assert {one.solver for one in clf.solutions_} == {"batch"}
    assert clf.status_ == "solved"
    other = LinearSVC(**form, solver="interior_point").fit(X, y, weights)
    np.testing.assert_allclose(clf.coef_, other.coef_, rtol=0.05, atol=0.01)
    for k, one in enumerate(clf.solutions_):
        assert len(one.alpha) == 120
        assert not one.alpha[weights == 0].any()
        signs = np.where(y == k, 1.0, -1.0)
        kept = weights > 0
        alone = Problem(X[kept], signs[kept], weights[kept], loss, intercept)
        bounds = alone.certify(one.alpha[kept], one.w, one.b)
        assert bounds.relative_gap <= 2e-6


def test_others_go_to_other_solvers(monkeypatch):
    X, y, _ = classes(120)
    assert LinearSVC(max_iter=50).fit(X, y).solution_.solver != "batch"
    assert LinearSVC(solver="active_set").fit(X, y).solution_.solver == "active_set"
    assert LinearSVC(memory_limit=16_384).fit(X, y).status_ == "solved"
    for limit in ("MOST_ENTRIES", "MOST_ENTRIES_ALONE", "MOST_SPARSE"):
        monkeypatch.setattr(linear_choice, limit, 599)
    monkeypatch.setattr(linear_choice, "MOST_LINEAR", 119)
    assert LinearSVC().fit(X, y).solution_.solver == "active_set"


def test_what_it_does_not_solve_goes_on_elsewhere(monkeypatch):
    X, y, _ = classes(120)
    monkeypatch.setattr("widemargin.solvers.linear.batch.MOST_STEPS", 1)
    clf = LinearSVC(tol=1e-6).fit(X, y)
    assert clf.status_ == "solved"
    assert clf.solution_.solver == "interior_point"
    told = "after batch got no further (because Newton's method got no further)"
    assert LinearSVC(tol=1e-6, solver="batch").fit(X, y).solution_.reason == told


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_classes_that_it_solves_are_solved_once(monkeypatch, loss):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(150, 20)), rng.integers(3, size=150)
    X[y == 2] += 5.0
    clf = LinearSVC(C=10.0, loss=loss, tol=1e-6)
    steps = [int(one.extras["newton_steps"]) for one in clf.fit(X, y).solutions_]
    most = max(steps) - 1
    monkeypatch.setattr("widemargin.solvers.linear.batch.MOST_STEPS", most)
    found = clf.fit(X, y).solutions_
    expected = ["batch" if count <= most else "interior_point" for count in steps]
    assert {"batch", "interior_point"} == set(expected)
    assert [one.solver for one in found] == expected
    assert all(one.status == "solved" for one in found)


@pytest.mark.parametrize(("density", "solver"), [(0.2, "active_set"), (0.3, "batch")])
def test_sparse_rows_of_few_zeros_are_taken_as_dense_ones(density, solver):
    rng = np.random.default_rng(0)
    X = sparse.random_array((2500, 90), density=density, rng=rng, format="csr")
    y = X @ rng.normal(size=90) > 0.0
    assert LinearSVC().fit(X, y).solution_.solver == solver
    small = LinearSVC(loss="hinge", C=1e-3).fit(X, y).solution_
    # Descent on few entries takes half of the time.
    assert ("updates" in small.extras) == (density <= FULL)


@pytest.mark.parametrize("density", [0.2, 0.3])
def test_threads_choose_nothing(density):
    rng = np.random.default_rng(0)
    X = sparse.random_array((12_000, 90), density=density, rng=rng, format="csr")
    y = np.digitize(X @ rng.normal(size=90), [-0.5, 0.5])
    one, other = (LinearSVC(n_jobs=jobs).fit(X, y).solutions_ for jobs in (1, 4))
    assert [s.solver for s in one] == [s.solver for s in other]


def test_not_a_number_is_refused():
    X, y, _ = classes(60)
    X[7, 2] = np.nan
    with pytest.raises(ValueError, match="NaN"):
        LinearSVC().fit(X, y)
