"""Objectives and certificates of problems with a kernel, against plain NumPy."""

import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar
from sklearn.svm import SVC

from tests.cases.kernels import NAMED, SEMIDEFINITE, matrix, plain
from tests.conftest import SETTINGS
from widemargin import Kernel, Problem, as_rows, solve
from widemargin.losses.norms import L1Norm
from widemargin.problems import KernelProblem, LinearProblem, NormProblem
from widemargin.problems import kernel as kernel_problem
from widemargin.problems.scores import Scores

RBF = Kernel("rbf", gamma=0.3)
on_every_setting = pytest.mark.parametrize(("loss", "intercept"), SETTINGS)


def data(m=60, n=4, seed=0, zeros=False):
    """Overlapping classes, with weights of their own."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(m, n))
    y = np.where(X[:, 0] + 0.7 * rng.normal(size=m) > 0.2, 1.0, -1.0)
    y[:2] = 1, -1
    C = rng.uniform(0.1, 3.0, m)
    if zeros:
        C[2::5] = 0.0
    return X, y, C


def objectives(K, y, C, loss, intercept, c, alpha, b):
    """P of (c, b) and D of alpha, from the statement of the problem."""
    t = np.maximum(1.0 - y * (K @ c + b), 0.0)
    primal = 0.5 * c @ K @ c + C @ (t if loss == "hinge" else t * t)
    a = y * alpha
    dual = alpha.sum() - 0.5 * a @ K @ a
    if intercept == "penalized":
        primal, dual = primal + 0.5 * b * b, dual - 0.5 * a.sum() ** 2
    if loss == "squared_hinge":
        used = C > 0
        dual -= np.sum(alpha[used] ** 2 / (4.0 * C[used]))
    return primal, dual


def repaired(problem, alpha):
    state = problem.dual_state(alpha)
    problem.repair(state)
    return problem.gather(state)


@on_every_setting
@given(seed=st.integers(0, 10_000), zeros=st.booleans(), far=st.booleans())
def test_objectives_are_those_of_the_definition(loss, intercept, seed, zeros, far):
    X, y, C = data(m=30, seed=seed, zeros=zeros)
    problem = Problem(X, y, C, loss, intercept, kernel=RBF)
    K = plain(RBF, X, X)
    rng = np.random.default_rng(seed)
    c = rng.normal(size=30) * (C > 0)
    alpha = rng.uniform(-1.0, 4.0, 30) if far else rng.uniform(0, 0.1, 30)
    b = 0.0 if intercept == "none" else 0.7
    feasible = repaired(problem, alpha)
    assert np.all(feasible >= 0.0)
    assert np.all(feasible[C == 0] == 0.0)
    if loss == "hinge":
        assert np.all(feasible <= C)
    if intercept == "free":
        assert abs(y @ feasible) <= 1e-12 * (1.0 + feasible.sum())
    primal, dual = objectives(K, y, C, loss, intercept, c, feasible, b)
    certificate = problem.certify(alpha, c, b)
    for value, expected in (
        (problem.primal(c, b), primal),
        (problem.dual(alpha), dual),
        (certificate.primal, primal),
        (certificate.dual, dual),
    ):
        assert value == pytest.approx(expected, rel=1e-11, abs=1e-11)
    assert dual <= primal


@pytest.mark.cover(2)
@on_every_setting
@pytest.mark.parametrize("zeros", [False, True])
@pytest.mark.parametrize("name", SEMIDEFINITE)
def test_an_answer_has_the_certificate_of_all_its_kernel_values(
    loss, intercept, zeros, name
):
    X, y, C = data(m=300, zeros=zeros)
    X = np.abs(X) if NAMED[name].named.is_nonnegative else X
    problem = Problem(X, y, C, loss, intercept, kernel=NAMED[name])
    for tol in (0.5, 1e-2, 1e-4, 1e-6):
        solution = solve(problem, tol=tol)
        given, exact = solution.certificate, problem.certify(*answer_of(solution))
        assert solution.status == "solved"
        assert exact.relative_gap <= max(tol, given.relative_gap) + 1e-9
        if tol <= 1e-2:
            assert exact.primal == pytest.approx(given.primal, rel=1e-9)
            assert exact.dual == pytest.approx(given.dual, rel=1e-9)
        assert exact.dual <= exact.primal
        assert np.all(solution.alpha[C == 0] == 0.0)
        np.testing.assert_array_equal(solution.w, y * solution.alpha)
        K = plain(NAMED[name], X, X)
        values = objectives(
            K, y, C, loss, intercept, solution.w, solution.alpha, solution.b
        )
        primal, dual = values  # off by rounding themselves
        off = 1e-12 * primal
        assert -off <= exact.primal - primal <= exact.rounding + off
        assert -off <= dual - exact.dual <= exact.rounding + off
        assert exact.rounding <= 2e-9 * primal


def answer_of(solution):
    return solution.alpha, solution.w, solution.b


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_the_free_intercept_is_the_best_one(loss):
    X, y, C = data(m=200)
    problem = Problem(X, y, C, loss, "free", kernel=RBF)
    solution = solve(problem, tol=1e-3)
    K = plain(RBF, X, X)

    def primal(b):
        return objectives(K, y, C, loss, "free", solution.w, solution.alpha, b)[0]

    best = minimize_scalar(primal, (solution.b - 0.1, solution.b + 0.1), tol=1e-10)
    assert primal(solution.b) <= best.fun * (1 + 1e-10)


def test_a_lower_bound_proves_no_more_than_rounding_allows():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(700, 3))
    y = np.sign(X[:, 0] + 0.5 * rng.normal(size=700))
    X, y = X[np.argsort(y)], np.sort(y)  # the sums of a score are largest in this order
    kernel = Kernel("poly", degree=1, gamma=1.0, coef0=100.0)
    problem = Problem(X, y, 1e7, intercept="free", kernel=kernel)
    solution = solve(problem, tol=1e-9, max_iter=400)
    bounds = problem.certify(solution.alpha, solution.w, solution.b)
    alpha, Z = solution.alpha.astype(np.longdouble), X.astype(np.longdouble)
    c = y * alpha
    value = alpha.sum() - c @ ((Z @ Z.T + np.longdouble(100)) @ c) / 2
    assert value * (1 - 1e-3) <= bounds.dual <= value
    assert solution.certificate.relative_gap < 1e-3


def test_data_far_from_zero_are_solved_to_the_default_gap():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(3000, 4)) + 2e4
    y = np.where(X[:, 0] - 2e4 + 0.5 * rng.normal(size=3000) > 0, 1.0, -1.0)
    order = np.argsort(y)
    kernel = Kernel("poly", degree=1, gamma=1.0)
    solution = solve(Problem(X[order], y[order], kernel=kernel), max_iter=30)
    assert solution.status == "solved"


@pytest.mark.parametrize("name", ["rbf", "poly", "linear"])
def test_the_answer_is_that_of_libsvm(name):
    X, y, C = data(m=200)
    kernel = NAMED[name]
    solution = solve(Problem(X, y, C, kernel=kernel), tol=1e-7)
    peer = SVC(
        C=1.0,
        kernel=name,
        gamma=kernel.gamma,
        degree=kernel.degree,
        coef0=kernel.coef0,
        tol=1e-8,
    ).fit(X, y, C)
    f = plain(kernel, X, X) @ solution.w + solution.b
    np.testing.assert_allclose(f, peer.decision_function(X), atol=1e-3)


@on_every_setting
@pytest.mark.parametrize("zeros", [False, True])
def test_a_run_may_start_from_another_answer(loss, intercept, zeros):
    X, y, C = data(m=200, zeros=zeros)
    first = solve(Problem(X, y, C, loss, intercept, kernel=RBF), tol=1e-3)
    again = Problem(X, y, C, loss, intercept, kernel=RBF)
    solution = solve(again, tol=1e-6, start=first)
    assert solution.status == "solved"
    assert again.certify(*answer_of(solution)).relative_gap <= 1e-6 + 1e-9
    assert solution.trace[0].dual >= first.certificate.dual * (1 - 1e-6)


@on_every_setting
@pytest.mark.parametrize("zeros", [False, True])
def test_kernels_that_are_the_same_have_the_same_answer(loss, intercept, zeros):
    X, y, C = data(m=120, zeros=zeros)
    K = plain(RBF, X, X)
    problems = [
        Problem(X, y, C, loss, intercept, kernel=RBF),
        Problem(K, y, C, loss, intercept, kernel=Kernel("precomputed")),
        Problem(X, y, C, loss, intercept, kernel=Kernel(lambda A, B: plain(RBF, A, B))),
    ]
    solutions = [solve(problem, tol=1e-8) for problem in problems]
    first = solutions[0]
    for solution, problem in zip(solutions, problems, strict=True):
        assert solution.status == "solved"
        bounds = problem.certify(*answer_of(first))
        assert bounds.primal == pytest.approx(first.certificate.primal, rel=1e-9)
        assert bounds.dual == pytest.approx(first.certificate.dual, rel=1e-9)
        assert solution.certificate.primal == pytest.approx(bounds.primal, rel=2e-8)


def test_weights_and_labels_of_selected_rows():
    X, y, C = data(zeros=True)
    problem = Problem(X, y, C, kernel=RBF)
    kept = C > 0
    np.testing.assert_array_equal(problem.signs, y[kept])
    np.testing.assert_array_equal(problem.weights, C[kept])
    assert problem.order == kept.sum() + 1
    c = np.arange(60.0)
    v = problem.stack(c, 2.0)
    np.testing.assert_array_equal(v, np.append(c[kept], 2.0))
    back, b = problem.split(v)
    np.testing.assert_array_equal(back, np.where(kept, c, 0.0))
    assert b == 2.0


@pytest.mark.parametrize("word", ["scale", "auto", "mean_distance"])
def test_gamma_is_found_from_the_rows_that_count(word):
    X, y, C = data(zeros=True)
    problem = Problem(X, y, C, kernel=Kernel(gamma=word))
    expected = Kernel(gamma=word).resolved(as_rows(X[C > 0])).gamma
    assert problem.kernel.gamma == pytest.approx(expected, rel=1e-12)
    assert problem.columns.kernel == problem.kernel


@on_every_setting
@pytest.mark.parametrize("gamma", [1e-10, 1e3, 1e5, 1e10])
def test_gamma_may_be_anything(loss, intercept, gamma):
    X, y, C = data(m=150)
    problem = Problem(X, y, C, loss, intercept, kernel=Kernel(gamma=gamma))
    solution = solve(problem, tol=1e-4)
    exact = problem.certify(*answer_of(solution))
    assert solution.status == "solved"
    assert exact.relative_gap <= 1e-4
    given, off = solution.certificate, 1e-9 * exact.primal
    assert -off <= given.primal - exact.primal <= given.rounding + off


@pytest.mark.parametrize("size", [1e-25, 1e-10, 1e10, 1e25])
def test_data_may_be_of_any_size(size):
    X, y, C = data(m=150)
    expected = solve(Problem(X, y, C, kernel=Kernel()), tol=1e-6)
    solution = solve(Problem(X * size, y, C, kernel=Kernel()), tol=1e-6)
    assert solution.status == "solved"
    np.testing.assert_allclose(
        solution.certificate.primal, expected.certificate.primal, rtol=2e-6
    )


def test_precomputed_values_may_be_of_any_size():
    X, y, _ = data(m=100)
    K = plain(RBF, X, X)
    for size in (1e-40, 1e40):
        problem = Problem(K * size, y, 1.0 / size, kernel=Kernel("precomputed"))
        assert problem.columns.dtype == (np.float64 if size > 1 else np.float32)
        assert np.isfinite(problem.columns.columns([0, 1])).all()


# -- kernels that are not positive definite ---------------------------------------------


def indefinite(m):
    K = np.random.default_rng(0).normal(size=(m, m))
    return (K + K.T) / 2


@on_every_setting
@pytest.mark.parametrize("name", ["precomputed", "sigmoid"])
def test_indefinite_kernels_end_with_a_finite_certificate(loss, intercept, name):
    X, y, _ = data(m=300)
    K = indefinite(300) if name == "precomputed" else X
    kernel = Kernel(name, gamma=2.0, coef0=1.0)
    solution = solve(Problem(K, y, 1.0, loss, intercept, kernel=kernel), time_limit=20)
    assert np.isfinite(solution.certificate.primal)
    assert np.isfinite(solution.certificate.dual)
    # Without a bound of alpha the values may end as NaN.
    ends = ("solved", "almost_solved", "stalled", "max_iter", "numerical_error")
    assert solution.status in ends
    if (loss, intercept) == ("hinge", "free"):
        assert solution.trace[-1].details["negative"] > 0


@on_every_setting
@pytest.mark.parametrize("kind", ["rbf", "duplicates", "low-rank", "tiny", "far"])
def test_positive_definite_kernels_have_no_negative_curvature(loss, intercept, kind):
    X, y, C = data(m=400)
    kernel = Kernel("rbf", gamma=0.5)
    if kind == "duplicates":
        X, y, C = (np.repeat(a, 4, axis=0) for a in (X, y, C))
    elif kind == "low-rank":
        X, kernel = X[:, :2] @ matrix(2, 50), Kernel("linear")
    elif kind == "tiny":
        kernel = Kernel("rbf", gamma=1e-6)
    elif kind == "far":
        X = X + 1e4
    solution = solve(Problem(X, y, C, loss, intercept, kernel=kernel), tol=1e-5)
    assert solution.status == "solved"
    assert solution.trace[-1].details["negative"] == 0


# -- scores ----------------------------------------------------------------------------


def test_scores_that_were_left_out_are_brought_up_to_date():
    X, y, C = data(500)
    problem = Problem(X, y, C, kernel=RBF)
    K, rng = plain(RBF, X, X), np.random.default_rng(0)
    scores, c = problem.expand(np.zeros(500)), np.zeros(500)
    for _ in range(3):
        near = rng.random(500) < 0.3
        near |= c != 0
        scores.focus(near)
        old = scores.values.copy()
        for _ in range(2):
            J = rng.permutation(np.flatnonzero(near))[:40]
            change = rng.normal(size=40)
            scores.add(J, change)
            c[J] += change
            np.testing.assert_allclose(scores.values[near], (K @ c)[near], atol=1e-4)
            np.testing.assert_array_equal(scores.values[~near], old[~near])
        now = scores.values[near]
        scores.settle()
        np.testing.assert_array_equal(scores.values[near], now)
        np.testing.assert_allclose(scores.values, K @ c, atol=1e-4)
        scores.add(J, change)
        c[J] += change
        np.testing.assert_allclose(scores.values, K @ c, atol=1e-4)


@pytest.mark.parametrize("refined", [False, True])
def test_errors_of_scores_are_bounded_from_the_last_exact_ones(refined):
    """After changes of c, exact scores of some rows, small changes and a scaling."""
    rng = np.random.default_rng(3)
    X, y = rng.normal(size=(300, 5)), np.where(rng.random(300) < 0.5, -1.0, 1.0)
    problem = Problem(X, y, kernel=Kernel("rbf", gamma=0.3))
    exact = X.astype(np.longdouble)
    K = np.exp(-np.longdouble(0.3) * ((exact[:, None, :] - exact) ** 2).sum(axis=2))
    scores = problem.expand(rng.normal(size=300) * 1e3)

    def looked_at():
        """The largest bound; all of them hold."""
        sums = scores.sums()
        off = np.abs(sums.values - K @ scores.c.astype(np.longdouble))
        assert np.all(off <= sums.errors)
        return sums.errors.max()

    first = looked_at()
    scores.refresh(np.arange(100))
    if refined:
        problem.columns.refine()
    assert looked_at() == first  # of the rows that were left
    scores.refresh(np.arange(300))
    assert looked_at() < 1e-4 * first
    scores.add(np.arange(7), np.full(7, 1e-3))
    assert looked_at() < 1e-3 * first
    scores.scale(3.0)
    assert looked_at() < 1e-2 * first


def test_rows_are_left_out_one_after_the_other():
    X, y, C = data(500)
    problem = Problem(X, y, C, kernel=RBF)
    K, rng = plain(RBF, X, X), np.random.default_rng(0)
    scores, near = problem.expand(np.zeros(500)), np.ones(500, bool)
    made = problem.columns.evaluations
    for left in (300, 300, 120):  # nothing more is left out at the second time
        near &= np.arange(500) < left
        others = near.copy()
        others[400:] = True  # that are left out already stay so
        scores.focus(others if left < 300 or scores.current is not None else near)
        np.testing.assert_array_equal(scores.current, near)
        for _ in range(2):  # of the same rows of K
            scores.add(np.arange(left - 90, left), rng.normal(size=90))
        np.testing.assert_allclose(scores.values[near], (K @ scores.c)[near], atol=1e-4)
    scores.settle()
    np.testing.assert_allclose(scores.values, K @ scores.c, atol=1e-4)
    moved = 4 * 90 * 300 + 2 * 90 * 120
    assert problem.columns.evaluations - made == moved + 180 * 200 + 90 * 180
    assert np.all(np.abs(scores.values - K @ scores.c) <= scores.sums().errors)
    assert scores.current is None


def test_scores_that_are_interrupted_stay_as_they_were(monkeypatch):
    X, y, C = data(300)
    problem = Problem(X, y, C, kernel=RBF)
    scores = problem.expand(np.zeros(300))
    near, J = np.arange(300) < 90, np.arange(20)
    scores.focus(near)
    scores.add(J, np.ones(20))
    before, whole = scores.values.copy(), problem.columns.add

    def interrupted(J, c, sums, again=None):
        whole(J, c, sums)
        raise KeyboardInterrupt

    monkeypatch.setattr(problem.columns, "add", interrupted)
    for act in (scores.settle, lambda: scores.add(J, np.ones(20))):
        with pytest.raises(KeyboardInterrupt):
            act()
        np.testing.assert_array_equal(scores.values, before)
        np.testing.assert_array_equal(scores.c, np.arange(300) < 20)
    monkeypatch.undo()
    scores.add(J, np.ones(20))
    scores.settle()
    exact = plain(RBF, X, X)[:, :20].sum(axis=1) * 2.0
    np.testing.assert_allclose(scores.values, exact, atol=1e-5)


def test_scores_of_one_problem_do_not_disturb_each_other():
    X, y, C = data(300)
    problem = Problem(X, y, C, kernel=RBF)
    K, rng = plain(RBF, X, X), np.random.default_rng(0)
    several = [Scores(problem.columns, np.zeros(300)) for _ in range(3)]
    for k, scores in enumerate(several[:2]):
        scores.focus(np.arange(300) % 3 == k)
    for _ in range(3):
        for k, scores in enumerate(several):
            J = 3 * rng.permutation(100)[:20] + k
            scores.add(J, rng.normal(size=20))
    for scores in several:
        scores.settle()
        np.testing.assert_allclose(scores.values, K @ scores.c, atol=1e-4)


class Interrupter:
    """Raises KeyboardInterrupt at the n-th begin or end of a call in the library.

    That is where Python looks for signals.
    """

    def __init__(self, n):
        self.left = n

    def __call__(self, frame, event, argument):
        if "widemargin" not in frame.f_code.co_filename:
            return None
        if event in ("call", "return"):
            self.left -= 1
            if self.left == 0:
                sys.settrace(None)
                raise KeyboardInterrupt
        return self


@pytest.mark.parametrize("features", [4, 300])  # rows of K that are cheap, and dear
def test_scores_may_be_interrupted_anywhere(features):
    X, y, C = data(300, features)
    kernel = Kernel("rbf", gamma=0.3 / features)
    problem = Problem(X, y, C, kernel=kernel)
    K = plain(kernel, X, X)
    near, J = np.arange(300) < 90, np.arange(20)
    interrupted = 0
    for n in range(1, 150):
        scores = Scores(problem.columns, np.zeros(300))
        scores.focus(near)
        scores.add(J, np.ones(20))
        before = sys.gettrace()
        try:
            sys.settrace(Interrupter(n))
            scores.add(J, np.ones(20))
            scores.settle()
            scores.focus(near)
            scores.add(J[:9], np.ones(9))
            problem.columns.columns(J)
        except KeyboardInterrupt:
            interrupted += 1
        finally:
            sys.settrace(before)
        again = Scores(problem.columns, scores.c.copy())
        np.testing.assert_allclose(again.values, K @ scores.c, atol=1e-4)
        scores.settle()
        np.testing.assert_allclose(scores.values, K @ scores.c, atol=1e-4)
    assert interrupted > 30


@pytest.mark.parametrize("other", [False, True])
def test_an_answer_is_that_of_all_rows_where_some_were_left_out(other, monkeypatch):
    monkeypatch.setattr(kernel_problem, "ALL_ROWS", 0)
    X, y, C = data(400, zeros=True)
    problem = Problem(X, y, C, kernel=RBF)
    alpha, w, b = answer_of(solve(problem, tol=1e-3))
    c = problem.stack(w)[:-1]
    scores = problem.expand(0.5 * c)
    scores.focus(scores.c != 0)
    J = np.flatnonzero(c)
    scores.add(J, 0.5 * c[J])
    scores.c[:] = c
    asked = 0.999 * alpha if other else alpha
    answer = problem.answer(asked, problem.stack(w, b), 1e-3)
    exact = problem.certify(answer[0], answer[1], answer[2])
    assert answer[3].primal == pytest.approx(exact.primal, rel=1e-9)
    assert answer[3].dual == pytest.approx(exact.dual, rel=1e-9)
    scores.settle()  # an answer of other coefficients does not need them
    fresh = Scores(problem.columns, c)
    np.testing.assert_allclose(scores.values, fresh.values, atol=1e-4)


@on_every_setting
def test_the_linear_kernel_has_the_slopes_and_intercept_of_the_columns(loss, intercept):
    random = np.random.default_rng(3)
    X, c = random.normal(size=(30, 4)), random.normal(size=30)
    y = np.where(X[:, 0] + 0.3 * random.normal(size=30) > 0, 1, -1)
    C = np.where(np.arange(30) == 7, 0.0, 2.0)  # a row is left out
    c[7] = 0.0
    linear = Problem(X, y, C, loss, intercept)
    kernel = Problem(X, y, C, loss, intercept, kernel=Kernel("linear"))
    w, b = X.T @ c, 0.25
    ours, our_bounds = kernel.slopes(kernel.stack(c, b))
    theirs, bounds = linear.slopes(linear.stack(w, b))
    assert np.allclose(ours.alpha, theirs.alpha, rtol=1e-12, atol=1e-12)
    assert our_bounds.primal == pytest.approx(bounds.primal, rel=1e-10)
    best = kernel.best_intercept(c, b)
    assert best == pytest.approx(linear.best_intercept(w, b), rel=1e-9, abs=1e-12)


def test_a_problem_is_of_the_kind_of_its_options():
    X, y, kernel = [[0.0], [1.0]], [-1, 1], Kernel("linear")
    assert type(Problem(X, y)) is LinearProblem
    assert type(Problem(X, y, kernel=kernel)) is KernelProblem
    assert type(Problem(X, y, kernel=kernel, norm=L1Norm())) is NormProblem
    assert not hasattr(KernelProblem, "finish")  # nothing of the linear one
