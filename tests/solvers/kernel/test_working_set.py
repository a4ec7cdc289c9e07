"""The working set of the block engine: which rows it holds, and their kernel values."""

import numpy as np
import pytest

from tests.cases.kernels import NAMED, plain
from widemargin import Kernel, Problem, _core, solve
from widemargin.kernels.packed import padded
from widemargin.solvers import IRWLS
from widemargin.solvers.kernel import small_problem, working_set
from widemargin.solvers.kernel.selection import UNSOLVED, Choice, Precision
from widemargin.solvers.kernel.small_problem import Solved, solve_by_pairs
from widemargin.solvers.kernel.working_set import WorkingSet


def run_of(m=300, every=2, mass=None, rounds=False):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(m, 4)), np.where(np.arange(m) % every, 1.0, -1.0)
    form = {} if mass is None else {"intercept": "free", "q": 0.0, "mass": mass}
    problem = Problem(X, y, 1.0, kernel=NAMED["rbf"], **form)
    state = problem.dual_state(0.0)
    problem.repair(state)
    scores = problem.expand(y * state.alpha)
    run = WorkingSet(problem, scores, solve_by_pairs, rounds=rounds)
    return run, plain(NAMED["rbf"], X, X)


@pytest.fixture
def rounded(monkeypatch):
    """A run whose blocks have 16 bits, and K."""
    monkeypatch.setattr(working_set, "FEW_ROWS", 0)
    run, K = run_of(rounds=True)
    run.problem.columns.keep_rounded()
    return run, K


@pytest.mark.parametrize("seed", range(5))
def test_a_block_holds_the_values_of_its_rows_whatever_comes_and_leaves(seed):
    run, K = run_of()
    rng, ages = np.random.default_rng(seed), np.empty(0, np.intp)
    for turn in range(40):
        kept = run.latest(int(rng.integers(0, len(ages) + 1)))
        if turn % 3 and len(ages):  # as many come as leave
            kept = run.latest(len(ages) // 2)
        np.testing.assert_array_equal(kept, ages[len(ages) - len(kept) :])
        others = rng.permutation(np.setdiff1d(np.arange(300), kept))
        count = len(ages) - len(kept) if turn % 3 else int(rng.integers(0, 90))
        new = others[:count]
        block = run._block(kept, new)
        ages = np.concatenate([kept, new])
        q = len(ages)
        np.testing.assert_array_equal(np.sort(run.rows), np.sort(ages))
        np.testing.assert_array_equal(run.latest(q), ages)
        np.testing.assert_allclose(
            block[:, :q], K[np.ix_(run.rows, run.rows)], atol=1e-5
        )
        assert block.shape[1] > padded(q)
        assert not block[:, q:].any()


def test_a_block_in_16_bits_becomes_an_exact_one(rounded):
    run, K = rounded
    for new in (np.arange(100), np.arange(100, 200), np.arange(200, 230)):
        block = run._block(run.latest(60), new)[:, : len(run.rows)]
        assert block.dtype == np.int16
        values = block / _core.BLOCK_STEPS
        expected = K[np.ix_(run.rows, run.rows)]
        np.testing.assert_allclose(values, expected, atol=0.51 / _core.BLOCK_STEPS)
    kept = run.latest(60)
    run.problem.columns.keep_exact()
    block = run._block(kept, np.arange(230, 240))[:, : len(run.rows)]
    np.testing.assert_array_equal(run.rows, [*kept, *range(230, 240)])
    np.testing.assert_allclose(block, K[np.ix_(run.rows, run.rows)], atol=1e-6)


def dtypes_of_sets(run, stops, monkeypatch):
    """Of the blocks of some sets of all rows, each solved as far as it is told."""
    found, small_of = [], run._small

    def seen(K, violations):
        found.append(K.dtype)
        return small_of(K, violations)

    monkeypatch.setattr(run, "_small", seen)
    for stop in stops:
        run.advance(run.look(), run.latest(0), np.arange(300), stop)
    return found


def test_sets_have_16_bits_until_rounding_hides_what_is_asked_for(rounded, monkeypatch):
    run, _ = rounded
    dtypes = dtypes_of_sets(run, [1e-1, 1e-6, 1e-6], monkeypatch)
    assert dtypes == [np.int16, np.int16, np.float32]
    assert run.unsolved == 0
    assert run.look().size <= 2e-6


def test_sets_have_16_bits_until_the_objective_rises(rounded, monkeypatch):
    run, _ = rounded
    far = Solved(np.where(run.problem.signs > 0, 1.0, -1.0), 1, 0)
    monkeypatch.setattr(run, "_inner", lambda small, stop: far)
    # All at their bounds are better than none, and then too many.
    run.scores.values[:] = 10.0 * run.problem.signs
    dtypes = dtypes_of_sets(run, [1e-1, 1e-1], monkeypatch)
    assert dtypes == [np.int16, np.float32]


def test_a_set_that_is_not_solved_is_no_failure_where_it_has_16_bits(
    rounded, monkeypatch
):
    run, _ = rounded
    some = Solved(np.zeros(300), 1, 0, reached=False)
    monkeypatch.setattr(run, "_inner", lambda small, stop: some)
    dtypes = dtypes_of_sets(run, [1e-1, 1e-1], monkeypatch)
    assert dtypes == [np.int16, np.float32]
    assert run.unsolved == 1


def test_only_values_of_new_rows_are_computed():
    run, _ = run_of()
    run._block(run.latest(0), np.arange(100))
    run._block(run.latest(50), np.arange(100, 150))
    assert run.problem.columns.evaluations == 100**2 + 50 * 100
    kept = run.rows.copy()
    np.testing.assert_array_equal(np.sort(kept), np.arange(50, 150))


def test_rows_of_variables_at_a_bound_are_not_kept():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(300, 80)), np.where(rng.random(300) < 0.5, 1.0, -1.0)
    problem = Problem(X, y, 0.6, kernel=Kernel("rbf", gamma=1 / 80))
    run = WorkingSet(problem, problem.expand(np.zeros(300)), solve_by_pairs)
    run.advance(run.look(), run.latest(0), np.arange(200), 1e-3)
    kept = problem.columns.places >= 0
    assert run.free.any()
    assert ((run.c != 0) & ~run.free).any()
    np.testing.assert_array_equal(kept, run.free)


def test_pair_steps_go_on_to_what_is_aimed_at_and_keep_what_they_reached():
    run, _ = run_of()
    found = run.look()
    small = run._small(run._block(run.latest(0), np.arange(300)), found)
    plain_end = solve_by_pairs(small, 0.1)
    end = solve_by_pairs(small._replace(aim=1e-3), 0.1)
    assert plain_end.reached
    assert end.reached
    assert end.steps > plain_end.steps
    left = [small.at(one.c).violations.size for one in (plain_end, end)]
    assert left[1] <= 2e-3 < left[0]
    never = solve_by_pairs(small._replace(aim=0.0), 0.1)
    assert never.reached
    assert never.steps <= plain_end.steps + small_problem.FURTHER * 300


def test_all_rows_stay_where_all_that_violate_have_room():
    run, _ = run_of()
    stays(run)


def test_with_two_sums_each_class_has_half_of_the_room():
    run, _ = run_of(every=6, mass=40.0)
    stays(run, least=1e-6)


def stays(run, least=1e-3):
    """Whether all that violate are in a set that says so, and one does."""
    choose = Choice(run, working_set=200)
    made = []
    for iteration in range(40):
        found = run.look()
        if found.size < least:
            break
        before = run.rows
        kept, new = choose(iteration, found)
        violates = violators(found)
        assert choose.holds_all <= np.isin(violates, np.append(kept, new)).all()
        assert not choose.holds_all or np.array_equal(kept, before)
        assert (choose.aim(found, 1e-2, 1e-4) < np.inf) == choose.holds_all
        assert choose.aim(found, 1e-4, 1e-4) == np.inf
        made.append(choose.holds_all)
        run.advance(found, kept, new, 0.1 * found.size)
    assert made[-1]
    assert not made[0]


def violators(found):
    some = np.zeros(len(found.F), bool)
    for own, (most, least) in zip(found.groups, found.ranges, strict=True):
        some[own] |= (found.rise[own] > least) | (found.fall[own] < most)
    return np.flatnonzero(some)


def test_the_same_scores_are_looked_at_once():
    run, _ = run_of()
    first = run.look()
    assert run.look() is first
    changes = (
        lambda: run.scores.add(np.array([3]), np.array([0.5])),
        lambda: run.scores.scale(0.5),
        lambda: run.scores.focus(np.arange(300) < 200),
        lambda: run.scores.settle(),
        lambda: run.scores.refresh(np.arange(300)),
        lambda: setattr(run, "form", run.form._replace(bound=2.0 * run.form.bound)),
        lambda: setattr(run, "scores", run.problem.expand(run.c)),
    )
    for change in changes:
        before = run.look()
        change()
        assert run.look() is not before
    F = run.scores.values - run.problem.signs
    np.testing.assert_array_equal(run.look().F, F)


@pytest.mark.parametrize(
    ("before", "left_out"), [(0.0, 100), (8.0, 0), (3.0, 100), (1.9, 0)]
)
def test_a_violation_that_fell_much_or_rose_leaves_out_no_more_rows(
    before, left_out, monkeypatch
):
    """Of 300 rows 100 have a margin of 2.1, above 1 by more than half of 2."""
    monkeypatch.setattr(working_set, "FEW_ROWS", 0)
    run, _ = run_of()
    y = run.problem.signs
    run.scores.values[:] = np.where(np.arange(300) < 100, 2.1, 0.0) * y
    found = run.look()
    assert found.size == pytest.approx(2.0)
    monkeypatch.setattr(run.problem.columns, "can_focus", lambda rows: True)
    run._violation = before
    run.focus(found)
    assert run.current == 300 - left_out


def noisy_run():
    """A run that has read rows in 16 bits."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(400, 80)), np.where(rng.random(400) < 0.5, 1.0, -1.0)
    problem = Problem(X, y, 10.0, kernel=Kernel("rbf", gamma=1 / 80))
    problem.columns.keep_rounded()
    run = WorkingSet(problem, problem.expand(np.zeros(400)), solve_by_pairs)
    for part in (np.arange(200), np.arange(200, 400), np.arange(200)):
        run.advance(run.look(), run.latest(0), part, 1e-3)
    return run


def test_scores_are_refreshed_where_rounding_of_kept_rows_hides_an_aim():
    run = noisy_run()
    precision, noise, found = Precision(run), run.scores.noise, run.look()
    assert noise > 0.0
    for aim in (np.inf, 2.0 * noise):
        assert precision.sharpen(aim, found) is found
        assert run.scores.refreshes == 0
    precision.sharpen(0.5 * noise, found)
    assert run.scores.refreshes == 1
    assert run.scores.noise == 0.0
    assert precision.look().size == run.look().size  # which asks for no float64
    assert run.problem.columns.is_rounded


def test_rows_are_exact_before_values_are_of_float64():
    run = noisy_run()
    columns, precision = run.problem.columns, Precision(run)
    run.unsolved = UNSOLVED
    precision.look()
    assert not columns.is_rounded
    assert columns.dtype == np.float32
    precision.look()
    assert columns.dtype == np.float64


@pytest.mark.parametrize("tol", [1e-3, 1e-4, 1e-7])
def test_rows_are_kept_in_16_bits_where_gaps_allow_it(tol):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(1500, 80)), np.where(rng.random(1500) < 0.5, 1.0, -1.0)
    problem = Problem(X, y, 10.0, kernel=Kernel("rbf", gamma=1 / 80))
    solution = solve(problem, IRWLS(working_set=500), tol=tol)
    assert solution.status == "solved"
    proof = problem.certify(solution.alpha, solution.w, solution.b)
    assert proof.relative_gap <= tol
    assert problem.columns.is_rounded == (tol >= 1e-5)
    assert solution.trace[-1].details["float64"] == 0.0
