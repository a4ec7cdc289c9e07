"""Dual coordinate descent: its epochs against NumPy, and what the driver asks of it."""

import _thread
import itertools

import numpy as np
import pytest
from scipy import sparse

from tests.cases.pairwise import product
from tests.cases.reference import objective, reference_objective
from tests.conftest import PROBLEMS, STORAGES, csr
from widemargin import LinearSVC, Problem, _core, as_rows, solve
from widemargin.data.blocks import Blocks
from widemargin.data.memory import MemoryRows
from widemargin.numerics import linalg
from widemargin.problems.regression import regression_problem
from widemargin.solvers import CoordinateDescent
from widemargin.solvers.linear import coordinate_descent, finish
from widemargin.solvers.linear import descent as variables
from widemargin.solvers.linear.descent_by_sweeps import DescentBySweeps

TOL = 1e-8
LOSSES = ["hinge", "squared_hinge"]
INTERCEPTS = ["free", "penalized", "none"]


# -- epochs ----------------------------------------------------------------------------


class Numbers:
    """Splitmix64, and numbers 0 .. count - 1 of it."""

    def __init__(self, seed):
        self.state = seed

    def draw(self, count):
        mask = 2**64 - 1
        self.state = (self.state + 0x9E3779B97F4A7C15) & mask
        x = self.state
        x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & mask
        x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & mask
        return ((x ^ (x >> 31)) >> 32) * count >> 32


class Plain:
    """Coordinate descent as its page says it, one row after the other."""

    def __init__(self, X, y, C, loss, intercept, seed, shrinking=True, b=0.0):
        self.step = np.ones(X.shape[1] + (intercept != "none"))  # of v, by its gradient
        if intercept == "free":
            share = np.maximum(0.3 * np.mean(np.sum(X * X, axis=1)), 4.0 / np.sum(C))
            self.step[-1] = share
        X = np.c_[X, np.ones(len(y))] if intercept != "none" else X
        self.Z = y[:, np.newaxis] * X
        hinge = loss == "hinge"
        self.U = np.broadcast_to(C if hinge else np.inf, len(y))
        self.D = np.zeros(len(y)) if hinge else 0.5 / np.broadcast_to(C, len(y))
        self.q = np.sum(self.step * self.Z**2, axis=1) + self.D
        self.alpha, self.v = np.zeros(len(y)), np.zeros(X.shape[1])
        self.v[-1] = b
        self.A, self.left_out = list(range(len(y))), []
        self.up, self.lo = np.inf, -np.inf
        self.shrinking, self.numbers = shrinking, Numbers(seed)

    def epoch(self, goal):
        A, size, self.gap = self.A, len(self.A), 0.0
        for s in range(size):
            t = s + self.numbers.draw(size - s)
            A[s], A[t] = A[t], A[s]
        spread, kept = [-np.inf, np.inf], 0
        for s in range(size):
            if self.visit(A[s], spread):
                A[kept], A[s] = A[s], A[kept]
                kept += 1
        self.A, self.left_out = A[:kept], A[kept:] + self.left_out
        largest, smallest = spread
        if size == len(self.q):
            self.first = self.gap
        ended = self.gap <= max(0.01 * self.first, 0.3 * goal) or kept == 0
        if ended:
            self.A, self.left_out = self.A + self.left_out, []
        if self.shrinking:
            factor = 100.0 if ended else 1.0
            self.up = factor * largest if largest > 0 else np.inf
            self.lo = factor * smallest if smallest < 0 else -np.inf

    def pair(self, i, t):
        """What row i adds to P - D where its loss is L(t)."""
        xi, alpha = max(t, 0.0), self.alpha[i]
        if self.D[i] == 0.0:
            return self.U[i] * xi - alpha * t
        return (xi * xi + alpha * alpha * self.D[i] ** 2) / (2 * self.D[i]) - alpha * t

    def visit(self, i, spread):
        G = self.Z[i] @ self.v - 1.0 + self.D[i] * self.alpha[i]
        projected = G
        if self.alpha[i] == 0.0:
            if self.up < G:
                return False
            projected = min(G, 0.0)
        elif self.alpha[i] == self.U[i]:
            if self.lo > G:
                return False
            projected = max(G, 0.0)
        self.gap += self.pair(i, 1.0 - self.Z[i] @ self.v)
        spread[:] = max(spread[0], projected), min(spread[1], projected)
        if abs(projected) > 1e-15:
            new = self.U[i]
            if self.q[i] > 0.0:
                new = np.clip(self.alpha[i] - G / self.q[i], 0.0, self.U[i])
            self.v = self.v + (new - self.alpha[i]) * self.step * self.Z[i]
            self.alpha[i] = new
        return True


def with_types(dtype, index):
    def make(X):
        rows = sparse.csr_array(X.astype(dtype))
        indices, indptr = rows.indices.astype(index), rows.indptr.astype(index)
        return csr(rows, indices=indices, indptr=indptr)

    return make


MATRICES = {
    **{
        f"dense {dtype}": lambda X, dtype=dtype: X.astype(dtype)
        for dtype in ("float64", "float32", "int16", "uint8")
    },
    **{
        f"csr {dtype} {index}": with_types(dtype, index)
        for dtype in ("float32", "float64")
        for index in ("int32", "int64")
    },
}


def whole_numbers(m, n, seed=0):
    """Small counts, a third of them zero, with some rows of zeros; and noisy labels."""
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 3, (m, n)).astype(float)
    X[::17] = 0.0
    return X, np.sign(X[:, 0] - 1.0 + 0.7 * rng.normal(size=m))


def descent_of(problem, **options):
    solver = CoordinateDescent(**options)
    return variables.DescentHere(solver, problem, problem.dual_state(0.0))


@product(
    simd=_core.simd_levels(),
    kind=MATRICES,
    loss=LOSSES,
    wide=[(5, "penalized"), (77, "none"), (9, "free")],
    shrinking=[True, False],
)
def test_epochs_are_those_of_plain_numpy(kind, loss, wide, shrinking, simd):
    n, intercept = wide
    X, y = whole_numbers(150, n)
    C = np.random.default_rng(1).uniform(0.01, 0.2, len(y))
    problem = Problem(MATRICES[kind](X), y, C, loss, intercept)
    b = -0.5 if intercept == "free" else 0.0  # what it is held near
    plain = Plain(X, y, C, loss, intercept, seed=3, shrinking=shrinking, b=b)
    descent = descent_of(problem, random_state=3, shrinking=shrinking)
    descent.begin_at(plain.v)
    descent._state["goal"] = goal = 1e-3
    for _ in range(12):
        plain.epoch(goal)
        _core.descend(
            descent._rows,
            descent._coordinates,
            descent._order,
            descent._v,
            descent._state.view(np.uint8),
            10**6,
            0,  # a certificate after every epoch
            shrinking,
            simd=simd,
        )
        assert list(descent._order) == plain.A + plain.left_out
        state = descent._state[0]
        assert state["size"] == len(plain.A)
        assert state["gap"] == pytest.approx(plain.gap, rel=1e-6, abs=1e-9)
        np.testing.assert_allclose(descent.alpha, plain.alpha, rtol=1e-9, atol=1e-13)
        np.testing.assert_allclose(descent._v, plain.v, rtol=1e-9, atol=1e-12)
    assert shrinking or state["epoch"] * len(y) == state["visits"]


def visit_tube(x, row, v, weight, intercept):
    """Minimize over the variable of a sample: what it adds to P - D before."""
    beta, most, ridge, step, target, kink = row
    apart = target - x @ v[: len(x)] - (v[-1] if intercept != "none" else 0.0)
    beyond = max(0.0, abs(apart) - kink)
    loss = beyond**2 / (2.0 * ridge) if ridge > 0 else most * beyond
    gap = loss - apart * beta + kink * abs(beta) + 0.5 * ridge * beta**2
    free = beta - (ridge * beta - apart) * step
    new = np.sign(free) * min(max(abs(free) - kink * step, 0.0), most)
    row[0] = new
    v[: len(x)] += (new - beta) * x
    if intercept != "none":
        v[-1] += weight * (new - beta)
    return gap


@product(
    simd=_core.simd_levels(),
    kind=MATRICES,
    loss=LOSSES,
    wide=[(5, "penalized"), (77, "none"), (9, "free")],
)
def test_epochs_over_tubes_are_those_of_plain_numpy(kind, loss, wide, simd):
    n, intercept = wide
    X = whole_numbers(150, n)[0]
    X[::17, 0] = 1.0  # a row of zeros has no curvature of its own
    rng = np.random.default_rng(1)
    t, C = X[:, 0] - X[:, 1] + 0.5 * rng.normal(size=150), rng.uniform(0.01, 0.2, 150)
    problem = regression_problem(MATRICES[kind](X), t, C, 0.3, loss, intercept)
    descent = descent_of(problem, random_state=3, shrinking=False)
    rows, v = descent._coordinates.copy(), descent._v.copy()
    assert rows.shape == (150, 6)
    weight = float(descent._state["weight"][0])
    rows[:, 3] = 1.0 / (np.sum(X**2, axis=1) + weight + rows[:, 2])
    for _ in range(5):
        core = descent._rows, descent._coordinates, descent._order, descent._v
        state = descent._state.view(np.uint8)
        _core.descend(*core, state, 10**6, 0, False, simd=simd)
        order = descent._order
        gap = sum(visit_tube(X[i], rows[i], v, weight, intercept) for i in order)
        assert descent._state["gap"][0] == pytest.approx(gap, rel=1e-6, abs=1e-9)
        np.testing.assert_allclose(descent._coordinates, rows, rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(descent._v, v, rtol=1e-9, atol=1e-12)


@product(loss=LOSSES, intercept=["penalized", "none", "free"], C=[0.01, 1.0])
def test_regressions_reach_the_optimum_of_another_solver(loss, intercept, C):
    X = whole_numbers(200, 9)[0]
    t = X[:, 0] - X[:, 1] + 0.5 * np.random.default_rng(1).normal(size=200)
    problem = regression_problem(X, t, C, 0.3, loss, intercept)
    found = solve(problem, "coordinate_descent", tol=1e-6, max_iter=20_000)
    other = solve(problem, "interior_point", tol=1e-8)
    assert found.status == "solved"
    assert found.certificate.primal == pytest.approx(other.certificate.primal, rel=2e-6)
    assert not (np.multiply(*np.split(found.alpha, 2)) > 0).any()


@pytest.mark.parametrize("slice", [1, 7, 100])
def test_pauses_change_nothing(slice):
    problem = Problem(*PROBLEMS["ndc"](), 0.1, intercept="penalized")
    whole, cut = descent_of(problem), descent_of(problem)
    cut._slice = slice
    for _ in range(3):
        while not whole.advance(0.0):
            pass
        while not cut.advance(0.0):
            pass
    np.testing.assert_array_equal(cut.alpha, whole.alpha)
    np.testing.assert_array_equal(cut._v, whole._v)
    np.testing.assert_array_equal(cut._state, whole._state)


def test_arrays_that_do_not_fit_are_refused():
    descent = descent_of(Problem(*PROBLEMS["ndc"](), intercept="penalized"))
    state = descent._state.view(np.uint8)
    with pytest.raises(ValueError, match="do not fit"):
        _core.descend(
            descent._rows, descent._coordinates, descent._order[1:].copy(), descent._v,
            state, 1, 0, True,
        )  # fmt: skip
    descent._state["size"] += 1
    with pytest.raises(ValueError, match="do not fit"):
        descent.advance(1.0)


def test_a_wrong_promise_ends_the_round():
    """Where the gap is far above what the gradients met, left out rows come back."""
    problem = Problem(*PROBLEMS["ndc"](), 0.1, intercept="penalized")
    descent = descent_of(problem)
    state, m = descent._state, problem.rows.shape[0]
    while state["size"][0] == m:
        descent.advance(0.0)
    assert np.isfinite(state["first"][0])
    promised = descent._promised
    descent._steer(2.0 * promised, 1e-3 * promised)  # as good as was promised
    assert np.isfinite(state["first"][0])
    assert state["goal"][0] == 0.5e-3 * promised  # half of what is asked for
    descent._steer(0.5 * promised, 0.45 * promised)  # a second try needs a fall
    assert state["goal"][0] == 0.8 * promised
    descent._steer(100.0 * promised, 0.5 * promised)
    assert state["goal"][0] == 1.0 * promised
    state["goal"] = 0.0
    descent.advance(0.0)
    assert state["size"][0] == m


# -- answers ---------------------------------------------------------------------------


@pytest.mark.cover(1)
@pytest.mark.parametrize("storage", STORAGES, ids=lambda s: s.name)
@pytest.mark.parametrize("loss", LOSSES)
def test_every_storage(storage, loss):
    X, y = whole_numbers(100, 6)
    C = np.where(np.arange(len(y)) % 5, 0.1, 0.0)  # a view of four rows in five
    problem = Problem(storage.make(X), y, C, loss, "penalized")
    solver = CoordinateDescent()
    solution = solve(problem, solver, tol=TOL)
    assert solution.status == "solved"
    X = storage.exact(X)
    reference = reference_objective(X[C > 0], y[C > 0], 0.1, loss, "penalized")
    assert solution.certificate.primal == pytest.approx(reference, rel=2 * TOL)
    assert not solution.alpha[C == 0].any()


@pytest.mark.parametrize("loss", LOSSES)
def test_duplicate_entries_of_a_row_add_up(loss):
    """q_i = |x_i|^2 is then not the sum of the squared entries: steps would be wrong."""
    X, y = whole_numbers(60, 6)
    rows = sparse.csr_array(X)
    parts = csr(
        rows,
        data=np.tile(rows.data[:, np.newaxis], 3).ravel() / 3.0,
        indices=np.repeat(rows.indices, 3),
        indptr=3 * rows.indptr,
    )
    squares = linalg.row_squares(parts)
    np.testing.assert_allclose(squares, np.sum(X**2, axis=1), rtol=1e-14)
    problem = Problem(parts, y, 1.0, loss, "none")
    assert solve(problem, "coordinate_descent", tol=TOL).status == "solved"


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("intercept", INTERCEPTS)
def test_shrinking_and_seeds_change_the_way_and_not_the_answer(loss, intercept):
    problem = Problem(*PROBLEMS["digits"](), 0.1, loss, intercept)
    solutions = [
        solve(
            problem, CoordinateDescent(shrinking=shrinking, random_state=seed), tol=TOL
        )
        for shrinking, seed in [(True, 0), (True, 1), (False, 0), (False, 2**70)]
    ]
    for solution in solutions:
        assert solution.status == "solved"
        first = solutions[0].certificate.primal
        assert solution.certificate.primal == pytest.approx(first, rel=2 * TOL)
    with_shrinking, other, without, _ = solutions
    assert np.any(with_shrinking.alpha != other.alpha)
    assert set(without.trace.column("active")) == {1797.0}
    assert with_shrinking.trace.column("active").min() < 1797


def test_the_same_seed_gives_the_same_bits_whatever_the_threads():
    X, y = PROBLEMS["digits"]()
    X, y = np.tile(X, (8, 1)), np.tile(y, 8)
    one, two, default = (
        solve(Problem(as_rows(X, n_jobs=k), y, 0.01, intercept="none"), solver)
        for k, solver in [
            (1, CoordinateDescent(random_state=0)),
            (2, CoordinateDescent(random_state=0)),
            (1, CoordinateDescent()),
        ]
    )
    for other in (two, default):
        np.testing.assert_array_equal(one.alpha, other.alpha)
        np.testing.assert_array_equal(one.w, other.w)


@pytest.mark.parametrize("loss", LOSSES)
def test_weights_are_repeated_rows(loss):
    X, y = PROBLEMS["ndc"]()
    weight = np.random.default_rng(0).integers(0, 4, len(y))
    repeated = np.repeat(X, weight, axis=0), np.repeat(y, weight)
    weighted = Problem(X, y, 0.1 * weight, loss, "penalized")
    once = Problem(*repeated, 0.1, loss, "penalized")
    a, b = (solve(p, "coordinate_descent", tol=TOL) for p in (weighted, once))
    assert a.status == b.status == "solved"
    assert a.certificate.primal == pytest.approx(b.certificate.primal, rel=2 * TOL)
    # P is strongly convex: |v - v'|^2 / 2 is at most the sum of the gaps.
    apart = np.sum((a.w - b.w) ** 2) + (a.b - b.b) ** 2
    assert apart <= 2 * (a.certificate.gap + b.certificate.gap)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("intercept", INTERCEPTS)
@pytest.mark.parametrize("C", [0.01, 100.0])
def test_few_different_rows_and_rows_of_zeros(loss, intercept, C):
    X = np.repeat([[1.0, 0.0], [0.0, 0.0], [-1.0, 1.0], [0.0, 0.0]], 20, axis=0)
    y = np.repeat([1.0, 1.0, -1.0, -1.0], 20)
    solution = solve(Problem(X, y, C, loss, intercept), "coordinate_descent", tol=TOL)
    assert solution.status == "solved"
    ours = objective(X, y, C, loss, intercept, solution.w, solution.b)
    assert ours == pytest.approx(
        reference_objective(X, y, C, loss, intercept), rel=1e-7
    )
    if loss == "hinge" and intercept == "none":  # 1 - z'v = 1 there, whatever v
        np.testing.assert_array_equal(solution.alpha[20:40], C)


def test_a_start_is_taken_up_and_never_made_worse():
    X, y = PROBLEMS["digits"]()
    cold = solve(
        Problem(X, y, 0.1, intercept="penalized"), "coordinate_descent", tol=TOL
    )
    problem = Problem(X, y, 0.11, intercept="penalized")
    from_zero = solve(problem, "coordinate_descent", tol=1e-6)
    warm = solve(problem, "coordinate_descent", tol=1e-6, start=cold)
    assert warm.status == "solved"
    assert warm.trace[-1].details["updates"] < from_zero.trace[-1].details["updates"]
    again = solve(problem, "coordinate_descent", tol=1e-6, start=warm, max_iter=1)
    assert again.certificate.primal <= warm.certificate.primal
    beyond = (cold.alpha * 50 - 1.0, cold.w, cold.b)  # clipped to the box
    assert solve(problem, "coordinate_descent", start=beyond).status == "solved"


# -- by sweeps -------------------------------------------------------------------------


class Away(MemoryRows):
    """Rows in blocks, which are not to be taken for rows in memory."""

    is_in_memory = False

    def __init__(self, X, n_blocks):
        super().__init__(X)
        ends = len(X) * np.arange(n_blocks + 1) // n_blocks
        cut = [slice(a, b) for a, b in itertools.pairwise(ends)]
        self._blocks = Blocks(cut, 8, 1)


def problem_away(kind, loss, intercept, n_blocks=5, C=0.01):
    X, y = whole_numbers(300, 7)
    weights = np.random.default_rng(1).uniform(0.5, 2.0, len(y)) * C
    rows = Away(X, n_blocks)
    if kind == "regression":
        return regression_problem(
            rows, X[:, 0] - X[:, 1], weights, 0.1, loss, intercept
        )
    q = np.linspace(0.5, 1.5, len(y)) if kind == "margins" else 1.0
    return Problem(rows, y, weights, loss, intercept, q=q)


@product(
    kind=["classes", "margins", "regression"],
    loss=LOSSES,
    intercept=INTERCEPTS,
    shrinking=[True, False],
)
def test_each_sweep_raises_the_dual_objective(kind, loss, intercept, shrinking):
    """By as much as the sums of its blocks say, from which the next one starts."""
    problem = problem_away(kind, loss, intercept, C=0.2)
    solver, state = CoordinateDescent(shrinking=shrinking), problem.dual_state(0.0)
    descent = DescentBySweeps(solver, problem, state)
    labels, before, left = np.asarray(state.labels), 0.0, 0
    for _ in range(25):
        descent.advance(0.0)
        descent.put(state)
        alpha = np.asarray(state.alpha)
        q = np.asarray(state.q) if kind != "classes" else np.ones(len(alpha))
        assert (alpha >= 0.0).all()
        assert loss != "hinge" or (alpha <= np.asarray(state.C)).all()
        g, excess = problem.A.rmatvec(alpha), float(labels @ alpha)
        moved = problem.R * g
        if intercept == "free":
            moved[-1] = descent._weight * excess
        np.testing.assert_allclose(descent._v, moved, rtol=1e-9, atol=1e-12)
        assert descent._excess == pytest.approx(excess, abs=1e-10)
        share = 0.25 * (loss != "hinge")
        reached = float(q @ alpha - share * (alpha @ (alpha / np.asarray(state.C))))
        if kind == "regression":  # more where a variable went through zero
            assert descent._reached <= reached + 1e-9
        else:
            assert descent._reached == pytest.approx(reached, rel=1e-9, abs=1e-12)
        free = 0.5 * descent._weight * excess**2 if intercept == "free" else 0.0
        dual = reached - 0.5 * float(problem.R @ (g * g)) - free
        assert dual >= before - 1e-12
        before, left = dual, left + (descent.look()[0] < 300)
    assert left > 0 if shrinking and kind == "classes" else shrinking or left == 0
    assert before > 0.8 * solve(problem, "interior_point").certificate.dual


@product(kind=["classes", "margins", "regression"], loss=LOSSES, intercept=INTERCEPTS)
def test_blocks_reach_the_optimum(kind, loss, intercept):
    C = 0.002 if kind == "regression" else 0.01  # 60 times the sweeps with 0.01
    problem = problem_away(kind, loss, intercept, C=C)
    found = solve(problem, "coordinate_descent", tol=1e-7)
    other = solve(problem, "interior_point", tol=1e-8)
    assert found.status == "solved"
    assert found.certificate.primal == pytest.approx(other.certificate.primal, rel=2e-7)
    again = solve(problem, "coordinate_descent", tol=1e-7, start=found, max_iter=1)
    assert again.certificate.primal <= found.certificate.primal


def test_blocks_go_on_where_rounding_hides_the_slope():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1800, 5))
    y = np.sign(X @ rng.normal(size=5) + 0.5 * rng.normal(size=1800))
    problem = Problem(Away(X, 6), y, 0.001, intercept="penalized")
    state = problem.dual_state(0.0)
    descent, parts = DescentBySweeps(CoordinateDescent(), problem, state), []
    for _ in range(60):
        descent.advance(np.inf)
        if np.asarray(descent._beside.way).any():
            parts.append(descent._t)
    assert len(parts) > 30
    assert min(parts) >= 0.5 / 6


def test_one_block_goes_all_of_the_way():
    """Nobody else has moved v: sweeps are epochs."""
    problem = problem_away("classes", "squared_hinge", "penalized", n_blocks=1)
    descent = DescentBySweeps(CoordinateDescent(), problem, problem.dual_state(0.0))
    for _ in range(5):
        descent.advance(0.0)
        assert descent._t == 1.0


def test_a_certificate_says_how_much_gradients_promise_too_much():
    problem = problem_away("classes", "hinge", "penalized", C=1.0)
    state = problem.dual_state(0.0)
    descent = DescentBySweeps(CoordinateDescent(), problem, state)
    descent.certify(state, 1e-6)
    descent.advance(0.0)
    promised = float(descent._state["gap"][0])
    descent.put(state)
    _, primal, dual, _ = descent.certify(state, 1e-6)
    assert descent._hope == pytest.approx((primal - dual) / promised)
    assert descent._is_whole


# -- limits ----------------------------------------------------------------------------


@pytest.fixture
def pausing(monkeypatch):
    """A problem, solved with pauses after every 16 rows or so."""
    monkeypatch.setattr(variables, "SLICE", 1300)
    return Problem(*PROBLEMS["ndc"](), 0.1, intercept="penalized")


def test_pauses_within_an_epoch_repeat_the_last_bounds(pausing):
    solution = solve(pausing, "coordinate_descent")
    assert solution.status == "solved"
    trace = solution.trace
    for iteration in set(trace.column("iteration")):
        steps = [step for step in trace if step.iteration == iteration]
        assert len({(step.primal, step.dual, step.residual) for step in steps}) == 1
    assert np.all(np.diff(trace.column("updates")) >= 0)
    assert np.diff(trace.column("updates")).max() < 0.01


def test_a_callback_stops_within_an_epoch(pausing):
    stop = solve(pausing, "coordinate_descent", callback=lambda step: step.seconds > 0)
    assert stop.status == "stopped_by_callback"
    seen = []

    def third(step):
        seen.append(step.details["updates"])
        return len(seen) == 3

    solution = solve(pausing, "coordinate_descent", callback=third)
    assert solution.status == "stopped_by_callback"
    assert 0 < seen[-1] < 0.02
    assert solution.certificate.relative_gap <= 1.0


def test_the_time_limit_holds_within_an_epoch(pausing):
    solution = solve(pausing, "coordinate_descent", tol=1e-10, time_limit=1e-6)
    assert solution.status == "time_limit"
    assert all(step.iteration == 0 for step in solution.trace)


def test_control_c_within_an_epoch_keeps_the_best_answer(pausing):
    def interrupt(step):
        if step.details["updates"] > 2.5:
            _thread.interrupt_main()

    solution = solve(pausing, "coordinate_descent", tol=1e-10, callback=interrupt)
    assert solution.status == "interrupted"
    assert solution.certificate.relative_gap < 1.0
    certificate = pausing.certify(solution.alpha, solution.w, solution.b)
    assert certificate == solution.certificate


def test_drift_is_measured_and_removed_at_every_certificate():
    X, y = PROBLEMS["ndc"]()
    problem = Problem(X.astype(np.float32), y, 10.0, intercept="penalized")
    solution = solve(problem, "coordinate_descent", tol=1e-8, max_iter=40)
    residual = solution.trace.column("residual")
    assert residual[0] == 0.0
    assert 0.0 < residual.max() < 1e-10


def test_hopeless_numbers_end_with_a_status_not_a_traceback():
    X, y = PROBLEMS["wide"]()
    solution = solve(Problem(X, y, 1e150, intercept="none"), "coordinate_descent")
    assert solution.status in ("numerical_error", "stalled")
    assert np.all(np.isfinite(solution.w))


# -- what it takes ---------------------------------------------------------------------


class _Doubled:
    rank = 16

    def map(self, block):
        return 2.0 * block


def test_features_of_a_map_are_swept():
    X, y = PROBLEMS["ndc"]()
    mapped = Problem(as_rows(X).mapped(_Doubled()), y, 0.01, intercept="none")
    plain = Problem(2.0 * X, y, 0.01, intercept="none")
    one, other = (solve(p, "coordinate_descent", tol=1e-8) for p in (mapped, plain))
    assert one.certificate.primal == pytest.approx(other.certificate.primal, rel=2e-8)


@pytest.mark.parametrize("storage", STORAGES, ids=lambda s: s.name)
def test_rows_in_memory_are_the_rows(storage):
    X, _ = whole_numbers(30, 4)
    rows = storage.make(X)
    mask = np.arange(30) % 3 == 0
    if storage.name.startswith(("process", "stored")):
        assert rows.in_memory() is None
        assert rows.select(mask).in_memory() is None
        return
    exact = storage.exact(X)
    np.testing.assert_array_equal(linalg.dense(rows.in_memory()), exact)
    selected = rows.select(mask)
    np.testing.assert_array_equal(linalg.dense(selected.in_memory()), exact[mask])
    assert selected.in_memory() is selected.in_memory()
    assert rows.mapped(_Doubled()).in_memory() is None
    assert rows.signed(np.ones(30)).in_memory() is None


@pytest.mark.parametrize("kind", MATRICES)
def test_rows_are_used_where_they_lie(kind):
    matrix = as_rows(MATRICES[kind](whole_numbers(30, 4)[0])).in_memory()
    followed = linalg.in_core(matrix)
    if sparse.issparse(matrix):
        out, before = np.zeros(30), matrix.data[0]
        matrix.data[0] = 99.0
        _core.csr_matvec(followed, np.ones(4), out)
        matrix.data[0] = before
        assert out.max() >= 99.0
    else:
        assert followed is matrix


def test_other_rows_are_copied():
    X = whole_numbers(30, 4)[0]
    for other in (np.asfortranarray(X), X[::2], X.astype(np.int64)):
        followed = linalg.in_core(other)
        assert followed.flags.c_contiguous
        assert followed.dtype == np.float64
        np.testing.assert_array_equal(followed, other)


def test_several_classes(iris):
    X, y = iris
    solver = CoordinateDescent()
    classifier = LinearSVC(C=0.1, intercept="penalized", solver=solver, tol=1e-6)
    other = LinearSVC(C=0.1, intercept="penalized", tol=1e-6)
    assert classifier.fit(X, y).status_ == "solved"
    np.testing.assert_allclose(classifier.coef_, other.fit(X, y).coef_, atol=1e-2)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"shrinking": "yes"},
            "'shrinking' parameter of CoordinateDescent must be one",
        ),
        ({"random_state": -1}, r"'random_state' .* range \[0, inf\)"),
    ],
)
def test_options_out_of_range(options, message):
    with pytest.raises(ValueError, match=message):
        CoordinateDescent(**options)


# -- a free intercept ------------------------------------------------------------------


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("C", [1e-5, 0.1, 30.0])
def test_wide_sparse_rows_with_a_free_intercept(loss, C):
    """All rows may be on the margin, one class is tiny, and some rows are empty."""
    full = (np.arange(300)[:, np.newaxis] % 70 != 3).astype(float)
    X = sparse.csr_array(
        sparse.random(300, 900, density=0.02, random_state=0).multiply(full)
    )
    y = np.where(np.arange(300) % 60 == 3, 1.0, -1.0)
    problem = Problem(X, y, C, loss, "free")
    solution = solve(problem, "coordinate_descent", tol=TOL)
    assert solution.status == "solved"
    assert abs(y @ solution.alpha) <= 1e-12 * np.sum(solution.alpha)
    reference = reference_objective(X.toarray(), y, C, loss, "free")
    assert solution.certificate.primal == pytest.approx(reference, rel=1e-7)


def test_every_point_of_a_free_intercept_is_feasible_and_its_bounds_true():
    problem = Problem(*PROBLEMS["digits"](), 0.1, intercept="free")
    for step in CoordinateDescent().iterate(problem, None, 1e-6):
        v, state = step.point()
        certificate = problem.certify(state.alpha, *problem.split(v))
        assert abs(problem.y @ state.alpha) <= 1e-12 * max(1.0, state.alpha.sum())
        assert step.primal == pytest.approx(certificate.primal, rel=1e-12)
        assert step.dual == pytest.approx(certificate.dual, rel=1e-9, abs=1e-12)
        if step.iteration == 8:
            break
    assert certificate.relative_gap < 0.1


def test_columns_far_from_zero_are_centered_in_a_copy():
    X, y = PROBLEMS["shifted"]()
    solution = solve(Problem(X, y, 0.1), "coordinate_descent", tol=TOL)
    assert solution.status == "solved"


def test_the_intercept_of_a_start_is_taken_up():
    problem = Problem(*PROBLEMS["digits"](), 0.1, intercept="free")
    first = solve(problem, "coordinate_descent", tol=1e-9)
    again = solve(problem, "coordinate_descent", tol=1e-6, start=first)
    assert again.status == "solved"
    assert again.trace[-1].details["updates"] <= 1.0


# -- certificates ----------------------------------------------------------------------


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
@pytest.mark.parametrize("intercept", ["free", "penalized", "none"])
def test_short_texts_need_one_certificate_or_two(loss, intercept):
    rng = np.random.default_rng(3)
    X = sparse.random(600, 900, 0.02, format="csr", random_state=4)
    y = np.where(X @ rng.normal(size=900) + 0.1 * rng.normal(size=600) > 0, 1.0, -1.0)
    problem = Problem(X, y, 1.0, loss, intercept)
    begin = problem.rows.sweeps
    solution = solve(problem, "coordinate_descent", tol=1e-4)
    assert solution.status == "solved"
    certificates = solution.trace[-1].iteration
    assert certificates <= 2
    # These, two for the answer, and one for that of a free intercept.
    assert problem.rows.sweeps - begin == 2 + certificates + (intercept == "free")
    again = problem.certify(solution.alpha, solution.w, solution.b, tol=1e-4)
    assert again == solution.certificate
    assert again.relative_gap <= 1e-4


@pytest.mark.parametrize(("C", "tol", "least"), [(0.01, 1e-4, 3.0), (0.001, 0.3, 1.0)])
def test_of_many_rows_too_gradients_say_when(C, tol, least):
    X, y = overlapping(30_000)
    problem = Problem(X, y, C, "hinge", "penalized")
    steps = solve(problem, CoordinateDescent(), tol=tol).trace
    # A certificate says how much gradients promise, another one proves the gap; what
    # the first epoch has left of a gap far below kappa shows at once.
    first = steps[1].details["updates"]
    assert steps[-1].iteration <= 2
    assert first >= least if least > 1.0 else steps[-1].details["updates"] == 1.0


def test_a_free_intercept_moves_between_certificates():
    X, y = whole_numbers(80, 5)
    problem = Problem(X, y, 0.01, intercept="free")
    descent = descent_of(problem)
    while not descent.advance(1.0):
        pass
    before, labels = descent._v.copy(), problem.y
    assert not descent.is_due(1.0, 1e-9)
    moved = descent._state["weight"][0] * float(labels @ descent.alpha)
    assert moved != 0.0
    np.testing.assert_array_equal(descent._v[:-1], before[:-1])
    assert descent._v[-1] == pytest.approx(before[-1] + moved, rel=1e-12)
    descent._state["visits"] = variables.QUICK_MARK * len(y)
    assert descent.is_due(variables.QUICK_MARK, 1e-9)


# -- the finish ------------------------------------------------------------------------


def overlapping(m):
    """Well conditioned rows of two classes that overlap."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(m, 5))
    return X, np.where(X @ rng.normal(size=5) + 0.5 * rng.normal(size=m) > 0, 1, -1)


def ends(X, y, loss, intercept, C, tol):
    """Runs with two orders of rows: their answers, and steps of Newton's method."""
    problem, found = Problem(X, y, C, loss, intercept), []
    for seed in (0, 1):
        solution = solve(problem, CoordinateDescent(random_state=seed), tol=tol)
        assert solution.status == "solved"
        waits = sum(step.waits for step in solution.trace)
        found.append((problem.stack(solution.w, solution.b), waits))
    return found


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("intercept", INTERCEPTS)
def test_a_small_gap_has_all_digits(loss, intercept):
    """Which a gap of 1e-10 does not ask for: v may be 1e-5 off."""
    X, y = overlapping(1500)
    for C in (0.01, 1.0):
        (one, n_one), (other, n_other) = ends(X, y, loss, intercept, C, 1e-10)
        np.testing.assert_allclose(one, other, atol=1e-11 * np.abs(one).max())
        assert min(n_one, n_other) > 0
        own = "active_set" if loss == "squared_hinge" else "augmented_lagrangian"
        problem = Problem(X, y, C, loss, intercept)
        exact = solve(problem, own, tol=1e-14)
        v = problem.stack(exact.w, exact.b)
        np.testing.assert_allclose(one, v, atol=1e-9 * np.abs(one).max())


def test_ordinary_gaps_and_many_columns_have_no_finish(monkeypatch):
    X, y = overlapping(300)
    assert ends(X, y, "hinge", "none", 0.01, 1e-8)[0][1] == 0
    assert ends(X, y, "hinge", "none", 0.01, 9e-9)[0][1] > 0
    monkeypatch.setattr(finish, "DENSE_ORDER", 4)
    assert ends(X, y, "hinge", "none", 0.01, 1e-10)[0][1] == 0


def test_a_finish_of_no_use_is_begun_again_later(monkeypatch):
    """It ends far from the answer here: the descent goes on, and solves it alone."""
    X, y = overlapping(300)
    begun = []

    class Useless(finish.Finish):
        def run(self):
            begun.append(self.point.gap / self.point.primal)
            self.point = self._piece.evaluate(np.zeros_like(self.point.v), self._s)
            yield

    monkeypatch.setattr(coordinate_descent, "Finish", Useless)
    problem = Problem(X, y, 0.01, "squared_hinge", "none")
    solution = solve(problem, "coordinate_descent", tol=1e-10)
    assert solution.status == "solved"
    assert len(begun) > 2
    for last, gap in itertools.pairwise(begun):
        assert gap <= 0.5 * last
