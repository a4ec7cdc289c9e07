"""Table 1 and section 3 of the paper of IRWLS: their steps, and where they settle."""

import dataclasses
import itertools

import numpy as np
import pytest
from sklearn.metrics.pairwise import rbf_kernel

from tests.cases.working_sets import change_of_objective, check_feasible, violation
from widemargin import Kernel, Problem, solve
from widemargin.kernels.packed import aligned, padded
from widemargin.solvers import IRWLS
from widemargin.solvers.kernel import irwls
from widemargin.solvers.kernel.published_irwls import GUARDED, Table1
from widemargin.solvers.kernel.published_selection import RandomSelection
from widemargin.solvers.kernel.small_problem import Small, solve_by_pairs
from widemargin.solvers.kernel.violations import violations

SEEDS = range(6)
EPS = 1e-3  # what the paper takes for its eps
PRINTED = Table1(max_passes=100)
PRODUCTS = Table1(max_passes=100, products=True)


def data(seed, rows=120):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(rows, 4))
    return X, np.sign(X[:, 0] + 0.7 * rng.normal(size=rows))


def working_set(seed, C, others=0.0, total=0.0, rows=120):
    """The small problem at c of this sum, where other rows add to the scores."""
    X, y = data(seed, rows)
    K = aligned((rows, padded(rows)), np.float64)
    K[:] = 0
    K[:, :rows] = rbf_kernel(X, gamma=0.5)
    lower, upper = np.where(y > 0, 0.0, -C), np.where(y > 0, C, 0.0)
    c = np.where(y > 0, total / max(np.count_nonzero(y > 0), 1), 0.0)
    F = K[:, :rows] @ c - y + others * np.sin(np.arange(rows))
    return Small(K, c, lower, upper, F, np.zeros(rows), 0.0, 1)


def parts(small):
    """H, y, C and G_in of Table 1."""
    q = len(small.c)
    y = np.where(small.upper > 0, 1.0, -1.0)
    K = small.K[:, :q]
    return (
        y[:, None] * K * y,
        y,
        small.upper - small.lower,
        1 + y * (small.F - K @ small.c),
    )


# -- Table 1 ---------------------------------------------------------------------------


def test_the_first_pass_solves_the_system_with_weights_one():
    """Steps 0 and 1: all rows are in S1, a = 1, G_13 = G_in and G_b3 = G_bin."""
    small = working_set(0, 1.0, others=0.2, total=3.0)
    H, y, _, G_in = parts(small)
    found = next(PRINTED.passes(small))
    left = H @ found.beta + found.beta + y * found.b
    np.testing.assert_allclose(left, 1.0 - G_in, atol=1e-12)
    assert y @ found.beta == pytest.approx(small.c.sum(), abs=1e-12)


@pytest.mark.parametrize("solver", [PRINTED, GUARDED, PRODUCTS])
def test_every_pass_keeps_the_sets_the_weights_and_the_errors(solver):
    """Steps 1 to 4: S2 at 0, S3 at C, beta = a u in S1, e that of beta and b."""
    small = working_set(1, 10.0, others=0.2)
    H, y, C, G_in = parts(small)
    passes = list(itertools.islice(solver.passes(small), 12))
    for last, now in itertools.pairwise(passes):
        assert np.all(now.beta[last.group == 2] == 0)
        np.testing.assert_array_equal(now.beta[last.group == 3], C[last.group == 3])
        assert y @ now.beta == pytest.approx(small.c.sum(), abs=1e-9)
        u = 1.0 - G_in - H @ now.beta - y * now.b
        np.testing.assert_allclose(now.u, u, atol=1e-9)
        S1 = last.group == 1
        d = np.maximum(last.u[S1], 1.0 / solver.sharpest) / C[S1]  # 1 / a, (8)
        np.testing.assert_allclose(d * now.beta[S1], u[S1], atol=1e-9)


def test_rows_change_sets_as_in_step_4():
    C = np.full(6, 2.0)
    group = np.array([3, 3, 1, 1, 2, 2], np.int8)
    beta = np.array([2.0, 2.0, 2.0, 1.0, 0.0, 0.0])
    u = np.array([-0.1, 0.1, 0.1, -0.1, 0.1, -0.1])
    # (4a) then nothing; stays; (4b); (4c); (4d); stays.
    assert PRINTED._reordered(group, beta, u, C).tolist() == [2, 3, 3, 2, 1, 2]


def test_the_guard_takes_one_percent_for_equal():
    C, u = np.full(4, 2.0), np.full(4, 0.1)
    beta = 2.0 * np.array([0.989, 0.991, 1.009, 1.011])
    group = np.ones(4, np.int8)
    assert GUARDED._reordered(group, beta, u, C).tolist() == [1, 3, 3, 1]
    assert PRINTED._reordered(group, beta, u, C).tolist() == [1, 1, 1, 1]


@pytest.mark.parametrize("others", [0.0, 0.2])
@pytest.mark.parametrize(("C", "total"), [(0.1, 0.0), (0.1, 1.0), (1e3, 3.0)])
def test_where_passes_settle_the_optimum_is_that_of_pair_steps(C, total, others):
    small = working_set(0, C, others, total)
    solved, best = GUARDED(small, 1e-3), solve_by_pairs(small, 1e-10)
    assert solved.reached
    check_feasible(small, solved.c)
    assert violation(small, solved.c) <= 1e-3
    ours, theirs = (change_of_objective(small, s.c) for s in (solved, best))
    # The objective is convex: no more can be missing than the violation allows.
    missing = 1e-3 * 0.5 * np.abs(solved.c - best.c).sum()
    assert theirs - 1e-9 * abs(theirs) <= ours <= theirs + missing


def test_as_printed_rounding_ends_what_settles_in_exact_errors():
    """C = 1000: e of a free row is below the rounding of step 2, and so is its sign."""
    printed = [PRINTED(working_set(seed, 1e3), 1e-3) for seed in SEEDS]
    products = [PRODUCTS(working_set(seed, 1e3), 1e-3) for seed in SEEDS]
    guarded = [GUARDED(working_set(seed, 1e3), 1e-3) for seed in SEEDS]
    assert sum(s.reached for s in printed) <= 3
    assert all(s.reached for s in products)
    assert all(s.reached for s in guarded)
    assert max(s.steps for s in guarded) <= 50


@pytest.mark.parametrize("C", [1.0, 1e3])
def test_what_does_not_settle_is_no_worse_than_the_start_and_says_so(C):
    for seed in SEEDS[:4]:
        small = working_set(seed, C)
        solved = PRINTED(small, 1e-6)
        check_feasible(small, solved.c)
        assert change_of_objective(small, solved.c) <= 0
        assert solved.reached == (violation(small, solved.c) <= 1e-6)


def test_without_rows_in_S1_the_system_is_singular_and_passes_end():
    """Both rows come within 1 % of C, and then b is not determined."""
    K, y, C = np.eye(2), np.array([1.0, -1.0]), np.full(2, 0.1)
    zero = np.zeros(2)
    small = Small(K, zero, np.minimum(y * C, 0), np.maximum(y * C, 0), -y, zero, 0.0, 1)
    *_, last = GUARDED.passes(small)
    assert last.group.tolist() == [3, 3]
    solved = GUARDED(small, 1e-6)
    assert solved.reached
    np.testing.assert_array_equal(solved.c, y * C)


# -- under the driver ------------------------------------------------------------------


def problem(seed, C, rows=120, **options):
    X, y = data(seed, rows)
    return Problem(X, y, C, kernel=Kernel("rbf", gamma=0.5), **options)


@pytest.mark.parametrize("inner", ["published", "guarded"])
def test_in_chunks_it_reaches_the_gap(inner):
    solver = IRWLS(inner=inner, selection="random", carry=0, working_set=40)
    solution = solve(problem(0, 1.0, rows=600), solver, tol=1e-3)
    assert solution.status == "solved", solution
    assert solution.certificate.relative_gap <= 1e-3
    best = solve(problem(0, 1.0, rows=600), "irwls", tol=1e-8)
    assert solution.certificate.dual <= best.certificate.primal
    assert solution.certificate.primal >= best.certificate.dual


def test_a_run_that_fails_ends_as_stalled_with_the_gap_that_it_has(monkeypatch):
    monkeypatch.setitem(irwls.INNER, "published", lambda: PRINTED)
    failed = 0
    for seed in SEEDS[:3]:
        here = problem(seed, 1e3)
        solution = solve(here, IRWLS(inner="published"), tol=1e-6)
        gap = here.certify(solution.alpha, solution.w, solution.b).relative_gap
        assert solution.certificate.relative_gap == pytest.approx(gap, rel=1e-3)
        assert (solution.status == "solved") == (gap <= 1e-6)
        if solution.status != "solved":
            failed += 1
            assert solution.status in ("stalled", "almost_solved")
            assert solution.trace[-1].details["unsolved"] > 0
    assert failed >= 2


@pytest.mark.parametrize("inner", ["published", "guarded"])
@pytest.mark.parametrize(
    ("loss", "intercept"), [("squared_hinge", "free"), ("hinge", "penalized")]
)
def test_other_problems_are_refused(inner, loss, intercept):
    other = problem(0, 1.0, loss=loss, intercept=intercept)
    with pytest.raises(ValueError, match="solves the hinge with a free intercept only"):
        solve(other, IRWLS(inner=inner))


# -- section 3 -------------------------------------------------------------------------


def state(C=1.0):
    """Rows of both classes that break each condition, keep it, or lie within eps.

    Some break it by no more than twice the paper's eps, some keep it by half of that.

    u of the rows, with b = 0: -y F. The least and the largest -F are -1 and 1.
    """
    rows = [
        # (y, beta, u)
        *[(y, 0.0, u) for y in (1, -1) for u in (0.5, 2e-3, 5e-4, -0.5, -0.01)],
        *[(y, C, u) for y in (1, -1) for u in (-0.5, -2e-3, -5e-4, 0.5, 0.01)],
        *[(y, 0.5 * C, u) for y in (1, -1) for u in (1.0, -2e-3, 5e-4)],
    ]
    y, beta, u = np.array(rows, float).T
    lower, upper = np.where(y > 0, 0.0, -C), np.where(y > 0, C, 0.0)
    found = violations(-y * u, y * beta, lower, upper, 1)
    free = (beta > 0) & (beta < C)
    return y, beta, u, found, free


NONE = np.empty(0, np.intp)


def broken(y, beta, u, free):
    """For each condition and class the rows that break it."""
    zero, full = beta == 0, (beta > 0) & ~free
    kinds = zero & (u >= EPS), full & (u <= -EPS), free & (abs(u) >= EPS)
    return [kind & (y == own) for kind in kinds for own in (1, -1)]


def test_six_seeds_one_for_each_condition_and_class():
    """Step 3. Any other choice would miss one in some of these draws.

    Which row of a kind it is varies from draw to draw: each one that breaks its
    condition is drawn in some of them.
    """
    y, beta, u, found, free = state()
    assert found.intercept == 0.0
    kinds, drawn = broken(y, beta, u, free), np.zeros(len(y), int)
    for seed in range(50):
        some = RandomSelection(y, seed)(found, free, 6, NONE)
        assert [np.count_nonzero(kind[some]) for kind in kinds] == [1] * 6
        drawn[some] += 1
    assert [np.count_nonzero(kind) for kind in kinds] == [2] * 6
    assert np.all(drawn[np.logical_or.reduce(kinds)] > 10)  # 25 on average


def test_one_generator_serves_all_working_sets():
    """Later draws of a run differ from its first one."""
    y, _, _, found, free = state()
    select = RandomSelection(y, 0)
    assert len({tuple(sorted(select(found, free, 6, NONE))) for _ in range(20)}) > 10


def test_candidates_violate_by_eps_or_are_free():
    """Step 1: a row within eps of b is none, unless it is free."""
    y, beta, u, found, free = state()
    candidates = np.logical_or.reduce(broken(y, beta, u, free)) | free
    drawn = np.zeros(len(y), int)
    for seed in range(200):
        some = RandomSelection(y, seed)(found, free, 9, NONE)
        assert len(set(some)) == 9
        drawn[some] += 1
    assert np.all(drawn[~candidates] == 0)
    assert np.all(drawn[candidates] > 0)
    assert np.all(drawn[free & (abs(u) < EPS)] > 0)


def test_too_few_candidates_are_filled_up_by_the_least_errors():
    """Steps 2 and 5."""
    y, beta, u, found, free = state()
    candidates = np.logical_or.reduce(broken(y, beta, u, free)) | free
    count = np.count_nonzero(candidates) + 5
    some = RandomSelection(y, 0)(found, free, count, NONE)
    assert len(set(some)) == count
    assert np.all(np.isin(np.flatnonzero(candidates), some))
    rest = np.setdiff1d(some, np.flatnonzero(candidates))
    least = np.sort(abs(u[~candidates]))[:5]
    np.testing.assert_array_equal(np.sort(abs(u[rest])), least)


def test_rows_that_stay_are_not_chosen_again():
    y, _, _, found, free = state()
    kept = np.arange(0, len(y), 2)
    for count in (4, 10):
        some = RandomSelection(y, 0)(found, free, count, kept)
        assert len(some) == count
        assert not np.isin(some, kept).any()


def test_near_the_end_eps_is_less_than_the_papers():
    """We stop by the gap: rows of both sides violate as long as any two do."""
    y, _, _, found, free = state()
    near = dataclasses.replace(
        found, F=1e-6 * found.F, rise=1e-6 * found.rise, fall=1e-6 * found.fall
    )
    for seed in range(20):
        some = RandomSelection(y, seed)(near, free, 6, NONE)
        assert near.rise[some].max() > near.fall[some].min()


@pytest.mark.one_of(2)
@pytest.mark.parametrize("inner", ["pairs", "published"])
def test_the_seed_is_the_users(inner):
    def sets(random_state):
        solver = IRWLS(
            inner=inner,
            selection="random",
            carry=0,
            working_set=30,
            random_state=random_state,
        )
        here = problem(0, 1.0, rows=200)  # what one keeps of K changes the rounding
        return [step.primal for step in solve(here, solver, tol=1e-3).trace]

    first = sets(0)
    assert first == sets(0) == sets(None)
    assert first != sets(1)
