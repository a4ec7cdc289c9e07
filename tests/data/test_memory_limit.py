"""The promise of memory_limit, in a process whose address space is capped."""

import os
import subprocess
import sys

import numpy as np
import pytest

from tests.cases.waits import HANGS

SHARDS = 10
LIMIT = 60 << 20
# Stacks of threads and what the interpreter loads while it runs: not the fit's.
EXTRA = 64 << 20
# Arenas of the allocator and buffers of BLAS for every core would be mapped, and not used.
FEW = {"MALLOC_ARENA_MAX": "1", "OPENBLAS_NUM_THREADS": "1"}

SCRIPT = """
import resource, sys
import numpy as np
from widemargin import Problem, open_rows, solve
import widemargin.solvers.auto

np.ones((300, 300)) @ np.ones((300, 300))  # BLAS has its buffers

def size(kind):
    lines = open("/proc/self/status").read().splitlines()
    return 1024 * next(int(l.split()[1]) for l in lines if l.startswith(kind))

folder, solver, loss, limit, extra = sys.argv[1:]
mapped, resident = size("VmSize"), size("VmRSS")
cap = mapped + int(limit) + int(extra)
resource.setrlimit(resource.RLIMIT_AS, (cap, cap))
rows = open_rows(folder, memory_limit=int(limit))
problem = Problem(rows, rows.vector("label"), 1e-6, loss, "penalized")
most = 1 if solver == "interior_point" else None
solution = solve(problem, solver, tol=0.1, max_iter=most)
print(cap, size("VmHWM") - resident, solution.status, solution.certificate.relative_gap)
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """0.5 GB of rows: a shard under many names."""
    path = tmp_path_factory.mktemp("large")
    rng = np.random.default_rng(0)
    X = rng.normal(size=(50_000, 128))
    y = np.sign(X @ rng.normal(size=128) + 10.0 * rng.normal(size=len(X)))
    np.save(path / "X-00.npy", X)
    np.save(path / "y-00.npy", y.astype(np.int8))
    for k in range(1, SHARDS):
        os.link(path / "X-00.npy", path / f"X-{k:02}.npy")
        os.link(path / "y-00.npy", path / f"y-{k:02}.npy")
    return path


@pytest.mark.skipif(
    not os.path.exists("/proc/self/status"), reason="caps on memory are tested on Linux"
)
@pytest.mark.slow
@pytest.mark.parametrize(
    ("solver", "loss"),
    [
        ("active_set", "squared_hinge"),
        pytest.param("augmented_lagrangian", "hinge", marks=pytest.mark.full),
        pytest.param("interior_point", "hinge", marks=pytest.mark.full),
    ],
)
def test_a_fit_keeps_to_its_limit(solver, loss, folder):
    stored = sum(file.stat().st_size for file in folder.iterdir())
    command = [sys.executable, "-c", SCRIPT, str(folder), solver, loss]
    done = subprocess.run(
        [*command, str(LIMIT), str(EXTRA)],
        env={**os.environ, **FEW},
        capture_output=True,
        text=True,
        timeout=HANGS,
    )
    assert done.returncode == 0, done.stderr
    cap, grown, status, gap = done.stdout.split()
    assert stored > int(cap)  # with all else that the process holds
    assert int(grown) <= LIMIT
    assert status == "solved" if solver != "interior_point" else float(gap) < 1.0
