"""Frank-Wolfe steps and core vectors: steps, optima, and the balls that they are."""

import itertools

import numpy as np
import pytest
from conftest import PROBLEMS
from kernel_cases import NAMED, matrix, memory_limit_of, on_every_simd, plain
from kernel_reference import check_certificate, conic_optimum, objectives, part
from scipy import sparse
from sklearn.metrics.pairwise import rbf_kernel

from widemargin import SVC, Kernel, LinearSVC, Problem, _core, solve
from widemargin.kernel_blocks import padded
from widemargin.solvers import CoreVector, FrankWolfe

STEPS = ["toward", "away", "pairwise", "swap"]
KINDS = [(s, "first") for s in STEPS] + [("pairwise", "second"), ("swap", "second")]
INTERCEPTS = ["penalized", "none"]


class Simplex:
    """A problem of the core with all rows kept, and what its steps should be."""

    def __init__(self, dtype, m=60, ball=False, seed=0):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(m, 5))
        self.K = plain(NAMED["poly"], X, X)  # its diagonal varies
        self.rows = np.zeros((m, padded(m)), dtype)
        self.rows[:, :m] = self.K
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
        self.numbers = np.array([1.0, self.alpha @ self.g, linear])
        self.place = np.arange(m)

    @property
    def a(self):
        return self.numbers[0] * self.alpha

    @property
    def value(self):
        return self.a @ self.Q @ self.a - 2.0 * self.half @ self.a

    def run(self, kind, selection, most, stop=0.0, simd=-1):
        return _core.simplex_steps(
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
            stop,
            most,
            simd,
        )


@pytest.mark.parametrize("ball", [False, True])
@pytest.mark.parametrize(("kind", "selection"), KINDS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@on_every_simd
def test_a_step_is_an_exact_line_search(simd, dtype, kind, selection, ball):
    problem = Simplex(dtype, ball=ball)
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


@pytest.mark.parametrize(("kind", "selection"), KINDS[1:])
def test_steps_reach_the_bound_that_was_asked_for(kind, selection):
    problem = Simplex(np.float64)
    problem.run(kind, selection, 10**6, stop=1e-8)
    g = problem.Q @ problem.a
    assert g.min() > 0
    assert (problem.a @ g / g.min()) ** 2 <= 1 + 2.1e-8


@pytest.mark.parametrize(("kind", "selection"), KINDS[1:])
def test_the_farthest_point_is_as_near_as_was_asked_for(kind, selection):
    problem = Simplex(np.float64, ball=True)
    problem.run(kind, selection, 10**6, stop=1e-6)
    K, a = problem.K, problem.a
    square = np.diag(K) @ a - a @ K @ a
    far = np.diag(K) + a @ K @ a - 2.0 * K @ a
    assert far.max() <= (1.0 + 1.1e-6) ** 2 * square


def test_a_row_that_is_not_kept_is_asked_for():
    problem = Simplex(np.float64)
    whole = Simplex(np.float64)
    whole.run("pairwise", "second", 50)
    problem.place[:] = -1
    left, asked = 50, []
    while left:
        steps, _, missing, _ = problem.run("pairwise", "second", left)
        left -= steps
        if missing >= 0:
            assert problem.place[missing] == -1
            problem.place[missing] = missing
            asked.append(missing)
    assert len(asked) == len(set(asked)) > 1
    np.testing.assert_allclose(problem.a, whole.a, atol=1e-12)


# -- the squared hinge -----------------------------------------------------------------

SOLVERS = [FrankWolfe(step=s, selection=k) for s, k in KINDS[1:]] + [
    CoreVector(),
    CoreVector(sample=59),
]


@pytest.mark.parametrize("intercept", INTERCEPTS)
@pytest.mark.parametrize("C", [1e-2, 1.0, 100.0])
@pytest.mark.parametrize("name", ["breast_cancer", "noise"])
@pytest.mark.parametrize("solver", SOLVERS, ids=str)
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
    X, y = PROBLEMS["noise"]()
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


def test_the_ball_of_the_coreset_encloses_all():
    X, y = part("noise")
    gamma, C, epsilon = 0.1, 1.0, 1e-2
    problem = Problem(
        X, y, C, "squared_hinge", "penalized", kernel=Kernel("rbf", gamma=gamma)
    )
    points = []
    found = solve(
        problem,
        CoreVector(epsilon=epsilon),
        tol=1e-9,
        callback=lambda step: points.append(step.point()[0]),
    )
    assert found.status != "solved"
    K = rbf_kernel(X, gamma=gamma)
    Q = y[:, None] * (K + 1.0) * y + np.eye(len(y)) / (2.0 * C)

    def excess(c):
        """By how much the farthest point is beyond the radius, as a share of it."""
        a = np.abs(c) / np.abs(c).sum()
        square = Q[0, 0] - a @ Q @ a
        far = Q[0, 0] + a @ Q @ a - 2.0 * Q @ a
        return np.sqrt(far.max() / square) - 1.0

    # The last point ends the run; the answer is the one of the smallest gap.
    assert excess(points[-1]) <= epsilon * (1.0 + 1e-4)
    assert excess(points[-2]) > epsilon


# -- refused ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("solver", "options", "message"),
    [
        (FrankWolfe, {"step": "back"}, "'step' parameter of FrankWolfe must be one of"),
        (FrankWolfe, {"selection": 2}, "'selection' parameter of FrankWolfe must be"),
        (FrankWolfe, {"start": 0}, "'start' parameter of FrankWolfe must be"),
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


def test_a_ball_needs_a_constant_diagonal():
    X, y = part("noise")
    kernel = Kernel("poly", gamma=0.1, degree=2)
    problem = Problem(X, y, 1.0, "squared_hinge", kernel=kernel)
    with pytest.raises(ValueError, match="epsilon needs a constant diagonal"):
        solve(problem, CoreVector(epsilon=1e-3))
