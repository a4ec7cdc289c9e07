"""Several classes: one against the rest, sharing reads, clock and limits."""

import re
import threading
import types

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning
from sklearn.multiclass import OneVsRestClassifier

from tests.cases.waits import HANGS
from widemargin import LinearSVC, as_rows
from widemargin.data.memory import MemoryRows
from widemargin.data.shared import solve_together
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
