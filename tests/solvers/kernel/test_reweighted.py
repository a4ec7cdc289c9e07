"""Safeguarded IRWLS on small problems: against a conic solver and the pair steps."""

import itertools

import clarabel
import numpy as np
import pytest
from scipy import sparse
from sklearn.metrics.pairwise import rbf_kernel, sigmoid_kernel

from tests.cases.pairwise import product
from tests.cases.working_sets import change_of_objective, check_feasible, violation
from tests.conftest import INTERCEPTS, LOSSES, SETTINGS
from widemargin import Kernel, Problem, solve
from widemargin.kernels.packed import aligned, padded
from widemargin.solvers import IRWLS
from widemargin.solvers.kernel import reweighted
from widemargin.solvers.kernel.reweighted import reweighted_steps
from widemargin.solvers.kernel.small_problem import Small, Solved, solve_by_pairs
from widemargin.system.deadline import Deadline, OutOfTime, until

STOP = 1e-8
WEIGHTS = [1e-2, 1.0, 30.0, 1e3]


def data(q=80, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(q, 4))
    return X, np.sign(X[:, 0] + 0.7 * rng.normal(size=q))


def kernels():
    """What a working set may look like: K (q, q) and labels."""
    X, y = data()
    same = np.repeat(X[:20], 4, axis=0)
    apart = np.sign(X[:, 0])
    return {
        "wide rbf": (rbf_kernel(X, gamma=0.05), y),
        "narrow rbf": (rbf_kernel(X, gamma=2.0), y),
        "linear": (X @ X.T, y),
        "separable": (X @ X.T, apart),
        "duplicates": (rbf_kernel(same, gamma=0.2), y),
        "zero": (np.zeros((80, 80)), y),
        "one class": (rbf_kernel(X, gamma=0.2), np.ones(80)),
    }


KERNELS = kernels()


def small_problem(K, y, C, loss, intercept, c=None, dtype=np.float64):
    """The small problem whose other rows have a few of the alpha."""
    q = len(y)
    C = np.broadcast_to(np.asarray(C, float), (q,))
    c = np.zeros(q) if c is None else c
    wide = aligned((q, padded(q)), dtype)
    wide[:] = 0
    wide[:, :q] = K
    K = wide[:, :q].astype(float)
    bound = C if loss == "hinge" else np.full(q, np.inf)
    ridge = np.zeros(q) if loss == "hinge" else 0.5 / C
    shift = float(intercept == "penalized")
    others = 0.2 * np.sin(np.arange(q))
    F = (K + shift) @ c + ridge * c - y + others
    lower, upper = np.where(y > 0, 0.0, -bound), np.where(y > 0, bound, 0.0)
    return Small(wide, c, lower, upper, F, ridge, shift, int(intercept == "free"))


def start(y, C, seed=1):
    """Some c at both bounds, and some between them."""
    rng = np.random.default_rng(seed)
    return y * C * np.clip(rng.uniform(-1.0, 2.0, len(y)), 0.0, 1.0)


def reference(small):
    """The best change of the objective, by Clarabel: in x = c / C."""
    q = len(small.c)
    K = small.K[:, :q].astype(float) + small.shift + np.diag(small.ridge)
    p = small.F - K @ small.c
    hinge = np.isfinite(small.upper - small.lower).all()
    scale = (small.upper - small.lower).max() if hinge else 0.5 / small.ridge.min()
    scale = min(scale, 1.0)
    sign = np.where(small.upper > 0, 1.0, -1.0)
    rows, right, cones = [sparse.diags(-sign)], [np.zeros(q)], 1
    if hinge:
        rows.append(sparse.diags(sign))
        right.append((small.upper - small.lower) / scale)
        cones = 2
    cones = [clarabel.NonnegativeConeT(cones * q)]
    if small.sums:
        rows.append(sparse.csc_matrix(np.ones((1, q))))
        right.append([small.c.sum() / scale])
        cones.append(clarabel.ZeroConeT(1))
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = 1e-11
    A = sparse.vstack(rows).tocsc()
    P = sparse.csc_matrix(np.triu(K) * scale)
    found = clarabel.DefaultSolver(P, p, A, np.concatenate(right), cones, settings)
    x = np.clip(scale * np.array(found.solve().x), small.lower, small.upper)
    return change_of_objective(small, x)


@product(name=KERNELS, loss=LOSSES, intercept=INTERCEPTS, C=WEIGHTS, warm=[False, True])
def test_the_optimum_is_that_of_a_conic_solver(name, loss, intercept, C, warm):
    K, y = KERNELS[name]
    C = C * np.random.default_rng(2).uniform(0.5, 2.0, len(y))
    c = start(y, C) if warm else None
    small = small_problem(K, y, C, loss, intercept, c)
    solved = reweighted_steps(small, STOP)
    check_feasible(small, solved.c)
    ours, best = change_of_objective(small, solved.c), reference(small)
    # Clarabel's point is feasible but for rounding.
    assert ours <= best + 1e-8 * abs(best) + 1e-11
    assert ours <= 0
    assert violation(small, solved.c) <= 1.01 * STOP
    assert solved.steps <= 120


@pytest.mark.cover(2)
@pytest.mark.parametrize(("loss", "intercept"), SETTINGS)
@pytest.mark.parametrize("stop", [1e-1, 1e-3, 1e-6])
def test_no_violation_is_above_what_may_stay(loss, intercept, stop):
    for (K, y), C in itertools.product(KERNELS.values(), WEIGHTS):
        small = small_problem(K, y, C, loss, intercept, dtype=np.float32)
        solved = reweighted_steps(small, stop)
        assert violation(small, solved.c) <= 1.01 * stop
        check_feasible(small, solved.c)


def test_it_agrees_with_the_pair_steps():
    K, y = KERNELS["wide rbf"]
    for loss, C in itertools.product(["hinge", "squared_hinge"], [1e-2, 1.0]):
        small = small_problem(K, y, C, loss, "free", start(y, C))
        ours = change_of_objective(small, reweighted_steps(small, 1e-10).c)
        pairs = change_of_objective(small, solve_by_pairs(small, 1e-10).c)
        assert ours == pytest.approx(pairs, rel=1e-12)


def test_few_passes_are_enough_and_need_no_pair_steps(monkeypatch):
    def refuse(small, stop):
        raise AssertionError("no pair steps are needed")

    monkeypatch.setattr("widemargin.solvers.kernel.reweighted.solve_by_pairs", refuse)
    X, y = data(200)
    for gamma, C in itertools.product([0.1, 1.0], [1.0, 100.0]):
        small = small_problem(rbf_kernel(X, gamma=gamma), y, C, "hinge", "free")
        assert reweighted_steps(small, 1e-4).steps <= 40


def test_many_free_rows_that_the_printed_iteration_does_not_settle():
    """Table 1 creeps where a free alpha is near C, until rounding ends it."""
    for seed, C in itertools.product(range(7), [1.0, 1e3]):
        X, y = data(120, seed)
        small = small_problem(rbf_kernel(X, gamma=0.5), y, C, "hinge", "free")
        solved = reweighted_steps(small, 1e-6)
        assert violation(small, solved.c) <= 1.01e-6
        assert solved.steps <= 60


def test_a_long_set_is_cut_off_at_the_deadline(monkeypatch):
    """It went on to its end: some tens of factorizations."""
    made, factored = [], reweighted.dpotrf
    monkeypatch.setattr(
        reweighted, "dpotrf", lambda *M, **how: made.append(M) or factored(*M, **how)
    )
    small = small_problem(*KERNELS["wide rbf"], 1e3, "hinge", "free")
    with pytest.raises(OutOfTime), until(Deadline(lambda: float(len(made)), 3.0)):
        reweighted_steps(small, 1e-9)
    assert len(made) == 3


def test_without_any_free_row_b_is_not_determined():
    """S1 is empty or nearly so: all rows of the smaller class are at C."""
    X, y = data(200)
    small = small_problem(rbf_kernel(X, gamma=0.1), y, 1e-3, "hinge", "free")
    solved = reweighted_steps(small, 1e-9)
    assert violation(small, solved.c) <= 1e-9
    assert np.count_nonzero((solved.c > small.lower) & (solved.c < small.upper)) <= 2
    assert solved.steps <= 60


def test_a_small_problem_that_is_solved_stays_as_it_is():
    K, y = KERNELS["wide rbf"]
    small = small_problem(K, y, 1.0, "hinge", "free")
    best = reweighted_steps(small, 1e-8).c
    change = best - small.c
    again = small._replace(c=best, F=small.F + small.K[:, : len(y)] @ change)
    solved = reweighted_steps(again, 1e-6)
    assert solved.steps == 0
    np.testing.assert_array_equal(solved.c, best)
    assert solved.c is not best


@pytest.mark.parametrize("rows", [1, 2, 3])
def test_tiny_working_sets(rows):
    K, y = KERNELS["wide rbf"]
    for (loss, intercept), C in itertools.product(SETTINGS, WEIGHTS):
        some = slice(rows)
        small = small_problem(K[some, some], y[some], C, loss, intercept)
        solved = reweighted_steps(small, 1e-6)
        check_feasible(small, solved.c)
        assert violation(small, solved.c) <= 1.01e-6


@pytest.mark.parametrize("intercept", ["free", "penalized", "none"])
def test_a_kernel_that_is_not_positive_definite_ends_no_worse(intercept):
    X, y = data()
    K = sigmoid_kernel(X, gamma=1.0, coef0=-1.0)
    for C in WEIGHTS:
        small = small_problem(K, y, C, "hinge", intercept, start(y, C))
        solved = reweighted_steps(small, 1e-3)
        check_feasible(small, solved.c)
        assert change_of_objective(small, solved.c) <= 0
        assert np.isfinite(solved.c).all()
    assert solved.negative > 0


@pytest.mark.parametrize(("loss", "intercept"), SETTINGS)
@pytest.mark.parametrize("C", [1.0, 100.0])
def test_both_inner_solvers_give_one_answer(loss, intercept, C, binary):
    X, y = binary
    problem = Problem(X, y, C, loss, intercept, kernel=Kernel("rbf", gamma=0.05))
    by_passes = solve(problem, IRWLS(inner="irwls", working_set=128), tol=1e-6)
    by_pairs = solve(problem, IRWLS(inner="pairs", working_set=128), tol=1e-6)
    assert by_passes.status == by_pairs.status == "solved"
    assert by_passes.certificate.primal == pytest.approx(
        by_pairs.certificate.primal, rel=2e-6
    )


def test_an_unknown_inner_solver_is_refused():
    with pytest.raises(ValueError, match="The 'inner' parameter of IRWLS must be one"):
        IRWLS(inner="smo")


@pytest.mark.parametrize("C", [1e3, 1e6, 1e9, 1e12, 1e15])
def test_a_price_far_above_all_of_c(C, monkeypatch):
    """The best c is 4; it begins far below that. Nothing is left to pair steps."""
    monkeypatch.setattr(
        reweighted, "solve_by_pairs", lambda left, _: Solved(left.c, 0, 0)
    )
    X, _ = data(40)
    y = np.sign(X[:, 0] + 0.3 * X[:, 1])
    c = 1e-3 * np.where(y > 0, 1.0 / (y > 0).sum(), -1.0 / (y < 0).sum())
    small = small_problem((X @ X.T + 1.0) ** 3, y, C, "hinge", "free", c)
    solved = reweighted_steps(small, STOP)
    assert violation(small, solved.c) <= STOP
    assert change_of_objective(small, solved.c) < 0
