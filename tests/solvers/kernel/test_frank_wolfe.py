"""Frank-Wolfe steps and core vectors: steps, optima, and the balls that they are."""

import functools
import itertools

import numpy as np
import pytest
from scipy import sparse
from sklearn.metrics.pairwise import rbf_kernel

from tests.cases.kernel_reference import (
    check_certificate,
    conic_optimum,
    objectives,
    part,
)
from tests.cases.kernels import NAMED, matrix, memory_limit_of, on_every_simd, plain
from tests.cases.pairwise import pairwise, product
from tests.conftest import PROBLEMS
from widemargin import SVC, Kernel, LinearSVC, Problem, _core, solve, svc_path
from widemargin.kernels.packed import padded
from widemargin.solvers import CoreVector, FrankWolfe
from widemargin.solvers.kernel.draws import Draws

STEPS = ["toward", "away", "pairwise", "swap"]
KINDS = [(s, "first") for s in STEPS] + [("pairwise", "second"), ("swap", "second")]
INTERCEPTS = ["penalized", "none"]
DTYPES = [np.float32, np.float64]


class Simplex:
    """A problem of the core with all rows kept, and what its steps should be."""

    def __init__(self, dtype, m=60, ball=False, seed=0):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(m, 5))
        self.rows = np.zeros((m, padded(m)), dtype)
        self.rows[:, :m] = plain(NAMED["poly"], X, X)  # its diagonal varies
        self.K = self.rows[:, :m].astype(np.float64)
        self.y = np.ones(m) if ball else np.sign(rng.normal(size=m))
        self.ridge = np.zeros(m) if ball else rng.uniform(0.1, 1.0, m)
        self.shift = 0.0 if ball else 1.0
        self.Q = self.y[:, None] * (self.K + self.shift) * self.y + np.diag(self.ridge)
        self.half = 0.5 * np.diag(self.Q) if ball else np.zeros(m)
        self.ball = ball
        self.alpha = np.zeros(m)
        self.alpha[rng.permutation(m)[:8]] = 1 / 8
        self.g = self.Q @ self.alpha
        linear = 2.0 * self.half @ self.alpha
        self.numbers = np.array([1.0, self.alpha @ self.g, linear, 0.0])
        self.place = np.arange(m)

    @property
    def a(self):
        return self.numbers[0] * self.alpha

    @property
    def value(self):
        return self.a @ self.Q @ self.a - 2.0 * self.half @ self.a

    def gains(self, kind, selection):
        """By how much a step may lower the value, of all samples that tie."""
        slope, held = self.Q @ self.a - self.half, self.a > 0
        tie = 1e-12 * np.abs(self.Q).max()
        low = np.flatnonzero(slope <= slope.min() + tie)
        high = np.flatnonzero(held & (slope >= slope[held].max() - tie))
        return [self.gain(kind, selection, slope, i, j) for i in low for j in high]

    def gain(self, kind, selection, slope, i, j):
        a, diagonal = self.a, np.diag(self.Q)
        g, mean = slope + self.half, a @ slope
        near = line_search(mean - slope[i], a @ g - 2.0 * g[i] + diagonal[i], 1.0)
        if kind == "toward" or (kind == "away" and mean - slope[i] >= slope[j] - mean):
            return near
        if kind == "away":
            longest = a[j] / (1.0 - a[j]) if a[j] < 1.0 else np.inf
            return line_search(
                slope[j] - mean, a @ g - 2.0 * g[j] + diagonal[j], longest
            )
        curved = diagonal[i] + diagonal - 2.0 * self.Q[i]
        partners = np.flatnonzero(a) if selection == "second" else [j]
        pairs = [
            line_search(slope[k] - slope[i], curved[k], a[k])
            for k in partners
            if k != i
        ]
        return max([*pairs, 0.0, near if kind == "swap" else 0.0])

    def machine(self, kind, selection):
        """What both functions of the core take first."""
        return (
            self.rows,
            self.place,
            self.y,
            np.diag(self.Q).copy(),
            self.ridge,
            self.half,
            self.shift,
            self.alpha,
            self.g,
            self.numbers,
            STEPS.index(kind),
            selection == "second",
            self.ball,
        )

    def run(self, kind, selection, most, stop=0.0, given=-1, simd=-1):
        return _core.simplex_steps(
            *self.machine(kind, selection),
            stop,
            most,
            given,
            simd,
        )

    def run_sampled(self, kind, selection, samples, most, stop=0.0, given=-1, simd=-1):
        return _core.sampled_steps(
            *self.machine(kind, selection),
            stop,
            most,
            given,
            samples.order,
            samples.split,
            samples.state,
            samples.room,
            samples.tries,
            simd,
        )


@pairwise(
    ("way", "ball", "dtype", "simd"),
    itertools.product(KINDS, [False, True], DTYPES, _core.simd_levels()),
)
def test_a_step_is_an_exact_line_search(simd, dtype, way, ball):
    problem, (kind, selection) = Simplex(dtype, ball=ball), way
    digits = 1e-10 if dtype == np.float64 else 2e-3
    dropped = 0
    for _ in range(200):
        old, a = problem.value, problem.a
        steps, drops, missing, least = problem.run(kind, selection, 1, simd=simd)
        assert missing == -1
        if not steps:
            break
        dropped += drops
        new, direction = problem.a, problem.a - a
        scale = np.abs(problem.Q).max()
        np.testing.assert_allclose(
            problem.numbers[0] * problem.g, problem.Q @ new, atol=digits * scale
        )
        assert new.min() >= 0
        assert new.sum() == pytest.approx(1.0, abs=1e-12)
        assert problem.numbers[1] == pytest.approx(
            new @ problem.Q @ new, abs=digits * scale
        )
        assert problem.value <= old + digits * scale
        # Nothing along the direction is better, unless a bound is in the way.
        slope = direction @ (problem.Q @ new - problem.half)
        curved = direction @ problem.Q @ direction
        assert slope <= 2 * digits * scale
        at_end = drops or np.count_nonzero(new) == 1
        assert at_end or abs(slope) <= 2 * digits * scale * max(1.0, curved)
        gradient = problem.Q @ new - problem.half
        assert least >= gradient.min() - digits * scale or kind != "toward"
    assert dropped or kind == "toward"


def line_search(s, q, longest):
    """The most that 2 s t - q t^2 is for 0 <= t <= longest."""
    if s <= 0:
        return 0.0
    t = min(s / q, longest) if q > 0 else longest
    return t * (2.0 * s - t * q)


SIZES = [60, 300]  # in one block of samples, and in two


@pairwise(
    ("m", "way", "ball", "dtype", "simd"),
    itertools.product(SIZES, KINDS, [False, True], DTYPES, _core.simd_levels()),
)
def test_a_step_gains_what_the_best_choice_gains(simd, dtype, way, ball, m):
    problem, (kind, selection) = Simplex(dtype, m, ball), way
    rounding = 1e-12 * np.abs(problem.Q).max()
    for _ in range(40):
        old, gains = problem.value, np.array(problem.gains(kind, selection))
        steps, *_ = problem.run(kind, selection, 1, simd=simd)
        off = np.abs(old - problem.value - gains)
        assert np.any(off <= rounding + 1e-9 * gains)
        if not steps:
            break


@on_every_simd
@pytest.mark.parametrize("ball", [False, True])
@pytest.mark.parametrize(("kind", "selection"), KINDS[1:])
def test_steps_end_where_rounding_hides_what_they_gain(kind, selection, ball, simd):
    for m in (8, 20, 60):
        problem = Simplex(np.float64, m, ball)
        steps, _, missing, _ = problem.run(kind, selection, 10**6, stop=-1.0, simd=simd)
        assert steps < 10**4
        assert missing == -1
        slopes = problem.Q @ problem.a - problem.half
        far = slopes[problem.a > 0].max() - slopes.min()
        assert far <= 1e-11 * np.abs(problem.Q).max()


@on_every_simd
@pytest.mark.parametrize(("kind", "selection"), KINDS[1:])
def test_steps_reach_the_bound_that_was_asked_for(kind, selection, simd):
    problem = Simplex(np.float64)
    problem.run(kind, selection, 10**6, stop=1e-8, simd=simd)
    g = problem.Q @ problem.a
    assert g.min() > 0
    assert (problem.a @ g / g.min()) ** 2 <= 1 + 2.1e-8


@on_every_simd
@pytest.mark.parametrize(("kind", "selection"), KINDS[1:])
def test_the_farthest_point_is_as_near_as_was_asked_for(kind, selection, simd):
    problem = Simplex(np.float64, ball=True)
    problem.run(kind, selection, 10**6, stop=1e-6, simd=simd)
    K, a = problem.K, problem.a
    square = np.diag(K) @ a - a @ K @ a
    far = np.diag(K) + a @ K @ a - 2.0 * K @ a
    assert far.max() <= (1.0 + 1.1e-6) ** 2 * square


@on_every_simd
def test_a_row_that_is_not_kept_is_asked_for(simd):
    problem = Simplex(np.float64)
    whole = Simplex(np.float64)
    whole.run("pairwise", "second", 50, simd=simd)
    problem.place[:] = -1
    left, asked = 50, []
    while left:
        steps, _, missing, _ = problem.run("pairwise", "second", left, simd=simd)
        left -= steps
        if missing >= 0:
            assert problem.place[missing] == -1
            problem.place[missing] = missing
            asked.append(missing)
    assert len(asked) == len(set(asked)) > 1
    np.testing.assert_allclose(problem.a, whole.a, atol=1e-12)


# -- the squared hinge -----------------------------------------------------------------

SOLVERS = [
    FrankWolfe(step="away"),
    *(FrankWolfe(step=s, selection=k) for s, k in KINDS[2:]),
    FrankWolfe(sample=59),
    CoreVector(),
    CoreVector(sample=59),
]


@product(
    ids=str,
    solver=SOLVERS,
    name=["breast_cancer", "noise"],
    C=[1e-2, 1.0, 100.0],
    intercept=INTERCEPTS,
)
def test_the_optimum_is_that_of_a_conic_solver(solver, name, C, intercept):
    X, y = part(name)
    gamma = 0.3 / X.shape[1]
    kernel = Kernel("rbf", gamma=gamma)
    problem = Problem(X, y, C, "squared_hinge", intercept, kernel=kernel)
    solution = solve(problem, solver, tol=1e-5)
    assert solution.status == "solved", solution
    K = rbf_kernel(X, gamma=gamma)
    check_certificate(K, y, C, "squared_hinge", intercept, solution, 1e-5)
    best = conic_optimum(name, gamma, "squared_hinge", intercept, C)
    assert solution.certificate.dual <= best * (1.0 + 1e-7)
    assert solution.certificate.primal >= best * (1.0 - 1e-7)


def test_frank_wolfe_alone_is_slow_but_honest():
    X, y = part("breast_cancer")
    kernel = Kernel("rbf", gamma=0.01)
    problem = Problem(X, y, 1.0, "squared_hinge", kernel=kernel)
    solution = solve(problem, FrankWolfe(step="toward"), tol=1e-2)
    assert solution.status == "solved"
    assert problem.certify(*answer(solution)).relative_gap <= 1e-2


def answer(solution):
    return solution.alpha, solution.w, solution.b


@pytest.mark.parametrize("solver", [FrankWolfe(), CoreVector()], ids=str)
@pytest.mark.parametrize("name", ["linear", "poly", "laplacian", "callable"])
def test_weights_and_kernels_whose_diagonal_varies(solver, name):
    X = matrix(150, 6)
    rng = np.random.default_rng(0)
    y = np.where(X[:, 0] + rng.normal(size=150) > 0.3, 1.0, -1.0)
    C = rng.uniform(0.0, 3.0, 150)
    C[::9] = 0.0
    K = plain(NAMED["rbf" if name == "callable" else name], X, X)
    kernel = NAMED.get(name) or Kernel(lambda A, B: plain(NAMED["rbf"], A, B))
    problem = Problem(X, y, C, "squared_hinge", "penalized", kernel=kernel)
    solution = solve(problem, solver, tol=1e-4)
    assert solution.status == "solved", solution
    kept = C > 0
    primal, dual = objectives(
        K[np.ix_(kept, kept)],
        y[kept],
        C[kept],
        "squared_hinge",
        "penalized",
        solution.alpha[kept],
        solution.b,
    )
    assert primal - dual <= 1.01e-4 * primal


@pytest.mark.parametrize("convert", [np.asarray, sparse.csr_array])
def test_few_rows_of_k_may_be_kept(convert):
    X, y = (data[:200] for data in PROBLEMS["noise"]())
    kernel = Kernel("rbf", gamma=0.1)
    ample = Problem(X, y, 1.0, "squared_hinge", kernel=kernel)
    best = solve(ample, FrankWolfe(), tol=1e-5).certificate.primal
    for places in (2, 3, 20):
        limit = memory_limit_of(X, kernel, places)
        tight = Problem(
            convert(X), y, 1.0, "squared_hinge", kernel=kernel, memory_limit=limit
        )
        solution = solve(tight, FrankWolfe(), tol=1e-4)
        assert solution.status == "solved"
        assert solution.certificate.primal == pytest.approx(best, rel=2e-4)


@pytest.mark.parametrize("solver", ["frank_wolfe", "core_vector"])
def test_estimators_agree_with_the_linear_one(solver, binary):
    X, y = binary
    linear = LinearSVC(loss="squared_hinge", intercept="penalized", tol=1e-8).fit(X, y)
    clf = SVC(
        kernel="linear",
        loss="squared_hinge",
        intercept="penalized",
        solver=solver,
        tol=1e-4,
    ).fit(X, y)
    assert clf.status_ == "solved"
    assert clf.solution_.solver == solver
    objective = clf.solution_.certificate.primal
    assert objective <= linear.solution_.certificate.primal * (1 + 1.1e-4)


def test_a_start_is_taken_up():
    X, y = part("noise")
    kernel = Kernel("rbf", gamma=0.1)
    first = solve(
        Problem(X, y, 1.0, "squared_hinge", kernel=kernel), FrankWolfe(), tol=1e-6
    )
    problem = Problem(X, y, 1.1, "squared_hinge", kernel=kernel)
    for solver in (FrankWolfe(), CoreVector()):
        cold = solve(problem, solver, tol=1e-4)
        warm = solve(problem, solver, tol=1e-4, start=first)
        assert warm.status == "solved"
        assert warm.trace[0].gap < cold.trace[0].gap


@pytest.mark.parametrize("solver", ["frank_wolfe", "core_vector"])
def test_a_path_takes_up_starts_without_the_rows_of_weight_zero(solver):
    """The start has all rows, the problem those that have a weight."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(40, 3)), np.arange(40) % 2
    some = np.arange(40) % 3 > 0
    form = {"loss": "squared_hinge", "solver": solver, "gamma": 0.3}
    _, models, _ = svc_path(X, y, Cs=[1.0, 10.0], sample_weight=1.0 * some, **form)
    _, others, _ = svc_path(X[some], y[some], Cs=[1.0, 10.0], **form)
    for model, other in zip(models, others, strict=True):
        assert model.status_ == "solved"
        np.testing.assert_array_equal(model.dual_coef_, other.dual_coef_)
        np.testing.assert_array_equal(
            np.flatnonzero(some)[other.support_], model.support_
        )


def ball_of(c, Q):
    """R, the radius, and by how much the farthest point is beyond, as a share of it."""
    a = np.abs(c) / np.abs(c).sum()
    R = a @ Q @ a
    radius = np.sqrt(Q[0, 0] - R)
    far = np.sqrt((Q[0, 0] + R - 2.0 * Q @ a).max())
    return R, radius, far / radius - 1.0


BALLS = [FrankWolfe, CoreVector]


@pytest.mark.parametrize("solver", BALLS)
def test_the_ball_of_the_coreset_encloses_all(solver):
    X, y = part("noise")
    gamma, C, epsilon = 0.1, 1.0, 1e-2
    kernel = Kernel("rbf", gamma=gamma)
    problem = Problem(X, y, C, "squared_hinge", "penalized", kernel=kernel)
    points = []
    found = solve(
        problem,
        solver(epsilon=epsilon),
        tol=1e-9,
        callback=lambda step: points.append(step.point()[0]),
    )
    assert found.status != "solved"
    assert "Stopped by epsilon, the rule of the ball" in found.message
    K = rbf_kernel(X, gamma=gamma)
    Q = y[:, None] * (K + 1.0) * y + np.eye(len(y)) / (2.0 * C)
    # The last point ends the run; the answer is the one of the smallest gap.
    R, radius, excess = ball_of(points[-1], Q)
    assert excess <= epsilon * (1.0 + 1e-4)
    assert ball_of(points[0], Q)[2] > epsilon
    assert found.extras["rho"] == pytest.approx(R, rel=1e-5)
    assert found.extras["radius"] == pytest.approx(radius, rel=1e-5)
    assert found.extras["epsilon"] == pytest.approx(excess, rel=1e-3)
    assert found.extras["coreset"] >= found.extras["support_vectors"]


@pytest.mark.parametrize("solver", BALLS)
def test_the_rule_of_a_sample_says_little(solver):
    """The paper's stop: 59 points are in the ball, and others are not."""
    X, y = PROBLEMS["noise"]()
    kernel = Kernel("rbf", gamma=0.1)
    problem = Problem(X, y, 1.0, "squared_hinge", "penalized", kernel=kernel)
    found = solve(problem, solver(sample=5, epsilon=1e-6), tol=1e-9)
    assert found.status != "solved"
    assert found.extras["is_ball"] == 1.0
    assert found.extras["epsilon"] > 1e-6
    assert found.trace[-1].relative_gap < found.trace[0].relative_gap


@pytest.mark.parametrize("step", STEPS)
def test_steps_of_samples_go_on_to_the_certificate(step):
    X, y = (data[:150] for data in part("breast_cancer"))
    problem = Problem(X, y, 1.0, "squared_hinge", kernel=Kernel("rbf", gamma=0.01))
    solution = solve(problem, FrankWolfe(step=step, sample=5), tol=1e-2)
    assert solution.status == "solved"
    assert problem.certify(*answer(solution)).relative_gap <= 1e-2


def test_points_that_were_dropped_leave_the_coreset():
    X, y = part("breast_cancer")
    problem = Problem(X, y, 10.0, "squared_hinge", kernel=Kernel("rbf", gamma=0.01))
    near = solve(problem, "irwls", tol=1e-2)
    alpha = near.alpha + 1e-3 * near.alpha.max()  # most of these are to be zero
    assert np.count_nonzero(near.alpha) < 0.4 * len(y)
    start = alpha, near.w, near.b
    found = solve(problem, FrankWolfe(sample=59), tol=1e-4, start=start)
    assert found.status == "solved"
    assert found.extras["drops"] > 0
    assert found.extras["coreset"] < 0.8 * len(y)


# -- samples ---------------------------------------------------------------------------


def drawn(order, split, weight, size, seed=0):
    state, out = np.array([seed], np.uint64), np.empty(size, np.int64)
    return out[: _core.draw_rows(order, split, state, weight, out)]


def test_rows_are_drawn_alike():
    m, size = 50, 100_000
    weight = np.zeros(m)
    weight[7] = 1.0  # rows with weight too
    counts = np.bincount(drawn(np.arange(m), 0, weight, size), minlength=m)
    assert np.abs(counts - size / m).max() < 5.0 * np.sqrt(size / m)
    other = drawn(np.arange(m), 0, weight, size, seed=1)
    assert not np.array_equal(other, drawn(np.arange(m), 0, weight, size))


def test_classes_take_turns_and_rows_with_weight_are_left_out():
    m, size = 1000, 59
    signs = np.where(np.arange(m) % 50 == 0, 1.0, -1.0)
    weight = np.zeros(m)
    weight[: m // 2] = 0.1
    samples = Draws(signs, size, balanced=True, tries=1, seed=3)
    for _ in range(20):
        rows = samples.draw(weight)
        assert not weight[rows].any()
        assert 25 <= np.count_nonzero(signs[rows] > 0) <= 29
        assert np.count_nonzero(signs[rows] < 0) == 30
    weight[signs > 0] = 1.0  # none is left of one class
    assert np.all(signs[samples.draw(weight)] < 0)
    assert samples.draw(np.ones(m)).size == 0


@pairwise(
    ("way", "balanced", "dtype", "simd"),
    itertools.product(KINDS, [False, True], DTYPES, _core.simd_levels()),
)
def test_a_step_of_a_sample_is_the_one_to_its_best_row(simd, dtype, way, balanced):
    problem, twin = Simplex(dtype), Simplex(dtype)
    kind, selection = way
    samples = Draws(problem.y, 9, balanced, tries=1, seed=1)
    again = Draws(problem.y, 9, balanced, tries=1, seed=1)
    for _ in range(60):
        g = problem.numbers[0] * problem.g
        rows = again.draw(problem.alpha)
        if balanced:
            rows = np.append(rows, np.flatnonzero(problem.alpha))
        best = int(rows[g[rows].argmin()])
        looks, steps, drops, missing, chosen, inside = problem.run_sampled(
            kind, selection, samples, 1, simd=simd
        )
        assert (looks, missing, chosen, inside) == (1, -1, best, False)
        expected = twin.run(kind, selection, 1, -1.0, given=best, simd=simd)
        assert (steps, drops) == expected[:2]
        np.testing.assert_array_equal(problem.a, twin.a)


@on_every_simd
def test_a_ball_is_near_after_so_many_tries(simd):
    """All rows are inside that one of them, whose radius is large: no step is made."""
    problem = Simplex(np.float64, ball=True)
    again = Draws(problem.y, 5, balanced=False, tries=1, seed=2)
    samples = Draws(problem.y, 5, balanced=False, tries=7, seed=2)
    found = problem.run_sampled("away", "first", samples, 100, stop=1e3, simd=simd)
    assert found[:4] == (0, 0, 0, -1)
    assert found[5]
    for _ in range(7):
        again.draw(problem.alpha)
    np.testing.assert_array_equal(samples.state, again.state)
    # Of a sample with a row outside there is no other one.
    found = problem.run_sampled("away", "first", samples, 1, stop=1e-9, simd=simd)
    assert found[0] == 1
    again.draw(problem.alpha)
    np.testing.assert_array_equal(samples.state, again.state)


@on_every_simd
def test_a_sample_is_kept_while_its_row_is_computed(simd):
    whole, problem = Simplex(np.float64), Simplex(np.float64)
    samples = Draws(problem.y, 9, balanced=False, tries=1, seed=1)
    whole.run_sampled("away", "first", samples, 50, simd=simd)
    samples = Draws(problem.y, 9, balanced=False, tries=1, seed=1)
    problem.place[:] = -1
    left, given = 50, -1
    while left:
        looks, _, _, missing, given, _ = problem.run_sampled(
            "away", "first", samples, left, given=given, simd=simd
        )
        left -= looks
        if missing >= 0:
            problem.place[missing] = missing
    np.testing.assert_allclose(problem.a, whole.a, atol=1e-12)


def imbalanced(m=1500):
    """Rows of which one in thirty is positive, by two of their columns."""
    X = np.random.default_rng(0).normal(size=(m, 4))
    score = X[:, 0] + 0.5 * X[:, 1] ** 2
    return X, np.where(score > np.quantile(score, 0.967), 1.0, -1.0)


def ended_by_ball(solver, limit=None, data=imbalanced):
    X, y = data()
    kernel = Kernel("rbf", gamma=0.5)
    problem = Problem(X, y, 4.0, "squared_hinge", kernel=kernel, memory_limit=limit)
    found = solve(problem, solver, tol=1e-12)
    assert found.extras["is_ball"] == 1.0
    return found


@pytest.mark.parametrize("balanced", [False, True])
def test_samples_of_rows_that_are_kept_are_the_same(balanced):
    """Without room for rows of K their values are computed anew at each step."""
    solver = FrankWolfe(
        step="away", sample=30, epsilon=1e-3, balanced=balanced, random_state=4
    )
    kept = ended_by_ball(solver)
    limit = memory_limit_of(imbalanced()[0], Kernel("rbf", gamma=0.5), 3)
    anew = ended_by_ball(solver, limit)
    for name in ("steps", "drops", "coreset"):
        assert kept.extras[name] == anew.extras[name]
    assert kept.extras["rho"] == pytest.approx(anew.extras["rho"], rel=1e-5)
    assert kept.extras["steps"] > 100


def test_values_of_many_samples_are_computed_once():
    X, y = part("noise")
    m = len(y)
    problem = Problem(X, y, 1.0, "squared_hinge", kernel=Kernel("rbf", gamma=0.1))
    found = solve(problem, FrankWolfe(step="away", sample=59), tol=1e-3)
    assert found.extras["steps"] > 1000
    assert found.extras["evaluations"] < 1.2 * m * m


@pytest.mark.parametrize(
    ("solver", "share"),
    [(functools.partial(FrankWolfe, step="away"), 0.2), (CoreVector, 0.6)],
)
def test_samples_of_both_classes_end_nearer_the_optimum(solver, share):
    plain, better = (
        ended_by_ball(solver(sample=30, epsilon=1e-6, **options))
        for options in ({}, {"balanced": True, "tries": 7})
    )
    assert (
        better.certificate.relative_gap < share * plain.certificate.relative_gap < 1.0
    )


@pytest.mark.parametrize("solver", BALLS)
def test_more_tries_end_a_run_later(solver):
    """The same rows are drawn until the first sample without a row outside."""
    once, often = (
        ended_by_ball(solver(sample=30, epsilon=1e-3, balanced=True, tries=tries))
        for tries in (1, 7)
    )
    assert often.extras["steps"] > once.extras["steps"]
    assert often.certificate.relative_gap < once.certificate.relative_gap


# -- other starts ----------------------------------------------------------------------


def first_point(solver, **options):
    """The weights that a run begins with, and Q."""
    X, y = imbalanced(300)
    kernel = Kernel("rbf", gamma=0.5)
    problem = Problem(X, y, 4.0, "squared_hinge", kernel=kernel)
    points = []

    def keep(step):
        points.append(step.point()[0])
        return True

    solve(problem, solver(**options), tol=1e-9, callback=keep)
    a = np.abs(points[0][: len(y)])
    Q = y[:, None] * (rbf_kernel(X, gamma=0.5) + 1.0) * y + np.eye(len(y)) / 8.0
    return a / a.sum(), Q


@pytest.mark.parametrize("sample", [None, 59])
@pytest.mark.parametrize("solver", BALLS)
def test_a_start_of_the_farthest_pair(solver, sample):
    a, Q = first_point(solver, sample=sample, first_points="pair")
    pair = np.flatnonzero(a)
    np.testing.assert_allclose(a[pair], [0.5, 0.5], rtol=0.1)
    square = np.diag(Q)[:, None] + np.diag(Q) - 2.0 * Q
    farthest = square.max(axis=0)[pair]  # of each of them; one was drawn
    assert square[tuple(pair)] == pytest.approx(farthest.min(), rel=1e-6)


@pytest.mark.parametrize("sample", [None, 59])
def test_a_start_that_is_solved(sample):
    options = {"first_points": 20, "sample": sample, "random_state": 1}
    equal, Q = first_point(FrankWolfe, **options)
    solved, _ = first_point(FrankWolfe, first_weights="solved", **options)
    rows = np.flatnonzero(equal)
    assert len(rows) == 20
    np.testing.assert_allclose(equal[rows], 0.05)
    assert not solved[equal == 0.0].any()
    g, R = Q @ solved, solved @ Q @ solved
    held = solved > 0
    np.testing.assert_allclose(g[held], R, rtol=1e-3)
    assert g[rows].min() >= R * (1.0 - 1e-3)
    assert equal @ Q @ equal > R


# -- the stop where lengths of points differ -------------------------------------------


@pytest.mark.parametrize("solver", BALLS)
def test_the_stop_bounds_the_objective_where_the_diagonal_varies(solver):
    """(37) holds at the end, so that (41) does, with kappa the largest Q_ii."""
    X, y = imbalanced(300)
    epsilon, C = 2e-3, 2.0
    kernel = Kernel("poly", gamma=0.3, degree=2, coef0=0.0)
    problem = Problem(X, y, C, "squared_hinge", kernel=kernel)
    points = []
    found = solve(
        problem,
        solver(epsilon=epsilon),
        tol=1e-12,
        callback=lambda step: points.append(step.point()[0]),
    )
    assert "Stopped by epsilon, the rule of the ball" in found.message
    assert "radius" not in found.extras  # it is no ball
    Q = y[:, None] * (plain(kernel, X, X) + 1.0) * y + np.eye(len(y)) / (2.0 * C)
    kappa, share = np.diag(Q).max(), 2.0 * epsilon + epsilon**2
    assert np.diag(Q).min() < 0.1 * kappa

    def value(point):
        a = np.abs(point[: len(y)]) / np.abs(point[: len(y)]).sum()
        return kappa - a @ Q @ a, 2.0 * (a @ Q @ a - (Q @ a).min())

    last, slope = value(points[-1])
    assert slope <= share * last * (1.0 + 1e-4)  # (37)
    assert value(points[0])[1] > share * value(points[0])[0]
    dual = solve(problem, "irwls", tol=1e-9).certificate.dual
    best = kappa - 1.0 / (2.0 * dual)  # R* = 1 / (2 D*)
    assert (1.0 - share) * best <= last <= best * (1.0 + 1e-6)  # (41)
    assert found.extras["epsilon"] <= epsilon * (1.0 + 1e-4)


# -- rates -----------------------------------------------------------------------------


def distances(kind, selection, steps):
    """R - R* at so many steps, from R* by pairs to the last digits."""
    best = Simplex(np.float64)
    best.run("pairwise", "second", 10**6)
    problem, found = Simplex(np.float64), []
    for more in np.diff([0, *steps]):
        problem.run(kind, selection, int(more), -1.0)
        found.append(problem.value - best.value)
    return np.array(found)


@pytest.mark.parametrize(("kind", "selection"), KINDS[1:])
def test_away_and_pairwise_steps_converge_linearly(kind, selection):
    """Each 300 steps cut R - R* by some factor, to the last digits."""
    found = distances(kind, selection, 300 * np.arange(1, 10))
    found /= Simplex(np.float64).value
    assert found[-1] < 1e-8
    known = found[found > 1e-11]
    assert np.all(known[1:] < 0.5 * known[:-1]), found


def test_steps_toward_alone_converge_as_one_over_the_steps():
    """R - R* times the steps neither vanishes nor grows: doubling halves it."""
    found = distances("toward", "first", 250 * 2 ** np.arange(8))
    cuts = found[1:] / found[:-1]
    assert np.all((cuts > 0.15) & (cuts < 0.9)), found


# -- refused ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("solver", "options", "message"),
    [
        (FrankWolfe, {"step": "back"}, "'step' parameter of FrankWolfe must be one of"),
        (FrankWolfe, {"selection": 2}, "'selection' parameter of FrankWolfe must be"),
        (
            FrankWolfe,
            {"first_points": 0},
            "'first_points' parameter of FrankWolfe must be",
        ),
        (
            FrankWolfe,
            {"first_points": "far"},
            r"an int in the range \[1, inf\) or 'pair'. Got 'far'",
        ),
        (
            FrankWolfe,
            {"step": "away", "selection": "first"},
            "must be 'second' with step='away', which has no other point",
        ),
        (FrankWolfe, {"first_weights": "best"}, "'first_weights' parameter of"),
        (FrankWolfe, {"balanced": 2}, "'balanced' parameter of FrankWolfe must be"),
        (CoreVector, {"balanced": True}, "must be False where sample is None"),
        (CoreVector, {"tries": 0}, "'tries' parameter of CoreVector must be"),
        (FrankWolfe, {"tries": 7, "sample": 59}, "must be 1 where sample or epsilon"),
        (FrankWolfe, {"sample": 0}, "'sample' parameter of FrankWolfe must be"),
        (FrankWolfe, {"epsilon": -1.0}, "'epsilon' parameter of FrankWolfe must be"),
        (CoreVector, {"sample": 0}, "'sample' parameter of CoreVector must be"),
        (CoreVector, {"epsilon": 0.0}, "'epsilon' parameter of CoreVector must be"),
        (CoreVector, {"epsilon": "a"}, "'epsilon' parameter of CoreVector must be"),
    ],
)
def test_options_out_of_range_are_refused(solver, options, message):
    with pytest.raises((TypeError, ValueError), match=message):
        solver(**options)


@pytest.mark.parametrize("solver", [FrankWolfe(), CoreVector()], ids=str)
def test_other_problems_are_refused(solver):
    X, y = part("noise")
    name = type(solver).__name__
    for loss, intercept in itertools.product(["hinge", "squared_hinge"], INTERCEPTS):
        if loss == "hinge":
            problem = Problem(X, y, 1.0, loss, intercept, kernel=Kernel("rbf"))
            with pytest.raises(ValueError, match=f"{name} needs loss='squared_hinge'"):
                solve(problem, solver)
    problem = Problem(X, y, 1.0, "squared_hinge", "free", kernel=Kernel("rbf"))
    with pytest.raises(ValueError, match=f"{name} needs intercept='penalized' or"):
        solve(problem, solver)


@pytest.mark.parametrize("solver", [FrankWolfe(sample=10**6), CoreVector(sample=10**6)])
def test_a_sample_of_all_rows_is_all_rows(solver):
    X, y = part("breast_cancer")
    problem = Problem(X, y, 1.0, "squared_hinge", kernel=Kernel("rbf", gamma=0.01))
    solution = solve(problem, solver, tol=1e-4)
    assert solution.status == "solved"
    assert solution.extras["evaluations"] <= 20 * len(y) ** 2


@pytest.mark.parametrize("solver", ["frank_wolfe", "core_vector"])
def test_kernels_that_are_not_positive_semidefinite_are_told(solver):
    X, y = part("noise")
    X, y = X[:120], y[:120]

    def negative(A, B):
        return -(A @ B.T) - 1.0

    clf = SVC(kernel=negative, loss="squared_hinge", solver=solver, max_iter=50)
    with pytest.warns(RuntimeWarning, match="not positive semidefinite") as seen:
        clf.fit(X, y)
    assert len(seen) == 1  # it is said once
    assert clf.status_ != "solved"


@pytest.mark.parametrize("scale", [1e60, 1e150])
@pytest.mark.parametrize("solver", [FrankWolfe(sample=7), CoreVector()])
def test_values_beyond_float32_end_with_a_status(scale, solver):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(200, 2)), np.where(np.arange(200) % 2, 1, -1)

    def kernel(A, B):
        return scale * np.exp(-np.square(A[:, None] - B).sum(axis=2))

    problem = Problem(X, y, kernel=Kernel(kernel, gamma=1.0), loss="squared_hinge")
    solution = solve(problem, solver=solver, max_iter=20)
    certificate = solution.certificate
    assert certificate.dual <= certificate.primal
    assert 0.0 <= certificate.relative_gap <= 1.0


def test_points_are_found_by_exact_rows_where_others_kept_rounded_ones():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 80))
    y = np.where(X[:, 0] + 0.5 * rng.normal(size=len(X)) > 0, 1, -1)
    form = "squared_hinge", "penalized"
    new, used = (
        Problem(X, y, 1e3, *form, kernel=Kernel("rbf", gamma=0.01)) for _ in range(2)
    )
    solve(used, "irwls", tol=1e-3)
    assert used.columns.is_rounded
    found, again = (solve(one, "core_vector", tol=1e-8) for one in (new, used))
    assert found.status == again.status == "solved"
    np.testing.assert_array_equal(again.alpha, found.alpha)
