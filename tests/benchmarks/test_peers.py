"""Each peer solves exactly the problems that it is compared on, at its finest setting.

How close is limited by LIBLINEAR (300 epochs) and Snap ML (about 1e-4 on few rows).
"""

import contextlib
import importlib
import warnings

import numpy as np
import pytest
from scipy import sparse

from benchmarks.environment import peers_of
from widemargin import Problem, solve


def installed():
    """Names and modules of the peers that are here: after `make bench` all of them."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name in peers_of("linear"):
            with contextlib.suppress(ImportError):
                yield name, importlib.import_module(f"benchmarks.peers.linear.{name}")


PEERS = dict(installed())


def test_the_peers_of_the_test_extra_are_here():
    assert {"sklearn", "liblinear", "libsvm"} <= set(PEERS)


@pytest.fixture(params=PEERS)
def peer(request):
    return PEERS[request.param]


@pytest.fixture(params=["dense", "sparse"])
def data(request):
    """Classes of 30 % and 70 % that overlap, far from the origin: intercepts matter."""
    rng = np.random.default_rng(0)
    y = np.where(rng.random(400) < 0.3, 1.0, -1.0)
    X = rng.normal(size=(400, 5)) + 0.5 * y[:, None] + 1.0
    return (sparse.csr_matrix(X) if request.param == "sparse" else X), y


@pytest.mark.parametrize("C", [0.03, 0.3])
def test_peer_solves_the_same_problem(peer, data, C):
    X, y = data
    for loss, intercepts in peer.INTERCEPTS.items():
        for intercept in intercepts:
            problem = Problem(X, y, C, loss, intercept)
            dual = solve(problem, tol=1e-9).certificate.dual
            for ladder in peer.ladders(loss, intercept):
                w, b = _fit(peer, X, y, C, loss, intercept, ladder[-1])
                primal = problem.primal(w, b)
                assert -1e-9 < (primal - dual) / primal < 1e-3, (loss, intercept)


@pytest.mark.parametrize("C", [0.03, 0.3])
@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_the_problems_differ_by_more(data, C, loss):
    problems = [Problem(*data, C, loss, i) for i in ("free", "penalized", "none")]
    optima = np.sort([solve(p, tol=1e-6).certificate.primal for p in problems])
    assert np.all(np.diff(optima) > 3e-3 * optima[:-1])


def _fit(peer, X, y, C, loss, intercept, setting):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return peer.fit(X, y, C, loss, intercept, **setting)[:2]
