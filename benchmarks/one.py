"""One fit in this process, measured and scored, for `run`; prints nothing."""

import importlib
import json
import os
import resource
import sys
import time
import warnings
from pathlib import Path

import numpy as np
from scipy import sparse

from widemargin import Problem


def main():
    """Run the task given as JSON; say "ready" before the fit; write the result."""
    task = json.loads(sys.argv[1])
    peer = importlib.import_module(f"benchmarks.peers.linear.{task['peer']}")
    X, y = load_set(task["folder"])
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    problem = {key: task[key] for key in ("C", "loss", "intercept")}
    answer, result = measured(lambda: peer.fit(X, y, **problem, **task["setting"]))
    result |= scored(Problem(X, y, **problem), *answer)
    Path(task["result"]).write_text(json.dumps(result))


def save_set(folder, X, y):
    """Write a set as arrays that load without a peak of memory."""
    np.save(Path(folder, "y.npy"), np.asarray(y, dtype=np.float64))
    if sparse.issparse(X):
        parts = {"data": X.data, "indices": X.indices, "indptr": X.indptr}
        for name, part in parts.items():
            np.save(Path(folder, f"{name}.npy"), part)
        Path(folder, "shape.json").write_text(json.dumps(X.shape))
    else:
        np.save(Path(folder, "X.npy"), X)


def load_set(folder):
    """X, y as written by `save_set`; a csr_matrix of 32 bits."""
    y = np.load(Path(folder, "y.npy"))
    if Path(folder, "X.npy").exists():
        return np.load(Path(folder, "X.npy")), y
    data, *index = (
        np.load(Path(folder, f"{name}.npy")) for name in ("data", "indices", "indptr")
    )
    index = [part.astype(np.int32) for part in index]
    shape = json.loads(Path(folder, "shape.json").read_text())
    return sparse.csr_matrix((data, *index), shape=shape), y


def measured(fit):
    """What fit returns; its seconds, CPU seconds, threads and MiB above the data."""
    before = _reset_peak()
    cpu, begin = time.process_time(), time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the gap says how good the answer is
        answer = fit()
    seconds = time.perf_counter() - begin
    return answer, {
        "seconds": seconds,
        "cpu_seconds": time.process_time() - cpu,
        "mib": (_peak() - before) / 1024,
        "threads": int(_status().get("Threads", "0")),
    }


def scored(problem, w, b, dual=None):
    """Objectives of the answer, and that of v = 0."""
    b = 0.0 if problem.intercept == "none" else float(b)
    scores = {"primal": problem.primal(w, b), "zero": problem.zero_objective}
    return scores if dual is None else {**scores, "dual": float(dual)}


def _reset_peak():
    """Resident KiB now, and `_peak` begins anew (Linux; elsewhere the peak so far)."""
    try:
        Path("/proc/self/clear_refs").write_text("5")
    except OSError:
        return _peak()
    return int(_status()["VmRSS"].split()[0])


def _peak():
    """Largest resident KiB of this process, and of its largest child beside it."""
    own = _status().get("VmHWM")
    units = 1024 if sys.platform == "darwin" else 1
    largest = {
        who: resource.getrusage(who).ru_maxrss // units
        for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    }
    self_kib = int(own.split()[0]) if own else largest[resource.RUSAGE_SELF]
    return self_kib + largest[resource.RUSAGE_CHILDREN]


def _status():
    if not os.path.exists("/proc/self/status"):
        return {}
    lines = Path("/proc/self/status").read_text().splitlines()
    return {key: value.strip() for key, _, value in (x.partition(":") for x in lines)}


if __name__ == "__main__":
    main()
