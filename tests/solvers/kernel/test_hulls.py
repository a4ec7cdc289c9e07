"""Whether hulls meet, by few rows; and what the batch engine does with it."""

import warnings

import numpy as np
import pytest

from widemargin import Kernel, NuSVC, as_rows
from widemargin.problems.nu import nu_problem
from widemargin.solvers.kernel import batch, hulls
from widemargin.system import deadline

RBF = Kernel("rbf", gamma=0.5)


def mixed(m, n=2, seed=0):
    """Rows with labels at random."""
    rng = np.random.default_rng(seed)
    return rng.normal(size=(m, n)), np.where(rng.random(m) < 0.5, 1.0, -1.0)


def looked_for(X, y, C, nu, memory=1 << 30):
    """A common point of both classes, and the least it was asked for."""
    total = 0.5 * nu * C.sum()
    sums = [(np.flatnonzero(y > 0), total), (np.flatnonzero(y < 0), total)]
    enough = 1e-13 * (2.0 * total) ** 2
    values = lambda J: RBF(X[J], X[J])  # noqa: E731
    return hulls.common_point(values, y, C, sums, enough, memory), total, enough


@pytest.mark.parametrize("nu", [0.02, 0.3])
def test_a_common_point_is_feasible_and_of_few_rows(nu):
    X, y = mixed(1200)
    C = np.random.default_rng(1).uniform(0.5, 2.0, 1200)
    C[::7] = 0.0
    c, total, enough = looked_for(X, y, C, nu)
    alpha = y * c
    assert (alpha >= 0.0).all()
    assert (alpha <= C).all()
    assert alpha[y > 0].sum() == pytest.approx(total, rel=1e-12)
    assert alpha[y < 0].sum() == pytest.approx(total, rel=1e-12)
    assert 0.5 * c @ RBF(X, X) @ c <= enough
    assert np.count_nonzero(c) <= 900


def test_nothing_is_found_where_classes_are_apart():
    X, y = mixed(600)
    X[:, 0] = 0.2 * X[:, 0] + 3.0 * y
    assert looked_for(X, y, np.ones(600), 0.1)[0] is None


def test_nothing_is_found_where_bounds_leave_no_room_or_memory_is_short():
    X, y = mixed(600)
    most = 2.0 * min(np.mean(y > 0), np.mean(y < 0))
    assert looked_for(X, y, np.ones(600), most)[0] is None
    assert looked_for(X, y, np.ones(600), 0.1)[0] is not None
    assert looked_for(X, y, np.ones(600), 0.1, memory=10**6)[0] is None


def test_hulls_are_seen_to_meet_that_take_most_rows():
    X, y = mixed(600)
    assert looked_for(X, y, np.ones(600), 0.3)[0] is not None
    assert looked_for(X, y, np.ones(600), 0.4)[0] is not None


@pytest.mark.parametrize("m", [1000, 3000])
def test_mixed_classes_take_few_pair_steps_and_no_other_solver(m):
    X, y = mixed(m)
    with pytest.warns(UserWarning, match="The optimum is zero"):
        found = NuSVC(nu=0.05, gamma=0.5, tol=1e-2).fit(X, y).solution_
    assert (found.solver, found.status) == ("batch", "no_margin")
    assert np.count_nonzero(found.alpha) <= 900
    problem = nu_problem(as_rows(X), y, 1.0, 0.05, kernel=RBF)
    proved = problem.certify(found.alpha, found.w, found.b, tol=1e-2)
    assert proved.relative_gap <= 1e-2
    K = RBF(X, X)
    assert 0.5 * found.w @ K @ found.w <= 1e-2 * problem.scale


@pytest.mark.parametrize("nu", [0.2, 0.5])
def test_rounding_of_many_rows_hides_no_missing_margin(nu):
    # Bounds by sums one after the other would allow for more than the gap.
    X, y = mixed(3000, 10)
    machine = NuSVC(nu=nu, kernel="linear", tol=1e-4)
    with pytest.warns(UserWarning, match="The optimum is zero"):
        found = machine.fit(X, y).solution_
    assert (found.solver, found.status) == ("batch", "no_margin")


@pytest.mark.parametrize("apart", [1e-3, 2e-4, 1e-5])
def test_a_small_margin_is_no_missing_one(apart, monkeypatch):
    """Pair steps are given up where hulls might meet, and float64 goes on."""
    calls, solve_places = [], batch.solve_places

    def noted(*args, **how):
        calls.append({name for name, value in how.items() if value})
        return solve_places(*args, **how)

    monkeypatch.setattr(batch, "solve_places", noted)
    rng = np.random.default_rng(0)
    y = np.where(np.arange(1000) % 2, 1.0, -1.0)
    X = np.column_stack([np.ones(1000), apart * y * (1.0 + rng.random(1000))])
    X = np.column_stack([X, 0.3 * rng.normal(size=(1000, 8))])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = NuSVC(nu=0.1, kernel="linear").fit(X, y).solution_
    assert (found.status, found.rho > 0.0) == ("solved", True)
    assert calls == [{"is_shared"}, {"exactly"}]  # and no more
    # The second column alone separates them: |w| >= N / 2 times twice the least.
    least = 0.5 * (100.0 * apart) ** 2
    assert -found.certificate.dual >= least * (1.0 - 1e-6)


def test_hulls_are_looked_for_in_time(monkeypatch):
    ends = []

    def late(*_):
        ends.append(deadline.current())
        raise deadline.OutOfTime

    monkeypatch.setattr(batch, "common_point", late)
    X, y = mixed(1000)
    machine = NuSVC(nu=0.05, gamma=0.5, tol=1e-2, time_limit=100, solver="batch")
    with pytest.warns(UserWarning, match="The optimum is zero"):
        machine.fit(X, y)
    assert ends
    assert None not in ends
