"""Fits on a cluster whose workers are killed, that is lost, or that are ended."""

import asyncio
import os
import signal
import threading
import time
import warnings

import dask.array as da
import numpy as np
import pytest
from distributed.chaos import KillWorker
from sklearn.exceptions import ConvergenceWarning

from tests.cases.clusters import cluster, mixture, process_ids
from tests.cases.waits import HANGS
from widemargin import SVC, LinearSVC
from widemargin.data.distributed import ClusterLostError
from widemargin.data.distributed import crew as crew_module
from widemargin.data.distributed import host as host_module
from widemargin.data.distributed import log as log_module
from widemargin.data.distributed import rows as rows_module
from widemargin.data.distributed.crew import Crew
from widemargin.data.distributed.host import Address
from widemargin.data.distributed.placing import neighbors, share_out
from widemargin.estimators import on_cluster
from widemargin.system.deadline import OutOfTime

pytestmark = pytest.mark.dask


@pytest.fixture(scope="module")
def client():
    with cluster(2, processes=True) as client:
        yield client


@pytest.fixture(scope="module")
def data():
    return arrays(*mixture(8000))


def arrays(X, y, rows=1000):
    return da.from_array(X, chunks=(rows, -1)), da.from_array(y, chunks=rows)


class Killer(Crew):
    """Kills a worker before one request; counts requests."""

    at, which, processes, made = None, 0, {}, []

    def __init__(self, *given):
        super().__init__(*given)
        self.count = 0
        Killer.made.append(self)

    def add(self, data, timeout=None):
        self.count += 1
        if self.count == Killer.at:
            worker = sorted(self._hosts)[Killer.which % len(self._hosts)]
            os.kill(Killer.processes[worker], signal.SIGKILL)
        return super().add(data, timeout)


@pytest.fixture
def killer(monkeypatch):
    monkeypatch.setattr(rows_module, "Crew", Killer)
    monkeypatch.setattr(Killer, "made", [])
    return Killer


def fitted(data, tol=1e-8, **options):
    return LinearSVC(tol=tol, **options).fit(*data)


def assert_same_bits(one, other):
    assert one.coef_.tobytes() == other.coef_.tobytes()
    assert one.intercept_.tobytes() == other.intercept_.tobytes()
    assert one.solution_.certificate == other.solution_.certificate


def wait_for(client, n_workers):
    """Wait until there are so many workers; LocalCluster may give up to start one."""
    try:
        client.wait_for_workers(n_workers, timeout=20)
    except TimeoutError:
        client.cluster.scale(len(client.cluster.worker_spec) + 1)
        client.wait_for_workers(n_workers, timeout=HANGS)


def killed_fits(client, data, killer, at, **options):
    """The answer, and those of fits in which a worker was killed."""
    whole = fitted(data, **options)
    n_requests = killer.made[-1].count
    for which, place in enumerate(at):
        wait_for(client, 2)
        killer.processes = process_ids(client)
        killer.at, killer.which = max(1, round(place * n_requests)), which
        found = fitted(data, **options)
        killer.at = None
        assert killer.made[-1].restored > 0
        assert_same_bits(found, whole)


def copy_often(monkeypatch):
    """Copy lanes after ten requests, however long these take."""
    monkeypatch.setattr(crew_module, "COPIED_AFTER", 10)
    monkeypatch.setattr(crew_module, "COPIED_SECONDS", 0.0)
    monkeypatch.setattr(crew_module, "COPIED_TIMES", 0.0)


def test_a_log_is_cut_at_the_copies_and_where_it_is_too_long(monkeypatch):
    monkeypatch.setattr(log_module, "MOST_BYTES", 100)
    log, entries = log_module.Log(), [bytes([k]) * 10 for k in range(20)]
    for k, entry in enumerate(entries[:10]):
        log.append(entry)
        log.cut(5)
        assert (len(log), log.first) == (k + 1, 0)
        assert log.after(k // 2) == entries[k // 2 : k + 1]
    log.append(entries[10])
    log.cut(5)  # more than 100 bytes: what is copied goes
    assert (len(log), log.first, log.size) == (11, 5, 60)
    assert log.after(4) is None
    assert log.after(5) == entries[5:11]
    for entry in entries[11:]:
        log.append(entry)
    log.cut(5)  # all else: no more than there is room for
    assert (len(log), log.first, log.size) == (20, 10, 100)
    assert log.after(20) == []
    log.append(bytes(1000))
    log.cut(0)
    assert log.after(19) == [entries[19], bytes(1000)]
    log.clear()
    assert (len(log), log.after(0)) == (0, [])


def no_room(data, folder):
    raise OSError("No space left on device")


def end_workers(client, n_workers, gap=1.0):
    """A callback that leaves so many workers of a cluster, at a step with this gap."""

    def end(step):
        late = step.iteration >= 6 and step.best_gap <= gap
        if late and len(client.cluster.workers) > n_workers:
            client.cluster.scale(n_workers)
            while len(client.nthreads()) > n_workers:
                time.sleep(0.01)

    return end


# Bytes of a log with room for about eight requests of 5 columns.
SHORT = 5000


@pytest.mark.parametrize(
    ("has_room", "most_bytes"), [(True, 1 << 20), (True, SHORT), (False, 1 << 20)]
)
def test_a_lost_lane_goes_on_from_its_copy(
    data, killer, monkeypatch, has_room, most_bytes
):
    """Where the disk of a worker has room for one; else it does all again."""
    copy_often(monkeypatch)
    monkeypatch.setattr(log_module, "MOST_BYTES", most_bytes)
    if not has_room:
        monkeypatch.setattr(host_module, "Stored", no_room)
    with cluster(2) as client:
        found = fitted(data, loss="hinge", callback=end_workers(client, 1))
        crew = killer.made[-1]
        assert crew.restored > 0
        assert (0 < crew.replayed <= 11) == has_room
        assert crew.count > 30
        assert_same_bits(found, fitted(data, loss="hinge"))


@pytest.mark.parametrize("solver", ["auto", "interior_point", "coordinate_descent"])
def test_rows_that_are_lost_with_their_copies_are_loaded_again(
    data, killer, monkeypatch, solver
):
    """A log that is cut at the copies cannot stand for them: the fit goes on."""
    copy_often(monkeypatch)
    monkeypatch.setattr(log_module, "MOST_BYTES", SHORT)
    sizes, options = [], {"loss": "hinge", "solver": solver, "C": 0.01}

    def watch(step, end=None):
        log = killer.made[-1]._log
        sizes.append((log.size, log.first, len(log)))
        if end is not None and len(killer.made) == 1:
            end(step)

    with cluster(3) as client:
        end = end_workers(client, 1, 1e-4)
        with pytest.warns(RuntimeWarning, match="loaded again"):
            found = fitted(data, callback=lambda step: watch(step, end), **options)
    assert len(killer.made) == 2
    assert found.status_ == "solved"
    assert max(size for size, _, _ in sizes) <= SHORT + 2000
    assert max(first for _, first, _ in sizes) > 0
    with cluster(1):
        whole = fitted(data, callback=watch, **options)
    both = [one.solution_.certificate.primal for one in (found, whole)]
    np.testing.assert_allclose(*both, rtol=2e-8)
    # It goes on from the weights that it had.
    assert found.solution_.trace[0].best_primal <= (1.0 + 1e-4) * both[1]
    assert whole.solution_.trace[0].best_primal > 1.1 * both[1]


def test_no_time_to_load_rows_again_is_said_with_the_best_model(
    data, killer, monkeypatch
):
    copy_often(monkeypatch)
    monkeypatch.setattr(log_module, "MOST_BYTES", SHORT)
    opened, times = on_cluster.open_collection, []

    def open_once(*given):
        times.append(0)
        if len(times) > 1:
            raise OutOfTime
        return opened(*given)

    monkeypatch.setattr(on_cluster, "open_collection", open_once)
    with cluster(3) as client:
        options = {"loss": "hinge", "C": 0.01, "time_limit": 300.0}
        with (
            pytest.warns(RuntimeWarning, match="loaded again"),
            pytest.raises(ClusterLostError, match="time_limit was over") as lost,
        ):
            fitted(data, callback=end_workers(client, 1, 1e-4), **options)
    w, _, gap = lost.value.best
    assert len(times) == 2
    assert w.shape == (5,)
    assert 0.0 < gap <= 1e-3


@pytest.mark.full
def test_the_only_worker_of_a_long_fit_is_killed(data, killer, monkeypatch):
    """No worker has a copy, and the log is cut: all is loaded again."""
    monkeypatch.setattr(log_module, "MOST_BYTES", SHORT)
    with cluster(1, processes=True) as client:
        whole = fitted(data, loss="hinge")
        assert killer.made[-1].restored == 0
        killer.processes, killer.at = process_ids(client), killer.made[-1].count // 2
        with pytest.warns(RuntimeWarning, match="loaded again"):
            found = fitted(data, loss="hinge", callback=lambda step: lost(step, killer))
    assert len(killer.made) == 3
    both = [one.solution_.certificate.primal for one in (found, whole)]
    np.testing.assert_allclose(*both, rtol=2e-8)


def lost(step, killer):
    """No other kill once the rows are loaded again."""
    if len(killer.made) > 2:
        killer.at = None


@pytest.mark.parametrize(
    "machines", ["ab", "aabb", "abcabab", "aaabbbcc", "abcde", "aaa", "aaab"]
)
def test_copies_lie_on_another_machine(machines):
    """Unless one machine has most of the workers."""
    hosts = [Address(f"tcp://{on}:{k}", str(k)) for k, on in enumerate(machines)]
    pairs = neighbors(hosts)
    assert {other for _, other in pairs} == {host for host, _ in pairs} == set(hosts)
    assert all(host != other for host, other in pairs)
    most = max(machines.count(on) for on in machines)
    if 2 * most <= len(machines):
        assert all(one.worker[:7] != other.worker[:7] for one, other in pairs)


def test_lanes_are_shared_out_by_threads():
    """In a row at first; later the worker with the least for each thread is next."""
    threads, weights = {"a": 1, "b": 3}, [1.0, 1.0, 1.0, 1.0, 5.0]
    first = share_out(weights[:4], threads, {}, [0, 1, 2, 3])
    assert first == [("a", [0]), ("b", [1, 2, 3])]
    later = share_out(weights, threads, {0: "a", 1: "b"}, [2, 3, 4])
    assert later == [("b", [2, 3]), ("a", [4])]


@pytest.mark.full
def test_kept_features_are_made_again_from_a_copy(client, data, killer, monkeypatch):
    """The features of a map are no part of a copy, but the sweep that kept them is."""
    copy_often(monkeypatch)
    fits, where = [], []
    for at in (None, 30):
        wait_for(client, 2)
        killer.processes, killer.at = process_ids(client), at
        svc = SVC(rank=20, loss="hinge", tol=1e-8, random_state=0).fit(*data)
        fits.append(svc.solution_.certificate)
        where.append((killer.made[-1].replayed, killer.made[-1].restored))
    killer.at = None
    assert fits[0] == fits[1]
    assert where[0][1] == 0 < where[1][1]
    assert where[1][0] <= 11


@pytest.mark.full
@pytest.mark.parametrize("loss", ["squared_hinge", "hinge"])
def test_a_worker_killed_at_any_time_changes_no_bit(client, data, killer, loss):
    places = [0.0, 0.2, 0.4, 0.6, 0.8, 0.95, 1.0]
    killed_fits(client, data, killer, places, loss=loss)


def killed_once(block, flag):
    """A block, but the first process to make it is killed."""
    try:
        os.close(os.open(flag, os.O_CREAT | os.O_EXCL))
        os.kill(os.getpid(), signal.SIGKILL)
    except FileExistsError:
        pass
    return block


@pytest.mark.full
def test_a_killed_worker_changes_no_bit_of_coordinate_descent(client, data, killer):
    options = {"solver": "coordinate_descent", "loss": "hinge", "C": 0.001}
    killed_fits(client, data, killer, [0.0, 0.5, 1.0], **options)


@pytest.mark.full
def test_a_worker_killed_while_loading_changes_no_bit(client, data, tmp_path):
    wait_for(client, 2)
    X, y = data
    deadly = X.map_blocks(killed_once, str(tmp_path / "flag"), dtype=X.dtype, meta=X)
    assert_same_bits(fitted((deadly, y)), fitted(data))


SOLVERS = [
    {"loss": "squared_hinge"},
    {"loss": "hinge"},
    {"loss": "hinge", "solver": "interior_point"},
    {"loss": "hinge", "solver": "coordinate_descent", "C": 0.001},
    # With a finish.
    {"loss": "hinge", "solver": "coordinate_descent", "C": 0.001, "tol": 1e-10},
    {"solver": "coordinate_descent", "C": 0.001, "tol": 1e-10},
]


@pytest.mark.full
def test_the_number_of_workers_changes_no_bit(data):
    found = []
    for n_workers in (1, 2, 4):
        with cluster(n_workers, processes=True):
            found += [fitted(data, **options) for options in SOLVERS]
    for k, one in enumerate(found):
        assert_same_bits(one, found[k % len(SOLVERS)])


def test_workers_of_one_process_have_the_same_bits(client, data):
    wait_for(client, 2)
    there = fitted(data, loss="hinge")
    options = {"solver": "coordinate_descent", "C": 0.001, "tol": 1e-10}  # and a finish
    descent = fitted(data, **options)
    with cluster(3):
        assert_same_bits(fitted(data, loss="hinge"), there)
        assert_same_bits(fitted(data, **options), descent)


@pytest.mark.full
def test_fifty_fits_while_workers_are_killed(data):
    """As `distributed.chaos.KillWorker` does, at random times."""
    with cluster(3, processes=True) as client:
        whole, stop = fitted(data, loss="hinge"), threading.Event()
        rng = np.random.default_rng(0)

        def kill():
            while not stop.wait(rng.uniform(0.5, 4.0)):
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    processes = list(process_ids(client).values())
                if len(processes) > 1:
                    os.kill(processes[rng.integers(len(processes))], signal.SIGKILL)

        thread = threading.Thread(target=kill)
        thread.start()
        try:
            for _ in range(50):
                assert_same_bits(fitted(data, loss="hinge"), whole)
        finally:
            stop.set()
            thread.join()


@pytest.mark.full
def test_fifty_fits_beside_the_chaos_of_dask(data, killer):
    """`KillWorker` ends each worker, and the one in its place, after half a minute."""
    with cluster(3, processes=True) as client:
        whole = fitted(data, loss="hinge")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            client.register_plugin(KillWorker(delay="30 s", mode="segfault"))
        for _ in range(50):
            wait_for(client, 2)
            assert_same_bits(fitted(data, loss="hinge"), whole)
    assert sum(crew.restored for crew in killer.made) > 0


# -- the end of all workers, of the scheduler, of the user's patience -------------------


def test_no_worker_left_is_said_with_the_best_model(data, monkeypatch):
    monkeypatch.setattr(crew_module, "PATIENCE", 0.5)
    with cluster(2) as client:

        def end(step):
            if step.iteration == 3:
                client.cluster.scale(0)
                while client.nthreads():
                    time.sleep(0.01)

        with pytest.raises(ClusterLostError, match="No worker is left") as lost:
            fitted(data, callback=end)
    w, _, gap = lost.value.best
    assert w.shape == (5,)
    assert 0.0 < gap <= 1.0


@pytest.mark.full
def test_a_scheduler_that_goes_away_is_said(data, monkeypatch):
    monkeypatch.setattr(crew_module, "ANSWER", 0.5)
    with cluster(2) as client:

        def end(step):
            if step.iteration == 3:
                client.cluster.sync(client.cluster.scheduler.close)

        with pytest.raises(ClusterLostError, match="scheduler of the Dask cluster"):
            fitted(data, callback=end)


class Pressed(Crew):
    """Ctrl-C while one request is on its way, which the lanes may have missed."""

    waits, made = 0, []

    def __init__(self, *given):
        super().__init__(*given)
        Pressed.made.append(self)

    def _wait(self, work, timeout):
        self.waits += 1
        if self.waits == 12:
            super()._wait(asyncio.sleep(0), timeout)
            loop = self._client.loop.asyncio_loop
            asyncio.run_coroutine_threadsafe(work, loop).cancel()
            raise KeyboardInterrupt
        return super()._wait(work, timeout)


def test_ctrl_c_keeps_the_best_model(client, data, monkeypatch):
    wait_for(client, 2)
    monkeypatch.setattr(rows_module, "Crew", Pressed)
    clf = LinearSVC(loss="hinge", tol=1e-9)
    with pytest.raises(KeyboardInterrupt):
        clf.fit(*data)
    assert clf.status_ == "interrupted"
    assert clf.coef_.shape == (1, 5)
    assert np.isfinite(clf.dual_gap_)
    # The answer is made in few requests: each may take long.
    assert 12 < Pressed.made[-1].waits <= 18


class Slow(Crew):
    """Requests that take long."""

    rest = 0.05

    def add(self, data, timeout=None):
        time.sleep(self.rest)
        return super().add(data, timeout)


def test_a_time_limit_ends_a_fit(client, data, monkeypatch):
    wait_for(client, 2)
    fitted(data)  # now the workers know what they need
    begin = time.monotonic()
    fitted(data)
    # Rows are loaded much sooner; the time of callbacks would not count.
    limit = 2.0 + 3.0 * (time.monotonic() - begin)
    monkeypatch.setattr(Slow, "rest", limit / 40.0)
    monkeypatch.setattr(rows_module, "Crew", Slow)
    slow = LinearSVC(loss="hinge", time_limit=limit, tol=1e-15)
    with pytest.warns(ConvergenceWarning, match="Stopped by time_limit"):
        slow.fit(*data)
    with pytest.raises(TimeoutError, match="before the rows of X were loaded"):
        LinearSVC(time_limit=1e-3).fit(*data)


def test_a_killed_worker_changes_no_bit(client, data, killer):
    """The last one, as nobody then waits for a worker in its place."""
    killed_fits(client, data, killer, [0.5])
