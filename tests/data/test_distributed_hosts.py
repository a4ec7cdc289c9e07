"""Fits on a cluster of several hosts: network namespaces, joined by a bridge."""

import contextlib
import os
import shutil
import subprocess
import sys

import dask
import dask.array as da
import numpy as np
import pytest
from distributed import Client, LocalCluster

from tests.cases.clusters import QUIET, cluster, mixture
from tests.cases.waits import HANGS
from widemargin import LinearSVC

pytestmark = [
    pytest.mark.dask,
    pytest.mark.full,
    pytest.mark.skipif(
        not hasattr(os, "geteuid") or os.geteuid() != 0 or not shutil.which("ip"),
        reason="hosts are network namespaces, which root makes with iproute2's ip",
    ),
]
NET, BRIDGE, SECONDS = "10.177.43", "wmtest", "12s"
# How soon a host that sends nothing is known to be gone; Dask waits for 30 s, 11 at least.
TIMEOUT = {"distributed.comm.timeouts.tcp": SECONDS}


def ip(*words):
    subprocess.run(["ip", *map(str, words)], check=True, capture_output=True)


@contextlib.contextmanager
def host(k):
    """A host with an address of its own."""
    name, link = f"{BRIDGE}{k}", f"{BRIDGE}-v{k}"
    ip("netns", "add", name)
    try:
        ip("link", "add", link, "type", "veth", "peer", "name", "eth0", "netns", name)
        ip("link", "set", link, "master", BRIDGE, "up")
        ip("-n", name, "addr", "add", f"{NET}.{k}/24", "dev", "eth0")
        ip("-n", name, "link", "set", "eth0", "up")
        ip("-n", name, "link", "set", "lo", "up")
        yield name
    finally:
        ip("netns", "del", name)


@contextlib.contextmanager
def worker(k, scheduler):
    """A worker on a host of its own."""
    options = ["--nthreads", "1", "--no-nanny", "--no-dashboard", "--host"]
    command = [sys.executable, "-m", "distributed.cli.dask_worker", scheduler]
    environment = os.environ | {
        "PYTHONPATH": os.pathsep.join(filter(None, [os.getcwd(), *sys.path])),
        "DASK_DISTRIBUTED__COMM__TIMEOUTS__TCP": SECONDS,
    }
    with host(k) as name:
        process = subprocess.Popen(
            ["ip", "netns", "exec", name, *command, *options, f"{NET}.{k}"],
            env=environment,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        try:
            yield
        finally:
            process.kill()
            process.wait()


@pytest.fixture
def client():
    """The client of a scheduler here and of workers on two hosts."""
    ip("link", "add", BRIDGE, "type", "bridge")
    try:
        ip("addr", "add", f"{NET}.1/24", "dev", BRIDGE)
        ip("link", "set", BRIDGE, "up")
        with (
            dask.config.set(QUIET | TIMEOUT),
            LocalCluster(n_workers=0, host=f"{NET}.1", dashboard_address=":0") as here,
            worker(2, here.scheduler_address),
            worker(3, here.scheduler_address),
            Client(here, set_as_default=False) as client,
            client.as_current(),
        ):
            client.wait_for_workers(2, timeout=HANGS)
            yield client
    finally:
        ip("link", "del", BRIDGE)


def test_hosts_change_no_bit_nor_does_the_loss_of_one(client):
    hosts = {address.split("/")[2].split(":")[0] for address in client.nthreads()}
    assert hosts == {f"{NET}.2", f"{NET}.3"}
    X, y = mixture(8000)
    data = da.from_array(X, chunks=(1000, -1)), da.from_array(y, chunks=1000)
    cuts = []

    def cut(step):
        if step.iteration == 5 and not cuts:
            cuts.append(ip("link", "set", f"{BRIDGE}-v3", "down"))

    whole = LinearSVC(loss="hinge", tol=1e-8).fit(*data)
    lost = LinearSVC(loss="hinge", tol=1e-8, callback=cut).fit(*data)
    assert len(cuts) == 1
    assert len(client.nthreads()) == 1
    with cluster(3):
        here = LinearSVC(loss="hinge", tol=1e-8).fit(*data)
    for other in (whole, lost):
        np.testing.assert_array_equal(other.coef_, here.coef_)
        assert other.solution_.certificate == here.solution_.certificate
