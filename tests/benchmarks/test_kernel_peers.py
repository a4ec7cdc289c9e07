"""Kernel peers solve the problem that they are compared on; tables of tiny runs."""

import contextlib
import importlib
import json
import sys
import warnings

import numpy as np
import pytest
from scipy import sparse

from benchmarks.core import kernel_rows
from benchmarks.environment import peers_of
from benchmarks.kernel import growth, one, run, tables
from benchmarks.one import save_set
from widemargin import Kernel, Problem, solve


def installed():
    """The peers whose packages are here, by name."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name in peers_of("kernel"):
            with contextlib.suppress(ImportError):
                yield name, importlib.import_module(f"benchmarks.peers.kernel.{name}")


PEERS = dict(installed())
C, GAMMA = 2.0, 0.4


@pytest.fixture(params=["dense", "sparse"])
def data(request):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(300, 4))
    y = np.where(X[:, 0] ** 2 + X[:, 1] + rng.normal(size=300) > 1.0, 1.0, -1.0)
    return (sparse.csr_matrix(X) if request.param == "sparse" else X), y


def answered(name, X, y, setting):
    peer = PEERS[name]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        answer = peer.fit(peer.prepared(X, **setting), y, C, GAMMA, **setting)
    return one.scored(X, y, C, GAMMA, answer)


def test_those_of_the_test_extra_are_here():
    assert {"widemargin", "libsvm"} <= set(PEERS)


@pytest.mark.parametrize("name", PEERS)
def test_peer_solves_the_problem_from_every_input(name, data):
    X, y = data
    best = solve(Problem(X, y, C, kernel=Kernel("rbf", gamma=GAMMA)), tol=1e-9)
    dual = best.certificate.dual
    for ladder in PEERS[name].ladders(sparse.issparse(X)):
        found = answered(name, X, y, ladder[-1])
        assert -1e-9 < (found["primal"] - dual) / found["primal"] < 1e-3, ladder[-1]
        assert found["dual"] <= dual * (1 + 1e-8)
        assert abs(found["support_vectors"] - np.count_nonzero(best.alpha)) <= 15


def test_labels_that_begin_with_either_class(data):
    X, y = data
    for sign in (1.0, -1.0):
        for name in PEERS:
            setting = PEERS[name].ladders(sparse.issparse(X))[0][-1]
            assert answered(name, X, sign * y, setting)["own_gap"] < 1e-2, name


def test_rows_are_thinned_to_nested_choices(data):
    X, y = data
    some, _ = one.thinned(X, y, 50)
    more, labels = one.thinned(X, y, 100)
    assert len(labels) == 100
    assert abs(some - more[:50]).max() == 0
    assert one.thinned(X, y, None)[0] is X


def test_sizes_double_up_to_all():
    assert run.sizes(9000) == [2000, 4000, 8000, 9000]
    assert run.sizes(1500) == [1500]
    assert run.sizes(0) == []


def test_rates_are_measured(data):
    rates = kernel_rows.measure(data[0], GAMMA, 0.001)
    assert rates["m"] == 300
    assert min(value for key, value in rates.items()) > 0
    assert ("product" in rates) == sparse.issparse(data[0])
    assert len(list(kernel_rows.table({"toy": rates}))) == 3


def record(part, peer, setting, seconds, m=300, **more):
    about = {"set": "a9a", "C": C, "gamma": GAMMA, "loss": "hinge", "part": part}
    about |= {"intercept": "free", "rows": m, "load": 0, "peer": peer, "m": m}
    return {**about, "setting": setting, "seconds": seconds, "mib": 1.0, **more}


def test_tables_of_runs(tmp_path, data):
    X, y = data
    runs = []
    for name, tol in (("widemargin", 1e-3), ("widemargin", 1e-6), ("libsvm", 1e-3)):
        found = answered(name, X, y, {"tol": tol})
        runs.append(record("fit", name, {"tol": tol}, 0.5, **found))
    runs.append({**record("fit", "libsvm", {"tol": 1e-5}, 0.0), "failed": "> 1 s"})
    rates = {"a9a": {"fused32": 1e6, "stored32": 2e6}}
    lines = tables.write_summary(tmp_path, runs, [], rates)
    text = "\n".join(lines)
    vectors = runs[1]["support_vectors"]
    assert f"lower bound {vectors * 300 / 2e6:.3f} s" in text
    assert "more than 1 in 0 of 1" in text
    assert "no answer: > 1 s" in text
    assert (tmp_path / "curves.png").stat().st_size > 1000
    assert len((tmp_path / "summary.csv").read_text().splitlines()) == 4


def test_table_of_growth(tmp_path):
    runs = [
        record("growth", "widemargin", {}, seconds, m=m, own_gap=1e-4)
        for m, seconds in ((1000, 1.0), (2000, 4.0), (4000, 16.0))
    ]
    lines = growth.write_growth(tmp_path, runs)
    assert lines[-1].endswith("2.00")
    assert (tmp_path / "growth.png").exists()
    assert growth.write_growth(tmp_path, []) == []


def test_tables_of_memory_and_predictions(tmp_path):
    kept = {"kept_mib": 8.0, "rows_of_k": 10.0}
    free = record("memory", "widemargin", {"memory": "free"}, 1.0, **kept)
    tight = record("memory", "widemargin", {"memory": 10}, 3.0, **kept)
    assert tables.write_memory(tmp_path, [free, tight])[-1].endswith("3.00")
    about = {"predict_seconds": 0.5, "correct": 0.9, "test_m": 10}
    runs = [record("predict", p, {}, 1.0, **about) for p in ("widemargin", "libsvm")]
    assert tables.write_predictions(tmp_path, runs)[-1].endswith("1.00")


@pytest.mark.one_of(2)
def test_a_run_in_a_process_of_its_own(tmp_path, data):
    """What the runner starts: one fit, with the quarter of memory that it tells."""
    import subprocess

    X, y = data
    save_set(tmp_path, X, y)
    result = tmp_path / "result.json"
    task = record("memory", "widemargin", {"tol": 1e-4, "memory": "free"}, 0.0)
    task |= {"folder": str(tmp_path), "result": str(result), "rows": None}
    command = [sys.executable, "-m", one.__name__, json.dumps(task)]
    assert subprocess.check_output(command, text=True) == "ready\n"
    found = json.loads(result.read_text())
    assert found["own_gap"] <= 1e-4
    assert found["quarter"] > 0
