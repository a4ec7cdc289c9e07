"""Hard margins: against Clarabel, and certificates where there are none."""

import re

import clarabel
import numpy as np
import pytest
from scipy import sparse

from widemargin import Kernel, Problem, load_model, save_model, solve
from widemargin.cli import main
from widemargin.estimators import SVC, SVR, LinearSVC, LinearSVR
from widemargin.estimators.budget_svc import BudgetSVC
from widemargin.problems import HardProblem
from widemargin.problems.regression import regression_problem
from widemargin.solvers.driver.hard import _nearest_null

INTERCEPTS = ("free", "penalized", "none")


def apart(m=60, n=4, seed=0):
    """Two classes with a gap between them."""
    rng = np.random.default_rng(seed)
    X, u = rng.standard_normal((m, n)), np.ones(n) / np.sqrt(n)
    y = np.where(X @ u > 0.0, 1, -1)
    return X + 0.3 * y[:, np.newaxis] * u, y


def least_norm(X, y, q, intercept):
    """The optimum of 1/2 (w'w + p b^2) where y (X w + b) >= q, by Clarabel."""
    m, n = X.shape
    p = {"free": [0.0], "penalized": [1.0], "none": []}[intercept]
    A = np.c_[X, np.ones((m, len(p)))] * y[:, np.newaxis]
    P = sparse.diags(np.concatenate([np.ones(n), p])).tocsc()
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = 1e-11
    cones = [clarabel.NonnegativeConeT(m)]
    A = sparse.csc_matrix(-A)
    zero = np.zeros(A.shape[1])
    return clarabel.DefaultSolver(P, zero, A, -q, cones, settings).solve().obj_val


def root_of(K):
    """Rows whose products are K."""
    values, vectors = np.linalg.eigh(K)
    return vectors * np.sqrt(np.maximum(values, 0.0))


@pytest.mark.parametrize("intercept", INTERCEPTS)
@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_the_optimum_is_that_of_another_solver(loss, intercept):
    X, y = apart()
    problem = Problem(X, y, np.inf, loss, intercept)
    solution = solve(problem, tol=1e-8)
    bounds = solution.certificate
    expected = least_norm(X, y, np.ones(len(y)), intercept)
    assert solution.status == "solved"
    assert bounds.relative_gap <= 1e-8
    assert bounds.primal == pytest.approx(expected, rel=1e-8)
    assert np.min(y * (X @ solution.w + solution.b)) >= 1.0 - 1e-14
    assert solution.alpha.min() >= 0.0


@pytest.mark.parametrize("intercept", INTERCEPTS)
def test_kernels_have_the_optimum_of_another_solver(intercept):
    X, _ = apart()
    y = np.where(np.random.default_rng(1).random(len(X)) > 0.5, 1, -1)
    kernel = Kernel("rbf", gamma=1.0)
    problem = Problem(X, y, np.inf, "hinge", intercept, kernel=kernel)
    solution = solve(problem, tol=1e-8)
    expected = least_norm(root_of(kernel(X, X)), y, np.ones(len(y)), intercept)
    assert solution.status == "solved"
    assert solution.certificate.primal == pytest.approx(expected, rel=1e-8)
    again = problem.certify(solution.alpha, solution.w, solution.b, tol=1e-8)
    assert again.relative_gap <= 1e-8


@pytest.mark.parametrize("intercept", INTERCEPTS)
@pytest.mark.parametrize("kernel", [None, Kernel("rbf", gamma=1.0)])
def test_regressions_have_the_optimum_of_another_solver(kernel, intercept):
    rng = np.random.default_rng(2)
    X = rng.standard_normal((50, 3))
    t = X @ [1.0, -2.0, 0.5] + rng.uniform(-0.2, 0.2, 50)
    problem = regression_problem(X, t, np.inf, 0.25, intercept=intercept, kernel=kernel)
    solution = solve(problem, tol=1e-8)
    features = X if kernel is None else root_of(kernel(X, X))
    y, q = np.repeat([1.0, -1.0], 50), np.concatenate([t - 0.25, -t - 0.25])
    expected = least_norm(np.vstack([features] * 2), y, q, intercept)
    assert solution.status == "solved"
    assert solution.certificate.primal == pytest.approx(expected, rel=1e-8)
    if kernel is None:
        assert np.max(np.abs(t - X @ solution.w - solution.b)) <= 0.25


@pytest.mark.parametrize("intercept", INTERCEPTS)
@pytest.mark.parametrize("kernel", [None, Kernel("linear"), Kernel("poly", gamma=1.0)])
def test_classes_that_overlap_have_hulls_that_meet(kernel, intercept):
    X, y = apart()
    y[:9] *= -1
    X = X if kernel is None or kernel.name == "linear" else X[:, :1]
    problem = Problem(X, y, np.inf, "hinge", intercept, kernel=kernel)
    solution = solve(problem)
    hull = solution.extras["hull"]
    assert solution.status == "infeasible"
    assert solution.message.startswith("No model reaches all margins, as C=inf asks. ")
    assert " Proof: 1/2 w'w would be more than " in solution.message
    assert "hull" in solution.message
    assert solution.certificate.dual >= problem.most
    assert solution.certificate.relative_gap == np.inf
    assert hull.min() >= 0.0
    assert problem.disproof(hull).dual >= problem.most
    features = X if kernel is None else root_of(kernel(X, X))
    assert np.linalg.norm((y * hull) @ features) <= 1e-6 * hull.sum()
    if intercept != "none":
        assert abs(y @ hull) <= 1e-6


@pytest.mark.parametrize("kernel", [None, Kernel("linear")])
def test_what_is_near_a_hull_is_moved_to_it(kernel):
    X, y = apart()
    y[:9] *= -1
    problem = Problem(X, y, np.inf, kernel=kernel)
    hull = solve(problem).extras["hull"]
    off = hull * (1.0 + 1e-4 * np.random.default_rng(0).standard_normal(len(y)))
    assert problem.disproof(off).dual < problem.most
    assert problem.disproof(_nearest_null(problem, off)).dual >= problem.most


def test_a_direction_that_is_none_proves_nothing():
    X, y = apart()
    problem = Problem(X, y, np.inf)
    assert problem.disproof(np.ones(len(y))).dual < problem.most
    assert problem.disproof(np.zeros(len(y))).dual == 0.0


def test_a_regression_without_a_tube_around_the_targets_is_infeasible():
    X = np.array([[0.0], [1.0], [2.0]])
    solution = solve(regression_problem(X, [0.0, 1.0, 0.0], np.inf, 0.49))
    assert solution.status == "infeasible"
    inside = solve(regression_problem(X, [0.0, 1.0, 0.0], np.inf, 0.51))
    assert inside.status == "solved"


def test_equal_rows_with_two_labels_are_infeasible():
    X, y = apart()
    X, y = np.vstack([X, X[:1]]), np.append(y, -y[0])
    for kernel in (None, Kernel("rbf", gamma=1.0)):
        assert solve(Problem(X, y, np.inf, kernel=kernel)).status == "infeasible"


def test_ties_on_the_margin_of_one_class():
    X = np.array([[0.0, 0.0], [0.0, 1.0], [0.0, 2.0], [0.0, 3.0], [2.0, 1.0]])
    solution = solve(Problem(X, [-1, -1, -1, -1, 1], np.inf), tol=1e-9)
    assert solution.certificate.primal == pytest.approx(0.5, rel=1e-8)
    np.testing.assert_allclose([*solution.w, solution.b], [1.0, 0.0, -1.0], atol=1e-8)


@pytest.mark.parametrize("scale", [1e-6, 1e6, 1e100])
def test_units_do_not_matter(scale):
    X, y = apart()
    solution = solve(Problem(scale * X, y, np.inf))
    one = solve(Problem(X, y, np.inf))
    assert solution.status == "solved"
    primal = solution.certificate.primal * scale * scale
    assert primal == pytest.approx(one.certificate.primal, rel=1e-3)


def test_lengths_whose_squares_are_zero_are_not_called_infeasible():
    X, y = apart()
    assert solve(Problem(1e-200 * X, y, np.inf)).status != "infeasible"


@pytest.mark.parametrize("kernel", [None, Kernel("rbf", gamma=0.5)])
@pytest.mark.parametrize("q", [1e-200, 1e-160, 1e-120, 1e160, 1e200])
def test_margins_whose_objective_leaves_the_range_are_refused(q, kernel):
    """By underflow they were called infeasible; others stalled."""
    X, y = apart()
    with pytest.raises(ValueError, match=r"With C=inf the size of q .*: scale q. Got"):
        Problem(X, y, np.inf, q=q, kernel=kernel)
    if kernel is None:
        t = q * X[:, 0]
        with pytest.raises(ValueError, match=r"in a regression: of y and epsilon"):
            LinearSVR(C=np.inf, epsilon=0.2 * q).fit(X, t)


@pytest.mark.parametrize("q", [1e-98, 1e-50, 1e50, 1e149])
def test_margins_of_any_other_size_are_solved(q):
    X, y = apart()
    one, other = (solve(Problem(X, y, np.inf, q=size)) for size in (1.0, q))
    assert other.status == "solved"
    np.testing.assert_allclose(other.w / q, one.w, rtol=1e-3, atol=1e-5)


@pytest.mark.parametrize("kernel", [None, Kernel("rbf", gamma=0.5)])
@pytest.mark.parametrize("q", [0.0, -1e-200, -1.0])
def test_margins_that_zero_reaches_are_solved_by_it(q, kernel):
    """They stalled."""
    X, y = apart()
    some = np.where(np.arange(len(y)) == 3, 1.0, q)  # a row that has no weight
    C = np.where(np.arange(len(y)) == 3, 0.0, np.inf)
    for problem in (
        Problem(X, y, np.inf, q=q, kernel=kernel),
        Problem(X, y, C, q=some, kernel=kernel),
    ):
        solution = solve(problem)
        assert (solution.status, solution.certificate.primal) == ("solved", 0.0)
        assert not solution.w.any()


def test_upper_bounds_are_of_feasible_points_only():
    X, y = apart()
    problem = Problem(X, y, np.inf)
    assert isinstance(problem, HardProblem)
    solution = solve(problem, tol=1e-6)
    assert problem.primal(-solution.w, -solution.b) == np.inf
    smaller = problem.primal(0.3 * solution.w, 0.3 * solution.b)  # is scaled up
    assert smaller == pytest.approx(solution.certificate.primal, rel=1e-9)
    larger = problem.primal(3.0 * solution.w, 3.0 * solution.b)
    assert larger == pytest.approx(9.0 * solution.certificate.primal, rel=1e-9)


def test_weights_are_infinite_or_zero():
    X, y = apart()
    C = np.where(np.arange(len(y)) % 2, np.inf, 0.0)
    part = solve(Problem(X, y, C), tol=1e-7)
    chosen = solve(Problem(X[C > 0], y[C > 0], np.inf), tol=1e-7)
    primal = chosen.certificate.primal
    assert part.certificate.primal == pytest.approx(primal, rel=1e-6)
    assert not part.alpha[C == 0].any()
    with pytest.raises(ValueError, match="Where one C is infinite all have to be"):
        Problem(X, y, np.where(C > 0, np.inf, 1.0))


def test_limits_end_a_solve():
    X, y = apart()
    stopped = solve(Problem(X, y, np.inf), tol=1e-9, callback=lambda step: True)
    assert stopped.status == "stopped_by_callback"
    assert solve(Problem(X, y, np.inf), tol=1e-9, max_iter=1).status == "max_iter"


@pytest.mark.parametrize(
    "estimator",
    [LinearSVC(), LinearSVC(loss="hinge"), SVC(gamma=1.0), SVC(kernel="linear")],
    ids=repr,
)
def test_classifiers_take_it_with_weights(estimator):
    X, y = apart()
    y[0] *= -1  # the only row that overlaps has no weight
    weights = np.ones(len(y))
    weights[0] = 0.0
    fitted = estimator.set_params(C=np.inf).fit(X, y, weights)
    assert fitted.status_ == "solved"
    assert fitted.dual_gap_ <= 1e-4
    assert np.min((y * fitted.decision_function(X))[1:]) >= 1.0 - 1e-9


@pytest.mark.parametrize("estimator", [LinearSVR(), SVR(gamma=1.0)], ids=repr)
def test_regressors_keep_all_errors_below_epsilon(estimator):
    X, _ = apart()
    t = X[:, 0] + 0.1 * np.sin(9.0 * X[:, 1])
    fitted = estimator.set_params(C=np.inf, epsilon=0.15).fit(X, t)
    assert fitted.status_ == "solved"
    assert np.max(np.abs(t - fitted.predict(X))) <= 0.15 * (1.0 + 1e-9)
    with pytest.raises(ValueError, match="finite where 'epsilon' is 0"):
        estimator.set_params(epsilon=0.0).fit(X, t)


def test_small_regressions_say_what_a_large_finite_C_says():
    X = np.random.default_rng(0).normal(size=(60, 60))
    t = 20.0 * X[:, :10].sum(axis=1)
    hard, soft = (SVR(C=C).fit(X, t) for C in (np.inf, 1e10))
    assert hard.dual_gap_ <= 1e-10
    np.testing.assert_allclose(hard.predict(X), soft.predict(X), rtol=1e-7)


@pytest.mark.parametrize(
    "fit",
    [
        lambda X, y: LinearSVC(C=np.inf, solver="active_set").fit(X, y),
        lambda X, y: solve(Problem(X, y, np.inf, "squared_hinge"), "active_set"),
        lambda X, y: SVC(
            C=np.inf,
            loss="squared_hinge",
            intercept="penalized",
            solver="frank_wolfe",
        ).fit(X, y),
    ],
)
def test_solvers_of_the_squared_hinge_are_told_that_it_is_for_c(fit):
    """They said that the loss was the hinge, which nobody had asked for."""
    with pytest.raises(ValueError, match=r"^With C=inf problems of the hinge .*'auto'"):
        fit(*apart())


def test_what_else_a_solver_does_not_take_is_told_as_for_a_finite_c():
    with pytest.raises(ValueError, match="IRWLS solves problems with a kernel"):
        solve(Problem(*apart(), np.inf), "irwls")


def test_what_has_no_hard_margins_refuses_them():
    X, y = apart()
    with pytest.raises(ValueError, match="finite where 'rank' is given"):
        SVC(C=np.inf, rank=5).fit(X, y)
    with pytest.raises(ValueError, match="finite where 'checkpoint' is given"):
        LinearSVC(C=np.inf, checkpoint="run").fit(X, y)
    with pytest.raises(ValueError, match=r"range \(0, inf\)"):
        BudgetSVC(C=np.inf, budget=4).fit(X, y)


@pytest.mark.parametrize("kind", [LinearSVC, SVC])
def test_model_files_keep_it(kind, tmp_path):
    X, y = apart()
    fitted = kind(C=np.inf).fit(X, y)
    save_model(fitted, tmp_path / "hard.wm")
    model = load_model(tmp_path / "hard.wm")
    assert model.meta["C"] == np.inf
    np.testing.assert_array_equal(model.predict(X), fitted.predict(X))


@pytest.mark.parametrize(("second", "code"), [("1:1", 0), ("1:2.5", 1)])
def test_the_command_line_takes_it(second, code, tmp_path, capsys):
    data = tmp_path / "rows.svm"
    data.write_text(f"-1 1:0\n-1 {second}\n+1 1:2\n+1 1:3\n")
    model = str(tmp_path / "hard.wm")
    assert main(["train", str(data), model, "--C", "inf"]) == code
    told = capsys.readouterr()
    assert ("infeasible" in told.out + told.err) == bool(code)
    said = r"as -C inf asks\. .*\. Proof: 1/2 w'w would be more than \S+\.$"
    assert bool(re.search(said, told.out, re.M)) == bool(code)
