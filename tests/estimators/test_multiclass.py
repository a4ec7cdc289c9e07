"""Several classes: one against the rest, sharing reads, clock and limits."""

import functools
import re
import signal
import sys
import threading
import time
import types

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.multiclass import OneVsRestClassifier

from tests.cases.waits import HANGS
from widemargin import LinearSVC, as_rows
from widemargin.data import shared
from widemargin.data.memory import MemoryRows
from widemargin.data.shared import solve_apart, solve_together
from widemargin.estimators import solving
from widemargin.solvers.driver.limits import Clock


def test_multiclass_is_one_against_the_rest(iris):
    X, y = iris
    ours = LinearSVC(tol=1e-8).fit(X, y)
    theirs = OneVsRestClassifier(LinearSVC(tol=1e-8)).fit(X, y)
    assert ours.coef_.shape == (3, 4)
    assert len(ours.solutions_) == 3
    for k, single in enumerate(theirs.estimators_):
        np.testing.assert_allclose(ours.coef_[k], single.coef_[0], rtol=1e-6, atol=1e-9)
    np.testing.assert_array_equal(ours.predict(X), theirs.predict(X))
    assert ours.dual_gap_ == max(s.certificate.relative_gap for s in ours.solutions_)


def test_classes_share_the_reads_of_the_data(iris):
    X, y = iris
    together = as_rows(X)
    clf = LinearSVC().fit(together, y)
    alone = []
    for label in clf.classes_:
        rows = as_rows(X)
        LinearSVC().fit(rows, y == label)
        alone.append(rows.sweeps)
    assert together.sweeps <= max(alone) + 2
    assert together.sweeps < 0.5 * sum(alone)


def test_classes_in_groups_when_memory_is_short(iris):
    X, y = iris
    whole = LinearSVC(tol=1e-6).fit(X, y)
    split = LinearSVC(tol=1e-6, memory_limit=1 << 14).fit(X, y)
    np.testing.assert_allclose(whole.coef_, split.coef_, rtol=1e-4, atol=1e-8)


def test_time_limit_is_that_of_the_whole_fit(iris):
    X, y = iris
    with pytest.warns(ConvergenceWarning, match=r"Stopped by time_limit=1e-09 s"):
        clf = LinearSVC(time_limit=1e-9, memory_limit=1 << 14).fit(X, y)
    assert all(len(s.trace) == 1 for s in clf.solutions_)


@pytest.fixture
def now(monkeypatch):
    """The time in seconds, in a list: it passes when a test says so."""
    time = [1000.0]
    fake = types.SimpleNamespace(perf_counter=lambda: time[0])
    monkeypatch.setattr("widemargin.solvers.driver.limits.time", fake)
    return time


@pytest.mark.parametrize("memory_limit", [None, 1 << 14])
def test_callbacks_of_all_classes_are_off_the_one_clock(iris, now, memory_limit):
    def slow(step):
        now[0] += 100.0

    clf = LinearSVC(time_limit=1.0, memory_limit=memory_limit, callback=slow)
    clf.fit(*iris)
    assert clf.status_ == "solved"
    assert {s.seconds for s in clf.solutions_} == {0.0}


def test_time_that_several_threads_pause_counts_once(now):
    clock = Clock()

    def outer():
        now[0] += 1.0
        clock.pause(inner)
        now[0] += 2.0
        assert clock.seconds() == 5.0

    def inner():
        now[0] += 10.0

    now[0] += 5.0
    clock.pause(outer)
    now[0] += 7.0
    assert clock.seconds() == 12.0


def test_a_class_without_time_is_zero_and_certified(iris, now, monkeypatch):
    X, y = iris

    def slow_sweep(*args):
        now[0] += 1.0
        return sweep(*args)

    # Five reads of the data, at a second each.
    sweep = MemoryRows.sweep
    monkeypatch.setattr(MemoryRows, "sweep", slow_sweep)
    clf = LinearSVC(time_limit=5.25, memory_limit=1 << 14, tol=1e-8)
    with pytest.warns(ConvergenceWarning, match=re.escape("time_limit=5.25 s")):
        clf.fit(X, y)
    first, *others = clf.solutions_
    assert first.trace[-1].iteration > 0
    for solution in others:
        assert solution.status == "time_limit"
        assert not solution.w.any()
        assert solution.certificate.primal == pytest.approx(len(y))
        assert solution.certificate.dual == 0.0
        assert [step.iteration for step in solution.trace] == [0]
        assert solution.seconds <= 2.0
    assert clf.predict(X).shape == y.shape


def test_no_solve_outlives_a_second_ctrl_c():
    def work(rows):
        try:
            while True:
                rows.sweep(press)
        except KeyboardInterrupt:
            return rows.sweep(press)  # for its last answer

    def press(block, part):
        raise KeyboardInterrupt

    before = threading.active_count()
    rows = as_rows(np.ones((40, 1)), n_jobs=1)
    with pytest.raises(KeyboardInterrupt):
        solve_together(rows, [work] * 4)
    for thread in threading.enumerate():
        if "work" in thread.name:
            thread.join(HANGS)
    assert threading.active_count() <= before  # idle threads of old pools may end


# -- one solve in each thread ----------------------------------------------------------


@pytest.mark.parametrize(
    ("loss", "n_jobs", "multi_class"),
    [
        ("hinge", 2, "ovr"),
        ("hinge", 2, "ovo"),
        ("squared_hinge", 1, "ovr"),
        ("squared_hinge", 2, "ovo"),
    ],
)
def test_classes_apart_have_the_answers_of_classes_together(
    monkeypatch, loss, n_jobs, multi_class
):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(3000, 300))
    y = np.argmax(X[:, :4] + rng.normal(size=(3000, 4)), axis=1)
    apart = []
    clf = LinearSVC(loss=loss, C=10.0, n_jobs=n_jobs, multi_class=multi_class)
    solve_apart = shared.solve_apart
    note = lambda *args: apart.append(1) or solve_apart(*args)  # noqa: E731
    monkeypatch.setattr(shared, "solve_apart", note)
    one = clf.fit(X, y).coef_
    assert apart
    monkeypatch.setattr(shared, "APART_BYTES", 0)
    np.testing.assert_array_equal(one, clone(clf).fit(X, y).coef_)
    assert len(apart) == 1


def test_no_more_solves_at_a_time_than_threads():
    """And as many: each waits for another one."""
    running, most, lock = [], [], threading.Lock()
    both = threading.Barrier(2, timeout=HANGS)

    def work(rows, k, meet):
        with lock:
            running.append(k)
            most.append(len(running))
        rows.sweep(lambda block, part: meet())
        with lock:
            running.remove(k)
        return k

    def solves(meet):
        return [functools.partial(work, k=k, meet=meet) for k in range(6)]

    rows = as_rows(np.ones((40, 1)), n_jobs=2)
    assert solve_apart(rows, solves(both.wait)) == list(range(6))
    assert max(most) == 2
    most.clear()
    alone = solves(lambda: time.sleep(0.02))
    assert solve_apart(rows, alone, memory_limit=1) == list(range(6))
    assert max(most) == 1
    assert rows.sweeps == 1 + 12  # and one for the moments, which it keeps


@pytest.fixture
def press():
    """Presses Ctrl-C, once for each event, while the main thread serves solves."""
    main, pressers = threading.main_thread().ident, []

    def is_served():
        frame = sys._current_frames()[main]
        while frame is not None and frame.f_code.co_name != "_serve":
            frame = frame.f_back
        return frame is not None

    def run(events):
        for event in events:  # two at once would be one
            assert event.wait(HANGS)
            while not is_served():
                time.sleep(1e-3)
            signal.pthread_kill(main, signal.SIGINT)

    def start(*events):
        pressers.append(threading.Thread(target=run, args=(events,)))
        pressers[-1].start()

    yield start
    for presser in pressers:
        presser.join(HANGS)


@pytest.mark.skipif(sys.platform == "win32", reason="sends SIGINT to a thread")
@pytest.mark.parametrize("presses", [1, 2])
def test_ctrl_c_reaches_solves_apart(press, presses):
    """Those that have not begun, too; a second one ends all, and begins no more."""
    begun, told, count = threading.Event(), threading.Event(), []

    def spend(rows):
        end = time.monotonic() + HANGS
        while time.monotonic() < end:
            rows.sweep(lambda block, part: time.sleep(1e-3))
            rows.check_interrupted()
        raise AssertionError("nobody was told")

    def work(rows):
        count.append(rows)
        begun.set()
        try:
            spend(rows)
        except KeyboardInterrupt:
            told.set()
            rows.sweep(lambda block, part: None)  # for its last answer
            if presses == 2:
                spend(rows)
            return "told"

    rows, before = as_rows(np.ones((40, 1)), n_jobs=2), threading.active_count()
    press(*(begun, told)[:presses])
    if presses == 1:
        assert solve_apart(rows, [work] * 5) == ["told"] * 5
    else:
        with pytest.raises(KeyboardInterrupt):
            solve_apart(rows, [work] * 5)
        # One in the core when Python ends would abort the process.
        assert not any("(work)" in one.name for one in threading.enumerate())
    for thread in threading.enumerate():
        if "(work)" in thread.name:
            thread.join(HANGS)
    assert threading.active_count() <= before + 1  # who presses
    assert len(count) == (5 if presses == 1 else 2)


@pytest.mark.skipif(sys.platform == "win32", reason="sends SIGINT to a thread")
@pytest.mark.parametrize("multi_class", ["ovr", "ovo"])
@pytest.mark.parametrize("weights", [None, "some are zero"])
def test_ctrl_c_keeps_a_model_of_classes_apart(
    press, monkeypatch, multi_class, weights
):
    rng, begun = np.random.default_rng(0), threading.Event()
    X = rng.normal(size=(4000, 150))
    y = np.argmax(X[:, :5] + rng.normal(size=(4000, 5)), axis=1)
    weights = None if weights is None else rng.integers(0, 3, 4000)
    solve, n_solved = solving.solve_task, []

    def noted(*args, **how):
        begun.set()
        n_solved.append(1)
        return solve(*args, **how)

    monkeypatch.setattr(solving, "solve_task", noted)
    solver = "augmented_lagrangian"
    clf = LinearSVC(loss="hinge", multi_class=multi_class, solver=solver, C=100.0)
    press(begun)
    with pytest.raises(KeyboardInterrupt):
        clf.fit(X, y, weights)
    assert clf.status_ == "interrupted"
    assert len(clf.solutions_) == len(n_solved) == (5 if multi_class == "ovr" else 10)
    assert {one.status for one in clf.solutions_} <= {"interrupted", "solved"}
    assert clf.predict(X).shape == y.shape


def test_an_error_of_a_solve_apart_is_raised():
    """And no more solves begin."""
    count = []

    def work(rows, k):
        count.append(k)
        if k == 0:
            raise ValueError("one of them")
        rows.sweep(lambda block, part: time.sleep(0.05))

    rows = as_rows(np.ones((40, 1)), n_jobs=2)
    with pytest.raises(ValueError, match="one of them"):
        solve_apart(rows, [functools.partial(work, k=k) for k in range(20)])
    assert len(count) <= 3
