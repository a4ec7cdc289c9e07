"""Objectives, repair, best intercept and certificate against their definitions."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.cases.problems import PROBLEMS, ndc
from tests.cases.reference import objective
from widemargin import Problem, as_rows, solve

COMBINATIONS = [
    (loss, intercept)
    for loss in ("hinge", "squared_hinge")
    for intercept in ("free", "penalized", "none")
]


def random_problem(seed, loss="hinge", intercept="free", m=40, n=3, zeros=False):
    rng = np.random.default_rng(seed)
    X, y = rng.normal(size=(m, n)), np.where(rng.random(m) < 0.4, 1.0, -1.0)
    y[:2] = 1, -1
    C = rng.uniform(0.1, 3.0, m)
    if zeros:
        C[2:12] = 0.0
    return X, y, C, Problem(X, y, C, loss, intercept)


def dual_objective(X, y, C, loss, intercept, alpha):
    """D(alpha), written from the statement of the problem."""
    w = X.T @ (y * alpha)
    value = alpha.sum() - 0.5 * w @ w
    if intercept == "penalized":
        value -= 0.5 * (y @ alpha) ** 2
    if loss == "squared_hinge":
        used = C > 0
        value -= np.sum(alpha[used] ** 2 / (4.0 * C[used]))
    return value


@pytest.mark.parametrize(("loss", "intercept"), COMBINATIONS)
@pytest.mark.parametrize("zeros", [False, True])
def test_objectives(loss, intercept, zeros):
    X, y, C, problem = random_problem(0, loss, intercept, zeros=zeros)
    rng = np.random.default_rng(1)
    w, b = rng.normal(size=3), 0.7 if intercept != "none" else 0.0
    assert problem.primal(w, b) == pytest.approx(
        objective(X, y, C, loss, intercept, w, b)
    )
    alpha = rng.uniform(-1.0, 4.0, len(y))
    state = problem.dual_state(alpha)
    problem.repair(state)
    repaired = problem.gather(state)
    assert problem.dual(alpha) == pytest.approx(
        dual_objective(X, y, C, loss, intercept, repaired)
    )


@pytest.mark.parametrize(("loss", "intercept"), COMBINATIONS)
@given(seed=st.integers(0, 10_000), zeros=st.booleans())
def test_repair_is_feasible_and_weak_duality_holds(loss, intercept, seed, zeros):
    X, y, C, problem = random_problem(seed, loss, intercept, zeros=zeros)
    rng = np.random.default_rng(seed)
    alpha = rng.normal(size=len(y)) * 10.0 ** rng.uniform(-3, 3)
    state = problem.dual_state(alpha)
    problem.repair(state)
    repaired = problem.gather(state)
    assert np.all(repaired >= 0)
    assert np.all(repaired[C == 0] == 0)
    if loss == "hinge":
        assert np.all(repaired <= C)
    if intercept == "free":
        assert abs(y @ repaired) <= 1e-13 * repaired.sum()
    w, b = rng.normal(size=3), rng.normal() if intercept != "none" else 0.0
    certificate = problem.certify(alpha, w, b)
    assert certificate.dual <= certificate.primal
    assert certificate.primal == pytest.approx(problem.primal(w, b), rel=1e-12)
    assert certificate.dual == pytest.approx(
        dual_objective(X, y, C, loss, intercept, repaired), rel=1e-9, abs=1e-12
    )


def test_repair_leaves_a_feasible_point_alone():
    _, y, C, problem = random_problem(0)
    alpha = np.where(y > 0, 1.0, y[y > 0].size / y[y < 0].size) * C.min()
    state = problem.dual_state(alpha)
    problem.repair(state)
    np.testing.assert_allclose(problem.gather(state), alpha, rtol=1e-14)


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
@given(seed=st.integers(0, 10_000))
def test_best_intercept_is_the_minimizer(loss, seed):
    X, y, C, problem = random_problem(seed, loss)
    w = np.random.default_rng(seed).normal(size=3)
    best = problem.best_intercept(w)
    value = objective(X, y, C, loss, "free", w, best)
    breakpoints = y - X @ w
    tried = np.concatenate([breakpoints, best + np.array([-1e-3, 1e-3]), [0.0, best]])
    assert all(
        value <= objective(X, y, C, loss, "free", w, b) * (1 + 1e-12) for b in tried
    )


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
@pytest.mark.parametrize("intercept", ["free", "penalized", "none"])
@given(seed=st.integers(0, 10_000), b=st.floats(-30.0, 30.0))
def test_bounds_near_a_point_have_an_intercept_that_is_good_enough(
    loss, intercept, seed, b
):
    X, y, C, problem = random_problem(seed, loss, intercept)
    w, state = np.random.default_rng(seed).normal(size=3), problem.dual_state(C / 2)
    problem.repair(state)
    before, g = problem.evaluate(state, problem.stack(w, b))
    enough = 1e-3 * problem.zero_objective
    found, same, v = problem.evaluate_near(state, problem.stack(w, b), enough)
    np.testing.assert_allclose(same, g, rtol=1e-12, atol=1e-12)
    assert found.dual == pytest.approx(before.dual, rel=1e-12)
    again = problem.bounds(state, v)
    assert found.primal == pytest.approx(again.primal, rel=1e-12)
    if intercept == "none":
        assert found.primal == pytest.approx(before.primal, rel=1e-12)
        return
    # It need not be better than b, where b is good enough.
    tried = np.concatenate([y - X @ w, np.linspace(-3.0, 3.0, 61), [b]])
    least = min(objective(X, y, C, loss, intercept, w, one) for one in tried)
    assert found.primal <= least + 2.0 * enough


@pytest.mark.parametrize("off", [0.01, 0.1])
def test_an_answer_has_the_best_penalized_intercept_where_the_gap_needs_it(off):
    """Also where b = y'alpha, as in descent: w says the same as alpha of the optimum."""
    X, y, C, problem = random_problem(3, "squared_hinge", "penalized", m=400)
    best = solve(problem, "active_set", tol=1e-10)
    own = best.alpha > 0.0
    Z = y[own, np.newaxis] * X[own]
    way = y[own] - Z @ np.linalg.lstsq(Z, y[own], rcond=None)[0]
    alpha = best.alpha.copy()
    alpha[own] += off / (y[own] @ way) * way  # X'Y alpha as it was
    state, far = problem.dual_state(alpha), problem.stack(best.w, best.b + off)
    before, g = problem.evaluate(state, far)
    np.testing.assert_allclose(g, far, rtol=1e-9)
    begin = problem.rows.sweeps
    v, bounds = problem.finish(state, far, 1e-4)
    assert bounds.relative_gap <= 0.01 * before.relative_gap
    assert problem.rows.sweeps - begin == 3
    assert v[-1] == pytest.approx(best.b, rel=1e-9)
    primal = objective(X, y, C, "squared_hinge", "penalized", v[:-1], v[-1])
    assert bounds.primal == pytest.approx(primal, rel=1e-12)


@pytest.mark.parametrize("near", [0.3, 7.0, -7.0])
def test_best_intercept_of_a_flat_minimum_is_its_middle(near):
    problem = Problem(np.zeros((2, 1)), [-1, 1], 1.0)  # any b in [-1, 1] is best
    assert problem.best_intercept([0.0], near) == 0.0
    problem = Problem([[0.0], [1.0]], [-1, 1], 0.1)  # of w = 0.2: in [-1, 0.8]
    assert problem.best_intercept([0.2], near) == pytest.approx(-0.1, abs=1e-15)


@pytest.mark.parametrize("intercept", ["penalized", "none"])
def test_other_intercepts_are_left_alone(intercept):
    _, _, _, problem = random_problem(0, intercept=intercept)
    expected = 0.3 if intercept == "penalized" else 0.0
    assert problem.best_intercept(np.zeros(3), 0.3) == expected


def test_the_certificate_of_the_optimum_is_tight_and_of_another_point_is_not():
    X, y = PROBLEMS["ellipse"]()
    problem = Problem(X, y)
    solution = solve(problem, tol=1e-10)
    assert problem.certify(*_answer(solution)).relative_gap <= 1e-10
    spoiled = problem.certify(solution.alpha, solution.w * 1.01, solution.b)
    assert spoiled.relative_gap > 1e-6
    assert problem.certify(0 * solution.alpha, solution.w, solution.b).relative_gap == 1


def _answer(solution):
    return solution.alpha, solution.w, solution.b


def test_the_certificate_does_not_depend_on_centering():
    X, y = PROBLEMS["shifted"]()
    moved = Problem(X, y)
    plain = Problem(X - 1e6, y)
    a, b = solve(moved, tol=1e-9), solve(plain, tol=1e-9)
    assert a.status == b.status == "solved"
    assert a.certificate.primal == pytest.approx(b.certificate.primal, rel=1e-8)
    np.testing.assert_allclose(a.w, b.w, rtol=1e-3, atol=1e-5)


def test_sparse_columns_that_need_centering():
    """A nearly full column of 1e6 in CSR: centered without filling the others."""
    from scipy import sparse

    rng = np.random.default_rng(0)
    dense = np.where(rng.random((300, 20)) < 0.1, rng.normal(size=(300, 20)), 0.0)
    dense[:, 3] = 1e6 + rng.normal(size=300)
    y = np.sign(dense[:, 3] - 1e6 + dense[:, 0])
    X = sparse.csr_array(dense)
    ours = solve(Problem(X, y), tol=1e-8)
    full = solve(Problem(dense, y), tol=1e-8)
    assert ours.status == full.status == "solved"
    assert ours.certificate.primal == pytest.approx(full.certificate.primal, rel=2e-8)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((np.ones((3, 1)), [1, -1]), "y must have length 3. Got shape"),
        ((np.ones((2, 1)), [1, 2]), r"y must hold \+1 and -1 only. Got 2 instead"),
        ((np.ones((2, 1)), [1, 1]), r"Both labels must occur .* no such row with label -1"),
        ((np.ones((2, 1)), [1, -1], [1.0, 0.0]), r"Both labels .* no such row with label -1"),
        ((np.ones((2, 1)), [1, -1], -1.0), r"C must be nonnegative .* Got -1.0 to -1.0"),
        ((np.ones((2, 1)), [1, -1], np.nan), "C must hold finite numbers only .* Got nan"),
        ((np.ones((2, 1)), [1, -1], 1e308), "and its sum finite"),
        ((np.ones((2, 1)), [1, -1], 1j), "C must hold real numbers"),
        ((np.ones((2, 1)), [1, -1], [1.0, 2.0, 3.0]), "C must have length 2"),
        ((np.ones((2, 1)), [1, -1], 1.0, "huber"), "'loss' parameter of Problem .* 'huber'"),
        ((np.ones((2, 1)), [1, -1], 1.0, "hinge", "yes"), "'intercept' parameter of Problem"),
        ((np.ones(2), [1, -1]), "X must be a matrix"),
        ((np.ones((0, 2)), []), "X must have at least one row"),
        ((np.ones((2, 0)), [1, -1]), "at least one row and one column"),
        (([[1.0], [np.nan]], [1, -1]), "Got NaN at row 1, column 0"),
        (([[1.0, -np.inf], [0.0, 0.0]], [1, -1]), "Got -infinity at row 0, column 1"),
        (([[1e200], [0.0]], [1, -1]), "squares are finite. Column 0"),
        (([["a"], ["b"]], [1, -1]), "X must be a matrix of real numbers"),
    ],
)  # fmt: skip
def test_bad_input_is_one_sentence(arguments, message):
    with pytest.raises(ValueError, match=message):
        Problem(*arguments)


@pytest.mark.parametrize("q", [1e200, [1e200, 1.0]])
def test_margins_whose_losses_are_beyond_all_floats_are_refused(q):
    with pytest.raises(ValueError, match=r"q must be so small .* Got up to 1e\+200"):
        Problem([[0.0], [1.0]], [-1, 1], 1.0, "squared_hinge", q=q)
    Problem([[0.0], [1.0]], [-1, 1], 1.0, "hinge", q=q)


@pytest.mark.parametrize("q", [1e155, 1e200])
@pytest.mark.parametrize("intercept", ["free", "penalized"])
def test_margins_whose_squares_are_infinite_are_solved(intercept, q):
    """They stalled, with warnings of floats, where the intercept was free."""
    X, y, _, _ = random_problem(0)
    solution = solve(Problem(X, y, 1.0, "hinge", intercept, q=q))
    assert solution.status == "solved"


def test_rows_are_used_as_they_are():
    X, y = PROBLEMS["ndc"]()
    rows = as_rows(X)
    assert Problem(rows, y).rows is rows
    assert rows.sweeps == 1  # the check of the numbers


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
@pytest.mark.parametrize("name", ["digits", "ndc", "breast_cancer"])
def test_rows_that_do_not_matter_are_no_support_vectors(name, loss):
    X, y = PROBLEMS[name]()
    exact, usual = (solve(Problem(X, y, 1.0, loss), tol=tol) for tol in (1e-10, 1e-4))
    matter = np.count_nonzero(exact.alpha > 1e-6 * exact.alpha.max())
    assert np.count_nonzero(usual.alpha) == pytest.approx(matter, rel=0.1)
    assert usual.certificate.relative_gap <= 1e-4


def test_labels_and_weights_of_a_problem_are_not_to_be_changed():
    X, y = ndc(50, 3)
    problem = Problem(X, y, 0.5)
    for vector in (problem.y, problem.C):
        with pytest.raises(ValueError, match="read-only"):
            vector[0] = 2.0


def test_the_answer_is_the_users_own():
    X, y = ndc(60, 3)
    mask = np.arange(60) % 3 > 0
    for rows, labels in ((as_rows(X), y), (as_rows(X).select(mask), y[mask])):
        alpha = solve(Problem(rows, labels)).alpha
        alpha[0] = 3.0
