"""Models of few support vectors: against a conic solver, pruning, and the edge cases."""

import dataclasses
import functools

import clarabel
import numpy as np
import pytest
from scipy import sparse

from tests.cases.kernels import NAMED, plain
from tests.conftest import SETTINGS
from widemargin import Kernel, Problem, solve
from widemargin.losses.norms import BudgetL1
from widemargin.reduction import reduce as reduced_set
from widemargin.reduction import restricted
from widemargin.reduction.pursuit import pursue
from widemargin.reduction.reduce import reduce, reduce_path
from widemargin.reduction.restricted import Features

RBF = Kernel("rbf", gamma=0.4)
TINY = 1e-9  # of what the cut costs: then refits go on to their relative gap
on_every_setting = pytest.mark.parametrize(("loss", "intercept"), SETTINGS)


def data(m=220, seed=0, zeros=False):
    """Two classes that overlap around a circle, with weights."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(m, 3))
    inside = (X[:, :2] ** 2).sum(axis=1) + 0.3 * rng.normal(size=m) < 1.2
    C = rng.uniform(0.2, 4.0, m)
    if zeros:
        C[1::4] = 0.0
    return X, np.where(inside, 1.0, -1.0), C


def objective(K, y, C, loss, intercept, model):
    """P of a model, from the statement of the problem."""
    beta, J = model.coefficients, model.rows
    t = np.maximum(1.0 - y * (K[:, J] @ beta + model.b), 0.0)
    value = 0.5 * beta @ K[np.ix_(J, J)] @ beta
    value += C @ (t if loss == "hinge" else t * t)
    return value + (0.5 * model.b**2 if intercept == "penalized" else 0.0)


def restricted_optimum(K, y, C, loss, intercept, J):
    """The least P over beta, b for the rows J, by Clarabel: v = (beta, b, slacks)."""
    m, k = len(y), len(J)
    p = {"free": 0.0, "penalized": 1.0, "none": 0.0}[intercept]
    KJ = K[np.ix_(J, J)] + 1e-12 * np.eye(k)
    squares = np.zeros(m) if loss == "hinge" else 2.0 * C
    P = sparse.block_diag([KJ, [[p]], sparse.diags(squares)], format="csc")
    q = np.r_[np.zeros(k + 1), C if loss == "hinge" else np.zeros(m)]
    margins = np.c_[-y[:, None] * K[:, J], -y * (intercept != "none")]
    A = sparse.bmat([[margins, -sparse.eye(m)], [None, -sparse.eye(m)]], format="csc")
    right = np.r_[-np.ones(m), np.zeros(m)]
    if intercept == "none":
        row = sparse.csc_matrix(([1.0], ([0], [k])), (1, k + 1 + m))
        A, right = sparse.vstack([row, A], format="csc"), np.r_[0.0, right]
    cones = [clarabel.NonnegativeConeT(2 * m)]
    if intercept == "none":
        cones.insert(0, clarabel.ZeroConeT(1))
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    P = sparse.triu(P, format="csc")
    return clarabel.DefaultSolver(P, q, A, right, cones, settings).solve().obj_val


@functools.cache
def solved(loss="hinge", intercept="free", zeros=False, kernel=RBF, m=220):
    X, y, C = data(m, zeros=zeros)
    problem = Problem(X, y, C, loss, intercept, kernel=kernel)
    return problem, solve(problem, tol=1e-6), plain(kernel, X, X), y, C


@on_every_setting
@pytest.mark.parametrize("zeros", [False, True])
def test_the_model_is_the_best_of_its_rows(loss, intercept, zeros):
    problem, solution, K, y, C = solved(loss, intercept, zeros)
    for budget in (3, 20):
        model = reduce(problem, solution, budget, tol=1e-5, share=TINY)
        given = model.certificate
        assert len(model.rows) == budget
        assert np.all(C[model.rows] > 0)
        assert model.status == "solved"
        found = objective(K, y, C, loss, intercept, model)
        assert given.primal == pytest.approx(found, rel=1e-9)
        assert given.primal >= solution.certificate.dual
        assert model.before is solution.certificate
        best = restricted_optimum(K, y, C, loss, intercept, model.rows)
        assert given.dual <= best * (1 + 1e-7)
        assert best * (1 - 1e-7) <= given.primal
        assert given.relative_gap <= 1e-5


@on_every_setting
def test_no_model_is_worse_than_pruning(loss, intercept):
    problem, solution, K, y, C = solved(loss, intercept)
    order = np.argsort(-np.abs(solution.w), kind="stable")
    for budget in (1, 5, 30, np.count_nonzero(solution.w) - 1):
        J = order[:budget]
        model = reduce(problem, solution, int(budget), tol=1e-4, share=TINY)
        c = np.zeros(len(y))
        c[J] = solution.w[J]
        b = problem.intercept_for(K @ c, c, solution.b)
        b = b if intercept == "free" else solution.b
        pruned = problem.primal(c, b)
        assert model.certificate.primal <= pruned * (1 + 1e-6)
        assert len(model.rows) <= budget


def test_rows_of_large_coefficients_are_taken_where_they_win():
    # Kernel functions that are almost orthogonal, and candidates that miss most rows.
    X, y, _ = data()
    C = np.full(len(y), 0.01)
    heavy = np.array([7, 50, 101, 150, 211])
    C[heavy] = 100.0
    problem = Problem(X, y, C, kernel=Kernel("rbf", gamma=300.0), intercept="none")
    model = reduce(problem, solve(problem), 5, candidates=8)
    np.testing.assert_array_equal(model.rows, heavy)


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_a_path_is_nested_and_agrees_with_single_calls(loss):
    problem, solution, *_ = solved(loss)
    budgets = [2, 10, 11, 25]
    path = reduce_path(problem, solution, budgets, tol=1e-4, share=TINY)
    for budget, model, larger in zip(budgets, path, [*path[1:], path[-1]], strict=True):
        single = reduce(problem, solution, budget, tol=1e-4, share=TINY)
        np.testing.assert_array_equal(single.rows, model.rows)
        primal = single.certificate.primal
        assert model.certificate.primal == pytest.approx(primal, rel=2e-4)
        assert set(model.rows) <= set(larger.rows)
        assert larger.certificate.primal <= primal * (1 + 2e-4)


@on_every_setting
def test_a_refit_ends_at_a_small_share_of_what_the_cut_costs(loss, intercept):
    problem, solution, *_ = solved(loss, intercept)
    best = reduce(problem, solution, 5, tol=1e-6, share=TINY).certificate.primal
    for share in (0.3, 0.01):
        model = reduce(problem, solution, 5, tol=1e-6, share=share)
        found = model.certificate
        assert model.status == "solved"
        assert found.gap <= share * (found.primal - solution.certificate.dual)
        assert found.dual <= best * (1 + 1e-6)
        assert best * (1 - 1e-6) <= found.primal


def test_equal_calls_agree_to_the_bit_and_leave_the_solution_alone():
    problem, solution, *_ = solved()
    w, alpha = solution.w.copy(), solution.alpha.copy()
    first, second = (reduce(problem, solution, 9) for _ in range(2))
    np.testing.assert_array_equal(first.rows, second.rows)
    np.testing.assert_array_equal(first.coefficients, second.coefficients)
    assert first.b == second.b
    np.testing.assert_array_equal(solution.w, w)
    np.testing.assert_array_equal(solution.alpha, alpha)


@pytest.mark.parametrize("zeros", [False, True])
def test_a_budget_of_all_support_vectors_returns_the_solution(zeros):
    problem, solution, *_ = solved(zeros=zeros)
    support = np.flatnonzero(solution.w)
    for budget in (len(support), 10 * len(support)):
        model = reduce(problem, solution, budget)
        np.testing.assert_array_equal(model.rows, support)
        np.testing.assert_array_equal(model.coefficients, solution.w[support])
        assert model.b == solution.b
        assert model.certificate is solution.certificate
        assert model.increase == 0.0
    path = reduce_path(problem, solution, [4, len(support)])
    assert [len(model.rows) for model in path] == [4, len(support)]


def test_duplicates_are_chosen_once():
    X, y, C = data(60)
    X, y, C = np.repeat(X, 4, axis=0), np.repeat(y, 4), np.repeat(C, 4)
    problem = Problem(X, y, C, kernel=RBF)
    model = reduce(problem, solve(problem), 50)
    assert len(np.unique(model.rows // 4)) == len(model.rows) <= 50
    assert np.isfinite(model.coefficients).all()


def test_a_kernel_of_low_rank_has_few_rows_and_loses_nothing():
    X, y, C = data()
    problem = Problem(X, y, C, kernel=Kernel("linear"))
    solution = solve(problem, tol=1e-6)
    model = reduce(problem, solution, 40, tol=1e-5, share=TINY)
    assert len(model.rows) == 3
    assert model.certificate.primal <= solution.certificate.primal * (1 + 1e-5)


def test_a_kernel_that_hardly_falls_is_refitted_in_float64():
    # K is near to a matrix of ones, and coefficients are large: of float32 few digits
    # are left, and gaps are ten times what was asked for.
    X = np.random.default_rng(0).normal(size=(500, 4))
    y = np.where((X**2).sum(axis=1) > 4.0, 1.0, -1.0)
    problem = Problem(X, y, 8000.0, kernel=Kernel("laplacian", gamma=0.0005))
    solution = solve(problem)
    for model in reduce_path(problem, solution, [60, 80], tol=3e-4, share=TINY):
        assert model.certificate.relative_gap <= 3e-4
        assert model.certificate.primal >= solution.certificate.dual


@pytest.mark.parametrize("storage", [np.asarray, sparse.csr_matrix])
@pytest.mark.parametrize("name", ["rbf", "poly", "laplacian", "sigmoid"])
def test_kernels_and_storages(name, storage):
    X, y, C = data()
    kernel = NAMED[name]
    if name == "sigmoid":  # hardly curved: as good as positive semidefinite
        kernel = Kernel("sigmoid", gamma=0.01, coef0=0.5)
    problem = Problem(storage(X), y, C, kernel=kernel)
    model = reduce(problem, solve(problem), 10, tol=1e-3, share=TINY)
    found = objective(plain(kernel, X, X), y, C, "hinge", "free", model)
    assert model.certificate.primal == pytest.approx(found, rel=1e-6)
    assert model.certificate.relative_gap <= 1e-3


@pytest.mark.parametrize("zeros", [False, True])
def test_callable_and_precomputed_kernels_say_the_same(zeros):
    problem, solution, K, y, C = solved(zeros=zeros)
    X, *_ = data()
    expected = reduce(problem, solution, 12, tol=1e-4, share=TINY)
    called = Kernel(lambda A, B: plain(RBF, A, B))
    for features, kernel in ((X, called), (K, Kernel("precomputed"))):
        other = Problem(features, y, C, kernel=kernel)
        model = reduce(other, solve(other, tol=1e-6), 12, tol=1e-4, share=TINY)
        np.testing.assert_array_equal(model.rows, expected.rows)
        primal = expected.certificate.primal
        assert model.certificate.primal == pytest.approx(primal, rel=2e-4)


def test_rows_beyond_the_margin_are_checked():
    # Many rows far from the margin; with few of them it is another one.
    rng = np.random.default_rng(1)
    X = np.r_[rng.normal(size=(900, 2)), rng.normal(size=(900, 2)) + 4.0]
    y = np.repeat([1.0, -1.0], 900)
    problem = Problem(X, y, 1.0, kernel=Kernel("rbf", gamma=0.5))
    solution = solve(problem)
    K = plain(problem.kernel, X, X)
    for budget in (1, 2, 8, 20):
        model = reduce(problem, solution, budget, tol=1e-3, share=TINY)
        best = restricted_optimum(K, y, np.ones(1800), "hinge", "free", model.rows)
        assert model.certificate.primal <= best * (1 + 1e-3)
        assert model.certificate.relative_gap <= 1e-3


def test_pursuit_takes_the_best_row_first_and_is_nested():
    problem, solution, K, *_ = solved()
    f = K @ solution.w
    rows = np.arange(len(f))
    order = pursue(problem.columns, rows, f, 40)
    assert order[0] == np.argmax(f * f)
    for k in (1, 16, 17, 39):
        np.testing.assert_array_equal(pursue(problem.columns, rows, f, k), order[:k])
    left = [
        solution.w @ f - f[J] @ np.linalg.solve(K[np.ix_(J, J)], f[J])
        for J in (order[:k] for k in (1, 10, 40))
    ]
    assert left[0] > left[1] > left[2] > 0
    assert pursue(problem.columns, rows, np.zeros(len(f)), 5).size == 0


def test_an_interrupt_in_a_refit_keeps_the_best_model(monkeypatch):
    problem, solution, *_ = solved()

    def interrupted(linear, solver, **options):
        def stop(step):
            raise KeyboardInterrupt

        return solve(linear, solver, **options | {"callback": stop})

    monkeypatch.setattr(restricted, "solve", interrupted)
    (model,) = reduce_path(problem, solution, [5, 10])
    assert model.status == "interrupted"
    assert len(model.rows) == 5
    assert model.certificate.dual <= model.certificate.primal < np.inf


def test_an_interrupt_while_pruned_rows_are_tried_is_kept(monkeypatch):
    """The second refit is theirs; whichever model is returned says so."""
    problem, solution, *_ = solved()
    monkeypatch.setattr(reduced_set, "ROUNDING", np.inf)
    refits = []

    def interrupted(linear, solver, **options):
        def stop(step):
            raise KeyboardInterrupt

        refits.append(1)
        stops = {"callback": stop} if len(refits) == 2 else {}
        return solve(linear, solver, **options | stops)

    monkeypatch.setattr(restricted, "solve", interrupted)
    models = reduce_path(problem, solution, [5, 10])
    assert [model.status.value for model in models] == ["interrupted"]


@on_every_setting
def test_refits_end_when_the_time_is_over(loss, intercept, monkeypatch):
    # A first refit has the time of the grace, whatever else the machine does.
    monkeypatch.setattr("widemargin.solvers.driver.limits.GRACE", 60.0)
    problem, solution, K, y, C = solved(loss, intercept)
    budgets, options = [2, 5, 10], {"tol": 1e-6, "share": TINY, "time_limit": 1e-9}
    models = reduce_path(problem, solution, budgets, **options)
    for budget, model in zip(budgets, models, strict=True):
        assert model.status == "time_limit"
        assert len(model.rows) == budget
        found = objective(K, y, C, loss, intercept, model)
        assert model.certificate.primal == pytest.approx(found, rel=1e-6)
        assert model.certificate.dual <= found
    again = reduce(problem, solution, 10, tol=1e-6, share=TINY, time_limit=100.0)
    assert again.status == "solved"


def test_estimates_that_were_too_good_are_no_time_limit(monkeypatch):
    """Bounds that lack what a step promised: float64 is tried, and no limit blamed."""
    problem, solution, *_ = solved()
    dtypes, take = [], Features.take

    def taken(self, *args):
        Z = take(self, *args)
        dtypes.append(Z.dtype.name)
        return Z

    def hopeful(linear, solver, *, callback, **options):
        def promise(step):
            return callback(dataclasses.replace(step, dual=step.primal))

        return solve(linear, solver, callback=promise, **options)

    monkeypatch.setattr(Features, "take", taken)
    monkeypatch.setattr(restricted, "solve", hopeful)
    (model,) = reduce_path(problem, solution, [5], share=TINY)
    assert model.status == "stalled"
    assert dtypes[0] == "float32"
    assert dtypes[-1] == "float64"


def test_too_little_memory_is_refused():
    problem, solution, *_ = solved()
    with pytest.raises(
        ValueError, match=r"at least 8,800 bytes for 220 rows.* Got 900 "
    ):
        reduce(problem, solution, 10, memory_limit=900)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"budgets": []}, "'budgets' parameter of reduce must be one or more"),
        ({"budgets": [5, 3]}, "in rising order"),
        ({"budgets": [0]}, "'budget' parameter of reduce must be an int"),
        ({"tol": 0.0}, "'tol' parameter"),
        ({"candidates": 0}, "'candidates' parameter"),
        ({"solution": None}, "'solution' parameter"),
        ({"problem": None}, "'problem' parameter"),
    ],
)
def test_what_is_refused(change, message):
    problem, solution, *_ = solved()
    options = {"problem": problem, "solution": solution, "budgets": [5]} | change
    with pytest.raises((ValueError, TypeError), match=message):
        reduce_path(**options)


def test_a_solution_of_another_problem_is_refused():
    problem, solution, *_ = solved(m=200)
    with pytest.raises(
        ValueError, match=r"belong to the problem. Got 200 and 220 rows"
    ):
        reduce(solved()[0], solution, 5)


def test_a_norm_of_the_losses_is_refused():
    X = np.random.default_rng(0).normal(size=(60, 2))
    y = np.where(X[:, 0] > 0, 1.0, -1.0)
    norm = BudgetL1(budget=20)
    problem = Problem(X, y, 1.0, kernel=Kernel("rbf", gamma=0.5), norm=norm)
    with pytest.raises(TypeError, match="a Problem with a kernel and without a norm"):
        reduce(problem, solve(problem), 5)
