"""Interruptions, errors and threads of a sweep."""

import concurrent.futures
import copy
import math
import multiprocessing
import os
import pickle
import signal
import sys
import threading
import time
import warnings

import numpy as np
import pytest
import threadpoolctl

from tests.cases.process_rows import ProcessRows
from tests.cases.waits import HANGS
from widemargin import as_rows
from widemargin.data.blocks import SMALL
from widemargin.system.threads import ONE_BLAS_THREAD, n_threads


def usable(rows):
    np.testing.assert_array_equal(rows.rmatvec(np.ones(rows.shape[0])), [rows.shape[0]])


def interrupt_main():
    if sys.platform == "win32":
        signal.raise_signal(signal.SIGINT)
    else:  # where Ctrl-C arrives
        signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)


@pytest.mark.parametrize("how", ["raised", "signal"])
@pytest.mark.parametrize("n_jobs", [1, 4])
def test_ctrl_c_stops_all_threads_and_leaves_the_rows_usable(how, n_jobs):
    m = 400
    rows = as_rows(np.ones((m, 1)), n_jobs=n_jobs, memory_limit=1)
    begun = []

    def slow(block, part):
        begun.append(threading.get_ident())
        if len(begun) == 4:
            if how == "raised":
                raise KeyboardInterrupt
            interrupt_main()
        time.sleep(0.02)  # all blocks would take 2 s on four threads

    limits = [library["num_threads"] for library in threadpoolctl.threadpool_info()]
    with pytest.raises(KeyboardInterrupt):
        rows.sweep(slow)
    count = len(begun)
    assert count < m
    time.sleep(0.1)
    assert len(begun) == count  # no thread goes on behind our back
    assert limits == [
        library["num_threads"] for library in threadpoolctl.threadpool_info()
    ]
    usable(rows)


@pytest.mark.parametrize("n_jobs", [1, 4])
def test_an_error_stops_the_sweep_and_comes_out_as_it_is(n_jobs):
    rows = as_rows(np.ones((400, 1)), n_jobs=n_jobs, memory_limit=1)
    # Where the fourth of eight lanes begins: no lane before must run to its end.
    state, begun = rows.state(row=np.arange(400), bad=np.arange(400) == 150), []

    def failing(block, part):
        begun.append(part.row[0])
        if part.bad[0]:
            raise ZeroDivisionError("row 150")
        if n_jobs > 1:
            time.sleep(0.02)  # a lane takes a second

    with pytest.raises(ZeroDivisionError, match="row 150"):
        rows.sweep(failing, state)
    assert len(begun) <= (151 if n_jobs == 1 else 150)
    usable(rows)


def _fail(block, part):
    raise ZeroDivisionError("not here")


def _interrupt(part):
    raise KeyboardInterrupt


def test_errors_come_back_from_another_process():
    rows = ProcessRows(np.ones((5, 1)))
    with pytest.raises(ZeroDivisionError, match="not here"):
        rows.sweep(_fail)
    with pytest.raises(KeyboardInterrupt):
        rows.state(a=0.0).sweep(_interrupt)
    usable(rows)


def blas_threads():
    found = threadpoolctl.threadpool_info()
    return [
        library["num_threads"] for library in found if library["user_api"] == "blas"
    ]


@pytest.fixture
def two_blas_threads():
    """As where one process has the machine: `make test` gives each of its one."""
    with threadpoolctl.threadpool_limits(2, user_api="blas"):
        assert set(blas_threads()) == {2}
        yield


@pytest.mark.usefixtures("two_blas_threads")
def test_blas_runs_on_one_thread_within_sweeps_only():
    before = blas_threads()
    rows = as_rows(np.ones((40, 1)), n_jobs=2, memory_limit=1)
    within = rows.sweep(lambda block, part: blas_threads())
    assert set(within) <= {1}
    assert blas_threads() == before
    with pytest.raises(ZeroDivisionError):
        rows.sweep(_fail)
    assert blas_threads() == before


@pytest.mark.usefixtures("two_blas_threads")
def test_blas_gets_its_threads_back_when_the_last_sweep_ends():
    before = blas_threads()
    as_rows(np.ones((SMALL + 1, 1))).matvec(
        [1.0]
    )  # the first thread to limit BLAS is this one
    rows = as_rows(np.ones((SMALL + 1, 1)), n_jobs=1)

    def sweep(begun, end):
        return rows.sweep(lambda block, part: begun.set() or end.wait(HANGS))

    (began, end), (began_later, end_later) = [
        (threading.Event(), threading.Event()) for _ in range(2)
    ]
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        first = pool.submit(sweep, began, end)
        assert began.wait(HANGS)
        assert set(blas_threads()) == {1}
        # Rows that are made now may use all threads nevertheless.
        assert n_threads(None) == max(before)
        later = pool.submit(sweep, began_later, end_later)
        assert began_later.wait(HANGS)
        end.set()
        assert first.result(HANGS)
        assert set(blas_threads()) == {1}
        end_later.set()
        assert later.result(HANGS)
    assert blas_threads() == before


def test_as_many_threads_as_blas_may_use():
    with threadpoolctl.threadpool_limits(1, user_api="blas"):
        assert n_threads(None) == 1
        assert n_threads(-1) == 1
        assert n_threads(3) == 3


def test_numpy_errors_are_handled_as_where_the_sweep_began():
    for make in (as_rows, ProcessRows):
        rows = make(np.zeros((40, 1)), n_jobs=2, memory_limit=1)
        with np.errstate(divide="raise"), pytest.raises(FloatingPointError):
            rows.sweep(_divide)
        with np.errstate(divide="ignore"):
            assert rows.sweep(_divide) == math.inf


def _divide(block, part):
    return float((1.0 / block).sum())


def _forked(rows, queue):
    queue.put(rows.rmatvec(np.ones(rows.shape[0])))


@pytest.mark.skipif(sys.platform != "linux", reason="forks")
def test_rows_can_be_used_after_a_fork():
    rows = as_rows(np.ones((40, 1)), n_jobs=2, memory_limit=1)
    usable(rows)  # now there are threads, which the fork has not
    context = multiprocessing.get_context("fork")
    queue = context.Queue()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of forks with threads
        child = context.Process(target=_forked, args=(rows, queue), daemon=True)
        child.start()
    np.testing.assert_array_equal(queue.get(timeout=HANGS), [40.0])
    child.join(HANGS)


def test_rows_and_states_can_be_copied_and_pickled():
    rows = as_rows(np.ones((40, 1)), n_jobs=2, memory_limit=1)
    half = rows.select(np.arange(40) < 20)
    usable(half)
    for copied in (copy.copy, copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))):
        for view in (rows, half):
            usable(copied(view))
            state = copied(view.state(alpha=2.0))
            assert state.sweep(_sum_alpha) == 2.0 * view.shape[0]


def _sum_alpha(part):
    return float(part.alpha.sum())


def test_a_limit_that_ctrl_c_left_behind_goes_with_the_next_sweep(monkeypatch):
    before, rows = blas_threads(), as_rows(np.ones((SMALL + 1, 1)))

    def interrupted(threads):
        monkeypatch.undo()
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt), ONE_BLAS_THREAD:
        monkeypatch.setattr("widemargin.system.threads._set_blas_threads", interrupted)
    assert n_threads(None) == max(before)
    rows.matvec([1.0])
    assert blas_threads() == before


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system has no fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_fork_during_a_sweep_of_another_thread():
    began, end = threading.Event(), threading.Event()

    def sweep():
        with ONE_BLAS_THREAD:
            began.set()
            end.wait(HANGS)

    other = threading.Thread(target=sweep)
    other.start()
    began.wait(HANGS)
    child = os.fork()
    if child == 0:  # the other thread, and its sweep, are not here
        as_rows(np.ones((SMALL + 1, 1))).matvec([1.0])
        os._exit(0 if max(blas_threads()) == n_threads(None) else 1)
    end.set()
    other.join()
    assert os.waitpid(child, 0)[1] == 0
