"""Fits end soon after their time limit, by a clock that work moves.

The clock of the library is one that does not go by itself: every block of rows, batch
of kernel values, call of a kernel function, factor and slice of inner steps takes a
fixed time, and a look at it next to nothing. So what it says at the end of a fit, less
the limit, is the work that was done after the limit.
"""

import threading
import types
import warnings

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from widemargin import (
    SVC,
    BudgetSVC,
    EnclosingBall,
    Kernel,
    LinearSVC,
    Problem,
    open_rows,
    solve,
)
from widemargin.data.blocks import Blocks
from widemargin.data.memory import MemoryRows
from widemargin.kernels.packed import Samples
from widemargin.numerics import cholesky
from widemargin.problems.kernel import KernelProblem
from widemargin.solution import Certificate
from widemargin.solvers import IRWLS, ActiveSet, AugmentedLagrangian, CoreVector
from widemargin.solvers.driver import limits
from widemargin.solvers.kernel import reweighted, small_problem
from widemargin.system.deadline import GRACE, Deadline, OutOfTime, until

# Seconds of a unit of work, and of a look at the clock.
UNIT, LOOK = 0.05, 1e-4
# Units that may pass unseen: those of several threads, and what a fit ends with.
UNSEEN = 8
LIMIT = 1.0
M, N = 400, 6


class Clock:
    """Time that passes by work only."""

    def __init__(self, unit):
        self.now, self.unit, self._lock = 0.0, unit, threading.Lock()

    def perf_counter(self):
        """The time, in seconds."""
        with self._lock:
            self.now += LOOK
            return self.now

    def works(self, f):
        """The function f, which takes time."""

        def timed(*args, **options):
            with self._lock:
                self.now += self.unit
            return f(*args, **options)

        return timed


@pytest.fixture(params=[UNIT, 0.013, 0.5], ids="{:g} s".format)
def clock(request, monkeypatch):
    """The clock of the library, moved by its work."""
    clock = Clock(request.param)
    monkeypatch.setattr(limits, "time", clock)
    call = Blocks.__call__

    def blocks(self, task, load=None):
        return call(self, clock.works(task), load)

    monkeypatch.setattr(Blocks, "__call__", blocks)
    monkeypatch.setattr(Samples, "sums", clock.works(Samples.sums))
    monkeypatch.setattr(Kernel, "called", clock.works(Kernel.called))
    for room, name in ((cholesky, "factor_in_place"), (reweighted, "dpotrf")):
        monkeypatch.setattr(room, name, clock.works(getattr(room, name)))
    steps = clock.works(small_problem._core.pair_steps)
    core = types.SimpleNamespace(
        pair_steps=steps, violations=small_problem._core.violations
    )
    monkeypatch.setattr(small_problem, "_core", core)
    return clock


def inner(A, B):
    """A kernel of the user's."""
    return np.asarray(A @ B.T) ** 2 + 1.0


def data(classes=2):
    """Noisy classes: (X, y)."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, classes, M)
    X = rng.normal(size=(M, N))
    X[:, 0] += 0.7 * y
    return X, y


LINEAR = {
    "auto": {"C": 1e4, "tol": 1e-10},
    "interior_point": {"solver": "interior_point", "tol": 1e-10},
    "augmented_lagrangian": {
        "solver": "augmented_lagrangian",
        "loss": "hinge",
        "C": 1e4,
        "tol": 1e-10,
    },
    "active_set": {"solver": "active_set", "loss": "squared_hinge", "tol": 1e-12},
    "coordinate_descent": {
        "solver": "coordinate_descent",
        "intercept": "penalized",
        "C": 1e4,
        "tol": 1e-10,
    },
}
HARD = {"C": 100.0, "tol": 1e-9}
SQUARED = {"loss": "squared_hinge", **HARD}
EXACT = {
    "rbf": HARD,
    "squared": SQUARED,
    "frank_wolfe": {"solver": "frank_wolfe", **SQUARED},
    "core_vector": {"solver": "core_vector", **SQUARED},
    "poly": {"kernel": "poly", **HARD},
    "callable": {"kernel": inner, **HARD},
    "reweighted": {"solver": IRWLS(inner="irwls"), "C": 1e3, "tol": 1e-9},
    "linear irwls": {"kernel": "linear", "solver": "irwls", **HARD},
}
LOW = {
    "nystroem": {"rank": 200},
    "cholesky": {"rank": 200, "approximation": "cholesky"},
    "share": {"rank": 1e-6},
    "eigen": {"rank": 50, "approximation": "eigen"},
    "fourier": {"rank": 100, "approximation": "fourier"},
    "polynomial": {
        "rank": 100,
        "approximation": "polynomial",
        "kernel": "poly",
        "degree": 2,
        "coef0": 1.0,
    },
    "callable": {"rank": 100, "kernel": inner},
    "auto": {"rank": "auto"},
    "polish": {"rank": 50, "polish": True},
}
BALLS = {
    "hard": {"C": None},
    "soft": {"C": 1.0},
    "small C": {"C": 1e-5},
    "linear": {"C": None, "kernel": "linear"},
    "callable": {"C": 1.0, "kernel": inner},
}


def fitted(clock, model, X, y=None):
    """The model after a fit, which ended in time."""
    begin = clock.now
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.filterwarnings("ignore", "No point lies inside", RuntimeWarning)
        model.fit(X, y)
    beyond = clock.now - begin - LIMIT
    assert beyond <= GRACE + UNSEEN * clock.unit
    assert model.status_ in ("time_limit", "solved", "almost_solved", "stalled")
    return model


def assert_proved(solution, problem):
    """The bounds are those of the answer, and of the optimum."""
    again = problem.certify(solution.alpha, solution.w, solution.b)
    bounds, size = solution.certificate, problem.zero_objective
    assert again.primal <= bounds.primal + 1e-6 * size
    assert bounds.dual <= again.dual + 1e-6 * size
    best = solve(problem, tol=1e-6).certificate
    assert bounds.dual <= best.primal + 1e-6 * size
    assert bounds.primal >= best.dual - 1e-6 * size


def assert_predicts(model, X, y):
    """Labels, from the model and from what would be saved of it."""
    assert set(model.predict(X)) <= set(y)
    assert np.isfinite(model.decision_function(X)).all()
    assert np.array_equal(model.model_.predict(X), model.predict(X))


@pytest.mark.parametrize("name", LINEAR)
def test_linear(clock, name):
    X, y = data()
    model = fitted(clock, LinearSVC(time_limit=LIMIT, **LINEAR[name]), X, y)
    assert_predicts(model, X, y)
    options = {"loss": model.loss, "intercept": model.intercept}
    assert_proved(model.solution_, Problem(X, 2 * y - 1, model.C, **options))


def test_linear_classes(clock):
    X, y = data(5)
    classifier = LinearSVC(loss="hinge", time_limit=LIMIT, C=1e4, tol=1e-10)
    model = fitted(clock, classifier, X, y)
    assert_predicts(model, X, y)
    for k, solution in enumerate(model.solutions_):
        assert_proved(solution, Problem(X, 2 * (y == k) - 1, model.C))


def test_rows_in_files(clock, tmp_path):
    X, y = data()
    np.save(tmp_path / "rows.npy", X)
    rows = open_rows(tmp_path / "rows.npy")
    model = fitted(clock, LinearSVC(time_limit=LIMIT, C=1e4, tol=1e-10), rows, y)
    assert_predicts(model, X, y)
    model = fitted(clock, SVC(time_limit=LIMIT, rank=100), rows, y)
    assert_predicts(model, X, y)


@pytest.mark.parametrize(
    ("solver", "m"), [(AugmentedLagrangian(), 12_500), (ActiveSet(), 52_000)]
)
def test_a_model_that_was_found_is_not_lost_for_want_of_its_certificate(
    monkeypatch, solver, m
):
    """It was zero, where sweeps are slow, until there was time for the best answer."""
    clock, sweep = Clock(1.0), MemoryRows.sweep

    def slow(rows, *args):
        clock.now += float(rows.shape[0] == m)
        return sweep(rows, *args)

    monkeypatch.setattr(limits, "time", clock)
    monkeypatch.setattr(MemoryRows, "sweep", slow)
    draw = np.random.default_rng(0)
    X = draw.normal(size=(m, 2))
    y = np.where(X[:, 0] + draw.random(m) > 0.5, 1, -1)
    loss = "squared_hinge" if solver == ActiveSet() else "hinge"
    gaps = []
    for limit in np.arange(0.5, 12.0):
        begin = clock.now
        solution = solve(Problem(X, y, loss=loss), solver, tol=1e-6, time_limit=limit)
        assert clock.now - begin <= limit + GRACE + 2.0
        assert solution.w.any()
        gaps.append(solution.certificate.relative_gap)
    assert np.isfinite(gaps[2:]).all()
    assert np.median(gaps) <= 1e-4
    assert solution.status == "solved"


@pytest.mark.parametrize("solver", ["auto", "irwls", "frank_wolfe", CoreVector()])
def test_a_problem_left_out_names_the_solver_that_was_asked_for(solver):
    """It named irwls where "auto" had not chosen any."""
    X, y = data(3)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = SVC(time_limit=1e-9, solver=solver, **SQUARED).fit(X, y)
    left_out = [s for s in model.solutions_ if "before it began" in s.reason]
    assert left_out
    name = solver if isinstance(solver, str) else "core_vector"
    for solution in left_out:
        assert solution.solver == name
        assert f"by {name}, because the time was over" in str(solution)


@pytest.mark.cover(1)
@pytest.mark.parametrize("name", EXACT)
def test_kernel(clock, name):
    X, y = data()
    model = fitted(clock, SVC(time_limit=LIMIT, **EXACT[name]), X, y)
    assert_predicts(model, X, y)
    problem = Problem(X, 2 * y - 1, model.C, model.loss, kernel=model.kernel_)
    assert_proved(model.solution_, problem)


@pytest.mark.parametrize("scheme", ["ovo", "ovr"])
def test_kernel_classes(clock, scheme):
    X, y = data(5)
    model = SVC(time_limit=LIMIT, multi_class=scheme, **HARD)
    assert_predicts(fitted(clock, model, X, y), X, y)
    assert len(model.solutions_) == (10 if scheme == "ovo" else 5)


def test_precomputed(clock):
    X, y = data()
    K = X @ X.T
    model = fitted(clock, SVC(time_limit=LIMIT, kernel="precomputed", **HARD), K, y)
    assert_predicts(model, K, y)


@pytest.mark.cover(2)
@pytest.mark.parametrize("certify", ["approximate", "exact"])
@pytest.mark.parametrize("name", LOW)
def test_low_rank(clock, name, certify):
    X, y = data(3)
    options = {"C": 100.0, "tol": 1e-8, "certify": certify, **LOW[name]}
    model = fitted(clock, SVC(time_limit=LIMIT, **options), X, y)
    assert_predicts(model, X, y)
    if certify == "exact":
        for k, (i, j) in enumerate([(0, 1), (0, 2), (1, 2)]):
            some = (y == i) | (y == j)
            signs = np.where(y[some] == i, 1, -1)
            problem = Problem(X[some], signs, model.C, kernel=model.kernel_)
            bounds, best = model.exact_certificates_[k], solve(problem).certificate
            assert bounds.dual <= best.primal * (1.0 + 1e-9)
            assert bounds.primal >= best.dual * (1.0 - 1e-9)


@pytest.mark.parametrize(
    "options",
    [{"method": "norm"}, {"method": "norm", "norm": "l2"}, {}, {"method": "prune"}],
    ids=str,
)
def test_budget(clock, options):
    X, y = data(3)
    model = BudgetSVC(budget=20, time_limit=LIMIT, **HARD, **options)
    assert_predicts(fitted(clock, model, X, y), X, y)
    assert np.all(model.primal_ > 0)
    assert np.all(model.increase_ >= 0)


@pytest.mark.parametrize("step", ["away", "swap"])
@pytest.mark.parametrize("name", BALLS)
def test_ball(clock, name, step):
    X, _ = data()
    model = EnclosingBall(time_limit=LIMIT, tol=1e-9, step=step, **BALLS[name])
    fitted(clock, model, X)
    assert set(model.predict(X)) <= {-1, 1}
    if model.C is None:
        assert np.all(model.predict(X) == 1)
    assert model.dual_gap_ > 0.0


def test_the_time_of_callbacks_does_not_count(clock):
    X, y = data()
    calls = []

    def callback(step):
        calls.append(step)
        clock.now += 100.0
        other = LinearSVC().fit(X, y)  # under no deadline
        assert other.status_ == "solved"

    model = LinearSVC(time_limit=LIMIT, callback=callback, tol=1e-3)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(X, y)
    assert model.seconds_ <= LIMIT + GRACE + UNSEEN * clock.unit


@pytest.mark.parametrize("intercept", ["free", "penalized"])
def test_without_time_for_a_certificate_the_last_point_is_kept(monkeypatch, intercept):
    draw = np.random.default_rng(0)
    X, y = draw.normal(size=(400, 4)), np.where(draw.random(400) < 0.5, 1, -1)
    problem = Problem(X, y, C=5.0, intercept=intercept, kernel=Kernel("rbf", gamma=0.5))

    def late(*args):
        raise OutOfTime

    monkeypatch.setattr(type(problem), "answer", late)
    solution = solve(problem, IRWLS(working_set=64), max_iter=9, time_limit=1e6)
    proved = problem.certify(solution.alpha, solution.w, solution.b)
    assert 0.0 < proved.relative_gap <= solution.certificate.relative_gap < 0.5
    assert solution.certificate.relative_gap <= 1.1 * proved.relative_gap


def few_rows(**options):
    """A small kernel problem and its solution."""
    draw = np.random.default_rng(0)
    X, y = draw.normal(size=(300, 4)), np.where(draw.random(300) < 0.3, 1, -1)
    problem = Problem(X, y, C=5.0, kernel=Kernel("rbf", gamma=0.5), **options)
    return problem, solve(problem, IRWLS(), tol=1e-12)


def test_bounds_that_are_proved_stand_where_twice_the_precision_has_no_time(
    monkeypatch,
):
    """They were thrown away, and the model was a constant."""
    problem, solution = few_rows()
    asked = []

    def late(*args):
        asked.append(args)
        raise OutOfTime

    monkeypatch.setattr(type(problem), "_twofold", late)
    v = np.append(solution.w, solution.b)
    *_, bounds = problem.answer(solution.alpha, v, 1e-16)
    assert asked
    assert bounds.relative_gap < 1e-6


@pytest.mark.parametrize("off", [0.0, 1e-6, 1e-4], ids="off by {:g}".format)
def test_bounds_at_hand_need_no_time(off):
    """Also those of a point that has to be repaired."""
    problem, solution = few_rows()
    c = problem.signs * solution.alpha
    c[c > 0.0] *= 1.0 - off
    scores = problem.expand(c)
    assert problem.scores_at_hand is scores
    with until(Deadline(lambda: 1.0, 0.0)):
        alpha, w, b, bounds = problem.answer_at_hand(scores)
    assert abs(w.sum()) <= 1e-12 * alpha.sum()
    proved = problem.certify(alpha, w, b)
    assert proved.primal <= bounds.primal * (1.0 + 1e-12)
    assert bounds.dual <= proved.dual * (1.0 + 1e-12)
    assert off > 1e-6 or bounds.relative_gap < 0.05  # by values in float32


@pytest.mark.parametrize("intercept", ["free", "penalized", "none"])
@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_a_model_without_a_certificate_is_no_constant(monkeypatch, loss, intercept):
    """It is better than the best constant, whose bounds it does not have."""
    draw = np.random.default_rng(0)
    X, y = draw.normal(size=(300, 4)), np.where(draw.random(300) < 0.3, 1, -1)

    def late(*args):
        raise OutOfTime

    monkeypatch.setattr(KernelProblem, "answer", late)
    monkeypatch.setattr(KernelProblem, "scores_at_hand", None)
    options = {"C": 50.0, "loss": loss, "intercept": intercept, "solver": "irwls"}
    with pytest.warns(ConvergenceWarning, match="before anything useful was proved"):
        model = SVC(time_limit=1e6, tol=1e-6, **options).fit(X, y)
    solution = model.solution_
    assert len(model.support_) > 0
    problem = Problem(X, y, 50.0, loss, intercept, kernel=model.kernel_)
    proved = problem.certify(solution.alpha, solution.w, solution.b)
    assert proved.relative_gap < 1e-2
    assert solution.certificate == Certificate(np.inf, 0.0)
