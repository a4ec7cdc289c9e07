"""The driver: limits, callbacks, Ctrl-C, statuses, and messages."""

import _thread
import dataclasses
import re
import threading
import time

import numpy as np
import pytest

from tests.cases.problems import PROBLEMS
from widemargin import SVC, Kernel, LinearSVC, Problem, solve
from widemargin.solution import Certificate, Status, Step
from widemargin.solvers import IRWLS, InteriorPoint
from widemargin.solvers.driver.advice import Ending
from widemargin.solvers.driver.advice import message as message_of
from widemargin.solvers.driver.best import Best
from widemargin.solvers.driver.contract import ChosenSolver, Solver
from widemargin.solvers.driver.driver import run
from widemargin.solvers.driver.limits import Limits


@pytest.fixture
def problem():
    return Problem(*PROBLEMS["ndc"]())


def certificate_holds(problem, solution):
    """The reported certificate is that of the reported answer."""
    again = problem.certify(solution.alpha, solution.w, solution.b, tol=solution.tol)
    assert again == solution.certificate
    return True


@pytest.mark.parametrize("tol", [1e-1, 1e-3, 1e-6, 1e-10])
def test_tol_is_the_certified_relative_gap(problem, tol):
    solution = solve(problem, tol=tol)
    assert solution.status == "solved"
    assert solution.certificate.relative_gap <= tol
    assert certificate_holds(problem, solution)


@pytest.mark.parametrize(("intercept", "is_named"), [("penalized", 1), ("free", 0)])
def test_advice_names_features_far_from_zero(intercept, is_named):
    X = np.array([[0.0, 1000.0], [1000.0, 1000.2], [300.0, 1000.1], [900.0, 1000.3]])
    problem = Problem(X, [-1, 1, -1, 1], loss="hinge", intercept=intercept)
    message = solve(problem, "interior_point", tol=1e-14, max_iter=1).message
    advice = "1 lie far from zero beside their spread: centering them"
    assert message.count(advice) == is_named, message


@pytest.mark.parametrize("status", Status)
@pytest.mark.parametrize("far", [False, True])
def test_scaling_is_advised_once(status, far):
    """Where features were named that want it, the advice of the status said it again."""
    X = np.random.default_rng(0).normal(size=(30, 3))
    X[:, 0] = 1e5 + X[:, 0] if far else 1e5 * X[:, 0]
    problem = Problem(X, np.where(X[:, 1] > 0, 1, -1), intercept="penalized")
    last, limits = Step(1, 1.0, 0.5, 0.0, 3), Limits(1e-4)
    said = message_of(Ending(problem, status, last, 0.5, 1, limits, None))
    if status is not Status.SOLVED:
        assert "Feature(s) 0 " in said
        assert len(re.findall("(?i)StandardScaler|scale the|scaling the", said)) == 2
    X[:, 0] = X[:, 2]
    problem = Problem(X, np.where(X[:, 1] > 0, 1, -1), intercept="penalized")
    said = message_of(Ending(problem, status, last, 0.5, 1, limits, None))
    assert said.endswith(status.advice)


def test_max_iter_counts_iterations_and_keeps_a_usable_answer(problem):
    solution = solve(problem, max_iter=5, tol=1e-12)
    assert solution.status == "max_iter"
    assert [step.iteration for step in solution.trace] == list(range(6))
    assert "Stopped by max_iter=5 at a relative gap of" in solution.message
    assert certificate_holds(problem, solution)


def test_almost_solved_is_within_a_hundred_times_tol(problem):
    stopped = solve(problem, max_iter=9, tol=1e-12)
    assert stopped.status == "max_iter"
    gap = stopped.certificate.relative_gap
    assert solve(problem, max_iter=9, tol=gap / 50).status == "almost_solved"
    assert solve(problem, max_iter=9, tol=gap / 200).status == "max_iter"


def test_what_gets_no_further_near_its_end_says_so_by_its_status():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 5))
    y = np.sign(X[:, 1] + rng.normal(size=300))
    solution = solve(Problem(X, y, 10.0, "squared_hinge"), tol=1e-14)
    assert solution.status == "almost_solved"
    assert "lack of progress (almost_solved)" in solution.message
    assert "within 100 times tol" in solution.message


def test_a_rough_answer_is_not_almost_solved(problem):
    stopped = solve(problem, max_iter=6, tol=0.01)
    assert 0.1 < stopped.certificate.relative_gap < 1.0
    assert stopped.status == "max_iter"


def test_time_limit_is_kept_and_callbacks_are_off_the_clock(problem):
    def slow(step):
        time.sleep(0.02)

    solution = solve(problem, tol=1e-10, time_limit=1e-9)
    assert solution.status == "time_limit"
    assert len(solution.trace) == 1
    assert "time_limit=1e-09 s" in solution.message
    patient = solve(problem, tol=1e-10, callback=slow)
    assert patient.status == "solved"
    assert patient.seconds < 0.02 * len(patient.trace)


def test_callback_sees_every_step_and_its_point(problem):
    seen = []

    def callback(step):
        w, b = step.point()
        seen.append((step.iteration, problem.primal(w, b), step.primal))

    solution = solve(problem, tol=1e-6, callback=callback)
    assert [i for i, *_ in seen] == [step.iteration for step in solution.trace]
    for _, recomputed, told in seen:
        assert recomputed == pytest.approx(told, rel=1e-9)
    with pytest.raises(ValueError, match="only the latest step has a point"):
        solution.trace[0].point()


def test_points_of_a_centered_problem_are_in_original_coordinates():
    problem = Problem(*PROBLEMS["shifted"]())

    def callback(step):
        assert problem.primal(*step.point()) == pytest.approx(step.primal, rel=1e-6)

    assert solve(problem, callback=callback).status == "solved"


def test_callback_stops(problem):
    solution = solve(problem, tol=1e-10, callback=lambda step: step.iteration == 3)
    assert solution.status == "stopped_by_callback"
    assert solution.trace[-1].iteration == 3
    assert certificate_holds(problem, solution)


@pytest.mark.parametrize(
    "error",
    [RuntimeError, ZeroDivisionError, FloatingPointError, np.linalg.LinAlgError],
)
def test_a_callback_that_raises_is_not_swallowed(problem, error):
    def callback(step):
        assert np.geterr()["divide"] == "warn"
        raise error("from the callback")

    with pytest.raises(error, match="from the callback"):
        solve(problem, callback=callback)


def test_ctrl_c_returns_the_best_answer_at_once(problem):
    def press(step):
        if step.iteration == 8:
            _thread.interrupt_main()

    solution = solve(problem, tol=1e-10, callback=press)
    assert solution.trace[-1].iteration == 8
    assert solution.status == "interrupted"
    assert "Stopped by Ctrl-C" in solution.message
    assert solution.certificate.relative_gap < 1.0
    assert certificate_holds(problem, solution)


def test_ctrl_c_in_the_last_certificate_is_not_lost(problem, monkeypatch):
    certify = Problem.certify

    def press(*arguments, **options):
        monkeypatch.undo()
        _thread.interrupt_main()
        return certify(*arguments, **options)

    monkeypatch.setattr(Problem, "certify", press)
    solution = solve(problem)
    assert solution.certificate.relative_gap <= 1e-4
    assert solution.status == "interrupted"


def test_ctrl_c_in_the_middle_of_an_iteration(problem):
    """At random moments, none of which may lose the answer."""
    start = time.perf_counter()
    solve(problem, tol=1e-10)
    duration = time.perf_counter() - start
    outcomes = set()
    for share in np.linspace(0.05, 0.95, 12):
        timer = threading.Timer(share * duration, _thread.interrupt_main)
        try:
            timer.start()
            solution = solve(problem, tol=1e-10)
            timer.cancel()
            timer.join()
            outcomes.add(str(solution.status))
            assert certificate_holds(problem, solution)
            assert np.isfinite(solution.certificate.gap)
        except KeyboardInterrupt:
            outcomes.add("before or after the solve")
            timer.join()
    assert "interrupted" in outcomes


def test_start_is_checked(problem):
    with pytest.raises(ValueError, match="alpha must have length 3000"):
        solve(problem, start=(np.zeros(3), np.zeros(16), 0.0))
    with pytest.raises(ValueError, match="w must have length 16"):
        solve(problem, start=(np.zeros(3000), np.zeros(3), 0.0))
    alpha, w = np.zeros(3000), np.zeros(16)
    for start, error, message in [
        (3, ValueError, r"'start' .* must be a Solution or a tuple \(alpha, w, b\)"),
        ((alpha, w), TypeError, "'start' parameter of solve must be a Solution"),
        ((alpha, w, None), ValueError, "b must hold real numbers"),
        ((alpha, w, [1.0, 2.0]), ValueError, "b must have length 1"),
        ((alpha, w + np.nan, 0.0), ValueError, "w must hold finite numbers"),
        ((alpha + np.inf, w, 0.0), ValueError, "alpha must hold finite numbers"),
        ((alpha, w + 1j, 0.0), ValueError, "w must hold real numbers"),
    ]:
        with pytest.raises(error, match=message):
            solve(problem, start=start)


def test_the_answer_is_never_worse_than_the_start(problem):
    good = solve(problem, tol=1e-10)
    again = solve(problem, start=good, tol=1e-15, max_iter=1)
    assert again.certificate.primal <= good.certificate.primal * (1 + 1e-15)
    assert again.certificate.dual >= good.certificate.dual * (1 - 1e-15)


def test_an_answer_without_a_step_has_a_trace_and_words():
    X, y = PROBLEMS["breast_cancer"]()
    hopeless = solve(Problem(X * 1e150, y, 1e10))
    late = solve(Problem(X, y), time_limit=1e-12)
    for solution in (hopeless, late):
        assert solution.trace[-1].active == len(y)
        assert "iterations 0" in str(solution)


def test_a_start_far_away_gives_no_warning(problem):
    start = (np.ones(3000), np.full(16, 1e200), 0.0)
    with np.errstate(all="raise"):
        for solver in ("interior_point", "augmented_lagrangian"):
            assert solve(problem, solver, start=start).status == "numerical_error"
        assert solve(problem, start=start).status == "solved"  # by a reserve


def test_a_gap_below_rounding_is_no_proof(problem):
    solution = solve(problem, tol=1e-30)
    assert solution.status == "stalled"  # not 200 iterations of rounding
    assert solution.certificate.relative_gap >= np.finfo(float).eps


@pytest.mark.parametrize("what", ["problem", "callback"])
def test_what_is_no_problem_or_callback(problem, what):
    arguments = {"problem": problem, "callback": print, what: [3]}
    with pytest.raises(TypeError, match=f"'{what}' parameter of solve"):
        solve(**arguments)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"tol": 0.0}, r"'tol' parameter of solve must be a float .* Got 0.0 instead"),
        ({"tol": -1}, "'tol' parameter of solve"),
        ({"tol": float("nan")}, "'tol' parameter of solve"),
        ({"max_iter": 0}, r"'max_iter' .* an int in the range \[1, inf\) or None"),
        ({"time_limit": -3.0}, "'time_limit' .* Got -3.0 instead"),
        (
            {"solver": "interior"},
            "'solver' .* one of 'auto', .* Got 'interior'",
        ),
    ],
)
def test_parameters_out_of_range(problem, parameters, message):
    with pytest.raises(ValueError, match=message):
        solve(problem, **parameters)


def test_a_solver_can_be_named_or_given(problem):
    assert solve(problem).reason.startswith("because")
    assert solve(problem, "interior_point").reason == "as asked"
    assert solve(problem, InteriorPoint()).solver == "interior_point"


# -- solvers that misbehave ------------------------------------------------------------


class Scripted(Solver):
    """Yields steps with given objective values around a fixed point, then ends."""

    name, default_max_iter, patience = "scripted", 50, 10

    def __init__(self, values, end=None):
        self.values, self.end = values, end

    def supports(self, problem):
        return None

    def iterate(self, problem, start, tol):
        state, v = problem.dual_state(0.5), np.zeros(problem.A.shape[1])
        for i, (primal, dual) in enumerate(self.values):
            yield Step(i, primal, dual, 0.0, 1, at=lambda: (v, state))
        if self.end is not None:
            raise self.end


def test_estimates_that_certificates_refute_end_a_run(problem):
    """Rounding may hide the gap from a solver, which would go on for ever."""
    boast = Scripted([(1.0, 1.0 - 1e-5 * 0.4**k) for k in range(30)])
    solution = run(problem, ChosenSolver(boast, "as asked"), Limits())
    assert solution.status == "stalled"
    assert len(solution.trace) == 4
    assert solution.certificate.relative_gap == pytest.approx(1.0)  # that of zero
    assert "before anything useful was proved" in solution.message


def test_a_solver_cannot_certify_itself(problem):
    boast = Scripted([(1.0, 1.0)] * 30)
    solution = run(problem, ChosenSolver(boast, "as asked"), Limits())
    assert solution.status != "solved"
    assert solution.certificate.relative_gap > 1e-4
    assert certificate_holds(problem, solution)


@pytest.mark.parametrize(
    "error", [FloatingPointError("nan"), np.linalg.LinAlgError("singular")]
)
def test_breakdown_is_a_status(problem, error):
    solution = run(
        problem, ChosenSolver(Scripted([(9.0, 1.0)], end=error), "as asked"), Limits()
    )
    assert solution.status == "numerical_error"
    assert "numerical breakdown" in solution.message


def test_bounds_that_later_ones_contradict_are_given_up():
    X, y = np.eye(2), np.array([1.0, -1.0])
    problem = Problem(X, y, kernel=Kernel("linear"))
    best, state = Best(problem), problem.state(alpha=0.5)
    best.offer(np.full(problem.order, 7.0), state, 1.9, 1.899)
    best.offer(np.full(problem.order, 8.0), state, 1.2, 1.1)  # at most 1.2, not 1.899
    assert (best.v[0], best.primal, best.dual) == (8.0, 1.2, 1.1)
    best.offer(np.full(problem.order, 9.0), state, 1.09, 0.9)  # is nearer than its gap
    assert best.v[0] == 8.0


def test_lack_of_progress_is_a_status(problem):
    solution = run(
        problem,
        ChosenSolver(Scripted([(9.0, 1.0)] * 1000), "as asked"),
        Limits(max_iter=1000),
    )
    assert solution.status == "stalled"
    assert len(solution.trace) == Scripted.patience + 1
    assert "lack of progress" in solution.message


@pytest.mark.parametrize("bounds", [(np.nan, np.nan), (9.0, np.nan), (np.nan, 1.0)])
def test_nan_is_a_breakdown_and_does_not_hide_an_answer(problem, bounds):
    plan = ChosenSolver(Scripted([(9.0, 1.0), bounds, (8.0, 2.0)]), "as asked")
    solution = run(problem, plan, Limits())
    assert solution.status == "numerical_error"
    assert "Stopped by a numerical breakdown" in solution.message
    assert len(solution.trace) == 2
    assert np.isfinite(solution.certificate.primal)


class Wordless(Scripted):
    """A solver that has forgotten to yield."""

    def iterate(self, problem, start, tol):
        return None


class Tuples(Scripted):
    """A solver that yields numbers, or nothing."""

    def iterate(self, problem, start, tol):
        yield self.values


@pytest.mark.parametrize(
    ("solver", "words"),
    [
        (Wordless([]), "Wordless.iterate must be a generator: it yields a Step an "
         "iteration. Got one that returns NoneType instead."),
        (Tuples((0, 9.0, 1.0)), "Tuples.iterate must yield Step objects. Got tuple "
         "instead."),
        (Tuples(None), "Tuples.iterate must yield Step objects. Got NoneType instead."),
        (Tuples, r"must be a solver object. Got the class Tuples instead: write "
         r"Tuples\(\)."),
    ],
)  # fmt: skip
def test_a_solver_that_is_not_one_is_told_in_one_sentence(problem, solver, words):
    with pytest.raises(TypeError, match=f"^[^.]*{words}$"):
        solve(problem, solver)


def test_an_estimator_refuses_a_class(problem):
    with pytest.raises(TypeError, match=r"Got the class InteriorPoint instead: write"):
        LinearSVC(solver=InteriorPoint).fit(np.eye(2), [0, 1])
    with pytest.raises(TypeError, match=r"Got the class IRWLS instead: write IRWLS"):
        SVC(solver=IRWLS).fit(np.eye(2), [0, 1])


def test_other_errors_are_raised(problem):
    with pytest.raises(MemoryError):
        run(
            problem,
            ChosenSolver(Scripted([(9.0, 1.0)], end=MemoryError()), "as asked"),
            Limits(),
        )


def test_a_problem_that_a_solver_does_not_support(problem):
    @dataclasses.dataclass(frozen=True)
    class Picky(InteriorPoint):
        def supports(self, problem):
            return "Picky solves nothing."

    with pytest.raises(ValueError, match="Picky solves nothing"):
        solve(problem, Picky())


def test_print_of_a_solution(problem):
    text = str(solve(problem))
    assert text.startswith("Solved to a relative gap of ")
    assert "by augmented_lagrangian, because" in text
    assert "support vectors" in text
    stopped = str(solve(problem, max_iter=5))
    assert stopped.startswith("Stopped (max_iter) at a relative gap of ")
    stopped = str(solve(problem, max_iter=2))
    words = "Stopped (max_iter) before anything useful was proved (asked: a relative"
    assert stopped.startswith(words)


@pytest.mark.parametrize(
    ("n", "degree", "coef0", "products"),
    [(2, 3, 0.0, 4), (2, 3, 1.0, 10), (3, 2, 0.0, 6), (6, 4, 1.0, None)],
)
def test_the_message_names_the_columns_that_a_polynomial_is_linear_in(
    n, degree, coef0, products
):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(200, n)), np.where(np.arange(200) % 2, 1.0, -1.0)
    kernel = Kernel("poly", degree=degree, gamma=1.0, coef0=coef0)
    problem = Problem(X, y, C=100.0, kernel=kernel)
    solution = solve(problem, callback=lambda step: True)
    assert solution.status is Status.STOPPED_BY_CALLBACK
    said = f"linear in {products} products" in solution.message
    assert said == (products is not None)
    assert ("products" in solution.message) == said


def test_the_best_certificate_is_kept_not_the_last(problem, monkeypatch):
    """Rounding may prove less of a later point."""
    proved = iter([1e-3, 1e-5, *[1e-2] * 1000])
    answer = Best.answer

    def worse(best, tol):
        found = answer(best, tol)
        primal, gap = found.certificate.primal, next(proved)
        bounds = Certificate(primal, primal * (1.0 - gap))
        return dataclasses.replace(found, certificate=bounds)

    monkeypatch.setattr(Best, "answer", worse)
    solution = solve(problem, tol=1e-9)
    assert solution.certificate.relative_gap == pytest.approx(1e-5)
    assert next(proved) == 1e-2
