"""The algorithm of the paper on constraint reduction, as its equations stand."""

import numpy as np
import pytest
from scipy import sparse

from tests.cases.problems import PROBLEMS
from widemargin import Problem, solve
from widemargin.solvers import InteriorPoint
from widemargin.solvers.linear.interior_point import MADE, OWN
from widemargin.solvers.linear.normal_equations import (
    ConstraintSet,
    _in_active_set,
    class_sizes,
)

TOL = 1e-8


@pytest.mark.parametrize(
    ("q", "needed", "sizes", "expected"),
    [
        (1000, (0, 0), (5000, 5000), (500, 500)),
        (7, (0, 0), (10, 10), (3, 4)),  # both halves are rounded up: 4 + 4 is too many
        (100, (0, 0), (1000, 20), (80, 20)),  # a class that is too small
        (100, (0, 0), (20, 1000), (20, 80)),
        (100, (74, 112), (300, 7497), (74, 112)),  # isolet: q_L of both is above q
        (120, (10, 112), (300, 300), (10, 112)),
        (120, (112, 5), (300, 300), (112, 8)),
        (10, (3, 4), (3, 100), (3, 7)),
        (4, (5, 6), (5, 6), (5, 6)),
    ],
)
def test_sizes_of_the_classes(q, needed, sizes, expected):
    found = class_sizes(q, np.array(needed, float), np.array(sizes, float))
    assert found.tolist() == list(expected)


# Weights d of five rows of the class +1 and five of -1, and slacks; mu = 0.55^4 gives
# q = ceil(5.5) = 6 of ten rows and the threshold 100 * 0.3025 = 30.25.
WEIGHTS = np.array([60.0, 50.0, 40.0, 35.0, 10.0, 3.0, 2.0, 1.0, 0.5, 0.2])
SLACKS = np.array([9.0, 8.0, 7.0, 6.0, 5.0, 0.1, 0.2, 2.0, 3.0, 4.0])
MU = 0.55**4


def chosen(knows=True, mu=MU, seed=0, **options):
    """The rows of Q."""
    X, y = np.arange(10.0)[:, np.newaxis], np.repeat([1, -1], 5)
    problem = Problem(X, y, loss="hinge")
    state = problem.state(**dict.fromkeys((*OWN, *MADE), 1.0))
    state.d, state.s = WEIGHTS, SLACKS
    solver = InteriorPoint(mode="published", random_state=seed, **options)
    active = ConstraintSet(solver, problem, state, "dense")
    active.choose(mu, knows=knows)
    return _in_active_set(active.state, active.rule, active.levels).tolist()


def test_balanced_rule_2():
    # (3.20): four rows of + are above 30.25; (3.21): max(4, 3) and max(0, 3), and the
    # second is lowered until both are 6.
    assert chosen() == [0, 1, 2, 3, 5, 6]


def test_rule_2_without_balance():
    assert chosen(balanced=False) == [0, 1, 2, 3, 4, 5]


def test_theta_sets_the_least_size():
    assert chosen(theta=1.0) == [0, 1, 2, 3, 4, 5, 6, 7, 8]  # 0.2 is below 0.3025
    assert chosen(theta=160.0, beta=1.0) == [0, 1]  # q = ceil(0.92) = 1, two must be in


def test_nonadaptive_sets_have_a_fixed_size():
    assert chosen(adaptive=False, max_active=0.4) == [0, 1, 5, 6]
    assert chosen(adaptive=False, max_active=0.4, mu=1e-12) == [0, 1, 5, 6]


def test_max_active_is_the_largest_size_but_for_rows_that_must_be_in():
    assert chosen(max_active=0.2) == [0, 1, 2, 3]


def test_rule_1_takes_the_smallest_slacks():
    # alpha = 1: rows with 1 / s >= 30.25 or s <= 0.3025 must be in, which are 5 and 6.
    assert chosen(reduction="one_sided", balanced=False, beta=1.0) == [5, 6]
    assert chosen(reduction="one_sided", adaptive=False, max_active=0.4) == [3, 4, 5, 6]


def test_a_function_orders_the_rows():
    def score(slack, multiplier, label):
        assert multiplier.tolist() == [1.0] * len(slack)
        return np.where(label > 0, slack, 100.0 - slack)

    options = {"balanced": False, "theta": 1000.0, "beta": 2.0}  # q = ceil(3.025)
    assert chosen(reduction=score, **options) == [1, 2, 3, 4]
    assert chosen(reduction=score, theta=1000.0, beta=2.0) == [3, 4, 8, 9]


@pytest.mark.parametrize(
    ("answer", "got"),
    [
        (np.zeros(3), r"shape \(3,\) and dtype float64"),
        (np.full(10, np.nan), "NaN or infinity"),
        ("all", r"shape \(\) and dtype <U3"),
        (["1"] * 10, r"shape \(10,\) and dtype <U1"),
    ],
)
def test_a_function_that_returns_no_scores_is_refused(answer, got):
    said = rf"'reduction' function .* shape \(10,\). Got {got} instead."
    with pytest.raises(ValueError, match=said):
        chosen(reduction=lambda slack, multiplier, label: answer)


@pytest.mark.parametrize("balanced", [True, False])
def test_the_first_set_is_drawn_by_chance(balanced):
    draws = [
        tuple(chosen(knows=False, max_active=0.4, balanced=balanced, seed=seed))
        for seed in range(200)
    ]
    assert all(len(draw) == 4 for draw in draws)
    counts = np.bincount(np.concatenate(draws), minlength=10)
    assert counts.min() > 50  # 80 on average
    positive = [sum(row < 5 for row in draw) for draw in draws]
    assert (set(positive) == {2}) == balanced


@pytest.mark.parametrize("mode", ["published", "damped"])
@pytest.mark.parametrize("name", ["ellipse", "breast_cancer", "digits", "separable"])
def test_the_published_algorithm_solves(name, mode):
    X, y = PROBLEMS[name]()
    solution = solve(Problem(X, y), InteriorPoint(mode=mode), tol=TOL)
    plain = solve(Problem(X, y), InteriorPoint(reduction=None), tol=TOL)
    assert solution.status == "solved", solution
    best = plain.certificate.primal
    assert solution.certificate.primal == pytest.approx(best, rel=2 * TOL)


def test_sparse_factors_take_the_steps_of_dense_ones():
    X, y = PROBLEMS["ndc"]()
    found = [
        solve(
            Problem(sparse.csr_array(X), y),
            InteriorPoint(mode="published", normal_matrix=form),
            tol=TOL,
        )
        for form in ("dense", "sparse")
    ]
    dense, factored = (s.trace.column("mu") for s in found)
    np.testing.assert_allclose(factored[:-1], dense[:-1], rtol=1e-6)
    assert found[1].status == "solved"


@pytest.mark.parametrize("name", ["ndc", "digits"])
def test_it_ends_where_mu_and_the_residuals_do(name):
    X, y = PROBLEMS[name]()
    solution = solve(Problem(X, y), InteriorPoint(mode="published"), tol=1e-15)
    last, before = solution.trace[-1], solution.trace[-2]
    assert max(last.details["mu"], last.residual) <= 1e-8
    assert max(before.details["mu"], before.residual) > 1e-8
    assert solution.certificate.relative_gap < TOL


def test_the_start_is_the_papers():
    X, y = PROBLEMS["ellipse"]()
    problem = Problem(X, y)
    steps = InteriorPoint(mode="published").iterate(problem, None, TOL)
    step = next(steps)
    v, state = step.point()
    assert not v.any()
    assert all(np.all(getattr(state, name) == 2.0) for name in OWN)
    assert step.details["mu"] == 4.0
    assert step.active == len(y)


def newton_direction(X, y, C, point, r_sv, r_xu):
    """Changes of w, b, alpha, u, s and xi by the whole Newton system of (3.1)-(3.6)."""
    w, b, alpha, u, s, xi = point
    m, n = X.shape
    YX, eye, zero = y[:, None] * X, np.eye(m), np.zeros((m, m))
    none, row = np.zeros((m, n)), np.zeros((1, m))
    system = np.block(
        [
            [np.eye(n), np.zeros((n, 1)), -YX.T, none.T, none.T, none.T],
            [np.zeros((1, n + 1)), y[None], row, row, row],
            [none, np.zeros((m, 1)), eye, eye, zero, zero],
            [YX, y[:, None], zero, zero, -eye, eye],
            [none, np.zeros((m, 1)), np.diag(s), zero, np.diag(alpha), zero],
            [none, np.zeros((m, 1)), zero, np.diag(xi), zero, np.diag(u)],
        ]
    )
    margin = YX @ w + y * b
    r_w, r_s = w - YX.T @ alpha, margin + xi - 1.0 - s
    right = [-r_w, [-(y @ alpha)], C - alpha - u, -r_s, -r_sv, -r_xu]
    found = np.linalg.solve(system, np.concatenate(right))
    return np.split(found, np.cumsum([n, 1, m, m, m]))


def step_by_the_equations(X, y, C, point):
    """Where a step of Algorithm 1 with all rows ends, and its length.

    sigma and the predictor's length are those of Mehrotra's method, the length that of
    Gertz and Griffin: the product that blocks ends at a hundredth of the mean there.
    """
    w, b, alpha, u, s, xi = point
    m = len(y)
    mu = (s @ alpha + xi @ u) / (2 * m)
    _, _, da, du, ds, dx = newton_direction(X, y, C, point, s * alpha, xi * u)
    pairs = np.concatenate([alpha, u, s, xi]), np.concatenate([da, du, ds, dx])
    affine = min(1.0, (-pairs[0] / pairs[1])[pairs[1] < 0].min(initial=np.inf))
    ahead = (s + affine * ds) @ (alpha + affine * da)
    ahead += (xi + affine * dx) @ (u + affine * du)
    target = (ahead / (2 * m) / mu) ** 3 * mu  # sigma mu
    changes = newton_direction(
        X, y, C, point, s * alpha - target + ds * da, xi * u - target + dx * du
    )
    _, _, da, du, ds, dx = changes
    values, moves = np.array([alpha, u, s, xi]), np.array([da, du, ds, dx])
    partner, turns = values[[2, 3, 0, 1]], moves[[2, 3, 0, 1]]
    lengths = np.where(moves < 0, -values / moves, np.inf)
    at = np.unravel_index(lengths.argmin(), lengths.shape)
    most = lengths[at]
    ahead = (s + most * ds) @ (alpha + most * da)
    ahead += (xi + most * dx) @ (u + most * du)
    goal = 0.01 * ahead / (2 * m)
    aimed = (goal / (partner[at] + most * turns[at]) - values[at]) / moves[at]
    t = (1 - 1e-8) * min(most, max(aimed, 0.99 * most)) if most <= 1.0 else 1.0
    return [x + t * dx for x, dx in zip(point, changes, strict=True)], t


@pytest.mark.parametrize("seed", range(4))
def test_steps_are_those_of_the_equations(seed):
    """Three steps from the paper's start, by a system that nothing was taken out of."""
    rng = np.random.default_rng(seed)
    X, C = rng.normal(size=(12, 3)), 1.5
    y = np.where(X[:, 0] + rng.normal(size=12) > 0, 1.0, -1.0)
    solver = InteriorPoint(mode="published", reduction=None)
    steps = solver.iterate(Problem(X, y, C), None, TOL)
    next(steps)
    point = [np.zeros(3), np.zeros(1), *np.full((4, 12), 2.0)]
    for _ in range(3):
        point, t = step_by_the_equations(X, y, C, point)
        step = next(steps)
        v, state = step.point()
        found = [v[:3], v[3:], state.alpha, state.u, state.s, state.xi]
        assert step.details["step"] == pytest.approx(t, rel=1e-9)
        for ours, theirs in zip(found, point, strict=True):
            np.testing.assert_allclose(ours, theirs, rtol=1e-7, atol=1e-9)


def test_with_a_tenth_of_the_rows_it_fails_and_damped_steps_mend_it():
    X, y = PROBLEMS["ndc"]()
    options = {"max_active": 0.1, "random_state": 0}
    printed = solve(Problem(X, y), InteriorPoint(mode="published", **options), tol=TOL)
    damped = solve(Problem(X, y), InteriorPoint(mode="damped", **options), tol=TOL)
    assert printed.status == "max_iter"
    assert printed.trace[-1].iteration == 200
    assert damped.status == "solved"
    assert damped.trace[-1].iteration < 60


def test_a_run_goes_on_from_its_row_vectors(tmp_path):
    X, y = PROBLEMS["digits"]()
    solver = InteriorPoint(mode="published")
    whole = solve(Problem(X, y), solver, tol=TOL)
    path = tmp_path / "run.checkpoint"
    first = solve(Problem(X, y), solver, tol=TOL, max_iter=6, checkpoint=path)
    rest = solve(Problem(X, y), solver, tol=TOL, checkpoint=path)
    assert first.status == "max_iter"
    assert rest.trace[0].iteration == 6
    assert rest.trace[-1].iteration == whole.trace[-1].iteration
    assert rest.w == pytest.approx(whole.w, rel=1e-9)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"pcg_steps": 5}, "'pcg_steps' .* None or 0 with mode='published'"),
        ({"pcg_tol": 0.1}, "'pcg_tol' .* 0.01 with mode='published'"),
        ({"normal_matrix": "dual"}, "'normal_matrix' .* with mode='published'"),
    ],
)
def test_options_that_the_paper_has_not_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        InteriorPoint(mode="published", **options)


def test_an_unknown_mode_is_refused():
    with pytest.raises(ValueError, match="'mode' parameter of InteriorPoint"):
        InteriorPoint(mode="paper")


@pytest.mark.parametrize(
    "problem", [{"loss": "squared_hinge"}, {"intercept": "penalized"}]
)
def test_other_problems_are_refused(problem):
    X, y = PROBLEMS["ellipse"]()
    with pytest.raises(ValueError, match="hinge with a free intercept only"):
        solve(Problem(X, y, **problem), InteriorPoint(mode="damped"))


def test_too_many_columns_are_refused():
    X = np.eye(2, 5000)
    with pytest.raises(ValueError, match="at most 4,000 columns"):
        solve(Problem(X, [1, -1]), InteriorPoint(mode="published"))
