"""All free rows at once: one factor, bordered by rows that come and leave."""

import numpy as np
import pytest

from widemargin import SVR, Kernel, Problem, solve
from widemargin.problems.regression import regression_problem
from widemargin.solvers import IRWLS
from widemargin.solvers.kernel import free_rows
from widemargin.solvers.kernel.free_rows import FreeRows, System
from widemargin.solvers.kernel.pairs_first import PairsFirst
from widemargin.solvers.kernel.working_set import WorkingSet

RBF, TOL = Kernel("rbf", gamma=0.2), 1e-9
SETS = IRWLS(working_set=64)


@pytest.fixture
def used(monkeypatch):
    """Free rows are many from 64 on; how many rows each step bordered with."""
    counts, factors, cholesky = [], [], free_rows.cholesky
    bordering = System._bordering

    def counted(self, new, held):
        counts.append((len(new), len(held)))
        return bordering(self, new, held)

    def factored(M):
        factors.append(len(M))
        return cholesky(M)

    monkeypatch.setattr(free_rows, "MOST_SIZE", 64)
    monkeypatch.setattr(free_rows, "OF_VISIT", np.inf)
    monkeypatch.setattr(System, "_bordering", counted)
    monkeypatch.setattr(free_rows, "cholesky", factored)
    return counts, factors


def rows(m=400, n=5):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(m, n))
    return X, np.sin(X[:, 0]) + 0.5 * X[:, 1] + 0.3 * rng.normal(size=m)


def made(kind, loss, intercept, epsilon=0.1):
    X, t = rows()
    if kind == "regression":
        return regression_problem(X, t, 5.0, epsilon, loss, intercept, kernel=RBF)
    return Problem(X, np.where(t > 0, 1, -1), 20.0, loss, intercept, kernel=RBF)


@pytest.mark.parametrize("intercept", ["free", "penalized", "none"])
@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
@pytest.mark.parametrize("kind", ["regression", "classes"])
def test_a_factor_ends_it(kind, loss, intercept, used):
    problem = made(kind, loss, intercept)
    solution = solve(problem, SETS, tol=TOL)
    counts, factors = used
    assert solution.status == "solved"
    assert counts
    assert 1 <= len(factors) <= free_rows.TRIES
    assert solution.trace[-1].details["float64"] == 1.0
    exact = solve(problem, IRWLS(inner="irwls"), tol=TOL)
    assert solution.certificate.primal == pytest.approx(
        exact.certificate.primal, rel=4 * TOL
    )


def test_rows_come_and_leave_with_the_same_factor(used, monkeypatch):
    """From far away: some are held at bounds, others join."""
    monkeypatch.setattr(free_rows, "NEAR", 0.5)
    solution = solve(made("regression", "hinge", "free"), SETS, tol=TOL)
    counts, factors = used
    assert solution.status == "solved"
    assert max(new for new, _ in counts) > 0
    assert max(held for _, held in counts) > 0
    assert len(factors) <= free_rows.TRIES


def test_rows_of_a_sample_do_not_join_both(used, monkeypatch):
    """Without a tube both have the same F, and the same row of K."""
    monkeypatch.setattr(free_rows, "NEAR", 0.5)
    problem = made("regression", "hinge", "free", epsilon=0.0)
    solution = solve(problem, SETS, tol=TOL)
    assert solution.status == "solved"
    assert used[0]


def test_of_a_sample_one_row_is_free(used):
    problem = made("regression", "hinge", "free")
    rough = solve(problem, IRWLS(inner="irwls"), tol=1e-3)
    run = WorkingSet(problem, problem.expand(rough.w), PairsFirst(), kinked=True)
    F = np.random.default_rng(0).normal(size=len(run.c))  # any row may want to join
    free = System(run)._free(F)
    assert free.sum() > run.free.sum() > 0
    m = problem.columns.twins
    of_joined = free[:m] & free[m:]
    of_free = run.free[:m] | run.free[m:]
    assert not (of_joined & of_free).any()


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_a_step_stays_within_bounds_and_keeps_the_sum(loss, used):
    problem = made("regression", loss, "free")
    rough = solve(problem, IRWLS(inner="irwls"), tol=1e-3)
    run = WorkingSet(problem, problem.expand(rough.w), PairsFirst(), kinked=True)
    run.refine()
    before, free, gap = run.c.copy(), run.free, run.gap
    c = System(run).solution()
    lower, upper = run.bounds
    assert np.all((lower <= c) & (c <= upper))
    assert c.sum() == pytest.approx(before.sum(), abs=1e-12)
    assert run.move(c)
    assert run.gap < 0.1 * gap
    assert np.ptp(run.look().F[free & run.free]) < 1e-9


@pytest.mark.parametrize(
    ("name", "value"),
    [("MOST_FREE", 100), ("FAR", 1e9), ("NEAR", 0.0), ("OF_VISIT", 0.0)],
)
def test_it_is_left_out(name, value, used, monkeypatch):
    """Where rows are too many, the end is near or far, and pair steps were few."""
    monkeypatch.setattr(free_rows, name, value)
    solution = solve(made("regression", "hinge", "free"), SETS, tol=1e-7)
    assert solution.status == "solved"
    assert not used[1]


@pytest.mark.parametrize(
    ("gap", "tol", "to_come"), [(1e-3, 1e-9, 2.0), (1e-3, 1e-6, 1.0), (1e-2, 1e-8, 3.0)]
)
def test_a_factor_waits_until_it_is_the_least_work(
    gap, tol, to_come, used, monkeypatch
):
    """Visits that led to a gap say how many more lead to tol: a power each."""
    monkeypatch.setattr(free_rows, "OF_VISIT", 20.0)
    problem = made("regression", "hinge", "free")
    rough = solve(problem, IRWLS(inner="irwls"), tol=1e-3)
    pairs = PairsFirst()
    run = WorkingSet(problem, problem.expand(rough.w), pairs, kinked=True)
    factor = np.count_nonzero(run.free) ** 3 / 3.0 / 20.0  # in visits
    rows, begun = FreeRows(run, pairs, tol, False), FreeRows(run, pairs, tol, True)
    pairs.visits = 0.99 * factor / to_come
    assert not rows._is_time(gap)
    assert begun._is_time(gap)  # what led to the start is not known
    pairs.visits = 1.01 * factor / to_come
    assert rows._is_time(gap)


def test_without_room_working_sets_go_on(used, monkeypatch):
    def full(self):
        raise ValueError("no room")

    monkeypatch.setattr(WorkingSet, "refine", full)
    solution = solve(made("regression", "hinge", "free"), SETS, tol=1e-5)
    assert solution.status == "solved"
    assert not used[1]


def test_the_batch_leaves_many_free_rows_to_one_factor():
    """Working sets of the core, of 4,096 rows, would make millions of pair steps."""
    X, t = rows(4700, 12)
    fitted = SVR(C=100.0, gamma=1 / 12, epsilon=0.01, tol=1e-6).fit(X, t)
    free = (np.abs(fitted.dual_coef_) < 100.0).sum()
    assert fitted.status_ == "solved"
    assert free > 4096
    assert fitted.solution_.solver == "irwls"
    assert fitted.solution_.trace[-1].details["inner_steps"] == 0


def test_no_factor_is_begun_that_has_no_time(used, monkeypatch):
    """The run ended there, at once, though working sets had time."""
    monkeypatch.setattr("widemargin.system.deadline.SPEED", 1e-3)
    begun = solve(made("classes", "hinge", "free"), SETS, max_iter=9)
    solution = solve(
        made("classes", "hinge", "free"), SETS, tol=1e-6, start=begun, time_limit=1e6
    )
    assert not used[1]
    assert solution.status == "solved"
