"""ALM-Newton: its sweeps, its bands, and its matrices."""

import _thread
import tracemalloc

import numpy as np
import pytest
from scipy import sparse

from tests.cases.pairwise import product
from tests.cases.problems import ndc
from tests.cases.reference import objective, reference_objective
from tests.conftest import PROBLEMS, STORAGES
from widemargin import LinearSVC, Problem, as_rows, solve
from widemargin.data import kept
from widemargin.solvers import AugmentedLagrangian
from widemargin.solvers.linear import augmented_lagrangian
from widemargin.solvers.linear import newton as penalty

INTERCEPTS = ["free", "penalized", "none"]


def tall(m=16_000, n=3, seed=0):
    """Enough rows for a sample."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(m, n))
    return X, np.sign(X @ np.ones(n) + 0.5 * rng.normal(size=m))


def text(m=3000, n=2500, seed=0):
    """Sparse and wide; more rows between their bounds than columns of a dense matrix."""
    rng = np.random.default_rng(seed)
    X = sparse.random_array((m, n), density=0.01, format="csr", rng=rng)
    w = rng.normal(size=n)
    return X, np.sign(X @ w + 0.1 * rng.normal(size=m))


@pytest.mark.parametrize("intercept", INTERCEPTS)
@pytest.mark.parametrize("C", [0.01, 1.0, 100.0])
def test_bands_change_the_way_and_not_the_answer(intercept, C):
    problem = Problem(*tall(), C, intercept=intercept)
    whole = solve(problem, AugmentedLagrangian(reduction=None), tol=1e-9)
    band = solve(problem, AugmentedLagrangian(), tol=1e-9)
    assert whole.status == band.status == "solved"
    assert band.certificate.primal == pytest.approx(whole.certificate.primal, rel=2e-9)
    rows = band.trace.column("rows")
    assert rows[0] == 4000  # a sample, then bands, then all rows
    marked = band.trace.column("unseen") == 1.0
    assert marked.sum() == 1
    assert (rows[: np.argmax(marked) + 1] == 4000).all()
    assert rows.min() < 4000
    full = np.count_nonzero(rows == problem.rows.shape[0])
    assert full < 0.5 * len(whole.trace)
    assert set(whole.trace.column("rows")) == {problem.rows.shape[0]}


def test_a_newton_step_is_one_sweep():
    X, y = PROBLEMS["ndc"]()
    trace = solve(Problem(X, y), AugmentedLagrangian(reduction=None), tol=1e-8).trace
    sweeps = np.diff(trace.column("sweeps"))
    assert np.all((sweeps == 1) | (sweeps == 2))  # two after a line search
    assert np.mean(sweeps == 1) > 0.7


def test_bounds_of_every_step_hold():
    X, y = PROBLEMS["ndc"]()
    best = reference_objective(X, y, 1.0, "hinge", "free")
    trace = solve(Problem(X, y), AugmentedLagrangian(), tol=1e-8).trace
    assert np.all(trace.column("best_primal") >= best * (1 - 1e-9))
    assert np.all(trace.column("best_dual") <= best * (1 + 1e-9))
    assert trace.column("best_gap")[-1] <= 1e-8


@pytest.fixture(scope="module")
def of_integers():
    """Data of numbers that every storage holds, and their solution."""
    X, y = ndc(2500, 6)
    X = np.round(20.0 * np.abs(X))
    return X, y, solve(Problem(X, y, 1e-3), AugmentedLagrangian(), tol=1e-7)


@pytest.mark.one_of(7)
@pytest.mark.parametrize("storage", STORAGES, ids=lambda s: s.name)
def test_all_storages_give_the_same_iterates(storage, of_integers):
    X, y, expected = of_integers
    problem = Problem(storage.make(X.copy()), y, 1e-3)
    found = solve(problem, AugmentedLagrangian(), tol=1e-7)
    assert found.status == "solved"
    head = slice(0, 8)  # later, rounding decides how many steps are taken
    for name in ("primal", "dual", "active"):
        np.testing.assert_allclose(
            found.trace.column(name)[head], expected.trace.column(name)[head], rtol=1e-6
        )
    assert found.certificate.primal == pytest.approx(
        expected.certificate.primal, rel=2e-7
    )


def test_blocks_and_threads_do_not_change_the_bits(n_jobs):
    X, y = tall()
    one = solve(Problem(as_rows(X, n_jobs=1), y), AugmentedLagrangian(), tol=1e-8)
    two = solve(Problem(as_rows(X, n_jobs=n_jobs), y), AugmentedLagrangian(), tol=1e-8)
    np.testing.assert_array_equal(one.w, two.w)
    np.testing.assert_array_equal(one.alpha, two.alpha)


def test_weights_are_repetitions():
    rng = np.random.default_rng(1)
    X, y = ndc(2100, 5)
    times = rng.integers(0, 4, len(y))
    solver = AugmentedLagrangian(reduction=None)
    weighted = solve(Problem(X, y, 0.7 * times), solver, tol=1e-9)
    repeated = Problem(np.repeat(X, times, axis=0), np.repeat(y, times), 0.7)
    again = solve(repeated, solver, tol=1e-9)
    k = min(len(weighted.trace), len(again.trace), 15)
    np.testing.assert_allclose(
        weighted.trace.column("primal")[:k], again.trace.column("primal")[:k], rtol=1e-8
    )
    np.testing.assert_allclose(weighted.w, again.w, rtol=1e-4)


@pytest.mark.parametrize("dtype", [np.float32, np.uint8])
def test_the_band_keeps_the_type_of_the_data(dtype, monkeypatch):
    types = []
    take = kept.as_rows
    monkeypatch.setattr(
        kept,
        "as_rows",
        lambda X, **options: types.append(X.dtype) or take(X, **options),
    )
    X, y = tall()
    X = np.clip(40 * X + 128, 0, 255).astype(dtype)
    solution = solve(Problem(X, y, 1e-3), AugmentedLagrangian(), tol=1e-6)
    assert solution.status == "solved"
    assert types
    assert set(types) == {np.dtype(dtype)}


# -- bands that fail -------------------------------------------------------------------


@pytest.mark.parametrize("share", [0.001, 0.01])
def test_bands_that_are_too_narrow_are_taken_back(share, monkeypatch):
    monkeypatch.setattr(augmented_lagrangian, "BAND_SHARE", share)
    monkeypatch.setattr(augmented_lagrangian, "BAND_GAP", 1e3)
    X, y = ndc(5000, 10)
    for C in (0.01, 100.0):
        problem = Problem(X, y, C)
        solution = solve(problem, AugmentedLagrangian(), tol=1e-8)
        assert solution.status == "solved"
        reference = reference_objective(X, y, C)
        assert solution.certificate.primal <= reference * (1 + 1e-7)


def test_a_sample_of_one_class_is_no_start():
    X, y = tall()
    y[:] = -1.0
    y[1] = 1.0  # the sample takes every fourth row
    solution = solve(Problem(X, y), AugmentedLagrangian(), tol=1e-6)
    assert solution.status == "solved"
    assert solution.trace.column("rows")[0] == len(y)


# -- matrices --------------------------------------------------------------------------


@product(intercept=INTERCEPTS, C=[0.01, 1.0, 100.0], order=[20, 200, 1500])
def test_wide_rows_need_no_matrix_of_the_columns(intercept, C, order, monkeypatch):
    """Through a matrix of the rows, or conjugate gradients where they are many."""
    monkeypatch.setattr(penalty, "DENSE_ORDER", order)
    X, y = text(600, 400)
    problem = Problem(X, y, C, intercept=intercept)
    solution = solve(problem, AugmentedLagrangian(), tol=1e-8)
    assert solution.status == "solved"
    reference = reference_objective(X.toarray(), y, C, "hinge", intercept)
    assert solution.certificate.primal <= reference * (1 + 1e-7)


@pytest.mark.parametrize("intercept", ["free", "penalized", "none"])
@pytest.mark.parametrize("sparse_rows", [False, True])
def test_the_hessian_is_kept_up_to_date(intercept, sparse_rows, monkeypatch):
    """A'D A by the rows that have changed is that of all rows, through refreshes too."""
    monkeypatch.setattr(penalty, "EAGER_ORDER", 0)
    monkeypatch.setattr(penalty, "MOST_UPDATES", 4)
    updates, made, hessian = [], [], penalty.Piece._hessian

    def checked(piece, point, s):
        found = hessian(piece, point, s)
        state = piece.state
        d = state.C * ((state.alpha > 0) & (state.alpha < state.C))
        rows = piece.A.take(np.arange(piece.A.shape[0]))
        rows = rows.toarray() if sparse_rows else rows
        expected = rows.T @ (d[:, np.newaxis] * rows)
        np.testing.assert_allclose(found, expected, atol=1e-12 * np.abs(expected).max())
        updates.append(piece._updates)
        made.append(np.count_nonzero(d) == point.active)
        return found

    monkeypatch.setattr(penalty.Piece, "_hessian", checked)
    X, y = tall(2500, 20)
    C = np.random.default_rng(1).uniform(0.5, 2.0, len(y))
    problem = Problem(
        as_rows(sparse.csr_array(X) if sparse_rows else X), y, C, "hinge", intercept
    )
    assert solve(problem, AugmentedLagrangian(), tol=1e-8).status == "solved"
    assert all(made)
    assert {0, 1, 2, 3, 4} >= set(updates) > {0, 1}


@pytest.mark.parametrize("scale", [0.0, 1e-170, 1e-5])
def test_many_columns_of_almost_nothing(scale):
    rng = np.random.default_rng(0)
    X, y = scale * rng.normal(size=(60, 600)), np.sign(rng.normal(size=60))
    solution = solve(Problem(X, y, 1.0, "hinge", "none"), AugmentedLagrangian())
    assert solution.status == "solved"


def test_memory_beside_the_data():
    """At most 15 vectors of length m, beside the band and the sample of the rows."""
    m, n = 200_000, 16  # blocks are small beside m
    X, y = ndc(m, n)
    shares = []

    def callback(step):
        if step.details["rows"] < m:
            shares.append(step.details["rows"] / m)

    LinearSVC(loss="hinge", intercept="penalized").fit(X[:5000], y[:5000])
    tracemalloc.start()
    LinearSVC(loss="hinge", intercept="penalized", tol=1e-6, callback=callback).fit(
        X, y
    )
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    # A row of a band has n entries, twice while it is made, and ten numbers beside.
    assert peak / (8 * m) <= 15 + (2 * n + 10) * max(shares)


def test_large_wide_rows():
    X, y = text()
    solution = solve(Problem(X, y, 10.0), AugmentedLagrangian(), tol=1e-6)
    assert solution.status == "solved"
    assert solution.trace.column("active").max() > penalty.DENSE_ORDER


def test_no_row_between_its_bounds():
    X, y = np.array([[5.0], [-5.0]]), np.array([1.0, -1.0])
    for intercept in INTERCEPTS:
        solution = solve(
            Problem(X, y, 1e-4, intercept=intercept), "augmented_lagrangian", tol=1e-9
        )
        assert solution.status == "solved"
        expected = objective(X, y, 1e-4, "hinge", intercept, solution.w, solution.b)
        assert solution.certificate.primal == pytest.approx(expected)


# -- the driver ------------------------------------------------------------------------


def test_the_squared_hinge_is_refused():
    X, y = PROBLEMS["digits"]()
    with pytest.raises(ValueError, match="solves the hinge loss only"):
        solve(Problem(X, y, loss="squared_hinge"), "augmented_lagrangian")
    with pytest.raises(
        ValueError, match="'reduction' parameter of AugmentedLagrangian"
    ):
        AugmentedLagrangian(reduction="omega")


def test_a_start_helps_and_is_never_made_worse():
    X, y = ndc(6000, 8)
    first = solve(Problem(X, y, 1.0), AugmentedLagrangian(), tol=1e-8)
    problem = Problem(X, y, 1.3)
    cold = solve(problem, AugmentedLagrangian(), tol=1e-8)
    warm = solve(problem, AugmentedLagrangian(), tol=1e-8, start=first)
    assert warm.status == "solved"
    assert warm.trace[-1].sweeps < cold.trace[-1].sweeps
    stopped = solve(problem, AugmentedLagrangian(), tol=1e-8, start=first, max_iter=1)
    start = problem.certify(first.alpha, first.w, first.b)
    assert stopped.certificate.primal <= start.primal * (1 + 1e-12)


@pytest.mark.parametrize("iteration", [0, 5, 30])
def test_a_callback_stops_it_anywhere(iteration):
    problem = Problem(*tall())
    solution = solve(
        problem,
        AugmentedLagrangian(),
        tol=1e-10,
        callback=lambda step: step.iteration >= iteration,
    )
    assert solution.status == "stopped_by_callback"
    assert solution.trace[-1].iteration == iteration
    assert solution.certificate.primal <= problem.zero_objective


@pytest.mark.parametrize("gap", [2.0, 0.5], ids=["sample", "band"])
def test_ctrl_c_inside_keeps_the_best(gap):
    X, y = tall()
    pressed = []

    def press(step):
        inside = step.details["rows"] < len(y) and step.best_gap < gap
        if inside and not pressed:
            pressed.append(step)
            _thread.interrupt_main()

    problem = Problem(X, y)
    solution = solve(problem, AugmentedLagrangian(), tol=1e-12, callback=press)
    assert solution.status == "interrupted"
    assert len(solution.trace) <= pressed[0].iteration + 2
    assert solution.certificate.primal <= problem.zero_objective


def test_classes_share_the_threads(iris):
    X, y = iris
    clf = LinearSVC(loss="hinge", solver="augmented_lagrangian", tol=1e-8).fit(X, y)
    assert clf.status_ == "solved"
    assert clf.score(X, y) > 0.9
