"""Kernel fits that end early: their best point stays, with bounds that say so.

Limits are iterations, callbacks, errors in the place of lacking time, and a clock that
exact scores move.
"""

import _thread
import re

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from widemargin import SVC, SVCCV, Kernel, NuSVC, OneClassSVM, Problem, solve
from widemargin.estimators import solving
from widemargin.kernels.grouped import Grouped
from widemargin.kernels.matrix import Columns
from widemargin.problems import kernel as kernel_problem
from widemargin.problems.kernel import KernelProblem
from widemargin.problems.regression import regression_problem
from widemargin.problems.scores import PARTS, Sums
from widemargin.report.course import convergence
from widemargin.solution import Certificate
from widemargin.solvers import IRWLS
from widemargin.solvers.driver import limits
from widemargin.solvers.driver.best import Answer, Best
from widemargin.solvers.kernel import batch
from widemargin.system import deadline
from widemargin.system.deadline import GRACE, Deadline, OutOfTime, until

RBF = Kernel("rbf", gamma=0.5)
M = 600
# Of so many rows no problem is small, and values are float32.
SOME = IRWLS(working_set=64)


@pytest.fixture(autouse=True)
def _no_problem_is_small(monkeypatch):
    monkeypatch.setattr(kernel_problem, "ALL_ROWS", 0)


def data(m=M):
    """Noisy classes that rows with large C fit: (X, y)."""
    draw = np.random.default_rng(0)
    X = draw.normal(size=(m, 5))
    y = np.where(X[:, 0] * X[:, 1] + 0.3 * draw.normal(size=m) > 0, 1, -1)
    return X, y


def problem_of(C=1e6, **options):
    """A problem whose C makes much of rounding."""
    X, y = data()
    return Problem(X, y, C, kernel=RBF, **options)


def late(*_, **__):
    """There is no time."""
    raise OutOfTime


def assert_proved(solution, problem):
    """The bounds are those of the answer, hardly any of them rounding."""
    bounds = solution.certificate
    again = problem.certify(solution.alpha, solution.w, solution.b)
    assert bounds.rounding <= 0.1 * bounds.gap
    little = 1e-9 * abs(again.primal)
    assert 0 <= bounds.primal - again.primal + little <= bounds.rounding + 2 * little
    assert 0 <= again.dual - bounds.dual + little <= bounds.rounding + 2 * little


# -- there is time ---------------------------------------------------------------------


def at(gap, what):
    """A callback that asks for an end at a gap."""
    return lambda step: what() if step.best_gap < gap else None


@pytest.mark.parametrize(
    ("gap", "intercept"), [(0.9, "free"), (0.5, "none"), (0.1, "penalized")]
)
def test_a_fit_that_ends_early_has_an_exact_certificate(gap, intercept):
    """Bounds of scores that followed were worse than those of zero."""
    problem = problem_of(intercept=intercept)
    solution = solve(problem, SOME, callback=at(gap, lambda: True), tol=1e-8)
    assert solution.status == "stopped_by_callback"
    assert_proved(solution, problem)
    most = solution.trace[-1].iteration
    solution = solve(problem, SOME, max_iter=most, tol=1e-8)
    assert solution.status == "max_iter"
    assert_proved(solution, problem)
    pressed = at(gap, _thread.interrupt_main)
    solution = solve(problem, SOME, callback=pressed, tol=1e-8)
    assert solution.status == "interrupted"
    assert_proved(solution, problem)


def test_ctrl_c_while_the_certificate_is_made_ends_all(monkeypatch):
    presses = []

    def press(*args):
        presses.append(args)
        raise KeyboardInterrupt

    monkeypatch.setattr(KernelProblem, "prove", press)
    with pytest.raises(KeyboardInterrupt):
        solve(problem_of(), SOME, callback=press)
    assert len(presses) == 2


# -- there is little time --------------------------------------------------------------


class Clock:
    """Time that exact scores take, of all rows so many seconds, and steps."""

    def __init__(self, monkeypatch, seconds):
        self.now = 0.0
        bounded = Columns.bounded

        def slow(columns, rows, J, c):
            for _ in np.array_split(rows, 4):
                self.now += 0.25 * seconds * len(rows) / columns.shape[0]
                deadline.check()
            return bounded(columns, rows, J, c)

        monkeypatch.setattr(Columns, "bounded", slow)
        monkeypatch.setattr(limits, "time", self)

    def perf_counter(self):
        """The time, in seconds: a look at it takes some."""
        self.now += 1e-5
        return self.now


class SlowSteps(IRWLS):
    """IRWLS whose steps take 0.1 s each, but those of problems with few rows."""

    def __init__(self, clock, few=0, **options):
        super().__init__(**options)
        object.__setattr__(self, "clock", clock)
        object.__setattr__(self, "few", few)

    def iterate(self, problem, start, tol):
        """The steps."""
        for step in super().iterate(problem, start, tol):
            self.clock.now += 0.1 * (problem.rows.shape[0] > self.few)
            deadline.check()
            yield step


@pytest.mark.parametrize("seconds", [0.2, 1.0, 2.0])
@pytest.mark.parametrize("limit", [4.0, 6.5, 9.0])
def test_time_for_the_certificate_is_foreseen(monkeypatch, seconds, limit):
    """It was zero, or all rounding, where the certificate took longer than the grace."""
    clock = Clock(monkeypatch, seconds)
    problem = problem_of(C=1e4)
    solver = SlowSteps(clock, working_set=8)
    begin = clock.now
    solution = solve(problem, solver, tol=1e-9, time_limit=limit)
    assert solution.status == "time_limit"
    assert clock.now - begin <= limit + GRACE + 0.2
    last = solution.trace[-1]
    assert last.seconds >= 0.4 * limit
    assert solution.certificate.primal <= 1.01 * last.best_primal
    monkeypatch.undo()
    assert_proved(solution, problem)


def test_no_time_is_kept_for_a_certificate_that_would_take_too_long(monkeypatch):
    clock = Clock(monkeypatch, 8.0)
    problem, begin = problem_of(C=1e4), clock.now
    solver = SlowSteps(clock, working_set=8)
    solution = solve(problem, solver, tol=1e-9, time_limit=6.0)
    assert clock.now - begin <= 6.0 + GRACE + 2.0
    last = solution.trace[-1]
    assert last.seconds >= 5.5
    monkeypatch.undo()
    again = problem.certify(solution.alpha, solution.w, solution.b)
    assert again.primal == pytest.approx(last.best_primal, rel=1e-2)
    assert solution.certificate.dual == 0.0


@pytest.mark.parametrize("kind", ["free", "none", "squared_hinge", "equal rows"])
def test_without_any_time_the_best_point_is_kept(monkeypatch, kind):
    """It was zero, of which nothing was known either."""
    X, y = data()
    options = {"intercept": kind} if kind in ("free", "none") else {}
    if kind == "squared_hinge":
        options["loss"] = kind
    if kind == "equal rows":
        X, y = np.repeat(X, 2, axis=0), np.repeat(y, 2)
    problem = Problem(X, y, 100.0, kernel=RBF, **options)
    monkeypatch.setattr(KernelProblem, "answer", late)
    monkeypatch.setattr(KernelProblem, "answer_at_hand", late)
    solution = solve(problem, SOME, max_iter=30, tol=1e-8, time_limit=1e6)
    last, zero = solution.trace[-1], problem.constant[0].primal
    again = problem.certify(solution.alpha, solution.w, solution.b)
    assert again.primal == pytest.approx(last.best_primal, rel=1e-3)
    assert last.best_primal < 0.5 * zero
    assert solution.certificate == Certificate(np.inf, 0.0)
    words = "Stopped by max_iter=30 before anything useful was proved"
    assert solution.message.startswith(words)


def test_a_step_whose_point_there_was_no_time_to_keep_is_not_recorded(monkeypatch):
    """Its best values were NaN, the last ones of the trace."""
    offer, offered = Best.offer, []

    def ends(best, *point):
        offered.append(point)
        if len(offered) == 6:
            raise OutOfTime
        offer(best, *point)

    monkeypatch.setattr(Best, "offer", ends)
    solution = solve(problem_of(), SOME, tol=1e-8, time_limit=1e6)
    assert solution.status == "time_limit"
    assert len(solution.trace) == 5
    assert np.isfinite(solution.trace.column("best_primal")).all()


def test_scores_that_there_was_time_for_stay():
    problem = problem_of()
    c = problem.signs * (np.arange(M) % 3 == 0)
    scores = problem.expand(c)
    looks = iter(range(100))
    part = Deadline(lambda: float(next(looks)), np.inf)
    bounded, calls = problem.columns.bounded, []

    def ends(rows, J, change):
        if len(calls) == 3:
            raise OutOfTime
        calls.append(rows)
        return bounded(rows, J, change)

    problem.columns.bounded = ends
    with pytest.raises(OutOfTime), until(part):
        scores.refresh(np.arange(M))
    done = np.concatenate(calls)
    assert len(done) == 3 * M // PARTS
    assert np.all(c[done[: np.count_nonzero(c)]] != 0.0)  # both bounds need them
    assert np.array_equal(np.flatnonzero(scores.is_exact), np.sort(done))
    sums = scores.sums()
    assert np.all(sums.errors[done] < 1e-9)
    problem.columns.bounded = bounded
    assert np.all(np.abs(sums.values - problem._exact(c).values) <= sums.errors)


def test_both_rows_of_a_sample_are_in_one_part(monkeypatch):
    """Else each sample was computed twice."""
    X, _ = data()
    problem = regression_problem(X, np.sin(3.0 * X[:, 0]), kernel=RBF)
    scores = problem.expand(problem.signs * (np.arange(2 * M) % 3 == 0))
    sizes, bounded = [], Columns.bounded

    def counted(columns, rows, J, c):
        sizes.append(len(rows))
        return bounded(columns, rows, J, c)

    monkeypatch.setattr(Columns, "bounded", counted)
    with until(Deadline(lambda: 0.0, 1.0)):
        scores.refresh(np.arange(2 * M))
    assert len(sizes) == PARTS
    assert sum(sizes) <= M + PARTS


# -- bounds ----------------------------------------------------------------------------


@pytest.mark.parametrize("intercept", ["free", "penalized", "none"])
def test_what_proves_less_than_a_constant_is_the_best_one(intercept):
    problem = problem_of(C=10.0, intercept=intercept)
    found = solve(problem, tol=1e-3)
    c, best = problem.signs * found.alpha, Best(problem)
    exact = problem._exact(c)
    for off in (0.0, 1e3, np.inf):  # of which the last two hide how good it is
        with np.errstate(invalid="ignore"):
            bounds = problem.prove(c, Sums(exact.values, np.full(M, off)), found.b)
        answer = Answer(found.alpha, found.w, found.b, bounds)
        other = best.no_worse(answer, 1e-3)
        assert (other is answer) == (off == 0.0)
    own = problem.certify(other.alpha, other.w, other.b)
    assert not other.alpha.any()
    assert other.certificate.primal == pytest.approx(own.primal, rel=1e-12)
    assert other.certificate.primal <= problem.zero_objective * (1 + 1e-9)
    assert other.certificate.dual == 0.0


@pytest.mark.parametrize(
    ("bounds", "is_beaten"),
    [((2.0, -1.0), True), ((2.0, 1.5), False), ((0.5, -9.0), False)]
    + [((np.inf, 0.0), True), ((np.nan, np.nan), True), ((1.0, 0.0), False)],
)
def test_bounds_are_beaten_by_those_that_are_better_in_both(bounds, is_beaten):
    assert Certificate(*bounds).is_beaten_by(Certificate(1.0, 0.0)) == is_beaten


# -- what users are told ---------------------------------------------------------------


@pytest.mark.parametrize(
    "machine", [OneClassSVM(nu=0.3, max_iter=1), NuSVC(nu=0.2, max_iter=1)], ids=str
)
def test_a_number_without_meaning_is_not_told(machine):
    """It was a relative gap of 1e+06."""
    X, y = data()
    machine.set_params(gamma=0.5, solver=SOME)
    with pytest.warns(ConvergenceWarning) as caught:
        machine.fit(X, y)
    (said,) = {str(one.message) for one in caught}
    if machine.dual_gap_ < 1.0:
        pytest.skip("something was proved")
    assert "max_iter=1 before anything useful was proved" in said
    assert "e+" not in said
    assert "before anything useful was proved" in str(machine.solution_)


def test_the_problems_that_are_not_solved_are_counted():
    X, y = data()
    y3 = y + (X[:, 1] > 0)
    with pytest.warns(ConvergenceWarning) as caught:
        clf = SVC(C=1e4, gamma=0.5, max_iter=1, solver=SOME).fit(X, y3)
    k = len(clf.solutions_)
    assert k > 1
    words = rf"{k} of {k} binary problems are not solved\. The worst: Stopped by max_"
    assert re.match(words, str(caught[0].message))


def test_ctrl_c_says_what_the_estimator_has():
    X, y = data()

    def press(step):
        if step.iteration == 4:
            _thread.interrupt_main()

    clf = SVC(C=100.0, gamma=0.5, solver=SOME, callback=press)
    with pytest.raises(KeyboardInterrupt) as caught:
        clf.fit(X, y)
    said = str(caught.value)
    assert "the estimator has the best model so far" in said
    assert f"its relative gap is {clf.dual_gap_:.1e}." in said
    assert "call fit again" in said
    assert clf.predict(X).shape == y.shape


def test_the_report_of_a_fit_of_which_nothing_is_proved(monkeypatch):
    """Its lines were distances to bounds that they had left behind: 1e+00 to 1e+00."""
    monkeypatch.setattr(KernelProblem, "answer", late)
    monkeypatch.setattr(KernelProblem, "answer_at_hand", late)
    solution = solve(problem_of(100.0), SOME, max_iter=30, tol=1e-8, time_limit=1e6)
    assert solution.certificate.relative_gap >= 1.0
    end = solution.trace[-1].best_gap
    picture = convergence(solution)
    assert f"goes from 1.0e+00 to {end:.1e}" in picture.caption
    assert "certificate, which proves nothing of this yet" in picture.caption


# -- several solves in one time limit --------------------------------------------------


def test_a_problem_that_had_all_the_time_is_solved_once(monkeypatch):
    """It began anew in the time that was kept for its certificate."""
    clock, calls = Clock(monkeypatch, 2.0), []
    one = solving.solve_task

    def counted(*args):
        calls.append(args)
        return one(*args)

    monkeypatch.setattr(solving, "solve_task", counted)
    X, y = data()
    solver = SlowSteps(clock, working_set=8)
    clf = SVC(C=1e4, gamma=0.5, tol=1e-9, solver=solver, time_limit=8.0)
    with pytest.warns(ConvergenceWarning, match="time_limit=8.0 s at a relative"):
        clf.fit(X, y)
    assert len(calls) == 1
    assert clf.seconds_ < 7.8
    assert clf.solution_.seconds == pytest.approx(clf.seconds_, abs=0.1)


def test_a_problem_that_goes_on_keeps_its_trace(monkeypatch):
    """That of what others had left began at zero, and at 0 seconds."""
    clock, joined = Clock(monkeypatch, 0.01), []
    join = solving._joined

    def counted(*both):
        joined.append(join(*both))
        return joined[-1]

    monkeypatch.setattr(solving, "_joined", counted)
    X, y = data()
    y[-40:] = 3  # two problems of three are small
    solver = SlowSteps(clock, 400, working_set=8)
    clf = SVC(C=1e4, gamma=0.5, tol=1e-3, solver=solver, time_limit=20.0)
    with pytest.warns(ConvergenceWarning, match="1 of 3 binary problems are not"):
        clf.fit(X, y)
    assert [s.status for s in clf.solutions_] == ["time_limit", "solved", "solved"]
    (solution,) = joined
    assert solution is clf.solutions_[0]
    assert sum(s.seconds for s in clf.solutions_) == pytest.approx(clf.seconds_, abs=1)
    for column in ("iteration", "seconds"):
        assert np.all(np.diff(solution.trace.column(column)) > 0)
    best = solution.trace.column("best_primal")
    assert np.all(np.diff(best) <= 1e-3 * best[:-1])


def pairs():
    """Four noisy classes, of which each pair takes some time: (X, y)."""
    draw = np.random.default_rng(1)
    X = draw.normal(size=(1200, 4))
    return X, draw.integers(4, size=1200)


def without_time(monkeypatch, seconds):
    """Let the batch engine share so many seconds."""
    solve_core, ended = Grouped.solve, []

    def solve(self, *given):
        *given, (hopeless, _, *others) = given
        found = solve_core(self, *given, (hopeless, seconds, *others))
        ended.append(found[2])
        return found

    monkeypatch.setattr(Grouped, "solve", solve)
    return ended


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_pairs_share_the_time_so_that_each_has_a_function(monkeypatch, n_jobs):
    ended = without_time(monkeypatch, 0.0)
    solve_batch = solving.solve_batch

    def late_then(training):
        found = solve_batch(training)
        training.clock._begin -= 1000.0  # no time for another solver
        return found

    monkeypatch.setattr(solving, "solve_batch", late_then)
    X, y = pairs()
    machine = SVC(C=1000.0, gamma=2.0, time_limit=1000.0, n_jobs=n_jobs)
    with pytest.warns(ConvergenceWarning, match="6 of 6 binary problems are not solve"):
        machine.fit(X, y)
    (counts,) = ended
    assert (counts[:, 2] == batch.STOPPED).all()
    assert (counts[:, 0] > 0).all()
    assert machine.status_ == "time_limit"
    for solution in machine.solutions_:
        assert 0.0 < solution.certificate.dual < solution.certificate.primal
        assert solution.alpha.any()
    assert machine.score(X, y) > 0.5  # zero would tell no class from another


def test_pairs_go_on_where_there_is_time_left(monkeypatch):
    ended = without_time(monkeypatch, 0.0)
    X, y = pairs()
    machine = SVC(C=1000.0, gamma=2.0, time_limit=1000.0).fit(X, y)
    assert (ended[0][:, 2] == batch.STOPPED).all()
    assert machine.status_ == "solved"


def test_without_a_time_limit_no_pair_ends_for_another(monkeypatch):
    seen, solve_core = [], Grouped.solve

    def solve(self, *given):
        seen.append(given[-1][1])
        return solve_core(self, *given)

    monkeypatch.setattr(Grouped, "solve", solve)
    X, y = pairs()
    SVC().fit(X, y)
    SVCCV(Cs=[1.0], cv=2, time_limit=1000.0).fit(X, y)  # a point of a search is whole
    assert seen[:2] == [np.inf, np.inf]
    SVC(time_limit=1000.0).fit(X, y)
    assert 900.0 < seen[-1] < 1000.0
    SVC(time_limit=1000.0).fit(X, y > 1)  # alone
    assert seen[-1] == np.inf


def test_a_pair_that_needs_more_than_its_share_has_what_others_leave():
    """Two classes overlap, the others do not: the time of these is for the former."""
    draw = np.random.default_rng(0)
    y = draw.integers(6, size=1500)
    X = draw.normal(size=(1500, 6)) + 8.0 * np.eye(6)[np.where(y == 1, 0, y)]
    machine = SVC(C=1000.0, gamma=0.05, time_limit=1000.0)
    samples, solve_core = [], Grouped.solve

    def solve(self, *given):
        *given, (hopeless, _, *others) = given
        # So little that the first turns are too short, and enough for later ones.
        found = solve_core(self, *given, (hopeless, 1.0, *others))
        samples.append(found[2])
        return found

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Grouped, "solve", solve)
        machine.fit(X, y)
    assert machine.status_ == "solved"
    assert (samples[0][:, 2] == 1).all()
    assert {solution.solver for solution in machine.solutions_} == {"batch"}


def test_an_answer_that_goes_on_is_as_good_as_one_in_one_piece(monkeypatch):
    """Of little time some turns are too short: those problems have several."""
    X, y = pairs()
    whole = SVC(C=1000.0, gamma=2.0).fit(X, y)
    steps = [solution.extras["steps"] for solution in whole.solutions_]
    for seconds in (0.02, 0.05, 0.2):
        ended = without_time(monkeypatch, seconds)
        machine = SVC(C=1000.0, gamma=2.0, time_limit=1000.0).fit(X, y)
        assert machine.status_ == "solved"
        assert (ended[0][:, 0] <= 10 * np.max(steps)).all()
        for one, other in zip(whole.solutions_, machine.solutions_, strict=True):
            assert one.certificate.dual <= other.certificate.primal
            assert other.certificate.dual <= one.certificate.primal
        monkeypatch.undo()
        monkeypatch.setattr(kernel_problem, "ALL_ROWS", 0)


def test_a_limit_of_ages_is_none():
    X, y = pairs()
    free = SVC(C=10.0).fit(X, y)
    for limit in (1e10, 1e300):
        other = SVC(C=10.0, time_limit=limit).fit(X, y)
        assert other.intercept_.tolist() == free.intercept_.tolist()
        assert other.dual_gap_ == free.dual_gap_
