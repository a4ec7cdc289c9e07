"""Dask clusters of this machine for tests, and data for them."""

import contextlib
import logging
import os
import warnings

import dask
import numpy as np
from distributed import Client, LocalCluster

QUIET = {
    "distributed.comm.timeouts.connect": "10s",
    "distributed.worker.memory.terminate": False,
    "distributed.admin.system-monitor.interval": "10s",
}


@contextlib.contextmanager
def cluster(n_workers, processes=False):
    """A client of a cluster of workers with one thread each."""
    logging.getLogger("distributed").setLevel(logging.CRITICAL)
    options = {"threads_per_worker": 1, "dashboard_address": ":0"}
    with (
        warnings.catch_warnings(),
        dask.config.set(QUIET),
        LocalCluster(
            n_workers=n_workers,
            processes=processes,
            silence_logs=logging.CRITICAL,
            **options,
        ) as local,
        Client(local, set_as_default=False) as client,
        client.as_current(),
    ):
        yield client


def process_ids(client):
    """The process of each worker, by its address."""
    return client.run(os.getpid, on_error="ignore")


def mixture(m, n=5, noise=0.5, seed=0):
    """Well conditioned rows of two classes that overlap."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(m, n))
    y = np.where(X @ rng.normal(size=n) + noise * rng.normal(size=m) > 0, 1, -1)
    return X, y


def relative(one, other):
    """How far the coefficients of two estimators are from each other."""
    return np.abs(one.coef_ - other.coef_).max() / np.abs(other.coef_).max()
