"""Working sets on every problem: against linear solvers, a conic solver and LIBSVM."""

import itertools

import numpy as np
import pytest
from sklearn.datasets import load_wine
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.svm import SVC

from tests.cases.kernel_reference import (
    check_certificate,
    conic_optimum,
    objectives,
    part,
)
from tests.cases.pairwise import pairwise, product
from tests.conftest import INTERCEPTS, LOSSES, PROBLEMS, SETTINGS
from widemargin import Kernel, Problem, solve
from widemargin.kernels import matrix as columns
from widemargin.problems.scores import Scores
from widemargin.solvers import IRWLS
from widemargin.solvers.kernel import irwls, small_problem, working_set

TOL = 1e-6
WEIGHTS = [1e-2, 1.0, 1e3]
NOT_SCALED = ["breast_cancer_raw", "shifted", "badly_scaled"]


# Equal rows make K singular: at C = 1000 its values in float32 have too few digits.
RBF = [
    (name, *setting, C)
    for name, setting, C in itertools.product(PROBLEMS, SETTINGS, WEIGHTS)
    if (name, *setting, C) != ("degenerate", "hinge", "free", 1e3)
]


@pairwise(
    ("inner", "name", "loss", "intercept", "C"),
    [(inner, *case) for inner in ("pairs", "irwls") for case in RBF],
)
def test_the_rbf_optimum_is_that_of_a_conic_solver(inner, name, loss, intercept, C):
    X, y = part(name)
    gamma = 0.3 / X.shape[1]
    problem = Problem(X, y, C, loss, intercept, kernel=Kernel("rbf", gamma=gamma))
    # Small enough for several sets; passes of IRWLS crawl where most rows are free.
    size = {"pairs": 64, "irwls": 256}[inner]
    solution = solve(problem, IRWLS(inner=inner, working_set=size), tol=TOL)
    assert solution.status == "solved", solution
    K = rbf_kernel(X, gamma=gamma)
    check_certificate(K, y, C, loss, intercept, solution, TOL)
    best = conic_optimum(name, gamma, loss, intercept, C)
    assert solution.certificate.dual <= best + 1e-7 * abs(best)
    assert solution.certificate.primal >= best - 1e-7 * abs(best)


# Unscaled features, and C = 1000 with a kernel of low rank, need more pair steps than a
# test has time for, or digits that kernel values in float32 have not.
LOW_RANK = [name for name in PROBLEMS if name not in NOT_SCALED]
LINEAR = [
    (name, *setting, C)
    for name, setting, C in itertools.product(LOW_RANK, SETTINGS, [1e-2, 1.0])
    if (name, setting[0], C) != ("imbalanced", "hinge", 1.0)
] + [("digits", *setting, 1e3) for setting in SETTINGS]


@pairwise(("name", "loss", "intercept", "C"), LINEAR)
def test_the_linear_kernel_gives_the_optimum_of_a_linear_solver(
    name, loss, intercept, C
):
    X, y = PROBLEMS[name]()
    linear = solve(Problem(X, y, C, loss, intercept), "interior_point", tol=1e-9)
    problem = Problem(X, y, C, loss, intercept, kernel=Kernel("linear"))
    solution = solve(problem, IRWLS(), tol=TOL)
    assert solution.status == "solved", solution
    best = linear.certificate.primal
    assert solution.certificate.primal <= best * (1.0 + 1.1 * TOL)
    assert solution.certificate.dual <= best * (1.0 + 1e-9)


# With -0.4 also rows that have a loss in the end.
@product(
    reach=[-0.4, 1.0],
    loss=LOSSES,
    intercept=INTERCEPTS,
    name=["breast_cancer", "digits"],
)
def test_rows_that_are_left_out_change_no_answer(
    name, loss, intercept, reach, monkeypatch
):
    monkeypatch.setattr(irwls, "AT_ONCE", 0)
    monkeypatch.setattr(columns, "FOCUS_SHARE", 1.0)
    monkeypatch.setattr(working_set, "REACH", reach)
    monkeypatch.setattr(working_set, "FEW_ROWS", 0)
    left_out, focus = [], Scores.focus

    def recorded(scores, rows):
        left_out.append(np.count_nonzero(~rows))
        focus(scores, rows)

    monkeypatch.setattr(Scores, "focus", recorded)
    X, y = part(name)
    gamma = 0.3 / X.shape[1]
    problem = Problem(X, y, 10.0, loss, intercept, kernel=Kernel("rbf", gamma=gamma))
    solution = solve(problem, IRWLS(working_set=32), tol=TOL)
    assert solution.status == "solved", solution
    assert sum(left_out) or loss == "squared_hinge"  # where nearly all rows have one
    K = rbf_kernel(X, gamma=gamma)
    check_certificate(K, y, 10.0, loss, intercept, solution, TOL)
    best = conic_optimum(name, gamma, loss, intercept, 10.0)
    assert solution.certificate.dual <= best + 1e-7 * abs(best)
    assert solution.certificate.primal >= best - 1e-7 * abs(best)


@pytest.mark.parametrize(
    ("name", "C"),
    [
        *itertools.product(["breast_cancer", "wide"], WEIGHTS),
        *itertools.product(["noise", "degenerate"], [1e-2, 1.0]),
    ],
)
def test_alpha_has_the_objective_of_libsvm(name, C):
    X, y = PROBLEMS[name]()
    gamma = 0.3 / X.shape[1]
    K = rbf_kernel(X, gamma=gamma)
    peer = SVC(C=C, kernel="precomputed", tol=1e-9).fit(K, y)
    alpha = np.zeros(len(y))
    alpha[peer.support_] = np.abs(peer.dual_coef_[0])
    best = objectives(K, y, C, "hinge", "free", alpha, peer.intercept_[0])[1]
    problem = Problem(X, y, C, "hinge", "free", kernel=Kernel("rbf", gamma=gamma))
    solution = solve(problem, IRWLS(working_set=128), tol=TOL)
    assert solution.status == "solved", solution
    check_certificate(K, y, C, "hinge", "free", solution, TOL)
    assert solution.certificate.dual == pytest.approx(best, rel=1.1 * TOL)
    decision = K @ (y * solution.alpha) + solution.b
    assert np.abs(decision - peer.decision_function(K)).max() <= 0.02


def test_weights_of_rows_and_rows_without_weight():
    X, y = part("breast_cancer")
    C = np.random.default_rng(1).uniform(0.0, 2.0, len(y))
    C[::7] = 0.0
    K = rbf_kernel(X, gamma=0.01)
    for (loss, intercept), inner in itertools.product(SETTINGS, ["pairs", "irwls"]):
        problem = Problem(X, y, C, loss, intercept, kernel=Kernel("rbf", gamma=0.01))
        solution = solve(problem, IRWLS(inner=inner), tol=TOL)
        assert solution.status == "solved"
        assert np.all(solution.alpha[::7] == 0)
        kept = C > 0
        alpha, b = solution.alpha[kept], solution.b
        primal, dual = objectives(
            K[np.ix_(kept, kept)], y[kept], C[kept], loss, intercept, alpha, b
        )
        assert primal - dual <= 1.01 * TOL * primal


def test_small_working_sets_have_as_much_time_as_large_ones():
    X, y = PROBLEMS["noise"]()
    problem = Problem(X, y, 1.0, kernel=Kernel("rbf", gamma=0.3 / X.shape[1]))
    for size, factor in ((None, 1), (4096, 1), (1024, 2), (4, 512)):
        patience = IRWLS(working_set=size).patience_for(problem)
        assert patience == factor * IRWLS.patience


# -- losses of rounding ----------------------------------------------------------------


@pytest.mark.parametrize("intercept", ["free", "penalized", "none"])
@pytest.mark.parametrize("C", [1.0, 1e6])
@pytest.mark.parametrize("degree", [2, 3])
def test_rounding_of_c_is_no_loss_of_separable_rows(degree, C, intercept):
    # Kernel values to 8e12: to round c moves scores by 1e-10, and C times that is more
    # than tol times the objective of 2.6e-7. To 2e19: c is 1e-13, far below C.
    X, y = load_wine(return_X_y=True)
    X, y = X[y != 1], np.where(y[y != 1] == 2, 1.0, -1.0)
    kernel = Kernel("poly", gamma=1.0, degree=degree, coef0=1.0)
    problem = Problem(X, y, C, intercept=intercept, kernel=kernel)
    solution = solve(problem, IRWLS(), tol=1e-4)
    assert solution.status == "solved", solution
    found = problem.certify(solution.alpha, solution.w, solution.b, tol=1e-4)
    assert found.relative_gap <= 1e-4


@pytest.mark.parametrize(("C", "grows"), [(0.5 - 5e-8, False), (1.0, True)])
def test_c_grows_within_its_bounds_only(C, grows):
    # The best c is (0.5, -0.5), where C has room for it.
    problem = Problem([[1.0], [-1.0]], [1, -1], C, kernel=Kernel("linear"))
    c = np.array([0.5 - 5e-8, 5e-8 - 0.5])
    run = working_set.WorkingSet(
        problem, problem.expand(c), small_problem.solve_by_pairs
    )
    assert run.grow(1e-5) == grows
    assert np.all(problem.signs * run.c <= C)
    assert np.all(problem.signs * run.scores.values >= 1.0) == grows
